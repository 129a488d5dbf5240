#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guest-tests.sh [SECONDS] - run every program in prog/, then the doctor, inside the guest, for
# run.sh.
#
# The TAP of each program stands between "# begin NAME" and "# end NAME STATUS", so that run.sh
# knows which program was running when the guest died or hung. SECONDS (1800) limits each program.
# The guest's time is that of the machine, which may be busy, so a program that hangs is stopped
# late.
export CMOCKA_MESSAGE_OUTPUT=TAP
ulimit -c 0
for prog in prog/*; do
	name=${prog#prog/}
	echo "# begin $name"
	timeout "${1:-1800}" "./$prog" 2>&1
	echo "
# end $name $?"
done
if [ -x ./barline ]; then
	echo "# begin doctor"
	timeout 60 ./barline doctor >/tmp/doctor.txt 2>&1
	rc=$?
	# The doctor's lines begin with "ok", which would be a result in TAP.
	sed 's/^/# /' /tmp/doctor.txt
	echo "1..1"
	# Findings are expected, since the guest runs no daemon. A crash, a usage error or a hang is
	# a failure.
	case $rc in
	0|1) echo "ok 1 - barline doctor"; rc=0 ;;
	*) echo "not ok 1 - barline doctor" ;;
	esac
	echo "# end doctor $rc"
fi
