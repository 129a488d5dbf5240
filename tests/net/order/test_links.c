// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What beacons say of their links, on whole racks: a FIFO under load and through restarts, a link
 * that loses frames, one that lets beacons overtake data (an HTB with two classes, as a fair queue
 * would), and a clock that is not within its bound.
 */
#include "core/clock_core.h"
#include "core/order/link_core.h"
#include "tests/net/loader/said.h"
#include "tests/net/lossy.h"
#include "tests/net/traffic.h"

#define WAIT_MS 60000
#define SKEW_NS 20000000LL

static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 60000000;
	cfg->clock_void_after_ms = 100000;
}

static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

/* The port of the only switch that leads to host @i. */
static uint32_t port_of(unsigned int i)
{
	const struct lab_node *s = &rack.lab.nodes[the_switch()];
	uint32_t k;

	for (k = 0; k < s->nports && s->ports[k].peer_node != rack_host(i); k++)
		;
	CHECK(k < s->nports, "no port leads to host %u", i);
	return k;
}

static void read_port(unsigned int node, const char *map, uint32_t port, void *to)
{
	int fd = rack_map(node, map);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, to), "%s: %s", map, strerror(errno));
	close(fd);
}

/* The link of host @i, as its switch sees it. */
static struct bl_link at_switch(unsigned int i)
{
	struct bl_link l;

	read_port(the_switch(), BL_MAP_LINK_SEEN, port_of(i), &l);
	return l;
}

static struct bl_link at_host(unsigned int i)
{
	struct bl_link l;

	read_port(rack_host(i), BL_MAP_LINK_SEEN, 0, &l);
	return l;
}

static struct bl_link_view view(unsigned int node, uint32_t port)
{
	struct bl_link_view v;

	read_port(node, BL_MAP_LINK_VIEWS, port, &v);
	return v;
}

/* Sums of all lanes of all links but that of host @but as its switch sees it. */
static void sum_links(unsigned int but, uint64_t *lost, uint64_t *overtaken)
{
	unsigned int i, k, l;

	*lost = *overtaken = 0;
	for (i = 0; i < rack.lab.spec.hosts; i++)
		for (k = 0; k < 2; k++) {
			struct bl_link at = k ? at_host(i) : at_switch(i);

			for (l = 0; l < BL_LANES_MAX && (k || i != but); l++) {
				*lost += bl_link_lost(&at.lane[l]);
				*overtaken += at.lane[l].overtaken;
			}
		}
}

static void expect_fifos(unsigned int but, bool lossless)
{
	uint64_t lost, overtaken;

	sum_links(but, &lost, &overtaken);
	CHECK(!overtaken, "%" PRIu64 " frames were overtaken on links that are FIFOs", overtaken);
	CHECK(!lossless || !lost, "%" PRIu64 " frames were lost", lost);
}

static void open_with_traffic(unsigned int hosts)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 1400,
			      .fan = 3,
			      .items = 2,
			      .quiet_ms = 1000,
			      .ring_bytes = TR_RING_TIGHT(4) };
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < hosts; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	rack_settle();
	tr_go();
}

static void serve_until_counted(void)
{
	unsigned int i, ms;

	for (i = 0; i < rack.lab.spec.hosts; i++)
		for (ms = 0; at_switch(i).lane[0].received < 2000; ms += 20) {
			CHECK(ms < WAIT_MS, "host %u sends too little", i);
			rack_serve(20);
		}
}

/* The links of a lab are FIFOs, lose nothing with these windows, and are known to be. */
RACK_TEST(fifo__under_load)
{
	open_with_traffic(3);
	serve_until_counted();
	expect_fifos(~0u, true);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	rack_serve(2000); /* and nothing is missing at the end */
	expect_fifos(~0u, true);
}

/* A daemon that starts again, of a host or of the switch, takes over a running count. */
RACK_TEST(fifo__restarts)
{
	open_with_traffic(3);
	serve_until_counted();
	rack_close_node(rack_host(1));
	rack_open_node(rack_host(1));
	rack_serve(300);
	rack_close_node(the_switch());
	rack_open_node(the_switch());
	rack_serve(300);
	expect_fifos(~0u, true);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	rack_serve(2000);
	expect_fifos(~0u, true);
}

/* What is dropped on the way to a host is missing there, and nothing else is said of it. */
RACK_TEST(lost__is_not_overtaken)
{
	uint64_t lost = 0;
	unsigned int ms;
	int whole;

	open_with_traffic(3);
	whole = make_lossy(1, 1311, 7); /* 2 % */
	for (ms = 0; lost < 20; ms += 20) {
		struct bl_link l = at_host(1);

		lost = bl_link_lost(&l.lane[0]);
		CHECK(ms < WAIT_MS, "%" PRIu64 " frames lost", lost);
		rack_serve(20);
	}
	make_whole(1, whole);
	for (ms = 0; !says_event(rack_host(1), "frames_lost"); ms += 20) {
		CHECK(ms < WAIT_MS, "the loss is no event");
		rack_serve(20);
	}
	expect_fifos(~0u, false);
	CHECK(!says_event(rack_host(0), "frames_lost"), "nothing was lost there");
	lost = at_switch(0).lane[0].lost + at_switch(1).lane[0].lost + at_switch(2).lane[0].lost;
	CHECK(!lost, "%" PRIu64 " frames were lost on other links", lost);
	tr_enough();
	tr_stop();
}

/* Gives the beacons of host @i a queue of their own, which overtakes that of all else. */
static void two_queues(unsigned int i)
{
	int home = rack_away(rack_host(i));

	CHECK(!system("tc qdisc add dev eth0 root handle 1: htb default 2 && "
		      "tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit && "
		      "tc class add dev eth0 parent 1: classid 1:2 htb rate 20mbit burst 3k && "
		      "tc filter add dev eth0 parent 1: protocol 0x88b5 u32 match u8 0 0 "
		      "classid 1:1"),
	      "tc: is CONFIG_NET_SCH_HTB missing?");
	rack_back(home);
}

/* Beacons that overtake data break a promise; which link does it is known at both of its ends. */
RACK_TEST(overtaken__is_seen_at_both_ends)
{
	unsigned int ms;

	open_with_traffic(3);
	serve_until_counted();
	two_queues(0);
	for (ms = 0; !at_switch(0).overtaken || !at_host(0).theirs; ms += 20) {
		CHECK(ms < WAIT_MS, "overtaken: %u at the switch, %u as the host knows",
		      at_switch(0).overtaken, at_host(0).theirs);
		rack_serve(20);
	}
	CHECK(at_switch(0).lane[0].worst > 0, "none at once");
	expect_fifos(0, false);
	rack_serve(600);
	CHECK(view(the_switch(), port_of(0)).broken_s, "the switch's daemon did not notice");
	CHECK(view(rack_host(0), 0).broken_s, "the host's daemon did not notice");
	CHECK(!view(the_switch(), port_of(1)).broken_s, "another link is blamed");
	tr_enough();
	tr_stop();
}

static int64_t h3_skew_ns;

static void h3_is_off(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	patient(cfg, n);
	cfg->clock_bound_us = 1000;
	if (n->kind == LAB_HOST && n->index == 3)
		cfg->skew_ns = h3_skew_ns;
}

static struct bl_clock clock_of(unsigned int node)
{
	struct bl_clock c;

	read_port(node, BL_MAP_CLOCK, 0, &c);
	return c;
}

/*
 * The clock of h3 is 20 ms off. Its switch names it; h3, which has one neighbour, finds out that
 * one of the two is, and widens its bound over the error. Nobody else is blamed.
 */
static void off_by(int64_t skew_ns)
{
	struct bl_link_view v, own;
	struct bl_clock c;
	unsigned int ms, i;

	rack.lab.spec.hosts = 4;
	h3_skew_ns = skew_ns;
	rack.tweak = h3_is_off;
	rack_open();
	for (ms = 0;; ms += 50) {
		v = view(the_switch(), port_of(2));
		own = view(rack_host(2), 0);
		c = clock_of(rack_host(2));
		if (v.verdict == BL_VERDICT_OFF && own.verdict == BL_VERDICT_EITHER &&
		    c.bound_ns >= (uint64_t)SKEW_NS)
			break;
		CHECK(ms < WAIT_MS, "verdicts %u and %u, bound %llu us", v.verdict, own.verdict,
		      c.bound_ns / 1000);
		rack_serve(50);
	}
	CHECK(v.since_s && own.since_s, "since when?");
	CHECK(skew_ns > 0 ? v.off_ns > 0 && own.off_ns < 0 : v.off_ns < 0 && own.off_ns > 0,
	      "the wrong way: %lld and %lld ns", (long long)v.off_ns, (long long)own.off_ns);
	CHECK(v.low_ns <= skew_ns && v.high_ns >= skew_ns,
	      "the true difference is not in [%lld, %lld] ns", (long long)v.low_ns,
	      (long long)v.high_ns);
	rack_serve(1500);
	for (i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		CHECK(view(the_switch(), port_of(i)).verdict == BL_VERDICT_GOOD, "h%u", i + 1);
		CHECK(view(rack_host(i), 0).verdict == BL_VERDICT_GOOD, "at h%u", i + 1);
		CHECK(clock_of(rack_host(i)).bound_ns < (uint64_t)SKEW_NS, "bound of h%u", i + 1);
	}
	CHECK(clock_of(the_switch()).bound_ns < (uint64_t)SKEW_NS, "bound of the switch");
}

RACK_TEST(clock__ahead)
{
	off_by(SKEW_NS);
}

RACK_TEST(clock__behind)
{
	off_by(-SKEW_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifo__under_load),
		cmocka_unit_test(fifo__restarts),
		cmocka_unit_test(lost__is_not_overtaken),
		cmocka_unit_test(overtaken__is_seen_at_both_ends),
		cmocka_unit_test(clock__ahead),
		cmocka_unit_test(clock__behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
