// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on racks whose switches limit tokens: connections of applications over each of the switch's modes, and over two spines. What must hold however long the machine stands still: every byte arrives, no switch drops a frame
 * of data or a signal (tokens are lost instead), tokens and data of a flow go by the same spine.
 *
 * Times are not judged: tokens may be minutes old for hosts, and nobody is given up. At the switches tokens expire as they do: those of a pacer that stood still are lost, and others come.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "rack.h"
#include "conn.h"

#include "loader/node_priv.h"
#include "maps/token_abi.h"
#include "maps/top_host_abi.h"

#define RATE	250000000
#define FOREVER 10000000 /* us */

static bool unmetered; /* the next rack's switches, which know their links' rate all the same */

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_bound_us = 1000;
	cfg->admission.top.v[BL_TOP_O_EXPIRY] = cfg->admission.top.v[BL_TOP_O_DEAD] = FOREVER + 1;
	if (cfg->role == BL_ROLE_HOST)
		return;
	cfg->admission.link_rate_bps = unmetered ? RATE : 0;
	cfg->admission.rate_bps = unmetered ? 0 : RATE;
}

/* Of all switches together, in frames: dropped at the queues of a class; and where no slot was left, or the device map refused. */
static uint64_t dropped(uint32_t cls)
{
	uint64_t n = 0;
	struct bl_queue q;
	unsigned int i;
	uint32_t port, key;
	int fd;

	for (i = 0; i < rack.lab.nnodes; i++) {
		if (!rack_is_switch(i))
			continue;
		fd = rack_map(i, BL_MAP_QUEUES);
		CHECK(fd >= 0, "%s", strerror(errno));
		for (port = 0; port < rack.lab.nodes[i].nports; port++) {
			key = BL_PORT_QUEUE(port, cls);
			CHECK(!bpf_map_lookup_elem(fd, &key, &q), "%s", strerror(errno));
			n += q.dropped;
		}
		close(fd);
	}
	return n;
}

static uint64_t lost_otherwise(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (rack_is_switch(i))
			n += rack_count(i, BL_R_NO_SLOT) + rack_count(i, BL_R_REDIRECT_FAILED) + rack_count(i, BL_R_QUEUE_FULL);
	return n;
}

static enum bl_policy first = BL_POLICY_TOP; /* the next rack's */

/* Before any connection: while a rack begins, beacons may come before there is a pacer that drains them. */
static struct {
	uint64_t data, control, otherwise;
} was;

static void open_rack(unsigned int hosts)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.beacon_us = 20000; /* a beacon goes to each port */
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.policy = first;
	rack.lab.spec.admission.rate_bps = RATE;
	rack.tweak = tweak;
	rack_last_words = rack_dump;
	rack_open();
	rack_serve(300);
	if (!unmetered) {
		was.data = dropped(BL_CL_DATA);
		was.control = dropped(BL_CL_CONTROL);
	}
	was.otherwise = lost_otherwise();
}

static uint64_t of_switches(enum bl_reason r)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (rack_is_switch(i))
			n += rack_count(i, r);
	return n;
}

/* Every data frame left for a token, and no switch dropped one, or a signal. Tokens that switches dropped are part of it. */
static void nothing_lost(void)
{
	uint64_t used = 0;
	unsigned int i;

	for (i = 1; i <= w.senders; i++)
		used += rack_count(rack_host(i), BL_R_TOKEN_USED) + rack_count(rack_host(i), BL_R_TOKEN_PACED);
	fprintf(stderr, "  %" PRIu64 " tokens answered; switches dropped %" PRIu64 " (limit), %" PRIu64 " (expired), %" PRIu64 " (flood)\n", used, of_switches(BL_R_TOKEN_LIMIT), of_switches(BL_R_TOKEN_EXPIRED),
		of_switches(BL_R_TOKEN_FLOOD));
	CHECK(used * 1460 >= w.senders * w.bytes, "%" PRIu64 " tokens for %" PRIu64 " bytes", used, w.senders * w.bytes);
	CHECK(dropped(BL_CL_DATA) == was.data, "%" PRIu64 " frames of data were dropped at switches", dropped(BL_CL_DATA) - was.data);
	CHECK(dropped(BL_CL_CONTROL) == was.control, "%" PRIu64 " signals were dropped at switches", dropped(BL_CL_CONTROL) - was.control);
	CHECK(lost_otherwise() == was.otherwise, "%" PRIu64 " frames were lost at switches for want of slots or by the device map", lost_otherwise() - was.otherwise);
	CHECK(!of_switches(BL_R_TOKEN_CLASS) && !rack_count_all(BL_R_SIGNAL_BAD), "refusals");
}

/* ---- fifteen to one ---- */

static void incast(int family, uint64_t bytes)
{
	open_rack(16);
	begin(family, 15, bytes);
	finish();
	nothing_lost();
}

RACK_TEST(incast__pace)
{
	incast(AF_INET6, 128 << 10);
}

RACK_TEST(incast__pace_data_first)
{
	rack.lab.spec.admission.data_first = true;
	incast(AF_INET, 128 << 10);
}

RACK_TEST(incast__drop)
{
	rack.lab.spec.admission.token_mode = BL_TOKEN_DROP + 1;
	incast(AF_INET, 128 << 10);
	CHECK(of_switches(BL_R_TOKEN_EXPIRED) == 0, "nothing waits that could grow old");
}

/* Small flows whose size is known send unscheduled frames: these may be dropped, in their class, which is one frame deep; data is not. */
RACK_TEST(incast__unscheduled_class)
{
	static const struct bl_flow_hint hint = { .bytes = 8000 };

	rack.lab.spec.admission.unscheduled = true;
	rack.lab.spec.admission.top.v[BL_TOP_O_UNSCHED] = 4 + 1;
	w.hint = &hint;
	open_rack(16);
	begin(AF_INET, 15, 8000);
	finish();
	fprintf(stderr, "  %" PRIu64 " of the unscheduled class were dropped\n", dropped(BL_CL_UNSCHED));
	CHECK(dropped(BL_CL_DATA) == was.data && dropped(BL_CL_CONTROL) == was.control, "data, or signals, were dropped");
}

/* Ports without a meter: tokens are limited, what else comes goes at once. */
RACK_TEST(drop__nothing_is_metered)
{
	unmetered = true;
	open_rack(3);
	begin(AF_INET, 2, 2 << 20);
	finish();
	CHECK(of_switches(BL_R_TOKEN_PASSED) >= 2 * (2 << 20) / 1460, "%" PRIu64 " tokens passed", of_switches(BL_R_TOKEN_PASSED));
	CHECK(!of_switches(BL_R_QUEUED), "something was queued");
}

/* ---- two racks over two spines ---- */

#define SPINES 2

/* What the ports of spine @s sent: tokens, and bytes of data. Ordered frames and beacons are of the class of data, too. */
static void of_spine(unsigned int s, uint64_t *tokens, uint64_t *bytes)
{
	struct bl_token_counts v[256];
	unsigned int node = 0, c, k;
	int fd, queues, cpus = libbpf_num_possible_cpus();
	uint32_t port, key;
	struct bl_queue q;

	while (rack.lab.nodes[node].kind != LAB_SPINE || rack.lab.nodes[node].index != s + 1)
		node++;
	fd = rack_map(node, BL_MAP_TOKEN_COUNTS);
	queues = rack_map(node, BL_MAP_QUEUES);
	CHECK(fd >= 0 && queues >= 0 && cpus > 0 && cpus <= 256, "maps");
	*tokens = *bytes = 0;
	for (port = 0; port < rack.lab.nodes[node].nports; port++) {
		key = BL_PORT_QUEUE(port, BL_CL_DATA);
		CHECK(!bpf_map_lookup_elem(fd, &port, v) && !bpf_map_lookup_elem(queues, &key, &q), "%s", strerror(errno));
		for (k = 0; k < (unsigned int)cpus; k++)
			for (c = 0; c < BL_TOP_CLASSES; c++)
				*tokens += v[k].passed[c];
		*bytes += q.put_bytes;
	}
	close(fd);
	close(queues);
}

static void two_racks(void)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.tors = 2;
	rack.lab.spec.spines = SPINES;
	open_rack(2);
}

/* One flow after the other, each with a port of its own: all tokens of a flow go by one spine, and its data by the same. In 2 MiB of data there is room for 70 s of beacons. */
RACK_TEST(spines__tokens_and_data_by_the_same)
{
	uint64_t tokens[2][SPINES], bytes[2][SPINES], t, b;
	unsigned int flow, s, by;

	two_racks();
	for (flow = 0; flow < 4; flow++) {
		for (s = 0; s < SPINES; s++)
			of_spine(s, &tokens[0][s], &bytes[0][s]);
		begin(flow & 1 ? AF_INET6 : AF_INET, 1, 2 << 20);
		finish();
		rack_serve(50);
		for (s = 0, by = SPINES; s < SPINES; s++) {
			of_spine(s, &tokens[1][s], &bytes[1][s]);
			t = tokens[1][s] - tokens[0][s];
			b = bytes[1][s] - bytes[0][s];
			fprintf(stderr, "  flow %u, spine %u: %" PRIu64 " tokens, %" PRIu64 " bytes\n", flow, s + 1, t, b);
			CHECK(!t || by == SPINES, "tokens of one flow went by two spines");
			CHECK((b >= 2 << 20) == (t > 0), "tokens and data went by different spines");
			CHECK(b >= 2 << 20 || b < 1 << 20, "data went by two spines");
			by = t ? s : by;
		}
		CHECK(by < SPINES, "no spine has seen a token");
	}
	CHECK(of_switches(BL_R_PATH_TAKEN) && !of_switches(BL_R_PATH_LOST), "paths");
	w.bytes *= 4;
	nothing_lost();
}

/* Frame by frame: a flow's tokens and data go by both spines, and all of it arrives. */
RACK_TEST(spines__sprayed)
{
	uint64_t tokens, bytes;
	unsigned int s;

	rack.lab.spec.admission.spray = true;
	two_racks();
	begin(AF_INET, 1, 4 << 20);
	finish();
	for (s = 0; s < SPINES; s++) {
		of_spine(s, &tokens, &bytes);
		fprintf(stderr, "  spine %u: %" PRIu64 " tokens, %" PRIu64 " bytes\n", s + 1, tokens, bytes);
		CHECK(tokens > 100 && bytes >= 1 << 20, "spine %u has little of it", s + 1);
	}
	CHECK(!of_switches(BL_R_PATH_LOST), "paths");
	nothing_lost();
}

/* ---- while it runs ---- */

/* `barline admission set` on the node @i. */
static int set(unsigned int i, const struct bl_admission_set *c, char *said, size_t size, struct bl_err *err)
{
	struct bl_node_ref *refs;
	int home = rack_away(i), n, rc;

	n = bl_nodes_find(&refs, bl_netns_ino(), err);
	CHECK(n == 1, "%d nodes", n);
	rc = bl_admission_change(&refs[0], c, said, size, err);
	free(refs);
	rack_back(home);
	return rc;
}

static void policy(enum bl_policy p)
{
	struct bl_admission_set c = BL_ADMISSION_SAME;
	char said[512];
	struct bl_err err;
	unsigned int i;

	c.policy = (int)p;
	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(!set(i, &c, said, sizeof(said), &err), "%s: %s", rack.lab.nodes[i].name, err.text);
}

/* Switches that were started without top choose ways up from when it begins, until it ends, and as they are told. */
RACK_TEST(set__paths_begin_and_end_with_top)
{
	struct bl_admission_set c = BL_ADMISSION_SAME;
	char said[512];
	struct bl_err err;
	uint64_t n;
	unsigned int tor, spine;

	first = BL_POLICY_NONE;
	two_racks();
	for (tor = 0; rack.lab.nodes[tor].kind != LAB_TOR; tor++)
		;
	for (spine = 0; rack.lab.nodes[spine].kind != LAB_SPINE; spine++)
		;
	begin(AF_INET, 1, 256 << 10);
	finish();
	CHECK(!of_switches(BL_R_PATH_TAKEN), "paths without top");
	policy(BL_POLICY_TOP);
	begin(AF_INET, 1, 1 << 20);
	finish();
	n = of_switches(BL_R_PATH_TAKEN);
	CHECK(n >= 2 * (1 << 20) / 1460 && !of_switches(BL_R_PATH_LOST), "%" PRIu64 " frames by a path that was chosen", n);
	c.spray = 1;
	CHECK(!set(tor, &c, said, sizeof(said), &err) && !strcmp(said, "spray: no -> yes, paths up: symmetric -> spray"), "%s", said);
	CHECK(set(spine, &c, said, sizeof(said), &err) == -EINVAL && strstr(err.text, "no ways up"), "%s", err.text);
	policy(BL_POLICY_NONE);
	n = of_switches(BL_R_PATH_TAKEN);
	begin(AF_INET6, 1, 256 << 10);
	finish();
	CHECK(of_switches(BL_R_PATH_TAKEN) == n, "paths after top");
	c = (struct bl_admission_set)BL_ADMISSION_SAME;
	c.policy = BL_POLICY_TOP;
	CHECK(!set(tor, &c, said, sizeof(said), &err) && !strcmp(said, "policy: none -> top, paths up: routes -> spray"), "%s", said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incast__pace),
		cmocka_unit_test(incast__pace_data_first),
		cmocka_unit_test(incast__drop),
		cmocka_unit_test(incast__unscheduled_class),
		cmocka_unit_test(drop__nothing_is_metered),
		cmocka_unit_test(spines__tokens_and_data_by_the_same),
		cmocka_unit_test(spines__sprayed),
		cmocka_unit_test(set__paths_begin_and_end_with_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
