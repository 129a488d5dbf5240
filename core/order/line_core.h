/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint's line: what it allows the host to promise, and how the daemon
 * removes the endpoint while its process lives, without trusting a word that the process can still
 * write.
 *
 * Example: endpoint 3 hangs with frames 5 and 6 open, timestamps 100 and 130; the host has sent C =
 * 100. The daemon goes through these steps:
 *
 *   refuse its frames    its slot is BL_EP_DEAD: none of its frames leaves any more, and no
 *                        new frame is stored for it
 *   bl_line_stop()       with 100 and 95. out = 100: C stands still, whatever the window
 *                        says; @ts still holds B back. out_upto = 95, the C that was
 *                        received: the process may deliver what it has below
 *   wait                 until no program runs that may have read out = 0 (an RCU grace
 *                        period)
 *   bl_line_failed_at()  frame 5 is open: its slot is locked, and T = 100
 *   bl_line_out()        with T and the reason. out_why, then out = 100: final. The process
 *                        may go on with its recall, empty its window and send: C does not
 *                        follow
 *   bl_line_over()       when RESUME arrives. out = BL_OUT_OVER: the line counts for nothing
 *                        until it belongs to another process (bl_line_clear())
 *
 * Without the wait, a program that has read out = 0 could still find a window that the process has
 * emptied, and send a C above T. T is read when nothing can raise C above it any more.
 *
 * If the process is dead, only programs still write the line: T is bl_line_failed_at() at once, and
 * bl_line_out() follows. Its window holds C at T, since the slot is locked. If nothing is open,
 * @latest must be a time that no running program can have promised.
 */
#ifndef BARLINE_LINE_CORE_H
#define BARLINE_LINE_CORE_H

#include "maps/host_abi.h"
#include "core/order/commit_core.h"

/** bl_line_void - whether a send with @ts in the line is among those up to @upto. */
BL_CORE int bl_line_void(__u64 ts, __u64 upto)
{
	return ts && ts <= upto;
}

/**
 * bl_line_least - lower *@b and *@c to what the line allows. @in_flight of 0: @ts of the line does
 * not count. @word: of the endpoint. @last: the greatest B that was sent without a claim
 * (bl_frame_claim()), and the greatest C. A line that is to hold back a C that has left does not
 * count. One that is to hold back a B that has left holds the next B at that one, and not below: an
 * old B would lie ahead of all clocks on the wire. No message is below: the program that sent that
 * B did not see the line, so its process read the clock and the promise after the program had. A B
 * that was sent with a claim is no such bound. The frame that claims it may not have left yet, and
 * a frame that carried it from another CPU would overtake its message. Returns 1 if the window
 * counts as well: see bl_rwin_commit().
 *
 * Reads in this order: out, in flight, hold, window. What the process removes from one of the last
 * three, it has put into the next one before.
 */
BL_CORE int bl_line_least(const struct bl_inflight *line, const struct bl_ep_word *word,
			  int in_flight, const struct bl_pair *last, __u64 *b, __u64 *c)
{
	__u64 out = BL_READ_ONCE(word->out), v;

	if (out == BL_OUT_OVER)
		return 0;
	if (!out || !BL_READ_ONCE(word->out_why)) {
		v = BL_READ_ONCE(line->ts);
		if (v && v < *b && in_flight && !bl_line_void(v, BL_READ_ONCE(word->over)))
			*b = bl_min64(*b, bl_max64(v, last->b));
	}
	if (out) {
		*c = bl_min64(*c, out);
		return 0;
	}
	v = BL_READ_ONCE(line->hold);
	if (v >= last->c && v && v < *c)
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
 * bl_word_store - write @own, the daemon's copy, into the shared word. In this order: a reader that
 * finds @over also finds @upto, one that finds @out set also finds @out_upto, and one that finds
 * @out_why set also finds @out. The functions below change the daemon's copy.
 */
BL_CORE void bl_word_store(struct bl_ep_word *word, const struct bl_ep_word *own)
{
	BL_WRITE_ONCE(word->upto, own->upto);
	BL_BARRIER();
	BL_WRITE_ONCE(word->over, own->over);
	BL_WRITE_ONCE(word->out_upto, own->out_upto);
	BL_BARRIER();
	BL_WRITE_ONCE(word->out, own->out);
	BL_BARRIER();
	BL_WRITE_ONCE(word->out_why, own->out_why);
}

/**
 * bl_line_stop - make C stand still at @sent, the C that the host has sent last. No-op if @out is
 * set already.
 * @received: the C that the host has received last, read at a time when no other node can know of
 * this yet. Everything below it is in the process's ring, or was recalled there. T is not below
 * @sent, so everything that is delivered below @out_upto is below T.
 */
BL_CORE void bl_line_stop(struct bl_ep_word *word, __u64 sent, __u64 received)
{
	if (word->out)
		return;
	word->out_upto = bl_min64(received, sent);
	word->out = bl_max64(sent, 1);
}

/**
 * bl_line_failed_at - compute T: everything of the endpoint below it is committed, and nothing at
 * or above it.
 * @sent: the greatest C that was sent. T is not below it, whatever a process has stored in its
 * page: what was sent cannot be taken back.
 * @latest: T if nothing is open; no C that was ever sent is above it.
 *
 * @hold is read before the window: what leaves @hold is in the window before. Returns T, never 0.
 */
BL_CORE __u64 bl_line_failed_at(struct bl_inflight *line, struct bl_rwin *w, __u64 sent,
				__u64 latest)
{
	__u64 hold = BL_READ_ONCE(line->hold), t = latest, ts;

	BL_BARRIER();
	if (bl_rwin_freeze(&line->state, w, &ts))
		t = bl_min64(t, ts);
	if (hold && hold < t)
		t = hold;
	return bl_max64(bl_max64(t, sent), 1);
}

/** bl_line_out - make @t final. */
BL_CORE void bl_line_out(struct bl_ep_word *word, __u64 t, __u64 why)
{
	word->out = t;
	word->out_why = why;
}

/** bl_line_over - make the line count for nothing, whatever its process writes. */
BL_CORE void bl_line_over(struct bl_ep_word *word)
{
	word->out = BL_OUT_OVER;
}

/**
 * bl_life_pick - the incarnation of a new endpoint: @drawn, a random number, but neither 0, which
 * means none, nor @left, the life that left its port in order: programs answer in place of that
 * one, and would do so for the new one if it were removed.
 */
BL_CORE __u16 bl_life_pick(__u16 drawn, __u16 left)
{
	while (!drawn || drawn == left)
		drawn++;
	return drawn;
}

/** bl_line_clear - prepare a line for a process, before anybody else knows of it. */
BL_CORE void bl_line_clear(struct bl_inflight *line)
{
	*line = (struct bl_inflight){ .ts = BL_TIME_NONE, .hold = BL_TIME_NONE };
}

#endif
