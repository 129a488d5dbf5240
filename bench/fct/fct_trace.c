/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See fct_trace.h.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/fct/fct_stat.h"
#include "bench/fct/fct_trace.h"

#define EXTRAS 0x636F666C6F777321ULL /* changes the seed for deadlines and widths */

double fct_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static bool is_destination(const struct fct_plan *p, unsigned int src, unsigned int dst, bool racks)
{
	return racks ? p->rack[dst] != p->rack[src] : dst != src;
}

uint32_t fct_trace_make(const struct fct_plan *plan, struct fct_flow *f, uint32_t max)
{
	uint64_t state = plan->seed, extras = plan->seed ^ EXTRAS;
	double at = 0, per_second = plan->per_second / (plan->width ? plan->width : 1);
	unsigned int i, k, count, left = 0;
	uint32_t n, coflow = 0;
	bool racks = false;

	for (i = 1; i < plan->hosts; i++)
		racks |= plan->rack[i] != plan->rack[0];
	for (n = 0; !plan->flows || n < plan->flows; n++) {
		double gap = fct_random(&state), from = fct_random(&state), to = fct_random(&state),
		       size = fct_random(&state);

		if (!left) {
			at += -log1p(-gap) / per_second * 1e9;
			left = plan->width ? 1 + (unsigned int)(fct_random(&extras) *
								(2 * plan->width - 1))
					   : 1;
			coflow += plan->width != 0;
		}
		left--;
		if ((plan->span_ns && at >= (double)plan->span_ns) || at >= (double)FCT_SPAN_MAX_NS)
			break;
		if (n == max)
			return max + 1;
		f[n].start_ns = (uint64_t)at;
		f[n].bytes = fct_sizes_scaled(fct_sizes_at(plan->sizes, size), plan->scale);
		f[n].src = (uint16_t)(from * plan->hosts);
		for (i = count = 0; i < plan->hosts; i++)
			count += is_destination(plan, f[n].src, i, racks);
		k = (unsigned int)(to * count);
		for (i = 0; !is_destination(plan, f[n].src, i, racks) || k--; i++)
			;
		f[n].dst = (uint16_t)i;
		f[n].coflow = coflow;
		size = plan->deadline_us > 0 ? fct_random(&extras) : 0;
		f[n].deadline_us = plan->deadline_us > 0 && f[n].bytes <= plan->deadline_bytes
					   ? fct_deadline_us(f[n].bytes, plan->mss, plan->rate_bps,
							     plan->deadline_us, size)
					   : 0;
	}
	return n;
}

static bool more_columns(const struct fct_flow *f, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (f[i].deadline_us || f[i].coflow)
			return true;
	return false;
}

void fct_trace_write(FILE *to, const struct fct_flow *f, uint32_t n)
{
	bool more = more_columns(f, n);
	uint32_t i;

	fprintf(to, "# id src dst start_ns bytes%s\n", more ? " deadline_us coflow" : "");
	for (i = 0; i < n; i++) {
		fprintf(to, "%u %u %u %" PRIu64 " %" PRIu64, i + 1, f[i].src + 1, f[i].dst + 1,
			f[i].start_ns, f[i].bytes);
		if (more)
			fprintf(to, " %u %u", f[i].deadline_us, f[i].coflow);
		fputc('\n', to);
	}
}

void fct_trace_stretch(struct fct_flow *f, uint32_t n, double factor)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		f[i].start_ns = (uint64_t)((double)f[i].start_ns * factor);
}

#define WRONG(...) (snprintf(why, size, __VA_ARGS__), -1)

int fct_trace_read(FILE *from, unsigned int hosts, struct fct_flow *f, uint32_t max, char *why,
		   size_t size)
{
	unsigned int line = 0;
	uint32_t n = 0;
	char text[512];

	while (fgets(text, sizeof(text), from)) {
		uint64_t id, src, dst, start, bytes, deadline = 0, coflow = 0;
		int end = -1, more = -1;

		line++;
		if (strlen(text) + 1 == sizeof(text) && text[sizeof(text) - 2] != '\n')
			return WRONG("line %u: longer than %zu characters", line, sizeof(text) - 2);
		text[strcspn(text, "#\r\n")] = '\0';
		if (!text[strspn(text, " \t")])
			continue;
		/* at most 18 digits, which fit into 64 bits, and no sign */
		if (strpbrk(text, "-+") ||
		    sscanf(text,
			   "%18" SCNu64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64 " %"
			   "n",
			   &id, &src, &dst, &start, &bytes, &end) != 5 ||
		    end < 0 ||
		    (text[end] && (sscanf(text + end, "%18" SCNu64 " %18" SCNu64 " %n", &deadline,
					  &coflow, &more) != 2 ||
				   more < 0 || text[end + more])))
			return WRONG("line %u: not \"id src dst start_ns bytes\", nor with "
				     "\"deadline_us coflow\" behind it",
				     line);
		if (n == max)
			return WRONG("line %u: more than %u flows", line, max);
		if (id != n + 1)
			return WRONG("line %u: flow %" PRIu64 " where %u comes next", line, id,
				     n + 1);
		if (!src || src > hosts || !dst || dst > hosts)
			return WRONG("line %u: there is no h%" PRIu64 " among %u hosts", line,
				     !src || src > hosts ? src : dst, hosts);
		if (src == dst)
			return WRONG("line %u: h%" PRIu64 " sends to itself", line, src);
		if (start >= FCT_SPAN_MAX_NS || (n && start < f[n - 1].start_ns))
			return WRONG("line %u: comes %s", line,
				     start >= FCT_SPAN_MAX_NS ? "more than a day after the "
								"beginning"
							      : "before the flow before it");
		if (!bytes || bytes > (uint64_t)FCT_SIZE_MAX)
			return WRONG("line %u: a flow of %" PRIu64 " bytes", line, bytes);
		if (deadline > UINT32_MAX)
			return WRONG("line %u: a deadline of %" PRIu64 " us; at most %u", line,
				     deadline, UINT32_MAX);
		if (coflow > max)
			return WRONG("line %u: coflow %" PRIu64 "; at most %u", line, coflow, max);
		f[n++] = (struct fct_flow){ start,
					    bytes,
					    (uint16_t)(src - 1),
					    (uint16_t)(dst - 1),
					    (uint32_t)deadline,
					    (uint32_t)coflow };
	}
	if (ferror(from))
		return WRONG("cannot be read");
	return n ? (int)n : WRONG("no flows in it");
}
