// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's settings: from configuration and flags to what the programs read (maps/top_host_abi.h), at
 * start and while the host runs.
 *
 * Example: 10 Gbit/s and a headroom of 5 %: a token and its data, 1622 bytes, take 1297.6 ns; a
 * slot is 1366 ns. Six levels and a longest flow of 10000 frames: class 1 begins at 5 frames
 * (10000^(1/6) = 4.64), class 2 at 22, then 100, 465 and 2155. T with base_us 10 and 2 hops: 10 us
 * + 2 x 8 x 1366 ns = 31.9 us.
 */
#include "loader/admission/top_host.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/rate.h"
#include "base/time.h"
#include "base/yaml.h"
#include "core/queue/queue_core.h"
#include "core/top/top_core.h"
#include "loader/admission/admission_priv.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"

#define W_MAX_PERMILLE 500 /* xpass.cc:600, and the paper's */
#define HOP_TOKENS     8

struct option {
	const char *key, *text;
	uint32_t least, most, dflt;
};
static const struct option options[BL_TOP_O_COUNT] = {
#define OPTION(sym, key, flag, least, most, dflt, text) \
	[BL_TOP_O_##sym] = { key, text, least, most, dflt },
	BL_TOP_OPTIONS(OPTION)
#undef OPTION
};
static const char *const laws[] = {
#define NAME(sym, name, text) [BL_TOP_LAW_##sym] = name,
	BL_TOP_LAWS(NAME)
#undef NAME
};
static const char *const objectives[] = {
#define NAME(sym, name, text) [BL_TOP_BY_##sym] = name,
	BL_TOP_OBJECTIVES(NAME)
#undef NAME
};

/* ---- one option ---- */

const char *bl_top_option_key(unsigned int option)
{
	return option < BL_TOP_O_COUNT ? options[option].key : "?";
}

/* NULL: it is a number. */
static const char *const *names_of(unsigned int option)
{
	return option == BL_TOP_O_LAW ? laws : option == BL_TOP_O_OBJECTIVE ? objectives : NULL;
}

const char *bl_top_option_value(unsigned int option, uint32_t value, char *buf, size_t size)
{
	const char *const *names = names_of(option);

	if (names)
		snprintf(buf, size, "%s", value <= options[option].most ? names[value] : "?");
	else
		snprintf(buf, size, "%u", value);
	return buf;
}

int bl_top_option_parse(unsigned int option, const char *text, uint32_t *value, struct bl_err *err)
{
	const struct option *o = &options[option];
	const char *const *names = names_of(option);
	char *end, list[128] = "";
	uint32_t k;
	long v;

	for (k = 0; names && k <= o->most; k++) {
		if (!strcmp(names[k], text)) {
			*value = k;
			return 0;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", k ? ", " : "",
			 names[k]);
	}
	if (names)
		return bl_fail(err, EINVAL, "%s \"%s\": there is %s", o->key, text, list);
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < (long)o->least || v > (long)o->most)
		return bl_fail(err, EINVAL, "%s \"%s\" is no number from %u to %u", o->key, text,
			       o->least, o->most);
	*value = (uint32_t)v;
	return 0;
}

/* ---- all of them ---- */

void bl_top_defaults(struct bl_top_opts *o)
{
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (!o->v[k])
			o->v[k] = options[k].dflt + 1;
}

int bl_top_check(const struct bl_top_opts *o, struct bl_err *err)
{
	unsigned int k, j;
	uint32_t last;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (o->v[k] && (o->v[k] - 1 < options[k].least || o->v[k] - 1 > options[k].most))
			return bl_fail(err, EINVAL, "%s %u: from %u to %u", options[k].key,
				       o->v[k] - 1, options[k].least, options[k].most);
	if (o->v[BL_TOP_O_W_MIN] > o->v[BL_TOP_O_W_INIT])
		return bl_fail(err, EINVAL, "w_min_permille %u is above w_init_permille %u",
			       o->v[BL_TOP_O_W_MIN] - 1, o->v[BL_TOP_O_W_INIT] - 1);
	if (o->v[BL_TOP_O_DEAD] && o->v[BL_TOP_O_SYNC] &&
	    o->v[BL_TOP_O_DEAD] - 1 <= 4 * (o->v[BL_TOP_O_SYNC] - 1))
		return bl_fail(err, EINVAL,
			       "dead_us %u: a sender that waits repeats its SYNC every %u us (4 "
			       "sync_us), and would be taken for dead",
			       o->v[BL_TOP_O_DEAD] - 1, 4 * (o->v[BL_TOP_O_SYNC] - 1));
	for (k = BL_TOP_O_CLASS1, last = 0; k <= BL_TOP_O_CLASS5; k++) {
		if (o->v[k] < 2)
			continue;
		if (o->v[k] - 1 <= last)
			return bl_fail(err, EINVAL, "%s %u: not above the threshold before it, %u",
				       options[k].key, o->v[k] - 1, last);
		last = o->v[k] - 1;
	}
	for (k = 1; k < o->nrules; k++)
		for (j = 0; j < k; j++)
			if (o->rules[j].port == o->rules[k].port &&
			    (!o->rules[j].proto || o->rules[j].proto == o->rules[k].proto))
				return bl_fail(err, EINVAL,
					       "rules: port %u has two that fit the same flows; "
					       "the first one counts, so the second would never be "
					       "used",
					       o->rules[k].port);
	return 0;
}

uint64_t bl_top_limit(unsigned int cls, unsigned int levels, double a, double b, double longest)
{
	double x;

	if (cls >= levels)
		return ~0ULL;
	/*
	 * a hair less than the power: 8^(1/3) is 2 and not 2.0000000000000004, from which 3 would
	 * be made
	 */
	x = ceil((pow(longest, (double)cls / levels) * (1 - 1e-12) - b) / a);
	return x > 0 ? (uint64_t)x : 0;
}

void bl_top_limits(const struct bl_top_opts *given, uint64_t limit[BL_TOP_CLASSES - 1])
{
	struct bl_top_opts o = *given;
	uint32_t v[BL_TOP_O_COUNT], k;

	bl_top_defaults(&o);
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		v[k] = o.v[k] - 1;
	for (k = 1; k < BL_TOP_CLASSES; k++) {
		limit[k - 1] = bl_top_limit(k, v[BL_TOP_O_LEVELS], v[BL_TOP_O_A] / 1000.0,
					    v[BL_TOP_O_B] / 1000.0, v[BL_TOP_O_LONGEST]);
		if (v[BL_TOP_O_CLASS1 + k - 1] && k < v[BL_TOP_O_LEVELS])
			limit[k - 1] = v[BL_TOP_O_CLASS1 + k - 1];
	}
}

static uint32_t permille(uint32_t v)
{
	return (uint32_t)((uint64_t)v * BL_TOP_ONE / 1000);
}

void bl_top_make(const struct bl_top_opts *o, uint32_t ns_q20, struct bl_top_cfg *c)
{
	uint64_t limit[BL_TOP_CLASSES - 1];
	uint32_t v[BL_TOP_O_COUNT];
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		v[k] = o->v[k] - 1;
	memset(c, 0, sizeof(*c));
	memcpy(c->opt, v, sizeof(v));
	c->law = v[BL_TOP_O_LAW];
	c->objective = v[BL_TOP_O_OBJECTIVE];
	c->levels = v[BL_TOP_O_LEVELS];
	c->slot_ns = (uint32_t)(((uint64_t)ns_q20 * BL_TOP_WIRE_BYTES * 100 /
					 (100 - v[BL_TOP_O_HEADROOM]) +
				 (1 << 20) - 1) >>
				20);
	c->alpha = permille(v[BL_TOP_O_ALPHA]);
	c->w_init = permille(v[BL_TOP_O_W_INIT]);
	c->w_min = permille(v[BL_TOP_O_W_MIN]);
	c->w_max = permille(W_MAX_PERMILLE);
	c->jitter = permille(v[BL_TOP_O_JITTER] * 10);
	c->outside_tries = v[BL_TOP_O_OUTSIDE];
	c->unscheduled = v[BL_TOP_O_UNSCHED];
	c->short_frames = v[BL_TOP_O_SHORT];
	bl_top_limits(o, limit);
	for (k = 0; k < BL_TOP_CLASSES - 1; k++)
		c->limit[k] = limit[k];
	c->learn = v[BL_TOP_O_LEARN] && c->levels > 1 && c->objective != BL_TOP_BY_DEADLINE &&
		   c->objective != BL_TOP_BY_COFLOW;
	for (k = BL_TOP_O_CLASS1; k <= BL_TOP_O_CLASS5; k++)
		c->learn = v[k] ? 0 : c->learn; /* they are known */
	c->expiry_ns = v[BL_TOP_O_EXPIRY] * 1000ULL;
	if (!c->expiry_ns)
		c->expiry_ns = v[BL_TOP_O_BASE] * 1000ULL +
			       (uint64_t)v[BL_TOP_O_HOPS] * HOP_TOKENS * c->slot_ns;
	c->ramp = BL_TOP_SHORT_RAMP;
	if (c->slot_ns && 2000ULL * v[BL_TOP_O_BASE] / c->slot_ns < BL_TOP_SHORT_RAMP)
		c->ramp = (uint32_t)(2000ULL * v[BL_TOP_O_BASE] / c->slot_ns);
	c->ramp = c->ramp ? c->ramp : 1;
	c->sync_ns = v[BL_TOP_O_SYNC] * 1000ULL;
	c->idle_ns = v[BL_TOP_O_IDLE] * 1000ULL;
	c->dead_ns = v[BL_TOP_O_DEAD] * 1000ULL;
	for (k = 0; k < o->nrules && k < BL_TOP_RULES; k++)
		c->rules[k] = o->rules[k];
}

/* ---- maps ---- */

int bl_top_fill(struct bl_node *n, struct bpf_object *obj, bool fresh, struct bl_err *err)
{
	struct bl_top_page page = { .at = BL_DUE_NEVER };
	struct bpf_map *cfg, *pages;
	struct bl_top_cfg c;
	int rc;

	rc = bl_map_find(obj, BL_MAP_TOP_CFG, sizeof(c), &cfg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_TOP_PAGE, sizeof(page), &pages, err);
	if (rc)
		return rc;
	bl_top_make(&n->cfg.admission.top, bl_rate_ns_q20(n->cfg.admission.rate_bps), &c);
	c.keep_max = n->cfg.admission.slots / BL_TOP_KEEP_PART;
	rc = bl_map_set(bpf_map__fd(cfg), 0, &c, BL_MAP_TOP_CFG, err);
	if (getrandom(&page.random, sizeof(page.random), 0) != sizeof(page.random) || !page.random)
		page.random = (uint32_t)bl_mono_ns() | 1;
	if (!rc && fresh)
		rc = bl_map_set(bpf_map__fd(pages), 0, &page, BL_MAP_TOP_PAGE, err);
	return rc;
}

/* Flows whose time was never, since the policy was another, or whose slot was longer. */
static void look_again(const struct bl_node_ref *ref)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (sizeof(struct bl_top_page) + page - 1) / page * page;
	struct bl_top_page *p;
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_TOP_PAGE, sizeof(*p), true, &err);

	if (fd < 0)
		return;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	bl_time_lower(&p->at, BL_DUE_NEVER, bl_mono_ns());
	munmap(p, size);
}

int bl_top_change(const struct bl_node_ref *ref, const uint32_t *opt, uint32_t ns_q20, char *said,
		  size_t size, struct bl_err *err)
{
	struct bl_top_opts o = {};
	struct bl_top_cfg old, now;
	uint32_t zero = 0;
	unsigned int k;
	int fd, rc = 0;

	fd = bl_map_open(ref, BL_MAP_TOP_CFG, sizeof(old), true, err);
	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &old))
		rc = bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_TOP_CFG,
			     strerror(errno));
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		o.v[k] = opt[k] ? opt[k] : old.opt[k] + 1;
	for (k = 0; k < BL_TOP_RULES && old.rules[k].port; k++)
		o.rules[o.nrules++] = old.rules[k];
	if (!rc)
		rc = bl_top_check(&o, err);
	if (!rc) {
		bl_top_make(&o, ns_q20, &now);
		now.keep_max = old.keep_max;
		rc = bl_map_set(fd, 0, &now, BL_MAP_TOP_CFG, err);
	}
	close(fd);
	if (rc)
		return rc;
	look_again(ref);
	for (k = 0; k < BL_TOP_O_COUNT; k++) {
		char a[32], b[32];
		size_t at = strlen(said);

		if (old.opt[k] != now.opt[k])
			snprintf(said + at, size - at, "%s%s: %s -> %s", at ? ", " : "",
				 options[k].key, bl_top_option_value(k, old.opt[k], a, sizeof(a)),
				 bl_top_option_value(k, now.opt[k], b, sizeof(b)));
	}
	return 0;
}

/* ---- files ---- */

static const cyaml_schema_field_t rule_fields[] = {
	CYAML_FIELD_UINT("port", CYAML_FLAG_DEFAULT, struct bl_top_file_rule, port),
	CYAML_FIELD_STRING_PTR("protocol", CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER,
			       struct bl_top_file_rule, protocol, 1, 8),
	CYAML_FIELD_UINT("bytes", CYAML_FLAG_OPTIONAL, struct bl_top_file_rule, bytes),
	CYAML_FIELD_UINT("deadline_us", CYAML_FLAG_OPTIONAL, struct bl_top_file_rule, deadline_us),
	CYAML_FIELD_UINT("coflow", CYAML_FLAG_OPTIONAL, struct bl_top_file_rule, coflow),
	CYAML_FIELD_BOOL("resend", CYAML_FLAG_OPTIONAL, struct bl_top_file_rule, resend),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t rule_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct bl_top_file_rule, rule_fields) };

const cyaml_schema_field_t bl_top_fields[] = {
#define FIELD(sym, key, flag, least, most, dflt, text)                                            \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER, struct bl_top_file, \
			       sym, 1, 31),
	BL_TOP_OPTIONS(FIELD)
#undef FIELD
		CYAML_FIELD_SEQUENCE("rules", CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER,
				     struct bl_top_file, rules, &rule_value, 1, BL_TOP_RULES),
	CYAML_FIELD_END
};

int bl_top_take(struct bl_top_opts *o, const struct bl_top_file *f, const char *path,
		struct bl_err *err)
{
	const char *const text[BL_TOP_O_COUNT] = {
#define TEXT(sym, key, flag, least, most, dflt, about) [BL_TOP_O_##sym] = f->sym,
		BL_TOP_OPTIONS(TEXT)
#undef TEXT
	};
	struct bl_err why;
	uint32_t v;
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++) {
		if (!text[k])
			continue;
		if (bl_top_option_parse(k, text[k], &v, &why))
			return bl_yaml_bad(path, options[k].key, 0, err, "%s", why.text);
		o->v[k] = v + 1;
	}
	for (k = 0; k < f->rules_count; k++) {
		const struct bl_top_file_rule *r = &f->rules[k];
		const char *p = r->protocol ? r->protocol : "any";

		if (!r->port)
			return bl_yaml_bad(path, "port", k, err,
					   "port 0: a rule is for flows to or from one port, 1 to "
					   "65535");
		if (strcmp(p, "tcp") && strcmp(p, "udp") && strcmp(p, "any"))
			return bl_yaml_bad(path, "protocol", k, err,
					   "protocol \"%s\": tcp, udp or any", p);
		o->rules[k] = (struct bl_top_rule){ .bytes = r->bytes,
						    .deadline_us = r->deadline_us,
						    .coflow = r->coflow,
						    .port = r->port,
						    .flags = r->resend ? BL_TOP_F_RESEND : 0,
						    .proto = *p == 't'   ? IPPROTO_TCP
							     : *p == 'u' ? IPPROTO_UDP
									 : 0 };
	}
	o->nrules = f->rules_count;
	return 0;
}
