/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fastpass on a host, between the core and the maps: demand as frames are held, and the pacer's turn for one destination. fp_core.h has the arithmetic and the example, fp_abi.h
 * says who writes what. BPF side only.
 *
 * How a path travels (struct bl_hold_cfg): in four bits of the source MAC address, which barline's switches look at (bpf/switch_plain.h), or as the source port of the outermost UDP
 * header, for switches that hash it: only where that port means nothing, in VXLAN and Geneve, whose senders choose it for this very purpose (RFC 7348 section 5, RFC 8926 section 3.3).
 */
#ifndef BARLINE_HOST_FP_H
#define BARLINE_HOST_FP_H

#include "../maps/fp_maps.h"
#include "fp_core.h"
#include "hold_core.h"
#include "queue_util.h"

#define BL_UDP_VXLAN  4789
#define BL_UDP_GENEVE 6081

static __always_inline void bl_fp_ring(void)
{
	__u32 zero = 0;
	struct bl_fp_page *page = bpf_map_lookup_elem(&fp_page, &zero);
	void *rec;

	/* after @want was changed, by an atomic operation; pairs with the daemon's thread: asleep, fence, a look at all @want */
	if (!page || !BL_READ_ONCE(page->asleep) || !__sync_lock_test_and_set(&page->asleep, 0))
		return;
	rec = bpf_ringbuf_reserve(&fp_bell, 8, 0);
	if (rec)
		bpf_ringbuf_discard(rec, BPF_RB_FORCE_WAKEUP);
}

/** bl_fp_held - a frame of @len bytes for @dest was put into its queue. */
static __always_inline void bl_fp_held(__u32 dest, __u32 len, const struct bl_hold_cfg *cfg)
{
	struct bl_fp_dest *d = bpf_map_lookup_elem(&fp_dests, &dest);

	if (d && BL_READ_ONCE(d->endpoint) != BL_FP_OUTSIDE && bl_fp_want(d, len, cfg->slot_bytes))
		bl_fp_ring();
}

/** bl_fp_turn - what the pacer does for @dest at @now; FRAME: @t->entry is the frame, and its slot is the caller's. After bl_due_take(). */
__attribute__((noinline)) int bl_fp_turn(__u32 dest, const struct bl_hold_cfg *cfg, __u64 now, struct bl_fp_turn *t)
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
		bl_fp_took(d, BL_RING_LEN(entry));
		if (!entry)
			t->what = BL_FP_NOTHING;
	} else if (t->what == BL_FP_NOTHING && t->next_ns == BL_DUE_NEVER && bl_queue_len(key) | bl_queue_len(key + 1)) {
		if (BL_READ_ONCE(d->endpoint) != BL_FP_UNKNOWN && bl_fp_heal(d))
			bl_fp_ring();
	}
	return 0;
}

/** bl_fp_path - writes @path into the frame that leaves, where the configuration says so. */
static __always_inline void bl_fp_path(struct xdp_md *ctx, const struct bl_hold_cfg *cfg, __u32 path)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct udphdr *u;
	struct bl_look l;
	__be16 to, was;
	__u32 off;

	if (path == BL_FP_NO_PATH || (void *)(eth + 1) > end)
		return;
	if (cfg->path_field == BL_FIELD_MAC) {
		eth->h_source[0] = (eth->h_source[0] & ~BL_PATH_MAC0) | BL_PATH_TO_MAC0(path);
		return;
	}
	if (cfg->path_field != BL_FIELD_UDP || bl_look(data, end, &l) || l.proto != BL_UDP || (l.dport != BL_UDP_VXLAN && l.dport != BL_UDP_GENEVE))
		return;
	off = l.l3_off + (l.kind == BL_LOOK_IP6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	if (off > sizeof(*eth) + sizeof(struct bl_vlan) + sizeof(struct ipv6hdr))
		return;
	u = data + off;
	BL_SEEN(u);
	if ((void *)(u + 1) > end)
		return;
	was = u->source;
	to = BL_BE16((__u16)(cfg->udp_ports + path));
	if (u->check) {
		u->check = bl_csum_replace(u->check, (const __u8 *)&was, (const __u8 *)&to, sizeof(to));
		if (!u->check)
			u->check = 0xffff;
	}
	u->source = to;
}

#endif
