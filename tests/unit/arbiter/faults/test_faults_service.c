// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of the fault isolation service (arbiter/faults/faults.c) in a simulated network whose hosts
 * send REPORTs that are lost, doubled and late: the broken links are named, and nothing else ever
 * is.
 */
#include "tests/unit/arbiter/faults/faults_net.h"

/* ---- the service, in a network ---- */

#define STEP_NS   500000ULL
#define REPORT_NS (2 * MS)
#define SETTLE_NS (1 * MS)
#define HOLD_NS   (1000 * MS)
#define QUEUE     512

/** struct world - A network with its hosts, and the service. */
struct world {
	struct topo t;
	struct rnd r;
	struct bl_faults *f;
	uint64_t now;
	/* [src][dst][column] frames; what leaves in one step arrives in the next */
	__u64 sent[HOSTS_MAX][HOSTS_MAX][5], came[HOSTS_MAX][HOSTS_MAX][5],
		under_way[HOSTS_MAX][HOSTS_MAX][5];
	uint64_t loss[256];    /* [link] chance in 2^32 */
	uint64_t doubted[256]; /* ns for which the link of a host was suspected though it is good */
	uint32_t rate;         /* frames a step on each path of each pair */
	uint32_t seq[HOSTS_MAX];
	uint64_t boot[HOSTS_MAX], next[HOSTS_MAX]; /* start, and next REPORT */
	bool silent[HOSTS_MAX];
	struct { /* REPORTs under way */
		uint64_t due;
		uint32_t len, from;
		_Alignas(8) uint8_t p[BL_FCP_PACKET_MAX];
	} mail[QUEUE];
	uint8_t addr[HOSTS_MAX][16], arbiter[2][16];
	uint32_t report_loss, late; /* chances in 256 */
	bool avoids;                /* there is an arbiter that obeys */
	bool lone; /* only host 0 sends, to host 1, on the first path that may be used */
};

static struct world w;

static void world_new(uint32_t racks_min)
{
	struct bl_faults_cfg c = { .secret = { SECRET0, SECRET1 },
				   .table = TABLE,
				   .report_ns = REPORT_NS,
				   .hold_ns = HOLD_NS,
				   .narbiters = 2 };
	struct rnd r = w.r;
	uint32_t i;

	bl_faults_free(w.f);
	memset(&w, 0, sizeof(w));
	w.r = r;
	topo_random(&w.t, &w.r, racks_min);
	while (w.t.net.paths < 2)
		topo_random(&w.t, &w.r, racks_min);
	w.now = 1000000 * MS;
	w.rate = 4;
	w.avoids = true;
	for (i = 0; i < HOSTS_MAX; i++) {
		w.addr[i][15] = (uint8_t)(i + 1);
		w.boot[i] = w.now + i;
		w.next[i] = w.now + rnd_below(&w.r, REPORT_NS);
	}
	w.arbiter[0][15] = 200;
	w.arbiter[1][15] = 201;
	c.net = w.t.net;
	c.addr = (const uint8_t(*)[16])w.addr;
	c.arbiter = (const uint8_t(*)[16])w.arbiter;
	bl_fault_rules_set(&c.rules, REPORT_NS, SETTLE_NS, 50, 1);
	w.f = bl_faults_new(&c, w.now);
	assert_non_null(w.f);
}

static enum bl_faults_state state_of(uint32_t c)
{
	return (enum bl_faults_state)bl_faults_part(w.f, c)->state;
}

static bool avoided(uint32_t c)
{
	return w.avoids && state_of(c) == BL_FAULTS_BROKEN;
}

static void send_all(void)
{
	uint32_t s, d, p, k, i, thru[BL_ISO_COMPONENTS];

	for (s = 0; s < w.t.net.endpoints; s++)
		for (d = 0; d < w.t.net.endpoints; d++) {
			bool sent = false;

			for (p = 0; p <= w.t.net.paths && s != d; p++) {
				struct bl_iso_flow f = { .src = (uint16_t)s,
							 .dst = (uint16_t)d,
							 .path = (uint8_t)p };
				bool inside = w.t.rack_of[s] == w.t.rack_of[d], no = false;
				unsigned int nt;

				w.came[d][s][p] += w.under_way[d][s][p];
				w.under_way[d][s][p] = 0;
				if (inside != (p == w.t.net.paths))
					continue;
				nt = bl_iso_through(&w.t.net, &f, thru);
				for (i = 4; i < nt; i++)
					no |= avoided(thru[i]);
				no |= w.lone && (s || d != 1 || sent);
				sent |= !no;
				for (k = no ? 0 : rnd_below(&w.r, 2 * w.rate + 1); k; k--) {
					bool lost = false;

					for (i = 0; i < nt; i++)
						lost |= w.loss[thru[i]] &&
							(rnd64(&w.r) >> 32) < w.loss[thru[i]];
					w.sent[s][d][p]++;
					w.under_way[d][s][p] += !lost;
				}
			}
		}
}

static void post(uint32_t from, const uint8_t *p, uint32_t len, uint64_t due)
{
	uint32_t i;

	for (i = 0; i < QUEUE && w.mail[i].len; i++)
		;
	assert_true(i < QUEUE);
	w.mail[i].due = due;
	w.mail[i].len = len;
	w.mail[i].from = from;
	memcpy(w.mail[i].p, p, len);
}

static void report_all(void)
{
	static __u64 v[HOSTS_MAX * 5 * 2];
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	uint32_t h, d, p, len;

	for (h = 0; h < w.t.net.endpoints; h++) {
		struct bl_report r = { .v = v,
				       .peers = w.t.net.endpoints,
				       .columns = w.t.net.paths + 1,
				       .table = TABLE,
				       .index = h,
				       .boot = w.boot[h],
				       .at = w.now };

		if (w.now < w.next[h] || w.silent[h])
			continue;
		w.next[h] = w.now + REPORT_NS;
		for (d = 0; d < w.t.net.endpoints; d++)
			for (p = 0; p <= w.t.net.paths; p++) {
				v[2 * (d * r.columns + p)] = w.sent[h][d][p];
				v[2 * (d * r.columns + p) + 1] = w.came[h][d][p];
			}
		while ((len = bl_report_fill(&r, buf))) {
			bl_fcp_seal(&params, 0, BL_FCP_REPORT, 0, ++w.seq[h], 0, 0, buf, len);
			if (rnd_below(&w.r, 256) < w.report_loss)
				continue;
			post(h, buf, len,
			     w.now + (rnd_below(&w.r, 256) < w.late ? rnd_below(&w.r, 10 * MS)
								    : 0));
			if (rnd_below(&w.r, 256) < w.late)
				post(h, buf, len, w.now + rnd_below(&w.r, 10 * MS));
		}
	}
}

static void deliver(void)
{
	uint32_t i;

	for (i = 0; i < QUEUE; i++)
		if (w.mail[i].len && w.mail[i].due <= w.now) {
			bl_faults_rx(w.f, w.addr[w.mail[i].from], w.mail[i].p, w.mail[i].len,
				     w.now);
			w.mail[i].len = 0;
		}
}

static void step(void)
{
	bool changed;

	w.now += STEP_NS;
	send_all();
	report_all();
	deliver();
	bl_faults_tick(w.f, w.now, &changed);
}

#define DOUBT_NS (100 * MS)

/*
 * Runs for @ns and asserts that no component except those of @broken is ever found broken. The link
 * of a host, which nothing avoids, may be suspected for a moment, while hardly any other host has
 * sent through what is broken (BL_SEED=62827933939: for 5 ms, BL_SEED=2143613671: for 2 ms).
 */
static void run_for(uint64_t ns, const uint32_t *broken, uint32_t n)
{
	uint64_t end = w.now + ns;
	uint32_t c, k;

	while (w.now < end) {
		uint8_t was[256];

		for (c = 0; c < w.t.parts; c++)
			was[c] = bl_faults_part(w.f, c)->state;
		step();
		for (c = 0; c < w.t.parts; c++) {
			/* one evaluation alone may be chance */
			if (was[c] != BL_FAULTS_BROKEN && state_of(c) == BL_FAULTS_BROKEN)
				assert_true(bl_faults_part(w.f, c)->named >= 2);
			for (k = 0; k < n && broken[k] != c; k++)
				;
			w.doubted[c] = state_of(c) == BL_FAULTS_SUSPECT && k == n
					       ? w.doubted[c] + STEP_NS
					       : 0;
			if (state_of(c) != BL_FAULTS_GOOD && k == n &&
			    (c >= 2 * w.t.net.endpoints || state_of(c) != BL_FAULTS_SUSPECT ||
			     w.doubted[c] > DOUBT_NS))
				fail_msg("component %u of %u (%u hosts, %u racks, %u paths) is %d, "
					 "the first broken one is %u",
					 c, w.t.parts, w.t.net.endpoints, w.t.net.racks,
					 w.t.net.paths, (int)state_of(c), n ? broken[0] : 0);
		}
	}
}

static bool run_until(uint32_t c, enum bl_faults_state state, uint64_t ns, const uint32_t *broken,
		      uint32_t n)
{
	uint64_t end = w.now + ns;

	while (w.now < end && state_of(c) != state)
		run_for(STEP_NS, broken, n);
	return state_of(c) == state;
}

static uint64_t chance(double p)
{
	return (uint64_t)(p * 4294967296.0);
}

static uint32_t random_link(void)
{
	return 2 * w.t.net.endpoints + rnd_below(&w.r, 2 * w.t.net.racks * w.t.net.paths);
}

/* Losses of 1e-4 on every link; reports lost, doubled and late: no link is named. */
static void service__sporadic_losses_name_nobody(void **state)
{
	struct bl_faults_total t;
	uint32_t i, c;

	(void)state;
	w.r = rnd_seeded("sporadic");
	for (i = 0; i < 4; i++) {
		world_new(2);
		w.report_loss = 25 * i;
		w.late = 40 * i;
		for (c = 0; c < w.t.parts; c++)
			w.loss[c] = chance(1e-4);
		run_for(1500 * MS, NULL, 0);
		bl_faults_read(w.f, &t);
		assert_true(t.evaluations > 100 &&
			    t.pairs == w.t.net.endpoints * (w.t.net.endpoints - 1));
		assert_int_equal(t.version, 1);
	}
}

/* A link that loses from 3 % to all of its frames: it is named, and no other link is. */
static void service__one_lossy_link(void **state)
{
	static const double p[] = { 1, 1, 0.9, 0.7, 0.3, 0.1, 0.05, 0.03 };
	uint32_t i, c;

	(void)state;
	w.r = rnd_seeded("one link");
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		world_new(3);
		w.report_loss = rnd_below(&w.r, 60);
		w.late = rnd_below(&w.r, 60);
		run_for(700 * MS, NULL, 0);
		c = random_link();
		w.loss[c] = chance(p[i]);
		if (!run_until(c, BL_FAULTS_BROKEN, 4000 * MS, &c, 1))
			fail_msg("component %u lost %g and was not found", c, p[i]);
		assert_true(bl_faults_part(w.f, c)->lost >= 10);
	}
}

static void service__two_dead_links(void **state)
{
	uint32_t i, b[2];

	(void)state;
	w.r = rnd_seeded("two links");
	for (i = 0; i < 5; i++) {
		world_new(4);
		b[0] = random_link();
		do {
			b[1] = random_link();
		} while (b[1] == b[0]);
		run_for(200 * MS, NULL, 0);
		w.loss[b[0]] = chance(1);
		run_until(b[0], BL_FAULTS_BROKEN, 1000 * MS, b, 1);
		w.loss[b[1]] = chance(1);
		assert_true(run_until(b[1], BL_FAULTS_BROKEN, 900 * MS, b, 2));
		assert_true(bl_faults_part(w.f, b[0])->times >= 1);
	}
}

/* The link of a host is named, not avoided, and no link inside the network is avoided. */
static void service__a_hosts_link(void **state)
{
	uint32_t i, c;

	(void)state;
	w.r = rnd_seeded("host link");
	for (i = 0; i < 4; i++) {
		world_new(3);
		c = rnd_below(&w.r, 2 * w.t.net.endpoints);
		run_for(200 * MS, NULL, 0);
		w.loss[c] = chance(i & 1 ? 1 : 0.6);
		assert_true(run_until(c, BL_FAULTS_SUSPECT, 2000 * MS, &c, 1));
		w.loss[c] = 0;
		assert_true(run_until(c, BL_FAULTS_GOOD, 2000 * MS, &c, 1));
	}
}

/*
 * One pair alone uses the network, and its host loses frames: a path is avoided, and the losses on
 * the next path show that the host is to blame.
 */
static void service__a_lone_pair(void **state)
{
	uint32_t c, up = 0, k, most = 0;
	uint64_t end;

	(void)state;
	w.r = rnd_seeded("lone pair");
	world_new(3); /* host 1 is in another rack */
	w.lone = true;
	w.rate = 20;
	w.loss[up] = chance(1);
	end = w.now + 5000 * MS;
	while (!bl_faults_part(w.f, up)->proven && w.now < end) {
		uint32_t broken = 0;

		step();
		for (k = 0; k < w.t.net.paths; k++)
			broken += state_of(bl_iso_number(&w.t.net, BL_ISO_UP, 0, k)) ==
				  BL_FAULTS_BROKEN;
		most = broken > most ? broken : most;
		assert_true(broken < w.t.net.paths);
	}
	/* on the second path it loses frames, too: no link inside the network explains both */
	assert_int_equal(most, 1);
	assert_true(bl_faults_part(w.f, up)->proven);
	for (k = 0; k < 1500; k++) {
		step();
		if (k < 30)
			continue; /* what was avoided is released when it was not named twice */
		for (c = 2 * w.t.net.endpoints; c < w.t.parts; c++)
			assert_int_not_equal(state_of(c),
					     BL_FAULTS_BROKEN); /* no more experiments */
	}
}

/* Hosts that start to count from zero, fall silent, and come back: no link is named. */
static void service__hosts_restart_and_fall_silent(void **state)
{
	uint32_t i, k, h;

	(void)state;
	w.r = rnd_seeded("restart");
	for (i = 0; i < 3; i++) {
		world_new(2);
		w.report_loss = 30;
		w.late = 30;
		for (k = 0; k < 12; k++) {
			h = rnd_below(&w.r, w.t.net.endpoints);
			run_for(70 * MS, NULL, 0);
			if (k % 3 == 2) {
				w.silent[h] = !w.silent[h];
				continue;
			}
			w.boot[h] = w.now;
			w.seq[h] = 0;
			if (k & 1) /* with the maps kept */
				continue;
			memset(w.sent[h], 0, sizeof(w.sent[h]));
			memset(w.came[h], 0, sizeof(w.came[h]));
		}
	}
}

static void trial__again_and_again_then_good(void **state)
{
	const struct bl_faults_part *p;
	uint64_t at;
	uint32_t c;

	(void)state;
	w.r = rnd_seeded("trial");
	world_new(3);
	run_for(200 * MS, NULL, 0);
	c = random_link();
	p = bl_faults_part(w.f, c);
	w.loss[c] = chance(1);
	assert_true(run_until(c, BL_FAULTS_BROKEN, 1000 * MS, &c, 1));
	at = w.now;
	assert_int_equal(p->until_ns - at, HOLD_NS);
	assert_true(run_until(c, BL_FAULTS_TRIAL, 1100 * MS, &c, 1));
	assert_true(w.now >= at + HOLD_NS);
	assert_true(run_until(c, BL_FAULTS_BROKEN, 1000 * MS, &c, 1));
	assert_int_equal(p->until_ns - w.now, 2 * HOLD_NS);
	assert_int_equal(p->times, 2);
	w.loss[c] = 0;
	assert_true(run_until(c, BL_FAULTS_TRIAL, 2100 * MS, &c, 1));
	assert_true(run_until(c, BL_FAULTS_GOOD, 3000 * MS, &c, 1));
	assert_int_equal(p->hold_ns, HOLD_NS);
	w.loss[c] = chance(1);
	assert_true(run_until(c, BL_FAULTS_BROKEN, 1000 * MS, &c, 1));
	bl_faults_clear(w.f, w.now);
	assert_int_equal(p->state, BL_FAULTS_GOOD);
	assert_true(run_until(c, BL_FAULTS_BROKEN, 1000 * MS, &c, 1)); /* the link is still dead */
}

/* ---- input, and what is sent to arbiters ---- */

static void input__refused_and_counted(void **state)
{
	static __u64 v[HOSTS_MAX * 5 * 2];
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX], other[BL_FCP_PACKET_MAX];
	struct bl_report r = { .v = v, .table = TABLE, .at = 5000 * MS };
	struct bl_faults_total t;
	uint32_t len, i;

	(void)state;
	w.r = rnd_seeded("input");
	world_new(3);
	r.peers = w.t.net.endpoints;
	r.columns = w.t.net.paths + 1;
	r.boot = w.now;
	r.index = 2;
	for (i = 0; i < 2 * r.peers * r.columns; i++)
		v[i] = 100;
	len = bl_report_fill(&r, buf);
	bl_fcp_seal(&params, 0, BL_FCP_REPORT, 0, 1, 0, 0, buf, len);
	memcpy(other, buf, len);
	/* from another host */
	assert_int_equal(bl_faults_rx(w.f, w.addr[3], buf, len, w.now), BL_FCP_R_UNKNOWN);
	for (i = 0; i < len; i++)
		assert_int_not_equal(bl_faults_rx(w.f, w.addr[2], buf, i, w.now),
				     BL_FCP_R_OK); /* cut off */
	for (i = 3; i < len; i++) {
		other[i] ^= 0x40;
		/* damaged */
		assert_int_not_equal(bl_faults_rx(w.f, w.addr[2], other, len, w.now), BL_FCP_R_OK);
		other[i] ^= 0x40;
	}
	bl_fcp_seal(&(struct bl_fcp_params){ .secret = { SECRET0, SECRET1 + 1 } }, 0, BL_FCP_REPORT,
		    0, 1, 0, 0, other, len);
	/* forged */
	assert_int_equal(bl_faults_rx(w.f, w.addr[2], other, len, w.now), BL_FCP_R_BAD_CHECK);
	bl_fcp_seal(&params, 0, BL_FCP_FAULTS, 0, 1, 0, 0, other, 32 + 24);
	memset(other + 32, 0, 24);
	bl_fcp_seal(&params, 0, BL_FCP_FAULTS, 0, 1, 0, 0, other, 32 + 24);
	assert_int_equal(bl_faults_rx(w.f, w.addr[2], other, 32 + 24, w.now), BL_FCP_R_BAD_OPCODE);
	bl_faults_read(w.f, &t);
	assert_int_equal(t.packets[BL_FCP_R_OK] | t.pairs | t.boots, 0);
	assert_int_equal(bl_faults_heard_ns(w.f, 2), 0);
	assert_int_equal(bl_faults_rx(w.f, w.addr[2], buf, len, w.now), BL_FCP_R_OK);
	/* replayed */
	assert_int_equal(bl_faults_rx(w.f, w.addr[2], buf, len, w.now), BL_FCP_R_DUPLICATE);
	assert_int_equal(bl_faults_heard_ns(w.f, 2), w.now);
	bl_faults_read(w.f, &t);
	assert_int_equal(t.packets[BL_FCP_R_OK], 1);
	assert_true(t.packets[BL_FCP_R_BAD_CHECK] >= 30 && t.packets[BL_FCP_R_SHORT] >= 60 &&
		    t.boots == 1 && t.pairs > 0);
	r = (struct bl_report){ .v = v,
				.table = TABLE + 1,
				.at = 5000 * MS,
				.peers = r.peers,
				.columns = r.columns,
				.boot = r.boot,
				.index = 2 };
	len = bl_report_fill(&r, buf);
	bl_fcp_seal(&params, 0, BL_FCP_REPORT, 0, 2, 0, 0, buf, len);
	assert_int_equal(bl_faults_rx(w.f, w.addr[2], buf, len, w.now), BL_FCP_R_BAD_TABLE);
}

/*
 * Returns the number of links that are sent to arbiter @i at the present time; @version and
 * @challenge are set to those of the packet.
 */
static uint32_t told_to(unsigned int i, uint32_t *version, uint32_t *challenge)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	const struct bl_fcp_faults *b;
	struct bl_fcp_pkt k;
	unsigned int to;
	uint32_t len, links = ~0U;

	while ((len = bl_faults_tx(w.f, w.now, buf, &to))) {
		assert_true(to < 2);
		assert_int_equal(bl_fcp_parse(buf, len, w.t.net.endpoints, &k), BL_FCP_R_OK);
		assert_true(bl_fcp_checksum_ok(&params, 0, buf, len));
		b = k.body;
		if (to != i)
			continue;
		*version = BL_BE32(b->version);
		*challenge = k.challenge;
		links = k.nlinks;
	}
	return links;
}

static void answers(unsigned int i, uint64_t boot, uint32_t version, uint32_t challenge)
{
	_Alignas(8) uint8_t buf[48];
	struct bl_fcp_heard *h = (void *)(buf + 32);

	*h = (struct bl_fcp_heard){ .boot = BL_BE64(boot),
				    .version = BL_BE32(version),
				    .table = BL_BE32(TABLE) };
	bl_fcp_seal(&params, 0, BL_FCP_HEARD, challenge, 0, 0, 0, buf, sizeof(buf));
	assert_int_equal(bl_faults_rx(w.f, w.addr[0], buf, sizeof(buf), w.now), BL_FCP_R_UNKNOWN);
	assert_int_equal(bl_faults_rx(w.f, w.arbiter[i], buf, sizeof(buf), w.now), BL_FCP_R_OK);
}

static void list__until_each_arbiter_has_it(void **state)
{
	uint32_t version, challenge, c;
	uint64_t boot;
	bool changed;

	(void)state;
	w.r = rnd_seeded("list");
	world_new(3);
	boot = w.now;
	assert_int_equal(bl_faults_has(w.f, 0), -1);
	assert_int_equal(told_to(0, &version, &challenge), 0);
	assert_int_equal(version, 1);
	assert_int_equal(challenge, 0);
	assert_int_equal(told_to(0, &version, &challenge), ~0U);
	w.now += 10 * MS;
	assert_int_equal(told_to(0, &version, &challenge), 0); /* it has not answered */
	answers(0, 0, 0, 77);
	assert_int_equal(bl_faults_has(w.f, 0), 0);
	/* at once, since its challenge is known now */
	assert_int_equal(told_to(0, &version, &challenge), 0);
	assert_int_equal(challenge, 77);
	answers(0, boot, 1, 77);
	assert_int_equal(bl_faults_has(w.f, 0), 1);
	w.now += 999 * MS;
	assert_int_equal(told_to(0, &version, &challenge), ~0U);
	w.now += MS;
	assert_int_equal(told_to(0, &version, &challenge),
			 0); /* the list is repeated once a second */
	/* the arbiter has restarted */
	answers(0, 0, 0, 78);
	assert_int_equal(told_to(0, &version, &challenge), 0);
	assert_int_equal(challenge, 78);
	answers(0, boot, 1, 78);
	/* another list */
	w.avoids = false;
	run_for(100 * MS, NULL, 0);
	c = random_link();
	w.loss[c] = chance(1);
	assert_true(run_until(c, BL_FAULTS_BROKEN, 1000 * MS, &c, 1));
	assert_int_equal(told_to(1, &version, &challenge), 1);
	assert_int_equal(version, 2);
	assert_int_equal(bl_faults_has(w.f, 0), 1);
	answers(0, boot, 2, 78);
	assert_int_equal(bl_faults_has(w.f, 0), 2);
	/* An earlier service ran on a clock that was ahead: this one takes a later boot time. */
	answers(0, boot + 500, 9, 78);
	assert_int_equal(bl_faults_has(w.f, 0), 0);
	bl_faults_tick(w.f, w.now, &changed);
	assert_true(changed);
	assert_int_equal(told_to(0, &version, &challenge), 1);
	answers(0, boot + 501, version, 78);
	assert_int_equal(bl_faults_has(w.f, 0), version);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service__sporadic_losses_name_nobody),
		cmocka_unit_test(service__one_lossy_link),
		cmocka_unit_test(service__two_dead_links),
		cmocka_unit_test(service__a_hosts_link),
		cmocka_unit_test(service__a_lone_pair),
		cmocka_unit_test(service__hosts_restart_and_fall_silent),
		cmocka_unit_test(trial__again_and_again_then_good),
		cmocka_unit_test(input__refused_and_counted),
		cmocka_unit_test(list__until_each_arbiter_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
