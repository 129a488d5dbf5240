// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the parts of a scrape share: reading maps, errors, histograms. See collect.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cli/metrics/collect.h"
#include "core/log_hist_core.h"

static const char *const source_names[] = {
#define NAME(sym, name) [BL_SOURCE_##sym] = (name),
	BL_METRIC_SOURCES(NAME)
#undef NAME
};

const char *collect_source_name(enum metric_source s)
{
	return source_names[s];
}

void collect_failed(struct collector *c, const char *fmt, ...)
{
	char text[sizeof(c->said[0])];
	va_list ap;

	if (c->failed)
		return; /* the first reason is enough */
	c->failed = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!strcmp(text, c->said[c->source]))
		return;
	bl_log(BL_LOG_WARN, "metrics of %s are incomplete: %s", source_names[c->source], text);
	memcpy(c->said[c->source], text, sizeof(text));
}

void *collect_array(struct collector *c, int node, const char *map, uint32_t size, uint32_t most,
		    uint32_t *n)
{
	const struct bl_node_ref *ref = &c->refs[node];
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	struct bl_err err;
	int fd = bl_map_open(ref, map, size, false, &err), rc;
	char *v;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len)) {
		collect_failed(c, "%s", fd < 0 ? err.text : strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*n = most && most < info.max_entries ? most : info.max_entries;
	v = calloc(*n, size);
	rc = v ? bl_array_read(fd, size, *n, v) : -ENOMEM;
	if (rc) {
		collect_failed(c, "%s/maps/%s: %s", ref->dir, map, strerror(-rc));
		free(v);
		v = NULL;
	}
	close(fd);
	return v;
}

bool collect_value(struct collector *c, int node, const char *map, uint32_t key, void *v,
		   uint32_t size)
{
	const struct bl_node_ref *ref = &c->refs[node];
	struct bl_err err;
	int fd = bl_map_open(ref, map, size, false, &err);
	bool ok;

	if (fd < 0) {
		collect_failed(c, "%s", err.text);
		return false;
	}
	ok = !bpf_map_lookup_elem(fd, &key, v);
	if (!ok)
		collect_failed(c, "%s/maps/%s: %s", ref->dir, map, strerror(errno));
	close(fd);
	return ok;
}

void collect_log_hist(struct collector *c, enum metric m, const uint64_t *n, unsigned int first,
		      double sum, const char *const *labels)
{
	struct metric_bucket b[BL_LOG_BINS];
	unsigned int k;

	for (k = 0; k < BL_LOG_BINS; k++)
		b[k] = (struct metric_bucket){
			k + 1 < BL_LOG_BINS ? (double)bl_log_limit(k, first) * 1e-9 : INFINITY, n[k]
		};
	metric_hist(c->to, m, b, BL_LOG_BINS, sum, labels);
}
