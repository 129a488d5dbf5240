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

const char *node_check_name(enum node_check check)
{
#define NAME(name, word, text) [CHECK_##name] = word,
	static const char *const names[] = { NODE_CHECKS(NAME) };
#undef NAME

	return check < NODE_CHECKS_NUMBER ? names[check] : "other";
}

static void pass(const struct finder *to, struct finding *f, const char *what, const char *cure,
		 const char *fmt, va_list ap)
{
	snprintf(f->what, sizeof(f->what), "%s", what);
	snprintf(f->cure, sizeof(f->cure), "%s", f->level == FOUND_OK ? "" : cure);
	vsnprintf(f->cause, sizeof(f->cause), fmt, ap);
	to->fn(to->ctx, f);
}

void found(const struct finder *to, enum finding_level level, const char *what, const char *cure,
	   const char *fmt, ...)
{
	struct finding f = { .level = level, .check = CHECK_OTHER };
	va_list ap;

	va_start(ap, fmt);
	pass(to, &f, what, cure, fmt, ap);
	va_end(ap);
}

void found_as(const struct finder *to, enum node_check check, const char *word,
	      enum finding_level level, const char *what, const char *cure, const char *fmt, ...)
{
	struct finding f = { .level = level, .check = check };
	va_list ap;

	snprintf(f.word, sizeof(f.word), "%s", word);
	va_start(ap, fmt);
	pass(to, &f, what, cure, fmt, ap);
	va_end(ap);
}
