/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fastpass's thread, as the loader's other files see it: see fastpass.c. */
#ifndef BARLINE_ADMISSION_FASTPASS_H
#define BARLINE_ADMISSION_FASTPASS_H

#include "proto/fastpass_file.h"

struct bl_node;
struct bl_server;
struct bpf_object;

/**
 * bl_fastpass_add - from now on the host asks the file's arbiters for timeslots. The calling thread
 * is in the host's namespace; the node has its pacer and clock. @obj: the host's programs. Returns
 * 0 or -errno with @err.
 */
int bl_fastpass_add(struct bl_node *n, struct bpf_object *obj, const struct bl_fp_file *f,
		    struct bl_err *err);
/** bl_fastpass_remove - ends that; no-op for a node that was not added. */
void bl_fastpass_remove(struct bl_node *n);
/**
 * bl_fastpass_start - starts the server's thread, if it does not run. Must not be called from
 * within a node's network namespace. Returns 0 or -errno with @err.
 */
int bl_fastpass_start(struct bl_server *s, struct bl_err *err);
/** bl_fastpass_stop - ends the thread. All nodes were removed before. */
void bl_fastpass_stop(struct bl_server *s);

#endif
