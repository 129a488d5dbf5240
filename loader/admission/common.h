/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What admission's files share: bounds, times made from rates, the sentence of a change. Nothing
 * here knows a policy.
 */
#ifndef BARLINE_ADMISSION_COMMON_H
#define BARLINE_ADMISSION_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/rate.h"
#include "loader/admission/admission.h"
#include "loader/admission/options.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_cfg.h"
#include "maps/pl2_switch_abi.h"

/** bl_admission_rate - refuses a rate that a meter cannot keep; 0 is no rate and no error. */
int bl_admission_rate(uint64_t bps, const char *of, struct bl_err *err);

/** bl_slot_ns - time of a full frame, for a link that takes @ns_q20 >> 20 ns per byte. */
static inline uint64_t bl_slot_ns(uint32_t ns_q20)
{
	return (uint64_t)ns_q20 * BL_RSV_SLOT_BYTES >> 20;
}

/** bl_share_q20 - time per byte when @outside_percent of the port is kept for others. */
static inline uint32_t bl_share_q20(uint32_t ns_q20, uint32_t outside_percent)
{
	uint64_t v = (uint64_t)ns_q20 * 100 / (100 - outside_percent);

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/** bl_us_or - @us in ns; 0: @ns. */
static inline uint64_t bl_us_or(uint32_t us, uint64_t ns)
{
	return us ? us * 1000ULL : ns;
}

/** bl_follow - a time that is the old default becomes the new one; a time that was given stays. */
static inline void bl_follow(__u64 *ns, uint64_t old_default, uint64_t new_default)
{
	if (*ns == old_default)
		*ns = new_default;
}

/**
 * bl_value_read - value 0 of a pinned map of the node. Returns a descriptor of the map, which the
 * caller closes, or -errno with @err.
 */
int bl_value_read(const struct bl_node_ref *ref, const char *map, void *value, uint32_t size,
		  bool write, struct bl_err *err);

/** struct bl_said - what a change says: "rate: 1gbit -> 2gbit, k: 4 -> 8". @text: @size bytes. */
struct bl_said {
	char *text;
	size_t size;
};
void bl_say(const struct bl_said *s, const char *what, const char *old, const char *now);
/* these say nothing if both values are the same */
void bl_say_number(const struct bl_said *s, const char *what, uint64_t old, uint64_t now,
		   const char *unit);
void bl_say_truth(const struct bl_said *s, const char *what, bool old, bool now);
void bl_say_rate(const struct bl_said *s, const char *what, uint32_t old_q20, uint32_t now_q20);

/**
 * bl_set_number, bl_set_time - the value of option @id, if @set gives it, into *@to; a time in ns.
 * A value out of the option's range is refused. Return 0 or -EINVAL.
 */
int bl_set_number(const struct bl_admission_set *set, enum bl_option_id id, __u32 *to,
		  struct bl_err *err);
int bl_set_time(const struct bl_admission_set *set, enum bl_option_id id, __u64 *to,
		struct bl_err *err);

#endif
