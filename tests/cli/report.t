#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mmrace report: the page of a soak and of a finding.  Red when something of it
# comes from outside, when what a stranger wrote into a folder becomes markup,
# when a file outside of the folder is shown, and, in a browser, when a script
# or a style is refused, a picture is missing, or text cannot be read at 1280
# or 400 pixels, light or dark.  `make check-report` installs the browser.

. "$(dirname "$0")/../lib.sh"
t_need_tool
D=$WORK/out

"$MMRACE" soak --cases 12 --seed 5 --quiet --out "$D" >/dev/null
for canary in storm futex ptrace-storm; do
	"$MMRACE" replay --quiet --runs 1 --out "$D" \
		"tests/canary/$canary.case" >/dev/null
done
"$MMRACE" replay --quiet --runs 2 --out "$D" tests/canary/storm.case >/dev/null
printf '{"type":"cut short by a ki' >>"$D/ledger.jsonl"
touch "$D/spool-1-0.json"
mkdir "$D/findings/.partial-hang-0"

t_run "$MMRACE" report "$D" -o "$WORK/soak.html"
t_rc 'report of a soak' 0
[ ! -s "$OUT" ]
t_result $? 'report -o: nothing on standard output'
P=$WORK/soak.html
for what in '<h1>2 findings</h1>' 'id="f1"' 'id="f2"' 'The last moments' \
	'Stacks</h3>' 'How to see it again' 'Latency of each operation' \
	'History</h3>' 'What was run</h2>' 'futex_wait lost' 'How often' \
	'spool-1-0.json' 'hang-0 was cut short' 'it moved again'; do
	grep -qF "$what" "$P" || echo "$what"
done >"$WORK/lacks"
# One storm or the other came first: the second is a sample of the finding.
sed -i '/it moved again/d' "$WORK/lacks"
[ ! -s "$WORK/lacks" ]
t_result $? 'the page has all its parts'
t_note 'it lacks:' "$WORK/lacks"
[ "$(grep -o '<svg' "$P" | wc -l)" -ge 10 ]
t_result $? 'the page has pictures'
for f in "$D"/findings/*/; do
	grep -qF "$(basename "$f")" "$P" || echo "$f"
done >"$WORK/lacks"
[ ! -s "$WORK/lacks" ]
t_result $? 'every finding is there'
! grep -Eqi '<script|<link|<img|<iframe|<object|@import|url\(|https?://|src=' \
	"$P"
t_result $? 'nothing comes from outside'

set -- "$D"/findings/fault-storm-*/
t_run "$MMRACE" report "$1"
t_rc 'report of a finding, on standard output' 0
t_match 'its page' "$OUT" '<h1>A finding</h1>'
t_run "$MMRACE" report "$D" --json
t_rc 'report --json' 0
t_json 'report --json: JSON' "$OUT"
[ "$(t_json_get "$OUT" findings.1.verdict.version)" = 1 ] &&
	[ -n "$(t_json_get "$OUT" soak.cases)" ]
t_result $? 'report --json: soak and findings'
t_run "$MMRACE" report "$WORK/nowhere"
t_rc 'no folder: exit 2' 2
mkdir "$WORK/empty"
t_run "$MMRACE" report "$WORK/empty"
t_rc 'a folder of something else: exit 2' 2
t_match 'and it says what it wants' "$ERR" 'neither a soak.json nor findings'
t_run "$MMRACE" report
t_rc 'no argument: exit 2' 2
t_run "$MMRACE" report "$D" -o /proc/nowhere/x
t_rc 'cannot be written: exit 3' 3

# A stranger's folder.
X=$WORK/x
evil='</pre></title></style><script>alert(1)</script><img src=x onerror=alert(2)>"'\''&amp;'
json=$(printf '%s' "$evil" | sed 's/["\\]/\\&/g')
F="$X/findings/a\"><b onclick=x>"
mkdir -p "$F" "$X/findings/hang-1" "$X/findings/hang-2" "$X/findings/hang-3"
echo secret >"$WORK/secret"
cat >"$F/verdict.json" <<EOT
{"verdict":"$json","text":"$json","title":"$json","signature":"$json",
"class":"$json","seed":"$json","profile":"$json","kernel":"$json",
"arch":"$json","guest":"$json","tool":"$json","ended_by":"$json","count":1e300,
"first_seen":"$json","rate":{"hits":5,"runs":1e-300,"lo":-9,"hi":1e308}}
EOT
cat >"$F/timeline.json" <<EOT
{"traceEvents":[{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"$json"}},
{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"$json"}},
{"name":"$json","cat":"op","ph":"X","pid":1,"tid":1,"ts":1e308,"dur":1e308,"args":{"statement":"$json","culprit":true,"unfinished":true}},
{"name":"$json","cat":"evidence","ph":"X","ts":-1,"dur":1e300},3,null,
{"name":"x","ph":"C","ts":5,"args":{"faults":-1e300}}]}
EOT
cat >"$F/evidence.json" <<EOT
{"steps":[{"name":"$json","step":1,"note":"$json"},7],"missing":["$json",1],
"kernel":{"reports":[{"kind":"$json","comm":"$json","text":"$json"}]}}
EOT
for f in stacks.txt case.case report.md kernel.log; do
	printf '%s\377\000\001\342\200\256' "$evil" >"$F/$f"
done
printf '[%.0s' $(seq 5000) >"$X/findings/hang-1/verdict.json"
ln -s "$WORK/secret" "$X/findings/hang-2/stacks.txt"
ln -s "$WORK" "$X/findings/hang-9"
mkfifo "$X/findings/hang-2/report.md"
echo '{"verdict":"hang","text":"t"}' >"$X/findings/hang-2/verdict.json"
ln -s "$WORK/secret" "$X/findings/hang-3/verdict.json"
cat >"$X/soak.json" <<EOT
{"state":"$json","profile":"$json","shard":"$json","seconds":-1,"missing":["$json",{}],
"ops":[{"op":"$json","count":-5,"hist":[[1e308,1e308],["$json",1],3]}],
"skip_reasons":[{"text":"$json"}],"known":[{"pattern":"$json","reason":"$json"}]}
EOT
printf '{"type":"batch","seconds":1e308,"counts":{"operations":1e308}}\n{"type":"%s"}\n' \
	"$json" >"$X/ledger.jsonl"
t_run timeout 20 "$MMRACE" report "$X" -o "$WORK/x.html"
t_rc "a stranger's folder" 0
# Without the values of attributes, which end at their quotes.
sed 's/="[^"]*"//g' "$WORK/x.html" >"$WORK/tags"
! grep -Eqi '<(script|img|b |/pre></title)|<[a-z]+[^>]*[[:space:]]on[a-z]+=' \
	"$WORK/tags"
t_result $? 'its words are no markup'
[ "$(grep -o 'alert(1)' "$WORK/x.html" | wc -l)" -ge 20 ]
t_result $? 'but they are there'
! grep -q secret "$WORK/x.html"
t_result $? 'no link is followed'
! grep -Eq '="-?(nan|inf)' "$WORK/x.html"
t_result $? 'every number in a picture is one'
[ "$(LC_ALL=C.UTF-8 wc -m <"$WORK/x.html")" -gt 0 ] &&
	iconv -f UTF-8 -t UTF-8 "$WORK/x.html" >/dev/null
t_result $? 'it is UTF-8'
! grep -q "$(printf '\342\200\256')" "$WORK/x.html"
t_result $? 'nothing turns the direction of writing'

# -- in a browser ------------------------------------------------------------
BROWSER=$(command -v chromium || command -v chromium-browser ||
	command -v google-chrome)
if [ -z "$BROWSER" ]; then
	t_skip 'in a browser' \
		'no chromium: make check-report installs it as root on Debian'
	t_done
fi
browse() { # FILE OPTIONS...: the page's DOM, and what it complains of
	local page=$1
	shift
	timeout 120 "$BROWSER" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$WORK/profile" --enable-logging=stderr \
		--virtual-time-budget=5000 "$@" --dump-dom "file://$page" \
		>"$WORK/dom" 2>"$WORK/browser"
}

# measure PAGE WIDTH SCHEME: through a frame, as no window is 400 wide.
measure() {
	local name="$1, $2 pixels, $3" got pictures
	grep -v 'Content-Security-Policy' "$WORK/$1.html" |
		cat - tests/report/measure.html >"$WORK/measured.html"
	cat >"$WORK/frame.html" <<-EOT
		<!DOCTYPE html><meta name="color-scheme" content="light dark">
		<style>iframe{width:$2px;height:900px;border:0}</style>
		<script>addEventListener('message', function (e) {
		document.title = e.data; });</script>
		<iframe src="measured.html"></iframe>
	EOT
	browse "$WORK/frame.html" --blink-settings=preferredColorScheme="$4"
	got=$(grep -o '<title>measured [^<]*' "$WORK/dom" | sed 's/^[^{]*//')
	printf '%s' "$got" | sed 's/&quot;/"/g' >"$WORK/got"
	t_note "$name: $(cat "$WORK/got")"
	[ "$(t_json_get "$WORK/got" width)" = "$2" ] &&
		[ "$(t_json_get "$WORK/got" scroll)" -le "$2" ] &&
		[ "$(t_json_get "$WORK/got" wide)" = 0 ]
	t_result $? "$name: nothing is wider than the page"
	[ "$(t_json_get "$WORK/got" texts)" -gt 50 ] &&
		[ "$(t_json_get "$WORK/got" small)" = 0 ] &&
		[ "$(t_json_get "$WORK/got" faint)" = 0 ]
	t_result $? "$name: text can be read"
	pictures=$(grep -o '<svg' "$WORK/$1.html" | wc -l)
	[ "$(t_json_get "$WORK/got" pictures)" = "$pictures" ] &&
		[ "$(t_json_get "$WORK/got" empty)" = 0 ]
	t_result $? "$name: all pictures are there"
}

for page in soak ${LONG:+x}; do
	browse "$WORK/$page.html" --window-size=1280,900
	t_match "$page: the browser has read it" "$WORK/dom" '</main>'
	! grep -E 'CONSOLE' "$WORK/browser" >"$WORK/says"
	t_result $? "$page: no error, nothing refused"
	t_note 'the browser says:' "$WORK/says"
done
measure soak 1280 light 1
measure soak 400 dark 0
if [ -n "$LONG" ]; then # make check-report
	measure soak 400 light 1
	measure soak 1280 dark 0
	measure x 400 light 1
fi
t_done
