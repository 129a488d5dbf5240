/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An endpoint without a kernel program: pages and ring are memory of the test, and the socket is a
 * UDP socket on loopback. fake_carry() plays the receiver's XDP program: it takes frames off the
 * socket and appends them to the ring, as bpf/host/host.bpf.c does. Tests set the barriers.
 *
 * Endpoints at different loopback addresses are hosts of their own (frames between them may leave
 * by UDP GSO); endpoints at one address are local to each other.
 */
#ifndef BARLINE_TESTS_LIB_FAKE_H
#define BARLINE_TESTS_LIB_FAKE_H

#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/attach.h"
#include "lib/buf.h"
#include "lib/credit.h"
#include "lib/discard.h"
#include "lib/dispatch.h"
#include "lib/failures.h"
#include "lib/forward.h"
#include "lib/internal.h"
#include "lib/leave.h"
#include "lib/lock.h"
#include "lib/nic.h"
#include "lib/peer.h"
#include "lib/prepared.h"
#include "lib/recall.h"
#include "lib/rrx.h"
#include "lib/rtx.h"
#include "lib/rx.h"
#include "lib/shelf.h"
#include "lib/stage.h"
#include "lib/tx.h"

#define FAKE_BUS   1764000000000000000ULL /* bus time at CLOCK_MONOTONIC 0 */
#define FAKE_RING  (512u << 10)
#define FRAME_HEAD (sizeof(struct bl_hdr) + sizeof(struct bl_data))

struct fake {
	struct bl_endpoint *ep;
	struct bl_host_page *page;
	struct bl_clock *clock;
	uint64_t *prod;
	uint8_t *ring;
};

/* A frame as it was on the wire. */
struct seen {
	uint8_t b[9600];
	uint32_t len;
	struct bl_addr from;
	const struct bl_hdr *h;
	const uint8_t *body;
	uint32_t body_len, psn;
	uint64_t ts;
	uint8_t op;
};

/*
 * The key of the endpoints that are made from now on. 0: they challenge nobody, and their numbers
 * begin with 0.
 */
static uint64_t fake_key[2] __attribute__((unused));

/* What the daemon has decided about the endpoint. */
static inline struct bl_ep_word *fake_word(const struct fake *f)
{
	return &f->page->word[f->ep->slot];
}

/* What the frames that are put into rings from now on say of their arrival. */
static uint32_t fake_at __attribute__((unused));

static inline void *fake_pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/*
 * Map the consumer page, then the producer page and behind it the data twice in a row, as the
 * kernel maps a BPF ring buffer.
 */
static inline void fake_ring(struct fake *f, uint32_t bytes)
{
	size_t ps = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", 0);
	uint8_t *p = fake_pages(ps + 2 * (size_t)bytes);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_ptr_equal(mmap(p + ps, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			 p + ps);
	assert_ptr_equal(mmap(p + ps + bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fd, 0),
			 p + ps + bytes);
	close(fd);
	f->prod = (void *)p;
	f->ring = p + ps;
	f->ep->ring_cons = fake_pages(ps);
	f->ep->ring_prod = f->prod;
	f->ep->ring_data = f->ring;
	f->ep->ring_bytes = bytes;
	f->ep->ring_frames = bytes / (BL_REC_FULL + 8);
}

static inline void fake_make(struct fake *f, const char *ip, uint32_t ring_bytes)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct epoll_event ring = { .events = EPOLLIN | EPOLLET },
			   timer = { .events = EPOLLIN, .data.u32 = 1 };
	socklen_t n = sizeof(sin);
	int big = 4 << 20, i;
	struct bl_endpoint *ep = calloc(1, sizeof(*ep));

	assert_non_null(ep);
	f->ep = ep;
	for (i = 0; i < BL_FD_COUNT; i++)
		ep->fd[i] = -1;
	ep->daemon = -1;
	memcpy(ep->key, fake_key, sizeof(ep->key));
	ep->pid = getpid();
	bl_rq_init(&ep->rq);
	ep->slot = 3;
	ep->incarnation = (uint16_t)(0x1100 + inet_addr(ip) % 251);
	ep->frame_max = 1472;
	ep->send_buffer = 4u << 20;
	fake_ring(f, ring_bytes);
	ep->mine = fake_pages(sizeof(struct bl_ep_page));
	ep->line = &ep->mine->line;
	ep->wake = &ep->mine->wake;
	ep->fig = &ep->mine->fig;
	ep->line->ts = BL_TIME_NONE;
	ep->wake->until = ep->wake->until_c = BL_TIME_NONE;
	ep->hints = fake_pages(4096);
	ep->hints->next = ep->hints->next_c = BL_TIME_NONE;
	ep->page = f->page = fake_pages(4096);
	ep->clock = f->clock = fake_pages(4096);
	bl_clock_start(f->clock, 0, FAKE_BUS);
	f->clock->flags = BL_CLOCK_VALID;
	f->clock->void_after_ns = UINT64_MAX;
	ep->sock = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(ep->sock >= 0);
	if (setsockopt(ep->sock, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big)))
		setsockopt(ep->sock, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	sin.sin_addr.s_addr = inet_addr(ip);
	assert_int_equal(bind(ep->sock, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(getsockname(ep->sock, (struct sockaddr *)&sin, &n), 0);
	ep->self.ip[10] = ep->self.ip[11] = 0xff;
	memcpy(ep->self.ip + 12, &sin.sin_addr, 4);
	ep->self.port = ntohs(sin.sin_port);
	ep->epfd = epoll_create1(0);
	ep->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	ep->fd[BL_FD_RING] = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->fd[BL_FD_RING], &ring), 0);
	assert_int_equal(epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->timerfd, &timer), 0);
}

static inline void fake_free(struct fake *f)
{
	bl_exit(f->ep);
}

static inline void fake_barrier(struct fake *f, uint64_t b)
{
	if (b > f->page->barrier)
		__atomic_store_n(&f->page->barrier, b, __ATOMIC_RELEASE);
}

static inline uint64_t fake_now(void)
{
	return FAKE_BUS + bl_mono();
}

/* Raise the barrier above everything that was sent until now. */
static inline void fake_barrier_now(struct fake *f)
{
	fake_barrier(f, f->ep->last_ts > fake_now() ? f->ep->last_ts + 1 : fake_now());
}

/*
 * Reserve a record in the ring, as bpf_ringbuf_reserve() and a submit leave it. @flags:
 * BPF_RINGBUF_BUSY_BIT, _DISCARD_BIT. Returns its header, or NULL if the ring is full.
 */
static inline uint32_t *fake_reserve(struct fake *f, uint32_t room, uint32_t flags,
				     struct bl_rec **rec)
{
	uint8_t *at = f->ring + (*f->prod & (f->ep->ring_bytes - 1));

	if (*f->prod + room + 8 - __atomic_load_n(f->ep->ring_cons, __ATOMIC_ACQUIRE) >
	    f->ep->ring_bytes)
		return NULL; /* full */
	memset(at, 0xa5, room + 8);
	*(uint32_t *)at = room | flags;
	*rec = (void *)(at + 8);
	__atomic_store_n(f->prod, *f->prod + ((room + 8 + 7) & ~7u), __ATOMIC_RELEASE);
	return (uint32_t *)at;
}

static inline bool fake_put(struct fake *f, const struct bl_addr *from, uint8_t op, uint64_t ts,
			    uint32_t psn, const void *body, uint32_t len)
{
	uint32_t room = len <= 216    ? BL_REC_SMALL
			: len <= 1496 ? BL_REC_FULL
			: len <= 3544 ? BL_REC_JUMBO
				      : BL_REC_HUGE;
	struct bl_rec *rec;
	/*
	 * Busy (BPF_RINGBUF_BUSY_BIT) until it is complete, since a helper thread may look at it.
	 */
	uint32_t *head = fake_reserve(f, room, 1u << 31, &rec);

	if (!head)
		return false;
	*rec = (struct bl_rec){ .ts = ts,
				.psn = psn,
				.sport = from->port,
				.opcode = op,
				.flags = BL_HOP_HOST,
				.len = (uint16_t)len,
				.at = fake_at };
	memcpy(rec->saddr, from->ip, 16);
	if (len)
		memcpy(rec + 1, body, len);
	__atomic_store_n(head, room, __ATOMIC_RELEASE);
	return true;
}

/* Take the next frame off the endpoint's socket. Returns false if there is none. */
static inline bool fake_take(struct fake *f, struct seen *s)
{
	struct sockaddr_in sin;
	socklen_t n = sizeof(sin);
	ssize_t len = recvfrom(f->ep->sock, s->b, sizeof(s->b), MSG_DONTWAIT,
			       (struct sockaddr *)&sin, &n);

	if (len < 0)
		return false;
	assert_true(len >= (ssize_t)sizeof(struct bl_hdr));
	s->len = (uint32_t)len;
	memset(&s->from, 0, sizeof(s->from));
	s->from.ip[10] = s->from.ip[11] = 0xff;
	memcpy(s->from.ip + 12, &sin.sin_addr, 4);
	s->from.port = ntohs(sin.sin_port);
	s->h = (void *)s->b;
	s->body = s->b + sizeof(struct bl_hdr);
	s->body_len = s->len - (uint32_t)sizeof(struct bl_hdr);
	s->psn = bl_hdr_psn(s->h);
	s->ts = bl_get48(s->h->ts);
	assert_int_equal(s->h->opcode >> 5, BL_VERSION);
	s->op = s->h->opcode & 0x1f;
	s->ts = s->op == BL_OP_DATA ? bl_ext48(s->ts, FAKE_BUS) : s->ts;
	return true;
}

/* Take a frame that must be there and have this opcode. */
static inline void fake_expect(struct fake *f, struct seen *s, uint8_t op)
{
	assert_true(fake_take(f, s));
	assert_int_equal(s->op, op);
}

static inline void fake_silent(struct fake *f)
{
	struct seen s;

	assert_false(fake_take(f, &s));
}

/*
 * Play the receiver's XDP program for everything that is on the socket. @lose: how many of 1000
 * DATA and FRAG frames are lost. Returns the number of frames stored.
 */
static inline int fake_carry_lossy(struct fake *f, struct rnd *r, uint32_t lose)
{
	struct seen s;
	int n = 0;

	while (fake_take(f, &s)) {
		if (lose && s.op <= BL_OP_FRAG && rnd_below(r, 1000) < lose)
			continue;
		n += fake_put(f, &s.from, s.op, s.op == BL_OP_DATA ? s.ts : 0, s.psn, s.body,
			      s.body_len);
	}
	return n;
}

static inline int fake_carry(struct fake *f)
{
	return fake_carry_lossy(f, NULL, 0);
}

static inline struct bl_msg msg_to(const struct fake *to, const void *data, uint32_t len,
				   uint64_t cookie)
{
	return (struct bl_msg){ .dst = to->ep->self, .data = data, .len = len, .cookie = cookie };
}

static inline struct bl_peer *fake_peer(const struct fake *f, const struct fake *other)
{
	struct bl_peer *p = bl_peer_get(f->ep, other->ep->self.ip, other->ep->self.port);

	assert_non_null(p);
	return p;
}

/* Put a CREDIT from @from into the ring of @f. */
static inline void fake_credit(struct fake *f, const struct fake *from, uint32_t psn,
			       uint16_t window)
{
	uint8_t body[8];

	bl_store32(body, psn);
	bl_store16(body + 4, f->ep->incarnation);
	bl_store16(body + 6, window);
	assert_true(fake_put(f, &from->ep->self, BL_OP_CREDIT, 0, 0, body, sizeof(body)));
}

static inline void fake_nak(struct fake *f, const struct fake *from, uint32_t psn, uint32_t count,
			    uint8_t why, uint8_t item)
{
	uint8_t body[12];

	bl_store32(body, psn);
	bl_store32(body + 4, count);
	bl_store16(body + 8, f->ep->incarnation);
	body[10] = why;
	body[11] = item;
	assert_true(fake_put(f, &from->ep->self, BL_OP_NAK, 0, 0, body, sizeof(body)));
}

/* Build a DATA body with one item; returns its length. */
static inline uint32_t body_one(uint8_t *b, uint16_t incarnation, const void *data, uint32_t len)
{
	bl_store16(b, incarnation);
	bl_store16(b + 2, 1);
	bl_store16(b + 4, len);
	if (len)
		memcpy(b + 6, data, len);
	return 6 + len;
}

/* Failures that an endpoint has reported. */
struct failures {
	struct {
		uint64_t ts, cookie;
		struct bl_addr dst;
		enum bl_fail_reason why;
	} f[4096];
	uint32_t n;
};

static inline void on_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			   enum bl_fail_reason why)
{
	struct failures *fs = ctx;

	assert_true(fs->n < ARRAY_SIZE(fs->f));
	fs->f[fs->n].ts = ts;
	fs->f[fs->n].cookie = cookie;
	fs->f[fs->n].dst = *dst;
	fs->f[fs->n++].why = why;
}

#ifdef FAKE_THREE /* defined by a test that wants three endpoints */
static struct fake a, b, c;

static int three_up(void **state)
{
	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	fake_make(&c, "127.0.0.3", FAKE_RING);
	return 0;
}

static int three_down(void **state)
{
	(void)state;
	fake_free(&a);
	fake_free(&b);
	fake_free(&c);
	return 0;
}

#endif

#endif
