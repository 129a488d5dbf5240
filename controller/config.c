// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config.h. The file is read as strictly as a node's file (base/yaml.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "controller/config.h"
#include "proto/session.h"

struct file_tls {
	char *ca, *cert, *key;
};

struct file_etcd {
	char **endpoints;
	unsigned int endpoints_count;
	char *prefix, *ca, *cert, *key;
	uint32_t ttl_s;
};

struct file {
	char *listen, *advertise, *sqlite;
	struct file_etcd *etcd;
	struct file_tls *tls;
	uint32_t settle_us, answer_ms, grace_ms, silence_ms, stuck_ms;
};

#define OPT CYAML_FLAG_OPTIONAL
#define TEXT(s, name, flags, max) \
	CYAML_FIELD_STRING_PTR(#name, (flags) | CYAML_FLAG_POINTER, struct s, name, 1, max)

static const cyaml_schema_value_t url = { CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 255) };
static const cyaml_schema_field_t tls_fields[] = { TEXT(file_tls, ca, 0, 255),
						   TEXT(file_tls, cert, 0, 255),
						   TEXT(file_tls, key, 0, 255), CYAML_FIELD_END };
static const cyaml_schema_field_t etcd_fields[] = {
	CYAML_FIELD_SEQUENCE("endpoints", CYAML_FLAG_POINTER, struct file_etcd, endpoints, &url, 1,
			     BL_CTL_ETCD_MAX),
	TEXT(file_etcd, prefix, OPT, 63),
	TEXT(file_etcd, ca, OPT, 255),
	TEXT(file_etcd, cert, OPT, 255),
	TEXT(file_etcd, key, OPT, 255),
	CYAML_FIELD_UINT("ttl_s", OPT, struct file_etcd, ttl_s),
	CYAML_FIELD_END
};
static const cyaml_schema_field_t fields[] = {
	TEXT(file, listen, 0, 63),
	TEXT(file, advertise, OPT, 63),
	TEXT(file, sqlite, OPT, 255),
	CYAML_FIELD_MAPPING_PTR("etcd", OPT | CYAML_FLAG_POINTER, struct file, etcd, etcd_fields),
	CYAML_FIELD_MAPPING_PTR("tls", OPT | CYAML_FLAG_POINTER, struct file, tls, tls_fields),
	CYAML_FIELD_UINT("settle_us", OPT, struct file, settle_us),
	CYAML_FIELD_UINT("answer_ms", OPT, struct file, answer_ms),
	CYAML_FIELD_UINT("grace_ms", OPT, struct file, grace_ms),
	CYAML_FIELD_UINT("silence_ms", OPT, struct file, silence_ms),
	CYAML_FIELD_UINT("stuck_ms", OPT, struct file, stuck_ms),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t top = { CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file,
							      fields) };

static void copy_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

static int validate_file(const struct file *f, const char *path, struct bl_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len;
	unsigned int i;

	if (bl_session_addr(f->listen, &sa, &len))
		return bl_yaml_bad(path, "listen", 0, err,
				   "%s is no address, as 10.0.0.1:%d, or with the quotes "
				   "\"[fd00::1]:%d\"",
				   f->listen, BL_SESSION_PORT, BL_SESSION_PORT);
	if (f->advertise && bl_session_addr(f->advertise, &sa, &len))
		return bl_yaml_bad(path, "advertise", 0, err,
				   "%s is no address, as 10.0.0.1:%d, or with the quotes "
				   "\"[fd00::1]:%d\"",
				   f->advertise, BL_SESSION_PORT, BL_SESSION_PORT);
	if (!f->sqlite == !f->etcd)
		return bl_fail(err, EINVAL,
			       "%s:1: one store: sqlite: FILE (one controller), or etcd: { "
			       "endpoints: [...] } (several)",
			       path);
	for (i = 0; f->etcd && i < f->etcd->endpoints_count; i++)
		if (strncmp(f->etcd->endpoints[i], "http://", 7) &&
		    strncmp(f->etcd->endpoints[i], "https://", 8))
			return bl_yaml_bad(path, "endpoints", 0, err,
					   "%s is no URL, as http://10.0.0.1:2379",
					   f->etcd->endpoints[i]);
	if (f->etcd && f->etcd->ttl_s && (f->etcd->ttl_s < 2 || f->etcd->ttl_s > 3600))
		return bl_yaml_bad(path, "ttl_s", 0, err, "ttl_s %u: 2 to 3600", f->etcd->ttl_s);
	if (f->settle_us > 1000000)
		return bl_yaml_bad(path, "settle_us", 0, err, "settle_us %u: at most 1000000",
				   f->settle_us);
	if (f->answer_ms && f->answer_ms < 10)
		return bl_yaml_bad(path, "answer_ms", 0, err, "answer_ms %u: at least 10",
				   f->answer_ms);
	if (f->stuck_ms && f->stuck_ms < 100)
		return bl_yaml_bad(path, "stuck_ms", 0, err, "stuck_ms %u: at least 100",
				   f->stuck_ms);
	if (f->silence_ms && f->silence_ms < 100)
		return bl_yaml_bad(path, "silence_ms", 0, err, "silence_ms %u: at least 100",
				   f->silence_ms);
	return 0;
}

int bl_ctl_config_load(struct bl_ctl_cfg *c, const char *path, struct bl_err *err)
{
	struct file *f = NULL;
	unsigned int i;
	int rc;

	memset(c, 0, sizeof(*c));
	rc = bl_yaml_load(path, &top, (void **)&f, err);
	if (rc)
		return rc;
	rc = validate_file(f, path, err);
	copy_text(c->listen, sizeof(c->listen), f->listen);
	copy_text(c->advertise, sizeof(c->advertise), f->advertise);
	copy_text(c->sqlite, sizeof(c->sqlite), f->sqlite);
	if (f->tls) {
		copy_text(c->ca, sizeof(c->ca), f->tls->ca);
		copy_text(c->cert, sizeof(c->cert), f->tls->cert);
		copy_text(c->key, sizeof(c->key), f->tls->key);
	}
	if (f->etcd) {
		c->netcd = f->etcd->endpoints_count;
		for (i = 0; i < c->netcd; i++)
			copy_text(c->etcd[i], sizeof(c->etcd[i]), f->etcd->endpoints[i]);
		copy_text(c->prefix, sizeof(c->prefix), f->etcd->prefix);
		copy_text(c->etcd_ca, sizeof(c->etcd_ca), f->etcd->ca);
		copy_text(c->etcd_cert, sizeof(c->etcd_cert), f->etcd->cert);
		copy_text(c->etcd_key, sizeof(c->etcd_key), f->etcd->key);
		c->ttl_s = f->etcd->ttl_s;
	}
	c->settle_us = f->settle_us;
	c->answer_ms = f->answer_ms;
	c->grace_ms = f->grace_ms;
	c->silence_ms = f->silence_ms;
	c->stuck_ms = f->stuck_ms;
	bl_yaml_free(&top, f);
	return rc;
}
