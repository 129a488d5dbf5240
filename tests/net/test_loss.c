// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lossy links: a message may be lost, then its sender is told; the order never is. A tc program on the hosts' NICs, before barline's own, drops frames at
 * random: messages, parts of large ones, credits, probes, beacons. NAKs it lets through: a report that is lost is not repeated, and one frame may have carried most of what
 * was lost, so how many senders were told would be a matter of luck. With all reports there, all losses are reported.
 */
#include "traffic.h"

#define TCX_EGRESS 47	/* BPF_TCX_EGRESS */
#define TCX_BEFORE 8	/* BPF_F_BEFORE: first of all programs */

#define OPCODE_AT (14 + 20 + 8 + (int32_t)offsetof(struct bl_hdr, opcode)) /* Ethernet, IPv4, UDP */

/* drop @per_65536 of 65536, but no NAKs; returns the program */
static int dropper(uint32_t per_65536, uint64_t seed)
{
	uint32_t zero = 0;
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "t_drop", 4, 8, 1, NULL), fd;
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		/* shorter frames end here, with 0: TC_ACT_OK. There are none but link frames. */
		{ .code = BPF_LD | BPF_ABS | BPF_B, .imm = OPCODE_AT },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .imm = BL_OPCODE_BYTE(BL_OP_NAK), .off = 12 },
		/* r1 = &state; r0 = state = state * A + C (Knuth's MMIX); lost updates of two CPUs cost nothing but randomness */
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = map },
		{ 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2, .imm = (int32_t)(6364136223846793005ULL & 0xffffffff) },
		{ .imm = (int32_t)(6364136223846793005ULL >> 32) },
		{ .code = BPF_ALU64 | BPF_MUL | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_0, .imm = 1442695041 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0 },
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 48 },
		{ .code = BPF_JMP | BPF_JGE | BPF_K, .dst_reg = BPF_REG_0, .imm = (int32_t)per_65536, .off = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 2 }, /* TC_ACT_SHOT */
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 }, /* the next program */
		{ .code = BPF_JMP | BPF_EXIT },
	};

	CHECK(map >= 0 && !bpf_map_update_elem(map, &zero, &seed, BPF_ANY), "%s", strerror(errno));
	fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "t_drop", "GPL", code, sizeof(code) / sizeof(code[0]), NULL);
	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* The link's fd stays open in this process: it is detached when the case ends. */
static void make_lossy(unsigned int host, uint32_t per_65536, uint64_t seed)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), prog = dropper(per_65536, seed), index;

	rack_enter(rack_host(host));
	index = (int)if_nametoindex("eth0");
	LIBBPF_OPTS(bpf_link_create_opts, o, .flags = TCX_BEFORE);
	if (bpf_link_create(prog, index, (enum bpf_attach_type)TCX_EGRESS, &o) < 0) {
		/* kernels before 6.6: a filter of a better priority than barline's */
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = index, .attach_point = BPF_TC_EGRESS);
		LIBBPF_OPTS(bpf_tc_opts, t, .handle = 1, .priority = 1, .prog_fd = prog);

		CHECK(errno == EINVAL, "%s", strerror(errno));
		bpf_tc_hook_create(&hook);
		CHECK(!bpf_tc_attach(&hook, &t), "%s", strerror(errno));
	}
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
}

/* Which messages are missing, and of how many was the sender told? */
static void account(void)
{
	uint64_t sent = 0, got = 0, told = 0;
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++) {
		sent += tr_sh->node[i].expected;
		got += tr_sh->node[i].received;
		told += tr_sh->node[i].nfailed;
	}
	fprintf(stderr, "  %" PRIu64 " messages, %" PRIu64 " not delivered, %" PRIu64 " reported\n", sent, sent - got, told);
	CHECK(sent > got, "nothing was lost: this proves nothing");
	/* more, if a sender gave a receiver up whose credits were lost eight times in a row */
	CHECK(told >= sent - got, "a loss was not reported");
}

static void run(unsigned int hosts, uint32_t per_65536, struct tr_cfg cfg)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack_open();
	for (i = 0; i < hosts; i++) {
		cfg.host = i;
		cfg.fn = tr_mix;
		cfg.quiet_ms = 4000;
		cfg.ring_bytes = TR_RING_TIGHT(hosts);
		tr_add(&cfg);
	}
	rack_settle();
	for (i = 0; i < hosts; i++)
		make_lossy(i, per_65536, tr_sh->seed + i);
	tr_go();
	tr_wait_done(80000);
	tr_stop();
	tr_judge(0, 0);
	account();
	/* frames that are gone break no FIFO: nothing may come late, nobody may be excluded */
	CHECK(TR_SUM(late_dropped) == 0, "late");
	CHECK(TR_SUM(duplicates) == 0, "duplicates");
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "a FIFO is broken");
}

RACK_TEST(rack__1_percent)
{
	run(4, 655, (struct tr_cfg){ .scatterings = 400, .len = 1400, .fan = 4, .more = 80 });
}

RACK_TEST(rack__20_percent)
{
	run(3, 13107, (struct tr_cfg){ .scatterings = 60, .len = 300, .fan = 3 });
}

RACK_TEST(rack__large_messages)
{
	run(3, 650, (struct tr_cfg){ .scatterings = 60, .len = 1400, .fan = 2, .big = 60 });
}

RACK_TEST(leaf_spine__10_percent)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	run(4, 6554, (struct tr_cfg){ .scatterings = 150, .len = 300, .fan = 4 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__1_percent),
		cmocka_unit_test(rack__20_percent),
		cmocka_unit_test(rack__large_messages),
		cmocka_unit_test(leaf_spine__10_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
