// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Admission (DESIGN 4): from what people configure to what the maps hold, at start and, by `barline
 * admission set`, while the node runs.
 *
 * Example, a host with "rate: 250mbit" and pl2: a byte takes 32 ns, a slot (1538 byte times) 49216
 * ns, so t = 15 slots is 738240 ns. The switch with "outside_percent: 10" promises slots of 35.6 ns
 * per byte, 54684 ns each, on ports that it drains at 32 ns per byte.
 *
 * The maps of a node without admission have one entry: 4 KiB instead of 9 MB. When sizes or limits
 * change at a takeover, queues, slots and reservations start empty beside the old ones: what was
 * held is lost, once.
 */
#include "loader/admission/admission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/rate.h"
#include "core/pl2/pl2_core.h"
#include "loader/admission/admission_priv.h"
#include "loader/admission/pace.h"
#include "loader/admission/pacer.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

#define QUEUE_FRAMES 256
#define HOST_MARK    (64u << 10)
#define K_DEFAULT    4
#define REFUSE_SLOTS 64  /* T >> t */
#define FAR_SLOTS    480 /* a little less than the bitmap's window */
/*
 * A burst begins so much earlier than both ports are free of what was promised before. Ports then
 * have something to send also where bursts do not fit each other, and queues hold a few frames
 * (docs/design-notes.md, "What a shuffle loses"). Less than a host's late_ns, which is 20 slots.
 */
#define OVERLAP_SLOTS 6

static const char *const policy_names[] = {
#define NAME(sym, name) [BL_POLICY_##sym] = name,
	BL_POLICIES(NAME)
#undef NAME
};
static const char *const allocator_names[] = {
#define NAME(sym, name) [BL_ALLOC_##sym] = name,
	BL_ALLOCATORS(NAME)
#undef NAME
};
static const char *const class_names[] = {
#define NAME(sym, name) [BL_CL_##sym] = name,
	BL_CLASSES(NAME)
#undef NAME
};

static const char *name_of(const char *const *v, size_t n, unsigned int i)
{
	return i < n ? v[i] : "?";
}

static int by_name(const char *const *v, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(v[i], name))
			return (int)i;
	return -1;
}

#define NAMES(v) v, sizeof(v) / sizeof((v)[0])

const char *bl_policy_name(unsigned int policy)
{
	return name_of(NAMES(policy_names), policy);
}

const char *bl_allocator_name(unsigned int allocator)
{
	return name_of(NAMES(allocator_names), allocator);
}

const char *bl_class_name(unsigned int class)
{
	return name_of(NAMES(class_names), class);
}

int bl_policy_by_name(const char *name)
{
	return by_name(NAMES(policy_names), name);
}

int bl_allocator_by_name(const char *name)
{
	return by_name(NAMES(allocator_names), name);
}

/* ---- configuration ---- */

static void or_else(uint32_t *v, uint32_t dflt)
{
	if (!*v)
		*v = dflt;
}

static void limit_defaults(struct bl_limit_cfg *l, const struct bl_limit_cfg *from)
{
	/* bytes follow the frames that were given with them */
	if (l->frames && !l->bytes)
		l->bytes = l->frames * BL_QUEUE_FRAME_MAX;
	or_else(&l->frames, from->frames);
	or_else(&l->bytes, from->bytes);
	/* half of a queue that is shorter than the usual mark */
	or_else(&l->mark_bytes, from->mark_bytes < l->bytes ? from->mark_bytes : l->bytes / 2);
}

void bl_admission_defaults(struct bl_node_cfg *c)
{
	struct bl_admission_cfg *a = &c->admission;
	const struct bl_limit_cfg dflt = { QUEUE_FRAMES, QUEUE_FRAMES * BL_QUEUE_FRAME_MAX,
					   c->role == BL_ROLE_HOST ? HOST_MARK : 0 };
	unsigned int k;

	or_else(&a->slots, BL_SLOTS);
	limit_defaults(&a->queue, &dflt);
	for (k = 0; k < BL_CL_COUNT; k++)
		limit_defaults(&a->limit[k], &a->queue);
	or_else(&a->k, K_DEFAULT);
	if (!a->t_us)
		or_else(&a->t_slots, BL_T_SLOTS);
	if (c->role == BL_ROLE_HOST)
		bl_top_defaults(&a->top);
	if (!*a->bl0)
		strcpy(a->bl0, "bl0");
	if (!*a->bl0d)
		snprintf(a->bl0d, sizeof(a->bl0d), "%.14sd", a->bl0);
}

int bl_admission_rate(uint64_t bps, const char *of, struct bl_err *err)
{
	char text[32];

	if (!bps || (bps >= BL_RATE_MIN && bps <= BL_RATE_MAX))
		return 0;
	return bl_fail(err, EINVAL, "a rate of %s for %s; from 2mbit to 1000gbit",
		       bl_rate_text(bps, text, sizeof(text)), of);
}

static int check_limits(const struct bl_limit_cfg *l, const char *of, struct bl_err *err)
{
	if (l->frames > BL_RING)
		return bl_fail(err, EINVAL, "%s: %u frames in one queue; at most %u", of, l->frames,
			       BL_RING);
	if (l->bytes && l->bytes < BL_QUEUE_FRAME_MAX)
		return bl_fail(err, EINVAL, "%s: %u bytes in one queue: less than one frame (%u)",
			       of, l->bytes, BL_QUEUE_FRAME_MAX);
	if (l->mark_bytes && l->bytes && l->mark_bytes >= l->bytes)
		return bl_fail(err, EINVAL,
			       "%s: the mark at %u bytes is not below the limit of %u: nothing "
			       "would ever be marked",
			       of, l->mark_bytes, l->bytes);
	return 0;
}

static int check_switch(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	unsigned int k;
	char text[32];
	int rc;

	for (k = 0; k < c->ports_count; k++) {
		const struct bl_port_cfg *p = &c->ports[k];

		rc = bl_admission_rate(p->rate_bps, p->ifname, err);
		if (rc)
			return rc;
		if (p->rate_bps && a->policy == BL_POLICY_PL2 && p->rate_bps < a->rate_bps)
			return bl_fail(err, EINVAL,
				       "port %s is slower (%s) than the rate that reservations are "
				       "made for; lower admission's rate to it",
				       p->ifname, bl_rate_text(p->rate_bps, text, sizeof(text)));
	}
	if (a->policy == BL_POLICY_PL2 && !a->rate_bps)
		return bl_fail(err, EINVAL,
			       "pl2 makes reservations in time, so it needs the ports' rate; give "
			       "admission a rate (--rate)");
	if (a->outside_percent > BL_OUTSIDE_MAX)
		return bl_fail(err, EINVAL,
			       "%u %% of each port for traffic from outside: at most %u",
			       a->outside_percent, BL_OUTSIDE_MAX);
	for (k = 0; k < BL_CL_COUNT; k++) {
		rc = check_limits(&a->limit[k], class_names[k], err);
		if (rc)
			return rc;
	}
	return bl_token_check(c, err);
}

static int check_host(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (a->policy == BL_POLICY_PL2 && !a->rate_bps)
		return bl_fail(err, EINVAL,
			       "pl2 counts time in frames of the link, so it needs the link's "
			       "rate; give admission a rate (--rate)");
	if (a->policy == BL_POLICY_TOP && !a->rate_bps)
		return bl_fail(err, EINVAL,
			       "top paces tokens at the link's rate, so it needs one; give "
			       "admission a rate (--rate)");
	if (bl_top_check(&a->top, err))
		return -EINVAL;
	if (a->policy == BL_POLICY_FASTPASS && !a->fp && !*a->fp_path)
		return bl_fail(err, EINVAL,
			       "fastpass needs the file that hosts and arbiters share: admission: "
			       "{ fastpass: FILE } (--fastpass FILE)");
	if (a->k > BL_PL2_K_MAX)
		return bl_fail(err, EINVAL, "K of %u frames: at most %u", a->k, BL_PL2_K_MAX);
	if (a->t_slots && a->t_us)
		return bl_fail(err, EINVAL,
			       "t is given in slots and in microseconds; one of them is enough");
	if (a->t_slots > BL_RSV_WORDS * 64)
		return bl_fail(err, EINVAL, "t of %u slots: at most %u", a->t_slots,
			       BL_RSV_WORDS * 64);
	if (!strcmp(a->bl0, a->bl0d) || !strcmp(a->bl0, c->ifname) || !strcmp(a->bl0d, c->ifname))
		return bl_fail(err, EINVAL, "%s, %s and the NIC %s must be three names", a->bl0,
			       a->bl0d, c->ifname);
	return 0;
}

int bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	const struct {
		uint32_t us;
		const char *name;
	} times[] = { { a->t_us, "t_us" },         { a->recent_us, "recent_us" },
		      { a->retry_us, "retry_us" }, { a->coming_us, "coming_us" },
		      { a->late_us, "late_us" },   { a->refuse_us, "refuse_us" },
		      { a->far_us, "far_us" },     { a->lapse_us, "lapse_us" } };
	unsigned int k;
	int rc;

	if (!a->on)
		return 0;
	if ((unsigned int)a->policy >= BL_POLICY_COUNT ||
	    (unsigned int)a->allocator >= BL_ALLOC_COUNT)
		return bl_fail(err, EINVAL, "policy %u, allocator %u: there is no such",
			       (unsigned int)a->policy, (unsigned int)a->allocator);
	rc = bl_admission_rate(a->rate_bps, "admission", err);
	if (!rc)
		rc = check_limits(&a->queue, "queues", err);
	if (rc)
		return rc;
	if (a->slots < 16 || a->slots > 65536)
		return bl_fail(err, EINVAL, "%u slots: from 16 to 65536", a->slots);
	for (k = 0; k < sizeof(times) / sizeof(times[0]); k++)
		if (times[k].us > BL_TIME_MAX_US)
			return bl_fail(err, EINVAL, "%s %u: at most %u", times[k].name, times[k].us,
				       BL_TIME_MAX_US);
	if (a->pacer_cpu &&
	    (a->pacer_cpu > BL_SW_CPUS_MAX || (long)a->pacer_cpu > sysconf(_SC_NPROCESSORS_CONF)))
		return bl_fail(err, EINVAL,
			       "the pacer's CPU %u does not exist; this machine has CPUs 0 to %ld",
			       a->pacer_cpu - 1, sysconf(_SC_NPROCESSORS_CONF) - 1);
	return c->role == BL_ROLE_HOST ? check_host(c, err) : check_switch(c, err);
}

/* Bits per second; 0: not metered. With the ports of the configuration. */
uint64_t bl_admission_port_rate(const struct bl_node_cfg *c, const char *ifname)
{
	unsigned int k;

	for (k = 0; k < c->ports_count && c->admission.on; k++)
		if (!strcmp(c->ports[k].ifname, ifname))
			return c->ports[k].rate_bps ? c->ports[k].rate_bps : c->admission.rate_bps;
	return 0;
}

static bool metered(const struct bl_node_cfg *c)
{
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		if (c->ports[k].rate_bps || c->admission.rate_bps)
			return true;
	return false;
}

/* With the ports of the configuration, not of n->cfg, which has none. */
bool bl_admission_paced(const struct bl_node_cfg *c)
{
	return c->admission.on && (c->role == BL_ROLE_HOST || metered(c));
}

int bl_admission_cpu(const struct bl_node_cfg *c)
{
	return c->admission.pacer_cpu ? (int)c->admission.pacer_cpu - 1 : c->ncpus ? c->cpus[0] : 0;
}

static uint64_t us_or(uint32_t us, uint64_t ns)
{
	return us ? us * 1000ULL : ns;
}

static void hold_cfg_of(const struct bl_admission_cfg *a, struct bl_hold_cfg *c)
{
	struct bl_pl2_times t;

	c->policy = a->policy;
	c->link.ns_q20 = bl_rate_ns_q20(a->rate_bps);
	bl_pl2_times(bl_slot_ns(c->link.ns_q20), &t);
	c->k_frames = a->k;
	c->k_bytes = a->k * BL_RSV_SLOT_BYTES;
	c->t_ns = a->t_us ? a->t_us * 1000ULL : a->t_slots * bl_slot_ns(c->link.ns_q20);
	c->recent_ns = us_or(a->recent_us, t.recent_ns);
	c->retry_ns = us_or(a->retry_us, t.retry_ns);
	c->coming_ns = us_or(a->coming_us, t.coming_ns);
	c->late_ns = us_or(a->late_us, t.late_ns);
	if (a->fp) {
		c->slot_ns = a->fp->slot_ns;
		c->slot_bytes = a->fp->slot_bytes;
		c->slot_late_ns = a->fp->late_us * 1000U;
		c->path_field = a->fp->field;
		c->udp_ports = a->fp->udp_ports;
		c->routed = a->fp->routed;
		c->count_paths = a->fp->has_faults;
	}
}

static void rsv_cfg_of(const struct bl_admission_cfg *a, struct bl_rsv_cfg *c)
{
	struct bl_pl2_times t;
	uint64_t slot;

	c->on = a->on && a->policy == BL_POLICY_PL2;
	c->allocator = a->allocator;
	c->ns_q20 = bl_share_q20(bl_rate_ns_q20(a->rate_bps), a->outside_percent);
	slot = bl_slot_ns(c->ns_q20);
	c->limit_bytes = BL_PL2_K_MAX * BL_WIRE_BYTES(BL_QUEUE_FRAME_MAX);
	c->refuse_ns = a->refuse_us ? a->refuse_us * 1000ULL : REFUSE_SLOTS * slot;
	c->far_ns = a->far_us ? a->far_us * 1000ULL : FAR_SLOTS * slot;
	c->overlap_bytes = OVERLAP_SLOTS * BL_WIRE_FULL;
	bl_pl2_times(slot, &t);
	c->lapse_ns = us_or(a->lapse_us, t.lapse_ns);
}

/* ---- maps ---- */

/* What starts empty together: ring entries name slots. */
static const char *const host_group[] = { BL_MAP_SLOTS,       BL_MAP_FREE_SLOTS, BL_MAP_QUEUES,
					  BL_MAP_QUEUE_HIST,  BL_MAP_HOLD_DUE,   BL_MAP_HOLD_DESTS,
					  BL_MAP_HOLD_MACS,   BL_MAP_HOLD_FREE,  BL_MAP_PL2_DESTS,
					  BL_MAP_PL2_COMING,  BL_MAP_FP_DESTS,   BL_MAP_FP_PATHS,
					  BL_MAP_FP_PEERS,    BL_MAP_TOP_FLOWS,  BL_MAP_TOP_TX,
					  BL_MAP_TOP_KEPT,    BL_MAP_TOP_RX_OF,  BL_MAP_TOP_RX,
					  BL_MAP_TOP_COFLOWS, BL_MAP_TOP_PAGE };
static const char *const switch_group[] = { BL_MAP_SLOTS,      BL_MAP_FREE_SLOTS, BL_MAP_QUEUES,
					    BL_MAP_QUEUE_HIST, BL_MAP_PORT_DUE,   BL_MAP_PORT_BUSY,
					    BL_MAP_RSV,        BL_MAP_RSV_PAIRS };
#define SIZE(group) (sizeof(group) / sizeof((group)[0]))
_Static_assert(SIZE(host_group) <= BL_ADMISSION_MAPS && SIZE(switch_group) <= BL_ADMISSION_MAPS,
	       "room for either");

static uint32_t ports_room(uint32_t nports)
{
	uint32_t room;

	for (room = 4; room < nports; room *= 2)
		;
	return room;
}

/* Entries that a map is wanted with; 0: as it was compiled. */
static uint32_t entries(const struct bl_node_cfg *c, const struct bl_admission_cfg *a,
			uint32_t nports, const char *name)
{
	uint32_t room = ports_room(nports);
	bool host = c->role == BL_ROLE_HOST, queues = bl_admission_paced(c);

	if (!strcmp(name, BL_MAP_SLOTS) || !strcmp(name, BL_MAP_FREE_SLOTS))
		return queues ? a->slots : 1;
	if (!strcmp(name, BL_MAP_QUEUES) || !strcmp(name, BL_MAP_QUEUE_HIST))
		return !queues ? 1 : host ? BL_DESTS * BL_HOLD_CLASSES : room * BL_CL_COUNT;
	if (!strcmp(name, BL_MAP_FP_DESTS) || !strcmp(name, BL_MAP_TOP_TX) ||
	    !strcmp(name, BL_MAP_TOP_KEPT))
		return queues ? BL_DESTS : 1;
	if (!strcmp(name, BL_MAP_TOP_RX))
		return queues ? BL_TOP_RX_MAX : 1;
	if (!strcmp(name, BL_MAP_FP_PATHS))
		return queues && a->fp ? a->fp->npeers : 1;
	if (!strcmp(name, BL_MAP_FP_PEERS))
		return queues && a->fp ? a->fp->npeers * (1 + BL_FP_APPS_MAX) : 1;
	if (!strcmp(name, BL_MAP_RSV_PAIRS))
		return a->on ? room * room : 1;
	return 0;
}

static const struct bl_limit_cfg *limit_of(const struct bl_node *n, uint32_t key)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;

	return n->cfg.role == BL_ROLE_HOST ? &a->queue : &a->limit[key % BL_CL_COUNT];
}

static int pinned(const struct bl_node *n, const char *name, struct bpf_map_info *info)
{
	uint32_t len = sizeof(*info);
	char path[BL_PATH_MAX];
	int fd;

	memset(info, 0, sizeof(*info));
	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, name);
	fd = bpf_obj_get(path);
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, info, &len)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * Whether the pinned queues have the limits that are wanted now. Limits lie beside what the queue's
 * lock guards, so they cannot be changed from here while it is used.
 */
static bool same_limits(const struct bl_node *n)
{
	struct bpf_map_info info;
	struct bl_queue q;
	uint32_t k;
	int fd = pinned(n, BL_MAP_QUEUES, &info);
	bool same = fd >= 0 && info.value_size == sizeof(q);

	for (k = 0; same && k < BL_CL_COUNT && k < info.max_entries; k++) {
		const struct bl_limit_cfg *l = limit_of(n, k);

		same = !bpf_map_lookup_elem(fd, &k, &q) && q.limit_frames == l->frames &&
		       q.limit_bytes == l->bytes && q.mark_bytes == l->mark_bytes;
	}
	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * Before bl_maps_reuse(): sizes the maps, and appends to @anew (NULL-terminated, with room for
 * BL_ADMISSION_MAPS more) what cannot go on. Maps that are large enough for a smaller number of
 * ports stay as large as they are.
 */
int bl_admission_size(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      uint32_t nports, const char **anew, struct bl_err *err)
{
	bool host = n->cfg.role == BL_ROLE_HOST;
	const char *const *group = host ? host_group : switch_group;
	unsigned int ngroup = host ? SIZE(host_group) : SIZE(switch_group);
	struct bpf_map *bell = bpf_object__find_map_by_name(obj, BL_MAP_PACE_BELL),
		       *fp_bell = bpf_object__find_map_by_name(obj, BL_MAP_FP_BELL);
	const struct bl_admission_cfg *a = &n->cfg.admission;
	struct bpf_map_info info;
	uint32_t want[BL_ADMISSION_MAPS], have[BL_ADMISSION_MAPS];
	unsigned int k;
	int fd;

	n->queues_fresh = n->fresh || (a->on && !same_limits(n));
	for (k = 0; k < ngroup; k++) {
		bool slots = !strcmp(group[k], BL_MAP_SLOTS) ||
			     !strcmp(group[k], BL_MAP_FREE_SLOTS);

		want[k] = entries(cfg, a, nports, group[k]);
		have[k] = 0;
		if (n->fresh || !bpf_object__find_map_by_name(obj, group[k]))
			continue;
		fd = pinned(n, group[k], &info);
		if (fd >= 0)
			close(fd);
		have[k] = fd < 0 ? 0 : info.max_entries;
		if (fd < 0 || (want[k] && (have[k] < want[k] || (slots && have[k] != want[k]) ||
					   (want[k] == 1 && have[k] > 1))))
			n->queues_fresh = true;
	}
	while (anew && *anew)
		anew++;
	for (k = 0; k < ngroup; k++) {
		struct bpf_map *m = bpf_object__find_map_by_name(obj, group[k]);
		uint32_t size = n->queues_fresh ? want[k] : have[k];

		if (!m)
			continue;
		if (want[k] && bpf_map__set_max_entries(m, size))
			return bl_fail(err, EINVAL, "cannot size the map %s", group[k]);
		if (n->queues_fresh && !n->fresh)
			*anew++ = group[k];
	}
	if ((bell && bpf_map__set_max_entries(bell, (uint32_t)sysconf(_SC_PAGESIZE))) ||
	    (fp_bell && bpf_map__set_max_entries(fp_bell, (uint32_t)sysconf(_SC_PAGESIZE))))
		return bl_fail(err, EINVAL, "cannot size the map %s", BL_MAP_PACE_BELL);
	if (n->queues_fresh && !n->fresh && a->on)
		bl_log(BL_LOG_INFO, "%s: queues start empty: their sizes or limits are new",
		       n->meta.name);
	return 0;
}

static int fill_queues(const struct bl_node *n, struct bpf_object *obj, const char *due_name,
		       struct bl_err *err)
{
	struct bpf_map *free_slots, *queues, *due_map;
	struct bl_due *due;
	uint32_t k;
	int rc;

	rc = bl_map_find(obj, BL_MAP_FREE_SLOTS, sizeof(k), &free_slots, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_QUEUES, sizeof(struct bl_queue), &queues, err);
	if (!rc)
		rc = bl_map_find(obj, due_name, sizeof(*due), &due_map, err);
	if (rc)
		return rc;
	for (k = 0; k < bpf_map__max_entries(free_slots) && !rc; k++)
		if (bpf_map_update_elem(bpf_map__fd(free_slots), NULL, &k, BPF_ANY))
			rc = bl_fail(err, errno, "cannot enter slot %u into the map %s: %s", k,
				     BL_MAP_FREE_SLOTS, strerror(errno));
	for (k = 0; k < bpf_map__max_entries(queues) && !rc; k++) {
		const struct bl_limit_cfg *l = limit_of(n, k);
		struct bl_queue q = { .limit_frames = l->frames,
				      .limit_bytes = l->bytes,
				      .mark_bytes = l->mark_bytes };

		rc = bl_map_set(bpf_map__fd(queues), k, &q, BL_MAP_QUEUES, err);
	}
	due = calloc(1, sizeof(*due));
	if (!rc && !due)
		rc = bl_fail(err, ENOMEM, "out of memory");
	if (!rc) {
		due->next = BL_DUE_NEVER;
		for (k = 0; k < BL_DUE_MAX; k++)
			due->at[k] = BL_DUE_NEVER;
		rc = bl_map_set(bpf_map__fd(due_map), 0, due, due_name, err);
	}
	free(due);
	return rc;
}

static int fill_outside(const struct bl_node_cfg *cfg, int fd, const struct bl_sw_port *ports,
			struct bl_err *err)
{
	struct bl_rsv *rsv = calloc(1, sizeof(*rsv));
	unsigned int k, j;
	int rc;

	if (!rsv)
		return bl_fail(err, ENOMEM, "out of memory");
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		for (j = 0; j < cfg->ports_count; j++)
			if (ports[k].ifindex && !strcmp(ports[k].name, cfg->ports[j].ifname))
				rsv->port[k].outside = cfg->ports[j].outside ||
						       cfg->ports[j].role == BL_PORT_UP;
	rc = bl_map_set(fd, 0, rsv, BL_MAP_RSV, err);
	free(rsv);
	return rc;
}

static int dev_set(struct bpf_map *m, uint32_t key, uint32_t ifindex, struct bl_err *err)
{
	struct bpf_devmap_val val = { .ifindex = ifindex, .bpf_prog.fd = -1 };

	if (!ifindex) {
		bpf_map_delete_elem(bpf_map__fd(m), &key);
		return 0;
	}
	if (bpf_map_update_elem(bpf_map__fd(m), &key, &val,
				BPF_ANY)) /* a map of plain indices takes the first word */
		return bl_fail(err, errno, "cannot enter interface %u into the device map %s: %s",
			       ifindex, bpf_map__name(m), strerror(errno));
	return 0;
}

static int fill_meters(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		       const struct bl_sw_port *ports, struct bl_err *err)
{
	struct bpf_map *meters, *tx;
	uint32_t k;
	int rc;

	rc = bl_map_find(obj, BL_MAP_METERS, sizeof(struct bl_meter), &meters, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_PORT_TX, 0, &tx, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		struct bl_meter meter = { .ns_q20 = ports[k].ifindex
							    ? bl_rate_ns_q20(bl_admission_port_rate(
								      cfg, ports[k].name))
							    : 0 };

		if (meter.ns_q20 && ports[k].mtu > BL_QUEUE_FRAME_MAX - 18)
			rc = bl_fail(err, EMSGSIZE,
				     "port %s has MTU %u, and a metered port queues frames of an "
				     "MTU up to %u; `ip link set %s mtu 1500`",
				     ports[k].name, ports[k].mtu, BL_QUEUE_FRAME_MAX - 18,
				     ports[k].name);
		if (!rc)
			rc = dev_set(tx, k, ports[k].ifindex, err);
		if (!rc)
			rc = bl_map_set(bpf_map__fd(meters), k, &meter, BL_MAP_METERS, err);
	}
	return rc;
}

static int fill_reservations(struct bl_node *n, const struct bl_node_cfg *cfg,
			     struct bpf_object *obj, const struct bl_sw_port *ports,
			     struct bl_err *err)
{
	struct bpf_map *rsv_cfg, *rsv, *pairs;
	struct bl_rsv_cfg c = {};
	uint32_t room;
	int rc;

	if (n->cfg.admission.policy != BL_POLICY_PL2 &&
	    !bpf_object__find_map_by_name(obj, BL_MAP_RSV_CFG))
		return 0;
	rc = bl_map_find(obj, BL_MAP_RSV_CFG, sizeof(c), &rsv_cfg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_RSV, sizeof(struct bl_rsv), &rsv, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_RSV_PAIRS, sizeof(struct bl_rsv_pair), &pairs,
				      err);
	if (!rc && n->queues_fresh)
		rc = fill_outside(cfg, bpf_map__fd(rsv), ports, err);
	if (rc)
		return rc;
	rsv_cfg_of(&n->cfg.admission, &c);
	for (room = 1; room * room < bpf_map__max_entries(pairs); room *= 2)
		c.pair_shift++;
	return bl_map_set(bpf_map__fd(rsv_cfg), 0, &c, BL_MAP_RSV_CFG, err);
}

/*
 * After load, before the programs see a frame. @ports: of a switch, by number. A host's hold_cfg
 * says "on" only once bl0 is there.
 */
int bl_admission_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      const struct bl_sw_port *ports, struct bl_err *err)
{
	bool host = n->cfg.role == BL_ROLE_HOST;
	int rc = 0;

	if (!n->cfg.admission.on && !bpf_object__find_map_by_name(obj, BL_MAP_QUEUES))
		return 0;
	if (n->queues_fresh)
		rc = fill_queues(n, obj, host ? BL_MAP_HOLD_DUE : BL_MAP_PORT_DUE, err);
	if (!rc && host)
		rc = bl_top_fill(n, obj, n->queues_fresh, err);
	if (!rc && !host)
		rc = fill_meters(n, cfg, obj, ports, err);
	if (!rc && !host)
		rc = fill_reservations(n, cfg, obj, ports, err);
	if (!rc && !host)
		rc = bl_token_fill(cfg, obj, ports, err);
	return rc;
}

/* The node's place at its pacer. */
int bl_admission_pace(struct bl_node *n, struct bpf_object *obj, const char *prog, const char *due,
		      unsigned int links, struct bl_err *err)
{
	struct bpf_program *p = bpf_object__find_program_by_name(obj, prog);
	struct bpf_map *page, *bell, *due_map;
	int rc;

	if (!p)
		return bl_fail(err, ENOENT, "this build has no program %s; build it anew", prog);
	rc = bl_map_find(obj, BL_MAP_PACE_PAGE, sizeof(struct bl_pace_page), &page, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_PACE_BELL, 0, &bell, err);
	if (!rc)
		rc = bl_map_find(obj, due, sizeof(struct bl_due), &due_map, err);
	if (!rc) {
		struct bl_pace_fds fds = { .prog = bpf_program__fd(p),
					   .page = bpf_map__fd(page),
					   .due = bpf_map__fd(due_map),
					   .bell = bpf_map__fd(bell),
					   .links = links };

		rc = bl_pacer_add(n->srv, &n->pace, bl_admission_cpu(&n->cfg),
				  n->cfg.admission.spin, &fds, err);
	}
	return rc;
}

int bl_admission_host_on(struct bl_node *n, struct bpf_object *obj, const uint8_t *mac,
			 uint32_t nic, uint32_t bl0d, struct bl_err *err)
{
	struct bl_hold_cfg c = { .on = mac != NULL };
	struct bpf_map *cfg, *tx;
	int rc;

	rc = bl_map_find(obj, BL_MAP_HOLD_CFG, sizeof(c), &cfg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_TX, 0, &tx, err);
	if (!rc)
		rc = dev_set(tx, BL_TX_NIC, mac ? nic : 0, err);
	if (!rc)
		rc = dev_set(tx, BL_TX_APP, mac ? bl0d : 0, err);
	if (rc)
		return rc;
	hold_cfg_of(&n->cfg.admission, &c);
	if (mac) {
		memcpy(c.mac, mac, sizeof(c.mac));
		c.app_ifindex = bl0d;
		c.nic_ifindex = nic;
	}
	return bl_map_set(bpf_map__fd(cfg), 0, &c, BL_MAP_HOLD_CFG, err);
}
