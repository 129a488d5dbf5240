#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fetch.sh KERNEL - get a Debian kernel for vm.sh and print the folder that holds it: vmlinuz,
# modules.cpio, release, and format, which is the format of the folder.
#
# KERNEL is the start of a version ("6.1", "7.2", "6.18.15"), of which the highest one in a Debian
# suite is taken, or VERSION@SUITE. It is Debian's cloud flavour; with +g ("6.1+g", "7.2+g") the
# generic one, which has the drivers of Intel's NICs. Packages come from the mirror that this
# machine's apt uses for Debian, with apt's signature checks, through a private apt folder in the
# cache: the machine's own apt state is not touched and nothing is installed.
#
# The cache is ${VM_CACHE:-${XDG_CACHE_HOME:-~/.cache}/barline-vm}. A cached kernel is used without
# asking the mirror; remove its folder to get a newer one.
#
# Exit: 0 ready, 69 the mirror does not answer or has no such kernel, 126 anything else.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

[ $# = 1 ] || { echo "usage: fetch.sh KERNEL" >&2; exit 126; }
kernel=$1
format=2 # of the folder: 2 has virtio's modules
cache=${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/barline-vm}
dir=$cache/$kernel

fail() { echo "vm: $*" >&2; exit 126; }
unavailable() { echo "vm: kernel $kernel: $*" >&2; exit 69; }

# The suites where Debian keeps a series. Backports list every version that they ever had; a series
# that is in no release stays there. 6.12 is the one built for bookworm: under qemu 7.2's TCG
# trixie's 6.12.107 and the backported 6.12.95 died in early boot in 27 of 120 and 16 of 28 runs
# (random general protection faults, 2026-11; no CPU model, CPU count or threading of TCG helped),
# 6.12.117 of bookworm-security in 0 of 36.
flavour=cloud-
[ "${kernel%+g}" = "$kernel" ] || flavour=
case ${kernel%+g} in
*@*)	 version=${kernel%@*} suite=${kernel#*@} suite=${suite%+g} ;;
6.1)	 version=6.1 suite=bookworm ;;
6.12)	 version=6.12 suite=bookworm-security ;;
[0-9]*)	 version=${kernel%+g} suite=trixie-backports ;;
*)	 fail "'$kernel' is not a kernel version" ;;
esac

mkdir -p "$cache"
[ "$(cat "$dir/format" 2>/dev/null)" = "$format" ] && { echo "$dir"; exit 0; }
missing=
for need in apt-get:apt dpkg-deb:dpkg flock:util-linux xz:xz-utils depmod:kmod cpio:cpio; do
	PATH=$PATH:/sbin:/usr/sbin command -v "${need%%:*}" >/dev/null || missing+=" ${need##*:}"
done
[ -z "$missing" ] || fail "install these Debian packages first:$missing"
PATH=$PATH:/sbin:/usr/sbin

exec 9>"$cache/lock"
flock 9
[ "$(cat "$dir/format" 2>/dev/null)" = "$format" ] && { echo "$dir"; exit 0; }

. "$here/apt.sh"
private_apt "$suite"

# The cloud flavour is small and has everything that most tests use. Only signed images are taken:
# no -unsigned, no -dbg.
image=$(apt-cache "${opts[@]}" pkgnames "linux-image-$version" |
	grep -E "^linux-image-${version//./\\.}[.+0-9][.+0-9a-z]*(-[0-9]+)?-${flavour}amd64\$" |
	sort -V | tail -n 1) || true
[ -n "$image" ] || unavailable "$suite has no linux-image-$version*-${flavour}amd64"
# Since 6.19 the image, the modules and the base files are separate packages.
mapfile -t packages < <(echo "$image"; apt-cache "${opts[@]}" depends "$image" |
	sed -nE 's/^ *Depends: (linux-(binary|modules|base)-[0-9].*)/\1/p')

new=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
(cd "$new" && apt-get "${opts[@]}" download "${packages[@]}" >&2) ||
	unavailable "the package mirror does not hand out ${packages[*]} (apt's words are above)"

for deb in "$new"/*.deb; do
	# tar complains of patterns without a match in one of the packages. The kernel and the
	# modules folder are checked below.
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$new" -x --wildcards --no-anchored \
		'*/vmlinuz*' '*/modules.*' 'kernel/net/*' 'kernel/lib/*' 'kernel/crypto/*' \
		'kernel/arch/*' 'kernel/drivers/net/*.ko*' 'kernel/drivers/virtio/*' \
		'kernel/drivers/ptp/*' 'kernel/drivers/pps/*' 'kernel/drivers/i2c/algos/*' \
		'kernel/drivers/dca/*' 2>/dev/null || true
done
vmlinuz=$(find "$new" -name 'vmlinuz*' -type f | head -n 1)
modules=$(find "$new" -path '*lib/modules/*' -type d -prune | head -n 1)
[ -n "$vmlinuz" ] && [ -n "$modules" ] || fail "no kernel or no modules in ${packages[*]}"
release=${modules##*/}
# The drivers of NICs that the tests use are Intel's; all of them are 100 MB in the generic flavour.
drivers=$modules/kernel/drivers/net
rm -rf "$drivers"/{wireless,wwan,wan,can,usb,hamradio,ieee802154,arcnet,fddi,isdn,dsa,phy}
rm -rf "$drivers"/ethernet/intel/{ice,idpf}
find "$drivers/ethernet" -mindepth 1 -maxdepth 1 ! -name intel -exec rm -rf {} + 2>/dev/null || true
mkdir -p "$new/out" "$new/tree/lib/modules"
mv "$vmlinuz" "$new/out/vmlinuz"
mv "$modules" "$new/tree/lib/modules/"
# The modules are unpacked here, because not every modprobe reads .ko.xz and the guest's CPU is
# slow.
find "$new/tree" -name '*.ko.xz' -print0 | xargs -0 -r -n 32 -P "$(nproc)" xz -d
depmod -b "$new/tree" "$release" 2>/dev/null || fail "depmod failed on $release"
(cd "$new/tree" && find . | cpio --quiet -o -H newc) >"$new/out/modules.cpio"
echo "$release" >"$new/out/release"
echo "$format" >"$new/out/format"
rm -rf "$dir"
mv "$new/out" "$dir"
echo "$dir"
