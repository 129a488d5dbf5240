// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of fault isolation: core/fastpass/fault_core.h (counts and bounds) and
 * arbiter/faults/isolate.c (which links explain the losses). The service is in
 * test_faults_service.c.
 */
#include "tests/unit/arbiter/faults/faults_net.h"

/* ---- a host's counts ---- */

static void report__ranges_and_columns(void **state)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	static const struct {
		uint32_t peers, columns, packets;
	} t[] = { { 1, 1, 1 },  { 66, 1, 1 }, { 67, 1, 2 }, { 13, 5, 1 },
		  { 14, 5, 2 }, { 4, 65, 4 }, { 2, 33, 1 }, { 3, 33, 2 } };
	uint32_t i, k, n, entries;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		__u64 *v = calloc((size_t)t[i].peers * t[i].columns, 2 * sizeof(*v));
		struct bl_report r = { .v = v,
				       .peers = t[i].peers,
				       .columns = t[i].columns,
				       .table = TABLE,
				       .index = 0,
				       .boot = 5,
				       .at = 1000,
				       .took_ns = 3 };
		uint32_t next = 0, len;

		for (k = 0; k < t[i].peers * t[i].columns; k++) {
			v[2 * k] = k % 3 ? k + 1 : 0;
			v[2 * k + 1] = k % 3 != 1 ? 0x123456789abcULL + k : 0;
		}
		for (n = entries = 0; (len = bl_report_fill(&r, buf)); n++) {
			struct bl_fcp_pkt p;
			const struct bl_fcp_report *b;

			bl_fcp_seal(&params, 0, BL_FCP_REPORT, 0, n + 1, 0, 0, buf, len);
			assert_int_equal(bl_fcp_parse(buf, len, t[i].peers, &p), BL_FCP_R_OK);
			b = p.body;
			assert_int_equal(BL_BE16(b->first), next);
			next = BL_BE16(b->last) + 1U;
			for (k = 0; k < p.ncounts; k++) {
				uint32_t col = p.counts[k].path == BL_FCP_PATH_ANY
						       ? t[i].columns - 1
						       : p.counts[k].path,
					 at = BL_BE16(p.counts[k].peer) * t[i].columns + col;

				assert_int_equal(bl_get48(p.counts[k].sent), v[2 * at]);
				assert_int_equal(bl_get48(p.counts[k].came), v[2 * at + 1]);
				entries++;
			}
		}
		assert_int_equal(n, t[i].packets);
		assert_int_equal(next, t[i].peers);
		assert_int_equal(entries, t[i].peers * t[i].columns);
		/* counts that are 0 are not listed */
		memset(v, 0, (size_t)t[i].peers * t[i].columns * 2 * sizeof(*v));
		r.next = 0;
		assert_int_equal(bl_report_fill(&r, buf), 32 + 32);
		assert_int_equal(bl_report_fill(&r, buf), 0);
		free(v);
	}
}

static void parse__reports_and_lists_refused(void **state)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX + 8];
	struct bl_fcp_report *r = (void *)(buf + sizeof(struct bl_fcp_hdr));
	struct bl_fcp_count *c = (void *)(r + 1);
	struct bl_fcp_faults *f = (void *)r;
	struct bl_fcp_link *l = (void *)(f + 1);
	struct bl_fcp_pkt k;
	uint32_t i, len;

	(void)state;
	for (i = 0; i < 12; i++) {
		static const enum bl_fcp_reason want[] = { BL_FCP_R_OK,         BL_FCP_R_BAD_BODY,
							   BL_FCP_R_BAD_BODY,   BL_FCP_R_BAD_BODY,
							   BL_FCP_R_BAD_BODY,   BL_FCP_R_BAD_BODY,
							   BL_FCP_R_BAD_BODY,   BL_FCP_R_BAD_BODY,
							   BL_FCP_R_SHORT,      BL_FCP_R_BAD_LENGTH,
							   BL_FCP_R_BAD_LENGTH, BL_FCP_R_SHORT };

		memset(buf, 0, sizeof(buf));
		*r = (struct bl_fcp_report){ .index = BL_BE16(1),
					     .first = BL_BE16(2),
					     .last = BL_BE16(9),
					     .count = BL_BE16(3) };
		c[0] = (struct bl_fcp_count){ .peer = BL_BE16(2), .path = 255 };
		c[1] = (struct bl_fcp_count){ .peer = BL_BE16(9), .path = 0 };
		c[2] = (struct bl_fcp_count){ .peer = BL_BE16(9), .path = 1 };
		len = 32 + 32 + 48;
		switch (i) {
		case 1:
			r->index = BL_BE16(10);
			break; /* no such host */
		case 2:
			r->last = BL_BE16(10);
			break; /* no such peer */
		case 3:
			r->first = BL_BE16(3);
			break; /* the first count is outside */
		case 4:
			r->last = BL_BE16(8);
			break; /* the last count is outside */
		case 5:
			c[2].path = 0;
			break; /* twice the same */
		case 6:
			c[1].peer = BL_BE16(1);
			break; /* out of order */
		case 7:
			c[1].reserved = 1;
			break;
		case 8:
			len--;
			break;
		case 9:
			len++;
			break;
		case 10:
			r->count = BL_BE16(BL_FCP_COUNTS_MAX + 1);
			break;
		case 11:
			len = 63;
			break;
		}
		bl_fcp_seal(&params, 0, BL_FCP_REPORT, 0, 1, 0, 0, buf, len);
		assert_int_equal(bl_fcp_parse(buf, len, 10, &k), want[i]);
	}
	for (i = 0; i < 5; i++) {
		static const enum bl_fcp_reason want[] = { BL_FCP_R_OK, BL_FCP_R_BAD_BODY,
							   BL_FCP_R_SHORT, BL_FCP_R_BAD_LENGTH,
							   BL_FCP_R_BAD_LENGTH };

		memset(buf, 0, sizeof(buf));
		*f = (struct bl_fcp_faults){ .count = BL_BE16(2) };
		l[1].way = i == 1 ? 2 : 1;
		len = i == 2 ? 63 : i == 3 ? 65 : 64;
		if (i == 4)
			f->count = BL_BE16(BL_FCP_LINKS_MAX + 1);
		bl_fcp_seal(&params, 0, BL_FCP_FAULTS, 0, 1, 0, 0, buf, len);
		assert_int_equal(bl_fcp_parse(buf, len, 10, &k), want[i]);
	}
	bl_fcp_seal(&params, 0, BL_FCP_HEARD, 0, 0, 0, 0, buf, 48);
	assert_int_equal(bl_fcp_parse(buf, 48, 10, &k), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_parse(buf, 47, 10, &k), BL_FCP_R_SHORT);
	assert_int_equal(bl_fcp_parse(buf, 49, 10, &k), BL_FCP_R_BAD_LENGTH);
}

static void seq__each_once_and_boots_forward(void **state)
{
	static const struct {
		uint64_t boot;
		uint32_t seq;
		enum bl_fcp_reason want;
		int fresh;
	} t[] = { { 0, 1, BL_FCP_R_OLD, 0 },        { 10, 5, BL_FCP_R_OK, 1 },
		  { 10, 5, BL_FCP_R_DUPLICATE, 0 }, { 10, 6, BL_FCP_R_OK, 0 },
		  { 10, 4, BL_FCP_R_OK, 0 },        { 10, 4, BL_FCP_R_DUPLICATE, 0 },
		  { 10, 5, BL_FCP_R_DUPLICATE, 0 }, { 10, 70, BL_FCP_R_OK, 0 },
		  { 10, 6, BL_FCP_R_OLD, 0 },       { 10, 7, BL_FCP_R_OK, 0 },
		  { 10, 69, BL_FCP_R_OK, 0 },       { 9, 71, BL_FCP_R_OLD, 0 },
		  { 11, 1, BL_FCP_R_OK, 1 },        { 10, 72, BL_FCP_R_OLD, 0 },
		  { 11, 200, BL_FCP_R_OK, 0 },      { 11, 136, BL_FCP_R_OLD, 0 },
		  { 11, 137, BL_FCP_R_OK, 0 } };
	struct bl_fault_seq s = { 0 };
	uint32_t i;
	int fresh;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(bl_fault_seq_take(&s, t[i].boot, t[i].seq, &fresh), t[i].want);
		if (t[i].boot)
			assert_int_equal(fresh, t[i].fresh);
	}
}

/* ---- bounds ---- */

struct one {
	struct bl_fault_pair p;
	struct bl_fault_col c[3];
	struct bl_fault_rules r;
};

static void one_new(struct one *o)
{
	memset(o, 0, sizeof(*o));
	o->p.cols = o->c;
	o->p.n = 3;
	bl_fault_rules_set(&o->r, 10 * MS, 2 * MS, 50, 1); /* generations of 55 ms and 2.75 s */
}

static void told(struct one *o, uint64_t at, uint64_t s0, uint64_t s1, uint64_t any)
{
	o->c[0].sent = s0;
	o->c[1].sent = s1;
	o->c[2].sent = any;
	bl_fault_sent(&o->p, at);
}

static int heard(struct one *o, uint64_t at, uint64_t c0, uint64_t c1, uint64_t any)
{
	o->c[0].came = c0;
	o->c[1].came = c1;
	o->c[2].came = any;
	return bl_fault_came(&o->p, at, &o->r, at);
}

static void bounds__the_example(void **state)
{
	struct one o;

	(void)state;
	one_new(&o);
	assert_int_equal(heard(&o, 9 * MS, 990, 0, 0), 0);
	told(&o, 10 * MS, 1000, 0, 0);
	assert_int_equal(o.p.cut_ns, 10 * MS);
	assert_int_equal(heard(&o, 12 * MS - 1, 1004, 0, 0), 0); /* some may be under way */
	assert_int_equal(heard(&o, 19 * MS, 1005, 0, 0), 1);
	assert_int_equal(o.c[0].base[0].least, -5);
	assert_int_equal(o.c[0].base[0].most, 10);
	assert_int_equal(o.c[0].win_sent[0], 0);
	told(&o, 30 * MS, 3000, 0, 0);
	assert_int_equal(heard(&o, 32 * MS, 2200, 0, 0), 1); /* late enough */
	assert_int_equal(o.c[0].win_sent[0], 2000);
	assert_int_equal(o.c[0].win_least[0], 790);
	assert_int_equal(o.c[0].win_most[0], 2000); /* 3000 - 1005 came before the cut, + 5 */
	/* frames that are sent later hide losses */
	told(&o, 40 * MS, 3000, 0, 0);
	assert_int_equal(heard(&o, 50 * MS, 2900, 0, 0), 1);
	assert_int_equal(o.c[0].win_least[0], 90);
	assert_int_equal(o.c[0].win_most[0], 805);
	/* no cut without both, or against the order of time */
	one_new(&o);
	told(&o, 10 * MS, 1000, 0, 0);
	assert_int_equal(o.p.cut_ns, 0);
	heard(&o, 20 * MS, 990, 0, 0);
	told(&o, 20 * MS - 1, 1000, 0, 0);
	assert_int_equal(o.p.cut_ns, 0);
	told(&o, 20 * MS, 1000, 0, 0);
	assert_int_equal(o.p.cut_ns, 20 * MS);
	told(&o, 21 * MS, 2000, 0, 0); /* one side has come: it stays */
	assert_int_equal(o.c[0].cut_sent, 1000);
}

/* Makes a cut at @at with exact counts. */
static void cut(struct one *o, uint64_t at, uint64_t sent, uint64_t came)
{
	heard(o, at, came, 0, 0);
	told(o, at, sent, 0, 0);
	assert_int_equal(heard(o, at + 2 * MS, came, 0, 0), 1);
}

static void window__of_one_to_two_generations(void **state)
{
	struct one o;
	uint64_t g;

	(void)state;
	one_new(&o);
	g = o.r.gen_ns[0];
	assert_int_equal(g, 55 * MS);
	assert_int_equal(o.r.gen_ns[1], 2750 * MS);
	cut(&o, 10 * g, 100, 100);
	cut(&o, 11 * g - 3 * MS, 300, 200);
	assert_int_equal(o.c[0].win_sent[0], 200);
	/* the first cut of a generation: the window begins where the last generation did */
	cut(&o, 11 * g, 400, 200);
	assert_int_equal(o.c[0].win_sent[0], 300);
	assert_int_equal(o.c[0].win_least[0], 200);
	cut(&o, 12 * g, 500, 250);
	assert_int_equal(o.c[0].win_sent[0], 100); /* from the cut at 11 */
	assert_int_equal(o.c[0].win_least[0], 50);
	cut(&o, 14 * g, 900, 300); /* a generation without a cut: what was before is dropped */
	assert_int_equal(o.c[0].win_sent[0], 0);
	assert_int_equal(o.c[0].win_least[0], 0);
	assert_int_equal(o.c[0].win_sent[1], 800); /* the long window has it all */
	bl_fault_forget(&o.p, 0);
	assert_int_equal(o.c[0].win_sent[1], 0);
	assert_int_equal(o.c[0].sent, 900);
	cut(&o, 14 * g + 5 * MS, 1000, 300);
	assert_int_equal(o.c[0].win_sent[1], 0); /* the window begins here */
	bl_fault_forget(&o.p, 1);
	assert_int_equal(o.c[0].sent | o.c[0].came | o.p.sent_ns | o.p.came_ns, 0);
}

static void judge__edges(void **state)
{
	static const struct {
		uint32_t scale;
		uint64_t sent;
		int64_t least, most, any;
		enum bl_fault_verdict want;
	} t[] = { { 0, 49, 49, 49, 0, BL_FAULT_UNKNOWN },
		  { 0, 50, 25, 50, 0, BL_FAULT_BAD },
		  { 0, 50, 24, 50, 0, BL_FAULT_UNKNOWN },
		  { 0, 50, 0, 24, 0, BL_FAULT_GOOD },
		  { 0, 50, 0, 25, 0, BL_FAULT_UNKNOWN },
		  { 0, 49, 0, 0, 0, BL_FAULT_UNKNOWN },
		  { 1, 50, 10, 10, 0, BL_FAULT_BAD },
		  { 1, 50, 9, 9, 0, BL_FAULT_UNKNOWN },
		  { 1, 1000, 10, 12, 0, BL_FAULT_BAD },
		  { 1, 1001, 10, 12, 0, BL_FAULT_UNKNOWN },
		  { 1, 399, 0, 0, 0, BL_FAULT_UNKNOWN },
		  { 1, 400, -3, 3, 0, BL_FAULT_GOOD },
		  { 1, 400, 0, 4, 0, BL_FAULT_UNKNOWN },
		  { 1, 1000, 100, 100, -90, BL_FAULT_BAD },
		  { 1, 1000, 100, 100, -91, BL_FAULT_UNKNOWN },
		  { 1, 1000, 100, 100, 90, BL_FAULT_BAD } };
	struct one o;
	uint32_t i, s;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		s = t[i].scale;
		one_new(&o);
		o.p.gen[s] = 7;
		o.c[0].win_sent[s] = t[i].sent;
		o.c[0].win_least[s] = t[i].least;
		o.c[0].win_most[s] = t[i].most;
		o.c[2].win_most[s] = t[i].any;
		if (bl_fault_judge(&o.p, 0, s, &o.r, 7 * o.r.gen_ns[s]) != t[i].want)
			fail_msg("row %u", i);
		assert_int_equal(bl_fault_judge(&o.p, 0, s, &o.r, 9 * o.r.gen_ns[s] - 1),
				 t[i].want);
		/* too old */
		assert_int_equal(bl_fault_judge(&o.p, 0, s, &o.r, 9 * o.r.gen_ns[s]),
				 BL_FAULT_UNKNOWN);
		o.c[0].sticky = 1;
		assert_int_equal(bl_fault_judge(&o.p, 0, s, &o.r, 9 * o.r.gen_ns[s]), BL_FAULT_BAD);
	}
}

/* ---- which links ---- */

/*
 * Makes the flows of every host to every other one on all paths; those through a broken component
 * are bad.
 */
static uint32_t flows_of(const struct topo *t, const uint32_t *broken, uint32_t nbroken,
			 struct bl_iso_flow *f)
{
	uint32_t s, d, p, i, k, n = 0, out[BL_ISO_COMPONENTS];

	for (s = 0; s < t->net.endpoints; s++)
		for (d = 0; d < t->net.endpoints; d++)
			for (p = 0;
			     p < (t->rack_of[s] == t->rack_of[d] ? 1 : t->net.paths) && s != d;
			     p++) {
				unsigned int nt;

				f[n] = (struct bl_iso_flow){
					.src = (uint16_t)s,
					.dst = (uint16_t)d,
					.path = (uint8_t)(t->rack_of[s] == t->rack_of[d]
								  ? t->net.paths
								  : p),
					.verdict = BL_FAULT_GOOD
				};
				nt = bl_iso_through(&t->net, &f[n], out);
				for (i = 0; i < nt; i++)
					for (k = 0; k < nbroken; k++)
						if (out[i] == broken[k])
							f[n].verdict = BL_FAULT_BAD;
				n++;
			}
	return n;
}

static struct bl_iso_flow many[HOSTS_MAX * HOSTS_MAX * 5];

static uint32_t find(const struct topo *t, uint32_t n, struct bl_iso_named *out)
{
	uint8_t *good = malloc(t->parts);
	uint32_t unexplained;
	int found = bl_iso_find(&t->net, many, n, out, t->parts, good, &unexplained);

	free(good);
	assert_true(found >= 0);
	assert_int_equal(unexplained, 0);
	return (uint32_t)found;
}

static bool is_named(const struct bl_iso_named *out, uint32_t n, uint32_t c)
{
	while (n--)
		if (out[n].component == c)
			return true;
	return false;
}

static void number__there_and_back(void **state)
{
	struct rnd r = rnd_seeded("number");
	struct topo t;
	uint32_t c, who, path, i;

	(void)state;
	for (i = 0; i < 20; i++) {
		topo_random(&t, &r, 1);
		for (c = 0; c < t.parts; c++) {
			enum bl_iso_kind kind = bl_iso_what(&t.net, c, &who, &path);

			assert_int_equal(bl_iso_number(&t.net, kind, who, path), c);
			assert_true(kind < BL_ISO_KIND_COUNT && path < t.net.paths &&
				    (who < t.net.racks || kind <= BL_ISO_HOST_DOWN));
		}
	}
}

/* Whichever single component is broken, it is named, and nothing else is. */
static void isolate__every_single_fault(void **state)
{
	struct rnd r = rnd_seeded("single");
	struct bl_iso_named out[256];
	struct topo t;
	uint32_t i, c, n;

	(void)state;
	for (i = 0; i < 10; i++) {
		topo_random(&t, &r, 3);
		for (c = 0; c < t.parts; c++) {
			n = find(&t, flows_of(&t, &c, 1, many), out);
			if (n != 1 || out[0].component != c || out[0].one_of != 1)
				fail_msg("%u racks, %u paths, component %u broken: %u named, the "
					 "first %u",
					 t.net.racks, t.net.paths, c, n, out[0].component);
		}
		assert_int_equal(find(&t, flows_of(&t, NULL, 0, many), out), 0);
	}
}

static void isolate__two_links(void **state)
{
	struct rnd r = rnd_seeded("double");
	struct bl_iso_named out[256];
	struct topo t;
	uint32_t i, n, b[2], links;

	(void)state;
	for (i = 0; i < 2000; i++) {
		topo_random(&t, &r, 4);
		links = 2 * t.net.endpoints + 2 * t.net.racks * t.net.paths;
		b[0] = rnd_below(&r, links);
		do {
			b[1] = rnd_below(&r, links);
		} while (b[1] == b[0]);
		n = find(&t, flows_of(&t, b, 2, many), out);
		if (n != 2 || !is_named(out, n, b[0]) || !is_named(out, n, b[1]))
			fail_msg("%u racks, %u paths, %u hosts: %u and %u broken, %u named: %u %u",
				 t.net.racks, t.net.paths, t.net.endpoints, b[0], b[1], n,
				 out[0].component, out[1].component);
	}
}

/*
 * Any flows may be missing or without evidence: what is named explains all losses, and no good flow
 * passes through it.
 */
static void isolate__what_is_known_of_some_flows_only(void **state)
{
	struct rnd r = rnd_seeded("some");
	struct bl_iso_named out[256];
	struct topo t;
	uint32_t i, k, j, n, m, b[2], thru[BL_ISO_COMPONENTS];

	(void)state;
	for (i = 0; i < 2000; i++) {
		uint32_t keep = 1 + rnd_below(&r, 100);

		topo_random(&t, &r, 2);
		b[0] = rnd_below(&r, t.parts);
		b[1] = rnd_below(&r, t.parts);
		m = flows_of(&t, b, 2, many);
		for (k = 0; k < m; k++)
			if (rnd_below(&r, 100) >= keep)
				many[k].verdict = BL_FAULT_UNKNOWN;
		n = find(&t, m, out);
		for (k = 0; k < m; k++) {
			unsigned int nt = bl_iso_through(&t.net, &many[k], thru);
			bool hit = false;

			for (j = 0; j < nt; j++)
				hit |= is_named(out, n, thru[j]);
			if (many[k].verdict == BL_FAULT_GOOD)
				assert_false(hit);
			if (many[k].verdict == BL_FAULT_BAD)
				assert_true(hit);
		}
		for (k = 0; k < n; k++) {
			for (j = m = 0; j < n; j++)
				m += out[j].of == out[k].of;
			assert_int_equal(m, out[k].one_of);
			assert_true(out[k].flows > 0);
		}
	}
}

static void isolate__two_racks_cannot_be_told_apart(void **state)
{
	struct topo t = { .net = { .endpoints = 4, .racks = 2, .paths = 2 },
			  .rack_of = { 0, 0, 1, 1 } };
	struct bl_iso_named out[64];
	uint32_t up, n;

	(void)state;
	t.net.rack_of = t.rack_of;
	t.parts = bl_iso_components(&t.net);
	up = bl_iso_number(&t.net, BL_ISO_UP, 0, 1);
	n = find(&t, flows_of(&t, &up, 1, many), out);
	assert_int_equal(n, 2);
	assert_true(is_named(out, n, up) &&
		    is_named(out, n, bl_iso_number(&t.net, BL_ISO_DOWN, 1, 1)));
	assert_int_equal(out[0].one_of, 2);
	assert_int_equal(out[0].host | out[1].host, 0);
	/* one flow alone: all of its links, and no switch */
	many[0] = (struct bl_iso_flow){ .src = 0, .dst = 2, .path = 1, .verdict = BL_FAULT_BAD };
	n = find(&t, 1, out);
	assert_int_equal(n, 4);
	assert_int_equal(out[3].one_of, 4);
	assert_int_equal(out[3].host, 1);
}

static void isolate__conflicts_name_nobody(void **state)
{
	struct topo t = { .net = { .endpoints = 4, .racks = 2, .paths = 1 },
			  .rack_of = { 0, 0, 1, 1 } };
	struct bl_iso_named out[64];
	uint8_t good[64];
	uint32_t unexplained;

	(void)state;
	t.net.rack_of = t.rack_of;
	many[0] = (struct bl_iso_flow){ .src = 0, .dst = 2, .path = 0, .verdict = BL_FAULT_BAD };
	many[1] = (struct bl_iso_flow){ .src = 0, .dst = 2, .path = 0, .verdict = BL_FAULT_GOOD };
	assert_int_equal(bl_iso_find(&t.net, many, 2, out, 64, good, &unexplained), 0);
	assert_int_equal(unexplained, 1);
	/* between racks on an unknown path no link can be named */
	many[0].path = 1;
	assert_int_equal(bl_iso_find(&t.net, many, 1, out, 64, good, &unexplained), 0);
	assert_int_equal(unexplained, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report__ranges_and_columns),
		cmocka_unit_test(parse__reports_and_lists_refused),
		cmocka_unit_test(seq__each_once_and_boots_forward),
		cmocka_unit_test(bounds__the_example),
		cmocka_unit_test(window__of_one_to_two_generations),
		cmocka_unit_test(judge__edges),
		cmocka_unit_test(number__there_and_back),
		cmocka_unit_test(isolate__every_single_fault),
		cmocka_unit_test(isolate__two_links),
		cmocka_unit_test(isolate__what_is_known_of_some_flows_only),
		cmocka_unit_test(isolate__two_racks_cannot_be_told_apart),
		cmocka_unit_test(isolate__conflicts_name_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
