/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process of the fault isolation service (faults.h): a UDP socket for hosts and arbiters, and a
 * status socket (base/status_socket.h), which `barline arbiter faults` uses. "clear\n", sent to the
 * status socket, makes all links good.
 */
#ifndef BARLINE_ARBITER_FAULTD_H
#define BARLINE_ARBITER_FAULTD_H

#include "proto/fastpass_file.h"

#define BL_FAULTD_STATUS "/faults-%llu.sock" /* in BL_RUN_DIR: network namespace */

struct bl_faultd;

/**
 * bl_faultd_new - Open the UDP socket at @f's address, in the network namespace of the calling
 * thread; nothing runs yet. @f must outlive the service. Returns 0 or -errno with @err.
 */
int bl_faultd_new(struct bl_faultd **out, const struct bl_fp_file *f, struct bl_err *err);
/** bl_faultd_run - Serve until bl_faultd_stop(). Returns 0 or -errno with @err. */
int bl_faultd_run(struct bl_faultd *d, struct bl_err *err);
/** bl_faultd_stop - Make bl_faultd_run() return soon. From any thread or signal handler. */
void bl_faultd_stop(struct bl_faultd *d);
/** bl_faultd_free - Release a service that does not run. NULL: no-op. */
void bl_faultd_free(struct bl_faultd *d);

/**
 * bl_faultd_text - The answer of the status socket: one JSON object on one line, from malloc().
 * Returns NULL if memory is short. From any thread.
 */
char *bl_faultd_text(struct bl_faultd *d);

#endif
