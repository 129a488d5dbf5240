// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/commit_core.h: its edges, and what two ACKs, a sender and a program that computes C do
 * to one window, in every order of their accesses to shared memory. Each access of the core is a
 * point at which another actor may run first. All schedules of two or three actors are run where
 * there are few enough of them; beyond that, random ones.
 */
#include <ucontext.h>

#include "tests/unit/unit.h"

/* These hooks come before the core: they insert a break before each of its accesses. */
#include "tests/unit/core/order/access_hooks.h"

#include "core/order/commit_core.h"

static struct bl_rwin win;
static struct {
	__u64 ts, hold, state;
} line; /* the words of struct bl_inflight that matter here */

static __u64 state_word(uint32_t head, uint32_t tail)
{
	return (uint64_t)tail << 32 | head;
}

static void bl_rwin_word__edges(void **state)
{
	const struct {
		uint32_t head, tail, used;
	} t[] = {
		{ 0, 0, 0 },
		{ 0, 1, 1 },
		{ 5, 7, 2 },
		{ 0, BL_RWIN, BL_RWIN },
		{ UINT32_MAX, UINT32_MAX, 0 },
		{ UINT32_MAX, 0, 1 },
		{ UINT32_MAX, 1, 2 },
		{ 1, 1, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint64_t w = state_word(t[i].head, t[i].tail);

		assert_int_equal(bl_rwin_head(w), t[i].head);
		assert_int_equal(bl_rwin_tail(w), t[i].tail);
		assert_int_equal(bl_rwin_used(w), t[i].used);
		/* The head does not carry into the tail. */
		assert_int_equal(bl_rwin_next(w), state_word(t[i].head + 1, t[i].tail));
		assert_int_equal(w + bl_rwin_added(3), state_word(t[i].head, t[i].tail + 3));
	}
}

static void bl_rwin_slot__by_number(void **state)
{
	(void)state;
	assert_ptr_equal(bl_rwin_slot(&win, 0), &win.slot[0]);
	assert_ptr_equal(bl_rwin_slot(&win, BL_RWIN - 1), &win.slot[BL_RWIN - 1]);
	assert_ptr_equal(bl_rwin_slot(&win, BL_RWIN), &win.slot[0]);
	assert_ptr_equal(bl_rwin_slot(&win, UINT32_MAX), &win.slot[BL_RWIN - 1]);
}

static const __u64 peer[2] = { 0x1122, 0x3344 };

static void open_slot(uint32_t n, uint64_t ts)
{
	struct bl_rslot *s = bl_rwin_slot(&win, n);

	*s = (struct bl_rslot){
		.wait = BL_RSLOT_OPEN | n, .ts = ts, .psn = n + 100, .port = 61700, .life = 9
	};
	memcpy(s->addr, peer, 16);
}

static struct bl_ack ack_of(uint32_t n, uint64_t ts)
{
	return (struct bl_ack){ .ts = ts & BL_TS_MASK,
				.slot = n,
				.psn = n + 100,
				.port = 61700,
				.life = 9,
				.addr = peer };
}

/* Every field counts, and of the timestamp only the 48 bits that are on the wire. */
static void bl_ack_fits__each_field(void **state)
{
	const __u64 ts = (7ULL << 48) + 5, other[2] = { 0x1122, 0x3345 },
		    swapped[2] = { 0x3344, 0x1122 };
	struct bl_ack a;
	int i;

	(void)state;
	for (i = 0; i < 9; i++) {
		open_slot(1030, ts);
		a = ack_of(1030, ts);
		switch (i) {
		case 1:
			a.ts++;
			break;
		case 2:
			a.slot = 1030 - BL_RWIN;
			break;
		case 3:
			a.psn ^= 1u << 31;
			break;
		case 4:
			a.port--;
			break;
		case 5:
			a.life ^= 0x8000;
			break;
		case 6:
			a.addr = other;
			break;
		case 7:
			a.addr = swapped;
			break;
		case 8:
			a.slot = 1031;
			break;
		}
		assert_int_equal(bl_ack_fits(bl_rwin_slot(&win, 1030), &a), i == 0);
	}
	/* A closed slot still fits: this is a repeated ACK and not one of another frame. */
	open_slot(1030, ts);
	a = ack_of(1030, ts);
	bl_rwin_slot(&win, 1030)->wait = 1030;
	assert_int_equal(bl_ack_fits(bl_rwin_slot(&win, 1030), &a), 1);
	/* The upper bits of the slot's timestamp are not on the wire. */
	open_slot(1030, ts + (1ULL << 50));
	assert_int_equal(bl_ack_fits(bl_rwin_slot(&win, 1030), &a), 1);
}

static void bl_rslot_close__once(void **state)
{
	struct bl_rslot *s = bl_rwin_slot(&win, 77);

	(void)state;
	open_slot(77, 1);
	/* the number of the slot's next occupant */
	assert_int_equal(bl_rslot_close(s, 77 + BL_RWIN), 0);
	assert_int_equal(bl_rslot_close(s, 76), 0);
	assert_int_equal(s->wait, BL_RSLOT_OPEN | 77);
	assert_int_equal(bl_rslot_close(s, 77), 1);
	assert_int_equal(s->wait, 77);
	assert_int_equal(bl_rslot_close(s, 77), 0);
	open_slot(UINT32_MAX, 1);
	assert_int_equal(bl_rslot_close(bl_rwin_slot(&win, UINT32_MAX), UINT32_MAX), 1);
	assert_int_equal(bl_rwin_slot(&win, UINT32_MAX)->wait, UINT32_MAX);
}

static void bl_rwin_step__edges(void **state)
{
	__u64 w;

	(void)state;
	/*
	 * The window is empty, although the slot at the head is closed with the head's own number.
	 */
	open_slot(5, 10);
	bl_rwin_slot(&win, 5)->wait = 5;
	w = state_word(5, 5);
	assert_int_equal(bl_rwin_step(&w, &win), 0);
	assert_int_equal(w, state_word(5, 5));
	/* The slot is closed. */
	w = state_word(5, 6);
	assert_int_equal(bl_rwin_step(&w, &win), 1);
	assert_int_equal(w, state_word(6, 6));
	/* The slot is open. */
	open_slot(5, 10);
	w = state_word(5, 6);
	assert_int_equal(bl_rwin_step(&w, &win), 0);
	assert_int_equal(w, state_word(5, 6));
	/* The slot is closed with the number of the previous window, so its contents are old. */
	bl_rwin_slot(&win, 5)->wait = 5;
	w = state_word(5 + BL_RWIN, 6 + BL_RWIN);
	assert_int_equal(bl_rwin_step(&w, &win), 0);
	/* The number is the last one before the wrap. */
	open_slot(UINT32_MAX, 10);
	bl_rwin_slot(&win, UINT32_MAX)->wait = UINT32_MAX;
	w = state_word(UINT32_MAX, 1);
	assert_int_equal(bl_rwin_step(&w, &win), 1);
	assert_int_equal(w, state_word(0, 1));
}

static void bl_rwin_commit__edges(void **state)
{
	__u64 w = state_word(3, 3);

	(void)state;
	open_slot(3, 500);
	open_slot(4, 600);
	assert_int_equal(bl_rwin_commit(&w, &win, 1), BL_TIME_NONE);
	w = state_word(3, 5);
	assert_int_equal(bl_rwin_commit(&w, &win, 1), 500);
	bl_rwin_slot(&win, 4)->wait = 4; /* closed, but not at the head */
	assert_int_equal(bl_rwin_commit(&w, &win, 1), 500);
	w = state_word(4, 5);
	assert_int_equal(bl_rwin_commit(&w, &win, 1), 600);
}

static void bl_rwin_freeze__edges(void **state)
{
	__u64 w = state_word(3, 3), ts = 1;
	uint32_t i;

	(void)state;
	open_slot(3, 500);
	open_slot(4, 600);
	assert_int_equal(bl_rwin_freeze(&w, &win, &ts), 0);
	/* The window is empty, so the slot belongs to no frame and stays open. */
	assert_int_equal(bl_rwin_slot(&win, 3)->wait, BL_RSLOT_OPEN | 3);
	w = state_word(3, 5);
	bl_rwin_slot(&win, 4)->wait = 4;
	assert_int_equal(bl_rwin_freeze(&w, &win, &ts), 1);
	assert_int_equal(ts, 500);
	assert_int_equal(w, state_word(3, 5));
	/* No ACK moves the head, and a second freeze has the same result. */
	assert_int_equal(bl_rslot_close(bl_rwin_slot(&win, 3), 3), 0);
	assert_int_equal(bl_rwin_step(&w, &win), 0);
	assert_int_equal(bl_rwin_commit(&w, &win, 1), 500);
	ts = 0;
	assert_int_equal(bl_rwin_freeze(&w, &win, &ts), 1);
	assert_int_equal(ts, 500);
	/*
	 * A slot is closed but the head has not moved yet: the next open slot is frozen, or none if
	 * all are closed.
	 */
	open_slot(3, 500);
	bl_rwin_slot(&win, 3)->wait = 3;
	open_slot(4, 600);
	w = state_word(3, 5);
	assert_int_equal(bl_rwin_freeze(&w, &win, &ts), 1);
	assert_int_equal(ts, 600);
	assert_int_equal(w, state_word(4, 5));
	for (i = 0; i < BL_RWIN; i++) {
		open_slot(UINT32_MAX - 5 + i, 7);
		bl_rwin_slot(&win, UINT32_MAX - 5 + i)->wait = UINT32_MAX - 5 + i;
	}
	w = state_word(UINT32_MAX - 5, UINT32_MAX - 5 + BL_RWIN);
	assert_int_equal(bl_rwin_freeze(&w, &win, &ts), 0);
	assert_int_equal(bl_rwin_used(w), 0);
}

static void bl_commit_wire__edges(void **state)
{
	const uint64_t now = 1ULL << 60;

	(void)state;
	assert_int_equal(bl_commit_wire(now, now), now);
	assert_int_equal(bl_commit_wire(now - BL_TS_OLD, now), now - BL_TS_OLD);
	assert_int_equal(bl_commit_wire(now - BL_TS_OLD - 1, now), now - BL_TS_OLD);
	assert_int_equal(bl_commit_wire(0, now), now - BL_TS_OLD);
	assert_int_equal(bl_commit_wire(now + 5, now), now + 5);
	/* What is sent is read back unchanged, as far as 48 bits reach. */
	assert_true(BL_TS_OLD < 1ULL << 47);
}

/* ---- all schedules ---- */

#define ACTORS 4
#define STACK  (64 << 10)
#define DEPTH  256

static struct actor {
	ucontext_t ctx;
	void (*fn)(void);
	char *stack;
	int done;
} actor[ACTORS];
static int now_running = -1;
static ucontext_t scheduler;

static void before_access(void)
{
	if (now_running >= 0)
		swapcontext(&actor[now_running].ctx, &scheduler);
}

static void run_actor(int i)
{
	actor[i].fn();
	actor[i].done = 1;
}

/*
 * A schedule: the actor that runs next, for each point at which several can run. The next schedule
 * changes the last choice that has an alternative.
 */
static int choice[DEPTH], options[DEPTH], depth;
static struct rnd *at_random;

static int choose_actor(int at, int n)
{
	assert_true(at < DEPTH);
	if (at_random)
		return (int)rnd_below(at_random, (uint32_t)n);
	if (at >= depth) {
		choice[at] = 0;
		depth = at + 1;
	}
	options[at] = n;
	return choice[at];
}

static void run_once(void (*const *fn)(void), int n)
{
	/*
	 * These are static, because getcontext() may restore registers that cache stack variables.
	 */
	static int i, at;

	at = 0;

	for (i = 0; i < n; i++) {
		actor[i].fn = fn[i];
		actor[i].done = 0;
		if (!actor[i].stack)
			actor[i].stack = malloc(STACK);
		getcontext(&actor[i].ctx);
		actor[i].ctx.uc_stack.ss_sp = actor[i].stack;
		actor[i].ctx.uc_stack.ss_size = STACK;
		actor[i].ctx.uc_link = &scheduler;
		makecontext(&actor[i].ctx, (void (*)(void))run_actor, 1, i);
	}
	for (;;) {
		int can[ACTORS], k = 0;

		for (i = 0; i < n; i++)
			if (!actor[i].done)
				can[k++] = i;
		if (!k)
			break;
		now_running = can[k > 1 ? choose_actor(at++, k) : 0];
		swapcontext(&scheduler, &actor[now_running].ctx);
		now_running = -1;
	}
}

static bool next_schedule(void)
{
	while (depth && choice[depth - 1] + 1 >= options[depth - 1])
		depth--;
	if (!depth)
		return false;
	choice[depth - 1]++;
	return true;
}

/*
 * Runs all schedules, or @most of them and as many random ones if there are more. Returns the
 * number of runs.
 */
static long each_schedule(void (*const *fn)(void), int n, void (*before)(void), void (*after)(void),
			  long most, struct rnd *r)
{
	long runs = 0;

	depth = 0;
	at_random = NULL;
	do {
		before();
		run_once(fn, n);
		after();
		runs++;
	} while (runs < most && next_schedule());
	if (runs < most)
		return runs;
	at_random = r;
	for (; runs < 2 * most; runs++) {
		before();
		run_once(fn, n);
		after();
	}
	at_random = NULL;
	return runs;
}

/* ---- the actors ---- */

static uint64_t bus, promised_c, last_c;
static uint32_t first; /* number of the first frame */
static uint64_t ts_of[4];
static uint32_t frames;

static void acknowledge(uint32_t n)
{
	struct bl_ack a = ack_of(n, ts_of[n - first]);

	if (bl_ack_fits(bl_rwin_slot(&win, n), &a) && bl_rslot_close(bl_rwin_slot(&win, n), n))
		while (bl_rwin_step(&line.state, &win))
			;
}

static void ack_0(void)
{
	acknowledge(first);
}

static void ack_1(void)
{
	acknowledge(first + 1);
}

/* Sends a third frame, as lib/rtx.c does; its ACK comes later. */
static void send_2(void)
{
	uint64_t noted = bus;

	before_access();
	line.ts = noted;
	before_access();
	ts_of[2] = ++bus;
	before_access();
	open_slot(first + 2, ts_of[2]);
	before_access();
	__atomic_fetch_add(&line.state, bl_rwin_added(1), __ATOMIC_SEQ_CST);
	frames = 3;
	before_access();
	line.ts = BL_TIME_NONE;
}

static bool commit_too_high;

/* Computes C as host_barriers() of bpf/host/host.bpf.c does. */
static void compute_commit(void)
{
	uint64_t c = bus, ts, hold, w;
	uint32_t i;

	before_access();
	ts = BL_READ_ONCE(line.ts);
	c = ts < c ? ts : c;
	hold = BL_READ_ONCE(line.hold);
	c = hold < c ? hold : c;
	w = BL_READ_ONCE(line.state);
	if (bl_rwin_used(w))
		c = bl_min64(c, bl_rwin_commit(&line.state, &win, last_c));
	promised_c = c;
	/* No frame that is open now, or is sent from now on, is below C. */
	for (i = 0; i < frames; i++)
		if (bl_rwin_slot(&win, first + i)->wait == (BL_RSLOT_OPEN | (first + i)) &&
		    ts_of[i] < c)
			commit_too_high = true;
}

static void setup_two_open(void)
{
	bus = 1000;
	last_c = 900;
	promised_c = 0;
	frames = 2;
	commit_too_high = false;
	ts_of[0] = 950;
	ts_of[1] = 960;
	ts_of[2] = UINT64_MAX;
	open_slot(first, ts_of[0]);
	open_slot(first + 1, ts_of[1]);
	line.ts = line.hold = BL_TIME_NONE;
	line.state = state_word(first, first + 2);
}

static void expect_all_closed(void)
{
	assert_int_equal(line.state, state_word(first + 2, first + 2));
}

/* Two ACKs in any order move the head past both frames. */
static void interleaved__two_acks(void **state)
{
	void (*const actors[])(void) = { ack_0, ack_1 };
	struct rnd r = rnd_seeded("two acks");
	const uint32_t firsts[] = { 0, UINT32_MAX - 1, UINT32_MAX, BL_RWIN - 1 };
	size_t i;
	long n = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(firsts); i++) {
		first = firsts[i];
		n += each_schedule(actors, 2, setup_two_open, expect_all_closed, 8000, &r);
	}
	print_message("%ld schedules\n", n);
	assert_true(n > 1000);
}

/* However often the same ACK arrives, it closes one slot. */
static void interleaved__an_ack_twice(void **state)
{
	void (*const actors[])(void) = { ack_0, ack_0, ack_1 };
	struct rnd r = rnd_seeded("an ack twice");

	(void)state;
	first = 7;
	assert_true(each_schedule(actors, 3, setup_two_open, expect_all_closed, 8000, &r) == 16000);
}

static __u64 frozen_at; /* 0: the window was empty */

static void freeze_window(void)
{
	__u64 ts;

	frozen_at = bl_rwin_freeze(&line.state, &win, &ts) ? ts : 0;
}

static void expect_frozen(void)
{
	__u64 c = bl_rwin_commit(&line.state, &win, 1);

	assert_int_equal(c, frozen_at ? frozen_at : BL_TIME_NONE);
	assert_true(frozen_at == 0 || frozen_at == ts_of[0] || frozen_at == ts_of[1]);
	/* Later ACKs change nothing. */
	ack_0();
	ack_1();
	assert_int_equal(bl_rwin_commit(&line.state, &win, 1), c);
}

/* The process dies while ACKs arrive: C stays at the time that is reported as T. */
static void interleaved__death_and_two_acks(void **state)
{
	void (*const actors[])(void) = { ack_0, ack_1, freeze_window };
	struct rnd r = rnd_seeded("death and two acks");
	long n;

	(void)state;
	first = UINT32_MAX;
	n = each_schedule(actors, 3, setup_two_open, expect_frozen, 20000, &r);
	print_message("%ld schedules\n", n);
	assert_true(n > 1000);
}

static void expect_three_sent(void)
{
	assert_int_equal(line.state, state_word(first + 2, first + 3));
	assert_false(commit_too_high);
	assert_true(promised_c <= ts_of[2]);
}

/* C is never above a frame that is open, or that gets its timestamp later. */
static void interleaved__sender_and_egress(void **state)
{
	void (*const four[])(void) = { send_2, ack_0, ack_1, compute_commit };
	struct rnd r = rnd_seeded("sender and egress");

	(void)state;
	first = UINT32_MAX - 1;
	assert_true(each_schedule(four, 4, setup_two_open, expect_three_sent, 10000, &r) == 20000);
}

/*
 * The window is full, and its first slot is closed and rewritten while another actor computes C.
 * The actor takes neither the new timestamp as that of the head, nor one that is no longer valid.
 */
static void reuse_slot(void)
{
	uint32_t n = first + BL_RWIN;

	acknowledge(first);
	if (bl_rwin_head(line.state) == first)
		return;
	ts_of[3] = bus + 50;
	open_slot(n, ts_of[3]);
	before_access();
	__atomic_fetch_add(&line.state, bl_rwin_added(1), __ATOMIC_SEQ_CST);
}

static void setup_full_window(void)
{
	uint32_t i;

	setup_two_open();
	for (i = 2; i < BL_RWIN; i++)
		open_slot(first + i, 970);
	line.state = state_word(first, first + BL_RWIN);
}

static void expect_commit_of_full(void)
{
	uint64_t c = bl_rwin_commit(&line.state, &win, last_c);

	assert_true(c == ts_of[0] || c == ts_of[1] || c == last_c);
	if (c == ts_of[1]) /* The first frame has then been acknowledged. */
		assert_true(bl_rwin_head(line.state) != first);
}

static void expect_second_at_head(void)
{
	assert_int_equal(line.state, state_word(first + 1, first + BL_RWIN + 1));
}

static void interleaved__slot_is_used_again(void **state)
{
	void (*const actors[])(void) = { reuse_slot, expect_commit_of_full };
	struct rnd r = rnd_seeded("slot is used again");
	long n;

	(void)state;
	first = 3;
	n = each_schedule(actors, 2, setup_full_window, expect_second_at_head, 2000, &r);
	print_message("%ld schedules\n", n);
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rwin_word__edges),
		cmocka_unit_test(bl_rwin_slot__by_number),
		cmocka_unit_test(bl_ack_fits__each_field),
		cmocka_unit_test(bl_rslot_close__once),
		cmocka_unit_test(bl_rwin_step__edges),
		cmocka_unit_test(bl_rwin_commit__edges),
		cmocka_unit_test(bl_rwin_freeze__edges),
		cmocka_unit_test(bl_commit_wire__edges),
		cmocka_unit_test(interleaved__two_acks),
		cmocka_unit_test(interleaved__an_ack_twice),
		cmocka_unit_test(interleaved__death_and_two_acks),
		cmocka_unit_test(interleaved__sender_and_egress),
		cmocka_unit_test(interleaved__slot_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
