// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/pl2/pl2_switch_core.h: three allocators against models in their simplest form, and the
 * accounts over a million operations with losses, deaths, repeats, releases and lapses. What was
 * granted is used, lapsed, released or still promised, and at the end nothing is promised.
 */
#include "tests/unit/core/pl2/pl2_switch_util.h"

#define PAST 4096
/* The bitmap in its simplest form: one byte per slot. */
struct plain {
	__u8 taken[PAST];
	__u64 from; /* Slots before it were cleared. */
};
static struct plain plain_in[NPORTS], plain_out[NPORTS];

static void plain_pass(struct plain *p, __u64 slot)
{
	for (; p->from < slot; p->from++)
		p->taken[p->from % PAST] = 0;
}

static __u64 plain_first_fit(__u32 in, __u32 out, __u64 first, __u32 n, __u64 end)
{
	__u64 s;
	__u32 k;

	for (s = first; s + n <= end; s++) {
		for (k = 0; k < n && !plain_in[in].taken[(s + k) % PAST] &&
			    !plain_out[out].taken[(s + k) % PAST];
		     k++)
			;
		if (k == n)
			return s;
	}
	return 0;
}

/* Bursts that were granted; used to find two that overlap on a link. */
struct burst {
	__u64 from, to;
	__u32 in, out;
};
#define BURSTS 1024
static struct burst burst[BURSTS];
static __u32 nburst;

static void add_burst(__u32 in, __u32 out, __u64 from, __u64 to)
{
	__u32 i;

	for (i = 0; i < BURSTS; i++)
		if ((burst[i].in == in || burst[i].out == out) && burst[i].from < to &&
		    from < burst[i].to)
			fail_msg("grant %u to %u, %llu to %llu, collides with %u to %u, %llu to "
				 "%llu",
				 in, out, (unsigned long long)from, (unsigned long long)to,
				 burst[i].in, burst[i].out, (unsigned long long)burst[i].from,
				 (unsigned long long)burst[i].to);
	burst[nburst++ % BURSTS] = (struct burst){ from, to, in, out };
}

static void forget_burst(__u32 in, __u32 out, __u64 from)
{
	__u32 i;

	for (i = 0; i < BURSTS; i++)
		if (burst[i].in == in && burst[i].out == out && burst[i].from == from)
			burst[i].from = burst[i].to = 0;
}

static void bl_rsv_run__against_a_plain_search(void **state)
{
	struct rnd r = rnd_seeded("run");
	int op;

	(void)state;
	for (op = 0; op < 200000; op++) {
		static struct bl_rsv_side a, b;
		__u64 base = 1 + rnd_below(&r, 1 << 20),
		      first = (base << 6) + rnd_below(&r, rnd_below(&r, 2) ? 64 : 600), want = 0, s;
		__u32 n = 1 + rnd_below(&r, BL_RSV_RUN_MAX), i, k, dense = rnd_below(&r, 5);

		for (i = 0; i < BL_RSV_WORDS; i++) {
			a.bits[i] = rnd64(&r);
			b.bits[i] = rnd64(&r);
			for (k = 0; k < dense; k++) {
				a.bits[i] &= rnd64(&r);
				b.bits[i] &= rnd64(&r);
			}
			if (rnd_below(&r, 3) == 0)
				a.bits[i] = ~0ULL;
			if (rnd_below(&r, 6) == 0)
				a.bits[i] = b.bits[i] = 0;
		}
		for (s = first; !want && s + n <= (base + BL_RSV_WORDS) << 6; s++) {
			for (k = 0;
			     k < n && !((a.bits[(s + k) / 64 % 8] | b.bits[(s + k) / 64 % 8]) >>
						(s + k) % 64 &
					1);
			     k++)
				;
			if (k == n)
				want = s;
		}
		assert_int_equal(bl_rsv_run(&a, &b, base, first, n), want);
	}
}

/* What the hosts of the model hold: the last grant of each pair. */
struct hand {
	__u32 seq, bytes, early;
};

/*
 * A million operations: RSVs, repeats, bursts that arrive whole, in part, unsolicited or not at
 * all, data without a promise, releases, deaths, and time. @mix: the allocator changes now and
 * then.
 */
static void run_model(enum bl_allocator a, bool mix, __u32 ops, const char *name)
{
	static struct hand hand[NPORTS][NPORTS];
	__u64 in_free[NPORTS] = { 0 }, out_free[NPORTS] = { 0 };
	struct rnd r = rnd_seeded(name);
	__u64 now = T0, lapsed = 0, used = 0, released = 0, grants = 0, refused = 0, repeated = 0,
	      early_lost = 0;
	__u32 op, i, o;

	reset_switch(a);
	cfg.refuse_ns = 20 * SLOT;
	cfg.far_ns = a == BL_ALLOC_BITMAP ? 400 * SLOT : 60 * SLOT;
	memset(hand, 0, sizeof(hand));
	memset(burst, 0, sizeof(burst));
	memset(plain_in, 0, sizeof(plain_in));
	memset(plain_out, 0, sizeof(plain_out));
	for (op = 0; op < ops; op++) {
		__u32 in = rnd_below(&r, NPORTS), out = rnd_below(&r, NPORTS), bytes,
		      what = rnd_below(&r, 100), len;
		struct hand *h = &hand[in][out];
		struct bl_rsv_pair *p = &pair[in][out];

		if (mix && rnd_below(&r, 1000) == 0)
			cfg.allocator = rnd_below(&r, BL_ALLOC_COUNT);
		if (what < 40) {
			__u64 in_wait = 0, out_wait = 0, slot = 0, end;
			int early = rnd_below(&r, 4) == 0;
			__u32 n, reason, was = p->bytes, j, from = port[out].sweep;
			bool fits = true;
			__u64 due;

			queued_bytes = rnd_below(&r, 3)
					       ? 0
					       : rnd_below(&r, rnd_below(&r, 2) ? 4000 : 40 * 1538);
			bytes = 1 + rnd_below(&r, rnd_below(&r, 3) ? 3000 : 16 * 1538);
			n = (bytes + 1537) / 1538;
			/*
			 * What is left of the previous burst will not arrive. The pair to be
			 * checked, which may be the same one, has lapsed or not.
			 */
			if (from != in && now > pair[from][out].lapse_ns)
				was += pair[from][out].bytes;
			assert_int_equal(bl_rsv_renew(&port[in], &port[out], p, &port[from],
						      &pair[from][out], bytes, h->seq + 1, now),
					 was);
			assert_int_equal(p->bytes, 0);
			lapsed += was;
			port[out].sweep = (from + 1) % NPORTS; /* as the switch does */
			for (j = 0, due = queued_bytes; j < NPORTS; j++)
				due += pair[j][out].bytes;
			switch (cfg.allocator) {
			case BL_ALLOC_TWO_COUNTER:
				for (j = 0; j < NPORTS; j++)
					in_wait += pair[in][j].bytes;
				in_wait *= 8;
				out_wait = due * 8;
				break;
			case BL_ALLOC_BITMAP:
				slot = (now + SLOT - 1) / SLOT;
				plain_pass(&plain_in[in], slot);
				plain_pass(&plain_out[out], slot);
				end = (slot / 64 + 8) * 64;
				slot = plain_first_fit(
					in, out,
					slot + ((queued_bytes > 2 * 1538 ? due : queued_bytes) +
						1537) / 1538,
					n, end);
				fits = slot;
				in_wait = out_wait = slot * SLOT - now;
				break;
			default:
				in_wait = out_wait =
					bl_max64(now + due * 8,
						 bl_max64(in_free[in], out_free[out])) -
					now;
				break;
			}
			reason = send_early_rsv(in, out, bytes, h->seq + 1, early, now);
			if (!mix) {
				bool want = fits && in_wait <= cfg.far_ns && out_wait <= cfg.far_ns;

				assert_int_equal(reason,
						 want ? BL_R_RSV_GRANTED : BL_R_RSV_REFUSED);
				if (want) {
					in_free[in] = out_free[out] = now + in_wait + bytes * 8ULL;
					assert_int_equal(g.in_wait_ns, in_wait);
					assert_int_equal(g.out_wait_ns, out_wait);
					assert_int_equal(g.flags,
							 early && bl_max64(in_wait, out_wait) <=
										 cfg.refuse_ns
								 ? BL_GRT_PASSED
								 : 0);
				}
				if (reason == BL_R_RSV_GRANTED && a != BL_ALLOC_TWO_COUNTER)
					add_burst(in, out, now + in_wait,
						  now + in_wait +
							  (a == BL_ALLOC_BITMAP ? n * SLOT
										: bytes * 8ULL));
				for (j = 0;
				     reason == BL_R_RSV_GRANTED && a == BL_ALLOC_BITMAP && j < n;
				     j++)
					plain_in[in].taken[(slot + j) % PAST] =
						plain_out[out].taken[(slot + j) % PAST] = 1;
			}
			refused += reason == BL_R_RSV_REFUSED;
			if (reason == BL_R_RSV_GRANTED) {
				grants++;
				*h = (struct hand){ h->seq + 1, bytes, g.flags };
			}
		} else if (what < 45 && h->bytes) {
			__u64 in_ns = p->in_ns, out_ns = p->out_ns;
			__u32 was = p->bytes, valid = p->valid && now <= p->lapse_ns;

			if (!valid)
				continue;
			assert_int_equal(send_rsv(in, out, p->asked, p->seq, now),
					 BL_R_RSV_REPEATED);
			assert_int_equal(g.in_wait_ns, in_ns > now ? in_ns - now : 0);
			assert_int_equal(g.out_wait_ns, out_ns > now ? out_ns - now : 0);
			assert_int_equal(p->bytes, was);
			repeated++;
		} else if (what < 75) {
			/* A burst arrives: all of it, some of it, or more than was promised. */
			__u32 k = 1 + rnd_below(&r, 16);
			int early = h->early & BL_GRT_PASSED || rnd_below(&r, 20) == 0;

			while (k--) {
				__u32 was = p->bytes, was_early = p->early;
				enum bl_reason why;

				/* byte times */
				len = rnd_below(&r, 4)   ? 84 + rnd_below(&r, 1455)
				      : rnd_below(&r, 2) ? p->bytes
							 : p->bytes + 1;
				if (len < 84)
					break;
				why = send_data(in, out, len, early);
				if (early)
					assert_int_equal(why, len <= was_early
								      ? BL_R_NONE
								      : BL_R_EARLY_REFUSED);
				else
					assert_int_equal(why,
							 len <= was ? BL_R_NONE : BL_R_UNRESERVED);
				used += why == BL_R_NONE ? len : 0;
				early_lost += why == BL_R_EARLY_REFUSED;
				assert_int_equal(p->bytes, why == BL_R_NONE ? was - len : was);
			}
		} else if (what < 80) {
			__u32 was = p->bytes;
			__u64 in_ns = p->in_ns;
			__u32 slots = p->slots;
			enum bl_reason why;

			bytes = rnd_below(&r, 3) ? was : rnd_below(&r, 20000);
			why = send_release(in, out, bytes, now);
			assert_int_equal(why, bytes && was ? BL_R_RELEASED : BL_R_RELEASE_BAD);
			if (why == BL_R_RELEASED) {
				__u32 j;

				released += was - p->bytes;
				assert_int_equal(was - p->bytes, bytes < was ? bytes : was);
				if (!p->bytes && slots && in_ns >= now && !mix) {
					for (j = 0; j < slots; j++)
						plain_in[in].taken[(in_ns / SLOT + j) % PAST] =
							plain_out[out]
								.taken[(in_ns / SLOT + j) % PAST] =
								0;
					forget_burst(in, out, in_ns);
				}
			}
		} else if (what < 81) {
			/* The host dies with all its promises; its numbers restart. */
			for (out = 0; out < NPORTS; out++)
				hand[in][out] = (struct hand){ .seq = (__u32)rnd64(&r) };
		} else {
			now += rnd_below(&r, 100) ? rnd_below(&r, 6000) : rnd_below(&r, 3000000);
		}
		if (op % 16 == 0)
			expect_balanced();
	}
	now += 1ULL << 40;
	for (i = 0; i < NPORTS; i++)
		for (o = 0; o < NPORTS; o++)
			lapsed += send_rsv_checking(i, o, now);
	expect_balanced();
	for (i = 0; i < NPORTS; i++) {
		assert_int_equal(port[i].in.bytes, 0);
		assert_int_equal(port[i].out.bytes, 0);
		lapsed -= port[i].lapsed;
		used -= port[i].used;
		released -= port[i].released;
		grants -= port[i].grants;
		refused -= port[i].refused;
	}
	assert_int_equal(lapsed | used | released | grants | refused, 0);
	/* Each kind of event has happened; otherwise the rest would prove nothing. */
	for (i = 0; i < NPORTS; i++)
		assert_true(port[i].lapsed && port[i].used && port[i].released &&
			    port[i].grants > ops / 200);
	assert_true(repeated > ops / 1000 && early_lost > ops / 1000);
	for (i = 0, refused = 0; i < NPORTS; i++)
		refused += port[i].refused;
	assert_true(refused > 0);
}

#define OPS 1000000
static void model__two_counter(void **state)
{
	(void)state;
	run_model(BL_ALLOC_TWO_COUNTER, false, OPS, "two-counter");
}

static void model__joint(void **state)
{
	(void)state;
	run_model(BL_ALLOC_JOINT, false, OPS, "joint");
}

static void model__bitmap(void **state)
{
	(void)state;
	run_model(BL_ALLOC_BITMAP, false, OPS, "bitmap");
}

static void model__allocator_changes(void **state)
{
	(void)state;
	run_model(BL_ALLOC_TWO_COUNTER, true, OPS, "mix");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rsv_run__against_a_plain_search),
		cmocka_unit_test(model__two_counter),
		cmocka_unit_test(model__joint),
		cmocka_unit_test(model__bitmap),
		cmocka_unit_test(model__allocator_changes),
	};

	return cmocka_run_group_tests_name("reserve_model", tests, NULL, NULL);
}
