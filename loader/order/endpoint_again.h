/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints that an earlier daemon had: adopted at the start, connected again by their library. */
#ifndef BARLINE_ENDPOINT_AGAIN_H
#define BARLINE_ENDPOINT_AGAIN_H

#include <stdbool.h>

#include "maps/host_abi.h"

struct bl_node;

/** bl_endpoints_adopt - at the start: takes over the endpoints that the map "eps" names. */
void bl_endpoints_adopt(struct bl_node *n);

/**
 * bl_endpoints_adopted - once the agent is there: releases the endpoints whose process ended while
 * no daemon ran, and samples from now on those that have no connection.
 */
void bl_endpoints_adopted(struct bl_node *n);

/**
 * bl_endpoint_again - the process at @conn says that it is the endpoint of an earlier connection;
 * it gets an answer. Returns whether @conn belongs to that endpoint now.
 */
bool bl_endpoint_again(struct bl_node *n, int conn, const struct bl_again_req *q);

#endif
