// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/fastpass/watchdog_core.h: the edges of each rule, and arbiters of a simulated group. Two of
 * them never allocate at the same time, and one of them soon does.
 */
#include "tests/unit/unit.h"

#include "core/fastpass/watchdog_core.h"

#define US 1000ULL
#define T0 (1ULL << 40)

static struct bl_fcp_params params = { .secret = { 1, 2 }, .table = 77 };
static _Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];

static void init_arbiter(struct bl_wd *w, uint32_t rank, uint32_t term, uint64_t now)
{
	*w = (struct bl_wd){ .p = &params,
			     .rank = rank,
			     .interval_ns = 100 * US,
			     .dead_ns = 1000 * US,
			     .guard_ns = 300 * US };
	assert_int_equal(bl_wd_init(w, now, 200 * US, term), 0);
}

/* Receives a watchdog of (term, rank, seq) in state @st. */
static enum bl_fcp_reason receive_watchdog(struct bl_wd *w, uint32_t term, uint32_t rank,
					   uint32_t seq, uint32_t st, uint64_t now)
{
	struct bl_wd from = { .p = &params, .rank = rank, .term = term, .state = st, .seq = seq };

	return bl_wd_rx(w, buf, bl_wd_tx(&from, buf), now);
}

static void bl_wd_init__room_for_a_lease(void **state)
{
	struct bl_wd w = { .p = &params, .interval_ns = 100, .dead_ns = 1000 };

	(void)state;
	assert_int_equal(bl_wd_init(&w, 5, 801, 1), -1);
	assert_int_equal(bl_wd_init(&w, 5, 800, 1), 0);
	assert_int_equal(w.lease_ns, 200);
	assert_int_equal(w.state, BL_FCP_STANDBY);
}

static void bl_wd_tick__a_life(void **state)
{
	struct bl_wd w;

	(void)state;
	init_arbiter(&w, 1, 5, T0);
	assert_int_equal(bl_wd_next(&w), T0 + 1300 * US);
	assert_int_equal(bl_wd_tick(&w, T0 + 1300 * US - 1), 0);
	assert_int_equal(w.state, BL_FCP_STANDBY);
	assert_int_equal(bl_wd_tick(&w, T0 + 1300 * US), 1);
	assert_int_equal(w.state, BL_FCP_CANDIDATE);
	assert_int_equal(w.term, 6);
	bl_wd_sent(&w, T0 + 1300 * US);
	assert_int_equal(bl_wd_next(&w), T0 + 1400 * US);
	assert_int_equal(bl_wd_tick(&w, T0 + 1400 * US - 1), 0);
	assert_int_equal(bl_wd_tick(&w, T0 + 1400 * US), 1);
	bl_wd_sent(&w, T0 + 1400 * US);
	assert_int_equal(bl_wd_may_allocate(&w, T0 + 1400 * US), 0); /* not yet */
	bl_wd_sent(&w, T0 + 1550 * US);
	assert_int_equal(bl_wd_tick(&w, T0 + 1600 * US - 1), 0);
	assert_int_equal(bl_wd_tick(&w, T0 + 1600 * US), 1);
	assert_int_equal(w.state, BL_FCP_PRIMARY);
	assert_int_equal(w.takeovers, 1);
	/* The last watchdog was sent at 1550 us: the lease ends 800 us later. */
	assert_int_equal(bl_wd_may_allocate(&w, T0 + 2350 * US - 1), 1);
	assert_int_equal(bl_wd_may_allocate(&w, T0 + 2350 * US), 0);
	/* The process was stopped for that long: it gives way by itself and listens again. */
	assert_int_equal(bl_wd_tick(&w, T0 + 2350 * US), 0);
	assert_int_equal(w.state, BL_FCP_STANDBY);
	assert_int_equal(w.stalls, 1);
	assert_int_equal(w.heard_ns, T0 + 2350 * US);
	assert_int_equal(bl_wd_may_allocate(&w, T0 + 2350 * US), 0);
}

/*
 * Of arbiters that start together, the one with the lowest rank is first. The others follow one
 * guard time apart, which is long enough for its watchdog to be heard.
 */
static void bl_wd_next__by_rank(void **state)
{
	struct bl_wd w;
	uint32_t rank;

	(void)state;
	for (rank = 0; rank < 4; rank++) {
		init_arbiter(&w, rank, 5, T0);
		assert_int_equal(bl_wd_next(&w), T0 + (1000 + rank * 300) * US);
		assert_int_equal(bl_wd_tick(&w, T0 + (1000 + rank * 300) * US - 1), 0);
		assert_int_equal(bl_wd_tick(&w, T0 + (1000 + rank * 300) * US), 1);
		assert_int_equal(w.state, BL_FCP_CANDIDATE);
	}
}

static void bl_wd_tick__what_came_after_the_clock_was_read(void **state)
{
	struct bl_wd w;

	(void)state;
	init_arbiter(&w, 1, 5, T0);
	assert_int_equal(receive_watchdog(&w, 9, 0, 1, BL_FCP_PRIMARY, T0 + 50), BL_FCP_R_OK);
	/* A time 1 ns before heard_ns is not 2^64 - 1 ns of silence. */
	assert_int_equal(bl_wd_tick(&w, T0 + 49), 0);
	assert_int_equal(bl_wd_tick(&w, T0), 0);
	assert_int_equal(w.state, BL_FCP_STANDBY);
	w.state = BL_FCP_PRIMARY;
	w.sent_ns = T0 + 50;
	assert_int_equal(bl_wd_tick(&w, T0), 0);
	assert_int_equal(w.state, BL_FCP_PRIMARY);
	assert_int_equal(bl_wd_may_allocate(&w, T0), 1);
}

static void bl_wd_rx__sequence_numbers_wrap(void **state)
{
	static const struct {
		uint32_t heard, comes;
		enum bl_fcp_reason want;
	} t[] = {
		{ 10, 11, BL_FCP_R_OK },
		{ 10, 10, BL_FCP_R_DUPLICATE },
		{ 10, 9, BL_FCP_R_DUPLICATE },
		{ 0xffffffff, 0, BL_FCP_R_OK },
		{ 0xfffffff0, 5, BL_FCP_R_OK },
		{ 0, 0xffffffff, BL_FCP_R_DUPLICATE },
		{ 1, 0x80000000, BL_FCP_R_OK },
		/* More than half of the sequence numbers ahead counts as behind. */
		{ 1, 0x80000001, BL_FCP_R_DUPLICATE },
	};
	struct bl_wd w;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		init_arbiter(&w, 1, 5, T0);
		assert_int_equal(receive_watchdog(&w, 9, 0, t[i].heard, BL_FCP_PRIMARY, T0 + 100),
				 BL_FCP_R_OK);
		assert_int_equal(receive_watchdog(&w, 9, 0, t[i].comes, BL_FCP_PRIMARY, T0 + 200),
				 t[i].want);
		assert_int_equal(w.heard_ns, t[i].want == BL_FCP_R_OK ? T0 + 200 : T0 + 100);
		/* another sender, or another term, starts a new sequence */
		assert_int_equal(receive_watchdog(&w, 10, 0, t[i].heard, BL_FCP_PRIMARY, T0 + 300),
				 BL_FCP_R_OK);
	}
}

static void bl_wd_rx__who_gives_way(void **state)
{
	static const struct {
		uint32_t st, term, rank, his_term, his_rank;
		enum bl_fcp_reason want;
		uint32_t then;
	} t[] = {
		{ BL_FCP_PRIMARY, 5, 1, 6, 2, BL_FCP_R_OK, BL_FCP_STANDBY },
		{ BL_FCP_PRIMARY, 5, 1, 5, 2, BL_FCP_R_OLD_TERM, BL_FCP_PRIMARY },
		{ BL_FCP_PRIMARY, 5, 1, 5, 0, BL_FCP_R_OK, BL_FCP_STANDBY },
		{ BL_FCP_PRIMARY, 5, 1, 4, 0, BL_FCP_R_OLD_TERM, BL_FCP_PRIMARY },
		/* its own watchdog, looped back */
		{ BL_FCP_PRIMARY, 5, 1, 5, 1, BL_FCP_R_DUPLICATE, BL_FCP_PRIMARY },
		{ BL_FCP_CANDIDATE, 5, 1, 5, 0, BL_FCP_R_OK, BL_FCP_STANDBY },
		{ BL_FCP_CANDIDATE, 5, 1, 5, 2, BL_FCP_R_OLD_TERM, BL_FCP_CANDIDATE },
		/* Terms wrap as well. */
		{ BL_FCP_CANDIDATE, 0, 1, 0xffffffff, 0, BL_FCP_R_OLD_TERM, BL_FCP_CANDIDATE },
		/* An arbiter that has heard no other follows any. */
		{ BL_FCP_STANDBY, 9, 1, 3, 2, BL_FCP_R_OK, BL_FCP_STANDBY },
	};
	struct bl_wd w;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		init_arbiter(&w, t[i].rank, t[i].term, T0);
		w.state = t[i].st;
		w.sent_ns = T0;
		assert_int_equal(receive_watchdog(&w, t[i].his_term, t[i].his_rank, 1,
						  BL_FCP_PRIMARY, T0 + 5),
				 t[i].want);
		assert_int_equal(w.state, t[i].then);
		assert_int_equal(w.term, t[i].want == BL_FCP_R_OK ? t[i].his_term : t[i].term);
		assert_int_equal(w.yields,
				 t[i].st != BL_FCP_STANDBY && t[i].then == BL_FCP_STANDBY);
		assert_int_equal(w.count[t[i].want], 1);
	}
	/* Later it does not follow an arbiter that was replaced. */
	init_arbiter(&w, 2, 1, T0);
	assert_int_equal(receive_watchdog(&w, 8, 1, 1, BL_FCP_CANDIDATE, T0), BL_FCP_R_OK);
	assert_int_equal(receive_watchdog(&w, 7, 0, 1, BL_FCP_PRIMARY, T0 + 9), BL_FCP_R_OLD_TERM);
	assert_int_equal(w.heard_ns, T0);
}

static void bl_wd_rx__refuses(void **state)
{
	struct bl_fcp_params other = params;
	struct bl_wd w, from = { .p = &other, .term = 9, .state = BL_FCP_PRIMARY, .seq = 1 };
	struct bl_fcp_hdr *h = (void *)buf;
	uint32_t n;

	(void)state;
	init_arbiter(&w, 1, 5, T0);
	assert_int_equal(receive_watchdog(&w, 9, 0, 1, BL_FCP_STANDBY, T0 + 1), BL_FCP_R_BAD_BODY);
	assert_int_equal(receive_watchdog(&w, 9, 0, 1, BL_FCP_STATE_LIMIT, T0 + 1),
			 BL_FCP_R_BAD_BODY);
	/* Each reserved word alone, since it may get a meaning. */
	for (n = 0; n < 2; n++) {
		struct bl_fcp_watchdog *b = (void *)(h + 1);
		uint32_t len = bl_wd_tx(&from, buf);

		if (n)
			b->reserved2 = 1;
		else
			b->reserved = 1;
		len = bl_fcp_seal(&params, 0, BL_FCP_WATCHDOG, 0, h->seq, 0, 0, buf, len);
		assert_int_equal(bl_wd_rx(&w, buf, len, T0 + 1), BL_FCP_R_BAD_BODY);
	}
	other.table = 78;
	assert_int_equal(bl_wd_rx(&w, buf, bl_wd_tx(&from, buf), T0 + 1), BL_FCP_R_BAD_TABLE);
	other = params;
	other.secret[1]++;
	assert_int_equal(bl_wd_rx(&w, buf, bl_wd_tx(&from, buf), T0 + 1), BL_FCP_R_BAD_CHECK);
	other = params;
	n = bl_wd_tx(&from, buf);
	assert_int_equal(bl_wd_rx(&w, buf, n - 1, T0 + 1), BL_FCP_R_SHORT);
	assert_int_equal(bl_wd_rx(&w, buf, n + 1, T0 + 1), BL_FCP_R_BAD_LENGTH);
	n = bl_fcp_seal(&params, 0, BL_FCP_CALL, 0, 0, 0, 0, buf, sizeof(*h));
	assert_int_equal(bl_wd_rx(&w, buf, n, T0 + 1), BL_FCP_R_BAD_OPCODE);
	assert_int_equal(w.heard, 0);
	assert_int_equal(w.heard_ns, T0);
}

/*
 * A group of arbiters in steps of 20 us, each with a delay, some loss, and stops (the process is
 * stopped, or dies and restarts). Each step: read the clock, empty the socket, evaluate.
 */
#define ARBITERS 3
#define STEP     (20 * US)
#define FLIGHT   64

struct flight {
	uint64_t at;
	uint32_t to, len;
	_Alignas(8) uint8_t bytes[64];
};

static void group__never_two_and_soon_one(void **state)
{
	struct rnd r = rnd_seeded("group");
	uint64_t ruled = 0, steps = 0, handovers = 0, longest = 0;
	int round;

	(void)state;
	for (round = 0; round < 60; round++) {
		static struct flight fly[FLIGHT * ARBITERS];
		struct bl_wd w[ARBITERS];
		uint64_t now = T0, slot_end[ARBITERS] = { 0 }, asleep[ARBITERS] = { 0 },
			 nobody = now;
		/* percent; at this loss, ten in a row are never lost */
		uint32_t i, j, last = ARBITERS, loss = rnd_below(&r, 4) ? 0 : 20;

		memset(fly, 0, sizeof(fly));
		for (i = 0; i < ARBITERS; i++)
			init_arbiter(&w[i], i, rnd_below(&r, 3), now + rnd_below(&r, 2) * 500 * US);
		for (; now < T0 + 40000 * US; now += STEP, steps++) {
			for (i = 0; i < ARBITERS; i++) {
				if (now < asleep[i])
					continue;
				for (j = 0; j < ARRAY_SIZE(fly); j++) {
					if (!fly[j].len || fly[j].to != i || fly[j].at > now)
						continue;
					bl_wd_rx(&w[i], fly[j].bytes, fly[j].len, now);
					fly[j].len = 0;
				}
				if (bl_wd_tick(&w[i], now)) {
					uint32_t n = bl_wd_tx(&w[i], buf), to;

					assert_true(n <= sizeof(fly[0].bytes));
					bl_wd_sent(&w[i], now);
					for (to = 0; to < ARBITERS; to++) {
						if (rnd_below(&r, 100) < loss)
							continue;
						for (j = 0; j < ARRAY_SIZE(fly) && fly[j].len; j++)
							;
						if (j == ARRAY_SIZE(fly))
							/* A full socket drops packets as well. */
							continue;
						fly[j] = (struct flight){
							.at = now + rnd_below(&r, 40) * US,
							.to = to,
							.len = n
						};
						memcpy(fly[j].bytes, buf, n);
					}
				}
				if (!bl_wd_may_allocate(&w[i], now))
					continue;
				/*
				 * It allocates up to the horizon; the slots of no other arbiter may
				 * still be in the future.
				 */
				for (j = 0; j < ARBITERS; j++)
					if (j != i && !loss)
						assert_true(slot_end[j] <= now);
				slot_end[i] = now + 200 * US;
				ruled++;
				handovers += last != i;
				last = i;
				nobody = now;
			}
			if (now - nobody > longest)
				longest = now - nobody;
			/* Now and then the primary is stopped, or dies. */
			if (last < ARBITERS && rnd_below(&r, 600) == 0 && now >= asleep[last]) {
				asleep[last] = now + rnd_below(&r, 4000) * US;
				if (rnd_below(&r, 2)) {
					uint32_t term = w[last].term;

					/* The restarted arbiter has forgotten everything. */
					init_arbiter(&w[last], last, term - 1, asleep[last]);
				}
			}
		}
	}
	print_message("ruled in %llu of %llu steps, %llu changes, %llu us without anybody at "
		      "most\n",
		      (unsigned long long)ruled, (unsigned long long)steps,
		      (unsigned long long)handovers, (unsigned long long)(longest / US));
	assert_true(handovers > 120);
	assert_true(ruled * 10 > steps * 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_wd_init__room_for_a_lease),
		cmocka_unit_test(bl_wd_tick__a_life),
		cmocka_unit_test(bl_wd_next__by_rank),
		cmocka_unit_test(bl_wd_tick__what_came_after_the_clock_was_read),
		cmocka_unit_test(bl_wd_rx__sequence_numbers_wrap),
		cmocka_unit_test(bl_wd_rx__who_gives_way),
		cmocka_unit_test(bl_wd_rx__refuses),
		cmocka_unit_test(group__never_two_and_soon_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
