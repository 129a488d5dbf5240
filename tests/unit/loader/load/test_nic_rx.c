// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/nic_rx.c: the flow rules of a range of ports, and a NIC of its own that has flow
 * rules, an indirection table, channels, or nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>

#include "tests/unit/unit.h"

#include "base/ethtool.h"
#include "loader/load/nic_rx.h"
#include "maps/wire_abi.h"

#define RULES 64

static struct {
	unsigned int queues, entries; /* receive queues; of the indirection table */
	uint32_t table[256];
	bool apart;    /* its channels are for one direction each */
	bool attached; /* and its driver changes no channels meanwhile */
	bool has_rules, has_table, has_channels, twists; /* twists: keeps another rule than asked */
	struct ethtool_rx_flow_spec rule[RULES];
	bool taken[RULES];
	bool picks;            /* the driver picks the places of rules */
	unsigned int inserted; /* rules so far */
	unsigned int dies_at;  /* the daemon is killed after so many of them; 0: it is not */
	int feature[4];        /* 1, 0, -ENOENT: features[] */
	bool fixed[4];
} k;

static struct bl_nic kept;
static struct bl_err err;
static jmp_buf killed;
static const struct bl_iface nic = { .name = "eth9", .ifindex = 9 };

unsigned int __wrap_et_rx_queues(const char *ifname);
int __wrap_et_channels(const char *ifname, struct ethtool_channels *c);
int __wrap_et_channels_set(const char *ifname, uint32_t combined);
int __wrap_et_feature(const char *ifname, const char *name);
int __wrap_et_feature_set(const char *ifname, const char *name, bool on);
int __wrap_et_rule_place(const char *ifname, uint32_t *place);
int __wrap_et_rule_list(const char *ifname, uint32_t *places, unsigned int max);
int __wrap_et_rule_add(const char *ifname, struct ethtool_rx_flow_spec *spec);
int __wrap_et_rule_get(const char *ifname, struct ethtool_rx_flow_spec *spec);
int __wrap_et_rule_del(const char *ifname, uint32_t location);
int __wrap_et_rules(const char *ifname);
int __wrap_et_table(const char *ifname, uint32_t *table, unsigned int max);
int __wrap_et_table_set(const char *ifname, const uint32_t *table, unsigned int n);

unsigned int __wrap_et_rx_queues(const char *ifname)
{
	(void)ifname;
	return k.queues;
}

int __wrap_et_channels(const char *ifname, struct ethtool_channels *c)
{
	(void)ifname;
	*c = (struct ethtool_channels){ .combined_count = k.apart ? 0 : k.queues,
					.rx_count = k.apart ? k.queues : 0 };
	return k.has_channels ? 0 : -EOPNOTSUPP;
}

int __wrap_et_rules(const char *ifname)
{
	(void)ifname;
	return k.has_rules ? 0 : -EOPNOTSUPP;
}

int __wrap_et_channels_set(const char *ifname, uint32_t combined)
{
	(void)ifname;
	if (k.attached)
		return -EINVAL;
	k.queues = combined;
	return 0;
}

static const char *const features[] = { ET_FEATURE_LRO, ET_FEATURE_GRO_HW, ET_FEATURE_VLAN,
					ET_FEATURE_STAG };

static unsigned int feature_of(const char *name)
{
	unsigned int j;

	for (j = 0; j < 3 && strcmp(name, features[j]) != 0; j++)
		;
	assert_string_equal(name, features[j]);
	return j;
}

int __wrap_et_feature(const char *ifname, const char *name)
{
	(void)ifname;
	return k.feature[feature_of(name)];
}

int __wrap_et_feature_set(const char *ifname, const char *name, bool on)
{
	(void)ifname;
	if (k.fixed[feature_of(name)])
		return -EPERM;
	k.feature[feature_of(name)] = on;
	return 0;
}

static int free_place(uint32_t *place)
{
	unsigned int at;

	for (at = RULES; at-- > 0 && k.taken[at];)
		;
	*place = at;
	return at < RULES ? 0 : -ENOSPC;
}

int __wrap_et_rule_place(const char *ifname, uint32_t *place)
{
	(void)ifname;
	if (!k.has_rules)
		return -EOPNOTSUPP;
	*place = RX_CLS_LOC_ANY;
	return k.picks ? 0 : free_place(place);
}

int __wrap_et_rule_list(const char *ifname, uint32_t *places, unsigned int max)
{
	unsigned int at, n = 0;

	(void)ifname;
	for (at = 0; at < RULES; at++)
		if (k.taken[at]) {
			assert_true(n < max);
			places[n++] = at;
		}
	return (int)n;
}

/*
 * A rule that is there already is refused, or, where the driver picks the place, found again: sfc
 * does this (efx_filter_insert_filter() with replace_equal).
 */
int __wrap_et_rule_add(const char *ifname, struct ethtool_rx_flow_spec *spec)
{
	struct ethtool_rx_flow_spec f = *spec;
	unsigned int at;

	(void)ifname;
	for (at = 0; at < RULES; at++) {
		f.location = k.rule[at].location;
		if (k.taken[at] && !memcmp(&f, &k.rule[at], sizeof(f))) {
			spec->location = at;
			return k.picks ? 0 : -EEXIST;
		}
	}
	assert_int_equal(spec->location == RX_CLS_LOC_ANY, k.picks);
	if (k.picks && free_place(&spec->location))
		return -ENOSPC;
	at = spec->location;
	k.rule[at] = *spec;
	if (k.twists && spec->flow_type == UDP_V6_FLOW)
		k.rule[at].h_u.udp_ip6_spec.pdst = 0;
	k.taken[at] = true;
	if (++k.inserted == k.dies_at)
		longjmp(killed, 1);
	return 0;
}

int __wrap_et_rule_get(const char *ifname, struct ethtool_rx_flow_spec *spec)
{
	uint32_t at = spec->location;

	(void)ifname;
	if (at >= RULES || !k.taken[at])
		return -ENOENT;
	*spec = k.rule[at];
	return 0;
}

int __wrap_et_rule_del(const char *ifname, uint32_t location)
{
	(void)ifname;
	assert_true(location < RULES && k.taken[location]);
	k.taken[location] = false;
	return 0;
}

int __wrap_et_table(const char *ifname, uint32_t *table, unsigned int max)
{
	(void)ifname;
	if (!k.has_table)
		return -EOPNOTSUPP;
	assert_true(k.entries <= max);
	memcpy(table, k.table, k.entries * sizeof(*table));
	return (int)k.entries;
}

int __wrap_et_table_set(const char *ifname, const uint32_t *table, unsigned int n)
{
	unsigned int j;

	(void)ifname;
	for (j = 0; j < k.entries; j++)
		k.table[j] = n ? table[j] : j % k.queues;
	return 0;
}

static int keep(const struct bl_nic *n, void *ctx)
{
	(void)ctx;
	kept = *n;
	return 0;
}

static void start(unsigned int queues)
{
	unsigned int j;

	memset(&k, 0, sizeof(k));
	memset(&kept, 0, sizeof(kept));
	k.queues = queues;
	k.entries = 128;
	for (j = 0; j < 4; j++)
		k.feature[j] = -ENOENT;
	for (j = 0; j < k.entries; j++)
		k.table[j] = j % queues;
}

static int make_for(uint16_t base, uint16_t count, bool one_queue)
{
	const struct bl_rx_want w = { .port_base = base,
				      .port_count = count,
				      .one_queue = one_queue };
	struct bl_nic n = kept;
	int rc = bl_rx_make(&nic, &n, &w, keep, NULL, &err);

	kept = n;
	return rc;
}

static int make(bool one_queue)
{
	return make_for(BL_PORT_BASE, BL_PORT_COUNT, one_queue);
}

static unsigned int rules_set(void)
{
	unsigned int j, n = 0;

	for (j = 0; j < RULES; j++)
		n += k.taken[j];
	return n;
}

/* Whether one of the @n rules matches a UDP frame to @port. */
static bool is_covered(const struct ethtool_rx_flow_spec *v, int n, uint16_t port)
{
	int j;

	for (j = 1; j < n; j += 2) {
		assert_int_equal(v[j].flow_type, UDP_V4_FLOW);
		assert_int_equal(v[j + 1].flow_type, UDP_V6_FLOW);
		assert_int_equal(v[j].h_u.udp_ip4_spec.pdst, v[j + 1].h_u.udp_ip6_spec.pdst);
		assert_int_equal(v[j].m_u.udp_ip4_spec.pdst, v[j + 1].m_u.udp_ip6_spec.pdst);
		if (!((v[j].h_u.udp_ip4_spec.pdst ^ htons(port)) & v[j].m_u.udp_ip4_spec.pdst))
			return true;
	}
	return false;
}

/* Each port of the range is matched, and no other one. */
static void rules__cover_the_range(void **state)
{
	static const struct {
		uint16_t base, count;
		int n;
	} t[] = {
		{ BL_PORT_BASE, BL_PORT_COUNT, 3 },
		{ BL_PORT_BASE, 1, 3 },
		{ 61697, 1, 3 },
		{ 61696, 3, 5 },
		{ 61697, 255, 17 },
		{ 65280, 256, 3 },
		{ 65535, 1, 3 },
		{ 61440, 64, 3 },
	};
	struct ethtool_rx_flow_spec v[32];
	unsigned int i;
	uint32_t p;
	int n;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		n = bl_rx_rules(t[i].base, t[i].count, v, 32);
		assert_int_equal(n, t[i].n);
		assert_int_equal(v[0].flow_type, ETHER_FLOW);
		assert_int_equal(v[0].h_u.ether_spec.h_proto, htons(BL_ETHERTYPE));
		for (p = 0; p < 65536; p++)
			assert_int_equal(is_covered(v, n, (uint16_t)p),
					 p >= t[i].base && p < (uint32_t)t[i].base + t[i].count);
	}
	assert_int_equal(bl_rx_rules(61697, 255, v, 16), -E2BIG);
	assert_int_equal(bl_rx_rules(61696, 1, v, 0), -E2BIG);
	assert_int_equal(bl_rx_rules(61696, 1, v, 2), -E2BIG);
}

static void make__flow_rules(void **state)
{
	(void)state;
	start(4);
	k.has_rules = k.has_table = true;
	k.taken[RULES - 1] = true; /* a rule of somebody else's */
	k.rule[RULES - 1].flow_type = TCP_V4_FLOW;
	assert_int_equal(make(false), 0);
	assert_int_equal(kept.rx, BL_NIC_MADE);
	assert_int_equal(kept.done, BL_NIC_FLOWS);
	assert_int_equal(rules_set(), 4);
	assert_int_equal(k.table[1], 1);
	/* once more: nothing changes; after a loss: made again, and none is left over */
	assert_int_equal(make(false), 0);
	assert_int_equal(rules_set(), 4);
	k.taken[kept.rule[1]] = false;
	assert_false(bl_rx_kept(&nic, &kept));
	assert_int_equal(make(false), 0);
	assert_int_equal(rules_set(), 4);
	assert_true(bl_rx_kept(&nic, &kept));
	/* somebody else's rules have got places of barline's: another port, another kind */
	k.rule[kept.rule[1]].h_u.udp_ip4_spec.pdst = htons(53);
	k.rule[kept.rule[2]] =
		(struct ethtool_rx_flow_spec){ .flow_type = TCP_V6_FLOW, .location = kept.rule[2] };
	bl_rx_undo(&nic, &kept);
	assert_int_equal(rules_set(), 3);
	assert_int_equal(kept.done, 0);
}

/* Somebody's rule that is like barline's, but not the same, at a place that was barline's. */
static void kept__not_by_a_rule_of_others(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct ethtool_rx_flow_spec *f;
		uint32_t place;

		start(4);
		k.has_rules = true;
		assert_int_equal(make(false), 0);
		assert_true(bl_rx_kept(&nic, &kept));
		place = kept.rule[1];
		f = &k.rule[place];
		if (i == 0)
			f->h_u.udp_ip4_spec.pdst = htons(53);
		else if (i == 1)
			f->m_u.udp_ip4_spec.pdst = 0xffff;
		else if (i == 2)
			f->m_u.udp_ip4_spec.ip4src = 0xffffffff;
		else if (i == 3)
			f->ring_cookie = 2;
		else
			k.rule[kept.rule[0]].m_u.ether_spec.h_source[5] = 0xff;
		place = i == 4 ? kept.rule[0] : place;
		assert_false(bl_rx_kept(&nic, &kept));
		assert_int_equal(make(false), 0);
		assert_int_equal(kept.done, BL_NIC_FLOWS);
		assert_true(bl_rx_kept(&nic, &kept));
		assert_int_equal(rules_set(), 4);
		bl_rx_undo(&nic, &kept);
		assert_int_equal(rules_set(), 1);
		assert_true(k.taken[place]);
	}
}

/* Makes the rules with a daemon that is killed when the driver has taken rule @n. */
static void make_and_die(unsigned int n, bool picks)
{
	start(4);
	k.has_rules = k.has_table = true;
	k.picks = picks;
	k.taken[7] = true; /* a rule of somebody else's */
	k.rule[7] = (struct ethtool_rx_flow_spec){ .flow_type = TCP_V4_FLOW, .location = 7 };
	k.dies_at = n;
	if (!setjmp(killed)) {
		make(false);
		fail_msg("it was not killed");
	}
	assert_int_equal(rules_set(), n + 1);
}

/* A daemon is killed between a rule and whatever it does next: no rule is forgotten. */
static void make__killed_after_a_rule(void **state)
{
	unsigned int n, picks;

	(void)state;
	for (n = 1; n <= 3; n++)
		for (picks = 0; picks < 2; picks++) {
			make_and_die(n, picks);
			bl_rx_undo(&nic, &kept);
			assert_int_equal(rules_set(), 1);
			assert_true(k.taken[7]);

			make_and_die(n, picks);
			assert_int_equal(make(false), 0);
			assert_int_equal(kept.done, BL_NIC_FLOWS);
			assert_int_equal(rules_set(), 4);
			assert_true(bl_rx_kept(&nic, &kept));
			bl_rx_undo(&nic, &kept);
			assert_int_equal(rules_set(), 1);
		}
}

/* Where the driver picks the place, a rule of the operator's own is not taken for barline's. */
static void make__a_rule_that_is_there(void **state)
{
	(void)state;
	start(4);
	k.has_rules = k.has_table = k.picks = true;
	assert_true(bl_rx_rules(BL_PORT_BASE, BL_PORT_COUNT, &k.rule[7], 3) == 3);
	k.taken[8] = true;
	k.rule[8].location = 8;
	assert_int_equal(make(false), 0);
	assert_int_equal(kept.done, BL_NIC_TABLE);
	assert_int_equal(rules_set(), 1);
	bl_rx_undo(&nic, &kept);
	assert_true(k.taken[8]);
}

/* A node that is started again with another range of ports. */
static void make__other_ports(void **state)
{
	(void)state;
	start(4);
	k.has_rules = k.has_table = true;
	assert_int_equal(make(false), 0);
	assert_int_equal(make_for(61440, 64, false), 0);
	assert_int_equal(kept.done, BL_NIC_FLOWS);
	assert_int_equal(rules_set(), 3);
	assert_int_equal(k.rule[kept.rule[1]].h_u.udp_ip4_spec.pdst, htons(61440));
	assert_true(bl_rx_kept(&nic, &kept));
	assert_int_equal(make_for(61440, 32, false), 0);
	assert_int_equal(rules_set(), 3);
	assert_int_equal(k.rule[kept.rule[1]].m_u.udp_ip4_spec.pdst, htons(0xffe0));
	/* a range that takes more rules than are recorded: no rule of the old one is left over */
	assert_int_equal(make_for(61697, 255, false), 0);
	assert_int_equal(kept.done, BL_NIC_TABLE);
	assert_int_equal(rules_set(), 0);
	assert_true(bl_rx_kept(&nic, &kept));
}

/* A driver that stores another rule than it was told is not believed. */
static void make__twisted_rules(void **state)
{
	(void)state;
	start(4);
	k.has_rules = k.has_table = k.twists = true;
	assert_int_equal(make(false), 0);
	assert_int_equal(kept.done, BL_NIC_TABLE);
	assert_int_equal(rules_set(), 0);
}

static void make__table(void **state)
{
	uint32_t was[256];
	unsigned int j;

	(void)state;
	start(4);
	k.has_table = true;
	k.table[5] = 3;
	memcpy(was, k.table, sizeof(was));
	assert_int_equal(make(false), 0);
	assert_int_equal(kept.done, BL_NIC_TABLE);
	for (j = 0; j < k.entries; j++)
		assert_int_equal(k.table[j], 0);
	assert_true(bl_rx_kept(&nic, &kept));
	k.table[9] = 2;
	assert_false(bl_rx_kept(&nic, &kept));
	k.table[9] = 0;
	bl_rx_undo(&nic, &kept);
	assert_memory_equal(k.table, was, k.entries * sizeof(k.table[0]));

	/* what somebody has set meanwhile stays */
	assert_int_equal(make(false), 0);
	k.table[7] = 1;
	bl_rx_undo(&nic, &kept);
	assert_int_equal(k.table[7], 1);
	assert_int_equal(k.table[6], 0);
}

static void make__channels(void **state)
{
	(void)state;
	start(4);
	k.has_channels = true;
	k.apart = true;
	assert_int_equal(make(false), -EPERM);
	assert_null(strstr(err.text, "--one-queue")); /* it cannot do it */
	assert_non_null(strstr(err.text, "`ethtool -L eth9 rx 1`"));
	assert_int_equal(make(true), -EPERM);
	assert_non_null(strstr(err.text, "`ethtool -L eth9 rx 1`"));
	k.apart = false;
	assert_int_equal(make(false), -EPERM);
	assert_non_null(strstr(err.text, "`ethtool -L eth9 combined 1`"));
	assert_non_null(strstr(err.text, "--one-queue"));
	assert_non_null(strstr(err.text, "4 queues"));
	assert_int_equal(k.queues, 4);
	/* after that was accepted it counts as kept until there is one queue */
	kept.rx = BL_NIC_BROKEN;
	assert_true(bl_rx_kept(&nic, &kept));
	k.queues = 1;
	assert_false(bl_rx_kept(&nic, &kept));
	k.queues = 4;
	assert_int_equal(make(true), 0);
	assert_int_equal(k.queues, 1);
	assert_int_equal(make(true), 0);
	assert_int_equal(kept.rx, BL_NIC_MADE);
	bl_rx_undo(&nic, &kept);
	assert_int_equal(k.queues, 4);
	/* a number that somebody has set meanwhile stays */
	assert_int_equal(make(true), 0);
	k.queues = 2;
	bl_rx_undo(&nic, &kept);
	assert_int_equal(k.queues, 2);
}

/* A driver that changes its channels only before a program is attached. */
static void before__channels(void **state)
{
	const struct bl_rx_want w = { .port_base = BL_PORT_BASE,
				      .port_count = BL_PORT_COUNT,
				      .one_queue = true };
	struct bl_nic n = {};

	(void)state;
	start(4);
	k.has_channels = k.attached = true;
	assert_int_equal(make(true), -EPERM);
	assert_non_null(strstr(err.text, "detach the node"));
	k.attached = false;
	assert_int_equal(bl_rx_before(&nic, &n, &w, keep, NULL, &err), 0);
	assert_int_equal(k.queues, 1);
	k.attached = true;
	kept = n;
	assert_int_equal(make(true), 0);
	assert_int_equal(kept.rx, BL_NIC_MADE);
	k.attached = false;
	bl_rx_undo(&nic, &kept);
	assert_int_equal(k.queues, 4);
	/* with a table or rules, channels are not needed */
	k.has_table = true;
	assert_int_equal(bl_rx_before(&nic, &n, &w, keep, NULL, &err), 0);
	assert_int_equal(k.queues, 4);
}

static void make__one_queue(void **state)
{
	(void)state;
	start(1);
	assert_int_equal(make(false), 0);
	assert_int_equal(kept.rx, BL_NIC_IS_FIFO);
	assert_int_equal(kept.done, 0);
}

static void before__offloads(void **state)
{
	const struct bl_rx_want w = { .port_base = BL_PORT_BASE, .port_count = BL_PORT_COUNT };
	struct bl_nic n = {};
	unsigned int j;

	(void)state;
	start(1);
	for (j = 0; j < 4; j++)
		k.feature[j] = 1;
	assert_int_equal(bl_rx_before(&nic, &n, &w, keep, NULL, &err), 0);
	assert_int_equal(n.done, BL_NIC_LRO | BL_NIC_GRO_HW | BL_NIC_VLAN | BL_NIC_STAG);
	assert_int_equal(kept.done, n.done);
	for (j = 0; j < 4; j++)
		assert_int_equal(k.feature[j], 0);
	bl_rx_undo(&nic, &n);
	for (j = 0; j < 4; j++)
		assert_int_equal(k.feature[j], 1);
	/* one that is off stays off; one that cannot be changed is not put back */
	k.feature[1] = 0;
	k.fixed[0] = k.fixed[2] = true;
	assert_int_equal(bl_rx_before(&nic, &n, &w, keep, NULL, &err), 0);
	assert_int_equal(n.done, BL_NIC_STAG);
	assert_int_equal(kept.done, BL_NIC_STAG);
	bl_rx_undo(&nic, &n);
	assert_int_equal(k.feature[1], 0);
	assert_int_equal(k.feature[3], 1);
}

/* Others turn offloads on while the daemon runs. */
static void kept__not_with_offloads(void **state)
{
	const struct bl_rx_want w = { .port_base = BL_PORT_BASE, .port_count = BL_PORT_COUNT };
	struct bl_nic n = {};
	unsigned int j;

	(void)state;
	start(4);
	k.has_rules = true;
	for (j = 0; j < 4; j++)
		k.feature[j] = 1;
	k.feature[3] = 0;
	assert_int_equal(bl_rx_before(&nic, &n, &w, keep, NULL, &err), 0);
	assert_int_equal(make(false), 0);
	for (j = 0; j < 3; j++) {
		assert_true(bl_rx_kept(&nic, &kept));
		k.feature[j] = 1;
		assert_false(bl_rx_kept(&nic, &kept));
		assert_int_equal(make(false), 0);
		assert_int_equal(k.feature[j], 0);
	}
	assert_true(bl_rx_kept(&nic, &kept));
	/* what was off before is theirs */
	k.feature[3] = 1;
	assert_true(bl_rx_kept(&nic, &kept));
	/* one that does not go off any more: said once, and not tried for ever */
	k.feature[2] = 1;
	k.fixed[2] = true;
	assert_false(bl_rx_kept(&nic, &kept));
	assert_int_equal(make(false), 0);
	assert_true(bl_rx_kept(&nic, &kept));
	assert_int_equal(kept.done, BL_NIC_LRO | BL_NIC_GRO_HW | BL_NIC_FLOWS);
	/* also where reordering was accepted, and where there is one queue */
	kept.rx = BL_NIC_BROKEN;
	k.feature[0] = 1;
	assert_false(bl_rx_kept(&nic, &kept));
	k.queues = 1;
	assert_int_equal(make(false), 0);
	assert_int_equal(k.feature[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules__cover_the_range),
		cmocka_unit_test(make__flow_rules),
		cmocka_unit_test(make__twisted_rules),
		cmocka_unit_test(make__table),
		cmocka_unit_test(kept__not_by_a_rule_of_others),
		cmocka_unit_test(make__killed_after_a_rule),
		cmocka_unit_test(make__a_rule_that_is_there),
		cmocka_unit_test(make__other_ports),
		cmocka_unit_test(make__channels),
		cmocka_unit_test(make__one_queue),
		cmocka_unit_test(before__channels),
		cmocka_unit_test(before__offloads),
		cmocka_unit_test(kept__not_with_offloads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
