/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The admission policy of a host. BPF side only. */
#ifndef BARLINE_HOST_POLICY_H
#define BARLINE_HOST_POLICY_H

#include "bpf/host/role.h"
#include "maps/fastpass_maps.h"
#include "core/policy_core.h"
#include "bpf/bpf_util.h"

/* How bl0's traffic is admitted, for beacons; 0: there is no bl0. */
static __always_inline __u8 bl_own_policy(void)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);

	return cfg && cfg->on ? bl_policy_say(cfg->policy) : 0;
}

/*
 * The policy that frames go by. TOP beside a switch without it falls back to none until they agree:
 * hosts behind that switch are likely to have no TOP either, and flows would wait for tokens that
 * nobody gives. PL2 finds out by its RSVs (pl2_core.h). Fastpass needs no switch, and falls back
 * when the daemon says that no arbiter answers.
 */
static __always_inline __u32 bl_policy_now(const struct bl_hold_cfg *cfg)
{
	const struct bl_host_page *page;
	const struct bl_fp_page *fp;
	__u32 zero = 0;

	if (cfg->policy == BL_POLICY_FASTPASS) {
		fp = bpf_map_lookup_elem(&fp_page, &zero);
		return fp && BL_READ_ONCE(fp->fallback) ? BL_POLICY_NONE : BL_POLICY_FASTPASS;
	}
	if (cfg->policy != BL_POLICY_TOP)
		return cfg->policy;
	page = bpf_map_lookup_elem(&host_page, &zero);
	if (page && bl_policy_apart(bl_policy_say(BL_POLICY_TOP), BL_READ_ONCE(page->life.policy)))
		return BL_POLICY_NONE;
	return BL_POLICY_TOP;
}

#endif
