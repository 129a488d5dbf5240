# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# traffic.sh - what the cases of this folder do with the machines of rack.sh: a rack of one switch,
# and ordered traffic that is judged. The switch is the machine sw, and host N, 10.0.0.N, is hN. A
# case may be run alone, so each of them builds its own rack.

# Beacons of an emulated machine come with up to some 20 ms of delay.
TIMES="--beacon-us 20000 --dead-after-us 2000000"
# A daemon that starts may need half a minute there, for which the one before it leaves a caretaker.
TIMES+=" --caretaker-ms 60000 --clock-void-after-ms 60000"
CLOCK="--clock-bound-us 1000"
# A machine that gets no CPU looks like a process that stops in the middle of a send.
HOST_TIMES="--send-limit-ms 0"

# start_clock NAME...: keeps the machines' clocks at true time, as chronyd or phc2sys would.
start_clock() {
	local name
	for name; do
		on "$name" "true_clock keep >/run/keep.log 2>&1 & echo \$! >/run/keep.pid"
	done
	for name; do
		# adjtimex(1) of busybox prints the kernel's state.
		wait_on "$name" 60 "adjtimex | grep -q 'clock synchronized'"
	done
}

# bridge_ports SWITCH NIC...: the switch's kernel forwards what is not ordered between these NICs.
bridge_ports() {
	local name=$1 nic
	shift
	on "$name" "ip link add br0 type bridge; ip link set br0 up
		for i in $*; do ip link set \$i master br0; ip link set \$i up; done"
}

# start_host NAME ADDRESS [OPTION...]: gives eth0 its address and starts the daemon on it.
start_host() {
	local name=$1 address=$2
	shift 2
	on "$name" "ip addr replace $address/24 dev eth0; ip link set eth0 up"
	daemon "$name" "host up $TIMES $HOST_TIMES $CLOCK $* eth0"
}

# start_switch NAME OPTION...: starts the daemon.
start_switch() {
	local name=$1
	shift
	daemon "$name" "switch up $TIMES --lag-max-us 4000000 $CLOCK $*"
}

# daemon NAME COMMAND: runs `barline COMMAND` in the background, and waits until it serves.
declare -A daemon_of=()
daemon() {
	daemon_of[$1]=$2
	on "$1" ": >/run/barlined.log
		barline $2 >/run/barlined.log 2>&1 &
		echo \$! >/run/barlined.pid"
	started "$1"
}

# end_daemon NAME [SIGNAL]: sends it the signal (TERM), and waits until it is gone.
end_daemon() {
	on "$1" "pid=\$(cat /run/barlined.pid); kill -${2:-TERM} \$pid
		while kill -0 \$pid 2>/dev/null; do sleep 0.1; done"
}

# restart NAME: stops the daemon as an upgrade does, and starts it anew.
restart() {
	end_daemon "$1"
	daemon "$1" "${daemon_of[$1]}"
}

started() {
	on "$1" "until grep -q ' is up on ' /run/barlined.log; do
			kill -0 \$(cat /run/barlined.pid) || { cat /run/barlined.log; exit 1; }
			sleep 0.1
		done" || fail "barlined on $1 has not started"
}

# emulated_unit NAME FILE: gives the unit barlined@rack and its configuration, which setup has
# written, the times of emulated machines. What setup wrote stays in FILE.
emulated_unit() {
	local more="send_limit_ms: 0"
	[ "$1" != sw ] || more="lag_max_us: 4000000"
	on "$1" "cp -p /etc/barline/rack.yaml $2
		cat >>/etc/barline/rack.yaml <<'.'
dead_after_us: 2000000
caretaker_ms: 60000
clock_void_after_ms: 60000
$more
.
		mkdir -p /etc/systemd/system/barlined@rack.service.d
		printf '[Service]\nTimeoutStartSec=900\n' \
			>/etc/systemd/system/barlined@rack.service.d/emulated.conf"
}

# refused NAME COMMAND PATTERN: `barline COMMAND` must end without having served, and say PATTERN,
# which is printed.
refused() {
	on "$1" "rm -f /run/refused.*
		(barline $2; echo \$? >/run/refused.rc) >/run/refused.log 2>&1 &
		until [ -s /run/refused.rc ] || grep -qs ' is up on ' /run/refused.log
		do sleep 0.2; done
		[ -s /run/refused.rc ] && [ \$(cat /run/refused.rc) != 0 ] &&
			grep -e '$3' /run/refused.log" ||
		{ on "$1" cat /run/refused.log; fail "$1: not refused: barline $2"; } >&2
}

# one_switch HOST...: the rack: machines, cables, clocks, and a daemon on each. The options of the
# switch's daemon are those of $SWITCH_OPTIONS, those of the hosts' daemons $HOST_OPTIONS, and those
# of machine(rack.sh) $MACHINE_OPTIONS and, for one machine, ${options_of[NAME]}; cables have
# $CABLE_OPTIONS.
declare -A options_of=()
one_switch() {
	local name i=0 fdb=
	local -a nics
	mapfile -t nics < <(seq -f 'eth%g' 0 $(($# - 1)))
	# shellcheck disable=SC2086 # lists of words
	{
		machine sw ${MACHINE_OPTIONS-} ${options_of[sw]-}
		for name; do
			machine "$name" ${MACHINE_OPTIONS-} ${options_of[$name]-}
			cable ${CABLE_OPTIONS-} "$name:0" "sw:$i"
			i=$((i + 1))
		done
	}
	boot sw "$@"
	start_clock sw "$@"
	i=0
	for name; do
		fdb+=" --fdb $(mac "$name" 0)=eth$i"
		i=$((i + 1))
	done
	bridge_ports sw "${nics[@]}"
	start_switch sw --l2 "$fdb" "${SWITCH_OPTIONS-}" "${nics[@]}"
	for name; do start_host "$name" "10.0.0.${name#h}" "${HOST_OPTIONS-}"; done
	meet "$@"
	all_live "$#"
}

# meet HOST...: waits until each of them reaches all others, and so knows their addresses: a message
# that waits for ARP is lost (send_late).
meet() {
	local name other
	for name; do
		for other; do
			[ "$name" = "$other" ] ||
				wait_on "$name" 120 "ping -c 1 -w 2 10.0.0.${other#h}"
		done
	done
}

# all_live N [SWITCH]: waits until all N inputs of the switch are live.
all_live() {
	local switch=${2-sw}
	(wait_on "$switch" 60 "[ \$(barline show barriers | grep -c ' in .* live ') = $1 ]") ||
		{ explain "${!m_pid[@]}"; fail "not all inputs of $switch are live"; }
}

# addresses of hosts other than 10.0.0.N, and ports of runs other than 61700
declare -A PEER_ADDRESS=() PEER_PORT=()

# place RUN PEER: sets host, port, pin, and at, the beginning of the names of the peer's files. A
# peer is a host, or HOST@CPU, which runs on this CPU of it only.
place() {
	host=${2%@*} port=${PEER_PORT[$1]-61700} pin= at=/run/$1
	[ "$host" != "$2" ] || return 0
	port=$((port + ${2#*@}))
	pin=$(printf 'taskset %x' $((1 << ${2#*@})))
	at+=-${2#*@}
}

# peers_begin NAME PEERS OPTION...: an order_peer for each of the PEERS, a list of words, for run
# NAME. They wait for each other, and end by themselves.
peers_begin() {
	local run=$1 peer list= i=0 host port pin at
	local -a peers
	read -r -a peers <<<"$2"
	shift 2
	for peer in "${peers[@]}"; do
		place "$run" "$peer"
		list+="${list:+,}${PEER_ADDRESS[$host]-10.0.0.${host#h}}:$port"
	done
	for peer in "${peers[@]}"; do
		place "$run" "$peer"
		on "$host" "rm -f $at.log*; $pin order_peer -i $i -p $list -o $at.log $* \
			>$at.out 2>&1 & echo \$! >$at.pid"
		i=$((i + 1))
	done
	for peer in "${peers[@]}"; do
		place "$run" "$peer"
		(wait_on "$host" 30 "grep -q ready $at.out") ||
			{ explain "$host"; fail "$peer: $(on "$host" cat "$at.out")"; }
	done
	for peer in "${peers[@]}"; do place "$run" "$peer"; on "$host" "touch $at.log.go"; done
}

# peers_stop NAME PEERS: lets the peers of a run with -n 0 send no more.
peers_stop() {
	local peer host port pin at
	for peer in $2; do
		place "$1" "$peer"
		on "$host" "kill -0 \$(cat $at.pid) && touch $at.log.stop" ||
			fail "order_peer on $peer has ended: $(on "$host" cat "$at.out")"
	done
}

# peers_end NAME PEERS SECONDS [OPTION...]: waits for them, takes their logs and prints what
# order_judge OPTION... says of them, whose exit status is the function's.
peers_end() {
	local run=$1 peer host port pin at seconds=$3
	local -a peers logs=()
	read -r -a peers <<<"$2"
	shift 3
	for peer in "${peers[@]}"; do
		place "$run" "$peer"
		wait_on "$host" "$seconds" "! kill -0 \$(cat $at.pid)"
		on "$host" "test -e $at.log" ||
			{ on "$host" "cat $at.out"; fail "order_peer on $peer has failed"; }
		fetch "$host" "$at.log" "$RACK/$run-$peer.log"
		logs+=("$RACK/$run-$peer.log")
	done
	"$BUILD/tests/machines/order_judge" "$@" "${logs[@]}"
}

# under_load NAME PEERS: ordered traffic while the queue of h1's NIC is full of other traffic. Sets
# verdict, and broken, the frames that the switch found to be overtaken by a barrier.
under_load() {
	local before
	before=$(drops sw promise_broken)
	peers_begin "$1" "$2" -n 300 -g 10000 -t 15
	wait_on h1 60 "tc -s qdisc show dev eth0 | grep -q 'backlog [1-9]'"
	verdict=$(peers_end "$1" "$2" 600) || verdict+=" (wrong)"
	broken=$(($(drops sw promise_broken) - before))
}

# drops NAME REASON: the sum of a reason on a machine; 0 if it is not listed.
drops() {
	on "$1" "barline show drops" |
		awk -v r="$2" '{ for (i = 1; i < NF; i++) if ($i == r) n += $(i + 1) }
			END { print n + 0 }'
}

# explain NAME...: what the nodes of these machines count and hold, for a case that fails.
explain() {
	local name
	for name; do
		echo "# $name"
		on "$name" "barline show clock; barline show drops; barline show ports
			barline show barriers; barline show endpoints; cat /run/barlined.log
			! test -e /run/keep.log || tail -n 60 /run/keep.log" | sed 's/^/# /'
	done
}
