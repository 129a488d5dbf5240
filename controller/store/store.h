/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The store of the controller's decisions: one interface with two implementations. etcd serves
 * several controllers of which one leads (store_etcd.c), SQLite a single one (store_sqlite.c).
 *
 * A key is a short text ("failure/0000000007"), a value is bytes. Each key has a revision: the
 * store's revision at the last write of the key. A write names the revision that the writer expects
 * and the writer's epoch:
 *
 *   elected(epoch 41)              the key "leader" was made at revision 41, with our lease
 *   put(41, "failure/7", 0, ...)   done, revision 44: there was no such key, and "leader" is
 *                                  still the one made at revision 41
 *   put(41, "failure/7", 44, ...)  refused, fenced: another controller leads since revision 52;
 *                                  nothing was written
 *
 * A write has three outcomes. UNKNOWN is not REFUSED: a put that timed out may appear later (etcd
 * gives up when the client's deadline passes, but the proposal may still be applied).
 * bl_store_put_sure() reads the key back until the outcome is known. Since each write names a
 * revision, a write that arrives late finds another revision and does nothing.
 *
 * A leader may believe that it leads only until bl_store_held_until(). That time comes from its own
 * clock (when the last successful keep-alive was *sent*, plus the lease, less a margin), never from
 * an answer of the store: a lease may outlive its time by far, and a store in trouble may revoke
 * it. What holds then are the fences: the epoch in the store, and the highest epoch that each node
 * has seen.
 *
 * Threads: all calls come from the thread that runs the event loop. Callbacks come from the loop,
 * never from within a call.
 */
#ifndef BARLINE_CONTROLLER_STORE_H
#define BARLINE_CONTROLLER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/library/systemd.h"
#include "base/log.h"
#include "base/time.h"

#define BL_STORE_KEY_MAX   200
#define BL_STORE_VALUE_MAX (1U << 20) /* etcd accepts 1.5 MiB for a whole request, in base64 */
#define BL_STORE_ANY       (~0ULL)    /* as a revision: whatever the key has */

enum bl_store_outcome {
	BL_STORE_DONE,    /* written, or read */
	BL_STORE_REFUSED, /* certainly not written, now or later */
	BL_STORE_UNKNOWN, /* perhaps written, now or later */
};

/* Why a write was refused: BL_STORE_WHY_x and its name. */
/* clang-format off */
#define BL_STORE_WHYS(X) \
	X(NONE,     "none") \
	X(FENCED,   "fenced")   /* another controller leads: the epoch is old */ \
	X(CONFLICT, "conflict") /* the key has another revision */ \
	X(DOWN,     "down")     /* the store accepts no writes: no quorum, unreachable, full */
/* clang-format on */
#define BL_STORE_ENUM(sym, name) BL_STORE_WHY_##sym,
enum bl_store_why { BL_STORE_WHYS(BL_STORE_ENUM) BL_STORE_WHY_COUNT };
#undef BL_STORE_ENUM

/** bl_store_why_name - Returns the name of @why; "?" if it is out of range. */
const char *bl_store_why_name(enum bl_store_why why);

/** struct bl_store_kv - A key and its value. */
struct bl_store_kv {
	const char *key;
	const uint8_t *value; /* NULL, in an event of a watch: the key was deleted */
	size_t len;           /* bytes of @value */
	uint64_t rev;         /* revision of the key's last write */
};

/** struct bl_store_reply - The result of a call. It is valid until the callback returns. */
struct bl_store_reply {
	enum bl_store_outcome outcome;
	enum bl_store_why why;        /* if @outcome is REFUSED */
	uint64_t rev;                 /* of a put: the key's new revision; of a read: the store's */
	const struct bl_store_kv *kv; /* of a read: @n keys, sorted */
	size_t n;
	const char *text; /* if @outcome is not DONE: the reason in a sentence */
	const char *key;  /* of bl_store_put_sure(): the key that was to be written */
	/*
	 * Of bl_store_put_sure(): the epoch that it was called with. Of bl_store_range(): the epoch
	 * that this controller led with when it was called; 0: none.
	 */
	uint64_t epoch;
};
typedef void (*bl_store_fn)(void *ctx, const struct bl_store_reply *r);

/** struct bl_store_watcher - Callbacks of a watch. */
struct bl_store_watcher {
	/* A key was written or deleted. */
	void (*event)(void *ctx, const struct bl_store_kv *kv);
	/*
	 * @r has all keys as they are now, and events follow from here. Called first, and again
	 * whenever events may have been missed (compaction, a connection lost for too long).
	 */
	void (*reset)(void *ctx, const struct bl_store_reply *r);
	void *ctx;
};

/** struct bl_store_candidate - Callbacks of an election. */
struct bl_store_candidate {
	/* This controller leads until lost(), with an @epoch higher than all before. */
	void (*elected)(void *ctx, uint64_t epoch);
	/* This controller no longer leads, for the reason @why. The campaign goes on by itself. */
	void (*lost)(void *ctx, const char *why);
	/* Another controller leads; @leader is the text that it gave to bl_store_campaign(). */
	void (*other)(void *ctx, const char *leader);
	/* The store cannot be used, for the reason @text; NULL: it can be used again. */
	void (*trouble)(void *ctx, const char *text);
	void *ctx;
};

#define BL_STORE_TTL_S  5           /* default lease in etcd, s */
#define BL_STORE_PREFIX "/barline/" /* default prefix of the keys in etcd */

/** struct bl_etcd_cfg - Settings of the store in etcd. */
struct bl_etcd_cfg {
	const char *const *endpoints; /* URLs of the members: "http://127.0.0.1:2379", ... */
	unsigned int nendpoints;
	const char *prefix; /* of all keys; NULL: BL_STORE_PREFIX */
	uint32_t ttl_s; /* lease, s; 0: BL_STORE_TTL_S; etcd gives at least 1.5 election timeouts */
	uint32_t request_ms; /* deadline of a request, ms; 0: a quarter of the lease */
	const char *ca;      /* PEM file of the authority for https; NULL: those of the system */
	const char *cert;    /* PEM file of the client's certificate; NULL: none */
	const char *key;     /* PEM file of its key; NULL: none */
};

struct bl_store;

/**
 * bl_store_etcd - Opens the store in etcd. No request is sent yet.
 *
 * Returns 0 or -errno with a text in @err.
 */
int bl_store_etcd(struct bl_store **out, sd_event *ev, const struct bl_etcd_cfg *cfg,
		  struct bl_err *err);

/**
 * bl_store_url_is_local - Whether @url, "http://HOST:PORT", names a loopback address: one in 127/8,
 * [::1] or localhost. Other names are not looked up, and are not local; nor is a URL with a user.
 */
bool bl_store_url_is_local(const char *url);

/**
 * bl_store_sqlite - Opens or makes the SQLite file @path and checks it.
 *
 * Returns 0 or -errno with a text in @err; -EBADMSG if the file is damaged.
 */
int bl_store_sqlite(struct bl_store **out, sd_event *ev, const char *path, struct bl_err *err);

/**
 * bl_store_close - Drops all requests without calling their callbacks, and frees the store. A lease
 * that is held is left to expire unless bl_store_resign() was called before. NULL: no-op.
 */
void bl_store_close(struct bl_store *s);

/**
 * bl_store_range - Reads all keys that begin with @prefix, or the key @prefix alone if @one. The
 * read is linearizable. @fn gets the result.
 */
void bl_store_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx);

/**
 * bl_store_put - Writes a key if @epoch leads and the key has the expected revision.
 * @rev: the expected revision; 0: the key does not exist; BL_STORE_ANY: no condition.
 * @value: NULL: deletes the key.
 * @len: bytes of @value.
 * @fn: gets the outcome.
 */
void bl_store_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		  const void *value, size_t len, bl_store_fn fn, void *ctx);

/**
 * bl_store_put_sure - As bl_store_put(), but reads back a write whose outcome is unknown, and
 * repeats one that was refused because the store is down, until the outcome is known or @epoch no
 * longer leads (REFUSED, FENCED). The reply names the key and @epoch: it may come when this
 * controller has lost the lead and leads with a later epoch again.
 *
 * Returns 0 or -errno; in the latter case nothing is written and @fn is not called.
 */
int bl_store_put_sure(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		      const void *value, size_t len, bl_store_fn fn, void *ctx);

/**
 * bl_store_watch - Watches the keys that begin with @prefix until the store is closed. There may be
 * one watch for each prefix. The caller keeps @w.
 *
 * Returns 0 or -errno.
 */
int bl_store_watch(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w);

/**
 * bl_store_campaign - Begins to campaign for the lead; to be called once. The caller keeps @c.
 * @me: text that other controllers get about this one while it leads.
 *
 * Returns 0 or -errno with a text in @err.
 */
int bl_store_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
		      struct bl_err *err);

/** bl_store_epoch - Returns the epoch that we lead with; 0: we do not, or can no longer be sure. */
uint64_t bl_store_epoch(const struct bl_store *s);

/**
 * bl_store_held_until - Returns the time until which we may believe that we lead, CLOCK_BOOTTIME in
 * ns; 0: we may not; BL_STORE_ANY: as long as the process lives.
 */
uint64_t bl_store_held_until(const struct bl_store *s);

/**
 * bl_store_waits - Writes into @text what a candidate that is not elected waits for, and since
 * when; "" if it cannot tell. Returns @text.
 */
const char *bl_store_waits(const struct bl_store *s, char *text, size_t size);

/** bl_store_resign - Gives up the lead if it is held. Blocks for at most @ms. */
void bl_store_resign(struct bl_store *s, unsigned int ms);

/**
 * bl_boot_ns - CLOCK_BOOTTIME in ns. A machine that was suspended has lost its lease, which
 * CLOCK_MONOTONIC would not show.
 */
static inline uint64_t bl_boot_ns(void)
{
	return bl_clock_ns(CLOCK_BOOTTIME);
}

#endif
