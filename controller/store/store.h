/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the controller keeps what it decided: one interface, two stores. etcd when the controller
 * is replicated (store_etcd.c), SQLite when it is alone (store_sqlite.c).
 *
 * Keys are short text ("failure/0000000007"), values are bytes. Every key has a revision, the
 * store's at its last write; every write names the revision it believes in, and the epoch of the
 * one who writes:
 *
 *   elected(epoch 41)			the key "leader" was made at revision 41, and lives on our
 * lease put(41, "failure/7", 0, ...)	done, revision 44: no such key was there, and "leader" is
 * still the one of revision 41 put(41, "failure/7", 44, ...)	refused, fenced: another one leads
 * since revision 52; nothing was written
 *
 * A write has three outcomes. UNKNOWN is not REFUSED: a put that timed out may appear later
 * (reference: etcd answers a client's deadline, not its own). bl_store_put_sure() reads back until
 * it knows; since each write names a revision, one that comes late finds another revision and does
 * nothing.
 *
 * Who leads may believe it only while bl_store_held_until() lies ahead. That time is taken from its
 * own clock (when the last keep-alive that succeeded was *sent*, plus the lease, less a margin),
 * never from the store's word: a lease may outlive its time by far, and may also be revoked by a
 * store that is confused. Then the fence holds: in the store by the epoch, in the nodes by the
 * highest epoch that they saw.
 *
 * Thread rules: all calls from the thread that runs the event loop; callbacks come from the loop,
 * never from within a call.
 */
#ifndef BARLINE_CONTROLLER_STORE_H
#define BARLINE_CONTROLLER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "base/time.h"

#define BL_STORE_KEY_MAX   200
#define BL_STORE_VALUE_MAX (1U << 20) /* etcd takes 1.5 MiB for a whole request, in base64 */
#define BL_STORE_ANY       (~0ULL)    /* as a revision: whatever is there */

/* DONE: written, or read. REFUSED: certainly not written, and will not be. UNKNOWN: perhaps. */
enum bl_store_outcome { BL_STORE_DONE, BL_STORE_REFUSED, BL_STORE_UNKNOWN };

/* X(SYMBOL, "name"): why it was refused */
/* clang-format off */
#define BL_STORE_WHYS(X) \
	X(NONE,	    "none") \
	X(FENCED,   "fenced")	/* another one leads: the epoch is old */ \
	X(CONFLICT, "conflict")	/* the key has another revision */ \
	X(DOWN,	    "down")	/* the store takes nothing now: no quorum, out of reach, disk full */
/* clang-format on */
#define BL_STORE_ENUM(sym, name) BL_STORE_WHY_##sym,
enum bl_store_why { BL_STORE_WHYS(BL_STORE_ENUM) BL_STORE_WHY_COUNT };
#undef BL_STORE_ENUM
const char *bl_store_why_name(enum bl_store_why why);

/**
 * struct bl_store_kv - @rev: of the key's last write. @value NULL: the key was deleted (watches
 * only).
 */
struct bl_store_kv {
	const char *key;
	const uint8_t *value;
	size_t len;
	uint64_t rev;
};

/**
 * struct bl_store_reply - @rev: of the store: after a put, the key's new one; after a read, the one
 * that it is true at. @kv, @n: what was read, in the order of the keys; gone when the callback
 * returns.
 * @text: a sentence, if not DONE.
 */
struct bl_store_reply {
	enum bl_store_outcome outcome;
	enum bl_store_why why;
	uint64_t rev;
	const struct bl_store_kv *kv;
	size_t n;
	const char *text;
};
typedef void (*bl_store_fn)(void *ctx, const struct bl_store_reply *r);

/**
 * struct bl_store_watcher - @event: a key was written or deleted. @reset: from here on: @r is all
 * there is (at the start, and whenever what happened in between cannot be known: compaction, a lost
 * connection for too long).
 */
struct bl_store_watcher {
	void (*event)(void *ctx, const struct bl_store_kv *kv);
	void (*reset)(void *ctx, const struct bl_store_reply *r);
	void *ctx;
};

/**
 * struct bl_store_candidate - @elected: this one leads, with @epoch, which is higher than all
 * before; from now on until @lost. @lost: not any more; the campaign goes on by itself. @other:
 * @leader says that it leads (the text that it gave as @me). @trouble: the store cannot be used, in
 * a sentence; NULL: it can again.
 */
struct bl_store_candidate {
	void (*elected)(void *ctx, uint64_t epoch);
	void (*lost)(void *ctx, const char *why);
	void (*other)(void *ctx, const char *leader);
	void (*trouble)(void *ctx, const char *text);
	void *ctx;
};

/**
 * struct bl_etcd_cfg - @endpoints: "http://127.0.0.1:2379", ... @prefix: of all keys, "/barline/".
 * @ttl_s: of the lease; 0: 5. etcd gives at least 1.5 election timeouts. @request_ms: deadline of a
 * request; 0: a quarter of the lease.
 * @ca, @cert, @key: files for https; NULL: the system's authorities, no client certificate.
 */
struct bl_etcd_cfg {
	const char *const *endpoints;
	unsigned int nendpoints;
	const char *prefix;
	uint32_t ttl_s, request_ms;
	const char *ca, *cert, *key;
};

struct bl_store;

/**
 * bl_store_etcd - nothing is asked yet. bl_store_sqlite - opens or makes the file, and checks it:
 * a damaged one is refused in a sentence (-EBADMSG). Both return 0 or -errno.
 */
int bl_store_etcd(struct bl_store **out, sd_event *ev, const struct bl_etcd_cfg *cfg,
		  struct bl_err *err);
int bl_store_sqlite(struct bl_store **out, sd_event *ev, const char *path, struct bl_err *err);
/**
 * bl_store_close - what is under way is dropped, without callbacks; a lease that is held is left
 * to expire unless bl_store_resign() was called before.
 */
void bl_store_close(struct bl_store *s);

/** bl_store_range - keys that begin with @prefix, or one key if @one. Linearizable. */
void bl_store_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx);
/**
 * bl_store_put - writes @key (@value NULL: deletes it) if @epoch leads and the key's revision is
 * @rev (0: it is not there; BL_STORE_ANY). bl_store_put_sure - reads back what is unknown, and
 * tries again what was refused because the store is down, until the outcome is known or @epoch does
 * not lead any more (REFUSED, FENCED). Returns 0 or -errno; then nothing is written and @fn is not
 * called.
 */
void bl_store_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		  const void *value, size_t len, bl_store_fn fn, void *ctx);
int bl_store_put_sure(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		      const void *value, size_t len, bl_store_fn fn, void *ctx);
/**
 * bl_store_watch - one at a time for each prefix; ends with the store. @w stays the caller's.
 * Returns 0 or -errno.
 */
int bl_store_watch(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w);

/**
 * bl_store_campaign - once. @me: what others learn of the leader. @c stays the caller's. Returns 0
 * or -errno.
 */
int bl_store_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
		      struct bl_err *err);
/** bl_store_epoch - the one that we lead with; 0: we do not, or may not believe it any more. */
uint64_t bl_store_epoch(const struct bl_store *s);
/**
 * bl_store_held_until - CLOCK_BOOTTIME until which leading may be believed; 0: it may not.
 * BL_STORE_ANY: as long as the process lives.
 */
uint64_t bl_store_held_until(const struct bl_store *s);
/**
 * bl_store_waits - who campaigns in vain: for what, in a sentence, and since when; "": for nothing
 * that it could name. Returns @text.
 */
const char *bl_store_waits(const struct bl_store *s, char *text, size_t size);
/** bl_store_resign - gives the leadership back, if it is held, and waits for that at most @ms. */
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
