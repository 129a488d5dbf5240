// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_note: writes the daemon's words of the clock record and of the host page, and announcements
 * of failures (maps/note_abi.h). It is an object of its own, since a daemon that starts writes the
 * record before it loads the programs of its host.
 *
 * Example: the daemon runs it with BL_NOTE_CLOCK and a record whose seq is 8. The shared record's
 * seq becomes 7, then both segments and the other fields are written (bl_clock_store()), then its
 * seq becomes 8. The program can be interrupted between any two stores.
 *
 * Not here: what the record says (loader/order/clock.c).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/clock_maps.h"
#include "maps/note_abi.h"
#include "maps/page_maps.h"
#include "core/clock_core.h"
#include "core/order/line_core.h"

/*
 * A reader that finds a part of this announcement finds @last at least as it was before; one that
 * finds the new @last finds all of it. Pairs with lib/failures.c.
 */
static __always_inline void write_failure(struct bl_failures *f, const struct bl_failure *own)
{
	__u64 fence = 0;

	__sync_lock_test_and_set(&fence, 1);
	f->ring[own->number % BL_FAILS_MAX] = *own;
	__sync_lock_test_and_set(&fence, 1);
	BL_WRITE_ONCE(f->last, own->number);
}

SEC("syscall")
int bl_note(struct bl_note_arg *a)
{
	__u32 zero = 0, slot = a->slot & (BL_EPS_MAX - 1);
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_failures *f = bpf_map_lookup_elem(&failures, &zero);
	struct bl_clock *c = bpf_map_lookup_elem(&clock, &zero);

	if (!page || !c || !f)
		return 0;
	switch (a->kind) {
	case BL_NOTE_CLOCK:
		bl_clock_store(c, &a->clock);
		break;
	case BL_NOTE_EPS:
		BL_WRITE_ONCE(page->eps_lines, a->lines);
		BL_WRITE_ONCE(page->eps_active, a->active);
		break;
	case BL_NOTE_WORD:
		bl_word_store(&page->word[slot], &a->word);
		break;
	case BL_NOTE_FAILURE:
		write_failure(f, &a->failure);
		break;
	case BL_NOTE_DRAINED:
		BL_WRITE_ONCE(page->drained, a->drained);
		break;
	default:
		return 0;
	}
	a->done = 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
