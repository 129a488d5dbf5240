/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The links of a node and the clocks behind them; link_check.c says how they are judged. */
#ifndef BARLINE_LOADER_LINK_CHECK_H
#define BARLINE_LOADER_LINK_CHECK_H

#include <stdint.h>

#include "base/log.h"

/**
 * bl_link_new - begins the count of port @port in the map "link_seen" (@fd) under a new number, and
 * forgets what was seen there. Returns 0 or -errno.
 */
int bl_link_new(int fd, uint32_t port, struct bl_err *err);

#endif
