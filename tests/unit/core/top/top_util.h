/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Settings and flows of TOP, for test_top_core.c and test_top_tx_core.c. */
#ifndef BARLINE_UNIT_TOP_UTIL_H
#define BARLINE_UNIT_TOP_UTIL_H

#include "tests/unit/unit.h"

#include "core/top/top_core.h"
#include "core/top/top_rx_core.h"
#include "core/top/top_tx_core.h"

#define SLOT 1298u
#define ONE  ((double)BL_TOP_ONE)
#define MS   1000000ULL

static struct bl_top_cfg cfg;

static inline int setup(void **state)
{
	(void)state;
	cfg = (struct bl_top_cfg){ .law = BL_TOP_LAW_NS2,
				   .levels = 6,
				   .slot_ns = SLOT,
				   .alpha = BL_TOP_ONE / 2,
				   .w_init = BL_TOP_ONE / 16,
				   .w_min = BL_TOP_ONE / 100,
				   .w_max = BL_TOP_ONE / 2,
				   .ramp = BL_TOP_SHORT_RAMP,
				   .jitter = BL_TOP_ONE / 10,
				   .limit = { 5, 22, 100, 465, 2155 },
				   .expiry_ns = 26000,
				   .sync_ns = 2 * MS,
				   .idle_ns = 100 * MS,
				   .dead_ns = 50 * MS };
	return 0;
}

static inline struct bl_top_rx flow_in(uint32_t bytes)
{
	const struct bl_top_msg m = {
		.op = BL_TOP_SYNC, .seq = 1, .tag = 7, .bytes = bytes, .frames = 3
	};
	struct bl_top_rx r = { 0 };

	bl_top_rx_begin(&r, &cfg, &m, BL_TOP_WAS_FREE, MS);
	return r;
}

static inline struct bl_top_tx flow_out(uint64_t bytes)
{
	const struct bl_top_key key = { .sport = 1, .dport = 2, .proto = 6 };
	const struct bl_top_hint hint = { .bytes = bytes, .deadline_us = 8, .coflow = 9 };
	struct bl_top_tx t;

	memset(&t, 0xff, sizeof(t));
	bl_top_tx_begin(&t, &cfg, &key, &hint, 0x1234, MS);
	return t;
}

#endif
