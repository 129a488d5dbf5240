// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An arbiter and its hosts on a bad channel: loss, duplication, reordering, packets that are
 * milliseconds late, an arbiter that is replaced, and hosts that restart. In all cases a host takes
 * each slot at most once, no two hosts send to one destination in one slot, no packet of another
 * session is accepted, and there is at most one RESET per round trip. Once the channel is good
 * again, every slot that was wanted has been received exactly once, and no host wants or holds
 * anything.
 */
#include "tests/unit/core/fastpass/fcp_ends.h"

#define HOSTS  5
#define STEP   (5 * US)
#define SLOT   1230ULL
#define FLIGHT 4096
#define SLOTS  200000 /* slots are numbered from FIRST on */
#define FIRST  (T0 / SLOT)

/**
 * struct flight - a packet under way
 */
struct flight {
	uint64_t at_ns; /* time of arrival */
	uint64_t nonce; /* the session in which it was sent; 0: RESET */
	uint32_t to;    /* a host, or HOSTS + host: from that host to the arbiter */
	uint32_t len;   /* 0: the entry is free */
	_Alignas(8) uint8_t bytes[BL_FCP_PACKET_MAX];
};

/**
 * struct world - the hosts, the arbiter's sessions with them, and the channel
 */
static struct world {
	struct rnd r;
	struct bl_fcp_params params;
	struct bl_fcp_host host[HOSTS];
	struct bl_fcp_arb arb[HOSTS];
	struct mem hm[HOSTS], am[HOSTS];
	uint32_t backlog[HOSTS][HOSTS]; /* [src][dst], of the allocator */
	uint32_t loss, dup, late,
		delay_us; /* chances in 1000 of loss, a duplicate, a very late packet */
	uint64_t now, next_slot;
	uint32_t term;
	uint64_t resets_seen[HOSTS], born_ns;
	struct flight fly[FLIGHT];
	uint32_t nfly;                 /* entries that may be in use */
	uint8_t sent_to[SLOTS][HOSTS]; /* [slot][dst] 1 + the host that took it */
	uint8_t took[SLOTS][HOSTS];
	uint64_t delivered, dropped, refused_old;
} w;

static void put_packet(uint32_t to, uint64_t nonce, const uint8_t *p, uint32_t len)
{
	uint32_t copies = 1 + (rnd_below(&w.r, 1000) < w.dup), i;

	if (rnd_below(&w.r, 1000) < w.loss) {
		w.dropped++;
		return;
	}
	while (copies--) {
		uint64_t delay = rnd_below(&w.r, w.delay_us + 1) * US + 1;

		if (rnd_below(&w.r, 1000) < w.late)
			delay += rnd_below(&w.r, 8000) * US;
		for (i = 0; i < FLIGHT && w.fly[i].len; i++)
			;
		if (i == FLIGHT)
			return;
		w.fly[i] = (struct flight){
			.at_ns = w.now + delay, .nonce = nonce, .to = to, .len = len
		};
		memcpy(w.fly[i].bytes, p, len);
		if (i >= w.nfly)
			w.nfly = i + 1;
	}
}

static void host_takes(uint32_t i, const struct bl_fcp_pkt *k)
{
	struct bl_fcp_slots s;
	uint32_t r, n;

	for (r = 0; r < k->nruns; r++) {
		bl_fcp_slots_at(k, r, &s);
		for (n = 0; n < s.count; n++) {
			uint64_t slot = s.first + n * s.stride - FIRST;

			assert_true(slot < SLOTS);
			assert_int_equal(w.took[slot][i], 0);
			assert_int_equal(w.sent_to[slot][s.dst], 0);
			w.took[slot][i] = 1;
			w.sent_to[slot][s.dst] = (uint8_t)(i + 1);
		}
	}
}

static void deliver_packet(struct flight *f)
{
	uint8_t *p = aligned_alloc(8, (f->len + 7) & ~7U);
	enum bl_fcp_reason why;
	struct bl_fcp_pkt k;

	memcpy(p, f->bytes, f->len);
	if (f->to < HOSTS) {
		struct bl_fcp_host *h = &w.host[f->to];
		uint32_t challenge = h->challenge;

		why = bl_fcp_host_rx(h, p, f->len, w.now, &k);
		if (why == BL_FCP_R_OK && (k.opcode == BL_FCP_ALLOC || k.opcode == BL_FCP_ACK))
			assert_int_equal(f->nonce, h->e.nonce);
		if (why == BL_FCP_R_OK && k.opcode == BL_FCP_RESET)
			assert_int_equal(k.challenge, challenge);
		if (why == BL_FCP_R_OK && k.opcode == BL_FCP_ALLOC)
			host_takes(f->to, &k);
	} else {
		struct bl_fcp_arb *a = &w.arb[f->to - HOSTS];

		why = bl_fcp_arb_rx(a, p, f->len, w.now, rnd64(&w.r));
		if (why == BL_FCP_R_OK)
			assert_int_equal(f->nonce, a->e.nonce);
	}
	w.refused_old += why != BL_FCP_R_OK;
	w.delivered++;
	free(p);
	f->len = 0;
}

/* Gives a maximal matching of one slot, in random order. */
static void allocate_slot(uint64_t slot)
{
	uint32_t start = rnd_below(&w.r, HOSTS * HOSTS), i, used_src = 0, used_dst = 0;
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];

	for (i = 0; i < HOSTS * HOSTS; i++) {
		uint32_t at = (start + i) % (HOSTS * HOSTS), src = at / HOSTS, dst = at % HOSTS, n;
		int full;

		if (!w.backlog[src][dst] || used_src >> src & 1 || used_dst >> dst & 1)
			continue;
		used_src |= 1U << src;
		used_dst |= 1U << dst;
		w.backlog[src][dst]--;
		full = bl_fcp_arb_grant(&w.arb[src], slot, dst, (uint8_t)rnd_below(&w.r, 2));
		if (full < 0) {
			n = bl_fcp_arb_tx(&w.arb[src], w.now, buf);
			put_packet(src, w.arb[src].e.nonce, buf, n);
			full = bl_fcp_arb_grant(&w.arb[src], slot, dst, 0);
		}
		assert_int_equal(full, 0); /* Everything that the allocator holds was asked for. */
	}
}

static void new_arbiter(void)
{
	uint32_t i;

	w.term++;
	w.born_ns = w.now;
	memset(w.backlog, 0, sizeof(w.backlog));
	for (i = 0; i < HOSTS; i++)
		arb_init(&w.arb[i], &w.am[i], &w.params, HOSTS, i, w.term);
	/* fencing: the slots that the old arbiter gave have ended */
	w.next_slot += 200;
}

static void new_host(uint32_t i)
{
	host_init(&w.host[i], &w.hm[i], &w.params, HOSTS, i, (uint32_t)rnd64(&w.r));
}

static void step_world(void)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	uint32_t i, n, dst, slots;

	w.now += STEP;
	for (i = 0; i < w.nfly; i++)
		if (w.fly[i].len && w.fly[i].at_ns <= w.now)
			deliver_packet(&w.fly[i]);
	while (w.nfly && !w.fly[w.nfly - 1].len)
		w.nfly--;
	for (i = 0; i < HOSTS; i++) {
		struct bl_fcp_arb *a = &w.arb[i];

		if (a->fresh) {
			memset(w.backlog[i], 0, sizeof(w.backlog[i]));
			a->fresh = 0;
		}
		while (bl_fcp_arb_take(a, &dst, &slots))
			w.backlog[i][dst] += slots;
	}
	for (; w.next_slot < (w.now + 100 * US) / SLOT; w.next_slot++)
		allocate_slot(w.next_slot);
	for (i = 0; i < HOSTS; i++) {
		while ((n = bl_fcp_host_tx(&w.host[i], w.now, buf)))
			put_packet(HOSTS + i, w.host[i].e.nonce, buf, n);
		while ((n = bl_fcp_arb_tx(&w.arb[i], w.now, buf)))
			put_packet(i, w.arb[i].e.nonce, buf, n);
		/* No host announces that it has something to send at once and then has nothing. */
		assert_true(bl_fcp_host_next(&w.host[i]) > w.now);
		assert_true(bl_fcp_arb_next(&w.arb[i]) > w.now);
		assert_true(w.arb[i].resets <= (w.now - w.born_ns) / w.params.rtt_ns + 1);
	}
}

static int is_quiet(void)
{
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		if (w.host[i].need)
			return 0;
	return 1;
}

static void run_world(struct rnd *r, uint32_t rebirths, uint32_t steps)
{
	uint32_t i, j, n;

	w.fly[0].len = 0;
	memset(&w, 0, sizeof(w));
	w.r = *r;
	w.params = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	w.params.table = 5;
	w.params.quota = rnd_below(r, 2) ? 20 : 1U << 16;
	w.params.pace_ns = rnd_below(r, 3) * 100 * US;
	w.params.ack_ns = rnd_below(r, 2) ? 50 * US : 100 * US;
	w.params.secret[0] = rnd64(r);
	w.loss = rnd_below(r, 4) * 100;
	w.dup = rnd_below(r, 2) * 200;
	w.late = rnd_below(r, 3) * 20;
	w.delay_us = 10 + rnd_below(r, 300);
	w.now = T0;
	w.next_slot = FIRST;
	new_arbiter();
	for (i = 0; i < HOSTS; i++)
		new_host(i);
	for (n = 0; n < steps; n++) {
		i = rnd_below(&w.r, HOSTS);
		j = rnd_below(&w.r, HOSTS);
		if (rnd_below(&w.r, 8) == 0 && i != j)
			bl_fcp_host_want(&w.host[i], j,
					 1 + rnd_below(&w.r, rnd_below(&w.r, 10) ? 4 : 40));
		if (rebirths && rnd_below(&w.r, steps / rebirths) == 0)
			new_arbiter();
		if (rebirths && rnd_below(&w.r, steps / rebirths) == 0)
			new_host(i);
		step_world();
	}
	/*
	 * The channel is good from now on; 400 ms are enough for any timeout, of which none is
	 * longer than 100 ms.
	 */
	w.loss = w.dup = w.late = 0;
	for (n = 0; n < 80000 && !is_quiet(); n++)
		step_world();
	for (n = 0; n < 1000; n++)
		step_world();
	for (i = 0; i < HOSTS; i++) {
		struct bl_fcp_host *h = &w.host[i];

		assert_int_equal(h->need, 0);
		assert_int_equal(h->received, h->wanted);
		assert_int_equal(h->unasked, 0);
		if (w.arb[i].e.nonce != h->e.nonce)
			continue; /* The host restarted and wanted nothing. */
		assert_int_equal(w.arb[i].waiting, 0);
		assert_int_equal(w.arb[i].refused, 0);
		for (j = 0; j < HOSTS; j++) {
			assert_int_equal(w.am[i].pair[j].told, w.hm[i].pair[j].total);
			assert_int_equal(w.am[i].pair[j].total, w.hm[i].pair[j].told);
			assert_int_equal(w.hm[i].pair[j].done, w.hm[i].pair[j].told);
		}
	}
	*r = w.r;
}

static void channel__one_arbiter(void **state)
{
	uint64_t got = 0, lost = 0, dropped = 0;
	struct rnd r = rnd_seeded("channel");
	int round;

	(void)state;
	for (round = 0; round < 60; round++) {
		uint32_t i;

		run_world(&r, 0, 4000);
		for (i = 0; i < HOSTS; i++) {
			got += w.host[i].received;
			lost += w.host[i].lost;
			assert_int_equal(w.arb[i].sessions, w.host[i].resets);
			/* A bad channel never ends a session. */
			assert_in_range(w.host[i].resets, w.host[i].wanted ? 1 : 0, 1);
		}
		dropped += w.dropped;
	}
	print_message("%llu slots, %llu lost on the way and given again, %llu packets lost\n",
		      (unsigned long long)got, (unsigned long long)lost,
		      (unsigned long long)dropped);
	assert_true(lost > 1000);
}

static void channel__arbiters_and_hosts_start_anew(void **state)
{
	uint64_t resets = 0, old = 0;
	struct rnd r = rnd_seeded("channel");
	int round;

	(void)state;
	for (round = 0; round < 60; round++) {
		uint32_t i;

		run_world(&r, 5, 6000);
		for (i = 0; i < HOSTS; i++)
			resets += w.host[i].resets;
		old += w.refused_old;
	}
	print_message("%llu sessions, %llu packets refused\n", (unsigned long long)resets,
		      (unsigned long long)old);
	assert_true(resets > 60 * HOSTS);
	assert_true(old > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel__one_arbiter),
		cmocka_unit_test(channel__arbiters_and_hosts_start_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
