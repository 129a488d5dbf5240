/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far the barriers of hosts lag behind the bus clock, sampled while a phase runs.
 */
#include <jansson.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/rack/bench.h"
#include "core/clock_core.h"
#include "loader/node.h"
#include "maps/clock_abi.h"
#include "maps/host_abi.h"

#define LAG_SAMPLES (1u << 18)

struct bench_lag {
	unsigned int hosts; /* elements of @page and @clock */
	const struct bl_host_page *page[BENCH_MAX];
	const struct bl_clock *clock[BENCH_MAX];
	uint32_t n;
	uint32_t v[LAG_SAMPLES];
};

static const void *map_page(const struct bl_node_ref *ref, const char *map, uint32_t size)
{
	struct bl_err err;
	/* the kernel refuses to map a BPF map that is open for reading only */
	int fd = bl_map_open(ref, map, size, true, &err);
	void *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

struct bench_lag *bench_lag_new(void)
{
	struct bench_lag *l = calloc(1, sizeof(*l));
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n = l ? bl_nodes_find(&refs, 0, &err) : 0, i;

	for (i = 0; i < n && l->hosts < BENCH_MAX; i++) {
		if (refs[i].role != BL_ROLE_HOST)
			continue;
		l->page[l->hosts] =
			map_page(&refs[i], BL_MAP_HOST_PAGE, sizeof(struct bl_host_page));
		l->clock[l->hosts] = map_page(&refs[i], BL_MAP_CLOCK, sizeof(struct bl_clock));
		if (l->page[l->hosts] && l->clock[l->hosts])
			l->hosts++;
	}
	free(refs);
	return l;
}

void bench_lag_sample(struct bench_lag *l)
{
	unsigned int i;

	for (i = 0; l && i < l->hosts && l->n < LAG_SAMPLES; i++) {
		/* read before the clock, so that the lag is not negative for that reason */
		uint64_t b = BL_READ_ONCE(l->page[i]->barrier);
		uint64_t now = bl_clock_at(l->clock[i], bl_mono_ns());

		/*
		 * The barrier of a silent rack is ahead of the clock (core/order/promise_core.h),
		 * which counts as no lag.
		 */
		if (b)
			l->v[l->n++] = now < b                ? 0
				       : now - b > UINT32_MAX ? UINT32_MAX
							      : (uint32_t)(now - b);
	}
}

json_t *bench_lag_end(struct bench_lag *l)
{
	json_t *q;
	unsigned int i;

	if (!l)
		return json_null();
	q = bench_quantiles(l->v, l->n);
	for (i = 0; i < l->hosts; i++) {
		munmap((void *)(uintptr_t)l->page[i], 4096);
		munmap((void *)(uintptr_t)l->clock[i], 4096);
	}
	free(l);
	return q;
}
