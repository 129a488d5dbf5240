/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which bytes of a large message have come: one bit for each byte. A message is complete when every
 * byte has come, and broken for ever when a byte came twice. What the network or a retransmission
 * repeats is recognised by its sequence number before it gets here (seq_core.h), so parts that
 * overlap were not cut from one message.
 *
 * Example: a message of 1000 bytes. The part 0 to 499 comes: 500 bytes are there. The same part
 * under another number: broken, though 1000 bytes were received.
 *
 * The bits cost an eighth of the size of the message: 128 KiB for the largest message.
 */
#ifndef BARLINE_PARTS_CORE_H
#define BARLINE_PARTS_CORE_H

#include "core/core.h"

/**
 * bl_parts_words - number of 64-bit words for the bits of a message of @total bytes. They are zero
 * at the beginning.
 */
BL_CORE __u32 bl_parts_words(__u32 total)
{
	return total / 64 + (total % 64 != 0);
}

/**
 * bl_parts_add - mark bytes @offset to @offset + @len - 1, which lie within the message; @len is
 * not 0. Returns 0, or -1 if one of them had come before; in that case nothing is marked.
 */
BL_CORE int bl_parts_add(__u64 *bits, __u32 offset, __u32 len)
{
	__u32 first = offset / 64, last = (offset + len - 1) / 64, i;
	__u64 head = ~0ULL << offset % 64, tail = ~0ULL >> (63 - (offset + len - 1) % 64);

	for (i = first; i <= last; i++)
		if (bits[i] & (i == first ? head : ~0ULL) & (i == last ? tail : ~0ULL))
			return -1;
	for (i = first; i <= last; i++)
		bits[i] |= (i == first ? head : ~0ULL) & (i == last ? tail : ~0ULL);
	return 0;
}

/** bl_parts_has - whether one of bytes @offset to @offset + @len - 1 has come. */
BL_CORE int bl_parts_has(const __u64 *bits, __u32 offset, __u32 len)
{
	__u32 i;

	for (i = offset; i < offset + len; i++)
		if (bits[i / 64] >> i % 64 & 1)
			return 1;
	return 0;
}

#endif
