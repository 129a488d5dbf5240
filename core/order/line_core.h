/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint's line of the in-flight page: what it lets the host promise, and how the daemon puts
 *the endpoint out while its process lives, without trusting a word that the process still writes.
 *
 * Example: endpoint 3 hangs with frames 5 and 6 open, timestamps 100 and 130; the host has sent C =
 *100.
 *	refuse its frames	slot BL_EP_DEAD: nothing of it leaves any more, nothing new is
 *stored for it bl_line_stop(100, 95)	out = 100: C stands still, whatever the window says; @ts
 *still holds B back. out_upto = 95: the C that has come; the process may deliver what it has below
 *wait until no program runs that may have read out = 0 (an RCU grace period) bl_line_failed_at()
 *frame 5 is open: locks it, T = 100 bl_line_out(T, why)	out_why, then out = 100: final. The
 *process may go on with its recall, empty its window, and send: C does not follow. bl_line_over()
 *Resume: out = BL_OUT_OVER; the line counts for nothing until it is another process's
 *(bl_line_clear()) Without the wait a program that has read out = 0 could still find the window
 *emptied by the process and send a C above T. T is read when nobody can raise C over it any more.
 *
 * For a process that is dead nobody but programs writes the line: T is bl_line_failed_at() at once,
 *and bl_line_out() follows. Its window holds C at T (the slot is locked); if nothing is open,
 *@latest has to be a time that no program running now can have promised.
 */
#ifndef BARLINE_LINE_CORE_H
#define BARLINE_LINE_CORE_H

#include "maps/host_abi.h"
#include "core/order/commit_core.h"

/**
 * bl_line_least - lower *@b and *@c to what the line allows. @in_flight: 0: its @ts does not count.
 * Returns 1: the window counts as well (bl_rwin_commit()).
 *
 * In this order: out, in flight, hold, window. What the process takes out of one of the last three
 * it has put into the next before.
 */
BL_CORE int bl_line_least(const struct bl_inflight *line, int in_flight, __u64 *b, __u64 *c)
{
	__u64 out = BL_READ_ONCE(line->out), v;

	if (out == BL_OUT_OVER)
		return 0;
	if (!out || !BL_READ_ONCE(line->out_why)) {
		v = BL_READ_ONCE(line->ts);
		if (v && v < *b && in_flight)
			*b = v;
	}
	if (out) {
		*c = bl_min64(*c, out);
		return 0;
	}
	v = BL_READ_ONCE(line->hold);
	if (v && v < *c)
		*c = v;
	return bl_rwin_used(BL_READ_ONCE(line->state)) != 0;
}

/** bl_line_holds - whether the line's window or hold keeps C back. */
BL_CORE int bl_line_holds(const struct bl_inflight *line)
{
	__u64 hold = BL_READ_ONCE(line->hold);

	return (hold && hold != BL_TIME_NONE) || bl_rwin_used(BL_READ_ONCE(line->state));
}

/**
 * bl_line_stop - C stands still at @sent, the C that the host has sent last. An @out that is set
 * stays.
 *
 * @received: the C that the host has received last, read when nobody outside can have been told of
 * this yet: then whatever is below it is in the process's ring, or was recalled there. T is not
 * below @sent, so what is delivered below @out_upto is below T. Whoever finds @out set finds
 * @out_upto.
 */
BL_CORE void bl_line_stop(struct bl_inflight *line, __u64 sent, __u64 received)
{
	if (BL_READ_ONCE(line->out))
		return;
	BL_WRITE_ONCE(line->out_upto, bl_min64(received, sent));
	BL_BARRIER();
	BL_WRITE_ONCE(line->out, bl_max64(sent, 1));
}

/**
 * bl_line_failed_at - T: from there on nothing of the endpoint is committed, below it everything
 * is.
 * @latest: T if nothing is open; no C that was ever sent is above it.
 *
 * Hold is read before the window: what leaves hold is in the window before.
 */
BL_CORE __u64 bl_line_failed_at(struct bl_inflight *line, struct bl_rwin *w, __u64 latest)
{
	__u64 hold = BL_READ_ONCE(line->hold), t = latest, ts;

	BL_BARRIER();
	if (bl_rwin_freeze(&line->state, w, &ts))
		t = ts;
	if (hold && hold < t)
		t = hold;
	return t;
}

/** bl_line_out - @t is final. Whoever reads @out_why finds @out set. */
BL_CORE void bl_line_out(struct bl_inflight *line, __u64 t, __u64 why)
{
	BL_WRITE_ONCE(line->out, t);
	BL_BARRIER();
	BL_WRITE_ONCE(line->out_why, why);
}

/** bl_line_over - the line counts for nothing any more, whatever its process writes. */
BL_CORE void bl_line_over(struct bl_inflight *line)
{
	BL_WRITE_ONCE(line->out, BL_OUT_OVER);
}

/**
 * bl_life_pick - which life a new endpoint has: @drawn at random, but neither 0, which is nobody's,
 * nor @left, the life that left its port in order: programs answer in the place of that one, and
 * would do so for this one if it were put out.
 */
BL_CORE __u16 bl_life_pick(__u16 drawn, __u16 left)
{
	while (!drawn || drawn == left)
		drawn++;
	return drawn;
}

/**
 * bl_line_clear - for another process; the one before cannot write any more. @out is last: until
 * then nothing counts.
 */
BL_CORE void bl_line_clear(struct bl_inflight *line)
{
	BL_WRITE_ONCE(line->ts, BL_TIME_NONE);
	BL_WRITE_ONCE(line->hold, BL_TIME_NONE);
	BL_WRITE_ONCE(line->state, 0);
	BL_WRITE_ONCE(line->turn, 0);
	BL_WRITE_ONCE(line->out_why, 0);
	BL_WRITE_ONCE(line->out_upto, 0);
	BL_WRITE_ONCE(line->bye, 0);
	BL_BARRIER();
	BL_WRITE_ONCE(line->out, 0);
}

#endif
