/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An arbiter reads its file again, on SIGHUP and on the order "reload" at its status socket, and
 * applies all that is different, or nothing.
 *
 * Most of the file takes a restart: hosts have the same file and read it when they start, arbiters
 * must agree on when one of them is dead, and the allocator is made for a number of endpoints and
 * slots. What an arbiter uses by itself while it runs changes live: how long it waits for an
 * acknowledgement, and who may send the list of broken links. Keys that only hosts or fault
 * isolation use are accepted, so one file can go to all machines.
 *
 * The file is read in a thread of its own, so no timeslot is late for it.
 */
#ifndef BARLINE_ARBITER_RELOAD_H
#define BARLINE_ARBITER_RELOAD_H

#include <stddef.h>

#include "base/changes.h"
#include "base/log.h"

struct bl_arb;
struct bl_arb_reload;
struct bl_fp_file;

/** bl_arb_changes - Collects the settings in which the file @now differs from @was. */
void bl_arb_changes(struct bl_changes *c, const struct bl_fp_file *was,
		    const struct bl_fp_file *now);

/**
 * bl_arb_reload_open - Starts the thread that waits for SIGHUP, which all threads have blocked
 * (base/hangup.h). @a runs with @f, which was read from @path; both must live until
 * bl_arb_reload_close(). Returns 0 or -errno.
 */
int bl_arb_reload_open(struct bl_arb_reload **out, struct bl_arb *a, const struct bl_fp_file *f,
		       const char *path, struct bl_err *err);
/** bl_arb_reload_close - Ends that thread. No-op for NULL. */
void bl_arb_reload_close(struct bl_arb_reload *r);

/**
 * bl_arb_reload_answer - Reloads, in the thread of the status socket. Returns a JSON object on one
 * line of *@len bytes, which the caller frees: pid, addr, reloaded, error, changes, as of a
 * controller (controller/reload.h). NULL: out of memory. @r: NULL: it was started without a file.
 */
char *bl_arb_reload_answer(struct bl_arb_reload *r, size_t *len);

#endif
