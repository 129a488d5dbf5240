// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flows of `lab run fct`: distributions of sizes from files, traces, and the arithmetic of
 * completion times.
 */
#include <math.h>

#include "tests/unit/unit.h"

#include "bench/fct/fct_sizes.h"
#include "bench/fct/fct_stat.h"
#include "bench/fct/fct_trace.h"

static struct fct_sizes sizes;

static int read_text(const char *text, char *why, size_t size)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int err;

	assert_non_null(f);
	why[0] = '\0';
	err = fct_sizes_read(&sizes, f, why, size);
	fclose(f);
	return err;
}

static void sizes_read__good(void **state)
{
	static const struct {
		const char *text;
		unsigned int n;
		double first, last, mean;
	} t[] = {
		/* the example at the top of the header */
		{ "10000 0.15\n20000 0.20\n30000 1\n", 3, 10000, 30000, 22250 },
		{ "10000 0.15\n20000 0.20\n30000 1", 3, 10000, 30000, 22250 },
		{ "# sizes\n\n 10000\t0.15 # comment\r\n20000,0.20\n30000 1\n", 3, 10000, 30000,
		  22250 },
		{ "7 1\n", 1, 7, 7, 7 },
		{ "1 0\n3 1\n", 2, 1, 3, 2 },
		{ "1 0.25\n1 0.5\n9 0.5\n9 1\n", 4, 1, 9, 5 }, /* steps */
		{ "1e3 0.5\n3e3 0.9999999\n", 2, 1000, 3000, 1500 },
		{ "6 1 0\n6 1 0.5\n20 1 1.0\n", 3, 8760, 29200, 13870 },
	};
	char why[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(read_text(t[i].text, why, sizeof(why)), 0);
		assert_int_equal(sizes.n, t[i].n);
		assert_float_equal(sizes.p[0].bytes, t[i].first, 0);
		assert_float_equal(sizes.p[sizes.n - 1].bytes, t[i].last, 0);
		assert_float_equal(sizes.p[sizes.n - 1].cdf, 1, 0);
		assert_float_equal(fct_sizes_mean(&sizes), t[i].mean, 0.01);
	}
}

static void sizes_read__bad(void **state)
{
	static const struct {
		const char *text, *why;
	} t[] = {
		{ " ", "no points in it" },
		{ "# 1 1\n\n", "no points in it" },
		{ "100 0.5\n200 x\n", "line 2: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "100 0.5\n200 1x\n", "line 2: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "100\n", "line 1: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "1 1 1 1\n", "line 1: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "1 nan\n", "line 1: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "inf 1\n", "line 1: not \"bytes cdf\", nor \"packets 1 cdf\"" },
		{ "100 0.5\n\n200 1 1\n", "line 3: 3 columns where lines before have 2" },
		{ "100 1 0.5\n200 1\n", "line 2: 2 columns where lines before have 3" },
		{ "100 2 0.5\n", "line 1: the second of three columns is 2; it must be 1" },
		{ "0 0.5\n1 1\n", "line 1: a flow of 0 bytes" },
		{ "-1 0.5\n1 1\n", "line 1: a flow of -1 bytes" },
		{ "2e15 1\n", "line 1: a flow of 2e+15 bytes" },
		{ "1 -0.1\n", "line 1: cdf -0.1 is not from 0 to 1" },
		{ "1 15\n2 100\n", "line 1: cdf 15 is not from 0 to 1; is it in per cent?" },
		{ "1 0.5\n2 101\n", "line 2: cdf 101 is not from 0 to 1" },
		{ "100 0.5\n99 1\n", "line 2: the size falls, from 100 to 99" },
		{ "100 0.5\n200 0.4\n", "line 2: cdf falls, from 0.5 to 0.4" },
		{ "100 0.5\n200 0.9\n#\n", "line 3: the file ends at a cdf of 0.9; it must be 1" },
	};
	char why[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(read_text(t[i].text, why, sizeof(why)), -1);
		assert_string_equal(why, t[i].why);
	}
}

/* The limits of points, and of characters in a line: the last allowed value, and one more. */
static void sizes_read__limits(void **state)
{
	char *text = malloc(FCT_POINTS_MAX * 16 + 64), *at = text, why[200];
	int i;

	for (i = 0; i < FCT_POINTS_MAX - 1; i++)
		at += sprintf(at, "%d 0.5\n", i + 1);
	sprintf(at, "9999 1\n");
	assert_int_equal(read_text(text, why, sizeof(why)), 0);
	assert_int_equal(sizes.n, FCT_POINTS_MAX);
	sprintf(at, "9999 1\n9999 1\n");
	assert_int_equal(read_text(text, why, sizeof(why)), -1);
	assert_string_equal(why, "line 4097: more than 4096 points");
	for (i = 510; i <= 511; i++) {
		sprintf(text, "%-*s\n", i, "1 1");
		assert_int_equal(read_text(text, why, sizeof(why)), i == 510 ? 0 : -1);
	}
	assert_string_equal(why, "line 1: longer than 510 characters");
	free(text);
}

/* The inverse of the distribution function, at its points and around them. */
static void sizes_at__table(void **state)
{
	static const struct {
		double u, bytes;
	} t[] = { { 0, 10000 },   { 0.1, 10000 }, { 0.15, 10000 },     { 0.175, 15000 },
		  { 0.2, 20000 }, { 0.6, 25000 }, { 0.9999999, 30000 } };
	char why[200];
	size_t i;

	assert_int_equal(read_text("10000 0.15\n20000 0.2\n30000 1\n", why, sizeof(why)), 0);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_float_equal(fct_sizes_at(&sizes, t[i].u), t[i].bytes, 0.01);
	/* The result is never inside a step or in a gap. */
	assert_int_equal(read_text("5 0.5\n50 0.5\n50 1\n", why, sizeof(why)), 0);
	assert_float_equal(fct_sizes_at(&sizes, 0.4999), 5, 0);
	assert_float_equal(fct_sizes_at(&sizes, 0.5), 50, 0);
	assert_float_equal(fct_sizes_at(&sizes, 0.75), 50, 0);
}

static void sizes_named__means(void **state)
{
	/*
	 * By hand: the sum of (a + b) / 2 x the share between, plus the share of the first point.
	 */
	assert_int_equal(fct_sizes_named(&sizes, "websearch"), 0);
	assert_float_equal(fct_sizes_mean(&sizes), 1712000, 1);
	assert_float_equal(sizes.p[sizes.n - 1].cdf, 1, 0);
	assert_int_equal(fct_sizes_named(&sizes, "datamining"), 0);
	assert_float_equal(fct_sizes_mean(&sizes), 7667575, 1);
	assert_float_equal(sizes.p[sizes.n - 1].cdf, 1, 0);
	assert_int_equal(fct_sizes_named(&sizes, "webmining"), -1);
	assert_int_equal(fct_sizes_named(&sizes, ""), -1);
}

static void sizes_scaled__edges(void **state)
{
	assert_int_equal(fct_sizes_scaled(1, 0.001), 1);
	assert_int_equal(fct_sizes_scaled(1499, 0.001), 1);
	assert_int_equal(fct_sizes_scaled(1500, 0.001), 2);
	assert_int_equal(fct_sizes_scaled(1e15, 1000), 1000000000000000000);
}

/*
 * Drawn sizes are within bounds. Their mean, and that of their frames, are those of the
 * distribution.
 */
static void sizes__sampled(void **state)
{
	static const char *const names[] = { "websearch", "datamining" };
	struct rnd r = rnd_seeded("sizes__sampled");
	unsigned int k, i;

	for (k = 0; k < 2; k++) {
		const unsigned int n = 400000;
		double sum = 0, square = 0, wire = 0, mean, error;

		fct_sizes_named(&sizes, names[k]);
		for (i = 0; i < n; i++) {
			/*
			 * One sample of each stratum, so that the test covers the function and not
			 * chance.
			 */
			double v = fct_sizes_at(&sizes, (i + fct_random(&r.x)) / n);

			assert_true(v >= sizes.p[0].bytes && v <= sizes.p[sizes.n - 1].bytes);
			sum += v;
			square += v * v;
			wire += (double)fct_wire(fct_sizes_scaled(v, 0.1), 1448);
		}
		mean = sum / n;
		error = sqrt(square / n - mean * mean) / n * 100;
		assert_float_equal(mean, fct_sizes_mean(&sizes), error);
		assert_float_equal(wire / n, fct_sizes_wire_mean(&sizes, 0.1, 1448), error + 1);
	}
}

/* One interval of 4096 bytes: every size from 2001 to 6096 once. */
static void sizes_wire_mean__by_hand(void **state)
{
	double sum = 0;
	char why[200];
	int i;

	for (i = 2001; i <= 6096; i++)
		sum += (double)fct_wire((uint64_t)i, 1448);
	assert_int_equal(read_text("2000 0\n6096 1\n", why, sizeof(why)), 0);
	assert_float_equal(fct_sizes_wire_mean(&sizes, 1, 1448), sum / 4096, 0.001);
	assert_int_equal(read_text("3000 0.5\n3000 1\n", why, sizeof(why)), 0);
	assert_float_equal(fct_sizes_wire_mean(&sizes, 1, 1448), 3198, 0.001);
}

/* ---- traces ---- */

static struct fct_flow flows[FCT_FLOWS_MAX + 1];

static void random__moments(void **state)
{
	uint64_t s = 1;
	double sum = 0, square = 0;
	int i;

	for (i = 0; i < 1 << 20; i++) {
		double v = fct_random(&s);

		assert_true(v >= 0 && v < 1);
		sum += v;
		square += v * v;
	}
	assert_float_equal(sum / (1 << 20), 0.5, 0.002);
	assert_float_equal(square / (1 << 20), 1.0 / 3, 0.002);
}

/* Gaps of a Poisson process: mean, variance, share above the mean, and no memory. */
static void trace_make__poisson(void **state)
{
	struct fct_plan p = { .seed = 7,
			      .sizes = &sizes,
			      .scale = 1,
			      .per_second = 1000,
			      .hosts = 8,
			      .flows = FCT_FLOWS_MAX };
	double sum = 0, square = 0, product = 0, last = 1e6;
	unsigned int above = 0, i;

	fct_sizes_named(&sizes, "websearch");
	assert_int_equal(fct_trace_make(&p, flows, FCT_FLOWS_MAX), FCT_FLOWS_MAX);
	for (i = 0; i < FCT_FLOWS_MAX; i++) {
		double gap = (double)(flows[i].start_ns - (i ? flows[i - 1].start_ns : 0));

		sum += gap;
		square += gap * gap;
		product += (gap - 1e6) * (last - 1e6);
		above += gap > 1e6;
		last = gap;
	}
	assert_float_equal(sum / FCT_FLOWS_MAX, 1e6, 3e4);
	assert_float_equal(square / FCT_FLOWS_MAX, 2e12, 2e11);
	assert_float_equal(product / FCT_FLOWS_MAX, 0, 4e10);
	assert_float_equal(above / (double)FCT_FLOWS_MAX, exp(-1), 0.015);
}

/* Every allowed pair occurs, about equally often. */
static void trace_make__pairs(void **state)
{
	static const struct {
		unsigned int hosts, rack[8], pairs;
	} t[] = {
		{ 2, { 0 }, 2 },
		{ 8, { 0 }, 56 },
		{ 8, { 0, 0, 0, 0, 1, 1, 1, 1 }, 32 },
		{ 5, { 0, 0, 1, 1, 2 }, 16 },
	};
	unsigned int k, i, j;

	fct_sizes_named(&sizes, "websearch");
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		struct fct_plan p = { .seed = k,
				      .sizes = &sizes,
				      .scale = 1,
				      .per_second = 1000,
				      .hosts = t[k].hosts,
				      .flows = FCT_FLOWS_MAX };
		unsigned int n[8][8] = { 0 }, pairs = 0, most = 0, from = 0;

		memcpy(p.rack, t[k].rack, sizeof(t[k].rack));
		assert_int_equal(fct_trace_make(&p, flows, FCT_FLOWS_MAX), FCT_FLOWS_MAX);
		for (i = 0; i < FCT_FLOWS_MAX; i++) {
			assert_true(flows[i].src < p.hosts && flows[i].dst < p.hosts);
			n[flows[i].src][flows[i].dst]++;
		}
		for (i = 0; i < p.hosts; i++) {
			unsigned int sent = 0, others = 0;

			for (j = 0; j < p.hosts; j++) {
				bool allowed = i != j && (k < 2 || p.rack[i] != p.rack[j]);

				assert_true(allowed == !!n[i][j]);
				pairs += allowed;
				others += allowed;
				sent += n[i][j];
			}
			for (j = 0; j < p.hosts; j++)
				assert_true(!n[i][j] ||
					    fabs((double)n[i][j] * others / sent - 1) < 0.3);
			assert_float_equal((double)sent * p.hosts / FCT_FLOWS_MAX, 1, 0.1);
			most += sent;
			from++;
		}
		assert_int_equal(pairs, t[k].pairs);
		assert_int_equal(most, FCT_FLOWS_MAX);
		assert_int_equal(from, p.hosts);
	}
}

/*
 * The same seed gives the same flows, at other times if the load differs; another seed gives other
 * flows.
 */
static void trace_make__seed(void **state)
{
	struct fct_plan p = { .seed = 42,
			      .sizes = &sizes,
			      .scale = 0.1,
			      .per_second = 1000,
			      .hosts = 8,
			      .flows = 1000 };
	static struct fct_flow again[1000];
	unsigned int i, same = 0;

	fct_sizes_named(&sizes, "websearch");
	assert_int_equal(fct_trace_make(&p, flows, FCT_FLOWS_MAX), 1000);
	assert_int_equal(fct_trace_make(&p, again, 1000), 1000);
	assert_memory_equal(flows, again, sizeof(again));
	p.per_second = 500;
	fct_trace_make(&p, again, 1000);
	for (i = 0; i < 1000; i++) {
		assert_true(flows[i].bytes == again[i].bytes && flows[i].src == again[i].src &&
			    flows[i].dst == again[i].dst);
		assert_float_equal((double)again[i].start_ns / 2, (double)flows[i].start_ns, 2);
	}
	p.seed = 43;
	fct_trace_make(&p, again, 1000);
	for (i = 0; i < 1000; i++)
		same += flows[i].bytes == again[i].bytes && flows[i].src == again[i].src &&
			flows[i].dst == again[i].dst;
	assert_true(same < 10);
}

/* Limited by number, by time, by both, and by the room of the array. */
static void trace_make__limits(void **state)
{
	static const struct {
		uint32_t flows;
		uint64_t span_ns;
		uint32_t max, least, most;
	} t[] = {
		{ 1, 0, 10, 1, 1 },
		{ 10, 0, 10, 10, 10 },
		{ 11, 0, 10, 11, 11 },
		{ 0, 1000000000, 2000, 800, 1200 },
		{ 5, 1000000000, 10, 5, 5 },
		{ 5000, 1000000000, 5000, 800, 1200 },
		{ 0, 1000000000, 100, 101, 101 },
		{ 0, 1, 10, 0, 0 },
	};
	uint32_t i, n, k;

	fct_sizes_named(&sizes, "websearch");
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct fct_plan p = { .seed = 1,
				      .sizes = &sizes,
				      .scale = 1,
				      .per_second = 1000,
				      .hosts = 2,
				      .flows = t[i].flows,
				      .span_ns = t[i].span_ns };

		memset(flows, 0, sizeof(flows));
		n = fct_trace_make(&p, flows, t[i].max);
		assert_true(n >= t[i].least && n <= t[i].most);
		for (k = 0; t[i].span_ns && k < n && k < t[i].max; k++)
			assert_true(flows[k].start_ns < t[i].span_ns);
		assert_int_equal(flows[t[i].max].bytes, 0);
	}
}

static int trace_text(const char *text, unsigned int hosts, uint32_t max, char *why, size_t size)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int n;

	assert_non_null(f);
	why[0] = '\0';
	n = fct_trace_read(f, hosts, flows, max, why, size);
	fclose(f);
	return n;
}

static void trace__there_and_back(void **state)
{
	struct fct_plan p = { .seed = 3,
			      .sizes = &sizes,
			      .scale = 1,
			      .per_second = 1000,
			      .hosts = 64,
			      .flows = 500 };
	static struct fct_flow made[500];
	char *text = NULL, why[200];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	fct_sizes_named(&sizes, "datamining");
	assert_int_equal(fct_trace_make(&p, made, 500), 500);
	fct_trace_write(f, made, 500);
	fclose(f);
	assert_int_equal(trace_text(text, 64, 500, why, sizeof(why)), 500);
	assert_memory_equal(flows, made, sizeof(made));
	assert_int_equal(trace_text(text, 64, 499, why, sizeof(why)), -1);
	assert_string_equal(why, "line 501: more than 499 flows");
	free(text);
}

#define NOT_FIVE \
	"line 1: not \"id src dst start_ns bytes\", nor with \"deadline_us coflow\" behind it"

static void trace_read__lines(void **state)
{
	static const struct {
		const char *text;
		int n;
		const char *why;
	} t[] = {
		{ "1 3 7 1204885 14600", 1, "" },
		{ "#\n\n1\t3 7 0 1 # x\n2 7 3 0 1000000000000000\r\n", 2, "" },
		{ "1 1 8 86399999999999 1\n", 1, "" },
		{ "1 3 7 5 6 4294967295 10\n", 1, "" },
		{ "1 3 7 5 6 0 0 # x\n2 3 7 5 6\n", 2, "" },
		{ "1 3 7 5 6 4294967296 1\n", -1,
		  "line 1: a deadline of 4294967296 us; at most 4294967295" },
		{ "1 3 7 5 6 1 11\n", -1, "line 1: coflow 11; at most 10" },
		{ "1 3 7 5 6 7 8 9\n", -1, NOT_FIVE },
		{ "#\n", -1, "no flows in it" },
		{ "1 3 7 5\n", -1, NOT_FIVE },
		{ "1 3 7 5 6 7\n", -1, NOT_FIVE },
		{ "1 3 7 5 6x\n", -1, NOT_FIVE },
		{ "1 3 7 -5 6\n", -1, NOT_FIVE },
		{ "1 3 7 5 1234567890123456789\n", -1, NOT_FIVE },
		{ "2 3 7 5 6\n", -1, "line 1: flow 2 where 1 comes next" },
		{ "1 3 7 5 6\n1 3 7 5 6\n", -1, "line 2: flow 1 where 2 comes next" },
		{ "1 0 7 5 6\n", -1, "line 1: there is no h0 among 8 hosts" },
		{ "1 9 7 5 6\n", -1, "line 1: there is no h9 among 8 hosts" },
		{ "1 7 9 5 6\n", -1, "line 1: there is no h9 among 8 hosts" },
		{ "1 7 0 5 6\n", -1, "line 1: there is no h0 among 8 hosts" },
		{ "1 7 7 5 6\n", -1, "line 1: h7 sends to itself" },
		{ "1 3 7 5 6\n\n2 3 7 4 6\n", -1, "line 3: comes before the flow before it" },
		{ "1 3 7 86400000000000 6\n", -1,
		  "line 1: comes more than a day after the beginning" },
		{ "1 3 7 5 0\n", -1, "line 1: a flow of 0 bytes" },
		{ "1 3 7 5 1000000000000001\n", -1, "line 1: a flow of 1000000000000001 bytes" },
	};
	char why[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(trace_text(t[i].text, 8, 10, why, sizeof(why)), t[i].n);
		assert_string_equal(why, t[i].why);
	}
	assert_int_equal(trace_text("1 3 7 1204885 14600", 8, 10, why, sizeof(why)), 1);
	assert_true(flows[0].src == 2 && flows[0].dst == 6 && flows[0].start_ns == 1204885 &&
		    flows[0].bytes == 14600 && !flows[0].deadline_us && !flows[0].coflow);
	assert_int_equal(trace_text("1 3 7 1204885 14600 250 9", 8, 10, why, sizeof(why)), 1);
	assert_true(flows[0].bytes == 14600 && flows[0].deadline_us == 250 && flows[0].coflow == 9);
}

/*
 * Deadlines and coflows change neither sizes nor ends. Widths have their mean. Flows of a coflow
 * start at once, and coflows are a Poisson process with the rate of the flows divided by the width.
 */
static void trace_make__extras(void **state)
{
	struct fct_plan p = { .seed = 9,
			      .sizes = &sizes,
			      .scale = 0.1,
			      .per_second = 1000,
			      .hosts = 8,
			      .flows = FCT_FLOWS_MAX,
			      .mss = 1448,
			      .rate_bps = 50000000 };
	static struct fct_flow plain[FCT_FLOWS_MAX];
	unsigned int i, n[2 * 4] = { 0 }, width = 0, coflows, with = 0;
	double sum = 0;

	fct_sizes_named(&sizes, "websearch");
	p.deadline_bytes = 20000;
	assert_int_equal(fct_trace_make(&p, plain, FCT_FLOWS_MAX), FCT_FLOWS_MAX);
	p.width = 4;
	p.deadline_us = 20000;
	assert_int_equal(fct_trace_make(&p, flows, FCT_FLOWS_MAX), FCT_FLOWS_MAX);
	for (i = 0; i < FCT_FLOWS_MAX; i++) {
		assert_true(flows[i].bytes == plain[i].bytes && flows[i].src == plain[i].src &&
			    flows[i].dst == plain[i].dst);
		assert_true(!plain[i].coflow && !plain[i].deadline_us);
		assert_true(!flows[i].deadline_us == (flows[i].bytes > 20000));
		assert_int_equal(
			flows[i].coflow,
			i ? flows[i - 1].coflow + (flows[i].start_ns != flows[i - 1].start_ns) : 1);
		if (i && flows[i].coflow != flows[i - 1].coflow) {
			assert_in_range(width, 1, 7);
			n[width]++;
			width = 0;
		}
		width++;
		with += flows[i].deadline_us != 0;
		sum += flows[i].deadline_us;
	}
	coflows = flows[FCT_FLOWS_MAX - 1].coflow;
	assert_float_equal((double)FCT_FLOWS_MAX / coflows, 4, 0.1);
	for (i = 1; i < 8; i++)
		assert_float_equal(7.0 * n[i] / coflows, 1, 0.1);
	assert_float_equal((double)flows[FCT_FLOWS_MAX - 1].start_ns / 1e9 * 1000 / FCT_FLOWS_MAX,
			   1, 0.05);
	/* The floor of 1.25 times 3.4 ms raises the mean a little. */
	assert_float_equal(sum / with, 20000, 600);
	/* The first gap and the first deadline use different random numbers. */
	p.width = 0;
	p.per_second = 1;
	p.deadline_us = 1e6;
	p.deadline_bytes = UINT64_MAX;
	assert_int_equal(fct_trace_make(&p, flows, FCT_FLOWS_MAX) > 0, 1);
	assert_true(fabs((double)flows[0].start_ns / 1e3 - flows[0].deadline_us) > 1000);
}

static void trace__extras_there_and_back(void **state)
{
	struct fct_plan p = { .seed = 3,
			      .sizes = &sizes,
			      .scale = 0.1,
			      .per_second = 1000,
			      .hosts = 8,
			      .flows = 500,
			      .mss = 1448,
			      .rate_bps = 50000000,
			      .width = 3,
			      .deadline_us = 5000,
			      .deadline_bytes = 1 << 20 };
	static struct fct_flow made[500];
	char *text = NULL, why[200];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	fct_sizes_named(&sizes, "websearch");
	assert_int_equal(fct_trace_make(&p, made, 500), 500);
	fct_trace_write(f, made, 500);
	fclose(f);
	assert_int_equal(trace_text(text, 8, 500, why, sizeof(why)), 500);
	assert_memory_equal(flows, made, sizeof(made));
	free(text);
}

static void trace_stretch__times(void **state)
{
	struct fct_flow f[] = { { .start_ns = 0, .bytes = 1 },
				{ .start_ns = 1000, .bytes = 2 },
				{ .start_ns = 4000000000, .bytes = 3 } };

	fct_trace_stretch(f, 3, 2.5);
	assert_true(f[0].start_ns == 0 && f[1].start_ns == 2500 && f[2].start_ns == 10000000000 &&
		    f[2].bytes == 3);
}

/* ---- coflows of files ---- */

static int coflows_text(const char *text, struct fct_plan *p, uint32_t max, char *why, size_t size)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int n;

	assert_non_null(f);
	why[0] = '\0';
	n = fct_coflows_read(f, p, flows, max, why, size);
	fclose(f);
	return n;
}

static void coflows_read__lines(void **state)
{
	static const struct {
		const char *text;
		int n;
		const char *why;
	} t[] = {
		/* the example at the top of the header */
		{ "150 526\n1 0 2 22 7 1 65:1.0\n", 2, "" },
		{ "1 0 2 22 7 1 65:1.0", 2, "" },
		{ "1 10 2 22 7 1 65:1.0", 2, "" }, /* no header line */
		{ "1 0 1 100000 1 100001:1\n", -1,
		  "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 1 100001 1 65:1\n", -1,
		  "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 1 100000 1 65:1\n", 1, "" },
		{ "1 0 1 1 1 9:1.0\n2 5 1 1 1 2:3\n", 1, "" }, /* Ports 1 and 9 are one host. */
		/* All of them are between the same two hosts. */
		{ "1 0 2 1 9 2 2:1 10:1\n", 1, "" },
		{ "1 0 1 1 1 2:0\n", -1, "no coflows in it between these hosts" },
		{ "150 526\n", -1, "no coflows in it between these hosts" },
		{ "1 0 1 1\n", -1, "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 1 1 1 2\n", -1, "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 1 1 1 2:x\n", -1, "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 0 1 2:1\n", -1, "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 0 1 1 1 2:1 3:1\n", -1,
		  "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "1 -1 1 1 1 2:1\n", -1,
		  "line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "9 9\n1 5 1 1 1 2:1\n2 4 1 1 1 2:1\n", -1,
		  "line 3: comes before the coflow before it" },
		{ "1 86400000 1 1 1 2:1\n", -1,
		  "line 1: comes more than a day after the beginning" },
		{ "1 0 2 1 2 2 3:1 4:1\n", -1, "line 1: this coflow alone has more than 3 flows" },
		{ "1 0 1 1 1 2:1\n2 1 3 1 2 3 1 4:1\n", 1, "" }, /* whole coflows only */
	};
	struct fct_plan p = { .hosts = 8, .scale = 1 };
	char why[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(coflows_text(t[i].text, &p, 3, why, sizeof(why)), t[i].n);
		assert_string_equal(why, t[i].why);
	}
	assert_int_equal(coflows_text(t[0].text, &p, 3, why, sizeof(why)), 2);
	assert_true(flows[0].src == 6 && flows[0].dst == 1 && flows[0].bytes == 500000 &&
		    flows[0].coflow == 1 && flows[1].src == 7 && flows[1].dst == 1 &&
		    flows[1].bytes == 500000);
	/*
	 * Two of three mappers are on host 1: two thirds of 3 MB, scaled to tenths, and only the
	 * coflow that goes to another rack.
	 */
	p.scale = 0.1;
	p.flows = 1;
	p.rack[2] = p.rack[4] = 1;
	assert_int_equal(
		coflows_text("7 2 1 3 1 5:3\n8 3 3 1 9 2 1 4:3\n", &p, 3, why, sizeof(why)), 1);
	assert_true(flows[0].src == 1 && flows[0].dst == 4 && flows[0].bytes == 200000 &&
		    flows[0].start_ns == 3000000 && flows[0].coflow == 1);
}

/* ---- completion times ---- */

static void wire__edges(void **state)
{
	static const uint64_t t[][2] = { { 1, 67 },      { 1447, 1513 }, { 1448, 1514 },
					 { 1449, 1581 }, { 2896, 3028 }, { 2897, 3095 },
					 { 3000, 3198 } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(fct_wire(t[i][0], 1448), t[i][1]);
}

static void ideal__edges(void **state)
{
	static const struct {
		uint64_t bytes;
		double ns;
	} t[] = { { 1, 40000 },     { 1448, 40000 },  { 1449, 161120 },
		  { 2896, 161120 }, { 2897, 282240 }, { 3000, 282240 } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_float_equal(fct_ideal_ns(t[i].bytes, 1448, 100000000, 40000), t[i].ns, 0.1);
}

static void bucket__edges(void **state)
{
	static const uint64_t edges[] = { 1000, 10000 };
	static const struct {
		uint64_t bytes;
		unsigned int bucket;
	} t[] = {
		{ 1, 0 }, { 1000, 0 }, { 1001, 1 }, { 10000, 1 }, { 10001, 2 }, { UINT64_MAX, 2 }
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(fct_bucket(edges, 2, t[i].bytes), t[i].bucket);
	assert_int_equal(fct_bucket(edges, 0, 1), 0);
}

/* Ranks are rounded up. */
static void quantile__ranks(void **state)
{
	static const struct {
		uint32_t n;
		unsigned int per_mille;
		double want; /* quantile of 1, 2, ... n */
	} t[] = {
		{ 0, 500, 0 },      { 1, 0, 1 },          { 1, 500, 1 },     { 1, 1000, 1 },
		{ 2, 500, 1 },      { 2, 501, 2 },        { 3, 500, 2 },     { 50, 990, 50 },
		{ 100, 990, 99 },   { 101, 990, 100 },    { 100, 991, 100 }, { 1000, 950, 950 },
		{ 1000, 999, 999 }, { 1000, 1000, 1000 },
	};
	double v[1000];
	size_t i;

	for (i = 0; i < 1000; i++)
		v[i] = (double)i + 1;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_float_equal(fct_quantile(v, t[i].n, t[i].per_mille), t[i].want, 0);
}

/* Mean, share above the mean, and the floor: 1.25 times 80 ns x 3198 bytes. */
static void deadline__drawn(void **state)
{
	struct rnd r = rnd_seeded("deadline__drawn");
	unsigned int i, above = 0;
	const unsigned int n = 100000;
	double sum = 0;

	assert_int_equal(fct_deadline_us(3000, 1448, 100000000, 1000, 0), 320); /* 319.8 */
	/* 1000 ln 2 = 693.1 */
	assert_int_equal(fct_deadline_us(3000, 1448, 100000000, 1000, 0.5), 694);
	assert_int_equal(fct_deadline_us(1, 1448, 1000000000000, 1, 0), 1);
	assert_true(fct_deadline_us(UINT64_C(1000000000000), 1448, 1000000, 1, 0) == UINT32_MAX);
	for (i = 0; i < n; i++) {
		double v =
			fct_deadline_us(1, 1448, 1000000000000, 50000, (i + fct_random(&r.x)) / n);

		sum += v;
		above += v > 50000;
	}
	assert_float_equal(sum / n, 50000, 100);
	assert_float_equal((double)above / n, exp(-1), 0.001);
}

static void missed__edges(void **state)
{
	static const struct fct_flow f[] = { { .deadline_us = 0 },
					     { .deadline_us = 10 },
					     { .deadline_us = 10 },
					     { .deadline_us = 10 } };
	static const double fct[] = { 1e12, 9999, 10000, 10001 };
	uint32_t of;

	assert_int_equal(fct_missed(f, fct, 4, &of), 1);
	assert_int_equal(of, 3);
	assert_int_equal(fct_missed(f, fct, 1, &of), 0);
	assert_int_equal(of, 0);
}

static void coflows__spans(void **state)
{
	static const struct fct_flow f[] = {
		{ .start_ns = 0, .coflow = 1 },     { .start_ns = 5, .coflow = 2 },
		{ .start_ns = 10000, .coflow = 1 }, { .start_ns = 20000 },
		{ .start_ns = 20000, .coflow = 6 }, { .start_ns = 1, .coflow = 7 }
	};
	static const double fct[] = { 50000, 7, 45000, 1, 30, 1 };
	double cct[7], first[7];

	assert_int_equal(fct_coflows(f, fct, 6, cct, first), 3); /* 7 is above 6 */
	assert_float_equal(cct[0], 55000, 0);                    /* the header's example */
	assert_float_equal(cct[1], 7, 0);
	assert_float_equal(cct[2], 30, 0);
	assert_int_equal(fct_coflows(f + 3, fct + 3, 1, cct, first), 0);
	assert_int_equal(fct_coflows(f, fct, 0, cct, first), 0);
}

/*
 * If all flows start at once, a coflow takes as long as its slowest flow, in any order. It never
 * takes less than any of its flows.
 */
static void coflows__property(void **state)
{
	struct rnd r = rnd_seeded("coflows__property");
	static struct fct_flow f[200];
	static double fct[200], cct[201], first[201], most[201];
	unsigned int round, i, n;

	for (round = 0; round < 200; round++) {
		bool at_once = round % 2;

		memset(most, 0, sizeof(most));
		for (i = 0; i < 200; i++) {
			/* Each coflow has a flow. */
			f[i].coflow = i < 20 ? 20 - i : 1 + (uint32_t)(fct_random(&r.x) * 20);
			f[i].start_ns = at_once ? f[i].coflow * 1000
						: (uint64_t)(fct_random(&r.x) * 1e6);
			fct[i] = 1 + floor(fct_random(&r.x) * 1e6);
			most[f[i].coflow] = fmax(most[f[i].coflow], fct[i]);
		}
		n = fct_coflows(f, fct, 200, cct, first);
		assert_int_equal(n, 20);
		for (i = 0; i < n; i++)
			assert_true(at_once ? cct[i] == most[i + 1]
					    : cct[i] >= most[i + 1] && cct[i] < 2e6 + 2);
	}
}

static void median__edges(void **state)
{
	double v[] = { 5, 1, 9, 2 };

	assert_float_equal(fct_median(v, 0), 0, 0);
	assert_float_equal(fct_median(v, 1), 5, 0);
	assert_float_equal(fct_median(v, 4), 3.5, 0);
	assert_float_equal(v[0], 1, 0);
	assert_float_equal(v[3], 9, 0);
	assert_float_equal(fct_median(v, 3), 2, 0);
}

static void summarize__any_order(void **state)
{
	double v[] = { 9, 1, 5, 3, 7, 2, 8, 4, 6, 55 };
	struct fct_summary s = fct_summarize(v, 10);

	assert_int_equal(s.n, 10);
	assert_float_equal(s.mean, 10, 0);
	assert_float_equal(s.p50, 5, 0);
	assert_float_equal(s.p95, 55, 0);
	assert_float_equal(s.p99, 55, 0);
	assert_float_equal(s.max, 55, 0);
	assert_float_equal(v[0], 1, 0);
	s = fct_summarize(v, 0);
	assert_int_equal(s.n, 0);
	assert_float_equal(s.mean, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_read__good),
		cmocka_unit_test(sizes_read__bad),
		cmocka_unit_test(sizes_read__limits),
		cmocka_unit_test(sizes_at__table),
		cmocka_unit_test(sizes_named__means),
		cmocka_unit_test(sizes_scaled__edges),
		cmocka_unit_test(sizes__sampled),
		cmocka_unit_test(random__moments),
		cmocka_unit_test(trace_make__poisson),
		cmocka_unit_test(trace_make__pairs),
		cmocka_unit_test(trace_make__seed),
		cmocka_unit_test(trace_make__limits),
		cmocka_unit_test(trace__there_and_back),
		cmocka_unit_test(trace_read__lines),
		cmocka_unit_test(wire__edges),
		cmocka_unit_test(ideal__edges),
		cmocka_unit_test(bucket__edges),
		cmocka_unit_test(quantile__ranks),
		cmocka_unit_test(summarize__any_order),
		cmocka_unit_test(sizes_wire_mean__by_hand),
		cmocka_unit_test(trace_make__extras),
		cmocka_unit_test(trace__extras_there_and_back),
		cmocka_unit_test(trace_stretch__times),
		cmocka_unit_test(coflows_read__lines),
		cmocka_unit_test(deadline__drawn),
		cmocka_unit_test(missed__edges),
		cmocka_unit_test(coflows__spans),
		cmocka_unit_test(coflows__property),
		cmocka_unit_test(median__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
