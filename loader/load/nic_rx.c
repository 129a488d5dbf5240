// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The receive side of a NIC, of a host and of a switch's port: ordered frames and beacons come in
 * on one receive queue.
 *
 * A NIC with several receive queues spreads flows over them, and each queue has a CPU of its own.
 * If a beacon on queue 1 is handled before the message that came in front of it on queue 0, its
 * barrier says that the message was delivered. Steering to the home CPU does not repair that: a
 * frame gets there when the CPU of its queue has handled it.
 *
 * These are tried in this order, and the first one that the driver accepts is taken:
 *
 *   1. flow rules (ethtool -N) to receive queue 0: ethertype 0x88B5, and the UDP ports, over IPv4
 *      and IPv6. All other traffic stays spread. The range 61696 to 61951 is one rule each, because
 *      it is 61696 under the mask 0xff00; another range takes a rule for each aligned block.
 *   2. an indirection table (ethtool -X) in which each entry names queue 0. All other traffic is on
 *      that queue, too. Frames without an IP header, such as beacons, have no hash, and come in by
 *      entry 0 of the table.
 *   3. with one_queue: one channel (ethtool -L combined 1), which leaves all traffic one queue.
 *
 * Large receive offload and GRO in hardware merge frames before XDP sees them, and drivers refuse
 * XDP while they are on; they are turned off. So is the hardware's removal of VLAN tags: it puts
 * the tag beside the frame, where XDP does not see it, so that a switch would send the frame on
 * without it, and a host its ACK, which is the frame itself.
 */
#include "loader/load/nic_rx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/ethtool.h"
#include "maps/wire_abi.h"

#define QUEUE 0 /* exists whatever the number of queues is */

/* ---- the rules ---- */

/* Adds the rules of one aligned block of UDP ports. */
static void add_block(struct ethtool_rx_flow_spec *v, uint16_t port, uint16_t mask)
{
	v[0] = (struct ethtool_rx_flow_spec){ .flow_type = UDP_V4_FLOW, .ring_cookie = QUEUE };
	v[0].h_u.udp_ip4_spec.pdst = htons(port);
	v[0].m_u.udp_ip4_spec.pdst = htons(mask);
	v[1] = (struct ethtool_rx_flow_spec){ .flow_type = UDP_V6_FLOW, .ring_cookie = QUEUE };
	v[1].h_u.udp_ip6_spec.pdst = htons(port);
	v[1].m_u.udp_ip6_spec.pdst = htons(mask);
}

int bl_rx_rules(uint16_t base, uint16_t count, struct ethtool_rx_flow_spec *v, unsigned int max)
{
	uint32_t at = base, end = (uint32_t)base + count;
	unsigned int n = 1;

	if (!max)
		return -E2BIG;
	v[0] = (struct ethtool_rx_flow_spec){ .flow_type = ETHER_FLOW, .ring_cookie = QUEUE };
	v[0].h_u.ether_spec.h_proto = htons(BL_ETHERTYPE);
	v[0].m_u.ether_spec.h_proto = 0xffff;
	while (at < end) {
		uint32_t size = 1;

		/* the greatest block that begins here and ends within the range */
		while (!(at & size) && size < 0x8000 && at + 2 * size <= end)
			size *= 2;
		if (n + 2 > max)
			return -E2BIG;
		add_block(&v[n], (uint16_t)at, (uint16_t) ~(size - 1));
		n += 2;
		at += size;
	}
	return (int)n;
}

/* ---- offloads ---- */

static const struct {
	const char *feature;
	uint32_t bit;
	const char *does, *harm; /* of the hardware, and what follows if it stays on */
} offloads[] = {
	{ ET_FEATURE_LRO, BL_NIC_LRO, "merges frames", "the driver may refuse native XDP" },
	{ ET_FEATURE_GRO_HW, BL_NIC_GRO_HW, "merges frames", "the driver may refuse native XDP" },
	{ ET_FEATURE_VLAN, BL_NIC_VLAN, "takes VLAN tags off frames",
	  "ordered frames that have one lose it" },
	{ ET_FEATURE_STAG, BL_NIC_STAG, "takes service VLAN tags off frames",
	  "ordered frames that have one lose it" },
};

#define OFFLOADS (sizeof(offloads) / sizeof(offloads[0]))

static int turn_off(const struct bl_iface *i, struct bl_nic *nic, unsigned int k,
		    int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_err *err)
{
	const char *feature = offloads[k].feature;
	int rc;

	if (et_feature(i->name, feature) != 1)
		return 0;
	nic->done |= offloads[k].bit;
	rc = save(nic, ctx);
	if (rc)
		return bl_fail(err, -rc, "cannot write the map %s: %s", BL_MAP_NIC, strerror(-rc));
	rc = et_feature_set(i->name, feature, false);
	if (!rc) {
		bl_log(BL_LOG_INFO, "%s: %s is off while barline runs", i->name, feature);
		return 0;
	}
	/* XDP is still worth a try: the driver decides when the program is attached. */
	nic->done &= ~offloads[k].bit;
	bl_log(BL_LOG_WARN, "%s %s in hardware (%s), and that cannot be turned off: %s; %s",
	       i->name, offloads[k].does, feature, strerror(-rc), offloads[k].harm);
	return save(nic, ctx);
}

/* Whether what was turned off is off still. */
static bool are_off(const struct bl_iface *i, const struct bl_nic *nic)
{
	unsigned int k;

	for (k = 0; k < OFFLOADS; k++)
		if (nic->done & offloads[k].bit && et_feature(i->name, offloads[k].feature) == 1)
			return false;
	return true;
}

/* ---- one queue ---- */

/* Whether rule @a of a NIC does what @b, one of bl_rx_rules(), does, and neither more nor less. */
static bool is_same_rule(const struct ethtool_rx_flow_spec *a, const struct ethtool_rx_flow_spec *b)
{
	const union ethtool_flow_union *m = &a->m_u, *n = &b->m_u;

	if (a->flow_type != b->flow_type || a->ring_cookie != b->ring_cookie)
		return false;
	switch (a->flow_type) {
	case ETHER_FLOW:
		return a->h_u.ether_spec.h_proto == b->h_u.ether_spec.h_proto &&
		       !memcmp(&m->ether_spec, &n->ether_spec, sizeof(m->ether_spec));
	case UDP_V4_FLOW:
		return a->h_u.udp_ip4_spec.pdst == b->h_u.udp_ip4_spec.pdst &&
		       !memcmp(&m->udp_ip4_spec, &n->udp_ip4_spec, sizeof(m->udp_ip4_spec));
	default:
		return a->h_u.udp_ip6_spec.pdst == b->h_u.udp_ip6_spec.pdst &&
		       !memcmp(&m->udp_ip6_spec, &n->udp_ip6_spec, sizeof(m->udp_ip6_spec));
	}
}

static bool is_at(const char *ifname, uint32_t place, const struct ethtool_rx_flow_spec *want)
{
	struct ethtool_rx_flow_spec f;

	memset(&f, 0, sizeof(f));
	f.location = place;
	return !et_rule_get(ifname, &f) && is_same_rule(&f, want);
}

/* Finds @want wherever it is. Returns its place, or RX_CLS_LOC_ANY: it is nowhere. */
static uint32_t find_rule(const char *ifname, const struct ethtool_rx_flow_spec *want)
{
	static uint32_t places[ET_RULES_MAX];
	int n = et_rule_list(ifname, places, ET_RULES_MAX), k;

	for (k = 0; k < n; k++)
		if (is_at(ifname, places[k], want))
			return places[k];
	return RX_CLS_LOC_ANY;
}

/*
 * Removes those of the recorded rules that are barline's still. A rule of somebody else's that has
 * got the same place since stays. Where the driver picks the place and a daemon was killed before
 * it could record that, the rule is looked for.
 */
static void remove_rules(const char *ifname, struct bl_nic *nic)
{
	struct ethtool_rx_flow_spec v[BL_NIC_RULES];
	int n = bl_rx_rules(nic->port_base, nic->port_count, v, BL_NIC_RULES);
	unsigned int k;

	for (k = 0; k < nic->nrules && n > 0 && k < (unsigned int)n; k++) {
		uint32_t place = nic->rule[k];

		if (place == RX_CLS_LOC_ANY)
			place = find_rule(ifname, &v[k]);
		if (place != RX_CLS_LOC_ANY && is_at(ifname, place, &v[k]))
			et_rule_del(ifname, place);
	}
	nic->nrules = 0;
}

static bool rules_stand(const char *ifname, const struct bl_nic *nic)
{
	struct ethtool_rx_flow_spec v[BL_NIC_RULES];
	int n = bl_rx_rules(nic->port_base, nic->port_count, v, BL_NIC_RULES), k;

	if (n != (int)nic->nrules)
		return false;
	for (k = 0; k < n; k++)
		if (!is_at(ifname, nic->rule[k], &v[k]))
			return false;
	return true;
}

/* Adds one rule. Its place is recorded before it is there. */
static int add_rule(const struct bl_iface *i, struct bl_nic *nic, struct ethtool_rx_flow_spec *f,
		    int (*save)(const struct bl_nic *nic, void *ctx), void *ctx)
{
	int rc = et_rule_place(i->name, &f->location);

	/* A rule that is looked for after a kill must not be somebody else's. */
	if (!rc && f->location == RX_CLS_LOC_ANY && find_rule(i->name, f) != RX_CLS_LOC_ANY)
		rc = -EEXIST;
	if (rc)
		return rc;
	nic->rule[nic->nrules++] = f->location;
	rc = save(nic, ctx);
	if (!rc)
		rc = et_rule_add(i->name, f);
	if (rc) {
		nic->nrules--;
		return rc;
	}
	if (nic->rule[nic->nrules - 1] != f->location) {
		nic->rule[nic->nrules - 1] = f->location;
		rc = save(nic, ctx);
	}
	return rc ? rc : is_at(i->name, f->location, f) ? 0 : -EOPNOTSUPP;
}

static int add_rules(const struct bl_iface *i, struct bl_nic *nic, const struct bl_rx_want *w,
		     int (*save)(const struct bl_nic *nic, void *ctx), void *ctx)
{
	struct ethtool_rx_flow_spec v[BL_NIC_RULES];
	int n = bl_rx_rules(w->port_base, w->port_count, v, BL_NIC_RULES), k, rc = n < 0 ? n : 0;

	remove_rules(i->name, nic);
	nic->port_base = w->port_base;
	nic->port_count = w->port_count;
	nic->done |= BL_NIC_FLOWS;
	for (k = 0; k < n && !rc; k++)
		rc = add_rule(i, nic, &v[k], save, ctx);
	if (!rc)
		return 0;
	/* All of them, also one that the driver has stored differently. */
	while (nic->nrules)
		et_rule_del(i->name, nic->rule[--nic->nrules]);
	nic->done &= ~(uint32_t)BL_NIC_FLOWS;
	save(nic, ctx);
	return rc;
}

static bool names_one_queue(const uint32_t *t, unsigned int n)
{
	unsigned int k;

	for (k = 0; k < n; k++)
		if (t[k] != QUEUE)
			return false;
	return true;
}

static int set_table(const struct bl_iface *i, struct bl_nic *nic,
		     int (*save)(const struct bl_nic *nic, void *ctx), void *ctx)
{
	uint32_t t[BL_NIC_RSS], none[BL_NIC_RSS] = {};
	int n = et_table(i->name, t, BL_NIC_RSS), k, rc;

	if (n < 0)
		return n;
	if (names_one_queue(t, (unsigned int)n))
		return 0;
	for (k = 0; k < n; k++) {
		if (t[k] > UINT16_MAX)
			return -EBADMSG;
		nic->rss[k] = (uint16_t)t[k];
	}
	nic->nrss = (uint32_t)n;
	nic->done |= BL_NIC_TABLE;
	rc = save(nic, ctx);
	if (!rc)
		rc = et_table_set(i->name, none, (unsigned int)n);
	if (!rc && et_table(i->name, t, BL_NIC_RSS) == n && names_one_queue(t, (unsigned int)n))
		return 0;
	nic->done &= ~(uint32_t)BL_NIC_TABLE;
	nic->nrss = 0;
	save(nic, ctx);
	return rc ? rc : -EOPNOTSUPP;
}

static int set_channels(const struct bl_iface *i, struct bl_nic *nic,
			int (*save)(const struct bl_nic *nic, void *ctx), void *ctx)
{
	struct ethtool_channels c;
	int rc = et_channels(i->name, &c);

	if (rc)
		return rc;
	if (!c.combined_count || c.rx_count)
		return -EOPNOTSUPP;
	nic->channels = c.combined_count;
	nic->done |= BL_NIC_CHANNELS;
	rc = save(nic, ctx);
	if (!rc)
		rc = et_channels_set(i->name, 1);
	if (!rc)
		return 0;
	nic->done &= ~(uint32_t)BL_NIC_CHANNELS;
	save(nic, ctx);
	return rc;
}

/*
 * Some drivers do not change their channels while a program is attached (virtio_net), so this has
 * to come before, where nothing else will do.
 */
static bool needs_one_channel(const struct bl_iface *i, const struct bl_rx_want *w)
{
	uint32_t t[BL_NIC_RSS];

	return w->one_queue && et_rx_queues(i->name) > 1 && et_rules(i->name) < 0 &&
	       et_table(i->name, t, BL_NIC_RSS) < 0;
}

int bl_rx_before(const struct bl_iface *i, struct bl_nic *nic, const struct bl_rx_want *w,
		 int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	for (k = 0; k < OFFLOADS && !rc; k++)
		rc = turn_off(i, nic, k, save, ctx, err);
	/* If it fails, bl_rx_make() says so. */
	if (!rc && needs_one_channel(i, w))
		set_channels(i, nic, save, ctx);
	return rc;
}

/* Whether what was made is right for the ports that are wanted; a restart may bring others. */
static bool are_for(const struct bl_nic *nic, const struct bl_rx_want *w)
{
	return !(nic->done & BL_NIC_FLOWS) ||
	       (nic->port_base == w->port_base && nic->port_count == w->port_count);
}

/* What `ethtool -L` calls the channels that receive: some NICs have none for both directions. */
static const char *channel_word(const char *ifname)
{
	struct ethtool_channels c;

	return !et_channels(ifname, &c) && !c.combined_count && c.rx_count ? "rx" : "combined";
}

int bl_rx_make(const struct bl_iface *i, struct bl_nic *nic, const struct bl_rx_want *w,
	       int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_err *err)
{
	unsigned int queues = et_rx_queues(i->name), k;
	const char *channels;
	int rc = 0;

	/* Once more, where others have turned them on meanwhile. */
	for (k = 0; k < OFFLOADS && !rc; k++)
		if (nic->done & offloads[k].bit)
			rc = turn_off(i, nic, k, save, ctx, err);
	if (rc)
		return rc;
	nic->rx = BL_NIC_MADE;
	if (queues < 2) {
		nic->rx = nic->done & BL_NIC_CHANNELS ? BL_NIC_MADE : BL_NIC_IS_FIFO;
		return 0;
	}
	if (nic->done & (BL_NIC_FLOWS | BL_NIC_TABLE) && are_for(nic, w) && bl_rx_kept(i, nic))
		return 0;
	if (!add_rules(i, nic, w, save, ctx))
		return 0;
	if (!set_table(i, nic, save, ctx)) {
		bl_log(BL_LOG_INFO,
		       "%s has no flow rules for ordered frames: all its traffic comes in on "
		       "receive queue 0 while barline runs",
		       i->name);
		return 0;
	}
	rc = w->one_queue ? set_channels(i, nic, save, ctx) : -EOPNOTSUPP;
	if (!rc) {
		bl_log(BL_LOG_INFO, "%s has one channel while barline runs, before %u", i->name,
		       nic->channels);
		return 0;
	}
	channels = channel_word(i->name);
	if (w->one_queue)
		return bl_fail(err, EPERM,
			       "%s spreads what it receives over %u queues, and its driver does "
			       "not let it have one now (%s); detach the node, `ethtool -L %s %s "
			       "1`, and start it again, or accept that frames are reordered "
			       "(--accept reordering)",
			       i->name, queues, strerror(-rc), i->name, channels);
	return bl_fail(err, EPERM,
		       "%s spreads what it receives over %u queues, and its driver has neither "
		       "flow rules nor an indirection table to bring ordered frames to one: use "
		       "one queue (%s`ethtool -L %s %s 1`), or accept that frames are reordered "
		       "(--accept reordering)",
		       i->name, queues, strcmp(channels, "rx") != 0 ? "--one-queue, or " : "",
		       i->name, channels);
}

bool bl_rx_kept(const struct bl_iface *i, const struct bl_nic *nic)
{
	uint32_t t[BL_NIC_RSS];
	int n;

	if (!are_off(i, nic))
		return false;
	/* What was accepted stays as it is until the operator has cured it. */
	if (nic->rx == BL_NIC_BROKEN)
		return et_rx_queues(i->name) > 1;
	if (et_rx_queues(i->name) < 2)
		return true;
	if (nic->done & BL_NIC_FLOWS)
		return rules_stand(i->name, nic);
	n = et_table(i->name, t, BL_NIC_RSS);
	return n > 0 && names_one_queue(t, (unsigned int)n);
}

/* ---- undoing ---- */

static void restore_table(const struct bl_iface *i, const struct bl_nic *nic)
{
	uint32_t t[BL_NIC_RSS];
	bool plain = true;
	unsigned int k;
	int n = et_table(i->name, t, BL_NIC_RSS), rc;

	if (n != (int)nic->nrss || !names_one_queue(t, (unsigned int)n)) {
		bl_log(BL_LOG_WARN, "%s has another indirection table now: it stays", i->name);
		return;
	}
	for (k = 0; k < nic->nrss; k++)
		t[k] = nic->rss[k];
	/* A table of the driver's own must be its default again, which follows its queues. */
	for (k = 0; k < nic->nrss; k++)
		plain &= t[k] == k % et_rx_queues(i->name);
	rc = et_table_set(i->name, t, plain ? 0 : nic->nrss);
	if (rc)
		bl_log(BL_LOG_WARN, "%s: cannot put its indirection table back: %s", i->name,
		       strerror(-rc));
}

static void restore_channels(const struct bl_iface *i, const struct bl_nic *nic)
{
	struct ethtool_channels c;
	int rc = et_channels(i->name, &c);

	if (!rc && c.combined_count != 1)
		return;
	if (!rc)
		rc = et_channels_set(i->name, nic->channels);
	if (rc)
		bl_log(BL_LOG_WARN, "%s: cannot give it back its %u channels: %s", i->name,
		       nic->channels, strerror(-rc));
}

void bl_rx_undo(const struct bl_iface *i, struct bl_nic *nic)
{
	unsigned int k;

	if (nic->done & BL_NIC_CHANNELS)
		restore_channels(i, nic);
	if (nic->done & BL_NIC_FLOWS)
		remove_rules(i->name, nic);
	if (nic->done & BL_NIC_TABLE && nic->nrss <= BL_NIC_RSS)
		restore_table(i, nic);
	for (k = 0; k < OFFLOADS; k++)
		if (nic->done & offloads[k].bit)
			et_feature_set(i->name, offloads[k].feature, true);
	nic->done &= BL_NIC_BANDS | BL_NIC_MQ | BL_NIC_QUEUE | BL_NIC_CLSACT;
}
