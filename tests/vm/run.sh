#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh - run the program tests (build/tests/prog/*) and `barline doctor` on other kernels than
# this machine's, and the net tests (build/tests/net/*) that net-cases names: `make test-kernels`.
#
# Program tests run on two CPUs and in this machine's time. Net tests run in a guest of their own,
# in virtual time (vm.sh -i): these are whole racks, and neither the slow guest nor the load of
# this machine affects their packets, timers and timeouts.
#
# The script prints one line per guest, "kernel-6.1: N passed, N failed" and "kernel-6.1-net: N
# passed, N failed", after the output of the programs that failed, and the sum of all at the end.
#
# Environment:
#   KERNELS	the kernels ("6.1 6.12 7.2"); see fetch.sh
#   NET_KERNELS	the kernels of them that also run net tests ("6.1 6.12", as far as KERNELS has them)
#   NET		other net tests than those of net-cases, as NAME or NAME:CASE,CASE:
#		"test_top_token test_idle:sleeper__in_epoll"; "none": no net tests
#   NET_SHARE	with NET: n lets the tests send only one of n scatterings (1)
#   STRICT=1	a kernel that cannot be fetched is a failure; else it is one only if none can
#   VERBOSE=1	show all output
#   JOBS	guests at a time (one per CPU)
#   BUILD	build folder (build)
#   VM_SECONDS	limit of a guest with program tests, in seconds of CPU time (900)
#   NET_SECONDS	limit of a guest with net tests, likewise (3600; the cases of net-cases take 220 s
#		of virtual time and about as many of a CPU)
#
# Exit: 0 all passed; 1 a test failed, a guest died or hung, not all tests ran, or no kernel could
# be fetched.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${BUILD:-$top/build}" 2>/dev/null && pwd) ||
	{ echo "vm: no folder ${BUILD:-$top/build}; run make first" >&2; exit 1; }
out=$build/tests/vm
limit=${VM_SECONDS:-900} net_limit=${NET_SECONDS:-3600}

# judge LOG [SHOW]: prints "passed failed skipped" of a guest's output; with SHOW it prints the
# output of the failed programs instead. A program counts as one more failure if its end does not
# match its tests: after a signal, with tests that were announced and did not run, without any
# test, or without an end.
judge() {
	awk -v show="${2-}" '
		function close_program(rc) {
			wrong = rc == "none" || plan < 1 || ok + bad + skip != plan ||
				(rc != 0) != (bad > 0)
			passed += ok; failed += bad + wrong; skipped += skip
			if (show && (bad || wrong)) printf "%s", text
			name = ""
		}
		/^# begin / {
			if (name != "") close_program("none")
			name = $3; plan = ok = bad = skip = 0; text = ""
		}
		name != "" { text = text $0 "\n" }
		name == "" { next }
		/^1\.\.[0-9]+/ { plan += substr($1, 4) }
		/^(not )?ok .*# SKIP/ { skip++; next } # cmocka prints "not ok" for skipped tests
		/^ok / { ok++ }
		/^not ok / { bad++ }
		/^# end / { close_program($4) }
		END {
			if (name != "") close_program("none")
			if (!show) print passed + 0, failed + 0, skipped + 0
		}
	' "$1"
}

# run_one KERNEL[-net]: runs one guest and leaves "passed failed skipped", or "none" if the kernel
# could not be fetched, in GUEST.result.
run_one() {
	local guest=$1 kernel=${1%-net} log=$out/$1.log rc=0 passed failed skipped want
	if [ "$guest" = "$kernel" ]; then
		"$here/vm.sh" -k "$kernel" -d "$out/payload" -t "$limit" -o "$out/$guest.console" \
			-- sh ./guest-tests.sh >"$log" 2>"$out/$guest.err" || rc=$?
	else
		"$here/vm.sh" -i -k "$kernel" -d "$out/net-payload" -t "$net_limit" \
			-o "$out/$guest.console" \
			-- sh ./guest-net.sh >"$log" 2>"$out/$guest.err" || rc=$?
	fi
	if [ "$rc" = 69 ]; then
		# Each report is one write, because guests run side by side.
		printf '%s\n' "$(
			cat "$out/$guest.err"
			echo "kernel-$guest: NOT TESTED: the kernel could not be fetched"
		)"
		echo none >"$out/$guest.result"
		return
	fi
	read -r passed failed skipped < <(judge "$log")
	[ "$rc" = 0 ] || [ "$failed" != 0 ] || failed=1
	# The cases of a net test that were not requested are skipped; the requested ones must have
	# run.
	want=0
	if [ "$guest" != "$kernel" ]; then
		want=$(<"$out/cases.number") skipped=0
		if [ $((passed + failed)) -lt "$want" ]; then
			echo "vm: kernel $kernel: of $want cases only $((passed + failed)) ran" \
				>>"$out/$guest.err"
			failed=$((failed + 1))
		fi
	fi
	printf '%s\n' "$(
		if [ -n "${VERBOSE-}" ]; then
			cat "$log"
		elif [ "$failed" != 0 ]; then
			judge "$log" show
		fi
		cat "$out/$guest.err"
		[ "$skipped" = 0 ] || echo "vm: kernel $kernel: $skipped tests skipped themselves"
		echo "kernel-$guest: $passed passed, $failed failed"
	)"
	echo "$passed $failed $skipped" >"$out/$guest.result"
}

if [ "${1-}" = --one ]; then
	run_one "$2"
	exit
fi

read -r -a kernels <<<"${KERNELS:-6.1 6.12 7.2}"
[ ${#kernels[@]} -gt 0 ] || { echo "vm: KERNELS names no kernel" >&2; exit 1; }

# The program tests of a kernel are one guest, and its net tests are another one, which takes longer
# and is therefore started first.
net_guests=() guests=("${kernels[@]}")
if [ "${NET-}" != none ]; then
	for kernel in ${NET_KERNELS-6.1 6.12}; do
		for k in "${kernels[@]}"; do
			[ "$k" != "$kernel" ] || net_guests+=("$k-net")
		done
	done
fi

rm -rf "$out"
mkdir -p "$out/payload/prog" "$out/net-payload/net"
absent=0
while read -r source; do
	name=$(basename "$source" .c)
	[ -x "$build/tests/prog/$name" ] ||
		{ echo "vm: $build/tests/prog/$name is not built; run make first" >&2; absent=1; }
done < <(find "$top/tests/prog" -name 'test_*.c')
[ "$absent" = 0 ] || exit 1
for file in "$build"/tests/prog/*; do
	# Objects and dependency files lie beside the programs.
	[ -f "$file" ] && [ -x "$file" ] && cp "$file" "$out/payload/prog/"
done
if [ -z "$(ls "$out/payload/prog")" ]; then
	echo "vm: no program tests in $build/tests/prog; run make first" >&2
	exit 1
fi
[ ! -x "$build/barline" ] || cp "$build/barline" "$out/payload/"
mkdir -p "$out/payload/docs"
# test_config reads the examples, and test_settings the pages
cp "$top"/docs/*.yaml "$top"/docs/{configuration.md,barline.1,barlined.8} "$out/payload/docs/"
cp "$here/guest-tests.sh" "$out/payload/"

# Write the file "cases", whose lines are NAME SHARE [CASE]..., and count the cases.
number=0
if [ ${#net_guests[@]} -gt 0 ]; then
	if [ -n "${NET-}" ]; then
		for word in $NET; do
			names=${word#*:}
			[ "$names" != "$word" ] || names=
			echo "${word%%:*} ${NET_SHARE:-1} ${names//,/ }"
		done
	else
		sed 's/#.*//; /^[[:space:]]*$/d' "$here/net-cases"
	fi >"$out/net-payload/cases"
	while read -r name share names; do
		[ -x "$build/tests/net/$name" ] || {
			echo "vm: $build/tests/net/$name is not built; run make first" >&2
			exit 1
		}
		[[ $share =~ ^[1-9][0-9]*$ ]] ||
			{ echo "vm: net-cases: $name: \"$share\" is no number" >&2; exit 1; }
		# stripped, because the guest's memory holds it twice
		strip -g -o "$out/net-payload/net/$name" "$build/tests/net/$name"
		set -- $names
		number=$((number + $#))
		for word in "$@"; do
			grep -rq --include="$name.c" "RACK_TEST($word)" "$top/tests/net" ||
				{ echo "vm: $name has no case $word" >&2; exit 1; }
		done
		[ $# -gt 0 ] || number=$((number + 1))
	done <"$out/net-payload/cases"
	[ ! -x "$build/barline" ] || strip -g -o "$out/net-payload/barline" "$build/barline"
	cp "$here/guest-net.sh" "$out/net-payload/"
fi
echo "$number" >"$out/cases.number"

printf '%s\n' "${net_guests[@]}" "${guests[@]}" |
	BUILD=$build xargs -P "${JOBS:-$(nproc)}" -n 1 "$here/run.sh" --one || true

tested=0 untested=0 bad=0 all_passed=0 all_failed=0 most=0
for guest in "${guests[@]}" "${net_guests[@]}"; do
	read -r passed failed skipped 2>/dev/null <"$out/$guest.result" ||
		{ passed=0 failed=1 skipped=0; }
	if [ "$passed" = none ]; then
		untested=$((untested + 1))
		continue
	fi
	tested=$((tested + 1))
	all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed))
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ] || bad=1
	case $guest in
	*-net) ;;
	*)
		# A test that is missing on one kernel would otherwise look like one that passed.
		number=$((passed + failed + skipped))
		if [ "$most" != 0 ] && [ "$number" != "$most" ]; then
			echo "vm: kernel $guest ran $number program tests, another one $most" >&2
			bad=1
		fi
		most=$number
		;;
	esac
done
rm -rf "$out/payload" "$out/net-payload"
if [ "$tested" = 0 ]; then
	echo "vm: no kernel could be tested" >&2
	exit 1
fi
if [ "$untested" -gt 0 ] && [ "${STRICT:-0}" = 1 ]; then
	echo "vm: $untested of $((${#guests[@]} + ${#net_guests[@]})) guests had no kernel" \
		"that could be fetched, and STRICT=1 asks for all" >&2
	bad=1
fi
echo "kernels: $all_passed passed, $all_failed failed"
exit "$bad"
