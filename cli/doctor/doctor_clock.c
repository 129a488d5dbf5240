// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's look at the clock of a node: whether its record is valid, and why it is not. */
#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/read.h"
#include "core/clock_core.h"

/* The clock record @c of a node; @usable: bus time may be used now. */
static void check_record(const struct finder *to, const char *name, const struct bl_clock *c,
			 bool usable)
{
#define TEXT(name, text, sentence, step) { sentence, step },
	static const char *const texts[][2] = { BL_CLOCK_REASONS(TEXT) };
#undef TEXT
	const char *why = "its source does not know better", *step = "look after chrony, ntpd or "
								     "ptp4l, or see docs/clocks.md";

	if (c->reason && c->reason < BL_CLOCK_REASONS_NUMBER) {
		why = texts[c->reason][0];
		step = texts[c->reason][1];
	}
	if (!usable && !(c->flags & BL_CLOCK_VALID))
		found_as(to, CHECK_CLOCK, "never_set", FOUND_FAIL, name, "start the daemon again",
			 "its clock record was never set");
	else if (!usable && (c->source <= BL_CLOCK_TRUST || c->void_after_ns > c->as_of_ns))
		found_as(to, CHECK_CLOCK, "void", FOUND_FAIL, name, "start the daemon again",
			 "its clock record is past void_after: nothing ordered is sent");
	else if (!usable && c->state == BL_CLOCK_NEVER)
		found_as(to, CHECK_CLOCK, "void", FOUND_FAIL, name, step,
			 "its clock is void, since the system clock is not synchronised, and "
			 "nothing "
			 "ordered is sent: %s",
			 why);
	else if (!usable && c->state == BL_CLOCK_STEERING)
		found_as(to, CHECK_CLOCK, "void", FOUND_FAIL, name,
			 "wait until bus time agrees with the system clock again, 2000 s for each "
			 "second; or stop the daemon, detach the node and start it again",
			 "its clock is void: the system clock was set, bus time may be wrong by "
			 "%llu "
			 "us, more than %llu are not allowed, and nothing ordered is sent",
			 (unsigned long long)c->bound_ns / 1000,
			 (unsigned long long)c->max_bound_ns / 1000);
	else if (!usable)
		found_as(to, CHECK_CLOCK, "void", FOUND_FAIL, name, step,
			 "its clock is void: it may be wrong by %llu us, more than %llu are not "
			 "allowed, and nothing ordered is sent: %s",
			 (unsigned long long)c->bound_ns / 1000,
			 (unsigned long long)c->max_bound_ns / 1000, why);
	else if (c->state == BL_CLOCK_HOLDOVER)
		found_as(to, CHECK_CLOCK, "unsynchronised", FOUND_WARN, name, step,
			 "clock valid, but not synchronised any more, bound %llu us: %s",
			 (unsigned long long)bl_clock_bound(c, bl_mono_ns()) / 1000, why);
	else
		found_as(to, CHECK_CLOCK, "ok", FOUND_OK, name, "", "clock valid, bound %llu us%s",
			 (unsigned long long)bl_clock_bound(c, bl_mono_ns()) / 1000,
			 c->source == BL_CLOCK_TRUST ? " (trusted, not measured)" : "");
}

void doctor_clock(const struct finder *to, const struct bl_node_ref *ref)
{
	struct bl_clock c;
	uint64_t bus = node_now(ref, &c);

	check_record(to, ref->meta.name, &c, bus != 0);
}
