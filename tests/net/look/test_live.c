// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline top` on a rack, as its users run it: a neighbour that has fallen silent is named by all
 * who wait for it, nodes that vanish and come again are marked and have no absurd rates, and a
 * terminal is as it was before after keys and signals.
 */
#include "tests/net/rack.h"

#include <jansson.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "loader/node.h"
#include "tests/net/barline_run.h"
#include "tests/net/run_beside.h"

#define PATIENT_US 100000000 /* longer than a case: nobody is excluded */

static char barline[512];

static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = PATIENT_US;
	cfg->lag_max_us = PATIENT_US;
}

static void open_rack(unsigned int hosts)
{
	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rack.lab.spec.hosts = hosts;
	rack_open();
	rack_settle();
}

static void detach(unsigned int node)
{
	enum bl_role role = rack_is_switch(node) ? BL_ROLE_SWITCH : BL_ROLE_HOST;
	struct bl_err err;
	int home;

	rack_close_node(node);
	home = rack_away(node);
	CHECK(!bl_node_detach(role, NULL, &err), "%s", err.text);
	rack_back(home);
}

/* ---- JSON ---- */

static const json_t *node_of(const json_t *reading, const char *name)
{
	const json_t *nodes = json_object_get(reading, "nodes"), *n;
	size_t i;

	for (i = 0; i < json_array_size(nodes); i++) {
		n = json_array_get(nodes, i);
		if (!strcmp(json_string_value(json_object_get(n, "node")), name))
			return n;
	}
	return NULL;
}

static void check_rates(const json_t *row)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)row, key, v)
	{
		double rate = json_number_value(v);

		if (strstr(key, "_per_s"))
			CHECK(rate >= 0 && rate < 1e9, "%s: %f per second", key, rate);
	}
}

/* Every line is a reading, and no rate in it is absurd. Returns the last one. */
static json_t *readings(int fd, unsigned int *n)
{
	const char *text = text_of(fd);
	FILE *f = *text ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : NULL;
	json_t *last = NULL, *o, *row, *port;
	size_t i, k;

	*n = 0;
	while (f && (o = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
		CHECK(json_integer_value(json_object_get(o, "schema")) == 1, "no schema");
		json_array_foreach(json_object_get(o, "nodes"), i, row)
		{
			check_rates(row);
			json_array_foreach(json_object_get(row, "ports"), k, port)
				check_rates(port);
		}
		json_decref(last);
		last = o;
		++*n;
	}
	if (f)
		fclose(f);
	return last;
}

/* Waits until the last reading says so of the node; each wait is for one reading at least. */
static void wait_state(struct run *r, const char *node, const char *key, const char *want)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;
	unsigned int n;
	json_t *last;
	bool ok;

	do {
		rack_serve(20);
		last = readings(r->out, &n);
		ok = last && json_says(node_of(last, node), key, want);
		if (t_mono() > end)
			FAIL("%s: \"%s\" is not \"%s\" in %s %s", node, key, want,
			     last ? json_dumps(last, 0) : "nothing", text_of(r->err));
		json_decref(last);
	} while (!ok);
}

static void finish(struct run *r)
{
	CHECK(!kill(r->pid, SIGTERM), "%s", strerror(errno));
	reap(r, "top");
	close(r->out);
	close(r->err);
}

RACK_TEST(live__silent_neighbour_is_named)
{
	const char *const json[] = { barline, "-j", "top", "-a", "-i", "0.2", NULL };
	const char *const text[] = { barline, "top", "-a", "-b", "-i", "0.1", "-c", "2", NULL };
	struct run r;

	rack.tweak = patient;
	open_rack(3);
	rack_close_node(rack_host(2)); /* its daemon stops, and nobody stands in for it */
	r = start_on(rack_host(0), json, "");
	/* the switch waits for it, and so do the hosts behind the switch */
	wait_state(&r, "s1", "held_by", "h3 (h3 of s1)");
	wait_state(&r, "h1", "held_by", "h3 (h3 of s1)");
	wait_state(&r, "h3", "daemon", "stopped");
	wait_state(&r, "s1", "daemon", "ok");
	finish(&r);

	r = start_on(rack_host(0), text, "");
	reap(&r, "top");
	CHECK(WIFEXITED(r.status) && !WEXITSTATUS(r.status), "%s", text_of(r.err));
	CHECK(strstr(text_of(r.out), "\nh1 waits for h3 (h3 of s1): "), "%s", text_of(r.out));
	CHECK(strstr(text_of(r.out), "\nNODE  STATE  FRAMES/S "), "%s", text_of(r.out));
	CHECK(!strchr(text_of(r.out), '\033'), "escape sequences in a file");
}

/* Between two readings nodes go, come, and are made anew; the command is stopped meanwhile. */
RACK_TEST(live__nodes_vanish_and_come_anew)
{
	const char *const json[] = { barline, "-j", "top", "-a", "-i", "0.2", NULL };
	struct run r;

	open_rack(2);
	r = start_on(rack_host(0), json, "");
	wait_state(&r, "h2", "state", "");
	CHECK(!kill(r.pid, SIGSTOP), "%s", strerror(errno));
	detach(rack_host(1));
	rack_open_node(rack_host(1));
	CHECK(!kill(r.pid, SIGCONT), "%s", strerror(errno));
	wait_state(&r, "h2", "state", "restarted");
	detach(rack_host(1));
	wait_state(&r, "h2", "state", "gone");
	rack_open_node(rack_host(1));
	wait_state(&r, "h2", "state", "new");
	finish(&r);
}

/* ---- a terminal ---- */

#define ENTER  "\033[?1049h"
#define LEAVE  "\033[?1049l"
#define CTRL_Z "\032"

/* struct screen - a terminal with a shell, in which the command is the job in the foreground. */
struct screen {
	int master, slave;
	int say, hear; /* to the shell: "c" continues the job; from it: one byte per change */
	pid_t shell;
	struct termios before;
	char text[1 << 18]; /* what was written since the last key */
	size_t n;
};

static struct screen screen;

/* The shell: gives the terminal to the job, and takes it back while the job is stopped. */
static void shell_main(const char *const *argv, int hear, int say)
{
	pid_t job;
	char c;
	int st;

	signal(SIGTTOU, SIG_IGN);
	job = fork();
	if (!job) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		tcsetpgrp(STDIN_FILENO, getpid());
		signal(SIGTTOU, SIG_DFL);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	setpgid(job, job);
	for (;;) {
		if (waitpid(job, &st, WUNTRACED) != job)
			_exit(1);
		tcsetpgrp(STDIN_FILENO, getpgrp());
		c = WIFSTOPPED(st) ? 'T' : WIFEXITED(st) && !WEXITSTATUS(st) ? '0' : '!';
		if (write(say, &c, 1) != 1 || c != 'T')
			_exit(0);
		if (read(hear, &c, 1) != 1)
			_exit(1);
		tcsetpgrp(STDIN_FILENO, job);
		kill(-job, SIGCONT);
	}
}

static void open_screen(const char *const *argv)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int to[2], from[2];

	CHECK(!openpty(&screen.master, &screen.slave, NULL, NULL, &size) && !pipe(to) &&
		      !pipe(from),
	      "%s", strerror(errno));
	CHECK(!tcgetattr(screen.slave, &screen.before), "%s", strerror(errno));
	screen.n = 0;
	fflush(NULL);
	screen.shell = fork();
	CHECK(screen.shell >= 0, "%s", strerror(errno));
	if (!screen.shell) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(0));
		setenv("TERM", "xterm", 1);
		setsid();
		ioctl(screen.slave, TIOCSCTTY, 0);
		dup2(screen.slave, STDIN_FILENO);
		dup2(screen.slave, STDOUT_FILENO);
		dup2(screen.slave, STDERR_FILENO);
		close(screen.master);
		close(to[1]);
		close(from[0]);
		shell_main(argv, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	screen.say = to[1];
	screen.hear = from[0];
	CHECK(!fcntl(screen.master, F_SETFL, O_NONBLOCK), "%s", strerror(errno));
	CHECK(!fcntl(screen.hear, F_SETFL, O_NONBLOCK), "%s", strerror(errno));
}

static void read_screen(void)
{
	ssize_t n = read(screen.master, screen.text + screen.n, sizeof(screen.text) - 1 - screen.n);

	screen.n += n > 0 ? (size_t)n : 0;
	screen.text[screen.n] = '\0';
	CHECK(screen.n < sizeof(screen.text) - 1, "too much is written");
}

static void wait_screen(const char *want)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;

	do {
		rack_serve(5);
		read_screen();
		CHECK(t_mono() < end, "no \"%s\" in \"%s\"", want, screen.text);
	} while (!strstr(screen.text, want));
}

static void press(const char *keys)
{
	read_screen();
	screen.n = 0;
	CHECK(write(screen.master, keys, strlen(keys)) > 0, "%s", strerror(errno));
}

/* Waits for what the shell says of its job, and for the end of what the job has written. */
static void wait_job(char want)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;
	char c = 0;

	while (read(screen.hear, &c, 1) != 1) {
		rack_serve(5);
		read_screen();
		CHECK(t_mono() < end, "the command neither stops nor ends: %s", screen.text);
	}
	CHECK(c == want, "the job: '%c' instead of '%c': %s", c, want, screen.text);
	read_screen();
}

/* The terminal is as it was before the command. */
static void check_terminal(void)
{
	struct termios now;

	CHECK(!tcgetattr(screen.slave, &now), "%s", strerror(errno));
	CHECK(now.c_lflag == screen.before.c_lflag && now.c_iflag == screen.before.c_iflag &&
		      now.c_oflag == screen.before.c_oflag,
	      "the terminal has other modes than before");
	wait_screen("\033[?25h" LEAVE); /* the cursor, and the screen of before */
}

static void close_screen(void)
{
	int st;

	CHECK(waitpid(screen.shell, &st, 0) == screen.shell, "%s", strerror(errno));
	close(screen.master);
	close(screen.slave);
	close(screen.say);
	close(screen.hear);
}

/* Of the last whole screen in what was written: the greatest number of characters in a line. */
static size_t widest(void)
{
	size_t most = 0, here = 0, i, from;
	char *last, *end;

	end = strrchr(screen.text, '\033'); /* of \033[J, the end of a screen */
	CHECK(end, "nothing was drawn");
	*end = '\0';
	last = strstr(screen.text, "\033[H");
	CHECK(last, "no screen begins");
	while (strstr(last + 1, "\033[H"))
		last = strstr(last + 1, "\033[H");
	for (i = 0; last[i]; i++) {
		if (last[i] == '\033') { /* no part of the line */
			for (from = ++i; last[i] && (i == from || last[i] < '@'); i++)
				;
			if (!last[i])
				break;
			continue;
		}
		here = last[i] == '\n' || last[i] == '\r' ? 0 : here + 1;
		most = here > most ? here : most;
	}
	return most;
}

RACK_TEST(live__keys_and_sizes)
{
	const char *const argv[] = { barline, "top", "-a", "-i", "0.2", NULL };
	struct winsize small = { .ws_row = 6, .ws_col = 20 };

	open_rack(2);
	open_screen(argv);
	wait_screen(ENTER);
	wait_screen("ORDERED/S");
	press("p");
	wait_screen("BEACONS/S");
	press("e");
	wait_screen("RING_USED");
	press("\033[C"); /* the next column */
	wait_screen("ADDRESS*");
	press("eh");
	wait_screen("sort by another column");
	press("hn");
	wait_screen("nodes of h1");
	press(" ");
	wait_screen("STOPPED");
	press(" n");
	wait_screen("nodes of h2");
	read_screen();
	screen.n = 0;
	CHECK(!ioctl(screen.master, TIOCSWINSZ, &small), "%s", strerror(errno));
	wait_screen("\033[J");
	/* a screen that was being drawn may come first */
	screen.n = 0;
	wait_screen("\033[J");
	CHECK(widest() <= 20, "%zu columns in a terminal of 20: %s", widest(), screen.text);
	press("q");
	wait_job('0');
	check_terminal();
	close_screen();
}

RACK_TEST(live__signals_give_the_terminal_back)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	const char *const argv[] = { barline, "top", "-a", "-i", "0.2", NULL };
	pid_t job;
	size_t i;

	open_rack(2);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		open_screen(argv);
		wait_screen("ORDERED/S");
		press(CTRL_Z);
		wait_job('T');
		check_terminal();
		screen.n = 0;
		CHECK(write(screen.say, "c", 1) == 1, "%s", strerror(errno));
		wait_screen(ENTER);
		wait_screen("ORDERED/S");
		press(" "); /* also a screen that is stopped ends */
		wait_screen("STOPPED");
		screen.n = 0;
		job = tcgetpgrp(screen.master);
		CHECK(job > 0 && !kill(job, signals[i]), "%s", strerror(errno));
		wait_job('0');
		check_terminal();
		close_screen();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live__silent_neighbour_is_named),
		cmocka_unit_test(live__nodes_vanish_and_come_anew),
		cmocka_unit_test(live__keys_and_sizes),
		cmocka_unit_test(live__signals_give_the_terminal_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
