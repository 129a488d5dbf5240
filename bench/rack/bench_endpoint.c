// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A worker's endpoint: what it sends, and how it records what it receives. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "bench/rack/bench_worker.h"

#define RECV_BATCH 256

int worker_fail(struct worker *w, const char *what, const char *why)
{
	snprintf(w->me->error, sizeof(w->me->error), "%s: %s", what, why);
	atomic_store(&w->me->ready, -1);
	return 1;
}

static void record_delivery(struct worker *w, const struct bl_delivery *d)
{
	struct bench_worker *me = w->me;
	struct payload p = { 0 };
	uint64_t n = atomic_load_explicit(&me->delivered, memory_order_relaxed);
	uint64_t id;

	memcpy(&p, d->data, 8);
	id = (uint64_t)p.sender << 32 | p.seq;
	if (d->ts < w->last_ts)
		me->ts_backwards++;
	w->last_ts = d->ts;
	if (p.sender < w->ctl->n) {
		if (p.seq >= me->next[p.sender])
			me->missing += p.seq - me->next[p.sender];
		else
			me->duplicates++;
		me->next[p.sender] = p.seq + 1;
	}
	me->hash = (me->hash ^ id) * 0x9E3779B97F4A7C15ull;
	me->hash ^= me->hash >> 29;
	if (n < BENCH_LOG)
		me->log[n] = id;
	n++;
	if (n % BENCH_CHECK == 0 && n / BENCH_CHECK < BENCH_CHECKS)
		me->check[n / BENCH_CHECK] = me->hash;
	/* pairs with the acquire loads of the driver, which reads check and log afterwards */
	atomic_store_explicit(&me->delivered, n, memory_order_release);
}

void worker_record_latency(struct worker *w, const void *data, size_t len, uint64_t now, int cell)
{
	struct payload p;

	if (len < sizeof(p))
		return;
	memcpy(&p, data, sizeof(p));
	if (p.sender != LAT_MARK || p.seq >= BENCH_LAT_MAX || now < p.mono_ns)
		return;
	now -= p.mono_ns;
	w->ctl->lat[cell][p.seq] = now > UINT32_MAX ? UINT32_MAX : now ? (uint32_t)now : 1;
	atomic_fetch_add(&w->ctl->lat_got, 1);
}

void worker_group_note(struct worker *w, const struct payload *p, uint64_t now)
{
	const struct bench_ctl *ctl = w->ctl;
	struct bench_worker *me = w->me;
	uint32_t n = atomic_load_explicit(&me->group_got, memory_order_relaxed);

	if (p->mono_ns < ctl->group_from || p->mono_ns >= ctl->group_to ||
	    p->sender - GROUP_MARK == w->i || n == BENCH_GROUP_MAX)
		return;
	now = now > p->mono_ns ? now - p->mono_ns : 1;
	me->group[n] = now > UINT32_MAX ? UINT32_MAX : (uint32_t)now;
	atomic_store_explicit(&me->group_got, n + 1, memory_order_release);
}

int worker_send(struct worker *w, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	return w->ctl->p.reliable ? bl_send_reliable(w->ep, vec, n, flags)
				  : bl_send(w->ep, vec, n, flags);
}

int worker_receive(struct worker *w, int timeout_ms)
{
	struct bl_delivery d[RECV_BATCH];
	int n = w->ctl->p.reliable ? bl_recv_reliable(w->ep, d, RECV_BATCH, timeout_ms)
				   : bl_recv(w->ep, d, RECV_BATCH, timeout_ms),
	    i;

	if (n > 0) {
		uint64_t now = bl_mono_ns();

		for (i = 0; i < n; i++) {
			uint32_t sender;

			if (d[i].len < 8)
				continue; /* not of a worker */
			memcpy(&sender, d[i].data, 4);
			if (sender >= GROUP_MARK && sender < GROUP_MARK + BENCH_MAX &&
			    d[i].len >= sizeof(struct payload)) {
				struct payload p;

				memcpy(&p, d[i].data, sizeof(p));
				worker_group_note(w, &p, now);
			} else if (sender == LAT_MARK)
				worker_record_latency(w, d[i].data, d[i].len, now,
						      atomic_load(&w->ctl->cell));
			else
				record_delivery(w, &d[i]);
		}
	}
	return n == -EINTR ? 0 : n;
}

int worker_send_udp(struct worker *w, const struct bl_addr *to, const struct payload *p,
		    size_t size)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(BENCH_UDP_PORT) };

	memcpy(&sa.sin6_addr, to->ip, 16);
	memcpy(w->buf, p, sizeof(*p));
	return sendto(w->udp, w->buf, size, 0, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
}
