// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Failures from end to end: a rack whose nodes have their agents (loader/node_agent.h), one
 * controller on SQLite in a process of its own, and endpoints that send reliably. Processes are
 * killed and links are cut without any notice, and the others continue: each message is delivered
 * by all correct receivers or by none, in one order.
 *
 * No time is asserted. A machine that stands still must not fail a node, so the controller waits
 * long for answers, and dead_after is long.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"
#include "loader/order/fence.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
#define DEAD_US   2500000

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static uint32_t limit_ms;     /* 0: the default */
static bool second_addresses; /* each host gets a second IPv4 address */

static void name_limit(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	unsigned int node = (unsigned int)(n - rack.lab.nodes);
	char cmd[64];
	int home;

	if (n->kind == LAB_HOST && second_addresses) {
		snprintf(cmd, sizeof(cmd), "ip addr add 10.77.200.%u/32 dev eth0", n->index);
		home = rack_away(node);
		CHECK(!system(cmd), "%s", cmd);
		rack_back(home);
	}
	name_controller(cfg, n);
	cfg->dead_after_us = DEAD_US;
	if (n->kind == LAB_HOST && limit_ms)
		cfg->process_limit_ms = limit_ms;
}

static void open_rack(unsigned int hosts)
{
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = hosts;
	rack.tweak = name_limit;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
}

static unsigned int heard;
static uint64_t listeners;

/* Returns whether each of @listeners has heard of that number of failures. */
static bool all_heard(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if ((listeners >> i & 1) && TR_LOAD(tr_sh->node[i].nproc_failed) < heard)
			return false;
	return true;
}

/* Opens four hosts, with an endpoint configured by @cfg on each. */
static void open_four(struct tr_cfg cfg)
{
	open_rack(4);
	for (cfg.host = 0; cfg.host < 4; cfg.host++)
		tr_add(&cfg);
	rack_last_words = say_all;
}

/* Waits until the endpoints @who have heard of the first failure and it is finished. */
static void first_failure(uint64_t who)
{
	listeners = who;
	heard = 1;
	CHECK(tr_until(all_heard, WAIT_MS), "not everybody heard of it");
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
}

static unsigned int sender;

static bool sends(void)
{
	return TR_LOAD(tr_sh->node[sender].nsent) > 100;
}

/* Waits until @id, which has just begun, is in the middle of sending. */
static void goes_on_sending(unsigned int id)
{
	sender = id;
	CHECK(tr_until(sends, WAIT_MS), "endpoint %u does not send", id);
}

/* Returns whether endpoints 1 to 3 have heard of one failure; its host has several addresses. */
static bool heard_once(void)
{
	unsigned int i;

	for (i = 1; i < 4 && TR_LOAD(tr_sh->node[i].nproc_failed) == 1; i++)
		;
	return i == 4;
}

/*
 * A process dies in the middle of sending, with acknowledgements missing. The others hear of it,
 * discard what was not committed, and continue.
 */
RACK_TEST(process__killed)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 300,
			      .len = 300,
			      .fan = 4,
			      .reliable = true,
			      .quiet_ms = 4000,
			      .to = 0xe,
			      .more = 60 };
	unsigned int i;

	second_addresses = true;
	open_four(cfg);
	for (i = 0; i < 4; i++)
		make_lossy(i, 6554, tr_sh->seed + i);
	tr_go();
	goes_on_sending(0);
	tr_goes_on(1, "any more");
	tr_kill(0);
	first_failure(0xe);
	for (i = 1; i < 4; i++)
		tr_goes_on(i, "any more");
	tr_enough();
	tr_wait_done(WAIT_MS);
	CHECK(tr_until(heard_once, WAIT_MS), "endpoints 1 to 3 heard of %u, %u and %u failures",
	      tr_sh->node[1].nproc_failed, tr_sh->node[2].nproc_failed,
	      tr_sh->node[3].nproc_failed);
	judge_without(0, 0xe);
	CHECK(tr_until(all_finished, WAIT_MS),
	      "the endpoints left, and that does not come to its end: %s", ask());
}

/* Returns whether nothing holds C back at the switch, and only the fourth port is excluded. */
static bool only_h4_is_out(void)
{
	struct bl_fence_port in[8];
	int n = bl_fence_inputs(bl_node_fence(rack.node[0]), in, 8), i;

	for (i = 0; i < n && !in[i].held && in[i].in == (in[i].port != 3); i++)
		;
	return i == n;
}

/*
 * A host's link is cut. The host is announced, what waits for it is recalled, and the rest
 * continues. The link comes back: the host joins anew, with a new process that exchanges messages
 * with the old ones.
 */
RACK_TEST(link__cut_and_back)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 300,
			      .fan = 4,
			      .gap_us = 300,
			      .reliable = true,
			      .quiet_ms = 4000 };
	unsigned int i, failed = 0;

	open_four(cfg);
	tr_go();
	tr_goes_on(3, "any more");
	tr_sh->node[3].may_die = true; /* it learns that it is expelled, and ends */
	rack_link(0, "h4", false);
	first_failure(0x7);
	CHECK(tr_until(only_h4_is_out, WAIT_MS), "a port is held, or not as it should be");
	for (i = 0; i < 3; i++)
		tr_goes_on(i, "any more");
	rack_link(0, "h4", true);
	CHECK(tr_until(all_ok, WAIT_MS), "h4 does not join anew: %s", ask());
	cfg.host = 3;
	tr_add(&cfg);
	tr_goes_on(4, "any more");
	goes_on_sending(4);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 5; i++) {
		all_or_none(i, 0x17);
		if (i != 3)
			failed += (unsigned int)tr_sh->node[i].fails[BL_FAIL_FAILED];
	}
	fprintf(stderr, "  %u messages reported as failed, %" PRIu64 " recalled\n", failed,
		TR_SUM(recalled));
}

static bool held_up(void)
{
	return rack_count(0, BL_R_NOT_IN) > 0;
}

/*
 * A host is announced, and its process is stopped, so the host cannot join anew. Its link is live
 * again, and another process sends from there at once. C does not wait for that process, so nothing
 * of it is delivered to anyone. When the first process is gone, the host joins anew, and messages
 * sent then arrive at all.
 *
 * Nobody sends to the new processes: their windows fill while the host is out, and everything else
 * that a sender has would wait behind them.
 */
RACK_TEST(failed__new_process_waits)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 300,
			      .fan = 3,
			      .gap_us = 1000,
			      .reliable = true,
			      .to = 0xf,
			      .quiet_ms = 6000 };
	unsigned int i;

	limit_ms = 600000; /* else a stopped process would be expelled */
	open_four(cfg);
	tr_go();
	tr_goes_on(3, "any more");
	tr_sh->node[3].may_die = true;
	CHECK(!kill(tr_sh->node[3].pid, SIGSTOP), "%s", strerror(errno));
	rack_link(0, "h4", false);
	first_failure(0x7);
	rack_link(0, "h4", true);
	cfg.host = 3;
	cfg.to = 0x7;
	tr_add(&cfg);
	CHECK(tr_until(held_up, WAIT_MS), "nothing is held up at the switch: this proves nothing");
	for (i = 0; i < 3; i++)
		tr_goes_on(i, "any more"); /* later messages */
	for (i = 0; i < 3; i++)
		CHECK(!has(i, 4, 0),
		      "host %u delivered what was sent by a host that C does not wait for", i);
	tr_kill(3);
	CHECK(tr_until(all_ok, WAIT_MS), "h4 does not join anew: %s", ask());
	tr_add(&cfg);
	goes_on_sending(5);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 6; i++)
		all_or_none(i, 0x7);
	CHECK(has(0, 5, tr_sh->node[5].nsent - 1) || has(1, 5, tr_sh->node[5].nsent - 1) ||
		      has(2, 5, tr_sh->node[5].nsent - 1),
	      "the last endpoint on h4 sent in vain");
}

static uint64_t old;

/*
 * Returns whether port 1 of the switch is frozen and an order was refused. The first one that is
 * refused ends the session, and none comes after it: it may be about something else, and may come
 * before the port is frozen.
 */
static bool refused_and_frozen(void)
{
	struct bl_fence_port in[8];

	return rack_count(0, BL_R_EPOCH_OLD) > old &&
	       bl_fence_inputs(bl_node_fence(rack.node[0]), in, 8) == 3 && in[1].held;
}

/*
 * Fences of an epoch that is older than one that a node has heard change nothing, whichever
 * controller a daemon obeys: the kernel refuses them.
 */
RACK_TEST(epoch__old_is_refused_by_the_kernel)
{
	const uint32_t bar[] = { 1 };
	struct bl_fence_port p, in[8];
	struct bl_node *sw;
	uint64_t epoch, refused;
	unsigned int i;
	int n;

	open_rack(3);
	sw = rack.node[0];
	epoch = bl_fence_epoch(bl_node_fence(sw));
	CHECK(epoch, "the switch has heard of no epoch");
	refused = rack_count(0, BL_R_EPOCH_OLD);
	CHECK(!bl_fence_raise(bl_node_fence(sw), epoch + 10), "a higher one is refused");
	CHECK(bl_fence_raise(bl_node_fence(sw), epoch) == -ESTALE, "raise");
	CHECK(bl_fence_freeze(bl_node_fence(sw), epoch + 9, 1, &p) == -ESTALE, "freeze");
	CHECK(bl_fence_bar(bl_node_fence(sw), epoch + 9, bar, 1) == -ESTALE, "bar");
	CHECK(bl_fence_resume(bl_node_fence(sw), epoch + 9, 1, 0) == -ESTALE, "resume");
	CHECK(rack_count(0, BL_R_EPOCH_OLD) >= refused + 4, "%" PRIu64 " refused",
	      rack_count(0, BL_R_EPOCH_OLD) - refused);
	n = bl_fence_inputs(bl_node_fence(sw), in, 8);
	CHECK(n == 3, "%d inputs", n);
	for (i = 0; i < 3; i++)
		CHECK(in[i].in && !in[i].held && !in[i].barred, "port %u was changed", in[i].port);
	/*
	 * This includes those of the controller: a host's link is cut, and the switch obeys no
	 * order about the port.
	 */
	old = refused + 4;
	rack_link(0, "h2", false);
	CHECK(tr_until(refused_and_frozen, WAIT_MS),
	      "no order of the controller came, and this proves nothing: %s", ask());
	n = bl_fence_inputs(bl_node_fence(sw), in, 8);
	CHECK(n == 3 && in[1].held && !in[1].barred, "the order of an old epoch was obeyed");
}

/*
 * Ends with 0 if messages to a port reach the endpoint that took the port over from one that died,
 * which the rack has to settle first.
 */
static int take_port_again(void)
{
	struct bl_options at = { .port = BL_PORT_BASE + 4 }, any = { .port = 0 };
	uint64_t until = t_mono() + 300000000ULL;
	struct bl_endpoint *ep, *from;
	struct bl_delivery d;
	struct bl_msg m = { .data = "again", .len = 5 };
	pid_t pid;
	int rc, st;

	kill(ctl, SIGSTOP); /* so that nothing is settled meanwhile */
	pid = fork();
	if (!pid)
		_exit(bl_init(&ep, &at) ? 2 : 0); /* no bl_exit(): it has not left, it has died */
	if (pid < 0 || waitpid(pid, &st, 0) != pid || st) {
		kill(ctl, SIGCONT);
		return 2;
	}
	while ((rc = bl_init(&ep, &at)) == -EADDRINUSE && t_mono() < until)
		usleep(1000);
	kill(ctl, SIGCONT);
	if (rc != -EADDRINUSE)
		return 3;
	for (until += WAIT_MS * 1000000ULL;
	     (rc = bl_init(&ep, &at)) == -EADDRINUSE && t_mono() < until;)
		usleep(1000);
	if (rc || bl_init(&from, &any))
		return 4;
	/* A command to remove the previous endpoint must not affect this one. */
	usleep(500000);
	m.dst = *bl_self(ep);
	if (bl_send(from, &m, 1, 0))
		return 5;
	for (until = t_mono() + WAIT_MS * 1000000ULL; t_mono() < until; bl_flush(from))
		if (bl_recv(ep, &d, 1, 100) == 1)
			return 0;
	return 6;
}

/*
 * An endpoint that dies stays, as dead, until its failure is settled. Another process may want its
 * port meanwhile.
 */
RACK_TEST(port__of_who_died)
{
	pid_t pid;
	int st;

	open_rack(3);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(1));
		_exit(take_port_again());
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(1);
	CHECK(!st,
	      "the process that took its port again ended with status %#x; the controller says: %s",
	      st, ask());
	CHECK(tr_until(all_finished, WAIT_MS), "what left does not come to its end: %s", ask());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__killed),
		cmocka_unit_test(link__cut_and_back),
		cmocka_unit_test(failed__new_process_waits),
		cmocka_unit_test(epoch__old_is_refused_by_the_kernel),
		cmocka_unit_test(port__of_who_died),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
