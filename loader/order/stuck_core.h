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
#include <string.h>

#include "core/order/commit_core.h"

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

/**
 * bl_stuck_end - the number after the last frame of a window that is worth a look. A process can
 * write that any number is open, and 2^32 frames take seconds.
 */
static inline uint32_t bl_stuck_end(uint64_t state)
{
	uint32_t used = bl_rwin_used(state);

	return bl_rwin_head(state) + (used < BL_RWIN ? used : BL_RWIN);
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

/*
 * What a complaint rests on. A process could write into its window that a healthy endpoint does not
 * acknowledge what it has never sent, and have that one expelled. So its daemon complains only if a
 * PREP that the program of the receiver accepts has gone there by way of the controller, and no ACK
 * came back that way. It accepts a PREP for its life whose timestamp C has not passed.
 *
 * Example: a PREP with ts 700 for life 9 is handed over at 1.0 s. The ACK comes at 1.1 s: no
 * complaint. Or none comes, and the window has stood for the limit at 5.0 s: a complaint, unless C
 * was sent beyond 700.
 */
#define BL_STUCK_NAMES    64 /* receivers of one endpoint that are named at once */
#define BL_STUCK_TRIED_NS 1000000000ULL

/** struct bl_stuck_try - a receiver that has not answered by way of the controller. */
struct bl_stuck_try {
	uint64_t since_ns; /* CLOCK_MONOTONIC of the first PREP without an answer; 0: free */
	uint64_t ts;       /* of the last PREP */
	uint8_t addr[16];  /* of the receiver */
	uint16_t port;     /* of the receiver */
	uint16_t life;     /* of the receiver */
};

static inline struct bl_stuck_try *bl_stuck_try_of(struct bl_stuck_try v[BL_STUCK_NAMES],
						   const uint8_t addr[16], uint16_t port,
						   uint16_t life)
{
	unsigned int i;

	for (i = 0; i < BL_STUCK_NAMES; i++)
		if (v[i].since_ns && v[i].port == port && v[i].life == life &&
		    !memcmp(v[i].addr, addr, sizeof(v[i].addr)))
			return &v[i];
	return NULL;
}

/** bl_stuck_try_note - a PREP with @ts goes by way of the controller. @sent: the C sent last. */
static inline void bl_stuck_try_note(struct bl_stuck_try v[BL_STUCK_NAMES], const uint8_t addr[16],
				     uint16_t port, uint16_t life, uint64_t ts, uint64_t sent,
				     uint64_t mono)
{
	struct bl_stuck_try *t = bl_stuck_try_of(v, addr, port, life);
	unsigned int i;

	for (i = 0; i < BL_STUCK_NAMES && !t; i++)
		if (!v[i].since_ns || v[i].ts < sent)
			t = &v[i];
	if (!t || ts < sent)
		return;
	/* What C has passed proves nothing. */
	if (!t->since_ns || t->ts < sent)
		t->since_ns = mono;
	t->ts = ts;
	memcpy(t->addr, addr, sizeof(t->addr));
	t->port = port;
	t->life = life;
}

/** bl_stuck_try_answered - an ACK came by way of the controller. */
static inline void bl_stuck_try_answered(struct bl_stuck_try v[BL_STUCK_NAMES],
					 const uint8_t addr[16], uint16_t port, uint16_t life)
{
	struct bl_stuck_try *t = bl_stuck_try_of(v, addr, port, life);

	if (t)
		t->since_ns = 0;
}

/** bl_stuck_tried - whether there may be a complaint about the receiver. */
static inline bool bl_stuck_tried(struct bl_stuck_try v[BL_STUCK_NAMES], const uint8_t addr[16],
				  uint16_t port, uint16_t life, uint64_t sent, uint64_t mono)
{
	const struct bl_stuck_try *t = bl_stuck_try_of(v, addr, port, life);

	return t && t->ts >= sent && mono - t->since_ns >= BL_STUCK_TRIED_NS;
}

#endif
