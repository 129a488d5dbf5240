/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See read_admission.h.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"

int adm_map(const struct bl_node_ref *ref, const char *name, uint32_t value_size, uint32_t *entries)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	struct bl_err err;
	int fd = bl_map_open(ref, name, value_size, false, &err);

	if (fd < 0) {
		cli_fail("%s", err.text);
		return -1;
	}
	if (entries && bpf_obj_get_info_by_fd(fd, &info, &len)) {
		cli_fail("cannot query the map %s of %s: %s", name, ref->dir, strerror(errno));
		close(fd);
		return -1;
	}
	if (entries)
		*entries = info.max_entries;
	return fd;
}

int adm_queue(int fd, uint32_t key, struct bl_queue *q)
{
	return bpf_map_lookup_elem_flags(fd, &key, q, BPF_F_LOCK) ? -errno : 0;
}

void adm_queue_length(const struct bl_queue *q, uint64_t *frames, uint64_t *bytes)
{
	*frames += q->tail - q->head; /* modulo 2^32, as the queue counts */
	*bytes += q->bytes;
}

void adm_length(int fd, uint32_t key, uint64_t *frames, uint64_t *bytes)
{
	struct bl_queue q;

	if (!bpf_map_lookup_elem(fd, &key, &q))
		adm_queue_length(&q, frames, bytes);
}

int adm_tokens(int fd, uint32_t port, struct bl_token_counts *sum)
{
	const size_t words = sizeof(*sum) / sizeof(uint64_t);
	int cpus = libbpf_num_possible_cpus(), k, rc;
	uint64_t *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*sum)) : NULL;
	size_t w;

	memset(sum, 0, sizeof(*sum));
	if (!v)
		return -ENOMEM;
	rc = bpf_map_lookup_elem(fd, &port, v) ? -errno : 0;
	for (k = 0; !rc && k < cpus; k++)
		for (w = 0; w < words; w++)
			((uint64_t *)sum)[w] += v[(size_t)k * words + w];
	free(v);
	return rc;
}

double adm_rate(uint32_t ns_q20)
{
	return ns_q20 ? 8e9 * (1 << 20) / ns_q20 : 0;
}

void adm_quantiles(json_t *row, const char *prefix, const char *unit, const struct bl_hist *h,
		   unsigned int shift, double divide)
{
	static const struct {
		const char *name;
		unsigned int q;
	} qs[] = { { "p50", 5000 }, { "p99", 9900 }, { "p999", 9990 }, { "max", 10000 } };
	char key[64];
	uint64_t v;
	size_t i;

	for (i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
		snprintf(key, sizeof(key), "%s_%s%s", prefix, qs[i].name, unit);
		json_object_set_new(row, key,
				    hist_quantile(h, qs[i].q, shift, &v)
					    ? json_real((double)v / divide)
					    : json_null());
	}
}

int adm_counts(const struct bl_node_ref *refs, int nrefs, struct bl_counts *switches,
	       struct bl_counts *hosts)
{
	int i, n, j;

	for (i = 0; i < nrefs; i++) {
		struct bl_counts *to = refs[i].role == BL_ROLE_SWITCH ? switches : hosts;
		struct count_row *r;

		n = node_count_rows(&refs[i], &r);
		for (j = 0; j < n; j++)
			counts_add(to, &r[j].n);
		free(r);
		if (n < 0)
			return 1;
	}
	return 0;
}

int adm_late(const struct bl_node_ref *refs, int nrefs, struct bl_hist *late)
{
	int i;

	for (i = 0; i < nrefs; i++) {
		struct bl_pace_page p;

		if (node_value(&refs[i], BL_MAP_PACE_PAGE, 0, &p, sizeof(p)))
			return 1;
		hist_add(late, &p.late, NULL);
	}
	return 0;
}

json_t *adm_reasons(const struct bl_counts *n)
{
	json_t *o = json_object();
	unsigned int k;

	for (k = 0; k < BL_REASON_MAX; k++)
		if (n->n[k])
			json_object_set_new(o, reason_name(k), json_integer((json_int_t)n->n[k]));
	return o;
}
