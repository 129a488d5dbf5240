/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of a process that is expelled while it lives: it goes on acting on its own words at
 * any later moment, and its daemon may be restarted between any two steps. See docs/reliable.md,
 * "Expelled processes, and processes that read late".
 *
 *   P: its library, its line (ts, state, out)      receivers: 0 and 1 (correct), Z (may fail)
 *   daemon: DEAD, out, grace, T, out = T, report   program: reads out, then the window; sends C
 *
 * P sends NM scatterings to all three receivers. Z may fail; P then recalls what Z did not
 * acknowledge: programs answer RECALLED, and the process reads the RECALL from its ring later. The
 * process of receiver 0 is slow: it reads commit barrier, failures page and ring in separate steps.
 * Receiver 1 does all that at once. The failures page of a host is written by its daemon, which
 * sends DONE at that moment, whatever its processes have read.
 *
 * Example: m0 has ts 1 and waits for Z, which failed; P recalls it. The daemon expels P: the slot
 * is DEAD, out = 1, no program runs any more that has read out before, the head is m0: T = 1,
 * out = 1. Now P's recall ends, the window is empty, and P sends m1, which its slot refuses. C
 * stays at 1 until Resume, since programs read out first.
 *
 * Defects, each of which must be refuted:
 * NO_OUT		programs do not read out: T is in the window, which P moves
 * NO_GRACE		T is read while a program that has read the old out still runs
 * OUT_AFTER_T		T is read before out is set
 * NO_DEAD		frames of P leave the host although P is expelled
 * ADOPT_FIRST		a daemon that is restarted takes the first value of out for T
 * ADOPT_ANEW		it reads T from the window again, although T was reported
 * RESUME_CLEARS	Resume makes the line of a living process count again
 * DONE_EARLY		a daemon sends DONE before the announcement is in the page
 * PAGE_FIRST		the library reads the failures page before the commit barrier
 * RING_FIRST		the library reads the ring before the commit barrier
 * RECALL_UNREAD	the program answers RECALLED without storing the RECALL
 *
 * Not covered: hold (a scattering of several flushes), lives (lives.pml), P as a receiver
 * (outcast.pml), more than one failure of each kind.
 */
#ifndef NM
#define NM 2
#endif
#define ALL	((1 << NM) - 1)
#define NONE	15 /* no time: nothing in flight */
#define OVER	14 /* out: resumed */

/* P's line: the daemon writes out, P the others */
byte inflight = NONE, out;
byte win;    /* bit m: m is in the window */
byte closed; /* bit m: all slots of m are closed; the head is the first of win that is not */
byte locked; /* bit m: no ACK closes it */
byte now = 1;
byte ts[2];
byte stamped; /* messages */

bit dead;     /* the slot refuses frames */
bit final;    /* out is T, not the first value */
bit reading;  /* a program has read out and has not ended */
byte sentc = 1;
byte reported; /* T, as the controller has it; 0: none */
bit page[2];   /* the announcement of P is in the page of host 0, 1 */
bit resumed;
bit zfailed;  /* Z was announced */
bit zlives;   /* it will not fail any more */
bit pout;     /* P has seen out */
bit idle;     /* the program has run once although C did not rise */
#ifdef MIDST
bit begun;
#define BEGUN begun
#else
#define BEGUN true
#endif

/* bit m */
byte sent[3], acked[3];
byte ring0, stored0, stored1; /* receiver 0: in its ring, read from it; receiver 1: stored */
/* recalled; receiver 0: RECALL in its ring, read from it; receiver 1: removed */
byte aborted, recall0, took0, recall1;
byte rack; /* bit 0, 1: RECALLED of receiver 0, 1 came, for what is aborted */
bit asked0, asked1;
byte deliv0, deliv1, c1 = 1, commit0 = 1;
#ifdef RESTART
bit restarts = 1;
#define MAY_RESTART if :: restarts -> restarts = 0; t = 0; goto adopt :: true fi
#else
#define MAY_RESTART skip
#endif

#define FIRST(mask) (((mask) & 1) -> 0 : (((mask) & 2) -> 1 : 2))
#define OPEN (win & ~closed)
#define HEAD FIRST(OPEN)
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#ifdef MIDST
#define TO_Z 1
#else
#define TO_Z ALL
#endif
#define HEAD_TS (OPEN == 0 -> NONE : ts[HEAD])

/* Whether m is acknowledged by all its receivers; the last ACK closes the slots. */
#define ACKED(m) (acked[0] & acked[1] & (acked[2] | ~TO_Z) & (1 << (m)))

active proctype process()
{
	byte m, r;

#ifdef MIDST
	d_step {
		ts[0] = 1;
		ts[1] = 2;
		now = 3;
		stamped = 2;
		win = 3;
		sent[0] = 3;
		sent[1] = 3;
		sent[2] = 1;
		stored0 = 3;
		stored1 = 3;
		acked[0] = 1;
		acked[1] = 3;
		zfailed = 1;
		begun = 1
	}
#endif
end:	do
	:: stamped < NM && out == 0 -> /* it reads out, then does all this slowly */
		m = stamped;
		d_step { inflight = now }
		d_step { ts[m] = now; now++; stamped++ }
		win = win | (1 << m);
		inflight = NONE;
		r = 0;
		do
		:: r < 3 ->
			d_step {
				if
				:: !dead && !(r == 2 && zfailed) -> sent[r] = sent[r] | (1 << m)
				:: else
				fi;
				r++
			}
		:: else -> break
		od;
		r = 0;
		m = 0
	/* the announcement of Z: lock the slots, ask, and close them when all have answered */
	:: zfailed && out == 0 && aborted == 0 && (OPEN & TO_Z & ~acked[2]) != 0 ->
		d_step { aborted = OPEN & TO_Z & ~acked[2]; locked = locked | aborted }
		d_step { asked0 = 1; asked1 = 1 }
		if
		:: rack == 3
		:: timeout -> goto away /* no program answers it any more */
		fi;
		m = 0;
		do
		:: m < NM ->
			d_step {
				if
				:: aborted & (1 << m) -> closed = closed | (1 << m)
				:: else
				fi;
				m++
			}
		:: else -> break
		od;
		m = 0
	:: out != 0 -> break
	od;
away:	pout = 1
}

#define FRAMES(m) \
	:: d_step { (sent[0] & (1 << m)) && !((ring0 | stored0) & (1 << m)) && ts[m] >= commit0 && \
		    !((recall0 | took0) & (1 << m)) -> ring0 = ring0 | (1 << m) } \
	:: d_step { (sent[1] & (1 << m)) && !(stored1 & (1 << m)) && ts[m] >= c1 && \
		    !(recall1 & (1 << m)) && !page[1] -> \
		stored1 = stored1 | (1 << m); acked[1] = acked[1] | (1 << m) } \
	:: d_step { ((ring0 | stored0) & (1 << m)) && !(acked[0] & (1 << m)) -> \
		acked[0] = acked[0] | (1 << m) } \
	:: d_step { (sent[2] & (1 << m)) && !(acked[2] & (1 << m)) && !zfailed -> \
		acked[2] = acked[2] | (1 << m) } \
	:: d_step { (win & (1 << m)) && ACKED(m) && !((closed | locked) & (1 << m)) -> \
		closed = closed | (1 << m) }

/*
 * Programs store and acknowledge nothing below C. The library refuses what comes after the RECALL
 * (took0).
 */
active proctype network()
{
end:	do
	FRAMES(0)
	FRAMES(1)
#ifdef ZFAILS
	:: d_step { !zfailed && !zlives -> zfailed = 1 }
	:: d_step { !zfailed && !zlives -> zlives = 1 }
#endif
	/* RECALL, and the program's answer */
	:: d_step { asked0 && !dead && !(rack & 1) ->
#ifndef RECALL_UNREAD
		recall0 = aborted;
#endif
		rack = rack | 1 }
	:: d_step { asked1 && !dead && !(rack & 2) ->
		recall1 = aborted; assert(!(deliv1 & aborted));
		stored1 = stored1 & ~aborted; rack = rack | 2 }
	/* the other host does all at once */
	:: d_step { c1 < sentc ->
		c1++;
		if
		:: (stored1 & 1) && ts[0] + 1 == c1 -> deliv1 = deliv1 | 1
		:: (stored1 & 2) && ts[1] + 1 == c1 -> deliv1 = deliv1 | 2
		:: else
		fi }
	:: d_step { commit0 < sentc -> commit0++ }
	od
}

#ifdef NO_OUT
#define BOUND(o) ((o) == OVER -> now : MIN(MIN(now, inflight), HEAD_TS))
#else
#define BOUND(o) ((o) == OVER -> now : \
		  ((o) != 0 -> MIN(now, o) : MIN(MIN(now, inflight), HEAD_TS)))
#endif

/* The egress program, on a CPU of any speed: it reads out, then the rest of the line. */
active proctype program()
{
	byte o, b;

end:	do
	:: atomic { BEGUN && (BOUND(out) > sentc || !idle) ->
			idle = idle | (BOUND(out) <= sentc); reading = 1; o = out;
			b = MIN(now, inflight) }
		d_step {
			b = (o == OVER -> now : BOUND(o));
			if
			:: b > sentc -> sentc = b
			:: else
			fi;
			reading = 0;
			o = 0;
			b = 0
		}
	od
}

#ifdef NO_GRACE
#define GRACE true
#else
#define GRACE !reading
#endif

#define FREEZE atomic { t = (OPEN != 0 -> HEAD_TS : now); \
			locked = locked | (OPEN != 0 -> 1 << HEAD : 0) }

/* The daemon of P's host. A restart loses what it knows; what is in maps stays. */
active proctype daemon()
{
	byte t;

	BEGUN;
	if
	:: goto stays /* P is never expelled */
	:: true
	fi;
	dead = 1;
#ifdef NO_DEAD
	dead = 0;
#endif
again:
#ifdef OUT_AFTER_T
	FREEZE
	out = t;
	final = 1;
#else
	if
	:: out == 0 -> out = sentc
	:: else
	fi;
	MAY_RESTART;
	GRACE;
	FREEZE
	MAY_RESTART;
	d_step { out = t; final = 1 }
#endif
	MAY_RESTART;
	reported = out;
	MAY_RESTART;
	goto resume;

#ifdef RESTART
adopt:
#if defined(ADOPT_FIRST)
	final = 1;
#elif defined(ADOPT_ANEW)
	if
	:: final -> FREEZE; out = t
	:: else
	fi;
#endif
	if
	:: !final -> goto again
	:: else -> d_step { if :: reported == 0 -> reported = out :: else fi }
	fi;
#endif
resume:
end:	resumed;
#ifdef RESUME_CLEARS
	d_step { out = 0; win = 0; closed = 0 } /* state = 0, under a living process */
	assert(pout);
#endif
	out = OVER;
stays:	skip
}

/* What is kept of P's messages when its T is known. At host 1 all is one step. */
#define KEPT(m) (ts[m] != 0 && ts[m] < reported -> (1 << (m)) : 0)
#define DISCARD(st, dl) ((st) & (KEPT(0) | KEPT(1) | (dl)))
#define TELL_1 d_step { page[1] = 1; stored1 = DISCARD(stored1, deliv1) }

active proctype controller()
{
end:	reported;
	if
	:: page[0] = 1; TELL_1
	:: TELL_1; page[0] = 1
#ifdef DONE_EARLY
	:: resumed = 1; page[0] = 1; TELL_1
#endif
	fi;
	resumed = 1
}

#define DRAIN d_step { stored0 = (stored0 | ring0) & ~(recall0 | took0); ring0 = 0; \
		       took0 = took0 | recall0; recall0 = 0 }

#ifdef SLOW
#define STEPS
#else
#define STEPS atomic
#endif

/* Receiver 0's library. */
active proctype reader()
{
	byte c = 1;
	bit f, known;

end:	do
	:: c < commit0 || (page[0] && !known) || ring0 || recall0 -> STEPS {
#if defined(PAGE_FIRST)
		f = page[0];
		c = commit0;
		DRAIN;
#elif defined(RING_FIRST)
		DRAIN;
		c = commit0;
		f = page[0];
#else
		c = commit0;
		f = page[0];
		DRAIN;
#endif
		d_step {
			if
			:: f -> known = 1; stored0 = DISCARD(stored0, deliv0)
			:: else
			fi;
			if
			:: (stored0 & 1) && ts[0] < c -> deliv0 = deliv0 | 1
			:: else
			fi;
			if
			:: (stored0 & 2) && ts[1] < c ->
				assert(!(stored0 & 1) || (deliv0 & 1)); deliv0 = deliv0 | 2
			:: else
			fi
		} }
	od
}

/* Nothing more can happen. */
active proctype judge()
{
	timeout;
	assert(page[0] == page[1]);
	assert(deliv0 == deliv1);		 /* atomicity */
	assert(!((deliv0 | deliv1) & aborted)); /* nothing that was recalled */
	if
	:: reported ->
		assert(!(deliv0 & 1) || ts[0] < reported); /* nothing of P from T on */
		assert(!(deliv0 & 2) || ts[1] < reported);
		assert(c1 == now && commit0 == now) /* barriers flow again */
	:: else -> assert(!(zfailed == 0 && stamped == NM) || deliv0 == ALL)
	fi
}
