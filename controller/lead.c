// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See lead.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/time.h"
#include "controller/admit.h"
#include "controller/lead.h"
#include "controller/message.h"
#include "controller/nodes.h"
#include "controller/outputs.h"
#include "controller/peer.h"

/* The list of elections is only shown to people, so the outcome does not matter. */
static void on_epoch_saved(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx, (void)r;
}

static void add_epoch(struct bl_ctl *c, const struct ctl_epoch *e)
{
	if (c->nepochs == CTL_EPOCHS_MAX) {
		memmove(c->epochs, c->epochs + 1, (CTL_EPOCHS_MAX - 1) * sizeof(*c->epochs));
		c->nepochs--;
	}
	c->epochs[c->nepochs++] = *e;
}

/* Loads the record of a node or of a failure. Returns whether it is sound. */
static bool load_saved(struct bl_ctl *c, const struct bl_store_kv *kv)
{
	uint64_t id, number = 0, at = 0;
	enum bl_recover_do what;
	struct saved *v;
	bool sound;

	if (!ctl_saved_parse(kv->key, &what, &id))
		return false;
	if (what == BL_RECOVER_SAVE_FAILURE)
		sound = !ctl_load_failure(c->rec, kv->value, kv->len, &number, &at) && number == id;
	else
		sound = !ctl_load_node(c->rec, kv->value, kv->len) &&
			bl_recover_node(c->rec, (uint32_t)id) &&
			ctl_nodes_stored(c, (uint32_t)id,
					 bl_recover_node(c->rec, (uint32_t)id)->name);
	if (!sound)
		return false;
	v = ctl_saved_find(c, what, id);
	if (!v) {
		ctl_fatal(c, "out of memory");
		return true;
	}
	v->rev = kv->rev;
	v->unix_ns = at;
	return true;
}

/* Loads the record @kv. Sets *@sound to false if the record contradicts itself or its key. */
static void load_record(struct bl_ctl *c, const struct bl_store_kv *kv, bool *sound)
{
	unsigned int id;

	if (!strncmp(kv->key, "failure/", 8) || !strncmp(kv->key, "node/", 5)) {
		*sound &= load_saved(c, kv);
	} else if (!strncmp(kv->key, "admit/", 6)) {
		*sound &= sscanf(kv->key, "admit/%8x", &id) == 1 &&
			  ctl_nodes_load(c, id, kv->value, kv->len);
	} else if (!strncmp(kv->key, "epoch/", 6)) {
		Bl__Epoch *m = bl__epoch__unpack(NULL, kv->len, kv->value);
		struct ctl_epoch e = { 0 };

		if (!m)
			return;
		e.epoch = m->epoch;
		e.unix_ns = m->unix_ns;
		snprintf(e.leader, sizeof(e.leader), "%s", m->leader);
		add_epoch(c, &e);
		bl__epoch__free_unpacked(m, NULL);
	}
}

static void on_loaded(void *ctx, const struct bl_store_reply *r)
{
	struct bl_ctl *c = ctx;
	struct ctl_epoch e = { .epoch = c->elected, .unix_ns = bl_clock_ns(CLOCK_REALTIME) };
	struct ctl_bytes b;
	bool sound = true;
	char key[64];
	size_t i;

	/*
	 * The lead was lost while the store was read. If it was won again since, another leader may
	 * have written between, and the store is being read once more.
	 */
	if (!c->loading || r->epoch != c->elected)
		return;
	if (r->outcome != BL_STORE_DONE) {
		bl_log(BL_LOG_WARN, "controller: elected, but %s", r->text);
		bl_store_range(c->store, "", false, on_loaded, c);
		return;
	}
	bl_recover_reset(c->rec);
	ctl_saved_forget(c);
	ctl_nodes_forget(c);
	c->nepochs = 0;
	for (i = 0; i < r->n && sound; i++) {
		load_record(c, &r->kv[i], &sound);
		if (!sound) {
			char why[400];

			snprintf(why, sizeof(why),
				 "the record \"%s\" in the store is damaged; restore the store "
				 "from a copy, or remove the key if you know what it was",
				 r->kv[i].key);
			ctl_fatal(c, why);
		}
		if (c->stop)
			return;
	}
	c->loading = false;
	bl_recover_start(c->rec, bl_mono_ns(), c->elected);
	snprintf(e.leader, sizeof(e.leader), "%s", c->cfg.advertise);
	add_epoch(c, &e);
	b = ctl_save_epoch(e.epoch, e.leader, e.unix_ns);
	snprintf(key, sizeof(key), "epoch/%020" PRIu64, e.epoch);
	if (b.data)
		bl_store_put_sure(c->store, c->elected, key, 0, b.data, b.len, on_epoch_saved, c);
	free(b.data);
	bl_event(BL_EVENT(CONTROLLER_LEADS, INFO, NULL, .epoch = c->elected),
		 "controller: leads with epoch %" PRIu64 ": %u nodes, %u failures", c->elected,
		 bl_recover_nodes(c->rec), bl_recover_failures(c->rec));
	ctl_outputs_run(c);
}

static void on_elected(void *ctx, uint64_t epoch)
{
	struct bl_ctl *c = ctx;

	c->elected = epoch;
	c->loading = true;
	snprintf(c->leader, sizeof(c->leader), "%s", c->cfg.advertise);
	bl_store_range(c->store, "", false, on_loaded, c);
}

static void on_lost(void *ctx, const char *why)
{
	struct bl_ctl *c = ctx;
	struct peer *p, *next;

	bl_event(BL_EVENT(CONTROLLER_FOLLOWS, WARN, NULL, .epoch = c->elected, .reason = why),
		 "controller: leads no more (epoch %" PRIu64 "): %s", c->elected, why);
	snprintf(c->lost, sizeof(c->lost), "%s", why);
	c->elected = 0;
	c->loading = false;
	*c->leader = 0;
	ctl_admit_lost(c);
	ctl_nodes_lost(c);
	bl_recover_reset(c->rec);
	for (p = c->peers; p; p = next) {
		next = p->next;
		ctl_peer_refer(p);
	}
	ctl_outputs_run(c);
}

static void on_other(void *ctx, const char *leader)
{
	struct bl_ctl *c = ctx;

	snprintf(c->leader, sizeof(c->leader), "%s", leader);
}

static void on_trouble(void *ctx, const char *text)
{
	struct bl_ctl *c = ctx;

	if (text && !*c->trouble)
		bl_event(BL_EVENT(CONTROLLER_BLOCKED, WARN, NULL, .reason = text),
			 "controller: nothing can be decided: %s; traffic goes on", text);
	else if (!text)
		bl_event(BL_EVENT(CONTROLLER_UNBLOCKED, INFO, NULL), "controller: the store "
								     "accepts writes again");
	snprintf(c->trouble, sizeof(c->trouble), "%s", text ? text : "");
}

int ctl_lead_campaign(struct bl_ctl *c, struct bl_err *err)
{
	c->candidate = (struct bl_store_candidate){ on_elected, on_lost, on_other, on_trouble, c };
	return bl_store_campaign(c->store, c->cfg.advertise, &c->candidate, err);
}
