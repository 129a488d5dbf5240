/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP connections between the bl0 interfaces of a rack. begin() makes a number of hosts send a
 * number of bytes each to the first host, which verifies every byte; finish() serves the rack until
 * all have ended. A sender ends when the receiver has closed, that is, when everything that it sent
 * has arrived and is right. No connection is given up, however long it takes: the time limit of the
 * case is the bound.
 *
 * A case that changes something in the middle of a transfer lets the transfer run until it calls
 * enough(). Then the transfer is not over before the change, however long the machine takes for it.
 *
 * Example: begin(AF_INET, 15, 256 << 10): hosts 2 to 16 send 256 KiB each to host 1. begin(AF_INET,
 * 1, ENDLESS): host 2 sends to host 1 until enough(), which finish() calls, too.
 *
 * Include this after rack.h, and <netinet/in.h> before rack.h.
 */
#ifndef BARLINE_TESTS_CONN_H
#define BARLINE_TESTS_CONN_H

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PORT     5001
#define CHILDREN 16
#define ENDLESS  UINT64_MAX

/** struct conn_shared - memory shared by the case and its processes. */
struct conn_shared {
	_Atomic int enough; /* the case wants ENDLESS senders to end */
	/*
	 * Bytes of all senders that have sent their last byte. The receiver reads this after the
	 * end of every connection, and thus after the senders have added to it.
	 */
	_Atomic uint64_t sent;
};

/** w - the connections of this case. */
static struct {
	int family, listener;
	unsigned int senders;            /* hosts from the second one on */
	uint64_t bytes;                  /* of each sender */
	const struct bl_flow_hint *hint; /* of each sender's flow; NULL: none */
	int priority;                    /* SO_PRIORITY of each sender */
	pid_t pid[CHILDREN + 1];         /* started processes, receiver first; 0: has ended */
	const char *name[CHILDREN + 1];
	unsigned int n, left; /* processes that were started, and that have not ended */
	struct conn_shared *shared;
} w;

T_FN void fill(uint8_t *b, size_t n, uint64_t at)
{
	size_t k;

	for (k = 0; k < n; k++)
		b[k] = (uint8_t)((at + k) * 2654435761u >> 13);
}

T_FN socklen_t address(int family, unsigned int node, struct sockaddr_storage *sa)
{
	uint8_t a[16];

	memset(sa, 0, sizeof(*sa));
	lab_bl0_addr(&rack.lab.nodes[node], family, a);
	if (family == AF_INET) {
		struct sockaddr_in *s = (void *)sa;

		s->sin_family = AF_INET;
		s->sin_port = htons(PORT);
		memcpy(&s->sin_addr, a, 4);
		return sizeof(*s);
	} else {
		struct sockaddr_in6 *s = (void *)sa;

		s->sin6_family = AF_INET6;
		s->sin6_port = htons(PORT);
		memcpy(&s->sin6_addr, a, 16);
		return sizeof(*s);
	}
}

T_FN void child(unsigned int node, const char *name, void (*fn)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(node);
		fn();
		_exit(0);
	}
	w.pid[w.n] = pid;
	w.name[w.n++] = name;
	w.left++;
}

/* Receives and verifies all bytes of every sender, in order. */
T_FN void receive(void)
{
	static uint8_t got[65536], want[65536];
	uint64_t at[CHILDREN] = { 0 };
	struct pollfd p[CHILDREN];
	unsigned int i, left = w.senders;
	uint64_t sum = 0;

	for (i = 0; i < w.senders; i++) {
		p[i] = (struct pollfd){ .fd = accept(w.listener, NULL, NULL), .events = POLLIN };
		CHECK(p[i].fd >= 0, "%s", strerror(errno));
	}
	while (left) {
		CHECK(poll(p, w.senders, -1) > 0, "%s", strerror(errno));
		for (i = 0; i < w.senders; i++) {
			ssize_t n;

			if (!p[i].revents)
				continue;
			n = recv(p[i].fd, got, sizeof(got), 0);
			CHECK(n >= 0, "%s", strerror(errno));
			fill(want, (size_t)n, at[i]);
			CHECK(!memcmp(got, want, (size_t)n), "bytes from %" PRIu64 " on differ",
			      at[i]);
			at[i] += (uint64_t)n;
			if (n)
				continue;
			CHECK(w.bytes == ENDLESS || at[i] == w.bytes, "%" PRIu64 " bytes", at[i]);
			sum += at[i];
			close(p[i].fd);
			p[i].fd = -1;
			left--;
		}
	}
	CHECK(sum == atomic_load(&w.shared->sent), "%" PRIu64 " bytes, not what was sent", sum);
}

T_FN void send_all(void)
{
	static uint8_t b[65536];
	struct sockaddr_storage sa;
	socklen_t len = address(w.family, rack_host(0), &sa);
	int fd = socket(w.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t at = 0;

	CHECK(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &w.priority, sizeof(w.priority)),
	      "%s", strerror(errno));
	CHECK(!connect(fd, (void *)&sa, len), "connect: %s", strerror(errno));
	if (w.hint)
		CHECK(!bl_flow_hint(fd, w.hint), "hint");
	while (at < w.bytes && !(w.bytes == ENDLESS && atomic_load(&w.shared->enough))) {
		size_t n = w.bytes - at < sizeof(b) ? (size_t)(w.bytes - at) : sizeof(b);

		fill(b, n, at);
		CHECK(send(fd, b, n, MSG_NOSIGNAL) == (ssize_t)n, "send: %s", strerror(errno));
		at += n;
	}
	atomic_fetch_add(&w.shared->sent, at);
	CHECK(!shutdown(fd, SHUT_WR) && !recv(fd, b, 1, 0), "end: %s", strerror(errno));
}

T_FN void begin(int family, unsigned int senders, uint64_t bytes)
{
	struct sockaddr_storage sa;
	socklen_t len = address(family, rack_host(0), &sa);
	int home = rack_away(rack_host(0)), one = 1;
	unsigned int i;

	w.family = family;
	w.senders = senders;
	w.bytes = bytes;
	w.n = w.left = 0;
	w.shared = mmap(NULL, sizeof(*w.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(w.shared != MAP_FAILED, "%s", strerror(errno));
	w.listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(w.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(w.listener >= 0 && !bind(w.listener, (void *)&sa, len) &&
		      !listen(w.listener, CHILDREN),
	      "%s", strerror(errno));
	rack_back(home);
	child(rack_host(0), "receiver", receive);
	for (i = 0; i < senders; i++)
		child(rack_host(i + 1), rack.lab.nodes[rack_host(i + 1)].name, send_all);
	close(w.listener);
}

/* Reaps the processes that have ended. Returns whether others still run. */
T_FN bool running(void)
{
	unsigned int k;
	int st;

	for (k = 0; k < w.n; k++)
		if (w.pid[k] && waitpid(w.pid[k], &st, WNOHANG) == w.pid[k]) {
			CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "%s failed", w.name[k]);
			w.pid[k] = 0;
			w.left--;
		}
	return w.left;
}

/* Ends the ENDLESS senders. */
T_FN void enough(void)
{
	atomic_store(&w.shared->enough, 1);
}

T_FN void finish(void)
{
	enough();
	while (running())
		rack_serve(10);
}

#endif
