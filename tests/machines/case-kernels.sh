# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The rack gets another kernel, one machine at a time: the daemon is stopped, the machine reboots
# with the new kernel, and the daemon is started there, while the hosts that stay go on sending. In
# between, machines with both kernels are in one rack. UPGRADE is the new kernel: by default 6.12,
# or 7.2 for a rack that has 6.12 already.
. "$MACHINES/traffic.sh"

case $KERNEL in
6.12*) UPGRADE=${UPGRADE:-7.2} ;;
*) UPGRADE=${UPGRADE:-6.12} ;;
esac
MACHINE_OPTIONS="-m 512"
hosts=(h1 h2 h3)
one_switch "${hosts[@]}"
nics=() fdb=
for i in 0 1 2; do
	nics+=("eth$i")
	fdb+=" --fdb $(mac "${hosts[i]}" 0)=eth$i"
done
ok "three hosts and a switch are up on Linux $(on sw uname -r)"

# judged NAME HOSTS [-c]: ends the run, whose judgement must be good.
judged() {
	local verdict
	verdict=$(peers_end "$1" "$2" 600 ${3-}) ||
		{ explain sw "${hosts[@]}"; fail "$1: $verdict"; }
	ok "$1: $verdict"
}

# reboot NAME: stops the daemon and resets the machine, whose QEMU ends then.
reboot() {
	end_daemon "$1"
	monitor "$1" system_reset
	while alive "$1"; do sleep 0.2; done
	stop_machine "$1"
	m_kernel[$1]=$UPGRADE
	boot "$1"
	start_clock "$1"
}

# Hosts that stay send to each other while a machine is away.
upgraded=()
for name in h3 h1 sw h2; do
	stay=()
	for host in "${hosts[@]}"; do [ "$host" = "$name" ] || stay+=("$host"); done
	peers_begin "without-$name" "${stay[*]}" -n 0 -g 20000 -t 15
	before=$(on "$name" uname -r)
	reboot "$name"
	after=$(on "$name" uname -r)
	[ "$before" != "$after" ] || fail "$name still has Linux $after"
	if [ "$name" = sw ]; then
		bridge_ports sw "${nics[@]}"
		start_switch sw --l2 "$fdb" "${nics[@]}"
	else
		start_host "$name" "10.0.0.${name#h}"
	fi
	all_live 3
	meet "${hosts[@]}"
	peers_stop "without-$name" "${stay[*]}"
	# While the switch is away, nothing arrives; senders are told, or it is sent before.
	judged "without-$name" "${stay[*]}"
	upgraded+=("$name")
	for run in best reliable; do
		peers_begin "$run-$name" "${hosts[*]}" "$([ "$run" = best ] || echo -r)" \
			-n 100 -g 10000 -t 5
		judged "$run-$name" "${hosts[*]}" -c
	done
	note "${upgraded[*]} have Linux $after"
done
ok "all machines were upgraded from Linux $before to $after"
