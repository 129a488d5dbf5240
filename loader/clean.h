/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Removing what nodes and services that are gone have left behind, or all nodes of a machine. */
#ifndef BARLINE_CLEAN_H
#define BARLINE_CLEAN_H

#include <stdbool.h>

#include "base/log.h"

/**
 * bl_clean - removes pins and sockets whose network namespace or interface is gone, and the status
 * sockets of arbiters and controllers that are gone; takes NICs back that have left the network
 * namespace of their node for this one (bl_nic_take_back()).
 * @dry_run: remove nothing, only report.
 * @tell: called for each node, NIC and socket; may be NULL.
 * Returns how many nodes were removed, or -errno.
 */
int bl_clean(bool dry_run, void (*tell)(const char *what, void *ctx), void *ctx,
	     struct bl_err *err);

/**
 * bl_clean_all - as bl_clean(), and before that detaches every node of the machine, whatever its
 * network namespace, hosts first. It removes nothing at all if one of them is served by a daemon,
 * or if its detach would break something (bl_node_busy()).
 * @force: detach them even if that breaks something. A daemon is never taken its node.
 * Returns how many nodes were removed, or -errno; -EBUSY names the node.
 */
int bl_clean_all(bool force, bool dry_run, void (*tell)(const char *what, void *ctx), void *ctx,
		 struct bl_err *err);

#endif
