/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A switch for the program tests: hosts on ports 0, 1 and 3, a spine on port 2. Set 0 = {0,1,3}
 * feeds the up-link, set 1 = {0,1,2,3} feeds the hosts.
 *
 * step() runs one frame and compares everything: verdict, bytes, counters, and every tree with a
 * minimum computed from the registers the slow way.
 */
#ifndef BARLINE_TEST_SWITCH_UTIL_H
#define BARLINE_TEST_SWITCH_UTIL_H

#include "tests/prog/prog_util.h"
#include "tests/prog/link_util.h"
#include "core/order/barrier_core.h"
#include "core/order/link_core.h"
#include "loader/load/objects.h"
#include "switch.skel.h"

#define BEACON_NS 100000ULL
#define DEAD_NS   1000000ULL
#define NODE_ID   0x5a5a5a5au
#define MTU       1500
#define UPLINK    2

static struct bl_switch *sk;
static __u8 with_auth;  /* set before switch_setup(): enum bl_auth_mode */
static bool with_frags; /* set before switch_setup(): frames of several buffers */
static struct bl_counts counted[COUNT_KEYS_MAX];

/** struct state - everything that a frame may change. */
struct state {
	struct bl_port_regs regs[BL_SW_PORTS_MAX];
	struct bl_tree trees[BL_LANES_MAX * BL_SETS_MAX];
	struct bl_sw_lane lanes[BL_LANES_MAX];
	struct bl_carried carried[BL_SW_PORTS_MAX];
	struct bl_life lives[BL_SW_PORTS_MAX];
};
static struct state before, after;
static struct bl_sw_cfg cfg;
static struct bl_sw_port ports[BL_SW_PORTS_MAX];

static void state_take(struct state *s)
{
	__u32 i;

	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		map_get(sk->maps.sw_regs, i, &s->regs[i]);
		map_get(sk->maps.sw_carried, i, &s->carried[i]);
		map_get(sk->maps.sw_lives, i, &s->lives[i]);
	}
	for (i = 0; i < BL_LANES_MAX * BL_SETS_MAX; i++)
		map_get(sk->maps.sw_trees, i, &s->trees[i]);
	for (i = 0; i < BL_LANES_MAX; i++)
		map_get(sk->maps.sw_lanes, i, &s->lanes[i]);
}

/*
 * Returns the lesser of the two values below key @i, computed recursively from the leaves. Checks
 * every key above the leaves on the way: it must be the greater of the two values that meet there.
 */
static __u64 check_tree_keys(const __u64 *key, __u32 i, const char *what)
{
	__u64 l, r;

	if (i >= cfg.tree_leaves)
		return key[i];
	l = check_tree_keys(key, 2 * i, what);
	r = check_tree_keys(key, 2 * i + 1, what);
	if (key[i] != bl_max64(l, r))
		fail_msg("%s: key %u of %s is %llx, and what met there was %llx and %llx", doing, i,
			 what, key[i], l, r);
	return bl_min64(l, r);
}

/* Fails unless all leaves agree with the registers, and all other keys with the leaves. */
static void expect_trees(const struct state *s)
{
	__u32 key, p, l;

	for (key = 0; key < BL_LANES_MAX * BL_SETS_MAX; key++) {
		__u32 lane = key / BL_SETS_MAX, set = key % BL_SETS_MAX, apart = 0;
		const struct bl_tree *t = &s->trees[key];

		for (p = 0; p < cfg.tree_leaves; p++) {
			struct bl_pair want = { BL_LEAF_NONE, BL_LEAF_NONE };
			struct bl_pair leaf = { .b = t->b[cfg.tree_leaves + p] };

			leaf.c = t->two ? t->c[cfg.tree_leaves + p] : leaf.b;
			for (l = 0;
			     l < BL_LANES_MAX && p < cfg.nports && ports[p].in_sets & 1u << set &&
			     (cfg.single_writer ? BL_HOME_LANE(&ports[p]) : 0) == lane;
			     l++) {
				const struct bl_reg *r = &s->regs[p].lane[l];

				if ((__u8)r->state == BL_REG_LIVE && r->b < want.b)
					want.b = r->b;
				if (r->state & (BL_REG_IN | BL_REG_AWAITED) && r->c &&
				    r->c < want.c)
					want.c = r->c;
			}
			if (leaf.b != want.b || leaf.c != want.c)
				fail_msg("%s: lane %u set %u leaf %u is (%llx, %llx), want (%llx, "
					 "%llx)",
					 doing, lane, set, p, leaf.b, leaf.c, want.b, want.c);
			apart += want.b != want.c;
		}
		if (t->b[0] != check_tree_keys(t->b, 1, "b") ||
		    (t->two && t->c[0] != check_tree_keys(t->c, 1, "c")))
			fail_msg("%s: lane %u set %u: (%llx, %llx) is not the least", doing, lane,
				 set, t->b[0], t->c[0]);
		if (t->two && t->apart != apart)
			fail_msg("%s: lane %u set %u: %u leaves counted whose C is not their B, "
				 "but %u are",
				 doing, lane, set, t->apart, apart);
	}
}

/* Makes frames for @port leave by interface @ifindex. */
static void set_tx(__u32 port, __u32 ifindex)
{
	struct bpf_devmap_val v = { .ifindex = ifindex,
				    .bpf_prog.fd = bpf_program__fd(sk->progs.bl_switch_devmap) };

	map_put(sk->maps.sw_tx, port, &v);
}

/* Puts @mac into the static table, reachable by @port. */
static void set_fdb(const __u8 *mac, __u32 port)
{
	__u64 m = bl_mac48(mac);
	struct bl_fdb_bucket b;
	int i;

	map_get(sk->maps.sw_fdb, bl_fdb_hash(m), &b);
	for (i = 0; i < BL_FDB_WAYS && b.way[i].mac && b.way[i].mac != m; i++)
		;
	assert_true(i < BL_FDB_WAYS);
	b.way[i].mac = m;
	b.way[i].port = port;
	map_put(sk->maps.sw_fdb, bl_fdb_hash(m), &b);
}

/* Sets up port @p with its role and its sets. */
static void set_port(__u32 p, __u32 ifindex, __u8 role)
{
	ports[p] = (struct bl_sw_port){ .ifindex = ifindex,
					.role = role,
					.in_sets = role == BL_PORT_UP ? 2 : 3,
					.out_set = role != BL_PORT_UP,
					.lanes_less_one = BL_LANES_MAX - 1,
					.mac = { 2, 0, 0, 0, 0xff, (__u8)p },
					.mtu = MTU };
	map_put(sk->maps.sw_ports, p, &ports[p]);
}

/*
 * Sets the CPU that owns the frames of @port, and how many frames were sent and taken; the last one
 * moved just now.
 */
static void set_steering(__u32 port, __u32 cpu, __u32 sent, __u32 taken)
{
	struct bl_steering h = { .cpu = cpu, .sent = sent, .taken = taken, .most = 4 };
	struct bl_sw_lane lane;

	map_get(sk->maps.sw_lanes, BL_HOME_LANE(&ports[port]), &lane);
	h.moved_ns = lane.watch_ns;
	map_put(sk->maps.sw_homing, port, &h);
}

static void set_cfg(void)
{
	map_put(sk->maps.sw_cfg, 0, &cfg);
}

/*
 * Makes a switch that has heard nothing yet, at bus time T0. It is loaded once, because
 * verification takes long on slow machines, and emptied for each case.
 */
MAYBE_UNUSED static int switch_setup(void **unused)
{
	static const struct bl_fdb_bucket no_bucket;
	static const struct bl_port_regs no_regs;
	static const struct bl_carried no_carried;
	static const struct bl_sw_lane no_lane;
	static const struct bl_fence_slot no_order;
	static const struct bl_epoch no_epoch;
	static const struct bl_life no_life;
	static const struct bl_lag no_lag;
	static const struct bl_sources no_sources;
	static const struct bl_quotas no_quotas;
	struct bpf_cpumap_val home;
	__u32 max, i, k, port = 0;
	static struct bl_tree none;

	(void)unused;
	if (!sk) {
		sk = bl_switch_object(with_plain);
		assert_non_null(sk);
		assert_int_equal(bpf_map__set_max_entries(sk->maps.sw_home,
							  (__u32)libbpf_num_possible_cpus()),
				 0);
		sk->rodata->bl_auth = with_auth;
		sk->rodata->bl_chains = 1;
		sk->rodata->bl_frags = with_frags;
		if (with_frags) {
			bpf_program__set_flags(sk->progs.bl_switch_xdp, BPF_F_XDP_HAS_FRAGS);
			bpf_program__set_flags(sk->progs.bl_switch_devmap, BPF_F_XDP_HAS_FRAGS);
			bpf_program__set_flags(sk->progs.bl_switch_steered, BPF_F_XDP_HAS_FRAGS);
		}
		assert_int_equal(bl_switch__load(sk), 0);
		home = (struct bpf_cpumap_val){
			.qsize = 64, .bpf_prog.fd = bpf_program__fd(sk->progs.bl_switch_steered)
		};
		map_put(sk->maps.sw_home, (__u32)net.cpu, &home);
	}
	cfg = (struct bl_sw_cfg){ .node_id = NODE_ID,
				  .nports = NPORTS,
				  .lanes = 1,
				  .forward = BL_FWD_L2,
				  .port_base = BL_PORT_BASE,
				  .port_count = BL_PORT_COUNT,
				  .tree_leaves = 4,
				  .beacon_ns = BEACON_NS,
				  .dead_after_ns = DEAD_NS,
				  .single_writer = 1,
				  .tai_offset_s = 37 };
	set_cfg();
	memset(ports, 0, sizeof(ports));
	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		map_put(sk->maps.sw_ports, i, &ports[i]);
		map_put(sk->maps.sw_regs, i, &no_regs);
		map_put(sk->maps.sw_carried, i, &no_carried);
		map_put(sk->maps.sw_orders, i, &no_order);
		map_put(sk->maps.sw_lives, i, &no_life);
		map_put(sk->maps.sw_lags, i, &no_lag);
		map_put(sk->maps.sw_sources, i, &no_sources);
		map_put(sk->maps.sw_quotas, i, &no_quotas);
		link_new(sk->maps.link_seen, i, (__u16)(0x700 + i));
		set_steering(i, (__u32)net.cpu, 0, 0);
	}
	map_put(sk->maps.epoch, 0, &no_epoch);
	bl_tree_clear(&none);
	for (i = 0; i < BL_LANES_MAX * BL_SETS_MAX; i++)
		map_put(sk->maps.sw_trees, i, &none);
	for (i = 0; i < BL_LANES_MAX; i++)
		map_put(sk->maps.sw_lanes, i, &no_lane);
	for (i = 0; i < BL_FDB_BUCKETS; i++)
		map_put(sk->maps.sw_fdb, i, &no_bucket);
	max = bpf_map__max_entries(sk->maps.sw_ifindex);
	for (i = 0; i < max; i++)
		map_put(sk->maps.sw_ifindex, i, &port);
	for (i = 0; i < NPORTS; i++) {
		__u8 mac[6];

		k = i + 1;
		map_put(sk->maps.sw_ifindex, net.ifindex[i], &k);
		set_port(i, net.ifindex[i], i == UPLINK ? BL_PORT_UP : BL_PORT_HOST);
		set_tx(i, net.ifindex[i]);
		host_mac(mac, i);
		set_fdb(mac, i);
	}
	clock_at(sk->maps.clock, T0);
	counts_take(sk->maps.counts, counted);
	doing = "";
	return 0;
}

/* Runs bl_switch_xdp on a frame that arrives on @port. The program must end with @verdict. */
static void run_on(__u32 port, const struct frame *in, struct frame *out, int verdict)
{
	int got = run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], in, out);

	if (got != verdict)
		fail_msg("%s: verdict %d, want %d", doing, got, verdict);
}

/*
 * Runs one frame that arrives on @port. It must become @want, the counters must move by @counters,
 * and the trees must be correct.
 */
MAYBE_UNUSED static void step(__u32 port, const struct desc *d, int verdict,
			      const struct desc *want, const struct counted *counters, size_t n)
{
	struct frame in, out, expect;

	build(&in, d);
	build(&expect, want);
	run_on(port, &in, &out, verdict);
	same_frame(&out, &expect);
	counts_moved(sk->maps.counts, counted, 1, counters, n);
	state_take(&after);
	expect_trees(&after);
}

/* Runs a beacon that must be consumed, unchanged and without being relayed. */
MAYBE_UNUSED static void take_in(__u32 port, const struct desc *d, const struct counted *counters,
				 size_t n)
{
	step(port, d, XDP_DROP, d, counters, n);
}

/* Frames are counted as they arrive, whatever becomes of them. */
static void forget_frames(struct state *s)
{
	__u32 p, l;

	for (p = 0; p < BL_SW_PORTS_MAX; p++)
		for (l = 0; l < BL_LANES_MAX; l++)
			s->regs[p].lane[l].frames = 0;
}

/*
 * Runs a frame that must be refused: dropped, unchanged, counted for @why, with no other change in
 * any map.
 */
MAYBE_UNUSED static void refuse_frame(__u32 port, const struct frame *in, enum bl_reason why)
{
	struct frame out;

	state_take(&before);
	run_on(port, in, &out, XDP_DROP);
	same_frame(&out, in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ port, why }));
	state_take(&after);
	forget_frames(&before);
	forget_frames(&after);
	if (memcmp(&before, &after, sizeof(before)))
		fail_msg("%s: a frame refused as %s changed a register, tree, lane or carried "
			 "barrier",
			 doing, reason_name[why]);
}

MAYBE_UNUSED static void refuse(__u32 port, const struct desc *d, enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	refuse_frame(port, &in, why);
}

/* Returns @d as lane @lane of the switch forwards it, with barriers @b and @c. */
MAYBE_UNUSED static struct desc sent_on(__u8 lane, struct desc d, __u64 b, __u64 c)
{
	d.b = b;
	d.c = c;
	d.lane = lane;
	d.lanes = (__u8)cfg.lanes;
	return d;
}

MAYBE_UNUSED static struct desc sent(struct desc d, __u64 b, __u64 c)
{
	return sent_on(0, d, b, c);
}

#define TICK (1ULL << 20) /* of bl_link_tick(), ns */

/* The timestamp of a beacon that ingress relayed at @now: the number of the relay, and the tick. */
MAYBE_UNUSED static __u64 relay_mark(__u32 relay, __u64 now)
{
	return (__u64)BL_BE32(relay) << 16 | BL_BE16(bl_link_tick(now));
}

/*
 * Returns a relayed beacon as ingress leaves it: sets 0 and 1 have barriers, the others have none
 * (b is 0, and c is so old that it promises nothing). The relay is the next one of lane 0, on which
 * the test's ports are.
 */
MAYBE_UNUSED static struct desc relayed(struct desc d, __u64 up, __u64 down)
{
	struct bl_sw_lane lane;
	__u32 s;

	for (s = 0; s < BL_SETS_MAX; s++)
		d.relay[s] = (struct bl_pair){ 0, bus_now - BL_TS_OLD };
	map_get(sk->maps.sw_lanes, 0, &lane);
	d.ts = relay_mark(lane.relays + 1, bus_now);
	d.node = NODE_ID;
	d.port = 0; /* no set whose C was behind its B and rose */
	d.lane = 0;
	d.lanes = (__u8)cfg.lanes;
	d.relay[0] = (struct bl_pair){ up, up };
	d.relay[1] = (struct bl_pair){ down, down };
	return d;
}

/* Runs one beacon without checking anything, to build up a state. */
MAYBE_UNUSED static void feed(__u32 port, __u64 b)
{
	struct desc d = beacon_frame(port, b);
	struct frame in, out;

	build(&in, &d);
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], &in, &out);
}

/*
 * Returns the least barrier that is relayed after a relay at @b: a 32nd of an interval before a
 * multiple of the interval (bl_relay_next()).
 */
MAYBE_UNUSED static __u64 next_relay(__u64 b)
{
	const __u64 slack = BEACON_NS / 32;

	b += slack + 1;
	while (b % BEACON_NS)
		b++;
	return b - slack;
}

/*
 * Makes all four neighbours live with barrier @b, which every output was given. Each of them first
 * joins 1 ns above the one before.
 */
MAYBE_UNUSED static void all_live(__u64 b)
{
	__u32 p;

	for (p = 0; p < NPORTS; p++)
		feed(p, b - NPORTS + p);
	for (p = 0; p < NPORTS; p++)
		feed(p, b);
	counts_take(sk->maps.counts, counted);
	state_take(&after);
	expect_trees(&after);
	for (p = 0; p < NPORTS; p++)
		assert_int_equal(after.regs[p].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].out[0].b, b);
	assert_int_equal(after.lanes[0].out[1].b, b);
}

#endif
