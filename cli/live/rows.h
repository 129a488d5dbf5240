/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reading of `barline top`: two snapshots compared, as the JSON object that --json prints. The
 * screen and the text are made from the same object (screen.h).
 */
#ifndef BARLINE_CLI_LIVE_ROWS_H
#define BARLINE_CLI_LIVE_ROWS_H

#include <jansson.h>

#include "cli/live/snapshot.h"

/** struct live_filter - which nodes are shown. */
struct live_filter {
	char **names; /* nodes with one of these names */
	int n;        /* 0: all */
};

#define LIVE_STATE_NS 10000000000ULL /* for so long a state is shown */

/**
 * live_follow - fills in what follows from the snapshot before (@old; NULL: there is none): holds,
 * and the states of nodes. A state is "" or:
 *
 * new: the node was not there before
 * restarted: its maps were made anew, so its counters began at 0
 * daemon_restarted: its daemon is another process; the maps stayed
 * gone: it is not there any more
 * unreadable: its @error says why
 */
void live_follow(const struct live_snap *old, struct live_snap *now);

/** live_reading - compares two snapshots. live_follow() has been called for both. */
json_t *live_reading(const struct live_snap *old, const struct live_snap *now,
		     const struct live_filter *f);

/** live_filter_passes - whether the filter shows a node of this name. */
bool live_filter_passes(const struct live_filter *f, const char *name);

#endif
