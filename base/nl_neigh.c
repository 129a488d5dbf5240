// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nl_neigh.h. */
#include "base/nl_neigh.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"

#define ANSWER_ROOM 32768
#define NUD_HAS_MAC (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)

/* Reads the address of a neighbour. Returns false if it has none. */
static bool read_ip(struct nlmsghdr *h, struct nl_neighbour *to)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	int len = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*m));
	struct rtattr *a = (void *)((char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(*m)));
	size_t want = m->ndm_family == AF_INET ? 4 : 16;

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type != NDA_DST || RTA_PAYLOAD(a) != want)
			continue;
		if (want == 4)
			bl_ip_map_v4(to->ip);
		memcpy(to->ip + 16 - want, RTA_DATA(a), want);
		return true;
	}
	return false;
}

/* Passes on what one message says. Returns 1 at the end of the dump, 0, or -errno. */
static int read_one(struct nlmsghdr *h, int ifindex,
		    void (*fn)(const struct nl_neighbour *n, void *ctx), void *ctx)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct nlmsgerr *e = NLMSG_DATA(h);
	struct nl_neighbour n;

	if (h->nlmsg_type == NLMSG_DONE)
		return 1;
	if (h->nlmsg_type == NLMSG_ERROR)
		return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error >= 0 ? -EBADMSG
										: e->error;
	if (h->nlmsg_type != RTM_NEWNEIGH || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) ||
	    m->ndm_ifindex != ifindex || m->ndm_state & NUD_NOARP ||
	    (m->ndm_family != AF_INET && m->ndm_family != AF_INET6) || !read_ip(h, &n))
		return 0;
	n.known = m->ndm_state & NUD_HAS_MAC;
	fn(&n, ctx);
	return 0;
}

int nl_neigh_each(struct nl *nl, int ifindex, void (*fn)(const struct nl_neighbour *n, void *ctx),
		  void *ctx)
{
	struct {
		struct nlmsghdr h;
		struct ndmsg m;
	} r = { .h = { .nlmsg_len = sizeof(r),
		       .nlmsg_type = RTM_GETNEIGH,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		       .nlmsg_seq = ++nl->seq } };
	char buf[ANSWER_ROOM] __attribute__((aligned(8)));

	if (send(nl->fd, &r, sizeof(r), 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), MSG_TRUNC);
		struct nlmsghdr *h = (void *)buf;
		int len, rc;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n > (ssize_t)sizeof(buf))
			return -EMSGSIZE;
		for (len = (int)n; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_seq != nl->seq)
				continue;
			rc = read_one(h, ifindex, fn, ctx);
			if (rc)
				return rc < 0 ? rc : 0;
		}
	}
}
