/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See finding.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor/finding.h"

void found(const struct finder *to, enum finding_level level, const char *what, const char *cure,
	   const char *fmt, ...)
{
	struct finding f = { .level = level };
	va_list ap;

	snprintf(f.what, sizeof(f.what), "%s", what);
	snprintf(f.cure, sizeof(f.cure), "%s", level == FOUND_OK ? "" : cure);
	va_start(ap, fmt);
	vsnprintf(f.cause, sizeof(f.cause), fmt, ap);
	va_end(ap);
	to->fn(to->ctx, &f);
}
