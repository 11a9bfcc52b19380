#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# agree.sh DIR CASE: one case in all forms: they compile without a warning, run,
# and say of the running kernel what `mmrace replay` says.  Prints one line,
# "ok NAME" or "not ok NAME: why"; its files are in DIR/NAME.  For agree.t,
# which has called suites_prepare.

. "$TOP/tests/export/suites.sh"
name=$(basename "$2" .case)
dir=$1/$name
mkdir -p "$dir"

fail() {
	echo "not ok $name: $*"
	exit 0
}

# A few rounds: this is about what they say, not about rare hits.
sed -E 's/^rounds .*/rounds  3 budget=2s/' "$2" >"$dir/x.case"
"$MMRACE" replay --runs 1 --quiet "$dir/x.case" >"$dir/replay" 2>&1
want=$?
[ $want -le 4 ] || fail "replay: exit $want"
for form in c ltp kselftest; do
	"$MMRACE" export --to $form -o "$dir/$form.c" "$dir/x.case" \
		>"$dir/export" 2>&1 ||
		fail "$form: $(tail -n 1 "$dir/export")"
	suites_compile "$CC" $form "$dir/$form" "$dir/$form.c" \
		>"$dir/log" 2>&1 ||
		fail "$form, $CC: $(grep -m 1 error "$dir/log")"
	# clang warns of other things.
	[ -z "$CLANG" ] || suites_check "$CLANG" $form "$dir/$form.c" \
		>"$dir/log" 2>&1 ||
		fail "$form, $CLANG: $(grep -m 1 error "$dir/log")"
	timeout 120 "$dir/$form" >"$dir/$form.out" 2>&1 </dev/null
	got=$(suites_exit $form $?)
	# What replay makes for a case, a program takes from its environment.
	[ "$got" = 4 ] && grep -Eq 'needs (CGROUP|SWAP_AREA)' \
		"$dir/$form.out" && continue
	# Who starts the program has allowed it to write settings.
	[ $want = 4 ] && grep -q allow-settings "$dir/replay" &&
		[ "$got" = 0 ] && continue
	[ "$got" = $want ] ||
		fail "$form says $got ($(tail -n 1 "$dir/$form.out"))," \
			"replay $want"
done
rm -rf "$dir"
echo "ok $name"
