/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the library's receive path (lib/rx.c, rrx.c, recall.c) with frames of any content, through
 * the ring that the program fills. The input is a list of operations: frames of three senders, with
 * any opcode, number, timestamp and body; barriers that rise; announcements; calls of the
 * application; silence of up to 30 s at a time, after which peers are forgotten.
 *
 * Besides what ASan and UBSan detect: a message is delivered whole, with its sender's bytes, in the
 * order of timestamps and once (messages that the harness sends according to the rules have a
 * pattern and a length that are compared); memory is bounded; and a sender that starts anew after
 * all of it, as lib/tx.c and lib/rtx.c would, gets its messages through.
 *
 * The programs, which refuse most of this earlier, time, and the answers are not covered.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <netinet/in.h>
#include <unistd.h>

#include "lib/attach.h"
#include "lib/recall.h"
#include "lib/rrx.h"
#include "lib/rtx.h"
#include "lib/rx.h"
#include "lib/shelf.h"
#include "lib/sweep.h"

#define BUS     1764000000000000000ULL
#define RING    (1u << 17)
#define SENDERS 3
#define LIFE    0x1234
#define MEMORY  (SENDERS * (BL_BIG_MAX + BL_RBIG_MAX) + (8u << 20))

static struct bl_host_page *page;
static struct bl_clock *bus_clock;
static struct bl_failures failures;
static struct bl_ep_page *mine;
static struct bl_hints *hints;
static uint64_t *cons;
static uint8_t *prod, *ring;
static int sock = -1, epfd = -1, timerfd = -1;

static void *pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	FUZZ_CHECK(p != MAP_FAILED);
	return p;
}

/*
 * Creates what all runs share. The ring is mapped as by the kernel, with the data twice in a row.
 */
static void world(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	size_t ps = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", 0);

	page = pages(4096);
	bus_clock = pages(4096);
	mine = pages(sizeof(*mine));
	hints = pages(4096);
	cons = pages(ps);
	prod = pages(ps + 2 * RING);
	ring = prod + ps;
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, RING));
	FUZZ_CHECK(mmap(ring, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == ring);
	FUZZ_CHECK(mmap(ring + RING, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		   ring + RING);
	close(fd);
	/* Bound, and without a receiver: answers go to an own port that is never read. */
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	FUZZ_CHECK(sock >= 0 && !bind(sock, (struct sockaddr *)&sin, sizeof(sin)));
	epfd = epoll_create1(0);
	timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	FUZZ_CHECK(epfd >= 0 && timerfd >= 0);
}

static struct bl_addr sender(unsigned int i)
{
	struct bl_addr a = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 9 },
			     .port = (uint16_t)(9 + i) };

	return a;
}

static struct bl_endpoint *open_ep(void)
{
	struct bl_endpoint *ep = calloc(1, sizeof(*ep));
	int i;

	FUZZ_CHECK(ep);
	for (i = 0; i < BL_FD_COUNT; i++)
		ep->fd[i] = -1;
	ep->daemon = -1;
	bl_rq_init(&ep->rq);
	bl_rq_init(&ep->rrq);
	memset(page, 0, sizeof(*page));
	memset(mine, 0, sizeof(*mine));
	mine->line.ts = BL_TIME_NONE;
	mine->wake.until = mine->wake.until_c = BL_TIME_NONE;
	memset(hints, 0, sizeof(*hints));
	hints->next = hints->next_c = BL_TIME_NONE;
	memset(&failures, 0, sizeof(failures));
	bl_clock_start(bus_clock, 0, BUS);
	bus_clock->flags = BL_CLOCK_VALID;
	bus_clock->void_after_ns = UINT64_MAX;
	*cons = 0;
	*(uint64_t *)(void *)prod = 0;
	ep->slot = 3;
	ep->incarnation = LIFE;
	ep->frame_max = 1472;
	ep->send_buffer = 1u << 20;
	ep->ring_cons = cons;
	ep->ring_prod = (void *)prod;
	ep->ring_data = ring;
	ep->ring_bytes = RING;
	ep->ring_frames = RING / (BL_REC_FULL + 8);
	ep->mine = mine;
	ep->line = &mine->line;
	ep->wake = &mine->wake;
	ep->rwin = &mine->win;
	ep->fig = &mine->fig;
	ep->hints = hints;
	ep->page = page;
	ep->clock = bus_clock;
	ep->failures = &failures;
	ep->reliable = true;
	ep->sock = sock;
	ep->epfd = epfd;
	ep->timerfd = timerfd;
	ep->self = sender(200);
	return ep;
}

/* Same as bl_exit(), except for what all runs share. */
static void close_ep(struct bl_endpoint *ep)
{
	bl_shelf_free(ep);
	bl_rx_free(ep);
	bl_rrx_free(ep);
	bl_rtx_free(ep);
	bl_recall_free(ep);
	bl_peers_free(ep);
	bl_rq_free(&ep->rq);
	free(ep->undo);
	free(ep);
}

/*
 * Puts a frame into the ring as bpf_ringbuf_reserve() and the program do; a frame that does not fit
 * is lost, as there.
 */
static bool put(struct bl_endpoint *ep, unsigned int from, uint8_t op, uint64_t ts, uint32_t psn,
		const uint8_t *body, uint32_t len)
{
	uint32_t room = len <= 216    ? BL_REC_SMALL
			: len <= 1496 ? BL_REC_FULL
			: len <= 3544 ? BL_REC_JUMBO
				      : BL_REC_HUGE;
	uint64_t at = *ep->ring_prod;
	uint8_t *p = ring + (at & (RING - 1));
	struct bl_addr a = sender(from);
	struct bl_rec *rec = (void *)(p + 8);

	if (at + room + 8 - *cons > RING)
		return false;
	memset(p, 0xa5, room + 8);
	*(uint32_t *)(void *)p = room;
	*rec = (struct bl_rec){ .ts = ts,
				.psn = psn,
				.sport = a.port,
				.opcode = op,
				.flags = BL_HOP_HOST,
				.len = (uint16_t)len };
	memcpy(rec->saddr, a.ip, 16);
	if (len)
		memcpy(rec + 1, body, len);
	*(uint64_t *)(void *)prod = at + ((room + 8 + 7) & ~7u);
	return true;
}

static uint64_t memory_of(const struct bl_endpoint *ep)
{
	uint64_t n = (uint64_t)(ep->rq.frames + ep->rrq.frames) * 2048;
	uint64_t big = 0, rbig = 0, strange = 0;
	uint32_t strangers = 0, senders = 0;
	const struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next) {
		n += p->rx.big_bytes + p->rrx.big_bytes;
		big += p->rx.big_room;
		rbig += p->rrx.big_bytes;
		strange += p->stranger ? p->rx.big_room : 0;
		strangers += p->stranger != 0;
		senders += p->rx.counted + p->rrx.counted;
		FUZZ_CHECK(!p->stranger || ep->strangers[p->stranger - 1] == p);
		FUZZ_CHECK(*p->all_at == p);
		FUZZ_CHECK(p->rx.nbigs <= BL_BIGS_MAX && p->rrx.nbigs <= BL_BIGS_MAX);
		FUZZ_CHECK(p->rrx.nrecalled <= BL_RWIN);
	}
	/* The accounts say what the peers say. */
	FUZZ_CHECK(big == ep->big_bytes && rbig == ep->rbig_bytes && strange == ep->strange_bytes);
	FUZZ_CHECK(strangers == ep->nstrangers && senders == ep->nsenders);
	return n;
}

struct state {
	struct bl_endpoint *ep;
	uint64_t now, last[2]; /* timestamps of the latest deliveries */
	uint32_t whole[2];     /* delivered messages of the last sender */
	bool last_words;
};

/* value of every byte of the last sender's messages, whose lengths are their numbers + 1 */
#define GOOD 0x5a

static void take(struct state *s, bool reliable)
{
	struct bl_delivery d[16];
	int n, i;
	uint32_t k;

	while ((n = reliable ? bl_recv_reliable(s->ep, d, 16, 0) : bl_recv(s->ep, d, 16, 0)) > 0)
		for (i = 0; i < n; i++) {
			uint32_t sum = 0;

			FUZZ_CHECK(d[i].ts >= s->last[reliable] && d[i].len <= BL_MSG_MAX);
			s->last[reliable] = d[i].ts;
			/* ASan: the whole message is readable, and no part of it is freed. */
			for (k = 0; k < d[i].len; k++)
				sum += ((const uint8_t *)d[i].data)[k];
			if (!s->last_words || d[i].src.port != sender(SENDERS).port)
				continue;
			FUZZ_CHECK(d[i].len == s->whole[reliable] + 1 && sum == GOOD * d[i].len);
			s->whole[reliable]++;
		}
}

static void advance(struct state *s, uint64_t by)
{
	s->now += by;
	page->barrier = page->commit = s->now;
}

/*
 * Makes a body in the form of @op, so that the parsers accept it; its fields come from the input.
 */
static uint32_t form(struct fuzz_in *in, uint8_t op, uint8_t *body)
{
	uint32_t len = 0, i, n;

	bl_store16(body, fuzz_u8(in) & 1 ? 5 : 6); /* one of two lives */
	switch (op) {
	case BL_OP_PREP:
		n = fuzz_u8(in) & 3;
		bl_store16(body + 2, n);
		bl_store32(body + 4, fuzz_u8(in));
		bl_store16(body + 8, LIFE);
		bl_store16(body + 10, 0);
		len = BL_ACK_BODY;
		goto items;
	case BL_OP_DATA:
		n = 1 + (fuzz_u8(in) & 3);
		bl_store16(body + 2, n);
		len = sizeof(struct bl_data);
	items:
		if (!n) { /* a part */
			bl_frag_put(body + len, fuzz_u8(in), (uint32_t)fuzz_u16(in) << 4,
				    1 + ((uint32_t)fuzz_u16(in) << 4));
			return len + (uint32_t)sizeof(struct bl_frag) + 1 + fuzz_u8(in);
		}
		for (i = 0; i < n; i++) {
			uint8_t kind = fuzz_u8(in);

			if (kind & 0x80) {
				bl_ref_put(body + len, kind & 3, 1 + fuzz_u16(in));
				len += 2 + (uint32_t)sizeof(struct bl_ref);
			} else {
				bl_item_put(body + len, "0123456789abcdef", kind & 15);
				len += 2 + (kind & 15);
			}
		}
		return len < BL_PREP_MIN ? BL_PREP_MIN : len;
	case BL_OP_FRAG:
		bl_store16(body + 2, 0);
		bl_frag_put(body + sizeof(struct bl_data), fuzz_u8(in), (uint32_t)fuzz_u16(in) << 4,
			    1 + ((uint32_t)fuzz_u16(in) << 4));
		return (uint32_t)(sizeof(struct bl_data) + sizeof(struct bl_frag)) + 1 +
		       fuzz_u8(in);
	case BL_OP_RECALL:
	case BL_OP_RECALLED:
		bl_store16(body + 2, LIFE);
		bl_store32(body + 4, fuzz_u16(in));
		bl_put48(body + 8, BUS + fuzz_u16(in));
		bl_store16(body + 14, 0);
		return sizeof(struct bl_recall);
	default:
		bl_store32(body, fuzz_u16(in));
		bl_store16(body + 4, fuzz_u8(in) & 1 ? LIFE : 5);
		bl_store16(body + 6, fuzz_u16(in));
		bl_store16(body + 8, fuzz_u8(in) & 3);
		bl_store16(body + 10, 0);
		return 12;
	}
}

static void frame(struct state *s, struct fuzz_in *in, uint8_t what)
{
	static uint8_t body[2048];
	uint8_t op = what & 31, how = fuzz_u8(in);
	uint32_t psn = how & 1   ? fuzz_u8(in)
		       : how & 2 ? (uint32_t)fuzz_u16(in) << 16 | fuzz_u16(in)
				 : fuzz_u16(in),
		 len, i;
	uint64_t ts = s->now + (how & 4 ? fuzz_u8(in) : 0) - (how & 8 ? fuzz_u16(in) : 0) +
		      (how & 16 ? 1ULL << (fuzz_u8(in) & 63) : 0);

	memset(body, 0, sizeof(body));
	len = form(in, op, body);
	if (how & 32) /* any value */
		for (i = 0, len = fuzz_u16(in) % 1600; i < len; i++)
			body[i] = fuzz_u8(in);
	put(s->ep, how >> 6 & 3 ? (how >> 6 & 3) - 1 : 0, op, ts, psn, body, len);
}

static void announce(struct fuzz_in *in, const struct state *s)
{
	struct bl_failure *f = &failures.ring[(failures.last + 1) % BL_FAILS_MAX];
	struct bl_addr a = sender(fuzz_u8(in) % SENDERS);

	*f = (struct bl_failure){ .number = failures.last + 1,
				  .ts = s->now + fuzz_u8(in),
				  .life = fuzz_u8(in) & 1 ? 5 : 0,
				  .port = fuzz_u8(in) & 1 ? a.port : 0 };
	memcpy(f->addr, a.ip, 16);
	if (!f->port)
		f->addr[0] = 1; /* another host: all the senders are on one */
	failures.last++;
}

/* A new sender that keeps the rules: 20 messages of each stream, one frame each. */
static void last_words(struct state *s)
{
	static uint8_t body[256];
	uint32_t i;

	s->last_words = true;
	take(s, false);
	take(s, true);
	/* Whatever barrier was accepted, what arrives now is above it. */
	s->now = bl_max64(s->now, bl_max64(s->last[0], s->last[1])) + 1;
	bl_store16(body, 77);
	bl_store16(body + 2, 0);
	FUZZ_CHECK(put(s->ep, SENDERS, BL_OP_OPEN, 0, 500, body, sizeof(struct bl_data)));
	for (i = 0; i < 20; i++) {
		uint8_t good[32];

		memset(good, GOOD, sizeof(good));
		memset(body, 0, sizeof(body));
		bl_store16(body, 77);
		bl_store16(body + 2, 1);
		bl_item_put(body + sizeof(struct bl_data), good, i + 1);
		FUZZ_CHECK(put(s->ep, SENDERS, BL_OP_DATA, s->now + i, i, body, 200));
		memset(body, 0, sizeof(body));
		bl_store16(body, 77);
		bl_store16(body + 2, 1);
		bl_store16(body + 8, LIFE);
		bl_item_put(body + BL_ACK_BODY, good, i + 1);
		FUZZ_CHECK(put(s->ep, SENDERS, BL_OP_PREP, s->now + i, 500 + i, body, 200));
		bl_process(s->ep);
	}
	advance(s, 100);
	take(s, false);
	take(s, true);
	FUZZ_CHECK(s->whole[0] == 20 && s->whole[1] == 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct state s = { .now = BUS + bl_mono() };
	uint64_t swept = bl_mono();

	if (!page)
		world();
	s.ep = open_ep();
	s.ep->key[0] = fuzz_u8(&in) & 1; /* with challenges, or without */
	advance(&s, 1);
	while (in.left) {
		uint8_t what = fuzz_u8(&in);

		switch (what >> 5) {
		default:
			frame(&s, &in, what);
			break;
		case 4:
			advance(&s, (uint64_t)(what & 31) << 3);
			break;
		case 5:
			take(&s, what & 1);
			break;
		case 6:
			bl_process(s.ep);
			if (what & 1)
				bl_sweep(s.ep, swept += (what & 30) * BL_SWEEP_NS);
			break;
		case 7:
			announce(&in, &s);
			break;
		}
		FUZZ_CHECK(memory_of(s.ep) <= MEMORY);
	}
	if (!s.ep->outcast && !s.ep->put_out)
		last_words(&s);
	FUZZ_CHECK(memory_of(s.ep) <= MEMORY);
	close_ep(s.ep);
	return 0;
}
