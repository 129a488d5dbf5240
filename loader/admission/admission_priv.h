/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What admission.c and admission_set.c share: bounds, and time made from rates. */
#ifndef BARLINE_ADMISSION_PRIV_H
#define BARLINE_ADMISSION_PRIV_H

#include <stdint.h>

#include "base/log.h"
#include "base/rate.h"
#include "maps/pl2_switch_abi.h"

#define BL_T_SLOTS     15 /* PL2, D.4 */
#define BL_OUTSIDE_MAX 90
#define BL_TIME_MAX_US 10000000

/** bl_admission_rate - refuses what a meter cannot tell; 0 is no rate and no error. */
int bl_admission_rate(uint64_t bps, const char *of, struct bl_err *err);

static inline uint64_t bl_slot_ns(uint32_t ns_q20)
{
	return (uint64_t)ns_q20 * BL_RSV_SLOT_BYTES >> 20;
}

/** bl_share_q20 - time per byte when that much of the port is kept for others. */
static inline uint32_t bl_share_q20(uint32_t ns_q20, uint32_t outside_percent)
{
	uint64_t v = (uint64_t)ns_q20 * 100 / (100 - outside_percent);

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

#endif
