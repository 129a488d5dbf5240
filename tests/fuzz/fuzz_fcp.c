// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes both ends of FCP (core/fastpass/fcp_host_core.h, core/fastpass/fcp_arb_core.h) and the
 * arbiters' watchdogs. The input is a stream of operations on a host, an arbiter and the channel
 * between them: genuine packets, stored, repeated and damaged, and packets taken from the input,
 * sealed with the session's key or not.
 *
 * Besides reads beyond the end (ASan, on a copy of exact size) it checks:
 *
 * - runs lie within the packet and name existing destinations;
 * - no packet is accepted under another nonce;
 * - a slot that was not requested is not used;
 * - counts of a REPORT and links of a FAULTS lie within the packet, and the counts are of peers
 *   that the packet names, each once;
 * - each number of a sender is accepted once;
 * - there is one RESET per round trip;
 * - a refused packet changes no count;
 * - next() is not in the past once tx() has nothing to send.
 */
#include "fuzz.h"

#include "core/fastpass/fault_core.h"
#include "core/fastpass/fcp_arb_core.h"
#include "core/fastpass/fcp_host_core.h"
#include "core/fastpass/watchdog_core.h"

#define N    70 /* destinations: more than a packet's totals */
#define KEEP 8

struct mem {
	struct bl_fcp_pair pair[N];
	struct bl_fcp_sent sent[BL_FCP_WINDOW];
	uint16_t tell[N], look[N];
};

static struct mem hm, am;
static struct bl_fcp_host h;
static struct bl_fcp_arb a;
static struct bl_fcp_params params;
static struct bl_wd wd;
static struct {
	uint32_t len;
	_Alignas(8) uint8_t p[BL_FCP_PACKET_MAX];
} kept[KEEP];
static uint64_t now;

static void end_init(struct bl_fcp_end *e, struct mem *m)
{
	memset(m, 0, sizeof(*m));
	*e = (struct bl_fcp_end){
		.pair = m->pair, .sent = m->sent, .tell.item = m->tell, .look.item = m->look, .n = N
	};
}

static void new_arb(void)
{
	memset(&a, 0, sizeof(a));
	a.p = &params;
	a.reset = (struct bl_fcp_reset){ .term = BL_BE32(1),
					 .table = BL_BE32(params.table),
					 .slot_ns = BL_BE32(1230),
					 .slot_bytes = BL_BE32(1514),
					 .index = BL_BE16(3),
					 .endpoints = BL_BE16(N) };
	end_init(&a.e, &am);
	bl_fcp_arb_begin(&a, 0);
}

static void begin(void)
{
	now = 1ULL << 40;
	params = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	params.table = 9;
	params.quota = 300;
	memset(&h, 0, sizeof(h));
	h.p = params;
	end_init(&h.e, &hm);
	bl_fcp_host_init(&h, 3, 0xc0ffee);
	new_arb();
	memset(&wd, 0, sizeof(wd));
	wd = (struct bl_wd){ .p = &params,
			     .rank = 1,
			     .interval_ns = 100000,
			     .dead_ns = 1000000,
			     .guard_ns = 300000 };
	FUZZ_CHECK(!bl_wd_init(&wd, now, 200000, 4));
	memset(kept, 0, sizeof(kept));
}

static int to_host(const uint8_t *p, uint32_t len)
{
	uint64_t received = h.received, nonce = h.e.nonce, sum = 0;
	struct bl_fcp_slots s;
	struct bl_fcp_pkt k;
	enum bl_fcp_reason why = bl_fcp_host_rx(&h, p, len, now, &k);
	uint32_t i;

	FUZZ_CHECK(why < BL_FCP_R_COUNT);
	if (why == BL_FCP_R_OK && k.opcode == BL_FCP_ALLOC) {
		FUZZ_CHECK(nonce && bl_fcp_checksum_ok(&params, nonce, p, len));
		for (i = 0; i < k.nruns; i++) {
			FUZZ_CHECK((const uint8_t *)&k.runs[i] >= p &&
				   (const uint8_t *)&k.runs[i + 1] <= p + len);
			bl_fcp_slots_at(&k, i, &s);
			FUZZ_CHECK(s.dst < N && s.count);
			sum += s.count;
		}
	}
	FUZZ_CHECK(h.received == received + sum);
	if (why != BL_FCP_R_OK)
		FUZZ_CHECK(h.e.nonce == nonce);
	return why;
}

static int to_arb(const uint8_t *p, uint32_t len)
{
	uint64_t nonce = a.e.nonce, offer = a.offer;
	uint32_t look = a.e.look.count;
	enum bl_fcp_reason why = bl_fcp_arb_rx(&a, p, len, now, now ^ 0x5555);

	FUZZ_CHECK(why < BL_FCP_R_COUNT);
	if (why == BL_FCP_R_OK)
		FUZZ_CHECK(a.e.nonce && bl_fcp_checksum_ok(&params, a.e.nonce, p, len) &&
			   (a.e.nonce == nonce || a.e.nonce == offer));
	else
		FUZZ_CHECK(a.e.look.count == look || a.fresh);
	return why;
}

/* The packets that the fault isolation service and arbiters read. */
static void to_faults(const uint8_t *p, uint32_t len)
{
	static struct bl_fault_seq seq;
	const struct bl_fcp_report *r;
	struct bl_fcp_pkt k;
	uint32_t i;
	int fresh;

	if (bl_fcp_parse(p, len, N, &k) != BL_FCP_R_OK)
		return;
	FUZZ_CHECK(!k.nlinks || (const uint8_t *)&k.links[k.nlinks] == p + len);
	for (i = 0; i < k.nlinks; i++)
		FUZZ_CHECK(k.links[i].way <= 1);
	if (k.opcode != BL_FCP_REPORT)
		return;
	r = k.body;
	FUZZ_CHECK((const uint8_t *)&k.counts[k.ncounts] == p + len && BL_BE16(r->index) < N &&
		   BL_BE16(r->last) < N);
	for (i = 0; i < k.ncounts; i++) {
		FUZZ_CHECK(BL_BE16(k.counts[i].peer) >= BL_BE16(r->first) &&
			   BL_BE16(k.counts[i].peer) <= BL_BE16(r->last));
		FUZZ_CHECK(!i || memcmp(&k.counts[i - 1], &k.counts[i], 3) < 0);
	}
	if (bl_fault_seq_take(&seq, BL_BE64(r->boot), k.seq, &fresh) == BL_FCP_R_OK)
		FUZZ_CHECK(bl_fault_seq_take(&seq, BL_BE64(r->boot), k.seq, &fresh) ==
			   BL_FCP_R_DUPLICATE);
}

static void keep(const uint8_t *p, uint32_t len, uint32_t at)
{
	FUZZ_CHECK(len <= BL_FCP_PACKET_MAX);
	kept[at % KEEP].len = len;
	memcpy(kept[at % KEEP].p, p, len);
}

static void check_counts(void)
{
	uint64_t waiting = 0, need = 0;
	uint32_t i;

	for (i = 0; i < N; i++) {
		FUZZ_CHECK((int32_t)(am.pair[i].done - am.pair[i].total) >= 0);
		waiting += am.pair[i].done - am.pair[i].total;
		need += bl_fcp_host_needs(&hm.pair[i]);
	}
	FUZZ_CHECK(waiting == a.waiting && waiting <= params.quota);
	FUZZ_CHECK(need == h.need);
	FUZZ_CHECK(a.resets <= (now - (1ULL << 40)) / params.rtt_ns + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX + 64];
	struct fuzz_in in = { data, size };
	uint32_t serial = 0;

	begin();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);
		uint32_t len, i, dst, slots;
		uint8_t *p;

		switch (op % 12) {
		case 0:
			bl_fcp_host_want(&h, arg % N, fuzz_u8(&in));
			break;
		case 1:
			while ((len = bl_fcp_host_tx(&h, now, buf))) {
				keep(buf, len, serial++);
				if (arg & 1)
					to_arb(buf, len);
			}
			FUZZ_CHECK(bl_fcp_host_next(&h) > now);
			break;
		case 2:
			while ((len = bl_fcp_arb_tx(&a, now, buf))) {
				keep(buf, len, serial++);
				if (arg & 1)
					to_host(buf, len);
			}
			FUZZ_CHECK(bl_fcp_arb_next(&a) > now);
			break;
		case 3:
			while (bl_fcp_arb_take(&a, &dst, &slots))
				FUZZ_CHECK(dst < N && slots);
			break;
		case 4:
			for (i = 0; i < fuzz_u8(&in) % 32u + 1; i++) {
				uint32_t was = a.waiting;
				int r = bl_fcp_arb_grant(&a, now / 1230 + i * (op >> 4), arg % N,
							 (uint8_t)(arg >> 6));

				FUZZ_CHECK(r ? a.waiting == was : a.waiting + 1 == was);
			}
			break;
		case 5:
			now += (uint64_t)(arg + 1) << (fuzz_u8(&in) % 22);
			break;
		case 6: /* a stored packet again, perhaps damaged or truncated */
		case 7:
			len = kept[arg % KEEP].len;
			if (!len)
				break;
			i = fuzz_u16(&in);
			p = aligned_alloc(8, (len + 7) & ~7U);
			memcpy(p, kept[arg % KEEP].p, len);
			if (i & 0x8000)
				p[i % len] ^= (uint8_t)(1 + arg);
			len -= i & 0x4000 ? (i >> 4) % len : 0;
			if (op % 12 == 6)
				to_host(p, len);
			else
				to_arb(p, len);
			free(p);
			break;
		case 8: /* a packet taken from the input */
		case 9:
			len = fuzz_u8(&in);
			if (len > in.left)
				len = (uint32_t)in.left;
			p = aligned_alloc(8, (len + 7) & ~7U);
			memcpy(p, in.p, len);
			in.p += len;
			in.left -= len;
			if (len >= sizeof(struct bl_fcp_hdr)) {
				struct bl_fcp_hdr *hd = (void *)p;

				if (arg & 1)
					hd->magic = BL_BE16(BL_FCP_MAGIC);
				if (arg & 2)
					hd->opcode = BL_FCP_OPCODE_BYTE(hd->opcode & 15);
				if (arg & 4)
					hd->flags = 0;
				if (arg & 8)
					hd->challenge = BL_BE32(h.challenge);
				if (arg & 16) /* from a sender that knows the key */
					hd->check = BL_BE64(bl_fcp_checksum(
						&params,
						arg & 32 ? (op % 12 == 8 ? h.e.nonce : a.e.nonce)
							 : 0,
						p, len));
			}
			if (op % 12 == 8)
				to_host(p, len);
			else
				to_arb(p, len);
			bl_wd_rx(&wd, p, len, now);
			to_faults(p, len);
			free(p);
			break;
		case 10:
			if (bl_wd_tick(&wd, now)) {
				len = bl_wd_tx(&wd, buf);
				bl_wd_sent(&wd, now);
				FUZZ_CHECK(bl_wd_rx(&wd, buf, len, now) == BL_FCP_R_DUPLICATE);
			}
			FUZZ_CHECK(!bl_wd_may_allocate(&wd, now) || wd.state == BL_FCP_PRIMARY);
			break;
		default:
			if (arg == 7)
				new_arb();
			a.fresh = 0;
			break;
		}
		check_counts();
	}
	return 0;
}
