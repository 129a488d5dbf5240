// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/nic.c: two endpoints of one host, x and y, share the ring of its NIC; c is on another host.
 * The test says what SIOCOUTQ returns for their sockets: how many of their frames are in the ring.
 */
#include "tests/unit/lib/lib_rel.h"

#include "tests/unit/lib/siocoutq.h"

#include "lib/frame.h"
#include "lib/nic.h"

static struct fake x, y, c;
static int in_ring[1024]; /* frames, by file descriptor */

static int outq_of(int fd)
{
	return in_ring[fd] * BL_FRAME_CHARGE;
}

/* One page that both endpoints map, as processes of one host do. */
static void both(void **of_x, void **of_y, size_t n)
{
	int fd = memfd_create("page", 0);

	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	munmap(*of_x, n);
	munmap(*of_y, n);
	*of_x = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*of_y = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(*of_x != MAP_FAILED && *of_y != MAP_FAILED);
	close(fd);
}

static int up(void **state)
{
	void *px, *py;

	(void)state;
	make(&x, "127.0.0.1", 0);
	make(&y, "127.0.0.1", 1);
	make(&c, "127.0.0.3", 2);
	y.ep->slot = 5;
	both((void **)&x.ep->hints, (void **)&y.ep->hints, 4096);
	px = x.page;
	py = y.page;
	both(&px, &py, 4096);
	x.ep->page = x.page = px;
	y.ep->page = y.page = py;
	x.ep->hints->next = x.ep->hints->next_c = BL_TIME_NONE;
	x.page->eps_lines = 6;
	x.page->eps_active = 2;
	memset(in_ring, 0, sizeof(in_ring));
	outq_asked = 0;
	return 0;
}

static int down(void **state)
{
	(void)state;
	drop(&x);
	drop(&y);
	drop(&c);
	return 0;
}

/* One message to each of @n endpoints of other hosts: @n frames, which leave together. */
static void scatter(struct fake *f, unsigned int n, unsigned int first)
{
	struct bl_msg m[BL_SCATTER_MAX];
	unsigned int i;

	for (i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "127.0.%u.%u:9", 100 + (first + i) / 200,
			 1 + (first + i) % 200);
		m[i] = (struct bl_msg){ .data = "x", .len = 1 };
		assert_int_equal(bl_addr_parse(&m[i].dst, name), 0);
	}
	assert_int_equal(bl_send(f->ep, m, n, 0), 0);
}

static uint64_t sent(const struct fake *f)
{
	return f->ep->st.frames_sent;
}

static void expect_held(struct fake *f, uint64_t frames)
{
	assert_true(f->ep->held);
	assert_int_equal(sent(f), frames);
	/* What waits holds no barrier back. */
	assert_int_equal(f->ep->line->ts, BL_TIME_NONE);
	assert_int_equal(f->ep->hints->nic[f->ep->slot].offered,
			 f->ep->hints->nic[f->ep->slot].queued);
}

/* A sender that waits is not woken: it looks again by itself. */
static void expect_leaves(struct fake *f, uint64_t frames)
{
	assert_int_equal(bl_wait(f->ep, BL_WAIT_SEND, 10000), BL_WAIT_SEND);
	assert_int_equal(sent(f), frames);
}

static void bl_nic_full__two_share_the_ring(void **state)
{
	(void)state;
	scatter(&x, 100, 0);
	assert_int_equal(sent(&x), 100);
	in_ring[x.ep->sock] = 100;
	scatter(&y, 60, 200);
	assert_int_equal(sent(&y), 60);
	in_ring[y.ep->sock] = 60;
	assert_int_equal(outq_asked, 0); /* that many fit without asking */
	scatter(&y, 1, 300);
	expect_held(&y, 60);
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND, 1), 0);
	expect_held(&y, 60);
	/*
	 * The ring is a FIFO: when the last of y's frames has left it, x's frames have left it,
	 * too, whatever x does.
	 */
	in_ring[y.ep->sock] = 0;
	expect_leaves(&y, 61);
	assert_int_equal(y.ep->st.probes_sent, 0);
}

static void bl_nic_full__what_others_have_seen_leave(void **state)
{
	(void)state;
	scatter(&x, 70, 0);
	scatter(&y, 70, 200);
	in_ring[x.ep->sock] = in_ring[y.ep->sock] = 70;
	scatter(&x, 50, 400);
	expect_held(&x, 70);
	in_ring[x.ep->sock] = 0; /* y's frames are still there */
	expect_leaves(&x, 120);
	in_ring[x.ep->sock] = 50;
	assert_int_equal(x.ep->hints->nic[3].out, 70);
	scatter(&y, 40, 400); /* 70 + 50 + 40 */
	assert_int_equal(sent(&y), 110);
	in_ring[y.ep->sock] = 110;
	scatter(&y, 1, 500);
	expect_held(&y, 110);
}

/*
 * Windows do not limit here. 300 frames are more than any ring holds, so they leave when it is
 * empty.
 */
static void bl_nic_full__larger_than_the_ring(void **state)
{
	(void)state;
	scatter(&x, 1, 0);
	in_ring[x.ep->sock] = 1;
	scatter(&x, 250, 0);
	expect_held(&x, 1);
	in_ring[x.ep->sock] = 0;
	expect_leaves(&x, 251);
}

/* The only endpoint of a host asks nobody, and keeps no account. */
static void bl_nic_full__alone(void **state)
{
	struct bl_hints was;

	(void)state;
	x.page->eps_active = 1;
	was = *x.ep->hints;
	scatter(&x, 200, 0);
	scatter(&x, 24, 200);
	assert_int_equal(outq_asked, 0);
	scatter(&x, 1, 300);
	assert_int_equal(outq_asked, 1);
	assert_int_equal(sent(&x), 225);
	assert_memory_equal(&was, x.ep->hints, sizeof(was));
	/* Another endpoint comes: what is not credited may be in the ring. */
	x.page->eps_active = 2;
	scatter(&x, 1, 301);
	expect_held(&x, 225);
	assert_int_equal(x.ep->hints->nic[3].queued, 225 + 1); /* the frames and the PROBE */
	expect_leaves(&x, 226);                                /* the PROBE has left */
	assert_int_equal(x.ep->st.probes_sent, 1);
}

/* The others sleep, so nobody says that their frames have left. */
static void wait_for_nic__a_probe_is_the_witness(void **state)
{
	struct bl_msg m = msg_to(&c, "x", 1, 0);
	struct seen s;

	(void)state;
	scatter(&x, 224, 0);
	assert_int_equal(bl_send(y.ep, &m, 1, 0), 0);
	expect_held(&y, 0);
	fake_expect(&c, &s, BL_OP_PROBE);
	assert_int_equal(s.psn, 0);
	fake_silent(&c);
	in_ring[y.ep->sock] = 1;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND, 2), 0);
	fake_silent(&c); /* one PROBE suffices */
	expect_held(&y, 0);
	in_ring[y.ep->sock] = 0;
	expect_leaves(&y, 1);
	fake_expect(&c, &s, BL_OP_DATA);
}

/* Frames of @kind have waited for long enough, and have asked often enough. */
static void distrusts(struct fake *f, enum bl_nic_kind kind)
{
	f->ep->nic.wait[kind].since_ns -= BL_NIC_TRUST_NS;
	f->ep->nic.wait[kind].asks = BL_NIC_TRUST_ASKS;
}

/*
 * x is stopped in the middle of a send, or has written nonsense: y waits for BL_NIC_TRUST_NS, and
 * then believes its own socket alone, for a while.
 */
static void bl_nic_take__another_one_does_not_go_on(void **state)
{
	struct bl_hints *h = x.ep->hints;

	(void)state;
	scatter(&x, 10, 0);
	scatter(&y, 10, 200);
	in_ring[y.ep->sock] = 10;
	h->nic[3].offered += 204;
	scatter(&y, 1, 300);
	expect_held(&y, 10);
	assert_int_not_equal(y.ep->nic.wait[BL_NIC_SCATTERING].since_ns, 0);
	assert_int_equal(y.ep->nic.distrust_ns, 0);
	/* y's own frame has not left: the ring stands, and y waits for as long as that takes. */
	distrusts(&y, BL_NIC_SCATTERING);
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND, 1), 0);
	expect_held(&y, 10);
	assert_int_equal(y.ep->nic.distrust_ns, 0);
	in_ring[y.ep->sock] = 0;
	/* y had no CPU to look: others may have filled the ring again. */
	h->nic[3].out = 21;
	assert_true(bl_nic_waits(y.ep, 150));
	h->nic[3].out++;
	distrusts(&y, BL_NIC_RELIABLE);
	y.ep->nic.wait[BL_NIC_RELIABLE].asks = 0;
	assert_true(bl_nic_waits(y.ep, 150));
	assert_int_equal(y.ep->nic.distrust_ns, 0);
	distrusts(&y, BL_NIC_SCATTERING);
	expect_leaves(&y, 11);
	assert_true(y.ep->nic.distrust_ns > bl_mono());
	h->nic[3].offered = h->nic[3].queued = UINT64_MAX / 2;
	scatter(&y, 1, 301);
	expect_leaves(&y, 12);
	/* the others can count on its own words */
	assert_int_equal(h->nic[5].queued, 12 + y.ep->st.probes_sent);
	y.ep->nic.distrust_ns = 1;
	in_ring[y.ep->sock] = 1;
	/* More than any ring holds is not believed at all. */
	assert_false(bl_nic_waits(y.ep, 1));
	y.ep->nic.distrust_ns = 1;
	h->nic[3].offered = h->nic[3].queued = 500;
	scatter(&y, 1, 302);
	expect_held(&y, 12);
}

/*
 * What finds room does not make the time of what needs more of it begin anew: otherwise CREDITs
 * would keep data waiting for ever behind a process that does not go on.
 */
static void believes_account__each_kind_has_its_time(void **state)
{
	uint64_t since;

	(void)state;
	scatter(&x, 1, 0);
	x.ep->hints->nic[3].offered += BL_NIC_SHARED;
	assert_true(bl_nic_waits(y.ep, 1));
	since = y.ep->nic.wait[BL_NIC_RELIABLE].since_ns;
	assert_int_not_equal(since, 0);
	assert_int_equal(bl_nic_room(y.ep, 1, BL_NIC_CONTROLS), 1);
	assert_int_equal(y.ep->nic.wait[BL_NIC_RELIABLE].since_ns, since);
	/* One frame that goes as a witness has not found room. */
	assert_int_equal(bl_nic_room(y.ep, 1, BL_NIC_SHARED), 1);
	assert_int_not_equal(y.ep->nic.wait[BL_NIC_SINGLE].since_ns, 0);
}

/* Both have found room; the second one to take it sees the first. */
static void bl_nic_take__two_at_once(void **state)
{
	struct bl_hints *h = x.ep->hints;

	(void)state;
	scatter(&x, 1, 0);
	scatter(&y, 1, 1);
	assert_false(bl_nic_full(x.ep, 150));
	assert_false(bl_nic_full(y.ep, 150));
	assert_true(bl_nic_take(x.ep, 150));
	assert_int_equal(h->nic[3].offered, 151);
	assert_int_equal(h->nic[3].queued, 1);
	assert_false(bl_nic_take(y.ep, 150));
	assert_int_equal(h->nic[5].offered, 1);
	assert_true(bl_nic_take(y.ep, 8));
	bl_nic_sent(x.ep);
	assert_int_equal(h->nic[3].queued, 151);
	bl_nic_sent(y.ep);
	assert_int_equal(h->nic[5].queued, 9);
}

/*
 * Parts of a large message leave as there is room for them, and the message when all of them have
 * left.
 */
static void send_frags__parts_find_no_room(void **state)
{
	static char big[60000];
	struct bl_msg m = msg_to(&c, "x", 1, 0), g = msg_to(&c, big, sizeof(big), 0);
	struct seen s;
	int n = 0;

	(void)state;
	assert_int_equal(bl_send(y.ep, &m, 1, 0), 0);
	fake_expect(&c, &s, BL_OP_DATA);
	fake_credit(&y, &c, 1, BL_WINDOW_MAX);
	bl_process(y.ep);
	in_ring[y.ep->sock] = 1;
	scatter(&x, 149, 0);
	assert_int_equal(bl_send(y.ep, &g, 1, 0), 0);
	for (; fake_take(&c, &s); n++)
		assert_int_equal(s.op, BL_OP_FRAG);
	assert_int_equal(n, 10);
	in_ring[y.ep->sock] = 11;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND, 1), 0);
	fake_silent(&c);
	/* It does not wait for a window. */
	assert_true(y.ep->timers_ns < bl_mono() + BL_RTO_NS / 2);
	in_ring[y.ep->sock] = 0;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND, 10000), BL_WAIT_SEND);
	for (n = 0; fake_take(&c, &s) && s.op == BL_OP_FRAG; n++)
		;
	assert_int_equal(n, 42 - 10);
	assert_int_equal(s.op, BL_OP_DATA);
}

/* A frame that was put in before x's frames proves nothing about them. */
static void bl_nic_witness__only_of_what_was_there_before(void **state)
{
	(void)state;
	scatter(&y, 10, 0);
	in_ring[y.ep->sock] = 10;
	scatter(&x, 100, 200);
	/* y knows of x's frames now, and sends nothing. */
	assert_int_equal(bl_nic_room(y.ep, 10, BL_NIC_SHARED), 10);
	bl_nic_witness(y.ep);
	in_ring[y.ep->sock] = 0;
	scatter(&y, 61, 0);
	expect_held(&y, 10 + 0);
	assert_int_equal(y.ep->hints->nic[5].out, 10);
}

/* CREDITs wait, too; those that had no room leave as soon as there is some. */
static void bl_rx_credits__find_no_room(void **state)
{
	unsigned int i;
	uint64_t first;

	(void)state;
	scatter(&x, BL_NIC_SHARED, 0);
	for (i = 0; i < 40; i++) {
		struct bl_addr from = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 9 },
					.port = (uint16_t)(20000 + i) };
		uint8_t body[16];

		fake_put(&y, &from, BL_OP_DATA, FAKE_BUS, 0, body, body_one(body, 7, "x", 1));
	}
	in_ring[y.ep->sock] = 100;
	bl_process(y.ep);
	first = y.ep->st.credits_sent;
	assert_int_equal(first, BL_NIC_CONTROLS - BL_NIC_SHARED);
	assert_non_null(y.ep->credits);
	bl_process(y.ep);
	assert_int_equal(y.ep->st.credits_sent, first);
	assert_true(y.ep->timers_ns && y.ep->timers_ns < bl_mono() + 1000000000ULL);
	in_ring[y.ep->sock] = 0;
	bl_process(y.ep);
	assert_int_equal(y.ep->st.credits_sent, 40);
	assert_null(y.ep->credits);
}

/*
 * All windows of the host's endpoints together fit the ring on the way to the host. Frames between
 * its own endpoints do not pass that ring.
 */
static void bl_nic_window__of_all_endpoints(void **state)
{
	uint32_t w = bl_rx_window(y.ep);

	(void)state;
	assert_int_equal(w, BL_NIC_FRAMES / 8);
	y.ep->nic.senders = 6;
	bl_nic_sender(y.ep, 1);
	assert_int_equal(y.ep->nic.senders, 7);
	assert_int_equal(bl_nic_window(y.ep, w), BL_NIC_FRAMES / 14);
	/* as many endpoints, with as many senders each */
	x.page->eps_active = 4;
	assert_int_equal(bl_nic_window(y.ep, w), BL_NIC_FRAMES / 28);
	x.page->eps_active = 64;
	/* Never less, since a window of 0 would last for ever. */
	assert_int_equal(bl_nic_window(y.ep, w), BL_WINDOW_FIRST);
	y.ep->ring_bytes *= 2; /* the user asked for it: the network holds more */
	assert_int_equal(bl_nic_window(y.ep, w), w);
	y.ep->ring_bytes /= 2;
	x.page->eps_active = 1;
	assert_int_equal(bl_nic_window(y.ep, w), w);
}

/* @n more frames of x are in the ring. */
static void in_ring_of_x(uint64_t n)
{
	x.ep->hints->nic[3].queued = x.ep->hints->nic[3].offered += n;
}

/*
 * Reliable frames wait for room, too, as long as the account is believed. An OPEN is the witness
 * that tells when the ring is empty.
 */
static void nic_has_room__waits_for_the_account(void **state)
{
	struct bl_msg m = msg_to(&c, "x", 1, 0);
	struct seen s;
	uint64_t n;

	(void)state;
	introduce(&y, &c, 7);
	while (fake_take(&c, &s))
		;
	in_ring_of_x(420);
	n = y.ep->hints->nic[5].queued;
	assert_int_equal(bl_send_reliable(y.ep, &m, 1, 0), 0);
	assert_int_equal(bl_rtx_room(y.ep), 0);
	assert_int_equal(y.ep->line->ts, BL_TIME_NONE);
	assert_int_equal(y.ep->hints->nic[5].queued, n + 1);
	fake_expect(&c, &s, BL_OP_OPEN);
	in_ring[y.ep->sock] = 1;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 1), 0);
	fake_silent(&c); /* one OPEN suffices */
	distrusts(&y, BL_NIC_RELIABLE);
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 1), 0);
	/* The witness has left. */
	in_ring[y.ep->sock] = 0;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 10000), BL_WAIT_SEND_RELIABLE);
	assert_int_equal(y.ep->hints->nic[5].queued, n + 2); /* they are counted */
	fake_expect(&c, &s, BL_OP_PREP);
	/* Whoever does not go on does not stop them for ever. */
	x.ep->hints->nic[3].offered += 200;
	assert_int_equal(bl_send_reliable(y.ep, &m, 1, 0), 0);
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 1), 0);
	distrusts(&y, BL_NIC_RELIABLE);
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 10000), BL_WAIT_SEND_RELIABLE);
}

static int prepared(struct fake *f)
{
	struct seen s;
	int n = 0;

	while (fake_take(f, &s))
		n += s.op == BL_OP_PREP;
	return n;
}

/*
 * A large reliable message begins when what leaves at once has room, and its rest leaves as there
 * is room, even after it has begun.
 */
static void fill_window__parts_find_no_room(void **state)
{
	static char big[60000];
	struct bl_msg g = msg_to(&c, big, sizeof(big), 0);
	uint32_t w;

	(void)state;
	introduce(&y, &c, 7);
	prepared(&c);
	w = y.ep->peers->rtx.window;
	y.ep->peers->rtx.credited = y.ep->peers->rtx.next_psn; /* the greeting was delivered */
	in_ring_of_x(BL_NIC_SHARED - w);
	assert_int_equal(bl_send_reliable(y.ep, &g, 1, 0), 0);
	assert_int_equal(prepared(&c), w);
	in_ring[y.ep->sock] = (int)w;
	/* The receiver's window is open again, but the ring is still full. */
	y.ep->peers->rtx.window = BL_WINDOW_MAX;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 1), 0);
	assert_int_equal(prepared(&c), 0);
	in_ring[y.ep->sock] = 0;
	assert_int_equal(bl_wait(y.ep, BL_WAIT_SEND_RELIABLE, 10000), BL_WAIT_SEND_RELIABLE);
	assert_true(prepared(&c) >= 43 - (int)w);
}

/*
 * A control frame that was dropped at a full ring would tell, wrongly, that everything before it
 * has left.
 */
static void bl_tx_control__finds_no_room(void **state)
{
	struct bl_peer *p;
	struct seen s;

	(void)state;
	introduce(&y, &c, 7);
	while (fake_take(&c, &s))
		;
	p = y.ep->peers;
	in_ring_of_x(BL_NIC_CONTROLS - 1);
	assert_int_equal(bl_tx_control(y.ep, p, BL_OP_NAK, 0, "", 1), 0);
	in_ring[y.ep->sock] = 1;
	fake_expect(&c, &s, BL_OP_NAK);
	assert_int_equal(bl_tx_control(y.ep, p, BL_OP_NAK, 0, "", 1), -ENOBUFS);
	fake_silent(&c);
	assert_int_equal(y.ep->st.ring_full, 1);
	in_ring[y.ep->sock] = 0;
	assert_int_equal(bl_tx_control(y.ep, p, BL_OP_NAK, 0, "", 1), 0);
	fake_expect(&c, &s, BL_OP_NAK);
	/* Without a frame in the ring it is the witness itself. */
	in_ring[y.ep->sock] = 0;
	in_ring_of_x(BL_NIC_CONTROLS);
	assert_int_equal(bl_tx_control(y.ep, p, BL_OP_NAK, 0, "", 1), 0);
	in_ring[y.ep->sock] = 1;
	assert_int_equal(bl_tx_control(y.ep, p, BL_OP_NAK, 0, "", 1), -ENOBUFS);
	assert_int_equal(y.ep->st.ring_full, 2);
}

/* Frames that are sent again wait for room like others. */
static void bl_rtx_timers__find_no_room(void **state)
{
	struct bl_msg m = msg_to(&c, "x", 1, 0);
	struct seen s;

	(void)state;
	introduce(&y, &c, 7);
	while (fake_take(&c, &s))
		;
	assert_int_equal(bl_send_reliable(y.ep, &m, 1, 0), 0);
	fake_expect(&c, &s, BL_OP_PREP);
	in_ring[y.ep->sock] = 1;
	in_ring_of_x(BL_NIC_SHARED - 1);
	bl_rtx_timers(y.ep, bl_mono() + 1000000000);
	fake_silent(&c);
	assert_int_equal(y.ep->st.retransmits, 0);
	assert_true(y.ep->rtimer_ns < bl_mono() + 2000000000ULL);
	in_ring[y.ep->sock] = 0;
	y.ep->rtimer_ns = 1;
	bl_rtx_timers(y.ep, bl_mono() + 1000000000);
	fake_expect(&c, &s, BL_OP_PREP);
	assert_int_equal(y.ep->st.retransmits, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bl_nic_full__two_share_the_ring),
		T(bl_nic_full__what_others_have_seen_leave),
		T(bl_nic_full__larger_than_the_ring),
		T(bl_nic_full__alone),
		T(wait_for_nic__a_probe_is_the_witness),
		T(bl_nic_take__another_one_does_not_go_on),
		T(believes_account__each_kind_has_its_time),
		T(bl_nic_take__two_at_once),
		T(send_frags__parts_find_no_room),
		T(bl_nic_witness__only_of_what_was_there_before),
		T(bl_rx_credits__find_no_room),
		T(bl_nic_window__of_all_endpoints),
		T(nic_has_room__waits_for_the_account),
		T(fill_window__parts_find_no_room),
		T(bl_tx_control__finds_no_room),
		T(bl_rtx_timers__find_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
