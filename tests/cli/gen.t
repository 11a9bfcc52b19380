#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A seed means one text, on every machine.  Red when the generator looks at
# anything but its seed, or changes without a new version (then: raise
# MMR_GEN_VERSION and write the goldens anew, see CONTRIBUTING.md).

. "$(dirname "$0")/../lib.sh"
t_need_tool
GOLDEN=$TOP/tests/golden

profiles() {
	"$MMRACE" gen --help | sed -n '/^profiles:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

"$MMRACE" gen --seed 7 >"$WORK/a"
t_result $? 'gen --seed 7'
"$MMRACE" gen --seed 7 >"$WORK/b"
t_same 'twice the same' "$WORK/a" "$WORK/b"
"$MMRACE" gen --seed 0x7 >"$WORK/b"
t_same 'decimal and 0x are one seed' "$WORK/a" "$WORK/b"
for locale in C.UTF-8 tr_TR.UTF-8 de_DE.UTF-8; do
	LC_ALL=$locale TZ=Pacific/Kiritimati "$MMRACE" gen --seed 7 >"$WORK/b"
	t_same "locale $locale, another time zone" "$WORK/a" "$WORK/b"
done
(cd / && env -i "$MMRACE" gen --seed 7 >"$WORK/b")
t_same 'no environment, another folder' "$WORK/a" "$WORK/b"
if command -v setarch >/dev/null; then
	setarch "$(uname -m)" -R "$MMRACE" gen --seed 7 >"$WORK/b"
	t_same 'without address randomisation' "$WORK/a" "$WORK/b"
fi
if [ -x "$BUILD-clang/mmrace" ]; then
	"$BUILD-clang/mmrace" gen --seed 7 >"$WORK/b"
	t_same 'built by clang' "$WORK/a" "$WORK/b"
else
	t_skip 'built by clang' 'no clang here'
fi

grep '^origin' "$WORK/a" >"$WORK/origin"
version=$(sed -n 's/^#define MMR_GEN_VERSION //p' fuzz/gen.h)
echo "origin  seed=0x7 gen=$version" >"$WORK/want"
t_same 'origin names seed and generator version alone' "$WORK/want" \
	"$WORK/origin"

# NAME-SEED in a golden's file name: the profile and the seed.
for g in "$GOLDEN"/gen-*-*.case; do
	key=$(basename "$g" .case)
	profile=${key#gen-}
	profile=${profile%-*}
	"$MMRACE" gen --seed "${key##*-}" --profile "$profile" >"$WORK/b"
	[ -n "${MMR_UPDATE_GOLDEN:-}" ] && cp "$WORK/b" "$g"
	t_same "golden: $profile, seed ${key##*-}" "$g" "$WORK/b"
done
n=0
for profile in $(profiles); do
	n=$((n + 1))
	[ -e "$GOLDEN/gen-$profile-7.case" ]
	t_result $? "there is a golden of profile $profile"
done
[ $n -ge 5 ]
t_result $? 'there are profiles'

# 64 bits: the upper half counts too.
"$MMRACE" gen --seed 0x100000007 >"$WORK/b"
! cmp -s <(grep -v '^origin' "$WORK/a") <(grep -v '^origin' "$WORK/b")
t_result $? 'seeds 7 and 2^32+7 are two cases'

seeds=200
[ -n "$LONG" ] && seeds=10000
"$BUILD/tools/cases" seeds 1 200 >"$WORK/seeds" 2>&1
t_result $? 'print(parse(gen)) is the identity, also without any statement'
t_note 'counts:' "$WORK/seeds"
awk -F'[ ,]+' '/different/ { n++; if ($4 < 198) bad = 1 } END { exit bad || !n }' \
	"$WORK/seeds"
t_result $? '200 seeds: at least 198 different cases, in each profile'
if [ $seeds -gt 200 ]; then
	t_ok "the same for $seeds seeds" \
		"$BUILD/tools/cases" seeds 0x1000 $seeds
fi

# By the tool itself: what gen prints, show and replay read.
t_ok 'show reads what gen prints' "$MMRACE" show "$WORK/a"
"$MMRACE" gen --seed 7 | "$MMRACE" show - >"$WORK/b"
t_result $? 'and from standard input'
t_run "$MMRACE" gen --seed 7 --json
t_rc 'gen --json' 0
t_json 'gen --json: JSON' "$OUT"
t_done
