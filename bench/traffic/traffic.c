/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run incast|outcast|shuffle|memcached: options, and a new rack for each cell
 * (traffic.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arbiter/alloc/alloc.h"
#include "loader/admission/admission.h"
#include "base/number.h"
#include "bench/traffic/traffic.h"
#include "bench/util.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "lab/lab_argp.h"

#define DEFAULT_RATE 250000000 /* bit/s; two cores forward that for eight hosts */
/*
 * Frames per burst of bulk data. Each burst costs the receiver's port a copy of its grant, which is
 * 1 % with the paper's K of 4, in addition to 4.4 % for headers of TCP/IPv4 in frames of 1514
 * bytes. Longer bursts wait longer for each other and then miss their slots: with K = 8 a shuffle
 * carries less (docs/design-notes.md, "What a shuffle loses").
 */
#define BULK_K 6
/*
 * Threshold in slots below which bursts of bulk data are unsolicited. With 1, they wait for their
 * grants; seven unsolicited bursts at once would be a queue of 56 frames.
 */
#define BULK_T 1
/* Beacons of 142 bytes every 4 ms would be 1.3 % of 25 Mbit/s, and nothing waits for barriers here.
 */
#define BEACON_US 20000

enum {
	KEY_POLICY = 500,
	KEY_SECONDS,
	KEY_TRANSPORT,
	KEY_OFFER,
	KEY_CONGESTION,
	KEY_OUT,
	KEY_UNMETERED
};

static const struct argp_option options[] = {
	{ "policy", KEY_POLICY, "LIST", 0,
	  "policies to compare, in this order (default none,pl2): none, pl2, pl2:two-counter, "
	  "pl2:joint, pl2:bitmap, fastpass, fastpass:min-fct and so on; off: the plain kernel "
	  "without admission",
	  2 },
	{ "unmetered", KEY_UNMETERED, NULL, 0,
	  "do not limit the rate of links (default: --rate 250mbit)", 2 },
	{ "transport", KEY_TRANSPORT, "LIST", 0, "tcp, udp or both (default tcp,udp)", 2 },
	{ "seconds", KEY_SECONDS, "S", 0, "duration of each measurement, 2 to 3600 (default 10)",
	  2 },
	{ "offer", KEY_OFFER, "RATE", 0, "rate of each UDP sender (default twice its fair share)",
	  2 },
	{ "congestion", KEY_CONGESTION, "NAME", 0, "congestion control of TCP (default cubic)", 2 },
	{ "out", KEY_OUT, "DIR", 0,
	  "write summary.json, and queue.csv or memcached.csv with their plot, to this directory",
	  2 },
	{ 0 }
};

struct args {
	struct lab *lab;
	struct traffic_params p;
	bool named; /* the name of the workload was parsed */
};

/* returns the policy of Fastpass's allocator with that name, or -1 */
static int find_alloc_policy(const char *name)
{
	int i;

	for (i = 0; i < BL_ALLOC_NPOLICIES; i++)
		if (!strcmp(name, bl_alloc_policy_name((enum bl_alloc_policy)i)))
			return i;
	return -1;
}

void traffic_policies(struct traffic_params *p, const char *arg, struct argp_state *state)
{
	char *list = strdup(arg), *save = NULL, *word;

	p->npolicies = 0;
	for (word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		struct traffic_policy *one = &p->policy[p->npolicies];
		int policy, allocator = 0;
		char *alloc;

		if (p->npolicies == TRAFFIC_POLICIES_MAX)
			argp_error(state, "more than %d policies", TRAFFIC_POLICIES_MAX);
		memset(one, 0, sizeof(*one));
		snprintf(one->text, sizeof(one->text), "%s", word);
		alloc = strchr(word, ':');
		if (alloc)
			*alloc++ = '\0';
		policy = strcmp(word, "off") ? bl_policy_by_name(word) : BL_POLICY_NONE;
		if (alloc)
			allocator = policy == BL_POLICY_PL2        ? bl_allocator_by_name(alloc)
				    : policy == BL_POLICY_FASTPASS ? find_alloc_policy(alloc)
								   : -1;
		if (policy < 0 || allocator < 0)
			argp_error(state,
				   "policy \"%s\" is not off, none, pl2, pl2:two-counter, "
				   "pl2:joint, pl2:bitmap, fastpass, or fastpass:POLICY with a "
				   "POLICY of `arbiter bench`",
				   one->text);
		one->on = strcmp(word, "off") != 0;
		one->policy = (enum bl_policy)policy;
		one->fp_policy = policy == BL_POLICY_FASTPASS
					 ? (alloc ? (unsigned int)allocator : BL_ALLOC_FAIR)
					 : 0;
		one->allocator = policy == BL_POLICY_FASTPASS ? 0 : (enum bl_allocator)allocator;
		p->npolicies++;
	}
	free(list);
	if (!p->npolicies)
		argp_error(state, "no policy");
}

static void parse_transports(struct traffic_params *p, const char *arg, struct argp_state *state)
{
	char *list = strdup(arg), *save = NULL, *word;

	p->tcp = p->udp = false;
	for (word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		if (strcmp(word, "tcp") && strcmp(word, "udp"))
			argp_error(state, "transport \"%s\" is not tcp or udp", word);
		*(word[0] == 't' ? &p->tcp : &p->udp) = true;
	}
	free(list);
	if (!p->tcp && !p->udp)
		argp_error(state, "no transport");
}

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER_RATE_OF(KEY_OFFER, "offer", struct args, p.offer_bps),
	BL_NUMBER(KEY_SECONDS, "seconds", "s", 2, 3600, struct args, p.seconds),
	{ 0 }
};
/* clang-format on */

static error_t parse_traffic(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	struct traffic_params *p = &a->p;
	error_t err = bl_number_option(numbers, key, arg, a, state);
	int i;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->lab->spec;
		return 0;
	case KEY_POLICY:
		traffic_policies(p, arg, state);
		return 0;
	case KEY_TRANSPORT:
		parse_transports(p, arg, state);
		return 0;
	case KEY_UNMETERED:
		p->unmetered = true;
		return 0;
	case KEY_CONGESTION:
		p->congestion = arg;
		return 0;
	case KEY_OUT:
		p->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		for (i = 0; i < TRAFFIC_KINDS; i++)
			if (!strcmp(arg, traffic_names[i])) {
				if (a->named)
					argp_error(state, "one workload at a time");
				p->kind = (enum traffic_kind)i;
				a->named = true;
				return 0;
			}
		return ARGP_ERR_UNKNOWN;
	}
	return ARGP_ERR_UNKNOWN;
}

/* returns whether execvp(3) would find @program */
static bool is_installed(const char *program)
{
	const char *path = getenv("PATH");
	char *list = strdup(path ? path : "/usr/bin:/bin"), *save = NULL, *dir, file[1024];
	bool found = false;

	for (dir = list ? strtok_r(list, ":", &save) : NULL; dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		snprintf(file, sizeof(file), "%s/%s", dir, program);
		found = !access(file, X_OK);
	}
	free(list);
	return found;
}

struct lab *traffic_lab(const struct lab *lab, const struct traffic_policy *policy)
{
	struct lab *one = malloc(sizeof(*one));

	if (!one) {
		cli_fail("out of memory");
		return NULL;
	}
	*one = *lab;
	snprintf(one->spec.name, sizeof(one->spec.name), "run-%d", getpid());
	one->spec.admission.on = policy->on;
	one->spec.admission.policy = policy->policy;
	one->spec.admission.allocator = policy->allocator;
	one->spec.fp_policy = policy->fp_policy;
	return one;
}

int traffic_run_lab(struct lab *one, int (*driver)(struct lab *lab, void *arg), void *arg,
		    const bool *done, const char *what)
{
	int err = lab_start(one, driver, arg);

	free(one);
	return err || !*done ? cli_fail("%s: the measurement did not complete", what) : 0;
}

/* argument of drive_cell() */
struct cell_run {
	const struct traffic_params *p;
	struct traffic_cell *c;
};

static int drive_cell(struct lab *lab, void *arg)
{
	const struct cell_run *r = arg;

	return traffic_drive(lab, r->p, r->c);
}

static int run_cell(const struct lab *lab, const struct traffic_params *p, struct traffic_cell *c)
{
	const struct traffic_policy *policy = &p->policy[c->policy];
	struct lab *one = traffic_lab(lab, policy);
	struct cell_run r = { p, c };
	char what[80];

	if (!one)
		return 1;
	snprintf(what, sizeof(what), "%s, %s, %s", traffic_names[p->kind], policy->text,
		 c->udp ? "UDP" : "TCP");
	return traffic_run_lab(one, drive_cell, &r, &c->done, what);
}

static int check_setup(const struct args *a)
{
	const struct lab_spec *s = &a->lab->spec;
	unsigned int least = a->p.kind == TRAFFIC_MEMCACHED ? 3 : 2;

	if (s->leaf_spine || s->bare)
		return cli_usage("%s runs on a rack of one switch", traffic_names[a->p.kind]);
	if (s->hosts < least)
		return cli_usage("%s needs %u hosts or more", traffic_names[a->p.kind], least);
	if (a->p.kind == TRAFFIC_SHUFFLE && s->hosts * (s->hosts - 1) > TRAFFIC_FLOWS_MAX)
		return cli_usage("a shuffle of %u hosts is %u flows; at most %d are possible",
				 s->hosts, s->hosts * (s->hosts - 1), TRAFFIC_FLOWS_MAX);
	if (!is_installed("iperf3"))
		return cli_fail("iperf3, which this workload runs, is not installed: apt-get "
				"install iperf3");
	if (a->p.kind == TRAFFIC_MEMCACHED && !is_installed("memcached"))
		return cli_fail("memcached, which this workload runs, is not installed: apt-get "
				"install memcached");
	return 0;
}

int traffic_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_traffic,
					  .args_doc = "incast|outcast|shuffle|memcached",
					  .children = children,
					  .doc = "barline lab run incast|outcast|shuffle|memcached "
						 "- unmodified iperf3 or memcached on a rack with "
						 "metered ports, under one admission policy after "
						 "the other\v"
						 "incast: all hosts but h1 send to h1. outcast: h1 "
						 "sends to all others. shuffle: every host sends "
						 "to every other. memcached: h2 requests values of "
						 "1 and 4 KiB from a memcached on h1 while up to "
						 "four other hosts send bulk data to h2. Each "
						 "policy and transport gets a new rack, with "
						 "beacons every 20 ms; bulk data is sent in bursts "
						 "of 6 frames that are never unsolicited "
						 "(memcached: 4 frames, and 15 slots). --policy "
						 "replaces --admission and --allocator of other "
						 "commands." };
	struct args a = { .p = { .policy = { { "none", true, BL_POLICY_NONE, 0 },
					     { "pl2", true, BL_POLICY_PL2, 0 } },
				 .npolicies = 2,
				 .tcp = true,
				 .udp = true,
				 .seconds = 10,
				 .congestion = "cubic" } };
	struct traffic_cell *cells;
	unsigned int i, u, ncells = 0;
	size_t size;
	int err, failed = 0;

	a.lab = lab_new();
	if (!a.lab)
		return cli_fail("out of memory");
	a.lab->spec.admission.on = true; /* so that options of admission are accepted */
	a.lab->spec.admission.rate_bps = DEFAULT_RATE;
	cmd_parse(&argp, argc, argv, &a);
	if (a.p.unmetered)
		a.lab->spec.admission.rate_bps = 0;
	if (!a.lab->spec.admission.k && a.p.kind != TRAFFIC_MEMCACHED)
		a.lab->spec.admission.k = BULK_K;
	if (!a.lab->spec.admission.t_slots && !a.lab->spec.admission.t_us &&
	    a.p.kind != TRAFFIC_MEMCACHED)
		a.lab->spec.admission.t_slots = BULK_T;
	if (!a.lab->spec.beacon_us)
		a.lab->spec.beacon_us = BEACON_US;
	err = check_setup(&a);
	size = sizeof(*cells) * 2 * a.p.npolicies;
	cells = err ? NULL : shared_memory(size);
	if (!cells && !err)
		err = 1;
	for (u = 0; u < 2 && !err; u++) {
		if (u ? !a.p.udp : !a.p.tcp)
			continue;
		for (i = 0; i < a.p.npolicies && !err; i++) {
			cells[ncells].policy = i;
			cells[ncells].udp = u;
			failed |= run_cell(a.lab, &a.p, &cells[ncells]);
			if (!cells[ncells].done && !ncells)
				err = 1; /* the other cells would fail for the same reason */
			ncells++;
		}
	}
	out_progress_end();
	if (!err)
		err = traffic_report(&a.lab->spec, &a.p, cells, ncells);
	if (cells)
		munmap(cells, size);
	free(a.lab);
	return err ? err : failed;
}
