/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Watching a node's interfaces while its daemon runs; link_watch.c says what follows from changes.
 */
#ifndef BARLINE_LINK_WATCH_H
#define BARLINE_LINK_WATCH_H

#include "base/log.h"

struct bl_node;

/** bl_links_watch - begins to watch. In the node's network namespace. Returns 0 or -errno. */
int bl_links_watch(struct bl_node *n, struct bl_err *err);
void bl_links_unwatch(struct bl_node *n);

#endif
