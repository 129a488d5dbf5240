// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a port lets in: the source guard, the number of lanes, quotas of control frames, and inputs
 * that lag (bpf/switch/source.h, core/order/lag_core.h).
 */
#include "tests/prog/switch/switch_util.h"
#include "core/order/lag_core.h"
#include "core/source_core.h"
#include "maps/fcp_abi.h"
#include "maps/top_abi.h"

#define LAG_MAX 50000000ULL

static struct bl_sources sources_of(__u32 port)
{
	struct bl_sources s;

	map_get(sk->maps.sw_sources, port, &s);
	return s;
}

/* Turns the guard of port @p on, in mode @mode, with nothing learnt. */
static void guard_port(__u32 p, enum bl_source_mode mode)
{
	struct bl_sources s = { .mode = mode };

	ports[p].guarded = mode != BL_SOURCE_ANY;
	ports[p].source_eth = BL_SOURCE_NO_ETH;
	map_put(sk->maps.sw_ports, p, &ports[p]);
	map_put(sk->maps.sw_sources, p, &s);
}

static void clear_owners(void)
{
	int fd = bpf_map__fd(sk->maps.sw_owners);
	struct bl_ip key;

	while (!bpf_map_get_next_key(fd, NULL, &key))
		assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
}

static int owner_of(const __u8 ip[16])
{
	struct bl_owner o;

	return bpf_map_lookup_elem(bpf_map__fd(sk->maps.sw_owners), ip, &o) ? -1 : (int)o.port;
}

static int guard_setup(void **state)
{
	__u32 p;

	switch_setup(state);
	clear_owners();
	for (p = 0; p < NPORTS; p++)
		if (p != UPLINK)
			guard_port(p, BL_SOURCE_LEARN);
	all_live(T0 - 1000);
	return 0;
}

/* Runs @d, a DATA frame from port @port to host 1 that must be forwarded. */
static void passes(__u32 port, const struct desc *d)
{
	step(port, d, XDP_REDIRECT, (struct desc[]){ sent(*d, T0 - 1000, T0 - 1000) },
	     WANT({ port, BL_R_FORWARDED }));
}

/* Runs a frame that must be refused as spoofed, and must teach the port nothing. */
static void spoofed(__u32 port, const struct desc *d)
{
	struct bl_sources was = sources_of(port), is;

	refuse(port, d, BL_R_SPOOFED);
	is = sources_of(port);
	assert_memory_equal(&was, &is, sizeof(was));
}

static __u64 counted_reason(__u32 port, enum bl_reason why)
{
	struct bl_counts now[COUNT_KEYS_MAX];

	counts_take(sk->maps.counts, now);
	return now[port].n[why] - counted[port].n[why];
}

/* The beacons have pinned the Ethernet address; the first message pins the IP address. */
static void learn__pinned(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000), other;
	struct bl_sources s = sources_of(0);

	(void)state;
	assert_int_equal(s.nmac, 1);
	assert_int_equal(s.nip, 0);
	passes(0, &d);
	passes(0, &d);
	s = sources_of(0);
	assert_int_equal(s.nip, 1);
	assert_memory_equal(&s.ip[0], d.saddr, 16);
	assert_int_equal(owner_of(d.saddr), 0);
	/* another host's Ethernet address, its IP address that it has not used yet, both */
	other = d;
	host_mac(other.src, 3);
	spoofed(0, &other);
	host_addr(other.saddr, false, 3);
	spoofed(0, &other);
	/* An address that host 3 has used cannot be used by host 0, with its own Ethernet address.
	 */
	other = data_frame(3, 1, T0, T0 - 1000);
	passes(3, &other);
	memcpy(other.src, d.src, 6);
	spoofed(0, &other);
	passes(0, &d);
}

/* A host has several addresses, v4 and v6, up to a limit, and frames may alternate. */
static void learn__several_addresses(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000), e = data_frame6(0, 1, T0, T0 - 1000);
	int k;

	(void)state;
	for (k = 0; k < 3; k++) {
		passes(0, &d);
		passes(0, &e);
	}
	for (k = 2; k < BL_SOURCE_IPS; k++) {
		d.saddr[13] = (__u8)k;
		passes(0, &d);
	}
	d.saddr[13] = 0xff;
	spoofed(0, &d);
	assert_int_equal(owner_of(d.saddr), -1);
	passes(0, &e);
}

/* Beacons with a false source raise no register and are not learnt; nor are tagged frames. */
static void learn__beacons_and_tags(void **state)
{
	struct desc b = beacon_frame(0, T0), d = data_frame(0, 1, T0, T0 - 1000);

	(void)state;
	host_mac(b.src, 3);
	spoofed(0, &b);
	b.src[0] = 0x06;
	spoofed(0, &b);
	d.tags = 1;
	passes(0, &d);
	host_addr(d.saddr, false, 3);
	d.saddr[15] = 77;
	passes(0, &d); /* an address of its own that nobody has */
	host_mac(d.src, 3);
	spoofed(0, &d);
}

/* In mode LIST nothing is learnt. */
static void list__only_what_is_listed(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000), other = d;
	struct bl_sources s = { .mode = BL_SOURCE_LIST, .nmac = 2, .nip = 2 };

	(void)state;
	s.mac[0] = 0x123456;
	s.mac[1] = bl_mac48(d.src);
	s.ip[0] = bl_ip4(1);
	memcpy(&s.ip[1], d.saddr, 16);
	ports[0].source_eth = BL_SOURCE_NO_ETH;
	map_put(sk->maps.sw_ports, 0, &ports[0]);
	map_put(sk->maps.sw_sources, 0, &s);
	passes(0, &d);
	passes(0, &d);
	other.saddr[15]++;
	spoofed(0, &other);
	other = d;
	other.src[5] ^= 0x80;
	spoofed(0, &other);
}

/* A switch is trusted, and so is a port whose guard is off. */
static void any__not_checked(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000);

	(void)state;
	step(UPLINK, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ UPLINK, BL_R_FORWARDED }));
	guard_port(3, BL_SOURCE_ANY);
	passes(3, &d);
}

/* What was learnt is forgotten when that is asked for, and another port can have the address. */
static void forget__another_port(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000), other = d;
	struct bl_sources s;

	(void)state;
	passes(0, &d);
	host_mac(other.src, 3);
	spoofed(3, &other);
	/* as on_sample() in loader/switch_source.c does */
	s = sources_of(0);
	s.forget++;
	map_put(sk->maps.sw_sources, 0, &s);
	map_get(sk->maps.sw_ports, 0, &ports[0]);
	ports[0].source_eth = BL_SOURCE_NO_ETH;
	map_put(sk->maps.sw_ports, 0, &ports[0]);
	clear_owners();
	passes(3, &other);
	assert_int_equal(owner_of(d.saddr), 3);
	refuse(0, &d, BL_R_SPOOFED);
	s = sources_of(0);
	assert_int_equal(s.nip, 0);
}

/* A token of TOP from the invented address number @k behind port @port. */
static void token_from(__u32 port, __u32 k)
{
	struct desc d = data_frame(port, 1, T0, T0);
	struct frame in, out;

	d.dport = BL_TOP_PORT;
	d.saddr[14] = (__u8)(k >> 8);
	d.saddr[15] = (__u8)k;
	build(&in, &d);
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], &in, &out);
}

/*
 * Sources of tokens and of Fastpass become a port's, too: a bounded number, so that one port
 * cannot leave no room for the others.
 */
static void learn__tokens_of_invented_sources(void **state)
{
	struct desc d = data_frame(3, 1, T0, T0 - 1000);
	struct bl_ip key, *at = NULL;
	struct bl_sources s;
	struct bl_quotas q;
	__u32 k, n = 0;

	(void)state;
	for (k = 0; k < 100; k++)
		token_from(0, 0x1000 + k);
	while (!bpf_map_get_next_key(bpf_map__fd(sk->maps.sw_owners), at, &key)) {
		at = &key;
		n++;
	}
	assert_int_equal(n, BL_SOURCE_IPS);
	assert_int_equal(counted_reason(0, BL_R_SPOOFED), 100 - BL_SOURCE_IPS);
	counts_take(sk->maps.counts, counted);
	passes(3, &d);
	/* What is forgotten leaves room, at the next frame that needs the lists. */
	s = sources_of(0);
	s.forget++;
	map_put(sk->maps.sw_sources, 0, &s);
	d = data_frame(0, 1, T0, T0 - 1000);
	passes(0, &d);
	map_get(sk->maps.sw_quotas, 0, &q);
	assert_int_equal(q.apps, 0);
}

/* What arbiters and hosts of Fastpass say to each other, and arbiters among themselves. */
static void learn__fastpass_of_others(void **state)
{
	static const __u16 to[] = { BL_FCP_PORT, BL_FCP_FAULTS_PORT, BL_FCP_WATCHDOG_PORT };
	struct desc d = data_frame(3, 1, T0, T0 - 1000);
	struct frame in, out;
	size_t i;

	(void)state;
	passes(3, &d); /* the address is port 3's */
	counts_take(sk->maps.counts, counted);
	host_mac(d.src, 0);
	for (i = 0; i < sizeof(to) / sizeof(*to); i++) {
		d.dport = to[i];
		build(&in, &d);
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
		assert_int_equal(counted_reason(0, BL_R_SPOOFED), i + 1);
	}
}

/* ---- node ids ---- */

static struct bl_port_regs regs_now(__u32 port)
{
	struct bl_port_regs r;

	map_get(sk->maps.sw_regs, port, &r);
	return r;
}

static __u32 node_of_port(__u32 port)
{
	struct bl_life l;

	map_get(sk->maps.sw_lives, port, &l);
	return l.neighbour;
}

/* Feeds all ports for @ns, port 0 as node @node; 0: port 0 is silent. */
static void node_says(__u64 *now, __u64 ns, __u32 node)
{
	__u64 end = *now + ns;
	struct frame in, out;
	struct desc d;
	__u32 p;

	while (*now < end) {
		*now += cfg.beacon_ns;
		clock_at(sk->maps.clock, *now);
		for (p = 1; p < NPORTS; p++)
			feed(p, *now);
		d = beacon_frame(0, *now);
		d.node = node;
		build(&in, &d);
		if (node)
			run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
	}
}

/* Node 0 is nobody: C would wait for it for ever. */
static void node__nobody(void **state)
{
	struct desc b = beacon_frame(0, T0);
	static const struct bl_life unknown;

	(void)state;
	b.node = 0;
	refuse(0, &b, BL_R_SPOOFED);
	map_put(sk->maps.sw_lives, 0, &unknown);
	refuse(0, &b, BL_R_SPOOFED);
	b = beacon_frame(UPLINK, T0);
	b.node = 0;
	refuse(UPLINK, &b, BL_R_SPOOFED);
}

/* A port keeps its node, and takes another one that is said for long; never the one of another. */
static void node__kept(void **state)
{
	__u32 mine = node_of_port(0), theirs = node_of_port(1), k;
	__u64 now = T0, keep = (BL_NODE_KEEP + 2ULL) << BL_NODE_SHIFT;
	struct desc b;

	(void)state;
	for (k = 1; k < 20; k++) {
		b = beacon_frame(0, now);
		b.node = mine + 1000 * k;
		refuse(0, &b, BL_R_SPOOFED);
	}
	cfg.beacon_ns = 100 * BEACON_NS;
	cfg.dead_after_ns = 1000 * BEACON_NS;
	set_cfg();
	node_says(&now, keep / 2, mine + 1000);
	assert_int_equal(node_of_port(0), mine);
	/* Another one begins anew. */
	node_says(&now, keep / 2, mine + 2000);
	assert_int_equal(node_of_port(0), mine);
	assert_int_equal((__u8)regs_now(0).lane[0].state, BL_REG_DEAD);
	node_says(&now, keep / 2, mine + 2000);
	assert_int_equal(node_of_port(0), mine + 2000);
	assert_int_equal((__u8)regs_now(0).lane[0].state, BL_REG_LIVE);
	/* What is another port's, whose host is heard, is not taken at all. */
	node_says(&now, 3 * keep, theirs);
	assert_int_equal(node_of_port(0), mine + 2000);
	/* After as long a silence, the next one is taken at once. */
	node_says(&now, keep, 0);
	node_says(&now, 1, mine);
	assert_int_equal(node_of_port(0), mine);
}

/* ---- lanes ---- */

static void lanes__as_configured(void **state)
{
	struct frame in, out;
	struct bl_sw_port p;
	struct desc d;
	int n;

	(void)state;
	for (n = 1; n <= BL_LANES_MAX; n++) {
		map_get(sk->maps.sw_ports, 3, &p);
		p.lanes_less_one = (__u8)(n - 1);
		map_put(sk->maps.sw_ports, 3, &p);
		d = data_frame(3, 1, T0, T0 - 1000);
		d.lanes = (__u8)(n + 1);
		if (n < BL_LANES_MAX)
			refuse(3, &d, BL_R_LANES_REFUSED);
		d = beacon_frame(3, T0 - 1000);
		d.lanes = (__u8)(n + 1);
		if (n < BL_LANES_MAX)
			refuse(3, &d, BL_R_LANES_REFUSED);
		d = data_frame(3, 1, T0, T0 - 1000);
		d.lanes = (__u8)n;
		d.lane = (__u8)(n - 1);
		build(&in, &d);
		run_on(3, &in, &out, XDP_REDIRECT);
		counts_take(sk->maps.counts, counted); /* the new lane may have joined */
	}
}

/* ---- quotas ---- */

/* Control frames beyond the burst are dropped; data, and other ports, are not; time makes room. */
static void quota__control(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000), c = d;
	struct bl_quotas q = { .control = T0 + BL_CONTROL_BURST * 1000ULL };

	(void)state;
	cfg.control_gap_ns = 1000;
	set_cfg();
	c.op = BL_OP_NAK;
	c.ts = 0;
	map_put(sk->maps.sw_quotas, 0, &q);
	passes(0, &c); /* exactly the burst */
	refuse(0, &c, BL_R_CONTROL_FLOOD);
	c.op = BL_OP_RECALL;
	refuse(0, &c, BL_R_CONTROL_FLOOD);
	passes(0, &d);
	c = data_frame(3, 1, T0, T0 - 1000);
	c.op = BL_OP_PROBE;
	c.ts = 0;
	passes(3, &c);
	c = data_frame(0, 1, T0, T0 - 1000);
	c.op = BL_OP_CREDIT;
	c.ts = 0;
	/* The clock is read before a frame is refused. */
	clock_at(sk->maps.clock, T0 + 999);
	step(0, &c, XDP_DROP, &c, WANT({ 0, BL_R_CONTROL_FLOOD }));
	clock_at(sk->maps.clock, T0 + 1000);
	passes(0, &c);
	/* A port of a switch has no quota. */
	map_put(sk->maps.sw_quotas, UPLINK, &q);
	q.control += 1000;
	step(UPLINK, &c, XDP_REDIRECT, (struct desc[]){ sent(c, T0 - 1000, T0 - 1000) },
	     WANT({ UPLINK, BL_R_FORWARDED }));
}

static void quota__beacons(void **state)
{
	struct bl_quotas q = { .beacons = T0 + BL_CONTROL_BURST * 1000ULL };
	struct desc d = beacon_frame(0, T0 - 1000);

	(void)state;
	cfg.control_gap_ns = 1000;
	set_cfg();
	map_put(sk->maps.sw_quotas, 0, &q);
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	d.b++;
	refuse(0, &d, BL_R_CONTROL_FLOOD);
}

/* ---- inputs that lag ---- */

/*
 * Lets @ns of bus time pass in beacon intervals, in which ports 1 to 3 send beacons with the
 * present time and port 0 one with @b; 0: none.
 */
static void pass_time(__u64 *now, __u64 ns, __u64 b)
{
	__u64 end = *now + ns;
	__u32 p;

	while (*now < end) {
		*now += BEACON_NS;
		clock_at(sk->maps.clock, *now);
		for (p = 1; p < NPORTS; p++)
			feed(p, *now);
		if (b)
			feed(0, b == ~0ULL ? *now : b);
	}
	state_take(&after);
	expect_trees(&after);
}

/* A port that talks but whose barrier stands still is put out, and joins again after being fresh.
 */
static void lag__standing_barrier(void **state)
{
	__u64 now = T0, stuck;

	(void)state;
	cfg.lag_max_ns = LAG_MAX;
	set_cfg();
	pass_time(&now, 5000000, ~0ULL);
	stuck = now;
	pass_time(&now, 2 * LAG_MAX - 2 * DEAD_NS, stuck);
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].out[1].b, stuck);
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 0);
	pass_time(&now, 4 * DEAD_NS, stuck);
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.lives[0].death, 1);
	assert_int_equal(after.lanes[0].out[1].b, now);
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 1);
	assert_int_equal(counted_reason(0, BL_R_EXCLUDED), 1);
	reason_seen[BL_R_LAGGING] = true;
	/* fresh for less than lag_max, then for as long */
	pass_time(&now, LAG_MAX - 2 * BEACON_NS, ~0ULL);
	assert_int_equal((__u8)after.regs[0].lane[0].state, BL_REG_DEAD);
	pass_time(&now, 4 * BEACON_NS, ~0ULL);
	assert_int_equal((__u8)after.regs[0].lane[0].state, BL_REG_LIVE);
}

/* A port with a good B whose C stands still is put out as well. */
static void lag__standing_commit(void **state)
{
	__u64 now = T0, end;
	struct frame in, out;
	struct desc d;
	__u32 p;

	(void)state;
	cfg.lag_max_ns = LAG_MAX;
	cfg.commit_lag_max_ns = LAG_MAX;
	set_cfg();
	for (end = now + 2 * LAG_MAX + 4 * DEAD_NS; now < end;) {
		now += BEACON_NS;
		clock_at(sk->maps.clock, now);
		for (p = 1; p < NPORTS; p++)
			feed(p, now);
		d = beacon_frame(0, now);
		d.c = T0;
		build(&in, &d);
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
		if (now < T0 + 2 * LAG_MAX - 2 * DEAD_NS)
			assert_int_equal(counted_reason(0, BL_R_LAGGING), 0);
	}
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 1);
	state_take(&after);
	assert_int_equal(after.lives[0].death, 1);
	assert_true(after.regs[0].lane[0].state & BL_REG_HELD);
}

/* The spine may lag four times as long as a host. */
static void lag__up_link(void **state)
{
	__u64 now = T0, stuck = T0;
	__u32 p;

	(void)state;
	cfg.lag_max_ns = LAG_MAX / 10;
	set_cfg();
	while (now < stuck + 8 * cfg.lag_max_ns + 3 * DEAD_NS) {
		now += BEACON_NS;
		clock_at(sk->maps.clock, now);
		for (p = 0; p < NPORTS; p++)
			feed(p, p == UPLINK ? stuck : now);
		if (now < stuck + 8 * cfg.lag_max_ns - 3 * DEAD_NS)
			assert_int_equal(counted_reason(UPLINK, BL_R_LAGGING), 0);
	}
	assert_int_equal(counted_reason(UPLINK, BL_R_LAGGING), 1);
}

#define ALONE_LAG (LAG_MAX / 10)

/* Port 0 is alone in lane 1 of two, and lag_max is ALONE_LAG. */
static int alone_setup(void **state)
{
	switch_setup(state);
	cfg.lanes = 2;
	cfg.lag_max_ns = ALONE_LAG;
	set_cfg();
	ports[0].home_lane = 1;
	map_put(sk->maps.sw_ports, 0, &ports[0]);
	return 0;
}

/*
 * Fails unless port 0 was excluded for lagging once, and what its lane gives to the outputs is at
 * most @behind ns older than what lane 0 gives, which no longer waits for anybody.
 */
static void expect_lane_follows(__u64 now, __u64 behind)
{
	__u32 set;

	assert_int_equal(after.regs[0].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 1);
	assert_int_equal(after.lives[0].death, 1);
	for (set = 0; set < 2; set++) {
		assert_int_equal(after.lanes[0].out[set].b, now);
		assert_in_range(after.lanes[1].out[set].b, now - behind, now);
	}
}

/*
 * An input that is alone in its lane has only the inputs of other lanes to be compared with. When
 * it is excluded, nobody is left to raise the barrier of the lane, and it still sends: receivers
 * hear the lane, and would wait for it for ever.
 */
static void lag__alone_in_its_lane(void **state)
{
	__u64 now = T0, stuck;

	(void)state;
	pass_time(&now, 5000000, ~0ULL);
	stuck = now;
	pass_time(&now, 2 * ALONE_LAG - 2 * DEAD_NS, stuck);
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[1].out[1].b, stuck);
	pass_time(&now, 4 * DEAD_NS, stuck);
	expect_lane_follows(now, DEAD_NS / 2);
	/* C waits for the port until the controller resumes it. */
	assert_int_equal(after.lanes[1].out[1].c, stuck);
	pass_time(&now, ALONE_LAG, stuck);
	expect_lane_follows(now, DEAD_NS / 2);
	/* It is fresh again for lag_max, and joins. */
	pass_time(&now, ALONE_LAG + 4 * BEACON_NS, ~0ULL);
	assert_int_equal((__u8)after.regs[0].lane[0].state, BL_REG_LIVE);
	pass_time(&now, DEAD_NS, ~0ULL);
	assert_int_equal(after.lanes[1].out[1].b, now);
}

/* Frames that read no clock by themselves do not keep the lane from being searched. */
static void lag__alone_without_beacons(void **state)
{
	__u64 now = T0, stuck, end;
	struct frame in, out;
	struct desc d;

	(void)state;
	pass_time(&now, 5000000, ~0ULL);
	stuck = now;
	d = data_frame(0, 1, stuck, stuck);
	build(&in, &d);
	/* The lane's clock is read four times per dead_after, and so its watch runs more slowly. */
	for (end = now + 10 * ALONE_LAG; now < end;) {
		pass_time(&now, BEACON_NS, 0);
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
	}
	state_take(&after);
	expect_lane_follows(now, DEAD_NS);
}

/* Where no input of any lane is fresh, this node is to blame, and no lane accuses another. */
static void lag__two_lanes_behind(void **state)
{
	__u64 now = T0, end, old;
	__u32 p;

	(void)state;
	pass_time(&now, 5000000, ~0ULL);
	for (end = now + 6 * ALONE_LAG; now < end;) {
		now += BEACON_NS;
		old = now - 3 * ALONE_LAG;
		clock_at(sk->maps.clock, now);
		for (p = 0; p < NPORTS; p++)
			if (p != UPLINK)
				feed(p, old);
	}
	state_take(&after);
	for (p = 0; p < NPORTS; p++) {
		if (p == UPLINK)
			continue;
		assert_int_equal(counted_reason(p, BL_R_LAGGING), 0);
		assert_int_equal(after.regs[p].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	}
}

/* A lane that nobody has been heard on for dead_after says nothing about the others. */
static void lag__other_lane_is_silent(void **state)
{
	__u64 now = T0, stuck, end;

	(void)state;
	pass_time(&now, 5000000, ~0ULL);
	stuck = now;
	for (end = now + 6 * ALONE_LAG; now < end;) {
		now += BEACON_NS;
		clock_at(sk->maps.clock, now);
		feed(0, stuck);
	}
	state_take(&after);
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 0);
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_LIVE | BL_REG_IN);
}

/* Without lag_max a port may lag for ever. */
static void lag__off(void **state)
{
	__u64 now = T0;

	(void)state;
	pass_time(&now, 4 * LAG_MAX, T0);
	assert_int_equal(counted_reason(0, BL_R_LAGGING), 0);
	assert_int_equal(after.lanes[0].out[1].b, T0);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_SOURCE, BY_SOURCE | BY_SW);
}

#define CASE(f) cmocka_unit_test_setup(f, guard_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(learn__pinned),
		CASE(learn__several_addresses),
		CASE(learn__beacons_and_tags),
		CASE(list__only_what_is_listed),
		CASE(any__not_checked),
		CASE(forget__another_port),
		CASE(learn__tokens_of_invented_sources),
		CASE(learn__fastpass_of_others),
		CASE(node__nobody),
		CASE(node__kept),
		CASE(lanes__as_configured),
		CASE(quota__control),
		CASE(quota__beacons),
		CASE(lag__standing_barrier),
		CASE(lag__standing_commit),
		CASE(lag__up_link),
		cmocka_unit_test_setup(lag__alone_in_its_lane, alone_setup),
		cmocka_unit_test_setup(lag__alone_without_beacons, alone_setup),
		cmocka_unit_test_setup(lag__two_lanes_behind, alone_setup),
		cmocka_unit_test_setup(lag__other_lane_is_silent, alone_setup),
		CASE(lag__off),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
