/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of both roles share: counting, the end of a program, and the clock. BPF side
 * only.
 *
 * Example: a host program that appended a message to an endpoint's ring ends with
 * bl_done(ctx, BL_HC_INGRESS, BL_R_STORED). That adds 1 to this CPU's n[BL_HC_INGRESS] in the entry
 * BL_R_STORED of "counts", and returns XDP_DROP, because the frame ends here.
 *
 * Not here: the verdicts of tc programs (bpf/host/host.bpf.c, bpf/switch/guard.h).
 */
#ifndef BARLINE_BPF_UTIL_H
#define BARLINE_BPF_UTIL_H

#include "bpf/role.h"
#include "bpf/capture.h"
#include "bpf/verdict.h"
#include "core/clock_core.h"
#include "maps/reasons_abi.h"

/*
 * 0: the node was started without admission, and nothing can turn it on but the next start. The
 * loader sets it before it loads the programs, so the verifier sees a constant and does not follow
 * the branches of admission.
 */
const volatile __u8 bl_admits = 1;
/*
 * In the object for nodes that have neither admission nor authentication (BL_PLAIN, Makefile), the
 * compiler knows it, so that a program is without the functions that it would never call. The
 * kernel needs time for each of its instructions, followed or not, and gives the CPU to nobody else
 * meanwhile. The variable stays: the read-only data of both objects are alike.
 */
#ifdef BL_PLAIN
#define bl_admits 0
#endif

/*
 * BL_ROOM(N) - room in a program for N instructions that the kernel inserts where maps are looked
 * up, five or six for each. Since Linux 6.16 it takes the memory of instructions that were removed
 * before; without any, it copies all that it knows of the program at every few lookups, and lets
 * nobody else have the CPU until it is done (docs/design-notes.md, "What a load costs"). The
 * verifier sees in the read-only data that these instructions are never reached, and removes them.
 */
const volatile __u8 bl_never = 0;
#ifdef __bpf__
#define BL_ROOM(n)                                                                    \
	do {                                                                          \
		if (bl_never)                                                         \
			__asm__ volatile(".rept " #n "\n\tr0 = 0\n\t.endr" ::: "r0"); \
	} while (0)
#else
#define BL_ROOM(n)
#endif

/*
 * 0: every frame fits one buffer, since no MTU of the node is above BL_XDP_MTU_MAX. 1: the programs
 * are loaded with BPF_F_XDP_HAS_FRAGS, and [data, data_end) is the first buffer of a frame.
 */
const volatile __u8 bl_frags = 0;

/*
 * Returns the length of the first buffer of a frame. BL_SEEN(): otherwise the compiler may keep one
 * of the pointers in 32 bits on the stack, which the verifier refuses.
 */
static __always_inline __u32 bl_buffer_len(const struct xdp_md *ctx)
{
	long data = (long)ctx->data, end = (long)ctx->data_end;

	BL_SEEN(data);
	BL_SEEN(end);
	return (__u32)(end - data);
}

/*
 * Returns the length of the frame with all its buffers. The headers are in the first one; what lies
 * behind them is read and written by helpers only (bpf_xdp_load_bytes()).
 */
static __always_inline __u32 bl_frame_len(struct xdp_md *ctx)
{
	if (bl_frags)
		return (__u32)bpf_xdp_get_buff_len(ctx);
	return bl_buffer_len(ctx);
}

/*
 * Returns the place @key of a value of "counts", NULL if there is none. @key in 64 bits: of 32, the
 * compiler would clear the upper ones once more, which takes three instructions of each frame.
 */
static __always_inline __u64 *bl_count_at(enum bl_reason r, __u64 key)
{
	__u32 reason = r;
	__typeof__(counts.value) c = bpf_map_lookup_elem(&counts, &reason);

	BL_SEEN(key);
	if (!c || key >= sizeof(c->n) / sizeof(c->n[0]))
		return NULL;
	BL_SEEN(key);
	return &c->n[key];
}

/* From the counter of a place's frames to that of its bytes. */
#define BL_COUNT_BYTES (sizeof(counts.value->n) / sizeof(counts.value->n[0]))

/**
 * bl_count - adds 1 to the counter of reason @r in "counts"; nothing else writes that map. For what
 * is no end of a frame, and for beacons. A lookup that fails counts nothing and changes no verdict.
 * @key: port of a switch, or BL_HC_* of a host; the value of "counts" differs by role
 */
static __always_inline void bl_count(__u32 key, enum bl_reason r)
{
	__u64 *n = bl_count_at(r, key);

	/* Per CPU: XDP and tc programs of one CPU do not interrupt each other. */
	if (n)
		++*n;
}

/** bl_count_n - adds @n to the counter of reason @r; see bl_count(). */
static __always_inline void bl_count_n(__u32 key, enum bl_reason r, __u32 n)
{
	__u64 *c = n ? bl_count_at(r, key) : NULL;

	if (c)
		*c += n;
}

/** bl_count_frames - counts @n frames of together @len bytes that ended for reason @r. */
static __always_inline void bl_count_frames(__u32 key, enum bl_reason r, __u32 n, __u64 len)
{
	__u64 *c = n ? bl_count_at(r, key) : NULL;

	if (c) {
		c[0] += n;
		c[BL_COUNT_BYTES] += len;
	}
}

/** bl_count_frame - counts a frame of @len bytes that ended for reason @r and is no beacon. */
static __always_inline void bl_count_frame(__u32 key, enum bl_reason r, __u32 len)
{
	bl_count_frames(key, r, 1, len);
}

/* Hands a frame that was counted to captures. Returns the verdict of reason @r. */
static __always_inline int bl_end(struct xdp_md *ctx, __u32 key, enum bl_reason r, __u32 dir)
{
	if (BL_CAPTURING())
		return bl_capture_xdp(ctx, key, r, dir);
	return bl_xdp_action(r);
}

/** bl_done_beacon - bl_done() for BL_R_BEACON and BL_R_RELAYED. */
static __always_inline int bl_done_beacon(struct xdp_md *ctx, __u32 key, enum bl_reason r)
{
	bl_count(key, r);
	return bl_end(ctx, key, r, BL_CAPTURE_IN);
}

/**
 * bl_done_len - bl_done() for a frame of @len bytes, which may have another length by now. Not for
 * beacons.
 */
static __always_inline int bl_done_len(struct xdp_md *ctx, __u32 key, enum bl_reason r, __u32 len)
{
	bl_count_frame(key, r, len);
	return bl_end(ctx, key, r, BL_CAPTURE_IN);
}

/**
 * bl_done_plain - bl_done() for a frame that bl_parse_plain() accepted. Its IP packet is in the
 * first buffer; if there are others, what they hold is not counted.
 */
static __always_inline int bl_done_plain(struct xdp_md *ctx, __u32 key, enum bl_reason r)
{
	__u64 *n = bl_count_at(r, key);

	/* The length is read last, so that no register has to keep it. */
	if (n) {
		++*n;
		n[BL_COUNT_BYTES] += bl_buffer_len(ctx);
	}
	return bl_end(ctx, key, r, BL_CAPTURE_IN);
}

/**
 * bl_done - ends an XDP program: counts the one reason that the frame ended for, hands the frame to
 * captures, and returns the verdict that belongs to it. The frame is as long as it arrived.
 * @key: as for bl_count().
 */
static __always_inline int bl_done(struct xdp_md *ctx, __u32 key, enum bl_reason r)
{
	__u64 *n;

	if (r == BL_R_BEACON || r == BL_R_RELAYED)
		return bl_done_beacon(ctx, key, r);
	n = bl_count_at(r, key);
	if (n) {
		++*n;
		n[BL_COUNT_BYTES] += bl_frame_len(ctx);
	}
	return bl_end(ctx, key, r, BL_CAPTURE_IN);
}

/** bl_done_out - bl_done() for a program whose frames leave the node. @len: as they leave, bytes */
static __always_inline int bl_done_out(struct xdp_md *ctx, __u32 key, enum bl_reason r, __u32 len)
{
	bl_count_frame(key, r, len);
	return bl_end(ctx, key, r, BL_CAPTURE_OUT);
}

/** bl_done_beacon_out - bl_done_out() for a reason of beacons, BL_BEACON_REASON(). */
static __always_inline int bl_done_beacon_out(struct xdp_md *ctx, __u32 key, enum bl_reason r)
{
	bl_count(key, r);
	return bl_end(ctx, key, r, BL_CAPTURE_OUT);
}

/** struct bl_now - one reading of the clock. */
struct bl_now {
	__u64 bus;   /* bus time, ns; 0 without a clock record */
	__u64 limit; /* latest time that may be accepted from others, ns: bus time plus the bound */
	int ok;      /* 0: the clock record must not be used */
};

/* Reads the clock record as of @mono, nanoseconds of CLOCK_MONOTONIC. */
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

/* Reads the clock record as of now. */
static __always_inline void bl_read_clock(struct bl_now *n)
{
	bl_clock_now(bpf_ktime_get_ns(), n);
}

#endif
