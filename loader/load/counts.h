/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The map "counts" read and cleared from user space; counts.c has an example. */
#ifndef BARLINE_COUNTS_H
#define BARLINE_COUNTS_H

#include <stdint.h>

#include "maps/reasons_abi.h"

/**
 * struct bl_counts - frames and their bytes by reason, of one place of a node (a port of a switch,
 * a hook of a host), summed over the CPUs.
 */
struct bl_counts {
	uint64_t n[BL_REASON_MAX]; /* by enum bl_reason */
	/*
	 * Bytes from the Ethernet header on, without FCS. 0 for reasons of kind NOTE, which are no
	 * end of a frame.
	 */
	uint64_t bytes[BL_REASON_MAX];
};

/**
 * bl_counts_read - reads @out[0] to @out[@keys - 1] from the map "counts" of either role. Returns 0
 * or -errno.
 */
int bl_counts_read(int fd, struct bl_counts *out, uint32_t keys);

/** bl_counts_forget - sets all counters of place @key to 0. Returns 0 or -errno. */
int bl_counts_forget(int fd, uint32_t key);

#endif
