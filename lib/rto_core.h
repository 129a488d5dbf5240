/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a reliable frame is sent again (RFC 6298), per destination. Round trips are measured from
 * the send call to the moment at which the host's XDP program took the ACK in, so a process that
 * sleeps in between does not count. Only frames that were sent once are measured (Karn), and one at
 * a time: the frames of a burst have one round trip, and all of them together would make the
 * deviation forget what was before.
 *
 * Example: round trips of 30 and 38 us. The first: srtt 30, var 15. The second: var = 3/4 * 15 +
 * 1/4 * 8 = 13.25, srtt = 31. srtt + 4 var = 84 us, so the timeout is the least one, 1 ms; 2 ms for
 * the second try, 4 ms, ... 200 ms.
 *
 * A timeout that was too short repeats itself: frames that are sent again for no reason are not
 * measured, and the next ones time out as early. So the doubling stays with the destination until
 * one is measured. On the lab's two CPUs, where a round trip was 30 us in one moment and 5 ms in
 * the next, 18634 of 44646 frames were sent again without it (2026-11-21).
 *
 * A timeout is at most 200 ms, unless acknowledgements are known to take longer. A link of 200
 * kbit/s has a queue of seconds: every frame would be sent again many times before its first ACK
 * could come, and the copies would fill the queue. There all frames are sent more than once, and
 * none is measured. But an ACK says which copy it answers (struct bl_prep): if that is the first
 * one, the way was as long as the time since then, and the doubling goes on as far as that. Frames
 * that are measured later make it shrink again, by an eighth each.
 *
 * The ACK of a later copy says nothing of the way: the earlier ones were lost. So when a way that
 * was out for seconds is there again, whoever lost frames in it waits for 200 ms at most.
 */
#ifndef BARLINE_RTO_CORE_H
#define BARLINE_RTO_CORE_H

#include "core/core.h"

#define BL_RTX_FIRST_NS 10000000ULL /* nothing was measured yet */
/* a receiver's interrupt may be as late as that on a busy machine */
#define BL_RTX_MIN_NS 1000000ULL
#define BL_RTX_MAX_NS 200000000ULL
/* the same where acknowledgements are known to take longer than that */
#define BL_RTX_SLOW_NS 4000000000ULL

/**
 * struct bl_rto - @srtt_ns: smoothed round trip; 0: none measured. @var_ns: its mean deviation.
 * @measured_ns: when the ACK of the last one that was measured came. @doubled: so many times the
 * timeout is doubled since. @slow_ns: the longest way lately from the first copy of a frame that
 * was sent more than once to its ACK.
 */
struct bl_rto {
	__u64 srtt_ns;
	__u64 var_ns;
	__u64 measured_ns;
	__u64 slow_ns;
	__u32 doubled;
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
 * bl_rto_due - when a frame that was sent @tries times, 1 or more, and last at @sent, is to be
 * sent again.
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
 * bl_rto_slow - the first copy of a frame, sent at @first, was acknowledged at @acked, when others
 * had been sent.
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
