/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loop of the tests that hold a program in the kernel against the same source compiled natively
 * (native_util.h): between two frames the clock may advance and the test does what it likes to both
 * sides; then both get one frame, and are compared.
 *
 *	static const struct native_test test = { prepare, between_frames, next_frame, same_state };
 *	const struct native_side host = { .xdp = sk->progs.bl_host_xdp, ... };
 *
 *	frames = native_drive("a host", &host, &test);
 *	HAVE_MET(frames, BL_R_STORED, ...);
 *
 * A test includes this after the header with its skeleton, and after auth_util.h if it has one.
 */
#ifndef BARLINE_TEST_NATIVE_DRIVE_H
#define BARLINE_TEST_NATIVE_DRIVE_H

#include "maps/fence_abi.h"
#include "tests/prog/native_util.h"

#define NATIVE_ALL 1024 /* frames until everything is compared, and not only what changes often */

/** struct native_side - the program under test, in the kernel and natively. */
struct native_side {
	const struct bpf_program *xdp, *fence;
	int (*xdp_natively)(struct xdp_md *ctx);
	int (*fence_natively)(struct bl_fence_arg *a);
	const struct bpf_map *clock, *counts;
	struct bl_counts *counted; /* room for the counters of each key */
	__u32 keys;                /* counters of one reason: of frames, and as many of bytes */
	__u32 count0;              /* the one of the frames of place 0 (struct native_test) */
};

/** struct native_test - what a test does; all of it draws from rnd(). */
struct native_test {
	/* Makes the native maps what those of the kernel are, except for the counters. */
	void (*prepare)(void);
	/* Before frame number @frame; both_clocks_at() was called if the clock advances. */
	void (*between)(__u64 frame);
	/*
	 * Makes the next frame. Returns its place: it comes from net.ifindex[place], and is counted
	 * under the key @count0 + place.
	 */
	__u32 (*frame_in)(struct frame *in);
	/* Fails unless both sides are the same; @all: also what hardly ever changes. */
	void (*same_state)(bool all);
};

static struct native_side side; /* of the run */
/* what the counters of the kernel were when they were compared last */
static __u64 native_last[BL_R_COUNT * 2 * COUNT_KEYS_MAX];

MAYBE_UNUSED static void copy_counts(void)
{
	static __u64 v[2 * COUNT_KEYS_MAX];
	__u32 r, k, places = side.keys / 2;

	assert_true(bpf_map__value_size(side.counts) <= sizeof(v));
	counts_take(side.counts, side.counted);
	for (r = 0; r < BL_R_COUNT; r++) {
		for (k = 0; k < places; k++) {
			v[k] = side.counted[k].n[r];
			v[places + k] = BL_BEACON_REASON(r) ? 0 : side.counted[k].bytes[r];
		}
		memcpy(native_last + r * side.keys, v, side.keys * sizeof(*v));
		native_put("counts", r, v);
	}
}

MAYBE_UNUSED static void put_both(const struct bpf_map *map, __u32 key, const void *value)
{
	map_put(map, key, value);
	native_put(bpf_map__name(map), key, value);
}

/* Bus time of both; the native clock stands still at the time that was set. */
MAYBE_UNUSED static void both_clocks_at(__u64 bus)
{
	struct bl_clock c;

	clock_at(side.clock, bus);
	map_get(side.clock, 0, &c);
	native_put("clock", 0, &c);
	native_now_ns = c.seg[1].mono_ns;
}

static __u64 fence_epoch; /* of the last command that may have been obeyed */

/* Draws a command of the controller, in its ranges or not. The caller adds port and bars. */
MAYBE_UNUSED static struct bl_fence_arg random_fence(void)
{
	__u64 epoch = below(8) ? fence_epoch : fence_epoch + below(3) - 1;

	return (struct bl_fence_arg){ .epoch = epoch, .kind = below(BL_FENCE_EMPTY + 2) };
}

/* Gives the command to both; @deaths: how often its port has died. */
MAYBE_UNUSED static void fence_both(struct bl_fence_arg *a, __u32 deaths)
{
	struct bl_fence_arg b;
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = a, .ctx_size_in = sizeof(*a));

	a->death = deaths + below(4) - 1;
	if (a->epoch > fence_epoch && a->epoch < 1000)
		fence_epoch = a->epoch;
	b = *a;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(side.fence), &o), 0);
	side.fence_natively(&b);
	assert_memory_equal(a, &b, sizeof(b));
}

static void native_one_frame(const struct native_test *t)
{
	struct frame in, out;
	const __u64 *count;
	enum bl_reason why;
	struct bl_frame f;
	__u32 place = t->frame_in(&in);
	__u64 was;

	why = bl_parse(in.p, in.p + in.n, BL_PORT_BASE, BL_PORT_COUNT, &f);
	count = (const __u64 *)native_get("counts", why) + side.count0 + place;
	was = *count;
	run_both(side.xdp, side.xdp_natively, net.ifindex[place], &in, &out);
	same_reason(&in, was, *count, why);
}

/* Runs a test for as long as goes_on() says. Returns the number of frames. */
MAYBE_UNUSED static __u64 native_drive(const char *who, const struct native_side *s,
				       const struct native_test *t)
{
	__u64 frames = 0, since = mono_now();
	static char at[64];

	side = *s;
	assert_true(side.keys <= 2 * COUNT_KEYS_MAX);
	rnd_begin(who);
	native_cpu = (__u32)net.cpu;
	t->prepare();
	copy_counts();
	both_clocks_at(T0);
	for (; goes_on(frames, since); frames++) {
		snprintf(at, sizeof(at), "frame %llu", (unsigned long long)frames);
		doing = at;
		if (below(8) == 0)
			both_clocks_at(bus_now + below(2 * BEACON_NS) +
				       (below(64) ? 0 : below(5 * DEAD_NS)));
		t->between(frames);
		native_one_frame(t);
		t->same_state(frames % NATIVE_ALL == 0);
		same_counts(side.counts, native_last, side.keys, frames % NATIVE_ALL == 0);
	}
	t->same_state(true);
	same_counts(side.counts, native_last, side.keys, true);
	print_message("%s: %llu frames in %llu ms\n", who, (unsigned long long)frames,
		      (unsigned long long)(mono_now() - since) / 1000000);
	doing = "";
	return frames;
}

#endif
