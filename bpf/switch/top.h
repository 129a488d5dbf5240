/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP at the switch: tokens and signals as they arrive, as they leave, and what the pacer does with
 * those that wait. core/top/top_token_core.h has the rules.
 *
 * Example, mode pace, port 2 of 1 Gbit/s: nine tokens of class 3 arrive at once. Eight go into port
 * 2's queue TOKEN3; the ninth is dropped (token_limit). The pacer sends two at once and one every
 * 13 us; those that are still there after 103.8 us are dropped (token_expired).
 *
 * Not here: finding TOP's frames, which bl_plain() does after everything that ordered frames go
 * through. BPF side only.
 */
#ifndef BARLINE_SWITCH_TOKEN_H
#define BARLINE_SWITCH_TOKEN_H

#include "bpf/role.h"
#include "maps/top_token_maps.h"
#include "core/queue/classify_core.h"
#include "core/top/top_token_core.h"
#include "bpf/queue_util.h"

/* Returns TOP's configuration, or NULL if TOP is off. */
static __always_inline const struct bl_token_cfg *bl_token_on(void)
{
	__u32 zero = 0;
	const struct bl_token_cfg *c = bpf_map_lookup_elem(&token_cfg, &zero);

	return c && c->on ? c : NULL;
}

/* Returns what TOP knows of port @port. */
static __always_inline struct bl_token_port *bl_token_port_at(__u32 port)
{
	return bpf_map_lookup_elem(&token_ports, &port);
}

/* Returns this CPU's counters of port @port. */
static __always_inline struct bl_token_counts *bl_token_counts_at(__u32 port)
{
	return bpf_map_lookup_elem(&token_counts, &port);
}

/*
 * Counts one token of class @cls. The bound is checked where the array is indexed: Linux 6.1
 * forgets it if the register was on the stack in between.
 */
static __always_inline void bl_token_count_class(__u64 *by_class, __u32 cls)
{
	__u64 c = cls;

	BL_SEEN(c);
	if (c < BL_TOP_CLASSES) {
		BL_SEEN(c);
		by_class[c]++;
	}
}

/**
 * bl_token_in - parses a frame to TOP's UDP port that arrived on port @in. A global function, as
 * the others here: the verifier checks each once.
 * @l4: offset of the UDP header
 * @len: bytes of the frame
 * Returns the class of the token, BL_TOKEN_SIGNAL, or -(reason) to drop it.
 */
__attribute__((noinline)) int bl_token_in(struct xdp_md *ctx, __u32 in, __u32 l4, __u32 len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_token_counts *n;
	const struct udphdr *u;
	int what;

	if (l4 > sizeof(struct ethhdr) + 4 + sizeof(struct ipv6hdr))
		return -BL_R_SHORT;
	u = data + l4;
	BL_SEEN(u);
	what = bl_token_parse(u, end, len - l4);
	if (what == -BL_R_TOKEN_CLASS) {
		n = bl_token_counts_at(in);
		if (n)
			n->bad++;
	}
	return what;
}

/* Returns whether a token or signal is beyond the budget of input @in, and counts it there. */
static __always_inline int bl_token_flood(__u32 in, int signal, __u32 len, __u64 now)
{
	struct bl_token_port *p = bl_token_port_at(in);
	struct bl_token_counts *n;
	int ok;

	if (!p)
		return 0;
	ok = signal ? bl_token_budget(&p->signal_q20, p->ns_q20, len, BL_SIGNAL_INPUT, now)
		    : bl_token_budget(&p->in_q20, p->ns_q20, len, BL_TOKEN_INPUT, now);
	if (ok && !signal)
		return 0;
	n = bl_token_counts_at(in);
	if (n && signal) {
		n->signals += ok;
		n->signal_flood += !ok;
	} else if (n) {
		n->flood++;
	}
	return !ok;
}

/**
 * bl_token_forget - frees the slot of token @entry of class @cls, which was too old in a queue of
 * port @port, and counts it. A global function, since bl_token_room() may do so several times.
 * Always returns 0.
 */
__attribute__((noinline)) int bl_token_forget(__u32 port, __u32 cls, __u32 entry)
{
	struct bl_token_counts *n = bl_token_counts_at(port);

	bl_slot_free(BL_RING_SLOT(entry));
	bl_count_frame(port, BL_R_TOKEN_EXPIRED, BL_RING_LEN(entry));
	if (n)
		bl_token_count_class(n->expired, cls);
	return 0;
}

/*
 * In mode pace, returns whether class @cls of port @port has room for one more token. If its queue
 * is full, tokens at the head that are too old make room: for TOP they are lost already.
 */
static __always_inline int bl_token_room(const struct bl_token_cfg *c,
					 const struct bl_token_port *p, __u32 port, __u32 cls,
					 __u64 now)
{
	__u32 key = BL_PORT_QUEUE(port, BL_CL_TOKEN0 + cls), entry, i;
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);

	if (!q)
		return 0;
	/*
	 * The length is read without the lock: as many CPUs as put tokens here at the same moment
	 * may each put one beyond the limit.
	 */
	if (bl_ring_len(q) < c->frames)
		return 1;
	for (i = 0; i < BL_TOKEN_FRAMES; i++) {
		/*
		 * The head is read without the lock and taken out only if it is still the same
		 * entry. If it has left meanwhile, its slot was used again for a token of the same
		 * length, and that is at the head now, then that token goes: one token.
		 */
		entry = BL_READ_ONCE(q->ring[BL_READ_ONCE(q->head) & (BL_RING - 1)]);
		if (!bl_ring_len(q) ||
		    !bl_token_expired(c, p, bl_slot_arrival_ns(BL_RING_SLOT(entry)), now) ||
		    !bl_queue_get_if(key, entry))
			break;
		bl_token_forget(port, cls, entry);
	}
	return bl_ring_len(q) < c->frames;
}

/**
 * bl_token_out - decides about a token or signal of @len bytes from port @in to port @out. The
 * input's budget is checked here, too, so that the clock is read once.
 * @cls: class of the token, or BL_TOKEN_SIGNAL
 * @metered: the output is
 * Returns BL_R_TOKEN_PASSED, or the reason to drop it.
 */
__attribute__((noinline)) int bl_token_out(__u32 in, __u32 out, __u32 cls, __u32 len, int metered)
{
	const struct bl_token_cfg *c = bl_token_on();
	struct bl_token_port *p = bl_token_port_at(out);
	__u64 now = bpf_ktime_get_ns();
	struct bl_token_counts *n;
	__u32 lost = 0;
	int why;

	if (bl_token_flood(in, cls == BL_TOKEN_SIGNAL, len, now))
		return BL_R_TOKEN_FLOOD;
	if (!c || !p || cls >= BL_TOP_CLASSES)
		return BL_R_TOKEN_PASSED;
	n = bl_token_counts_at(out);
	if (!n)
		return BL_R_TOKEN_PASSED;
	if (c->mode == BL_TOKEN_PACE && metered) {
		why = bl_token_room(c, p, out, cls, now) ? BL_R_TOKEN_PASSED : BL_R_TOKEN_LIMIT;
	} else {
		why = bl_token_decide(c, &p->out_q20, p->ns_q20, cls, len, now, &lost);
		n->lost += lost;
		if (why == BL_R_TOKEN_PASSED)
			bl_token_count_class(n->passed, cls);
	}
	if (why == BL_R_TOKEN_LIMIT)
		bl_token_count_class(n->limit, cls);
	else if (why == BL_R_TOKEN_EXPIRED)
		bl_token_count_class(n->expired, cls);
	return why;
}

/**
 * bl_unsched_room - returns whether the class for unscheduled frames of port @port has room for
 * @len bytes: it is one full frame deep (TOP section 4.4). Read without the lock: see
 * bl_token_room().
 */
static __always_inline int bl_unsched_room(__u32 port, __u32 len)
{
	__u32 key = BL_PORT_QUEUE(port, BL_CL_UNSCHED);
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);

	return q && BL_READ_ONCE(q->bytes) + len <= BL_QUEUE_FRAME_MAX;
}

/* ---- the pacer ---- */

/**
 * bl_token_pick - returns the class that port @port sends next, of those in @bits; BL_CL_COUNT:
 * none may go yet.
 */
__attribute__((noinline)) int bl_token_pick(__u32 port, __u32 bits)
{
	const struct bl_token_cfg *c = bl_token_on();
	const struct bl_token_port *p = bl_token_port_at(port);

	if (!c || !p || c->mode != BL_TOKEN_PACE)
		return (int)bl_busy_first(bits);
	return (int)bl_token_choose(c, p, bits, bpf_ktime_get_ns());
}

/**
 * bl_token_stale - returns whether the token of class @cls in @slot, taken out of port @port's
 * queue, is too old, and counts it if so.
 */
__attribute__((noinline)) int bl_token_stale(__u32 port, __u32 cls, __u32 slot, __u64 now)
{
	const struct bl_token_cfg *c = bl_token_on();
	const struct bl_token_port *p = bl_token_port_at(port);
	struct bl_token_counts *n = bl_token_counts_at(port);

	cls -= BL_CL_TOKEN0;
	if (!c || !p || !n || c->mode != BL_TOKEN_PACE || cls >= BL_TOP_CLASSES ||
	    !bl_token_expired(c, p, bl_slot_arrival_ns(slot), now))
		return 0;
	bl_token_count_class(n->expired, cls);
	return 1;
}

/* Notes that a frame of class @cls was sent. */
static __always_inline void bl_token_note_sent(__u32 port, __u32 cls, __u32 len, __u64 now)
{
	const struct bl_token_cfg *c = bl_token_on();
	struct bl_token_port *p = bl_token_port_at(port);
	struct bl_token_counts *n = bl_token_counts_at(port);

	if (!c || !p || !n || c->mode != BL_TOKEN_PACE)
		return;
	bl_token_sent(p, cls, len, now);
	bl_token_count_class(n->passed, cls - BL_CL_TOKEN0);
}

/*
 * Returns when to look at this port again: as bl_port_next_ns(), but if only tokens wait, when
 * their group's rate allows the next one.
 */
static __always_inline __u64 bl_token_next_scan(__u32 port, const __u64 *busy, __u64 free,
						__u64 now)
{
	const struct bl_token_cfg *c = bl_token_on();
	const struct bl_token_port *p = bl_token_port_at(port);

	if (!c || !p || c->mode != BL_TOKEN_PACE)
		return bl_port_next_ns(busy, free);
	/* after bl_due_take(), as in bl_port_next_ns() */
	return bl_token_next_ns(p, BL_READ_ONCE(*busy), free, now);
}

#endif
