/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See lab_argp.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/util/args.h"
#include "lab/lab.h"
#include "lab/lab_argp.h"
#include "loader/admission/admission_argp.h"

enum {
	KEY_HOSTS = 256,
	KEY_TORS,
	KEY_SPINES,
	KEY_BEACON,
	KEY_SKEW,
	KEY_MTU,
	KEY_L2,
	KEY_L3,
	KEY_CPUS,
	KEY_ONE_LANE,
	KEY_NO_THREAD,
	KEY_DEAD,
	KEY_LAG,
	KEY_NO_AHEAD,
	KEY_REALTIME
};

static const struct argp_option lab_options[] = {
	{ NULL, 0, NULL, 0, "The rack:", LAB_ARGP_GROUP },
	{ "hosts", KEY_HOSTS, "N", 0, "hosts, 1 to 64 (default 8)", LAB_ARGP_GROUP },
	{ "tors", KEY_TORS, "N", 0, "ToR switches of a leaf-spine, 1 to 8 (default 2)",
	  LAB_ARGP_GROUP },
	{ "spines", KEY_SPINES, "N", 0, "spine switches of a leaf-spine, 1 to 8 (default 2)",
	  LAB_ARGP_GROUP },
	{ "beacon-us", KEY_BEACON, "US", 0, "beacon interval (default 100, with --admission 1000)",
	  LAB_ARGP_GROUP },
	{ "dead-after-us", KEY_DEAD, "US", 0,
	  "exclude a link that is silent for this time (default 500000, because hosts of a lab may "
	  "wait for a CPU)",
	  LAB_ARGP_GROUP },
	{ "lag-max-us", KEY_LAG, "US", 0,
	  "exclude a host whose barrier lags by more than this (default: 10 times "
	  "--dead-after-us)",
	  LAB_ARGP_GROUP },
	{ "realtime", KEY_REALTIME, "WHEN", 0,
	  "whether the datapath's threads are SCHED_FIFO: auto (default: only on isolated CPUs; "
	  "elsewhere they get short time slices), always, never",
	  LAB_ARGP_GROUP },
	{ "no-ahead", KEY_NO_AHEAD, NULL, 0,
	  "hosts that are silent do not promise ahead of their clocks, for comparison",
	  LAB_ARGP_GROUP },
	{ "skew", KEY_SKEW, "HOST=NS", 0,
	  "add an error of NS to the clock of this host; may be repeated", LAB_ARGP_GROUP },
	{ "mtu", KEY_MTU, "BYTES", 0, "MTU of every link (default 1500)", LAB_ARGP_GROUP },
	{ "l2", KEY_L2, NULL, 0,
	  "rack: the ToR forwards by a static table of MAC addresses (default)", LAB_ARGP_GROUP },
	{ "l3", KEY_L3, NULL, 0, "rack: the ToR forwards by Linux's routing tables",
	  LAB_ARGP_GROUP },
	{ "cpus", KEY_CPUS, "LIST", 0,
	  "datapath CPUs of the switches, as in 0,2-3; each is a lane (default 0)",
	  LAB_ARGP_GROUP },
	{ "one-lane", KEY_ONE_LANE, NULL, OPTION_HIDDEN,
	  "test: all datapath CPUs share one lane, which breaks the order", LAB_ARGP_GROUP },
	{ "no-threaded-napi", KEY_NO_THREAD, NULL, OPTION_HIDDEN,
	  "test: do not move NAPI of the ports into threads", LAB_ARGP_GROUP },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_HOSTS, "hosts", NULL, 1, LAB_HOSTS_MAX, struct lab_spec, hosts),
	BL_NUMBER(KEY_TORS, "tors", NULL, 1, LAB_TORS_MAX, struct lab_spec, tors),
	BL_NUMBER(KEY_SPINES, "spines", NULL, 1, LAB_SPINES_MAX, struct lab_spec, spines),
	BL_NUMBER(KEY_BEACON, "beacon-us", "us", 1, 1000000, struct lab_spec, beacon_us),
	BL_NUMBER(KEY_DEAD, "dead-after-us", "us", 1, 100000000, struct lab_spec, dead_after_us),
	BL_NUMBER(KEY_LAG, "lag-max-us", "us", 1, 100000000, struct lab_spec, lag_max_us),
	BL_NUMBER(KEY_MTU, "mtu", "bytes", 1280, 9000, struct lab_spec, mtu),
	{ 0 }
};
/* clang-format on */

static error_t parse_lab(int key, char *arg, struct argp_state *state)
{
	struct lab_spec *s = state->input;
	error_t err = bl_number_option(numbers, key, arg, s, state);
	long long v, host;
	char *eq;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case KEY_REALTIME:
		if (bl_realtime_parse(arg) < 0)
			argp_error(state, "--realtime: \"%s\" is not auto, always or never", arg);
		s->realtime = (enum bl_realtime)bl_realtime_parse(arg);
		return 0;
	case KEY_NO_AHEAD:
		s->no_ahead = true;
		return 0;
	case KEY_SKEW:
		eq = strchr(arg, '=');
		if (eq)
			*eq = '\0';
		if (!eq || !bl_read_integer(arg + (arg[0] == 'h'), 1, LAB_HOSTS_MAX, &host) ||
		    !bl_read_integer(eq + 1, -3600000000000, 3600000000000, &v))
			argp_error(state, "--skew needs HOST=NS, as in h2=-5000");
		s->skew_ns[host - 1] = v;
		return 0;
	case KEY_L2:
		s->l3 = false;
		return 0;
	case KEY_L3:
		s->l3 = true;
		return 0;
	case KEY_CPUS:
		v = cli_cpus(arg, s->cpus, BL_LANES_MAX);
		if (v < 1)
			argp_error(state,
				   "--cpus: \"%s\" is not a list of at most %d CPUs, as in 0,2-3",
				   arg, BL_LANES_MAX);
		s->ncpus = (unsigned int)v;
		return 0;
	case KEY_ONE_LANE:
		s->one_lane = true;
		return 0;
	case KEY_NO_THREAD:
		s->no_thread_napi = true;
		return 0;
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->admission;
		return 0;
	case ARGP_KEY_ARG:
		if (!strcmp(arg, "rack") || !strcmp(arg, "leaf-spine") ||
		    !strcmp(arg, "dumbbell") || !strcmp(arg, "three-tier")) {
			s->leaf_spine = arg[0] != 'r';
			s->dumbbell = arg[0] == 'd';
			s->cores = arg[0] == 't' ? 2 : 0;
		} else if (s->name[0]) {
			argp_error(state,
				   "no topology is called \"%s\": there are rack, leaf-spine, "
				   "three-tier and dumbbell; the lab is called \"%s\" already",
				   arg, s->name);
		} else if (!lab_name_ok(arg)) {
			argp_error(state,
				   "a lab cannot be called \"%s\": a name has letters, digits, "
				   "\".\", \"_\" and \"-\", at most %zu, and begins with a letter "
				   "or "
				   "digit",
				   arg, sizeof(s->name) - 1);
		} else {
			strcpy(s->name, arg);
		}
		return 0;
	case ARGP_KEY_END:
		if (s->dumbbell) {
			s->tors = 2;
			s->spines = 0;
		}
		if (s->cores) { /* two pods of at least two ToRs and two spines each */
			s->tors = s->tors > 2 ? s->tors : 4;
			s->spines = s->spines > 2 ? s->spines : 4;
			if (s->tors % 2 || s->spines % 2)
				argp_error(state, "three tiers have two pods and need an even "
						  "number of ToRs and of spines");
			if (s->admission.on)
				argp_error(state, "--admission is for a rack, a leaf-spine or a "
						  "dumbbell");
		}
		if (s->leaf_spine && s->hosts < s->tors)
			argp_error(state, "%u hosts cannot be spread over %u ToRs", s->hosts,
				   s->tors);
		if (s->leaf_spine)
			s->l3 = true;
		if (s->admission.on && (s->bare || (s->l3 && s->admission.policy == BL_POLICY_PL2)))
			argp_error(state, "--admission needs barline's programs, and pl2 a rack "
					  "over L2");
		if (s->admission.spray && (!s->leaf_spine || s->dumbbell))
			argp_error(state, "--spray needs a leaf-spine: only there ToRs have "
					  "several ways up");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child lab_children[] = { { &bl_admission_argp, 0, NULL, LAB_ARGP_GROUP },
						  { 0 } };
const struct argp lab_argp = { .options = lab_options,
			       .parser = parse_lab,
			       .children = lab_children };
