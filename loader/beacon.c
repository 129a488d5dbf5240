// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Beacons: one thread sends those of all hosts of the process, at the ticks of bpf/beacon_core.h. Where the pacer carries a host's beacons (bpf/host_beacon.h), this file only
 * makes the frame, and the thread leaves that host alone; it is not even started if all hosts of the process are such.
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
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_packet.h>
#include "../bpf/beacon_core.h"
#include "../bpf/clock_core.h"
#include "../bpf/queue_core.h"
#include "../bpf/wire_core.h"
#include "node_priv.h"

static void send_one(struct bl_node *n)
{
	struct bl_hdr *h = (void *)(n->beat.frame + sizeof(struct ethhdr));

	bl_hdr_set_psn(h, n->beat.psn++);
	if (send(n->beacon_sock, n->beat.frame, sizeof(n->beat.frame), MSG_DONTWAIT) >= 0) {
		n->beacon_errno = 0;
		return;
	}
	/* a full queue says that frames with newer barriers are before us */
	if (errno == ENOBUFS || errno == EAGAIN || errno == n->beacon_errno)
		return;
	n->beacon_errno = errno;
	bl_log(BL_LOG_WARN, "%s: cannot send beacons on %s: %s", n->meta.name, n->att[0].iface.name, strerror(errno));
}

/* Send what is due; CLOCK_MONOTONIC of the next tick. */
static uint64_t serve(struct bl_node *n)
{
	uint64_t mono = bl_mono_ns();

	if (!bl_clock_usable(n->clock, mono))
		return mono + BL_BEAT_VOID_NS;
	if (bl_beat_serve(&n->beat, mono, bl_clock_at(n->clock, mono), BL_READ_ONCE(n->page->sends)))
		send_one(n);
	return n->beat.next_ns;
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

static void make(struct bl_node *n, struct bl_beat *b, uint64_t sends)
{
	static const uint8_t to[6] = BL_BEACON_MAC;
	struct ethhdr *eth = (void *)b->frame;
	struct bl_hdr *h = (void *)(eth + 1);
	struct bl_beacon body = { .tai_offset_s = htons((uint16_t)n->clock->tai_offset_s), .node_id = htonl(n->meta.node_id) };

	*b = (struct bl_beat){ .node_id = n->meta.node_id, .interval_ns = n->cfg.beacon_us * 1000ULL, .sends = sends };
	memcpy(eth->h_dest, to, 6);
	memcpy(eth->h_source, n->att[0].iface.mac, 6);
	eth->h_proto = htons(BL_ETHERTYPE);
	h->opcode = BL_OPCODE_BYTE(BL_OP_BEACON);
	h->flags = BL_F_LANES(1);
	memcpy(h + 1, &body, sizeof(body)); /* not aligned there */
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
	make(n, &n->beat, n->page->sends);
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

bool bl_beacon_paced(const struct bl_node_cfg *c)
{
	return c->role == BL_ROLE_HOST && !c->no_beacons && c->admission.on && c->admission.pacer_beacons;
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

	rc = bl_admission_map(obj, BL_MAP_PACE_BEAT, sizeof(b), &beat, err);
	if (!rc)
		rc = bl_admission_map(obj, BL_MAP_HOLD_DUE, sizeof(*d), &due, err);
	if (rc)
		return rc;
	if (bpf_map_lookup_elem(n->page_fd, &zero, &page))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_HOST_PAGE, strerror(errno));
	make(n, &b, page.sends);
	b.on = bl_beacon_paced(&n->cfg);
	rc = bl_map_set(bpf_map__fd(beat), 0, &b, BL_MAP_PACE_BEAT, err);
	if (rc || !b.on)
		return rc;
	/* The pacer's first turn shall look for a tick. Frames may be held already, so the time is lowered as they do it. */
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
