/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Verdicts on a node: pure functions from facts, which others have read, to a level and a word, and
 * from the findings of all checks to one line. Nothing is read here, and there is no clock.
 */
#ifndef BARLINE_CLI_HEALTH_JUDGE_H
#define BARLINE_CLI_HEALTH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/doctor/finding.h"
#include "cli/health/health.h"

#define PULSE_STALE_NS 3000000000ULL /* a daemon that did not beat for so long is stuck */
#define LAG_MIN_NS     50000000ULL   /* below it, and below 10 dead_after, no lag is named */
#define LAG_STILL_NS   2000000000ULL /* a host whose barrier lags by more is not ready */

/** struct verdict - what is to be said of one check. */
struct verdict {
	enum finding_level level;
	const char *word; /* of the check's words in docs/health.md */
};

/** struct daemon_facts - what the pulse of a node (maps/pulse_abi.h) and /proc say. */
struct daemon_facts {
	bool pulse;         /* there is one that can be read */
	unsigned int state; /* enum bl_pulse_state */
	uint64_t age_ns;    /* of the last beat */
	/* of its process, as in /proc/PID/stat; 0: it is gone; '?': in another PID namespace */
	char process;
	unsigned int spare; /* enum bl_pulse_spare */
};

struct verdict judge_daemon(const struct daemon_facts *f);

/** struct neighbour_facts - the inputs of a node. */
struct neighbour_facts {
	bool host;                                  /* else a switch */
	bool drained;                               /* a host that leaves, or has left, in order */
	unsigned int all;                           /* inputs */
	unsigned int live, joining, excluded, held; /* of them; the others were never heard */
	unsigned int lagging;                       /* of those that are live */
	uint64_t lag_ns;                            /* of the host's barrier; 0: not known */
	uint64_t dead_after_ns;
};

/** lag_limit - lags up to this are ordinary. */
uint64_t lag_limit(uint64_t dead_after_ns);

struct verdict judge_neighbours(const struct neighbour_facts *f);

/** judge_controller - @session: enum bl_pulse_session; @failed: the node was announced as failed */
struct verdict judge_controller(bool known, unsigned int session, bool failed);

/**
 * judge_node - fills in @h->level, @h->ready and @h->worst from @h->check: the first of the worst
 * findings. A check that found nothing is not known, and does not count.
 */
void judge_node(struct health *h);

#endif
