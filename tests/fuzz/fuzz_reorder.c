/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares the reorder queue (lib/reorder.h) with a plain list. The input drives pushes, pops,
 * barriers, and senders that come and go; after every operation both must agree. A popped frame is
 * freed at once, so that ASan detects a stale pointer in the queue.
 *
 * The first byte chooses the initial time; each operation is one byte and its operands. Timestamps
 * are never 0 ("none" on the wire), and the sequence numbers of a sender stay within 2^16, as
 * serial-number order requires.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/failing_realloc.h"

#define realloc fuzz_realloc
#include "lib/reorder.h"
#undef realloc

#define SENDERS 40 /* more than the heap's initial capacity */
#define FRAMES  96

struct entry {
	uint64_t ts;
	uint32_t psn;
	int sender;
	struct bl_rq_frame *f;
};

static struct bl_rq_sender *senders[SENDERS];
static uint32_t psn_base[SENDERS];
static struct entry list[FRAMES];
static int queued;
static struct entry last; /* last popped entry; ts 0: none yet */

static void make_sender(int i)
{
	uint8_t key[BL_RQ_KEY] = { 0 };

	/* neither in the order of the index nor different in one byte only */
	key[0] = (uint8_t)(i % 3);
	key[BL_RQ_KEY - 1] = (uint8_t)(255 - i);
	senders[i] = malloc(sizeof(*senders[i]));
	if (!senders[i])
		abort();
	memset(senders[i], 0xff, sizeof(*senders[i]));
	bl_rq_sender_init(senders[i], key);
}

/*
 * A second implementation of bl_rq_cmp: the order by timestamp, then the sender's key, then the
 * sequence number.
 */
static int cmp(const struct entry *a, const struct entry *b)
{
	int i;

	if (a->ts != b->ts)
		return a->ts > b->ts ? 1 : -1;
	for (i = 0; i < BL_RQ_KEY; i++)
		if (senders[a->sender]->key[i] != senders[b->sender]->key[i])
			return senders[a->sender]->key[i] > senders[b->sender]->key[i] ? 1 : -1;
	if (a->psn == b->psn)
		return 0;
	return a->psn - b->psn < 1u << 31 ? 1 : -1;
}

static int find_min(void)
{
	int i, m = -1;

	for (i = 0; i < queued; i++)
		if (m < 0 || cmp(&list[i], &list[m]) < 0)
			m = i;
	return m;
}

static void agree(const struct bl_rq *q)
{
	int m = find_min();

	FUZZ_CHECK(q->frames == (uint64_t)queued);
	FUZZ_CHECK(bl_rq_min(q) == (m < 0 ? NULL : list[m].f));
}

static void push(struct bl_rq *q, struct entry e, int fail)
{
	int late = last.ts && cmp(&e, &last) <= 0;
	int i, ret;

	FUZZ_CHECK(!!bl_rq_late(q, senders[e.sender], e.ts, e.psn) == late);
	if (late || queued == FRAMES)
		return;
	for (i = 0; i < queued; i++)
		if (list[i].sender == e.sender && !cmp(&list[i], &e))
			return;
	e.f = malloc(sizeof(*e.f));
	if (!e.f)
		abort();
	memset(e.f, 0xff, sizeof(*e.f));
	e.f->ts = e.ts;
	e.f->psn = e.psn;
	fail_realloc = fail;
	ret = bl_rq_push(q, senders[e.sender], e.f);
	fail_realloc = 0;
	if (ret) {
		FUZZ_CHECK(fail && ret == -ENOMEM);
		free(e.f);
		return;
	}
	list[queued++] = e;
}

/* Returns 0 when nothing is below @barrier. */
static int pop(struct bl_rq *q, uint64_t barrier)
{
	struct bl_rq_frame *f = bl_rq_pop(q, barrier);
	int m = find_min();

	if (m < 0 || list[m].ts >= barrier) {
		FUZZ_CHECK(!f);
		return 0;
	}
	FUZZ_CHECK(f && f == list[m].f);
	FUZZ_CHECK(f->ts < barrier && f->ts == list[m].ts && f->psn == list[m].psn &&
		   f->sender == senders[list[m].sender]);
	FUZZ_CHECK(!last.ts || cmp(&list[m], &last) > 0);
	last = list[m];
	memset(f, 0xff, sizeof(*f));
	free(f);
	list[m] = list[--queued];
	return 1;
}

static void drain(struct bl_rq *q, uint64_t barrier)
{
	while (pop(q, barrier))
		;
	FUZZ_CHECK(!bl_rq_min(q) || bl_rq_min(q)->ts >= barrier);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t starts[] = { 1, 1ULL << 48, (1ULL << 63) - 8,
					   UINT64_MAX - (1ULL << 30) };
	struct fuzz_in in = { .p = data, .left = size };
	uint8_t first = fuzz_u8(&in);
	uint64_t barrier = starts[first & 3];
	struct entry e = { 0 };
	struct bl_rq q;
	int i;

	bl_rq_init(&q);
	memset(&last, 0, sizeof(last));
	queued = 0;
	for (i = 0; i < SENDERS; i++) {
		make_sender(i);
		/* some start just before the sequence number wraps */
		psn_base[i] = i & 1 ? 0xffffff80u : (uint32_t)i << 8;
	}
	while (in.left) {
		uint8_t op = fuzz_u8(&in);

		switch (op & 7) {
		default: /* a frame from 16 below the barrier on, so that some are late */
			e.sender = fuzz_u8(&in) % SENDERS;
			e.ts = barrier + fuzz_u8(&in);
			e.ts = e.ts > 17 ? e.ts - 16 : 1;
			e.psn = psn_base[e.sender] + fuzz_u8(&in);
			push(&q, e, op == 0xf0);
			break;
		case 4: /* the next frame of its sender, as in most traffic */
			e.ts += op >> 3;
			e.psn++;
			if (e.ts && e.psn - psn_base[e.sender] < 1u << 16)
				push(&q, e, 0);
			break;
		case 5:
			barrier += fuzz_u8(&in);
			drain(&q, barrier);
			break;
		case 6:
			pop(&q, op >> 3 ? barrier : UINT64_MAX);
			break;
		/* A sender without frames is removed, and may return at another address. */
		case 7:
			i = fuzz_u8(&in) % SENDERS;
			if (senders[i]->at < 0) {
				FUZZ_CHECK(!senders[i]->head && !senders[i]->tail);
				free(senders[i]);
				make_sender(i);
			}
			break;
		}
		agree(&q);
	}
	drain(&q, UINT64_MAX);
	/*
	 * No initial time is so late that a frame could have UINT64_MAX, which no barrier exceeds.
	 */
	FUZZ_CHECK(!queued && !q.frames && !q.used);
	bl_rq_free(&q);
	for (i = 0; i < SENDERS; i++)
		free(senders[i]);
	return 0;
}
