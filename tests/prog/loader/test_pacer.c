// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_pacer with two nodes: a host (NIC v0) and a switch (metered port 1 on v1), each with maps of
 * its own. Their frames arrive at p0 and p1. Every turn is live, as the daemon runs it.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sys/socket.h>
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"
#include "pacer.skel.h"
#include "switch.skel.h"

static struct bl_pacer *pacer;
static struct bl_switch *sw;
static int sock[2];

static void set_pace_prog(__u32 key, const struct bpf_program *prog)
{
	int fd = bpf_program__fd(prog);

	map_put(pacer->maps.pace_progs, key, &fd);
}

static int setup(void **state)
{
	struct bl_queue q = { .limit_frames = BL_RING, .limit_bytes = 1 << 20 };
	static struct bl_due due;
	struct bl_sw_cfg cfg_sw = { .nports = 2,
				    .forward = BL_FWD_L2,
				    .port_base = BL_PORT_BASE,
				    .port_count = BL_PORT_COUNT,
				    .lanes = 1,
				    .tree_leaves = 4,
				    .beacon_ns = BEACON_NS,
				    .dead_after_ns = DEAD_NS,
				    .single_writer = 1,
				    .admission = 1 };
	struct bl_hold_cfg hold = { .on = 1 };
	struct bpf_devmap_val v;
	struct bl_fdb_bucket b;
	__u8 mac[6];
	__u32 i, k;

	(void)state;
	net_setup(false);
	host_setup(state);
	pace_setup(sk->maps.hold_due, 100, BL_DESTS * BL_HOLD_CLASSES);
	map_put(sk->maps.hold_cfg, 0, &hold);
	v = (struct bpf_devmap_val){ .ifindex = net.ifindex[0] };
	map_put(sk->maps.hold_tx, BL_TX_NIC, &v);

	sw = bl_switch__open_and_load();
	assert_non_null(sw);
	map_put(sw->maps.sw_cfg, 0, &cfg_sw);
	host_mac(mac, 1);
	map_get(sw->maps.sw_fdb, bl_fdb_hash(bl_mac48(mac)), &b);
	b.way[0].mac = bl_mac48(mac);
	b.way[0].port = 1;
	map_put(sw->maps.sw_fdb, bl_fdb_hash(bl_mac48(mac)), &b);
	for (i = 0; i < 2; i++) {
		struct bl_sw_port p = { .ifindex = net.ifindex[2 + i],
					.role = BL_PORT_HOST,
					.metered = i,
					.mtu = 1500 };

		if (i)
			p.ifindex = net.ifindex[1];
		k = i + 1;
		map_put(sw->maps.sw_ports, i, &p);
		map_put(sw->maps.sw_ifindex, p.ifindex, &k);
	}
	v = (struct bpf_devmap_val){ .ifindex = net.ifindex[1] };
	map_put(sw->maps.port_tx, 1, &v);
	for (i = 0; i < BL_PORT_QUEUE(2, 0); i++)
		map_put(sw->maps.queues, i, &q);
	for (i = 0; i < 100; i++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(sw->maps.free_slots), NULL, &i,
						     BPF_ANY),
				 0);
	memset(due.at, 0xff, sizeof(due.at));
	due.next = BL_DUE_NEVER;
	map_put(sw->maps.port_due, 0, &due);

	pacer = bl_pacer__open_and_load();
	assert_non_null(pacer);
	set_pace_prog(0, sk->progs.bl_host_pace);
	set_pace_prog(1, sw->progs.bl_port_pace);
	pacer->bss->bl_pace_count = 2;
	for (i = 0; i < 2; i++) {
		struct sockaddr_ll a = { .sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL),
					 .sll_ifindex = (int)net.peer[i] };

		sock[i] = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
		assert_true(sock[i] >= 0);
		assert_int_equal(bind(sock[i], (struct sockaddr *)&a, sizeof(a)), 0);
	}
	return 0;
}

static int pacer_fd(void)
{
	return bpf_program__fd(pacer->progs.bl_pacer);
}

static __u64 turns_of(const struct bpf_map *map)
{
	struct bl_pace_page p;

	map_get(map, 0, &p);
	return p.turns;
}

static void expect_arrival(int i, const struct frame *want)
{
	struct pollfd p = { .fd = sock[i], .events = POLLIN };
	struct frame here;

	assert_int_equal(poll(&p, 1, 5000), 1);
	here.n = (__u32)recv(sock[i], here.p, sizeof(here.p), 0);
	same_frame(&here, want);
}

static void expect_no_arrival(void)
{
	struct pollfd p[2] = { { .fd = sock[0], .events = POLLIN },
			       { .fd = sock[1], .events = POLLIN } };

	assert_int_equal(poll(p, 2, 20), 0);
}

static void turns__go_round(void **state)
{
	__u64 host = turns_of(sk->maps.pace_page), port = turns_of(sw->maps.pace_page);

	(void)state;
	live_turns(pacer_fd(), 1000);
	assert_int_equal(turns_of(sk->maps.pace_page), host + 500);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 500);
	/*
	 * The count shrinks while the turn is beyond it: entry 1 has one more turn, entry 0 all
	 * others.
	 */
	pacer->bss->bl_pace_turn = 1;
	pacer->bss->bl_pace_count = 1;
	live_turns(pacer_fd(), 10);
	assert_int_equal(turns_of(sk->maps.pace_page), host + 509);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 501);
	/* An entry without a program costs its turn and has no other effect. */
	pacer->bss->bl_pace_count = 3;
	pacer->bss->bl_pace_turn = 0;
	live_turns(pacer_fd(), 30);
	assert_int_equal(turns_of(sk->maps.pace_page), host + 519);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 511);
	pacer->bss->bl_pace_count = 2;
	pacer->bss->bl_pace_turn = 0;
	expect_no_arrival();
}

/*
 * A node of four links has four turns in a row for each turn of a host. If the number is lowered
 * while a row is under way, the row ends after one more turn.
 */
static void turns__by_links(void **state)
{
	__u64 host = turns_of(sk->maps.pace_page), port = turns_of(sw->maps.pace_page);

	(void)state;
	pacer->bss->bl_pace_more[1] = 3;
	live_turns(pacer_fd(), 1000);
	assert_int_equal(turns_of(sk->maps.pace_page), host + 200);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 800);
	live_turns(pacer_fd(), 3); /* 0, 1, 1 */
	pacer->bss->bl_pace_more[1] = 0;
	live_turns(pacer_fd(), 3); /* 1, 0, 1 */
	assert_int_equal(turns_of(sk->maps.pace_page), host + 202);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 804);
	assert_int_equal(pacer->bss->bl_pace_turn, 0);
	pacer->bss->bl_pace_more[0] = 255;
	live_turns(pacer_fd(), 257);
	assert_int_equal(turns_of(sk->maps.pace_page), host + 458);
	assert_int_equal(turns_of(sw->maps.pace_page), port + 805);
	pacer->bss->bl_pace_more[0] = 0;
	expect_no_arrival();
}

/* Frames of many lengths through both nodes at once must arrive in order and byte for byte. */
static void frames__arrive(void **state)
{
	static const __u32 lens[] = { 60, 61, 64, 65, 128, 500, 1000, 1513, 1514 };
	const size_t n = sizeof(lens) / sizeof(*lens);
	struct frame f, out;
	size_t i;

	(void)state;
	for (i = 0; i < n; i++) {
		raw_frame(&f, 0, 7, lens[i], (__u32)i);
		assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[3], &f, &out),
				 XDP_DROP);
		raw_frame(&f, 0, 1, lens[i], (__u32)i + 100);
		assert_int_equal(run_xdp(sw->progs.bl_switch_xdp, net.ifindex[2], &f, &out),
				 XDP_DROP);
	}
	live_turns(pacer_fd(), 200);
	for (i = 0; i < n; i++) {
		doing = "host";
		raw_frame(&f, 0, 7, lens[i], (__u32)i);
		expect_arrival(0, &f);
		doing = "switch";
		raw_frame(&f, 0, 1, lens[i], (__u32)i + 100);
		expect_arrival(1, &f);
	}
	expect_no_arrival();
	doing = "";
	assert_int_equal(balanced(BL_DESTS * BL_HOLD_CLASSES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns__go_round),
		cmocka_unit_test(turns__by_links),
		cmocka_unit_test(frames__arrive),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
