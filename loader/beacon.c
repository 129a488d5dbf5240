// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Beacons: one thread sends those of all hosts of the process, at multiples of the interval in bus time, so that one wave runs through the rack
 * per interval (DESIGN 3.4). With an interval of 100 us, a host at bus time ...12345678 sends next at ...12400000.
 *
 * The frame is made once; only its psn changes here, and the egress program fills B and C in. It goes through the qdisc like data does: a beacon must
 * not overtake. A tick that was overslept is not sent late: the next one says more. While the clock is void, nothing is sent.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include "../bpf/clock_core.h"
#include "../bpf/wire_core.h"
#include "node_priv.h"

#define BUSY_SENDS   4
#define VOID_POLL_NS 10000000ULL
#define SLOP_NS	     1000ULL
#define MARGIN_NS    100ULL /* bus time may be 500 ppm slower than CLOCK_MONOTONIC: 50 ns in 100 us */

static void send_one(struct bl_node *n)
{
	struct bl_hdr *h = (void *)(n->beacon_frame + sizeof(struct ethhdr));

	bl_hdr_set_psn(h, n->beacon_psn++);
	if (send(n->beacon_sock, n->beacon_frame, sizeof(n->beacon_frame), MSG_DONTWAIT) >= 0) {
		n->beacon_errno = 0;
		return;
	}
	/* a full queue says that frames with newer barriers are before us */
	if (errno == ENOBUFS || errno == EAGAIN || errno == n->beacon_errno)
		return;
	n->beacon_errno = errno;
	bl_log(BL_LOG_WARN, "%s: cannot send beacons on %s: %s", n->meta.name, n->att[0].iface.name, strerror(errno));
}

/*
 * Whether data has carried this host's barrier often enough since the last tick. One beacon in four is sent all the same: it is beacons that drive the switches'
 * relays to idle ports and their search for the silent, and different hosts send at different ticks.
 */
static bool carried(struct bl_node *n, uint64_t tick)
{
	uint64_t sends = BL_READ_ONCE(n->page->sends); /* counted by bl_host_egress */
	bool busy = sends - n->beacon_sends >= BUSY_SENDS;

	n->beacon_sends = sends;
	return busy && (tick / n->beacon_ns + n->meta.node_id) % 4;
}

/* Send what is due; CLOCK_MONOTONIC of the next tick. */
static uint64_t serve(struct bl_node *n)
{
	uint64_t mono = bl_mono_ns(), bus, tick;

	if (!bl_clock_usable(n->clock, mono))
		return mono + VOID_POLL_NS;
	bus = bl_clock_at(n->clock, mono);
	/* the clocks of a lab's hosts differ by fractions of a microsecond: one wave is one waking */
	tick = bus + SLOP_NS - (bus + SLOP_NS) % n->beacon_ns;
	if (tick > n->beacon_last) {
		n->beacon_last = tick;
		if (!carried(n, tick))
			send_one(n);
	}
	return mono + (tick + n->beacon_ns - bus) + MARGIN_NS;
}

static void *beacon_main(void *ctx)
{
	struct sched_param prio = { .sched_priority = 2 };
	struct bl_server *s = ctx;
	struct bl_node *n;

	pthread_setname_np(pthread_self(), "barline-beacon");
	/* without permission beacons come later under load, and barriers with them: not wrong, only slower */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio);
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&s->beacon_lock);
	while (!s->beacon_quit) {
		uint64_t next = UINT64_MAX;
		struct timespec t;

		if (!s->beacon_nodes) {
			pthread_cond_wait(&s->beacon_cond, &s->beacon_lock);
			continue;
		}
		for (n = s->beacon_nodes; n; n = n->beacon_next)
			next = bl_min64(next, serve(n));
		pthread_mutex_unlock(&s->beacon_lock);
		t.tv_sec = (time_t)(next / 1000000000ULL);
		t.tv_nsec = (long)(next % 1000000000ULL);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		pthread_mutex_lock(&s->beacon_lock);
	}
	pthread_mutex_unlock(&s->beacon_lock);
	return NULL;
}

static void make_frame(struct bl_node *n)
{
	static const uint8_t to[6] = BL_BEACON_MAC;
	struct ethhdr *eth = (void *)n->beacon_frame;
	struct bl_hdr *h = (void *)(eth + 1);
	struct bl_beacon b = { .tai_offset_s = htons((uint16_t)n->clock->tai_offset_s), .node_id = htonl(n->meta.node_id) };

	memset(n->beacon_frame, 0, sizeof(n->beacon_frame));
	memcpy(eth->h_dest, to, 6);
	memcpy(eth->h_source, n->att[0].iface.mac, 6);
	eth->h_proto = htons(BL_ETHERTYPE);
	h->opcode = BL_OPCODE_BYTE(BL_OP_BEACON);
	h->flags = BL_F_LANES(1);
	memcpy(h + 1, &b, sizeof(b)); /* not aligned there */
}

static int open_socket(struct bl_node *n, struct bl_err *err)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = n->att[0].iface.ifindex };
	const char *name = n->att[0].iface.name;
	int mark = (int)BL_BEACON_MARK;

	/* protocol 0: a socket that receives nothing */
	n->beacon_sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (n->beacon_sock < 0)
		return bl_fail(err, errno, "cannot make the beacon socket of %s: %s; it takes CAP_NET_RAW", name, strerror(errno));
	if (setsockopt(n->beacon_sock, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)))
		return bl_fail(err, errno, "cannot mark the beacons of %s: %s; it takes CAP_NET_ADMIN", name, strerror(errno));
	if (bind(n->beacon_sock, (struct sockaddr *)&to, sizeof(to)))
		return bl_fail(err, errno, "cannot bind the beacon socket to %s: %s", name, strerror(errno));
	return 0;
}

/* Not while the caller is in a node's namespace: the thread would hold that namespace for as long as the process lives. */
int bl_beacon_start(struct bl_server *s, struct bl_err *err)
{
	sigset_t all, old;
	int rc;

	if (s->beacon_running)
		return 0;
	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&s->beacon_thread, NULL, beacon_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return bl_fail(err, rc, "cannot start the beacon thread: %s", strerror(rc));
	s->beacon_running = true;
	return 0;
}

/* The thread is in the node's namespace. */
int bl_beacon_add(struct bl_node *n, struct bl_err *err)
{
	struct bl_server *s = n->srv;
	void *page;
	int rc;

	rc = open_socket(n, err);
	if (rc)
		return rc;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, n->page_fd, 0);
	if (page == MAP_FAILED)
		return bl_fail(err, errno, "cannot map the barrier page: %s", strerror(errno));
	n->page = page;
	n->beacon_sends = n->page->sends;
	make_frame(n);
	n->beacon_ns = n->cfg.beacon_us * 1000ULL;
	pthread_mutex_lock(&s->beacon_lock);
	n->beacon_next = s->beacon_nodes;
	s->beacon_nodes = n;
	pthread_cond_signal(&s->beacon_cond);
	pthread_mutex_unlock(&s->beacon_lock);
	return 0;
}

void bl_beacon_remove(struct bl_node *n)
{
	struct bl_node **at;

	pthread_mutex_lock(&n->srv->beacon_lock);
	for (at = &n->srv->beacon_nodes; *at; at = &(*at)->beacon_next) {
		if (*at == n) {
			*at = n->beacon_next;
			break;
		}
	}
	pthread_mutex_unlock(&n->srv->beacon_lock);
	if (n->beacon_sock >= 0)
		close(n->beacon_sock);
	n->beacon_sock = -1;
	if (n->page)
		munmap((void *)n->page, (size_t)sysconf(_SC_PAGESIZE));
	n->page = NULL;
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
