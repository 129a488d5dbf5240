/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See fct_sizes.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fct/fct_sizes.h"
#include "bench/fct/fct_stat.h"

#define STEPS 4096 /* per interval, for means that have no closed form */

/*
 * Web search: the curve of DCTCP's Fig. 4 (SIGCOMM 2010) as used by the simulations of pFabric
 * (SIGCOMM 2013, Fig. 4a) and its successors, rounded.
 */
static const struct fct_point websearch[] = { { 10e3, 0.15 }, { 20e3, 0.2 },  { 30e3, 0.3 },
					      { 50e3, 0.4 },  { 80e3, 0.53 }, { 200e3, 0.6 },
					      { 1e6, 0.7 },   { 2e6, 0.8 },   { 5e6, 0.9 },
					      { 10e6, 0.97 }, { 30e6, 1 } };
/*
 * Data mining: VL2 (SIGCOMM 2009, Fig. 2) as used by pFabric (Fig. 4b) and its successors, in
 * packets of 1500 bytes, rounded.
 */
static const struct fct_point datamining[] = { { 1500, 0.5 },   { 3000, 0.6 },  { 4500, 0.7 },
					       { 10e3, 0.8 },   { 400e3, 0.9 }, { 3e6, 0.95 },
					       { 100e6, 0.99 }, { 1e9, 1 } };

int fct_sizes_named(struct fct_sizes *s, const char *name)
{
	static const struct {
		const char *name;
		const struct fct_point *p;
		size_t n;
	} all[] = { { "websearch", websearch, sizeof(websearch) / sizeof(websearch[0]) },
		    { "datamining", datamining, sizeof(datamining) / sizeof(datamining[0]) } };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i].name)) {
			s->n = (unsigned int)all[i].n;
			memcpy(s->p, all[i].p, all[i].n * sizeof(*all[i].p));
			return 0;
		}
	return -1;
}

/*
 * Reads the numbers of a line without its comment. Returns how many there are, or -1 if there is
 * something else, or too many.
 */
static int read_numbers(char *line, double *v, int max)
{
	char *save = NULL, *word, *end;
	int n = 0;

	line[strcspn(line, "#\r\n")] = '\0';
	for (word = strtok_r(line, " \t,", &save); word; word = strtok_r(NULL, " \t,", &save)) {
		if (n == max)
			return -1;
		v[n++] = strtod(word, &end);
		if (*end || !isfinite(v[n - 1]))
			return -1;
	}
	return n;
}

#define WRONG(...) (snprintf(why, size, __VA_ARGS__), -1)

int fct_sizes_read(struct fct_sizes *s, FILE *f, char *why, size_t size)
{
	unsigned int line = 0;
	int columns = 0, n;
	char text[512];
	double v[3];

	s->n = 0;
	while (fgets(text, sizeof(text), f)) {
		struct fct_point *p = &s->p[s->n], *last = s->n ? p - 1 : NULL;

		line++;
		if (strlen(text) + 1 == sizeof(text) && text[sizeof(text) - 2] != '\n')
			return WRONG("line %u: longer than %zu characters", line, sizeof(text) - 2);
		n = read_numbers(text, v, 3);
		if (!n)
			continue;
		if (n < 2)
			return WRONG("line %u: not \"bytes cdf\", nor \"packets 1 cdf\"", line);
		if (columns && n != columns)
			return WRONG("line %u: %d columns where lines before have %d", line, n,
				     columns);
		columns = n;
		if (n == 3 && v[1] != 1)
			return WRONG("line %u: the second of three columns is %g; it must be 1",
				     line, v[1]);
		if (s->n == FCT_POINTS_MAX)
			return WRONG("line %u: more than %d points", line, FCT_POINTS_MAX);
		*p = (struct fct_point){ n == 3 ? v[0] * FCT_PACKET_BYTES : v[0], v[n - 1] };
		if (p->bytes <= 0 || p->bytes > FCT_SIZE_MAX)
			return WRONG("line %u: a flow of %g bytes", line, p->bytes);
		if (p->cdf < 0 || p->cdf > 1)
			return WRONG("line %u: cdf %g is not from 0 to 1%s", line, p->cdf,
				     p->cdf > 1 && p->cdf <= 100 ? "; is it in per cent?" : "");
		if (last && (p->bytes < last->bytes || p->cdf < last->cdf))
			return WRONG("line %u: %s falls, from %g to %g", line,
				     p->bytes < last->bytes ? "the size" : "cdf",
				     p->bytes < last->bytes ? last->bytes : last->cdf,
				     p->bytes < last->bytes ? p->bytes : p->cdf);
		s->n++;
	}
	if (ferror(f))
		return WRONG("cannot be read");
	if (!s->n)
		return WRONG("no points in it");
	if (fabs(s->p[s->n - 1].cdf - 1) > 1e-6)
		return WRONG("line %u: the file ends at a cdf of %g; it must be 1", line,
			     s->p[s->n - 1].cdf);
	s->p[s->n - 1].cdf = 1;
	return 0;
}

double fct_sizes_at(const struct fct_sizes *s, double u)
{
	unsigned int low = 0, high = s->n - 1;
	const struct fct_point *a, *b;

	/* find the first point whose cdf is above @u; that of the last point is */
	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (s->p[mid].cdf > u)
			high = mid;
		else
			low = mid + 1;
	}
	b = &s->p[low];
	if (!low)
		return b->bytes;
	a = b - 1;
	return a->bytes + (b->bytes - a->bytes) * (u - a->cdf) / (b->cdf - a->cdf);
}

double fct_sizes_mean(const struct fct_sizes *s)
{
	double sum = s->p[0].bytes * s->p[0].cdf;
	unsigned int i;

	for (i = 1; i < s->n; i++)
		sum += (s->p[i - 1].bytes + s->p[i].bytes) / 2 * (s->p[i].cdf - s->p[i - 1].cdf);
	return sum;
}

uint64_t fct_sizes_scaled(double bytes, double scale)
{
	double v = floor(bytes * scale + 0.5);

	return v < 1 ? 1 : (uint64_t)v;
}

double fct_sizes_wire_mean(const struct fct_sizes *s, double scale, unsigned int mss)
{
	double sum = (double)fct_wire(fct_sizes_scaled(s->p[0].bytes, scale), mss) * s->p[0].cdf;
	unsigned int i, k;

	for (i = 1; i < s->n; i++) {
		double part = 0, from = s->p[i - 1].bytes, step = (s->p[i].bytes - from) / STEPS;

		for (k = 0; k < STEPS; k++)
			part += (double)fct_wire(fct_sizes_scaled(from + (k + 0.5) * step, scale),
						 mss);
		sum += part / STEPS * (s->p[i].cdf - s->p[i - 1].cdf);
	}
	return sum;
}
