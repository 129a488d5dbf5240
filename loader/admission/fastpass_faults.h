/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A host's reports to the fault isolation service: see fastpass_faults.c. */
#ifndef BARLINE_ADMISSION_FASTPASS_FAULTS_H
#define BARLINE_ADMISSION_FASTPASS_FAULTS_H

#include "proto/fastpass_file.h"

struct bpf_object;

struct bl_freport;

/**
 * bl_freport_open - prepares the reports of a host that is endpoint @self of @f, which has a
 * service. The calling thread is in the host's namespace; @obj: the host's programs. Returns 0 or
 * -errno.
 */
int bl_freport_open(struct bl_freport **out, struct bpf_object *obj, const struct bl_fp_file *f,
		    uint32_t self, struct bl_err *err);
void bl_freport_close(struct bl_freport *r);
/**
 * bl_freport_turn - sends a round if one is due at @now (CLOCK_MONOTONIC, ns). @offset_ns: bus time
 * less CLOCK_MONOTONIC. Returns when the next call is due.
 */
uint64_t bl_freport_turn(struct bl_freport *r, uint64_t now, uint64_t offset_ns);

#endif
