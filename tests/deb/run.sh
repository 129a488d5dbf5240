#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh BUILD - the Debian packages, from the source tree to the purge: `make test-deb`, as root.
#
#   1. They are built twice, in different folders and with another umask, time zone and locale, and
#      are the same byte by byte. The first build runs the tests of debian/rules.
#   2. lintian has neither errors nor warnings, and the programs are hardened.
#   3. The next version is built from the same tree, with another entry in debian/changelog.
#   4. A fresh Debian of this machine's release, with systemd as its first process, in namespaces of
#      its own: guest.sh has the steps. The packages are installed, autopkgtest runs debian/tests, a
#      rack with a controller, an arbiter and the exporter of metrics is started by systemd, goes
#      through reloads, restarts, kills and an upgrade under traffic, is removed and purged, and
#      nothing is left.
#
# Debian's packages come from where this machine's apt gets them. The root file system is kept in
# the cache of tests/vm/fetch.sh; remove deb-*.tar there to get newer packages.
#
# Environment:
#   ONCE=1	build once, do not compare
#   DEBS=DIR	test the packages in this folder; skip steps 1 and 3. DIR/next has the next version.
#   KEEP=DIR	copy the packages into this folder
#   STEPS	steps of guest.sh, in their order (default: all)
#
# Exit: 0 passed, 1 failed, 126 something is missing on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: tests/deb/run.sh BUILD}" && pwd)
cache=${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/barline-vm}

fail() { echo "not ok - $*"; exit 1; }
ok() { echo "ok - $*"; }
missing() { echo "test-deb: $*" >&2; exit 126; }

[ "$(id -u)" = 0 ] || missing "run this as root"
for program in dpkg-buildpackage lintian mmdebstrap systemd-nspawn hardening-check; do
	command -v $program >/dev/null || missing "no $program; run make deps-deb"
done
suite=$(. /etc/os-release; echo "${VERSION_CODENAME:?}")
work=$(mktemp -d "${TMPDIR:-/tmp}/barline-deb.XXXXXX")
first= supervisor=
unified=$(stat -f -c %T /sys/fs/cgroup)

# Ends the guest, and removes the cgroups that systemd-nspawn leaves where there is no systemd.
end_guest() {
	[ -z "$supervisor" ] || {
		[ -z "$first" ] || kill -KILL "$first" 2>/dev/null || true
		wait "$supervisor" 2>/dev/null || true
	}
	[ -d /run/systemd/system ] || [ -z "$supervisor" ] ||
		find /sys/fs/cgroup -depth -type d -regex '.*/\(payload\|supervisor\).*' \
			-exec rmdir {} + 2>/dev/null || true
	supervisor=
}
trap 'end_guest; rm -rf "$work"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# build_debs DIR: the folder of the packages is DIR/deb, that of their tree DIR/deb/barline.
build_debs() {
	mkdir -p "$1"
	make -s deb B="$1" DEB_KEEP=1 >"$1/log" 2>&1 || { tail -n 40 "$1/log"; fail "make deb"; }
}

# build_next TREE: the version after the one that was built there, into TREE/../next. Only what has
# the version in it is compiled again.
build_next() (
	cd "$1"
	version=$(dpkg-parsechangelog -S Version)+next
	{
		printf 'barline (%s) unstable; urgency=medium\n\n' "$version"
		printf '  * What the tests upgrade to.\n\n -- %s  %s\n\n' \
			"$(sed -n 's/^Maintainer: //p' debian/control)" \
			"$(dpkg-parsechangelog -S Date)"
		cat debian/changelog
	} >debian/changelog.next
	mv debian/changelog.next debian/changelog
	rm debian/debhelper-build-stamp
	DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage --no-sign -b -nc &&
		mkdir ../next &&
		mv ../*"_${version}_"* ../next/
)

check_debs() {
	local deb x=$work/unpacked
	lintian --allow-root --fail-on error,warning -L '>=warning' "$1"/*.changes >&2 ||
		fail "lintian has errors or warnings"
	ok "lintian has neither errors nor warnings"
	for deb in "$1"/barline_*.deb "$1"/libbarline0_*.deb; do dpkg-deb -x "$deb" "$x"; done
	hardening-check --nocfprotection "$x"/usr/lib/*/libbarline.so.0 "$x"/usr/bin/barline \
		"$x"/usr/sbin/barlined >"$work/hard" ||
		{ cat "$work/hard"; fail "the programs are not hardened"; }
	! grep -rlaF "$work" "$x" || fail "the packages name the folder of the build"
	ok "the programs are hardened, and name no folder of the build"
}

if [ -n "${DEBS-}" ]; then
	debs=$(cd "$DEBS" && pwd)
	check_debs "$debs"
else
	build_debs "$work/one"
	debs=$work/one/deb
	ok "built, and the quick tests passed: $(cd "$debs" && echo *.deb | wc -w) packages"
	check_debs "$debs"
	if [ -z "${ONCE-}" ]; then
		(
			umask 077
			# everything is compiled again, also where the compiler is ccache
			export TZ=Asia/Kathmandu LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS=nocheck \
				CCACHE_DISABLE=1
			build_debs "$work/another/folder"
		)
		for deb in "$debs"/*.deb; do
			other=$work/another/folder/deb/${deb##*/}
			cmp "$deb" "$other" || {
				diffoscope "$deb" "$other" 2>/dev/null | head -n 60
				fail "${deb##*/} is not reproducible"
			}
		done
		ok "built again elsewhere: the same bytes"
	fi
	build_next "$debs/barline" >"$work/next.log" 2>&1 ||
		{ tail -n 40 "$work/next.log"; fail "the next version is not built"; }
	rm -rf "$debs/barline"
	[ -z "${KEEP-}" ] || { mkdir -p "$KEEP" && cp -r "$debs/." "$KEEP/"; }
fi

# What the packages and the tests need, from Debian.
needs="systemd-sysv dbus iproute2 procps autopkgtest dpkg-dev"
for deb in "$debs"/*.deb; do
	[[ $deb != *dbgsym* ]] || continue
	needs+=" $(dpkg-deb -f "$deb" Depends | tr , '\n' | sed 's/|.*//; s/(.*//' | tr '\n' ' ')"
done
needs+=" $(sed -n 's/^Depends: *//p' debian/tests/control | tr , ' ' | tr '\n' ' ')"
needs=$(printf '%s\n' $needs | grep -v barline | sort -u | paste -sd ,)
base=$cache/deb-$suite-$(sha1sum <<<"$needs" | cut -c 1-12).tar
if [ ! -s "$base" ]; then
	mkdir -p "$cache"
	sources=()
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
		/etc/apt/sources.list.d/*.sources; do
		[ ! -s "$file" ] || sources+=("$file")
	done
	mmdebstrap --quiet --variant=apt --include="$needs" "$suite" "$work/base.tar" \
		"${sources[@]}" >"$work/mmdebstrap.log" 2>&1 || {
		cat "$work/mmdebstrap.log"
		missing "no fresh $suite can be had"
	}
	mv "$work/base.tar" "$base"
fi

root=$work/root
mkdir -p "$root"
tar -xf "$base" -C "$root"
mkdir -p "$root/debs/next" "$root/debs/layout" "$root/debs/source"
for deb in "$debs"/*.deb "$debs"/next/*.deb; do
	[[ $deb == *dbgsym* ]] || cp "$deb" "$root/debs/${deb#"$debs/"}"
done
# barline once more, of a version after that, with another layout of maps
dpkg-deb -R "$debs"/next/barline_*.deb "$work/layout"
sed -i 's/+next/+other/' "$work/layout/DEBIAN/control"
sed -i 's/^abi=[0-9]*$/abi=999/' "$work/layout/DEBIAN/postinst"
dpkg-deb -b --root-owner-group "$work/layout" "$root/debs/layout" >/dev/null
cp -r debian "$root/debs/source/"
cp tests/deb/guest.sh "$root/debs/"

# One mount of cgroups or many: the guest gets what the machine has.
options=(--register=no --private-network --capability=all --console=pipe
	--machine="barline-deb-$$" "--system-call-filter=bpf perf_event_open")
[ -d /run/systemd/system ] || options+=(--keep-unit)
[ "$unified" = cgroup2fs ] || export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0
SYSTEMD_NSPAWN_API_VFS_WRITABLE=1 systemd-nspawn -D "$root" -b "${options[@]}" </dev/null \
	>"$work/nspawn.log" 2>&1 &
supervisor=$!
in_guest() { nsenter -t "$first" -a "$@"; }
for _ in $(seq 300); do
	kill -0 "$supervisor" 2>/dev/null || break
	first=$(pgrep -P "$supervisor" | head -n 1) || true
	[ -z "$first" ] || ! in_guest systemctl is-system-running 2>/dev/null |
		grep -Eq 'running|degraded' || break
	sleep 0.2
done
[ -n "$first" ] && in_guest systemctl is-active -q basic.target ||
	{ cat "$work/nspawn.log"; fail "the guest does not start"; }
steps="wires before install tests start services reload restart kill watchdog upgrade layout"
steps+=" refused remove purge"
for step in ${STEPS:-$steps}; do
	in_guest timeout -k 10 300 bash /debs/guest.sh "$step" 2>"$work/stderr" || {
		tail -n 20 "$work/stderr"
		fail "step $step of tests/deb/guest.sh"
	}
done
ids=$(tr '\n' ' ' <"$root/debs/programs" 2>/dev/null || true)
for id in $ids; do
	! bpftool prog show id "$id" >/dev/null 2>&1 || fail "program $id is still in the kernel"
done
[ -z "$ids" ] || ok "the kernel has unloaded the programs $ids"
echo "test-deb: passed"
