/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of one port with two lives, and of a receiver whose process is slow. Programs store
 * and acknowledge; the receiver's daemon publishes announcements and sends DONE. The process may
 * read nothing of that before the port has its next life.
 *
 *	life 1: m0 (ts 1), m1 (ts 2)	life 2: m2 (ts 3), at the same address and port
 *
 * Life 1 fails with T (the ts of its first message that is not committed, 3 if all are). Or it
 * leaves in order (LEAVE): all it sent is committed, no process is waited for, and the port is free
 * at once. With HOST the announcement names a host and not a life, and life 2 may fail as well.
 * Copies of OPEN and PREP may arrive at any time later, in any order. The receiver's ring keeps the
 * order in which they were stored.
 *
 * Example: m0 is committed; m1 is stored here and not acknowledged elsewhere. Life 1 fails, T = 2.
 * The receiver's daemon publishes that and sends DONE; Resume; life 2 gets the port and sends OPEN.
 * Now the process wakes up: before it begins life 2 it reads the announcements again, and discards
 * m1.
 *
 * Defects, each of which must be refuted:
 * NO_LIFE	an announcement is applied to every life of the port
 * NO_REREAD	a new life begins although the announcements were not read again (HOST: they are
 *		applied to the new life)
 * PREP_BEGINS	a PREP of another life begins that life, as an OPEN does
 * OLD_BEGINS	an OPEN of a life that was replaced begins it anew
 * LATER_T	a second announcement of a life that is gone replaces the first T
 * LEFT_T_EARLY	LEAVE: T is taken while the process can still send
 * LEFT_UNACKED	LEAVE: the process leaves although not all that it sent is acknowledged
 *
 * Not covered: the sender's side; a recall; what the other receivers do, except for an ACK.
 */
#ifndef COPIES
#define COPIES 2
#endif
#define OPEN_OF(l) (10 + (l))
#define LIFE(m)	   ((m) < 2 -> 1 : 2)
#define ALL	   7

chan ring = [3] of { byte };
byte copies[3], opens[3]; /* how often they were put into the ring */
bit opened[3];		  /* by life: its WINDOW has come */
byte osent, sent;	  /* bit of the life, of the message: sent; copies may arrive */
byte life = 1;
byte ackq, ackr;
byte t[3];	/* by life; 0: has not failed */
bit left1;	/* LEAVE */
byte leave_t = 3;
byte page;	/* announcements in the page of the receiver's host */
bit resumed[3];
byte c = 1;	/* commit barrier there */

/* the receiver's process */
byte cur, replaced, applied, gone, gonet, seen, queue, deliv;

#define BIT(m)	     (1 << (m))
#define COMMITTED(m) (ackq & ackr & BIT(m))
#define ENDED(l)     (resumed[l] || ((l) == 1 && left1))
#define SETTLED(m)   (COMMITTED(m) || ENDED(LIFE(m)))
#define UNTIL	     (!SETTLED(0) -> 1 : (!SETTLED(1) -> 2 : (!SETTLED(2) -> 3 : 4)))
#define FAILED_T     (t[1] && !resumed[1] -> t[1] : (t[2] && !resumed[2] -> t[2] : 4))
#define BOUND	     (UNTIL < FAILED_T -> UNTIL : FAILED_T)

#ifdef LEFT_UNACKED
#define ALL_ACKED true
#else
#define ALL_ACKED ((sent & 3 & ~(ackq & ackr)) == 0)
#endif

#define MESSAGE(m) \
	:: d_step { life == LIFE(m) && opened[LIFE(m)] && !(sent & BIT(m)) && \
		    ((m) != 1 || (sent & 1)) -> sent = sent | BIT(m) } \
	:: atomic { (sent & BIT(m)) && copies[m] < COPIES && (m) + 1 >= c && nfull(ring) -> \
		d_step { copies[m]++; ackq = (t[LIFE(m)] == 0 -> ackq | BIT(m) : ackq) } ring!m } \
	:: d_step { (sent & BIT(m)) && !(ackr & BIT(m)) && t[LIFE(m)] == 0 -> ackr = ackr | BIT(m) }

#define OPENS(l) \
	:: d_step { life == (l) && !(osent & BIT(l)) -> osent = osent | BIT(l) } \
	:: atomic { (osent & BIT(l)) && opens[l] < COPIES && nfull(ring) -> \
		opens[l]++; ring!OPEN_OF(l) }

active proctype network()
{
end:	do
	MESSAGE(0)
	MESSAGE(1)
	MESSAGE(2)
	OPENS(1)
	OPENS(2)
#ifdef LEAVE
#ifdef LEFT_T_EARLY
	:: d_step { life == 1 && sent == 1 && leave_t == 3 -> leave_t = 2 }
#endif
	:: d_step { life == 1 && ALL_ACKED && sent != 0 -> left1 = 1; life = 2 }
	:: d_step { left1 && page == 0 -> t[1] = leave_t; resumed[1] = 1; page = 1 }
#else
	:: d_step { life == 1 && sent != 0 ->
		life = 0; t[1] = (!COMMITTED(0) -> 1 : (!COMMITTED(1) -> 2 : 3)) }
	:: d_step { t[1] && page == 0 -> page = 1 }
	:: d_step { t[1] && page > 0 && !resumed[1] -> resumed[1] = 1 }
	:: d_step { resumed[1] && life == 0 && t[2] == 0 -> life = 2 }
#endif
#ifdef HOST
	:: d_step { life == 2 -> life = 3; t[2] = (!COMMITTED(2) -> 3 : 4) }
	:: d_step { t[2] && page == 1 -> page = 2 }
	:: d_step { t[2] && page == 2 && !resumed[2] -> resumed[2] = 1 }
#endif
	:: d_step { c < BOUND -> c++ }
	od
}

#define KEPT(m, l, tt) (LIFE(m) == (l) && (m) + 1 >= (tt) -> 0 : BIT(m))
#define DISCARD(l, tt) queue = queue & (KEPT(0, l, tt) | KEPT(1, l, tt) | KEPT(2, l, tt))

/* Applies all announcements up to @last. */
inline apply(last)
{
	do
	:: applied < last ->
		applied++;
#if defined(HOST) || defined(NO_LIFE)
		/* it means the life that is known there */
		if
#ifdef LATER_T
		:: true -> gone = cur; gonet = t[applied]
#else
		:: gone != cur -> gone = cur; gonet = t[applied]
		:: else
#endif
		fi;
		DISCARD(1, t[applied]);
		DISCARD(2, t[applied])
#else
		gone = applied;
		gonet = t[applied];
		DISCARD(applied, gonet)
#endif
	:: else -> break
	od
}

#ifdef OLD_BEGINS
#define IS_OLD(l) false
#else
#define IS_OLD(l) (replaced & BIT(l))
#endif
#define BEGIN(l) replaced = replaced | BIT(cur); cur = l; seen = 0

active proctype process()
{
	byte now, r, f;

end:	do
	:: atomic { now < c || applied < page || nempty(ring) -> now = c }
		f = page;
		atomic { apply(f) }
		do
		:: atomic { ring?r ->
			if
			:: r > 10 && (r - 10) != cur && !IS_OLD(r - 10) ->
#ifndef NO_REREAD
				f = page;
				apply(f);
				f = 0;
#endif
				BEGIN(r - 10);
				opened[r - 10] = 1
			:: r < 10 ->
#ifdef PREP_BEGINS
				if
				:: LIFE(r) != cur -> BEGIN(LIFE(r))
				:: else
				fi;
#endif
				if
				:: LIFE(r) == cur && !(seen & BIT(r)) &&
				   !(gone == cur && r + 1 >= gonet) && deliv < BIT(r) ->
					assert(!(queue & BIT(r))); /* no message twice */
					seen = seen | BIT(r);
					queue = queue | BIT(r)
				:: else
				fi
			:: else
			fi;
			r = 0;
			f = 0 }
		:: empty(ring) -> break
		od;
		atomic {
			r = 0;
			do
			:: r < 3 ->
				if
				:: (queue & BIT(r)) && r + 1 < now ->
					queue = queue & ~BIT(r);
					assert(deliv < BIT(r));
					deliv = deliv | BIT(r)
				:: else
				fi;
				r++
			:: else -> break
			od;
			r = 0;
			f = 0
		}
	od
}

#define RIGHT(m) \
	/* no process recalls what was sent before a leave, so all have it */ \
	assert(!(deliv & BIT(m)) || COMMITTED(m) || LIFE(m) != 1 || !left1); \
	assert(!(deliv & BIT(m)) || t[LIFE(m)] == 0 || (m) + 1 < t[LIFE(m)]); \
	assert((deliv & BIT(m)) || !COMMITTED(m) || (t[LIFE(m)] && (m) + 1 >= t[LIFE(m)]))

active proctype judge()
{
	timeout;
	RIGHT(0);
	RIGHT(1);
	RIGHT(2);
	assert(c == BOUND)
}
