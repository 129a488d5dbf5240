// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A node's YAML file. Strict: an unknown key, a missing one, a value of the wrong kind or out of
 * range is an error with file and line.
 *
 *	role: switch			role: host
 *	name: tor1			interface: eth1
 *	forward: l2			beacon_us: 100
 *	cpus: [0, 1]
 *	ports:
 *	  - { interface: swp1, role: host }
 *	  - { interface: swp2, role: up, home_cpu: 1 }
 *	fdb:
 *	  - { mac: 02:00:00:00:00:01, port: swp1 }
 *	admission: { policy: pl2, rate: 10gbit }
 *	controllers: [10.0.0.1:61693, 10.0.0.2:61693]
 *	tls: { ca: ca.pem, cert: node.pem, key: node.key }
 *	auth: { mode: links, keys: /etc/barline/tor1.keys }
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/yaml.h"
#include "loader/config.h"
#include "loader/config_admission.h"
#include "loader/config_clock.h"
#include "loader/load/chain.h"
#include "loader/load/pin.h"
#include "loader/node_cfg.h"
#include "loader/settings.h"
#include "maps/host_abi.h"
#include "proto/session.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static const char *const port_role_names[] = {
	[BL_PORT_HOST] = "host", [BL_PORT_UP] = "up", [BL_PORT_DOWN] = "down"
};
static const char *const accept_names[] = { "reordering" };

/* ---- settings of the table ---- */

#define KEYS_MAX (BL_S_COUNT + 2)

static bool same_section(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/*
 * The keys of one mapping of the table, NULL-terminated; those of the top (@section NULL) include
 * the names of the other mappings.
 */
static void list_keys(const char *section, const char *keys[KEYS_MAX])
{
	unsigned int k, j, n = 0;

	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);
		const char *key = same_section(s->section, section) ? s->key
				  : section                         ? NULL
								    : s->section;

		for (j = 0; key && j < n && strcmp(keys[j], key); j++)
			;
		if (key && j == n)
			keys[n++] = key;
	}
	if (!section)
		keys[n++] = "clock_bound_us"; /* the older name of bound_us under clock */
	keys[n] = NULL;
}

static void read_setting(struct bl_yaml *y, const struct bl_setting *s, struct bl_node_cfg *cfg)
{
	yaml_node_t *map = s->section ? bl_yaml_get(y, y->root, s->section) : y->root;
	struct bl_err why;
	const char *text;
	int64_t v;

	if (!map || !bl_yaml_get(y, map, s->key))
		return;
	switch (s->kind) {
	case BL_SETTING_TRUTH:
		bl_setting_truth(s, cfg, bl_yaml_truth(y, map, s->key));
		return;
	case BL_SETTING_NUMBER: /* its message for what is no number is that of all files */
		if (!bl_yaml_number(y, map, s->key, INT64_MIN, INT64_MAX, &v))
			return;
		break;
	case BL_SETTING_NAME:
		if (bl_yaml_name(y, map, s->key, s->names, s->count) < 0)
			return;
		break;
	case BL_SETTING_TEXT:
		break;
	case BL_SETTING_BLOCK:
		return;
	}
	text = bl_yaml_text(y, map, s->key, s->kind == BL_SETTING_TEXT ? s->size - 1 : 64);
	if (text && bl_setting_parse(s, s->key, text, cfg, &why))
		bl_yaml_refuse(y, map, s->key, "%s", why.text);
}

/* Refuses keys of the other role. */
static void check_roles(struct bl_yaml *y, const struct bl_node_cfg *cfg)
{
	const bool host = cfg->role == BL_ROLE_HOST;
	unsigned int k;

	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (!s->key || s->section ||
		    s->roles & (host ? BL_SETTING_HOSTS : BL_SETTING_SWITCHES))
			continue;
		/* forward: l3 says of a host what is true */
		if (k == BL_S_FORWARD && cfg->forward == BL_FWD_L3)
			continue;
		if (bl_yaml_get(y, y->root, s->key))
			bl_yaml_refuse(y, y->root, s->key, "%s is a key of %s, and this is a %s%s",
				       s->key, host ? "switches" : "hosts",
				       host ? "host" : "switch",
				       k == BL_S_INTERFACE ? ", which lists its interfaces under "
							     "ports"
							   : "; is the role right?");
	}
}

/* The role of the file and of @cfg, which have to be the same if both are known. */
static void read_role(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	enum bl_role wanted = cfg->role;

	read_setting(y, bl_setting(BL_S_ROLE), cfg);
	if (wanted != BL_ROLE_NONE && cfg->role != wanted)
		bl_yaml_refuse(y, y->root, "role", "the file is for a %s, not for a %s",
			       bl_role_name(cfg->role), bl_role_name(wanted));
	if (cfg->role == BL_ROLE_NONE)
		bl_yaml_refuse(y, NULL, NULL, "role is missing: switch or host");
}

/* What is wrong between keys that are right one by one. */
static void check_times(struct bl_yaml *y, const struct bl_node_cfg *cfg)
{
	yaml_node_t *m = y->root;
	uint32_t beacon = cfg->beacon_us ? cfg->beacon_us : BL_BEACON_US,
		 dead = cfg->dead_after_us ? cfg->dead_after_us : 10 * beacon;

	if (dead < 2 * beacon)
		bl_yaml_refuse(y, m, "dead_after_us",
			       "dead_after_us %u: at least two beacon intervals (%u us each)", dead,
			       beacon);
	if (cfg->lag_max_us && cfg->lag_max_us < dead)
		bl_yaml_refuse(y, m, "lag_max_us", "lag_max_us %u: at least dead_after_us (%u)",
			       cfg->lag_max_us, dead);
	if (cfg->port_base &&
	    cfg->port_base + (cfg->port_count ? cfg->port_count : BL_PORT_COUNT) > 65536)
		bl_yaml_refuse(y, m, "port_base", "port_base %u: the range ends above 65535",
			       cfg->port_base);
}

static void read_cpus(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *list, *root = y->root;
	unsigned int k, j, n = bl_yaml_list(y, root, "cpus", BL_LANES_MAX, &list);
	int64_t cpu = 0;

	for (k = 0; k < n && !y->rc; k++) {
		bl_yaml_item_number(y, bl_yaml_item(y, list, k), "cpus", INT32_MIN, INT32_MAX,
				    &cpu);
		if (cpu < 0 || cpu >= BL_SW_CPUS_MAX)
			bl_yaml_refuse(y, root, "cpus", "CPU %lld: 0 to %d", (long long)cpu,
				       BL_SW_CPUS_MAX - 1);
		if (cpu >= sysconf(_SC_NPROCESSORS_CONF))
			bl_yaml_refuse(y, root, "cpus",
				       "CPU %lld does not exist; this machine has CPUs 0 to %ld",
				       (long long)cpu, sysconf(_SC_NPROCESSORS_CONF) - 1);
		for (j = 0; j < k; j++)
			if (cfg->cpus[j] == cpu)
				bl_yaml_refuse(y, root, "cpus",
					       "CPU %lld is listed twice under cpus",
					       (long long)cpu);
		cfg->cpus[k] = (int)cpu;
	}
	if (n)
		cfg->ncpus = n;
}

/* Reads one address of a port's list. */
static void read_address(struct bl_yaml *y, yaml_node_t *item, const char *text,
			 struct bl_port_cfg *p)
{
	struct in_addr a4;
	uint8_t mac[6];

	if (bl_mac_parse(text, mac)) {
		if (mac[0] & 1)
			bl_yaml_refuse(y, item, "addresses",
				       "%s is a group address, which is no source", text);
		else if (p->nmac == BL_SOURCE_MACS)
			bl_yaml_refuse(y, item, "addresses", "at most %d Ethernet addresses",
				       BL_SOURCE_MACS);
		else
			memcpy(p->mac[p->nmac++], mac, sizeof(mac));
		return;
	}
	if (p->nip == BL_SOURCE_IPS) {
		bl_yaml_refuse(y, item, "addresses", "at most %d IP addresses", BL_SOURCE_IPS);
		return;
	}
	if (inet_pton(AF_INET, text, &a4) == 1) {
		memset(p->ip[p->nip], 0, 10);
		memset(p->ip[p->nip] + 10, 0xff, 2);
		memcpy(p->ip[p->nip++] + 12, &a4, 4);
	} else if (inet_pton(AF_INET6, text, p->ip[p->nip]) == 1) {
		p->nip++;
	} else {
		bl_yaml_refuse(y, item, "addresses",
			       "%s is neither an Ethernet nor an IP address; or write [learn] or "
			       "[any]",
			       text);
	}
}

static void read_addresses(struct bl_yaml *y, yaml_node_t *item, struct bl_port_cfg *p)
{
	yaml_node_t *list;
	unsigned int k,
		n = bl_yaml_list(y, item, "addresses", BL_SOURCE_MACS + BL_SOURCE_IPS + 1, &list);

	if (!n)
		return;
	if (!y->rc && p->role != BL_PORT_HOST)
		bl_yaml_refuse(y, item, "addresses",
			       "addresses are checked where a host is behind the port; the role of "
			       "this one is %s",
			       port_role_names[p->role]);
	p->source_given = true;
	p->source = BL_SOURCE_LIST;
	for (k = 0; k < n && !y->rc; k++) {
		const char *text = bl_yaml_item_text(y, bl_yaml_item(y, list, k), "addresses", 45);

		if (n == 1 && text && !strcmp(text, "learn"))
			p->source = BL_SOURCE_LEARN;
		else if (n == 1 && text && !strcmp(text, "any"))
			p->source = BL_SOURCE_ANY;
		else if (text)
			read_address(y, item, text, p);
	}
	if (!y->rc && p->source == BL_SOURCE_LIST && (!p->nmac || !p->nip))
		bl_yaml_refuse(y, item, "addresses",
			       "list at least one Ethernet and one IP address: every ordered frame "
			       "has both");
}

/* The XDP program for frames that are not barline's. */
static void read_chain(struct bl_yaml *y, yaml_node_t *map, char *to, size_t size)
{
	struct bl_err why;

	bl_yaml_copy(y, map, "chain", to, size);
	if (!y->rc && bl_yaml_get(y, map, "chain") && bl_chain_check(to, &why))
		bl_yaml_refuse(y, map, "chain", "%s", why.text);
}

static void read_port(struct bl_yaml *y, yaml_node_t *item, struct bl_node_cfg *cfg,
		      unsigned int number)
{
	static const char *const keys[] = { "interface", "role",  "home_cpu", "rate",  "outside",
					    "addresses", "lanes", "auth",     "chain", NULL };
	struct bl_port_cfg *p = &cfg->ports[number];
	int64_t cpu = -1, lanes = 0;
	unsigned int k;
	int role;

	bl_yaml_keys(y, item, keys);
	bl_yaml_need(y, item, "interface");
	bl_yaml_need(y, item, "role");
	bl_yaml_copy(y, item, "interface", p->ifname, sizeof(p->ifname));
	/* [0], BL_PORT_UNUSED, has no name */
	role = bl_yaml_name(y, item, "role", port_role_names + 1, COUNT(port_role_names) - 1);
	p->role = (uint8_t)(role + 1);
	bl_yaml_number(y, item, "home_cpu", INT32_MIN, INT32_MAX, &cpu);
	p->home_cpu = (int)cpu;
	if (bl_yaml_number(y, item, "lanes", INT32_MIN, INT32_MAX, &lanes) &&
	    (lanes < 1 || lanes > BL_LANES_MAX))
		bl_yaml_refuse(y, item, "lanes", "lanes %lld: 1 to %d", (long long)lanes,
			       BL_LANES_MAX);
	p->lanes = (uint8_t)lanes;
	read_addresses(y, item, p);
	read_chain(y, item, p->chain, sizeof(p->chain));
	p->auth_off = bl_yaml_name(y, item, "auth", bl_setting(BL_S_AUTH_MODE)->names, 1) ==
		      BL_AUTH_OFF;
	for (k = 0; k < number; k++)
		if (!strcmp(cfg->ports[k].ifname, p->ifname))
			bl_yaml_refuse(y, item, "interface", "port %s is listed twice", p->ifname);
}

static void read_ports(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *list;
	unsigned int k, n = bl_yaml_list(y, y->root, "ports", BL_SW_PORTS_MAX, &list);

	if (!n)
		return;
	free(cfg->ports);
	cfg->ports = calloc(n, sizeof(*cfg->ports));
	cfg->ports_count = cfg->ports ? n : 0;
	if (!cfg->ports)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (k = 0; k < n && !y->rc; k++)
		read_port(y, bl_yaml_item(y, list, k), cfg, k);
}

static void read_fdb_entry(struct bl_yaml *y, yaml_node_t *item, struct bl_node_cfg *cfg,
			   struct bl_fdb_cfg *to)
{
	static const char *const keys[] = { "mac", "port", NULL };
	const char *mac;

	bl_yaml_keys(y, item, keys);
	bl_yaml_need(y, item, "mac");
	bl_yaml_need(y, item, "port");
	mac = bl_yaml_text(y, item, "mac", 17);
	if (mac && !bl_mac_parse(mac, to->mac))
		bl_yaml_refuse(y, item, "mac",
			       "%s is no Ethernet address (six pairs of hex digits, with colons)",
			       mac);
	if (mac && to->mac[0] & 1)
		bl_yaml_refuse(y, item, "mac", "%s is a group address; only unicast can be entered",
			       mac);
	bl_yaml_copy(y, item, "port", to->ifname, sizeof(to->ifname));
	if (!bl_cfg_port(cfg, to->ifname))
		bl_yaml_refuse(y, item, "port", "%s is no port of this switch; list it under ports",
			       to->ifname);
}

static void read_fdb(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *list;
	unsigned int k, n;

	if (!bl_yaml_get(y, y->root, "fdb") || cfg->role != BL_ROLE_SWITCH)
		return;
	n = bl_yaml_list(y, y->root, "fdb", BL_FDB_BUCKETS * BL_FDB_WAYS, &list);
	free(cfg->fdb);
	cfg->fdb = calloc(n + 1, sizeof(*cfg->fdb));
	cfg->fdb_count = cfg->fdb ? n : 0;
	if (!cfg->fdb)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (k = 0; k < n && !y->rc; k++)
		read_fdb_entry(y, bl_yaml_item(y, list, k), cfg, &cfg->fdb[k]);
}

static void read_controllers(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	static const unsigned int needed[] = { BL_S_TLS_CA, BL_S_TLS_CERT, BL_S_TLS_KEY };
	struct bl_ctl_peers *c = &cfg->ctl;
	yaml_node_t *tls = bl_yaml_get(y, y->root, "tls"), *list;
	struct sockaddr_storage sa;
	socklen_t len;
	unsigned int k, n;

	n = bl_yaml_list(y, y->root, "controllers", BL_CTL_PEERS_MAX, &list);
	for (k = 0; k < n && !y->rc; k++) {
		const char *addr = bl_yaml_item_text(y, bl_yaml_item(y, list, k), "controllers",
						     sizeof(c->addr[k]) - 1);

		if (addr && bl_session_addr(addr, &sa, &len))
			bl_yaml_refuse(y, y->root, "controllers",
				       "%s is no address, as 10.0.0.1:%d, or with the quotes "
				       "\"[fd00::1]:%d\"",
				       addr, BL_SESSION_PORT, BL_SESSION_PORT);
		snprintf(c->addr[k], sizeof(c->addr[k]), "%s", addr ? addr : "");
	}
	c->n = n ? n : c->n;
	for (k = 0; k < COUNT(needed); k++)
		bl_yaml_need(y, tls, bl_setting(needed[k])->key);
}

static void check_auth(struct bl_yaml *y, const struct bl_node_cfg *cfg)
{
	yaml_node_t *map = bl_yaml_get(y, y->root, "auth");

	if (!map)
		return;
	bl_yaml_need(y, map, "mode");
	if (!y->rc && cfg->auth.mode != BL_AUTH_OFF && !bl_yaml_get(y, map, "keys"))
		bl_yaml_refuse(y, y->root, "auth",
			       "mode %s needs keys: the node's key file, which `barline auth "
			       "issue` makes",
			       bl_setting(BL_S_AUTH_MODE)->names[cfg->auth.mode]);
}

/* The program is named in a way that can be right. */
static void check_chain(struct bl_yaml *y, const struct bl_node_cfg *cfg)
{
	struct bl_err why;

	if (!y->rc && bl_yaml_get(y, y->root, "chain") && bl_chain_check(cfg->chain, &why))
		bl_yaml_refuse(y, y->root, "chain", "%s", why.text);
}

/* What the operator puts up with. */
static void read_accept(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *list;
	unsigned int k, n = bl_yaml_list(y, y->root, "accept", COUNT(accept_names), &list);

	for (k = 0; k < n && !y->rc; k++) {
		const char *what = bl_yaml_item_text(y, bl_yaml_item(y, list, k), "accept", 31);

		if (what && strcmp(what, accept_names[0]))
			bl_yaml_refuse(y, y->root, "accept",
				       "accept: %s: only [%s] can be accepted", what,
				       accept_names[0]);
		cfg->accept_reordering |= what && !y->rc;
	}
}

static void read_node(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	static const char *const sections[] = { NULL, "clock", "tls", "auth" };
	const char *keys[KEYS_MAX];
	unsigned int k;

	for (k = 0; k < COUNT(sections); k++) {
		list_keys(sections[k], keys);
		bl_yaml_keys(y, sections[k] ? bl_yaml_get(y, y->root, sections[k]) : y->root, keys);
	}
	read_role(y, cfg);
	for (k = 0; k < BL_S_COUNT; k++)
		if (bl_setting(k)->key && k != BL_S_ROLE)
			read_setting(y, bl_setting(k), cfg);
	check_roles(y, cfg);
	if (cfg->role == BL_ROLE_SWITCH && !bl_yaml_get(y, y->root, "ports"))
		bl_yaml_refuse(y, NULL, NULL, "a switch needs ports");
	if (cfg->forward != BL_FWD_L2 && bl_yaml_get(y, y->root, "fdb"))
		bl_yaml_refuse(y, y->root, "fdb", "fdb is used with \"forward: l2\" only");
	bl_config_clock(y, cfg);
	check_times(y, cfg);
	check_chain(y, cfg);
	read_accept(y, cfg);
	read_cpus(y, cfg);
	read_ports(y, cfg);
	read_fdb(y, cfg);
	bl_config_admission(y, cfg);
	read_controllers(y, cfg);
	check_auth(y, cfg);
}

/*
 * Sets what the file says and leaves the rest of *@cfg as it is. A role that *@cfg has already must
 * be the file's, if the file names one.
 */
int bl_config_load(struct bl_node_cfg *cfg, const char *path, struct bl_err *err)
{
	struct bl_yaml y;
	int rc;

	if (!bl_yaml_open(&y, path, err))
		read_node(&y, cfg);
	rc = bl_yaml_close(&y);
	if (rc)
		bl_config_free(cfg);
	return rc;
}

void bl_config_free(struct bl_node_cfg *cfg)
{
	free(cfg->ports);
	free(cfg->fdb);
	cfg->ports = NULL;
	cfg->fdb = NULL;
	cfg->ports_count = cfg->fdb_count = 0;
}
