/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two stores share with store_common.c. */
#ifndef BARLINE_CONTROLLER_STORE_PRIV_H
#define BARLINE_CONTROLLER_STORE_PRIV_H

#include "controller/store/store.h"

#define BL_STORE_LEADER "leader" /* the key of the election */

/** struct bl_store_ops - An implementation; see the functions of these names in store.h. */
struct bl_store_ops {
	void (*close)(struct bl_store *s);
	void (*range)(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx);
	void (*put)(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		    const void *value, size_t len, bl_store_fn fn, void *ctx);
	int (*watch)(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w);
	int (*campaign)(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
			struct bl_err *err);
	void (*resign)(struct bl_store *s, unsigned int ms);
	void (*waits)(const struct bl_store *s, char *text, size_t size); /* NULL: it cannot tell */
};

struct bl_store_sure;

/** struct bl_store - The first member of both implementations. */
struct bl_store {
	const struct bl_store_ops *ops;
	sd_event *ev;
	uint64_t epoch;             /* that we were elected with; 0: not elected */
	uint64_t held_until;        /* see bl_store_held_until() */
	struct bl_store_sure *sure; /* puts of bl_store_put_sure() whose outcome is not known */
};

/**
 * bl_store_once - Calls @fn with @ctx after @ms milliseconds, once. The timer *@src is freed first
 * and then set to the new one.
 *
 * Returns 0 or -errno.
 */
int bl_store_once(sd_event *ev, sd_event_source **src, uint64_t ms, sd_event_time_handler_t fn,
		  void *ctx);

#endif
