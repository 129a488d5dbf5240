/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Authentication of link frames, between core/auth_core.h and the maps: bl_auth_check() for those
 * that arrive, bl_auth_seal() for those that leave (bl_auth_seal_skb() in bpf/host/host.bpf.c), and
 * the same for the link body that one beacon per millisecond has. All are global functions: the
 * verifier checks each once, and its variables are not on a caller's stack.
 *
 * A frame is refused for the first of these reasons, the cheap ones first: it carries no mark
 * (auth_missing); this node has no keys of its epoch (auth_epoch); its stamp is not newer than what
 * was accepted (auth_replayed); too many frames before it had wrong tags (auth_flood); its tag is
 * wrong (auth_bad), or it is a beacon of another node than the one that the keys belong to
 * (auth_bad).
 *
 * Example: a host seals a beacon on its way out of the NIC under epoch 7, on stream 0. The switch
 * checks it before the beacon raises a register. The beacon is cloned to two ports, and the devmap
 * program seals each clone with the key of its own link.
 *
 * Not here: data frames, which carry no tag (docs/protocol.md). BPF side only.
 */
#ifndef BARLINE_BPF_AUTH_H
#define BARLINE_BPF_AUTH_H

#include "bpf/role.h"
#include "core/auth_core.h"
#include "bpf/bpf_util.h"

/*
 * enum bl_auth_mode. Set by the loader before it loads the programs, as bl_admits is: in a rack
 * without authentication the verifier removes all calls.
 */
const volatile __u8 bl_auth = BL_AUTH_OFF;
#ifdef BL_PLAIN
#define bl_auth BL_AUTH_OFF
#endif

/* Returns whether the barriers of a frame with opcode @op are ignored, since it has no tag. */
static __always_inline int auth_ignores(__u32 op)
{
	return bl_auth == BL_AUTH_STRICT && op != BL_OP_BEACON;
}

#define BL_AUTH_BEACON_NEED (BL_AUTH_LINK_AT + sizeof(struct bl_link_body))
#define BL_AUTH_RSV_NEED    (sizeof(struct bl_hdr) + sizeof(struct bl_rsv_body))

/* Offsets of the stamp, which the tag follows, from the header. */
#define BL_AUTH_BEACON_AT (sizeof(struct bl_hdr) + sizeof(struct bl_beacon))
#define BL_AUTH_LINK_AT   (BL_AUTH_BEACON_AT + BL_LINK_AT)
#define BL_AUTH_RSV_AT    __builtin_offsetof(struct bl_auth_rsv, stamp)

#define BL_AUTH_VOID      1 /* not a bus time */

/* Notes why a frame of port state @s was refused. Returns the reason. */
static __always_inline int auth_refuse(struct bl_auth_state *s, enum bl_reason why, __u64 now)
{
	BL_WRITE_ONCE(s->refused, why);
	BL_WRITE_ONCE(s->refused_ns, now);
	return why;
}

/*
 * Raises the greatest accepted stamp of a stream to @stamp. Returns 0 if another CPU has raised it
 * to @stamp or beyond: then this frame is a copy, or older.
 */
static __always_inline int auth_accept(__u64 *seen, __u64 stamp, __u64 now)
{
	__u64 old = BL_READ_ONCE(*seen);
	int i;

	for (i = 0; i < 4 && bl_auth_above(stamp, old, now); i++) {
		__u64 was = __sync_val_compare_and_swap(seen, old, stamp);

		if (was == old)
			return 1;
		old = was;
	}
	return 0;
}

/**
 * bl_auth_check - checks a link frame that arrived.
 * @port: port on which it arrived; a host's NIC is 0
 * @off: offset of struct bl_hdr
 * @now: bus time; 0: the clock is read here; BL_AUTH_VOID: the same, even if it is void
 * Returns BL_R_NONE if the neighbour sent the frame, or the reason to drop it. The link body of a
 * beacon may still be somebody else's: bl_auth_check_link().
 */
__attribute__((noinline)) int bl_auth_check(struct xdp_md *ctx, __u32 port, __u32 off, __u64 now)
{
	const struct bl_auth_link *link = bpf_map_lookup_elem(&auth_links, &port);
	struct bl_auth_state *s = bpf_map_lookup_elem(&auth_states, &port);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u64 w[BL_AUTH_WORDS], stamp, tag;
	__u32 mark, stream;
	int beacon, at, peer;
	__u8 *h;

	if (!link || !s || off > sizeof(*eth) + 4)
		return BL_R_SHORT;
	if (link->how == BL_AUTH_EXEMPT)
		return BL_R_NONE;
	h = data + off;
	BL_SEEN(h);
	if ((void *)(eth + 1) > end || (void *)(h + BL_AUTH_RSV_NEED) > end)
		return BL_R_SHORT;
	beacon = ((struct bl_hdr *)h)->opcode == BL_OPCODE_BYTE(BL_OP_BEACON);
	mark = (__u32)h[0] << 8 | h[1];
	/* Everything is read in one branch, so that the verifier knows the length in it. */
	if (beacon) {
		if ((void *)(h + BL_AUTH_BEACON_NEED) > end)
			return BL_R_SHORT;
		bl_auth_words(h, 1, mark, eth->h_source, w);
		tag = bl_auth_le64(h + BL_AUTH_BEACON_AT + 8);
		peer = ((struct bl_beacon *)(h + sizeof(struct bl_hdr)))->node_id ==
		       BL_BE32(link->peer);
	} else {
		bl_auth_words(h, 0, mark, eth->h_source, w);
		tag = bl_auth_le64(h + BL_AUTH_RSV_AT + 8);
		peer = 1;
	}
	if (now <= BL_AUTH_VOID) {
		struct bl_now clk;

		bl_read_clock(&clk);
		if (!clk.ok && !now)
			return BL_R_CLOCK_VOID;
		now = clk.bus;
	}
	stream = BL_AUTH_MARK_STREAM(mark);
	if (!mark && link->how == BL_AUTH_OFFERED)
		return BL_R_NONE;
	if (!mark)
		return auth_refuse(s, BL_R_AUTH_MISSING, now);
	at = bl_auth_to_receive(link, BL_AUTH_MARK_EPOCH(mark), now);
	if (at < 0)
		return auth_refuse(s, BL_R_AUTH_EPOCH, now);
	stamp = BL_BE64(BL_SIP_LE64(w[1]));
	if (!bl_auth_fresh(stamp, BL_READ_ONCE(s->seen[stream]), now))
		return auth_refuse(s, BL_R_AUTH_REPLAYED, now);
	if (bl_auth_flooded(BL_READ_ONCE(s->bad_ns), now))
		return auth_refuse(s, BL_R_AUTH_FLOOD, now);
	if (bl_auth_tag(at ? &link->at[1].receive : &link->at[0].receive, w) != tag || !peer) {
		BL_WRITE_ONCE(s->bad_ns, bl_auth_punish(BL_READ_ONCE(s->bad_ns), now));
		return auth_refuse(s, BL_R_AUTH_BAD, now);
	}
	if (!auth_accept(&s->seen[stream], stamp, now))
		return auth_refuse(s, BL_R_AUTH_REPLAYED, now);
	BL_WRITE_ONCE(s->in, BL_AUTH_MARK_EPOCH(mark));
	BL_WRITE_ONCE(s->accepted_ns, now);
	return BL_R_NONE;
}

/*
 * Writes mark, stamp and tag into the link frame at [@data, @end), which is complete but for them.
 * Without keys for @port, the frame leaves without a mark.
 */
static __always_inline int auth_seal(void *data, void *end, __u32 port, __u32 off, __u32 stream,
				     __u64 now)
{
	const struct bl_auth_link *link = bpf_map_lookup_elem(&auth_links, &port);
	struct bl_auth_state *s = bpf_map_lookup_elem(&auth_states, &port);
	__u64 w[BL_AUTH_WORDS], stamp, tag;
	struct ethhdr *eth = data;
	__u32 epoch, mark;
	__u8 *h, *p;
	int at;

	if (!link || !s || off > sizeof(*eth) + 4)
		return 0;
	h = data + off;
	BL_SEEN(h);
	if ((void *)(eth + 1) > end || (void *)(h + BL_AUTH_RSV_NEED) > end)
		return 0;
	__builtin_memset(h, 0, 6);
	if (!now) {
		struct bl_now clk;

		bl_read_clock(&clk);
		now = clk.bus;
	}
	at = bl_auth_to_send(link, now);
	if (at < 0 || link->how == BL_AUTH_EXEMPT)
		return 0;
	epoch = BL_READ_ONCE(link->at[at & 1].epoch);
	stream &= BL_AUTH_STREAMS - 1;
	mark = BL_AUTH_MARK(epoch, stream);
	stamp = bl_auth_next(s->sent[stream], now);
	BL_WRITE_ONCE(s->sent[stream], stamp);
	h[0] = (__u8)(mark >> 8);
	h[1] = (__u8)mark;
	if (((struct bl_hdr *)h)->opcode == BL_OPCODE_BYTE(BL_OP_BEACON)) {
		if ((void *)(h + BL_AUTH_BEACON_NEED) > end)
			return 0;
		p = h + BL_AUTH_BEACON_AT;
		bl_store64(p, stamp);
		bl_auth_words(h, 1, mark, eth->h_source, w);
	} else {
		p = h + BL_AUTH_RSV_AT;
		bl_store64(p, stamp);
		bl_auth_words(h, 0, mark, eth->h_source, w);
	}
	tag = bl_auth_tag(at ? &link->at[1].send : &link->at[0].send, w);
	bl_store64(p + 8, BL_BE64(BL_SIP_LE64(tag)));
	BL_WRITE_ONCE(s->out, epoch);
	return 0;
}

/*
 * Returns the beacon at [@data + @off, @end) of port @port if it has a mark, or NULL. @at: place of
 * its epoch's keys in @link->at, 0 or 1
 */
static __always_inline __u8 *auth_marked_beacon(const struct bl_auth_link *link, void *data,
						void *end, __u32 off, int *at)
{
	__u8 *h;

	if (!link || off > sizeof(struct ethhdr) + 4)
		return NULL;
	h = data + off;
	BL_SEEN(h);
	if (data + sizeof(struct ethhdr) > end || (void *)(h + BL_AUTH_BEACON_NEED) > end)
		return NULL;
	*at = bl_auth_to_receive(link, BL_AUTH_MARK_EPOCH((__u32)h[0] << 8 | h[1]), 0);
	return *at < 0 ? NULL : h;
}

/* The tag that the link body of the beacon @h has, in this machine's byte order, as on the wire. */
static __always_inline __u64 auth_link_tag(const struct bl_auth_key *key, const struct ethhdr *eth,
					   const __u8 *h)
{
	__u64 w[BL_AUTH_WORDS];

	bl_auth_words(h, 1, (__u32)h[0] << 8 | h[1], eth->h_source, w);
	return bl_auth_link_tag(bl_auth_begin(key, w), (const void *)(h + BL_AUTH_LINK_AT));
}

/**
 * bl_auth_check_link - whether the link body of a beacon for which bl_auth_check() has returned
 * BL_R_NONE is the neighbour's. On a link where beacons need no tag, it needs none either.
 * @port, @off: as there
 */
__attribute__((noinline)) int bl_auth_check_link(struct xdp_md *ctx, __u32 port, __u32 off)
{
	const struct bl_auth_link *link = bpf_map_lookup_elem(&auth_links, &port);
	void *data = (void *)(long)ctx->data;
	const __u8 *h;
	int at = 0;

	if (!link || link->how == BL_AUTH_EXEMPT)
		return link != NULL;
	h = auth_marked_beacon(link, data, (void *)(long)ctx->data_end, off, &at);
	if (!h)
		return link->how == BL_AUTH_OFFERED;
	return auth_link_tag(at ? &link->at[1].receive : &link->at[0].receive, data, h) ==
	       bl_auth_le64(h + BL_AUTH_LINK_AT + BL_LINK_TAGGED);
}

/* Writes the tag of its link body into a beacon that auth_seal() has sealed. */
static __always_inline int auth_seal_link(void *data, void *end, __u32 port, __u32 off)
{
	const struct bl_auth_link *link = bpf_map_lookup_elem(&auth_links, &port);
	int at = 0;
	__u8 *h = auth_marked_beacon(link, data, end, off, &at);
	__u64 tag;

	if (!h)
		return 0;
	tag = auth_link_tag(at ? &link->at[1].send : &link->at[0].send, data, h);
	bl_store64(h + BL_AUTH_LINK_AT + BL_LINK_TAGGED, BL_BE64(BL_SIP_LE64(tag)));
	return 0;
}

/**
 * bl_auth_seal - writes mark, stamp and tag into a link frame that leaves by @port. The frame must
 * not be changed after that. Always returns 0.
 * @off: offset of struct bl_hdr
 * @stream: enum bl_auth_stream
 * @now: bus time; 0: the clock is read here
 */
__attribute__((noinline)) int bl_auth_seal(struct xdp_md *ctx, __u32 port, __u32 off, __u32 stream,
					   __u64 now)
{
	return auth_seal((void *)(long)ctx->data, (void *)(long)ctx->data_end, port, off, stream,
			 now);
}

/**
 * bl_auth_seal_link - writes the tag of its link body into a beacon, behind bl_auth_seal(). Always
 * returns 0. @port, @off: as there
 */
__attribute__((noinline)) int bl_auth_seal_link(struct xdp_md *ctx, __u32 port, __u32 off)
{
	return auth_seal_link((void *)(long)ctx->data, (void *)(long)ctx->data_end, port, off);
}

#endif
