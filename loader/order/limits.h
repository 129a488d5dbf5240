/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The limit on how long a process may hold others up (process_limit_ms); limits.c. */
#ifndef BARLINE_LIMITS_H
#define BARLINE_LIMITS_H

#include "base/log.h"

struct bl_node;

/** bl_limits_open - samples the host's endpoints from now on. Returns 0 or -errno. */
int bl_limits_open(struct bl_node *n, struct bl_err *err);
/** bl_limits_change - has the limits follow n->cfg, from the next sample on. */
void bl_limits_change(struct bl_node *n);

void bl_limits_close(struct bl_node *n);

#endif
