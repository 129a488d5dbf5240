/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of the reliable stream share: hosts that lose frames, and the verdict "all or none". */
#ifndef BARLINE_TESTS_RELIABLE_H
#define BARLINE_TESTS_RELIABLE_H

#include "traffic.h"

/* An XDP program that drops @per_65536 of 65536 frames and hands the others to what is behind @next. */
T_FN int dropper(uint32_t per_65536, uint64_t seed, int next)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP); /* as that of the program which is called: newer kernels insist */
	uint32_t zero = 0;
	int state = bpf_map_create(BPF_MAP_TYPE_ARRAY, "t_drop", 4, 8, 1, NULL), fd;
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		/* r1 = &state; r0 = state = state * A + C (Knuth's MMIX); lost updates of two CPUs cost nothing but randomness */
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = state },
		{ 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2, .imm = (int32_t)(6364136223846793005ULL & 0xffffffff) },
		{ .imm = (int32_t)(6364136223846793005ULL >> 32) },
		{ .code = BPF_ALU64 | BPF_MUL | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_0, .imm = 1442695041 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0 },
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 48 },
		{ .code = BPF_JMP | BPF_JGE | BPF_K, .dst_reg = BPF_REG_0, .imm = (int32_t)per_65536, .off = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 }, /* XDP_DROP */
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2, .src_reg = BPF_PSEUDO_MAP_FD, .imm = next },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 }, /* XDP_ABORTED: the host's program is not there */
		{ .code = BPF_JMP | BPF_EXIT },
	};

	CHECK(state >= 0 && !bpf_map_update_elem(state, &zero, &seed, BPF_ANY), "%s", strerror(errno));
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "t_drop", "GPL", code, sizeof(code) / sizeof(code[0]), &o);
	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* The host's program on its NIC, and a map by which another one can call it. */
struct behind {
	int link, prog, next;
};

T_FN struct behind behind_open(unsigned int host)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info), zero = 0;
	struct behind b;
	char path[384];

	snprintf(path, sizeof(path), "%s/links/xdp-eth0", rack.dir[rack_host(host)]);
	b.link = bpf_obj_get(path);
	CHECK(b.link >= 0 && !bpf_obj_get_info_by_fd(b.link, &info, &len), "%s: %s", path, strerror(errno));
	b.prog = bpf_prog_get_fd_by_id(info.prog_id);
	b.next = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "t_next", 4, 4, 1, NULL);
	CHECK(b.prog >= 0 && b.next >= 0 && !bpf_map_update_elem(b.next, &zero, &b.prog, BPF_ANY), "%s", strerror(errno));
	return b;
}

/* The link goes over to @fd; what it replaces is returned. */
T_FN int behind_put(struct behind b, int fd)
{
	CHECK(!bpf_link_update(b.link, fd, NULL), "%s", strerror(errno));
	close(fd);
	close(b.link);
	return b.prog;
}

/* The program's link goes over to the dropping one; what it replaces is called by that, and returned. */
T_FN int make_lossy(unsigned int host, uint32_t per_65536, uint64_t seed)
{
	struct behind b = behind_open(host);

	return behind_put(b, dropper(per_65536, seed, b.next));
}

/* And back to what make_lossy() returned, unless a daemon that began anew has put its own there meanwhile. */
T_FN void make_whole(unsigned int host, int prog)
{
	struct bpf_prog_info info = {};
	struct bpf_link_info at = {};
	uint32_t len = sizeof(at);
	char path[384];
	int link, now;

	snprintf(path, sizeof(path), "%s/links/xdp-eth0", rack.dir[rack_host(host)]);
	link = bpf_obj_get(path);
	CHECK(link >= 0 && !bpf_obj_get_info_by_fd(link, &at, &len), "%s: %s", path, strerror(errno));
	now = bpf_prog_get_fd_by_id(at.prog_id);
	len = sizeof(info);
	CHECK(now >= 0 && !bpf_obj_get_info_by_fd(now, &info, &len), "%s", strerror(errno));
	if (!strcmp(info.name, "t_drop"))
		CHECK(!bpf_link_update(link, prog, NULL), "%s", strerror(errno));
	close(now);
	close(link);
	close(prog);
}

T_FN bool has(unsigned int receiver, unsigned int sender, uint64_t seq)
{
	const struct tr_node *n = &tr_sh->node[receiver];
	uint32_t g;

	for (g = 0; g < n->ngot; g++)
		if (n->got[g].sender == sender && n->got[g].seq == seq)
			return true;
	return false;
}

/* Each scattering of @sender came to all of @correct that it was sent to, or to none. Returns how many came to none. */
T_FN unsigned int all_or_none(unsigned int sender, uint64_t correct)
{
	const struct tr_node *s = &tr_sh->node[sender];
	unsigned int none = 0, r;
	uint32_t q;

	for (q = 0; q < s->nsent; q++) {
		uint64_t to = s->sent[q].to & correct, got = 0;

		for (r = 0; r < tr_sh->count; r++)
			if ((to >> r & 1) && has(r, sender, q))
				got |= 1ULL << r;
		CHECK(!got || got == to, "(%u,%u) was sent to %" PRIx64 " and delivered by %" PRIx64 " only", sender, q, to, got);
		none += to && !got;
	}
	return none;
}

#endif
