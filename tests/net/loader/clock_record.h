/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock record of a node of the rack, as the kernel has it. */
#ifndef BARLINE_TESTS_CLOCK_RECORD_H
#define BARLINE_TESTS_CLOCK_RECORD_H

#include "maps/clock_abi.h"
#include "tests/net/rack.h"

T_FN struct bl_clock clock_record(unsigned int node)
{
	int fd = rack_map(node, BL_MAP_CLOCK);
	struct bl_clock c;
	uint32_t zero = 0;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &c), "%s", strerror(errno));
	close(fd);
	return c;
}

#endif
