#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guest.sh STEP - one step of run.sh, inside the fresh Debian whose first process is systemd. The
# packages are in /debs, those of the next version in /debs/next, barline with another layout of
# maps in /debs/layout, debian/ in /debs/source.
#
# The rack is on one machine: the host h1 has its NIC in the namespace of the machine, as usual, and
# the switch sw and the host h2 have namespaces of their own, into which their units are put by
# NetworkNamespacePath=. The failure controller, at 10.9.0.1, the arbiter and the exporter of
# metrics run beside h1; the other two nodes reach the controller by a link of their own.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
units="barlined@sw barlined@h1 barlined@h2"
services="barline-controller barline-arbiter barline-metrics"

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

# snapshot: what a package could leave: files, users, mounts, units, processes, namespaces, and
# interfaces with their programs. Where files come and go by themselves, only barline's count.
snapshot() {
	find / -xdev \( -path /debs -o -path /proc -o -path /sys -o -path /dev -o -path /tmp \
		-o -path /var/log -o -path /var/cache -o -path /var/tmp -o -path /run/udev \
		-o -path /run/systemd -o -path /run/log -o -path /root -o -path /run/user \
		-o -path /var/lib/dpkg -o -path /var/lib/apt/lists \
		-o -path /var/lib/systemd/timers -o -path /run/netns \) \
		-prune -o -print || true
	find /run /tmp /var /root -xdev -iname '*barline*' ! -path '/var/log/journal/*' || true
	ip netns list | sed 's/ .*//; s/^/namespace /'
	ps -eo user:32,comm | sed -n '/barline/s/^/process /p'
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
	local -A at=([h2]=10.9.0.2 [sw]=10.9.0.3)
	# apt would wait for servers, which there are none of here
	rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
	ip addr add 10.9.0.1/32 dev lo
	for ns in h2 sw; do
		ip netns add $ns
		ip -n $ns link set lo up
		ip link add m-$ns type veth peer name mgmt netns $ns
		ip addr add 10.9.0.1 peer ${at[$ns]} dev m-$ns
		ip link set m-$ns up
		ip -n $ns addr add ${at[$ns]} peer 10.9.0.1 dev mgmt
		ip -n $ns link set mgmt up
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

# autopkgtest installs the packages once more, in its own way, and runs every test of debian/tests.
step_tests() {
	local rc=0
	rm -rf /debs/adt
	autopkgtest -q -B --output-dir=/debs/adt /debs/*.deb /debs/source/ -- null \
		>/debs/test.log 2>&1 || rc=$?
	# 0: each test has passed; 2: one was skipped
	[ $rc = 0 ] || { cat /debs/test.log; fail "autopkgtest: status $rc"; }
	ok "autopkgtest: $(sed 's/  */ /g' /debs/adt/summary | paste -sd ,)"
}

common="clock: { source: trust, bound_us: 20 }
beacon_us: 1000
dead_after_us: 5000000
controllers: [10.9.0.1:61693]
insecure: true"

pid_of() { systemctl show -P MainPID "$1"; }

# metric PATTERN: the exporter says so. grep reads to the end: with -q, what writes might fail.
metric() {
	python3 -c 'import urllib.request as r
print(r.urlopen("http://127.0.0.1:9469/metrics", timeout=5).read().decode())' 2>/debs/http |
		grep "$1" >/dev/null
}
answers() { metric "^barline_services{service=\"$1\",state=\"answering\"} 1$"; }

# What systemd has started does its work: the exporter sees the node, controller and arbiter answer,
# and the controller knows three nodes.
all_answer() { answers controller && answers arbiter && metric '^barline_node_info{node="h1"'; }
three_nodes() { barline show controller | grep -c ' ok ' | grep -qx 3; }

started() {
	systemctl is-active -q "$1" || fail "$1 is not active"
	[ "$(stat -c %U "/proc/$(pid_of "$1")")" = barline ] || fail "$1 does not run as barline"
}

start_unit() {
	systemctl enable --now "$1" || {
		journalctl --no-pager -u "$1" | tail -n 30
		fail "$1 does not start"
	}
	started "$1"
}

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
	cat >/etc/barline/controller.yaml <<.
listen: 10.9.0.1:61693
insecure: true
sqlite: /var/lib/barline/controller.db
nodes: [{ id: 1, name: h1 }, { id: 2, name: h2 }, { id: 1001, name: sw }]
.
	cat >/etc/barline/fastpass.yaml <<.
rate: 10mbit
arbiters: [10.9.0.1]
secret_file: /etc/barline/fastpass.secret
policy: fair
endpoints:
  - { name: h1, addr: 10.0.0.1, apps: [10.0.0.101], mac: 02:00:00:00:00:01, rack: 0 }
  - { name: h2, addr: 10.0.0.2, apps: [10.0.0.102], mac: 02:00:00:00:00:02, rack: 0 }
.
	barline arbiter secret /etc/barline/fastpass.secret
	chown barline /etc/barline/fastpass.secret
	for u in sw h2; do
		mkdir -p /etc/systemd/system/barlined@$u.service.d
		printf '[Service]\nNetworkNamespacePath=/run/netns/%s\n' $u \
			>/etc/systemd/system/barlined@$u.service.d/netns.conf
	done
	systemctl daemon-reload
	for u in $services $units; do start_unit $u; done
	until_true 30 live || { ip netns exec sw barline show barriers; fail "no barriers"; }
	until_true 30 three_nodes || { barline show controller; fail "nodes without controller"; }
	until_true 30 all_answer || { cat /debs/http; fail "the exporter does not see them"; }
	traffic_begin
	traffic_end
	ok "$services $units run as the user barline, and $messages messages came"
}

# killed UNIT: systemd starts it again, once.
killed() {
	local pid restarts
	pid=$(pid_of "$1")
	restarts=$(systemctl show -P NRestarts "$1")
	again() {
		systemctl is-active -q "$1" &&
			[ "$(systemctl show -P NRestarts "$1")" = $((restarts + 1)) ]
	}
	kill -KILL "$pid"
	until_true 30 again "$1" || fail "$1 was killed and not started"
	started "$1"
}

step_services() {
	local u pid
	for u in $services; do
		pid=$(pid_of $u)
		systemctl restart $u || fail "$u does not start again"
		started $u
		[ "$(pid_of $u)" != "$pid" ] || fail "$u was not restarted"
		killed $u
		systemctl stop $u
		[ "$(systemctl show -P Result $u)" = success ] || fail "$u has failed"
		systemctl start $u || fail "$u does not start after a stop"
	done
	until_true 30 three_nodes || { barline show controller; fail "nodes without controller"; }
	until_true 30 all_answer || fail "they do not answer after restarts"
	ok "$services: restarted, killed and started again, stopped and started; they answer"
}

# A reload applies what has changed, or nothing, without another process.
step_reload() {
	local u=barlined@h1 pid
	pid=$(pid_of $u)
	dead_after() { barline config show | grep -x "dead_after_us: $1" >/dev/null; }
	sed -i 's/^dead_after_us: .*/dead_after_us: 6000000/' /etc/barline/h1.yaml
	systemctl reload $u || fail "$u is not reloaded"
	dead_after 6000000 || { barline config show; fail "the reload has changed nothing"; }
	sed -i 's/^dead_after_us: .*/dead_after_us: soon/' /etc/barline/h1.yaml
	! systemctl reload $u 2>/dev/null || fail "a wrong configuration is loaded"
	dead_after 6000000 || { barline config show; fail "a refused reload has an effect"; }
	sed -i 's/^dead_after_us: .*/dead_after_us: 5000000/' /etc/barline/h1.yaml
	systemctl reload $u || fail "$u is not reloaded"
	dead_after 5000000 || fail "the second reload has changed nothing"
	started $u
	[ "$(pid_of $u)" = "$pid" ] || fail "$u was restarted by a reload"
	ok "a reload is applied, or refused and without effect"
}

step_restart() {
	local u pid
	traffic_begin
	for u in barline-controller $units; do
		pid=$(pid_of $u)
		systemctl restart $u || fail "$u does not start again"
		started $u
		[ "$(pid_of $u)" != "$pid" ] || fail "$u was not restarted"
	done
	traffic_end
	until_true 30 live || fail "no barriers after the restarts"
	ok "each node and the controller restarted under traffic: $messages of $messages messages"
}

step_kill() {
	local u
	traffic_begin
	for u in $units; do killed $u; done
	traffic_end
	until_true 30 live || fail "no barriers after the kills"
	until_true 30 three_nodes || { barline show controller; fail "nodes without controller"; }
	ok "each node killed under traffic, and started again: $messages of $messages messages"
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

# talk FILE: a line every 10 ms, until the file /debs/stop is there; then their number into FILE.
talk() {
	local i
	for ((i = 1; ; i++)); do
		echo $i
		[ ! -e /debs/stop ] || break
		sleep 0.01
	done
	echo $i >"$1"
}

# traffic_begin, traffic_end: messages from h1 to h2, best effort and reliable, of which each comes
# once. Their number is then in $messages.
streams="best:61700 reliable:61702"
traffic_begin() {
	local s name port flag
	rm -f /debs/stop /debs/said-*
	pids=()
	for s in $streams; do
		name=${s%:*} port=${s#*:} flag=
		[ $name = best ] || flag=-r
		ip netns exec h2 barline recv $flag -p $port >/debs/got-$name 2>/debs/heard &
		pids+=($!)
		heard() { ip netns exec h2 barline show endpoints -j | grep -q $port; }
		until_true 10 heard || { cat /debs/heard; fail "no endpoint"; }
		talk /debs/said-$name |
			barline send $flag -w 20000 10.0.0.2:$port - >/debs/sent-$name 2>&1 &
		pids+=($!)
		until_true 30 has_lines /debs/got-$name 50 ||
			{ cat /debs/sent-$name; fail "no $name traffic"; }
	done
}

traffic_end() {
	local s name n rc i=0
	messages=0
	: >/debs/stop
	for s in $streams; do
		name=${s%:*} rc=0
		wait "${pids[i + 1]}" || rc=$?
		n=$(cat /debs/said-$name)
		until_true 20 has_lines /debs/got-$name "$n" || true
		kill "${pids[i]}"
		wait "${pids[i]}" || true
		[ "$rc" = 0 ] && [ "$(lines /debs/got-$name)" = "$n" ] &&
			[ "$(awk '{ print $NF }' /debs/got-$name | sort -un | wc -l)" = "$n" ] || {
			cat /debs/sent-$name
			fail "of $n $name messages, $(lines /debs/got-$name) came ($rc)"
		}
		messages=$((messages + n))
		i=$((i + 2))
	done
}

step_upgrade() {
	local u old next
	local -A was=()
	old=$(barline --version)
	for u in $units $services; do was[$u]=$(pid_of $u); done
	traffic_begin
	dpkg -i /debs/next/*.deb >/debs/dpkg.log 2>&1 || { cat /debs/dpkg.log; fail "upgrade"; }
	for u in $units $services; do
		[ "$(pid_of $u)" != "${was[$u]}" ] ||
			{ cat /debs/dpkg.log; fail "$u was not restarted"; }
		started $u
	done
	traffic_end
	next=$(barline --version)
	[ "$next" = "$old+next" ] || fail "upgraded from $old to $next"
	until_true 30 live || fail "no barriers after the upgrade"
	until_true 30 three_nodes || { barline show controller; fail "nodes without controller"; }
	until_true 30 metric "^barline_node_info{node=\"h1\".*build=\"${next#barline }\"" ||
		fail "the exporter does not say that the node has the next version"
	ok "upgraded under traffic to $next: each unit was restarted, $messages of $messages came"
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
	! pgrep barline || fail "a process is left"
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
