// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints of before this daemon's start: they have no connection to it.
 *
 * Whose process ended while no daemon ran is taken down when the agent is there, which has to say how it went. One that
 * leaves by bl_exit() and lives on can only be found by looking at its line.
 */
#include "endpoint_pages.h"

#define LOOK_US 100000

static bool unconnected(const struct bl_ep *ep)
{
	return ep->used && !ep->left && ep->conn < 0;
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx);

static void look_again(struct bl_node *n)
{
	unsigned int k;

	n->again_src = sd_event_source_disable_unref(n->again_src);
	for (k = 0; k < BL_EPS_MAX && !unconnected(&n->ep[k]); k++)
		;
	if (k < BL_EPS_MAX)
		sd_event_add_time_relative(n->srv->ev, &n->again_src, CLOCK_MONOTONIC, LOOK_US, 1000, on_look, n);
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node *n = ctx;
	unsigned int k;

	(void)src, (void)usec;
	for (k = 0; k < BL_EPS_MAX; k++)
		if (unconnected(&n->ep[k]) && bl_ep_bye(n, k))
			bl_endpoint_release(&n->ep[k], "it says so, and has no connection");
	look_again(n);
	return 0;
}

void bl_endpoints_adopted(struct bl_node *n)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].left)
			bl_endpoint_release(&n->ep[k], "its process ended while no daemon ran");
	look_again(n);
}
