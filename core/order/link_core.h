/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a link a FIFO? The sender counts the ordered frames that it puts on the link, and each beacon
 * says how many went before it. The receiver counts what comes. On a FIFO that loses nothing the
 * difference never changes.
 *
 * It rises by n: n frames that the beacon counts have not come. They were lost, or the beacon has
 * overtaken them. It falls again by n: n of them have come after all, behind a beacon whose barrier
 * may already have passed them. Only a queue that changes the order does that. What is missing for
 * BL_LINK_SETTLE_NS is lost.
 *
 * It falls by n although none was missing: n frames have come before a beacon that had not counted
 * them. That harms nothing, since its barrier is older than they are, and it proves nothing: the
 * CPU of the beacon may have been interrupted between reading the counts and queueing it, for any
 * number of frames of other CPUs. (Or a stranger adds frames to the link, or a cable doubles them.)
 * They are counted as raced.
 *
 * Example, base 0: beacons say 10, 20, 20, 30; when they arrive, 10, 14, 20, 30 frames have come.
 * The difference is 0, 6, 0, 0: 6 frames were overtaken by the second beacon, and none is lost. If
 * the last two come as 14 and 24, the difference stays at 6, and 6 are lost a second later.
 *
 * A host sends on several CPUs. Between counting a frame and queueing it, a CPU may be passed by
 * another, so each other CPU that was active of late explains one of its skbs: @racing of the
 * beacon. No more missing frames than that which come after all are counted as raced, too. They do
 * no harm: a frame between the two is still in flight for the barrier of the beacon. A switch
 * counts each lane on one CPU, and its @racing is 0.
 *
 * Not here: where the counts are kept (maps/link_abi.h).
 */
#ifndef BARLINE_LINK_CORE_H
#define BARLINE_LINK_CORE_H

#include "core/core.h"
#include "core/clock_core.h"
#include "maps/link_abi.h"

/* Longer than a frame waits in a queue: what is missing then does not come. */
#define BL_LINK_SETTLE_NS 1000000000ULL
/* After a longer silence the link was down, and its frames are not compared with those before. */
#define BL_LINK_SILENT_NS 10000000000ULL
/* How long a CPU that sent may count as one that is sending: it may be interrupted in between. */
#define BL_LINK_RACE_NS 10000000ULL

/**
 * bl_link_tick - bus time @now in units of 2^20 ns, modulo 2^16. Beacons carry one link body per
 * tick, link and lane. A body costs a switch some 20 ns when it comes, and 10 ns, or 35 ns with its
 * tag, in each of the beacons that it clones to its ports; a thousand bodies a second tell as much
 * about a clock, and about a queue that is no FIFO.
 */
BL_CORE __u16 bl_link_tick(__u64 now)
{
	return (__u16)(now >> 20);
}

/** struct bl_link_note - what a beacon says, and what this node had received when it came. */
struct bl_link_note {
	__u32 node;     /* node id of the sender */
	__u32 frames;   /* as in struct bl_link_body, host order */
	__u16 run;      /* the same */
	__u16 racing;   /* the same */
	__u32 reserved; /* 0 */
	__u64 received; /* frames that came on this lane before */
	__u64 now;      /* bus time, ns */
};

/**
 * bl_link_steady - whether the beacon changes nothing but the times in @l: nearly every one does.
 */
BL_CORE int bl_link_steady(const struct bl_link_lane *l, const struct bl_link_note *n)
{
	return l->run == n->run && l->node == n->node && !l->apart &&
	       n->frames - (__u32)n->received == l->ahead && n->received >= l->received &&
	       n->now - l->heard_ns <= BL_LINK_SILENT_NS;
}

/* bl_link_heard - records the beacon in @l, after all else. */
BL_CORE void bl_link_heard(struct bl_link_lane *l, const struct bl_link_note *n)
{
	l->received = n->received;
	l->heard_ns = n->now;
	l->racing = n->racing;
}

/* What is missing does not come any more, and what came too early belongs to no beacon. */
BL_CORE void bl_link_settle(struct bl_link_lane *l)
{
	if (l->apart > 0)
		l->lost += (__u32)l->apart;
	l->apart = 0;
}

/*
 * Begins to compare anew: the neighbour or this node was started again, or has been away. What was
 * counted of the same node before is kept.
 */
BL_CORE void bl_link_begin(struct bl_link_lane *l, const struct bl_link_note *n)
{
	if (l->node != n->node) {
		struct bl_link_lane none = { 0 };

		*l = none;
	}
	bl_link_settle(l);
	l->node = n->node;
	l->run = n->run;
	l->ahead = n->frames - (__u32)n->received;
	l->changed_ns = n->now;
}

/*
 * The difference has fallen by @fall frames, and is @l->apart now. Returns how many of them were
 * overtaken.
 */
BL_CORE __u32 bl_link_fell(struct bl_link_lane *l, __u32 fall, __u32 slack)
{
	__u32 early = l->apart < 0 ? 0 - (__u32)l->apart : 0, late;

	if (early > fall)
		early = fall;
	late = fall - early;
	if (late <= slack) {
		l->raced += fall;
		return 0;
	}
	l->raced += early;
	l->overtaken += late;
	if (late > l->worst)
		l->worst = late;
	return late;
}

/**
 * bl_link_beacon - compares a beacon with what came, and records it. Returns by how many frames
 * @l->overtaken has risen.
 */
BL_CORE __u32 bl_link_beacon(struct bl_link_lane *l, const struct bl_link_note *n)
{
	__u32 ahead = n->frames - (__u32)n->received, fell = 0, slack;
	__s32 rose = (__s32)(ahead - l->ahead);

	if (l->run != n->run || l->node != n->node || n->received < l->received ||
	    n->now - l->heard_ns > BL_LINK_SILENT_NS) {
		bl_link_begin(l, n);
		bl_link_heard(l, n);
		return 0;
	}
	if (rose) {
		slack = n->racing > l->racing ? n->racing : l->racing;
		l->apart = (__s32)((__u32)l->apart + (__u32)rose);
		if (rose < 0)
			fell = bl_link_fell(l, 0 - (__u32)rose, slack);
		l->ahead = ahead;
		l->changed_ns = n->now;
	} else if (l->apart && n->now - l->changed_ns > BL_LINK_SETTLE_NS) {
		bl_link_settle(l);
	}
	bl_link_heard(l, n);
	return fell;
}

/** bl_link_lost - frames of @l that are missing, with those that may still come. */
BL_CORE __u64 bl_link_lost(const struct bl_link_lane *l)
{
	return l->lost + (l->apart > 0 ? (__u32)l->apart : 0);
}

/** bl_link_sent - counts @n frames of one skb that a host's CPU puts into the queue at @now. */
BL_CORE void bl_link_sent(struct bl_link_sent *s, __u32 n, __u64 now)
{
	if (now - s->at_ns > BL_LINK_RACE_NS || n > s->most)
		s->most = n;
	BL_WRITE_ONCE(s->at_ns, now);
	__sync_fetch_and_add(&s->frames, n);
}

/**
 * bl_link_racing - frames of another CPU that may be between its count and the queue at @now, or
 * follow at once.
 */
BL_CORE __u32 bl_link_racing(const struct bl_link_sent *s, __u64 now)
{
	__u64 at = BL_READ_ONCE(s->at_ns);

	/* It may have counted after @now was read. */
	return at && (now - at <= BL_LINK_RACE_NS || at - now <= BL_LINK_RACE_NS) ? s->most : 0;
}

/**
 * bl_gso_frames - frames of a UDP GSO send: headers that lie @step bytes apart in @len bytes, the
 * first one at their beginning. @step: not 0
 */
BL_CORE __u32 bl_gso_frames(__u32 len, __u32 step)
{
	return len < sizeof(struct bl_hdr) ? 0 : (len - (__u32)sizeof(struct bl_hdr)) / step + 1;
}

/** bl_link_sat16 - @v as a field of 16 bits; the greatest value stands for all above it. */
BL_CORE __u16 bl_link_sat16(__u64 v)
{
	return v < 0xffff ? (__u16)v : 0xffff;
}

/** bl_link_sat32 - the same for 32 bits. */
BL_CORE __u32 bl_link_sat32(__u64 v)
{
	return v < 0xffffffff ? (__u32)v : 0xffffffff;
}

#endif
