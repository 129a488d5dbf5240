#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh [--campaign] [BUILD] - run every fuzzer for a while (`make fuzz`) and print, for each, how
# many inputs it has run, the edges of the code that it reached, how many of them no stored input
# reached before, and how many inputs it has kept. The last line is "fuzz: N passed, N failed".
#
# --campaign (`make fuzz-campaign`): ten minutes for each fuzzer, on all CPUs; then, as root, the
# programs in the kernel against those compiled natively for as long; then the inputs that are worth
# it go into tests/fuzz/corpus/NAME/. On a terminal, the last line says what runs at the moment.
#
# Environment:
#   FUZZ_SECONDS	seconds for each fuzzer (10; 600)
#   FUZZERS		the fuzzers to run ("parse body"); default: all of tests/fuzz/fuzz_*.c
#   JOBS		number of fuzzers at a time (2; the number of CPUs)
#   KEEP		campaign: inputs of a fuzzer that the tree has at most (24); 0: as they are
#
# The corpora grow in build/tests/fuzz/corpus. An input that breaks something is kept in
# build/tests/fuzz/found; `build/tests/fuzz/fuzz_NAME FILE` repeats it. Exit: 0 all passed, 1 not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
campaign=
if [ "${1-}" = --campaign ]; then
	campaign=1
	shift
fi
build=$(cd "${1:-$here/../../build}" 2>/dev/null && pwd) ||
	{ echo "fuzz: no folder ${1:-build}; run make fuzz" >&2; exit 1; }
dir=$build/tests/fuzz
seconds=${FUZZ_SECONDS:-${campaign:+600}}
seconds=${seconds:-10}
cpus=$(nproc)
[[ ${JOBS:=${campaign:+$cpus}} =~ ^[1-9][0-9]*$ ]] || [ -z "$JOBS" ] ||
	{ echo "fuzz: JOBS=$JOBS is not a number from 1 on" >&2; exit 1; }
JOBS=${JOBS:-2}
[[ ${KEEP:=24} =~ ^[0-9]+$ ]] || { echo "fuzz: KEEP=$KEEP is not a number" >&2; exit 1; }
passed=0 failed=0

if [ -n "${FUZZERS-}" ]; then
	read -r -a names <<<"$FUZZERS"
else
	names=()
	for source in "$here"/fuzz_*.c; do
		name=${source##*/fuzz_}
		names+=("${name%.c}")
	done
fi

mkdir -p "$dir/found"
# seeds.c is built here: without libFuzzer's main() it needs none of the fuzzers' flags.
# shellcheck disable=SC2086 # CC may be "ccache gcc"
${CC:-cc} -std=gnu11 -Wall -Wextra -I"$here/../.." -o "$dir/seeds" "$here/seeds.c"
"$dir/seeds" "$dir/seed"
# The copy of the dictionary in the tree is for people and other tools; it must match the header.
if ! cmp -s "$dir/seed/barline.dict" "$here/barline.dict"; then
	echo "fuzz: tests/fuzz/barline.dict differs from maps/wire_abi.h;" \
		"copy $dir/seed/barline.dict over it" >&2
	failed=$((failed + 1))
fi

# stat LOG NAME: a number of libFuzzer's; the last one is that of the whole run
stat() {
	sed -n "s/^stat::$2: *//p" "$1" | tail -n 1
}

# coverage LOG: the edges that were reached by the inputs that were there, and by all
coverage() {
	awk '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1)
		if ($2 == "INITED") before = cov }
		END { print before + 0, cov + 0 }' "$1"
}

# fuzz_one NAME: runs one fuzzer and creates the file NAME.passed if it has passed.
fuzz_one() {
	local name=$1 log=$dir/$1.log rc=0 runs before after folders
	if [ ! -x "$dir/fuzz_$name" ]; then
		echo "fuzz: $dir/fuzz_$name is not built; run make fuzz" >&2
		return
	fi
	mkdir -p "$dir/corpus/$name" "$dir/seed/$name"
	folders=("$dir/corpus/$name" "$dir/seed/$name")
	[ ! -d "$here/corpus/$name" ] || folders+=("$here/corpus/$name")
	# An input takes milliseconds. The timeout is this long because a virtual machine that was
	# paused for 39 s (seen 2026-11) is no reason to fail.
	"$dir/fuzz_$name" -max_total_time="$seconds" -timeout=90 \
		-dict="$dir/seed/barline.dict" -max_len=2048 -print_final_stats=1 \
		-artifact_prefix="$dir/found/$name-" "${folders[@]}" >"$log" 2>&1 || rc=$?
	runs=$(stat "$log" number_of_executed_units)
	# A fuzzer that executed almost no input has not passed.
	if [ "$rc" != 0 ] || [ "${runs:-0}" -lt 100 ]; then
		echo "fuzz: $name failed (status $rc, ${runs:-0} inputs); the end of $log:" >&2
		{
			grep -m 3 -E "broken:|ERROR:|runtime error:" "$log"
			grep -vE "NEW|REDUCE|pulse" "$log" | tail -n 40
		} >&2 || true
		return
	fi
	read -r before after < <(coverage "$log")
	printf '%s  %-10s %10d runs %5d edges %+5d %5d inputs\n' "${clear-}" "$name" "$runs" \
		"$after" $((after - before)) "$(find "$dir/corpus/$name" -type f | wc -l)"
	: >"$dir/$name.passed"
}

# native_one NAME: a test of programs in the kernel and natively, for as long as a fuzzer
native_one() {
	local name=$1 log=$dir/$1.log
	if BL_NATIVE_SECONDS=$seconds "$build/tests/prog/$name" >"$log" 2>&1; then
		sed -n "s/^[^:]*\([0-9]* frames in .*\)/  $name: \1/p" "$log"
		: >"$dir/$name.passed"
	else
		echo "fuzz: $name failed; the end of $log:" >&2
		tail -n 20 "$log" >&2
	fi
}

# say_running: what runs at the moment, and how far it is
say_running() {
	local file name
	for file in "$dir"/*.running; do
		name=${file##*/}
		name=${name%.running}
		[ ! -e "$file" ] || printf '%s %s  ' "$name" "$(
			sed -nE 's/^#([0-9]+).* cov: ([0-9]+).*/\1 runs, \2 edges/p' \
				"$dir/$name.log" 2>/dev/null | tail -n 1
		)"
	done
}

# On a terminal: what runs, in a line that the next one overwrites
clear='' progress=''
if [ -n "$campaign" ] && [ -t 1 ]; then
	clear=$'\r\e[K'
	(
		while sleep 2; do
			printf '%s%s' "$clear" "$(say_running | cut -c 1-100)"
		done
	) &
	progress=$!
	trap 'kill $progress 2>/dev/null' EXIT
fi

# run_all FUNCTION NAME...: JOBS at a time, and counts those that have passed
run_all() {
	local run=$1 name pids=()
	shift
	for name in "$@"; do
		while [ "${#pids[@]}" -ge "$JOBS" ]; do
			wait -n "${pids[@]}" || true # NAME.passed has the result
			local left=() pid
			for pid in "${pids[@]}"; do
				! kill -0 "$pid" 2>/dev/null || left+=("$pid")
			done
			pids=("${left[@]}")
		done
		{
			: >"$dir/$name.running"
			"$run" "$name"
			rm -f "$dir/$name.running"
		} &
		pids+=($!)
	done
	[ "${#pids[@]}" = 0 ] || wait "${pids[@]}" || true
	for name in "$@"; do
		if [ -e "$dir/$name.passed" ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
}

# keep_some NAME: at most KEEP inputs in the tree, those that together reach the most edges. Of the
# inputs that libFuzzer finds worth keeping, the one that adds most is taken, again and again.
keep_some() {
	local name=$1 merged=$dir/merged/$1 list=$dir/$1.merge
	rm -rf "$merged"
	mkdir -p "$merged" "$here/corpus/$name"
	"$dir/fuzz_$name" -merge=1 -use_counters=0 -max_len=512 -merge_control_file="$list" \
		"$merged" "$here/corpus/$name" "$dir/corpus/$name" >"$dir/$name.merge.log" 2>&1 ||
		return 0
	# the list: files, one a line, and then "COV number edge..." for each of them
	awk -v keep="$KEEP" '
		FNR == 1 { n = $1 }
		FNR > 2 && FNR <= 2 + n { file[FNR - 3] = $0 }
		$1 == "COV" || $1 == "FT" {
			for (i = 3; i <= NF; i++) edges[$2] = edges[$2] " " $1 $i
		}
		END {
			while (keep-- > 0) {
				best = -1; most = 0
				for (f in edges) {
					k = split(edges[f], e, " "); new = 0
					for (i = 1; i <= k; i++) new += !(e[i] in seen)
					if (new > most) { most = new; best = f }
				}
				if (best < 0) break
				k = split(edges[best], e, " ")
				for (i = 1; i <= k; i++) seen[e[i]] = 1
				delete edges[best]
				print file[best]
			}
		}' "$list" >"$list.kept"
	rm -rf "$dir/kept"
	mkdir -p "$dir/kept"
	while IFS= read -r file; do
		cp "$file" "$dir/kept/"
	done <"$list.kept"
	rm -rf "${here:?}/corpus/$name"
	mkdir -p "$here/corpus/$name"
	cp "$dir/kept/"* "$here/corpus/$name/" 2>/dev/null || true
	rm -f "$list" "$list.kept"
}

rm -f "$dir"/*.passed "$dir"/*.running
run_all fuzz_one "${names[@]}"
if [ -n "$campaign" ] && [ -z "${FUZZERS-}" ]; then
	if [ "$(id -u)" = 0 ]; then
		run_all native_one test_switch_native test_host_native
	else
		echo "fuzz: the programs in the kernel need root and were left out" >&2
	fi
fi
if [ -n "$campaign" ] && [ "$KEEP" != 0 ]; then
	for name in "${names[@]}"; do
		keep_some "$name"
	done
fi
[ -z "$campaign" ] || printf '%s  %s runs, %s findings in %s\n' "$clear" \
	"$(for name in "${names[@]}"; do stat "$dir/$name.log" number_of_executed_units; done |
		awk '{ n += $1 } END { print n + 0 }')" \
	"$(find "$dir/found" -type f | wc -l)" "$dir/found"
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
