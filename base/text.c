// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void bl_text_add(struct bl_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->used >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
	t->used += n > 0 ? (size_t)n : 0;
}
