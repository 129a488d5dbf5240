/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one run of a host program knows of its frame. BPF side only. */
#ifndef BARLINE_HOST_RUN_H
#define BARLINE_HOST_RUN_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/* What one run of a program knows. */
struct run {
	struct bl_frame f;
	const struct bl_host_cfg *cfg;
	struct bl_host_page *page;
	__u64 ts, b, c; /* extended */
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 life;    /* of a PREP or RECALL: which life of the endpoint it is for */
	__u16 relayed; /* it came by way of the controller */
};

/* What a program begins with. 0, which does not happen: a map is not there. */
static __always_inline int lookup_host_maps(struct run *r)
{
	__u32 zero = 0;

	r->cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	r->page = bpf_map_lookup_elem(&host_page, &zero);
	return r->cfg && r->page;
}

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

/* Slot of the endpoint that the frame is from; BL_EPS_MAX: there is none. */
static __always_inline __u32 sender_slot(const struct run *r)
{
	__u32 i = (__u16)(r->f.sport - r->cfg->port_base);
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);

	return i < r->cfg->port_count && ep && BL_READ_ONCE(ep->active) == BL_EP_ACTIVE
		       ? ep->slot & (BL_EPS_MAX - 1)
		       : BL_EPS_MAX;
}

#endif
