/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the tests that hold a program in the kernel against the same source compiled natively
 * (tests/native/native.h): random frames near every edge, and maps that are copied and compared.
 *
 * A difference between the two is a defect of the compiler, of the verifier or the JIT, of memory
 * that a program reads without having written it, or of the native core: then everything that unit
 * tests and fuzzers show of that core says nothing about the program.
 *
 * BL_SEED=n repeats a run; BL_FRAMES=n sets its length, and BL_NATIVE_SECONDS=n makes it last so
 * long (`make fuzz-campaign`).
 */
#ifndef BARLINE_TEST_NATIVE_UTIL_H
#define BARLINE_TEST_NATIVE_UTIL_H

#include "tests/native/native.h"
#include "tests/prog/prog_util.h"

#define FRAMES 30000

static __u64 rnd_state;

MAYBE_UNUSED static __u64 rnd(void)
{
	__u64 z = (rnd_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

MAYBE_UNUSED static __u32 below(__u32 n)
{
	return (__u32)(rnd() % n);
}

MAYBE_UNUSED static void rnd_begin(const char *who)
{
	const char *seed = getenv("BL_SEED");

	rnd_state = seed ? strtoull(seed, NULL, 0) : mono_now();
	print_message("%s: BL_SEED=%llu\n", who, (unsigned long long)rnd_state);
}

/* Whether a run that has had @frames frames and began at @since goes on. */
MAYBE_UNUSED static bool goes_on(__u64 frames, __u64 since)
{
	const char *most = getenv("BL_FRAMES"), *seconds = getenv("BL_NATIVE_SECONDS");

	if (seconds)
		return mono_now() - since < strtoull(seconds, NULL, 0) * 1000000000ULL;
	return frames < (most ? strtoull(most, NULL, 0) : FRAMES);
}

/* ---- maps ---- */

static __u8 value_of[65536];

/* Copies the entries of an array from the kernel. */
MAYBE_UNUSED static void copy_map(const struct bpf_map *map)
{
	struct native_map *m = native_map_named(bpf_map__name(map));
	__u32 i;

	if (!m)
		fail_msg("the native program has no map %s", bpf_map__name(map));
	assert_true(bpf_map__value_size(map) <= sizeof(value_of));
	for (i = 0; i < bpf_map__max_entries(map) && i < m->max; i++) {
		map_get(map, i, value_of);
		native_put(m->name, i, value_of);
	}
}

/* Fails unless the first @n entries of an array are the same in the kernel. */
MAYBE_UNUSED static void same_map(const struct bpf_map *map, __u32 n)
{
	__u32 size = bpf_map__value_size(map), i, at;

	for (i = 0; i < n && i < bpf_map__max_entries(map); i++) {
		const __u8 *want = native_get(bpf_map__name(map), i);

		map_get(map, i, value_of);
		if (!memcmp(value_of, want, size))
			continue;
		for (at = 0; at < size && value_of[at] == want[at]; at++)
			;
		fail_msg("%s: entry %u of %s differs from byte %u on: %02x in the kernel, %02x "
			 "natively",
			 doing, i, bpf_map__name(map), at, value_of[at], want[at]);
	}
}

/*
 * Fails unless the counters of the kernel have moved as the native ones; @last has what they were
 * when this was called last, and @keys is their number of keys. With @all, counters that did not
 * move natively are read, too.
 */
MAYBE_UNUSED static void same_counts(const struct bpf_map *map, __u64 *last, __u32 keys, bool all)
{
	int cpus = libbpf_num_possible_cpus(), c;
	__u32 r, k, each = bpf_map__value_size(map) / sizeof(__u64);
	static __u64 sums[65536];

	assert_true((__u32)cpus * each <= sizeof(sums) / sizeof(*sums));
	for (r = 0; r < BL_R_COUNT; r++) {
		const __u64 *want = native_get("counts", r);

		if (!all && !memcmp(want, last + r * keys, keys * sizeof(*want)))
			continue;
		map_get(map, r, sums);
		for (k = 0; k < keys; k++) {
			__u64 sum = 0;

			for (c = 0; c < cpus; c++)
				sum += sums[(__u32)c * each + k];
			if (want[k] != last[r * keys + k])
				reason_seen[r] = true;
			if (sum != want[k])
				fail_msg("%s: counter %s of key %u is %llu, and natively %llu",
					 doing, reason_name[r], k, sum, want[k]);
		}
		memcpy(last + r * keys, want, keys * sizeof(*want));
	}
}

/*
 * Fails unless both programs have counted all of these: otherwise the frames are no good. A run
 * that was told to be shorter need not have met all of them.
 */
MAYBE_UNUSED static void have_met(__u64 frames, const enum bl_reason *r, size_t n)
{
	while (frames >= FRAMES && n--)
		if (!reason_seen[r[n]])
			fail_msg("no frame was counted as %s", reason_name[r[n]]);
}
#define HAVE_MET(frames, ...)                               \
	have_met(frames, (enum bl_reason[]){ __VA_ARGS__ }, \
		 sizeof((enum bl_reason[]){ __VA_ARGS__ }) / sizeof(enum bl_reason))

/* ---- frames ---- */

/* A bus time near one of the edges that programs compare with. */
MAYBE_UNUSED static __u64 edge_time(__u64 bus, __u64 reg)
{
	static const __u64 by[] = { 0,
				    1,
				    2,
				    BOUND - 1,
				    BOUND,
				    BOUND + 1,
				    100000,
				    1000000,
				    10000000,
				    10000001,
				    BL_TS_OLD / 2,
				    BL_TS_OLD,
				    1ULL << 46,
				    (1ULL << 47) - 1,
				    1ULL << 47 };
	__u64 from = reg && below(2) ? reg : bus, d = by[below(sizeof(by) / sizeof(*by))];

	switch (below(8)) {
	case 0:
		return rnd();
	case 1:
	case 2:
		return from + d;
	case 3:
		return from - d;
	default: /* most are near the clock, so that registers rise */
		return bus - below(200000);
	}
}

/*
 * Makes a frame of a host or a neighbour on the link of port @from, with most fields right. @reg: a
 * register that its barriers may be near.
 */
MAYBE_UNUSED static void random_frame(struct frame *f, __u32 from, __u64 bus, __u64 reg)
{
	struct desc d = below(2) ? data_frame(from, below(6), bus, bus)
				 : data_frame6(from, below(6), bus, bus);
	__u32 k;

	if (below(3) == 0)
		d = beacon_frame(from, bus);
	d.ts = edge_time(bus, reg);
	d.b = edge_time(bus, reg);
	d.c = below(3) ? d.b : edge_time(bus, reg);
	d.psn = (__u32)rnd();
	d.csum = below(2);
	d.tags = below(6) ? below(2) : 2;
	d.ad = below(4) == 0;
	d.dport = BL_PORT_BASE + 9 + below(6) - (below(16) ? 0 : 20);
	d.sport = BL_PORT_BASE + below(16);
	d.body = below(8) ? below(64) : below(1700);
	if (d.op == BL_OP_BEACON) {
		d.tai = below(16) ? 37 : 36;
		d.node = below(16) ? d.node : 0x5a5a5a5au;
		d.port = (__u16)rnd();
	} else if (below(2)) {
		d.op = 1 + below(BL_OP_LIMIT);
	}
	if (below(4) == 0) {
		d.lanes = 1 + below(BL_LANES_MAX);
		d.lane = below(16) ? below(d.lanes) : below(8);
	}
	d.flag_byte = (__u8)(BL_F_LANES(d.lanes) | d.lane | (below(4) ? 0 : below(4) << 6));
	build(f, &d);
	for (k = below(5) ? 0 : 1 + below(4); k; k--)
		f->p[below(f->n)] ^= (__u8)(1 + below(255));
	if (below(16) == 0)
		f->n = below(2) ? f->n - below(f->n) : f->n + below(100);
	/* some kernels run no program on less than Ethernet's minimum */
	f->n = f->n < 60 ? 60 : f->n;
}

#ifdef BARLINE_TEST_AUTH_UTIL_H
/*
 * Seals a link frame of the neighbour at @port, nearly always as it should, so that both programs
 * have to compute its tag. Leaves other frames as they are.
 */
MAYBE_UNUSED static void seal_random(struct frame *in, __u32 port, __u64 bus)
{
	struct bl_frame f;
	__u32 epoch = below(16) ? EPOCH : EPOCH + 1;
	__u64 stamp = bus + 10000 * below(10) - 50000; /* some are repeated */

	if (bl_parse(in->p, in->p + in->n, BL_PORT_BASE, BL_PORT_COUNT, &f) != BL_R_NONE ||
	    f.opcode != BL_OP_BEACON || in->n < f.hdr_off + 56u)
		return;
	if (below(8) == 0) {
		memset(in->p + f.hdr_off, 0, below(2) * 6); /* no mark */
		return;
	}
	seal_under(in, f.hdr_off, test_key(port, false, epoch), epoch, below(3), stamp);
	if (below(16) == 0)
		in->p[f.hdr_off + below(48)] ^= (__u8)(1 + below(255));
}
#endif

/* Runs both programs on the frame. Fails unless both end with the same verdict and bytes. */
MAYBE_UNUSED static int run_both(const struct bpf_program *prog, int (*native)(struct xdp_md *),
				 __u32 ifindex, const struct frame *in, struct frame *out)
{
	static struct frame want;
	int kernel, verdict;

	want = *in;
	verdict = native_run(native, want.p, &want.n, ifindex);
	kernel = run_xdp(prog, ifindex, in, out);
	if (kernel != verdict)
		fail_msg("%s: verdict %d, and natively %d", doing, kernel, verdict);
	same_frame(out, &want);
	return kernel;
}

/*
 * Fails unless a frame that bl_parse() refuses has ended for that reason: @count_was and @count_is
 * are the native counters of the key that it was counted for.
 */
MAYBE_UNUSED static void same_reason(const struct frame *in, __u64 count_was, __u64 count_is,
				     enum bl_reason why)
{
	if (why != BL_R_NONE && why != BL_R_NOT_OURS && count_is != count_was + 1)
		fail_msg("%s: bl_parse() says %s for a frame of %u bytes, and the program does not",
			 doing, reason_name[why], in->n);
}

#endif
