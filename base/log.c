// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Errors and the log: see log.h. Log lines go to the journal if systemd runs the process, else to
 * standard error. Errors of calls are not logged here: they travel in struct bl_err, and the caller
 * decides what to do with them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <systemd/sd-journal.h>
#include "base/log.h"

int bl_fail(struct bl_err *err, int errnum, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return errnum ? -errnum : -EINVAL;
}

int bl_log_level = BL_LOG_INFO;

/*
 * systemd.exec(5): standard error is connected to the journal if its device and inode are those in
 * $JOURNAL_STREAM.
 */
static bool on_journal(void)
{
	const char *e = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return e && sscanf(e, "%llu:%llu", &dev, &ino) == 2 && !fstat(STDERR_FILENO, &st) &&
	       st.st_dev == dev && st.st_ino == ino;
}

void bl_log(int level, const char *fmt, ...)
{
	static int journal = -1;
	char line[1024];
	va_list ap;

	if (level > bl_log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (journal < 0)
		journal = on_journal();
	if (journal && sd_journal_print(level, "%s", line) >= 0)
		return;
	fprintf(stderr, "barline: %s%s\n",
		level == BL_LOG_ERR    ? "error: "
		: level == BL_LOG_WARN ? "warning: "
				       : "",
		line);
}
