/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stands for libbpf's <bpf/bpf_helpers.h> where a program is compiled natively (tests/native/
 * native.h). Maps are declared as for BPF; the helpers are macros that pass what the declaration
 * says of a map on to native.c.
 */
#ifndef BARLINE_NATIVE_BPF_HELPERS_H
#define BARLINE_NATIVE_BPF_HELPERS_H

#include <linux/bpf.h>
#include <linux/types.h>

#include "tests/native/native.h"

#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name
/* of a map of maps; it has no value, and native_lookup() returns the inner map */
#define __array(name, val) \
	char *value;       \
	__typeof__(val) *name[]

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Programs call a map "clock", which is a function of libc. Names of maps are taken unexpanded. */
#define clock                 native_map_clock

#define NATIVE_UINT(m, field) (sizeof(*(m)->field) / sizeof(int))
/* What programs look up in a map of maps has no declaration: native_lookup() returns it. */
struct native_undeclared {
	int (*type)[1], (*max_entries)[1];
	char *key, *value;
};
#define NATIVE_IS_INNER(m) __builtin_types_compatible_p(__typeof__(m), void *)
#define NATIVE_DECLARED(m)                                                                    \
	((__typeof__(__builtin_choose_expr(NATIVE_IS_INNER(m), (struct native_undeclared *)0, \
					   m)))(m))
/* The map that the declaration @m is of. Found once for each place that uses it. */
#define NATIVE_MAP(m, name, key_size, value_size)                                       \
	__extension__({                                                                 \
		static struct native_map *at_;                                          \
		if (!at_)                                                               \
			at_ = native_map(m, (name) + 1, NATIVE_UINT(m, type), key_size, \
					 value_size, NATIVE_UINT(m, max_entries));      \
		at_;                                                                    \
	})
/* clang-format off */
#define NATIVE_KEYED(m, name) \
	NATIVE_MAP(m, name, sizeof(*(m)->key), sizeof(*(m)->value))
/* clang-format on */
#define NATIVE_UNKEYED(m, name) NATIVE_MAP(m, name, 0, sizeof(*(m)->value))

#define bpf_map_lookup_elem(m, k) \
	native_lookup(NATIVE_IS_INNER(m) ? (void *)(m) : NATIVE_KEYED(NATIVE_DECLARED(m), #m), k)
#define bpf_map_update_elem(m, k, v, flags) native_update(NATIVE_KEYED(m, #m), k, v, flags)
#define bpf_map_delete_elem(m, k)           native_delete(NATIVE_KEYED(m, #m), k)
#define bpf_map_push_elem(m, v, flags)      native_push(NATIVE_UNKEYED(m, #m), v)
#define bpf_map_pop_elem(m, v)              native_pop(NATIVE_UNKEYED(m, #m), v)

#define bpf_loop(n, fn, arg, flags)         \
	__extension__({                     \
		__u32 n_ = (n), i_;         \
		for (i_ = 0; i_ < n_; i_++) \
			if (fn(i_, arg))    \
				break;      \
		(long)i_;                   \
	})

#define bpf_spin_lock(l)                ((void)(l))
#define bpf_spin_unlock(l)              ((void)(l))
#define bpf_ktime_get_ns()              (native_now_ns)
#define bpf_ktime_get_coarse_ns()       (native_now_ns)
#define bpf_get_smp_processor_id()      (native_cpu)
#define bpf_get_prandom_u32()           native_random()
#define bpf_redirect_map(m, key, flags) native_redirect(NATIVE_KEYED(m, #m), key, flags)
#define bpf_redirect(ifindex, flags)    ((long)XDP_REDIRECT)
/* Nobody captures. */
#define bpf_perf_event_output(ctx, m, flags, data, size) ((void)(m), -2L)
/* Routes are not covered: no frame has one. */
#define bpf_fib_lookup(ctx, p, n, f)     ((long)BPF_FIB_LKUP_RET_NOT_FWDED)
#define bpf_tail_call(ctx, m, i)         ((void)0)

#define bpf_xdp_get_buff_len(ctx)        ((__u64)((ctx)->data_end - (ctx)->data))
#define bpf_xdp_adjust_tail(ctx, by)     native_adjust_tail(ctx, by)
#define bpf_xdp_load_bytes(c, o, p, n)   native_load_bytes(c, o, p, n)
#define bpf_xdp_store_bytes(c, o, p, n)  native_store_bytes(c, o, p, n)

#define bpf_ringbuf_reserve(r, n, flags) native_ring_reserve(r, n)
#define bpf_ringbuf_submit(p, flags)     native_ring_submit(p)
#define bpf_ringbuf_discard(p, flags)    native_ring_discard(p)

/* Programs of tc are compiled, but not run. */
#define bpf_skb_pull_data(s, n)                (-1L)
#define bpf_skb_load_bytes(s, o, p, n)         (-1L)
#define bpf_skb_store_bytes(s, o, p, n, f)     (-1L)
#define bpf_l4_csum_replace(s, o, from, to, f) (-1L)
#define bpf_csum_diff(f, fn, t, tn, seed)      ((__s64)0)
#define bpf_get_socket_cookie(s)               ((__u64)0)
#define bpf_clone_redirect(s, i, f)            (-1L)

#endif
