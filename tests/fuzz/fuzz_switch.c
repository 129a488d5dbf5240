/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the switch's programs as a whole (bpf/switch/), compiled natively and with the sanitizers:
 * frames of four ports in any order, time, and fences of the controller. The input is a list of
 * these operations.
 *
 * Besides what ASan and UBSan detect, in the frame, in maps and on the stack, it checks that each
 * frame ends for one reason, that a refused frame leaves as it came, and the promises: what outputs
 * were given never falls, and does not rise above an input that is in the minimum. Two hosts' ports
 * are guarded: a refused source raises no register, and an address belongs to one port.
 *
 * Other CPUs, routes, queues and reservations are not covered. That the program in the kernel does
 * the same is shown by tests/prog/switch/test_switch_native.c.
 */
#include "tests/fuzz/native_fuzz.h"

#include <linux/bpf.h>

#include "maps/fence_abi.h"

#define NPORTS 4
#define UPLINK 2
#define LEARNT 0 /* port whose host's addresses are learnt */
#define LISTED 3 /* port whose host's addresses are configured */
#define GAP_NS 1000

int bl_switch_xdp(struct xdp_md *ctx);
int bl_fence(struct bl_fence_arg *a);
void native_switch_maps(void);

static uint64_t last[BL_REASON_MAX * BL_SW_COUNTS];

static void put_fdb(uint32_t port)
{
	struct bl_fdb_bucket *b;
	uint64_t mac;
	uint8_t m[6];
	int i;

	host_mac(m, port);
	mac = bl_mac48(m);
	b = native_get("sw_fdb", bl_fdb_hash(mac));
	for (i = 0; i < BL_FDB_WAYS && b->way[i].mac; i++)
		;
	FUZZ_CHECK(i < BL_FDB_WAYS);
	b->way[i].mac = mac;
	b->way[i].port = port;
}

/* Lanes that the neighbour of each port may have. */
static const uint8_t lanes_of[NPORTS] = { 1, BL_LANES_MAX, BL_LANES_MAX, 2 };

static void guard(void)
{
	struct bl_sources learn = { .mode = BL_SOURCE_LEARN },
			  list = { .mode = BL_SOURCE_LIST, .nmac = 1, .nip = 2 };
	const struct bl_owner owner = { .port = LISTED, .listed = 1 };
	uint8_t mac[6];
	int i;

	host_mac(mac, LISTED);
	list.mac[0] = bl_mac48(mac);
	host_addr((__u8 *)&list.ip[0], false, LISTED);
	host_addr((__u8 *)&list.ip[1], true, LISTED);
	native_put("sw_sources", LEARNT, &learn);
	native_put("sw_sources", LISTED, &list);
	for (i = 0; i < list.nip; i++)
		native_update(native_map_named("sw_owners"), &list.ip[i], &owner, BPF_ANY);
}

/* The switch of tests/prog/switch/switch_util.h: hosts on ports 0, 1 and 3, a spine on port 2. */
static void new_switch(void)
{
	struct bl_sw_cfg cfg = { .node_id = 0x5a5a5a5a,
				 .nports = NPORTS,
				 .lanes = 1,
				 .forward = BL_FWD_L2,
				 .port_base = BL_PORT_BASE,
				 .port_count = BL_PORT_COUNT,
				 .tree_leaves = 4,
				 .beacon_ns = 100000,
				 .dead_after_ns = 1000000,
				 .lag_max_ns = 1000000,
				 .commit_lag_max_ns = 2000000,
				 .control_gap_ns = GAP_NS,
				 .single_writer = 1,
				 .tai_offset_s = 37 };
	struct bl_tree none;
	uint32_t i;

	native_switch_maps();
	native_clear();
	memset(last, 0, sizeof(last));
	memset(&none, 0, sizeof(none));
	for (i = 0; i < 2 * BL_TREE_LEAVES; i++)
		none.b[i] = none.c[i] = BL_LEAF_NONE;
	for (i = 0; i < 2; i++)
		native_put("sw_trees", i, &none);
	native_put("sw_cfg", 0, &cfg);
	for (i = 0; i < NPORTS; i++) {
		struct bl_sw_port p = { .ifindex = 10 + i,
					.role = i == UPLINK ? BL_PORT_UP : BL_PORT_HOST,
					.in_sets = i == UPLINK ? 2 : 3,
					.out_set = i != UPLINK,
					.guarded = i == LEARNT || i == LISTED,
					.source_eth = BL_SOURCE_NO_ETH,
					.lanes_less_one = lanes_of[i] - 1,
					.mac = { 2, 0, 0, 0, 0xff, (__u8)i },
					.mtu = 1500 };
		struct bpf_devmap_val tx = { .ifindex = 10 + i };
		uint32_t number = i + 1;

		native_put("sw_ports", i, &p);
		native_put("sw_tx", i, &tx);
		native_put("sw_ifindex", 10 + i, &number);
		put_fdb(i);
	}
	guard();
	fuzz_clock(BUS);
}

/*
 * The least B of the inputs of set @s that are in the minimum; BL_LEAF_NONE: there are none. A
 * neighbour whose last frame said that it has one lane has no other, whatever it said before
 * (bl_reg_alone()). One that may have one lane only never has another.
 */
static uint64_t least_of(uint32_t s)
{
	uint64_t least = BL_LEAF_NONE;
	uint32_t p, l;

	for (p = 0; p < NPORTS; p++) {
		const struct bl_port_regs *r = native_get("sw_regs", p);
		const struct bl_sw_port *port = native_get("sw_ports", p);

		for (l = 0; l < BL_LANES_MAX && port->in_sets >> s & 1; l++) {
			if (l >= lanes_of[p]) {
				FUZZ_CHECK(!r->lane[l].b && !r->lane[l].heard_ns);
				FUZZ_CHECK((uint8_t)r->lane[l].state == BL_REG_ABSENT);
				continue;
			}
			if (l && r->lane[0].lanes == 1)
				continue;
			if ((uint8_t)r->lane[l].state == BL_REG_LIVE && r->lane[l].b < least)
				least = r->lane[l].b;
		}
	}
	return least;
}

/* What was learnt of guarded ports agrees with the owners of addresses. */
static void check_sources(void)
{
	const struct native_map *m = native_map_named("sw_owners");
	uint32_t p, i;

	for (p = 0; p < NPORTS; p++) {
		const struct bl_sources *s = native_get("sw_sources", p);
		const struct bl_sw_port *port = native_get("sw_ports", p);

		FUZZ_CHECK(s->nmac <= BL_SOURCE_MACS && s->nip <= BL_SOURCE_IPS);
		FUZZ_CHECK(p == LEARNT || (s->nmac == (p == LISTED) && s->nip == 2 * s->nmac));
		for (i = 0; i < s->nip; i++) {
			const struct bl_owner *o =
				native_lookup(native_map_named("sw_owners"), &s->ip[i]);

			FUZZ_CHECK(o && (o->port == p || s->forget != s->forgot));
		}
		FUZZ_CHECK(port->source_eth == BL_SOURCE_NO_ETH || port->guarded);
	}
	FUZZ_CHECK(m->n <= 2 + 2 * BL_SOURCE_IPS * NPORTS);
}

static void quota(uint8_t port, uint8_t arg)
{
	struct bl_quotas *q = native_get("sw_quotas", port % NPORTS);
	const uint64_t full = BL_CONTROL_BURST * GAP_NS + (arg & 7) - 4;

	q->control = bus_now + full;
	q->beacons = arg & 8 ? q->control : 0;
	q->links = arg & 16 ? native_now_ns + full : 0;
}

static uint64_t all_joined(void)
{
	const uint64_t *n = native_get("counts", BL_R_JOINED);

	return n[0] + n[1] + n[2] + n[3];
}

/* Whether the frame has changed what a neighbour has said: a scan may change states only. */
static int raised(const struct bl_port_regs *was, const struct bl_port_regs *is)
{
	uint32_t l;

	for (l = 0; l < BL_LANES_MAX; l++)
		if (was->lane[l].b != is->lane[l].b || was->lane[l].lanes != is->lane[l].lanes ||
		    was->lane[l].heard_ns != is->lane[l].heard_ns)
			return 1;
	return 0;
}

static void one_frame(struct fuzz_in *in, uint8_t op, uint8_t port)
{
	const uint64_t joined = all_joined();
	const struct bl_sw_lane *lane = native_get("sw_lanes", 0);
	struct bl_sw_lane was = *lane;
	const uint32_t from = port % (NPORTS + 1);
	struct bl_port_regs regs = { 0 };
	static struct frame f, g;
	enum bl_reason why = BL_R_NONE;
	int verdict;
	uint32_t s;

	fuzz_frame(in, op, &f);
	g = f;
	if (from < NPORTS)
		regs = *(struct bl_port_regs *)native_get("sw_regs", from);
	verdict = native_run(bl_switch_xdp, f.p, &f.n, 10 + from);
	FUZZ_CHECK(verdict == XDP_DROP || verdict == XDP_PASS || verdict == XDP_REDIRECT);
	FUZZ_CHECK(fuzz_ends(last, BL_SW_COUNTS, &why) == 1);
	/* The answer to a reservation says that none are made, and goes back. */
	FUZZ_CHECK(why == BL_R_FORWARDED || why == BL_R_RELAYED || why == BL_R_RSV_OFF ||
		   verdict != XDP_REDIRECT);
	if (why == BL_R_SPOOFED || why == BL_R_LANES_REFUSED || why == BL_R_CONTROL_FLOOD)
		FUZZ_CHECK(!raised(&regs, native_get("sw_regs", from)));
	check_sources();
	FUZZ_CHECK(f.n == g.n);
	if (verdict != XDP_REDIRECT)
		FUZZ_CHECK(!memcmp(f.p, g.p, g.n));
	for (s = 0; s < 2; s++) {
		FUZZ_CHECK(lane->out[s].b >= was.out[s].b && lane->out[s].c >= was.out[s].c);
		/*
		 * An input that joins may be below what was given a moment before, when the scan of
		 * the same frame found another one silent: then outputs stand still until it has
		 * passed that.
		 */
		if (all_joined() == joined)
			FUZZ_CHECK(lane->out[s].b == was.out[s].b || lane->out[s].b <= least_of(s));
	}
	FUZZ_CHECK(lane->out[0].b <= bus_now + BOUND || lane->out[0].b == was.out[0].b);
}

static void fence(struct fuzz_in *in, uint8_t kind)
{
	struct bl_fence_arg a = { .epoch = fuzz_u8(in),
				  .kind = kind % (BL_FENCE_EMPTY + 2),
				  .port = fuzz_u8(in),
				  .death = fuzz_u8(in),
				  .barred = { fuzz_u8(in) } };

	if (a.port < 128)
		a.port %= NPORTS;
	bl_fence(&a);
	FUZZ_CHECK(a.result <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	new_switch();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);

		switch (op >> 5) {
		case 0:
			fuzz_clock(bus_now + ((uint64_t)arg << (op & 15)));
			break;
		case 1:
			if (op & 16)
				quota(op, arg);
			else
				fence(&in, arg);
			break;
		default:
			one_frame(&in, op, arg);
			break;
		}
	}
	return 0;
}
