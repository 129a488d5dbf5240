/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reorder queue: frames in, one total order out (1Pipe section 4.1: "buffers the packet in a
 * priority queue").
 *
 * The key is (timestamp, sender address, sequence number). Frames of one sender arrive nearly in
 * order, so each sender has a list to which frames are appended, and a binary heap holds the
 * senders by their first frame. A push behind other frames of the sender costs one append, a pop
 * log2(senders).
 *
 * Example: A has frames 10, 30 and B has 20. Heap: A(10), B(20). Barrier 25: pop A's 10 (heap:
 * B(20), A(30)), pop B's 20, stop at 30. A frame of B with ts 15 that comes now is below what was
 * delivered (20): bl_rq_late() returns true, and it must not be pushed.
 *
 * Frames and senders are embedded in the caller's memory; the queue owns the heap array. Pure: no
 * clock, no I/O.
 */
#ifndef BARLINE_REORDER_H
#define BARLINE_REORDER_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BL_RQ_KEY 18 /* bytes: IP address and port, network order */

struct bl_rq_sender;

struct bl_rq_frame {
	struct bl_rq_frame *next;
	struct bl_rq_frame *prev;
	struct bl_rq_sender *sender;
	uint64_t ts;
	uint32_t psn;
};

struct bl_rq_sender {
	struct bl_rq_frame *head;
	struct bl_rq_frame *tail;
	int at; /* index in the heap; -1: no frames */
	uint8_t key[BL_RQ_KEY];
};

/** struct bl_rq - the queue. */
struct bl_rq {
	struct bl_rq_sender **heap;
	uint32_t used;   /* senders in the heap */
	uint32_t room;   /* senders that the heap has room for */
	uint64_t frames; /* frames in the queue */
	/* Key of the frame that was popped last: nothing at or below it may be pushed. */
	uint64_t last_ts; /* 0: nothing was popped */
	uint32_t last_psn;
	uint8_t last_key[BL_RQ_KEY];
};

static inline void bl_rq_init(struct bl_rq *q)
{
	memset(q, 0, sizeof(*q));
}

static inline void bl_rq_free(struct bl_rq *q)
{
	free(q->heap);
	memset(q, 0, sizeof(*q));
}

static inline void bl_rq_sender_init(struct bl_rq_sender *s, const uint8_t key[BL_RQ_KEY])
{
	s->head = s->tail = NULL;
	s->at = -1;
	memcpy(s->key, key, BL_RQ_KEY);
}

/** bl_rq_cmp - compare two keys. Returns < 0, 0 or > 0. */
static inline int bl_rq_cmp(uint64_t ts_a, const uint8_t *key_a, uint32_t psn_a, uint64_t ts_b,
			    const uint8_t *key_b, uint32_t psn_b)
{
	int c;

	if (ts_a != ts_b)
		return ts_a < ts_b ? -1 : 1;
	c = memcmp(key_a, key_b, BL_RQ_KEY);
	if (c)
		return c;
	return (int32_t)(psn_a - psn_b) < 0 ? -1 : psn_a != psn_b;
}

static inline int bl_rq_before(const struct bl_rq_frame *a, const struct bl_rq_frame *b)
{
	return bl_rq_cmp(a->ts, a->sender->key, a->psn, b->ts, b->sender->key, b->psn) < 0;
}

/** bl_rq_late - whether a frame with this key is at or below the frame that was popped last. */
static inline int bl_rq_late(const struct bl_rq *q, const struct bl_rq_sender *s, uint64_t ts,
			     uint32_t psn)
{
	return q->last_ts && bl_rq_cmp(ts, s->key, psn, q->last_ts, q->last_key, q->last_psn) <= 0;
}

static inline void bl_rq_put_(struct bl_rq *q, uint32_t i, struct bl_rq_sender *s)
{
	q->heap[i] = s;
	s->at = (int)i;
}

static inline void bl_rq_up_(struct bl_rq *q, uint32_t i)
{
	struct bl_rq_sender *s = q->heap[i];

	while (i && bl_rq_before(s->head, q->heap[(i - 1) / 2]->head)) {
		bl_rq_put_(q, i, q->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	bl_rq_put_(q, i, s);
}

static inline void bl_rq_down_(struct bl_rq *q, uint32_t i)
{
	struct bl_rq_sender *s = q->heap[i];

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= q->used)
			break;
		if (c + 1 < q->used && bl_rq_before(q->heap[c + 1]->head, q->heap[c]->head))
			c++;
		if (!bl_rq_before(q->heap[c]->head, s->head))
			break;
		bl_rq_put_(q, i, q->heap[c]);
		i = c;
	}
	bl_rq_put_(q, i, s);
}

/**
 * bl_rq_push - add frame @f of sender @s; @f->ts and @f->psn are set. The frame is not late
 * (bl_rq_late()). Returns 0; -EEXIST if a frame with its key is queued, or -ENOMEM, with nothing
 * changed.
 */
static inline int bl_rq_push(struct bl_rq *q, struct bl_rq_sender *s, struct bl_rq_frame *f)
{
	struct bl_rq_frame *after = s->tail;

	f->sender = s;
	if (!s->head) {
		if (q->used == q->room) {
			uint32_t room = q->room ? 2 * q->room : 16;
			struct bl_rq_sender **h = realloc(q->heap, room * sizeof(*h));

			if (!h)
				return -ENOMEM;
			q->heap = h;
			q->room = room;
		}
		f->next = f->prev = NULL;
		s->head = s->tail = f;
		bl_rq_put_(q, q->used++, s);
		bl_rq_up_(q, q->used - 1);
		q->frames++;
		return 0;
	}
	while (after && bl_rq_before(f, after))
		after = after->prev;
	if (after && after->ts == f->ts && after->psn == f->psn)
		return -EEXIST;
	f->prev = after;
	f->next = after ? after->next : s->head;
	if (f->next)
		f->next->prev = f;
	else
		s->tail = f;
	if (after) {
		after->next = f;
	} else {
		s->head = f;
		bl_rq_up_(q, (uint32_t)s->at);
	}
	q->frames++;
	return 0;
}

/** bl_rq_remove - take out a queued frame. Does not change what was popped last. */
static inline void bl_rq_remove(struct bl_rq *q, struct bl_rq_frame *f)
{
	struct bl_rq_sender *s = f->sender;
	uint32_t i = (uint32_t)s->at;

	if (f->next)
		f->next->prev = f->prev;
	else
		s->tail = f->prev;
	q->frames--;
	if (f->prev) {
		f->prev->next = f->next;
		return;
	}
	s->head = f->next;
	if (s->head) {
		bl_rq_down_(q, i);
		return;
	}
	s->at = -1;
	if (i == --q->used)
		return;
	bl_rq_put_(q, i, q->heap[q->used]);
	bl_rq_up_(q, i);
	bl_rq_down_(q, (uint32_t)q->heap[i]->at);
}

/** bl_rq_min - the frame that is popped next, or NULL. */
static inline struct bl_rq_frame *bl_rq_min(const struct bl_rq *q)
{
	return q->used ? q->heap[0]->head : NULL;
}

/**
 * bl_rq_pop - take out the next frame if its timestamp is strictly below @barrier; otherwise return
 * NULL.
 */
static inline struct bl_rq_frame *bl_rq_pop(struct bl_rq *q, uint64_t barrier)
{
	struct bl_rq_frame *f = bl_rq_min(q);
	struct bl_rq_sender *s;

	if (!f || f->ts >= barrier)
		return NULL;
	s = f->sender;
	s->head = f->next;
	if (s->head) {
		s->head->prev = NULL;
		bl_rq_down_(q, 0);
	} else {
		s->tail = NULL;
		s->at = -1;
		if (--q->used) {
			bl_rq_put_(q, 0, q->heap[q->used]);
			bl_rq_down_(q, 0);
		}
	}
	q->frames--;
	q->last_ts = f->ts;
	q->last_psn = f->psn;
	memcpy(q->last_key, s->key, BL_RQ_KEY);
	return f;
}

#endif
