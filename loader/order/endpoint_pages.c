// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See endpoint_pages.h. */
#include "loader/order/endpoint_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/membarrier.h>

#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/line_core.h"
#include "loader/node_priv.h"
#include "loader/order/note.h"

int bl_ep_publish(struct bl_node *n, unsigned int gone)
{
	struct bl_note_arg a = { .kind = BL_NOTE_EPS };
	struct bl_host_page page;
	uint32_t zero = 0, k;

	if (bpf_map_lookup_elem(n->page_fd, &zero, &page))
		return -errno;
	a.lines = page.eps_lines;
	for (k = 0; k < BL_EPS_MAX; k++) {
		if (n->ep[k].used && k >= a.lines)
			a.lines = k + 1;
		a.active += n->ep[k].used && k != gone && n->ep[k].info.active == BL_EP_ACTIVE;
	}
	return bl_note(n->note_fd, &a);
}

/*
 * The wake page is shared with programs and processes, so single words are stored in the mapping,
 * never the whole value.
 */
int bl_ep_clear_wake(struct bl_node *n, unsigned int slot)
{
	size_t size = (sizeof(struct bl_wake) + 4095) & ~4095UL;
	struct bl_wake *w = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, n->wake_fd, 0);

	if (w == MAP_FAILED)
		return -errno;
	__atomic_store_n(&w->ep[slot].until, BL_TIME_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ep[slot].until_c, BL_TIME_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ep[slot].on_ack, 0, __ATOMIC_RELEASE);
	/*
	 * Frames that the process was about to put into the NIC's ring may be there. The counts
	 * continue with the next endpoint of the slot.
	 */
	__atomic_store_n(&w->ep[slot].nic_queued, w->ep[slot].nic_offered, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ep[slot].senders, 0, __ATOMIC_RELEASE);
	munmap(w, size);
	return bl_ep_publish(n, slot);
}

struct bl_inflight *bl_lines_map(const struct bl_node *n)
{
	struct bl_inflight *page = mmap(NULL, BL_EPS_MAX * sizeof(*page), PROT_READ | PROT_WRITE,
					MAP_SHARED, n->inflight_fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

void bl_lines_unmap(struct bl_inflight *page)
{
	munmap(page, BL_EPS_MAX * sizeof(*page));
}

int bl_ep_clear_line(struct bl_node *n, unsigned int slot, bool all)
{
	struct bl_inflight *page = bl_lines_map(n);

	if (!page)
		return -errno;
	if (all)
		bl_line_clear(&page[slot]);
	else
		__atomic_store_n(&page[slot].ts, BL_TIME_NONE, __ATOMIC_RELEASE);
	bl_lines_unmap(page);
	return 0;
}

bool bl_ep_holds_commit(const struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *page = bl_lines_map(n);
	bool holds =
		!page ||
		bl_line_holds(&page[slot]); /* a line that cannot be read is assumed to hold C */

	if (page)
		bl_lines_unmap(page);
	return holds;
}

int bl_ep_over(struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *page = bl_lines_map(n);

	if (!page)
		return -errno;
	bl_line_over(&page[slot]);
	bl_lines_unmap(page);
	return 0;
}

uint64_t bl_ep_out(const struct bl_node *n, unsigned int slot, enum bl_out_why *why)
{
	struct bl_inflight *page = bl_lines_map(n);
	uint64_t out = 0;

	*why = BL_OUT_MEMBER;
	if (!page)
		return 0;
	out = __atomic_load_n(&page[slot].out, __ATOMIC_ACQUIRE);
	*why = (enum bl_out_why)__atomic_load_n(&page[slot].out_why, __ATOMIC_ACQUIRE);
	bl_lines_unmap(page);
	return out;
}

uint64_t bl_ep_bye(const struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *page = bl_lines_map(n);
	uint64_t bye = page ? __atomic_load_n(&page[slot].bye, __ATOMIC_ACQUIRE) : 0;

	if (page)
		bl_lines_unmap(page);
	return bye;
}

/* ---- T of an endpoint that is out ---- */

/*
 * Time from reading the clock to storing what follows from it. If it takes longer, the step is
 * repeated.
 */
#define SLACK_NS 1000000ULL

struct pages {
	struct bl_inflight *line;
	struct bl_host_page *host;
};

static bool map_pages(const struct bl_node *n, struct pages *p)
{
	p->line = bl_lines_map(n);
	p->host = mmap(NULL, 4096, PROT_READ, MAP_SHARED, n->page_fd, 0);
	if (p->host == MAP_FAILED)
		p->host = NULL;
	return p->line && p->host;
}

static void unmap_pages(struct pages *p)
{
	if (p->line)
		bl_lines_unmap(p->line);
	if (p->host)
		munmap(p->host, 4096);
}

/*
 * Returns a bound of every C that this host has sent, or that a program that runs now will send: C
 * is at most what the host promises.
 */
static uint64_t greatest_promise(const struct bl_node *n, const struct pages *p)
{
	uint64_t t = bl_clock_at(n->clock.shared, bl_mono_ns()) + n->host_cfg.ahead_ns;

	t = bl_max64(t, __atomic_load_n(&p->host->promised, __ATOMIC_ACQUIRE));
	return bl_max64(t, __atomic_load_n(&p->host->sent_commit, __ATOMIC_ACQUIRE));
}

static uint64_t window_failed_at(const struct bl_node *n, unsigned int slot, const struct pages *p,
				 uint64_t latest)
{
	struct bl_rwin *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED,
				 n->windows_fd, (off_t)(slot * sizeof(*w)));
	uint64_t t;

	if (w == MAP_FAILED)
		return 0;
	t = bl_line_failed_at(&p->line[slot], w, latest);
	munmap(w, sizeof(*w));
	return t;
}

uint64_t bl_ep_dead_at(struct bl_node *n, unsigned int slot, enum bl_out_why why)
{
	struct bl_inflight *line;
	uint64_t latest, t = 0;
	struct pages p;

	if (map_pages(n, &p)) {
		line = &p.line[slot];
		if (line->out && line->out_why)
			t = line->out; /* by an earlier daemon */
		/*
		 * Pairs with host_barriers() in bpf/host/host.bpf.c: clock, full fence, line. A
		 * program that has not seen @out has read a clock from before the fence here, and
		 * promises no more than greatest_promise().
		 */
		while (!t) {
			latest = greatest_promise(n, &p) + SLACK_NS;
			t = window_failed_at(n, slot, &p, latest);
			if (!t)
				break;
			bl_line_out(line, t, why);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (t == latest && greatest_promise(n, &p) > t)
				t = 0;
		}
	}
	unmap_pages(&p);
	return t;
}

/*
 * A process that updates a map of maps returns
 * after an RCU grace period (maybe_wait_bpf_programs(), as in the kernel's selftests), and programs
 * run inside RCU read sections. membarrier(MEMBARRIER_CMD_GLOBAL) waits for one, too, but is
 * refused where nohz_full is on.
 */
void bl_ep_wait_programs(const struct bl_node *n)
{
	int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bl_grace_in", 4, 4, 1, NULL), outer;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner);
	const struct timespec ms50 = { .tv_nsec = 50000000 };
	uint32_t zero = 0;

	outer = inner < 0 ? -1
			  : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "bl_grace", 4, 4, 1, &opts);
	if ((outer < 0 || bpf_map_update_elem(outer, &zero, &inner, BPF_ANY)) &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) {
		bl_log(BL_LOG_ERR,
		       "%s: cannot wait for the programs that run now: %s; they get 50 ms",
		       n->meta.name, strerror(errno));
		nanosleep(&ms50, NULL);
	}
	if (outer >= 0)
		close(outer);
	if (inner >= 0)
		close(inner);
}

void bl_ep_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why, uint64_t t[BL_EPS_MAX])
{
	struct pages p;
	unsigned int k;

	memset(t, 0, BL_EPS_MAX * sizeof(*t));
	if (map_pages(n, &p)) {
		for (k = 0; k < BL_EPS_MAX; k++)
			if (slots >> k & 1)
				bl_line_stop(&p.line[k],
					     __atomic_load_n(&p.host->sent_commit,
							     __ATOMIC_ACQUIRE),
					     __atomic_load_n(&p.host->commit, __ATOMIC_ACQUIRE));
		bl_ep_wait_programs(n);
		for (k = 0; k < BL_EPS_MAX; k++) {
			if (!(slots >> k & 1))
				continue;
			t[k] = p.line[k].out_why
				       ? p.line[k].out
				       : window_failed_at(n, k, &p, greatest_promise(n, &p));
			if (t[k] && !p.line[k].out_why)
				bl_line_out(&p.line[k], t[k], why);
		}
	}
	unmap_pages(&p);
}

int bl_failures_replace(struct bl_node *n, int fd)
{
	int old = n->failures_fd;

	n->failures_fd = fd;
	return old;
}

struct bl_failures *bl_failures_map(const struct bl_node *n)
{
	struct bl_failures *page = mmap(NULL, (sizeof(*page) + 4095) & ~4095UL,
					PROT_READ | PROT_WRITE, MAP_SHARED, n->failures_fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

void bl_failures_unmap(struct bl_failures *page)
{
	munmap(page, (sizeof(*page) + 4095) & ~4095UL);
}

/*
 * The controller repeats commands that it does not know to be done, and a daemon that was restarted
 * does not know either.
 */
static bool is_announced(const struct bl_failures *page, const struct bl_failure *f)
{
	uint64_t i;

	for (i = page->last; i && page->last - i < BL_FAILS_MAX; i--) {
		const struct bl_failure *v = &page->ring[i % BL_FAILS_MAX];

		if (v->order == f->order && v->port == f->port && v->ts == f->ts &&
		    !memcmp(v->addr, f->addr, sizeof(f->addr)))
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
	if (is_announced(page, f)) {
		bl_failures_unmap(page);
		return 0;
	}
	number = page->last + 1;
	/*
	 * A reader that finds a part of this announcement finds @last at least as it is now; pairs
	 * with read_failure() in lib/recall.c.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	page->ring[number % BL_FAILS_MAX] = *f;
	page->ring[number % BL_FAILS_MAX].number = number;
	/* Pairs with bl_failures_last() in lib/failures.c. */
	__atomic_store_n(&page->last, number, __ATOMIC_RELEASE);
	bl_failures_unmap(page);
	/*
	 * Wake processes that sleep. A process without a connection to this daemon reads the page
	 * by itself.
	 */
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
		if (n->ep[k].used && !n->ep[k].dead &&
		    __atomic_load_n(&page->done[k], __ATOMIC_ACQUIRE) != page->last)
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
