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
#include "loader/defaults.h"
#include "loader/load/chain.h"
#include "loader/load/pin.h"
#include "loader/load/prio.h"
#include "loader/node_cfg.h"
#include "maps/host_abi.h"
#include "proto/session.h"

#define COUNT(v)      (sizeof(v) / sizeof((v)[0]))
#define FILE_TEXT_MAX 255
#define BEACON_MAX_US 1000000
#define VOID_MIN_MS   1000

static const char *const role_names[] = {
	[BL_ROLE_NONE] = "", [BL_ROLE_SWITCH] = "switch", [BL_ROLE_HOST] = "host"
};
static const char *const mode_names[] = {
	[BL_XDP_NATIVE] = "native", [BL_XDP_GENERIC] = "generic"
};
static const char *const xdp_names[] = { "alone", "dispatcher" };
static const char *const forward_names[] = { [BL_FWD_L3] = "l3", [BL_FWD_L2] = "l2" };
static const char *const realtime_names[] = {
	[BL_RT_AUTO] = "auto", [BL_RT_ALWAYS] = "always", [BL_RT_NEVER] = "never"
};
static const char *const port_role_names[] = {
	[BL_PORT_HOST] = "host", [BL_PORT_UP] = "up", [BL_PORT_DOWN] = "down"
};
static const char *const auth_names[] = { [BL_AUTH_OFF] = "off",
					  [BL_AUTH_OFFER] = "offer",
					  [BL_AUTH_LINKS] = "links",
					  [BL_AUTH_STRICT] = "strict" };
static const char *const accept_names[] = { "reordering" };

/* The role of the file and of @cfg, which have to be the same if both are known. */
static void read_role(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	/* [0], BL_ROLE_NONE, has no name */
	int role = bl_yaml_name(y, y->root, "role", role_names + 1, COUNT(role_names) - 1) + 1;

	if (role && cfg->role != BL_ROLE_NONE && (enum bl_role)role != cfg->role)
		bl_yaml_refuse(y, y->root, "role", "the file is for a %s, not for a %s",
			       role_names[role], bl_role_name(cfg->role));
	else if (role)
		cfg->role = (enum bl_role)role;
	if (cfg->role == BL_ROLE_NONE)
		bl_yaml_refuse(y, NULL, NULL, "role is missing: switch or host");
}

/* Refuses keys of the other role. */
static void check_role_keys(struct bl_yaml *y, const struct bl_node_cfg *cfg, bool l2)
{
	static const char *const of_hosts[] = { "process_limit_ms", "send_limit_ms",
						"user_endpoints", "user_ring_mib" };
	yaml_node_t *m = y->root;
	unsigned int k;

	if (cfg->role == BL_ROLE_HOST && (bl_yaml_get(y, m, "ports") || bl_yaml_get(y, m, "fdb") ||
					  (l2 && bl_yaml_get(y, m, "forward"))))
		bl_yaml_refuse(y, m,
			       bl_yaml_get(y, m, "ports") ? "ports"
			       : bl_yaml_get(y, m, "fdb") ? "fdb"
							  : "forward",
			       "a host has no such key; is the role right?");
	if (cfg->role == BL_ROLE_HOST &&
	    (bl_yaml_get(y, m, "lag_max_us") || bl_yaml_get(y, m, "control_rate") ||
	     bl_yaml_get(y, m, "commit_lag_max_ms")))
		bl_yaml_refuse(y, m,
			       bl_yaml_get(y, m, "lag_max_us")     ? "lag_max_us"
			       : bl_yaml_get(y, m, "control_rate") ? "control_rate"
								   : "commit_lag_max_ms",
			       "a host has no such key; its switch has");
	if (cfg->role != BL_ROLE_SWITCH)
		return;
	for (k = 0; k < COUNT(of_hosts); k++)
		if (bl_yaml_get(y, m, of_hosts[k]))
			bl_yaml_refuse(y, m, of_hosts[k], "%s is a key of hosts", of_hosts[k]);
	if (bl_yaml_get(y, m, "interface"))
		bl_yaml_refuse(y, m, "interface",
			       "interface is a key of hosts; a switch lists its interfaces under "
			       "ports");
	if (!bl_yaml_get(y, m, "ports"))
		bl_yaml_refuse(y, NULL, NULL, "a switch needs ports");
	if (!l2 && bl_yaml_get(y, m, "fdb"))
		bl_yaml_refuse(y, m, "fdb", "fdb is used with \"forward: l2\" only");
}

static void read_number(struct bl_yaml *y, const char *key, uint32_t *to)
{
	uint32_t v = bl_yaml_u32(y, y->root, key);

	if (v)
		*to = v;
}

/* Reads a limit of hosts, of which 0 means that there is none. */
static void read_limit(struct bl_yaml *y, const char *key, int32_t least, int32_t most, int32_t *to)
{
	int64_t v;

	if (!bl_yaml_number(y, y->root, key, INT32_MIN, INT32_MAX, &v))
		return;
	if (v && (v < least || v > most))
		bl_yaml_refuse(y, y->root, key, "%s %lld: 0 (no limit), or %d to %d", key,
			       (long long)v, least, most);
	*to = v ? (int32_t)v : -1;
}

static void read_times(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *m = y->root;
	uint32_t beacon, dead = 0;
	int64_t ms;

	read_number(y, "beacon_us", &cfg->beacon_us);
	beacon = bl_yaml_u32(y, m, "beacon_us");
	if (beacon > BEACON_MAX_US)
		bl_yaml_refuse(y, m, "beacon_us", "beacon_us %u: at most %d", beacon,
			       BEACON_MAX_US);
	beacon = beacon ? beacon : BL_BEACON_US;
	read_number(y, "dead_after_us", &dead);
	if (dead && dead < 2 * beacon)
		bl_yaml_refuse(y, m, "dead_after_us",
			       "dead_after_us %u: at least two beacon intervals (%u us each)", dead,
			       beacon);
	cfg->dead_after_us = dead ? dead : cfg->dead_after_us;
	read_number(y, "lag_max_us", &cfg->lag_max_us);
	if (cfg->lag_max_us && cfg->lag_max_us < (dead ? dead : 10 * beacon))
		bl_yaml_refuse(y, m, "lag_max_us", "lag_max_us %u: at least dead_after_us (%u)",
			       cfg->lag_max_us, dead ? dead : 10 * beacon);
	read_number(y, "commit_lag_max_ms", &cfg->commit_lag_max_ms);
	if (cfg->commit_lag_max_ms && cfg->commit_lag_max_ms * 1000ULL < BL_LAG_MAX_US)
		bl_yaml_refuse(y, m, "commit_lag_max_ms", "commit_lag_max_ms %u: at least %d",
			       cfg->commit_lag_max_ms, BL_LAG_MAX_US / 1000);
	read_number(y, "control_rate", &cfg->control_rate);
	if (cfg->control_rate > 1000000000)
		bl_yaml_refuse(y, m, "control_rate", "control_rate %u: at most 1000000000",
			       cfg->control_rate);
	bl_config_clock(y, cfg);
	read_number(y, "clock_void_after_ms", &cfg->clock_void_after_ms);
	if (bl_yaml_get(y, m, "clock_void_after_ms") && cfg->clock_void_after_ms &&
	    cfg->clock_void_after_ms < VOID_MIN_MS)
		bl_yaml_refuse(y, m, "clock_void_after_ms", "clock_void_after_ms %u: at least %d",
			       cfg->clock_void_after_ms, VOID_MIN_MS);
	if (bl_yaml_number(y, m, "caretaker_ms", INT32_MIN, INT32_MAX, &ms)) {
		if (ms < 0 || ms > BL_CARETAKER_MAX_MS)
			bl_yaml_refuse(y, m, "caretaker_ms", "caretaker_ms %lld: 0 to %d",
				       (long long)ms, BL_CARETAKER_MAX_MS);
		cfg->caretaker_ms = ms ? (int32_t)ms : -1;
	}
	read_limit(y, "send_limit_ms", BL_SEND_LIMIT_MIN_MS, BL_SEND_LIMIT_MAX_MS,
		   &cfg->send_limit_ms);
	read_limit(y, "user_endpoints", 1, BL_EPS_MAX, &cfg->user_endpoints);
	read_limit(y, "user_ring_mib", 1, BL_EPS_MAX * (BL_RING_BYTES_MAX >> 20),
		   &cfg->user_ring_mib);
	read_number(y, "process_limit_ms", &cfg->process_limit_ms);
	if (bl_yaml_get(y, m, "process_limit_ms") && cfg->process_limit_ms &&
	    cfg->process_limit_ms < BL_PROCESS_LIMIT_MIN_MS)
		bl_yaml_refuse(y, m, "process_limit_ms", "process_limit_ms %u: at least %d",
			       cfg->process_limit_ms, BL_PROCESS_LIMIT_MIN_MS);
}

static void read_udp_ports(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	uint16_t base = bl_yaml_u16(y, y->root, "port_base"),
		 count = bl_yaml_u16(y, y->root, "port_count");

	if (count > BL_PORT_COUNT)
		bl_yaml_refuse(y, y->root, "port_count", "port_count %u: at most %u", count,
			       BL_PORT_COUNT);
	if (base && base + (count ? count : BL_PORT_COUNT) > 65536)
		bl_yaml_refuse(y, y->root, "port_base", "port_base %u: the range ends above 65535",
			       base);
	cfg->port_base = base ? base : cfg->port_base;
	cfg->port_count = count ? count : cfg->port_count;
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
	p->auth_off = bl_yaml_name(y, item, "auth", auth_names, 1) == BL_AUTH_OFF;
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
	unsigned int k;

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
	for (k = 0; k < cfg->ports_count && strcmp(cfg->ports[k].ifname, to->ifname); k++)
		;
	if (k == cfg->ports_count)
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
	static const char *const keys[] = { "ca", "cert", "key", "unnamed", NULL };
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
	bl_yaml_keys(y, tls, keys);
	for (k = 0; k < 3; k++)
		bl_yaml_need(y, tls, keys[k]);
	c->unnamed |= bl_yaml_truth(y, tls, "unnamed");
	c->insecure |= bl_yaml_truth(y, y->root, "insecure");
	bl_yaml_copy(y, tls, "ca", c->ca, sizeof(c->ca));
	bl_yaml_copy(y, tls, "cert", c->cert, sizeof(c->cert));
	bl_yaml_copy(y, tls, "key", c->key, sizeof(c->key));
}

static void read_auth(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	static const char *const keys[] = { "mode", "keys", NULL };
	yaml_node_t *map = bl_yaml_get(y, y->root, "auth");
	int mode;

	if (!map)
		return;
	bl_yaml_keys(y, map, keys);
	bl_yaml_need(y, map, "mode");
	mode = bl_yaml_name(y, map, "mode", auth_names, COUNT(auth_names));
	cfg->auth.mode = mode < 0 ? BL_AUTH_OFF : (enum bl_auth_mode)mode;
	bl_yaml_copy(y, map, "keys", cfg->auth.keys, sizeof(cfg->auth.keys));
	if (!y->rc && cfg->auth.mode != BL_AUTH_OFF && !bl_yaml_get(y, map, "keys"))
		bl_yaml_refuse(y, y->root, "auth",
			       "mode %s needs keys: the node's key file, which `barline auth "
			       "issue` makes",
			       auth_names[cfg->auth.mode]);
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
	static const char *const keys[] = { "role",
					    "name",
					    "interface",
					    "mode",
					    "node_id",
					    "port_base",
					    "port_count",
					    "beacon_us",
					    "dead_after_us",
					    "lag_max_us",
					    "commit_lag_max_ms",
					    "control_rate",
					    "clock_bound_us",
					    "clock",
					    "replace",
					    "xdp",
					    "chain",
					    "accept",
					    "one_queue",
					    "user",
					    "sandbox",
					    "no_ahead",
					    "clock_void_after_ms",
					    "caretaker_ms",
					    "process_limit_ms",
					    "send_limit_ms",
					    "user_endpoints",
					    "user_ring_mib",
					    "realtime",
					    "forward",
					    "thread_napi",
					    "admission",
					    "controllers",
					    "tls",
					    "insecure",
					    "auth",
					    "cpus",
					    "ports",
					    "fdb",
					    NULL };
	int mode, forward, realtime, xdp;

	bl_yaml_keys(y, y->root, keys);
	read_role(y, cfg);
	mode = bl_yaml_name(y, y->root, "mode", mode_names, COUNT(mode_names));
	xdp = bl_yaml_name(y, y->root, "xdp", xdp_names, COUNT(xdp_names));
	forward = bl_yaml_name(y, y->root, "forward", forward_names, COUNT(forward_names));
	realtime = bl_yaml_name(y, y->root, "realtime", realtime_names, COUNT(realtime_names));
	check_role_keys(y, cfg, forward == BL_FWD_L2);
	bl_yaml_copy(y, y->root, "name", cfg->name, sizeof(cfg->name));
	bl_yaml_copy(y, y->root, "interface", cfg->ifname, sizeof(cfg->ifname));
	cfg->mode = mode > 0 ? (enum bl_xdp_mode)mode : cfg->mode;
	cfg->forward = forward == BL_FWD_L2 ? BL_FWD_L2 : cfg->forward;
	cfg->realtime = realtime > 0 ? (enum bl_realtime)realtime : cfg->realtime;
	read_number(y, "node_id", &cfg->node_id);
	bl_yaml_copy(y, y->root, "user", cfg->user, sizeof(cfg->user));
	if (bl_yaml_get(y, y->root, "sandbox"))
		cfg->no_sandbox = !bl_yaml_truth(y, y->root, "sandbox");
	cfg->replace |= bl_yaml_truth(y, y->root, "replace");
	if (xdp >= 0)
		cfg->dispatcher = xdp == 1;
	read_chain(y, y->root, cfg->chain, sizeof(cfg->chain));
	read_accept(y, cfg);
	cfg->one_queue |= bl_yaml_truth(y, y->root, "one_queue");
	cfg->no_ahead |= bl_yaml_truth(y, y->root, "no_ahead");
	cfg->thread_napi |= bl_yaml_truth(y, y->root, "thread_napi");
	read_times(y, cfg);
	read_udp_ports(y, cfg);
	read_cpus(y, cfg);
	read_ports(y, cfg);
	read_fdb(y, cfg);
	bl_config_admission(y, cfg);
	read_controllers(y, cfg);
	read_auth(y, cfg);
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

int bl_config_xdp(const char *name)
{
	int k = COUNT(xdp_names);

	while (--k >= 0 && strcmp(xdp_names[k], name))
		;
	return k;
}

void bl_config_free(struct bl_node_cfg *cfg)
{
	free(cfg->ports);
	free(cfg->fdb);
	cfg->ports = NULL;
	cfg->fdb = NULL;
	cfg->ports_count = cfg->fdb_count = 0;
}
