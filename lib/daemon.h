/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket of the host's daemon, for those who ask it for one map and are no endpoints. */
#ifndef BARLINE_LIB_DAEMON_H
#define BARLINE_LIB_DAEMON_H

#include <stddef.h>
#include <stdint.h>

/**
 * bl_daemon_path - the socket of the host daemon of this thread's network namespace.
 * Returns 0, or -errno if /proc does not say which namespace that is.
 */
int bl_daemon_path(char *out, size_t size);

/**
 * bl_daemon_map - ask the daemon at @path for a map, and wait up to BL_DAEMON_WAIT_S for it.
 * @magic: BL_SOCK_HINTS or BL_SOCK_CLOCK.
 * Returns a file descriptor of the map, or -ENOENT (no daemon), -ETIMEDOUT (it does not answer),
 * -EPROTO (a daemon of another version), or another -errno.
 */
int bl_daemon_map(const char *path, uint32_t magic);

#endif
