/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fastpass on a host, between the core and the maps: demand as frames are held, the pacer's turn
 * for one destination, and the path of a frame. core/fastpass/fastpass_core.h has the arithmetic
 * and the example; maps/fastpass_abi.h says who writes what.
 *
 * A path travels in one of two ways (struct bl_hold_cfg): in four bits of the source MAC address,
 * which barline's switches read (bpf/switch/plain.h), or as the source port of the outermost UDP
 * header, for switches that hash it. The port is used only where it means nothing, in VXLAN and
 * Geneve, whose senders choose it for this very purpose (RFC 7348 section 5, RFC 8926 section 3.3).
 *
 * Not here: FCP with the arbiter, which the daemon speaks (loader/admission/fastpass.c). BPF side
 * only.
 */
#ifndef BARLINE_HOST_FP_H
#define BARLINE_HOST_FP_H

#include "bpf/host/role.h"
#include "maps/fastpass_maps.h"
#include "core/fastpass/fastpass_core.h"
#include "core/queue/classify_core.h"
#include "bpf/queue_util.h"

#define BL_UDP_VXLAN  4789
#define BL_UDP_GENEVE 6081

/* Wakes the daemon's thread, if it sleeps, because a destination wants more slots. */
static __always_inline void bl_fp_ring(void)
{
	__u32 zero = 0;
	struct bl_fp_page *page = bpf_map_lookup_elem(&fp_page, &zero);
	void *rec;

	/*
	 * @want was changed before, by an atomic operation. Pairs with the daemon's thread, which
	 * sets asleep, issues a fence, and reads every @want.
	 */
	if (!page || !BL_READ_ONCE(page->asleep) || !__sync_lock_test_and_set(&page->asleep, 0))
		return;
	rec = bpf_ringbuf_reserve(&fp_bell, 8, 0);
	if (rec)
		bpf_ringbuf_discard(rec, BPF_RB_FORCE_WAKEUP);
}

/** bl_fp_held - counts the demand of a frame of @len bytes that was put into @dest's queue. */
static __always_inline void bl_fp_held(__u32 dest, __u32 len, const struct bl_hold_cfg *cfg)
{
	struct bl_fp_dest *d = bpf_map_lookup_elem(&fp_dests, &dest);

	if (d && BL_READ_ONCE(d->endpoint) != BL_FP_OUTSIDE && bl_fp_want(d, len, cfg->slot_bytes))
		bl_fp_ring();
}

/**
 * bl_fp_turn - decides what the pacer does for @dest at @now. Called after bl_due_take().
 * @t: @t->what is set to what to do; for BL_FP_FRAME @t->entry is the frame, whose slot is the
 *     caller's; @t->next_ns is the destination's next time
 */
__attribute__((noinline)) int bl_fp_turn(__u32 dest, const struct bl_hold_cfg *cfg, __u64 now,
					 struct bl_fp_turn *t)
{
	struct bl_fp_dest *d = bpf_map_lookup_elem(&fp_dests, &dest);
	const struct bl_fp_page *page;
	__u32 zero = 0, key = BL_HOLD_QUEUE(dest, 0), entry;

	page = bpf_map_lookup_elem(&fp_page, &zero);
	if (!cfg || !t)
		return 0;
	t->what = BL_FP_NOTHING;
	t->next_ns = BL_DUE_NEVER;
	if (!d || !page)
		return 0;
	bl_fp_step(d, cfg, BL_READ_ONCE(page->offset_ns), now, t);
	if (t->what == BL_FP_FRAME) {
		entry = (__u32)bl_queue_get_upto(key, t->max);
		if (!entry)
			entry = (__u32)bl_queue_get_upto(key + 1, t->max);
		t->entry = entry;
		bl_fp_frame_taken(d, BL_RING_LEN(entry));
		if (!entry)
			t->what = BL_FP_NOTHING;
	} else if (t->what == BL_FP_NOTHING && t->next_ns == BL_DUE_NEVER &&
		   bl_queue_len(key) | bl_queue_len(key + 1)) {
		/*
		 * This is also for a destination whose owner the daemon does not know yet: it looks
		 * only at those that want slots.
		 */
		if (bl_fp_demand_heal(d))
			bl_fp_ring();
	}
	return 0;
}

/*
 * Returns the column of struct bl_fp_paths that a tunnel's source port stands for; BL_FP_PATHS:
 * none.
 */
static __always_inline __u32 bl_fp_port_column(const struct bl_hold_cfg *cfg, __u32 sport)
{
	__u32 path = sport - cfg->udp_ports;

	return path < BL_FP_PATHS ? path : BL_FP_PATHS;
}

/* Returns whether the frame is VXLAN or Geneve. */
static __always_inline int bl_fp_tunnel(const struct bl_frame_class *l)
{
	return l->proto == BL_UDP && (l->dport == BL_UDP_VXLAN || l->dport == BL_UDP_GENEVE);
}

/**
 * bl_fp_path - writes @path into the frame that leaves, if the configuration says so. Returns its
 * column of struct bl_fp_paths: what the other end will see in the frame.
 */
static __always_inline __u32 bl_fp_path(struct xdp_md *ctx, const struct bl_hold_cfg *cfg,
					__u32 path)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct udphdr *u;
	struct bl_frame_class l;
	__be16 to, was;
	__u32 off;

	if ((void *)(eth + 1) > end)
		return BL_FP_PATHS;
	if (cfg->path_field == BL_FIELD_MAC) {
		if (path >= BL_PATHS_IN_MAC)
			return BL_FP_PATHS;
		eth->h_source[0] = (eth->h_source[0] & ~BL_PATH_MAC0) | BL_PATH_TO_MAC0(path);
		return path;
	}
	if (cfg->path_field != BL_FIELD_UDP || bl_frame_class(data, end, &l) || !bl_fp_tunnel(&l))
		return BL_FP_PATHS;
	/* the tunnel's own port may be one of those of paths */
	if (path == BL_FP_NO_PATH)
		return bl_fp_port_column(cfg, l.sport);
	off = l.l3_off + (l.kind == BL_FRAME_IP6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	if (off > sizeof(*eth) + sizeof(struct bl_vlan) + sizeof(struct ipv6hdr))
		return BL_FP_PATHS;
	u = data + off;
	BL_SEEN(u);
	if ((void *)(u + 1) > end)
		return BL_FP_PATHS;
	was = u->source;
	to = BL_BE16((__u16)(cfg->udp_ports + path));
	if (u->check) {
		u->check = bl_csum_replace(u->check, (const __u8 *)&was, (const __u8 *)&to,
					   sizeof(to));
		if (!u->check)
			u->check = 0xffff;
	}
	u->source = to;
	return bl_fp_port_column(cfg, cfg->udp_ports + path);
}

/** bl_fp_note_sent - counts a frame for @dest that was handed to the NIC, by @column. */
static __always_inline void bl_fp_note_sent(const struct bl_hold_cfg *cfg, __u32 dest, __u32 column)
{
	const struct bl_fp_dest *d = bpf_map_lookup_elem(&fp_dests, &dest);
	struct bl_fp_paths *p;
	__u32 peer;

	if (!cfg->count_paths || !d)
		return;
	peer = BL_READ_ONCE(d->endpoint) - 1;
	p = bpf_map_lookup_elem(&fp_paths, &peer);
	if (!p)
		return;
	/* Behind the test of @p: what is kept on the stack has no bounds for Linux 6.1. */
	BL_SEEN(column);
	/* Only one thread writes this counter, and the daemon reads it in one load. */
	if (column < BL_FP_COLUMNS)
		BL_WRITE_ONCE(p->sent[column], p->sent[column] + 1);
}

/**
 * bl_fp_frame_in - reads, counts and removes the path of a frame for the application. A global
 * function, so that the verifier checks it once.
 */
__attribute__((noinline)) int bl_fp_frame_in(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, column = BL_FP_PATHS, l3, *peer;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_mac_key key = {};
	struct bl_fp_paths *p;
	struct ethhdr *eth = data;
	struct bl_frame_class l;

	if (!cfg || (void *)(eth + 1) > end)
		return 0;
	if (cfg->path_field == BL_FIELD_MAC && eth->h_source[0] & BL_PATH_MAC0) {
		column = BL_PATH_OF_MAC0((__u32)eth->h_source[0]);
		eth->h_source[0] &= (__u8)~BL_PATH_MAC0;
	}
	if (!cfg->count_paths || bl_frame_class(data, end, &l) || !bl_class_is_held(&l))
		return 0;
	if (cfg->path_field == BL_FIELD_UDP && bl_fp_tunnel(&l))
		column = bl_fp_port_column(cfg, l.sport);
	__builtin_memcpy(key.mac, eth->h_source, sizeof(key.mac));
	l3 = l.l3_off;
	if (cfg->routed && l3 <= sizeof(*eth) + sizeof(struct bl_vlan)) {
		const void *ip = data + l3;

		BL_SEEN(ip);
		if (l.kind == BL_FRAME_IP4 && ip + sizeof(struct iphdr) <= end) {
			key.mac[0] = key.mac[1] = 0;
			__builtin_memcpy(key.mac + 2, &((const struct iphdr *)ip)->saddr, 4);
			key.kind = 4;
		} else if (l.kind == BL_FRAME_IP6 && ip + sizeof(struct ipv6hdr) <= end) {
			__builtin_memcpy(key.mac, &((const struct ipv6hdr *)ip)->saddr.s6_addr[10],
					 6);
			__builtin_memcpy(key.upper, &((const struct ipv6hdr *)ip)->saddr,
					 sizeof(key.upper));
			key.kind = 6;
		}
	}
	peer = bpf_map_lookup_elem(&fp_peers, &key);
	if (!peer)
		return 0;
	zero = *peer - 1;
	p = bpf_map_lookup_elem(&fp_paths, &zero);
	if (!p)
		return 0;
	BL_SEEN(column);
	if (column < BL_FP_COLUMNS)
		(void)__sync_fetch_and_add(&p->came[column], 1);
	return 0;
}

#endif
