# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# traffic.sh - what the cases of this folder do with the machines of rack.sh: a rack of one switch,
# and ordered traffic that is judged. The switch is the machine sw, and host N, 10.0.0.N, is hN. A
# case may be run alone, so each of them builds its own rack.

# Beacons of an emulated machine come with up to some 20 ms of delay.
TIMES="--beacon-us 20000 --dead-after-us 2000000"
CLOCK="--clock-bound-us 1000"

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
	on "$name" "ip addr replace $address/24 dev eth0; ip link set eth0 up
		: >/run/barlined.log
		barline host up $TIMES $CLOCK $* eth0 >/run/barlined.log 2>&1 &
		echo \$! >/run/barlined.pid"
	started "$name"
}

# start_switch NAME OPTION...: starts the daemon.
start_switch() {
	local name=$1
	shift
	on "$name" ": >/run/barlined.log
		barline switch up $TIMES --lag-max-us 4000000 $CLOCK $* \
			>/run/barlined.log 2>&1 &
		echo \$! >/run/barlined.pid"
	started "$name"
}

started() {
	on "$1" "for i in \$(seq 600); do
			grep -q ' is up in ' /run/barlined.log && exit 0
			kill -0 \$(cat /run/barlined.pid) || break
			sleep 0.1
		done; cat /run/barlined.log; exit 1" || fail "barlined on $1 has not started"
}

# one_switch HOST...: the rack: machines, cables, clocks, and a daemon on each. The options of the
# switch's daemon are those of $SWITCH_OPTIONS, those of the hosts' daemons $HOST_OPTIONS, and those
# of machine(rack.sh) $MACHINE_OPTIONS; cables have $CABLE_OPTIONS.
one_switch() {
	local name i=0 fdb=
	local -a nics
	mapfile -t nics < <(seq -f 'eth%g' 0 $(($# - 1)))
	# shellcheck disable=SC2086 # lists of words
	{
		machine sw ${MACHINE_OPTIONS-}
		for name; do
			machine "$name" ${MACHINE_OPTIONS-}
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
	for name; do
		[ "$name" = "$1" ] ||
			wait_on "$1" 60 "ping -c 1 -w 2 10.0.0.${name#h}"
	done
	all_live "$#"
}

# all_live N: waits until all N inputs of the switch are live.
all_live() {
	(wait_on sw 60 "[ \$(barline show barriers | grep -c ' in .* live ') = $1 ]") ||
		{ explain sw "${!m_pid[@]}"; fail "not all inputs of the switch are live"; }
}

# addresses of hosts other than 10.0.0.N
declare -A PEER_ADDRESS=()

# peers_begin NAME PEERS OPTION...: order_peer on each of the hosts $PEERS, a list of words, for run
# NAME. They wait for each other, and end by themselves.
peers_begin() {
	local run=$1 peer list= i=0
	local -a peers
	read -r -a peers <<<"$2"
	shift 2
	for peer in "${peers[@]}"; do
		list+="${list:+,}${PEER_ADDRESS[$peer]-10.0.0.${peer#h}}:61700"
	done
	for peer in "${peers[@]}"; do
		on "$peer" "rm -f /run/$run.log*; order_peer -i $i -p $list -o /run/$run.log $* \
			>/run/$run.out 2>&1 & echo \$! >/run/$run.pid"
		i=$((i + 1))
	done
	for peer in "${peers[@]}"; do
		(wait_on "$peer" 30 "grep -q ready /run/$run.out") ||
			{ explain "$peer"; fail "$peer: $(on "$peer" cat "/run/$run.out")"; }
	done
	for peer in "${peers[@]}"; do on "$peer" "touch /run/$run.log.go"; done
}

# peers_end NAME PEERS SECONDS [-c]: waits for them, takes their logs and prints the judgement,
# which is the exit status as well.
peers_end() {
	local run=$1 peer
	local -a peers logs=()
	read -r -a peers <<<"$2"
	for peer in "${peers[@]}"; do
		wait_on "$peer" "$3" "! kill -0 \$(cat /run/$run.pid)"
		on "$peer" "test -e /run/$run.log" ||
			{ on "$peer" "cat /run/$run.out"; fail "order_peer on $peer has failed"; }
		fetch "$peer" "/run/$run.log" "$RACK/$run-$peer.log"
		logs+=("$RACK/$run-$peer.log")
	done
	"$BUILD/tests/machines/order_judge" ${4-} "${logs[@]}"
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
			cat /run/keep.log" | sed 's/^/# /'
	done
}
