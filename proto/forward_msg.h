/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A forwarded frame as agents and the controller send it (proto/ctl.proto); both parse it by this
 * file.
 */
#ifndef BARLINE_FORWARD_MSG_H
#define BARLINE_FORWARD_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/ctl.pb-c.h"
#include "core/wire_core.h"
#include "maps/forward_abi.h"

/**
 * struct bl_forward - a frame on its way from @from:@sport to @to:@port. Addresses are IPv6 or
 * IPv4-mapped.
 */
struct bl_forward {
	uint8_t to[16], from[16];
	uint16_t port, sport;
	const uint8_t *frame; /* UDP payload, @len bytes */
	size_t len;
};

static inline unsigned int bl_forward_op(const struct bl_forward *f)
{
	return f->frame[offsetof(struct bl_hdr, opcode)] & 0x1f;
}

/**
 * bl_forward_fits - returns whether it can be a forwarded frame at all. Both ends check that before
 * they read any further.
 */
static inline bool bl_forward_fits(const struct bl_forward *f)
{
	return f->port && f->sport && f->len >= sizeof(struct bl_hdr) && f->len <= BL_FORWARD_MAX &&
	       f->frame[offsetof(struct bl_hdr, opcode)] >> 5 == BL_VERSION &&
	       bl_op_relayed(bl_forward_op(f));
}

/**
 * bl_forward_read - parses @m; @f points into it. Returns false if that is no frame to be
 * forwarded.
 */
static inline bool bl_forward_read(const Bl__Forward *m, struct bl_forward *f)
{
	if (m->to.len != sizeof(f->to) || m->from.len != sizeof(f->from) || m->port > UINT16_MAX ||
	    m->sport > UINT16_MAX)
		return false;
	*f = (struct bl_forward){ .port = (uint16_t)m->port,
				  .sport = (uint16_t)m->sport,
				  .frame = m->frame.data,
				  .len = m->frame.len };
	memcpy(f->to, m->to.data, sizeof(f->to));
	memcpy(f->from, m->from.data, sizeof(f->from));
	return bl_forward_fits(f);
}

#endif
