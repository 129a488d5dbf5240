/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clocks, read in nanoseconds. */
#ifndef BARLINE_BASE_TIME_H
#define BARLINE_BASE_TIME_H

#include <stdint.h>
#include <time.h>

#define BL_NS_PER_S 1000000000ULL

/** bl_clock_ns - Reading of clock @id (CLOCK_MONOTONIC, CLOCK_TAI, ...) in ns. */
static inline uint64_t bl_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * BL_NS_PER_S + (uint64_t)t.tv_nsec;
}

/** bl_mono_ns - Reading of CLOCK_MONOTONIC in ns. */
static inline uint64_t bl_mono_ns(void)
{
	return bl_clock_ns(CLOCK_MONOTONIC);
}

#endif
