# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two hosts and a switch: ordered and reliable messages arrive in one order, and all of them. The
# judge is shown two logs that are wrong, and has to say so.
. "$MACHINES/traffic.sh"

one_switch h1 h2
ok "two hosts and a switch are up on Linux $(on sw uname -r)"
peers_begin best "h1 h2" -n 300 -g 5000 -t 5
verdict=$(peers_end best "h1 h2" 120 -c) || { explain h1 h2 sw; fail "best effort: $verdict"; }
ok "best effort: $verdict"
peers_begin reliable "h1 h2" -r -n 300 -g 5000 -t 5
verdict=$(peers_end reliable "h1 h2" 120 -c) || { explain h1 h2 sw; fail "reliable: $verdict"; }
ok "reliable: $verdict"

# judged NAME AWK: prints the judgement of the run "reliable" if AWK had written h1's log. AWK reads
# h2's log before that.
judged() {
	awk "$2" "$RACK/reliable-h2.log" "$RACK/reliable-h1.log" >"$RACK/$1-h1.log"
	"$BUILD/tests/machines/order_judge" -c "$RACK/$1-h1.log" "$RACK/reliable-h2.log" || true
}
# two deliveries of different senders, one after the other, which h2 has, too
verdict=$(judged swapped 'FNR == NR { if ($1 == "g") both[$2, $3] = 1; next }
	held != "" { if (/^g/ && $2 != from && ($2, $3) in both) { print; done = 1 }
		print held; held = ""
		if (done) next }
	/^g/ && !done && ($2, $3) in both { held = $0; from = $2; next }
	{ print }')
[[ $verdict != *"one order" ]] || fail "a swapped delivery is not found: $verdict"
ok "the judge finds a swapped delivery: ${verdict##*lost: }"
verdict=$(judged missing 'FNR == NR { next } /^g/ && ++n == 20 { next } { print }')
[[ $verdict != *"one order" ]] || fail "a missing delivery is not found: $verdict"
ok "the judge finds a missing delivery: ${verdict##*lost: }"
