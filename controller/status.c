// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See status.h. */
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/admit.h"
#include "controller/failure_text.h"
#include "controller/nodes.h"
#include "controller/peer.h"
#include "controller/status.h"
#include "maps/failure_abi.h"

static json_t *json_u64(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static void put_counts(const struct bl_ctl *c, json_t *o)
{
#define NAME(sym, name) [CTL_##sym] = name,
	static const char *const names[CTL_COUNT] = { CTL_COUNTS(NAME) };
#undef NAME
	json_t *v = json_object();
	unsigned int i;

	for (i = 0; i < BL_RECOVER_REASON_COUNT; i++)
		if (c->reasons[i])
			json_object_set_new(v, bl_recover_reason_name((enum bl_recover_reason)i),
					    json_u64(c->reasons[i]));
	for (i = 0; i < CTL_COUNT; i++)
		if (c->counts[i])
			json_object_set_new(v, names[i], json_u64(c->counts[i]));
	json_object_set_new(o, "counts", v);
	json_object_set_new(o, "refused",
			    json_u64(c->counts[CTL_BAD_SESSION] + c->counts[CTL_BAD_MESSAGE] +
				     c->counts[CTL_STRANGER] + c->counts[CTL_TOO_MANY] +
				     c->counts[CTL_NOT_ADMITTED] + c->counts[CTL_FORGED] +
				     c->counts[CTL_TAKEN] + c->counts[CTL_EPOCH_FAR] +
				     c->counts[CTL_FORWARD_BAD] + c->reasons[BL_RECOVER_BAD_HELLO] +
				     c->reasons[BL_RECOVER_BAD_C]));
}

static const char *node_state_name(const struct bl_recover_node *n)
{
	return n->state == BL_DET_GONE   ? "failed"
	       : n->state == BL_DET_DOWN ? "down"
	       : !n->agent               ? "no agent"
	       : !n->connected           ? "away"
	       : n->linked               ? "ok"
					 : "no link";
}

/* Returns how node @id was admitted; "": it is known from its neighbours only. */
static const char *admitted_by(const struct bl_ctl *c, uint32_t id)
{
	const struct ctl_node *n = ctl_nodes_find((struct bl_ctl *)(uintptr_t)c, id);

	return !n ? "" : n->leaves ? "being removed" : n->file ? "file" : "command";
}

static json_t *node_row(const struct bl_ctl *c, const struct bl_recover_node *n)
{
	const struct peer *p = ctl_peer_find(c, n->id);
	uint32_t i, silent = 0, barred = 0;
	json_t *o = json_object();

	for (i = 0; i < n->nports; i++) {
		silent += n->port[i].state == BL_DET_SILENT;
		barred += n->port[i].barred;
	}
	json_object_set_new(o, "node", json_u64(n->id));
	json_object_set_new(o, "name", json_string(n->name));
	json_object_set_new(o, "role", json_string(n->kind == BL_DET_HOST ? "host" : "switch"));
	json_object_set_new(o, "state", json_string(node_state_name(n)));
	json_object_set_new(o, "addr", json_string(p ? p->addr : ""));
	json_object_set_new(o, "epoch", json_u64(p ? p->epoch : 0));
	json_object_set_new(o, "ports", json_u64(n->nports));
	json_object_set_new(o, "silent", json_u64(silent));
	json_object_set_new(o, "barred", json_u64(barred));
	json_object_set_new(o, "endpoints", json_u64(n->nendpoints));
	json_object_set_new(o, "failure", json_u64(n->gone));
	json_object_set_new(o, "why",
			    json_string(n->state == BL_DET_GONE
						? bl_det_why_name((enum bl_det_why)n->why)
						: ""));
	json_object_set_new(o, "admitted", json_string(admitted_by(c, n->id)));
	return o;
}

/* The row of a node that is admitted and never had a session. */
static json_t *absent_row(const struct ctl_node *n)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s}",
			 "node", (json_int_t)n->id, "name", n->name, "role", "", "state",
			 "never seen", "addr", "", "epoch", 0, "ports", 0, "silent", 0, "barred", 0,
			 "endpoints", 0, "failure", 0, "why", "", "admitted",
			 n->file ? "file" : "command");
}

static uint64_t announced_unix_ns(const struct bl_ctl *c, uint64_t number)
{
	const struct saved *v;

	for (v = c->saved; v; v = v->next)
		if (v->what == BL_RECOVER_SAVE_FAILURE && v->id == number)
			return v->unix_ns;
	return 0;
}

static const char *const steps[] = { [BL_RECOVER_ANNOUNCED] = "announced",
				     [BL_RECOVER_RESUMED] = "resumed",
				     [BL_RECOVER_FINISHED] = "finished" };

static json_t *failure_row(const struct bl_ctl *c, const struct bl_recover_failure *f)
{
	json_t *o = json_object(), *failed = json_array(), *inputs = json_array(),
	       *missing = json_array(), *v;
	char who[96], why[128];
	uint32_t i;

	ctl_failure_who(c, f, who, sizeof(who));
	ctl_failure_why(f, why, sizeof(why));
	for (i = 0; i < f->nfailed; i++) {
		const struct bl_recover_proc *p = &f->failed[i].proc;

		v = json_pack("{s:I, s:I, s:I, s:s}", "node", (json_int_t)f->failed[i].node, "port",
			      (json_int_t)p->port, "life", (json_int_t)p->life, "why",
			      ctl_failed_why(&f->failed[i]));
		json_object_set_new(v, "t", p->t == BL_DET_NO_C ? json_null() : json_u64(p->t));
		json_array_append_new(failed, v);
	}
	for (i = 0; i < f->ninputs; i++) {
		v = json_pack("{s:I, s:I, s:I, s:I}", "node", (json_int_t)f->input[i].node, "port",
			      (json_int_t)f->input[i].port, "neighbour",
			      (json_int_t)f->input[i].neighbour, "death",
			      (json_int_t)f->input[i].death);
		json_object_set_new(v, "c",
				    f->input[i].c == BL_DET_NO_C ? json_null()
								 : json_u64(f->input[i].c));
		json_array_append_new(inputs, v);
	}
	for (i = 0; i < f->nwaits; i++)
		if (!f->saving &&
		    (f->step == BL_RECOVER_ANNOUNCED ? !f->wait[i].done : !f->wait[i].resumed))
			json_array_append_new(missing, json_u64(f->wait[i].node));
	json_object_set_new(o, "number", json_u64(f->number));
	json_object_set_new(o, "epoch", json_u64(f->epoch));
	json_object_set_new(o, "who", json_string(who));
	json_object_set_new(o, "why", json_string(why));
	json_object_set_new(o, "step", json_string(f->saving ? "saving" : steps[f->step]));
	json_object_set_new(o, "unix_ns", json_u64(announced_unix_ns(c, f->number)));
	json_object_set_new(o, "separated", json_boolean(f->separated));
	json_object_set_new(o, "unnamed", json_u64(ctl_failure_unnamed(c, f)));
	json_object_set_new(o, "waits", json_u64(json_array_size(missing)));
	json_object_set_new(o, "missing", missing);
	/* the time taken by each step, as far as it was under this leader */
	json_object_set_new(o, "determine_ns",
			    json_u64(f->at_ns && f->settled_ns ? f->settled_ns - f->at_ns : 0));
	json_object_set_new(
		o, "save_ns",
		json_u64(f->settled_ns && f->announced_ns ? f->announced_ns - f->settled_ns : 0));
	json_object_set_new(o, "collect_ns",
			    json_u64(f->announced_ns && f->done_ns ? f->done_ns - f->announced_ns
								   : 0));
	json_object_set_new(o, "resume_ns",
			    json_u64(f->resumed_ns && f->done_ns ? f->resumed_ns - f->done_ns
				     : f->resumed_ns && f->settled_ns
					     ? f->resumed_ns - f->settled_ns
					     : 0));
	json_object_set_new(o, "total_ns",
			    json_u64(f->at_ns && f->resumed_ns ? f->resumed_ns - f->at_ns : 0));
	json_object_set_new(o, "failed", failed);
	json_object_set_new(o, "inputs", inputs);
	return o;
}

/* Returns the highest epoch above this leader's that a node with a session obeys; 0: none does. */
static uint64_t later_epoch(const struct bl_ctl *c)
{
	uint64_t most = c->elected;
	const struct peer *p;

	for (p = c->peers; p; p = p->next)
		if (p->node && p->epoch > most)
			most = p->epoch;
	return most > c->elected ? most : 0;
}

static void put_trouble(const struct bl_ctl *c, json_t *o)
{
	const char *said = c->trouble;
	uint64_t behind = later_epoch(c);
	char text[600];

	if (!c->elected && !*said)
		said = bl_store_waits(c->store, text, sizeof(text));
	if (c->elected && behind) {
		snprintf(text, sizeof(text),
			 "a node obeys epoch %" PRIu64 " already, and refuses the commands of this "
			 "leader: the store is new, or an old copy",
			 behind);
		said = text;
	} else if (c->elected && bl_recover_isolated(c->rec)) {
		said = "most nodes have no session with this controller: no node is declared "
		       "failed for not answering";
	} else if (c->elected && bl_recover_doubts(c->rec)) {
		said = "most hosts would be cut off if the nodes that do not answer had failed: "
		       "none of them is declared failed for that; start their barlined again "
		       "(show failures -j names them under missing)";
	}
	json_object_set_new(o, "trouble", json_string(said));
}

char *bl_ctl_text(struct bl_ctl *c)
{
	json_t *o = json_object(), *nodes = json_array(), *failures = json_array(),
	       *epochs = json_array();
	uint32_t i;
	char *text;

	pthread_mutex_lock(&c->lock);
	json_object_set_new(o, "addr", json_string(c->cfg.advertise));
	json_object_set_new(o, "pid", json_u64((uint64_t)getpid()));
	json_object_set_new(o, "state",
			    json_string(!c->elected  ? "standby"
					: c->loading ? "loading"
						     : "leader"));
	json_object_set_new(o, "epoch", json_u64(c->elected));
	json_object_set_new(o, "leader", json_string(c->leader));
	json_object_set_new(o, "store", json_string(*c->cfg.sqlite ? c->cfg.sqlite : "etcd"));
	put_trouble(c, o);
	json_object_set_new(o, "lost", json_string(c->lost));
	json_object_set_new(o, "sessions", json_u64(c->npeers));
	put_counts(c, o);
	for (i = 0; i < bl_recover_nodes(c->rec); i++)
		json_array_append_new(nodes, node_row(c, bl_recover_node_at(c->rec, i)));
	for (i = 0; i < bl_recover_failures(c->rec); i++)
		json_array_append_new(failures, failure_row(c, bl_recover_failure_at(c->rec, i)));
	for (i = 0; i < c->nnodes; i++)
		if (!bl_recover_node(c->rec, c->nodes[i].id))
			json_array_append_new(nodes, absent_row(&c->nodes[i]));
	json_object_set_new(o, "strangers", ctl_strangers_rows(c));
	json_object_set_new(o, "admission", ctl_admit_row(c));
	for (i = 0; i < c->nepochs; i++)
		json_array_append_new(epochs, json_pack("{s:I, s:s, s:I}", "epoch",
							(json_int_t)c->epochs[i].epoch, "leader",
							c->epochs[i].leader, "unix_ns",
							(json_int_t)c->epochs[i].unix_ns));
	pthread_mutex_unlock(&c->lock);
	json_object_set_new(o, "nodes", nodes);
	json_object_set_new(o, "failures", failures);
	json_object_set_new(o, "epochs", epochs);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}
