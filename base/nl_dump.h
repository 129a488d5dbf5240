/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to netlink, and dumps: everything that the kernel has of one kind. */
#ifndef BARLINE_BASE_NL_DUMP_H
#define BARLINE_BASE_NL_DUMP_H

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nl.h"

/**
 * nl_ask - sends request @h, whose sequence number is set here, and reads the answer.
 * @read: gets each part of it, @len bytes of which nothing is believed. Returns 0: there is more;
 *	1: this was the end; or -errno, which ends it.
 *
 * Returns 0 or -errno; -EMSGSIZE: a part is larger than the 64 KiB that there is room for.
 */
int nl_ask(struct nl *nl, struct nlmsghdr *h,
	   int (*read)(const void *buf, size_t len, uint32_t seq, void *ctx), void *ctx);

/* One message of an answer, and whole. Returns 0; 1: the answer ends here; or -errno. */
typedef int (*nl_message_fn)(const struct nlmsghdr *h, void *ctx);

/**
 * nl_messages - calls @fn for each message with the sequence number @seq in @len bytes of an
 * answer, of which nothing is believed: also for the one that ends a dump, and not for errors.
 *
 * Returns 1 at the end of the answer, 0 if there may be more to come, or -errno: what @fn returns
 * or what an error says; -EBADMSG: the answer is malformed.
 */
int nl_messages(const void *buf, size_t len, uint32_t seq, nl_message_fn fn, void *ctx);

/**
 * nl_dump - asks for a dump and calls @fn for each message of type @want.
 * @ask: RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE or RTM_GETNEIGH; or, on a socket of netfilter, a
 *	subsystem in the upper byte and its message
 * @family: AF_UNSPEC: all; AF_BRIDGE with RTM_GETNEIGH: forwarding tables of bridges
 * @body: least length of the body of a message, in bytes; shorter messages are left out
 *
 * Returns 0, or -errno; -EINTR: the kernel's tables changed meanwhile, so the dump may be
 * incomplete.
 */
int nl_dump(struct nl *nl, uint16_t ask, uint8_t family, uint16_t want, size_t body,
	    void (*fn)(struct nlmsghdr *h, void *ctx), void *ctx);

/**
 * nl_attr - finds attribute @type behind the @body bytes of the fixed part of @h.
 * Returns NULL if there is none, or if it has less than @least bytes.
 */
const struct rtattr *nl_attr(const struct nlmsghdr *h, size_t body, uint16_t type, size_t least);

/** nl_attr_in - the same among the attributes that are inside @nest. */
const struct rtattr *nl_attr_in(const struct rtattr *nest, uint16_t type, size_t least);

/** nl_attr_u32 - value of an attribute of four bytes, or @none if there is no such attribute. */
uint32_t nl_attr_u32(const struct nlmsghdr *h, size_t body, uint16_t type, uint32_t none);

#endif
