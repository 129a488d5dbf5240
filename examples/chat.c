/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A chat whose lines all participants see in the same order. It shows the best-effort stream: one
 * scattering per line, the report of a line that did not arrive, and bl_fd() beside standard input.
 *
 *	chat -p 61700 10.0.0.1:61700 10.0.0.2:61700	the addresses of all, one's own included
 *
 * A line is printed with its timestamp and its sender, also one's own: nobody knows where in the
 * order it is until it is delivered.
 */
#include <barline.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 64

static struct bl_endpoint *ep;

static void on_send_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			 enum bl_fail_reason why)
{
	char buf[64];

	(void)ctx, (void)ts;
	fprintf(stderr, "line %" PRIu64 " did not reach %s%s\n", cookie,
		bl_addr_format(dst, buf, sizeof(buf)),
		why == BL_FAIL_UNKNOWN ? ", as far as is known" : "");
}

static void say(const struct bl_addr *to, size_t n, const char *line, size_t len)
{
	static uint64_t number;
	struct bl_msg vec[MOST];
	size_t i;
	int rc;

	number++;
	for (i = 0; i < n; i++)
		vec[i] = (struct bl_msg){ to[i], line, (uint32_t)len, number };
	/* The windows of the receivers may be closed: wait, and try again. */
	while ((rc = bl_send(ep, vec, n, 0)) == -EAGAIN)
		bl_wait(ep, BL_WAIT_SEND, -1);
	if (rc)
		errx(1, "%s", bl_strerror(ep));
}

static void listen_to_all(void)
{
	struct bl_delivery d[16];
	char buf[64];
	int n, i;

	while ((n = bl_recv(ep, d, 16, 0)) > 0)
		for (i = 0; i < n; i++)
			printf("%" PRIu64 " %s %.*s\n", d[i].ts,
			       bl_addr_format(&d[i].src, buf, sizeof(buf)), (int)d[i].len,
			       (const char *)d[i].data);
	if (n < 0)
		errx(1, "%s", bl_strerror(ep));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bl_options opt = { 0 };
	struct bl_addr to[MOST];
	static char line[4096];
	size_t n = 0, used = 0;
	int c;

	while ((c = getopt(argc, argv, "p:")) == 'p')
		opt.port = (uint16_t)atoi(optarg);
	for (; optind < argc && n < MOST; n++)
		if (bl_addr_parse(&to[n], argv[optind++]))
			errx(2, "%s is not an address and a port", argv[optind - 1]);
	if (c != -1 || !n)
		errx(2, "usage: chat [-p PORT] ADDRESS:PORT ...");
	if (bl_init(&ep, &opt))
		errx(1, "%s", bl_strerror(NULL));
	bl_on_send_fail(ep, on_send_fail, NULL);
	for (;;) {
		struct pollfd p[2] = { { .fd = bl_fd(ep), .events = POLLIN },
				       { .fd = STDIN_FILENO, .events = POLLIN } };
		ssize_t got;
		char *nl;

		/* Before each poll: it arms the wake-up, and takes in what has come. */
		if (bl_process(ep) < 0)
			errx(1, "%s", bl_strerror(ep));
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		listen_to_all();
		if (!p[1].revents)
			continue;
		got = read(STDIN_FILENO, line + used, sizeof(line) - used);
		if (got <= 0)
			break;
		used += (size_t)got;
		while ((nl = memchr(line, '\n', used)) || used == sizeof(line)) {
			size_t len = nl ? (size_t)(nl - line) : used, cut = nl ? len + 1 : len;

			say(to, n, line, len);
			used -= cut;
			memmove(line, line + cut, used);
		}
	}
	bl_exit(ep);
	return 0;
}
