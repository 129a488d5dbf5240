/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A receiver that is put out while it lives, for spin: it may deliver nothing that others recall.
 * Its host lives and goes on to hear C, unlike one that is fenced off (NO_FENCE in reliable.pml).
 *
 *	S -- m (ts 1) --> Q, correct, and P, which is put out at any time and is slow
 *
 * Example: P has stored m, and the ACK is lost. P is put out and announced. S recalls m: Q takes
 * it out, its program answers, C passes 1. P goes on where it stood: it had read C = 1 and delivers
 * nothing, or it reads C = 2, and then out, which was set before.
 *
 * Defects: OUT_FIRST, the library reads out before the commit barrier; OUT_LATE, the announcement
 * is told before out is set.
 */
byte c = 1;
bit out, told, stored, acked, aborted, qstored, qrecalled, qdelivered, delivered, outcast;

active proctype network()
{
end:	do
	:: d_step { !stored && !out && c == 1 -> stored = 1 }
	:: d_step { stored && !acked && !aborted -> acked = 1 }
	:: d_step { !qstored && !qrecalled -> qstored = 1 }
	:: d_step { told && !acked && !aborted -> aborted = 1 } /* S hears of it, and locks the slot */
	:: d_step { aborted && !qrecalled -> assert(!qdelivered); qrecalled = 1; qstored = 0 }
	:: d_step { c == 1 && ((acked && qstored) || (aborted && qrecalled)) -> c = 2; qdelivered = qstored }
	od
}

active proctype daemon()
{
	if
	:: goto stays
	:: true
	fi;
#ifdef OUT_LATE
	told = 1;
	out = 1;
#else
	out = 1;
	told = 1;
#endif
stays:	skip
}

active proctype process()
{
	byte now;
	bit gone, again;

end:	do
	:: atomic { !delivered && !outcast && (c == 2 || out || !again) -> again = again | (c == 1 && !out) }
#ifdef OUT_FIRST
		gone = out;
		now = c;
#else
		now = c;
		gone = out;
#endif
		if
		:: gone -> outcast = 1
		:: !gone && now == 2 && stored -> delivered = 1
		:: else
		fi
	od
}

active proctype judge()
{
	timeout;
	assert(c == 2 && qdelivered == !aborted);
	assert(!(delivered && aborted)); /* it has delivered nothing that was recalled */
	assert(delivered || out)	  /* and who is not out has it */
}
