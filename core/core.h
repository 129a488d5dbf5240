/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every *_core.h needs so that it compiles both for BPF and natively. A core header has no
 * ctx, no map and no clock: everything is an argument, so unit tests can run it natively with
 * sanitizers.
 *
 * Example: bl_tree_rise() in core/order/barrier_core.h is declared BL_CORE, and is inlined into
 * bl_switch_xdp as well as into tests/unit/test_barrier_core.c.
 */
#ifndef BARLINE_CORE_H
#define BARLINE_CORE_H

#include <linux/types.h>
#ifdef __bpf__
#include <bpf/bpf_helpers.h>
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define BL_CORE static __always_inline __attribute__((unused))

/*
 * BL_CORE, but in BPF programs a function that the verifier checks once by itself, and not in each
 * place that calls it, along each path that leads there. It returns an int, and tests each pointer
 * that it is given: callers never pass NULL, but the verifier does not know that. BL_CORE_GLOBAL:
 * in the host's programs only.
 */
#ifdef __bpf__
#define BL_CORE_CALLED __attribute__((noinline))
#else
#define BL_CORE_CALLED BL_CORE
#endif
#ifdef BL_ROLE_HOST
#define BL_CORE_GLOBAL BL_CORE_CALLED
#else
#define BL_CORE_GLOBAL BL_CORE
#endif

/*
 * Access to memory that another CPU or process shares: a single access, not torn and not repeated.
 * The place of use says what it pairs with.
 */
#define BL_READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define BL_WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
/*
 * Keeps the compiler from moving memory accesses across it. x86 keeps stores in order with stores,
 * and loads with loads.
 */
#define BL_BARRIER() __asm__ volatile("" ::: "memory")

/*
 * Makes the compiler take a constant from a register; otherwise it would unroll the loop that the
 * constant bounds. The verifier still knows the value.
 */
#define BL_OPAQUE(v) __asm__("" : "+r"(v))

/*
 * Makes @v a number of its own for the verifier, which otherwise takes what it learns of a number
 * for all its copies, too, and so distinguishes more states. Costs an instruction.
 */
#ifdef __bpf__
#define BL_UNLINK(v) __asm__("%0 |= 0" : "+r"(v))
#else
#define BL_UNLINK(v) ((void)(v))
#endif

/*
 * Calls @fn(k, @arg) for each k below @n, until one returns 1. @fn is a static function, which must
 * bound k itself where k is an index.
 *
 * The verifier follows the body of an ordinary loop once for each round, and the body of this one
 * only once. A round costs a call, so this is for loops that are rare. The flags are 0, which the
 * kernel does not know, or it would inline the loop: on Linux 6.18 it moves its data of the whole
 * program for that, and gives the CPU to nobody else meanwhile (docs/design-notes.md, "What a load
 * costs"). Loops on the way of every frame are a bpf_loop() with flags of 0.
 */
#ifdef __bpf__
#define BL_LOOP(n, fn, arg) bpf_loop(n, fn, arg, bpf_ktime_get_ns() >> 63)
#else
#define BL_LOOP(n, fn, arg)                        \
	do {                                       \
		for (__u32 k_ = 0; k_ < (n); k_++) \
			if ((fn)(k_, arg))         \
				break;             \
	} while (0)
#endif

BL_CORE __u64 bl_min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

BL_CORE __u64 bl_max64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/*
 * Conditions as masks, where each branch would double the paths that the verifier follows: all ones
 * if @a < @b, else 0. Both must be below 2^63. The compiler must not recognise this: it would turn
 * it into a branch.
 */
BL_CORE __u64 bl_mask_below(__u64 a, __u64 b)
{
	__u64 d = a - b;

	__asm__("" : "+r"(d));
	return (__u64)((__s64)d >> 63);
}

/**
 * bl_max_mask - a branch-free bl_max64() for operands whose order cannot be predicted: BPF has no
 * conditional move, and a mispredicted branch costs more. Both must be below 2^63.
 */
BL_CORE __u64 bl_max_mask(__u64 a, __u64 b)
{
	return a + ((b - a) & bl_mask_below(a, b));
}

/**
 * bl_lowest - number of the lowest bit that is set in @v, which is not 0. clang 16 crashes on
 * __builtin_ctzll() for BPF in any form, since it needs a table of constants, which BPF does not
 * have. So the bits below are counted, and hidden from the compiler.
 */
BL_CORE __u32 bl_lowest(__u64 v)
{
	v = (v & -v) - 1;
	__asm__("" : "+r"(v));
	return (__u32)__builtin_popcountll(v);
}

#endif
