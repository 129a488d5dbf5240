// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on two racks over two spines: the paths of tokens and data. top_switches.h lists what must
 * hold.
 */
#include "tests/net/top/top_switches.h"
#include "loader/admission/admission_set.h"

#define SPINES 2

/*
 * Reads what the ports of spine @s have sent: tokens, and bytes of data. Ordered frames and beacons
 * are in the class of data, too.
 */
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
		CHECK(!bpf_map_lookup_elem(fd, &port, v) && !bpf_map_lookup_elem(queues, &key, &q),
		      "%s", strerror(errno));
		for (k = 0; k < (unsigned int)cpus; k++)
			for (c = 0; c < BL_TOP_CLASSES; c++)
				*tokens += v[k].passed[c];
		*bytes += q.put_bytes;
	}
	close(fd);
	close(queues);
}

/* Returns whether there is a flow that h1 sends tokens for. */
static bool wants_data(void)
{
	int fd = rack_map(rack_host(0), BL_MAP_TOP_RX);
	struct bl_top_rx r;
	bool open = false;
	uint32_t i;

	CHECK(fd >= 0, "%s", strerror(errno));
	for (i = 0; i < BL_TOP_RX_MAX; i++) {
		CHECK(!bpf_map_lookup_elem(fd, &i, &r), "%s", strerror(errno));
		open = open || r.state == BL_TOP_RX_OPEN;
	}
	close(fd);
	return open;
}

static uint64_t tokens_at_spines(void)
{
	uint64_t sum = 0, tokens, bytes;
	unsigned int s;

	for (s = 0; s < SPINES; s++) {
		of_spine(s, &tokens, &bytes);
		sum += tokens;
	}
	return sum;
}

#define WAVES 60 /* frames: some rounds of beacons, one to each port of all switches */

/*
 * Waits until the ended flow has no token under way: h1 knows that it holds nothing, and no token
 * passes while all switches send beacons behind the tokens.
 */
static void flow_is_over(void)
{
	uint64_t end = t_mono() + 60000000000ULL, tokens, put;

	while (wants_data()) {
		CHECK(t_mono() < end, "tokens go to a flow that holds nothing");
		rack_serve(5);
	}
	do {
		CHECK(t_mono() < end, "there are always tokens");
		tokens = tokens_at_spines();
		put = queued(BL_CL_DATA).put + WAVES;
		while (queued(BL_CL_DATA).put < put) {
			CHECK(t_mono() < end, "there are no beacons");
			rack_serve(5);
		}
	} while (tokens_at_spines() != tokens);
}

static void two_racks(void)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.tors = 2;
	rack.lab.spec.spines = SPINES;
	open_rack(2);
}

/*
 * One flow after the other, each with a port of its own: all tokens of a flow take one spine, and
 * its data the same one. The 2 MiB of data exceed the beacons of 70 s.
 */
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
		flow_is_over();
		for (s = 0, by = SPINES; s < SPINES; s++) {
			of_spine(s, &tokens[1][s], &bytes[1][s]);
			t = tokens[1][s] - tokens[0][s];
			b = bytes[1][s] - bytes[0][s];
			fprintf(stderr,
				"  flow %u, spine %u: %" PRIu64 " tokens, %" PRIu64 " bytes\n",
				flow, s + 1, t, b);
			CHECK(!t || by == SPINES, "tokens of one flow went by two spines");
			CHECK((b >= 2 << 20) == (t > 0), "tokens and data went by different "
							 "spines");
			CHECK(b >= 2 << 20 || b < 1 << 20, "data went by two spines");
			by = t ? s : by;
		}
		CHECK(by < SPINES, "no spine has seen a token");
	}
	CHECK(of_switches(BL_R_PATH_TAKEN) && !of_switches(BL_R_PATH_LOST), "paths");
	w.bytes *= 4;
	nothing_lost();
}

/* Frame by frame: tokens and data of a flow take both spines, and all of it arrives. */
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
		fprintf(stderr, "  spine %u: %" PRIu64 " tokens, %" PRIu64 " bytes\n", s + 1,
			tokens, bytes);
		CHECK(tokens > 100 && bytes >= 1 << 20, "spine %u has little of it", s + 1);
	}
	CHECK(!of_switches(BL_R_PATH_LOST), "paths");
	nothing_lost();
}

/* ---- changes while it runs ---- */

/* Sets admission on the node @i as `barline admission set` does. */
static int set(unsigned int i, const struct bl_admission_set *c, char *said, size_t size,
	       struct bl_err *err)
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

/* Returns the policy of host @i that its neighbour has heard of. */
static uint32_t heard_policy(unsigned int i)
{
	int fd = rack_map(rack_host(i), BL_MAP_HOST_PAGE);
	struct bl_host_page page;
	uint32_t zero = 0;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page), "%s", strerror(errno));
	close(fd);
	return page.life.policy;
}

static void policy(enum bl_policy p)
{
	uint64_t end = t_mono() + 60000000000ULL;
	struct bl_admission_set c = {};
	char said[512];
	struct bl_err err;
	unsigned int i;

	bl_admission_put(&c, BL_AO_POLICY, p);
	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(!set(i, &c, said, sizeof(said), &err), "%s: %s", rack.lab.nodes[i].name,
		      err.text);
	/* A host continues without tokens until its switch's beacon announces the policy. */
	for (i = 0; i < rack.lab.spec.hosts; i++)
		while (heard_policy(i) != p + 1) {
			CHECK(t_mono() < end, "h%u has not heard of it", i + 1);
			rack_serve(5);
		}
}

/*
 * Switches that were started without top choose uplinks from the start of top until its end, as
 * configured.
 */
RACK_TEST(set__paths_begin_and_end_with_top)
{
	struct bl_admission_set c = {};
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
	CHECK(n >= 2 * (1 << 20) / 1460 && !of_switches(BL_R_PATH_LOST),
	      "%" PRIu64 " frames by a path that was chosen", n);
	bl_admission_put(&c, BL_AO_SPRAY, 1);
	CHECK(!set(tor, &c, said, sizeof(said), &err) && !strcmp(said, "spray: no -> yes, paths "
								       "up: symmetric -> spray"),
	      "%s", said);
	CHECK(set(spine, &c, said, sizeof(said), &err) == -EINVAL && strstr(err.text, "no ways up"),
	      "%s", err.text);
	policy(BL_POLICY_NONE);
	n = of_switches(BL_R_PATH_TAKEN);
	begin(AF_INET6, 1, 256 << 10);
	finish();
	CHECK(of_switches(BL_R_PATH_TAKEN) == n, "paths after top");
	c = (struct bl_admission_set){};
	bl_admission_put(&c, BL_AO_POLICY, BL_POLICY_TOP);
	CHECK(!set(tor, &c, said, sizeof(said), &err) && !strcmp(said, "policy: none -> top, paths "
								       "up: routes -> spray"),
	      "%s", said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spines__tokens_and_data_by_the_same),
		cmocka_unit_test(spines__sprayed),
		cmocka_unit_test(set__paths_begin_and_end_with_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
