/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UNTIL(cond, ...) serves the rack until @cond; a busy machine does not reach the limit. */
#ifndef BARLINE_TESTS_SERVE_UNTIL_H
#define BARLINE_TESTS_SERVE_UNTIL_H

#include "tests/net/rack.h"

#define UNTIL(cond, ...)                                       \
	do {                                                   \
		uint64_t until_ = t_mono() + 60000000000ULL;   \
		for (; !(cond); rack_serve(2))                 \
			CHECK(t_mono() < until_, __VA_ARGS__); \
	} while (0)

#endif
