/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends that their process does not finish (send_limit_ms); void.c. */
#ifndef BARLINE_LOADER_VOID_H
#define BARLINE_LOADER_VOID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bl_node;

/** bl_voids_open - watch the sends of this host's endpoints. Returns 0 or -errno. */
int bl_voids_open(struct bl_node *n, struct bl_err *err);
/**
 * bl_voids_change - has the limit follow n->cfg, from the next sample on. No-op for a node without
 * a limit.
 */
void bl_voids_change(struct bl_node *n);

void bl_voids_close(struct bl_node *n);

/** bl_void_send - whether a send that is in flight with @ts in the line of @slot is void. */
bool bl_void_send(const struct bl_node *n, unsigned int slot, uint64_t ts);

#endif
