// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See health.h. */
#include "cli/metrics/health.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/show/show.h"
#include "core/clock_core.h"
#include "maps/host_abi.h"

#define DAEMON_NS 3000000000ULL /* a daemon measures the clock four times per second */

static bool live(const struct bl_reg *r)
{
	return (r->state & 0xff) == BL_REG_LIVE;
}

static bool host_has_input(const struct bl_node_ref *ref, struct bl_err *err)
{
	struct bl_host_page page;

	return !bl_map_read_all(ref, BL_MAP_HOST_PAGE, sizeof(page), 1, &page, err) &&
	       live(&page.reg[0]);
}

static bool switch_has_input(const struct bl_node_ref *ref, struct bl_err *err)
{
	struct bl_port_regs regs[BL_SW_PORTS_MAX];
	struct bl_sw_cfg cfg;
	uint32_t k;

	if (bl_map_read_all(ref, BL_MAP_SW_CFG, sizeof(cfg), 1, &cfg, err) ||
	    cfg.nports > BL_SW_PORTS_MAX ||
	    bl_map_read_all(ref, BL_MAP_SW_REGS, sizeof(regs[0]), cfg.nports, regs, err))
		return false;
	for (k = 0; k < cfg.nports; k++)
		if (live(&regs[k].lane[0]))
			return true;
	return false;
}

/* Returns what is wrong with a node; NULL: nothing. */
static const char *trouble(const struct bl_node_ref *ref, bool ready, struct bl_err *err)
{
	struct bl_clock clock;
	uint64_t mono;

	err->text[0] = '\0';
	if (bl_map_read_all(ref, BL_MAP_CLOCK, sizeof(clock), 1, &clock, err))
		return err->text;
	mono = bl_mono_ns();
	if (!clock.as_of_ns || mono - clock.as_of_ns >= DAEMON_NS)
		return "its daemon does not renew the clock; is it stopped?";
	if (!bl_clock_usable(&clock, mono))
		return "its clock is void; see barline show clock";
	if (ready &&
	    !(ref->role == BL_ROLE_HOST ? host_has_input(ref, err) : switch_has_input(ref, err)))
		return *err->text ? err->text : "no neighbour is heard; see barline show barriers";
	return NULL;
}

bool metrics_health(bool ready, char *text, size_t size)
{
	struct bl_text t = { .buf = text, .size = size };
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i;
	bool well = n > 0;

	*text = '\0';
	if (n < 0)
		bl_text_add(&t, "%s\n", err.text);
	else if (!n)
		bl_text_add(&t, "no barline node in this network namespace\n");
	for (i = 0; i < n; i++) {
		const char *why = trouble(&refs[i], ready, &err);

		bl_text_add(&t, "%s: %s\n", node_name(&refs[i]), why ? why : "ok");
		well &= !why;
	}
	free(refs);
	return well;
}
