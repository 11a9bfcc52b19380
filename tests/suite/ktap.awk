# SPDX-License-Identifier: GPL-2.0-or-later
#
# Is it KTAP version 1, as Documentation/dev-tools/ktap.rst of the kernel
# defines it, without nested tests?  Exit 0, or 1 with a message: the version
# line first, the plan second, then results in sequence, each "ok" or "not ok"
# with its number, a description without #, and a known directive; between
# them diagnostics only; as many results as planned; totals, where they are
# given, that agree with the results.

function bad(why) {
	printf "line %d: %s: %s\n", NR, why, $0
	failed = 1
	exit 1
}

NR == 1 {
	if ($0 != "KTAP version 1")
		bad("no version line")
	next
}
NR == 2 {
	if ($0 !~ /^1\.\.[0-9]+$/)
		bad("no plan")
	plan = substr($0, 4) + 0
	next
}
/^# Totals: / {
	if ($0 !~ /^# Totals: pass:[0-9]+ fail:[0-9]+ xfail:[0-9]+ xpass:[0-9]+ skip:[0-9]+ error:[0-9]+$/)
		bad("totals that kselftest does not write")
	for (i = 3; i <= NF; i++) {
		split($i, part, ":")
		total[part[1]] = part[2] + 0
	}
	totals = 1
	next
}
/^#/ {
	if ($0 !~ /^# /)
		bad("a diagnostic begins with # and a blank")
	next
}
/^(not )?ok / {
	line = $0
	ok = sub(/^ok /, "", line)
	if (!ok)
		sub(/^not ok /, "", line)
	if (line !~ /^[0-9]+( |$)/)
		bad("no number")
	number = line + 0
	if (number != seen + 1)
		bad("out of sequence")
	seen++
	sub(/^[0-9]+ ?/, "", line)
	if (line ~ /^- /)
		bad("a dash is TAP")
	directive = ""
	at = index(line, "#")
	if (at) {
		if (substr(line, at - 1, 3) !~ /^ # $/)
			bad("# without blanks around it")
		directive = substr(line, at + 2)
		if (directive ~ /#/)
			bad("a second #")
		if (directive !~ /^(SKIP|TODO|XFAIL|TIMEOUT|ERROR)( |$)/)
			bad("an unknown directive")
		if (directive ~ /^SKIP/ && !ok)
			bad("a skip that is not ok")
		if (directive ~ /^(ERROR|TIMEOUT)/ && ok)
			bad("an error that is ok")
	}
	if (directive ~ /^SKIP/)
		count["skip"]++
	else if (directive ~ /^XFAIL/)
		count["xfail"]++
	else if (directive ~ /^ERROR/)
		count["error"]++
	else
		count[ok ? "pass" : "fail"]++
	next
}
{ bad("neither result nor diagnostic") }
END {
	if (failed)
		exit 1
	if (NR < 2 || seen != plan) {
		printf "%d results, %d planned\n", seen, plan
		exit 1
	}
	split("pass fail xfail skip error", names, " ")
	for (i = 1; totals && i <= 5; i++)
		if (total[names[i]] != count[names[i]] + 0) {
			printf "totals: %s\n", names[i]
			exit 1
		}
}
