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
	__u32 slot;    /* of the endpoint that sends it, once find_sender() has found one */
	__u32 len;     /* bytes of a frame that an XDP program got: the program may change them */
};

/* Looks up what every host program needs. Returns 0 if a map is missing, which does not happen. */
static __always_inline int lookup_host_maps(struct run *r)
{
	__u32 zero = 0;

	r->cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	r->page = bpf_map_lookup_elem(&host_page, &zero);
	return r->cfg && r->page;
}

/**
 * bl_read_clock_slowly - bl_read_clock() as a function, which the verifier checks once by itself.
 * For frames that do not come from the NIC. @n must have been written to before. Always returns 0.
 */
__attribute__((noinline)) int bl_read_clock_slowly(struct bl_now *n)
{
	if (n)
		bl_read_clock(n);
	return 0;
}

/* Returns the page of endpoint slot @slot, or NULL if it has none. */
static __always_inline struct bl_ep_page *ep_page_of(__u32 slot)
{
	void *page = bpf_map_lookup_elem(&ep_pages, &slot);
	__u32 zero = 0;

	return page ? bpf_map_lookup_elem(page, &zero) : NULL;
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

/*
 * Finds the endpoint of this host that sends the frame of @skb, and sets @r->slot. The source
 * addresses of the frame have been copied into @r. Its port alone says little: any process may bind
 * it at another address of the host, or at 127.0.0.1. So the address must be the endpoint's, and
 * the socket the one that the daemon made for it. Returns BL_R_NONE or the reason to drop the
 * frame.
 *
 * Example: the endpoint is 10.0.0.1:61697. A frame from [fd00::1]:61697 or 127.0.0.1:61697 is
 * refused for its address, one that a container sends from 10.0.0.1:61697 through this host's
 * routing for its socket, since it has none here.
 */
static __always_inline enum bl_reason find_sender(struct __sk_buff *skb, struct run *r)
{
	__u32 i = (__u16)(r->f.sport - r->cfg->port_base);
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);
	const __u64 *a, *s = (const __u64 *)r->saddr;

	if (i >= r->cfg->port_count || !ep || BL_READ_ONCE(ep->active) != BL_EP_ACTIVE)
		return BL_R_NOT_ENDPOINT;
	a = (const __u64 *)ep->addr;
	if ((a[0] | a[1]) && (a[0] != s[0] || a[1] != s[1]))
		return BL_R_FOREIGN_SOURCE;
	if (ep->cookie && bpf_get_socket_cookie(skb) != ep->cookie)
		return BL_R_FOREIGN_SOURCE;
	r->slot = ep->slot & (BL_EPS_MAX - 1);
	return BL_R_NONE;
}

/*
 * Returns whether a frame that came in on the NIC has a source that no other host can have: an
 * address of loopback, the address that it is sent to, or an endpoint of this host. Frames between
 * endpoints of one host never leave it.
 */
static __always_inline int source_is_local(const struct run *r)
{
	const __u64 *a, *s = (const __u64 *)r->saddr, *d = (const __u64 *)r->daddr;
	__u32 i = (__u16)(r->f.sport - r->cfg->port_base);
	const struct bl_ep_slot *ep;

	if (s[1] == d[1] && s[0] == d[0])
		return 1;
	if (!s[0] && (r->f.v6 ? s[1] == BL_BE64(1) : r->saddr[12] == 127))
		return 1;
	ep = bpf_map_lookup_elem(&eps, &i);
	if (!ep || BL_READ_ONCE(ep->active) != BL_EP_ACTIVE)
		return 0;
	a = (const __u64 *)ep->addr;
	return a[1] == s[1] && a[0] == s[0];
}

#endif
