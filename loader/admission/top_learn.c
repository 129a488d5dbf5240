// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's thresholds, learnt. Once per second the daemon of a host samples the sizes of the flows
 * that it received (bl_top_page.sizes, where the pacer counts each flow as it ends) and of those
 * that have not ended, and writes thresholds that give each class the same load
 * (core/top/top_classes_core.h) to bl_top_page.limit, from which the pacer reads them. Hosts share
 * nothing: each receiver learns from the flows that it receives. The thresholds outlive the daemon;
 * the next daemon counts the page's flows from the beginning and makes thresholds of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "base/library/systemd.h"
#include "core/top/top_classes_core.h"
#include "loader/admission/top_learn.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"

#define PERIOD_US 1000000

/** struct bl_top_learner - what one host's daemon learns with. */
struct bl_top_learner {
	sd_event_source *timer;
	struct bl_top_page *page;   /* mmapped "top_page" */
	size_t size;                /* bytes of the mapping */
	int cfg_fd, rx_fd;          /* the maps "top_cfg" and "top_rx" */
	uint32_t objective, levels; /* the settings for which thresholds were learnt */
	struct bl_top_learn l;
};

/* Counts the flows that have not ended by the size of what has come of them. */
static void count_open(const struct bl_top_learner *t, uint64_t open[BL_TOP_SIZES])
{
	struct bl_top_rx r;
	uint32_t i;

	memset(open, 0, sizeof(*open) * BL_TOP_SIZES);
	for (i = 0; i < BL_TOP_RX_MAX; i++) {
		uint64_t frames;

		if (!(__atomic_load_n(&t->page->used[i / 64], __ATOMIC_RELAXED) >> (i & 63) & 1) ||
		    bpf_map_lookup_elem(t->rx_fd, &i, &r) || r.state == BL_TOP_RX_FREE)
			continue;
		frames = bl_top_frames(bl_top_payload(r.served));
		if (frames)
			open[bl_top_bucket(frames)]++;
	}
}

static void write_limit(struct bl_top_page *p, const uint64_t limit[BL_TOP_CLASSES - 1])
{
	unsigned int c;

	/* the first threshold is written last, since it says that all are there */
	for (c = BL_TOP_CLASSES - 1; c--;)
		__atomic_store_n(&p->limit[c], limit[c], __ATOMIC_RELEASE);
}

static void learn_once(struct bl_top_learner *t)
{
	uint64_t sizes[BL_TOP_SIZES], open[BL_TOP_SIZES];
	struct bl_top_cfg c;
	uint32_t zero = 0, b;

	if (bpf_map_lookup_elem(t->cfg_fd, &zero, &c))
		return;
	if (!c.learn || c.objective != t->objective || c.levels != t->levels) {
		/* `barline admission set` has changed the classes */
		memset(t->l.limit, 0, sizeof(t->l.limit));
		t->objective = c.objective;
		t->levels = c.levels;
	}
	for (b = 0; b < BL_TOP_SIZES; b++)
		sizes[b] = __atomic_load_n(&t->page->sizes[b], __ATOMIC_RELAXED);
	count_open(t, open);
	if (c.learn)
		bl_top_learn_step(&t->l, sizes, open, c.objective == BL_TOP_BY_FCT, c.levels);
	else
		bl_top_learn_add(&t->l, sizes);
	/* also when nothing is learnt: this clears what an earlier daemon left */
	write_limit(t->page, t->l.limit);
}

static int on_timer(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_top_learner *t = ctx;

	learn_once(t);
	sd_event_source_set_time(src, usec + PERIOD_US);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	return 0;
}

int bl_top_learn_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_node_ref ref = { .role = BL_ROLE_HOST, .netns_ino = n->netns_ino };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct bl_top_learner *t;
	void *map;
	int fd;

	ref.meta = n->meta;
	if (n->cfg.role != BL_ROLE_HOST || !n->cfg.admission.on)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return bl_fail(err, ENOMEM, "out of memory");
	n->top_learner = t;
	t->rx_fd = -1;
	t->size = (sizeof(struct bl_top_page) + page - 1) / page * page;
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	t->cfg_fd = bl_map_open(&ref, BL_MAP_TOP_CFG, sizeof(struct bl_top_cfg), false, err);
	if (t->cfg_fd < 0)
		return t->cfg_fd;
	t->rx_fd = bl_map_open(&ref, BL_MAP_TOP_RX, sizeof(struct bl_top_rx), false, err);
	if (t->rx_fd < 0)
		return t->rx_fd;
	fd = bl_map_open(&ref, BL_MAP_TOP_PAGE, sizeof(struct bl_top_page), true, err);
	if (fd < 0)
		return fd;
	map = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_TOP_PAGE, strerror(errno));
	t->page = map;
	if (sd_event_add_time_relative(n->srv->ev, &t->timer, CLOCK_MONOTONIC, PERIOD_US,
				       PERIOD_US / 10, on_timer, t) < 0)
		return bl_fail(err, ENOMEM, "out of memory");
	return 0;
}

void bl_top_learn_close(struct bl_node *n)
{
	struct bl_top_learner *t = n->top_learner;

	if (!t)
		return;
	sd_event_source_disable_unref(t->timer);
	if (t->page)
		munmap(t->page, t->size);
	if (t->cfg_fd >= 0)
		close(t->cfg_fd);
	if (t->rx_fd >= 0)
		close(t->rx_fd);
	free(t);
	n->top_learner = NULL;
}
