# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The units on three machines whose first process is systemd: controller, arbiter and, above all,
# barlined@.service. The daemon runs as the user barline, ordered and reliable messages pass, also
# while the unit is restarted on each machine, systemd starts a daemon that was killed, and a NIC
# that comes up after its node is made one FIFO. case-boot.sh shows how it starts at boot.
#
# packages: systemd libsystemd-shared libsystemd0 libacl1 libapparmor1 libaudit1 libblkid1 libcap2
# packages: libcap-ng0 libcrypt1 libgcrypt20 libgpg-error0 libip4tc2 libkmod2 liblz4-1 liblzma5
# packages: libmount1 libpam0g libpcre2-8-0 libseccomp2 libselinux1 libssl3 libzstd1
. "$MACHINES/traffic.sh"

unit=barlined@rack

# broken TEXT NAME...: what the units and nodes of these machines say, and fail.
broken() {
	local text=$1 name
	shift
	for name; do
		on "$name" "systemctl status --no-pager -l $unit; journalctl --no-pager -u $unit |
			tail -n 40" | sed 's/^/# /'
	done
	explain "$@"
	fail "$text"
}

# judge RUN: waits for the end of a run of order_peer, whose judgement must be good.
judge() {
	local verdict
	verdict=$(peers_end "$1" "h1 h2" 600) || broken "$1: $verdict" sw h1 h2
	ok "$1: $verdict"
}

# main_pid NAME: of the unit; 0: it does not run.
main_pid() { on "$1" "systemctl show -P MainPID $unit"; }

settings() {
	on "$1" "for i in /sys/class/net/eth*; do
			i=\${i##*/}
			tc qdisc show dev \$i | sort
			tc filter show dev \$i egress 2>&1
			ethtool -k \$i
			ip -d link show \$i | grep xdp
		done; true"
}
set_up() { on "$1" "for i in /sys/class/net/eth*; do ip link set \${i##*/} up; done"; }

for name in sw h1 h2; do machine "$name" -s -m 1024; done
cable h1:0 sw:0
cable h2:0 sw:1
boot sw h1 h2
for name in sw h1 h2; do
	wait_on "$name" 120 "systemctl is-system-running | grep -Eq 'running|degraded'"
done
ok "systemd $(on sw "systemctl --version | sed -n 's/^systemd \([0-9]*\).*/\1/p'") runs on Linux" \
	"$(on sw "uname -r")"
start_clock sw h1 h2
for name in sw h1 h2; do
	on "$name" "systemctl daemon-reload && systemd-sysusers && systemd-tmpfiles --create &&
		id barline" >"$RACK/user-$name" ||
		{ cat "$RACK/user-$name"; fail "$name has no user barline"; }
	set_up "$name"
	settings "$name" >"$RACK/before-$name"
done

# service UNIT: starts it on sw, kills it, waits until systemd has started it again, and stops it.
service() {
	local unit=$1 pid
	on sw "systemctl enable --now $unit" || broken "$unit does not start" sw
	pid=$(main_pid sw)
	[ "$(on sw "stat -c %U /proc/$pid")" = barline ] ||
		broken "$unit does not run as barline" sw
	on sw "kill -9 $pid"
	(wait_on sw 60 "systemctl is-active -q $unit &&
		[ \$(systemctl show -P NRestarts $unit) = 1 ]") ||
		broken "$unit was killed and not started" sw
	on sw "systemctl disable --now $unit" || broken "$unit does not stop" sw
	[ "$(on sw "systemctl show -P Result $unit")" = success ] || broken "$unit has failed" sw
	ok "$unit runs as the user barline, and is started again after kill -9"
}
on sw "ip address add 10.0.9.1/32 dev lo
	cat >/etc/barline/controller.yaml <<'.'
listen: 127.0.0.1:61693
sqlite: /var/lib/barline/controller.db
nodes: [{ id: 1, name: h1 }, { id: 2, name: h2 }, { id: 1001, name: sw }]
.
	cat >/etc/barline/fastpass.yaml <<'.'
rate: 10mbit
arbiters: [10.0.9.1]
secret_file: /etc/barline/fastpass.secret
policy: fair
endpoints:
  - { name: h1, addr: 10.0.0.1, apps: [10.0.0.101], mac: 02:00:00:00:00:01, rack: 0 }
  - { name: h2, addr: 10.0.0.2, apps: [10.0.0.102], mac: 02:00:00:00:00:02, rack: 0 }
.
	barline arbiter secret /etc/barline/fastpass.secret
	chown barline /etc/barline/fastpass.secret"
service barline-controller
service barline-arbiter
on sw "ip address del 10.0.9.1/32 dev lo"

# What docs/deploy.md says for an l2 rack. The times are those of emulated machines.
on sw "barline switch setup --name sw --file rack --node-id 1001 --beacon-us 20000 \
	--clock-bound-us 1000 eth0 eth1 --host eth0=$(mac h1 0),10.0.0.1 \
	--host eth1=$(mac h2 0),10.0.0.2" >/dev/null
for name in h1 h2; do
	on "$name" "barline host setup --name $name --file rack --node-id ${name#h} \
		--beacon-us 20000 --clock-bound-us 1000 eth0 \
		--address 10.0.0.${name#h}/24" >/dev/null
done
for name in sw h1 h2; do
	emulated_unit "$name" /run/rack.yaml
	on "$name" "systemctl daemon-reload"
	on "$name" "systemctl enable --now $unit" || broken "$name does not start" "$name"
	on "$name" "systemctl is-active -q $unit && systemctl is-enabled -q $unit" ||
		broken "$name is not active" "$name"
	user=$(on "$name" "stat -c %U /proc/$(main_pid "$name")")
	[ "$user" = barline ] || broken "barlined on $name runs as $user" "$name"
done
all_live 2
ok "the units are enabled and active, and the daemons run as the user barline"
wait_on h1 60 "ping -c 1 -w 2 10.0.0.2"
peers_begin best "h1 h2" -n 300 -g 10000 -t 5
judge best
peers_begin reliable "h1 h2" -r -n 300 -g 10000 -t 5
judge reliable

peers_begin restarted "h1 h2" -n 0 -g 20000 -t 15
for name in h1 sw h2; do
	pid=$(main_pid "$name")
	on "$name" "systemctl restart $unit" || broken "$name does not start again" "$name"
	[ "$(main_pid "$name")" != "$pid" ] || broken "$name was not restarted" "$name"
	all_live 2
done
peers_stop restarted "h1 h2"
judge restarted

for name in h1 sw; do
	on "$name" "kill -9 $(main_pid "$name")"
	(wait_on "$name" 120 "systemctl is-active -q $unit &&
		[ \$(systemctl show -P NRestarts $unit) = 1 ]") ||
		broken "$name was killed and not started" "$name"
done
all_live 2
ok "two daemons were killed, and systemd has started new ones"
peers_begin killed "h1 h2" -r -n 200 -g 10000 -t 5
judge killed

# The unit may come before what configures the network.
on h2 "systemctl stop $unit && barline host detach && ip link set eth0 down &&
	systemctl start $unit" || broken "h2 does not start while its NIC is down" h2
set_up h2
(wait_on h2 60 "barline show nics -j | grep -q '\"transmit\": *\"made\"'") ||
	broken "h2: its NIC has come up, and is no FIFO" h2
all_live 2
ok "a NIC that came up later is one FIFO"
peers_begin later "h1 h2" -n 200 -g 10000 -t 5
judge later

for name in h1 h2 sw; do
	on "$name" "journalctl --no-pager -o short-precise -u $unit" >"$RACK/journal-$name"
	! grep 'timed out' "$RACK/journal-$name" ||
		fail "$name: the daemon does not stop or start in time"
	role=host
	[ "$name" != sw ] || role=switch
	on "$name" "cp -p /run/rack.yaml /etc/barline/rack.yaml
		systemctl disable --now $unit && barline $role detach &&
		barline $role setup --file rack --undo" >"$RACK/removed-$name" ||
		{ cat "$RACK/removed-$name"; fail "$name: removal"; }
	[ "$(main_pid "$name")" = 0 ] || fail "$name: a daemon still runs"
	set_up "$name"
	settings "$name" >"$RACK/after-$name"
	diff "$RACK/before-$name" "$RACK/after-$name" || fail "$name is not as before"
done
ok "the nodes are detached, and the NICs are as before"
