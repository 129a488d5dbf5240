// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The links of a node, sampled four times per second: whether frames were overtaken there, and
 * whether the neighbours' clocks and this node's own are what they say (link_check_core.h).
 *
 * What is found goes to three places. The log has a line when a neighbour's clock, or this node's,
 * is found wrong, and when that ends; and one per minute and link while frames are overtaken. The
 * map "link_views" has it all for `barline show links` and the doctor. And what is proven against
 * this node's own clock is added to its bound (struct bl_clock_keeper).
 *
 * A caretaker does not sample: what was proven is forgotten when the daemon stops, and proven again
 * by the next one.
 *
 * Numbers of counts: a neighbour compares what comes with what was counted only as long as the
 * number stays the same (core/order/link_core.h). It is drawn anew with the maps of a node, and for
 * a port whose number goes to another interface.
 */
#include "loader/order/link_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/event.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/link_core.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"
#include "loader/order/link_check_core.h"
#include "loader/order/tai.h"

#define SAMPLE_US 250000
#define SAY_S     60 /* overtaken frames of a link are reported at most so often */

/** struct bl_link_watch - what bl_link_check() keeps. */
struct bl_link_watch {
	sd_event_source *timer;
	struct bl_node *node;
	const struct bl_link *seen; /* "link_seen", mapped */
	struct bl_link_view *views; /* "link_views", mapped */
	struct bl_check check;
	struct bl_check_sample sample[BL_SW_PORTS_MAX];
	uint64_t overtaken[BL_SW_PORTS_MAX]; /* at the last sample */
	uint64_t said[BL_SW_PORTS_MAX];      /* of them, those that the log knows */
	uint64_t said_s[BL_SW_PORTS_MAX];    /* CLOCK_MONOTONIC of the last line, s; 0: none */
	uint32_t theirs[BL_SW_PORTS_MAX];    /* what the neighbour counted, at the last line */
	uint64_t lost[BL_SW_PORTS_MAX];      /* lost frames + 1 that the log knows; 0: not read */
	uint64_t lost_s[BL_SW_PORTS_MAX];    /* as @said_s, of lost frames */
};

int bl_link_new(int fd, uint32_t port, struct bl_err *err)
{
	struct bl_link l = { .echo_ns = BL_ECHO_NONE };

	if (getrandom(&l.run, sizeof(l.run), 0) != sizeof(l.run))
		return bl_fail(err, errno, "cannot draw a random number: %s", strerror(errno));
	l.run = l.run ? l.run : 1; /* 0: not counted */
	return bl_map_set(fd, port, &l, BL_MAP_LINK_SEEN, err);
}

/* Ports of the node: those of a switch; a host's NIC is port 0. */
static uint32_t port_of(const struct bl_attached *a)
{
	return a->port < 0 ? 0 : (uint32_t)a->port;
}

static unsigned int ports_of(const struct bl_node *n)
{
	return n->cfg.role == BL_ROLE_HOST && n->natt ? 1 : n->natt;
}

static void take_sample(struct bl_link_watch *w, uint32_t port, uint64_t bus)
{
	const struct bl_link *l = &w->seen[port];
	uint64_t heard = BL_READ_ONCE(l->heard_ns);
	struct bl_check_sample *s = &w->sample[port];

	*s = (struct bl_check_sample){ .in = BL_DELAY_NONE, .out = BL_DELAY_NONE };
	if (!heard)
		return;
	s->node = BL_READ_ONCE(l->node);
	s->bound = BL_READ_ONCE(l->bound_ns);
	s->in = bl_skew_least(l, bus);
	/* What it said of this node's beacons is as old as its last beacon. */
	if (bus - heard < BL_SKEW_BUCKET_NS)
		s->out = bl_skew_out(BL_READ_ONCE(l->echo_ns));
}

/* Writes about @ns in microseconds, which every reader knows. */
static long long us(int64_t ns)
{
	return (long long)(ns < 0 ? -ns : ns) / 1000;
}

static void say_clock(const struct bl_link_watch *w, const char *ifname,
		      const struct bl_check_port *p)
{
	static const char *const who[BL_VERDICT_COUNT] = {
		[BL_VERDICT_OFF] = "that clock is the wrong one; check what disciplines it",
		[BL_VERDICT_SELF] = "this node's own is the wrong one; check what disciplines it",
		[BL_VERDICT_EITHER] = "one of the two is wrong; check what disciplines them, and "
				      "see `barline show links` of that node",
	};
	const char *name = w->node->meta.name;

	if (p->began)
		bl_event(BL_EVENT(CLOCK_WRONG, WARN, name, .iface = ifname, .peer = p->node),
			 "%s: node %u on %s: its clock is at least %lld us %s this node's beyond "
			 "the "
			 "bounds of both; %s",
			 name, p->node, ifname, us(p->off), p->off > 0 ? "ahead of" : "behind",
			 who[p->verdict]);
	if (p->ended)
		bl_event(BL_EVENT(CLOCK_AGREES, INFO, name, .iface = ifname, .peer = p->node),
			 "%s: node %u on %s: its clock and this node's agree again", name, p->node,
			 ifname);
}

/* Reports overtaken frames in either direction, at most once a minute. */
static void say_order(struct bl_link_watch *w, uint32_t port, const char *ifname)
{
	const struct bl_link *l = &w->seen[port];
	uint64_t now_s = bl_mono_ns() / BL_NS_PER_S, in = w->overtaken[port];
	uint32_t theirs = BL_READ_ONCE(l->theirs);

	if ((w->said_s[port] && now_s - w->said_s[port] < SAY_S) ||
	    (in <= w->said[port] && theirs <= w->theirs[port]))
		return;
	if (in > w->said[port])
		bl_event(BL_EVENT(LINK_OVERTAKEN, WARN, w->node->meta.name, .iface = ifname,
				  .peer = l->node),
			 "%s: %" PRIu64 " frames of node %u on %s were overtaken: the link is no "
			 "FIFO; look at the queueing discipline and the queues of its NIC there, "
			 "and "
			 "at the receive queues of %s here",
			 w->node->meta.name, in - w->said[port], l->node, ifname, ifname);
	if (theirs > w->theirs[port])
		bl_event(BL_EVENT(LINK_OVERTAKEN, WARN, w->node->meta.name, .iface = ifname,
				  .peer = l->node),
			 "%s: node %u says that %u frames which this node sent on %s were "
			 "overtaken: "
			 "the link is no FIFO; look at the queueing discipline and the queues of "
			 "%s",
			 w->node->meta.name, l->node, theirs - w->theirs[port], ifname, ifname);
	w->said_s[port] = now_s;
	w->said[port] = in;
	w->theirs[port] = theirs;
}

/*
 * Reports frames that never came in, at most once a minute. What was lost before this daemon began
 * is not news.
 */
static void say_lost(struct bl_link_watch *w, uint32_t port, const char *ifname)
{
	const struct bl_link *l = &w->seen[port];
	uint64_t now_s = bl_mono_ns() / BL_NS_PER_S, sum = 1;
	unsigned int k;

	for (k = 0; k < BL_LANES_MAX; k++)
		sum += BL_READ_ONCE(l->lane[k].lost);
	if (!w->lost[port] || sum < w->lost[port])
		w->lost[port] = sum;
	if (sum == w->lost[port] || (w->lost_s[port] && now_s - w->lost_s[port] < SAY_S))
		return;
	bl_event(BL_EVENT(FRAMES_LOST, WARN, w->node->meta.name, .iface = ifname, .peer = l->node),
		 "%s: %" PRIu64 " frames that node %u sent to %s have not come in: `barline show "
		 "links` counts them, `ethtool -S` says what a NIC dropped",
		 w->node->meta.name, sum - w->lost[port], l->node, ifname);
	w->lost_s[port] = now_s;
	w->lost[port] = sum;
}

static void count_order(struct bl_link_watch *w, uint32_t port, const char *ifname)
{
	const struct bl_link *l = &w->seen[port];
	uint64_t sum = 0;
	unsigned int k;

	for (k = 0; k < BL_LANES_MAX; k++)
		sum += BL_READ_ONCE(l->lane[k].overtaken);
	/* The count of a port or a neighbour that began anew. */
	if (sum < w->said[port])
		w->said[port] = 0;
	if (BL_READ_ONCE(l->theirs) < w->theirs[port])
		w->theirs[port] = 0;
	if (sum > w->overtaken[port] || l->theirs > w->theirs[port])
		w->views[port].broken_s = (uint64_t)time(NULL);
	w->overtaken[port] = sum;
	say_order(w, port, ifname);
}

static void write_view(struct bl_link_view *v, const struct bl_check_port *p, uint64_t own)
{
	v->low_ns = p->vote.low;
	v->high_ns = p->vote.high;
	v->in_ns = p->vote.in;
	v->out_ns = p->vote.out;
	v->bounds_ns = p->vote.bound + own;
	v->off_ns = p->off;
	v->since_s = p->since_s;
	v->verdict = p->verdict;
	v->written_ns = bl_mono_ns();
}

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_link_watch *w = ctx;
	struct bl_node *n = w->node;
	uint64_t mono = bl_mono_ns(), bus = bl_clock_at(n->clock.shared, mono),
		 now_s = (uint64_t)time(NULL), was = w->check.proven, own;
	unsigned int k;
	uint32_t most = 0;

	(void)usec;
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		w->sample[k] =
			(struct bl_check_sample){ .in = BL_DELAY_NONE, .out = BL_DELAY_NONE };
	for (k = 0; k < ports_of(n); k++) {
		uint32_t port = port_of(&n->att[k]);

		take_sample(w, port, bus);
		most = port + 1 > most ? port + 1 : most;
	}
	bl_check_step(&w->check, w->sample, most, bl_skew_bound(n->clock.shared, mono),
		      n->cfg.role == BL_ROLE_HOST, now_s);
	own = bl_check_most(w->check.own);
	atomic_store(&n->clock.proven_ns, w->check.proven);
	for (k = 0; k < ports_of(n); k++) {
		uint32_t port = port_of(&n->att[k]);

		say_clock(w, n->att[k].iface.name, &w->check.port[port]);
		count_order(w, port, n->att[k].iface.name);
		say_lost(w, port, n->att[k].iface.name);
		write_view(&w->views[port], &w->check.port[port], own);
	}
	if (!was && w->check.proven)
		bl_event(BL_EVENT(CLOCK_WRONG, WARN, n->meta.name,
				  .bound_us = w->check.proven / 1000),
			 w->check.votes > 2 ? "%s: this node's clock is wrong: its neighbours "
					      "prove "
					      "an error of "
					      "up to %lld us beyond its bound, which is widened by "
					      "that"
					    : "%s: this node's clock or its only neighbour's is "
					      "wrong: its own "
					      "bound is widened by the %lld us that its error may "
					      "be "
					      "beyond it",
			 n->meta.name, us((int64_t)w->check.proven));
	if (was && !w->check.proven)
		bl_event(BL_EVENT(CLOCK_AGREES, INFO, n->meta.name),
			 "%s: nothing is proven against this node's clock any more", n->meta.name);
	bl_tai_follow(n);
	sd_event_source_set_time_relative(src, SAMPLE_US);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	return 0;
}

int bl_link_check(struct bl_node *n, const struct bpf_object *obj, struct bl_err *err)
{
	struct bl_link_watch *w = calloc(1, sizeof(*w));
	void *seen, *views;
	int rc;

	if (!w)
		return bl_fail(err, ENOMEM, "out of memory");
	w->node = n;
	n->link_check = w;
	seen = mmap(NULL, BL_SW_PORTS_MAX * sizeof(*w->seen), PROT_READ, MAP_SHARED,
		    bpf_object__find_map_fd_by_name(obj, BL_MAP_LINK_SEEN), 0);
	views = mmap(NULL, BL_SW_PORTS_MAX * sizeof(*w->views), PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_object__find_map_fd_by_name(obj, BL_MAP_LINK_VIEWS), 0);
	w->seen = seen == MAP_FAILED ? NULL : seen;
	w->views = views == MAP_FAILED ? NULL : views;
	if (!w->seen || !w->views)
		return bl_fail(err, errno, "cannot map what is seen on the links: %s",
			       strerror(errno));
	rc = sd_event_add_time_relative(n->srv->ev, &w->timer, CLOCK_MONOTONIC, SAMPLE_US, 0,
					on_sample, w);
	return rc < 0 ? bl_fail(err, -rc, "cannot set a timer: %s", strerror(-rc)) : 0;
}

void bl_link_check_close(struct bl_node *n)
{
	struct bl_link_watch *w = n->link_check;

	if (!w)
		return;
	sd_event_source_disable_unref(w->timer);
	if (w->seen)
		munmap((void *)(uintptr_t)w->seen, BL_SW_PORTS_MAX * sizeof(*w->seen));
	if (w->views)
		munmap(w->views, BL_SW_PORTS_MAX * sizeof(*w->views));
	free(w);
	n->link_check = NULL;
}
