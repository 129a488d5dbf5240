/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin model of RESUME and the death of an input that it is for. An input dies, is resumed, joins
 * again and dies again, while copies of earlier commands, of the leader or of a replaced one, are
 * still on their way. No copy may open an input whose current death was not completed by all
 * correct processes.
 *
 * Example: the input died (death 1), all processes have completed that, and RESUME(1) was sent
 * twice because the connection broke in between. The first copy opens the input; it joins and dies
 * again (death 2). The second copy arrives and is refused, because it names death 1. The epoch
 * would not help, since it is the same.
 *
 * Defect: NO_NUMBER, a command names the input alone.
 */
#define DEATHS 3

bit frozen;
byte death;    /* the current or last one, counted by the switch */
byte done;     /* bit d: all correct processes have completed death d, whoever leads */
byte commands; /* bit d: RESUME(d) was sent; copies arrive at any time from then on */

#ifdef NO_NUMBER
#define IS_MEANT(d) true
#else
#define IS_MEANT(d) (death == (d))
#endif

#define OF_DEATH(d) \
	:: death >= (d) && !(done & (1 << (d))) -> done = done | (1 << (d)) \
	:: (done & (1 << (d))) && !(commands & (1 << (d))) -> commands = commands | (1 << (d)) \
	:: frozen && (commands & (1 << (d))) && IS_MEANT(d) -> \
		d_step { assert(done & (1 << death)); frozen = 0 }

active proctype all()
{
	do
	:: !frozen && death < DEATHS -> d_step { death++; frozen = 1 }
	OF_DEATH(1)
	OF_DEATH(2)
	OF_DEATH(3)
	:: else -> break
	od;
	assert(!frozen && death == DEATHS) /* no input stays frozen for ever */
}
