/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every *_core.h needs to be compiled for BPF and natively alike. No ctx, no map, no clock here.
 */
#ifndef BARLINE_CORE_H
#define BARLINE_CORE_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define BL_CORE static __always_inline __attribute__((unused))

/* Shared with another CPU or process: one access, not torn, not repeated. The place of use says what it pairs with. */
#define BL_READ_ONCE(x)	    (*(const volatile __typeof__(x) *)&(x))
#define BL_WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
/* Keeps the compiler from moving memory accesses across; x86 keeps stores in order with stores, and loads with loads. */
#define BL_BARRIER()	    __asm__ volatile("" ::: "memory")

BL_CORE __u64 bl_min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

BL_CORE __u64 bl_max64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

#endif
