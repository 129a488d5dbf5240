// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `barline arbiter show` reads: whoever connects to the socket gets one JSON object and the end of the stream. Nothing can be changed here but one thing: who sends
 * "usable SRC DST MASK\n" (racks, bits of paths, hexadecimal) first, tells which paths work; the fault isolation service does that. The socket is root's (0600).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "../loader/node_priv.h"
#include "alloc.h"

struct bl_arb_door {
	struct bl_arb *a;
	const struct bl_fp_file *f;
	struct bl_engine *e;
	unsigned int rank;
	int fd, end_fd;
	pthread_t thread;
	struct sockaddr_un sa;
	struct bl_arb_row *rows;
};

static const char *const reasons[] = {
#define X(sym, name, text) [BL_FCP_R_##sym] = name,
	BL_FCP_REASONS(X)
#undef X
};
static const char *const states[] = {
#define X(sym, num, name) [num] = name,
	BL_FCP_STATES(X)
#undef X
};

static void put_reasons(FILE *o, const char *key, const uint64_t *n)
{
	const char *sep = "";
	unsigned int r;

	fprintf(o, ",\"%s\":{", key);
	for (r = 0; r < BL_FCP_R_COUNT; r++)
		if (n[r]) {
			fprintf(o, "%s\"%s\":%llu", sep, reasons[r], (unsigned long long)n[r]);
			sep = ",";
		}
	fputc('}', o);
}

static void put_number(FILE *o, const char *key, uint64_t v)
{
	fprintf(o, ",\"%s\":%llu", key, (unsigned long long)v);
}

/* A name is what the file says; quotes and what is not printable would break the object. */
static void put_name(FILE *o, const char *s)
{
	for (; *s; s++)
		fputc(*s == '"' || *s == '\\' || (unsigned char)*s < ' ' ? '?' : *s, o);
}

static char *text_of(struct bl_arb_door *d, size_t *len)
{
	struct bl_arb_total t;
	char addr[INET6_ADDRSTRLEN], *text = NULL;
	FILE *o = open_memstream(&text, len);
	unsigned int i;

	if (!o)
		return NULL;
	bl_arb_read(d->a, &t, d->rows, d->f->npeers);
	fprintf(o, "{\"pid\":%d,\"rank\":%u,\"addr\":\"%s\",\"state\":\"%s\",\"policy\":\"%s\"", getpid(), d->rank, bl_fp_addr_text(d->f->arbiter[d->rank], addr),
		t.state < BL_FCP_STATE_LIMIT && states[t.state] ? states[t.state] : "?", bl_alloc_policy_name((enum bl_alloc_policy)d->f->policy));
	put_number(o, "term", t.term);
	put_number(o, "slot_ns", d->f->slot_ns);
	put_number(o, "paths", d->f->paths);
	put_number(o, "granted", t.granted);
	put_number(o, "late", t.late);
	put_number(o, "stale", t.stale);
	put_number(o, "refunds", t.refunds);
	put_number(o, "runs", t.runs);
	put_number(o, "skipped", t.skipped);
	put_number(o, "overrun", t.overrun);
	put_number(o, "no_path", bl_engine_no_path(d->e));
	put_number(o, "faults_version", t.faults_version);
	put_number(o, "faults_links", t.faults_links);
	put_number(o, "takeovers", t.takeovers);
	put_number(o, "yields", t.yields);
	put_number(o, "stalls", t.stalls);
	put_number(o, "sent", t.sent);
	put_number(o, "send_failed", t.send_failed);
	put_reasons(o, "packets", t.packets);
	put_reasons(o, "watchdogs", t.watchdogs);
	put_reasons(o, "faults", t.faults);
	fprintf(o, ",\"unknown\":\"%s\",\"endpoints\":[", t.unknown);
	for (i = 0; i < d->f->npeers; i++) {
		const struct bl_arb_row *r = &d->rows[i];

		fprintf(o, "%s{\"endpoint\":\"", i ? "," : "");
		put_name(o, d->f->peer[i].name);
		fprintf(o, "\",\"addr\":\"%s\",\"rack\":%u,\"session\":%s", bl_fp_addr_text(d->f->peer[i].addr, addr), d->f->peer[i].rack, r->session ? "true" : "false");
		put_number(o, "waiting", r->waiting);
		put_number(o, "granted", r->granted);
		put_number(o, "refused", r->refused);
		put_number(o, "capped", r->capped);
		put_number(o, "resets", r->resets);
		put_number(o, "gone", r->gone);
		put_number(o, "lost_packets", r->timeouts + r->nacks);
		put_reasons(o, "packets", r->packets);
		fputc('}', o);
	}
	fputs("]}\n", o);
	if (fclose(o)) {
		free(text);
		return NULL;
	}
	return text;
}

/* "usable 0 1 2": from rack 0 to rack 1 only path 1 works. */
static void obey(struct bl_arb_door *d, const char *line)
{
	unsigned int src, dst;
	unsigned long long mask;

	if (sscanf(line, "usable %u %u %llx", &src, &dst, &mask) == 3 && !bl_engine_usable(d->e, src, dst, mask))
		bl_log(BL_LOG_INFO, "paths from rack %u to rack %u: %#llx", src, dst, mask);
	else
		bl_log(BL_LOG_WARN, "the arbiter's door heard \"%.40s\", which is nothing that it knows", line);
}

static void answer(struct bl_arb_door *d, int fd)
{
	const struct timeval patience = { .tv_sec = 1 };
	char buf[65536], *line, *save = NULL, *text;
	size_t len = 0, at = 0;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (len < sizeof(buf) - 1 && (n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = 0;
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		obey(d, line);
	text = text_of(d, &len);
	while (text && at < len && (n = send(fd, text + at, len - at, MSG_NOSIGNAL)) > 0)
		at += (size_t)n;
	free(text);
}

static void *door_main(void *arg)
{
	struct bl_arb_door *d = arg;
	struct pollfd p[2] = { { .fd = d->fd, .events = POLLIN }, { .fd = d->end_fd, .events = POLLIN } };

	pthread_setname_np(pthread_self(), "barline-door");
	for (;;) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		fd = p[0].revents ? accept4(d->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		answer(d, fd);
		close(fd);
	}
}

void bl_arb_serve_end(struct bl_arb_door *d)
{
	uint64_t one = 1;

	if (!d)
		return;
	if (d->thread && write(d->end_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(d->thread, NULL);
	if (d->fd >= 0) {
		close(d->fd);
		unlink(d->sa.sun_path);
	}
	if (d->end_fd >= 0)
		close(d->end_fd);
	free(d->rows);
	free(d);
}

int bl_arb_serve(struct bl_arb_door **out, struct bl_arb *a, const struct bl_fp_file *f, struct bl_engine *e, unsigned int rank, struct bl_err *err)
{
	struct bl_arb_door *d = calloc(1, sizeof(*d));
	mode_t mask;
	int rc = 0, bound;

	*out = NULL;
	if (!d)
		return bl_fail(err, ENOMEM, "out of memory");
	d->a = a;
	d->f = f;
	d->e = e;
	d->rank = rank;
	d->rows = calloc(f->npeers, sizeof(*d->rows));
	d->sa.sun_family = AF_UNIX;
	mkdir(BL_RUN_DIR, 0755);
	snprintf(d->sa.sun_path, sizeof(d->sa.sun_path), BL_RUN_DIR BL_ARB_DOOR, (unsigned long long)bl_netns_ino(), rank);
	unlink(d->sa.sun_path); /* of one that was killed; a second arbiter of this rank has failed to listen by now */
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	d->end_fd = eventfd(0, EFD_CLOEXEC);
	mask = umask(0177);
	bound = d->fd >= 0 ? bind(d->fd, (struct sockaddr *)&d->sa, sizeof(d->sa)) : -1;
	umask(mask);
	if (!d->rows || d->end_fd < 0 || bound || listen(d->fd, 16))
		rc = bl_fail(err, errno, "cannot open %s: %s", d->sa.sun_path, strerror(errno));
	if (!rc) {
		rc = pthread_create(&d->thread, NULL, door_main, d);
		if (rc)
			rc = bl_fail(err, rc, "cannot start a thread: %s", strerror(rc));
	}
	if (rc)
		bl_arb_serve_end(d);
	else
		*out = d;
	return rc;
}
