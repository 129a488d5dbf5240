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
#include <sys/uio.h>
#include <unistd.h>
#include "base/log.h"
#include "base/library/systemd.h"
#include "base/program.h"

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

static bool to_journal(void)
{
	static int journal = -1;

	if (journal < 0)
		journal = on_journal();
	return journal;
}

bool bl_log_fields(int level, const struct bl_log_field *field, unsigned int n, const char *line)
{
	char text[BL_LOG_FIELDS][600], priority[16], message[1100];
	struct iovec v[BL_LOG_FIELDS + 2];
	int used = 0;
	unsigned int k;

	if (level > bl_log_level || !to_journal())
		return false;
	snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	snprintf(message, sizeof(message), "MESSAGE=%s", line);
	v[used++] = (struct iovec){ priority, strlen(priority) };
	v[used++] = (struct iovec){ message, strlen(message) };
	for (k = 0; k < n && k < BL_LOG_FIELDS; k++)
		if (field[k].value && *field[k].value) {
			snprintf(text[k], sizeof(text[k]), "%s=%s", field[k].name, field[k].value);
			v[used++] = (struct iovec){ text[k], strlen(text[k]) };
		}
	return sd_journal_sendv(v, used) >= 0;
}

void bl_log(int level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (level > bl_log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (to_journal() && sd_journal_print(level, "%s", line) >= 0)
		return;
	fprintf(stderr, "%s: %s%s\n", bl_program(),
		level == BL_LOG_ERR    ? "error: "
		: level == BL_LOG_WARN ? "warning: "
				       : "",
		line);
}
