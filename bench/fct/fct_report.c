/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report of `lab run fct`: completion times and slowdowns by policy and size of flow, and the
 * counters of queues and generator, as JSON, CSV files and plots.
 *
 * A flow that did not finish counts with the time that it waited, because the policy that lost it
 * would look better without it. A result is refused, and the exit status is 1, if the generator was
 * late, because then the requested load was not offered.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fct/fct.h"
#include "bench/fct/fct_stat.h"
#include "cli/util/out.h"
#include "cli/util/plot.h"
#include "cli/util/read_admission.h"
#include "maps/top_host_abi.h"
#include "loader/admission/top_host.h"

#define BL_TOP_DATA_SHARE (1538.0 / BL_TOP_WIRE_BYTES)
/* a pacer that is late by the time of this number of frames at the quantile 0.99 had no CPU */
#define LATE_FRAMES 5
#define NAMED       10 /* unfinished flows that are listed one by one */

/** struct outcome - The results of one policy. */
struct outcome {
	const struct fct_cell *c;
	const char *policy;                       /* its name */
	double *fct, *slowdown, *late;            /* by flow of the trace, from 0 */
	double *scratch;                          /* room for all flows of the plan */
	uint32_t unfinished;                      /* flows */
	uint32_t missed, deadlines;               /* flows that missed, and that have, a deadline */
	struct fct_summary lateness;              /* of the generator */
	struct fct_summary base;                  /* FCT of the probes */
	struct fct_summary all_fct, all_slowdown; /* of all flows */
	struct fct_summary cct;                   /* completion times of coflows */
	struct fct_summary fluid_fct, fluid_slowdown; /* of the model; n is 0: there is none */
	char refused[160];                            /* why the result is refused; "": it is not */
};

static double max_of(double a, double b)
{
	return a > b ? a : b;
}

/* returns the FCT of a flow of the plan, or how long it waited */
static double flow_fct(const struct fct_params *p, const struct fct_cell *c, uint32_t i)
{
	uint64_t planned = c->t0_ns + p->plan[i].start_ns,
		 end = c->r[i].end_ns ? c->r[i].end_ns : c->t0_ns + c->wall_ns;

	return end > planned ? (double)(end - planned) : 0;
}

static struct fct_summary summarize_probes(const struct fct_params *p, const struct fct_cell *c,
					   double *scratch)
{
	uint32_t i, n = 0;

	for (i = 0; i < FCT_PROBES; i++)
		if (c->r[i].end_ns)
			/* without the lateness of the generator */
			scratch[n++] = (double)(c->r[i].end_ns - c->r[i].begun_ns);
	return fct_summarize(scratch, n);
}

/* returns the least of the values that fct_summarize() sorted */
static double least_value(const struct fct_summary *s, const double *sorted)
{
	return s->n ? sorted[0] : 0;
}

static void check_lateness(const struct fct_params *p, struct outcome *o)
{
	const struct fct_cell *c = o->c;
	uint32_t late = 0, i, last = p->nplan - 1;
	double span = (double)p->flow[p->nflows - 1].start_ns;

	for (i = 0; i < p->nflows; i++)
		late += o->late[i] > (double)p->late_ns;
	if (!c->r[last].begun_ns)
		snprintf(o->refused, sizeof(o->refused),
			 "the generator did not begin the last flow");
	else if ((uint64_t)late * 100 > (uint64_t)p->nflows * FCT_LATE_PERCENT)
		snprintf(o->refused, sizeof(o->refused),
			 "the generator began %u of %u flows more than %.0f ms late", late,
			 p->nflows, (double)p->late_ns / 1e6);
	else if (o->late[p->nflows - 1] > max_of(0.02 * span, (double)p->late_ns))
		snprintf(o->refused, sizeof(o->refused),
			 "the last flow began %.1f ms late: the load was not offered",
			 o->late[p->nflows - 1] / 1e6);
}

static int summarize_coflows(const struct fct_params *p, struct outcome *o)
{
	double *cct = calloc((size_t)p->nflows + 1, sizeof(*cct)),
	       *first = calloc((size_t)p->nflows + 1, sizeof(*first));
	int err = 0;

	if (cct && first)
		o->cct = fct_summarize(cct, fct_coflows(p->flow, o->fct, p->nflows, cct, first));
	else
		err = cli_fail("out of memory");
	free(cct);
	free(first);
	return err;
}

static void run_model(const struct lab_spec *spec, const struct fct_params *p, double base,
		      struct outcome *o)
{
	double *slowdown = calloc(p->nflows, sizeof(double));
	uint32_t i;

	if (slowdown && !fct_model(spec, p, o->c->policy, base, o->scratch)) {
		for (i = 0; i < p->nflows; i++)
			slowdown[i] = o->scratch[i] / fct_ideal_ns(p->flow[i].bytes, p->mss,
								   spec->admission.rate_bps, base);
		o->fluid_fct = fct_summarize(o->scratch, p->nflows);
		o->fluid_slowdown = fct_summarize(slowdown, p->nflows);
	}
	free(slowdown);
}

static int make_outcome(const struct lab_spec *spec, const struct fct_params *p,
			const struct fct_cell *c, double base, struct outcome *o)
{
	uint32_t i;

	o->c = c;
	o->policy = p->policy[c->policy].text;
	o->fct = calloc(p->nflows, sizeof(double));
	o->slowdown = calloc(p->nflows, sizeof(double));
	o->late = calloc(p->nflows, sizeof(double));
	o->scratch = calloc(p->nplan, sizeof(double));
	if (!o->fct || !o->slowdown || !o->late || !o->scratch)
		return cli_fail("out of memory");
	for (i = 0; i < p->nflows; i++) {
		const struct fct_result *r = &c->r[FCT_PROBES + i];
		uint64_t planned = c->t0_ns + p->plan[FCT_PROBES + i].start_ns;

		o->fct[i] = flow_fct(p, c, FCT_PROBES + i);
		o->slowdown[i] = o->fct[i] / fct_ideal_ns(p->flow[i].bytes, p->mss,
							  spec->admission.rate_bps, base);
		o->late[i] = r->begun_ns > planned ? (double)(r->begun_ns - planned) : 0;
		o->unfinished += !r->end_ns;
	}
	memcpy(o->scratch, o->late, p->nflows * sizeof(double));
	o->lateness = fct_summarize(o->scratch, p->nflows);
	memcpy(o->scratch, o->fct, p->nflows * sizeof(double));
	o->all_fct = fct_summarize(o->scratch, p->nflows);
	memcpy(o->scratch, o->slowdown, p->nflows * sizeof(double));
	o->all_slowdown = fct_summarize(o->scratch, p->nflows);
	o->base = summarize_probes(p, c, o->scratch);
	o->missed = fct_missed(p->flow, o->fct, p->nflows, &o->deadlines);
	run_model(spec, p, base, o);
	check_lateness(p, o);
	return summarize_coflows(p, o);
}

static void free_outcome(struct outcome *o)
{
	free(o->fct);
	free(o->slowdown);
	free(o->late);
	free(o->scratch);
}

/* ---- JSON ---- */

static void add_summary(json_t *o, const char *what, const char *unit, const struct fct_summary *s)
{
	const struct {
		const char *name;
		double v;
	} all[] = { { "mean", s->mean },
		    { "p50", s->p50 },
		    { "p95", s->p95 },
		    { "p99", s->p99 },
		    { "max", s->max } };
	char key[64];
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(key, sizeof(key), "%s_%s%s", what, all[i].name, unit);
		json_object_set_new(o, key, s->n ? json_real(all[i].v) : json_null());
	}
}

static bool is_data(const struct fct_queue *q)
{
	return q->class == BL_CL_DATA || q->class == BL_CL_UNSCHED;
}

static const char *class_name(unsigned int class)
{
	static const char *const names[] = {
#define NAME(sym, name) [BL_CL_##sym] = name,
		BL_CLASSES(NAME)
#undef NAME
	};

	return names[class];
}

static json_t *make_queue_rows(const struct fct_cell *c)
{
	json_t *rows = json_array();
	unsigned int i;

	for (i = 0; i < c->nqueues; i++) {
		const struct fct_queue *q = &c->queue[i];
		json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "node", q->node, "port",
				      q->port, "class", class_name(q->class), "put",
				      (json_int_t)q->put, "dropped", (json_int_t)q->dropped,
				      "marked", (json_int_t)q->marked);

		adm_quantiles(o, "found", "_bytes", &q->found, BL_HIST_LEN_SHIFT, 1);
		adm_quantiles(o, "sojourn", "_ns", &q->sojourn, BL_HIST_NS_SHIFT, 1);
		json_array_append_new(rows, o);
	}
	return rows;
}

/*
 * Adds the change in percent against the first policy whose result is valid. Adds nothing if a flow
 * did not finish, because its FCT is not known.
 */
static void add_change(json_t *o, const struct outcome *all, const struct outcome *one)
{
	const struct outcome *first = all;

	while (first < one && (first->refused[0] || first->unfinished))
		first++;
	if (first == one || !first->all_fct.n || one->unfinished)
		return;
	json_object_set_new(o, "against", json_string(first->policy));
	json_object_set_new(o, "fct_change_percent",
			    json_real(100 * (one->all_fct.mean / first->all_fct.mean - 1)));
	json_object_set_new(
		o, "slowdown_change_percent",
		json_real(100 * (one->all_slowdown.mean / first->all_slowdown.mean - 1)));
	if (one->fluid_fct.n && first->fluid_fct.n) {
		double fct = one->fluid_fct.mean / first->fluid_fct.mean;
		double slow = one->fluid_slowdown.mean / first->fluid_slowdown.mean;

		json_object_set_new(o, "fluid_fct_change_percent", json_real(100 * (fct - 1)));
		json_object_set_new(o, "fluid_slowdown_change_percent",
				    json_real(100 * (slow - 1)));
	}
	if (one->cct.n && first->cct.n)
		json_object_set_new(o, "cct_change_percent",
				    json_real(100 * (one->cct.mean / first->cct.mean - 1)));
}

/*
 * Compares the longest data queue of the run with the bound of section 4.3 of TOP's paper. Example,
 * 50 Mbit/s: d = 200 us and 4 hops of 8 tokens at 3661 tokens/s (2.19 ms each) make T = 8.94 ms.
 * The data for the tokens of this time arrives at 1538/1622 of the link's rate, after the shortest
 * way of 70 us. So 0.948 x 6.25 MB/s x 8.87 ms = 52.6 kB may meet in a queue, in addition to the
 * two frames of the token bucket. The longest queue is that of the histogram, which is up to 12.5 %
 * too long, and the frame that found it.
 *
 * In the paper, links never pause. A pacer that is late delays data, and so does the pacer of the
 * next switch. So there is a second bound with the greatest lateness of the run added to the time.
 */
static void add_bound(json_t *row, const struct fct_bound *b, const struct bl_hist *found,
		      const struct bl_hist *late, uint64_t rate_bps, double way_ns)
{
	double spread_ns = (double)b->expiry_ns + 2 * (double)b->clock_ns - way_ns,
	       per_ns = BL_TOP_DATA_SHARE * (double)rate_bps / 8e9, bytes;
	uint64_t most = 0, late_ns = 0;
	json_t *o;

	if (!b->on || !hist_quantile(found, 10000, BL_HIST_LEN_SHIFT, &most))
		return;
	most += BL_TOP_FRAME_MAX;
	bytes = per_ns * (spread_ns > 0 ? spread_ns : 0) + 2 * BL_TOP_FRAME_MAX;
	hist_quantile(late, 10000, BL_HIST_NS_SHIFT, &late_ns);
	o = json_pack("{s:I, s:I, s:i, s:I, s:I, s:f, s:I, s:f, s:b}", "T_ns",
		      (json_int_t)b->expiry_ns, "d_ns", (json_int_t)b->base_ns, "hops",
		      (int)b->hops, "hop_ns", (json_int_t)b->hop_ns, "clock_ns",
		      (json_int_t)b->clock_ns, "way_ns", way_ns, "longest_bytes", (json_int_t)most,
		      "bound_bytes", bytes, "within", (double)most <= bytes);
	json_object_set_new(o, "late_ns", json_integer((json_int_t)late_ns));
	json_object_set_new(o, "bound_late_bytes", json_real(bytes + per_ns * (double)late_ns));
	json_object_set_new(o, "within_late",
			    json_boolean((double)most <= bytes + per_ns * (double)late_ns));
	json_object_set_new(row, "data_queue", o);
}

static bool is_token(const struct fct_queue *q)
{
	return q->class >= BL_CL_TOKEN0 && q->class <= BL_CL_TOKEN5;
}

static json_t *make_policy_row(const struct lab_spec *spec, const struct fct_params *p,
			       const struct outcome *all, const struct outcome *o, double base)
{
	const struct fct_cell *c = o->c;
	const uint64_t *sw = c->switch_counts.n;
	uint64_t data = 0, rest = 0,
		 tokens = sw[BL_R_TOKEN_LIMIT] + sw[BL_R_TOKEN_EXPIRED] + sw[BL_R_TOKEN_FLOOD];
	struct bl_hist found = { 0 };
	unsigned int i;
	json_t *row;

	for (i = 0; i < c->nqueues; i++) {
		*(is_data(&c->queue[i])    ? &data
		  : is_token(&c->queue[i]) ? &tokens
					   : &rest) += c->queue[i].dropped;
		if (is_data(&c->queue[i]))
			hist_add(&found, &c->queue[i].found, NULL);
	}
	row = json_pack(
		"{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:I}", "policy", o->policy, "flows",
		(int)p->nflows, "finished", (int)(p->nflows - o->unfinished), "unfinished",
		(int)o->unfinished, "data_drops", (json_int_t)data, "token_drops",
		(json_int_t)tokens, "control_drops", (json_int_t)rest, "hold_drops",
		(json_int_t)(c->host_counts.n[BL_R_HOLD_FULL] + c->host_counts.n[BL_R_NO_SLOT]),
		"wall_s", (double)c->wall_ns / 1e9, "retransmits",
		(json_int_t)atomic_load(&c->retransmits));
	json_object_set_new(row, "refused", o->refused[0] ? json_string(o->refused) : json_null());
	add_summary(row, "late", "_ns", &o->lateness);
	add_summary(row, "probe", "_ns", &o->base);
	if (!o->refused[0]) {
		add_summary(row, "fct", "_ns", &o->all_fct);
		add_summary(row, "slowdown", "", &o->all_slowdown);
		add_change(row, all, o);
		if (o->fluid_fct.n) {
			json_object_set_new(row, "fluid_fct_mean_ns", json_real(o->fluid_fct.mean));
			json_object_set_new(row, "fluid_slowdown_mean",
					    json_real(o->fluid_slowdown.mean));
		}
		if (o->deadlines)
			json_object_set_new(row, "missed_percent",
					    json_real(100.0 * o->missed / o->deadlines));
		if (o->cct.n) {
			json_object_set_new(row, "coflows", json_integer(o->cct.n));
			add_summary(row, "cct", "_ns", &o->cct);
		}
	}
	add_bound(row, &c->bound, &found, &c->late, spec->admission.rate_bps, base);
	adm_quantiles(row, "queue", "_frames", &found, BL_HIST_LEN_SHIFT, ADM_FULL_FRAME);
	adm_quantiles(row, "queue", "_bytes", &found, BL_HIST_LEN_SHIFT, 1);
	adm_quantiles(row, "pacer_late", "_ns", &c->late, BL_HIST_NS_SHIFT, 1);
	json_object_set_new(row, "switch_counts", adm_reasons(&c->switch_counts));
	json_object_set_new(row, "host_counts", adm_reasons(&c->host_counts));
	json_object_set_new(row, "queues", make_queue_rows(c));
	return row;
}

static void format_bucket(const struct fct_params *p, unsigned int b, char *text, size_t size)
{
	uint64_t low = b ? p->edges[b - 1] + 1 : 1;

	if (b > p->nedges)
		snprintf(text, size, "all");
	else if (b == p->nedges)
		snprintf(text, size, "%" PRIu64 " B and more", low);
	else
		snprintf(text, size, "%" PRIu64 " to %" PRIu64 " B", low, p->edges[b]);
}

/* makes the row of bucket @b; the number after the last bucket stands for all flows */
static json_t *make_bucket_row(const struct fct_params *p, const struct outcome *o, unsigned int b)
{
	struct fct_summary fct, slowdown;
	uint32_t i, n = 0, m = 0;
	char text[64];
	json_t *row;

	for (i = 0; i < p->nflows; i++)
		if (b > p->nedges || fct_bucket(p->edges, p->nedges, p->flow[i].bytes) == b)
			o->scratch[n++] = o->fct[i];
	fct = fct_summarize(o->scratch, n);
	for (i = 0; i < p->nflows; i++)
		if (b > p->nedges || fct_bucket(p->edges, p->nedges, p->flow[i].bytes) == b)
			o->scratch[m++] = o->slowdown[i];
	slowdown = fct_summarize(o->scratch, m);
	format_bucket(p, b, text, sizeof(text));
	row = json_pack("{s:s, s:i, s:s, s:i}", "size", text, "bucket", b > p->nedges ? -1 : (int)b,
			"policy", o->policy, "flows", (int)n);
	add_summary(row, "fct", "_ns", &fct);
	add_summary(row, "slowdown", "", &slowdown);
	return row;
}

static double sum_wire_bytes(const struct fct_params *p)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < p->nflows; i++)
		sum += (double)fct_wire(p->flow[i].bytes, p->mss);
	return sum;
}

static json_t *make_head(const struct lab_spec *s, const struct fct_params *p, double base)
{
	double span = (double)p->flow[p->nflows - 1].start_ns / 1e9, bytes = 0;
	json_t *o, *edges = json_array(), *limits = json_array();
	char text[32];
	uint32_t i;

	for (i = 0; i < p->nflows; i++)
		bytes += (double)p->flow[i].bytes;
	for (i = 0; i < p->nedges; i++)
		json_array_append_new(edges, json_integer((json_int_t)p->edges[i]));
	o = json_pack("{s:s, s:s, s:i, s:I, s:I, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:o}",
		      "workload", "fct", "topology",
		      s->dumbbell     ? "dumbbell"
		      : s->leaf_spine ? "leaf-spine"
				      : "rack",
		      "hosts", (int)s->hosts, "rate_bps", (json_int_t)s->admission.rate_bps,
		      "capacity_bps", (json_int_t)p->capacity_bps, "congestion", p->congestion,
		      "fresh", (int)p->fresh, "flows", (int)p->nflows, "bytes", bytes, "span_s",
		      span, "scale", p->scale, "base_ns", base, "bucket_edges", edges);
	json_object_set_new(
		o, "objective",
		json_string(bl_top_option_value(BL_TOP_O_OBJECTIVE,
						s->admission.top.v[BL_TOP_O_OBJECTIVE]
							? s->admission.top.v[BL_TOP_O_OBJECTIVE] - 1
							: BL_TOP_BY_REMAINING,
						text, sizeof(text))));
	json_object_set_new(o, "longest_frames",
			    json_integer((json_int_t)s->admission.top.v[BL_TOP_O_LONGEST] - 1));
	for (i = 0; i + 1 < BL_TOP_CLASSES; i++) {
		json_int_t v = (json_int_t)p->limit[i];

		json_array_append_new(limits, p->limit[i] == ~0ULL ? json_null() : json_integer(v));
	}
	json_object_set_new(o, "limits", limits);
	json_object_set_new(o, "deadline_us",
			    p->deadline_us > 0 ? json_real(p->deadline_us) : json_null());
	json_object_set_new(o, "width", p->width ? json_integer(p->width) : json_null());
	json_object_set_new(o, "coflows",
			    p->coflows_name ? json_string(p->coflows_name) : json_null());
	json_object_set_new(o, "seed",
			    p->trace_name || p->coflows_name ? json_null()
							     : json_integer((json_int_t)p->seed));
	json_object_set_new(o, "sizes", p->sizes_name ? json_string(p->sizes_name) : json_null());
	json_object_set_new(o, "trace", p->trace_name ? json_string(p->trace_name) : json_null());
	json_object_set_new(o, "load", p->trace_name ? json_null() : json_real(p->load));
	json_object_set_new(
		o, "offered_load",
		span > 0 ? json_real(8 * sum_wire_bytes(p) / span / (double)p->capacity_bps)
			 : json_null());
	return o;
}

/* ---- files ---- */

static int write_flows(const struct lab_spec *spec, const struct fct_params *p,
		       const struct outcome *o, unsigned int n, double base)
{
	FILE *f = out_open(p->out, "flows.csv");
	unsigned int k;
	uint32_t i;

	if (!f)
		return 1;
	fputs("policy,id,src,dst,start_ns,bytes,bucket,late_ns,finished,fct_ns,ideal_ns,slowdown\n",
	      f);
	for (k = 0; k < n; k++)
		for (i = 0; i < p->nflows; i++)
			fprintf(f,
				"%s,%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%u,%.0f,%d,%.0f,%.0f,%.4f\n",
				o[k].policy, i + 1, p->flow[i].src + 1, p->flow[i].dst + 1,
				p->flow[i].start_ns, p->flow[i].bytes,
				fct_bucket(p->edges, p->nedges, p->flow[i].bytes), o[k].late[i],
				o[k].c->r[FCT_PROBES + i].end_ns != 0, o[k].fct[i],
				fct_ideal_ns(p->flow[i].bytes, p->mss, spec->admission.rate_bps,
					     base),
				o[k].slowdown[i]);
	return out_close(p->out, "flows.csv", f);
}

static int write_rows(const struct fct_params *p, const char *name, const json_t *rows,
		      const char *const *keys)
{
	FILE *f = out_open(p->out, name);
	const char *const *k;
	const json_t *row;
	size_t i;

	if (!f)
		return 1;
	for (k = keys; *k; k++)
		fprintf(f, "%s%s", k == keys ? "" : ",", *k);
	fputc('\n', f);
	json_array_foreach(rows, i, row)
	{
		for (k = keys; *k; k++) {
			const json_t *v = json_object_get(row, *k);

			if (k != keys)
				fputc(',', f);
			if (json_is_string(v))
				fputs(json_string_value(v), f);
			else if (json_is_integer(v))
				fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
			else if (json_is_real(v))
				fprintf(f, "%.10g", json_real_value(v));
		}
		fputc('\n', f);
	}
	return out_close(p->out, name, f);
}

static int write_queues(const struct fct_params *p, const json_t *results)
{
	static const char *const keys[] = { "policy",
					    "node",
					    "port",
					    "class",
					    "put",
					    "dropped",
					    "marked",
					    "found_p50_bytes",
					    "found_p99_bytes",
					    "found_max_bytes",
					    "sojourn_p50_ns",
					    "sojourn_p99_ns",
					    "sojourn_max_ns",
					    NULL };
	json_t *rows = json_array();
	const json_t *r, *q;
	size_t i, k;
	int err;

	json_array_foreach(results, i, r) json_array_foreach(json_object_get(r, "queues"), k, q)
	{
		json_t *row = json_copy((json_t *)(uintptr_t)q);

		json_object_set(row, "policy", json_object_get(r, "policy"));
		json_array_append_new(rows, row);
	}
	err = write_rows(p, "queues.csv", rows, keys);
	json_decref(rows);
	return err;
}

/* draws the plot; the names of the buckets are the tics of its axis */
static void draw_plot(const struct lab_spec *spec, const struct fct_params *p,
		      const struct outcome *o, unsigned int n, const json_t *res)
{
	char more[3072], text[64];
	unsigned int i;
	int len;

	len = snprintf(more, sizeof(more), "what='%s, %.0f Mbit/s, load %.2f'; policies='",
		       json_string_value(json_object_get(res, "topology")),
		       (double)spec->admission.rate_bps / 1e6,
		       json_number_value(json_object_get(res, "offered_load")));
	for (i = 0; i < n; i++)
		if (!o[i].refused[0])
			len += snprintf(more + len, sizeof(more) - (size_t)len, "%s ", o[i].policy);
	len += snprintf(more + len, sizeof(more) - (size_t)len, "'; tics='");
	for (i = 0; i <= p->nedges; i++) {
		if (i < p->nedges)
			snprintf(text, sizeof(text), "to %" PRIu64, p->edges[i]);
		len += snprintf(more + len, sizeof(more) - (size_t)len, "%s\"%s\" %u",
				i ? ", " : "", i < p->nedges ? text : "more", i);
	}
	snprintf(more + len, sizeof(more) - (size_t)len, "'");
	if (json_array_size(json_object_get(res, "buckets")))
		out_plot("fct.gp", p->out, more, "buckets.csv");
}

static int write_files(const struct lab_spec *spec, const struct fct_params *p,
		       const struct outcome *o, unsigned int n, double base, json_t *res)
{
	static const char *const keys[] = { "policy",        "size",         "bucket",
					    "flows",         "fct_mean_ns",  "fct_p50_ns",
					    "fct_p95_ns",    "fct_p99_ns",   "fct_max_ns",
					    "slowdown_mean", "slowdown_p50", "slowdown_p95",
					    "slowdown_p99",  "slowdown_max", NULL };
	const json_t *results = json_object_get(res, "results");
	FILE *f;

	f = out_open(p->out, "trace.txt");
	if (!f)
		return 1;
	fct_trace_write(f, p->flow, p->nflows);
	if (out_close(p->out, "trace.txt", f))
		return 1;
	f = out_open(p->out, "summary.json");
	if (!f)
		return 1;
	json_object_set_new(res, "schema", json_integer(CLI_SCHEMA));
	json_dumpf(res, f, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	fputc('\n', f);
	if (out_close(p->out, "summary.json", f) || write_flows(spec, p, o, n, base) ||
	    write_rows(p, "buckets.csv", json_object_get(res, "buckets"), keys) ||
	    write_queues(p, results))
		return 1;
	draw_plot(spec, p, o, n, res);
	return 0;
}

/* ---- warnings and errors ---- */

/* warns if a result is valid, but shows the limits of the machine rather than the policy */
static void add_warning(const struct lab_spec *spec, const struct outcome *o, json_t *warnings)
{
	double frame_ns = 8e9 * ADM_FULL_FRAME / (double)spec->admission.rate_bps;
	char text[300];
	uint64_t late;

	if (!hist_quantile(&o->c->late, 9900, BL_HIST_NS_SHIFT, &late) ||
	    (double)late < LATE_FRAMES * frame_ns)
		return;
	snprintf(text, sizeof(text),
		 "%s: switches and hosts sent frames late, p99 %.2f ms, which is %.0f frames: this "
		 "machine had no CPU for them; choose a lower --rate or a quieter time, or raise "
		 "the priority of the command (docs/workloads.md)",
		 o->policy, (double)late / 1e6, (double)late / frame_ns);
	json_array_append_new(warnings, json_string(text));
}

static void add_error(json_t *errors, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_error(json_t *errors, const char *fmt, ...)
{
	char text[800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(errors, json_string(text));
}

static void find_errors(const struct fct_params *p, const struct outcome *o, json_t *errors)
{
	char text[600];
	uint32_t i, k = 0;
	int n;

	if (o->refused[0])
		add_error(errors, "%s: no result: %s", o->policy, o->refused);
	if (o->c->error[0])
		add_error(errors, "%s: %s", o->policy, o->c->error);
	if (!o->unfinished || p->unfinished_ok)
		return;
	n = snprintf(text, sizeof(text), "%s: %u of %u flows did not finish:", o->policy,
		     o->unfinished, p->nflows);
	for (i = 0; i < p->nflows && k < NAMED; i++) {
		const struct fct_flow *f = &p->flow[i];

		if (o->c->r[FCT_PROBES + i].end_ns)
			continue;
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "%s %u (h%u to h%u, %" PRIu64 " of %" PRIu64 " bytes)", k ? "," : "",
			      i + 1, f->src + 1, f->dst + 1, o->c->r[FCT_PROBES + i].got, f->bytes);
		if (n >= (int)sizeof(text))
			break;
		k++;
	}
	add_error(errors, "%s%s", text, k < o->unfinished ? " and others" : "");
}

int fct_report(const struct lab_spec *spec, struct fct_params *p, struct fct_cell *cells,
	       json_t **said)
{
	struct outcome o[TRAFFIC_POLICIES_MAX] = { 0 };
	json_t *res, *rows = json_array(), *results = json_array(), *errors = json_array(),
		     *warnings = json_array();
	double base = p->base_ns, *scratch = calloc(FCT_PROBES, sizeof(double));
	unsigned int i, b, n = 0;
	int err = 0;

	for (i = 0; i < p->npolicies && scratch && !p->base_ns; i++) {
		struct fct_summary s = { 0 };

		if (cells[i].done)
			s = summarize_probes(p, &cells[i], scratch);
		if (s.n && (base <= 0 || least_value(&s, scratch) < base))
			base = least_value(&s, scratch);
	}
	free(scratch);
	for (i = 0; i < p->npolicies && !err; i++)
		if (cells[i].done)
			err = make_outcome(spec, p, &cells[i], base > 0 ? base : 1, &o[n++]);
	res = make_head(spec, p, base);
	for (b = 0; b <= p->nedges + 1 && !err; b++)
		for (i = 0; i < n; i++) {
			/* first the row of all flows, then by size */
			json_t *row = o[i].refused[0] ? NULL
						      : make_bucket_row(p, &o[i],
									b ? b - 1 : p->nedges + 1);

			if (row && json_integer_value(json_object_get(row, "flows")))
				json_array_append(rows, row);
			json_decref(row);
		}
	for (i = 0; i < n && !err; i++)
		json_array_append_new(results, make_policy_row(spec, p, o, &o[i], base));
	for (i = 0; i < n && !err; i++) {
		find_errors(p, &o[i], errors);
		add_warning(spec, &o[i], warnings);
	}
	json_object_set_new(res, "buckets", rows);
	json_object_set_new(res, "results", results);
	json_object_set_new(res, "errors", errors);
	json_object_set_new(res, "warnings", warnings);
	if (!err && p->out)
		err = write_files(spec, p, o, n, base, res);
	*said = res;
	err |= json_array_size(errors) != 0;
	for (i = 0; i < n; i++)
		free_outcome(&o[i]);
	return err;
}
