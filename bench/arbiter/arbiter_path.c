/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench path: the experiment of Fastpass 7.3 (G), on one core. Each slot is a
 * random matching of all machines, reduced to the load, with its packets in random order. As in the
 * published benchmark, packets within a rack get a path, too; an arbiter would leave them out,
 * which is a 16th of all packets.
 */
#include <stdlib.h>

#include "arbiter/alloc/verify.h"
#include "base/time.h"
#include "bench/arbiter/arbiter.h"
#include "cli/util/out.h"

#define SLOTS 100u /* per block */

/** struct slot - The packets of a timeslot. */
struct slot {
	size_t n;            /* packets */
	uint16_t *src, *dst; /* by packet: racks */
	uint8_t *path;       /* by packet: the result */
};

static void shuffle_values(struct arb_rnd *r, uint16_t *v, uint32_t n)
{
	uint32_t i, j;
	uint16_t t;

	for (i = n; i > 1; i--) {
		j = arb_below(r, i);
		t = v[i - 1];
		v[i - 1] = v[j];
		v[j] = t;
	}
}

static void draw_slot(struct slot *s, struct arb_rnd *r, uint32_t racks, double load,
		      uint16_t *from, uint16_t *to)
{
	const uint32_t n = racks * ARB_RACK;
	uint32_t i;

	for (i = 0; i < n; i++)
		from[i] = to[i] = (uint16_t)i;
	shuffle_values(r, from, n);
	shuffle_values(r, to, n);
	for (s->n = 0, i = 0; i < n; i++) {
		if (arb_unit(r) >= load)
			continue;
		s->src[s->n] = (uint16_t)(from[i] / ARB_RACK);
		s->dst[s->n++] = (uint16_t)(to[i] / ARB_RACK);
	}
}

static json_t *measure_row(const struct arb_args *a, uint32_t racks, double load,
			   enum bl_path_how how)
{
	const uint32_t paths = a->paths ? (uint32_t)a->paths : 4,
		       cap = a->cap ? (uint32_t)a->cap : (ARB_RACK + paths - 1) / paths;
	const unsigned int per_block = a->slots ? (unsigned int)(a->slots / ARB_BLOCKS) + 1 : SLOTS;
	const size_t most = (size_t)racks * ARB_RACK;
	struct slot *s = calloc(per_block, sizeof(*s));
	uint16_t *from = malloc(most * sizeof(*from)), *to = malloc(most * sizeof(*to));
	uint16_t *ends = malloc(2 * most * per_block * sizeof(*ends));
	uint8_t *way = malloc(most * per_block);
	struct arb_rnd r = { (uint64_t)a->seed };
	double us[ARB_BLOCKS], packets = 0;
	uint64_t lost_all = 0;
	const char *why = "out of memory";
	struct bl_path *p = NULL;
	json_t *row = NULL;
	unsigned int b, i;

	if (s && from && to && ends && way)
		p = bl_path_new(racks, paths, cap, how, &why);
	if (!p) {
		cli_fail("%s", why);
		goto out;
	}
	for (i = 0; i < per_block; i++) {
		s[i].src = &ends[2 * most * i];
		s[i].dst = s[i].src + most;
		s[i].path = &way[most * i];
	}
	for (b = 0; b < ARB_BLOCKS; b++) {
		uint64_t begun;

		for (i = 0; i < per_block; i++)
			draw_slot(&s[i], &r, racks, load, from, to);
		begun = bl_mono_ns();
		for (i = 0; i < per_block; i++)
			bl_path_select(p, s[i].n, s[i].src, s[i].dst, s[i].path);
		us[b] = (double)(bl_mono_ns() - begun) / 1e3 / per_block;
		for (i = 0; i < per_block; i++) {
			size_t lost;

			why = bl_verify_paths(racks, paths, cap, NULL, s[i].src, s[i].dst,
					      s[i].path, s[i].n, &lost);
			if (!why && lost && paths * cap >= ARB_RACK)
				why = "a packet has no path though there is one";
			if (why) {
				cli_fail("the colouring is wrong: %s", why);
				goto out;
			}
			packets += (double)s[i].n;
			lost_all += lost;
		}
	}
	packets /= (double)ARB_BLOCKS * per_block;
	{
		const double median = arb_median(us, ARB_BLOCKS);

		row = json_pack(
			"{s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "racks",
			(json_int_t)racks, "paths", (json_int_t)paths, "cap", (json_int_t)cap,
			"how", how == BL_PATH_GREEDY ? "greedy" : "euler", "load", 100 * load,
			"us_slot", median, "us_slot_best", us[0], "ns_packet",
			packets > 0 ? 1e3 * median / packets : 0, "packets", packets, "repaired",
			(double)bl_path_stats(p)->repaired / (double)bl_path_stats(p)->slots,
			"unplaced", (json_int_t)lost_all, "verified",
			(json_int_t)bl_path_stats(p)->packets);
	}
out:
	bl_path_free(p);
	free(s);
	free(from);
	free(to);
	free(ends);
	free(way);
	return row;
}

static json_t *measure_path(const struct arb_args *a)
{
	static const double loads[] = { 0.5, 0.9, 1.0 };
	static const uint32_t sizes[] = { 8, 16, 32 };
	json_t *rows = json_array(), *row;
	unsigned int h, i, k;

	for (h = 0; h < 2; h++)
		for (i = 0; i < (a->racks ? 1 : 3); i++)
			for (k = 0; k < (a->load > 0 ? 1 : 3); k++) {
				const uint32_t racks = a->racks ? (uint32_t)a->racks : sizes[i];
				const double load = a->load > 0 ? a->load : loads[k];

				if (a->how >= 0 && a->how != (int)h)
					continue;
				out_progress("path: %u racks, %s, load %.2f ...", racks,
					     h == BL_PATH_GREEDY ? "greedy" : "euler", load);
				row = measure_row(a, racks, load, (enum bl_path_how)h);
				if (!row || json_array_append_new(rows, row)) {
					json_decref(rows);
					return NULL;
				}
			}
	return rows;
}

static const struct col path_cols[] = {
	{ "racks", "racks", 'd' },
	{ "paths", "paths", 'd' },
	{ "how", "how", 's' },
	{ "load", "load %", 'f' },
	{ "us_slot", "us/slot", 'f' },
	{ "us_slot_best", "best", 'f' },
	{ "ns_packet", "ns/packet", 'f' },
	{ "packets", "packets/slot", 'f' },
	{ "repaired", "repaired/slot", 'f' },
	{ "verified", "packets verified", 'd' },
};

const struct arb_bench arb_bench_path = { "path", measure_path, path_cols,
					  sizeof(path_cols) / sizeof(path_cols[0]) };
