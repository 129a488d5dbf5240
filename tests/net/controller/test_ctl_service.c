// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A controller as its operators see it, with its filter of system calls: its log while its port is
 * scanned, the sockets of killed controllers, and the messages of a controller that waits for the
 * store of another one. There are no nodes.
 */
#include "tests/net/rack.h"

#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/sandbox.h"
#include "controller/server.h"

#define CTLS   3
#define WAIT_S 60
#define SCANS  300
#define LOG    BL_RUN_DIR "/log"

static pid_t ctl[CTLS];
static uint32_t silent_ms = 600;

static void start(unsigned int k, const char *sqlite)
{
	struct bl_ctl_cfg cfg = { .silence_ms = silent_ms };
	pid_t parent = getpid();
	struct bl_ctl *c;
	struct bl_err err;
	int fd;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	snprintf(cfg.listen, sizeof(cfg.listen), "127.0.0.1:%u", 61693 + k);
	snprintf(cfg.sqlite, sizeof(cfg.sqlite), "%s", sqlite);
	fflush(NULL);
	ctl[k] = fork();
	CHECK(ctl[k] >= 0, "%s", strerror(errno));
	if (ctl[k])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fd = open(LOG, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDERR_FILENO);
	bl_log_level = 6;
	if (!bl_ctl_new(&c, &cfg, &err) && !bl_sandbox(BL_SERVICE_CONTROLLER, &err))
		bl_ctl_run(c, &err);
	fprintf(stderr, "controller %u: %s\n", k, err.text);
	_exit(1);
}

static void end(unsigned int k)
{
	CHECK(!kill(ctl[k], SIGKILL) && waitpid(ctl[k], NULL, 0) == ctl[k], "%s", strerror(errno));
}

static const char *door(unsigned int k)
{
	static char path[128];

	snprintf(path, sizeof(path), BL_RUN_DIR BL_CTL_STATUS, (unsigned long long)bl_netns_ino(),
		 (int)ctl[k]);
	return path;
}

/* Returns the status output, which the caller frees; NULL: none. */
static json_t *ask(unsigned int k)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *v = NULL;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%.107s", door(k));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		shutdown(fd, SHUT_WR);
		v = json_loadfd(fd, 0, NULL);
	}
	close(fd);
	return v;
}

static bool says(unsigned int k, const char *key, const char *part)
{
	json_t *v = ask(k);
	const char *text = json_string_value(json_object_get(v, key));
	bool yes = text && (*part ? strstr(text, part) != NULL : !*text);

	json_decref(v);
	return yes;
}

static json_int_t number(unsigned int k, const char *key)
{
	json_t *v = ask(k);
	json_int_t n = json_integer_value(json_object_get(v, key));

	json_decref(v);
	return n;
}

#define UNTIL(cond)                                                   \
	do {                                                          \
		uint64_t until_ = t_mono() + WAIT_S * 1000000000ULL;  \
		while (!(cond)) {                                     \
			CHECK(t_mono() < until_, "never: %s", #cond); \
			usleep(10000);                                \
		}                                                     \
	} while (0)

/* Returns whether it reports that it has waited for the store for @seconds or longer. */
static bool waited(unsigned int k, unsigned int seconds)
{
	json_t *v = ask(k);
	const char *text = json_string_value(json_object_get(v, "trouble"));
	const char *at = text ? strstr(text, "has waited for it for ") : NULL;
	unsigned int n = 0;
	bool yes = at && sscanf(at, "has waited for it for %u s", &n) == 1 && n >= seconds;

	json_decref(v);
	return yes;
}

static bool there(unsigned int k)
{
	return !access(door(k), F_OK);
}

/*
 * Runs the `barline` that was built with the tests. Returns its exit status; the output is in
 * BL_RUN_DIR/said.
 */
static int barline(const char *args)
{
	char self[256], cmd[600], *at;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int k, st;

	CHECK(n > 0, "%s", strerror(errno));
	self[n] = 0;
	for (k = 0; k < 3; k++) {
		at = strrchr(self, '/');
		CHECK(at, "%s", self);
		*at = 0;
	}
	snprintf(cmd, sizeof(cmd), "%s/barline %s >" BL_RUN_DIR "/said 2>&1", self, args);
	st = system(cmd);
	CHECK(WIFEXITED(st), "%s", cmd);
	return WEXITSTATUS(st);
}

static bool said(const char *what)
{
	char text[4096] = "";
	FILE *f = fopen(BL_RUN_DIR "/said", "re");

	CHECK(f, "%s", strerror(errno));
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return strstr(text, what) != NULL;
}

/* ---- the log ---- */

static void scan(const uint8_t *bytes, size_t len)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(61693),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char c;

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s", strerror(errno));
	CHECK(write(fd, bytes, len) == (ssize_t)len, "%s", strerror(errno));
	CHECK(read(fd, &c, 1) <= 0, "it answers");
	close(fd);
}

/*
 * Returns the number of sessions in the log; *@lines receives the number of its lines about
 * sessions.
 */
static unsigned int told(unsigned int *lines)
{
	FILE *f = fopen(LOG, "re");
	unsigned int n = 0, more;
	char line[1024];

	*lines = 0;
	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "controller: ");

		if (!at || !strstr(line, "127.0.0.1:"))
			continue;
		if (strstr(at, "session with "))
			n++;
		else if (sscanf(at, "controller: %u more sessions", &more) == 1)
			n += more;
		else
			continue;
		++*lines;
	}
	if (f)
		fclose(f);
	return n;
}

/*
 * The first session is logged at once and those that follow are logged together; none is forgotten,
 * and there is about one line a second.
 */
RACK_TEST(log__scanned_port)
{
	/* an invalid length; no protobuf; a message before HELLO */
	static const uint8_t bad[3][7] = { { 0x7f, 0xff, 0xff, 0xff, 1 },
					   { 0, 0, 0, 3, 0xff, 0xff, 0xff },
					   { 0, 0, 0, 2, 0x12, 0 } };
	unsigned int i, lines;
	uint64_t begin;

	silent_ms = 5000; /* a scanner is refused, and does not count as silent for lack of a CPU */
	start(0, BL_RUN_DIR "/a.db");
	UNTIL(says(0, "state", "leader"));
	begin = t_mono();
	scan(bad[0], 5);
	UNTIL(told(&lines) == 1 && lines == 1);
	for (i = 1; i < SCANS; i++)
		scan(bad[i % 3], i % 3 == 1 ? 7 : i % 3 ? 6 : 5);
	UNTIL(told(&lines) == SCANS);
	CHECK(lines <= 3 + (t_mono() - begin) / 1000000000, "%u lines in %" PRIu64 " ms", lines,
	      (t_mono() - begin) / 1000000);
	CHECK(number(0, "refused") == SCANS, "%d", (int)number(0, "refused"));
	CHECK(!barline("show controller") && said("REFUSED") && said(" 300 "), "show controller");
	fprintf(stderr, "  %u sessions in %u lines, %" PRIu64 " ms\n", SCANS, lines,
		(t_mono() - begin) / 1000000);
}

/* ---- sockets ---- */

/*
 * A killed controller leaves its socket. The next controller, `show` and `clean` remove it; the
 * socket of a stopped controller stays.
 */
RACK_TEST(doors__of_the_killed)
{
	start(0, BL_RUN_DIR "/a.db");
	UNTIL(says(0, "state", "leader"));
	end(0);
	CHECK(there(0), "it took its socket with it: this proves nothing");
	start(1, BL_RUN_DIR "/b.db");
	UNTIL(says(1, "state", "leader"));
	CHECK(!there(0), "the next controller leaves it");
	end(1);
	CHECK(there(1), "it took its socket with it: this proves nothing");
	CHECK(barline("show controller") == 1 && said("no controller runs"), "show controller");
	CHECK(!there(1), "show leaves it");
	start(2, BL_RUN_DIR "/c.db");
	UNTIL(says(2, "state", "leader"));
	kill(ctl[2], SIGSTOP);
	CHECK(!barline("clean") && said("nothing to clean") && there(2), "clean took the socket of "
									 "one that lives");
	end(2);
	CHECK(!barline("clean -d") && said(door(2)) && there(2), "clean -d");
	CHECK(!barline("clean") && said(door(2)) && !there(2), "clean leaves it");
}

/* ---- two controllers on one file ---- */

/*
 * A leader that stands still excludes the other controller, which reports who leads, and for how
 * long it has waited.
 */
RACK_TEST(standby__says_who_holds_the_store)
{
	char who[64];
	json_t *v;

	start(0, BL_RUN_DIR "/a.db");
	UNTIL(says(0, "state", "leader"));
	CHECK(says(0, "trouble", ""), "the leader is in trouble");
	start(1, BL_RUN_DIR "/a.db");
	snprintf(who, sizeof(who), "process %d (", (int)ctl[0]);
	UNTIL(says(1, "trouble", who));
	CHECK(says(1, "state", "standby") && says(1, "trouble", "/a.db") &&
		      !says(1, "trouble", "stopped"),
	      "the standby");
	kill(ctl[0], SIGSTOP);
	UNTIL(says(1, "trouble", "which is stopped"));
	UNTIL(waited(1, 2));
	/* Without a CPU for 3 s, the standby does not answer, and the command does not know. */
	UNTIL(barline("show failures") == 1 && said(who));
	end(0);
	UNTIL(says(1, "state", "leader"));
	CHECK(says(1, "trouble", ""), "it is in trouble still");
	/* once more from the beginning */
	start(2, BL_RUN_DIR "/a.db");
	snprintf(who, sizeof(who), "process %d (", (int)ctl[1]);
	UNTIL(says(2, "trouble", who));
	v = ask(2);
	fprintf(stderr, "  %s\n", json_string_value(json_object_get(v, "trouble")));
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__scanned_port),
		cmocka_unit_test(doors__of_the_killed),
		cmocka_unit_test(standby__says_who_holds_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
