/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far the barrier of a host lags, looked at LAG_PER_S times per second by a thread of the
 * exporter, which reads what the datapath writes anyway. So the histogram costs the datapath
 * nothing, and says for which share of the time a message would have waited how long. A switch
 * delivers nothing and has none.
 */
#ifndef BARLINE_CLI_METRICS_LAG_H
#define BARLINE_CLI_METRICS_LAG_H

#include "base/log.h"
#include "cli/metrics/collect.h"

#define LAG_PER_S 100
#define LAG_FIRST 13 /* bins of core/log_hist_core.h: from 8 us to 2.1 s */

/** lag_start - starts the thread. Returns 0 or -errno. */
int lag_start(struct lag_sampler **out, struct bl_err *err);
/** lag_stop - ends the thread. NULL: no-op. */
void lag_stop(struct lag_sampler *s);

#endif
