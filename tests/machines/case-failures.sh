# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What goes wrong in a rack: a clock that is pulled away, a cable without a carrier, and a machine
# that loses its power. Each is named, the others go on in one order, and what comes back takes part
# again.
. "$MACHINES/traffic.sh"

one_switch h1 h2 h3
ok "three hosts and a switch are up on Linux $(on sw uname -r)"

# clock_of NIC: what the switch thinks of the clock of the host behind this port.
clock_of() {
	on sw "barline show links -j" | tr '{' '\n' |
		sed -n "s/.*\"name\": *\"$1\".*\"clock\": *\"\([a-z]*\)\".*/\1/p" | head -n 1
}

# until_clock NIC WORD...: waits until it is one of these.
until_clock() {
	local nic=$1 end=$((SECONDS + 120)) now
	shift
	while now=$(clock_of "$nic"); [[ " $* " != *" $now "* ]]; do
		[ "$SECONDS" -lt "$end" ] || {
			explain sw h2
			on sw "barline show links"
			fail "the switch says of the clock behind $nic: $now, not $*"
		}
		sleep 0.5
	done
}

# judged NAME HOSTS OPTION...: a run of order_peer whose judgement must be good.
judged() {
	local run=$1 hosts=$2 verdict
	shift 2
	peers_begin "$run" "$hosts" "$@"
	verdict=$(peers_end "$run" "$hosts" 240) ||
		{ explain sw h1 h2; fail "$run: $verdict"; }
	ok "$run: $verdict"
}

for nic in eth0 eth1 eth2; do until_clock "$nic" good; done
judged before "h1 h2 h3" -r -n 200 -g 10000 -t 5

# What disciplines the clock of h2 begins to lie: it steps the clock by 5 ms, and says again and
# again that it is right to within 1 ms. h1 and h3 send best-effort messages meanwhile.
peers_begin pulled "h1 h3" -n 600 -g 20000 -t 10
on h2 "kill \$(cat /run/keep.pid)
	while sleep 1; do true_clock set -o 5000000; done >/run/lie.log 2>&1 &
	echo \$! >/run/lie.pid"
wait_on h2 120 "grep -q 'own bound is widened by' /run/barlined.log"
[ "$(clock_of eth0)$(clock_of eth2)" = goodgood ] ||
	{ on sw "barline show links"; fail "the clocks of h1 and h3 are not what is wrong"; }
ok "h2 is told: $(on h2 "grep 'own bound is widened by' /run/barlined.log" | tail -n 1)"

# Then it steps the clock further than anybody allows: h2 itself knows, and is void.
on h2 "kill \$(cat /run/lie.pid); true_clock set -o -40000000"
wait_on h2 60 "barline show clock | grep -Eq 'steering|too_wide'"
ok "h2 is void: $(on h2 "barline show clock" | tail -n 1)"
on h2 "true_clock keep >/run/keep.log 2>&1 & echo \$! >/run/keep.pid"
until_clock eth1 good
verdict=$(peers_end pulled "h1 h3" 240) || { explain sw h1 h3; fail "pulled: $verdict"; }
ok "while it was off and came back: $verdict"
all_live 3
judged agree "h1 h2 h3" -r -n 200 -g 10000 -t 5

# The cable of h3 loses its carrier, and gets it back. Reliable messages wait meanwhile: without a
# controller, nobody says what became of those of h3.
monitor h3 set_link n0 off
wait_on sw 60 "[ \$(barline show barriers | grep -c ' in .* live ') = 2 ]"
judged two "h1 h2" -n 200 -g 10000 -t 5
monitor h3 set_link n0 on
all_live 3
meet h1 h2 h3
judged again "h1 h2 h3" -r -n 200 -g 10000 -t 5

# h3 loses its power in the middle, and comes back as a machine that knows nothing.
peers_begin power "h1 h2" -n 600 -g 10000 -t 5
power_off h3
wait_on sw 60 "[ \$(barline show barriers | grep -c ' in .* live ') = 2 ]"
verdict=$(peers_end power "h1 h2" 240) || { explain sw h1 h2; fail "power: $verdict"; }
ok "while h3 lost its power: $verdict"
boot h3
start_clock h3
start_host h3 10.0.0.3
all_live 3
meet h1 h2 h3
judged back "h1 h2 h3" -r -n 200 -g 10000 -t 5
