// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nl_neigh.h. */
#include "base/nl_neigh.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/nl_dump.h"

#define NUD_HAS_MAC (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)

/* struct each - whom to tell of the neighbours of one interface. */
struct each {
	int ifindex;
	void (*fn)(const struct nl_neighbour *n, void *ctx);
	void *ctx;
};

/* Reads the address of a neighbour. Returns false if it has none. */
static bool read_ip(const struct nlmsghdr *h, struct nl_neighbour *to)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	size_t want = m->ndm_family == AF_INET ? 4 : 16;
	const struct rtattr *a = nl_attr(h, sizeof(*m), NDA_DST, want);

	if (!a || RTA_PAYLOAD(a) != want)
		return false;
	if (want == 4)
		bl_ip_map_v4(to->ip);
	memcpy(to->ip + 16 - want, RTA_DATA(a), want);
	return true;
}

static void read_one(struct nlmsghdr *h, void *ctx)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct each *each = ctx;
	const struct rtattr *mac;
	struct nl_neighbour n = { 0 };

	if ((each->ifindex && m->ndm_ifindex != each->ifindex) || m->ndm_state & NUD_NOARP ||
	    (m->ndm_family != AF_INET && m->ndm_family != AF_INET6) || !read_ip(h, &n))
		return;
	n.ifindex = m->ndm_ifindex;
	n.known = m->ndm_state & NUD_HAS_MAC;
	n.permanent = m->ndm_state & NUD_PERMANENT;
	mac = nl_attr(h, sizeof(*m), NDA_LLADDR, sizeof(n.mac));
	if (mac)
		memcpy(n.mac, RTA_DATA(mac), sizeof(n.mac));
	each->fn(&n, each->ctx);
}

int nl_neigh_each(struct nl *nl, int ifindex, void (*fn)(const struct nl_neighbour *n, void *ctx),
		  void *ctx)
{
	struct each each = { .ifindex = ifindex, .fn = fn, .ctx = ctx };

	return nl_dump(nl, RTM_GETNEIGH, AF_UNSPEC, RTM_NEWNEIGH, sizeof(struct ndmsg), read_one,
		       &each);
}
