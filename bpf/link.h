/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What beacons say of their link (struct bl_link_body), between the cores and the map "link_seen".
 *
 * Example: a beacon of node 7 arrives on port 2, lane 0, when 1004 frames of that lane have come.
 * It says 1010 frames, sent at 5000; it is 5012. 12 ns becomes the least delay of the port if it is
 * below the least so far, and 6 frames are missing.
 *
 * Not here: counting frames that arrive or leave (bpf/host/host.bpf.c, bpf/switch/switch.bpf.c),
 * and what a wrong clock leads to (loader/order/link_check.c). BPF side only.
 */
#ifndef BARLINE_BPF_LINK_H
#define BARLINE_BPF_LINK_H

#include "bpf/role.h"
#include "core/auth_core.h"
#include "core/order/link_core.h"
#include "core/order/skew_core.h"
#include "core/wire_core.h"
#include "bpf/auth.h"
#include "bpf/bpf_util.h"

#define BL_LINK_OFF (sizeof(struct bl_hdr) + sizeof(struct bl_beacon) + BL_LINK_AT)

/**
 * bl_link_changed - a beacon with which something has changed: a neighbour or a count that began
 * anew, frames that are missing, or came late. Rare, and so a function.
 * @at: port in the low 16 bits, the neighbour's lane above them
 * @run: run in the low 16 bits, racing above them
 */
__attribute__((noinline)) int bl_link_changed(__u32 at, __u32 frames, __u32 run, __u64 received,
					      __u64 now)
{
	__u32 port = at & 0xffff, k = at >> 16 & (BL_LANES_MAX - 1);
	struct bl_link *link = bpf_map_lookup_elem(&link_seen, &port);
	struct bl_link_note n = { .frames = frames,
				  .run = (__u16)run,
				  .racing = (__u16)(run >> 16),
				  .received = received,
				  .now = now };
	__u32 fell;

	if (!link)
		return 0;
	n.node = link->node;
	fell = bl_link_beacon(&link->lane[k], &n);
	link->overtaken = bl_link_sat32((__u64)link->overtaken + fell);
	return 0;
}

/* Takes in what the body @b of a beacon of @node says about the clocks. */
static __always_inline void link_times(struct bl_link *link, const struct bl_link_body *b,
				       __u32 node, __u64 now)
{
	if (link->node != node) {
		BL_WRITE_ONCE(link->node, node);
		link->bucket_ns = 0;
	}
	bl_skew_add(link, (__s64)(now - bl_ext48(bl_get48(b->sent), now)), now);
	link->heard_ns = now;
	link->echo_ns = (__s32)BL_BE32(b->echo);
	link->bound_ns = BL_BE32(b->bound);
}

/* Returns whether a beacon has the link body @b. Most have none: see bl_link_tick(). */
static __always_inline int link_says(const struct bl_link_body *b)
{
	return b->magic == BL_BE32(BL_LINK_MAGIC) && b->version == BL_LINK_VERSION;
}

/*
 * Returns whether the link body of a genuine beacon is genuine, too. To be asked only where there
 * is a body, since few beacons have one. @off: offset of struct bl_hdr
 */
static __always_inline int link_is_genuine(struct xdp_md *ctx, __u32 port, __u32 off)
{
	return !bl_auth || bl_auth_check_link(ctx, port, off);
}

/*
 * Takes in the link body @b of a beacon that arrived. Both are genuine.
 * @lane: the neighbour's lane; @node: its id
 * @received: frames of that lane that have come before
 */
static __always_inline void link_in(const struct bl_link_body *b, __u32 port, __u32 lane,
				    __u32 node, __u64 received, __u64 now)
{
	struct bl_link *link = bpf_map_lookup_elem(&link_seen, &port);
	struct bl_link_lane *l;
	struct bl_link_note n;

	if (!link)
		return;
	n.node = node;
	n.received = received;
	n.now = now;
	lane &= BL_LANES_MAX - 1;
	l = &link->lane[lane];
	n.run = BL_BE16(b->run);
	n.racing = BL_BE16(b->racing);
	n.frames = BL_BE32(b->frames);
	link_times(link, b, node, now);
	link->theirs = BL_BE32(b->overtaken);
	if (!n.run)
		return;
	if (__builtin_expect(bl_link_steady(l, &n), 1))
		bl_link_heard(l, &n);
	else
		bl_link_changed(port | lane << 16, n.frames, n.run | (__u32)n.racing << 16,
				received, now);
}

/*
 * Fills in the link body @b of a beacon that leaves at @now by the port of @link, except @run,
 * @racing and @frames.
 */
static __always_inline void link_out(struct bl_link_body *b, const struct bl_link *link, __u64 now)
{
	__u32 zero = 0;
	const struct bl_clock *c = bpf_map_lookup_elem(&clock, &zero);
	__u64 bound = c ? bl_skew_bound(c, bpf_ktime_get_ns()) : BL_TIME_NONE;

	b->magic = BL_BE32(BL_LINK_MAGIC);
	b->echo = BL_BE32((__u32)bl_skew_echo(bl_skew_least(link, now)));
	bl_put48(b->sent, now);
	b->version = BL_LINK_VERSION;
	b->reserved = 0;
	b->bound = BL_BE32(bl_link_sat32(bound));
	b->overtaken = BL_BE32(link->overtaken);
	bl_store64(b->tag, 0);
}

/**
 * bl_link_refused - takes in the link body of a beacon, if it is genuine, that is refused for its
 * times: this node's clock is void, or the neighbour's is ahead. How far they are apart is needed
 * then more than ever. Nothing else of the beacon is used, and frames are not compared.
 * @off: offset of struct bl_hdr
 */
__attribute__((noinline)) int bl_link_refused(struct xdp_md *ctx, __u32 port, __u32 off)
{
	struct bl_link *link = bpf_map_lookup_elem(&link_seen, &port);
	const struct bl_link_body *b;
	const struct bl_hdr *h;
	struct bl_now now;
	void *data, *end;

	if (!link || off > sizeof(struct ethhdr) + 4 ||
	    (bl_auth && bl_auth_check(ctx, port, off, BL_AUTH_VOID) != BL_R_NONE))
		return 0;
	bl_read_clock(&now);
	if (!now.bus)
		return 0;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	h = data + off;
	BL_SEEN(h);
	b = (const void *)((const __u8 *)h + BL_LINK_OFF);
	if ((const void *)(b + 1) > end || !link_says(b) || !link_is_genuine(ctx, port, off))
		return 0;
	link_times(link, b, BL_BE32(((const struct bl_beacon *)(h + 1))->node_id), now.bus);
	return 0;
}

#endif
