// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/bus_clock.c: what applications read of a clock record, also while it is written, and the
 * daemon's answers when they ask for it.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/clock_core.h"
#include "lib/bus_clock.h"
#include "maps/host_abi.h"

#define SEC   1000000000ULL
#define NOW   1764000000000000000ULL
#define TURNS 200000

static uint64_t mono_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/* A record that is valid for an hour. */
static struct bl_clock record(void)
{
	uint64_t mono = mono_now();
	struct bl_clock c = { .seq = 2,
			      .flags = BL_CLOCK_VALID,
			      .as_of_ns = mono,
			      .void_after_ns = mono + 3600 * SEC,
			      .bound_ns = 50000,
			      .tai_offset_s = 37,
			      .source = BL_CLOCK_KERNEL,
			      .state = BL_CLOCK_GOOD };

	bl_clock_start(&c, mono, NOW);
	return c;
}

static void bus_time__states(void **state)
{
	static const struct {
		uint32_t source, is, want;
	} t[] = {
		{ BL_CLOCK_KERNEL, BL_CLOCK_GOOD, BL_BUS_SYNCED },
		{ BL_CLOCK_KERNEL, BL_CLOCK_HOLDOVER, BL_BUS_HOLDOVER },
		{ BL_CLOCK_TRUST, BL_CLOCK_GOOD, BL_BUS_TRUSTED },
		{ BL_CLOCK_SOURCE_NONE, BL_CLOCK_GOOD, BL_BUS_SYNCED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_bus_time r = { .size = sizeof(r) };
		struct bl_clock c = record();

		c.source = t[i].source;
		c.state = t[i].is;
		assert_int_equal(bl_bus_time_of(&c, &r), 0);
		assert_int_equal(r.state, t[i].want);
		assert_int_equal(r.tai_offset_s, 37);
		assert_int_equal(r.void_after_ns, c.void_after_ns);
		assert_int_equal(r.bus_ns, NOW + (r.mono_ns - c.as_of_ns));
	}
}

static void bus_time__bound_grows(void **state)
{
	struct bl_bus_time r = { .size = sizeof(r) };
	struct bl_clock c = record();

	(void)state;
	c.as_of_ns -= 10 * SEC;
	c.drift_ppb = 100000;
	assert_int_equal(bl_bus_time_of(&c, &r), 0);
	/* 10 s of 100 ppm, rounded by less than 1 ppm */
	assert_in_range(r.bound_ns, 50000 + 999900,
			50000 + 1000000 + (r.mono_ns - c.as_of_ns) / 1000);
}

static void bus_time__refused(void **state)
{
	struct bl_bus_time r = { .size = sizeof(r) - 1 };
	struct bl_clock c = record();

	(void)state;
	assert_int_equal(bl_bus_time_of(&c, &r), -EINVAL);
	r.size = sizeof(r);
	c.seq++;
	assert_int_equal(bl_bus_time_of(&c, &r), -EAGAIN);
	c.seq++;
	c.void_after_ns = mono_now();
	assert_int_equal(bl_bus_time_of(&c, &r), -ETIME);
	assert_int_equal(r.state, BL_BUS_VOID);
	assert_int_equal(r.bus_ns, 0);
	assert_true(r.bound_ns == UINT64_MAX && r.mono_ns >= c.void_after_ns);
	c = record();
	c.flags = 0;
	assert_int_equal(bl_bus_time_of(&c, &r), -ETIME);
}

static struct bl_clock shared;
static int done;

/* How many of the next readings of the monotonic clock come while the daemon writes. */
static int writes;
static int tai; /* what it has written last */

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	if (writes && id == CLOCK_MONOTONIC) {
		writes--;
		shared.seq += 2;
		shared.tai_offset_s = ++tai;
	}
	return __real_clock_gettime(id, t);
}

/* The record is another one by the time at which the clock is read. */
static void bus_time__written_meanwhile(void **state)
{
	struct bl_bus_time r = { .size = sizeof(r) };
	int k;

	(void)state;
	for (k = 0; k < BL_CLOCK_TRIES; k++) {
		shared = record();
		tai = shared.tai_offset_s;
		writes = k;
		assert_int_equal(bl_bus_time_of(&shared, &r), 0);
		assert_int_equal(r.tai_offset_s, 37 + k);
	}
	writes = BL_CLOCK_TRIES;
	assert_int_equal(bl_bus_time_of(&shared, &r), -EAGAIN);
	assert_int_equal(writes, 0);
}

/* Writes records whose fields belong together: the bound is the offset from UTC in microseconds. */
static void *write_on(void *arg)
{
	int32_t k;

	(void)arg;
	for (k = 1; !__atomic_load_n(&done, __ATOMIC_ACQUIRE); k = k % 1000000 + 1) {
		BL_WRITE_ONCE(shared.seq, shared.seq + 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		shared.seg[0] = shared.seg[1];
		shared.bound_ns = (uint64_t)k * 1000;
		shared.tai_offset_s = k;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		BL_WRITE_ONCE(shared.seq, shared.seq + 1);
	}
	return NULL;
}

static void bus_time__is_never_torn(void **state)
{
	unsigned int good = 0, other = 0;
	int32_t before = 0;
	pthread_t writer;

	(void)state;
	shared = record();
	shared.drift_ppb = 0;
	assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
	while (good < TURNS || other < 2) {
		struct bl_bus_time r = { .size = sizeof(r) };
		int rc = bl_bus_time_of(&shared, &r);

		if (rc == -EAGAIN)
			continue;
		assert_int_equal(rc, 0);
		if (r.tai_offset_s != 37)
			assert_int_equal(r.bound_ns, (uint64_t)r.tai_offset_s * 1000);
		other += r.tai_offset_s != before;
		before = r.tai_offset_s;
		good++;
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pthread_join(writer, NULL);
}

/* Answers one request as @rep says, without a descriptor. */
static void *answer(void *arg)
{
	const struct bl_attach_rep *rep = arg;
	struct bl_attach_req q;
	int at = *(const int *)rep->message, s = accept(at, NULL, NULL);

	if (recv(s, &q, sizeof(q), 0) == sizeof(q) && q.magic == BL_SOCK_CLOCK)
		send(s, rep, sizeof(*rep), MSG_NOSIGNAL);
	close(s);
	return NULL;
}

static void open__what_the_daemon_says(void **state)
{
	static const struct {
		struct bl_attach_rep rep;
		int want;
	} t[] = {
		{ { .magic = BL_SOCK_MAGIC, .error = EACCES }, -EACCES },
		{ { .magic = BL_SOCK_MAGIC }, -EPROTO }, /* no descriptor */
		{ { .magic = BL_SOCK_HINTS }, -EPROTO },
	};
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct bl_bus_clock *c;
	size_t i;

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/barline-bus-clock-%d", (int)getpid());
	assert_int_equal(bl_bus_clock_open(&c, at.sun_path), -ENOENT);
	assert_null(c);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_attach_rep rep = t[i].rep;
		int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		pthread_t daemon;

		unlink(at.sun_path);
		assert_int_equal(bind(s, (void *)&at, sizeof(at)), 0);
		assert_int_equal(listen(s, 1), 0);
		memcpy(rep.message, &s, sizeof(s));
		assert_int_equal(pthread_create(&daemon, NULL, answer, &rep), 0);
		assert_int_equal(bl_bus_clock_open(&c, at.sun_path), t[i].want);
		assert_null(c);
		pthread_join(daemon, NULL);
		close(s);
	}
	unlink(at.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bus_time__states),
		cmocka_unit_test(bus_time__bound_grows),
		cmocka_unit_test(bus_time__refused),
		cmocka_unit_test(bus_time__written_meanwhile),
		cmocka_unit_test(bus_time__is_never_torn),
		cmocka_unit_test(open__what_the_daemon_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
