// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiver recovery (1Pipe 5.2). A receiver that was stopped, was expelled, and continues, delivers
 * what had arrived and all others deliver, too, and is told how far that goes: up to that timestamp
 * its log is the complete log of the others, and then it gets ESTALE.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/endpoint.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
#define VICTIM    2

enum { SAID, BOUND, UNDECIDED }; /* of tr_node.user[]: it got ESTALE, and its struct bl_stale */

static uint32_t limit_ms = 60000;

static void name_limit(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = 3000000; /* a host is either cut off or it is not; no host is slow */
	if (n->kind == LAB_HOST)
		cfg->process_limit_ms = limit_ms;
}

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

/* Sends to all until it hears of an end. */
static void talk(struct tr *w)
{
	uint32_t len;
	uint64_t next;
	int rc;

	while (!TR_LOAD(tr_sh->enough) && w->me->nsent < TR_SENT_MAX - 10) {
		next = t_mono() + 300000;
		len = tr_some_len(w, 0);
		while ((rc = tr_send(w, w->me->nproc_failed ? 0x3 : 0x7, 1, &len, 0)) == -EAGAIN) {
			bl_wait(w->ep, BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE, 5);
			tr_take(w, 0);
		}
		if (rc)
			tr_fail(w, "bl_send_reliable: %d %s", rc, bl_strerror(w->ep));
		do {
			if (!tr_take(w, 0) && t_mono() < next)
				usleep(50);
		} while (t_mono() < next);
	}
	tr_finish(w);
}

/*
 * Takes the messages that it cannot decide: from the bound on, in the order of the stream, and as
 * many as were reported.
 */
static void take_undecided(struct tr *w, const struct bl_stale *s)
{
	struct bl_delivery d[8];
	uint64_t last = s->ts;
	uint32_t n = 0;
	int got, i;

	while ((got = bl_recv_undecided(w->ep, d, 8)) > 0)
		for (i = 0; i < got; i++, n++) {
			if (d[i].ts < last)
				tr_fail(w,
					"message %u that is undecided has ts %" PRIu64 ", the one "
					"before "
					"%" PRIu64,
					n, d[i].ts, last);
			last = d[i].ts;
		}
	if (got || n != s->undecided)
		tr_fail(w, "%u messages are undecided, and %u came: %d %s", s->undecided, n, got,
			bl_strerror(w->ep));
}

/* Sends nothing; takes one message at a time until it is expelled. */
static void until_stale(struct tr *w)
{
	struct bl_stale s = { .size = sizeof(s) };
	struct bl_delivery d;
	int n;

	TR_STORE(w->me->done_sending, 1);
	while ((n = bl_recv_reliable(w->ep, &d, 1, 100)) >= 0 || n == -EINTR) {
		if (n == 1)
			tr_log(w, &d);
		if (TR_LOAD(tr_sh->quit))
			tr_fail(w, "it was never told that it is out");
	}
	if (n != -ESTALE)
		tr_fail(w, "bl_recv_reliable: %d %s", n, bl_strerror(w->ep));
	n = bl_get_stale(w->ep, &s);
	if (n)
		tr_fail(w, "bl_get_stale: %d", n);
	w->me->user[BOUND] = s.ts;
	w->me->user[UNDECIDED] = s.undecided;
	take_undecided(w, &s);
	TR_STORE(w->me->user[SAID], 1);
	bl_exit(w->ep);
	_exit(0);
}

/* Opens two endpoints that send to all, and the victim. */
static void open_three(void)
{
	struct tr_cfg cfg = { .fn = talk, .len = 300, .reliable = true, .quiet_ms = 3000 };

	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = 3;
	rack.tweak = name_limit;
	rack_open();
	CHECK(tr_until(all_ok, WAIT_MS), "not all nodes are there: %s", ask());
	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg);
	cfg.host = VICTIM;
	cfg.fn = until_stale;
	tr_add(&cfg);
	rack_last_words = say_all;
	tr_sh->node[VICTIM].may_die = true;
}

static struct bl_ep *victims(void)
{
	return bl_endpoint_at(rack.node[rack_host(VICTIM)], BL_PORT_BASE + VICTIM);
}

static bool is_out(void)
{
	const struct bl_ep *ep = victims();

	return ep && ep->dead;
}

static bool is_gone(void)
{
	return !tr_sh->node[VICTIM].pid;
}

static void signal_it(int sig)
{
	CHECK(tr_sh->node[VICTIM].pid && !kill(tr_sh->node[VICTIM].pid, sig), "%s",
	      tr_sh->node[VICTIM].error);
}

static uint32_t want;

static bool others_go_on(void)
{
	return TR_LOAD(tr_sh->node[0].ngot) >= want && TR_LOAD(tr_sh->node[1].ngot) >= want;
}

static void goes_on(const char *when)
{
	want = TR_LOAD(tr_sh->node[0].ngot) + 50;
	CHECK(tr_until(others_go_on, WAIT_MS), "%s", when);
}

/* Returns the number of entries in the log of @r below @bound. */
static uint32_t below(unsigned int r, uint64_t bound)
{
	const struct tr_node *n = &tr_sh->node[r];
	uint32_t i;

	for (i = 0; i < n->ngot && n->got[i].ts < bound; i++)
		;
	return i;
}

/*
 * Checks that the victim's log equals that of the others below its bound: the same messages at the
 * same positions.
 */
static void same_up_to_the_bound(uint32_t before)
{
	const struct tr_node *v = &tr_sh->node[VICTIM];
	uint64_t bound = v->user[BOUND];
	unsigned int r;
	uint32_t i;

	fprintf(stderr, "  delivered %u, %u of them after it went on; %" PRIu64 " undecided\n",
		v->ngot, v->ngot - before, v->user[UNDECIDED]);
	for (r = 0; r < 2; r++) {
		const struct tr_node *n = &tr_sh->node[r];

		CHECK(below(r, bound) == v->ngot,
		      "endpoint %u delivered %u messages below the bound, who was expelled %u of "
		      "them",
		      r, below(r, bound), v->ngot);
		for (i = 0; i < v->ngot; i++)
			CHECK(v->got[i].ts == n->got[i].ts &&
				      v->got[i].sender == n->got[i].sender &&
				      v->got[i].seq == n->got[i].seq &&
				      v->got[i].item == n->got[i].item &&
				      v->got[i].hash == n->got[i].hash,
			      "delivery %u is (%u,%" PRIu64 ") there, and (%u,%" PRIu64 ") at "
			      "endpoint "
			      "%u",
			      i, v->got[i].sender, v->got[i].seq, n->got[i].sender, n->got[i].seq,
			      r);
	}
}

/* The victim continues and is told; then all end. */
static void wakes_up(uint32_t before)
{
	signal_it(SIGCONT);
	CHECK(tr_until(is_gone, WAIT_MS), "it does not hear that it is out");
	CHECK(TR_LOAD(tr_sh->node[VICTIM].user[SAID]), "it ended with \"%s\"",
	      tr_sh->node[VICTIM].error);
	goes_on("the others do not go on");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0x3);
	all_or_none(0, 0x3);
	all_or_none(1, 0x3);
	same_up_to_the_bound(before);
}

/* It is stopped for longer than its limit while messages are stored for it. */
RACK_TEST(stopped__delivers_what_was_stored)
{
	uint32_t before;

	limit_ms = 3000;
	open_three();
	tr_go();
	goes_on("nothing is delivered");
	signal_it(SIGSTOP);
	before = TR_LOAD(tr_sh->node[VICTIM].ngot);
	CHECK(tr_until(is_out, WAIT_MS), "it stands still, and stays");
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	goes_on("the others do not go on without it");
	wakes_up(before);
	CHECK(tr_sh->node[VICTIM].ngot > before, "it had nothing stored: this proves nothing");
}

/*
 * Expelled in the middle of the traffic, where ACKs are lost: what it has stored is recalled from
 * the others, once before it continues and once while it does.
 */
static void in_the_middle(bool finished)
{
	uint32_t before;
	unsigned int i;

	limit_ms = 60000;
	open_three();
	for (i = 0; i < 3; i++)
		make_lossy(i, 13107, tr_sh->seed + i);
	tr_go();
	goes_on("nothing is delivered");
	signal_it(SIGSTOP);
	tr_pass(t_below(&tr_sh->seed, 20));
	before = TR_LOAD(tr_sh->node[VICTIM].ngot);
	bl_endpoint_put_out(rack.node[rack_host(VICTIM)], 1ULL << victims()->slot, BL_OUT_RING);
	if (finished) {
		CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s",
		      ask());
		goes_on("the others do not go on without it");
	}
	wakes_up(before);
}

RACK_TEST(put_out__wakes_up_late)
{
	in_the_middle(true);
}

RACK_TEST(put_out__wakes_up_at_once)
{
	in_the_middle(false);
}

/*
 * The daemon is restarted while the victim is expelled and stopped: the bound is what the previous
 * daemon had determined.
 */
RACK_TEST(put_out__by_an_earlier_daemon)
{
	uint32_t before;

	limit_ms = 60000;
	open_three();
	tr_go();
	goes_on("nothing is delivered");
	signal_it(SIGSTOP);
	tr_pass(20);
	before = TR_LOAD(tr_sh->node[VICTIM].ngot);
	bl_endpoint_put_out(rack.node[rack_host(VICTIM)], 1ULL << victims()->slot, BL_OUT_RING);
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	goes_on("the others do not go on without it");
	rack_close_node(rack_host(VICTIM));
	rack_open_node(rack_host(VICTIM));
	CHECK(is_out(), "the next daemon takes it for a member");
	wakes_up(before);
}

/*
 * The victim's host is cut off and announced while the victim is stopped, and joins anew without
 * it. What the victim had before that belongs to the group; what its host receives afterwards does
 * not concern it.
 */
RACK_TEST(announced__host_does_not_wait_for_it)
{
	uint32_t before;

	limit_ms = 4000; /* time for which its host waits for it; nothing else takes that long */
	open_three();
	tr_go();
	goes_on("nothing is delivered");
	signal_it(SIGSTOP);
	tr_pass(20);
	before = TR_LOAD(tr_sh->node[VICTIM].ngot);
	rack_link(0, "h3", false);
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	goes_on("the others do not go on without it");
	rack_link(0, "h3", true);
	CHECK(tr_until(all_ok, WAIT_MS), "a process that stands still keeps its host out: %s",
	      ask());
	goes_on("the others do not go on with its host");
	wakes_up(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped__delivers_what_was_stored),
		cmocka_unit_test(put_out__wakes_up_late),
		cmocka_unit_test(put_out__wakes_up_at_once),
		cmocka_unit_test(put_out__by_an_earlier_daemon),
		cmocka_unit_test(announced__host_does_not_wait_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
