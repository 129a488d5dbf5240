/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the neighbour of a host that has fallen silent has noticed that. Pure: time is an
 * argument.
 *
 * The neighbour counts a silence in its watch time (bl_watch_advance() in
 * core/order/barrier_core.h), which goes slower than every clock where the neighbour, or the hosts
 * that it hears, get little CPU. So no time on this host's clock tells when it has noticed. What it
 * sends does: its B is the minimum of all its inputs, and this host's input is one of them. When a
 * B arrives that is above all that this host has promised, the input is out of that minimum, and
 * its C is frozen.
 *
 * Example: dead_after is 1.5 s. The host falls silent at bus time 10.0 s, and has promised nothing
 * above 10.001 s. While the neighbour waits for it, B = 10.0 s arrives again and again. The
 * neighbour gets a third of a CPU, so B = 14.6 s arrives after 4.6 s, and not within 3 s.
 */
#ifndef BARLINE_SILENCE_CORE_H
#define BARLINE_SILENCE_CORE_H

#include <stdint.h>

#include "core/core.h"
#include "maps/host_abi.h"

/* If nothing has arrived so long after the shortest wait, there is no neighbour that could tell. */
#define BL_SILENCE_UNSEEN_NS 1000000000ULL
/*
 * The longest wait: this, and ten times dead_after. Without a daemon the host's clock is void after
 * clock_void_after_ms, 10 s by default, and then no barrier is taken in.
 */
#define BL_SILENCE_MOST_NS 10000000000ULL

enum bl_silence_says {
	BL_SILENCE_WAIT,
	BL_SILENCE_NOTICED, /* the neighbour has excluded this host */
	BL_SILENCE_UNSEEN,  /* nothing arrives: there is no neighbour, or the link is cut */
	BL_SILENCE_LATE,    /* something has arrived, and nothing that says that it has noticed */
};

/** struct bl_silence - a silence that has begun. */
struct bl_silence {
	uint64_t least_ns; /* a silence that is shorter may be missed by any neighbour */
	uint64_t most_ns;
	uint64_t margin_ns; /* a frame may promise that much more than the clock showed */
	uint64_t begun_ns;  /* CLOCK_MONOTONIC */
	uint64_t clock_ns;  /* of the page when it began */
	/* bus time above which this host has promised nothing; 0: nothing has arrived yet */
	uint64_t above_ns;
};

/**
 * bl_silence_begin - the host sends nothing any more at @mono (CLOCK_MONOTONIC).
 * @page: read after its last frame.
 */
static inline struct bl_silence bl_silence_begin(const struct bl_host_cfg *cfg,
						 const struct bl_host_page *page, uint64_t mono)
{
	return (struct bl_silence){ .least_ns = 2 * cfg->dead_after_ns + cfg->beacon_ns,
				    .most_ns = 10 * cfg->dead_after_ns + BL_SILENCE_MOST_NS,
				    .margin_ns = 2 * cfg->beacon_ns,
				    .begun_ns = mono,
				    .clock_ns = page->now_ns };
}

/**
 * bl_silence_sample - one sample of the host's page at @mono.
 *
 * The first frame that arrives in the silence has the host's clock read for the page, after the
 * host's last frame has left. A frame promises at most 3/2 beacon intervals beyond the clock.
 */
static inline enum bl_silence_says bl_silence_sample(struct bl_silence *s,
						     const struct bl_host_page *page, uint64_t mono)
{
	if (!s->above_ns && page->now_ns != s->clock_ns)
		s->above_ns = bl_max64(page->now_ns, bl_max64(page->sent_barrier, page->promised)) +
			      s->margin_ns;
	if (mono - s->begun_ns < s->least_ns)
		return BL_SILENCE_WAIT;
	if (s->above_ns && page->barrier > s->above_ns)
		return BL_SILENCE_NOTICED;
	if (!s->above_ns && mono - s->begun_ns >= s->least_ns + BL_SILENCE_UNSEEN_NS)
		return BL_SILENCE_UNSEEN;
	return mono - s->begun_ns >= s->most_ns ? BL_SILENCE_LATE : BL_SILENCE_WAIT;
}

#endif
