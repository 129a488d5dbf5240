// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp and bl_fence in the kernel against the same sources compiled natively: random
 * frames and commands of the controller, on a switch with a clock that advances. After each frame,
 * verdict, bytes, counters, registers, trees, lanes, sources, quotas and stamps have to be the
 * same.
 */
#include "tests/prog/switch/switch_util.h"
#include "tests/prog/auth_util.h"
#include "tests/prog/native_drive.h"
#include "core/source_core.h"

int bl_switch_xdp(struct xdp_md *ctx);
int bl_fence(struct bl_fence_arg *a);
void native_switch_maps(void);

#define LEARNT  0 /* port whose host's addresses are learnt, with two lanes */
#define LISTED  3 /* port whose host's addresses are configured, with one lane */
#define GAP_NS  1000
#define LAG_MAX 1000000ULL
#define PHASE   1024 /* frames until another port lags */

static const char *const configured[] = { "sw_cfg",     "sw_ifindex", "sw_ports",   "sw_regs",
					  "sw_trees",   "sw_lanes",   "sw_orders",  "sw_lives",
					  "sw_carried", "sw_fdb",     "sw_homing",  "sw_lags",
					  "sw_sources", "sw_quotas",  "auth_links", "auth_states",
					  "link_seen",  "clock",      "epoch" };

static struct bpf_map *map_named(const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(sk->obj, name);

	assert_non_null(map);
	return map;
}

/* Makes the native switch what the one in the kernel is. */
static void copy_switch(void)
{
	__u32 i;

	for (i = 0; i < sizeof(configured) / sizeof(*configured); i++)
		copy_map(map_named(configured[i]));
	for (i = 0; i < NPORTS; i++) {
		struct bpf_devmap_val v = { .ifindex = net.ifindex[i] };

		native_put("sw_tx", i, &v);
	}
}

/* Both have the same addresses, with the same owners. */
static void same_owners(void)
{
	const struct native_map *m = native_map_named("sw_owners");
	int fd = bpf_map__fd(sk->maps.sw_owners);
	struct bl_ip key, *at = NULL;
	struct bl_owner o, *want;
	__u32 n = 0;

	for (; !bpf_map_get_next_key(fd, at, &key); at = &key, n++) {
		want = native_lookup(native_map_named("sw_owners"), &key);
		assert_int_equal(bpf_map_lookup_elem(fd, &key, &o), 0);
		if (!want || memcmp(want, &o, sizeof(o)))
			fail_msg("%s: address %llx has owner %u, and natively %d", doing,
				 (unsigned long long)key.lo, o.port, want ? (int)want->port : -1);
	}
	if (n != m->n)
		fail_msg("%s: %u addresses have owners, and natively %u", doing, n, m->n);
}

/* Except for quotas of link frames, which are in CLOCK_MONOTONIC. */
static void same_quotas(__u32 n)
{
	const struct bl_quotas *want;
	struct bl_quotas q;
	__u32 i;

	for (i = 0; i < n; i++) {
		map_get(sk->maps.sw_quotas, i, &q);
		want = native_get("sw_quotas", i);
		if (q.control != want->control || q.beacons != want->beacons ||
		    !q.links != !want->links)
			fail_msg("%s: quotas of port %u are %llx, %llx and %llx, and natively "
				 "%llx, %llx and %llx",
				 doing, i, q.control, q.beacons, q.links, want->control,
				 want->beacons, want->links);
	}
}

static void same_state(bool all)
{
	__u32 n = all ? BL_SW_PORTS_MAX : NPORTS;

	same_map(sk->maps.sw_regs, n);
	same_map(sk->maps.sw_carried, n);
	same_map(sk->maps.sw_lives, n);
	same_map(sk->maps.sw_orders, n);
	same_map(sk->maps.sw_ports, n);
	same_map(sk->maps.sw_lags, n);
	same_map(sk->maps.sw_sources, n);
	same_map(sk->maps.auth_states, n);
	same_map(sk->maps.link_seen, n);
	same_quotas(n);
	same_owners();
	same_map(sk->maps.sw_lanes, all ? BL_LANES_MAX : 1);
	same_map(sk->maps.sw_trees, all ? BL_LANES_MAX * BL_SETS_MAX : 2);
	same_map(sk->maps.epoch, 1);
}

/* A command of the controller, in its ranges or not. */
static void random_command(void)
{
	struct bl_fence_arg a = random_fence();
	struct bl_life life = { 0 };

	a.port = below(16) ? below(NPORTS) : below(300);
	a.barred[0] = below(16);
	if (a.port < BL_SW_PORTS_MAX)
		map_get(sk->maps.sw_lives, a.port, &life);
	fence_both(&a, life.death);
}

/* Leaves room for no more than two frames in a quota. */
static void quota_both(__u32 port)
{
	const __u64 full = bus_now + BL_CONTROL_BURST * GAP_NS;
	struct bl_quotas q = { .control = full - below(3) * GAP_NS + below(2),
			       .beacons = full - below(3) * GAP_NS + below(2) };

	put_both(sk->maps.sw_quotas, port, &q);
}

/* What a port has learnt is forgotten, as the daemon asks for a port that was silent. */
static void forget_both(__u32 port)
{
	struct native_map *owners = native_map_named("sw_owners");
	int fd = bpf_map__fd(sk->maps.sw_owners);
	struct bl_ip key[64];
	struct bl_sources s;
	struct bl_sw_port p;
	struct bl_owner o;
	__u32 n = 0;

	while (n < 64 && !bpf_map_get_next_key(fd, n ? &key[n - 1] : NULL, &key[n]))
		n++;
	while (n--)
		if (!bpf_map_lookup_elem(fd, &key[n], &o) && o.port == port && !o.listed) {
			assert_int_equal(bpf_map_delete_elem(fd, &key[n]), 0);
			native_delete(owners, &key[n]);
		}
	map_get(sk->maps.sw_sources, port, &s);
	s.forget++;
	put_both(sk->maps.sw_sources, port, &s);
	map_get(sk->maps.sw_ports, port, &p);
	p.source_eth = BL_SOURCE_NO_ETH;
	put_both(sk->maps.sw_ports, port, &p);
}

/*
 * In each phase another port may lag: its barrier, or only its commit barrier, is what the clock
 * was at the beginning of the phase.
 */
static struct {
	__u32 port; /* NPORTS and above: none */
	__u64 since;
	bool commit;
} laggard;

static void lagging_frame(struct frame *f)
{
	__u64 b = laggard.commit ? bus_now : laggard.since;
	struct desc d = below(2) ? beacon_frame(laggard.port, b)
				 : data_frame(laggard.port, 1, bus_now, b);

	d.c = laggard.since;
	build(f, &d);
}

static void any_frame(struct frame *f, __u32 port)
{
	const struct bl_port_regs *regs = native_get("sw_regs", port);
	/* a host may pretend to be another */
	__u32 from = below(16) ? port : below(NPORTS);
	__u64 reg = regs->lane[0].b;

	if (port == laggard.port)
		lagging_frame(f);
	else
		random_frame(f, from, bus_now, reg);
}

static __u32 next_frame(struct frame *in)
{
	__u32 port = below(NPORTS);

	any_frame(in, port);
	if (with_auth)
		seal_random(in, below(32) ? port : below(NPORTS), bus_now);
	return port;
}

static void between_frames(__u64 frame)
{
	if (below(64) == 0)
		random_command();
	if (below(128) == 0)
		quota_both(below(NPORTS));
	if (below(256) == 0)
		forget_both(LEARNT);
	if (frame % PHASE == 0) {
		laggard.port = below(2 * NPORTS);
		laggard.since = bus_now;
		laggard.commit = below(2);
	}
}

/*
 * Two of the three hosts' ports are guarded. The listed port's host has one more address than it
 * uses.
 */
static void new_switch(void)
{
	struct bl_sources learn = { .mode = BL_SOURCE_LEARN },
			  list = { .mode = BL_SOURCE_LIST, .nmac = 2, .nip = 3 };
	const struct bl_owner owner = { .port = LISTED, .listed = 1 };
	int fd = bpf_map__fd(sk->maps.sw_owners);
	struct native_map *owners;
	struct bl_ip key;
	__u8 mac[6];
	int i;

	cfg.lag_max_ns = LAG_MAX;
	cfg.commit_lag_max_ns = LAG_MAX;
	cfg.control_gap_ns = GAP_NS;
	set_cfg();
	ports[LEARNT].guarded = ports[LISTED].guarded = 1;
	ports[LEARNT].source_eth = ports[LISTED].source_eth = BL_SOURCE_NO_ETH;
	ports[LEARNT].lanes_less_one = 1;
	ports[LISTED].lanes_less_one = 0;
	map_put(sk->maps.sw_ports, LEARNT, &ports[LEARNT]);
	map_put(sk->maps.sw_ports, LISTED, &ports[LISTED]);
	list.mac[0] = 0x123456;
	host_mac(mac, LISTED);
	list.mac[1] = bl_mac48(mac);
	list.ip[0] = bl_ip4(1);
	host_addr((__u8 *)&list.ip[1], false, LISTED);
	host_addr((__u8 *)&list.ip[2], true, LISTED);
	map_put(sk->maps.sw_sources, LEARNT, &learn);
	map_put(sk->maps.sw_sources, LISTED, &list);
	native_switch_maps();
	native_clear();
	owners = native_map_named("sw_owners");
	while (!bpf_map_get_next_key(fd, NULL, &key))
		assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
	for (i = 0; i < list.nip; i++) {
		key = list.ip[i];
		assert_int_equal(bpf_map_update_elem(fd, &key, &owner, BPF_ANY), 0);
		assert_int_equal(native_update(owners, &key, &owner, BPF_ANY), 0);
	}
}

static void prepare_new(void)
{
	new_switch();
	copy_switch();
}

static void prepare_live(void)
{
	new_switch();
	all_live(T0 - 1000);
	copy_switch();
}

static __u64 run(const char *who, void (*prepare)(void))
{
	const struct native_test test = { prepare, between_frames, next_frame, same_state };
	const struct native_side sw = { .xdp = sk->progs.bl_switch_xdp,
					.xdp_natively = bl_switch_xdp,
					.fence = sk->progs.bl_fence,
					.fence_natively = bl_fence,
					.clock = sk->maps.clock,
					.counts = sk->maps.counts,
					.counted = counted,
					.keys = 2 * BL_SW_COUNTS };

	return native_drive(who, &sw, &test);
}

static void native__from_the_first_frame(void **state)
{
	(void)state;
	run("a new switch", prepare_new);
}

static void native__while_all_are_live(void **state)
{
	__u64 frames;

	(void)state;
	frames = run("a live switch", prepare_live);
	HAVE_MET(frames, BL_R_FORWARDED, BL_R_RELAYED, BL_R_BEACON, BL_R_JOINED, BL_R_EXCLUDED,
		 BL_R_BARRIER_OLD, BL_R_BARRIER_AHEAD, BL_R_TS_AHEAD, BL_R_UNSWITCHED,
		 BL_R_PROMISE_BROKEN, BL_R_NOT_IN, BL_R_TOO_BIG, BL_R_NO_ROUTE, BL_R_LOOPED,
		 BL_R_EPOCH_OLD, BL_R_BAD_FLAGS, BL_R_SPOOFED, BL_R_LANES_REFUSED,
		 BL_R_CONTROL_FLOOD, BL_R_LAGGING);
}

static int keys_setup(void **state)
{
	__u32 p;

	bl_switch__destroy(sk);
	sk = NULL;
	with_auth = BL_AUTH_LINKS;
	native_set_auth(with_auth);
	switch_setup(state);
	for (p = 0; p < NPORTS; p++)
		put_keys(p, 0x1000 + p); /* the nodes of beacon_frame() */
	forget_stamps();
	return 0;
}

static void native__with_keys(void **state)
{
	__u64 frames;

	(void)state;
	frames = run("a switch with keys", prepare_new);
	HAVE_MET(frames, BL_R_BEACON, BL_R_RELAYED, BL_R_JOINED, BL_R_AUTH_MISSING, BL_R_AUTH_EPOCH,
		 BL_R_AUTH_REPLAYED, BL_R_AUTH_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(native__from_the_first_frame, switch_setup),
		cmocka_unit_test_setup(native__while_all_are_live, switch_setup),
		cmocka_unit_test_setup(native__with_keys, keys_setup),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
