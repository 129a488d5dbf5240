/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of ethtool(8) that barline needs: what a NIC is, its channels, features, flow rules and
 * indirection table. Functions work in the network namespace of the calling thread and return 0 or
 * -errno unless they say otherwise; -EOPNOTSUPP: the driver has no such thing.
 */
#ifndef BARLINE_BASE_ETHTOOL_H
#define BARLINE_BASE_ETHTOOL_H

#include <linux/ethtool.h>
#include <stdbool.h>
#include <stdint.h>

#define ET_FEATURE_LRO     "rx-lro"
#define ET_FEATURE_GRO_HW  "rx-gro-hw"
#define ET_FEATURE_VLAN    "rx-vlan-hw-parse"      /* ethtool -K: rxvlan */
#define ET_FEATURE_STAG    "rx-vlan-stag-hw-parse" /* the same for tags of 802.1ad */

#define ET_FEATURE_TX_VLAN "tx-vlan-hw-insert"
#define ET_FEATURE_TX_STAG "tx-vlan-stag-hw-insert"

#define ET_RULES_MAX       8192 /* flow rules of a NIC that are looked at */

/** et_driver - name of the driver, of the device on its bus, and of the firmware. */
int et_driver(const char *ifname, struct ethtool_drvinfo *d);

/** et_perm_mac - the address that the device was made with. -ENODATA: it has none (a veth). */
int et_perm_mac(const char *ifname, uint8_t mac[6]);

/** et_channels - numbers of queues. */
int et_channels(const char *ifname, struct ethtool_channels *c);
/** et_channels_set - sets the number of combined channels and leaves the others as they are. */
int et_channels_set(const char *ifname, uint32_t combined);

/** et_rx_queues, et_tx_queues - queues in use, 1 if the driver does not say. */
unsigned int et_rx_queues(const char *ifname);
unsigned int et_tx_queues(const char *ifname);

/** et_feature - whether a feature is on. Returns 1, 0 or -errno; -ENOENT: no such feature. */
int et_feature(const char *ifname, const char *name);
/** et_feature_set - turns a feature on or off. -EPERM: the driver does not let it change. */
int et_feature_set(const char *ifname, const char *name, bool on);

/**
 * et_rule_place - finds a free place for a flow rule; RX_CLS_LOC_ANY: the driver picks the place
 * itself when the rule is added.
 */
int et_rule_place(const char *ifname, uint32_t *place);
/** et_rule_add - adds a flow rule at @spec->location; after RX_CLS_LOC_ANY sets where it is. */
int et_rule_add(const char *ifname, struct ethtool_rx_flow_spec *spec);
/** et_rule_get - reads the flow rule at @spec->location. */
int et_rule_get(const char *ifname, struct ethtool_rx_flow_spec *spec);
int et_rule_del(const char *ifname, uint32_t location);
/** et_rules - number of flow rules. */
int et_rules(const char *ifname);
/**
 * et_rule_list - the places of all flow rules. Returns their number, or -errno; -E2BIG: there are
 * more than @max.
 */
int et_rule_list(const char *ifname, uint32_t *places, unsigned int max);

/**
 * et_table - reads the indirection table. Returns the number of its entries, or -errno; -E2BIG: it
 * has more than @max.
 */
int et_table(const char *ifname, uint32_t *table, unsigned int max);
/** et_table_set - writes the indirection table; @n = 0: makes it the driver's default. */
int et_table_set(const char *ifname, const uint32_t *table, unsigned int n);

/** et_coalesce - interrupt coalescing. */
int et_coalesce(const char *ifname, struct ethtool_coalesce *c);
/** et_stamps - what the NIC can timestamp, and its PTP clock (phc_index; -1: none). */
int et_stamps(const char *ifname, struct ethtool_ts_info *t);

#endif
