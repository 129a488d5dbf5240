/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the phases of a bench worker share (bench_work.c, bench_group.c).
 */
#ifndef BARLINE_CLI_BENCH_WORKER_H
#define BARLINE_CLI_BENCH_WORKER_H

#include "bench/rack/bench.h"

struct worker {
	struct bench_ctl *ctl;
	struct bench_worker *me;
	unsigned int i;
	struct bl_endpoint *ep;
	int udp;
	struct bl_msg vec[BENCH_MAX];
	uint8_t *buf;
	uint64_t last_ts;
	uint64_t rng;
};

/*
 * a message: who and which number, then padding; a sample of one-way latency: LAT_MARK or
 * GROUP_MARK + sender, number, CLOCK_MONOTONIC at the sender
 */
struct payload {
	uint32_t sender;
	uint32_t seq;
	uint64_t mono_ns;
};
#define LAT_MARK   0xfffffffeu
#define GROUP_MARK 0xffff0000u

/* bench_work.c */
int worker_fail(struct worker *w, const char *what, const char *why); /* returns 1 */
int worker_send(struct worker *w, const struct bl_msg *vec, size_t n, unsigned int flags);
/* deliver what is due; count, or a negative errno */
int worker_receive(struct worker *w, int timeout_ms);
int worker_send_udp(struct worker *w, const struct bl_addr *to, const struct payload *p,
		    size_t size);

/* bench_group.c */
/** worker_group - the group phase, until it is over. 0, or 1 after worker_fail(). */
int worker_group(struct worker *w);
/** worker_group_note - a message of the group phase came. */
void worker_group_note(struct worker *w, const struct payload *p, uint64_t now);

#endif
