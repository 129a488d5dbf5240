/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metered ports of a switch: frames go into output queues instead of onto the link, and the pacer's
 * turn (bl_port_pace) sends them at the port's rate, best class first.
 *
 * Example: a port of 1 Gbit/s has ten full frames in DATA, and its link has been free for 5 us. One
 * is sent now, the next in 12.1 us. An ARP reply that arrives meanwhile goes into CONTROL and
 * leaves as the next frame.
 *
 * Ordered frames and relayed beacons go into DATA with their barriers written: that queue is a
 * FIFO, as the link itself.
 *
 * Not here: the arithmetic of classes and rates (core/queue/port_core.h). BPF side only.
 */
#ifndef BARLINE_SWITCH_PORT_H
#define BARLINE_SWITCH_PORT_H

#include "bpf/role.h"
#include "core/queue/port_core.h"
#include "bpf/queue_util.h"
#include "bpf/switch/top.h"

/* Returns whether port @port is metered. */
static __always_inline int bl_port_metered(__u32 port)
{
	const struct bl_sw_port *p = bpf_map_lookup_elem(&sw_ports, &port);

	return p && p->metered;
}

/**
 * bl_port_put - copies the current frame into port @port's queue of class @cls. Also for device-map
 * programs. The caller drops the frame in any case; it stays as it is except for an ECN mark.
 * Returns BL_R_QUEUED, QUEUE_FULL, NO_SLOT or FRAME_SIZE.
 */
__attribute__((noinline)) int bl_port_put(struct xdp_md *ctx, __u32 port, __u32 cls)
{
	__u32 zero = 0, p = port;
	struct bl_due *due = bpf_map_lookup_elem(&port_due, &zero);
	__u64 *busy = bpf_map_lookup_elem(&port_busy, &p), now = bpf_ktime_get_ns();
	int why;

	if (!due || !busy || cls >= BL_CL_COUNT)
		return BL_R_QUEUE_FULL;
	why = bl_enqueue(ctx, BL_PORT_QUEUE(port, cls), now, port);
	if (why != BL_R_NONE)
		return why;
	bl_busy_set(busy, cls);
	/*
	 * The pacer's free may be one frame old: then the pacer looks a little too early. The time
	 * is lowered and not only put: the pacer may plan to look later, because all frames that
	 * wait are tokens that their group's rate holds back.
	 */
	if (bl_due_lower(due, port,
			 bl_due_of(BL_READ_ONCE(due->free[port & (BL_DUE_MAX - 1)]), now)))
		bl_pace_ring();
	return BL_R_QUEUED;
}

/*
 * Copies the frame of port @port that is due into the pacer's frame and sends it. Returns the
 * verdict.
 * @again: set to when the pacer looks at this port again
 */
static __always_inline int bl_port_send(struct xdp_md *ctx, struct bl_pace_page *page,
					struct bl_due *due, __u32 port, __u64 now, __u64 *again)
{
	__u32 key = port, cls, entry, slot, len;
	struct bl_meter *m = bpf_map_lookup_elem(&sw_meters, &key);
	__u64 *busy = bpf_map_lookup_elem(&port_busy, &key),
	      *free = &due->free[port & (BL_DUE_MAX - 1)], bits, at;
	const struct bl_queue *q;
	int sent;

	*again = BL_DUE_NEVER;
	if (!m || !busy)
		return XDP_DROP;
	*again = *free;
	if (*free > now)
		return XDP_DROP;
	bits = BL_READ_ONCE(*busy);
	*again = BL_DUE_NEVER;
	if (!bits)
		return XDP_DROP;
	cls = (__u32)bl_token_pick(port, (__u32)bits);
	if (cls >= BL_CL_COUNT) {
		*again = bl_token_next_scan(port, busy, now, now);
		return XDP_DROP;
	}
	key = BL_PORT_QUEUE(port, cls);
	entry = (__u32)bl_queue_get(key);
	q = bpf_map_lookup_elem(&queues, &key);
	if (q && !bl_ring_len(q))
		bl_busy_clear(busy, cls, q);
	*again = bl_port_next_ns(busy, now);
	if (!entry)
		return XDP_DROP;
	slot = BL_RING_SLOT(entry);
	len = BL_RING_LEN(entry);
	if (1U << cls & BL_TOKEN_BITS && bl_token_stale(port, cls, slot, now)) {
		bl_slot_free(slot);
		return bl_done_out(ctx, port, BL_R_TOKEN_EXPIRED, len);
	}
	at = bl_due_of(*free, bl_slot_arrival_ns(slot));
	sent = !bl_frame_out(ctx, slot, len) &&
	       bpf_redirect_map(&port_tx, port, XDP_ABORTED) == XDP_REDIRECT;
	if (sent) {
		*free = bl_free_after(m, at, now, len);
		bl_token_note_sent(port, cls, len, now);
	}
	*again = bl_token_next_scan(port, busy, *free, now);
	bl_pace_note_frame(page, slot, sent, at, now);
	bl_slot_free(slot);
	return bl_done_out(ctx, port, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED, len);
}

/*
 * One turn of the pacer: sends at most one frame, of the port whose time came first. A turn without
 * a frame counts nothing but itself. Returns the verdict.
 */
static __always_inline int bl_port_turn(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct bl_pace_page *page = bpf_map_lookup_elem(&pace_page, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&port_due, &zero);
	__u64 now = bpf_ktime_get_ns(), again;
	const struct bl_sw_cfg *cfg;
	struct bl_scan s;
	int verdict = XDP_DROP;

	if (!page || !due || bl_pace_idle(page, due, now))
		return XDP_DROP;
	cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!cfg)
		return XDP_DROP;
	bl_due_scan(due, cfg->nports, &s);
	again = s.pick.least;
	if (again <= now) {
		bl_due_take(due, s.pick.index);
		verdict = bl_port_send(ctx, page, due, s.pick.index, now, &again);
	}
	bl_due_end(due, &s.pick, again, 0);
	BL_WRITE_ONCE(page->next_ns, BL_READ_ONCE(due->next));
	return verdict;
}

#endif
