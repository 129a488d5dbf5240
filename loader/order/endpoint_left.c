// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See endpoint_left.h. */
#include "loader/order/endpoint_left.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "loader/node_priv.h"
#include "loader/order/events.h"
#include "maps/failure_abi.h"

/*
 * Reads the entry of @port into @s. Returns whether the rack has not heard yet of an endpoint that
 * left it in order.
 */
static bool read_untold(struct bl_node *n, unsigned int port, struct bl_ep_slot *s)
{
	uint32_t key = port - n->host_cfg.port_base;

	return key < BL_PORT_COUNT && !bpf_map_lookup_elem(n->eps_fd, &key, s) &&
	       s->active == BL_EP_FREE && s->left && s->start_time;
}

/* Writes T of the endpoint that left into the entry; 0: the rack has heard of it. */
static void write_left_entry(struct bl_node *n, unsigned int port, struct bl_ep_slot *s, uint64_t t)
{
	uint32_t key = port - n->host_cfg.port_base;

	s->start_time = t;
	if (bpf_map_update_elem(n->eps_fd, &key, s, BPF_ANY))
		bl_log(BL_LOG_ERR, "%s: cannot note that an endpoint left port %u: %s",
		       n->meta.name, port, strerror(errno));
}

void bl_endpoint_left(struct bl_node *n, uint16_t port, uint16_t life, uint64_t t)
{
	const struct bl_ep_slot who = { .port = port, .life = life };
	struct bl_ep_slot s;

	/* First the entry: the next daemon must report what the controller hears now. */
	if (read_untold(n, port, &s) && s.left == life)
		write_left_entry(n, port, &s, t);
	bl_event_endpoint_gone(n, &who, BL_WHY_LEFT, t);
	bl_event_changed(n);
}

void bl_endpoint_left_heard(struct bl_node *n, uint16_t port, uint16_t life)
{
	struct bl_ep_slot s;

	if (read_untold(n, port, &s) && s.left == life)
		write_left_entry(n, port, &s, 0);
}

void bl_endpoints_report_left(struct bl_node *n)
{
	struct bl_ep_slot s;
	unsigned int k;

	for (k = 0; n->events && n->cfg.ctl.n && k < BL_PORT_COUNT; k++) {
		uint16_t port = (uint16_t)(n->host_cfg.port_base + k);

		if (!read_untold(n, port, &s))
			continue;
		if (s.start_time == BL_EP_LEFT_NOW)
			s.start_time = bl_clock_at(n->clock.shared, bl_mono_ns());
		bl_log(BL_LOG_INFO,
		       "%s: endpoint %u left in order, and the rack may not have heard",
		       n->meta.name, port);
		bl_endpoint_left(n, port, s.left, s.start_time);
	}
}
