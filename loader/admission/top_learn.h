/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP's thresholds, learnt from the flows that come in; top_learn.c. */
#ifndef BARLINE_TOP_LEARN_H
#define BARLINE_TOP_LEARN_H

#include "base/log.h"

struct bl_node;

/**
 * bl_top_learn_open - a host's daemon learns thresholds from now on. In the node's namespace.
 * Returns 0 or -errno; bl_top_learn_close() cleans up in either case.
 */
int bl_top_learn_open(struct bl_node *n, struct bl_err *err);
void bl_top_learn_close(struct bl_node *n);

#endif
