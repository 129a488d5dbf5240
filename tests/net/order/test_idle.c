// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Silence: hosts that send nothing hold up nobody, and a sleeping receiver is woken by the kernel,
 * not by a timer.
 */
#include <sys/epoll.h>
#include "tests/net/traffic.h"

#define MESSAGES 60

/* A host that has no CPU for a while is not excluded, so that what it sends then is not late. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
}

/*
 * Returns whether the receiver waits in the kernel. Nothing else that it does takes it off its CPU.
 */
static bool sleeps(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tr_sh->node[1].pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* Uses @arg. user[3] counts the messages during which a beacon left h3. */
static void say_slowly(struct tr *w)
{
	const uint32_t len = 100;
	uint64_t beacons;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		/* however long it takes to sleep again */
		w->me->user[2] = t_mono();
		while (!sleeps() && t_mono() - w->me->user[2] < 30000000000ULL)
			tr_take(w, 0);
		w->me->user[2] = t_mono();
		beacons = w->cfg->arg ? rack_count(rack_host(2), BL_R_BEACON_SENT) : 0;
		while (tr_send(w, w->cfg->to, 1, &len, 0) == -EAGAIN)
			tr_take(w, 1);
		/*
		 * Send the next message only when this one was delivered: nothing else can wake the
		 * receiver.
		 */
		while (TR_LOAD(tr_sh->node[1].received) <= i &&
		       t_mono() - w->me->user[2] < 30000000000ULL)
			tr_take(w, 1);
		if (w->cfg->arg)
			w->me->user[3] += rack_count(rack_host(2), BL_R_BEACON_SENT) > beacons;
	}
	tr_finish(w);
}

static void sleep_on_recv(struct tr *w)
{
	TR_STORE(w->me->done_sending, 1);
	while (w->me->received < MESSAGES)
		tr_take(w, -1);
}

static void sleep_on_epoll(struct tr *w)
{
	int ep = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN }, got;

	TR_STORE(w->me->done_sending, 1);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, bl_fd(w->ep), &e))
		tr_fail(w, "bl_fd() cannot be polled");
	/* A first message may be here already; then the descriptor is readable at once. */
	bl_process(w->ep);
	while (w->me->received < MESSAGES) {
		int n = epoll_wait(ep, &got, 1, 30000);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1)
			tr_fail(w, "nothing woke epoll within 30 s; %" PRIu64 " messages had come",
				w->me->received);
		w->me->user[0]++;
		if (bl_process(w->ep) <= 0)
			continue;
		if (epoll_wait(ep, &got, 1, 0) != 1)
			tr_fail(w, "messages are there, and nothing is readable");
		tr_take(w, 0);
	}
}

/* Two endpoints send; the other hosts have a silent endpoint, or none at all. */
static void run(void (*receiver)(struct tr *w))
{
	uint64_t start;

	rack.lab.spec.hosts = 5;
	rack.tweak = patient;
	rack_open();
	tr_add(&(struct tr_cfg){ .host = 0, .fn = say_slowly, .to = 2 });
	tr_add(&(struct tr_cfg){ .host = 1, .fn = receiver });
	tr_add(&(struct tr_cfg){ .host = 2, .fn = tr_sink });
	start = t_mono();
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge_not_shared(~0ULL, ~0ULL);
	fprintf(stderr,
		"  %.2f ms a message; %" PRIu64 " sleeps, %" PRIu64 " wake-ups of %u messages\n",
		(double)(t_mono() - start) / 1e6 / MESSAGES, (uint64_t)tr_sh->node[1].st.sleeps,
		(uint64_t)tr_sh->node[1].st.wakeups, MESSAGES);
}

RACK_TEST(sleeper__in_bl_recv)
{
	run(sleep_on_recv);
	/*
	 * It slept before nearly each message, and was woken a few times for each at most, so it
	 * did not poll.
	 */
	CHECK(tr_sh->node[1].st.sleeps >= MESSAGES / 2, "it did not sleep");
	CHECK(tr_sh->node[1].st.wakeups >= MESSAGES / 2, "nobody woke it");
	CHECK(tr_sh->node[1].st.sleeps <= 10 * MESSAGES, "%" PRIu64 " sleeps are polling",
	      (uint64_t)tr_sh->node[1].st.sleeps);
}

RACK_TEST(sleeper__in_epoll)
{
	run(sleep_on_epoll);
	CHECK(tr_sh->node[1].user[0] >= MESSAGES / 2, "it did not sleep");
	CHECK(tr_sh->node[1].user[0] <= 10 * MESSAGES, "%" PRIu64 " wake-ups are polling",
	      tr_sh->node[1].user[0]);
}

static void a_second(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 1500000; /* the machine may stand still for 1 s */
}

/* An endpoint without any traffic is never woken. */
RACK_TEST(silence__wakes_nobody)
{
	unsigned int i;

	rack.lab.spec.hosts = 3;
	rack.tweak = a_second;
	rack_open();
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = tr_sink });
	tr_go();
	tr_wait_done(60000);
	rack_serve(3000);
	for (i = 0; i < 3; i++) {
		struct bl_ep_page *p = rack_page(rack_host(i), 0);

		CHECK(p, "no page");
		CHECK(p->wake.woken == 0, "woken %llu times for nothing",
		      (unsigned long long)p->wake.woken);
		munmap(p, sizeof(*p));
	}
	CHECK(rack_count_all(BL_R_EXCLUDED) == 0, "an idle host was taken for dead");
	tr_stop();
}

static void slow_beacons(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 200 * cfg->beacon_us;
}

/*
 * Sends one message after the other from h1 to h2. Returns how many met a beacon of h3 on their
 * way.
 */
static uint64_t beacons_of_a_lone_sender(bool no_ahead)
{
	uint64_t met;

	rack.lab.spec.hosts = 4;
	rack.lab.spec.beacon_us = 50000;
	rack.lab.spec.no_ahead = no_ahead;
	rack.tweak = slow_beacons;
	rack_open();
	tr_add(&(struct tr_cfg){ .host = 0, .fn = say_slowly, .to = 2, .arg = 1 });
	tr_add(&(struct tr_cfg){ .host = 1, .fn = sleep_on_recv });
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge_not_shared(~0ULL, ~0ULL);
	met = tr_sh->node[0].user[3];
	fprintf(stderr, "  %" PRIu64 " of %u messages met a beacon\n", met, MESSAGES);
	return met;
}

/*
 * Silent hosts have promised ahead, so no message except for the first one waits for a beacon. A
 * message that the machine holds up may meet one nevertheless.
 */
RACK_TEST(lone_sender__waits_for_no_beacon)
{
	CHECK(beacons_of_a_lone_sender(false) < MESSAGES / 2, "messages waited for beacons");
}

/* The same without promises: each message waits for the next beacon. */
RACK_TEST(lone_sender__no_ahead_waits)
{
	CHECK(beacons_of_a_lone_sender(true) == MESSAGES, "messages did not wait for beacons");
}

/*
 * Hosts fall silent between any two of their messages, beside others that never do, so that
 * promised and unpromised lanes meet in one order. A host is silent if it has sent nothing for 1000
 * intervals. With shorter intervals a machine that stands still for 25 ms would fill its links'
 * rings with beacons, and lose messages and the reports of that.
 */
RACK_TEST(silence__comes_and_goes)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.lab.spec.beacon_us = 250;
	rack_open();
	for (i = 0; i < 6; i++)
		tr_add(&(struct tr_cfg){ .host = i % 4,
					 .fn = tr_mix,
					 .run_ms = 6000,
					 .gap_us = i % 4 < 2 ? 3000 : 320000 + 17000 * i,
					 .fan = 3,
					 .items = 2,
					 .len = 300,
					 .ring_bytes = TR_RING_TIGHT(6) });
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0, "late");
	CHECK(rack_count_all(BL_R_BARRIER_AHEAD) + rack_count_all(BL_R_TS_AHEAD) +
			      rack_count_all(BL_R_PROMISE_BROKEN) ==
		      0,
	      "a promise was not believed, or broken");
	CHECK(rack_promises_ahead(2) && rack_promises_ahead(3), "they did not promise ahead");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeper__in_bl_recv),
		cmocka_unit_test(sleeper__in_epoll),
		cmocka_unit_test(silence__wakes_nobody),
		cmocka_unit_test(silence__comes_and_goes),
		cmocka_unit_test(lone_sender__waits_for_no_beacon),
		cmocka_unit_test(lone_sender__no_ahead_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
