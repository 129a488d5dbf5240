/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network namespaces of the calling thread.
 */
#ifndef BARLINE_BASE_NETNS_H
#define BARLINE_BASE_NETNS_H

#include <stdint.h>

#include "base/log.h"

/**
 * bl_netns_enter - Move the calling thread into a network namespace.
 * @netns: a path, or a name of ip-netns(8).
 * @old: receives a descriptor for bl_netns_leave().
 *
 * Returns 0 or -errno with a sentence in @err.
 */
int bl_netns_enter(const char *netns, int *old, struct bl_err *err);

/** bl_netns_leave - Return to the namespace that bl_netns_enter() left, and close @old. */
void bl_netns_leave(int old);

/**
 * bl_netns_find - Find the network namespace with inode number @ino among those that are mounted,
 * as those of ip-netns(8), and those of processes. Returns a descriptor, or -ENOENT: it is gone, or
 * only a descriptor or a mount in another mount namespace keeps it.
 */
int bl_netns_find(uint64_t ino);

/** bl_netns_ino - Inode number of the calling thread's network namespace. */
uint64_t bl_netns_ino(void);

#endif
