// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The stack of the programs, as Linux 6.1 counts it: the functions of a chain of calls have 512
 * bytes together, each rounded up to 32, and there are at most 8 of them (check_max_stack_depth()
 * in kernel/bpf/verifier.c). Later kernels round up to 16 and load what 6.1 refuses, so that a
 * program that has grown by one variable would be noticed only there.
 *
 * Example: bl_switch_xdp 232, bl_tick 80, expire_lanes 12, bl_leaf_changed 56, bl_tree_put 64 and
 * bl_tree_pair_least 0 make 256 + 96 + 32 + 64 + 64 + 32 = 544: 6.1 refuses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>

#include "host.skel.h"
#include "maps/auth_abi.h"
#include "switch.skel.h"

#define STACK_MAX 512
#define CALLS_MAX 8
#define FUNCS_MAX 128
#define ROUND_TO  32

/** struct func - a function of a program: insns [@begin, @end). */
struct func {
	size_t begin, end;
	unsigned int depth; /* bytes below the frame pointer that it reaches */
};

/** struct chain - the deepest chain of calls so far. */
struct chain {
	unsigned int bytes, calls;
};

static struct func funcs[FUNCS_MAX];
static unsigned int nfuncs;

/* A call of a function of the program, or the address of one, as bpf_loop() takes it. */
static bool names_function(const struct bpf_insn *i)
{
	return (i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL) ||
	       (i->code == (BPF_LD | BPF_IMM | BPF_DW) && i->src_reg == BPF_PSEUDO_FUNC);
}

static size_t function_named(const struct bpf_insn *insns, size_t at)
{
	return (size_t)((long)at + insns[at].imm + 1);
}

static void add_function(size_t begin)
{
	unsigned int k;

	for (k = 0; k < nfuncs; k++)
		if (funcs[k].begin == begin)
			return;
	assert_true(nfuncs < FUNCS_MAX);
	for (k = nfuncs++; k > 0 && funcs[k - 1].begin > begin; k--)
		funcs[k] = funcs[k - 1];
	funcs[k] = (struct func){ .begin = begin };
}

static void reach(struct func *f, int offset)
{
	if (offset < 0 && (unsigned int)-offset > f->depth)
		f->depth = (unsigned int)-offset;
}

/* How deep a function goes: what it reads and writes, and what it takes the address of. */
static void measure(struct func *f, const struct bpf_insn *insns)
{
	int copy = -1; /* the register that the insn before made a copy of the frame pointer */
	size_t i;

	for (i = f->begin; i < f->end; i++) {
		const struct bpf_insn *in = &insns[i];
		int class = BPF_CLASS(in->code);

		if (class == BPF_LDX && in->src_reg == BPF_REG_10)
			reach(f, in->off);
		if ((class == BPF_STX || class == BPF_ST) && in->dst_reg == BPF_REG_10)
			reach(f, in->off);
		if (in->code == (BPF_ALU64 | BPF_ADD | BPF_K) && in->dst_reg == copy)
			reach(f, in->imm);
		copy = in->code == (BPF_ALU64 | BPF_MOV | BPF_X) && in->src_reg == BPF_REG_10
			       ? in->dst_reg
			       : -1;
		if (in->code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
}

static void follow(const struct func *f, const struct bpf_insn *insns, struct chain at,
		   struct chain *most)
{
	unsigned int depth = f->depth ? f->depth : 1, k;
	size_t i;

	at.bytes += (depth + ROUND_TO - 1) / ROUND_TO * ROUND_TO;
	assert_true(++at.calls <= CALLS_MAX);
	if (at.bytes > most->bytes)
		*most = at;
	for (i = f->begin; i < f->end; i++) {
		if (names_function(&insns[i]))
			for (k = 0; k < nfuncs; k++)
				if (funcs[k].begin == function_named(insns, i))
					follow(&funcs[k], insns, at, most);
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
}

/* Returns the deepest chain of calls of a loaded program. */
static struct chain deepest(const struct bpf_program *p)
{
	const struct bpf_insn *insns = bpf_program__insns(p);
	size_t n = bpf_program__insn_cnt(p), i;
	struct chain most = { 0 };
	unsigned int k;

	nfuncs = 0;
	add_function(0);
	for (i = 0; i < n; i++) {
		if (names_function(&insns[i]))
			add_function(function_named(insns, i));
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
	for (k = 0; k < nfuncs; k++) {
		funcs[k].end = k + 1 < nfuncs ? funcs[k + 1].begin : n;
		measure(&funcs[k], insns);
	}
	follow(&funcs[0], insns, (struct chain){ 0 }, &most);
	return most;
}

static void check_object(struct bpf_object *obj)
{
	struct bpf_program *p;
	struct chain c;

	bpf_object__for_each_program(p, obj)
	{
		c = deepest(p);
		print_message("%s: %u bytes in %u calls\n", bpf_program__name(p), c.bytes, c.calls);
		assert_in_range(c.bytes, 1, STACK_MAX);
	}
}

static void stack__switch_fits_6_1(void **state)
{
	struct bl_switch *sk = bl_switch__open();

	assert_non_null(sk);
	sk->rodata->bl_auth = BL_AUTH_STRICT;
	assert_int_equal(bl_switch__load(sk), 0);
	check_object(sk->obj);
	bl_switch__destroy(sk);
}

static void stack__host_fits_6_1(void **state)
{
	struct bl_host *sk = bl_host__open();

	assert_non_null(sk);
	sk->rodata->bl_auth = BL_AUTH_STRICT;
	assert_int_equal(bl_host__load(sk), 0);
	check_object(sk->obj);
	bl_host__destroy(sk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack__switch_fits_6_1),
		cmocka_unit_test(stack__host_fits_6_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
