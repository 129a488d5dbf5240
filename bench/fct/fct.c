/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run fct: options, the trace, and a new lab for each policy (fct.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/time.h"
#include "bench/fct/fct.h"
#include "bench/fct/fct_stat.h"
#include "bench/util.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "core/top/top_classes_core.h"
#include "loader/admission/top_host.h"
#include "lab/lab_argp.h"

/*
 * Rates that two cores can forward at load 0.6 with 8 hosts. In a dumbbell only the link between
 * the ToRs is loaded, elsewhere all links are. Under top each data frame has a token. At 50 Mbit/s
 * the ports of the spines got so few turns of the pacer that they were late by more than the two
 * frames that they may catch up: a queue that was fed by one link of the same rate grew to 163 kB
 * (2026-11-21).
 */
#define RATE          25000000
#define DUMBBELL_RATE 50000000
#define DEFAULT_FLOWS 1000 /* as in the testbeds of TOP's paper */
#define BEACON_US     4000
#define TOP           "top"
#define ONE_CLASS     "top-1class" /* all tokens are in one class, as in ExpressPass */
#define WIDTH         4
/*
 * Deadlines as in section 5.3 of pFabric (SIGCOMM 2013): for flows up to 200 kB, with a mean of
 * 1000 us at 10 Gbit/s.
 */
#define DEADLINE_BYTES 1.25e6
#define DEADLINE_MOST  200e3
/*
 * Defaults of top's settings in this workload. base_us: a byte takes 70 us from host to host, which
 * is a third of SYNC, token and data. headroom_percent of switches: acknowledgements and signals
 * need no token; at 50 Mbit/s in both directions they take 4 % of the link.
 */
#define TOP_BASE_US  200
#define TOP_HEADROOM 5

enum {
	KEY_POLICY = 700,
	KEY_SIZES,
	KEY_LOAD,
	KEY_SCALE,
	KEY_FLOWS,
	KEY_SECONDS,
	KEY_SEED,
	KEY_TRACE,
	KEY_BUCKETS,
	KEY_FRESH,
	KEY_CONGESTION,
	KEY_GRACE,
	KEY_LATE,
	KEY_BASE,
	KEY_UNFINISHED,
	KEY_OUT,
	KEY_RUNS,
	KEY_SEEDS,
	KEY_DEADLINE,
	KEY_WIDTH,
	KEY_COFLOWS
};

static const struct argp_option options[] = {
	{ "sizes", KEY_SIZES, "FILE", 0,
	  "distribution of sizes: websearch (default), datamining, or a file with lines \"bytes "
	  "cdf\" or \"packets 1 cdf\"",
	  2 },
	{ "load", KEY_LOAD, "L", 0,
	  "load of the links (see below), with headers, 0.0001 to 1 (default 0.6)", 2 },
	{ "policy", KEY_POLICY, "LIST", 0,
	  "policies to compare, in this order (default none,fastpass,top-1class,top): none, pl2, "
	  "fastpass and so on; top-1class: top with one class of tokens (ExpressPass); top:paper, "
	  "top-1class:ns2 and so on: top with that law",
	  2 },
	{ "scale", KEY_SCALE, "F", 0,
	  "factor for all sizes and for the edges of the default buckets (default 0.1)", 2 },
	{ "flows", KEY_FLOWS, "N", 0,
	  "number of flows, at most 30000 (default 1000, unless --seconds is given)", 2 },
	{ "seconds", KEY_SECONDS, "S", 0, "only flows that arrive in this time, 1 to 3600", 2 },
	{ "seed", KEY_SEED, "N", 0, "seed of the random trace (default 1)", 2 },
	{ "runs", KEY_RUNS, "N", 0,
	  "number of runs, 1 to 100, with seeds from --seed on; the result is the median, the "
	  "least and the greatest value",
	  2 },
	{ "seeds", KEY_SEEDS, "LIST", 0, "one run with each of these seeds", 2 },
	{ "deadline-us", KEY_DEADLINE, "US", 0,
	  "flows up to 200 kB times --scale get deadlines, exponentially distributed with this "
	  "mean, but not below 1.25 times the time of their frames (default with --objective "
	  "deadline: the time of 1.25 MB times --scale)",
	  2 },
	{ "width", KEY_WIDTH, "N", 0,
	  "flows arrive in coflows of N flows on average, 1 to 64 (default with --objective "
	  "coflow: 4)",
	  2 },
	{ "coflows", KEY_COFLOWS, "FILE", 0,
	  "coflows of a published trace (\"id arrival_ms nmap map.. nred red:MB..\") instead of "
	  "random flows; its times are adapted to the load",
	  2 },
	{ "trace", KEY_TRACE, "FILE", 0,
	  "flows of a file with lines \"id src dst start_ns bytes\" or \"... deadline_us coflow\", "
	  "as in OUT/trace.txt, instead of random ones",
	  2 },
	{ "buckets", KEY_BUCKETS, "LIST", 0,
	  "greatest sizes of the buckets, in bytes (default 10000,100000,1000000,10000000 times "
	  "--scale)",
	  2 },
	{ "fresh", KEY_FRESH, NULL, 0,
	  "connect when the flow arrives, so that the handshake counts (default: every flow has a "
	  "connection of its own, which is made before)",
	  2 },
	{ "congestion", KEY_CONGESTION, "NAME", 0, "congestion control of TCP (default cubic)", 2 },
	{ "grace", KEY_GRACE, "S", 0,
	  "give up unfinished flows this time after the last arrival, 1 to 600 (default 60)", 2 },
	{ "late-ms", KEY_LATE, "MS", 0,
	  "refuse a result if more than 1 % of the flows began later than this, 1 to 1000000 "
	  "(default 10)",
	  2 },
	{ "base-us", KEY_BASE, "US", 0,
	  "completion time of one byte in the idle network (default: measured, the least over all "
	  "policies)",
	  2 },
	{ "unfinished-ok", KEY_UNFINISHED, NULL, 0, "report unfinished flows, but not as an error",
	  2 },
	{ "out", KEY_OUT, "DIR", 0,
	  "write summary.json, trace.txt, flows.csv, buckets.csv, queues.csv and plots to this "
	  "directory",
	  2 },
	{ 0 }
};

struct args {
	struct lab *lab;
	struct fct_params p;
	struct fct_sizes sizes;
	bool load_given, sizes_given, seeds_given;
	bool classes_given; /* an option of top says how classes are made */
	bool learn;         /* it says that receivers learn them */
};

static uint32_t find_law(const char *name)
{
	static const char *const names[] = {
#define NAME(sym, text, about) [BL_TOP_LAW_##sym] = text,
		BL_TOP_LAWS(NAME)
#undef NAME
	};
	uint32_t k;

	for (k = 0; k < BL_TOP_LAW_COUNT; k++)
		if (!strcmp(name, names[k]))
			return k + 1;
	return 0;
}

/* cuts "top:paper" into the policy and its law; returns the law + 1, or 0 if there is none */
static uint32_t cut_law(char *word, struct argp_state *state)
{
	char *law = strchr(word, ':');
	uint32_t k;

	if (!law || strncmp(word, TOP, strlen(TOP)))
		return 0;
	*law = '\0';
	k = find_law(law + 1);
	if (!k)
		argp_error(state, "policy \"%s:%s\": its law is paper or ns2", word, law + 1);
	return k;
}

static void parse_policies(struct fct_params *p, const char *arg, struct argp_state *state)
{
	char *list = strdup(arg), *save = NULL, *word;

	p->npolicies = 0;
	for (word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		struct traffic_params t = { 0 };
		char text[sizeof(t.policy[0].text)];
		bool one_class;
		uint32_t law;

		snprintf(text, sizeof(text), "%s", word);
		law = cut_law(word, state);
		one_class = !strcmp(word, ONE_CLASS);
		traffic_policies(&t, one_class ? TOP : word, state);
		if (!t.policy[0].on)
			argp_error(state, "policy \"off\" has no metered links, so that it has no "
					  "load");
		if (p->npolicies == TRAFFIC_POLICIES_MAX)
			argp_error(state, "more than %d policies", TRAFFIC_POLICIES_MAX);
		p->one_class[p->npolicies] = one_class;
		p->law[p->npolicies] = law;
		p->policy[p->npolicies] = t.policy[0];
		memcpy(p->policy[p->npolicies++].text, text, sizeof(text));
	}
	free(list);
	if (!p->npolicies)
		argp_error(state, "no policy");
}

static void parse_buckets(struct fct_params *p, const char *arg, struct argp_state *state)
{
	char *list = strdup(arg), *save = NULL, *word;
	long long v;

	p->nedges = 0;
	for (word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		if (p->nedges == FCT_EDGES_MAX)
			argp_error(state, "more than %d buckets", FCT_EDGES_MAX + 1);
		if (!bl_read_integer(word, 1, 1000000000000000, &v) ||
		    (p->nedges && (uint64_t)v <= p->edges[p->nedges - 1]))
			argp_error(state,
				   "buckets \"%s\": \"%s\" is not a number of bytes above the one "
				   "before",
				   arg, word);
		p->edges[p->nedges++] = (uint64_t)v;
	}
	free(list);
	p->edges_given = true;
}

static void parse_seeds(struct fct_params *p, const char *arg, struct argp_state *state)
{
	char *list = strdup(arg), *save = NULL, *word;
	unsigned int i;
	long long v;

	p->nseeds = 0;
	for (word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		if (p->nseeds == FCT_RUNS_MAX)
			argp_error(state, "more than %d seeds", FCT_RUNS_MAX);
		if (!bl_read_integer(word, 0, INT64_MAX, &v))
			argp_error(state, "seeds \"%s\": \"%s\" is not a number from 0 on", arg,
				   word);
		for (i = 0; i < p->nseeds; i++)
			if (p->seeds[i] == (uint64_t)v)
				argp_error(state,
					   "--seeds %s: %lld is given twice, and both runs would "
					   "be the same",
					   arg, v);
		p->seeds[p->nseeds++] = (uint64_t)v;
	}
	free(list);
	if (!p->nseeds)
		argp_error(state, "no seed");
}

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_LOAD, "load", NULL, 0.0001, 1, struct fct_params, load),
	BL_NUMBER(KEY_SCALE, "scale", NULL, 1e-6, 1000, struct fct_params, scale),
	BL_NUMBER(KEY_FLOWS, "flows", NULL, 1, FCT_FLOWS_MAX, struct fct_params, flows),
	BL_NUMBER_SCALED(KEY_SECONDS, "seconds", "s", 1, 3600, struct fct_params, span_ns,
			 BL_NS_PER_S),
	BL_NUMBER(KEY_SEED, "seed", NULL, 0, INT64_MAX, struct fct_params, seed),
	BL_NUMBER(KEY_RUNS, "runs", NULL, 1, FCT_RUNS_MAX, struct fct_params, nseeds),
	BL_NUMBER(KEY_DEADLINE, "deadline-us", "us", 1, 4e9, struct fct_params, deadline_us),
	BL_NUMBER(KEY_WIDTH, "width", NULL, 1, FCT_WIDTH_MAX, struct fct_params, width),
	BL_NUMBER(KEY_GRACE, "grace", "s", 1, 600, struct fct_params, grace_s),
	BL_NUMBER_SCALED(KEY_LATE, "late-ms", "ms", 1, 1000000, struct fct_params, late_ns,
			 1000000),
	BL_NUMBER_SCALED(KEY_BASE, "base-us", "us", 0.001, 1e6, struct fct_params, base_ns, 1000),
	{ 0 }
};
/* clang-format on */

static error_t parse_fct(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	struct fct_params *p = &a->p;
	error_t err = bl_number_option(numbers, key, arg, p, state);

	a->load_given |= key == KEY_LOAD;
	p->flows_given |= key == KEY_FLOWS;
	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->lab->spec;
		return 0;
	case KEY_POLICY:
		parse_policies(p, arg, state);
		return 0;
	case KEY_SIZES:
		p->sizes_name = arg;
		a->sizes_given = true;
		return 0;
	case KEY_SEEDS:
		parse_seeds(p, arg, state);
		a->seeds_given = true;
		return 0;
	case KEY_COFLOWS:
		p->coflows_name = arg;
		return 0;
	case KEY_TRACE:
		p->trace_name = arg;
		return 0;
	case KEY_BUCKETS:
		parse_buckets(p, arg, state);
		return 0;
	case KEY_FRESH:
		p->fresh = true;
		return 0;
	case KEY_CONGESTION:
		p->congestion = arg;
		return 0;
	case KEY_UNFINISHED:
		p->unfinished_ok = true;
		return 0;
	case KEY_OUT:
		p->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		return strcmp(arg, "fct") ? ARGP_ERR_UNKNOWN : 0;
	case ARGP_KEY_END:
		if (p->trace_name &&
		    (a->load_given || a->sizes_given || p->flows_given || p->span_ns || p->nseeds ||
		     p->deadline_us > 0 || p->width || p->coflows_name))
			argp_error(state, "--trace gives the flows, so that these options are not "
					  "possible: --sizes, --load, --flows, --seconds, --runs, "
					  "--seeds, --deadline-us, --width, --coflows");
		if (p->coflows_name &&
		    (a->sizes_given || p->span_ns || p->nseeds || p->width || p->deadline_us > 0))
			argp_error(state, "--coflows gives the flows, so that these options are "
					  "not possible: --sizes, --seconds, --runs, --seeds, "
					  "--deadline-us, --width");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * Returns the capacity of the links that the load refers to: in a rack those of all hosts; with
 * more racks those from the ToRs upwards, because every flow uses one of them.
 */
static uint64_t link_capacity(const struct lab_spec *s)
{
	unsigned int up = s->dumbbell ? 1 : s->spines, t, links = 0;

	if (!s->leaf_spine)
		return s->hosts * s->admission.rate_bps;
	for (t = 0; t < s->tors; t++) {
		unsigned int hosts = lab_first_host(s, t + 1) - lab_first_host(s, t);

		links += hosts < up ? hosts : up;
	}
	return links * s->admission.rate_bps;
}

static int read_sizes(struct args *a)
{
	char why[200];
	FILE *f;
	int err;

	if (!fct_sizes_named(&a->sizes, a->p.sizes_name))
		return 0;
	f = fopen(a->p.sizes_name, "re");
	if (!f)
		return cli_fail("%s: %s; websearch and datamining need no file", a->p.sizes_name,
				strerror(errno));
	err = fct_sizes_read(&a->sizes, f, why, sizeof(why));
	fclose(f);
	return err ? cli_fail("%s: %s", a->p.sizes_name, why) : 0;
}

static int read_trace(struct args *a)
{
	FILE *f = fopen(a->p.trace_name, "re");
	char why[200];
	int n;

	if (!f)
		return cli_fail("%s: %s", a->p.trace_name, strerror(errno));
	n = fct_trace_read(f, a->lab->spec.hosts, a->p.flow, FCT_FLOWS_MAX, why, sizeof(why));
	fclose(f);
	if (n < 0)
		return cli_fail("%s: %s", a->p.trace_name, why);
	a->p.nflows = (uint32_t)n;
	a->p.load = 0;
	a->p.sizes_name = NULL;
	return 0;
}

/* reads coflows from a file, and adapts their times to the load */
static int read_coflows(struct args *a, const struct fct_plan *plan)
{
	FILE *f = fopen(a->p.coflows_name, "re");
	struct fct_params *p = &a->p;
	double wire = 0;
	char why[200];
	uint32_t i;
	int n;

	if (!f)
		return cli_fail("%s: %s", p->coflows_name, strerror(errno));
	n = fct_coflows_read(f, plan, p->flow, FCT_FLOWS_MAX, why, sizeof(why));
	fclose(f);
	if (n < 0)
		return cli_fail("%s: %s", p->coflows_name, why);
	p->nflows = (uint32_t)n;
	p->sizes_name = NULL;
	for (i = 0; i < p->nflows; i++)
		wire += (double)fct_wire(p->flow[i].bytes, p->mss);
	if (p->flow[p->nflows - 1].start_ns)
		fct_trace_stretch(p->flow, p->nflows,
				  8e9 * wire / p->load / (double)p->capacity_bps /
					  (double)p->flow[p->nflows - 1].start_ns);
	return 0;
}

static int make_trace(struct args *a)
{
	const struct lab_spec *s = &a->lab->spec;
	struct fct_params *p = &a->p;
	struct fct_plan plan = { .seed = p->seed,
				 .sizes = &a->sizes,
				 .scale = p->scale,
				 .hosts = s->hosts,
				 .flows = p->flows,
				 .span_ns = p->span_ns,
				 .deadline_us = p->deadline_us,
				 .deadline_bytes = fct_sizes_scaled(DEADLINE_MOST, p->scale),
				 .width = p->width,
				 .mss = p->mss,
				 .rate_bps = s->admission.rate_bps };
	unsigned int t, i;

	for (t = 0; s->leaf_spine && t < s->tors; t++)
		for (i = lab_first_host(s, t); i < lab_first_host(s, t + 1); i++)
			plan.rack[i] = t;
	if (p->coflows_name)
		return read_coflows(a, &plan);
	if (read_sizes(a))
		return 1;
	plan.per_second = p->load * (double)p->capacity_bps / 8 /
			  fct_sizes_wire_mean(&a->sizes, p->scale, p->mss);
	p->nflows = fct_trace_make(&plan, p->flow, FCT_FLOWS_MAX);
	if (!p->nflows)
		return cli_fail("no flow arrives in that time: there are %.3g per second",
				plan.per_second);
	if (p->nflows > FCT_FLOWS_MAX)
		return cli_fail("more than %d flows arrive in that time: there are %.3g per "
				"second; make the flows longer (--scale), or --seconds less",
				FCT_FLOWS_MAX, plan.per_second);
	return 0;
}

static enum bl_top_objective top_objective(const struct args *a)
{
	uint32_t v = a->lab->spec.admission.top.v[BL_TOP_O_OBJECTIVE];

	return v ? (enum bl_top_objective)(v - 1) : BL_TOP_BY_REMAINING;
}

/*
 * Returns p of floor(K log_p(a x + b)): the greatest value that the objective counts, which is the
 * frames of a flow, the frames of a coflow, or the slots until a deadline.
 */
static uint32_t longest_value(const struct args *a)
{
	double *sum = calloc((size_t)FCT_FLOWS_MAX + 1, sizeof(*sum)), most = 0, v;
	const enum bl_top_objective by = top_objective(a);
	const struct fct_params *p = &a->p;
	uint32_t i;

	for (i = 0; i < p->nflows; i++) {
		const struct fct_flow *f = &p->flow[i];

		v = (double)f->bytes / FCT_PACKET_BYTES;
		if (by == BL_TOP_BY_COFLOW && f->coflow && sum)
			v = sum[f->coflow] += v; /* to all hosts: K levels of a wider range */
		else if (by == BL_TOP_BY_DEADLINE)
			v = f->deadline_us * (double)a->lab->spec.admission.rate_bps / 8e6 /
			    BL_TOP_WIRE_BYTES;
		most = v > most ? v : most;
	}
	free(sum);
	return most < 2 ? 2 : most > 1e9 ? 1000000000 : (uint32_t)most + 1;
}

/*
 * Sets thresholds between TOP's classes so that each class has the same load with the sizes of this
 * trace. Does nothing if an option says how classes are made (a, b, p, thresholds or learn), or if
 * they do not depend on sizes.
 */
static void set_classes(struct args *a)
{
	const enum bl_top_objective by = top_objective(a);
	struct bl_top_opts *top = &a->lab->spec.admission.top;
	uint32_t *v = top->v, levels = v[BL_TOP_O_LEVELS] ? v[BL_TOP_O_LEVELS] - 1 : BL_TOP_CLASSES;
	uint64_t limit[BL_TOP_CLASSES - 1];
	double flows[BL_TOP_SIZES] = { 0 };
	uint32_t i;

	bl_top_limits(top, a->p.limit);
	if (by == BL_TOP_BY_DEADLINE || by == BL_TOP_BY_COFLOW || (a->classes_given && !a->learn))
		return;
	for (i = 0; i < a->p.nflows; i++)
		flows[bl_top_bucket(bl_top_frames(a->p.flow[i].bytes))]++;
	if (bl_top_equal_load(flows, by == BL_TOP_BY_FCT, levels, limit))
		return;
	memcpy(a->p.limit, limit, sizeof(limit)); /* the limit of learning */
	for (i = 0; i + 1 < BL_TOP_CLASSES && !a->learn; i++)
		v[BL_TOP_O_CLASS1 + i] =
			i + 1 < levels && limit[i] < 1000000000 ? (uint32_t)limit[i] + 1 : 0;
}

/* makes the plan: probes from h1 to h2, h2 to h3, ...; with racks, to the next rack's first host */
static void plan_probes(struct args *a)
{
	const struct lab_spec *s = &a->lab->spec;
	struct fct_params *p = &a->p;
	uint32_t i;

	for (i = 0; i < FCT_PROBES; i++) {
		unsigned int src = i % s->hosts,
			     dst = s->leaf_spine ? lab_first_host(s, (src * s->tors / s->hosts +
								      1) % s->tors)
						 : (src + 1) % s->hosts;

		p->plan[i] = (struct fct_flow){ .start_ns = i * FCT_PROBE_NS,
						.bytes = 1,
						.src = (uint16_t)src,
						.dst = (uint16_t)dst };
	}
	for (i = 0; i < p->nflows; i++) {
		p->plan[FCT_PROBES + i] = p->flow[i];
		p->plan[FCT_PROBES + i].start_ns += FCT_LEAD_NS;
	}
	p->nplan = FCT_PROBES + p->nflows;
}

static int check_setup(const struct args *a)
{
	const struct lab_spec *s = &a->lab->spec;
	unsigned int i;

	if (s->hosts < 2 || s->cores || (s->leaf_spine && s->tors < 2))
		return cli_usage("fct needs two hosts or more, and a leaf-spine two ToRs or more");
	for (i = 0; i < a->p.npolicies; i++)
		if (s->l3 && a->p.policy[i].policy == BL_POLICY_PL2)
			return cli_usage("policy \"%s\" is for a rack over L2",
					 a->p.policy[i].text);
	return 0;
}

/* argument of drive_cell() */
struct cell_run {
	const struct fct_params *p;
	struct fct_cell *c;
};

static int drive_cell(struct lab *lab, void *arg)
{
	const struct cell_run *r = arg;

	return fct_drive(lab, r->p, r->c);
}

static int run_cell(const struct lab *lab, const struct fct_params *p, struct fct_cell *c)
{
	const struct traffic_policy *policy = &p->policy[c->policy];
	struct lab *one = traffic_lab(lab, policy);
	struct cell_run r = { p, c };
	char what[80];

	if (!one)
		return 1;
	if (p->one_class[c->policy])
		one->spec.admission.top.v[BL_TOP_O_LEVELS] = 1 + 1;
	if (p->law[c->policy])
		one->spec.admission.top.v[BL_TOP_O_LAW] = p->law[c->policy];
	snprintf(what, sizeof(what), "fct, %s", policy->text);
	return traffic_run_lab(one, drive_cell, &r, &c->done, what);
}

/* does one run: makes a trace and measures all policies; returns 0, or 1 after a message */
static int run_one(struct args *a, struct fct_cell *cells, struct fct_result *r, json_t **said)
{
	struct bl_top_opts *top = &a->lab->spec.admission.top;
	const uint32_t given = top->v[BL_TOP_O_LONGEST];
	struct fct_params *p = &a->p;
	unsigned int i;
	int failed = 0;

	if (p->trace_name ? read_trace(a) : make_trace(a))
		return 1;
	plan_probes(a);
	if (!given)
		top->v[BL_TOP_O_LONGEST] = longest_value(a) + 1;
	set_classes(a);
	memset(cells, 0, sizeof(*cells) * p->npolicies);
	memset(r, 0, sizeof(*r) * p->npolicies * p->nplan);
	for (i = 0; i < p->npolicies; i++) {
		cells[i].policy = i;
		cells[i].r = r + (size_t)i * p->nplan;
		failed |= run_cell(a->lab, p, &cells[i]);
		if (failed && !i)
			break; /* the other policies would fail for the same reason */
	}
	out_progress_end();
	if (!failed || i)
		failed |= fct_report(&a->lab->spec, p, cells, said);
	top->v[BL_TOP_O_LONGEST] = given;
	return failed;
}

static int run_seeds(struct args *a, struct fct_cell *cells, struct fct_result *r)
{
	const char *out = a->p.out;
	json_t *runs = json_array(), *said, *res;
	unsigned int i;
	int err = 0;

	for (i = 0; i < a->p.nseeds; i++) {
		char dir[4096];

		a->p.seed = a->p.seeds[i];
		snprintf(dir, sizeof(dir), "%s/seed-%" PRIu64, out ? out : "", a->p.seed);
		a->p.out = out ? dir : NULL;
		said = NULL;
		err |= run_one(a, cells, r, &said);
		if (!said)
			break;
		if (!cli.json) {
			fct_print(said, false);
			putchar('\n');
			fflush(stdout);
		}
		json_array_append_new(runs, said);
	}
	res = fct_runs(runs);
	json_decref(runs);
	if (out)
		err |= fct_runs_write(out, res);
	if (cli.json)
		cli_json(json_incref(res));
	else
		fct_runs_print(res);
	json_decref(res);
	return err;
}

static int run_all(struct args *a)
{
	struct fct_params *p = &a->p;
	struct fct_cell *cells = shared_memory(sizeof(*cells) * p->npolicies);
	struct fct_result *r =
		shared_memory(sizeof(*r) * p->npolicies * (FCT_FLOWS_MAX + FCT_PROBES));
	json_t *said = NULL;
	int err;

	if (!cells || !r)
		return 1;
	if (p->out && out_dir(p->out))
		return 1;
	if (p->nseeds)
		return run_seeds(a, cells, r);
	err = run_one(a, cells, r, &said);
	if (said && cli.json)
		cli_json(json_incref(said));
	else if (said)
		fct_print(said, true);
	json_decref(said);
	return err;
}

/* sets what follows from all options together */
static void complete_options(struct args *a)
{
	const enum bl_top_objective by = top_objective(a);
	const uint32_t *v = a->lab->spec.admission.top.v;
	struct fct_params *p = &a->p;
	unsigned int i;

	if (!a->lab->spec.admission.rate_bps)
		a->lab->spec.admission.rate_bps = a->lab->spec.dumbbell ? DUMBBELL_RATE : RATE;
	if (!p->flows && !p->span_ns && !p->coflows_name)
		p->flows = DEFAULT_FLOWS;
	if (!a->lab->spec.beacon_us)
		a->lab->spec.beacon_us = BEACON_US;
	for (i = 0; i < 4 && !p->edges_given; i++)
		p->edges[p->nedges++] =
			fct_sizes_scaled((double[]){ 1e4, 1e5, 1e6, 1e7 }[i], p->scale);
	p->mss = a->lab->spec.mtu - FCT_TCP_IP;
	p->capacity_bps = link_capacity(&a->lab->spec);
	p->sizes_unknown = by == BL_TOP_BY_LAS;
	for (i = BL_TOP_O_CLASS1; i <= BL_TOP_O_CLASS5; i++)
		a->classes_given |= v[i] != 0;
	a->learn = !a->classes_given && v[BL_TOP_O_LEARN] == 1 + 1;
	a->classes_given |= v[BL_TOP_O_A] || v[BL_TOP_O_B] || v[BL_TOP_O_LONGEST] ||
			    v[BL_TOP_O_LEARN];
	if (by == BL_TOP_BY_DEADLINE && p->deadline_us <= 0 && !p->trace_name && !p->coflows_name)
		p->deadline_us =
			8e6 * DEADLINE_BYTES * p->scale / (double)a->lab->spec.admission.rate_bps;
	if (by == BL_TOP_BY_COFLOW && !p->width && !p->trace_name && !p->coflows_name)
		p->width = WIDTH;
	for (i = 0; i < p->nseeds && !a->seeds_given; i++)
		p->seeds[i] = p->seed + i;
}

int fct_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_fct,
					  .args_doc = "fct [rack|dumbbell|leaf-spine]",
					  .children = children,
					  .doc = "barline lab run fct - completion times of flows "
						 "with random sizes that arrive as a Poisson "
						 "process, under one admission policy after the "
						 "other\v"
						 "Rack: every host sends to every other, and the "
						 "load is that of the hosts' links. Dumbbell, "
						 "leaf-spine: every flow goes to another ToR, and "
						 "the load is that of the links that leave a ToR "
						 "upwards. Default --rate: 50mbit on a dumbbell, "
						 "else 25mbit. FCT: from the planned arrival to "
						 "the last byte in the receiving process. "
						 "Slowdown: FCT divided by that of the flow alone. "
						 "--policy replaces --admission and --allocator of "
						 "other commands." };
	struct args *a = calloc(1, sizeof(*a));
	int err;

	if (!a || !(a->lab = lab_new()))
		return cli_fail("out of memory");
	a->p = (struct fct_params){ .sizes_name = "websearch",
				    .load = 0.6,
				    .scale = 0.1,
				    .seed = 1,
				    .late_ns = 10000000,
				    .grace_s = 60,
				    .congestion = "cubic" };
	/* without pl2, which needs a rack */
	parse_policies(&a->p, "none,fastpass," ONE_CLASS "," TOP, NULL);
	a->lab->spec.admission.on = true;
	a->lab->spec.admission.headroom_percent = TOP_HEADROOM;
	a->lab->spec.admission.top.v[BL_TOP_O_BASE] = TOP_BASE_US + 1;
	cmd_parse(&argp, argc, argv, a);
	complete_options(a);
	err = check_setup(a);
	if (!err) {
		a->p.flow = malloc(sizeof(*a->p.flow) * FCT_FLOWS_MAX);
		a->p.plan = malloc(sizeof(*a->p.plan) * (FCT_FLOWS_MAX + FCT_PROBES));
		err = !a->p.flow || !a->p.plan ? cli_fail("out of memory") : run_all(a);
	}
	free(a->p.flow);
	free(a->p.plan);
	free(a->lab);
	free(a);
	return err;
}
