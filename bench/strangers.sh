#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# strangers.sh BUILD [--rate RATE] [--policies LIST] [--seconds S] [--out DIR] - measure what others
# get while one host sends to stations that do not answer.
#
# The script raises a rack of four hosts for each policy. Each row of the table has these columns:
#
#   alone        h1 sends TCP to h2 for S (3) seconds;
#   dead         h1 has sent 300 datagrams to 300 stations that do not exist, and 300 more from as
#                many ports to one of them, and then sends TCP to h3, which it has not talked to
#                before;
#   ten_thousand h1 has sent one datagram to each of 10000 such stations, and then sends TCP to h4,
#                which it has not talked to before either;
#   connections  h1 has 400 TCP connections to h2 at once for 4 S seconds.
#
# The output is a table in CSV: the Mbit/s of each, how many of the 400 connections carried nothing,
# and by how many MiB the memory of the rack's daemons grew. 0 Mbit/s means that iperf3 did not
# connect. BUILD may be the build of an earlier version, for a comparison. The script needs root,
# iperf3 and jq, and runs in namespaces of its own.
set -euo pipefail

usage() {
	echo "usage: bench/strangers.sh BUILD [--rate RATE] [--policies LIST] [--seconds S]" \
		"[--out DIR]" >&2
	exit 2
}
[ $# -ge 1 ] || usage
build=$(cd "$1" && pwd) || usage
shift
rate=100mbit policies=none,pl2,fastpass,top seconds=3 out=
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || usage
	case $1 in
	--rate) rate=$2 ;;
	--policies) policies=$2 ;;
	--seconds) seconds=$2 ;;
	--out) out=$2 ;;
	*) usage ;;
	esac
	shift 2
done
for tool in iperf3 jq "$build/barline"; do
	command -v "$tool" >/dev/null ||
		{ echo "bench/strangers.sh: there is no $tool" >&2; exit 1; }
done
if [ -z "${STRANGERS_APART-}" ]; then
	STRANGERS_APART=1 exec unshare --mount --propagation private --net bash "$0" "$build" \
		--rate "$rate" --policies "$policies" --seconds "$seconds" ${out:+--out "$out"}
fi
for dir in /run/netns /run/barline; do
	mkdir -p "$dir"
	mount -t tmpfs strangers "$dir"
done
ip link set lo up
work=$(mktemp -d)
lab=strangers
end() {
	"$build/barline" lab down "$lab" >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap end EXIT

say() { [ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2; }
# on HOST COMMAND...: runs COMMAND on HOST.
on() {
	local host=$1
	shift
	"$build/barline" lab exec "$lab" "$host" -- "$@"
}
# memory: prints the resident memory of the rack's processes in KiB.
memory() {
	local pid kib=0
	for pid in $("$build/barline" -j lab list |
		jq -r ".labs[] | select(.name == \"$lab\") | .pid"); do
		kib=$((kib + $(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")))
	done
	echo "$kib"
}
# datagrams FIRST COUNT: sends one datagram to each of COUNT stations, beginning with number FIRST.
datagrams() {
	local first=$1 count=$2
	on h1 bash -c '
		for ((i = $1; i < $1 + $2; i++)); do
			printf "neigh replace 10.78.%d.%d lladdr 02:de:ad:00:%02x:%02x %s\n" \
				$((128 + i / 200)) $((1 + i % 200)) $((i / 256)) $((i % 256)) \
				"dev bl0 nud permanent"
		done | ip -batch - || exit 1
		for ((i = $1; i < $1 + $2; i++)); do
			echo >"/dev/udp/10.78.$((128 + i / 200)).$((1 + i % 200))/9"
		done 2>/dev/null' datagrams "$first" "$count"
}
# mbit HOST: prints the Mbit/s of one TCP connection from h1 to HOST. 0 means that there was no
# connection, which is a result, too.
mbit() {
	local host=$1
	timeout $((seconds + 17)) "$build/barline" lab exec "$lab" h1 -- iperf3 -J \
		--connect-timeout 5000 -t "$seconds" -c "10.78.1.${host#h}" \
		>"$work/one.json" 2>/dev/null || true
	jq -rs '.[0].end.sum_received.bits_per_second // 0 | . / 1e4 | round / 100' "$work/one.json"
}
# connections: prints the Mbit/s of 4 times 100 connections to h2, and how many carried nothing.
connections() {
	local k pids=()
	for k in 1 2 3 4; do
		timeout $((4 * seconds + 40)) "$build/barline" lab exec "$lab" h1 -- iperf3 -J \
			-t $((4 * seconds)) -P 100 -p $((5300 + k)) -c 10.78.1.2 \
			>"$work/many-$k.json" 2>/dev/null &
		pids+=($!)
	done
	for k in "${pids[@]}"; do
		wait "$k" || true
	done
	# iperf3 runs until all sent data has arrived, so the time of the last one counts.
	jq -rs '[.[].end.streams[]?.receiver.bytes] as $got |
		([.[].end.sum_received.seconds] | max | if . > 0 then . else 1 end) as $s |
		[(($got | add // 0) * 8 / $s / 1e4 | round / 100),
		400 - ([$got[] | select(. > 0)] | length)] | join(",")' "$work"/many-*.json
}

table=$work/strangers.csv
echo "policy,alone,dead,ten_thousand,connections,carried_nothing,grown_MiB" >"$table"
for policy in ${policies//,/ }; do
	say "$policy: raising the rack"
	"$build/barline" lab up "$lab" --hosts 4 --admission "$policy" --rate "$rate" \
		>/dev/null </dev/null
	for h in 2 3 4; do
		on "h$h" iperf3 -s -D
	done
	for k in 1 2 3 4; do
		on h2 iperf3 -s -D -p $((5300 + k))
	done
	say "$policy: h1 to h2 alone"
	alone=$(mbit h2)
	before=$(memory)
	say "$policy: 600 datagrams to stations that do not exist"
	datagrams 0 300
	on h1 bash -c 'for ((i = 0; i < 300; i++)); do
		echo >/dev/udp/10.78.128.1/9
	done 2>/dev/null'
	dead=$(mbit h3)
	say "$policy: 10000 stations that do not exist"
	datagrams 1000 10000
	many=$(mbit h4)
	say "$policy: 400 connections"
	flows=$(connections)
	grown=$(awk "BEGIN { printf \"%.1f\", ($(memory) - $before) / 1024 }")
	echo "$policy,$alone,$dead,$many,$flows,$grown" >>"$table"
	"$build/barline" lab down "$lab" >/dev/null
done
say ""
[ -z "$out" ] || { mkdir -p "$out"; cp "$table" "$out/strangers.csv"; }
cat "$table"
