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

#include "base/nearest.h"
#include "bench/run.h"
#include "cli/batch.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "lab/lab_names.h"
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

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

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
	{ "status", cmd_status, "whether each node is ready, in one line" },
	{ "wait", cmd_wait, "wait until nodes are ready, or until they are gone" },
	{ "events", cmd_events, "what has happened to the nodes of this machine" },
	{ "watch", cmd_watch, "rates per port and reason, and the barrier's lag" },
	{ "top", cmd_top, "rates, drops, and who holds whom back, live" },
	{ "capture", cmd_capture, "frames of nodes, in and out, with the verdict; pcapng" },
	{ "trace", cmd_trace, "where messages waited, and for whose barrier" },
	{ "sysdump", cmd_sysdump, "an archive with the state of this machine and its nodes" },
	{ "metrics", cmd_metrics, "metrics for Prometheus: once, into a file, or by HTTP" },
	{ "doctor", cmd_doctor, "check this machine and its nodes" },
	{ "switch setup", cmd_switch_setup, "make this machine ready to be a switch" },
	{ "switch up", cmd_switch_up, "run a switch in the foreground" },
	{ "switch detach", cmd_switch_detach, "remove the switch's programs and maps" },
	{ "host setup", cmd_host_setup, "make this machine ready to be a host" },
	{ "host up", cmd_host_up, "run a host in the foreground" },
	{ "host drain", cmd_host_drain, "let the host leave the rack in order" },
	{ "host undrain", cmd_host_undrain, "take the host into the rack again" },
	{ "host detach", cmd_host_detach, "remove the host's programs and maps" },
	{ "config show", cmd_config_show, "the configuration in force, or of a file" },
	{ "config diff", cmd_config_diff, "what a file would change of the running node" },
	{ "config reload", cmd_config_reload, "have the daemon read its configuration again" },
	{ "admission set", cmd_admission_set, "change the admission of applications' traffic" },
	{ "admission show", cmd_admission_show, "show the settings of admission" },
	{ "clean", cmd_clean, "remove what belongs to removed namespaces" },
	{ "send", cmd_send, "send ordered messages" },
	{ "recv", cmd_recv, "receive and print ordered messages" },
	{ "bench", NULL, NULL }, /* its words are the workloads of bench/run.c */
	{ "arbiter run", cmd_arbiter_run, "run a Fastpass arbiter in the foreground" },
	{ "arbiter reload", cmd_arbiter_reload, "have arbiters read their files again" },
	{ "arbiter secret", cmd_arbiter_secret, "make a secret for arbiters and hosts" },
	{ "arbiter show", cmd_arbiter_show, "the arbiters, and the session of each endpoint" },
	{ "arbiter faults", cmd_arbiter_faults, "run, show or clear the fault isolation service" },
	{ "arbiter bench", cmd_arbiter_bench, "measure the arbiter's computations on this CPU" },
	{ "controller run", cmd_controller_run, "run a failure controller in the foreground" },
	{ "controller reload", cmd_controller_reload, "have controllers read their files again" },
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
	{ "help", cmd_help, "the commands, or what one of them does: help [COMMAND]" },
	{ "version", cmd_version, "print the version" },
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

static int run_first(int argc, char **argv);

/* See cmd_each_fn in cmd.h. */
static void each_command(void (*fn)(void *ctx, const struct cmd_entry *c), void *ctx)
{
	const struct workload *w = NULL;
	char name[64];
	size_t i;

	fn(ctx, &(struct cmd_entry){ "", run_first, NULL });
	for (i = 0; i < NCOMMANDS; i++) {
		if (commands[i].run)
			fn(ctx, &(struct cmd_entry){ commands[i].name, commands[i].run, NULL });
		while (!commands[i].run && (w = workload_next(WORKLOAD_BENCH, w))) {
			snprintf(name, sizeof(name), "%s %s", commands[i].name, w->name);
			fn(ctx, &(struct cmd_entry){ name, w->main, NULL });
		}
	}
	while ((w = workload_next(WORKLOAD_LAB_RUN, w))) {
		snprintf(name, sizeof(name), "lab run %s", w->name);
		if (!w->option)
			fn(ctx, &(struct cmd_entry){ name, w->main, w->name });
	}
}

static void print_name(void *ctx, const struct cmd_entry *c)
{
	if (*c->name && !c->word)
		fprintf((FILE *)ctx, "%s\n", c->name);
}

void cmd_print_names(FILE *f)
{
	each_command(print_name, f);
}

/* the group whose commands --help lists; NULL: all */
static const char *asked_group;

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
	list_commands(f, asked_group);
	fputs("\n`barline help COMMAND` tells more. Exit status: 0 ok, 1 failed, 2 wrong usage.",
	      f);
	fclose(f);
	return buf;
}

/** struct first - what is before the word that begins a command. */
struct first {
	int at;            /* index of that word; 0: there is none */
	const char *batch; /* of --batch; NULL: not given */
	bool force;
};

enum { KEY_FORCE = 256 };

static const struct argp_option first_options[] = {
	{ "batch", 'b', "FILE", 0, "read commands from this file, one per line; -: from stdin", 0 },
	{ "force", KEY_FORCE, NULL, 0, "with --batch: go on after a command that fails", 0 },
	{ 0 }
};

static error_t parse_word(int key, char *arg, struct argp_state *state)
{
	struct first *f = state->input;

	switch (key) {
	case 'b':
		f->batch = arg;
		return 0;
	case KEY_FORCE:
		f->force = true;
		return 0;
	case ARGP_KEY_ARG:
		f->at = state->next - 1;
		state->next = state->argc;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * Parses options up to the next word.
 * @group: NULL: the word begins a command; else it is the second one of a command of this group
 */
static struct first next_word(int argc, char **argv, const char *group)
{
	static char doc[128];
	const struct argp argp = { .options = group ? NULL : first_options,
				   .parser = parse_word,
				   .args_doc = "COMMAND [ARGUMENT...]",
				   .children = cmd_globals,
				   .help_filter = add_commands,
				   .doc = doc };
	struct first f = { 0 };

	asked_group = group;
	if (group)
		snprintf(doc, sizeof(doc), "barline %s - several commands\v", group);
	else
		snprintf(doc, sizeof(doc), "%s",
			 "barline - a rack of Linux machines as one ordered bus\v");
	cmd_parse_words(&argp, argc, argv, ARGP_IN_ORDER, &f);
	return f;
}

/* What is before a command, as if it were one. */
static int run_first(int argc, char **argv)
{
	return next_word(argc, argv, NULL).at;
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

/* ---- what was meant ---- */

#define NAMES_MAX 128

/* Splits the names of all commands. Returns how many there are; the caller frees *@text. */
static size_t all_names(const char **names, char **text)
{
	size_t size, n = 0;
	FILE *f = open_memstream(text, &size);
	char *save, *s;

	if (!f)
		return 0;
	cmd_print_names(f);
	fclose(f);
	for (s = strtok_r(*text, "\n", &save); s && n < NAMES_MAX; s = strtok_r(NULL, "\n", &save))
		names[n++] = s;
	return n;
}

/* Returns the name whose second word is nearest to @word, or NULL. @group: its first; NULL: any. */
static const char *nearest_second(const char *const *names, size_t n, const char *group,
				  const char *word)
{
	struct bl_nearest near = { .word = word };
	const char *found = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		const char *second = strchr(names[i], ' '), *was = near.best;
		size_t first = strcspn(names[i], " ");

		if (!second ||
		    (group && (strlen(group) != first || strncmp(names[i], group, first))))
			continue;
		bl_nearest_try(&near, second + 1);
		if (near.best != was)
			found = names[i];
	}
	return found;
}

/*
 * Writes the command that somebody may have meant by "@word @next" into @buf; with @group, by
 * "@group @word". @next may be NULL. Returns whether there is one.
 */
static bool meant_command(const char *group, const char *word, const char *next, char *buf,
			  size_t size)
{
	const char *names[NAMES_MAX], *found;
	char *text = NULL, first[NAMES_MAX][24];
	struct bl_nearest head = { .word = word };
	size_t n = all_names(names, &text), i;

	for (i = 0; i < n; i++) {
		snprintf(first[i], sizeof(first[i]), "%.*s", (int)strcspn(names[i], " "), names[i]);
		bl_nearest_try(&head, first[i]);
	}
	if (group || !head.best) { /* a word that begins no command may be a second one */
		found = nearest_second(names, n, group, word);
	} else {
		found = next ? nearest_second(names, n, head.best, next) : NULL;
		found = found ? found : head.best;
	}
	if (found)
		snprintf(buf, size, "%s", found);
	free(text);
	return found;
}

/* Says that "@word @next" is no command; with @group, that "@group @word" is none. */
static int no_command(const char *group, const char *word, const char *next)
{
	char buf[64];

	if (next && next[0] == '-')
		next = NULL;
	if (meant_command(group, word, next, buf, sizeof(buf)))
		return cli_usage("no command \"%s%s%s\"; did you mean \"%s\"? `barline help%s%s` "
				 "lists %s",
				 group ? group : "", group ? " " : "", word, buf, group ? " " : "",
				 group ? group : "", group ? "the group" : "all");
	if (!group)
		return cli_usage("no command \"%s\"; `barline help` lists them", word);
	if (cli.json)
		return cli_usage("no command \"%s %s\"; `barline help %s` lists the group", group,
				 word, group);
	fprintf(stderr, "barline: no command \"%s %s\"; there are:\n", group, word);
	list_commands(stderr, group);
	return CLI_USAGE;
}

static int run_command(const struct cmd *c, const char *group, int argc, char **argv)
{
	static char title[64];

	if (group && strncmp(c->name, group, strlen(group)))
		snprintf(title, sizeof(title), "barline %s %s", group, c->name);
	else
		snprintf(title, sizeof(title), "barline %s", c->name);
	argv[0] = title;
	cli.title = title;
	return c->run(argc, argv);
}

/* `barline help WORD...` is `barline WORD... --help` */
static int cmd_help(int argc, char **argv)
{
	static char title[64] = "barline", option[] = "--help";
	char *words[16] = { title };
	const char *group;
	struct cmd c = { 0 };
	int at = cmd_skip_flags(argc, argv), n = 1;

	if (at >= argc || argv[at][0] == '-') {
		words[n++] = option;
		return next_word(n, words, NULL).at;
	}
	c = find_command(argv[at], at + 1 < argc ? argv[at + 1] : NULL);
	if (!c.run && !is_group(argv[at]))
		return no_command(NULL, argv[at], at + 1 < argc ? argv[at + 1] : NULL);
	if (!c.run && at + 1 < argc && argv[at + 1][0] != '-')
		return no_command(argv[at], argv[at + 1], NULL);
	if (!c.run) {
		snprintf(title, sizeof(title), "barline %s", argv[at]);
		words[n++] = option;
		return next_word(n, words, argv[at]).at;
	}
	group = argv[at];
	for (at += strchr(c.name, ' ') || !find_command(argv[at], NULL).run ? 2 : 1;
	     at < argc && n < 15; at++)
		words[n++] = argv[at];
	words[n++] = option;
	return run_command(&c, group, n, words);
}

static int cmd_version(int argc, char **argv)
{
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "barline version - print the version" };

	cmd_parse(&argp, argc, argv, NULL);
	if (cli.json)
		cli_json(json_pack("{s:s}", "version", BARLINE_VERSION));
	else
		puts(argp_program_version);
	return 0;
}

/* Runs the command of a command line. */
static int run_line(int argc, char **argv)
{
	static char title[64];
	static bool in_batch;
	struct first first = next_word(argc, argv, NULL);
	const char *group;
	struct cmd c;
	int at = first.at;

	if (first.batch && at)
		return cli_usage("--batch takes its commands from %s, and \"%s\" is one more",
				 first.batch, argv[at]);
	if (first.batch && in_batch)
		return cli_usage("a batch cannot run another one");
	in_batch = first.batch;
	if (first.batch)
		return batch_run(first.batch, first.force, run_line);
	if (first.force)
		return cli_usage("--force needs --batch");
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
	if (!is_group(group))
		return no_command(NULL, group, at + 1 < argc ? argv[at + 1] : NULL);
	argc -= at;
	argv += at;
	snprintf(title, sizeof(title), "barline %s", group);
	argv[0] = title;
	at = next_word(argc, argv, group).at;
	c = at ? find_command(group, argv[at]) : (struct cmd){ 0 };
	if (!c.run && at)
		return no_command(group, argv[at], NULL);
	if (!c.run && cli.json)
		return cli_usage("%s what? barline --help lists the commands", group);
	if (!c.run) {
		fprintf(stderr, "barline: %s what? There are:\n", group);
		list_commands(stderr, group);
		return CLI_USAGE;
	}
	return run_command(&c, group, argc - at, argv + at);
}

int main(int argc, char **argv)
{
	struct rlimit mem = { RLIM_INFINITY, RLIM_INFINITY };

	/* `barline host up` executes itself with this option, see execute() in loader/spare.c */
	if (argc == 3 && !strcmp(argv[1], "--caretaker"))
		return bl_caretaker_main(argv[2]);
	completion_commands(each_command);
	sysdump_commands(cmd_print_names);
	cmd_enter_named = lab_names_enter;
	argp_err_exit_status = CLI_USAGE;
	setrlimit(RLIMIT_MEMLOCK, &mem);
	return run_line(argc, argv);
}
