// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See columns.h. */
#include "cli/show/columns.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/util/out.h"
#include "cli/util/read.h"

#define LEAST_WIDTH 9 /* what most values need, so that columns stay where they are */

static const char *const kinds[] = { [COLUMN_LAG] = "lag",
				     [COLUMN_FRAMES] = "frames",
				     [COLUMN_BYTES] = "bytes",
				     [COLUMN_DROPPED] = "dropped",
				     [COLUMN_NOTED] = "noted" };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int parse_one(struct column *c, const char *word, struct bl_err *err)
{
	const char *near;
	size_t k;

	for (k = 0; k < KINDS && strcmp(kinds[k], word); k++)
		;
	*c = (struct column){ .kind = (enum column_kind)k };
	if (k < KINDS) {
		c->name = kinds[k];
		return 0;
	}
	c->reason = reason_of(word, &near);
	if (c->reason < BL_R_COUNT) {
		c->name = reason_name(c->reason);
		return 0;
	}
	return bl_fail(err, EINVAL,
		       "no column is called \"%s\"%s%s%s; there are lag, frames, bytes, dropped, "
		       "noted and the reasons of docs/protocol.md",
		       word, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int columns_parse(struct column *to, const char *list, struct bl_err *err)
{
	char word[32];
	int n = 0, rc;

	for (;;) {
		size_t len = strcspn(list, ",");

		if (n == COLUMNS_MAX)
			return bl_fail(err, EINVAL, "at most %d columns", COLUMNS_MAX);
		snprintf(word, sizeof(word), "%.*s", (int)(len < 31 ? len : 31), list);
		rc = parse_one(&to[n++], word, err);
		if (rc)
			return rc;
		if (!list[len])
			return n;
		list += len + 1;
	}
}

static int width_of(const struct column *c)
{
	int n = (int)strlen(c->name);

	return n > LEAST_WIDTH ? n : LEAST_WIDTH;
}

void columns_head(FILE *f, const struct column *c, size_t n, int width)
{
	char head[32];
	size_t i, k;

	fprintf(f, "%-8s  %-*s", "TIME", width, "NODE");
	for (i = 0; i < n; i++) {
		for (k = 0; c[i].name[k] && k + 1 < sizeof(head); k++)
			head[k] = (char)toupper((unsigned char)c[i].name[k]);
		head[k] = '\0';
		fprintf(f, "  %*s", width_of(&c[i]), head);
	}
	fputc('\n', f);
}

void columns_line(FILE *f, const struct column *c, size_t n, int width, const char *time,
		  const char *node, const double *values)
{
	char text[32];
	size_t i;

	fprintf(f, "%-8s  %-*s", time, width, node);
	for (i = 0; i < n; i++) {
		if (isnan(values[i]))
			snprintf(text, sizeof(text), "-");
		else if (c[i].kind == COLUMN_LAG)
			out_time((int64_t)values[i], text, sizeof(text));
		else /* what happens less than once per second is not shown as never */
			snprintf(text, sizeof(text), "%.*f",
				 values[i] > 0 && values[i] < 10 ? 1 : 0, values[i]);
		fprintf(f, "  %*s", width_of(&c[i]), text);
	}
	fputc('\n', f);
}
