/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames on the wrong CPU. A lane has one writer (DESIGN 3.3): two at once lose a rise in the minimum tree, and the barriers run ahead of an input that has not promised so much. So an ordered frame that comes in on a CPU
 * which is not the home of its port's lane goes there by a CPU map, and bl_switch_home handles it.
 *
 * A NAPI thread of a link that came back is where the scheduler likes it, until the loader pins it again; an interrupt is where irqbalance likes it.
 *
 * They must stay in order. So the port is BL_AWAY from then on, and what comes in at home follows the others through the CPU map until that is empty. A thread that moves has flushed what it handled before, for it moves
 * between two polls. Example: frames 1 and 2 come in on CPU 1: sent = 2. The thread moves home, and brings 3 while only 1 has been taken: sent = 3. When it brings 4, taken is 3: nothing is on its way, and 4 is handled at once.
 *
 * What a full CPU map loses never comes out. So a second (BL_HOMING_NS) after the last frame on a wrong CPU nothing is waited for any more. By watch time: while the lane's CPU stands still, that stands still, too.
 *
 * Included by switch.bpf.c. BPF side only.
 */
#ifndef BARLINE_SWITCH_HOMING_H
#define BARLINE_SWITCH_HOMING_H

/* A frame of port @in on CPU @cpu, which may be the wrong one. Returns BL_R_NONE: it is the home of its lane, and nothing is on its way there; BL_R_STEERED: it goes there; or why it cannot. */
__attribute__((noinline)) int bl_go_home(__u32 in, __u32 cpu)
{
	struct bl_homing *h = bpf_map_lookup_elem(&sw_homing, &in);
	struct bl_sw_port *port = port_at(in);
	const struct bl_sw_lane *lane;
	__u32 key;
	__u64 now;

	if (!h || !port)
		return BL_R_UNKNOWN_PORT;
	key = BL_HOME_LANE(port);
	lane = bpf_map_lookup_elem(&sw_lanes, &key);
	if (!lane)
		return BL_R_UNKNOWN_PORT;
	now = BL_READ_ONCE(lane->watch_ns);
	if (cpu == h->cpu) {
		if ((__s32)(BL_READ_ONCE(h->sent) - BL_READ_ONCE(h->taken)) <= 0 || (__s64)(now - BL_READ_ONCE(h->wrong_ns)) > (__s64)BL_HOMING_NS) {
			BL_WRITE_ONCE(h->sent, h->taken);
			BL_WRITE_ONCE(port->home_lane, BL_HOME_LANE(port));
			return BL_R_NONE;
		}
	} else {
		BL_WRITE_ONCE(h->wrong_ns, now);
		bl_count(in, BL_R_WRONG_CPU);
	}
	if (bpf_redirect_map(&sw_home, h->cpu, XDP_ABORTED) != XDP_REDIRECT)
		return BL_R_REDIRECT_FAILED;
	/* two receive queues of one port may be here at once */
	__sync_fetch_and_add(&h->sent, 1);
	if (!(port->home_lane & BL_AWAY))
		BL_WRITE_ONCE(port->home_lane, port->home_lane | BL_AWAY);
	return BL_R_STEERED;
}

/* A frame of port @in came out of the CPU map, at home: nobody else writes this. */
static __always_inline void came_home(__u32 in)
{
	struct bl_homing *h = bpf_map_lookup_elem(&sw_homing, &in);

	if (h)
		BL_WRITE_ONCE(h->taken, h->taken + 1);
}

#endif
