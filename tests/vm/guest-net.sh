#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In the guest, for run.sh: the net tests of the file cases, whose lines are "NAME SHARE [CASE]...", one after the other; without a CASE all of the program.
# The same output as guest-tests.sh makes. Times are the guest's: what it sees of time does not depend on the machine that it runs on.
export CMOCKA_MESSAGE_OUTPUT=TAP
ulimit -c 0
while read -r name share cases; do
	read -r begun _ </proc/uptime
	echo "# begin $name"
	if [ -n "$cases" ]; then
		TEST_SHARE=$share TEST_CASES=$cases timeout "${1:-900}" "./net/$name" 2>&1 </dev/null
	else
		TEST_SHARE=$share timeout "${1:-900}" "./net/$name" 2>&1 </dev/null
	fi
	rc=$?
	read -r ended _ </proc/uptime
	echo "
# from $begun to $ended
# end $name $rc"
done <cases
