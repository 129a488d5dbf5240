// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/top/top_token_core.h: both modes at random against models that know only the list of what
 * passed, and read all of it each time. Priority is strict; what that means for the worst class is
 * stated and proved here as well (starvation__worst_behind_a_full_best_class).
 */
#include "tests/unit/unit.h"
#include "core/top/top_token_core.h"

#define NS_10G 838861U /* bl_rate_ns_q20() of 10 Gbit/s: 0.8 ns */
#define NS_1G  (8U << 20)
#define B(c)   (1U << BL_CL_##c)

static struct bl_token_cfg cfg_of(uint32_t frames, uint32_t expiry)
{
	return (struct bl_token_cfg){ .on = 1, .frames = frames, .expiry = expiry };
}

/*
 * The models' own arithmetic uses the paper's figures and nothing of the code: a token time is 84 +
 * 1538 bytes of the link, and a token takes the time of its n + 24 bytes on the wire and of 1538.
 */
static uint64_t time_of_token(uint32_t ns_q20)
{
	return (84 + 1538) * (uint64_t)ns_q20;
}

static uint64_t token_share_time(uint32_t ns_q20, uint32_t len)
{
	return (uint64_t)ns_q20 * (len + 24) + (uint64_t)ns_q20 * 1538;
}

#define N 600

/* A token that passed: when, and how much of the group's share it takes, in 2^-20 ns. */
struct went {
	uint64_t at, cost;
	uint32_t cls;
};

/*
 * Returns what lies ahead at @t, by definition: over all earlier moments, the most by which the
 * tokens that passed since exceed the share of the time since. Nothing of it is kept from one call
 * to the next.
 */
static uint64_t ahead_by_list(const struct went *w, size_t n, uint64_t t)
{
	__int128 most = 0, sum = 0;
	size_t i;

	for (i = n; i > 0; i--) {
		sum += w[i - 1].cost;
		if (sum - ((__int128)(t - w[i - 1].at) << 20) > most)
			most = sum - ((__int128)(t - w[i - 1].at) << 20);
	}
	return (uint64_t)most;
}

/* Checks that no interval has more than the share of its length and @burst. */
static void expect_rate_kept(const struct went *w, size_t n, uint64_t burst)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		uint64_t sum = 0;

		for (j = i; j < n; j++) {
			sum += w[j].cost;
			assert_true(sum <= ((w[j].at - w[i].at) << 20) + burst);
		}
	}
}

struct load {
	/*
	 * offered load in percent of the group's rate; number of tokens that arrive at one moment
	 */
	uint32_t ns_q20, frames, expiry, percent, burst;
	bool v6;
};

static struct load random_load(struct rnd *r)
{
	static const uint32_t rates[] = { NS_10G, NS_1G, 83886, 4000U << 20, 8389 };

	return (struct load){ .ns_q20 = rates[rnd_below(r, ARRAY_SIZE(rates))],
			      .frames = 1 + rnd_below(r, 12),
			      .expiry = 1 + rnd_below(r, 12),
			      .percent = 30 + rnd_below(r, 400),
			      .burst = 1 + rnd_below(r, 12),
			      .v6 = rnd_below(r, 3) == 0 };
}

/* Returns the time to the next burst, such that on average @percent of the rate is offered. */
static uint64_t next_time(struct rnd *r, const struct load *l)
{
	uint64_t mean = (time_of_token(l->ns_q20) >> 20) * l->burst * 100 / l->percent;

	return rnd64(r) % (2 * mean + 1);
}

static void property__drop_against_list(void **state)
{
	struct rnd r = rnd_seeded("drop");
	int round, reasons[3] = { 0 };

	(void)state;
	for (round = 0; round < 60; round++) {
		struct load l = random_load(&r);
		struct bl_token_cfg cfg = cfg_of(l.frames, l.expiry);
		uint64_t unit = time_of_token(l.ns_q20), word = rnd64(&r),
			 t = rnd64(&r) >> (rnd_below(&r, 30) + 1), most = 0;
		static struct went offered[N], passed[N];
		size_t n = 0, k = 0;
		uint32_t b = 0;

		/* The earlier contents of the word are from long ago. */
		word = (t << 20) - 1 - (word >> 2);
		while (n < N) {
			uint32_t cls = rnd_below(&r, BL_TOP_CLASSES),
				 len = l.v6 && rnd_below(&r, 2) ? 80 : 60, lost, c;
			uint64_t cost = token_share_time(l.ns_q20, len),
				 ahead = ahead_by_list(passed, k, t);
			enum bl_reason want, got;

			if (b++ == l.burst) {
				b = 1;
				t += next_time(&r, &l);
				ahead = ahead_by_list(passed, k, t);
			}
			c = l.frames > cls ? l.frames - cls : 1;
			want = ahead > l.expiry * unit  ? BL_R_TOKEN_EXPIRED
			       : ahead > (c - 1) * unit ? BL_R_TOKEN_LIMIT
							: BL_R_TOKEN_PASSED;
			got = bl_token_decide(&cfg, (__u64 *)&word, l.ns_q20, cls, len, t, &lost);
			assert_int_equal(got, want);
			/* An output with nothing ahead refuses no token. */
			assert_false(ahead == 0 && got != BL_R_TOKEN_PASSED);
			reasons[got - BL_R_TOKEN_PASSED]++;
			offered[n++] = (struct went){ t, cost, cls };
			if (got == BL_R_TOKEN_PASSED) {
				passed[k++] = (struct went){ t, cost, cls };
				if (cost > most)
					most = cost;
			} else if (!l.v6 && cls + 1 < l.frames && l.expiry >= l.frames) {
				/*
				 * Worse classes take nothing from better ones: if a token is
				 * refused, classes up to its own have brought more than their share
				 * and one token.
				 */
				uint64_t sum = 0;
				bool own = false;
				size_t i;

				for (i = n; i > 0 && !own; i--) {
					sum += offered[i - 1].cls <= cls ? offered[i - 1].cost : 0;
					own = sum > ((t - offered[i - 1].at) << 20) + unit;
				}
				assert_true(own);
			}
		}
		expect_rate_kept(passed, k, (l.frames - 1) * unit + most);
	}
	assert_true(reasons[0] > 1000 && reasons[1] > 1000 && reasons[2] > 1000);
}

/*
 * Six classes at random, each with 0.4 of the rate, of which the output has room for two and a
 * half. Runs for 20000 token times.
 */
static void property__drop_strict_in_the_long_run(void **state)
{
	struct rnd r = rnd_seeded("strict");
	struct bl_token_cfg cfg = cfg_of(8, 8);
	uint64_t unit = time_of_token(NS_1G), word = 0, t = 1, offered[BL_TOP_CLASSES] = { 0 },
		 passed[BL_TOP_CLASSES] = { 0 }, all = 0;
	const uint64_t end = 20000 * (unit >> 20);
	uint32_t lost;

	(void)state;
	for (t = 1; t < end; t += rnd64(&r) % (2 * (unit >> 20) * 10 / 24)) {
		uint32_t cls = rnd_below(&r, BL_TOP_CLASSES);

		offered[cls]++;
		if (bl_token_decide(&cfg, (__u64 *)&word, NS_1G, cls, 60, t, &lost) ==
		    BL_R_TOKEN_PASSED) {
			passed[cls]++;
			all++;
		}
	}
	print_message("passed of offered, in percent: %.1f %.1f %.1f %.1f %.1f %.1f\n",
		      100.0 * (double)passed[0] / (double)offered[0],
		      100.0 * (double)passed[1] / (double)offered[1],
		      100.0 * (double)passed[2] / (double)offered[2],
		      100.0 * (double)passed[3] / (double)offered[3],
		      100.0 * (double)passed[4] / (double)offered[4],
		      100.0 * (double)passed[5] / (double)offered[5]);
	/*
	 * Queues would pass 100, 100, 50, 0, 0 and 0 percent; a single limit for all would pass
	 * 41.7 of each. Six standard deviations are about 2.
	 */
	assert_true(passed[0] * 100 >= offered[0] * 97);
	assert_true(passed[1] * 100 >= offered[1] * 82);
	assert_true(passed[2] * 100 >= offered[2] * 45 && passed[2] * 100 <= offered[2] * 55);
	assert_true(passed[3] * 100 <= offered[3] * 19);
	assert_true(passed[4] * 100 <= offered[4] * 4 && passed[5] * 100 <= offered[5] * 1);
	assert_true(all <= 20000 + 8 && all >= 19900); /* Nothing of the rate is left unused. */
}

/* Mode pace. The model keeps every token with its fate. */
enum fate { WAITS, SENT, EXPIRED, REFUSED };
struct token {
	uint64_t at, gone;
	uint32_t cls, len;
	enum fate fate;
};

struct pace {
	struct bl_token_cfg cfg;
	struct bl_token_port port;
	/* the contents of the queues and of the pacer */
	uint32_t queue[BL_TOP_CLASSES][BL_TOKEN_FRAMES_MAX], n[BL_TOP_CLASSES];
	struct token token[N];
	size_t ntokens;
	struct went sent[N];
	size_t nsent;
};

/*
 * A token arrives, as bl_token_room() handles it. The model refuses it if too many tokens of its
 * class wait that are not too old.
 */
static void pace_put(struct pace *p, uint64_t t, uint32_t cls, uint32_t len)
{
	uint64_t life = (p->cfg.expiry * time_of_token(p->port.ns_q20)) >> 20;
	struct token *me = &p->token[p->ntokens];
	uint32_t fresh = 0, k = 0;
	size_t i;

	for (i = 0; i < p->ntokens; i++)
		fresh += p->token[i].cls == cls && p->token[i].fate == WAITS &&
			 t - p->token[i].at <= life;
	*me = (struct token){ .at = t, .cls = cls, .len = len };
	if (p->n[cls] == p->cfg.frames) {
		while (k < p->n[cls] &&
		       bl_token_expired(&p->cfg, &p->port, p->token[p->queue[cls][k]].at, t)) {
			p->token[p->queue[cls][k]].fate = EXPIRED;
			p->token[p->queue[cls][k++]].gone = t;
		}
		p->n[cls] -= k;
		memmove(p->queue[cls], p->queue[cls] + k, p->n[cls] * sizeof(p->queue[0][0]));
	}
	if (p->n[cls] == p->cfg.frames)
		me->fate = REFUSED;
	else
		p->queue[cls][p->n[cls]++] = (uint32_t)p->ntokens;
	assert_int_equal(me->fate == REFUSED, fresh >= p->cfg.frames);
	p->ntokens++;
}

/*
 * The pacer's turn at @t, as bl_port_send() does it, until it has sent one token or must wait.
 * Returns the time of the next turn.
 */
static uint64_t pace_turn(struct pace *p, uint64_t t)
{
	uint64_t unit = time_of_token(p->port.ns_q20), life = (p->cfg.expiry * unit) >> 20,
		 ahead = ahead_by_list(p->sent, p->nsent, t);
	uint32_t bits, cls, id = 0, c;
	const struct token *best = NULL;
	size_t i;

	/*
	 * The model takes the best class and in it the oldest token, among those that are not too
	 * old, if at most one token is ahead.
	 */
	for (i = 0; i < p->ntokens; i++)
		if (p->token[i].fate == WAITS && t - p->token[i].at <= life &&
		    (!best || p->token[i].cls < best->cls))
			best = &p->token[i];
	for (;;) {
		for (bits = 0, c = 0; c < BL_TOP_CLASSES; c++)
			bits |= p->n[c] ? 1U << (BL_CL_TOKEN0 + c) : 0;
		cls = bits ? bl_token_choose(&p->cfg, &p->port, bits, t) : BL_CL_COUNT;
		if (cls == BL_CL_COUNT)
			break;
		cls -= BL_CL_TOKEN0;
		id = p->queue[cls][0];
		memmove(p->queue[cls], p->queue[cls] + 1, --p->n[cls] * sizeof(p->queue[0][0]));
		p->token[id].gone = t;
		if (!bl_token_expired(&p->cfg, &p->port, p->token[id].at, t))
			break;
		p->token[id].fate = EXPIRED;
	}
	if (cls == BL_CL_COUNT) {
		assert_true(!best || ahead > unit);
		if (best) /* The next turn is not a moment later than allowed. */
			assert_true(ahead_by_list(p->sent, p->nsent,
						  bl_token_next_ns(&p->port, bits, t, t)) <= unit &&
				    ahead_by_list(p->sent, p->nsent,
						  bl_token_next_ns(&p->port, bits, t, t) - 1) >
					    unit);
		return bl_token_next_ns(&p->port, bits, t, t);
	}
	assert_ptr_equal(best, &p->token[id]);
	assert_true(ahead <= unit);
	p->token[id].fate = SENT;
	p->sent[p->nsent++] =
		(struct went){ t, token_share_time(p->port.ns_q20, p->token[id].len), cls };
	bl_token_sent(&p->port, BL_CL_TOKEN0 + cls, p->token[id].len, t);
	return t;
}

static void property__pace_against_list(void **state)
{
	struct rnd r = rnd_seeded("pace");
	int round, fates[4] = { 0 };
	static struct pace p;

	(void)state;
	for (round = 0; round < 60; round++) {
		struct load l = random_load(&r);
		uint64_t unit = time_of_token(l.ns_q20), t = rnd64(&r) >> (rnd_below(&r, 30) + 1),
			 come = t, look = BL_DUE_NEVER, late, most = 0;
		uint32_t b, sleepy = rnd_below(&r, 3);
		size_t i;

		memset(&p, 0, sizeof(p));
		p.cfg = cfg_of(l.frames, l.expiry);
		p.port = (struct bl_token_port){ .ns_q20 = l.ns_q20,
						 .out_q20 = (t << 20) - 1 - (rnd64(&r) >> 2) };
		while (p.ntokens + l.burst <= N || look != BL_DUE_NEVER) {
			if (p.ntokens + l.burst <= N && come <= look) {
				t = come;
				for (b = 0; b < l.burst; b++)
					pace_put(&p, t, rnd_below(&r, BL_TOP_CLASSES),
						 l.v6 && rnd_below(&r, 2) ? 80 : 60);
				come += next_time(&r, &l);
				if (look == BL_DUE_NEVER)
					look = t;
				continue;
			}
			/* A pacer may come late as well. */
			late = sleepy && !rnd_below(&r, 20)
				       ? rnd64(&r) % (sleepy * 6 * (unit >> 20) + 1)
				       : 0;
			if (come < look + late && p.ntokens + l.burst <= N)
				late = come > look ? come - look : 0;
			t = look + late;
			look = pace_turn(&p, t);
			for (i = 0, b = 0; i < BL_TOP_CLASSES; i++)
				b += p.n[i];
			if (!b)
				look = BL_DUE_NEVER;
		}
		for (i = 0; i < p.nsent; i++)
			if (p.sent[i].cost > most)
				most = p.sent[i].cost;
		expect_rate_kept(p.sent, p.nsent, unit + most);
		for (i = 0; i < p.ntokens; i++) {
			const struct token *k = &p.token[i];

			assert_true(k->fate != WAITS);
			if (k->fate == SENT)
				assert_true(k->gone - k->at <= (l.expiry * unit) >> 20);
			if (k->fate == EXPIRED)
				assert_true(k->gone - k->at > (l.expiry * unit) >> 20);
			fates[k->fate]++;
		}
	}
	assert_true(fates[SENT] > 1000 && fates[EXPIRED] > 500 && fates[REFUSED] > 1000);
}

/*
 * Nothing drifts: a million tokens, at a rate whose token time is not a whole number of
 * nanoseconds, leave in as many token times.
 */
static void property__no_drift(void **state)
{
	struct bl_token_port p = { .ns_q20 = NS_10G };
	uint64_t t = 1000, unit = time_of_token(NS_10G), i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		t = bl_token_ready(&p, t);
		bl_token_sent(&p, BL_CL_TOKEN0, 60, t);
	}
	/* Two leave at once, then one in each token time: the last one at the (10^6 - 2)-th. */
	assert_true(t >= 1000 + (uint64_t)(((unsigned __int128)unit * 999998) >> 20));
	assert_true(t <= 1000 + (uint64_t)(((unsigned __int128)unit * 999998) >> 20) + 1);
}

/*
 * Data first: a link that is always full of data, and tokens that always wait. Both get their
 * shares, and neither starves.
 */
static void property__data_first_shares(void **state)
{
	struct bl_token_cfg cfg = cfg_of(8, 8);
	struct bl_token_port p = { .ns_q20 = NS_1G };
	uint64_t t = 1, data = 0, tokens = 0;

	(void)state;
	cfg.data_first = 1;
	while (t < 10000 * 12976ULL) {
		uint32_t cls = bl_token_choose(&cfg, &p, B(TOKEN5) | B(DATA), t),
			 len = cls == BL_CL_DATA ? 1514 : 60;

		assert_true(cls == BL_CL_DATA || cls == BL_CL_TOKEN5);
		bl_token_sent(&p, cls, len, t);
		data += cls == BL_CL_DATA;
		tokens += cls != BL_CL_DATA;
		t += 8 * (len + 24); /* The link counts bytes as the wire does. */
	}
	assert_true(data >= 9990 && data <= 10010);
	/* A token that arrives while a frame of data is being sent waits for it. */
	assert_true(tokens >= 9960 && tokens <= 10002);
}

/*
 * Starvation, exactly. Class 0 fills the rate with one token in each token time; class 5 offers
 * three. Class 0 loses none. Class 5 gets what was free at the beginning beside class 0's first
 * token, out of 3 tokens in mode drop and out of the 2 of the bucket in mode pace, and then nothing
 * for as long as this goes on. When class 0 stops, class 5 gets all of it at once: one token in
 * each token time.
 */
static void starvation__worst_behind_a_full_best_class(void **state)
{
	const uint64_t tick = time_of_token(NS_1G) >> 20, full = 5000;
	struct bl_token_cfg cfg = cfg_of(8, 8);
	uint64_t word = 0, t, i, got[2][BL_TOP_CLASSES] = { { 0 } };
	static struct pace p;
	uint32_t lost, k;

	(void)state;
	for (i = 0; i < 2 * full; i++)
		for (k = 0; k < 4; k++) {
			uint32_t cls = k ? 5 : 0;

			t = 1000000 + i * tick + k * (tick / 4);
			if (cls || i < full)
				got[i >= full][cls] += bl_token_decide(&cfg, (__u64 *)&word, NS_1G,
								       cls, 60, t,
								       &lost) == BL_R_TOKEN_PASSED;
		}
	assert_int_equal(got[0][0], full);
	assert_int_equal(got[0][5], 3 - 1);
	assert_in_range(got[1][5], full - 1, full + 1);

	/*
	 * Mode pace: the model keeps no more than N tokens. Class 5's queue is refilled when its
	 * tokens have become too old.
	 */
	memset(&p, 0, sizeof(p));
	p.cfg = cfg;
	p.port = (struct bl_token_port){ .ns_q20 = NS_1G };
	memset(got, 0, sizeof(got));
	for (i = 0; p.ntokens + 4 <= N; i++) {
		t = 1000000 + i * tick;
		if (i < 100)
			pace_put(&p, t, 0, 60);
		for (k = 0; k < 3; k++)
			pace_put(&p, t, 5, 60);
		while (pace_turn(&p, t) == t)
			;
	}
	for (i = 0; i < p.nsent; i++)
		got[p.sent[i].at >= 1000000 + 100 * tick][p.sent[i].cls]++;
	assert_int_equal(got[0][0], 100);
	assert_int_equal(got[0][5], 2 - 1);
	assert_true(got[1][5] + 1 >= (p.ntokens - 400) / 3 &&
		    got[1][5] <= (p.ntokens - 400) / 3 + 1);
	assert_int_equal(got[1][0], 0);
}

/*
 * What the port sends next, among all nine kinds of frames, against a model: control; data within
 * its share, if data goes first; the best token, if at most one is ahead; data; unscheduled frames.
 * Frames have all lengths, and the link takes the next frame only when it has finished the last
 * one.
 */
static void property__choose_against_model(void **state)
{
	struct rnd r = rnd_seeded("choose");
	uint32_t round, sent[BL_CL_COUNT] = { 0 }, waits = 0;

	(void)state;
	for (round = 0; round < 80; round++) {
		static const uint32_t rates[] = { NS_10G, NS_1G, 83886, 1234567 };
		struct bl_token_cfg cfg = cfg_of(8, 8);
		struct bl_token_port p = { .ns_q20 = rates[rnd_below(&r, ARRAY_SIZE(rates))] };
		uint64_t unit = time_of_token(p.ns_q20), t = rnd64(&r) >> (rnd_below(&r, 30) + 1),
			 seen = t, ahead;
		unsigned __int128 owed = 0; /* how much of its share data has used in advance */
		static struct went tokens[N];
		size_t n = 0, i;
		uint32_t always = rnd_below(&r, 4); /* how often a class has frames */

		cfg.data_first = round & 1;
		p.out_q20 = p.data_q20 = (t << 20) - 1 - (rnd64(&r) >> 2);
		for (i = 0; i < 1500 && n < N; i++) {
			uint32_t bits = (uint32_t)rnd64(&r) & 0x1ff, want, got, len, c;
			uint64_t passed = (t - seen) << 20;

			for (c = 0; c < always; c++)
				bits |= (uint32_t)rnd64(&r) & 0x1fe;
			if (rnd_below(&r, 20))
				bits &= ~1u;
			owed = owed > passed ? owed - passed : 0;
			seen = t;
			ahead = ahead_by_list(tokens, n, t);
			for (want = BL_CL_TOKEN0; want <= BL_CL_TOKEN5 && !(bits >> want & 1);
			     want++)
				;
			if (bits & 1)
				want = BL_CL_CONTROL;
			else if (cfg.data_first && bits >> BL_CL_DATA & 1 && owed <= unit)
				want = BL_CL_DATA;
			else if (want > BL_CL_TOKEN5 || ahead > unit)
				want = bits >> BL_CL_DATA & 1      ? BL_CL_DATA
				       : bits >> BL_CL_UNSCHED & 1 ? BL_CL_UNSCHED
								   : BL_CL_COUNT;
			got = bl_token_choose(&cfg, &p, bits, t);
			assert_int_equal(got, want);
			/*
			 * The port sends nothing, or tokens wait for the first moment at which one
			 * may leave.
			 */
			if (want == BL_CL_COUNT) {
				uint64_t again = bl_token_next_ns(&p, bits, t, t);

				waits += bits != 0;
				assert_true(
					bits ? again > t &&
							ahead_by_list(tokens, n, again) <= unit &&
							ahead_by_list(tokens, n, again - 1) > unit
					     : again == BL_DUE_NEVER);
				t = bits ? again : t + 1;
				continue;
			}
			/* Data waits only for the link. */
			assert_int_equal(bl_token_next_ns(&p, bits | 1u << BL_CL_DATA, t + 5, t),
					 t + 5);
			len = want >= BL_CL_TOKEN0 && want <= BL_CL_TOKEN5
				      ? rnd_below(&r, 2) ? 60 : 80
				      : 60 + rnd_below(&r, 1455);
			bl_token_sent(&p, want, len, t);
			if (want >= BL_CL_TOKEN0 && want <= BL_CL_TOKEN5)
				tokens[n++] = (struct went){ t, token_share_time(p.ns_q20, len),
							     want - BL_CL_TOKEN0 };
			if (want == BL_CL_DATA) {
				unsigned __int128 parts = (unsigned __int128)unit * (len + 24);

				owed = (owed < unit ? owed : unit) + parts / 1538 +
				       (parts % 1538 != 0);
			}
			sent[want]++;
			t += ((uint64_t)p.ns_q20 * (len + 24) >> 20) + rnd_below(&r, 3);
		}
		expect_rate_kept(tokens, n, 2 * unit + token_share_time(p.ns_q20, 80) - unit);
	}
	for (round = 0; round < BL_CL_COUNT; round++)
		assert_true(sent[round] > 20);
	assert_true(waits > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(property__drop_against_list),
		cmocka_unit_test(property__drop_strict_in_the_long_run),
		cmocka_unit_test(property__pace_against_list),
		cmocka_unit_test(property__no_drift),
		cmocka_unit_test(property__data_first_shares),
		cmocka_unit_test(starvation__worst_behind_a_full_best_class),
		cmocka_unit_test(property__choose_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
