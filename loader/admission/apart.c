// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reports neighbours whose policy does not fit this node's (core/policy_core.h): one line in the
 * log after two seconds, and one when it is over. So a change of a rack node by node logs nothing.
 * There is at most one warning per minute, however often policies change.
 *
 * Example: `admission set pl2` on h1 alone. 2 s later h1 logs "port 0: the neighbour 1f4a0007 has
 * policy none, and this node pl2: frames go as under none until they agree", and its switch logs
 * the same of its port.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/policy_core.h"
#include "base/log.h"
#include "loader/admission/admission.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/fence.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_token_abi.h"
#include "loader/admission/apart.h"

#define SAMPLE_NS 1000000000ULL
#define LASTS_NS  2000000000ULL
#define WARN_NS   60000000000ULL

/* Value 0 of a pinned map; 0 or -errno. */
static int read_value(const struct bl_node_ref *ref, const char *map, void *value, uint32_t size)
{
	uint32_t zero = 0;
	struct bl_err err;
	int fd = bl_map_open(ref, map, size, false, &err), rc;

	if (fd < 0)
		return fd;
	rc = bpf_map_lookup_elem(fd, &zero, value);
	close(fd);
	return rc ? -EIO : 0;
}

uint32_t bl_apart_own(const struct bl_node_ref *ref)
{
	struct bl_hold_cfg host;
	struct bl_token_cfg top;
	struct bl_rsv_cfg rsv;

	if (ref->role == BL_ROLE_HOST)
		return !read_value(ref, BL_MAP_HOLD_CFG, &host, sizeof(host)) && host.on
			       ? bl_policy_say(host.policy)
			       : 0;
	if (read_value(ref, BL_MAP_RSV_CFG, &rsv, sizeof(rsv)) || !rsv.pair_shift ||
	    read_value(ref, BL_MAP_TOKEN_CFG, &top, sizeof(top)))
		return 0;
	return bl_policy_say(rsv.on ? BL_POLICY_PL2 : top.on ? BL_POLICY_TOP : BL_POLICY_NONE);
}

void bl_apart_sample(struct bl_apart *a, const struct bl_node *n, const struct bl_fence_port *in,
		     int count, uint64_t now)
{
	struct bl_node_ref ref = { .role = n->cfg.role,
				   .netns_ino = n->netns_ino,
				   .meta = n->meta };
	const struct bl_fence_port *first = NULL;
	uint32_t own;
	int i, apart = 0;

	if (a->sampled_ns && now - a->sampled_ns < SAMPLE_NS)
		return;
	a->sampled_ns = now;
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	own = bl_apart_own(&ref);
	for (i = 0; i < count; i++)
		if (in[i].live && bl_policy_apart(own, in[i].policy)) {
			first = first ? first : &in[i];
			apart++;
		}
	if (!apart) {
		if (a->warned)
			bl_log(BL_LOG_INFO, "%s: its neighbours and it agree about admission again",
			       n->meta.name);
		a->warned = false;
		a->since_ns = 0;
		return;
	}
	if (!a->since_ns)
		a->since_ns = now;
	if (now - a->since_ns < LASTS_NS || a->warned ||
	    (a->warned_ns && now - a->warned_ns < WARN_NS))
		return;
	a->warned = true;
	a->warned_ns = now;
	bl_log(BL_LOG_WARN,
	       "%s: port %u: the neighbour %08x has policy %s, and this node %s%s: frames go as "
	       "under none until they agree; `barline admission set --rack` sets all nodes",
	       n->meta.name, first->port, first->neighbour, bl_policy_name(first->policy - 1),
	       bl_policy_name(own - 1), apart > 1 ? " (other ports, too)" : "");
}
