/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a reload finds: the settings in which a file differs from what a process runs with, and what
 * makes each of them take effect. Nodes, controllers and arbiters judge, log and report it alike.
 *
 *	bl_changes_compare(&c, BL_CHANGE_LIVE, "what waits keeps its limit", "5000", "6000",
 *			   "settle_us");
 *	rc = bl_changes_judge(&c, &err);	-EPERM: one of them takes more than a reload
 */
#ifndef BARLINE_BASE_CHANGES_H
#define BARLINE_BASE_CHANGES_H

#include <stdbool.h>

#include "base/log.h"

/** enum bl_change - what makes a changed setting take effect. */
enum bl_change {
	BL_CHANGE_LIVE,    /* a reload */
	BL_CHANGE_RESTART, /* a restart of the process, which loses nothing */
	BL_CHANGE_DETACH   /* a detach and a new start: the node leaves the rack meanwhile */
};

/** bl_change_name - "live", "restart" or "detach". */
const char *bl_change_name(enum bl_change change);

/**
 * bl_change_refuse - Fills @err with the refusal of a reload. @path: the first setting that takes
 * more than a reload; @more: there are others; @why: the reason. Returns -EPERM.
 */
int bl_change_refuse(const char *path, bool more, enum bl_change change, const char *why,
		     struct bl_err *err);

/** struct bl_changed - A setting that differs. */
struct bl_changed {
	char *path;      /* as in "tls.ca" */
	char *was, *now; /* as people write them; "": there is none */
	const char *why; /* why it takes that, or what a reader sees; a constant */
	enum bl_change change;
};

/** struct bl_changes - All of them; zeroed: none. */
struct bl_changes {
	struct bl_changed *v;
	unsigned int n;
	bool short_of_memory; /* at least one is missing in @v */
};

/** bl_changes_compare - Adds the setting called @path, printf(3), if @was and @now differ. */
void bl_changes_compare(struct bl_changes *c, enum bl_change change, const char *why,
			const char *was, const char *now, const char *path, ...)
	__attribute__((format(printf, 6, 7)));

/**
 * bl_changes_judge - Returns 0 if a reload can apply all of them; -EPERM: one takes more than that;
 * -ENOMEM.
 */
int bl_changes_judge(const struct bl_changes *c, struct bl_err *err);

/** bl_changes_free - Frees the rows; @c is zeroed. */
void bl_changes_free(struct bl_changes *c);

/**
 * bl_reload_file - Whether @path can be read without waiting for another process: a pipe could hold
 * up the thread that reads it. Returns 0 or -errno.
 */
int bl_reload_file(const char *path, struct bl_err *err);

/**
 * bl_reload_begins - Tells the service manager that a reload begins. systemd counts the unit as
 * reloading until bl_reload_ends() (sd_notify(3)).
 */
void bl_reload_begins(void);

/**
 * bl_reload_ends - Logs the result as an event, and tells the service manager.
 * @who: of the sentences, "h1" or "controller"
 * @node: name of the node; NULL: it is a controller or an arbiter
 * @rc: 0, or -errno with the reason in @err
 * @n: number of changes
 */
void bl_reload_ends(const char *who, const char *node, int rc, unsigned int n,
		    const struct bl_err *err);

/** bl_changes_log - Logs a line for each change; of many, the first ones and their number. */
void bl_changes_log(const struct bl_changes *c, const char *who);

#endif
