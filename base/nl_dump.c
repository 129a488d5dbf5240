// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nl_dump.h. */
#include "base/nl_dump.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_ROOM 32768

/*
 * Room for the fixed part of each request; the kernel wants that of the kind that is asked for
 * (strict requests are not used, so that zeros behind a shorter one do no harm).
 */
struct dump_request {
	struct nlmsghdr h;
	union {
		uint8_t family;
		char room[32];
	} body;
};

static size_t fixed_part(uint16_t ask)
{
	if (ask >> 8) /* of a subsystem of netfilter */
		return sizeof(struct nfgenmsg);
	switch (ask) {
	case RTM_GETADDR:
		return sizeof(struct ifaddrmsg);
	case RTM_GETROUTE:
		return sizeof(struct rtmsg);
	case RTM_GETNEIGH:
		return sizeof(struct ndmsg);
	default:
		return sizeof(struct ifinfomsg);
	}
}

static int send_request(struct nl *nl, uint16_t ask, uint8_t family)
{
	struct dump_request r = { .h = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(fixed_part(ask)),
					 .nlmsg_type = ask,
					 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
					 .nlmsg_seq = ++nl->seq } };

	r.body.family = family;
	return send(nl->fd, &r, r.h.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* What an NLMSG_ERROR says, as -errno. In a dump, one without an error is malformed. */
static int refusal(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error >= 0 ? -EBADMSG : e->error;
}

int nl_dump(struct nl *nl, uint16_t ask, uint8_t family, uint16_t want, size_t body,
	    void (*fn)(struct nlmsghdr *h, void *ctx), void *ctx)
{
	char buf[ANSWER_ROOM] __attribute__((aligned(8)));
	int rc = send_request(nl, ask, family);
	bool torn = false;

	if (rc)
		return rc;
	for (;;) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), MSG_TRUNC);
		struct nlmsghdr *h = (void *)buf;
		int len;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n > (ssize_t)sizeof(buf))
			return -EMSGSIZE;
		for (len = (int)n; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_seq != nl->seq)
				continue;
			torn |= !!(h->nlmsg_flags & NLM_F_DUMP_INTR);
			if (h->nlmsg_type == NLMSG_DONE)
				return torn ? -EINTR : 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return refusal(h);
			if (h->nlmsg_type == want && h->nlmsg_len >= NLMSG_LENGTH(body))
				fn(h, ctx);
		}
	}
}

static const struct rtattr *find(const struct rtattr *a, int len, uint16_t type, size_t least)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & ~NLA_F_NESTED) == type)
			return RTA_PAYLOAD(a) < least ? NULL : a;
	return NULL;
}

const struct rtattr *nl_attr(const struct nlmsghdr *h, size_t body, uint16_t type, size_t least)
{
	const char *at = (const char *)NLMSG_DATA(h) + NLMSG_ALIGN(body);

	return find((const void *)at, (int)h->nlmsg_len - (int)NLMSG_SPACE(body), type, least);
}

const struct rtattr *nl_attr_in(const struct rtattr *nest, uint16_t type, size_t least)
{
	return nest ? find(RTA_DATA(nest), (int)RTA_PAYLOAD(nest), type, least) : NULL;
}

uint32_t nl_attr_u32(const struct nlmsghdr *h, size_t body, uint16_t type, uint32_t none)
{
	const struct rtattr *a = nl_attr(h, body, type, sizeof(uint32_t));

	if (a)
		memcpy(&none, RTA_DATA(a), sizeof(none));
	return none;
}
