// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See node_events.h. */
#include "loader/node_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/event.h"
#include "base/time.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/fence.h"

#define SAY_NS 1000000000ULL /* an input that comes and goes is reported once in so long */

/** struct bl_inputs_said - what was reported of each input. */
struct bl_inputs_said {
	struct {
		uint64_t at_ns; /* CLOCK_MONOTONIC of the report; 0: none yet */
		bool live;
	} port[BL_SW_PORTS_MAX];
};

static void events_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 "-events.jsonl", BL_RUN_DIR, bl_role_name(role), ino);
}

/* Opens the node's file for events that name it @name. */
static void open_file(const struct bl_node *n, const char *name)
{
	char path[128];
	int rc;

	events_path(path, sizeof(path), n->cfg.role, n->netns_ino);
	rc = bl_event_file_open(name, bl_role_name(n->cfg.role), path);
	if (rc == -EACCES && !unlink(path)) /* that of a daemon of another user */
		rc = bl_event_file_open(name, bl_role_name(n->cfg.role), path);
	if (rc)
		bl_log(BL_LOG_WARN,
		       "%s: cannot write %s: %s; `barline events` will not show what "
		       "happens",
		       name, path, strerror(-rc));
}

void bl_node_events_open(struct bl_node *n)
{
	open_file(n, n->meta.name);
	n->inputs_said = calloc(1, sizeof(*n->inputs_said));
}

void bl_node_events_rename(struct bl_node *n, const char *name)
{
	char old[sizeof(n->meta.name)];

	/* Another thread may report something of the old name until now. */
	memcpy(old, n->meta.name, sizeof(old));
	open_file(n, name);
	snprintf(n->meta.name, sizeof(n->meta.name), "%s", name);
	bl_event_file_close(old, bl_role_name(n->cfg.role));
}

void bl_node_events_close(struct bl_node *n)
{
	bl_event_file_close(n->meta.name, bl_role_name(n->cfg.role));
	free(n->inputs_said);
	n->inputs_said = NULL;
}

void bl_node_events_started(const struct bl_node *n, bool generic)
{
	bl_event(&(struct bl_event){ .kind = n->fresh ? BL_EVENT_DAEMON_STARTED
						      : BL_EVENT_DAEMON_TAKEN_OVER,
				     .level = BL_LOG_INFO,
				     .node = n->meta.name,
				     .pid = (uint64_t)getpid() },
		 "%s %s %s: %s XDP, pins in %s", bl_role_name(n->cfg.role), n->meta.name,
		 n->fresh ? "started" : "taken over", generic ? "generic" : "native", n->dir);
}

void bl_node_events_stopped(const struct bl_node *n, const char *reason)
{
	bl_event(BL_EVENT(DAEMON_STOPPED, INFO, n->meta.name, .pid = (uint64_t)getpid(),
			  .reason = reason),
		 "%s: the daemon stops", n->meta.name);
}

void bl_node_events_forget(enum bl_role role, uint64_t ino)
{
	char path[128], old[130];

	events_path(path, sizeof(path), role, ino);
	snprintf(old, sizeof(old), "%s.1", path);
	unlink(path);
	unlink(old);
}

const char *bl_node_port_name(const struct bl_node *n, uint32_t port)
{
	unsigned int k;

	for (k = 0; k < n->natt; k++)
		if (n->cfg.role == BL_ROLE_HOST || n->att[k].port == (int)port)
			return n->att[k].iface.name;
	return "?";
}

void bl_node_events_inputs(struct bl_node *n, const struct bl_fence_port *in, int count)
{
	uint64_t now = bl_mono_ns();
	int i;

	for (i = 0; i < count && n->inputs_said; i++) {
		const char *name = bl_node_port_name(n, in[i].port);

		if (in[i].port >= BL_SW_PORTS_MAX ||
		    n->inputs_said->port[in[i].port].live == in[i].live ||
		    now - n->inputs_said->port[in[i].port].at_ns < SAY_NS)
			continue;
		n->inputs_said->port[in[i].port].live = in[i].live;
		n->inputs_said->port[in[i].port].at_ns = now;
		if (in[i].live)
			bl_event(BL_EVENT(NEIGHBOUR_JOINED, INFO, n->meta.name, .iface = name,
					  .peer = in[i].neighbour),
				 "%s: the neighbour on %s (node %u) has joined", n->meta.name, name,
				 in[i].neighbour);
		else
			bl_event(BL_EVENT(NEIGHBOUR_EXCLUDED, WARN, n->meta.name, .iface = name,
					  .peer = in[i].neighbour),
				 "%s: the neighbour on %s (node %u) is excluded: it is silent, or "
				 "its "
				 "barrier lags",
				 n->meta.name, name, in[i].neighbour);
	}
}
