/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The NICs of a node as FIFOs: made when programs are attached, watched while the daemon runs, put
 * back when the node is detached. load/nic_tx.c and load/nic_rx.c say how; maps/nic_abi.h has the
 * record of it. The calling thread is in the node's network namespace.
 */
#ifndef BARLINE_NIC_H
#define BARLINE_NIC_H

#include <stdbool.h>

#include "base/log.h"
#include "maps/meta_abi.h"

struct bl_attached;
struct bl_node;

/** bl_nic_open - makes or opens the map of records. Returns 0 or -errno. */
int bl_nic_open(struct bl_node *n, struct bl_err *err);

/**
 * bl_nic_before - notes what @a's interface has and turns off offloads that XDP does not go with.
 * Called before programs are attached. Returns 0 or -errno.
 */
int bl_nic_before(struct bl_node *n, const struct bl_attached *a, struct bl_err *err);

/**
 * bl_nic_after - makes the interface a FIFO, after programs were attached. Returns 0, or -EPERM: it
 * cannot be made one, and the operator has not accepted that.
 */
int bl_nic_after(struct bl_node *n, const struct bl_attached *a, struct bl_err *err);

/**
 * bl_nic_thread - makes the NAPI of @a's interface threaded, if the configuration wants that, and
 * keeps its threads on the CPU of the port; else undoes that. Returns 0 or -errno.
 */
int bl_nic_thread(struct bl_node *n, const struct bl_attached *a, struct bl_err *err);

/** bl_nic_renamed - @a's interface has a new name. */
void bl_nic_renamed(const struct bl_node *n, const struct bl_attached *a);

/** bl_nic_watch - looks after the interfaces once per second from now on. Returns 0 or -errno. */
int bl_nic_watch(struct bl_node *n, struct bl_err *err);

/** bl_nic_check - makes again what others have removed from the node's interfaces. */
void bl_nic_check(struct bl_node *n);

/** bl_nic_close - stops looking; what was made stays. */
void bl_nic_close(struct bl_node *n);

/**
 * bl_nic_unthread - undoes bl_nic_thread() for the switch with the pins in @dir. Called before its
 * links are detached, since a veth may have no NAPI without an XDP program, and a device without
 * NAPI refuses to have it unthreaded. @ifindex: of this interface only; 0: of all.
 */
void bl_nic_unthread(const char *dir, int ifindex);

/**
 * bl_nic_restore - removes the clsact filters of the node with the pins in @dir and puts back what
 * it has changed, after its links were detached. @ifindex: on this interface only; 0: on all. No-op
 * without a record.
 */
void bl_nic_restore(const char *dir, enum bl_role role, int ifindex);

/**
 * bl_nic_take_back - undoes what the node with the pins in @dir, which is in another network
 * namespace, has done to interfaces that are in this one now: programs, and what is recorded. A NIC
 * comes back in this way when the network namespace of a container ends.
 * @tell: called for each such interface; may be NULL. @dry_run: change nothing.
 */
void bl_nic_take_back(const char *dir, enum bl_role role, bool dry_run,
		      void (*tell)(const char *what, void *ctx), void *ctx);

/**
 * bl_nic_say_left - logs what stays changed on NICs of the node with the pins in @dir that exist,
 * but not in this network namespace, and the commands that put it back. Called before links are
 * detached, since they tell whether a NIC exists.
 */
void bl_nic_say_left(const char *dir);

/** bl_nic_any_mac - for tests: takes the address of any interface for a permanent one. */
extern bool bl_nic_any_mac;

#endif
