// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints, hosts and links come and go while others send, in an orderly way and without warning.
 */
#include <net/if.h>
#include <bpf/bpf.h>

#include "tests/net/traffic.h"

/* Returns the number of deliveries of the first @n endpoints. */
static uint64_t delivered(unsigned int n)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += TR_LOAD(tr_sh->node[i].received);
	return sum;
}

/* Checks that each of the first @n endpoints delivers something new. */
static void must_go_on(unsigned int n, unsigned int within_ms, const char *when)
{
	uint64_t end = t_mono() + within_ms * 1000000ULL, before[TR_MAX];
	unsigned int i;

	for (i = 0; i < n; i++)
		before[i] = TR_LOAD(tr_sh->node[i].received);
	for (i = 0; i < n; i++) {
		while (TR_LOAD(tr_sh->node[i].received) < before[i] + 5) {
			CHECK(t_mono() < end, "endpoint %u stands still %s", i, when);
			tr_pass(5);
		}
	}
}

static void visit(struct tr *w)
{
	uint64_t end;
	uint32_t i;

	for (i = 0; i < w->cfg->scatterings; i++) {
		tr_send_some(w);
		tr_take(w, 1);
	}
	/* What waits for windows would be discarded on leaving. */
	bl_flush(w->ep);
	for (end = t_mono() + 8000000000ULL;
	     t_mono() < end && !(bl_wait(w->ep, BL_WAIT_SEND, 100) & BL_WAIT_SEND);)
		tr_take(w, 0);
	bl_exit(w->ep);
	_exit(0);
}

RACK_TEST(endpoints__join_and_leave)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack_open();
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .run_ms = 4000,
					 .len = 300,
					 .fan = 3,
					 .to = 15,
					 .gap_us = 500,
					 .ring_bytes = TR_RING_TIGHT(16) });
	tr_go();
	/*
	 * Visitors send to all present endpoints, also to each other; some of those have left by
	 * then.
	 */
	for (i = 0; i < 10; i++) {
		tr_add(&(struct tr_cfg){ .host = i % 4,
					 .fn = visit,
					 .scatterings = 40,
					 .len = 300,
					 .fan = 3,
					 .to = i % 2 ? 15 : 0,
					 .ring_bytes = TR_RING_TIGHT(16) });
		tr_pass(200);
	}
	tr_wait_done(30000);
	tr_stop();
	tr_judge(~0ULL, 15);
}

static bool late_has_some(void)
{
	return TR_LOAD(tr_sh->node[3].received) > 50;
}

RACK_TEST(host__joins_late)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.closed = 1ULL << 4; /* s1 h1 h2 h3 h4 */
	rack_open();
	CHECK(rack_host(3) == 4, "the lab's nodes are in another order");
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 300,
					 .fan = 4,
					 .gap_us = 500,
					 .ring_bytes = TR_RING_TIGHT(4) });
	tr_go();
	tr_pass(700);
	rack_open_node(4);
	rack_settle();
	must_go_on(3, 30000, "after a host joined");
	tr_add(&(struct tr_cfg){ .host = 3,
				 .fn = tr_mix,
				 .scatterings = 300,
				 .len = 300,
				 .fan = 4,
				 .ring_bytes = TR_RING_TIGHT(4) });
	CHECK(tr_until(late_has_some, 60000), "the late host received %" PRIu64,
	      tr_sh->node[3].received);
	tr_enough();
	tr_wait_done(30000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

RACK_TEST(host__joins_late_leaf_spine)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.closed = 1ULL << 7; /* p1 p2 s1 s2 h1 h2 h3 h4 */
	rack_open();
	CHECK(rack_host(3) == 7, "the lab's nodes are in another order");
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 300,
					 .fan = 4,
					 .gap_us = 1000,
					 .ring_bytes = TR_RING_TIGHT(4) });
	tr_go();
	tr_pass(500);
	rack_open_node(7);
	rack_settle();
	must_go_on(3, 30000, "after a host joined");
	tr_add(&(struct tr_cfg){ .host = 3,
				 .fn = tr_mix,
				 .scatterings = 200,
				 .len = 300,
				 .fan = 4,
				 .ring_bytes = TR_RING_TIGHT(4) });
	CHECK(tr_until(late_has_some, 60000), "the late host received %" PRIu64,
	      tr_sh->node[3].received);
	tr_enough();
	tr_wait_done(30000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

static uint64_t inflight(unsigned int host, uint32_t slot)
{
	struct bl_inflight line = rack_line(rack_host(host), slot);

	return line.ts == BL_TIME_NONE ? 0 : line.ts;
}

/*
 * A process that is stopped in the middle of a scattering holds up the rack; once it is killed, it
 * does not. The test stops it until it is caught with its in-flight line set.
 */
RACK_TEST(killed__in_the_middle_of_a_scattering)
{
	unsigned int i, victim, round, tries = 0;
	uint64_t b, end;

	rack.lab.spec.hosts = 4;
	rack_open();
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 300,
					 .fan = 3,
					 .to = 7,
					 .gap_us = 500,
					 .quiet_ms = 5000,
					 .ring_bytes = TR_RING_TIGHT(16) });
	tr_go();
	for (round = 0; round < 3; round++) {
		victim = tr_add(&(struct tr_cfg){
			.host = 3, .fn = tr_rage, .to = 7, .ring_bytes = TR_RING_TIGHT(16) });
		for (tries = 0; tries < 3000; tries++) {
			rack_serve(1);
			kill(tr_sh->node[victim].pid, SIGSTOP);
			waitpid(tr_sh->node[victim].pid, NULL, WUNTRACED);
			if (inflight(3, 0))
				break;
			kill(tr_sh->node[victim].pid, SIGCONT);
		}
		CHECK(inflight(3, 0), "never caught in flight");
		/* What is below its timestamp arrives, however slowly; then nothing more can. */
		end = t_mono() + 30000000000ULL;
		do {
			CHECK(t_mono() < end, "deliveries go on past a scattering in flight");
			b = delivered(3);
			tr_pass(300);
		} while (delivered(3) != b);
		tr_kill(victim);
		must_go_on(3, 30000, "after an endpoint was killed");
		CHECK(!inflight(3, 0), "the in-flight line of the dead was not cleared");
	}
	fprintf(stderr, "  caught in flight after %u tries\n", tries);
	tr_enough();
	tr_wait_done(30000);
	tr_stop();
	tr_judge(7, 7);
}

static bool three_inputs(void)
{
	return rack_live_inputs(0) == 3;
}

static bool four_inputs(void)
{
	return rack_live_inputs(0) == 4;
}

static unsigned int across;
static uint64_t want;

static bool across_has(void)
{
	return TR_LOAD(tr_sh->node[across].received) > want;
}

/*
 * A host's cable is pulled, and after dead_after the others continue. The cable is plugged in
 * again, and the host is back.
 */
RACK_TEST(link__cut_and_back)
{
	unsigned int i;
	uint64_t excluded;

	rack.lab.spec.hosts = 4;
	rack_open();
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 200,
					 .fan = 3,
					 .to = 7,
					 .gap_us = 1000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	/* two endpoints that send across the cut */
	tr_add(&(struct tr_cfg){ .host = 0,
				 .fn = tr_mix,
				 .until_enough = true,
				 .len = 200,
				 .to = 24,
				 .gap_us = 3000,
				 .quiet_ms = 4000,
				 .ring_bytes = TR_RING_TIGHT(8) });
	across = tr_add(&(struct tr_cfg){ .host = 3,
					  .fn = tr_mix,
					  .until_enough = true,
					  .len = 200,
					  .to = 24,
					  .gap_us = 3000,
					  .quiet_ms = 4000,
					  .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_pass(800);
	must_go_on(5, 30000, "before the cut");
	excluded = rack_count(0, BL_R_EXCLUDED);
	rack_link(0, "h4", false);
	tr_pass(RACK_DEAD_AFTER_US / 1000);
	must_go_on(3, 30000, "after a link was cut");
	CHECK(rack_count(0, BL_R_EXCLUDED) > excluded, "nobody was excluded");
	/* A host that had no CPU for that long is excluded for a moment, and returns by itself. */
	CHECK(tr_until(three_inputs, 30000), "%u inputs", rack_live_inputs(0));
	rack_link(0, "h4", true);
	/* The port's NAPI thread is a new one; taking over the switch again pins it. */
	rack_close_node(0);
	rack_open_node(0);
	rack_settle();
	CHECK(tr_until(four_inputs, 30000), "%u inputs", rack_live_inputs(0));
	must_go_on(3, 30000, "after the link came back");
	want = TR_LOAD(tr_sh->node[across].received) + 20;
	CHECK(tr_until(across_has, 60000), "the host behind the link that came back stays deaf");
	tr_enough();
	tr_wait_done(40000);
	tr_stop();
	tr_judge(7, 7);
}

/*
 * The switch's program is detached from one port, as drivers do when a link goes down. Now the
 * kernel receives the frames of that host and bridges them. They must not reach any host, because
 * each host takes the barriers in them for those of the switch, and would run ahead of the other
 * hosts.
 */
static void taken_off(void)
{
	char path[320];
	unsigned int i;
	int link;

	rack.lab.spec.hosts = 4;
	rack_open();
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .run_ms = 3000,
					 .len = 300,
					 .fan = 3,
					 .gap_us = 300,
					 .quiet_ms = 3000,
					 .ring_bytes = TR_RING_TIGHT(4) });
	tr_go();
	tr_pass(500);
	snprintf(path, sizeof(path), "%s/links/xdp-h4", bl_node_dir(rack.node[0]));
	link = bpf_obj_get(path);
	CHECK(link >= 0 && !bpf_link_detach(link), "%s: %s", path, strerror(errno));
	close(link);
	must_go_on(3, 10000, "when h4 is not heard any more");
	tr_wait_done(30000);
	tr_stop();
	tr_judge(0, 0);
	fprintf(stderr, "  %" PRIu64 " frames wanted to go past the program\n",
		rack_count(0, BL_R_BYPASSED));
	CHECK(rack_count(0, BL_R_BYPASSED) > 0, "nothing went by way of the kernel: nothing was "
						"tested");
	for (i = 0; i < 3; i++)
		CHECK(tr_sh->node[i].st.late_dropped == 0,
		      "h%u dropped %" PRIu64 " late frames: its barrier ran ahead", i + 1,
		      tr_sh->node[i].st.late_dropped);
}

RACK_TEST(program__taken_off_a_port)
{
	taken_off();
}

/* Returns how many of the switch's ports have the filter that replaces tcx on older kernels. */
static unsigned int filters(void)
{
	unsigned int i, n = 0;
	int home = rack_away(0);

	for (i = 1; i <= 4; i++) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_EGRESS);
		LIBBPF_OPTS(bpf_tc_opts, q, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY);
		char name[8];

		snprintf(name, sizeof(name), "h%u", i);
		hook.ifindex = (int)if_nametoindex(name);
		n += hook.ifindex && !bpf_tc_query(&hook, &q);
	}
	rack_back(home);
	return n;
}

/*
 * The same with filters. When the switch is detached, the filters are gone, also that of the port
 * without the program.
 */
RACK_TEST(program__taken_off_a_port_without_tcx)
{
	char path[64];
	struct bl_err err;

	bl_no_tcx = true;
	taken_off();
	CHECK(filters() == 4, "%u filters", filters());
	snprintf(path, sizeof(path), "/proc/self/fd/%d", rack.lab.nodes[0].netns);
	bl_node_close(rack.node[0]);
	rack.node[0] = NULL;
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, path, &err), "%s", err.text);
	CHECK(!filters(), "%u filters are still there", filters());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints__join_and_leave),
		cmocka_unit_test(host__joins_late),
		cmocka_unit_test(host__joins_late_leaf_spine),
		cmocka_unit_test(killed__in_the_middle_of_a_scattering),
		cmocka_unit_test(link__cut_and_back),
		cmocka_unit_test(program__taken_off_a_port),
		cmocka_unit_test(program__taken_off_a_port_without_tcx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
