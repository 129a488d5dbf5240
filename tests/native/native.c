// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See native.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "tests/native/native.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define MAPS     96
#define RINGS    64
#define HEADROOM 256
#define AREA     (HEADROOM + NATIVE_FRAME_MAX + 8)

uint64_t native_now_ns;
uint32_t native_cpu;

static struct native_map maps[MAPS];
static unsigned int nmaps;
static struct native_map *inner_maps; /* those in maps of maps */

static void need(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "tests/native: %s\n", what);
	abort();
}

/* ---- maps ---- */

static int is_hash(const struct native_map *m)
{
	return m->type == BPF_MAP_TYPE_HASH || m->type == BPF_MAP_TYPE_LRU_HASH;
}

/* A map of maps: each value is the address of a map or of a ring, or NULL. */
static int is_outer(const struct native_map *m)
{
	return m->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;
}

/* Bytes from one entry to the next: values are aligned to 8, as the kernel's. */
static size_t step_of(const struct native_map *m)
{
	return ((is_hash(m) ? m->key_size + 7u : 0) & ~7u) + ((m->value_size + 7u) & ~7u);
}

/* Where the value is in an entry. */
static size_t value_at(const struct native_map *m)
{
	return (is_hash(m) ? m->key_size + 7u : 0) & ~7u;
}

static size_t bytes_of(const struct native_map *m)
{
	return step_of(m) * m->max;
}

struct native_map *native_map(const void *id, const char *name, size_t type, size_t key_size,
			      size_t value_size, size_t max)
{
	struct native_map *m;
	unsigned int i;

	for (i = 0; i < nmaps; i++)
		if (maps[i].id == id)
			return &maps[i];
	need(nmaps < MAPS, "more maps than there is room for");
	m = &maps[nmaps++];
	*m = (struct native_map){ .id = id,
				  .name = name,
				  .type = (uint32_t)type,
				  .key_size = (uint32_t)key_size,
				  .value_size = (uint32_t)value_size,
				  .max = (uint32_t)max };
	if (type == BPF_MAP_TYPE_RINGBUF)
		return m;
	if (is_outer(m))
		m->value_size = sizeof(void *);
	m->data = mmap(NULL, bytes_of(m) + 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(m->data != MAP_FAILED, "no memory for a map");
	return m;
}

struct native_map *native_map_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < nmaps; i++)
		if (!strcmp(maps[i].name, name))
			return &maps[i];
	return NULL;
}

static uint8_t *hash_at(struct native_map *m, const void *key)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (!memcmp(m->data + i * step_of(m), key, m->key_size))
			return m->data + i * step_of(m);
	return NULL;
}

void *native_lookup(struct native_map *m, const void *key)
{
	uint32_t k;
	uint8_t *at;

	if (is_hash(m)) {
		at = hash_at(m, key);
		return at ? at + value_at(m) : NULL;
	}
	memcpy(&k, key, sizeof(k));
	if (k >= m->max)
		return NULL;
	at = m->data + k * step_of(m);
	return is_outer(m) ? *(void **)at : at;
}

long native_update(struct native_map *m, const void *key, const void *value, uint64_t flags)
{
	uint8_t *at;

	if (!is_hash(m)) {
		at = native_lookup(m, key);
		if (!at || flags == BPF_NOEXIST)
			return at ? -EEXIST : -E2BIG;
		memcpy(at, value, m->value_size);
		return 0;
	}
	at = hash_at(m, key);
	if ((at && flags == BPF_NOEXIST) || (!at && flags == BPF_EXIST))
		return at ? -EEXIST : -ENOENT;
	if (!at) {
		if (m->n == m->max)
			return -E2BIG;
		at = m->data + m->n++ * step_of(m);
		memcpy(at, key, m->key_size);
	}
	memcpy(at + value_at(m), value, m->value_size);
	return 0;
}

long native_delete(struct native_map *m, const void *key)
{
	uint8_t *at = is_hash(m) ? hash_at(m, key) : NULL;

	if (!at)
		return -ENOENT;
	memmove(at, m->data + --m->n * step_of(m), step_of(m));
	return 0;
}

long native_push(struct native_map *m, const void *value)
{
	if (m->n == m->max)
		return -E2BIG;
	memcpy(m->data + m->n++ * step_of(m), value, m->value_size);
	return 0;
}

long native_pop(struct native_map *m, void *value)
{
	if (!m->n)
		return -ENOENT;
	memcpy(value, m->data, m->value_size);
	m->n--;
	memmove(m->data, m->data + step_of(m), m->n * step_of(m));
	return 0;
}

void native_put(const char *name, uint32_t key, const void *value)
{
	struct native_map *m = native_map_named(name);

	need(m != NULL, name);
	need(!native_update(m, &key, value, BPF_ANY), "an entry that does not exist");
}

void *native_get(const char *name, uint32_t key)
{
	struct native_map *m = native_map_named(name);

	return m && !is_hash(m) ? native_lookup(m, &key) : NULL;
}

/* Sets what a program finds in entry @slot of a map of maps. */
static void set_inner(const char *outer, uint32_t slot, void *inner)
{
	struct native_map *m = native_map_named(outer);

	need(m && is_outer(m) && slot < m->max, outer);
	memcpy(m->data + slot * step_of(m), &inner, sizeof(inner));
}

void *native_inner_open(const char *outer, uint32_t slot, size_t value_size)
{
	/* The value is a separate allocation, so that ASan sees its end. */
	struct native_map *m = calloc(1, sizeof(*m));
	uint8_t *value = calloc(1, value_size);

	need(m && value, "out of memory");
	*m = (struct native_map){ .name = outer,
				  .type = BPF_MAP_TYPE_ARRAY,
				  .key_size = sizeof(uint32_t),
				  .value_size = (uint32_t)value_size,
				  .max = 1,
				  .data = value };
	m->next = inner_maps;
	inner_maps = m;
	set_inner(outer, slot, m);
	return value;
}

static void close_inner(void)
{
	struct native_map *m;

	while ((m = inner_maps)) {
		inner_maps = m->next;
		free(m->data);
		free(m);
	}
}

/* Where frames can be sent is said by the entries of the map, whose first field is an interface. */
long native_redirect(struct native_map *m, uint32_t key, uint64_t flags)
{
	uint32_t ifindex = 0;

	if (flags & BPF_F_BROADCAST)
		return XDP_REDIRECT;
	if (key < m->max)
		memcpy(&ifindex, m->data + key * step_of(m), sizeof(ifindex));
	return ifindex ? XDP_REDIRECT : (long)(flags & 3);
}

void native_set_const(const volatile void *at, uint8_t value)
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)at & ~(size - 1));

	need(!mprotect(page, size, PROT_READ | PROT_WRITE), "a constant that cannot be set");
	*(volatile uint8_t *)(uintptr_t)at = value;
}

uint32_t native_random(void)
{
	static uint32_t state = 1;

	return state = state * 1664525u + 1013904223u;
}

/* ---- rings ---- */

struct record {
	struct record *next;
	struct ring *ring;
	size_t n;
	_Alignas(8) uint8_t p[];
};

static struct ring {
	struct record *first, **last;
} rings[RINGS];

void *native_ring_reserve(void *ring, uint64_t n)
{
	struct record *r = malloc(sizeof(*r) + n);

	need(r != NULL, "out of memory");
	*r = (struct record){ .ring = ring, .n = n };
	memset(r->p, 0, n);
	return r->p;
}

static struct record *record_of(void *p)
{
	return (struct record *)((char *)p - offsetof(struct record, p));
}

void native_ring_submit(void *p)
{
	struct record *r = record_of(p);

	*r->ring->last = r;
	r->ring->last = &r->next;
}

void native_ring_discard(void *p)
{
	free(record_of(p));
}

uint8_t *native_ring_take(uint32_t slot, size_t *n)
{
	struct ring *ring = &rings[slot];
	struct record *r = ring->last ? ring->first : NULL;
	uint8_t *copy;

	if (!r)
		return NULL;
	ring->first = r->next;
	if (!ring->first)
		ring->last = &ring->first;
	copy = malloc(r->n + 1);
	need(copy != NULL, "out of memory");
	memcpy(copy, r->p, r->n);
	*n = r->n;
	free(r);
	return copy;
}

void native_ring_open(uint32_t slot)
{
	rings[slot] = (struct ring){ .last = &rings[slot].first };
	set_inner("rings", slot, &rings[slot]);
}

void native_clear(void)
{
	unsigned int i;
	size_t n;

	for (i = 0; i < nmaps; i++) {
		if (maps[i].data)
			memset(maps[i].data, 0, is_hash(&maps[i]) ? 1 : bytes_of(&maps[i]));
		maps[i].n = 0;
	}
	close_inner();
	for (i = 0; i < RINGS; i++) {
		uint8_t *p;

		while ((p = native_ring_take(i, &n)))
			free(p);
		rings[i] = (struct ring){ 0 };
	}
}

/* ---- frames ---- */

/* Below 4 GB, since struct xdp_md has 32 bits for an address. */
static uint8_t *area;

static uint8_t *end_of(uint8_t *frame)
{
	return frame + AREA;
}

static void open_area(void)
{
	if (area)
		return;
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		    0);
	need(area != MAP_FAILED, "no memory below 2 GB");
}

/* What is not the frame must not be read. */
static void fence_frame(const struct xdp_md *ctx)
{
	uint8_t *from = (uint8_t *)(uintptr_t)ctx->data, *to = (uint8_t *)(uintptr_t)ctx->data_end;

	ASAN_UNPOISON_MEMORY_REGION(area, AREA);
	ASAN_POISON_MEMORY_REGION(area, (size_t)(from - area) & ~7UL);
	ASAN_POISON_MEMORY_REGION(to, (size_t)(end_of(area) - to));
}

long native_adjust_tail(struct xdp_md *ctx, int by)
{
	uint32_t n = ctx->data_end - ctx->data;

	if ((int)n + by < 14 || n + (uint32_t)by > NATIVE_FRAME_MAX - 512)
		return -EINVAL;
	ctx->data_end += (uint32_t)by;
	fence_frame(ctx);
	if (by > 0)
		memset((void *)(uintptr_t)(ctx->data_end - (uint32_t)by), 0, (size_t)by);
	return 0;
}

long native_load_bytes(struct xdp_md *ctx, uint32_t off, void *to, uint32_t n)
{
	if ((uint64_t)off + n > ctx->data_end - ctx->data)
		return -EINVAL;
	memcpy(to, (void *)(uintptr_t)(ctx->data + off), n);
	return 0;
}

long native_store_bytes(struct xdp_md *ctx, uint32_t off, const void *from, uint32_t n)
{
	if ((uint64_t)off + n > ctx->data_end - ctx->data)
		return -EINVAL;
	memcpy((void *)(uintptr_t)(ctx->data + off), from, n);
	return 0;
}

int native_run(int (*prog)(struct xdp_md *ctx), uint8_t *p, uint32_t *n, uint32_t ifindex)
{
	struct xdp_md ctx = { .ingress_ifindex = ifindex };
	int verdict;

	open_area();
	ASAN_UNPOISON_MEMORY_REGION(area, AREA);
	/* as drivers do (NET_IP_ALIGN): the IP header is aligned */
	ctx.data = (uint32_t)(uintptr_t)(area + HEADROOM + 2);
	ctx.data_end = ctx.data + *n;
	ctx.data_meta = ctx.data;
	memcpy((void *)(uintptr_t)ctx.data, p, *n);
	fence_frame(&ctx);
	verdict = prog(&ctx);
	*n = ctx.data_end - ctx.data;
	memcpy(p, (void *)(uintptr_t)ctx.data, *n);
	return verdict;
}
