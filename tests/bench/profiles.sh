#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# profiles.sh [SECONDS]: what each profile does on this machine, as the table of
# docs/profiles.md.  Cases that change settings run only as root.
#
#   valid   of the operations that were not meant to fail: how many did not
#   pairs   of operations that two threads of a case ran, in that time

cd "$(dirname "$0")/../.." || exit 1
T=${1:-60}
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
BUILD=${MMR_BUILD:-build/release}
allow=
[ "$(id -u)" = 0 ] && allow=--allow-settings
get() { "$BUILD/tools/json" "$WORK/$p/soak.json" "$1"; }

echo '| profile | cases | skipped | operations/s | calls/s | valid | pairs |'
echo '|---|---|---|---|---|---|---|'
for p in $("$BUILD/mmrace" gen --profile '?' 2>&1 |
	sed -n 's/^  *\([a-z][a-z]*\).*/\1/p'); do
	# shellcheck disable=SC2086 # nothing, or an option
	"$BUILD/mmrace" soak --quiet --time "$T" --profile "$p" $allow \
		--out "$WORK/$p" >/dev/null 2>&1
	printf '| %s | %s | %s | %.0f | %.0f | %.1f %% | %s |\n' "$p" \
		"$(get cases)" "$(get skipped)" \
		"$(get operations_per_second)" \
		"$(awk -v c="$(get calls)" -v t="$T" 'BEGIN { print c / t }')" \
		"$(awk -v v="$(get valid_share)" 'BEGIN { print v * 100 }')" \
		"$(get op_pairs)"
done
