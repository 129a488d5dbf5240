/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the reliable messages of an endpoint do not get through: the head of its window stands
 * still, although its process works, and is not acknowledged by any way. Pure: time is an argument.
 *
 * Example: sampled every 100 ms with a limit of 5 s. Head 7 is first seen at 1.0 s with turn 40. At
 * 6.0 s it is still 7 and turn is 90: stuck; reported again at 11.0 s if nothing has changed. If
 * turn had stayed at 40, the process would be to blame, not its receiver.
 */
#ifndef BARLINE_STUCK_CORE_H
#define BARLINE_STUCK_CORE_H

#include <stdbool.h>
#include <stdint.h>

/** struct bl_stuck - an endpoint's window as it was when its head was seen first. */
struct bl_stuck {
	uint64_t since_ns; /* CLOCK_MONOTONIC; 0: the window was empty */
	uint64_t turn;     /* of the process, then */
	uint32_t head;     /* of the window, then */
	uint16_t life;     /* incarnation of the endpoint */
};

/**
 * bl_stuck_sample - one sample at @mono (CLOCK_MONOTONIC).
 * @used: frames in the window.
 * @turn: how often its process has worked with it.
 * Returns whether its receivers are to be named now.
 */
static inline bool bl_stuck_sample(struct bl_stuck *s, uint16_t life, uint32_t head, uint32_t used,
				   uint64_t turn, uint64_t mono, uint64_t limit_ns)
{
	bool works;

	if (!used) {
		s->since_ns = 0;
		return false;
	}
	if (!s->since_ns || s->head != head || s->life != life) {
		*s = (struct bl_stuck){
			.since_ns = mono, .turn = turn, .head = head, .life = life
		};
		return false;
	}
	if (mono - s->since_ns < limit_ns)
		return false;
	works = s->turn != turn;
	s->since_ns = mono;
	s->turn = turn;
	return works;
}

/*
 * How long an endpoint holds C far back. What its process shows of its window, and that it works,
 * are its own words, and a hold names no receiver. A switch excludes a whole host whose C lags
 * (commit_lag_max_ms), so its host puts the endpoint out before that. Where a receiver is to blame,
 * the controller had twice the time that it needs to put the receiver out.
 *
 * Example: the same limit. A process stores 1 s of bus time into its hold at 1.0 s and raises its
 * turn. From 6.0 s on it holds C more than 5 s back, and at 16.0 s it is to go. A sample counts for
 * half a limit at most: if the machine stood still as a whole, the process is not to blame.
 */

/** struct bl_stuck_lag - for how long an endpoint has held C back by more than the limit. */
struct bl_stuck_lag {
	uint64_t at_ns;  /* CLOCK_MONOTONIC of the last sample; 0: there was none */
	uint64_t age_ns; /* 0: it did not hold C so far back at the last sample */
	uint16_t life;   /* incarnation of the endpoint */
};

/**
 * bl_stuck_lags - one sample at @mono (CLOCK_MONOTONIC) and @bus.
 * @held: the time at which the endpoint holds C; BL_TIME_NONE: it does not.
 * Returns whether it is to be put out.
 */
static inline bool bl_stuck_lags(struct bl_stuck_lag *s, uint16_t life, uint64_t held, uint64_t bus,
				 uint64_t mono, uint64_t limit_ns)
{
	uint64_t since = mono - s->at_ns < limit_ns / 2 ? mono - s->at_ns : limit_ns / 2;
	bool lags = held < bus && bus - held > limit_ns;

	s->age_ns = lags && s->at_ns && s->life == life ? s->age_ns + since : 0;
	s->at_ns = mono;
	s->life = life;
	return s->age_ns >= 2 * limit_ns;
}

#endif
