// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/ring.h. */
#include <stdlib.h>
#include <string.h>

#include "arbiter/ring.h"

bool arb_ring_open(struct arb_ring *r, unsigned int size)
{
	ck_ring_init(&r->ring, size);
	r->buf = aligned_alloc(64, size * sizeof(*r->buf));
	if (r->buf) /* makes the kernel find the pages before the first run */
		memset(r->buf, 0, size * sizeof(*r->buf));
	return r->buf;
}

void arb_ring_close(struct arb_ring *r)
{
	free(r->buf);
}
