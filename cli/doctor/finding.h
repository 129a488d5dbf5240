/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the doctor finds: one finding per requirement.
 */
#ifndef BARLINE_CLI_DOCTOR_FINDING_H
#define BARLINE_CLI_DOCTOR_FINDING_H

enum finding_level { FOUND_OK, FOUND_WARN, FOUND_FAIL };

/** finding_level_name - "ok", "warn" or "FAIL". */
const char *finding_level_name(enum finding_level level);

/** struct finding - One requirement and whether it is met. Sent through a pipe as it is. */
struct finding {
	enum finding_level level;
	char what[40];   /* the requirement */
	char cause[300]; /* what was observed */
	char cure[240];  /* what to do; "": nothing */
};

/**
 * struct finder - Where findings go: in the parent process to the report, in the child into a pipe
 * to the parent.
 */
struct finder {
	void (*fn)(void *ctx, const struct finding *f);
	void *ctx;
};

/** found - Passes a finding to @to. @fmt makes its cause. @cure is ignored for FOUND_OK. */
void found(const struct finder *to, enum finding_level level, const char *what, const char *cure,
	   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
