/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Classification of frames that are not barline's: what a host holds back and for which
 * destination, and what a switch with metered ports does with them.
 *
 * Example: a TCP segment with DSCP 46 (EF) to 02:00:00:00:00:03 is held for that address, in the
 * expedited class. The ARP request before it was sent without waiting, since without the answer
 * there is no address to reserve for.
 *
 * The functions read the frame up to the ports at most, and change nothing. They skip one VLAN tag
 * and do not classify what is behind two.
 */
#ifndef BARLINE_HOLD_CORE_H
#define BARLINE_HOLD_CORE_H

#include "maps/fcp_abi.h"
#include "maps/hold_abi.h"
#include "maps/top_abi.h"
#include "core/wire_core.h"

#define BL_ETH_ARP        0x0806
#define BL_TCP            6
#define BL_ICMP6          58
#define BL_ND_FIRST       133 /* router solicitation */
#define BL_ND_LAST        137 /* redirect */
#define BL_DSCP_EXPEDITED 40  /* CS5 */

enum bl_frame_kind { BL_FRAME_OTHER, BL_FRAME_ARP, BL_FRAME_IP4, BL_FRAME_IP6, BL_FRAME_ND };

/**
 * struct bl_frame_class - the classification of one frame. Filled in by bl_frame_class().
 */
struct bl_frame_class {
	__u8 kind;    /* enum bl_frame_kind; ND is an IPv6 frame as well */
	__u8 multi;   /* 1: multicast or broadcast */
	__u8 dscp;    /* 0 unless the frame is IP */
	__u8 proto;   /* IP protocol; of IPv6, the first next header */
	__u32 l3_off; /* offset of the IP header, bytes; 0: none */
	__u16 sport;  /* of TCP and UDP, host order; else 0 */
	__u16 dport;  /* of TCP and UDP, host order; else 0 */
};

BL_CORE void bl_classify_ports(const __u8 *end, const __u8 *l4, struct bl_frame_class *l)
{
	const struct udphdr *u = (const void *)l4; /* TCP has its ports at the same offsets */

	if ((l->proto != BL_UDP && l->proto != BL_TCP) || l4 + 4 > end)
		return;
	l->sport = BL_BE16(u->source);
	l->dport = BL_BE16(u->dest);
}

/**
 * bl_frame_class - fill in @l for the frame [@start, @stop). Returns 0, or -1 if the frame has no
 * complete Ethernet header. A frame whose IP header is cut off or has the wrong version is
 * BL_FRAME_OTHER.
 */
BL_CORE int bl_frame_class(const void *start, const void *stop, struct bl_frame_class *l)
{
	const struct ethhdr *eth = start;
	const __u8 *end = stop, *p = (const __u8 *)(eth + 1);
	__u32 off = sizeof(*eth);
	__u16 type;

	if (p > end)
		return -1;
	__builtin_memset(l, 0, sizeof(*l));
	l->multi = eth->h_dest[0] & 1;
	type = BL_BE16(eth->h_proto);
	if (type == BL_ETH_8021Q || type == BL_ETH_8021AD) {
		const struct bl_vlan *v = (const void *)p;

		p += sizeof(*v);
		off += sizeof(*v);
		if (p > end)
			return 0;
		type = BL_BE16(v->proto);
	}
	if (type == BL_ETH_ARP) {
		l->kind = BL_FRAME_ARP;
	} else if (type == BL_ETH_IP) {
		const struct iphdr *ip = (const void *)p;

		if ((const __u8 *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
			return 0;
		l->kind = BL_FRAME_IP4;
		l->l3_off = off;
		l->dscp = ip->tos >> 2;
		l->proto = ip->protocol;
		if (ip->ihl == 5 && !(ip->frag_off & BL_BE16(0x3fff)))
			bl_classify_ports(end, (const __u8 *)(ip + 1), l);
	} else if (type == BL_ETH_IP6) {
		const struct ipv6hdr *ip = (const void *)p;
		const __u8 *l4 = (const __u8 *)(ip + 1);

		if (l4 > end || ip->version != 6)
			return 0;
		l->kind = BL_FRAME_IP6;
		l->l3_off = off;
		l->dscp = (__u8)((p[0] & 0xf) << 2 | p[1] >> 6);
		l->proto = ip->nexthdr;
		if (l->proto == BL_ICMP6 && l4 < end && *l4 >= BL_ND_FIRST && *l4 <= BL_ND_LAST)
			l->kind = BL_FRAME_ND;
		bl_classify_ports(end, l4, l);
	}
	return 0;
}

/**
 * bl_class_is_control - whether the frame resolves addresses: it never waits for a promise, and it
 * is sent before data.
 */
BL_CORE int bl_class_is_control(const struct bl_frame_class *l)
{
	return l->kind == BL_FRAME_ARP || l->kind == BL_FRAME_ND;
}

/**
 * bl_class_is_fcp - whether the frame is between a host and an arbiter of Fastpass: a request for
 * slots that waits behind the data of others comes late. Reports about faults are sent the same
 * way, past what is lost in queues.
 */
BL_CORE int bl_class_is_fcp(const struct bl_frame_class *l)
{
	return l->proto == BL_UDP &&
	       (l->dport == BL_FCP_PORT || l->sport == BL_FCP_PORT ||
		l->dport == BL_FCP_FAULTS_PORT || l->sport == BL_FCP_FAULTS_PORT);
}

/** bl_class_is_top - whether the frame is a token or a signal of TOP. */
BL_CORE int bl_class_is_top(const struct bl_frame_class *l)
{
	return l->proto == BL_UDP && l->dport == BL_TOP_PORT;
}

/** bl_class_is_held - 0 if the frame is for destination 0, which is never held back; else 1. */
BL_CORE int bl_class_is_held(const struct bl_frame_class *l)
{
	return !l->multi && !bl_class_is_control(l);
}

/** bl_hold_class - the class of the hold queue: 0 (expedited) or 1; see BL_HOLD_CLASSES. */
BL_CORE __u32 bl_hold_class(const struct bl_frame_class *l)
{
	return bl_class_is_held(l) && l->dscp < BL_DSCP_EXPEDITED;
}

#endif
