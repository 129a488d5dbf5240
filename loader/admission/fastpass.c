// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fastpass on a host, the daemon's part: one thread speaks FCP for all hosts of the process. It
 * reads what hosts want from the mmapped "fp_dests", enters there the slots that the arbiter gives,
 * and tells the pacer (maps/fastpass_abi.h).
 *
 * Example: bl_hold_xdp holds two full frames for destination 3, which is endpoint 7: want is 2, and
 * the bell rings. The thread sends REQ {7: 2}. 40 us later an ALLOC comes with slots 900 and 903.
 * The thread sets both bits, lowers the time of destination 3 to the begin of slot 900, and wakes
 * the pacer if it sleeps. If the pacer misses slot 903 it counts that, and the thread asks for one
 * more.
 *
 * Between two turns the thread pauses for about a slot, so that frames which are held meanwhile
 * make one request (Fastpass section 5.3 aggregates over a few microseconds, too). A packet ends
 * the pause, since slots that come too late are lost; but not two pauses in a row, or a flood at
 * the port would keep the thread running, before all others. Requests are PACE_SLOTS
 * (fastpass_open.c) apart.
 *
 * Every AUDIT_NS the thread checks that all slots that are wanted were asked for or given. Those
 * that are missing were lost between programs and daemon at a restart, and are asked for again.
 *
 * Requests go to the arbiter that answered within the last millisecond, or within the last eight
 * slots if these are longer. If none did, or an arbiter called, they go to every arbiter of the
 * file, and those that stand by ignore them. (Fastpass section 5.1 uses a multicast group for this;
 * addresses also pass routers that forward no multicast.)
 *
 * If no arbiter has answered for fallback_ms (core/fastpass/fcp_vain_core.h), frames go without
 * slots, as under policy none: the thread says so in struct bl_fp_page and lets all held frames go.
 * It goes on asking, and the first answer ends the fallback. The same happens while bus time is not
 * known, or if the arbiter has slots of another length.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/queue/dest_core.h"
#include "loader/admission/fastpass.h"
#include "loader/admission/fastpass_host.h"
#include "loader/admission/pacer.h"
#include "loader/node_priv.h"

#define PAUSE_MIN_NS 10000ULL
#define PAUSE_MAX_NS 1000000ULL
#define AUDIT_NS     10000000ULL
/* a missed bell, and the next look at whether bus time is valid, take that long at most */
#define SLEEP_MAX_NS 50000000ULL
#define HOSTS_MAX    256
#define HOME_NS      1000000ULL
#define HOME_SLOTS   8
/* packets in one turn: a flood at the port must not keep the thread from all other work */
#define BATCH 256

/** struct bl_fpass_thread - the thread of a process. */
struct bl_fpass_thread {
	pthread_t thread;
	pthread_mutex_t lock;   /* guards @hosts and what they point to */
	struct bl_fpass *hosts; /* list of all hosts of the process */
	bool quit;              /* atomic: the thread is to end */
	int kick_fd;            /* eventfd: ends a wait; @hosts has changed, or @quit */
};

/* ---- packets ---- */

/* Logs, once a second at most, that an arbiter has another file. */
static void log_table_mismatch(struct bl_fpass *h, enum bl_fcp_reason why, uint64_t now)
{
	if (why != BL_FCP_R_BAD_TABLE ||
	    (h->complained_ns && now - h->complained_ns < 1000000000ULL))
		return;
	h->complained_ns = now;
	bl_log(BL_LOG_WARN,
	       "%s: an arbiter has another list of endpoints than this host; give both the same "
	       "file",
	       h->node->meta.name);
}

static bool same_address(const struct bl_fpass_arbiter *a, const struct bl_fpass_arbiter *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	return a->sa.sa_family == AF_INET
		       ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
		       : IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

/*
 * Takes the packets that have come. Returns whether an arbiter answered whose slots this host can
 * use; a CALL is no answer.
 */
static bool receive_packets(struct bl_fpass *h, uint64_t now)
{
	struct bl_fpass_arbiter from = { .len = sizeof(from.in6) };
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX + 8];
	unsigned int left = BATCH;
	struct bl_fcp_pkt k;
	bool answered = false;
	ssize_t n;

	for (; left-- &&
	       (n = recvfrom(h->sock, buf, sizeof(buf), MSG_DONTWAIT, &from.sa, &from.len)) >= 0;
	     from.len = sizeof(from.in6)) {
		enum bl_fcp_reason why = bl_fcp_host_rx(&h->fcp, buf, (uint32_t)n, now, &k);

		h->page->rx++;
		if (why != BL_FCP_R_OK) {
			h->page->bad++;
			log_table_mismatch(h, why, now);
			continue;
		}
		for (h->home = 0;
		     h->home < h->narbiters && !same_address(&from, &h->arbiter[h->home]);
		     h->home++)
			;
		if (h->fcp.resets != h->resets) {
			h->resets = h->fcp.resets;
			h->page->term = h->fcp.term;
			h->page->sessions = h->resets;
			h->page->session_ns = now;
			h->page->first_ns = 0;
			BL_WRITE_ONCE(h->page->session, 1);
			bl_log(BL_LOG_INFO, "%s: the arbiter of term %u answers, slots of %u ns",
			       h->node->meta.name, h->fcp.term, h->fcp.slot_ns);
			if (h->fcp.slot_ns != h->slot_ns)
				bl_log(BL_LOG_ERR,
				       "%s: the arbiter's slots have %u ns, this host's file says "
				       "%u: "
				       "they cannot be used; give both the same file",
				       h->node->meta.name, h->fcp.slot_ns, h->slot_ns);
		}
		if (h->fcp.slot_ns != h->slot_ns)
			continue;
		answered |= k.opcode != BL_FCP_CALL;
		if (k.opcode == BL_FCP_ALLOC)
			bl_fpass_give(h, &k, now);
	}
	return answered;
}

/* Sends what FCP has to send: to the arbiter that answers, or to all of them. */
static void transmit_packets(struct bl_fpass *h, uint64_t now)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	unsigned int i;
	uint32_t len;
	uint64_t home_ns = bl_max64(HOME_NS, HOME_SLOTS * h->slot_ns);
	bool all = !h->fcp.e.nonce || h->fcp.call || h->home >= h->narbiters ||
		   now - h->fcp.e.heard_ns > home_ns;

	while ((len = bl_fcp_host_tx(&h->fcp, now, buf))) {
		for (i = 0; i < h->narbiters; i++)
			if (all || i == h->home)
				sendto(h->sock, buf, len, MSG_DONTWAIT, &h->arbiter[i].sa,
				       h->arbiter[i].len); /* may be lost, as on its way */
		h->page->tx++;
	}
}

/* From now on frames go without slots, or by slots again, as h->vain says. */
static void switch_fallback(struct bl_fpass *h)
{
	uint32_t n;

	BL_WRITE_ONCE(h->page->fallback, h->vain.fallen);
	if (!h->vain.fallen) {
		bl_log(BL_LOG_INFO, "%s: an arbiter answers: frames leave in timeslots again",
		       h->node->meta.name);
		return;
	}
	bl_log(BL_LOG_WARN,
	       "%s: no arbiter has answered for %llu ms: frames leave without timeslots until one "
	       "does; look whether it runs and can be reached (barline arbiter show)",
	       h->node->meta.name, (unsigned long long)(h->fallback_ns / 1000000));
	/*
	 * Pairs with bl_fp_held(): bl_fpass_gather() finds every frame that was counted in @want
	 * before its hook saw the word @fallback.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (n = 1; n < bl_numbers_used(h->due); n++)
		bl_fpass_visit(h, n);
}

/* Notes whether an arbiter answered, which begins or ends the fallback. */
static void update_fallback(struct bl_fpass *h, bool answered)
{
	if (bl_fcp_vain_step(&h->vain, bl_mono_ns(), h->fcp.need != 0, answered, h->fallback_ns))
		switch_fallback(h);
}

/* One turn for one host. Returns when the next one is due. */
static uint64_t serve_host(struct bl_fpass *h)
{
	uint64_t now = bl_mono_ns(), next;
	bool answered;

	if (!bl_clock_usable(h->node->clock.shared, now)) {
		/* without bus time it is not known when a slot begins */
		bl_fpass_gather(h);
		update_fallback(h, false);
		return now + SLEEP_MAX_NS;
	}
	h->offset_ns = bl_clock_at(h->node->clock.shared, now) - now;
	BL_WRITE_ONCE(h->page->offset_ns, h->offset_ns);
	answered = receive_packets(h, now);
	bl_fpass_gather(h);
	update_fallback(h, answered);
	if (now - h->audit_ns >= AUDIT_NS) {
		h->audit_ns = now;
		bl_fpass_audit(h);
	}
	transmit_packets(h, bl_mono_ns());
	h->page->lost = h->fcp.lost;
	/* while something is wanted, the audit goes on */
	next = bl_min64(bl_fcp_host_next(&h->fcp),
			h->fcp.need ? h->audit_ns + AUDIT_NS : now + SLEEP_MAX_NS);
	return h->report ? bl_min64(next, bl_freport_turn(h->report, now, h->offset_ns)) : next;
}

/* ---- the thread ---- */

/* Tells the programs whether they have to ring; when awake again, empties the bells. */
static void set_asleep(struct bl_fpass_thread *t, uint32_t on)
{
	struct bl_fpass *h;

	for (h = t->hosts; h; h = h->next) {
		BL_WRITE_ONCE(h->page->asleep, on);
		if (!on)
			__atomic_store_n(h->bell_read,
					 __atomic_load_n(h->bell_written, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
	}
}

/* What ends a wait, beside its time and a kick; each value includes those before it. */
enum wake { WAKE_NOTHING, WAKE_PACKET, WAKE_BELL };

/*
 * Waits for @ns at most, or until @why. Called with the lock, which it releases meanwhile. Returns
 * whether the wait ended early.
 */
static bool wait_for(struct bl_fpass_thread *t, uint64_t ns, enum wake why)
{
	struct pollfd fds[2 * HOSTS_MAX + 1] = { { .fd = t->kick_fd, .events = POLLIN } };
	struct timespec ts = { .tv_nsec = (long)ns };
	struct bl_fpass *h;
	unsigned int n = 1;
	uint64_t v;
	int woken;

	for (h = why ? t->hosts : NULL; h && n + 1 < sizeof(fds) / sizeof(fds[0]); h = h->next) {
		fds[n++] = (struct pollfd){ .fd = h->sock, .events = POLLIN };
		if (why == WAKE_BELL)
			fds[n++] = (struct pollfd){ .fd = h->bell_fd, .events = POLLIN };
	}
	h = t->hosts;
	pthread_mutex_unlock(&t->lock);
	woken = ppoll(fds, n, h ? &ts : NULL, NULL);
	pthread_mutex_lock(&t->lock);
	if (fds[0].revents && read(t->kick_fd, &v, sizeof(v)) < 0)
		v = 0; /* does not block */
	return woken > 0;
}

/* Sleeps until @next, or until a packet, a bell or a kick comes. */
static void sleep_until(struct bl_fpass_thread *t, uint64_t next)
{
	struct bl_fpass *h;
	bool any = false;
	uint64_t now;

	set_asleep(t, 1);
	/*
	 * Pairs with bl_fp_ring(), which changes @want and then reads @asleep; here @asleep is set
	 * and then every @want is read.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (h = t->hosts; h; h = h->next)
		any |= bl_fpass_gather(h);
	now = bl_mono_ns();
	if (!any && next > now)
		wait_for(t, bl_min64(next, now + SLEEP_MAX_NS) - now, WAKE_BELL);
	set_asleep(t, 0);
}

static void *fastpass_main(void *ctx)
{
	const struct sched_param prio = { .sched_priority = 1 };
	struct bl_fpass_thread *t = ctx;
	struct bl_fpass *h;
	bool early = false;

	pthread_setname_np(pthread_self(), "barline-fcp");
	/*
	 * Without the permission for it, requests leave later under load and some slots come too
	 * late. They are asked for again, so nothing is wrong.
	 */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio);
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&t->lock);
	while (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE)) {
		uint64_t next = BL_DUE_NEVER, pause = PAUSE_MAX_NS;

		for (h = t->hosts; h; h = h->next) {
			next = bl_min64(next, serve_host(h));
			pause = bl_min64(pause, bl_max64(h->slot_ns, PAUSE_MIN_NS));
		}
		sleep_until(t, next);
		early = wait_for(t, pause, early ? WAKE_NOTHING : WAKE_PACKET);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Ends the thread's wait. */
static void kick_thread(struct bl_fpass_thread *t)
{
	uint64_t one = 1;

	if (write(t->kick_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread is awake */
}

int bl_fastpass_start(struct bl_server *s, struct bl_err *err)
{
	struct bl_fpass_thread *t;
	int rc;

	if (s->fastpass) {
		bl_pacer_spare(s, s->fastpass->thread);
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return bl_fail(err, ENOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	t->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = t->kick_fd < 0 ? errno : bl_thread_start(&t->thread, NULL, fastpass_main, t);
	if (rc) {
		if (t->kick_fd >= 0)
			close(t->kick_fd);
		free(t);
		return bl_fail(err, rc, "cannot start Fastpass's thread: %s", strerror(rc));
	}
	s->fastpass = t;
	bl_pacer_spare(s, t->thread);
	return 0;
}

void bl_fastpass_stop(struct bl_server *s)
{
	struct bl_fpass_thread *t = s->fastpass;

	if (!t)
		return;
	__atomic_store_n(&t->quit, true, __ATOMIC_RELEASE);
	kick_thread(t);
	pthread_join(t->thread, NULL);
	close(t->kick_fd);
	pthread_mutex_destroy(&t->lock);
	free(t);
	s->fastpass = NULL;
}

/* ---- hosts come and go ---- */

int bl_fastpass_add(struct bl_node *n, struct bpf_object *obj, const struct bl_fp_file *f,
		    struct bl_err *err)
{
	struct bl_fpass_thread *t = n->srv->fastpass;
	struct bl_fpass *h;
	int rc;

	if (!t)
		return bl_fail(err, ESRCH, "Fastpass's thread does not run");
	rc = bl_fpass_open(&h, n, obj, f, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	n->fastpass = h;
	h->next = t->hosts;
	t->hosts = h;
	pthread_mutex_unlock(&t->lock);
	kick_thread(t);
	return 0;
}

void bl_fastpass_remove(struct bl_node *n)
{
	struct bl_fpass_thread *t = n->srv->fastpass;
	struct bl_fpass *h = n->fastpass, **at;

	if (!h)
		return;
	pthread_mutex_lock(&t->lock);
	for (at = &t->hosts; *at; at = &(*at)->next)
		if (*at == h) {
			*at = h->next;
			break;
		}
	BL_WRITE_ONCE(h->page->asleep, 0); /* no thread listens, so programs need not ring */
	BL_WRITE_ONCE(h->page->session, 0);
	BL_WRITE_ONCE(h->page->fallback, 0);
	pthread_mutex_unlock(&t->lock);
	kick_thread(t);
	n->fastpass = NULL;
	bl_fpass_free(h);
}
