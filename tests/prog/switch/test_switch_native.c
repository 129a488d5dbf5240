// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp and bl_fence in the kernel against the same sources compiled natively: random
 * frames and commands of the controller, on a switch with a clock that advances. After each frame,
 * verdict, bytes, counters, registers, trees and lanes have to be the same.
 */
#include "tests/prog/native_util.h"
#include "tests/prog/switch/switch_util.h"

int bl_switch_xdp(struct xdp_md *ctx);
int bl_fence(struct bl_fence_arg *a);
void native_switch_maps(void);

static __u64 last[BL_R_COUNT * BL_SW_COUNTS];

static const char *const configured[] = { "sw_cfg",     "sw_ifindex", "sw_ports",  "sw_regs",
					  "sw_trees",   "sw_lanes",   "sw_orders", "sw_lives",
					  "sw_carried", "sw_fdb",     "sw_homing", "clock",
					  "epoch" };

static struct bpf_map *map_named(const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(sk->obj, name);

	assert_non_null(map);
	return map;
}

static void copy_counts(void)
{
	struct bl_sw_counts v = { 0 };
	__u32 r, k;

	counts_take(sk->maps.counts, counted);
	for (r = 0; r < BL_R_COUNT; r++) {
		for (k = 0; k < BL_SW_COUNTS; k++)
			v.n[k] = last[r * BL_SW_COUNTS + k] = counted[k].n[r];
		native_put("counts", r, &v);
	}
}

/* Makes the native switch what the one in the kernel is. */
static void copy_switch(void)
{
	__u32 i;

	native_switch_maps();
	native_clear();
	native_cpu = (__u32)net.cpu;
	for (i = 0; i < sizeof(configured) / sizeof(*configured); i++)
		copy_map(map_named(configured[i]));
	for (i = 0; i < NPORTS; i++) {
		struct bpf_devmap_val v = { .ifindex = net.ifindex[i] };

		native_put("sw_tx", i, &v);
	}
	copy_counts();
}

static void same_state(bool all)
{
	__u32 n = all ? BL_SW_PORTS_MAX : NPORTS;

	same_map(sk->maps.sw_regs, n);
	same_map(sk->maps.sw_carried, n);
	same_map(sk->maps.sw_lives, n);
	same_map(sk->maps.sw_orders, n);
	same_map(sk->maps.sw_ports, n);
	same_map(sk->maps.sw_lanes, all ? BL_LANES_MAX : 1);
	same_map(sk->maps.sw_trees, all ? BL_LANES_MAX * BL_SETS_MAX : 2);
	same_map(sk->maps.epoch, 1);
	same_counts(sk->maps.counts, last, BL_SW_COUNTS, all);
}

/* Bus time of both; the native clock stands still at the time that was set. */
static void both_clocks_at(__u64 bus)
{
	struct bl_clock c;

	clock_at(sk->maps.clock, bus);
	map_get(sk->maps.clock, 0, &c);
	native_put("clock", 0, &c);
	native_now_ns = c.seg[1].mono_ns;
}

/* A command of the controller, in its ranges or not. */
static void fence_both(void)
{
	static __u64 epoch;
	struct bl_fence_arg a = { .epoch = below(8) ? epoch : epoch + below(3) - 1,
				  .kind = below(BL_FENCE_EMPTY + 2),
				  .port = below(16) ? below(NPORTS) : below(300),
				  .barred = { below(16) } },
			    b;
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &a, .ctx_size_in = sizeof(a));
	struct bl_life life = { 0 };

	if (a.port < BL_SW_PORTS_MAX)
		map_get(sk->maps.sw_lives, a.port, &life);
	a.death = life.death + below(4) - 1;
	epoch = a.epoch > epoch && a.epoch < 1000 ? a.epoch : epoch;
	b = a;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_fence), &o), 0);
	bl_fence(&b);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void one_frame(__u32 port)
{
	const struct bl_port_regs *regs = native_get("sw_regs", port);
	struct frame in, out;
	const __u64 *count;
	enum bl_reason why;
	struct bl_frame f;
	__u64 was;

	random_frame(&in, port, bus_now, regs->lane[0].b);
	why = bl_parse(in.p, in.p + in.n, BL_PORT_BASE, BL_PORT_COUNT, &f);
	count = (const __u64 *)native_get("counts", why) + port;
	was = *count;
	run_both(sk->progs.bl_switch_xdp, bl_switch_xdp, net.ifindex[port], &in, &out);
	same_reason(&in, was, *count, why);
}

static __u64 run(const char *who, void (*prepare)(void))
{
	__u64 frames = 0, since = mono_now();
	static char at[64];

	rnd_begin(who);
	prepare();
	copy_switch();
	both_clocks_at(T0);
	for (; goes_on(frames, since); frames++) {
		snprintf(at, sizeof(at), "frame %llu", (unsigned long long)frames);
		doing = at;
		if (below(8) == 0)
			both_clocks_at(bus_now + below(2 * BEACON_NS) +
				       (below(64) ? 0 : below(5 * DEAD_NS)));
		if (below(64) == 0)
			fence_both();
		one_frame(below(NPORTS));
		same_state(frames % 1024 == 0);
	}
	same_state(true);
	print_message("%s: %llu frames in %llu ms\n", who, (unsigned long long)frames,
		      (unsigned long long)(mono_now() - since) / 1000000);
	doing = "";
	return frames;
}

static void new_switch(void)
{
}

static void live_switch(void)
{
	all_live(T0 - 1000);
}

static void native__from_the_first_frame(void **state)
{
	(void)state;
	run("a new switch", new_switch);
}

static void native__while_all_are_live(void **state)
{
	__u64 frames;

	(void)state;
	frames = run("a live switch", live_switch);
	HAVE_MET(frames, BL_R_FORWARDED, BL_R_RELAYED, BL_R_BEACON, BL_R_JOINED, BL_R_EXCLUDED,
		 BL_R_BARRIER_OLD, BL_R_BARRIER_AHEAD, BL_R_TS_AHEAD, BL_R_UNSWITCHED,
		 BL_R_PROMISE_BROKEN, BL_R_NOT_IN, BL_R_TOO_BIG, BL_R_NO_ROUTE, BL_R_LOOPED,
		 BL_R_EPOCH_OLD, BL_R_BAD_FLAGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(native__from_the_first_frame, switch_setup),
		cmocka_unit_test_setup(native__while_all_are_live, switch_setup),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
