/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the phases of a bench worker share (bench_work.c, bench_group.c, bench_endpoint.c).
 */
#ifndef BARLINE_BENCH_WORKER_H
#define BARLINE_BENCH_WORKER_H

#include "bench/rack/bench.h"

/** struct worker - The private state of a worker process. */
struct worker {
	struct bench_ctl *ctl;
	struct bench_worker *me; /* &ctl->w[i] */
	unsigned int i;
	struct bl_endpoint *ep;
	int udp; /* socket of plain UDP */
	struct bl_msg vec[BENCH_MAX];
	uint8_t *buf;     /* message to send */
	uint64_t last_ts; /* timestamp of the last delivery */
	uint64_t rng;     /* state of random64() */
};

/**
 * struct payload - The begin of a message; padding follows. Messages of all-to-all have the first
 * two fields only. @sender is the worker's number, LAT_MARK in a sample of one-way latency, and
 * GROUP_MARK plus the worker's number in a message of the group phase.
 */
struct payload {
	uint32_t sender;
	uint32_t seq;     /* number of the message at its sender, from 0 */
	uint64_t mono_ns; /* CLOCK_MONOTONIC at which it was sent, or was due */
};
#define LAT_MARK   0xfffffffeu
#define GROUP_MARK 0xffff0000u

/* ---- bench_endpoint.c ---- */

/** worker_fail - Stores an error message for the driver. Returns 1. */
int worker_fail(struct worker *w, const char *what, const char *why);
/** worker_send - bl_send() or bl_send_reliable(), as the parameters say. */
int worker_send(struct worker *w, const struct bl_msg *vec, size_t n, unsigned int flags);
/**
 * worker_receive - Receives and records a batch of messages. @timeout_ms as of bl_recv(). Returns
 * their number, 0 after a signal, or a negative errno.
 */
int worker_receive(struct worker *w, int timeout_ms);
/** worker_send_udp - Sends @p, padded to @size, as plain UDP to @to's host. Returns 0 or -errno. */
int worker_send_udp(struct worker *w, const struct bl_addr *to, const struct payload *p,
		    size_t size);

/** worker_group_note - Records a message of the group phase that was received at @now. */
void worker_group_note(struct worker *w, const struct payload *p, uint64_t now);

/** worker_record_latency - Records a sample of one-way latency that was received at @now. */
void worker_record_latency(struct worker *w, const void *data, size_t len, uint64_t now, int cell);

/* ---- bench_group.c ---- */

/** worker_group - Runs the group phase until it ends. Returns 0, or 1 after worker_fail(). */
int worker_group(struct worker *w);

#endif
