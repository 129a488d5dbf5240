/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission on a host: bl_hold_xdp, on bl0d, holds frames of applications per destination, and the
 * pacer's turn (bl_host_pace) sends what may go. BPF side only.
 *
 * Under policy none that is everything, as fast as the NIC's link allows. The destination with the
 * earliest time comes first, and one that has more frames gets the time at which it was served, so
 * destinations take turns. Destination 0 (ARP, ND, broadcast) has time 0 and is always first. Under
 * the other policies a header decides for the other destinations: under pl2 pl2.h (nothing yet, an
 * RSV, or a frame of a burst), under fastpass fastpass.h (nothing yet, or a frame in its timeslot),
 * under top top.h, where numbers are flows whose frames leave in exchange for tokens.
 *
 * Example, policy none: destination 3 got two frames at 100 us, destination 5 one at 101 us. The
 * turn at 102 us sends a frame of 3, whose time becomes 102. The next turn sends that of 5, the one
 * after it the second frame of 3.
 *
 * Not here: which destination a number is (dest.h), and frames that wait too long (sweep.h).
 */
#ifndef BARLINE_HOST_HOLD_H
#define BARLINE_HOST_HOLD_H

#include "bpf/host/role.h"
#include "core/queue/classify_core.h"
#include "bpf/queue_util.h"
#include "bpf/host/beacon.h"
#include "bpf/host/pl2.h"
#include "bpf/host/fastpass.h"
#include "bpf/host/policy.h"
#include "bpf/host/top.h"
#include "bpf/host/sweep.h"

/* ---- frames of applications ---- */

/*
 * Fills @key with the frame's destination: its Ethernet address, or behind a router its IP address.
 */
static __always_inline void bl_hold_key(struct bl_mac_key *key, const struct ethhdr *eth,
					const void *end, const struct bl_frame_class *l, int routed)
{
	__u32 l3 = l->l3_off;
	const void *p = eth;

	__builtin_memcpy(key->mac, eth->h_dest, sizeof(key->mac));
	if (!routed || l3 > sizeof(*eth) + sizeof(struct bl_vlan))
		return;
	p += l3;
	BL_SEEN(p);
	if (l->kind == BL_FRAME_IP4 && p + sizeof(struct iphdr) <= end) {
		key->mac[0] = key->mac[1] = 0;
		__builtin_memcpy(key->mac + 2, &((const struct iphdr *)p)->daddr, 4);
		key->kind = 4;
	} else if (l->kind == BL_FRAME_IP6 && p + sizeof(struct ipv6hdr) <= end) {
		__builtin_memcpy(key->mac, &((const struct ipv6hdr *)p)->daddr.s6_addr[10], 6);
		__builtin_memcpy(key->upper, &((const struct ipv6hdr *)p)->daddr,
				 sizeof(key->upper));
		key->kind = 6;
	}
}

/**
 * bl_hold_refuse - refuses frames of applications on bl0 that pretend to be barline's. They would
 * carry barriers that nothing backs. Returns BL_R_NOT_OURS for every other frame, or the reason to
 * drop it.
 */
__attribute__((noinline)) int bl_hold_refuse(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct bl_host_cfg *host = bpf_map_lookup_elem(&host_cfg, &zero);
	struct bl_frame f;
	enum bl_reason why;

	if (!host)
		return BL_R_NOT_OURS;
	why = bl_parse_whole((void *)(long)ctx->data, (void *)(long)ctx->data_end,
			     bl_frame_len(ctx), host->port_base, host->port_count, &f);
	if (why == BL_R_NONE)
		why = bl_op_link(f.opcode) ? BL_R_FORGED_BEACON : BL_R_NOT_ENDPOINT;
	return why;
}

/* Notes that a frame was put into a queue of @dest. Returns 1 if the pacer must be woken. */
static __always_inline int bl_hold_note_frame(struct xdp_md *ctx, const struct bl_hold_cfg *cfg,
					      struct bl_due *due, __u32 dest, __u32 policy,
					      __u64 now)
{
	if (!dest || policy != BL_POLICY_FASTPASS)
		return bl_due_lower(due, dest, dest ? now : 0);
	bl_fp_held(dest, (__u32)bpf_xdp_get_buff_len(ctx), cfg);
	/* The pacer knows when the next slot begins, if there is one. */
	return bl_due_put(due, dest, now);
}

/* Puts a frame that an application sent into bl0 into its hold queue. Returns the reason. */
static __always_inline enum bl_reason bl_hold_frame(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, dest = 0, pinned = 0, policy;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	const struct ethhdr *eth = data;
	struct bl_mac_key key = {};
	struct bl_frame_class l;
	enum bl_reason why;
	__u64 now; /* start of the turn, CLOCK_MONOTONIC, ns */

	if (!cfg || !due || !cfg->on)
		return BL_R_NOT_OURS;
	if (bl_frame_class(data, end, &l) || (void *)(eth + 1) > end)
		return BL_R_FRAME_SIZE;
	why = (enum bl_reason)bl_hold_refuse(ctx);
	if (why != BL_R_NOT_OURS)
		return why;
	now = bpf_ktime_get_ns();
	policy = bl_policy_now(cfg);
	if (bl_class_is_held(&l) && policy == BL_POLICY_TOP) {
		why = (enum bl_reason)bl_top_hold(ctx, bl_hold_class(&l), now);
		if (why != BL_R_NONE)
			return why;
		/* goes with destination 0, which never waits */
		bl_count(BL_HC_HOLD, BL_R_NO_TOKEN);
	} else if (bl_class_is_held(&l)) {
		bl_hold_key(&key, eth, end, &l, cfg->routed);
		pinned = dest = (__u32)bl_hold_number(&key, now);
		if (!dest && policy != BL_POLICY_NONE)
			return BL_R_HOLD_DESTS;
		if (!dest)
			dest = BL_HOLD_SHARED;
	}
	why = bl_enqueue(ctx, BL_HOLD_QUEUE(dest, bl_hold_class(&l)), now, BL_HC_HOLD);
	if (why == BL_R_NONE) {
		if (bl_hold_note_frame(ctx, cfg, due, dest, policy, now))
			bl_pace_ring();
		why = BL_R_HELD;
	}
	if (pinned)
		bl_number_unpin(pinned);
	return why == BL_R_QUEUE_FULL ? BL_R_HOLD_FULL : why;
}

/* ---- the pacer's turn ---- */

/** struct bl_host_turn - what one turn of the pacer works with. */
struct bl_host_turn {
	struct bl_pace_page *page;     /* value 0 of "pace_page" */
	struct bl_due *due;            /* value 0 of "hold_due" */
	const struct bl_hold_cfg *cfg; /* value 0 of "hold_cfg" */
	__u64 now;
	__u32 policy; /* bl_policy_now() */
	__u32 zero;
};

/*
 * Sends the frame that @ctx has become out of the NIC. @at: when it was due; @len: its bytes.
 * Returns 1 if the device map took it.
 */
static __always_inline int bl_host_redirect(struct bl_host_turn *t, __u64 at, __u32 len)
{
	if (bpf_redirect_map(&hold_tx, BL_TX_NIC, XDP_ABORTED) != XDP_REDIRECT)
		return 0;
	t->due->free[0] = bl_free_after(&t->cfg->link, at, t->now, len);
	return 1;
}

/**
 * bl_host_note_frame - bl_pace_note_frame() as a global function, which the verifier follows once
 * and not for each place from which a frame is sent.
 * @at, @now: when the frame was due, and the turn, CLOCK_MONOTONIC, ns
 */
__attribute__((noinline)) int bl_host_note_frame(__u32 slot, int sent, __u64 at, __u64 now)
{
	__u32 zero = 0;
	struct bl_pace_page *page = bpf_map_lookup_elem(&pace_page, &zero);

	if (page)
		bl_pace_note_frame(page, slot, sent, at, now);
	return 0;
}

/*
 * Sends the frame in @entry's slot. The slot is still taken afterwards.
 * @due_ns: when the frame should have gone
 * @early: 1: PL2's unsolicited frame, or TOP's unscheduled one
 * @dest, @path: Fastpass's destination and path; @dest 0: another policy
 * Returns the verdict.
 */
static __always_inline int bl_host_send_frame(struct xdp_md *ctx, struct bl_host_turn *t,
					      __u32 entry, __u64 due_ns, __u32 early, __u32 dest,
					      __u32 path)
{
	__u32 slot = BL_RING_SLOT(entry), len = BL_RING_LEN(entry), column = BL_FP_PATHS;
	__u64 at = bl_due_of(t->due->free[0], due_ns);
	int sent = !bl_frame_out(ctx, slot, len);

	if (sent && early) {
		void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
		struct ethhdr *eth = data;

		if ((void *)(eth + 1) <= end)
			eth->h_source[0] |= BL_EARLY_MAC0;
	}
	if (sent && dest)
		column = bl_fp_path(ctx, t->cfg, path);
	sent = sent && bl_host_redirect(t, at, len);
	if (sent && dest)
		bl_fp_note_sent(t->cfg, dest, column);
	bl_host_note_frame(slot, sent, at, t->now);
	return bl_done_out(ctx, BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED, len);
}

/*
 * Sends the oldest frame of @dest: under policy none, and for destination 0 under any policy. Under
 * Fastpass these frames carry no path. They are counted all the same, because the other end counts
 * them.
 * @again: set to when the pacer looks at this destination again
 * Returns the verdict.
 */
static __always_inline int bl_host_send_oldest(struct xdp_md *ctx, struct bl_host_turn *t,
					       __u32 dest, __u64 *again)
{
	__u32 key = BL_HOLD_QUEUE(dest, 0), entry = (__u32)bl_queue_get(key);
	__u32 counted = t->cfg->policy == BL_POLICY_FASTPASS ? dest : 0;
	int verdict;

	if (!entry)
		entry = (__u32)bl_queue_get(key + 1);
	/* After bl_due_take(): a frame that is not seen here finds BL_DUE_NEVER. */
	*again = bl_queue_len(key) | bl_queue_len(key + 1) ? (dest ? t->now : 0) : BL_DUE_NEVER;
	if (!entry)
		return XDP_DROP;
	verdict = bl_host_send_frame(ctx, t, entry, bl_slot_arrival_ns(BL_RING_SLOT(entry)), 0,
				     counted, BL_FP_NO_PATH);
	bl_slot_free(BL_RING_SLOT(entry));
	bl_number_left(dest, t->now);
	return verdict;
}

/* One turn for @dest under PL2. Returns the verdict and sets *@again. */
static __always_inline int bl_host_pl2_turn(struct xdp_md *ctx, struct bl_host_turn *t, __u32 dest,
					    __u64 *again)
{
	struct bl_pl2_turn p = {};
	int verdict = XDP_DROP;

	bl_pl2_turn(dest, t->cfg, t->now, &p);
	if (p.what == BL_DO_RSV && !bl_pl2_build_rsv(ctx, dest)) {
		int sent = bl_host_redirect(t, bl_due_of(t->due->free[0], t->now), BL_RSV_LEN);

		if (sent)
			t->page->emitted++;
		else
			t->page->failed++;
		verdict = bl_done_out(ctx, BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED,
				      BL_RSV_LEN);
	} else if (p.what == BL_DO_FRAME) {
		verdict = bl_host_send_frame(ctx, t, p.entry, p.due_ns, p.early, 0, BL_FP_NO_PATH);
		bl_pl2_sent(dest, t->cfg, t->now, &p);
		bl_number_left(dest, t->now);
	}
	*again = p.next_ns;
	return verdict;
}

/* One turn for @dest under Fastpass. Returns the verdict and sets *@again. */
static __always_inline int bl_host_fastpass_turn(struct xdp_md *ctx, struct bl_host_turn *t,
						 __u32 dest, __u64 *again)
{
	struct bl_fp_turn p = {};
	int verdict = XDP_DROP;

	bl_fp_turn(dest, t->cfg, t->now, &p);
	if (p.what == BL_FP_AT_ONCE)
		return bl_host_send_oldest(ctx, t, dest, again);
	if (p.what == BL_FP_FRAME) {
		verdict = bl_host_send_frame(ctx, t, p.entry, p.due_ns, 0, dest, p.path);
		bl_slot_free(BL_RING_SLOT(p.entry));
		bl_number_left(dest, t->now);
	}
	*again = p.next_ns;
	return verdict;
}

/*
 * Sends the token or signal of @len bytes that the frame has become, whether the link is free or
 * not: tokens have their own pace, and signals are few. @len: -1: building it failed. Returns the
 * verdict.
 */
static __always_inline int bl_host_send_signal(struct xdp_md *ctx, struct bl_host_turn *t, int len)
{
	int sent = len > 0 && bpf_redirect_map(&hold_tx, BL_TX_NIC, XDP_ABORTED) == XDP_REDIRECT;

	if (sent)
		t->page->emitted++;
	else
		t->page->failed++;
	return bl_done_out(ctx, BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED,
			   len > 0 ? (__u32)len : 0);
}

/* Sends one unscheduled frame of flow @n. Returns the verdict. */
static __always_inline int bl_host_send_unscheduled(struct xdp_md *ctx, struct bl_host_turn *t,
						    __u32 n)
{
	__u32 entry = bl_top_take_entry(n), slot = BL_RING_SLOT(entry), len;
	int verdict;

	if (!entry)
		return XDP_DROP;
	len = (__u32)bl_top_append_echo(slot, BL_RING_LEN(entry), n, 0, 0);
	verdict = bl_host_send_frame(ctx, t, BL_RING_ENTRY(slot, len), bl_slot_arrival_ns(slot), 1,
				     0, BL_FP_NO_PATH);
	bl_slot_free(slot);
	bl_number_left(n, t->now);
	return verdict;
}

/*
 * Sends a kept frame of flow @n whose token's frame could not grow; its echo is behind it already.
 * Returns 0 if there is none, or else 1, with *@verdict set if a frame was sent.
 */
static __always_inline int bl_host_resend_kept(struct xdp_md *ctx, struct bl_host_turn *t, __u32 n,
					       int *verdict)
{
	struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);
	__u64 push, word;
	__u32 i, entry;

	if (!k)
		return 0;
	push = BL_READ_ONCE(k->push);
	if (!push)
		return 0;
	i = bl_lowest(push) & (BL_TOP_KEEP - 1);
	bl_bit_clear(&k->push, i);
	word = bl_top_take_kept(k, i);
	if (!word)
		return 1; /* it arrived before it was sent again */
	entry = BL_KEPT_ENTRY(word);
	*verdict = bl_host_send_frame(
		ctx, t,
		BL_RING_ENTRY(BL_RING_SLOT(entry),
			      BL_RING_LEN(entry) + (__u32)sizeof(struct bl_top_echo)),
		bl_slot_arrival_ns(BL_RING_SLOT(entry)), 0, 0, BL_FP_NO_PATH);
	bl_top_put_kept_back(k, i, word);
	return 1;
}

/**
 * bl_host_release_flow - gives up the closed number @n of a flow that has ended, or has nothing
 * left under another policy.
 */
__attribute__((noinline)) int bl_host_release_flow(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	bl_top_release(n);
	if (d)
		bl_number_leave(d, n);
	return 0;
}

/**
 * bl_host_close_flow - closes the number of a flow that holds nothing, so that it can end in this
 * turn. Returns 1; 0 if it holds frames or another CPU uses it.
 */
__attribute__((noinline)) int bl_host_close_flow(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	return d && !bl_number_held(n) && bl_top_flowing(n) && bl_dest_close(d);
}

/** bl_host_reopen_flow - opens number @n again. */
__attribute__((noinline)) int bl_host_reopen_flow(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		bl_dest_open(d);
	return 0;
}

/*
 * One turn for number @n if it is a flow's, or for any number under policy top. What is left from
 * another policy goes at once. Returns the verdict and sets *@again.
 */
static __always_inline int bl_host_top_turn(struct xdp_md *ctx, struct bl_host_turn *t, __u32 n,
					    __u64 *again)
{
	struct bl_top_turn d = { .what = BL_TOP_DO_AT_ONCE, .next_ns = BL_DUE_NEVER };
	int verdict = XDP_DROP;

	if (bl_host_resend_kept(ctx, t, n, &verdict)) {
		*again = t->now;
		return verdict;
	}
	/*
	 * Frames and tokens do not find a closed number. So it is closed only when the flow is
	 * about to end, and then the turn is computed once more.
	 */
	d.busy = t->policy == BL_POLICY_TOP || !bl_host_close_flow(n);
	if (t->policy == BL_POLICY_TOP)
		bl_top_turn(n, t->now, &d);
	if (d.busy == 2 && bl_host_close_flow(n)) {
		d.busy = 0;
		bl_top_turn(n, t->now, &d);
	}
	*again = d.next_ns;
	if (d.what == BL_TOP_DO_AT_ONCE) {
		verdict = bl_host_send_oldest(ctx, t, n, again);
		if (*again == BL_DUE_NEVER && bl_top_flowing(n)) {
			if (t->policy == BL_POLICY_TOP || d.busy) {
				*again = t->policy == BL_POLICY_TOP ? t->now + BL_TOP_OUTSIDE_NS
								    : t->now;
			} else {
				bl_host_release_flow(n);
				return verdict;
			}
		}
	} else if (d.what == BL_TOP_DO_UNSCHED) {
		verdict = bl_host_send_unscheduled(ctx, t, n);
	} else if (d.what == BL_TOP_DO_SYNC || d.what == BL_TOP_DO_STOP ||
		   d.what == BL_TOP_DO_END) {
		verdict = bl_host_send_signal(ctx, t, bl_top_build_signal(ctx, n, &d));
		if (d.what == BL_TOP_DO_END) {
			bl_host_release_flow(n);
			return verdict;
		}
	}
	if (!d.busy)
		bl_host_reopen_flow(n);
	return verdict;
}

/*
 * One turn of the pacer: sends at most one frame. A beacon comes first, whatever the link's rate
 * allows, because it goes through the kernel. A turn without a frame counts nothing but itself.
 * Returns the verdict.
 */
static __always_inline int bl_host_turn(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct bl_host_turn t = { .page = bpf_map_lookup_elem(&pace_page, &zero),
				  .due = bpf_map_lookup_elem(&hold_due, &zero),
				  .now = bpf_ktime_get_ns() };
	struct bl_scan s;
	int verdict, len;
	__u64 again;

	if (!t.page || !t.due || bl_pace_idle(t.page, t.due, t.now))
		return XDP_DROP;
	t.cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	if (!t.cfg)
		return XDP_DROP;
	t.policy = bl_policy_now(t.cfg);
	bl_hold_turn_begin(t.due, t.now);
	bl_due_scan(t.due, bl_numbers_used(t.due), &s);
	again = s.pick.least;
	verdict = bl_host_beat(ctx, t.now);
	len = verdict < 0 ? bl_top_slot(ctx, t.now) : 0;
	if (len)
		verdict = bl_host_send_signal(ctx, &t, len);
	if (verdict < 0 && again <= t.now && t.due->free[0] <= t.now) {
		bl_due_take(t.due, s.pick.index);
		if (s.pick.index)
			bl_hold_drop_aged(s.pick.index, t.now);
		/* shared by destinations without a number: no policy can ask for it */
		if (s.pick.index == BL_HOLD_SHARED)
			verdict = bl_host_send_oldest(ctx, &t, s.pick.index, &again);
		else if (s.pick.index && !bl_pl2_pending(s.pick.index) &&
			 (t.policy == BL_POLICY_TOP || bl_top_flowing(s.pick.index)))
			verdict = bl_host_top_turn(ctx, &t, s.pick.index, &again);
		else if (s.pick.index &&
			 (t.policy == BL_POLICY_PL2 || bl_pl2_pending(s.pick.index)))
			verdict = bl_host_pl2_turn(ctx, &t, s.pick.index, &again);
		else if (s.pick.index && t.policy == BL_POLICY_FASTPASS)
			verdict = bl_host_fastpass_turn(ctx, &t, s.pick.index, &again);
		else
			verdict = bl_host_send_oldest(ctx, &t, s.pick.index, &again);
		/*
		 * A destination that waits for an answer that does not come is looked at all the
		 * same.
		 */
		if (s.pick.index && again > t.now + BL_HOLD_LOOK_NS)
			bl_hold_schedule_scan(s.pick.index, t.now);
	}
	bl_due_end(t.due, &s.pick, again, t.due->free[0]);
	bl_due_next(t.due, bl_min64(bl_beat_next(), bl_top_next(t.cfg)));
	if (bl_numbers_low(t.due))
		bl_number_sweep(t.now);
	BL_WRITE_ONCE(t.page->next_ns, BL_READ_ONCE(t.due->next));
	return verdict < 0 ? XDP_DROP : verdict;
}

/* ---- frames for applications ---- */

/*
 * Redirects a frame that is not barline's and came in on the NIC to bl0 if it is for bl0's address;
 * everything else is the kernel's. Returns the reason.
 */
static __always_inline enum bl_reason bl_deliver_to_app(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct ethhdr *eth = data;

	if (!cfg || !cfg->on || (void *)(eth + 1) > end ||
	    bl_mac48(eth->h_dest) != bl_mac48(cfg->mac))
		return BL_R_NOT_OURS;
	if (cfg->policy == BL_POLICY_TOP) {
		enum bl_reason why = (enum bl_reason)bl_top_frame_in(ctx);

		return why != BL_R_NONE ? why
		       : bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) == XDP_REDIRECT
			       ? BL_R_TO_APP
			       : BL_R_REDIRECT_FAILED;
	}
	if (cfg->policy == BL_POLICY_FASTPASS)
		bl_fp_frame_in(ctx);
	else
		bl_pl2_frame_in(eth->h_source, (__u32)bpf_xdp_get_buff_len(ctx));
	return bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) == XDP_REDIRECT
		       ? BL_R_TO_APP
		       : BL_R_REDIRECT_FAILED;
}

#endif
