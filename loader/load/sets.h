/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Input sets of a switch, derived from the roles of its ports; sets.c has an example. */
#ifndef BARLINE_SETS_H
#define BARLINE_SETS_H

#include <stdint.h>

#include "base/log.h"
#include "maps/switch_abi.h"

/** struct bl_sets - input sets. A barrier is the minimum over the ports of a set. */
struct bl_sets {
	uint8_t in_sets[BL_SW_PORTS_MAX]; /* by port: bit s: its register is part of set s */
	uint8_t out_set[BL_SW_PORTS_MAX]; /* by port: the set whose minimum leaves there */
	unsigned int nsets;               /* 1 or 2 */
};

/**
 * bl_sets_derive - computes the sets of a switch with @n ports.
 * @roles: enum bl_port_role of each port.
 * Returns 0 or -errno; -ELOOP: the roles make switches wait for each other.
 */
int bl_sets_derive(const uint8_t *roles, unsigned int n, struct bl_sets *s, struct bl_err *err);

/** bl_sets_check - returns 0, or -ELOOP if an up-link is an input of an up-link. */
int bl_sets_check(const uint8_t *roles, unsigned int n, const struct bl_sets *s,
		  struct bl_err *err);

#endif
