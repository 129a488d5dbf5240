/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of the failure controller (1Pipe 5.2), carried out on the registers of a switch or
 * the barriers of a host: freeze an input, bar an output, resume an input. Each command is fenced
 * by the epoch of the controller that gives it.
 *
 * The fence is in the kernel: the program "bl_fence" compares the epoch of the command with the
 * highest epoch that the node ever heard (map "epoch"), and changes nothing if the command's is
 * lower. A command that it accepts is written where the datapath looks at its next reading of the
 * clock. bl_fence_*() return when no frame can be handled any more by a program that has not seen
 * the command.
 *
 * Example: port 3 of a switch went silent: its register stands still at C = 900, death 7 of this
 * port. The controller's RESUME says port 3, death 7: the port leaves C's minimum. A second RESUME
 * for death 7 that was delayed arrives when the port has joined and died again (death 8). It
 * changes nothing: -ENOENT.
 *
 * Thread rules: one caller at a time for each node, which is the daemon's event loop.
 */
#ifndef BARLINE_FENCE_H
#define BARLINE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/meta_abi.h"

struct bpf_object;

/**
 * struct bl_fence - descriptors of the program bl_fence and of the maps that hold the state of the
 * inputs. -1: not open. @lives to @cfg are open on a switch only, @page on a host only.
 */
struct bl_fence {
	enum bl_role role;
	int prog, epoch, slots;
	int lives, ports, regs, lanes, cfg;
	int page;
};

#define BL_FENCE_NO_C (~0ULL)

/** struct bl_fence_port - the state of one input with respect to the commit barrier C. */
struct bl_fence_port {
	uint32_t port;
	uint32_t neighbour; /* node id in the last beacon that came in; 0: none came */
	uint32_t death;     /* how often the input went silent or was frozen */
	uint32_t policy;    /* that the neighbour says it has (struct bl_beacon); 0: not said */
	uint8_t role;       /* enum bl_port_role; a host's NIC: BL_PORT_UP */
	bool in;            /* in C's minimum */
	/*
	 * @in, but its C is not yet beyond what the outputs were given before it joined; never on a
	 * host
	 */
	bool behind;
	bool held;    /* frozen or silent: stands still at @c until it is resumed */
	bool live;    /* frames arrive, and it holds B back */
	bool barred;  /* its output promises no C, and the input does not join C */
	bool awaited; /* C waits for it, though nothing arrived since the registers are new */
	uint64_t c;   /* last commit barrier, 48 bits; BL_FENCE_NO_C: none, or not @in */
};

/** bl_fence_none - sets all descriptors to -1. */
void bl_fence_none(struct bl_fence *f);

/**
 * bl_fence_open - duplicates the descriptors of the maps of @obj that it needs, and that of the
 * program bl_fence, @prog. f->role is set. Returns 0 or -errno; bl_fence_close() cleans up in
 * either case.
 */
int bl_fence_open(struct bl_fence *f, struct bpf_object *obj, int prog, struct bl_err *err);
void bl_fence_close(struct bl_fence *f);

/** bl_fence_epoch - the highest epoch that this node ever heard; it survives the daemon. */
uint64_t bl_fence_epoch(const struct bl_fence *f);

/**
 * bl_fence_raise - refuses commands of a lower epoch from now on. Returns 0, or -ESTALE if @epoch
 * is lower than the highest one (counted as "epoch_old").
 */
int bl_fence_raise(struct bl_fence *f, uint64_t epoch);

/**
 * bl_fence_freeze - freezes the input at @port: it does not raise C any more. No-op if it is frozen
 * or silent already.
 * @p: its state afterwards, with the new death number; if @in is false, it was not part of C.
 * Returns 0 or -errno; -ESTALE: old epoch; -ENOENT: no such port; -EBUSY: a lane would not rest.
 */
int bl_fence_freeze(struct bl_fence *f, uint64_t epoch, uint32_t port, struct bl_fence_port *p);

/**
 * bl_fence_bar - the outputs of exactly these ports promise no C from now on, and their inputs do
 * not join C; all other ports are free. Returns 0 or -errno, as bl_fence_freeze().
 */
int bl_fence_bar(struct bl_fence *f, uint64_t epoch, const uint32_t *port, unsigned int nports);

/**
 * bl_fence_resume - takes the input at @port, which stands still since @death, out of C. Returns 0
 * or -errno; -ESTALE: old epoch; -ENOENT: no such port, or another death.
 */
int bl_fence_resume(struct bl_fence *f, uint64_t epoch, uint32_t port, uint32_t death);

/**
 * bl_fence_empty - ends C's waiting for the input at @port, where nothing arrived since the
 * registers were made. Returns 0 or -errno; -ESTALE: old epoch; -ENOENT: no such port.
 */
int bl_fence_empty(struct bl_fence *f, uint64_t epoch, uint32_t port);

/**
 * bl_fence_inputs - reads the state of the inputs in use, in ascending order of ports. A host has
 * one input, its NIC.
 * @max: room in @v.
 * Returns the count or -errno.
 */
int bl_fence_inputs(const struct bl_fence *f, struct bl_fence_port *v, unsigned int max);

#endif
