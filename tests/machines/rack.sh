# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# rack.sh - a rack of QEMU machines, for the cases in this folder. A case is a shell script that
# run.sh runs with this file read before it. Example:
#
#	machine h1
#	machine sw 2			# with options: -c CPUS -k KERNEL -n MODEL -q QUEUES
#	cable h1:0 sw:0			# with -r FRAMES: no more per second; -t: of taps
#	boot h1 sw			# at the same time; returns when all of them are up
#	on h1 ip link set eth0 up	# its output here, and its exit status
#	wait_on h1 60 'ping -c 1 10.0.0.1'
#	monitor h1 set_link n0 off	# the machine's carrier
#	keep h1 /etc			# what it is to have still when it has booted again
#	power_off h1			# at once, without a word to the machine
#	boot h1				# ... and it comes up anew
#	ok "what was shown"
#
# Each machine is a process of its own with its own kernel, its own clock and its own NICs eth0,
# eth1, ... in the order of cable. It has busybox, dash, this machine's iproute2, ethtool and
# bpftool, and what `make install` installs.
#
# A case fails when a command fails that is not tested (set -e), or by fail. What machines print and
# what their kernels say is in $RACK/*.log and $RACK/*.console.
#
# Variables: RACK, a folder of this case alone; KERNEL, the kernel of machines without -k; BUILD;
# MACHINES, the folder of this file.

declare -A m_kernel=() m_cpus=() m_model=() m_queues=() m_nics=() m_pid=() m_fd=() m_args=()
wires=() # processes of the rack that are not machines
passed=0

ok() { passed=$((passed + 1)); echo "ok $passed - $*"; }
fail() { echo "not ok $((passed + 1)) - $*"; exit 1; }
note() { echo "# $*"; }

# machine NAME [-c CPUS] [-k KERNEL] [-n MODEL] [-q QUEUES] [-m MIB] [-s] [-a ARGUMENT]... :
# describes a machine that boot starts later. MODEL is the NIC: virtio-net-pci (the default),
# e1000e, igb. Intel's need the generic flavour of the kernel, and igb a newer QEMU (newer_qemu);
# both are chosen here. QUEUES are queue pairs of virtio-net; all cables of a machine with several
# are of taps. With -s, its first process is systemd, whose packages the case has to name. ARGUMENT
# is one more argument of QEMU.
machine() {
	local name=$1 o OPTIND=1
	shift
	m_cpus[$name]=1 m_kernel[$name]=$KERNEL m_model[$name]=virtio-net-pci m_nics[$name]=0
	m_args[$name]= m_queues[$name]=1 m_words[$name]=
	while getopts c:k:n:q:m:sa: o; do
		case $o in
		c) m_cpus[$name]=$OPTARG ;;
		k) m_kernel[$name]=$OPTARG ;;
		n) m_model[$name]=$OPTARG ;;
		q) m_queues[$name]=$OPTARG ;;
		m) m_mib[$name]=$OPTARG ;;
		s) m_words[$name]="systemd systemd.getty_auto=no" ;;
		a) m_args[$name]+=" $OPTARG" ;;
		*) fail "machine $name: wrong option" ;;
		esac
	done
	intel_kernel "$name"
}

# intel_kernel NAME: the flavour of Debian's kernel that has the driver of the machine's NICs.
intel_kernel() {
	[ "${m_model[$1]}" = virtio-net-pci ] || m_kernel[$1]=${m_kernel[$1]%+g}+g
}

# newer_qemu: sets the array qemu to QEMU 10 of Debian's backports, which emulates igb with its
# hardware clock; the QEMU of bookworm does not. Nothing is installed. The firmware is this
# machine's.
newer_qemu() {
	local dir
	dir=$(. /etc/os-release
		"$MACHINES/../vm/unpack.sh" "$VERSION_CODENAME-backports" qemu-system-x86 \
			qemu-system-common qemu-system-data) ||
		fail "QEMU with igb cannot be fetched"
	qemu=("$dir/usr/bin/qemu-system-x86_64" -L "$dir/usr/share/qemu" -L /usr/share/seabios
		-L /usr/share/qemu -machine q35)
}

# mac NAME INDEX: the Ethernet address of a NIC: that of mac_of[NAME:INDEX], or one of its own.
mac() {
	local sum
	[ -z "${mac_of[$1:$2]-}" ] || { echo "${mac_of[$1:$2]}"; return; }
	sum=$(printf %s "$1" | cksum)
	printf '02:%02x:%02x:%02x:00:%02x\n' $((${sum%% *} >> 16 & 255)) \
		$((${sum%% *} >> 8 & 255)) $((${sum%% *} & 255)) "$2"
}

# cable [-r FRAMES|-t FRAMES] NAME:INDEX NAME:INDEX: connects two NICs. The NICs of a machine are
# numbered in the order of its cables. With -r, no more than FRAMES pass per second in each
# direction. With -t, each end is a tap device with as many queues as the NIC has, and QEMU takes
# FRAMES per second from each transmit queue of virtio-net if it has several.
cable() {
	local rate=0 per_queue= end name
	case $1 in
	-r) rate=$2; shift 2 ;;
	-t) per_queue=$2; shift 2 ;;
	esac
	for end in "$@"; do
		name=${end%:*}
		[ "${end#*:}" = "${m_nics[$name]}" ] ||
			fail "cable $*: the next NIC of $name is ${m_nics[$name]}"
		m_nics[$name]=$((${m_nics[$name]} + 1))
	done
	[ -z "$per_queue" ] || { tap_cable "$per_queue" "$@"; return; }
	"$BUILD/tests/machines/wire" -r "$rate" "$RACK/$1.sock" "$RACK/$2.sock" \
		2>>"$RACK/wire.log" &
	wires+=($!)
	wire_of[$1]=$! wire_of[$2]=$!
}
declare -A wire_of=() m_mib=() m_words=() mac_of=() tap_of=() rate_of=()

# tap_cable FRAMES NAME:INDEX NAME:INDEX: see cable. A bridge of two ports that learns nothing is a
# cable. It is in a network namespace that ends with the rack.
tap_cable() {
	local rate=$1 bridge=c${#tap_of[@]} end tap
	local -a multi
	shift
	if [ -z "$tap_ns" ]; then
		unshare -n sleep infinity &
		tap_ns=$!
		wires+=("$tap_ns")
		until [ "$(readlink "/proc/$tap_ns/ns/net")" != "$(readlink /proc/$$/ns/net)" ]
		do sleep 0.05; done
	fi
	# Beacons go to 01:80:c2:00:00:0e, which a bridge passes on only if it is told to.
	in_tap_ns ip link add "$bridge" type bridge mcast_snooping 0 group_fwd_mask 0x4000
	in_tap_ns ip link set "$bridge" up
	for end; do
		tap=t${#tap_of[@]}
		tap_of[$end]=$tap rate_of[$end]=$rate
		multi=()
		[ "${m_queues[${end%:*}]}" = 1 ] || multi=(multi_queue)
		in_tap_ns ip tuntap add "$tap" mode tap "${multi[@]}"
		in_tap_ns ip link set "$tap" master "$bridge"
		in_tap_ns ip link set "$tap" type bridge_slave learning off
		in_tap_ns ip link set "$tap" up
	done
}
tap_ns=
in_tap_ns() { nsenter -t "$tap_ns" -n "$@"; }

# nic_args NAME INDEX: adds QEMU's arguments for a NIC to the array args.
nic_args() {
	local end=$1:$2 model=${m_model[$1]} q=${m_queues[$1]}
	local device="netdev=n$2,mac=$(mac "$1" "$2")"
	if [ "$model" = igb ]; then
		# Its virtual functions need a bus of their own.
		args+=(-device "pcie-root-port,id=port$2,chassis=$2,slot=$2")
		device+=",bus=port$2,romfile="
	fi
	if [ -z "${tap_of[$end]-}" ]; then
		[ "$q" = 1 ] || fail "$1: a NIC with $q queues needs a cable of taps"
		while [ ! -S "$RACK/$end.sock" ]; do sleep 0.05; done
		args+=(-netdev "stream,id=n$2,server=off,addr.type=unix,addr.path=$RACK/$end.sock")
	else
		[ "$model" = virtio-net-pci ] || fail "$1: cables of taps are for virtio-net"
		# Frames of XDP are complete, so that the guest has to complete its own.
		device+=,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off
		device+=,csum=off,guest_csum=off
		if [ "$q" != 1 ]; then
			device+=,mq=on,vectors=$((2 * q + 2)),rss=on
			# ten frames at each tick of a timer
			device+=,tx=timer,x-txburst=10,x-txtimer=$((10000000000 / rate_of[$end]))
		fi
		args+=(-netdev "tap,id=n$2,ifname=${tap_of[$end]},queues=$q,script=no,\
downscript=no")
	fi
	args+=(-device "$model,$device")
}

# start_machine NAME: starts its QEMU.
start_machine() {
	local name=$1 i=0 kernel=${m_kernel[$1]} dir
	local -a args=() qemu=("${QEMU:-qemu-system-x86_64}")
	dir=$("$MACHINES/../vm/fetch.sh" "$kernel")
	if [ ! -e "$RACK/time" ]; then
		"$BUILD/tests/machines/true_clock" serve "$RACK/time" &
		wires+=($!)
		while [ ! -s "$RACK/time" ]; do sleep 0.05; done
	fi
	while [ "$i" -lt "${m_nics[$name]}" ]; do
		nic_args "$name" "$i"
		i=$((i + 1))
	done
	[ "${m_model[$name]}" != igb ] || newer_qemu
	[ -z "$tap_ns" ] || qemu=(nsenter -t "$tap_ns" -n "${qemu[@]}")
	for i in ctl mon; do
		rm -f "$RACK/$name.$i".{in,out}
		mkfifo "$RACK/$name.$i".{in,out}
	done
	# shellcheck disable=SC2086 # a file, or none
	cat "$RACK/root.cpio" "$dir/modules.cpio" ${m_kept[$name]-} >"$RACK/$name.initrd"
	# shellcheck disable=SC2086 # m_args is a list of words
	"${qemu[@]}" -accel tcg,thread=single -cpu max -smp "${m_cpus[$name]}" \
		-m "${m_mib[$name]-768}" -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$dir/vmlinuz" -initrd "$RACK/$name.initrd" \
		-append "console=ttyS0 panic=-1 quiet loglevel=4 mitigations=off nokaslr \
random.trust_cpu=on tsc=reliable no_timer_check machine=$name ${m_words[$name]}" \
		-object "memory-backend-file,id=time,share=on,mem-path=$RACK/time,size=1M" \
		-device ivshmem-plain,memdev=time \
		-serial "file:$RACK/$name.console" \
		-chardev "pipe,id=ctl,path=$RACK/$name.ctl" -serial chardev:ctl \
		-chardev "pipe,id=mon,path=$RACK/$name.mon" -mon chardev=mon,mode=readline \
		"${args[@]}" ${m_args[$name]} </dev/null >"$RACK/$name.qemu" 2>&1 &
	m_pid[$name]=$!
	# Opened for both directions, so that it does not wait for QEMU.
	[ -z "${m_fd[$name]-}" ] || eval "exec ${m_fd[$name]}<&-"
	exec {i}<>"$RACK/$name.ctl.out"
	m_fd[$name]=$i
	cat <>"$RACK/$name.mon.out" >/dev/null &
	m_drain[$name]=$!
}
declare -A m_drain=() m_kept=()

alive() { kill -0 "${m_pid[$1]}" 2>/dev/null; }

stop_machine() {
	[ -n "${m_pid[$1]-}" ] || return 0
	kill -9 "${m_pid[$1]}" "${m_drain[$1]}" 2>/dev/null || true
	wait "${m_pid[$1]}" "${m_drain[$1]}" 2>/dev/null || true
	m_pid[$1]=
}

power_off() {
	local name
	for name; do
		stop_machine "$name"
		rm -f "$RACK/$name.initrd"
	done
}

# boot NAME...: starts the machines and waits until they obey. A guest that dies before its first
# line has not run any of our code, and is booted again: tests/vm/fetch.sh has numbers.
boot() {
	local name line end=$((SECONDS + BOOT_SECONDS)) tries
	for name; do start_machine "$name"; done
	for name; do
		tries=1 line=
		until [ "$line" = started ]; do
			if ! alive "$name"; then
				[ "$tries" -lt 3 ] ||
					fail "$name died while it booted: $RACK/$name.console"
				note "$name died while it booted; again"
				tries=$((tries + 1))
				stop_machine "$name"
				start_machine "$name"
			fi
			[ "$SECONDS" -lt "$end" ] || fail "$name has not started in $BOOT_SECONDS s"
			line=
			IFS= read -r -t 1 -u "${m_fd[$name]}" line || true
			line=${line%$'\r'}
		done
		rm -f "$RACK/$name.initrd"
	done
}
BOOT_SECONDS=${BOOT_SECONDS:-1200}

# on NAME COMMAND...: runs a shell script in the machine: the words are joined by spaces.
on() {
	local name=$1 text line rest= rc
	shift
	text=$(printf '%s' "$*" | base64 -w 0)
	# A tty holds 4095 bytes that its reader has not read.
	[ "${#text}" -lt 4000 ] || fail "on $name: the command is too long"
	echo "+ $*" >>"$RACK/$name.log"
	printf '%s\n' "$text" >"$RACK/$name.ctl.in"
	while :; do
		line=
		if IFS= read -r -t 5 -u "${m_fd[$name]}" line; then
			line=$rest$line
			rest=
			case $line in
			$'\036'*)
				rc=${line#$'\036'}
				rc=${rc%$'\r'}
				return "$rc"
				;;
			*) [ -z "$line" ] || printf '%s\n' "$line" | tee -a "$RACK/$name.log" ;;
			esac
		elif ! alive "$name"; then
			fail "$name died: $RACK/$name.console"
		else
			rest+=$line
		fi
	done
}

# keep NAME FOLDER...: the machine will boot with what these folders have now, as from a disk.
keep() {
	local name=$1
	shift
	on "$name" "cd /; find ${*#/} | cpio -o -H newc | gzip -c | base64 -w 0" | base64 -d |
		gzip -dc >"$RACK/$name.kept"
	m_kept[$name]=$RACK/$name.kept
}

# wait_on NAME SECONDS COMMAND...: repeats the script until it succeeds. SECONDS are those of a
# computer that has nothing else to do, of which a machine gets PATIENCE times as many. They limit
# runs that fail, and no others.
PATIENCE=5
wait_on() {
	local name=$1 end=$((SECONDS + $2 * PATIENCE))
	shift 2
	until on "$name" "$@" >/dev/null; do
		[ "$SECONDS" -lt "$end" ] || fail "$name: in vain: $*"
		sleep 0.5
	done
}

# monitor NAME COMMAND...: a command of QEMU's monitor.
monitor() {
	local name=$1
	shift
	printf '%s\n' "$*" >"$RACK/$name.mon.in"
}

# cut_cable NAME:INDEX: nothing passes any more, without a carrier that goes; again: it passes.
cut_cable() { kill -USR1 "${wire_of[$1]}"; }

fetch() { on "$1" "gzip -c $2 | base64 -w 0" | base64 -d | gzip -dc >"$3"; }

end_rack() {
	local name
	for name in "${!m_pid[@]}"; do stop_machine "$name"; done
	[ ${#wires[@]} = 0 ] || kill "${wires[@]}" 2>/dev/null || true
	rm -f "$RACK"/*.initrd "$RACK"/*.kept "$RACK"/*.sock "$RACK"/*.in "$RACK"/*.out
}
