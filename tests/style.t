#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The rules of the tree.  Each rule is a function that prints what breaks it;
# each is first shown a sample that must be caught, so that a rule which
# catches nothing any more turns red.

. "$(dirname "$0")/lib.sh"

files() {
	if git -C "$TOP" rev-parse --git-dir >/dev/null 2>&1; then
		git -C "$TOP" ls-files -co --exclude-standard
	else
		(cd "$TOP" && find . -type f | sed 's,^\./,,')
	fi | grep -Ev '^(build/|[.]git/|mmrace-out/)' | while read -r f; do
		[ -f "$f" ] && echo "$f"
	done
}

# Data: the canonical print drops comments, and goldens are what comes out.
is_data() {
	case $1 in
	COPYING | *.case | tests/golden/* | corpus/*/*.txt | tests/import/*.log)
		return 0
		;;
	esac
	return 1
}

# The license on the first line, on the second one after "#!".
rule_spdx() {
	is_data "$1" || head -n 2 "$1" | awk -v f="$1" '
	NR == 1 && /^#!/ { next }
	/SPDX-License-Identifier: GPL-2[.]0-or-later/ { good = 1 }
	{ exit }
	END { if (!good) print f ": no SPDX line" }'
}

# ops <- triage <- fuzz: nobody includes a room further up.
rule_rooms() {
	local up
	case $2 in
	ops/*) up='triage|fuzz' ;;
	triage/*) up='fuzz' ;;
	*) return ;;
	esac
	grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]([.][.]/)*($up)/" \
		"$1" | sed "s,^,$2:,"
}

# Soft limits: said, not failed.
rule_file_length() {
	local n
	n=$(wc -l <"$1")
	[ "$n" -le 600 ] || echo "$1: $n lines"
}

# Kernel style: a function's braces stand in the first column.
rule_function_length() {
	awk -v f="$1" '
	/^[a-zA-Z_].*\(/ { name = $0; sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name) }
	/^{/ { start = NR }
	/^}/ { if (start && NR - start - 1 > 70)
		print f ": " name " has " NR - start - 1 " lines"
		start = 0 }' "$1"
}

# Paths of whoever wrote it.  (In two halves, or this line would match.)
rule_local_paths() {
	grep -nE '(^|[^a-zA-Z0-9_./])/(ho''me/[a-z]|wo''rk/|ro''ot/|Us''ers/)' "$1" |
		sed "s,^,$1:,"
}

rule_headers() {
	local def
	for def in -UMMR_CHILD -DMMR_CHILD; do
		case $def:$1 in
		-DMMR_CHILD:ops/*) ;;
		-DMMR_CHILD:*) continue ;;
		esac
		# shellcheck disable=SC2086 # a list of words
		printf '#include "%s"\n' "$1" |
			$CC $FLAGS $def -Werror -Wno-null-dereference \
				-I"$TOP" -fsyntax-only -x c - 2>&1
	done
}

rule_blanks() {
	awk -v f="$1" '/[ \t]$/ { print f ":" NR ": blank at the end" }' "$1"
}

# 80 columns; a string of the program may be longer.
rule_columns() {
	expand -t 8 "$1" | awk -v f="$1" '
	length($0) > 80 && !/"/ { print f ":" NR ": " length($0) " columns" }'
}

# Which case comes next depends on the seed alone.
rule_random() {
	grep -nE '(^|[^a-z_])(s?rand|random|drand48|rand_r|time)[[:space:]]*\((NULL|0|)\)' \
		"$1" | sed "s,^,$1:,"
}

catches() { # NAME RULE ARG...: the rule says something about the sample
	local name=$1
	shift
	[ -n "$("$@")" ]
	t_result $? "sample is caught: $name"
}

passes() { # NAME FILE: the file that collects violations is empty
	[ ! -s "$2" ]
	local rc=$?
	t_result $rc "$1"
	[ $rc = 0 ] || t_note 'breaks the rule:' "$2"
}

S=$WORK/sample.c
printf 'int x;\n' >"$S"
catches 'no SPDX line' rule_spdx "$S"
printf '#include "../triage/run.h"\n' >"$S"
catches 'ops includes triage' rule_rooms "$S" ops/x.c
printf '#include "../fuzz/gen.h"\n' >"$S"
catches 'triage includes fuzz' rule_rooms "$S" triage/x.c
seq 601 >"$S"
catches '601 lines' rule_file_length "$S"
{ printf 'int f(void)\n{\n'; seq 71; printf '}\n'; } >"$S"
catches 'a function of 71 lines' rule_function_length "$S"
printf 'see /ho''me/somebody/x\n' >"$S"
catches 'a local path' rule_local_paths "$S"
mkdir -p "$WORK/ops"
printf 'static inline uint64_t f(void) { return 0; }\n' >"$WORK/ops/x.h"
catches 'a header that needs another' rule_headers "$WORK/ops/x.h"
printf 'int x; \n' >"$S"
catches 'a blank at the end' rule_blanks "$S"
printf '%085d\n' 0 >"$S"
catches '85 columns' rule_columns "$S"
printf '\tsrand(time(NULL));\n' >"$S"
catches 'rand and the clock' rule_random "$S"

for rule in spdx rooms file_length function_length local_paths headers \
	columns blanks random; do
	: >"$WORK/$rule"
done
files >"$WORK/files"
while read -r f; do
	rule_spdx "$f" >>"$WORK/spdx"
	[ "$f" = COPYING ] || rule_local_paths "$f" >>"$WORK/local_paths"
	case $f in
	*.[ch])
		rule_rooms "$f" "$f" >>"$WORK/rooms"
		rule_file_length "$f" >>"$WORK/file_length"
		rule_function_length "$f" >>"$WORK/function_length"
		rule_columns "$f" >>"$WORK/columns"
		rule_blanks "$f" >>"$WORK/blanks"
		;;
	esac
	case $f in
	fuzz/*.[ch]) rule_random "$f" >>"$WORK/random" ;;
	esac
	case $f in
	ops/*.h | triage/*.h | fuzz/*.h) rule_headers "$f" >>"$WORK/headers" ;;
	esac
done <"$WORK/files"

passes 'every file names its license' "$WORK/spdx"
passes 'ops <- triage <- fuzz' "$WORK/rooms"
passes 'no path of one machine' "$WORK/local_paths"
passes 'each header compiles alone' "$WORK/headers"
passes 'no blanks at the end of a line' "$WORK/blanks"
passes 'fuzz: no rand(), no clock' "$WORK/random"

# Soft: said, not failed.
for rule in file_length function_length columns; do
	if [ -s "$WORK/$rule" ]; then
		t_note "soft limit ($rule):" "$WORK/$rule"
	fi
done
t_done
