// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config_admission.h. The keys are those of the table in loader/admission/options.c. */
#include "loader/config_admission.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/rate.h"
#include "loader/admission/admission.h"
#include "loader/admission/options.h"

#define COUNT(v)      (sizeof(v) / sizeof((v)[0]))
#define RATE_TEXT_MAX 31

static const char *const class_names[] = {
#define NAME(sym, name) [BL_CL_##sym] = name,
	BL_CLASSES(NAME)
#undef NAME
};

static void read_rate(struct bl_yaml *y, yaml_node_t *map, const char *key, uint64_t *bps)
{
	const char *text = bl_yaml_text(y, map, key, RATE_TEXT_MAX);

	if (text && !bl_rate_parse(text, bps))
		bl_yaml_refuse(y, map, key,
			       "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit", text);
}

static void read_limits(struct bl_yaml *y, yaml_node_t *map, struct bl_admission_cfg *a)
{
	static const char *const keys[] = { "class", "frames", "bytes", "mark_bytes", NULL };
	bool seen[BL_CL_COUNT] = {};
	yaml_node_t *list, *item;
	unsigned int k, n;
	int class;

	n = bl_yaml_list(y, map, "limits", BL_CL_COUNT, &list);
	for (k = 0; k < n && !y->rc; k++) {
		item = bl_yaml_item(y, list, k);
		bl_yaml_keys(y, item, keys);
		bl_yaml_need(y, item, "class");
		class = bl_yaml_name(y, item, "class", class_names, COUNT(class_names));
		if (class < 0)
			return;
		if (seen[class])
			bl_yaml_refuse(y, item, "class", "class %s is listed twice under limits",
				       class_names[class]);
		seen[class] = true;
		a->limit[class] =
			(struct bl_limit_cfg){ .frames = bl_yaml_u32(y, item, "frames"),
					       .bytes = bl_yaml_u32(y, item, "bytes"),
					       .mark_bytes = bl_yaml_u32(y, item, "mark_bytes") };
	}
}

static void read_top_rule(struct bl_yaml *y, yaml_node_t *item, struct bl_top_rule *r)
{
	static const char *const keys[] = { "port",   "protocol", "bytes", "deadline_us",
					    "coflow", "resend",   NULL };
	static const char *const protocols[] = { "any", "tcp", "udp" };
	static const uint8_t protos[] = { 0, IPPROTO_TCP, IPPROTO_UDP };
	const char *protocol;
	int64_t bytes = 0;
	unsigned int k;

	bl_yaml_keys(y, item, keys);
	bl_yaml_need(y, item, "port");
	r->port = bl_yaml_u16(y, item, "port");
	if (!y->rc && !r->port)
		bl_yaml_refuse(y, item, "port",
			       "port 0: a rule is for flows to or from one port, 1 to 65535");
	protocol = bl_yaml_text(y, item, "protocol", 8);
	for (k = 0; protocol && k < COUNT(protocols) && strcmp(protocols[k], protocol); k++)
		;
	if (k == COUNT(protocols))
		bl_yaml_refuse(y, item, "protocol", "protocol \"%s\": tcp, udp or any", protocol);
	else
		r->proto = protocol ? protos[k] : 0;
	bl_yaml_number(y, item, "bytes", 0, INT64_MAX, &bytes);
	r->bytes = (uint64_t)bytes;
	r->deadline_us = bl_yaml_u32(y, item, "deadline_us");
	r->coflow = bl_yaml_u32(y, item, "coflow");
	r->flags = bl_yaml_truth(y, item, "resend") ? BL_TOP_F_RESEND : 0;
}

static void read_top(struct bl_yaml *y, yaml_node_t *map, struct bl_top_opts *o)
{
	const char *keys[BL_TOP_O_COUNT + 2] = { [BL_TOP_O_COUNT] = "rules" };
	yaml_node_t *list;
	struct bl_err why;
	unsigned int k;
	uint32_t v;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		keys[k] = bl_top_option_key(k);
	bl_yaml_keys(y, map, keys);
	for (k = 0; k < BL_TOP_O_COUNT; k++) {
		const char *text = bl_yaml_text(y, map, keys[k], 31);

		if (!text)
			continue;
		if (bl_top_option_parse(k, text, &v, &why))
			bl_yaml_refuse(y, map, keys[k], "%s", why.text);
		else
			o->v[k] = v + 1;
	}
	o->nrules = bl_yaml_list(y, map, "rules", BL_TOP_RULES, &list);
	for (k = 0; k < o->nrules && !y->rc; k++)
		read_top_rule(y, bl_yaml_item(y, list, k), &o->rules[k]);
}

/*
 * The value of one option of `admission:` into its member. Zero stands for the default, also where
 * the option is of the other role.
 */
static void read_option(struct bl_yaml *y, yaml_node_t *map, const struct bl_option *o,
			struct bl_admission_cfg *a)
{
	uint64_t rate = 0;
	int64_t v = 0;
	int name;

	switch (o->kind) {
	case BL_OPTION_NUMBER:
		if (bl_yaml_number(y, map, o->key, o->add ? INT32_MIN : 0, UINT32_MAX, &v) &&
		    o->add && (v < (int64_t)o->least || v > (int64_t)o->greatest))
			bl_yaml_refuse(y, map, o->key, "CPU %lld: %llu to %llu", (long long)v,
				       (unsigned long long)o->least,
				       (unsigned long long)o->greatest);
		else if (bl_yaml_get(y, map, o->key))
			bl_option_store(o, a, (uint64_t)v);
		break;
	case BL_OPTION_TRUTH:
		bl_option_store(o, a, bl_yaml_truth(y, map, o->key));
		break;
	case BL_OPTION_NAME:
		name = bl_yaml_name(y, map, o->key, o->names, o->greatest + 1);
		if (name >= 0)
			bl_option_store(o, a, (uint64_t)name);
		break;
	case BL_OPTION_RATE:
		read_rate(y, map, o->key, &rate);
		bl_option_store(o, a, rate);
		break;
	case BL_OPTION_TEXT:
		bl_yaml_copy(y, map, o->key, (char *)a + o->at, o->size);
		break;
	case BL_OPTION_BLOCK:
		break;
	}
}

/* All options of this role, and none of the other. */
static void read_options(struct bl_yaml *y, yaml_node_t *map, enum bl_role role,
			 struct bl_admission_cfg *a)
{
	const unsigned int own = role == BL_ROLE_HOST ? BL_OPTION_HOSTS : BL_OPTION_SWITCHES;
	const char *keys[BL_AO_TOP + 1] = {};
	struct bl_admission_cfg other = {};
	unsigned int k;

	for (k = 0; k < BL_AO_TOP; k++)
		keys[k] = bl_option(k)->key;
	bl_yaml_keys(y, map, keys);
	bl_yaml_need(y, map, "policy");
	for (k = 0; k < BL_AO_TOP && !y->rc; k++) {
		const struct bl_option *o = bl_option(k);
		bool given = bl_yaml_get(y, map, o->key);

		if (o->roles & own) {
			if (given)
				read_option(y, map, o, a);
			continue;
		}
		memset(&other, 0, sizeof(other));
		read_option(y, map, o, &other);
		if (given && (o->kind == BL_OPTION_TEXT || o->kind == BL_OPTION_BLOCK ||
			      bl_option_load(o, &other)))
			bl_yaml_refuse(y, map, o->key, "admission: %s is a key of %s", o->key,
				       role == BL_ROLE_HOST ? "switches" : "hosts");
	}
	if (bl_yaml_get(y, map, "limits"))
		read_limits(y, map, a);
	if (bl_yaml_get(y, map, "top"))
		read_top(y, bl_yaml_get(y, map, "top"), &a->top);
}

/* Rates of ports, and whether they lead out of the rack: these keys need admission. */
static void read_port_admission(struct bl_yaml *y, struct bl_node_cfg *cfg, bool on)
{
	yaml_node_t *list, *item;
	unsigned int k, n = bl_yaml_list(y, y->root, "ports", BL_SW_PORTS_MAX, &list);

	for (k = 0; k < n && !y->rc; k++) {
		struct bl_port_cfg *p = &cfg->ports[k];

		item = bl_yaml_item(y, list, k);
		read_rate(y, item, "rate", &p->rate_bps);
		p->outside = bl_yaml_truth(y, item, "outside");
		if (!on && (p->rate_bps || p->outside))
			bl_yaml_refuse(y, item, p->rate_bps ? "rate" : "outside",
				       "needs admission: without it nothing is metered and "
				       "nothing reserved");
	}
}

void bl_config_admission(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	yaml_node_t *map = bl_yaml_get(y, y->root, "admission");
	struct bl_node_cfg whole;
	struct bl_err why;

	read_port_admission(y, cfg, map != NULL);
	if (!map)
		return;
	read_options(y, map, cfg->role, &cfg->admission);
	if (y->rc)
		return;
	cfg->admission.on = true;
	/* what goes beyond one key */
	whole = *cfg;
	bl_admission_defaults(&whole);
	if (bl_admission_check(&whole, &why))
		bl_yaml_refuse(y, y->root, "admission", "%s", why.text);
}
