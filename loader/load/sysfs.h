/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sysfs of a network namespace. */
#ifndef BARLINE_SYSFS_H
#define BARLINE_SYSFS_H

/**
 * bl_sysfs_open - opens sysfs as this thread's network namespace sees it. Returns a descriptor for
 * openat(), or -1 with errno.
 */
int bl_sysfs_open(void);

/**
 * bl_sysfs_keep - has bl_sysfs_open() return copies of one descriptor from now on, for a process
 * that stays in this network namespace and is about to give up CAP_SYS_ADMIN, which a mount takes.
 */
void bl_sysfs_keep(void);

#endif
