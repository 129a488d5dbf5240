// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Controller forwarding: two correct hosts receive each other's barriers, but frames of the
 * reliable stream do not pass between them. The frames are dropped before a host's XDP program, by
 * source address and either by opcode or all of them; beacons pass. With a controller every message
 * is delivered once, in order; without one none of them is. The counters show which path the frames
 * took.
 */
#include "tests/net/reliable/reliable.h"
#include "tests/net/part.h"
#include "core/wire_core.h"
#include "tests/net/controller/controller.h"
#include "loader/order/events.h"
#include "loader/order/forward.h"
#include "tests/net/stall_watch.h"

#define ANSWER_MS 20000
#define WAIT_MS   60000
#define DEAD_US   2500000

/* Drops from now on everything with opcode @op that @id sends to @host. */
static void part(unsigned int id, unsigned int host, int op)
{
	part_from(tr_sh->node[id].addr.ip, host, op);
}

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static uint64_t said(const char *name)
{
	json_t *o = json_loads(ask(), 0, NULL);
	uint64_t n =
		(uint64_t)json_integer_value(json_object_get(json_object_get(o, "counts"), name));

	json_decref(o);
	return n;
}

/* A host that has no CPU for a while is not announced. */
static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (ctl)
		name_controller(cfg, n);
	cfg->dead_after_us = DEAD_US;
}

static uint64_t watched_since;

/* Watches these processes, those of the nodes and the kernel's threads for stalls. */
static void watch(void)
{
	pid_t pids[TR_MAX + 2];
	unsigned int i, n = 0;

	for (i = 0; i < tr_sh->count; i++)
		pids[n++] = tr_sh->node[i].pid;
	pids[n++] = getpid();
	pids[n++] = ctl;
	stall_watch(pids, n);
	watched_since = t_mono();
}

/*
 * Returns whether a thread had no CPU for long. An endpoint that gets no ACK for 300 ms and five
 * tries has its frame forwarded, also if the reason was a lack of CPU. Then nothing can be said of
 * those that need not have forwarded.
 */
static bool starved(void)
{
	uint64_t worst = stall_worst(watched_since, t_mono());

	if (worst > 50000000)
		fprintf(stderr, "  no CPU for %.0f ms: it is not judged who forwards in vain\n",
			(double)worst / 1e6);
	return worst > 50000000;
}

static void open_rack(unsigned int hosts, bool controller)
{
	/* Nobody is expelled because the controller forwards slowly on a busy machine. */
	if (controller)
		ctl_run(&(struct bl_ctl_cfg){ .answer_ms = ANSWER_MS, .stuck_ms = WAIT_MS });
	rack.lab.spec.hosts = hosts;
	rack.tweak = tweak;
	rack_open();
	if (controller && !tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
}

static void add(unsigned int hosts, struct tr_cfg cfg)
{
	unsigned int i;

	cfg.fn = tr_mix;
	cfg.reliable = true;
	cfg.family = cfg.family ? cfg.family : AF_INET;
	for (i = 0; i < hosts; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	rack_last_words = say_all;
	watch();
}

static void judge(unsigned int hosts)
{
	unsigned int i;

	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	for (i = 0; i < hosts; i++)
		CHECK(!tr_sh->node[i].nfailed && !tr_sh->node[i].nproc_failed,
		      "endpoint %u: %u messages failed, %u processes", i, tr_sh->node[i].nfailed,
		      tr_sh->node[i].nproc_failed);
	fprintf(stderr,
		"  forwarded: %" PRIu64 " handed over, %" PRIu64 " by the controller, %" PRIu64
		" taken in\n",
		TR_SUM(forwarded), said("forwarded"), rack_count_all(BL_R_BY_CONTROLLER));
	CHECK(said("forwarded") && TR_SUM(forwarded), "nothing was forwarded: this proves nothing");
}

/* PREPs of one direction are lost: they arrive by way of the controller, and so do their ACKs. */
static void one_direction(int family)
{
	open_rack(3, true);
	add(3, (struct tr_cfg){ .scatterings = 12,
				.gap_us = 20000,
				.len = 300,
				.fan = 3,
				.quiet_ms = 30000,
				.family = family });
	part(0, 1, BL_OP_PREP);
	tr_go();
	tr_wait_done(100000);
	judge(3);
	CHECK(rack_count(rack_host(1), BL_R_BY_CONTROLLER), "h2 got nothing by way of the "
							    "controller");
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER), "h1 got no ACK by way of the "
							    "controller");
	if (starved())
		return;
	CHECK(!rack_count(rack_host(2), BL_R_BY_CONTROLLER), "h3, whom all can reach, got "
							     "something by way of the controller");
	CHECK(!tr_sh->node[2].st.forwarded, "h3, who reaches all, had something forwarded");
}

/*
 * No frame passes between two hosts, from before they first send. The window is requested and
 * granted by way of the controller, and large messages pass, too.
 */
static void both_directions(int family)
{
	open_rack(3, true);
	add(3, (struct tr_cfg){ .scatterings = 10,
				.len = 1400,
				.fan = 3,
				.items = 2,
				.big = 30,
				.quiet_ms = 40000,
				.family = family });
	part(0, 1, ANY);
	part(1, 0, ANY);
	tr_go();
	tr_wait_done(150000);
	judge(3);
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER) &&
		      rack_count(rack_host(1), BL_R_BY_CONTROLLER),
	      "one of the two got nothing by way of the controller");
	if (starved())
		return;
	CHECK(!rack_count(rack_host(2), BL_R_BY_CONTROLLER) && !tr_sh->node[2].st.forwarded,
	      "h3, whom all can reach, had something forwarded");
}

RACK_TEST(prepares__of_one_direction)
{
	one_direction(0);
}

RACK_TEST(everything__both_directions)
{
	both_directions(0);
}

RACK_TEST(ipv6__prepares_of_one_direction)
{
	one_direction(AF_INET6);
}

RACK_TEST(ipv6__everything_both_directions)
{
	both_directions(AF_INET6);
}

/*
 * A leaf-spine of two racks with two hosts each: h1 and h2 on one ToR, h3 and h4 on the other.
 * PREPs from h1 to h3 are lost.
 */
RACK_TEST(leaf_spine__prepares_of_one_direction)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, true);
	add(4,
	    (struct tr_cfg){
		    .scatterings = 12, .gap_us = 20000, .len = 300, .fan = 4, .quiet_ms = 30000 });
	part(0, 2, BL_OP_PREP);
	tr_go();
	tr_wait_done(100000);
	judge(4);
	CHECK(rack_count(rack_host(2), BL_R_BY_CONTROLLER), "h3 got nothing by way of the "
							    "controller");
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER), "h1 got no ACK by way of the "
							    "controller");
	if (starved())
		return;
	CHECK(!rack_count(rack_host(1), BL_R_BY_CONTROLLER) &&
		      !rack_count(rack_host(3), BL_R_BY_CONTROLLER),
	      "h2 or h4, whom all can reach, got something by way of the controller");
}

/*
 * The example at the beginning of docs/controller.md: spines that have lost their routes to a ToR
 * still pass barriers on. Nothing else arrives from one rack at the other; the way back works.
 */
RACK_TEST(leaf_spine__spines_have_lost_a_route)
{
	unsigned int i;
	int home;

	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, true);
	add(4,
	    (struct tr_cfg){
		    .scatterings = 8, .gap_us = 20000, .len = 300, .fan = 4, .quiet_ms = 40000 });
	for (i = 0; i < rack.lab.nnodes; i++) {
		if (rack.lab.nodes[i].kind != LAB_SPINE)
			continue;
		home = rack_away(i);
		CHECK(!system("ip route del 10.77.2.0/24"), "%s: ip route", rack.lab.nodes[i].name);
		rack_back(home);
	}
	tr_go();
	tr_wait_done(150000);
	judge(4);
	for (i = 0; i < 4; i++)
		CHECK(rack_count(rack_host(i), BL_R_BY_CONTROLLER),
		      "h%u got nothing by way of the controller", i + 1);
}

static bool survivors_heard(void)
{
	return TR_LOAD(tr_sh->node[0].nproc_failed) && TR_LOAD(tr_sh->node[1].nproc_failed);
}

static uint32_t want[2];

static bool go_on(void)
{
	return TR_LOAD(tr_sh->node[0].ngot) >= want[0] && TR_LOAD(tr_sh->node[2].ngot) >= want[1];
}

static void want_more(uint32_t more)
{
	want[0] = TR_LOAD(tr_sh->node[0].ngot) + more;
	want[1] = TR_LOAD(tr_sh->node[2].ngot) + more;
}

static uint32_t sent_before;

static bool first_sent_more(void)
{
	return TR_LOAD(tr_sh->node[0].nsent) > sent_before + 2;
}

/*
 * A process dies, and its messages must be recalled from a host that neither gets RECALL nor could
 * answer it.
 */
RACK_TEST(recall__by_way_of_the_controller)
{
	struct tr_cfg cfg = { .until_enough = true, .gap_us = 300, .len = 300, .quiet_ms = 4000 };
	unsigned int i;

	open_rack(3, true);
	add(3, cfg);
	for (i = 0; i < 3; i++)
		CHECK(!strcmp(tr_sh->node[i].error, ""), "%s", tr_sh->node[i].error);
	/* frames from h2 to h1, and from h1 to h2 */
	part(0, 1, BL_OP_RECALL);
	part(1, 0, BL_OP_RECALLED);
	tr_go();
	want_more(50);
	CHECK(tr_until(go_on, WAIT_MS), "nothing is delivered");
	/* From here on h3 acknowledges nothing, so messages of h1 wait for that, also at h2. */
	part(2, 0, BL_OP_ACK);
	sent_before = TR_LOAD(tr_sh->node[0].nsent);
	CHECK(tr_until(first_sent_more, WAIT_MS), "h1 does not send");
	tr_pass(100);
	tr_kill(2);
	CHECK(tr_until(survivors_heard, WAIT_MS), "not everybody heard of it");
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0); /* what waited for h3 was delivered to nobody */
	for (i = 0; i < 3; i++)
		all_or_none(i, 0x3);
	fprintf(stderr,
		"  recalls sent %" PRIu64 ", taken out %" PRIu64 ", forwarded %" PRIu64 "\n",
		TR_SUM(recalls_sent), TR_SUM(recalled), TR_SUM(forwarded));
	CHECK(tr_sh->node[0].st.recalls_sent && tr_sh->node[1].st.recalled, "nothing was recalled: "
									    "this proves nothing");
	CHECK(said("forwarded"), "nothing was forwarded: this proves nothing");
}

/*
 * Frames from h1 do not arrive at h2, nor can they be forwarded; barriers pass, and nothing has
 * failed. The missing acknowledgement holds the rack's commit barrier: the receiver is expelled
 * after stuck_ms, and the others continue.
 */
RACK_TEST(stuck__one_of_the_two_goes)
{
	unsigned int i;

	ctl_run(&(struct bl_ctl_cfg){ .answer_ms = ANSWER_MS, .stuck_ms = 3000 });
	rack.lab.spec.hosts = 3;
	rack.tweak = tweak;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
	add(3,
	    (struct tr_cfg){ .until_enough = true, .gap_us = 2000, .len = 300, .quiet_ms = 4000 });
	tr_sh->node[1].may_die = true; /* it gets ESTALE */
	tr_go();
	want_more(50);
	CHECK(tr_until(go_on, WAIT_MS), "nothing is delivered");
	bl_forward_replace(rack.node[rack_host(1)], -1);
	part(0, 1, BL_OP_PREP);
	CHECK(tr_until(one_finished, WAIT_MS), "nobody is expelled, and all stand still: %s",
	      ask());
	CHECK(strstr(ask(), "\"why\":\"unreachable\""), "somebody else failed: %s",
	      said_failures());
	want_more(200);
	CHECK(tr_until(go_on, WAIT_MS), "the others do not go on");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 3; i++)
		all_or_none(i, 0x5);
	CHECK(!*tr_sh->node[0].error && !*tr_sh->node[2].error, "%s %s", tr_sh->node[0].error,
	      tr_sh->node[2].error);
	CHECK(*tr_sh->node[1].error, "the one that was expelled has not noticed");
}

/* Without a controller a lost frame stays lost, and the daemon logs that once. */
RACK_TEST(no_controller__is_not_forwarded)
{
	open_rack(2, false);
	add(2, (struct tr_cfg){
		       .scatterings = 3, .len = 300, .to = 0x2, .quiet_ms = 2500, .lost = true });
	part(0, 1, BL_OP_PREP);
	tr_go();
	tr_wait_done(WAIT_MS);
	tr_stop();
	CHECK(TR_SUM(forwarded), "nothing was handed over: this proves nothing");
	CHECK(!rack_count_all(BL_R_BY_CONTROLLER), "something was forwarded, by nobody");
	CHECK(!has(1, 0, 0), "it was delivered: it was not lost");
}

static struct bl_forward frame(const uint8_t *body, unsigned int from, unsigned int to)
{
	struct bl_forward f = { .port = tr_sh->node[to].addr.port,
				.sport = tr_sh->node[from].addr.port,
				.frame = body,
				.len = sizeof(struct bl_hdr) + 12 };

	memcpy(f.from, tr_sh->node[from].addr.ip, 16);
	memcpy(f.to, tr_sh->node[to].addr.ip, 16);
	return f;
}

static const char *counted;
static uint64_t more_than;

static const struct bl_forward *offered;

/*
 * Returns whether the frame was counted, and offers it once more if not: a session that has just
 * begun takes none.
 */
static bool was_counted(void)
{
	if (said(counted) > more_than)
		return true;
	bl_event_forward_asked(rack.node[rack_host(0)], offered);
	return false;
}

static void refused(const char *name, const struct bl_forward *f)
{
	uint64_t sent = said("forwarded");

	counted = name;
	more_than = said(name);
	offered = f;
	CHECK(tr_until(was_counted, WAIT_MS), "%s is not counted: %s", name, ask());
	CHECK(said("forwarded") == sent, "%s: it was sent on", name);
	CHECK(tr_until(all_ok, WAIT_MS), "%s: not all nodes are there again", name);
}

static bool h2_failed(void)
{
	return times_said("\"state\":\"failed\"") == 1;
}

/*
 * Frames that the controller does not forward, by reason. A message that is no frame of the
 * reliable stream ends the sender's session.
 */
RACK_TEST(refused__and_counted)
{
	static uint8_t body[BL_FORWARD_MAX + 1];
	struct bl_forward f;
	uint8_t op;

	open_rack(2, true);
	add(2, (struct tr_cfg){ .scatterings = 0, .quiet_ms = 600000 });
	((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(BL_OP_RECALLED);
	f = frame(body, 0, 1);
	counted = "forwarded";
	more_than = 0;
	offered = &f;
	CHECK(tr_until(was_counted, WAIT_MS), "a good one is not sent on: %s", ask());
	f.from[15] ^= 1; /* an address without an owner */
	refused("forward_forged", &f);
	f = frame(body, 1, 0); /* of h2, but sent by h1 */
	refused("forward_forged", &f);
	f = frame(body, 0, 1);
	f.to[15] ^= 0x40;
	refused("forward_unknown", &f);
	f = frame(body, 0, 1);
	f.len = sizeof(struct bl_hdr) - 1;
	refused("forward_bad", &f);
	f.len = BL_FORWARD_MAX + 1;
	refused("forward_bad", &f);
	f = frame(body, 0, 1);
	f.port = 0;
	refused("forward_bad", &f);
	f = frame(body, 0, 1);
	for (op = 1; op < BL_OP_LIMIT; op++) {
		if (bl_op_relayed(op))
			continue;
		((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(op);
		refused("forward_bad", &f);
	}
	((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(BL_OP_PREP);
	tr_sh->node[1].may_die = true;
	/* when its process ends, the host joins anew */
	CHECK(!kill(tr_sh->node[1].pid, SIGSTOP), "%s", strerror(errno));
	rack_link(0, "h2", false);
	CHECK(tr_until(h2_failed, WAIT_MS), "h2 is not announced: %s", ask());
	counted = "forward_failed";
	more_than = 0;
	offered = &f;
	CHECK(tr_until(was_counted, WAIT_MS), "it is sent to who failed: %s", ask());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepares__of_one_direction),
		cmocka_unit_test(everything__both_directions),
		cmocka_unit_test(ipv6__prepares_of_one_direction),
		cmocka_unit_test(ipv6__everything_both_directions),
		cmocka_unit_test(leaf_spine__prepares_of_one_direction),
		cmocka_unit_test(leaf_spine__spines_have_lost_a_route),
		cmocka_unit_test(recall__by_way_of_the_controller),
		cmocka_unit_test(stuck__one_of_the_two_goes),
		cmocka_unit_test(no_controller__is_not_forwarded),
		cmocka_unit_test(refused__and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
