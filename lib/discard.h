/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Discard (1Pipe 5.2): what an announcement of a failure changes at once. */
#ifndef BARLINE_LIB_DISCARD_H
#define BARLINE_LIB_DISCARD_H

#include "internal.h"

/**
 * bl_discard_news - read the announcements that are new, drop what they discard, and stop sending
 * to the failed processes. bl_recall_work() does the rest. Called before the first frame of a
 * process is accepted: announcements until then are about its predecessors.
 * @p: NULL or a peer. Returns whether a new announcement is about @p.
 */
bool bl_discard_news(struct bl_endpoint *ep, const struct bl_peer *p);

#endif
