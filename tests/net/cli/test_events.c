// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline events -f` as a process that follows real daemons and writers: rotations, restarts, a
 * line that is written in two parts, a file of another user; and events in the real journal: a
 * systemd-journald of the test's own, in its mount namespace, whose entries are compared with the
 * lines of `barline events`.
 */
#include "base/event.h"
#include "tests/command.h"
#include "tests/net/loader/restart.h"
#include "tests/net/run_beside.h"

#include <systemd/sd-journal.h>

static char barline[512];

/* ---- a follower ---- */

static struct run follower;

static void append(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
	close(fd);
}

#define LINE(seq, name)                                                    \
	"{\"schema\":1,\"seq\":" #seq ",\"unix_ns\":" #seq ",\"event\":\"" \
	"reloaded\",\"node\":\"" name "\",\"text\":\"y\"}\n"

/* Returns how often the follower has printed @what. */
static unsigned int followed(const char *what)
{
	const char *at = text_of(follower.out);
	unsigned int n = 0;

	for (; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* Starts it, and waits until it follows: what comes from now on is printed. */
static void follow(const char *last)
{
	const char *const argv[] = { barline, "events", "-f", "-j", "-N", last, NULL };

	CHECK(barline_path(barline, sizeof(barline)), "where am I?");
	follower = start_on(RUN_HERE, argv, "");
	UNTIL("waits until the command follows",
	      (append(BL_RUN_DIR "/host-9-events.jsonl", LINE(9, "begin")), followed("begin")));
}

static void unfollow(void)
{
	CHECK(!kill(follower.pid, SIGTERM), "%s", strerror(errno));
	reap(&follower, "events -f");
}

#define FILE_PATH BL_RUN_DIR "/host-1-events.jsonl"
#define BURST     500
#define BURSTS    6 /* some 3 MB of lines, so there are two rotations at least */

static char seen[BURST * BURSTS + 1];

/* Notes the numbers of the lines that were printed since @*at. Returns the greatest so far. */
static unsigned int take_numbers(off_t *at, unsigned int greatest)
{
	static char buf[4 << 20];
	ssize_t n = pread(follower.out, buf, sizeof(buf) - 1, *at);
	char *line, *end;
	unsigned int seq = 0;
	int found;

	CHECK(n >= 0, "%s", strerror(errno));
	buf[n] = '\0';
	for (line = buf; (end = strchr(line, '\n')); line = end + 1) {
		const char *key = strstr(line, "\"seq\":");

		if (!strstr(line, "\"node\":\"t1\"") || strstr(line, "\"node\":\"t1\"") > end)
			continue;
		found = key && key < end ? sscanf(key + 6, "%u", &seq) : 0;
		CHECK(found == 1 && seq <= BURST * BURSTS, "%.300s", line);
		CHECK(!seen[seq], "line %u is printed twice", seq);
		seen[seq] = 1;
		greatest = seq > greatest ? seq : greatest;
	}
	*at += line - buf;
	return greatest;
}

/* Every line of a file that is rotated again and again is printed once. */
RACK_TEST(follow__over_rotations)
{
	char text[900];
	unsigned int i, k, greatest = 0;
	struct bl_err err;
	off_t at = 0;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	bl_log_level = 1; /* the sentences go into the file alone */
	CHECK(!bl_event_file_open("t1", "host", FILE_PATH), "%s", FILE_PATH);
	follow("0");
	for (i = 0; i < BURSTS; i++) {
		uint64_t end = t_mono() + WAIT_NS;

		for (k = 0; k < BURST; k++)
			bl_event(BL_EVENT(RELOADED, INFO, "t1", .reason = "test"), "%s", text);
		do {
			CHECK(t_mono() < end, "line %u does not come", (i + 1) * BURST);
			rack_serve(5);
			greatest = take_numbers(&at, greatest);
		} while (greatest < (i + 1) * BURST);
	}
	unfollow();
	take_numbers(&at, greatest);
	for (k = 1; k <= BURST * BURSTS; k++)
		CHECK(seen[k], "line %u is missing", k);
	CHECK(!access(FILE_PATH ".1", F_OK), "there was no rotation");
}

/* A line is printed when it is whole, and that of another user never. */
RACK_TEST(follow__torn_and_foreign)
{
	static const char whole[] = LINE(1, "torn");
	char half[sizeof(whole)];
	struct bl_err err;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	follow("0");
	append(BL_RUN_DIR "/host-2-events.jsonl", "");
	CHECK(!chown(BL_RUN_DIR "/host-2-events.jsonl", 65534, 65534), "%s", strerror(errno));
	append(BL_RUN_DIR "/host-2-events.jsonl", LINE(1, "foreign"));
	snprintf(half, sizeof(half), "%.*s", (int)sizeof(whole) / 2, whole);
	append(FILE_PATH, half);
	append(BL_RUN_DIR "/host-3-events.jsonl", LINE(1, "mark-one"));
	UNTIL("waits for the first mark", followed("mark-one"));
	CHECK(!followed("torn"), "half a line is printed");
	append(FILE_PATH, whole + strlen(half));
	append(BL_RUN_DIR "/host-3-events.jsonl", LINE(2, "mark-two"));
	UNTIL("waits for the second mark", followed("mark-two"));
	UNTIL("waits for the whole line", followed("torn") == 1);
	CHECK(!followed("foreign"), "a line of another user is printed");
	unfollow();
}

/* Restarts, and a node that is detached and made again. */
RACK_TEST(follow__over_restarts)
{
	struct bl_err err;
	unsigned int h;

	open_rack(2);
	h = rack_host(0);
	follow("1000000");
	UNTIL("waits for what was before", followed("\"daemon_started\"") == 3);
	daemon_stop(h, SIGTERM);
	daemon_start(h);
	UNTIL("waits for the restart",
	      followed("\"daemon_taken_over\"") == 1 && followed("\"caretaker_ended\"") == 1);
	CHECK(followed("\"daemon_stopped\"") == 1 && followed("\"caretaker_begun\"") == 1, "the "
											   "stop "
											   "of the "
											   "daemo"
											   "n");
	daemons_end();
	daemon_start(h); /* its file is another one */
	UNTIL("waits for the new node", followed("\"daemon_started\"") == 4);
	CHECK(followed("\"daemon_taken_over\"") == 1, "an event is printed twice");
	unfollow();
	daemon_stop(h, SIGKILL);
	CHECK(!bl_node_detach(BL_ROLE_HOST, LAB_NETNS_DIR "/h1", &err), "%s", err.text);
}

/* ---- the journal ---- */

static pid_t journald;

/* Starts a journald whose sockets and files are seen by this mount namespace only. */
static void journal_open(void)
{
	static const char conf[] = "[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\n"
				   "ForwardToSyslog=no\nForwardToWall=no\nRateLimitBurst=0\n";
	const char *const folders[] = { "/run/systemd", "/run/systemd/journal", "/run/log" };
	unsigned int i;

	for (i = 0; i < 3; i++)
		CHECK(!mkdir(folders[i], 0755) || errno == EEXIST, "%s: %s", folders[i],
		      strerror(errno));
	for (i = 1; i < 3; i++)
		CHECK(!mount("tmpfs", folders[i], "tmpfs", 0, "mode=0755"), "%s: %s", folders[i],
		      strerror(errno));
	CHECK(!mkdir("/run/log/journal", 0755), "%s", strerror(errno));
	append(BL_RUN_DIR "/journald.conf", conf);
	append(BL_RUN_DIR "/machine-id", "0123456789abcdef0123456789abcdef\n");
	CHECK(!mount(BL_RUN_DIR "/journald.conf", "/etc/systemd/journald.conf", NULL, MS_BIND,
		     NULL) &&
		      !mount(BL_RUN_DIR "/machine-id", "/etc/machine-id", NULL, MS_BIND, NULL),
	      "%s; systemd has to be installed", strerror(errno));
	fflush(NULL);
	journald = fork();
	if (!journald) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/lib/systemd/systemd-journald", "systemd-journald", NULL);
		_exit(127);
	}
	/* Its socket is refused until it listens, which is after the file is there. */
	for (i = 0; (dm_journal = sd_journal_stream_fd("barlined", 6, 1)) < 0; i++) {
		CHECK(!waitpid(journald, NULL, WNOHANG) && i < 6000, "journald does not run: %s",
		      strerror(-dm_journal));
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
}

/* Returns the objects that the command with status *@st has printed, one in each line of @text. */
static json_t *objects_of(char *text, const int *st)
{
	json_t *all = json_array(), *one;
	char *line, *save;

	CHECK(text && !*st, "wait status %#x: %s", *st, text ? text : "");
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		one = json_loads(line, 0, NULL);
		CHECK(json_is_object(one), "%s", line);
		json_array_append_new(all, one);
	}
	free(text);
	return all;
}

/* Returns the entries of the journal that match @match, as an array. */
static json_t *journal(const char *match)
{
	int st;

	return objects_of(command_output(&st,
					 "journalctl --sync && journalctl -q -D /run/log/journal "
					 "-o json --all '%s'",
					 match),
			  &st);
}

/* Returns what `barline events` has of node @name, as an array. */
static json_t *events_of(const char *name)
{
	int st;

	return objects_of(command_output(&st, "%s events -j --node %s", barline, name), &st);
}

/* Compares a field of an entry with that of a line; a field that is missing has to miss in both. */
static void same(json_t *entry, const char *journal_key, json_t *line, const char *key)
{
	json_t *v = json_object_get(line, key);
	const char *e = json_string_value(json_object_get(entry, journal_key));
	char number[32];
	const char *l = json_string_value(v);

	if (json_is_integer(v)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		l = number;
	}
	CHECK(!e == !l && (!e || !strcmp(e, l)), "%s: %s of the journal is %s, of the file %s",
	      json_string_value(json_object_get(line, "text")), journal_key, e ? e : "missing",
	      l ? l : "missing");
}

static void compare_node(unsigned int i)
{
	const char *name = rack.lab.nodes[i].name;
	char match[64];
	json_t *entries, *lines, *e, *l;
	const char *level;
	size_t k;

	snprintf(match, sizeof(match), "BARLINE_NODE=%s", name);
	lines = events_of(name);
	entries = journal(match);
	CHECK(json_array_size(lines) >= 3 && json_array_size(lines) == json_array_size(entries),
	      "%s: %zu entries, %zu lines", name, json_array_size(entries), json_array_size(lines));
	json_array_foreach(lines, k, l)
	{
		e = json_array_get(entries, k);
		same(e, "BARLINE_EVENT", l, "event");
		same(e, "BARLINE_ROLE", l, "role");
		same(e, "BARLINE_NODE", l, "node");
		same(e, "MESSAGE", l, "text");
#define SAME(member, json, journal) same(e, journal, l, json);
		BL_EVENT_TEXTS(SAME)
		BL_EVENT_NUMBERS(SAME)
#undef SAME
		level = json_string_value(json_object_get(l, "level"));
		CHECK(!strcmp(json_string_value(json_object_get(e, "PRIORITY")),
			      !strcmp(level, "error")     ? "3"
			      : !strcmp(level, "warning") ? "4"
							  : "6"),
		      "%s", level);
	}
	json_decref(lines);
	json_decref(entries);
}

/* A process whose name is meant to look like a field of its own. */
static void hostile_endpoint(unsigned int i)
{
	struct bl_endpoint *ep;
	int home = rack_away(i);

	CHECK(!prctl(PR_SET_NAME, "x\nPRIORITY=0"), "%s", strerror(errno));
	CHECK(!bl_init(&ep, &(struct bl_options){ .port = 61707 }), "%s", bl_strerror(NULL));
	rack_back(home);
	bl_exit(ep);
}

static bool left(const char *name)
{
	json_t *all = events_of(name), *l;
	bool found = false;
	size_t k;

	json_array_foreach(all, k, l)
		found |= !strcmp(json_string_value(json_object_get(l, "event")), "endpoint_left");
	json_decref(all);
	return found;
}

RACK_TEST(journal__has_the_fields)
{
	unsigned int h;
	int st;

	CHECK(barline_path(barline, sizeof(barline)), "where am I?");
	journal_open();
	open_rack(2);
	h = rack_host(0);
	hostile_endpoint(h);
	UNTIL("waits for the end of the endpoint", left("h1"));
	daemon_stop(h, SIGTERM);
	daemon_start(h);
	UNTIL("waits for all nodes", all_ok());
	daemon_stop(h, SIGKILL); /* nothing is added to what is compared */
	compare_node(h);
	daemon_start(h);
	daemons_end();
	CHECK(!kill(journald, SIGTERM) && waitpid(journald, &st, 0) == journald, "%s",
	      strerror(errno));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follow__over_rotations),
		cmocka_unit_test(follow__torn_and_foreign),
		cmocka_unit_test(follow__over_restarts),
		cmocka_unit_test(journal__has_the_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
