// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline switch detach --force` of a leaf, under reliable traffic and with a controller. From
 * then on the leaf is a plain router, and no node accepts barriers that arrive through it. So its
 * hosts are cut off and announced with it, in one failure; the others continue without them. Each
 * scattering is delivered by all correct hosts or by none. When the leaf is back, all three join
 * anew.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/barline_run.h"
#include "tests/net/controller/controller.h"

#include "tests/net/reliable/kill_talk.h"

#define HOSTS   4
#define LEAF    3 /* p1 p2 s1 s2 h1 h2 h3 h4 */
#define CORRECT 3 /* h1 h2 */

/*
 * The script serves all nodes: while it starts a switch, no clock may expire. A host that has no
 * CPU for a second must not be announced in addition to those that are cut off.
 */
static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = 1200000;
	cfg->clock_void_after_ms = 100000;
}

static void talk(void)
{
	kill_workers(HOSTS, 1500);
	atomic_store(&c->phase, KILL_TALK);
}

static bool all_have(uint64_t who, uint32_t more, const uint32_t *since)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (who >> i & 1 && atomic_load(&c->w[i].ngot) < since[i] + more)
			return false;
	return true;
}

static void go_on(uint64_t who, const char *when)
{
	uint32_t since[HOSTS];
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		since[i] = atomic_load(&c->w[i].ngot);
	UNTIL(when, all_have(who, 30, since));
}

/* Returns the hosts that were announced, either themselves or a process of theirs. */
static uint64_t announced(void)
{
	json_t *said = json_loads(ask(), 0, NULL), *f, *who;
	uint64_t mask = 0;
	unsigned int i;
	size_t k, m;

	json_array_foreach(json_object_get(said, "failures"), k, f) json_array_foreach(
		json_object_get(f, "failed"), m,
		who) for (i = 0; i < HOSTS;
			  i++) if (json_integer_value(json_object_get(who, "node")) ==
				   (json_int_t)i + 1) mask |= 1ULL << i;
	json_decref(said);
	return mask;
}

static bool all_acked(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (who >> i & 1 && !atomic_load(&c->w[i].all_acked))
			return false;
	return true;
}

/* Returns whether each announced worker knows: its library reports it at its next call. */
static bool told(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (who >> i & 1 && !c->w[i].error[0])
			return false;
	return true;
}

/* A worker that leaves tells its host's daemon, which this process serves. */
static bool left(unsigned int i, int *st)
{
	return waitpid(c->w[i].pid, st, WNOHANG) == c->w[i].pid;
}

static void detach(const char *option, int want)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "switch", "detach", option, NULL };
	int home = rack_away(LEAF), rc;
	json_t *said;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rc = barline_run(&said, argv);
	json_decref(said);
	rack_back(home);
	CHECK(rc == want, "switch detach %s: %d", option ? option : "", rc);
}

/* The last messages may still be on their way. */
static void verdict(struct kill_verdict *v)
{
	uint64_t end = t_mono() + WAIT_NS;

	while (kill_judge(c, CORRECT, v)) {
		CHECK(t_mono() < end, "%s", v->error);
		rack_serve(20);
	}
}

RACK_TEST(leaf__is_a_router_for_a_while)
{
	struct kill_verdict v = { 0 };
	unsigned int i;

	rack_last_words = say_workers;
	rack.tweak = tweak;
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	ctl_start(20000);
	rack_open();
	UNTIL("waits for all nodes", all_ok());
	talk();
	go_on(15, "begins to talk");
	rack_close_node(LEAF);
	detach(NULL, 1); /* under traffic: refused */
	go_on(15, "goes on after a detach that was refused");
	detach("--force", 0);
	UNTIL("waits for the failure's end", all_finished());
	go_on(CORRECT, "goes on without the leaf");
	rack_open_node(LEAF);
	UNTIL("waits for all nodes to join anew", all_ok());
	go_on(CORRECT, "goes on when the leaf is back");
	/*
	 * The leaf and its two hosts are announced at once; later perhaps their processes, which
	 * end then, and nothing else.
	 */
	CHECK(announced() == (15 & ~CORRECT) && strstr(ask(), " and 2 more\",\"why\":\"cut-off\""),
	      "%s", said_failures());
	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", all_acked(CORRECT));
	verdict(&v);
	UNTIL("waits until who was cut off is told", told(15 & ~CORRECT));
	fprintf(stderr, "  %u delivered by all correct ones, %u by nobody, %u cut\n", v.delivered,
		v.none, v.cut);
	atomic_store(&c->phase, KILL_EXIT);
	for (i = 0; i < HOSTS; i++) {
		int st;

		UNTIL("waits for a worker's end", left(i, &st));
		/* An announced process is told so, and does not crash. */
		CHECK(WIFEXITED(st) && !!WEXITSTATUS(st) == !(CORRECT >> i & 1),
		      "worker %u ended with status %#x: %s", i, (unsigned int)st, c->w[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaf__is_a_router_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
