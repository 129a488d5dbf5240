/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions between two hosts: the hosts still receive each other's barriers, but frames between
 * them are dropped before a host's XDP program, by source address and either by opcode or all of
 * them. Beacons pass.
 */
#ifndef BARLINE_TESTS_PART_H
#define BARLINE_TESTS_PART_H

#include "core/wire_core.h"
#include "tests/net/lossy.h"

#define ANY 0 /* as an opcode: every UDP frame */

/*
 * Offsets in a frame. @addr: of the first and the last four bytes of the source address, which
 * identify a host (IPv4: both the same).
 */
static const struct part_place {
	int eth, proto, addr[2], l4;
} part_places[] = { { BL_ETH_IP, 14 + 9, { 14 + 12, 14 + 12 }, 14 + 20 },
		    { BL_ETH_IP6, 14 + 6, { 14 + 8, 14 + 8 + 12 }, 14 + 40 } };

/*
 * Loads an XDP program that drops UDP frames with opcode @op and a source address with the words
 * @from (network order), and passes the others to the program in @next.
 */
T_FN int part_filter(const struct part_place *at, const uint32_t from[2], int op, int next)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP); /* as in dropper() */
#define ELSE(i) (17 - (i)) /* from the instruction after @i to the tail call */
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, data) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_3,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, data_end) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K,
		  .dst_reg = BPF_REG_4,
		  .imm = at->l4 + 8 + (int)sizeof(struct bl_hdr) },
		{ .code = BPF_JMP | BPF_JGT | BPF_X,
		  .dst_reg = BPF_REG_4,
		  .src_reg = BPF_REG_3,
		  .off = ELSE(6) },
		/* 6: IP of the given version, UDP, from the given address */
		{ .code = BPF_LDX | BPF_MEM | BPF_H,
		  .dst_reg = BPF_REG_5,
		  .src_reg = BPF_REG_2,
		  .off = 12 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K,
		  .dst_reg = BPF_REG_5,
		  .imm = BL_BE16(at->eth),
		  .off = ELSE(8) },
		{ .code = BPF_LDX | BPF_MEM | BPF_B,
		  .dst_reg = BPF_REG_5,
		  .src_reg = BPF_REG_2,
		  .off = (int16_t)at->proto },
		{ .code = BPF_JMP | BPF_JNE | BPF_K,
		  .dst_reg = BPF_REG_5,
		  .imm = BL_UDP,
		  .off = ELSE(10) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_5,
		  .src_reg = BPF_REG_2,
		  .off = (int16_t)at->addr[0] },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K,
		  .dst_reg = BPF_REG_5,
		  .imm = (int32_t)from[0],
		  .off = ELSE(12) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_5,
		  .src_reg = BPF_REG_2,
		  .off = (int16_t)at->addr[1] },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K,
		  .dst_reg = BPF_REG_5,
		  .imm = (int32_t)from[1],
		  .off = ELSE(14) },
		/* 14: the opcode */
		{ .code = BPF_LDX | BPF_MEM | BPF_B,
		  .dst_reg = BPF_REG_0,
		  .src_reg = BPF_REG_2,
		  .off = (int16_t)(at->l4 + 8 + (int)offsetof(struct bl_hdr, opcode)) },
		{ .code = BPF_JMP | (op == ANY ? BPF_JGE : BPF_JEQ) | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = op == ANY ? 0 : BL_OPCODE_BYTE(op),
		  .off = 7 },
		{ .code = BPF_JMP | BPF_JA, .off = 0 },
		/* 17: call the host's own program */
		T_GO_ON(next),
		/* 23: XDP_DROP */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
#undef ELSE
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "t_filter", "GPL", code,
			       sizeof(code) / sizeof(code[0]), &o);

	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* Drops from now on everything with opcode @op that arrives at @host from @ip. */
T_FN void part_from(const uint8_t ip[16], unsigned int host, int op)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(ip, mapped, sizeof(mapped));
	struct behind b = behind_open(host);
	uint32_t from[2];

	memcpy(&from[0], ip + (v4 ? 12 : 0), 4);
	memcpy(&from[1], ip + 12, 4);
	close(behind_put(b, part_filter(&part_places[!v4], from, op, b.next)));
}

#endif
