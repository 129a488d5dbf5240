/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a controller says about itself: one JSON object, of which `barline controller show`,
 * `show failures` and `show epochs` each print a part.
 */
#ifndef BARLINE_CONTROLLER_STATUS_H
#define BARLINE_CONTROLLER_STATUS_H

struct bl_ctl;

/**
 * bl_ctl_text - Returns the JSON object as text, in memory from malloc(); NULL: out of memory. Any
 * thread may call it while bl_ctl_run() runs, but not one that holds the controller's lock.
 */
char *bl_ctl_text(struct bl_ctl *c);

#endif
