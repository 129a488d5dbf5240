// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's findings on hooks: programs that others have removed, replaced, or put before ours.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/hooks.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "loader/load/entry.h"

static void check_side(const struct finder *to, const char *what, enum bl_hook_side side,
		       const struct bl_hook_seen *h)
{
	static const char *const names[] = {
		[BL_HOOK_XDP] = "XDP", [BL_HOOK_EGRESS] = "egress", [BL_HOOK_INGRESS] = "ingress"
	};
	const char *hook = names[side];
	char other[48];

	prog_text(h->other_id, other, sizeof(other));
	if (h->state == BL_HOOK_EMPTY)
		found_as(to, CHECK_PROGRAMS, "removed", FOUND_FAIL, what,
			 "find the program that removes it; while barlined runs it attaches its "
			 "own "
			 "at most once per minute",
			 "somebody has removed barline's %s program: nothing ordered passes here",
			 hook);
	else if (h->state == BL_HOOK_OTHERS)
		found_as(to, CHECK_PROGRAMS, "replaced", FOUND_FAIL, what,
			 "detach it, and barlined attaches its own again within a second; --chain "
			 "lets another XDP program run behind barline's",
			 "the %s program %s is in the place of barline's: nothing ordered passes "
			 "here",
			 hook, other);
	else if (h->state == BL_HOOK_BEHIND)
		found_as(to, CHECK_PROGRAMS, "behind", FOUND_WARN, what,
			 "attach it behind barline's, or let it return TCX_NEXT",
			 "the program %s runs before barline's at the %s: barline's does not see "
			 "what "
			 "it ends",
			 other, hook);
	else if (h->state == BL_HOOK_FOLLOWED)
		found_as(to, CHECK_PROGRAMS, "followed", FOUND_WARN, what,
			 "detach it, or let it return TCX_NEXT",
			 "the program %s runs behind barline's at the egress: unless it returns "
			 "TCX_NEXT, frames leave by several transmit queues, and messages may be "
			 "late",
			 other);
	if (h->removed)
		found_as(to, CHECK_PROGRAMS, "repaired", FOUND_WARN, what,
			 "find the program that attaches and detaches programs here (`bpftool "
			 "net`), "
			 "and exempt this interface from it",
			 "barline's %s program was taken away %" PRIu64 " times, and attached "
			 "again "
			 "%" PRIu64 " times",
			 hook, (uint64_t)h->removed, (uint64_t)h->repaired);
}

/* The others in the dispatcher of the interface @name, and which of them come before barline's. */
static void check_dispatcher(const struct bl_node_ref *ref, const char *name,
			     const struct finder *to, const char *what)
{
	struct bl_dispatcher d;
	unsigned int k, own = 0;

	if (bl_dispatcher_read(ref->dir, name, &d))
		return;
	while (own < d.n && !d.member[own].own)
		own++;
	for (k = 0; k < own && own < d.n; k++)
		found_as(to, CHECK_PROGRAMS, "behind", FOUND_WARN, what,
			 "load it with a priority above barline's (`xdp-loader load -P 50`), "
			 "unless "
			 "it "
			 "is meant to filter what barline gets",
			 "in the dispatcher of libxdp the program %s (id %u, priority %u) runs "
			 "before "
			 "barline's: what it drops or holds up is lost or late for ordered "
			 "messages",
			 d.member[k].name, d.member[k].id, d.member[k].prio);
	if (own < d.n)
		found(to, FOUND_OK, what, "",
		      "barline's XDP program is member %u of %u in the dispatcher of libxdp (id "
		      "%u)",
		      own + 1, d.n, d.id);
}

/** struct look - the records of all hooks of a node, while they are looked at. */
struct look {
	const struct finder *to;
	struct bl_hook_watch *w;
};

static void check_port(const struct bl_node_ref *ref, uint32_t port, const char *name, void *ctx)
{
	const struct look *l = ctx;
	char what[40];
	int s;

	snprintf(what, sizeof(what), "%.20s %.15s", ref->meta.name, name);
	for (s = 0; s < BL_HOOK_SIDES; s++)
		check_side(l->to, what, (enum bl_hook_side)s, &l->w[port].side[s]);
	check_dispatcher(ref, name, l->to, what);
}

void doctor_hooks(const struct finder *to, const struct bl_node_ref *ref)
{
	struct look l = { .to = to, .w = hook_watches(ref) };

	if (!l.w) {
		cli_fail("out of memory");
		return;
	}
	node_ports_each(ref, check_port, &l);
	if (ref->role == BL_ROLE_HOST) {
		check_port(ref, BL_HOOK_LO, "lo", &l);
		/* Without admission they have no record. */
		check_port(ref, BL_HOOK_BL0, "bl0", &l);
		check_port(ref, BL_HOOK_BL0D, "bl0d", &l);
	}
	free(l.w);
}
