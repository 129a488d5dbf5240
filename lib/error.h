/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Error sentences of an endpoint, and the error of an endpoint that is out. */
#ifndef BARLINE_LIB_ERROR_H
#define BARLINE_LIB_ERROR_H

#include "internal.h"

/**
 * bl_set_error - store the sentence for bl_strerror().
 * @ep: the endpoint; NULL stores the sentence of this thread's bl_init().
 * @errnum: positive errno value.
 * @fmt: printf() format of the sentence; %m is the caller's errno.
 * Returns -@errnum. The helper thread stores nothing: the sentence belongs to the application.
 */
int bl_set_error(struct bl_endpoint *ep, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** bl_clear_init_error - forget the sentence of this thread's previous bl_init(). */
void bl_clear_init_error(void);

/** bl_outcast - store the sentence that says why the endpoint is out. Returns -ESTALE. */
int bl_outcast(struct bl_endpoint *ep);

#endif
