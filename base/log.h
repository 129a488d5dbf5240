/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Errors and the log.
 *
 * An error is a negative errno plus one sentence that names what failed, on what, and the next
 * step: "eth2 already carries another XDP program (id 41); detach it or pass --replace". The
 * sentence travels in a struct bl_err, which the caller provides and prints.
 *
 * The log goes to stderr, or to the journal with its fields where systemd started the process.
 *
 * Thread rules: every function may be called from any thread.
 */
#ifndef BARLINE_BASE_LOG_H
#define BARLINE_BASE_LOG_H

#include <stdbool.h>

/** struct bl_err - what failed, on what, and the next step, in one sentence. */
struct bl_err {
	char text[512];
};

/**
 * bl_fail - Write the sentence into @err, which may be NULL. Returns -@errnum, so that a function
 * can end with `return bl_fail(err, EBUSY, ...)`.
 */
int bl_fail(struct bl_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

enum { BL_LOG_ERR = 3, BL_LOG_WARN = 4, BL_LOG_INFO = 6 }; /* the numbers of syslog(3) */

/** bl_log_level - Messages with a greater number are suppressed; BL_LOG_INFO at first. */
extern int bl_log_level;

/** bl_log - Log one line at @level (BL_LOG_*); no newline at its end. */
void bl_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** struct bl_log_field - a field of a line in the journal; @value NULL or "": it is left out. */
struct bl_log_field {
	const char *name, *value;
};

#define BL_LOG_FIELDS 20
/**
 * bl_log_fields - Writes @line into the journal with @n fields (base/event.h), of which
 * BL_LOG_FIELDS at most are used. Returns false if the log does not go to the journal, or @level is
 * suppressed; then nothing was written.
 */
bool bl_log_fields(int level, const struct bl_log_field *field, unsigned int n, const char *line);

#endif
