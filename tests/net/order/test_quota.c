// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One user takes as many endpoints and rings as it gets (user_endpoints, user_ring_mib). It gets
 * its quota, a sentence that names it, and another endpoint when one of its own has left. Others
 * are not affected, root has no quota.
 */
#include "tests/net/reliable/reliable.h"

#define NOBODY 65534
#define QUOTA  5
#define MIB    8

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_void_after_ms = 100000;
	cfg->dead_after_us = 10000000;
	if (n->kind == LAB_HOST) {
		cfg->user_endpoints = QUOTA;
		cfg->user_ring_mib = MIB;
	}
}

static struct bl_endpoint *ep[BL_EPS_MAX];

static int take(unsigned int k, uint32_t ring_bytes)
{
	const struct bl_options o = { .ring_bytes = ring_bytes };

	return bl_init(&ep[k], &o);
}

#define EXPECT(cond)                                                                              \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #cond, bl_strerror(NULL)); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static void many_endpoints(void)
{
	unsigned int k;

	for (k = 0; k < QUOTA; k++)
		EXPECT(!take(k, 0));
	EXPECT(take(k, 0) == -EDQUOT && strstr(bl_strerror(NULL), "user_endpoints"));
	bl_exit(ep[2]);
	EXPECT(!take(2, 0));
	EXPECT(take(k, 0) == -EDQUOT);
}

static void large_rings(void)
{
	EXPECT(!take(0, MIB << 19));
	EXPECT(!take(1, MIB << 19));
	EXPECT(take(2, BL_RING_BYTES_MIN) == -EDQUOT && strstr(bl_strerror(NULL), "user_ring_mib"));
	bl_exit(ep[1]);
	EXPECT(!take(1, MIB << 18));
	EXPECT(!take(2, MIB << 18));
}

static void more_than_the_quota(void)
{
	unsigned int k;

	for (k = 0; k < 2 * QUOTA; k++)
		EXPECT(!take(k, 2 << 20));
}

static void in_a_process(void (*fn)(void), uid_t uid)
{
	pid_t pid;
	int st;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(0));
		if (uid && (setgid(uid) || setuid(uid)))
			exit(2);
		fn();
		exit(0);
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(2);
	CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "status %x", st);
	rack_serve(50); /* its endpoints leave */
}

RACK_TEST(user__keeps_to_its_quota)
{
	char path[108];
	struct stat ns;
	int home;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	rack_open();
	home = rack_away(rack_host(0));
	CHECK(!stat("/proc/thread-self/ns/net", &ns), "%s", strerror(errno));
	rack_back(home);
	snprintf(path, sizeof(path), BL_RUN_DIR "/host-%" PRIu64 ".sock", (uint64_t)ns.st_ino);
	CHECK(!chmod(path, 0666), "%s: %s", path, strerror(errno));
	in_a_process(many_endpoints, NOBODY);
	in_a_process(large_rings, NOBODY);
	in_a_process(many_endpoints, NOBODY - 1);
	in_a_process(more_than_the_quota, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user__keeps_to_its_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
