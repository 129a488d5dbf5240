/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The endpoints of a host, read from its maps without a lock. */
#ifndef BARLINE_CLI_UTIL_ENDPOINTS_H
#define BARLINE_CLI_UTIL_ENDPOINTS_H

#include <stdint.h>

#include "loader/load/pin.h"
#include "maps/host_abi.h"

/** struct endpoint_row - one endpoint. */
struct endpoint_row {
	struct bl_ep_slot s;     /* its name is UTF-8 without control characters */
	struct bl_ep_word word;  /* what the daemon has decided about it */
	struct bl_inflight line; /* all zero: its page cannot be read */
	struct bl_ep_wake wake;  /* like @line */
	int64_t ring_used;       /* bytes that wait in its ring; -1: not known */
};

/**
 * node_endpoints_read - reads the endpoints of host @ref that are active. Returns their number, or
 * -errno. The caller frees *@out in both cases.
 * @page: of the host, as it was read shortly before
 */
int node_endpoints_read(const struct bl_node_ref *ref, const struct bl_host_page *page,
			struct endpoint_row **out, struct bl_err *err);

/** endpoint_ring_used - bytes that wait in the ring of @slot, or -1: not known. */
int64_t endpoint_ring_used(const struct bl_node_ref *ref, uint32_t slot);

#endif
