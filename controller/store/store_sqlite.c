// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The store in one SQLite file, for a single controller. The rules are those of etcd: epochs only
 * rise, and a write names the epoch and the revision that the writer expects.
 *
 * The leader is the process that holds a lock on FILE.leader. The epoch is a number in the file,
 * which each process that gets the lock increments. The lock ends with its process, however that
 * ends. There is no lease, since on one machine a stopped process cannot be told from a slow one. A
 * second process with the same file waits for the lock without a limit; its status tells which
 * process holds the lock, and whether that process is stopped.
 *
 * Example: a controller that is started for the third time has epoch 3. put(3, "failure/7", 0) is
 * one transaction: the epoch is still 3, there is no such key, write it, revision 19. A process
 * that is left over from epoch 2 is refused, fenced.
 *
 * If the disk is full, writes are refused with a sentence, and what was there is kept. A damaged
 * file is refused when it is opened (quick_check reads all of it): a controller that forgot a
 * failure would let messages be delivered that must be discarded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/sqlite.h"
#include "controller/store/store_priv.h"

#define APPLICATION 0x626c6374 /* "blct": PRAGMA application_id of our files */
#define FORMAT      1          /* PRAGMA user_version: format of the tables */
#define AGAIN_MS    500        /* from one try to get the lock to the next */

/** struct later - An answer that waits to be given from the loop. */
struct later {
	struct later *next;
	bl_store_fn fn;
	void *ctx;
	struct bl_store_reply r;
	struct bl_store_kv *kv; /* the keys in @r, whose memory this struct owns */
	char text[512];         /* the text in @r */
};

/** struct watch - A watch of all keys with a prefix. */
struct watch {
	struct watch *next;
	const struct bl_store_watcher *w;
	char *prefix;
	bool fresh; /* its reset() was not called yet */
};

/** struct lite - The store. */
struct lite {
	struct bl_store s;
	sqlite3 *db;
	char *path; /* of the SQLite file */
	char *me;   /* content of the lock file while we lead */
	int lock;   /* FILE.leader; -1: not opened */
	/* bl_boot_ns() when another process was first seen to hold the lock; 0: none does */
	uint64_t waits_since;
	const struct bl_store_candidate *c; /* NULL: no campaign */
	bool troubled;                      /* @c was told of an error that is not over */
	struct later *first;                /* answers, oldest first */
	struct later **last;                /* where the next answer is linked */
	struct watch *watches;
	sd_event_source *turn;  /* gives the answers */
	sd_event_source *timer; /* tries to get the lock */
};

static struct lite *lite_of(struct bl_store *s)
{
	return (struct lite *)s;
}

/* ---- answers, given from the loop ---- */

static void later_free(struct later *l)
{
	size_t i;

	for (i = 0; i < l->r.n; i++) {
		free((void *)(uintptr_t)l->kv[i].key);
		free((void *)(uintptr_t)l->kv[i].value);
	}
	free(l->kv);
	free(l);
}

static struct later *queue_answer(struct lite *l, bl_store_fn fn, void *ctx)
{
	struct later *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->fn = fn;
	v->ctx = ctx;
	*l->last = v;
	l->last = &v->next;
	sd_event_source_set_enabled(l->turn, SD_EVENT_ONESHOT);
	return v;
}

static void read_into(struct lite *l, const char *prefix, bool one, struct later *v);

static int on_turn(sd_event_source *src, void *ctx)
{
	struct lite *l = ctx;
	struct watch *w;

	(void)src;
	for (w = l->watches; w; w = w->next) {
		struct later v = { 0 };

		if (!w->fresh)
			continue;
		read_into(l, w->prefix, false, &v);
		if (v.r.outcome != BL_STORE_DONE)
			continue;
		w->fresh = false;
		w->w->reset(w->w->ctx, &v.r);
		while (v.r.n) {
			v.r.n--;
			free((void *)(uintptr_t)v.kv[v.r.n].key);
			free((void *)(uintptr_t)v.kv[v.r.n].value);
		}
		free(v.kv);
	}
	while (l->first) {
		struct later *v = l->first;

		l->first = v->next;
		if (!l->first)
			l->last = &l->first;
		v->r.kv = v->kv;
		if (v->r.outcome != BL_STORE_DONE)
			v->r.text = v->text;
		v->fn(v->ctx, &v->r);
		later_free(v);
	}
	return 0;
}

/* ---- SQL ---- */

static const char *advice(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return "; make room on its file system";
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return "; restore a copy, or move it away to begin anew with no failure remembered";
	case SQLITE_READONLY:
		return "; the file or its directory cannot be written";
	case SQLITE_BUSY:
		return "; another program holds it";
	}
	return "";
}

static void format_error(struct lite *l, int code, char *text, size_t size)
{
	snprintf(text, size, "the store %s: %s%s", l->path,
		 l->db ? sqlite3_errmsg(l->db) : sqlite3_errstr(code), advice(code));
}

static void tell_trouble(struct lite *l, const char *text)
{
	if ((text || l->troubled) && l->c && l->c->trouble)
		l->c->trouble(l->c->ctx, text);
	l->troubled = text != NULL;
}

/* Reads a number from the first row of a query into *@v; 0 if there is no row. */
static int read_number(struct lite *l, const char *sql, const char *arg, uint64_t *v)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(l->db, sql, -1, &q, NULL);

	*v = 0;
	if (rc == SQLITE_OK && arg)
		rc = sqlite3_bind_text(q, 1, arg, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		*v = (uint64_t)sqlite3_column_int64(q, 0);
		rc = sqlite3_step(q);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int set_number(struct lite *l, const char *name, uint64_t v)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(l->db, "UPDATE number SET value = ?2 WHERE name = ?1", -1, &q,
				    NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 2, (sqlite3_int64)v);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_key(struct lite *l, const char *key, const void *value, size_t len, uint64_t rev)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(l->db,
				    value ? "INSERT OR REPLACE INTO kv (key, value, rev) VALUES "
					    "(?1, ?2, ?3)"
					  : "DELETE FROM kv WHERE key = ?1",
				    -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK && value)
		rc = sqlite3_bind_blob(q, 2, len ? value : "", (int)len, SQLITE_STATIC);
	if (rc == SQLITE_OK && value)
		rc = sqlite3_bind_int64(q, 3, (sqlite3_int64)rev);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_sql(struct lite *l, const char *sql)
{
	return sqlite3_exec(l->db, sql, NULL, NULL, NULL);
}

/*
 * Ends a transaction that failed with @code, and describes the error in @text. Nothing of it is
 * written, unless the rollback fails as well.
 */
static enum bl_store_outcome roll_back(struct lite *l, int code, char *text, size_t size)
{
	format_error(l, code, text, size);
	if (!sqlite3_get_autocommit(l->db))
		run_sql(l, "ROLLBACK");
	return sqlite3_get_autocommit(l->db) ? BL_STORE_REFUSED : BL_STORE_UNKNOWN;
}

/* ---- reading and writing ---- */

static void read_into(struct lite *l, const char *prefix, bool one, struct later *v)
{
	sqlite3_stmt *q = NULL;
	size_t room = 0;
	int rc;

	v->r.outcome = BL_STORE_DONE;
	rc = read_number(l, "SELECT value FROM number WHERE name = 'rev'", NULL, &v->r.rev);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(l->db,
					one ? "SELECT key, value, rev FROM kv WHERE key = ?1"
					    : "SELECT key, value, rev FROM kv WHERE substr(key, 1, "
					      "length(?1)) = ?1 ORDER BY key",
					-1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(q, 1, prefix, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		size_t len = (size_t)sqlite3_column_bytes(q, 1);
		const void *blob = sqlite3_column_blob(q, 1);
		char *key = strdup((const char *)sqlite3_column_text(q, 0));
		uint8_t *value = malloc(len + 1);

		if (v->r.n == room) {
			struct bl_store_kv *more = realloc(v->kv, (room * 2 + 16) * sizeof(*more));

			if (more) {
				v->kv = more;
				room = room * 2 + 16;
			}
		}
		if (!key || !value || v->r.n == room) {
			free(key);
			free(value);
			rc = SQLITE_NOMEM;
			break;
		}
		if (len)
			memcpy(value, blob, len);
		value[len] = 0;
		v->kv[v->r.n++] =
			(struct bl_store_kv){ .key = key,
					      .value = value,
					      .len = len,
					      .rev = (uint64_t)sqlite3_column_int64(q, 2) };
		rc = SQLITE_OK;
	}
	sqlite3_finalize(q);
	v->r.kv = v->kv;
	if (rc == SQLITE_DONE)
		return;
	v->r.outcome = BL_STORE_REFUSED;
	v->r.why = BL_STORE_WHY_DOWN;
	format_error(l, rc, v->text, sizeof(v->text));
}

static void lite_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx)
{
	struct lite *l = lite_of(s);
	struct later *v = queue_answer(l, fn, ctx);

	if (v) {
		v->r.epoch = s->epoch;
		read_into(l, prefix, one, v);
	}
}

/*
 * Does a put within a transaction, and ends it. Sets *@why if the conditions of the put do not
 * hold, and *@rev to the new revision.
 */
static int put_in_transaction(struct lite *l, uint64_t epoch, const char *key, uint64_t want,
			      const void *value, size_t len, enum bl_store_why *why, uint64_t *rev)
{
	uint64_t leads, have;
	int rc;

	rc = read_number(l, "SELECT value FROM number WHERE name = 'epoch'", NULL, &leads);
	if (rc == SQLITE_OK)
		rc = read_number(l, "SELECT rev FROM kv WHERE key = ?1", key, &have);
	if (rc == SQLITE_OK)
		rc = read_number(l, "SELECT value FROM number WHERE name = 'rev'", NULL, rev);
	if (rc != SQLITE_OK)
		return rc;
	if (!epoch || leads != epoch)
		*why = BL_STORE_WHY_FENCED;
	else if (want != BL_STORE_ANY && want != have)
		*why = BL_STORE_WHY_CONFLICT;
	if (*why != BL_STORE_WHY_NONE)
		return run_sql(l, "ROLLBACK");
	rc = write_key(l, key, value, len, ++*rev);
	if (rc == SQLITE_OK)
		rc = set_number(l, "rev", *rev);
	return rc == SQLITE_OK ? run_sql(l, "COMMIT") : rc;
}

static void tell_watches(struct lite *l, const char *key, const void *value, size_t len,
			 uint64_t rev)
{
	const struct bl_store_kv kv = { .key = key, .value = value, .len = len, .rev = rev };
	struct watch *w;

	for (w = l->watches; w; w = w->next)
		if (!w->fresh && !strncmp(key, w->prefix, strlen(w->prefix)))
			w->w->event(w->w->ctx, &kv);
}

/** struct write - A put that waits to be done in the loop. */
struct write {
	struct lite *l;
	bl_store_fn fn;
	void *ctx;
	uint64_t epoch;
	uint64_t rev; /* expected revision */
	size_t len;   /* bytes of @value */
	bool remove;  /* the key is to be deleted */
	char key[BL_STORE_KEY_MAX + 1];
	uint8_t value[];
};

/* Called from the loop, so that watchers are not called from within a put either. */
static void write_now(void *ctx, const struct bl_store_reply *unused)
{
	struct write *w = ctx;
	struct lite *l = w->l;
	struct bl_store_reply r = { .outcome = BL_STORE_DONE };
	const void *value = w->remove ? NULL : w->value;
	char text[512] = "";
	int rc;

	(void)unused;
	rc = run_sql(l, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = put_in_transaction(l, w->epoch, w->key, w->rev, value, w->len, &r.why, &r.rev);
	if (rc != SQLITE_OK) {
		r.why = BL_STORE_WHY_DOWN;
		r.outcome = roll_back(l, rc, text, sizeof(text));
		if (r.outcome == BL_STORE_UNKNOWN)
			r.why = BL_STORE_WHY_NONE;
	} else if (r.why != BL_STORE_WHY_NONE) {
		r.outcome = BL_STORE_REFUSED;
		snprintf(text, sizeof(text), "%s",
			 r.why == BL_STORE_WHY_FENCED ? "another controller leads"
						      : "another process wrote the key");
	}
	r.text = r.outcome == BL_STORE_DONE ? NULL : text;
	tell_trouble(l, rc == SQLITE_OK ? NULL : text);
	if (r.outcome == BL_STORE_DONE)
		tell_watches(l, w->key, value, w->len, r.rev);
	w->fn(w->ctx, &r);
	if (r.why == BL_STORE_WHY_FENCED && l->s.epoch == w->epoch && l->s.epoch) {
		l->s.epoch = l->s.held_until = 0;
		if (l->c)
			l->c->lost(l->c->ctx, "another controller uses the same file");
	}
	free(w);
}

static void lite_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		     const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	struct write *w = calloc(1, sizeof(*w) + len);

	if (!w)
		return;
	*w = (struct write){ .l = lite_of(s),
			     .fn = fn,
			     .ctx = ctx,
			     .epoch = epoch,
			     .rev = rev,
			     .len = len,
			     .remove = !value };
	snprintf(w->key, sizeof(w->key), "%s", key);
	if (value && len)
		memcpy(w->value, value, len);
	if (!queue_answer(w->l, write_now, w))
		free(w);
}

static int lite_watch(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w)
{
	struct lite *l = lite_of(s);
	struct watch *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = (struct watch){ .next = l->watches, .w = w, .prefix = strdup(prefix), .fresh = true };
	if (!v->prefix) {
		free(v);
		return -ENOMEM;
	}
	l->watches = v;
	return sd_event_source_set_enabled(l->turn, SD_EVENT_ONESHOT);
}

/* ---- who leads ---- */

static int try_again(sd_event_source *src, uint64_t usec, void *ctx);

/* Increments the epoch in the file and returns it; 0: that failed and was reported. */
static uint64_t next_epoch(struct lite *l)
{
	uint64_t epoch = 0;
	char text[512];
	int rc = run_sql(l, "BEGIN IMMEDIATE");

	if (rc == SQLITE_OK)
		rc = read_number(l, "SELECT value FROM number WHERE name = 'epoch'", NULL, &epoch);
	if (rc == SQLITE_OK)
		rc = set_number(l, "epoch", ++epoch);
	if (rc == SQLITE_OK)
		rc = run_sql(l, "COMMIT");
	if (rc != SQLITE_OK)
		roll_back(l, rc, text, sizeof(text));
	tell_trouble(l, rc == SQLITE_OK ? NULL : text);
	return rc == SQLITE_OK ? epoch : 0;
}

static void try_lead(struct lite *l)
{
	char who[256] = "", text[512];
	uint64_t epoch;
	ssize_t n;

	if (flock(l->lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK) {
			snprintf(text, sizeof(text), "cannot lock the store %s: %s", l->path,
				 strerror(errno));
			tell_trouble(l, text);
			bl_store_once(l->s.ev, &l->timer, AGAIN_MS, try_again, l);
			return;
		}
		if (!l->waits_since)
			l->waits_since = bl_boot_ns();
		n = pread(l->lock, who, sizeof(who) - 1, 0);
		if (n > 0 && l->c->other)
			l->c->other(l->c->ctx, who);
		bl_store_once(l->s.ev, &l->timer, AGAIN_MS, try_again, l);
		return;
	}
	l->waits_since = 0;
	epoch = next_epoch(l);
	if (!epoch) {
		flock(l->lock, LOCK_UN);
		bl_store_once(l->s.ev, &l->timer, AGAIN_MS, try_again, l);
		return;
	}
	/*
	 * The text is for people and other(). Only the lock counts, so a full disk does no harm
	 * here.
	 */
	if (ftruncate(l->lock, 0) || pwrite(l->lock, l->me, strlen(l->me), 0) < 0)
		tell_trouble(l, "cannot write the leader's address into the lock file");
	l->s.epoch = epoch;
	l->s.held_until = BL_STORE_ANY;
	l->c->elected(l->c->ctx, epoch);
}

static int try_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	try_lead(ctx);
	return 0;
}

/*
 * Returns the id of the process that holds the lock, as /proc/locks shows it; 0: it shows none, for
 * instance because that process is in an outer pid namespace.
 */
static unsigned int lock_holder(const struct lite *l)
{
	FILE *f = fopen("/proc/locks", "re");
	unsigned int pid = 0, found = 0;
	unsigned long long ino;
	char line[256];
	struct stat st;

	if (f && !fstat(l->lock, &st))
		while (!found && fgets(line, sizeof(line), f))
			if (sscanf(line, "%*u: FLOCK %*s %*s %u %*x:%*x:%llu", &pid, &ino) == 2 &&
			    ino == st.st_ino)
				found = pid;
	if (f)
		fclose(f);
	return found;
}

static void lite_waits(const struct bl_store *s, char *text, size_t size)
{
	const struct lite *l = (const struct lite *)s;
	char path[64], said[256] = "", who[96] = "another process", *name, *end;
	unsigned int pid = l->waits_since ? lock_holder(l) : 0;
	FILE *f;

	if (!l->waits_since)
		return;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = pid ? fopen(path, "re") : NULL;
	if (f && fread(said, 1, sizeof(said) - 1, f) && (name = strchr(said, '(')) &&
	    (end = strrchr(said, ')')) && end[1] == ' ')
		snprintf(who, sizeof(who), "process %u (%.*s)%s", pid, (int)(end - name - 1),
			 name + 1, end[2] == 'T' || end[2] == 't' ? ", which is stopped," : "");
	if (f)
		fclose(f);
	snprintf(text, size, "%s holds the store %s; this controller has waited for it for %llu s",
		 who, l->path, (unsigned long long)((bl_boot_ns() - l->waits_since) / 1000000000));
}

static int lite_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
			 struct bl_err *err)
{
	struct lite *l = lite_of(s);
	char path[512];

	l->c = c;
	l->me = strdup(me);
	snprintf(path, sizeof(path), "%s.leader", l->path);
	l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (!l->me || l->lock < 0)
		return bl_fail(err, errno, "cannot open %s: %s", path, strerror(errno));
	bl_store_once(l->s.ev, &l->timer, 0, try_again, l);
	return 0;
}

static void lite_resign(struct bl_store *s, unsigned int ms)
{
	struct lite *l = lite_of(s);

	(void)ms;
	sd_event_source_disable_unref(l->timer);
	l->timer = NULL;
	flock(l->lock, LOCK_UN);
}

/* ---- the file ---- */

static void lite_close(struct bl_store *s)
{
	struct lite *l = lite_of(s);

	while (l->first) {
		struct later *v = l->first;

		l->first = v->next;
		if (v->fn == write_now)
			free(v->ctx);
		later_free(v);
	}
	while (l->watches) {
		struct watch *w = l->watches;

		l->watches = w->next;
		free(w->prefix);
		free(w);
	}
	sd_event_source_disable_unref(l->turn);
	sd_event_source_disable_unref(l->timer);
	sqlite3_close(l->db);
	if (l->lock >= 0)
		close(l->lock);
	sd_event_unref(l->s.ev);
	free(l->path);
	free(l->me);
	free(l);
}

static const struct bl_store_ops lite_ops = { .close = lite_close,
					      .range = lite_range,
					      .put = lite_put,
					      .watch = lite_watch,
					      .campaign = lite_campaign,
					      .resign = lite_resign,
					      .waits = lite_waits };

static int first_text(void *ctx, int n, char **v, char **names)
{
	char *to = ctx;

	(void)names;
	if (n > 0 && v[0] && !*to)
		snprintf(to, 200, "%s", v[0]);
	return 0;
}

static int make_tables(struct lite *l)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE;"
		 "CREATE TABLE kv (key TEXT PRIMARY KEY, value BLOB NOT NULL, rev INTEGER NOT "
		 "NULL) WITHOUT ROWID;"
		 "CREATE TABLE number (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT "
		 "ROWID;"
		 "INSERT INTO number VALUES ('epoch', 0), ('rev', 0);"
		 "PRAGMA application_id = %d; PRAGMA user_version = %d;"
		 "COMMIT",
		 APPLICATION, FORMAT);
	return run_sql(l, sql);
}

static int check_file(struct lite *l, struct bl_err *err)
{
	uint64_t application = 0, format = 0, tables = 0;
	char said[200] = "", text[400];
	int rc;

	/* Of two controllers that start together, the second waits until the file is made. */
	sqlite3_busy_timeout(l->db, 2000);
	rc = run_sql(l, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
	if (rc == SQLITE_OK)
		rc = read_number(l, "SELECT count(*) FROM sqlite_master", NULL, &tables);
	if (rc == SQLITE_OK && !tables && make_tables(l) != SQLITE_OK &&
	    !sqlite3_get_autocommit(l->db))
		/* Another process made it meanwhile; otherwise the checks below fail. */
		run_sql(l, "ROLLBACK");
	if (rc == SQLITE_OK)
		rc = read_number(l, "PRAGMA application_id", NULL, &application);
	if (rc == SQLITE_OK)
		rc = read_number(l, "PRAGMA user_version", NULL, &format);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(l->db, "PRAGMA quick_check(1)", first_text, said, NULL);
	if (rc != SQLITE_OK) {
		format_error(l, rc, text, sizeof(text));
		return bl_fail(err,
			       rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB ? EBADMSG
			       : rc == SQLITE_FULL                         ? ENOSPC
									   : EIO,
			       "%s", text);
	}
	if (strcmp(said, "ok"))
		return bl_fail(err, EBADMSG, "the store %s is damaged (%s)%s", l->path, said,
			       advice(SQLITE_CORRUPT));
	if (application != APPLICATION)
		return bl_fail(err, tables ? EBADMSG : ENOSPC,
			       tables ? "%s is a database, but none of barline's controllers"
				      : "the store %s cannot be made; is its file system full?",
			       l->path);
	if (format != FORMAT)
		return bl_fail(err, EPROTO, "the store %s has format %llu, this build speaks %d",
			       l->path, (unsigned long long)format, FORMAT);
	return 0;
}

int bl_store_sqlite(struct bl_store **out, sd_event *ev, const char *path, struct bl_err *err)
{
	int rc = bl_library_load(BL_LIBRARY_SQLITE, err);
	struct lite *l;

	*out = NULL;
	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return bl_fail(err, ENOMEM, "out of memory");
	l->s.ops = &lite_ops;
	l->s.ev = sd_event_ref(ev);
	l->lock = -1;
	l->last = &l->first;
	l->path = strdup(path);
	if (!l->path || sd_event_add_defer(ev, &l->turn, on_turn, l) < 0) {
		lite_close(&l->s);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	sd_event_source_set_enabled(l->turn, SD_EVENT_OFF);
	rc = sqlite3_open_v2(path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (rc != SQLITE_OK)
		rc = bl_fail(err, EIO, "cannot open the store %s: %s", path,
			     l->db ? sqlite3_errmsg(l->db) : sqlite3_errstr(rc));
	else
		rc = check_file(l, err);
	if (rc)
		lite_close(&l->s);
	else
		*out = &l->s;
	return rc;
}
