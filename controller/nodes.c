// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nodes.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/event.h"
#include "base/time.h"
#include "controller/message.h"
#include "controller/nodes.h"
#include "controller/outputs.h"
#include "controller/peer.h"

#define LOG_NS       1000000000ULL /* shortest time between two lines about strangers */
#define ORDER_WAIT_S 5             /* for the store */

/* ---- the list ---- */

/* Returns the index of node @id, or where it would be inserted. */
static uint32_t position_of(const struct bl_ctl *c, uint32_t id)
{
	uint32_t lo = 0, hi = c->nnodes;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (c->nodes[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct ctl_node *ctl_nodes_find(struct bl_ctl *c, uint32_t id)
{
	uint32_t at = position_of(c, id);

	return at < c->nnodes && c->nodes[at].id == id ? &c->nodes[at] : NULL;
}

/* @c->nodes has room for one more. */
static struct ctl_node *insert_node(struct bl_ctl *c, uint32_t at, uint32_t id, const char *name)
{
	struct ctl_node *n = c->nodes;

	memmove(n + at + 1, n + at, (c->nnodes - at) * sizeof(*n));
	c->nnodes++;
	n[at] = (struct ctl_node){ .id = id };
	snprintf(n[at].name, sizeof(n[at].name), "%s", name);
	return &n[at];
}

struct ctl_node *ctl_nodes_add(struct bl_ctl *c, uint32_t id, const char *name)
{
	struct ctl_node *n = ctl_nodes_find(c, id);
	uint32_t at = position_of(c, id);

	if (n || !id || c->nnodes == BL_RECOVER_NODES_MAX)
		return n;
	n = realloc(c->nodes, (c->nnodes + 1) * sizeof(*n));
	if (!n)
		return NULL;
	c->nodes = n;
	return insert_node(c, at, id, name);
}

static void drop_node(struct bl_ctl *c, uint32_t id)
{
	uint32_t at = position_of(c, id);

	if (at == c->nnodes || c->nodes[at].id != id)
		return;
	c->nnodes--;
	memmove(c->nodes + at, c->nodes + at + 1, (c->nnodes - at) * sizeof(*c->nodes));
}

void ctl_nodes_forget(struct bl_ctl *c)
{
	uint32_t i, left = 0;

	for (i = 0; i < c->nnodes; i++)
		if (c->nodes[i].file) {
			c->nodes[i].stored = false;
			c->nodes[left++] = c->nodes[i];
		}
	c->nnodes = left;
}

int ctl_nodes_file(struct bl_ctl *c, const struct bl_ctl_node *v, uint32_t n, struct bl_err *err)
{
	struct ctl_node *was = c->nodes, *made;
	uint32_t nwas = c->nnodes, i;

	for (i = 0; i < n; i++) {
		const struct ctl_node *old = ctl_nodes_find(c, v[i].id);

		if (old && old->leaves)
			return bl_fail(err, EBUSY,
				       "nodes: node %" PRIu32 " is being removed by a command; "
				       "repeat the command until it is, and reload then",
				       v[i].id);
	}
	made = calloc((size_t)nwas + n + 1, sizeof(*made));
	if (!made)
		return bl_fail(err, ENOMEM, "out of memory");
	c->nodes = made;
	c->nnodes = 0;
	for (i = 0; i < nwas; i++)
		if (!was[i].file || was[i].stored || was[i].seen) {
			made[c->nnodes] = was[i];
			made[c->nnodes++].file = false;
		}
	for (i = 0; i < n; i++) {
		struct ctl_node *one = ctl_nodes_find(c, v[i].id);

		if (!one)
			one = insert_node(c, position_of(c, v[i].id), v[i].id, v[i].name);
		one->file = true;
		snprintf(one->name, sizeof(one->name), "%s", v[i].name);
	}
	if (c->nnodes <= BL_RECOVER_NODES_MAX) {
		free(was);
		return 0;
	}
	free(made);
	c->nodes = was;
	c->nnodes = nwas;
	return bl_fail(err, ENOSPC,
		       "nodes: with those that were admitted by commands there are more than %d",
		       BL_RECOVER_NODES_MAX);
}

bool ctl_nodes_stored(struct bl_ctl *c, uint32_t id, const char *name)
{
	struct ctl_node *n = ctl_nodes_add(c, id, name);

	if (n)
		n->stored = true;
	return n;
}

bool ctl_nodes_load(struct bl_ctl *c, uint32_t id, const uint8_t *data, size_t len)
{
	Bl__Admit *m = bl__admit__unpack(NULL, len, data);
	bool ok = m && m->node == id && ctl_nodes_stored(c, id, m->name);

	if (m)
		bl__admit__free_unpacked(m, NULL);
	return ok;
}

bool ctl_nodes_knows_addr(const struct bl_ctl *c, const uint8_t from[16])
{
	uint32_t i;

	for (i = 0; i < c->nnodes; i++)
		if (c->nodes[i].seen && !memcmp(c->nodes[i].from, from, 16))
			return true;
	return false;
}

/* ---- strangers ---- */

/* Copies @name without what a terminal would take for a command. */
static void copy_plainly(char *to, size_t size, const char *name)
{
	size_t k;

	for (k = 0; k + 1 < size && name[k]; k++)
		to[k] = name[k] > ' ' && name[k] < 0x7f ? name[k] : '?';
	to[k] = 0;
}

void ctl_stranger(struct peer *p, uint32_t id, const char *name)
{
	struct bl_ctl *c = p->c;
	struct ctl_strangers *s = &c->stranger;
	uint64_t now = bl_mono_ns();
	struct ctl_stranger v = { .id = id, .times = 1, .last_ns = now };
	uint32_t i;

	c->counts[CTL_NOT_ADMITTED]++;
	copy_plainly(v.name, sizeof(v.name), name);
	snprintf(v.addr, sizeof(v.addr), "%s", p->addr);
	for (i = 0; i < s->n && s->last[i].id != id; i++)
		;
	if (i < s->n)
		v.times += s->last[i].times;
	else if (s->n < CTL_STRANGERS_SHOWN)
		s->n++;
	else
		i = s->n - 1;
	memmove(s->last + 1, s->last, i * sizeof(*s->last));
	s->last[0] = v;
	s->unsaid++;
	if (s->logged_ns && now < s->logged_ns + LOG_NS)
		return;
	bl_event(BL_EVENT(NODE_REFUSED, WARN, NULL, .peer = id),
		 "controller: node %" PRIu32 " (%s) at %s is not admitted (%u such since the last "
		 "line); `barline controller admit %s --id %" PRIu32 "` admits it",
		 id, v.name, v.addr, s->unsaid, *v.name ? v.name : "NAME", id);
	s->logged_ns = now;
	s->unsaid = 0;
}

json_t *ctl_strangers_rows(const struct bl_ctl *c)
{
	const struct ctl_strangers *s = &c->stranger;
	uint64_t now = bl_mono_ns();
	json_t *rows = json_array();
	uint32_t i;

	for (i = 0; i < s->n; i++)
		json_array_append_new(
			rows, json_pack("{s:I, s:s, s:s, s:I, s:I}", "node",
					(json_int_t)s->last[i].id, "name", s->last[i].name, "addr",
					s->last[i].addr, "times", (json_int_t)s->last[i].times,
					"ago_ns", (json_int_t)(now - s->last[i].last_ns)));
	return rows;
}

/* ---- commands ---- */

/* The current command is over. @trouble: why nothing was done; NULL: @done is done. */
static void end_order(struct bl_ctl *c, const char *done, const char *trouble, bool again)
{
	struct ctl_order *o = &c->order;

	o->step = CTL_ORDER_ENDED;
	o->again = again;
	snprintf(o->done, sizeof(o->done), "%s", done ? done : "");
	snprintf(o->trouble, sizeof(o->trouble), "%s", trouble ? trouble : "");
	if (done)
		bl_event(BL_EVENT(NODES_CHANGED, INFO, NULL, .reason = done), "controller: %s",
			 done);
	pthread_cond_broadcast(&o->ended);
}

void ctl_nodes_lost(struct bl_ctl *c)
{
	if (c->order.step == CTL_ORDER_ASKED || c->order.step == CTL_ORDER_SAVING)
		end_order(c, NULL, "this controller has lost the lead; try again", false);
}

static void on_admit_saved(void *ctx, const struct bl_store_reply *r)
{
	struct bl_ctl *c = ctx;
	struct ctl_order *o = &c->order;
	char text[200];

	/* The reply may be to an order of an earlier epoch, which ctl_nodes_lost() has ended. */
	if (o->step != CTL_ORDER_SAVING || r->epoch != c->elected)
		return;
	if (r->outcome != BL_STORE_DONE) {
		end_order(c, NULL, r->text, false);
		return;
	}
	if (!ctl_nodes_stored(c, o->id, o->name)) {
		end_order(c, NULL, "there are too many nodes", false);
		return;
	}
	snprintf(text, sizeof(text), "node %" PRIu32 " (%s) is admitted", o->id, o->name);
	end_order(c, text, NULL, false);
}

static void begin_admit(struct bl_ctl *c)
{
	struct ctl_order *o = &c->order;
	struct ctl_node *n = ctl_nodes_find(c, o->id);
	Bl__Admit m = BL__ADMIT__INIT;
	uint8_t body[128];
	char key[64], text[200];

	if (n && !n->leaves) {
		snprintf(text, sizeof(text), "node %" PRIu32 " (%s) is admitted already", o->id,
			 n->name);
		end_order(c, text, NULL, false);
		return;
	}
	if (n) {
		end_order(c, NULL, "the node is being removed; try again later", false);
		return;
	}
	if (c->nnodes == BL_RECOVER_NODES_MAX) {
		end_order(c, NULL, "there are too many nodes; remove some first", false);
		return;
	}
	m.node = o->id;
	m.name = o->name;
	m.unix_ns = bl_clock_ns(CLOCK_REALTIME);
	snprintf(key, sizeof(key), "admit/%08" PRIx32, o->id);
	o->step = CTL_ORDER_SAVING;
	/* The name has at most BL_RECOVER_NAME_MAX bytes. */
	if (bl_store_put_sure(c->store, c->elected, key, BL_STORE_ANY, body,
			      bl__admit__pack(&m, body), on_admit_saved, c))
		end_order(c, NULL, "out of memory", false);
}

static void on_record_deleted(void *ctx, const struct bl_store_reply *r)
{
	struct bl_ctl *c = ctx;
	struct ctl_order *o = &c->order;
	struct saved *v;
	char text[200];

	/* The reply may be to an order of an earlier epoch, which ctl_nodes_lost() has ended. */
	if (o->step != CTL_ORDER_SAVING || r->epoch != c->elected)
		return;
	if (r->outcome != BL_STORE_DONE) {
		end_order(c, NULL, r->text, false);
		return;
	}
	if (--o->waits)
		return;
	/* A node that is admitted again has a new key. */
	v = ctl_saved_find(c, BL_RECOVER_SAVE_NODE, o->id);
	if (v)
		v->rev = 0;
	bl_recover_forget(c->rec, bl_mono_ns(), o->id);
	drop_node(c, o->id);
	snprintf(text, sizeof(text), "node %" PRIu32 " is removed", o->id);
	end_order(c, text, NULL, false);
	ctl_outputs_run(c);
}

/* Deletes both records of the node, then forgets it. */
static void delete_records(struct bl_ctl *c)
{
	struct ctl_order *o = &c->order;
	char keys[2][CTL_KEY_MAX];
	unsigned int k;

	ctl_saved_key(keys[0], BL_RECOVER_SAVE_NODE, o->id);
	snprintf(keys[1], sizeof(keys[1]), "admit/%08" PRIx32, o->id);
	o->step = CTL_ORDER_SAVING;
	o->waits = 2;
	for (k = 0; k < 2; k++) {
		if (bl_store_put_sure(c->store, c->elected, keys[k], BL_STORE_ANY, NULL, 0,
				      on_record_deleted, c)) {
			end_order(c, NULL, "out of memory", false);
			return;
		}
	}
}

/*
 * Removes a node. One that takes part is announced as failed first, if that is wanted by force: its
 * neighbours are asked for its T, and all that it had promised is settled. Until then its HELLOs
 * are refused.
 */
static void begin_remove(struct bl_ctl *c)
{
	struct ctl_order *o = &c->order;
	const struct bl_recover_node *known = bl_recover_node(c->rec, o->id);
	struct ctl_node *n = ctl_nodes_find(c, o->id);
	struct peer *p = ctl_peer_find(c, o->id);
	enum bl_recover_bond bond = bl_recover_bond(c->rec, o->id);

	if (!n) {
		end_order(c, NULL, "there is no such node; `barline controller show` lists them",
			  false);
		return;
	}
	if (n->file) {
		end_order(c, NULL,
			  "the node is in the file of this controller, under nodes; remove it from "
			  "the files of all controllers, and reload them",
			  false);
		return;
	}
	if (p && !o->force) {
		end_order(c, NULL,
			  "the node has a session; stop its barlined first, or use --force, which "
			  "announces the node as failed",
			  false);
		return;
	}
	if (bond == BL_RECOVER_HEARD && !o->force) {
		end_order(c, NULL,
			  "neighbours of the node still hear it or wait for its answers; take its "
			  "links down, or use --force, which announces the node as failed",
			  false);
		return;
	}
	n->leaves = true;
	if (p)
		ctl_peer_hang_up(p);
	if (bond == BL_RECOVER_FREE) {
		delete_records(c);
		return;
	}
	if (bond == BL_RECOVER_HEARD && known->state == BL_DET_UP)
		bl_recover_down(c->rec, bl_mono_ns(), o->id);
	end_order(c, NULL,
		  bond == BL_RECOVER_SAVES ? "its record is being written"
					   : "it is being announced as failed",
		  true);
	ctl_outputs_run(c);
}

/* Begins the command that ctl_nodes_ask() has put into @c->order. */
static int on_kick(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t v;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) != sizeof(v) || c->order.step != CTL_ORDER_ASKED)
		return 0;
	if (!ctl_leading(c))
		end_order(c, NULL, "this controller has lost the lead; try again", false);
	else if (c->order.remove)
		begin_remove(c);
	else
		begin_admit(c);
	return 0;
}

/* Reads a command into @o. Returns whether it is one. */
static bool read_order(struct ctl_order *o, const char *said)
{
	char force[8] = "";
	int end = 0;

	o->remove = !strncmp(said, "remove ", 7);
	o->force = false;
	*o->name = 0;
	if (o->remove) {
		if (sscanf(said, "remove %" SCNu32 " %7s", &o->id, force) < 1 ||
		    (*force && strcmp(force, "force")))
			return false;
		o->force = *force;
		return o->id;
	}
	return sscanf(said, "admit %" SCNu32 " %31[A-Za-z0-9._-] %n", &o->id, o->name, &end) == 2 &&
	       end && !said[end] && o->id;
}

char *ctl_nodes_ask(struct bl_ctl *c, const char *said)
{
	const uint64_t one = 1;
	struct ctl_order *o = &c->order;
	const char *state = "standby", *trouble = "", *done = "";
	struct timespec until;
	bool again = false;
	json_t *v;
	char *text;

	pthread_mutex_lock(&c->lock);
	if (!ctl_leading(c)) {
		trouble = "it does not lead";
	} else if (o->step != CTL_ORDER_NONE && o->step != CTL_ORDER_ENDED) {
		state = "leader";
		trouble = "another command is being carried out; try again";
	} else if (!read_order(o, said)) {
		state = "leader";
		trouble = "unknown command; expected: admit ID NAME, or remove ID";
	} else {
		state = "leader";
		o->step = CTL_ORDER_ASKED;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += ORDER_WAIT_S;
		if (write(o->kick_fd, &one, sizeof(one)) != sizeof(one))
			end_order(c, NULL, "the event loop cannot be woken", false);
		while (o->step != CTL_ORDER_ENDED &&
		       !pthread_cond_timedwait(&o->ended, &c->lock, &until))
			;
		if (o->step == CTL_ORDER_ENDED) {
			done = o->done;
			trouble = o->trouble;
			again = o->again;
		} else {
			trouble = *c->trouble ? c->trouble : "the store does not answer yet";
		}
	}
	v = json_pack("{s:s, s:s, s:s, s:b}", "state", state, "done", done, "trouble", trouble,
		      "again", again);
	pthread_mutex_unlock(&c->lock);
	text = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	return text;
}

/* ---- beginning and end ---- */

int ctl_nodes_open(struct bl_ctl *c, struct bl_err *err)
{
	struct ctl_order *o = &c->order;
	pthread_condattr_t attr;
	uint32_t i;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->ended, &attr);
	pthread_condattr_destroy(&attr);
	for (i = 0; i < c->cfg.nnodes; i++) {
		struct ctl_node *n = ctl_nodes_add(c, c->cfg.nodes[i].id, c->cfg.nodes[i].name);

		if (!n)
			return bl_fail(err, ENOMEM, "out of memory");
		n->file = true;
	}
	o->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->kick_fd < 0 || sd_event_add_io(c->ev, &o->kick, o->kick_fd, EPOLLIN, on_kick, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	return 0;
}

void ctl_nodes_close(struct bl_ctl *c)
{
	sd_event_source_disable_unref(c->order.kick);
	if (c->order.kick_fd >= 0)
		close(c->order.kick_fd);
	free(c->nodes);
}
