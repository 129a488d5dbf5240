// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The policy top: its entry in the table. Hosts are in top_host.c, switches in top_switch.c. */
#include "loader/admission/policy.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"

/* A flow keeps to the path of its hash, or its frames take the paths in turn. */
static void choose_paths(const struct bl_admission_cfg *a, struct bl_sw_cfg *sw)
{
	sw->paths = sw->path_ports;
	sw->path_by = a->spray ? BL_PATH_BY_TURN : BL_PATH_BY_FLOW;
}

static void host_defaults(struct bl_admission_cfg *a)
{
	bl_top_defaults(&a->top);
}

const struct bl_policy_ops bl_policy_top = {
	.host = { .defaults = host_defaults,
		  .check = bl_top_host_check,
		  .fill = bl_top_host_fill,
		  .change = bl_top_host_change,
		  .show = bl_top_host_show },
	.sw = { .check = bl_top_switch_check,
		.fill = bl_top_switch_fill,
		.change = bl_top_switch_change,
		.show = bl_top_switch_show },
	.paths = choose_paths,
	.frame_room = sizeof(struct bl_top_echo),
	.by_tokens = true,
};
