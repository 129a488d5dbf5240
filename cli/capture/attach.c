// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See attach.h. */
#include "cli/capture/attach.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/time.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

#define PROG_MAPS_MAX 256
#define RESCAN_NS     250000000ULL
/*
 * Events of the last milliseconds are held back: a program may have read the clock and not yet put
 * its record into the buffer.
 */
#define HOLD_BACK_NS 20000000ULL

/** struct target - a node. */
struct target {
	const struct bl_node_ref *ref;
	uint32_t counts_id; /* id of its map "counts", by which its programs are known */
	uint32_t keys;      /* of struct bl_capture_slot */
	bool wanted;        /* it has the interface of the filter */
	char nic[16];       /* of a host */
	char (*ports)[16];  /* of a switch: names by number */
};

/** struct taken - a slot of a node's programs. */
struct taken {
	uint32_t node;   /* index of the target */
	uint32_t map_id; /* of the page */
	uint32_t slot;
	struct bl_capture_page *page;
};

/** struct held - an event that waits for its turn. */
struct held {
	uint64_t at_ns;
	struct bl_capture_event *e;
};

struct capture {
	struct capture_filter f;
	uint64_t owner;
	struct target *targets;
	int ntargets;
	struct taken *taken;
	size_t ntaken;
	uint32_t last_id; /* of the programs that were looked at */
	uint64_t scan_ns; /* when to look for new ones; CLOCK_MONOTONIC */
	int64_t real_ns;  /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	int out_fd;       /* the perf event array */
	struct perf_buffer *pb;
	uint64_t lost; /* of slots that were given back */
	struct held *held;
	size_t nheld, room;
	bool out_of_memory;
};

void capture_everything(struct capture_filter *f)
{
	memset(f, 0, sizeof(*f));
	memset(f->reasons, 0xff, sizeof(f->reasons));
	f->opcodes = UINT32_MAX & ~1U;
	f->snap = BL_CAPTURE_SNAP_MAX;
	f->buffer_kib = 2048;
	f->dirs = 1U << BL_CAPTURE_IN | 1U << BL_CAPTURE_OUT;
}

static int real_minus_mono(int64_t *out)
{
	struct timespec real;

	if (clock_gettime(CLOCK_REALTIME, &real))
		return -errno;
	*out = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)bl_mono_ns();
	return 0;
}

/* Reads what is to be known of a node before it is captured. */
static int learn_target(struct capture *c, struct target *t, const struct bl_node_ref *ref,
			struct bl_err *err)
{
	bool is_switch = ref->role == BL_ROLE_SWITCH;
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info), k;
	int fd =
		bl_map_open(ref, BL_MAP_COUNTS,
			    is_switch ? sizeof(struct bl_sw_counts) : sizeof(struct bl_host_counts),
			    false, err);

	t->ref = ref;
	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		close(fd);
		return bl_fail(err, errno, "%s/maps/%s: %s", ref->dir, BL_MAP_COUNTS,
			       strerror(errno));
	}
	close(fd);
	t->counts_id = info.id;
	t->keys = BL_CAPTURE_ALL;
	t->wanted = !c->f.port;
	if (!is_switch) {
		node_nic(ref, t->nic, sizeof(t->nic));
		if (c->f.port)
			t->keys = !strcmp(c->f.port, "lo")     ? 1U << BL_HC_LOCAL
				  : !strcmp(c->f.port, "bl0d") ? 1U << BL_HC_HOLD
				  : strcmp(c->f.port, t->nic)
					  ? 0
					  : ~(1U << BL_HC_LOCAL | 1U << BL_HC_HOLD) & 0xff;
		t->wanted = t->keys;
		return 0;
	}
	t->ports = calloc(BL_SW_PORTS_MAX, sizeof(*t->ports));
	if (!t->ports)
		return bl_fail(err, ENOMEM, "out of memory");
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		struct bl_sw_port p;

		if (node_value(ref, BL_MAP_SW_PORTS, k, &p, sizeof(p)))
			return bl_fail(err, EIO, "the ports of %s cannot be read", ref->meta.name);
		if (!p.ifindex)
			continue;
		snprintf(t->ports[k], sizeof(t->ports[k]), "%.15s", p.name);
		if (c->f.port && !strcmp(c->f.port, t->ports[k])) {
			t->keys = k;
			t->wanted = true;
		}
	}
	return 0;
}

/* Returns whether the slot has a reader that is alive. */
static bool slot_alive(const struct bl_capture_slot *s)
{
	uint64_t alive = __atomic_load_n(&s->alive_ns, __ATOMIC_ACQUIRE);

	return alive && (int64_t)(bl_mono_ns() - alive) <= (int64_t)BL_CAPTURE_LEASE_NS;
}

/* Takes a free slot of @page. Returns its number, or -EBUSY. */
static int take_slot(struct capture *c, struct bl_capture_page *page)
{
	uint32_t k;

	for (k = 0; k < BL_CAPTURE_SLOTS; k++) {
		struct bl_capture_slot *s = &page->slot[k];
		uint64_t old = __atomic_load_n(&s->alive_ns, __ATOMIC_ACQUIRE);

		if (slot_alive(s) ||
		    !__atomic_compare_exchange_n(&s->alive_ns, &old, bl_mono_ns(), false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&s->dirs, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->owner, c->owner, __ATOMIC_RELEASE);
		return (int)k;
	}
	return -EBUSY;
}

/* Gives a slot back, unless another reader has taken it while this one was stopped. */
static void give_back(struct capture *c, struct taken *t)
{
	struct bl_capture_slot *s = &t->page->slot[t->slot];
	struct bl_err err;
	uint32_t k;
	int fd;

	if (__atomic_load_n(&s->owner, __ATOMIC_ACQUIRE) == c->owner) {
		c->lost += __atomic_load_n(&s->lost, __ATOMIC_RELAXED);
		__atomic_store_n(&s->dirs, 0, __ATOMIC_RELEASE);
		fd = bl_map_open(c->targets[t->node].ref, BL_MAP_CAPTURE_OUT, sizeof(uint32_t),
				 true, &err);
		if (fd >= 0) {
			bpf_map_delete_elem(fd, &t->slot);
			close(fd);
		}
		__atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->alive_ns, 0, __ATOMIC_RELEASE);
	}
	for (k = 0; k < BL_CAPTURE_SLOTS && !slot_alive(&t->page->slot[k]); k++)
		;
	/* A reader that begins at this moment sets it again within 50 ms. */
	if (k == BL_CAPTURE_SLOTS)
		__atomic_store_n(&t->page->on, 0, __ATOMIC_RELEASE);
	munmap(t->page, sizeof(*t->page));
}

/* Begins to capture at the programs whose page is the map @fd. Returns 0 or -errno. */
static int begin_page(struct capture *c, uint32_t node, int fd, uint32_t map_id, struct bl_err *err)
{
	const struct bl_node_ref *ref = c->targets[node].ref;
	struct bl_capture_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct bl_capture_slot *s;
	struct taken *more;
	int slot, out, rc = 0;

	if (page == MAP_FAILED)
		return bl_fail(err, errno, "cannot map the captures of %s: %s", ref->meta.name,
			       strerror(errno));
	more = realloc(c->taken, (c->ntaken + 1) * sizeof(*more));
	if (!more || page->version != BL_CAPTURE_VERSION) {
		munmap(page, sizeof(*page));
		return !more ? bl_fail(err, ENOMEM, "out of memory")
			     : bl_fail(err, EPROTO,
				       "%s runs another build of barline, whose captures differ; "
				       "use its command, or restart its daemon",
				       ref->meta.name);
	}
	c->taken = more;
	slot = take_slot(c, page);
	if (slot < 0) {
		munmap(page, sizeof(*page));
		return bl_fail(err, EBUSY,
			       "%s has %d captures already, which is the limit; end one",
			       ref->meta.name, BL_CAPTURE_SLOTS);
	}
	more[c->ntaken] = (struct taken){ node, map_id, (uint32_t)slot, page };
	s = &page->slot[slot];
	s->lost = 0;
	memcpy(s->reasons, c->f.reasons, sizeof(s->reasons));
	s->opcodes = c->f.opcodes;
	s->snap = c->f.snap;
	s->keys = c->targets[node].keys;
	s->endpoint = c->f.endpoint;
	s->node = node;
	c->ntaken++;
	out = bl_map_open(ref, BL_MAP_CAPTURE_OUT, sizeof(uint32_t), true, err);
	if (out < 0)
		return out;
	if (bpf_map_update_elem(out, &slot, &c->out_fd, BPF_ANY))
		rc = bl_fail(err, errno, "cannot give %s the buffers of the capture: %s",
			     ref->meta.name, strerror(errno));
	close(out);
	if (rc)
		return rc;
	__atomic_store_n(&s->dirs, c->f.dirs, __ATOMIC_RELEASE);
	__atomic_store_n(&page->on, 1, __ATOMIC_RELEASE);
	return 0;
}

/* Looks for the page among the maps of a program of node @node. Returns 0 or -errno. */
static int look_for_page(struct capture *c, uint32_t node, const uint32_t *maps, uint32_t n,
			 struct bl_err *err)
{
	uint32_t m;
	size_t k;

	for (m = 0; m < n; m++) {
		struct bpf_map_info info = {};
		uint32_t len = sizeof(info);
		int fd = bpf_map_get_fd_by_id(maps[m]), rc;

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &len) || strcmp(info.name, BL_CAPTURE_PAGE) ||
		    info.value_size != sizeof(struct bl_capture_page)) {
			close(fd);
			continue;
		}
		for (k = 0; k < c->ntaken && c->taken[k].map_id != info.id; k++)
			;
		rc = k < c->ntaken ? 0 : begin_page(c, node, fd, info.id, err);
		close(fd);
		return rc;
	}
	return 0;
}

/* Looks at the program with this id, which may be one of the nodes'. Returns 0 or -errno. */
static int look_at_program(struct capture *c, uint32_t id, struct bl_err *err)
{
	uint32_t maps[PROG_MAPS_MAX], len, m;
	struct bpf_prog_info info = {};
	int fd = bpf_prog_get_fd_by_id(id), i, rc = 0;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : bl_fail(err, errno, "cannot read the kernel's BPF programs: %s%s",
					 strerror(errno), errno == EPERM ? "; run as root" : "");
	info.map_ids = (uint64_t)(uintptr_t)maps;
	info.nr_map_ids = PROG_MAPS_MAX;
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || strncmp(info.name, "bl_", 3))
		goto out;
	if (info.nr_map_ids > PROG_MAPS_MAX)
		info.nr_map_ids = PROG_MAPS_MAX;
	for (i = 0; i < c->ntargets && !rc; i++) {
		for (m = 0; m < info.nr_map_ids && maps[m] != c->targets[i].counts_id; m++)
			;
		if (m < info.nr_map_ids && c->targets[i].wanted)
			rc = look_for_page(c, (uint32_t)i, maps, info.nr_map_ids, err);
	}
out:
	close(fd);
	return rc;
}

/* Looks at all programs that are new. Returns 0 or -errno. */
static int scan(struct capture *c, struct bl_err *err)
{
	uint32_t id = c->last_id;
	int rc = 0;

	while (!rc && !bpf_prog_get_next_id(id, &id)) {
		rc = look_at_program(c, id, err);
		c->last_id = id;
	}
	c->scan_ns = bl_mono_ns() + RESCAN_NS;
	return rc;
}

static void hold(struct capture *c, const struct bl_capture_event *e, const void *frame)
{
	struct held *more;

	if (c->nheld == c->room) {
		size_t room = c->room ? 2 * c->room : 1024;

		more = realloc(c->held, room * sizeof(*more));
		if (!more) {
			c->out_of_memory = true;
			return;
		}
		c->held = more;
		c->room = room;
	}
	more = &c->held[c->nheld];
	more->e = malloc(sizeof(*e) + e->caplen);
	if (!more->e) {
		c->out_of_memory = true;
		return;
	}
	memcpy(more->e, e, sizeof(*e));
	memcpy(more->e + 1, frame, e->caplen);
	more->at_ns = more->e->at_ns;
	c->nheld++;
}

/* Keeps the event, if the filter wants it in this direction. */
static void hold_in(struct capture *c, struct bl_capture_event *e, const void *frame, uint32_t key,
		    enum bl_capture_dir dir)
{
	const struct target *t;

	if (e->node >= (uint32_t)c->ntargets)
		return;
	t = &c->targets[e->node];
	if (!(c->f.dirs >> dir & 1) || (e->out && t->keys != BL_CAPTURE_ALL && t->keys != key))
		return;
	e->key = key;
	e->dir = (uint8_t)dir;
	hold(c, e, frame);
}

/* Takes one record of a buffer. Lost ones are counted by the programs. */
static enum bpf_perf_event_ret on_record(void *ctx, int cpu, struct perf_event_header *h)
{
	struct {
		struct perf_event_header h;
		uint32_t size;
		uint8_t data[]; /* the event, perhaps not aligned, and the frame */
	} *sample = (void *)h;
	struct capture *c = ctx;
	struct bl_capture_event e;
	uint32_t key;

	(void)cpu;
	if (h->type != PERF_RECORD_SAMPLE || sample->size < sizeof(e))
		return LIBBPF_PERF_EVENT_CONT;
	memcpy(&e, sample->data, sizeof(e));
	if (sizeof(e) + e.caplen > sample->size)
		return LIBBPF_PERF_EVENT_CONT;
	key = e.out ? e.out - 1 : 0;
	hold_in(c, &e, sample->data + sizeof(e), e.key, e.dir);
	if (e.out)
		hold_in(c, &e, sample->data + sizeof(e), key, BL_CAPTURE_OUT);
	return LIBBPF_PERF_EVENT_CONT;
}

static int make_buffers(struct capture *c, struct bl_err *err)
{
	size_t pages = 1, want = (size_t)c->f.buffer_kib * 1024 / (size_t)getpagesize();
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_BPF_OUTPUT,
					.sample_type = PERF_SAMPLE_RAW,
					.sample_period = 1,
					.watermark = 1 };

	while (pages < want)
		pages *= 2;
	/* Wake the reader when the buffer is a quarter full; it looks by itself every 50 ms. */
	attr.wakeup_watermark = (uint32_t)(pages * (size_t)getpagesize() / 4);
	c->out_fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bl_capture", sizeof(uint32_t),
				   sizeof(uint32_t), (uint32_t)libbpf_num_possible_cpus(), NULL);
	if (c->out_fd < 0)
		return bl_fail(err, errno, "cannot make the buffers of the capture: %s%s",
			       strerror(errno), errno == EPERM ? "; run as root" : "");
	c->pb = perf_buffer__new_raw(c->out_fd, pages, &attr, on_record, c, NULL);
	if (!c->pb)
		return bl_fail(err, errno,
			       "cannot make buffers of %zu KiB per CPU: %s; choose less with "
			       "--buffer",
			       pages * (size_t)getpagesize() / 1024, strerror(errno));
	return 0;
}

int capture_open(struct capture **out, const struct bl_node_ref *refs, int n,
		 const struct capture_filter *f, struct bl_err *err)
{
	struct capture *c = calloc(1, sizeof(*c));
	int i, rc;

	*out = NULL;
	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->f = *f;
	c->out_fd = -1;
	c->targets = calloc((size_t)n, sizeof(*c->targets));
	rc = c->targets ? real_minus_mono(&c->real_ns) : -ENOMEM;
	for (i = 0; i < n && !rc; i++) {
		c->ntargets = i + 1;
		rc = learn_target(c, &c->targets[i], &refs[i], err);
	}
	if (!rc && getrandom(&c->owner, sizeof(c->owner), 0) != sizeof(c->owner))
		rc = bl_fail(err, EIO, "no random number for the capture");
	if (!rc)
		rc = make_buffers(c, err);
	if (!rc)
		rc = scan(c, err);
	if (!rc && !c->ntaken)
		rc = f->port ? bl_fail(err, ENOENT,
				       "no node here has an interface \"%s\"; `barline show "
				       "ports` lists them",
				       f->port)
			     : bl_fail(err, ENOENT,
				       "no program that captures is loaded for the nodes here; "
				       "was the daemon started by an older build? `barline "
				       "doctor` says more");
	if (rc) {
		capture_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* Shows the programs that the reader is alive. Returns 0, or -errno if a slot was taken from it. */
static int sign(struct capture *c, struct bl_err *err)
{
	size_t i;

	for (i = 0; i < c->ntaken; i++) {
		struct bl_capture_slot *s = &c->taken[i].page->slot[c->taken[i].slot];

		if (__atomic_load_n(&s->owner, __ATOMIC_ACQUIRE) != c->owner)
			return bl_fail(err, EBUSY,
				       "this capture was stopped for too long, and another one "
				       "has taken its place");
		__atomic_store_n(&s->alive_ns, bl_mono_ns(), __ATOMIC_RELEASE);
		__atomic_store_n(&c->taken[i].page->on, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

int capture_poll(struct capture *c, int ms, int last, capture_fn fn, void *ctx, struct bl_err *err)
{
	uint64_t until = UINT64_MAX;
	size_t i;
	int rc = sign(c, err);

	if (rc)
		return rc;
	if (ms)
		perf_buffer__poll(c->pb, ms);
	if (!last)
		until = bl_mono_ns() - HOLD_BACK_NS;
	rc = perf_buffer__consume(c->pb);
	if (c->out_of_memory)
		return bl_fail(err, ENOMEM, "out of memory");
	if (rc < 0 && rc != -EINTR)
		return bl_fail(err, -rc, "cannot read the buffers: %s", strerror(-rc));
	if (c->nheld)
		qsort(c->held, c->nheld, sizeof(*c->held), by_time);
	rc = 0;
	for (i = 0; i < c->nheld && !rc && c->held[i].at_ns <= until; i++) {
		rc = fn(c->held[i].e, ctx);
		free(c->held[i].e);
	}
	if (i)
		memmove(c->held, c->held + i, (c->nheld - i) * sizeof(*c->held));
	c->nheld -= i;
	if (!rc && !last && bl_mono_ns() >= c->scan_ns && scan(c, err))
		bl_log(BL_LOG_WARN, "the capture goes on without new programs: %s", err->text);
	return rc;
}

uint64_t capture_lost(const struct capture *c)
{
	uint64_t lost = c->lost;
	size_t i;

	for (i = 0; i < c->ntaken; i++)
		lost += __atomic_load_n(&c->taken[i].page->slot[c->taken[i].slot].lost,
					__ATOMIC_RELAXED);
	return lost;
}

uint64_t capture_real_ns(const struct capture *c, const struct bl_capture_event *e)
{
	return e->at_ns + (uint64_t)c->real_ns;
}

struct capture_place capture_place(const struct capture *c, const struct bl_capture_event *e)
{
	struct capture_place p = { "?", "?", "?" };
	const struct target *t;

	if (e->node >= (uint32_t)c->ntargets)
		return p;
	t = &c->targets[e->node];
	p.role = role_name(t->ref->role);
	p.node = t->ref->meta.name[0] ? t->ref->meta.name : p.role;
	if (t->ref->role == BL_ROLE_HOST)
		p.port = e->key == BL_HC_LOCAL ? "lo" : e->key == BL_HC_HOLD ? "bl0d" : t->nic;
	else if (e->key < BL_SW_PORTS_MAX && t->ports[e->key][0])
		p.port = t->ports[e->key];
	else
		p.port = "(no port)";
	return p;
}

const struct bl_node_ref *capture_node(const struct capture *c, uint32_t node)
{
	return node < (uint32_t)c->ntargets ? c->targets[node].ref : NULL;
}

void capture_close(struct capture *c)
{
	size_t i;
	int k;

	if (!c)
		return;
	for (i = 0; i < c->ntaken; i++)
		give_back(c, &c->taken[i]);
	perf_buffer__free(c->pb);
	if (c->out_fd >= 0)
		close(c->out_fd);
	for (i = 0; i < c->nheld; i++)
		free(c->held[i].e);
	for (k = 0; k < c->ntargets; k++)
		free(c->targets[k].ports);
	free(c->targets);
	free(c->taken);
	free(c->held);
	free(c);
}
