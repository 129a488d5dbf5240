// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/config.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/fastpass_file.h"
#include "arbiter/config.h"

int bl_arb_cfg_of(struct bl_arb_cfg *cfg, const struct bl_fp_file *f, unsigned int rank,
		  struct bl_err *err)
{
	struct bl_arb_endpoint *e;
	unsigned int i;
	char text[INET6_ADDRSTRLEN];

	if (rank >= f->narbiters)
		return bl_fail(err, EINVAL, "the file has %u arbiters; ranks count from 0",
			       f->narbiters);
	if (bl_fp_find(f, f->arbiter[rank]) >= 0)
		return bl_fail(err, EINVAL,
			       "%s is an endpoint: an arbiter needs an address of its own",
			       bl_fp_addr_text(f->arbiter[rank], text));
	e = calloc(f->npeers, sizeof(*e));
	if (!e)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->npeers; i++) {
		memcpy(&e[i].addr, f->peer[i].addr, 16);
		memcpy(e[i].name, f->peer[i].name, sizeof(e[i].name));
	}
	cfg->endpoints = e;
	cfg->nendpoints = f->npeers;
	memcpy(&cfg->listen[0], f->arbiter[rank], 16);
	cfg->nlisten = 1;
	_Static_assert(BL_ARB_GROUP_MAX >= BL_FP_ARBITERS_MAX, "room for the file's arbiters");
	for (i = 0; i < f->narbiters; i++)
		memcpy(&cfg->arbiters[i], f->arbiter[i], 16);
	cfg->narbiters = f->narbiters;
	if (f->has_group)
		memcpy(&cfg->group, f->group, 16);
	cfg->rank = rank;
	cfg->slot_ns = f->slot_ns;
	cfg->slot_bytes = f->slot_bytes;
	cfg->lead_us = f->lead_us;
	cfg->run_slots = f->run_slots;
	cfg->late_us = f->late_us;
	cfg->interval_us = f->watchdog_us;
	cfg->dead_us = f->dead_us;
	cfg->guard_us = f->guard_us;
	cfg->quota = f->quota;
	cfg->rtt_us = f->rtt_us;
	memcpy(cfg->secret, f->secret, sizeof(cfg->secret));
	if (f->has_faults)
		memcpy(&cfg->faults, f->faults, 16);
	return 0;
}

void bl_arb_cfg_free(struct bl_arb_cfg *cfg)
{
	free((void *)cfg->endpoints);
	cfg->endpoints = NULL;
}
