// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's look at the clock of a node: whether its record is valid, and why it is not. */
#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/read.h"
#include "core/clock_core.h"

void doctor_clock(const struct finder *to, const struct bl_node_ref *ref)
{
	struct bl_clock c;
	uint64_t bus = node_now(ref, &c);

	if (!bus && c.flags & BL_CLOCK_VALID && c.source == BL_CLOCK_KERNEL &&
	    c.void_after_ns <= c.as_of_ns)
		found(to, FOUND_FAIL, ref->meta.name,
		      "start chrony, ntpd, or ptp4l and phc2sys, or see docs/clocks.md",
		      c.state == BL_CLOCK_NEVER ? "its clock is void, since the system clock is "
						  "not synchronised: "
						  "nothing ordered is sent"
						: "its clock is void: it may be wrong by %llu us, "
						  "more than %llu are "
						  "not allowed, and nothing ordered is sent",
		      (unsigned long long)c.bound_ns / 1000,
		      (unsigned long long)c.max_bound_ns / 1000);
	else if (!bus)
		found(to, FOUND_FAIL, ref->meta.name, "start the daemon again",
		      c.flags & BL_CLOCK_VALID ? "its clock record is past void_after: nothing "
						 "ordered is sent"
					       : "its clock record was never set");
	else
		found(to, c.state == BL_CLOCK_HOLDOVER ? FOUND_WARN : FOUND_OK, ref->meta.name,
		      c.state == BL_CLOCK_HOLDOVER ? "look after chrony, ntpd or ptp4l" : "",
		      "clock valid%s, bound %llu us%s",
		      c.state == BL_CLOCK_HOLDOVER ? ", but not synchronised any more" : "",
		      (unsigned long long)bl_clock_bound(&c, bl_mono_ns()) / 1000,
		      c.source == BL_CLOCK_TRUST ? " (trusted, not measured)" : "");
}
