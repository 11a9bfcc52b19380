#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Needs that this machine does not meet: exit 4 and a sentence, nothing run.

. "$(dirname "$0")/../lib.sh"
t_need_tool

C=$WORK/need.case

# unmet NAME NEED REGEX
unmet() {
	printf 'mmrace-case 1\nneeds   %s\n\nprocess main\n  thread A\n    delay 1us\n' \
		"$2" >"$C"
	t_run "$MMRACE" replay --runs 1 --quiet "$C"
	t_rc "$1: exit 4" 4
	cat "$OUT" "$ERR" >"$WORK/both"
	t_match "$1: a sentence" "$WORK/both" "$3"
	t_run "$MMRACE" replay --runs 1 --quiet --json "$C"
	t_rc "$1, --json: exit 4" 4
	t_json "$1: JSON" "$OUT"
}

unmet 'CPUs' 'cpus>=4096' '[Nn]eeds 4096 CPUs'
unmet 'nodes' 'nodes>=512' '[Nn]eeds 512 .*node'
unmet 'memory' 'memory>=9000G' '9000G|memory'
case $(uname -m) in
x86_64) unmet 'architecture' 'arch=aarch64' 'aarch64' ;;
*) unmet 'architecture' 'arch=x86_64' 'x86_64' ;;
esac

# Met ones are no reason to stop.
printf 'mmrace-case 1\nneeds   cpus>=1 memory>=1M\n\nprocess main\n  thread A\n    delay 1us\n' >"$C"
t_run "$MMRACE" replay --runs 1 --quiet "$C"
t_rc 'needs that are met: exit 0' 0

# A setting without leave to change it.
printf 'mmrace-case 1\nset     nr_hugepages=4\n\nprocess main\n  thread A\n    delay 1us\n' >"$C"
before=$(cat /proc/sys/vm/nr_hugepages 2>/dev/null)
t_run "$MMRACE" replay --runs 1 --quiet "$C"
t_rc 'set without --allow-settings: exit 4' 4
cat "$OUT" "$ERR" >"$WORK/both"
t_match 'set without --allow-settings: says which option' "$WORK/both" \
	'allow-settings'
[ "$before" = "$(cat /proc/sys/vm/nr_hugepages 2>/dev/null)" ]
t_result $? 'set without --allow-settings: nothing changed'
t_done
