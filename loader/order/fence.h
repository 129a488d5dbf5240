/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the controller orders, down to the registers of a switch and the barriers of a host
 * (1Pipe 5.2): freeze an input, bar an output, resume an input, all fenced by the epoch of who
 * orders.
 *
 * The fence is in the kernel: the program "bl_fence" compares the order's epoch with the highest
 * one that the node ever heard (map "epoch") and changes nothing if it is lower. What it accepts it
 * writes where the datapath looks at its next reading of the clock; bl_fence_*() return when no
 * frame can be handled any more by a program that has not seen the order.
 *
 * Example: a switch's port 3 went silent: its register stands still at C = 900, death 7 of this
 * port. The controller's RESUME says port 3, death 7: the port leaves C's minimum. A second RESUME
 * for death 7 that was under way for long, and comes when the port has joined and died again (death
 * 8), changes nothing: -ENOENT.
 *
 * Thread rules: one caller at a time for each node: the daemon's event loop.
 */
#ifndef BARLINE_FENCE_H
#define BARLINE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/node.h"

/**
 * struct bl_fence_port - an input as to C. @port: number of the port. @neighbour: node id in the
 * last beacon that came in; 0: none came. @death: how often it went silent or was frozen. @role:
 * enum bl_port_role (a host: BL_PORT_UP).
 * @live: it is heard, and holds B back. @in: in C's minimum. @behind: @in, but what the outputs
 * were given before it joined is beyond it still; never of a host's own one. @held: stands still at
 * @c, until it is resumed. @barred: its output promises no C, and the input does not join.
 * @awaited: C waits for it, though nobody was heard there since the registers were made anew. @c:
 * last commit, 48 bits; BL_FENCE_NO_C: none ever came, or not @in.
 */
struct bl_fence_port {
	uint32_t port, neighbour, death;
	uint32_t policy; /* that the neighbour says it has (struct bl_beacon); 0: nothing */
	uint8_t role;
	bool in, behind, held, live, barred, awaited;
	uint64_t c;
};
#define BL_FENCE_NO_C (~0ULL)

/** bl_fence_epoch - the highest epoch that this node ever heard; survives the daemon. */
uint64_t bl_fence_epoch(const struct bl_node *n);
/**
 * bl_fence_raise - from now on orders of a lower epoch are refused. 0, or -ESTALE if @epoch is
 * lower than the highest (counted "epoch_old").
 */
int bl_fence_raise(struct bl_node *n, uint64_t epoch);
/**
 * bl_fence_freeze - the input at @port does not raise C any more: it dies, unless it stands still
 * already. @p: how it stands then, @death the new number; without @in nothing of it was in C's
 * minimum. 0, -ESTALE, -ENOENT: no such port; -EBUSY: a lane would not rest.
 */
int bl_fence_freeze(struct bl_node *n, uint64_t epoch, uint32_t port, struct bl_fence_port *p);
/**
 * bl_fence_bar - the outputs of exactly these ports promise no C from now on, and their inputs do
 * not join C; all others are free.
 */
int bl_fence_bar(struct bl_node *n, uint64_t epoch, const uint32_t *port, unsigned int nports);
/**
 * bl_fence_resume - the input at @port, which stands still since @death, does so no more. 0,
 * -ESTALE, -ENOENT: no such port, or another death.
 */
int bl_fence_resume(struct bl_node *n, uint64_t epoch, uint32_t port, uint32_t death);
/**
 * bl_fence_empty - C does not wait for the input at @port any more, where nobody was heard since
 * the registers were made anew. 0, -ESTALE, -ENOENT: no such port.
 */
int bl_fence_empty(struct bl_node *n, uint64_t epoch, uint32_t port);
/**
 * bl_fence_inputs - how the inputs stand now: those in use, ascending. Returns how many, or -errno.
 * A host has one, its NIC.
 */
int bl_fence_inputs(const struct bl_node *n, struct bl_fence_port *v, unsigned int max);

#endif
