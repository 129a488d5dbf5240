/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of reliable 1Pipe and its failure handling (1Pipe section 5). run.sh lists the
 * configurations; docs/reliable.md describes what follows from them.
 *
 *	A --(X)--+-- S0 -- receiver 0, ...
 *	    B ---+-- S1 -- ...
 *
 * A is the sender that may fail. With TOR it is behind a switch X of its own, which may fail, too.
 * B is a sender that does not fail. There are K switches S; a receiver is connected to all of them
 * or, with APART, receiver r to S[r % K] alone.
 *
 * Every scattering goes to all receivers. Message m has the timestamp m + 1; OWN_A is the mask of
 * A's messages. C is 1 at first, and NM + 1 when everything is committed. With SAMEHOST the last
 * receiver, Z, is on A's host and fails with it; with ZFAILS it fails by itself.
 *
 * The state only grows, so every run ends. A run ends where nothing more can happen, and there the
 * promises are checked. What is still to come was waited for, so a stall is seen as an end with
 * less than everything done. A frame that was sent may arrive at any later time, once or again or
 * never, before or after any other: this includes loss, delay, duplicates and retransmission. A
 * register rises by one, up to what the other end could have sent: this is a frame that is late,
 * since its sender may have gone on or died in between.
 *
 * Example, one switch: A sends m0 (ts 1) to receivers 0 and 1, and dies when 0 has stored it. A's C
 * stays 1. The switch reports 1, so T = 1. Receiver 0 discards m0 (1 >= 1), receiver 1 ignores a
 * late copy; then the switch removes A's input from its minimum, and C rises to that of B.
 *
 * Defects that can be put in with -D, each of which must be refuted: NO_DISCARD, EARLY_RESUME,
 * T_MIN, NO_FREEZE, NO_WINDOW_FREEZE, NO_ASK, RESUME_TORN, NO_FENCE, NO_RECALL_WAIT,
 * NO_RECALL_MEMORY, NO_EPOCH, NO_STORE, RESUMED_COUNTS, EPOCH_LATER.
 *
 * REACH: ends that must be reachable, or the promises could be kept by doing nothing. They are
 * asserted not to be reached, which must be refuted.
 *
 * Not covered: best effort, clocks (timestamps are given), more than one failure of each kind, the
 * rejoining of nodes (resume.pml has that for RESUME).
 */


#ifndef NM
#define NM 3
#endif
#ifndef NR
#define NR 2
#endif
#ifndef K
#define K 1
#endif
#ifndef OWN_A
#define OWN_A 5
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#define TOP	(NM + 1)
#define ALL	((1 << NM) - 1)
#define ALL_R	((1 << NR) - 1)
#define OWN_B	(ALL & ~OWN_A)
#define Z	(NR - 1)

/* Messages, one bit each, by receiver. */
byte sent[NR];	  /* a copy may be on its way */
byte stored[NR];
byte acked[NR];	  /* the ACK reached the sender */
byte deliv[NR];
byte gone[NR];	  /* recalled here: no copy is stored any more */
byte rack[NR];	  /* RECALLED came back to the sender */
byte aborted;	  /* recalled by the sender */
byte fixed[NR];	  /* T of the failure that was handled here; 0: not yet */

/* Barriers C. */
byte cr[NR];	  /* the C that a receiver has seen */
byte in0;	  /* TOR: register at X, of A */
byte ina[K];	  /* register at S, of A or X */
byte inb[K];	  /* register at S, of B */
byte rep0, repa[K]; /* value of the register in the report; 0: not reported */
bit out0, outa[K];  /* resumed: no longer in the minimum */

/* What has really failed; the controller knows reports only. */
bit deada, deadx, deadz, procdead, cut;
bit suspect;	  /* A seems dead, and is not */
bit wfrozen, winout; /* PROC: the window of A's process is frozen; is out of the minimum */
byte repp;	  /* PROC: what the host reported of it */
byte failures = FAILURES;

/* Controllers: epoch 1 and, if elected, 2. */
byte leader = 1;
byte t[3];	  /* T as each of them has it; 0: none */
byte tstore;	  /* T in the store; 0: none */
bit told[3];	  /* FAIL was sent */
byte nepoch[NR];  /* highest epoch that the receiver has heard of */
byte sepoch[K];	  /* the same for the switch */
bit commanded[K]; /* epoch 1 has told S to resume A's input, since only a link seems dead */
bit fenced;	  /* no higher C is sent to Z */
bit bdone, adone; /* B, A have completed the failure of Z */
bit zknown;	  /* Z's failure is announced */

byte i, j, x;

#if defined(SAMEHOST)
#define ZDEAD	(deada || deadz)
#define ZFAILED (told[1] || told[2])	/* announced together with A */
#elif defined(ZFAILS)
#define ZDEAD	deadz
#define ZFAILED zknown
#else
#define ZDEAD	false
#define ZFAILED false
#endif
#define ANNOUNCED (told[1] || told[2])
#define CORRECT(r) (!((r) == Z && (ZDEAD || ZFAILED)))

#ifdef APART
#define ON(r, k) ((r) % K == (k))
#else
#define ON(r, k) true
#endif

/*
 * A sender's C: the timestamp of its first message that is neither acknowledged by all receivers
 * nor recalled.
 */
#if NR == 2
#define EVERY(f) (f[0] & f[1])
#define SOME(f)	 (f[0] | f[1])
#define BUTZ(f)	 (f[0])
#else
#define EVERY(f) (f[0] & f[1] & f[2])
#define SOME(f)	 (f[0] | f[1] | f[2])
#define BUTZ(f)	 (f[0] & f[1])
#endif
/*
 * @done: the sender knows that Z failed: it waits for the others only, and for RECALLED where it
 * recalls.
 */
#ifdef NO_RECALL_WAIT
#define COMPLETE(done) (EVERY(acked) | ((done) -> ((BUTZ(acked) & ~aborted) | aborted) : 0))
#else
#define COMPLETE(done) ((EVERY(acked) & ~aborted) | \
	((done) -> ((BUTZ(acked) & ~aborted) | (BUTZ(rack) & aborted)) : 0))
#endif
#define FIRST(mask) (((mask) & 1) -> 1 : (((mask) & 2) -> 2 : (((mask) & 4) -> 3 : \
		    (((mask) & 8) -> 4 : TOP))))
#define CB FIRST(OWN_B & ~(COMPLETE(bdone)))
#define CA (winout -> TOP : FIRST(OWN_A & ~(COMPLETE(adone))))

#define A_RUNS (!deada)
#define A_SENDS (!deada && !procdead)
#define OWNER_SENDS(m) (((1 << (m)) & OWN_B) || A_SENDS)
#define A_LINK_DEAD (deada || suspect)

#ifdef TOR
#define X_OUT	(out0 -> TOP : in0)
#define UP_DEAD(k) (deadx || (cut && (k) == 0))
#else
#define X_OUT	(CA)
#define UP_DEAD(k) A_LINK_DEAD
#endif

#ifdef NO_FREEZE
#define STANDS(rep) false
#else
#define STANDS(rep) ((rep) != 0)
#endif

/* What S gives to its receivers. */
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define S_OUT(k) (outa[k] -> inb[k] : MIN(ina[k], inb[k]))
#if K == 1
#define C_OUT(r) S_OUT(0)
#define REPORTS_ALL (repa[0] != 0)
#define REPORTS_ANY (repa[0] != 0)
#else
#ifdef APART
#define C_OUT(r) S_OUT((r) % K)
#else
#define C_OUT(r) MIN(S_OUT(0), S_OUT(1))
#endif
#define REPORTS_ALL (repa[0] != 0 && repa[1] != 0)
#define REPORTS_ANY (repa[0] != 0 || repa[1] != 0)
#endif

/*
 * A receiver's C rises by one: everything stored below it is delivered in order, and nothing that
 * comes before a message already delivered.
 */
inline rise(r)
{
	d_step {
		cr[r]++;
		x = 0;
		do
		:: x < NM && x + 1 < cr[r] ->
			if
			:: (stored[r] & (1 << x)) && !(deliv[r] & (1 << x)) ->
				assert(deliv[r] < (1 << x)); /* total order */
				deliv[r] = deliv[r] | (1 << x)
			:: else
			fi;
			x++
		:: else -> break
		od;
		x = 0
	}
}

/*
 * A receiver learns that A failed at @tt: Discard, Callback, and it is done. From now on it ignores
 * what A sends (STORE).
 */
inline discard(r, tt)
{
	d_step {
		fixed[r] = tt;
#ifndef NO_DISCARD
		x = 0;
		do
		:: x < NM ->
			if
			:: (OWN_A & (1 << x)) && x + 1 >= tt ->
				stored[r] = stored[r] & (~(1 << x) | deliv[r])
			:: else
			fi;
			x++
		:: else -> break
		od;
		x = 0
#endif
	}
}

#ifdef NO_DISCARD
#define IGNORED(m, r) false
#else
#define IGNORED(m, r) (fixed[r] && ((1 << (m)) & OWN_A))
#endif
#ifdef NO_RECALL_MEMORY
#define RECALLED(m, r) false
#else
#define RECALLED(m, r) (gone[r] & (1 << (m)))
#endif

/*
 * The library sends in the order of its timestamps, to one receiver after the other: a sender that
 * dies in between has sent to some of them.
 */
#define EARLIER(m, own) ((own) & ((1 << (m)) - 1))
#define OWN(m)	(((1 << (m)) & OWN_A) -> OWN_A : OWN_B)
#define KNOWS_Z(m) (((1 << (m)) & OWN_A) -> adone : bdone)
#define MAY_SEND(m, r) (OWNER_SENDS(m) && !((sent[r] | aborted) & (1 << (m))) && \
	((EARLIER(m, OWN(m)) & ~(SENT_ALL | aborted)) == 0) && !(KNOWS_Z(m) && (r) == Z))
#define SENT_ALL (ZFAILED -> BUTZ(sent) : EVERY(sent))

#define SEND(m, r) \
	:: MAY_SEND(m, r) -> sent[r] = sent[r] | (1 << (m))
/* The receiver's XDP program refuses what is below C, which was promised not to come. */
#define STORE(m, r) \
	:: (sent[r] & (1 << (m))) && !(stored[r] & (1 << (m))) && (m) + 1 >= cr[r] && \
	   !IGNORED(m, r) && !RECALLED(m, r) && !((r) == Z && ZDEAD) -> \
		stored[r] = stored[r] | (1 << (m))
#define ACK(m, r) \
	:: (stored[r] & (1 << (m))) && !(acked[r] & (1 << (m))) && \
	   (((1 << (m)) & OWN_B) || (A_RUNS && !wfrozen)) -> \
		acked[r] = acked[r] | (1 << (m))
#define RECALL(m, r) \
	:: (aborted & (1 << (m))) && !(gone[r] & (1 << (m))) && CORRECT(r) -> \
		d_step { gone[r] = gone[r] | (1 << (m)); assert(!(deliv[r] & (1 << (m)))); \
			 stored[r] = stored[r] & ~(1 << (m)) }
#define RECALLED_BACK(m, r) \
	:: (gone[r] & (1 << (m))) && !(rack[r] & (1 << (m))) -> rack[r] = rack[r] | (1 << (m))
#define FRAMES(m, r) SEND(m, r) STORE(m, r) ACK(m, r) RECALL(m, r) RECALLED_BACK(m, r)
#if NR == 2
#define TO_ALL(m) FRAMES(m, 0) FRAMES(m, 1)
#else
#define TO_ALL(m) FRAMES(m, 0) FRAMES(m, 1) FRAMES(m, 2)
#endif

#define SEES(r) \
	:: cr[r] < C_OUT(r) && !((r) == Z && (ZDEAD || fenced)) -> rise(r)

/* S receives barriers of A or X, and of B, and reports when it does not. */
#define HEARS(k) \
	:: ina[k] < X_OUT && !STANDS(repa[k]) && !(UP_CUT(k)) -> ina[k]++ \
	:: inb[k] < CB -> inb[k]++ \
	:: repa[k] == 0 && (UP_DEAD(k) || ASKED(k)) -> repa[k] = ina[k]
#ifdef TOR
#define UP_CUT(k) (cut && (k) == 0)
#else
#define UP_CUT(k) false
#endif

/*
 * APART: a link is cut, so that no flow is left between A and a receiver although both live. A is
 * announced as failed; therefore the other switch is asked to freeze its input from A and report.
 */
#if defined(APART) && defined(TOR) && !defined(NO_ASK) && !defined(RESUME_TORN)
#define ASKED(k) (repa[1 - (k)] != 0)
#else
#define ASKED(k) false
#endif

/* What the reports say. */
#ifdef T_MIN
#define BETTER(a, b) ((a) == 0 -> (b) : ((b) == 0 -> (a) : ((a) < (b) -> (a) : (b))))
#else
#define BETTER(a, b) ((a) > (b) -> (a) : (b))
#endif
/*
 * The reports that leader @e may use. A register that was resumed holds C back no longer, so its
 * report does not count once RESUME was sent. A successor asks each switch anew: the answer has
 * what is frozen, and from then on the switch refuses commands of the earlier leader.
 */
#if defined(RESUMED_COUNTS)
#define REPORT(k, e) repa[k]
#elif defined(ELECT) && !defined(EPOCH_LATER)
#define REPORT(k, e) ((outa[k] || ((e) == 1 && commanded[k]) || ((e) == 2 && sepoch[k] < 2)) -> \
		      0 : repa[k])
#else
#define REPORT(k, e) ((outa[k] || ((e) == 1 && commanded[k])) -> 0 : repa[k])
#endif
#if K == 1
#define OF_S(e) REPORT(0, e)
#else
#define OF_S(e) BETTER(REPORT(0, e), REPORT(1, e))
#endif
#if defined(PROC)
#define FAILED_SEEN(e) (repp != 0)
#define T_SEEN(e) repp
#elif defined(NO_ASK)
#define FAILED_SEEN(e) REPORTS_ANY
#define T_SEEN(e) OF_S(e)
#elif defined(APART) || K == 1
#define FAILED_SEEN(e) (REPORTS_ALL || rep0)
#define T_SEEN(e) BETTER(OF_S(e), rep0)
#else
/*
 * X's session with the controller has ended: one report is enough, since each receiver is behind
 * both switches (held); or all neighbours of X have reported.
 */
#define FAILED_SEEN(e) ((REPORTS_ALL && OF_S(e) != 0) || rep0 || (OF_S(e) != 0 && deadx))
#define T_SEEN(e) BETTER(OF_S(e), rep0)
#endif
/* X lives and only a link is silent: no node failed, and another flow is left. */
#if K == 2 && defined(TOR) && !defined(APART)
#define LINK_ONLY(k) (repa[k] != 0 && repa[1 - (k)] == 0 && t[leader] == 0 && tstore == 0)
#elif defined(RESUME_TORN)
#define LINK_ONLY(k) (repa[k] != 0 && repa[1 - (k)] == 0)
#else
#define LINK_ONLY(k) false
#endif

/*
 * The leader puts T into the store before it announces it, and uses a T that it finds there. Leader
 * 1 may wake up after 2 was elected.
 */
#if defined(NO_STORE)
#define MAY_KEEP(e) (t[e] == 0 && FAILED_SEEN(e))
#define MAY_TELL(e) (t[e] != 0)
#elif defined(NO_EPOCH)
#define MAY_KEEP(e) false
#define MAY_TELL(e) (t[e] != 0)
#else
#define MAY_KEEP(e) false
#define MAY_TELL(e) (t[e] != 0 && tstore == t[e])
#endif

#define CONTROL(e) \
	:: MAY_KEEP(e) -> t[e] = T_SEEN(e) \
	:: t[e] == 0 && (e) <= leader && FAILED_SEEN(e) && !KEEPS_NOTHING -> \
		d_step { if :: tstore != 0 && (e) == leader -> t[e] = tstore \
			 :: else -> t[e] = T_SEEN(e) fi } \
	:: t[e] != 0 && tstore == 0 && !KEEPS_NOTHING && ((e) == leader || UNFENCED) -> \
		tstore = t[e] \
	:: t[e] != 0 && tstore != 0 && tstore != t[e] && (e) == leader && !told[e] && \
	   !KEEPS_NOTHING -> t[e] = tstore \
	:: !told[e] && MAY_TELL(e) && ((e) == leader || (e) < leader) -> \
		d_step { told[e] = 1; FENCE }
#ifdef NO_STORE
#define KEEPS_NOTHING true
#else
#define KEEPS_NOTHING false
#endif
#ifdef NO_EPOCH
#define UNFENCED true
#else
#define UNFENCED false
#endif
#if defined(SAMEHOST) && !defined(NO_FENCE)
#define FENCE fenced = 1
#else
#define FENCE skip
#endif

/* FAIL arrives, once or several times; it is refused if a higher epoch was heard of. */
#define OBEYS(r, e) \
	:: told[e] && fixed[r] == 0 && CORRECT(r) && (nepoch[r] <= (e) || UNFENCED) -> \
		d_step { nepoch[r] = e } discard(r, t[e])
#define EPOCHS(r) \
	:: leader == 2 && nepoch[r] < 2 -> nepoch[r] = 2
#ifdef ELECT
#define OF_RECEIVER(r) SEES(r) OBEYS(r, 1) OBEYS(r, 2) EPOCHS(r)
#else
#define OF_RECEIVER(r) SEES(r) OBEYS(r, 1)
#endif

#ifdef EARLY_RESUME
#define COMPLETED ANNOUNCED
#elif NR == 2
#define COMPLETED (ANNOUNCED && fixed[0] && (fixed[1] || !CORRECT(1)) SENDERS_TOO)
#else
#define COMPLETED (ANNOUNCED && fixed[0] && fixed[1] && (fixed[2] || !CORRECT(2)) SENDERS_TOO)
#endif
#ifdef SAMEHOST
#define SENDERS_TOO && bdone && (OWN_B & aborted & ~BUTZ(rack)) == 0
#else
#define SENDERS_TOO
#endif
#if defined(ELECT)
#define RESUMES(k) \
	:: repa[k] != 0 && !outa[k] && COMPLETED -> outa[k] = 1 \
	:: leader == 1 && !commanded[k] && LINK_ONLY(k) -> commanded[k] = 1 \
	:: commanded[k] && !outa[k] && (sepoch[k] < 2 || UNFENCED) -> outa[k] = 1 \
	:: leader == 2 && sepoch[k] == 2 && !outa[k] && LINK_ONLY(k) -> outa[k] = 1 \
	:: leader == 2 && sepoch[k] < 2 -> sepoch[k] = 2
#else
#define RESUMES(k) \
	:: repa[k] != 0 && !outa[k] && (COMPLETED || LINK_ONLY(k)) -> outa[k] = 1
#endif

/*
 * A sender learns that Z failed. It recalls what was sent and Z did not acknowledge; what was not
 * sent yet goes to the others.
 */
#define TO_RECALL(own) ((own) & SOME(sent) & ~acked[Z])

active proctype all()
{
	d_step {
		i = 0;
		do
		:: i < NR -> cr[i] = 1; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < K -> ina[i] = 1; inb[i] = (OWN_B == 0 -> TOP : 1); i++
		:: else -> break
		od;
		i = 0;
		in0 = 1
	}
	do
	TO_ALL(0)
#if NM > 1
	TO_ALL(1)
#endif
#if NM > 2
	TO_ALL(2)
#endif
#if NM > 3
	TO_ALL(3)
#endif
	OF_RECEIVER(0)
	OF_RECEIVER(1)
#if NR > 2
	OF_RECEIVER(2)
#endif
	HEARS(0)
	RESUMES(0)
#if K > 1
	HEARS(1)
	RESUMES(1)
#endif
#ifdef TOR
	:: in0 < CA && !STANDS(rep0) && !deadx -> in0++
	:: rep0 == 0 && A_LINK_DEAD && !deadx -> rep0 = in0
	:: rep0 != 0 && !out0 && COMPLETED && !deadx -> out0 = 1
#endif
	CONTROL(1)
#ifdef ELECT
	CONTROL(2)
	:: leader == 1 -> leader = 2
#endif
#ifdef PROC
	:: procdead && repp == 0 -> d_step { repp = CA;
#ifndef NO_WINDOW_FREEZE
		wfrozen = 1;
#endif
		skip }
	:: repp != 0 && !winout && COMPLETED -> winout = 1
#endif
#if defined(SAMEHOST)
	:: ANNOUNCED && !bdone -> d_step { bdone = 1; aborted = aborted | TO_RECALL(OWN_B) }
#elif defined(ZFAILS)
	:: deadz && !zknown -> zknown = 1
	:: zknown && !bdone -> d_step { bdone = 1; aborted = aborted | TO_RECALL(OWN_B) }
	:: zknown && !adone && A_SENDS -> d_step { adone = 1; aborted = aborted | TO_RECALL(OWN_A) }
#endif
	/* what may fail */
	:: failures > 0 -> failures = 0
#ifdef CRASH_A
	:: failures > 0 && !deada && !suspect -> d_step { deada = 1; failures-- }
#endif
#ifdef SUSPECT_A
	:: failures > 0 && !deada && !suspect -> d_step { suspect = 1; failures-- }
#endif
#ifdef PROC
	:: failures > 0 && !procdead -> d_step { procdead = 1; failures-- }
#endif
#ifdef CRASH_X
	:: failures > 0 && !deadx -> d_step { deadx = 1; failures-- }
#endif
#ifdef CUT
	:: failures > 0 && !cut -> d_step { cut = 1; failures-- }
#endif
#ifdef ZFAILS
	:: failures > 0 && !deadz -> d_step { deadz = 1; failures-- }
#endif
	:: else -> break
	od;

	/* Nothing more can happen. */
	skip; /* a jump into d_step is not allowed */
	d_step {
		i = 0;
		do
		:: i < NR ->
			if
			:: CORRECT(i) ->
				assert(cr[i] == TOP); /* progress: barriers flow again */
				j = 0;
				do
				:: j < NM ->
					/* atomicity */
					assert((deliv[i] & (1 << j)) == (deliv[0] & (1 << j)));
					if
					:: (1 << j) & aborted -> assert(!(deliv[i] & (1 << j)))
					:: else ->
						if
						:: (1 << j) & OWN_B ->
							/* what is not recalled is delivered */
							assert(deliv[i] & (1 << j))
						:: ((1 << j) & OWN_A) && !ANNOUNCED && A_SENDS ->
							assert(deliv[i] & (1 << j))
						:: ((1 << j) & OWN_A) && ANNOUNCED ->
							/* nothing of A from T on, all below it */
							assert(!(deliv[i] & (1 << j)) ||
							       j + 1 < fixed[i]);
							assert((deliv[i] & (1 << j)) ||
							       j + 1 >= fixed[i])
						:: else
						fi
					fi;
					j++
				:: else -> break
				od
			:: else ->
				/* one that failed, or seemed to, delivered nothing recalled */
				assert((deliv[i] & aborted) == 0)
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		j = 0;
#ifdef REACH
#if REACH == 1
		/* T divides what A had sent */
		assert(!(ANNOUNCED && (deliv[0] & OWN_A) && (sent[0] & OWN_A & ~deliv[0])))
#elif REACH == 2
		assert(!(aborted && rack[0] && rack[1])) /* recalled at both that are left */
#elif REACH == 3
		assert(!(told[1] && told[2])) /* both leaders announced the failure */
#elif REACH == 4
		/* the reports differ, T is the greater */
		assert(!(ANNOUNCED && outa[0] && outa[1] && repa[0] < repa[1] &&
			 fixed[0] == repa[1]))
#endif
#endif
	}
}
