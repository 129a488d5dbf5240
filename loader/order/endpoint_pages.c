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
#include "loader/order/slot_map.h"

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

/* ---- pages of endpoints ---- */

static int map_page(struct bl_ep *ep, int fd)
{
	void *p = mmap(NULL, sizeof(*ep->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	ep->page = p;
	ep->page_fd = fd;
	return 0;
}

int bl_ep_make_page(struct bl_ep *ep)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bl_ep_page", sizeof(uint32_t),
				sizeof(*ep->page), 1, &opts),
	    rc;
	uint32_t slot = ep->slot;

	rc = fd < 0 ? -errno : map_page(ep, fd);
	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	bl_line_clear(&ep->page->line);
	ep->page->wake.until = ep->page->wake.until_c = BL_TIME_NONE;
	/* what failed before the endpoint was there */
	rc = bl_failures_last_number(ep->node, &ep->page->wake.done);
	/* The slot's former owner may have left a decision here. */
	if (!rc)
		rc = bl_ep_word_set(ep->node, slot, &(struct bl_ep_word){ 0 });
	if (!rc)
		rc = bl_slot_map_enter(ep->node, BL_SLOT_PAGE, slot, fd);
	return rc;
}

int bl_ep_adopt_page(struct bl_ep *ep)
{
	int fd = bl_slot_map_open(ep->node, BL_SLOT_PAGE, ep->slot), rc;

	if (fd < 0)
		return fd;
	rc = map_page(ep, fd);
	if (rc)
		close(fd);
	return rc;
}

void bl_ep_close_page(struct bl_ep *ep)
{
	if (!ep->page)
		return;
	munmap(ep->page, sizeof(*ep->page));
	close(ep->page_fd);
	ep->page = NULL;
	ep->page_fd = -1;
}

int bl_ep_drop_page(struct bl_node *n, unsigned int slot)
{
	int rc = bl_slot_map_remove(n, BL_SLOT_PAGE, slot);

	bl_ep_close_page(&n->ep[slot]);
	return rc;
}

struct bl_inflight *bl_ep_line(const struct bl_node *n, unsigned int slot)
{
	return n->ep[slot].page ? &n->ep[slot].page->line : NULL;
}

void bl_ep_clear_line(struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *line = bl_ep_line(n, slot);

	if (line)
		__atomic_store_n(&line->ts, BL_TIME_NONE, __ATOMIC_RELEASE);
}

/*
 * Frames that the process was about to put into the NIC's ring may be there. The counts continue
 * with the next endpoint of the slot.
 */
int bl_ep_clear_wake(struct bl_node *n, unsigned int slot)
{
	struct bl_ep_page *p = n->ep[slot].page;
	struct bl_hints *h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, n->hints_fd, 0);

	if (h == MAP_FAILED)
		return -errno;
	if (p) {
		__atomic_store_n(&p->wake.until, BL_TIME_NONE, __ATOMIC_RELEASE);
		__atomic_store_n(&p->wake.until_c, BL_TIME_NONE, __ATOMIC_RELEASE);
		__atomic_store_n(&p->wake.on_ack, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&h->nic[slot].queued, h->nic[slot].offered, __ATOMIC_RELEASE);
	munmap(h, 4096);
	return bl_ep_publish(n, slot);
}

/* ---- what the daemon has decided ---- */

int bl_ep_word_get(const struct bl_node *n, unsigned int slot, struct bl_ep_word *w)
{
	struct bl_host_page page;
	uint32_t zero = 0;

	*w = (struct bl_ep_word){ 0 };
	if (bpf_map_lookup_elem(n->page_fd, &zero, &page))
		return -errno;
	*w = page.word[slot];
	return 0;
}

int bl_ep_word_set(const struct bl_node *n, unsigned int slot, const struct bl_ep_word *w)
{
	struct bl_note_arg a = { .kind = BL_NOTE_WORD, .slot = slot, .word = *w };

	return bl_note(n->note_fd, &a);
}

uint64_t bl_ep_sent_commit(const struct bl_node *n)
{
	struct bl_host_page page;
	uint32_t zero = 0;

	return bpf_map_lookup_elem(n->page_fd, &zero, &page) ? UINT64_MAX : page.sent_commit;
}

bool bl_ep_holds_commit(const struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *line = bl_ep_line(n, slot);

	return !line || bl_line_holds(line); /* one that cannot be read is assumed to hold C */
}

int bl_ep_over(struct bl_node *n, unsigned int slot)
{
	struct bl_ep_word w;
	int rc = bl_ep_word_get(n, slot, &w);

	bl_line_over(&w);
	return rc ? rc : bl_ep_word_set(n, slot, &w);
}

uint64_t bl_ep_out(const struct bl_node *n, unsigned int slot, enum bl_out_why *why)
{
	struct bl_ep_word w;

	bl_ep_word_get(n, slot, &w);
	*why = (enum bl_out_why)w.out_why;
	return w.out;
}

uint64_t bl_ep_bye(const struct bl_node *n, unsigned int slot)
{
	struct bl_inflight *line = bl_ep_line(n, slot);

	return line ? __atomic_load_n(&line->bye, __ATOMIC_ACQUIRE) : 0;
}

/* ---- T of an endpoint that is out ---- */

/*
 * Time from reading the clock to storing what follows from it. If it takes longer, the step is
 * repeated.
 */
#define SLACK_NS 1000000ULL

/* Maps the host page for reading. Returns NULL with errno. */
static const struct bl_host_page *map_host_page(const struct bl_node *n)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, n->page_fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap_host_page(const struct bl_host_page *host)
{
	munmap((void *)(uintptr_t)host, 4096);
}

/*
 * Returns a bound of every C that this host has sent, or that a program that runs now will send: C
 * is at most what the host promises.
 */
static uint64_t greatest_promise(const struct bl_node *n, const struct bl_host_page *host)
{
	uint64_t t = bl_clock_at(n->clock.shared, bl_mono_ns()) + n->host_cfg.ahead_ns;

	t = bl_max64(t, __atomic_load_n(&host->promised, __ATOMIC_ACQUIRE));
	return bl_max64(t, __atomic_load_n(&host->sent_commit, __ATOMIC_ACQUIRE));
}

uint64_t bl_ep_dead_at(struct bl_node *n, unsigned int slot, enum bl_out_why why)
{
	const struct bl_host_page *host = map_host_page(n);
	struct bl_ep_page *p = n->ep[slot].page;
	struct bl_ep_word w = { 0 };
	uint64_t latest, t = 0;

	if (!host || !p)
		goto out;
	w = host->word[slot];
	if (w.out && w.out_why)
		t = w.out; /* by an earlier daemon */
	/*
	 * Pairs with host_barriers() in bpf/host/host.bpf.c: clock, full fence, line. A program
	 * that has not seen @out has read a clock from before the fence here, and promises no more
	 * than greatest_promise().
	 */
	while (!t) {
		latest = greatest_promise(n, host) + SLACK_NS;
		t = bl_line_failed_at(&p->line, &p->win,
				      __atomic_load_n(&host->sent_commit, __ATOMIC_ACQUIRE),
				      latest);
		bl_line_out(&w, t, why);
		if (bl_ep_word_set(n, slot, &w)) {
			t = 0;
			break;
		}
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (t == latest && greatest_promise(n, host) > t)
			t = 0;
	}
out:
	if (host)
		unmap_host_page(host);
	return t;
}

/*
 * A process that updates a map of maps returns after an RCU grace period
 * (maybe_wait_bpf_programs(), as in the kernel's selftests), and programs run inside RCU read
 * sections. membarrier(MEMBARRIER_CMD_GLOBAL) waits for one, too, but is refused where nohz_full is
 * on.
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
	const struct bl_host_page *host = map_host_page(n);
	struct bl_ep_word w;
	unsigned int k;
	uint64_t sent;

	memset(t, 0, BL_EPS_MAX * sizeof(*t));
	if (!host)
		return;
	for (k = 0; k < BL_EPS_MAX; k++) {
		if (!(slots >> k & 1))
			continue;
		w = host->word[k];
		bl_line_stop(&w, __atomic_load_n(&host->sent_commit, __ATOMIC_ACQUIRE),
			     __atomic_load_n(&host->commit, __ATOMIC_ACQUIRE));
		if (bl_ep_word_set(n, k, &w) || !n->ep[k].page)
			slots &= ~(1ULL << k);
	}
	bl_ep_wait_programs(n);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep_page *p = n->ep[k].page;

		if (!(slots >> k & 1))
			continue;
		w = host->word[k];
		/*
		 * What was sent is read once more: a program that had read no @out yet may have
		 * sent more than the first bound. None sends more now.
		 */
		sent = bl_max64(w.out, __atomic_load_n(&host->sent_commit, __ATOMIC_ACQUIRE));
		t[k] = w.out_why ? w.out
				 : bl_line_failed_at(&p->line, &p->win, sent,
						     greatest_promise(n, host));
		if (!t[k] || w.out_why)
			continue;
		bl_line_out(&w, t[k], why);
		if (bl_ep_word_set(n, k, &w))
			t[k] = 0;
	}
	unmap_host_page(host);
}

int bl_failures_replace(struct bl_node *n, int fd)
{
	int old = n->failures_fd;

	n->failures_fd = fd;
	return old;
}

struct bl_failures *bl_failures_map(const struct bl_node *n)
{
	struct bl_failures *page = mmap(NULL, (sizeof(*page) + 4095) & ~4095UL, PROT_READ,
					MAP_SHARED, n->failures_fd, 0);

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
	struct bl_note_arg a = { .kind = BL_NOTE_FAILURE, .failure = *f };
	int k, rc;

	if (!page)
		return -errno;
	if (is_announced(page, f)) {
		bl_failures_unmap(page);
		return 0;
	}
	a.failure.number = page->last + 1;
	bl_failures_unmap(page);
	rc = bl_note(n->note_fd, &a);
	if (rc)
		return rc;
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
		if (n->ep[k].used && !n->ep[k].dead && n->ep[k].page &&
		    __atomic_load_n(&n->ep[k].page->wake.done, __ATOMIC_ACQUIRE) != page->last)
			done = false;
	if (page)
		bl_failures_unmap(page);
	return done;
}

int bl_failures_last_number(const struct bl_node *n, __u64 *last)
{
	struct bl_failures *page = bl_failures_map(n);

	if (!page)
		return -errno;
	*last = page->last;
	bl_failures_unmap(page);
	return 0;
}
