// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock of a node whose source is ClockBound's file, which the case writes as ClockBound does:
 * good, then not renewed, truncated while it is read, disrupted, and good again.
 */
#include "core/clock_core.h"
#include "core/clockbound_core.h"
#include "tests/net/loader/clock_record.h"

#define PATH BL_RUN_DIR "/shm0"

static unsigned int host;
static struct bl_clockbound file = { .magic = { BL_CB_MAGIC0, BL_CB_MAGIC1 },
				     .size = sizeof(file),
				     .version = 2,
				     .bound_ns = 40000,
				     .v2 = { .drift_ppb = 1000, .status = BL_CB_SYNCHRONIZED } };

static void renew(void)
{
	int fd = open(PATH, O_WRONLY | O_CREAT, 0644);
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	file.generation += 2;
	file.as_of = (struct bl_cb_time){ t.tv_sec, t.tv_nsec };
	file.void_after = (struct bl_cb_time){ t.tv_sec + 1000, t.tv_nsec };
	CHECK(fd >= 0 && pwrite(fd, &file, sizeof(file), 0) == sizeof(file), "%s", PATH);
	close(fd);
}

/* Serves until the record has that state and reason; the case's limit ends a wait in vain. */
static void until(enum bl_clock_state state, enum bl_clock_reason reason, bool renewed,
		  const char *what)
{
	struct bl_clock c;

	fprintf(stderr, "    %s\n", what);
	do {
		if (renewed)
			renew();
		rack_serve(100);
		c = clock_record(host);
	} while (c.state != state || c.reason != reason);
}

static void reads_the_file(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind != LAB_HOST || n->index != 1)
		return;
	cfg->clock_source = BL_CLOCK_CLOCKBOUND;
	cfg->clock_max_bound_us = 25000;
	snprintf(cfg->clock_socket, sizeof(cfg->clock_socket), "%s", PATH);
}

RACK_TEST(clockbound__good_stale_truncated_disrupted)
{
	struct bl_clock c;

	rack.lab.spec.hosts = 2;
	rack.tweak = reads_the_file;
	rack_open();
	host = rack_host(0);
	until(BL_CLOCK_NEVER, BL_CLOCK_CB_GONE, false, "there is no file");
	until(BL_CLOCK_GOOD, BL_CLOCK_NO_REASON, true, "it is renewed");
	c = clock_record(host);
	CHECK(c.source == BL_CLOCK_CLOCKBOUND && bl_clock_usable(&c, t_mono()), "not valid");
	CHECK(c.bound_ns >= 50000 && c.source_ns > 40000, "a bound of %llu ns",
	      (unsigned long long)c.bound_ns);
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_CB_STALE, false, "it is not renewed");
	CHECK(!truncate(PATH, 20), "truncate");
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_CB_WRONG, false, "it is truncated");
	until(BL_CLOCK_GOOD, BL_CLOCK_NO_REASON, true, "it is renewed");
	file.v2.status = BL_CB_DISRUPTED;
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_CB_DISRUPTED, true, "the clock is disrupted");
	CHECK(!unlink(PATH), "unlink");
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_CB_GONE, false, "the file is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clockbound__good_stale_truncated_disrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
