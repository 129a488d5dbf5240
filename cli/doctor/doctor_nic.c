// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the interfaces of a node: whether they are one FIFO for ordered frames, and
 * what of their settings costs latency.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/nic_facts.h"
#include "loader/load/lower.h"

struct look {
	const struct finder *to;
	const struct bl_node_ref *ref;
};

static void check_driver(const struct finder *to, const char *what, const struct nic_facts *f)
{
	if (!f->row)
		found(to, FOUND_WARN, what,
		      "its queues are handled as `barline show nics` says; docs/nics.md has the "
		      "drivers that are known",
		      "the driver %s is not known: whether frames of XDP share its queues is "
		      "unknown, too",
		      f->driver[0] ? f->driver : "of this interface");
	else if (f->generic && f->row->rings != BL_RINGS_NONE)
		found(to, FOUND_WARN, what, "start the node without --generic",
		      "XDP is in generic mode, although the driver %s has native XDP (Linux %s)",
		      f->driver, f->row->native);
}

/* An interface may have been put into a bond since the node was started. */
static void check_kind(const struct look *l, const char *what, const struct nic_facts *f)
{
	struct bl_err err;
	struct bl_lower v;

	if (!bl_lower_look((int)f->nic.ifindex, &v) &&
	    bl_lower_judge(&v, l->ref->role, &err) == -EOPNOTSUPP)
		found(l->to, FOUND_FAIL, what, "do what the sentence says and start the node again",
		      "ordered messages do not pass here: %s", err.text);
}

static void check_hardware(const struct finder *to, const char *what, const struct nic_facts *f)
{
	char cure[200];

	snprintf(cure, sizeof(cure),
		 "`ethtool -K %.15s rxvlan off rx-vlan-stag-hw-parse off`; where the driver does "
		 "not let them change, use no VLAN tags on ordered links",
		 f->name);
	if (f->rxvlan > 0)
		found(to, FOUND_WARN, what, cure,
		      "the hardware takes VLAN tags off frames before XDP sees them: ordered "
		      "frames that have one lose it");
	/* ethtool refuses the whole command if the driver lacks one of the settings. */
	snprintf(cure, sizeof(cure), "`ethtool -C %.15s %srx-usecs 0`", f->name,
		 f->adaptive_rx ? "adaptive-rx off " : "");
	if (f->rx_usecs > 0)
		found(to, FOUND_WARN, what, cure,
		      "interrupts wait up to %d us for more frames: each hop is late by as much",
		      f->rx_usecs);
}

static void check_fifo(const struct finder *to, const char *what, const struct bl_nic *nic)
{
	char how[128];

	nic_how_text(nic, how, sizeof(how));
	if (nic->tx == BL_NIC_BROKEN || nic->rx == BL_NIC_BROKEN)
		found_as(to, CHECK_QUEUES, "no_fifo", FOUND_FAIL, what,
			 "do what the sentence says and start the node again; until then count on "
			 "messages that are late (promise_broken)",
			 "ordered frames may overtake each other: %s", nic->why);
	else if (nic->tx == BL_NIC_UNKNOWN)
		found_as(to, CHECK_QUEUES, "unknown", FOUND_WARN, what, "set the interface up",
			 "the interface was never up, so it is not known whether it is one FIFO");
	else
		found_as(to, CHECK_QUEUES, "ok", FOUND_OK, what, "",
			 "one FIFO; transmit: %s, receive: %s%s%s", nic_side_text(nic->tx),
			 nic_side_text(nic->rx), how[0] ? "; changed: " : "", how);
}

static int check_nic(const struct nic_facts *f, void *ctx)
{
	const struct look *l = ctx;
	const struct bl_nic *nic = &f->nic;
	char what[40], facts[280];

	if (!f->here)
		return 0;
	snprintf(what, sizeof(what), "%.20s %.15s", l->ref->meta.name, f->name);
	found(l->to, FOUND_OK, what, "", "%s", nic_facts_text(f, facts, sizeof(facts)));
	check_driver(l->to, what, f);
	check_kind(l, what, f);
	check_fifo(l->to, what, nic);
	if (nic->repaired)
		found(l->to, FOUND_WARN, what,
		      "find the program that sets queueing disciplines, channels, offloads or flow "
		      "rules (NetworkManager, udev, tuned), and exempt this interface from it",
		      "its queues were changed by others %llu times, and made a FIFO again",
		      (unsigned long long)nic->repaired);
	check_hardware(l->to, what, f);
	return 0;
}

void doctor_nics(const struct finder *to, const struct bl_node_ref *ref)
{
	struct look l = { .to = to, .ref = ref };

	nic_facts_each(ref, check_nic, &l);
}

static int check_queues(const struct bl_nic *nic, const char *name, void *ctx)
{
	const struct look *l = ctx;
	char what[40];

	snprintf(what, sizeof(what), "%.20s %.15s", l->ref->meta.name, name);
	check_fifo(l->to, what, nic);
	return 0;
}

void doctor_queues(const struct finder *to, const struct bl_node_ref *ref)
{
	struct look l = { .to = to, .ref = ref };

	nic_records_each(ref, check_queues, &l);
}
