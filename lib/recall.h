/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recall and Callback (1Pipe 5.2): taking scatterings back, and telling the application. */
#ifndef BARLINE_LIB_RECALL_H
#define BARLINE_LIB_RECALL_H

#include "internal.h"

/**
 * bl_recall_work - handle announcements as far as possible without waiting.
 * @last: bl_failures_last().
 */
void bl_recall_work(struct bl_endpoint *ep, uint64_t last);

/** bl_recall_answer - handle a RECALLED. @body: @len bytes behind struct bl_hdr, unchecked. */
void bl_recall_answer(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		      uint32_t len);

/** bl_recall_free - free the list of recalls. */
void bl_recall_free(struct bl_endpoint *ep);

#endif
