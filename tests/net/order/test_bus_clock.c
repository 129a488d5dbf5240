// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Applications read the clock of their host: bus time never goes back, true time is within the
 * bound, and a clock that nobody keeps is void. One reader is no endpoint, the other is one.
 */
#include "tests/net/rack.h"

#include "tests/net/until.h"

#define BOUND_US   200
#define VOID_MS    2000
#define AHEAD_NS   100000 /* error of the clock of h1, within its bound */
#define SOME       200000 /* readings */
#define NOT_OPENED 1      /* no errno value that a reading returns is positive */

/* What the readers have seen. One process writes it, the test reads it. */
static struct view {
	int opened, last; /* NOT_OPENED, or what the last call has returned */
	uint64_t readings, again, backwards, outside, untrusted;
	struct bl_bus_time t; /* the last reading that was good */
} * view;

/* The clock of a lab follows the clock of the machine, so that this is true time. */
static uint64_t true_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_TAI, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void look(struct view *v, int (*read)(const void *, struct bl_bus_time *), const void *from)
{
	struct bl_bus_time t = { .size = sizeof(t) };
	uint64_t before = true_ns(), after;
	int rc = read(from, &t);

	after = true_ns();
	__atomic_store_n(&v->last, rc, __ATOMIC_RELEASE);
	v->again += rc == -EAGAIN;
	if (rc)
		return;
	v->backwards += t.bus_ns < v->t.bus_ns;
	v->outside += t.bus_ns + t.bound_ns < before || t.bus_ns - t.bound_ns > after;
	v->untrusted += t.state != BL_BUS_TRUSTED;
	v->t = t;
	__atomic_add_fetch(&v->readings, 1, __ATOMIC_RELEASE);
}

static int read_clock(const void *c, struct bl_bus_time *t)
{
	return bl_bus_clock_read(c, t);
}

static int read_endpoint(const void *ep, struct bl_bus_time *t)
{
	return bl_get_bus_time(ep, t);
}

/* Reads until it is killed. */
static void read_on(unsigned int host, bool endpoint)
{
	struct view *v = &view[endpoint];
	struct bl_bus_time wrong = { .size = 1 };
	struct bl_bus_clock *c = NULL;
	struct bl_endpoint *ep = NULL;

	rack_enter(rack_host(host));
	v->last = endpoint ? bl_init(&ep, NULL) : bl_bus_clock_open(&c, NULL);
	if (!v->last &&
	    (endpoint ? bl_get_bus_time(ep, &wrong) : bl_bus_clock_read(c, &wrong)) != -EINVAL)
		v->last = -EINVAL;
	__atomic_store_n(&v->opened, v->last, __ATOMIC_RELEASE);
	while (!v->opened)
		look(v, endpoint ? read_endpoint : read_clock, endpoint ? (void *)ep : (void *)c);
	pause();
}

static void start_readers(void)
{
	unsigned int i;

	view = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(view != MAP_FAILED, "%s", strerror(errno));
	for (i = 0; i < 2; i++) {
		view[i].opened = view[i].last = NOT_OPENED;
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		read_on(0, i);
	}
}

static int opened(unsigned int i)
{
	return __atomic_load_n(&view[i].opened, __ATOMIC_ACQUIRE);
}

static int last(unsigned int i)
{
	return __atomic_load_n(&view[i].last, __ATOMIC_ACQUIRE);
}

static uint64_t readings(unsigned int i)
{
	return __atomic_load_n(&view[i].readings, __ATOMIC_ACQUIRE);
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->dead_after_us = 10000000;
	cfg->clock_bound_us = BOUND_US;
	if (n->kind != LAB_HOST || n->index != 1)
		return;
	cfg->clock_void_after_ms = VOID_MS;
	cfg->skew_ns = AHEAD_NS;
}

static void judge(const char *when)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct view *v = &view[i];

		fprintf(stderr,
			"  %s, %s: %" PRIu64 " readings, bound %" PRIu64 " ns, %" PRIu64 " to be "
			"read "
			"again\n",
			when, i ? "endpoint" : "other process", v->readings, v->t.bound_ns,
			v->again);
		CHECK(!v->backwards, "bus time went back %" PRIu64 " times", v->backwards);
		CHECK(!v->outside, "true time was outside the bound %" PRIu64 " times", v->outside);
		CHECK(!v->untrusted, "%" PRIu64 " readings have another state", v->untrusted);
		CHECK(v->t.bound_ns >= BOUND_US * 1000ULL, "bound %" PRIu64, v->t.bound_ns);
	}
}

static bool both_say(int rc)
{
	return last(0) == rc && last(1) == rc;
}

RACK_TEST(readers__with_and_without_a_daemon)
{
	uint64_t was[2];
	unsigned int i;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	rack_open();
	start_readers();
	UNTIL("both have opened the clock", opened(0) != NOT_OPENED && opened(1) != NOT_OPENED);
	CHECK(!opened(0) && !opened(1), "they say %d and %d", opened(0), opened(1));
	UNTIL("both have read often", readings(0) >= SOME && readings(1) >= SOME);
	judge("kept");

	/* The daemon goes, and the record expires. */
	rack_close_node(rack_host(0));
	UNTIL("both say that the clock is void", both_say(-ETIME));
	for (i = 0; i < 2; i++)
		was[i] = readings(i);

	/* The next daemon keeps the same record: nobody has to open anything again. */
	rack_open_node(rack_host(0));
	UNTIL("both read on", readings(0) >= was[0] + SOME && readings(1) >= was[1] + SOME);
	judge("kept by the next daemon");
}

RACK_TEST(open__without_a_daemon)
{
	struct bl_bus_clock *c;
	int home, rc;

	rack.lab.spec.hosts = 2;
	rack.closed = ~0ULL;
	rack_open();
	home = rack_away(rack_host(0));
	rc = bl_bus_clock_open(&c, NULL);
	rack_back(home);
	CHECK(rc == -ENOENT && !c, "it says %d", rc);
	bl_bus_clock_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers__with_and_without_a_daemon),
		cmocka_unit_test(open__without_a_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
