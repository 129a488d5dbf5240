// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch role: load, configure, attach.
 *
 * The number of a port outlives restarts, because it indexes registers, counters and the device
 * map. So a port keeps the number under which its interface is pinned, and new ports get free
 * numbers.
 *
 * Taking over a running switch keeps all maps, unless the new configuration changes what the trees
 * mean (a port removed, another role, another lane or tree size, or a lane on another CPU). Then
 * sw_cfg, sw_ports, sw_regs, sw_trees, sw_lanes, sw_lags, sw_home and sw_homing are made anew
 * beside the old ones, and the programs are swapped one by one. Barriers that outputs were given
 * are carried over, so no barrier decreases; inputs join again. Messages in flight may be late at
 * that moment, which loses messages but never breaks the order. Inputs that stand still
 * (BL_REG_HELD) do so in the new registers, too, because the controller relies on it.
 *
 * New registers know nothing of reliable messages that wait for their ACKs. So C waits for every
 * port until something was heard there (BL_REG_AWAITED), or until so much time has passed that the
 * port has no neighbour (loader/node_agent.c).
 */
#include "loader/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "base/log.h"
#include "core/order/barrier_core.h"
#include "core/wire_core.h"
#include "loader/admission/admission.h"
#include "loader/auth.h"
#include "loader/defaults.h"
#include "loader/link_watch.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/maps.h"
#include "loader/load/napi.h"
#include "loader/load/objects.h"
#include "loader/load/pin.h"
#include "loader/load/progs.h"
#include "loader/nic.h"
#include "loader/node_priv.h"
#include "loader/order/fence.h"
#include "loader/order/keep.h"
#include "loader/order/link_check.h"
#include "loader/switch_fdb.h"
#include "loader/switch_plan.h"
#include "loader/switch_ports.h"
#include "loader/switch_source.h"

#include "switch.skel.h"

/*
 * The first contents of port @k's registers. A port that was in C keeps its C there, and C waits
 * for it until it joins again. A port that stands still keeps standing still: silent until it joins
 * again, its C held. Of the ports of a fresh switch nothing is known: a neighbour may be there, and
 * may have waited for ACKs for any time.
 */
static struct bl_port_regs carry_regs(const struct bl_switch_plan *p, unsigned int k)
{
	const struct bl_sw_port *a = &p->old_port[k], *b = &p->port[k];
	struct bl_port_regs r = b->ifindex ? bl_port_regs_new() : (struct bl_port_regs){};
	struct bl_pair leaf;
	unsigned int l;

	if (p->fresh && b->ifindex)
		bl_port_await(&r, BL_C_UNKNOWN);
	if (!a->ifindex || !b->ifindex || strcmp(a->name, b->name))
		return r;
	for (l = 0; l < BL_LANES_MAX; l++)
		r.lane[l].hop = p->old_regs[k].lane[l].hop;
	if (!(bl_port_flags(&p->old_regs[k]) & BL_REG_HELD)) {
		bl_port_leaf(&p->old_regs[k], &leaf);
		if (leaf.c != BL_LEAF_NONE)
			bl_port_await(&r, leaf.c);
		return r;
	}
	for (l = 0; l < BL_LANES_MAX; l++) {
		if (!(p->old_regs[k].lane[l].state & BL_REG_IN))
			continue;
		r.lane[l] = p->old_regs[k].lane[l];
		r.lane[l].state = BL_REG_DEAD | BL_REG_IN | BL_REG_HELD;
		r.lane[l].heard_ns = r.lane[l].fresh_ns = r.lane[l].fresh_c_ns =
			0; /* measured by another lane */
		r.lane[l].state &= ~BL_REG_AWAITED;
	}
	return r;
}

static int fill_trees(const struct bl_switch_plan *p, int trees, int regs, struct bl_err *err)
{
	struct bl_tree *t = malloc(sizeof(*t));
	unsigned int key, k;
	int rc = 0;

	if (!t)
		return bl_fail(err, ENOMEM, "out of memory");
	for (key = 0; key < BL_LANES_MAX * BL_SETS_MAX && !rc; key++) {
		memset(t, 0, sizeof(*t));
		bl_tree_clear(t);
		for (k = 0; k < p->sw.nports; k++) {
			struct bl_port_regs r = carry_regs(p, k);
			struct bl_pair leaf;

			bl_port_leaf(&r, &leaf);
			if (p->port[k].in_sets & 1u << key % BL_SETS_MAX &&
			    (p->sw.single_writer ? p->port[k].home_lane : 0) == key / BL_SETS_MAX)
				bl_tree_set(t, p->sw.tree_leaves, k, leaf.b, leaf.c);
		}
		rc = bl_map_set(trees, key, t, BL_MAP_SW_TREES, err);
	}
	free(t);
	for (k = 0; k < p->sw.nports && !rc; k++) {
		struct bl_port_regs r = carry_regs(p, k);

		rc = bl_map_set(regs, k, &r, BL_MAP_SW_REGS, err);
	}
	return rc;
}

/*
 * Carries over the greatest barrier that any lane gave to any output of the same set, so that no
 * output decreases, whatever the groups are now.
 */
static int carry_lanes(const struct bl_switch_plan *p, int fd, struct bl_err *err)
{
	struct bl_sw_lane lane = {};
	unsigned int k, l;
	int rc = 0;

	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		const struct bl_sw_port *a = &p->old_port[k], *b = &p->port[k];
		struct bl_pair *to = &lane.out[b->out_set % BL_SETS_MAX];

		for (l = 0; l < BL_LANES_MAX && a->ifindex && b->ifindex; l++) {
			const struct bl_pair *from = &p->old_lane[l].out[a->out_set % BL_SETS_MAX];

			to->b = bl_max64(to->b, from->b);
			to->c = bl_max64(to->c, from->c);
		}
	}
	for (l = 0; l < BL_LANES_MAX && !rc; l++) {
		/* The time that 48-bit timestamps are extended by; a lane that had one keeps it. */
		lane.now_ns = p->old_lane[l].now_ns;
		lane.relays = p->old_lane[l].relays; /* "sw_carried" is kept, and refers to it */
		rc = bl_map_set(fd, l, &lane, BL_MAP_SW_LANES, err);
	}
	return rc;
}

/*
 * sw_ports is written anew; ports that the controller barred stay barred. After a regrouping, the
 * ports that C waits for are awaited again.
 */
static int keep_barred(struct bl_switch_plan *p, int orders, struct bl_err *err)
{
	struct bl_fence_slot o;
	uint32_t k;

	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (bpf_map_lookup_elem(orders, &k, &o))
			return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				       BL_MAP_SW_ORDERS, strerror(errno));
		p->port[k].barred = o.barred;
		if (!p->regroup || !o.empty)
			continue;
		o.empty = 0;
		if (bpf_map_update_elem(orders, &k, &o, BPF_ANY))
			return bl_fail(err, errno, "cannot write entry %u of the map %s: %s", k,
				       BL_MAP_SW_ORDERS, strerror(errno));
	}
	return 0;
}

/* Where frames are steered to the same CPU as before, the entry stays as it is. */
static int fill_steering(const struct bl_node *n, struct bl_switch_plan *p, int fd, uint32_t k,
			 struct bl_err *err)
{
	bool same = !n->fresh && !p->regroup && p->port[k].ifindex &&
		    !strcmp(p->port[k].name, p->old_port[k].name);
	struct bl_steering h = {};

	if (same && bpf_map_lookup_elem(fd, &k, &h))
		return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
			       BL_MAP_SW_STEERING, strerror(errno));
	if (same)
		p->port[k].home_lane |= p->old_port[k].home_lane & BL_AWAY;
	if (same && h.cpu == (uint32_t)p->cpu[k] && h.most == p->steering_most)
		return 0;
	h.cpu = (uint32_t)p->cpu[k];
	h.most = p->steering_most;
	return bl_map_set(fd, k, &h, BL_MAP_SW_STEERING, err);
}

static int fill_maps(const struct bl_node *n, struct bl_switch_plan *p,
		     const struct bl_switch *skel, struct bl_err *err)
{
	const struct bl_port_maps maps = {
		.counts = bpf_map__fd(skel->maps.counts),
		.token_counts = bpf_map__fd(skel->maps.token_counts),
		.carried = bpf_map__fd(skel->maps.sw_carried),
		.lags = bpf_map__fd(skel->maps.sw_lags),
		.links = bpf_map__fd(skel->maps.link_seen),
		.lives = bpf_map__fd(skel->maps.sw_lives),
	};
	uint32_t none = 0, k;
	int rc = 0;

	if (n->fresh || p->regroup) {
		rc = fill_trees(p, bpf_map__fd(skel->maps.sw_trees),
				bpf_map__fd(skel->maps.sw_regs), err);
		if (!rc)
			rc = carry_lanes(p, bpf_map__fd(skel->maps.sw_lanes), err);
	}
	if (!rc)
		rc = bl_fdb_fill(p->cfg, p->port, bpf_map__fd(skel->maps.sw_fdb), err);
	if (!rc)
		rc = bl_sources_fill(p->cfg, p->old_port, p->port,
				     bpf_map__fd(skel->maps.sw_sources),
				     bpf_map__fd(skel->maps.sw_owners), err);
	for (k = 0; k < p->sw.nports && !rc && n->fresh; k++)
		rc = bl_link_new(bpf_map__fd(skel->maps.link_seen), k, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc && !n->fresh; k++)
		if (p->port[k].ifindex && strcmp(p->port[k].name, p->old_port[k].name)) {
			struct bl_port_regs r = bl_port_regs_new();

			rc = bl_port_forget(&maps, k, err);
			if (!rc && !p->regroup)
				rc = bl_map_set(bpf_map__fd(skel->maps.sw_regs), k, &r,
						BL_MAP_SW_REGS, err);
		}
	if (!rc)
		rc = keep_barred(p, bpf_map__fd(skel->maps.sw_orders), err);
	for (k = 0; k < p->sw.nports && !rc; k++)
		rc = fill_steering(n, p, bpf_map__fd(skel->maps.sw_homing), k, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++)
		rc = bl_map_set(bpf_map__fd(skel->maps.sw_ports), k, &p->port[k], BL_MAP_SW_PORTS,
				err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		uint32_t old = p->old_port[k].ifindex;

		if (old && old != p->port[k].ifindex)
			bpf_map_update_elem(bpf_map__fd(skel->maps.sw_ifindex), &old, &none,
					    BPF_ANY);
	}
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		uint32_t number = k + 1;

		if (p->port[k].ifindex)
			rc = bl_map_set(bpf_map__fd(skel->maps.sw_ifindex), p->port[k].ifindex,
					&number, BL_MAP_SW_IFIDX, err);
	}
	if (!rc)
		rc = bl_map_set(bpf_map__fd(skel->maps.sw_cfg), 0, &p->sw, BL_MAP_SW_CFG, err);
	return rc;
}

/* Gives every port the keys of its link. */
static int fill_keys(struct bl_node *n, const struct bl_switch_plan *p,
		     const struct bl_switch *skel, struct bl_err *err)
{
	struct bl_auth_port ports[BL_SW_PORTS_MAX];
	unsigned int k;

	for (k = 0; k < p->cfg->ports_count; k++) {
		const struct bl_port_cfg *c = &p->cfg->ports[k];
		enum bl_auth_how how = p->cfg->auth.mode == BL_AUTH_OFFER ? BL_AUTH_OFFERED
									  : BL_AUTH_REQUIRED;

		how = c->auth_off ? BL_AUTH_EXEMPT : how;
		ports[k] = (struct bl_auth_port){ .ifname = c->ifname,
						  .port = (uint32_t)bl_port_by_name(p->port,
										    c->ifname),
						  .how = how };
	}
	return bl_auth_fill(n, skel->obj, ports, k, err);
}

/* Sizes the maps that depend on ports and configuration, and reuses the pinned ones. */
static int reuse_maps(struct bl_node *n, const struct bl_switch_plan *p, struct bl_switch *skel,
		      struct bl_err *err)
{
	static const char *const regroup[] = { BL_MAP_SW_CFG,      BL_MAP_SW_PORTS, BL_MAP_SW_REGS,
					       BL_MAP_SW_TREES,    BL_MAP_SW_LANES, BL_MAP_SW_HOME,
					       BL_MAP_SW_STEERING, BL_MAP_SW_LAGS };
	const char *anew[10 + BL_CHAIN_ANEW + BL_ADMISSION_MAPS] = {};
	struct bpf_map_info info = {};
	uint32_t size, len = sizeof(info);
	char path[BL_PATH_MAX];
	unsigned int k;
	int fd, rc;

	for (size = 1024; size <= p->max_ifindex; size *= 2)
		;
	if (bpf_map__set_max_entries(skel->maps.sw_ifindex, size))
		return bl_fail(err, EINVAL, "cannot size the map %s", BL_MAP_SW_IFIDX);
	if (bpf_map__set_max_entries(skel->maps.sw_home, (uint32_t)libbpf_num_possible_cpus()))
		return bl_fail(err, EINVAL, "cannot size the map %s", BL_MAP_SW_HOME);
	k = bl_chain_anew(n->dir, BL_ROLE_SWITCH, bl_node_frags(p->cfg, p->frags), anew);
	if (!n->fresh && p->regroup) {
		memcpy(&anew[k], regroup, sizeof(regroup));
		k += sizeof(regroup) / sizeof(regroup[0]);
	}
	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, BL_MAP_SW_IFIDX);
	fd = n->fresh ? -1 : bpf_obj_get(path);
	if (fd >= 0) {
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.max_entries < size)
			anew[k++] = BL_MAP_SW_IFIDX;
		close(fd);
	}
	rc = bl_admission_size(n, p->cfg, skel->obj, p->sw.nports, anew, err);
	return rc || n->fresh ? rc : bl_maps_reuse(skel->obj, n->dir, anew, err);
}

/*
 * Undoes a failed attach: detaches from the ports from @k on that were no ports of the running
 * switch.
 */
static void detach_new_ports(const struct bl_node *n, const struct bl_switch_plan *p,
			     unsigned int k)
{
	for (; k < n->natt; k++) {
		const char *name = n->att[k].iface.name;

		if (bl_port_by_name(p->old_port, name) >= 0)
			continue;
		bl_detach_links(n->dir, name, NULL);
		bl_nic_restore(n->dir, BL_ROLE_SWITCH, n->att[k].iface.ifindex);
		bl_chain_forget(n->dir, (uint32_t)n->att[k].port);
	}
}

/* Enters the chained program of @a's port. */
static int set_chain(const struct bl_node *n, const struct bl_switch_plan *p,
		     const struct bl_switch *skel, const struct bl_attached *a, struct bl_err *err)
{
	const struct bl_chain_at chain = { .dir = n->dir,
					   .role = BL_ROLE_SWITCH,
					   .hooks_fd = bpf_map__fd(skel->maps.hooks),
					   .progs_fd = bpf_map__fd(skel->maps.next_progs),
					   .port = (uint32_t)a->port,
					   .iface = &a->iface,
					   .frags = bl_node_frags(p->cfg, n->frags) };

	return bl_chain_set(&chain, bl_port_chain(p->cfg, a->iface.name), err);
}

static int attach_programs(struct bl_node *n, const struct bl_switch_plan *p,
			   const struct bl_switch *skel, struct bl_err *err)
{
	int prog = bl_progs_fd(&n->progs, skel->progs.bl_switch_xdp),
	    guard = bl_progs_fd(&n->progs, skel->progs.bl_switch_egress),
	    output = bl_progs_fd(&n->progs, skel->progs.bl_switch_devmap),
	    tx = bpf_map__fd(skel->maps.sw_tx);
	uint32_t k;
	int rc;

	/* room for all that a reload may add (switch_ports.c) */
	n->att = calloc(BL_SW_PORTS_MAX, sizeof(*n->att));
	if (!n->att)
		return bl_fail(err, ENOMEM, "out of memory");
	rc = bl_steer_open(bpf_map__fd(skel->maps.sw_home),
			   bl_progs_fd(&n->progs, skel->progs.bl_switch_steered), p->cfg, err);
	if (rc)
		return rc;
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (!p->port[k].ifindex) {
			bpf_map_delete_elem(tx, &k);
			continue;
		}
		rc = bl_prog_enter(tx, k, p->port[k].ifindex, output);
		if (rc)
			return bl_fail(err, -rc, "cannot enter port %s into the device map: %s",
				       p->port[k].name, strerror(-rc));
	}
	for (k = 0; k < p->sw.nports; k++) {
		struct bl_attached *a = &n->att[n->natt];

		if (!p->port[k].ifindex)
			continue;
		a->iface = p->iface[k];
		a->port = (int)k;
		a->role = p->port[k].role;
		a->cpu = p->cpu[k];
		a->dispatcher = p->cfg->dispatcher;
		a->home_cpu = -1;
		/*
		 * Egress programs first: no frame may leave by any port before the program that
		 * guards the port is there.
		 */
		n->natt++;
		rc = bl_nic_before(n, a, err);
		if (!rc)
			rc = bl_attach_tc(a, n->dir, false, guard, err);
		if (rc) {
			detach_new_ports(n, p, 0);
			return rc;
		}
	}
	for (k = 0; k < n->natt; k++) {
		struct bl_attached *a = &n->att[k];

		rc = set_chain(n, p, skel, a, err);
		if (!rc)
			rc = bl_attach_xdp(a, n->dir, "xdp", prog, p->cfg->mode, p->cfg->replace,
					   err);
		if (!rc && a->mode == BL_XDP_GENERIC && p->steering_most)
			rc = bl_map_set(bpf_map__fd(skel->maps.sw_homing), (uint32_t)a->port,
					&(struct bl_steering){ .cpu = (uint32_t)a->cpu },
					BL_MAP_SW_STEERING, err);
		if (!rc)
			rc = bl_nic_after(n, a, err);
		if (rc) {
			detach_new_ports(n, p, k);
			return rc;
		}
	}
	/* After the swap, so that no program sends to a port that is leaving. */
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (!p->old_port[k].ifindex || bl_port_by_name(p->port, p->old_port[k].name) >= 0)
			continue;
		rc = bl_port_release(n->dir, p->port[k].ifindex ? -1 : (int)k, p->old_port[k].name,
				     p->old_port[k].ifindex, err);
		if (rc)
			return rc;
		bl_log(BL_LOG_INFO, "port %u (%s) is no longer a port of this switch", k,
		       p->old_port[k].name);
	}
	return 0;
}

/* Keeps descriptors for ports that are made anew (link_watch.c). */
static int keep_programs(struct bl_node *n, const struct bl_switch *skel, struct bl_err *err)
{
	n->xdp_prog = fcntl(bl_progs_fd(&n->progs, skel->progs.bl_switch_xdp), F_DUPFD_CLOEXEC, 3);
	n->tc_prog =
		fcntl(bl_progs_fd(&n->progs, skel->progs.bl_switch_egress), F_DUPFD_CLOEXEC, 3);
	n->devmap_prog =
		fcntl(bl_progs_fd(&n->progs, skel->progs.bl_switch_devmap), F_DUPFD_CLOEXEC, 3);
	return n->xdp_prog < 0 || n->tc_prog < 0 || n->devmap_prog < 0
		       ? bl_fail(err, errno, "cannot keep the programs: %s", strerror(errno))
		       : 0;
}

int bl_switch_open(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err)
{
	struct bl_switch *skel = NULL;
	struct bl_switch_plan *p;
	int rc;

	p = calloc(1, sizeof(*p));
	if (!p)
		return bl_fail(err, ENOMEM, "out of memory");
	rc = bl_switch_plan(n, cfg, p, err);
	if (rc)
		goto out;
	skel = bl_switch_object(bl_node_plain(cfg));
	if (!skel) {
		rc = bl_fail(err, errno, "cannot open the switch programs: %s", strerror(errno));
		goto out;
	}
	skel->rodata->bl_admits = cfg->admission.on;
	skel->rodata->bl_auth = (__u8)cfg->auth.mode;
	skel->rodata->bl_chains = bl_node_chains(cfg);
	skel->rodata->bl_frags = n->frags = p->frags;
	/* Only a pacer runs it, and it takes a twelfth of the load. */
	if (!bl_admission_paced(cfg))
		bpf_program__set_autoload(skel->progs.bl_port_pace, false);
	if (bl_node_frags(cfg, p->frags) == BL_HOOK_FRAGS_FLAG) {
		bl_xdp_set_frags(skel->progs.bl_switch_xdp);
		bl_xdp_set_frags(skel->progs.bl_switch_devmap);
		bl_xdp_set_frags(skel->progs.bl_switch_steered);
	}
	if (cfg->dispatcher)
		bl_xdp_set_member(skel->progs.bl_switch_xdp);
	rc = reuse_maps(n, p, skel, err);
	if (rc)
		goto out;
	rc = bl_progs_load(&n->progs, skel->skeleton, n->dir, "switch", err);
	if (rc)
		goto out;
	rc = bl_map_set(bpf_map__fd(skel->maps.meta), 0, &n->meta, BL_MAP_META, err);
	if (!rc)
		rc = bl_keep_clock(n, bpf_map__fd(skel->maps.clock), err);
	if (rc)
		goto out;
	p->sw.tai_offset_s = n->clock.shared->tai_offset_s;
	rc = bl_fence_open(&n->fence, skel->obj, bl_progs_fd(&n->progs, skel->progs.bl_fence), err);
	if (!rc)
		rc = fill_maps(n, p, skel, err);
	if (!rc)
		rc = fill_keys(n, p, skel, err);
	if (!rc)
		rc = bl_admission_fill(n, cfg, skel->obj, p->port, err);
	if (!rc && n->fresh)
		rc = bl_maps_pin(skel->obj, n->dir, err);
	if (!rc)
		rc = attach_programs(n, p, skel, err);
	if (!rc)
		rc = bl_auth_forget(n, skel->obj, err);
	if (!rc)
		rc = keep_programs(n, skel, err);
	if (!rc)
		rc = bl_links_watch(n, err);
	if (!rc)
		rc = bl_nic_watch(n, err);
	if (!rc)
		rc = bl_sources_watch(n, skel->obj, err);
	if (!rc)
		rc = bl_link_check(n, skel->obj, err);
	/* After a takeover, the pins name the new maps once the programs use them. */
	if (!rc && !n->fresh)
		rc = bl_maps_pin(skel->obj, n->dir, err);
	if (!rc && bl_admission_paced(cfg))
		rc = bl_admission_pace(n, skel->obj, "bl_port_pace", BL_MAP_PORT_DUE, p->sw.nports,
				       err);
	if (!rc && p->regroup)
		bl_log(BL_LOG_INFO, "%s: ports were regrouped; inputs join again", n->meta.name);
	if (!rc)
		bl_progs_pin(&n->progs, n->dir, n->meta.name);
out:
	bl_progs_end(&n->progs);
	bl_switch__destroy(skel);
	free(p);
	return rc;
}
