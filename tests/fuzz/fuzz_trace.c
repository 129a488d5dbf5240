/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the readers of files that others publish and that `barline bench fct` reads: traces of
 * flows, traces of coflows, and distributions of sizes (bench/fct/). The input is the number of
 * hosts, and then the file, which is read as each of the three kinds.
 *
 * It checks what the bench relies on: flows are between different hosts that exist, in order of
 * time, with a size; a distribution rises to 1; a trace that is written and read again is the same.
 */
#include "fuzz.h"

#include <math.h>

#include "bench/fct/fct_sizes.h"
#include "bench/fct/fct_stat.h"
#include "bench/fct/fct_trace.h"

#define FLOWS 64

static struct fct_flow flow[FLOWS], again[FLOWS];
static struct fct_plan plan;
static struct fct_sizes sizes;

static void check_flows(int n, unsigned int hosts, const char *why)
{
	int i;

	FUZZ_CHECK(n == -1 || (n >= 1 && n <= FLOWS));
	FUZZ_CHECK(n != -1 || *why);
	for (i = 0; i < n; i++) {
		FUZZ_CHECK(flow[i].src < hosts && flow[i].dst < hosts && flow[i].bytes);
		FUZZ_CHECK(flow[i].src != flow[i].dst && flow[i].start_ns < FCT_SPAN_MAX_NS);
		FUZZ_CHECK(!i || flow[i].start_ns >= flow[i - 1].start_ns);
	}
}

static void trace(FILE *f, unsigned int hosts)
{
	char why[200] = "", text[8192] = "";
	int n = fct_trace_read(f, hosts, flow, FLOWS, why, sizeof(why)), k;
	FILE *to;

	check_flows(n, hosts, why);
	if (n < 0)
		return;
	to = fmemopen(text, sizeof(text), "w");
	FUZZ_CHECK(to);
	fct_trace_write(to, flow, (uint32_t)n);
	fclose(to);
	to = fmemopen(text, strlen(text), "r");
	FUZZ_CHECK(to);
	k = fct_trace_read(to, hosts, again, FLOWS, why, sizeof(why));
	fclose(to);
	FUZZ_CHECK(k == n && !memcmp(flow, again, (size_t)n * sizeof(*flow)));
}

static void coflows(FILE *f, unsigned int hosts)
{
	char why[200] = "";
	unsigned int i;

	memset(&plan, 0, sizeof(plan));
	plan.hosts = hosts;
	plan.scale = 0.5;
	for (i = 0; i < hosts; i++)
		plan.rack[i] = i & 1;
	check_flows(fct_coflows_read(f, &plan, flow, FLOWS, why, sizeof(why)), hosts, why);
}

static void distribution(FILE *f)
{
	char why[200] = "";
	unsigned int i;
	double mean;

	if (fct_sizes_read(&sizes, f, why, sizeof(why))) {
		FUZZ_CHECK(*why);
		return;
	}
	FUZZ_CHECK(sizes.n >= 1 && sizes.n <= FCT_POINTS_MAX);
	FUZZ_CHECK(sizes.p[sizes.n - 1].cdf == 1);
	for (i = 1; i < sizes.n; i++)
		FUZZ_CHECK(sizes.p[i].bytes >= sizes.p[i - 1].bytes &&
			   sizes.p[i].cdf >= sizes.p[i - 1].cdf);
	mean = fct_sizes_mean(&sizes);
	FUZZ_CHECK(isfinite(mean) && mean > 0);
	for (i = 0; i < 16; i++) {
		double at = fct_sizes_at(&sizes, i / 16.0);

		FUZZ_CHECK(at > 0 && at <= FCT_SIZE_MAX);
		FUZZ_CHECK(fct_sizes_scaled(at, 0.5) >= 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int hosts;
	FILE *f;

	if (size < 2)
		return 0;
	hosts = 2 + data[0] % 30;
	f = fmemopen((void *)(uintptr_t)(data + 1), size - 1, "r");
	FUZZ_CHECK(f);
	trace(f, hosts);
	rewind(f);
	coflows(f, hosts);
	rewind(f);
	distribution(f);
	fclose(f);
	return 0;
}
