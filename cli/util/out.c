/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See out.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/util/out.h"

#define CELL 160

struct cli_opts cli;

static bool progress_shown;

void out_progress_end(void)
{
	if (!progress_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress_shown = false;
}

void out_progress(const char *fmt, ...)
{
	va_list ap;

	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fflush(stderr);
	progress_shown = true;
}

static struct {
	char *buf; /* NULL: errors are printed */
	size_t size;
} kept;

void cli_keep_errors(char *buf, size_t size)
{
	kept.buf = buf;
	kept.size = size;
}

static void print_error(const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (kept.buf) {
		snprintf(kept.buf, kept.size, "%s", text);
		return;
	}
	out_progress_end();
	if (cli.json)
		cli_json(json_pack("{s:s}", "error", text));
	else
		fprintf(stderr, "%s: %s\n", cli.title ? cli.title : "barline", text);
}

int cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_error(fmt, ap);
	va_end(ap);
	return 1;
}

int cli_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_error(fmt, ap);
	va_end(ap);
	return CLI_USAGE;
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	if (!cli.verbose)
		return;
	out_progress_end();
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void cli_json(json_t *obj)
{
	json_t *all = json_pack("{s:i}", "schema", CLI_SCHEMA);

	if (!obj || json_object_update(all, obj)) {
		fputs("{\"schema\": 1, \"error\": \"out of memory\"}\n", stdout);
	} else {
		json_dumpf(all, stdout,
			   JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12) |
				   (cli.pretty ? JSON_INDENT(2) : 0));
		fputc('\n', stdout);
	}
	fflush(stdout);
	json_decref(all);
	json_decref(obj);
}

char *out_time(int64_t ns, char *buf, size_t size)
{
	uint64_t mag = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
	const char *sign = ns < 0 ? "-" : "";

	if (mag < 1000)
		snprintf(buf, size, "%s%" PRIu64 " ns", sign, mag);
	else if (mag < 1000000)
		snprintf(buf, size, "%s%.1f us", sign, (double)mag / 1e3);
	else if (mag < 1000000000)
		snprintf(buf, size, "%s%.2f ms", sign, (double)mag / 1e6);
	else
		snprintf(buf, size, "%s%.2f s", sign, (double)mag / 1e9);
	return buf;
}

char *out_bits(double bits, char *buf, size_t size)
{
	static const char *const units[] = { "", " k", " M", " G", " T" };
	size_t k = 0;

	while (bits >= 999.95 && k + 1 < sizeof(units) / sizeof(units[0])) {
		bits /= 1000;
		k++;
	}
	snprintf(buf, size, "%.1f%s", bits, units[k]);
	return buf;
}

char *out_bytes(uint64_t bytes, char *buf, size_t size)
{
	if (bytes < 10240)
		snprintf(buf, size, "%" PRIu64 " B", bytes);
	else if (bytes < 10u << 20)
		snprintf(buf, size, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buf, size, "%.1f MiB", (double)bytes / (1 << 20));
	return buf;
}

static void format_cell(const json_t *v, char fmt, char *buf)
{
	buf[0] = '\0';
	if (!v || json_is_null(v)) {
		if (fmt != 's' && fmt != 'b')
			strcpy(buf, "-");
		return;
	}
	switch (fmt) {
	case 's':
		snprintf(buf, CELL, "%s", json_is_string(v) ? json_string_value(v) : "");
		break;
	case 'd':
		snprintf(buf, CELL, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case 'n': /* a rate is a real number */
		if (json_is_integer(v))
			snprintf(buf, CELL, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		else
			snprintf(buf, CELL, "%.1f", json_number_value(v));
		break;
	case 'f':
		snprintf(buf, CELL, "%.1f", json_number_value(v));
		break;
	case 't':
		out_time((int64_t)json_number_value(v), buf, CELL);
		break;
	case 'k':
	case 'K':
		out_bytes((uint64_t)json_number_value(v), buf, CELL);
		break;
	case 'r':
		out_bits(json_number_value(v), buf, CELL);
		break;
	case 'b':
		strcpy(buf, json_is_true(v) ? "yes" : "");
		break;
	}
}

void out_cell(const json_t *v, char fmt, FILE *f)
{
	char buf[CELL];

	format_cell(v, fmt, buf);
	fputs(buf, f);
}

void out_table(FILE *f, json_t *rows, const struct col *cols, size_t ncols)
{
	size_t *width = calloc(ncols, sizeof(*width));
	char buf[CELL];
	json_t *row;
	size_t i, c;

	if (!width)
		return;
	for (c = 0; c < ncols; c++)
		width[c] = strlen(cols[c].head);
	json_array_foreach(rows, i, row)
	{
		for (c = 0; c < ncols; c++) {
			format_cell(json_object_get(row, cols[c].key), cols[c].fmt, buf);
			if (strlen(buf) > width[c])
				width[c] = strlen(buf);
		}
	}
	for (i = 0; i <= json_array_size(rows); i++) {
		row = i ? json_array_get(rows, i - 1) : NULL;
		for (c = 0; c < ncols; c++) {
			bool left = cols[c].fmt == 's' || cols[c].fmt == 'b';
			bool last = c + 1 == ncols;

			if (row)
				format_cell(json_object_get(row, cols[c].key), cols[c].fmt, buf);
			else
				snprintf(buf, sizeof(buf), "%s", cols[c].head);
			if (left)
				fprintf(f, "%-*s", last ? 0 : (int)width[c], buf);
			else
				fprintf(f, "%*s", (int)width[c], buf);
			fputs(last ? "\n" : "  ", f);
		}
	}
	free(width);
}

int out_rows(const char *key, json_t *rows, const struct col *cols, size_t ncols, const char *none)
{
	if (cli.json) {
		cli_json(json_pack("{s:o}", key, rows));
		return 0;
	}
	if (json_array_size(rows))
		out_table(stdout, rows, cols, ncols);
	else
		puts(none);
	json_decref(rows);
	return 0;
}

int out_dir(const char *dir)
{
	return mkdir(dir, 0755) && errno != EEXIST ? cli_fail("%s: %s", dir, strerror(errno)) : 0;
}

FILE *out_open(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	if (out_dir(dir))
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		cli_fail("%s: %s", path, strerror(errno));
	return f;
}

int out_close(const char *dir, const char *name, FILE *f)
{
	int bad = ferror(f);

	return fclose(f) || bad ? cli_fail("%s/%s: %s", dir, name, strerror(errno)) : 0;
}
