/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the controller's file again, on SIGHUP and on the order "reload" at the status socket, and
 * applies all that is different, or nothing.
 *
 * A thread of its own (of SIGHUP, or of the status socket) reads and validates the file and the
 * certificates, so neither a slow disk nor a mistake delays the event loop. Then the event loop
 * compares the file with what it runs with, and applies it between two events: a decision sees one
 * set of settings. A limit of time that something waits for already is not changed. A controller
 * that leads and one in standby do the same; what concerns the lead has its effect when it leads.
 *
 * Which settings can change is in the table of reload.c, and in docs/controller.md, which a test
 * compares.
 */
#ifndef BARLINE_CONTROLLER_RELOAD_H
#define BARLINE_CONTROLLER_RELOAD_H

#include "base/changes.h"
#include "controller/ctl_priv.h"

/** struct ctl_setting - A setting of the file, except nodes and etcd's endpoints. */
struct ctl_setting {
	const char *path; /* as in "tls.ca" */
	enum { CTL_TEXT, CTL_U32, CTL_TRUTH } kind;
	size_t at; /* in struct bl_ctl_cfg */
	enum bl_change change;
	const char *why; /* as of struct bl_changed */
};

/** ctl_settings - The settings, *@n of them. */
const struct ctl_setting *ctl_settings(unsigned int *n);

/** ctl_changes - Collects the settings in which @now differs from @was, both with defaults. */
void ctl_changes(struct bl_changes *c, const struct bl_ctl_cfg *was, const struct bl_ctl_cfg *now);

/** ctl_tls_open - Reads the certificates of @cfg; *@out is NULL without. Returns 0 or -errno. */
int ctl_tls_open(struct bl_session_tls **out, const struct bl_ctl_cfg *cfg, struct bl_err *err);

/** ctl_limits - The limits of the failure procedure in @cfg. */
struct bl_recover_cfg ctl_limits(const struct bl_ctl_cfg *cfg);

/** ctl_reload_open - Adds the source of reloads to the event loop. Returns 0 or -errno. */
int ctl_reload_open(struct bl_ctl *c, struct bl_err *err);

/**
 * ctl_reload_end - Ends the thread of SIGHUP, and lets a reload go that waits for the event loop,
 * which does not turn any more.
 */
void ctl_reload_end(struct bl_ctl *c);

/** ctl_reload_close - Undoes ctl_reload_open(). No other thread uses @c. */
void ctl_reload_close(struct bl_ctl *c);

/**
 * ctl_reload_answer - Reloads, in the thread of the status socket. Takes the controller's lock.
 * Returns a JSON object as text, which the caller frees; NULL: out of memory. Its members: pid,
 * addr; reloaded, a boolean; error: why not, or ""; changes: see bl_changes_json().
 */
char *ctl_reload_answer(struct bl_ctl *c);

#endif
