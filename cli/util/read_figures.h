/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the endpoints of a host tell of themselves (maps/figures_abi.h). The page of an endpoint has
 * a pin, maps/page-SLOT, so that reading it takes CAP_BPF and no daemon. It is mapped for the time
 * of a call; its process may write meanwhile.
 */
#ifndef BARLINE_CLI_UTIL_READ_FIGURES_H
#define BARLINE_CLI_UTIL_READ_FIGURES_H

#include "loader/load/pin.h"
#include "maps/figures_abi.h"

/**
 * figures_map - maps the figures of the endpoint in @slot for reading. Returns them, and the
 * caller unmaps them; NULL: there is no endpoint, or it cannot be read, which @err says.
 */
const struct bl_figures *figures_map(const struct bl_node_ref *ref, unsigned int slot,
				     struct bl_err *err);

/** figures_unmap - @f may be NULL. */
void figures_unmap(const struct bl_figures *f);

#endif
