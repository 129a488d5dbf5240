// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Daemons come and go while the datapath stays. Programs are swapped under traffic without the
 * loss of a frame, or go on if the next daemon would load the same ones. Without a daemon
 * everything continues until the clock record is void; then nothing is sent, rather than something
 * wrong.
 */
#include "loader/load/attach.h"
#include "maps/clock_abi.h"
#include "tests/net/traffic.h"

/* A host without a daemon sends no beacons: it is not excluded because this takes long. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

static unsigned int who;
static uint32_t want;

static bool has_sent(void)
{
	return TR_LOAD(tr_sh->node[who].done_sending);
}

/* Returns whether endpoints 0 and 1 have received enough. */
static bool both_have(void)
{
	return TR_LOAD(tr_sh->node[0].received) >= want && TR_LOAD(tr_sh->node[1].received) >= want;
}

static void until_both_have(uint32_t n)
{
	want = n;
	CHECK(tr_until(both_have, 60000), "no %u messages come", n);
}

/** struct ids - the programs on the first interface of a node. */
struct ids {
	uint32_t xdp, egress;
};

static struct ids ids_of(unsigned int node)
{
	struct bl_iface iface;
	struct ids ids = { 0 };
	struct bl_err err;
	int home = rack_away(node);

	CHECK(!bl_iface_get(&iface, rack.lab.nodes[node].ports[0].ifname, &err), "%s", err.text);
	CHECK(!bl_link_prog(rack.dir[node], "xdp", &iface, &ids.xdp), "no XDP program on %s",
	      iface.name);
	if (bl_link_prog(rack.dir[node], "egress", &iface, &ids.egress))
		ids.egress = bl_clsact_prog(&iface, false);
	CHECK(ids.egress, "no egress program on %s", iface.name);
	rack_back(home);
	return ids;
}

/* Another daemon takes node @i over. With @swap it loads its programs. */
static void take_over(unsigned int i, bool swap)
{
	struct ids was = ids_of(i), is;

	if (swap)
		rack_forget_programs(i);
	rack_close_node(i);
	rack_open_node(i);
	is = ids_of(i);
	CHECK((is.xdp == was.xdp) != swap && (is.egress == was.egress) != swap,
	      "%s: XDP program %u, then %u; egress %u, then %u", rack.lab.nodes[i].name, was.xdp,
	      is.xdp, was.egress, is.egress);
}

/* The last round swaps the programs, the others go on with them. */
static void take_all_over(unsigned int rounds)
{
	unsigned int i, k;

	for (k = 0; k < rounds; k++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			take_over(i, k == rounds - 1);
			tr_pass(30);
		}
	}
}

static void under_traffic(unsigned int hosts, unsigned int rounds)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < hosts + 2; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 500,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 1000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	until_both_have(100);
	take_all_over(rounds);
	/* An endpoint that starts after the upgrade finds a daemon that knows the old endpoints. */
	who = tr_add(&(struct tr_cfg){ .host = 0,
				       .fn = tr_mix,
				       .scatterings = 100,
				       .len = 500,
				       .fan = 3,
				       .gap_us = 1000,
				       .ring_bytes = TR_RING_TIGHT(8) });
	CHECK(tr_until(has_sent, 60000), "who comes after the upgrade does not get to send");
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0 && TR_SUM(lost_frames) == 0,
	      "late %" PRIu64 ", lost %" PRIu64, TR_SUM(late_dropped), TR_SUM(lost_frames));
}

RACK_TEST(swap__rack)
{
	under_traffic(4, 3);
}

RACK_TEST(swap__leaf_spine)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	under_traffic(4, 1);
}

/* An endpoint from before the upgrade dies: the new daemon must clear what it had in flight. */
RACK_TEST(swap__adopted_endpoint_dies_in_flight)
{
	uint64_t n, end;
	unsigned int i, victim;

	rack.lab.spec.hosts = 3;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < 2; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 300,
					 .to = 3,
					 .gap_us = 500,
					 .quiet_ms = 3000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	victim = tr_add(&(struct tr_cfg){
		.host = 2, .fn = tr_rage, .to = 3, .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	until_both_have(100);
	rack_forget_programs(rack_host(2));
	rack_close_node(rack_host(2));
	tr_pass(50);
	rack_open_node(rack_host(2));
	tr_pass(100);
	tr_kill(victim);
	tr_pass(50);
	n = TR_LOAD(tr_sh->node[0].received);
	for (end = t_mono() + 60000000000ULL; TR_LOAD(tr_sh->node[0].received) < n + 20; tr_pass(5))
		CHECK(t_mono() < end, "the others stand still after an adopted endpoint was "
				      "killed");
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(3, 3);
}

static void quick_void(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_void_after_ms = 3000;
}

/*
 * user[0]: number of -ETIME results; user[1], user[2]: scatterings accepted before the first and
 * after the last of them; user[3]: the time when the last call began that was accepted before the
 * first.
 */
static void persist(struct tr *w)
{
	const uint32_t len = 100;
	unsigned int k;

	while (!TR_LOAD(tr_sh->enough)) {
		uint64_t begun = t_mono();
		int rc = tr_send(w, w->cfg->to, 1, &len, 0);

		if (rc == -ETIME) {
			TR_STORE(w->me->user[2], 0);
			TR_STORE(w->me->user[0], w->me->user[0] + 1);
			usleep(5000);
		} else if (!rc) {
			k = w->me->user[0] ? 2 : 1;
			if (k == 1)
				w->me->user[3] = begun;
			TR_STORE(w->me->user[k], w->me->user[k] + 1);
			/*
			 * The logs hold a limited number of messages, however fast the machine is.
			 */
			usleep(200);
		} else if (rc != -EAGAIN) {
			tr_fail(w, "bl_send: %d %s", rc, bl_strerror(w->ep));
		}
		tr_take(w, 1);
	}
	tr_finish(w);
}

/* Returns the time when the clock of @node becomes void if no process updates it. */
static uint64_t void_after(unsigned int node)
{
	int fd = rack_map(node, BL_MAP_CLOCK);
	struct bl_clock c;
	uint32_t zero = 0;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &c), "%s", strerror(errno));
	close(fd);
	return c.void_after_ns;
}

static bool both_say_etime(void)
{
	return TR_LOAD(tr_sh->node[0].user[0]) > 10 && TR_LOAD(tr_sh->node[1].user[0]) > 10;
}

static bool both_send_again(void)
{
	return TR_LOAD(tr_sh->node[0].user[2]) > 10 && TR_LOAD(tr_sh->node[1].user[2]) > 10;
}

/* Waits without serving: there is no daemon. */
static void until(bool (*cond)(void), const char *what)
{
	uint64_t end = t_mono() + 60000000000ULL;

	for (; !cond(); usleep(2000))
		CHECK(t_mono() < end, "%s", what);
}

RACK_TEST(no_daemon__until_void_after)
{
	uint64_t ends, last;
	unsigned int i;

	rack.lab.spec.hosts = 2;
	rack.tweak = quick_void;
	rack_open();
	for (i = 0; i < 2; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = persist, .to = 3, .quiet_ms = 4000 });
	tr_go();
	until_both_have(50);
	for (i = 0; i < rack.lab.nnodes; i++)
		rack_close_node(i);
	/* Nothing is served now, and no beacons are sent: data frames carry the barriers. */
	for (i = 0; i < 2; i++) {
		last = TR_LOAD(tr_sh->node[i].received) + 50;
		want = want < last ? (uint32_t)last : want;
	}
	until(both_have, "they stopped at once");
	until(both_say_etime, "bl_send() does not say -ETIME");
	for (i = 0; i < 2; i++) {
		ends = void_after(rack_host(i));
		fprintf(stderr,
			"  the last accepted call began %.1f ms before the clock was void\n",
			((double)ends - (double)tr_sh->node[i].user[3]) / 1e6);
		CHECK(tr_sh->node[i].user[3] <= ends, "endpoint %u sent with a void clock", i);
	}
	last = TR_LOAD(tr_sh->node[0].received);
	for (i = 0; i < rack.lab.nnodes; i++)
		rack_open_node(i);
	CHECK(tr_until(both_send_again, 60000), "bl_send() goes on to say -ETIME");
	until_both_have((uint32_t)last + 50);
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 2; i++)
		CHECK(tr_sh->node[i].user[1] > 10 && tr_sh->node[i].user[2] > 10,
		      "endpoint %u sent %" PRIu64 " before and %" PRIu64 " after", i,
		      tr_sh->node[i].user[1], tr_sh->node[i].user[2]);
	CHECK(TR_LOAD(tr_sh->node[0].received) > last + 10, "nothing was delivered after the "
							    "daemons came back");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swap__rack),
		cmocka_unit_test(swap__leaf_spine),
		cmocka_unit_test(swap__adopted_endpoint_dies_in_flight),
		cmocka_unit_test(no_daemon__until_void_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
