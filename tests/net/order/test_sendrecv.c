// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline send` to `barline recv -c 1`, which leaves in an orderly way after the first message. A
 * printed message is never reported as not delivered, a reported message has the true reason, and
 * an unknown outcome is reported as unknown. This is repeated, also where frames are lost.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/barline_run.h"
#include "tests/net/run_beside.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/endpoint.h"

#define PORT "61710"

static char barline[512];

static void wait_end(struct run *r, const char *what)
{
	reap(r, what);
	CHECK(WIFEXITED(r->status), "%s ended with %#x", what, r->status);
}

/* Returns K from "number K" at the end of a printed line, or 0 if nothing was printed. */
static unsigned int printed(int fd)
{
	const char *at = strstr(text_of(fd), "number ");

	return at ? (unsigned int)strtoul(at + 7, NULL, 10) : 0;
}

static unsigned int reports, unknowns;

/*
 * Checks what the sender reported of each line when line @got is the only one that was printed.
 * @lossless: nothing may be reported of a delivered line.
 */
static void judge(int fd, unsigned int got, bool lossless)
{
	static const char *const reasons[] = { "left", "unreachable", "lost", "unknown" };
	char said[65536], *line, *next;
	unsigned int i;

	snprintf(said, sizeof(said), "%s", text_of(fd));
	for (line = said; *line; line = next) {
		unsigned int k;
		char *why;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		why = strstr(line, "delivered to ");
		if (!why || sscanf(strstr(line, ": line ") ? strstr(line, ": line ") : "",
				   ": line %u", &k) != 1)
			continue;
		why = strstr(why, "]: ") ? strstr(why, "]: ") + 3
					 : strstr(strchr(why, ':') + 1, ": ") + 2;
		for (i = 0; i < 4 && strncmp(why, reasons[i], strlen(reasons[i])); i++)
			;
		CHECK(i < 4 && (i != 2 || !lossless), "\"%s\"", line);
		CHECK((i == 3) == (strstr(line, "may not have been") != NULL), "\"%s\"", line);
		CHECK(k != got || (i == 3 && !lossless),
		      "line %u was printed, and the sender says \"%s\"", got, line);
		reports++;
		unknowns += i == 3;
	}
}

/* Sends @lines lines to a receiver that ends after one. */
static void one_round(unsigned int lines, const char *wait_ms, bool lossless)
{
	const char *const recv[] = { barline, "recv", "-p", PORT, "-c", "1", "-t", "20000", NULL };
	char to[64], text[2048];
	const char *const send[] = { barline, "send", "-w", wait_ms, to, NULL };
	struct run r, s;
	unsigned int i, n = 0, got;

	r = start_on(rack_host(1), recv, "");
	n = (unsigned int)sscanf(written(&r, r.err, "receiving on "), "%63s", to);
	CHECK(n == 1, "it does not say where");
	n = 0;
	for (i = 1; i <= lines; i++)
		n += (unsigned int)snprintf(text + n, sizeof(text) - n, "number %u\n", i);
	s = start_on(rack_host(0), send, text);
	wait_end(&s, "the sender");
	wait_end(&r, "the receiver");
	got = printed(r.out);
	CHECK(got || !lossless, "nothing was delivered: %s", text_of(s.err));
	CHECK(!lossless || got == 1, "line %u was delivered first", got);
	judge(s.err, got, lossless);
	CHECK(!lossless || lines > 1 || !WEXITSTATUS(s.status),
	      "the only line was delivered, and the sender ended with %d: %s",
	      WEXITSTATUS(s.status), text_of(s.err));
	close(r.out);
	close(r.err);
	close(s.out);
	close(s.err);
}

/* A host that has no CPU is not excluded: what it had sent would be late. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

static void open_two(void)
{
	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rack.lab.spec.hosts = 2;
	rack.tweak = patient;
	rack_open();
	rack_settle();
	reports = unknowns = 0;
}

RACK_TEST(recv_one__nothing_delivered_is_denied)
{
	unsigned int i;

	open_two();
	for (i = 0; i < 8; i++)
		one_round(1 + i % 4, "1500", true); /* no answer takes this long */
	/* so long that an endpoint that does not answer is unreachable */
	for (i = 0; i < 3; i++)
		one_round(1 + 3 * i, "3500", true);
	CHECK(reports, "nothing was reported of lines that were not delivered: this proves "
		       "nothing");
	fprintf(stderr, "  %u reports, %u of them \"may not have been\"\n", reports, unknowns);
}

RACK_TEST(recv_one__under_loss)
{
	uint64_t seed = t_seed();
	unsigned int i;

	open_two();
	make_lossy(0, 13107, seed);
	make_lossy(1, 13107, seed + 1);
	for (i = 0; i < 6; i++)
		one_round(12, "3500", false);
	CHECK(reports, "nothing was reported of lines that were not delivered: this proves "
		       "nothing");
	fprintf(stderr, "  %u reports, %u of them \"may not have been\"\n", reports, unknowns);
}

/*
 * `barline recv -r` is stopped and expelled: it prints what the others have, reports how far that
 * goes, and fails.
 */
RACK_TEST(recv_reliable__says_how_far_it_came)
{
	const char *const recv[] = { barline, "recv", "-r", "-p", PORT, NULL };
	const char *said;
	struct bl_node *n;
	struct run r, s;
	uint64_t ts, last;
	unsigned int k;
	char to[64];

	open_two();
	n = rack.node[rack_host(1)];
	r = start_on(rack_host(1), recv, "");
	k = (unsigned int)sscanf(written(&r, r.err, "receiving on "), "%63s", to);
	CHECK(k == 1, "it does not say where");
	s = start_on(rack_host(0), (const char *const[]){ barline, "send", "-r", to, NULL },
		     "number 1\nnumber 2\n");
	wait_end(&s, "the sender");
	CHECK(!WEXITSTATUS(s.status), "the sender says: %s", text_of(s.err));
	for (k = 0; !strstr(text_of(r.out), "number 2"); k++) {
		CHECK(k < 30000, "nothing is delivered: %s", text_of(r.err));
		rack_serve(2);
	}
	last = strtoull(strstr(text_of(r.out), "\n") + 1, NULL, 10);
	for (k = 0; k < BL_PORT_COUNT && !bl_endpoint_at(n, BL_PORT_BASE + k); k++)
		;
	CHECK(k < BL_PORT_COUNT, "it has no endpoint");
	CHECK(!kill(r.pid, SIGSTOP), "%s", strerror(errno));
	bl_endpoint_put_out(n, 1ULL << bl_endpoint_at(n, BL_PORT_BASE + k)->slot, BL_OUT_RING);
	CHECK(!kill(r.pid, SIGCONT), "%s", strerror(errno));
	wait_end(&r, "the receiver");
	said = strstr(text_of(r.err), "everything below ts ");
	CHECK(said && WEXITSTATUS(r.status) == 1, "it ended with %d and says: %s",
	      WEXITSTATUS(r.status), text_of(r.err));
	ts = strtoull(said + 20, NULL, 10);
	CHECK(ts > last, "it printed %" PRIu64 " and says that it came as far as %" PRIu64, last,
	      ts);
	CHECK(strstr(said, "; 0 messages"), "nothing was undecided: %s", said);
	close(r.out);
	close(r.err);
	close(s.out);
	close(s.err);
}

static void close_run(struct run *r)
{
	close(r->out);
	close(r->err);
}

/* Writes the address at which the command receives, with the port @port, into @to. */
static void receiver_addr(struct run *r, const char *port, char *to, size_t size)
{
	char at[64];
	int n;

	n = sscanf(written(r, r->err, "receiving on "), "%63s", at);
	CHECK(n == 1, "it does not say where");
	snprintf(to, size, "%.*s:%s", (int)(strrchr(at, ':') - at), at, port ? port : PORT);
}

/* Runs send without --wait on host 0. Its status and what it says on stderr must be these. */
static void send_once(const char *const *argv, int status, const char *says)
{
	struct run s = start_on(rack_host(0), argv, "");

	wait_end(&s, "the sender");
	CHECK(WEXITSTATUS(s.status) == status && strstr(text_of(s.err), says),
	      "the sender ended with %d and says: %s", WEXITSTATUS(s.status), text_of(s.err));
	close_run(&s);
}

/*
 * The exit status of send says what became of the messages, and what can never arrive is refused.
 */
RACK_TEST(send__status_means_it)
{
	const char *const recv[] = { barline, "recv", "-p", PORT, "-c", "3", NULL };
	char to[64], absent[64], outside[64];
	struct run r, s;

	open_two();
	r = start_on(rack_host(1), recv, "");
	receiver_addr(&r, NULL, to, sizeof(to));
	receiver_addr(&r, "61720", absent, sizeof(absent));
	receiver_addr(&r, "99", outside, sizeof(outside));
	send_once((const char *const[]){ barline, "send", outside, "x", NULL }, 2,
		  "port 99 is outside of the ports of endpoints");
	send_once((const char *const[]){ barline, "send", "224.0.0.1:61700", "x", NULL }, 2,
		  "multicast");
	send_once((const char *const[]){ barline, "send", "127.0.0.1:61700", "x", NULL }, 2,
		  "loopback");
	send_once((const char *const[]){ barline, "send", "10.77.1.2:61700,", "x", NULL }, 2,
		  "address \"\" is not");
	send_once((const char *const[]){ barline, "send", absent, "x", NULL }, 1,
		  "delivered to 10.77.1.2:61720");
	s = start_on(rack_host(0), (const char *const[]){ barline, "send", to, NULL }, "1\n2\n3\n");
	wait_end(&s, "the sender");
	CHECK(!WEXITSTATUS(s.status), "the sender says: %s", text_of(s.err));
	wait_end(&r, "the receiver");
	CHECK(!WEXITSTATUS(r.status), "the receiver says: %s", text_of(r.err));
	close_run(&s);
	close_run(&r);
}

/* A receiver of the other stream says that messages wait for it, and send that nothing is known. */
RACK_TEST(send__to_the_other_stream)
{
	char to[64];
	struct run r;

	open_two();
	r = start_on(rack_host(1), (const char *const[]){ barline, "recv", "-r", "-p", PORT, NULL },
		     "");
	receiver_addr(&r, NULL, to, sizeof(to));
	send_once((const char *const[]){ barline, "send", "-w", "1500", to, "x", NULL }, 1,
		  "no answer of 10.77.1.2:" PORT " about 1 message, from line 1 on within the time "
		  "of --wait: it may or may not deliver it; if it is a recv with -r, send with -r, "
		  "too");
	written(&r, r.err, "(messages of send -r; those of send without -r need recv without -r)");
	written(&r, r.err, "best-effort messages wait here");
	kill(r.pid, SIGTERM);
	wait_end(&r, "the receiver");
	close_run(&r);
	r = start_on(rack_host(1), (const char *const[]){ barline, "recv", "-p", "61711", NULL },
		     "");
	receiver_addr(&r, "61711", to, sizeof(to));
	written(&r, r.err, "(messages of send; those of send -r need recv -r)");
	send_once((const char *const[]){ barline, "send", "-r", to, "x", NULL }, 0, "");
	written(&r, r.err, "reliable messages wait here");
	kill(r.pid, SIGTERM);
	wait_end(&r, "the receiver");
	close_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recv_one__nothing_delivered_is_denied),
		cmocka_unit_test(recv_one__under_loss),
		cmocka_unit_test(recv_reliable__says_how_far_it_came),
		cmocka_unit_test(send__status_means_it),
		cmocka_unit_test(send__to_the_other_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
