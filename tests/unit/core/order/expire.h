/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Excluding silent lanes only, for tests whose inputs never lag. */
#ifndef BARLINE_TEST_EXPIRE_H
#define BARLINE_TEST_EXPIRE_H

#include "core/order/barrier_core.h"

/* Excludes the lanes of @p that were last heard before watch time @silent. */
static inline __u32 expire_silent(struct bl_port_regs *p, __u64 silent, struct bl_life *life,
				  struct bl_pair *leaf)
{
	const struct bl_expiry e = { .watch = silent, .silent = silent };

	return bl_port_expire(p, &e, life, leaf);
}

#endif
