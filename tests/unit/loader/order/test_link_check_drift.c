// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A switch and its hosts, one of whose clocks drifts away or is set wrong, while its bound stays as
 * it was: each node judges the others by the beacons that it gets (loader/order/link_check_core.h,
 * core/order/skew_core.h). Bodies of beacons are sent every 10 ms; samples and records have phases
 * of their own, as daemons have.
 */
#include "tests/unit/unit.h"
#include "loader/order/link_check_core.h"

#define US       1000LL
#define BOUND    (50 * US)
#define HOSTS    5
#define SWITCH   HOSTS /* index of the switch */
#define STEP_MS  10
#define START_NS 1000000000000ULL
#define READ_NS  1000000 /* samples are taken when the bodies have arrived */

/* What happens in a run. */
struct course {
	int hosts;
	int wrong;   /* the node whose clock is wrong */
	int64_t ppb; /* how fast it drifts */
	int64_t far; /* and how far, ns */
	int64_t in;  /* true delay from the switch to a host, ns */
	int64_t out; /* the same from a host to the switch; that of host 1 is the other way round */
	int64_t jitter; /* and by how much it varies, ns */
	long begin_ms, end_ms;
};

struct machine {
	struct bl_check check;
	struct bl_link link[HOSTS]; /* a host has one */
	uint64_t proven;            /* as its record has it */
	long sample_at, record_at;  /* phases, ms */
};

static struct machine m[HOSTS + 1];

static int64_t error_of(const struct course *c, int node, long ms)
{
	int64_t e = ms < c->begin_ms ? 0 : (ms - c->begin_ms) * c->ppb / 1000;

	if (node != c->wrong)
		return 0;
	return c->ppb > 0 ? (e < c->far ? e : c->far) : (e > -c->far ? e : -c->far);
}

static void send_body(struct bl_link *to, struct bl_link *from, uint64_t sent, uint64_t now)
{
	bl_skew_add(to, (int64_t)(now - sent), now);
	to->heard_ns = now;
	to->bound_ns = BOUND; /* without what is proven, as beacons say it */
	to->echo_ns = bl_skew_echo(bl_skew_least(from, sent));
}

static struct bl_check_sample sample_of(const struct bl_link *l, uint32_t node, uint64_t now)
{
	return (struct bl_check_sample){ .node = node,
					 .in = bl_skew_least(l, now),
					 .out = bl_skew_out(l->echo_ns),
					 .bound = l->bound_ns };
}

static void begin(const struct course *c, struct rnd *r)
{
	int i, k;

	memset(m, 0, sizeof(m));
	for (i = 0; i <= SWITCH; i++) {
		for (k = 0; k < HOSTS; k++) {
			m[i].link[k].least_ns[0] = m[i].link[k].least_ns[1] = BL_DELAY_NONE;
			m[i].link[k].echo_ns = BL_ECHO_NONE;
		}
		m[i].sample_at = (long)(rnd64(r) % 25) * STEP_MS;
		m[i].record_at = (long)(rnd64(r) % 25) * STEP_MS;
	}
	(void)c;
}

/* What all nodes do at @ms. */
static void advance(const struct course *c, struct rnd *r, long ms)
{
	uint64_t t = START_NS + (uint64_t)ms * 1000000;
	uint64_t at = t + (uint64_t)error_of(c, SWITCH, ms);
	struct bl_check_sample s[HOSTS];
	int i;

	for (i = 0; i < c->hosts; i++) {
		uint64_t here = t + (uint64_t)error_of(c, i, ms);
		int64_t in = (i == 1 ? c->out : c->in), out = (i == 1 ? c->in : c->out);

		in += c->jitter ? (int64_t)(rnd64(r) % (uint64_t)c->jitter) : 0;
		out += c->jitter ? (int64_t)(rnd64(r) % (uint64_t)c->jitter) : 0;
		send_body(&m[i].link[0], &m[SWITCH].link[i], at, here + (uint64_t)in);
		send_body(&m[SWITCH].link[i], &m[i].link[0], here, at + (uint64_t)out);
	}
	for (i = 0; i <= SWITCH; i++)
		if (ms % 250 == m[i].record_at)
			m[i].proven = m[i].check.proven;
	for (i = 0; i < c->hosts; i++) {
		if (ms % 250 != m[i].sample_at)
			continue;
		s[0] = sample_of(&m[i].link[0], 100, t + READ_NS + (uint64_t)error_of(c, i, ms));
		bl_check_step(&m[i].check, s, 1, BOUND, 1, (uint64_t)ms / 1000);
	}
	if (ms % 250 != m[SWITCH].sample_at)
		return;
	for (i = 0; i < c->hosts; i++)
		s[i] = sample_of(&m[SWITCH].link[i], 10 + (uint32_t)i, at + READ_NS);
	bl_check_step(&m[SWITCH].check, s, (uint32_t)c->hosts, BOUND, 0, (uint64_t)ms / 1000);
}

static void expect_covered(const struct course *c, long ms)
{
	int64_t e = error_of(c, c->wrong, ms);
	uint64_t published = BOUND + m[c->wrong].proven;

	if (m[c->wrong].proven && published >= (uint64_t)(e < 0 ? -e : e))
		return;
	fail_msg("%d hosts, %lld ppb, delays %lld and %lld ns, at %ld ms: node %d is wrong by %lld "
		 "ns and publishes %llu ns",
		 c->hosts, (long long)c->ppb, (long long)c->in, (long long)c->out, ms, c->wrong,
		 (long long)e, (unsigned long long)published);
}

static void expect_verdict(const struct course *c, long ms, int node, int port, uint32_t want)
{
	uint32_t got = m[node].check.port[port].verdict;

	if (got == want)
		return;
	fail_msg("%d hosts, %lld ppb, delays %lld and %lld ns, at %ld ms: node %d, port %d: "
		 "verdict "
		 "%u, not %u",
		 c->hosts, (long long)c->ppb, (long long)c->in, (long long)c->out, ms, node, port,
		 got, want);
}

/* Whoever is right is not named by another one who is, nor by the switch, and is not widened. */
static void expect_right(const struct course *c, long ms)
{
	int i;

	for (i = 0; i < c->hosts; i++) {
		uint32_t v = m[SWITCH].check.port[i].verdict;

		if (c->wrong == SWITCH && v == BL_VERDICT_OFF)
			fail_msg("at %ld ms: the wrong switch names host %d", ms, i);
		if (c->wrong == SWITCH || c->wrong == i)
			continue;
		if (ms > 1000) {
			expect_verdict(c, ms, SWITCH, i, BL_VERDICT_GOOD);
			expect_verdict(c, ms, i, 0, BL_VERDICT_GOOD);
		}
		assert_int_equal(m[i].check.proven, 0);
	}
	if (c->wrong != SWITCH)
		assert_int_equal(m[SWITCH].check.proven, 0);
}

/*
 * From the moment on at which delays can show it, and a few seconds, the wrong clock is named by
 * all who see it, knows itself, and publishes what it is off, all the time.
 */
static void run(const struct course *c, struct rnd *r)
{
	int64_t rate = c->ppb < 0 ? -c->ppb : c->ppb, most = c->in > c->out ? c->in : c->out;
	long seen = c->begin_ms + (long)((2 * BOUND + most + c->jitter / 8) * 1000 / rate) + 4500;
	/* which of the two it is, is certain once what others allow is too far away for it */
	long sure = seen + (long)((most + c->jitter) * 1000 / rate), ms;
	int i;

	begin(c, r);
	for (ms = 0; ms < c->end_ms; ms += STEP_MS) {
		advance(c, r, ms);
		expect_right(c, ms);
		if (ms < seen)
			continue;
		expect_covered(c, ms);
		for (i = 0; i < c->hosts; i++) {
			if (c->wrong == SWITCH) {
				expect_verdict(c, ms, SWITCH, i, BL_VERDICT_SELF);
				expect_verdict(c, ms, i, 0, BL_VERDICT_EITHER);
				assert_int_not_equal(m[i].check.proven, 0);
			} else if (c->wrong == i) {
				if (ms >= sure ||
				    m[SWITCH].check.port[i].verdict != BL_VERDICT_EITHER)
					expect_verdict(c, ms, SWITCH, i, BL_VERDICT_OFF);
				expect_verdict(c, ms, i, 0, BL_VERDICT_EITHER);
			}
		}
	}
	assert_true(sure < c->end_ms - 10000);
}

/* Delays that are alike, and such that one way takes most of the time. */
static const struct {
	int64_t in, out, jitter;
} delays[] = {
	{ 2 * US, 2 * US, 0 },  { 20 * US, 20 * US, 0 },       { 5 * US, 90 * US, 0 },
	{ 90 * US, 5 * US, 0 }, { 10 * US, 10 * US, 30 * US }, { 300 * US, 300 * US, 200 * US },
};
static const int64_t rates[] = { 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000 };

static void drift_all(int wrong, int hosts, const char *seed)
{
	struct rnd r = rnd_seeded(seed);
	size_t i, k;
	int sign;

	for (i = 0; i < sizeof(delays) / sizeof(*delays); i++)
		for (k = 0; k < sizeof(rates) / sizeof(*rates); k++)
			for (sign = -1; sign <= 1; sign += 2) {
				struct course c = { .hosts = hosts,
						    .wrong = wrong,
						    .ppb = sign * rates[k],
						    .far = 1LL << 50,
						    .in = delays[i].in,
						    .out = delays[i].out,
						    .jitter = delays[i].jitter,
						    .begin_ms = 5000 };
				int64_t most = c.in + c.out + c.jitter + 2 * BOUND;

				/* until it is twice as far off as can be seen */
				c.end_ms = 30000 + (long)(2 * most * 1000 / rates[k]);
				run(&c, &r);
			}
}

static void drift__of_the_switch(void **state)
{
	(void)state;
	drift_all(SWITCH, 2, "a switch drifts, two hosts");
	drift_all(SWITCH, 3, "a switch drifts, three hosts");
	drift_all(SWITCH, 5, "a switch drifts, five hosts");
}

static void drift__of_a_host(void **state)
{
	(void)state;
	drift_all(0, 3, "a host drifts, of three");
	drift_all(2, 5, "a host drifts, of five");
}

/* A clock that is set wrong, at the rate at which bus time follows. */
static void set_wrong__over_many_phases(void **state)
{
	struct rnd r = rnd_seeded("phases");
	int i;

	(void)state;
	for (i = 0; i < 400; i++) {
		struct course c = { .hosts = i % 4 < 2 ? 3 : 2 + i % 4,
				    .wrong = i & 1 ? 0 : SWITCH,
				    .ppb = i & 2 ? 500000 : -500000,
				    .far = 1000 * US,
				    .in = 20 * US,
				    .out = 20 * US,
				    .begin_ms = 5000,
				    .end_ms = 60000 };

		run(&c, &r);
	}
}

/* What drifts away and is put right is believed again. */
static void put_right__is_believed(void **state)
{
	struct rnd r = rnd_seeded("put right");
	struct course c = { .hosts = 3,
			    .wrong = SWITCH,
			    .ppb = 100000,
			    .far = 1LL << 50,
			    .in = 20 * US,
			    .out = 20 * US,
			    .begin_ms = 5000 };
	long ms;
	int i;

	(void)state;
	begin(&c, &r);
	for (ms = 0; ms < 60000; ms += STEP_MS)
		advance(&c, &r, ms);
	expect_covered(&c, ms - STEP_MS);
	c.wrong = -1;
	for (; ms < 60000 + 8500; ms += STEP_MS)
		advance(&c, &r, ms);
	for (i = 0; i <= SWITCH; i++)
		assert_int_equal(m[i].proven, 0);
	for (i = 0; i < c.hosts; i++) {
		expect_verdict(&c, ms, i, 0, BL_VERDICT_GOOD);
		expect_verdict(&c, ms, SWITCH, i, BL_VERDICT_GOOD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drift__of_the_switch),
		cmocka_unit_test(drift__of_a_host),
		cmocka_unit_test(set_wrong__over_many_phases),
		cmocka_unit_test(put_right__is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
