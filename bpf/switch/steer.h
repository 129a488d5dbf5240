/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames on the wrong CPU. A lane has one writer (DESIGN 3.3): two at once lose a rise in the
 * minimum tree, and the barriers run ahead of an input that has not promised so much. So an ordered
 * frame that comes in on a CPU which is not the home of its port's lane goes there by a CPU map,
 * and bl_switch_steered handles it.
 *
 * A NAPI thread of a link that came back is where the scheduler likes it, until the loader pins it
 * again; an interrupt is where irqbalance likes it.
 *
 * They must stay in order. So the port is BL_AWAY from then on, and what comes in at home follows
 * the others through the CPU map until that is empty. A thread that moves has flushed what it
 * handled before, for it moves between two polls. Example: frames 1 and 2 come in on CPU 1: sent
 * = 2. The thread moves home, and brings 3 while only 1 has been taken: sent = 3. When it brings 4,
 * taken is 3: nothing is on its way, and 4 is handled at once.
 *
 * What is not handed over after all (a driver that leaves no room for it in the frame) never comes
 * out. When nothing has come out for a second (BL_HOMING_NS), nothing is waited for any more. By
 * watch time: while the lane's CPU stands still, that stands still, too.
 *
 * Included by switch.bpf.c. BPF side only.
 */
#ifndef BARLINE_SWITCH_HOMING_H
#define BARLINE_SWITCH_HOMING_H

#include "bpf/role.h"
#include "core/order/barrier_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/run.h"

/*
 * A frame of port @in on CPU @cpu, which may be the wrong one. Returns BL_R_NONE: it is handled
 * here, at home, and nothing is on its way there; BL_R_STEERED: it goes there; or why it cannot.
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
	 * one receive queue: nobody else is here; of several, each is in order only in itself. What
	 * was given up and comes out all the same is counted in @taken alone.
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

/* A frame of port @in came out of the CPU map, at home: nobody else writes @taken. */
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
