// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Back pressure: a receiver that does not read stops its senders, and nothing is lost. bl_send()
 * returns -EAGAIN, and bl_wait(BL_WAIT_SEND) returns when the receiver reads again.
 *
 * The receiver begins to read when both senders have been in one wait for long enough. A sender
 * that never waits is found by tr_wait_done().
 */
#include "tests/net/traffic.h"

#define MESSAGES  3000
#define AWAY_MS   300
#define GREEDY_MS 2000
#define WAIT_MS   90000

static void push(struct tr *w)
{
	uint32_t len = w->cfg->len, i;

	for (i = 0; i < MESSAGES; i++) {
		int rc;

		while ((rc = tr_send(w, w->cfg->to, 1, &len, 0)) == -EAGAIN) {
			uint64_t start = t_mono();

			TR_STORE(w->me->user[0], start);
			do
				rc = bl_wait(w->ep, BL_WAIT_SEND, 60000);
			while (rc == -EINTR);
			TR_STORE(w->me->user[0], 0);
			if (rc != BL_WAIT_SEND)
				tr_fail(w, "bl_wait() said %d when it waited for room", rc);
			if (t_mono() - start > w->me->user[1])
				w->me->user[1] = t_mono() - start;
			tr_take(w, 0);
		}
		if (rc)
			tr_fail(w, "bl_send: %d %s", rc, bl_strerror(w->ep));
	}
	tr_finish(w);
}

/*
 * Returns whether both senders are in a wait that began at least @ms ago. Earlier waits do not
 * count: credits for the first messages may still have been on their way.
 */
static bool senders_wait(unsigned int ms)
{
	uint64_t now = t_mono();
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint64_t since = __atomic_load_n(&tr_sh->node[i].user[0], __ATOMIC_RELAXED);

		if (!since || now - since <= ms * 1000000ULL)
			return false;
	}
	return true;
}

/* Returns whether a sender is in a wait that began at least @ms ago. */
static bool one_waits(unsigned int ms)
{
	uint64_t now = t_mono();
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint64_t since = __atomic_load_n(&tr_sh->node[i].user[0], __ATOMIC_RELAXED);

		if (since && now > since + ms * 1000000ULL)
			return true;
	}
	return false;
}

/*
 * Makes no call into the library for a while. An endpoint that does not answer for two seconds is
 * given up, and a sender may be without a CPU before it waits. So the receiver returns after twice
 * the time that it has to be away, and goes away once more if not both senders have waited.
 */
static void away(struct tr *w)
{
	while (!senders_wait(AWAY_MS)) {
		if (one_waits(2 * AWAY_MS))
			tr_take(w, 0);
		usleep(1000);
	}
	tr_finish(w);
}

/* No host is excluded, not even one that has no CPU for a while. */
static void nobody_dies(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
}

/* It is awake but takes no message: it answers probes, so no sender gives it up. */
static void greedy(struct tr *w)
{
	while (!senders_wait(GREEDY_MS)) {
		if (bl_process(w->ep) < 0)
			tr_fail(w, "bl_process: %s", bl_strerror(w->ep));
		usleep(5000);
	}
	if (w->me->received)
		tr_fail(w, "deliveries without bl_recv()");
	tr_finish(w);
}

static void run(void (*receiver)(struct tr *w), unsigned int wait_ms, uint32_t len)
{
	unsigned int i;

	rack.lab.spec.hosts = 3;
	rack.tweak = nobody_dies;
	rack_open();
	/* two senders, one of them on the receiver's own host */
	tr_add(&(struct tr_cfg){ .host = 0, .fn = push, .to = 4, .len = len });
	tr_add(&(struct tr_cfg){ .host = 1, .fn = push, .to = 4, .len = len });
	tr_add(&(struct tr_cfg){ .host = 1, .fn = receiver, .ring_bytes = TR_RING_TIGHT(2) });
	tr_go();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge_not_shared(~0ULL, ~0ULL);
	for (i = 0; i < 2; i++) {
		CHECK(tr_sh->node[i].user[1] > wait_ms * 1000000ULL, "the longest wait was %.1f ms",
		      (double)tr_sh->node[i].user[1] / 1e6);
		CHECK(tr_sh->node[i].nfailed == 0, "send_fail was called");
	}
	CHECK(rack_count_all(BL_R_RING_FULL) == 0, "a ring overflowed");
}

RACK_TEST(receiver__is_away)
{
	run(away, AWAY_MS, 1000);
}

RACK_TEST(receiver__does_not_take)
{
	run(greedy, GREEDY_MS, 1000);
}

RACK_TEST(receiver__does_not_take_large_messages)
{
	run(greedy, GREEDY_MS, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver__is_away),
		cmocka_unit_test(receiver__does_not_take),
		cmocka_unit_test(receiver__does_not_take_large_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
