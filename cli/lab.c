/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab up, exec, down, list. `barline lab run` is in bench/run.c.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/self.h"
#include "lab/lab.h"
#include "lab/lab_argp.h"
#include "lab/lab_names.h"

#define DEFAULT_NAME "lab"

enum { KEY_BARE = 290, KEY_CONTROLLERS };

static const struct argp_option up_options[] = { { "no-barline", KEY_BARE, NULL, 0,
						   "links without barline's programs, for "
						   "comparison",
						   LAB_ARGP_GROUP },
						 { "controllers", KEY_CONTROLLERS, "N", 0,
						   "failure controllers, 0 to 3 (default 0): 1 "
						   "stores in SQLite, 2 or 3 in etcd with three "
						   "members",
						   LAB_ARGP_GROUP },
						 { 0 } };

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_CONTROLLERS, "controllers", NULL, 0, LAB_CONTROLLERS_MAX, struct lab_spec,
		  controllers),
	{ 0 }
};
/* clang-format on */

static error_t parse_up(int key, char *arg, struct argp_state *state)
{
	struct lab_spec *s = state->input;
	error_t err = bl_number_option(numbers, key, arg, s, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = s;
		return 0;
	case KEY_BARE:
		s->bare = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_lab_up(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = up_options,
					  .parser = parse_up,
					  .args_doc = "[NAME] "
						      "[rack|leaf-spine|three-tier|dumbbell]",
					  .children = children,
					  .doc = "barline lab up - raise a rack of network "
						 "namespaces and leave it running\v"
						 "With --controllers, `barline lab exec "
						 "NAME " LAB_MGMT " -- barline show controller` "
						 "shows them." };
	struct lab *lab = lab_new();
	bool named;
	int err;

	if (!lab)
		return cli_fail("out of memory");
	cmd_parse(&argp, argc, argv, &lab->spec);
	if (!lab->spec.name[0])
		strcpy(lab->spec.name, DEFAULT_NAME);
	if (lab->spec.bare && lab->spec.controllers)
		return cli_usage("--no-barline: without barline's programs there is nothing that "
				 "controllers could control");
	lab->spec.etcd = lab->spec.controllers > 1;
	err = lab_start(lab, NULL, NULL);
	named = !err && lab_names_put(lab);
	if (!err && cli.json)
		cli_json(json_pack("{s:s, s:s}", "lab", lab->spec.name, "state", "up"));
	else if (!err)
		printf("lab \"%s\" is up: %u hosts, h1 to h%u%s%s%s. Try: %s lab exec %s %s -- "
		       "barline show %s\n",
		       lab->spec.name, lab->spec.hosts, lab->spec.hosts,
		       named ? "; ip netns knows h1 as " : "", named ? lab->spec.name : "",
		       named ? "-h1" : "", self_name(), lab->spec.name,
		       lab->spec.controllers ? LAB_MGMT : "h1",
		       lab->spec.controllers ? "controller" : "barriers");
	free(lab);
	return err;
}

static error_t parse_names(int key, char *arg, struct argp_state *state)
{
	const char **names = state->input;

	if (key != ARGP_KEY_ARG || state->arg_num > 1)
		return ARGP_ERR_UNKNOWN;
	names[state->arg_num] = arg;
	return 0;
}

/* @folder: where this program is, and so the one that the lab's commands are to find first */
static int run_command(char **cmd, const char *folder)
{
	int st;
	pid_t pid;

	fflush(NULL);
	pid = fork(); /* setns(2) moves only children into the pid namespace */
	if (pid < 0)
		return cli_fail("cannot fork inside the lab: %s", strerror(errno));
	if (pid == 0) {
		self_first_in_path(folder);
		execvp(cmd[0], cmd);
		fprintf(stderr, "barline: %s: %s\n", cmd[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	signal(SIGINT, SIG_IGN); /* the command is in the same process group and gets it, too */
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

int cmd_lab_exec(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_names,
					  .args_doc = "[NAME] NODE -- COMMAND [ARGUMENT...]",
					  .children = cmd_globals,
					  .doc = "barline lab exec - run a command on a node of a "
						 "lab\v"
						 "NODE is h1, h2, ... (hosts), s1, ... (ToR "
						 "switches), p1, ... (spines), or " LAB_MGMT
						 ", the network namespace of daemons and "
						 "controllers. The exit status is that of the "
						 "command, which finds this barline first in its "
						 "PATH." };
	const char *names[2] = { NULL, NULL }, *lab, *node;
	char folder[4096], lab_name[32], node_name[16];
	int split, pidfd, fd, err;
	pid_t pid;

	for (split = 1; split < argc && strcmp(argv[split], "--"); split++)
		;
	cmd_parse(&argp, split, argv, names);
	if (!names[0] || split + 1 >= argc)
		return cli_usage("usage: barline lab exec [NAME] NODE -- COMMAND [ARGUMENT...]");
	lab = names[1] ? names[0] : DEFAULT_NAME;
	node = names[1] ? names[1] : names[0];
	if (!names[1] && lab_names_find(names[0], lab_name, node_name, &pid)) {
		lab = lab_name;
		node = node_name;
	}
	fd = lab_find(lab, &pidfd, &pid);
	if (fd < 0)
		return 1;
	self_folder(folder, sizeof(folder));
	err = lab_enter(pidfd, lab, node);
	close(pidfd);
	close(fd);
	return err ? 1 : run_command(argv + split + 1, folder);
}

int cmd_lab_down(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_names,
					  .args_doc = "[NAME]",
					  .children = cmd_globals,
					  .doc = "barline lab down - remove a lab and everything "
						 "that runs in it" };
	const char *names[2] = { NULL, NULL };
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct pollfd p;
	int fd, pidfd, tries;
	pid_t pid;

	cmd_parse(&argp, argc, argv, names);
	if (!names[0])
		names[0] = DEFAULT_NAME;
	fd = lab_find(names[0], &pidfd, &pid);
	if (fd < 0)
		return 1;
	close(fd);
	/*
	 * When init ends, the kernel ends all processes of the pid namespace, and with them their
	 * namespaces, mounts and pinned maps.
	 */
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0))
		return cli_fail("lab \"%s\" (pid %d): %s", names[0], pid, strerror(errno));
	p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	if (poll(&p, 1, 30000) != 1)
		return cli_fail("lab \"%s\" (pid %d) does not end", names[0], pid);
	close(pidfd);
	lab_names_remove(names[0], pid);
	/* the name is free only when the server, too, has ended */
	for (tries = 0; tries < 1000 && lab_there(names[0]); tries++)
		nanosleep(&nap, NULL);
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "lab", names[0], "state", "down"));
	return 0;
}

int cmd_lab_list(int argc, char **argv)
{
	static const struct col cols[] = { { "name", "NAME", 's' },   { "state", "STATE", 's' },
					   { "kind", "KIND", 's' },   { "forward", "FORWARD", 's' },
					   { "hosts", "HOSTS", 'd' }, { "mtu", "MTU", 'd' },
					   { "pid", "PID", 'd' },     { "age_s", "AGE_S", 'f' } };
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "barline lab list - labs that are up in this "
						 "network namespace" };
	FILE *f;
	json_t *rows = json_array();
	char line[512];

	cmd_parse(&argp, argc, argv, NULL);
	f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "@" LAB_SOCKET), *name;
		unsigned int flags = 0;
		int pidfd = -1;
		pid_t pid = 0;
		json_t *info;

		/*
		 * The columns are Num, RefCount, Protocol, Flags and so on. Flag 10000 marks a
		 * listening socket; accepted sockets have the same name.
		 */
		if (!at || sscanf(line, "%*x: %*x %*x %x", &flags) != 1 || !(flags & 0x10000))
			continue;
		name = at + strlen("@" LAB_SOCKET);
		name[strcspn(name, "\n")] = '\0';
		info = lab_ask(name, &pidfd, &pid);
		if (pidfd >= 0)
			close(pidfd);
		if (!info)
			info = json_pack("{s:s, s:s}", "name", name, "state", "no answer");
		json_object_set_new(info, "pid", json_integer(pid));
		json_array_append_new(rows, info);
	}
	if (f)
		fclose(f);
	return out_rows("labs", rows, cols, sizeof(cols) / sizeof(cols[0]), "no labs");
}
