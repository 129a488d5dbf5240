/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fastpass's thread, as the loader's other files see it: fastpass.c. */
#ifndef BARLINE_FASTPASS_H
#define BARLINE_FASTPASS_H

#include "proto/fastpass_file.h"

struct bl_node;
struct bl_server;
struct bpf_object;

/**
 * bl_fastpass_add - the host asks the file's arbiters for timeslots from now on. The thread of the
 * caller is in the host's namespace; pacer and clock are there. @obj: the host's programs.
 */
int bl_fastpass_add(struct bl_node *n, struct bpf_object *obj, const struct bl_fp_file *f,
		    struct bl_err *err);
void bl_fastpass_remove(struct bl_node *n);
/** bl_fastpass_start - the thread, once; not from within a node's namespace. */
int bl_fastpass_start(struct bl_server *s, struct bl_err *err);
void bl_fastpass_stop(struct bl_server *s);

#endif
