#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An operation more, by the steps of ops/README.md, in a scratch copy: a line
# in ops.def, a file ops/op_toy.c, a golden case.  Everything else (parser,
# help, manual page, run, exported C) has to follow from these.  The objects
# of the tree are taken as they are, but for the two tables, as one more name
# changes nothing else; with MMR_LONG all is built anew.
#
# Red when: some list besides ops.def and the Makefile's wildcard has to know
# an operation.

. "$(dirname "$0")/../lib.sh"
t_need_tool
MAKE=${MMR_MAKE:-make}
variant=$(basename "$BUILD")
COPY=$WORK/tree

mkdir "$COPY"
tar -C "$TOP" --exclude=./build --exclude=./.git --exclude=./mmrace-out -cf - . |
	tar -C "$COPY" -xf -
mkdir -p "$COPY/build"
[ -n "$LONG" ] || cp -a "$BUILD" "$COPY/build/$variant"
cd "$COPY" || exit 99

# Step 2: an id, a name, a family.
echo 'MMR_OP(127, toy, toy)' >>ops/ops.def
# Steps 3 to 6: one call, so neither run nor emit.
cat >ops/op_toy.c <<'END'
/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A toy: says of a mapping that nothing is special about it. */
#include <asm/unistd.h>

#include "args.h"

const struct mmr_op mmr_op_toy = {
	.id = MMR_OP_toy,
	.name = "toy",
	.help = "a toy that says normal of a mapping",
	.race = "None at all.",
	.class = MMR_CLASS_CALL,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.name = "madvise",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_madvise,
		 .from = {MMR_FROM_PART,
			  {.from = MMR_FROM_CONST, .k = MADV_NORMAL}}},
};
END
# Step 7: the golden case.
sed -e 's/^title .*/title   toy, every argument/' -e '/madvise m0/d' \
	-e '/ k0 = mmap/a\    toy m0\n    toy m0 off=1p len=2p' \
	"$TOP/tests/golden/ops/madvise.case" >tests/golden/ops/toy.case

if [ -z "$LONG" ]; then
	find build -name '*.[oad]' -o -name '*.mk' -o -name '*.inc' |
		xargs touch -d 'now + 1 minute'
	find build -path '*ops/table.o' -o -path '*ops/child_table.o' \
		-o -path '*child/ops/child_*.o' -o -name libmmr.a |
		xargs rm -f
fi
t_ok 'it builds' "$MAKE" VARIANT="$variant" CFLAGS="${CFLAGS:--O2 -g}" build "build/$variant/tools/cases"
MMRACE=$COPY/build/$variant/mmrace
t_run "$MMRACE" ops toy
t_rc 'ops knows it' 0
t_match 'what it is' "$OUT" '^toy: a toy that says normal'
t_match 'its call' "$OUT" 'calls  *madvise'
docs/ops-page.sh "$MMRACE" >"$WORK/page"
t_match 'the manual page has it' "$WORK/page" '^[.]SH toy$'
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    toy m0 len=x\n' \
	>"$WORK/bad.case"
t_run "$MMRACE" show "$WORK/bad.case"
t_rc 'the parser knows its arguments' 2
t_match 'and says where' "$ERR" ':5:'
t_run "$MMRACE" replay --json --quiet --runs 1 --out "$WORK/o" \
	tests/golden/ops/toy.case
t_rc 'it runs' 0
t_match 'twice' "$OUT" '"op":"toy","count":1.*"op":"toy","count":1'
if command -v strace >/dev/null; then
	export MMRACE MMR_BUILD=build/$variant MMR_OPS=toy
	MMR_UPDATE_GOLDEN=1 bash tests/export/ops.t >"$WORK/gold" 2>&1
	t_ok 'its C, and the calls of both' bash tests/export/ops.t
else
	t_skip 'its C, and the calls of both' 'no strace'
fi
cd "$TOP" || exit 99
t_done
