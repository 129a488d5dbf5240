/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands of the controller at the very moment at which frames are judged by the clock. The
 * command has the next frame read the clock again; a frame that has just done so must not be taken
 * for one that is ahead of it.
 *
 * Two threads run the two programs on two CPUs: which of them comes first differs each time, and
 * the outcome must not. The window is some ns wide: of three million frames beside commands without
 * pause, six were refused in a switch (2026-11-29), before validate_times() kept the limit that it
 * had just read.
 */
#ifndef BARLINE_TEST_FENCE_RACE_H
#define BARLINE_TEST_FENCE_RACE_H

#include <pthread.h>
#include "loader/order/fence.h"
#include "maps/fence_abi.h"
#include "tests/prog/prog_util.h"

#define RACE_RUNS   1000
#define RACE_REPEAT 1000 /* frames of a run */

/** struct race - the thread that gives commands. */
struct race {
	struct bl_fence *fence;
	bool stop;
	int rc; /* of the first command that failed */
	unsigned long commands;
};

static void *race_commands(void *arg)
{
	struct race *r = arg;
	cpu_set_t all;

	/* The tests keep to the CPU of the lane that they look at. */
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE) && !r->rc) {
		struct bl_fence_arg a = { .epoch = 1, .kind = BL_FENCE_AGAIN };
		LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &a, .ctx_size_in = sizeof(a));

		r->rc = bpf_prog_test_run_opts(r->fence->prog, &o);
		r->rc = r->rc ? r->rc : a.result;
		__atomic_fetch_add(&r->commands, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Runs @prog on the beacon @d again and again, beside commands. Fails if a frame was refused as
 * ahead of the clock. @place: where frames are counted.
 */
static void race_fence(struct bl_fence *fence, const struct bpf_program *prog, __u32 ifindex,
		       const struct desc *d, const struct bpf_map *counts, __u32 place)
{
	static struct bl_counts was[COUNT_KEYS_MAX], is[COUNT_KEYS_MAX];
	struct race r = { .fence = fence };
	struct frame in;
	unsigned int k;
	pthread_t t;

	build(&in, d);
	counts_take(counts, was);
	assert_int_equal(pthread_create(&t, NULL, race_commands, &r), 0);
	while (!__atomic_load_n(&r.commands, __ATOMIC_RELAXED))
		;
	for (k = 0; k < RACE_RUNS; k++) {
		struct xdp_md ctx = { .data_end = in.n, .ingress_ifindex = ifindex };
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in.p, .data_size_in = in.n,
			    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = RACE_REPEAT);

		clock_stands();
		assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(prog), &o), 0);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(r.rc, 0);
	counts_take(counts, is);
	assert_int_equal(is[place].n[BL_R_BARRIER_AHEAD] - was[place].n[BL_R_BARRIER_AHEAD], 0);
}

#endif
