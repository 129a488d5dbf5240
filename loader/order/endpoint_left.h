/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that left in order, until the rack has heard of it. Such an endpoint has no slot any
 * more when the controller announces it, and the daemon may be killed before that. So the entry of
 * its port in the map "eps" says that it left, and its T, until the controller has named it.
 */
#ifndef BARLINE_ENDPOINT_LEFT_H
#define BARLINE_ENDPOINT_LEFT_H

#include <stdint.h>

struct bl_node;

/**
 * bl_endpoint_left - tells the agent that incarnation @life of the endpoint at @port left in order,
 * and notes it for the next daemon until bl_endpoint_left_heard().
 * @t: above everything that it sent (bus time).
 */
void bl_endpoint_left(struct bl_node *n, uint16_t port, uint16_t life, uint64_t t);

/** bl_endpoint_left_heard - the controller has announced that this life of the port left. */
void bl_endpoint_left_heard(struct bl_node *n, uint16_t port, uint16_t life);

/** bl_endpoints_report_left - tells the agent what an earlier daemon may not have told. */
void bl_endpoints_report_left(struct bl_node *n);

#endif
