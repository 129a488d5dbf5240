/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of a host that answers for a process that left in order: PREPs and RECALLs that
 * still name the life that left are acknowledged and answered by the host's program, so that no
 * process waits for the announcement.
 *
 *	S -- m0 (ts 1), m1 (ts 2) --> Q, correct; the port of P; ZFAILS: and Z, which may fail
 *
 * P is life 1 of its port. It leaves at any time, or crashes (CRASH). Then the port is free, and
 * life 2 may get it. S finds life 2 by an OPEN, and from then on sends to that one. S may learn of
 * the end of life 1 at any time after it, or never (UNTOLD: there are no controllers). A message
 * that an announced process has not acknowledged is recalled. Frames may be lost, late, or come
 * twice.
 *
 * Example: m0 names life 1, which leaves before it has stored m0. The host acknowledges m0 in its
 * place, Q's ACK comes, C passes 1 and Q delivers. To Q and S it is as if P had stored m0 and left
 * before it was delivered. Had the announcement been first, S would have recalled m0 from Q, and
 * would not accept an ACK any more.
 *
 * Defects, each of which must be refuted:
 * NO_ANSWER		the host answers for no process (UNTOLD: C stands still for ever)
 * NO_RECALLED		it answers PREPs only (UNTOLD, ZFAILS: a recall never completes)
 * LEFT_FORGOTTEN	it answers only until the port has its next life (the same)
 * LEFT_ANY_LIFE	it answers PREPs whatever life they name
 * LEFT_EARLY=1		it answers PREPs while the process still delivers
 * LEFT_EARLY=2		it answers RECALLs while the process still delivers
 *
 * ANSWERS_CRASHED is not a defect: to answer for a process that crashed would break no promise
 * either, since a dead process delivers nothing any more. It matters that the process is dead: see
 * outcast.pml, ANSWERS_DEAD.
 *
 * REACH: ends that must be reachable, asserted not to be. 1: a message is committed by such an
 * answer, and its receiver announced. 2: a recall is completed by one. 3: life 2 delivers what S
 * sent after it was answered for life 1.
 *
 * Not covered: what P itself sent (lives.pml, LEAVE), ring and pages in steps (expel.pml), and a
 * second life that leaves, too: a host answers for one life of a port.
 */
#define NM   2
#define TOP  (NM + 1)
#define ALL  3
#define FREE 0
#define DEAD 3

#define BIT(m) (1 << (m))

/* Messages, one bit each. */
byte sent, for1, for2;	     /* the life that it names; neither: not for the port */
byte forz;
byte storedq, ackq, delivq, goneq, rackq;
byte stored1, stored2, ackp; /* in the ring, by life; ackp: acknowledged by either */
byte deliv1, deliv2, gone1, gone2, rackp;
byte ackz;
byte rec;		     /* S recalls it: ACKs do not count any more */
byte c = 1;
byte answered;

byte slot = 1;		     /* FREE, the life that has the port, or DEAD */
byte leaver;		     /* the life that the host answers for */
bit ended;		     /* the process of life 1 delivers nothing more */
bit told, know2;	     /* S has heard of life 1's end; of life 2 */
bit zdead, zknown;

#ifndef LEFT_EARLY
#define LEFT_EARLY 0
#endif
#define NAMES(m, l) (((l) == 1 -> for1 : for2) & BIT(m))

/* Whether the host answers in the place of life @l. */
#define IN_PLACE(l) (slot != (l) && leaver == (l))
#if defined(ANSWERS_CRASHED)
#define ANSWERS(l) (IN_PLACE(l) || (slot == DEAD && (l) == 1))
#else
#define ANSWERS(l) IN_PLACE(l)
#endif
#if defined(NO_ANSWER)
#define ANSWERS_PREP(l) false
#elif defined(LEFT_ANY_LIFE)
#define ANSWERS_PREP(l) (leaver != 0)
#elif LEFT_EARLY == 1
#define ANSWERS_PREP(l) (leaver == (l))
#else
#define ANSWERS_PREP(l) ANSWERS(l)
#endif
#if defined(NO_ANSWER) || defined(NO_RECALLED)
#define ANSWERS_RECALL(l) false
#elif LEFT_EARLY == 2
#define ANSWERS_RECALL(l) (leaver == (l))
#else
#define ANSWERS_RECALL(l) ANSWERS(l)
#endif
#define STORES(l) (slot == (l) && !ANSWERS_PREP(l))
#define TAKES(l)  (slot == (l) && !ANSWERS_RECALL(l))

/* Messages for which S does not wait for the port, or for Z, any more. */
#define NO_P  ((told -> for1 : 0) | (ALL & ~(for1 | for2)))
#define NO_Z  ((zknown -> ALL : 0) | (ALL & ~forz))
#define DONE  (sent & ((~rec & ackq & (ackp | (ALL & ~(for1 | for2))) & (ackz | (ALL & ~forz))) | \
		       (rec & rackq & (rackp | NO_P))))
#define BOUND (!(DONE & 1) -> 1 : (!(DONE & 2) -> 2 : TOP))

/* The program of P's host: nothing below C, nothing that was recalled. */
#define PORT(m, l, stored, gone) \
	:: d_step { NAMES(m, l) && STORES(l) && (m) + 1 >= c && !((stored | gone) & BIT(m)) -> \
		stored = stored | BIT(m) } \
	:: d_step { (stored & BIT(m)) && slot == (l) && !((ackp | rec) & BIT(m)) -> \
		ackp = ackp | BIT(m) } \
	:: d_step { NAMES(m, l) && ANSWERS_PREP(l) && (m) + 1 >= c && !((ackp | rec) & BIT(m)) -> \
		ackp = ackp | BIT(m); answered = answered | BIT(m) } \
	:: d_step { NAMES(m, l) && (rec & BIT(m)) && TAKES(l) && !(rackp & BIT(m)) -> \
		gone = gone | BIT(m); stored = stored & ~BIT(m); rackp = rackp | BIT(m) } \
	:: d_step { NAMES(m, l) && (rec & BIT(m)) && ANSWERS_RECALL(l) && !(rackp & BIT(m)) -> \
		rackp = rackp | BIT(m); answered = answered | BIT(m) }

#define MESSAGE(m) \
	:: d_step { !(sent & BIT(m)) && (sent & (BIT(m) - 1)) == BIT(m) - 1 -> \
		sent = sent | BIT(m); \
		for2 = for2 | (know2 -> BIT(m) : 0); \
		for1 = for1 | (!know2 && !told -> BIT(m) : 0); \
		forz = forz | (ZTHERE -> BIT(m) : 0) } \
	:: d_step { (sent & BIT(m)) && !((storedq | goneq) & BIT(m)) && (m) + 1 >= c -> \
		storedq = storedq | BIT(m) } \
	:: d_step { (storedq & BIT(m)) && !((ackq | rec) & BIT(m)) -> ackq = ackq | BIT(m) } \
	:: d_step { (rec & BIT(m)) && !(rackq & BIT(m)) -> \
		assert(!(delivq & BIT(m))); goneq = goneq | BIT(m); \
		storedq = storedq & ~BIT(m); rackq = rackq | BIT(m) } \
	PORT(m, 1, stored1, gone1) \
	PORT(m, 2, stored2, gone2) \
	OF_Z(m) \
	/* the processes of the port: at any time they read C, and the ring after it */ \
	:: d_step { !ended && (stored1 & BIT(m)) && !(deliv1 & BIT(m)) && (m) + 1 < c && \
		    !(stored1 & ~deliv1 & (BIT(m) - 1)) -> deliv1 = deliv1 | BIT(m) } \
	:: d_step { (stored2 & BIT(m)) && !(deliv2 & BIT(m)) && (m) + 1 < c && \
		    !(stored2 & ~deliv2 & (BIT(m) - 1)) -> deliv2 = deliv2 | BIT(m) }

#ifdef ZFAILS
#define ZTHERE !zknown
#define OF_Z(m) \
	:: d_step { (forz & BIT(m)) && !zdead && !((ackz | rec) & BIT(m)) -> ackz = ackz | BIT(m) }
#else
#define ZTHERE false
#define OF_Z(m)
#endif

active proctype all()
{
end:	do
	MESSAGE(0)
	MESSAGE(1)
	:: d_step { c < BOUND -> delivq = delivq | (storedq & BIT(c - 1)); c++ }
#ifdef ZFAILS
	:: d_step { !zdead -> zdead = 1 }
	:: d_step { zdead && !zknown -> zknown = 1; rec = rec | (forz & ~ackz) }
#endif
	/* life 1: bl_exit() ends deliveries; the daemon learns of it when the process is inert */
#if LEFT_EARLY
	:: d_step { slot == 1 && !ended && !leaver -> leaver = 1 }
#endif
	:: d_step { slot == 1 && !ended -> ended = 1 }
	:: d_step { slot == 1 && ended -> slot = FREE; leaver = 1 }
#ifdef CRASH
	:: d_step { slot == 1 && !ended && !leaver -> ended = 1; slot = DEAD }
	:: d_step { slot == DEAD && told -> slot = FREE }
#endif
#ifndef UNTOLD
	:: d_step { (slot == DEAD || leaver) && ended && slot != 1 && !told ->
		told = 1; rec = rec | (for1 & ~ackp) }
#endif
	/* life 2 */
	:: d_step { slot == FREE -> slot = 2;
#ifdef LEFT_FORGOTTEN
		leaver = 0
#endif
		}
	:: d_step { slot == 2 && !know2 -> know2 = 1 }
	od
}

active proctype judge()
{
	timeout;
	assert(c == TOP);
	assert(delivq == (ALL & ~rec));
	assert(!((deliv1 | deliv2) & rec)); /* nothing that was recalled */
	/* life 1: no gaps while it was there */
	assert(!(deliv1 & 2) || !(for1 & 1) || ((deliv1 | rec) & 1));
	assert(deliv2 == (for2 & ~rec)); /* life 2: all */
#ifdef REACH
#if REACH == 1
	assert(!(answered & for1 & ackp & ~rec & ~stored1 && told))
#elif REACH == 2
	assert(!(answered & rec & rackp & for1 && !told))
#elif REACH == 3
	assert(!((answered & for1 & ~rec & 1) && (deliv2 & 2)))
#endif
#endif
}
