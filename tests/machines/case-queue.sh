# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The queue of a host's NIC is full of other traffic. The order holds, because barlined has made the
# NIC one FIFO for ordered frames (docs/nics.md). If an operator then sets fq_codel, which Debian's
# kernels use by themselves, beacons overtake the messages that wait: the switch counts
# promise_broken.
. "$MACHINES/traffic.sh"

CABLE_OPTIONS="-r 600"
one_switch h1 h2

# More frames are on their way to h2 than the ring of the NIC holds.
on h1 "flood 10.0.0.2 5 >/run/flood.log 2>&1 & echo \$! >/run/flood.pid"

on h1 "tc qdisc show dev eth0 | grep pfifo" || fail "barlined has not made eth0 of h1 a FIFO"
under_load fifo "h1 h2"
note "$(on h1 "tc -s qdisc show dev eth0 root")"
[[ $broken = 0 && $verdict == *" 0 late, "*"one order" ]] ||
	{ explain sw h1 h2; fail "as barlined made it: $verdict; promise_broken $broken"; }
ok "as barlined made it: $verdict"

on h1 "tc qdisc replace dev eth0 root fq_codel"
under_load fair "h1 h2"
note "$(on h1 "tc -s qdisc show dev eth0 root")"
[ "$broken" -gt 0 ] || { explain sw h1 h2; fail "fq_codel: nothing is broken? $verdict"; }
ok "fq_codel breaks the FIFO: promise_broken $broken; $verdict"
