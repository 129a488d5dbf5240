/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a host, between the core and the maps: the pacer's turn for one destination (bl_pl2_turn()
 * and what follows it), and GRTs as they come in on the NIC (bl_pl2_link()). BPF side only;
 * pl2_core.h has the arithmetic and the example, hold_abi.h says who writes what.
 *
 * The receiver's side is here too: the copy of a GRT announces a burst, frames take off what came,
 * and if something is still missing a while after its slot, the pacer's turn for that sender is a
 * RELEASE: the switch takes back what a dead sender was promised. The announcement keeps its time
 * in the sender's own place of hold_due, so nobody searches for what is over.
 */
#ifndef BARLINE_HOST_PL2_H
#define BARLINE_HOST_PL2_H

#include "maps/pl2_maps.h"
#include "dest.h"
#include "core/pl2/pl2_core.h"
#include "core/policy_core.h"
#include "core/wire_core.h"
#include "bpf/queue_util.h"

/* ---- the pacer's turn ---- */

/* A burst out of the destination's queues, expedited frames first. */
static __always_inline void bl_pl2_collect(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg,
					   __u32 dest)
{
	__u32 i, entry, tries = BL_PL2_K_MAX;

	BL_OPAQUE(tries);
	for (i = 0; i < tries && bl_pl2_burst_room(d, cfg, BL_PL2_FRAME_LEN); i++) {
		entry = (__u32)bl_queue_get(BL_HOLD_QUEUE(dest, 0));
		if (!entry)
			entry = (__u32)bl_queue_get(BL_HOLD_QUEUE(dest, 1));
		if (!entry)
			return;
		bl_pl2_frame_added(d, entry, BL_RING_LEN(entry));
	}
}

static __always_inline void bl_pl2_free(struct bl_pl2_dest *d)
{
	__u32 i, n = d->n, tries = BL_PL2_K_MAX;

	BL_OPAQUE(tries);
	for (i = 0; i < tries && i < n; i++)
		bl_slot_free(BL_RING_SLOT(d->entry[i]));
	bl_pl2_burst_done(d);
}

/**
 * bl_pl2_pending - a burst is in hand: bl_pl2_turn() is to be called also if the policy is another
 * one by now.
 */
static __always_inline int bl_pl2_pending(__u32 dest)
{
	const struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &dest);

	return d && d->n;
}

/**
 * bl_pl2_turn - what the pacer does for @dest at @now; @t->what: BL_DO_NOTHING, BL_DO_RSV
 * (bl_pl2_build_rsv() makes the frame) or BL_DO_FRAME (then bl_pl2_sent()). After bl_due_take():
 * whoever changes something that is not seen here sets or lowers this destination's time.
 */
__attribute__((noinline)) int bl_pl2_turn(__u32 dest, const struct bl_hold_cfg *cfg, __u64 now,
					  struct bl_pl2_turn *t)
{
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &dest);
	struct bl_pl2_coming *c = bpf_map_lookup_elem(&pl2_coming, &dest);
	const struct bl_host_page *page;
	__u32 what, zero = 0;
	int sure;

	if (!cfg || !t)
		return 0;
	t->what = BL_DO_NOTHING;
	t->next_ns = BL_DUE_NEVER;
	if (!d || !c)
		return 0;
	c->release = bl_pl2_missing(c, now);
	if (c->release) {
		t->what = BL_DO_RSV;
		t->next_ns = now;
		return 0;
	}
	page = bpf_map_lookup_elem(&host_page, &zero);
	sure = page && BL_READ_ONCE(page->life.policy) == bl_policy_say(BL_POLICY_PL2);
	what = bl_pl2_step(d, cfg, sure, now, t);
	if (what == BL_DO_DONE) {
		bl_pl2_free(d);
		what = BL_DO_COLLECT;
	}
	if (what == BL_DO_COLLECT) {
		what = BL_DO_NOTHING;
		t->next_ns = BL_DUE_NEVER;
		if (cfg->policy != BL_POLICY_PL2)
			t->next_ns = now;
		else
			bl_pl2_collect(d, cfg, dest);
		if (d->n)
			what = bl_pl2_step(d, cfg, sure, now, t);
	}
	t->what = what;
	t->next_ns = bl_min64(t->next_ns, bl_pl2_coming_at(c));
	return 0;
}

/**
 * bl_pl2_sent - the frame of this turn was handed to the device, or the device refused it: it is
 * not sent again. The last one of a burst ends it here, which saves the turn that would find
 * nothing else to do.
 */
__attribute__((noinline)) int bl_pl2_sent(__u32 dest, const struct bl_hold_cfg *cfg, __u64 now,
					  struct bl_pl2_turn *t)
{
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &dest);
	struct bl_pl2_coming *c = bpf_map_lookup_elem(&pl2_coming, &dest);

	if (!cfg || !t || !d || !c)
		return 0;
	bl_pl2_frame_sent(d);
	if (bl_pl2_burst_over(d)) {
		bl_pl2_free(d);
		t->next_ns = bl_queue_len(BL_HOLD_QUEUE(dest, 0)) |
					     bl_queue_len(BL_HOLD_QUEUE(dest, 1))
				     ? now
				     : bl_pl2_coming_at(c);
	}
	return 0;
}

/**
 * bl_pl2_build_rsv - the pacer's frame becomes the RSV for @dest, or the RELEASE that this turn is
 * for. Returns 0, or -1 if it is too short.
 */
__attribute__((noinline)) int bl_pl2_build_rsv(struct xdp_md *ctx, __u32 dest)
{
	const __u8 to[6] = BL_BEACON_MAC;
	struct bl_rsv_body *body;
	struct ethhdr *eth;
	struct bl_hdr *h;
	void *end;
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &dest);
	struct bl_pl2_coming *c = bpf_map_lookup_elem(&pl2_coming, &dest);
	struct bl_hold_dest *who = bpf_map_lookup_elem(&hold_macs, &dest);
	const struct bl_hold_cfg *cfg;
	__u32 zero = 0;

	cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	if (!d || !c || !who || !cfg ||
	    bpf_xdp_adjust_tail(ctx, (int)BL_RSV_LEN - (int)bpf_xdp_get_buff_len(ctx)))
		return -1;
	eth = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	h = (void *)(eth + 1);
	body = (void *)(h + 1);
	if ((void *)(body + 1) > end)
		return -1;
	__builtin_memcpy(eth->h_dest, to, 6);
	__builtin_memcpy(eth->h_source, cfg->mac, 6);
	eth->h_proto = BL_BE16(BL_ETHERTYPE);
	__builtin_memset(h, 0, sizeof(*h));
	__builtin_memset(body, 0, sizeof(*body));
	h->flags = BL_F_LANES(1);
	__builtin_memcpy(body->mac, who->mac, 6);
	if (c->release) {
		h->opcode = BL_OPCODE_BYTE(BL_OP_RELEASE);
		bl_hdr_set_psn(h, c->seq);
		BL_HALVES_SET(body, bytes, c->release);
		c->release = 0;
		return 0;
	}
	h->opcode = BL_OPCODE_BYTE(BL_OP_RSV);
	bl_hdr_set_psn(h, BL_PL2_SEQ(d->word));
	BL_HALVES_SET(body, bytes, d->bytes);
	body->flags = bl_pl2_rsv_flags(d);
	body->cookie = BL_BE16(BL_PL2_COOKIE(dest, d->retries));
	return 0;
}

/* ---- what comes in on the NIC ---- */

/** bl_pl2_came - a frame of @len bytes from @mac came for the application. */
static __always_inline void bl_pl2_came(const __u8 *mac, __u32 len)
{
	__u32 zero = 0, n, *known;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_mac_key key = {};
	struct bl_pl2_coming *c;

	if (!cfg || cfg->policy != BL_POLICY_PL2 || !cfg->coming_ns)
		return;
	__builtin_memcpy(key.mac, mac, sizeof(key.mac));
	key.mac[0] &= (__u8)~BL_EARLY_MAC0;
	known = bpf_map_lookup_elem(&hold_dests, &key);
	if (!known)
		return;
	n = BL_READ_ONCE(*known);
	c = bpf_map_lookup_elem(&pl2_coming, &n);
	if (!c || !BL_READ_ONCE(c->bytes))
		return; /* nothing is waited for: no pin for that */
	n = bl_number_find(&key);
	c = bpf_map_lookup_elem(&pl2_coming, &n);
	if (!n)
		return;
	if (c)
		bl_pl2_arrived(c, len);
	bl_unpin(n);
}

static __always_inline enum bl_reason bl_pl2_copy(struct bl_due *due, const struct bl_hold_cfg *cfg,
						  const __u8 *from, const struct bl_pl2_grt *g,
						  __u64 now)
{
	struct bl_mac_key key = {};
	struct bl_pl2_coming *c;
	__u64 by;
	__u32 n;

	if (cfg->policy != BL_POLICY_PL2)
		return BL_R_GRT_COPY;
	__builtin_memcpy(key.mac, from, sizeof(key.mac));
	n = (__u32)bl_hold_number(&key, now);
	c = bpf_map_lookup_elem(&pl2_coming, &n);
	if (!n)
		return BL_R_GRT_COPY; /* no number is free: time takes back what does not come */
	by = c ? bl_pl2_announce(c, cfg, g, now) : 0;
	if (by && bl_due_put(due, n, by))
		bl_pace_ring();
	bl_unpin(n);
	return BL_R_GRT_COPY;
}

/**
 * bl_pl2_link - a link frame that is no beacon came in on the NIC. @off: its header; @op, @seq:
 * from there. Returns the reason.
 */
__attribute__((noinline)) int bl_pl2_link(struct xdp_md *ctx, __u32 off, __u32 op, __u32 seq)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_hold_cfg *cfg;
	struct bl_rsv_body *body;
	struct bl_hold_dest *who;
	struct bl_pl2_dest *d;
	struct bl_due *due;
	struct bl_pl2_grt g;
	__u32 zero = 0, dest;
	enum bl_reason why;
	__u64 now, free;
	__u8 mac[6];

	if (off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	body = data + off + sizeof(struct bl_hdr);
	BL_SEEN(body);
	if ((void *)(body + 1) > end)
		return BL_R_SHORT;
	if (op != BL_OP_GRT)
		return BL_R_BAD_OPCODE;
	cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!cfg || !due || !cfg->on)
		return BL_R_GRT_BAD;
	now = bpf_ktime_get_ns();
	g.seq = seq;
	g.bytes = BL_HALVES(body, bytes);
	g.in_wait_ns = BL_HALVES(body, in_wait_ns);
	g.out_wait_ns = BL_HALVES(body, out_wait_ns);
	g.flags = body->flags;
	g.try = BL_PL2_COOKIE_TRY(BL_BE16(body->cookie));
	dest = BL_PL2_COOKIE_DEST(BL_BE16(body->cookie));
	__builtin_memcpy(mac, body->mac, 6);
	if (g.flags & BL_GRT_COPY)
		return bl_pl2_copy(due, cfg, mac, &g, now);
	d = bpf_map_lookup_elem(&pl2_dests, &dest);
	who = bpf_map_lookup_elem(&hold_macs, &dest);
	if (!d || !who || !dest || !bl_dest_pin(who))
		return BL_R_GRT_BAD;
	if (who->used != BL_DEST_USED || __builtin_memcmp(who->mac, mac, 6)) {
		d->bad++;
		bl_dest_unpin(who);
		return BL_R_GRT_BAD;
	}
	free = BL_READ_ONCE(due->free[0]);
	why = bl_pl2_grant(d, &g, free > now ? free - now : 0, bl_pl2_apart_ns(cfg), now);
	/* the pacer has something to decide at once, or a burst to send in its slot */
	if (why != BL_R_GRT_BAD && bl_due_lower(due, dest, g.flags ? now : d->send_ns))
		bl_pace_ring();
	bl_dest_unpin(who);
	return why;
}

#endif
