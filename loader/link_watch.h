/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Watching a node's interfaces while its daemon runs; link_watch.c says what follows from changes.
 */
#ifndef BARLINE_LINK_WATCH_H
#define BARLINE_LINK_WATCH_H

#include "base/log.h"

struct bl_attached;
struct bl_iface;
struct bl_node;

/** bl_links_watch - begins to watch. In the node's network namespace. Returns 0 or -errno. */
int bl_links_watch(struct bl_node *n, struct bl_err *err);
void bl_links_unwatch(struct bl_node *n);

/**
 * bl_link_attach - makes @now the interface of @a and attaches the programs to it, in place of the
 * interface that @a had (index 0: none). The egress program comes first: no frame may leave past
 * the program that promises barriers. In the node's network namespace. Returns 0 or -errno.
 */
int bl_link_attach(struct bl_node *n, struct bl_attached *a, const struct bl_iface *now,
		   struct bl_err *err);

/** bl_link_pin_napi - threads the NAPI of @a's interface anew, as the configuration says. */
void bl_link_pin_napi(struct bl_node *n, struct bl_attached *a);

#endif
