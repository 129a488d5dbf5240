/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arbiter's status socket (base/status_socket.h), which `barline arbiter show` reads. One line
 * that is sent to it has an effect: "usable SRC DST MASK\n" (two racks and, in hexadecimal, the
 * bits of the paths between them that work). The order "reload\n" has the file read again, and the
 * answer is the result (arbiter/reload.h).
 */
#ifndef BARLINE_ARBITER_STATUS_H
#define BARLINE_ARBITER_STATUS_H

#include <stddef.h>

#include "base/log.h"

#define BL_ARB_STATUS "/arbiter-%llu-%u.sock" /* in BL_RUN_DIR: network namespace, rank */

struct bl_arb;
struct bl_arb_reload;
struct bl_arb_status;
struct bl_engine;
struct bl_fp_file;

/**
 * bl_arb_serve - Start a thread that answers each connection to the status socket with one JSON
 * object, until bl_arb_serve_end(). The arguments must live until then. @reload: NULL: there is no
 * file.
 *
 * Returns 0 or -errno with @err.
 */
int bl_arb_serve(struct bl_arb_status **out, struct bl_arb *a, const struct bl_fp_file *f,
		 struct bl_engine *e, unsigned int rank, struct bl_arb_reload *reload,
		 struct bl_err *err);
/** bl_arb_serve_end - Stop the thread and remove the socket. NULL: no-op. */
void bl_arb_serve_end(struct bl_arb_status *s);

/**
 * bl_arb_text - The answer of that thread: one JSON object on one line.
 * @len: set to its length.
 *
 * Returns a string from malloc(); NULL if memory is short.
 */
char *bl_arb_text(struct bl_arb *a, const struct bl_fp_file *f, struct bl_engine *e,
		  unsigned int rank, size_t *len);

#endif
