/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock record of a node, for tests of who keeps it. */
#ifndef BARLINE_TESTS_CARETAKER_CLOCK_H
#define BARLINE_TESTS_CARETAKER_CLOCK_H

#include "core/clock_core.h"
#include "tests/net/loader/restart.h"

/* Longer than any CPU stands still, even twice: for cases in which no node may be announced. */
#define PATIENT_US 8000000

/* Returns the clock record of a node. */
T_FN const struct bl_clock *clock_of(unsigned int i)
{
	int fd = rack_map(i, BL_MAP_CLOCK);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED, "%s", strerror(errno));
	close(fd);
	return p;
}

/* No process stands still for as long as this; the record is updated four times a second. */
#define VOID_MS 3000

/*
 * Checks at every sample that the record is usable, until the time that it states now is over.
 * Returns false if process @by ended meanwhile; then nothing is known of the time after that.
 */
T_FN bool is_kept(const struct bl_clock *clock, pid_t by, uint64_t *bus, const char *when)
{
	uint64_t end = BL_READ_ONCE(clock->void_after_ns), now, at;
	bool usable;

	for (;;) {
		now = t_mono();
		usable = bl_clock_usable(clock, now);
		at = bl_clock_at(clock, t_mono());
		if (!runs(by))
			return false;
		CHECK(usable, "the clock is void %s", when);
		CHECK(at >= *bus, "bus time went back by %" PRIu64 " %s", *bus - at, when);
		*bus = at;
		if (now >= end)
			return true;
		rack_serve(1);
	}
}

#endif
