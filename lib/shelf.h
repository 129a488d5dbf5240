/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages that the helper thread has delivered in the application's place. */
#ifndef BARLINE_LIB_SHELF_H
#define BARLINE_LIB_SHELF_H

#include "internal.h"

/** bl_shelf_fill - move deliverable messages to the shelves, as far as the limit allows. */
void bl_shelf_fill(struct bl_endpoint *ep);

/** bl_shelf_take - hand out up to @max messages of a shelf, in order. Returns the count. */
size_t bl_shelf_take(struct bl_endpoint *ep, bool reliable, struct bl_delivery *out, size_t max);

/** bl_shelf_count - messages on a shelf; 0 if the first one may not be delivered yet. */
uint32_t bl_shelf_count(const struct bl_endpoint *ep, bool reliable);

/** bl_shelf_full - whether the helper has taken out as much as it may. */
bool bl_shelf_full(const struct bl_endpoint *ep);

/** bl_shelf_free - free both shelves. */
void bl_shelf_free(struct bl_endpoint *ep);

#endif
