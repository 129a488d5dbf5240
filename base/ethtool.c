/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of ethtool by ioctl(2): see ethtool.h. */
#include "base/ethtool.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEATURES_MAX  1024 /* bits of features that are looked at */
#define FEATURES_KEPT 8    /* features whose bits are remembered */

static int et_call(const char *ifname, void *cmd)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
	ifr.ifr_data = cmd;
	rc = ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

int et_driver(const char *ifname, struct ethtool_drvinfo *d)
{
	int rc;

	memset(d, 0, sizeof(*d));
	d->cmd = ETHTOOL_GDRVINFO;
	rc = et_call(ifname, d);
	d->driver[sizeof(d->driver) - 1] = 0;
	d->bus_info[sizeof(d->bus_info) - 1] = 0;
	return rc;
}

int et_perm_mac(const char *ifname, uint8_t mac[6])
{
	static const uint8_t none[6];
	enum { MOST = 32 }; /* MAX_ADDR_LEN of the kernel */
	_Alignas(struct ethtool_perm_addr) uint8_t room[sizeof(struct ethtool_perm_addr) + MOST];
	struct ethtool_perm_addr *p = (void *)room;
	int rc;

	memset(room, 0, sizeof(room));
	p->cmd = ETHTOOL_GPERMADDR;
	p->size = MOST;
	rc = et_call(ifname, p);
	memcpy(mac, none, 6);
	if (rc)
		return rc;
	if (p->size != 6 || !memcmp(p->data, none, 6))
		return -ENODATA;
	memcpy(mac, p->data, 6);
	return 0;
}

/* ---- queues ---- */

int et_channels(const char *ifname, struct ethtool_channels *c)
{
	memset(c, 0, sizeof(*c));
	c->cmd = ETHTOOL_GCHANNELS;
	return et_call(ifname, c);
}

int et_channels_set(const char *ifname, uint32_t combined)
{
	struct ethtool_channels c;
	int rc = et_channels(ifname, &c);

	if (rc)
		return rc;
	c.cmd = ETHTOOL_SCHANNELS;
	c.combined_count = combined;
	return et_call(ifname, &c);
}

unsigned int et_rx_queues(const char *ifname)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_GRXRINGS };
	struct ethtool_channels c;

	if (!et_call(ifname, &n) && n.data && n.data <= UINT32_MAX)
		return (unsigned int)n.data;
	if (!et_channels(ifname, &c) && c.rx_count + c.combined_count)
		return c.rx_count + c.combined_count;
	return 1;
}

unsigned int et_tx_queues(const char *ifname)
{
	struct ethtool_channels c;

	if (!et_channels(ifname, &c) && c.tx_count + c.combined_count)
		return c.tx_count + c.combined_count;
	return 1;
}

/* ---- features ---- */

/* Asks the kernel for the number of the feature's bit, and that of all bits in @all. */
static int ask_feature(const char *ifname, const char *name, unsigned int *all)
{
	union {
		struct ethtool_sset_info h;
		uint32_t room[sizeof(struct ethtool_sset_info) / 4 + 1];
	} info = { .h = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES } };
	struct ethtool_gstrings *s;
	int rc = et_call(ifname, &info), at = -ENOENT;
	unsigned int k;

	if (rc || !info.h.sset_mask)
		return rc ? rc : -EOPNOTSUPP;
	*all = info.h.data[0];
	if (info.h.data[0] > FEATURES_MAX)
		return -E2BIG;
	s = calloc(1, sizeof(*s) + (size_t)info.h.data[0] * ETH_GSTRING_LEN);
	if (!s)
		return -ENOMEM;
	s->cmd = ETHTOOL_GSTRINGS;
	s->string_set = ETH_SS_FEATURES;
	s->len = info.h.data[0];
	rc = et_call(ifname, s);
	for (k = 0; !rc && k < info.h.data[0] && k < s->len && at < 0; k++)
		if (!strncmp((const char *)s->data + (size_t)k * ETH_GSTRING_LEN, name,
			     ETH_GSTRING_LEN))
			at = (int)k;
	free(s);
	return rc ? rc : at;
}

/*
 * Returns the number of the feature's bit, and that of all bits in @all; or -errno. Features have
 * the same numbers on all interfaces of a kernel, so what was found is kept: a daemon looks once
 * per second.
 */
static int find_feature(const char *ifname, const char *name, unsigned int *all)
{
	static struct {
		char name[ETH_GSTRING_LEN];
		unsigned int all;
		int at;
	} kept[FEATURES_KEPT];
	static unsigned int n;
	unsigned int k;
	int at;

	for (k = 0; k < n; k++)
		if (!strncmp(kept[k].name, name, ETH_GSTRING_LEN)) {
			*all = kept[k].all;
			return kept[k].at;
		}
	at = ask_feature(ifname, name, all);
	if (at >= 0 && n < FEATURES_KEPT) {
		strncpy(kept[n].name, name, ETH_GSTRING_LEN - 1);
		kept[n].all = *all;
		kept[n++].at = at;
	}
	return at;
}

int et_feature(const char *ifname, const char *name)
{
	union {
		struct ethtool_gfeatures h;
		uint8_t room[sizeof(struct ethtool_gfeatures) +
			     FEATURES_MAX / 32 * sizeof(struct ethtool_get_features_block)];
	} f;
	unsigned int all;
	int at = find_feature(ifname, name, &all), rc;

	if (at < 0)
		return at;
	memset(&f, 0, sizeof(f));
	f.h.cmd = ETHTOOL_GFEATURES;
	f.h.size = (all + 31) / 32;
	rc = et_call(ifname, &f);
	return rc ? rc : (int)(f.h.features[at / 32].active >> at % 32 & 1);
}

int et_feature_set(const char *ifname, const char *name, bool on)
{
	union {
		struct ethtool_sfeatures h;
		uint8_t room[sizeof(struct ethtool_sfeatures) +
			     FEATURES_MAX / 32 * sizeof(struct ethtool_set_features_block)];
	} f;
	unsigned int all;
	int at = find_feature(ifname, name, &all), rc;

	if (at < 0)
		return at;
	memset(&f, 0, sizeof(f));
	f.h.cmd = ETHTOOL_SFEATURES;
	f.h.size = (all + 31) / 32;
	f.h.features[at / 32].valid = 1U << at % 32;
	f.h.features[at / 32].requested = on ? 1U << at % 32 : 0;
	rc = et_call(ifname, &f);
	if (rc < 0)
		return rc;
	rc = et_feature(ifname, name);
	return rc < 0 ? rc : rc == on ? 0 : -EPERM;
}

/* ---- flow rules ---- */

int et_rules(const char *ifname)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_GRXCLSRLCNT };
	int rc = et_call(ifname, &n);

	return rc ? rc : (int)n.rule_cnt;
}

/* Reads the places of all rules, and in @size how many places there are. Returns their number. */
static int list_places(const char *ifname, uint32_t *places, unsigned int max, uint32_t *size)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_GRXCLSRLCNT }, *all;
	int rc = et_call(ifname, &n);

	if (rc)
		return rc;
	if (n.rule_cnt > max)
		return -E2BIG;
	all = calloc(1, sizeof(*all) + n.rule_cnt * sizeof(uint32_t));
	if (!all)
		return -ENOMEM;
	all->cmd = ETHTOOL_GRXCLSRLALL;
	all->rule_cnt = n.rule_cnt;
	rc = et_call(ifname, all);
	if (!rc) {
		/* Rules may have been removed since they were counted. */
		rc = (int)(all->rule_cnt < n.rule_cnt ? all->rule_cnt : n.rule_cnt);
		memcpy(places, all->rule_locs, (size_t)rc * sizeof(uint32_t));
		*size = all->data < UINT32_MAX ? (uint32_t)all->data : 0;
	}
	free(all);
	return rc;
}

int et_rule_list(const char *ifname, uint32_t *places, unsigned int max)
{
	uint32_t size;

	return list_places(ifname, places, max, &size);
}

/* The last free place comes first, as in ethtool(8). */
int et_rule_place(const char *ifname, uint32_t *place)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_GRXCLSRLCNT };
	static uint32_t taken[ET_RULES_MAX];
	uint32_t size = 0;
	int rc = et_call(ifname, &n), k;
	bool used;

	if (rc)
		return rc;
	if (n.data & RX_CLS_LOC_SPECIAL) {
		*place = RX_CLS_LOC_ANY;
		return 0;
	}
	rc = list_places(ifname, taken, ET_RULES_MAX, &size);
	if (rc < 0)
		return rc;
	for (; size; size--) {
		for (used = false, k = 0; k < rc; k++)
			used |= taken[k] == size - 1;
		if (!used)
			break;
	}
	if (!size)
		return -ENOSPC;
	*place = size - 1;
	return 0;
}

int et_rule_add(const char *ifname, struct ethtool_rx_flow_spec *spec)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_SRXCLSRLINS, .fs = *spec };
	int rc = et_call(ifname, &n);

	if (!rc)
		spec->location = n.fs.location;
	return rc;
}

int et_rule_get(const char *ifname, struct ethtool_rx_flow_spec *spec)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_GRXCLSRULE, .fs.location = spec->location };
	int rc = et_call(ifname, &n);

	if (!rc)
		*spec = n.fs;
	return rc;
}

int et_rule_del(const char *ifname, uint32_t location)
{
	struct ethtool_rxnfc n = { .cmd = ETHTOOL_SRXCLSRLDEL, .fs.location = location };

	return et_call(ifname, &n);
}

/* ---- the indirection table ---- */

int et_table(const char *ifname, uint32_t *table, unsigned int max)
{
	struct ethtool_rxfh_indir *t, ask = { .cmd = ETHTOOL_GRXFHINDIR };
	int rc = et_call(ifname, &ask);
	uint32_t n = ask.size;

	if (rc)
		return rc;
	if (!n)
		return -EOPNOTSUPP;
	if (n > max)
		return -E2BIG;
	t = calloc(1, sizeof(*t) + n * sizeof(uint32_t));
	if (!t)
		return -ENOMEM;
	t->cmd = ETHTOOL_GRXFHINDIR;
	t->size = n;
	rc = et_call(ifname, t);
	if (!rc && t->size != n)
		rc = -EBADMSG;
	if (!rc)
		memcpy(table, t->ring_index, n * sizeof(uint32_t));
	free(t);
	return rc ? rc : (int)n;
}

int et_table_set(const char *ifname, const uint32_t *table, unsigned int n)
{
	struct ethtool_rxfh_indir *t = calloc(1, sizeof(*t) + n * sizeof(uint32_t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->cmd = ETHTOOL_SRXFHINDIR;
	t->size = n;
	memcpy(t->ring_index, table, n * sizeof(uint32_t));
	rc = et_call(ifname, t);
	free(t);
	return rc;
}

/* ---- to be shown ---- */

int et_coalesce(const char *ifname, struct ethtool_coalesce *c)
{
	memset(c, 0, sizeof(*c));
	c->cmd = ETHTOOL_GCOALESCE;
	return et_call(ifname, c);
}

int et_stamps(const char *ifname, struct ethtool_ts_info *t)
{
	memset(t, 0, sizeof(*t));
	t->cmd = ETHTOOL_GET_TS_INFO;
	return et_call(ifname, t);
}
