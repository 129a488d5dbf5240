// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of a lab's network namespaces in /run/netns (lab/lab_names.c): they are there while the lab
 * is, for other programs and for `barline -n`, go with it however it ends, never stand for
 * something else, and keep no namespace alive.
 */
#include "tests/net/barline_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define NAMES   "/run/netns/"
#define RECORDS "/run/barline/labs/"

static char barline[512], lab[32], other[32];

static bool any_name(const char *name);

/* Also after a failure, everything that a test has raised goes. */
static int take_down(void **state)
{
	json_t *said;

	(void)state;
	if (any_name(lab)) {
		barline_run(&said,
			    (const char *const[]){ barline, "-j", "lab", "down", lab, NULL });
		json_decref(said);
	}
	if (any_name(other)) {
		barline_run(&said,
			    (const char *const[]){ barline, "-j", "lab", "down", other, NULL });
		json_decref(said);
	}
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(lab, sizeof(lab), "t-names-%d", getpid());
	snprintf(other, sizeof(other), "t-names-%d.2", getpid());
	return barline_path(barline, sizeof(barline)) ? 0 : -1;
}

#define RUN(said, ...) barline_run(said, (const char *const[]){ barline, "-j", __VA_ARGS__, NULL })

/* Runs a command that must succeed. */
#define OK(...)                                                                      \
	do {                                                                         \
		json_t *said_;                                                       \
		int st_ = RUN(&said_, __VA_ARGS__);                                  \
		const char *e_ = json_string_value(json_object_get(said_, "error")); \
                                                                                     \
		if (st_)                                                             \
			fail_msg("status %d: %s", st_, e_ ? e_ : "no error");        \
		json_decref(said_);                                                  \
	} while (0)

static void raise_lab(const char *name)
{
	OK("lab", "up", name, "--hosts", "2", "--no-barline");
}

/* The inode number of the name, or 0. */
static ino_t named(const char *name, const char *node)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), NAMES "%s-%s", name, node);
	return stat(path, &st) ? 0 : st.st_ino;
}

static bool any_name(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), RECORDS "%s", name);
	return named(name, "h1") || named(name, "h2") || named(name, "s1") || named(name, "mgmt") ||
	       !access(path, F_OK);
}

/* Waits until the name, which the watcher removes, is gone. */
static void wait_gone(const char *name)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int k;

	for (k = 0; any_name(name); k++) {
		if (k == 3000)
			fail_msg("the names of %s do not go", name);
		nanosleep(&nap, NULL);
	}
}

/* The pid of the lab's init, from the record. */
static pid_t init_of(const char *name)
{
	char path[128];
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), RECORDS "%s", name);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

/* Kills the watcher: the process that has the record open. */
static void kill_watcher(const char *name)
{
	char want[128], link[64], path[128];
	DIR *d = opendir("/proc");
	struct dirent *e;
	ssize_t n;
	int killed = 0;

	assert_non_null(d);
	snprintf(want, sizeof(want), RECORDS "%s", name);
	while ((e = readdir(d))) {
		snprintf(link, sizeof(link), "/proc/%.20s/fd/3", e->d_name);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (!strcmp(path, want))
			killed += !kill(atoi(e->d_name), SIGKILL);
	}
	closedir(d);
	assert_int_equal(killed, 1);
}

/* Whether a mount of the namespace is left in the mount namespace of any process. */
static bool is_mounted(ino_t ino)
{
	char want[64], path[64], line[1024];
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool found = false;

	assert_non_null(d);
	snprintf(want, sizeof(want), "net:[%lu]", (unsigned long)ino);
	while (!found && (e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%.20s/mountinfo", e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			found = found || strstr(line, want);
		if (f)
			fclose(f);
	}
	closedir(d);
	return found;
}

/* The names stand for the namespaces of the nodes; -n and `lab exec` take them. */
static void names__stand_for_the_nodes(void **state)
{
	char name[64], want[1024], got[64];
	json_t *said;
	FILE *f;

	(void)state;
	OK("lab", "up", lab, "--hosts", "2");
	assert_true(named(lab, "s1") && named(lab, "mgmt"));
	assert_int_not_equal(named(lab, "h1"), named(lab, "h2"));
	snprintf(name, sizeof(name), "%s-h2", lab);
	assert_int_equal(RUN(&said, "-n", name, "show", "nodes"), 0);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(said, "nodes"), 0), "node")),
			    "h2");
	json_decref(said);
	snprintf(want, sizeof(want), "%s lab exec %s -- readlink /proc/self/ns/net", barline, name);
	f = popen(want, "r");
	assert_non_null(f);
	assert_non_null(fgets(got, sizeof(got), f));
	assert_int_equal(pclose(f), 0);
	snprintf(want, sizeof(want), "net:[%lu]\n", (unsigned long)named(lab, "h2"));
	assert_string_equal(got, want);
	/* the status of what runs inside of the lab is that of the command */
	assert_int_equal(RUN(&said, "-n", name, "send", "10.77.1.1:99", "x"), 2);
	json_decref(said);
	OK("lab", "down", lab);
	assert_false(any_name(lab));
}

/* A lab that is killed, and one whose watcher was killed before. */
static void names__go_with_the_lab(void **state)
{
	json_t *said;

	(void)state;
	raise_lab(lab);
	assert_int_equal(kill(init_of(lab), SIGKILL), 0);
	wait_gone(lab);
	raise_lab(lab);
	kill_watcher(lab);
	OK("clean"); /* the lab is up */
	assert_true(any_name(lab));
	assert_int_equal(kill(init_of(lab), SIGKILL), 0);
	assert_true(any_name(lab));
	do {
		assert_int_equal(RUN(&said, "lab", "list"), 0);
		assert_non_null(said);
		json_decref(said);
		OK("clean");
	} while (any_name(lab)); /* as soon as the kernel has ended the lab */
}

/* A copy of the mounts, as another lab has one, does not keep the namespaces. */
static void names__keep_nothing_alive(void **state)
{
	ino_t h1;

	(void)state;
	raise_lab(lab);
	raise_lab(other);
	h1 = named(lab, "h1");
	assert_true(is_mounted(h1));
	OK("lab", "down", lab);
	assert_false(is_mounted(h1));
	assert_true(named(other, "h1"));
	OK("lab", "down", other);
}

/* What others have called so stays as it is, and the lab is up without names. */
static void names__of_others(void **state)
{
	char path[128], text[8] = "";
	int fd;

	(void)state;
	mkdir("/run/netns", 0755);
	snprintf(path, sizeof(path), NAMES "%s-h2", lab);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	raise_lab(lab);
	assert_false(named(lab, "h1"));
	OK("lab", "down", lab);
	OK("clean");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "mine");
	close(fd);
	unlink(path);
	assert_false(any_name(lab));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(names__stand_for_the_nodes, take_down),
		cmocka_unit_test_teardown(names__go_with_the_lab, take_down),
		cmocka_unit_test_teardown(names__keep_nothing_alive, take_down),
		cmocka_unit_test_teardown(names__of_others, take_down),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
