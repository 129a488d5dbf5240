/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline - the only command line program. Finds the command in a table and runs it.
 */
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/run.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "loader/node.h"

const char *argp_program_version = "barline " BARLINE_VERSION;

/**
 * struct cmd - A command. If @run is NULL, the words after @name are those of WORKLOAD_BENCH.
 */
struct cmd {
	const char *name; /* one word or two */
	int (*run)(int argc, char **argv);
	const char *brief; /* one line for --help */
};

static const struct cmd commands[] = {
	{ "show nodes", cmd_show_nodes, "switches and hosts in this network namespace" },
	{ "show ports", cmd_show_ports, "ports with their counters" },
	{ "show barriers", cmd_show_barriers,
	  "registers and barriers by port and lane, and their lag" },
	{ "show endpoints", cmd_show_endpoints,
	  "endpoints of the host, their processes and rings" },
	{ "show sources", cmd_show_sources, "addresses that may send on each port of a switch" },
	{ "show links", cmd_show_links, "lost and overtaken frames, and the clocks, by link" },
	{ "show drops", cmd_show_drops, "dropped frames and events, by reason" },
	{ "show clock", cmd_show_clock, "bus time, its bound, and how long it remains valid" },
	{ "show maps", cmd_show_maps, "kernel memory by map" },
	{ "show reservations", cmd_show_reservations,
	  "what PL2 promised, by port and by destination" },
	{ "show holds", cmd_show_holds, "hold queues of the host, by destination" },
	{ "show queues", cmd_show_queues, "output queues of metered ports" },
	{ "show pacer", cmd_show_pacer, "what the pacer sent, and how late" },
	{ "show fastpass", cmd_show_fastpass, "timeslots of the host: requested, granted, used" },
	{ "show tokens", cmd_show_tokens, "TOP: tokens by port of switches, by flow of hosts" },
	{ "show auth", cmd_show_auth, "authentication of links: epochs, and the last refusals" },
	{ "show hooks", cmd_show_hooks, "other XDP programs on the interfaces" },
	{ "show network", cmd_show_network,
	  "address, route, neighbours, forwarding and clock of each node" },
	{ "show nics", cmd_show_nics, "whether interfaces are one FIFO for ordered frames" },
	{ "show controller", cmd_controller_show,
	  "failure controllers: the leader, and its nodes" },
	{ "show failures", cmd_controller_failures,
	  "failures that were announced, and their steps" },
	{ "show epochs", cmd_controller_epochs, "which controller led when" },
	{ "watch", cmd_watch, "rates per port and reason, and the barrier's lag" },
	{ "doctor", cmd_doctor, "check this machine and its nodes" },
	{ "switch setup", cmd_switch_setup, "make this machine ready to be a switch" },
	{ "switch up", cmd_switch_up, "run a switch in the foreground" },
	{ "switch detach", cmd_switch_detach, "remove the switch's programs and maps" },
	{ "host setup", cmd_host_setup, "make this machine ready to be a host" },
	{ "host up", cmd_host_up, "run a host in the foreground" },
	{ "host detach", cmd_host_detach, "remove the host's programs and maps" },
	{ "admission set", cmd_admission_set, "change the admission of applications' traffic" },
	{ "admission show", cmd_admission_show, "show the settings of admission" },
	{ "clean", cmd_clean, "remove what belongs to removed namespaces" },
	{ "send", cmd_send, "send ordered messages" },
	{ "recv", cmd_recv, "receive and print ordered messages" },
	{ "bench", NULL, NULL }, /* its words are the workloads of bench/run.c */
	{ "arbiter run", cmd_arbiter_run, "run a Fastpass arbiter in the foreground" },
	{ "arbiter secret", cmd_arbiter_secret, "make a secret for arbiters and hosts" },
	{ "arbiter show", cmd_arbiter_show, "the arbiters, and the session of each endpoint" },
	{ "arbiter faults", cmd_arbiter_faults, "run, show or clear the fault isolation service" },
	{ "arbiter bench", cmd_arbiter_bench, "measure the arbiter's computations on this CPU" },
	{ "controller run", cmd_controller_run, "run a failure controller in the foreground" },
	{ "controller admit", cmd_controller_admit, "admit a node: the controller then knows it" },
	{ "controller remove", cmd_controller_remove, "remove a node from those it knows" },
	{ "controller show", cmd_controller_show, "the same as show controller" },
	{ "controller failures", cmd_controller_failures, "the same as show failures" },
	{ "controller epochs", cmd_controller_epochs, "the same as show epochs" },
	{ "pki init", cmd_pki_init, "make the authority for the certificates of a rack" },
	{ "pki issue", cmd_pki_issue, "make a certificate for a node, a controller or etcd" },
	{ "pki renew", cmd_pki_renew, "give a certificate new dates" },
	{ "pki show", cmd_pki_show, "what was issued, and how long it is valid" },
	{ "auth init", cmd_auth_init, "make the secret of a rack's links" },
	{ "auth rotate", cmd_auth_rotate, "add an epoch to the secret of a rack's links" },
	{ "auth issue", cmd_auth_issue, "make the key file of a node" },
	{ "lab run", cmd_lab_run, "raise a rack of namespaces and run a workload in it" },
	{ "lab up", cmd_lab_up, "raise a rack of namespaces and leave it running" },
	{ "lab exec", cmd_lab_exec, "run a command on a node of a lab" },
	{ "lab down", cmd_lab_down, "remove a lab" },
	{ "lab list", cmd_lab_list, "labs that are up" },
	{ "completion", cmd_completion, "a script that completes commands and options in a shell" },
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Returns whether command @c belongs to @group, as "show nodes" belongs to "show". */
static bool in_group(const struct cmd *c, const char *group)
{
	size_t n = strlen(group);

	return !strncmp(c->name, group, n) && c->name[n] == (c->run ? ' ' : '\0');
}

/* Prints the commands of @group with their briefs; NULL: all commands. */
static void list_commands(FILE *f, const char *group)
{
	size_t i;

	for (i = 0; i < NCOMMANDS; i++) {
		if (group && !in_group(&commands[i], group))
			continue;
		if (commands[i].run)
			fprintf(f, "  %-18s %s\n", commands[i].name, commands[i].brief);
		else
			workload_list(f, WORKLOAD_BENCH, "bench ");
	}
}

void cmd_print_names(FILE *f)
{
	const struct workload *w = NULL;
	size_t i;

	for (i = 0; i < NCOMMANDS; i++) {
		if (commands[i].run)
			fprintf(f, "%s\n", commands[i].name);
		while (!commands[i].run && (w = workload_next(WORKLOAD_BENCH, w)))
			fprintf(f, "%s %s\n", commands[i].name, w->name);
	}
}

static char *add_commands(int key, const char *text, void *input)
{
	char *buf = NULL;
	size_t size;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	f = open_memstream(&buf, &size);
	if (!f)
		return NULL;
	fputs("Commands:\n", f);
	list_commands(f, NULL);
	fputs("\n`barline COMMAND --help` tells more. Exit status: 0 ok, 1 failed, 2 wrong usage.",
	      f);
	fclose(f);
	return buf;
}

static error_t parse_word(int key, char *arg, struct argp_state *state)
{
	int *at = state->input;

	(void)arg;
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	*at = state->next - 1;
	state->next = state->argc;
	return 0;
}

/* Parses options up to the next word. Returns the word's index in @argv, or 0 if there is none. */
static int next_word(int argc, char **argv)
{
	const struct argp argp = { .parser = parse_word,
				   .args_doc = "COMMAND [ARGUMENT...]",
				   .children = cmd_globals,
				   .help_filter = add_commands,
				   .doc = "barline - a rack of Linux machines as one ordered "
					  "bus\v" };
	int at = 0;

	cmd_parse_words(&argp, argc, argv, ARGP_IN_ORDER, &at);
	return at;
}

/* Returns the command with the name "@a" or "@a @b"; its run is NULL if there is none. */
static struct cmd find_command(const char *a, const char *b)
{
	size_t i, n = strlen(a);

	for (i = 0; i < NCOMMANDS; i++) {
		const char *name = commands[i].name;

		if (commands[i].run &&
		    (!strcmp(name, a) ||
		     (b && !strncmp(name, a, n) && name[n] == ' ' && !strcmp(name + n + 1, b))))
			return commands[i];
		if (!commands[i].run && b && !strcmp(name, a)) {
			const struct workload *w = workload_find(WORKLOAD_BENCH, b);

			if (w)
				return (struct cmd){ w->name, w->main, w->brief };
		}
	}
	return (struct cmd){ 0 };
}

static bool is_group(const char *a)
{
	size_t i;

	for (i = 0; i < NCOMMANDS; i++)
		if (in_group(&commands[i], a))
			return true;
	return false;
}

static int run_command(const struct cmd *c, const char *group, int argc, char **argv)
{
	static char title[64];

	if (group && strncmp(c->name, group, strlen(group)))
		snprintf(title, sizeof(title), "barline %s %s", group, c->name);
	else
		snprintf(title, sizeof(title), "barline %s", c->name);
	argv[0] = title;
	return c->run(argc, argv);
}

int main(int argc, char **argv)
{
	struct rlimit mem = { RLIM_INFINITY, RLIM_INFINITY };
	const char *group;
	struct cmd c;
	int at;

	/* `barline host up` executes itself with this option, see bl_node_hand_over() */
	if (argc == 3 && !strcmp(argv[1], "--caretaker"))
		return bl_caretaker_main(argv[2]);
	completion_commands(cmd_print_names);
	argp_err_exit_status = CLI_USAGE;
	setrlimit(RLIMIT_MEMLOCK, &mem);
	at = next_word(argc, argv);
	if (!at && cli.json)
		return cli_usage("which command? barline --help lists them");
	if (!at) {
		fputs("barline: which command?\n", stderr);
		list_commands(stderr, NULL);
		return CLI_USAGE;
	}
	c = find_command(argv[at], NULL);
	if (c.run)
		return run_command(&c, NULL, argc - at, argv + at);
	group = argv[at];
	if (!is_group(group)) {
		if (cli.json)
			return cli_usage("no command \"%s\"; barline --help lists them", group);
		fprintf(stderr, "barline: no command \"%s\"; there are:\n", group);
		list_commands(stderr, NULL);
		return CLI_USAGE;
	}
	argc -= at;
	argv += at;
	at = next_word(argc, argv);
	c = at ? find_command(group, argv[at]) : (struct cmd){ 0 };
	if (!c.run && cli.json)
		return cli_usage("%s what? barline --help lists the commands", group);
	if (!c.run) {
		fprintf(stderr, "barline: %s what? There are:\n", group);
		list_commands(stderr, group);
		return CLI_USAGE;
	}
	return run_command(&c, group, argc - at, argv + at);
}
