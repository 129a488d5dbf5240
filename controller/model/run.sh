#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh quick|all [holds|refuted] - searches the models of this folder with spin. A case holds (all
# states were searched, and no promise was broken) or is to be refuted: it has a defect, or asserts
# that something never happens that does. Prints each case with its states and seconds. Exit status:
# 0 all cases came out as they should, 1 not all, 2 usage. `make model` runs all cases,
# tests/unit/controller/model/test_model.c the quick ones.
#
# A search that was not complete (depth, memory, time) and ended without an error is a failure, too.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
what=${1-} only=${2-}
case $what/$only in
quick/|all/|quick/holds|quick/refuted|all/holds|all/refuted) ;;
*) echo "usage: run.sh quick|all [holds|refuted]" >&2; exit 2 ;;
esac
command -v spin >/dev/null || { echo "run.sh: no spin; install the package spin" >&2; exit 1; }

here=$PWD
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

x='-DTOR -DK=2' z='-DNR=3 -DSAMEHOST -DCRASH_A -DSUSPECT_A'
# of each case: when it is run, outcome, model, flags; above it a comment
cases="
# one switch: the sender's host dies at any time
quick holds   reliable -DCRASH_A
# the host only seems dead, and goes on
quick holds   reliable -DSUSPECT_A
# the sender's process dies, its host lives
quick holds   reliable -DPROC
# a host that sends and receives dies, or seems to
quick holds   reliable $z -DOWN_A=0 -DNM=1
# a receiver and the sender, one after the other
quick holds   reliable -DNR=3 -DZFAILS -DCRASH_A -DFAILURES=2 -DOWN_A=1 -DNM=1
# two levels: two of host, leaf and link fail
quick holds   reliable $x -DCRASH_A -DCRASH_X -DCUT -DFAILURES=2 -DNM=1 -DOWN_A=1
# two levels, each receiver behind one spine
quick holds   reliable $x -DAPART -DCRASH_X -DCUT -DFAILURES=2 -DNM=1 -DOWN_A=1
# the leader is replaced, and comes back
quick holds   reliable $x -DCRASH_X -DELECT -DNM=1 -DOWN_A=1
# an input dies three times
quick holds   resume
# a process is expelled while it lives; its daemon is restarted
quick holds   expel    -DNM=1 -DRESTART
# a process is expelled in the middle of its recall
quick holds   expel    -DMIDST
# a process is expelled, with a slow receiver
quick holds   expel    -DNM=1 -DSLOW
# a receiver is expelled while it lives
quick holds   outcast
# a receiver is expelled, and its sender fails
quick holds   outcast  -DSFAILS
# a process leaves: its port is free at once
quick holds   lives    -DLEAVE -DCOPIES=1
# the next life of a port, and a receiver that has not heard of the end of the last
quick holds   lives    -DCOPIES=1
# the same, and a host fails twice
quick holds   lives    -DHOST -DCOPIES=1
# a host answers for a process that left, which is never announced
quick holds   left     -DUNTOLD
# the same with a recall
quick holds   left     -DUNTOLD -DZFAILS
# the process that left is announced, or it crashes
quick holds   left     -DZFAILS -DCRASH
# the host also answers for a process that crashed
quick holds   left     -DZFAILS -DCRASH -DANSWERS_CRASHED
# two processes do not reach each other: one is expelled
quick holds   stuck    -DBOTHWAYS -DELECT
# the same with two failures
quick holds   stuck    -DBOTHWAYS -DELECT -DFAILURES=2
# a daemon that stops on purpose, and another leader
quick holds   away
quick refuted stuck    -DBOTHWAYS -DELECT -DREACH=1
quick refuted stuck    -DBOTHWAYS -DELECT -DREACH=2
quick refuted stuck    -DBOTH
quick refuted stuck    -DBOTHWAYS -DNO_DROP
quick refuted stuck    -DBOTHWAYS -DFORGETS_ORDER
quick refuted stuck    -DJUDGES_FAILED
quick refuted stuck    -DHASTY
quick refuted stuck    -DBOTHWAYS -DELECT -DUNFENCED
quick refuted stuck    -DELECT -DONCE
quick refuted away     -DNOT_SAVED
quick refuted away     -DNO_ACK
quick refuted away     -DFOR_EVER
quick refuted away     -DNOT_ENDED
quick refuted away     -DNOT_CLEARED
quick refuted away     -DHELLO_AFTER
quick refuted away     -DNO_TIME
quick refuted reliable -DCRASH_A -DREACH=1
quick refuted reliable $z -DOWN_A=0 -DNM=1 -DREACH=2
quick refuted reliable $x -DCRASH_X -DELECT -DNM=1 -DOWN_A=1 -DREACH=3
quick refuted reliable $x -DAPART -DCRASH_X -DNM=2 -DOWN_A=1 -DREACH=4
quick refuted reliable -DCRASH_A -DNO_DISCARD
quick refuted reliable -DCRASH_A -DEARLY_RESUME
quick refuted reliable -DCRASH_A -DNO_FREEZE
quick refuted reliable -DPROC -DNO_WINDOW_FREEZE
quick refuted reliable $z -DOWN_A=0 -DNM=1 -DNO_FENCE
quick refuted reliable $z -DOWN_A=0 -DNM=1 -DNO_RECALL_WAIT
quick refuted reliable $z -DOWN_A=0 -DNM=1 -DNO_RECALL_MEMORY
quick refuted reliable $x -DAPART -DCRASH_X -DNM=2 -DOWN_A=1 -DT_MIN
quick refuted reliable $x -DAPART -DCUT -DNM=2 -DOWN_A=1 -DNO_ASK
quick refuted reliable $x -DAPART -DCUT -DNM=2 -DOWN_A=1 -DRESUME_TORN
quick refuted reliable $x -DCRASH_X -DCUT -DFAILURES=2 -DNM=1 -DOWN_A=1 -DRESUMED_COUNTS
quick refuted reliable $x -DCRASH_X -DELECT -DNM=1 -DOWN_A=1 -DNO_EPOCH
quick refuted reliable $x -DCRASH_X -DELECT -DNM=1 -DOWN_A=1 -DNO_STORE
quick refuted reliable $x -DCRASH_X -DELECT -DNM=1 -DOWN_A=1 -DEPOCH_LATER
quick refuted resume   -DNO_NUMBER
quick refuted expel    -DMIDST -DNO_OUT
quick refuted expel    -DMIDST -DNO_GRACE
quick refuted expel    -DMIDST -DOUT_AFTER_T
quick refuted expel    -DMIDST -DRESTART -DADOPT_ANEW
quick refuted expel    -DNM=1 -DRESTART -DADOPT_FIRST
quick refuted expel    -DNM=1 -DNO_DEAD
quick refuted expel    -DNM=1 -DRESUME_CLEARS
quick refuted expel    -DNM=1 -DDONE_EARLY
quick refuted expel    -DNM=1 -DSLOW -DPAGE_FIRST
quick refuted expel    -DNM=1 -DZFAILS -DSLOW -DRING_FIRST
quick refuted expel    -DNM=1 -DZFAILS -DRECALL_UNREAD
quick refuted left     -DREACH=1
quick refuted left     -DUNTOLD -DZFAILS -DREACH=2
quick refuted left     -DREACH=3
quick refuted left     -DUNTOLD -DNO_ANSWER
quick refuted left     -DUNTOLD -DZFAILS -DNO_RECALLED
quick refuted left     -DUNTOLD -DLEFT_FORGOTTEN
quick refuted left     -DLEFT_ANY_LIFE
quick refuted left     -DLEFT_EARLY=1
quick refuted left     -DZFAILS -DLEFT_EARLY=2
quick refuted outcast  -DANSWERS_DEAD
quick refuted outcast  -DOUT_FIRST
quick refuted outcast  -DOUT_LATE
quick refuted outcast  -DBOUND_LATE
quick refuted outcast  -DBOUND_TOLD
quick refuted outcast  -DSFAILS -DBOUND_PAGE
quick refuted lives    -DLEAVE -DNO_LIFE
quick refuted lives    -DHOST -DCOPIES=1 -DNO_REREAD
quick refuted lives    -DLEAVE -DPREP_BEGINS
quick refuted lives    -DLEAVE -DOLD_BEGINS
quick refuted lives    -DHOST -DCOPIES=1 -DLATER_T
quick refuted lives    -DLEAVE -DCOPIES=1 -DLEFT_T_EARLY
quick refuted lives    -DLEAVE -DCOPIES=1 -DLEFT_UNACKED
full  holds   expel    -DMIDST -DRESTART
full  holds   expel    -DMIDST -DSLOW
full  holds   expel    -DNM=1 -DZFAILS -DSLOW
full  holds   expel    -DNM=1 -DZFAILS -DSLOW -DRESTART
full  holds   expel    -DNM=2 -DRESTART
full  holds   lives
full  holds   lives    -DLEAVE
# as the first cases, with more messages or failures
full  holds   reliable $z -DOWN_A=1 -DNM=2
full  holds   reliable $z -DOWN_A=2 -DNM=2
full  holds   reliable -DNR=3 -DZFAILS -DOWN_A=2 -DNM=2
full  holds   reliable $x -DCRASH_A -DCRASH_X -DCUT -DFAILURES=2 -DNM=2 -DOWN_A=1
full  holds   reliable $x -DAPART -DCRASH_X -DCUT -DFAILURES=2 -DNM=2 -DOWN_A=1
full  holds   reliable $x -DCRASH_X -DCUT -DFAILURES=2 -DELECT -DNM=1 -DOWN_A=1
full  holds   reliable $x -DCRASH_A -DCRASH_X -DCUT -DFAILURES=2 -DELECT -DNM=1 -DOWN_A=1
"

bad=0 count=0
while IFS='#' read -r line _; do
	read -r when outcome model flags <<<"$line"
	[ -n "$when" ] || continue
	[ "$what" = all ] || [ "$when" = quick ] || continue
	[ -z "$only" ] || [ "$only" = "$outcome" ] || continue
	count=$((count + 1))
	begin=$EPOCHREALTIME
	# to search half a million states takes less time than to compile the search with -O2
	optimise=-O0 limit=100 hash=20
	[ "$when" = quick ] || { optimise=-O2 limit=1800 hash=26; }
	cd "$dir" && rm -f ./*
	# shellcheck disable=SC2086 # the flags are words
	if spin $flags -a "$here/$model.pml" >spin.log 2>&1 &&
		gcc $optimise -w -DSAFETY -DNOREDUCE -DMEMLIM=8000 -o pan pan.c \
			>>spin.log 2>&1; then
		timeout $limit ./pan -m100000 -w$hash >pan.log 2>&1
		status=$?
	else
		cp spin.log pan.log
		status=255
	fi
	cd "$here" || exit 1
	errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$dir/pan.log")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/pan.log")
	verdict=broken
	incomplete='max search depth too small|out of memory|Warning: Search not completed$'
	if [ "$status" = 0 ] && ! grep -qE "$incomplete" "$dir/pan.log"; then
		[ "$errors" = 0 ] && verdict=holds
	fi
	if [ "$status" = 0 ] && [ "${errors:-0}" -ge 1 ] &&
		grep -q 'assertion violated' "$dir/pan.log"; then
		verdict=refuted
	fi
	seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begin }")
	printf '%-8s %9s states %6s s  %s %s\n' "$verdict" "${states:--}" "$seconds" "$model" \
		"$flags"
	if [ "$verdict" != "$outcome" ]; then
		bad=$((bad + 1))
		echo "FAILED: should be \"$outcome\":" >&2
		tail -20 "$dir/pan.log" >&2
	fi
done <<<"$cases"
echo "$count cases, $bad not as they should be"
[ "$bad" = 0 ] && [ "$count" -gt 0 ]
