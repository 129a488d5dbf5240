/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changing the admission of a running node: `barline admission set`. */
#ifndef BARLINE_ADMISSION_SET_H
#define BARLINE_ADMISSION_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/top_host_abi.h"

struct bl_node_ref;

/** struct bl_admission_set - what is to change; -1: unchanged. See struct bl_admission_cfg. */
struct bl_admission_set {
	int policy, allocator;
	int64_t rate_bps, k, t_slots, t_us, recent_us, retry_us, coming_us, late_us, refuse_us,
		far_us, lapse_us, outside_percent, data_first, unscheduled, token_frames,
		expiry_tokens, spray;
	int tokens;                   /* enum bl_token_mode */
	uint32_t top[BL_TOP_O_COUNT]; /* of a host: value + 1; 0: unchanged */
	bool check;                   /* only say whether it can be done; nothing is changed */
};
#define BL_ADMISSION_SAME                                                                       \
	{                                                                                       \
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, \
		{                                                                               \
			0                                                                       \
		}                                                                               \
	}

/**
 * bl_admission_change - writes the change to the node's pinned maps.
 * @said: what is different now, for people.
 * Returns 0, or -errno: nothing was changed.
 */
int bl_admission_change(const struct bl_node_ref *ref, const struct bl_admission_set *c, char *said,
			size_t size, struct bl_err *err);

#endif
