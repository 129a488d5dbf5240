// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * switch_cost [--json FILE] [--runs N] [--repeat N] - ns per frame of the switch program, beside a
 * bare program that does only what any switch must do.
 *
 * Both are run by bpf_prog_test_run on the same frame in turns (run by run, so that a change of the
 * machine's speed affects both), and timed by this thread's CPU time. The medians over the runs are
 * reported. bench_switch.bpf.c describes what the wrappers do to the frame between two runs.
 *
 * There is one set of inputs (a rack's only switch), except in rows with an up-link: they have two,
 * and a host's frame raises its leaf in two trees. Ports take turns, so that each rise climbs to
 * the root, except in rows with random ports. All hosts send unreliably, so that each C is its B,
 * except in rows with C behind B, where a rise climbs a tree of each.
 */
#define COST_NAME "switch_cost"
#include "cost.h"
#include <net/if.h>
#include "core/order/barrier_core.h"
#include "core/source_core.h"
#include "core/clock_core.h"
#include "core/wire_core.h"
#include "maps/auth_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_token_abi.h"
#include "bench_switch.skel.h"

#define STEP_NS   100ULL
#define T0        (6000ULL << BL_TS_BITS)
#define BEHIND_NS 50000ULL
/*
 * The clock's bound: the barriers of all runs stay below it. The program in a rack reads its clock
 * once per bound, every some hundred frames.
 */
#define HEADROOM    (1ULL << 40)
#define L3_PORTS    4
#define NEVER       1000000000000ULL /* a beacon interval so long that no tick passes */
#define RELAY_EACH  2ULL             /* so short that each rise passes a tick */
#define RSV_PORTS   64
#define TOKEN_PORTS 64
#define RSV_BYTES   (2 * BL_RSV_SLOT_BYTES)
/* 10 Gbit/s: at 6 million RSVs a second of 64 ports, a quarter of each link is promised. */
#define RSV_NS_Q20     (8 * (1 << 20) / 10)
#define LIMIT_ADDED_NS 40.0
#define LIMIT_RSV_NS   100.0
#define LIMIT_TOKEN_NS 60.0
#define LIMIT_AUTH_NS  5.0
#define LIMIT_GUARD_NS 3.0
#define LIMIT_GROWTH   1.2

static struct bench_switch *sk; /* the object that is measured */

/* Runs a shell command, or ends the program. */
static void run_command(const char *cmd)
{
	if (system(cmd)) {
		fprintf(stderr, "switch_cost: this command failed: %s; is iproute2 installed?\n",
			cmd);
		exit(1);
	}
}

/* Writes 1 to the sysctl at @path, or ends the program. */
static void enable_sysctl(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs("1", f) < 0 || fclose(f))
		die_with_error(path, errno);
}

/*
 * Makes a network namespace. Frames arrive on lo, the only device whose receive queue test_run can
 * use without an XDP program on it; routes lead to veth ports.
 */
static void make_network(void)
{
	char cmd[512];
	int i;

	if (unshare(CLONE_NEWNET))
		die_with_error("cannot make a network namespace", errno);
	run_command("ip link set lo up");
	enable_sysctl("/proc/sys/net/ipv4/conf/all/forwarding");
	enable_sysctl("/proc/sys/net/ipv4/conf/lo/forwarding");
	for (i = 0; i < L3_PORTS; i += 2) {
		snprintf(cmd, sizeof(cmd),
			 "ip link add v%d type veth peer name v%d && ip link set v%d up && ip link "
			 "set v%d up",
			 i, i + 1, i, i + 1);
		run_command(cmd);
	}
	for (i = 0; i < L3_PORTS; i++) {
		snprintf(cmd, sizeof(cmd),
			 "ip addr add 10.0.%d.1/24 dev v%d && ip neigh replace 10.0.%d.2 lladdr "
			 "02:00:00:00:00:%02x dev v%d nud permanent",
			 i, i, i, i, i);
		run_command(cmd);
	}
}

static bool guard = true; /* ports with hosts have a source guard */

/*
 * Makes a switch of @ports ports that has heard nothing yet.
 * @uplink: the last port is an up-link, with a set of its own
 * @forward: static table or routing tables
 * @beacon_ns: beacon interval
 */
static void configure_switch(__u32 ports, bool uplink, enum bl_fwd forward, __u64 beacon_ns)
{
	struct bl_clock_seg s = { .bus_ns = T0 };
	struct bl_clock clock = { .flags = BL_CLOCK_VALID,
				  .void_after_ns = ~0ULL,
				  .bound_ns = HEADROOM };
	struct bl_sw_cfg cfg = { .node_id = 0x5a5a5a5a,
				 .nports = ports,
				 .lanes = 1,
				 .forward = forward,
				 .port_base = BL_PORT_BASE,
				 .port_count = BL_PORT_COUNT,
				 .tree_leaves = ports,
				 .beacon_ns = beacon_ns,
				 .dead_after_ns = 1000000000000ULL,
				 .lag_max_ns = 10000000000000ULL,
				 .control_gap_ns = 1,
				 .single_writer = 1 };
	/* the source of make_data() and make_beacon() */
	struct bl_sources sources = {
		.mode = BL_SOURCE_LIST, .nmac = 1, .nip = 1, .ip[0] = bl_ip4(BL_BE32(0x0a000002))
	};
	static const struct bl_port_regs no_regs;
	static const struct bl_carried no_carried;
	static const struct bl_sw_lane no_lane;
	static struct bl_tree none;
	struct timespec now;
	__u32 i, lo = if_nametoindex("lo"), one = 1;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s.mono_ns = clock.as_of_ns = (__u64)now.tv_sec * 1000000000ULL + (__u64)now.tv_nsec;
	clock.seg[0] = clock.seg[1] = s;
	put_entry(sk->maps.clock, 0, &clock);
	put_entry(sk->maps.sw_cfg, 0, &cfg);
	bl_tree_clear(&none);
	for (i = 0; i < BL_LANES_MAX * BL_SETS_MAX; i++)
		put_entry(sk->maps.sw_trees, i, &none);
	for (i = 0; i < BL_LANES_MAX; i++)
		put_entry(sk->maps.sw_lanes, i, &no_lane);
	put_entry(sk->maps.sw_ifindex, lo, &one);
	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		struct bl_sw_port p = { .ifindex = i < ports ? i + 1 : 0,
					.role = BL_PORT_HOST,
					.guarded = guard,
					.source_ip = sources.ip[0],
					.in_sets = uplink ? 3 : 1,
					.out_set = uplink,
					.mtu = 1500 };
		struct bpf_devmap_val dev = { .ifindex = lo };

		if (uplink && i == ports - 1) {
			p.role = BL_PORT_UP;
			p.guarded = 0;
			p.in_sets = 2;
			p.out_set = 0;
		}
		put_entry(sk->maps.sw_ports, i, &p);
		put_entry(sk->maps.sw_regs, i, &no_regs);
		put_entry(sk->maps.sw_sources, i, &sources);
		put_entry(sk->maps.sw_carried, i, &no_carried);
		if (i < ports)
			put_entry(sk->maps.sw_tx, i, &dev);
	}
	sk->bss->bench_b = T0;
	sk->bss->bench_step_ns = STEP_NS;
	sk->bss->bench_ports = ports;
	sk->bss->bench_turn = 0;
	sk->bss->bench_random = 0;
	sk->bss->bench_routes = forward == BL_FWD_L3;
	sk->bss->bench_behind_ns = 0;
}

/* Fills the static table, and the ports of the routes' interfaces. */
static void fill_tables(void)
{
	struct bl_fdb_bucket table[BL_FDB_BUCKETS] = { 0 };
	__u32 i, w;

	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		const __u8 mac[6] = { 2, 0, 0, 0, 0, (__u8)i };
		struct bl_fdb_bucket *b = &table[bl_fdb_hash(bl_mac48(mac))];

		for (w = 0; w < BL_FDB_WAYS - 1 && b->way[w].mac; w++)
			;
		b->way[w].mac = bl_mac48(mac);
		b->way[w].port = i;
	}
	for (i = 0; i < BL_FDB_BUCKETS; i++)
		put_entry(sk->maps.sw_fdb, i, &table[i]);
	for (i = 0; i < L3_PORTS; i++) {
		char name[8];
		__u32 port = i + 1;

		snprintf(name, sizeof(name), "v%u", i);
		put_entry(sk->maps.sw_ifindex, if_nametoindex(name), &port);
	}
}

struct frame {
	__u8 p[256];
	__u32 n;
};

/* A DATA frame from 10.0.0.2 to 10.0.1.2 (port 1) with 64 bytes of body. */
static void make_data(struct frame *f)
{
	struct ethhdr *eth = (void *)f->p;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct bl_hdr *h = (void *)(udp + 1);
	const __u8 dst[6] = { 2, 0, 0, 0, 0, 1 };
	__u32 sum = 0, i;

	memset(f, 0, sizeof(*f));
	f->n = sizeof(*eth) + sizeof(*ip) + sizeof(*udp) + sizeof(*h) + 64;
	memcpy(eth->h_dest, dst, 6);
	eth->h_proto = BL_BE16(BL_ETH_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = BL_BE16(f->n - sizeof(*eth));
	ip->ttl = 64;
	ip->protocol = BL_UDP;
	ip->saddr = BL_BE32(0x0a000002);
	ip->daddr = BL_BE32(0x0a000102);
	for (i = 0; i < 10; i++)
		sum += ((__u16 *)ip)[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = (__u16) ~(sum + (sum >> 16));
	udp->source = BL_BE16(BL_PORT_BASE + 1);
	udp->dest = BL_BE16(BL_PORT_BASE + 2);
	udp->len = BL_BE16(sizeof(*udp) + sizeof(*h) + 64);
	h->opcode = BL_OPCODE_BYTE(BL_OP_DATA);
	h->flags = BL_HOP_HOST;
	sk->bss->bench_ttl = ip->ttl;
	sk->bss->bench_ip_check = ip->check;
}

/*
 * A beacon; the wrappers fill in its times and its node. @says: with a link body, as a neighbour's
 * are once per millisecond
 */
static void make_beacon(struct frame *f, bool says)
{
	struct ethhdr *eth = (void *)f->p;
	struct bl_hdr *h = (void *)(eth + 1);
	const __u8 dst[6] = BL_BEACON_MAC;
	struct bl_link_body *body;

	memset(f, 0, sizeof(*f));
	f->n = BL_BEACON_LEN;
	memcpy(eth->h_dest, dst, 6);
	eth->h_proto = BL_BE16(BL_ETHERTYPE);
	h->opcode = BL_OPCODE_BYTE(BL_OP_BEACON);
	if (!says)
		return;
	body = (void *)((__u8 *)(h + 1) + sizeof(struct bl_beacon) + BL_LINK_AT);
	body->magic = BL_BE32(BL_LINK_MAGIC);
	body->version = BL_LINK_VERSION;
	body->run = 1; /* no frame comes, so the number stays right */
}

/* An RSV for port 0; next_rsv() changes the last two bytes of the address. */
static void make_rsv(struct frame *f)
{
	struct ethhdr *eth = (void *)f->p;
	struct bl_hdr *h = (void *)(eth + 1);
	struct bl_rsv_body *body = (void *)(h + 1);
	const __u8 dst[6] = BL_BEACON_MAC, to[6] = { 2 };

	memset(f, 0, sizeof(*f));
	f->n = BL_RSV_LEN;
	memcpy(eth->h_dest, dst, 6);
	memcpy(eth->h_source, to, 6);
	eth->h_proto = BL_BE16(BL_ETHERTYPE);
	h->opcode = BL_OPCODE_BYTE(BL_OP_RSV);
	memcpy(body->mac, to, 6);
	BL_HALVES_SET(body, bytes, RSV_BYTES);
}

/* A token over IPv4, 60 bytes; see next_token(). */
static void make_token(struct frame *f)
{
	struct bl_top_hdr *h;

	make_data(f);
	f->p[6] = 2; /* next_token() makes it the address of the port's host */
	f->n = BL_TOP_TOKEN_LEN;
	((struct iphdr *)(f->p + 14))->tot_len = BL_BE16(BL_TOP_TOKEN_LEN - 14);
	((struct udphdr *)(f->p + 34))->len = BL_BE16(BL_TOP_TOKEN_LEN - 34);
	h = (void *)(f->p + 42);
	memset(h, 0, sizeof(*h));
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN);
}

/*
 * Makes a switch that limits tokens. At some ten million tokens a second from 64 ports to 64 ports,
 * each link carries a fifth of the tokens that it may carry.
 */
static void configure_token(void)
{
	struct bl_token_cfg cfg = {
		.on = 1, .mode = BL_TOKEN_DROP, .frames = BL_TOKEN_FRAMES, .expiry = BL_TOKEN_EXPIRY
	};
	struct bl_token_port p = { .ns_q20 = RSV_NS_Q20 };
	const struct bl_rsv_cfg no_rsv = { .on = 0 };
	struct bl_sw_cfg sw;
	__u32 i, zero = 0;

	configure_switch(TOKEN_PORTS, false, BL_FWD_L2, NEVER);
	if (bpf_map_lookup_elem(bpf_map__fd(sk->maps.sw_cfg), &zero, &sw))
		die_with_error("sw_cfg", errno);
	sw.admission = 1;
	put_entry(sk->maps.sw_cfg, 0, &sw);
	put_entry(sk->maps.rsv_cfg, 0, &no_rsv);
	put_entry(sk->maps.token_cfg, 0, &cfg);
	for (i = 0; i < TOKEN_PORTS; i++) {
		struct bl_ip ip = bl_ip4(BL_BE32(0x0a000000 + i));
		struct bl_owner owner = { .port = i, .listed = 1 };

		put_entry(sk->maps.token_ports, i, &p);
		if (bpf_map_update_elem(bpf_map__fd(sk->maps.sw_owners), &ip, &owner, BPF_ANY))
			die_with_error("sw_owners", errno);
	}
}

/* Ends the program unless nearly all tokens passed, because dropping one would be cheaper. */
static void check_most_passed(void)
{
	int cpus = libbpf_num_possible_cpus(), k, c;
	struct bl_token_counts *v = calloc((size_t)cpus, sizeof(*v));
	__u64 passed = 0, dropped = 0;
	__u32 i;

	for (i = 0; v && i < TOKEN_PORTS; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(sk->maps.token_counts), &i, v))
			die_with_error("token_counts", errno);
		for (k = 0; k < cpus; k++)
			for (c = 0; c < BL_TOP_CLASSES; c++) {
				passed += v[k].passed[c];
				dropped += v[k].limit[c] + v[k].expired[c] + (c ? 0 : v[k].flood);
			}
	}
	free(v);
	if (passed < (__u64)repeat * (__u64)runs || dropped * 100 > passed) {
		fprintf(stderr,
			"switch_cost: %llu tokens passed, %llu dropped: the measurement is not "
			"valid\n",
			passed, dropped);
		exit(1);
	}
}

/* Makes a switch that reserves by allocator @a. */
static void configure_rsv(enum bl_allocator a)
{
	struct bl_rsv_cfg cfg = { .on = 1,
				  .allocator = a,
				  .ns_q20 = RSV_NS_Q20,
				  .limit_bytes = 16 * BL_RSV_SLOT_BYTES,
				  .far_ns = 1000000000,
				  .pair_shift = 6 };
	struct bl_rsv *none = calloc(1, sizeof(*none));
	const struct bl_rsv_pair nothing = { 0 };
	__u32 i;

	if (!none)
		die_with_error("no memory", ENOMEM);
	configure_switch(RSV_PORTS, false, BL_FWD_L2, NEVER);
	put_entry(sk->maps.rsv_cfg, 0, &cfg);
	put_entry(sk->maps.rsv, 0, none);
	for (i = 0; i < BL_SW_PORTS_MAX * BL_SW_PORTS_MAX; i++)
		put_entry(sk->maps.rsv_pairs, i, &nothing);
	free(none);
}

/* Ends the program unless all reservations were granted, because refusing one would be cheaper. */
static void check_all_granted(void)
{
	struct bl_rsv *r = malloc(sizeof(*r));
	__u32 i, zero = 0;
	__u64 grants = 0, refused = 0, lapsed = 0;

	if (!r || bpf_map_lookup_elem(bpf_map__fd(sk->maps.rsv), &zero, r))
		die_with_error("rsv", errno);
	for (i = 0; i < RSV_PORTS; i++) {
		grants += r->port[i].grants;
		refused += r->port[i].refused;
		lapsed += !!r->port[i].lapsed;
	}
	if (refused || lapsed != RSV_PORTS || grants < (__u64)repeat * (__u64)runs) {
		fprintf(stderr,
			"switch_cost: %llu reservations granted, %llu refused, lapsed on %llu "
			"ports: the measurement is not valid\n",
			grants, refused, lapsed);
		exit(1);
	}
	free(r);
}

/** struct row - one line of the result. */
struct row {
	const char *name;
	__u32 ports;        /* ports of the switch */
	double bare, frame; /* median ns per frame: of the bare program, of barline's */
	double added;       /* median difference between a run of each and the next of the other */
};

/*
 * Runs @bare and @made in turns on frame @f, prints the row, and returns it. What is added is the
 * median of the differences between neighbouring runs, since a shared CPU changes its speed between
 * runs that are further apart. Ends the program if one of them returns another verdict.
 */
static struct row measure_program(const char *name, __u32 ports, const struct bpf_program *bare,
				  int bare_verdict, const struct bpf_program *made, int verdict,
				  const struct frame *f)
{
	static bool first = true;
	double a[RUNS_MAX], b[RUNS_MAX], more[RUNS_MAX];
	struct row r = { .name = name, .ports = ports };
	int i;

	time_program(bare, f->p, f->n, repeat / 10 + 1000, bare_verdict);
	time_program(made, f->p, f->n, repeat / 10 + 1000, verdict);
	for (i = 0; i < runs; i++) {
		a[i] = time_program(bare, f->p, f->n, repeat, bare_verdict);
		b[i] = time_program(made, f->p, f->n, repeat, verdict);
		more[i] = b[i] - a[i];
	}
	r.bare = median(a);
	r.frame = median(b);
	r.added = median(more);
	printf("%-28s %6u %10.1f %10.1f %10.1f %8.1f..%.1f\n", name, ports, r.bare, r.frame,
	       r.added, more[0], more[runs - 1]);
	fflush(stdout);
	if (json)
		fprintf(json,
			"%s{\"name\":\"%s\",\"ports\":%u,\"bare_ns\":%.2f,\"frame_ns\":%.2f,"
			"\"added_ns\":%.2f,\"least_ns\":%.2f,\"most_ns\":%.2f}",
			first ? "" : ",", name, ports, r.bare, r.frame, r.added, more[0],
			more[runs - 1]);
	first = false;
	return r;
}

/* Prints whether @value meets @limit. @last: the last target of the data file. */
static void print_target(const char *name, double value, double limit, bool last)
{
	printf("%-44s %8.2f  (target: at most %.1f) %s\n", name, value, limit,
	       value <= limit ? "met" : "MISSED");
	if (json)
		fprintf(json, "{\"name\":\"%s\",\"value\":%.2f,\"limit\":%.2f,\"met\":%s}%s", name,
			value, limit, value <= limit ? "true" : "false", last ? "" : ",");
}

/* Loads the programs. @auth: links are authenticated. */
static struct bench_switch *load_programs(bool auth)
{
	struct bench_switch *s = bench_switch__open();
	int rc;

	if (!s)
		die_with_error("cannot open the programs", errno);
	s->rodata->bl_auth = auth ? BL_AUTH_LINKS : BL_AUTH_OFF;
	bpf_program__set_autoload(s->progs.bl_switch_xdp, false);
	bpf_program__set_autoload(s->progs.bl_switch_devmap, false);
	rc = bench_switch__load(s);
	if (rc)
		die_with_error("cannot load the programs", rc);
	return s;
}

/*
 * Loads a second object beside the one that is measured, with the same tables, and for the same
 * frames. It is the one that is configured from now on. Returns the first.
 */
static struct bench_switch *load_beside(bool auth)
{
	struct bench_switch *first = sk;

	sk = load_programs(auth);
	fill_tables();
	sk->bss->bench_ttl = first->bss->bench_ttl;
	sk->bss->bench_ip_check = first->bss->bench_ip_check;
	return first;
}

/*
 * What the source guard costs on data: between two objects that differ in it alone. Returns what it
 * adds on 64 ports.
 */
static double measure_guard(const struct frame *data)
{
	struct bench_switch *with;
	struct row r;

	configure_switch(64, false, BL_FWD_L2, NEVER);
	with = load_beside(false);
	guard = false;
	configure_switch(64, false, BL_FWD_L2, NEVER);
	guard = true;
	r = measure_program("source guard, on data", 64, sk->progs.switch_data, XDP_REDIRECT,
			    with->progs.switch_data, XDP_REDIRECT, data);
	bench_switch__destroy(sk);
	sk = with;
	return r.added;
}

/*
 * The rows with authentication of links, in an object of its own, beside the same rows without. The
 * beacons are genuine: the bare program seals them as well. Returns what data costs above a switch
 * without it.
 */
static double measure_auth(const struct frame *data, const struct frame *beacon)
{
	struct bl_auth_link link = { .peer = 1 };
	struct bench_switch *without;
	struct row r;
	__u32 i;

	configure_switch(64, false, BL_FWD_L2, NEVER);
	without = load_beside(true);
	link.at[0] = (struct bl_auth_epoch){ .epoch = 1, .until_ns = BL_TIME_NONE };
	link.at[0].send = link.at[0].receive = (struct bl_auth_key){ { 1, 2 } };
	for (i = 0; i < BL_SW_PORTS_MAX; i++)
		put_entry(sk->maps.auth_links, i, &link);
	configure_switch(64, false, BL_FWD_L2, NEVER);
	r = measure_program("auth: on data", 64, without->progs.switch_data, XDP_REDIRECT,
			    sk->progs.switch_data, XDP_REDIRECT, data);
	for (i = 64; i; i = i == 64 ? 4 : 0) {
		configure_switch(i, false, BL_FWD_L2, NEVER);
		measure_program("auth: beacon, not relayed", i, sk->progs.bare_sealed, XDP_DROP,
				sk->progs.switch_sealed, XDP_DROP, beacon);
		configure_switch(i, false, BL_FWD_L2, NEVER);
		measure_program("auth: tag on every frame", i, sk->progs.bare_tagged, XDP_REDIRECT,
				sk->progs.switch_tagged, XDP_REDIRECT, data);
	}
	configure_switch(L3_PORTS, false, BL_FWD_L2, NEVER);
	measure_program("auth: device map, clone", L3_PORTS, sk->progs.bare_drop, XDP_DROP,
			sk->progs.devmap_clone, XDP_PASS, beacon);
	bench_switch__destroy(sk);
	sk = without;
	return r.added;
}

static void measure_all(void)
{
	static const __u32 sizes[] = { 4, 16, 64, 256 };
#define RSV_ROW(sym, name)    "RSV to GRT, " name,
#define RSV_TARGET(sym, name) "RSV to GRT, 64 ports, " name ", ns",
	static const char *const rsv_name[] = { BL_ALLOCATORS(RSV_ROW) }, *const rsv_target[] = {
		BL_ALLOCATORS(RSV_TARGET)
	};
	double rsv_added[BL_ALLOC_COUNT];
	struct frame data, beacon, says, rsv, token;
	double most = 0, four = 0, all = 0, guard_ns, auth_ns, token_ns;
	__u32 i;

	make_data(&data);
	make_beacon(&beacon, false);
	make_beacon(&says, true);
	printf("%-28s %6s %10s %10s %10s %16s\n", "frame, ns", "ports", "bare", "barline", "added",
	       "least..most");
	for (i = 0; i < 4; i++) {
		struct row r;

		configure_switch(sizes[i], false, BL_FWD_L2, NEVER);
		r = measure_program("data, static table", sizes[i], sk->progs.bare_redirect,
				    XDP_REDIRECT, sk->progs.switch_data, XDP_REDIRECT, &data);
		most = r.added > most ? r.added : most;
		four = i == 0 ? r.frame : four;
		all = i == 3 ? r.frame : all;
	}
	for (i = 0; i < 4; i += 3) {
		configure_switch(sizes[i], false, BL_FWD_L2, NEVER);
		sk->bss->bench_random = 1;
		measure_program("data, random ports", sizes[i], sk->progs.bare_redirect,
				XDP_REDIRECT, sk->progs.switch_data, XDP_REDIRECT, &data);
	}
	for (i = 0; i < 4; i += 3) {
		configure_switch(sizes[i], false, BL_FWD_L2, NEVER);
		sk->bss->bench_behind_ns = BEHIND_NS;
		measure_program("data, C behind B", sizes[i], sk->progs.bare_redirect, XDP_REDIRECT,
				sk->progs.switch_data, XDP_REDIRECT, &data);
	}
	for (i = 0; i < 4; i += 3) {
		configure_switch(sizes[i], true, BL_FWD_L2, NEVER);
		measure_program("data, with an up-link", sizes[i], sk->progs.bare_redirect,
				XDP_REDIRECT, sk->progs.switch_data, XDP_REDIRECT, &data);
	}
	for (i = 0; i < 4; i += 3) {
		configure_switch(sizes[i], false, BL_FWD_L2, NEVER);
		measure_program("beacon, not relayed", sizes[i], sk->progs.bare_drop, XDP_DROP,
				sk->progs.switch_beacon, XDP_DROP, &beacon);
		configure_switch(sizes[i], false, BL_FWD_L2, RELAY_EACH);
		measure_program("beacon, relayed", sizes[i], sk->progs.bare_broadcast, XDP_REDIRECT,
				sk->progs.switch_beacon, XDP_REDIRECT, &beacon);
		configure_switch(sizes[i], false, BL_FWD_L2, NEVER);
		measure_program("beacon with a link body", sizes[i], sk->progs.bare_drop, XDP_DROP,
				sk->progs.switch_beacon, XDP_DROP, &says);
	}
	configure_switch(L3_PORTS, false, BL_FWD_L2, NEVER);
	measure_program("device map, data", L3_PORTS, sk->progs.bare_pass, XDP_PASS,
			sk->progs.devmap_data, XDP_PASS, &data);
	measure_program("device map, clone", L3_PORTS, sk->progs.bare_drop, XDP_DROP,
			sk->progs.devmap_clone, XDP_PASS, &beacon);
	measure_program("device map, clone with body", L3_PORTS, sk->progs.bare_drop, XDP_DROP,
			sk->progs.devmap_says, XDP_PASS, &beacon);
	configure_switch(L3_PORTS, false, BL_FWD_L3, NEVER);
	measure_program("data, routing tables", L3_PORTS, sk->progs.bare_fib, XDP_REDIRECT,
			sk->progs.switch_data, XDP_REDIRECT, &data);
	make_rsv(&rsv);
	for (i = 0; i < BL_ALLOC_COUNT; i++) {
		struct row r;

		configure_rsv(i);
		r = measure_program(rsv_name[i], RSV_PORTS, sk->progs.bare_rsv, XDP_DROP,
				    sk->progs.switch_rsv, XDP_REDIRECT, &rsv);
		rsv_added[i] = r.added;
		check_all_granted();
	}
	make_token(&token);
	configure_token();
	{
		struct row other = measure_program("other frame, admission on", TOKEN_PORTS,
						   sk->progs.bare_token, XDP_REDIRECT,
						   sk->progs.switch_other, XDP_REDIRECT, &token);
		struct row r = measure_program("token, mode drop", TOKEN_PORTS,
					       sk->progs.bare_token, XDP_REDIRECT,
					       sk->progs.switch_token, XDP_REDIRECT, &token);

		token_ns = r.added - other.added;
		check_most_passed();
	}
	guard_ns = measure_guard(&data);
	auth_ns = measure_auth(&data, &beacon);
	if (json)
		fputs("],\"targets\":[", json);
	for (i = 0; i < BL_ALLOC_COUNT; i++)
		print_target(rsv_target[i], rsv_added[i], LIMIT_RSV_NS, false);
	print_target("token decision, mode drop, 64 ports, ns", token_ns, LIMIT_TOKEN_NS, false);
	print_target("source guard, on data, 64 ports, ns", guard_ns, LIMIT_GUARD_NS, false);
	print_target("authentication of links, on data, 64 ports, ns", auth_ns, LIMIT_AUTH_NS,
		     false);
	print_target("added to a bare redirect, worst size, ns", most, LIMIT_ADDED_NS, false);
	print_target("256 ports against 4", all / four, LIMIT_GROWTH, true);
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	make_network();
	sk = load_programs(false);
	fill_tables();
	json_open();
	measure_all();
	json_close();
	bench_switch__destroy(sk);
	return 0;
}
