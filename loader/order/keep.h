/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper of a node: the process that writes its clock record and, for a host, sends its
 * beacons. keep.c says how a daemon becomes the keeper, loader/caretaker.c who stands in for a
 * daemon that was stopped.
 */
#ifndef BARLINE_KEEP_H
#define BARLINE_KEEP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/log.h"
#include "maps/meta_abi.h"

struct bl_node;

/** bl_keep_lock_path - path of the lock that the keeper of a node holds. @ino: of its netns. */
void bl_keep_lock_path(char *buf, size_t size, enum bl_role role, uint64_t ino);

/** bl_keep_socket_addr - address of the socket at which a caretaker is told to end. */
void bl_keep_socket_addr(struct sockaddr_un *a, enum bl_role role, uint64_t ino);

/** bl_keep_spare_addr - the same of a spare, which has not taken over. */
void bl_keep_spare_addr(struct sockaddr_un *a, enum bl_role role, uint64_t ino);

/**
 * bl_keep_configure - sets the configuration of n->clock from n->cfg, n->meta.name and
 * n->netns_ino, which are set before.
 */
void bl_keep_configure(struct bl_node *n);

/**
 * bl_keep_change - has the bounds of the clock follow n->cfg, from the next update of its record
 * on, which is at once. Its source stays.
 */
void bl_keep_change(struct bl_node *n);

/**
 * bl_keep_clock - maps the clock record; if this process is the keeper, adopts it and lets the
 * beacon thread update it. Returns 0 or -errno.
 */
int bl_keep_clock(struct bl_node *n, int map_fd, struct bl_err *err);

/**
 * bl_keep_early - the first step of a start: becomes the keeper if there is none, so that clock and
 * beacons go on while programs are loaded. What fails here is tried again later, except for a fresh
 * node. Returns 0 or -errno.
 */
int bl_keep_early(struct bl_node *n, struct bl_err *err);

/** bl_keep_take_over - the last step of a start: ends the caretaker. Returns 0 or -errno. */
int bl_keep_take_over(struct bl_node *n, struct bl_err *err);

/** bl_keep_close - releases the lock. Nothing is written any more by then. */
void bl_keep_close(struct bl_node *n);

/**
 * bl_keep_end - ends the keeper of the node with this role and network namespace. Returns 0, or
 * -EBUSY if it does not end.
 */
int bl_keep_end(enum bl_role role, uint64_t ino, struct bl_err *err);

/** bl_keep_forget - removes the lock's file and the sockets of a node that is gone. */
void bl_keep_forget(enum bl_role role, uint64_t ino);

#endif
