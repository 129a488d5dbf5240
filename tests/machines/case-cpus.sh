# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A host with two CPUs and a NIC with two queue pairs, of which XPS gives each CPU its own. One
# process on each CPU sends ordered messages, and other traffic keeps the queue of CPU 0 full. The
# order holds, because barlined has all ordered frames leave by one queue. If an operator sets
# disciplines instead that barlined does not know to be FIFOs, and accepts reordering, what leaves
# by the queue of CPU 1 overtakes what waits in that of CPU 0: the switch counts promise_broken.
# With FIFOs in their place, barlined picks one queue again.
. "$MACHINES/traffic.sh"

CABLE_OPTIONS="-t 300" # frames per second and queue
options_of[h1]="-c 2 -q 2"
one_switch h1 h2
xps=$(on h1 "cat /sys/class/net/eth0/queues/tx-*/xps_cpus")
[ "$(echo $xps)" = "1 2" ] || fail "h1: XPS does not give each CPU a queue: $xps"
peers="h1@0 h1@1 h2"
on h1 "taskset 1 flood 10.0.0.2 8 >/run/flood.log 2>&1 & echo \$! >/run/flood.pid"

on h1 "tc filter show dev eth0 egress | grep -q skbedit" ||
	fail "barlined has not picked a queue for ordered frames: $(on h1 barline show nics)"
note "$(on h1 "barline show nics; ethtool -x eth0 | head -n 4")"
under_load picked "$peers"
note "$(on h1 "tc -s qdisc show dev eth0")"
[[ $broken = 0 && $verdict == *" 0 late, "*"one order" ]] ||
	{ explain sw h1 h2; fail "as barlined made it: $verdict; promise_broken $broken"; }
ok "as barlined made it: $verdict"

# A discipline that somebody has set stays, and then barlined picks no queue either.
on h1 "kill \$(cat /run/flood.pid); pid=\$(cat /run/barlined.pid); kill \$pid
	while kill -0 \$pid 2>/dev/null; do sleep 0.1; done
	barline host detach && tc qdisc replace dev eth0 root handle 1: mq" ||
	fail "h1 cannot be detached"
start_host h1 10.0.0.1 --accept reordering
all_live 2
# a prio of which one band is used
on h1 "for i in 1 2; do tc qdisc replace dev eth0 parent 1:\$i handle 1\$i: prio bands 2 \
		priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 || exit; done
	! tc filter show dev eth0 egress | grep skbedit" || fail "h1 picks a queue"
on h1 "taskset 1 flood 10.0.0.2 8 >/run/flood.log 2>&1 & echo \$! >/run/flood.pid"
wait_on h1 60 "barline show nics | grep -q BROKEN"
under_load spread "$peers"
note "$(on h1 "tc -s qdisc show dev eth0; barline show nics")"
[ "$broken" -gt 0 ] || { explain sw h1 h2; fail "two queues: nothing is broken? $verdict"; }
ok "two queues break the FIFO: promise_broken $broken; $verdict"

on h1 "for i in 1 2; do tc qdisc replace dev eth0 parent 1:\$i pfifo limit 2000 || exit; done"
wait_on h1 60 "barline show nics | grep -q ' made ' && ! barline show nics | grep -q BROKEN"
on h1 "tc filter show dev eth0 egress | grep -q skbedit" || fail "h1 does not pick a queue"
under_load fifos "$peers"
[[ $broken = 0 && $verdict == *" 0 late, "*"one order" ]] ||
	{ explain sw h1 h2; fail "with FIFOs of the operator: $verdict; promise_broken $broken"; }
ok "with FIFOs of the operator: $verdict"
