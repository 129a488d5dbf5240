/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /healthz and /readyz of `barline metrics --listen` answer. */
#ifndef BARLINE_CLI_METRICS_HEALTH_H
#define BARLINE_CLI_METRICS_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

/**
 * metrics_health - whether the nodes of this network namespace are well, in a few lines of @text.
 * Reads pinned maps and the run directory only, so it never waits for another process.
 * @ready: also whether ordered traffic can flow
 *
 * These are checks of `barline status` (cli/health/health.h): daemon and clock, and with @ready
 * neighbours, node ids and the session with a controller. Those of interfaces, addresses and queues
 * take more capabilities than the exporter has. Returns false without nodes.
 */
bool metrics_health(bool ready, char *text, size_t size);

#endif
