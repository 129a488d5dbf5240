/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of two processes that do not reach each other by any way: one of them has to be
 * expelled, and only one. The code is controller/recover/recover_stuck.c; see also
 * docs/controller.md, "When forwarding does not help either".
 *
 *	process 0 on host 0, process 1 on host 1; controllers of epoch 1 and 2
 *	complaint -> decision -> PUT_OUT -> the host expels it -> PROC_DOWN -> announced and saved
 *
 * Process 0 complains about process 1; with BOTHWAYS, 1 also complains about 0. A process, or a
 * host with its process, may fail by itself at any time. The leader may be replaced at any time.
 * The next leader knows no complaint and no command of the earlier one, and everything that was
 * announced. A message may be delayed without a limit. A host has a session with one leader at a
 * time.
 *
 * Promised, where nothing more can happen: one of the two was announced, so that no barrier stands
 * still for ever; not both were expelled; and no process was expelled by a leader that had heard
 * before its decision that the other one failed.
 *
 * Example: 0 complains, the leader sends PUT_OUT 1 and is replaced. Host 1 has heard of epoch 2
 * when the command arrives, and refuses it; host 0 complains again, to the next leader. Without the
 * refusal, 1 could be expelled by the old command and 0 by a new one.
 *
 * Defects, each of which must be refuted:
 * BOTH			both ends of a complaint are expelled
 * NO_DROP		a decision leaves the other complaints about the process that is expelled
 * FORGETS_ORDER	a complaint about a process that is to be expelled is accepted
 * JUDGES_FAILED	complaints stay although one of the two has failed
 * HASTY		a decision is made while a report of silence is not settled
 * UNFENCED		a command of an earlier leader is obeyed
 * ONCE			a host complains only once, whoever leads
 *
 * Not covered: more than two processes (which of many is expelled is tested in
 * tests/unit/controller/recover/test_recover_stuck.c), lives (lives.pml), what expelling does
 * (expel.pml, outcast.pml).
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
bit died[2], hostdead[2]; /* failed by itself */
bit out[2];		  /* expelled by a command */
bit vain[2];		  /* its PUT_OUT came from a leader that knew that the other failed */
byte ep[2];		  /* the epoch that a host obeys, and has its session with */
bit said[2];
bit announced[2];
byte leader = 1;

/* index e * 2 + x: what leader e knows of process x */
bit complaint[6], silent[6], knows[6], heard[6], command[6];
bit decided[3];

#define OF(e, x)  ((e) * 2 + (x))
#define ANY(e)	  (complaint[OF(e, 0)] || complaint[OF(e, 1)])
#define COMMANDS(e) (command[OF(e, 0)] || command[OF(e, 1)])
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
#define COMMANDED(e) false
#else
#define COMMANDED(e) COMMANDS(e)
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
#define DECIDED(e, x) DROP(e); command[OF(e, x)] = 1
#else
#define DECIDED(e, x) DROP(e)
#endif

#define WORKS(x) (!died[x] && !hostdead[x] && !out[x])
/* Process x complains about the other, y. */
#define COMPLAIN(e, x, y) \
	:: d_step { COMPLAINS(x) && leader == (e) && ep[x] == (e) && WORKS(x) && !announced[y] && \
		    !said[x] && !complaint[OF(e, x)] && !FAILED_ONE(e) && !COMMANDED(e) && \
		    !command[OF(e, y)] -> complaint[OF(e, x)] = 1; SAY(x) }
/* The decision: y is expelled. */
#define DECIDE(e, x, y) \
	:: d_step { leader == (e) && complaint[OF(e, x)] && !UNSETTLED(e) -> \
		command[OF(e, y)] = 1; vain[y] = vain[y] | heard[OF(e, x)]; DECIDED(e, x) }
#define COMMAND(e, y) \
	:: d_step { command[OF(e, y)] && OBEYS(e, y) && WORKS(y) -> out[y] = 1 }
/* Its host reports that it is gone; or the host is silent, and is judged then. */
#define REPORT(e, x) \
	:: d_step { leader == (e) && ep[x] == (e) && !hostdead[x] && (died[x] || out[x]) && \
		    !knows[OF(e, x)] -> \
		knows[OF(e, x)] = 1; heard[OF(e, x)] = 1; SETTLED(e) } \
	:: d_step { leader == (e) && hostdead[x] && !silent[OF(e, x)] && !knows[OF(e, x)] -> \
		silent[OF(e, x)] = 1; heard[OF(e, x)] = 1 } \
	:: d_step { leader == (e) && silent[OF(e, x)] -> \
		silent[OF(e, x)] = 0; knows[OF(e, x)] = 1; SETTLED(e) } \
	:: d_step { leader == (e) && knows[OF(e, x)] && !announced[x] -> announced[x] = 1 }
#define LEADER(e) \
	COMPLAIN(e, 0, 1) COMPLAIN(e, 1, 0) DECIDE(e, 0, 1) DECIDE(e, 1, 0) \
	COMMAND(e, 0) COMMAND(e, 1) REPORT(e, 0) REPORT(e, 1)
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
	:: d_step { leader == 1 ->
		leader = 2; knows[OF(2, 0)] = announced[0]; knows[OF(2, 1)] = announced[1] }
#endif
	:: else -> break
	od;

	/* Nothing more can happen. */
	assert(announced[0] || announced[1]);
	assert(!(out[0] && out[1]));
	assert(!(out[0] && vain[0]) && !(out[1] && vain[1]))
#ifdef REACH
#if REACH == 1
	; assert(!(out[0] && ep[0] == 2)) /* because of a complaint of 1 */
#elif REACH == 2
	; assert(!(out[1] && died[0]))	  /* it failed after the decision */
#endif
#endif
}
