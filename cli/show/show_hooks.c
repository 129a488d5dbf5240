// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline show hooks: which other XDP programs run beside barline's, and whether barline's are in
 * their place.
 */
#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/hooks.h"
#include "cli/util/read.h"
#include "loader/load/entry.h"
#include "maps/hook_abi.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/*
 * Writes the members of the dispatcher that the interface @name is in: as text, in the order of
 * calls and with barline's as "barline", and as JSON. No members: its program is alone.
 */
static json_t *members(const struct bl_node_ref *ref, const char *name, char *text, size_t size)
{
	json_t *all = json_array();
	struct bl_dispatcher d;
	unsigned int k;
	size_t n = 0;

	*text = 0;
	if (bl_dispatcher_read(ref->dir, name, &d))
		return all;
	for (k = 0; k < d.n; k++) {
		const struct bl_member *m = &d.member[k];

		if (n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s (%u)", k ? ", " : "",
					      m->own ? "barline" : m->name, m->prio);
		json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:b}", "name", m->name, "id",
						     (json_int_t)m->id, "priority",
						     (json_int_t)m->prio, "own", m->own));
	}
	return all;
}

/** struct hooks - the records of all hooks of a node, and the rows that are made of them. */
struct hooks {
	struct bl_hook hook[BL_SW_PORTS_MAX]; /* by port */
	struct bl_hook_watch *watch;
	json_t *rows;
};

static void add_hook(const struct bl_node_ref *ref, uint32_t port, const char *name, void *ctx)
{
	const struct bl_hook_seen *xdp, *egress, *ingress;
	struct hooks *s = ctx;
	const struct bl_hook_watch *w = &s->watch[port];
	const struct bl_hook *h = &s->hook[port];
	char chained[48], back[48], order[320];
	json_t *row, *all;

	xdp = &w->side[BL_HOOK_XDP];
	egress = &w->side[BL_HOOK_EGRESS];
	ingress = &w->side[BL_HOOK_INGRESS];
	row = json_pack("{s:s, s:s, s:s, s:s, s:b}", "node", node_name(ref), "name", name,
			"chained", prog_text(h->next_id, chained, sizeof(chained)), "put_back",
			prog_text(h->back_id, back, sizeof(back)), "frags",
			h->frags != BL_HOOK_FRAGS_NONE);
	all = members(ref, name, order, sizeof(order));
	json_object_set_new(row, "dispatcher", json_string(order));
	json_object_set_new(row, "members", all);
	json_object_set_new(row, "xdp", json_string(hook_state_text(xdp->state)));
	json_object_set_new(row, "egress", json_string(hook_state_text(egress->state)));
	json_object_set_new(row, "ingress", json_string(hook_state_text(ingress->state)));
	json_object_set_new(row, "xdp_other", json_integer((json_int_t)xdp->other_id));
	json_object_set_new(row, "egress_other", json_integer((json_int_t)egress->other_id));
	json_object_set_new(
		row, "removed",
		json_integer((json_int_t)(xdp->removed + egress->removed + ingress->removed)));
	json_object_set_new(
		row, "repaired",
		json_integer((json_int_t)(xdp->repaired + egress->repaired + ingress->repaired)));
	json_array_append_new(s->rows, row);
}

static int collect_hooks(const struct bl_node_ref *ref, json_t *rows)
{
	struct hooks *s = calloc(1, sizeof(*s));
	struct bl_err err;
	int st = 0;

	if (s)
		s->watch = hook_watches(ref);
	if (!s || !s->watch) {
		st = cli_fail("out of memory");
	} else if (bl_map_read_all(ref, BL_MAP_HOOKS, sizeof(s->hook[0]), BL_SW_PORTS_MAX, s->hook,
				   &err)) {
		st = cli_fail("%s", err.text);
	} else {
		s->rows = rows;
		node_ports_each(ref, add_hook, s);
	}
	if (s)
		free(s->watch);
	free(s);
	return st;
}

int cmd_show_hooks(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },         { "name", "PORT", 's' },
		{ "chained", "CHAINED", 's' },   { "put_back", "PUT_BACK", 's' },
		{ "frags", "FRAGS", 'b' },       { "xdp", "XDP", 's' },
		{ "egress", "EGRESS", 's' },     { "removed", "REMOVED", 'n' },
		{ "repaired", "REPAIRED", 'n' }, { "dispatcher", "DISPATCHER", 's' },
	};

	return SHOW("barline show hooks - other XDP programs on the interfaces of nodes\v"
		    "CHAINED gets the frames that are not barline's. PUT_BACK was on the interface "
		    "before barline, and is attached again on detach. FRAGS: frames of several "
		    "buffers are handled, as an MTU above 3498 needs. XDP and EGRESS say what the "
		    "daemon has found on these hooks: own: barline's program; EMPTY: none; OTHER: "
		    "a program of somebody else, which barline does not replace; behind: another "
		    "program runs before barline's; followed: another one runs behind it and may "
		    "keep frames from the filter that picks the transmit queue; unknown: not "
		    "looked at. REMOVED counts how "
		    "often others have taken a program away, and REPAIRED how often the daemon "
		    "has attached it again. DISPATCHER has the programs in the dispatcher of "
		    "libxdp that barline's has joined, in the order of their calls, with their "
		    "priorities; it is empty where barline's program is on the interface by "
		    "itself.",
		    "hooks", collect_hooks, cols, "no hooks");
}
