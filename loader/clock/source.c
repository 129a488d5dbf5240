// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See source.h. */
#include <stddef.h>
#include <stdint.h>

#include "loader/clock/source.h"

const struct bl_clock_source *bl_clock_source(uint32_t kind)
{
	switch (kind) {
	case BL_CLOCK_KERNEL:
		return &bl_clock_kernel;
	case BL_CLOCK_PTP4L:
		return &bl_clock_ptp4l;
	case BL_CLOCK_CLOCKBOUND:
		return &bl_clock_clockbound;
	default:
		return NULL;
	}
}
