// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rates as text and as times per byte: see rate.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "base/rate.h"

#define NS_BITS_Q20 (8000000000ULL << 20) /* 8 bits per byte, 10^9 ns per second */

/* what may follow the number, to the end of the text; "": bits per second */
static const struct {
	const char *name;
	double bits;
} units[] = {
	{ "bit", 1 },
	{ "kbit", 1e3 },
	{ "mbit", 1e6 },
	{ "gbit", 1e9 },
	{ "tbit", 1e12 },
	{ "kibit", 1024.0 },
	{ "mibit", 1024.0 * 1024 },
	{ "gibit", 1024.0 * 1024 * 1024 },
	{ "bps", 8 },
	{ "kbps", 8e3 },
	{ "mbps", 8e6 },
	{ "gbps", 8e9 },
	{ "tbps", 8e12 },
	{ "", 1 },
};

bool bl_rate_parse(const char *s, uint64_t *bits_per_s)
{
	double v, bits = 0;
	char *end;
	size_t k;

	/* strtod() accepts signs, blanks, hex digits and names, which are no rates */
	if (!(*s >= '0' && *s <= '9') || s[1] == 'x' || s[1] == 'X')
		return false;
	v = strtod(s, &end);
	for (k = 0; k < sizeof(units) / sizeof(units[0]) && !bits; k++)
		if (!strcasecmp(end, units[k].name))
			bits = units[k].bits;
	v *= bits;
	if (!bits || !(v >= (double)BL_RATE_MIN) || v > (double)BL_RATE_MAX)
		return false;
	*bits_per_s = (uint64_t)(v + 0.5);
	return true;
}

char *bl_rate_text(uint64_t v, char *buf, size_t size)
{
	static const char *const name[] = { "bit", "kbit", "mbit", "gbit" };
	unsigned int k;

	for (k = 0; k < 3 && v && !(v % 1000); k++)
		v /= 1000;
	if (v)
		snprintf(buf, size, "%" PRIu64 "%s", v, name[k]);
	else
		snprintf(buf, size, "none");
	return buf;
}

uint32_t bl_rate_ns_q20(uint64_t bits_per_s)
{
	return bits_per_s ? (uint32_t)((NS_BITS_Q20 + bits_per_s / 2) / bits_per_s) : 0;
}

uint64_t bl_rate_of_q20(uint32_t ns_q20)
{
	return ns_q20 ? (NS_BITS_Q20 / ns_q20 + 500) / 1000 * 1000 : 0;
}
