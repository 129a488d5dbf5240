/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The helper thread's turn: what it does for an application that does not call the library. */
#ifndef BARLINE_LIB_AWAY_H
#define BARLINE_LIB_AWAY_H

#include "internal.h"

/** bl_away_due - whether something is due that the application does not do. */
bool bl_away_due(const struct bl_endpoint *ep);

/**
 * bl_away_work - do what is due and arm the wake-up.
 * *@armed becomes true if the wake-up was armed.
 * Returns for how many milliseconds the helper may sleep; -1: until it is woken.
 */
int bl_away_work(struct bl_endpoint *ep, bool *armed);

#endif
