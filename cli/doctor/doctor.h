/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of `barline doctor`.
 */
#ifndef BARLINE_CLI_DOCTOR_H
#define BARLINE_CLI_DOCTOR_H

#include <net/if.h>

struct bl_node_ref;
struct finder;

/**
 * doctor_try - Does what barline does, in new namespaces, and reports findings to @to. Must be
 * called in a child process, because the process stays in these namespaces.
 */
void doctor_try(const struct finder *to);

/** doctor_nics - reports on the interfaces of a node of this network namespace. */
void doctor_nics(const struct finder *to, const struct bl_node_ref *ref);

/** doctor_queues - reports whether the interfaces of a node are FIFOs; part of doctor_nics(). */
void doctor_queues(const struct finder *to, const struct bl_node_ref *ref);

/** doctor_ports - reports interfaces of a node that are gone. */
void doctor_ports(const struct finder *to, const struct bl_node_ref *ref);

/** doctor_daemon - reports on the daemon of a node, and on its session with a controller. */
void doctor_daemon(const struct finder *to, const struct bl_node_ref *ref);

/** doctor_neighbours - reports on the neighbours of a node, and on node ids that two nodes have. */
void doctor_neighbours(const struct finder *to, const struct bl_node_ref *ref);

/**
 * doctor_net - Reports on what a node of this network namespace needs around it for anything to
 * pass: carrier, addresses, routes, neighbours, and a switch's bridge or forwarding.
 */
void doctor_net(const struct finder *to, const struct bl_node_ref *ref);

/**
 * network_state - the worst finding on the network around a node: "ok", "warn" or "FAIL"; "-" if it
 * is in another network namespace.
 */
const char *network_state(const struct bl_node_ref *ref);

/** doctor_time - reports on the system clock: whether it is synchronised, by whom, and TAI. */
void doctor_time(const struct finder *to);

/** doctor_clock - reports on the clock of a node. */
void doctor_clock(const struct finder *to, const struct bl_node_ref *ref);

/**
 * doctor_firewall - reports on chains of nftables that drop what a host sends to barline's ports.
 * @what: names the host's interface
 * @dev: interfaces that the host's packets leave by: @ndev names
 */
void doctor_firewall(const struct finder *to, const struct bl_node_ref *ref, const char *what,
		     const char (*dev)[IFNAMSIZ], unsigned int ndev);

/** doctor_hooks - reports on programs that others have removed or replaced. */
void doctor_hooks(const struct finder *to, const struct bl_node_ref *ref);

/** check_links - Reports on the links of a node, and on the clocks behind them. */
void check_links(const struct finder *to, const struct bl_node_ref *ref);

#endif
