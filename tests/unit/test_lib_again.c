// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An endpoint and its host's daemon: the goodbye that it leaves in its line. */
#include "lib_fake.h"

#include <sys/wait.h>

static struct fake a;
static struct bl_inflight *lines; /* the in-flight page as the daemon sees it */

static int up(void **state)
{
	int fd = memfd_create("lines", 0);

	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	assert_int_equal(ftruncate(fd, 4096), 0);
	lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(lines, MAP_FAILED);
	memcpy(lines, a.ep->inflight, 4096);
	assert_ptr_equal(mmap(a.ep->inflight, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), a.ep->inflight);
	close(fd);
	return 0;
}

static int down(void **state)
{
	(void)state;
	munmap(lines, 4096);
	return 0;
}

static void bl_exit__says_goodbye_in_its_line(void **state)
{
	const struct bl_msg m = msg_to(&a, "x", 1, 0);
	uint32_t slot = a.ep->slot, k;
	uint64_t last;

	(void)state;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	last = a.ep->last_ts;
	assert_true(last > FAKE_BUS);
	assert_int_equal(lines[slot].bye, 0);
	fake_free(&a);
	for (k = 0; k < BL_EPS_MAX; k++)
		assert_int_equal(lines[k].bye, k == slot ? last + 1 : 0);
}

/* It has never sent: that it left is said all the same. */
static void bl_exit__who_never_sent(void **state)
{
	uint32_t slot = a.ep->slot;

	(void)state;
	fake_free(&a);
	assert_int_equal(lines[slot].bye, 1);
}

/* Its parent is still there. */
static void bl_exit__of_a_child_says_nothing(void **state)
{
	uint32_t slot = a.ep->slot;
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		bl_exit(a.ep);
		_exit(lines[slot].bye != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(lines[slot].bye, 0);
	fake_free(&a);
	assert_int_equal(lines[slot].bye, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_exit__says_goodbye_in_its_line, up, down),
		cmocka_unit_test_setup_teardown(bl_exit__who_never_sent, up, down),
		cmocka_unit_test_setup_teardown(bl_exit__of_a_child_says_nothing, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
