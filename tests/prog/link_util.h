/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What beacons say of their link, for the program tests of both roles: the body, field by field,
 * and the value of "link_seen", which is @seen below.
 */
#ifndef BARLINE_TEST_LINK_UTIL_H
#define BARLINE_TEST_LINK_UTIL_H

#include "tests/prog/prog_util.h"
#include "maps/link_abi.h"

MAYBE_UNUSED static struct bl_link link_at(const struct bpf_map *seen, __u32 port)
{
	struct bl_link l;

	map_get(seen, port, &l);
	return l;
}

/* Makes port @port one that has heard nothing and counts under the number @run. */
MAYBE_UNUSED static void link_new(const struct bpf_map *seen, __u32 port, __u16 run)
{
	struct bl_link l = { .run = run, .echo_ns = BL_ECHO_NONE };

	map_put(seen, port, &l);
}

#endif
