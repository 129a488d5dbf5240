/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parsing and building frames: from bytes to a struct of typed results, and the few fields that
 * hops rewrite.
 *
 * The parser reads a linear buffer [data, end). It tells barline frames from others without
 * touching the others, and refuses frames that are short, lying, fragmented, double-tagged or of
 * another version, each with a reason of its own. It changes nothing.
 *
 *   struct bl_frame f;
 *   enum bl_reason r = bl_parse(data, end, port_base, port_count, &f);
 *
 *   r == BL_R_NOT_OURS: leave the frame to the kernel
 *   r == BL_R_NONE:     f is filled in
 *   else:               drop the frame for reason r
 *
 * Example: a DATA frame over IPv4 without a tag gives l3_off 14, hdr_off 42 and BL_R_NONE; the same
 * frame with a UDP length of 20 gives BL_R_BAD_LENGTH.
 *
 * The parser does not check UDP checksums. Hops that rewrite the header update a checksum
 * incrementally (RFC 1624); 0, which means none, stays 0.
 */
#ifndef BARLINE_WIRE_CORE_H
#define BARLINE_WIRE_CORE_H

#include <stddef.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "maps/reasons_abi.h"
#include "maps/wire_abi.h"
#include "core/core.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BL_BE16(x) ((__u16)__builtin_bswap16(x))
#define BL_BE32(x) ((__u32)__builtin_bswap32(x))
#define BL_BE64(x) ((__u64)__builtin_bswap64(x))
#else
#define BL_BE16(x) ((__u16)(x))
#define BL_BE32(x) ((__u32)(x))
#define BL_BE64(x) ((__u64)(x))
#endif

#define BL_ETH_8021Q  0x8100
#define BL_ETH_8021AD 0x88A8
#define BL_ETH_IP     0x0800
#define BL_ETH_IP6    0x86DD
#define BL_UDP        17

struct bl_vlan {
	__be16 tci;
	__be16 proto;
};

/**
 * struct bl_frame - a parsed barline frame. Offsets are from the frame's first byte. Filled in by
 * the parser.
 */
struct bl_frame {
	__u32 l3_off;   /* of the IP header; 0 in link frames */
	__u32 hdr_off;  /* of struct bl_hdr */
	__u32 body_len; /* bytes after struct bl_hdr that the UDP length covers */
	__u8 v6;        /* 1: IPv6 */
	__u8 vlan;      /* number of tags; 2 only with BL_R_DOUBLE_TAG */
	__u8 opcode;    /* enum bl_opcode */
	__u8 flags;     /* of the header */
	__u8 lane;      /* of the header */
	__u8 lanes;     /* of the header */
	__u16 sport;    /* UDP source port, host order; 0 in link frames */
	__u16 dport;    /* UDP destination port, host order; 0 in link frames */
	__u32 psn;      /* of the header */
	__u64 ts;       /* timestamp, 48 bits as on the wire */
	__u64 b;        /* barrier, 48 bits as on the wire */
	__u64 c;        /* commit barrier, 48 bits as on the wire */
};

BL_CORE __u32 bl_hdr_psn(const struct bl_hdr *h)
{
	return (__u32)BL_BE16(h->psn_hi) << 16 | BL_BE16(h->psn_lo);
}

BL_CORE void bl_hdr_set_psn(struct bl_hdr *h, __u32 psn)
{
	h->psn_hi = BL_BE16(psn >> 16);
	h->psn_lo = BL_BE16(psn & 0xffff);
}

/* A 32-bit field in two halves, as in struct bl_rsv_body. */
#define BL_HALVES(s, field) ((__u32)BL_BE16((s)->field##_hi) << 16 | BL_BE16((s)->field##_lo))
#define BL_HALVES_SET(s, field, v)                      \
	do {                                            \
		__u32 v_ = (v);                         \
		(s)->field##_hi = BL_BE16(v_ >> 16);    \
		(s)->field##_lo = BL_BE16(v_ & 0xffff); \
	} while (0)

/** bl_hdr_set_lane - write lane and number of lanes; keeps the hop. */
BL_CORE void bl_hdr_set_lane(struct bl_hdr *h, __u32 lane, __u32 lanes)
{
	h->flags = (__u8)((h->flags & BL_F_HOP) | BL_F_LANES(lanes) | lane);
}

/*
 * Accesses of whole words of a packet. Where an address must be aligned for a word access, the
 * compiler reads byte by byte; for BPF it would do so everywhere. In a BPF program @p is in a
 * packet or a map, not on the stack.
 */
BL_CORE __u64 bl_raw64(const void *p)
{
#ifdef __bpf__
	return *(const __u64 *)p;
#else
	__u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
#endif
}

BL_CORE __u32 bl_raw32(const void *p)
{
#ifdef __bpf__
	return *(const __u32 *)p;
#else
	__u32 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
#endif
}

/** bl_mac48 - an Ethernet address in the form of struct bl_fdb_bucket. */
BL_CORE __u64 bl_mac48(const __u8 *m)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return *(const __u32 *)m | (__u64) * (const __u16 *)(m + 4) << 32;
#endif
	return (__u64)m[0] | (__u64)m[1] << 8 | (__u64)m[2] << 16 | (__u64)m[3] << 24 |
	       (__u64)m[4] << 32 | (__u64)m[5] << 40;
}

/** bl_get48, bl_put48 - a number of 48 bits in network byte order. */
BL_CORE __u64 bl_get48(const __u8 *p)
{
	return __builtin_bswap64(bl_mac48(p)) >> 16;
}

BL_CORE void bl_put48(__u8 *p, __u64 v)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v << 16);
	*(__u32 *)p = (__u32)v;
	*(__u16 *)(p + 4) = (__u16)(v >> 32);
#else
	p[0] = (__u8)(v >> 40);
	p[1] = (__u8)(v >> 32);
	p[2] = (__u8)(v >> 24);
	p[3] = (__u8)(v >> 16);
	p[4] = (__u8)(v >> 8);
	p[5] = (__u8)v;
#endif
}

BL_CORE __u64 bl_load64(const void *p)
{
	return BL_BE64(bl_raw64(p));
}

BL_CORE void bl_store64(void *p, __u64 v)
{
	v = BL_BE64(v);
#ifdef __bpf__
	*(__u64 *)p = v;
#else
	__builtin_memcpy(p, &v, sizeof(v));
#endif
}

/**
 * bl_hdr_send - write what every hop writes: barriers, and @flags (BL_HOP_*, BL_F_LANES() and the
 * lane). In whole words, since the next reader reads whole words.
 */
BL_CORE void bl_hdr_send(struct bl_hdr *h, __u64 b, __u64 c, __u32 flags)
{
	__u64 w0 = bl_load64(h), w2 = bl_load64((__u8 *)h + 16);

	bl_store64(h, (w0 & ~0xffffULL) | (b >> 32 & 0xffff));
	bl_store64((__u8 *)h + 8, b << 32 | (c >> 16 & 0xffffffff));
	bl_store64((__u8 *)h + 16, (w2 & 0x0000ffffffffff00ULL) | c << 48 | flags);
}

/** bl_psn_before - serial-number order of packet sequence numbers (RFC 1982). */
BL_CORE int bl_psn_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/** bl_fdb_hash - bucket of the static L2 table for @mac, in the form of struct bl_fdb_bucket. */
BL_CORE __u32 bl_fdb_hash(__u64 mac)
{
	return (__u32)((mac * 0x9E3779B97F4A7C15ULL) >> 54); /* 10 bits: BL_FDB_BUCKETS */
}

/* The type of an Ethernet frame, as on the wire. The struct of the kernel is packed. */
BL_CORE __be16 bl_eth_proto(const struct ethhdr *eth)
{
#ifdef __bpf__
	return *(const __be16 *)((const __u8 *)eth + 12);
#else
	return eth->h_proto;
#endif
}

/* Copies barrier and commit barrier, which are neighbours in a header and in the relay scratch. */
BL_CORE void bl_barriers_copy(void *to, const void *from)
{
#ifdef __bpf__
	*(__u64 *)to = *(const __u64 *)from;
	*(__u32 *)(to + 8) = *(const __u32 *)(from + 8);
#else
	__builtin_memcpy(to, from, 12);
#endif
}

/*
 * Writes barrier @b and commit barrier @c, one behind the other as in bl_barriers_copy(). If @to is
 * on the stack, it is aligned to 8 bytes.
 */
BL_CORE void bl_barriers_put(void *to, __u64 b, __u64 c)
{
#ifdef __bpf__
	*(__u64 *)to = BL_BE64(b << 16 | (c >> 32 & 0xffff));
	*(__u32 *)(to + 8) = BL_BE32((__u32)c);
#else
	bl_put48(to, b);
	bl_put48((__u8 *)to + 6, c);
#endif
}

/**
 * bl_mac_copy - copy an Ethernet address from a map into a packet, in two words as in bl_load64().
 */
BL_CORE void bl_mac_copy(__u8 *to, const __u8 *from)
{
#ifdef __bpf__
	*(__u32 *)to = *(const __u32 *)from;
	*(__u16 *)(to + 4) = *(const __u16 *)(from + 4);
#else
	__builtin_memcpy(to, from, 6);
#endif
}

/*
 * Ends a checksum that was begun as the complement of the old one: folds and complements it. Three
 * steps are enough for a sum below 2^47.
 */
BL_CORE __u16 bl_csum_fold(__u64 acc)
{
	acc = (acc & 0xffff) + (acc >> 16);
	acc = (acc & 0xffff) + (acc >> 16);
	acc = (acc & 0xffff) + (acc >> 16);
	return (__u16)~acc;
}

/**
 * bl_csum_replace - update a checksum (RFC 1624, eqn. 3) for a run of 16-bit words that changes
 * from @from to @to. @n: bytes, even. @sum and the result are as on the wire.
 */
BL_CORE __u16 bl_csum_replace(__u16 sum, const __u8 *from, const __u8 *to, __u32 n)
{
	__u64 acc = (__u16)~sum;
	__u32 i;

	for (i = 0; i + 1 < n; i += 2) {
		acc += (__u16) ~(__u16)(from[i] | from[i + 1] << 8);
		acc += (__u16)(to[i] | to[i + 1] << 8);
	}
	return bl_csum_fold(acc);
}

/*
 * As bl_csum_replace() before it folds, for eight bytes in the order of memory. Halves are added,
 * since the carries of a sum of halves go where those of a sum of 16-bit words go.
 */
BL_CORE __u64 bl_csum_word(__u64 acc, __u64 from, __u64 to)
{
	from = ~from;
	return acc + (__u32)from + (from >> 32) + (__u32)to + (to >> 32);
}

/**
 * bl_hdr_send_sum - as bl_hdr_send(). Returns what the UDP checksum @sum becomes by it. As words,
 * because the verifier followed each of the 48 bytes on each path (2026-11: a ninth of the
 * instructions that it followed in the main function of bl_switch_xdp).
 */
BL_CORE __u16 bl_hdr_send_sum(struct bl_hdr *h, __u64 b, __u64 c, __u32 flags, __u16 sum)
{
	const __u8 *at = (const __u8 *)h;
	__u64 w0 = bl_raw64(at), w1 = bl_raw64(at + 8), w2 = bl_raw64(at + 16);
	__u64 acc = (__u16)~sum;

	bl_hdr_send(h, b, c, flags);
	acc = bl_csum_word(acc, w0, bl_raw64(at));
	acc = bl_csum_word(acc, w1, bl_raw64(at + 8));
	return bl_csum_fold(bl_csum_word(acc, w2, bl_raw64(at + 16)));
}

/** bl_op_link - whether the opcode is that of a link frame: their numbers are one range. */
BL_CORE int bl_op_link(__u32 op)
{
	return op - BL_OP_BEACON <= BL_OP_RELEASE - BL_OP_BEACON;
}

/**
 * bl_op_timed - whether frames with this opcode carry a message timestamp, which must not lie in
 * the future.
 */
BL_CORE int bl_op_timed(__u32 op)
{
	return op == BL_OP_DATA || op == BL_OP_PREP;
}

/**
 * bl_op_covered - whether switches pass frames with this opcode only from inputs for which C waits:
 * requests for a window, and what is sent because a window was given.
 */
BL_CORE int bl_op_covered(__u32 op)
{
	return op == BL_OP_OPEN || op == BL_OP_PREP;
}

/**
 * bl_op_control - whether frames with this opcode are control frames that processes send: they are
 * subject to the quota of their port.
 */
BL_CORE int bl_op_control(__u32 op)
{
	return op < 32 && (1u << op & (1u << BL_OP_CREDIT | 1u << BL_OP_NAK | 1u << BL_OP_PROBE |
				       1u << BL_OP_OPEN | 1u << BL_OP_WINDOW | 1u << BL_OP_RECALL));
}

/**
 * bl_op_relayed - whether frames with this opcode may come by way of the controller: those of the
 * reliable stream.
 */
BL_CORE int bl_op_relayed(__u32 op)
{
	return op - BL_OP_PREP <= BL_OP_RECALLED - BL_OP_PREP;
}

/**
 * bl_op_asks - whether the receiver's program answers frames with this opcode, which name the life
 * that they are for.
 */
BL_CORE int bl_op_asks(__u32 op)
{
	return op == BL_OP_PREP || op == BL_OP_RECALL;
}

/**
 * bl_op_answer - whether only programs send frames with this opcode, since they say that something
 * is stored.
 */
BL_CORE int bl_op_answer(__u32 op)
{
	return op == BL_OP_ACK || op == BL_OP_RECALLED;
}

/**
 * bl_header_validate - validate the fields of the header itself and fill in @f. @link: 1: the frame
 * is a link frame. Returns BL_R_NONE or the reason to drop the frame.
 */
BL_CORE enum bl_reason bl_header_validate(const struct bl_hdr *h, int link, struct bl_frame *f)
{
	__u64 w0 = bl_load64(h), w1 = bl_load64((const __u8 *)h + 8),
	      w2 = bl_load64((const __u8 *)h + 16);
	__u8 flags = (__u8)w2, op = w2 >> 8 & 0x1f;

	if ((w2 >> 13 & 7) != BL_VERSION)
		return BL_R_BAD_VERSION;
	if (op == 0 || op >= BL_OP_LIMIT || bl_op_link(op) != link)
		return BL_R_BAD_OPCODE;
	if (BL_FLAGS_LANE(flags) >= BL_FLAGS_LANES(flags))
		return BL_R_BAD_FLAGS;
	f->opcode = op;
	f->flags = flags;
	f->lane = BL_FLAGS_LANE(flags);
	f->lanes = BL_FLAGS_LANES(flags);
	f->ts = w0 >> 16;
	f->b = (w0 & 0xffff) << 32 | w1 >> 32;
	f->c = (w1 & 0xffffffff) << 16 | w2 >> 48;
	f->psn = (__u32)(w2 >> 16);
	return BL_R_NONE;
}
/* clang-format off */
#define BL_WIRE_ORDER(sym, num, name, where) \
	_Static_assert((num >= BL_OP_BEACON && num <= BL_OP_RELEASE) == BL_WIRE_##where, \
		       "bl_op_link()");
/* clang-format on */
#define BL_WIRE_UDP  0
#define BL_WIRE_LINK 1
BL_OPCODES(BL_WIRE_ORDER)
#undef BL_WIRE_ORDER
_Static_assert(offsetof(struct bl_hdr, barrier) == 6 && offsetof(struct bl_hdr, commit) == 12 &&
		       offsetof(struct bl_hdr, psn_hi) == 18 &&
		       offsetof(struct bl_hdr, opcode) == 22 &&
		       offsetof(struct bl_hdr, flags) == 23,
	       "bl_header_validate() takes the header in words");

/*
 * Parses UDP over either IP. @l4 points behind the IP header, at offset @l4_off (pointers are never
 * subtracted, since the verifier would lose them); @l4_len is what the IP header covers.
 */
BL_CORE enum bl_reason bl_parse_udp(const __u8 *end, const __u8 *l4, __u32 l4_off, __u32 l4_len,
				    struct bl_frame *f)
{
	const struct udphdr *u = (const void *)l4;
	const struct bl_hdr *h = (const void *)(u + 1);
	__u32 ulen = BL_BE16(u->len);

	if ((const __u8 *)(h + 1) > end)
		return BL_R_SHORT;
	if (ulen < sizeof(*u) + sizeof(*h) || ulen > l4_len)
		return BL_R_BAD_LENGTH;
	f->hdr_off = l4_off + (__u32)sizeof(*u);
	f->body_len = ulen - (__u32)(sizeof(*u) + sizeof(*h));
	return bl_header_validate(h, 0, f);
}

/* Parses a link frame. */
BL_CORE enum bl_reason bl_parse_link(const __u8 *end, const struct bl_hdr *h, __u32 off,
				     struct bl_frame *f)
{
	enum bl_reason why;

	if ((const __u8 *)(h + 1) + sizeof(struct bl_rsv_body) > end)
		return BL_R_SHORT;
	why = bl_header_validate(h, 1, f);
	if (why != BL_R_NONE)
		return why;
	f->hdr_off = off;
	f->body_len = sizeof(struct bl_rsv_body);
	if (f->opcode != BL_OP_BEACON)
		return BL_R_NONE;
	f->body_len = sizeof(struct bl_beacon);
	return (const __u8 *)(h + 1) + sizeof(struct bl_beacon) + sizeof(struct bl_relay) > end
		       ? BL_R_SHORT
		       : BL_R_NONE;
}

BL_CORE int bl_in_range(__u16 port, __u16 base, __u16 count)
{
	return (__u16)(port - base) < count;
}

/**
 * bl_parse_whole - parse a frame of which only a part can be read; see the top of this file.
 * @start, @stop: the part of the frame that can be read (a tc program sees only the head of a large
 * skb).
 * @whole: length of the frame, bytes.
 * @base, @count: barline's UDP port range; a frame is ours if its destination port lies in it.
 *
 * What decides whether a frame is ours (ethertype, IP protocol, destination port) is read first, so
 * that other traffic gives BL_R_NOT_OURS however odd it is. The exception is an IPv4 UDP packet
 * with a header length below 5 words: it is refused whatever its port, which could not be trusted.
 */
BL_CORE enum bl_reason bl_parse_whole(const void *start, const void *stop, __u32 whole, __u16 base,
				      __u16 count, struct bl_frame *f)
{
	const __u8 *end = stop;
	const __u8 *p = (const __u8 *)start + sizeof(struct ethhdr);
	const struct ethhdr *eth = start;
	__u32 off = sizeof(*eth);
	__u16 proto;

	if (p > end)
		return BL_R_NOT_OURS;
	proto = BL_BE16(bl_eth_proto(eth));
	f->vlan = 0;
	f->l3_off = 0;
	f->v6 = 0;
	f->sport = f->dport = 0;
	if (proto == BL_ETH_8021Q || proto == BL_ETH_8021AD) {
		const struct bl_vlan *v = (const void *)p;

		p += sizeof(*v);
		off += sizeof(*v);
		if (p > end)
			return BL_R_NOT_OURS;
		proto = BL_BE16(v->proto);
		f->vlan = 1;
		if (proto == BL_ETH_8021Q || proto == BL_ETH_8021AD) {
			/*
			 * The inner frame decides whether it is ours: go on, and refuse it if it
			 * is.
			 */
			v = (const void *)p;
			p += sizeof(*v);
			off += sizeof(*v);
			if (p > end)
				return BL_R_NOT_OURS;
			proto = BL_BE16(v->proto);
			f->vlan = 2;
		}
	}
	if (proto == BL_ETHERTYPE) {
		const struct bl_hdr *h = (const void *)p;

		if (f->vlan == 2)
			return BL_R_DOUBLE_TAG;
		return bl_parse_link(end, h, off, f);
	}
	f->l3_off = off;
	if (proto == BL_ETH_IP) {
		const struct iphdr *ip = (const void *)p;
		const struct udphdr *u = (const void *)(ip + 1);
		__u32 tot;

		if ((const __u8 *)(ip + 1) > end || ip->version != 4 || ip->protocol != BL_UDP)
			return BL_R_NOT_OURS;
		if (ip->frag_off & BL_BE16(0x1fff))
			/*
			 * A later fragment has no ports. Its first fragment was refused, so it
			 * never completes.
			 */
			return BL_R_NOT_OURS;
		if (ip->ihl != 5) {
			/*
			 * The place of the UDP header depends on ihl: read the port there before
			 * claiming the frame.
			 */
			__u32 ihl = (__u32)ip->ihl * 4;

			if (ip->ihl < 5)
				return BL_R_BAD_IHL;
			u = (const void *)(p + ihl);
			if ((const __u8 *)(u + 1) > end ||
			    !bl_in_range(BL_BE16(u->dest), base, count))
				return BL_R_NOT_OURS;
			return BL_R_IP_OPTIONS;
		}
		if ((const __u8 *)(u + 1) > end)
			return BL_R_NOT_OURS;
		f->sport = BL_BE16(u->source);
		f->dport = BL_BE16(u->dest);
		if (!bl_in_range(f->dport, base, count))
			return BL_R_NOT_OURS;
		if (f->vlan == 2)
			return BL_R_DOUBLE_TAG;
		if (ip->frag_off & BL_BE16(0x2000))
			return BL_R_FRAGMENT;
		tot = BL_BE16(ip->tot_len);
		if (tot < sizeof(*ip) || off + tot > whole)
			return BL_R_BAD_LENGTH;
		return bl_parse_udp(end, (const __u8 *)u, off + (__u32)sizeof(*ip),
				    tot - (__u32)sizeof(*ip), f);
	}
	if (proto == BL_ETH_IP6) {
		const struct ipv6hdr *ip = (const void *)p;
		const struct udphdr *u = (const void *)(ip + 1);
		__u32 len;

		if ((const __u8 *)(ip + 1) > end || ip->version != 6)
			return BL_R_NOT_OURS;
		/* a fragment header of 8 bytes, then UDP in the first fragment */
		if (ip->nexthdr == 44) {
			const __u8 *fh = (const __u8 *)(ip + 1);

			u = (const void *)(fh + 8);
			if ((const __u8 *)(u + 1) > end || fh[0] != BL_UDP || fh[2] ||
			    fh[3] & 0xf8 || !bl_in_range(BL_BE16(u->dest), base, count))
				return BL_R_NOT_OURS;
			return BL_R_FRAGMENT;
		}
		if (ip->nexthdr != BL_UDP || (const __u8 *)(u + 1) > end)
			return BL_R_NOT_OURS;
		f->sport = BL_BE16(u->source);
		f->dport = BL_BE16(u->dest);
		if (!bl_in_range(f->dport, base, count))
			return BL_R_NOT_OURS;
		if (f->vlan == 2)
			return BL_R_DOUBLE_TAG;
		len = BL_BE16(ip->payload_len);
		if (off + sizeof(*ip) + len > whole)
			return BL_R_BAD_LENGTH;
		f->v6 = 1;
		return bl_parse_udp(end, (const __u8 *)u, off + (__u32)sizeof(*ip), len, f);
	}
	return BL_R_NOT_OURS;
}

/**
 * bl_parse_plain - bl_parse() for the frame that a switch sees most: DATA on a link with one lane,
 * IPv4, no tag. Returns 1 if the frame is one and valid; then @f is filled in, except @psn. Returns
 * 0 otherwise: call bl_parse(), which finds the reason. It does a tenth of the work of bl_parse(),
 * with offsets that the compiler knows.
 */
BL_CORE int bl_parse_plain(const void *start, const void *stop, __u16 base, __u16 count,
			   struct bl_frame *f)
{
	const struct ethhdr *eth = start;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct udphdr *u = (const void *)(ip + 1);
	const struct bl_hdr *h = (const void *)(u + 1);
	__u64 w0, w1, w2;
	__u64 tot, ulen;

	if ((const void *)(h + 1) > stop)
		return 0;
	/* ethertype, IP version and header length in one word */
	if ((bl_raw32((const __u8 *)start + 12) & BL_BE32(0xffffff00)) !=
		    BL_BE32(BL_ETH_IP << 16 | 0x4500) ||
	    ip->protocol != BL_UDP || ip->frag_off & BL_BE16(0x3fff))
		return 0;
	if (!bl_in_range(BL_BE16(u->dest), base, count))
		return 0;
	tot = BL_BE16(ip->tot_len);
	BL_OPAQUE(tot); /* Linux 6.1 does not know the maximum of two bytes */
	tot &= 0xffff;
	ulen = BL_BE16(u->len);
	if (ulen < sizeof(*u) + sizeof(*h) || ulen + sizeof(*ip) > tot ||
	    (const __u8 *)ip + tot > (const __u8 *)stop)
		return 0;
	w2 = bl_load64((const __u8 *)h + 16);
	if ((w2 & 0xffff & ~BL_F_HOP) != BL_OPCODE_BYTE(BL_OP_DATA) << 8)
		return 0;
	w0 = bl_load64(h);
	w1 = bl_load64((const __u8 *)h + 8);
	f->l3_off = sizeof(*eth);
	f->hdr_off = sizeof(*eth) + sizeof(*ip) + sizeof(*u);
	f->body_len = ulen - (__u32)(sizeof(*u) + sizeof(*h));
	f->sport = BL_BE16(u->source);
	f->dport = BL_BE16(u->dest);
	f->v6 = 0;
	f->vlan = 0;
	f->opcode = BL_OP_DATA;
	f->flags = (__u8)w2;
	f->lane = 0;
	f->lanes = 1;
	f->ts = w0 >> 16;
	f->b = (w0 & 0xffff) << 32 | w1 >> 32;
	f->c = (w1 & 0xffffffff) << 16 | w2 >> 48;
	return 1;
}

/** bl_parse - parse a frame that can be read as a whole. */
BL_CORE enum bl_reason bl_parse(const void *start, const void *stop, __u16 base, __u16 count,
				struct bl_frame *f)
{
	return bl_parse_whole(start, stop, (__u32)((const __u8 *)stop - (const __u8 *)start), base,
			      count, f);
}

#endif
