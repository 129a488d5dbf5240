// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The names of the workloads of traffic.h and the sizes of memcached's values, as `lab run` and its
 * reports have them. */
#include "bench/traffic/traffic.h"

const char *const traffic_names[TRAFFIC_KINDS] = { [TRAFFIC_INCAST] = "incast",
						   [TRAFFIC_OUTCAST] = "outcast",
						   [TRAFFIC_SHUFFLE] = "shuffle",
						   [TRAFFIC_MEMCACHED] = "memcached" };

const unsigned int traffic_mc_sizes[TRAFFIC_MC_SIZES] = { 1024, 4096 };
