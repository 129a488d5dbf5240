// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The pages that endpoints share with their host's programs; endpoint_pages.h says what is where. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "../bpf/clock_core.h"
#include "../bpf/commit_core.h"
#include "endpoint_pages.h"

/* The wake page is shared with programs and processes: one word is stored in the mapping, never the whole value. */
int bl_ep_clear_wake(struct bl_node *n, unsigned int slot)
{
	size_t size = (sizeof(struct bl_wake) + 4095) & ~4095UL;
	struct bl_wake *w = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, n->wake_fd, 0);

	if (w == MAP_FAILED)
		return -errno;
	__atomic_store_n(&w->ep[slot].until, BL_TIME_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ep[slot].until_c, BL_TIME_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ep[slot].on_ack, 0, __ATOMIC_RELEASE);
	munmap(w, size);
	return 0;
}

/* The line of an endpoint; so is this page shared. NULL, with errno. */
static struct bl_inflight *map_lines(const struct bl_node *n)
{
	struct bl_inflight *page = mmap(NULL, BL_EPS_MAX * sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, n->inflight_fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

static void unmap_lines(struct bl_inflight *page)
{
	munmap(page, BL_EPS_MAX * sizeof(*page));
}

static bool line_holds(const struct bl_inflight *line)
{
	uint64_t hold = __atomic_load_n(&line->hold, __ATOMIC_ACQUIRE);

	return (hold && hold != BL_TIME_NONE) || bl_rwin_used(__atomic_load_n(&line->state, __ATOMIC_ACQUIRE));
}

int bl_ep_clear_line(struct bl_node *n, unsigned int slot, bool window)
{
	struct bl_inflight *page = map_lines(n);

	if (!page)
		return -errno;
	if (window) {
		__atomic_store_n(&page[slot].state, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&page[slot].hold, BL_TIME_NONE, __ATOMIC_RELEASE);
		__atomic_store_n(&page[slot].dead_ts, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&page[slot].ts, BL_TIME_NONE, __ATOMIC_RELEASE);
	unmap_lines(page);
	return 0;
}

bool bl_ep_holds_commit(const struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *page = map_lines(n);
	bool holds = !page || line_holds(&page[slot]); /* what cannot be seen is not given up */

	if (page)
		unmap_lines(page);
	return holds;
}

uint64_t bl_ep_freeze(struct bl_node *n, unsigned int slot, bool alive)
{
	struct bl_rwin *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, n->windows_fd, (off_t)(slot * sizeof(*w)));
	struct bl_inflight *page = map_lines(n);
	__u64 t = 0, ts;

	if (page && w != MAP_FAILED && !(t = page[slot].dead_ts)) {
		uint64_t hold = __atomic_load_n(&page[slot].hold, __ATOMIC_ACQUIRE);

		t = bl_clock_at(n->clock, bl_mono_ns());
		if (bl_rwin_freeze(&page[slot].state, w, &ts))
			t = ts;
		if (hold && hold < t)
			t = hold;
		if (alive)
			__atomic_store_n(&page[slot].hold, t, __ATOMIC_RELEASE);
		__atomic_store_n(&page[slot].dead_ts, t, __ATOMIC_RELEASE);
	}
	if (page)
		unmap_lines(page);
	if (w != MAP_FAILED)
		munmap(w, sizeof(*w));
	return t;
}

struct bl_failures *bl_failures_map(const struct bl_node *n)
{
	struct bl_failures *page = mmap(NULL, (sizeof(*page) + 4095) & ~4095UL, PROT_READ | PROT_WRITE, MAP_SHARED, n->failures_fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

void bl_failures_unmap(struct bl_failures *page)
{
	munmap(page, (sizeof(*page) + 4095) & ~4095UL);
}

/* The controller orders again what it does not know to be done; a daemon that was started anew does not know either. */
static bool announced(const struct bl_failures *page, const struct bl_failure *f)
{
	uint64_t i;

	for (i = page->last; i && page->last - i < BL_FAILS_MAX; i--) {
		const struct bl_failure *v = &page->ring[i % BL_FAILS_MAX];

		if (v->order == f->order && v->port == f->port && v->ts == f->ts && !memcmp(v->addr, f->addr, sizeof(f->addr)))
			return f->order != 0;
	}
	return false;
}

int bl_failure_announce(struct bl_node *n, const struct bl_failure *f)
{
	struct bl_failures *page = bl_failures_map(n);
	uint64_t number;
	int k;

	if (!page)
		return -errno;
	if (announced(page, f)) {
		bl_failures_unmap(page);
		return 0;
	}
	number = page->last + 1;
	page->ring[number % BL_FAILS_MAX] = *f;
	page->ring[number % BL_FAILS_MAX].number = number;
	__atomic_store_n(&page->last, number, __ATOMIC_RELEASE); /* pairs with bl_recall_last() in lib/recall.c */
	bl_failures_unmap(page);
	/* wake who sleeps; whose connection is of an earlier daemon looks by itself */
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].conn >= 0)
			(void)!send(n->ep[k].conn, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

bool bl_failure_done(struct bl_node *n)
{
	struct bl_failures *page = bl_failures_map(n);
	bool done = page != NULL;
	int k;

	for (k = 0; page && k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].dead && __atomic_load_n(&page->done[k], __ATOMIC_ACQUIRE) != page->last)
			done = false;
	if (page)
		bl_failures_unmap(page);
	return done;
}

int bl_ep_none_failed(const struct bl_node *n, unsigned int slot)
{
	struct bl_failures *page = bl_failures_map(n);

	if (!page)
		return -errno;
	__atomic_store_n(&page->done[slot], page->last, __ATOMIC_RELEASE);
	bl_failures_unmap(page);
	return 0;
}
