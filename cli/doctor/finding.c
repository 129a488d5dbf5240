/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See finding.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor/finding.h"

const char *finding_level_name(enum finding_level level)
{
	static const char *const names[] = {
		[FOUND_OK] = "ok", [FOUND_WARN] = "warn", [FOUND_FAIL] = "FAIL"
	};

	return names[level];
}

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
