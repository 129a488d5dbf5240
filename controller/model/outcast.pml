/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of a receiver that is expelled while it lives: it delivers nothing that others
 * recall or discard, and everything below the bound that its daemon left it. Its host lives and
 * goes on to receive C, unlike a host that is fenced off (NO_FENCE in reliable.pml).
 *
 *	S -- m (ts 1) --> Q, correct, and P, which is expelled at any time and is slow
 *
 * Example: P has stored m, and the ACK is lost. P is expelled and announced. S recalls m: Q removes
 * it, P's program answers, C passes 1. P goes on where it stood: either it had read C = 1 and
 * delivers nothing, or it reads C = 2, and then out, which was set before, with the bound 1. Had C
 * been 2 when P was expelled, the bound would be 2, and both would have delivered m.
 *
 * SFAILS: S may fail before m is committed, with T = 1. Then every process that reads the
 * announcement discards m.
 *
 * Defects, each of which must be refuted:
 * ANSWERS_DEAD	the program acknowledges in place of an expelled process, as it does for
 *		one that left in order: C passes m before the bound is read, and P misses m, which
 *		is below its bound
 * OUT_FIRST	the library reads out before the commit barrier
 * OUT_LATE	the controller is told before out is set
 * BOUND_LATE	an expelled process takes the barrier that it finds for the bound
 * BOUND_TOLD	the daemon reads the bound after the controller was told
 * BOUND_PAGE	the library reads the page of failures before the barrier and the bound
 */
byte c = 1, upto;
bit dead, out, told, stored, acked, aborted, qstored, qrecalled, qdelivered, delivered, outcast;
bit sfailed, page, qdiscarded;

active proctype network()
{
end:	do
	:: d_step { !stored && !dead && c == 1 -> stored = 1 }
#ifdef ANSWERS_DEAD
	:: d_step { dead && !acked && !aborted && !sfailed -> acked = 1 }
#endif
	:: d_step { stored && !acked && !aborted && !sfailed -> acked = 1 }
	:: d_step { !qstored && !qrecalled && !qdiscarded -> qstored = 1 }
	/* S hears of it, and locks the slot */
	:: d_step { told && !acked && !aborted && !sfailed -> aborted = 1 }
	:: d_step { aborted && !qrecalled -> assert(!qdelivered); qrecalled = 1; qstored = 0 }
	:: d_step { c == 1 && !sfailed && ((acked && qstored) || (aborted && qrecalled)) ->
		c = 2; qdelivered = qstored }
#ifdef SFAILS
	:: d_step { c == 1 && !sfailed && !(acked && qstored) && !aborted -> sfailed = 1 }
	:: d_step { sfailed && !page -> page = 1 }
	:: d_step { sfailed && !qdiscarded -> qdiscarded = 1; qstored = 0 }
	:: d_step { c == 1 && page && qdiscarded -> c = 2 } /* Resume */
#endif
	od
}

active proctype daemon()
{
	byte now;

	if
	:: goto stays
	:: true
	fi;
	dead = 1; /* its slot accepts nothing any more */
#if defined(OUT_LATE)
	now = c;
	told = 1;
	upto = now;
	out = 1;
#elif defined(BOUND_TOLD)
	out = 1;
	told = 1;
	now = c;
	upto = now;
#else
	now = c;
	upto = now;
	out = 1;
	told = 1;
#endif
stays:	skip
}

active proctype process()
{
	byte now;
	bit gone, again, failed;

end:	do
	:: atomic { !delivered && !outcast && (c == 2 || out || !again) ->
			again = again | (c == 1 && !out) }
#ifdef BOUND_PAGE
		failed = page;
#endif
#ifdef OUT_FIRST
		gone = out;
		now = c;
#else
		now = c;
		gone = out;
#endif
#ifndef BOUND_LATE
		if
		:: gone -> now = upto
		:: else
		fi;
#endif
#ifndef BOUND_PAGE
		failed = page;
#endif
		/* the ring */
		if
		:: now == 2 && stored && !failed -> delivered = 1
		:: else
		fi;
		outcast = gone
	od
}

active proctype judge()
{
	timeout;
	assert(c == 2 && qdelivered == !(aborted || sfailed));
	assert(!delivered || qdelivered);		      /* nothing that others recalled */
	assert(!qdelivered || delivered || (out && upto < 2)) /* all below the bound */
}
