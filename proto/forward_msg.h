/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A forwarded frame as agents and controller send it (proto/ctl.proto). Both read it by this. */
#ifndef BARLINE_FORWARD_MSG_H
#define BARLINE_FORWARD_MSG_H

#include <string.h>

#include "proto/ctl.pb-c.h"
#include "loader/order/forward.h"

/** bl_forward_read - @f points into @m. False: it is no frame that is forwarded. */
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
