/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host of `lab run fct`: sends its flows when they are due, and receives those of others, in one
 * epoll loop (fct.h).
 *
 * A connection begins with four bytes, the number of the flow in the plan. Byte o of flow n is
 * pattern[(13 n + o) mod 65536]; the receiver compares and counts every byte.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/fct/fct.h"
#include "lib/barline.h"

#define PORT       7100
#define PATTERN    65536
#define CHUNK      65536 /* bytes per call, so that a long flow does not delay short ones */
#define EVENTS     64
#define CONNECTING 32 /* connections that are made at the same time */
#define IDLE_NS    20000000ULL

/** struct out - A flow that this host sends. */
struct out {
	int fd;          /* -1: not connected, or given up */
	bool known;      /* its number was sent */
	bool waiting;    /* for EPOLLOUT */
	bool connecting; /* connect(2) is in progress */
	uint64_t sent;   /* bytes that the kernel accepted */
};

/** struct in - A connection from another host. */
struct in {
	int fd;            /* -1: closed */
	unsigned int have; /* bytes of @head that were received */
	uint8_t head[4];   /* number of the flow, in network byte order */
};

/** struct host - The state of the process. */
struct host {
	struct fct_host *h;
	int ep, listener;    /* descriptors: epoll and listening socket */
	uint32_t *own;       /* flows of this host: numbers in the plan, ordered by time */
	uint32_t nown;       /* elements of @own and @out */
	uint32_t begun;      /* of these, flows that were begun */
	uint32_t connects;   /* of these, flows whose connect(2) was called in advance */
	uint32_t connecting; /* of these, connections in progress */
	struct out *out;     /* by index in @own */
	struct in *in;       /* @nin of @max_in connections */
	uint32_t nin, max_in;
};

enum kind { LISTENER, OUT, IN };
#define KEY(kind, i) ((uint64_t)(kind) << 32 | (i))

static uint8_t pattern[PATTERN + CHUNK], scratch[CHUNK];

static void report_error(struct host *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void report_error(struct host *s, const char *fmt, ...)
{
	struct fct_cell *c = s->h->c;
	char text[sizeof(c->error)];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "h%u: ", s->h->index + 1);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	if (!atomic_flag_test_and_set(&c->complained))
		memcpy(c->error, text, sizeof(c->error));
}

static void fill_pattern(void)
{
	uint64_t state = 1;
	unsigned int i;

	for (i = 0; i < PATTERN; i++)
		pattern[i] = (uint8_t)(fct_random(&state) * 256);
	memcpy(pattern + PATTERN, pattern, CHUNK);
}

static const uint8_t *pattern_at(uint32_t flow, uint64_t offset)
{
	return pattern + (13ULL * flow + offset) % PATTERN;
}

static void epoll_change(struct host *s, int op, int fd, uint32_t events, uint64_t key)
{
	struct epoll_event ev = { .events = events, .data.u64 = key };

	if (epoll_ctl(s->ep, op, fd, &ev))
		report_error(s, "epoll: %s", strerror(errno));
}

/* ---- sending ---- */

static int connect_flow(struct host *s, const struct fct_flow *f)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	const char *cc = s->h->p->congestion;

	if (fd < 0)
		return -1;
	memcpy(&sa.sin_addr, s->h->addr[f->dst], 4);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if ((!cc || !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc))) &&
	    (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)) || errno == EINPROGRESS))
		return fd;
	close(fd);
	return -1;
}

static void abandon_flow(struct host *s, uint32_t i, const char *what)
{
	struct out *o = &s->out[i];

	report_error(s, "flow %u to h%u: %s: %s", s->own[i] + 1, s->h->p->plan[s->own[i]].dst + 1,
		     what, strerror(errno));
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

static void begin_connect(struct host *s, uint32_t i)
{
	struct out *o = &s->out[i];

	o->fd = connect_flow(s, &s->h->p->plan[s->own[i]]);
	if (o->fd < 0) {
		abandon_flow(s, i, "connect");
		return;
	}
	o->connecting = o->waiting = true;
	epoll_change(s, EPOLL_CTL_ADD, o->fd, EPOLLOUT, KEY(OUT, i));
}

static void wait_for_room(struct host *s, uint32_t i, bool want)
{
	struct out *o = &s->out[i];

	if (o->waiting == want || o->fd < 0)
		return;
	o->waiting = want;
	epoll_change(s, EPOLL_CTL_MOD, o->fd, want ? EPOLLOUT : 0, KEY(OUT, i));
}

/*
 * Sends the number of a flow, alone or with MSG_MORE before its first bytes. Returns whether it is
 * sent; if not, the socket is full, or the flow was given up.
 */
static bool send_flow_number(struct host *s, uint32_t i, int flags)
{
	uint32_t id = htonl(s->own[i]);
	struct out *o = &s->out[i];
	ssize_t n;

	if (o->known)
		return true;
	n = send(o->fd, &id, sizeof(id), MSG_NOSIGNAL | flags);
	if (n != sizeof(id)) {
		if (n < 0 && errno == EAGAIN)
			return false;
		abandon_flow(s, i, "send");
		return false;
	}
	o->known = true;
	return true;
}

/*
 * Sends as much as the socket accepts, and at most CHUNK. Before the first byte, when the socket is
 * connected, it declares the flow to the network with bl_flow_hint().
 */
static void send_bytes(struct host *s, uint32_t i)
{
	const struct fct_flow *f = &s->h->p->plan[s->own[i]];
	struct out *o = &s->out[i];
	uint64_t left;
	ssize_t n;

	if (!send_flow_number(s, i, MSG_MORE)) {
		if (o->fd >= 0)
			wait_for_room(s, i, true);
		return;
	}
	/* the hint is advice, so errors are ignored: then the size of the flow is unknown */
	if (!o->sent && !s->h->p->sizes_unknown)
		bl_flow_hint(o->fd, &(struct bl_flow_hint){ .bytes = f->bytes,
							    .deadline_us = f->deadline_us,
							    .coflow = f->coflow });
	left = f->bytes - o->sent;
	n = send(o->fd, pattern_at(s->own[i], o->sent), left < CHUNK ? left : CHUNK, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN) {
		abandon_flow(s, i, "send");
		return;
	}
	o->sent += n > 0 ? (uint64_t)n : 0;
	wait_for_room(s, i, o->sent < f->bytes);
	if (o->sent == f->bytes && s->h->p->fresh)
		shutdown(o->fd, SHUT_WR);
}

static void begin_flow(struct host *s, uint32_t i)
{
	s->h->c->r[s->own[i]].begun_ns = bl_mono_ns();
	if (s->h->p->fresh)
		begin_connect(s, i);
	else if (s->out[i].fd >= 0)
		send_bytes(s, i);
}

static void finish_connect(struct host *s, uint32_t i)
{
	struct out *o = &s->out[i];
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(o->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		errno = err;
		abandon_flow(s, i, "connect");
		return;
	}
	o->connecting = false;
	if (s->h->p->fresh) {
		send_bytes(s, i);
		return;
	}
	wait_for_room(s, i, !send_flow_number(s, i, 0));
}

static void handle_sender(struct host *s, uint32_t i, uint32_t events)
{
	struct out *o = &s->out[i];
	bool was = o->connecting;

	if (o->fd < 0)
		return;
	if (!o->waiting) { /* all is sent; close if the other end has closed, too */
		if (events & (EPOLLHUP | EPOLLERR)) {
			close(o->fd);
			o->fd = -1;
		}
		return;
	}
	if (was)
		finish_connect(s, i);
	else if (atomic_load(&s->h->c->phase) < FCT_RUN)
		wait_for_room(s, i, !send_flow_number(s, i, 0));
	else
		send_bytes(s, i);
	if (was && s->connecting) /* with --fresh these connections are not counted */
		s->connecting--;
}

/* ---- receiving ---- */

static void accept_connections(struct host *s)
{
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (s->nin == s->max_in) {
			report_error(s, "more connections than flows");
			close(fd);
			return;
		}
		s->in[s->nin].fd = fd;
		epoll_change(s, EPOLL_CTL_ADD, fd, EPOLLIN, KEY(IN, s->nin));
		s->nin++;
	}
}

static void close_connection(struct in *k)
{
	close(k->fd);
	k->fd = -1;
}

static void count_bytes(struct host *s, struct in *k, const uint8_t *data, size_t n)
{
	uint32_t id = (uint32_t)k->head[0] << 24 | (uint32_t)k->head[1] << 16 |
		      (uint32_t)k->head[2] << 8 | k->head[3];
	const struct fct_flow *f = &s->h->p->plan[id];
	struct fct_result *r = &s->h->c->r[id];

	if (n > f->bytes - r->got || memcmp(data, pattern_at(id, r->got), n)) {
		report_error(s, "flow %u: byte %" PRIu64 " or later differs from what was sent",
			     id + 1, r->got);
		close_connection(k);
		return;
	}
	r->got += n;
	if (r->got == f->bytes) {
		r->end_ns = bl_mono_ns();
		atomic_fetch_add(&s->h->c->finished, 1);
	}
}

static void handle_receiver(struct host *s, uint32_t i)
{
	struct in *k = &s->in[i];
	ssize_t n = 1;

	if (k->fd < 0)
		return;
	if (k->have < 4) {
		const struct fct_params *p = s->h->p;
		uint32_t id;

		n = recv(k->fd, k->head + k->have, 4 - k->have, 0);
		k->have += n > 0 ? (unsigned int)n : 0;
		if (n > 0 && k->have < 4)
			return;
		id = (uint32_t)k->head[0] << 24 | (uint32_t)k->head[1] << 16 |
		     (uint32_t)k->head[2] << 8 | k->head[3];
		if (n > 0 && (id >= p->nplan || p->plan[id].dst != s->h->index)) {
			report_error(s, "a connection for flow %u, which is not for this host",
				     id + 1);
			close_connection(k);
			return;
		}
		if (n > 0)
			atomic_fetch_add(&s->h->c->linked, 1);
	}
	if (n > 0) {
		n = recv(k->fd, scratch, sizeof(scratch), 0);
		if (n > 0)
			count_bytes(s, k, scratch, (size_t)n);
	}
	if (n < 0 && errno != EAGAIN)
		report_error(s, "a connection failed: %s", strerror(errno));
	if (!n || (n < 0 && errno != EAGAIN))
		close_connection(k);
}

/* ---- the loop ---- */

static void wait_for_events(struct host *s, uint64_t wait_ns)
{
	const struct timespec t = { .tv_sec = (time_t)(wait_ns / 1000000000),
				    .tv_nsec = (long)(wait_ns % 1000000000) };
	struct epoll_event ev[EVENTS];
	int n = epoll_pwait2(s->ep, ev, EVENTS, &t, NULL), i;

	for (i = 0; i < n; i++) {
		uint32_t k = (uint32_t)ev[i].data.u64;

		switch (ev[i].data.u64 >> 32) {
		case LISTENER:
			accept_connections(s);
			break;
		case OUT:
			handle_sender(s, k, ev[i].events);
			break;
		default:
			handle_receiver(s, k);
		}
	}
}

static void connect_in_advance(struct host *s)
{
	while (s->connects < s->nown && s->connecting < CONNECTING) {
		begin_connect(s, s->connects++);
		s->connecting++;
	}
}

/* begins all flows that are due; returns the time until the next one in ns */
static uint64_t begin_due_flows(struct host *s)
{
	const struct fct_params *p = s->h->p;
	uint64_t now = bl_mono_ns(), at;

	while (s->begun < s->nown) {
		at = s->h->c->t0_ns + p->plan[s->own[s->begun]].start_ns;
		if (at > now)
			return at - now < IDLE_NS ? at - now : IDLE_NS;
		begin_flow(s, s->begun++);
		now = bl_mono_ns();
	}
	return IDLE_NS;
}

static int prepare_host(struct host *s)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const struct fct_params *p = s->h->p;
	int on = 1, fd;
	uint32_t i;

	fill_pattern();
	/*
	 * What TCP has learned on one connection must not help the next one, or the order of
	 * policies would matter.
	 */
	fd = open("/proc/sys/net/ipv4/tcp_no_metrics_save", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1", 1) != 1)
		return report_error(s, "tcp_no_metrics_save: %s", strerror(errno)), 1;
	close(fd);
	prctl(PR_SET_TIMERSLACK, 1UL);
	s->own = calloc(p->nplan, sizeof(*s->own));
	s->out = calloc(p->nplan, sizeof(*s->out));
	s->in = calloc(p->nplan, sizeof(*s->in));
	if (!s->own || !s->out || !s->in)
		return report_error(s, "out of memory"), 1;
	for (i = 0; i < p->nplan; i++) {
		if (p->plan[i].src == s->h->index) {
			s->out[s->nown].fd = -1;
			s->own[s->nown++] = i;
		}
		s->max_in += p->plan[i].dst == s->h->index;
	}
	s->ep = epoll_create1(EPOLL_CLOEXEC);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	memcpy(&sa.sin_addr, s->h->addr[s->h->index], 4);
	if (s->ep < 0 || s->listener < 0 || bind(s->listener, (struct sockaddr *)&sa, sizeof(sa)) ||
	    listen(s->listener, 4096))
		return report_error(s, "cannot listen: %s", strerror(errno)), 1;
	epoll_change(s, EPOLL_CTL_ADD, s->listener, EPOLLIN, KEY(LISTENER, 0));
	return 0;
}

/* returns how many TCP segments this namespace has retransmitted */
static uint64_t read_retransmits(void)
{
	FILE *f = fopen("/proc/net/snmp", "re");
	char line[512];
	uint64_t n = 0;

	while (f && fgets(line, sizeof(line), f))
		/* the line with the names of the values does not match */
		if (sscanf(line, "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %" SCNu64, &n) ==
		    1)
			break;
	if (f)
		fclose(f);
	return n;
}

void fct_host_main(void *host)
{
	static struct host s;
	struct fct_cell *c;
	uint64_t before = 0;
	bool running = false;
	int phase;

	s.h = host;
	c = s.h->c;
	if (prepare_host(&s))
		return;
	atomic_fetch_add(&c->ready, 1);
	while ((phase = atomic_load(&c->phase)) != FCT_STOP) {
		if (phase == FCT_CONNECT && !s.h->p->fresh)
			connect_in_advance(&s);
		if (phase == FCT_RUN && !running) {
			before = read_retransmits();
			running = true;
		}
		wait_for_events(&s, phase == FCT_RUN ? begin_due_flows(&s) : IDLE_NS / 4);
	}
	atomic_fetch_add(&c->retransmits, read_retransmits() - before);
}
