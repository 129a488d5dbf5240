// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fastpass on a host, the daemon's part: one thread speaks FCP for all hosts of the process. What
 * hosts want it reads from the mmapped "fp_dests"; what the arbiter gives it enters there and tells
 * the pacer (maps/fastpass_abi.h).
 *
 * Example: bl_hold_xdp holds two full frames for destination 3, which is endpoint 7: want 2, and
 * the bell rings. The thread sends REQ {7: 2}; 40 us later an ALLOC comes: slots 900 and 903. It
 * sets both bits, lowers the time of destination 3 to the begin of 900, and wakes the pacer if that
 * sleeps. If the pacer misses 903, it counts it, and the thread asks for one more.
 *
 * A turn takes a pause of about a slot, so that what is held meanwhile becomes one request
 * (Fastpass section 5.3 aggregates over a few microseconds, too). A packet ends the pause, since
 * slots that come too late are lost; but not two pauses in a row, or whoever floods the port would
 * have the thread run all the time, and before all others. Requests are PACE_SLOTS slots apart at
 * least.
 *
 * Every AUDIT_NS it is checked that what is wanted is somewhere: asked for, or given. What is not
 * was lost between programs and daemon (a restart), and is asked for again.
 *
 * Requests go to the arbiter that answered within the last millisecond, or the last eight slots if
 * these are longer. If none did, or an arbiter called, they go to every arbiter of the file; those
 * that stand by ignore them (Fastpass section 5.1 uses a multicast group for this; addresses also
 * pass routers that carry none).
 *
 * If nobody has answered for fallback_ms (core/fastpass/fcp_vain_core.h), frames go without slots,
 * as under policy none: the thread says so in struct bl_fp_page and lets everything go that is
 * held. It goes on asking, and the first answer ends it. The same is done while bus time is not
 * known, or the arbiter has slots of another length.
 */
#include "loader/admission/fastpass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/fastpass/fastpass_core.h"
#include "core/fastpass/fcp_host_core.h"
#include "core/fastpass/fcp_vain_core.h"
#include "core/queue/dest_core.h"
#include "core/queue/queue_core.h"
#include "loader/admission/fastpass_faults.h"
#include "loader/admission/pacer.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"
#include "proto/fastpass_file.h"

#define PAUSE_MIN_NS 10000ULL
#define PAUSE_MAX_NS 1000000ULL
#define AUDIT_NS     10000000ULL
#define SLEEP_MAX_NS                                                                \
	50000000ULL /* a bell that was missed costs that, and bus time is looked at \
		     */
#define HOSTS_MAX  256
#define HOME_NS    1000000ULL
#define HOME_SLOTS 8
#define PACE_SLOTS 8
/* packets in one turn: whoever floods the port must not keep the thread from all else */
#define BATCH 256

/** struct arbiter - where requests go. */
struct arbiter {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage any;
	};
	socklen_t len;
};

/**
 * struct bl_fpass - one host. @told: slots wanted that FCP knows of, by destination; @missed: of
 * struct bl_fp_dest, likewise. @entered: slots put into its ring. @short_by: by how much it was
 * short at the last audit. @home: the arbiter whose packet was the last that was taken; @narbiters:
 * none of the list. @of: destinations by endpoint: the first one's number, and @next_of the next
 * one's; 0: none.
 */
struct bl_fpass {
	struct bl_fpass *next;
	struct bl_node *node;
	struct bl_fcp_host fcp;
	void *mem;
	struct arbiter arbiter[BL_FP_ARBITERS_MAX];
	unsigned int narbiters, home;
	int sock, macs_fd, bell_fd;
	uint32_t slot_ns, late_ns;
	uint64_t fallback_ns; /* 0: waits for ever */
	struct bl_fcp_vain vain;
	struct bl_fp_peer *peer;
	unsigned int npeers;
	struct bl_fp_dest *dest;
	struct bl_fp_page *page;
	struct bl_due *due;
	unsigned long *bell_read;
	const unsigned long *bell_written;
	uint64_t told[BL_DESTS], missed[BL_DESTS], entered[BL_DESTS], short_by[BL_DESTS];
	uint8_t next_of[BL_DESTS];
	uint8_t *of;
	uint64_t audit_ns, complained_ns, offset_ns;
	uint64_t resets;
	struct bl_freport *report; /* NULL: nobody isolates faults */
};

struct bl_fpass_thread {
	pthread_t thread;
	pthread_mutex_t lock; /* guards @hosts */
	struct bl_fpass *hosts;
	bool quit;
	int kick_fd;
};

#define DESTS_BYTES (BL_DESTS * sizeof(struct bl_fp_dest))

static size_t pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

/* ---- what is wanted ---- */

/* Is it @p's? */
static bool is_peer(const struct bl_fp_peer *p, const struct bl_hold_dest *who)
{
	struct bl_mac_key key;
	unsigned int k;

	if (!who->kind)
		return p->has_mac && !memcmp(p->mac, who->mac, 6);
	for (k = 0; k < p->napps; k++) {
		bl_fp_key(p->app[k], &key);
		if (key.kind == who->kind && !memcmp(key.mac, who->mac, sizeof(key.mac)) &&
		    !memcmp(key.upper, who->upper, sizeof(key.upper)))
			return true;
	}
	return false;
}

/* Whatever is held for destination @n leaves, or is looked at by the pacer. */
static void look_at(struct bl_fpass *h, uint32_t n)
{
	if (bl_due_lower(h->due, n, bl_mono_ns()))
		bl_pacer_wake(&h->node->pace);
}

/* Who is destination @n? Fails if it loses its owner at this moment: endpoint is RETIRED then. */
static void resolve(struct bl_fpass *h, uint32_t n)
{
	struct bl_hold_dest who;
	unsigned int i;

	if (bpf_map_lookup_elem(h->macs_fd, &n, &who) || who.used != BL_DEST_USED ||
	    who.kind == BL_DEST_FLOW)
		return;
	for (i = 0; i < h->npeers; i++)
		if (i != h->fcp.self && is_peer(&h->peer[i], &who)) {
			if (!__sync_bool_compare_and_swap(&h->dest[n].endpoint, BL_FP_UNKNOWN,
							  i + 1))
				return;
			h->next_of[n] = h->of[i];
			h->of[i] = (uint8_t)n;
			return;
		}
	if (!__sync_bool_compare_and_swap(&h->dest[n].endpoint, BL_FP_UNKNOWN, BL_FP_OUTSIDE))
		return;
	/* what is held already goes now */
	look_at(h, n);
}

/*
 * The owner of number @n has it no more: slots that it was given are nobody's, and what is still to
 * come for that endpoint finds another number or none. When endpoint is UNKNOWN again, the pacer
 * gives the number to others (bl_number_free() in bpf/host/sweep.h), whose first frame makes it
 * wanted.
 */
static void forget(struct bl_fpass *h, uint32_t n)
{
	struct bl_fp_dest *d = &h->dest[n];
	unsigned int i;
	uint8_t *at;

	for (i = 0; i < h->npeers; i++)
		for (at = &h->of[i]; *at; at = &h->next_of[*at])
			if (*at == n) {
				*at = h->next_of[n];
				break;
			}
	h->next_of[n] = 0;
	for (i = 0; i < BL_FP_WORDS; i++)
		(void)__sync_lock_test_and_set(&d->word[i].bits, 0);
	h->told[n] = BL_FP_WANTED(BL_READ_ONCE(d->want));
	h->missed[n] = BL_READ_ONCE(d->missed);
	h->entered[n] = h->told[n] + h->missed[n];
	h->short_by[n] = 0;
	__atomic_store_n(&d->endpoint, BL_FP_UNKNOWN, __ATOMIC_SEQ_CST);
}

static void want(struct bl_fpass *h, uint32_t endpoint, uint64_t slots)
{
	if (!slots)
		return;
	bl_fcp_host_want(&h->fcp, endpoint, (uint32_t)slots);
	h->page->asked += slots;
}

/*
 * While it goes without slots: who is behind @n must be known all the same, for frames are counted
 * by endpoint; and a frame whose hook did not know of the fall-back yet must not wait for a slot.
 */
static void without_slots(struct bl_fpass *h, uint32_t n, bool wants)
{
	if (BL_READ_ONCE(h->dest[n].endpoint) == BL_FP_UNKNOWN)
		resolve(h, n);
	if (wants)
		look_at(h, n);
}

/* what came since the last look; true if there was anything */
static bool gather(struct bl_fpass *h)
{
	bool any = false;
	uint32_t n;

	for (n = 1; n < bl_numbers_used(h->due); n++) {
		struct bl_fp_dest *d = &h->dest[n];
		uint64_t wanted = BL_FP_WANTED(BL_READ_ONCE(d->want)),
			 missed = BL_READ_ONCE(d->missed);
		uint32_t endpoint = BL_READ_ONCE(d->endpoint);

		if (endpoint == BL_FP_RETIRED) {
			forget(h, n);
			continue;
		}
		if (h->vain.fallen)
			without_slots(h, n, wanted != h->told[n]);
		if (wanted == h->told[n] && missed == h->missed[n])
			continue;
		if (endpoint == BL_FP_UNKNOWN) {
			resolve(h, n);
			endpoint = BL_READ_ONCE(d->endpoint);
		}
		if (endpoint == BL_FP_UNKNOWN || endpoint == BL_FP_RETIRED)
			continue;
		if (endpoint != BL_FP_OUTSIDE)
			want(h, endpoint - 1, wanted - h->told[n] + missed - h->missed[n]);
		h->told[n] = wanted;
		h->missed[n] = missed;
		any = true;
	}
	return any;
}

/*
 * What is wanted and neither asked for nor given, twice in a row: was lost between here and there.
 */
static void audit(struct bl_fpass *h)
{
	uint32_t n, k;

	for (n = 1; n < bl_numbers_used(h->due); n++) {
		uint32_t endpoint = BL_READ_ONCE(h->dest[n].endpoint);
		uint64_t under_way, there, missing = 0;

		if (endpoint == BL_FP_UNKNOWN || endpoint == BL_FP_OUTSIDE ||
		    endpoint == BL_FP_RETIRED)
			continue;
		under_way = 0;
		there = bl_fcp_host_needs(&h->fcp.e.pair[endpoint - 1]);
		for (k = h->of[endpoint - 1]; k; k = h->next_of[k]) {
			under_way += bl_fp_under_way(&h->dest[k]);
			there += bl_fp_given(&h->dest[k]);
		}
		if (n == h->of[endpoint - 1] && under_way > there)
			missing = under_way - there;
		if (missing && h->short_by[n]) {
			missing = missing < h->short_by[n] ? missing : h->short_by[n];
			want(h, endpoint - 1, missing);
			h->page->healed += missing;
			missing = 0;
		}
		h->short_by[n] = missing;
	}
}

/* ---- what is given ---- */

/* of the destinations behind an endpoint (nearly always one), the one that waits for most */
static uint32_t whose(const struct bl_fpass *h, uint32_t endpoint)
{
	uint32_t n = h->of[endpoint], best = n;

	for (; n; n = h->next_of[n])
		if ((int64_t)(h->told[n] + h->missed[n] - h->entered[n]) >
		    (int64_t)(h->told[best] + h->missed[best] - h->entered[best]))
			best = n;
	return best;
}

static void take(struct bl_fpass *h, const struct bl_fcp_pkt *k, uint64_t now)
{
	uint64_t oldest = bl_fp_oldest(h->offset_ns, h->slot_ns, h->late_ns, now);
	__u64 lapsed = 0;
	struct bl_fcp_slots s;
	uint32_t i, j, n;

	for (i = 0; i < k->nruns; i++) {
		uint64_t first = BL_DUE_NEVER;

		bl_fcp_slots_at(k, i, &s);
		for (j = 0; j < s.count; j++) {
			/* the wire has its low 48 bits: of slots of 1.23 us, ten years */
			uint64_t slot =
				bl_ext48((s.first + j * s.stride) & 0xffffffffffffULL, oldest);

			n = whose(h, s.dst);
			if (!n)
				continue; /* nobody is behind that endpoint any more */
			if (bl_fp_give(&h->dest[n], slot, s.path, oldest, &lapsed)) {
				h->page->refused++;
				want(h, s.dst, 1);
				continue;
			}
			h->entered[n]++;
			if (slot < first)
				first = slot;
		}
		h->page->given += s.count;
		/* what the pacer never came to use in the last round of the ring */
		want(h, s.dst, lapsed);
		lapsed = 0;
		if (first == BL_DUE_NEVER)
			continue;
		if (!h->page->first_ns)
			BL_WRITE_ONCE(h->page->first_ns, now);
		h->page->last_ns = now;
		n = h->of[s.dst];
		for (; n; n = h->next_of[n])
			if (bl_due_lower(h->due, n,
					 bl_fp_slot_begin(h->offset_ns, h->slot_ns, first)))
				bl_pacer_wake(&h->node->pace);
	}
}

static void complain(struct bl_fpass *h, enum bl_fcp_reason why, uint64_t now)
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

static bool same_address(const struct arbiter *a, const struct arbiter *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	return a->sa.sa_family == AF_INET
		       ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
		       : IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

/* Returns whether an arbiter answered that this host can go by: a CALL is none. */
static bool receive(struct bl_fpass *h, uint64_t now)
{
	struct arbiter from = { .len = sizeof(from.in6) };
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
			complain(h, why, now);
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
			take(h, &k, now);
	}
	return answered;
}

static void transmit(struct bl_fpass *h, uint64_t now)
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
				       h->arbiter[i]
					       .len); /* may be lost, like others on their way */
		h->page->tx++;
	}
}

/* Frames go without slots, or by slots again, from now on. */
static void fall(struct bl_fpass *h)
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
	/* pairs with bl_fp_held(): gather() finds what counted @want before it saw the word */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (n = 1; n < bl_numbers_used(h->due); n++)
		look_at(h, n);
}

static void judge(struct bl_fpass *h, bool answered)
{
	if (bl_fcp_vain_step(&h->vain, bl_mono_ns(), h->fcp.need != 0, answered, h->fallback_ns))
		fall(h);
}

/* One turn for one host; when the next one is due. */
static uint64_t serve(struct bl_fpass *h)
{
	uint64_t now = bl_mono_ns(), next;
	bool answered;

	if (!bl_clock_usable(h->node->clock.shared, now)) {
		/* nobody knows when a slot begins */
		gather(h);
		judge(h, false);
		return now + SLEEP_MAX_NS;
	}
	h->offset_ns = bl_clock_at(h->node->clock.shared, now) - now;
	BL_WRITE_ONCE(h->page->offset_ns, h->offset_ns);
	answered = receive(h, now);
	gather(h);
	judge(h, answered);
	if (now - h->audit_ns >= AUDIT_NS) {
		h->audit_ns = now;
		audit(h);
	}
	transmit(h, bl_mono_ns());
	h->page->lost = h->fcp.lost;
	/* while something is wanted, the audit goes on */
	next = bl_min64(bl_fcp_host_next(&h->fcp),
			h->fcp.need ? h->audit_ns + AUDIT_NS : now + SLEEP_MAX_NS);
	return h->report ? bl_min64(next, bl_freport_turn(h->report, now, h->offset_ns)) : next;
}

/* ---- the thread ---- */

static void asleep(struct bl_fpass_thread *t, uint32_t on)
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

/* What a wait may end for, beside its time and a kick. */
enum wake { WAKE_NOTHING, WAKE_PACKET, WAKE_BELL };

/*
 * Under the lock; lets go of it meanwhile. @ns: at most; @why: for this, or what is before it.
 * Returns whether it ended early.
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

static void sleep_until(struct bl_fpass_thread *t, uint64_t next)
{
	struct bl_fpass *h;
	bool any = false;
	uint64_t now;

	asleep(t, 1);
	/*
	 * pairs with bl_fp_ring(): @want changed, then a look at @asleep; here @asleep, then a look
	 * at all @want
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (h = t->hosts; h; h = h->next)
		any |= gather(h);
	now = bl_mono_ns();
	if (!any && next > now)
		wait_for(t, bl_min64(next, now + SLEEP_MAX_NS) - now, WAKE_BELL);
	asleep(t, 0);
}

static void *fastpass_main(void *ctx)
{
	const struct sched_param prio = { .sched_priority = 1 };
	struct bl_fpass_thread *t = ctx;
	struct bl_fpass *h;
	bool early = false;

	pthread_setname_np(pthread_self(), "barline-fcp");
	/*
	 * without permission requests leave later under load, and slots come too late at times:
	 * asked for again, not wrong
	 */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio);
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&t->lock);
	while (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE)) {
		uint64_t next = BL_DUE_NEVER, pause = PAUSE_MAX_NS;

		for (h = t->hosts; h; h = h->next) {
			next = bl_min64(next, serve(h));
			pause = bl_min64(pause, bl_max64(h->slot_ns, PAUSE_MIN_NS));
		}
		sleep_until(t, next);
		early = wait_for(t, pause, early ? WAKE_NOTHING : WAKE_PACKET);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void kick(struct bl_fpass_thread *t)
{
	uint64_t one = 1;

	if (write(t->kick_fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake */
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
	kick(t);
	pthread_join(t->thread, NULL);
	close(t->kick_fd);
	pthread_mutex_destroy(&t->lock);
	free(t);
	s->fastpass = NULL;
}

/* ---- hosts come and go ---- */

static void host_free(struct bl_fpass *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (h->dest)
		munmap(h->dest, pages(DESTS_BYTES));
	if (h->page)
		munmap(h->page, page);
	if (h->due)
		munmap(h->due, pages(sizeof(*h->due)));
	if (h->bell_read)
		munmap(h->bell_read, page);
	if (h->bell_written)
		munmap((void *)h->bell_written, page);
	if (h->sock >= 0)
		close(h->sock);
	if (h->macs_fd >= 0)
		close(h->macs_fd);
	if (h->bell_fd >= 0)
		close(h->bell_fd);
	bl_freport_close(h->report);
	free(h->mem);
	free(h->peer);
	free(h->of);
	free(h);
}

/* The endpoint whose address this machine has: which one is it? */
static int socket_open(struct bl_fpass *h, const struct bl_fp_file *f, uint32_t *self,
		       struct bl_err *err)
{
	struct arbiter here;
	unsigned int i;
	int last = 0;

	for (i = 0; i < f->npeers; i++) {
		here.len = bl_fp_sa(&here.any, f->peer[i].addr, BL_FCP_PORT);
		h->sock = socket(here.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (h->sock < 0)
			return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
		if (!bind(h->sock, &here.sa, here.len)) {
			*self = i;
			return 0;
		}
		if (errno != EADDRNOTAVAIL)
			last = errno;
		close(h->sock);
		h->sock = -1;
	}
	if (last)
		return bl_fail(err, last, "cannot use UDP port %d: %s", BL_FCP_PORT,
			       strerror(last));
	return bl_fail(err, EADDRNOTAVAIL,
		       "this host has none of the addresses of the Fastpass file's %u endpoints; "
		       "add it there",
		       f->npeers);
}

static int fcp_open(struct bl_fpass *h, const struct bl_fp_file *f, uint32_t self,
		    struct bl_err *err)
{
	struct bl_fcp_end *e = &h->fcp.e;
	uint32_t n = f->npeers, challenge;
	uint8_t *m;

	h->mem = m = calloc(1, BL_FCP_WINDOW * sizeof(*e->sent) +
				       n * (sizeof(*e->pair) + 2 * sizeof(uint16_t)));
	h->peer = calloc(n, sizeof(*h->peer));
	h->of = calloc(n, sizeof(*h->of));
	if (!m || !h->peer || !h->of)
		return bl_fail(err, ENOMEM, "out of memory");
	if (getrandom(&challenge, sizeof(challenge), 0) != sizeof(challenge))
		return bl_fail(err, EIO, "the kernel has no random numbers");
	memcpy(h->peer, f->peer, n * sizeof(*h->peer));
	h->npeers = n;
	e->n = n;
	e->sent = (void *)m;
	e->pair = (void *)(m + BL_FCP_WINDOW * sizeof(*e->sent));
	e->tell.item = (void *)(e->pair + n);
	e->look.item = e->tell.item + n;
	h->fcp.p = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	h->fcp.p.secret[0] = f->secret[0];
	h->fcp.p.secret[1] = f->secret[1];
	h->fcp.p.table = bl_fp_table(f);
	h->fcp.p.rtt_ns = f->rtt_us * 1000ULL;
	h->fcp.p.reorder_ns = f->rtt_us * 500ULL;
	h->fcp.p.ack_ns = f->rtt_us * 500ULL;
	h->fcp.p.pace_ns = PACE_SLOTS * (uint64_t)f->slot_ns;
	h->fcp.p.keep_ns = f->rtt_us * 5000ULL;
	bl_fcp_host_init(&h->fcp, self, challenge);
	return 0;
}

static void *map_fd(int fd, size_t len, off_t at, bool write, const char *name, struct bl_err *err)
{
	void *v = mmap(NULL, len, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, at);

	if (v != MAP_FAILED)
		return v;
	bl_fail(err, errno, "cannot map %s: %s", name, strerror(errno));
	return NULL;
}

static int maps_open(struct bl_fpass *h, struct bpf_object *obj, struct bl_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct bpf_map *dests, *pg, *due, *macs, *bell;
	int rc;

	rc = bl_map_find(obj, BL_MAP_FP_DESTS, sizeof(struct bl_fp_dest), &dests, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_FP_PAGE, sizeof(struct bl_fp_page), &pg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_DUE, sizeof(struct bl_due), &due, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_MACS, sizeof(struct bl_hold_dest), &macs, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_FP_BELL, 0, &bell, err);
	if (rc)
		return rc;
	if (bpf_map__max_entries(dests) != BL_DESTS)
		return bl_fail(err, EPROTO, "the map %s has room for %u destinations, not %d",
			       BL_MAP_FP_DESTS, bpf_map__max_entries(dests), BL_DESTS);
	h->macs_fd = fcntl(bpf_map__fd(macs), F_DUPFD_CLOEXEC, 3);
	h->bell_fd = fcntl(bpf_map__fd(bell), F_DUPFD_CLOEXEC, 3);
	if (h->macs_fd < 0 || h->bell_fd < 0)
		return bl_fail(err, errno, "cannot keep a map: %s", strerror(errno));
	h->dest = map_fd(bpf_map__fd(dests), pages(DESTS_BYTES), 0, true, BL_MAP_FP_DESTS, err);
	h->page = h->dest ? map_fd(bpf_map__fd(pg), page, 0, true, BL_MAP_FP_PAGE, err) : NULL;
	h->due = h->page ? map_fd(bpf_map__fd(due), pages(sizeof(struct bl_due)), 0, true,
				  BL_MAP_HOLD_DUE, err)
			 : NULL;
	/*
	 * a ring buffer's first page is the reader's position, the second the writer's, which may
	 * not be written
	 */
	h->bell_read = h->due ? map_fd(h->bell_fd, page, 0, true, BL_MAP_FP_BELL, err) : NULL;
	h->bell_written =
		h->bell_read ? map_fd(h->bell_fd, page, (off_t)page, false, BL_MAP_FP_BELL, err)
			     : NULL;
	return h->bell_written ? 0 : -EIO;
}

/*
 * What a daemon before left: slots that its session was given are not ours, and what they were for
 * is asked for anew.
 */
static void begin(struct bl_fpass *h)
{
	uint32_t n, i;

	memset(h->page, 0, sizeof(*h->page));
	for (n = 0; n < BL_DESTS; n++) {
		struct bl_fp_dest *d = &h->dest[n];

		for (i = 0; i < BL_FP_WORDS; i++)
			(void)__sync_lock_test_and_set(&d->word[i].bits, 0);
		h->told[n] = d->used + d->idle;
		h->missed[n] = d->missed;
		BL_WRITE_ONCE(d->endpoint, BL_FP_UNKNOWN);
	}
}

int bl_fastpass_add(struct bl_node *n, struct bpf_object *obj, const struct bl_fp_file *f,
		    struct bl_err *err)
{
	struct bl_fpass_thread *t = n->srv->fastpass;
	struct bl_fpass *h = calloc(1, sizeof(*h));
	uint32_t self = 0;
	unsigned int i;
	int rc;

	if (!h)
		return bl_fail(err, ENOMEM, "out of memory");
	h->sock = h->macs_fd = h->bell_fd = -1;
	h->node = n;
	h->slot_ns = f->slot_ns;
	h->late_ns = f->late_us * 1000U;
	if (f->fallback_ms != BL_FP_NO_FALLBACK)
		h->fallback_ns = f->fallback_ms * 1000000ULL;
	for (i = 0; i < f->narbiters; i++)
		h->arbiter[i].len = bl_fp_sa(&h->arbiter[i].any, f->arbiter[i], BL_FCP_PORT);
	h->narbiters = f->narbiters;
	rc = t ? 0 : bl_fail(err, ESRCH, "Fastpass's thread does not run");
	if (!rc)
		rc = maps_open(h, obj, err);
	if (!rc)
		rc = socket_open(h, f, &self, err);
	if (!rc)
		rc = fcp_open(h, f, self, err);
	if (!rc && f->has_faults)
		rc = bl_freport_open(&h->report, obj, f, self, err);
	if (rc) {
		host_free(h);
		return rc;
	}
	begin(h);
	pthread_mutex_lock(&t->lock);
	n->fastpass = h;
	h->next = t->hosts;
	t->hosts = h;
	pthread_mutex_unlock(&t->lock);
	kick(t);
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
	BL_WRITE_ONCE(h->page->asleep, 0); /* nobody listens: nobody need ring */
	BL_WRITE_ONCE(h->page->session, 0);
	BL_WRITE_ONCE(h->page->fallback, 0);
	pthread_mutex_unlock(&t->lock);
	kick(t);
	n->fastpass = NULL;
	host_free(h);
}
