// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP at a switch: from what people configure to token_cfg and token_ports.
 *
 * Example: "rate: 1gbit" with policy top: ports are metered, so tokens are paced (mode pace): a
 * byte takes 8 ns, a token time is 12976 ns, one is good for 103808 ns. With "link_rate: 1gbit"
 * instead nothing is metered and tokens are dropped or sent as they come (mode drop).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "loader/admission/policy.h"
#include "loader/admission/top_switch.h"
#include "maps/top_token_abi.h"

/* Bits per second of the link behind a port; 0: not known. */
static uint64_t link_rate(const struct bl_node_cfg *c, const char *ifname)
{
	uint64_t rate = bl_admission_port_rate(c, ifname);

	return rate ? rate : c->admission.link_rate_bps;
}

/* As configured; else paced where ports are metered, since only these have queues. */
static enum bl_token_mode token_mode(const struct bl_node_cfg *c)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (a->token_mode)
		return (enum bl_token_mode)(a->token_mode - 1);
	return bl_admission_paced(c) ? BL_TOKEN_PACE : BL_TOKEN_DROP;
}

/* Refuses options that could have no effect. */
static int check_effects(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	uint32_t frames = a->token_frames ? a->token_frames : BL_TOKEN_FRAMES;
	unsigned int k, up = 0;

	for (k = 0; k < c->ports_count; k++)
		up += c->ports[k].role == BL_PORT_UP;
	if (a->spray && (c->forward != BL_FWD_L3 || !up))
		return bl_fail(err, EINVAL,
			       "spray: frames take the ways up in turn, and this switch has none "
			       "to choose from%s",
			       c->forward != BL_FWD_L3 ? ": it forwards by its table (forward: l2)"
						       : "; give the ports that lead up role up");
	if (a->data_first && token_mode(c) != BL_TOKEN_PACE)
		return bl_fail(err, EINVAL,
			       "data_first orders tokens that wait in queues, and with tokens: "
			       "drop none does; choose pace, which needs a rate");
	for (k = BL_CL_TOKEN0; k <= BL_CL_TOKEN5 && token_mode(c) == BL_TOKEN_PACE; k++)
		if (a->limit[k].frames && a->limit[k].frames < frames)
			return bl_fail(err, EINVAL,
				       "a queue of %u frames for class %s is less than the %u "
				       "tokens of a class that may wait; raise its limit, or lower "
				       "token_frames",
				       a->limit[k].frames, bl_class_name(k), frames);
	return 0;
}

int bl_top_switch_check(const struct bl_node_cfg *c, bool selected, struct bl_err *err)
{
	unsigned int k;
	int rc;

	rc = bl_admission_rate(c->admission.link_rate_bps, "links", err);
	if (rc || !selected)
		return rc;
	for (k = 0; k < c->ports_count; k++) {
		if (!link_rate(c, c->ports[k].ifname))
			return bl_fail(err, EINVAL,
				       "top gives tokens a share of each link, so it needs the "
				       "rate of %s; give admission a link_rate (--link-rate), or a "
				       "rate (--rate), at which ports are metered",
				       c->ports[k].ifname);
		if (token_mode(c) == BL_TOKEN_PACE &&
		    !bl_admission_port_rate(c, c->ports[k].ifname))
			return bl_fail(err, EINVAL,
				       "tokens: pace holds tokens in the queues of metered ports, "
				       "and %s is not metered; give admission a rate (--rate), or "
				       "choose drop",
				       c->ports[k].ifname);
	}
	return check_effects(c, err);
}

/* Time per byte of the share of the link that tokens and their data have; 0: not known. */
static uint32_t token_share_q20(const struct bl_node_cfg *c, const char *ifname)
{
	uint64_t rate = link_rate(c, ifname);

	return rate ? bl_share_q20(bl_rate_ns_q20(rate), c->admission.headroom_percent) : 0;
}

static bool leads_outside(const struct bl_node_cfg *c, const char *ifname)
{
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		if (!strcmp(c->ports[k].ifname, ifname))
			return c->ports[k].outside;
	return false;
}

int bl_top_switch_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		       const struct bl_sw_port *ports, bool selected, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &cfg->admission;
	struct bl_token_cfg c = { .on = selected,
				  .mode = token_mode(cfg),
				  .data_first = a->data_first,
				  .unscheduled = a->unscheduled,
				  .spray = a->spray,
				  .frames = a->token_frames ? a->token_frames : BL_TOKEN_FRAMES,
				  .expiry = a->expiry_tokens ? a->expiry_tokens : BL_TOKEN_EXPIRY };
	struct bpf_map *cfg_map, *ports_map;
	struct bl_token_port p;
	uint32_t k;
	int rc;

	(void)n;
	rc = bl_map_find(obj, BL_MAP_TOKEN_CFG, sizeof(c), &cfg_map, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_TOKEN_PORTS, sizeof(p), &ports_map, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		if (bpf_map_lookup_elem(bpf_map__fd(ports_map), &k, &p))
			return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				       BL_MAP_TOKEN_PORTS, strerror(errno));
		p.ns_q20 = ports[k].ifindex ? token_share_q20(cfg, ports[k].name) : 0;
		p.outside = ports[k].ifindex && leads_outside(cfg, ports[k].name);
		rc = bl_map_set(bpf_map__fd(ports_map), k, &p, BL_MAP_TOKEN_PORTS, err);
	}
	return rc ? rc : bl_map_set(bpf_map__fd(cfg_map), 0, &c, BL_MAP_TOKEN_CFG, err);
}

/* Clears the counts of a port whose number goes to another interface. 0 or -errno. */
int bl_token_forget(int fd, uint32_t port, struct bl_err *err)
{
	int cpus = libbpf_num_possible_cpus(), rc = 0;
	struct bl_token_counts *none = cpus > 0 ? calloc((size_t)cpus, sizeof(*none)) : NULL;

	if (!none)
		return bl_fail(err, ENOMEM, "out of memory");
	if (bpf_map_update_elem(fd, &port, none, BPF_ANY))
		rc = bl_fail(err, errno, "cannot clear entry %u of the map %s: %s", port,
			     BL_MAP_TOKEN_COUNTS, strerror(errno));
	free(none);
	return rc;
}

/* ---- while the switch runs ---- */

/*
 * All metered ports will have the rate @now (0: as they are). The share for tokens of each changes
 * in the same proportion. Values are copied without a lock, and written back: see struct
 * bl_token_port. Sets *@all: every port has a rate. Changes nothing unless @write.
 */
static int scale_shares(const struct bl_node_ref *ref, uint32_t now, bool write, bool *all,
			struct bl_err *err)
{
	int fd[3] = { -1, -1, -1 }, rc = 0;
	struct bl_token_port p;
	struct bl_sw_port sw;
	struct bl_meter m;
	uint32_t k;

	*all = true;
	fd[0] = bl_map_open(ref, BL_MAP_TOKEN_PORTS, sizeof(p), true, err);
	if (fd[0] >= 0)
		fd[1] = bl_map_open(ref, BL_MAP_SW_PORTS, sizeof(sw), false, err);
	if (fd[1] >= 0)
		fd[2] = bl_map_open(ref, BL_MAP_METERS, sizeof(m), false, err);
	if (fd[2] < 0)
		rc = fd[0] < 0 ? fd[0] : fd[1] < 0 ? fd[1] : fd[2];
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		if (bpf_map_lookup_elem(fd[0], &k, &p) || bpf_map_lookup_elem(fd[1], &k, &sw) ||
		    bpf_map_lookup_elem(fd[2], &k, &m)) {
			rc = bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				     BL_MAP_TOKEN_PORTS, strerror(errno));
		} else if (sw.ifindex) {
			uint32_t ns_q20 = !now || !m.ns_q20 ? p.ns_q20
					  : p.ns_q20
						  ? (uint32_t)((uint64_t)p.ns_q20 * now / m.ns_q20)
						  : now;

			if (!ns_q20)
				*all = false;
			if (write && ns_q20 != p.ns_q20) {
				p.ns_q20 = ns_q20;
				rc = bl_map_set(fd[0], k, &p, BL_MAP_TOKEN_PORTS, err);
			}
		}
	}
	for (k = 0; k < 3; k++)
		if (fd[k] >= 0)
			close(fd[k]);
	return rc;
}

static const char *paths_name(const struct bl_sw_cfg *sw)
{
	return bl_path_by_name(sw->paths ? sw->path_by : BL_PATH_BY_FRAME);
}

/* Only a switch with paths up can spray over them. */
static int check_spray(const struct bl_node_ref *ref, struct bl_err *err)
{
	struct bl_sw_cfg sw;
	int fd = bl_value_read(ref, BL_MAP_SW_CFG, &sw, sizeof(sw), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	return sw.path_ports ? 0
			     : bl_fail(err, EINVAL,
				       "%s has no ways up to choose from: spray is for switches "
				       "that route and have ports of role up",
				       ref->meta.name);
}

/*
 * The path up is chosen by TOP's hash or in turns while TOP rules; else by the frame, where the
 * switch was started for Fastpass, or by Linux's routes. The value is copied without a lock;
 * nothing else in it changes but the TAI offset (loader/order/tai.c), so a program that reads
 * meanwhile takes the old path or the new one.
 */
static int change_paths(const struct bl_change *c, const struct bl_token_cfg *cfg,
			struct bl_err *err)
{
	struct bl_sw_cfg was, now;
	int fd = bl_value_read(c->ref, BL_MAP_SW_CFG, &was, sizeof(was), true, err), rc = 0;

	if (fd < 0)
		return fd;
	now = was;
	now.paths = cfg->on || was.path_keep ? was.path_ports : 0;
	now.path_by = !cfg->on ? BL_PATH_BY_FRAME : cfg->spray ? BL_PATH_BY_TURN : BL_PATH_BY_FLOW;
	if (was.paths != now.paths || was.path_by != now.path_by)
		rc = bl_map_set(fd, 0, &now, BL_MAP_SW_CFG, err);
	close(fd);
	if (!rc && strcmp(paths_name(&was), paths_name(&now)))
		bl_say(&c->said, "paths up", paths_name(&was), paths_name(&now));
	return rc;
}

/* What token_cfg will be; and with @write the ports' shares as they will be. */
static int prepare_tokens(const struct bl_change *c, const struct bl_token_cfg *was,
			  struct bl_token_cfg *now, bool write, struct bl_err *err)
{
	const struct bl_admission_set *set = c->set;
	const bool new_rate = set->given[BL_AO_RATE] && set->value[BL_AO_RATE];
	const uint32_t meter_q20 = c->meter_q20 ? c->rate_q20 : 0;
	bool all = true;
	int rc = 0;

	now->on = bl_policy_stays(c, BL_POLICY_TOP, was->on);
	if (now->on && !was->on && !set->given[BL_AO_TOKENS])
		now->mode = meter_q20 ? BL_TOKEN_PACE : BL_TOKEN_DROP;
	if (bl_set_number(set, BL_AO_TOKENS, &now->mode, err) ||
	    bl_set_number(set, BL_AO_DATA_FIRST, &now->data_first, err) ||
	    bl_set_number(set, BL_AO_UNSCHEDULED, &now->unscheduled, err) ||
	    bl_set_number(set, BL_AO_TOKEN_FRAMES, &now->frames, err) ||
	    bl_set_number(set, BL_AO_EXPIRY_TOKENS, &now->expiry, err) ||
	    bl_set_number(set, BL_AO_SPRAY, &now->spray, err))
		return -EINVAL;
	if (set->given[BL_AO_SPRAY] && now->spray)
		rc = check_spray(c->ref, err);
	if (!rc && (now->on || new_rate))
		rc = scale_shares(c->ref, new_rate ? meter_q20 : 0, write, &all, err);
	if (rc)
		return rc;
	if (now->on && !all)
		return bl_fail(err, EINVAL,
			       "top gives tokens a share of each link, and %s was started without "
			       "their rates; start it with a link_rate or a rate",
			       c->ref->meta.name);
	if (now->on && now->mode == BL_TOKEN_PACE && !meter_q20)
		return bl_fail(err, EINVAL,
			       "tokens: pace holds tokens in the queues of metered ports, and none "
			       "of %s is metered; start it with a rate, or choose drop",
			       c->ref->meta.name);
	return 0;
}

static void say_tokens(const struct bl_said *s, const struct bl_token_cfg *was,
		       const struct bl_token_cfg *now)
{
	if (was->mode != now->mode)
		bl_say(s, "tokens", bl_token_mode_name(was->mode), bl_token_mode_name(now->mode));
	bl_say_truth(s, "data first", was->data_first, now->data_first);
	bl_say_truth(s, "unscheduled class", was->unscheduled, now->unscheduled);
	bl_say_number(s, "token frames", was->frames, now->frames, "");
	bl_say_number(s, "expiry tokens", was->expiry, now->expiry, "");
	bl_say_truth(s, "spray", was->spray, now->spray);
}

int bl_top_switch_change(struct bl_change *c, bool write, struct bl_err *err)
{
	struct bl_token_cfg was, now;
	int fd = bl_value_read(c->ref, BL_MAP_TOKEN_CFG, &was, sizeof(was), true, err), rc;

	if (fd < 0)
		return fd;
	now = was;
	rc = prepare_tokens(c, &was, &now, write, err);
	if (!rc && write)
		rc = bl_map_set(fd, 0, &now, BL_MAP_TOKEN_CFG, err);
	close(fd);
	if (was.on)
		c->was = BL_POLICY_TOP;
	if (now.on)
		c->is = BL_POLICY_TOP;
	if (rc || !write)
		return rc;
	say_tokens(&c->said, &was, &now);
	return change_paths(c, &now, err);
}

int bl_top_switch_show(const struct bl_node_ref *ref, struct bl_admission_set *v,
		       struct bl_err *err)
{
	struct bl_token_cfg c;
	int fd = bl_value_read(ref, BL_MAP_TOKEN_CFG, &c, sizeof(c), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	if (c.on)
		bl_admission_put(v, BL_AO_POLICY, BL_POLICY_TOP);
	bl_admission_put(v, BL_AO_TOKENS, c.mode);
	bl_admission_put(v, BL_AO_DATA_FIRST, c.data_first);
	bl_admission_put(v, BL_AO_UNSCHEDULED, c.unscheduled);
	bl_admission_put(v, BL_AO_TOKEN_FRAMES, c.frames);
	bl_admission_put(v, BL_AO_EXPIRY_TOKENS, c.expiry);
	bl_admission_put(v, BL_AO_SPRAY, c.spray);
	return 0;
}
