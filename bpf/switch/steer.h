/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames on the wrong CPU. A lane has one writer: two at once lose a rise in the minimum tree, and
 * the barriers run ahead of an input that has not promised so much. So an ordered frame that
 * arrives on a CPU other than the home of its port's lane is redirected there by a CPU map, and
 * bl_switch_steered handles it.
 *
 * A NAPI thread of a link that came back runs where the scheduler puts it, until the loader pins it
 * again; an interrupt arrives where irqbalance puts it.
 *
 * Frames of a port must stay in order. So the port is marked BL_AWAY, and frames that arrive at
 * home follow the others through the CPU map until that is empty. A thread that moves has flushed
 * what it handled before, because it moves between two polls. Example: frames 1 and 2 arrive on CPU
 * 1: sent = 2. The thread moves home and brings frame 3 while only frame 1 has been taken: sent =
 * 3. When it brings frame 4, taken is 3: nothing is on its way, and frame 4 is handled at once.
 *
 * A frame may never come out of the CPU map (a driver leaves no room for it in the frame). If
 * nothing has come out for a second (BL_HOMING_NS), nothing is waited for any more. The second is
 * measured in watch time, which stands still while the lane's CPU does.
 *
 * Not here: choosing home CPUs (the loader does). BPF side only.
 */
#ifndef BARLINE_SWITCH_HOMING_H
#define BARLINE_SWITCH_HOMING_H

#include "bpf/role.h"
#include "core/order/barrier_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/run.h"

/**
 * bl_steer_frame - decides where a frame of port @in on CPU @cpu, which may be the wrong one, is
 * handled. Returns BL_R_NONE: here, at home, and none is on its way there; BL_R_STEERED: it was
 * redirected to its home; or the reason why it cannot be.
 */
__attribute__((noinline)) int bl_steer_frame(__u32 in, __u32 cpu)
{
	struct bl_steering *h = bpf_map_lookup_elem(&sw_homing, &in);
	struct bl_sw_port *port = port_at(in);
	const struct bl_sw_lane *lane;
	__u32 key, sent, taken;
	__u64 now;

	if (!h || !port)
		return BL_R_UNKNOWN_PORT;
	key = BL_HOME_LANE(port);
	lane = bpf_map_lookup_elem(&sw_lanes, &key);
	if (!lane)
		return BL_R_UNKNOWN_PORT;
	if (cpu != h->cpu)
		bl_count(in, BL_R_WRONG_CPU);
	now = BL_READ_ONCE(lane->watch_ns);
	sent = BL_READ_ONCE(h->sent);
	taken = BL_READ_ONCE(h->taken);
	/*
	 * With one receive queue there is no other writer; with several, each queue is in order
	 * only in itself. A frame that was given up and comes out after all is counted in @taken
	 * alone.
	 */
	if ((__s32)(sent - taken) < 0 ||
	    (sent != taken && (__s64)(now - BL_READ_ONCE(h->moved_ns)) > (__s64)BL_HOMING_NS)) {
		BL_WRITE_ONCE(h->sent, taken);
		sent = taken;
	}
	if (!h->most || (cpu == h->cpu && sent == taken)) {
		BL_WRITE_ONCE(port->home_lane, BL_HOME_LANE(port));
		return BL_R_NONE;
	}
	if (sent - taken >= h->most)
		return BL_R_HOME_FULL;
	if (bpf_redirect_map(&sw_home, h->cpu, XDP_ABORTED) != XDP_REDIRECT)
		return BL_R_REDIRECT_FAILED;
	if (sent == taken)
		BL_WRITE_ONCE(h->moved_ns, now);
	__sync_fetch_and_add(&h->sent, 1);
	if (!(port->home_lane & BL_AWAY))
		BL_WRITE_ONCE(port->home_lane, port->home_lane | BL_AWAY);
	return BL_R_STEERED;
}

/* Counts a frame of port @in that came out of the CPU map, at home. @taken has no other writer. */
static __always_inline void count_steered_frame(__u32 in)
{
	struct bl_steering *h = bpf_map_lookup_elem(&sw_homing, &in);
	const struct bl_sw_port *port = port_at(in);
	const struct bl_sw_lane *lane;
	__u32 key;

	if (!h || !port)
		return;
	key = BL_HOME_LANE(port);
	lane = bpf_map_lookup_elem(&sw_lanes, &key);
	if (lane)
		BL_WRITE_ONCE(h->moved_ns, lane->watch_ns);
	BL_WRITE_ONCE(h->taken, h->taken + 1);
}

#endif
