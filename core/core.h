/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every *_core.h needs to be compiled for BPF and natively alike. No ctx, no map, no clock
 * here.
 */
#ifndef BARLINE_CORE_H
#define BARLINE_CORE_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define BL_CORE static __always_inline __attribute__((unused))

/*
 * Shared with another CPU or process: one access, not torn, not repeated. The place of use says
 * what it pairs with.
 */
#define BL_READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define BL_WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
/*
 * Keeps the compiler from moving memory accesses across; x86 keeps stores in order with stores, and
 * loads with loads.
 */
#define BL_BARRIER() __asm__ volatile("" ::: "memory")

/*
 * A constant that the compiler must take from a register (it would unroll the loop that it ends);
 * the verifier still knows it.
 */
#define BL_OPAQUE(v) __asm__("" : "+r"(v))

BL_CORE __u64 bl_min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

BL_CORE __u64 bl_max64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/*
 * Conditions as masks, where each branch would double the ways that the verifier follows: all ones
 * if @a < @b, else 0; both below 2^63. The compiler must not see what it is: it would make a branch
 * of it.
 */
BL_CORE __u64 bl_mask_below(__u64 a, __u64 b)
{
	__u64 d = a - b;

	__asm__("" : "+r"(d));
	return (__u64)((__s64)d >> 63);
}

/**
 * bl_max_mask - bl_max64() of two of which now this, now that is the greater: there is no
 * conditional move in BPF, and a branch that nobody can predict costs more. Both below 2^63.
 */
BL_CORE __u64 bl_max_mask(__u64 a, __u64 b)
{
	return a + ((b - a) & bl_mask_below(a, b));
}

/**
 * bl_lowest - number of the lowest bit that is set; @v not 0. clang 16 crashes on __builtin_ctzll()
 * for BPF, in any disguise: it wants a table of constants, which BPF has not. So the bits below are
 * counted, and the compiler does not see that it is those below.
 */
BL_CORE __u32 bl_lowest(__u64 v)
{
	v = (v & -v) - 1;
	__asm__("" : "+r"(v));
	return (__u32)__builtin_popcountll(v);
}

#endif
