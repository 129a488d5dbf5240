/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The TAI offset with which received beacons are compared. */
#ifndef BARLINE_LOADER_TAI_H
#define BARLINE_LOADER_TAI_H

struct bl_node;

/**
 * bl_tai_follow - tell the programs of @n the TAI offset of the clock record, if it has changed.
 * Called by the event loop now and then; an error is logged, and the next call tries again.
 */
void bl_tai_follow(struct bl_node *n);

#endif
