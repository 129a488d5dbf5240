/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's part of `barline host drain` (loader/order/drain.h has the whole of it). */
#ifndef BARLINE_LIB_DRAIN_H
#define BARLINE_LIB_DRAIN_H

#include "internal.h"

/** bl_is_drained - whether the host is drained: nothing new is sent. */
static inline bool bl_is_drained(const struct bl_endpoint *ep)
{
	return __builtin_expect(__atomic_load_n(&ep->page->drained, __ATOMIC_ACQUIRE) != 0, 0);
}

/** bl_drain_refuse - store the sentence about a send on a drained host. Returns -ESHUTDOWN. */
int bl_drain_refuse(struct bl_endpoint *ep);

/** bl_drain_work - the host is drained: send what is staged, and say when nothing is open. */
void bl_drain_work(struct bl_endpoint *ep);

#endif
