// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Controllers that read their files again, by SIGHUP and by `barline controller reload`: one that
 * leads and one in standby on the same store, as real processes, while applications talk. Nothing
 * is lost and nobody is announced; a file that is wrong or takes a restart changes nothing.
 */
#include "tests/net/loader/restart_talk.h"

#include "proto/pki.h"

#define CTLS   2
#define ROUNDS 4 /* by the command, and as many by SIGHUP */
#define PKI    BL_RUN_DIR "/pki"
#define SPARE  700 /* a node of the files that there is not; + the round */

static pid_t pid[CTLS];
static uint32_t round_no; /* the file of this round */
static uint32_t silence = 20000;
static const char *wrong;     /* a line that cannot be right */
static const char *tls;       /* name of the certificate */
static unsigned int left_out; /* 1 + index of a node that the file does not name; 0: none */
static unsigned int port = 61693;

static const char *file_of(unsigned int k)
{
	static char path[128];

	snprintf(path, sizeof(path), BL_RUN_DIR "/ctl%u.yaml", k);
	return path;
}

static void write_file(unsigned int k)
{
	FILE *f = fopen(file_of(k), "w");
	unsigned int i;

	CHECK(f, "%s: %s", file_of(k), strerror(errno));
	fprintf(f,
		"listen: 127.0.0.1:%u\nsqlite: " BL_RUN_DIR "/ctl.db\nanswer_ms: %u\n"
		"settle_us: %u\nstuck_ms: 20000\nsilence_ms: %u\nnodes:\n",
		port + k, 20000 + round_no, 5000 + round_no, silence);
	fprintf(f, "  - { id: %u, name: spare%u }\n", SPARE + round_no, round_no);
	for (i = 0; i < rack.lab.nnodes; i++)
		if (i + 1 != left_out)
			fprintf(f, "  - { id: %u, name: %s }\n", lab_node_id(&rack.lab.nodes[i]),
				rack.lab.nodes[i].name);
	if (tls)
		fprintf(f,
			"tls: { ca: " PKI "/ca.pem, cert: " PKI "/%s.pem, key: " PKI "/%s.key }\n",
			tls, tls);
	fprintf(f, "%s", wrong ? wrong : "");
	CHECK(!fclose(f), "%s", file_of(k));
}

/* @hup: a SIGHUP has come before the process reads its first instruction. */
static void start(unsigned int k, bool hup)
{
	char program[512];
	pid_t parent = getpid();
	sigset_t mask;

	write_file(k);
	CHECK(barline_path(program, sizeof(program)), "where am I?");
	fflush(NULL);
	pid[k] = fork();
	CHECK(pid[k] >= 0, "%s", strerror(errno));
	if (pid[k])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (hup) { /* both stay through execve(2) */
		sigemptyset(&mask);
		sigaddset(&mask, SIGHUP);
		sigprocmask(SIG_BLOCK, &mask, NULL);
		raise(SIGHUP);
	}
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	execl(program, "barline", "controller", "run", file_of(k), NULL);
	_exit(127);
}

static void end(unsigned int k)
{
	int st;

	CHECK(!kill(pid[k], SIGTERM) && waitpid(pid[k], &st, 0) == pid[k], "%s", strerror(errno));
	CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "status %#x", st);
	pid[k] = 0;
}

static bool says(unsigned int k, const char *what)
{
	return strstr(ctl_ask(pid[k]), what) != NULL;
}

/* Whether controller @k knows the node of the file of round @n, and not that of the round before.
 */
static bool has_round(unsigned int k, uint32_t n)
{
	char is[32], was[32];

	snprintf(is, sizeof(is), "\"name\":\"spare%u\"", n);
	snprintf(was, sizeof(was), "\"name\":\"spare%u\"", n - 1);
	return says(k, is) && !says(k, was);
}

/* Runs `barline controller reload`. Returns its exit status; the caller frees *@said. */
static int reload(json_t **said)
{
	char path[512];
	const char *const argv[] = { path, "-j", "controller", "reload", NULL };

	CHECK(barline_path(path, sizeof(path)), "where am I?");
	return barline_run(said, argv);
}

/* Whether the answer of each controller has @text. */
static bool all_answer(const json_t *said, unsigned int n, const char *text)
{
	json_t *list = json_object_get(said, "controllers"), *one;
	bool all = json_array_size(list) == n;
	size_t i;

	json_array_foreach(list, i, one)
	{
		char *words = json_dumps(one, JSON_COMPACT);

		all &= words && strstr(words, text);
		free(words);
	}
	return all;
}

static void reload_says(unsigned int n, int status, const char *text)
{
	json_t *said;
	int rc = reload(&said);

	CHECK(rc == status && all_answer(said, n, text), "status %d, not \"%s\": %s", rc, text,
	      said ? json_dumps(said, 0) : "nothing");
	json_decref(said);
}

static void name_both(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	tweak(cfg, n);
	cfg->ctl.n = 2;
	snprintf(cfg->ctl.addr[1], sizeof(cfg->ctl.addr[1]), "127.0.0.1:61694");
}

static void write_both(void)
{
	write_file(0);
	write_file(1);
}

static void open_controlled(void)
{
	struct bl_err err;

	rack_last_words = say_all;
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = name_both;
	round_no = 1;
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	/* The lab's nodes are named by the file, which is written when they are known. */
	daemons_open();
	start(0, false);
	ctl = pid[0];
	UNTIL("waits for the leader", says(0, "\"state\":\"leader\""));
	start(1, false);
	UNTIL("waits for the standby", says(1, "\"state\":\"standby\""));
	UNTIL("waits for all nodes", all_ok());
}

/* Waits until both have read the file of this round. */
static void reloaded(void)
{
	UNTIL("reloads the leader", has_round(0, round_no));
	UNTIL("reloads the standby", has_round(1, round_no));
	CHECK(says(0, "\"state\":\"leader\"") && says(1, "\"state\":\"standby\""), "a reload "
										   "changes who "
										   "leads");
}

/*
 * Both controllers are reloaded again and again, one with the lead and one without, by the command
 * and then each by two SIGHUPs. Then the one that was in standby leads, with what it has read.
 *
 * A SIGHUP, also that of the start, may take effect at any time later, and read the file of the
 * next round before the command of that round. So there is none before the rounds in which the
 * command has to say what it changes.
 */
RACK_TEST(reload__under_load)
{
	char text[64];
	unsigned int k;

	open_controlled();
	talk();
	goes_on("begins to talk");
	for (round_no = 2; round_no < 2 + ROUNDS; round_no++) {
		write_both();
		snprintf(text, sizeof(text), "\"setting\":\"settle_us\",\"was\":\"%u\"",
			 5000 + round_no - 1);
		reload_says(CTLS, 0, text);
		reloaded();
	}
	round_no--;
	/* a node that takes part stays when the file names it no more: it has a record */
	left_out = 1 + rack_host(0);
	write_both();
	reload_says(CTLS, 0, "\"now\":\"absent\"");
	UNTIL("waits for all nodes", all_ok());
	CHECK(says(0, "\"admitted\":\"command\""), "%s", ask());
	goes_on("goes on without a node in the file");
	left_out = 0;
	write_both();
	reload_says(CTLS, 0, "\"was\":\"absent\"");
	end(1);
	start(1, true);
	UNTIL("waits for the next standby", says(1, "\"state\":\"standby\""));
	CHECK(has_round(1, round_no), "SIGHUP during the start");
	for (round_no++; round_no < 2 + 2 * ROUNDS; round_no++) {
		write_both();
		for (k = 0; k < CTLS; k++)
			CHECK(!kill(pid[k], SIGHUP) && !kill(pid[k], SIGHUP), "%s",
			      strerror(errno));
		reloaded();
	}
	round_no--;
	reload_says(CTLS, 0, "\"reloaded\":true,\"error\":\"\",\"changes\":[]");
	goes_on("goes on after reloads");
	end(0);
	ctl = pid[1];
	UNTIL("waits for the next leader", says(1, "\"state\":\"leader\""));
	UNTIL("waits for all nodes", all_ok());
	CHECK(has_round(1, round_no), "%s", ask());
	goes_on("goes on with the next leader");
	judge();
	daemons_end();
}

/* As UNTIL(), in a case without nodes. */
#define ALONE(what, cond)                                              \
	do {                                                           \
		uint64_t until_ = t_mono() + WAIT_NS;                  \
		while (!(cond)) {                                      \
			CHECK(t_mono() < until_, "it never %s", what); \
			usleep(1000);                                  \
		}                                                      \
	} while (0)

/* What is wrong or takes a restart changes nothing, also not what could have been applied. */
RACK_TEST(reload__all_or_nothing)
{
	struct bl_err err;

	round_no = 1;
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	start(0, false);
	ctl = pid[0];
	ALONE("leads", says(0, "\"state\":\"leader\""));
	round_no = 2;
	port = 61793;
	write_file(0);
	reload_says(1, 1, "\"error\":\"listen, and other settings, takes a restart");
	CHECK(has_round(0, 1), "%s", ask());
	port = 61693;
	wrong = "grace_ms: soon\n";
	write_file(0);
	reload_says(1, 1, "grace_ms \\\"soon\\\" is no number");
	CHECK(!kill(pid[0], SIGHUP), "%s", strerror(errno));
	wrong = "tls: { ca: " PKI "/none.pem, cert: " PKI "/none.pem, key: " PKI "/none.key }\n";
	write_file(0);
	reload_says(1, 1, "cannot use " PKI "/none.pem for TLS");
	/* a file that a reader would wait for */
	CHECK(!unlink(file_of(0)) && !mkfifo(file_of(0), 0600), "%s", strerror(errno));
	reload_says(1, 1, "is not a regular file");
	CHECK(!unlink(file_of(0)), "%s", strerror(errno));
	reload_says(1, 1, "cannot read");
	CHECK(has_round(0, 1) && says(0, "\"state\":\"leader\""), "%s", ask());
	/* one that is stopped is not waited for, and does it when it goes on */
	wrong = NULL;
	write_file(0);
	CHECK(!kill(pid[0], SIGSTOP), "%s", strerror(errno));
	reload_says(0, 1, "");
	CHECK(!kill(pid[0], SIGCONT), "%s", strerror(errno));
	ALONE("reloads when it continues", has_round(0, 2));
	/* TLS is on or off for all sessions */
	CHECK(!bl_pki_init(PKI, "reload", 10, &err), "%s", err.text);
	CHECK(!bl_pki_issue(
		      PKI,
		      &(struct bl_pki_req){ .name = "c1", .role = BL_IDENT_CONTROLLER, .days = 10 },
		      &err),
	      "%s", err.text);
	tls = "c1";
	write_file(0);
	reload_says(1, 1, "\"error\":\"tls takes a restart");
	end(0);
}

/* Connects and says nothing. Returns the socket. */
static int connect_silently(void)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET,
					.sin_port = htons(61693),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (const struct sockaddr *)&sa, sizeof(sa)), "%s",
	      strerror(errno));
	return fd;
}

static bool closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Limits are those of the new file at once; certificates for the sessions that follow. */
RACK_TEST(reload__limits_and_certificates)
{
	const char *const names[] = { "c1", "c2" };
	struct bl_err err;
	unsigned int k;
	int fd;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	CHECK(!bl_pki_init(PKI, "reload", 10, &err), "%s", err.text);
	for (k = 0; k < 2; k++) {
		const struct bl_pki_req q = { .name = names[k],
					      .role = BL_IDENT_CONTROLLER,
					      .days = 10 };

		CHECK(!bl_pki_issue(PKI, &q, &err), "%s", err.text);
	}
	silence = 3600000;
	tls = "c1";
	start(0, false);
	ctl = pid[0];
	ALONE("leads", says(0, "\"state\":\"leader\""));
	fd = connect_silently();
	ALONE("takes the session up", says(0, "\"sessions\":1,\"counts\""));
	CHECK(!closed(fd), "the session has ended before the limit");
	silence = 300;
	tls = "c2";
	write_file(0);
	reload_says(1, 0, "{\"what\":\"changed\",\"setting\":\"tls.cert\"");
	ALONE("closes the silent session", closed(fd));
	ALONE("counts it", says(0, "\"silent\":1"));
	close(fd);
	end(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reload__under_load),
		cmocka_unit_test(reload__all_or_nothing),
		cmocka_unit_test(reload__limits_and_certificates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
