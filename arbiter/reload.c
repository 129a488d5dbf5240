// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See reload.h. */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/reload.h"

#include "arbiter/alloc/alloc.h"
#include "arbiter/server.h"
#include "arbiter/status_json.h"
#include "base/changes_json.h"
#include "base/hangup.h"
#include "base/text.h"
#include "proto/fastpass_file.h"

/** struct bl_arb_reload - What an arbiter needs to read its file again. */
struct bl_arb_reload {
	struct bl_arb *a;
	char path[4096];
	pthread_mutex_t one;         /* one reload at a time; protects the next two */
	const struct bl_fp_file *is; /* what the arbiter runs with */
	struct bl_fp_file *own;      /* @is, if a reload has read it; NULL: it is the caller's */
	struct bl_hangup *hangup;
};

/* ---- what is different ---- */

#define AT(member) offsetof(struct bl_fp_file, member)

static const char all_agree[] = "hosts and arbiters must agree on it";
static const char arbiters_agree[] = "arbiters must agree on it";
static const char allocator[] = "the allocator is made with it";
static const char others_use[] = "hosts and fault isolation use it, and read it when they start";

/* The numbers of 32 bits. */
static const struct {
	const char *path;
	size_t at;
	enum bl_change change;
	const char *why;
} numbers[] = {
	{ "slot_ns", AT(slot_ns), BL_CHANGE_RESTART, all_agree },
	{ "slot_bytes", AT(slot_bytes), BL_CHANGE_RESTART, all_agree },
	{ "window_slots", AT(window_slots), BL_CHANGE_RESTART, allocator },
	{ "lead_us", AT(lead_us), BL_CHANGE_RESTART, allocator },
	{ "run_slots", AT(run_slots), BL_CHANGE_RESTART, allocator },
	{ "late_us", AT(late_us), BL_CHANGE_RESTART, all_agree },
	{ "watchdog_us", AT(watchdog_us), BL_CHANGE_RESTART, arbiters_agree },
	{ "dead_us", AT(dead_us), BL_CHANGE_RESTART, arbiters_agree },
	{ "guard_us", AT(guard_us), BL_CHANGE_RESTART, arbiters_agree },
	{ "quota", AT(quota), BL_CHANGE_RESTART, allocator },
	{ "rtt_us", AT(rtt_us), BL_CHANGE_LIVE, "what is sent from now on is waited for by it" },
	{ "rack_up", AT(rack_up), BL_CHANGE_RESTART, allocator },
	{ "paths", AT(paths), BL_CHANGE_RESTART, all_agree },
	{ "path_cap", AT(path_cap), BL_CHANGE_RESTART, allocator },
	{ "cores", AT(cores), BL_CHANGE_RESTART, all_agree },
	{ "core_cap", AT(core_cap), BL_CHANGE_RESTART, allocator },
	{ "fallback_ms", AT(fallback_ms), BL_CHANGE_LIVE, others_use },
	{ "fault_report_us", AT(fault_report_us), BL_CHANGE_LIVE, others_use },
	{ "fault_settle_us", AT(fault_settle_us), BL_CHANGE_LIVE, others_use },
	{ "fault_frames", AT(fault_frames), BL_CHANGE_LIVE, others_use },
	{ "fault_percent", AT(fault_percent), BL_CHANGE_LIVE, others_use },
	{ "fault_hold_ms", AT(fault_hold_ms), BL_CHANGE_LIVE, others_use },
};

static uint32_t number_at(const struct bl_fp_file *f, size_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)f + at, sizeof(v));
	return v;
}

static void compare_number(struct bl_changes *c, enum bl_change change, const char *why,
			   const char *path, uint64_t was, uint64_t now)
{
	char a[24], b[24];

	snprintf(a, sizeof(a), "%" PRIu64, was);
	snprintf(b, sizeof(b), "%" PRIu64, now);
	bl_changes_compare(c, change, why, a, b, "%s", path);
}

/* What is long, or must not be shown. */
static void compare_whole(struct bl_changes *c, enum bl_change change, const char *why,
			  const char *path, bool equal)
{
	bl_changes_compare(c, change, why, "as before", equal ? "as before" : "another one", "%s",
			   path);
}

/* Returns "" for an address that was not given. */
static const char *addr_of(const uint8_t addr[16], bool given, char *text)
{
	return given ? bl_fp_addr_text(addr, text) : "";
}

/* Whether two lists of endpoints have the same places, for the hash and for the allocator. */
static bool same_endpoints(const struct bl_fp_file *a, const struct bl_fp_file *b)
{
	unsigned int i;

	for (i = 0; i < a->npeers && i < b->npeers; i++) {
		const struct bl_fp_peer *x = &a->peer[i], *y = &b->peer[i];

		if (strcmp(x->name, y->name) || memcmp(x->addr, y->addr, 16) ||
		    x->rack != y->rack || x->cap != y->cap)
			return false;
	}
	return a->npeers == b->npeers;
}

/* Of files whose endpoints are the same. */
static void compare_peers(struct bl_changes *c, const struct bl_fp_file *was,
			  const struct bl_fp_file *now)
{
	char path[64];
	unsigned int i;

	for (i = 0; i < was->npeers; i++) {
		const struct bl_fp_peer *a = &was->peer[i], *b = &now->peer[i];

		snprintf(path, sizeof(path), "endpoints.%s.weight", a->name);
		compare_number(c, BL_CHANGE_RESTART, allocator, path, a->weight, b->weight);
		snprintf(path, sizeof(path), "endpoints.%s.deadline_us", a->name);
		compare_number(c, BL_CHANGE_RESTART, allocator, path, a->deadline_us,
			       b->deadline_us);
		snprintf(path, sizeof(path), "endpoints.%s.mac", a->name);
		compare_whole(c, BL_CHANGE_LIVE, others_use, path,
			      a->has_mac == b->has_mac && !memcmp(a->mac, b->mac, 6));
		snprintf(path, sizeof(path), "endpoints.%s.apps", a->name);
		compare_whole(c, BL_CHANGE_LIVE, others_use, path,
			      a->napps == b->napps && !memcmp(a->app, b->app, sizeof(a->app)));
	}
}

static bool same_pairs(const struct bl_fp_file *a, const struct bl_fp_file *b)
{
	unsigned int i;

	for (i = 0; i < a->npairs && i < b->npairs; i++) {
		const struct bl_fp_pair *x = &a->pair[i], *y = &b->pair[i];

		if (x->src != y->src || x->dst != y->dst || x->weight != y->weight ||
		    x->deadline_us != y->deadline_us)
			return false;
	}
	return a->npairs == b->npairs;
}

static bool same_pods(const struct bl_fp_file *a, const struct bl_fp_file *b)
{
	if (!a->pod_of || !b->pod_of)
		return a->pod_of == b->pod_of;
	return a->npods == b->npods && a->nracks == b->nracks &&
	       !memcmp(a->pod_of, b->pod_of, a->nracks * sizeof(*a->pod_of));
}

static bool same_path_names(const struct bl_fp_file *a, const struct bl_fp_file *b)
{
	unsigned int i;

	for (i = 0; i < a->npath_names && i < b->npath_names; i++)
		if (strcmp(a->path_name[i], b->path_name[i]))
			return false;
	return a->npath_names == b->npath_names;
}

void bl_arb_changes(struct bl_changes *c, const struct bl_fp_file *was,
		    const struct bl_fp_file *now)
{
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
	unsigned int k;

	compare_whole(c, BL_CHANGE_RESTART, all_agree, "secret",
		      !memcmp(was->secret, now->secret, sizeof(was->secret)));
	for (k = 0; k < was->narbiters || k < now->narbiters; k++) {
		bl_changes_compare(c, BL_CHANGE_RESTART, all_agree,
				   addr_of(was->arbiter[k], k < was->narbiters, a),
				   addr_of(now->arbiter[k], k < now->narbiters, b), "arbiters.%u",
				   k);
	}
	bl_changes_compare(c, BL_CHANGE_RESTART, all_agree, addr_of(was->group, was->has_group, a),
			   addr_of(now->group, now->has_group, b), "group");
	compare_number(c, BL_CHANGE_RESTART, all_agree, "rate", was->rate_bps, now->rate_bps);
	bl_changes_compare(c, BL_CHANGE_RESTART, allocator,
			   bl_alloc_policy_name((enum bl_alloc_policy)was->policy),
			   bl_alloc_policy_name((enum bl_alloc_policy)now->policy), "policy");
	for (k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
		compare_number(c, numbers[k].change, numbers[k].why, numbers[k].path,
			       number_at(was, numbers[k].at), number_at(now, numbers[k].at));
	compare_whole(c, BL_CHANGE_RESTART, all_agree, "pods", same_pods(was, now));
	bl_changes_compare(c, BL_CHANGE_RESTART, allocator, was->euler ? "euler" : "greedy",
			   now->euler ? "euler" : "greedy", "path_selection");
	bl_changes_compare(c, BL_CHANGE_LIVE, others_use, bl_fp_field_name(was->field),
			   bl_fp_field_name(now->field), "path_field");
	compare_number(c, BL_CHANGE_LIVE, others_use, "udp_ports", was->udp_ports, now->udp_ports);
	bl_changes_compare(c, BL_CHANGE_LIVE, others_use, was->routed ? "true" : "false",
			   now->routed ? "true" : "false", "routed");
	compare_whole(c, BL_CHANGE_LIVE, others_use, "path_names", same_path_names(was, now));
	/* What the service has said stays in force until it says something else. */
	if (was->has_faults && !now->has_faults)
		bl_changes_compare(c, BL_CHANGE_RESTART,
				   "links that it named would be avoided for ever",
				   bl_fp_addr_text(was->faults, a), "", "faults");
	else
		bl_changes_compare(c, BL_CHANGE_LIVE,
				   "the next list of links has to come from there",
				   addr_of(was->faults, was->has_faults, a),
				   addr_of(now->faults, now->has_faults, b), "faults");
	compare_whole(c, BL_CHANGE_RESTART, "hosts and arbiters compare a hash of the list",
		      "endpoints", same_endpoints(was, now));
	if (same_endpoints(was, now)) {
		compare_peers(c, was, now);
		compare_whole(c, BL_CHANGE_RESTART, allocator, "pairs", same_pairs(was, now));
	}
}

/* ---- the reload ---- */

static void free_file(struct bl_fp_file *f)
{
	if (f)
		bl_fp_free(f);
	free(f);
}

static int apply(struct bl_arb_reload *r, const struct bl_fp_file *now, struct bl_changes *c,
		 struct bl_err *err)
{
	struct in6_addr faults = in6addr_any;
	int rc;

	bl_arb_changes(c, r->is, now);
	rc = bl_changes_judge(c, err);
	if (rc)
		return rc;
	if (now->has_faults)
		memcpy(&faults, now->faults, sizeof(faults));
	bl_arb_retune(r->a, now->rtt_us, &faults);
	return 0;
}

static int reload(struct bl_arb_reload *r, struct bl_changes *c, struct bl_err *err)
{
	struct bl_fp_file *now = calloc(1, sizeof(*now));
	int rc;

	pthread_mutex_lock(&r->one);
	bl_reload_begins();
	rc = now ? bl_reload_file(r->path, err) : bl_fail(err, ENOMEM, "out of memory");
	if (!rc)
		rc = bl_fp_load(now, r->path, err);
	if (!rc)
		rc = apply(r, now, c, err);
	if (rc) {
		free_file(now);
	} else {
		free_file(r->own);
		r->is = r->own = now;
		bl_changes_log(c, "arbiter");
	}
	bl_reload_ends("arbiter", NULL, rc, c->n, err);
	pthread_mutex_unlock(&r->one);
	return rc;
}

static void on_hangup(void *ctx)
{
	struct bl_changes c = { 0 };
	struct bl_err err;

	reload(ctx, &c, &err);
	bl_changes_free(&c);
}

char *bl_arb_reload_answer(struct bl_arb_reload *r, size_t *len)
{
	char addr[INET6_ADDRSTRLEN] = "";
	struct bl_changes c = { 0 };
	struct in6_addr listen;
	struct bl_err err;
	json_t *o;
	int rc;

	if (r) {
		rc = reload(r, &c, &err);
		listen = bl_arb_addr(r->a);
		bl_fp_addr_text(listen.s6_addr, addr);
	} else {
		rc = bl_fail(&err, ENOTSUP, "this arbiter was started without a file");
	}
	o = json_pack("{s:i, s:s, s:b, s:o, s:o}", "pid", (int)getpid(), "addr", addr, "reloaded",
		      !rc, "error", arb_json_text(rc ? err.text : ""), "changes",
		      bl_changes_json(&c, rc));
	bl_changes_free(&c);
	return arb_json_line(o, len);
}

int bl_arb_reload_open(struct bl_arb_reload **out, struct bl_arb *a, const struct bl_fp_file *f,
		       const char *path, struct bl_err *err)
{
	struct bl_arb_reload *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	if (!r)
		return bl_fail(err, ENOMEM, "out of memory");
	r->a = a;
	r->is = f;
	snprintf(r->path, sizeof(r->path), "%s", path);
	pthread_mutex_init(&r->one, NULL);
	rc = bl_hangup_open(&r->hangup, on_hangup, r, err);
	if (rc)
		bl_arb_reload_close(r);
	else
		*out = r;
	return rc;
}

void bl_arb_reload_close(struct bl_arb_reload *r)
{
	if (!r)
		return;
	bl_hangup_close(r->hangup);
	free_file(r->own);
	pthread_mutex_destroy(&r->one);
	free(r);
}
