# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A firewall in XDP (firewall.bpf.c) is on the NIC of h1 and on a port of the switch before barline
# comes. Barline refuses to replace it, calls it for what is not ordered when it is told to chain
# it, and puts it back in the end, also when its daemon was killed.
. "$MACHINES/traffic.sh"

machine sw
machine h1
machine h2
cable h1:0 sw:0
cable h2:0 sw:1
boot sw h1 h2
start_clock sw h1 h2
for name in sw h1; do
	on "$name" "ip link set eth0 up
		bpftool prog load /usr/local/lib/tests/firewall.bpf.o /sys/fs/bpf/firewall \
			type xdp pinmaps /sys/fs/bpf/fw &&
		ip link set dev eth0 xdpdrv pinned /sys/fs/bpf/firewall" ||
		fail "$name: the firewall cannot be attached"
done
bridge_ports sw eth0 eth1
fdb="--fdb $(mac h1 0)=eth0 --fdb $(mac h2 0)=eth1"

# attached NAME: the id of the XDP program of eth0.
attached() { on "$1" "ip -d link show eth0" | sed -n 's/.*prog\/xdp id \([0-9]*\).*/\1/p'; }

# seen NAME WHAT: what the firewall has counted; see firewall.bpf.c.
seen() {
	on "$1" "bpftool -j map lookup pinned /sys/fs/bpf/fw/seen key $2 0 0 0" |
		sed 's/.*"formatted".*"value"[^0-9]*\([0-9]*\).*/\1/'
}

# kept NAME COMMAND: barline does not start, says what can be done, and changes nothing.
kept() {
	local said
	said=$(refused "$1" "$2" 'eth0 carries another XDP.*firewall.*--chain attached')
	[ "$(attached "$1")" = "${firewall[$1]}" ] || fail "$1: the firewall is not there any more"
	ok "$1 refuses: $said"
}

# dropped FROM ADDRESS NAME: what FROM sends to port 9 of ADDRESS is dropped on NAME.
dropped() {
	local before end=$((SECONDS + 60))
	before=$(seen "$3" 1)
	on "$1" "flood $2 1 >/dev/null 2>&1 & echo \$! >/run/flood.pid"
	until [ "$(seen "$3" 1)" -gt "$before" ]; do
		[ "$SECONDS" -lt "$end" ] || fail "the firewall of $3 drops nothing"
		sleep 0.5
	done
	on "$1" "kill \$(cat /run/flood.pid)"
}

# works WHAT: the firewall of both machines gets what is not barline's, and only that; its verdict
# counts; and ordered traffic arrives.
works() {
	local name verdict
	declare -A before=() ordered=()
	for name in sw h1; do
		before[$name]=$(seen "$name" 0) ordered[$name]=$(seen "$name" 2)
	done
	peers_begin "$1" "h1 h2" -r -n 200 -g 10000 -t 5
	verdict=$(peers_end "$1" "h1 h2" 120 -c) ||
		{ explain h1 h2 sw; fail "$1: $verdict"; }
	on h1 "ping -c 3 -w 10 10.0.0.2 >/dev/null" || fail "$1: h1 does not reach h2"
	for name in sw h1; do
		[ "$(seen "$name" 0)" -ge $((${before[$name]} + 3)) ] ||
			fail "$1: the firewall of $name gets nothing"
		[ "$(seen "$name" 2)" = "${ordered[$name]}" ] ||
			fail "$1: the firewall of $name gets frames of barline"
	done
	ok "$1: $verdict"
	dropped h1 10.0.0.2 sw
	dropped h2 10.0.0.1 h1
	ok "$1: the firewalls drop what they shall"
}

declare -A firewall=([sw]=$(attached sw) [h1]=$(attached h1))
on h1 "ip addr add 10.0.0.1/24 dev eth0"
switch="switch up $TIMES --lag-max-us 4000000 $CLOCK --l2 $fdb"
kept sw "$switch eth0 eth1"
kept h1 "host up $TIMES $CLOCK eth0"
daemon sw "$switch --chain attached eth0 eth1"
start_host h1 10.0.0.1 --chain attached
start_host h2 10.0.0.2
wait_on h1 60 "ping -c 1 -w 2 10.0.0.2"
all_live 2
note "$(on h1 "barline show hooks")"
works attached
for name in sw h1; do restart "$name"; done
all_live 2
works restarted

declare -A role=([sw]=switch [h1]=host)
for name in h1 sw; do
	on "$name" "kill -9 \$(cat /run/barlined.pid)
		barline ${role[$name]} detach -f >/run/detach.log 2>&1" ||
		{ on "$name" cat /run/detach.log; fail "$name: detach fails"; }
	[ "$(attached "$name")" = "${firewall[$name]}" ] ||
		fail "$name: the firewall is not back: $(on "$name" ip -d link show eth0)"
	count=$(seen "$name" 0)
	on h1 "ping -c 3 -w 10 10.0.0.2 >/dev/null" || fail "h1 does not reach h2"
	[ "$(seen "$name" 0)" -ge $((count + 3)) ] || fail "$name: the firewall passes nothing"
	case $name in
	h1) dropped h2 10.0.0.1 h1 ;;
	sw) dropped h1 10.0.0.2 sw ;;
	esac
	ok "$name: killed and detached, the firewall is back and works"
done
