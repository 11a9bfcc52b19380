# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What tests ask of a soak's ledger.  Source it after lib.sh.

# counted DIR: how many cases it counts, of whatever verdict.
counted() {
	"$MMRACE" status "$1" --json 2>/dev/null | sed 's/.*"ledger"//' |
		grep -o '"verdicts": *{[^}]*}' | grep -o ': *[0-9][0-9]*' |
		tr -d ': ' | awk '{ n += $1 } END { print n + 0 }'
}

# numbers DIR: those of the cases that are done, one a line, sorted, doubles
# kept.  Of a soak that is over: what is not yet appended is not looked at.
numbers() {
	grep -o '"done":\[\[[0-9,[]*\(\],\[[0-9]*,[0-9]*\)*\]\]' \
		"$1/ledger.jsonl" | grep -o '\[[0-9]*,[0-9]*\]' |
		tr -d '[]' | tr , ' ' |
		while read -r a b; do seq "$a" "$b"; done | sort -n
}

# lost DIR: cases that its ledger names as ended by a kill; kept DIR: those
# whose text is there.
lost() { grep -c '"type":"lost"' "$1/ledger.jsonl"; }
kept() { find "$1" -name 'interrupted-*.case' | wc -l; }

# readable DIR: status reads it and no line of it is damaged.
readable() {
	local n
	n=$("$MMRACE" status "$1" --json 2>/dev/null |
		grep -o '"damaged_lines": *[0-9]*' | tr -dc 0-9)
	[ "$n" = 0 ]
}
