/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of the best-effort sender (lib/stage.c, lib/tx.c) share: three endpoints, of which
 * a sends, and a NIC's ring whose fill level the test sets.
 */
#ifndef BARLINE_TESTS_LIB_TX_H
#define BARLINE_TESTS_LIB_TX_H

#define FAKE_THREE
#include "tests/unit/lib/lib_fake.h"
#include "tests/unit/lib/siocoutq.h"

static inline int send_one(const struct fake *to, const void *data, uint32_t len, uint64_t cookie,
			   unsigned int flags)
{
	struct bl_msg m = msg_to(to, data, len, cookie);

	return bl_send(a.ep, &m, 1, flags);
}

/* Send @n frames of one byte: CREDITs and NAKs speak of numbers only. */
static inline void send_frames(const struct fake *to, uint32_t n)
{
	while (n--)
		assert_int_equal(send_one(to, "x", 1, 0, 0), 0);
}

static uint8_t pattern[BL_MESSAGE_MAX + 1];

static inline void fill_pattern(void)
{
	uint32_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 8));
}

/* bytes in the send buffer of every socket */
static int outq;

static int outq_of(int fd)
{
	(void)fd;
	return outq;
}

#endif
