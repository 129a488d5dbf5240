/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traces of coflows, as published by coflow-benchmark (fct_trace.h).
 *
 *   150 526
 *   1 0 2 22 7 1 65:1.0    coflow 1 arrives at 0 ms; ports 22 and 7 send half a megabyte each to
 *                          port 65
 *
 * With 8 hosts, numbered from 0, ports 22 and 7 are hosts 6 and 7, and port 65 is host 1. This
 * makes two flows of 500000 bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fct/fct_trace.h"

#define LINE_MAX_BYTES (1 << 20)
#define PORTS_MAX      100000

#define WRONG(...)     (snprintf(why, size, __VA_ARGS__), -1)

/* returns the next number of the line, up to a blank or ':', or -1 if there is none */
static double parse_number(char **at)
{
	char *end;
	double v;

	*at += strspn(*at, " \t:");
	if (!(**at >= '0' && **at <= '9'))
		return -1;
	v = strtod(*at, &end);
	if (*end && !strchr(" \t:\r\n", *end))
		return -1;
	*at = end;
	return v;
}

/* bytes from host to host of one coflow: [from * hosts + to] */
static int one_coflow(char *at, const struct fct_plan *p, double *bytes)
{
	unsigned int from[FCT_HOSTS_MAX] = { 0 }, hosts = p->hosts, i;
	double maps = parse_number(&at), reds, k, port, mb;

	if (maps < 1 || maps > PORTS_MAX)
		return -1;
	for (k = 0; k < maps; k++) {
		port = parse_number(&at);
		if (port < 0 || port > PORTS_MAX)
			return -1;
		from[(unsigned int)port % hosts]++;
	}
	reds = parse_number(&at);
	if (reds < 1 || reds > PORTS_MAX)
		return -1;
	for (k = 0; k < reds; k++) {
		port = parse_number(&at);
		mb = parse_number(&at);
		if (port < 0 || port > PORTS_MAX || mb < 0 || mb > FCT_SIZE_MAX / 1e6)
			return -1;
		for (i = 0; i < hosts; i++)
			bytes[i * hosts + (unsigned int)port % hosts] += mb * 1e6 * from[i] / maps;
	}
	return parse_number(&at) < 0 ? 0 : -1;
}

int fct_coflows_read(FILE *from, const struct fct_plan *plan, struct fct_flow *f, uint32_t max,
		     char *why, size_t size)
{
	unsigned int line = 0, hosts = plan->hosts, i, k;
	static double bytes[FCT_HOSTS_MAX * FCT_HOSTS_MAX];
	static char text[LINE_MAX_BYTES];
	uint32_t n = 0, coflow = 0;
	bool racks = false;
	double last = 0;

	for (i = 1; i < hosts; i++)
		racks |= plan->rack[i] != plan->rack[0];
	if (plan->flows && plan->flows < max)
		max = plan->flows;
	while (fgets(text, sizeof(text), from)) {
		char *at = text, *more;
		double id, ms;
		uint32_t was = n;

		line++;
		if (strlen(text) + 1 == sizeof(text) && text[sizeof(text) - 2] != '\n')
			return WRONG("line %u: longer than %d characters", line,
				     LINE_MAX_BYTES - 2);
		text[strcspn(text, "#\r\n")] = '\0';
		if (!text[strspn(text, " \t")])
			continue;
		id = parse_number(&at);
		ms = parse_number(&at);
		more = at;
		if (line == 1 && id >= 1 && ms >= 1 && parse_number(&more) < 0)
			continue; /* the first line: numbers of ports and of coflows */
		memset(bytes, 0, sizeof(bytes));
		if (id < 0 || ms < 0 || one_coflow(at, plan, bytes))
			return WRONG("line %u: not \"id arrival_ms nmap map.. nred red:MB..\"",
				     line);
		if (ms < last || ms >= (double)FCT_SPAN_MAX_NS / 1e6)
			return WRONG("line %u: comes %s", line,
				     ms < last ? "before the coflow before it"
					       : "more than a day after the beginning");
		last = ms;
		for (i = 0; i < hosts; i++)
			for (k = 0; k < hosts; k++) {
				double b = bytes[i * hosts + k];

				if (b <= 0 || i == k || (racks && plan->rack[i] == plan->rack[k]))
					continue;
				if (n == max)
					return was ? (int)was
						   : WRONG("line %u: this coflow alone has more "
							   "than %u flows",
							   line, max);
				f[n++] = (struct fct_flow){ (uint64_t)(ms * 1e6),
							    fct_sizes_scaled(b, plan->scale),
							    (uint16_t)i,
							    (uint16_t)k,
							    0,
							    coflow + 1 };
			}
		coflow += n != was;
	}
	if (ferror(from))
		return WRONG("cannot be read");
	return n ? (int)n : WRONG("no coflows in it between these hosts");
}
