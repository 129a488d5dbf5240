# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# "The next boot" of docs/deploy.md: machines that have been set up, whose settings have been
# printed as files, and whose unit is enabled. They are powered off and boot with their /etc as from
# a disk. Each must come up as setup would make it, and its node by itself. It is an l2 rack;
# systemd-networkd configures the switch and h1, and ifupdown h2.
#
# packages: systemd libsystemd-shared libsystemd0 libacl1 libapparmor1 libaudit1 libblkid1 libcap2
# packages: libcap-ng0 libcrypt1 libgcrypt20 libgpg-error0 libip4tc2 libkmod2 liblz4-1 liblzma5
# packages: libmount1 libpam0g libpcre2-8-0 libseccomp2 libselinux1 libssl3 libzstd1
# packages: udev libudev1 ifupdown debianutils
. "$MACHINES/traffic.sh"

unit=barlined@rack
declare -A setup=() uses=()

# set_up NAME [OPTION...]: what the page has a person enter, as far as setup goes.
set_up() {
	local name=$1
	shift
	on "$name" "barline ${setup[$name]} $*"
}

# prepare_boot NAME: what the page says of the next boot, and what Debian's installer does. Units
# are enabled without asking the running systemd, which may be too slow here to answer in time.
prepare_boot() {
	local name=$1
	if [ "${uses[$name]}" = networkd ]; then
		set_up "$name" --print networkd --print-to /etc/systemd/network
		on "$name" "systemctl --root=/ enable systemd-networkd 2>&1"
	else
		on "$name" "mkdir -p /etc/network/interfaces.d
			printf '%s\n' 'source /etc/network/interfaces.d/*' 'auto lo' \
				'iface lo inet loopback' >/etc/network/interfaces"
		set_up "$name" --print ifupdown --print-to /etc/network/interfaces.d
		on "$name" "cd /etc/systemd/system
			for target in multi-user network-online; do
				mkdir -p \$target.target.wants
				ln -sf /lib/systemd/system/networking.service \$target.target.wants
			done"
	fi
	emulated_unit "$name" /etc/barline/setup
	on "$name" "systemctl --root=/ enable $unit 2>&1; systemctl --root=/ is-enabled $unit"
}

# network_says NAME: for a case that fails.
network_says() {
	on "$1" "systemctl --no-pager --failed; ip address; ip route; journalctl --no-pager \
		-u $unit -u systemd-networkd -u networking | tail -n 60" | sed 's/^/# /'
}

boot_all() {
	local name
	boot sw h1 h2
	for name in sw h1 h2; do
		wait_on "$name" 120 "systemctl is-system-running | grep -Eq 'running|degraded'"
	done
	start_clock sw h1 h2
}

for name in sw h1 h2; do
	machine "$name" -s -m 1024
	# The rack is about eth0, and not about what udev calls it.
	m_words[$name]+=" net.ifnames=0"
done
cable h1:0 sw:0
cable h2:0 sw:1

common="--file rack --beacon-us 20000 --clock-bound-us 1000"
setup=(
	[sw]="switch setup --name sw $common --node-id 1001 eth0 eth1 \
--host eth0=$(mac h1 0),10.0.0.1,fd00::1 --host eth1=$(mac h2 0),10.0.0.2,fd00::2"
	[h1]="host setup --name h1 $common --node-id 1 eth0 --address 10.0.0.1/24 \
--address fd00::1/64"
	[h2]="host setup --name h2 $common --node-id 2 eth0 --address 10.0.0.2/24 \
--address fd00::2/64"
)
uses=([sw]=networkd [h1]=networkd [h2]=ifupdown)

boot_all
for name in sw h1 h2; do
	on "$name" "systemd-sysusers && systemd-tmpfiles --create barline.conf" >/dev/null
	set_up "$name" >"$RACK/setup-$name"
	prepare_boot "$name" >"$RACK/print-$name" ||
		{ cat "$RACK/print-$name"; fail "$name: the next boot"; }
	keep "$name" /etc /var/lib
done
power_off sw h1 h2
boot_all
for name in sw h1 h2; do
	(wait_on "$name" 120 "systemctl is-active -q $unit") || {
		network_says "$name"
		fail "$name does not start by itself"
	}
	on "$name" mv /etc/barline/setup /etc/barline/rack.yaml
	list=$(set_up "$name" --dry-run)
	grep -q '^nothing is left to do' <<<"$list" || {
		network_says "$name"
		fail "$name boots without this: $list"
	}
done
all_live 2
ok "three machines boot with the files of ${uses[sw]}, ${uses[h1]} and ${uses[h2]}"
wait_on h1 60 "ping -c 1 -w 2 10.0.0.2"
peers_begin booted "h1 h2" -r -n 200 -g 10000 -t 5
list=$(peers_end booted "h1 h2" 600) ||
	{ explain sw h1 h2; fail "$list"; }
ok "$list"
