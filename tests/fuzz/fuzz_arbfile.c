/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the reader of the file that arbiters and hosts share (proto/fastpass_file.c). The input is
 * the file.
 *
 * A file that is accepted is held to what arbiters and hosts rely on without looking again: numbers
 * of endpoints, racks and pods are indices, pairs are sorted, capacities suffice, times are within
 * the ring of a host, and addresses that name an endpoint name one only.
 */
#include "fuzz.h"

#include "core/fastpass/fcp_core.h"
#include "maps/alloc_abi.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

static void check_peers(const struct bl_fp_file *f)
{
	uint64_t sum[BL_PATH_RACKS_MAX] = { 0 };
	unsigned int i, k;

	FUZZ_CHECK(f->npeers >= 1 && f->npeers <= BL_FCP_ENDPOINTS_MAX);
	FUZZ_CHECK(f->nracks >= 1 && f->nracks <= BL_PATH_RACKS_MAX);
	for (i = 0; i < f->npeers; i++) {
		const struct bl_fp_peer *p = &f->peer[i];

		FUZZ_CHECK(memchr(p->name, 0, sizeof(p->name)) && *p->name);
		FUZZ_CHECK(p->rack < f->nracks && p->cap && p->weight);
		FUZZ_CHECK(p->weight <= BL_ALLOC_WEIGHT_MAX && p->napps <= BL_FP_APPS_MAX);
		FUZZ_CHECK(bl_fp_find(f, p->addr) == (int)i);
		FUZZ_CHECK(!p->has_mac || !(p->mac[0] & 1));
		FUZZ_CHECK(!f->routed || p->napps);
		for (k = 0; k < i; k++)
			FUZZ_CHECK(strcmp(f->peer[k].name, p->name));
		sum[p->rack] += p->cap;
	}
	for (i = 0; i < f->nracks; i++)
		if (f->paths)
			FUZZ_CHECK((uint64_t)f->paths * f->path_cap >= sum[i] ||
				   (f->rack_up && (uint64_t)f->paths * f->path_cap >= f->rack_up));
}

static void check_pairs(const struct bl_fp_file *f)
{
	unsigned int i;

	for (i = 0; i < f->npairs; i++) {
		const struct bl_fp_pair *p = &f->pair[i];

		FUZZ_CHECK(p->src < f->npeers && p->dst < f->npeers && p->src != p->dst);
		FUZZ_CHECK(!i || p[-1].src < p->src || (p[-1].src == p->src && p[-1].dst < p->dst));
		FUZZ_CHECK(bl_fp_pair_find(f, p->src, p->dst) == p);
	}
	FUZZ_CHECK(!bl_fp_pair_find(f, f->npeers, 0));
}

static void check_accepted(const struct bl_fp_file *f)
{
	unsigned int i;

	check_peers(f);
	check_pairs(f);
	FUZZ_CHECK(f->narbiters >= 1 && f->narbiters <= BL_FP_ARBITERS_MAX);
	FUZZ_CHECK(f->narbiters == 1 || f->has_group);
	FUZZ_CHECK(f->policy < BL_ALLOC_NPOLICIES && f->field < BL_FIELD_COUNT);
	FUZZ_CHECK(f->slot_ns >= 100 && f->slot_ns <= 10000000 && f->slot_bytes >= 64);
	FUZZ_CHECK(f->window_slots >= 8 && f->window_slots <= 512 && f->run_slots && f->lead_us);
	FUZZ_CHECK(((uint64_t)f->lead_us + f->late_us) * 1000 / f->slot_ns + f->window_slots +
			   f->run_slots <=
		   BL_FP_SLOTS - 64);
	FUZZ_CHECK(bl_fp_ways(f) <= BL_PATH_PATHS_MAX && f->udp_ports + bl_fp_ways(f) <= 65536);
	FUZZ_CHECK(!f->npath_names || f->npath_names == bl_fp_ways(f));
	for (i = 0; i < f->npath_names; i++)
		FUZZ_CHECK(memchr(f->path_name[i], 0, sizeof(f->path_name[i])));
	for (i = 0; f->npods && i < f->nracks; i++)
		FUZZ_CHECK(f->pod_of[i] < f->npods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bl_err err = { .text = "" };
	struct bl_fp_file f;
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, size, path);

	memset(&f, 0xff, sizeof(f));
	if (bl_fp_load(&f, path, &err)) {
		FUZZ_CHECK(!strncmp(err.text, path, strlen(path)));
		FUZZ_CHECK(!f.peer && !f.pair && !f.pod_of && !f.path_name);
	} else {
		check_accepted(&f);
		bl_fp_free(&f);
	}
	close(fd);
	return 0;
}
