/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one run of a host program knows of its frame, and the lookups that need nothing else: the
 * host's maps, the frame's addresses, and the endpoint that sends it. BPF side only.
 *
 * Example: a DATA frame from 10.0.0.2 port 61697 arrives. parse fills f, lookup_host_maps() fills
 * cfg and page, barrier_rx.h extends the 48-bit times of the header into ts, b and c, and
 * copy_addresses() writes ::ffff:10.0.0.2 into saddr.
 *
 * Not here: the switch's struct run, which is another struct (bpf/switch/run.h).
 */
#ifndef BARLINE_HOST_RUN_H
#define BARLINE_HOST_RUN_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/** struct run - one run of a host program. It lives on the program's stack. */
struct run {
	struct bl_frame f;             /* the parsed headers */
	const struct bl_host_cfg *cfg; /* value 0 of "host_cfg" */
	struct bl_host_page *page;     /* value 0 of "host_page" */
	__u64 ts, b, c;                /* the header's times extended to 64 bits, bus time, ns */
	__u8 saddr[16];                /* IPv6 or IPv4-mapped */
	__u8 daddr[16];                /* IPv6 or IPv4-mapped */
	__u16 life;    /* of a PREP or RECALL: life of the endpoint that it is for */
	__u16 relayed; /* 1: the frame came by way of the controller */
};

/* Looks up what every host program needs. Returns 0 if a map is missing, which does not happen. */
static __always_inline int lookup_host_maps(struct run *r)
{
	__u32 zero = 0;

	r->cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	r->page = bpf_map_lookup_elem(&host_page, &zero);
	return r->cfg && r->page;
}

/*
 * Copies the addresses of the IP header at @l3 into @r. Leaves them as they are if the header ends
 * behind @end.
 */
static __always_inline void copy_addresses(struct run *r, const void *l3, const void *end)
{
	__u32 *s = (__u32 *)r->saddr, *d = (__u32 *)r->daddr;

	if (r->f.v6) {
		const struct ipv6hdr *ip = l3;

		if ((const void *)(ip + 1) > end)
			return;
		__builtin_memcpy(s, &ip->saddr, 16);
		__builtin_memcpy(d, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = l3;

		if ((const void *)(ip + 1) > end)
			return;
		s[2] = d[2] = BL_BE32(0xffff);
		s[3] = ip->saddr;
		d[3] = ip->daddr;
	}
}

/* Returns the slot of the active endpoint that sends the frame, or BL_EPS_MAX if there is none. */
static __always_inline __u32 sender_slot(const struct run *r)
{
	__u32 i = (__u16)(r->f.sport - r->cfg->port_base);
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);

	return i < r->cfg->port_count && ep && BL_READ_ONCE(ep->active) == BL_EP_ACTIVE
		       ? ep->slot & (BL_EPS_MAX - 1)
		       : BL_EPS_MAX;
}

#endif
