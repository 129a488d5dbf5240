/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The beacon thread: it sends the beacons of all hosts of a process and keeps their clock records,
 * and those of the switches. beacon.c says how. All functions are called by the main thread.
 */
#ifndef BARLINE_LOADER_BEACON_H
#define BARLINE_LOADER_BEACON_H

#include <stdbool.h>

#include "base/log.h"

#define BL_BEACON_MARK 0x6261726cu /* mark of a beacon's skb, for the egress program */

struct bl_node;
struct bl_node_cfg;
struct bl_server;
struct bpf_object;

/** bl_beacons_here - whether the beacon thread sends the beacons of such a node. */
bool bl_beacons_here(const struct bl_node_cfg *c);

/** bl_beacon_paced - whether the pacer sends the beacons of such a node. */
bool bl_beacon_paced(const struct bl_node_cfg *c);

/** bl_beacon_sending - whether the beacon thread sends beacons of this node at present. */
bool bl_beacon_sending(const struct bl_node *n);

/**
 * bl_beacon_start - starts the thread; no-op if it runs. Not from within a node's network
 * namespace: the thread would hold that for as long as the process lives. Returns 0 or -errno.
 */
int bl_beacon_start(struct bl_server *s, struct bl_err *err);

/** bl_beacon_stop - ends the thread; no-op if it does not run. */
void bl_beacon_stop(struct bl_server *s);

/** bl_beacon_keep - makes the thread update the clock record of @n from now on, or not any more. */
void bl_beacon_keep(struct bl_node *n, bool keep);

/**
 * bl_beacon_prepare - does everything for bl_beacon_add() that takes time, for a spare caretaker,
 * whose beacon socket is open. Returns 0 or -errno.
 */
int bl_beacon_prepare(struct bl_node *n, struct bl_err *err);

/**
 * bl_beacon_add - makes the thread send the host's beacons; no-op if it does. The caller is in the
 * node's network namespace. Returns 0 or -errno.
 */
int bl_beacon_add(struct bl_node *n, struct bl_err *err);

/**
 * bl_beacon_bye - sends the last beacon, which says that the host has left in order;
 * bl_beacon_add() begins again. The clock is kept. No-op if the pacer sends the beacons: then the
 * neighbour notices after dead_after that they have ended.
 */
void bl_beacon_bye(struct bl_node *n);

/** bl_beacon_remove - the thread does not touch the node any more when this returns. */
void bl_beacon_remove(struct bl_node *n);

/** bl_beacon_socket - opens the beacon socket alone, for a caretaker. Returns 0 or -errno. */
int bl_beacon_socket(struct bl_node *n, struct bl_err *err);

/**
 * bl_beacon_moved - the host's NIC is another interface now, or has another address. The caller is
 * in the node's network namespace. Returns 0 or -errno.
 */
int bl_beacon_moved(struct bl_node *n, struct bl_err *err);

/**
 * bl_beacon_pace - tells the pacer's program to send the host's beacons, or not to, as n->cfg says.
 * Before bl_admission_pace(). Returns 0 or -errno.
 */
int bl_beacon_pace(struct bl_node *n, struct bpf_object *obj, struct bl_err *err);

#endif
