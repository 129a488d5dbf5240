/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A daemon that stops on purpose while a failure is open, for spin: its host is waited for, and not for ever, whoever leads.
 * controller/recover/recover_event.c (bl_recover_away), loader/order/agent.c (bl_agent_away), docs/controller.md "Daemons that restart".
 *
 *	host -- Away, Hello, DONE --> leader 1, then 2 -- the node's record --> store
 *
 * Time is a number. A message, and a save, takes less than one unit; a leader may die at any moment, between any two of them.
 * The failure that the host has to answer (DONE) is in the store from its first moment on.
 *
 * Promised: a host whose daemon said Away, was told that this is saved, and came back in time is not announced; one that
 * did not come back, or crashed, is; and as soon as if it had never been away, if its time has passed or it had come back, and the leader lived to save that.
 *
 * Example: it leaves at 1 for 3, the failure begins at 1, leader 1 dies at 2. Leader 2 begins at 2, finds the absence in
 * the store and waits until 5. The daemon is there again at 4 and answers.
 *
 * Defects, each of which must be refuted:
 * NOT_SAVED	the absence is not in the node's record
 * NO_ACK	the daemon stops before it was told that the absence is saved
 * FOR_EVER	the absence has no end but a Hello
 * NOT_ENDED	that its time has passed is not saved
 * NOT_CLEARED	that the daemon is back is not saved
 * HELLO_AFTER	a Hello is said after Away, in the same session
 * NO_TIME	who is back has no time of its own to answer
 *
 * What it does not do: links (a caretaker beats, or the host falls silent and is judged by that), more than one absence.
 */
#define AWAY   3
#define ANSWER 1
#define GRACE  1
#define END    14
#define NEVER  200

byte now, leader = 1, began; /* of leader 2: its first moment */
bit open, done, failed;
byte opened, due;
/* the daemon */
bit up = 1, crashed, planned, left, back, asked;
byte left_at, back_at, changed_at;
bit fair = 1; /* it has kept to what was agreed */
/* on the way, in this order */
bit m_away, m_hello;
/* the leader's memory, and the store */
bit granted, saving, value, acked;
byte until;
bit s_away;

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define WORKS	  (up && !crashed && !left)
#define QUIET	  (!m_away && !m_hello && !saving && !(open && !done && WORKS) && !(granted && now >= until) && !(WORKS && planned && acked) && !LATE)
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
/* Who was away is late when that is over; else what is judged begins with the last of these. */
#define SINCE MAX(MAX(opened, began), changed_at)

active proctype all()
{
	do
	/* time, if nothing is left to do in this moment */
	:: d_step { QUIET && now < END -> now++ }
	:: d_step { !open && !crashed && now < 4 -> open = 1; opened = now; due = now + ANSWER }
	:: d_step { !open && crashed && now < 8 -> open = 1; opened = now; due = now + ANSWER }

	/* the daemon */
	:: d_step { WORKS && !planned && !back && !m_hello && now < 4 -> planned = 1; m_away = 1 }
#ifdef HELLO_AFTER
	:: d_step { planned && !left && !asked && WORKS -> asked = 1; m_hello = 1 }
#endif
	:: d_step { WORKS && LEAVES && !back -> left = 1; left_at = now }
	:: d_step { left && !crashed -> left = 0; back = 1; planned = 0; m_hello = 1; back_at = now; changed_at = now; fair = fair && now - left_at < AWAY }
	:: d_step { left && !crashed && now - left_at >= AWAY -> fair = 0; crashed = 1; changed_at = left_at + AWAY } /* it does not come back */
	:: d_step { WORKS && !planned && now < 6 -> crashed = 1; changed_at = now; fair = 0 }
	:: d_step { open && !done && WORKS && !m_hello && !failed -> done = 1 }

	/* the leader hears */
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
		/* as soon as if it had not been away, if that was saved */
		assert(!((back && (leader == 1 || back_at < began)) || left_at + AWAY < began) || now <= SINCE + MAX(ANSWER, GRACE) + 1) }

	/* the leader dies, with what it has not saved; the daemon's session, too: the next one begins with a Hello */
	:: d_step { leader == 1 && now < 8 ->
		leader = 2;
		began = now;
		due = (open -> now + MAX(ANSWER, GRACE) : 0);
		granted = s_away;
		until = (s_away -> UNTIL : 0);
		saving = 0;
		m_away = 0;
		/* what it was not told it says again, in the next session; else that is silence */
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
