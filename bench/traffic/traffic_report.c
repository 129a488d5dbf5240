/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report of a workload: a table with one row per policy and transport, the same as JSON, result
 * files and a plot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/traffic/traffic.h"
#include "cli/util/out.h"
#include "cli/util/plot.h"
#include "cli/util/read_admission.h"

#define PLOT_POINTS 20000 /* of one distribution; more are not visible */

struct quantile {
	const char *key;
	double q;
};
static const struct quantile mc_quantiles[] = { { "p50_ns", 0.5 },
						{ "p90_ns", 0.9 },
						{ "p99_ns", 0.99 },
						{ "p999_ns", 0.999 },
						{ "max_ns", 1 } };

static const char *transport_name(const struct traffic_cell *c)
{
	return c->udp ? "udp" : "tcp";
}

static json_t *make_flow_row(const struct traffic_flow *f, bool udp)
{
	json_t *o = json_pack("{s:i, s:i, s:f}", "from", (int)f->from + 1, "to", (int)f->to + 1,
			      "goodput_bps", f->bps);

	if (udp) {
		json_object_set_new(o, "jitter_ms", json_real(f->jitter_ms));
		json_object_set_new(o, "packets", json_integer((json_int_t)f->packets));
		json_object_set_new(o, "lost", json_integer((json_int_t)f->lost));
	} else {
		json_object_set_new(o, "retransmits", json_integer((json_int_t)f->retransmits));
	}
	if (f->error[0])
		json_object_set_new(o, "error", json_string(f->error));
	return o;
}

/* returns how many ports the workload can fill at the same time */
static unsigned int count_bottlenecks(const struct lab_spec *spec, const struct traffic_params *p)
{
	return p->kind == TRAFFIC_SHUFFLE ? spec->hosts : 1;
}

static json_t *make_cell_row(const struct lab_spec *spec, const struct traffic_params *p,
			     const struct traffic_cell *c)
{
	const struct traffic_policy *policy = &p->policy[c->policy];
	double sum = 0, jitter = 0, least = 0, most = 0;
	uint64_t retransmits = 0, lost = 0, packets = 0;
	unsigned int i, failed = 0, longest = 0;
	json_t *o, *flows = json_array();
	bool metered = policy->on && spec->admission.rate_bps;

	for (i = 0; i < c->nflows; i++) {
		const struct traffic_flow *f = &c->flow[i];

		sum += f->bps;
		jitter += f->jitter_ms;
		least = !i || f->bps < least ? f->bps : least;
		most = f->bps > most ? f->bps : most;
		retransmits += f->retransmits;
		lost += f->lost;
		packets += f->packets;
		failed += f->error[0] != '\0';
		json_array_append_new(flows, make_flow_row(f, c->udp));
	}
	for (i = 0; i < c->nsamples; i++)
		longest = c->sample[i].bytes > longest ? c->sample[i].bytes : longest;
	o = json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:i, s:i}", "policy", policy->text,
		      "transport", transport_name(c), "goodput_bps", sum, "goodput_mbit", sum / 1e6,
		      "least_flow_mbit", least / 1e6, "most_flow_mbit", most / 1e6, "flows_failed",
		      (int)failed, "flows", (int)c->nflows);
	json_object_set_new(
		o, "goodput_percent",
		metered ? json_real(100 * sum /
				    ((double)spec->admission.rate_bps * count_bottlenecks(spec, p)))
			: json_null());
	json_object_set_new(
		o, "switch_drops",
		policy->on ? json_integer((json_int_t)(c->switch_counts.n[BL_R_QUEUE_FULL] +
						       c->switch_counts.n[BL_R_NO_SLOT]))
			   : json_null());
	json_object_set_new(o, "unreserved",
			    json_integer((json_int_t)c->switch_counts.n[BL_R_UNRESERVED]));
	json_object_set_new(o, "early_refused",
			    json_integer((json_int_t)c->switch_counts.n[BL_R_EARLY_REFUSED]));
	json_object_set_new(o, "hold_drops",
			    policy->on
				    ? json_integer((json_int_t)(c->host_counts.n[BL_R_HOLD_FULL] +
								c->host_counts.n[BL_R_NO_SLOT]))
				    : json_null());
	adm_quantiles(o, "queue", "_frames", &c->found, BL_HIST_LEN_SHIFT, ADM_FULL_FRAME);
	adm_quantiles(o, "sojourn", "_ns", &c->sojourn, BL_HIST_NS_SHIFT, 1);
	adm_quantiles(o, "pacer_late", "_ns", &c->late, BL_HIST_NS_SHIFT, 1);
	json_object_set_new(o, "sampled_max_frames",
			    c->metered ? json_real((double)longest / ADM_FULL_FRAME) : json_null());
	json_object_set_new(o, "retransmits",
			    c->udp ? json_null() : json_integer((json_int_t)retransmits));
	json_object_set_new(o, "jitter_ms",
			    c->udp && c->nflows ? json_real(jitter / c->nflows) : json_null());
	json_object_set_new(o, "jitter_ns",
			    c->udp && c->nflows ? json_real(1e6 * jitter / c->nflows)
						: json_null());
	json_object_set_new(o, "lost_percent",
			    c->udp && packets ? json_real(100 * (double)lost / (double)packets)
					      : json_null());
	json_object_set_new(o, "switch_counts", adm_reasons(&c->switch_counts));
	json_object_set_new(o, "host_counts", adm_reasons(&c->host_counts));
	json_object_set_new(o, "by_flow", flows);
	return o;
}

static int compare64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Appends the rows of a cell. Sorts its samples in place. */
static void add_memcached_rows(json_t *rows, const struct traffic_params *p, struct traffic_cell *c)
{
	unsigned int k;
	size_t i;

	for (k = 0; k < TRAFFIC_MC_SIZES; k++) {
		struct traffic_mc *m = &c->mc[k];
		json_t *o = json_pack("{s:s, s:s, s:i, s:I, s:I, s:f}", "policy",
				      p->policy[c->policy].text, "transport", transport_name(c),
				      "value_bytes", (int)m->size, "requests", (json_int_t)m->n,
				      "unanswered", (json_int_t)m->unanswered, "per_s",
				      (double)m->n / p->seconds);

		qsort(m->ns, m->n, sizeof(*m->ns), compare64);
		for (i = 0; i < sizeof(mc_quantiles) / sizeof(mc_quantiles[0]); i++)
			json_object_set_new(
				o, mc_quantiles[i].key,
				m->n ? json_integer((json_int_t)m->ns[(
					       uint32_t)(mc_quantiles[i].q * (m->n - 1) + 0.5)])
				     : json_null());
		json_array_append_new(rows, o);
	}
}

/* ---- files ---- */

static int write_queue(const struct traffic_params *p, const struct traffic_cell *cells,
		       unsigned int ncells)
{
	FILE *f = out_open(p->out, "queue.csv");
	unsigned int i, k;

	if (!f)
		return 1;
	fputs("policy,transport,time_ms,frames\n", f);
	for (i = 0; i < ncells; i++)
		for (k = 0; k < cells[i].nsamples; k++)
			fprintf(f, "%s,%s,%.3f,%.2f\n", p->policy[cells[i].policy].text,
				transport_name(&cells[i]), cells[i].sample[k].at_us / 1e3,
				(double)cells[i].sample[k].bytes / ADM_FULL_FRAME);
	return out_close(p->out, "queue.csv", f);
}

/* Writes the distribution at evenly spaced ranks, and all samples of its last hundredth. */
static int write_memcached(const struct traffic_params *p, const struct traffic_cell *cells,
			   unsigned int ncells)
{
	FILE *f = out_open(p->out, "memcached.csv");
	unsigned int i, k;
	uint32_t j;

	if (!f)
		return 1;
	fputs("policy,transport,value_bytes,quantile,latency_us\n", f);
	for (i = 0; i < ncells; i++)
		for (k = 0; k < TRAFFIC_MC_SIZES; k++) {
			const struct traffic_mc *m = &cells[i].mc[k];
			uint32_t step = m->n / PLOT_POINTS + 1;

			for (j = 0; j < m->n; j += j < m->n - m->n / 100 ? step : 1)
				fprintf(f, "%s,%s,%u,%.7f,%.3f\n", p->policy[cells[i].policy].text,
					transport_name(&cells[i]), m->size, (j + 0.5) / m->n,
					(double)m->ns[j] / 1e3);
		}
	return out_close(p->out, "memcached.csv", f);
}

static void draw_plot(const struct lab_spec *spec, const struct traffic_params *p)
{
	char more[512];
	unsigned int i;
	int n;

	n = snprintf(more, sizeof(more), "what='%s'; mbit=%.0f; transports='%s%s'; policies='",
		     traffic_names[p->kind], (double)spec->admission.rate_bps / 1e6,
		     p->tcp ? "tcp " : "", p->udp ? "udp" : "");
	for (i = 0; i < p->npolicies; i++)
		/* the policy "off" has no queues to plot, but it has latencies */
		if (p->policy[i].on || p->kind == TRAFFIC_MEMCACHED)
			n += snprintf(more + n, sizeof(more) - (size_t)n, "%s ", p->policy[i].text);
	snprintf(more + n, sizeof(more) - (size_t)n, "'");
	if (p->kind == TRAFFIC_MEMCACHED)
		out_plot("memcached.gp", p->out, more, "memcached.csv");
	else
		out_plot("queue.gp", p->out, more, "queue.csv");
}

static bool any_samples(const struct traffic_cell *cells, unsigned int ncells)
{
	unsigned int i;

	for (i = 0; i < ncells; i++)
		if (cells[i].nsamples)
			return true;
	return false;
}

static int write_files(const struct lab_spec *spec, const struct traffic_params *p,
		       const struct traffic_cell *cells, unsigned int ncells, json_t *res)
{
	FILE *f;
	int err;

	f = out_open(p->out, "summary.json");
	if (!f)
		return 1;
	json_object_set_new(res, "schema", json_integer(CLI_SCHEMA));
	json_dumpf(res, f, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	fputc('\n', f);
	err = out_close(p->out, "summary.json", f);
	if (!err && p->kind == TRAFFIC_MEMCACHED)
		err = write_memcached(p, cells, ncells);
	if (!err)
		err = write_queue(p, cells, ncells);
	if (!err && (p->kind == TRAFFIC_MEMCACHED || any_samples(cells, ncells)))
		draw_plot(spec, p);
	return err;
}

/* ---- text ---- */

static void print_errors(const struct traffic_params *p, const struct traffic_cell *c)
{
	unsigned int i;

	for (i = 0; i < c->nflows; i++)
		if (c->flow[i].error[0])
			printf("%s, %s: h%u to h%u: %s\n", p->policy[c->policy].text,
			       transport_name(c), c->flow[i].from + 1, c->flow[i].to + 1,
			       c->flow[i].error);
}

static void print_results(const struct lab_spec *spec, const struct traffic_params *p,
			  const struct traffic_cell *cells, unsigned int ncells, const json_t *res)
{
	static const struct col cols[] = { { "policy", "POLICY", 's' },
					   { "transport", "TRANSPORT", 's' },
					   { "goodput_mbit", "MBIT/S", 'f' },
					   { "goodput_percent", "OF_RATE_%", 'f' },
					   { "least_flow_mbit", "LEAST", 'f' },
					   { "most_flow_mbit", "MOST", 'f' },
					   { "switch_drops", "DROPS", 'd' },
					   { "hold_drops", "HOLD_DROPS", 'd' },
					   { "queue_p50_frames", "QUEUE_P50", 'f' },
					   { "queue_p99_frames", "P99", 'f' },
					   { "queue_p999_frames", "P99.9", 'f' },
					   { "queue_max_frames", "MAX", 'f' },
					   { "sojourn_p99_ns", "WAIT_P99", 't' },
					   { "retransmits", "RETRANS", 'd' },
					   { "jitter_ns", "JITTER", 't' },
					   { "lost_percent", "LOST_%", 'f' } };
	static const struct col mc[] = {
		{ "policy", "POLICY", 's' },        { "transport", "BULK", 's' },
		{ "value_bytes", "VALUE", 'd' },    { "p50_ns", "P50", 't' },
		{ "p90_ns", "P90", 't' },           { "p99_ns", "P99", 't' },
		{ "p999_ns", "P99.9", 't' },        { "max_ns", "GREATEST", 't' },
		{ "requests", "REQUESTS", 'd' },    { "per_s", "PER_S", 'f' },
		{ "unanswered", "UNANSWERED", 'd' }
	};
	json_t *answers = json_object_get(res, "memcached");
	char rate[32];
	unsigned int i;

	snprintf(rate, sizeof(rate), spec->admission.rate_bps ? "%.0f Mbit/s" : "not metered",
		 (double)spec->admission.rate_bps / 1e6);
	printf("%s on %u hosts, links %s, %u s each%s\n", traffic_names[p->kind], spec->hosts, rate,
	       p->seconds,
	       p->kind == TRAFFIC_MEMCACHED ? "; latency of a GET beside bulk data, and the bulk "
					      "data"
					    : "");
	if (answers) {
		OUT_TABLE(stdout, answers, mc);
		putchar('\n');
	}
	OUT_TABLE(stdout, json_object_get(res, "results"), cols);
	for (i = 0; i < ncells; i++)
		print_errors(p, &cells[i]);
	fflush(stdout);
}

int traffic_report(const struct lab_spec *spec, const struct traffic_params *p,
		   struct traffic_cell *cells, unsigned int ncells)
{
	json_t *res = json_pack("{s:s, s:i, s:I, s:i, s:s}", "workload", traffic_names[p->kind],
				"hosts", (int)spec->hosts, "rate_bps",
				(json_int_t)spec->admission.rate_bps, "seconds", (int)p->seconds,
				"congestion", p->congestion);
	json_t *rows = json_array(), *answers = json_array();
	unsigned int i;
	int err;

	for (i = 0; i < ncells; i++) {
		if (!cells[i].done)
			continue; /* a message was printed */
		if (p->kind == TRAFFIC_MEMCACHED)
			add_memcached_rows(answers, p, &cells[i]);
		json_array_append_new(rows, make_cell_row(spec, p, &cells[i]));
	}
	json_object_set_new(res, "results", rows);
	if (p->kind == TRAFFIC_MEMCACHED)
		json_object_set(res, "memcached", answers);
	json_decref(answers);
	err = p->out ? write_files(spec, p, cells, ncells, res) : 0;
	if (cli.json)
		cli_json(json_incref(res));
	else
		print_results(spec, p, cells, ncells, res);
	json_decref(res);
	return err;
}
