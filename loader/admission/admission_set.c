// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline admission set`: changes the settings of admission on a running node, in its pinned maps;
 * and reads them for `barline admission show`. The node's daemon is not involved. Its next start
 * sets again what its configuration says.
 *
 * A change has two passes over the table of policies: the first one refuses and changes nothing,
 * the second one writes (policy.h). So a refused change leaves the node as it was.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "core/queue/dest_core.h"
#include "core/queue/queue_core.h"
#include "base/time.h"
#include "loader/admission/admission_set.h"
#include "loader/admission/bl0.h"
#include "loader/admission/policies.h"

/*
 * Has the pacer visit all destinations: their frames were held under another policy's rules, and
 * would otherwise wait until the next frame comes.
 */
static void revisit_dests(const struct bl_node_ref *ref)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (sizeof(struct bl_due) + page - 1) / page * page;
	struct bl_due *due;
	struct bl_err err;
	uint32_t n;
	int fd;

	fd = bl_map_open(ref, BL_MAP_HOLD_DUE, sizeof(*due), true, &err);
	if (fd < 0)
		return; /* a node of an earlier build: the next frame of a destination does it */
	due = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (due == MAP_FAILED)
		return;
	for (n = 1; n < bl_numbers_used(due); n++)
		bl_due_lower(due, n, bl_mono_ns()); /* a sleeping pacer wakes within 100 ms */
	munmap(due, size);
}

static int set_rate(const struct bl_admission_set *set, uint32_t *ns_q20, struct bl_err *err)
{
	int rc;

	if (!set->given[BL_AO_RATE])
		return 0;
	rc = bl_admission_rate(set->value[BL_AO_RATE], "admission", err);
	if (!rc)
		*ns_q20 = bl_rate_ns_q20(set->value[BL_AO_RATE]);
	return rc;
}

/* Refuses options of the other role. */
static int check_roles(const struct bl_node_ref *ref, const struct bl_admission_set *set,
		       struct bl_err *err)
{
	const bool host = ref->role == BL_ROLE_HOST;
	unsigned int k;

	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (set->given[k] && !o->set)
			return bl_fail(err, EINVAL, "%s cannot be changed while a node runs",
				       o->key);
		if (set->given[k] && !(o->roles & (host ? BL_OPTION_HOSTS : BL_OPTION_SWITCHES)))
			return bl_fail(err, EINVAL, "%s is a %s: %s is a setting of %s",
				       ref->meta.name, host ? "host" : "switch", o->set,
				       host ? "switches" : "hosts");
	}
	if (set->given[BL_AO_POLICY] &&
	    bl_option_check(bl_option(BL_AO_POLICY), "policy", set->value[BL_AO_POLICY], err))
		return -EINVAL;
	return 0;
}

/* One pass over the policies. */
static int change_policies(struct bl_change *c, bool write, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	c->was = c->is = BL_POLICY_NONE;
	for (k = 0; k < BL_POLICY_COUNT && !rc; k++) {
		const struct bl_policy_role *role = bl_policy_role(bl_policy_ops(k), c->ref->role);

		if (role->change)
			rc = role->change(c, write, err);
	}
	return rc;
}

static void say_policy(const struct bl_said *s, unsigned int was, unsigned int now)
{
	if (was != now)
		bl_say(s, "policy", bl_policy_name(was), bl_policy_name(now));
}

static int write_host(struct bl_change *c, int fd, struct bl_err *err)
{
	const struct bl_hold_cfg *was = &c->hold_was, *now = &c->hold;
	int rc = 0;

	say_policy(&c->said, was->policy, now->policy);
	bl_say_rate(&c->said, "rate", was->link.ns_q20, now->link.ns_q20);
	/* with the same MTU the node can be changed from any network namespace */
	if (bl_policy_ops(was->policy)->frame_room != bl_policy_ops(now->policy)->frame_room)
		rc = bl_bl0_policy(c->ref->dir, now->policy, err);
	if (!rc)
		rc = change_policies(c, true, err);
	if (!rc)
		rc = bl_map_set(fd, 0, now, BL_MAP_HOLD_CFG, err);
	if (rc)
		return rc;
	if (was->link.ns_q20 != now->link.ns_q20)
		bl_bl0_rate(c->ref->dir, now->link.ns_q20);
	if (was->policy != now->policy)
		revisit_dests(c->ref);
	return 0;
}

static int change_host(struct bl_change *c, struct bl_err *err)
{
	int fd, rc = 0;

	fd = bl_value_read(c->ref, BL_MAP_HOLD_CFG, &c->hold_was, sizeof(c->hold_was), true, err);
	if (fd < 0)
		return fd;
	c->hold = c->hold_was;
	if (!c->hold_was.on)
		rc = bl_fail(err, EINVAL,
			     "%s was started without admission, so it has no bl0; start it with "
			     "`admission:` in its file, or --admission",
			     c->ref->meta.name);
	if (!rc)
		rc = set_rate(c->set, &c->hold.link.ns_q20, err);
	if (!rc && c->set->given[BL_AO_POLICY])
		c->hold.policy = (uint32_t)c->set->value[BL_AO_POLICY];
	if (!rc)
		rc = change_policies(c, false, err);
	if (!rc && !c->set->check)
		rc = write_host(c, fd, err);
	close(fd);
	return rc;
}

/*
 * Sets the rate of all metered ports, unless @ns_q20 is 0. *@old: the rate before of the first
 * metered port, for which reservations were made; 0: no port is metered.
 */
static int change_meters(const struct bl_node_ref *ref, uint32_t ns_q20, uint32_t *old,
			 struct bl_err *err)
{
	int fd = bl_map_open(ref, BL_MAP_METERS, sizeof(struct bl_meter), true, err), rc = 0;
	struct bl_meter m;
	uint32_t k;

	*old = 0;
	if (fd < 0)
		return fd;
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		if (bpf_map_lookup_elem(fd, &k, &m)) {
			rc = bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				     BL_MAP_METERS, strerror(errno));
		} else if (m.ns_q20) {
			if (!*old)
				*old = m.ns_q20;
			m.ns_q20 = ns_q20;
			if (ns_q20)
				rc = bl_map_set(fd, k, &m, BL_MAP_METERS, err);
		}
	}
	close(fd);
	return rc;
}

static int write_switch(struct bl_change *c, struct bl_err *err)
{
	uint32_t meter_q20 = c->meter_q20;
	int rc;

	say_policy(&c->said, c->was, c->is);
	bl_say_rate(&c->said, "rate", c->meter_q20, c->rate_q20);
	rc = change_policies(c, true, err);
	/* after the policies, whose shares follow from what ports are metered at until then */
	if (!rc && c->set->given[BL_AO_RATE] && meter_q20)
		rc = change_meters(c->ref, c->rate_q20, &meter_q20, err);
	return rc;
}

static int change_switch(struct bl_change *c, struct bl_err *err)
{
	struct bl_rsv_cfg cfg;
	int fd, rc = 0;

	fd = bl_value_read(c->ref, BL_MAP_RSV_CFG, &cfg, sizeof(cfg), false, err);
	if (fd < 0)
		return fd;
	close(fd);
	if (!cfg.pair_shift)
		rc = bl_fail(err, EINVAL,
			     "%s was started without admission; start it with `admission:` in its "
			     "file, or --admission",
			     c->ref->meta.name);
	if (!rc)
		rc = change_meters(c->ref, 0, &c->meter_q20, err);
	c->rate_q20 = c->meter_q20;
	if (!rc)
		rc = set_rate(c->set, &c->rate_q20, err);
	if (!rc && c->set->given[BL_AO_RATE] && !c->rate_q20)
		rc = bl_fail(err, EINVAL,
			     "rate 0: ports cannot become unmetered while frames wait in their "
			     "queues; start the switch without a rate");
	if (!rc)
		rc = change_policies(c, false, err);
	return rc || c->set->check ? rc : write_switch(c, err);
}

int bl_admission_change(const struct bl_node_ref *ref, const struct bl_admission_set *set,
			char *said, size_t size, struct bl_err *err)
{
	struct bl_change c = { .ref = ref, .set = set, .said = { said, size } };
	int rc;

	*said = 0;
	rc = check_roles(ref, set, err);
	if (rc)
		return rc;
	return ref->role == BL_ROLE_HOST ? change_host(&c, err) : change_switch(&c, err);
}

/* Policy and rate of a host. */
static int show_hold(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err)
{
	struct bl_hold_cfg c;
	int fd = bl_value_read(ref, BL_MAP_HOLD_CFG, &c, sizeof(c), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	bl_admission_put(v, BL_AO_POLICY, c.policy);
	bl_admission_put(v, BL_AO_RATE, bl_rate_of_q20(c.link.ns_q20));
	return 0;
}

/* The rate of the slowest metered port; 0: no port is metered. */
static int show_meters(const struct bl_node_ref *ref, struct bl_admission_set *v,
		       struct bl_err *err)
{
	int fd = bl_map_open(ref, BL_MAP_METERS, sizeof(struct bl_meter), false, err);
	uint32_t ns_q20 = 0, k;
	struct bl_meter m;

	if (fd < 0)
		return fd;
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		if (!bpf_map_lookup_elem(fd, &k, &m) && m.ns_q20 > ns_q20)
			ns_q20 = m.ns_q20;
	close(fd);
	bl_admission_put(v, BL_AO_POLICY, BL_POLICY_NONE);
	bl_admission_put(v, BL_AO_RATE, bl_rate_of_q20(ns_q20));
	return 0;
}

int bl_admission_show(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err)
{
	unsigned int k;
	int rc;

	memset(v, 0, sizeof(*v));
	rc = ref->role == BL_ROLE_HOST ? show_hold(ref, v, err) : show_meters(ref, v, err);
	for (k = 0; k < BL_POLICY_COUNT && !rc; k++) {
		const struct bl_policy_role *role = bl_policy_role(bl_policy_ops(k), ref->role);

		if (role->show)
			rc = role->show(ref, v, err);
	}
	return rc;
}
