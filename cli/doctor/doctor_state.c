// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The network around a node in one word. */
#include "base/netns.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "loader/node.h"

static void keep_worst(void *ctx, const struct finding *f)
{
	enum finding_level *worst = ctx;

	if (f->level > *worst)
		*worst = f->level;
}

const char *network_state(const struct bl_node_ref *ref)
{
	enum finding_level worst = FOUND_OK;
	const struct finder to = { .fn = keep_worst, .ctx = &worst };

	if (ref->netns_ino != bl_netns_ino())
		return "-";
	doctor_net(&to, ref);
	return finding_level_name(worst);
}
