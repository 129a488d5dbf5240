// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/queue/port_core.h: strict priority by a word of bits. No bit is lost between the CPU that
 * puts frames and the one that empties the queue.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>

#include "core/queue/port_core.h"

static void bl_class_first__all_words(void **state)
{
	uint32_t busy, want;

	(void)state;
	for (busy = 1; busy < 1u << BL_CL_COUNT; busy++) {
		for (want = 0; !(busy >> want & 1); want++)
			;
		assert_int_equal(bl_busy_first(busy), want);
	}
}

static void bl_busy__table(void **state)
{
	static const struct {
		uint64_t busy;
		uint32_t cls, frames;
		uint64_t set, clear;
	} t[] = {
		{ 0, 0, 0, 0x001, 0 },
		{ 0, 8, 0, 0x100, 0 },
		{ 0x081, 7, 0, 0x081, 0x001 },
		{ 0x081, 7, 1, 0x081, 0x081 }, /* A frame arrived in between. */
		{ 0x081, 0, 0, 0x081, 0x080 },
		{ 0x1ff, 4, 0, 0x1ff, 0x1ef },
		{ 0x1ff, 4, 512, 0x1ff, 0x1ff },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_queue q = { .head = 0xfffffff0u, .tail = 0xfffffff0u + t[i].frames };
		__u64 set = t[i].busy, clear = t[i].busy;

		bl_busy_set(&set, t[i].cls);
		assert_int_equal(set, t[i].set);
		bl_busy_clear(&clear, t[i].cls, &q);
		assert_int_equal(clear, t[i].clear);
	}
}

static void bl_port_again__table(void **state)
{
	__u64 busy = 0;

	(void)state;
	assert_int_equal(bl_port_next_ns(&busy, 1234), BL_DUE_NEVER);
	busy = 1ULL << BL_CL_UNSCHED;
	assert_int_equal(bl_port_next_ns(&busy, 1234), 1234);
	assert_int_equal(bl_port_next_ns(&busy, 0), 0);
}

#define FRAMES 300000
static struct bl_queue q; /* Only tail and head are used: the thread puts, and the pacer takes. */
static __u64 busy;
static int over;

static void *produce_frames(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < FRAMES; i++) {
		while (bl_ring_len(&q) >= 2)
			sched_yield();
		BL_WRITE_ONCE(q.tail, q.tail + 1);
		bl_busy_set(&busy, BL_CL_DATA);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void bl_busy__no_bit_is_lost(void **state)
{
	pthread_t t;
	int end;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, produce_frames, NULL), 0);
	do {
		end = __atomic_load_n(&over, __ATOMIC_SEQ_CST);
		while (BL_READ_ONCE(busy)) {
			assert_int_equal(bl_busy_first(BL_READ_ONCE(busy)), BL_CL_DATA);
			if (bl_ring_len(&q))
				BL_WRITE_ONCE(q.head, q.head + 1);
			if (!bl_ring_len(&q))
				bl_busy_clear(&busy, BL_CL_DATA, &q);
		}
		sched_yield();
	} while (!end);
	pthread_join(t, NULL);
	assert_int_equal(q.tail, FRAMES);
	assert_int_equal(q.head, FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_class_first__all_words),
		cmocka_unit_test(bl_busy__table),
		cmocka_unit_test(bl_port_again__table),
		cmocka_unit_test(bl_busy__no_bit_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
