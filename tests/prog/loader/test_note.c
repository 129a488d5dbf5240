// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/order/note.c: what is frozen can be read by whoever has its descriptor, and written by the
 * program bl_note alone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>

#include "loader/order/note.h"

#define PAGE 4096

static int clock_map, page_map, failures_map, note;
static struct bl_err err;

static int make_map(const char *name, uint32_t size)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), size, 1, &o);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	(void)state;
	clock_map = make_map("clock", sizeof(struct bl_clock));
	page_map = make_map("host_page", sizeof(struct bl_host_page));
	failures_map = make_map("failures", sizeof(struct bl_failures));
	note = bl_note_open(clock_map, page_map, failures_map, &err);
	if (note < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(note);
	close(page_map);
	close(failures_map);
	close(clock_map);
	return 0;
}

static void *map_page(int fd, int prot)
{
	return mmap(NULL, PAGE, prot, MAP_SHARED, fd, 0);
}

static void expect_frozen(int fd, uint32_t size)
{
	static const char zero_value[PAGE];
	void *p = map_page(fd, PROT_READ);
	uint32_t zero = 0;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(size <= PAGE);
	assert_ptr_equal(map_page(fd, PROT_READ | PROT_WRITE), MAP_FAILED);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(map_page(fd, PROT_WRITE), MAP_FAILED);
	assert_int_equal(mprotect(p, PAGE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(bpf_map_update_elem(fd, &zero, zero_value, BPF_ANY), -EPERM);
	munmap(p, PAGE);
}

static void freeze__refuses_every_writer(void **state)
{
	void *before = map_page(page_map, PROT_READ); /* a mapping that is older than that */

	(void)state;
	assert_ptr_not_equal(before, MAP_FAILED);
	assert_int_equal(bl_note_freeze(clock_map, "clock", &err), 0);
	assert_int_equal(bl_note_freeze(page_map, "host_page", &err), 0);
	expect_frozen(clock_map, sizeof(struct bl_clock));
	expect_frozen(page_map, sizeof(struct bl_host_page));
	assert_int_equal(mprotect(before, PAGE, PROT_READ | PROT_WRITE), -1);
	/* the next daemon does the same again */
	assert_int_equal(bl_note_freeze(page_map, "host_page", &err), 0);
	munmap(before, PAGE);
}

/* Somebody who can write already would go on writing. */
static void freeze__fails_while_somebody_writes(void **state)
{
	void *p = map_page(page_map, PROT_READ | PROT_WRITE);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(bl_note_freeze(page_map, "host_page", &err), -EBUSY);
	munmap(p, PAGE);
	assert_int_equal(bl_note_freeze(page_map, "host_page", &err), 0);
}

static void note__each_kind(void **state)
{
	struct bl_note_arg a = { .kind = BL_NOTE_CLOCK };
	const struct bl_host_page *page;
	const struct bl_failures *f;
	struct bl_host_page want = { 0 };
	const struct bl_clock *c;

	(void)state;
	assert_int_equal(bl_note_freeze(clock_map, "clock", &err), 0);
	assert_int_equal(bl_note_freeze(page_map, "host_page", &err), 0);
	c = map_page(clock_map, PROT_READ);
	page = map_page(page_map, PROT_READ);
	assert_ptr_not_equal(c, MAP_FAILED);
	assert_ptr_not_equal(page, MAP_FAILED);
	memset(&a.clock, 0x5a, sizeof(a.clock));
	a.clock.seq = 8;
	a.clock.flags = BL_CLOCK_VALID;
	assert_int_equal(bl_note(note, &a), 0);
	assert_memory_equal(c, &a.clock, sizeof(*c));
	assert_memory_equal(page, &want, sizeof(want));
	a = (struct bl_note_arg){ .kind = BL_NOTE_EPS, .lines = 7, .active = 3 };
	assert_int_equal(bl_note(note, &a), 0);
	want.eps_lines = 7;
	want.eps_active = 3;
	a = (struct bl_note_arg){ .kind = BL_NOTE_WORD,
				  .slot = 63,
				  .word = { 100, 90, 80, 3, 70 } };
	assert_int_equal(bl_note(note, &a), 0);
	want.word[63] = a.word;
	assert_memory_equal(page, &want, sizeof(want));
	f = mmap(NULL, (sizeof(*f) + 4095) & ~4095UL, PROT_READ, MAP_SHARED, failures_map, 0);
	assert_ptr_not_equal(f, MAP_FAILED);
	a = (struct bl_note_arg){ .kind = BL_NOTE_FAILURE,
				  .failure = { .number = BL_FAILS_MAX + 3, .ts = 77, .port = 5 } };
	assert_int_equal(bl_note(note, &a), 0);
	assert_int_equal(f->last, BL_FAILS_MAX + 3);
	assert_memory_equal(&f->ring[3], &a.failure, sizeof(a.failure));
	a.kind = 99;
	assert_int_equal(bl_note(note, &a), -EINVAL);
	assert_memory_equal(page, &want, sizeof(want));
	munmap((void *)(uintptr_t)c, PAGE);
	munmap((void *)(uintptr_t)page, PAGE);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(freeze__refuses_every_writer),
		CASE(freeze__fails_while_somebody_writes),
		CASE(note__each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
