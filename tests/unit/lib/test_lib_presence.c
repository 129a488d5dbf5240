// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/presence.c, lib/ask.c: peers that are absent, come late, are lost, restart or lie. What
 * is sent to them is refused and not failed, each event is told once, and what many absent peers
 * cost is bounded.
 */
#include <sys/syscall.h>

#include "tests/unit/lib/lib_rel.h"

#include "lib/ask.h"
#include "lib/presence.h"
#include "lib/sweep.h"
#include "tests/unit/lib/lib_pair.h"

static uint64_t ahead_ns;

/* The clock of library and test: @ahead_ns ahead of the machine's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += (time_t)(ahead_ns / 1000000000);
	ts->tv_nsec += (long)(ahead_ns % 1000000000);
	if (ts->tv_nsec >= 1000000000) {
		ts->tv_nsec -= 1000000000;
		ts->tv_sec++;
	}
	return rc;
}

static struct failures fs;
static char told[64]; /* the events in their order: J(oined), B(ack), L(ost) */

static void on_peer(void *ctx, const struct bl_addr *who, enum bl_peer_event what)
{
	size_t n = strlen(told);

	(void)ctx;
	(void)who;
	assert_true(n + 1 < sizeof(told));
	told[n] = what == BL_PEER_JOINED ? 'J' : what == BL_PEER_BACK ? 'B' : 'L';
	told[n + 1] = 0;
}

static int pair_up(void **state)
{
	(void)state;
	fs.n = 0;
	told[0] = 0;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	bl_on_send_fail(a.ep, on_fail, &fs);
	bl_on_peer(a.ep, on_peer, NULL);
	return 0;
}

static int send_to(const struct fake *to)
{
	struct bl_msg m = msg_to(to, "x", 1, 1);

	return bl_send_reliable(a.ep, &m, 1, 0);
}

/* Frames of opcode @op that left for @f, which reads none. */
static int count_frames(struct fake *f, uint8_t op)
{
	struct seen s;
	int n = 0;

	while (fake_take(f, &s))
		n += s.op == op;
	return n;
}

/* Let b read what came and answer, and a read the answers. */
static void answer(void)
{
	carry(&b, &a, true);
	bl_process(b.ep);
	carry(&a, &b, true);
	bl_process(a.ep);
}

static void join(void)
{
	assert_int_equal(send_to(&b), -EHOSTUNREACH);
	answer();
	assert_string_equal(told, "J");
	told[0] = 0;
}

/* Send to b until the sender has found out that b does not answer. */
static void lose(void)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;
	int i;

	t->open = false; /* its window is asked for again */
	assert_int_equal(send_to(&b), 0);
	for (i = 0; i < 20 && !t->dead; i++) {
		t->ask_ns = 1;
		bl_process(a.ep);
	}
	assert_true(t->dead);
}

/* A replica that starts late: nothing fails, however often the others try. */
static void absent__no_flood(void **state)
{
	struct bl_delivery d;
	int i, opens;

	(void)state;
	for (i = 0; i < 300; i++) {
		assert_int_equal(send_to(&b), -EHOSTUNREACH);
		bl_process(a.ep);
		ahead_ns += 10000000; /* 3 s in all */
	}
	assert_non_null(strstr(bl_strerror(a.ep), "does not answer"));
	/* at 0, 25, 75, 175, 375, 775, 1575 and 2575 ms; the clock of the machine goes on, too */
	opens = count_frames(&b, BL_OP_OPEN);
	assert_true(opens >= 8 && opens <= 12);
	assert_string_equal(told, "");
	answer(); /* b has begun, but has not read an OPEN */
	assert_string_equal(told, "");
	ahead_ns += 2 * BL_ASK_MAX_NS;
	bl_process(a.ep);
	answer();
	assert_string_equal(told, "J");
	assert_int_equal(send_to(&b), 0);
	assert_true(carry(&b, &a, true) >= 1);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	bl_process(a.ep);
	assert_int_equal(fs.n, 0);
	assert_string_equal(told, "J");
}

/* The same for the best-effort stream, and all absent destinations are asked. */
static void absent__best_effort(void **state)
{
	struct bl_msg m[2] = { msg_to(&b, "x", 1, 1), msg_to(&b, "y", 1, 2) };

	(void)state;
	m[1].dst.port ^= 1;
	assert_int_equal(bl_send(a.ep, m, 2, 0), -EHOSTUNREACH);
	assert_int_equal(a.ep->nasked, 2);
	answer();
	assert_string_equal(told, "J");
	assert_int_equal(a.ep->nasked, 1);
	assert_int_equal(bl_send(a.ep, m, 2, 0), -EHOSTUNREACH);
	assert_int_equal(bl_send(a.ep, m, 1, 0), 0);
	assert_int_equal(count_frames(&b, BL_OP_DATA), 1);
	assert_int_equal(fs.n, 0);
}

/* Oneself is always there. */
static void self__is_there(void **state)
{
	(void)state;
	assert_int_equal(send_to(&a), 0);
	assert_int_equal(bl_peer_wait(a.ep, bl_self(a.ep), 0), 0);
	assert_string_equal(told, "");
}

/* A peer that begins to speak is asked at once and not only after the second that is due. */
static void heard__asked_at_once(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		assert_int_equal(send_to(&b), -EHOSTUNREACH);
		ahead_ns += BL_ASK_MAX_NS;
		bl_process(a.ep);
	}
	count_frames(&b, BL_OP_OPEN);
	ahead_ns += BL_RTO_NS;
	assert_int_equal(bl_peer_wait(b.ep, bl_self(a.ep), 0), -EAGAIN);
	carry(&a, &b, true);
	bl_process(a.ep); /* reads b's OPEN, answers, and asks */
	answer();
	assert_string_equal(told, "J");
	assert_int_equal(bl_peer_wait(b.ep, bl_self(a.ep), 0), 0);
}

/* Lost once, told once, and what is sent then is refused; the same process comes back. */
static void lost__and_back(void **state)
{
	uint32_t failed;
	int i;

	(void)state;
	join();
	lose();
	bl_process(a.ep);
	assert_string_equal(told, "L");
	failed = fs.n;
	assert_int_equal(failed, 1); /* what was sent while it was being lost */
	for (i = 0; i < 100; i++) {
		assert_int_equal(send_to(&b), -EHOSTUNREACH);
		ahead_ns += 20000000;
		bl_process(a.ep);
	}
	assert_int_equal(fs.n, failed);
	assert_string_equal(told, "L");
	answer();
	assert_string_equal(told, "LB");
	assert_int_equal(send_to(&b), 0);
	assert_int_equal(fs.n, failed);
}

/* Another process at the address has nothing of what its predecessor was sent: it joins. */
static void restarted__joins(void **state)
{
	(void)state;
	join();
	lose();
	count_frames(&b, BL_OP_OPEN);
	b.ep->incarnation++;
	bl_process(a.ep);
	ahead_ns += BL_ASK_MAX_NS;
	bl_process(a.ep);
	answer();
	assert_string_equal(told, "LJ");
}

/* The successor speaks before anybody has noticed that the predecessor is gone. */
static void restarted__unnoticed(void **state)
{
	(void)state;
	join();
	b.ep->incarnation++;
	ahead_ns += BL_RTO_NS;
	assert_int_equal(bl_peer_wait(b.ep, bl_self(a.ep), 0), -EAGAIN);
	carry(&a, &b, true);
	bl_process(a.ep);
	answer();
	assert_string_equal(told, "LJ");
}

/* A loss and a return between two calls of the application are two events, not none. */
static void told__both(void **state)
{
	struct bl_peer *p = fake_peer(&a, &b);

	(void)state;
	join();
	bl_presence_lost(a.ep, p, bl_mono());
	bl_presence_answered(a.ep, p, b.ep->incarnation);
	bl_presence_lost(a.ep, p, bl_mono());
	bl_presence_answered(a.ep, p, b.ep->incarnation);
	bl_process(a.ep);
	assert_string_equal(told, "LB");
	bl_process(a.ep);
	assert_string_equal(told, "LB");
}

static void announced__lost(void **state)
{
	(void)state;
	join();
	fail_peer(&a, 0, &b, fake_now());
	bl_process(a.ep);
	assert_string_equal(told, "L");
	assert_int_equal(send_to(&b), -EHOSTUNREACH);
	ahead_ns += BL_ASK_MAX_NS;
	bl_process(a.ep);
	answer(); /* it still answers, but it was announced: that process does not come back */
	assert_string_equal(told, "L");
	assert_int_equal(fs.n, 0);
}

static void window(uint16_t incarnation, uint32_t psn)
{
	uint8_t body[sizeof(struct bl_window)];

	bl_store32(body, psn);
	bl_store16(body + 4, incarnation);
	bl_store16(body + 6, 8);
	bl_store16(body + 8, b.ep->incarnation);
	bl_store16(body + 10, 0);
	assert_true(fake_put(&a, &b.ep->self, BL_OP_WINDOW, 0, 0, body, sizeof(body)));
}

/* The best-effort stream gives a peer up; it is there when both streams reach it. */
static void best_effort__lost_and_back(void **state)
{
	struct bl_msg m = msg_to(&b, "x", 1, 1);
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	int i;

	(void)state;
	join();
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	for (i = 0; i < 30 && !t->dead; i++) {
		ahead_ns += BL_RTO_MAX_NS;
		bl_process(a.ep);
	}
	assert_true(t->dead);
	assert_string_equal(told, "L");
	assert_int_equal(bl_send(a.ep, &m, 1, 0), -EHOSTUNREACH);
	window(a.ep->incarnation, fake_peer(&a, &b)->rtx.next_psn);
	bl_process(a.ep);
	assert_string_equal(told, "L"); /* the other stream does not reach it yet */
	fake_credit(&a, &b, t->next_psn, 8);
	bl_process(a.ep);
	assert_string_equal(told, "LB");
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
}

/* Who cannot read what is sent to the address cannot pretend to be there. */
static void liar__is_not_there(void **state)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;

	(void)state;
	t->next_psn = t->credited = t->asked_psn = 0x5a5a0000;
	assert_int_equal(send_to(&b), -EHOSTUNREACH);
	window(a.ep->incarnation + 1, t->next_psn);
	window(a.ep->incarnation, t->next_psn + 0x10000);
	window(a.ep->incarnation, t->next_psn - 0x10000);
	bl_process(a.ep);
	assert_string_equal(told, "");
	assert_int_equal(send_to(&b), -EHOSTUNREACH);
	window(a.ep->incarnation, t->next_psn);
	bl_process(a.ep);
	assert_string_equal(told, "J");
}

/* Ten thousand absent peers: the rate of OPENs is bounded, and all are asked in turn. */
static void many__bounded(void **state)
{
	enum { MANY = 10000 };
	struct bl_msg m = msg_to(&b, "x", 1, 1);
	uint64_t sent = a.ep->st.probes_sent;
	uint32_t i, never = 0;
	struct bl_peer *p;

	(void)state;
	m.dst.ip[12] = 127;
	m.dst.ip[13] = 9; /* nobody is there */
	for (i = 0; i < MANY; i++) {
		m.dst.ip[14] = (uint8_t)(i >> 8);
		m.dst.ip[15] = (uint8_t)i;
		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), -EHOSTUNREACH);
	}
	assert_int_equal(a.ep->nasked, MANY);
	for (i = 0; i < 15000; i++) { /* 15 s */
		ahead_ns += 1000000;
		bl_process(a.ep);
	}
	sent = a.ep->st.probes_sent - sent;
	assert_true(sent >= MANY && sent < 20000);
	for (p = a.ep->peers; p; p = p->all_next)
		never += p->presence.watched && !p->presence.asked_ns;
	assert_int_equal(never, 0);
	/* Those that nothing was sent to for two minutes are forgotten, down to the limit. */
	for (i = 0; i < 200; i++) {
		ahead_ns += BL_SWEEP_NS;
		bl_sweep(a.ep, bl_mono());
	}
	assert_true(a.ep->nwatched <= BL_WATCH_KEEP);
	assert_int_equal(a.ep->nasked, a.ep->nwatched);
}

/* An idle peer is not forgotten, so a group that was idle overnight does not join anew. */
static void idle__remembered(void **state)
{
	uint32_t i;

	(void)state;
	join();
	for (i = 0; i < 300; i++) {
		ahead_ns += BL_SWEEP_NS;
		bl_sweep(a.ep, bl_mono());
	}
	assert_int_equal(send_to(&b), 0);
	assert_string_equal(told, "");
}

static void wait__edges(void **state)
{
	const struct bl_addr none = { .port = 1 };
	struct bl_addr zero = b.ep->self;

	(void)state;
	zero.port = 0;
	bl_on_peer(a.ep, NULL, NULL);
	assert_int_equal(bl_peer_wait(a.ep, &none, 0), -EINVAL);
	assert_int_equal(bl_peer_wait(a.ep, &zero, 0), -EINVAL);
	assert_int_equal(bl_wait(a.ep, 1u << 30, 0), -EINVAL);
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 0), -EAGAIN);
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 30), -ETIMEDOUT);
	assert_non_null(strstr(bl_strerror(a.ep), "has not answered"));
	assert_int_equal(a.ep->nasked, 0); /* nobody waits any more */
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 0), -EAGAIN);
	answer();
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 0), 0);
	/* An answer of long ago does not count: b may be stopped. */
	ahead_ns += 2000000000;
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 30), -ETIMEDOUT);
	/* Without a callback, sends are accepted as ever. */
	assert_int_equal(send_to(&b), 0);
	a.ep->outcast = true;
	assert_int_equal(bl_peer_wait(a.ep, &b.ep->self, 30), -ESTALE);
	a.ep->outcast = false;
}

static uint32_t called;
static char who_told[16]; /* the last byte of each address, as a digit */

static void on_proc(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	size_t n = strlen(who_told);

	(void)ctx;
	(void)ts;
	assert_int_equal(who->ip[11], 0xff);
	called++;
	snprintf(who_told + n, sizeof(who_told) - n, "%d", who->ip[15]);
}

/* The other family's address of a failed host is no second failure. */
static void announced__own_family(void **state)
{
	struct bl_failure *f;

	(void)state;
	called = 0;
	bl_on_proc_fail(a.ep, on_proc, NULL);
	fail_peer(&a, 0, &b, fake_now());
	fail_peer(&a, 0, &b, fake_now());
	f = &pages[0].ring[2];
	memset(f->addr, 0, sizeof(f->addr));
	f->addr[0] = 0xfd;
	bl_process(a.ep);
	assert_int_equal(called, 1);
	assert_int_equal(a.ep->fail_seen, 2);
}

/*
 * Announces one address after the other, as @text says: "0" to "9" is the last byte of an IPv4
 * address, "v" an IPv6 address; the next address of the same host follows with a "+" in front.
 * Returns the addresses that the application was told.
 */
static const char *announced(const char *text, bool counts)
{
	static uint64_t order;
	uint8_t ofs[2] = { 0 };
	struct bl_failure *f;

	who_told[0] = 0;
	for (; *text; text++) {
		bool v4 = text[*text == '+'] != 'v';

		if (*text != '+') {
			order++;
			memset(ofs, 0, sizeof(ofs));
		} else {
			text++;
		}
		f = &pages[0].ring[(pages[0].last + 1) % BL_FAILS_MAX];
		*f = (struct bl_failure){ .number = pages[0].last + 1,
					  .order = order / 2, /* one decision, two hosts */
					  .ts = FAKE_BUS,
					  .nth = counts ? ofs[v4]++ : 0 };
		memcpy(f->addr, a.ep->self.ip, 16);
		f->addr[15] = (uint8_t)(v4 ? *text - '0' : 1);
		f->addr[0] = v4 ? 0 : 0xfd;
		__atomic_store_n(&pages[0].last, pages[0].last + 1, __ATOMIC_RELEASE);
	}
	bl_process(a.ep);
	return who_told;
}

/*
 * A host with several addresses fails once, and the application hears of the address that it knows.
 * It knows that of b, which ends with 2.
 */
static void announced__once(void **state)
{
	(void)state;
	bl_on_proc_fail(a.ep, on_proc, NULL);
	assert_string_equal(announced("3+4+5", true), "3"); /* it knows none */
	assert_string_equal(announced("2+3+4", true), "2");
	join();
	assert_string_equal(announced("2", true), "2");
	assert_string_equal(announced("2+3+4", true), "2");
	assert_string_equal(announced("3+2+4", true), "2");
	assert_string_equal(announced("3+4+2", true), "2");
	assert_string_equal(announced("v+3+v+2", true), "2");
	assert_string_equal(announced("3+v+4+v", true), "3");
	assert_string_equal(announced("v", true), "");
	/* Two hosts of one decision, with one T. */
	assert_string_equal(announced("3+4"
				      "5+2",
				      true),
			    "32");
	assert_string_equal(announced("3+2"
				      "5+4",
				      true),
			    "25");
	assert_string_equal(announced("v+3"
				      "v+2",
				      true),
			    "32");
	assert_string_equal(announced("3+4"
				      "v+2",
				      true),
			    "32");
	/* The daemon of an earlier version does not count them. */
	assert_string_equal(announced("3+4", false), "34");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)
	const struct CMUnitTest tests[] = {
		T(absent__no_flood),      T(absent__best_effort),
		T(self__is_there),        T(heard__asked_at_once),
		T(lost__and_back),        T(restarted__joins),
		T(restarted__unnoticed),  T(told__both),
		T(announced__lost),       T(best_effort__lost_and_back),
		T(liar__is_not_there),    T(many__bounded),
		T(idle__remembered),      T(wait__edges),
		T(announced__own_family), T(announced__once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
