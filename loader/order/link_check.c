// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers of counts: a neighbour compares what comes with what was counted only as long as the
 * number stays the same (core/order/link_core.h). It is drawn anew with the maps of a node, and for
 * a port whose number goes to another interface.
 */
#include "loader/order/link_check.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "loader/load/maps.h"
#include "maps/link_abi.h"

int bl_link_new(int fd, uint32_t port, struct bl_err *err)
{
	struct bl_link l = { .echo_ns = BL_ECHO_NONE };

	if (getrandom(&l.run, sizeof(l.run), 0) != sizeof(l.run))
		return bl_fail(err, errno, "cannot draw a random number: %s", strerror(errno));
	l.run = l.run ? l.run : 1; /* 0: not counted */
	return bl_map_set(fd, port, &l, BL_MAP_LINK_SEEN, err);
}
