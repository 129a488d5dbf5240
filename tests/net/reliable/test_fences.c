// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's fences at running nodes. Beacons arrive all the time, so lanes obey by
 * themselves, and the effect on barriers is observed at the hosts. Ports 0, 1 and 2 of the switch
 * belong to hosts 0, 1 and 2.
 */
#include "tests/net/traffic.h"
#include "loader/order/fence.h"

#define SWITCH 0

static struct bl_fence_port look(unsigned int node, unsigned int port)
{
	struct bl_fence_port v[8];

	CHECK(bl_fence_inputs(bl_node_fence(rack.node[node]), v, 8) > (int)port &&
		      v[port].port == port,
	      "%s cannot be looked at", rack.lab.nodes[node].name);
	return v[port];
}

static struct bl_host_page page_of(unsigned int host)
{
	struct bl_host_page page;
	uint32_t zero = 0;
	int fd = rack_map(rack_host(host), BL_MAP_HOST_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page), "host page");
	close(fd);
	return page;
}

static uint64_t commit48(unsigned int host)
{
	return page_of(host).commit & BL_TS_MASK;
}

/* Serves until the commit barrier of @host has passed @c. */
static void passes(unsigned int host, uint64_t c, const char *when)
{
	uint64_t end = t_mono() + 60000000000ULL;

	while (commit48(host) <= c) {
		CHECK(t_mono() < end,
		      "host %u's commit barrier stands at %" PRIu64 " %s, and should pass %" PRIu64,
		      host, commit48(host), when, c);
		rack_serve(2);
	}
}

/*
 * Serves until the barrier of @host has risen for 50 ms: everything that was on its way to it has
 * arrived.
 */
static void goes_on(unsigned int host)
{
	uint64_t b = page_of(host).barrier, end = t_mono() + 60000000000ULL;

	while (page_of(host).barrier < b + 50000000) {
		CHECK(t_mono() < end, "the barrier of host %u stands, too", host);
		rack_serve(2);
	}
}

/* Checks that the barrier rises while no host's commit barrier passes @c. */
static void stands(uint64_t c)
{
	unsigned int i;

	goes_on(1);
	for (i = 0; i < 3; i++)
		CHECK(commit48(i) <= c, "host %u's commit barrier is %" PRIu64 ", beyond %" PRIu64,
		      i, commit48(i), c);
}

/* A host that has no CPU for a while is not excluded. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

static void begin(void)
{
	rack.lab.spec.hosts = 3;
	rack.tweak = patient;
	rack_open();
	rack_settle();
	CHECK(look(SWITCH, 0).in && look(SWITCH, 0).neighbour, "port 0: in %d, neighbour %x",
	      look(SWITCH, 0).in, look(SWITCH, 0).neighbour);
}

RACK_TEST(freeze__and_resume)
{
	struct bl_fence_port p;
	uint64_t t;
	uint32_t death;

	begin();
	death = look(SWITCH, 0).death;
	t = t_mono();
	CHECK(!bl_fence_freeze(bl_node_fence(rack.node[SWITCH]), 5, 0, &p), "freeze");
	fprintf(stderr, "  frozen within %.2f ms\n", (double)(t_mono() - t) / 1e6);
	CHECK(p.held && p.in && p.death == death + 1 && p.c != BL_FENCE_NO_C,
	      "held %d, in %d, death %u after %u", p.held, p.in, p.death, death);
	stands(p.c);
	CHECK(look(SWITCH, 0).c == p.c && look(SWITCH, 0).death == p.death, "it moved");
	CHECK(bl_fence_resume(bl_node_fence(rack.node[SWITCH]), 5, 0, p.death - 1) == -ENOENT, "ano"
											       "the"
											       "r "
											       "dea"
											       "t"
											       "h");
	stands(p.c);
	t = t_mono();
	CHECK(!bl_fence_resume(bl_node_fence(rack.node[SWITCH]), 5, 0, p.death), "resume");
	fprintf(stderr, "  resumed within %.2f ms\n", (double)(t_mono() - t) / 1e6);
	passes(1, p.c, "after RESUME");
	CHECK(bl_fence_freeze(bl_node_fence(rack.node[SWITCH]), 4, 0, &p) == -ESTALE &&
		      rack_count(SWITCH, BL_R_EPOCH_OLD) == 1,
	      "an old epoch was obeyed, or not counted");
}

/*
 * The NIC of a host: if frozen, it holds its own commit barrier; if barred, those of all other
 * hosts.
 */
RACK_TEST(host__frozen_and_barred)
{
	struct bl_fence_port p;
	uint32_t nic = 0;
	uint64_t c;

	begin();
	CHECK(!bl_fence_freeze(bl_node_fence(rack.node[rack_host(0)]), 5, 0, &p) && p.held &&
		      p.neighbour,
	      "freeze: held %d, neighbour %x", p.held, p.neighbour);
	passes(1, p.c, "while another's NIC is frozen");
	CHECK(commit48(0) <= p.c, "a frozen NIC's commit barrier rose");
	CHECK(!bl_fence_resume(bl_node_fence(rack.node[rack_host(0)]), 5, 0, p.death), "resume");
	passes(0, p.c, "after RESUME");
	CHECK(!bl_fence_bar(bl_node_fence(rack.node[rack_host(0)]), 5, &nic, 1), "bar");
	goes_on(1); /* what it had sent before has arrived, too */
	c = look(SWITCH, 0).c;
	stands(c);
	CHECK(!bl_fence_bar(bl_node_fence(rack.node[rack_host(0)]), 5, NULL, 0), "free");
	passes(1, c, "when the host is free");
}

/* One lane for all CPUs instead of one each: the trees have another meaning. */
static void regroup(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	patient(cfg, n);
	if (n->kind != LAB_HOST)
		cfg->one_lane = true;
}

/*
 * A daemon starts and regroups the ports: frozen ports stay frozen, barred ports stay barred, and
 * the epoch stays the same.
 */
RACK_TEST(reload__keeps_what_was_ordered)
{
	struct bl_fence_port p, q;
	uint32_t two = 2;
	uint64_t c;

	begin();
	CHECK(!bl_fence_freeze(bl_node_fence(rack.node[SWITCH]), 5, 0, &p) && p.held, "freeze");
	CHECK(!bl_fence_bar(bl_node_fence(rack.node[SWITCH]), 5, &two, 1), "bar");
	goes_on(2);
	c = commit48(2);
	rack_close_node(SWITCH);
	rack.tweak = regroup;
	rack_open_node(SWITCH);
	rack_settle();
	CHECK(bl_fence_epoch(bl_node_fence(rack.node[SWITCH])) == 5, "epoch %" PRIu64,
	      bl_fence_epoch(bl_node_fence(rack.node[SWITCH])));
	q = look(SWITCH, 0);
	CHECK(q.held && q.c == p.c && q.death == p.death,
	      "after the reload: held %d, c %" PRIu64 " (was %" PRIu64 "), death %u (was %u)",
	      q.held, q.c, p.c, q.death, p.death);
	CHECK(look(SWITCH, 2).barred, "no longer barred");
	stands(p.c);
	CHECK(!bl_fence_resume(bl_node_fence(rack.node[SWITCH]), 5, 0, p.death), "resume");
	passes(1, p.c, "after RESUME");
	CHECK(commit48(2) == c, "commit barriers went to a host whose port is barred");
	CHECK(!bl_fence_bar(bl_node_fence(rack.node[SWITCH]), 5, NULL, 0), "free");
	passes(2, p.c, "when its port is free");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freeze__and_resume),
		cmocka_unit_test(host__frozen_and_barred),
		cmocka_unit_test(reload__keeps_what_was_ordered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
