/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A host's reports to the fault isolation service: fastpass_faults.c. */
#ifndef BARLINE_FPFAULTS_H
#define BARLINE_FPFAULTS_H

#include "proto/fastpass_file.h"

struct bpf_object;

struct bl_freport;

/**
 * bl_freport_open - the host is endpoint @self of @f, which has a service. The calling thread is
 * in the host's namespace; @obj: its programs. Returns 0 or -errno.
 */
int bl_freport_open(struct bl_freport **out, struct bpf_object *obj, const struct bl_fp_file *f,
		    uint32_t self, struct bl_err *err);
void bl_freport_close(struct bl_freport *r);
/**
 * bl_freport_turn - sends what is due at @now (CLOCK_MONOTONIC); bus time is @offset_ns more.
 * Returns when the next turn is due.
 */
uint64_t bl_freport_turn(struct bl_freport *r, uint64_t now, uint64_t offset_ns);

#endif
