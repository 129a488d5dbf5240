// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An arbiter that reads its file again, by SIGHUP and by `barline arbiter reload`, as a real
 * process, while hosts ask for timeslots. arbiter_world.h describes the world: it checks that each
 * slot is given once, and that all that was asked for is granted.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "tests/net/fastpass/arbiter_world.h"

#include "tests/net/barline_run.h"

#define FILE_NAME BL_RUN_DIR "/arbiter.yaml"
#define ROUNDS    5 /* by the command, and as many by SIGHUP */

static char barline[512];
static uint32_t rtt_us = 2000;
static const char *more = "";

static void write_file(const struct bl_arb_cfg *c)
{
	char text[INET6_ADDRSTRLEN];
	FILE *f = fopen(FILE_NAME, "w");
	uint32_t i;

	CHECK(f, "%s", strerror(errno));
	fprintf(f,
		"arbiters: [%s]\nsecret: \"00000000000012340000000000000000\"\npolicy: fair\n"
		"rtt_us: %u\nlead_us: 800\ndead_us: 20000\n%sendpoints:\n",
		bl_fp_addr_text((const uint8_t *)&c->listen[0], text), rtt_us, more);
	for (i = 0; i < HOSTS; i++)
		fprintf(f, "  - { name: h%u, addr: %s }\n", i,
			bl_fp_addr_text((const uint8_t *)&w.ep[i].addr, text));
	CHECK(!fclose(f), "%s", strerror(errno));
}

/* @hup: a SIGHUP has come before the process reads its first instruction. */
static pid_t start(bool hup)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hup) { /* both stay through execve(2) */
		sigset_t mask;

		sigemptyset(&mask);
		sigaddset(&mask, SIGHUP);
		sigprocmask(SIG_BLOCK, &mask, NULL);
		raise(SIGHUP);
	}
	execl(barline, barline, "arbiter", "run", FILE_NAME, NULL);
	_exit(127);
}

static void reload_says(int status, const char *text)
{
	const char *const argv[] = { barline, "-j", "arbiter", "reload", NULL };
	json_t *said;
	int rc = barline_run(&said, argv);
	char *words = said ? json_dumps(said, JSON_COMPACT) : NULL;

	CHECK(rc == status && words && strstr(words, text), "status %d, not \"%s\": %s", rc, text,
	      words ? words : "nothing");
	free(words);
	json_decref(said);
}

static void terminate(pid_t pid)
{
	int st;

	CHECK(!kill(pid, SIGTERM) && waitpid(pid, &st, 0) == pid, "%s", strerror(errno));
	CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "status %#x", st);
}

/*
 * First by the command alone, which has to say what it changes, and then by SIGHUP too. A SIGHUP,
 * also that of the start, may take effect at any time later, and read what was written for the
 * command that follows.
 */
RACK_TEST(reload__under_load)
{
	struct bl_arb_cfg c;
	char text[64];
	unsigned int k;
	pid_t pid;

	CHECK(barline_path(barline, sizeof(barline)), "barline's path");
	open_world(false);
	c = config(0);
	w.target = sa_of(&c.listen[0], BL_FCP_PORT, &w.target_len);
	write_file(&c);
	pid = start(false);
	wants(100);
	hosts_until_quiet();
	for (k = 0; k < ROUNDS; k++) {
		wants(50);
		snprintf(text, sizeof(text), "\"setting\":\"rtt_us\",\"was\":\"%u\"", rtt_us++);
		write_file(&c);
		reload_says(0, text);
		hosts_until_quiet();
	}
	/* what takes a restart, or is wrong, changes nothing, also not what could be applied */
	rtt_us = 2500;
	more = "quota: 1000\n";
	write_file(&c);
	reload_says(1, "\"error\":\"quota takes a restart (the allocator is made with it); "
		       "nothing");
	more = "late_us: soon\n";
	write_file(&c);
	reload_says(1, "late_us \\\"soon\\\" is no number");
	CHECK(!unlink(FILE_NAME), "%s", strerror(errno));
	reload_says(1, "cannot read " FILE_NAME);
	more = "fallback_ms: 4000\n";
	write_file(&c);
	reload_says(0, "\"setting\":\"rtt_us\",\"was\":\"2005\",\"now\":\"2500\"");
	wants(50);
	hosts_until_quiet();
	terminate(pid);

	pid = start(true);
	wants(50);
	hosts_until_quiet();
	for (k = 0; k < ROUNDS; k++) {
		wants(50);
		rtt_us++;
		write_file(&c);
		CHECK(!kill(pid, SIGHUP) && !kill(pid, SIGHUP), "%s", strerror(errno));
		reload_says(0, "\"reloaded\":true,\"error\":\"\"");
		hosts_until_quiet();
	}
	rtt_us += 500;
	more = "late_us: soon\n";
	write_file(&c);
	CHECK(!kill(pid, SIGHUP), "%s", strerror(errno));
	reload_says(1, "late_us \\\"soon\\\" is no number");
	rtt_us -= 500;
	more = "fallback_ms: 4000\n";
	write_file(&c);
	reload_says(0, "\"reloaded\":true,\"error\":\"\",\"changes\":[]");
	wants(50);
	hosts_until_quiet();
	terminate(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reload__under_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
