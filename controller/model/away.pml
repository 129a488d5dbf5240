/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of a daemon that stops on purpose while a failure is open: the others wait for its
 * host, but not for ever, whoever leads. The code is controller/recover/recover_event.c
 * (bl_recover_away) and loader/order/agent.c (bl_agent_away); see also docs/controller.md, "Daemons
 * that restart".
 *
 *	host -- Away, Hello, DONE --> leader 1, then 2 -- the node's record --> store
 *
 * Time is a number. A message, and a save, takes less than one unit; a leader may die between any
 * two of them. The failure that the host has to answer (DONE) is in the store from its first moment
 * on.
 *
 * Promised: a host is not announced if its daemon sent Away, was told that the absence is saved,
 * and came back in time. A host that did not come back, or crashed, is announced. It is announced
 * as soon as if it had never been away, if the time of its absence has passed or it had come back,
 * and the leader lived long enough to save that.
 *
 * Example: the daemon leaves at 1 for 3 units, the failure begins at 1, leader 1 dies at 2. Leader
 * 2 begins at 2, finds the absence in the store and waits until 5. The daemon is back at 4 and
 * answers.
 *
 * Defects, each of which must be refuted:
 * NOT_SAVED	the absence is not in the node's record
 * NO_ACK	the daemon stops before it was told that the absence is saved
 * FOR_EVER	the absence ends with a Hello only
 * NOT_ENDED	it is not saved that the time of the absence has passed
 * NOT_CLEARED	it is not saved that the daemon is back
 * HELLO_AFTER	a Hello is sent after Away in the same session
 * NO_TIME	a daemon that is back gets no time of its own to answer
 *
 * Not covered: links (a caretaker sends beacons, or the host falls silent and is judged by that),
 * more than one absence.
 */
#define AWAY   3
#define ANSWER 1
#define GRACE  1
#define END    14
#define NEVER  200

byte now, leader = 1, began; /* when leader 2 began */
bit open, done, failed;
byte opened, due;
/* the daemon */
bit up = 1, crashed, planned, left, back, asked;
byte left_at, back_at, changed_at;
bit fair = 1; /* the daemon has kept to the agreement */
/* messages on the way, in this order */
bit m_away, m_hello;
/* the leader's memory, and the store */
bit granted, saving, value, acked;
byte until;
bit s_away;

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define WORKS	  (up && !crashed && !left)
#define QUIET	  (!m_away && !m_hello && !saving && !(open && !done && WORKS) && \
		   !(granted && now >= until) && !(WORKS && planned && acked) && !LATE)
#define FAIR	  (fair && !(left && now - left_at >= AWAY))
#define LATE	  (open && !done && !failed && now > due && now >= until)

#ifdef NOT_SAVED
#define SAVE(v) acked = acked | (v)
#else
#define SAVE(v) saving = 1; value = (v)
#endif
#ifdef NOT_CLEARED
#define CLEAR granted = 0
#else
#define CLEAR if :: granted -> granted = 0; SAVE(0) :: else fi
#endif
#ifdef NOT_ENDED
#define PASSED granted = 0
#else
#define PASSED granted = 0; SAVE(0)
#endif
#ifdef FOR_EVER
#define UNTIL NEVER
#else
#define UNTIL (now + AWAY)
#endif
#ifdef NO_ACK
#define LEAVES planned
#else
#define LEAVES (planned && acked)
#endif
#ifdef NO_TIME
#define OWN_TIME now
#else
#define OWN_TIME (now + ANSWER)
#endif
/* When the time to answer began: the last of these, unless the daemon was away. */
#define SINCE MAX(MAX(opened, began), changed_at)

active proctype all()
{
	do
	/* time passes when nothing is left to do in this moment */
	:: d_step { QUIET && now < END -> now++ }
	:: d_step { !open && !crashed && now < 4 -> open = 1; opened = now; due = now + ANSWER }
	:: d_step { !open && crashed && now < 8 -> open = 1; opened = now; due = now + ANSWER }

	/* the daemon */
	:: d_step { WORKS && !planned && !back && !m_hello && now < 4 -> planned = 1; m_away = 1 }
#ifdef HELLO_AFTER
	:: d_step { planned && !left && !asked && WORKS -> asked = 1; m_hello = 1 }
#endif
	:: d_step { WORKS && LEAVES && !back -> left = 1; left_at = now }
	:: d_step { left && !crashed ->
		left = 0; back = 1; planned = 0; m_hello = 1; back_at = now; changed_at = now;
		fair = fair && now - left_at < AWAY }
	:: d_step { left && !crashed && now - left_at >= AWAY ->
		fair = 0; crashed = 1; changed_at = left_at + AWAY } /* it does not come back */
	:: d_step { WORKS && !planned && now < 6 -> crashed = 1; changed_at = now; fair = 0 }
	:: d_step { open && !done && WORKS && !m_hello && !failed -> done = 1 }

	/* the leader receives messages */
	:: d_step { m_away -> m_away = 0; granted = 1; until = UNTIL; SAVE(1) }
	:: d_step { m_hello && !m_away -> m_hello = 0;
		if
		:: now < until -> until = OWN_TIME
		:: else
		fi;
		CLEAR }
	:: d_step { saving -> saving = 0; s_away = value; acked = acked | value }
	:: d_step { granted && now >= until -> PASSED }
	:: d_step { LATE && !(granted && now >= until) ->
		failed = 1;
		assert(!FAIR);
		/* as soon as if it had not been away, if the end of the absence was saved */
		assert(!((back && (leader == 1 || back_at < began)) || left_at + AWAY < began) ||
		       now <= SINCE + MAX(ANSWER, GRACE) + 1) }

	/* the leader dies with what it has not saved; the next session begins with a Hello */
	:: d_step { leader == 1 && now < 8 ->
		leader = 2;
		began = now;
		due = (open -> now + MAX(ANSWER, GRACE) : 0);
		granted = s_away;
		until = (s_away -> UNTIL : 0);
		saving = 0;
		m_away = 0;
		/* an Away that was not confirmed may be sent again in the next session */
		if
		:: planned && !acked && WORKS -> planned = 0
		:: else
		fi;
		m_hello = WORKS && !planned
		}
	:: else -> break
	od;

	assert(!open || done || failed)
}
