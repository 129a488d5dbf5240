/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline - the one command. Finds the sub-command in the table and runs it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/util/cmd.h"

struct cli_opts cli;
const char *argp_program_version = "barline " BARLINE_VERSION;

static const struct cmd commands[] = {
	{ "show nodes", cmd_show_nodes, "switches and hosts in this network namespace" },
	{ "show ports", cmd_show_ports, "ports with their counters" },
	{ "show barriers", cmd_show_barriers,
	  "registers and barriers by port and lane, and how far they lag" },
	{ "show endpoints", cmd_show_endpoints,
	  "endpoints of the host, their processes and rings" },
	{ "show drops", cmd_show_drops, "why frames were dropped, in words" },
	{ "show clock", cmd_show_clock, "bus time, its bound and how long it stays good" },
	{ "show maps", cmd_show_maps, "kernel memory by map" },
	{ "show reservations", cmd_show_reservations,
	  "what PL2 promised: by port and pair of switches, by destination of hosts" },
	{ "show holds", cmd_show_holds, "hold queues of the host, by destination" },
	{ "show queues", cmd_show_queues,
	  "output queues of metered ports: length, waiting time, drops" },
	{ "show pacer", cmd_show_pacer, "what the pacer sent for each node, and how late" },
	{ "show fastpass", cmd_show_fastpass, "timeslots of the host: asked for, given, used" },
	{ "show tokens", cmd_show_tokens, "TOP: tokens by port of a switch, by flow of a host" },
	{ "show controller", cmd_controller_show,
	  "failure controllers: who leads, and the nodes it knows" },
	{ "show failures", cmd_controller_failures, "failures that were announced, step by step" },
	{ "show epochs", cmd_controller_epochs, "which controller led when" },
	{ "watch", cmd_watch, "rates per port and reason, and the barrier's lag, again and again" },
	{ "doctor", cmd_doctor, "check this machine and its nodes; say cause and cure" },
	{ "switch up", cmd_switch_up, "run a switch in the foreground" },
	{ "switch detach", cmd_switch_detach, "remove the switch's programs and maps" },
	{ "host up", cmd_host_up, "run a host in the foreground" },
	{ "host detach", cmd_host_detach, "remove the host's programs and maps" },
	{ "admission set", cmd_admission_set,
	  "how traffic of applications is admitted, while the node runs" },
	{ "admission show", cmd_admission_show, "how admission is set" },
	{ "clean", cmd_clean, "remove what belongs to namespaces that are gone" },
	{ "send", cmd_send, "send ordered messages" },
	{ "recv", cmd_recv, "receive and print ordered messages" },
	{ "bench all-to-all", cmd_bench_all,
	  "broadcast among endpoints, check the order, measure throughput" },
	{ "bench latency", cmd_bench_latency, "measure ordered latency beside plain UDP" },
	{ "arbiter run", cmd_arbiter_run, "be a Fastpass arbiter, in the foreground" },
	{ "arbiter show", cmd_arbiter_show, "who rules, and the session of each endpoint" },
	{ "arbiter faults", cmd_arbiter_faults,
	  "be the fault isolation service, show what it knows, or clear it" },
	{ "arbiter bench", cmd_arbiter_bench,
	  "measure Fastpass's timeslot allocation or path selection on this CPU" },
	{ "controller run", cmd_controller_run,
	  "be a failure controller of reliable 1Pipe, in the foreground" },
	{ "controller show", cmd_controller_show, "the same as show controller" },
	{ "controller failures", cmd_controller_failures, "the same as show failures" },
	{ "controller epochs", cmd_controller_epochs, "the same as show epochs" },
	{ "lab run", cmd_lab_run, "raise a rack of namespaces, measure, check, take it away" },
	{ "lab up", cmd_lab_up, "raise a rack of namespaces and leave it running" },
	{ "lab exec", cmd_lab_exec, "run a command on a node of a lab" },
	{ "lab down", cmd_lab_down, "take a lab away" },
	{ "lab list", cmd_lab_list, "labs that are up" },
	{ "completion", cmd_completion, "a script that completes commands and options in a shell" },
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct cmd *cmd_table(size_t *n)
{
	*n = NCOMMANDS;
	return commands;
}

static const struct argp_option global_options[] = {
	{ "json", 'j', NULL, 0, "print JSON: one object, or one per line for streams", -2 },
	{ "netns", 'n', "NETNS", 0,
	  "work in this network namespace: a name as in ip-netns(8), or a path", -2 },
	{ "verbose", 'v', NULL, 0, "say more on stderr; may be repeated", -2 },
	{ 0 }
};

static error_t parse_global(int key, char *arg, struct argp_state *state)
{
	(void)state;
	switch (key) {
	case 'j':
		cli.json = true;
		return 0;
	case 'n':
		cli.netns = arg;
		return 0;
	case 'v':
		cli.verbose++;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cmd_globals_argp = { .options = global_options, .parser = parse_global };
const struct argp_child cmd_globals[] = { cmd_globals_child, { 0 } };

static void list(FILE *f, const char *group)
{
	size_t i, n = group ? strlen(group) : 0;

	for (i = 0; i < NCOMMANDS; i++)
		if (!group || (!strncmp(commands[i].name, group, n) && commands[i].name[n] == ' '))
			fprintf(f, "  %-18s %s\n", commands[i].name, commands[i].brief);
}

static char *help_filter(int key, const char *text, void *input)
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
	list(f, NULL);
	fputs("\n`barline COMMAND --help` tells more. Exit status: 0 ok, 1 failed, 2 wrong usage.",
	      f);
	fclose(f);
	return buf;
}

struct words {
	int at; /* index in argv of the first word that is no option */
};

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	struct words *w = state->input;

	(void)arg;
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	w->at = state->next - 1;
	state->next = state->argc;
	return 0;
}

/* ---- wrong usage, as JSON where that is asked for ---- */

static struct {
	FILE *stderr_was; /* NULL: nothing is caught */
	char *text;
	size_t size;
} usage;

/*
 * At exit too: argp ends the process. Its first line is "barline show nodes: unrecognized option
 * '--x'", the rest says where help is.
 */
static void usage_end(void)
{
	const char *what;

	if (!usage.stderr_was)
		return;
	fclose(stderr);
	stderr = usage.stderr_was;
	usage.stderr_was = NULL;
	what = strstr(usage.text, ": ");
	if (cli.json && what) {
		usage.text[strcspn(usage.text, "\n")] = '\0';
		cli_usage("%s", what + 2);
	} else {
		fwrite(usage.text, 1, usage.size, stderr);
	}
	free(usage.text);
	usage.text = NULL;
}

/* argp_parse(), which writes to what stderr is when it begins (a variable, in glibc) */
static void usage_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			void *input)
{
	static bool first = true;
	FILE *f = open_memstream(&usage.text, &usage.size);

	if (first)
		atexit(usage_end);
	first = false;
	if (f) {
		usage.stderr_was = stderr;
		stderr = f;
	}
	argp_parse(argp, argc, argv, flags, NULL, input);
	usage_end();
}

/* options up to the next word; its index, or 0 if there is none */
static int next_word(int argc, char **argv, const char *args_doc)
{
	const struct argp argp = { .parser = parse_words,
				   .args_doc = args_doc,
				   .children = cmd_globals,
				   .help_filter = help_filter,
				   .doc = "barline - a rack of Linux machines as one ordered "
					  "bus\v" };
	struct words w = { 0 };

	usage_parse(&argp, argc, argv, ARGP_IN_ORDER, &w);
	return w.at;
}

static const struct cmd *find(const char *a, const char *b)
{
	size_t i, n = strlen(a);

	for (i = 0; i < NCOMMANDS; i++) {
		const char *name = commands[i].name;

		if (!strcmp(name, a) ||
		    (b && !strncmp(name, a, n) && name[n] == ' ' && !strcmp(name + n + 1, b)))
			return &commands[i];
	}
	return NULL;
}

static bool is_group(const char *a)
{
	size_t i, n = strlen(a);

	for (i = 0; i < NCOMMANDS; i++)
		if (!strncmp(commands[i].name, a, n) && commands[i].name[n] == ' ')
			return true;
	return false;
}

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static bool entered; /* `up` parses twice */
	struct bl_err err;
	int old;

	usage_parse(argp, argc, argv, 0, input);
	if (!cli.netns || entered)
		return;
	if (bl_netns_enter(cli.netns, &old, &err))
		exit(cli_fail("%s", err.text));
	entered = true;
}

static int run(const struct cmd *c, int argc, char **argv)
{
	static char title[64];

	snprintf(title, sizeof(title), "barline %s", c->name);
	argv[0] = title;
	return c->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct cmd *c;
	const char *group;
	struct rlimit mem = { RLIM_INFINITY, RLIM_INFINITY };
	int at;

	if (argc == 3 &&
	    !strcmp(argv[1], "--caretaker")) /* of `barline host up`, see bl_node_hand_over() */
		return bl_caretaker_main(argv[2]);
	argp_err_exit_status = CLI_USAGE;
	setrlimit(RLIMIT_MEMLOCK, &mem);
	at = next_word(argc, argv, "COMMAND [ARGUMENT...]");
	if (!at && cli.json)
		return cli_usage("which command? barline --help lists them");
	if (!at) {
		fputs("barline: which command?\n", stderr);
		list(stderr, NULL);
		return CLI_USAGE;
	}
	c = find(argv[at], NULL);
	if (c)
		return run(c, argc - at, argv + at);
	group = argv[at];
	if (!is_group(group)) {
		if (cli.json)
			return cli_usage("no command \"%s\"; barline --help lists them", group);
		fprintf(stderr, "barline: no command \"%s\"; there are:\n", group);
		list(stderr, NULL);
		return CLI_USAGE;
	}
	argc -= at;
	argv += at;
	at = next_word(argc, argv, "COMMAND [ARGUMENT...]");
	c = at ? find(group, argv[at]) : NULL;
	if (!c && cli.json)
		return cli_usage("%s what? barline --help lists the commands", group);
	if (!c) {
		fprintf(stderr, "barline: %s what? There are:\n", group);
		list(stderr, group);
		return CLI_USAGE;
	}
	return run(c, argc - at, argv + at);
}
