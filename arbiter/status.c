// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/status.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "arbiter/reload.h"
#include "arbiter/server.h"
#include "arbiter/status.h"
#include "arbiter/status_json.h"
#include "base/log.h"
#include "base/netns.h"
#include "arbiter/alloc/alloc.h"
#include "base/status_socket.h"
#include "maps/meta_abi.h"

struct bl_arb_status {
	struct bl_arb *a;
	const struct bl_fp_file *f;
	struct bl_engine *e;
	unsigned int rank;
	struct bl_arb_reload *reload; /* NULL: there is no file */
	struct bl_status_socket *status;
};

static const char *const state_names[] = {
#define X(sym, num, name) [num] = name,
	BL_FCP_STATES(X)
#undef X
};

static json_t *endpoint_json(const struct bl_fp_peer *peer, const struct bl_arb_row *r)
{
	char addr[INET6_ADDRSTRLEN];

	return json_pack("{s:o, s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "endpoint",
			 arb_json_text(peer->name), "addr", bl_fp_addr_text(peer->addr, addr),
			 "rack", (int)peer->rack, "session", r->session, "waiting",
			 arb_json_number(r->waiting), "granted", arb_json_number(r->granted),
			 "refused", arb_json_number(r->refused), "capped",
			 arb_json_number(r->capped), "resets", arb_json_number(r->resets), "gone",
			 arb_json_number(r->gone), "lost_packets",
			 arb_json_number(r->timeouts + r->nacks), "packets",
			 arb_json_reasons(r->packets));
}

/* Element k: runs of the allocator that took less than 2^(ARB_RUN_FIRST + k) ns; the last: longer.
 */
static json_t *run_bins_json(const struct bl_arb_total *t)
{
	json_t *bins = json_array();
	unsigned int k;

	for (k = 0; k < BL_LOG_BINS; k++)
		json_array_append_new(bins, arb_json_number(t->run_bin[k]));
	return bins;
}

char *bl_arb_text(struct bl_arb *a, const struct bl_fp_file *f, struct bl_engine *e,
		  unsigned int rank, size_t *len)
{
	struct bl_arb_row *rows = calloc(f->npeers, sizeof(*rows));
	json_t *o = json_object(), *endpoints = json_array();
	char addr[INET6_ADDRSTRLEN];
	struct bl_arb_total t;
	unsigned int i;

	if (!rows || !o || !endpoints) {
		json_decref(endpoints);
		json_decref(o);
		free(rows);
		return NULL;
	}
	bl_arb_read(a, &t, rows, f->npeers);
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "rank", json_integer(rank));
	json_object_set_new(o, "addr", json_string(bl_fp_addr_text(f->arbiter[rank], addr)));
	json_object_set_new(o, "state",
			    json_string(t.state < BL_FCP_STATE_LIMIT && state_names[t.state]
						? state_names[t.state]
						: "?"));
	json_object_set_new(o, "policy",
			    json_string(bl_alloc_policy_name((enum bl_alloc_policy)f->policy)));
	json_object_set_new(o, "term", arb_json_number(t.term));
	json_object_set_new(o, "slot_ns", arb_json_number(f->slot_ns));
	json_object_set_new(o, "paths", arb_json_number(f->paths));
	json_object_set_new(o, "granted", arb_json_number(t.granted));
	json_object_set_new(o, "late", arb_json_number(t.late));
	json_object_set_new(o, "stale", arb_json_number(t.stale));
	json_object_set_new(o, "refunds", arb_json_number(t.refunds));
	json_object_set_new(o, "runs", arb_json_number(t.runs));
	json_object_set_new(o, "run_ns", arb_json_number(t.run_ns));
	json_object_set_new(o, "run_bins", run_bins_json(&t));
	json_object_set_new(o, "skipped", arb_json_number(t.skipped));
	json_object_set_new(o, "overrun", arb_json_number(t.overrun));
	json_object_set_new(o, "no_path", arb_json_number(bl_engine_no_path(e)));
	json_object_set_new(o, "faults_version", arb_json_number(t.faults_version));
	json_object_set_new(o, "faults_links", arb_json_number(t.faults_links));
	json_object_set_new(o, "takeovers", arb_json_number(t.takeovers));
	json_object_set_new(o, "yields", arb_json_number(t.yields));
	json_object_set_new(o, "stalls", arb_json_number(t.stalls));
	json_object_set_new(o, "sent", arb_json_number(t.sent));
	json_object_set_new(o, "send_failed", arb_json_number(t.send_failed));
	json_object_set_new(o, "packets", arb_json_reasons(t.packets));
	json_object_set_new(o, "watchdogs", arb_json_reasons(t.watchdogs));
	json_object_set_new(o, "faults", arb_json_reasons(t.faults));
	json_object_set_new(o, "unknown", json_string(t.unknown));
	for (i = 0; i < f->npeers; i++)
		json_array_append_new(endpoints, endpoint_json(&f->peer[i], &rows[i]));
	json_object_set_new(o, "endpoints", endpoints);
	free(rows);
	return arb_json_line(o, len);
}

/* Obeys one line. "usable 0 1 2": from rack 0 to rack 1 only path 1 works. */
static void obey_request(struct bl_arb_status *d, const char *line)
{
	unsigned int src, dst;
	unsigned long long mask;

	if (sscanf(line, "usable %u %u %llx", &src, &dst, &mask) == 3 &&
	    !bl_engine_usable(d->e, src, dst, mask))
		bl_log(BL_LOG_INFO, "paths from rack %u to rack %u: %#llx", src, dst, mask);
	else
		bl_log(BL_LOG_WARN,
		       "the arbiter's status socket: unknown request \"%.40s\"; the only one is "
		       "\"usable SRC DST MASK\"",
		       line);
}

static char *status_reply(void *ctx, char *said, size_t *len)
{
	struct bl_arb_status *d = ctx;
	char *line, *save = NULL;

	if (!strcmp(said, "reload\n"))
		return bl_arb_reload_answer(d->reload, len);
	for (line = strtok_r(said, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		obey_request(d, line);
	return bl_arb_text(d->a, d->f, d->e, d->rank, len);
}

void bl_arb_serve_end(struct bl_arb_status *d)
{
	if (!d)
		return;
	bl_status_socket_close(d->status);
	free(d);
}

int bl_arb_serve(struct bl_arb_status **out, struct bl_arb *a, const struct bl_fp_file *f,
		 struct bl_engine *e, unsigned int rank, struct bl_arb_reload *reload,
		 struct bl_err *err)
{
	struct bl_arb_status *d = calloc(1, sizeof(*d));
	char path[128];
	int rc;

	*out = NULL;
	if (!d)
		return bl_fail(err, ENOMEM, "out of memory");
	d->a = a;
	d->f = f;
	d->e = e;
	d->rank = rank;
	d->reload = reload;
	/* if a second arbiter of this rank ran, it would have failed to bind its UDP port before */
	snprintf(path, sizeof(path), BL_RUN_DIR BL_ARB_STATUS, (unsigned long long)bl_netns_ino(),
		 rank);
	rc = bl_status_socket_open(&d->status, path, status_reply, d, err);
	if (rc)
		bl_arb_serve_end(d);
	else
		*out = d;
	return rc;
}
