#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# vm.sh - run one command as root on a stock Debian kernel, in qemu without acceleration.
#
#	vm.sh [-i] [-k KERNEL] [-d DIR] [-t SECONDS] [-c CPUS] [-m MIB] [-o CONSOLE]
#	      [-q ARGUMENTS] -- COMMAND [ARG]...
#
#   -k	6.1 (default), 6.12, 7.2, ...: see fetch.sh
#   -d	payload: copied to the guest as /payload, with the libraries that its programs need
#   -i	virtual time: one CPU, 4 ns for each of its instructions, idle time is skipped. The guest's
#	time then does not depend on the load of this machine.
#   -t	seconds of CPU time after which the guest is stopped (600). A busy machine does not shorten
#	them; a guest that hangs is stopped after eight times as many seconds of real time.
#   -c	number of CPUs of the guest (2)
#   -m	memory of the guest in MiB (1024)
#   -q	more arguments for qemu, separated by blanks, such as NICs
#   -o	file for the kernel's console (not kept by default, but shown if the guest dies)
#
# COMMAND runs in /payload. The guest has busybox, dash, this machine's ip, tc and bpftool, /proc,
# /sys, bpffs, tracefs, cgroup2, lo up, modules on demand, and no network without -q. The output of
# COMMAND appears here while it runs.
#
# Exit: the status of COMMAND; 69 the kernel cannot be fetched; 124 the time ran out; 125 the guest
# died; 126 wrong usage, or something is missing on this machine.
#
# One thread runs all CPUs of the guest: with a thread for each (MTTCG) 7.3 once met an int3 in
# bpf_dispatcher_xdp_func, and it was no faster (measured 2026-11). Timing in the guest is only
# accurate to some 20 ms.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "vm: $*" >&2; exit 126; }

# cpu_seconds PID: prints the CPU time in seconds that the process has used so far.
cpu_seconds() {
	local line
	read -r line 2>/dev/null <"/proc/$1/stat" || { echo 0; return; }
	# shellcheck disable=SC2086 # the fields after the name must be split
	set -- ${line##*) }
	echo $(((${12} + ${13}) / $(getconf CLK_TCK)))
}
usage() { sed -n '4,25s/^# \{0,1\}//p' "$0" >&2; exit 126; }

kernel=6.1 payload= seconds=600 cpus=2 mib=1024 console= virtual= more=()
while getopts ik:d:t:c:m:o:q: o; do
	case $o in
	i) virtual=1 ;;
	k) kernel=$OPTARG ;;
	d) payload=$OPTARG ;;
	t) seconds=$OPTARG ;;
	c) cpus=$OPTARG ;;
	m) mib=$OPTARG ;;
	o) console=$OPTARG ;;
	q) read -r -a more <<<"$OPTARG" ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
[ -z "$payload" ] || [ -d "$payload" ] || fail "no folder $payload"

. "$here/root.sh"
missing=$(need_packages qemu-system-x86_64:qemu-system-x86 busybox:busybox-static dash:dash \
	cpio:cpio timeout:coreutils ldd:libc-bin)
[ -z "$missing" ] || fail "install these Debian packages first:$missing"
if ldd "$(command -v busybox)" >/dev/null 2>&1; then
	fail "busybox here is not a static one; install the Debian package busybox-static"
fi

dir=$("$here/fetch.sh" "$kernel")
work=$(mktemp -d "${TMPDIR:-/tmp}/barline-vm.XXXXXX")
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

root=$work/root
mkdir -p "$root/payload"
base_root ip tc bpftool
if [ -n "$payload" ]; then
	cp -aL "$payload/." "$root/payload/"
	with_folder "$payload"
fi
printf '%q ' "$@" >"$root/command"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
pack_root >"$work/initrd"
# The kernel unpacks concatenated archives.
cat "$dir/modules.cpio" >>"$work/initrd"
rm -rf "$root"

# Before the command starts, none of our code has run. A guest that dies before that says nothing
# about our code, and guests under TCG are known to (fetch.sh has numbers), so it is booted again.
# A guest that dies later is a result.
time=()
if [ -n "$virtual" ]; then
	cpus=1
	time=(-icount shift=2,sleep=off -rtc base=2026-01-01T00:00:00,clock=vm)
fi
for attempt in 1 2 3; do
	: >"$work/status"
	qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp "$cpus" -m "$mib" \
		"${time[@]}" "${more[@]}" \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$dir/vmlinuz" -initrd "$work/initrd" \
		-append "console=ttyS0 panic=-1 quiet loglevel=4 mitigations=off nokaslr \
random.trust_cpu=on tsc=reliable no_timer_check" \
		-serial "file:$work/console" -chardev stdio,id=out,signal=off -serial chardev:out \
		-serial "file:$work/status" \
		</dev/null 2>"$work/qemu.err" &
	qemu=$!
	rc=0 begun=$SECONDS over=
	while kill -0 "$qemu" 2>/dev/null; do
		if [ "$(cpu_seconds "$qemu")" -ge "$seconds" ] ||
			[ $((SECONDS - begun)) -ge $((8 * seconds)) ]; then
			over=1
			kill -9 "$qemu" 2>/dev/null || true
			break
		fi
		sleep 0.5
	done
	wait "$qemu" || rc=$?
	[ -z "$over" ] || rc=124
	qemu=
	[ -z "$console" ] || cp "$work/console" "$console"
	grep -q '^started' "$work/status" && break
	[ "$attempt" = 3 ] || [ "$rc" = 124 ] ||
		echo "vm: kernel $kernel: the guest died while it booted; again" >&2
	[ "$rc" != 124 ] || break
done
status=$(tr -d '\r' <"$work/status" | grep -E '^[0-9]+$' | tail -n 1) || true
[ -z "$status" ] || exit "$status"
if [ "$rc" = 124 ]; then
	echo "vm: kernel $kernel: stopped after $((SECONDS - begun)) s;" \
		"it may take $seconds s of CPU time, or eight times as many of any" >&2
	exit 124
fi
echo "vm: kernel $kernel: the guest died (qemu's status $rc); the end of its console:" >&2
tail -n 60 "$work/console" >&2 2>/dev/null || true
cat "$work/qemu.err" >&2
exit 125
