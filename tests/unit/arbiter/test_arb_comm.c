// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/comm.c between sessions and pipeline: which slots a session gets, what becomes
 * of refunds, which list of links is accepted. The arithmetic of sessions is in test_fcp_core.c.
 */
#include "arbiter/comm_priv.h"
#include "arbiter/socket.h"

#include "tests/unit/unit.h"

static struct {
	uint64_t slot;
	uint32_t dst;
	uint8_t path;
} given[64];
static unsigned int ngiven, refuses;

/* Stands for a session that takes any slot, except the next @refuses slots. */
int __wrap_arb_peer_grant(struct arb_peer *p, uint64_t slot, uint32_t dst, uint8_t path);
int __wrap_arb_peer_grant(struct arb_peer *p, uint64_t slot, uint32_t dst, uint8_t path)
{
	(void)p;
	if (refuses) {
		refuses--;
		return -1;
	}
	assert_true(ngiven < ARRAY_SIZE(given));
	given[ngiven].slot = slot;
	given[ngiven].dst = dst;
	given[ngiven++].path = path;
	return 0;
}

/* Stands for sessions that have nothing to send. */
void __wrap_arb_peer_send(struct bl_arb *arb, struct arb_peer *p, uint64_t now);
void __wrap_arb_peer_send(struct bl_arb *arb, struct arb_peer *p, uint64_t now)
{
	(void)arb, (void)p, (void)now;
}

#define HOSTS 3

static struct bl_arb *a;
static struct bl_fcp_pair pairs[HOSTS];
static uint16_t items[HOSTS];
static unsigned int told;

static void links(void *ctx, const struct bl_fcp_link *l, unsigned int n)
{
	(void)ctx, (void)l;
	told += 1 + n;
}

static int comm_setup(void **state)
{
	(void)state;
	a = aligned_alloc(64, (sizeof(*a) + 63) & ~63UL);
	assert_non_null(a);
	memset(a, 0, sizeof(*a));
	a->cfg.nendpoints = HOSTS;
	a->cfg.slot_ns = 10000;
	a->cfg.clock = CLOCK_MONOTONIC;
	a->cfg.links = links;
	a->peer = calloc(HOSTS, sizeof(*a->peer));
	a->touched = calloc(HOSTS, sizeof(*a->touched));
	a->sock[0] = calloc(1, sizeof(*a->sock[0]));
	a->sock[0]->fd = -1;
	a->nsock = 1;
	memset(pairs, 0, sizeof(pairs));
	for (uint32_t i = 0; i < HOSTS; i++)
		a->peer[i].fcp.e.nonce = 77;
	a->peer[1].fcp.e.pair = pairs;
	a->peer[1].fcp.e.n = HOSTS;
	a->peer[1].fcp.e.look.item = items;
	ngiven = refuses = told = 0;
	return 0;
}

static int comm_teardown(void **state)
{
	(void)state;
	free(a->sock[0]);
	free(a->peer);
	free(a->touched);
	free(a);
	return 0;
}

/* Bit i of a grant is slot @base + i; an endpoint with grants is listed once. */
static void arb_take_slots__each_bit(void **state)
{
	const uint64_t base = UINT64_MAX / 2 / 64 * 64; /* far in the future */
	const struct arb_grant g = {
		.base = base, .slots = 1ULL << 63 | 1ULL << 5 | 1, .src = 1, .dst = 2, .path = 3
	};

	(void)state;
	arb_take_slots(a, &g, 1);
	assert_int_equal(ngiven, 3);
	assert_int_equal(given[0].slot, base);
	assert_int_equal(given[1].slot, base + 5);
	assert_int_equal(given[2].slot, base + 63);
	assert_int_equal(given[1].dst, 2);
	assert_int_equal(given[1].path, 3);
	assert_int_equal(a->t.granted, 3);
	assert_int_equal(a->t.late, 0);
	arb_take_slots(a, &g, 1);
	assert_int_equal(a->ntouched, 1);
	assert_int_equal(a->touched[0], 1);
}

/*
 * Slots of long ago are given and counted as late; a slot that the session refuses twice is
 * dropped.
 */
static void arb_take_slots__late_and_refused(void **state)
{
	const struct arb_grant g = { .base = 64, .slots = 6, .src = 1, .dst = 2 };

	(void)state;
	arb_take_slots(a, &g, 1);
	assert_int_equal(a->t.granted, 2);
	assert_int_equal(a->t.late, 2);
	refuses = 1; /* the packet is full: it is sent, and the next one has room */
	arb_take_slots(a, &g, 1);
	assert_int_equal(a->t.granted, 4);
	refuses = 2;
	arb_take_slots(a, &g, 1);
	assert_int_equal(a->t.granted, 5);
}

/* Slots for a session that has ended are stale, for whatever reason it ended. */
static void arb_take_slots__stale(void **state)
{
	const struct arb_grant g = { .base = 64, .slots = 7, .src = 1, .dst = 2 };

	(void)state;
	a->peer[1].forgets = 1;
	arb_take_slots(a, &g, 1);
	a->peer[1].forgets = 0;
	a->peer[1].fcp.fresh = 1;
	arb_take_slots(a, &g, 1);
	a->peer[1].fcp.fresh = 0;
	a->peer[1].fcp.e.nonce = 0;
	arb_take_slots(a, &g, 1);
	assert_int_equal(ngiven, 0);
	assert_int_equal(a->t.stale, 9);
	assert_int_equal(a->peer[1].stale, 9);
	assert_int_equal(a->ntouched, 0);
}

/* A demand that the allocator refused counts as not handed over: the session asks again. */
static void arb_take_refund__asks_again(void **state)
{
	const struct arb_grant g = { .mtus = 7, .src = 1, .dst = 2, .kind = ARB_REFUND };

	(void)state;
	pairs[2].done = 10;
	a->peer[1].fcp.waiting = 9;
	arb_take_refund(a, &g);
	assert_int_equal(pairs[2].done, 3);
	assert_int_equal(a->peer[1].fcp.waiting, 2);
	assert_int_equal(a->peer[1].fcp.e.look.count, 1);
	assert_int_equal(items[0], 2);
	a->peer[1].forgets = 1;
	arb_take_refund(a, &g);
	a->peer[1].forgets = 0;
	a->peer[1].fcp.fresh = 1;
	arb_take_refund(a, &g);
	assert_int_equal(pairs[2].done, 3);
	assert_int_equal(a->t.refunds, 3);
}

/* Lists of links are ordered by boot and version: an older one is never accepted; versions wrap. */
static void arb_take_faults__newer_ones(void **state)
{
	static const struct {
		uint64_t boot;
		uint32_t version;
		enum bl_fcp_reason why;
		unsigned int told;
	} t[] = {
		{ 5, 3, BL_FCP_R_OK, 1 },           { 5, 3, BL_FCP_R_OK, 0 },
		{ 5, 2, BL_FCP_R_OLD, 0 },          { 4, 9, BL_FCP_R_OLD, 0 },
		{ 5, 4, BL_FCP_R_OK, 1 },           { 6, 1, BL_FCP_R_OK, 1 },
		{ 5, 99, BL_FCP_R_OLD, 0 },         { 6, 0x80000000, BL_FCP_R_OK, 1 },
		{ 6, UINT32_MAX, BL_FCP_R_OK, 1 },  { 6, 0, BL_FCP_R_OK, 1 },
		{ 6, UINT32_MAX, BL_FCP_R_OLD, 0 },
	};

	(void)state;
	a->params.table = 8;
	a->faults_challenge = 9;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_fcp_faults b = { .boot = BL_BE64(t[i].boot),
						 .version = BL_BE32(t[i].version),
						 .table = BL_BE32(8) };
		struct bl_fcp_pkt k = { .body = &b, .challenge = 9 };
		unsigned int before = told;

		assert_int_equal(arb_take_faults(a, &k), t[i].why);
		assert_int_equal(told - before, t[i].told);
		k.challenge = 10;
		assert_int_equal(arb_take_faults(a, &k), BL_FCP_R_BAD_CHALLENGE);
	}
	a->params.table = 7;
	assert_int_equal(
		arb_take_faults(a,
				&(struct bl_fcp_pkt){
					.body = &(struct bl_fcp_faults){ .table = BL_BE32(8) },
					.challenge = 9 }),
		BL_FCP_R_BAD_TABLE);
}

/* Slot numbers follow the clock plus the configured offset. */
static void arb_slot__offset(void **state)
{
	const uint64_t before = arb_slot(a, 0), offset = 1000000000000000000;

	(void)state;
	a->cfg.clock_offset_ns = (int64_t)offset;
	assert_true(arb_slot(a, 0) - before >= offset / a->cfg.slot_ns);
	assert_true(arb_slot(a, offset) - before >= 2 * (offset / a->cfg.slot_ns));
	a->cfg.clock_offset_ns = 0;
}

/* A queued packet has the bytes that were written, for the address that was given. */
static void arb_sock_queue__the_message(void **state)
{
	struct arb_peer p = { .port = 4444 };
	struct arb_packets *o = &a->sock[0]->out;

	(void)state;
	p.addr.s6_addr[10] = p.addr.s6_addr[11] = 0xff;
	p.addr.s6_addr[12] = 10;
	p.addr.s6_addr[15] = 9;
	a->sock[0]->family = AF_INET;
	for (unsigned int i = 0; i < 2; i++) {
		const struct msghdr *h = &o->msg[i].msg_hdr;
		const struct sockaddr_in *to = h->msg_name;

		arb_sock_queue(a->sock[0], &p.addr, p.port, 100 + i);
		to = h->msg_name;
		assert_int_equal(o->n, i + 1);
		assert_ptr_equal(h->msg_iov, &o->iov[i]);
		assert_int_equal(h->msg_iovlen, 1);
		assert_ptr_equal(o->iov[i].iov_base, o->buf[i]);
		assert_int_equal(o->iov[i].iov_len, 100 + i);
		assert_int_equal(h->msg_namelen, sizeof(*to));
		assert_int_equal(ntohs(to->sin_port), 4444);
		assert_int_equal(ntohl(to->sin_addr.s_addr), 0x0a000009);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, comm_setup, comm_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(arb_take_slots__each_bit),    CASE(arb_take_slots__late_and_refused),
		CASE(arb_take_slots__stale),       CASE(arb_take_refund__asks_again),
		CASE(arb_take_faults__newer_ones), CASE(arb_slot__offset),
		CASE(arb_sock_queue__the_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
