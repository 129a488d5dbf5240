/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the doctor finds: one line per requirement.
 */
#ifndef BARLINE_CLI_DOCTOR_H
#define BARLINE_CLI_DOCTOR_H

enum finding_level { FOUND_OK, FOUND_WARN, FOUND_FAIL };

/** struct finding - @cause: what was seen. @cure: what to do; "" if there is nothing to do. */
struct finding {
	enum finding_level level;
	char what[40];
	char cause[300];
	char cure[240];
};

/**
 * found - where a finding goes: to the list in the parent, through a pipe from the child. @fmt
 * makes the cause.
 */
typedef void (*found_fn)(void *ctx, const struct finding *f);
struct finder {
	found_fn fn;
	void *ctx;
};
void found(const struct finder *to, enum finding_level level, const char *what, const char *cure,
	   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/**
 * doctor_try - does what barline does, in namespaces made for it. Call in a child: it does not
 * come back out of them.
 */
void doctor_try(const struct finder *to);

#endif
