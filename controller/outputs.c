// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See outputs.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "controller/failure_text.h"
#include "controller/message.h"
#include "controller/outputs.h"
#include "controller/peer.h"

void ctl_fatal(struct bl_ctl *c, const char *why)
{
	bl_fail(&c->fatal, EIO, "%s", why);
	bl_log(BL_LOG_ERR, "controller: %s", why);
	c->stop = true;
}

/* ---- records ---- */

void ctl_saved_key(char key[CTL_KEY_MAX], enum bl_recover_do what, uint64_t id)
{
	if (what == BL_RECOVER_SAVE_NODE)
		snprintf(key, CTL_KEY_MAX, "node/%08" PRIx64, id);
	else
		snprintf(key, CTL_KEY_MAX, "failure/%010" PRIu64, id);
}

bool ctl_saved_parse(const char *key, enum bl_recover_do *what, uint64_t *id)
{
	bool node = !strncmp(key, "node/", 5);
	char same[CTL_KEY_MAX];

	if (!node && strncmp(key, "failure/", 8))
		return false;
	*what = node ? BL_RECOVER_SAVE_NODE : BL_RECOVER_SAVE_FAILURE;
	*id = strtoull(strchr(key, '/') + 1, NULL, node ? 16 : 10);
	ctl_saved_key(same, *what, *id);
	return (!node || *id <= UINT32_MAX) && !strcmp(key, same);
}

struct saved *ctl_saved_find(struct bl_ctl *c, enum bl_recover_do what, uint64_t id)
{
	struct saved *v;

	for (v = c->saved; v; v = v->next)
		if (v->what == what && v->id == id)
			return v;
	v = calloc(1, sizeof(*v));
	if (v) {
		*v = (struct saved){ .next = c->saved, .what = what, .id = id };
		c->saved = v;
	}
	return v;
}

void ctl_saved_forget(struct bl_ctl *c)
{
	while (c->saved) {
		struct saved *v = c->saved;

		c->saved = v->next;
		free(v);
	}
}

static void saved_failure(struct bl_ctl *c, uint64_t number)
{
	const struct bl_recover_failure *f = bl_recover_failure(c->rec, number);

	/* before: it may go on to the next step at once */
	if (f && f->saving && f->step != BL_RECOVER_RESUMED)
		ctl_failure_event(c, f);
	bl_recover_saved_failure(c->rec, bl_mono_ns(), number);
}

/*
 * @r may be the reply to a write of an earlier epoch of this controller. The entries of that epoch
 * are gone, and what it left in the store was read when the present one began.
 */
static void on_saved(void *ctx, const struct bl_store_reply *r)
{
	struct bl_ctl *c = ctx;
	enum bl_recover_do what;
	struct saved *v;
	uint64_t id;

	if (r->epoch != c->elected)
		return;
	/* Another controller leads. The candidate's lost() has come or will come, and cleans up. */
	if (r->outcome != BL_STORE_DONE && r->why == BL_STORE_WHY_FENCED)
		return;
	if (r->outcome != BL_STORE_DONE) {
		char why[600];

		snprintf(why, sizeof(why),
			 "cannot save: %s; another process writes under this controller's prefix",
			 r->text);
		ctl_fatal(c, why);
		return;
	}
	v = ctl_saved_parse(r->key, &what, &id) ? ctl_saved_find(c, what, id) : NULL;
	if (!v)
		return;
	v->rev = r->rev;
	if (what == BL_RECOVER_SAVE_NODE)
		bl_recover_saved_node(c->rec, bl_mono_ns(), (uint32_t)id);
	else
		saved_failure(c, id);
	ctl_outputs_run(c);
}

static void save_record(struct bl_ctl *c, const struct bl_recover_out *o)
{
	uint64_t id = o->what == BL_RECOVER_SAVE_NODE ? o->node : o->number;
	struct saved *v = ctl_saved_find(c, o->what, id);
	struct ctl_bytes b = { 0 };
	char key[CTL_KEY_MAX];

	ctl_saved_key(key, o->what, id);
	if (o->what == BL_RECOVER_SAVE_NODE) {
		b = ctl_save_node(bl_recover_node(c->rec, o->node));
	} else {
		const struct bl_recover_failure *f = bl_recover_failure(c->rec, o->number);

		if (v && !v->unix_ns)
			v->unix_ns = bl_clock_ns(CLOCK_REALTIME);
		b = ctl_save_failure(f, v ? v->unix_ns : 0);
	}
	if (!v || !b.data ||
	    bl_store_put_sure(c->store, c->elected, key, v->rev, b.data, b.len, on_saved, c))
		ctl_fatal(c, "out of memory, or a record that is too large");
	c->counts[CTL_SAVED]++;
	free(b.data);
}

/* An old failure that is not deleted does no harm, so the outcome does not matter. */
static void on_deleted(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx, (void)r;
}

static void delete_failure(struct bl_ctl *c, uint64_t number)
{
	char key[CTL_KEY_MAX];

	ctl_saved_key(key, BL_RECOVER_SAVE_FAILURE, number);
	bl_store_put_sure(c->store, c->elected, key, BL_STORE_ANY, NULL, 0, on_deleted, c);
}

/* ---- commands ---- */

static void send_command(struct bl_ctl *c, const struct bl_recover_out *o)
{
	const struct bl_recover_node *n = bl_recover_node(c->rec, o->node);
	struct peer *p = ctl_peer_find(c, o->node);

	/* The lease is checked against the clock immediately before each command leaves. */
	if (!p || !n || bl_store_epoch(c->store) != c->elected)
		return;
	switch (o->what) {
	case BL_RECOVER_WELCOME:
		ctl_send(p, ctl_welcome(c->elected, o->number, c->cfg.answer_ms, c->cfg.stuck_ms));
		break;
	case BL_RECOVER_PUT_OUT:
		ctl_send(p,
			 ctl_put_out(c->elected, (uint16_t)o->number, (uint16_t)(o->number >> 16)));
		break;
	case BL_RECOVER_AWAY:
		ctl_send(p, ctl_away(c->elected));
		break;
	case BL_RECOVER_BAR:
		ctl_send(p, ctl_bar(c->elected, n));
		break;
	case BL_RECOVER_FREEZE:
		ctl_send(p, ctl_freeze(c->elected, n));
		break;
	case BL_RECOVER_FAIL:
		ctl_send(p, ctl_failure(c->elected, bl_recover_failure(c->rec, o->number), false,
					o->node));
		break;
	case BL_RECOVER_RESUME:
		ctl_send(p, ctl_failure(c->elected, bl_recover_failure(c->rec, o->number), true,
					o->node));
		break;
	default:
		break;
	}
}

void ctl_outputs_run(struct bl_ctl *c)
{
	struct bl_recover_out o;
	uint64_t due;

	while (bl_recover_next(c->rec, &o)) {
		if (o.what == BL_RECOVER_SAVE_NODE || o.what == BL_RECOVER_SAVE_FAILURE)
			save_record(c, &o);
		else if (o.what == BL_RECOVER_DROP_FAILURE)
			delete_failure(c, o.number);
		else
			send_command(c, &o);
	}
	due = bl_recover_due(c->rec);
	if (due == UINT64_MAX) {
		sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	} else {
		sd_event_source_set_time(c->timer, due / 1000 + 1);
		sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
	}
}

static int on_due(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;

	(void)src, (void)usec;
	bl_recover_tick(c->rec, bl_mono_ns());
	ctl_outputs_run(c);
	return 0;
}

int ctl_outputs_open(struct bl_ctl *c, struct bl_err *err)
{
	if (sd_event_add_time_relative(c->ev, &c->timer, CLOCK_MONOTONIC, 0, 100, on_due, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	return 0;
}

void ctl_outputs_close(struct bl_ctl *c)
{
	sd_event_source_disable_unref(c->timer);
	ctl_saved_forget(c);
}
