// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host role: XDP and egress programs on the NIC, and an egress program on lo for messages
 * between endpoints of the same host. Taking over a running host keeps every map, so its endpoints
 * continue.
 */
#include "loader/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/iface.h"
#include "base/log.h"
#include "loader/admission/admission.h"
#include "loader/admission/bl0.h"
#include "loader/admission/fastpass.h"
#include "loader/auth.h"
#include "loader/defaults.h"
#include "loader/link_watch.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/maps.h"
#include "loader/load/objects.h"
#include "loader/load/pin.h"
#include "loader/load/progs.h"
#include "loader/nic.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/fence.h"
#include "loader/order/keep.h"
#include "loader/order/link_check.h"
#include "loader/order/note.h"

#include "host.skel.h"

static int fill_fresh_maps(const struct bl_host *skel, struct bl_err *err)
{
	const struct bl_hints hints = { .next = BL_TIME_NONE, .next_c = BL_TIME_NONE };
	struct bl_host_page page = {};
	unsigned int k;
	int rc;

	/* The first beacon tells whether the other end of the link is a switch or a host. */
	for (k = 0; k < BL_LANES_MAX; k++)
		page.reg[k].hop = BL_HOP_UNKNOWN;
	rc = bl_map_set(bpf_map__fd(skel->maps.host_page), 0, &page, BL_MAP_HOST_PAGE, err);
	if (!rc)
		rc = bl_map_set(bpf_map__fd(skel->maps.hints), 0, &hints, BL_MAP_HINTS, err);
	return rc ? rc : bl_link_new(bpf_map__fd(skel->maps.link_seen), 0, err);
}

static int fill_host_cfg(struct bl_node *n, const struct bl_host *skel, struct bl_err *err)
{
	int fd = bpf_map__fd(skel->maps.host_cfg);
	struct bl_host_cfg old = {}, *c = &n->host_cfg;
	uint32_t zero = 0;

	if (!n->fresh && bpf_map_lookup_elem(fd, &zero, &old))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_HOST_CFG,
			       strerror(errno));
	if (old.neps > BL_EPS_MAX)
		return bl_fail(err, EPROTO,
			       "the map %s has %u endpoints, more than %d; detach the node and "
			       "start again",
			       BL_MAP_HOST_CFG, old.neps, BL_EPS_MAX);
	if (old.port_count && old.port_base != n->cfg.port_base)
		return bl_fail(err, EBUSY,
			       "the running host uses ports from %u on, the configuration says %u; "
			       "detach it to change that",
			       old.port_base, n->cfg.port_base);
	*c = (struct bl_host_cfg){
		.node_id = n->meta.node_id,
		.neps = old.neps,
		.port_base = n->cfg.port_base,
		.port_count = n->cfg.port_count,
		.tai_offset_s = n->clock.shared->tai_offset_s,
		.beacon_ns = n->cfg.beacon_us * 1000ULL,
		.dead_after_ns = n->cfg.dead_after_us * 1000ULL,
		.beacon_mark = BL_BEACON_MARK,
		.ahead_ns = bl_node_ahead_ns(&n->cfg),
		/* The NIC is as the daemon before left it. */
		.classed = old.classed,
		.steered = old.steered,
		.cpus = (uint32_t)libbpf_num_possible_cpus(),
	};
	return bl_map_set(fd, 0, c, BL_MAP_HOST_CFG, err);
}

static int keep_descriptors(struct bl_node *n, const struct bl_host *skel, struct bl_err *err)
{
	const struct {
		int *to;
		const struct bpf_map *map;
	} v[] = {
		{ &n->host_cfg_fd, skel->maps.host_cfg }, { &n->pages_fd, skel->maps.ep_pages },
		{ &n->hints_fd, skel->maps.hints },       { &n->eps_fd, skel->maps.eps },
		{ &n->rings_fd, skel->maps.rings },       { &n->page_fd, skel->maps.host_page },
		{ &n->failures_fd, skel->maps.failures },
	};
	unsigned int k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		/* bl_keep_early() has opened this map already. */
		if (*v[k].to >= 0)
			continue;
		*v[k].to = fcntl(bpf_map__fd(v[k].map), F_DUPFD_CLOEXEC, 3);
		if (*v[k].to < 0)
			return bl_fail(err, errno, "cannot keep the map %s: %s",
				       bpf_map__name(v[k].map), strerror(errno));
	}
	n->relayed_fd =
		fcntl(bl_progs_fd(&n->progs, skel->progs.bl_host_relayed), F_DUPFD_CLOEXEC, 3);
	n->xdp_prog = fcntl(bl_progs_fd(&n->progs, skel->progs.bl_host_xdp), F_DUPFD_CLOEXEC, 3);
	n->tc_prog = fcntl(bl_progs_fd(&n->progs, skel->progs.bl_host_egress), F_DUPFD_CLOEXEC, 3);
	n->local_prog =
		fcntl(bl_progs_fd(&n->progs, skel->progs.bl_host_local), F_DUPFD_CLOEXEC, 3);
	n->queue_prog =
		fcntl(bl_progs_fd(&n->progs, skel->progs.bl_host_queue), F_DUPFD_CLOEXEC, 3);
	if (n->relayed_fd < 0 || n->xdp_prog < 0 || n->tc_prog < 0 || n->queue_prog < 0 ||
	    n->local_prog < 0)
		return bl_fail(err, errno, "cannot keep the programs: %s", strerror(errno));
	return 0;
}

static int attach_programs(struct bl_node *n, const struct bl_node_cfg *cfg,
			   const struct bl_iface *nic, const struct bl_host *skel,
			   struct bl_err *err)
{
	const struct bl_chain_at chain = { .dir = n->dir,
					   .role = BL_ROLE_HOST,
					   .hooks_fd = bpf_map__fd(skel->maps.hooks),
					   .progs_fd = bpf_map__fd(skel->maps.next_progs),
					   .iface = nic,
					   .frags = bl_node_frags(cfg, n->frags) };
	int rc;

	if (!n->att)
		n->att = calloc(2, sizeof(*n->att));
	if (!n->att)
		return bl_fail(err, ENOMEM, "out of memory");
	n->att[0].iface = *nic;
	n->att[0].dispatcher = cfg->dispatcher;
	n->att[0].port = n->att[1].port = -1;
	n->att[0].home_cpu = n->att[1].home_cpu = -1;
	rc = bl_iface_up("lo", err);
	if (!rc)
		rc = bl_iface_get(&n->att[1].iface, "lo", err);
	if (!rc)
		rc = bl_nic_before(n, &n->att[0], err);
	if (!rc)
		rc = bl_nic_before(n, &n->att[1], err);
	/*
	 * The egress program comes first: from the first barrier that comes in on, every frame that
	 * leaves needs a barrier.
	 */
	if (!rc)
		rc = bl_attach_tc(&n->att[1], n->dir, false,
				  bl_progs_fd(&n->progs, skel->progs.bl_host_local), err);
	if (!rc)
		rc = bl_attach_tc(&n->att[0], n->dir, false,
				  bl_progs_fd(&n->progs, skel->progs.bl_host_egress), err);
	if (!rc)
		rc = bl_chain_set(&chain, cfg->chain, err);
	if (!rc)
		rc = bl_attach_xdp(&n->att[0], n->dir, "xdp",
				   bl_progs_fd(&n->progs, skel->progs.bl_host_xdp), cfg->mode,
				   cfg->replace, err);
	/* No endpoint and no beacon sends before the NIC is a FIFO. */
	if (!rc)
		rc = bl_nic_after(n, &n->att[0], err);
	if (!rc)
		rc = bl_nic_after(n, &n->att[1], err);
	if (!rc)
		n->natt = 2;
	return rc;
}

/* Opens bl0 and the pacer, or removes bl0 if the configuration has no admission any more. */
static int open_admission(struct bl_node *n, const struct bl_host *skel, struct bl_err *err)
{
	int rc;

	if (!n->cfg.admission.on) {
		if (!n->fresh && bpf_object__find_map_by_name(skel->obj, BL_MAP_HOLD_CFG))
			bl_admission_host_on(n, skel->obj, NULL, 0, 0, NULL);
		return n->fresh ? 0 : bl_bl0_remove(n->dir, err);
	}
	rc = bl_bl0_open(n, skel->obj, err);
	if (!rc)
		rc = bl_beacon_pace(n, skel->obj, err);
	if (!rc)
		rc = bl_admission_pace(n, skel->obj, "bl_host_pace", BL_MAP_HOLD_DUE, 1, err);
	if (!rc && n->cfg.admission.fp)
		rc = bl_fastpass_add(n, skel->obj, n->cfg.admission.fp, err);
	return rc;
}

/* Stops bl_links_each() with -EBUSY if the pins belong to another NIC than *@ctx. */
static int is_other_nic(const char *path, const char *name, int link_fd, uint32_t ifindex,
			void *ctx)
{
	(void)path, (void)link_fd;
	return !strncmp(name, "xdp-", 4) && ifindex && ifindex != *(uint32_t *)ctx ? -EBUSY : 0;
}

/*
 * Without admission the programs of bl0 and of the pacer are not needed, and verifying them takes
 * more than half of the time of a load.
 */
static void skip_admission_programs(const struct bl_host *skel)
{
	struct bpf_program *const of_bl0[] = { skel->progs.bl_hold_xdp, skel->progs.bl_host_pace,
					       skel->progs.bl_host_clone, skel->progs.bl_host_hint,
					       skel->progs.bl_host_lift };
	unsigned int k;

	for (k = 0; k < sizeof(of_bl0) / sizeof(of_bl0[0]); k++)
		bpf_program__set_autoload(of_bl0[k], false);
}

int bl_host_open(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err)
{
	const char *anew[BL_ADMISSION_MAPS + BL_CHAIN_ANEW + 1] = {};
	struct bl_auth_port port = { .ifname = cfg->ifname,
				     .how = cfg->auth.mode == BL_AUTH_OFFER ? BL_AUTH_OFFERED
									    : BL_AUTH_REQUIRED };
	struct bl_host *skel;
	struct bl_iface nic;
	uint32_t ifindex;
	int rc;

	rc = bl_iface_get(&nic, cfg->ifname, err);
	if (!rc)
		rc = bl_node_iface_check(cfg, &nic, err);
	if (rc)
		return rc;
	n->frags = nic.mtu > BL_XDP_MTU_MAX;
	ifindex = (uint32_t)nic.ifindex;
	if (!n->fresh && bl_links_each(n->dir, is_other_nic, &ifindex))
		return bl_fail(err, EBUSY,
			       "the host of this network namespace runs on another interface than "
			       "%s (see %s/links); detach it first",
			       nic.name, n->dir);
	if (!nic.up)
		bl_log(BL_LOG_WARN, "%s is down; `ip link set %s up`", nic.name, nic.name);
	skel = bl_host_object(bl_node_plain(cfg));
	if (!skel)
		return bl_fail(err, errno, "cannot open the host programs: %s", strerror(errno));
	skel->rodata->bl_admits = cfg->admission.on;
	skel->rodata->bl_auth = (__u8)cfg->auth.mode;
	skel->rodata->bl_chains = bl_node_chains(cfg);
	skel->rodata->bl_frags = n->frags;
	if (!cfg->admission.on)
		skip_admission_programs(skel);
	if (bl_node_frags(cfg, n->frags) == BL_HOOK_FRAGS_FLAG) {
		bl_xdp_set_frags(skel->progs.bl_host_xdp);
		bl_xdp_set_frags(skel->progs.bl_host_relayed);
	}
	if (cfg->dispatcher)
		bl_xdp_set_member(skel->progs.bl_host_xdp);
	bl_chain_anew(n->dir, BL_ROLE_HOST, bl_node_frags(cfg, n->frags), anew);
	rc = bl_admission_size(n, cfg, skel->obj, 0, anew, err);
	if (!rc && !n->fresh)
		rc = bl_maps_reuse(skel->obj, n->dir, anew, err);
	if (rc)
		goto out;
	rc = bl_progs_load(&n->progs, skel->skeleton, n->dir, "host", err);
	if (rc)
		goto out;
	rc = bl_map_set(bpf_map__fd(skel->maps.meta), 0, &n->meta, BL_MAP_META, err);
	if (!rc && n->note_fd < 0) {
		n->note_fd = bl_note_open(bpf_map__fd(skel->maps.clock),
					  bpf_map__fd(skel->maps.host_page),
					  bpf_map__fd(skel->maps.failures), err);
		rc = n->note_fd < 0 ? n->note_fd : 0;
	}
	if (!rc)
		rc = bl_keep_clock(n, bpf_map__fd(skel->maps.clock), err);
	if (!rc && n->fresh)
		rc = fill_fresh_maps(skel, err);
	/* From here on processes cannot write what all share and what decides about all. */
	if (!rc)
		rc = bl_note_freeze(bpf_map__fd(skel->maps.host_page), BL_MAP_HOST_PAGE, err);
	if (!rc)
		rc = bl_note_freeze(bpf_map__fd(skel->maps.clock), BL_MAP_CLOCK, err);
	if (!rc)
		rc = bl_note_freeze(bpf_map__fd(skel->maps.failures), BL_MAP_FAILURES, err);
	if (!rc)
		rc = fill_host_cfg(n, skel, err);
	if (!rc)
		rc = bl_auth_fill(n, skel->obj, &port, 1, err);
	if (!rc)
		rc = keep_descriptors(n, skel, err);
	if (!rc)
		rc = bl_fence_open(&n->fence, skel->obj,
				   bl_progs_fd(&n->progs, skel->progs.bl_fence), err);
	if (!rc)
		rc = bl_admission_fill(n, cfg, skel->obj, NULL, err);
	if (!rc && n->fresh)
		rc = bl_maps_pin(skel->obj, n->dir, err);
	if (!rc)
		rc = attach_programs(n, cfg, &nic, skel, err);
	/*
	 * After a takeover, the pins name the new maps once the programs use them. The kernel
	 * empties a map of programs that has no pin any more.
	 */
	if (!rc && !n->fresh)
		rc = bl_maps_pin(skel->obj, n->dir, err);
	if (!rc)
		rc = bl_auth_forget(n, skel->obj, err);
	if (!rc)
		rc = open_admission(n, skel, err);
	if (!rc)
		rc = bl_links_watch(n, err);
	if (!rc)
		rc = bl_nic_watch(n, err);
	if (!rc)
		rc = bl_link_check(n, skel->obj, err);
	if (!rc)
		bl_progs_pin(&n->progs, n->dir, n->meta.name);
out:
	bl_progs_end(&n->progs);
	bl_host__destroy(skel);
	return rc;
}
