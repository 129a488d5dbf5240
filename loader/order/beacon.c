// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The beacon thread: one thread sends the beacons of all hosts of the process, at the ticks of
 * core/order/beacon_core.h. Where the pacer sends a host's beacons (bpf/host/beacon.h), this file
 * only makes the frame. The thread also updates the clock records of all nodes, switches included
 * (clock.c).
 *
 * The frame is made once. Only its psn changes here, and the egress program fills in B and C. It
 * passes the qdisc as data does, because a beacon must not overtake data. A tick that was missed is
 * not made up for, since the next beacon says more. While the clock is void, no beacon is sent.
 */
#include "loader/order/beacon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_packet.h>

#include "base/iface.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/thread.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/beacon_core.h"
#include "core/queue/queue_core.h"
#include "core/wire_core.h"
#include "loader/load/maps.h"
#include "loader/load/prio.h"
#include "loader/load/tx_cpu.h"
#include "loader/node_priv.h"
#include "loader/order/clock.h"

#define SLEEP_SHORT_NS 5000000ULL

static void send_beacon(struct bl_node *n)
{
	struct bl_hdr *h = (void *)(n->beat.frame + sizeof(struct ethhdr));

	bl_hdr_set_psn(h, n->beat.psn++);
	if (send(n->beacon_sock, n->beat.frame, sizeof(n->beat.frame), MSG_DONTWAIT) >= 0) {
		n->beacon_errno = 0;
		return;
	}
	/* A full queue means that frames with newer barriers are waiting there already. */
	if (errno == ENOBUFS || errno == EAGAIN || errno == n->beacon_errno)
		return;
	n->beacon_errno = errno;
	bl_log(BL_LOG_WARN, "%s: cannot send beacons on %s: %s", n->meta.name, n->att[0].iface.name,
	       strerror(errno));
}

/* Sends a beacon if one is due. Returns the time of the next tick (CLOCK_MONOTONIC). */
static uint64_t beat_node(struct bl_node *n)
{
	uint64_t mono = bl_mono_ns();

	if (!bl_clock_usable(n->clock.shared, mono))
		return mono + BL_BEAT_VOID_NS;
	/* Where data raises no register, it replaces no beacon. */
	if (bl_beat_serve(&n->beat, mono, bl_clock_at(n->clock.shared, mono),
			  n->cfg.auth.mode == BL_AUTH_STRICT ? n->beat.sends
							     : BL_READ_ONCE(n->page->sends)))
		send_beacon(n);
	return n->beat.next_ns;
}

/* Does what is due. Returns the time of what is due next (CLOCK_MONOTONIC). */
static uint64_t serve_node(struct bl_node *n)
{
	uint64_t mono = bl_mono_ns(),
		 next = n->keeping ? bl_clock_tick(&n->clock, mono) : UINT64_MAX;

	return n->page ? bl_min64(next, beat_node(n)) : next;
}

/*
 * Without the permission beacons are late under load, and so are barriers: slower, not wrong. The
 * lock is held.
 */
static void set_thread_priority(struct bl_server *s)
{
	cpu_set_t set;

	s->beacon_prio = false;
	if (!sched_getaffinity(0, sizeof(set), &set))
		bl_prio_first(gettid(), &set, s->beacon_how, 2);
}

static void *beacon_main(void *ctx)
{
	struct bl_server *s = ctx;
	struct bl_node *n;

	pthread_setname_np(pthread_self(), "barline-beacon");
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&s->beacon_lock);
	while (!s->beacon_quit) {
		uint64_t next = UINT64_MAX;
		struct timespec t;

		if (s->beacon_prio)
			set_thread_priority(s);
		if (!s->beacon_nodes) {
			pthread_cond_wait(&s->beacon_cond, &s->beacon_lock);
			continue;
		}
		for (n = s->beacon_nodes; n; n = n->beacon_next)
			next = bl_min64(next, serve_node(n));
		t.tv_sec = (time_t)(next / 1000000000ULL);
		t.tv_nsec = (long)(next % 1000000000ULL);
		/* A long sleep ends when the list changes, or the thread is to end. */
		if (next > bl_mono_ns() + SLEEP_SHORT_NS) {
			pthread_cond_clockwait(&s->beacon_cond, &s->beacon_lock, CLOCK_MONOTONIC,
					       &t);
			continue;
		}
		pthread_mutex_unlock(&s->beacon_lock);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		pthread_mutex_lock(&s->beacon_lock);
	}
	pthread_mutex_unlock(&s->beacon_lock);
	return NULL;
}

static void make_beacon(struct bl_node *n, struct bl_beat *b, uint64_t sends)
{
	static const uint8_t to[6] = BL_BEACON_MAC;
	struct ethhdr *eth = (void *)b->frame;
	struct bl_hdr *h = (void *)(eth + 1);
	/* bl_host_egress fills in the TAI offset and the policy. */
	struct bl_beacon body = { .node_id = htonl(n->meta.node_id) };

	*b = (struct bl_beat){ .node_id = n->meta.node_id,
			       .interval_ns = n->cfg.beacon_us * 1000ULL,
			       .sends = sends };
	memcpy(eth->h_dest, to, 6);
	memcpy(eth->h_source, n->att[0].iface.mac, 6);
	eth->h_proto = htons(BL_ETHERTYPE);
	h->opcode = BL_OPCODE_BYTE(BL_OP_BEACON);
	h->flags = BL_F_LANES(1);
	memcpy(h + 1, &body, sizeof(body)); /* not aligned there */
}

static int open_beacon_socket(const struct bl_iface *nic, int *out, struct bl_err *err)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = nic->ifindex };
	int mark = (int)BL_BEACON_MARK, few = 1, fd, rc = 0;

	/* Protocol 0: the socket receives nothing. */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return bl_fail(err, errno,
			       "cannot make the beacon socket of %s: %s; it takes CAP_NET_RAW",
			       nic->name, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)))
		rc = bl_fail(err, errno,
			     "cannot mark the beacons of %s: %s; it takes CAP_NET_ADMIN", nic->name,
			     strerror(errno));
	/*
	 * The least that the kernel accepts is 4608 bytes: half a dozen beacons. With more, where
	 * the other end of a veth was not served for some milliseconds, beacons took the places in
	 * its ring that the data's windows count on, and data was lost.
	 */
	else if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)))
		rc = bl_fail(err, errno, "cannot limit the beacons in flight on %s: %s", nic->name,
			     strerror(errno));
	else if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		rc = bl_fail(err, errno, "cannot bind the beacon socket to %s: %s", nic->name,
			     strerror(errno));
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

/*
 * Chooses the CPUs that @n's beacons are best sent from. A beacon that is sent on another CPU than
 * the one that receives it at the other end wakes that CPU by an interrupt, 10000 times a second
 * for each host. In a lab of 8 hosts on two CPUs that took 39 % of both (2026-11).
 */
static void choose_cpus(struct bl_node *n)
{
	CPU_ZERO(&n->beacon_cpus);
	if (n->cfg.ncpus)
		CPU_SET((size_t)n->cfg.cpus[0], &n->beacon_cpus);
	else
		bl_tx_cpus(&n->att[0].iface, n->host_cfg.queue, &n->beacon_cpus);
}

/*
 * Puts the thread on the CPUs that its nodes want, and chooses its scheduling. The thread of one
 * host takes a few percent of a CPU, and a host whose beacons are late is excluded, so it is
 * SCHED_FIFO by default. The thread of a lab, which serves all hosts of a rack, would keep
 * processes waiting, as NAPI does. The lock is held.
 */
static void settle_thread(struct bl_server *s)
{
	const struct bl_node *n;
	unsigned int nodes = 0;
	cpu_set_t set;
	int rc;

	if (!s->beacon_running)
		return;
	CPU_ZERO(&set);
	s->beacon_how = BL_RT_AUTO;
	for (n = s->beacon_nodes; n; n = n->beacon_next) {
		nodes += n->page != NULL;
		CPU_OR(&set, &set, &n->beacon_cpus);
		s->beacon_how = n->cfg.realtime ? n->cfg.realtime : s->beacon_how;
	}
	if (nodes <= 1 && s->beacon_how == BL_RT_AUTO)
		s->beacon_how = BL_RT_ALWAYS;
	if (!CPU_COUNT(&set))
		set = s->beacon_any;
	rc = pthread_setaffinity_np(s->beacon_thread, sizeof(set), &set);
	s->beacon_prio = true;
	/* Only slower on other CPUs, not wrong. */
	if (rc)
		bl_log(BL_LOG_WARN, "cannot keep the beacon thread on the CPUs of its NICs: %s",
		       strerror(rc));
}

int bl_beacon_start(struct bl_server *s, struct bl_err *err)
{
	int rc;

	if (s->beacon_running)
		return 0;
	sched_getaffinity(0, sizeof(s->beacon_any), &s->beacon_any);
	rc = bl_thread_start(&s->beacon_thread, NULL, beacon_main, s);
	if (rc)
		return bl_fail(err, rc, "cannot start the beacon thread: %s", strerror(rc));
	s->beacon_running = true;
	return 0;
}

static void list_node(struct bl_node *n)
{
	struct bl_server *s = n->srv;

	if (!n->beacon_listed) {
		n->beacon_next = s->beacon_nodes;
		s->beacon_nodes = n;
	}
	n->beacon_listed = true;
	settle_thread(s);
	pthread_cond_signal(&s->beacon_cond);
}

void bl_beacon_keep(struct bl_node *n, bool keep)
{
	pthread_mutex_lock(&n->srv->beacon_lock);
	n->keeping = keep;
	n->clock.next_ns = 0;
	if (keep)
		list_node(n);
	pthread_mutex_unlock(&n->srv->beacon_lock);
}

int bl_beacon_prepare(struct bl_node *n, struct bl_err *err)
{
	int rc, fd;
	void *page;

	if (n->beacon_sock < 0) {
		rc = open_beacon_socket(&n->att[0].iface, &fd, err);
		if (rc)
			return rc;
		n->beacon_sock = fd;
	}
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, n->page_fd, 0);
	if (page == MAP_FAILED)
		return bl_fail(err, errno, "cannot map the barrier page: %s", strerror(errno));
	make_beacon(n, &n->beat, 0);
	choose_cpus(n);
	n->page_next = page;
	return 0;
}

int bl_beacon_add(struct bl_node *n, struct bl_err *err)
{
	int rc;

	if (n->page)
		return 0;
	rc = n->page_next ? 0 : bl_beacon_prepare(n, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&n->srv->beacon_lock);
	n->page = n->page_next;
	n->page_next = NULL;
	/* As of now: what was sent since a spare prepared it is no reason to leave out a beacon. */
	n->beat.sends = BL_READ_ONCE(n->page->sends);
	list_node(n);
	pthread_mutex_unlock(&n->srv->beacon_lock);
	return 0;
}

int bl_beacon_socket(struct bl_node *n, struct bl_err *err)
{
	int old, fd, rc;

	if (n->beacon_sock >= 0)
		return 0;
	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = open_beacon_socket(&n->att[0].iface, &fd, err);
	bl_netns_leave(old);
	if (!rc)
		n->beacon_sock = fd;
	return rc;
}

int bl_beacon_moved(struct bl_node *n, struct bl_err *err)
{
	struct ethhdr *eth = (void *)n->beat.frame;
	int fd, old, rc;

	if (!n->page)
		return 0;
	rc = open_beacon_socket(&n->att[0].iface, &fd, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&n->srv->beacon_lock);
	old = n->beacon_sock;
	n->beacon_sock = fd;
	memcpy(eth->h_source, n->att[0].iface.mac, 6);
	pthread_mutex_unlock(&n->srv->beacon_lock);
	close(old);
	return 0;
}

static void *close_main(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/*
 * Closing a packet socket waits for an RCU grace period, 8 to 24 ms, and the other nodes of this
 * process shall not wait for that. No one joins the thread; if the process ends first, the kernel
 * closes the socket.
 */
static void close_in_background(int fd)
{
	pthread_attr_t attr;
	pthread_t t;
	int rc;

	if (pthread_attr_init(&attr)) {
		close(fd);
		return;
	}
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = bl_thread_start(&t, &attr, close_main, (void *)(intptr_t)fd);
	pthread_attr_destroy(&attr);
	if (rc)
		close(fd);
}

void bl_beacon_remove(struct bl_node *n)
{
	const void *page = n->page;
	struct bl_node **at;

	pthread_mutex_lock(&n->srv->beacon_lock);
	for (at = &n->srv->beacon_nodes; *at; at = &(*at)->beacon_next) {
		if (*at == n) {
			*at = n->beacon_next;
			break;
		}
	}
	n->beacon_listed = n->keeping = false;
	n->page = NULL;
	settle_thread(n->srv);
	pthread_mutex_unlock(&n->srv->beacon_lock);
	if (n->beacon_sock >= 0)
		close_in_background(n->beacon_sock);
	n->beacon_sock = -1;
	if (page)
		munmap((void *)(uintptr_t)page, (size_t)sysconf(_SC_PAGESIZE));
}

void bl_beacon_bye(struct bl_node *n)
{
	struct bl_beacon *body =
		(void *)(n->beat.frame + sizeof(struct ethhdr) + sizeof(struct bl_hdr));
	const void *page = n->page;
	int fd;

	if (!page)
		return;
	pthread_mutex_lock(&n->srv->beacon_lock);
	n->page = NULL;
	body->port = BL_BEACON_BYE;
	send_beacon(n);
	fd = n->beacon_sock;
	n->beacon_sock = -1;
	pthread_mutex_unlock(&n->srv->beacon_lock);
	close_in_background(fd);
	munmap((void *)(uintptr_t)page, (size_t)sysconf(_SC_PAGESIZE));
}

bool bl_beacon_sending(const struct bl_node *n)
{
	return n->page != NULL;
}

bool bl_beacons_here(const struct bl_node_cfg *c)
{
	return c->role == BL_ROLE_HOST && !c->no_beacons && !bl_beacon_paced(c);
}

bool bl_beacon_paced(const struct bl_node_cfg *c)
{
	return c->role == BL_ROLE_HOST && !c->no_beacons && c->admission.on &&
	       c->admission.pacer_beacons;
}

int bl_beacon_pace(struct bl_node *n, struct bpf_object *obj, struct bl_err *err)
{
	const size_t size = (sizeof(struct bl_due) + 4095) & ~4095UL;
	struct bpf_map *beat, *due;
	struct bl_host_page page;
	struct bl_beat b = {};
	uint32_t zero = 0;
	struct bl_due *d;
	int rc;

	rc = bl_map_find(obj, BL_MAP_PACE_BEAT, sizeof(b), &beat, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_DUE, sizeof(*d), &due, err);
	if (rc)
		return rc;
	if (bpf_map_lookup_elem(n->page_fd, &zero, &page))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_HOST_PAGE,
			       strerror(errno));
	make_beacon(n, &b, page.sends);
	b.on = bl_beacon_paced(&n->cfg);
	rc = bl_map_set(bpf_map__fd(beat), 0, &b, BL_MAP_PACE_BEAT, err);
	if (rc || !b.on)
		return rc;
	/*
	 * The pacer's first turn has to look for a tick. Frames may be held already, so the time is
	 * lowered by the function that they use.
	 */
	d = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(due), 0);
	if (d == MAP_FAILED)
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_HOLD_DUE, strerror(errno));
	bl_due_next(d, 0);
	munmap(d, size);
	return 0;
}

void bl_beacon_stop(struct bl_server *s)
{
	if (!s->beacon_running)
		return;
	pthread_mutex_lock(&s->beacon_lock);
	s->beacon_quit = true;
	pthread_cond_signal(&s->beacon_cond);
	pthread_mutex_unlock(&s->beacon_lock);
	pthread_join(s->beacon_thread, NULL);
	s->beacon_running = false;
}
