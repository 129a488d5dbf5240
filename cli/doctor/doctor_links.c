// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's findings on links: no FIFO, loss, and clocks that are not within their bounds. */
#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/read.h"
#include "core/order/link_core.h"
#include "maps/host_abi.h"

#define STALE_NS 5000000000ULL

/* Reports the clock behind the link. Returns whether it is good, as far as is known. */
static bool check_clock(const struct finder *to, const char *what, const struct bl_link *l,
			const struct bl_link_view *v)
{
	const char *way = v->off_ns > 0 ? "ahead of" : "behind";
	unsigned long long by = (unsigned long long)(v->off_ns < 0 ? -v->off_ns : v->off_ns) / 1000;

	if (!v->written_ns || bl_mono_ns() - v->written_ns > STALE_NS ||
	    (v->verdict != BL_VERDICT_OFF && v->verdict != BL_VERDICT_SELF &&
	     v->verdict != BL_VERDICT_EITHER))
		return true;
	if (v->verdict == BL_VERDICT_SELF)
		found(to, FOUND_FAIL, what,
		      "check what disciplines the clock of this machine (ptp4l, phc2sys, chrony)",
		      "this node's clock is wrong: that of node %u is at least %llu us %s it "
		      "beyond the bounds of both, and most neighbours agree",
		      l->node, by, way);
	else if (v->verdict == BL_VERDICT_OFF)
		found(to, FOUND_FAIL, what,
		      "check what disciplines the clock of that machine (ptp4l, phc2sys, chrony)",
		      "the clock of node %u is wrong: it is at least %llu us %s this node's beyond "
		      "the bounds of both, and most neighbours agree",
		      l->node, by, way);
	else
		found(to, FOUND_FAIL, what,
		      "see `barline show links` of that node, which may have more neighbours, and "
		      "check what disciplines the two clocks (ptp4l, phc2sys, chrony)",
		      "the clock of node %u is at least %llu us %s this node's beyond the bounds "
		      "of both: one of the two is wrong",
		      l->node, by, way);
	return false;
}

static void check_port(const struct bl_node_ref *ref, uint32_t port, const char *name, void *ctx)
{
	const struct finder *to = ctx;
	uint64_t lost = 0, overtaken = 0;
	struct bl_link_view v;
	struct bl_link l;
	char what[40];
	uint32_t worst = 0, k;
	bool good;

	if (node_value(ref, BL_MAP_LINK_SEEN, port, &l, sizeof(l)) ||
	    node_value(ref, BL_MAP_LINK_VIEWS, port, &v, sizeof(v)))
		return;
	snprintf(what, sizeof(what), "%.20s %.15s", ref->meta.name, name);
	if (!l.heard_ns) {
		found(to, FOUND_WARN, what,
		      "check that the cable is in, that barlined runs at its other end, and that "
		      "both are of the same version",
		      "no beacon says what this link does: nothing was heard from a neighbour");
		return;
	}
	for (k = 0; k < BL_LANES_MAX; k++) {
		lost += bl_link_lost(&l.lane[k]);
		overtaken += l.lane[k].overtaken;
		worst = l.lane[k].worst > worst ? l.lane[k].worst : worst;
	}
	good = check_clock(to, what, &l, &v);
	if (overtaken)
		found(to, FOUND_FAIL, what,
		      "give ordered frames and beacons one queue at the other end (queueing "
		      "discipline, transmit queues), and one receive queue here",
		      "%" PRIu64 " frames of node %u were overtaken, up to %u at once: the link is "
		      "no FIFO",
		      overtaken, l.node, worst);
	if (l.theirs)
		found(to, FOUND_FAIL, what,
		      "give ordered frames and beacons one queue here (queueing discipline, "
		      "transmit queues), and one receive queue at the other end",
		      "node %u counted %u frames of this node as overtaken: the link is no FIFO",
		      l.node, l.theirs);
	if (lost)
		found(to, FOUND_WARN, what,
		      "look for drops of the NIC (`ethtool -S`), of the queue at the other end, "
		      "and "
		      "at the cable",
		      "%" PRIu64 " frames of node %u never came", lost, l.node);
	if (good && !overtaken && !l.theirs && !lost)
		found(to, FOUND_OK, what, "", "node %u: a FIFO, nothing lost, clocks agree",
		      l.node);
}

void check_links(const struct finder *to, const struct bl_node_ref *ref)
{
	node_ports_each(ref, check_port, (void *)to);
}
