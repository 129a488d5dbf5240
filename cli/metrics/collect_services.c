// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metrics of controllers and arbiters, from their status sockets, and of certificates. See
 * collect.h.
 */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "arbiter/counters.h"
#include "base/library/gnutls.h"
#include "base/netns.h"
#include "base/proc.h"
#include "base/time.h"
#include "cli/util/ask.h"
#include "cli/metrics/collect.h"
#include "maps/meta_abi.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

/* Adds a sample for each member of the object @o, whose values are numbers. */
static void put_members(struct collector *c, enum metric m, json_t *o, const char *who)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
		metric_u64(c->to, m,
			   json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0,
			   LABELS(who, key));
}

/* Adds for each word how many rows of @rows have it as member @key. */
static void put_tally(struct collector *c, enum metric m, json_t *rows, const char *key,
		      const char *const *words, const char *who)
{
	const char *const *w;
	uint64_t n;
	json_t *v;
	size_t i;

	for (w = words; *w; w++) {
		n = 0;
		json_array_foreach(rows, i, v) n += !strcmp(text_of(v, key), *w);
		metric_u64(c->to, m, n, LABELS(who, *w));
	}
}

/* ---- controllers ---- */

static void put_controller(struct collector *c, json_t *o)
{
	static const char *const states[] = { "standby", "loading", "leader", NULL };
	static const char *const nodes[] = { "ok",      "away",     "down",       "failed",
					     "no link", "no agent", "never seen", NULL };
	static const char *const steps[] = { "saving", "announced", "resumed", "finished", NULL };
	const char *who = text_of(o, "addr");
	bool leads = !strcmp(text_of(o, "state"), "leader");
	size_t k;

	for (k = 0; states[k]; k++)
		metric_u64(c->to, BL_METRIC_CTL_STATE, !strcmp(text_of(o, "state"), states[k]),
			   LABELS(who, states[k]));
	metric_u64(c->to, BL_METRIC_CTL_EPOCH, number_of(o, "epoch"), LABELS(who));
	metric_u64(c->to, BL_METRIC_CTL_TROUBLE, *text_of(o, "trouble") != '\0', LABELS(who));
	metric_u64(c->to, BL_METRIC_CTL_SESSIONS, number_of(o, "sessions"), LABELS(who));
	metric_u64(c->to, BL_METRIC_CTL_REFUSED, number_of(o, "refused"), LABELS(who));
	put_members(c, BL_METRIC_CTL_EVENTS, json_object_get(o, "counts"), who);
	if (!leads)
		return;
	put_tally(c, BL_METRIC_CTL_NODES, json_object_get(o, "nodes"), "state", nodes, who);
	put_tally(c, BL_METRIC_CTL_FAILURES, json_object_get(o, "failures"), "step", steps, who);
}

/* ---- arbiters ---- */

static void put_arbiter(struct collector *c, json_t *o)
{
	static const char *const slots[] = { "granted", "late",    "stale",
					     "skipped", "overrun", "refunds" };
	static const char *const changes[] = { "takeovers", "yields", "stalls" };
	uint64_t sessions = 0, waiting = 0, bins[BL_LOG_BINS] = { 0 };
	char who[24];
	json_t *v;
	size_t k;

	snprintf(who, sizeof(who), "%llu", (unsigned long long)number_of(o, "rank"));
	json_array_foreach(json_object_get(o, "endpoints"), k, v)
	{
		sessions += json_is_true(json_object_get(v, "session"));
		waiting += number_of(v, "waiting");
	}
	metric_u64(c->to, BL_METRIC_ARB_PRIMARY, !strcmp(text_of(o, "state"), "primary"),
		   LABELS(who));
	metric_u64(c->to, BL_METRIC_ARB_TERM, number_of(o, "term"), LABELS(who));
	metric_u64(c->to, BL_METRIC_ARB_SESSIONS, sessions, LABELS(who));
	metric_u64(c->to, BL_METRIC_ARB_WAITING, waiting, LABELS(who));
	metric_u64(c->to, BL_METRIC_ARB_RUNS, number_of(o, "runs"), LABELS(who));
	for (k = 0; k < sizeof(slots) / sizeof(slots[0]); k++)
		metric_u64(c->to, BL_METRIC_ARB_SLOTS, number_of(o, slots[k]),
			   LABELS(who, slots[k]));
	for (k = 0; k < sizeof(changes) / sizeof(changes[0]); k++)
		metric_u64(c->to, BL_METRIC_ARB_CHANGES, number_of(o, changes[k]),
			   LABELS(who, changes[k]));
	json_array_foreach(json_object_get(o, "run_bins"), k, v) if (k < BL_LOG_BINS)
		bins[k] = json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
	collect_log_hist(c, BL_METRIC_ARB_TIME, bins, ARB_RUN_FIRST,
			 (double)number_of(o, "run_ns") * 1e-9, LABELS(who));
	put_members(c, BL_METRIC_ARB_PACKETS, json_object_get(o, "packets"), who);
}

/* ---- both ---- */

/*
 * Asks every service of the kind. Sockets at which nobody listens belong to processes that were
 * killed; they are not counted, and the next command of barline removes them.
 */
static void ask_all(struct collector *c, const char *kind,
		    void (*put)(struct collector *c, json_t *o))
{
	uint64_t answering = 0, silent = 0;
	struct ask a[ASK_MAX];
	char pattern[128], said[256];
	size_t i, n = 0;
	glob_t g;

	snprintf(pattern, sizeof(pattern), BL_RUN_DIR "/%s-%llu-*.sock", kind,
		 (unsigned long long)bl_netns_ino());
	if (!glob(pattern, 0, NULL, &g)) {
		for (; n < g.gl_pathc && n < ASK_MAX; n++)
			a[n] = (struct ask){ .path = g.gl_pathv[n] };
		ask_until(a, n, bl_mono_ns() + c->ask_ms * 1000000ULL);
		for (i = 0; i < n; i++) {
			if (a[i].answer) {
				answering++;
				put(c, a[i].answer);
			} else if (a[i].error != ECONNREFUSED && a[i].error != ENOENT) {
				silent++;
				collect_failed(c, "%s: %s", a[i].path,
					       a[i].error == ETIMEDOUT
						       ? bl_proc_silence(said, sizeof(said), kind,
									 a[i].pid, c->ask_ms)
						       : strerror(a[i].error));
			}
			json_decref(a[i].answer);
		}
		globfree(&g);
	}
	metric_u64(c->to, BL_METRIC_SERVICES, answering, LABELS(kind, "answering"));
	metric_u64(c->to, BL_METRIC_SERVICES, silent, LABELS(kind, "silent"));
}

void collect_controllers(struct collector *c)
{
	ask_all(c, "controller", put_controller);
}

void collect_arbiters(struct collector *c)
{
	ask_all(c, "arbiter", put_arbiter);
}

/* ---- certificates ---- */

/* Returns when the first certificate in @file expires, or -1 with the reason in *@why. */
static time_t expiry_of(const char *file, const char **why)
{
	gnutls_x509_crt_t crt;
	gnutls_datum_t pem;
	time_t t = -1;
	int rc = gnutls_load_file(file, &pem);

	*why = gnutls_strerror(rc);
	if (rc)
		return -1;
	if (!gnutls_x509_crt_init(&crt)) {
		rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM);
		*why = gnutls_strerror(rc);
		t = rc ? -1 : gnutls_x509_crt_get_expiration_time(crt);
		gnutls_x509_crt_deinit(crt);
	}
	gnutls_free(pem.data);
	return t;
}

void collect_certificates(struct collector *c)
{
	unsigned int k;
	const char *why;
	time_t t;

	for (k = 0; k < c->ncertificates; k++) {
		t = expiry_of(c->certificate[k], &why);
		if (t == -1)
			collect_failed(c, "%s: %s", c->certificate[k], why);
		else
			metric_ns(c->to, BL_METRIC_CERTIFICATE,
				  (int64_t)(t - time(NULL)) * 1000000000LL,
				  LABELS(c->certificate[k]));
	}
}
