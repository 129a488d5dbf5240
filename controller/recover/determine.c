// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See determine.h. A group is the hosts that have one link each, to the same switch, by a way in
 * the same state: their flows are the same, so that one host stands for all of them. The time taken
 * is (reports + groups of hosts) x ways, and for thinning the separating set (groups of failed
 * hosts) x reporters x ways.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/determine.h"

/*
 * How a flow reaches a node: still going up, or going down. Shifted by CROSSED: the same for flows
 * that have crossed the report of a correct node.
 */
enum { GOES_UP = 1, GOES_DOWN = 2, CROSSED = 2 };
#define ANY     (GOES_UP | GOES_DOWN)
#define NO_NODE UINT32_MAX
#define SLOTS   (2 * BL_DET_WAY_STATES) /* kinds of groups at a switch, see group_key() */

/** struct work - Memory of one call. Every array has one entry for each node if not noted. */
struct work {
	const struct bl_det_graph *g;
	struct bl_det_found *found;
	/* the links of node n are at[first[n]] to at[first[n + 1] - 1] */
	uint32_t *first;
	uint32_t *at;
	uint32_t *queue;    /* of a search: entries from @head to @tail are still to be visited */
	uint32_t *distance; /* from the closest failed host, in ways */
	uint32_t *group;    /* the host that stands for the flows of this one; NO_NODE: none */
	uint8_t *seen;      /* how the flows that are traced reach the node: bits as above */
	uint8_t *dropped;   /* 1: a reporter that the separating set does without */
	uint8_t *exposed;   /* as in struct bl_det_found */
	uint32_t head;
	uint32_t tail;
};

static bool has_failed(const struct bl_det_found *f)
{
	return f->why != BL_DET_CORRECT;
}

static bool fails_now(const struct bl_det_found *f)
{
	return f->why != BL_DET_CORRECT && f->why != BL_DET_BEFORE;
}

static uint32_t way_from(const struct bl_det_link *l, unsigned int dir)
{
	return dir == BL_DET_TO_HIGH ? l->low : l->high;
}

static uint32_t way_to(const struct bl_det_link *l, unsigned int dir)
{
	return dir == BL_DET_TO_HIGH ? l->high : l->low;
}

/*
 * Whether the register of the way holds, or held, back everything that its receiver gives to its
 * outputs.
 */
static bool carries(const struct bl_det_way *w)
{
	return w->state == BL_DET_LIVE || (w->state == BL_DET_SILENT && !w->behind);
}

static bool is_graph(const struct bl_det_graph *g)
{
	uint32_t i;

	if (g->nodes > BL_DET_NODES_MAX)
		return false;
	for (i = 0; i < g->links; i++) {
		const struct bl_det_link *l = &g->link[i];

		if (l->low >= g->nodes || l->high >= g->nodes || l->low == l->high ||
		    g->node[l->high].kind != BL_DET_SWITCH ||
		    l->way[0].state >= BL_DET_WAY_STATES || l->way[1].state >= BL_DET_WAY_STATES)
			return false;
	}
	for (i = 0; i < g->nodes; i++)
		if (g->node[i].kind > BL_DET_SWITCH || g->node[i].state > BL_DET_GONE)
			return false;
	for (i = 0; i < g->roots; i++)
		if (g->root[i] >= g->nodes)
			return false;
	return true;
}

static void index_links(struct work *w)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i;

	memset(w->first, 0, (g->nodes + 1) * sizeof(*w->first));
	for (i = 0; i < g->links; i++) {
		w->first[g->link[i].low + 1]++;
		w->first[g->link[i].high + 1]++;
	}
	for (i = 0; i < g->nodes; i++)
		w->first[i + 1] += w->first[i];
	/*
	 * Each entry of first[] counts down while the node's links are filled in from behind. It
	 * therefore holds the start of node n at first[n + 1] until the array is moved.
	 */
	for (i = g->links; i-- > 0;) {
		w->at[--w->first[g->link[i].low + 1]] = i;
		w->at[--w->first[g->link[i].high + 1]] = i;
	}
	memmove(w->first, w->first + 1, g->nodes * sizeof(*w->first));
	w->first[g->nodes] = 2 * g->links;
}

/* ---- who failed ---- */

/*
 * Marks all nodes that unbroken links join with the first @starts nodes of the queue as part @part.
 * A host forwards nothing, but the search goes on from a host that it starts at. Sets *@weight to
 * the number of processes in the part; if there are any, much more if a node there has reported
 * something, since a node that reports is alive. Returns the number of nodes.
 */
static uint32_t spread_part(struct work *w, uint32_t starts, uint32_t part, uint32_t *part_of,
			    uint64_t *weight)
{
	const struct bl_det_graph *g = w->g;
	uint32_t k;
	uint64_t spoke = 0;

	*weight = 0;
	w->tail = starts;
	for (w->head = 0; w->head < starts; w->head++)
		part_of[w->queue[w->head]] = part;
	for (w->head = 0; w->head < w->tail; w->head++) {
		uint32_t u = w->queue[w->head];

		*weight += g->node[u].kind == BL_DET_HOST ? g->node[u].processes : 0;
		if (g->node[u].kind == BL_DET_HOST && w->head >= starts)
			continue;
		for (k = w->first[u]; k < w->first[u + 1]; k++) {
			const struct bl_det_link *l = &g->link[w->at[k]];
			uint32_t v = l->low == u ? l->high : l->low;

			if (l->way[l->low == u ? BL_DET_TO_LOW : BL_DET_TO_HIGH].state ==
			    BL_DET_SILENT)
				spoke = 1ULL << 40;
			if (l->way[0].state != BL_DET_LIVE || l->way[1].state != BL_DET_LIVE ||
			    g->node[v].state != BL_DET_UP || part_of[v] == part)
				continue;
			part_of[v] = part;
			w->queue[w->tail++] = v;
		}
	}
	*weight += *weight ? spoke : 0;
	return w->tail;
}

static void find_cut(struct work *w, uint32_t *part_of)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, n, starts = 0, best = NO_NODE, best_n = 0, part = 0, kind;
	uint64_t weight, best_weight = 0;

	memset(part_of, 0, g->nodes * sizeof(*part_of));
	/*
	 * Part by part, switches first: a host with two links may belong to two parts, and must not
	 * be taken for a part of its own before they are found.
	 */
	for (kind = BL_DET_SWITCH; kind != UINT32_MAX; kind--)
		for (i = 0; i < g->nodes; i++) {
			if (part_of[i] || g->node[i].state != BL_DET_UP || g->node[i].kind != kind)
				continue;
			w->queue[0] = i;
			n = spread_part(w, 1, ++part, part_of, &weight);
			if (best != NO_NODE &&
			    (weight < best_weight || (weight == best_weight && n <= best_n)))
				continue;
			best = i;
			best_n = n;
			best_weight = weight;
		}
	memset(part_of, 0, g->nodes * sizeof(*part_of));
	for (i = 0; i < g->roots; i++) {
		if (g->node[g->root[i]].state != BL_DET_UP || part_of[g->root[i]])
			continue;
		part_of[g->root[i]] = 1;
		w->queue[starts++] = g->root[i];
	}
	if (!starts && best != NO_NODE)
		w->queue[starts++] = best;
	spread_part(w, starts, 1, part_of, &weight);
	for (i = 0; i < g->nodes; i++) {
		uint8_t state = g->node[i].state;

		w->found[i].why = state == BL_DET_GONE   ? BL_DET_BEFORE
				  : state == BL_DET_DOWN ? BL_DET_TOLD
				  : part_of[i]           ? BL_DET_CORRECT
							 : BL_DET_CUT;
	}
}

/* ---- flows ---- */

static void mark_reached(struct work *w, uint32_t node, uint32_t bits, uint32_t distance)
{
	uint32_t one;

	for (one = 1; one <= GOES_DOWN << CROSSED; one <<= 1) {
		if (!(bits & one & ~w->seen[node]))
			continue;
		w->seen[node] |= one;
		if (w->distance[node] > distance)
			w->distance[node] = distance;
		w->queue[w->tail++] = node << 4 | one;
	}
}

/*
 * Traces the flows from @host to all nodes that they reach, into @seen. @live: over live ways and
 * correct nodes. Otherwise over all ways that were not resumed, since a silent way holds C back as
 * well, and over all nodes that were not announced before.
 */
static void trace_flows(struct work *w, uint32_t host, bool live)
{
	const struct bl_det_graph *g = w->g;
	uint32_t k;

	memset(w->seen, 0, g->nodes);
	w->head = w->tail = 0;
	w->distance[host] = 0;
	mark_reached(w, host, GOES_UP, 0);
	while (w->head < w->tail) {
		uint32_t u = w->queue[w->head] >> 4, one = w->queue[w->head] & 15,
			 cross = one > ANY ? CROSSED : 0, phase = one >> cross, dir;

		w->head++;
		if (g->node[u].kind == BL_DET_HOST && u != host)
			continue;
		for (k = w->first[u]; k < w->first[u + 1]; k++) {
			const struct bl_det_link *l = &g->link[w->at[k]];
			uint32_t v, over = cross;

			dir = l->low == u ? BL_DET_TO_HIGH : BL_DET_TO_LOW;
			v = way_to(l, dir);
			if (dir == BL_DET_TO_HIGH && phase != GOES_UP)
				continue;
			if (!carries(&l->way[dir]) || (live && l->way[dir].state != BL_DET_LIVE))
				continue;
			if (live ? has_failed(&w->found[v]) : w->found[v].why == BL_DET_BEFORE)
				continue;
			if (l->way[dir].state == BL_DET_SILENT && l->way[dir].c != BL_DET_NO_C &&
			    !has_failed(&w->found[v]) && !w->dropped[v])
				over = CROSSED;
			mark_reached(w, v, (dir == BL_DET_TO_HIGH ? GOES_UP : GOES_DOWN) << over,
				     w->distance[u] + 1);
		}
	}
}

/*
 * Returns the kind of group that @host belongs to, and sets *@sw to its switch; NO_NODE if the host
 * has not exactly one link, and is a group by itself.
 */
static uint32_t group_key(const struct work *w, uint32_t host, uint32_t *sw)
{
	const struct bl_det_link *l;

	if (w->first[host + 1] - w->first[host] != 1)
		return NO_NODE;
	l = &w->g->link[w->at[w->first[host]]];
	*sw = l->high;
	return (carries(&l->way[BL_DET_TO_HIGH]) ? l->way[BL_DET_TO_HIGH].state : BL_DET_REMOVED) +
	       (l->way[BL_DET_TO_HIGH].c == BL_DET_NO_C) * BL_DET_WAY_STATES;
}

/*
 * Sets @group of each host for which @which returns @want. @slot: memory for SLOTS numbers for each
 * node.
 */
static void find_groups(struct work *w, uint32_t *slot, bool (*which)(const struct bl_det_found *),
			bool want)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, key, sw = 0;

	memset(slot, 0xff, SLOTS * sizeof(*slot) * g->nodes);
	for (i = 0; i < g->nodes; i++) {
		w->group[i] = NO_NODE;
		if (g->node[i].kind != BL_DET_HOST || which(&w->found[i]) != want)
			continue;
		w->group[i] = i;
		key = group_key(w, i, &sw);
		if (key == NO_NODE)
			continue;
		if (slot[SLOTS * sw + key] == NO_NODE)
			slot[SLOTS * sw + key] = i;
		w->group[i] = slot[SLOTS * sw + key];
	}
}

/* ---- hosts between which no flow is left ---- */

static bool bit_of(const uint8_t *bits, uint64_t row, uint32_t n, uint32_t i)
{
	uint64_t at = row * n + i;

	return bits[at >> 3] >> (at & 7) & 1;
}

/*
 * Marks hosts as TORN until any two that are left have flows both ways. Returns 0; -1: out of
 * memory.
 */
static int find_torn(struct work *w)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, j, rows = 0, worst, *row, *lost;
	uint8_t *bits;
	int rc = -1;

	for (i = 0; i < g->nodes; i++)
		rows += w->group[i] == i;
	bits = calloc(((uint64_t)rows * g->nodes + 7) / 8 + 1, 1);
	lost = calloc(2 * (size_t)g->nodes + 1, sizeof(*lost));
	if (!bits || !lost)
		goto out;
	row = lost + g->nodes;
	for (i = 0, rows = 0; i < g->nodes; i++) {
		if (w->group[i] != i)
			continue;
		row[i] = rows;
		memset(w->distance, 0xff, g->nodes * sizeof(*w->distance));
		trace_flows(w, i, true);
		for (j = 0; j < g->nodes; j++) {
			uint64_t at = (uint64_t)rows * g->nodes + j;

			/*
			 * The other hosts of the group reach host @i through the switch that they
			 * share if its way down is live; the flows from @i itself do not tell that.
			 */
			if (w->seen[j])
				bits[at >> 3] |= 1 << (at & 7);
		}
		for (j = w->first[i]; j < w->first[i + 1]; j++) {
			const struct bl_det_link *l = &g->link[w->at[j]];
			uint64_t at = (uint64_t)rows * g->nodes + i;

			bits[at >> 3] &= ~(1 << (at & 7));
			if (l->way[BL_DET_TO_LOW].state == BL_DET_LIVE && w->seen[l->high]) {
				bits[at >> 3] |= 1 << (at & 7);
				break;
			}
		}
		rows++;
	}
	for (i = 0; i < g->nodes; i++)
		for (j = 0; w->group[i] != NO_NODE && j < i; j++)
			if (w->group[j] != NO_NODE &&
			    (!bit_of(bits, row[w->group[i]], g->nodes, j) ||
			     !bit_of(bits, row[w->group[j]], g->nodes, i))) {
				lost[i]++;
				lost[j]++;
			}
	for (;;) {
		for (i = 0, worst = NO_NODE; i < g->nodes; i++) {
			if (!lost[i] || (worst != NO_NODE &&
					 (lost[i] < lost[worst] ||
					  (lost[i] == lost[worst] &&
					   g->node[i].processes > g->node[worst].processes))))
				continue;
			worst = i; /* of equal hosts the last */
		}
		if (worst == NO_NODE)
			break;
		w->found[worst].why = BL_DET_TORN;
		lost[worst] = 0;
		for (j = 0; j < g->nodes; j++)
			if (j != worst && w->group[j] != NO_NODE && !has_failed(&w->found[j]) &&
			    (!bit_of(bits, row[w->group[worst]], g->nodes, j) ||
			     !bit_of(bits, row[w->group[j]], g->nodes, worst)))
				lost[j]--;
	}
	rc = 0;
out:
	free(bits);
	free(lost);
	return rc;
}

/* ---- when ---- */

/*
 * Raises T of all nodes that fail now and whose flows cross way @dir of link @i. The search goes
 * against the flow, from where the way begins.
 */
static void raise_t(struct work *w, uint32_t i, unsigned int dir)
{
	const struct bl_det_graph *g = w->g;
	const uint64_t c = g->link[i].way[dir].c & ((1ULL << 48) - 1);
	uint32_t from = way_from(&g->link[i], dir), k;

	memset(w->seen, 0, g->nodes);
	w->head = w->tail = 0;
	/* Flows that still go up enter a way up; a way down is entered by both kinds. */
	mark_reached(w, from, dir == BL_DET_TO_HIGH ? GOES_UP : ANY, 0);
	while (w->head < w->tail) {
		uint32_t u = w->queue[w->head] >> 4, phase = w->queue[w->head] & 15;

		w->head++;
		for (k = w->first[u]; k < w->first[u + 1]; k++) {
			const struct bl_det_link *l = &g->link[w->at[k]];
			/* the way that is received at u */
			unsigned int d = l->high == u ? BL_DET_TO_HIGH : BL_DET_TO_LOW;
			uint32_t v = way_from(l, d);

			if (!carries(&l->way[d]) || w->found[v].why == BL_DET_BEFORE)
				continue;
			/*
			 * A flow that goes down at u came from above, going either way there. A
			 * flow that goes up at u came from below, going up; that ends at hosts.
			 */
			if (phase != (d == BL_DET_TO_LOW ? GOES_DOWN : GOES_UP))
				continue;
			mark_reached(w, v, d == BL_DET_TO_LOW ? ANY : GOES_UP, 0);
		}
	}
	for (k = 0; k < g->nodes; k++)
		if (fails_now(&w->found[k]) &&
		    w->seen[k] & (g->node[k].kind == BL_DET_HOST ? GOES_UP : ANY) &&
		    bl_det_before(w->found[k].t, c))
			w->found[k].t = c;
}

/* ---- the separating set ---- */

/* Finds how the flows from failed hosts reach each correct host, into @exposed. */
static void find_exposed(struct work *w)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, j;

	memset(w->exposed, 0, g->nodes);
	memset(w->distance, 0xff, g->nodes * sizeof(*w->distance));
	for (i = 0; i < g->nodes; i++) {
		if (w->group[i] != i)
			continue;
		trace_flows(w, i, false);
		for (j = 0; j < g->nodes; j++) {
			if (g->node[j].kind != BL_DET_HOST || has_failed(&w->found[j]) ||
			    !(w->seen[j] & ANY))
				continue;
			if (!(w->seen[j] >> CROSSED))
				w->exposed[j] = 2;
			else if (!w->exposed[j])
				w->exposed[j] = 1;
		}
	}
}

static void find_set(struct work *w, struct bl_det_sum *sum)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, j, dir, round, far = 0;

	memset(w->dropped, 0, g->nodes);
	find_exposed(w);
	for (i = 0; i < g->nodes; i++) {
		w->found[i].exposed = w->exposed[i];
		sum->exposed += w->exposed[i] != 0;
		sum->held &= w->exposed[i] != 2;
		if (w->distance[i] != UINT32_MAX && w->distance[i] > far)
			far = w->distance[i];
	}
	sum->separated = !sum->exposed;
	for (i = 0; i < g->links; i++)
		for (dir = 0; dir < 2; dir++) {
			const struct bl_det_link *l = &g->link[i];
			uint32_t to = way_to(l, dir);

			if (l->way[dir].state == BL_DET_SILENT && l->way[dir].c != BL_DET_NO_C &&
			    !has_failed(&w->found[to]) && w->distance[to] != UINT32_MAX)
				w->found[to].in_set = 1;
		}
	/* The most distant reporters are dropped first: the neighbours of the failed nodes stay. */
	for (round = far + 1; round-- > 0;)
		for (i = 0; i < g->nodes; i++) {
			if (!w->found[i].in_set || w->distance[i] != round)
				continue;
			w->dropped[i] = 1;
			find_exposed(w);
			for (j = 0; j < g->nodes && w->exposed[j] == w->found[j].exposed; j++)
				;
			w->dropped[i] = j == g->nodes;
			w->found[i].in_set = !w->dropped[i];
		}
	for (i = 0; i < g->nodes; i++)
		sum->set += w->found[i].in_set;
}

static void find_todo(const struct work *w, uint8_t *todo, struct bl_det_sum *sum)
{
	const struct bl_det_graph *g = w->g;
	uint32_t i, dir;

	for (i = 0; i < g->links; i++)
		for (dir = 0; dir < 2; dir++) {
			const struct bl_det_link *l = &g->link[i];
			const struct bl_det_found *from = &w->found[way_from(l, dir)],
						  *to = &w->found[way_to(l, dir)];
			uint8_t state = l->way[dir].state, *what = &todo[2 * i + dir];

			*what = 0;
			if (!has_failed(to) && state == BL_DET_SILENT)
				*what |= BL_DET_RESUME;
			if (!has_failed(to) && has_failed(from) && bl_det_rises(state))
				*what |= BL_DET_ASK;
			if (!has_failed(from) && fails_now(to))
				*what |= BL_DET_FENCE;
			sum->resumes += *what & BL_DET_RESUME ? 1 : 0;
			sum->asks += *what & BL_DET_ASK ? 1 : 0;
		}
}

int bl_determine(const struct bl_det_graph *g, struct bl_det_found *found, uint8_t *todo,
		 struct bl_det_sum *sum)
{
	struct work w = { .g = g, .found = found };
	uint32_t i, dir, *slot;
	size_t n = g->nodes;
	void *words, *bytes;
	int rc = -1;

	if (!is_graph(g))
		return -2;
	memset(sum, 0, sizeof(*sum));
	memset(found, 0, n * sizeof(*found));
	/* first, at, queue (a node can be reached in four ways), distance, group, slot */
	words = malloc((n + 1 + 2 * (size_t)g->links + 4 * n + n + n + SLOTS * n) *
		       sizeof(uint32_t));
	bytes = calloc(3 * n + 1, 1);
	if (!words || !bytes)
		goto out;
	w.first = words;
	w.at = w.first + n + 1;
	w.queue = w.at + 2 * (size_t)g->links;
	w.distance = w.queue + 4 * n;
	w.group = w.distance + n;
	slot = w.group + n;
	w.seen = bytes;
	w.dropped = w.seen + n;
	w.exposed = w.dropped + n;

	index_links(&w);
	find_cut(&w, w.distance);
	find_groups(&w, slot, has_failed, false);
	if (find_torn(&w))
		goto out;

	for (i = 0; i < g->nodes; i++) {
		if (!fails_now(&found[i]))
			continue;
		found[i].t = BL_DET_NO_C;
		sum->failed++;
		sum->hosts += g->node[i].kind == BL_DET_HOST;
	}
	memset(w.distance, 0xff, n * sizeof(*w.distance));
	for (i = 0; sum->failed && i < g->links; i++)
		for (dir = 0; dir < 2; dir++)
			if (g->link[i].way[dir].state == BL_DET_SILENT &&
			    g->link[i].way[dir].c != BL_DET_NO_C)
				raise_t(&w, i, dir);
	for (i = 0; i < g->nodes; i++)
		sum->unknown += g->node[i].kind == BL_DET_HOST && fails_now(&found[i]) &&
				found[i].t == BL_DET_NO_C;

	sum->held = 1;
	find_groups(&w, slot, fails_now, true);
	find_set(&w, sum);
	find_todo(&w, todo, sum);
	rc = 0;
out:
	free(words);
	free(bytes);
	return rc;
}

const char *bl_det_why_name(enum bl_det_why why)
{
#define BL_DET_NAME(sym, name) name,
	static const char *const names[] = { BL_DET_WHYS(BL_DET_NAME) };
#undef BL_DET_NAME

	return (unsigned int)why < BL_DET_WHY_COUNT ? names[why] : "?";
}
