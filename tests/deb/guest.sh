#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guest.sh STEP - one step of run.sh, inside the fresh Debian whose first process is systemd. The
# packages are in /debs, those of the next version in /debs/next, barline with another layout of
# maps in /debs/layout, debian/tests in /debs/tests.
#
# The rack is on one machine: the host h1 has its NIC in the namespace of the machine, as usual, and
# the switch sw and the host h2 have namespaces of their own, into which their units are put by
# NetworkNamespacePath=.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
units="barlined@sw barlined@h1 barlined@h2"

fail() { echo "not ok - $*"; exit 1; }
ok() { echo "ok - $*"; }

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

# snapshot: what a package could leave: files, users, mounts, units, interfaces with their programs.
snapshot() {
	find / -xdev \( -path /debs -o -path /proc -o -path /sys -o -path /dev -o -path /tmp \
		-o -path /var/log -o -path /var/cache -o -path /var/tmp -o -path /run/udev \
		-o -path /run/systemd -o -path /run/log -o -path /root -o -path /run/user \
		-o -path /var/lib/dpkg -o -path /var/lib/systemd/timers -o -path /run/netns \) \
		-prune -o -print || true
	find /run -path '/run/barline*' -print
	sed 's/^/user /' /etc/passwd
	sed 's/^/group /' /etc/group
	cut -d ' ' -f 2,3 /proc/mounts | grep -v /run/netns | sed 's/^/mount /'
	find /sys/fs/bpf | sed 's/^/bpf /' || true
	systemctl list-unit-files --no-legend --plain | sed 's/^/unit /'
	settings
} 2>/dev/null

settings() {
	local ns
	for ns in "" h2 sw; do
		ip ${ns:+-n $ns} -o link show | sed 's/^[0-9]*: //; s/ state [A-Z]*//; s/@[^:]*//' |
			sed 's/link-netns.*//' | sed "s/^/link $ns /"
		ip ${ns:+netns exec $ns} tc qdisc show 2>/dev/null || true
	done
}

programs() {
	{
		ip -d link show
		ip -n h2 -d link show
		ip -n sw -d link show
	} | grep -o 'xdp.* id [0-9]*' | grep -o '[0-9]*$' | sort -u
}

lines() { wc -l <"$1" 2>/dev/null || echo 0; }

has_lines() { [ "$(lines "$1")" -ge "$2" ]; }

live() { ip netns exec sw barline show barriers -j | grep -o '"live"' | grep -c . | grep -qx 2; }

step_wires() {
	local ns
	for ns in h2 sw; do
		ip netns add $ns
		ip -n $ns link set lo up
	done
	ip link add eth1 address 02:00:00:00:00:01 type veth peer name p1 netns sw
	ip -n h2 link add eth1 address 02:00:00:00:00:02 type veth peer name p2 netns sw
	ip addr add 10.0.0.1/24 dev eth1
	ip link set eth1 up
	ip -n h2 addr add 10.0.0.2/24 dev eth1
	ip -n h2 link set eth1 up
	ip -n sw link set p1 up
	ip -n sw link set p2 up
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth1
	ip -n h2 neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth1
}

step_before() {
	snapshot | sort >/debs/before
	has_lines /debs/before 1000 && grep -q '^link sw p1' /debs/before ||
		fail "the snapshot is not complete"
}

step_install() {
	local p
	dpkg -i /debs/*.deb >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "dpkg -i"; }
	[ "$(stat -c '%U %a' /run/barline)" = "barline 755" ] || fail "/run/barline"
	[ "$(stat -c '%U:%G %a' /etc/barline)" = "root:barline 750" ] || fail "/etc/barline"
	for p in barline-controller barline-arbiter; do
		! systemctl is-enabled -q $p || fail "$p is enabled"
		! systemctl is-active -q $p || fail "$p is active"
	done
	! grep -q /run/barline/bpf /proc/mounts || fail "the bpffs is mounted already"
	! pgrep -x barlined || fail "a daemon runs, without any configuration"
	ldconfig -p | grep -q libbarline.so.0 || fail "libbarline.so.0 is not found"
	ok "installed; nothing runs without a configuration"
}

step_tests() {
	local t
	# shellcheck disable=SC2013 # words
	for t in $(sed -n 's/^Tests: *//p' /debs/tests/control | tr -d ,); do
		if ! (AUTOPKGTEST_TMP=$(mktemp -d) bash /debs/tests/$t) >/debs/test.log 2>&1; then
			cat /debs/test.log
			fail "debian/tests/$t"
		fi
		ok "debian/tests/$t: $(tail -n 1 /debs/test.log)"
	done
}

common="clock: { source: trust, bound_us: 20 }
beacon_us: 1000
dead_after_us: 5000000"

step_start() {
	local u
	cat >/etc/barline/sw.yaml <<.
role: switch
name: sw
node_id: 1001
forward: l2
ports:
  - { interface: p1, role: host }
  - { interface: p2, role: host }
fdb:
  - { mac: 02:00:00:00:00:01, port: p1 }
  - { mac: 02:00:00:00:00:02, port: p2 }
lag_max_us: 10000000
$common
.
	for u in 1 2; do
		printf 'role: host\nname: h%s\nnode_id: %s\ninterface: eth1\n%s\n' $u $u "$common" \
			>/etc/barline/h$u.yaml
	done
	for u in sw h2; do
		mkdir -p /etc/systemd/system/barlined@$u.service.d
		printf '[Service]\nNetworkNamespacePath=/run/netns/%s\n' $u \
			>/etc/systemd/system/barlined@$u.service.d/netns.conf
	done
	systemctl daemon-reload
	for u in $units; do
		systemctl enable --now $u || {
			journalctl --no-pager -u $u | tail -n 30
			fail "$u does not start"
		}
	done
	until_true 30 live || { ip netns exec sw barline show barriers; fail "no barriers"; }
	for u in $units; do
		[ "$(stat -c %U /proc/$(systemctl show -P MainPID $u))" = barline ] ||
			fail "$u does not run as barline"
	done
	ok "$units run as the user barline"
}

# What `systemctl show` says of a watchdog, and a daemon that is stopped for longer than that.
step_watchdog() {
	local u=barlined@h1 pid usec
	usec=$(systemctl show -P WatchdogUSec $u)
	[ "$usec" != 0 ] && [ "$usec" != infinity ] || fail "$u has no watchdog"
	mkdir -p /run/systemd/system/barlined@h1.service.d
	printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n' \
		>/run/systemd/system/barlined@h1.service.d/watchdog.conf
	systemctl daemon-reload
	systemctl restart $u
	pid=$(systemctl show -P MainPID $u)
	sleep 5
	[ "$(systemctl show -P MainPID $u)" = "$pid" ] || fail "$u does not feed its watchdog"
	kill -STOP "$pid"
	replaced() {
		systemctl is-active -q $u && [ "$(systemctl show -P MainPID $u)" != "$pid" ]
	}
	until_true 60 replaced || fail "$u is stopped, and nobody replaces it"
	rm -r /run/systemd/system/barlined@h1.service.d
	systemctl daemon-reload
	systemctl restart $u
	until_true 30 live || fail "no barriers after the watchdog"
	ok "a daemon that is stopped is replaced by the watchdog (of $usec)"
}

# talk: a line every 10 ms, until the file /debs/stop is there; then their number into /debs/said.
talk() {
	local i
	for ((i = 1; ; i++)); do
		echo $i
		[ ! -e /debs/stop ] || break
		sleep 0.01
	done
	echo $i >/debs/said
}

step_upgrade() {
	local u rc=0 n sender receiver
	local -A was=()
	for u in $units; do was[$u]=$(systemctl show -P MainPID $u); done
	rm -f /debs/stop /debs/said
	ip netns exec h2 barline recv -p 61700 >/debs/received 2>/debs/heard &
	receiver=$!
	heard() { ip netns exec h2 barline show endpoints -j | grep -q 61700; }
	until_true 10 heard || { cat /debs/heard; fail "no endpoint"; }
	talk | barline send -w 5000 10.0.0.2:61700 - >/debs/sent 2>&1 &
	sender=$!
	until_true 30 has_lines /debs/received 100 || { cat /debs/sent; fail "no traffic"; }
	dpkg -i /debs/next/*.deb >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "upgrade"; }
	for u in $units; do
		[ "$(systemctl show -P MainPID $u)" != "${was[$u]}" ] ||
			{ cat /debs/dpkg.log; fail "$u was not restarted"; }
		systemctl is-active -q $u || fail "$u is not active"
	done
	: >/debs/stop
	wait $sender || rc=$?
	n=$(cat /debs/said)
	until_true 20 has_lines /debs/received "$n" || true
	kill $receiver
	wait $receiver || true
	[ "$rc" = 0 ] && [ "$(awk '{ print $NF }' /debs/received | sort -un | wc -l)" = "$n" ] &&
		[ "$(lines /debs/received)" = "$n" ] ||
		{ cat /debs/sent; fail "of $n messages, $(lines /debs/received) came ($rc)"; }
	live || fail "no barriers after the upgrade"
	ok "upgraded under traffic: each unit was restarted, and $n of $n messages came"
}

# A version whose maps have another layout: only its maintainer script is asked.
step_layout() {
	local u
	local -A was=()
	for u in $units; do was[$u]=$(systemctl show -P MainPID $u); done
	dpkg -i /debs/layout/*.deb >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "upgrade"; }
	grep -q 'have 999' /debs/dpkg.log && grep -q "${units##* }" /debs/dpkg.log ||
		{ cat /debs/dpkg.log; fail "no word of the layout"; }
	for u in $units; do
		[ "$(systemctl show -P MainPID $u)" = "${was[$u]}" ] ||
			fail "$u was restarted, in spite of another layout of maps"
	done
	live || fail "no barriers after an upgrade to another layout"
	ok "upgraded to another layout of maps: the nodes go on with their daemons"
}

step_refused() {
	local u pid
	barline recv -p 61701 >/debs/recv.out 2>&1 &
	pid=$!
	bound() { barline show endpoints -j | grep -q 61701; }
	until_true 10 bound || { cat /debs/recv.out; fail "no endpoint"; }
	if dpkg -r barline >/debs/dpkg.log 2>&1; then
		fail "removed, in spite of an endpoint"
	fi
	grep -q 61701 /debs/dpkg.log && grep -q 'clean --all --force' /debs/dpkg.log ||
		{ cat /debs/dpkg.log; fail "the refusal does not say why"; }
	for u in $units; do
		systemctl is-active -q $u || fail "$u is not active after the refusal"
	done
	kill $pid
	wait $pid || true
	until_true 30 live || fail "no barriers after the refusal"
	ok "not removed while an endpoint runs: $(grep -m 1 61701 /debs/dpkg.log | cut -c 1-70)..."
}

step_remove() {
	programs >/debs/programs
	has_lines /debs/programs 3 || fail "no programs: nothing is tested"
	dpkg -r barline >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "dpkg -r"; }
	! grep -q /run/barline/bpf /proc/mounts || fail "the bpffs is still mounted"
	! pgrep barlined || fail "a daemon is left"
	[ -z "$(programs)" ] || fail "XDP programs are left"
	[ -f /etc/barline/h1.yaml ] || fail "a removal is no purge"
	ok "removed: no program, no mount, no process"
}

step_purge() {
	local list
	list=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' '*barline*' |
		awk '$2 != "un" { print $1 }')
	# shellcheck disable=SC2086 # words
	dpkg -P $list >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "dpkg -P"; }
	snapshot | sort >/debs/after
	diff /debs/before /debs/after >/debs/diff ||
		{ cat /debs/diff; fail "the purge leaves a trace"; }
	[ -z "$(grep -h barline /etc/shadow /etc/gshadow)" ] || fail "a user is left"
	ok "purged: files, users, mounts, units and interfaces are as before"
}

"step_$1"
