#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In the guest, for run.sh: every program in prog/, then the doctor. Each one's TAP stands between "# begin NAME" and "# end NAME STATUS", so
# that run.sh also knows which one was running when the guest died or hung. The guest's time is that of the machine, which may be
# busy: a program that hangs is stopped late.
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
	sed 's/^/# /' /tmp/doctor.txt # its lines begin with "ok", which is TAP's word
	echo "1..1"
	# findings are what it is for (the guest runs no daemon); a crash, a usage error or a hang is not
	case $rc in
	0|1) echo "ok 1 - barline doctor"; rc=0 ;;
	*) echo "not ok 1 - barline doctor" ;;
	esac
	echo "# end doctor $rc"
fi
