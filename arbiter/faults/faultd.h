/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fault isolation service's process (faults.h has what it does): a UDP socket for hosts and
 * arbiters, and a Unix socket for people.
 */
#ifndef BARLINE_ARBITER_FAULTD_H
#define BARLINE_ARBITER_FAULTD_H

#include "proto/fastpass_file.h"

#define BL_FAULTD_STATUS "/faults-%llu.sock" /* in BL_RUN_DIR: network namespace */

struct bl_faultd;

/**
 * bl_faultd_new - sockets at @f's address, in the network namespace of the calling thread; nothing
 * runs yet. @f stays the caller's and must outlive it. Returns 0 or -errno.
 */
int bl_faultd_new(struct bl_faultd **out, const struct bl_fp_file *f, struct bl_err *err);
/** bl_faultd_run - until bl_faultd_stop(), which may be called from anywhere. */
int bl_faultd_run(struct bl_faultd *d, struct bl_err *err);
void bl_faultd_stop(struct bl_faultd *d);
void bl_faultd_free(struct bl_faultd *d);

/**
 * bl_faultd_text - what `barline arbiter faults show` reads: one JSON object, from malloc(); NULL:
 * out of memory. From any thread.
 */
char *bl_faultd_text(struct bl_faultd *d);

#endif
