// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each process has one limit on what it may hold up (loader/order/limits.c). A process that exceeds
 * it is expelled, alone, and the others continue. A process that pauses for less, or holds nothing
 * that others wait for, stays.
 *
 * The limit is long, because a machine that stands still must not cause the expulsion of a process
 * that should stay, and shorter than a case. No other time is asserted. A host that has no CPU for
 * a while is not excluded, nor announced where there is a controller.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"
#include "core/clock_core.h"
#include "core/order/line_core.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
#define LIMIT_MS  3000
#define DEAD_US   5000000
#define LAG_MS    50

static bool with_controller;
static uint32_t limit_ms = LIMIT_MS, commit_lag_max_ms, stuck_ms;
static int32_t send_limit_ms;

static void name_limit(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (with_controller)
		name_controller(cfg, n);
	cfg->dead_after_us = DEAD_US;
	if (n->kind == LAB_HOST)
		cfg->process_limit_ms = limit_ms;
	if (n->kind == LAB_HOST && send_limit_ms)
		cfg->send_limit_ms = send_limit_ms;
	if (n->kind != LAB_HOST)
		cfg->commit_lag_max_ms = commit_lag_max_ms;
}

static void say_all(void)
{
	if (with_controller)
		fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static void open_rack(unsigned int hosts, bool controller)
{
	with_controller = controller;
	if (controller)
		ctl_run(&(struct bl_ctl_cfg){ .answer_ms = ANSWER_MS, .stuck_ms = stuck_ms });
	rack.lab.spec.hosts = hosts;
	rack.tweak = name_limit;
	rack_open();
	if (controller)
		CHECK(tr_until(all_ok, WAIT_MS), "not all nodes are there: %s", ask());
}

static void add(unsigned int hosts, struct tr_cfg cfg)
{
	for (cfg.host = 0; cfg.host < hosts; cfg.host++)
		tr_add(&cfg);
	rack_last_words = say_all;
}

static struct bl_ep *endpoint(unsigned int id)
{
	return bl_endpoint_at(rack.node[rack_host(tr_sh->node[id].cfg.host)], BL_PORT_BASE + id);
}

static enum bl_out_why why_of(unsigned int id)
{
	const struct bl_ep *ep = endpoint(id);
	enum bl_out_why why;

	CHECK(ep, "endpoint %u is not there: %s", id, tr_sh->node[id].error);
	bl_ep_out(ep->node, ep->slot, &why);
	return why;
}

static unsigned int victim;

static bool victim_out(void)
{
	return why_of(victim) != BL_OUT_MEMBER;
}

static bool victim_gone(void)
{
	return !tr_sh->node[victim].pid;
}

static void signal_to(unsigned int id, int sig)
{
	CHECK(tr_sh->node[id].pid && !kill(tr_sh->node[id].pid, sig), "endpoint %u: %s", id,
	      tr_sh->node[id].error);
}

/* It continues, learns the reason, and ends. */
static void goes_on(const char *text)
{
	signal_to(victim, SIGCONT);
	CHECK(tr_until(victim_gone, WAIT_MS), "it does not hear that it is out");
	CHECK(strstr(tr_sh->node[victim].error, text), "it ended with \"%s\"",
	      tr_sh->node[victim].error);
}

static void others_stay(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		CHECK(i == victim || why_of(i) == BL_OUT_MEMBER,
		      "endpoint %u was expelled, too: %d", i, why_of(i));
}

static bool victim_over(void)
{
	const struct bl_ep *ep = endpoint(victim);
	enum bl_out_why why;

	return ep && bl_ep_out(ep->node, ep->slot, &why) == BL_OUT_OVER;
}

/*
 * Checks that everything that @from sent arrived at all of @to, and that what other senders except
 * @victim sent arrived at all of them or at none.
 */
static void judge(uint64_t from, uint64_t to)
{
	unsigned int i;

	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(from, to);
	for (i = 0; i < tr_sh->count; i++)
		all_or_none(i, to);
}

/*
 * A receiver is stopped and nothing else fails. Each sender to it has a full window, which holds C
 * and thereby everyone's messages. Then the receiver is expelled and the others continue. One
 * sender continues to send to it; that is another subject and is not judged.
 */
RACK_TEST(receiver__stopped)
{
	static const uint64_t to[] = { 0x7, 0x7, 0xf, 0x7 };
	unsigned int i;
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 500,
			      .len = 300,
			      .fan = 4,
			      .reliable = true,
			      .quiet_ms = 6000 };

	open_rack(4, true);
	for (cfg.host = 0; cfg.host < 4; cfg.host++) {
		cfg.to = to[cfg.host];
		tr_add(&cfg);
	}
	rack_last_words = say_all;
	victim = 3;
	tr_sh->node[victim].may_die = true;
	tr_go();
	tr_goes_on(victim, "any more");
	signal_to(victim, SIGSTOP);
	CHECK(tr_until(victim_out, WAIT_MS), "it stands still, and stays");
	CHECK(why_of(victim) == BL_OUT_RING || why_of(victim) == BL_OUT_WINDOW ||
		      why_of(victim) == BL_OUT_IN_FLIGHT,
	      "reason %d", why_of(victim));
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	for (i = 0; i < 3; i++)
		tr_goes_on(i, "any more");
	others_stay(4);
	goes_on("put this endpoint out");
	judge(0x3, 0x7);
}

/*
 * The receiver does not read and its ring is small: what it does not read is the reason for its
 * expulsion.
 */
RACK_TEST(receiver__does_not_read)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 500,
			      .len = 300,
			      .fan = 4,
			      .reliable = true,
			      .quiet_ms = 6000,
			      .to = 0x3 };

	open_rack(3, true);
	tr_add(&cfg);
	cfg.host = 1;
	cfg.to = 0x7;
	tr_add(&cfg);
	rack_last_words = say_all;
	cfg.host = 2;
	cfg.fn = tr_sink;
	victim = tr_add(&cfg);
	tr_sh->node[victim].may_die = true;
	tr_go();
	tr_goes_on(victim, "any more");
	signal_to(victim, SIGSTOP);
	CHECK(tr_until(victim_out, WAIT_MS), "it stands still, and stays");
	CHECK(why_of(victim) == BL_OUT_RING, "reason %d", why_of(victim));
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	others_stay(3);
	goes_on("it did not read what others had sent to it");
	judge(0x1, 0x3);
}

/*
 * A process is paused again and again for a quarter of the limit: nobody is expelled, and
 * everything arrives. The pause is well below the 2 s after which an endpoint that does not answer
 * counts as unreachable.
 */
RACK_TEST(receiver__pauses)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 1000,
			      .len = 300,
			      .fan = 3,
			      .reliable = true,
			      .quiet_ms = 8000 };
	unsigned int i;

	open_rack(3, true);
	add(3, cfg);
	victim = 2;
	tr_go();
	for (i = 0; i < 4; i++) {
		tr_goes_on(victim, "any more");
		signal_to(victim, SIGSTOP);
		tr_pass(LIMIT_MS / 4);
		signal_to(victim, SIGCONT);
	}
	tr_goes_on(victim, "any more");
	tr_enough();
	tr_wait_done(WAIT_MS);
	victim = 99;
	others_stay(3);
	tr_stop();
	tr_judge(0x7, 0x7);
}

#define COMPUTE_MS 2000 /* limit of the computing processes */

/*
 * Sends one message and then computes for two and a half limits: nothing is open, and only credits
 * wait in its ring. Or it never calls the library at all.
 */
static void computes(struct tr *w)
{
	uint32_t len = 100;

	if (w->cfg->arg) {
		CHECK(!tr_send(w, w->cfg->to, 1, &len, 0), "%s", bl_strerror(w->ep));
		while (w->cfg->reliable && bl_wait(w->ep, BL_WAIT_ACKED, 1000) == 0)
			;
	}
	usleep(COMPUTE_MS * 2500);
	TR_STORE(w->me->user[0], 1);
	while (!TR_LOAD(tr_sh->enough))
		usleep(1000);
}

static bool all_computed(void)
{
	return TR_LOAD(tr_sh->node[0].user[0]) && TR_LOAD(tr_sh->node[1].user[0]) &&
	       TR_LOAD(tr_sh->node[2].user[0]);
}

RACK_TEST(process__holds_up_nobody)
{
	struct tr_cfg cfg = { .fn = computes, .len = 100, .to = 0x8 };

	limit_ms = COMPUTE_MS;
	open_rack(4, true);
	tr_add(&cfg); /* never calls */
	cfg.host = 1;
	cfg.arg = 1;
	tr_add(&cfg); /* best effort */
	cfg.host = 2;
	cfg.reliable = true;
	tr_add(&cfg);
	cfg.host = 3;
	cfg.fn = tr_sink;
	tr_add(&cfg);
	tr_go();
	CHECK(tr_until(all_computed, WAIT_MS), "they do not come to their end");
	victim = 99;
	others_stay(4);
	tr_enough();
}

/*
 * Without controllers: a process that hangs in the middle of a send, as under a debugger, stops B
 * of the whole rack and is expelled.
 */
static void hangs(struct tr *w) /* its in-flight line is written by the test */
{
	for (;;)
		pause();
}

RACK_TEST(sender__hangs_without_controllers)
{
	struct tr_cfg cfg = {
		.fn = tr_mix, .until_enough = true, .gap_us = 500, .len = 300, .fan = 2, .to = 0x3
	};

	open_rack(3, false);
	add(2, cfg);
	cfg.host = 2;
	cfg.fn = hangs;
	victim = tr_add(&cfg);
	tr_go();
	tr_goes_on(0, "any more");
	/* what the process would have written before it was stopped */
	CHECK(endpoint(victim)->page, "it has no page");
	endpoint(victim)->page->line.ts = bl_node_bus_time(endpoint(victim)->node);
	CHECK(tr_until(victim_out, WAIT_MS), "B stands still, and it stays");
	CHECK(why_of(victim) == BL_OUT_IN_FLIGHT, "reason %d", why_of(victim));
	tr_goes_on(0, "any more");
	CHECK(tr_until(victim_over, WAIT_MS), "nothing of it was open, and C waits for it");
	others_stay(3);
	tr_enough();
	tr_kill(victim);
	tr_wait_done(WAIT_MS);
}

/*
 * A rack, with a controller of little patience or without one, and an endpoint on host 2 that does
 * nothing.
 */
static struct bl_ep_page *liar_page(bool controller)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 1000,
			      .len = 300,
			      .fan = 3,
			      .reliable = true,
			      .to = 0x7,
			      .quiet_ms = 6000 };

	/* with a controller, no switch puts the host out before its daemon acts */
	commit_lag_max_ms = controller ? WAIT_MS : LAG_MS;
	stuck_ms = 2000;
	open_rack(3, controller);
	add(3, cfg);
	cfg.host = 2;
	cfg.fn = hangs;
	victim = tr_add(&cfg);
	tr_sh->node[victim].may_die = true;
	tr_go();
	tr_goes_on(0, "at the start");
	CHECK(endpoint(victim)->page, "it has no page");
	return endpoint(victim)->page;
}

static struct bl_ep_page *lies_in;

/* It says that it works, all the time. */
static bool liar_out(void)
{
	__atomic_fetch_add(&lies_in->line.turn, 1, __ATOMIC_RELAXED);
	return victim_out();
}

static void liar_goes_alone(enum bl_out_why why)
{
	CHECK(why_of(victim) == why, "reason %d", why_of(victim));
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	tr_goes_on(0, "any more");
	others_stay(4);
	tr_kill(victim);
	judge(0x7, 0x7);
}

/*
 * A process holds C, as if a scattering were never complete, and claims to work. It names no
 * receiver that could be to blame. It goes alone, and not with its host.
 */
RACK_TEST(sender__holds_c_and_claims_to_work)
{
	lies_in = liar_page(true);
	lies_in->line.hold = bl_node_bus_time(endpoint(victim)->node);
	CHECK(tr_until(liar_out, WAIT_MS), "C stands still, and it stays: %s", ask());
	liar_goes_alone(BL_OUT_WINDOW);
}

/* For longer than the switch takes to find that out: it looks every quarter of dead_after. */
static bool c_lags(void)
{
	return bl_node_bus_time(endpoint(victim)->node) - lies_in->line.hold >
	       2 * DEAD_US * 1000ULL;
}

/*
 * Without controllers C waits for such a process, whatever becomes of its host in B. So the switch
 * does not exclude the host.
 */
RACK_TEST(sender__holds_c_without_controllers)
{
	limit_ms = WAIT_MS;
	lies_in = liar_page(false);
	lies_in->line.hold = bl_node_bus_time(endpoint(victim)->node);
	CHECK(tr_until(c_lags, WAIT_MS), "time stands still");
	CHECK(!rack_count_all(BL_R_LAGGING) && !rack_count_all(BL_R_EXCLUDED), "a host is out");
	lies_in->line.hold = BL_TIME_NONE;
	tr_goes_on(0, "any more");
	tr_enough();
	tr_kill(victim);
	tr_wait_done(WAIT_MS);
}

/*
 * A process accuses a receiver: its window says that frames that it has never sent are not
 * acknowledged. The receiver stays.
 */
RACK_TEST(sender__accuses_a_receiver)
{
	struct bl_rslot *s;

	lies_in = liar_page(true);
	s = &lies_in->win.slot[0];
	memcpy(s->addr, tr_sh->node[0].addr.ip, 16);
	s->port = tr_sh->node[0].addr.port;
	s->life = endpoint(0)->info.life;
	s->ts = bl_node_bus_time(endpoint(victim)->node);
	s->wait = BL_RSLOT_OPEN;
	__atomic_store_n(&lies_in->line.state, 1ULL << 32, __ATOMIC_RELEASE);
	CHECK(tr_until(liar_out, WAIT_MS), "C stands still: %s", ask());
	liar_goes_alone(BL_OUT_WINDOW);
}

/* Its window has four thousand million open frames. Its daemon looks at those that can be. */
RACK_TEST(sender__has_more_open_than_there_can_be)
{
	lies_in = liar_page(true);
	__atomic_store_n(&lies_in->line.state, 0xffffffffULL << 32, __ATOMIC_RELEASE);
	CHECK(tr_until(liar_out, WAIT_MS), "C stands still: %s", ask());
	liar_goes_alone(BL_OUT_WINDOW);
}

static const struct bl_host_page *host_page;

/* Its line says that it is in a send; as soon as that one is void, that it is in the next. */
static bool stopper_out(void)
{
	const struct bl_ep *ep = endpoint(victim);
	uint64_t ts = ep->page->line.ts;

	if (!ts || ts == BL_TIME_NONE || bl_line_void(ts, host_page->word[ep->slot].over))
		__atomic_store_n(&ep->page->line.ts, bl_node_bus_time(ep->node), __ATOMIC_RELEASE);
	return victim_out();
}

/* Each send of a process stands still for less than its limit, and all of them together do not. */
RACK_TEST(sender__stops_in_each_send)
{
	struct tr_cfg cfg = {
		.fn = tr_mix, .until_enough = true, .gap_us = 500, .len = 300, .fan = 2, .to = 0x3
	};
	int fd;

	send_limit_ms = 20;
	limit_ms = 1000;
	open_rack(3, false);
	add(2, cfg);
	cfg.host = 2;
	cfg.fn = hangs;
	victim = tr_add(&cfg);
	tr_go();
	tr_goes_on(0, "any more");
	fd = rack_map(rack_host(2), BL_MAP_HOST_PAGE);
	host_page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(host_page != MAP_FAILED, "%s", strerror(errno));
	close(fd);
	CHECK(tr_until(stopper_out, WAIT_MS), "B stands still most of the time, and it stays");
	CHECK(why_of(victim) == BL_OUT_IN_FLIGHT, "reason %d", why_of(victim));
	tr_goes_on(0, "any more");
	others_stay(3);
	tr_enough();
	tr_kill(victim);
	tr_wait_done(WAIT_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver__stopped),
		cmocka_unit_test(receiver__does_not_read),
		cmocka_unit_test(receiver__pauses),
		cmocka_unit_test(process__holds_up_nobody),
		cmocka_unit_test(sender__hangs_without_controllers),
		cmocka_unit_test(sender__holds_c_and_claims_to_work),
		cmocka_unit_test(sender__holds_c_without_controllers),
		cmocka_unit_test(sender__accuses_a_receiver),
		cmocka_unit_test(sender__has_more_open_than_there_can_be),
		cmocka_unit_test(sender__stops_in_each_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
