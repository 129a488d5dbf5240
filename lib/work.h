/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is due for an endpoint, in the order that its promises need. */
#ifndef BARLINE_LIB_WORK_H
#define BARLINE_LIB_WORK_H

#include "internal.h"

/**
 * bl_work - take in frames, credits and failures, run timers and callbacks, and send what windows
 * allow. Everything but delivery. Does not sleep.
 */
void bl_work(struct bl_endpoint *ep);

/** bl_work_reliable - the part of bl_work() for the reliable stream: timers, WINDOWs, flush. */
void bl_work_reliable(struct bl_endpoint *ep);

#endif
