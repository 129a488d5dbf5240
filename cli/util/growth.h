/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much a counter has grown between two readings. Every command that shows rates or differences
 * computes them here.
 *
 * Example: 700 before and 1000 now have grown by 300; in 500 ms that is 600 per second. 1000 before
 * and 40 now: the counter began anew in between, as when the maps of a node were made anew, and has
 * grown by 40. A growth is never negative.
 */
#ifndef BARLINE_CLI_UTIL_GROWTH_H
#define BARLINE_CLI_UTIL_GROWTH_H

#include <stdint.h>

/** counter_growth - by how much a counter has grown. One that is less than before began at 0. */
static inline uint64_t counter_growth(uint64_t before, uint64_t now)
{
	return now < before ? now : now - before;
}

/** growth_per_s - @growth in @ns nanoseconds as a rate per second; 0 if no time has passed. */
static inline double growth_per_s(uint64_t growth, uint64_t ns)
{
	return ns ? (double)growth * 1e9 / (double)ns : 0;
}

#endif
