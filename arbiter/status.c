// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `barline arbiter show` reads (base/status_socket.h). Nothing can be changed here but one
 * thing: who sends "usable SRC DST MASK\n" (racks, bits of paths, hexadecimal) first, tells which
 * paths work.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "arbiter/reasons.h"
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
	struct bl_status_socket *status;
	struct bl_arb_row *rows;
};

static const char *const states[] = {
#define X(sym, num, name) [num] = name,
	BL_FCP_STATES(X)
#undef X
};

static char *text_of(struct bl_arb_status *d, size_t *len)
{
	struct bl_arb_total t;
	char addr[INET6_ADDRSTRLEN], *text = NULL;
	FILE *o = open_memstream(&text, len);
	unsigned int i;

	if (!o)
		return NULL;
	bl_arb_read(d->a, &t, d->rows, d->f->npeers);
	fprintf(o, "{\"pid\":%d,\"rank\":%u,\"addr\":\"%s\",\"state\":\"%s\",\"policy\":\"%s\"",
		getpid(), d->rank, bl_fp_addr_text(d->f->arbiter[d->rank], addr),
		t.state < BL_FCP_STATE_LIMIT && states[t.state] ? states[t.state] : "?",
		bl_alloc_policy_name((enum bl_alloc_policy)d->f->policy));
	bl_put_number(o, "term", t.term);
	bl_put_number(o, "slot_ns", d->f->slot_ns);
	bl_put_number(o, "paths", d->f->paths);
	bl_put_number(o, "granted", t.granted);
	bl_put_number(o, "late", t.late);
	bl_put_number(o, "stale", t.stale);
	bl_put_number(o, "refunds", t.refunds);
	bl_put_number(o, "runs", t.runs);
	bl_put_number(o, "skipped", t.skipped);
	bl_put_number(o, "overrun", t.overrun);
	bl_put_number(o, "no_path", bl_engine_no_path(d->e));
	bl_put_number(o, "faults_version", t.faults_version);
	bl_put_number(o, "faults_links", t.faults_links);
	bl_put_number(o, "takeovers", t.takeovers);
	bl_put_number(o, "yields", t.yields);
	bl_put_number(o, "stalls", t.stalls);
	bl_put_number(o, "sent", t.sent);
	bl_put_number(o, "send_failed", t.send_failed);
	arb_put_reasons(o, "packets", t.packets);
	arb_put_reasons(o, "watchdogs", t.watchdogs);
	arb_put_reasons(o, "faults", t.faults);
	fprintf(o, ",\"unknown\":\"%s\",\"endpoints\":[", t.unknown);
	for (i = 0; i < d->f->npeers; i++) {
		const struct bl_arb_row *r = &d->rows[i];

		fputs(i ? ",{" : "{", o);
		bl_put_text(o, "endpoint", d->f->peer[i].name);
		fprintf(o, ",\"addr\":\"%s\",\"rack\":%u,\"session\":%s",
			bl_fp_addr_text(d->f->peer[i].addr, addr), d->f->peer[i].rack,
			r->session ? "true" : "false");
		bl_put_number(o, "waiting", r->waiting);
		bl_put_number(o, "granted", r->granted);
		bl_put_number(o, "refused", r->refused);
		bl_put_number(o, "capped", r->capped);
		bl_put_number(o, "resets", r->resets);
		bl_put_number(o, "gone", r->gone);
		bl_put_number(o, "lost_packets", r->timeouts + r->nacks);
		arb_put_reasons(o, "packets", r->packets);
		fputc('}', o);
	}
	fputs("]}\n", o);
	if (fclose(o)) {
		free(text);
		return NULL;
	}
	return text;
}

/* "usable 0 1 2": from rack 0 to rack 1 only path 1 works. */
static void obey(struct bl_arb_status *d, const char *line)
{
	unsigned int src, dst;
	unsigned long long mask;

	if (sscanf(line, "usable %u %u %llx", &src, &dst, &mask) == 3 &&
	    !bl_engine_usable(d->e, src, dst, mask))
		bl_log(BL_LOG_INFO, "paths from rack %u to rack %u: %#llx", src, dst, mask);
	else
		bl_log(BL_LOG_WARN,
		       "the arbiter's door heard \"%.40s\", which is nothing that it knows", line);
}

static char *reply(void *ctx, char *said, size_t *len)
{
	char *line, *save = NULL;

	for (line = strtok_r(said, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		obey(ctx, line);
	return text_of(ctx, len);
}

void bl_arb_serve_end(struct bl_arb_status *d)
{
	if (!d)
		return;
	bl_status_socket_close(d->status);
	free(d->rows);
	free(d);
}

int bl_arb_serve(struct bl_arb_status **out, struct bl_arb *a, const struct bl_fp_file *f,
		 struct bl_engine *e, unsigned int rank, struct bl_err *err)
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
	d->rows = calloc(f->npeers, sizeof(*d->rows));
	/* a second arbiter of this rank has failed to listen by now */
	snprintf(path, sizeof(path), BL_RUN_DIR BL_ARB_DOOR, (unsigned long long)bl_netns_ino(),
		 rank);
	rc = d->rows ? bl_status_socket_open(&d->status, path, reply, d, err)
		     : bl_fail(err, ENOMEM, "out of memory");
	if (rc)
		bl_arb_serve_end(d);
	else
		*out = d;
	return rc;
}
