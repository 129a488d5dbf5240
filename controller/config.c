// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config.h. The file is read as strictly as a node's file (base/yaml.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "controller/config.h"
#include "controller/store/store.h"
#include "proto/session.h"

#define FILE_TEXT_MAX 255

static void read_addr(struct bl_yaml *y, const char *key, char *to, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t len;

	bl_yaml_copy(y, y->root, key, to, size);
	if (*to && bl_session_addr(to, &sa, &len))
		bl_yaml_refuse(y, y->root, key,
			       "%s is no address, as 10.0.0.1:%d, or with the quotes "
			       "\"[fd00::1]:%d\"",
			       to, BL_SESSION_PORT, BL_SESSION_PORT);
}

static void read_etcd(struct bl_ctl_cfg *c, struct bl_yaml *y)
{
	static const char *const keys[] = { "endpoints", "prefix", "ca", "cert",
					    "key",       "ttl_s",  NULL };
	yaml_node_t *map = bl_yaml_get(y, y->root, "etcd"), *list;
	unsigned int i;

	bl_yaml_keys(y, map, keys);
	bl_yaml_need(y, map, "endpoints");
	c->netcd = bl_yaml_list(y, map, "endpoints", BL_CTL_ETCD_MAX, &list);
	for (i = 0; i < c->netcd && !y->rc; i++) {
		const char *url =
			bl_yaml_item_text(y, bl_yaml_item(y, list, i), "endpoints", FILE_TEXT_MAX);

		if (url && strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
			bl_yaml_refuse(y, map, "endpoints", "%s is no URL, as http://10.0.0.1:2379",
				       url);
		snprintf(c->etcd[i], sizeof(c->etcd[i]), "%s", url ? url : "");
	}
	bl_yaml_copy(y, map, "prefix", c->prefix, sizeof(c->prefix));
	bl_yaml_copy(y, map, "ca", c->etcd_ca, sizeof(c->etcd_ca));
	bl_yaml_copy(y, map, "cert", c->etcd_cert, sizeof(c->etcd_cert));
	bl_yaml_copy(y, map, "key", c->etcd_key, sizeof(c->etcd_key));
	if (!*c->etcd_cert != !*c->etcd_key)
		bl_yaml_refuse(y, map, *c->etcd_cert ? "cert" : "key",
			       "cert and key belong together: give both, or neither");
	c->ttl_s = bl_yaml_u32(y, map, "ttl_s");
	if (c->ttl_s && (c->ttl_s < 2 || c->ttl_s > 3600))
		bl_yaml_refuse(y, map, "ttl_s", "ttl_s %u: 2 to 3600", c->ttl_s);
}

/* The nodes that may have sessions: [{ id: 1, name: h1 }, ...] */
static void read_nodes(struct bl_ctl_cfg *c, struct bl_yaml *y)
{
	static const char *const keys[] = { "id", "name", NULL };
	unsigned int k, i, n;
	yaml_node_t *list;

	n = bl_yaml_list(y, y->root, "nodes", BL_CTL_NODES_MAX, &list);
	c->nodes = n ? calloc(n, sizeof(*c->nodes)) : NULL;
	if (n && !c->nodes)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (k = 0; k < n && !y->rc; k++) {
		yaml_node_t *item = bl_yaml_item(y, list, k);
		struct bl_ctl_node *v = &c->nodes[k];

		bl_yaml_keys(y, item, keys);
		bl_yaml_need(y, item, "id");
		v->id = bl_yaml_u32(y, item, "id");
		bl_yaml_copy(y, item, "name", v->name, sizeof(v->name));
		if (!v->id)
			bl_yaml_refuse(y, item, "id", "id 0: 1 or more, as node_id of the node");
		for (i = 0; i < k && c->nodes[i].id != v->id; i++)
			;
		if (i < k)
			bl_yaml_refuse(y, item, "id", "id %u is given twice", v->id);
		c->nnodes = k + 1;
	}
}

void bl_ctl_config_defaults(struct bl_ctl_cfg *c)
{
	if (!*c->advertise)
		snprintf(c->advertise, sizeof(c->advertise), "%s", c->listen);
	if (c->netcd && !*c->prefix)
		snprintf(c->prefix, sizeof(c->prefix), "%s", BL_STORE_PREFIX);
	if (c->netcd && !c->ttl_s)
		c->ttl_s = BL_STORE_TTL_S;
	c->settle_us = c->settle_us ? c->settle_us : 5000;
	c->answer_ms = c->answer_ms ? c->answer_ms : 1000;
	c->grace_ms = c->grace_ms ? c->grace_ms : 3000;
	c->silence_ms = c->silence_ms ? c->silence_ms : 3000;
	c->stuck_ms = c->stuck_ms ? c->stuck_ms : 5000;
}

void bl_ctl_config_free(struct bl_ctl_cfg *c)
{
	free(c->nodes);
	c->nodes = NULL;
	c->nnodes = 0;
}

/* An endpoint that is reached without TLS, or with a TLS that lets others pass for one side. */
static int check_etcd(const struct bl_ctl_cfg *c, const char *url, struct bl_err *err)
{
	const char *missing = !*c->etcd_ca ? "ca" : !*c->etcd_cert ? "cert" : "key";
	bool tls = strncmp(url, "http://", 7), local = bl_store_url_is_local(url);

	if (!tls && !local)
		return bl_fail(err, EPERM,
			       "etcd: %s is reached without TLS, and anybody on the way could "
			       "change what the controller has decided: use https:// with ca, cert "
			       "and key (`barline pki issue NAME --role etcd` makes etcd's files), "
			       "or say insecure: true",
			       url);
	if (!tls && (*c->etcd_ca || *c->etcd_cert))
		return bl_fail(err, EPERM,
			       "etcd: %s is reached without TLS, so ca, cert and key would not be "
			       "used: write https://, leave them out, or say insecure: true",
			       url);
	if (tls && !local && !(*c->etcd_ca && *c->etcd_cert && *c->etcd_key))
		return bl_fail(err, EPERM,
			       "etcd: %s is used without %s: without ca anybody with a certificate "
			       "of a public authority could pass for etcd, and an etcd that asks "
			       "for no certificate obeys anybody: give etcd: { ca, cert, key } "
			       "(`barline pki issue NAME --role controller` makes them), or say "
			       "insecure: true",
			       url, missing);
	return 0;
}

int bl_ctl_config_check(const struct bl_ctl_cfg *c, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	if (c->insecure)
		return 0;
	if (!*c->ca && !bl_session_is_local(c->listen))
		return bl_fail(err, EPERM,
			       "listen: %s is reached by other machines, and anybody there could "
			       "pass for a node: give tls: { ca, cert, key } (`barline pki` makes "
			       "the files), or say insecure: true",
			       c->listen);
	for (k = 0; k < c->netcd && !rc; k++)
		rc = check_etcd(c, c->etcd[k], err);
	return rc;
}

static void read_tls(struct bl_ctl_cfg *c, struct bl_yaml *y)
{
	static const char *const keys[] = { "ca", "cert", "key", "unnamed", NULL };
	yaml_node_t *map = bl_yaml_get(y, y->root, "tls");
	unsigned int i;

	bl_yaml_keys(y, map, keys);
	for (i = 0; i < 3; i++)
		bl_yaml_need(y, map, keys[i]);
	c->unnamed = bl_yaml_truth(y, map, "unnamed");
	bl_yaml_copy(y, map, "ca", c->ca, sizeof(c->ca));
	bl_yaml_copy(y, map, "cert", c->cert, sizeof(c->cert));
	bl_yaml_copy(y, map, "key", c->key, sizeof(c->key));
}

/* A time; 0: not given, which is the default. */
static uint32_t read_time(struct bl_yaml *y, const char *key, uint32_t least)
{
	uint32_t v = bl_yaml_u32(y, y->root, key);

	if (v && v < least)
		bl_yaml_refuse(y, y->root, key, "%s %u: at least %u", key, v, least);
	return v;
}

static void read_file(struct bl_ctl_cfg *c, struct bl_yaml *y)
{
	static const char *const keys[] = { "listen",     "advertise", "sqlite",    "etcd",
					    "tls",        "settle_us", "answer_ms", "grace_ms",
					    "silence_ms", "stuck_ms",  "nodes",     "insecure",
					    NULL };

	bl_yaml_keys(y, y->root, keys);
	bl_yaml_need(y, y->root, "listen");
	read_addr(y, "listen", c->listen, sizeof(c->listen));
	read_addr(y, "advertise", c->advertise, sizeof(c->advertise));
	bl_yaml_copy(y, y->root, "sqlite", c->sqlite, sizeof(c->sqlite));
	read_etcd(c, y);
	if (!*c->sqlite == !c->netcd)
		bl_yaml_refuse(y, NULL, NULL,
			       "one store: sqlite: FILE (one controller), or etcd: { endpoints: "
			       "[...] } (several)");
	read_tls(c, y);
	read_nodes(c, y);
	c->insecure = bl_yaml_truth(y, y->root, "insecure");
	c->settle_us = bl_yaml_u32(y, y->root, "settle_us");
	if (c->settle_us > 1000000)
		bl_yaml_refuse(y, y->root, "settle_us", "settle_us %u: at most 1000000",
			       c->settle_us);
	c->answer_ms = read_time(y, "answer_ms", 10);
	c->grace_ms = read_time(y, "grace_ms", 0);
	c->stuck_ms = read_time(y, "stuck_ms", 100);
	c->silence_ms = read_time(y, "silence_ms", 100);
}

int bl_ctl_config_load(struct bl_ctl_cfg *c, const char *path, struct bl_err *err)
{
	struct bl_yaml y;

	int rc;

	memset(c, 0, sizeof(*c));
	if (!bl_yaml_open(&y, path, err))
		read_file(c, &y);
	rc = bl_yaml_close(&y);
	if (rc)
		bl_ctl_config_free(c);
	return rc;
}
