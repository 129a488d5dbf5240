#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# corosync.sh - the peer of the throughput bench: Corosync's closed process groups (totally ordered
# multicast by a rotating token) on a rack of network namespaces. Each node has one corosync and
# one corosync_cpg. veth pairs join the nodes through a Linux bridge in a namespace of its own;
# Corosync's frames take the same path on barline's rack (XDP_PASS, then the kernel).
#
#   bench/corosync.sh --nodes 2,4 --seconds 5 --runs 3 --out corosync.json
#   2,323559,161780,37.5
#
# The columns are the number of nodes, the deliveries/s of all nodes together, the deliveries/s per
# node, and the p50 in us from send to own delivery on an idle group.
#
# Every node delivers every message, including its own: per_node = total / nodes is the rate at
# which the group orders messages. The total of a run is the sum over the members of deliveries /
# seconds; the figures are medians of --runs.
#
# Each message is one cpg_mcast_joined(), which is Corosync's only way to send. A comparison must
# therefore use a peer that also sends one message per call (`barline lab run rack --batch 1`); what
# batches add is another row.
#
# With --rate R there is one more run per size: every member sends R messages a second at times of
# its own, independently of what it receives (an open loop), and records the age of the others'
# messages at delivery. The samples of all members together give the quantiles. One more line is
# printed:
#   group,8,1000,1174.1,3743.0,5812.5      members, messages/s of each, p50, p99, p99.9 in us
#                                          (medians of the runs)
#
# Idle latency has two values, because Corosync's token stops some rotations after the last message,
# and the next sender has to wake it. The CSV has the better one, where each message is sent at the
# delivery of the previous one (--gap-us 0). The JSON also has the one after a rest of 10 ms,
# rested_latency_p50_us.
#
# The tuning favours Corosync. window_size and max_messages are above the 256000 / netmtu of its
# manual: most sizes ran without a retransmission, 8 nodes had 9 retransmit lists in 5 runs (the
# JSON counts them). The token timeout is long enough for 16 nodes that wait for their turn on 2
# cores, and a token that is lost while the ring forms costs no more than 3 s. These were observed
# on 2 cores on 2026-11-21 beside other work, so with few quiet runs: sched_rr gave 48000
# messages/s per node at 2 nodes (one run; without it 127000 to 181000); SCHED_BATCH for daemons
# and clients, which wake each other per message, was equal or slightly better. Neither is a
# controlled comparison.
#
# Nothing outlives the script, not even after kill -9: everything runs in a private pid and mount
# namespace whose init dies with the script, and the network namespaces (blbench-PID-i) have names
# only in a tmpfs there. Each corosync has its own /dev/shm, /run and /var/lib/corosync. With
# --netns the script uses existing namespaces and leaves them as they are.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
self=$here/$(basename "${BASH_SOURCE[0]}")

nodes=2,4,8,16
runs=3
seconds=5
latency_seconds=2
inflight=128
size=64
gap_us=0
rate=0
rest_us=10000
out=
client=
keep_log=
netns=()

usage()
{
	cat <<-USAGE
	usage: corosync.sh [options]                    (as root)
	  --nodes LIST         group sizes, by commas ($nodes)
	  --runs R             runs per size; the medians are reported ($runs)
	  --seconds D          length of a throughput run ($seconds)
	  --latency-seconds D  length of a latency run ($latency_seconds)
	  --inflight N         messages outstanding per client ($inflight)
	  --size BYTES         message size ($size)
	  --gap-us US          silence between two messages of a latency run ($gap_us)
	  --rate R             then a group in which every member sends R messages a second,
	                       for --latency-seconds
	  --netns PATH=ADDR    use an existing host instead of an own rack: its network namespace
	                       and IPv4 address; repeated once per host
	  --client FILE        corosync_cpg (build/corosync_cpg, else it is compiled)
	  --out FILE           write JSON with all runs
	  --keep-log DIR       copy the corosync logs to DIR
	Prints nodes,total_deliveries_per_s,per_node,idle_latency_p50_us per size, and with --rate
	group,nodes,rate,p50,p99,p99.9. Exit: 0 ok, 1 failed, 2 usage.
	USAGE
}

die()
{
	printf 'corosync.sh: %s\n' "$*" >&2
	exit 1
}

bad_usage()
{
	printf 'corosync.sh: %s; --help lists the options\n' "$*" >&2
	exit 2
}

is_number()
{
	[[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]]
}

parse()
{
	local n

	while (($#)); do
		case $1 in
		--help) usage; exit 0 ;;
		--nodes | --runs | --seconds | --latency-seconds | --inflight | --size | \
			--gap-us | --rate | --netns | --client | --out | --keep-log)
			(($# >= 2)) || bad_usage "$1 needs a value"
			;;
		*) bad_usage "unknown option $1" ;;
		esac
		case $1 in
		--nodes) nodes=$2 ;;
		--runs) runs=$2 ;;
		--seconds) seconds=$2 ;;
		--latency-seconds) latency_seconds=$2 ;;
		--inflight) inflight=$2 ;;
		--size) size=$2 ;;
		--gap-us) gap_us=$2 ;;
		--rate) rate=$2 ;;
		--netns) [[ $2 == *=* ]] || bad_usage "--netns $2: give PATH=ADDR"; netns+=("$2") ;;
		--client) client=$2 ;;
		--out) out=$2 ;;
		--keep-log) keep_log=$2 ;;
		esac
		shift 2
	done
	[[ $runs =~ ^[1-9][0-9]*$ ]] || bad_usage "--runs $runs: give a whole number from 1"
	[[ $rate =~ ^[0-9]+$ ]] || bad_usage "--rate $rate: give a whole number"
	is_number "$seconds" || bad_usage "--seconds $seconds: give a number"
	is_number "$latency_seconds" ||
		bad_usage "--latency-seconds $latency_seconds: give a number"
	for n in ${nodes//,/ }; do
		if [[ ! $n =~ ^[1-9][0-9]?$ ]] || ((n < 2 || n > 64)); then
			bad_usage "--nodes $n: give numbers from 2 to 64"
		fi
		((${#netns[@]} == 0 || n <= ${#netns[@]})) ||
			bad_usage "--nodes $n: only ${#netns[@]} --netns are given"
	done
}

# ---- outside: starts the private namespaces and makes sure that they end ----

# Sends SIGKILL, because unshare's parent process blocks other signals. --kill-child then ends the
# init of the pid namespace and thereby every process in it.
end_child()
{
	kill -KILL "$1" 2>/dev/null || :
	wait "$1" 2>/dev/null || :
}

outer()
{
	local child='' rc=0 tool

	((EUID == 0)) || die "needs root: network namespaces and mounts; run it with sudo"
	for tool in corosync ip unshare nsenter setpriv chrt; do
		command -v "$tool" >/dev/null ||
			die "$tool is not installed (Debian packages: corosync iproute2 util-linux)"
	done
	# The output goes to a file without a name, so that --out is either complete or untouched
	# and no temporary file is left beside it.
	if [[ -n $out ]]; then
		exec 3<>"$out.tmp.$$" || die "--out $out: cannot write there"
		rm "$out.tmp.$$"
	else
		exec 3>/dev/null
	fi
	trap 'end_child "$child"; exit 130' INT
	trap 'end_child "$child"; exit 143' TERM HUP
	BLBENCH_INNER=$$ setpriv --pdeathsig KILL \
		unshare --mount --pid --fork --kill-child "$self" "$@" </dev/null &
	child=$!
	wait "$child" || rc=$?
	if ((rc == 0)) && [[ -n $out ]]; then
		cat "/proc/$$/fd/3" >"$out"
	fi
	exit "$rc"
}

# ---- inside ----

work=/run/blbench
tag=${BLBENCH_INNER:-}
node_net=()  # the path of each node's network namespace
node_addr=() # the IPv4 address of each node
node_pid=()  # the process id of each node's corosync

corosync_tuning()
{
	cat <<-TUNING
		token: 3000
		token_coefficient: 0
		consensus: 3600
		join: 100
		merge: 100
		window_size: 300
		max_messages: 100
		netmtu: 1500
	TUNING
}

corosync_conf()
{
	local n=$1 i=$2 k

	printf 'totem {\n\tversion: 2\n\tcluster_name: blbench\n\ttransport: udpu\n'
	printf '\tcrypto_cipher: none\n\tcrypto_hash: none\n'
	corosync_tuning | sed 's/^/\t/'
	printf '}\nsystem {\n\tsched_rr: no\n\tpriority: 0\n\tmove_to_root_cgroup: no\n}\n'
	printf 'logging {\n\tto_stderr: no\n\tto_syslog: no\n\tto_logfile: yes\n'
	printf '\tlogfile: %s/%d/corosync.log\n\ttimestamp: hires\n}\n' "$work" "$i"
	printf 'nodelist {\n'
	for ((k = 1; k <= n; k++)); do
		printf '\tnode {\n\t\tring0_addr: %s\n\t\tnodeid: %d\n\t\tname: n%d\n\t}\n' \
			"${node_addr[k]}" "$k" "$k"
	done
	printf '}\n'
}

build_rack()
{
	local n=$1 i ns sw=blbench-$tag-sw

	ip netns add "$sw"
	ip -n "$sw" link add name br type bridge mcast_snooping 0 forward_delay 0
	ip -n "$sw" link set dev br up
	for ((i = 1; i <= n; i++)); do
		ns=blbench-$tag-$i
		ip netns add "$ns"
		ip -n "$ns" link set dev lo up
		ip -n "$ns" link add name eth0 type veth peer name "p$i" netns "$sw"
		ip -n "$sw" link set dev "p$i" master br up
		ip -n "$ns" addr add "10.77.0.$i/24" dev eth0
		ip -n "$ns" link set dev eth0 up
		node_net[i]=/run/netns/$ns
		node_addr[i]=10.77.0.$i
	done
}

adopt_rack()
{
	local i=0 entry fd

	for entry in "${netns[@]}"; do
		i=$((i + 1))
		# Keep the namespaces as open files, because their paths may be hidden by the mounts
		# that follow.
		exec {fd}<"${entry%=*}" || die "--netns ${entry%=*}: cannot open it"
		node_net[i]=/proc/$$/fd/$fd
		node_addr[i]=${entry##*=}
	done
}

start_corosync()
{
	local n=$1 i

	for ((i = 1; i <= n; i++)); do
		mkdir -p "$work/$i"
		corosync_conf "$n" "$i" >"$work/$i/corosync.conf"
		# Only the files that corosync writes under fixed names are private; its log and
		# configuration stay visible to the script.
		# shellcheck disable=SC2016 # expanded by the inner shell
		nsenter --net="${node_net[i]}" unshare --mount bash -c '
			set -e
			mount -t tmpfs tmpfs /var/lib/corosync
			mount -t tmpfs tmpfs /dev/shm
			mkdir "$1/shut"
			touch /run/corosync.pid
			mount --bind "$1/shut" /run/corosync
			touch "$1/lock"
			mount --bind "$1/lock" /run/corosync.pid
			touch "$1/mounted"
			exec chrt --batch 0 corosync -f -c "$1/corosync.conf"' \
			corosync "$work/$i" >"$work/$i/stderr" 2>&1 </dev/null 3>&- &
		node_pid[i]=$!
	done
	# A client enters its node's mount namespace by process id. Before the node has mounted its
	# folders, the client would enter the namespace of the script.
	for ((i = 1; i <= n; i++)); do
		until [[ -e $work/$i/mounted ]]; do
			kill -0 "${node_pid[i]}" 2>/dev/null ||
				{ show_logs; die "node $i did not start"; }
			sleep 0.01
		done
	done
}

stop_corosync()
{
	local i

	# With SIGKILL, because 16 nodes that leave in an orderly way would form 15 more rings.
	for i in "${!node_pid[@]}"; do
		kill -KILL "${node_pid[i]}" 2>/dev/null || :
		wait "${node_pid[i]}" 2>/dev/null || :
		rm -rf "${work:?}/$i"
	done
	node_pid=()
}

drop_rack()
{
	local i

	[[ ${#netns[@]} -eq 0 ]] || return 0
	for i in "${!node_net[@]}"; do
		ip netns del "blbench-$tag-$i"
	done
	ip netns del "blbench-$tag-sw"
	node_net=()
}

show_logs()
{
	local i

	for i in "${!node_pid[@]}"; do
		kill -0 "${node_pid[i]}" 2>/dev/null ||
			printf 'corosync.sh: corosync of node %d has ended:\n' "$i" >&2
		tail -n 5 "$work/$i/stderr" "$work/$i/corosync.log" >&2 2>/dev/null || :
	done
}

keep_logs()
{
	local n=$1 i

	[[ -n $keep_log ]] || return 0
	mkdir -p "$keep_log"
	for ((i = 1; i <= n; i++)); do
		cp "$work/$i/corosync.log" "$keep_log/corosync-$n-$i.log"
	done
}

# run N GROUP ARGS...: runs one client per node; their JSON lines go to $work/result.
run()
{
	local n=$1 group=$2 i rc=0 pids=()

	shift 2
	for ((i = 1; i <= n; i++)); do
		nsenter --target "${node_pid[i]}" --mount --net chrt --batch 0 "$client" \
			--members "$n" --group "$group" --size "$size" "$@" \
			>"$work/$i/json" 2>"$work/$i/client.stderr" </dev/null 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || rc=1
	done
	if ((rc)); then
		for ((i = 1; i <= n; i++)); do
			sed "s/^/node $i: /" "$work/$i/client.stderr" >&2
		done
		show_logs
		die "$n nodes: a client failed"
	fi
	: >"$work/result"
	for ((i = 1; i <= n; i++)); do
		cat "$work/$i/json" >>"$work/result"
	done
}

# field NAME: prints the numbers of the field NAME, one per line, from the JSON lines on stdin.
field()
{
	sed -n 's/.*"'"$1"'":\([0-9.]*\)[,}].*/\1/p'
}

median()
{
	sort -n | awk '
		{ v[NR] = $1 }
		END {
			if (!NR)
				exit 1
			print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		}'
}

# quantile PER_MILLE: prints this quantile of the sorted numbers on stdin.
quantile()
{
	awk -v q="$1" '
		{ v[NR] = $1 }
		END {
			if (!NR)
				exit 1
			r = int((NR * q + 999) / 1000)
			printf "%.1f\n", v[r ? r : 1]
		}'
}

# group N RUN: every member sends. The p50, p99 and p99.9 of all deliveries of others' messages go
# to $work/group-*.
group()
{
	local n=$1 q

	rm -f "$work/samples"
	run "$n" "group$2" --rate "$rate" --samples "$work/samples" --seconds "$latency_seconds"
	od -An -v -t u8 -w8 "$work/samples" | awk '{ printf "%.1f\n", $1 / 1000 }' |
		sort -n >"$work/sorted"
	for q in 500 990 999; do
		quantile "$q" <"$work/sorted" >>"$work/group-$q"
	done
}

lines_as_array()
{
	printf '[%s]' "$(paste -sd, "$1")"
}

# cpu_ticks: prints on one line the ticks that all CPUs have counted, the ticks that they were
# idle, and the ticks that the processes of this pid namespace, including ended children, have
# used. Kernel threads count as other processes, also those that forward frames for a --netns rack.
cpu_ticks()
{
	local own

	own=$(cat /proc/[0-9]*/stat 2>/dev/null |
		awk '{ sub(/.*\) /, ""); s += $12 + $13 + $14 + $15 } END { print s + 0 }')
	awk -v own="$own" '
		/^cpu / { for (i = 2; i <= 9; i++) s += $i; print s, $5 + $6, own }' /proc/stat
}

# foreign_share BEFORE AFTER: prints the share of the machine's CPU time that other processes used
# between the two outputs of cpu_ticks.
foreign_share()
{
	printf '%s\n%s\n' "$1" "$2" | awk '
		NR == 1 { all = $1; idle = $2; own = $3 }
		NR == 2 {
			d = $1 - all
			f = d > 0 ? 1 - ($2 - idle + $3 - own) / d : 0
			printf "%.3f\n", f < 0 ? 0 : f
		}'
}

measure()
{
	local n=$1 r q total per p50 p99 rest50 rest99 retransmits share ticks grouped=

	if ((${#netns[@]} == 0)); then
		build_rack "$n"
	fi
	start_corosync "$n"
	: >"$work/totals"
	: >"$work/raw"
	: >"$work/latency"
	: >"$work/rested"
	: >"$work/shares"
	for q in 500 990 999; do
		: >"$work/group-$q"
	done
	for ((r = 1; r <= runs; r++)); do
		ticks=$(cpu_ticks)
		run "$n" "load$r" --inflight "$inflight" --seconds "$seconds"
		foreign_share "$ticks" "$(cpu_ticks)" >>"$work/shares"
		cat "$work/result" >>"$work/raw"
		field deliveries_per_s <"$work/result" |
			awk '{ s += $1 } END { printf "%.0f\n", s }' >>"$work/totals"
		run "$n" "idle$r" --latency --gap-us "$gap_us" --seconds "$latency_seconds"
		grep '"p50_us"' "$work/result" >>"$work/latency"
		run "$n" "rest$r" --latency --gap-us "$rest_us" --seconds "$latency_seconds"
		grep '"p50_us"' "$work/result" >>"$work/rested"
		if ((rate)); then
			group "$n" "$r"
		fi
	done
	# A retransmit list in the log means that the kernel dropped frames: the window is then too
	# large for the machine.
	retransmits=$(cat "$work"/[0-9]*/corosync.log | grep -c 'Retransmit List' || :)
	keep_logs "$n"
	stop_corosync
	drop_rack
	share=$(median <"$work/shares")
	if awk -v s="$share" 'BEGIN { exit !(s > 0.1) }'; then
		printf 'corosync.sh: %d nodes: others used %s of the CPU time during the runs; ' \
			"$n" "$share" >&2
		printf 'the figures are too low\n' >&2
	fi
	total=$(median <"$work/totals")
	per=$(awk -v t="$total" -v n="$n" 'BEGIN { printf "%.0f", t / n }')
	p50=$(field p50_us <"$work/latency" | median)
	p99=$(field p99_us <"$work/latency" | median)
	rest50=$(field p50_us <"$work/rested" | median)
	rest99=$(field p99_us <"$work/rested" | median)
	printf '%d,%.0f,%d,%.1f\n' "$n" "$total" "$per" "$p50"
	if ((rate)); then
		printf 'group,%d,%d,%s,%s,%s\n' "$n" "$rate" "$(median <"$work/group-500")" \
			"$(median <"$work/group-990")" "$(median <"$work/group-999")"
		grouped=$(printf ',"group_rate":%d,"group_p50_us":%s,"group_p99_us":%s' "$rate" \
			"$(lines_as_array "$work/group-500")" "$(lines_as_array "$work/group-990")"
			printf ',"group_p999_us":%s' "$(lines_as_array "$work/group-999")")
	fi
	{
		printf '%s\n  {"nodes":%d,' "$separator" "$n"
		printf '"total_deliveries_per_s":%.0f,"per_node_deliveries_per_s":%d,' \
			"$total" "$per"
		printf '"idle_latency_p50_us":%.1f,"idle_latency_p99_us":%.1f,' "$p50" "$p99"
		printf '"rested_latency_p50_us":%.1f,"rested_latency_p99_us":%.1f,' \
			"$rest50" "$rest99"
		printf '"retransmit_lists":%d,"foreign_cpu_share":%s,' "$retransmits" "$share"
		printf '"run_totals":%s,' "$(lines_as_array "$work/totals")"
		printf '"run_foreign_cpu_shares":%s,' "$(lines_as_array "$work/shares")"
		printf '"clients":%s,' "$(lines_as_array "$work/raw")"
		printf '"latency":%s,' "$(lines_as_array "$work/latency")"
		printf '"rested":%s%s}' "$(lines_as_array "$work/rested")" "$grouped"
	} >&3
	separator=,
}

inner()
{
	local n load fabric=bridge separator=

	if [[ -z $client ]]; then
		client=$here/../build/corosync_cpg
	fi
	mount --make-rprivate /
	adopt_rack
	mount -t tmpfs tmpfs /run
	mkdir -p "$work" /run/netns /run/corosync
	mount -t proc proc /proc
	trap 'exit 130' INT TERM
	if [[ ! -x $client ]]; then
		client=$work/corosync_cpg
		gcc -std=gnu11 -O2 -Wall -Wextra "$here/corosync_cpg.c" -lcpg -o "$client" ||
			die "cannot compile corosync_cpg.c; install libcpg-dev and gcc," \
				"or pass --client"
	fi
	if ((${#netns[@]})); then
		fabric=given
	fi
	read -r load _ </proc/loadavg
	{
		printf '{"schema":1,"bench":"corosync","kernel":"%s","cpus":%d,' \
			"$(uname -r)" "$(nproc)"
		printf '"load1_at_start":%s,"corosync":"%s",' \
			"$load" "$(corosync -v | sed -n "1s/.*'\(.*\)'.*/\1/p")"
		printf '"runs":%d,"seconds":%s,"inflight":%d,"size_bytes":%d,' \
			"$runs" "$seconds" "$inflight" "$size"
		printf '"gap_us":%d,"rest_us":%d,"fabric":"%s",' "$gap_us" "$rest_us" "$fabric"
		printf '"tuning":"%s","results":[' \
			"$(corosync_tuning | paste -sd';' | tr -d '\t')"
	} >&3
	for n in ${nodes//,/ }; do
		measure "$n"
	done
	printf '\n]}\n' >&3
}

parse "$@"
if [[ -n $tag ]]; then
	inner
else
	outer "$@"
fi
