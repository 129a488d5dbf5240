/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that lose frames at random: either all kinds of incoming frames, by an XDP program before
 * the host's own (make_lossy()), or all outgoing frames except NAKs, by a tc program
 * (make_lossy_but_naks()).
 *
 * Example: make_lossy(2, 655, seed): of the frames that arrive at the third host, 655 of 65536 (1
 * percent) are dropped. Its link is updated to a program that drops them and calls the host's own
 * program for the rest; make_whole() restores the link.
 */
#ifndef BARLINE_TESTS_LOSSY_H
#define BARLINE_TESTS_LOSSY_H

#include "tests/net/traffic.h"

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS */
#define TCX_BEFORE 8  /* BPF_F_BEFORE: first of all programs */

/* offset of the opcode in a frame: after Ethernet, IPv4 and UDP */
#define OPCODE_AT (14 + 20 + 8 + (int32_t)offsetof(struct bl_hdr, opcode))

/** struct t_dice - the value of the map of T_DICE(). */
struct t_dice {
	uint64_t state;
	uint64_t frames, dropped; /* so many frames were seen, and so many of them dropped */
};

#define T_DICE_LEN 13
/* Adds r3 to a member of the struct t_dice at r1. */
#define T_COUNT(member)                                                                            \
	{                                                                                          \
		.code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_3, \
		.off = offsetof(struct t_dice, member), .imm = BPF_ADD                             \
	}
/*
 * r1 = the struct t_dice; r0 = state = state * A + C (Knuth's MMIX). Lost updates between two CPUs
 * cost nothing but randomness. The two instructions that follow this macro handle the frames that
 * are dropped; the others continue after those. The macro has T_DICE_LEN instructions.
 */
#define T_DICE(state, per_65536)                                                                  \
	{ .code = BPF_LD | BPF_DW | BPF_IMM,                                                      \
	  .dst_reg = BPF_REG_1,                                                                   \
	  .src_reg = BPF_PSEUDO_MAP_VALUE,                                                        \
	  .imm = (state) },                                                                       \
		{ 0 },                                                                            \
		{ .code = BPF_LDX | BPF_MEM | BPF_DW,                                             \
		  .dst_reg = BPF_REG_0,                                                           \
		  .src_reg = BPF_REG_1 },                                                         \
		{ .code = BPF_LD | BPF_DW | BPF_IMM,                                              \
		  .dst_reg = BPF_REG_2,                                                           \
		  .imm = (int32_t)(6364136223846793005ULL & 0xffffffff) },                        \
		{ .imm = (int32_t)(6364136223846793005ULL >> 32) },                               \
		{ .code = BPF_ALU64 | BPF_MUL | BPF_X,                                            \
		  .dst_reg = BPF_REG_0,                                                           \
		  .src_reg = BPF_REG_2 },                                                         \
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_0, .imm = 1442695041 }, \
		{ .code = BPF_STX | BPF_MEM | BPF_DW,                                             \
		  .dst_reg = BPF_REG_1,                                                           \
		  .src_reg = BPF_REG_0 },                                                         \
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 1 },          \
		T_COUNT(frames),                                                                  \
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 48 },         \
		{ .code = BPF_JMP | BPF_JGE | BPF_K,                                              \
		  .dst_reg = BPF_REG_0,                                                           \
		  .imm = (int32_t)(per_65536),                                                    \
		  .off = 3 },                                                                     \
		T_COUNT(dropped)

/*
 * Calls the program in the map @next, with the context in r6. After it r0 is 0, XDP_ABORTED: there
 * is no such program.
 */
#define T_GO_ON(next)                                                                           \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6 },    \
		{ .code = BPF_LD | BPF_DW | BPF_IMM,                                            \
		  .dst_reg = BPF_REG_2,                                                         \
		  .src_reg = BPF_PSEUDO_MAP_FD,                                                 \
		  .imm = (next) },                                                              \
		{ 0 }, { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 }, \
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },                      \
	{                                                                                       \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0             \
	}

/* Creates the map of T_DICE(). Returns its descriptor. */
T_FN int dice(uint64_t seed)
{
	int state = bpf_map_create(BPF_MAP_TYPE_ARRAY, "t_drop", 4, sizeof(struct t_dice), 1, NULL);
	const struct t_dice d = { .state = seed };
	uint32_t zero = 0;

	CHECK(state >= 0 && !bpf_map_update_elem(state, &zero, &d, BPF_ANY), "%s", strerror(errno));
	return state;
}

/*
 * Loads an XDP program that drops @per_65536 of 65536 frames and passes the others to the program
 * in @next.
 */
T_FN int dropper(uint32_t per_65536, uint64_t seed, int next)
{
	/* must be that of the called program; newer kernels insist */
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP);
	int state = dice(seed), fd;
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		T_DICE(state, per_65536),
		/* XDP_DROP */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
		T_GO_ON(next),
		{ .code = BPF_JMP | BPF_EXIT },
	};

	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "t_drop", "GPL", code, sizeof(code) / sizeof(code[0]),
			   &o);
	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* The host's program on its NIC, and a map by which another program can call it. */
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
	CHECK(b.link >= 0 && !bpf_obj_get_info_by_fd(b.link, &info, &len), "%s: %s", path,
	      strerror(errno));
	b.prog = bpf_prog_get_fd_by_id(info.prog_id);
	b.next = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "t_next", 4, 4, 1, NULL);
	CHECK(b.prog >= 0 && b.next >= 0 && !bpf_map_update_elem(b.next, &zero, &b.prog, BPF_ANY),
	      "%s", strerror(errno));
	return b;
}

/* Updates the link to @fd. Returns the program that this replaces. */
T_FN int behind_put(struct behind b, int fd)
{
	CHECK(!bpf_link_update(b.link, fd, NULL), "%s", strerror(errno));
	close(fd);
	close(b.link);
	return b.prog;
}

/*
 * Updates the link of @host to a program that drops frames and calls the replaced program for the
 * rest. Returns the replaced program.
 */
T_FN int make_lossy(unsigned int host, uint32_t per_65536, uint64_t seed)
{
	struct behind b = behind_open(host);

	return behind_put(b, dropper(per_65536, seed, b.next));
}

/*
 * Restores the program that make_lossy() returned, unless a daemon that was restarted has attached
 * its own meanwhile.
 */
T_FN void make_whole(unsigned int host, int prog)
{
	struct bpf_prog_info info = {};
	struct bpf_link_info at = {};
	uint32_t len = sizeof(at);
	char path[384];
	int link, now;

	snprintf(path, sizeof(path), "%s/links/xdp-eth0", rack.dir[rack_host(host)]);
	link = bpf_obj_get(path);
	CHECK(link >= 0 && !bpf_obj_get_info_by_fd(link, &at, &len), "%s: %s", path,
	      strerror(errno));
	now = bpf_prog_get_fd_by_id(at.prog_id);
	len = sizeof(info);
	CHECK(now >= 0 && !bpf_obj_get_info_by_fd(now, &info, &len), "%s", strerror(errno));
	if (!strcmp(info.name, "t_drop"))
		CHECK(!bpf_link_update(link, prog, NULL), "%s", strerror(errno));
	close(now);
	close(link);
	close(prog);
}

/* Loads a tc program that drops frames by the dice @state, but no NAKs. */
T_FN int dropper_tc(uint32_t per_65536, int state)
{
	int fd;
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		/* Shorter frames end here with 0, TC_ACT_OK. Only link frames are that short. */
		{ .code = BPF_LD | BPF_ABS | BPF_B, .imm = OPCODE_AT },
		/* jumps over the dice and the two instructions after it */
		{ .code = BPF_JMP | BPF_JEQ | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = BL_OPCODE_BYTE(BL_OP_NAK),
		  .off = T_DICE_LEN + 2 },
		T_DICE(state, per_65536),
		/* TC_ACT_SHOT */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 2 },
		{ .code = BPF_JMP | BPF_EXIT },
		/* TC_ACT_UNSPEC: continue with the next program */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "t_drop", "GPL", code,
			   sizeof(code) / sizeof(code[0]), NULL);
	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* The program of make_lossy_but_naks() on a host. */
static struct lossy_nic {
	bool made;
	int dice, link; /* link -1: the program is a filter */
} lossy_nic[LAB_HOSTS_MAX];

/* Prints what the programs of make_lossy_but_naks() did. Returns how many frames they dropped. */
T_FN uint64_t lossy_but_naks_say(void)
{
	uint64_t dropped = 0;
	unsigned int i;

	for (i = 0; i < LAB_HOSTS_MAX; i++) {
		const struct lossy_nic *l = &lossy_nic[i];
		struct bpf_link_info info = {};
		uint32_t len = sizeof(info), zero = 0;
		struct t_dice d;

		if (!l->made)
			continue;
		CHECK(!bpf_map_lookup_elem(l->dice, &zero, &d), "the dice of h%u: %s", i + 1,
		      strerror(errno));
		/* A tcx link has its ifindex where an XDP link has it; 0: it is detached. */
		CHECK(l->link < 0 ||
			      (!bpf_obj_get_info_by_fd(l->link, &info, &len) && info.xdp.ifindex),
		      "the dropping program of h%u is gone, after %" PRIu64 " frames", i + 1,
		      d.frames);
		fprintf(stderr, "  h%u: %" PRIu64 " of %" PRIu64 " outgoing frames were dropped\n",
			i + 1, d.dropped, d.frames);
		dropped += d.dropped;
	}
	return dropped;
}

/*
 * Drops frames that @host sends, before barline's own programs see them. The descriptor of the link
 * stays open in this process, so the link is detached when the case ends.
 */
T_FN void make_lossy_but_naks(unsigned int host, uint32_t per_65536, uint64_t seed)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), state = dice(seed),
	    prog = dropper_tc(per_65536, state), link, index;

	rack_enter(rack_host(host));
	index = (int)if_nametoindex("eth0");
	LIBBPF_OPTS(bpf_link_create_opts, o, .flags = TCX_BEFORE);
	link = bpf_link_create(prog, index, (enum bpf_attach_type)TCX_EGRESS, &o);
	if (link < 0) {
		/* Kernels before 6.6 get a filter with a better priority than barline's. */
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = index, .attach_point = BPF_TC_EGRESS);
		LIBBPF_OPTS(bpf_tc_opts, t, .handle = 1, .priority = 1, .prog_fd = prog);

		CHECK(errno == EINVAL, "%s", strerror(errno));
		bpf_tc_hook_create(&hook);
		CHECK(!bpf_tc_attach(&hook, &t), "%s", strerror(errno));
	}
	lossy_nic[host] = (struct lossy_nic){ .made = true, .dice = state, .link = link };
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
}

#endif
