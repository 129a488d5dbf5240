#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh BUILD - run the measurements, each beside its peer in the same run.
#
# The script prints medians and keeps data and plots in BUILD/bench/out. These are the parts:
#
#   switch      the cost per frame of the switch program beside a bare redirect
#               (bpf_prog_test_run)
#   rack        delivered messages per second, all to all, 64 bytes, on 2, 4, 8 and 16 hosts, beside
#               Corosync's closed process groups: with one message per call, as Corosync sends, and
#               with batches of 32; best effort and reliable
#   group       8 hosts that each send 1000 messages a second: latency of the others' messages in
#               order, best effort and reliable, beside Corosync and beside plain UDP, which has no
#               order
#   latency     one-way latency of ordered messages on an idle rack of 8 beside unordered UDP
#   memory      the maps of a 64-port switch and of a host with 64 endpoints
#   admission   unmodified iperf3 (incast, outcast, shuffle; TCP and UDP) and memcached on 8 hosts
#               with metered ports; each run measures every admission policy
#   strangers   the throughput of other connections while one host sends to stations that do not
#               exist (600 datagrams, 10000 stations), and of 400 connections at once, under every
#               policy (bench/strangers.sh); if BEFORE names the build of an earlier version, beside
#               that version
#   bulk        one TCP flow on an unmetered link: the plain kernel beside hold queue and pacer
#   arbiter     Fastpass's timeslot allocation and path selection on one core; every slot is
#               verified
#   fastpass    five senders that come and go, with echoes and a queue beside them, under the
#               policies none and fastpass (Fastpass 7.1, A to C); 50 takeovers, on a rack and on a
#               leaf-spine
#   reliable    reliable 1Pipe beside best effort on a rack of 8: delivered messages per second in
#               pairs of runs; throughput and one-way latency against the share of frames that hosts
#               lose (1Pipe, figure 9b)
#   recovery    reliable scatterings of every host to every host while a component dies: the time
#               from the kill until the last correct host delivers again, by kind of failure and
#               number of hosts, and its breakdown (1Pipe, figure 10)
#   living      the same hosts while one process is stopped for 12 s, or ends in an orderly way: how
#               long the others deliver nothing, and how fast they deliver afterwards
#   fct         flows with web-search-like and data-mining-like sizes that arrive as a Poisson
#               process at load 0.6 on a dumbbell of 8 hosts: completion times and slowdowns of
#               every policy
#
# These environment variables may be set; the defaults are in parentheses:
#
#   all         RUNS (3), SECONDS_EACH (5), NODES ("2 4 8 16"), PARTS (all of the above)
#   admission,  ADM_SECONDS (10), ADM_RATE (250mbit), ADM_SHUFFLE_RATE (25mbit: eight receivers at
#   bulk        once, which two cores must carry), ADM_POLICIES
#               ("none,pl2,pl2:joint,pl2:bitmap,fastpass")
#   reliable    REL_PAIRS (12), REL_SECONDS (2), REL_SAMPLES (2000), REL_LOSSES
#               ("0 1e-6 1e-5 1e-4 1e-3 1e-2 1e-1")
#   recovery,   REC_RUNS (9), REC_HOSTS ("4 8 16"), REC_KINDS (all failures that failover --kill
#   living      knows), LIVE_KINDS ("stop leave"), REC_DEAD_US (20000: the silence in microseconds
#               after which a host or link counts as dead)
#   fct         FCT_FLOWS (1000), FCT_RATE (50mbit), FCT_POLICIES
#               ("top-1class:ns2,top-1class:paper,none,fastpass,top")
#
# Corosync and barline take turns, and so do policies, so that a noisy minute hits all of them.
# Nothing here is a test: nothing fails for being slow.
set -euo pipefail

build=$(cd "${1:?usage: bench/run.sh BUILD}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$build/bench/out
runs=${RUNS:-3}
seconds=${SECONDS_EACH:-5}
nodes=${NODES:-2 4 8 16}
all_parts="switch rack group latency memory admission strangers bulk arbiter fastpass reliable \
recovery living fct"
parts=${PARTS:-$all_parts}
adm_seconds=${ADM_SECONDS:-10}
adm_rate=${ADM_RATE:-250mbit}
adm_shuffle_rate=${ADM_SHUFFLE_RATE:-25mbit}
adm_policies=${ADM_POLICIES:-none,pl2,pl2:joint,pl2:bitmap,fastpass}
rel_pairs=${REL_PAIRS:-12}
rel_seconds=${REL_SECONDS:-2}
rel_samples=${REL_SAMPLES:-2000}
rel_losses=${REL_LOSSES-0 1e-6 1e-5 1e-4 1e-3 1e-2 1e-1}
rec_runs=${REC_RUNS:-9}
rec_hosts=${REC_HOSTS:-4 8 16}
rec_kinds=${REC_KINDS:-host link spine tor controller etcd-leader}
live_kinds=${LIVE_KINDS:-stop leave}
rec_dead_us=${REC_DEAD_US:-20000}
fct_flows=${FCT_FLOWS:-1000}
fct_rate=${FCT_RATE:-50mbit}
fct_policies=${FCT_POLICIES:-top-1class:ns2,top-1class:paper,none,fastpass,top}
mkdir -p "$out"

say() { [ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2; }
median() {
	sort -g | awk '
		{ v[NR] = $1 }
		END {
			if (NR)
				print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			else
				print "nan"
		}'
}
# first COMMAND...: runs COMMAND with priority over all other programs of the machine. nice alone
# has an effect only within one session where the kernel has autogroups.
first() {
	setsid -w bash -c '{ echo -20 >/proc/self/autogroup; } 2>/dev/null; exec nice -n -20 "$@"' \
		first "$@"
}
wanted() { [[ " $parts " == *" $1 "* ]]; }

part_switch() {
	say "switch program"
	"$build/bench/switch_cost" --json "$out/switch_cost.json"
	"$build/bench/host_cost" --json "$out/host_cost.json"
}

part_rack() {
	local n k batch how csv=$out/throughput.csv files row
	echo "nodes,best_effort,reliable,best_effort_batch_32,reliable_batch_32,corosync,\
best_effort_ratio,reliable_ratio" >"$csv"
	for n in $nodes; do
		rm -f "$out"/barline-"$n"-*.txt "$out/corosync-$n.txt"
		for ((k = 1; k <= runs; k++)); do
			for batch in 1 32; do
				for how in best-effort reliable; do
					row=rack-$n-$how-$batch-$k
					say "$n hosts, run $k of $runs:" \
						"barline, $how, $batch per call"
					stream "$how" "$seconds" 0 --hosts "$n" --batch "$batch" \
						--out "$out/$row" >"$out/$row.json" ||
						say "$n hosts, $how: see $out/$row.json"
					jq -r '.throughput.messages_per_s // empty' \
						"$out/$row.json" >>"$out/barline-$n-$how-$batch.txt"
				done
			done
			say "$n hosts, run $k of $runs: corosync"
			first bash "$here/corosync.sh" --client "$build/bench/corosync_cpg" \
				--nodes "$n" --runs 1 --seconds "$seconds" --latency-seconds 1 \
				--out "$out/corosync-$n-$k.json" >"$out/corosync-$n-$k.csv"
			tail -n 1 "$out/corosync-$n-$k.csv" | cut -d, -f2 >>"$out/corosync-$n.txt"
		done
		files=("$out/barline-$n-best-effort-1.txt" "$out/barline-$n-reliable-1.txt"
			"$out/barline-$n-best-effort-32.txt" "$out/barline-$n-reliable-32.txt"
			"$out/corosync-$n.txt")
		for how in "${files[@]}"; do
			median <"$how"
		done | paste -sd' ' | awk -v n="$n" '{
			printf "%d,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f,%.1f\n",
				n, $1, $2, $3, $4, $5, $1 / $5, $2 / $5
		}' >>"$csv"
	done
	say ""
	echo
	echo "delivered messages per second, all to all, 64 bytes, one per call and 32 per call;" \
		"ratios: one per call to Corosync, where there is no other way" \
		"(medians of $runs runs of $seconds s)"
	column -s, -t "$csv"
	if command -v gnuplot >/dev/null; then
		gnuplot -e "csv='$csv'; png='$out/throughput.png'" "$here/throughput.gp"
	fi
}

part_group() {
	local k how prio json
	for ((k = 1; k <= runs; k++)); do
		: >"$out/group-$k.csv"
		for how in best-effort reliable; do
			for prio in auto share; do
				json=$out/group-$how-$prio-$k.json
				say "group of 8, run $k of $runs: barline, $how, --realtime $prio"
				stream "$how" 0.5 0 --group 1000 --group-duration "$seconds" \
					--realtime "$prio" >"$json" ||
					say "group, $how: see $json"
				jq -r --arg prio "$prio" '.group[]? |
					["\(.mode) \($prio)", "8 x \(.rate)", .p50_ns / 1000,
					.p99_ns / 1000, .p999_ns / 1000, .lost] | join(",")' \
					"$json" >>"$out/group-$k.csv"
			done
		done
		say "group of 8, run $k of $runs: corosync"
		first bash "$here/corosync.sh" --client "$build/bench/corosync_cpg" --nodes 8 \
			--runs 1 --seconds 1 --latency-seconds "$seconds" --rate 1000 \
			--out "$out/group-corosync-$k.json" |
			sed -n 's/^group,8,1000,/Corosync,8 x 1000,/p' >>"$out/group-$k.csv"
	done
	say ""
	echo
	echo "all of 8 talk at 1000 messages a second each: latency of the others' messages, us" \
		"(medians of $runs runs of $seconds s)"
	results group | medians "p50,p99,p99.9,lost" each | sed '1s/^policy/group/' |
		tee "$out/group.csv" | column -s, -t
}

part_latency() {
	local k
	: >"$out/latency-all.csv"
	for ((k = 1; k <= runs; k++)); do
		say "latency, run $k of $runs"
		"$build/barline" -j lab run rack --hosts 8 --duration 1 --out "$out/latency-$k" \
			>"$out/latency-$k.json" </dev/null
		jq -r '.latency[] | [.mode, .p50_ns / 1000, .p99_ns / 1000] | join(",")' \
			"$out/latency-$k/summary.json" >>"$out/latency-all.csv"
	done
	say ""
	echo
	echo "one-way latency on the idle rack of 8, us (medians of $runs runs)"
	{
		echo "mode,p50,p99"
		cut -d, -f1 "$out/latency-all.csv" | sort -u | while read -r m; do
			printf '%s,%s,%s\n' "$m" \
				"$(grep "^$m," "$out/latency-all.csv" | cut -d, -f2 | median)" \
				"$(grep "^$m," "$out/latency-all.csv" | cut -d, -f3 | median)"
		done
	} | tee "$out/latency.csv" | column -s, -t
	if command -v gnuplot >/dev/null; then
		gnuplot -e "dir='$out/latency-1'" "$here/latency.gp"
	fi
}

part_arbiter() {
	local what
	mkdir -p "$out/arbiter"
	for what in alloc path; do
		say "arbiter bench $what"
		echo
		"$build/barline" arbiter bench "$what" --out "$out/arbiter" </dev/null
	done
}

part_fastpass() {
	local k kind
	for ((k = 1; k <= runs; k++)); do
		say "fairness, run $k of $runs"
		mkdir -p "$out/fairness-$k"
		"$build/barline" -j lab run fairness --policy none,fastpass --step "$seconds" \
			--out "$out/fairness-$k" >"$out/fairness-$k.json" </dev/null
	done
	say ""
	echo
	echo "five TCP senders to one receiver, links of 250 Mbit/s" \
		"(medians of $runs runs, steps of $seconds s)"
	{
		echo "policy,stddev3_mbit,stddev4_mbit,stddev5_mbit,sum5_mbit,queue_p50,queue_p99,\
rtt_p50_us,rtt_p99_us"
		for kind in none fastpass; do
			printf '%s' "$kind"
			for what in .stddev_3_mbit .stddev_4_mbit .stddev_5_mbit .sum_5_mbit \
				.queue_p50_frames .queue_p99_frames \
				.rtt_p50_ns/1000 .rtt_p99_ns/1000; do
				printf ',%s' "$(jq -s -r \
					".[].fairness[] | select(.policy == \"$kind\") | $what" \
					"$out"/fairness-[0-9]*.json | median)"
			done
			echo
		done
	} | tee "$out/fairness.csv" | column -s, -t
	for kind in rack leaf-spine; do
		say "failover, $kind"
		mkdir -p "$out/failover-$kind"
		echo
		echo "takeovers of Fastpass's arbiter, $kind:" \
			"from the kill to the first slot from the other one"
		"$build/barline" lab run failover "$kind" --runs 50 --out "$out/failover-$kind" \
			</dev/null
	done
}

part_memory() {
	local lab=bench-$$ mib
	say "memory: a rack of 64 hosts"
	"$build/barline" lab up "$lab" rack --hosts 64 >/dev/null </dev/null
	# shellcheck disable=SC2064
	trap "'$build/barline' lab down '$lab' >/dev/null 2>&1" EXIT
	"$build/barline" lab exec "$lab" h1 -- bash -c "
		for i in \$(seq 64); do '$build/barline' recv -t 20000 >/dev/null 2>&1 & done
		sleep 5
		'$build/barline' -j show maps" >"$out/host-maps.json" </dev/null
	"$build/barline" lab exec "$lab" s1 -- "$build/barline" -j show maps \
		>"$out/switch-maps.json" </dev/null
	"$build/barline" lab down "$lab" >/dev/null
	trap - EXIT
	say ""
	echo
	echo "maps, MiB (limit 64)"
	mib='[.maps[].bytes] | add / 1048576 * 100 | round / 100'
	printf 'host with 64 endpoints  %s\n64-port switch          %s\n' \
		"$(jq "$mib" "$out/host-maps.json")" "$(jq "$mib" "$out/switch-maps.json")"
}

# results NAME: prints the rows that the runs have left in OUT/NAME-K.csv.
results() {
	local k
	for ((k = 1; k <= runs; k++)); do
		cat "$out/$1-$k.csv"
	done
}

# medians FIELDS [SECOND]: turns rows "policy,transport,value,..." into a table with the median of
# each value over the runs, or "-" where there is no value. FIELDS are the names of the values;
# SECOND is the name of the second column (default: transport).
medians() {
	awk -F, -v fields="$1" -v second="${2:-transport}" '
		function median(list,    v, n, i, j, t) {
			n = split(list, v, " ")
			if (!n)
				return "-"
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) {
					t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
				}
			t = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
			return t == int(t) ? t : sprintf(t < 10 ? "%.3f" : "%.1f", t)
		}
		BEGIN { print "policy," second "," fields }
		{
			key = $1 "," $2
			if (!(key in seen)) {
				seen[key] = 1
				order[++keys] = key
			}
			for (i = 3; i <= NF; i++)
				if ($i != "")
					values[key, i] = values[key, i] " " $i
			if (NF > width)
				width = NF
		}
		END {
			for (k = 1; k <= keys; k++) {
				line = order[k]
				for (i = 3; i <= width; i++)
					line = line "," median(values[order[k], i])
				print line
			}
		}'
}

# workload NAME ARGUMENT...: runs `barline lab run NAME` RUNS times; its data is in OUT/NAME-K.
workload() {
	local name=$1 k
	shift
	for ((k = 1; k <= runs; k++)); do
		say "$name, run $k of $runs"
		"$build/barline" -j lab run "$name" --seconds "$adm_seconds" --out "$out/$name-$k" \
			"$@" >"$out/$name-$k.json" </dev/null
		jq -r '.results[] | [.policy, .transport, .goodput_mbit, .goodput_percent,
			.switch_drops, .hold_drops, .queue_p50_frames, .queue_p99_frames,
			.queue_p999_frames, .queue_max_frames, .retransmits, .jitter_ms] |
			map(. // "") | join(",")' "$out/$name-$k/summary.json" >"$out/$name-$k.csv"
	done
	say ""
}

part_admission() {
	local name rate k
	for name in incast outcast shuffle; do
		rate=$adm_rate
		[ "$name" != shuffle ] || rate=$adm_shuffle_rate
		workload "$name" --hosts 8 --rate "$rate" --policy "$adm_policies" \
			--transport tcp,udp
		echo
		echo "$name on 8 hosts, links of $rate" \
			"(medians of $runs runs of $adm_seconds s; queues in full frames)"
		results "$name" | medians "Mbit/s,of_rate_%,drops,hold_drops,queue_p50,p99,p99.9,\
max,retransmits,jitter_ms" | tee "$out/$name.csv" | column -s, -t
	done
	workload memcached --hosts 8 --rate "$adm_rate" --policy "$adm_policies" --transport tcp,udp
	for ((k = 1; k <= runs; k++)); do
		jq -r '.memcached[] | ["\(.policy) \(.value_bytes)", .transport, .p50_ns / 1000,
			.p99_ns / 1000, .p999_ns / 1000, .max_ns / 1000, .per_s, .unanswered] |
			join(",")' \
			"$out/memcached-$k/summary.json" >"$out/memcached-get-$k.csv"
	done
	echo
	echo "memcached: latency of a GET by size of the value beside bulk data, us" \
		"(medians of $runs runs of $adm_seconds s)"
	results memcached-get | medians "p50,p99,p99.9,greatest,per_s,unanswered" |
		tee "$out/memcached.csv" | column -s, -t
}

# Takes turns with the earlier version that BEFORE names, if it is set.
part_strangers() {
	local k what
	for ((k = 1; k <= runs; k++)); do
		: >"$out/strangers-$k.csv"
		for what in ${BEFORE:+before} now; do
			say "strangers, $what, run $k of $runs"
			first bash "$here/strangers.sh" \
				"$([ "$what" = now ] && echo "$build" || echo "$BEFORE")" \
				--out "$out/strangers-$what-$k" </dev/null \
				>"$out/strangers-$what-$k.log"
			sed "1d; s/,/,$what,/" "$out/strangers-$what-$k/strangers.csv" \
				>>"$out/strangers-$k.csv"
		done
	done
	say ""
	echo
	echo "one of four hosts sends to stations that do not exist, links of 100 Mbit/s:" \
		"its TCP to a host it has not talked to before, Mbit/s;"
	echo "400 connections at once, Mbit/s and how many carried nothing;" \
		"growth of memory, MiB (medians of $runs runs)"
	results strangers |
		medians "alone,dead,ten_thousand,connections,carried_nothing,grown_MiB" version |
		tee "$out/strangers.csv" | column -s, -t
}

part_bulk() {
	local k
	# One sender and one receiver are an incast of one.
	for ((k = 1; k <= runs; k++)); do
		say "bulk, run $k of $runs"
		"$build/barline" -j lab run incast --hosts 2 --unmetered --policy off,none \
			--transport tcp --seconds "$adm_seconds" --out "$out/bulk-$k" \
			>"$out/bulk-$k.json" </dev/null
		jq -r '.results[] | [.policy, .transport, .goodput_bps / 1e9, .switch_drops,
			.hold_drops, .retransmits] | map(. // "") | join(",")' \
			"$out/bulk-$k/summary.json" >"$out/bulk-$k.csv"
	done
	say ""
	echo
	echo "one TCP flow on an unmetered link (medians of $runs runs of $adm_seconds s)"
	results bulk | medians "Gbit/s,drops,hold_drops,retransmits" | tee "$out/bulk.csv" |
		column -s, -t
}

# stream NAME SECONDS SAMPLES ARGUMENT...: runs NAME ("best-effort" or "reliable") once on a rack
# of 8 and prints the summary.
stream() {
	local name=$1 seconds=$2 samples=$3 how=()
	shift 3
	[ "$name" != reliable ] || how=(--reliable)
	first "$build/barline" -j lab run rack --hosts 8 --duration "$seconds" \
		--samples "$samples" "${how[@]}" "$@" </dev/null
}

part_reliable() {
	local k p s json csv=$out/reliable-throughput.csv
	echo "best_effort_per_s,reliable_per_s,ratio" >"$csv"
	for ((k = 1; k <= rel_pairs; k++)); do
		for s in best-effort reliable; do
			say "$s, pair $k of $rel_pairs"
			stream "$s" "$rel_seconds" 0 >"$out/pair-$s-$k.json" ||
				say "$s, pair $k: see $out/pair-$s-$k.json"
		done
		jq -s -r 'map(.throughput.messages_per_s) | select(all(.)) |
			[.[0], .[1], .[1] / .[0]] | join(",")' \
			"$out/pair-best-effort-$k.json" "$out/pair-reliable-$k.json" >>"$csv"
	done
	say ""
	if [ "$rel_pairs" -gt 0 ]; then
		echo
		echo "delivered messages per second, all to all on 8 hosts, 64 bytes" \
			"(medians of $rel_pairs pairs of runs of $rel_seconds s)"
		{
			echo "best_effort,reliable,ratio"
			printf '%.0f,%.0f,%.3f\n' "$(sed 1d "$csv" | cut -d, -f1 | median)" \
				"$(sed 1d "$csv" | cut -d, -f2 | median)" \
				"$(sed 1d "$csv" | cut -d, -f3 | median)"
		} | column -s, -t
	fi
	for ((k = 1; k <= runs; k++)); do
		: >"$out/reliable-loss-$k.csv"
		for p in $rel_losses; do
			for s in best-effort reliable; do
				say "$s, loss $p, run $k of $runs"
				json=$out/loss-$s-$p-$k.json
				stream "$s" 1 "$rel_samples" --loss "$p" >"$json" ||
					say "$s, loss $p, run $k: see $json"
				jq -r --arg s "$s" --arg p "$p" 'select(.throughput and .latency) |
					(.latency | map({(.mode): .}) | add) as $l |
					$l["ordered blocking"] as $b |
					$l["ordered busy-poll"] as $y |
					[$s, $p, .throughput.messages_per_s, .order.missing,
					$b.p50_ns / 1000, $b.p99_ns / 1000,
					$y.p50_ns / 1000, $y.p99_ns / 1000,
					$l["plain UDP blocking"].p50_ns / 1000,
					$l["plain UDP busy-poll"].p50_ns / 1000] | join(",")' \
					"$json" >>"$out/reliable-loss-$k.csv"
			done
		done
	done
	say ""
	[ -n "$rel_losses" ] || return 0
	echo
	echo "throughput and one-way latency against loss, rack of 8, us (medians of $runs runs;" \
		"$rel_samples messages for each latency; plain UDP beside them)"
	results reliable-loss |
		medians "per_s,missing,p50,p99,poll_p50,poll_p99,udp_p50,udp_poll_p50" loss |
		sed '1s/^policy/stream/' | tee "$out/reliable-loss.csv" | column -s, -t
	echo
	echo "what the reliable stream adds to best effort at p50 without loss," \
		"and two one-way trips of plain UDP, us"
	awk -F, '$2 == 0 { p[$1] = $5; y[$1] = $7; u[$1] = $9; v[$1] = $10 }
		END {
			printf "blocking   %.1f  %.1f\nbusy-poll  %.1f  %.1f\n",
				p["reliable"] - p["best-effort"], 2 * u["reliable"],
				y["reliable"] - y["best-effort"], 2 * v["reliable"]
		}' "$out/reliable-loss.csv"
}

# All hosts together send the same number of scatterings at every size of the rack. With a constant
# number per host a large rack would wait for the machine and not for the protocol. A run that does
# not end is reported with its log.
part_recovery() {
	local kind n file csv=$out/recovery.csv
	echo "kill,hosts,runs,recovered,max,told,detect,determine,save,collect,resume,announced,\
wrong" >"$csv"
	for kind in $rec_kinds; do
		for n in $rec_hosts; do
			say "recovery, $kind of $n hosts"
			file=$out/recovery-$kind-$n
			first "$build/barline" -j lab run failover --kill "$kind" --hosts "$n" \
				--runs "$rec_runs" --interval-us $((250 * n)) \
				--dead-after-us "$rec_dead_us" </dev/null \
				>"$file.json" 2>"$file.log" ||
				say "recovery, $kind of $n hosts: see $file.log"
			jq -r '.failover[]? |
				(.determine_p50_ms + .save_p50_ms + .collect_p50_ms +
				.resume_p50_ms) as $c |
				[.kill, .hosts, .runs, .recovered_p50_ms, .recovered_max_ms,
				.told_p50_ms, .recovered_p50_ms - $c, .determine_p50_ms,
				.save_p50_ms, .collect_p50_ms, .resume_p50_ms, .announced, .wrong] |
				map(if type == "number" then . * 100 | round / 100 else . end) |
				join(",")' "$file.json" >>"$csv"
		done
	done
	say ""
	echo
	echo "recovery after a kill, ms (medians of $rec_runs runs;" \
		"dead after $rec_dead_us us of silence;" \
		"detect: what the controller's own times leave of it)"
	column -s, -t "$csv"
}

part_living() {
	local kind n file csv=$out/living.csv
	echo "kill,hosts,runs,stood,max,before/s,after/s,gap_before,gap_after,announced,none,\
wrong" >"$csv"
	for kind in $live_kinds; do
		for n in $rec_hosts; do
			say "living, $kind of $n hosts"
			file=$out/living-$kind-$n
			first "$build/barline" -j lab run failover --kill "$kind" --hosts "$n" \
				--runs "$rec_runs" --interval-us $((250 * n)) \
				--dead-after-us "$rec_dead_us" </dev/null \
				>"$file.json" 2>"$file.log" ||
				say "living, $kind of $n hosts: see $file.log"
			jq -r '.failover[]? |
				[.kill, .hosts, .runs, .stood_p50_ms, .stood_max_ms,
				.before_p50_per_s, .after_p50_per_s, .gap_before_p50_ms,
				.gap_after_p50_ms, .announced, .none, .wrong] |
				map(if type == "number" then . * 100 | round / 100 else . end) |
				join(",")' "$file.json" >>"$csv"
		done
	done
	say ""
	echo
	echo "one process stands still for 12 s, or ends in order:" \
		"longest time without a delivery at one of the others, ms," \
		"and what each delivers of the others before and after it" \
		"(medians of $rec_runs runs)"
	column -s, -t "$csv"
}

# With these scales the mean flow has 170 kB (web search) and 150 kB (data mining). The longest flow
# of data mining takes 1.7 s on an idle network.
part_fct() {
	local sizes k scale json
	for sizes in websearch datamining; do
		scale=0.1
		[ "$sizes" != datamining ] || scale=0.02
		for ((k = 1; k <= runs; k++)); do
			say "fct, $sizes, run $k of $runs"
			json=$out/fct-$sizes-$k.json
			# A refused policy is missing in the tables; summary.json has the reason.
			first "$build/barline" -j lab run fct dumbbell --sizes "$sizes" \
				--scale "$scale" --load 0.6 --flows "$fct_flows" \
				--rate "$fct_rate" --seed "$k" --policy "$fct_policies" \
				--out "$out/fct-$sizes-$k" >"$json" </dev/null ||
				say "fct, $sizes, run $k: see $json"
			jq -r '.buckets[]? |
				[.policy, .size, .flows, .fct_mean_ns / 1e6, .fct_p99_ns / 1e6,
				.slowdown_mean, .slowdown_p50, .slowdown_p99] |
				map(. // "") | join(",")' \
				"$json" >"$out/fct-buckets-$sizes-$k.csv"
			jq -r '.results[]? | select(.refused == null) |
				[.policy, "all", .fct_mean_ns / 1e6, .slowdown_mean, .unfinished,
				.data_drops, .token_drops, .control_drops, .hold_drops,
				.queue_p99_frames, .queue_max_frames, .retransmits,
				.late_p99_ns / 1e6, .pacer_late_p99_ns / 1e6] |
				map(. // "") | join(",")' \
				"$json" >"$out/fct-policies-$sizes-$k.csv"
		done
		say ""
		echo
		echo "$sizes x $scale, $fct_flows flows at load 0.6, dumbbell of 8 hosts," \
			"links of $fct_rate (medians of $runs runs, each with its own trace; ms)"
		results "fct-buckets-$sizes" |
			medians "flows,fct_mean,fct_p99,slowdown_mean,slowdown_p50,slowdown_p99" \
				size |
			tee "$out/fct-$sizes.csv" | column -s, -t
		echo
		results "fct-policies-$sizes" |
			medians "fct_mean,slowdown_mean,unfinished,data_drops,token_drops,\
control_drops,hold_drops,queue_p99,queue_max,retransmits,late_p99,pacer_p99" flows |
			tee "$out/fct-$sizes-policies.csv" | column -s, -t
	done
}

for p in $all_parts; do
	if wanted "$p"; then
		"part_$p"
	fi
done
echo
echo "data and plots: $out"
