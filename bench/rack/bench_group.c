/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The group phase: each worker broadcasts at a fixed rate, independent of what it receives (an open
 * loop), and records the age of the other workers' messages at delivery. Once in order, and once as
 * plain UDP packets through the same rack, which arrive in any order.
 *
 * The age counts from the time at which a message was due, not from when its sender got the CPU, so
 * that a machine which cannot keep up shows it. Workers begin at different phases of the period.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/rack/bench_worker.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"

#define WARM_UP_NS   300000000ull
#define DRAIN_NS     300000000ull
#define DRAIN_MAX_NS 3000000000ull

static const char *const names[] = {
	[GROUP_ORDERED] = "ordered", [GROUP_UDP] = "plain UDP (no order)"
};

/* ---- the worker ---- */

static int send_broadcast(struct worker *w, uint64_t due)
{
	struct bench_ctl *ctl = w->ctl;
	const size_t size = ctl->p.size > sizeof(struct payload) ? ctl->p.size
								 : sizeof(struct payload);
	const struct payload p = { .sender = GROUP_MARK + w->i,
				   .seq = w->me->group_sent,
				   .mono_ns = due };
	unsigned int j;
	int err;

	w->me->group_sent += due >= ctl->group_from;
	memcpy(w->buf, &p, sizeof(p));
	if (atomic_load(&ctl->cell) == GROUP_UDP) {
		for (j = 0; j < ctl->n; j++) {
			err = worker_send_udp(w, &ctl->w[j].addr, &p, size);
			if (err && err != -EAGAIN && err != -ENOBUFS)
				return worker_fail(w, "sendto", strerror(-err));
		}
		return 0;
	}
	for (j = 0; j < ctl->n; j++)
		w->vec[j] = (struct bl_msg){ .dst = ctl->w[j].addr,
					     .data = w->buf,
					     .len = (uint32_t)size };
	err = worker_send(w, w->vec, ctl->n, 0);
	if (err == -EAGAIN)
		w->me->group_refused++; /* counts as lost at all receivers */
	else if (err)
		return worker_fail(w, "bl_send", bl_strerror(w->ep));
	return 0;
}

static int receive_udp(struct worker *w)
{
	uint8_t buf[2048];
	struct payload p;
	ssize_t len;

	while ((len = recv(w->udp, buf, sizeof(buf), MSG_DONTWAIT)) >= (ssize_t)sizeof(p)) {
		memcpy(&p, buf, sizeof(p));
		worker_group_note(w, &p, bl_mono_ns());
	}
	return len < 0 && errno != EAGAIN && errno != EINTR
		       ? worker_fail(w, "recv", strerror(errno))
		       : 0;
}

/* Delivers what has arrived; then sleeps until more arrives or until @until. */
static int deliver_and_sleep(struct worker *w, uint64_t until)
{
	const bool udp = atomic_load(&w->ctl->cell) == GROUP_UDP;
	struct pollfd fd = { .fd = udp ? w->udp : bl_fd(w->ep), .events = POLLIN };
	struct timespec ts = { 0 };
	uint64_t now;
	int n;

	if (udp) {
		if (receive_udp(w))
			return 1;
	} else {
		n = bl_process(w->ep);
		while (n > 0)
			n = worker_receive(w, 0);
		if (n < 0)
			return worker_fail(w, "bl_recv", bl_strerror(w->ep));
	}
	now = bl_mono_ns();
	if (now >= until)
		return 0;
	ts.tv_sec = (time_t)((until - now) / 1000000000);
	ts.tv_nsec = (long)((until - now) % 1000000000);
	if (ppoll(&fd, 1, &ts, NULL) < 0 && errno != EINTR)
		return worker_fail(w, "ppoll", strerror(errno));
	return 0;
}

int worker_group(struct worker *w)
{
	struct bench_ctl *ctl = w->ctl;
	const uint64_t period = 1000000000ull / ctl->p.group_rate;
	uint64_t due = ctl->group_begin + period * w->i / ctl->n;
	int err = 0;

	prctl(PR_SET_TIMERSLACK, 1UL);
	while (!err && atomic_load_explicit(&ctl->phase, memory_order_relaxed) == PH_GROUP) {
		while (!err && due <= bl_mono_ns() && due < ctl->group_to) {
			err = send_broadcast(w, due);
			due += period;
		}
		if (!err)
			err = deliver_and_sleep(w, due < ctl->group_to ? due
								       : bl_mono_ns() + 20000000);
	}
	return err;
}

/* ---- the driver ---- */

static uint64_t count_received(const struct bench_ctl *ctl)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ctl->n; i++)
		sum += atomic_load_explicit(&ctl->w[i].group_got, memory_order_acquire);
	return sum;
}

static json_t *make_row(const struct bench_ctl *ctl, int cell)
{
	uint64_t all = count_received(ctl), sent = 0, refused = 0;
	uint32_t *v = malloc((all ? all : 1) * sizeof(*v)), n = 0;
	unsigned int i;
	json_t *q;

	if (!v)
		return NULL;
	for (i = 0; i < ctl->n; i++) {
		const struct bench_worker *w = &ctl->w[i];
		uint32_t k = atomic_load(&w->group_got);

		memcpy(v + n, w->group, k * sizeof(*v));
		n += k;
		sent += w->group_sent;
		refused += w->group_refused;
	}
	q = bench_quantiles(v, n);
	free(v);
	sent *= ctl->n - 1; /* a worker does not count its own messages */
	json_object_set_new(q, "mode",
			    json_string(cell == GROUP_ORDERED && ctl->p.reliable ? "ordered "
										   "reliable"
										 : names[cell]));
	json_object_set_new(q, "rate", json_integer(ctl->p.group_rate));
	json_object_set_new(q, "lost", json_integer(sent > n ? (json_int_t)(sent - n) : 0));
	json_object_set_new(q, "refused", json_integer((json_int_t)refused));
	return q;
}

static int run_group_cell(struct bench_ctl *ctl, int cell)
{
	uint64_t end, seen, changed, now;
	unsigned int i;

	for (i = 0; i < ctl->n; i++) {
		atomic_store(&ctl->w[i].group_got, 0);
		ctl->w[i].group_sent = ctl->w[i].group_refused = 0;
	}
	ctl->group_begin = bl_mono_ns() + 50000000;
	ctl->group_from = ctl->group_begin + WARM_UP_NS;
	ctl->group_to = ctl->group_from + (uint64_t)(ctl->p.group_s * 1e9);
	atomic_store(&ctl->cell, cell);
	atomic_store(&ctl->phase, PH_GROUP);
	seen = 0;
	changed = bl_mono_ns();
	end = ctl->group_to + DRAIN_MAX_NS;
	while ((now = bl_mono_ns()) < end) {
		nap_ns(50000000);
		if (bench_worker_lost(ctl))
			return 1;
		if (count_received(ctl) != seen)
			changed = now;
		seen = count_received(ctl);
		if (now > ctl->group_to && now - changed > DRAIN_NS)
			break;
		out_progress("all talk, %u messages/s each: %s, %" PRIu64 " delivered",
			     ctl->p.group_rate, names[cell], seen);
	}
	atomic_store(&ctl->phase, PH_IDLE);
	nap_ns(150000000);
	return 0;
}

int bench_group(struct bench_ctl *ctl, json_t *res)
{
	json_t *rows = json_array(), *row;
	int cell, err = 0;

	for (cell = 0; !err && cell < GROUP_CELLS; cell++) {
		err = run_group_cell(ctl, cell);
		row = err ? NULL : make_row(ctl, cell);
		if (row)
			json_array_append_new(rows, row);
	}
	out_progress_end();
	json_object_set_new(res, "group", rows);
	return err;
}
