/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission on a host: frames of applications are held per destination (bl_hold_xdp, on bl0d), and
 * the pacer's turn (bl_host_pace) sends what may go.
 *
 * With policy "none" that is everything, as fast as the NIC's link: whose time is earliest comes
 * first, and a destination that has more gets the time at which it was served, so destinations take
 * turns. Destination 0 (ARP, ND, broadcast) gets time 0: it is always first. With "pl2"
 * bpf/host/pl2.h decides for the other destinations: nothing yet, an RSV, or a frame of a burst;
 * with "fastpass" bpf/host/fastpass.h: nothing yet, or a frame in its timeslot; with "top"
 * bpf/host/top.h: numbers are flows then, whose frames leave in the place of tokens that come. BPF
 * side only.
 */
#ifndef BARLINE_HOST_HOLD_H
#define BARLINE_HOST_HOLD_H

#include "core/queue/classify_core.h"
#include "core/policy_core.h"
#include "bpf/queue_util.h"
#include "beacon.h"
#include "pl2.h"
#include "fastpass.h"
#include "top.h"
#include "sweep.h"

/* How bl0's traffic is admitted, for beacons; 0: there is no bl0. */
static __always_inline __u8 bl_own_policy(void)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);

	return cfg && cfg->on ? bl_policy_say(cfg->policy) : 0;
}

/*
 * The policy that frames go by. TOP beside a switch without it falls back to none until they agree:
 * hosts behind that switch are likely to have no TOP either, and flows would wait for tokens that
 * nobody gives. PL2 finds out by its RSVs (pl2_core.h). Fastpass needs no switch, and falls back
 * when the daemon says that no arbiter answers.
 */
static __always_inline __u32 bl_policy_now(const struct bl_hold_cfg *cfg)
{
	const struct bl_host_page *page;
	const struct bl_fp_page *fp;
	__u32 zero = 0;

	if (cfg->policy == BL_POLICY_FASTPASS) {
		fp = bpf_map_lookup_elem(&fp_page, &zero);
		return fp && BL_READ_ONCE(fp->fallback) ? BL_POLICY_NONE : BL_POLICY_FASTPASS;
	}
	if (cfg->policy != BL_POLICY_TOP)
		return cfg->policy;
	page = bpf_map_lookup_elem(&host_page, &zero);
	if (page && bl_policy_apart(bl_policy_say(BL_POLICY_TOP), BL_READ_ONCE(page->life.policy)))
		return BL_POLICY_NONE;
	return BL_POLICY_TOP;
}

/* ---- frames of applications ---- */

/* Whom the frame is for. */
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

/*
 * Nobody but endpoints and the pacer speaks barline: what pretends to, from an application on bl0,
 * would carry barriers that nobody keeps.
 */
__attribute__((noinline)) int bl_hold_refuse(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct bl_host_cfg *host = bpf_map_lookup_elem(&host_cfg, &zero);
	struct bl_frame f;
	enum bl_reason why;

	if (!host)
		return BL_R_NOT_OURS;
	why = bl_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, host->port_base,
		       host->port_count, &f);
	if (why == BL_R_NONE)
		why = bl_op_link(f.opcode) ? BL_R_FORGED_BEACON : BL_R_NOT_ENDPOINT;
	return why;
}

/* A frame was put into a queue of @dest. Returns 1 if the pacer has to be woken. */
static __always_inline int bl_held_now(struct xdp_md *ctx, const struct bl_hold_cfg *cfg,
				       struct bl_due *due, __u32 dest, __u32 policy, __u64 now)
{
	if (!dest || policy != BL_POLICY_FASTPASS)
		return bl_due_lower(due, dest, dest ? now : 0);
	bl_fp_held(dest, (__u32)bpf_xdp_get_buff_len(ctx), cfg);
	/* the pacer knows when the next slot begins, if there is one */
	return bl_due_put(due, dest, now);
}

static __always_inline enum bl_reason bl_hold(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, dest = 0, pinned = 0, policy;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	const struct ethhdr *eth = data;
	struct bl_mac_key key = {};
	struct bl_frame_class l;
	enum bl_reason why;
	__u64 now;

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
		bl_count(BL_HC_HOLD, BL_R_NO_TOKEN); /* with destination 0, which never waits */
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
		if (bl_held_now(ctx, cfg, due, dest, policy, now))
			bl_pace_ring();
		why = BL_R_HELD;
	}
	if (pinned)
		bl_unpin(pinned);
	return why == BL_R_QUEUE_FULL ? BL_R_HOLD_FULL : why;
}

/* ---- the pacer's turn ---- */

/* What a turn has in its hands. */
struct bl_host_turn {
	struct bl_pace_page *page;
	struct bl_due *due;
	const struct bl_hold_cfg *cfg;
	__u64 now;
	__u32 policy; /* bl_policy_now() */
	__u32 zero;
};

/* The frame that ctx has become leaves by the NIC. Returns 1 if the device map took it. */
static __always_inline int bl_host_off(struct bl_host_turn *t, __u64 at, __u32 len)
{
	if (bpf_redirect_map(&hold_tx, BL_TX_NIC, XDP_ABORTED) != XDP_REDIRECT)
		return 0;
	t->due->free[0] = bl_free_after(&t->cfg->link, at, t->now, len);
	return 1;
}

/*
 * The frame in @entry's slot; @due_ns: when it should have gone; @early: PL2's unsolicited; @dest:
 * Fastpass's destination, on @path; 0: of another policy. The slot stays taken.
 */
static __always_inline int bl_host_frame(struct xdp_md *ctx, struct bl_host_turn *t, __u32 entry,
					 __u64 due_ns, __u32 early, __u32 dest, __u32 path)
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
	sent = sent && bl_host_off(t, at, len);
	if (sent && dest)
		bl_fp_left(t->cfg, dest, column);
	bl_pace_note(t->page, slot, sent, at, t->now);
	return bl_done(BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED);
}

/*
 * Policy none, and destination 0 under any. *@again: when the pacer looks at this destination
 * again. Under Fastpass these frames carry no path, and are counted all the same, since the other
 * end counts them.
 */
static __always_inline int bl_host_at_once(struct xdp_md *ctx, struct bl_host_turn *t, __u32 dest,
					   __u64 *again)
{
	__u32 key = BL_HOLD_QUEUE(dest, 0), entry = (__u32)bl_queue_get(key);
	__u32 counted = t->cfg->policy == BL_POLICY_FASTPASS ? dest : 0;
	int verdict;

	if (!entry)
		entry = (__u32)bl_queue_get(key + 1);
	/* after bl_due_take(): a frame that is not seen here finds BL_DUE_NEVER */
	*again = bl_queue_len(key) | bl_queue_len(key + 1) ? (dest ? t->now : 0) : BL_DUE_NEVER;
	if (!entry)
		return XDP_DROP;
	verdict = bl_host_frame(ctx, t, entry, bl_slot_came(BL_RING_SLOT(entry)), 0, counted,
				BL_FP_NO_PATH);
	bl_slot_free(BL_RING_SLOT(entry));
	bl_left(dest, t->now);
	return verdict;
}

static __always_inline int bl_host_pl2(struct xdp_md *ctx, struct bl_host_turn *t, __u32 dest,
				       __u64 *again)
{
	struct bl_pl2_turn p = {};
	int verdict = XDP_DROP;

	bl_pl2_turn(dest, t->cfg, t->now, &p);
	if (p.what == BL_DO_RSV && !bl_pl2_build_rsv(ctx, dest)) {
		int sent = bl_host_off(t, bl_due_of(t->due->free[0], t->now), BL_RSV_LEN);

		if (sent)
			t->page->emitted++;
		else
			t->page->failed++;
		verdict = bl_done(BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED);
	} else if (p.what == BL_DO_FRAME) {
		verdict = bl_host_frame(ctx, t, p.entry, p.due_ns, p.early, 0, BL_FP_NO_PATH);
		bl_pl2_sent(dest, t->cfg, t->now, &p);
		bl_left(dest, t->now);
	}
	*again = p.next_ns;
	return verdict;
}

static __always_inline int bl_host_fastpass(struct xdp_md *ctx, struct bl_host_turn *t, __u32 dest,
					    __u64 *again)
{
	struct bl_fp_turn p = {};
	int verdict = XDP_DROP;

	bl_fp_turn(dest, t->cfg, t->now, &p);
	if (p.what == BL_FP_AT_ONCE)
		return bl_host_at_once(ctx, t, dest, again);
	if (p.what == BL_FP_FRAME) {
		verdict = bl_host_frame(ctx, t, p.entry, p.due_ns, 0, dest, p.path);
		bl_slot_free(BL_RING_SLOT(p.entry));
		bl_left(dest, t->now);
	}
	*again = p.next_ns;
	return verdict;
}

/*
 * A token or signal of @len bytes that the frame has become leaves, whenever the link is free:
 * tokens have their own pace, and signals are few.
 */
static __always_inline int bl_host_signal(struct bl_host_turn *t, int len)
{
	int sent = len > 0 && bpf_redirect_map(&hold_tx, BL_TX_NIC, XDP_ABORTED) == XDP_REDIRECT;

	if (sent)
		t->page->emitted++;
	else
		t->page->failed++;
	return bl_done(BL_HC_PACE, sent ? BL_R_PACED : BL_R_REDIRECT_FAILED);
}

static __always_inline int bl_host_unscheduled(struct xdp_md *ctx, struct bl_host_turn *t, __u32 n)
{
	__u32 entry = bl_top_take(n), slot = BL_RING_SLOT(entry), len;
	int verdict;

	if (!entry)
		return XDP_DROP;
	len = (__u32)bl_top_trail(slot, BL_RING_LEN(entry), n, 0, 0);
	verdict = bl_host_frame(ctx, t, BL_RING_ENTRY(slot, len), bl_slot_came(slot), 1, 0,
				BL_FP_NO_PATH);
	bl_slot_free(slot);
	bl_left(n, t->now);
	return verdict;
}

/*
 * A frame of flow @n whose token could not become it; its echo lies behind it already. Returns 0 if
 * there is none.
 */
static __always_inline int bl_host_pushed(struct xdp_md *ctx, struct bl_host_turn *t, __u32 n,
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
	word = bl_top_take_out(k, i);
	if (!word)
		return 1; /* it came before it was sent once more */
	entry = BL_KEPT_ENTRY(word);
	*verdict =
		bl_host_frame(ctx, t,
			      BL_RING_ENTRY(BL_RING_SLOT(entry),
					    BL_RING_LEN(entry) + (__u32)sizeof(struct bl_top_echo)),
			      bl_slot_came(BL_RING_SLOT(entry)), 0, 0, BL_FP_NO_PATH);
	bl_top_put_back(k, i, word);
	return 1;
}

/*
 * Flow @n has ended, or has nothing left under another policy: another one may have its number. It
 * is closed.
 */
__attribute__((noinline)) int bl_host_release(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	bl_top_release(n);
	if (d)
		bl_number_leave(d, n);
	return 0;
}

/* A flow that holds nothing may end in this turn, if nobody else is at it. Returns 1: closed. */
__attribute__((noinline)) int bl_host_close(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	return d && !bl_held(n) && bl_top_flowing(n) && bl_dest_close(d);
}

__attribute__((noinline)) int bl_host_open(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		bl_dest_open(d);
	return 0;
}

/*
 * A number that is a flow's, or any under policy top: what is left from another policy goes at
 * once.
 */
static __always_inline int bl_host_top(struct xdp_md *ctx, struct bl_host_turn *t, __u32 n,
				       __u64 *again)
{
	struct bl_top_turn d = { .what = BL_TOP_DO_AT_ONCE, .next_ns = BL_DUE_NEVER };
	int verdict = XDP_DROP;

	if (bl_host_pushed(ctx, t, n, &verdict)) {
		*again = t->now;
		return verdict;
	}
	/*
	 * While it is closed, frames and tokens pass it by: so only when it is about to end, and
	 * then it is looked at once more.
	 */
	d.busy = t->policy == BL_POLICY_TOP || !bl_host_close(n);
	if (t->policy == BL_POLICY_TOP)
		bl_top_turn(n, t->now, &d);
	if (d.busy == 2 && bl_host_close(n)) {
		d.busy = 0;
		bl_top_turn(n, t->now, &d);
	}
	*again = d.next_ns;
	if (d.what == BL_TOP_DO_AT_ONCE) {
		verdict = bl_host_at_once(ctx, t, n, again);
		if (*again == BL_DUE_NEVER && bl_top_flowing(n)) {
			if (t->policy == BL_POLICY_TOP || d.busy) {
				*again = t->policy == BL_POLICY_TOP ? t->now + BL_TOP_OUTSIDE_NS
								    : t->now;
			} else {
				bl_host_release(n);
				return verdict;
			}
		}
	} else if (d.what == BL_TOP_DO_UNSCHED) {
		verdict = bl_host_unscheduled(ctx, t, n);
	} else if (d.what == BL_TOP_DO_SYNC || d.what == BL_TOP_DO_STOP ||
		   d.what == BL_TOP_DO_END) {
		verdict = bl_host_signal(t, bl_top_build_signal(ctx, n, &d));
		if (d.what == BL_TOP_DO_END) {
			bl_host_release(n);
			return verdict;
		}
	}
	if (!d.busy)
		bl_host_open(n);
	return verdict;
}

/*
 * At most one frame; a beacon first, whatever the link's rate says: it takes the kernel's way. A
 * turn without a frame counts nothing but itself.
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
		verdict = bl_host_signal(&t, len);
	if (verdict < 0 && again <= t.now && t.due->free[0] <= t.now) {
		bl_due_take(t.due, s.pick.index);
		if (s.pick.index)
			bl_hold_age_of(s.pick.index, t.now);
		if (s.pick.index ==
		    BL_HOLD_SHARED) /* nobody in particular: no policy can ask for it */
			verdict = bl_host_at_once(ctx, &t, s.pick.index, &again);
		else if (s.pick.index && !bl_pl2_pending(s.pick.index) &&
			 (t.policy == BL_POLICY_TOP || bl_top_flowing(s.pick.index)))
			verdict = bl_host_top(ctx, &t, s.pick.index, &again);
		else if (s.pick.index &&
			 (t.policy == BL_POLICY_PL2 || bl_pl2_pending(s.pick.index)))
			verdict = bl_host_pl2(ctx, &t, s.pick.index, &again);
		else if (s.pick.index && t.policy == BL_POLICY_FASTPASS)
			verdict = bl_host_fastpass(ctx, &t, s.pick.index, &again);
		else
			verdict = bl_host_at_once(ctx, &t, s.pick.index, &again);
		/* whoever waits for an answer that does not come is looked at all the same */
		if (s.pick.index && again > t.now + BL_HOLD_LOOK_NS)
			bl_hold_scan(s.pick.index, t.now);
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
 * A frame that is not barline's came in on the NIC: for bl0's address it goes there, everything
 * else is the kernel's.
 */
static __always_inline enum bl_reason bl_to_app(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct ethhdr *eth = data;

	if (!cfg || !cfg->on || (void *)(eth + 1) > end ||
	    bl_mac48(eth->h_dest) != bl_mac48(cfg->mac))
		return BL_R_NOT_OURS;
	if (cfg->policy == BL_POLICY_TOP) {
		enum bl_reason why = (enum bl_reason)bl_top_came(ctx);

		return why != BL_R_NONE ? why
		       : bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) == XDP_REDIRECT
			       ? BL_R_TO_APP
			       : BL_R_REDIRECT_FAILED;
	}
	if (cfg->policy == BL_POLICY_FASTPASS)
		bl_fp_came(ctx);
	else
		bl_pl2_came(eth->h_source, (__u32)bpf_xdp_get_buff_len(ctx));
	return bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) == XDP_REDIRECT
		       ? BL_R_TO_APP
		       : BL_R_REDIRECT_FAILED;
}

#endif
