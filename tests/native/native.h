/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs of BPF, compiled natively: the same sources, with maps in memory and helpers of our own
 * (tests/native/bpf/bpf_helpers.h). tests/fuzz/fuzz_switch.c and fuzz_host.c run them under the
 * sanitizers, without root; tests/prog/switch/test_switch_native.c and tests/prog/host/
 * test_host_native.c hold what the kernel makes of the same bytes against them.
 *
 * Example: native_run(bl_switch_xdp, frame, &n, 3) runs the program on a frame of n bytes that
 * arrives on interface 3, and returns its verdict; native_map_named("sw_regs")->data has the
 * registers of all ports after that.
 *
 * Locks and other CPUs, routes, redirections, and programs of tc are not covered.
 */
#ifndef BARLINE_TESTS_NATIVE_H
#define BARLINE_TESTS_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#define NATIVE_FRAME_MAX 4096

/** struct native_map - a map. */
struct native_map {
	const void *id; /* its declaration */
	const char *name;
	uint32_t type, key_size, value_size, max;
	uint32_t n; /* entries of a hash map or a queue */
	/*
	 * arrays: the values; hash maps: @n keys with their values; both aligned to 8. Maps of
	 * maps: addresses.
	 */
	uint8_t *data;
	struct native_map *next;
};

extern uint64_t native_now_ns; /* CLOCK_MONOTONIC of the programs */
extern uint32_t native_cpu;

/** native_map - the map with this declaration, which is made when it is asked for first. */
struct native_map *native_map(const void *id, const char *name, size_t type, size_t key_size,
			      size_t value_size, size_t max);
/** native_map_named - the map that programs call @name; NULL: they have not used it yet. */
struct native_map *native_map_named(const char *name);
/** native_put - writes entry @key, an index, of an array or a hash map. */
void native_put(const char *name, uint32_t key, const void *value);
/** native_get - entry @key of an array; NULL: there is no such map or entry. */
void *native_get(const char *name, uint32_t key);
/**
 * native_inner_open - gives entry @slot of a map of maps an array with one value. Returns the
 * value, which is zero, and is freed by native_clear().
 */
void *native_inner_open(const char *outer, uint32_t slot, size_t value_size);
/** native_clear - empties all maps, and forgets records in rings. */
void native_clear(void);

void *native_lookup(struct native_map *m, const void *key);
long native_update(struct native_map *m, const void *key, const void *value, uint64_t flags);
long native_delete(struct native_map *m, const void *key);
long native_push(struct native_map *m, const void *value);
long native_pop(struct native_map *m, void *value);
long native_redirect(struct native_map *m, uint32_t key, uint64_t flags);
uint32_t native_random(void);

/** native_set_const - writes a constant that the loader sets in the kernel (.rodata). */
void native_set_const(const volatile void *at, uint8_t value);
/** native_set_auth - enum bl_auth_mode of the programs; stays as it is by native_clear(). */
void native_set_auth(uint8_t mode);

struct xdp_md;
long native_adjust_tail(struct xdp_md *ctx, int by);
long native_load_bytes(struct xdp_md *ctx, uint32_t off, void *to, uint32_t n);
long native_store_bytes(struct xdp_md *ctx, uint32_t off, const void *from, uint32_t n);

/** native_ring_open - gives @slot an empty ring. */
void native_ring_open(uint32_t slot);
/* Rings: a record is kept until native_ring_take() takes it. Their room is without a limit. */
void *native_ring_reserve(void *ring, uint64_t n);
void native_ring_submit(void *record);
void native_ring_discard(void *record);
/** native_ring_take - the oldest record of entry @slot of "rings", which the caller frees, or NULL.
 */
uint8_t *native_ring_take(uint32_t slot, size_t *n);

/**
 * native_run - runs a program on a frame that arrives on interface @ifindex.
 * @p: NATIVE_FRAME_MAX bytes: the frame, and what the program has made of it
 * @n: its length
 * Returns the verdict.
 */
int native_run(int (*prog)(struct xdp_md *ctx), uint8_t *p, uint32_t *n, uint32_t ifindex);

#endif
