// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of examples/, as their users run them, in a rack with a controller. */
#include "tests/net/apps/program.h"
#include "tests/net/loader/restart.h"

static struct program p[4];
static char addr[4][64];

static bool end_of(unsigned int i, int want)
{
	int status;

	if (!program_ended(&p[i], &status))
		return false;
	program_said(&p[i], "");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want, "program %u: status %#x: %s", i,
	      status, p[i].text);
	return true;
}

static void open_three(void)
{
	unsigned int i;

	open_rack(HOSTS);
	for (i = 0; i < 4; i++)
		program_addr(i % HOSTS, 61700 + i / HOSTS, addr[i]);
}

/* Three replicas apply additions and multiplications in one order. */
RACK_TEST(counter__same_value)
{
	char value[3][64];
	unsigned int i;

	open_three();
	for (i = 0; i < 3; i++)
		program_start(&p[i], i,
			      (const char *[]){ "examples/counter", "-p", "61700", "-n", "200",
						addr[0], addr[1], addr[2], NULL });
	for (i = 0; i < 3; i++) {
		UNTIL("waits for the counters", end_of(i, 0));
		snprintf(value[i], sizeof(value[i]), "%.60s", p[i].text);
		CHECK(atoll(value[i]) && !strcmp(value[i], value[0]), "%s and %s", value[0],
		      value[i]);
	}
	daemons_end();
}

/* Lines that are typed at three places at once are printed in one order. */
RACK_TEST(chat__same_order)
{
	unsigned int i, k;

	open_three();
	for (i = 0; i < 3; i++)
		program_start(&p[i], i,
			      (const char *[]){ "examples/chat", "-p", "61700", addr[0], addr[1],
						addr[2], NULL });
	/* Until all are there: a first line may be lost, and is reported. */
	for (i = 0; i < 3; i++)
		UNTIL("waits for the endpoints", (program_say(&p[0], "hello\n"), rack_serve(20),
						  program_said(&p[i], "hello")));
	for (k = 0; k < 50; k++) {
		char line[32];

		for (i = 0; i < 3; i++) {
			snprintf(line, sizeof(line), "line %u\n", k);
			program_say(&p[i], line);
		}
		rack_serve(1);
	}
	for (i = 0; i < 3; i++) {
		UNTIL("waits for the lines", program_said(&p[i], "line ") == 150);
	}
	for (i = 1; i < 3; i++) {
		const char *a = p[0].text, *b = p[i].text;

		/* Lines with text, without the hellos that one of them may have missed. */
		while ((a = strstr(a, " line ")) && (b = strstr(b, " line "))) {
			/* With the end of the sender's address, which tells the senders apart. */
			CHECK(!strncmp(a - 8, b - 8, 8 + strcspn(a, "\n")), "%.40s and %.40s",
			      a - 8, b - 8);
			a++, b++;
		}
	}
	for (i = 0; i < 3; i++) {
		close(p[i].in);
		UNTIL("waits for the end", end_of(i, 0));
	}
	daemons_end();
}

static void mark(unsigned int at, const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "!mark%s\n", name);
	program_say(&p[at], line);
}

static void same_mark(const char *name, unsigned int who)
{
	char what[64], line[2][256];
	unsigned int i, first = 4;

	snprintf(what, sizeof(what), "mark %s:", name);
	for (i = 0; i < 4; i++) {
		if (!(who >> i & 1))
			continue;
		UNTIL("waits for the mark", program_line(&p[i], what, line[first < 4]));
		fprintf(stderr, "  %u: %s\n", i, line[first < 4]);
		CHECK(first == 4 || !strcmp(line[0], line[1]), "replicas differ");
		first = first < 4 ? first : i;
	}
}

static bool has_entries(unsigned int i)
{
	char line[256];

	return program_line(&p[i], "joined with", line) != NULL;
}

/*
 * Three replicas append, a fourth one joins meanwhile, and one of the three is killed. All that are
 * left have the same log, which the fourth one has gone on with.
 */
RACK_TEST(log__join_and_kill)
{
	unsigned int i;
	int status;

	open_three();
	for (i = 0; i < 3; i++)
		program_start(&p[i], i,
			      (const char *[]){ "examples/log", "-p", "61700", "-n", "100000",
						addr[0], addr[1], addr[2], NULL });
	mark(0, " begin");
	same_mark(" begin", 0x7);
	program_start(&p[3], 0,
		      (const char *[]){ "examples/log", "-p", "61701", "-j", "-n", "100000",
					addr[1], addr[2], NULL });
	UNTIL("waits for the replica that joins", has_entries(3));
	mark(3, " joined");
	same_mark(" joined", 0xf);
	/* A member other than the one that the fourth asked. */
	CHECK(!kill(p[2].pid, SIGKILL) && waitpid(p[2].pid, &status, 0) == p[2].pid, "kill");
	mark(1, " killed");
	same_mark(" killed", 0xb);
	UNTIL("waits for the failure",
	      (mark(0, " later"), rack_serve(50), program_said(&p[0], ", 3 members") > 1));
	mark(3, " end");
	same_mark(" end", 0xb);
	for (i = 0; i < 4; i++)
		close(p[i].in);
	daemons_end();
}

/*
 * A peer that starts two seconds late is told once, when it is there, and what is sent meanwhile is
 * no failure. When its process is killed, and another one starts, these are told, too.
 */
RACK_TEST(epoll__late_peer)
{
	const char *const argv[] = { "examples/epoll", "-p",    "61700", "-i", "10",
				     addr[0],          addr[1], NULL };
	char there[80], lost[80];
	int status;

	open_three();
	snprintf(there, sizeof(there), "%s is there\n", addr[1]);
	snprintf(lost, sizeof(lost), "%s is lost\n", addr[1]);
	program_start(&p[0], 0, argv);
	UNTIL("waits for ticks", program_said(&p[0], " tick ") > 150);
	CHECK(!program_said(&p[0], "is there"), "it is told too early: %s", p[0].text);
	program_start(&p[1], 1, argv);
	UNTIL("waits for the peer", program_said(&p[0], there) && program_said(&p[1], " is there"));
	UNTIL("waits for ticks of both", program_said(&p[1], " tick ") > 100);
	CHECK(program_said(&p[0], there) == 1 && !program_said(&p[0], lost), "%s", p[0].text);
	CHECK(!kill(p[1].pid, SIGKILL) && waitpid(p[1].pid, &status, 0) == p[1].pid, "kill");
	UNTIL("waits for the loss", program_said(&p[0], lost));
	UNTIL("waits until the port is free", none_open());
	program_start(&p[1], 1, argv);
	UNTIL("waits for the successor", program_said(&p[0], there) == 2);
	CHECK(program_said(&p[0], lost) == 1, "%s", p[0].text);
	CHECK(!kill(p[0].pid, SIGTERM), "%s", strerror(errno));
	UNTIL("waits for the end", end_of(0, 0));
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counter__same_value),
		cmocka_unit_test(chat__same_order),
		cmocka_unit_test(log__join_and_kill),
		cmocka_unit_test(epoll__late_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
