/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See number.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rate.h"

bool bl_read_integer(const char *s, long long least, long long most, long long *v)
{
	char *end;

	errno = 0;
	*v = strtoll(s, &end, 0);
	return !errno && end != s && !*end && *v >= least && *v <= most;
}

bool bl_read_real(const char *s, double least, double most, double *v)
{
	char *end;

	errno = 0;
	*v = strtod(s, &end);
	return !errno && end != s && !*end && *v >= least && *v <= most;
}

static void store_integer(const struct bl_number *n, void *field, long long v)
{
	switch (n->type) {
	case BL_NUMBER_U16:
		*(uint16_t *)field = (uint16_t)v;
		break;
	case BL_NUMBER_U32:
		*(uint32_t *)field = (uint32_t)v;
		break;
	case BL_NUMBER_U64:
		*(uint64_t *)field = (uint64_t)v;
		break;
	case BL_NUMBER_S32:
		*(int32_t *)field = (int32_t)v;
		break;
	default:
		*(int64_t *)field = v;
	}
}

/* writes what row @n allows, as in "a number from 1 to 1000 us" */
static void describe_range(const struct bl_number *n, char *buf, size_t size)
{
	const char *what = n->power_of_two ? "a power of two" : "a number";
	const char *unit = n->unit ? n->unit : "", *gap = n->unit ? " " : "";

	if (n->type == BL_NUMBER_REAL)
		snprintf(buf, size, "%s from %.12Lg to %.12Lg%s%s", what, n->least, n->most, gap,
			 unit);
	else if (n->most < (long double)INT64_MAX)
		snprintf(buf, size, "%s from %.0Lf to %.0Lf%s%s", what, n->least, n->most, gap,
			 unit);
	else if (n->least > (long double)INT64_MIN)
		snprintf(buf, size, "%s from %.0Lf%s%s on", what, n->least, gap, unit);
	else
		snprintf(buf, size, "%s%s%s", what, n->unit ? " of " : "", unit);
}

int bl_number_read(const struct bl_number *n, const char *arg, void *base, char *why, size_t size)
{
	const int64_t scale = n->scale ? n->scale : 1;
	void *field = (char *)base + n->offset;
	char range[128], least[16], most[16];
	uint64_t rate;
	double real;
	long long v;

	if (n->type == BL_NUMBER_RATE) {
		if (bl_rate_parse(arg, &rate)) {
			*(uint64_t *)field = rate;
			return 0;
		}
		snprintf(why, size, "--%s: \"%s\" is not a rate from %s to %s, as in 250mbit",
			 n->name, arg, bl_rate_text(BL_RATE_MIN, least, sizeof(least)),
			 bl_rate_text(BL_RATE_MAX, most, sizeof(most)));
		return -EINVAL;
	}
	if (n->type == BL_NUMBER_REAL) {
		if (bl_read_real(arg, (double)n->least, (double)n->most, &real)) {
			*(double *)field = real * (double)scale;
			return 0;
		}
	} else if (bl_read_integer(arg, (long long)n->least, (long long)n->most, &v) &&
		   (!n->power_of_two || !(v & (v - 1)))) {
		store_integer(n, field, v * scale);
		return 0;
	}
	describe_range(n, range, sizeof(range));
	snprintf(why, size, "--%s: \"%s\" is not %s", n->name, arg, range);
	return -EINVAL;
}

error_t bl_number_option(const struct bl_number *table, int key, const char *arg, void *base,
			 struct argp_state *state)
{
	char why[256];

	for (; table->name && table->key != key; table++)
		;
	if (!table->name)
		return ARGP_ERR_UNKNOWN;
	if (bl_number_read(table, arg, base, why, sizeof(why)))
		argp_error(state, "%s", why);
	return 0;
}
