// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policy pl2: from what people configure to hold_cfg of hosts and rsv_cfg of switches.
 *
 * Example, a host with "rate: 250mbit": a byte takes 32 ns, a slot (1538 byte times) 49216 ns, so
 * t = 15 slots is 738240 ns. The switch with "outside_percent: 10" promises slots of 35.6 ns per
 * byte, 54684 ns each, on ports that it drains at 32 ns per byte. `barline admission set --rate
 * 500mbit` on the host makes t 369120 ns: 15 slots, as before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "core/pl2/pl2_core.h"
#include "loader/admission/policy.h"
#include "loader/node_priv.h"

#define REFUSE_SLOTS 64  /* PL2's T, much greater than t */
#define FAR_SLOTS    480 /* a little less than the bitmap's window */
/*
 * A burst begins that much earlier than both ports are free of what was promised before. Ports then
 * have something to send also where bursts do not fit each other, and queues hold a few frames
 * (docs/design-notes.md, "What a shuffle loses"). Less than a host's late_ns, which is 20 slots.
 */
#define OVERLAP_SLOTS 6

/* ---- hosts ---- */

static void host_defaults(struct bl_admission_cfg *a)
{
	if (!a->k)
		a->k = BL_PL2_K;
	if (!a->t_us && !a->t_slots)
		a->t_slots = BL_T_SLOTS;
}

static int check_host(const struct bl_node_cfg *c, bool selected, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (selected && !a->rate_bps)
		return bl_fail(err, EINVAL,
			       "pl2 counts time in frames of the link, so it needs the link's "
			       "rate; give admission a rate (--rate)");
	if (a->t_slots && a->t_us)
		return bl_fail(err, EINVAL,
			       "t is given in slots and in microseconds; one of them is enough");
	return 0;
}

static void hold_fields(const struct bl_admission_cfg *a, struct bl_hold_cfg *c)
{
	uint64_t slot = bl_slot_ns(c->link.ns_q20);
	struct bl_pl2_times t;

	bl_pl2_times(slot, &t);
	c->k_frames = a->k;
	c->k_bytes = a->k * BL_RSV_SLOT_BYTES;
	c->t_ns = a->t_us ? a->t_us * 1000ULL : a->t_slots * slot;
	c->recent_ns = bl_us_or(a->recent_us, t.recent_ns);
	c->retry_ns = bl_us_or(a->retry_us, t.retry_ns);
	c->coming_ns = bl_us_or(a->coming_us, t.coming_ns);
	c->late_ns = bl_us_or(a->late_us, t.late_ns);
}

/* Times that were given in slots, or follow from the slot, change with the rate. */
static void follow_rate(const struct bl_hold_cfg *was, struct bl_hold_cfg *now)
{
	uint64_t slot = bl_slot_ns(now->link.ns_q20);
	struct bl_pl2_times old_times, new_times;

	if (was->link.ns_q20)
		now->t_ns = was->t_ns * now->link.ns_q20 / was->link.ns_q20;
	else if (now->link.ns_q20 && !now->t_ns)
		now->t_ns = BL_T_SLOTS * slot;
	bl_pl2_times(bl_slot_ns(was->link.ns_q20), &old_times);
	bl_pl2_times(slot, &new_times);
	bl_follow(&now->recent_ns, old_times.recent_ns, new_times.recent_ns);
	bl_follow(&now->retry_ns, old_times.retry_ns, new_times.retry_ns);
	bl_follow(&now->late_ns, old_times.late_ns, new_times.late_ns);
	bl_follow(&now->coming_ns, old_times.coming_ns, new_times.coming_ns);
}

static int prepare_host(struct bl_change *c, struct bl_err *err)
{
	const struct bl_admission_set *set = c->set;
	struct bl_hold_cfg *now = &c->hold;
	__u32 slots = 0;

	if (bl_set_number(set, BL_AO_K, &now->k_frames, err))
		return -EINVAL;
	now->k_bytes = now->k_frames * BL_RSV_SLOT_BYTES;
	if (now->policy == BL_POLICY_PL2 && !now->link.ns_q20)
		return bl_fail(err, EINVAL,
			       "pl2 counts time in frames of the link, so it needs the link's "
			       "rate; add --rate");
	follow_rate(&c->hold_was, now);
	if (set->given[BL_AO_T_SLOTS] && set->given[BL_AO_T_US])
		return bl_fail(err, EINVAL,
			       "t is given in slots and in microseconds; one of them is enough");
	if (bl_set_number(set, BL_AO_T_SLOTS, &slots, err))
		return -EINVAL;
	if (set->given[BL_AO_T_SLOTS])
		now->t_ns = slots * bl_slot_ns(now->link.ns_q20);
	if (bl_set_time(set, BL_AO_T_US, &now->t_ns, err) ||
	    bl_set_time(set, BL_AO_RECENT_US, &now->recent_ns, err) ||
	    bl_set_time(set, BL_AO_RETRY_US, &now->retry_ns, err) ||
	    bl_set_time(set, BL_AO_COMING_US, &now->coming_ns, err) ||
	    bl_set_time(set, BL_AO_LATE_US, &now->late_ns, err))
		return -EINVAL;
	return 0;
}

static int change_host(struct bl_change *c, bool write, struct bl_err *err)
{
	const struct bl_hold_cfg *was = &c->hold_was, *now = &c->hold;

	if (!write)
		return prepare_host(c, err);
	bl_say_number(&c->said, "K", was->k_frames, now->k_frames, "");
	bl_say_number(&c->said, "t", was->t_ns, now->t_ns, " ns");
	bl_say_number(&c->said, "recent", was->recent_ns, now->recent_ns, " ns");
	bl_say_number(&c->said, "retry", was->retry_ns, now->retry_ns, " ns");
	bl_say_number(&c->said, "coming", was->coming_ns, now->coming_ns, " ns");
	bl_say_number(&c->said, "late", was->late_ns, now->late_ns, " ns");
	return 0;
}

static int show_host(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err)
{
	struct bl_hold_cfg c;
	int fd = bl_value_read(ref, BL_MAP_HOLD_CFG, &c, sizeof(c), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	bl_admission_put(v, BL_AO_K, c.k_frames);
	bl_admission_put(v, BL_AO_T_US, c.t_ns);
	bl_admission_put(v, BL_AO_RECENT_US, c.recent_ns);
	bl_admission_put(v, BL_AO_RETRY_US, c.retry_ns);
	bl_admission_put(v, BL_AO_COMING_US, c.coming_ns);
	bl_admission_put(v, BL_AO_LATE_US, c.late_ns);
	return 0;
}

/* ---- switches ---- */

static int check_switch(const struct bl_node_cfg *c, bool selected, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;
	unsigned int k;
	char text[32];

	for (k = 0; k < c->ports_count && selected; k++) {
		const struct bl_port_cfg *p = &c->ports[k];

		if (p->rate_bps && p->rate_bps < a->rate_bps)
			return bl_fail(err, EINVAL,
				       "port %s is slower (%s) than the rate that reservations are "
				       "made for; lower admission's rate to it",
				       p->ifname, bl_rate_text(p->rate_bps, text, sizeof(text)));
	}
	if (selected && !a->rate_bps)
		return bl_fail(err, EINVAL,
			       "pl2 makes reservations in time, so it needs the ports' rate; give "
			       "admission a rate (--rate)");
	return 0;
}

static void rsv_cfg_of(const struct bl_admission_cfg *a, bool on, struct bl_rsv_cfg *c)
{
	struct bl_pl2_times t;
	uint64_t slot;

	c->on = on;
	c->allocator = a->allocator;
	c->ns_q20 = bl_share_q20(bl_rate_ns_q20(a->rate_bps), a->outside_percent);
	slot = bl_slot_ns(c->ns_q20);
	c->limit_bytes = BL_PL2_K_MAX * BL_WIRE_BYTES(BL_QUEUE_FRAME_MAX);
	c->refuse_ns = bl_us_or(a->refuse_us, REFUSE_SLOTS * slot);
	c->far_ns = bl_us_or(a->far_us, FAR_SLOTS * slot);
	c->overlap_bytes = OVERLAP_SLOTS * BL_WIRE_FULL;
	bl_pl2_times(slot, &t);
	c->lapse_ns = bl_us_or(a->lapse_us, t.lapse_ns);
}

/* Empty reservations, and which ports lead out of the rack. */
static int fill_ports(const struct bl_node_cfg *cfg, int fd, const struct bl_sw_port *ports,
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

static int fill_switch(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		       const struct bl_sw_port *ports, bool selected, struct bl_err *err)
{
	struct bpf_map *rsv_cfg, *rsv, *pairs;
	struct bl_rsv_cfg c = {};
	uint32_t room;
	int rc;

	if (!selected && !bpf_object__find_map_by_name(obj, BL_MAP_RSV_CFG))
		return 0;
	rc = bl_map_find(obj, BL_MAP_RSV_CFG, sizeof(c), &rsv_cfg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_RSV, sizeof(struct bl_rsv), &rsv, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_RSV_PAIRS, sizeof(struct bl_rsv_pair), &pairs, err);
	if (!rc && n->queues_fresh)
		rc = fill_ports(cfg, bpf_map__fd(rsv), ports, err);
	if (rc)
		return rc;
	rsv_cfg_of(&n->cfg.admission, selected, &c);
	for (room = 1; room * room < bpf_map__max_entries(pairs); room *= 2)
		c.pair_shift++;
	return bl_map_set(bpf_map__fd(rsv_cfg), 0, &c, BL_MAP_RSV_CFG, err);
}

/* The share of ports for others stays, and bounds stay as many slots as they were. */
static int prepare_rsv(const struct bl_change *c, const struct bl_rsv_cfg *was,
		       struct bl_rsv_cfg *now, struct bl_err *err)
{
	const struct bl_admission_set *set = c->set;
	const bool new_rate = c->rate_q20 != c->meter_q20;
	struct bl_pl2_times old_times, new_times;
	__u32 outside = 0;

	if (bl_set_number(set, BL_AO_OUTSIDE_PERCENT, &outside, err))
		return -EINVAL;
	if (set->given[BL_AO_OUTSIDE_PERCENT])
		now->ns_q20 = bl_share_q20(c->rate_q20, outside);
	else if (c->meter_q20 && new_rate)
		now->ns_q20 = (uint32_t)((uint64_t)was->ns_q20 * c->rate_q20 / c->meter_q20);
	else if (!now->ns_q20)
		now->ns_q20 = c->rate_q20;
	if (new_rate && was->ns_q20) {
		now->refuse_ns = was->refuse_ns * now->ns_q20 / was->ns_q20;
		now->far_ns = was->far_ns * now->ns_q20 / was->ns_q20;
	}
	bl_pl2_times(bl_slot_ns(was->ns_q20), &old_times);
	bl_pl2_times(bl_slot_ns(now->ns_q20), &new_times);
	bl_follow(&now->lapse_ns, old_times.lapse_ns, new_times.lapse_ns);
	now->on = bl_policy_stays(c, BL_POLICY_PL2, was->on);
	if (bl_set_number(set, BL_AO_ALLOCATOR, &now->allocator, err))
		return -EINVAL;
	if (now->on && !now->ns_q20)
		return bl_fail(err, EINVAL,
			       "pl2 makes reservations in time, so it needs the ports' rate; add "
			       "--rate");
	if (bl_set_time(set, BL_AO_REFUSE_US, &now->refuse_ns, err) ||
	    bl_set_time(set, BL_AO_FAR_US, &now->far_ns, err) ||
	    bl_set_time(set, BL_AO_LAPSE_US, &now->lapse_ns, err))
		return -EINVAL;
	return 0;
}

static void say_rsv(const struct bl_said *s, const struct bl_rsv_cfg *was,
		    const struct bl_rsv_cfg *now)
{
	if (was->allocator != now->allocator)
		bl_say(s, "allocator", bl_allocator_name(was->allocator),
		       bl_allocator_name(now->allocator));
	bl_say_rate(s, "reserved rate", was->ns_q20, now->ns_q20);
	bl_say_number(s, "refuse", was->refuse_ns, now->refuse_ns, " ns");
	bl_say_number(s, "far", was->far_ns, now->far_ns, " ns");
	bl_say_number(s, "lapse", was->lapse_ns, now->lapse_ns, " ns");
}

static int change_switch(struct bl_change *c, bool write, struct bl_err *err)
{
	struct bl_rsv_cfg was, now;
	int fd = bl_value_read(c->ref, BL_MAP_RSV_CFG, &was, sizeof(was), true, err), rc;

	if (fd < 0)
		return fd;
	now = was;
	rc = prepare_rsv(c, &was, &now, err);
	if (!rc && write)
		rc = bl_map_set(fd, 0, &now, BL_MAP_RSV_CFG, err);
	close(fd);
	if (was.on)
		c->was = BL_POLICY_PL2;
	if (now.on)
		c->is = BL_POLICY_PL2;
	if (!rc && write)
		say_rsv(&c->said, &was, &now);
	return rc;
}

static int show_switch(const struct bl_node_ref *ref, struct bl_admission_set *v,
		       struct bl_err *err)
{
	struct bl_rsv_cfg c;
	int fd = bl_value_read(ref, BL_MAP_RSV_CFG, &c, sizeof(c), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	if (c.on)
		bl_admission_put(v, BL_AO_POLICY, BL_POLICY_PL2);
	bl_admission_put(v, BL_AO_ALLOCATOR, c.allocator);
	bl_admission_put(v, BL_AO_REFUSE_US, c.refuse_ns);
	bl_admission_put(v, BL_AO_FAR_US, c.far_ns);
	bl_admission_put(v, BL_AO_LAPSE_US, c.lapse_ns);
	return 0;
}

const struct bl_policy_ops bl_policy_pl2 = {
	.host = { .defaults = host_defaults,
		  .check = check_host,
		  .hold = hold_fields,
		  .change = change_host,
		  .show = show_host },
	.sw = { .check = check_switch,
		.fill = fill_switch,
		.change = change_switch,
		.show = show_switch },
};
