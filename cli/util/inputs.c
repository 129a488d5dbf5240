// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See inputs.h. */
#include "cli/util/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/util/read.h"

static int read_host(const struct bl_node_ref *ref, struct node_inputs *out, struct bl_err *err)
{
	struct node_input *in = calloc(1, sizeof(*in));
	struct bl_host_cfg cfg;
	int rc;

	if (!in)
		return bl_fail(err, ENOMEM, "out of memory");
	out->in = in;
	rc = bl_map_read_all(ref, BL_MAP_HOST_PAGE, sizeof(out->page), 1, &out->page, err);
	if (!rc)
		rc = bl_map_read_all(ref, BL_MAP_HOST_CFG, sizeof(cfg), 1, &cfg, err);
	if (rc)
		return rc;
	node_nic(ref, in->name, sizeof(in->name));
	in->cfg.in_sets = 1;
	memcpy(in->reg, out->page.reg, sizeof(in->reg));
	in->life = out->page.life;
	in->barred = out->page.barred;
	in->watch_ns = out->page.watch_ns;
	out->n = 1;
	out->sets = 1;
	out->beacon_ns = cfg.beacon_ns;
	out->dead_after_ns = cfg.dead_after_ns;
	return 0;
}

static void add_port(struct node_inputs *out, uint32_t port, const struct bl_sw_port *cfg,
		     const struct bl_port_regs *regs, const struct bl_life *life)
{
	struct node_input *in = &out->in[out->n];

	if (!cfg->ifindex)
		return;
	out->n++;
	in->port = port;
	in->cfg = *cfg;
	memcpy(in->name, cfg->name, sizeof(in->name));
	in->name[sizeof(in->name) - 1] = '\0';
	memcpy(in->reg, regs->lane, sizeof(in->reg));
	in->life = *life;
	in->barred = cfg->barred;
	in->watch_ns = out->lane[BL_HOME_LANE(cfg)].watch_ns;
	out->sets |= 1U << cfg->out_set;
}

/** struct tables - the maps of a switch, while they are read. */
struct tables {
	struct bl_sw_port port[BL_SW_PORTS_MAX];
	struct bl_port_regs regs[BL_SW_PORTS_MAX];
	struct bl_life life[BL_SW_PORTS_MAX];
};

static int read_switch(const struct bl_node_ref *ref, struct node_inputs *out, struct bl_err *err)
{
	struct tables *t = calloc(1, sizeof(*t));
	struct bl_sw_cfg cfg;
	uint32_t k, n = 0;
	int rc = bl_map_read_all(ref, BL_MAP_SW_CFG, sizeof(cfg), 1, &cfg, err);

	if (!rc) {
		n = cfg.nports < BL_SW_PORTS_MAX ? cfg.nports : BL_SW_PORTS_MAX;
		out->lanes = cfg.lanes < BL_LANES_MAX ? cfg.lanes : BL_LANES_MAX;
		out->beacon_ns = cfg.beacon_ns;
		out->dead_after_ns = cfg.dead_after_ns;
		out->lag_max_ns = cfg.lag_max_ns;
		out->in = calloc(n + 1, sizeof(*out->in));
		if (!t || !out->in)
			rc = bl_fail(err, ENOMEM, "out of memory");
	}
	/* the outputs before the inputs that they come from, so that these are not lower */
	if (!rc)
		rc = bl_map_read_all(ref, BL_MAP_SW_LANES, sizeof(out->lane[0]), out->lanes,
				     out->lane, err);
	if (!rc && n)
		rc = bl_map_read_all(ref, BL_MAP_SW_REGS, sizeof(t->regs[0]), n, t->regs, err);
	if (!rc && n)
		rc = bl_map_read_all(ref, BL_MAP_SW_PORTS, sizeof(t->port[0]), n, t->port, err);
	if (!rc && n)
		rc = bl_map_read_all(ref, BL_MAP_SW_LIVES, sizeof(t->life[0]), n, t->life, err);
	for (k = 0; !rc && k < n; k++)
		add_port(out, k, &t->port[k], &t->regs[k], &t->life[k]);
	free(t);
	return rc;
}

int node_inputs_read(const struct bl_node_ref *ref, struct node_inputs *out, struct bl_err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = ref->role == BL_ROLE_SWITCH ? read_switch(ref, out, err) : read_host(ref, out, err);
	if (rc)
		node_inputs_free(out);
	return rc;
}

void node_inputs_free(struct node_inputs *in)
{
	free(in->in);
	memset(in, 0, sizeof(*in));
}
