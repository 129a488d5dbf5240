/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client for memcached (text protocol). It has several connections with one outstanding GET of
 * the same key on each, and sends the next GET when the answer is complete: a closed loop.
 *
 *   set barline 0 0 1024\r\n<1024 bytes>\r\n   -> STORED\r\n
 *   get barline\r\n                           -> VALUE barline 0 1024\r\n<1024 bytes>\r\nEND\r\n
 *
 * Every answer is compared with the bytes that were stored. A request without an answer one second
 * after the end counts with the time that it has waited, because policies that lose the most would
 * look better without it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/traffic/traffic.h"
#include "cli/util/proc.h"

#define KEY       "barline"
#define CONNECT_S 5
#define LAST_NS   1000000000ull /* time to wait for outstanding answers at the end */

enum { MC_READY = 1, MC_GO, MC_STOP, MC_DONE }; /* states of struct traffic_mc */

struct conn {
	int fd;
	uint64_t asked_ns; /* when the outstanding GET was sent; 0: there is none */
	size_t have;       /* bytes of the answer in @buf */
	char *buf;
};

struct client {
	struct traffic_mc *m;
	struct conn conn[TRAFFIC_MC_CONNS];
	char *want; /* the expected answer to a GET */
	size_t want_len;
	unsigned int out; /* outstanding requests */
};

static int fail_client(struct traffic_mc *m, const char *what)
{
	snprintf(m->error, sizeof(m->error), "memcached client: %s: %s", what,
		 errno ? strerror(errno) : "the answer differs from what was stored");
	atomic_store(&m->state, -1);
	return 1;
}

static int send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* receives @n bytes, blocking; returns 0, or -1 if they are not @want */
static int receive_expected(int fd, const char *want, size_t n)
{
	char buf[4096];
	size_t have = 0;

	while (have < n) {
		ssize_t k = recv(fd, buf, n - have < sizeof(buf) ? n - have : sizeof(buf), 0);

		if (k <= 0) {
			if (!k)
				errno = ECONNRESET;
			return -1;
		}
		if (memcmp(buf, want + have, (size_t)k)) {
			errno = 0;
			return -1;
		}
		have += (size_t)k;
	}
	return 0;
}

static int connect_server(const uint8_t addr[4], uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval wait = { .tv_sec = CONNECT_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	memcpy(&sa.sin_addr, addr, 4);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* connects, stores the value, and reads it back once over each connection */
static int prepare_client(struct client *c, const uint8_t addr[4], uint16_t port)
{
	unsigned int size = c->m->size, i;
	char head[64], *set = malloc(size + sizeof(head) + 2);
	int n = snprintf(head, sizeof(head), "VALUE " KEY " 0 %u\r\n", size), k;

	c->want_len = (size_t)n + size + 7;
	c->want = malloc(c->want_len + 1);
	if (!set || !c->want)
		return fail_client(c->m, "memory");
	memcpy(c->want, head, (size_t)n);
	for (i = 0; i < size; i++)
		c->want[n + (int)i] = (char)('a' + i * 7 % 26);
	strcpy(c->want + n + size, "\r\nEND\r\n");
	k = snprintf(set, sizeof(head), "set " KEY " 0 0 %u\r\n", size);
	memcpy(set + k, c->want + n, size);
	memcpy(set + k + size, "\r\n", 2);
	for (i = 0; i < TRAFFIC_MC_CONNS; i++) {
		c->conn[i].buf = malloc(c->want_len);
		c->conn[i].fd = connect_server(addr, port);
		if (c->conn[i].fd < 0 || !c->conn[i].buf)
			return fail_client(c->m, "connect");
		if (!i && (send_all(c->conn[i].fd, set, (size_t)k + size + 2) ||
			   receive_expected(c->conn[i].fd, "STORED\r\n", 8)))
			return fail_client(c->m, "set");
		if (send_all(c->conn[i].fd, "get " KEY "\r\n", 13) ||
		    receive_expected(c->conn[i].fd, c->want, c->want_len))
			return fail_client(c->m, "get");
	}
	free(set);
	return 0;
}

static void record_latency(struct traffic_mc *m, uint64_t ns)
{
	if (m->n < TRAFFIC_MC_MAX)
		m->ns[m->n++] = ns;
}

static int send_get(struct client *c, struct conn *k)
{
	k->have = 0;
	k->asked_ns = bl_mono_ns();
	c->out++;
	return send_all(k->fd, "get " KEY "\r\n", 13);
}

static int receive_answer(struct client *c, struct conn *k)
{
	ssize_t n = recv(k->fd, k->buf + k->have, c->want_len - k->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		if (!n)
			errno = ECONNRESET;
		return -1;
	}
	k->have += (size_t)n;
	if (k->have < c->want_len)
		return 0;
	record_latency(c->m, bl_mono_ns() - k->asked_ns);
	k->asked_ns = 0;
	c->out--;
	if (memcmp(k->buf, c->want, c->want_len)) {
		errno = 0;
		return -1;
	}
	return atomic_load(&c->m->state) < MC_STOP ? send_get(c, k) : 0;
}

int traffic_mc_main(struct traffic_mc *m, const uint8_t addr[4], uint16_t port)
{
	struct client c = { .m = m };
	struct pollfd p[TRAFFIC_MC_CONNS];
	uint64_t stopped = 0;
	unsigned int i;

	if (prepare_client(&c, addr, port))
		return 1;
	atomic_store(&m->state, MC_READY);
	while (atomic_load(&m->state) < MC_GO)
		nap_ns(1000000);
	for (i = 0; i < TRAFFIC_MC_CONNS; i++) {
		p[i] = (struct pollfd){ .fd = c.conn[i].fd, .events = POLLIN };
		if (send_get(&c, &c.conn[i]))
			return fail_client(m, "get");
	}
	while (c.out && (!stopped || bl_mono_ns() - stopped < LAST_NS)) {
		if (!stopped && atomic_load(&m->state) >= MC_STOP)
			stopped = bl_mono_ns();
		if (poll(p, TRAFFIC_MC_CONNS, 10) < 0 && errno != EINTR)
			return fail_client(m, "poll");
		for (i = 0; i < TRAFFIC_MC_CONNS; i++)
			if (p[i].revents && receive_answer(&c, &c.conn[i]))
				return fail_client(m, "get");
	}
	for (i = 0; i < TRAFFIC_MC_CONNS; i++) {
		if (c.conn[i].asked_ns) {
			record_latency(m, bl_mono_ns() - c.conn[i].asked_ns);
			m->unanswered++;
		}
		close(c.conn[i].fd);
		free(c.conn[i].buf);
	}
	free(c.want);
	atomic_store(&m->state, MC_DONE);
	return 0;
}
