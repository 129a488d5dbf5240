/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the host's programs that receive (bpf/host/), compiled natively and with the sanitizers:
 * frames from the link in any order, for endpoints that are there or not, time, sleepers, lines,
 * windows, decisions of the daemon, and fences. The input is a list of these operations.
 *
 * Besides what ASan and UBSan detect, in the frame, in maps and on the stack, it checks that each
 * frame ends for one reason, that stored messages have the bytes of the frame, that the barriers
 * that processes read never fall, and that an answer goes back to where the frame came from.
 *
 * Admission and sending are not covered. That the program in the kernel does the same is shown by
 * tests/prog/host/test_host_native.c.
 */
#include "tests/fuzz/native_fuzz.h"

#include <linux/bpf.h>

#include "maps/fence_abi.h"
#include "maps/host_abi.h"
#include "maps/reliable_abi.h"

#define NEPS     3
#define RINGLESS 40 /* a slot that has a page and no ring */
#define PAGELESS 41 /* a slot that has a ring and no page */
#define KEYS     BL_HC_MAX

int bl_host_xdp(struct xdp_md *ctx);
int bl_host_relayed(struct xdp_md *ctx);
int bl_fence(struct bl_fence_arg *a);
void native_host_maps(void);

static uint64_t last[BL_REASON_MAX * KEYS];
static struct bl_ep_page *pages[NEPS];

static void put_endpoint(uint32_t key, uint16_t slot, uint32_t active, int v6)
{
	struct bl_ep_slot e = { .active = active,
				.port = (__u16)(BL_PORT_BASE + key),
				.slot = slot,
				.life = 5,
				.left = key == 12 ? 6 : 0 };

	if (v6 >= 0)
		host_addr(e.addr, v6, 1);
	native_put("eps", key, &e);
}

static void new_host(void)
{
	struct bl_host_cfg cfg = { .node_id = 0x5a5a5a5a,
				   .neps = NEPS,
				   .port_base = BL_PORT_BASE,
				   .port_count = BL_PORT_COUNT,
				   .tai_offset_s = 37,
				   .beacon_ns = 100000,
				   .dead_after_ns = 1000000,
				   .beacon_mark = 0x42a7 };
	struct bl_hints hints = { .next = BL_TIME_NONE, .next_c = BL_TIME_NONE };
	uint32_t i;

	native_host_maps();
	native_clear();
	memset(last, 0, sizeof(last));
	native_put("host_cfg", 0, &cfg);
	for (i = 0; i < NEPS; i++) {
		pages[i] = native_inner_open("ep_pages", i, sizeof(struct bl_ep_page));
		pages[i]->line.ts = BL_TIME_NONE;
		pages[i]->wake.until = pages[i]->wake.until_c = BL_TIME_NONE;
		native_ring_open(i);
	}
	native_put("hints", 0, &hints);
	put_endpoint(9, 0, BL_EP_ACTIVE, -1);
	put_endpoint(10, 1, BL_EP_ACTIVE, 0);
	put_endpoint(11, 2, BL_EP_ACTIVE, 1);
	put_endpoint(12, 0, BL_EP_FREE, -1);
	put_endpoint(13, RINGLESS, BL_EP_ACTIVE, -1);
	native_inner_open("ep_pages", RINGLESS, sizeof(struct bl_ep_page));
	put_endpoint(14, PAGELESS, BL_EP_ACTIVE, -1);
	native_ring_open(PAGELESS);
	fuzz_clock(BUS);
}

/* Takes what was stored of frame @f. Returns the number of records. */
static unsigned int records(const struct frame *f, const struct bl_frame *b)
{
	unsigned int n = 0, i;
	uint8_t *p;
	size_t size;

	for (i = 0; i < NEPS; i++)
		while ((p = native_ring_take(i, &size))) {
			const struct bl_rec *rec = (const void *)p;

			FUZZ_CHECK(rec->len == b->body_len && sizeof(*rec) + rec->len <= size);
			FUZZ_CHECK(!memcmp(rec + 1, f->p + b->hdr_off + sizeof(struct bl_hdr),
					   rec->len));
			FUZZ_CHECK(rec->psn == b->psn && rec->opcode == b->opcode);
			free(p);
			n++;
		}
	return n;
}

static void one_frame(struct fuzz_in *in, uint8_t op, uint8_t arg)
{
	const struct bl_host_page *page = native_get("host_page", 0);
	uint64_t b = page->barrier, c = page->commit;
	int (*prog)(struct xdp_md *) = arg & 1 ? bl_host_relayed : bl_host_xdp;
	static struct frame f, g;
	enum bl_reason why = BL_R_NONE;
	struct bl_frame parsed = { 0 };
	unsigned int stored;
	int verdict;

	fuzz_frame(in, op, &f);
	if (f.n > 80 && arg & 2) { /* the lives that a reliable frame names */
		f.p[f.n - 1] = 5;
		f.p[f.n - 2] = 0;
	}
	g = f;
	fuzz_parse(&g, BL_PORT_BASE, BL_PORT_COUNT, &parsed);
	verdict = native_run(prog, f.p, &f.n, 10);
	FUZZ_CHECK(verdict == XDP_DROP || verdict == XDP_PASS || verdict == XDP_TX);
	FUZZ_CHECK(fuzz_ends(last, KEYS, &why) == 1);
	stored = records(&g, &parsed);
	FUZZ_CHECK(stored == (why == BL_R_STORED || why == BL_R_PREPARED || why == BL_R_RECALLED));
	if (verdict == XDP_TX && why != BL_R_COMMITTED) { /* an answer */
		FUZZ_CHECK(!memcmp(f.p, g.p + 6, 6) && !memcmp(f.p + 6, g.p, 6) && f.n <= g.n);
		FUZZ_CHECK(fuzz_parse(&f, 1, 0xffff, &parsed) == BL_R_NONE);
	}
	if (verdict != XDP_TX)
		FUZZ_CHECK(f.n == g.n);
	FUZZ_CHECK(page->barrier >= b && page->commit >= c);
	FUZZ_CHECK(page->barrier == b || page->barrier <= bus_now + BOUND);
}

static void window(struct fuzz_in *in, uint8_t arg)
{
	struct bl_inflight *line = &pages[0]->line;
	struct bl_rwin *w = &pages[0]->win;
	uint32_t n, head = arg;

	for (n = head; n < head + 3; n++) {
		struct bl_rslot *s = &w->slot[n % BL_RWIN];

		*s = (struct bl_rslot){ .wait = BL_RSLOT_OPEN | n,
					.ts = bus_now - fuzz_u8(in),
					.psn = fuzz_u8(in),
					.port = BL_PORT_BASE + 7,
					.life = 5 };
		host_addr(s->addr, arg & 1, 0);
	}
	line->state = (uint64_t)n << 32 | head;
}

static void sleepers(struct fuzz_in *in)
{
	struct bl_hints *h = native_get("hints", 0);
	uint32_t i;

	for (i = 0; i < NEPS; i++) {
		pages[i]->wake.until = fuzz_time(in);
		pages[i]->wake.until_c = fuzz_time(in);
		pages[i]->wake.on_ack = fuzz_u8(in) & 1;
	}
	/* any process may write anything here */
	h->next = fuzz_u8(in) & 1 ? fuzz_time(in) : 0;
	h->next_c = h->next;
}

/* What a process writes into its line, and what the daemon decides about it. */
static void line(struct fuzz_in *in)
{
	struct bl_host_page *page = native_get("host_page", 0);
	uint8_t which = fuzz_u8(in);
	struct bl_inflight *l = &pages[which % NEPS]->line;
	struct bl_ep_word *w = &page->word[which % NEPS];

	l->ts = which & 4 ? fuzz_time(in) : BL_TIME_NONE;
	l->hold = which & 8 ? fuzz_time(in) : 0;
	w->upto = which & 16 ? fuzz_time(in) : 0;
	w->over = which & 32 ? w->upto : 0;
	w->out = which & 64 ? fuzz_time(in) : 0;
	w->out_why = which & 128 && w->out;
	if (which & 64 && which & 16)
		l->state = fuzz_u64(in);
}

static void fence(struct fuzz_in *in, uint8_t kind)
{
	struct bl_fence_arg a = { .epoch = fuzz_u8(in),
				  .kind = kind % (BL_FENCE_EMPTY + 2),
				  .port = fuzz_u8(in) & 1,
				  .death = fuzz_u8(in),
				  .barred = { fuzz_u8(in) } };

	bl_fence(&a);
	FUZZ_CHECK(a.result <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	new_host();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);
		enum bl_reason why;

		switch (op >> 5) {
		case 0:
			fuzz_clock(bus_now + ((uint64_t)arg << (op & 15)));
			break;
		case 1:
			if (arg & 0x80)
				window(&in, arg);
			else if (arg & 0x40)
				sleepers(&in);
			else if (arg & 0x20)
				line(&in);
			else
				fence(&in, arg);
			fuzz_ends(last, KEYS, &why);
			break;
		default:
			one_frame(&in, op, arg);
			break;
		}
	}
	return 0;
}
