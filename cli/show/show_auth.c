// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show auth: which links are authenticated, under which epochs, and the last refusal. */
#include <string.h>

#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/read.h"
#include "maps/auth_abi.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/* Returns how a link is treated, for people and JSON. */
static const char *how_text(const struct bl_auth_link *l)
{
	if (l->how == BL_AUTH_EXEMPT)
		return "exempt";
	if (!l->at[0].epoch && !l->at[1].epoch)
		return "off";
	return l->how == BL_AUTH_OFFERED ? "offered" : "required";
}

static json_t *age(uint64_t now, uint64_t then)
{
	return then && now ? json_integer((json_int_t)(now - then)) : json_null();
}

/* Returns the row of port @port, or NULL after a message. */
static json_t *auth_row(const struct bl_node_ref *ref, uint32_t port, const char *name,
			const struct bl_life *life)
{
	struct bl_auth_state s;
	struct bl_auth_link l;
	struct bl_clock clock;
	uint64_t now = node_now(ref, &clock);
	json_t *row;

	if (node_value(ref, BL_MAP_AUTH_LINKS, port, &l, sizeof(l)) ||
	    node_value(ref, BL_MAP_AUTH_STATES, port, &s, sizeof(s)))
		return NULL;
	row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:o, s:s, s:o}", "node",
			node_name(ref), "name", name, "mode", how_text(&l), "peer",
			(json_int_t)l.peer, "neighbour", (json_int_t)life->neighbour, "sends",
			(int)s.out, "receives", (int)s.in, "offered", (int)life->auth,
			"accepted_ago_ns", age(now, s.accepted_ns), "refused",
			s.refused ? reason_name(s.refused) : "", "refused_ago_ns",
			age(now, s.refused_ns));
	explicit_bzero(&l, sizeof(l));
	return row;
}

static int collect_auth(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_host_page page;
	struct bl_sw_port port;
	struct bl_life life;
	char nic[16];
	json_t *row;
	uint32_t p;

	if (ref->role == BL_ROLE_HOST) {
		if (node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
			return 1;
		node_nic(ref, nic, sizeof(nic));
		row = auth_row(ref, 0, nic, &page.life);
		return row ? json_array_append_new(rows, row) : 1;
	}
	for (p = 0; p < BL_SW_PORTS_MAX; p++) {
		if (node_value(ref, BL_MAP_SW_PORTS, p, &port, sizeof(port)))
			return 1;
		if (!port.ifindex)
			continue;
		if (node_value(ref, BL_MAP_SW_LIVES, p, &life, sizeof(life)))
			return 1;
		row = auth_row(ref, p, port.name, &life);
		if (!row)
			return 1;
		json_array_append_new(rows, row);
	}
	return 0;
}

int cmd_show_auth(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },
		{ "name", "PORT", 's' },
		{ "mode", "MODE", 's' },
		{ "peer", "PEER", 'd' },
		{ "sends", "SENDS", 'd' },
		{ "receives", "RECEIVES", 'd' },
		{ "accepted_ago_ns", "ACCEPTED_AGO", 't' },
		{ "refused", "REFUSED", 's' },
		{ "refused_ago_ns", "REFUSED_AGO", 't' },
	};

	return SHOW("barline show auth - which links are authenticated, and the last refusals\v"
		    "MODE: required, offered, exempt or off. PEER is the node to which the keys of "
		    "the port belong. SENDS and RECEIVES are the epochs of keys of the last frame "
		    "that was sent and of the last one that was accepted; 0: without a tag. "
		    "REFUSED is the reason for which the last refused frame was dropped; `barline "
		    "show drops` has the counts.",
		    "auth", collect_auth, cols, "no links");
}
