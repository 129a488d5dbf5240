// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config.h. The file is read as strictly as a node's file (base/yaml.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "controller/config.h"
#include "proto/session.h"

#define FILE_TEXT_MAX 255

/* Copies the text of @key, from 1 to @size - 1 bytes; "" if it is not given. */
static void read_text(struct bl_yaml *y, yaml_node_t *map, const char *key, char *to, size_t size)
{
	const char *text = bl_yaml_text(y, map, key, size - 1);

	snprintf(to, size, "%s", text ? text : "");
}

static void read_addr(struct bl_yaml *y, const char *key, char *to, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t len;

	read_text(y, y->root, key, to, size);
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
	read_text(y, map, "prefix", c->prefix, sizeof(c->prefix));
	read_text(y, map, "ca", c->etcd_ca, sizeof(c->etcd_ca));
	read_text(y, map, "cert", c->etcd_cert, sizeof(c->etcd_cert));
	read_text(y, map, "key", c->etcd_key, sizeof(c->etcd_key));
	c->ttl_s = bl_yaml_u32(y, map, "ttl_s");
	if (c->ttl_s && (c->ttl_s < 2 || c->ttl_s > 3600))
		bl_yaml_refuse(y, map, "ttl_s", "ttl_s %u: 2 to 3600", c->ttl_s);
}

static void read_tls(struct bl_ctl_cfg *c, struct bl_yaml *y)
{
	static const char *const keys[] = { "ca", "cert", "key", NULL };
	yaml_node_t *map = bl_yaml_get(y, y->root, "tls");
	unsigned int i;

	bl_yaml_keys(y, map, keys);
	for (i = 0; keys[i]; i++)
		bl_yaml_need(y, map, keys[i]);
	read_text(y, map, "ca", c->ca, sizeof(c->ca));
	read_text(y, map, "cert", c->cert, sizeof(c->cert));
	read_text(y, map, "key", c->key, sizeof(c->key));
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
					    "silence_ms", "stuck_ms",  NULL };

	bl_yaml_keys(y, y->root, keys);
	bl_yaml_need(y, y->root, "listen");
	read_addr(y, "listen", c->listen, sizeof(c->listen));
	read_addr(y, "advertise", c->advertise, sizeof(c->advertise));
	read_text(y, y->root, "sqlite", c->sqlite, sizeof(c->sqlite));
	read_etcd(c, y);
	if (!*c->sqlite == !c->netcd)
		bl_yaml_refuse(y, NULL, NULL,
			       "one store: sqlite: FILE (one controller), or etcd: { endpoints: "
			       "[...] } (several)");
	read_tls(c, y);
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

	memset(c, 0, sizeof(*c));
	if (!bl_yaml_open(&y, path, err))
		read_file(c, &y);
	return bl_yaml_close(&y);
}
