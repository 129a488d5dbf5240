// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/recover/determine.c: failures of a small rack as a table, then random small graphs
 * against the definitions, computed the slow way (all flows are enumerated).
 *
 * A graph is written as links "low-high"; a report as "from>to:C" ("-" for C: none known), a
 * resumed way as "from>to:x", a way that is BEHIND as "from>to:b", one that was BEHIND when it fell
 * silent as "from>to:Cb". The result is compared as one line of text.
 */
#include "tests/unit/controller/recover/determine_net.h"

static unsigned int number(const char **s)
{
	char *end;
	unsigned long v = strtoul(*s, &end, 10);

	assert_true(end != *s);
	*s = end;
	return (unsigned int)v;
}

/* @hosts: the first nodes are hosts, each with one process. */
static void net_read(struct net *n, unsigned int hosts, const char *links)
{
	unsigned int i;

	memset(n, 0, sizeof(*n));
	net_wire(n);
	for (i = 0; i < NODES; i++)
		n->node[i] = (struct bl_det_node){ .kind = i < hosts ? BL_DET_HOST : BL_DET_SWITCH,
						   .processes = i < hosts };
	while (*links) {
		struct bl_det_link *l = &n->link[n->g.links++];

		assert_true(n->g.links <= LINKS);
		l->low = number(&links);
		assert_int_equal(*links++, '-');
		l->high = number(&links);
		assert_true(l->low < NODES && l->high < NODES);
		n->g.nodes = l->low >= n->g.nodes ? l->low + 1U : n->g.nodes;
		n->g.nodes = l->high >= n->g.nodes ? l->high + 1U : n->g.nodes;
		links += *links == ' ';
	}
}

static void net_report(struct net *n, const char *reports)
{
	while (*reports) {
		unsigned int from = number(&reports), to, i, dir;
		struct bl_det_way *w = NULL;

		assert_int_equal(*reports++, '>');
		to = number(&reports);
		assert_int_equal(*reports++, ':');
		for (i = 0; i < n->g.links; i++)
			for (dir = 0; dir < 2; dir++)
				if ((dir ? n->link[i].high : n->link[i].low) == from &&
				    (dir ? n->link[i].low : n->link[i].high) == to)
					w = &n->link[i].way[dir];
		assert_non_null(w);
		w->state = BL_DET_SILENT;
		if (*reports == '-' || *reports == 'x' || *reports == 'b') {
			w->state = *reports == 'x'   ? BL_DET_REMOVED
				   : *reports == 'b' ? BL_DET_BEHIND
						     : BL_DET_SILENT;
			w->c = BL_DET_NO_C;
			reports++;
		} else {
			char *end;

			w->c = strtoull(reports, &end, 10);
			w->behind = *end == 'b';
			reports = end + w->behind;
		}
		reports += *reports == ' ';
	}
}

static void net_state(struct net *n, const char *nodes, uint8_t state)
{
	while (*nodes) {
		n->node[number(&nodes)].state = state;
		nodes += *nodes == ' ';
	}
}

#define SAY(...) (at += (size_t)snprintf(out + at, size - at, __VA_ARGS__))
static void net_say(const struct net *n, char *out, size_t size)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} todos[] = { { "ask", BL_DET_ASK },
		      { "resume", BL_DET_RESUME },
		      { "fence", BL_DET_FENCE } };
	unsigned int i, dir, k;
	size_t at = 0;

	out[0] = 0;
	for (i = 0; i < n->g.nodes && i < NODES; i++) {
		const struct bl_det_found *f = &n->found[i];

		if (f->why == BL_DET_CORRECT || f->why == BL_DET_BEFORE) {
			assert_int_equal(f->t, 0);
			continue;
		}
		if (f->t == BL_DET_NO_C)
			SAY("%s %u:- ", bl_det_why_name(f->why), i);
		else
			SAY("%s %u:%llu ", bl_det_why_name(f->why), i, (unsigned long long)f->t);
	}
	for (i = 0; i < n->g.nodes; i++)
		if (n->found[i].in_set)
			SAY("set %u ", i);
	for (i = 0; i < n->g.nodes; i++)
		if (n->found[i].exposed)
			SAY("%s %u ", n->found[i].exposed == 1 ? "exposed" : "loose", i);
	for (k = 0; k < ARRAY_SIZE(todos); k++)
		for (i = 0; i < n->g.links; i++)
			for (dir = 0; dir < 2; dir++)
				if (n->todo[2 * i + dir] & todos[k].bit)
					SAY("%s %u>%u ", todos[k].name,
					    dir ? n->link[i].high : n->link[i].low,
					    dir ? n->link[i].low : n->link[i].high);
	SAY("%s%s%s", n->sum.separated ? "separated" : "", n->sum.held ? " held" : "",
	    n->sum.unknown ? " unknown" : "");
}
#undef SAY

/* hosts 0, 1 on leaf 4, hosts 2, 3 on leaf 5, spines 6, 7 */
#define RACK       "0-2 1-2"
#define LEAF_SPINE "0-4 1-4 2-5 3-5 4-6 4-7 5-6 5-7"
/* one host on each of leaves 3, 4, 5; spines 6, 7 */
#define THREE "0-3 1-4 2-5 3-6 3-7 4-6 4-7 5-6 5-7"
/* two pods: hosts 0..3, ToRs 4..7, spines 8, 9 (pod of 4, 5), 10, 11 (pod of 6, 7), cores 12, 13 */
#define PODS                                                                                   \
	"0-4 1-5 2-6 3-7 4-8 4-9 5-8 5-9 6-10 6-11 7-10 7-11 8-12 8-13 9-12 9-13 10-12 10-13 " \
	"11-12 11-13"
/* host 0 on both of the ToRs 3 and 4, host 1 on 3, host 2 on 4, spine 5 */
#define TWO_NICS "0-3 0-4 1-3 2-4 3-5 4-5"

static void bl_determine__table(void **state)
{
	static const struct {
		const char *name;
		unsigned int hosts;
		const char *links, *reports, *down, *gone, *roots, *want;
	} t[] = {
		{ "nothing happened", 4, LEAF_SPINE, "", "", "", "", "separated held" },
		{ "a host dies in a rack", 2, RACK, "0>2:1000", "", "", "2",
		  "cut-off 0:1000 set 2 resume 0>2 fence 2>0 separated held" },
		{ "a host dies in a leaf-spine", 4, LEAF_SPINE, "0>4:1000", "", "", "",
		  "cut-off 0:1000 set 4 resume 0>4 fence 4>0 separated held" },
		{ "a register that never got a C", 2, RACK, "0>2:-", "", "", "2",
		  "cut-off 0:- loose 1 resume 0>2 fence 2>0  unknown" },
		{ "a leaf dies", 4, LEAF_SPINE, "4>6:900 4>7:950", "", "", "",
		  "cut-off 0:950 cut-off 1:950 cut-off 4:950 set 6 set 7 resume 4>6 resume 4>7 "
		  "fence 6>4 fence 7>4 separated held" },
		{ "a leaf dies, its hosts report, too", 4, LEAF_SPINE,
		  "4>6:900 4>7:950 4>0:890 4>1:-", "", "", "",
		  "cut-off 0:950 cut-off 1:950 cut-off 4:950 set 6 set 7 resume 4>6 resume 4>7 "
		  "fence 6>4 fence 7>4 separated held" },
		{ "a leaf dies, one report is late: a link, at first", 4, LEAF_SPINE, "4>6:900", "",
		  "", "", "resume 4>6 separated held" },
		{ "a leaf dies, one report came before and was served", 4, LEAF_SPINE,
		  "4>6:x 4>7:950", "", "", "",
		  "cut-off 0:950 cut-off 1:950 cut-off 4:950 set 7 resume 4>7 fence 6>4 fence 7>4 "
		  "separated held" },
		{ "a leaf is down, one report is missing: one is enough for receivers behind both",
		  4, LEAF_SPINE, "4>6:900", "4", "", "",
		  "cut-off 0:900 cut-off 1:900 down 4:900 set 6 exposed 2 exposed 3 ask 4>7 resume "
		  "4>6 fence 6>4 fence 7>4  held" },
		{ "a leaf is down, nobody has reported", 4, LEAF_SPINE, "", "4", "", "",
		  "cut-off 0:- cut-off 1:- down 4:- loose 2 loose 3 ask 4>6 ask 4>7 fence 6>4 "
		  "fence 7>4  unknown" },
		{ "a spine dies", 4, LEAF_SPINE, "6>4:900 6>5:800", "", "", "",
		  "cut-off 6:900 resume 6>4 resume 6>5 fence 4>6 fence 5>6 separated held" },
		{ "a spine dies, one report is late", 4, LEAF_SPINE, "6>5:800", "", "", "",
		  "resume 6>5 separated held" },
		{ "a link dies, another path is left", 4, LEAF_SPINE, "4>6:900 6>4:700", "", "", "",
		  "resume 4>6 resume 6>4 separated held" },
		{ "a link is back and behind, the other one dies: what was sent before is covered "
		  "by neither",
		  4, LEAF_SPINE, "4>6:b 4>7:910", "", "", "",
		  "cut-off 0:910 cut-off 1:910 cut-off 4:910 set 7 ask 4>6 resume 4>7 fence 6>4 "
		  "fence 7>4 separated held" },
		{ "the same, and a host dies; what the spine had given says nothing of it", 4,
		  LEAF_SPINE, "4>6:b 0>4:870 6>5:950", "", "", "",
		  "cut-off 0:870 cut-off 6:950 set 4 ask 6>4 resume 0>4 resume 6>5 fence 4>0 fence "
		  "4>6 fence 5>6 separated held" },
		{ "the spine's input died while it was behind, and its leaf is down", 4, LEAF_SPINE,
		  "4>6:800b", "4", "", "",
		  "cut-off 0:800 cut-off 1:800 down 4:800 loose 2 loose 3 ask 4>7 resume 4>6 fence "
		  "6>4 fence 7>4 " },
		{ "the same, the spine was asked", 4, LEAF_SPINE, "4>6:890b 4>7:910", "", "", "",
		  "cut-off 0:910 cut-off 1:910 cut-off 4:910 set 7 resume 4>6 resume 4>7 fence 6>4 "
		  "fence 7>4 separated held" },
		{ "a link is back and behind, another leaf's link to the other spine dies: no flow "
		  "of before",
		  3, THREE, "3>6:b 7>4:910", "", "", "",
		  "torn 1:910 loose 0 loose 2 ask 1>4 resume 7>4 fence 4>1 " },
		{ "a link is back and behind, nothing else", 4, LEAF_SPINE, "4>6:b", "", "", "",
		  "separated held" },
		{ "two links die crosswise: no flow is left between two correct hosts", 3, THREE,
		  "3>6:900 6>3:900 4>7:910 7>4:910", "", "", "",
		  "torn 1:910 set 3 set 7 exposed 2 ask 1>4 resume 3>6 resume 6>3 resume 4>7 "
		  "resume 7>4 fence 4>1  held" },
		{ "the same, when its leaf has answered", 3, THREE,
		  "3>6:900 6>3:900 4>7:910 7>4:910 1>4:915", "", "", "",
		  "cut-off 1:915 set 4 resume 1>4 resume 3>6 resume 6>3 resume 4>7 resume 7>4 "
		  "fence 4>1 separated held" },
		{ "two hosts at once, one per leaf", 4, LEAF_SPINE, "0>4:1000 3>5:1100", "", "", "",
		  "cut-off 0:1000 cut-off 3:1100 set 4 set 5 resume 0>4 resume 3>5 fence 4>0 fence "
		  "5>3 separated held" },
		{ "two hosts at once of one leaf: each its own T", 4, LEAF_SPINE,
		  "0>4:1000 1>4:1100", "", "", "",
		  "cut-off 0:1000 cut-off 1:1100 set 4 resume 0>4 resume 1>4 fence 4>0 fence 4>1 "
		  "separated held" },
		{ "a leaf and a host of the other leaf", 4, LEAF_SPINE, "4>6:900 4>7:950 3>5:980",
		  "", "", "",
		  "cut-off 0:950 cut-off 1:950 cut-off 3:980 cut-off 4:950 set 5 set 6 set 7 "
		  "resume 3>5 resume 4>6 resume 4>7 fence 5>3 fence 6>4 fence 7>4 separated held" },
		{ "a host, then its leaf, before the host's failure was announced", 4, LEAF_SPINE,
		  "0>4:1000 4>6:900 4>7:950", "", "", "",
		  "cut-off 0:1000 cut-off 1:950 cut-off 4:950 set 6 set 7 resume 4>6 resume 4>7 "
		  "fence 6>4 fence 7>4 separated held" },
		{ "a host that was announced before; its leaf dies", 4, LEAF_SPINE,
		  "0>4:x 4>6:1900 4>7:1950", "", "0", "",
		  "cut-off 1:1950 cut-off 4:1950 set 6 set 7 resume 4>6 resume 4>7 fence 6>4 fence "
		  "7>4 separated held" },
		{ "a leaf, and links to the other one: who stands behind them separates", 4,
		  LEAF_SPINE, "4>6:900 6>5:880 7>5:990 7>4:1", "4", "", "",
		  "cut-off 0:990 cut-off 1:990 down 4:990 cut-off 6:880 cut-off 7:990 set 5 resume "
		  "6>5 resume 7>5 fence 5>6 fence 5>7 separated held" },
		{ "a leaf and a spine, three leaves", 3, THREE, "3>6:900 7>4:880 7>5:890", "3 7",
		  "", "",
		  "cut-off 0:900 down 3:900 down 7:890 set 4 set 5 set 6 resume 3>6 resume 7>4 "
		  "resume 7>5 fence 6>3 fence 4>7 fence 5>7 separated held" },
		{ "partition: both leaves see both spines dead; the larger part is the live one", 4,
		  LEAF_SPINE, "6>4:900 7>4:910 6>5:800 7>5:810", "", "", "4",
		  "cut-off 2:910 cut-off 3:910 cut-off 5:910 cut-off 6:900 cut-off 7:910 set 4 "
		  "resume 6>4 resume 7>4 fence 4>6 fence 4>7 separated held" },
		{ "partition, no root named, parts alike: the lowest switch", 4, LEAF_SPINE,
		  "6>4:900 7>4:910 6>5:800 7>5:810", "", "", "",
		  "cut-off 2:910 cut-off 3:910 cut-off 5:910 cut-off 6:900 cut-off 7:910 set 4 "
		  "resume 6>4 resume 7>4 fence 4>6 fence 4>7 separated held" },
		{ "contradiction: a leaf hears nobody, and is heard by all", 4, LEAF_SPINE,
		  "0>4:1000 1>4:1010 6>4:700 7>4:710", "", "", "",
		  "cut-off 0:1000 cut-off 1:1010 cut-off 4:710 loose 2 loose 3 ask 4>6 ask 4>7 "
		  "fence 6>4 fence 7>4 " },
		{ "the same after the spines were asked", 4, LEAF_SPINE,
		  "0>4:1000 1>4:1010 6>4:700 7>4:710 4>6:950 4>7:960", "", "", "",
		  "cut-off 0:1000 cut-off 1:1010 cut-off 4:960 set 6 set 7 resume 4>6 resume 4>7 "
		  "fence 6>4 fence 7>4 separated held" },
		{ "a host hears nothing, but still speaks", 2, RACK, "2>0:500", "", "", "2",
		  "cut-off 0:500 loose 1 ask 0>2 fence 2>0 " },
		{ "it was asked about", 2, RACK, "2>0:500 0>2:600", "", "", "2",
		  "cut-off 0:600 set 2 resume 0>2 fence 2>0 separated held" },
		{ "48 bits: before the wrap", 4, LEAF_SPINE,
		  "4>6:281474976710655 4>7:281474976710654", "", "", "",
		  "cut-off 0:281474976710655 cut-off 1:281474976710655 cut-off 4:281474976710655 "
		  "set 6 set 7 resume 4>6 resume 4>7 fence 6>4 fence 7>4 separated held" },
		{ "48 bits: 3 is later than 2^48 - 1", 4, LEAF_SPINE, "4>6:281474976710655 4>7:3",
		  "", "", "",
		  "cut-off 0:3 cut-off 1:3 cut-off 4:3 set 6 set 7 resume 4>6 resume 4>7 fence 6>4 "
		  "fence 7>4 separated held" },
		{ "48 bits: bits above them do not count", 4, LEAF_SPINE,
		  "4>6:281474976710659 4>7:2", "", "", "",
		  "cut-off 0:3 cut-off 1:3 cut-off 4:3 set 6 set 7 resume 4>6 resume 4>7 fence 6>4 "
		  "fence 7>4 separated held" },
		{ "a core dies in two pods", 4, PODS, "12>8:1 12>9:2 12>10:3 12>11:4", "", "", "",
		  "cut-off 12:4 resume 12>8 resume 12>9 resume 12>10 resume 12>11 fence 8>12 fence "
		  "9>12 fence 10>12 fence 11>12 separated held" },
		{ "a ToR dies in two pods", 4, PODS, "4>8:70 4>9:60", "", "", "",
		  "cut-off 0:70 cut-off 4:70 set 8 set 9 resume 4>8 resume 4>9 fence 8>4 fence 9>4 "
		  "separated held" },
		{ "a ToR and one of its spines: the core's reports stand in for the spine's", 4,
		  PODS, "4>9:60 8>12:40 8>13:75 8>5:50", "4", "", "",
		  "cut-off 0:75 down 4:75 cut-off 8:75 set 5 set 9 set 12 set 13 resume 4>9 resume "
		  "8>5 resume 8>12 resume 8>13 fence 9>4 fence 5>8 fence 12>8 fence 13>8 separated "
		  "held" },
		{ "a register behind a way that was resumed says nothing of who is behind that", 4,
		  PODS, "4>8:x 4>9:60 8>12:4000", "", "", "",
		  "cut-off 0:60 cut-off 4:60 set 9 resume 4>9 resume 8>12 fence 8>4 fence 9>4 "
		  "separated held" },
		{ "of two sets the near one stays", 2, "0-2 2-3 3-4 5-4 6-5 1-6 7-3 7-8 8-4",
		  "2>3:10 3>4:9", "", "", "4",
		  "cut-off 0:10 cut-off 2:10 set 3 resume 2>3 resume 3>4 fence 3>2 separated "
		  "held" },
		{ "a host on two ToRs loses one", 3, TWO_NICS, "3>0:5 3>5:7", "3", "", "",
		  "cut-off 1:7 down 3:7 set 0 set 5 resume 3>0 resume 3>5 fence 0>3 fence 5>3 "
		  "separated held" },
	};
	static struct net n;
	char out[2048];
	unsigned int i, bad = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const char *roots = t[i].roots;

		net_read(&n, t[i].hosts, t[i].links);
		net_report(&n, t[i].reports);
		net_state(&n, t[i].down, BL_DET_DOWN);
		net_state(&n, t[i].gone, BL_DET_GONE);
		while (*roots) {
			n.root[n.g.roots++] = number(&roots);
			roots += *roots == ' ';
		}
		assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), 0);
		net_say(&n, out, sizeof(out));
		if (strcmp(out, t[i].want)) {
			print_error("%s:\n\tis     %s\n\tshould %s\n", t[i].name, out, t[i].want);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

static void bl_determine__refuses_what_is_no_graph(void **state)
{
	static struct net n;
	unsigned int i;

	(void)state;
	for (i = 0; i < 11; i++) {
		net_read(&n, 2, RACK);
		switch (i) {
		case 0:
			n.link[1].low = 3;
			break;
		case 1:
			n.link[1].high = 3;
			break;
		case 2:
			n.link[1].low = 2;
			break;
		case 3:
			n.link[1] = (struct bl_det_link){ .low = 2, .high = 1 };
			break;
		case 4:
			n.link[0].way[1].state = BL_DET_WAY_STATES;
			break;
		case 5:
			n.node[1].kind = BL_DET_SWITCH + 1;
			break;
		case 6:
			n.node[1].state = BL_DET_GONE + 1;
			break;
		case 7:
			n.g.roots = 1, n.root[0] = 3;
			break;
		case 8:
			n.g.nodes = BL_DET_NODES_MAX + 1;
			break;
		case 9:
			n.link[0].way[0].state = BL_DET_WAY_STATES;
			break;
		default:
			break;
		}
		assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), i < 10 ? -2 : 0);
	}
	net_read(&n, 0, "");
	assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), 0);
}

static void bl_det_before__edges(void **state)
{
	static const struct {
		uint64_t a, b;
		bool want;
	} t[] = {
		{ 0, 0, false },
		{ 0, 1, true },
		{ 1, 0, false },
		{ (1ULL << 48) - 1, 0, true },
		{ 0, (1ULL << 48) - 1, false },
		{ 0, (1ULL << 47) - 1, true },
		{ (1ULL << 47) - 1, 0, false },
		{ 5, 5 + (1ULL << 47) + 1, false },
		{ 1ULL << 48, 1, true },
		{ BL_DET_NO_C, 0, true },
		{ 0, BL_DET_NO_C, false },
		{ BL_DET_NO_C, BL_DET_NO_C, false },
		{ BL_DET_NO_C, (1ULL << 48) - 1, true },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_det_before(t[i].a, t[i].b), t[i].want);
}

/* ---- random graphs, by enumeration of all flows ---- */

/*
 * Parts of the network by transitive closure: which nodes are linked, with hosts only at the ends.
 */
static void check_cut(const struct net *n)
{
	static bool to[NODES][NODES];
	unsigned int i, j, k, roots = 0;

	memset(to, 0, sizeof(to));
	for (i = 0; i < n->g.links; i++)
		if (n->link[i].way[0].state == BL_DET_LIVE &&
		    n->link[i].way[1].state == BL_DET_LIVE && !n->node[n->link[i].low].state &&
		    !n->node[n->link[i].high].state)
			to[n->link[i].low][n->link[i].high] = to[n->link[i].high][n->link[i].low] =
				true;
	for (i = 0; i < n->g.nodes; i++)
		to[i][i] = n->node[i].state == BL_DET_UP;
	for (k = 0; k < n->g.nodes; k++)
		for (i = 0; i < n->g.nodes && n->node[k].kind == BL_DET_SWITCH; i++)
			for (j = 0; j < n->g.nodes; j++)
				to[i][j] |= to[i][k] && to[k][j];
	for (i = 0; i < n->g.roots; i++)
		roots += n->node[n->root[i]].state == BL_DET_UP;
	for (i = 0; i < n->g.nodes; i++) {
		unsigned int correct = 0, switches = 0;
		bool in = false;

		for (j = 0; j < n->g.roots; j++)
			in |= to[n->root[j]][i];
		if (n->node[i].state != BL_DET_UP) {
			assert_int_equal(n->found[i].why, n->node[i].state == BL_DET_DOWN
								  ? BL_DET_TOLD
								  : BL_DET_BEFORE);
			continue;
		}
		if (roots) {
			assert_int_equal(n->found[i].why == BL_DET_CUT, !in);
			continue;
		}
		/*
		 * Without a root, the switches that are not cut off are one whole part, and the
		 * hosts that are not are those linked with it; or the part is one host alone.
		 */
		for (j = 0; j < n->g.nodes; j++) {
			if (n->node[j].state != BL_DET_UP || j == i)
				continue;
			if (n->found[i].why != BL_DET_CUT && n->node[i].kind == BL_DET_SWITCH)
				assert_int_equal(n->found[j].why != BL_DET_CUT, to[i][j]);
			correct += n->found[j].why != BL_DET_CUT;
			switches += n->found[j].why != BL_DET_CUT &&
				    n->node[j].kind == BL_DET_SWITCH;
		}
		if (n->found[i].why != BL_DET_CUT && n->node[i].kind == BL_DET_HOST)
			assert_true(switches || !correct);
	}
}

static void check_torn(const struct net *n)
{
	static bool to[NODES][NODES];
	unsigned int i, j, k, lost[NODES], worst;
	bool out[NODES];

	memset(to, 0, sizeof(to));
	for (i = 0; i < nflows; i++) {
		const struct flow *f = &flows[i];
		bool good = true;

		for (k = 0; k <= f->n; k++)
			good &= n->found[f->at[k]].why == BL_DET_CORRECT ||
				n->found[f->at[k]].why == BL_DET_TORN;
		for (k = 0; k < f->n; k++)
			good &= way_of(n, f->way[k])->state == BL_DET_LIVE;
		to[f->at[0]][f->at[f->n]] |= good;
	}
	for (i = 0; i < n->g.nodes; i++)
		out[i] = n->node[i].kind != BL_DET_HOST ||
			 (n->found[i].why != BL_DET_CORRECT && n->found[i].why != BL_DET_TORN);
	for (;;) {
		for (i = 0, worst = NODES; i < n->g.nodes; i++) {
			for (j = 0, lost[i] = 0; j < n->g.nodes; j++)
				lost[i] += i != j && !out[i] && !out[j] && (!to[i][j] || !to[j][i]);
			if (lost[i] && (worst == NODES || lost[i] > lost[worst] ||
					(lost[i] == lost[worst] &&
					 n->node[i].processes <= n->node[worst].processes)))
				worst = i;
		}
		if (worst == NODES)
			break;
		assert_int_equal(n->found[worst].why, BL_DET_TORN);
		out[worst] = true;
	}
	for (i = 0; i < n->g.nodes; i++)
		if (!out[i])
			assert_int_equal(n->found[i].why, BL_DET_CORRECT);
}

static bool holds_back(const struct bl_det_way *w)
{
	return w->state != BL_DET_REMOVED && w->state != BL_DET_BEHIND &&
	       !(w->state == BL_DET_SILENT && w->behind);
}

/* Flows over ways that hold C back, and nodes that were not announced before. */
static bool holds(const struct net *n, const struct flow *f, unsigned int ways)
{
	unsigned int k;

	for (k = 0; k < ways; k++)
		if (!holds_back(way_of(n, f->way[k])) || n->found[f->at[k]].why == BL_DET_BEFORE)
			return false;
	return true;
}

static bool told(const struct net *n, unsigned int w)
{
	return way_of(n, w)->state == BL_DET_SILENT && way_of(n, w)->c != BL_DET_NO_C;
}

static void check_t(const struct net *n)
{
	unsigned int i, k, unknown = 0;

	for (k = 0; k < n->g.nodes; k++) {
		uint64_t t = 0;

		if (n->node[k].kind != BL_DET_HOST || !is_new(n, k))
			continue;
		for (i = 0; i < nflows; i++) {
			const struct flow *f = &flows[i];

			/*
			 * the node before the last way may have been announced: its register still
			 * counts
			 */
			if (f->at[0] == k && told(n, f->way[f->n - 1]) && holds(n, f, f->n - 1) &&
			    way_of(n, f->way[f->n - 1])->c > t)
				t = way_of(n, f->way[f->n - 1])->c;
		}
		assert_int_equal(n->found[k].t, t ? t : BL_DET_NO_C);
		unknown += !t;
	}
	assert_int_equal(n->sum.unknown, unknown);
}

/*
 * Finds how the flows of failed hosts reach each host if the nodes of @set are those that report:
 * 0, 1, 2 as in struct bl_det_found.
 */
static void expose(const struct net *n, uint32_t set, uint8_t exposed[NODES])
{
	static bool over[NODES][NODES], past[NODES][NODES];
	unsigned int i, j, k;

	memset(over, 0, sizeof(over));
	memset(past, 0, sizeof(past));
	for (i = 0; i < nflows; i++) {
		const struct flow *f = &flows[i];
		bool cross = false;

		if (!is_new(n, f->at[0]) || !holds(n, f, f->n) ||
		    n->found[f->at[f->n]].why == BL_DET_BEFORE)
			continue;
		for (k = 0; k < f->n; k++)
			cross |= told(n, f->way[k]) && set >> f->at[k + 1] & 1;
		(cross ? over : past)[f->at[0]][f->at[f->n]] = true;
	}
	for (j = 0; j < n->g.nodes; j++) {
		exposed[j] = 0;
		for (i = 0; i < n->g.nodes && n->node[j].kind == BL_DET_HOST && !is_failed(n, j);
		     i++)
			if (past[i][j])
				exposed[j] = over[i][j] && exposed[j] < 2 ? 1
					     : over[i][j]                 ? exposed[j]
									  : 2;
	}
}

/** struct tally - How often each case was met. @least: sets that were as small as any. */
struct tally {
	unsigned int failures, sets, least, loose, exposed, torn;
};

static void check_set(const struct net *n, struct tally *t)
{
	uint8_t all[NODES], some[NODES];
	uint32_t set = 0, reporters = 0, sub, least = NODES, size = 0, most = 0;
	unsigned int i, dir, k, exposed = 0, loose = 0;

	for (i = 0; i < n->g.links; i++)
		for (dir = 0; dir < 2; dir++) {
			unsigned int to = dir ? n->link[i].low : n->link[i].high;

			if (told(n, 2 * i + dir) && !is_failed(n, to))
				reporters |= 1U << to;
		}
	for (i = 0; i < n->g.nodes && i < NODES; i++) {
		set |= (uint32_t)n->found[i].in_set << i;
		size += n->found[i].in_set;
	}
	assert_int_equal(n->sum.set, size);
	assert_int_equal(set & ~reporters, 0);
	expose(n, reporters, all);
	expose(n, set, some);
	for (i = 0; i < n->g.nodes; i++) {
		assert_int_equal(n->found[i].exposed, all[i]);
		assert_int_equal(some[i], all[i]);
		exposed += all[i] != 0;
		loose += all[i] == 2;
	}
	assert_int_equal(n->sum.exposed, exposed);
	assert_int_equal(n->sum.separated, !exposed);
	assert_int_equal(n->sum.held, !loose);
	/* without any node of the set another host is exposed */
	for (k = 0; k < n->g.nodes; k++)
		if (set >> k & 1) {
			expose(n, set & ~(1U << k), some);
			assert_int_not_equal(memcmp(some, all, n->g.nodes), 0);
		}
	/*
	 * A separating set exists if and only if some subset of the reporters is one, and no subset
	 * separates more hosts than all reporters.
	 */
	for (sub = reporters;; sub = (sub - 1) & reporters) {
		unsigned int safe = 0;

		expose(n, sub, some);
		for (i = 0; i < n->g.nodes; i++)
			safe += n->node[i].kind == BL_DET_HOST && !is_failed(n, i) && !some[i];
		most = safe > most ? safe : most;
		if (!memcmp(some, all, n->g.nodes) && (unsigned int)__builtin_popcount(sub) < least)
			least = (unsigned int)__builtin_popcount(sub);
		if (!sub)
			break;
	}
	for (i = 0, k = 0; i < n->g.nodes; i++)
		k += n->node[i].kind == BL_DET_HOST && !is_failed(n, i) && !n->found[i].exposed;
	assert_int_equal(k, most);
	assert_true(size >= least);
	t->sets += size > 0;
	t->least += size > 0 && size == least;
	t->exposed += exposed > 0;
	t->loose += loose > 0;
}

static void check_todo(const struct net *n)
{
	unsigned int w, asks = 0, resumes = 0;

	for (w = 0; w < 2 * n->g.links; w++) {
		unsigned int low = n->link[w / 2].low, high = n->link[w / 2].high,
			     from = w % 2 ? high : low, to = w % 2 ? low : high, want = 0;

		if (n->found[to].why == BL_DET_CORRECT && way_of(n, w)->state == BL_DET_SILENT)
			want |= BL_DET_RESUME;
		if (n->found[to].why == BL_DET_CORRECT && n->found[from].why != BL_DET_CORRECT &&
		    (way_of(n, w)->state == BL_DET_LIVE || way_of(n, w)->state == BL_DET_BEHIND))
			want |= BL_DET_ASK;
		if (n->found[from].why == BL_DET_CORRECT && is_new(n, to))
			want |= BL_DET_FENCE;
		assert_int_equal(n->todo[w], want);
		asks += (want & BL_DET_ASK) != 0;
		resumes += (want & BL_DET_RESUME) != 0;
	}
	assert_int_equal(n->sum.asks, asks);
	assert_int_equal(n->sum.resumes, resumes);
}

static void bl_determine__against_all_flows(void **state)
{
	static struct net n, again;
	struct rnd r = rnd_seeded("flows");
	struct tally t = { 0 };
	unsigned int i, k;

	(void)state;
	for (k = 0; k < 4000; k++) {
		net_random(&n, &r);
		walk_all(&n);
		memset(n.found, 0xee, sizeof(n.found)); /* what was in the memory is overwritten */
		memset(n.todo, 0xee, sizeof(n.todo));
		assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), 0);
		check_cut(&n);
		check_torn(&n);
		check_t(&n);
		check_set(&n, &t);
		check_todo(&n);
		for (i = 0; i < n.g.nodes; i++)
			t.torn += n.found[i].why == BL_DET_TORN;
		t.failures += n.sum.hosts > 0;
		again = n;
		net_wire(&again);
		assert_int_equal(bl_determine(&again.g, again.found, again.todo, &again.sum), 0);
		assert_memory_equal(again.todo, n.todo, 2 * n.g.links);
		for (i = 0; i < n.g.nodes; i++) {
			assert_int_equal(again.found[i].t, n.found[i].t);
			assert_int_equal(again.found[i].why, n.found[i].why);
		}
	}
	print_message("failures %u, torn %u, exposed %u, loose %u, sets %u of which as small as "
		      "any %u\n",
		      t.failures, t.torn, t.exposed, t.loose, t.sets, t.least);
	assert_true(t.failures > 500 && t.torn > 50 && t.exposed > 50 && t.loose > 20 &&
		    t.sets > 500 && t.least > t.sets / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_det_before__edges),
		cmocka_unit_test(bl_determine__table),
		cmocka_unit_test(bl_determine__refuses_what_is_no_graph),
		cmocka_unit_test(bl_determine__against_all_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
