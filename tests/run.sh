#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh BUILD [KIND...] - run the tests that `make tests` has built.
#
#   KIND is unit, prog, net or fuzz; the default is all of them, in this order. The last line of the
#   output is "N passed, N failed", and the exit status is 0 if nothing failed.
#
# run.sh BUILD --one KIND NAME - run one binary (test_x), or all fuzzers, under the same conditions.
#
#   The last line of the output is then "= PASSED FAILED BINARIES EXCUSED".
#
# These count as failures besides a failed test:
#   - a binary that crashes, runs no test, or exceeds its time (120 s; net 450 s; fuzz and
#     test_model 300 s);
#   - a source without a binary, and a binary without a source;
#   - anything that is left behind: a named network namespace, a network interface, a file in
#     /run/barline, a process;
#   - fewer binaries or tests of a kind than tests/expected says, since a test that vanishes
#     silently looks like one that passed. Skipped tests are missing. More of them count, too,
#     since as many could vanish later.
# A test that was skipped is excused if it said that it needs more CPUs than there are, and that is
# true.
#
# Three binaries run at a time on two CPUs. Net tests spend most of their time waiting, but with too
# little CPU they would wait for ever: five run at a time on two CPUs, as long as they take no more
# than 90 percent of the CPUs according to tests/load. JOBS=n runs n binaries of any kind at a time,
# without regard to that. As root, each binary has a mount namespace and a network namespace with
# its own /run/netns, /run/barline and loopback device. What is found there afterwards, the binary
# has left, and its neighbours see nothing of it. It has no PID namespace of its own, because the
# threads of NAPI, which the lab pins to CPUs, exist in the initial one only.
#
# The logs have the seeds of random tests: BL_SEED=n BUILD/tests/unit/test_x repeats one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

build=${1:?usage: tests/run.sh BUILD [unit|prog|net|fuzz...]}
build=$(cd "$build" 2>/dev/null && pwd) ||
	{ echo "tests/run.sh: no folder $1; run make tests" >&2; exit 1; }
shift
one=
if [ "${1-}" = --one ]; then
	one=${3:?usage: tests/run.sh BUILD --one KIND NAME}
	kinds=("$2")
else
	kinds=("$@")
	[ $# -gt 0 ] || kinds=(unit prog net fuzz)
fi
for kind in "${kinds[@]}"; do
	case $kind in
	unit|prog|net|fuzz) ;;
	*)
		echo "tests/run.sh: no kind of test is called \"$kind\": unit, prog, net, fuzz" >&2
		exit 2
		;;
	esac
done
[[ ${JOBS-1} =~ ^[1-9][0-9]*$ ]] ||
	{ echo "tests/run.sh: JOBS=$JOBS is not a number of at least 1" >&2; exit 2; }
[ -n "$one" ] || unset BARLINE_TESTS_APART

if [ -n "$one" ] && [ "$(id -u)" = 0 ]; then
	if [ -z "${BARLINE_TESTS_APART-}" ]; then
		BARLINE_TESTS_APART=1 exec unshare --mount --propagation private --net \
			bash tests/run.sh "$build" --one "$kind" "$one"
	fi
	for dir in /run/netns /run/barline; do
		mkdir -p "$dir"
		mount -t tmpfs -o mode=0755 tests "$dir" ||
			{ echo "tests/run.sh: cannot mount a tmpfs on $dir" >&2; exit 1; }
	done
	ip link set lo up || exit 1
fi

# in the environment of every process that a test starts, and of no other
mark=BARLINE_TEST_RUN=$$-$(date +%s)
logs=$build/tests/log
mkdir -p "$logs"
passed=0 failed=0
binaries=0 # of the present kind
missed=0   # tests of the present kind that are excused
complaint=
cpus=$(nproc)

# a pattern of grep -E and awk: a group's setup or teardown that failed
group_failed='^[[]  (FAILED|ERROR)  []] GROUP (SETUP|TEARDOWN)|^[[]  ERROR   []] GROUP'

complain() {
	echo "  FAILED  $*"
	failed=$((failed + 1))
}

# excused LOG: prints how many tests were skipped because they need more CPUs than there are. Each
# says so before it is skipped ("needs 2 CPUs: x__y"), and the number is compared.
excused() {
	awk -v cpus="$cpus" '
		/^needs [0-9]+ CPUs: .*__/ && $2 > cpus { few[$4] = 1 }
		/^\[  SKIPPED \] .*__/ && $4 in few { n++; delete few[$4] }
		END { print n + 0 }' "$1"
}

# account LOG STATUS: reads the output of a binary. Sets p (passed), f (failed), e (excused) and
# complaint, which says what is wrong besides tests that failed by name.
account() {
	local log=$1 status=$2
	e=$(excused "$log")
	read -r p f < <(awk '/^\[  PASSED  \] [0-9]+ test\(s\)\.$/ { p += $4 }
		/^\[  FAILED  \] [0-9]+ test\(s\), listed below:$/ { f += $4 }
		END { print p + 0, f + 0 }' "$log")
	complaint=
	# cmocka does not count these, and 1.1.5 exits with 0 after the teardown of a group has
	# failed
	if [ "$status" = 0 ] && grep -qE "$group_failed" "$log"; then
		complaint="a group's setup or teardown failed"
	elif [ "$status" = 124 ] || [ "$status" = 137 ]; then
		complaint="did not end in time"
	elif [ "$status" -gt 128 ]; then
		complaint="died of signal $((status - 128))"
	elif [ "$status" != 0 ] && [ "$f" = 0 ]; then
		complaint="exit status $status, though no test failed by name"
	elif [ "$status" = 0 ] && [ "$f" = 0 ] && [ "$p" = 0 ] && [ "$e" = 0 ]; then
		complaint="ran no test"
	fi
	[ -z "$complaint" ] || f=$((f + 1))
}

# reasons LOG: a line for each test that failed or did not come to its end, "NAME: REASON"; a second
# and a third one if the log has more about it. The reason is the line of a check or of a sanitizer;
# or else what cmocka says of an assertion, with its place; or else the last line that the test has
# printed. Then what failed outside of any test. Without anything of all that: the end of the log.
reasons() {
	awk -v group="$group_failed" '
		function say(line) { print name ? name ": " line : line; said++ }
		function end(i) {
			for (i = 1; i <= checks && i <= 3; i++)
				say(check[i])
			if (!checks)
				say(word ? (place ? place ": " : "") word : last)
			name = ""
		}
		/^[ \t]*$/ { next }
		/^\[ RUN      \] / {
			if (name) # the one before was cut off
				end()
			name = $4
			checks = 0
			word = place = ""
			last = "it printed nothing"
			next
		}
		name && /^\[ +(OK|SKIPPED) \] / && $NF == name { name = ""; next }
		name && /^\[  (FAILED|ERROR)  ? \] / && $NF == name { end(); next }
		$0 ~ group { print; said++; next }
		/^\[[ =]/ && !/^\[  ERROR   \] --- |^\[   LINE   \] --- / { next }
		/: error: Failure!$/ { # [   LINE   ] --- FILE:NUMBER: error: Failure!
			sub(/: error: Failure!$/, "")
			place = place ? place : $NF
			next
		}
		{ last = $0 }
		/(^|[ \t])(\.\/)?tests\/[A-Za-z0-9_.\/-]+\.[ch]:[0-9]+: |runtime error:/ ||
		/ERROR: [A-Za-z]*Sanitizer/ {
			if (name)
				check[++checks] = $0
			else
				say($0)
			next
		}
		!word && /^\[  ERROR   \] --- ./ { word = substr($0, 18) }
		!word && /^ERROR: |^Could not run test: / { word = $0 }
		END {
			if (name)
				end()
			if (!said && last)
				say(last)
		}' "$1"
}

# run_logged SECONDS LOG COMMAND...: its output into the log; returns its status
run_logged() {
	local seconds=$1 log=$2
	shift 2
	env -u BARLINE_TESTS_APART "$mark" timeout --kill-after=10 "$seconds" "$@" \
		>"$log" 2>&1 </dev/null
}

# Before any result counts, known-bad binaries must be noticed.
self_check() {
	local log=$logs/self-check.log bad=0 status p f e
	check() { # NAME SECONDS WANT_P WANT_F SCRIPT [WANT_E]
		run_logged "$2" "$log" bash -c "$5" 2>/dev/null
		status=$?
		account "$log" "$status"
		if [ "$p" != "$3" ] || [ "$f" != "$4" ] || [ "$e" != "${6:-0}" ]; then
			echo "tests/run.sh: the self-check \"$1\" gave $p passed, $f failed," \
				"$e excused; it should be $3, $4 and ${6:-0}" >&2
			bad=1
		fi
	}
	check "good" 10 3 0 'echo "[  PASSED  ] 3 test(s)."'
	check "two groups" 10 5 0 'echo "[  PASSED  ] 3 test(s)."; echo "[  PASSED  ] 2 test(s)."'
	check "exit 1" 10 0 1 'exit 1'
	check "exit 1 after passes" 10 3 1 'echo "[  PASSED  ] 3 test(s)."; exit 1'
	local two='printf "[  PASSED  ] 2 test(s).\n";'
	local one='printf "[  FAILED  ] 1 test(s), listed below:\n";'
	check "a test failed" 10 2 1 "$two $one echo '[  FAILED  ] x__y'; exit 1"
	check "a test failed, exit 0" 10 2 1 "$two $one exit 0"
	check "a group's teardown failed" 10 2 1 "$two echo '[  FAILED  ] GROUP TEARDOWN'"
	check "nothing ran" 10 0 1 'exit 0'
	local skips='for t in x__y x__z; do echo "needs $n CPUs: $t"; echo "[  SKIPPED ] $t"; done
		printf "[  PASSED  ] 0 test(s).\n[  SKIPPED ] 2 test(s), listed below:\n"
		printf "[  SKIPPED ] %s\n" x__y x__z'
	check "too few CPUs" 10 0 0 "n=$((cpus + 1)); $skips" 2
	check "skipped without need" 10 0 1 "n=$cpus; $skips"
	check "skipped without a word" 10 0 1 "n=$((cpus + 1)); ${skips/needs/wants}"
	check "too few CPUs, and not skipped" 10 1 0 \
		"echo 'needs $((cpus + 1)) CPUs: x__y'; echo '[  PASSED  ] 1 test(s).'"
	check "crash" 10 3 1 'echo "[  PASSED  ] 3 test(s)."; kill -SEGV $$'
	check "hang" 1 0 1 'exec sleep 20'
	# each form of a failure, and what is to be said of it at the end of the run
	cat >"$log" <<-'EOF'
		[ RUN      ] a__check
		  up after 0.1 s
		./tests/net/x.h:5: n == 1: it is 2
		[  ERROR   ] --- [   LINE   ] --- ./tests/net/rack.h:2: error: Failure!
		[  FAILED  ] a__check
		[ RUN      ] a__good
		tests/net/x.c:5: no failure
		[       OK ] a__good
		[ RUN      ] a__assertion
		[  ERROR   ] --- 0x1 != 0x2
		[   LINE   ] --- tests/unit/x.c:7: error: Failure!
		[  FAILED  ] a__assertion
		[ RUN      ] a__setup
		Could not run test: Test setup failed
		[  ERROR   ] a__setup
		[ RUN      ] a__says_something_else
		the last word
		[  FAILED  ] a__says_something_else
		[ RUN      ] a__cut_off
		x.c:1:2: runtime error: a shift
	EOF
	echo '[  FAILED  ] GROUP TEARDOWN' >>"$log"
	reasons "$log" | cmp -s - <(cat <<-'EOF'
		a__check: ./tests/net/x.h:5: n == 1: it is 2
		a__assertion: tests/unit/x.c:7: 0x1 != 0x2
		a__setup: Could not run test: Test setup failed
		a__says_something_else: the last word
		[  FAILED  ] GROUP TEARDOWN
		a__cut_off: x.c:1:2: runtime error: a shift
	EOF
	) || {
		echo "tests/run.sh: the reasons of failures are not found; those of the" \
			"self-check are: $(reasons "$log")" >&2
		bad=1
	}
	rm -f "$log"
	return $bad
}

leftovers() {
	{
		[ ! -d /run/netns ] || find /run/netns -mindepth 1 -printf 'network namespace %f\n'
		# the lab's mount point and the daemons' locks: an empty folder promises nothing
		[ ! -d /run/barline ] ||
			find /run/barline -mindepth 1 ! -name '*.lock' ! -type d -printf '%p\n'
		[ ! -d /run/barline/bpf ] || find /run/barline/bpf -mindepth 1 -printf '%p\n'
		ip -o link show 2>/dev/null |
			awk -F': ' '{ sub(/@.*/, "", $2); print "interface " $2 }'
	} 2>/dev/null | sort -u
}

# marked NAME=VALUE: the processes that have it in their environment, a line each
marked() {
	grep -lzxsF "$1" /proc/[0-9]*/environ | cut -d / -f 3
}

# within PID: it is this shell, or one that this shell has started. Without other programs, which
# would take longer than many a test: this is asked of some six processes after each of them.
within() {
	local pid=$1 stat
	while [[ $pid =~ ^[0-9]+$ ]] && [ "$pid" -gt 1 ]; do
		[ "$pid" != $$ ] || return 0
		stat= # PID (NAME) STATE PARENT ..., where the name may have any character
		{ read -r -d '' stat <"/proc/$pid/stat"; } 2>/dev/null || [ -n "$stat" ] || return 1
		stat=${stat##*) }
		stat=${stat#* }
		pid=${stat%% *}
	done
	return 1
}

# Processes in the namespaces of this run that it did not start itself. They may have emptied their
# environment.
housemates() {
	local pid mnt net
	[ -n "${BARLINE_TESTS_APART-}" ] || return 0
	# mnt:[4026531841]; brackets are a pattern to find(1)
	{ read -r mnt; read -r net; } < <(readlink /proc/$$/ns/mnt /proc/$$/ns/net)
	while IFS=/ read -r _ _ pid _; do
		[ ! -d "/proc/$pid" ] || within "$pid" || echo "$pid"
	done < <(find /proc/[0-9]*/ns/mnt /proc/[0-9]*/ns/net -maxdepth 0 \
		\( -lname "*${mnt//[!0-9]/}*" -o -lname "*${net//[!0-9]/}*" \) 2>/dev/null)
}

# processes that tests started and that are still there
strays() {
	local pid
	for pid in $( (marked "$mark"; housemates) | sort -un); do
		echo "$pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
	done
}

# clean NAME: complains of everything that the binary has left and removes it, so that the next
# binary starts under the same conditions.
clean() {
	local line left pids
	# the namespaces of an init that was killed go a moment later
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		pids=$(strays)
		left=$(comm -13 <(echo "$before") <(leftovers))
		[ -n "$pids$left" ] || return 0
		sleep 0.3
	done
	while read -r line; do
		[ -n "$line" ] || continue
		complain "$1 left a process: $line"
		kill -KILL "${line%% *}" 2>/dev/null
	done <<<"$pids"
	while read -r line; do
		[ -n "$line" ] || continue
		complain "$1 left $line"
		case $line in
		"network namespace "*) ip netns del "${line#network namespace }" 2>/dev/null ;;
		/run/barline/*) rm -rf "$line" ;;
		esac
	done <<<"$left"
}

# report NAME LOG P F COMPLAINT SECONDS
report() {
	local why
	passed=$((passed + $3))
	failed=$((failed + $4))
	printf '  %-34s %4d passed %3d failed %5d s%s\n' "$1" "$3" "$4" "$6" "${5:+  ($5)}"
	sed -n 's/^\[  SKIPPED \] \(.*__.*\)$/      skipped: \1/p' "$2" | sort -u
	if [ "$4" != 0 ]; then
		why=$(reasons "$2" | cut -c 1-400)
		sed '/./!d; s/^/      failed: /' <<<"$why"
		# once more at the end of the whole run
		printf '%s\n' "$5" "$why" | sed "/./!d; s|^|  failed: $1: |" >>"$logs/failures"
		# the lines right before the first failure: later tests may have printed much more
		if grep -q '^\[  FAILED  \] .*__' "$2"; then
			echo "      before the first failure in $2:"
			sed '/^\[  FAILED  \] .*__/q' "$2"
		else
			echo "      the end of $2:"
			cat "$2"
		fi | tail -n 40 | cut -c 1-400 | sed 's/^/      | /'
	fi
}

# run_one KIND NAME
run_one() {
	local kind=$1 name=$2 seconds=120 start=$SECONDS status p f e log=$logs/$1-$2.log
	[ "$kind" != net ] || seconds=450
	[ "$name" != test_model ] || seconds=300 # spin compiles a program for each case
	run_logged $seconds "$log" "$build/tests/$kind/$name"
	status=$?
	account "$log" $status
	missed=$((missed + e))
	report "$kind/$name" "$log" "$p" "$f" "$complaint" $((SECONDS - start))
	clean "$kind/$name"
}

one_apart() {
	bash tests/run.sh "$build" --one "$1" "$2" 2>&1
}

# adds up what run.sh --one says, and shows the rest of it
sum_up() {
	local line p f n e
	binaries=0 missed=0
	while IFS= read -r line; do
		case $line in
		"= "*)
			read -r _ p f n e <<<"$line"
			passed=$((passed + p)) failed=$((failed + f))
			binaries=$((binaries + n)) missed=$((missed + e))
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}

# start_one KIND NAME: in the background. What it says comes out in one piece.
start_one() {
	{
		local said
		said=$(one_apart "$1" "$2")
		printf '%s\n' "$said" | flock -x "$logs/.lock" cat
	} &
}

# side_by_side LANES ROOM KIND NAME LOAD...: starts the first that there is room for, again and
# again. One that is larger than the room runs by itself. Which runners have ended is read from
# bash's own table of jobs: a job can leave that table before "wait -n PID" has asked for it, which
# then knows "no such job" and says nothing about the end of it.
side_by_side() {
	local lanes=$1 room=$2 kind=$3 used=0 i pid running
	local -A loads=()
	shift 3
	local left=("$@")
	while [ ${#left[@]} -gt 0 ] || [ ${#loads[@]} -gt 0 ]; do
		for ((i = 0; i < ${#left[@]}; i += 2)); do
			[ $used != 0 ] && [ $((used + left[i + 1])) -gt "$room" ] || break
		done
		if [ $i -lt ${#left[@]} ] && [ ${#loads[@]} -lt "$lanes" ]; then
			start_one "$kind" "${left[i]}"
			loads[$!]=${left[i + 1]}
			used=$((used + left[i + 1]))
			left=("${left[@]:0:i}" "${left[@]:i+2}")
			continue
		fi
		wait -n || true # what the runner has said is in its lines
		running=$(jobs -rp)
		for pid in "${!loads[@]}"; do
			grep -qx "$pid" <<<"$running" && continue
			used=$((used - loads[$pid]))
			unset "loads[$pid]"
		done
	done
}

# sources KIND NAME: the paths of the sources of that name, which may be a pattern
sources() {
	find "tests/$1" -name "$2.c" | sort
}

# Those of a kind, each with its load: first the ones in tests/load, in the order there.
run_kind() {
	local kind=$1 bin src name load names=() first=() others=() lanes room usual=100
	local -A there=()
	lanes=$(((3 * cpus + 1) / 2)) room=$((lanes * 100))
	for bin in "$build/tests/$kind"/test_*; do
		[ -f "$bin" ] && [ -x "$bin" ] || continue
		name=${bin##*/}
		if [ -z "$(sources "$kind" "$name")" ]; then
			complain "$bin has no source any more; remove it"
			continue
		fi
		names+=("$name")
		there[$name]=1
	done
	if [ "$kind" = net ]; then
		lanes=$((5 * cpus / 2)) room=$((cpus * 90)) usual=30
	fi
	while read -r name load _; do
		[ -n "${there[$name]-}" ] || continue
		unset "there[$name]"
		first+=("$name" "$load")
	done < <(grep -v '^#' tests/load)
	for name in "${names[@]}"; do
		[ -z "${there[$name]-}" ] || others+=("$name" $usual)
	done
	if [ -n "${JOBS-}" ]; then
		lanes=$JOBS room=$((JOBS * 1000))
	fi
	sum_up < <(side_by_side "$lanes" "$room" "$kind" "${first[@]}" "${others[@]}")
	if [ "$binaries" != ${#names[@]} ]; then
		end_all # a runner that did not come to its end has not removed its test
		complain "of ${#names[@]} binaries of $kind, only $binaries came to an end"
	fi
	while read -r src; do
		name=${src##*/}
		[ -x "$build/tests/$kind/${name%.c}" ] ||
			complain "$src is not built; run make tests"
	done < <(sources "$kind" 'test_*')
	while read -r name; do
		complain "two sources of kind $kind are called $name, and both would be one binary"
	done < <(sources "$kind" 'test_*' | sed 's|.*/||' | sort | uniq -d)
}

run_fuzz() {
	local log=$logs/fuzz.log start=$SECONDS status p f
	FUZZ_SECONDS=${FUZZ_SECONDS:-3} run_logged 300 "$log" bash tests/fuzz/run.sh "$build"
	status=$?
	p=$(sed -n 's/^fuzz: \([0-9]*\) passed, [0-9]* failed$/\1/p' "$log" | tail -n 1)
	f=$(sed -n 's/^fuzz: [0-9]* passed, \([0-9]*\) failed$/\1/p' "$log" | tail -n 1)
	binaries=${p:-0}
	complaint=
	if [ -z "$p" ] || { [ "$status" != 0 ] && [ "$f" = 0 ]; }; then
		complaint="exit status $status"
		f=$((${f:-0} + 1))
	fi
	report fuzz "$log" "${p:-0}" "$f" "$complaint" $((SECONDS - start))
	clean fuzz
}

# expected WHAT GOT FAILED: compares a number with tests/expected. Where something failed, the
# number may be greater, since failures of the runner count, too.
expected() {
	local want
	want=$(awk -v what="$1" '$1 == what { print $2 }' tests/expected)
	if [ -z "$want" ]; then
		complain "tests/expected says nothing about \"$1\"; put \"$1 $2\" there"
	elif [ "$2" -lt "$want" ]; then
		complain "$2 of $1, tests/expected says $want: where have the others gone?"
	elif [ "$2" -gt "$want" ] && [ "$3" = 0 ]; then
		complain "$2 of $1, tests/expected says $want: put \"$1 $2\" there," \
			"so that none of them vanishes unseen"
	fi
}

if [ -n "$one" ]; then
	before=$(leftovers)
	binaries=1
	if [ "$kind" = fuzz ]; then
		run_fuzz
	else
		run_one "$kind" "$one"
	fi
	echo "= $passed $failed $binaries $missed"
	exit $((failed != 0))
fi
# Marks all that was started here, lanes and tests, so that an interrupted run leaves nothing
# running.
export BARLINE_TESTS_OF=$$-$(date +%s)
end_all() {
	local pid
	while read -r pid; do # not by words: what was interrupted may have another IFS
		kill -KILL "$pid" 2>/dev/null
	done < <(marked "BARLINE_TESTS_OF=$BARLINE_TESTS_OF")
}
trap 'end_all; exit 130' INT TERM

# With autogroups, a pacer that spins may starve what else belongs on its CPU for up to a minute
# (docs/design-notes.md, "A pacer that starves its CPU"). So they are off while net tests run.
autogroups=/proc/sys/kernel/sched_autogroup_enabled
if [[ " ${kinds[*]} " == *" net "* ]] && [ "$(cat $autogroups 2>/dev/null)" = 1 ] &&
	echo 0 2>/dev/null >$autogroups; then
	trap 'echo 1 >$autogroups' EXIT
fi
rm -f "$logs/failures"
self_check || { echo "0 passed, 1 failed"; exit 1; }
if [ "$(id -u)" != 0 ]; then
	case " ${kinds[*]} " in
	*" prog "*|*" net "*)
		complain "prog and net tests load BPF programs: run this as root," \
			"or: tests/run.sh $build unit fuzz"
		;;
	esac
fi
for kind in "${kinds[@]}"; do
	ran=$((passed + failed)) faults=$failed
	if [ "$kind" = fuzz ]; then
		sum_up < <(one_apart fuzz all)
	else
		run_kind "$kind"
	fi
	# a skipped test has neither passed nor failed, and so it is missing unless it is excused
	tests=$((passed + failed - ran + missed))
	[ "$missed" = 0 ] ||
		echo "  $missed tests of $kind were skipped: they need more than $cpus CPUs"
	faults=$((failed - faults))
	expected "$kind" "$binaries" "$faults"
	[ "$kind" = fuzz ] || expected "$kind-tests" "$tests" "$faults"
done

[ ! -s "$logs/failures" ] || cat "$logs/failures"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
