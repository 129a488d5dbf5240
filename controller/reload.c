// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See reload.h. */
#include "controller/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/changes_json.h"
#include "base/hangup.h"
#include "base/text.h"
#include "base/time.h"
#include "controller/nodes.h"
#include "controller/server.h"
#include "controller/sessions.h"

#define NS_PER_MS 1000000ULL

/* A client of the status socket waits longer (STATUS_WAIT_MS of cli/util/status.h). */
#define LOOP_WAIT_NS 2500000000ULL

/** struct ctl_reload_ask - What a thread that has read a file asks of the event loop. */
struct ctl_reload_ask {
	struct bl_ctl_cfg now;      /* with defaults; @nodes is taken over if it is applied */
	struct bl_session_tls *tls; /* of @now; the loop puts the one of before here */
	struct bl_changes changes;  /* filled by the loop, as are the next two */
	int rc;
	struct bl_err err;
};

/* ---- what is different ---- */

#define AT(member) offsetof(struct bl_ctl_cfg, member)

static const char listens[] = "nodes and other controllers know this one by its address";
static const char store[] = "the store is opened at the start";
static const char sessions[] = "sessions that begin from now on have it; the others go on";
static const char waits[] = "what is being waited for keeps its limit";

static const struct ctl_setting table[] = {
	{ "listen", CTL_TEXT, AT(listen), BL_CHANGE_RESTART, listens },
	{ "advertise", CTL_TEXT, AT(advertise), BL_CHANGE_RESTART, listens },
	{ "sqlite", CTL_TEXT, AT(sqlite), BL_CHANGE_RESTART, store },
	{ "etcd.prefix", CTL_TEXT, AT(prefix), BL_CHANGE_RESTART, store },
	{ "etcd.ca", CTL_TEXT, AT(etcd_ca), BL_CHANGE_RESTART, store },
	{ "etcd.cert", CTL_TEXT, AT(etcd_cert), BL_CHANGE_RESTART, store },
	{ "etcd.key", CTL_TEXT, AT(etcd_key), BL_CHANGE_RESTART, store },
	{ "etcd.ttl_s", CTL_U32, AT(ttl_s), BL_CHANGE_RESTART, "the lease is taken at the start" },
	{ "tls.ca", CTL_TEXT, AT(ca), BL_CHANGE_LIVE, sessions },
	{ "tls.cert", CTL_TEXT, AT(cert), BL_CHANGE_LIVE, sessions },
	{ "tls.key", CTL_TEXT, AT(key), BL_CHANGE_LIVE, sessions },
	{ "tls.unnamed", CTL_TRUTH, AT(unnamed), BL_CHANGE_LIVE, sessions },
	{ "insecure", CTL_TRUTH, AT(insecure), BL_CHANGE_LIVE,
	  "the file is judged by it, at the start and at a reload" },
	{ "settle_us", CTL_U32, AT(settle_us), BL_CHANGE_LIVE, waits },
	{ "answer_ms", CTL_U32, AT(answer_ms), BL_CHANGE_LIVE, waits },
	{ "grace_ms", CTL_U32, AT(grace_ms), BL_CHANGE_LIVE, "the next lead begins with it" },
	{ "silence_ms", CTL_U32, AT(silence_ms), BL_CHANGE_LIVE,
	  "sessions are judged by it at once" },
	{ "stuck_ms", CTL_U32, AT(stuck_ms), BL_CHANGE_LIVE,
	  "a node has it from its next session on" },
};

const struct ctl_setting *ctl_settings(unsigned int *n)
{
	*n = sizeof(table) / sizeof(table[0]);
	return table;
}

static const char *value_of(const struct ctl_setting *s, const struct bl_ctl_cfg *cfg, char buf[16])
{
	const char *at = (const char *)cfg + s->at;

	if (s->kind == CTL_TEXT)
		return at;
	if (s->kind == CTL_TRUTH)
		return *(const bool *)at ? "true" : "false";
	snprintf(buf, 16, "%" PRIu32, *(const uint32_t *)(const void *)at);
	return buf;
}

static void join_endpoints(char *text, size_t size, const struct bl_ctl_cfg *cfg)
{
	size_t used = 0;
	unsigned int k;

	*text = 0;
	for (k = 0; k < cfg->netcd && used < size; k++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", k ? ", " : "",
					 cfg->etcd[k]);
}

static int by_id(const void *a, const void *b)
{
	const struct bl_ctl_node *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Returns the nodes in the order of their ids, which the caller frees; NULL: out of memory. */
static struct bl_ctl_node *sorted(const struct bl_ctl_cfg *cfg)
{
	struct bl_ctl_node *v = calloc((size_t)cfg->nnodes + 1, sizeof(*v));

	if (v && cfg->nnodes) {
		memcpy(v, cfg->nodes, cfg->nnodes * sizeof(*v));
		qsort(v, cfg->nnodes, sizeof(*v), by_id);
	}
	return v;
}

static const char *name_of(const struct bl_ctl_node *n)
{
	return *n->name ? n->name : "present";
}

static void compare_nodes(struct bl_changes *c, const struct bl_ctl_cfg *was,
			  const struct bl_ctl_cfg *now)
{
	struct bl_ctl_node *a = sorted(was), *b = sorted(now);
	uint32_t i = 0, k = 0;

	c->short_of_memory |= !a || !b;
	while (a && b && (i < was->nnodes || k < now->nnodes)) {
		bool gone = k == now->nnodes || (i < was->nnodes && a[i].id < b[k].id);
		bool came = i == was->nnodes || (k < now->nnodes && b[k].id < a[i].id);
		uint32_t id = gone ? a[i].id : b[k].id;

		bl_changes_compare(c, BL_CHANGE_LIVE,
				   gone ? "it stays if the store has a record of it, until "
					  "`barline controller remove` removes it"
					: "its next HELLO is judged by it",
				   came ? "absent" : name_of(&a[i]),
				   gone ? "absent" : name_of(&b[k]), "nodes.%" PRIu32, id);
		i += !came;
		k += !gone;
	}
	free(a);
	free(b);
}

void ctl_changes(struct bl_changes *c, const struct bl_ctl_cfg *was, const struct bl_ctl_cfg *now)
{
	char urls[2][BL_CTL_ETCD_MAX * (sizeof(was->etcd[0]) + 2)], a[16], b[16];
	unsigned int k;

	_Static_assert(sizeof(urls[0]) > sizeof(was->etcd), "room for all URLs");
	for (k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		const struct ctl_setting *s = &table[k];

		bl_changes_compare(c, s->change, s->why, value_of(s, was, a), value_of(s, now, b),
				   "%s", s->path);
	}
	join_endpoints(urls[0], sizeof(urls[0]), was);
	join_endpoints(urls[1], sizeof(urls[1]), now);
	bl_changes_compare(c, BL_CHANGE_RESTART, store, urls[0], urls[1], "etcd.endpoints");
	bl_changes_compare(c, BL_CHANGE_RESTART,
			   "sessions that are there would stay unprotected, or would be refused",
			   *was->ca ? "given" : "none", *now->ca ? "given" : "none", "tls");
	compare_nodes(c, was, now);
}

/* ---- what settings become ---- */

int ctl_tls_open(struct bl_session_tls **out, const struct bl_ctl_cfg *cfg, struct bl_err *err)
{
	int rc;

	*out = NULL;
	if (!*cfg->ca && !*cfg->cert && !*cfg->key)
		return 0;
	rc = bl_session_tls_new(out, cfg->ca, cfg->cert, cfg->key, err);
	if (!rc && cfg->unnamed)
		bl_session_tls_allow_unnamed(*out);
	return rc ? rc : bl_session_tls_expect(*out, BL_IDENT_CONTROLLER, 0, err);
}

struct bl_recover_cfg ctl_limits(const struct bl_ctl_cfg *cfg)
{
	return (struct bl_recover_cfg){ .settle_ns = cfg->settle_us * 1000ULL,
					.answer_ns = cfg->answer_ms * NS_PER_MS,
					.grace_ns = cfg->grace_ms * NS_PER_MS };
}

/* ---- the event loop's part ---- */

/* From here on nothing can fail. */
static void take_settings(struct bl_ctl *c, struct ctl_reload_ask *a)
{
	struct bl_session_tls *tls = c->tls;
	bool silence = c->cfg.silence_ms != a->now.silence_ms;
	struct bl_ctl_node *nodes = c->cfg.nodes;
	uint32_t nnodes = c->cfg.nnodes;
	struct bl_recover_cfg rec;

	/* What takes a restart is equal, and the store has pointers to it. */
	c->cfg = a->now;
	a->now.nodes = nodes;
	a->now.nnodes = nnodes;
	c->tls = a->tls;
	a->tls = tls;
	rec = ctl_limits(&c->cfg);
	bl_recover_limits(c->rec, &rec);
	if (silence)
		ctl_sessions_look(c);
}

static void apply(struct bl_ctl *c, struct ctl_reload_ask *a)
{
	ctl_changes(&a->changes, &c->cfg, &a->now);
	a->rc = bl_changes_judge(&a->changes, &a->err);
	if (!a->rc)
		a->rc = ctl_nodes_file(c, a->now.nodes, a->now.nnodes, &a->err);
	if (!a->rc)
		take_settings(c, a);
}

/* The event loop holds the controller's lock. */
static int on_kick(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_ctl *c = ctx;
	struct ctl_reload *r = &c->reload;
	uint64_t v;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) != sizeof(v) || !r->asked)
		return 0;
	apply(c, r->asked);
	r->asked = NULL;
	pthread_cond_broadcast(&r->ended);
	return 0;
}

/* ---- the part of the thread that reads the file ---- */

/* Has the event loop apply @a, unless it does not turn. */
static void ask_loop(struct bl_ctl *c, struct ctl_reload_ask *a)
{
	struct ctl_reload *r = &c->reload;
	const uint64_t one = 1;
	struct timespec until;
	uint64_t at;

	pthread_mutex_lock(&c->lock);
	r->asked = a;
	at = bl_clock_ns(CLOCK_MONOTONIC) + LOOP_WAIT_NS;
	until = (struct timespec){ .tv_sec = (time_t)(at / 1000000000ULL),
				   .tv_nsec = (long)(at % 1000000000ULL) };
	if (write(r->kick_fd, &one, sizeof(one)) == sizeof(one))
		while (r->asked && !r->closed &&
		       !pthread_cond_timedwait(&r->ended, &c->lock, &until))
			;
	if (r->asked) {
		r->asked = NULL;
		a->rc = bl_fail(&a->err, ETIMEDOUT,
				r->closed ? "the controller ends"
					  : "the event loop does not turn; nothing was changed");
	}
	pthread_mutex_unlock(&c->lock);
}

static int read_file(struct bl_ctl *c, struct ctl_reload_ask *a)
{
	const char *path = c->reload.path;
	int rc = *path ? bl_reload_file(path, &a->err)
		       : bl_fail(&a->err, ENOTSUP, "this controller was started without a file");

	if (!rc)
		rc = bl_ctl_config_load(&a->now, path, &a->err);
	if (rc)
		return rc;
	bl_ctl_config_defaults(&a->now);
	rc = bl_ctl_config_check(&a->now, &a->err);
	return rc ? rc : ctl_tls_open(&a->tls, &a->now, &a->err);
}

/* Returns what was done, which the caller frees with free_ask(); NULL: out of memory. */
static struct ctl_reload_ask *reload(struct bl_ctl *c)
{
	struct ctl_reload_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	pthread_mutex_lock(&c->reload.one);
	bl_reload_begins();
	a->rc = read_file(c, a);
	if (!a->rc)
		ask_loop(c, a);
	if (!a->rc)
		bl_changes_log(&a->changes, "controller");
	bl_reload_ends("controller", NULL, a->rc, a->changes.n, &a->err);
	pthread_mutex_unlock(&c->reload.one);
	return a;
}

static void free_ask(struct ctl_reload_ask *a)
{
	if (!a)
		return;
	bl_changes_free(&a->changes);
	bl_ctl_config_free(&a->now);
	bl_session_tls_free(a->tls);
	free(a);
}

static void on_hangup(void *ctx)
{
	free_ask(reload(ctx));
}

char *ctl_reload_answer(struct bl_ctl *c)
{
	struct ctl_reload_ask *a = reload(c);
	char addr[sizeof(c->cfg.advertise)], *text;
	json_t *v;

	if (!a)
		return NULL;
	pthread_mutex_lock(&c->lock);
	memcpy(addr, c->cfg.advertise, sizeof(addr));
	pthread_mutex_unlock(&c->lock);
	bl_text_plain(a->err.text);
	v = json_pack("{s:i, s:s, s:b, s:s, s:o}", "pid", (int)getpid(), "addr", addr, "reloaded",
		      !a->rc, "error", a->rc ? a->err.text : "", "changes",
		      bl_changes_json(&a->changes, a->rc));
	text = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	free_ask(a);
	return text;
}

/* ---- beginning and end ---- */

int ctl_reload_open(struct bl_ctl *c, struct bl_err *err)
{
	struct ctl_reload *r = &c->reload;
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&r->one, NULL);
	r->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->kick_fd < 0 || sd_event_add_io(c->ev, &r->kick, r->kick_fd, EPOLLIN, on_kick, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	return 0;
}

int bl_ctl_reloads(struct bl_ctl *c, const char *path, struct bl_err *err)
{
	struct ctl_reload *r = &c->reload;

	pthread_mutex_lock(&r->one);
	snprintf(r->path, sizeof(r->path), "%s", path);
	pthread_mutex_unlock(&r->one);
	return bl_hangup_open(&r->hangup, on_hangup, c, err);
}

void ctl_reload_end(struct bl_ctl *c)
{
	pthread_mutex_lock(&c->lock);
	c->reload.closed = true;
	pthread_cond_broadcast(&c->reload.ended);
	pthread_mutex_unlock(&c->lock);
	bl_hangup_close(c->reload.hangup);
}

void ctl_reload_close(struct bl_ctl *c)
{
	sd_event_source_disable_unref(c->reload.kick);
	if (c->reload.kick_fd >= 0)
		close(c->reload.kick_fd);
	pthread_mutex_destroy(&c->reload.one);
}
