# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two switches in a row: h1 and h2 are at sw1, h3 is at sw2, which is above sw1. Ordered traffic of
# all three is judged while the daemon of each machine is restarted, one machine at a time, and
# while the link between the switches loses its carrier and gets it back.
. "$MACHINES/traffic.sh"

for name in sw1 sw2 h1 h2 h3; do machine "$name" -m 512; done
cable h1:0 sw1:0
cable h2:0 sw1:1
cable h3:0 sw2:0
cable sw1:2 sw2:1
boot sw1 sw2 h1 h2 h3
start_clock sw1 sw2 h1 h2 h3
bridge_ports sw1 eth0 eth1 eth2
bridge_ports sw2 eth0 eth1
h1=$(mac h1 0) h2=$(mac h2 0) h3=$(mac h3 0)
start_switch sw1 --l2 --fdb "$h1=eth0" --fdb "$h2=eth1" --fdb "$h3=eth2" \
	--up-port eth2 eth0 eth1
start_switch sw2 --l2 --fdb "$h1=eth1" --fdb "$h2=eth1" --fdb "$h3=eth0" --down-port eth1 eth0
for name in h1 h2 h3; do start_host "$name" "10.0.0.${name#h}"; done
meet h1 h2 h3

# both_live: the inputs of both switches.
both_live() { all_live 3 sw1; all_live 2 sw2; }

# judged NAME [-c]: ends the run, whose judgement must be good.
judged() {
	local verdict
	verdict=$(peers_end "$1" "h1 h2 h3" 300 ${2-}) ||
		{ explain sw1 sw2 h1 h2 h3; fail "$1: $verdict"; }
	ok "$1: $verdict"
}

both_live
ok "three hosts and two switches are up on Linux $(on sw1 uname -r)"
for run in best reliable; do
	peers_begin "$run" "h1 h2 h3" "$([ "$run" = best ] || echo -r)" -n 300 -g 10000 -t 5
	judged "$run" -c
done

# Each daemon is restarted while the same peers go on sending.
for run in best reliable; do
	peers_begin "rolling-$run" "h1 h2 h3" "$([ "$run" = best ] || echo -r)" \
		-n 0 -g 20000 -t 5
	for name in sw1 sw2 h1 h2 h3; do
		restart "$name"
		both_live
	done
	peers_stop "rolling-$run" "h1 h2 h3"
	judged "rolling-$run" -c
done

# The link between the switches loses its carrier, three times.
peers_begin flapping "h1 h2 h3" -n 0 -g 20000 -t 10
for round in 1 2 3; do
	monitor sw1 set_link n2 off
	wait_on sw1 60 "[ \$(barline show barriers | grep -c ' in .* live ') = 2 ]"
	monitor sw1 set_link n2 on
	both_live
done
peers_stop flapping "h1 h2 h3"
judged flapping
for name in sw1 sw2; do note "$name: promise_broken $(drops "$name" promise_broken)"; done
meet h1 h2 h3
peers_begin after "h1 h2 h3" -r -n 300 -g 10000 -t 5
judged after -c
