/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads a PTP hardware clock, /dev/ptpN, together with the system clock. */
#ifndef BARLINE_LOADER_CLOCK_PHC_H
#define BARLINE_LOADER_CLOCK_PHC_H

#include <stddef.h>

#include "core/ptp_core.h"

/** enum bl_phc_way - the ways in which the kernel reads both clocks, the best first. */
enum bl_phc_way {
	BL_PHC_PRECISE,  /* the hardware latches both at once */
	BL_PHC_EXTENDED, /* the system clock is read just before and after */
	BL_PHC_PLAIN,    /* the same around the whole call of the driver */
	BL_PHC_WAYS
};

/** struct bl_phc - an open hardware clock. */
struct bl_phc {
	int fd; /* -1: not open */
	enum bl_phc_way way;
};

/** bl_phc_path - writes the path of the clock of @interface to @buf. Returns 0 or -errno. */
int bl_phc_path(char *buf, size_t size, const char *interface);

/** bl_phc_open - opens the clock at @path. Returns 0 or -errno. */
int bl_phc_open(struct bl_phc *p, const char *path);

/**
 * bl_phc_read - reads both clocks. Takes some microseconds: a hardware clock is across the bus.
 * Returns 0 or -errno.
 */
int bl_phc_read(struct bl_phc *p, struct bl_phc_reading *r);

/** bl_phc_close - closes the clock; no-op if it is not open. */
void bl_phc_close(struct bl_phc *p);

#endif
