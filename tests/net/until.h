/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UNTIL() serves the rack until a condition holds, within a limit that a busy machine does not
 * reach by itself. If the condition never holds, the case fails and reports the step that it was
 * waiting for.
 *
 * 	rack_last_words = say_all;
 * 	UNTIL("waits for all nodes", all_ok());
 */
#ifndef BARLINE_TESTS_UNTIL_H
#define BARLINE_TESTS_UNTIL_H

#include "tests/net/controller/controller.h"

#define WAIT_NS 60000000000ULL

static const char *doing = "begins";

T_FN void say_all(void)
{
	fprintf(stderr, "while it %s; the controller says: %s\n", doing, ask());
	rack_dump();
}

#define UNTIL(what, cond) UNTIL_EVERY(1, what, cond)
/* The same with @ms from one look at the condition to the next. */
#define UNTIL_EVERY(ms, what, cond)                                              \
	do {                                                                     \
		uint64_t until_ = t_mono() + WAIT_NS;                            \
		doing = what;                                                    \
		while (!(cond)) {                                                \
			CHECK(t_mono() < until_, "it does not come to its end"); \
			rack_serve(ms);                                          \
		}                                                                \
	} while (0)

#endif
