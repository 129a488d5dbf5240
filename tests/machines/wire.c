/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire [-r FRAMES] SOCKET SOCKET - a cable between two QEMU machines.
 *
 * Each end is a unix stream socket on which `-netdev stream,server=off` connects, and connects
 * again when its machine was started anew. Frames pass in order, each behind its length of four
 * bytes in network order, as QEMU writes them.
 *
 *   -r	frames per second that pass in each direction; 0, the default: no limit. The sender's QEMU
 *	does not take more frames from its guest than the cable carries, so with a limit the
 *	transmit queue of the guest's NIC fills, as that of a NIC does under full load.
 *
 * A cable with an open end swallows what enters it at the other one. If a machine takes nothing for
 * two seconds although it is connected, frames to it are lost as well, so that a machine that
 * stands still does not stop its neighbour for good.
 *
 * SIGUSR1 cuts the cable, and joins it again: nothing passes, and neither end sees its carrier go.
 * The program ends by a signal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 65600u /* bytes; QEMU's NET_BUFSIZE is 68 KiB */
#define STALL_NS  2000000000ull

/** struct end - one end of the cable. */
struct end {
	int listener, fd; /* @fd is -1 while no machine is connected */
	/* @in: the frame that comes from this machine, behind its length; @have bytes of it. */
	uint8_t in[4 + FRAME_MAX];
	uint32_t have;
	/* @out: the end of the frame that this machine has taken in part; @rest bytes of it. */
	uint8_t out[4 + FRAME_MAX];
	uint32_t rest;
	uint64_t next_ns;  /* with -r: the next frame from this machine may pass at this time */
	uint64_t stuck_ns; /* this machine has taken nothing since; 0: it takes */
};

static volatile sig_atomic_t cut;

static void on_usr1(int sig)
{
	cut = !cut;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int listen_on(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(a.sun_path)) {
		fprintf(stderr, "wire: the name %s is too long for a socket\n", path);
		exit(1);
	}
	memcpy(a.sun_path, path, strlen(path));
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1)) {
		fprintf(stderr, "wire: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

/* Length of the frame in @e->in with its prefix, once that is there; else 4. */
static uint32_t wanted(const struct end *e)
{
	uint32_t len;

	if (e->have < 4)
		return 4;
	memcpy(&len, e->in, 4);
	return 4 + ntohl(len);
}

static bool whole(const struct end *e)
{
	return e->have >= 4 && e->have == wanted(e);
}

static void hang_up(struct end *e)
{
	close(e->fd);
	e->fd = -1;
	e->have = e->rest = 0;
	e->stuck_ns = 0;
}

/* Reads what has arrived from @e, up to the end of one frame. */
static void read_frame(struct end *e)
{
	ssize_t n;

	while (!whole(e)) {
		if (wanted(e) > sizeof(e->in)) {
			fprintf(stderr, "wire: a frame of %u bytes\n", wanted(e) - 4);
			hang_up(e);
			return;
		}
		n = read(e->fd, e->in + e->have, wanted(e) - e->have);
		if (n > 0) {
			e->have += (uint32_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			hang_up(e);
		return;
	}
}

/* Writes @len bytes to @e. Returns how many it took, or -1 if it has gone. */
static ssize_t give(struct end *e, const uint8_t *data, uint32_t len)
{
	ssize_t n = send(e->fd, data, len, MSG_NOSIGNAL);

	if (n > 0) {
		e->stuck_ns = 0;
		return n;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		hang_up(e);
		return -1;
	}
	if (!e->stuck_ns)
		e->stuck_ns = now_ns();
	return 0;
}

/* Gives @e the end of the frame of which it has a part. Returns true if nothing is left of it. */
static bool finish(struct end *e)
{
	ssize_t n = e->rest ? give(e, e->out, e->rest) : 0;

	if (n > 0) {
		e->rest -= (uint32_t)n;
		memmove(e->out, e->out + n, e->rest);
	}
	return !e->rest;
}

/* Passes the frame of @from to @to. Returns false if it has to wait. */
static bool pass_frame(struct end *from, struct end *to, uint64_t gap_ns)
{
	uint64_t now = now_ns();

	if (now < from->next_ns)
		return false;
	if (to->fd >= 0 && !cut) {
		ssize_t n = finish(to) ? give(to, from->in, from->have) : 0;

		if (!n && (!to->stuck_ns || now - to->stuck_ns < STALL_NS))
			return false;
		if (n > 0 && n < from->have) {
			to->rest = from->have - (uint32_t)n;
			memcpy(to->out, from->in + n, to->rest);
		}
	}
	from->have = 0;
	/* A cable that was idle does not carry more afterwards. */
	from->next_ns = (now > from->next_ns + 20000000u ? now : from->next_ns) + gap_ns;
	return true;
}

int main(int argc, char **argv)
{
	static struct end ends[2];
	uint64_t gap_ns = 0;
	int opt, i;

	while ((opt = getopt(argc, argv, "r:")) != -1) {
		long rate = opt == 'r' ? atol(optarg) : -1;

		if (rate < 0)
			return 2;
		gap_ns = rate ? 1000000000u / (uint64_t)rate : 0;
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: wire [-r FRAMES] SOCKET SOCKET\n");
		return 2;
	}
	signal(SIGUSR1, on_usr1);
	for (i = 0; i < 2; i++) {
		ends[i].fd = -1;
		ends[i].listener = listen_on(argv[optind + i]);
	}
	for (;;) {
		struct pollfd p[4] = {};
		uint64_t now, wake = 1000000000u;

		for (i = 0; i < 2; i++) {
			struct end *e = &ends[i], *to = &ends[!i];
			int rounds = 64; /* then the other direction has its turn */

			while (e->fd >= 0 && rounds--) {
				if (!whole(e))
					read_frame(e);
				if (e->fd < 0 || !whole(e) || !pass_frame(e, to, gap_ns))
					break;
			}
			if (rounds < 0)
				wake = 0;
		}
		now = now_ns();
		for (i = 0; i < 2; i++) {
			struct end *e = &ends[i];

			p[i] = (struct pollfd){ .fd = e->listener, .events = POLLIN };
			p[2 + i].fd = e->fd;
			if (e->fd < 0)
				continue;
			if (!whole(e))
				p[2 + i].events |= POLLIN;
			else if (now < e->next_ns && e->next_ns - now < wake)
				wake = e->next_ns - now;
			if (e->stuck_ns)
				p[2 + i].events |= POLLOUT;
		}
		if (ppoll(p, 4,
			  &(struct timespec){ .tv_sec = (time_t)(wake / 1000000000u),
					      .tv_nsec = (long)(wake % 1000000000u) },
			  NULL) < 0)
			continue;
		for (i = 0; i < 2; i++) {
			struct end *e = &ends[i];
			int fd;

			if (e->fd >= 0 && p[2 + i].revents & (POLLHUP | POLLERR) &&
			    !(p[2 + i].revents & POLLIN))
				hang_up(e);
			if (e->fd >= 0 && p[2 + i].revents & POLLOUT) {
				e->stuck_ns = 0;
				finish(e);
			}
			if (!(p[i].revents & POLLIN))
				continue;
			fd = accept4(e->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (fd < 0)
				continue;
			if (e->fd >= 0)
				hang_up(e);
			e->fd = fd;
		}
	}
}
