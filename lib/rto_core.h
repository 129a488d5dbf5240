/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a reliable frame is sent again (RFC 6298), per destination. Round trips are measured from
 * the send call to the moment at which the host's XDP program took the ACK in, so a process that
 * sleeps in between does not count. Only frames that were sent once are measured (Karn), and only
 * one at a time: all frames of a burst have one round trip, and together they would make the
 * deviation forget what was before.
 *
 * Example: round trips of 30 and 38 us. After the first: srtt 30, var 15. After the second: var =
 * 3/4 * 15 + 1/4 * 8 = 13.25, srtt = 31. srtt + 4 var = 84 us, so the timeout is the minimum, 1 ms;
 * 2 ms for the second try, 4 ms, ... 200 ms.
 *
 * A timeout that is too short would repeat itself: frames that are sent again for no reason are not
 * measured, and the next ones time out as early. So the doubling stays with the destination until a
 * frame is measured. On the lab's two CPUs, where a round trip was 30 us in one moment and 5 ms in
 * the next, 18634 of 44646 frames were sent again without this (2026-11-21).
 *
 * A timeout is at most 200 ms, unless acknowledgements are known to take longer. A link of 200
 * kbit/s has a queue of seconds: every frame would be sent again many times before its first ACK
 * could come, and the copies would fill the queue. On such a link all frames are sent more than
 * once, and none is measured. But an ACK says which copy it answers (struct bl_prep). If it answers
 * the first copy, the path took the time since the first send, and the doubling may reach that
 * time. Frames that are measured later reduce it again, by an eighth each.
 *
 * The ACK of a later copy says nothing about the path: the earlier copies were lost. So when a path
 * works again after seconds, the senders of frames that were lost on it wait for 200 ms at most.
 */
#ifndef BARLINE_RTO_CORE_H
#define BARLINE_RTO_CORE_H

#include "core/core.h"

#define BL_RTX_FIRST_NS 10000000ULL /* nothing was measured yet */
/* The interrupt of a receiver may be this late on a busy machine. */
#define BL_RTX_MIN_NS 1000000ULL
#define BL_RTX_MAX_NS 200000000ULL
/* Upper limit where acknowledgements are known to take longer than BL_RTX_MAX_NS. */
#define BL_RTX_SLOW_NS 4000000000ULL

/** struct bl_rto - round trips to a destination. */
struct bl_rto {
	__u64 srtt_ns;     /* smoothed round trip; 0: none was measured */
	__u64 var_ns;      /* mean deviation of the round trip */
	__u64 measured_ns; /* when the ACK of the last measured frame came */
	/* longest time lately from the first copy of a frame to the ACK of that copy */
	__u64 slow_ns;
	__u32 doubled; /* how often the timeout is doubled until a frame is measured */
};

/** bl_rto_sample - a frame that was sent once, at @sent, was acknowledged at @acked. */
BL_CORE void bl_rto_sample(struct bl_rto *r, __u64 sent, __u64 acked)
{
	__u64 off, rtt = acked - sent;

	if (acked < sent || sent < r->measured_ns)
		return;
	r->measured_ns = acked;
	r->doubled = 0;
	r->slow_ns -= r->slow_ns / 8;
	rtt = rtt ? rtt : 1;
	if (!r->srtt_ns) {
		r->srtt_ns = rtt;
		r->var_ns = rtt / 2;
		return;
	}
	off = rtt > r->srtt_ns ? rtt - r->srtt_ns : r->srtt_ns - rtt;
	r->var_ns = r->var_ns - r->var_ns / 4 + off / 4;
	r->srtt_ns = r->srtt_ns - r->srtt_ns / 8 + rtt / 8;
	r->srtt_ns = r->srtt_ns ? r->srtt_ns : 1;
}

/**
 * bl_rto_due - when a frame is to be sent again. @sent: when it was sent last. @tries: times it was
 * sent, 1 or more.
 */
BL_CORE __u64 bl_rto_due(const struct bl_rto *r, __u64 sent, __u32 tries)
{
	__u64 t = r->srtt_ns ? r->srtt_ns + 4 * r->var_ns : BL_RTX_FIRST_NS;
	__u64 most = bl_max64(BL_RTX_MAX_NS, bl_max64(t, r->slow_ns));
	__u32 n = tries - 1 > r->doubled ? tries - 1 : r->doubled;

	t = bl_max64(t, BL_RTX_MIN_NS);
	most = bl_min64(most, BL_RTX_SLOW_NS);
	while (n-- && t < most)
		t *= 2;
	return sent + bl_min64(t, most);
}

/**
 * bl_rto_slow - a frame was sent more than once, and the copy that was sent at @first was
 * acknowledged at @acked.
 */
BL_CORE void bl_rto_slow(struct bl_rto *r, __u64 first, __u64 acked)
{
	if (acked > first)
		r->slow_ns = bl_max64(r->slow_ns, acked - first);
}

/** bl_rto_late - a frame that was sent @tries times was not acknowledged in time. */
BL_CORE void bl_rto_late(struct bl_rto *r, __u32 tries)
{
	r->doubled = tries > r->doubled ? tries : r->doubled;
}

#endif
