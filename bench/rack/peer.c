/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See peer.h. --serve returns each message to its sender; --peer and --peer-udp send one message at
 * a time and wait for it to return.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/time.h"
#include "bench/rack/peer.h"
#include "cli/util/out.h"

#define ANSWER_MS  1000
#define SILENT_MAX 10 /* a peer that has not answered so many messages in a row is gone */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void catch_signals(void)
{
	const struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static int open_udp_socket(uint16_t port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), no = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		cli_fail("UDP port %u: %s", port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static void echo_udp(int fd)
{
	struct sockaddr_in6 from;
	uint8_t buf[65536];

	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from,
				     &len);

		if (n < 0 ||
		    sendto(fd, buf, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&from, len) < 0)
			return;
	}
}

static int echo_ordered(struct bl_endpoint *ep)
{
	struct bl_delivery d[64];
	int n, i, err;

	while ((n = bl_recv(ep, d, 64, 0)) > 0) {
		struct bl_msg back[64];

		for (i = 0; i < n; i++)
			back[i] = (struct bl_msg){ .dst = d[i].src,
						   .data = d[i].data,
						   .len = d[i].len };
		for (i = 0; i < n; i++) {
			err = bl_send(ep, &back[i], 1, i + 1 < n ? BL_MORE : 0);
			if (err && err != -EAGAIN)
				return err;
		}
	}
	return n == -EINTR ? 0 : n;
}

int peer_serve(const struct bench_params *p)
{
	struct bl_options opt = { .ring_bytes = p->ring_bytes, .family = p->ipv6 ? AF_INET6 : 0 };
	struct pollfd fds[2];
	struct bl_endpoint *ep;
	char text[64];
	int err = 0;

	if (bl_init(&ep, &opt))
		return cli_fail("%s", bl_strerror(NULL));
	fds[0] = (struct pollfd){ .fd = bl_fd(ep), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = open_udp_socket(BENCH_UDP_PORT), .events = POLLIN };
	catch_signals();
	fprintf(stderr, "barline: answering --peer %s, and --peer-udp on port %d\n",
		bl_addr_format(bl_self(ep), text, sizeof(text)), BENCH_UDP_PORT);
	while (!stop && !err && fds[1].fd >= 0) {
		err = echo_ordered(ep);
		echo_udp(fds[1].fd);
		if (!err && bl_process(ep) == 0)
			poll(fds, 2, 1000);
	}
	if (err)
		cli_fail("%s", bl_strerror(ep));
	bl_exit(ep);
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return err || fds[1].fd < 0;
}

struct probe {
	uint64_t number;
	uint64_t mono_ns; /* CLOCK_MONOTONIC at which it was sent */
};

static bool ask_ordered(struct bl_endpoint *ep, const struct bl_addr *to, uint8_t *buf, size_t size,
			const struct probe *p, int *err)
{
	struct bl_msg m = { .dst = *to, .data = buf, .len = (uint32_t)size };
	uint64_t until = bl_mono_ns() + ANSWER_MS * 1000000ull;
	struct bl_delivery d[16];
	struct probe q;
	int n, i;

	memcpy(buf, p, sizeof(*p));
	*err = bl_send(ep, &m, 1, 0);
	while (!*err && !stop && bl_mono_ns() < until) {
		n = bl_recv(ep, d, 16, ANSWER_MS);
		if (n < 0 && n != -EINTR)
			*err = n;
		for (i = 0; i < n; i++) {
			if (d[i].len < sizeof(q))
				continue;
			memcpy(&q, d[i].data, sizeof(q));
			if (q.number == p->number)
				return true;
		}
	}
	return false;
}

static bool ask_udp(int fd, const struct bl_addr *to, uint8_t *buf, size_t size,
		    const struct probe *p, int *err)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(to->port) };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct probe q;

	memcpy(&sa.sin6_addr, to->ip, 16);
	memcpy(buf, p, sizeof(*p));
	if (sendto(fd, buf, size, 0, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		*err = -errno;
		return false;
	}
	while (!stop && poll(&pfd, 1, ANSWER_MS) == 1)
		if (recv(fd, &q, sizeof(q), MSG_TRUNC) >= (ssize_t)sizeof(q) &&
		    q.number == p->number)
			return true;
	return false;
}

int peer_ask(const struct bench_params *p, const struct peer_args *a)
{
	static const struct col cols[] = { { "mode", "HALF THE ROUND TRIP", 's' },
					   { "p50_ns", "P50", 't' },
					   { "p99_ns", "P99", 't' },
					   { "p999_ns", "P99.9", 't' },
					   { "max_ns", "GREATEST", 't' },
					   { "samples", "SAMPLES", 'd' },
					   { "lost", "LOST", 'd' } };
	struct bl_options opt = { .family = bl_ip_is_v4(a->to.ip) ? AF_INET : AF_INET6 };
	size_t size = p->size > sizeof(struct probe) ? p->size : sizeof(struct probe);
	uint32_t *v = calloc(p->lat_samples + 1u, sizeof(*v)), n = 0, i;
	uint8_t *buf = calloc(1, size);
	struct bl_endpoint *ep = NULL;
	unsigned int silent = 0;
	char text[64];
	int fd = -1, err = 0;
	json_t *row, *rows = json_array();

	if (!v || !buf)
		return cli_fail("out of memory");
	if (!a->udp && bl_init(&ep, &opt))
		return cli_fail("%s", bl_strerror(NULL));
	if (a->udp && (fd = open_udp_socket(0)) < 0)
		return 1;
	catch_signals();
	for (i = 0; i < p->lat_samples && !stop && !err && silent < SILENT_MAX; i++) {
		const struct timespec gap = { .tv_nsec = 100000 + random() % 400000 };
		struct probe q = { .number = (uint64_t)getpid() << 32 | i };
		bool ok;

		nanosleep(&gap, NULL);
		q.mono_ns = bl_mono_ns();
		ok = a->udp ? ask_udp(fd, &a->to, buf, size, &q, &err)
			    : ask_ordered(ep, &a->to, buf, size, &q, &err);
		silent = ok ? 0 : silent + 1;
		if (ok)
			v[n++] = (uint32_t)((bl_mono_ns() - q.mono_ns) / 2);
		out_progress("latency: %u of %u", i, p->lat_samples);
	}
	out_progress_end();
	if (err)
		cli_fail("%s", a->udp ? strerror(-err) : bl_strerror(ep));
	else if (silent == SILENT_MAX)
		err = cli_fail("%s has not answered the last %u messages; does `barline bench "
			       "latency --serve` run there, and is it stopped?",
			       bl_addr_format(&a->to, text, sizeof(text)), silent);
	else if (!n)
		err = cli_fail("none of %u messages was answered", i);
	bl_exit(ep);
	if (fd >= 0)
		close(fd);
	row = bench_quantiles(v, n);
	json_object_set_new(row, "mode", json_string(a->udp ? "plain UDP" : "ordered"));
	json_object_set_new(row, "lost", json_integer((json_int_t)i - n));
	json_array_append_new(rows, row);
	free(v);
	free(buf);
	if (!err)
		return out_rows("latency", rows, cols, sizeof(cols) / sizeof(cols[0]), "");
	json_decref(rows);
	return 1;
}
