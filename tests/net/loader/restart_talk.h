/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traffic beside restarts: reliable, from each host to all, and its judge.
 *
 * 	open_rack(HOSTS);
 * 	talk();
 * 	goes_on("begins to talk");
 * 	...
 * 	judge();
 */
#ifndef BARLINE_TESTS_RESTART_TALK_H
#define BARLINE_TESTS_RESTART_TALK_H

#include "tests/net/loader/restart.h"
#include "tests/net/reliable/kill_talk.h"

static unsigned int talk_left; /* how often a host without workers leaves in order */

T_FN void talk(void)
{
	kill_workers(HOSTS, 1500);
	atomic_store(&c->phase, KILL_TALK);
}

T_FN bool all_have(uint32_t more, const uint32_t *since)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		CHECK(!c->w[i].error[0], "worker %u: %s", i, c->w[i].error);
		if (atomic_load(&c->w[i].ngot) < since[i] + more)
			return false;
	}
	return true;
}

/* Waits until each worker has got some more messages. */
T_FN void goes_on(const char *when)
{
	uint32_t since[HOSTS];
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		since[i] = atomic_load(&c->w[i].ngot);
	UNTIL(when, all_have(30, since));
}

T_FN bool all_acked(void)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (!atomic_load(&c->w[i].all_acked))
			return false;
	return true;
}

/* Checks that everything arrived at all, in one order, and nobody was told of a failure. */
T_FN void judge(void)
{
	struct kill_verdict v = { 0 };
	uint64_t end;
	unsigned int i;

	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", all_acked());
	for (end = t_mono() + 20000000000ULL;
	     kill_judge(c, (1U << HOSTS) - 1, &v) && t_mono() < end;)
		rack_serve(20);
	CHECK(!kill_judge(c, (1U << HOSTS) - 1, &v), "%s", v.error);
	for (i = 0; i < HOSTS; i++)
		CHECK(!c->w[i].error[0] && !atomic_load(&c->w[i].told_ns), "worker %u: %s", i,
		      c->w[i].error[0] ? c->w[i].error : "was told that somebody failed");
	CHECK(!v.none && !v.cut, "%u scatterings were delivered by nobody", v.none + v.cut);
	CHECK(failures() == talk_left && times_said("\"why\":\"left\",\"step\":") == talk_left,
	      "somebody was announced: %s", said_failures());
	fprintf(stderr, "  %u scatterings, all delivered by all\n", v.delivered);
	atomic_store(&c->phase, KILL_EXIT);
	for (i = 0; i < HOSTS; i++)
		waitpid(c->w[i].pid, NULL, 0);
}

/*
 * What a switch or host refused as late was a copy. A refused PREP is not acknowledged, and its
 * sender's slot stays open, so judge() would wait for ever for one of which no earlier copy was
 * stored. A copy is late where a process has checked its slot and lost the CPU before it sent the
 * frame again, while the ACK arrived and C rose: its own library counts that.
 */
T_FN void late_were_copies(void)
{
	uint64_t again = 0, late = rack_count_all(BL_R_PREP_LATE);
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		again += c->w[i].stats.retransmits;
	CHECK(late <= again, "%" PRIu64 " were late, and %" PRIu64 " sent again", late, again);
	fprintf(stderr, "  %" PRIu64 " sent again, %" PRIu64 " of them late\n", again, late);
}

#endif
