/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The admission policy of a host: what its beacons announce, and which policy frames are treated
 * by. BPF side only.
 *
 * Example: the host is configured for TOP. The switch's last beacon says PL2: bl_policy_now()
 * returns BL_POLICY_NONE until a beacon says TOP again, while bl_own_policy() announces TOP all the
 * time.
 *
 * Not here: what a policy does (hold.h, pl2.h, fastpass.h, top.h).
 */
#ifndef BARLINE_HOST_POLICY_H
#define BARLINE_HOST_POLICY_H

#include "bpf/host/role.h"
#include "maps/fastpass_maps.h"
#include "core/policy_core.h"
#include "bpf/bpf_util.h"

/* Returns how bl0's traffic is admitted, as beacons carry it; 0 if there is no bl0. */
static __always_inline __u8 bl_own_policy(void)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);

	return cfg && cfg->on ? bl_policy_say(cfg->policy) : 0;
}

/*
 * Returns the policy that frames are treated by at this moment.
 *
 * TOP falls back to none while the switch announces another policy: the hosts behind such a switch
 * are likely to have no TOP either, and flows would wait for tokens that no receiver sends.
 * Fastpass needs no switch; it falls back when the daemon reports that no arbiter answers. PL2
 * learns from the answers to its RSVs (core/pl2/pl2_core.h).
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
