/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Building a request of rtnetlink, and sending it on a socket of nl.h: nl_begin(), then the
 * attributes, then nl_send().
 */
#ifndef BARLINE_BASE_NL_MSG_H
#define BARLINE_BASE_NL_MSG_H

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nl.h"

#define NL_REQ_ROOM 4096

/** union nl_req - a request with room for its attributes. */
union nl_req {
	struct nlmsghdr h;
	char room[NL_REQ_ROOM];
};

/** nl_begin - an empty request. Returns its body of @body bytes, which is zero. */
void *nl_begin(union nl_req *r, uint16_t type, uint16_t flags, size_t body);

/** nl_put - appends an attribute. Returns it; nl_put_end() ends one that has attributes in it. */
struct rtattr *nl_put(union nl_req *r, uint16_t type, const void *data, size_t len);
void nl_put_u32(union nl_req *r, uint16_t type, uint32_t v);
void nl_put_end(union nl_req *r, struct rtattr *a);

/** nl_send - sends the request and waits for its acknowledgement. Returns 0 or -errno. */
int nl_send(struct nl *nl, union nl_req *r);

#endif
