/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latency between two machines: their monotonic clocks differ, so it is half the round trip.
 */
#ifndef BARLINE_CLI_PEER_H
#define BARLINE_CLI_PEER_H

#include "bench/rack/bench.h"

struct peer_args {
	bool serve, ask, udp;
	struct bl_addr to;
};
int peer_serve(const struct bench_params *p);
int peer_ask(const struct bench_params *p, const struct peer_args *a);

#endif
