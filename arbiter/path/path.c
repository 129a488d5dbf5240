/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path selection: the greedy choice and the chains that repair it.
 *
 * A chain. Packet x from rack u to rack v finds no path on which both racks have room. u has room
 * on path a, v on path b. x takes a; now v receives one packet too many on a. One of the other
 * packets there, from w, changes to b, where v has room. If w has room on b, the chain ends; else
 * one of w's packets on b changes to a, and its destination is the next v. No packet changes twice
 * in one chain, so it ends. Counting on both sides shows that the chain always finds a next packet,
 * unless dead paths are in the way: then it is undone, and the next pair (a, b) is tried.
 */
#include <stdlib.h>
#include <string.h>

#include "arbiter/path/path.h"
#include "arbiter/path/path_priv.h"

#define FULL 0x7fff

void bl_path_free(struct bl_path *p)
{
	int i;

	if (!p)
		return;
	free(p->out);
	free(p->in);
	free(p->usable);
	free(p->stamp);
	free(p->flip);
	for (i = 0; i < 2; i++) {
		free(p->mate[i]);
		free(p->room[i]);
		free(p->start[i]);
		free(p->list[i]);
	}
	free(p->order);
	free(p->spare);
	free(p->pending);
	free(p->side);
	free(p->left);
	free(p);
}

static size_t greedy_plain(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			   uint8_t *path)
{
	size_t i, nleft = 0;
	uint32_t k;

	for (i = 0; i < n; i++) {
		uint16_t *o = &p->out[(size_t)src[i] * p->lanes],
			 *d = &p->in[(size_t)dst[i] * p->lanes];
		uint32_t best = BL_PATH_NONE, least = p->cap;

		for (k = 0; k < p->paths; k++) {
			uint32_t load = o[k] > d[k] ? o[k] : d[k];

			if (load < least && path_works(p, src[i], dst[i], k)) {
				least = load;
				best = k;
			}
		}
		path[i] = (uint8_t)best;
		if (best == BL_PATH_NONE) {
			p->left[nleft++] = (uint16_t)i;
			continue;
		}
		o[best]++;
		d[best]++;
	}
	return nleft;
}

/*
 * Many paths: the set of paths on which a rack has room is one word for each direction, and the
 * lowest path in both sets is taken.
 */
static size_t greedy_many(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			  uint8_t *path)
{
	const uint64_t all = p->paths == 64 ? ~0ULL : (1ULL << p->paths) - 1;
	size_t i, nleft = 0;
	uint32_t r, k;

	for (r = 0; r < p->racks; r++)
		p->room[0][r] = p->room[1][r] = all;
	for (i = 0; i < n; i++) {
		const size_t s = src[i], d = dst[i];
		uint64_t both = p->room[0][s] & p->room[1][d];

		if (p->usable)
			both &= p->usable[s * p->racks + d];
		if (!both) {
			path[i] = BL_PATH_NONE;
			p->left[nleft++] = (uint16_t)i;
			continue;
		}
		k = (uint32_t)__builtin_ctzll(both);
		path[i] = (uint8_t)k;
		p->room[0][s] &= ~((uint64_t)(++p->out[s * p->lanes + k] == p->cap) << k);
		p->room[1][d] &= ~((uint64_t)(++p->in[d * p->lanes + k] == p->cap) << k);
	}
	return nleft;
}

struct bl_path *bl_path_new(uint32_t racks, uint32_t paths, uint32_t cap, enum bl_path_how how,
			    const char **why)
{
	const size_t most = BL_PATH_PACKETS_MAX + 1;
	struct bl_path *p;
	int i;

	*why = !racks || racks > BL_PATH_RACKS_MAX   ? "path selection has 1 to 1024 racks"
	       : !paths || paths > BL_PATH_PATHS_MAX ? "there are 1 to 64 paths"
	       : !cap || cap > BL_PATH_CAP_MAX       ? "a path carries 1 to 4095 packets a slot"
						     : NULL;
	if (*why)
		return NULL;
	*why = "out of memory";
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->racks = racks;
	p->paths = paths;
	p->lanes = (paths + 7) / 8 * 8;
	p->cap = cap;
	p->how = how;
	p->greedy = p->lanes > 8 ? greedy_many : greedy_plain;
#ifdef __x86_64__
	if (p->lanes == 8 && __builtin_cpu_supports("sse4.1"))
		p->greedy = bl_path_greedy_sse41;
#endif
	p->out = aligned_alloc(64, ((size_t)racks * p->lanes * sizeof(*p->out) + 63) / 64 * 64);
	p->in = aligned_alloc(64, ((size_t)racks * p->lanes * sizeof(*p->in) + 63) / 64 * 64);
	p->stamp = calloc(most, sizeof(*p->stamp));
	p->flip = calloc(most, sizeof(*p->flip));
	for (i = 0; i < 2; i++) {
		p->mate[i] = calloc(most, sizeof(*p->mate[i]));
		p->room[i] = calloc(racks, sizeof(*p->room[i]));
		p->start[i] = calloc(racks + 1, sizeof(*p->start[i]));
		p->list[i] = calloc(most, sizeof(*p->list[i]));
	}
	p->order = calloc(most, sizeof(*p->order));
	p->spare = calloc(most, sizeof(*p->spare));
	p->pending = calloc(racks, sizeof(*p->pending));
	p->side = calloc(most, sizeof(*p->side));
	p->left = calloc(most, sizeof(*p->left));
	if (!p->out || !p->in || !p->stamp || !p->flip || !p->mate[0] || !p->mate[1] ||
	    !p->room[0] || !p->room[1] || !p->start[0] || !p->start[1] || !p->list[0] ||
	    !p->list[1] || !p->order || !p->spare || !p->pending || !p->side || !p->left) {
		bl_path_free(p);
		return NULL;
	}
	*why = NULL;
	return p;
}

int bl_path_usable(struct bl_path *p, uint32_t src, uint32_t dst, uint64_t mask)
{
	size_t i;

	if (src >= p->racks || dst >= p->racks)
		return -1;
	if (!p->usable) {
		p->usable = malloc((size_t)p->racks * p->racks * sizeof(*p->usable));
		if (!p->usable)
			return -1;
		for (i = 0; i < (size_t)p->racks * p->racks; i++)
			p->usable[i] = ~0ULL;
		if (p->lanes == 8)
			p->greedy = greedy_plain;
	}
	p->usable[(size_t)src * p->racks + dst] = mask;
	return 0;
}

const uint64_t *bl_path_table(const struct bl_path *p)
{
	return p->usable;
}

const struct bl_path_stats *bl_path_stats(const struct bl_path *p)
{
	return &p->st;
}

/* Moves a packet to another path in the counts of both its racks. */
static void change_path(struct bl_path *p, const uint16_t *src, const uint16_t *dst, uint8_t *path,
			size_t i, uint32_t to)
{
	uint16_t *o = &p->out[(size_t)src[i] * p->lanes], *d = &p->in[(size_t)dst[i] * p->lanes];

	o[path[i]]--;
	d[path[i]]--;
	o[to]++;
	d[to]++;
	path[i] = (uint8_t)to;
}

/* Sorts the packets by the rack at one end: rack r has list[start[r]] to list[start[r + 1] - 1]. */
static void index_end(const struct bl_path *p, size_t n, const uint16_t *end, uint32_t *start,
		      uint16_t *list)
{
	uint32_t r, sum = 0, c;
	size_t i;

	memset(start, 0, (p->racks + 1) * sizeof(*start));
	for (i = 0; i < n; i++)
		start[end[i]]++;
	for (r = 0; r <= p->racks; r++) {
		c = start[r];
		start[r] = sum;
		sum += c;
	}
	for (i = 0; i < n; i++)
		list[start[end[i]]++] = (uint16_t)i;
	for (r = p->racks; r; r--)
		start[r] = start[r - 1];
	start[0] = 0;
}

#define NO_PACKET (~(size_t)0)

/*
 * Returns a packet of rack @rack (as its source or, if not @out, as its destination) on path @from
 * that may change to @to and was not changed by this chain yet; NO_PACKET: there is none.
 */
static size_t find_candidate(const struct bl_path *p, const uint16_t *src, const uint16_t *dst,
			     const uint8_t *path, bool out, uint32_t rack, uint32_t from,
			     uint32_t to)
{
	const uint32_t *start = p->start[!out];
	const uint16_t *list = p->list[!out];
	uint32_t k;

	for (k = start[rack]; k < start[rack + 1]; k++) {
		const uint16_t i = list[k];

		if (path[i] == from && p->stamp[i] != p->chain && path_works(p, src[i], dst[i], to))
			return i;
	}
	return NO_PACKET;
}

static bool follow_chain(struct bl_path *p, const uint16_t *src, const uint16_t *dst, uint8_t *path,
			 size_t x, uint32_t a, uint32_t b)
{
	uint32_t rack = dst[x], from = a, to = b, swap;
	size_t nflips = 0, i;
	bool out = false;

	if (!++p->chain) { /* the number wraps after some minutes at full load */
		memset(p->stamp, 0, (BL_PATH_PACKETS_MAX + 1) * sizeof(*p->stamp));
		p->chain = 1;
	}
	p->stamp[x] = p->chain;
	path[x] = (uint8_t)a;
	p->out[(size_t)src[x] * p->lanes + a]++;
	p->in[(size_t)dst[x] * p->lanes + a]++;
	while ((out ? p->out : p->in)[(size_t)rack * p->lanes + from] > p->cap) {
		i = find_candidate(p, src, dst, path, out, rack, from, to);
		if (i == NO_PACKET)
			goto undo;
		p->stamp[i] = p->chain;
		p->flip[nflips++] = (uint16_t)i;
		change_path(p, src, dst, path, i, to);
		/* its other end has one packet more on @to now */
		out = !out;
		rack = out ? src[i] : dst[i];
		swap = from;
		from = to;
		to = swap;
	}
	p->st.flips += nflips;
	p->st.repaired++;
	return true;
undo:
	while (nflips--) {
		i = p->flip[nflips];
		change_path(p, src, dst, path, i, path[i] == a ? b : a);
	}
	p->out[(size_t)src[x] * p->lanes + a]--;
	p->in[(size_t)dst[x] * p->lanes + a]--;
	path[x] = BL_PATH_NONE;
	return false;
}

/*
 * Gives a packet without a path the least loaded path on which both racks have room. Returns false
 * if there is none.
 */
static bool place_packet(struct bl_path *p, const uint16_t *src, const uint16_t *dst, uint8_t *path,
			 size_t x)
{
	uint16_t *o = &p->out[(size_t)src[x] * p->lanes], *d = &p->in[(size_t)dst[x] * p->lanes];
	uint32_t a, best = BL_PATH_NONE, least = p->cap;

	for (a = 0; a < p->paths; a++) {
		uint32_t load = o[a] > d[a] ? o[a] : d[a];

		if (load < least && path_works(p, src[x], dst[x], a)) {
			least = load;
			best = a;
		}
	}
	if (best == BL_PATH_NONE)
		return false;
	path[x] = (uint8_t)best;
	o[best]++;
	d[best]++;
	return true;
}

/* Gives a packet without a path one by a chain. Returns false if no chain succeeds. */
static bool repair_packet(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			  uint8_t *path, size_t x)
{
	const uint16_t *o = &p->out[(size_t)src[x] * p->lanes],
		       *d = &p->in[(size_t)dst[x] * p->lanes];
	uint32_t a, b;

	/* seldom needed below full load: at 0.9 in one slot of 30 with 16 racks */
	if (!p->indexed) {
		index_end(p, n, src, p->start[0], p->list[0]);
		index_end(p, n, dst, p->start[1], p->list[1]);
		p->indexed = true;
	}
	for (a = 0; a < p->paths; a++) {
		if (o[a] >= p->cap || !path_works(p, src[x], dst[x], a))
			continue;
		for (b = 0; b < p->paths; b++)
			if (d[b] < p->cap && follow_chain(p, src, dst, path, x, a, b))
				return true;
	}
	return false;
}

size_t bl_path_select(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		      uint8_t *path)
{
	const size_t counts = (size_t)p->racks * p->lanes;
	size_t i, unplaced = 0;
	uint32_t r, k;

	p->indexed = false;
	if (p->paths == p->lanes) {
		memset(p->out, 0, counts * sizeof(*p->out));
		memset(p->in, 0, counts * sizeof(*p->in));
	} else {
		for (r = 0; r < p->racks; r++)
			for (k = 0; k < p->lanes; k++)
				p->out[(size_t)r * p->lanes + k] = p->in[(size_t)r * p->lanes + k] =
					k < p->paths ? 0 : FULL;
	}
	if (p->how == BL_PATH_EULER) {
		bl_path_split(p, n, src, dst, path);
		p->nleft = 0;
		for (i = 0; i < n; i++) {
			uint16_t *o = &p->out[(size_t)src[i] * p->lanes],
				 *d = &p->in[(size_t)dst[i] * p->lanes];

			k = path[i];
			if (k < p->paths && o[k] < p->cap && d[k] < p->cap &&
			    path_works(p, src[i], dst[i], k)) {
				o[k]++;
				d[k]++;
				continue;
			}
			path[i] = BL_PATH_NONE;
			p->left[p->nleft++] = (uint16_t)i;
		}
	} else {
		p->nleft = p->greedy(p, n, src, dst, path);
	}
	for (i = 0; i < p->nleft; i++)
		unplaced += !place_packet(p, src, dst, path, p->left[i]) &&
			    !repair_packet(p, n, src, dst, path, p->left[i]);
	/*
	 * Where there are too many packets, or dead paths, a later chain may have made room for a
	 * packet that was given up before it.
	 */
	for (i = 0; unplaced && i < p->nleft; i++)
		if (path[p->left[i]] == BL_PATH_NONE && place_packet(p, src, dst, path, p->left[i]))
			unplaced--;
	p->st.slots++;
	p->st.packets += n;
	p->st.unplaced += unplaced;
	return unplaced;
}
