#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make install: what is installed runs without the tree, mmrace-child found in
# libexec; make uninstall leaves nothing.

. "$(dirname "$0")/../lib.sh"
t_need_tool
MAKE=${MMR_MAKE:-make}
variant=$(basename "$BUILD")

t_ok 'install' "$MAKE" VARIANT="$variant" DESTDIR="$WORK/root" PREFIX=/usr \
	install
for f in bin/mmrace libexec/mmrace/mmrace-child share/man/man1/mmrace.1 \
	share/man/man5/mmrace-case.5 share/man/man7/mmrace-ops.7; do
	[ -s "$WORK/root/usr/$f" ]
	t_result $? "there is $f"
done
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/x.case"
cd "$WORK" || exit 99
t_run "$WORK/root/usr/bin/mmrace" replay --quiet --runs 1 "$WORK/x.case"
t_rc 'what is installed runs a case' 0
cd "$TOP" || exit 99
t_ok 'uninstall' "$MAKE" VARIANT="$variant" DESTDIR="$WORK/root" PREFIX=/usr \
	uninstall
[ -z "$(find "$WORK/root" -type f)" ]
t_result $? 'uninstall leaves no file'
t_done
