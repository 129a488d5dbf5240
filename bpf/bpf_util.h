/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the hooks share: counting and verdicts, the clock, and keeping variables where the verifier
 * can see them. BPF side only.
 */
#ifndef BARLINE_BPF_UTIL_H
#define BARLINE_BPF_UTIL_H

#include "bpf/role.h"
#include "core/clock_core.h"
#include "maps/reasons_abi.h"

/* The compiler must use the register that was checked, not a copy of it (DESIGN 6). */
#define BL_SEEN(var) __asm__ volatile("" : "+r"(var))

/**
 * bl_count - @key: port of a switch, hook of a host. The only way to "counts", whose value differs
 * by role.
 */
static __always_inline void bl_count(__u32 key, enum bl_reason r)
{
	__u32 reason = r;
	__typeof__(counts.value) c = bpf_map_lookup_elem(&counts, &reason);

	BL_SEEN(key);
	if (c && key < sizeof(c->n) / sizeof(c->n[0])) {
		BL_SEEN(key);
		c->n[key]++; /* per CPU; XDP and tc of one CPU do not interrupt each other */
	}
}

/** bl_count_n - @n times. */
static __always_inline void bl_count_n(__u32 key, enum bl_reason r, __u32 n)
{
	__u32 reason = r;
	__typeof__(counts.value) c = n ? bpf_map_lookup_elem(&counts, &reason) : NULL;

	BL_SEEN(key);
	if (c && key < sizeof(c->n) / sizeof(c->n[0])) {
		BL_SEEN(key);
		c->n[key] += n;
	}
}

static __always_inline int bl_xdp_action(enum bl_reason r)
{
	if (__builtin_expect(r == BL_R_FORWARDED, 1))
		return XDP_REDIRECT; /* what a busy switch does; the others are too far apart for
					one look at a word of bits */
	switch (r) {
	case BL_R_NOT_OURS:
	case BL_R_TO_KERNEL:
		return XDP_PASS;
	case BL_R_RELAYED:
	case BL_R_STEERED:
	case BL_R_PASSED_ON:
	case BL_R_TOKEN_PASSED:
	case BL_R_PACED:
	case BL_R_BEACON_PACED:
	case BL_R_TO_APP:
		return XDP_REDIRECT;
	case BL_R_TOKEN_USED:
	case BL_R_TOKEN_RESENT:
	case BL_R_TOKEN_STOP:
	case BL_R_PREPARED:
	case BL_R_RECALLED:
	case BL_R_LEFT:
	case BL_R_COMMITTED:
		return XDP_TX;
	case BL_R_CLONE_SENT:
		return XDP_PASS; /* of a devmap program: send it */
	default:
		return XDP_DROP; /* taken in, copied into a queue, or refused */
	}
}

/**
 * bl_done - the end of every XDP program: counts the one reason that the frame ended for, and says
 * what that means.
 */
static __always_inline int bl_done(__u32 key, enum bl_reason r)
{
	bl_count(key, r);
	return bl_xdp_action(r);
}

/**
 * struct bl_now - one reading of the clock. @bus: bus time; @limit: latest time that may be
 * believed; @ok: the record may be used.
 */
struct bl_now {
	__u64 bus;
	__u64 limit;
	int ok;
};

/* At @mono, of CLOCK_MONOTONIC. */
static __always_inline void bl_clock_now(__u64 mono, struct bl_now *n)
{
	__u32 zero = 0;
	const struct bl_clock *c = bpf_map_lookup_elem(&clock, &zero);

	n->ok = 0;
	n->bus = n->limit = 0;
	if (!c)
		return;
	n->ok = bl_clock_usable(c, mono);
	n->bus = bl_clock_at(c, mono);
	n->limit = n->bus + bl_clock_bound(c, mono);
}

static __always_inline void bl_read_clock(struct bl_now *n)
{
	bl_clock_now(bpf_ktime_get_ns(), n);
}

#endif
