#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# nics.sh - one FIFO on real drivers and queueing disciplines, on other kernels than this
# machine's: `make test-nics`. guest-nics.sh is what runs in each guest, whose NICs are virtio-net,
# one with one queue and one with two. Their other ends are tap devices in a network namespace of
# this script.
#
# Environment:
#   KERNELS	the kernels ("6.1 6.12"); see fetch.sh
#   ROUNDS	how often a host is attached to each NIC and detached again (3; a campaign: 100)
#   NICS	the NICs that are attached that often, of "eth0 eth1 v0"; see guest-nics.sh
#   BUILD	build folder (build)
#   VM_SECONDS	limit of a guest, in seconds of CPU time (120, and 60 per round)
#   VERBOSE=1	show all output
#
# The output of each guest is kept in BUILD/tests/nics/KERNEL.log.
#
# Exit: 0 all passed; 1 a check failed, a guest died, or no kernel could be fetched.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${BUILD:-$top/build}" 2>/dev/null && pwd) ||
	{ echo "nics: no folder ${BUILD:-$top/build}; run make first" >&2; exit 1; }
rounds=${ROUNDS:-3}
# The guest has to complete checksums and segments itself: XDP frames are complete.
off=guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,csum=off,guest_csum=off

# in a network namespace of its own, which ends with the guest
if [ "${1-}" = --one ]; then
	kernel=$2 payload=$3
	ip tuntap add t0 mode tap
	ip tuntap add t1 mode tap multi_queue
	ip link set t0 up
	ip link set t1 up
	nics="-netdev tap,id=n0,ifname=t0,script=no,downscript=no"
	nics+=" -device virtio-net-pci,netdev=n0,mac=52:54:00:09:00:01,$off"
	nics+=" -netdev tap,id=n1,ifname=t1,queues=2,script=no,downscript=no"
	nics+=" -device virtio-net-pci,netdev=n1,mac=52:54:00:09:00:02,mq=on,vectors=6,$off"
	exec "$here/vm.sh" -k "$kernel" -d "$payload" -t "${VM_SECONDS:-$((120 + 60 * rounds))}" \
		-q "$nics" -- env "ROUNDS=$rounds" "NICS=${NICS-}" /bin/sh ./guest-nics.sh
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/payload" "$build/tests/nics"
for file in "$build/barline" "$build/barlined"; do
	[ -x "$file" ] || { echo "nics: $file is not built; run make first" >&2; exit 1; }
	strip -g -o "$work/payload/${file##*/}" "$file"
done
cp "$(PATH=$PATH:/sbin:/usr/sbin command -v ethtool)" "$here/guest-nics.sh" "$work/payload/"
tested=0 all_passed=0 all_failed=0
for kernel in ${KERNELS:-6.1 6.12}; do
	"$here/fetch.sh" "$kernel" >/dev/null || {
		echo "nics-$kernel: NOT TESTED: the kernel could not be fetched"
		continue
	}
	rc=0 log=$build/tests/nics/$kernel.log
	unshare -n "$0" --one "$kernel" "$work/payload" >"$log" 2>&1 || rc=$?
	passed=$(grep -c '^ok ' "$log" || true)
	failed=$(grep -c '^not ok ' "$log" || true)
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log")
	[ "$rc" = 0 ] && [ "${plan:-0}" = $((passed + failed)) ] && [ "$passed" -gt 0 ] ||
		failed=$((failed + 1))
	[ "$failed" = 0 ] && [ -z "${VERBOSE-}" ] || cat "$log"
	echo "nics-$kernel: $passed passed, $failed failed"
	tested=$((tested + 1))
	all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed))
done
[ "$tested" -gt 0 ] || { echo "nics: no kernel could be tested" >&2; exit 1; }
echo "nics: $all_passed passed, $all_failed failed"
[ "$all_failed" = 0 ]
