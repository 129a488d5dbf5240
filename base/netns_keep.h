/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network namespaces of a process that is about to give up CAP_SYS_ADMIN, which setns(2) takes.
 *
 * The process moves into one namespace for good. A helper thread stays in the namespace in which
 * the process was started (home) and makes sockets there; another one lives in an empty namespace
 * of its own (scratch) and attaches programs there. Both sleep until they get a request; requests
 * are served one at a time.
 */
#ifndef BARLINE_BASE_NETNS_KEEP_H
#define BARLINE_BASE_NETNS_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/**
 * bl_netns_settle - moves the calling thread into a network namespace for good. To be called once,
 * before the process has other threads.
 * @netns: as in bl_netns_enter(). NULL or "": the present one, and there is no helper at home.
 * @scratch: whether a helper in an empty namespace is needed.
 * Returns 0 or -errno.
 */
int bl_netns_settle(const char *netns, bool scratch, struct bl_err *err);

/**
 * bl_netns_helpers_drop - bl_privileges_drop() in halves for the helpers: @change is called between
 * them and changes the user of all threads.
 * @keep: capabilities of the helper in the empty namespace. The one at home needs none.
 * Returns what @change returned, or -errno.
 */
int bl_netns_helpers_drop(uint64_t keep, int (*change)(void *ctx), void *ctx, struct bl_err *err);

/**
 * bl_home_socket - socket(2) in the namespace in which the process was started. Returns a
 * descriptor, or -1 with errno.
 */
int bl_home_socket(int family, int type, int protocol);

/**
 * bl_scratch_run - has @fn run in the empty namespace. Returns its value; -ENOENT: there is no such
 * namespace.
 */
int bl_scratch_run(int (*fn)(void *ctx), void *ctx);

#endif
