/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the switch's programs as a whole (bpf/switch/), compiled natively and with the sanitizers:
 * frames of four ports in any order, time, and fences of the controller. The input is a list of
 * these operations.
 *
 * Besides what ASan and UBSan detect, in the frame, in maps and on the stack, it checks that each
 * frame ends for one reason, that a refused frame leaves as it came, and the promises: what outputs
 * were given never falls, and does not rise above an input that is in the minimum.
 *
 * Other CPUs, routes, queues and reservations are not covered. That the program in the kernel does
 * the same is shown by tests/prog/switch/test_switch_native.c.
 */
#include "tests/fuzz/native_fuzz.h"

#include <linux/bpf.h>

#include "maps/fence_abi.h"

#define NPORTS 4
#define UPLINK 2

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
					.mac = { 2, 0, 0, 0, 0xff, (__u8)i },
					.mtu = 1500 };
		struct bpf_devmap_val tx = { .ifindex = 10 + i };
		uint32_t number = i + 1;

		native_put("sw_ports", i, &p);
		native_put("sw_tx", i, &tx);
		native_put("sw_ifindex", 10 + i, &number);
		put_fdb(i);
	}
	fuzz_clock(BUS);
}

/*
 * The least B of the inputs of set @s that are in the minimum; BL_LEAF_NONE: there are none. A
 * neighbour whose last frame said that it has one lane has no other, whatever it said before
 * (bl_reg_alone()).
 */
static uint64_t least_of(uint32_t s)
{
	uint64_t least = BL_LEAF_NONE;
	uint32_t p, l;

	for (p = 0; p < NPORTS; p++) {
		const struct bl_port_regs *r = native_get("sw_regs", p);
		const struct bl_sw_port *port = native_get("sw_ports", p);

		for (l = 0; l < BL_LANES_MAX && port->in_sets >> s & 1; l++) {
			if (l && r->lane[0].lanes == 1)
				break;
			if ((uint8_t)r->lane[l].state == BL_REG_LIVE && r->lane[l].b < least)
				least = r->lane[l].b;
		}
	}
	return least;
}

static uint64_t all_joined(void)
{
	const uint64_t *n = native_get("counts", BL_R_JOINED);

	return n[0] + n[1] + n[2] + n[3];
}

static void one_frame(struct fuzz_in *in, uint8_t op, uint8_t port)
{
	const uint64_t joined = all_joined();
	const struct bl_sw_lane *lane = native_get("sw_lanes", 0);
	struct bl_sw_lane was = *lane;
	static struct frame f, g;
	enum bl_reason why = BL_R_NONE;
	int verdict;
	uint32_t s;

	fuzz_frame(in, op, &f);
	g = f;
	verdict = native_run(bl_switch_xdp, f.p, &f.n, 10 + port % (NPORTS + 1));
	FUZZ_CHECK(verdict == XDP_DROP || verdict == XDP_PASS || verdict == XDP_REDIRECT);
	FUZZ_CHECK(fuzz_ends(last, BL_SW_COUNTS, &why) == 1);
	/* The answer to a reservation says that none are made, and goes back. */
	FUZZ_CHECK(why == BL_R_FORWARDED || why == BL_R_RELAYED || why == BL_R_RSV_OFF ||
		   verdict != XDP_REDIRECT);
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
			fence(&in, arg);
			break;
		default:
			one_frame(&in, op, arg);
			break;
		}
	}
	return 0;
}
