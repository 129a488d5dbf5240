/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long an endpoint's process has held others up, and whether that is too long.
 *
 * The daemon samples each process a few times per limit. The age of what stands still is the time
 * over which samples found it unchanged. A sample counts for two sampling intervals at most: a
 * machine that stood still as a whole, daemon and process, is no process's fault.
 *
 * Example: a limit of 2000 ms, a sample every 250 ms. A process is stopped in the middle of a send,
 * with 7000 in flight. The samples at 0, 250, ... 2000 ms find 7000, so at 2000 ms it is 2000 ms
 * old: BL_OUT_IN_FLIGHT. If the machine had stood still from 500 to 9500 ms, the sample at 9500
 * would have counted for 500 ms.
 *
 * Pure: time is an argument.
 */
#ifndef BARLINE_STANDSTILL_CORE_H
#define BARLINE_STANDSTILL_CORE_H

#include <stdbool.h>

#include "maps/host_abi.h"

#define BL_SAMPLES_PER_LIMIT 8

/* struct bl_still_view - one sample of what others may wait for. */
struct bl_still_view {
	__u64 ts, hold, state, turn; /* of its line (struct bl_inflight) */
	__u64 read, written;         /* positions in its ring */
	__u64 bus;                   /* bus time of the sample */
};

enum bl_still_what { BL_STILL_IN_FLIGHT, BL_STILL_WINDOW, BL_STILL_RING, BL_STILL_COUNT };

/* struct bl_still - what the last sample found, and for how long that has stood still. */
struct bl_still {
	bool seen; /* there was a sample before */
	__u64 at_ns;
	__u64 age_ns[BL_STILL_COUNT];
	struct bl_still_view last;
};

static inline bool bl_still_open(__u64 word)
{
	return word && word != BL_TIME_NONE;
}

/* Whether what stands still is unchanged from @a to @b, and somebody waits for it. */
static inline bool bl_still_stands(const struct bl_still_view *a, const struct bl_still_view *b,
				   enum bl_still_what what)
{
	bool idle = a->turn == b->turn;

	switch (what) {
	case BL_STILL_IN_FLIGHT:
		/* A time from before the last sample is no new send: a send notes the clock. */
		return bl_still_open(b->ts) && bl_still_open(a->ts) &&
		       (a->ts == b->ts || b->ts < a->bus);
	case BL_STILL_WINDOW:
		/*
		 * A process that works with its window is not to blame for a receiver that does not
		 * answer.
		 */
		if (!idle)
			return false;
		if (bl_still_open(b->hold) && a->hold == b->hold)
			return true;
		return (__u32)b->state != (__u32)(b->state >> 32) &&
		       (__u32)a->state == (__u32)b->state;
	case BL_STILL_RING:
		return b->read != b->written && a->read == b->read;
	default:
		return false;
	}
}

/**
 * bl_still_sample - one sample at @now_ns (CLOCK_MONOTONIC).
 * Returns why the process has held others up for @limit_ns: the first reason in the order of enum
 * bl_still_what; BL_OUT_MEMBER: it has not.
 */
static inline enum bl_out_why bl_still_sample(struct bl_still *s, const struct bl_still_view *v,
					      __u64 now_ns, __u64 limit_ns)
{
	static const enum bl_out_why why[] = {
		[BL_STILL_IN_FLIGHT] = BL_OUT_IN_FLIGHT,
		[BL_STILL_WINDOW] = BL_OUT_WINDOW,
		[BL_STILL_RING] = BL_OUT_RING,
	};
	__u64 most = limit_ns / BL_SAMPLES_PER_LIMIT * 2, since = now_ns - s->at_ns;
	enum bl_out_why res = BL_OUT_MEMBER;
	unsigned int k;

	for (k = 0; k < BL_STILL_COUNT; k++) {
		if (s->seen && bl_still_stands(&s->last, v, (enum bl_still_what)k))
			s->age_ns[k] += since < most ? since : most;
		else
			s->age_ns[k] = 0;
		if (res == BL_OUT_MEMBER && s->age_ns[k] >= limit_ns)
			res = why[k];
	}
	s->seen = true;
	s->at_ns = now_ns;
	s->last = *v;
	return res;
}

/* struct bl_ring_walk - the records in a ring of @size bytes, from position @read to @written. */
struct bl_ring_walk {
	const __u8 *data;
	__u64 size, read, written;
};

/**
 * bl_ring_awaited - whether somebody waits for the process to read its ring, which has a message or
 * a question. Answers to what the process sent itself (credits, windows) hold up nobody else. The
 * ring may be written meanwhile, so a malformed record ends the walk with true. So does a position
 * that no reader can have: the process writes @read, and the walk must not take longer than once
 * around the ring.
 */
static inline bool bl_ring_awaited(const struct bl_ring_walk *w)
{
	__u64 at = w->read;

	if (w->written - at > w->size)
		return true;
	while (at < w->written) {
		/*
		 * A copy. The header of a record is its length with two flag bits, then the offset
		 * of its page (kernel/bpf/ringbuf.c).
		 */
		const __u8 *p = w->data + (at & (w->size - 1));
		__u32 head = *(const volatile __u32 *)p, len = head & ~(3u << 30);

		if (head & 1u << 31 || len > w->size)
			return true; /* busy: it is being written */
		if (!(head & 1u << 30)) {
			switch (((const volatile struct bl_rec *)(p + 8))->opcode) {
			case BL_OP_DATA:
			case BL_OP_FRAG:
			case BL_OP_PROBE:
			case BL_OP_PREP:
			case BL_OP_OPEN:
				return true;
			}
		}
		at += (len + 8 + 7) & ~7ULL;
	}
	return false;
}

#endif
