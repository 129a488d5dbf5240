// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Admission at a node's start: defaults and checks of the configuration, and the maps that all
 * policies share (queues, slots, meters). What a policy needs besides, it does itself (policy.h).
 *
 * The maps of a node without admission have one entry: 4 KiB instead of 9 MB. When sizes or limits
 * change at a takeover, queues, slots and reservations start empty beside the old ones: the frames
 * that were held are lost, once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "loader/admission/pace.h"
#include "loader/admission/pacer.h"
#include "loader/admission/policies.h"
#include "loader/node_priv.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

#define HOST_MARK (64u << 10)

/* The options that a node of this role has. */
static bool has_option(const struct bl_node_cfg *c, const struct bl_option *o)
{
	return o->roles & (c->role == BL_ROLE_HOST ? BL_OPTION_HOSTS : BL_OPTION_SWITCHES);
}

/* ---- configuration ---- */

/* Sets what was not given. */
static void default_u32(uint32_t *v, uint32_t dflt)
{
	if (!*v)
		*v = dflt;
}

/* Sets the limits that were not given to those of @from. */
static void limit_defaults(struct bl_limit_cfg *l, const struct bl_limit_cfg *from)
{
	/* bytes follow the frames that were given with them */
	if (l->frames && !l->bytes)
		l->bytes = l->frames * BL_QUEUE_FRAME_MAX;
	default_u32(&l->frames, from->frames);
	default_u32(&l->bytes, from->bytes);
	/* half of a queue that is shorter than the usual mark */
	default_u32(&l->mark_bytes, from->mark_bytes < l->bytes ? from->mark_bytes : l->bytes / 2);
}

void bl_admission_defaults(struct bl_node_cfg *c)
{
	struct bl_admission_cfg *a = &c->admission;
	const struct bl_limit_cfg dflt = { BL_QUEUE_FRAMES, BL_QUEUE_FRAMES * BL_QUEUE_FRAME_MAX,
					   c->role == BL_ROLE_HOST ? HOST_MARK : 0 };
	unsigned int k;

	default_u32(&a->slots, BL_SLOTS);
	limit_defaults(&a->queue, &dflt);
	for (k = 0; k < BL_CL_COUNT; k++)
		limit_defaults(&a->limit[k], &a->queue);
	for (k = 0; k < BL_POLICY_COUNT; k++) {
		const struct bl_policy_role *role = bl_policy_role(bl_policy_ops(k), c->role);

		if (role->defaults)
			role->defaults(a);
	}
	if (!*a->bl0)
		strcpy(a->bl0, "bl0");
	if (!*a->bl0d)
		snprintf(a->bl0d, sizeof(a->bl0d), "%.14sd", a->bl0);
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

/* Refuses rates and limits of a switch's ports and classes. */
static int check_ports(const struct bl_node_cfg *c, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	for (k = 0; k < c->ports_count && !rc; k++)
		rc = bl_admission_rate(c->ports[k].rate_bps, c->ports[k].ifname, err);
	for (k = 0; k < BL_CL_COUNT && !rc; k++)
		rc = check_limits(&c->admission.limit[k], bl_class_name(k), err);
	return rc;
}

static int check_names(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (!strcmp(a->bl0, a->bl0d) || !strcmp(a->bl0, c->ifname) || !strcmp(a->bl0d, c->ifname))
		return bl_fail(err, EINVAL, "%s, %s and the NIC %s must be three names", a->bl0,
			       a->bl0d, c->ifname);
	return 0;
}

/* Refuses values that are out of their option's range. check_limits() has those of queues. */
static int check_ranges(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	unsigned int k;

	for (k = 0; k < BL_AO_TOP; k++) {
		const struct bl_option *o = bl_option(k);
		const char *member = (const char *)a + o->at;
		uint64_t v = bl_option_load(o, a);

		if (!v || !has_option(c, o) ||
		    (o->size && member >= (const char *)&a->queue &&
		     member < (const char *)(&a->queue + 1)))
			continue;
		if (bl_option_check(o, o->key, v - o->add, err))
			return -EINVAL;
	}
	return 0;
}

static int check_policies(const struct bl_node_cfg *c, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	for (k = 0; k < BL_POLICY_COUNT && !rc; k++) {
		const struct bl_policy_ops *ops = bl_policy_ops(k);
		const struct bl_policy_role *role = bl_policy_role(ops, c->role);

		if (role->check)
			rc = role->check(c, ops == bl_policy_ops(c->admission.policy), err);
	}
	return rc;
}

int bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	int rc;

	if (!a->on)
		return 0;
	rc = bl_admission_rate(a->rate_bps, "admission", err);
	if (!rc)
		rc = check_limits(&a->queue, "queues", err);
	if (!rc && a->pacer_cpu &&
	    (a->pacer_cpu > BL_SW_CPUS_MAX || (long)a->pacer_cpu > sysconf(_SC_NPROCESSORS_CONF)))
		rc = bl_fail(err, EINVAL,
			     "the pacer's CPU %u does not exist; this machine has CPUs 0 to %ld",
			     a->pacer_cpu - 1, sysconf(_SC_NPROCESSORS_CONF) - 1);
	if (!rc)
		rc = check_ranges(c, err);
	if (!rc && c->role == BL_ROLE_SWITCH)
		rc = check_ports(c, err);
	if (!rc)
		rc = check_policies(c, err);
	if (!rc && c->role == BL_ROLE_HOST)
		rc = check_names(c, err);
	return rc;
}

/* ---- maps ---- */

/* Maps that start empty together, since ring entries name slots. */
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

/* Places for ports in the maps: a power of two, at least 4. */
static uint32_t port_places(uint32_t nports)
{
	uint32_t room;

	for (room = 4; room < nports; room *= 2)
		;
	return room;
}

/* The number of entries that the configuration needs of a map; 0: as it was compiled. */
static uint32_t entries_needed(const struct bl_node_cfg *c, const struct bl_admission_cfg *a,
			       uint32_t nports, const char *name)
{
	uint32_t room = port_places(nports);
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

/* Limits of the queue with this key. */
static const struct bl_limit_cfg *queue_limit(const struct bl_node *n, uint32_t key)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;

	return n->cfg.role == BL_ROLE_HOST ? &a->queue : &a->limit[key % BL_CL_COUNT];
}

/* A pinned map of the node: its descriptor, or -1. */
static int open_pinned(const struct bl_node *n, const char *name, struct bpf_map_info *info)
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
 * Whether the pinned queues have the configured limits. Limits lie beside the fields that the
 * queue's lock guards, so they cannot be changed from here while the queue is used.
 */
static bool same_limits(const struct bl_node *n)
{
	struct bpf_map_info info;
	struct bl_queue q;
	uint32_t k;
	int fd = open_pinned(n, BL_MAP_QUEUES, &info);
	bool same = fd >= 0 && info.value_size == sizeof(q);

	for (k = 0; same && k < BL_CL_COUNT && k < info.max_entries; k++) {
		const struct bl_limit_cfg *l = queue_limit(n, k);

		same = !bpf_map_lookup_elem(fd, &k, &q) && q.limit_frames == l->frames &&
		       q.limit_bytes == l->bytes && q.mark_bytes == l->mark_bytes;
	}
	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * Sizes the maps, before bl_maps_reuse(), and appends the names of those that cannot be taken over
 * to @anew (NULL-terminated, with room for BL_ADMISSION_MAPS more). A map that is larger than the
 * ports need stays as it is. Returns 0 or -errno.
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

		want[k] = entries_needed(cfg, a, nports, group[k]);
		have[k] = 0;
		if (n->fresh || !bpf_object__find_map_by_name(obj, group[k]))
			continue;
		fd = open_pinned(n, group[k], &info);
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
		const struct bl_limit_cfg *l = queue_limit(n, k);
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

/* @ifindex 0 removes the entry. A map of plain indices takes the first word of the value. */
static int set_device(struct bpf_map *m, uint32_t key, uint32_t ifindex, struct bl_err *err)
{
	struct bpf_devmap_val val = { .ifindex = ifindex, .bpf_prog.fd = -1 };

	if (!ifindex) {
		bpf_map_delete_elem(bpf_map__fd(m), &key);
		return 0;
	}
	if (bpf_map_update_elem(bpf_map__fd(m), &key, &val, BPF_ANY))
		return bl_fail(err, errno, "cannot enter interface %u into the device map %s: %s",
			       ifindex, bpf_map__name(m), strerror(errno));
	return 0;
}

static int fill_meters(const struct bl_node_cfg *cfg, struct bpf_object *obj,
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
			rc = set_device(tx, k, ports[k].ifindex, err);
		if (!rc)
			rc = bl_map_set(bpf_map__fd(meters), k, &meter, BL_MAP_METERS, err);
	}
	return rc;
}

static int fill_policies(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
			 const struct bl_sw_port *ports, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;
	unsigned int k;
	int rc = 0;

	for (k = 0; k < BL_POLICY_COUNT && !rc; k++) {
		const struct bl_policy_ops *ops = bl_policy_ops(k);
		const struct bl_policy_role *role = bl_policy_role(ops, n->cfg.role);

		if (role->fill)
			rc = role->fill(n, cfg, obj, ports,
					a->on && ops == bl_policy_ops(a->policy), err);
	}
	return rc;
}

/*
 * Fills the maps after load, before the programs see a frame. @ports: of a switch, by number. A
 * host's hold_cfg says "on" only after bl_admission_host_on(). Returns 0 or -errno.
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
	if (!rc && !host)
		rc = fill_meters(cfg, obj, ports, err);
	return rc ? rc : fill_policies(n, cfg, obj, ports, err);
}

/* Gives the node a place at its pacer. */
int bl_admission_pace(struct bl_node *n, struct bpf_object *obj, const char *prog, const char *due,
		      unsigned int links, struct bl_err *err)
{
	int fd = bl_progs_find(&n->progs, prog), rc;
	struct bpf_map *page, *bell, *due_map;

	if (fd < 0)
		return bl_fail(err, ENOENT, "this build has no program %s; build it anew", prog);
	rc = bl_map_find(obj, BL_MAP_PACE_PAGE, sizeof(struct bl_pace_page), &page, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_PACE_BELL, 0, &bell, err);
	if (!rc)
		rc = bl_map_find(obj, due, sizeof(struct bl_due), &due_map, err);
	if (!rc) {
		struct bl_pace_fds fds = { .prog = fd,
					   .page = bpf_map__fd(page),
					   .due = bpf_map__fd(due_map),
					   .bell = bpf_map__fd(bell),
					   .links = links };

		rc = bl_pacer_add(n->srv, &n->pace, bl_admission_cpu(&n->cfg),
				  n->cfg.admission.spin, &fds, err);
	}
	return rc;
}

static void hold_cfg_of(const struct bl_admission_cfg *a, struct bl_hold_cfg *c)
{
	unsigned int k;

	c->policy = a->policy;
	c->link.ns_q20 = bl_rate_ns_q20(a->rate_bps);
	for (k = 0; k < BL_POLICY_COUNT; k++)
		if (bl_policy_ops(k)->host.hold)
			bl_policy_ops(k)->host.hold(a, c);
}

/*
 * Writes a host's hold_cfg. @mac: address of bl0, whose other end is @bl0d; NULL: admission is off.
 * @nic, @bl0d: indices of interfaces. Returns 0 or -errno.
 */
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
		rc = set_device(tx, BL_TX_NIC, mac ? nic : 0, err);
	if (!rc)
		rc = set_device(tx, BL_TX_APP, mac ? bl0d : 0, err);
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
