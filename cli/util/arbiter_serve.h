/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Fastpass arbiter in this process: `barline arbiter run`, and the arbiters of a lab.
 */
#ifndef BARLINE_CLI_UTIL_ARBITER_SERVE_H
#define BARLINE_CLI_UTIL_ARBITER_SERVE_H

struct bl_fp_file;
struct bl_arb_cfg;

/**
 * arb_serve - Runs the arbiter of @rank until SIGTERM or SIGINT.
 * @f: the configuration that all arbiters and hosts share
 * @how: threads, CPUs, spinning, and the interface of the group; everything else is taken from @f
 * @path: of the file that @f was read from, which is read again on SIGHUP; NULL: none. The caller
 * has called bl_hangup_block() (base/hangup.h).
 * @ready: called before the first request is served; NULL: none
 * Returns 0, or 1 after a message.
 */
int arb_serve(const struct bl_fp_file *f, unsigned int rank, const struct bl_arb_cfg *how,
	      const char *path, void (*ready)(void *ctx), void *ctx);

#endif
