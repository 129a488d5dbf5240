#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guest-net.sh [SECONDS] - run the net tests that run.sh wants, inside the guest.
#
# The file "cases" has lines "NAME SHARE [CASE]...". The programs run one after the other; a line
# without a CASE runs all cases of the program. SECONDS (900) limits each program. The output has
# the format of guest-tests.sh. Times are the guest's: they do not depend on the machine that the
# guest runs on.
export CMOCKA_MESSAGE_OUTPUT=TAP
ulimit -c 0
# Tests look for the command three folders above themselves.
[ ! -x ./barline ] || ln -sf "$PWD/barline" /barline
while read -r name share cases; do
	read -r begun _ </proc/uptime
	echo "# begin $name"
	if [ -n "$cases" ]; then
		TEST_SHARE=$share TEST_CASES=$cases timeout "${1:-900}" "./net/$name" \
			2>&1 </dev/null
	else
		TEST_SHARE=$share timeout "${1:-900}" "./net/$name" 2>&1 </dev/null
	fi
	rc=$?
	read -r ended _ </proc/uptime
	echo "
# from $begun to $ended
# end $name $rc"
done <cases
