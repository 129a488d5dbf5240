/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames for the program tests. A frame is built whole from a description, with checksums computed
 * over all bytes. The frame that a program should make of it is built from the same description
 * with a few fields changed. So every comparison covers all bytes, and the checksums (IP, UDP) that
 * the programs update step by step are compared with fully computed ones.
 */
#ifndef BARLINE_TEST_FRAMES_H
#define BARLINE_TEST_FRAMES_H

#include <stdbool.h>
#include <string.h>
#include "core/wire_core.h"
#include "maps/switch_abi.h"

#define MAYBE_UNUSED __attribute__((unused))
#define FRAME_MAX    9600

/** struct frame - the bytes of a frame. */
struct frame {
	__u8 p[FRAME_MAX];
	__u32 n; /* bytes in use */
};

/**
 * struct desc - one barline frame, field by field. Times have 64 bits here; the wire gets their low
 * 48 bits.
 */
struct desc {
	__u8 dst[6], src[6]; /* Ethernet addresses */
	__u8 tags;           /* VLAN tags, 0 to 2 */
	/*
	 * @ad: the only tag is 802.1ad, as the outer one of two always is. @v6: IPv6. @csum: the
	 * UDP checksum is filled in.
	 */
	bool ad, v6, csum;
	__u8 ttl, tos;
	__u16 ip_id;
	__u8 saddr[16], daddr[16]; /* IPv6 or IPv4-mapped */
	__u16 sport, dport;
	__u64 ts, b, c; /* bus time, ns */
	__u32 psn;
	__u8 op, lane, lanes;
	__u8 op_byte, flag_byte; /* if not 0, used instead of what op, lane and lanes give */
	__u32 body;              /* bytes behind the header; not in beacons */
	__s16 tai;               /* this and the following fields are of beacons; TAI offset, s */
	__u16 port;
	__u32 node;
	struct bl_pair relay[BL_SETS_MAX];
	/*
	 * 1: @link is in the relay scratch; 2: four zero bytes in its place, so that there is none.
	 * No bool: gcc 12 clears its padding in the wrong place.
	 */
	__u64 says;
	struct bl_link_body link;
};

/* Writes the Ethernet address of host @h, which is on the link of port @h, to @mac. */
static inline void host_mac(__u8 *mac, __u32 h)
{
	const __u8 m[6] = { 0x02, 0, 0, 0, (__u8)(h >> 8), (__u8)h };

	memcpy(mac, m, 6);
}

/* Writes the IP address of host @h to @a: 10.0.h.2 (IPv4-mapped), or fd00:0:0:h::2. */
static inline void host_addr(__u8 *a, bool v6, __u32 h)
{
	memset(a, 0, 16);
	if (v6) {
		a[0] = 0xfd;
		a[7] = (__u8)h;
		a[15] = 2;
	} else {
		a[10] = a[11] = 0xff;
		a[12] = 10;
		a[14] = (__u8)h;
		a[15] = 2;
	}
}

/* Returns a DATA frame over IPv4 from host @from to host @to with timestamp @ts and barriers @b. */
MAYBE_UNUSED static struct desc data_frame(__u32 from, __u32 to, __u64 ts, __u64 b)
{
	struct desc d = { .ttl = 64,
			  .tos = 0xb8,
			  .ip_id = 0x1234,
			  .sport = BL_PORT_BASE + 7,
			  .dport = BL_PORT_BASE + 9,
			  .ts = ts,
			  .b = b,
			  .c = b,
			  .psn = 0xfedcba98,
			  .op = BL_OP_DATA,
			  .lanes = 1,
			  .body = 37 };

	host_mac(d.src, from);
	host_mac(d.dst, to);
	host_addr(d.saddr, false, from);
	host_addr(d.daddr, false, to);
	return d;
}

/* Returns the same frame over IPv6. */
MAYBE_UNUSED static struct desc data_frame6(__u32 from, __u32 to, __u64 ts, __u64 b)
{
	struct desc d = data_frame(from, to, ts, b);

	d.v6 = true;
	host_addr(d.saddr, true, from);
	host_addr(d.daddr, true, to);
	return d;
}

/* Returns a beacon of host @from with barriers @b. */
MAYBE_UNUSED static struct desc beacon_frame(__u32 from, __u64 b)
{
	struct desc d = { .dst = BL_BEACON_MAC,
			  .b = b,
			  .c = b,
			  .op = BL_OP_BEACON,
			  .lanes = 1,
			  .tai = 37,
			  .port = 0,
			  .node = 0x1000 + from };

	host_mac(d.src, from);
	return d;
}

/* Makes the beacon @d say that @frames frames were counted under @run before it, sent at @at. */
MAYBE_UNUSED static void say(struct desc *d, __u16 run, __u32 frames, __u64 at, __u32 bound)
{
	d->says = 1;
	d->link = (struct bl_link_body){ .magic = BL_BE32(0x626c6e6b),
					 .run = BL_BE16(run),
					 .frames = BL_BE32(frames),
					 .echo = BL_BE32(0x80000000),
					 .version = 1,
					 .bound = BL_BE32(bound) };
	bl_put48(d->link.sent, at);
}

/* The put functions append to the frame, in network byte order. */
static inline void put(struct frame *f, const void *p, __u32 n)
{
	memcpy(f->p + f->n, p, n);
	f->n += n;
}

static inline void put8(struct frame *f, __u8 v)
{
	put(f, &v, 1);
}

static inline void put16(struct frame *f, __u16 v)
{
	put8(f, (__u8)(v >> 8));
	put8(f, (__u8)v);
}

static inline void put32(struct frame *f, __u32 v)
{
	put16(f, (__u16)(v >> 16));
	put16(f, (__u16)v);
}

static inline void put48(struct frame *f, __u64 v)
{
	put16(f, (__u16)(v >> 32));
	put32(f, (__u32)v);
}

/* Adds @n bytes to a ones' complement sum. */
static inline __u32 sum16(__u32 acc, const __u8 *p, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		acc += i & 1 ? p[i] : (__u32)p[i] << 8;
	return acc;
}

/* Folds the sum into a checksum. */
static inline __u16 fold(__u32 acc)
{
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return (__u16)~acc;
}

/* Appends the IP header of a packet with @l4_len bytes behind it. */
static inline void put_ip(struct frame *f, const struct desc *d, __u32 l4_len)
{
	__u32 at = f->n;
	__u16 sum;

	if (d->v6) {
		put32(f, 6u << 28 | (__u32)d->tos << 20 | 0x54321);
		put16(f, (__u16)l4_len);
		put8(f, BL_UDP);
		put8(f, d->ttl);
		put(f, d->saddr, 16);
		put(f, d->daddr, 16);
		return;
	}
	put8(f, 0x45);
	put8(f, d->tos);
	put16(f, (__u16)(20 + l4_len));
	put16(f, d->ip_id);
	put16(f, 0x4000);
	put8(f, d->ttl);
	put8(f, BL_UDP);
	put16(f, 0);
	put(f, d->saddr + 12, 4);
	put(f, d->daddr + 12, 4);
	sum = fold(sum16(0, f->p + at, 20));
	f->p[at + 10] = (__u8)(sum >> 8);
	f->p[at + 11] = (__u8)sum;
}

/* Builds the frame that @d describes. */
MAYBE_UNUSED static void build(struct frame *f, const struct desc *d)
{
	bool link = d->op == BL_OP_BEACON;
	__u32 l4_len = 8 + sizeof(struct bl_hdr) + d->body, i, udp = 0, hdr;

	memset(f->p, 0, sizeof(f->p));
	f->n = 0;
	put(f, d->dst, 6);
	put(f, d->src, 6);
	for (i = 0; i < d->tags; i++) {
		put16(f, i || (d->tags == 1 && !d->ad) ? BL_ETH_8021Q : BL_ETH_8021AD);
		put16(f, 0x6000 | 100);
	}
	if (link) {
		put16(f, BL_ETHERTYPE);
	} else {
		put16(f, d->v6 ? BL_ETH_IP6 : BL_ETH_IP);
		put_ip(f, d, l4_len);
		udp = f->n;
		put16(f, d->sport);
		put16(f, d->dport);
		put16(f, (__u16)l4_len);
		put16(f, 0);
	}
	hdr = f->n;
	put48(f, d->ts);
	put48(f, d->b);
	put48(f, d->c);
	put32(f, d->psn);
	put8(f, d->op_byte ? d->op_byte : BL_OPCODE_BYTE(d->op));
	put8(f, d->flag_byte ? d->flag_byte : (__u8)(BL_F_LANES(d->lanes) | d->lane));
	if (link) {
		put16(f, (__u16)d->tai);
		put16(f, d->port);
		put32(f, d->node);
		for (i = 0; i < BL_SETS_MAX; i++) {
			put48(f, d->relay[i].b);
			put48(f, d->relay[i].c);
		}
		if (d->says == 1)
			memcpy(f->p + hdr + 24 + 8 + 16, &d->link, 40);
		else if (d->says)
			memset(f->p + hdr + 24 + 8 + 16, 0, 4);
		return;
	}
	for (i = 0; i < d->body; i++)
		put8(f, (__u8)(i * 7 + 1));
	if (d->csum) {
		__u32 acc = BL_UDP + l4_len;
		__u16 sum;

		acc = sum16(acc, d->v6 ? d->saddr : d->saddr + 12, d->v6 ? 16 : 4);
		acc = sum16(acc, d->v6 ? d->daddr : d->daddr + 12, d->v6 ? 16 : 4);
		sum = fold(sum16(acc, f->p + udp, l4_len));
		sum = sum ? sum : 0xffff;
		f->p[hdr - 2] = (__u8)(sum >> 8);
		f->p[hdr - 1] = (__u8)sum;
	}
}

/* Returns the offset of the IP header. */
static inline __u32 ip_off(const struct desc *d)
{
	return 14 + 4u * d->tags;
}

/* Returns the offset of struct bl_hdr. */
static inline __u32 hdr_off(const struct desc *d)
{
	return d->op == BL_OP_BEACON ? 14 + 4u * d->tags : ip_off(d) + (d->v6 ? 40 : 20) + 8;
}

#endif
