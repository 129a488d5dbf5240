/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Load beside restarts, of both streams, and what a receiver notices of them.
 *
 * Each host has one endpoint, which sends a reliable and a best-effort scattering at a time to all
 * endpoints, itself included. Since everybody sends everything to everybody, all endpoints must
 * deliver the same messages in the same order: they compare a running hash of what they delivered.
 * Messages of a sender are numbered by stream, so a message that is lost shows at once.
 *
 * 	load_begin(8, 8000);		8 hosts; each sends every 8 ms, and one of them every ms
 * 	load_window();			from here on gaps are counted anew
 * 	...
 * 	load_goes_on("goes on");	everybody has delivered more of both streams
 * 	gap = load_gap(LOAD_RELIABLE);	the longest time in which one of them delivered nothing
 * 	load_end(&v);
 */
#ifndef BARLINE_TESTS_RESTART_LOAD_H
#define BARLINE_TESTS_RESTART_LOAD_H

#include <stdatomic.h>

#include "tests/net/rack.h"

enum load_stream { LOAD_RELIABLE, LOAD_BEST_EFFORT, LOAD_STREAMS };
enum load_phase { LOAD_WAIT, LOAD_TALK, LOAD_DRAIN, LOAD_EXIT };

#define LOAD_WINDOWS 8192 /* load_window() may be called so often */
#define LOAD_BYTES   256  /* length of a message */

/** struct load_message - the begin of a message. */
struct load_message {
	uint32_t sender, stream;
	uint64_t seq;
};

/** struct load_worker - written by the worker, read by the script. */
struct load_worker {
	_Atomic int ready;
	pid_t pid; /* written by the script */
	struct bl_addr addr;
	_Atomic uint64_t sent[LOAD_STREAMS], got[LOAD_STREAMS], hash[LOAD_STREAMS];
	_Atomic uint64_t lost;     /* messages of which a later one of the same sender came first */
	_Atomic uint64_t reported; /* messages of its own that it was told were not delivered */
	_Atomic uint64_t gone;     /* calls of its proc_gone callback */
	_Atomic uint64_t failed;   /* those for others than who left in order */
	_Atomic uint64_t shutdown; /* sends that were refused because the host is drained */
	_Atomic uint64_t away;     /* bit: those that left, to whom it does not send any more */
	_Atomic int stale;         /* its endpoint is out */
	_Atomic uint64_t gap_ns[LOAD_WINDOWS][LOAD_STREAMS];
	_Atomic uint64_t gap_end_ns[LOAD_WINDOWS][LOAD_STREAMS]; /* CLOCK_MONOTONIC */
	char error[256];                                         /* "": none */
};

static struct load {
	unsigned int n;
	uint64_t interval_ns; /* between two scatterings of a stream of an endpoint */
	_Atomic int phase;
	_Atomic unsigned int window;
	_Atomic uint64_t without; /* bit: those to whom nobody sends; the script decides */
	struct load_worker w[LAB_HOSTS_MAX];
} * load; /* shared with the workers */

/** struct load_verdict - the result of load_end(). */
struct load_verdict {
	uint64_t sent, lost, reported, gone;
	bool one_order[LOAD_STREAMS];
};

/* ---- the worker ---- */

struct load_own {
	struct load_worker *me;
	struct bl_endpoint *ep;
	unsigned int i;
	uint64_t next_ns, last_ns[LOAD_STREAMS], want[LAB_HOSTS_MAX][LOAD_STREAMS];
};

T_FN void load_on_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		       enum bl_fail_reason why)
{
	struct load_own *o = ctx;

	(void)ts, (void)dst, (void)cookie, (void)why;
	o->me->reported++;
}

T_FN void load_on_gone(void *ctx, const struct bl_addr *who, uint64_t ts, enum bl_gone_reason why)
{
	struct load_own *o = ctx;

	unsigned int i;

	(void)ts;
	for (i = 0; i < load->n; i++)
		if (!memcmp(load->w[i].addr.ip, who->ip, sizeof(who->ip)))
			o->me->away |= 1ULL << i;
	o->me->gone++;
	o->me->failed += why != BL_GONE_LEFT;
}

__attribute__((noreturn)) T_FN void load_fail(struct load_own *o, const char *what, int rc)
{
	snprintf(o->me->error, sizeof(o->me->error), "%s: %d %s", what, rc, bl_strerror(o->ep));
	_exit(1);
}

T_FN void load_send(struct load_own *o, enum load_stream s)
{
	uint8_t text[LOAD_BYTES] = { 0 };
	struct bl_msg vec[LAB_HOSTS_MAX];
	struct load_message m = { .sender = o->i, .stream = s, .seq = o->me->sent[s] };
	unsigned int i, n = 0;
	int rc;

	memcpy(text, &m, sizeof(m));
	for (i = 0; i < load->n; i++)
		if (!((o->me->away | load->without) >> i & 1))
			vec[n++] = (struct bl_msg){ .dst = load->w[i].addr,
						    .data = text,
						    .len = sizeof(text) };
	rc = s == LOAD_RELIABLE ? bl_send_reliable(o->ep, vec, n, 0) : bl_send(o->ep, vec, n, 0);
	if (!rc)
		o->me->sent[s]++;
	else if (rc == -ESHUTDOWN)
		o->me->shutdown++;
	else if (rc == -ESTALE)
		o->me->stale = 1;
	else if (rc != -EAGAIN)
		load_fail(o, "send", rc);
}

T_FN void load_take(struct load_own *o, enum load_stream s)
{
	struct bl_delivery d[64];
	uint64_t now, gap;
	int n, i;

	do {
		n = s == LOAD_RELIABLE ? bl_recv_reliable(o->ep, d, 64, 0)
				       : bl_recv(o->ep, d, 64, 0);
		if (n == -ESTALE)
			o->me->stale = 1;
		else if (n < 0 && n != -EINTR)
			load_fail(o, "recv", n);
		if (n <= 0)
			return;
		now = t_mono();
		gap = o->last_ns[s] ? now - o->last_ns[s] : 0;
		o->last_ns[s] = now;
		if (gap > o->me->gap_ns[load->window][s]) {
			o->me->gap_ns[load->window][s] = gap;
			o->me->gap_end_ns[load->window][s] = now;
		}
		for (i = 0; i < n; i++) {
			struct load_message m;
			uint64_t *want;

			memcpy(&m, d[i].data, sizeof(m));
			if (d[i].len != LOAD_BYTES || m.sender >= load->n || m.stream != s)
				load_fail(o, "a message that nobody sent", (int)d[i].len);
			want = &o->want[m.sender][s];
			if (m.seq < *want)
				load_fail(o, "a message twice", (int)m.seq);
			o->me->lost += m.seq - *want;
			*want = m.seq + 1;
			o->me->hash[s] =
				(o->me->hash[s] ^ (m.seq << 8 | m.sender)) * 0xD6E8FEB86659FD93ULL;
			o->me->got[s]++;
		}
	} while (n == 64);
}

__attribute__((noreturn)) T_FN void load_work(unsigned int i)
{
	struct bl_options opt = { 0 };
	struct load_own *o = calloc(1, sizeof(*o));
	uint64_t now;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rack_enter(rack_host(i));
	o->me = &load->w[i];
	o->i = i;
	rc = bl_init(&o->ep, &opt);
	if (rc)
		load_fail(o, "bl_init", rc);
	bl_on_send_fail(o->ep, load_on_fail, o);
	bl_on_proc_gone(o->ep, load_on_gone, o);
	o->me->addr = *bl_self(o->ep);
	o->me->ready = 1;
	while (load->phase != LOAD_EXIT) {
		now = t_mono();
		/* The senders take turns. One that is late does not catch up. */
		if (o->me->stale) {
			usleep(1000);
			continue;
		}
		if (load->phase == LOAD_TALK && now >= o->next_ns) {
			load_send(o, LOAD_RELIABLE);
			load_send(o, LOAD_BEST_EFFORT);
			o->next_ns = (now / load->interval_ns + 1) * load->interval_ns +
				     load->interval_ns * i / load->n;
		}
		load_take(o, LOAD_RELIABLE);
		load_take(o, LOAD_BEST_EFFORT);
		bl_wait(o->ep, BL_WAIT_RECV | BL_WAIT_RECV_RELIABLE, 1);
	}
	bl_exit(o->ep);
	_exit(0);
}

/* ---- the script ---- */

T_FN void load_say(void)
{
	unsigned int i;

	for (i = 0; load && i < load->n; i++) {
		const struct load_worker *w = &load->w[i];

		fprintf(stderr,
			"endpoint %u on h%u: sent %" PRIu64 " and %" PRIu64 ", got %" PRIu64
			" and %" PRIu64 ", lost %" PRIu64 ", reported %" PRIu64 ", gone %" PRIu64
			" %s\n",
			w->addr.port, i + 1, w->sent[0], w->sent[1], w->got[0], w->got[1], w->lost,
			w->reported, w->gone, w->error);
	}
}

T_FN void load_check(void)
{
	unsigned int i;

	for (i = 0; i < load->n; i++)
		CHECK(!load->w[i].error[0], "endpoint on h%u: %s", i + 1, load->w[i].error);
}

/* Starts an endpoint on each of @hosts hosts. They begin to talk. */
T_FN void load_begin(unsigned int hosts, unsigned int interval_us)
{
	uint64_t end = t_mono() + 60000000000ULL;
	unsigned int i;
	pid_t pid;

	load = mmap(NULL, sizeof(*load), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(load != MAP_FAILED, "%s", strerror(errno));
	load->n = hosts;
	load->interval_ns = interval_us * 1000ULL;
	for (i = 0; i < hosts; i++) {
		fflush(NULL);
		pid = fork();
		CHECK(pid >= 0, "%s", strerror(errno));
		if (!pid)
			load_work(i);
		load->w[i].pid = pid;
	}
	for (i = 0; i < hosts; i++)
		for (; !load->w[i].ready; rack_serve(1)) {
			load_check();
			CHECK(t_mono() < end, "no endpoint on h%u", i + 1);
		}
	load->phase = LOAD_TALK;
}

/* From now on gaps are counted anew. */
T_FN void load_window(void)
{
	CHECK(load->window + 1 < LOAD_WINDOWS, "more than %d windows", LOAD_WINDOWS);
	load->window++;
}

/* Waits until every endpoint has delivered @more messages of each stream. */
T_FN void load_goes_on(unsigned int more, const char *when)
{
	uint64_t since[LAB_HOSTS_MAX][LOAD_STREAMS], end = t_mono() + 60000000000ULL;
	unsigned int i, s;

	for (i = 0; i < load->n; i++)
		for (s = 0; s < LOAD_STREAMS; s++)
			since[i][s] = load->w[i].got[s];
	for (i = 0; i < load->n; i++)
		for (s = 0; s < LOAD_STREAMS; s++)
			for (; load->w[i].got[s] < since[i][s] + more; rack_serve(1)) {
				load_check();
				CHECK(t_mono() < end, "h%u delivers nothing when it %s", i + 1,
				      when);
			}
}

/** struct load_pause - a gap: who delivered nothing, for how long, and until when. */
struct load_pause {
	unsigned int who;
	uint64_t ns, end_ns;
};

/* The longest gap of a stream at any endpoint since load_window(). */
T_FN struct load_pause load_gap(enum load_stream s)
{
	struct load_pause worst = { 0 };
	unsigned int i;

	for (i = 0; i < load->n; i++) {
		uint64_t gap = load->w[i].gap_ns[load->window][s];

		if (gap > worst.ns)
			worst = (struct load_pause){
				.who = i,
				.ns = gap,
				.end_ns = load->w[i].gap_end_ns[load->window][s],
			};
	}
	return worst;
}

T_FN void load_sum(struct load_verdict *v)
{
	unsigned int i, s;

	*v = (struct load_verdict){ .one_order = { true, true } };
	for (i = 0; i < load->n; i++) {
		v->sent += load->w[i].sent[0] + load->w[i].sent[1];
		v->lost += load->w[i].lost;
		v->reported += load->w[i].reported;
		v->gone += load->w[i].gone;
		for (s = 0; s < LOAD_STREAMS; s++)
			v->one_order[s] &= load->w[i].hash[s] == load->w[0].hash[s];
	}
}

T_FN bool load_drained(void)
{
	uint64_t sent[LOAD_STREAMS] = { 0 };
	unsigned int i, s;

	for (i = 0; i < load->n; i++)
		for (s = 0; s < LOAD_STREAMS; s++)
			sent[s] += load->w[i].sent[s];
	for (i = 0; i < load->n; i++)
		for (s = 0; s < LOAD_STREAMS; s++)
			if (load->w[i].got[s] + load->w[i].lost < sent[s])
				return false;
	return true;
}

/* Ends the load, whatever is under way. */
T_FN void load_quit(void)
{
	unsigned int i;

	load_check();
	load->phase = LOAD_EXIT;
	for (i = 0; i < load->n; i++)
		while (waitpid(load->w[i].pid, NULL, WNOHANG) != load->w[i].pid)
			rack_serve(1);
	munmap(load, sizeof(*load));
	load = NULL;
}

/* Ends the load. What was sent last and is not delivered after some seconds counts as lost. */
T_FN void load_end(struct load_verdict *v)
{
	uint64_t end = t_mono() + 20000000000ULL, missing = 0, all = 0;
	unsigned int i, s;

	load->phase = LOAD_DRAIN;
	while (!load_drained() && t_mono() < end) {
		load_check();
		rack_serve(5);
	}
	load_sum(v);
	for (i = 0; i < load->n; i++)
		for (s = 0; s < LOAD_STREAMS; s++) {
			all += load->w[i].sent[s] * load->n;
			missing += load->w[i].got[s];
		}
	v->lost = all - missing;
	load_quit();
}

#endif
