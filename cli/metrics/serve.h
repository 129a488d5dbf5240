/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP server of `barline metrics --listen`: /metrics, /healthz and /readyz.
 *
 * One thread of libmicrohttpd serves all connections and never waits: a request for /metrics is
 * suspended, a second thread reads the sources, and all requests that wait by then get the same
 * text. So a client that is slow delays nobody, and a hundred clients cost the node one reading.
 *
 * What a client can take is bounded: METRICS_CONNECTIONS connections, half of them from one
 * address; METRICS_IDLE_S without a byte, METRICS_REQUEST_S for a whole request with its answer; 32
 * KiB for each connection's buffers, and a text that cli/metrics/text.h bounds.
 */
#ifndef BARLINE_CLI_METRICS_SERVE_H
#define BARLINE_CLI_METRICS_SERVE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "cli/metrics/collect.h"

#define METRICS_CONNECTIONS 32
#define METRICS_IDLE_S      5
#define METRICS_REQUEST_S   30

/** struct metrics_listen - where and how to listen. */
struct metrics_listen {
	struct sockaddr_storage addr;
	/*
	 * Files in PEM: certificate and key of the server, and the authority whose certificates
	 * clients must have. All three, or none: plain HTTP.
	 */
	const char *cert, *key, *ca;
};

struct metrics_server;

/**
 * metrics_serve - starts both threads.
 * @c: used by the second thread until metrics_serve_end()
 * Returns 0 or -errno.
 */
int metrics_serve(struct metrics_server **out, const struct metrics_listen *l, struct collector *c,
		  struct bl_err *err);

/** metrics_serve_end - ends both threads and closes all connections. NULL: no-op. */
void metrics_serve_end(struct metrics_server *s);

#endif
