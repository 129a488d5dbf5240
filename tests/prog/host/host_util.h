/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host for the program tests: endpoints 9 (slot 0, any address), 10 (slot 1, 10.0.1.2) and 11
 * (slot 2, fd00:0:0:1::2), each with a ring of its own. Port 12 has an entry that is not active,
 * port 13 one without a ring. The host is host 1 of frames.h; its neighbours are hosts 0 and 2.
 */
#ifndef BARLINE_TEST_HOST_UTIL_H
#define BARLINE_TEST_HOST_UTIL_H

#include <sys/epoll.h>
#include <sys/mman.h>
#include "tests/prog/prog_util.h"
#include "tests/prog/link_util.h"
#include "core/order/link_core.h"
#include "maps/host_abi.h"
#include "maps/reliable_abi.h"
#include "loader/load/objects.h"
#include "host.skel.h"

#define BEACON_NS   100000ULL
#define DEAD_NS     1000000ULL
#define NODE_ID     0x5a5a5a5au
#define BEACON_MARK 0x42a7
#define RUN         0x700 /* number of the host's count of frames */
#define NEPS        3
#define NO_RING     40 /* a slot without a ring */
/* Fields of a PREP whose body has the bytes of frames.h (i * 7 + 1). */
#define BODY_INCARNATION 0x0108
#define BODY_SLOT        0x1d242b32u
#define BODY_LIFE        0x3940

static struct bl_host *sk;
static __u8 with_auth;  /* set before host_setup(): enum bl_auth_mode */
static bool with_frags; /* set before host_setup(): frames of several buffers */
static struct bl_counts counted[COUNT_KEYS_MAX];
static struct bl_host_cfg cfg;
static int ring[NEPS];
static struct ring_buffer *reader[NEPS];
/* Edge-triggered: an event means that the program woke a reader, not that there is data. */
static int epoll_fd[NEPS];

/* The page of each endpoint slot, mapped. */
static struct bl_ep_page *ep_page[BL_EPS_MAX];

/** struct wakes - what the endpoints sleep for, and the hints about it. */
struct wakes {
	__u64 next, next_c;
	struct bl_ep_wake ep[BL_EPS_MAX];
};

/** struct state - all state that a frame may change, except for the rings. */
struct state {
	struct bl_host_page page;
	struct wakes wake;
	struct bl_inflight inflight[BL_EPS_MAX];
	struct bl_ep_slot eps[BL_PORT_COUNT];
};
MAYBE_UNUSED static struct state before, after;

/* The record that was read last. */
static struct {
	struct bl_rec rec;
	__u8 body[BL_REC_HUGE];
	size_t size; /* bytes of the record with its padding */
	int n;       /* records of the last ring_read() */
} got;

static int on_record(void *ctx, void *data, size_t size)
{
	(void)ctx;
	assert_true(size >= sizeof(got.rec) && size <= sizeof(got.rec) + sizeof(got.body));
	got.size = size;
	memcpy(&got.rec, data, sizeof(got.rec));
	memcpy(got.body, (char *)data + sizeof(got.rec), size - sizeof(got.rec));
	got.n++;
	return 0;
}

/*
 * Reads everything in the ring of @slot; the last record is in got. Discarded records do not count.
 * Returns the number of records.
 */
MAYBE_UNUSED static int ring_read(__u32 slot)
{
	got.n = 0;
	assert_true(ring_buffer__consume(reader[slot]) >= 0);
	return got.n;
}

/* Returns whether the reader of @slot is woken within @wait_ms. */
MAYBE_UNUSED static bool is_woken(__u32 slot, int wait_ms)
{
	struct epoll_event ev;

	return epoll_wait(epoll_fd[slot], &ev, 1, wait_ms) == 1;
}

static void wake_get(struct wakes *w)
{
	struct bl_hints h;
	__u32 i;

	map_get(sk->maps.hints, 0, &h);
	w->next = h.next;
	w->next_c = h.next_c;
	for (i = 0; i < BL_EPS_MAX; i++)
		w->ep[i] = ep_page[i]->wake;
}

static void wake_put(const struct wakes *w)
{
	const struct bl_hints h = { .next = w->next, .next_c = w->next_c };
	__u32 i;

	map_put(sk->maps.hints, 0, &h);
	for (i = 0; i < BL_EPS_MAX; i++)
		ep_page[i]->wake = w->ep[i];
}

MAYBE_UNUSED static void line_put(__u32 slot, const struct bl_inflight *line)
{
	ep_page[slot]->line = *line;
}

MAYBE_UNUSED static void line_get(__u32 slot, struct bl_inflight *line)
{
	*line = ep_page[slot]->line;
}

static void make_pages(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	__u32 i;
	int fd;

	for (i = 0; i < BL_EPS_MAX; i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "page", 4, sizeof(struct bl_ep_page), 1,
				    &o);
		assert_true(fd >= 0);
		ep_page[i] = mmap(NULL, sizeof(struct bl_ep_page), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
		assert_ptr_not_equal(ep_page[i], MAP_FAILED);
		map_put(sk->maps.ep_pages, i, &fd);
		close(fd);
	}
}

MAYBE_UNUSED static void state_take(struct state *s)
{
	__u32 i;

	map_get(sk->maps.host_page, 0, &s->page);
	wake_get(&s->wake);
	for (i = 0; i < BL_EPS_MAX; i++)
		line_get(i, &s->inflight[i]);
	for (i = 0; i < BL_PORT_COUNT; i++)
		map_get(sk->maps.eps, i, &s->eps[i]);
}

static void set_cfg(void)
{
	map_put(sk->maps.host_cfg, 0, &cfg);
}

static void set_endpoint(__u16 port, __u16 slot, bool active, const __u8 *addr)
{
	struct bl_ep_slot e = { .active = active,
				.port = BL_PORT_BASE + port,
				.slot = slot,
				.pid = 1,
				.name = "test",
				.life = BODY_LIFE };

	if (addr)
		memcpy(e.addr, addr, 16);
	map_put(sk->maps.eps, port, &e);
}

/* Gives @slot a new, empty ring. */
MAYBE_UNUSED static void new_ring(__u32 slot, __u32 bytes)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	if (reader[slot]) {
		ring_buffer__free(reader[slot]);
		close(epoll_fd[slot]);
		close(ring[slot]);
	}
	ring[slot] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, bytes, NULL);
	if (ring[slot] < 0)
		fail_msg("cannot make a ring of %u bytes: %s", bytes, strerror(errno));
	map_put(sk->maps.rings, slot, &ring[slot]);
	reader[slot] = ring_buffer__new(ring[slot], on_record, NULL, NULL);
	assert_non_null(reader[slot]);
	epoll_fd[slot] = epoll_create1(EPOLL_CLOEXEC);
	assert_true(epoll_fd[slot] >= 0);
	assert_int_equal(epoll_ctl(epoll_fd[slot], EPOLL_CTL_ADD, ring[slot], &ev), 0);
}

/*
 * Makes a host that has received nothing yet, at bus time T0, where no process sleeps. The programs
 * are loaded once.
 */
MAYBE_UNUSED static int host_setup(void **unused)
{
	struct bl_inflight idle = { .ts = BL_TIME_NONE };
	struct bl_host_page page = { 0 };
	struct wakes wake = { .next = BL_TIME_NONE, .next_c = BL_TIME_NONE };
	struct bl_ep_slot no_ep = { 0 };
	struct bl_link_sent nothing_sent = { 0 };
	__u8 v4[16], v6[16];
	__u32 i;

	(void)unused;
	if (!sk) {
		sk = bl_host_object(with_plain);
		assert_non_null(sk);
		sk->rodata->bl_auth = with_auth;
		sk->rodata->bl_chains = 1;
		sk->rodata->bl_frags = with_frags;
		if (with_frags) {
			bpf_program__set_flags(sk->progs.bl_host_xdp, BPF_F_XDP_HAS_FRAGS);
			bpf_program__set_flags(sk->progs.bl_host_relayed, BPF_F_XDP_HAS_FRAGS);
			/* They share a device map with bl_host_xdp, and have no frags. */
			bpf_program__set_autoload(sk->progs.bl_hold_xdp, false);
			bpf_program__set_autoload(sk->progs.bl_host_pace, false);
		}
		assert_int_equal(bl_host__load(sk), 0);
		make_pages();
	}
	cfg = (struct bl_host_cfg){ .node_id = NODE_ID,
				    .neps = NEPS,
				    .port_base = BL_PORT_BASE,
				    .port_count = BL_PORT_COUNT,
				    .tai_offset_s = 37,
				    .beacon_ns = BEACON_NS,
				    .dead_after_ns = DEAD_NS,
				    .beacon_mark = BEACON_MARK,
				    .cpus = (__u32)libbpf_num_possible_cpus() };
	set_cfg();
	link_new(sk->maps.link_seen, 0, RUN);
	for (i = 0; i < BL_LINK_CPUS; i++)
		map_put(sk->maps.link_sent, i, &nothing_sent);
	map_put(sk->maps.host_page, 0, &page);
	for (i = 0; i < BL_EPS_MAX; i++) {
		line_put(i, &idle);
		wake.ep[i].until = wake.ep[i].until_c = BL_TIME_NONE;
	}
	wake_put(&wake);
	for (i = 0; i < BL_PORT_COUNT; i++)
		map_put(sk->maps.eps, i, &no_ep);
	host_addr(v4, false, 1);
	host_addr(v6, true, 1);
	set_endpoint(9, 0, true, NULL);
	set_endpoint(10, 1, true, v4);
	set_endpoint(11, 2, true, v6);
	set_endpoint(12, 0, false, NULL);
	set_endpoint(13, NO_RING, true, NULL);
	for (i = 0; i < NEPS; i++)
		new_ring(i, BL_RING_BYTES_MIN);
	clock_at(sk->maps.clock, T0);
	counts_take(sk->maps.counts, counted);
	doing = "";
	return 0;
}

/* Makes the beacon @d say what the host says when it is sent at @now, and makes that due. */
MAYBE_UNUSED static void host_says(struct desc *d, __u64 now)
{
	struct bl_link_sent s;
	__u32 i, frames = 0;
	struct bl_link l;

	map_get(sk->maps.link_seen, 0, &l);
	l.said = (__u16)~bl_link_tick(now);
	map_put(sk->maps.link_seen, 0, &l);
	for (i = 0; i < BL_LINK_CPUS; i++) {
		map_get(sk->maps.link_sent, i, &s);
		frames += (__u32)s.frames;
	}
	say(d, RUN, frames, now, SAID);
}

/* Fails unless the ring of @slot holds exactly one record, that of the frame @d. */
MAYBE_UNUSED static void expect_stored(__u32 slot, const struct desc *d, __u64 ts)
{
	struct bl_rec want = {
		.ts = ts, .psn = d->psn, .sport = d->sport, .opcode = d->op, .len = d->body
	};
	/* the four record sizes of host_abi.h, as numbers */
	__u32 room = d->body <= 216 ? 256 : d->body <= 1496 ? 1536 : d->body <= 3544 ? 3584 : 9216;
	struct frame f;

	build(&f, d);
	want.flags = f.p[hdr_off(d) + 23];
	memcpy(want.saddr, d->saddr, 16);
	assert_int_equal(ring_read(slot), 1);
	assert_int_equal(got.size, room);
	/* each sixteenth number is measured: it was stored a moment ago */
	assert_int_equal(got.rec.at & 1, d->psn % 16 == 0);
	if (got.rec.at)
		assert_in_range((__u32)((mono_now() >> 6) + 1 - got.rec.at), 0, 60000000000 >> 6);
	want.at = got.rec.at;
	assert_memory_equal(&got.rec, &want, sizeof(want));
	assert_memory_equal(got.body, f.p + hdr_off(d) + sizeof(struct bl_hdr), d->body);
}

/* Fails if a ring holds a record. */
MAYBE_UNUSED static void expect_nothing_stored(void)
{
	__u32 i;

	for (i = 0; i < NEPS; i++)
		assert_int_equal(ring_read(i), 0);
}

#endif
