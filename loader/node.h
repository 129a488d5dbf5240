/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node: one switch or one host in one network namespace, as barlined, the lab and the tests run
 * it. This header and those that it includes are the loader's public face; admission/ has its own.
 *
 * A node is opened (programs loaded or reused, attached, pinned), served (endpoints, clock,
 * beacons) and closed. Closing leaves the datapath running; detaching removes it. One process may
 * serve many nodes, as the lab does: struct bl_server (loop.h) is the event loop that they share.
 *
 * Thread rules: all calls come from one thread, the one that runs the server.
 */
#ifndef BARLINE_NODE_H
#define BARLINE_NODE_H

#include "base/log.h"
#include "base/netns.h"
#include "loader/busy.h"
#include "loader/caretaker.h"
#include "loader/clean.h"
#include "loader/config.h"
#include "loader/load/counts.h"
#include "loader/load/pin.h"
#include "loader/loop.h"
#include "loader/node_cfg.h"

struct bl_fence;
struct bl_node;

/**
 * bl_node_open - loads, attaches and pins a node, or takes over one whose pins are there: its
 * programs are swapped by bpf_link_update() without losing a frame, and its maps are kept. The node
 * is served by @s from now on.
 * @cfg: used during the call only.
 * Returns 0 or -errno; -EBUSY: another XDP program; -EPROTO: pins of another ABI version; -ENODEV:
 * no such interface.
 */
int bl_node_open(struct bl_node **out, struct bl_server *s, const struct bl_node_cfg *cfg,
		 struct bl_err *err);

/**
 * bl_node_withdraw - keeps this thread off the CPUs of the datapath from now on, where there are
 * others: the process is about to end, and the datapath shall not wait for a CPU meanwhile.
 */
void bl_node_withdraw(const struct bl_node *n);

/** bl_node_close - ends service; the datapath stays in the kernel. */
void bl_node_close(struct bl_node *n);

/** bl_server_free - closes all nodes of the server, and frees it. NULL: no-op. */
void bl_server_free(struct bl_server *s);

/**
 * bl_node_detach - removes the programs and pins of the node with this role in this network
 * namespace; no daemon serves it. Returns 0 or -errno; -ENOENT: there is none.
 */
int bl_node_detach(enum bl_role role, const char *netns, struct bl_err *err);

/** bl_node_mode - the XDP mode of the node's first interface, as the kernel has it. */
enum bl_xdp_mode bl_node_mode(const struct bl_node *n);

/** bl_node_name - the node's name. */
const char *bl_node_name(const struct bl_node *n);

/** bl_node_dir - the directory of the node's pins. */
const char *bl_node_dir(const struct bl_node *n);

/**
 * bl_node_iface - interface @k of the node: a switch's ports in the order of their numbers; a
 * host's NIC, then lo. NULL: there are fewer.
 */
const struct bl_attached *bl_node_iface(const struct bl_node *n, unsigned int k);

/** bl_node_bus_time - bus time now, by the node's clock record. */
uint64_t bl_node_bus_time(const struct bl_node *n);

/** bl_node_fence - what carries out the controller's commands on this node (order/fence.h). */
struct bl_fence *bl_node_fence(struct bl_node *n);

#endif
