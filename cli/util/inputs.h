/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inputs of a node and the barriers that result from them, read from its maps at once and
 * without a lock: the ports of a switch, or the NIC of a host.
 */
#ifndef BARLINE_CLI_UTIL_INPUTS_H
#define BARLINE_CLI_UTIL_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/load/pin.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/** struct node_input - one input, with its lanes. */
struct node_input {
	uint32_t port; /* its number; a host's NIC is 0 */
	char name[16]; /* of the interface */
	/* As the loader has configured it. On a host all zero, except the sets: 0, and only that.
	 */
	struct bl_sw_port cfg;
	struct bl_reg reg[BL_LANES_MAX];
	struct bl_life life;
	bool barred;       /* it promises no commit barrier, and does not join that of the node */
	uint64_t watch_ns; /* watch time of the lane that it is steered to (maps/switch_abi.h) */
};

/** struct node_inputs - all inputs of a node, and what it made of them. */
struct node_inputs {
	struct node_input *in;
	uint32_t n;
	/* switch: what each lane has given its outputs; the others are all zero */
	struct bl_sw_lane lane[BL_LANES_MAX];
	uint32_t lanes; /* of @lane; host: 0 */
	uint32_t sets;  /* bit s: there are outputs of set s; host: 1 */
	uint64_t beacon_ns, dead_after_ns, lag_max_ns; /* as configured; @lag_max_ns 0: none */
	struct bl_host_page page;                      /* host; else all zero */
};

/**
 * node_inputs_read - reads the inputs of a node; ports that are not in use are left out. Returns 0,
 * or -errno with @out empty. The caller calls node_inputs_free() in both cases.
 */
int node_inputs_read(const struct bl_node_ref *ref, struct node_inputs *out, struct bl_err *err);

/** node_inputs_free - frees what node_inputs_read() has allocated. */
void node_inputs_free(struct node_inputs *in);

#endif
