#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh [BUILD] - run every fuzzer for a while (`make fuzz`) and print "fuzz: N passed, N failed".
#
# Environment:
#   FUZZ_SECONDS	seconds for each fuzzer (10)
#   FUZZERS		the fuzzers to run ("parse body"); default: all of tests/fuzz/fuzz_*.c
#   JOBS		number of fuzzers at a time (2)
#
# The corpora grow in build/tests/fuzz/corpus. An input that breaks something is kept in
# build/tests/fuzz/found; `build/tests/fuzz/fuzz_NAME FILE` repeats it. Exit: 0 all passed, 1 not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" 2>/dev/null && pwd) ||
	{ echo "fuzz: no folder ${1:-build}; run make fuzz" >&2; exit 1; }
dir=$build/tests/fuzz
seconds=${FUZZ_SECONDS:-10}
[[ ${JOBS:=2} =~ ^[1-9][0-9]*$ ]] ||
	{ echo "fuzz: JOBS=$JOBS is not a number from 1 on" >&2; exit 1; }
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

# fuzz_one NAME: runs one fuzzer and creates the file NAME.passed if it has passed.
fuzz_one() {
	local name=$1 log=$dir/$1.log rc=0 runs
	if [ ! -x "$dir/fuzz_$name" ]; then
		echo "fuzz: $dir/fuzz_$name is not built; run make fuzz" >&2
		return
	fi
	mkdir -p "$dir/corpus/$name" "$dir/seed/$name"
	# An input takes milliseconds. The timeout is this long because a virtual machine that was
	# paused for 39 s (seen 2026-11) is no reason to fail.
	"$dir/fuzz_$name" -max_total_time="$seconds" -timeout=90 \
		-dict="$dir/seed/barline.dict" -max_len=2048 -print_final_stats=1 \
		-artifact_prefix="$dir/found/$name-" \
		"$dir/corpus/$name" "$dir/seed/$name" >"$log" 2>&1 || rc=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
	# A fuzzer that executed almost no input has not passed.
	if [ "$rc" != 0 ] || [ "${runs:-0}" -lt 1000 ]; then
		echo "fuzz: $name failed (status $rc, ${runs:-0} inputs); the end of $log:" >&2
		{
			grep -m 3 -E "broken:|ERROR:|runtime error:" "$log"
			grep -vE "NEW|REDUCE|pulse" "$log" | tail -n 40
		} >&2 || true
		return
	fi
	: >"$dir/$name.passed"
}

rm -f "$dir"/*.passed
for name in "${names[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do
		wait -n || true # NAME.passed has the result
	done
	fuzz_one "$name" &
done
wait
for name in "${names[@]}"; do
	if [ -e "$dir/$name.passed" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
