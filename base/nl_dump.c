// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nl_dump.h. */
#include "base/nl_dump.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_ROOM 65536

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

int nl_ask(struct nl *nl, struct nlmsghdr *h,
	   int (*read)(const void *buf, size_t len, uint32_t seq, void *ctx), void *ctx)
{
	char buf[ANSWER_ROOM] __attribute__((aligned(8)));

	h->nlmsg_seq = ++nl->seq;
	if (send(nl->fd, h, h->nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), MSG_TRUNC);
		int rc;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n > (ssize_t)sizeof(buf))
			return -EMSGSIZE;
		rc = read(buf, (size_t)n, nl->seq, ctx);
		if (rc)
			return rc < 0 ? rc : 0;
	}
}

/* What an NLMSG_ERROR says, as -errno. In a dump, one without an error is malformed. */
static int refusal(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error >= 0 ? -EBADMSG : e->error;
}

int nl_messages(const void *buf, size_t len, uint32_t seq, nl_message_fn fn, void *ctx)
{
	const char *at = buf;

	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *h = (const void *)at;
		size_t step = NLMSG_ALIGN((size_t)h->nlmsg_len);
		int rc = 0;

		if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > len)
			return -EBADMSG;
		if (h->nlmsg_seq == seq)
			rc = h->nlmsg_type == NLMSG_ERROR ? refusal(h) : fn(h, ctx);
		if (!rc && h->nlmsg_seq == seq && h->nlmsg_type == NLMSG_DONE)
			rc = 1;
		if (rc)
			return rc;
		/* The last message need not be padded. */
		step = step > len ? len : step;
		at += step;
		len -= step;
	}
	return 0;
}

/** struct dump - argument of read_dump(). */
struct dump {
	uint16_t want;
	size_t body;
	void (*fn)(struct nlmsghdr *h, void *ctx);
	void *ctx;
	bool torn; /* the tables changed meanwhile */
};

static int take_dump(const struct nlmsghdr *h, void *ctx)
{
	struct dump *d = ctx;

	d->torn |= !!(h->nlmsg_flags & NLM_F_DUMP_INTR);
	if (h->nlmsg_type == NLMSG_DONE)
		return d->torn ? -EINTR : 0;
	if (h->nlmsg_type == d->want && h->nlmsg_len >= NLMSG_LENGTH(d->body))
		d->fn((struct nlmsghdr *)h, d->ctx);
	return 0;
}

static int read_dump(const void *buf, size_t len, uint32_t seq, void *ctx)
{
	return nl_messages(buf, len, seq, take_dump, ctx);
}

int nl_dump(struct nl *nl, uint16_t ask, uint8_t family, uint16_t want, size_t body,
	    void (*fn)(struct nlmsghdr *h, void *ctx), void *ctx)
{
	struct dump_request r = { .h = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(fixed_part(ask)),
					 .nlmsg_type = ask,
					 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	struct dump d = { .want = want, .body = body, .fn = fn, .ctx = ctx };

	r.body.family = family;
	return nl_ask(nl, &r.h, read_dump, &d);
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
