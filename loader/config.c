// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A node's YAML file. Strict: an unknown key, a missing one, a value of the wrong kind or out of
 *range is an error with file and line.
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
 *
 * libcyaml checks the shape and tells the line in its log; what it cannot check is checked here,
 *and the line is found again in the text.
 */
#include "loader/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rate.h"
#include "base/yaml.h"
#include "loader/admission/admission.h"
#include "loader/admission/top_host.h"
#include "loader/load/pin.h"
#include "loader/load/prio.h"
#include "loader/node_cfg.h"
#include "maps/top_token_abi.h"
#include "proto/session.h"

struct file_port {
	char *interface;
	uint8_t role;
	int *home_cpu;
	char *rate;
	bool outside;
};

struct file_limit {
	uint8_t class;
	uint32_t frames, bytes, mark_bytes;
};

/* The names say hold_ on hosts and queue_ on switches. */
struct file_admission {
	uint8_t policy;
	char *rate;
	uint32_t slots;
	uint32_t hold_frames, hold_bytes, queue_frames, queue_bytes, mark_bytes;
	struct file_limit *limits;
	unsigned int limits_count;
	uint8_t pacer;
	int *cpu;
	bool pacer_beacons;
	char *bl0, *bl0d, *fastpass;
	uint32_t k, t_slots, t_us, recent_us, retry_us, coming_us, late_us;
	uint8_t allocator;
	uint32_t refuse_us, far_us, lapse_us, outside_percent, path_div;
	struct bl_top_file *top;
	uint8_t tokens;
	bool data_first, unscheduled, spray;
	uint32_t token_frames, expiry_tokens, headroom_percent;
	char *link_rate;
};

struct file_tls {
	char *ca, *cert, *key;
};

struct file_fdb {
	char *mac;
	char *port;
};

struct file {
	uint8_t *role;
	char *name;
	char *interface;
	uint8_t mode;
	uint32_t node_id;
	uint16_t port_base, port_count;
	int *caretaker_ms;
	uint32_t beacon_us, dead_after_us, clock_bound_us, clock_void_after_ms, process_limit_ms;
	bool replace, thread_napi, no_ahead;
	enum bl_realtime realtime;
	uint8_t forward;
	int *cpus;
	unsigned int cpus_count;
	struct file_port *ports;
	unsigned int ports_count;
	struct file_fdb *fdb;
	unsigned int fdb_count;
	struct file_admission *admission;
	char **controllers;
	unsigned int controllers_count;
	struct file_tls *tls;
};

static const cyaml_strval_t roles[] = { { "switch", BL_ROLE_SWITCH }, { "host", BL_ROLE_HOST } };
static const cyaml_strval_t modes[] = { { "native", BL_XDP_NATIVE },
					{ "generic", BL_XDP_GENERIC } };
static const cyaml_strval_t forwards[] = { { "l3", BL_FWD_L3 }, { "l2", BL_FWD_L2 } };
static const cyaml_strval_t realtimes[] = { { "auto", BL_RT_AUTO },
					    { "always", BL_RT_ALWAYS },
					    { "never", BL_RT_NEVER } };
static const cyaml_strval_t port_roles[] = { { "host", BL_PORT_HOST },
					     { "up", BL_PORT_UP },
					     { "down", BL_PORT_DOWN } };
#define POLICY(sym, name) { name, BL_POLICY_##sym },
static const cyaml_strval_t policies[] = { BL_POLICIES(POLICY) };
#undef POLICY
#define ALLOCATOR(sym, name) { name, BL_ALLOC_##sym },
static const cyaml_strval_t allocators[] = { BL_ALLOCATORS(ALLOCATOR) };
#undef ALLOCATOR
#define MODE(sym, name, text) { name, BL_TOKEN_##sym + 1 },
static const cyaml_strval_t token_modes[] = { BL_TOKEN_MODES(MODE) }; /* 0: not given */
#undef MODE
static const cyaml_strval_t truths[] = {
	{ "false", false }, { "true", true }, { "no", false }, { "yes", true }
};
static const cyaml_strval_t pacers[] = { { "auto", 0 }, { "spin", 1 } };
#define CLASS(sym, name) { name, BL_CL_##sym },
static const cyaml_strval_t classes[] = { BL_CLASSES(CLASS) };
#undef CLASS

#define OPT  (CYAML_FLAG_OPTIONAL)
#define ENUM (CYAML_FLAG_STRICT)

static const cyaml_schema_value_t cpu_value = { CYAML_VALUE_INT(CYAML_FLAG_DEFAULT, int) };

static const cyaml_schema_field_t port_fields[] = {
	CYAML_FIELD_STRING_PTR("interface", CYAML_FLAG_POINTER, struct file_port, interface, 1,
			       IFNAMSIZ - 1),
	CYAML_FIELD_ENUM("role", ENUM, struct file_port, role, port_roles,
			 CYAML_ARRAY_LEN(port_roles)),
	CYAML_FIELD_INT_PTR("home_cpu", OPT | CYAML_FLAG_POINTER, struct file_port, home_cpu),
	CYAML_FIELD_STRING_PTR("rate", OPT | CYAML_FLAG_POINTER, struct file_port, rate, 1, 31),
	CYAML_FIELD_BOOL("outside", OPT, struct file_port, outside),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t port_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct file_port, port_fields) };

static const cyaml_schema_field_t fdb_fields[] = {
	CYAML_FIELD_STRING_PTR("mac", CYAML_FLAG_POINTER, struct file_fdb, mac, 17, 17),
	CYAML_FIELD_STRING_PTR("port", CYAML_FLAG_POINTER, struct file_fdb, port, 1, IFNAMSIZ - 1),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t fdb_value = { CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT,
								    struct file_fdb, fdb_fields) };

static const cyaml_schema_field_t limit_fields[] = {
	CYAML_FIELD_ENUM("class", ENUM, struct file_limit, class, classes,
			 CYAML_ARRAY_LEN(classes)),
	CYAML_FIELD_UINT("frames", OPT, struct file_limit, frames),
	CYAML_FIELD_UINT("bytes", OPT, struct file_limit, bytes),
	CYAML_FIELD_UINT("mark_bytes", OPT, struct file_limit, mark_bytes), CYAML_FIELD_END
};
static const cyaml_schema_value_t limit_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct file_limit, limit_fields) };

#define NUMBER(name) CYAML_FIELD_UINT(#name, OPT, struct file_admission, name)
static const cyaml_schema_field_t admission_fields[] = {
	CYAML_FIELD_ENUM("policy", ENUM, struct file_admission, policy, policies,
			 CYAML_ARRAY_LEN(policies)),
	CYAML_FIELD_STRING_PTR("rate", OPT | CYAML_FLAG_POINTER, struct file_admission, rate, 1,
			       31),
	NUMBER(slots), NUMBER(hold_frames), NUMBER(hold_bytes), NUMBER(queue_frames),
	NUMBER(queue_bytes), NUMBER(mark_bytes),
	CYAML_FIELD_SEQUENCE("limits", OPT | CYAML_FLAG_POINTER, struct file_admission, limits,
			     &limit_value, 1, BL_CL_COUNT),
	CYAML_FIELD_ENUM("pacer", OPT | ENUM, struct file_admission, pacer, pacers,
			 CYAML_ARRAY_LEN(pacers)),
	CYAML_FIELD_INT_PTR("cpu", OPT | CYAML_FLAG_POINTER, struct file_admission, cpu),
	CYAML_FIELD_BOOL("pacer_beacons", OPT, struct file_admission, pacer_beacons),
	CYAML_FIELD_STRING_PTR("bl0", OPT | CYAML_FLAG_POINTER, struct file_admission, bl0, 1,
			       IFNAMSIZ - 1),
	CYAML_FIELD_STRING_PTR("bl0d", OPT | CYAML_FLAG_POINTER, struct file_admission, bl0d, 1,
			       IFNAMSIZ - 1),
	CYAML_FIELD_STRING_PTR("fastpass", OPT | CYAML_FLAG_POINTER, struct file_admission,
			       fastpass, 1, 255),
	NUMBER(k), NUMBER(t_slots), NUMBER(t_us), NUMBER(recent_us), NUMBER(retry_us),
	NUMBER(coming_us), NUMBER(late_us),
	CYAML_FIELD_ENUM("allocator", OPT | ENUM, struct file_admission, allocator, allocators,
			 CYAML_ARRAY_LEN(allocators)),
	NUMBER(refuse_us), NUMBER(far_us), NUMBER(lapse_us), NUMBER(outside_percent),
	NUMBER(path_div),
	CYAML_FIELD_MAPPING_PTR("top", OPT | CYAML_FLAG_POINTER, struct file_admission, top,
				bl_top_fields),
	CYAML_FIELD_ENUM("tokens", OPT | ENUM, struct file_admission, tokens, token_modes,
			 CYAML_ARRAY_LEN(token_modes)),
	CYAML_FIELD_BOOL("data_first", OPT, struct file_admission, data_first),
	/* a word of hosts' top, too: see bl_yaml_load() */
	CYAML_FIELD_ENUM("unscheduled", OPT | ENUM, struct file_admission, unscheduled, truths,
			 CYAML_ARRAY_LEN(truths)),
	CYAML_FIELD_BOOL("spray", OPT, struct file_admission, spray), NUMBER(token_frames),
	NUMBER(expiry_tokens), NUMBER(headroom_percent),
	CYAML_FIELD_STRING_PTR("link_rate", OPT | CYAML_FLAG_POINTER, struct file_admission,
			       link_rate, 1, 31),
	CYAML_FIELD_END
};

static const cyaml_schema_value_t controller_value = { CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char,
									  1, 63) };
static const cyaml_schema_field_t tls_fields[] = {
	CYAML_FIELD_STRING_PTR("ca", CYAML_FLAG_POINTER, struct file_tls, ca, 1, 255),
	CYAML_FIELD_STRING_PTR("cert", CYAML_FLAG_POINTER, struct file_tls, cert, 1, 255),
	CYAML_FIELD_STRING_PTR("key", CYAML_FLAG_POINTER, struct file_tls, key, 1, 255),
	CYAML_FIELD_END
};

static const cyaml_schema_field_t fields[] = {
	CYAML_FIELD_ENUM_PTR("role", OPT | ENUM | CYAML_FLAG_POINTER, struct file, role, roles,
			     CYAML_ARRAY_LEN(roles)),
	CYAML_FIELD_STRING_PTR("name", OPT | CYAML_FLAG_POINTER, struct file, name, 1, 31),
	CYAML_FIELD_STRING_PTR("interface", OPT | CYAML_FLAG_POINTER, struct file, interface, 1,
			       IFNAMSIZ - 1),
	CYAML_FIELD_ENUM("mode", OPT | ENUM, struct file, mode, modes, CYAML_ARRAY_LEN(modes)),
	CYAML_FIELD_UINT("node_id", OPT, struct file, node_id),
	CYAML_FIELD_UINT("port_base", OPT, struct file, port_base),
	CYAML_FIELD_UINT("port_count", OPT, struct file, port_count),
	CYAML_FIELD_UINT("beacon_us", OPT, struct file, beacon_us),
	CYAML_FIELD_UINT("dead_after_us", OPT, struct file, dead_after_us),
	CYAML_FIELD_UINT("clock_bound_us", OPT, struct file, clock_bound_us),
	CYAML_FIELD_UINT("clock_void_after_ms", OPT, struct file, clock_void_after_ms),
	CYAML_FIELD_INT_PTR("caretaker_ms", OPT | CYAML_FLAG_POINTER, struct file, caretaker_ms),
	CYAML_FIELD_UINT("process_limit_ms", OPT, struct file, process_limit_ms),
	CYAML_FIELD_BOOL("replace", OPT, struct file, replace),
	CYAML_FIELD_BOOL("no_ahead", OPT, struct file, no_ahead),
	CYAML_FIELD_BOOL("thread_napi", OPT, struct file, thread_napi),
	CYAML_FIELD_ENUM("realtime", OPT | ENUM, struct file, realtime, realtimes,
			 CYAML_ARRAY_LEN(realtimes)),
	CYAML_FIELD_ENUM("forward", OPT | ENUM, struct file, forward, forwards,
			 CYAML_ARRAY_LEN(forwards)),
	CYAML_FIELD_MAPPING_PTR("admission", OPT | CYAML_FLAG_POINTER, struct file, admission,
				admission_fields),
	CYAML_FIELD_SEQUENCE("controllers", OPT | CYAML_FLAG_POINTER, struct file, controllers,
			     &controller_value, 1, BL_CTL_PEERS_MAX),
	CYAML_FIELD_MAPPING_PTR("tls", OPT | CYAML_FLAG_POINTER, struct file, tls, tls_fields),
	CYAML_FIELD_SEQUENCE("cpus", OPT | CYAML_FLAG_POINTER, struct file, cpus, &cpu_value, 1,
			     BL_LANES_MAX),
	CYAML_FIELD_SEQUENCE("ports", OPT | CYAML_FLAG_POINTER, struct file, ports, &port_value, 1,
			     BL_SW_PORTS_MAX),
	CYAML_FIELD_SEQUENCE("fdb", OPT | CYAML_FLAG_POINTER, struct file, fdb, &fdb_value, 0,
			     BL_FDB_BUCKETS *BL_FDB_WAYS),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t top = { CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file,
							      fields) };

static int check(const struct file *f, const char *path, enum bl_role role, struct bl_err *err)
{
	uint32_t beacon = f->beacon_us ? f->beacon_us : BL_BEACON_US;

	if (role == BL_ROLE_NONE)
		return bl_fail(err, EINVAL, "%s:1: role is missing: switch or host", path);
	if (role == BL_ROLE_HOST && (f->ports || f->fdb || f->forward))
		return bl_yaml_bad(path,
				   f->ports ? "ports"
				   : f->fdb ? "fdb"
					    : "forward",
				   0, err, "a host has no such key; is the role right?");
	if (role == BL_ROLE_SWITCH && f->process_limit_ms)
		return bl_yaml_bad(path, "process_limit_ms", 0, err,
				   "process_limit_ms is a key of hosts");
	if (f->process_limit_ms && f->process_limit_ms < BL_PROCESS_LIMIT_MIN_MS)
		return bl_yaml_bad(path, "process_limit_ms", 0, err,
				   "process_limit_ms %u: at least %d", f->process_limit_ms,
				   BL_PROCESS_LIMIT_MIN_MS);
	if (role == BL_ROLE_SWITCH && f->interface)
		return bl_yaml_bad(path, "interface", 0, err,
				   "interface is a key of hosts; a switch lists its interfaces "
				   "under ports");
	if (role == BL_ROLE_SWITCH && !f->ports)
		return bl_fail(err, EINVAL, "%s:1: a switch needs ports", path);
	if (role == BL_ROLE_SWITCH && f->forward == BL_FWD_L3 && f->fdb)
		return bl_yaml_bad(path, "fdb", 0, err, "fdb is used with \"forward: l2\" only");
	if (f->beacon_us > 1000000)
		return bl_yaml_bad(path, "beacon_us", 0, err, "beacon_us %u: at most 1000000",
				   f->beacon_us);
	if (f->dead_after_us && f->dead_after_us < 2 * beacon)
		return bl_yaml_bad(path, "dead_after_us", 0, err,
				   "dead_after_us %u: at least two beacon intervals (%u us each)",
				   f->dead_after_us, beacon);
	if (f->caretaker_ms && (*f->caretaker_ms < 0 || *f->caretaker_ms > BL_CARETAKER_MAX_MS))
		return bl_yaml_bad(path, "caretaker_ms", 0, err, "caretaker_ms %d: 0 to %d",
				   *f->caretaker_ms, BL_CARETAKER_MAX_MS);
	if (f->clock_void_after_ms && f->clock_void_after_ms < 1000)
		return bl_yaml_bad(path, "clock_void_after_ms", 0, err,
				   "clock_void_after_ms %u: at least 1000", f->clock_void_after_ms);
	if (f->port_count > BL_PORT_COUNT)
		return bl_yaml_bad(path, "port_count", 0, err, "port_count %u: at most %u",
				   f->port_count, BL_PORT_COUNT);
	if (f->port_base && f->port_base + (f->port_count ? f->port_count : BL_PORT_COUNT) > 65536)
		return bl_yaml_bad(path, "port_base", 0, err,
				   "port_base %u: the range ends above 65535", f->port_base);
	return 0;
}

static int fill_lists(struct bl_node_cfg *cfg, const struct file *f, const char *path,
		      struct bl_err *err)
{
	unsigned int k, j;

	for (k = 0; k < f->cpus_count; k++) {
		if (f->cpus[k] < 0 || f->cpus[k] >= BL_SW_CPUS_MAX)
			return bl_yaml_bad(path, "cpus", 0, err, "CPU %d: 0 to %d", f->cpus[k],
					   BL_SW_CPUS_MAX - 1);
		if (f->cpus[k] >= sysconf(_SC_NPROCESSORS_CONF))
			return bl_yaml_bad(path, "cpus", 0, err,
					   "CPU %d does not exist; this machine has CPUs 0 to %ld",
					   f->cpus[k], sysconf(_SC_NPROCESSORS_CONF) - 1);
		for (j = 0; j < k; j++)
			if (f->cpus[j] == f->cpus[k])
				return bl_yaml_bad(path, "cpus", 0, err,
						   "CPU %d is listed twice under cpus", f->cpus[k]);
		cfg->cpus[k] = f->cpus[k];
	}
	if (f->cpus_count)
		cfg->ncpus = f->cpus_count;
	if (f->ports_count) {
		free(cfg->ports);
		cfg->ports = calloc(f->ports_count, sizeof(*cfg->ports));
		if (!cfg->ports)
			return bl_fail(err, ENOMEM, "out of memory");
		cfg->ports_count = f->ports_count;
	}
	for (k = 0; k < f->ports_count; k++) {
		snprintf(cfg->ports[k].ifname, sizeof(cfg->ports[k].ifname), "%s",
			 f->ports[k].interface);
		cfg->ports[k].role = f->ports[k].role;
		cfg->ports[k].home_cpu = f->ports[k].home_cpu ? *f->ports[k].home_cpu : -1;
		for (j = 0; j < k; j++)
			if (!strcmp(cfg->ports[j].ifname, cfg->ports[k].ifname))
				return bl_yaml_bad(path, "interface", k, err,
						   "port %s is listed twice", cfg->ports[k].ifname);
	}
	if (f->fdb_count) {
		free(cfg->fdb);
		cfg->fdb = calloc(f->fdb_count, sizeof(*cfg->fdb));
		if (!cfg->fdb)
			return bl_fail(err, ENOMEM, "out of memory");
		cfg->fdb_count = f->fdb_count;
	}
	for (k = 0; k < f->fdb_count; k++) {
		if (!bl_mac_parse(f->fdb[k].mac, cfg->fdb[k].mac))
			return bl_yaml_bad(path, "mac", k, err,
					   "%s is no Ethernet address (six pairs of hex digits, "
					   "with colons)",
					   f->fdb[k].mac);
		if (cfg->fdb[k].mac[0] & 1)
			return bl_yaml_bad(path, "mac", k, err,
					   "%s is a group address; only unicast can be entered",
					   f->fdb[k].mac);
		snprintf(cfg->fdb[k].ifname, sizeof(cfg->fdb[k].ifname), "%s", f->fdb[k].port);
		for (j = 0;
		     j < cfg->ports_count && strcmp(cfg->ports[j].ifname, cfg->fdb[k].ifname); j++)
			;
		if (j == cfg->ports_count)
			return bl_yaml_bad(path, "port", k, err,
					   "%s is no port of this switch; list it under ports",
					   cfg->fdb[k].ifname);
	}
	return 0;
}

static int take_rate(uint64_t *to, const char *text, const char *path, unsigned int nth,
		     struct bl_err *err)
{
	if (!text || bl_rate_parse(text, to))
		return 0;
	return bl_yaml_bad(path, "rate", nth, err,
			   "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit", text);
}

/* @key is of one role only */
/* clang-format off */
#define ONLY(role_, key) { #key, role_, f->key != 0 }
/* clang-format on */

static int admission_keys(const struct file_admission *f, enum bl_role role, const char *path,
			  struct bl_err *err)
{
	const struct {
		const char *key;
		enum bl_role role;
		bool there;
	} v[] = { ONLY(BL_ROLE_HOST, hold_frames),
		  ONLY(BL_ROLE_HOST, hold_bytes),
		  ONLY(BL_ROLE_HOST, bl0),
		  ONLY(BL_ROLE_HOST, bl0d),
		  ONLY(BL_ROLE_HOST, fastpass),
		  ONLY(BL_ROLE_HOST, k),
		  ONLY(BL_ROLE_HOST, t_slots),
		  ONLY(BL_ROLE_HOST, t_us),
		  ONLY(BL_ROLE_HOST, recent_us),
		  ONLY(BL_ROLE_HOST, retry_us),
		  ONLY(BL_ROLE_HOST, coming_us),
		  ONLY(BL_ROLE_HOST, late_us),
		  ONLY(BL_ROLE_HOST, pacer_beacons),
		  ONLY(BL_ROLE_HOST, top),
		  ONLY(BL_ROLE_SWITCH, queue_frames),
		  ONLY(BL_ROLE_SWITCH, queue_bytes),
		  ONLY(BL_ROLE_SWITCH, limits),
		  ONLY(BL_ROLE_SWITCH, allocator),
		  ONLY(BL_ROLE_SWITCH, refuse_us),
		  ONLY(BL_ROLE_SWITCH, far_us),
		  ONLY(BL_ROLE_SWITCH, lapse_us),
		  ONLY(BL_ROLE_SWITCH, outside_percent),
		  ONLY(BL_ROLE_SWITCH, tokens),
		  ONLY(BL_ROLE_SWITCH, data_first),
		  ONLY(BL_ROLE_SWITCH, unscheduled),
		  ONLY(BL_ROLE_SWITCH, spray),
		  ONLY(BL_ROLE_SWITCH, token_frames),
		  ONLY(BL_ROLE_SWITCH, expiry_tokens),
		  ONLY(BL_ROLE_SWITCH, headroom_percent),
		  ONLY(BL_ROLE_SWITCH, link_rate),
		  ONLY(BL_ROLE_SWITCH, path_div) };
	unsigned int k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++)
		if (v[k].there && v[k].role != role)
			return bl_yaml_bad(path, v[k].key, 0, err, "admission: %s is a key of %s",
					   v[k].key, role == BL_ROLE_HOST ? "switches" : "hosts");
	return 0;
}

static int take_admission(struct bl_node_cfg *cfg, const struct file *file, const char *path,
			  struct bl_err *err)
{
	const struct file_admission *f = file->admission;
	struct bl_admission_cfg *a = &cfg->admission;
	struct bl_node_cfg whole;
	struct bl_err why;
	unsigned int k, nth = 0;
	int rc = 0;

	/* rates of ports that stand before admission's in the file are found before it */
	for (k = 0; k < file->ports_count; k++)
		if (file->ports[k].rate &&
		    bl_yaml_line(path, "rate", nth) < bl_yaml_line(path, "admission", 0))
			nth++;
	if (!f) {
		for (k = 0; k < file->ports_count; k++)
			if (file->ports[k].rate || file->ports[k].outside)
				return bl_yaml_bad(path, file->ports[k].rate ? "rate" : "outside",
						   0, err,
						   "needs admission: without it nothing is metered "
						   "and nothing reserved");
		return 0;
	}
	rc = admission_keys(f, cfg->role, path, err);
	if (!rc)
		rc = take_rate(&a->rate_bps, f->rate, path, nth, err);
	for (k = 0; k < file->ports_count && !rc; k++) {
		rc = take_rate(&cfg->ports[k].rate_bps, file->ports[k].rate, path, k, err);
		cfg->ports[k].outside = file->ports[k].outside;
	}
	if (!rc && f->link_rate && !bl_rate_parse(f->link_rate, &a->link_rate_bps))
		rc = bl_yaml_bad(path, "link_rate", 0, err,
				 "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit",
				 f->link_rate);
	if (rc)
		return rc;
	a->on = true;
	a->policy = (enum bl_policy)f->policy;
	a->allocator = (enum bl_allocator)f->allocator;
	a->slots = f->slots;
	a->queue = (struct bl_limit_cfg){ f->hold_frames + f->queue_frames,
					  f->hold_bytes + f->queue_bytes, f->mark_bytes };
	for (k = 1; k < f->limits_count; k++)
		for (nth = 0; nth < k; nth++)
			if (f->limits[nth].class == f->limits[k].class)
				return bl_yaml_bad(path, "class", k, err,
						   "class %s is listed twice under limits",
						   bl_class_name(f->limits[k].class));
	for (k = 0; k < f->limits_count; k++)
		a->limit[f->limits[k].class] = (struct bl_limit_cfg){ f->limits[k].frames,
								      f->limits[k].bytes,
								      f->limits[k].mark_bytes };
	a->spin = f->pacer;
	if (f->cpu && (*f->cpu < 0 || *f->cpu >= BL_SW_CPUS_MAX))
		return bl_yaml_bad(path, "cpu", 0, err, "CPU %d: 0 to %d", *f->cpu,
				   BL_SW_CPUS_MAX - 1);
	a->pacer_cpu = f->cpu ? (uint32_t)*f->cpu + 1 : 0;
	a->pacer_beacons = f->pacer_beacons;
	snprintf(a->bl0, sizeof(a->bl0), "%s", f->bl0 ? f->bl0 : "");
	snprintf(a->bl0d, sizeof(a->bl0d), "%s", f->bl0d ? f->bl0d : "");
	snprintf(a->fp_path, sizeof(a->fp_path), "%s", f->fastpass ? f->fastpass : "");
	a->k = f->k;
	a->t_slots = f->t_slots;
	a->t_us = f->t_us;
	a->recent_us = f->recent_us;
	a->retry_us = f->retry_us;
	a->coming_us = f->coming_us;
	a->late_us = f->late_us;
	a->refuse_us = f->refuse_us;
	a->far_us = f->far_us;
	a->lapse_us = f->lapse_us;
	a->outside_percent = f->outside_percent;
	if (f->top && (rc = bl_top_take(&a->top, f->top, path, err)))
		return rc;
	a->token_mode = f->tokens;
	a->data_first = f->data_first;
	a->unscheduled = f->unscheduled;
	a->spray = f->spray;
	a->token_frames = f->token_frames;
	a->expiry_tokens = f->expiry_tokens;
	a->headroom_percent = f->headroom_percent;
	a->path_div = f->path_div;
	/* what goes beyond one key */
	whole = *cfg;
	bl_admission_defaults(&whole);
	return bl_admission_check(&whole, &why)
		       ? bl_yaml_bad(path, "admission", 0, err, "%s", why.text)
		       : 0;
}

static int take_controllers(struct bl_node_cfg *cfg, const struct file *f, const char *path,
			    struct bl_err *err)
{
	struct bl_ctl_peers *c = &cfg->ctl;
	struct sockaddr_storage sa;
	socklen_t len;
	unsigned int k;

	for (k = 0; k < f->controllers_count; k++) {
		if (bl_session_addr(f->controllers[k], &sa, &len))
			return bl_yaml_bad(path, "controllers", 0, err,
					   "%s is no address, as 10.0.0.1:%d, or with the quotes "
					   "\"[fd00::1]:%d\"",
					   f->controllers[k], BL_SESSION_PORT, BL_SESSION_PORT);
		snprintf(c->addr[k], sizeof(c->addr[k]), "%s", f->controllers[k]);
	}
	c->n = f->controllers_count ? f->controllers_count : c->n;
	if (f->tls) {
		snprintf(c->ca, sizeof(c->ca), "%s", f->tls->ca);
		snprintf(c->cert, sizeof(c->cert), "%s", f->tls->cert);
		snprintf(c->key, sizeof(c->key), "%s", f->tls->key);
	}
	return 0;
}

static void take(struct bl_node_cfg *cfg, const struct file *f)
{
	if (f->name)
		snprintf(cfg->name, sizeof(cfg->name), "%s", f->name);
	if (f->interface)
		snprintf(cfg->ifname, sizeof(cfg->ifname), "%s", f->interface);
	cfg->mode = f->mode ? BL_XDP_GENERIC : cfg->mode;
	cfg->node_id = f->node_id ? f->node_id : cfg->node_id;
	cfg->port_base = f->port_base ? f->port_base : cfg->port_base;
	cfg->port_count = f->port_count ? f->port_count : cfg->port_count;
	cfg->beacon_us = f->beacon_us ? f->beacon_us : cfg->beacon_us;
	cfg->dead_after_us = f->dead_after_us ? f->dead_after_us : cfg->dead_after_us;
	cfg->clock_bound_us = f->clock_bound_us ? f->clock_bound_us : cfg->clock_bound_us;
	if (f->caretaker_ms)
		cfg->caretaker_ms = *f->caretaker_ms ? *f->caretaker_ms : -1;
	cfg->clock_void_after_ms = f->clock_void_after_ms ? f->clock_void_after_ms
							  : cfg->clock_void_after_ms;
	cfg->process_limit_ms = f->process_limit_ms ? f->process_limit_ms : cfg->process_limit_ms;
	cfg->replace |= f->replace;
	cfg->thread_napi |= f->thread_napi;
	cfg->no_ahead |= f->no_ahead;
	cfg->realtime = f->realtime ? f->realtime : cfg->realtime;
	cfg->forward = f->forward ? BL_FWD_L2 : cfg->forward;
}

/*
 * Fills in what the file says and leaves the rest of *@cfg: a role set before must be the file's,
 * if that names one.
 */
int bl_config_load(struct bl_node_cfg *cfg, const char *path, struct bl_err *err)
{
	struct file *f = NULL;
	int rc;

	rc = bl_yaml_load(path, &top, (void **)&f, err);
	if (rc)
		return rc;
	if (f->role && cfg->role != BL_ROLE_NONE && (enum bl_role) * f->role != cfg->role) {
		rc = bl_yaml_bad(path, "role", 0, err, "the file is for a %s, not for a %s",
				 bl_role_name((enum bl_role) * f->role), bl_role_name(cfg->role));
	} else {
		if (f->role)
			cfg->role = (enum bl_role) * f->role;
		rc = check(f, path, cfg->role, err);
	}
	if (!rc)
		take(cfg, f);
	if (!rc)
		rc = fill_lists(cfg, f, path, err);
	if (!rc)
		rc = take_admission(cfg, f, path, err);
	if (!rc)
		rc = take_controllers(cfg, f, path, err);
	bl_yaml_free(&top, f);
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
