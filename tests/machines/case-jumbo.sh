# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# An MTU of 9000 on hosts and on the switch: messages longer than one page pass in one frame and in
# one order. Before Linux 6.3, native XDP does not forward such frames; there the daemon has to
# refuse the MTU with a sentence that says so.
. "$MACHINES/traffic.sh"

machine sw
machine h1
machine h2
cable h1:0 sw:0
cable h2:0 sw:1
boot sw h1 h2
start_clock sw h1 h2
for name in sw h1 h2; do
	on "$name" "for i in /sys/class/net/eth*; do ip link set \${i##*/} mtu 9000; done"
done
bridge_ports sw eth0 eth1
on sw "ip link set br0 mtu 9000"
fdb="--fdb $(mac h1 0)=eth0 --fdb $(mac h2 0)=eth1"
release=$(on sw uname -r)
if [[ $release = 6.1.* ]]; then
	said=$(refused sw "switch up $TIMES --lag-max-us 4000000 $CLOCK --l2 $fdb eth0 eth1" \
		'[Mm][Tt][Uu]')
	ok "Linux $release refuses it: $said"
	exit 0
fi
start_switch sw --l2 "$fdb" eth0 eth1
start_host h1 10.0.0.1
start_host h2 10.0.0.2
wait_on h1 60 "ping -c 1 -w 2 10.0.0.2"
all_live 2
on h1 "ping -c 3 -s 8900 10.0.0.2" ||
	{ explain sw h1 h2; fail "other traffic in frames of 9000 bytes does not pass"; }
for run in best reliable; do
	peers_begin "$run" "h1 h2" "$([ "$run" = best ] || echo -r)" -n 300 -g 10000 -l 8000 -t 5
	verdict=$(peers_end "$run" "h1 h2" 240 -c) ||
		{ explain sw h1 h2; fail "$run: $verdict"; }
	ok "$run, messages of up to 8000 bytes, Linux $release: $verdict"
done
