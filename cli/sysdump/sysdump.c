// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline sysdump: one archive with what somebody needs who is to find out from afar what is wrong
 * with a node. docs/look.md lists what is in it.
 *
 * Everything is a command that runs with a limit of time, and whose output is one file. One that
 * fails, hangs or is not installed is noted in manifest.json, and the rest goes on. The files lie
 * in a folder that only the user can read, until tar(1) has packed them. A signal that ends the
 * command ends what it runs, and nothing is left behind.
 *
 * Example: "show drops" is `barline -j show drops -a`, its file show-drops.json, and its entry in
 * manifest.json {"name": "show-drops.json", "command": "...", "status": 0, "seconds": 0.02}.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/sysdump/redact.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "maps/meta_abi.h"

#define CONFIG_DIR "/etc/barline"
#define ARGS_MAX   16
#define FILE_MAX   (64 << 20) /* bytes of one file of the archive */

struct sysdump_args {
	const char *file; /* of the archive; NULL: made of host name and time */
	const char *config;
	double limit_s; /* of one command */
};

enum { KEY_CONFIG = 256 };

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "the archive; -: stdout (default: named by host and time)", 0 },
	{ "limit", 't', "SECONDS", 0, "time that one command may take (default 10)", 0 },
	{ "config-dir", KEY_CONFIG, "DIR", 0,
	  "where the configuration files are (default " CONFIG_DIR ")", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('t', "limit", "s", 0.1, 600, struct sysdump_args, limit_s),
	{ 0 }
};
/* clang-format on */

static error_t parse_sysdump(int key, char *arg, struct argp_state *state)
{
	struct sysdump_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'o':
		a->file = arg;
		return 0;
	case KEY_CONFIG:
		a->config = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void (*names_of_commands)(FILE *f);

void sysdump_commands(void (*print_names)(FILE *f))
{
	names_of_commands = print_names;
}

/** struct dump - an archive that is being made. */
struct dump {
	const struct sysdump_args *args;
	char parent[256];                  /* folder for the time being */
	char name[128];                    /* of the folder in it, and in the archive */
	char self[512];                    /* this command */
	const volatile sig_atomic_t *stop; /* a signal has come: no archive is written */
	json_t *items;
	unsigned int failed;
};

/* what the machine is asked, beside `barline show` and its interfaces */
static const struct {
	const char *name; /* of the file */
	const char *argv[ARGS_MAX];
} commands[] = {
	{ "uname.txt", { "uname", "-a" } },
	{ "os-release.txt", { "cat", "/etc/os-release" } },
	{ "uptime.txt", { "uptime" } },
	{ "meminfo.txt", { "cat", "/proc/meminfo" } },
	{ "cpus.txt", { "lscpu" } },
	{ "interrupts.txt", { "cat", "/proc/interrupts" } },
	{ "softirqs.txt", { "cat", "/proc/softirqs" } },
	{ "softnet.txt", { "cat", "/proc/net/softnet_stat" } },
	{ "snmp.txt", { "cat", "/proc/net/snmp", "/proc/net/snmp6" } },
	{ "packages.txt",
	  { "dpkg-query", "-W", "barline*", "libbarline*", "libbpf*", "libxdp*", "linux-image*",
	    "linuxptp", "chrony" } },
	{ "sysctl-net.txt",
	  { "sysctl", "-e", "net.core", "net.ipv4", "kernel.bpf_stats_enabled" } },
	{ "ip-link.json", { "ip", "-j", "-s", "-s", "-d", "link" } },
	{ "ip-addr.json", { "ip", "-j", "addr" } },
	{ "ip-route.json", { "ip", "-j", "route", "show", "table", "all" } },
	{ "ip-route6.json", { "ip", "-j", "-6", "route", "show", "table", "all" } },
	{ "ip-neigh.json", { "ip", "-j", "-s", "neigh" } },
	{ "ip-rule.json", { "ip", "-j", "rule" } },
	{ "ip-netns.txt", { "ip", "netns" } },
	{ "bridge-fdb.json", { "bridge", "-j", "fdb" } },
	{ "tc-qdisc.json", { "tc", "-j", "-s", "qdisc" } },
	{ "nft.txt", { "nft", "list", "ruleset" } },
	{ "bpf-prog.json", { "bpftool", "-j", "prog" } },
	{ "bpf-map.json", { "bpftool", "-j", "map" } },
	{ "bpf-link.json", { "bpftool", "-j", "link" } },
	{ "bpf-net.json", { "bpftool", "-j", "net" } },
	{ "clock-chrony.txt", { "chronyc", "-n", "tracking" } },
	{ "clock-adjtimex.txt", { "adjtimex", "--print" } },
	{ "run-dir.txt", { "ls", "-laR", BL_RUN_DIR } },
	{ "config-dir.txt", { "ls", "-la", CONFIG_DIR } },
	{ "units.txt",
	  { "systemctl", "--no-pager", "status", "barlined@*", "barline-controller",
	    "barline-arbiter" } },
	{ "journal.txt",
	  { "journalctl", "--no-pager", "-o", "short-iso-precise", "-n", "20000", "-u",
	    "barlined@*", "-u", "barline-controller", "-u", "barline-arbiter" } },
	{ "kernel-log.txt", { "dmesg" } },
};

/* what is asked of each interface */
static const struct {
	const char *name;
	const char *argv[4]; /* the interface follows */
} nic_commands[] = {
	{ "driver.txt", { "ethtool", "-i" } },   { "settings.txt", { "ethtool" } },
	{ "features.txt", { "ethtool", "-k" } }, { "channels.txt", { "ethtool", "-l" } },
	{ "rings.txt", { "ethtool", "-g" } },    { "counters.txt", { "ethtool", "-S" } },
	{ "clock.txt", { "ethtool", "-T" } },    { "rules.txt", { "ethtool", "-n" } },
	{ "rss.txt", { "ethtool", "-x" } },
};

static void path_in(const struct dump *d, const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s/%s", d->parent, d->name, name);
}

/* Opens a file of the archive; NULL after a message. */
static FILE *open_in(const struct dump *d, const char *name)
{
	char path[512];
	FILE *f;

	path_in(d, name, path, sizeof(path));
	f = fopen(path, "we");
	if (!f)
		cli_fail("%s: %s", path, strerror(errno));
	return f;
}

/* Notes what became of a file. @status: of the command; -1: see @why */
static void note(struct dump *d, const char *name, const char *command, int status, const char *why,
		 double seconds)
{
	json_t *o = json_pack("{s:s, s:s, s:i, s:f}", "name", name, "command", command, "status",
			      status, "seconds", seconds);

	if (why)
		json_object_set_new(o, "why", json_string(why));
	json_array_append_new(d->items, o);
	d->failed += status != 0;
}

/* Runs a child with its output in @fd. Does not return. */
static void become(const char *const *argv, int fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	setenv("LC_ALL", "C", 1);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/*
 * Waits for the child up to @limit_s, or until *@stop. Returns its status as of waitpid(), or -1:
 * it was killed.
 */
static int wait_limit(pid_t pid, double limit_s, const volatile sig_atomic_t *stop)
{
	uint64_t end = bl_mono_ns() + (uint64_t)(limit_s * 1e9);
	int st;

	while (!waitpid(pid, &st, WNOHANG)) {
		if (bl_mono_ns() > end || (stop && *stop)) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			waitpid(pid, &st, 0);
			return -1;
		}
		nap_ns(2000000);
	}
	return st;
}

/*
 * Runs a command into the file @name. Returns its exit status; -1: it could not be run, or took too
 * long. @retry: the caller may try again, so that a wrong usage is not noted
 */
static int run(struct dump *d, const char *name, const char *const *argv, bool retry)
{
	char text[512] = "", path[512];
	uint64_t start = bl_mono_ns();
	const char *why = NULL;
	size_t len = 0;
	int fd, st, i;
	pid_t pid;

	if (*d->stop)
		return -1;
	for (i = 0; argv[i] && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
					argv[i] == d->self ? "barline" : argv[i]);
	out_progress("%s", text);
	path_in(d, name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		note(d, name, text, -1, strerror(errno), 0);
		return -1;
	}
	pid = fork();
	if (!pid)
		become(argv, fd);
	close(fd);
	if (pid < 0) {
		note(d, name, text, -1, strerror(errno), 0);
		return -1;
	}
	st = wait_limit(pid, d->args->limit_s, d->stop);
	if (st == -1) {
		why = "took too long, and was ended";
	} else if (!WIFEXITED(st)) {
		why = "ended by a signal";
		st = -1;
	} else {
		st = WEXITSTATUS(st);
		if (st == 127) {
			why = "not installed";
			unlink(path);
		}
	}
	if (!retry || st != CLI_USAGE)
		note(d, name, text, st, why, (double)(bl_mono_ns() - start) / 1e9);
	return st;
}

/* The output of every `barline show`. */
static void dump_shows(struct dump *d)
{
	char *names = NULL, *line, *save;
	size_t size;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return;
	names_of_commands(f);
	fclose(f);
	for (line = strtok_r(names, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *word = line + 5;
		char file[64];

		if (strncmp(line, "show ", 5))
			continue;
		snprintf(file, sizeof(file), "show-%.40s.json", word);
		if (run(d, file, (const char *const[]){ d->self, "-j", "show", word, "-a", NULL },
			true) == CLI_USAGE)
			run(d, file, (const char *const[]){ d->self, "-j", "show", word, NULL },
			    false);
	}
	free(names);
}

/* Drivers, features and counters of the interfaces of this network namespace. */
static void dump_nics(struct dump *d)
{
	struct if_nameindex *all = if_nameindex(), *i;
	char file[128], dir[512];
	size_t k;

	for (i = all; i && i->if_name; i++) {
		if (!strcmp(i->if_name, "lo") || strchr(i->if_name, '/'))
			continue;
		snprintf(file, sizeof(file), "nic-%s", i->if_name);
		path_in(d, file, dir, sizeof(dir));
		if (mkdir(dir, 0700))
			continue;
		for (k = 0; k < sizeof(nic_commands) / sizeof(nic_commands[0]); k++) {
			const char *argv[6] = { NULL };
			size_t n = 0;

			for (; nic_commands[k].argv[n]; n++)
				argv[n] = nic_commands[k].argv[n];
			argv[n] = i->if_name;
			snprintf(file, sizeof(file), "nic-%s/%s", i->if_name, nic_commands[k].name);
			run(d, file, argv, false);
		}
		snprintf(file, sizeof(file), "nic-%s/tc-ingress.txt", i->if_name);
		run(d, file,
		    (const char *const[]){ "tc", "-s", "filter", "show", "dev", i->if_name,
					   "ingress", NULL },
		    false);
		snprintf(file, sizeof(file), "nic-%s/tc-egress.txt", i->if_name);
		run(d, file,
		    (const char *const[]){ "tc", "-s", "filter", "show", "dev", i->if_name,
					   "egress", NULL },
		    false);
	}
	if_freenameindex(all);
}

/* Copies a configuration file, without secrets. */
static void dump_config(struct dump *d, const char *name)
{
	char from[512], to[256], *line = NULL;
	struct redact r = { false };
	size_t size = 0, sum = 0;
	ssize_t n;
	FILE *in, *out;
	struct stat st;
	int fd;

	snprintf(from, sizeof(from), "%s/%s", d->args->config, name);
	snprintf(to, sizeof(to), "config-%.200s", name);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	in = fd < 0 ? NULL : fdopen(fd, "r");
	if (!in || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		note(d, to, from, -1, in ? "no regular file" : strerror(errno), 0);
		if (in)
			fclose(in);
		return;
	}
	out = open_in(d, to);
	while (out && (n = getline(&line, &size, in)) > 0 && (sum += (size_t)n) < FILE_MAX) {
		if (strlen(line) != (size_t)n)
			break; /* a text has no zero bytes */
		redact_line(&r, line);
		fputs(line, out);
	}
	note(d, to, from, out && !fclose(out) ? 0 : -1, NULL, 0);
	free(line);
	fclose(in);
}

/* Only *.yaml: secrets, keys and certificates have other names, and are never opened. */
static void dump_configs(struct dump *d)
{
	DIR *dir = opendir(d->args->config);
	struct dirent *e;

	if (!dir) {
		note(d, "config", d->args->config, -1, strerror(errno), 0);
		return;
	}
	while (!*d->stop && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (n > 5 && !strcmp(e->d_name + n - 5, ".yaml"))
			dump_config(d, e->d_name);
	}
	closedir(dir);
}

static int write_manifest(struct dump *d)
{
	FILE *f = open_in(d, "manifest.json");
	json_t *all;
	int rc;

	if (!f)
		return 1;
	all = json_pack("{s:i, s:s, s:I, s:O}", "schema", CLI_SCHEMA, "barline", BARLINE_VERSION,
			"time", (json_int_t)time(NULL), "items", d->items);
	rc = json_dumpf(all, f, JSON_INDENT(1));
	json_decref(all);
	if (fclose(f) || rc)
		return cli_fail("manifest.json: %s", strerror(errno));
	return 0;
}

/* Removes the folder for the time being, also when a signal comes meanwhile. */
static void remove_all(const char *parent)
{
	const char *const argv[] = { "rm", "-rf", "--", parent, NULL };
	pid_t pid = fork();

	if (!pid)
		become(argv, STDERR_FILENO);
	if (pid > 0)
		wait_limit(pid, 60, NULL);
}

/* Packs the folder. Returns the exit status. */
static int pack(struct dump *d, const char *file)
{
	const char *const argv[] = { "tar", "-C", d->parent, "-czf", "-", "--", d->name, NULL };
	bool to_stdout = !strcmp(file, "-");
	int fd = to_stdout ? dup(STDOUT_FILENO)
			   : open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
	    st;
	pid_t pid;

	if (fd < 0)
		return cli_fail("%s: %s", file, strerror(errno));
	pid = fork();
	if (!pid) {
		dup2(fd, STDOUT_FILENO);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	st = pid < 0 ? -1 : wait_limit(pid, 600, d->stop);
	if (close(fd) || st) {
		if (!to_stdout)
			unlink(file);
		return *d->stop ? 1 : cli_fail("%s: tar could not write it", file);
	}
	return 0;
}

/* Collects everything. */
static void collect(struct dump *d)
{
	size_t i;

	run(d, "version.txt", (const char *const[]){ d->self, "--version", NULL }, false);
	dump_shows(d);
	run(d, "doctor.json", (const char *const[]){ d->self, "-j", "doctor", "--quick", NULL },
	    false);
	run(d, "admission.json", (const char *const[]){ d->self, "-j", "admission", "show", NULL },
	    false);
	run(d, "events.jsonl", (const char *const[]){ d->self, "-j", "events", NULL }, false);
	run(d, "metrics.prom", (const char *const[]){ d->self, "metrics", NULL }, false);
	run(d, "trace-last.jsonl",
	    (const char *const[]){ d->self, "-j", "trace", "-a", "--last=200", NULL }, false);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		run(d, commands[i].name, commands[i].argv, false);
	dump_nics(d);
	dump_configs(d);
}

int cmd_sysdump(int argc, char **argv)
{
	const struct argp argp = { .options = options,
				   .parser = parse_sysdump,
				   .children = cmd_globals,
				   .doc = "barline sysdump - an archive with the state of this "
					  "machine and its nodes\v"
					  "For somebody who is to find out from afar what is "
					  "wrong. Secrets, keys and "
					  "certificates are not in it; addresses, names and the "
					  "logs are." };
	struct sysdump_args a = { .limit_s = 10, .config = CONFIG_DIR };
	struct dump d = { .args = &a };
	char host[64] = "host", file[192], inner[512];
	time_t now = time(NULL);
	struct tm tm;
	ssize_t n;
	int st;

	cmd_parse(&argp, argc, argv, &a);
	if (a.file && !strcmp(a.file, "-") && isatty(STDOUT_FILENO))
		return cli_usage("-o -: an archive is not for a terminal");
	n = readlink("/proc/self/exe", d.self, sizeof(d.self) - 1);
	if (n <= 0)
		return cli_fail("/proc/self/exe: %s", strerror(errno));
	gethostname(host, sizeof(host) - 1);
	gmtime_r(&now, &tm);
	n = snprintf(d.name, sizeof(d.name), "barline-sysdump-%.63s-", host);
	strftime(d.name + n, sizeof(d.name) - (size_t)n, "%Y%m%dT%H%M%SZ", &tm);
	snprintf(file, sizeof(file), "%s.tar.gz", d.name);
	snprintf(d.parent, sizeof(d.parent), "%.200s/barline-sysdump-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	umask(077);
	d.stop = stop_flag();
	if (!mkdtemp(d.parent))
		return cli_fail("%s: %s", d.parent, strerror(errno));
	path_in(&d, "", inner, sizeof(inner));
	d.items = json_array();
	if (mkdir(inner, 0700)) {
		st = cli_fail("%s: %s", inner, strerror(errno));
	} else {
		collect(&d);
		out_progress_end();
		st = *d.stop ? 1 : write_manifest(&d);
		if (!st)
			st = pack(&d, a.file ? a.file : file);
	}
	remove_all(d.parent);
	if (st && *d.stop)
		cli_fail("a signal came before the archive was complete: none was written");
	if (!st && cli.json && (!a.file || strcmp(a.file, "-")))
		cli_json(json_pack("{s:s, s:I, s:I}", "file", a.file ? a.file : file, "items",
				   (json_int_t)json_array_size(d.items), "failed",
				   (json_int_t)d.failed));
	else if (!st && (!a.file || strcmp(a.file, "-")))
		printf("%s\n", a.file ? a.file : file);
	json_decref(d.items);
	return st;
}
