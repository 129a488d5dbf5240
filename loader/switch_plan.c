// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See switch_plan.h. */
#include "loader/switch_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fastpass/fastpass_core.h"
#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "loader/admission/admission.h"
#include "loader/admission/policies.h"
#include "loader/defaults.h"
#include "loader/load/pin.h"
#include "loader/load/sets.h"
#include "loader/node_priv.h"
#include "loader/switch_fdb.h"
#include "loader/switch_source.h"

static int read_old(const struct bl_node *n, struct bl_switch_plan *p, struct bl_err *err)
{
	struct bl_node_ref ref = { .role = BL_ROLE_SWITCH, .meta = n->meta };
	unsigned int k;
	int rc;

	if (p->fresh)
		return 0;
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	rc = bl_map_read_all(&ref, BL_MAP_SW_CFG, sizeof(p->old_sw), 1, &p->old_sw, err);
	if (!rc)
		rc = bl_map_read_all(&ref, BL_MAP_SW_PORTS, sizeof(p->old_port[0]), BL_SW_PORTS_MAX,
				     p->old_port, err);
	if (!rc)
		rc = bl_map_read_all(&ref, BL_MAP_SW_LANES, sizeof(p->old_lane[0]), BL_LANES_MAX,
				     p->old_lane, err);
	if (!rc)
		rc = bl_map_read_all(&ref, BL_MAP_SW_REGS, sizeof(p->old_regs[0]), BL_SW_PORTS_MAX,
				     p->old_regs, err);
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		p->old_port[k].name[sizeof(p->old_port[k].name) - 1] = 0;
	return rc;
}

static int plan_lane(struct bl_switch_plan *p, const struct bl_port_cfg *c, unsigned int nth,
		     int *cpu, uint8_t *lane, struct bl_err *err)
{
	unsigned int ncpus = p->cfg->ncpus ? p->cfg->ncpus : 1, l = nth % ncpus;

	if (c->home_cpu >= 0) {
		for (l = 0; l < ncpus; l++)
			if ((p->cfg->ncpus ? p->cfg->cpus[l] : 0) == c->home_cpu)
				break;
		if (l == ncpus)
			return bl_fail(err, EINVAL,
				       "port %s: home_cpu %d is no datapath CPU; add it to cpus or "
				       "choose one of them",
				       c->ifname, c->home_cpu);
	}
	*cpu = p->cfg->ncpus ? p->cfg->cpus[l] : 0;
	*lane = p->cfg->one_lane ? 0 : (uint8_t)l;
	return 0;
}

static int plan_ports(struct bl_switch_plan *p, struct bl_err *err)
{
	const struct bl_node_cfg *cfg = p->cfg;
	uint8_t role[BL_SW_PORTS_MAX] = {};
	struct bl_sets sets;
	unsigned int k;
	int at, rc;

	if (!cfg->ports_count || cfg->ports_count > BL_SW_PORTS_MAX)
		return bl_fail(err, EINVAL,
			       "a switch has 1 to %u ports, not %u; list them under ports",
			       BL_SW_PORTS_MAX, cfg->ports_count);
	for (k = 0; k < 2 * cfg->ports_count; k++) {
		/* First pass: ports that have a number already. Second pass: new ports. */
		const struct bl_port_cfg *c = &cfg->ports[k % cfg->ports_count];
		struct bl_sw_port *sp;

		at = bl_port_by_name(p->old_port, c->ifname);
		if ((at >= 0) != (k < cfg->ports_count))
			continue;
		if (bl_port_by_name(p->port, c->ifname) >= 0)
			return bl_fail(err, EINVAL, "port %s is listed twice", c->ifname);
		if (c->role < BL_PORT_HOST || c->role > BL_PORT_DOWN)
			return bl_fail(err, EINVAL, "port %s needs a role: host, up or down",
				       c->ifname);
		/* A live change lets go of a number only when the new ports are there. */
		for (at = at >= 0 ? at : 0;
		     at < BL_SW_PORTS_MAX &&
		     (p->port[at].ifindex ||
		      (p->live && k >= cfg->ports_count && p->old_port[at].ifindex));
		     at++)
			;
		if (at == BL_SW_PORTS_MAX)
			return bl_fail(err, ENOSPC, "no free port number for %s", c->ifname);
		rc = bl_iface_get(&p->iface[at], c->ifname, err);
		if (!rc)
			rc = bl_node_iface_check(cfg, &p->iface[at], err);
		sp = &p->port[at];
		if (!rc)
			rc = plan_lane(p, c, (unsigned int)at, &p->cpu[at], &sp->home_lane, err);
		if (rc)
			return rc;
		sp->ifindex = (uint32_t)p->iface[at].ifindex;
		sp->role = c->role;
		sp->lanes_less_one = (c->lanes                  ? c->lanes
				      : c->role == BL_PORT_HOST ? 1
								: BL_LANES_MAX) -
				     1;
		sp->guarded = bl_source_mode(c) != BL_SOURCE_ANY;
		sp->source_eth = BL_SOURCE_NO_ETH;
		sp->mtu = (uint16_t)p->iface[at].mtu;
		p->frags |= p->iface[at].mtu > BL_XDP_MTU_MAX;
		sp->metered = bl_admission_port_rate(cfg, c->ifname) != 0;
		memcpy(sp->mac, p->iface[at].mac, sizeof(sp->mac));
		memcpy(sp->name, p->iface[at].name, sizeof(sp->name));
		role[at] = c->role;
		if (sp->ifindex > p->max_ifindex)
			p->max_ifindex = sp->ifindex;
		if ((unsigned int)at >= p->sw.nports)
			p->sw.nports = (unsigned int)at + 1;
		if (!p->iface[at].up)
			bl_log(BL_LOG_WARN, "port %s is down; `ip link set %s up`", c->ifname,
			       c->ifname);
	}
	rc = bl_sets_derive(role, p->sw.nports, &sets, err);
	if (rc)
		return rc;
	for (k = 0; k < p->sw.nports; k++) {
		p->port[k].in_sets = sets.in_sets[k];
		p->port[k].out_set = sets.out_set[k] & (BL_SETS_MAX - 1);
		p->port[k].hop = bl_hop_write(memchr(role, BL_PORT_HOST, p->sw.nports) != NULL,
					      memchr(role, BL_PORT_UP, p->sw.nports) != NULL,
					      role[k]) >>
				 6;
	}
	return 0;
}

/*
 * Assigns up ports to paths in the order of the configuration, in the same way on every switch.
 * Fastpass's arbiter knows the paths by nothing else, and TOP's tokens find their data's way back
 * by it. Done under every policy, for `barline admission set top`.
 */
static void plan_paths(const struct bl_node_cfg *cfg, struct bl_switch_plan *p)
{
	struct bl_sw_cfg *sw = &p->sw;
	uint8_t up[BL_PATHS_IN_MAC];
	unsigned int k, n = 0;

	if (!cfg->admission.on || cfg->forward != BL_FWD_L3)
		return;
	for (k = 0; k < cfg->ports_count && n < BL_PATHS_IN_MAC; k++)
		if (cfg->ports[k].role == BL_PORT_UP)
			up[n++] = (uint8_t)bl_port_by_name(p->port, cfg->ports[k].ifname);
	sw->path_ports = (__u8)bl_fp_paths(cfg->admission.path_div, n);
	for (k = 0; k < sw->path_ports; k++)
		sw->path_port[k] = up[bl_fp_up_port(k, cfg->admission.path_div, n)];
}

void bl_switch_limits(const struct bl_node_cfg *c, struct bl_sw_cfg *sw)
{
	sw->dead_after_ns = c->dead_after_us * 1000ULL;
	sw->lag_max_ns = c->lag_max_us * 1000ULL;
	/*
	 * Only a controller can make C go on without an input whose C lags. Without one C would
	 * wait for it all the same, and longer, since it would have to follow the clock for a while
	 * before it joins again.
	 */
	sw->commit_lag_max_ns = c->ctl.n ? c->commit_lag_max_ms * 1000000ULL : 0;
	sw->control_gap_ns = 1000000000 / c->control_rate;
}

/* How many ports a switch that is started with @nports has room for. */
static unsigned int ports_with_room(unsigned int nports)
{
	unsigned int room = nports + nports / 4 + 1;

	return room < BL_SW_PORTS_MAX ? room : BL_SW_PORTS_MAX;
}

static int plan_cfg(const struct bl_node *n, struct bl_switch_plan *p, struct bl_err *err)
{
	const struct bl_node_cfg *cfg = p->cfg;
	struct bl_sw_cfg *sw = &p->sw;
	unsigned int l;
	int cpu;

	sw->node_id = n->meta.node_id;
	sw->lanes = cfg->one_lane || !cfg->ncpus ? 1 : cfg->ncpus;
	sw->forward = cfg->forward;
	sw->port_base = n->cfg.port_base;
	sw->port_count = n->cfg.port_count;
	sw->beacon_ns = n->cfg.beacon_us * 1000ULL;
	bl_switch_limits(&n->cfg, sw);
	sw->single_writer = !cfg->one_lane;
	sw->admission = cfg->admission.on;
	plan_paths(cfg, p);
	if (cfg->admission.on && bl_policy_ops(cfg->admission.policy)->paths)
		bl_policy_ops(cfg->admission.policy)->paths(&cfg->admission, sw);
	sw->ahead_ns = (__u32)bl_node_ahead_ns(&n->cfg);
	/*
	 * A tree that is made has room for more ports, and it does not shrink, so that a port that
	 * is added later needs no regrouping. The extra level costs one comparison.
	 */
	if (sw->nports <= p->old_sw.tree_leaves && p->old_sw.tree_leaves <= BL_TREE_LEAVES)
		sw->tree_leaves = p->old_sw.tree_leaves;
	else
		for (sw->tree_leaves = 4; sw->tree_leaves < ports_with_room(sw->nports);
		     sw->tree_leaves *= 2)
			;
	memset(sw->lane_of_cpu, BL_NO_LANE, sizeof(sw->lane_of_cpu));
	for (l = 0; l < (cfg->ncpus ? cfg->ncpus : 1); l++) {
		cpu = cfg->ncpus ? cfg->cpus[l] : 0;
		if (cpu < 0 || cpu >= BL_SW_CPUS_MAX || cpu >= sysconf(_SC_NPROCESSORS_CONF))
			return bl_fail(err, EINVAL,
				       "CPU %d does not exist; this machine has CPUs 0 to %ld", cpu,
				       sysconf(_SC_NPROCESSORS_CONF) - 1);
		if (sw->lane_of_cpu[cpu] != BL_NO_LANE)
			return bl_fail(err, EINVAL, "CPU %d is listed twice under cpus", cpu);
		sw->lane_of_cpu[cpu] = cfg->one_lane ? 0 : (uint8_t)l;
	}
	return 0;
}

static void plan_regroup(struct bl_switch_plan *p)
{
	unsigned int k;

	/* A lane on another CPU regroups, too: two CPUs could write it for a moment. */
	p->regroup = memcmp(p->sw.lane_of_cpu, p->old_sw.lane_of_cpu, sizeof(p->sw.lane_of_cpu)) ||
		     p->sw.tree_leaves != p->old_sw.tree_leaves || p->sw.lanes != p->old_sw.lanes ||
		     p->sw.single_writer != p->old_sw.single_writer;
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		const struct bl_sw_port *a = &p->old_port[k], *b = &p->port[k];

		if (a->ifindex && (!b->ifindex || strcmp(a->name, b->name) || a->role != b->role ||
				   a->in_sets != b->in_sets || a->out_set != b->out_set ||
				   BL_HOME_LANE(a) != BL_HOME_LANE(b)))
			p->regroup = true;
	}
}

/*
 * Whether the running programs and their maps can take the new ports, and go on with those that
 * stay as they are.
 */
static int check_live(struct bl_switch_plan *p, struct bl_err *err)
{
	unsigned int k;

	if (p->sw.tree_leaves != p->old_sw.tree_leaves || p->sw.nports > p->old_sw.tree_leaves)
		return bl_fail(err, ENOSPC,
			       "the switch was started with room for %u ports; a restart of the "
			       "daemon makes more",
			       p->old_sw.tree_leaves);
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		const struct bl_sw_port *a = &p->old_port[k], *b = &p->port[k];

		if (!a->ifindex || !b->ifindex)
			continue;
		if (a->role != b->role || a->in_sets != b->in_sets || a->out_set != b->out_set ||
		    a->hop != b->hop)
			return bl_fail(err, EPERM,
				       "port %s would get its barrier from other ports than now, "
				       "as when the first port of a role comes or the last one "
				       "leaves; that takes a restart of the daemon",
				       a->name);
		if (BL_HOME_LANE(a) != BL_HOME_LANE(b))
			return bl_fail(err, EPERM,
				       "port %s would move to another CPU; that takes a restart of "
				       "the daemon",
				       a->name);
	}
	return 0;
}

/*
 * In generic mode a frame is handled on the CPU where it comes in. Kernels before the rework of
 * that path (6.1 is one) give the rest of a batch to the stack once the program of a CPU map has
 * redirected or dropped a frame.
 */
static void plan_steering(struct bl_switch_plan *p)
{
	p->steering_most = p->cfg->mode == BL_XDP_GENERIC
				   ? 0
				   : BL_HOMING_FRAMES / ports_with_room(p->sw.nports);
}

int bl_switch_plan(const struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_switch_plan *p,
		   struct bl_err *err)
{
	int rc;

	p->cfg = cfg;
	p->fresh = n->fresh && !p->live;
	rc = read_old(n, p, err);
	if (!rc)
		rc = plan_ports(p, err);
	if (!rc)
		rc = plan_cfg(n, p, err);
	if (rc)
		return rc;
	plan_steering(p);
	if (p->live)
		return check_live(p, err);
	if (!n->fresh)
		plan_regroup(p);
	return 0;
}
