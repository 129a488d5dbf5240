/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the next swaps of the token core fail, as if another CPU had been first. The test includes
 * this header before core/top/top_token_core.h.
 */
#ifndef BARLINE_TESTS_LOST_SWAPS_H
#define BARLINE_TESTS_LOST_SWAPS_H

#include <stdint.h>

/* Number of the next swaps that fail. The other CPU changes nothing else. */
static int swaps_lost;
static uint64_t swap(uint64_t *p, uint64_t was, uint64_t now)
{
	if (swaps_lost > 0) {
		swaps_lost--;
		return was + 1;
	}
	return __sync_val_compare_and_swap(p, was, now);
}
#define BL_TOKEN_SWAP(p, was, now) swap((uint64_t *)(p), was, now)

#endif
