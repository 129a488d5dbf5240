// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline lab run failover --kill WHAT: see kill.h. Each run has a lab of its own, so that nothing
 * is left from the run before.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nl.h"
#include "base/number.h"
#include "base/time.h"
#include "bench/kill/kill.h"
#include "bench/util.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "lab/lab_argp.h"
#include "lib/barline.h"
#include "loader/node.h"

#define RUNS_MAX  1000
#define WAIT_NS   60000000000ULL /* limit for each step of a run */
#define BEFORE_NS 200000000ULL   /* time of traffic before the kill and after the recovery */
/* the same for KILL_STOP and KILL_LEAVE, where the flow during this time is measured */
#define LIVING_NS 1000000000ULL

const char *const kill_names[KILL_KINDS] = { "host",       "tor",         "link", "spine",
					     "controller", "etcd-leader", "stop", "leave" };

/** struct outcome - The results of one run. Times are in ms. */
struct outcome {
	bool done;        /* the run is complete */
	double told;      /* from the kill to the last correct host's proc_fail callback; 0: none */
	double recovered; /* from the kill to the recovery, see kill.h */
	/* steps of the controller, each summed over the failures that it announced */
	double determine, save, collect, resume;
	unsigned int announced;  /* nodes and processes that the controller announced as failed */
	struct kill_flow before; /* before the kill */
	struct kill_flow stood;  /* from the kill to the end of the run */
	struct kill_flow after;  /* from the end of the longest gap of @stood to the end */
	struct kill_verdict verdict;
};

/** struct params - What to run. Set by options, then read only. */
struct params {
	struct lab *lab;
	enum kill_what what;
	unsigned int runs;
	unsigned int interval_us; /* between two scatterings of a host */
	unsigned int size;        /* of a message, bytes */
	unsigned int stop_ms;     /* KILL_STOP: for how long */
	unsigned int controllers; /* 0: what @what needs */
	const char *out;          /* directory for kill.csv; NULL: none */
};

/* struct shared - Memory that front, driver and workers share. */
struct shared {
	struct outcome outcome;
	struct kill_ctl ctl;
};

static const struct params *params;

/* nothing fails: a process is stopped for a while, or leaves */
static bool nothing_fails(void)
{
	return params->what == KILL_STOP || params->what == KILL_LEAVE;
}

/* ---- killing ---- */

static unsigned int find_node(const struct lab *lab, enum lab_kind kind, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < lab->nnodes && (lab->nodes[i].kind != kind || lab->nodes[i].index != index);
	     i++)
		;
	return i;
}

/*
 * Takes port @port of a node down, or all its ports if @port is negative. A child enters the node's
 * namespace, so that this process stays in its own. Returns 0, or 1 after a message.
 */
static int take_ports_down(const struct lab *lab, unsigned int node, int port)
{
	const struct lab_node *n = &lab->nodes[node];
	struct nl nl;
	unsigned int i;
	pid_t pid;
	int st, err;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return cli_fail("cannot fork: %s", strerror(errno));
	if (!pid) {
		err = lab_node_enter(n->name) || nl_open(&nl);
		for (i = 0; !err && i < n->nports; i++)
			if (port < 0 || (int)i == port)
				err = nl_down(&nl, if_nametoindex(n->ports[i].ifname));
		_exit(err != 0);
	}
	return waitpid(pid, &st, 0) != pid || st
		       ? cli_fail("cannot take the links of %s down", n->name)
		       : 0;
}

static void kill_worker_process(struct kill_ctl *c, unsigned int i)
{
	if (c->w[i].pid > 0) {
		kill(c->w[i].pid, SIGKILL);
		waitpid(c->w[i].pid, NULL, 0);
	}
	c->w[i].pid = 0;
}

/* Sets *@at to the time of the kill, and from when on messages show the recovery (kill.h). */
static void record_kill(const struct lab *lab, struct kill_ctl *c, uint64_t *at)
{
	*at = bl_mono_ns();
	atomic_store(&c->late_ns, *at + lab->spec.dead_after_us * 500ULL);
}

/*
 * Kills a node like a machine that loses power: its links, its daemon and its processes, as fast as
 * possible. When the links are down, the node is silent. The daemon is killed before the process,
 * so that it does not report the end of the process. Returns 0, or 1 after a message.
 */
static int kill_node(struct lab *lab, struct kill_ctl *c, unsigned int node, uint64_t *at)
{
	const struct lab_node *n = &lab->nodes[node];

	if (take_ports_down(lab, node, -1))
		return 1;
	record_kill(lab, c, at);
	if (lab_node_kill(node))
		return 1;
	if (n->kind == LAB_HOST)
		kill_worker_process(c, n->index - 1);
	return 0;
}

/* returns the port of a ToR that leads to its first spine */
static int find_up_port(const struct lab *lab, unsigned int tor)
{
	const struct lab_node *n = &lab->nodes[tor];
	unsigned int i;

	for (i = 0; i < n->nports && lab->nodes[n->ports[i].peer_node].kind != LAB_SPINE; i++)
		;
	return (int)i;
}

/*
 * Does what params->what demands.
 * @at: gets the time of the kill
 * @correct: hosts that have not failed; loses those that fail
 * Returns 0, or 1 after a message.
 */
static int cause_failure(struct lab *lab, struct kill_ctl *c, struct lab_ctl *ctl, uint64_t *at,
			 uint64_t *correct)
{
	const unsigned int tor = find_node(lab, LAB_TOR, 1);
	unsigned int i;

	/*
	 * The controller, or the leader of etcd, is killed first. Then a host fails, so that the
	 * loss of the controller has an effect.
	 */
	if (params->what == KILL_CONTROLLER && lab_ctl_kill(ctl))
		return 1;
	if (params->what == KILL_ETCD_LEADER && lab_ctl_kill_etcd(ctl))
		return 1;
	switch (params->what) {
	case KILL_LINK:
		if (take_ports_down(lab, tor, find_up_port(lab, tor)))
			return 1;
		record_kill(lab, c, at);
		return lab_withdraw(lab, 1, 1); /* the speed of a routing daemon is not measured */
	case KILL_SPINE:
		return kill_node(lab, c, find_node(lab, LAB_SPINE, 1), at);
	case KILL_TOR:
		for (i = 0; i < lab->nnodes; i++)
			if (lab->nodes[i].kind == LAB_HOST && lab->nodes[i].tor == lab->spec.tors)
				*correct &= ~(1ULL << (lab->nodes[i].index - 1));
		return kill_node(lab, c, find_node(lab, LAB_TOR, lab->spec.tors), at);
	case KILL_STOP: /* the controller decides whether the process is excluded */
		record_kill(lab, c, at);
		return kill(c->w[c->n - 1].pid, SIGSTOP)
			       ? cli_fail("cannot stop a process: %s", strerror(errno))
			       : 0;
	case KILL_LEAVE:
		*correct &= ~(1ULL << (c->n - 1));
		record_kill(lab, c, at);
		atomic_store(&c->w[c->n - 1].leave, 1);
		return 0;
	default:
		*correct &= ~(1ULL << (lab->spec.hosts - 1));
		return kill_node(lab, c, find_node(lab, LAB_HOST, lab->spec.hosts), at);
	}
}

/* ---- a run ---- */

static int start_workers(struct lab *lab, struct kill_ctl *c)
{
	uint64_t until = bl_mono_ns() + WAIT_NS;
	unsigned int i;
	pid_t pid;

	for (i = 0; i < c->n; i++) {
		fflush(NULL);
		pid = fork(); /* not into *c, which is shared: the child would overwrite it with 0
			       */
		if (pid < 0)
			return cli_fail("cannot fork: %s", strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			lab_leave_datapath_alone(lab);
			_exit(lab_host_enter(i) ? 126 : kill_work(c, i));
		}
		c->w[i].pid = pid;
	}
	for (i = 0; i < c->n; i++)
		while (!atomic_load(&c->w[i].ready)) {
			if (bl_mono_ns() > until || c->w[i].error[0])
				return cli_fail("h%u: %s", i + 1,
						c->w[i].error[0] ? c->w[i].error
								 : "no endpoint after a minute");
			nap_ns(1000000);
		}
	return 0;
}

static bool has_some(const struct kill_worker *w)
{
	return atomic_load(&w->ngot) >= 100;
}

static bool has_recovered(const struct kill_worker *w)
{
	return atomic_load(&w->recovered_ns);
}

static bool has_acks(const struct kill_worker *w)
{
	return atomic_load(&w->all_acked);
}

static double json_ms(const json_t *row, const char *key)
{
	return (double)json_integer_value(json_object_get(row, key)) / 1e6;
}

/* reads the controller's failures into @o, and removes hosts that it announced from @correct */
static void read_failures(const struct lab *lab, struct lab_ctl *ctl, struct outcome *o,
			  uint64_t *correct)
{
	json_t *said = lab_ctl_ask(ctl), *row, *who;
	unsigned int n;
	size_t i, k;

	o->announced = 0;
	o->determine = o->save = o->collect = o->resume = 0;
	json_array_foreach(json_object_get(said, "failures"), i, row)
	{
		o->determine += json_ms(row, "determine_ns");
		o->save += json_ms(row, "save_ns");
		o->collect += json_ms(row, "collect_ns");
		o->resume += json_ms(row, "resume_ns");
		json_array_foreach(json_object_get(row, "failed"), k, who)
		{
			struct bl_node_cfg cfg;

			o->announced++;
			for (n = 0; n < lab->nnodes; n++)
				if (lab->nodes[n].kind == LAB_HOST &&
				    !lab_node_cfg(lab, &lab->nodes[n], &cfg) &&
				    cfg.node_id == json_integer_value(json_object_get(who, "node")))
					*correct &= ~(1ULL << (lab->nodes[n].index - 1));
		}
	}
	json_decref(said);
}

/*
 * Waits until @has is true for all workers in @correct. Hosts that are announced as failed
 * meanwhile are removed from it. Returns 0, or 1 after a message.
 */
static int wait_all(const struct lab *lab, struct lab_ctl *ctl, const struct kill_ctl *c,
		    struct outcome *o, uint64_t *correct, bool (*has)(const struct kill_worker *w),
		    const char *what)
{
	uint64_t until = bl_mono_ns() + WAIT_NS, looked = 0;
	unsigned int i;

	for (i = 0; i < c->n; i++)
		while ((*correct >> i & 1) && !has(&c->w[i])) {
			if (bl_mono_ns() - looked > 50000000) {
				bool out = c->w[i].error[0];

				read_failures(lab, ctl, o, correct);
				looked = bl_mono_ns();
				if (out && (*correct >> i & 1))
					return cli_fail("h%u: %s", i + 1, c->w[i].error);
			}
			if (bl_mono_ns() > until)
				return cli_fail("h%u does not %s within a minute", i + 1, what);
			nap_ns(200000);
		}
	return *correct ? 0 : cli_fail("the controller announced all hosts as failed");
}

/* continues the process that was stopped at @at, after the time that the options say */
static int continue_process(struct kill_ctl *c, uint64_t at)
{
	uint64_t until = at + params->stop_ms * 1000000ULL, now = bl_mono_ns();

	if (until > now)
		nap_ns(until - now);
	return kill(c->w[c->n - 1].pid, SIGCONT)
		       ? cli_fail("cannot continue a process: %s", strerror(errno))
		       : 0;
}

static int run_lab(struct lab *lab, struct kill_ctl *c, struct lab_ctl *ctl, struct outcome *o)
{
	uint64_t correct = c->n == 64 ? ~0ULL : (1ULL << c->n) - 1, at = 0, last = 0, told = 0,
		 until, end, span = nothing_fails() ? LIVING_NS : BEFORE_NS;
	unsigned int i;

	if (start_workers(lab, c))
		return 1;
	atomic_store(&c->phase, KILL_TALK);
	if (wait_all(lab, ctl, c, o, &correct, has_some, "deliver anything"))
		return 1;
	nap_ns(span + bl_mono_ns() % 1000000); /* at a random phase of the beacons */
	if (cause_failure(lab, c, ctl, &at, &correct) ||
	    wait_all(lab, ctl, c, o, &correct, has_recovered,
		     "deliver what was sent after the kill"))
		return 1;
	if (params->what == KILL_STOP && continue_process(c, at))
		return 1;
	nap_ns(span);
	read_failures(lab, ctl, o, &correct);
	end = bl_mono_ns();
	atomic_store(&c->phase, KILL_DRAIN);
	if (wait_all(lab, ctl, c, o, &correct, has_acks,
		     "get all acknowledgements for what it sent"))
		return 1;
	/*
	 * The diaries are complete when the judge accepts them. Until then, a delivery may wait for
	 * a failure that the controller is still handling.
	 */
	for (until = bl_mono_ns() + WAIT_NS;
	     kill_judge(c, correct, &o->verdict) && bl_mono_ns() < until; nap_ns(10000000))
		read_failures(lab, ctl, o, &correct);
	for (i = 0; i < c->n; i++) {
		if (!(correct >> i & 1))
			continue;
		if (c->w[i].recovered_ns > last)
			last = c->w[i].recovered_ns;
		if (c->w[i].told_ns > told)
			told = c->w[i].told_ns;
	}
	o->recovered = (double)(last - at) / 1e6;
	o->told = told ? (double)(told - at) / 1e6 : 0;
	o->before = kill_flow(c, correct, at - span, at);
	o->stood = kill_flow(c, correct, at, end);
	o->after = kill_flow(c, correct, o->stood.gap_end_ns, end);
	o->done = true;
	return 0;
}

static int drive_lab(struct lab *lab, void *arg)
{
	struct shared *s = arg;
	struct lab_ctl *ctl = lab_ctl_start(lab, NULL);
	unsigned int i;
	int err = !ctl || run_lab(lab, &s->ctl, ctl, &s->outcome);

	if (err && ctl && cli.verbose) {
		json_t *said = lab_ctl_ask(ctl);

		json_dumpf(said, stderr, JSON_INDENT(1));
		fputc('\n', stderr);
		json_decref(said);
	}
	atomic_store(&s->ctl.phase, KILL_EXIT);
	for (i = 0; i < s->ctl.n; i++)
		kill_worker_process(&s->ctl, i);
	lab_ctl_end(ctl);
	return err;
}

/* ---- the command ---- */

enum { KEY_KILL = 700, KEY_RUNS, KEY_INTERVAL, KEY_SIZE, KEY_OUT, KEY_CONTROLLERS, KEY_STOP };

static const struct argp_option options[] = {
	{ "kill", KEY_KILL, "WHAT", 0,
	  "what fails: host, tor, link, spine, controller or etcd-leader (these two together with "
	  "a host); stop: a process is stopped for a while; leave: a process leaves by bl_exit()",
	  2 },
	{ "runs", KEY_RUNS, "N", 0, "number of runs, each in a new lab, 1 to 1000 (default 5)", 2 },
	{ "controllers", KEY_CONTROLLERS, "N", 0,
	  "1 stores in SQLite (default); 2 or 3 in etcd with three members (default for controller "
	  "and etcd-leader: 3)",
	  2 },
	{ "interval-us", KEY_INTERVAL, "US", 0,
	  "time between scatterings of each host, 100 to 1000000 (default 1000)", 2 },
	{ "stop-ms", KEY_STOP, "MS", 0, "stop: duration, 100 to 60000 (default 12000)", 2 },
	{ "size", KEY_SIZE, "BYTES", 0, "size of a message, 16 to 1400 (default 64)", 2 },
	{ "out", KEY_OUT, "DIR", 0, "write kill.csv to this directory", 2 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_RUNS, "runs", NULL, 1, RUNS_MAX, struct params, runs),
	BL_NUMBER(KEY_CONTROLLERS, "controllers", NULL, 1, LAB_CONTROLLERS_MAX, struct params,
		  controllers),
	BL_NUMBER(KEY_INTERVAL, "interval-us", "us", 100, 1000000, struct params, interval_us),
	BL_NUMBER(KEY_SIZE, "size", "bytes", sizeof(struct kill_message), 1400, struct params,
		  size),
	BL_NUMBER(KEY_STOP, "stop-ms", "ms", 100, 60000, struct params, stop_ms),
	{ 0 }
};
/* clang-format on */

static error_t parse_kill(int key, char *arg, struct argp_state *state)
{
	struct params *p = state->input;
	error_t err = bl_number_option(numbers, key, arg, p, state);
	unsigned int k;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &p->lab->spec;
		return 0;
	case KEY_KILL:
		for (k = 0; k < KILL_KINDS && strcmp(arg, kill_names[k]); k++)
			;
		if (k == KILL_KINDS)
			argp_error(state,
				   "--kill: \"%s\" is not host, tor, link, spine, controller, "
				   "etcd-leader, stop or leave",
				   arg);
		p->what = (enum kill_what)k;
		return 0;
	case KEY_OUT:
		p->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		return strcmp(arg, "failover") ? ARGP_ERR_UNKNOWN
					       : 0; /* "leaf-spine" is the lab's */
	}
	return ARGP_ERR_UNKNOWN;
}

/* names of struct outcome's values in JSON: NAME_p50_UNIT and NAME_max_UNIT */
static const struct {
	const char *name, *unit;
} values[] = {
	{ "recovered", "ms" },  { "told", "ms" },   { "determine", "ms" }, { "save", "ms" },
	{ "collect", "ms" },    { "resume", "ms" }, { "before", "per_s" }, { "after", "per_s" },
	{ "gap_before", "ms" }, { "stood", "ms" },  { "gap_after", "ms" },
};
#define VALUES (sizeof(values) / sizeof(values[0]))

static double outcome_value(const struct outcome *o, unsigned int k)
{
	const double v[VALUES] = { o->recovered,    o->told,        o->determine,
				   o->save,         o->collect,     o->resume,
				   o->before.per_s, o->after.per_s, o->before.gap_ms,
				   o->stood.gap_ms, o->after.gap_ms };

	return v[k];
}

static int report_runs(const struct outcome *o, unsigned int n, FILE *f)
{
	static const struct col cols[] = { { "kill", "KILL", 's' },
					   { "hosts", "HOSTS", 'd' },
					   { "runs", "RUNS", 'd' },
					   { "recovered_p50_ms", "RECOVERED_MS", 'f' },
					   { "recovered_max_ms", "MAX", 'f' },
					   { "told_p50_ms", "TOLD", 'f' },
					   { "determine_p50_ms", "DETERMINE", 'f' },
					   { "save_p50_ms", "SAVE", 'f' },
					   { "collect_p50_ms", "COLLECT", 'f' },
					   { "resume_p50_ms", "RESUME", 'f' },
					   { "announced", "ANNOUNCED", 'd' },
					   { "delivered", "DELIVERED", 'd' },
					   { "none", "NONE", 'd' },
					   { "wrong", "WRONG", 'd' } };
	static const struct col flows[] = { { "kill", "KILL", 's' },
					    { "hosts", "HOSTS", 'd' },
					    { "runs", "RUNS", 'd' },
					    { "stood_p50_ms", "STOOD_MS", 'f' },
					    { "stood_max_ms", "MAX", 'f' },
					    { "before_p50_per_s", "BEFORE/S", 'f' },
					    { "after_p50_per_s", "AFTER/S", 'f' },
					    { "gap_before_p50_ms", "GAP_BEFORE", 'f' },
					    { "gap_after_p50_ms", "GAP_AFTER", 'f' },
					    { "announced", "ANNOUNCED", 'd' },
					    { "delivered", "DELIVERED", 'd' },
					    { "none", "NONE", 'd' },
					    { "wrong", "WRONG", 'd' } };
	json_t *row = json_object(), *rows = json_array();
	json_int_t announced = 0, delivered = 0, none = 0, bad = 0;
	double *v = calloc(n ? n : 1, sizeof(*v));
	unsigned int i, k;
	char key[64];

	if (f) {
		fputs("kill,run,recovered_ms,told_ms,determine_ms,save_ms,collect_ms,resume_ms,"
		      "before_per_s,after_per_s,gap_before_ms,stood_ms,gap_after_ms,announced,"
		      "delivered,none,wrong\n",
		      f);
		for (i = 0; i < n; i++) {
			fprintf(f, "%s,%u", kill_names[params->what], i + 1);
			for (k = 0; k < VALUES; k++)
				fprintf(f, ",%.3f", outcome_value(&o[i], k));
			fprintf(f, ",%u,%u,%u,\"%s\"\n", o[i].announced, o[i].verdict.delivered,
				o[i].verdict.none, o[i].verdict.error);
		}
		if (out_close(params->out, "kill.csv", f))
			return 1;
	}
	json_object_set_new(row, "kill", json_string(kill_names[params->what]));
	json_object_set_new(row, "hosts", json_integer(params->lab->spec.hosts));
	json_object_set_new(row, "runs", json_integer(n));
	for (k = 0; v && k < VALUES; k++) {
		for (i = 0; i < n; i++)
			v[i] = outcome_value(&o[i], k);
		snprintf(key, sizeof(key), "%s_p50_%s", values[k].name, values[k].unit);
		json_object_set_new(row, key, json_real(value_quantile(v, n, 0.5)));
		snprintf(key, sizeof(key), "%s_max_%s", values[k].name, values[k].unit);
		json_object_set_new(row, key, json_real(value_quantile(v, n, 1)));
	}
	for (i = 0; i < n; i++) {
		announced += o[i].announced;
		delivered += o[i].verdict.delivered;
		none += o[i].verdict.none;
		bad += o[i].verdict.error[0] != 0;
	}
	json_object_set_new(row, "announced", json_integer(announced));
	json_object_set_new(row, "delivered", json_integer(delivered));
	json_object_set_new(row, "none", json_integer(none));
	json_object_set_new(row, "wrong", json_integer(bad));
	json_object_set_new(row, "dead_after_us", json_integer(params->lab->spec.dead_after_us));
	json_array_append_new(rows, row);
	free(v);
	if (nothing_fails())
		return out_rows("failover", rows, flows, sizeof(flows) / sizeof(flows[0]),
				"nothing measured");
	return out_rows("failover", rows, cols, sizeof(cols) / sizeof(cols[0]), "nothing measured");
}

/* sets up the lab as params->what needs it; returns 0, or 2 after a message */
static int prepare_lab(struct params *p)
{
	struct lab_spec *s = &p->lab->spec;
	bool replicated = p->what == KILL_CONTROLLER || p->what == KILL_ETCD_LEADER;

	if (s->name[0])
		return cli_usage("failover runs on a rack or a leaf-spine, not on \"%s\"", s->name);
	if (p->what == KILL_TOR || p->what == KILL_LINK || p->what == KILL_SPINE)
		s->leaf_spine = s->l3 = true; /* on a rack no host would be left */
	s->controllers = p->controllers ? p->controllers : replicated ? 3 : 1;
	if (replicated && s->controllers < 2)
		return cli_usage("--kill %s needs two controllers or three", kill_names[p->what]);
	s->etcd = s->controllers > 1;
	s->apart = true;
	if (s->bare || s->dumbbell || s->cores || s->hosts < 3 ||
	    (s->leaf_spine && (s->tors < 2 || s->spines < 2 || s->hosts < 2 * s->tors)))
		return cli_usage("failover --kill needs barline's programs and three hosts or "
				 "more; a leaf-spine needs two spines or more, and two ToRs or "
				 "more with two hosts or more each");
	if (s->admission.on)
		return cli_usage("failover --kill measures reliable scatterings; --admission is "
				 "not possible");
	return 0;
}

int kill_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_kill,
					  .args_doc = "failover --kill WHAT [rack|leaf-spine]",
					  .children = children,
					  .doc = "barline lab run failover --kill - reliable "
						 "scatterings of all hosts to all while something "
						 "fails; check that all correct receivers "
						 "delivered the same\v"
						 "RECOVERED is from the kill until the last "
						 "correct host delivered what was sent afterwards; "
						 "TOLD until its proc_fail callback. DETERMINE, "
						 "SAVE, COLLECT and RESUME are the steps of the "
						 "controller; the rest is detection "
						 "(--dead-after-us, here 20000 by default) and "
						 "transmission. For stop and leave, STOOD is the "
						 "longest time without a delivery at one of the "
						 "other hosts, from the stop or leave to a second "
						 "after the process continued or left; AFTER/S is "
						 "what each of them delivered after that time from "
						 "the others, GAP_AFTER the longest time without a "
						 "delivery after it; BEFORE/S and GAP_BEFORE the "
						 "same of the second before. NONE: scatterings "
						 "that no correct host delivered, as their senders "
						 "were told. Exit status 1 if a promise was "
						 "broken." };
	struct params p = { .runs = 5, .interval_us = 1000, .size = 64, .stop_ms = 12000 };
	struct shared *shared;
	struct outcome *all;
	unsigned int i, n = 0, bad = 0;
	FILE *f = NULL;
	int err;

	p.lab = lab_new();
	if (!p.lab)
		return cli_fail("out of memory");
	p.lab->spec.hosts = 4;
	p.lab->spec.dead_after_us = 20000;
	cmd_parse(&argp, argc, argv, &p);
	err = prepare_lab(&p);
	if (err)
		return err;
	all = calloc(p.runs, sizeof(*all));
	if (!all)
		return cli_fail("out of memory");
	if (p.out) { /* before the runs, whose results would be lost if it failed */
		f = out_open(p.out, "kill.csv");
		if (!f)
			return 1;
	}
	params = &p;
	for (i = 0; i < p.runs; i++) {
		struct lab *one = malloc(sizeof(*one));

		/* new in each run, because only pages that are never touched are zero */
		shared = shared_memory(sizeof(*shared));
		if (!one || !shared)
			return cli_fail("out of memory");
		out_progress("failover, %s: run %u of %u", kill_names[p.what], i + 1, p.runs);
		*one = *p.lab;
		snprintf(one->spec.name, sizeof(one->spec.name), "run-%d", getpid());
		shared->ctl.n = one->spec.hosts;
		shared->ctl.interval_us = p.interval_us;
		shared->ctl.size = p.size;
		err |= lab_start(one, drive_lab, shared) || !shared->outcome.done;
		if (shared->outcome.done)
			all[n++] = shared->outcome;
		if (shared->outcome.verdict.error[0])
			bad += (unsigned int)cli_fail("run %u: %s", i + 1,
						      shared->outcome.verdict.error);
		munmap(shared, sizeof(*shared));
		free(one);
	}
	out_progress_end();
	if (n || !err) /* else a message was printed */
		err |= report_runs(all, n, f);
	else if (f)
		fclose(f);
	free(all);
	free(p.lab);
	return err || bad;
}
