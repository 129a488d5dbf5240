// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Generic XDP on every node, as on NICs whose driver has no native XDP: traffic through a switch
 * and through leaves and spines, judged by the order checker. A veth in generic mode hands a frame
 * to the CPU that sent it, so two senders are two receive queues. Receive packet steering (RPS)
 * comes before generic XDP, and to one CPU it makes one queue of them, as docs/nics.md says.
 */
#include "loader/load/sysfs.h"
#include "maps/reasons_abi.h"
#include "maps/link_abi.h"
#include "tests/net/traffic.h"

static void generic(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->mode = BL_XDP_GENERIC;
}

/* Has all frames that arrive at the nodes handled by CPU 0, the CPU of the switches' lanes. */
static void steer_to_cpu_0(void)
{
	unsigned int i, k;

	for (i = 0; i < rack.lab.nnodes; i++) {
		int home = rack_away(i), sys = bl_sysfs_open();

		for (k = 0; k < rack.lab.nodes[i].nports; k++) {
			char path[96];
			int fd;

			snprintf(path, sizeof(path), "class/net/%s/queues/rx-0/rps_cpus",
				 rack.lab.nodes[i].ports[k].ifname);
			fd = openat(sys, path, O_WRONLY);
			CHECK(fd >= 0 && write(fd, "1", 1) == 1, "%s: %s", path, strerror(errno));
			close(fd);
		}
		close(sys);
		rack_back(home);
	}
}

static void run(unsigned int hosts, unsigned int len)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = generic;
	rack.closed = ~0ULL;
	rack_open();
	steer_to_cpu_0();
	for (i = 0; i < rack.lab.nnodes; i++) {
		rack_open_node(i);
		CHECK(bl_node_mode(rack.node[i]) == BL_XDP_GENERIC, "%s is not in generic mode",
		      rack.lab.nodes[i].name);
	}
	for (i = 0; i < hosts + 2; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts,
					 .fn = tr_mix,
					 .scatterings = tr_share(2000),
					 .len = len,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 1000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_wait_done(90000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

/* The frames that the nodes took for overtaken, on all links. */
static uint64_t overtaken(void)
{
	uint64_t sum = 0;
	unsigned int i, lane;
	struct bl_link l;
	uint32_t k;

	for (i = 0; i < rack.lab.nnodes; i++) {
		int fd = rack_map(i, BL_MAP_LINK_SEEN);

		CHECK(fd >= 0, "no links");
		for (k = 0; k < rack.lab.nodes[i].nports; k++) {
			CHECK(!bpf_map_lookup_elem(fd, &k, &l), "%s", strerror(errno));
			for (lane = 0; lane < BL_LANES_MAX; lane++)
				sum += l.lane[lane].overtaken;
		}
		close(fd);
	}
	return sum;
}

RACK_TEST(rack__steered)
{
	run(3, 500);
	CHECK(!rack_count_all(BL_R_WRONG_CPU), "%" PRIu64 " on the wrong CPU",
	      rack_count_all(BL_R_WRONG_CPU));
	CHECK(!rack_count_all(BL_R_PROMISE_BROKEN), "a promise was broken");
	CHECK(!overtaken(), "%" PRIu64 " frames overtaken", overtaken());
}

RACK_TEST(leaf_spine__steered)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	run(4, 500);
	CHECK(!rack_count_all(BL_R_WRONG_CPU), "%" PRIu64 " on the wrong CPU",
	      rack_count_all(BL_R_WRONG_CPU));
	CHECK(!rack_count_all(BL_R_PROMISE_BROKEN), "a promise was broken");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__steered),
		cmocka_unit_test(leaf_spine__steered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
