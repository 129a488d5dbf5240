/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RESUME and the death that it is for, for spin: an input dies, is resumed, joins again and dies again, while copies of earlier orders, of the leader or of one that was replaced, are still on their way. None
 * may open an input whose present death was not dealt with by all correct processes.
 *
 * Example: the input died (death 1), all are done, RESUME(1) was sent twice, for the connection broke in between. The first copy opens the input; it joins, and dies again (death 2). The second copy arrives: with the
 * number of the death in it, it is refused. An epoch would not help: it is the same one.
 *
 * Defect: NO_NUMBER, an order names the input alone.
 */
#define DEATHS 3

bit frozen;
byte death;  /* the present or last one, counted by the switch */
byte done;   /* bit d: all correct processes have completed death d: a fact, whoever leads */
byte orders; /* bit d: RESUME(d) was sent; copies arrive at any time from then on */

#ifdef NO_NUMBER
#define IS_MEANT(d) true
#else
#define IS_MEANT(d) (death == (d))
#endif

#define OF_DEATH(d) \
	:: death >= (d) && !(done & (1 << (d))) -> done = done | (1 << (d)) \
	:: (done & (1 << (d))) && !(orders & (1 << (d))) -> orders = orders | (1 << (d)) \
	:: frozen && (orders & (1 << (d))) && IS_MEANT(d) -> d_step { assert(done & (1 << death)); frozen = 0 }

active proctype all()
{
	do
	:: !frozen && death < DEATHS -> d_step { death++; frozen = 1 }
	OF_DEATH(1)
	OF_DEATH(2)
	OF_DEATH(3)
	:: else -> break
	od;
	assert(!frozen && death == DEATHS) /* nothing stands still for ever */
}
