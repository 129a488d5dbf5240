# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Is the true error of bus time within the published bound, whatever happens to the clocks? Each
# machine compares both ten times a second, all the time (true_clock watch), while one after the
# other their clocks drift, are stepped, lose their time daemon until the record is void, and get it
# back, and barlined is restarted. The clocks of sw, h1 and h2 are kept by true_clock, that of h3 by
# chronyd, whose server is sw: that clock drifts, too, but is not set wrong, since a client's bound
# is no better than what its server says. Meanwhile the order of best-effort and of reliable traffic
# is judged. In the end, h2's time daemon lies, and the comparison has to show it.
#
# campaign: takes CAMPAIGN_SECONDS, and runs only if it is named
# packages: chrony
. "$MACHINES/traffic.sh"

CLOCK="--clock-bound-us 50 --clock-max-bound-us 20000"
hosts=(h1 h2 h3)
for name in sw "${hosts[@]}"; do machine "$name" -m 512; done
for name in "${hosts[@]}"; do cable "$name:0" "sw:$((${name#h} - 1))"; done
boot sw "${hosts[@]}"
for name in "${hosts[@]}"; do
	on "$name" "ip addr replace 10.0.0.${name#h}/24 dev eth0; ip link set eth0 up"
done
bridge_ports sw eth0 eth1 eth2

# keep NAME: the time daemon of a machine, which slews by at most 50 ppm.
keep() {
	on "$1" "true_clock keep -e 50 -s 50 -v >/run/keep.log 2>&1 & echo \$! >/run/keep.pid"
}
for name in sw h1 h2; do keep "$name"; done

# chronyd on sw serves the time that true_clock keeps there; on h3 it sets the clock.
on sw "ip addr replace 10.0.0.254/24 dev br0; mkdir -p /run/chrony /var/lib/chrony
	printf '%s\n' 'local stratum 1' 'allow 10.0.0.0/8' >/run/chrony.conf
	chronyd -x -u root -f /run/chrony.conf"
start_chrony() {
	on h3 "mkdir -p /run/chrony /var/lib/chrony
		printf '%s\n' 'server 10.0.0.254 iburst minpoll 0 maxpoll 3' 'makestep 0.002 -1' \
			'maxslewrate 50' rtcsync >/run/chrony.conf
		chronyd -u root -f /run/chrony.conf"
	(wait_on h3 240 "adjtimex | grep -q 'clock synchronized'") ||
		{ on h3 "chronyc -n tracking; chronyc -n sources"; fail "chronyd has no time"; }
}
on h3 "true_clock set -o 3000000 -e 100000"
wait_on h3 60 "ping -c 1 -w 2 10.0.0.254"
start_chrony
ok "chronyd has synchronised h3: $(on h3 "chronyc -n tracking" | grep 'System time')"

fdb=
for name in "${hosts[@]}"; do fdb+=" --fdb $(mac "$name" 0)=eth$((${name#h} - 1))"; done
start_switch sw --l2 "$fdb" eth0 eth1 eth2
for name in "${hosts[@]}"; do start_host "$name" "10.0.0.${name#h}"; done
all_live 3

# What docs/clocks.md assumes holds for CLOCK_MONOTONIC, slewing included: it drifts by less than
# 100 ppm. A disturbance begins when the one before has been slewed away.
settled() {
	wait_on "$1" 240 "tail -n 1 /run/keep.log |
		grep -Eq '^off -?[0-9]{1,5} ns.* slewed -?[0-9]{1,4} '"
}
for name in sw h1 h2; do settled "$name"; done

# clock NAME: the pinned record
clock() { on "$1" "echo /run/barline/bpf/*/maps/clock"; }
for name in sw "${hosts[@]}"; do
	on "$name" "true_clock watch $(clock "$name") -n 0 >/run/watch.log 2>&1 &
		echo \$! >/run/watch.pid"
done
PEER_PORT[reliable]=61800
peers_begin best "h1 h2 h3" -n 0 -g 200000 -t 15
peers_begin reliable "h1 h2 h3" -n 0 -g 200000 -t 30 -r

# pause SECONDS: lets the clocks go on as they are.
pause() { on sw "sleep $1"; }

# disturb NAME KIND: what happens to the clock of a machine that true_clock keeps.
disturb() {
	local us=$((RANDOM % 4500 + 500)) ppm=$((RANDOM % 40 + 50))
	[ $((RANDOM % 2)) = 0 ] || us=-$us ppm=-$ppm
	settled "$1"
	case $2 in
	rate) # of the oscillator, for which the time daemon has to make up
		on "$1" "true_clock drift $ppm"
		pause 20
		settled "$1"
		on "$1" "true_clock drift $((-ppm))"
		;;
	step) on "$1" "true_clock step ${us}000" ;;
	holdover) # without a time daemon, for a minute
		on "$1" "kill \$(cat /run/keep.pid); true_clock drift $ppm"
		pause 60
		keep "$1"
		;;
	void)
		# The time daemon lies so much that the node itself knows. It sets the clock back:
		# bus time may not follow at once, so that the lie is never believed.
		on "$1" "kill \$(cat /run/keep.pid); true_clock set -o -40000000"
		wait_on "$1" 60 "barline show clock | grep -Eq 'steering|too_wide'"
		keep "$1"
		;;
	restart) restart "$1" ;;
	esac
	note "$1: $2 ($ppm ppm, $us us); $(on "$1" "barline show clock" | tail -n 1)"
}

# disturb_chrony KIND: the same where chronyd keeps the clock. While it slews, by at most 50 ppm,
# the drift adds to that.
disturb_chrony() {
	local us=$((RANDOM % 5000 + 20)) ppm=$((RANDOM % 20 + 25))
	[ $((RANDOM % 2)) = 0 ] || us=-$us ppm=-$ppm
	case $1 in
	rate) on h3 "true_clock drift $ppm" ;;
	step) on h3 "true_clock step ${us}000" ;;
	holdover)
		on h3 "kill \$(cat /run/chrony/chronyd.pid)
			while pidof chronyd >/dev/null; do sleep 0.1; done; true_clock drift $ppm"
		pause 60
		start_chrony
		;;
	restart) restart h3 ;;
	esac
	note "h3: $1 ($ppm ppm, $us us); $(on h3 "barline show clock" | tail -n 1)"
}

RANDOM=17
kinds=(rate step holdover step restart rate void)
chrony_kinds=(rate step holdover restart)
server_kinds=(rate restart)
kept=(h1 h2 sw) turn=0 end=$((SECONDS + ${CAMPAIGN_SECONDS:-3600}))
while [ "$SECONDS" -lt "$end" ]; do
	if [ "${kept[turn % 3]}" = sw ]; then
		disturb sw "${server_kinds[turn / 3 % 2]}"
	else
		disturb "${kept[turn % 3]}" "${kinds[turn % 7]}"
	fi
	pause 10
	disturb_chrony "${chrony_kinds[turn % 4]}"
	pause 10
	turn=$((turn + 1))
done
note "$turn disturbances of true_clock's clocks, and as many of chronyd's"

failed=
for name in sw "${hosts[@]}"; do
	on "$name" "kill \$(cat /run/watch.pid); while kill -0 \$(cat /run/watch.pid) 2>/dev/null
		do sleep 0.1; done"
	said=$(on "$name" "cat /run/watch.log")
	if [[ $said == *", outside 0" && $said == samples* ]]; then
		ok "$name: $said"
	else
		note "$name: $said"
		failed+=" $name"
	fi
done

# judged RUN OPTION...: its order, which counts even if a clock was outside.
judged() {
	local run=$1 verdict
	shift
	peers_stop "$run" "h1 h2 h3"
	if verdict=$(peers_end "$run" "h1 h2 h3" 300 "$@"); then
		ok "$run: $verdict"
	else
		note "$run: $verdict"
		failed+=" $run"
	fi
}
for name in "${hosts[@]}"; do wait_on "$name" 600 "barline show clock | grep -q ' good '"; done
judged reliable
# A node whose clock is void drops what it should send or take, and so it may drop a report.
judged best -l
note "sw: excluded $(drops sw excluded), joined $(drops sw joined)," \
	"promise_broken $(drops sw promise_broken)"
[ -z "$failed" ] || { explain sw "${hosts[@]}"; fail "see above:$failed"; }

on h2 "kill \$(cat /run/keep.pid)
	while sleep 1; do true_clock set -o 2000000; done >/run/lie.log 2>&1 &"
wait_on h2 120 "! true_clock watch $(clock h2) -n 20 >/run/watch.log"
ok "a lie is found: $(on h2 "tail -n 1 /run/watch.log")"
