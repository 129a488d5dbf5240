/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports that a switch of a rack is started without. */
#ifndef BARLINE_TESTS_NET_LOADER_PORTS_H
#define BARLINE_TESTS_NET_LOADER_PORTS_H

#include <string.h>

#include "loader/node_cfg.h"

/* Takes port @k out of the configuration of a switch, if it has that many. */
static inline void port_leave_out(struct bl_node_cfg *cfg, unsigned int k)
{
	unsigned int f;

	if (k >= cfg->ports_count)
		return;
	for (f = 0; f < cfg->fdb_count;)
		if (!strcmp(cfg->fdb[f].ifname, cfg->ports[k].ifname))
			cfg->fdb[f] = cfg->fdb[--cfg->fdb_count];
		else
			f++;
	cfg->ports[k] = cfg->ports[cfg->ports_count - 1];
	cfg->ports_count--;
}

#endif
