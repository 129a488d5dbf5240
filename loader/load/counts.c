// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The map "counts". Inside, a value holds the counters of one reason for all places, first those of
 * frames and then those of bytes (struct bl_sw_counts, struct bl_host_counts), one copy per CPU. A
 * reader wants the counters of one place for all reasons, summed over the CPUs.
 *
 * Example with 2 CPUs: key BL_R_FORWARDED has n[3] = 5 on CPU 0 and 7 on CPU 1. bl_counts_read()
 * gives out[3].n[BL_R_FORWARDED] = 12.
 *
 * Programs count no bytes for beacons, which all have the same length: that is multiplied here.
 */
#include "loader/load/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "maps/wire_abi.h"

/*
 * Returns room for one reason's counters on all CPUs, which the caller frees: the frames of a place
 * at [cpu * 2 * *@places + key], its bytes at [(cpu * 2 + 1) * *@places + key]. NULL with errno.
 */
static uint64_t *alloc_reason_counters(int fd, uint32_t *places, int *cpus)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);

	*cpus = libbpf_num_possible_cpus();
	if (*cpus < 1) {
		errno = EINVAL;
		return NULL;
	}
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return NULL;
	if (info.value_size % (2 * sizeof(uint64_t)) || info.max_entries != BL_REASON_MAX) {
		errno = EPROTO;
		return NULL;
	}
	*places = info.value_size / (2 * sizeof(uint64_t));
	return calloc((size_t)*cpus, info.value_size);
}

int bl_counts_read(int fd, struct bl_counts *out, uint32_t keys)
{
	uint32_t places, r, k;
	int cpus, c, rc = 0;
	uint64_t *v = alloc_reason_counters(fd, &places, &cpus);

	if (!v)
		return -errno;
	memset(out, 0, keys * sizeof(*out));
	if (keys > places)
		rc = -EPROTO;
	for (r = 0; r < BL_REASON_MAX && !rc; r++) {
		if (bpf_map_lookup_elem(fd, &r, v))
			rc = -errno;
		for (c = 0; c < cpus && !rc; c++) {
			const uint64_t *n = &v[(size_t)c * 2 * places];

			for (k = 0; k < keys; k++) {
				out[k].n[r] += n[k];
				out[k].bytes[r] += n[places + k];
			}
		}
		for (k = 0; k < keys && BL_BEACON_REASON(r); k++)
			out[k].bytes[r] += out[k].n[r] * BL_BEACON_LEN;
	}
	free(v);
	return rc;
}

/*
 * What other places count between the reading and the writing of a reason, some microseconds, is
 * lost. That concerns counters only, and happens only when a port's number goes to another
 * interface. Reasons that were never counted at this place are not written.
 */
int bl_counts_forget(int fd, uint32_t key)
{
	uint32_t places, r;
	int cpus, c, rc = 0;
	uint64_t *v = alloc_reason_counters(fd, &places, &cpus);

	if (!v)
		return -errno;
	if (key >= places)
		rc = -EPROTO;
	for (r = 0; r < BL_REASON_MAX && !rc; r++) {
		bool found = false;

		if (bpf_map_lookup_elem(fd, &r, v))
			rc = -errno;
		for (c = 0; c < 2 * cpus && !rc; c++) {
			uint64_t *n = &v[(size_t)c * places + key];

			found |= *n != 0;
			*n = 0;
		}
		if (found && bpf_map_update_elem(fd, &r, v, BPF_ANY))
			rc = -errno;
	}
	free(v);
	return rc;
}
