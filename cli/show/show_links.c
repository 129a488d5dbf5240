// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show links: frames that were lost or overtaken, and the clocks behind each link. */
#include <bpf/bpf.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/order/link_core.h"
#include "core/order/skew_core.h"
#include "maps/host_abi.h"

#define STALE_NS 5000000000ULL /* without a daemon, nobody judges */

static const char *const verdicts[BL_VERDICT_COUNT] = { [BL_VERDICT_NONE] = "unknown",
							[BL_VERDICT_GOOD] = "good",
							[BL_VERDICT_OFF] = "off",
							[BL_VERDICT_SELF] = "self",
							[BL_VERDICT_EITHER] = "either" };

/* A time that may be unknown. */
static json_t *ns_or_null(int64_t ns)
{
	return ns >= BL_SKEW_MAX || ns <= -BL_SKEW_MAX ? json_null() : json_integer(ns);
}

static void add_row(json_t *rows, const struct bl_node_ref *ref, const char *name, int lane,
		    const struct bl_link *l, const struct bl_link_view *v, uint64_t received)
{
	const struct bl_link_lane *k = &l->lane[lane];
	bool judged = v->written_ns && bl_mono_ns() - v->written_ns < STALE_NS &&
		      v->verdict < BL_VERDICT_COUNT;
	json_t *row = json_pack("{s:s, s:s, s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "node",
				node_name(ref), "name", name, "neighbour", (json_int_t)l->node,
				"lane", lane, "received", (json_int_t)received, "lost",
				(json_int_t)bl_link_lost(k), "overtaken", (json_int_t)k->overtaken,
				"worst", (json_int_t)k->worst, "raced", (json_int_t)k->raced,
				"theirs", (json_int_t)l->theirs);

	json_object_set_new(row, "in_ns", judged ? ns_or_null(v->in_ns) : json_null());
	json_object_set_new(row, "out_ns", judged ? ns_or_null(v->out_ns) : json_null());
	json_object_set_new(row, "low_ns", judged ? ns_or_null(v->low_ns) : json_null());
	json_object_set_new(row, "high_ns", judged ? ns_or_null(v->high_ns) : json_null());
	json_object_set_new(row, "bounds_ns",
			    judged ? json_integer((json_int_t)v->bounds_ns) : json_null());
	json_object_set_new(row, "off_ns", judged ? json_integer(v->off_ns) : json_null());
	json_object_set_new(row, "clock",
			    json_string(verdicts[judged ? v->verdict : BL_VERDICT_NONE]));
	json_object_set_new(row, "clock_since_s",
			    judged && v->since_s ? json_integer((json_int_t)v->since_s)
						 : json_null());
	json_object_set_new(row, "overtaken_at_s",
			    v->broken_s ? json_integer((json_int_t)v->broken_s) : json_null());
	json_array_append_new(rows, row);
}

/* Adds the lanes of one port: those that beacons have counted, or the first one. */
static int add_port(const struct bl_node_ref *ref, json_t *rows, uint32_t port, const char *name,
		    const struct bl_reg *regs)
{
	struct bl_link_view v;
	struct bl_link l;
	int k;

	if (node_value(ref, BL_MAP_LINK_SEEN, port, &l, sizeof(l)) ||
	    node_value(ref, BL_MAP_LINK_VIEWS, port, &v, sizeof(v)))
		return 1;
	for (k = 0; k < BL_LANES_MAX; k++)
		if (!k || l.lane[k].run)
			add_row(rows, ref, name, k, &l, &v, regs[k].frames);
	return 0;
}

static int collect_links(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_host_page page;
	struct bl_port_regs regs;
	struct bl_sw_port p;
	char nic[16];
	uint32_t k;

	if (ref->role == BL_ROLE_HOST) {
		node_nic(ref, nic, sizeof(nic));
		return node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)) ||
		       add_port(ref, rows, 0, nic, page.reg);
	}
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (node_value(ref, BL_MAP_SW_PORTS, k, &p, sizeof(p)))
			return 1;
		if (!p.ifindex)
			continue;
		p.name[sizeof(p.name) - 1] = '\0';
		if (node_value(ref, BL_MAP_SW_REGS, k, &regs, sizeof(regs)) ||
		    add_port(ref, rows, k, p.name, regs.lane))
			return 1;
	}
	return 0;
}

int cmd_show_links(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },           { "name", "NAME", 's' },
		{ "neighbour", "PEER", 'd' },      { "lane", "LANE", 'd' },
		{ "received", "FRAMES", 'n' },     { "lost", "LOST", 'n' },
		{ "overtaken", "OVERTAKEN", 'n' }, { "worst", "WORST", 'd' },
		{ "theirs", "THEIRS", 'd' },       { "in_ns", "IN", 't' },
		{ "out_ns", "OUT", 't' },          { "low_ns", "FROM", 't' },
		{ "high_ns", "TO", 't' },          { "bounds_ns", "BOUNDS", 't' },
		{ "clock", "CLOCK", 's' }
	};

	return SHOW("barline show links - lost and overtaken frames, and the clocks, by link\v"
		    "FRAMES came from the neighbour (PEER is its node id). LOST never came. "
		    "OVERTAKEN came after a beacon that had counted them: the link is no FIFO. "
		    "WORST: most of them from one beacon to the next. THEIRS: what the neighbour "
		    "counted of this node's frames. IN and OUT are the least delays of beacons "
		    "from "
		    "and to the neighbour, by the clocks of both; the neighbour's clock less this "
		    "node's lies between FROM and TO. If they drift apart, FROM is greater than "
		    "TO; "
		    "each was true at some moment of the last seconds. CLOCK: good, off (further "
		    "from this node's than BOUNDS, what both clocks may be off), self (the same, "
		    "and it is this node's own that is wrong), either (the same, and it is not "
		    "known which of the two is wrong), or unknown.",
		    "links", collect_links, cols, "no links");
}
