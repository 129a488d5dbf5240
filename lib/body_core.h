/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bodies of frames: items, parts and control messages, read and written. Pure functions.
 *
 * The body of a DATA frame is struct bl_data, then @count items: be16 length and that many bytes,
 * or BL_ITEM_REF and a struct bl_ref. What follows is padding.
 */
#ifndef BARLINE_BODY_CORE_H
#define BARLINE_BODY_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/wire_core.h"

struct bl_item {
	const uint8_t *data; /* NULL: the item is a reference */
	uint32_t len;        /* bytes of the item; of a reference: bytes of the message */
	uint32_t msg_id;     /* number of the message, if the item is a reference */
};

/** struct bl_items - a walk over items that were checked. */
struct bl_items {
	const uint8_t *p; /* next item */
	uint32_t left;    /* items that were not read */
};

BL_CORE uint32_t bl_load16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

BL_CORE uint32_t bl_load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

BL_CORE void bl_store16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

BL_CORE void bl_store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/** bl_item_put - write an item of @len bytes at @at. */
static inline void bl_item_put(uint8_t *at, const void *data, uint32_t len)
{
	bl_store16(at, len);
	if (len)
		memcpy(at + 2, data, len);
}

/** bl_ref_put - write an item that refers to large message @id of @total bytes. */
static inline void bl_ref_put(uint8_t *at, uint32_t id, uint32_t total)
{
	bl_store16(at, BL_ITEM_REF);
	bl_store32(at + 2, id);
	bl_store32(at + 6, total);
}

/** bl_frag_put - write the head of a part of large message @id that begins at byte @offset. */
static inline void bl_frag_put(uint8_t *at, uint32_t id, uint32_t offset, uint32_t total)
{
	bl_store32(at, id);
	bl_store32(at + 4, offset);
	bl_store32(at + 8, total);
}

/** bl_items_next - read the next item of a checked body. Returns 0 at the end. */
static inline int bl_items_next(struct bl_items *it, struct bl_item *item)
{
	uint32_t n;

	if (!it->left)
		return 0;
	it->left--;
	n = bl_load16(it->p);
	it->p += 2;
	if (n == BL_ITEM_REF) {
		item->data = NULL;
		item->msg_id = bl_load32(it->p);
		item->len = bl_load32(it->p + 4);
		it->p += sizeof(struct bl_ref);
		return 1;
	}
	item->data = it->p;
	item->len = n;
	item->msg_id = 0;
	it->p += n;
	return 1;
}

/**
 * bl_items_check - check @count items from @p to @end, and start a walk. Returns as
 * bl_items_open().
 */
static inline int bl_items_check(struct bl_items *it, const uint8_t *p, const uint8_t *end,
				 uint32_t count)
{
	uint32_t i;

	if (!count || count > BL_ITEMS_MAX)
		return -1;
	it->p = p;
	it->left = count;
	for (i = 0; i < count; i++) {
		uint32_t n;

		if (end - p < 2)
			return -1;
		n = bl_load16(p);
		p += 2;
		if (n == BL_ITEM_REF) {
			if (end - p < (ptrdiff_t)sizeof(struct bl_ref) || !bl_load32(p + 4) ||
			    bl_load32(p + 4) > BL_MSG_MAX)
				return -1;
			n = sizeof(struct bl_ref);
		}
		if (end - p < (ptrdiff_t)n)
			return -1;
		p += n;
	}
	return (int)count;
}

/**
 * bl_items_open - check a DATA body of @len bytes as a whole, and start a walk.
 * Returns the number of items (1 to BL_ITEMS_MAX), or -1: the body is too short, has no or too many
 * items, an item past the end, or a reference to a message that no sender may send.
 */
static inline int bl_items_open(struct bl_items *it, const uint8_t *body, uint32_t len)
{
	if (len < sizeof(struct bl_data))
		return -1;
	return bl_items_check(it, body + sizeof(struct bl_data), body + len,
			      bl_load16(body + offsetof(struct bl_data, count)));
}

/** struct bl_frag_view - a checked FRAG body, host order. */
struct bl_frag_view {
	const uint8_t *data;
	uint32_t len, msg_id, offset, total;
};

/**
 * bl_frag_open - check a FRAG body. Returns 0, or -1: it is short, empty, past the end of its
 * message, or of a message that is too large.
 */
static inline int bl_frag_open(struct bl_frag_view *v, const uint8_t *body, uint32_t len)
{
	const uint32_t head = sizeof(struct bl_data) + sizeof(struct bl_frag);

	if (len <= head)
		return -1;
	body += sizeof(struct bl_data);
	v->msg_id = bl_load32(body);
	v->offset = bl_load32(body + 4);
	v->total = bl_load32(body + 8);
	v->data = body + sizeof(struct bl_frag);
	v->len = len - head;
	if (!v->total || v->total > BL_MSG_MAX || v->offset >= v->total ||
	    v->len > v->total - v->offset)
		return -1;
	return 0;
}

/** struct bl_prep_view - a checked PREP body, host order. */
struct bl_prep_view {
	uint16_t incarnation, life;
	uint32_t slot;
	uint32_t count;           /* items; 0: a part of a large message */
	struct bl_items items;    /* if @count */
	struct bl_frag_view part; /* if not @count */
};

/**
 * bl_prep_open - check a PREP body as a whole. Returns 0, or -1: it is short, has bad items, or is
 * a part that is empty or not within its message. Bytes of a part past the end of the message are
 * padding.
 */
static inline int bl_prep_open(struct bl_prep_view *v, const uint8_t *body, uint32_t len)
{
	struct bl_frag_view *f = &v->part;
	const uint8_t *p = body + sizeof(struct bl_data);

	if (len < BL_ACK_BODY)
		return -1;
	v->incarnation = (uint16_t)bl_load16(body);
	v->count = bl_load16(body + 2);
	v->slot = bl_load32(p);
	v->life = (uint16_t)bl_load16(p + 4);
	p += sizeof(struct bl_prep);
	*f = (struct bl_frag_view){ 0 };
	if (v->count)
		return bl_items_check(&v->items, p, body + len, v->count) < 0 ? -1 : 0;
	if (len < BL_ACK_BODY + sizeof(struct bl_frag))
		return -1;
	f->msg_id = bl_load32(p);
	f->offset = bl_load32(p + 4);
	f->total = bl_load32(p + 8);
	f->data = p + sizeof(struct bl_frag);
	f->len = len - (uint32_t)(BL_ACK_BODY + sizeof(struct bl_frag));
	if (!f->total || f->total > BL_MSG_MAX || f->offset >= f->total || !f->len)
		return -1;
	if (f->len > f->total - f->offset)
		f->len = f->total - f->offset;
	return 0;
}

/** struct bl_window_view - a checked WINDOW body, host order. */
struct bl_window_view {
	uint32_t psn;
	uint16_t incarnation, window, life;
};

/** bl_window_open - check a WINDOW body. Returns 0, or -1. */
static inline int bl_window_open(struct bl_window_view *v, const uint8_t *body, uint32_t len)
{
	if (len < sizeof(struct bl_window))
		return -1;
	v->psn = bl_load32(body);
	v->incarnation = (uint16_t)bl_load16(body + 4);
	v->window = (uint16_t)bl_load16(body + 6);
	v->life = (uint16_t)bl_load16(body + 8);
	return v->window && !bl_load16(body + 10) ? 0 : -1;
}

/**
 * bl_cookie_at - the cookie that follows a body of @size bytes. 0: none does. A cookie follows a
 * CREDIT or a WINDOW as a challenge, and a PROBE or an OPEN as the answer.
 */
static inline uint64_t bl_cookie_at(const uint8_t *body, uint32_t len, uint32_t size)
{
	if (len < size + sizeof(struct bl_cookie))
		return 0;
	return (uint64_t)bl_load32(body + size) << 32 | bl_load32(body + size + 4);
}

/** bl_cookie_put - write a cookie. Returns its length. */
static inline uint32_t bl_cookie_put(uint8_t *at, uint64_t cookie)
{
	bl_store32(at, (uint32_t)(cookie >> 32));
	bl_store32(at + 4, (uint32_t)cookie);
	return sizeof(struct bl_cookie);
}

/** struct bl_recall_view - a checked RECALL or RECALLED body, host order. */
struct bl_recall_view {
	uint16_t incarnation, life;
	uint32_t count;
	uint64_t ts; /* 48 bits, as on the wire */
};

/** bl_recall_open - check a RECALL or RECALLED body. Returns 0, or -1. */
static inline int bl_recall_open(struct bl_recall_view *v, const uint8_t *body, uint32_t len)
{
	if (len < sizeof(struct bl_recall))
		return -1;
	v->incarnation = (uint16_t)bl_load16(body);
	v->life = (uint16_t)bl_load16(body + 2);
	v->count = bl_load32(body + 4);
	v->ts = bl_get48(body + 8);
	return v->count && !bl_load16(body + 14) ? 0 : -1;
}

/** struct bl_credit_view - a checked CREDIT body, host order. */
struct bl_credit_view {
	uint32_t psn;
	uint16_t incarnation, window;
};

/** bl_credit_open - check a CREDIT body. Returns 0, or -1. */
static inline int bl_credit_open(struct bl_credit_view *v, const uint8_t *body, uint32_t len)
{
	if (len < sizeof(struct bl_credit))
		return -1;
	v->psn = bl_load32(body);
	v->incarnation = (uint16_t)bl_load16(body + 4);
	v->window = (uint16_t)bl_load16(body + 6);
	return v->window ? 0 : -1;
}

/** struct bl_nak_view - a checked NAK body, host order. */
struct bl_nak_view {
	uint32_t psn, count;
	uint16_t incarnation;
	uint8_t why, item;
};

/** bl_nak_is_local - whether @why is only for the callback, and never in a NAK. */
static inline int bl_nak_is_local(uint8_t why)
{
	return why == BL_NAK_UNREACHABLE || why == BL_NAK_FAILED || why == BL_NAK_UNKNOWN;
}

/** bl_nak_open - check a NAK body. Returns 0, or -1. */
static inline int bl_nak_open(struct bl_nak_view *v, const uint8_t *body, uint32_t len)
{
	if (len < sizeof(struct bl_nak))
		return -1;
	v->psn = bl_load32(body);
	v->count = bl_load32(body + 4);
	v->incarnation = (uint16_t)bl_load16(body + 8);
	v->why = body[10];
	v->item = body[11];
	return v->count && v->why ? 0 : -1;
}

#endif
