/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A switch of 8 ports for the tests of core/pl2/pl2_switch_core.h: its accounts, and one call for
 * each kind of frame that arrives.
 */
#ifndef BARLINE_RESERVE_UTIL_H
#define BARLINE_RESERVE_UTIL_H

#include "tests/unit/unit.h"

#include "core/pl2/pl2_switch_core.h"

#define NPORTS  8
#define Q20(ns) ((__u32)((ns) * (1 << 20)))
#define NS_1G   Q20(8.0)            /* one byte at 1 Gbit/s */
#define SLOT    12304ULL            /* 1538 byte times at 1 Gbit/s */
#define T0      (1000010ULL * SLOT) /* ten slots into a word of the bitmap */

static struct bl_rsv_cfg cfg;
static struct bl_rsv_port port[NPORTS];
static struct bl_rsv_pair pair[NPORTS][NPORTS];
static struct bl_rsv_grant g;
static __u32 queued_bytes; /* byte times in the output's queue */

static inline void reset_switch(enum bl_allocator a)
{
	memset(port, 0, sizeof(port));
	memset(pair, 0, sizeof(pair));
	queued_bytes = 0;
	cfg = (struct bl_rsv_cfg){ .on = 1,
				   .allocator = a,
				   .ns_q20 = NS_1G,
				   .limit_bytes = 16 * 1538,
				   .refuse_ns = 100 * SLOT,
				   .far_ns = 400 * SLOT,
				   .lapse_ns = 1000000,
				   .pair_shift = 3 };
}

static inline __u32 send_early_rsv(__u32 in, __u32 out, __u32 bytes, __u32 seq, int early,
				   __u64 now)
{
	bl_rsv_ask(&cfg, &port[in], &port[out], &pair[in][out], bytes, seq, early, queued_bytes,
		   now, bl_rsv_slot_at(&cfg, now), &g);
	return g.reason;
}

static inline __u32 send_rsv(__u32 in, __u32 out, __u32 bytes, __u32 seq, __u64 now)
{
	return send_early_rsv(in, out, bytes, seq, 0, now);
}

/* A frame of @bytes byte times, of which the shortest takes 84. */
static inline enum bl_reason send_data(__u32 in, __u32 out, __u32 bytes, int early)
{
	assert_true(bytes >= BL_WIRE_BYTES(0));
	return bl_rsv_data(&port[in], &port[out], &pair[in][out], bytes - BL_WIRE_EXTRA, early);
}

/* Releases a part of the burst that was promised last. */
static inline enum bl_reason send_release(__u32 in, __u32 out, __u32 bytes, __u64 now)
{
	return bl_rsv_release(&cfg, &port[in], &port[out], &pair[in][out], bytes, pair[in][out].seq,
			      now);
}

/* An RSV that checks no other pair. */
static inline __u32 send_rsv_renewing(__u32 in, __u32 out, __u32 bytes, __u32 seq, __u64 now)
{
	struct bl_rsv_port nobody = { 0 };
	struct bl_rsv_pair none = { 0 };

	return bl_rsv_renew(&port[in], &port[out], &pair[in][out], &nobody, &none, bytes, seq, now);
}

/* An RSV of an input without promises checks the pair. */
static inline __u32 send_rsv_checking(__u32 in, __u32 out, __u64 now)
{
	struct bl_rsv_port nobody = { 0 };
	struct bl_rsv_pair none = { 0 };

	return bl_rsv_renew(&nobody, &port[out], &none, &port[in], &pair[in][out], 0, 0, now);
}

static inline void expect_granted(__u64 in_wait, __u64 out_wait, __u32 flags)
{
	assert_int_equal(g.reason, BL_R_RSV_GRANTED);
	assert_int_equal(g.in_wait_ns, in_wait);
	assert_int_equal(g.out_wait_ns, out_wait);
	assert_int_equal(g.flags, flags);
}

/* Checks that every promise is accounted for once per input, and in both counters. */
static inline void expect_balanced(void)
{
	__u32 i, o;

	for (i = 0; i < NPORTS; i++) {
		__u64 ins = 0, outs = 0;

		for (o = 0; o < NPORTS; o++) {
			ins += pair[i][o].bytes;
			outs += pair[o][i].bytes;
			assert_true(pair[i][o].early <= pair[i][o].bytes);
		}
		assert_int_equal(port[i].in.bytes, ins);
		assert_int_equal(port[i].out.bytes, outs);
		assert_int_equal(port[i].granted,
				 port[i].used + port[i].lapsed + port[i].released + ins);
	}
}

#endif
