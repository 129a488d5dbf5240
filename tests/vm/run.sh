#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh - the program tests (build/tests/prog/*) and `barline doctor` on other kernels than this machine's: `make test-kernels`.
#
# Prints one line per kernel, "kernel-6.1: N passed, N failed", after the output of the programs that failed.
# Environment:
#   KERNELS	which ones ("6.1 6.12 7.2"); see fetch.sh
#   STRICT=1	a kernel that cannot be fetched is a failure; else only if none can
#   VERBOSE=1	show all output
#   JOBS	guests at a time (one per CPU)
#   BUILD	build folder (build)
#   VM_SECONDS	time limit of a guest (900)
#
# Exit: 0 all passed, 1 a test failed, none ran, or no kernel was to be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${BUILD:-$top/build}" 2>/dev/null && pwd) || { echo "vm: no folder ${BUILD:-$top/build}; run make first" >&2; exit 1; }
out=$build/tests/vm
limit=${VM_SECONDS:-900}

# judge LOG [SHOW]: "passed failed skipped" of a guest's output; with SHOW the output of the programs that did not end well instead. A program counts
# as one failure more if it ends in any other way than its tests say: a signal, tests announced and not run, no test at all, no end.
judge() {
	awk -v show="${2-}" '
		function close_program(rc) {
			wrong = rc == "none" || plan < 1 || ok + bad + skip != plan || (rc != 0) != (bad > 0)
			passed += ok; failed += bad + wrong; skipped += skip
			if (show && (bad || wrong)) printf "%s", text
			name = ""
		}
		/^# begin / { if (name != "") close_program("none"); name = $3; plan = ok = bad = skip = 0; text = "" }
		name != "" { text = text $0 "\n" }
		name == "" { next }
		/^1\.\.[0-9]+/ { plan += substr($1, 4) }
		/^ok .*# SKIP/ { skip++; next }
		/^ok / { ok++ }
		/^not ok / { bad++ }
		/^# end / { close_program($4) }
		END { if (name != "") close_program("none"); if (!show) print passed + 0, failed + 0, skipped + 0 }
	' "$1"
}

run_one() {
	local kernel=$1 log=$out/$1.log rc=0 passed failed skipped
	"$here/vm.sh" -k "$kernel" -d "$out/payload" -t "$limit" -o "$out/$kernel.console" -- sh ./guest-tests.sh >"$log" 2>"$out/$kernel.err" || rc=$?
	if [ "$rc" = 69 ]; then
		# one write per report: guests run side by side
		printf '%s\n' "$(cat "$out/$kernel.err"; echo "kernel-$kernel: NOT TESTED: the kernel could not be fetched")"
		echo none >"$out/$kernel.result"
		return
	fi
	read -r passed failed skipped < <(judge "$log")
	[ "$rc" = 0 ] || [ "$failed" != 0 ] || failed=1
	printf '%s\n' "$(
		if [ -n "${VERBOSE-}" ]; then cat "$log"; elif [ "$failed" != 0 ]; then judge "$log" show; fi
		cat "$out/$kernel.err"
		[ "$skipped" = 0 ] || echo "vm: kernel $kernel: $skipped tests skipped themselves"
		echo "kernel-$kernel: $passed passed, $failed failed"
	)"
	echo "$passed $failed" >"$out/$kernel.result"
}

if [ "${1-}" = --one ]; then
	run_one "$2"
	exit
fi

read -r -a kernels <<<"${KERNELS:-6.1 6.12 7.2}"
[ ${#kernels[@]} -gt 0 ] || { echo "vm: KERNELS names no kernel" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out/payload/prog"
absent=0
for source in "$top"/tests/prog/test_*.c; do
	[ -e "$source" ] || continue
	name=$(basename "$source" .c)
	[ -x "$build/tests/prog/$name" ] || { echo "vm: $build/tests/prog/$name is not built; run make first" >&2; absent=1; }
done
[ "$absent" = 0 ] || exit 1
for file in "$build"/tests/prog/*; do
	# objects and dependency files lie beside the programs
	[ -f "$file" ] && [ -x "$file" ] && cp "$file" "$out/payload/prog/"
done
if [ -z "$(ls "$out/payload/prog")" ]; then
	echo "vm: no program tests in $build/tests/prog; run make first" >&2
	exit 1
fi
[ ! -x "$build/barline" ] || cp "$build/barline" "$out/payload/"
mkdir -p "$out/payload/docs"
cp "$top"/docs/*.yaml "$out/payload/docs/" # test_config reads the examples
cp "$here/guest-tests.sh" "$out/payload/"

printf '%s\n' "${kernels[@]}" | BUILD=$build xargs -P "${JOBS:-$(nproc)}" -n 1 "$here/run.sh" --one || true

tested=0 untested=0 bad=0
for kernel in "${kernels[@]}"; do
	read -r passed failed 2>/dev/null <"$out/$kernel.result" || { passed=0 failed=1; }
	if [ "$passed" = none ]; then
		untested=$((untested + 1))
		continue
	fi
	tested=$((tested + 1))
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ] || bad=1
done
rm -rf "$out/payload"
if [ "$tested" = 0 ]; then
	echo "vm: no kernel could be tested" >&2
	exit 1
fi
if [ "$untested" -gt 0 ] && [ "${STRICT:-0}" = 1 ]; then
	echo "vm: $untested of ${#kernels[@]} kernels could not be fetched, and STRICT=1 asks for all" >&2
	exit 1
fi
exit "$bad"
