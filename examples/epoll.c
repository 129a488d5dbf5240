/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint in an event loop: epoll with bl_fd(), a timer and a signal. It shows what a server
 * with other descriptors does, and that nothing needs a thread.
 *
 *	epoll -p 61700 -i 100 10.0.0.1:61700 10.0.0.2:61700
 *
 * Every INTERVAL milliseconds it sends a tick to all addresses, its own included. It prints each
 * tick that is delivered, peers that come and go, and on SIGTERM or SIGINT it leaves.
 */
#include <barline.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MOST 64

enum { BARLINE, TIMER, SIGNAL };

static struct bl_endpoint *ep;

static void on_peer(void *ctx, const struct bl_addr *who, enum bl_peer_event what)
{
	char buf[64];

	(void)ctx;
	printf("%s %s\n", bl_addr_format(who, buf, sizeof(buf)),
	       what == BL_PEER_LOST ? "is lost" : "is there");
}

static void watch(int epfd, int fd, uint32_t what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = what };

	if (fd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e))
		err(1, "epoll");
}

static int make_timer(int ms)
{
	const struct itimerspec it = { { ms / 1000, ms % 1000 * 1000000L },
				       { ms / 1000, ms % 1000 * 1000000L } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &it, NULL))
		err(1, "timerfd");
	return fd;
}

/* To each peer a scattering of its own, so that one that is absent does not stop the others. */
static void tick(const struct bl_addr *to, size_t n)
{
	static uint32_t number;
	size_t i;

	number++;
	for (i = 0; i < n; i++) {
		struct bl_msg m = { to[i], &number, sizeof(number), number };
		int rc = bl_send(ep, &m, 1, 0);

		/* A peer that is absent or slow misses this tick; there will be others. */
		if (rc && rc != -EHOSTUNREACH && rc != -EAGAIN && rc != -ETIME)
			errx(1, "%s", bl_strerror(ep));
	}
}

static void deliver(void)
{
	struct bl_delivery d[64];
	char buf[64];
	int n, i;

	while ((n = bl_recv(ep, d, 64, 0)) > 0)
		for (i = 0; i < n; i++)
			if (d[i].len == sizeof(uint32_t))
				printf("%" PRIu64 " %s tick %u\n", d[i].ts,
				       bl_addr_format(&d[i].src, buf, sizeof(buf)),
				       *(const uint32_t *)d[i].data);
	if (n < 0)
		errx(1, "%s", bl_strerror(ep));
}

int main(int argc, char **argv)
{
	struct bl_options opt = { 0 };
	struct bl_addr to[MOST];
	int c, interval = 1000, epfd = epoll_create1(EPOLL_CLOEXEC), timer;
	bool stop = false;
	sigset_t set;
	size_t n = 0;

	while ((c = getopt(argc, argv, "p:i:")) != -1) {
		if (c == 'p')
			opt.port = (uint16_t)atoi(optarg);
		else if (c == 'i')
			interval = atoi(optarg);
		else
			return 2;
	}
	for (; optind < argc && n < MOST; n++)
		if (bl_addr_parse(&to[n], argv[optind++]))
			errx(2, "%s is not an address and a port", argv[optind - 1]);
	if (!n || interval < 1)
		errx(2, "usage: epoll [-p PORT] [-i MILLISECONDS] ADDRESS:PORT ...");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (bl_init(&ep, &opt))
		errx(1, "%s", bl_strerror(NULL));
	bl_on_peer(ep, on_peer, NULL);
	timer = make_timer(interval);
	watch(epfd, bl_fd(ep), BARLINE);
	watch(epfd, timer, TIMER);
	watch(epfd, signalfd(-1, &set, SFD_CLOEXEC), SIGNAL);
	while (!stop) {
		struct epoll_event e[3];
		uint64_t times;
		int k, got;

		/* Before each wait: it does what is due and arms the wake-up of bl_fd(). */
		if (bl_process(ep) < 0)
			errx(1, "%s", bl_strerror(ep));
		fflush(stdout);
		got = epoll_wait(epfd, e, 3, -1);
		for (k = 0; k < got; k++) {
			if (e[k].data.u32 == BARLINE)
				deliver();
			else if (e[k].data.u32 == TIMER && read(timer, &times, sizeof(times)) > 0)
				tick(to, n);
			else if (e[k].data.u32 == SIGNAL)
				stop = true;
		}
	}
	bl_exit(ep);
	return 0;
}
