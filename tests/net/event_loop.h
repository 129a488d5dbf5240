/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An event loop in the case's main thread, for what needs one and is no rack: UNTIL(x) turns it
 * until x holds. Who includes this says before how many seconds that may take: WAIT_S.
 *
 * Included behind rack.h.
 */
#ifndef BARLINE_TESTS_EVENT_LOOP_H
#define BARLINE_TESTS_EVENT_LOOP_H

#include <systemd/sd-event.h>

static sd_event *ev;

#define UNTIL(cond)                                                            \
	do {                                                                   \
		uint64_t until_ = t_mono() + WAIT_S * 1000000000ULL;           \
		while (!(cond)) {                                              \
			CHECK(t_mono() < until_, "never: %s", #cond);          \
			CHECK(sd_event_run(ev, 10000) >= 0, "the event loop"); \
		}                                                              \
	} while (0)

T_FN void serve_ms(unsigned int ms)
{
	uint64_t until = t_mono() + ms * 1000000ULL;

	while (t_mono() < until)
		CHECK(sd_event_run(ev, 10000) >= 0, "the event loop");
}

#endif
