/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The UDP socket of an endpoint, which the daemon makes and passes to the process. */
#ifndef BARLINE_ENDPOINT_SOCKET_H
#define BARLINE_ENDPOINT_SOCKET_H

#include <stdint.h>

#include "base/log.h"

/**
 * bl_endpoint_socket - make a UDP socket of the calling thread's network namespace, bound to @addr
 * (IPv6 or IPv4-mapped) and @port.
 * @cookie: set to its SO_COOKIE, never 0; the host's programs accept frames of that socket alone.
 * Returns the descriptor or -errno; -EADDRINUSE: a process that is not an endpoint has the port.
 */
int bl_endpoint_socket(const uint8_t addr[16], uint16_t port, uint64_t *cookie, struct bl_err *err);

#endif
