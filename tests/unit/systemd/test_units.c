// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The unit files in systemd/: each has the settings of least privilege, the daemon's capabilities
 * are those of loader/prepare.h, and systemd-analyze(1) finds no mistake, where it is installed.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privileges.h"
#include "loader/load/pin.h"
#include "loader/prepare.h"

#define UNITS 4
#define MOUNT "run-barline-bpf.mount"

/* In each unit. */
static const char *const always[] = {
	"Type=notify",
	"User=barline",
	"Group=barline",
	"NoNewPrivileges=yes",
	"ProtectSystem=strict",
	"ProtectHome=yes",
	"PrivateTmp=yes",
	"PrivateDevices=yes",
	"MemoryDenyWriteExecute=yes",
	"RestrictNamespaces=yes",
	"RestrictSUIDSGID=yes",
	"SystemCallArchitectures=native",
	"RuntimeDirectory=barline",
	"RuntimeDirectoryPreserve=yes",
	"Restart=on-failure",
	"RestartSec=100ms",
};

static const struct {
	const char *name;
	uint64_t caps;         /* bounding and ambient set */
	const char *families;  /* of sockets */
	const char *threshold; /* ten times what `systemd-analyze security` may say at most */
	const char *program;   /* whose path ExecStart begins with */
	bool watchdog;         /* it has an event loop that feeds systemd's */
} units[UNITS] = {
	{ "barlined@", BL_CAPS_DAEMON, "AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET", "30",
	  "@SBIN@/barlined", true },
	{ "barline-controller", 0, "AF_UNIX AF_INET AF_INET6 AF_NETLINK", "16", "@BIN@/barline",
	  true },
	{ "barline-arbiter", BL_CAP(CAP_SYS_NICE), "AF_UNIX AF_INET AF_INET6 AF_NETLINK", "22",
	  "@BIN@/barline", false },
	{ "barline-metrics", BL_CAP(CAP_BPF), "AF_UNIX AF_INET AF_INET6", "19", "@BIN@/barline",
	  false },
};

static char *load(const char *path)
{
	FILE *f = fopen(path, "r");
	static char text[16384];
	size_t n;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	assert_in_range(n, 1, sizeof(text) - 2);
	text[n] = 0;
	return text;
}

static const char *source_of(unsigned int k)
{
	static char path[64];

	snprintf(path, sizeof(path), "systemd/%s.service.in", units[k].name);
	return path;
}

/* Returns whether the text has this line. */
static bool has_line(const char *text, const char *line)
{
	const char *at = text;
	size_t len = strlen(line);

	while ((at = strstr(at, line))) {
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return true;
		at += len;
	}
	return false;
}

/* The capabilities as a unit names them: "CAP_BPF CAP_NET_ADMIN", in the order of their names. */
static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *caps_line(const char *key, uint64_t caps, char *line, size_t size)
{
	char text[512], *name[64], *save, *p;
	size_t n = 0, k, at;

	bl_caps_text(caps, text, sizeof(text));
	for (p = strtok_r(text, ", ", &save); p; p = strtok_r(NULL, ", ", &save))
		name[n++] = p;
	qsort(name, n, sizeof(*name), by_name);
	at = (size_t)snprintf(line, size, "%s=", key);
	for (k = 0; k < n; k++)
		at += (size_t)snprintf(line + at, size - at, "%s%s", k ? " " : "", name[k]);
	return line;
}

static void units__have_the_settings(void **state)
{
	char line[512];
	unsigned int k;
	size_t i;

	(void)state;
	for (k = 0; k < UNITS; k++) {
		const char *text = load(source_of(k));

		for (i = 0; i < ARRAY_SIZE(always); i++)
			if (!has_line(text, always[i]))
				fail_msg("%s lacks %s", source_of(k), always[i]);
		if (!has_line(text, caps_line("CapabilityBoundingSet", units[k].caps, line,
					      sizeof(line))))
			fail_msg("%s lacks %s", source_of(k), line);
		caps_line("AmbientCapabilities", units[k].caps, line, sizeof(line));
		if (units[k].caps ? !has_line(text, line) : strstr(text, "Ambient") != NULL)
			fail_msg("%s: %s", source_of(k), line);
		snprintf(line, sizeof(line), "RestrictAddressFamilies=%s", units[k].families);
		if (!has_line(text, line))
			fail_msg("%s lacks %s", source_of(k), line);
		snprintf(line, sizeof(line), "\nExecStart=%s ", units[k].program);
		if (!strstr(text, line))
			fail_msg("%s does not start %s", source_of(k), units[k].program);
		if (has_line(text, "WatchdogSec=30") != units[k].watchdog)
			fail_msg("%s: the watchdog", source_of(k));
	}
}

/* A unit that is not in the table above would be checked by nobody. */
static void units__are_all_known(void **state)
{
	glob_t g;

	(void)state;
	assert_int_equal(glob("systemd/*.service.in", 0, NULL, &g), 0);
	assert_int_equal(g.gl_pathc, UNITS);
	globfree(&g);
	assert_true(has_line(load("systemd/sysusers.conf"), "u barline - \"barline services\" "
							    "/var/lib/barline"));
	assert_true(has_line(load("systemd/tmpfiles.conf"), "d /run/barline 0755 barline barline"));
}

/* What a service mounts is gone with the command that has mounted it. */
static void units__bpffs_is_mounted(void **state)
{
	const char *text = load(source_of(0)), *after;

	(void)state;
	assert_true(has_line(text, "Requires=" MOUNT));
	after = strstr(text, "\nAfter=");
	assert_non_null(after);
	assert_true(strstr(after, MOUNT) < strchr(after + 1, '\n'));
	text = load("systemd/" MOUNT);
	assert_true(has_line(text, "Type=bpf"));
	assert_true(has_line(text, "Where=" BL_BPFFS));
	assert_true(has_line(text, "Options=nosuid,nodev,noexec,mode=0700"));
}

/* Runs a command in @dir. Returns its exit status; what it says goes to the file "said" there. */
static int run(const char *dir, char *const *argv)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (chdir(dir) ||
		    dup2(open("said", O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO) < 0)
			_exit(126);
		dup2(STDOUT_FILENO, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Writes a unit as it is installed, with a program that exists. */
static void write_unit(const char *dir, unsigned int k)
{
	const char *text = load(source_of(k)), *at;
	char path[256], file[80];
	FILE *f;

	/* the programs have other names in the tests' folders, which does not matter here */
	snprintf(file, sizeof(file), "%s.service", units[k].name);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "w");
	assert_non_null(f);
	while ((at = strstr(text, "BIN@/barline"))) {
		at -= at[-1] == 'S' ? 2 : 1; /* @SBIN@ or @BIN@ */
		fwrite(text, 1, (size_t)(at - text), f);
		fputs("/bin/true", f);
		text = at + strcspn(at, " \n");
	}
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	snprintf(path, sizeof(path), "%s/" MOUNT, dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(load("systemd/" MOUNT), f);
	assert_int_equal(fclose(f), 0);
}

static void units__systemd_analyze(void **state)
{
	char *const version[] = { "systemd-analyze", "--version", NULL };
	char dir[] = "/tmp/barline-units-XXXXXX", file[80], threshold[64], path[256], said[64];
	struct stat st;
	unsigned int k;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(said, sizeof(said), "%s/said", dir);
	if (run(dir, version)) {
		print_message("systemd-analyze is not installed: nothing more to check\n");
		unlink(said);
		rmdir(dir);
		return;
	}
	for (k = 0; k < UNITS; k++) {
		char *const verify[] = { "systemd-analyze", "--man=no", "verify", file, NULL };
		char *const security[] = { "systemd-analyze",
					   "--offline=yes",
					   "--no-pager",
					   threshold,
					   "security",
					   file,
					   NULL };

		write_unit(dir, k);
		snprintf(file, sizeof(file), "./%s.service", units[k].name);
		snprintf(threshold, sizeof(threshold), "--threshold=%s", units[k].threshold);
		/* an unknown setting is a warning */
		if (run(dir, verify) || stat(said, &st) || st.st_size)
			fail_msg("systemd-analyze verify: %s", load(said));
		if (run(dir, security))
			fail_msg("%s is exposed more than %s tenths", source_of(k),
				 units[k].threshold);
		snprintf(path, sizeof(path), "%s/%s", dir, file + 2);
		unlink(path);
		snprintf(path, sizeof(path), "%s/" MOUNT, dir);
		unlink(path);
	}
	unlink(said);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units__have_the_settings),
		cmocka_unit_test(units__are_all_known),
		cmocka_unit_test(units__bpffs_is_mounted),
		cmocka_unit_test(units__systemd_analyze),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
