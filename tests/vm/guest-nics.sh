#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guest-nics.sh - in a guest of nics.sh: makes hosts on NICs of several kinds one FIFO, takes them
# off again, and compares what tc, ethtool and sysfs say before and after, byte for byte.
#
#	eth0	virtio-net, one queue		fq_codel by default
#	eth1	virtio-net, two queues		mq with fq_codel below
#	v0	veth with two queues		noqueue
#
# NICS (eth0 eth1 v0): those of them that are attached and detached ROUNDS (3) times; every third
# time the daemon is killed first, and another third of them a new daemon takes over. What follows
# concerns eth0 and eth1 whatever NICS says. Prints TAP.
rounds=${ROUNDS:-3}
export PATH=/payload:/sbin:/usr/sbin:$PATH BARLINE_LOG=info
n=0
ok() { n=$((n + 1)); echo "ok $n - $*"; }
bad() { n=$((n + 1)); echo "not ok $n - $*"; }
same() { # no difference between /tmp/before and /tmp/after
	cmp -s /tmp/before /tmp/after && return 0
	diff /tmp/before /tmp/after | sed 's/^/# /'
	return 1
}
check() { # NAME COMMAND...: the command succeeds
	what=$1; shift
	if "$@"; then ok "$what"; else bad "$what"; fi
}

# What a detached node must leave as it was. The order of a dump says nothing.
state() {
	tc qdisc show dev "$1" | sort
	tc filter show dev "$1" egress
	tc filter show dev "$1" ingress
	for f in /sys/class/net/"$1"/queues/*/xps_cpus /sys/class/net/"$1"/queues/*/rps_cpus \
		/sys/class/net/"$1"/threaded; do
		echo "$f $(cat "$f" 2>/dev/null)"
	done
	ethtool -k "$1"; ethtool -l "$1"; ethtool -x "$1"; ethtool -n "$1"; ethtool -c "$1"
	ip -d addr show dev "$1" | sed 's/valid_lft.*//; s/ tentative//; s/ prog\/xdp.*//'
	ip route show dev "$1"
}
up() { # IFNAME OPTION...: starts a daemon, and returns when it is ready
	nic=$1; shift
	# What the daemon before has said is gone before the new one runs, and truncates the file.
	: >/tmp/up
	barlined host -i "$nic" --no-sandbox -j "$@" >/tmp/up 2>/tmp/err &
	daemon=$!
	while kill -0 $daemon 2>/dev/null; do
		grep -q '"ready"' /tmp/up && return 0
		grep -q '{' /tmp/up && ! grep -q error /tmp/up && return 0
		sleep 0.2
	done
	cat /tmp/up /tmp/err
	return 1
}
down() { kill "-${1:-TERM}" $daemon 2>/dev/null; wait $daemon 2>/dev/null; }
shows() { # IFNAME PATTERN...: tc shows a line with each pattern
	nic=$1; shift
	tc qdisc show dev "$nic" >/tmp/tc
	for p in "$@"; do
		grep -q "$p" /tmp/tc || { echo "# no \"$p\" in:"; sed 's/^/# /' /tmp/tc; return 1; }
	done
}
fifo() { # IFNAME TX: `show nics` says that
	barline show nics -j >/tmp/nics &&
		grep -q "\"name\": *\"$1\"" /tmp/nics &&
		grep -q "\"transmit\": *\"$2\"" /tmp/nics ||
		{ sed 's/^/# /' /tmp/nics; return 1; }
}

modprobe virtio_pci 2>/dev/null; modprobe virtio_net
ip link add v0 numtxqueues 2 numrxqueues 2 type veth peer name v1 numtxqueues 2 numrxqueues 2
for i in eth0 eth1 v0 v1; do ip link set $i up; done
ethtool -L eth1 combined 2 2>/dev/null
ip addr add 10.9.0.1/24 dev eth0
# A NIC of two queues has a discipline for each of them only once it is up.
i=0; while [ $i -lt 50 ] && ! tc qdisc show dev eth1 | grep -q "qdisc mq"; do
	sleep 0.1; i=$((i + 1))
done

want_eth0="qdisc.ets.b411:.root|qdisc.pfifo.b412:.parent.b411:1.limit|qdisc.fq_codel.b413:"
want_eth1="qdisc.mq.b410:.root|qdisc.ets.b411:.parent.b410:1|qdisc.pfifo.b412:"
want_eth1="$want_eth1|qdisc.fq_codel.0:.parent.b410:2"
want_v0="qdisc.noqueue.0:.root|qdisc.clsact"
for nic in ${NICS:-eth0 eth1 v0}; do
	state $nic >/tmp/before
	eval "want=\$want_$nic"
	want=$(echo "$want" | tr '|' ' ')
	round=1 differ=0 wrong=0
	# These have two receive queues, and neither flow rules nor a table.
	options=; [ $nic = eth0 ] || options="--accept reordering"
	while [ $round -le "$rounds" ]; do
		up $nic $options || { wrong=$((wrong + 1)); down; barline host detach; break; }
		if [ $round = 1 ]; then
			check "$nic: made a FIFO" shows $nic $want
			check "$nic: show nics says so" fifo $nic made
			barline doctor >/tmp/doctor 2>&1
			check "$nic: the doctor knows the NIC" \
				grep -E -q " $nic +(one FIFO|ordered frames may)" /tmp/doctor
			[ $nic = v0 ] || {
				# What others remove is made again within a second or two.
				tc qdisc del dev $nic root
				i=0; while [ $i -lt 100 ]; do
					shows $nic $want >/dev/null && break
					sleep 0.2; i=$((i + 1))
				done
				check "$nic: made a FIFO again" shows $nic $want
			}
		fi
		case $((round % 3)) in
		0) down KILL ;;
		1) down TERM ;;
		2) down KILL; up $nic $options || wrong=$((wrong + 1)); down TERM ;;
		esac
		barline host detach >/tmp/detach 2>&1 || { cat /tmp/detach; wrong=$((wrong + 1)); }
		state $nic >/tmp/after
		same || differ=$((differ + 1))
		round=$((round + 1))
	done
	check "$nic: $rounds times attached and detached" test $wrong = 0
	check "$nic: everything as before, byte for byte" test $differ = 0
done

# Without acceptance such a NIC is refused, and with --one-queue it has one queue meanwhile.
state eth1 >/tmp/before
up eth1 >/tmp/said; rc=$?
[ $rc = 0 ] && down
check "two receive queues are refused" test $rc != 0
check "the sentence says what to do" grep -q "eth1 spreads.*2 queues.*--one-queue" /tmp/said
check "one queue can be asked for" up eth1 --one-queue
check "then it has one" sh -c "ethtool -l eth1 | tail -n 2 | grep -q 'Combined:.*1'"
check "and is a FIFO" fifo eth1 made
down KILL; barline host detach >/dev/null 2>&1
state eth1 >/tmp/after
check "and it has two again" same

# A discipline that somebody has set is refused in one sentence and stays.
tc qdisc replace dev eth0 root handle 1: fq_codel
state eth0 >/tmp/before
up eth0 >/tmp/said; rc=$?
[ $rc = 0 ] && down
check "a discipline of somebody else's is refused" test $rc != 0
check "the sentence names it" grep -q "eth0 has the queueing discipline fq_codel 1:" /tmp/said
state eth0 >/tmp/after
check "it stays as it was" same
check "it can be accepted" up eth0 --accept reordering
check "show nics says that the order is not kept" fifo eth0 BROKEN
barline doctor >/tmp/doctor 2>&1
check "so does the doctor" grep -q "FAIL.* eth0 .*ordered frames may overtake" /tmp/doctor
down; barline host detach >/dev/null 2>&1
state eth0 >/tmp/after
check "and it stays as it was again" same
tc qdisc del dev eth0 root

# A device on top of another one has no queue, but the one below has.
ip link add link eth0 name eth0.5 type vlan id 5 && ip link set eth0.5 up
up eth0.5 --generic >/tmp/said; rc=$?
[ $rc = 0 ] && down
check "a VLAN device is refused" test $rc != 0
check "the sentence names the device below" grep -q "run the node on eth0 " /tmp/said
ip link del eth0.5

# An operator's own FIFO is taken as it is.
tc qdisc replace dev eth0 root handle 2: pfifo limit 300
state eth0 >/tmp/before
check "an operator's FIFO will do" up eth0
check "show nics says FIFO" fifo eth0 FIFO
state eth0 | grep -v clsact >/tmp/during
down; barline host detach >/dev/null 2>&1
state eth0 >/tmp/after
check "and it is left alone" same
echo "1..$n"
