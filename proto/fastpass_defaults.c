// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fills in what the file that arbiters and hosts share leaves out, and checks what belongs
 * together; see fastpass_file.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/fastpass/fcp_core.h"
#include "core/length_core.h"
#include "maps/alloc_abi.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

/*
 * Longest default window, unless it has less than 8 slots: a new flow waits at most that long for
 * its share of a busy link.
 */
#define WINDOW_MAX_NS   1000000ULL
#define RUN_MAX_NS      100000ULL
#define RUN_MIN_SLOTS   8 /* each run sends an ALLOC to each host; shorter runs fill a slow link */
#define LEAD_SLOTS      2 /* an ALLOC may wait for a frame at each of two links */
#define LATE_SLOTS      2
#define RTT_US          200
#define RTT_SLOTS       8 /* an acknowledgement that waits for half of it mostly finds a packet */
#define OVERHEAD        1.02 /* slot length / frame time: leaves 2 % to FCP and beacons */
#define FALLBACK_MS     1000U
#define FALLBACK_MAX_MS 3600000U
#define FALLBACK_DEATHS 4ULL /* arbiters need some dead_us to take over from each other */
/* a host counts the unused bytes of a slot in 16 bits */
#define SLOT_MAX (65535 - BL_WIRE_EXTRA)
/*
 * Greatest number of slots from the oldest one that may be late to the last one given. The ring of
 * a host has words of 64 slots.
 */
#define HOST_SLOTS (BL_FP_SLOTS - 64)

static void or_else(uint32_t *v, uint32_t dflt)
{
	if (!*v)
		*v = dflt;
}

static uint64_t fallback_least(const struct bl_fp_file *f)
{
	return (FALLBACK_DEATHS * f->dead_us + 999) / 1000;
}

static uint64_t slots_us(const struct bl_fp_file *f, uint32_t slots)
{
	return ((uint64_t)slots * f->slot_ns + 999) / 1000;
}

void bl_fp_times(struct bl_fp_file *f)
{
	uint32_t window = 128, ahead, share, spare;
	uint64_t run;

	while (window > 8 && (uint64_t)window * f->slot_ns > WINDOW_MAX_NS)
		window /= 2;
	or_else(&f->window_slots, window);
	run = (RUN_MAX_NS + f->slot_ns / 2) / f->slot_ns;
	or_else(&f->run_slots,
		(uint32_t)bl_max64(RUN_MIN_SLOTS, bl_min64(bl_min64(16, f->window_slots), run)));
	/* on fast links, 100 us are more slots than the ring of a host has room for */
	spare = f->window_slots < HOST_SLOTS && f->run_slots < HOST_SLOTS - f->window_slots
			? (HOST_SLOTS - f->window_slots - f->run_slots) / 2
			: 0;
	share = (uint32_t)bl_max64(1, bl_min64(100, (uint64_t)spare * f->slot_ns / 1000));
	or_else(&f->lead_us, (uint32_t)bl_max64(share, slots_us(f, LEAD_SLOTS)));
	or_else(&f->watchdog_us, 100);
	/* the slots that were given must have ended before another arbiter may take over */
	ahead = f->lead_us + (uint32_t)((f->window_slots + 1ULL) * f->slot_ns / 1000);
	or_else(&f->dead_us, (uint32_t)bl_max64(1000, ahead + 5ULL * f->watchdog_us));
	or_else(&f->fallback_ms, (uint32_t)bl_max64(FALLBACK_MS, fallback_least(f)));
	/* a meter catches up by that much; frames that are sent later would stay in its queue */
	or_else(&f->late_us, (uint32_t)bl_max64(share, slots_us(f, LATE_SLOTS)));
	or_else(&f->rtt_us, (uint32_t)bl_max64(RTT_US, slots_us(f, RTT_SLOTS)));
}

/*
 * Checks the capacities of three tiers: the cores of an aggregation switch must carry everything
 * that the racks of a pod may send through that switch.
 */
static int check_pods(struct bl_fp_file *f, struct bl_err *err)
{
	uint32_t *in_pod, most = 0;
	unsigned int i;

	if (!f->paths)
		return bl_fail(err, EINVAL,
			       "pods, but no paths; say how many aggregation switches a pod has");
	in_pod = calloc(f->npods, sizeof(*in_pod));
	if (!in_pod)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->nracks; i++)
		if (++in_pod[f->pod_of[i]] > most)
			most = in_pod[f->pod_of[i]];
	free(in_pod);
	most *= f->path_cap;
	or_else(&f->core_cap, (most + f->cores - 1) / f->cores);
	if ((uint64_t)f->core_cap * f->cores < most)
		return bl_fail(err, EINVAL,
			       "%u cores of %u packets per slot do not carry the %u that an "
			       "aggregation switch may have from its racks; lower path_cap or "
			       "raise core_cap",
			       f->cores, f->core_cap, most);
	return 0;
}

int bl_fp_defaults(struct bl_fp_file *f, struct bl_err *err)
{
	uint32_t most = 0, *sum;
	unsigned int i;

	or_else(&f->slot_bytes, 1514);
	/* a frame with 24 bytes of preamble, FCS and gap, and 2 % for frames that take no slots */
	if (!f->slot_ns && f->rate_bps)
		f->slot_ns = (uint32_t)(bl_wire_bytes(f->slot_bytes) * OVERHEAD * 8e9 /
						(double)f->rate_bps +
					0.5);
	or_else(&f->slot_ns, 1230);
	if (f->slot_ns >= 100 && f->slot_ns <= 10000000)
		bl_fp_times(f);
	or_else(&f->quota, 1U << 16);
	or_else(&f->fault_report_us, 10000);
	or_else(&f->fault_settle_us, 2000);
	or_else(&f->fault_frames, 50);
	or_else(&f->fault_percent, 1);
	or_else(&f->fault_hold_ms, 5000);
	if (!f->udp_ports)
		f->udp_ports = 49152;
	f->nracks = 0;
	for (i = 0; i < f->npeers; i++) {
		if (!f->peer[i].cap)
			f->peer[i].cap = 1;
		or_else(&f->peer[i].weight, 1);
		if (f->peer[i].rack >= f->nracks)
			f->nracks = f->peer[i].rack + 1U;
	}
	if (!f->npeers || f->npeers > BL_FCP_ENDPOINTS_MAX || f->nracks > BL_PATH_RACKS_MAX)
		return bl_fail(err, EINVAL, "%u endpoints in %u racks; from 1 to %u, in at most %u",
			       f->npeers, f->nracks, BL_FCP_ENDPOINTS_MAX, BL_PATH_RACKS_MAX);
	if (f->slot_bytes < 64 || f->slot_bytes > SLOT_MAX)
		return bl_fail(err, EINVAL, "slot_bytes %u: from 64 to %u", f->slot_bytes,
			       SLOT_MAX);
	if (f->slot_ns < 100 || f->slot_ns > 10000000)
		return bl_fail(err, EINVAL, "a slot of %u ns; from 100 to 10000000", f->slot_ns);
	if (f->window_slots < 8 || f->window_slots > 512 || f->window_slots & (f->window_slots - 1))
		return bl_fail(err, EINVAL, "window_slots %u: 8, 16, 32, 64, 128, 256 or 512",
			       f->window_slots);
	if (f->fallback_ms != BL_FP_NO_FALLBACK &&
	    (f->fallback_ms > FALLBACK_MAX_MS || f->fallback_ms < fallback_least(f)))
		return bl_fail(err, EINVAL,
			       "fallback_ms %u: 0 (never), or from %llu to %u: an arbiter that "
			       "stands by "
			       "takes over after dead_us, %u us, and hosts must not fall back "
			       "before that",
			       f->fallback_ms, (unsigned long long)fallback_least(f),
			       FALLBACK_MAX_MS, f->dead_us);
	if (((uint64_t)f->lead_us + f->late_us) * 1000 / f->slot_ns + f->window_slots +
		    f->run_slots >
	    HOST_SLOTS)
		return bl_fail(err, EINVAL,
			       "lead_us %u, late_us %u, window_slots %u, run_slots %u: hosts take "
			       "slots of at most %u us together, %u of %u ns; lower them",
			       f->lead_us, f->late_us, f->window_slots, f->run_slots,
			       (uint32_t)((uint64_t)HOST_SLOTS * f->slot_ns / 1000), HOST_SLOTS,
			       f->slot_ns);
	if (f->cores && !f->npods)
		return bl_fail(err, EINVAL, "cores, but no pods; say which pod each rack is in");
	or_else(&f->cores, 1);
	if (f->paths > BL_PATH_PATHS_MAX || f->cores > BL_PATH_PATHS_MAX ||
	    bl_fp_ways(f) > BL_PATH_PATHS_MAX)
		return bl_fail(err, EINVAL, "%u paths: at most %u",
			       f->npods ? f->paths * f->cores : f->paths, BL_PATH_PATHS_MAX);
	if (f->field == BL_FIELD_MAC && bl_fp_ways(f) > BL_PATHS_IN_MAC)
		return bl_fail(err, EINVAL, "%u paths: a MAC address carries at most %u",
			       bl_fp_ways(f), BL_PATHS_IN_MAC);
	if (f->field != BL_FIELD_NONE && !f->paths)
		return bl_fail(err, EINVAL, "path_field %s, but there are no paths; say how many",
			       bl_fp_field_name(f->field));
	if (f->udp_ports + bl_fp_ways(f) > 65536)
		return bl_fail(err, EINVAL, "udp_ports %u: the last path's port is above 65535",
			       f->udp_ports);
	if (f->fault_report_us < 100 || f->fault_report_us > 10000000 ||
	    f->fault_settle_us > 10000000)
		return bl_fail(err, EINVAL,
			       "fault_report_us %u, fault_settle_us %u: from 100 and 1 to 10000000",
			       f->fault_report_us, f->fault_settle_us);
	if (f->fault_percent > 50 || f->fault_frames < 10 || f->fault_hold_ms > 86400000)
		return bl_fail(err, EINVAL,
			       "fault_percent %u, fault_frames %u, fault_hold_ms %u: at most 50, "
			       "at least 10, at most 86400000",
			       f->fault_percent, f->fault_frames, f->fault_hold_ms);
	if (f->rack_up > BL_ALLOC_CAP_MAX || f->path_cap > BL_ALLOC_CAP_MAX ||
	    f->core_cap > BL_ALLOC_CAP_MAX)
		return bl_fail(err, EINVAL,
			       "rack_up %u, path_cap %u, core_cap %u: at most %u packets per slot",
			       f->rack_up, f->path_cap, f->core_cap, BL_ALLOC_CAP_MAX);
	sum = calloc(f->nracks, sizeof(*sum));
	if (!sum)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->npeers; i++) {
		sum[f->peer[i].rack] += f->peer[i].cap;
		if (sum[f->peer[i].rack] > most)
			most = sum[f->peer[i].rack];
	}
	free(sum);
	if (f->rack_up && f->rack_up < most)
		most = f->rack_up;
	if (f->paths)
		or_else(&f->path_cap, (most + f->paths - 1) / f->paths);
	if (f->paths && (uint64_t)f->path_cap * f->paths < most)
		return bl_fail(err, EINVAL,
			       "%u paths of %u packets per slot do not carry the %u that a rack "
			       "may send; lower rack_up or raise path_cap",
			       f->paths, f->path_cap, most);
	if (f->npath_names && f->npath_names != bl_fp_ways(f))
		return bl_fail(err, EINVAL, "%u path_names for %u paths", f->npath_names,
			       bl_fp_ways(f));
	return f->npods ? check_pods(f, err) : 0;
}
