// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp with Linux's routing tables: addresses, TTL, MTU, unresolved neighbours, several
 * next hops. The routes are real ones, in the test's own namespace: port h has 10.0.h.1/24 and
 * fd00:0:0:h::1/64, its host .2 (::2).
 */
#include "tests/prog/switch/switch_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/switch/top_token_util.h"

#define GW_MAC_LAST 0x50 /* a router behind port 3 */

static int setup(void **state)
{
	int i;

	(void)state;
	net_setup(true);
	set_sysctl("/proc/sys/net/ipv4/ip_forward", "1");
	set_sysctl("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	for (i = 0; i < NPORTS; i++) {
		sh("ip addr add 10.0.%d.1/24 dev v%d", i, i);
		sh("ip -6 addr add fd00:0:0:%d::1/64 dev v%d nodad", i, i);
		sh("ip neigh replace 10.0.%d.2 lladdr 02:00:00:00:00:%02x dev v%d nud permanent", i,
		   i, i);
		sh("ip -6 neigh replace fd00:0:0:%d::2 lladdr 02:00:00:00:00:%02x dev v%d nud "
		   "permanent",
		   i, i, i);
	}
	sh("ip route add 10.9.0.0/16 via 10.0.3.9");
	sh("ip neigh replace 10.0.3.9 lladdr 02:00:00:00:00:50 dev v3 nud permanent");
	sh("ip -6 route add fd09::/16 via fd00:0:0:3::9");
	sh("ip -6 neigh replace fd00:0:0:3::9 lladdr 02:00:00:00:00:50 dev v3 nud permanent");
	sh("ip route add 10.8.0.0/16 via 10.0.1.2 mtu lock 1000");
	sh("ip -6 route add fd08::/16 via fd00:0:0:1::2 mtu lock 1300");
	sh("ip route add blackhole 10.7.0.0/16");
	sh("ip route add prohibit 10.6.0.0/16");
	sh("ip -6 route add blackhole fd07::/16");
	return 0;
}

static int l3_setup(void **state)
{
	switch_setup(state);
	cfg.forward = BL_FWD_L3;
	set_cfg();
	return 0;
}

static struct desc frame_of(bool v6, __u32 in, __u32 out, __u64 ts, __u64 b)
{
	struct desc d = v6 ? data_frame6(in, out, ts, b) : data_frame(in, out, ts, b);
	const __u8 port_mac[6] = { 2, 0, 0, 0, 0xff, (__u8)in };

	memcpy(d.dst, port_mac, 6);
	return d;
}

/*
 * Returns @d as a router forwards it: to the next hop's address, from its port's own, with the TTL
 * lowered by one, and with this switch's barriers.
 */
static struct desc routed(struct desc d, __u32 out, __u8 mac_last, __u64 b)
{
	const __u8 src[6] = { 2, 0, 0, 0, 0xff, (__u8)out };

	d = sent(d, b, b);
	memcpy(d.src, src, 6);
	host_mac(d.dst, mac_last);
	d.ttl--;
	return d;
}

static void l3__every_pair_of_ports(void **state)
{
	const __u64 b = T0 - 1000;
	__u32 in, out, v;

	(void)state;
	all_live(b);
	for (in = 0; in < NPORTS; in++) {
		for (out = 0; out < NPORTS; out++) {
			for (v = 0; v < 8; v++) {
				struct desc d = frame_of(v & 1, in, out, T0, b);

				d.tags = v >> 1 & 1;
				d.csum = v >> 2 & 1;
				if (in == out) {
					refuse(in, &d, BL_R_LOOPED);
					continue;
				}
				step(in, &d, XDP_REDIRECT,
				     (struct desc[]){ routed(d, out, (__u8)out, b) },
				     WANT({ in, BL_R_FORWARDED }));
				assert_int_equal(after.carried[out].lane[0].b, b);
			}
		}
	}
}

static void l3__by_gateway(void **state)
{
	struct desc d = frame_of(false, 0, 3, T0, T0 - 1000);

	(void)state;
	all_live(T0 - 1000);
	d.daddr[13] = 9;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ routed(d, 3, GW_MAC_LAST, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	d = frame_of(true, 0, 3, T0, T0 - 1000);
	d.daddr[1] = 9;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ routed(d, 3, GW_MAC_LAST, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
}

static void l3__ttl(void **state)
{
	__u32 v;
	int ttl;

	(void)state;
	all_live(T0 - 1000);
	for (v = 0; v < 4; v++) {
		for (ttl = 0; ttl <= 255; ttl += ttl < 4 ? 1 : 251) {
			struct desc d = frame_of(v & 1, 0, 1, T0, T0 - 1000);

			d.tags = v >> 1;
			d.ttl = (__u8)ttl;
			if (ttl <= 1)
				refuse(0, &d, BL_R_TTL);
			else
				step(0, &d, XDP_REDIRECT,
				     (struct desc[]){ routed(d, 1, 1, T0 - 1000) },
				     WANT({ 0, BL_R_FORWARDED }));
		}
	}
}

/*
 * The TTL is lowered through every carry of the IP checksum: ip_id is chosen so that the checksum
 * starts at the edges.
 */
static void l3__ip_checksum(void **state)
{
	static const __u16 edges[] = { 0x0000, 0x0001, 0x00ff, 0x0100, 0xfdff, 0xfe00,
				       0xfefe, 0xfeff, 0xff00, 0xff01, 0xfffe };
	__u32 i, id, found = 0;

	(void)state;
	all_live(T0 - 1000);
	for (i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct desc d = frame_of(false, 0, 1, T0, T0 - 1000);

		for (id = 0; id < 65536; id++) {
			struct frame f;

			d.ip_id = (__u16)id;
			f.n = 0;
			put_ip(&f, &d, 8 + sizeof(struct bl_hdr) + d.body);
			if ((f.p[10] << 8 | f.p[11]) == edges[i])
				break;
		}
		if (id == 65536)
			continue;
		found++;
		step(0, &d, XDP_REDIRECT, (struct desc[]){ routed(d, 1, 1, T0 - 1000) },
		     WANT({ 0, BL_R_FORWARDED }));
	}
	/* One of the edges may be the value that a checksum cannot have. */
	assert_true(found >= sizeof(edges) / sizeof(*edges) - 1);
}

static void l3__no_route(void **state)
{
	static const __u8 v4[] = { 7, 6, 5 }; /* blackhole, prohibit, nothing at all */
	struct desc d = frame_of(false, 0, 1, T0, T0);
	__u32 i;

	(void)state;
	all_live(T0 - 1000);
	for (i = 0; i < sizeof(v4); i++) {
		d.daddr[13] = v4[i];
		refuse(0, &d, BL_R_NO_ROUTE);
	}
	/* The router's own address: ordered frames are for hosts only. */
	d = frame_of(false, 0, 1, T0, T0);
	d.daddr[15] = 1;
	refuse(0, &d, BL_R_NO_ROUTE);
	d = frame_of(true, 0, 1, T0, T0);
	d.daddr[15] = 1;
	refuse(0, &d, BL_R_NO_ROUTE);
	d.daddr[1] = 7;
	refuse(0, &d, BL_R_NO_ROUTE);
}

static void l3__no_forwarding(void **state)
{
	struct desc d = frame_of(false, 0, 1, T0, T0);

	(void)state;
	all_live(T0 - 1000);
	set_sysctl("/proc/sys/net/ipv4/conf/v0/forwarding", "0");
	refuse(0, &d, BL_R_NO_ROUTE);
	set_sysctl("/proc/sys/net/ipv4/conf/v0/forwarding", "1");
}

/*
 * The neighbour is not resolved: Linux resolves it and sends the frame later, without this program.
 * So the frame is passed up unchanged except for barriers that are so old that they promise
 * nothing, and its own barriers raise the input's register.
 */
static void l3__neighbour_unknown(void **state)
{
	const __u64 b = T0 - 1000;
	__u32 v;

	(void)state;
	all_live(b);
	for (v = 0; v < 8; v++) {
		struct desc d = frame_of(v & 1, 0, 1, T0, b + 1 + v), want;

		d.tags = v >> 1 & 1;
		d.csum = v >> 2;
		d.daddr[15] = 200;
		want = sent(d, T0 - BL_TS_OLD, T0 - BL_TS_OLD);
		step(0, &d, XDP_PASS, &want, WANT({ 0, BL_R_TO_KERNEL }));
		assert_int_equal(after.regs[0].lane[0].b, b + 1 + v);
		assert_int_equal(after.carried[1].lane[0].b, 0);
	}
}

/* The MTU of the output port and that of a route, for both families. */
static void l3__mtu(void **state)
{
	struct desc d;
	__u32 v;

	(void)state;
	all_live(T0 - 1000);
	for (v = 0; v < 4; v++) {
		__u32 room = v & 2 ? (v & 1 ? 1300 : 1000) : MTU;

		d = frame_of(v & 1, 0, 1, T0, T0 - 1000);
		if (v & 2)
			d.daddr[d.v6 ? 1 : 13] = 8;
		d.body = room - (d.v6 ? 40 : 20) - 8 - 24;
		step(0, &d, XDP_REDIRECT, (struct desc[]){ routed(d, 1, 1, T0 - 1000) },
		     WANT({ 0, BL_R_FORWARDED }));
		d.body++;
		refuse(0, &d, BL_R_TOO_BIG);
	}
}

/* The route leads to an interface that is not a port of the switch. */
static void l3__not_a_port(void **state)
{
	struct desc d = frame_of(false, 0, 1, T0, T0);
	__u32 none = 0;

	(void)state;
	all_live(T0 - 1000);
	map_put(sk->maps.sw_ifindex, net.ifindex[1], &none);
	refuse(0, &d, BL_R_UNKNOWN_PORT);
}

/*
 * Several next hops: the choice depends on addresses and UDP ports, is the same for every frame of
 * a flow, and uses all next hops.
 */
static void l3__several_next_hops(void **state)
{
	struct desc d = frame_of(false, 0, 1, T0, T0 - 1000);
	struct frame in, out, again;
	__u32 hop, used[NPORTS], k, by;

	(void)state;
	all_live(T0 - 1000);
	set_sysctl("/proc/sys/net/ipv4/fib_multipath_hash_policy", "1");
	sh("ip route add 10.5.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.3.2");
	d.daddr[13] = 5;
	/* The source port alone, then the destination port alone: each is part of the choice. */
	for (by = 0; by < 2; by++) {
		memset(used, 0, sizeof(used));
		for (k = 0; k < 64; k++) {
			*(by ? &d.dport : &d.sport) = (__u16)(BL_PORT_BASE + k);
			build(&in, &d);
			run_on(0, &in, &out, XDP_REDIRECT);
			hop = out.p[5];
			assert_true(hop == 1 || hop == 3);
			used[hop]++;
			run_on(0, &in, &again, XDP_REDIRECT);
			same_frame(&again, &out);
			build(&in, (struct desc[]){ routed(d, hop, (__u8)hop, T0 - 1000) });
			same_frame(&out, &in);
		}
		assert_true(used[1] > 8 && used[3] > 8);
	}
	sh("ip route del 10.5.0.0/16");
}

/* ---- frames that are not barline's, while admission is on ---- */

static struct desc plain_of(bool v6, __u32 in, __u32 out)
{
	struct desc d = frame_of(v6, in, out, T0, T0);

	d.dport = 53;
	return d;
}

/* Returns @d as a router forwards it if it does not know the payload. */
static struct desc plain_routed(struct desc d, __u32 out)
{
	memcpy(d.src, (__u8[]){ 2, 0, 0, 0, 0xff, (__u8)out }, 6);
	host_mac(d.dst, out);
	d.ttl--;
	return d;
}

static void plain__every_pair_of_ports(void **state)
{
	static const __u8 protos[] = { BL_UDP, 6, 1, 132 };
	struct bpf_devmap_val tx = { .ifindex = net.ifindex[3] };
	__u32 in, out, v, k;
	__u64 none = 0;

	(void)state;
	pace_setup(sk->maps.port_due, 10, BL_PORT_QUEUE(NPORTS, 0));
	map_put(sk->maps.port_busy, 3, &none);
	map_put(sk->maps.port_tx, 3, &tx);
	ports[3].metered = 1;
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	cfg.admission = 1;
	set_cfg();
	for (in = 0; in < NPORTS; in++) {
		for (out = 0; out < NPORTS; out++) {
			for (v = 0; v < 16; v++) {
				struct desc d = plain_of(v & 1, in, out), r;
				struct frame f, got, want;

				d.tags = v >> 1 & 1;
				r = plain_routed(d, out);
				build(&f, &d);
				build(&want, &r);
				for (k = 0; k < 2; k++) {
					/*
					 * The frame of another protocol than UDP: its IP checksum
					 * is computed here.
					 */
					struct frame *g = k ? &want : &f;
					__u32 at = ip_off(&d), sum;

					g->p[at + (v & 1 ? 6 : 9)] = protos[v >> 2];
					if (v & 1)
						continue;
					g->p[at + 10] = g->p[at + 11] = 0;
					sum = fold(sum16(0, g->p + at, 20));
					g->p[at + 10] = (__u8)(sum >> 8);
					g->p[at + 11] = (__u8)sum;
				}
				if (in == out) {
					run_on(in, &f, &got, XDP_PASS);
					same_frame(&got, &f);
					counts_moved(sk->maps.counts, counted, 1,
						     WANT({ in, BL_R_NOT_OURS }));
				} else if (out == 3) {
					run_on(in, &f, &got, XDP_DROP);
					counts_moved(sk->maps.counts, counted, 1,
						     WANT({ in, BL_R_QUEUED }));
					assert_int_equal(turn(sk->progs.bl_port_pace, &got),
							 XDP_REDIRECT);
					counts_moved(sk->maps.counts, counted, 1,
						     WANT({ 3, BL_R_PACED }));
					same_frame(&got, &want);
				} else {
					run_on(in, &f, &got, XDP_REDIRECT);
					same_frame(&got, &want);
					counts_moved(sk->maps.counts, counted, 1,
						     WANT({ in, BL_R_PASSED_ON }));
				}
			}
		}
	}
	assert_int_equal(balanced(BL_PORT_QUEUE(NPORTS, 0)), 0);
}

/* ---- Fastpass's paths ---- */

static void path_setup(void)
{
	cfg.admission = 1;
	cfg.paths = 2;
	cfg.path_port[0] = 3;
	cfg.path_port[1] = 1;
	set_cfg();
	ports[1].role = ports[3].role = BL_PORT_UP;
	ports[2].role = BL_PORT_HOST;
	map_put(sk->maps.sw_ports, 2, &ports[2]);
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	sh("ip route add 10.5.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.3.2");
	sh("ip -6 route add fd05::/16 nexthop via fd00:0:0:1::2 nexthop via fd00:0:0:3::2");
}

static int path_teardown(void **state)
{
	(void)state;
	sh("ip route del 10.5.0.0/16");
	sh("ip -6 route del fd05::/16");
	return 0;
}

/* Returns a frame of bl0 for a host behind the up ports that names path @path - 1; 0: none. */
static struct desc frame_with_path(bool v6, __u32 in, __u32 path, __u16 sport)
{
	struct desc d = plain_of(v6, in, 1);

	d.daddr[v6 ? 1 : 13] = 5;
	d.src[0] = (__u8)(2 | path << 4);
	d.sport = sport;
	return d;
}

static void path__obeyed(void **state)
{
	__u32 v, path, k;

	(void)state;
	path_setup();
	for (v = 0; v < 4; v++)
		for (path = 1; path <= 2; path++)
			for (k = 0; k < 16; k++) { /* 16 flows, whatever their hash */
				struct desc d = frame_with_path(v & 1, 0, path, (__u16)(5000 + k)),
					    r;
				__u32 out = cfg.path_port[path - 1];
				struct frame f, got, want;

				d.tags = v >> 1;
				r = plain_routed(d, out);
				r.src[0] |= path << 4; /* The next switch reads it as well. */
				build(&f, &d);
				build(&want, &r);
				run_on(0, &f, &got, XDP_REDIRECT);
				same_frame(&got, &want);
				counts_moved(sk->maps.counts, counted, 1,
					     WANT({ 0, BL_R_PASSED_ON }, { 0, BL_R_PATH_TAKEN }));
			}
}

/*
 * Frames without a path, with a path that does not exist, from an up port, or to a host below, and
 * a switch whose paths are turned off: routed as if there were no path. The path stays in the frame
 * if path_keep is set.
 */
static void expect_path_ignored(__u32 keep)
{
	static const struct {
		__u32 in, path;
		bool below, off;
	} t[] = { { 0, 0, false, false }, { 0, 3, false, false }, { 0, 15, false, false },
		  { 3, 2, false, false }, { 0, 1, true, false },  { 0, 2, false, true } };
	__u32 i, v, used[NPORTS], k;

	cfg.path_keep = keep;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		cfg.paths = t[i].off ? 0 : 2;
		set_cfg();
		memset(used, 0, sizeof(used));
		for (v = 0; v < 2; v++)
			for (k = 0; k < 64; k++) {
				struct desc d = frame_with_path(v, t[i].in, t[i].path,
								(__u16)(5000 + k)),
					    r;
				struct frame f, got, want;

				if (t[i].below)
					host_addr(d.daddr, v, 2);
				build(&f, &d);
				/* The hash may send a frame from port 3 back there. */
				if (run_xdp(sk->progs.bl_switch_xdp, net.ifindex[t[i].in], &f,
					    &got) == XDP_PASS) {
					assert_int_equal(t[i].in, 3);
					continue;
				}
				r = plain_routed(d, got.p[5]);
				r.src[0] |= keep ? t[i].path << 4 : 0;
				build(&want, &r);
				same_frame(&got, &want);
				used[got.p[5]]++;
			}
		counts_take(sk->maps.counts, counted);
		if (t[i].below)
			assert_int_equal(used[2], 128);
		else
			assert_true(used[1] > 8 && (t[i].in == 3 || used[3] > 8));
	}
}

static void path__not_meant(void **state)
{
	(void)state;
	path_setup();
	expect_path_ignored(0);
	expect_path_ignored(1);
	cfg.path_keep = 0;
	set_cfg();
}

static void path__lost(void **state)
{
	struct desc d = frame_with_path(false, 0, 1, 5000);
	struct frame f, got, want;

	(void)state;
	path_setup();
	sh("ip route replace 10.5.0.0/16 nexthop via 10.0.1.2"); /* The link of path 0 is gone. */
	build(&f, &d);
	build(&want, (struct desc[]){ plain_routed(d, 1) });
	run_on(0, &f, &got, XDP_REDIRECT);
	same_frame(&got, &want);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ 0, BL_R_PASSED_ON }, { 0, BL_R_PATH_LOST }));
}

/* ---- TOP: paths, and tokens that are routed ---- */

/* Returns a frame of host 0 for a host behind the up ports. */
static struct desc frame_going_up(bool v6, __u16 sport, __u16 dport)
{
	struct desc d = plain_of(v6, 0, 1);

	d.daddr[v6 ? 1 : 13] = 5;
	d.sport = sport;
	d.dport = dport;
	return d;
}

/* Runs a frame that arrives on port @in and must be sent on. Returns the port that it leaves by. */
static __u32 output_port_of(const struct frame *f, __u32 in, enum bl_reason why)
{
	struct frame got;

	run_on(in, f, &got, XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ in, why }, { in, BL_R_PATH_TAKEN }));
	return got.p[5]; /* The last byte of a neighbour's address is the port. */
}

/*
 * The data of a flow goes up by the path that is computed for the opposite direction, so another
 * switch with the same up ports in the same order uses that path for the opposite data. A frame of
 * TOP whose source port is that hash takes the same path. Both paths are used.
 */
static void path__symmetric(void **state)
{
	__u32 v, k, used[NPORTS] = { 0 };

	(void)state;
	path_setup();
	cfg.path_by = BL_PATH_BY_FLOW;
	set_cfg();
	token_setup(
		&(struct bl_token_cfg){ .on = 1, .mode = BL_TOKEN_DROP, .frames = 8, .expiry = 8 });
	for (v = 0; v < 2; v++)
		for (k = 0; k < 64; k++) {
			struct desc d = frame_going_up(v, (__u16)(40000 + k), 5001);
			struct top_desc t = { .d = frame_going_up(v, 0, 0),
					      .opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN),
					      .cls = 2 };
			struct bl_token_port all = { .ns_q20 = 0 };
			__u64 a = v ? bl_top_addr6(d.saddr) : bl_top_addr4(bl_raw32(d.saddr + 12)),
			      b = v ? bl_top_addr6(d.daddr) : bl_top_addr4(bl_raw32(d.daddr + 12));
			struct frame f;
			__u32 out;

			d.tags = k & 1;
			build(&f, &d);
			out = output_port_of(&f, 0, BL_R_PASSED_ON);
			assert_int_equal(
				out, cfg.path_port[bl_top_path(
					     bl_top_flow_port(b, a, 5001, (__u16)(40000 + k)), 2)]);
			used[out]++;
			/* The token carries the hash of the flow as its source port. */
			map_put(sk->maps.token_ports, 0, &all);
			map_put(sk->maps.token_ports, out, &all);
			t.d.tags = d.tags;
			t.d.sport = bl_top_flow_port(a, b, d.sport, d.dport);
			t.d.dport = BL_TOP_PORT;
			build_top(&f, &t);
			assert_int_equal(output_port_of(&f, 0, BL_R_TOKEN_PASSED), out);
		}
	assert_true(used[1] > 40 && used[3] > 40);
}

static void path__in_turn(void **state)
{
	struct desc d = frame_going_up(false, 40000, 5001);
	struct frame f;
	__u32 k;

	(void)state;
	path_setup();
	cfg.path_by = BL_PATH_BY_TURN;
	set_cfg();
	token_setup(
		&(struct bl_token_cfg){ .on = 1, .mode = BL_TOKEN_DROP, .frames = 8, .expiry = 8 });
	build(&f, &d);
	for (k = 0; k < 10; k++)
		assert_int_equal(output_port_of(&f, 0, BL_R_PASSED_ON), cfg.path_port[k % 2]);
}

/*
 * The bit that marks unscheduled frames is passed on to the next switch in the router's own
 * address, with and without paths, but not to hosts. Frames without the bit do not get it.
 */
static void unsched__routed(void **state)
{
	__u32 v, early, below;

	(void)state;
	path_setup();
	ports[2].role = BL_PORT_HOST;
	map_put(sk->maps.sw_ports, 2, &ports[2]);
	token_setup(&(struct bl_token_cfg){
		.on = 1, .mode = BL_TOKEN_DROP, .unscheduled = 1, .frames = 8, .expiry = 8 });
	for (v = 0; v < 4; v++)
		for (early = 0; early < 2; early++)
			for (below = 0; below < 2; below++) {
				struct desc d = frame_going_up(v & 1, 40000, 5001), r;
				struct frame f, got, want;

				cfg.paths = v & 2;
				cfg.path_by = BL_PATH_BY_FLOW;
				set_cfg();
				if (below)
					host_addr(d.daddr, v & 1, 2);
				d.src[0] |= early ? BL_EARLY_MAC0 : 0;
				build(&f, &d);
				run_on(0, &f, &got, XDP_REDIRECT);
				r = plain_routed(d, got.p[5]);
				r.src[0] = (__u8)((r.src[0] & ~BL_EARLY_MAC0) |
						  (early && !below ? BL_EARLY_MAC0 : 0));
				build(&want, &r);
				same_frame(&got, &want);
				assert_int_equal(got.p[5] == 2, below);
			}
	counts_take(sk->maps.counts, counted);
}

ODD(ttl_1, d->ttl = 1; build(f, d);)
ODD(to_another, d->dst[0] ^= 4; build(f, d);)
ODD(to_all, memset(d->dst, 0xff, 6); build(f, d);)
ODD(to_the_router, d->daddr[15] = 1; build(f, d);)
ODD(no_route, d->daddr[d->v6 ? 0 : 12] = d->v6 ? 0xfc : 172; build(f, d);)
ODD(no_neighbour, d->daddr[15] = 77; build(f, d);)
ODD(too_big, d->body = MTU; build(f, d);)
ODD(ip_options, build(f, d); BYTE(14) = 0x46;)
ODD(not_ip, build(f, d); BYTE(12) = 0x86; BYTE(13) = 0xdc;)
ODD(hop_by_hop, build(f, d); BYTE(14 + 6) = 0;)
ODD(neighbour_found, build(f, d); BYTE(14 + 6) = 58; BYTE(14 + 40) = 136;)
ODD(from_link_local, d->saddr[0] = 0xfe; d->saddr[1] = 0xbf; build(f, d);)

/* Frames that a router answers, refuses or receives itself are left to the kernel, unchanged. */
static void plain__left_to_the_kernel(void **state)
{
	static const struct odd both[] = { ODD_ROW(ttl_1, 0),    ODD_ROW(to_another, 0),
					   ODD_ROW(to_all, 0),   ODD_ROW(to_the_router, 0),
					   ODD_ROW(no_route, 0), ODD_ROW(no_neighbour, 0),
					   ODD_ROW(too_big, 0),  ODD_ROW(not_ip, 0),
					   ODD_ROW(arp, 0) };
	static const struct odd v4[] = { ODD_ROW(ip_options, 0) };
	static const struct odd v6[] = { ODD_ROW(hop_by_hop, 0), ODD_ROW(neighbour_found, 0),
					 ODD_ROW(from_link_local, 0) };
	static const struct {
		const struct odd *rows;
		size_t n;
		bool v6;
	} t[] = { { both, 9, false }, { both, 9, true }, { v4, 1, false }, { v6, 3, true } };
	size_t i, k;

	(void)state;
	cfg.admission = 1;
	set_cfg();
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct desc good = plain_of(t[i].v6, 0, 1);
		struct frame f, got;

		build(&f, &good);
		run_on(0, &f, &got, XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_PASSED_ON }));
		for (k = 0; k < t[i].n; k++) {
			struct desc d = good;

			doing = t[i].rows[k].what;
			t[i].rows[k].make(&f, &d);
			run_on(0, &f, &got, XDP_PASS);
			same_frame(&got, &f);
			counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_NOT_OURS }));
		}
		doing = "";
	}
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_L3, BY_SW | BY_PORT | BY_TOKEN);
}

#define CASE(f) cmocka_unit_test_setup(f, l3_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(l3__every_pair_of_ports),
		CASE(l3__by_gateway),
		CASE(l3__ttl),
		CASE(l3__ip_checksum),
		CASE(l3__no_route),
		CASE(l3__no_forwarding),
		CASE(l3__neighbour_unknown),
		CASE(l3__mtu),
		CASE(l3__not_a_port),
		CASE(l3__several_next_hops),
		CASE(plain__every_pair_of_ports),
		CASE(plain__left_to_the_kernel),
		cmocka_unit_test_setup_teardown(path__obeyed, l3_setup, path_teardown),
		cmocka_unit_test_setup_teardown(path__not_meant, l3_setup, path_teardown),
		cmocka_unit_test_setup_teardown(path__lost, l3_setup, path_teardown),
		cmocka_unit_test_setup_teardown(path__symmetric, l3_setup, path_teardown),
		cmocka_unit_test_setup_teardown(path__in_turn, l3_setup, path_teardown),
		cmocka_unit_test_setup_teardown(unsched__routed, l3_setup, path_teardown),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
