// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP at a switch: from what people configure to token_cfg and token_ports.
 *
 * Example: "rate: 1gbit" with policy top: ports are metered, so tokens are paced (mode pace): a
 * byte takes 8 ns, a token time is 12976 ns, one is good for 103808 ns. With "link_rate: 1gbit"
 * instead nothing is metered and tokens are dropped or sent as they come (mode drop).
 */
#include "loader/admission/top_switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/rate.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_priv.h"
#include "loader/admission/admission_set.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_cfg.h"
#include "maps/top_token_abi.h"

static const char *const mode_names[] = {
#define NAME(sym, name, text) [BL_TOKEN_##sym] = name,
	BL_TOKEN_MODES(NAME)
#undef NAME
};

const char *bl_token_mode_name(unsigned int mode)
{
	return mode < BL_TOKEN_MODE_COUNT ? mode_names[mode] : "?";
}

/* How a switch chooses the way up; @by: enum bl_path_by. */
const char *bl_path_by_name(unsigned int by)
{
	return by == BL_PATH_BY_FLOW ? "symmetric" : by == BL_PATH_BY_TURN ? "spray" : "routes";
}

int bl_token_mode_by_name(const char *name)
{
	int k;

	for (k = 0; k < BL_TOKEN_MODE_COUNT; k++)
		if (!strcmp(mode_names[k], name))
			return k;
	return -1;
}

/* Bits per second of the link behind a port; 0: not known. */
static uint64_t link_rate(const struct bl_node_cfg *c, const char *ifname)
{
	uint64_t rate = bl_admission_port_rate(c, ifname);

	return rate ? rate : c->admission.link_rate_bps;
}

/* As configured, or what fits: ports that are metered have queues. */
static enum bl_token_mode mode_of(const struct bl_node_cfg *c)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (a->token_mode)
		return (enum bl_token_mode)(a->token_mode - 1);
	return bl_admission_paced(c) ? BL_TOKEN_PACE : BL_TOKEN_DROP;
}

/* What is set, but could have no effect. */
static int check_use(const struct bl_node_cfg *c, struct bl_err *err)
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
	if (a->data_first && mode_of(c) != BL_TOKEN_PACE)
		return bl_fail(err, EINVAL,
			       "data_first orders tokens that wait in queues, and with tokens: "
			       "drop none does; choose pace, which needs a rate");
	for (k = BL_CL_TOKEN0; k <= BL_CL_TOKEN5 && mode_of(c) == BL_TOKEN_PACE; k++)
		if (a->limit[k].frames && a->limit[k].frames < frames)
			return bl_fail(err, EINVAL,
				       "a queue of %u frames for class %s is less than the %u "
				       "tokens of a class that may wait; raise its limit, or lower "
				       "token_frames",
				       a->limit[k].frames, bl_class_name(k), frames);
	return 0;
}

int bl_token_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	unsigned int k;
	int rc;

	rc = bl_admission_rate(a->link_rate_bps, "links", err);
	if (rc)
		return rc;
	if (a->token_mode > BL_TOKEN_MODE_COUNT)
		return bl_fail(err, EINVAL, "tokens: mode %u: there is no such", a->token_mode - 1);
	if (a->token_frames > BL_TOKEN_FRAMES_MAX)
		return bl_fail(err, EINVAL, "token_frames %u: at most %u", a->token_frames,
			       BL_TOKEN_FRAMES_MAX);
	if (a->expiry_tokens > BL_TOKEN_FRAMES_MAX)
		return bl_fail(err, EINVAL, "expiry_tokens %u: at most %u", a->expiry_tokens,
			       BL_TOKEN_FRAMES_MAX);
	if (a->headroom_percent > BL_OUTSIDE_MAX)
		return bl_fail(err, EINVAL, "headroom_percent %u: at most %u", a->headroom_percent,
			       BL_OUTSIDE_MAX);
	for (k = 0; k < c->ports_count && a->policy == BL_POLICY_TOP; k++) {
		if (!link_rate(c, c->ports[k].ifname))
			return bl_fail(err, EINVAL,
				       "top gives tokens a share of each link, so it needs the "
				       "rate of %s; give admission a link_rate (--link-rate), or a "
				       "rate (--rate), at which ports are metered",
				       c->ports[k].ifname);
		if (mode_of(c) == BL_TOKEN_PACE && !bl_admission_port_rate(c, c->ports[k].ifname))
			return bl_fail(err, EINVAL,
				       "tokens: pace holds tokens in the queues of metered ports, "
				       "and %s is not metered; give admission a rate (--rate), or "
				       "choose drop",
				       c->ports[k].ifname);
	}
	return a->policy == BL_POLICY_TOP ? check_use(c, err) : 0;
}

/* Share of the link for tokens and their data. */
static uint32_t ns_q20_of(const struct bl_node_cfg *c, const char *ifname)
{
	uint64_t rate = link_rate(c, ifname);

	return rate ? bl_share_q20(bl_rate_ns_q20(rate), c->admission.headroom_percent) : 0;
}

static bool is_outside(const struct bl_node_cfg *c, const char *ifname)
{
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		if (!strcmp(c->ports[k].ifname, ifname))
			return c->ports[k].outside;
	return false;
}

/* After load, before the programs see a frame. @cfg has the ports, @ports their numbers. */
int bl_token_fill(const struct bl_node_cfg *cfg, struct bpf_object *obj,
		  const struct bl_sw_port *ports, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &cfg->admission;
	struct bl_token_cfg c = { .on = a->on && a->policy == BL_POLICY_TOP,
				  .mode = mode_of(cfg),
				  .data_first = a->data_first,
				  .unscheduled = a->unscheduled,
				  .spray = a->spray,
				  .frames = a->token_frames ? a->token_frames : BL_TOKEN_FRAMES,
				  .expiry = a->expiry_tokens ? a->expiry_tokens : BL_TOKEN_EXPIRY };
	struct bpf_map *cfg_map, *ports_map;
	struct bl_token_port p;
	uint32_t k;
	int rc;

	rc = bl_map_find(obj, BL_MAP_TOKEN_CFG, sizeof(c), &cfg_map, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_TOKEN_PORTS, sizeof(p), &ports_map, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		if (bpf_map_lookup_elem(bpf_map__fd(ports_map), &k, &p))
			return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				       BL_MAP_TOKEN_PORTS, strerror(errno));
		p.ns_q20 = ports[k].ifindex ? ns_q20_of(cfg, ports[k].name) : 0;
		p.outside = ports[k].ifindex && is_outside(cfg, ports[k].name);
		rc = bl_map_set(bpf_map__fd(ports_map), k, &p, BL_MAP_TOKEN_PORTS, err);
	}
	return rc ? rc : bl_map_set(bpf_map__fd(cfg_map), 0, &c, BL_MAP_TOKEN_CFG, err);
}

/* A port's number went to another interface: its counts start anew. */
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

static void say(char *said, size_t size, const char *what, const char *old, const char *now)
{
	size_t at = strlen(said);

	snprintf(said + at, size - at, "%s%s: %s -> %s", at ? ", " : "", what, old, now);
}

static void say_number(char *said, size_t size, const char *what, uint32_t old, uint32_t now)
{
	char a[16], b[16];

	if (old == now)
		return;
	snprintf(a, sizeof(a), "%u", old);
	snprintf(b, sizeof(b), "%u", now);
	say(said, size, what, a, b);
}

static void say_yes(char *said, size_t size, const char *what, uint32_t old, uint32_t now)
{
	if (old != now)
		say(said, size, what, old ? "yes" : "no", now ? "yes" : "no");
}

static int take(__u32 *to, int64_t v, uint32_t least, uint32_t most, const char *what,
		struct bl_err *err)
{
	if (v < 0)
		return 0;
	if (v < least || v > most)
		return bl_fail(err, EINVAL, "%s %lld: from %u to %u", what, (long long)v, least,
			       most);
	*to = (uint32_t)v;
	return 0;
}

/*
 * Metered ports will all have the rate @now (0: as they are): their share for tokens goes with it,
 * from what each is metered at until then. Values are copied without a lock, and written back: see
 * struct bl_token_port.
 * *@all: every port has a rate.
 */
static int scale(const struct bl_node_ref *ref, uint32_t now, bool write, bool *all,
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

static int read_sw_cfg(const struct bl_node_ref *ref, bool write, struct bl_sw_cfg *sw,
		       struct bl_err *err)
{
	int fd = bl_map_open(ref, BL_MAP_SW_CFG, sizeof(*sw), write, err);
	uint32_t zero = 0;

	if (fd >= 0 && bpf_map_lookup_elem(fd, &zero, sw)) {
		int rc = bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_SW_CFG,
				 strerror(errno));

		close(fd);
		return rc;
	}
	return fd;
}

/* Only what has ways up can spray over them. */
static int check_spray(const struct bl_node_ref *ref, struct bl_err *err)
{
	struct bl_sw_cfg sw;
	int fd = read_sw_cfg(ref, false, &sw, err);

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
 * Who chooses the way up: TOP's hash or turns; else the path in the frame, where the switch was
 * started for Fastpass, or Linux's routes. The value is copied without a lock; but for these two
 * fields nothing in it changes, so whoever reads it meanwhile sees the old path or the new one.
 */
static int change_paths(const struct bl_node_ref *ref, const struct bl_token_cfg *c, char *said,
			size_t size, struct bl_err *err)
{
	struct bl_sw_cfg old, now;
	int fd = read_sw_cfg(ref, true, &old, err), rc = 0;

	if (fd < 0)
		return fd;
	now = old;
	now.paths = c->on || old.path_keep ? old.path_ports : 0;
	now.path_by = !c->on ? BL_PATH_BY_FRAME : c->spray ? BL_PATH_BY_TURN : BL_PATH_BY_FLOW;
	if (old.paths != now.paths || old.path_by != now.path_by)
		rc = bl_map_set(fd, 0, &now, BL_MAP_SW_CFG, err);
	close(fd);
	if (!rc && strcmp(paths_name(&old), paths_name(&now)))
		say(said, size, "paths up", paths_name(&old), paths_name(&now));
	return rc;
}

/*
 * `barline admission set` on a switch: @policy: wanted, -1: as it is. @now_q20: rate of metered
 * ports, of the first one as it is, or of all as they will be; 0: none is metered. First with
 * @write false, to refuse, then with true.
 */
int bl_token_change(const struct bl_node_ref *ref, const struct bl_admission_set *c,
		    uint32_t now_q20, bool write, bool *was_on, bool *is_on, char *said,
		    size_t size, struct bl_err *err)
{
	struct bl_token_cfg old, now;
	uint32_t zero = 0;
	int fd, rc = 0;
	bool all;

	fd = bl_map_open(ref, BL_MAP_TOKEN_CFG, sizeof(old), true, err);
	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &old))
		rc = bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_TOKEN_CFG,
			     strerror(errno));
	now = old;
	if (c->policy >= 0)
		now.on = c->policy == BL_POLICY_TOP;
	if (c->tokens >= 0)
		now.mode = (uint32_t)c->tokens;
	else if (now.on && !old.on)
		now.mode = now_q20 ? BL_TOKEN_PACE : BL_TOKEN_DROP;
	if (!rc)
		rc = take(&now.data_first, c->data_first, 0, 1, "data-first", err);
	if (!rc)
		rc = take(&now.unscheduled, c->unscheduled, 0, 1, "unscheduled-class", err);
	if (!rc)
		rc = take(&now.frames, c->token_frames, 1, BL_TOKEN_FRAMES_MAX, "token-frames",
			  err);
	if (!rc)
		rc = take(&now.expiry, c->expiry_tokens, 1, BL_TOKEN_FRAMES_MAX, "expiry-tokens",
			  err);
	if (!rc)
		rc = take(&now.spray, c->spray, 0, 1, "spray", err);
	if (!rc && c->spray == 1)
		rc = check_spray(ref, err);
	if (!rc && (now.on || c->rate_bps > 0))
		rc = scale(ref, c->rate_bps > 0 ? now_q20 : 0, write, &all, err);
	if (!rc && now.on && !all)
		rc = bl_fail(err, EINVAL,
			     "top gives tokens a share of each link, and %s was started without "
			     "their rates; start it with a link_rate or a rate",
			     ref->meta.name);
	if (!rc && now.on && now.mode == BL_TOKEN_PACE && !now_q20)
		rc = bl_fail(err, EINVAL,
			     "tokens: pace holds tokens in the queues of metered ports, and none "
			     "of %s is metered; start it with a rate, or choose drop",
			     ref->meta.name);
	if (!rc && write)
		rc = bl_map_set(fd, 0, &now, BL_MAP_TOKEN_CFG, err);
	close(fd);
	*was_on = old.on;
	*is_on = now.on;
	if (rc || !write)
		return rc;
	if (old.mode != now.mode)
		say(said, size, "tokens", bl_token_mode_name(old.mode),
		    bl_token_mode_name(now.mode));
	say_yes(said, size, "data first", old.data_first, now.data_first);
	say_yes(said, size, "unscheduled class", old.unscheduled, now.unscheduled);
	say_number(said, size, "token frames", old.frames, now.frames);
	say_number(said, size, "expiry tokens", old.expiry, now.expiry);
	say_yes(said, size, "spray", old.spray, now.spray);
	return change_paths(ref, &now, said, size, err);
}
