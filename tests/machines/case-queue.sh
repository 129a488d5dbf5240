# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The queue of a host's NIC is full of other traffic. Behind pfifo, which docs/deploy.md asks for,
# the order holds. Behind fq_codel, which Debian's kernels use by themselves, beacons overtake the
# messages that wait: the switch counts promise_broken.
. "$MACHINES/traffic.sh"

CABLE_OPTIONS="-r 600"
one_switch h1 h2

# More frames are on their way to h2 than the ring of the NIC holds.
on h1 "flood 10.0.0.2 5 >/run/flood.log 2>&1 & echo \$! >/run/flood.pid"

# under_load NAME: ordered traffic while the queue is full. Sets broken and verdict.
under_load() {
	local before
	before=$(drops sw promise_broken)
	peers_begin "$1" "h1 h2" -n 300 -g 10000 -t 15
	wait_on h1 60 "tc -s qdisc show dev eth0 root | grep -q 'backlog [1-9]'"
	verdict=$(peers_end "$1" "h1 h2" 240) || verdict+=" (wrong)"
	broken=$(($(drops sw promise_broken) - before))
}

on h1 "tc qdisc replace dev eth0 root pfifo limit 4000"
under_load fifo
note "$(on h1 "tc -s qdisc show dev eth0 root")"
note "pfifo: $verdict; promise_broken $broken"
[[ $broken = 0 && $verdict == *" 0 late, "*"one order" ]] ||
	{ explain sw h1 h2; fail "pfifo: $verdict; promise_broken $broken"; }
ok "pfifo: $verdict"

on h1 "tc qdisc del dev eth0 root"
on h1 "tc qdisc show dev eth0 root | grep fq_codel" || fail "the default is not fq_codel"
under_load fair
note "$(on h1 "tc -s qdisc show dev eth0 root")"
[ "$broken" -gt 0 ] || { explain sw h1 h2; fail "fq_codel: nothing is broken? $verdict"; }
ok "fq_codel breaks the FIFO: promise_broken $broken; $verdict"
