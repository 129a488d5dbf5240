/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The links of a node and the clocks behind them; link_check.c says how they are judged. */
#ifndef BARLINE_LOADER_LINK_CHECK_H
#define BARLINE_LOADER_LINK_CHECK_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "base/log.h"

struct bl_node;

/**
 * bl_link_new - begins the count of port @port in the map "link_seen" (@fd) under a new number, and
 * forgets what was seen there. Returns 0 or -errno.
 */
int bl_link_new(int fd, uint32_t port, struct bl_err *err);

/**
 * bl_link_check - judges the links of the node from now on, four times per second. Returns 0 or
 * -errno.
 */
int bl_link_check(struct bl_node *n, const struct bpf_object *obj, struct bl_err *err);

/** bl_link_check_close - ends bl_link_check(). No-op without it. */
void bl_link_check_close(struct bl_node *n);

#endif
