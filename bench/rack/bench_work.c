/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A worker: one endpoint, which the control block leads through the phases (bench.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/rack/bench_worker.h"

static uint64_t random64(struct worker *w)
{
	w->rng ^= w->rng << 13; /* xorshift64 */
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

static void count_failure(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			  enum bl_fail_reason why)
{
	struct worker *w = ctx;

	(void)ts;
	(void)dst;
	(void)cookie;
	(void)why;
	w->me->send_failed++;
}

static int run_all_to_all(struct worker *w)
{
	struct bench_ctl *ctl = w->ctl;
	struct bench_worker *me = w->me;
	struct payload p = { .sender = w->i };
	unsigned int b, j;
	int err;

	for (j = 0; j < ctl->n; j++)
		w->vec[j] = (struct bl_msg){ .dst = ctl->w[j].addr,
					     .data = w->buf,
					     .len = ctl->p.size };
	while (atomic_load_explicit(&ctl->phase, memory_order_relaxed) == PH_ALL) {
		for (b = 0, err = 0; b < ctl->p.batch && !err; b++) {
			memcpy(w->buf, &p, 8);
			err = worker_send(w, w->vec, ctl->n, b + 1 < ctl->p.batch ? BL_MORE : 0);
			if (!err) {
				p.seq++;
				atomic_store_explicit(&me->sent, p.seq, memory_order_relaxed);
			}
		}
		if (err == -EAGAIN) {
			me->again++;
			bl_flush(w->ep);
		} else if (err) {
			return worker_fail(w, "bl_send", bl_strerror(w->ep));
		}
		/*
		 * The windows are full: sleep until a message or a credit arrives, so that the
		 * other workers get the CPU.
		 */
		if (worker_receive(w, 0) == 0 && err == -EAGAIN &&
		    bl_wait(w->ep,
			    w->ctl->p.reliable ? BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE
					       : BL_WAIT_SEND | BL_WAIT_RECV,
			    10) < 0)
			return worker_fail(w, "bl_wait", bl_strerror(w->ep));
	}
	err = bl_flush(w->ep);
	return err && err != -EAGAIN ? worker_fail(w, "bl_flush", bl_strerror(w->ep)) : 0;
}

static int send_samples(struct worker *w, int cell)
{
	struct bench_ctl *ctl = w->ctl;
	bool udp = cell == CELL_UDP_BLOCK || cell == CELL_UDP_POLL;
	size_t size = ctl->p.size > sizeof(struct payload) ? ctl->p.size : sizeof(struct payload);
	struct payload p = { .sender = LAT_MARK };
	struct bl_msg m = { .dst = ctl->w[ctl->lat_dst].addr,
			    .data = w->buf,
			    .len = (uint32_t)size };
	uint64_t t;
	int err;

	/*
	 * With the default slack of 50 us, this timer would expire together with that of the beacon
	 * thread, and all messages would leave just after a beacon.
	 */
	prctl(PR_SET_TIMERSLACK, 1UL);
	while (p.seq < ctl->p.lat_samples && atomic_load(&ctl->phase) == PH_LATENCY) {
		/*
		 * Messages are two to six beacon intervals apart, so that all phases of the
		 * interval are equally likely and no two messages share a barrier.
		 */
		struct timespec ts;

		t = bl_mono_ns() + 2 * ctl->beacon_ns + random64(w) % (4 * ctl->beacon_ns);
		ts.tv_sec = (time_t)(t / 1000000000);
		ts.tv_nsec = (long)(t % 1000000000);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		p.mono_ns = bl_mono_ns();
		if (udp) {
			err = worker_send_udp(w, &m.dst, &p, size);
		} else {
			memcpy(w->buf, &p, sizeof(p));
			err = worker_send(w, &m, 1, 0);
		}
		if (err && err != -EAGAIN)
			return worker_fail(w, udp ? "sendto" : "bl_send",
					   udp ? strerror(-err) : bl_strerror(w->ep));
		p.seq += !err;
		atomic_store(&ctl->lat_sent, p.seq);
		if (!udp && worker_receive(w, 0) < 0)
			return worker_fail(w, "bl_recv", bl_strerror(w->ep));
	}
	return 0;
}

static int receive_samples(struct worker *w, int cell)
{
	struct bench_ctl *ctl = w->ctl;
	bool poll = cell == CELL_ORDERED_POLL || cell == CELL_TALK_POLL || cell == CELL_UDP_POLL;
	bool udp = cell == CELL_UDP_BLOCK || cell == CELL_UDP_POLL;
	uint8_t buf[2048];
	int n;

	while (atomic_load_explicit(&ctl->phase, memory_order_relaxed) == PH_LATENCY &&
	       atomic_load(&ctl->cell) == cell) {
		if (udp) {
			ssize_t len = recv(w->udp, buf, sizeof(buf), poll ? MSG_DONTWAIT : 0);

			if (len > 0)
				worker_record_latency(w, buf, (size_t)len, bl_mono_ns(), cell);
			else if (len < 0 && errno != EAGAIN && errno != EINTR)
				return worker_fail(w, "recv", strerror(errno));
		} else {
			n = worker_receive(w, poll ? 0 : 100);
			if (n < 0)
				return worker_fail(w, "bl_recv", bl_strerror(w->ep));
		}
	}
	return 0;
}

/*
 * A host that is neither sender nor receiver: sends a message, which is no sample, every 10 ms, so
 * that it does not count as silent.
 */
static int send_chatter(struct worker *w)
{
	const struct payload p = { .sender = LAT_MARK, .seq = BENCH_LAT_MAX };
	const struct bl_msg m = { .dst = w->ctl->w[w->ctl->lat_src].addr,
				  .data = &p,
				  .len = sizeof(p) };
	int err = worker_send(w, &m, 1, 0);

	if (err && err != -EAGAIN)
		return worker_fail(w, "bl_send", bl_strerror(w->ep));
	return worker_receive(w, 10) < 0;
}

static int run_latency(struct worker *w)
{
	struct bench_ctl *ctl = w->ctl;
	int cell = atomic_load(&ctl->cell), err = 0;
	bool talk = cell == CELL_TALK_BLOCK || cell == CELL_TALK_POLL;

	if (atomic_load(&w->me->idle) == 100 + cell)
		err = worker_receive(w, 50) < 0;
	else if (w->i == ctl->lat_dst)
		err = receive_samples(w, cell);
	else if (w->i == ctl->lat_src)
		err = send_samples(w, cell);
	if (w->i == ctl->lat_src)
		atomic_store(&w->me->idle, 100 + cell);
	else if (w->i != ctl->lat_dst && talk)
		err = send_chatter(w);
	else if (w->i != ctl->lat_dst)
		worker_receive(w, 50);
	return err;
}

static int open_udp_socket(struct worker *w)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)(BENCH_UDP_PORT)) };
	struct timeval tv = { .tv_usec = 100000 };
	int no = 0;

	/* with several workers on one host only the first gets the port; they do not use it */
	w->udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (w->udp < 0 || setsockopt(w->udp, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) ||
	    setsockopt(w->udp, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		return worker_fail(w, "UDP socket", strerror(errno));
	if (bind(w->udp, (struct sockaddr *)&sa, sizeof(sa)) && errno != EADDRINUSE)
		return worker_fail(w, "UDP port", strerror(errno));
	return 0;
}

static int run_phases(struct worker *w)
{
	struct bench_ctl *ctl = w->ctl;
	int err = 0, phase;

	while (!err && (phase = atomic_load(&ctl->phase)) != PH_EXIT) {
		switch (phase) {
		case PH_ALL:
			err = run_all_to_all(w);
			break;
		case PH_LATENCY:
			err = run_latency(w);
			break;
		case PH_GROUP:
			err = worker_group(w);
			break;
		default: {
			int n = worker_receive(w, 20);

			if (n < 0)
				err = worker_fail(w, "bl_recv", bl_strerror(w->ep));
		}
		}
		w->me->stats.size = sizeof(w->me->stats);
		bl_get_stats(w->ep, &w->me->stats);
	}
	return err;
}

int bench_worker_main(struct bench_ctl *ctl, unsigned int i)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct bl_options opt = { .ring_bytes = ctl->p.ring_bytes,
				  .family = ctl->p.ipv6 ? AF_INET6 : AF_INET };
	char name[16];
	int err;

	if (!w)
		return 1;
	snprintf(name, sizeof(name), "bench-%u", i + 1);
	prctl(PR_SET_NAME, name);
	w->ctl = ctl;
	w->me = &ctl->w[i];
	w->i = i;
	w->rng = bl_mono_ns() * 2654435761u + i + 1;
	w->buf = calloc(1, ctl->p.size > sizeof(struct payload) ? ctl->p.size
								: sizeof(struct payload));
	if (!w->buf || open_udp_socket(w))
		return 1;
	if (bl_init(&w->ep, &opt))
		return worker_fail(w, "bl_init", bl_strerror(NULL));
	bl_on_send_fail(w->ep, count_failure, w);
	w->me->addr = *bl_self(w->ep);
	atomic_store(&w->me->ready, 1);
	err = run_phases(w);
	bl_exit(w->ep);
	close(w->udp);
	free(w->buf);
	free(w);
	return err;
}
