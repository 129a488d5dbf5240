// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the file that arbiters and hosts share; fastpass_file.h has an example. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"
#include "base/yaml.h"
#include "core/fastpass/fcp_core.h"
#include "maps/alloc_abi.h"
#include "proto/fastpass_file_priv.h"

static const char *const policies[] = {
#define POLICY(sym, name, text) [BL_ALLOC_##sym] = name,
	BL_ALLOC_POLICIES(POLICY)
#undef POLICY
};
static const char *const path_selections[] = { "greedy", "euler" };

#define COUNT(v)      (sizeof(v) / sizeof((v)[0]))
#define ADDR_TEXT_MAX 45
#define NAME_TEXT_MAX 31
#define PAIRS_MAX     (1 << 20)

/* Reads an IP address. Returns false if the key is missing, or after an error. */
static bool read_addr(struct bl_yaml *y, yaml_node_t *map, const char *key, uint8_t addr[16])
{
	const char *text = bl_yaml_text(y, map, key, ADDR_TEXT_MAX);

	if (text && !bl_fp_addr_parse(text, addr))
		bl_yaml_refuse(y, map, key, "%s is no IP address", text);
	return text && !y->rc;
}

/* Reads weight and deadline of an endpoint or a pair; refuses them if the policy ignores them. */
static void read_shares(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map,
			uint32_t *weight, uint32_t *deadline_us)
{
	*weight = bl_yaml_u32(y, map, "weight");
	*deadline_us = bl_yaml_u32(y, map, "deadline_us");
	if (*weight && f->policy != BL_ALLOC_WEIGHTED)
		bl_yaml_refuse(y, map, "weight",
			       "policy %s knows no weights; set policy: weighted, or leave them "
			       "out",
			       policies[f->policy]);
	if (*weight > BL_ALLOC_WEIGHT_MAX)
		bl_yaml_refuse(y, map, "weight", "a weight of %u; from 1 to %u", *weight,
			       BL_ALLOC_WEIGHT_MAX);
	if (*deadline_us && f->policy != BL_ALLOC_DEADLINE)
		bl_yaml_refuse(y, map, "deadline_us",
			       "policy %s knows no deadlines; set policy: deadline, or leave them "
			       "out",
			       policies[f->policy]);
	if (*deadline_us > 10000000)
		bl_yaml_refuse(y, map, "deadline_us",
			       "a deadline after %u us; at most 10000000, ten seconds",
			       *deadline_us);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct bl_fp_pair *x = a, *y = b;

	return x->src != y->src   ? (x->src < y->src ? -1 : 1)
	       : x->dst != y->dst ? (x->dst < y->dst ? -1 : 1)
				  : 0;
}

static int find_peer_name(const struct bl_fp_file *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->npeers; i++)
		if (!strcmp(f->peer[i].name, name))
			return (int)i;
	return -1;
}

/* Returns the number of the endpoint that @key of a pair names, or -1 after an error. */
static int read_pair_end(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map,
			 const char *key)
{
	const char *name = bl_yaml_need(y, map, key) ? bl_yaml_text(y, map, key, ADDR_TEXT_MAX)
						     : NULL;
	int peer = name ? find_peer_name(f, name) : -1;

	if (name && peer < 0)
		bl_yaml_refuse(y, map, key, "no endpoint is called %s", name);
	return peer;
}

static void read_pair(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	static const char *const keys[] = { "from", "to", "weight", "deadline_us", NULL };
	struct bl_fp_pair *p = &f->pair[f->npairs];
	uint32_t weight, deadline_us;
	int src, dst;

	bl_yaml_keys(y, map, keys);
	src = read_pair_end(f, y, map, "from");
	dst = read_pair_end(f, y, map, "to");
	if (!y->rc && src == dst)
		bl_yaml_refuse(y, map, "to", "%s sends nothing to itself through the network",
			       f->peer[dst].name);
	read_shares(f, y, map, &weight, &deadline_us);
	if (y->rc)
		return;
	*p = (struct bl_fp_pair){ (uint16_t)src, (uint16_t)dst, weight, deadline_us };
	f->npairs++;
}

static void read_pairs(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n = bl_yaml_list(y, y->root, "pairs", PAIRS_MAX, &list);

	f->pair = calloc(n + 1, sizeof(*f->pair));
	if (!f->pair) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < n && !y->rc; i++)
		read_pair(f, y, bl_yaml_item(y, list, i));
	qsort(f->pair, f->npairs, sizeof(*f->pair), compare_pairs);
	for (i = 1; i < f->npairs && !y->rc; i++)
		if (!compare_pairs(&f->pair[i - 1], &f->pair[i]))
			bl_yaml_refuse(y, NULL, NULL, "the pair from %s to %s is there twice",
				       f->peer[f->pair[i].src].name, f->peer[f->pair[i].dst].name);
}

/* Refuses the last endpoint if another one has its name or its bl0's address. */
static void check_peer_unique(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	const struct bl_fp_peer *p = &f->peer[f->npeers];
	unsigned int k;

	for (k = 0; k < f->npeers && !y->rc; k++) {
		if (!strcmp(f->peer[k].name, p->name))
			bl_yaml_refuse(y, map, bl_yaml_get(y, map, "name") ? "name" : "addr",
				       "%s is the name of endpoint %u already", p->name, k);
		if (!f->routed && p->has_mac && f->peer[k].has_mac &&
		    !memcmp(f->peer[k].mac, p->mac, 6))
			bl_yaml_refuse(y, map, "mac",
				       "%s is the address of %s's bl0 already; frames could not "
				       "be told apart",
				       bl_yaml_text(y, map, "mac", 17), f->peer[k].name);
	}
}

static void read_peer_apps(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	struct bl_fp_peer *p = &f->peer[f->npeers];
	yaml_node_t *list;
	unsigned int k, n = bl_yaml_list(y, map, "apps", BL_FP_APPS_MAX, &list);

	for (k = 0; k < n && !y->rc; k++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, k), "apps", ADDR_TEXT_MAX);

		if (text && !bl_fp_addr_parse(text, p->app[p->napps++]))
			bl_yaml_refuse(y, map, "apps", "%s is no IP address", text);
	}
	if (f->routed && !n)
		bl_yaml_refuse(y, map, "addr",
			       "routers are between, so this endpoint needs apps: the addresses "
			       "of its bl0");
}

static void read_peer(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	static const char *const keys[] = { "name",   "addr",        "mac",  "rack", "cap",
					    "weight", "deadline_us", "apps", NULL };
	struct bl_fp_peer *p = &f->peer[f->npeers];
	const char *name, *mac;
	int first;

	bl_yaml_keys(y, map, keys);
	bl_yaml_need(y, map, "addr");
	if (!read_addr(y, map, "addr", p->addr))
		return;
	first = bl_fp_find(f, p->addr);
	if (first >= 0)
		bl_yaml_refuse(y, map, "addr", "%s is endpoint %d already",
			       bl_yaml_text(y, map, "addr", ADDR_TEXT_MAX), first);
	mac = bl_yaml_text(y, map, "mac", 17);
	p->has_mac = mac != NULL;
	if (mac && (!bl_mac_parse(mac, p->mac) || p->mac[0] & 1))
		bl_yaml_refuse(y, map, "mac", "%s is no Ethernet address of one station", mac);
	read_peer_apps(f, y, map);
	read_shares(f, y, map, &p->weight, &p->deadline_us);
	p->rack = bl_yaml_u16(y, map, "rack");
	p->cap = bl_yaml_u16(y, map, "cap");
	name = bl_yaml_text(y, map, "name", NAME_TEXT_MAX);
	if (!name)
		name = bl_yaml_text(y, map, "addr", ADDR_TEXT_MAX);
	snprintf(p->name, sizeof(p->name), "%.31s", name ? name : "");
	check_peer_unique(f, y, map);
	if (!y->rc)
		f->npeers++;
}

static void read_peers(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n;

	bl_yaml_need(y, y->root, "endpoints");
	n = bl_yaml_list(y, y->root, "endpoints", BL_FCP_ENDPOINTS_MAX, &list);
	if (!n)
		return;
	f->peer = calloc(n, sizeof(*f->peer));
	if (!f->peer)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (i = 0; i < n && !y->rc; i++)
		read_peer(f, y, bl_yaml_item(y, list, i));
}

struct app {
	uint8_t addr[16];
	unsigned int peer;
};

static int compare_apps(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((const struct app *)a)->addr));
}

/* With routers, frames are recognised by these addresses, so no two endpoints may share one. */
static void check_apps(const struct bl_fp_file *f, struct bl_yaml *y)
{
	struct app *all = calloc(f->npeers * BL_FP_APPS_MAX + 1, sizeof(*all));
	unsigned int i, k, n = 0;
	char text[INET6_ADDRSTRLEN];

	if (!all) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < f->npeers; i++)
		for (k = 0; k < f->peer[i].napps; k++) {
			memcpy(all[n].addr, f->peer[i].app[k], sizeof(all[n].addr));
			all[n++].peer = i;
		}
	qsort(all, n, sizeof(*all), compare_apps);
	for (i = 1; i < n && !y->rc; i++)
		if (!compare_apps(&all[i - 1], &all[i]) && all[i - 1].peer != all[i].peer)
			bl_yaml_refuse(y, NULL, NULL,
				       "%s is an address of both %s and %s; frames could not be "
				       "told apart",
				       bl_fp_addr_text(all[i].addr, text),
				       f->peer[all[i - 1].peer].name, f->peer[all[i].peer].name);
	free(all);
}

static void read_pods(struct bl_fp_file *f, struct bl_yaml *y)
{
	unsigned int i, n, nracks = 0;
	yaml_node_t *list;
	int64_t pod = 0;

	n = bl_yaml_list(y, y->root, "pods", BL_PATH_RACKS_MAX, &list);
	if (!n)
		return;
	for (i = 0; i < f->npeers; i++)
		if (f->peer[i].rack >= nracks)
			nracks = f->peer[i].rack + 1U;
	if (n != nracks) {
		bl_yaml_refuse(y, y->root, "pods",
			       "%u pods for %u racks; give each rack, from 0 on, the number of "
			       "its pod",
			       n, nracks);
		return;
	}
	f->pod_of = calloc(nracks, sizeof(*f->pod_of));
	if (!f->pod_of)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (i = 0; i < nracks && !y->rc; i++) {
		bl_yaml_item_number(y, bl_yaml_item(y, list, i), "pods", 0, UINT16_MAX, &pod);
		if (pod >= nracks)
			bl_yaml_refuse(y, y->root, "pods",
				       "pod %lld: with %u racks they are numbered from 0 to %u at "
				       "most",
				       (long long)pod, nracks, nracks - 1);
		f->pod_of[i] = (uint16_t)pod;
		if (!y->rc && pod >= f->npods)
			f->npods = (unsigned int)pod + 1;
	}
}

static void read_arbiters(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n;

	bl_yaml_need(y, y->root, "arbiters");
	n = bl_yaml_list(y, y->root, "arbiters", BL_FP_ARBITERS_MAX, &list);
	for (i = 0; i < n && !y->rc; i++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, i), "arbiters", ADDR_TEXT_MAX);

		if (text && !bl_fp_addr_parse(text, f->arbiter[i]))
			bl_yaml_refuse(y, y->root, "arbiters", "%s is no IP address", text);
	}
	f->narbiters = n;
	f->has_group = read_addr(y, y->root, "group", f->group);
	if (f->narbiters > 1 && !f->has_group)
		bl_yaml_refuse(y, y->root, "arbiters",
			       "%u arbiters need a group, or both would rule", f->narbiters);
}

static void read_path_names(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n = bl_yaml_list(y, y->root, "path_names", BL_PATH_PATHS_MAX, &list);

	f->path_name = calloc(n + 1, sizeof(*f->path_name));
	if (!f->path_name) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < n && !y->rc; i++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, i), "path_names", NAME_TEXT_MAX);

		snprintf(f->path_name[i], sizeof(*f->path_name), "%s", text ? text : "");
	}
	f->npath_names = n;
}

/* Keys of the file, and members of struct bl_fp_file, with 32-bit numbers; 0: the default. */
/* clang-format off */
#define NUMBERS(X) \
	X(slot_ns) X(slot_bytes) X(window_slots) X(lead_us) X(run_slots) X(watchdog_us) \
	X(dead_us) X(guard_us) X(quota) X(rtt_us) X(rack_up) X(paths) X(path_cap) X(cores) \
	X(core_cap) X(late_us) X(fault_report_us) X(fault_settle_us) X(fault_frames) \
	X(fault_percent) X(fault_hold_ms)
/* clang-format on */

static void read_numbers(struct bl_fp_file *f, struct bl_yaml *y)
{
	int64_t ms;

#define NUMBER(name) f->name = bl_yaml_u32(y, y->root, #name);
	NUMBERS(NUMBER)
#undef NUMBER
	f->udp_ports = bl_yaml_u16(y, y->root, "udp_ports");
	if (bl_yaml_number(y, y->root, "fallback_ms", 0, UINT32_MAX, &ms))
		f->fallback_ms = ms ? (uint32_t)ms : BL_FP_NO_FALLBACK;
}

static void read_file(struct bl_fp_file *f, struct bl_yaml *y, const char *path)
{
	static const char *const keys[] = {
#define KEY(name) #name,
		NUMBERS(KEY)
#undef KEY
			"rate",
		"arbiters",
		"group",
		"secret",
		"secret_file",
		"insecure",
		"policy",
		"udp_ports",
		"fallback_ms",
		"faults",
		"path_names",
		"routed",
		"path_selection",
		"path_field",
		"endpoints",
		"pods",
		"pairs",
		NULL
	};
	const char *rate;
	int name;

	bl_yaml_keys(y, y->root, keys);
	rate = bl_yaml_text(y, y->root, "rate", 31);
	if (rate && !bl_rate_parse(rate, &f->rate_bps))
		bl_yaml_refuse(y, y->root, "rate",
			       "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit", rate);
	read_numbers(f, y);
	read_arbiters(f, y);
	f->has_faults = read_addr(y, y->root, "faults", f->faults);
	read_path_names(f, y);
	name = bl_yaml_name(y, y->root, "policy", policies, COUNT(policies));
	f->policy = name > 0 ? (unsigned int)name : 0;
	f->euler = bl_yaml_name(y, y->root, "path_selection", path_selections,
				COUNT(path_selections)) > 0;
	f->routed = bl_yaml_truth(y, y->root, "routed");
	name = bl_yaml_name(y, y->root, "path_field", bl_fp_path_fields, BL_FIELD_COUNT);
	f->field = name > 0 ? (enum bl_path_field)name : (enum bl_path_field)0;
	bl_fp_secret_read(f, y, path);
	read_peers(f, y);
	if (f->routed && !y->rc)
		check_apps(f, y);
	read_pairs(f, y);
	read_pods(f, y);
}

int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err)
{
	struct bl_err why;
	struct bl_yaml y;
	int rc;

	memset(f, 0, sizeof(*f));
	if (!bl_yaml_open(&y, path, err))
		read_file(f, &y, path);
	if (!y.rc && bl_fp_defaults(f, &why))
		bl_yaml_refuse(&y, NULL, NULL, "%s", why.text);
	if (!y.rc && !f->secret[0] && !f->secret[1] && !f->insecure)
		bl_yaml_refuse(&y, NULL, NULL,
			       "there is no secret, so every machine of the network could grant "
			       "slots, take them, or stop the arbiters: `barline arbiter secret "
			       "FILE` makes one, for secret_file: FILE; insecure: true does "
			       "without");
	rc = bl_yaml_close(&y);
	if (rc)
		bl_fp_free(f);
	return rc;
}
