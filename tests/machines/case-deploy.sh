# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The commands of docs/deploy.md that name machines. A block of code that begins with
# "```sh h1 l2" is run on h1, in the order of the page; the word l2 or l3 names the rack for which
# it is meant, and a block without it is for both. What the case changes is the times in the files
# that these commands write: an emulated machine is late by 20 ms.
. "$MACHINES/traffic.sh"

# blocks RACK PART: writes the blocks of a part of the page to files $RACK/block-NN-MACHINE. A part
# begins with a heading "## ...".
blocks() {
	rm -f "$RACK"/block-*
	awk -v rack="$1" -v part="## $2" -v out="$RACK/block-" '
		/^## / { inside = $0 == part }
		!inside { next }
		/^```sh [a-z]/ {
			if (NF > 2 && $3 != rack)
				next
			n++
			for (i = split($2, who, ","); i > 0; i--)
				files[i] = sprintf("%s%02d-%s", out, n, who[i])
			writing = 1
			next
		}
		/^```/ { if (writing) { for (i in files) close(files[i]); delete files }
			writing = 0 }
		writing { for (i in files) print >files[i] }
	' "$MACHINES/../../docs/deploy.md"
	[ -n "$(ls "$RACK"/block-* 2>/dev/null)" ] || fail "docs/deploy.md has no block for $*"
}

# follow RACK PART: runs them.
follow() {
	local file name
	blocks "$@"
	for file in "$RACK"/block-*; do
		name=${file##*-}
		note "$name: $(grep -c '' "$file") lines of $(basename "$file")"
		on "$name" "set -e
$(cat "$file")" || { explain "$name"; fail "docs/deploy.md, $2, on $name: $(cat "$file")"; }
		on "$name" "cd /etc/barline 2>/dev/null || exit 0
			grep -q 'beacon_us: 20000' rack.yaml && exit 0
			cp -p rack.yaml /run/rack.yaml
			sed -i -e 's/^beacon_us: .*/beacon_us: 20000\\ndead_after_us: 2000000/' \
				-e 's/^clock_bound_us: .*/clock_bound_us: 1000/' rack.yaml
			! grep -q '^role: switch' rack.yaml ||
				echo 'lag_max_us: 4000000' >>rack.yaml"
	done
}

# up: waits until the daemons that were just started serve.
up() {
	local name
	for name in sw h1 h2; do
		(wait_on "$name" 60 "grep -q 'pins in' /run/barlined.log") ||
			{ explain "$name"; fail "barlined on $name does not start"; }
	done
}

# traffic RACK H2: judged traffic between h1 and h2, to whom nobody has talked before.
traffic() {
	local verdict
	PEER_ADDRESS[h2]=$2
	up
	all_live 2
	peers_begin "$1" "h1 h2" -r -n 100 -g 10000 -t 5
	verdict=$(peers_end "$1" "h1 h2" 120 -c) ||
		{ explain h1 h2 sw; fail "$1: $verdict"; }
	ok "$1: $verdict"
	on h1 "ping -c 2 -w 10 $2 >/dev/null" || fail "$1: h1 does not reach $2"
}

# before NAME, after NAME RACK: notes the network of a machine before the page, and compares. The
# links are up once before that, because they keep the queueing discipline that they get then.
settings() {
	on "$1" "ip -o link | sed 's/ state [A-Z]*//; s/,LOWER_UP//; s/NO-CARRIER,//'
		ip -o address show scope global; ip route; ip neigh show nud permanent
		cat /proc/sys/net/ipv4/conf/eth*/forwarding; ls /etc/barline 2>&1; true"
}
before() {
	on "$1" "for i in \$(ip -o link | sed -n 's/^[0-9]*: \\(eth[0-9]*\\).*/\\1/p'); do
		ip link set \$i up; ip link set \$i down; done"
	settings "$1" >"$RACK/before-$1"
}
after() {
	settings "$1" >"$RACK/after-$1"
	diff "$RACK/before-$1" "$RACK/after-$1" || fail "$2: $1 is not as before setup"
}

# follow_setup RACK: the commands of setup once more, which find nothing to do.
follow_setup() {
	local file part
	for part in "The switch" "The hosts"; do
		blocks "$1" "$part"
		for file in "$RACK"/block-*; do
			on "${file##*-}" "$(cat "$file")" >"$RACK/again"
			grep -q '^nothing is left to do' "$RACK/again" ||
				{ cat "$RACK/again"; fail "$1: ${file##*-} lacks something"; }
		done
	done
	ok "$1: a second setup finds nothing to do"
}

# healthy RACK: on every machine, the doctor finds nothing wrong with the node and what is around
# it. Its trial has 30 s, which an emulated machine may not have; and messages that waited for ARP
# are late (docs/guarantees.md).
healthy() {
	local name
	for name in sw h1 h2; do
		on "$name" "barline doctor >/tmp/doctor 2>&1; cat /tmp/doctor; barline show network
			! barline show network | grep -w FAIL
			! grep '^FAIL' /tmp/doctor | grep -v 'FAIL *trial\|promise_broken'" \
			>"$RACK/doctor-$1-$name" 2>&1 ||
			{ cat "$RACK/doctor-$1-$name"; fail "$1: the doctor on $name"; }
	done
	ok "$1: the doctor finds nothing wrong on three machines"
}

machine sw
machine h1
machine h2
mac_of[h1:0]=02:00:00:00:00:01
mac_of[h2:0]=02:00:00:00:00:02
cable h1:0 sw:0
cable h2:0 sw:1
boot sw h1 h2
start_clock sw h1 h2
for rack in l2 l3; do
	h1=10.0.0.1 h2=10.0.0.2
	[ "$rack" = l2 ] || h1=10.0.1.1 h2=10.0.2.1
	PEER_ADDRESS[h1]=$h1
	for name in sw h1 h2; do
		before "$name"
	done
	follow "$rack" "The switch"
	follow "$rack" "The hosts"
	follow "$rack" "Start"
	traffic "$rack" "$h2"
	if [ "$rack" = l2 ]; then
		on h1 "ping -6 -c 2 -w 10 fd00::2 >/dev/null" || fail "h1 does not reach fd00::2"
		ok "l2: neighbour discovery passes the switch"
	fi
	healthy "$rack"
	for name in sw h1 h2; do
		on "$name" 'cp -p /etc/barline/rack.yaml /run/changed.yaml
			cp -p /run/rack.yaml /etc/barline/rack.yaml'
	done
	follow_setup "$rack"
	for name in sw h1 h2; do
		on "$name" 'cp -p /run/changed.yaml /etc/barline/rack.yaml'
	done
	follow "$rack" "Upgrade"
	traffic "$rack-upgraded" "$h2"
	for name in sw h1 h2; do
		on "$name" 'cp -p /run/rack.yaml /etc/barline/rack.yaml'
	done
	follow "$rack" "Removal"
	for name in sw h1 h2; do
		on "$name" "! ip -d link show | grep xdp && ! ls /run/barline/bpf/* 2>/dev/null &&
			[ ! -e /etc/barline/rack.yaml ] && ! ip link show br0 2>/dev/null" ||
			fail "$rack: something is left on $name"
	done
	for name in sw h1 h2; do
		after "$name" "$rack"
	done
	ok "$rack: everything is removed, and the network is as before"
done
