// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See kill.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/time.h"
#include "bench/kill/kill.h"
#include "lib/barline.h"

/** struct worker - The private state of a worker process. */
struct worker {
	struct kill_ctl *c;
	struct kill_worker *me;
	unsigned int i;
	struct bl_endpoint *ep;
	uint64_t next_ns; /* when the next scattering is due */
	uint64_t last_ts; /* timestamp of the last delivery */
	uint64_t rnd;     /* state of draw_random() */
	uint64_t dead;    /* hosts that failed, to which it does not send; bit: host */
	uint8_t buf[1400];
};

static void record_failure(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			   enum bl_fail_reason why)
{
	struct worker *w = ctx;

	(void)ts, (void)dst, (void)why;
	if (cookie < KILL_SENT)
		w->me->failed[cookie] = true;
}

static void record_death(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	struct worker *w = ctx;
	unsigned int i;

	(void)ts;
	for (i = 0; i < w->c->n; i++)
		if (!memcmp(w->c->w[i].addr.ip, who->ip, sizeof(who->ip)) &&
		    (!who->port || w->c->w[i].addr.port == who->port))
			w->dead |= 1ULL << i;
	if (!atomic_load(&w->me->told_ns))
		atomic_store(&w->me->told_ns, bl_mono_ns());
}

static int fail_worker(struct worker *w, const char *what, const char *why)
{
	snprintf(w->me->error, sizeof(w->me->error), "%s: %s", what, why);
	return 1;
}

/* xorshift64* */
static uint64_t draw_random(struct worker *w)
{
	w->rnd ^= w->rnd >> 12;
	w->rnd ^= w->rnd << 25;
	w->rnd ^= w->rnd >> 27;
	return w->rnd * 0x2545F4914F6CDD1DULL;
}

/* sends a scattering to all, itself included, or to a few random receivers */
static int send_scattering(struct worker *w)
{
	struct bl_msg vec[LAB_HOSTS_MAX];
	struct kill_message *m = (void *)w->buf;
	uint32_t seq = atomic_load(&w->me->nsent);
	uint64_t to = w->c->n == 64 ? ~0ULL : (1ULL << w->c->n) - 1;
	unsigned int i, n = 0;
	int rc;

	if (seq == KILL_SENT)
		return 0;
	*m = (struct kill_message){ .sender = w->i, .seq = seq, .sent_ns = bl_mono_ns() };
	if (w->c->fan) {
		uint64_t few = 0;

		for (i = 0; i < w->c->fan; i++)
			few |= 1ULL << (draw_random(w) >> 32) % w->c->n;
		to = few;
	}
	to &= ~w->dead;
	if (!to)
		return 0;
	for (i = 0; i < w->c->n; i++)
		if (to >> i & 1)
			vec[n++] = (struct bl_msg){ .dst = w->c->w[i].addr,
						    .data = w->buf,
						    .len = w->c->size,
						    .cookie = seq };
	w->me->sent[seq] = (struct kill_sent){ .to = to, .after = w->last_ts };
	/* before the send, because a worker that is killed inside of it may have sent */
	atomic_store(&w->me->nsent, seq + 1);
	rc = bl_send_reliable(w->ep, vec, n, 0);
	if (!rc)
		return 0;
	atomic_store(&w->me->nsent, seq);
	return rc == -EAGAIN ? 0 : fail_worker(w, "bl_send_reliable", bl_strerror(w->ep));
}

static int receive_messages(struct worker *w, int timeout_ms)
{
	struct bl_delivery d[64];
	int n = bl_recv_reliable(w->ep, d, 64, timeout_ms), i;
	uint64_t late = atomic_load(&w->c->late_ns), now = bl_mono_ns();

	if (n < 0 && n != -EINTR)
		return fail_worker(w, "bl_recv_reliable", bl_strerror(w->ep));
	for (i = 0; i < n; i++) {
		uint32_t k = atomic_load(&w->me->ngot);
		struct kill_message m;

		if (d[i].len != w->c->size)
			return fail_worker(w, "a message", "has another length than was sent");
		memcpy(&m, d[i].data, sizeof(m)); /* a delivery may be unaligned */
		if (k == KILL_GOT)
			return fail_worker(w, "the diary",
					   "is full; send less often, or run for a shorter time");
		w->me->got[k] = (struct kill_got){
			.sender = m.sender, .seq = m.seq, .ts = d[i].ts, .at_ns = now
		};
		atomic_store(&w->me->ngot, k + 1);
		w->last_ts = d[i].ts;
		if (late && m.sent_ns >= late && !atomic_load(&w->me->recovered_ns))
			atomic_store(&w->me->recovered_ns, now);
	}
	return 0;
}

static void record_turn(struct kill_worker *me, uint64_t now)
{
	uint64_t before = atomic_exchange(&me->turn_ns, now);

	if (before && now - before > atomic_load(&me->gap_ns))
		atomic_store(&me->gap_ns, now - before);
}

static int run_phases(struct worker *w)
{
	int phase, rc = 0;

	while (!rc && (phase = atomic_load(&w->c->phase)) != KILL_EXIT) {
		uint64_t now = bl_mono_ns();

		record_turn(w->me, now);

		if (atomic_load(&w->me->leave) &&
		    bl_wait(w->ep, BL_WAIT_ACKED, 0) & BL_WAIT_ACKED) {
			atomic_store(&w->me->left, 1);
			break;
		}
		if (phase == KILL_TALK && now >= w->next_ns && !atomic_load(&w->me->leave)) {
			/* a worker that is late does not catch up, to avoid bursts */
			w->next_ns = now + w->c->interval_us * 1000ULL;
			rc = send_scattering(w);
		}
		if (phase == KILL_DRAIN && bl_wait(w->ep, BL_WAIT_ACKED, 0) & BL_WAIT_ACKED)
			atomic_store(&w->me->all_acked, 1);
		if (!rc)
			rc = receive_messages(w, 1);
	}
	record_turn(w->me, bl_mono_ns());
	return rc;
}

int kill_work(struct kill_ctl *c, unsigned int i)
{
	struct bl_options opt = { .port = 0 };
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return 1;
	prctl(PR_SET_NAME, "failover");
	w->c = c;
	w->i = i;
	w->me = &c->w[i];
	w->rnd = (c->seed + 1) * 0x9E3779B97F4A7C15ULL + i;
	if (bl_init(&w->ep, &opt))
		return fail_worker(w, "bl_init", bl_strerror(NULL));
	bl_on_send_fail(w->ep, record_failure, w);
	bl_on_proc_fail(w->ep, record_death, w);
	w->me->addr = *bl_self(w->ep);
	atomic_store(&w->me->ready, 1);
	err = run_phases(w);
	w->me->stats.size = sizeof(w->me->stats);
	bl_get_stats(w->ep, &w->me->stats);
	bl_exit(w->ep);
	free(w);
	return err;
}
