// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See defaults.h. */
#include "loader/defaults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/iface.h"
#include "base/log.h"
#include "core/order/promise_core.h"
#include "loader/admission/admission.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/lower.h"
#include "loader/node_cfg.h"
#include "maps/clock_abi.h"

uint32_t bl_node_lag_max_us(uint32_t dead_after_us)
{
	uint64_t us = bl_max64(10ULL * dead_after_us, BL_LAG_MAX_US);

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void bl_node_defaults(struct bl_node_cfg *c)
{
	if (!c->beacon_us)
		c->beacon_us = BL_BEACON_US;
	if (!c->dead_after_us)
		c->dead_after_us = 10 * c->beacon_us;
	if (!c->lag_max_us)
		c->lag_max_us = bl_node_lag_max_us(c->dead_after_us);
	if (!c->commit_lag_max_ms)
		c->commit_lag_max_ms = BL_COMMIT_LAG_MAX_MS;
	if (!c->control_rate)
		c->control_rate = BL_CONTROL_RATE;
	if (!c->clock_bound_us) {
		c->clock_bound_us = BL_CLOCK_BOUND_US;
		c->clock_bound_default = true;
	}
	if (!c->clock_source)
		c->clock_source = BL_CLOCK_TRUST;
	if (!c->clock_max_bound_us)
		c->clock_max_bound_us = BL_CLOCK_MAX_BOUND_US;
	if (!c->clock_void_after_ms)
		c->clock_void_after_ms = BL_CLOCK_VOID_MS;
	if (!c->caretaker_ms)
		c->caretaker_ms = BL_CARETAKER_MS;
	if (!c->process_limit_ms)
		c->process_limit_ms = BL_PROCESS_LIMIT_MS;
	if (!c->send_limit_ms)
		c->send_limit_ms = BL_SEND_LIMIT_MS;
	if (!c->user_endpoints)
		c->user_endpoints = BL_USER_ENDPOINTS;
	if (!c->user_ring_mib)
		c->user_ring_mib = BL_USER_RING_MIB;
	if (!c->port_count)
		c->port_count = BL_PORT_COUNT;
	if (!c->port_base)
		c->port_base = BL_PORT_BASE;
	bl_admission_defaults(c);
}

const char *bl_port_chain(const struct bl_node_cfg *c, const char *ifname)
{
	const struct bl_port_cfg *p = bl_cfg_port(c, ifname);

	return p && *p->chain ? p->chain : c->chain;
}

static bool is_chained(const char *what)
{
	return *what && strcmp(what, BL_CHAIN_NONE);
}

bool bl_node_plain(const struct bl_node_cfg *c)
{
	return !c->admission.on && c->auth.mode == BL_AUTH_OFF;
}

void bl_node_cpus(const struct bl_node_cfg *c, cpu_set_t *set)
{
	unsigned int k;

	CPU_ZERO(set);
	for (k = 0; k < c->ncpus; k++)
		CPU_SET((size_t)c->cpus[k], set);
	if (!c->ncpus && c->role == BL_ROLE_SWITCH)
		CPU_SET(0, set);
	if (bl_admission_paced(c))
		CPU_SET((size_t)bl_admission_cpu(c), set);
}

bool bl_node_chains(const struct bl_node_cfg *c)
{
	bool any = c->role == BL_ROLE_HOST && is_chained(c->chain);
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		any |= is_chained(bl_port_chain(c, c->ports[k].ifname));
	return any;
}

enum bl_hook_frags bl_node_frags(const struct bl_node_cfg *c, bool frags)
{
	return !frags          ? BL_HOOK_FRAGS_NONE
	       : c->dispatcher ? BL_HOOK_FRAGS_DISPATCHER
			       : BL_HOOK_FRAGS_FLAG;
}

/* Whether native XDP forwards frames of several buffers: Linux 6.3 was the first. */
static bool frags_forwarded(struct utsname *u)
{
	unsigned int major = 0, minor = 0;

	uname(u);
	sscanf(u->release, "%u.%u", &major, &minor);
	return major > 6 || (major == 6 && minor >= 3);
}

int bl_node_iface_check(const struct bl_node_cfg *c, const struct bl_iface *i, struct bl_err *err)
{
	struct utsname u;
	int rc = bl_lower_check(i, c->role, err);

	if (rc && (rc != -EPERM || !c->accept_reordering))
		return rc;
	if (c->admission.on && i->mtu > BL_XDP_MTU_MAX)
		return bl_fail(err, EMSGSIZE,
			       "%s has MTU %u, and a node with admission takes %u at the most; `ip "
			       "link set %s mtu %u` (or less), or start without admission",
			       i->name, i->mtu, BL_XDP_MTU_MAX, i->name, BL_XDP_MTU_MAX);
	if (c->role == BL_ROLE_SWITCH && c->mode == BL_XDP_NATIVE && i->mtu > BL_XDP_MTU_MAX &&
	    !frags_forwarded(&u))
		return bl_fail(err, EOPNOTSUPP,
			       "%s has MTU %u, and native XDP of Linux %s does not forward frames "
			       "of several buffers (6.3 does); `ip link set %s mtu %u` (or less), "
			       "or pass --generic, which is slower",
			       i->name, i->mtu, u.release, i->name, BL_XDP_MTU_MAX);
	return bl_iface_xdp_ok(i, true, err);
}

uint64_t bl_node_ahead_ns(const struct bl_node_cfg *c)
{
	return c->no_ahead ? 0 : bl_ahead_ns(c->beacon_us * 1000ULL);
}

int bl_node_xdp_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	if (!c->dispatcher || !bl_node_chains(c))
		return 0;
	return bl_fail(err, EINVAL,
		       "chain and xdp: dispatcher exclude each other: a program that is to run "
		       "behind barline's joins the dispatcher, too (`xdp-loader load`)");
}

int bl_node_cfg_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	if (c->role != BL_ROLE_SWITCH && c->role != BL_ROLE_HOST)
		return bl_fail(err, EINVAL, "a node is a switch or a host; role %d is neither",
			       c->role);
	if (c->port_count > BL_PORT_COUNT || c->port_base + c->port_count > 65536)
		return bl_fail(err, EINVAL, "port range %u+%u: at most %u ports, up to 65535",
			       c->port_base, c->port_count, BL_PORT_COUNT);
	if (c->ncpus > BL_LANES_MAX)
		return bl_fail(err, EINVAL, "%u datapath CPUs; at most %u", c->ncpus, BL_LANES_MAX);
	if (c->beacon_us > 1000000)
		return bl_fail(err, EINVAL, "a beacon interval of %u us; at most 1000000",
			       c->beacon_us);
	if (c->dead_after_us < 2 * c->beacon_us)
		return bl_fail(err, EINVAL,
			       "dead_after_us %u is less than two beacon intervals (%u us each): "
			       "every late beacon would count as a death",
			       c->dead_after_us, c->beacon_us);
	if (c->lag_max_us < c->dead_after_us)
		return bl_fail(err, EINVAL,
			       "lag_max_us %u is less than dead_after_us (%u): a host would be "
			       "excluded for the silence of another one",
			       c->lag_max_us, c->dead_after_us);
	if (c->clock_source != BL_CLOCK_TRUST && c->clock_bound_us >= c->clock_max_bound_us)
		return bl_fail(err, EINVAL,
			       "the least clock bound, %u us, is not below max_bound_us (%u): the "
			       "clock would always be void",
			       c->clock_bound_us, c->clock_max_bound_us);
	if (c->clock_void_after_ms < 1000)
		return bl_fail(err, EINVAL,
			       "clock_void_after_ms %u is less than 1000: the daemon could not "
			       "keep the clock alive",
			       c->clock_void_after_ms);
	if (c->send_limit_ms > 0 &&
	    (c->send_limit_ms < BL_SEND_LIMIT_MIN_MS || c->send_limit_ms > BL_SEND_LIMIT_MAX_MS))
		return bl_fail(err, EINVAL, "send_limit_ms %d: 0 (no limit), or %d to %d",
			       c->send_limit_ms, BL_SEND_LIMIT_MIN_MS, BL_SEND_LIMIT_MAX_MS);
	if (c->process_limit_ms < BL_PROCESS_LIMIT_MIN_MS)
		return bl_fail(err, EINVAL,
			       "process_limit_ms %u is less than %d: a process that the machine "
			       "leaves waiting for a moment would be expelled",
			       c->process_limit_ms, BL_PROCESS_LIMIT_MIN_MS);
	return 0;
}
