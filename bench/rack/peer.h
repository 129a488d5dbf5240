/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latency between two machines: half of the round trip, because their monotonic clocks differ.
 */
#ifndef BARLINE_BENCH_PEER_H
#define BARLINE_BENCH_PEER_H

#include "bench/rack/bench.h"

/** struct peer_args - Options --serve, --peer and --peer-udp. */
struct peer_args {
	bool serve; /* --serve */
	bool ask;   /* --peer or --peer-udp, to @to */
	bool udp;   /* --peer-udp */
	struct bl_addr to;
};

/** peer_serve - Answers messages and UDP packets until SIGINT or SIGTERM. Returns the exit status.
 */
int peer_serve(const struct bench_params *p);
/** peer_ask - Sends p->lat_samples messages one by one and reports. Returns the exit status. */
int peer_ask(const struct bench_params *p, const struct peer_args *a);

#endif
