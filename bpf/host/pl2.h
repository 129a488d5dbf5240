/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a host, between the core and the maps: the pacer's turn for one destination (bl_pl2_turn()
 * and what follows it), and GRTs that arrive on the NIC (bl_pl2_link()). core/pl2/pl2_core.h has
 * the arithmetic and the example; maps/hold_abi.h says who writes what.
 *
 * The receiver's side is here too. The copy of a GRT announces a burst, and its frames reduce what
 * is still missing. If something is missing a while after its slot, the pacer's turn for that
 * sender builds a RELEASE, so that the switch takes back what a dead sender was promised. The
 * announcement keeps its time in the sender's entry of "hold_due", so nothing has to search for
 * announcements that are over.
 *
 * Not here: the switch's side (bpf/switch/pl2.h). BPF side only.
 */
#ifndef BARLINE_HOST_PL2_H
#define BARLINE_HOST_PL2_H

#include "bpf/host/role.h"
#include "maps/pl2_maps.h"
#include "core/pl2/pl2_core.h"
#include "core/policy_core.h"
#include "core/wire_core.h"
#include "bpf/auth.h"
#include "bpf/queue_util.h"
#include "bpf/host/dest.h"

/* ---- the pacer's turn ---- */

/* Collects a burst out of the destination's queues, expedited frames first. */
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

/* Gives back the slots of a burst and forgets it. */
static __always_inline void bl_pl2_free(struct bl_pl2_dest *d)
{
	__u32 i, n = d->n, tries = BL_PL2_K_MAX;

	BL_OPAQUE(tries);
	for (i = 0; i < tries && i < n; i++)
		bl_slot_free(BL_RING_SLOT(d->entry[i]));
	bl_pl2_burst_done(d);
}

/**
 * bl_pl2_pending - returns whether @dest has a burst in hand. Then bl_pl2_turn() must be called
 * even if the policy has changed.
 */
static __always_inline int bl_pl2_pending(__u32 dest)
{
	const struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &dest);

	return d && d->n;
}

/**
 * bl_pl2_turn - decides what the pacer does for @dest at @now. Called after bl_due_take(): a CPU
 * that changes something that is not seen here sets or lowers this destination's time.
 * @t: @t->what is set to BL_DO_NOTHING, BL_DO_RSV (bl_pl2_build_rsv() builds the frame) or
 *     BL_DO_FRAME (bl_pl2_sent() follows), @t->next_ns to the destination's next time
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
 * bl_pl2_sent - notes that the frame of this turn was handed to the device, or that the device
 * refused it; it is not sent again. The last frame of a burst ends the burst here, which saves the
 * turn that would find nothing else to do.
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
 * bl_pl2_build_rsv - turns the pacer's frame into the RSV for @dest, or into the RELEASE that this
 * turn is for. Returns 0, or -1 if the frame is too short.
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
		if (bl_auth)
			bl_auth_seal(ctx, 0, sizeof(*eth), BL_AUTH_S_RSV, 0);
		return 0;
	}
	h->opcode = BL_OPCODE_BYTE(BL_OP_RSV);
	bl_hdr_set_psn(h, BL_PL2_SEQ(d->word));
	BL_HALVES_SET(body, bytes, d->bytes);
	body->flags = bl_pl2_rsv_flags(d);
	body->cookie = BL_BE16(BL_PL2_COOKIE(dest, d->retries));
	if (bl_auth)
		bl_auth_seal(ctx, 0, sizeof(*eth), BL_AUTH_S_RSV, 0);
	return 0;
}

/* ---- what comes in on the NIC ---- */

/** bl_pl2_frame_in - notes that a frame of @len bytes from @mac arrived for the application. */
static __always_inline void bl_pl2_frame_in(const __u8 *mac, __u32 len)
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
		return; /* no burst is announced: not worth a pin */
	n = bl_number_find(&key);
	c = bpf_map_lookup_elem(&pl2_coming, &n);
	if (!n)
		return;
	if (c)
		bl_pl2_arrived(c, len);
	bl_number_unpin(n);
}

/* Notes the announcement of a burst from @from. Returns BL_R_GRT_COPY. */
static __always_inline enum bl_reason bl_pl2_note_grt_copy(struct bl_due *due,
							   const struct bl_hold_cfg *cfg,
							   const __u8 *from,
							   const struct bl_pl2_grt *g, __u64 now)
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
		return BL_R_GRT_COPY; /* Without a number, the promise lapses with time. */
	by = c ? bl_pl2_announce(c, cfg, g, now) : 0;
	if (by && bl_due_put(due, n, by))
		bl_pace_ring();
	bl_number_unpin(n);
	return BL_R_GRT_COPY;
}

/**
 * bl_pl2_link - handles a link frame other than a beacon that arrived on the NIC.
 * @off: offset of struct bl_hdr
 * @op, @seq: its opcode and sequence number
 * Returns the reason.
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
	if (!bl_admits || !cfg || !due || !cfg->on)
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
		return bl_pl2_note_grt_copy(due, cfg, mac, &g, now);
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
	/* The pacer has something to decide at once, or a burst to send in its slot. */
	if (why != BL_R_GRT_BAD && bl_due_lower(due, dest, g.flags ? now : d->send_ns))
		bl_pace_ring();
	bl_dest_unpin(who);
	return why;
}

#endif
