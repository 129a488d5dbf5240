/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An sd-event loop in the main thread of a case that needs one and has no rack. UNTIL(x) runs the
 * loop until x holds. The including file defines WAIT_S, the limit in seconds, before it includes
 * this header, which comes after rack.h.
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
