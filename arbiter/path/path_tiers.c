/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path selection for three tiers, one after the other. See path.h.
 *
 * Why this always works: a rack has at most aggs x agg_cap packets, so the first colouring succeeds
 * and gives each aggregation switch at most agg_cap packets of each of its racks, racks x agg_cap
 * in all. bl_tiers_new() made sure that this is no more than cores x core_cap, which is the
 * condition of the second colouring.
 */
#include <stdlib.h>
#include <string.h>

#include "arbiter/path/path.h"

struct bl_tiers {
	uint32_t racks, aggs;
	uint16_t *pod_of;         /* [racks] */
	struct bl_path *agg;      /* colours the racks */
	struct bl_path **core;    /* [aggs] colours the pods */
	uint16_t *at, *src, *dst; /* packets of one aggregation number: place and pods */
	uint8_t *path;            /* their core switches */
};

void bl_tiers_free(struct bl_tiers *t)
{
	uint32_t i;

	if (!t)
		return;
	for (i = 0; t->core && i < t->aggs; i++)
		bl_path_free(t->core[i]);
	bl_path_free(t->agg);
	free(t->core);
	free(t->pod_of);
	free(t->at);
	free(t->src);
	free(t->dst);
	free(t->path);
	free(t);
}

struct bl_tiers *bl_tiers_new(uint32_t racks, uint32_t pods, const uint16_t *pod_of, uint32_t aggs,
			      uint32_t agg_cap, uint32_t cores, uint32_t core_cap,
			      enum bl_path_how how, const char **why)
{
	const size_t most = BL_PATH_PACKETS_MAX + 1;
	uint32_t i, j, in_pod;
	struct bl_tiers *t;

	*why = !racks || racks > BL_PATH_RACKS_MAX ? "path selection has 1 to 1024 racks"
	       : !pods || pods > racks ? "there is at least one pod, and a rack for each"
	       : !aggs || aggs > BL_PATH_PATHS_MAX ? "a pod has 1 to 64 aggregation switches"
						   : NULL;
	for (i = 0; !*why && i < racks; i++)
		if (pod_of[i] >= pods)
			*why = "a rack is in a pod that does not exist";
	for (i = 0; !*why && i < pods; i++) {
		for (in_pod = 0, j = 0; j < racks; j++)
			in_pod += pod_of[j] == i;
		if ((uint64_t)in_pod * agg_cap > (uint64_t)cores * core_cap)
			*why = "an aggregation switch has less bandwidth to the core than to its "
			       "racks: limit what the racks send, or plan two tiers";
	}
	if (*why)
		return NULL;
	*why = "out of memory";
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->racks = racks;
	t->aggs = aggs;
	t->pod_of = malloc(racks * sizeof(*t->pod_of));
	t->core = calloc(aggs, sizeof(struct bl_path *));
	t->at = calloc(most, sizeof(*t->at));
	t->src = calloc(most, sizeof(*t->src));
	t->dst = calloc(most, sizeof(*t->dst));
	t->path = calloc(most, sizeof(*t->path));
	if (!t->pod_of || !t->core || !t->at || !t->src || !t->dst || !t->path)
		goto fail;
	memcpy(t->pod_of, pod_of, racks * sizeof(*t->pod_of));
	t->agg = bl_path_new(racks, aggs, agg_cap, how, why);
	if (!t->agg)
		goto fail;
	for (i = 0; i < aggs; i++) {
		t->core[i] = bl_path_new(pods, cores, core_cap, how, why);
		if (!t->core[i])
			goto fail;
	}
	return t;
fail:
	bl_tiers_free(t);
	return NULL;
}

struct bl_path *bl_tiers_agg(struct bl_tiers *t)
{
	return t->agg;
}

struct bl_path *bl_tiers_core(struct bl_tiers *t, uint32_t agg)
{
	return agg < t->aggs ? t->core[agg] : NULL;
}

size_t bl_tiers_select(struct bl_tiers *t, size_t n, const uint16_t *src, const uint16_t *dst,
		       uint8_t *agg, uint8_t *core)
{
	size_t lost = bl_path_select(t->agg, n, src, dst, agg), i, m;
	uint32_t a;

	memset(core, BL_PATH_NONE, n);
	for (a = 0; a < t->aggs; a++) {
		for (m = 0, i = 0; i < n; i++) {
			if (agg[i] != a || t->pod_of[src[i]] == t->pod_of[dst[i]])
				continue;
			t->at[m] = (uint16_t)i;
			t->src[m] = t->pod_of[src[i]];
			t->dst[m++] = t->pod_of[dst[i]];
		}
		lost += bl_path_select(t->core[a], m, t->src, t->dst, t->path);
		for (i = 0; i < m; i++) {
			core[t->at[i]] = t->path[i];
			if (t->path[i] == BL_PATH_NONE)
				agg[t->at[i]] = BL_PATH_NONE;
		}
	}
	return lost;
}
