#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh [CASE]... - racks of QEMU machines (TCG), each with its own Debian kernel and its own
# clock: `make test-machines`. A case is a file case-CASE.sh beside this one; rack.sh has the
# functions that it uses. Without arguments, all of them run, but for campaigns, which have a line
# "# campaign: ..." and run if they are named. Packages of Debian that a case names in a line
# "# packages: ..." are unpacked into its machines, without being installed here.
#
# The script prints the output of each case, "machines-KERNEL-CASE: passed" or "failed", and at the
# end "machines: N passed, N failed". Logs and consoles are in BUILD/tests/machines/run/.
#
# Environment:
#   KERNELS	the kernels ("6.1"); see tests/vm/fetch.sh. Cases that choose kernels of machines
#		themselves use the first of these for all others.
#   BUILD	build folder (build)
#   CASE_SECONDS	limit of one case, in seconds (3600)
#   CAMPAIGN_SECONDS	how long a campaign goes on, in seconds (3600), beside CASE_SECONDS
#
# Exit: 0 all passed; 1 a case failed, or nothing ran; 126 something is missing on this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${BUILD:-$top/build}" 2>/dev/null && pwd) ||
	{ echo "machines: no folder ${BUILD:-$top/build}; run make first" >&2; exit 126; }
. "$here/../vm/root.sh"

missing=$(need_packages qemu-system-x86_64:qemu-system-x86 busybox:busybox-static dash:dash \
	cpio:cpio ip:iproute2 ethtool:ethtool)
[ -z "$missing" ] ||
	{ echo "machines: install these Debian packages first:$missing" >&2; exit 126; }

read -r -a kernels <<<"${KERNELS:-6.1}"
cases=("$@")
if [ $# = 0 ]; then
	for file in "$here"/case-*.sh; do
		! grep -q '^# campaign:' "$file" || continue
		name=${file##*/case-}
		cases+=("${name%.sh}")
	done
fi
packages=
for name in "${cases[@]}"; do
	file=$here/case-$name.sh
	[ -f "$file" ] || { echo "machines: no case $name" >&2; exit 126; }
	packages+=$(sed -n 's/^# packages:/ /p' "$file")
done

out=$build/tests/machines/run
rm -rf "$out"
mkdir -p "$out"
# Not below the build folder, where make looks for files *.d.
root=$(mktemp -d "${TMPDIR:-/tmp}/barline-machines.XXXXXX")
running=
trap '[ -z "$running" ] || kill "$running"; rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
base_root bash ip tc bridge ethtool bpftool ptp4l phc2sys pmc phc_ctl
cp -r /etc/iproute2 "$root/etc/" 2>/dev/null || true
if [ -n "$packages" ]; then
	suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
	# shellcheck disable=SC2046,SC2086 # lists of words
	unpacked=$("$here/../vm/unpack.sh" "$suite" $(printf '%s\n' $packages | sort -u))
	for file in bin sbin lib etc usr/bin usr/sbin usr/lib; do
		[ -d "$unpacked/$file" ] || continue
		mkdir -p "$root/$file"
		cp -a "$unpacked/$file/." "$root/$file/"
	done
	for file in bin sbin lib/systemd usr/bin usr/sbin; do
		[ ! -d "$root/$file" ] || with_folder "$root/$file"
	done
fi
make -s -C "$top" B="$(realpath --relative-to="$top" "$build")" DESTDIR="$root" install \
	>"$out/install.log" 2>&1 ||
	{ cat "$out/install.log"; exit 1; }
rm -rf "$root"/usr/local/{include,share,lib/*.a}
for file in order_peer true_clock flood; do
	[ ! -x "$build/tests/machines/$file" ] ||
		cp "$build/tests/machines/$file" "$root/usr/local/sbin/"
done
mkdir -p "$root/usr/local/lib/tests"
cp "$build"/tests/machines/*.bpf.o "$root/usr/local/lib/tests/"
find "$root/usr/local" -type f -perm -100 -exec strip -g {} + 2>/dev/null || true
with_folder "$root/usr/local"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
pack_root >"$out/root.cpio"
rm -rf "$root"

passed=0 failed=0
for kernel in "${kernels[@]}"; do
	"$here/../vm/fetch.sh" "$kernel" >/dev/null || exit 1
	for name in "${cases[@]}"; do
		rack=$out/$kernel-$name rc=0 limit=${CASE_SECONDS:-3600}
		! grep -q '^# campaign:' "$here/case-$name.sh" ||
			limit=$((limit + ${CAMPAIGN_SECONDS:-3600}))
		mkdir -p "$rack"
		ln "$out/root.cpio" "$rack/root.cpio"
		# timeout makes a process group, so nothing of a case outlives it.
		RACK=$rack KERNEL=$kernel BUILD=$build MACHINES=$here \
			timeout -k 10 "$limit" bash -c '
			set -euo pipefail
			. "$MACHINES/rack.sh"
			trap end_rack EXIT
			trap "exit 143" TERM
			trap "exit 130" INT
			. "$MACHINES/case-$1.sh"
		' case "$name" </dev/null > >(tee "$rack/case.log") 2>&1 &
		running=$!
		wait "$running" || rc=$?
		running=
		rm -f "$rack/root.cpio"
		if [ "$rc" = 0 ] && grep -q '^ok ' "$rack/case.log"; then
			passed=$((passed + 1))
			echo "machines-$kernel-$name: passed"
		else
			failed=$((failed + 1))
			echo "machines-$kernel-$name: failed (status $rc); logs in $rack"
		fi
	done
done
rm -f "$out/root.cpio"
echo "machines: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
