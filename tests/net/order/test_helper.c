// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that does not call the library for longer than its limit (process_limit_ms) while
 * others send to it. With a helper thread (bl_helper_start()) it stays, and the others keep their
 * rate; without one it is expelled. A process that is stopped as a whole is expelled in either
 * case.
 *
 * Times are compared only with each other or with generous limits, because the machine may stand
 * still.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
#define LIMIT_MS  2000
#define AWAY_MS   5000 /* two and a half limits */
#define AWAY_GOT  3000 /* least number of deliveries meanwhile */

static void name_limit(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	if (n->kind == LAB_HOST)
		cfg->process_limit_ms = LIMIT_MS;
}

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static void open_rack(void)
{
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = 3;
	rack.tweak = name_limit;
	rack_open();
	CHECK(tr_until(all_ok, WAIT_MS), "not all nodes are there: %s", ask());
}

static enum bl_out_why why_of(unsigned int id)
{
	struct bl_node *n = rack.node[rack_host(tr_sh->node[id].cfg.host)];
	enum bl_out_why why = BL_OUT_MEMBER;
	const struct bl_ep *ep = bl_endpoint_at(n, BL_PORT_BASE + id);

	CHECK(ep, "endpoint %u is not there: %s", id, tr_sh->node[id].error);
	bl_ep_out(n, ep->slot, &why);
	return why;
}

#define AWAY(id) tr_sh->node[id].user[0] /* 1: it makes no calls, 2: it calls again */
#define CALL(id) tr_sh->node[id].user[1] /* 1: it has to call again */

/* Receives for a while, then makes no calls, and then continues. */
static void goes_away(struct tr *w)
{
	uint64_t end = t_mono() + 1500 * 1000000ULL;

	while (t_mono() < end)
		tr_take(w, 1);
	TR_STORE(AWAY(w->id), 1);
	while (!TR_LOAD(CALL(w->id)))
		usleep(1000);
	TR_STORE(AWAY(w->id), 2);
	tr_finish(w);
}

static bool is_away(void)
{
	return TR_LOAD(AWAY(2)) == 1;
}

static bool is_back(void)
{
	return TR_LOAD(AWAY(2)) == 2;
}

static bool is_out(void)
{
	return why_of(2) != BL_OUT_MEMBER;
}

static void add(bool helper, void (*fn)(struct tr *w))
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 2000,
			      .len = 300,
			      .reliable = true,
			      .quiet_ms = 10000 };

	open_rack();
	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg); /* each to all, including itself */
	cfg.fn = fn;
	cfg.helper = helper;
	tr_add(&cfg);
	rack_last_words = say_all;
}

static uint64_t away_until;
static uint32_t away_got;

/* Returns whether the process made no calls for long enough, and the others continued. */
static bool long_away(void)
{
	return t_mono() >= away_until && TR_LOAD(tr_sh->node[0].ngot) >= away_got;
}

/*
 * The process makes no call for two and a half limits, and everyone sends to it. Nobody is
 * expelled, the others deliver more than windows and rings alone would allow, and everything that
 * was sent is delivered in the one order.
 */
RACK_TEST(helper__stands_in)
{
	uint32_t got;

	add(true, goes_away);
	tr_go();
	CHECK(tr_until(is_away, WAIT_MS), "it does not go");
	got = TR_LOAD(tr_sh->node[0].ngot);
	away_got = got + AWAY_GOT;
	away_until = t_mono() + AWAY_MS * 1000000ULL;
	CHECK(tr_until(long_away, WAIT_MS), "the others have delivered %u messages since it went",
	      TR_LOAD(tr_sh->node[0].ngot) - got);
	CHECK(!is_out(), "it was expelled, reason %d", why_of(2));
	TR_STORE(CALL(2), 1);
	CHECK(tr_until(is_back, WAIT_MS), "it does not come back");
	CHECK(!is_out(), "it was expelled, reason %d", why_of(2));
	tr_enough();
	tr_wait_done(WAIT_MS);
	CHECK(TR_LOAD(tr_sh->node[0].nproc_failed) + TR_LOAD(tr_sh->node[1].nproc_failed) == 0,
	      "somebody was announced");
	tr_stop();
	tr_judge(0x7, 0x7);
}

/* The same without a helper: the process is expelled. */
RACK_TEST(helper__missing)
{
	add(false, goes_away);
	tr_sh->node[2].may_die = true;
	tr_go();
	CHECK(tr_until(is_away, WAIT_MS), "it does not go");
	CHECK(tr_until(is_out, WAIT_MS), "it does not call, and stays");
	tr_enough();
}

/* The process is stopped as a whole, including its helper. */
RACK_TEST(helper__stopped_as_well)
{
	add(true, tr_sink);
	tr_sh->node[2].may_die = true;
	tr_go();
	tr_pass(500);
	CHECK(tr_sh->node[2].pid && !kill(tr_sh->node[2].pid, SIGSTOP), "endpoint 2: %s",
	      tr_sh->node[2].error);
	CHECK(tr_until(is_out, WAIT_MS), "it stands still, and stays");
	kill(tr_sh->node[2].pid, SIGCONT);
	tr_enough();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helper__stands_in),
		cmocka_unit_test(helper__missing),
		cmocka_unit_test(helper__stopped_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
