// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hosts write the TAI offset of their configuration into their beacons, and programs refuse beacons
 * with another one than that in theirs. Time daemons set the kernel's offset when they have heard
 * from a server, which at boot is later than the start of barlined. So the configuration follows
 * the clock record: a rack that kept the 0 of its start would refuse the first node that is started
 * again and says 37.
 *
 * Machines do not change at the same moment, and their neighbours refuse them meanwhile. Bus time
 * does not follow a change at once either (clock.c).
 *
 * The value of a switch is read anew each time, because commands write it, too, for TOP's paths
 * (loader/admission/top_switch.c). If the two meet, the next call puts it right.
 */
#include "loader/order/tai.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/core.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/* Returns 1 if the configuration of the node had another offset, which is written to @was. */
static int tell_programs(struct bl_node *n, int32_t tai, int32_t *was, struct bl_err *err)
{
	uint32_t zero = 0;
	struct bl_sw_cfg sw;
	int rc;

	if (n->cfg.role == BL_ROLE_HOST) {
		*was = n->host_cfg.tai_offset_s;
		if (*was == tai)
			return 0;
		n->host_cfg.tai_offset_s = tai;
		rc = bl_map_set(n->host_cfg_fd, 0, &n->host_cfg, BL_MAP_HOST_CFG, err);
		if (rc)
			n->host_cfg.tai_offset_s = *was;
		return rc ? rc : 1;
	}
	if (bpf_map_lookup_elem(n->fence.cfg, &zero, &sw))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_SW_CFG,
			       strerror(errno));
	*was = sw.tai_offset_s;
	if (*was == tai)
		return 0;
	sw.tai_offset_s = tai;
	rc = bl_map_set(n->fence.cfg, 0, &sw, BL_MAP_SW_CFG, err);
	return rc ? rc : 1;
}

void bl_tai_follow(struct bl_node *n)
{
	int32_t tai = BL_READ_ONCE(n->clock.shared->tai_offset_s), was = 0;
	struct bl_err err;
	int rc = tell_programs(n, tai, &was, &err);

	if (rc > 0)
		bl_log(BL_LOG_INFO,
		       "%s: the TAI offset is %d s and no longer %d s: neighbours with another one "
		       "are refused (tai_mismatch)",
		       n->meta.name, tai, was);
	if (rc < 0)
		bl_log(BL_LOG_ERR, "%s: %s", n->meta.name, err.text);
}
