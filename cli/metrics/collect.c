// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See collect.h. */
#include "cli/metrics/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cli/show/show.h"

/*
 * Gives each node a name of its own. A switch and a host of one namespace may have the same one: it
 * is followed by "-host" then.
 */
static void name_nodes(struct collector *c)
{
	int i, k;

	for (i = 0; i < c->nrefs; i++) {
		snprintf(c->name[i], sizeof(c->name[i]), "%.32s", node_name(&c->refs[i]));
		for (k = 0; k < i; k++)
			if (!strcmp(c->name[k], c->name[i]))
				snprintf(c->name[i], sizeof(c->name[i]), "%.32s-%s",
					 node_name(&c->refs[i]), bl_role_name(c->refs[i].role));
	}
}

/* Lists the nodes, and leaves out those of another ABI. */
static void find_nodes(struct collector *c, struct bl_node_ref **refs)
{
	struct bl_err err;
	int i, n, kept = 0;

	*refs = NULL;
	n = bl_nodes_find(refs, bl_netns_ino(), &err);
	if (n < 0)
		collect_failed(c, "%s", err.text);
	for (i = 0; i < n; i++)
		if ((*refs)[i].meta.abi_version == BL_ABI_VERSION)
			(*refs)[kept++] = (*refs)[i];
		else
			collect_failed(c,
				       "%s was made with ABI version %u, this build speaks %u; use "
				       "the exporter of its build",
				       (*refs)[i].dir, (*refs)[i].meta.abi_version, BL_ABI_VERSION);
	c->refs = *refs;
	c->nrefs = kept;
	c->name = calloc((size_t)kept + 1, sizeof(*c->name));
	if (!c->name)
		c->nrefs = 0;
	name_nodes(c);
}

static void read_source(struct collector *c)
{
	int i;

	switch (c->source) {
	case BL_SOURCE_NODES:
		for (i = 0; i < c->nrefs; i++) {
			collect_node(c, i);
			collect_lag(c, i);
		}
		return;
	case BL_SOURCE_INTERFACES:
		collect_interfaces(c);
		return;
	case BL_SOURCE_ENDPOINTS:
		for (i = 0; i < c->nrefs; i++)
			collect_endpoints(c, i);
		return;
	case BL_SOURCE_ADMISSION:
		for (i = 0; i < c->nrefs; i++)
			collect_admission(c, i);
		return;
	case BL_SOURCE_CERTIFICATES:
		collect_certificates(c);
		return;
	case BL_SOURCE_CONTROLLERS:
		collect_controllers(c);
		return;
	case BL_SOURCE_ARBITERS:
		collect_arbiters(c);
		return;
	case BL_SOURCE_COUNT:
		return;
	}
}

struct metrics *metrics_collect(struct collector *c)
{
	struct bl_node_ref *refs = NULL;
	uint64_t begun = bl_mono_ns(), now;
	uint32_t omitted;

	c->to = metrics_new();
	if (!c->to)
		return NULL;
	metric_u64(c->to, BL_METRIC_BUILD, 1, LABELS(BARLINE_VERSION));
	for (c->source = 0; c->source < BL_SOURCE_COUNT; c->source++) {
		c->failed = false;
		if (c->source == BL_SOURCE_NODES)
			find_nodes(c, &refs);
		read_source(c);
		if (!c->failed)
			c->said[c->source][0] = '\0';
		now = bl_mono_ns();
		metric_ns(c->to, BL_METRIC_SCRAPE_TIME, (int64_t)(now - begun),
			  LABELS(collect_source_name(c->source)));
		metric_u64(c->to, BL_METRIC_SCRAPE_ERROR, c->failed,
			   LABELS(collect_source_name(c->source)));
		begun = now;
	}
	metrics_samples(c->to, &omitted);
	metric_u64(c->to, BL_METRIC_SCRAPE_OMITTED, omitted, NO_LABELS);
	free(refs);
	free(c->name);
	c->refs = NULL;
	c->name = NULL;
	return c->to;
}
