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

#endif
