/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes that do not reach each other by any way, for spin: one of them has to go, and only one.
 * controller/recover/recover_stuck.c, docs/controller.md "When forwarding does not help either".
 *
 *	process 0 on host 0, process 1 on host 1; controllers of epoch 1 and 2
 *	complaint -> decision -> PUT_OUT -> the host puts it out -> PROC_DOWN -> announced, and saved
 *
 * Process 0 complains about 1; with BOTHWAYS 1 about 0 as well. A process, or a host with its process, may fail by itself
 * at any time. The leader may be replaced at any time: of complaints and orders the next one knows nothing, of what was
 * announced it knows all. A message may take as long as it likes; a host's session is with one leader at a time.
 *
 * Promised, where nothing more can happen: one of the two was announced, so that nothing stands still; not both were put
 * out; and none was put out by a leader that had heard before its decision that the other one failed.
 *
 * Example: 0 complains, the leader orders PUT_OUT 1 and is replaced. Host 1 has heard of epoch 2 when the order comes, and
 * refuses it; host 0 complains again, to the next leader. Without that 1 could go by the old order, and 0 by a new one.
 *
 * Defects, each of which must be refuted:
 * BOTH			both ends of a complaint are put out
 * NO_DROP		a decision leaves other complaints of who goes
 * FORGETS_ORDER	a complaint about somebody who is to be put out is taken
 * JUDGES_FAILED	complaints stay when one of the two has failed
 * HASTY		it is decided while a report of silence is not settled
 * UNFENCED		an order of a leader before is obeyed
 * ONCE			a host complains once only, whoever leads
 *
 * What it does not do: more than two processes (tests/unit/controller/recover/test_recover_stuck.c has who goes of many), lives (lives.pml),
 * what putting out is (expel.pml, outcast.pml).
 */
#ifdef BOTHWAYS
#define COMPLAINS(x) true
#else
#define COMPLAINS(x) ((x) == 0)
#endif
#ifndef FAILURES
#define FAILURES 1
#endif

byte failures = FAILURES;
bit died[2], hostdead[2]; /* by itself */
bit out[2];		  /* as ordered */
bit vain[2];		  /* whoever ordered it had heard that the other one failed */
byte ep[2];		  /* the epoch that a host obeys: with whom its session is */
bit said[2];
bit announced[2];
byte leader = 1;

/* of leader e, the process x: e * 2 + x */
bit complaint[6], silent[6], knows[6], heard[6], order[6];
bit decided[3];

#define OF(e, x)  ((e) * 2 + (x))
#define ANY(e)	  (complaint[OF(e, 0)] || complaint[OF(e, 1)])
#define ORDERS(e) (order[OF(e, 0)] || order[OF(e, 1)])
#define KNOWS(e)  (knows[OF(e, 0)] || knows[OF(e, 1)])
#define DROP(e)	  complaint[OF(e, 0)] = 0; complaint[OF(e, 1)] = 0

#ifdef JUDGES_FAILED
#define SETTLED(e) skip
#define FAILED_ONE(e) false
#else
#define SETTLED(e) DROP(e)
#define FAILED_ONE(e) KNOWS(e)
#endif
#ifdef FORGETS_ORDER
#define ORDERED(e) false
#else
#define ORDERED(e) ORDERS(e)
#endif
#ifdef HASTY
#define UNSETTLED(e) false
#else
#define UNSETTLED(e) (silent[OF(e, 0)] || silent[OF(e, 1)])
#endif
#ifdef UNFENCED
#define OBEYS(e, x) true
#else
#define OBEYS(e, x) (ep[x] == (e))
#endif
#ifdef ONCE
#define SAY(x) said[x] = 1
#else
#define SAY(x) skip
#endif
#ifdef NO_DROP
#define DECIDED(e, x) complaint[OF(e, x)] = 0
#elif defined(BOTH)
#define DECIDED(e, x) DROP(e); order[OF(e, x)] = 1
#else
#define DECIDED(e, x) DROP(e)
#endif

#define WORKS(x) (!died[x] && !hostdead[x] && !out[x])
/* Process x complains about the other, y. */
#define COMPLAIN(e, x, y) \
	:: d_step { COMPLAINS(x) && leader == (e) && ep[x] == (e) && WORKS(x) && !announced[y] && !said[x] && !complaint[OF(e, x)] && \
		    !FAILED_ONE(e) && !ORDERED(e) && !order[OF(e, y)] -> complaint[OF(e, x)] = 1; SAY(x) }
/* It is y that goes. */
#define DECIDE(e, x, y) \
	:: d_step { leader == (e) && complaint[OF(e, x)] && !UNSETTLED(e) -> \
		order[OF(e, y)] = 1; vain[y] = vain[y] | heard[OF(e, x)]; DECIDED(e, x) }
#define ORDER(e, y) \
	:: d_step { order[OF(e, y)] && OBEYS(e, y) && WORKS(y) -> out[y] = 1 }
/* Its host says that it is gone; or the host is silent, and then judged. */
#define REPORT(e, x) \
	:: d_step { leader == (e) && ep[x] == (e) && !hostdead[x] && (died[x] || out[x]) && !knows[OF(e, x)] -> \
		knows[OF(e, x)] = 1; heard[OF(e, x)] = 1; SETTLED(e) } \
	:: d_step { leader == (e) && hostdead[x] && !silent[OF(e, x)] && !knows[OF(e, x)] -> silent[OF(e, x)] = 1; heard[OF(e, x)] = 1 } \
	:: d_step { leader == (e) && silent[OF(e, x)] -> silent[OF(e, x)] = 0; knows[OF(e, x)] = 1; SETTLED(e) } \
	:: d_step { leader == (e) && knows[OF(e, x)] && !announced[x] -> announced[x] = 1 }
#define LEADER(e) \
	COMPLAIN(e, 0, 1) COMPLAIN(e, 1, 0) DECIDE(e, 0, 1) DECIDE(e, 1, 0) ORDER(e, 0) ORDER(e, 1) REPORT(e, 0) REPORT(e, 1)
#define HOST(x) \
	:: d_step { leader == 2 && ep[x] == 1 && !hostdead[x] -> ep[x] = 2 } \
	:: d_step { failures > 0 && WORKS(x) -> died[x] = 1; failures-- } \
	:: d_step { failures > 0 && !hostdead[x] -> hostdead[x] = 1; failures-- }

active proctype all()
{
	d_step { ep[0] = 1; ep[1] = 1 }
	do
	LEADER(1)
	HOST(0)
	HOST(1)
	:: failures > 0 -> failures = 0
#ifdef ELECT
	LEADER(2)
	:: d_step { leader == 1 -> leader = 2; knows[OF(2, 0)] = announced[0]; knows[OF(2, 1)] = announced[1] }
#endif
	:: else -> break
	od;

	/* Nothing more can happen. */
	assert(announced[0] || announced[1]);
	assert(!(out[0] && out[1]));
	assert(!(out[0] && vain[0]) && !(out[1] && vain[1]))
#ifdef REACH
#if REACH == 1
	; assert(!(out[0] && ep[0] == 2)) /* by a complaint of 1 */
#elif REACH == 2
	; assert(!(out[1] && died[0]))	  /* it failed too late */
#endif
#endif
}
