#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh - mutation testing: does a test fail when the code is wrong?
#
#   tests/mutants/run.sh BUILD [--jobs N] [--list NAME[,NAME...]] [--only LINE[,LINE...]]
#                        [--least PERCENT] [--verbose]
#
# A mutant is one small change of a source. The tests that should notice it are built with it and
# run one after the other; the first one that fails has killed it. A mutant that no test kills has
# survived: something is not tested.
#
# BUILD is the folder of `make`. A list, tests/mutants/NAME.mut, has this format:
#
#   # a comment
#   file lib/seq_core.h                       the file of the mutants that follow
#   test unit/test_seq_core prog/test_hold    the tests that should notice, the quickest first
#   - 	if (a < b)                            whole adjacent lines, which occur once in the file
#   + 	if (a <= b)                           the lines that replace them; no + line: nothing
#   = no two of them are ever equal           optional: why no test can tell the two apart
#
# Two adjacent test lines are one. A blank line ends a mutant. --only takes the lines of a list at
# which mutants begin. The last line of the output is "N mutants: K killed, S survived, E
# equivalent".
#
# Exit status 0 if at least PERCENT (95) of all but the equivalent mutants were killed and nothing
# was wrong with the lists: lines that are not in the file (stale), a mutant that does not compile,
# or a killed mutant that is marked as equivalent. A BPF program that the verifier refuses counts as
# killed, and is also counted separately, since no test had to notice it.
#
# All the tests must first pass without a mutant. Each mutant is made in an overlay over a copy of
# the tree and its build, so that nothing has to be restored and make builds only what depends on
# the change. At first only the parts are built that a test takes from sources (its own code, inline
# functions, BPF programs); a mutant that survives this is tested again with all archives rebuilt.
# Random tests get one seed (BL_SEED, 1), so that a list always has the same result.
#
# Everything runs in namespaces of its own, so an interrupted run leaves nothing behind.
set -u
cd "$(dirname "$0")/../.." || exit 2
{ # bash reads this block as a whole, so the file may be edited while it runs

fail() {
	echo "tests/mutants/run.sh: $*" >&2
	exit 2
}

usage="usage: tests/mutants/run.sh BUILD [--jobs N] [--list NAME[,NAME...]] [--only LINE[,LINE...]]"
usage+=" [--least PERCENT] [--verbose]"
all=("$@")
build=${1:-}
[ -n "$build" ] || fail "$usage"
shift
jobs=$(nproc) lists=() only='' least=95 verbose=''
while [ $# -gt 0 ]; do
	case $1 in
	--verbose) verbose=1; shift; continue ;;
	--jobs | --list | --only | --least) [ $# -gt 1 ] || fail "$1 wants a value; $usage" ;;
	*) fail "unknown argument \"$1\"; $usage" ;;
	esac
	case $1 in
	--jobs) jobs=$2 ;;
	--list) for l in ${2//,/ }; do lists+=("tests/mutants/$l.mut"); done ;;
	--only) only=",$2," ;;
	--least) least=$2 ;;
	esac
	shift 2
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "--jobs $jobs: not a number from 1 on"
[[ $least =~ ^[0-9]+$ ]] || fail "--least $least: not a number"
[ ${#lists[@]} -gt 0 ] || lists=(tests/mutants/*.mut)
for l in "${lists[@]}"; do
	[ -r "$l" ] || fail "no list $l; there are: $(cd tests/mutants && echo *.mut)"
done
[[ $build != /* && $build != *..* ]] || fail "$build: a folder of this tree, as make B=... names it"
[ "$(id -u)" = 0 ] || fail "overlays, namespaces and BPF need root; run this as root"
work=$build/mutants

# ---- outside: create the namespaces, whose end removes everything ----

if [ -z "${BARLINE_MUTANTS_APART-}" ]; then
	mkdir -p "$work" || exit 2
	exec 9>"$work/lock"
	flock -n 9 || fail "another one is running in $build"
	rm -rf "$work/m" "$work/base" "$work/tree"* "$work/rw" "$work/log"
	BARLINE_MUTANTS_APART=1 unshare --mount --propagation private --pid --fork --kill-child \
		--mount-proc bash tests/mutants/run.sh "${all[@]}" 9>&- &
	inner=$!
	ended() {
		kill -KILL $inner
		wait $inner 2> /dev/null
		rm -rf "$work"/{m,base,tree*,rw}
		exit 130
	}
	trap ended INT TERM HUP
	wait $inner
	status=$?
	rm -rf "$work"/{base,tree*,rw}
	exit $status
fi

# ---- the lists: one folder per mutant, with the files file, tests, from, to, why and at ----

mkdir -p "$work/m" "$work/log" "$work/rw"
awk -v dir="$work/m" '
	function put(name, text) { printf "%s", text > (d "/" name); close(d "/" name) }
	function bad(text) {
		printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
		failed = 1
		exit 1
	}
	function done() {
		if (from == "")
			return
		if (file == "" || tests == "")
			bad("a mutant before it has no file or no test")
		d = sprintf("%s/%05d", dir, ++n)
		system("mkdir " d)
		put("file", file); put("tests", tests "\n"); put("at", list ":" at)
		put("from", from); put("to", to); put("why", why)
		from = to = why = ""
	}
	FNR == 1 {
		done()
		file = tests = ""
		list = FILENAME
		sub(/.*\//, "", list)
		sub(/\.mut$/, "", list)
	}
	{ more = was; was = 0 }
	/^#/ { next }
	/^[ \t]*$/ { done(); next }
	/^file / { done(); file = $2; tests = ""; next }
	/^test / { done(); tests = (more ? tests " " : "") substr($0, 6); was = 1; next }
	/^- / {
		if (to != "" || why != "")
			done()
		if (from == "")
			at = FNR
		from = from substr($0, 3) "\n"
		next
	}
	/^\+ / && from != "" { to = to substr($0, 3) "\n"; next }
	/^= / && from != "" { why = substr($0, 3); next }
	{ bad("neither file, test, -, + nor =: " $0) }
	END { if (!failed) done() }' "${lists[@]}" || exit 2
if [ -n "$only" ]; then
	for m in "$work"/m/*; do
		at=$(cat "$m/at")
		[[ $only == *",${at#*:},"* ]] || rm -r "$m"
	done
fi
mutants=("$work"/m/*)
[ -d "${mutants[0]}" ] || fail "no mutants in ${lists[*]}${only:+ at $only}"

# ---- one tree ----

# The tests are compiled as always, except for flags that make compiling quick.
MAKE_FLAGS=(-s --no-print-directory "B=$build" "CFLAGS=-O1 -g0")
archives=("$build"/san/{lib,arbiter,controller,parts}.a "$build/libbarline-node.a")
kept=()
for a in "${archives[@]}"; do
	kept+=(-o "$a")
done
export BL_SEED=${BL_SEED:-1}

# run TREE TEST LOG SECONDS: runs a test with a network and a /run of its own. SECONDS are CPU time,
# so that a mutant does not look killed on a busy machine.
run() {
	unshare --mount --net bash -c '
		for dir in /run/netns /run/barline; do
			mkdir -p "$dir" && mount -t tmpfs -o mode=0755 tests "$dir" || exit 99
		done
		ip link set lo up
		ulimit -t "$3"
		cd "$1" && exec timeout -k 5 1200 "$2"' - "$1" "$build/tests/$2" "$4" \
		> "$3" 2>&1 < /dev/null
	local status=$?
	# cmocka 1.1.5 does not count a failed group fixture, and exits with 0.
	[ $status != 0 ] || ! grep -qE '^\[  (FAILED|ERROR ) +\] GROUP' "$3" || return 1
	return $status
}

# swap FILE FROM TO: replaces the lines in FROM by those in TO. Fails unless FILE has them exactly
# once.
swap() {
	perl -0777 -e '
		my ($path, $from, $to) = @ARGV;
		sub all {
			open(my $f, "<", $_[0]) or die "$_[0]: $!\n";
			my $t = <$f>;
			return $t // "";
		}
		my ($text, $old, $new) = ("\n" . all($path), "\n" . all($from), "\n" . all($to));
		my $at = index($text, $old);
		exit 1 if $at < 0 || index($text, $old, $at + 1) >= 0 || $old eq $new;
		substr($text, $at, length($old)) = $new;
		open(my $f, ">", $path) or die "$path: $!\n";
		print $f substr($text, 1);' "$@"
}

# seconds TEST: prints the limit of a test, which is much more than it took without a mutant.
seconds() {
	local took
	took=$(cat "$work/log/${1//\//-}.seconds")
	echo $((10 + 5 * (took < 20 ? took : 20)))
}

# meet TREE MUTANT [MAKE OPTION...]: runs the tests of a mutant. Returns 0 and prints the verdict
# if a test has killed the mutant or if it cannot be built.
meet() {
	local tree=$1 m=$2 file t bin log
	shift 2
	file=$(cat "$m/file") log=$m/log
	for t in $(cat "$m/tests"); do
		bin=$tree/$build/tests/$t
		if ! make -C "$tree" "${MAKE_FLAGS[@]}" "$@" "$build/tests/$t" > "$log" 2>&1; then
			echo "does not compile"
			return 0
		fi
		[ "$bin" -nt "$tree/$file" ] || continue # the binary does not contain the mutant
		! cmp -s "$bin" "$tree/.met/${t//\//-}" || continue
		run "$tree" "$t" "$log" "$(seconds "$t")"
		case $? in
		0)
			mkdir -p "$tree/.met"
			cp "$bin" "$tree/.met/${t//\//-}"
			;;
		99) fail "cannot make namespaces: $(cat "$log")" ;;
		124 | 137 | 152)
			echo "killed by $t, which hung"
			return 0
			;;
		*)
			if grep -q 'BEGIN PROG LOAD LOG' "$log"; then
				echo "killed by the verifier ($t)"
			else
				echo "killed by $t"
			fi
			return 0
			;;
		esac
	done
	return 1
}

# judge TREE MUTANT: prints the verdict.
judge() {
	local tree=$1 m=$2 verdict file
	file=$(cat "$m/file")
	# The lines must occur once in the copy in the overlay. A file that is gone is stale, too.
	if ! [ -f "$tree/$file" ] || ! swap "$tree/$file" "$m/from" "$m/to"; then
		echo stale
		return
	fi
	# A source of an archive is in no test until the archive is rebuilt.
	case $file in
	*.h | bpf/*) verdict=$(meet "$tree" "$m" "${kept[@]}") ;;
	*) verdict= ;;
	esac
	[ -n "$verdict" ] || verdict=$(meet "$tree" "$m")
	if ! [ -s "$m/why" ]; then
		echo "${verdict:-survived}"
	elif [ -z "$verdict" ]; then
		echo equivalent
	else
		echo "wrongly equivalent: $verdict"
	fi
}

overlay() {
	local tree=$1 rw=$2
	mkdir -p "$tree" "$rw/upper" "$rw/work"
	mount -t overlay overlay "$tree" \
		-o "lowerdir=$work/base,upperdir=$rw/upper,workdir=$rw/work" ||
		fail "cannot mount an overlay on $tree"
}

# show TEXT: prints a line that the progress display does not overwrite.
show() {
	[ -t 1 ] && printf '\r\033[K'
	printf '%s\n' "$1"
}

worker() {
	local tree=$work/tree$1 rw=$work/rw/$1 m at verdict started done
	for m in "${mutants[@]}"; do
		mkdir "$m/taken" 2>/dev/null || continue
		started=$EPOCHREALTIME
		overlay "$tree" "$rw"
		verdict=$(judge "$tree" "$m")
		umount "$tree" || fail "cannot unmount $tree"
		rm -rf "$rw"
		echo "$verdict" > "$m/verdict"
		awk "BEGIN { printf \"%.1f\n\", $EPOCHREALTIME - $started }" > "$m/time"
		at=$(cat "$m/at")
		case $verdict in
		killed* | equivalent)
			[ -z "$verbose" ] || show "$at: $verdict ($(cat "$m/time") s)"
			;;
		*) show "$at: $(cat "$m/file"): $verdict" ;;
		esac
		done=("$work"/m/*/verdict)
		[ ! -t 1 ] || printf '\r\033[K%d of %d' ${#done[@]} ${#mutants[@]}
	done
}

# ---- the copy, and the tests without a mutant ----

mapfile -t tests < <(cat "$work"/m/*/tests | tr ' ' '\n' | awk 'NF && !seen[$0]++')
for t in "${tests[@]}"; do
	[ -n "$(find "tests/${t%%/*}" -name "${t##*/}.c")" ] || fail "there is no test $t"
done
make -s --no-print-directory "-j$(nproc)" "B=$build" "${tests[@]/#/$build/tests/}" ||
	fail "the tests do not build"
mkdir -p "$work/base"
git ls-files -z --cached --others --exclude-standard |
	xargs -0 cp -p --parents -t "$work/base" 2> /dev/null # the index may list removed files
mkdir -p "$work/base/$build"
for part in "$build"/*; do
	# Links suffice: make removes an object, an archive or a program before it replaces it.
	[ "$part" = "$work" ] || cp -al "$part" "$work/base/$build/"
done
# Sources, headers and dependency files in the build are copied.
(cd "$build" && find . -path ./mutants -prune -o -name '*.[chd]' -type f -print0) |
	(cd "$build" && xargs -0 cp -p --parents --remove-destination -t mutants/base/"$build")
mount -t tmpfs -o mode=0755 barline-mutants "$work/rw" || fail "cannot mount a tmpfs on $work/rw"
overlay "$work/tree" "$work/rw/base"
baseline() {
	local i t log from
	for ((i = $1; i < ${#tests[@]}; i += jobs)); do
		t=${tests[i]}
		log=$work/log/${t//\//-}
		from=$SECONDS
		if ! run "$work/tree" "$t" "$log" 600; then
			show "$t fails without a mutant: $log" >&2
			return 1
		fi
		echo $((SECONDS - from + 1)) > "$log.seconds"
		[ ! -t 1 ] || printf '\r\033[Kwithout a mutant: %s' "$t"
	done
}
broken=0 lanes=()
for ((k = 0; k < jobs; k++)); do
	baseline "$k" &
	lanes+=($!)
done
for lane in "${lanes[@]}"; do
	wait "$lane" || broken=1
done
umount "$work/tree"
[ $broken = 0 ] || fail "these say nothing of mutants"

# ---- the mutants ----

started=$EPOCHREALTIME
for ((k = 0; k < jobs; k++)); do
	worker "$k" &
done
wait
[ ! -t 1 ] || printf '\r\033[K'
count() {
	cat "$work"/m/*/verdict 2>/dev/null | grep -c "^$1"
}
killed=$(count killed) refused=$(count "killed by the verifier") survived=$(count survived)
equivalent=$(count equivalent)
stale=$(count stale) broken=$(count "does not") wrong=$(count wrongly)
lost=$((${#mutants[@]} - killed - survived - equivalent - stale - broken - wrong))
awk -v t=$EPOCHREALTIME -v from="$started" -v n=${#mutants[@]} \
	'BEGIN { printf "%.0f s, %.1f s a mutant\n", t - from, (t - from) / n }'
[ "$stale" = 0 ] || echo "$stale stale: their lines are not in the file, or not once"
[ "$broken" = 0 ] || echo "$broken do not compile"
[ "$wrong" = 0 ] || echo "$wrong were said to be equivalent, and were killed"
[ "$lost" = 0 ] || echo "$lost without a verdict"
[ "$refused" = 0 ] || echo "$refused of the killed were refused by the verifier"
judged=$((killed + survived))
[ $judged = 0 ] || echo "$((killed * 1000 / judged / 10)).$((killed * 1000 / judged % 10)) % killed"
judged="$killed killed, $survived survived, $equivalent equivalent"
echo "$((killed + survived + equivalent)) mutants: $judged"
[ $((stale + broken + wrong + lost)) = 0 ] &&
	[ $((killed * 100)) -ge $((least * (killed + survived))) ]
exit
}
