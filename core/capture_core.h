/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds barline's header in the first bytes of a frame, for `barline capture`: for its filters in
 * the kernel, and for its text. Not the parser of core/wire_core.h, because a capture shows refused
 * frames as well: nothing is validated beyond what is needed to stay inside the frame.
 *
 * Example: a DATA frame over IPv4 from port 61696 to 61700, cut off behind its header, gives opcode
 * 1, hdr_off 42 and both ports, though bl_parse() refuses it as BL_R_BAD_LENGTH.
 */
#ifndef BARLINE_CAPTURE_CORE_H
#define BARLINE_CAPTURE_CORE_H

#include "core/wire_core.h"
#include "maps/capture_abi.h"

/** struct bl_capture_head - what the first bytes of a frame say. */
struct bl_capture_head {
	__u64 ts, b, c; /* of the header, 48 bits as on the wire */
	__u32 psn;
	__u32 l3_off;       /* of the IP header; 0: none */
	__u32 hdr_off;      /* of struct bl_hdr; 0: the frame has none */
	__u16 sport, dport; /* of UDP; 0: none */
	__u8 opcode;        /* without the version; 0: no header */
	__u8 v6;
	__u8 pad[6];
};

BL_CORE __u32 bl_capture_be16(const __u8 *p)
{
#ifdef __bpf__
	return BL_BE16(*(const __be16 *)p);
#else
	return (__u32)p[0] << 8 | p[1];
#endif
}

/**
 * bl_capture_find - fills @h in from the first bytes of a frame.
 * @p: BL_CAPTURE_HEAD bytes, of which @len belong to the frame
 * @port_base, @port_count: barline's port range
 */
BL_CORE void bl_capture_find(const __u8 *p, __u32 len, __u32 port_base, __u32 port_count,
			     struct bl_capture_head *h)
{
	__u32 off = 12, proto, ours = 0;

	__builtin_memset(h, 0, sizeof(*h));
	if (len < 14)
		return;
	proto = bl_capture_be16(p + off);
	if ((proto == BL_ETH_8021Q || proto == BL_ETH_8021AD) && len >= 18) {
		off += 4;
		proto = bl_capture_be16(p + off);
	}
	off += 2;
	if (proto == BL_ETHERTYPE) {
		ours = 1;
	} else if (proto == BL_ETH_IP && len >= off + 20) {
		__u32 ihl = (p[off] & 15U) * 4;

		h->l3_off = off;
		/* The later fragments have no header. */
		if (ihl < 20 || p[off + 9] != BL_UDP || bl_capture_be16(p + off + 6) & 0x1fff)
			return;
		off += ihl;
	} else if (proto == BL_ETH_IP6 && len >= off + 40) {
		h->l3_off = off;
		h->v6 = 1;
		if (p[off + 6] != BL_UDP)
			return;
		off += 40;
	} else {
		return;
	}
	if (!ours) {
		if (len < off + 8)
			return;
		h->sport = (__u16)bl_capture_be16(p + off);
		h->dport = (__u16)bl_capture_be16(p + off + 2);
		off += 8;
		if (h->dport - port_base >= port_count && h->sport - port_base >= port_count)
			return;
	}
	if (len < off + sizeof(struct bl_hdr))
		return;
	h->hdr_off = off;
	h->ts = bl_get48(p + off);
	h->b = bl_get48(p + off + 6);
	h->c = bl_get48(p + off + 12);
	h->psn = bl_capture_be16(p + off + 18) << 16 | bl_capture_be16(p + off + 20);
	h->opcode = p[off + 22] & 31;
}

#endif
