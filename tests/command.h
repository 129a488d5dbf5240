/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What another program prints, for tests that look at it with tshark, tar and the like. */
#ifndef BARLINE_TESTS_COMMAND_H
#define BARLINE_TESTS_COMMAND_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Runs a command of the shell. Returns what it prints, which the caller frees, with its wait status
 * in *@status; NULL: it could not be run, and *@status is -1.
 */
__attribute__((format(printf, 2, 3))) static inline char *command_output(int *status,
									 const char *fmt, ...)
{
	char command[2048], *text = NULL, buf[4096];
	size_t size, n;
	va_list ap;
	FILE *p, *m;
	int len;

	*status = -1;
	va_start(ap, fmt);
	len = vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(command))
		return NULL;
	p = popen(command, "r");
	m = p ? open_memstream(&text, &size) : NULL;
	if (!m) {
		if (p)
			pclose(p);
		return NULL;
	}
	while ((n = fread(buf, 1, sizeof(buf), p)) > 0)
		fwrite(buf, 1, n, m);
	*status = pclose(p);
	if (!fclose(m))
		return text;
	free(text);
	return NULL;
}

#endif
