/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /healthz and /readyz of `barline metrics --listen` answer. */
#ifndef BARLINE_CLI_METRICS_HEALTH_H
#define BARLINE_CLI_METRICS_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

/**
 * metrics_health - whether the nodes of this network namespace are well, in a few lines of @text.
 * Reads pinned maps only, so it never waits for another process.
 * @ready: also whether ordered traffic can flow: each node has a live input
 *
 * A node is well if its daemon renews the clock and the clock is valid. Returns false without
 * nodes.
 */
bool metrics_health(bool ready, char *text, size_t size);

#endif
