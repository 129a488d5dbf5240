// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Answers after a node or process has gone: programs and daemons answer, processes are not waited
 * for. The rack's nodes have their agents, there is one controller, and endpoints send reliably.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

/*
 * No host dies here and no process is expelled: neither one that has no CPU for a while, nor one
 * that is stopped for as long as a case takes.
 */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
	cfg->process_limit_ms = 100000;
}

static void with_controller(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	patient(cfg, n);
}

static void open_rack(unsigned int hosts)
{
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = hosts;
	rack.tweak = with_controller;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
}

/* ---- the workers ---- */

#define phase (tr_sh->node[0].user[0]) /* the script's command to all workers */
/* user[] of a worker: 1 + the reason of the last end that it heard of */
#define WHY      0
#define GONES    1
#define HAS_LEFT 4 /* user[] of leave_and_return() */
#define LEAVE    5 /* the script's command to it alone */
#define THEN     6 /* deliveries of the first two when it was about to leave */

static void on_gone(void *ctx, const struct bl_addr *who, uint64_t ts, enum bl_gone_reason why)
{
	struct tr *w = ctx;

	(void)who, (void)ts;
	TR_STORE(tr_sh->node[w->id].user[2 + WHY], 1 + (uint64_t)why);
	TR_STORE(tr_sh->node[w->id].user[2 + GONES], tr_sh->node[w->id].user[2 + GONES] + 1);
}

static void some(struct tr *w, uint64_t to, unsigned int n)
{
	static const uint32_t len[] = { 200 };
	uint64_t next;

	while (n--) {
		int rc;

		while ((rc = tr_send(w, to, 1, len, 0)) == -EAGAIN) {
			bl_wait(w->ep, BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE, 5);
			tr_take(w, 0);
		}
		if (rc)
			tr_fail(w, "bl_send_reliable: %d %s", rc, bl_strerror(w->ep));
		next = t_mono() + 2000000;
		while (t_mono() < next)
			tr_take(w, 1);
	}
}

/* Sends to all in phase 0, and afterwards to those that neither stop nor die. */
static void to_who_is_there(struct tr *w)
{
	bl_on_proc_gone(w->ep, on_gone, w);
	while (!TR_LOAD(tr_sh->enough) && w->me->nsent < TR_SENT_MAX - 10)
		some(w, TR_LOAD(phase) ? w->cfg->arg : w->cfg->to, 1);
	tr_finish(w);
}

/* Sends to all until it hears that one of them is gone. */
static void to_all_until_told(struct tr *w)
{
	bl_on_proc_gone(w->ep, on_gone, w);
	while (!TR_LOAD(tr_sh->enough) && w->me->nsent < TR_SENT_MAX - 10)
		some(w, tr_sh->node[w->id].user[2 + GONES] ? w->cfg->arg : w->cfg->to, 1);
	tr_finish(w);
}

static void listen_only(struct tr *w)
{
	bl_on_proc_gone(w->ep, on_gone, w);
	tr_finish(w);
}

/* Sends, leaves in an orderly way, and is back on its port at once, as another life. */
static void leave_and_return(struct tr *w)
{
	struct bl_options o = { .port = bl_self(w->ep)->port };
	int rc;

	some(w, w->cfg->to, 20);
	while (TR_LOAD(phase) < 1 && !TR_LOAD(w->me->user[LEAVE]))
		tr_take(w, 1);
	while (bl_wait(w->ep, BL_WAIT_ACKED, 100) != BL_WAIT_ACKED)
		tr_take(w, 0);
	TR_STORE(w->me->user[THEN], TR_LOAD(tr_sh->node[0].ngot));
	TR_STORE(w->me->user[THEN + 1], TR_LOAD(tr_sh->node[1].ngot));
	bl_exit(w->ep);
	TR_STORE(w->me->user[HAS_LEFT], 1);
	while (TR_LOAD(phase) < 2)
		usleep(1000);
	rc = bl_init(&w->ep, &o);
	if (rc)
		tr_fail(w, "bl_init: %d %s", rc, bl_strerror(NULL));
	some(w, w->cfg->to, 20);
	tr_finish(w);
}

/* ---- conditions of the script ---- */

static uint32_t want[2];

static bool goes_on(void)
{
	return TR_LOAD(tr_sh->node[0].ngot) >= want[0] && TR_LOAD(tr_sh->node[1].ngot) >= want[1];
}

static bool both_heard(void)
{
	return TR_LOAD(tr_sh->node[0].user[2 + GONES]) && TR_LOAD(tr_sh->node[1].user[2 + GONES]);
}

static uint32_t sent_by_then[2];

static bool both_sent_more(void)
{
	return TR_LOAD(tr_sh->node[0].nsent) >= sent_by_then[0] + 20 &&
	       TR_LOAD(tr_sh->node[1].nsent) >= sent_by_then[1] + 20;
}

static bool stopped_one_heard(void)
{
	return TR_LOAD(tr_sh->node[3].user[2 + GONES]);
}

static bool has_left(void)
{
	return TR_LOAD(tr_sh->node[2].user[HAS_LEFT]);
}

/* Demands that the first two deliver @more from now on. */
static void want_more(uint32_t more)
{
	want[0] = TR_LOAD(tr_sh->node[0].ngot) + more;
	want[1] = TR_LOAD(tr_sh->node[1].ngot) + more;
}

/*
 * Demands that the first two deliver @more since the moment in which the third one left. Some of
 * the messages that its last window allows may already have been delivered by now.
 */
static void want_since_it_left(uint32_t more)
{
	want[0] = (uint32_t)TR_LOAD(tr_sh->node[2].user[THEN]) + more;
	want[1] = (uint32_t)TR_LOAD(tr_sh->node[2].user[THEN + 1]) + more;
}

/*
 * Starts two workers that run @fn, send to @to and then to one another, and a third one that leaves
 * and returns.
 */
static void two_and_a_leaver(void (*fn)(struct tr *w), uint64_t to)
{
	struct tr_cfg cfg = { .fn = fn, .reliable = true, .to = to, .arg = 0x3, .quiet_ms = 4000 };

	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg);
	tr_add(&(struct tr_cfg){
		.host = 2, .fn = leave_and_return, .reliable = true, .to = 0x3, .quiet_ms = 4000 });
	tr_go();
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "nothing is delivered");
}

static void leaves_while_the_controller_stands(void)
{
	CHECK(!kill(ctl, SIGSTOP), "%s", strerror(errno));
	TR_STORE(phase, 1);
	CHECK(tr_until(has_left, WAIT_MS), "it does not leave");
	tr_pass(20);
}

/* Ends a case in which the third worker was present only for a part. */
static void all_or_none_of_two(void)
{
	unsigned int i;

	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 3; i++) {
		all_or_none(i, 0x3);
		CHECK(!*tr_sh->node[i].error, "endpoint %u: %s", i, tr_sh->node[i].error);
	}
}

/*
 * A process is stopped while another one dies, with unacknowledged frames to the latter that the
 * stopped one has, too. The failure is finished without the stopped process, nobody else is
 * expelled, the others continue to deliver, and the stopped process continues where it was.
 */
RACK_TEST(stopped__others_go_on)
{
	unsigned int i;

	open_rack(4);
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = i < 2 ? to_who_is_there : listen_only,
					 .reliable = true,
					 .to = 0xf,
					 .arg = 0x3,
					 .quiet_ms = 4000 });
	rack_last_words = say_all;
	tr_go();
	want_more(40);
	CHECK(tr_until(goes_on, WAIT_MS), "nothing is delivered");
	/*
	 * What is sent from now on is stored by all but the third, and stays stored: nobody can
	 * deliver it.
	 */
	make_lossy(2, 65536, tr_sh->seed);
	for (i = 0; i < 2; i++)
		sent_by_then[i] = TR_LOAD(tr_sh->node[i].nsent);
	CHECK(tr_until(both_sent_more, WAIT_MS), "nothing is sent");
	CHECK(!kill(tr_sh->node[3].pid, SIGSTOP), "%s", strerror(errno));
	tr_kill(2);
	TR_STORE(phase, 1);
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	CHECK(tr_until(both_heard, WAIT_MS), "the others do not hear of it");
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "the others' delivery stands still");
	CHECK(times_said("\"number\":") == 1, "somebody was expelled besides: %s", ask());
	CHECK(!kill(tr_sh->node[3].pid, SIGCONT), "%s", strerror(errno));
	CHECK(tr_until(stopped_one_heard, WAIT_MS), "the stopped one hears nothing");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 4; i++) {
		all_or_none(i, 0xb);
		CHECK(i == 2 || !*tr_sh->node[i].error, "endpoint %u: %s", i, tr_sh->node[i].error);
	}
	CHECK(tr_sh->node[3].user[2 + GONES] && tr_sh->node[3].user[2 + WHY] == 1 + BL_GONE_DIED,
	      "the stopped one has not heard why");
	CHECK(tr_sh->node[3].st.recalled, "it had nothing to take out: this proves nothing");
	fprintf(stderr, "  recalls sent %" PRIu64 ", taken out by the stopped one %" PRIu64 "\n",
		TR_SUM(recalls_sent), tr_sh->node[3].st.recalled);
}

/*
 * A process leaves in an orderly way while the controller is stopped. Nothing waits for anybody,
 * its port is free at once, and its next life is accepted by those that have not heard of the end
 * of the previous one. They hear of it, with the reason, when the controller continues.
 */
RACK_TEST(left__costs_nobody_anything)
{
	unsigned int i;

	open_rack(3);
	rack_last_words = say_all;
	two_and_a_leaver(to_who_is_there, 0x3);
	leaves_while_the_controller_stands();
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still: a leave is waited for");
	TR_STORE(phase, 2);
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still when it is back");
	CHECK(!tr_sh->node[0].user[2 + GONES], "it was announced by a controller that is stopped");
	CHECK(!kill(ctl, SIGCONT), "%s", strerror(errno));
	CHECK(tr_until(both_heard, WAIT_MS), "nobody hears that it left: %s", ask());
	CHECK(tr_until(all_finished, WAIT_MS), "it does not come to its end: %s", ask());
	CHECK(times_said("\"why\":\"left\"") >= 1 && !times_said("\"why\":\"died\""),
	      "nobody sees why: %s", said_failures());
	for (i = 0; i < 2; i++)
		CHECK(tr_sh->node[i].user[2 + WHY] == 1 + BL_GONE_LEFT,
		      "endpoint %u heard of reason %d", i, (int)tr_sh->node[i].user[2 + WHY] - 1);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0x7, 0x3);
	for (i = 0; i < 3; i++)
		CHECK(!*tr_sh->node[i].error, "endpoint %u: %s", i, tr_sh->node[i].error);
	CHECK(tr_until(all_finished, WAIT_MS),
	      "the endpoints left, and that does not come to its end: %s", ask());
}

/*
 * A process leaves in an orderly way while the controller is stopped, and the others continue to
 * send to it, since they cannot have heard. Its host answers in its place: the others deliver to
 * one another everything that its last window lets them send, and hear of it later.
 */
RACK_TEST(left__others_still_send_to_it)
{
	open_rack(3);
	rack_last_words = say_all;
	two_and_a_leaver(to_all_until_told, 0x7);
	leaves_while_the_controller_stands();
	want_since_it_left(200); /* of two senders, whose last window has 256 frames */
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still: what is sent to who left is "
					  "waited for");
	CHECK(!tr_sh->node[0].user[2 + GONES], "it was announced by a controller that is stopped");
	CHECK(!kill(ctl, SIGCONT), "%s", strerror(errno));
	CHECK(tr_until(both_heard, WAIT_MS), "nobody hears that it left: %s", ask());
	CHECK(!times_said("\"why\":\"died\""), "who left was taken for dead: %s", said_failures());
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still once it is known");
	TR_STORE(phase, 2);
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still when it is back");
	all_or_none_of_two();
}

/*
 * The same without a controller, where nobody is ever told: messages that it did not get and others
 * did are committed, and then sending to it fails.
 */
RACK_TEST(left__without_a_controller)
{
	rack.lab.spec.hosts = 3;
	rack.tweak = patient;
	rack_open();
	two_and_a_leaver(to_who_is_there, 0x7);
	TR_STORE(tr_sh->node[2].user[LEAVE], 1);
	CHECK(tr_until(has_left, WAIT_MS), "it does not leave");
	want_since_it_left(200);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still: what is sent to who left is "
					  "waited for");
	TR_STORE(phase, 2);
	want_more(100);
	CHECK(tr_until(goes_on, WAIT_MS), "delivery stands still when it is back");
	all_or_none_of_two();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped__others_go_on),
		cmocka_unit_test(left__costs_nobody_anything),
		cmocka_unit_test(left__others_still_send_to_it),
		cmocka_unit_test(left__without_a_controller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
