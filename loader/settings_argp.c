// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See settings_argp.h. */
#include "loader/settings_argp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/yaml.h"
#include "loader/admission/admission_argp.h"
#include "loader/config.h"
#include "loader/config_check.h"
#include "loader/settings.h"
#include "proto/session.h"

enum {
	KEY_SETTING = 512, /* + enum bl_setting_id */
	KEY_HOST_PORT = KEY_SETTING + BL_S_COUNT,
	KEY_UP_PORT,
	KEY_DOWN_PORT,
	KEY_DETACH,
	KEY_CHECK,
};

enum {
	GROUP_COMMON,
	GROUP_HOST,
	GROUP_SWITCH,
	GROUP_ADMISSION, /* a child */
	GROUP_TEST,
	GROUPS
};

#define BOTH_ROLES (BL_SETTING_HOSTS | BL_SETTING_SWITCHES)

/* argp keeps the strings */
static char help_texts[BL_S_COUNT][400];
static char arguments[BL_S_COUNT][16];
static struct argp_option all[BL_S_COUNT + 16], of_hosts[BL_S_COUNT + 16],
	of_switches[BL_S_COUNT + 16];

/* ---- the flags ---- */

/* "switch: an input that talks and lags more is excluded; 1 to 1000000000 (default: ...)" */
static const char *help_text(unsigned int id)
{
	const struct bl_setting *s = bl_setting(id);
	char *to = help_texts[id], dflt[32] = "";
	size_t size = sizeof(help_texts[id]), at = 0;

	if (s->roles != BOTH_ROLES)
		at += (size_t)snprintf(to, size,
				       "%s: ", s->roles == BL_SETTING_HOSTS ? "host" : "switch");
	at += (size_t)snprintf(to + at, size - at, "%s", s->text);
	if (s->kind == BL_SETTING_NUMBER && !s->test)
		at += (size_t)snprintf(to + at, size - at, "; %s%s%s%lld to %lld",
				       s->zero ? "0 (" : "", s->zero ? s->zero : "",
				       s->zero ? ") or " : "", (long long)s->least,
				       (long long)s->greatest);
	if (s->bare && s->kind == BL_SETTING_NAME)
		at += (size_t)snprintf(to + at, size - at, "; the key %s: %s", s->key,
				       s->names[s->flag_value]);
	else if (s->bare && s->inverse)
		at += (size_t)snprintf(to + at, size - at, "; the key %s: false", s->key);
	if (!s->dflt_text && s->kind == BL_SETTING_NUMBER && !s->test)
		snprintf(dflt, sizeof(dflt), "%lld", (long long)s->dflt);
	if (!s->dflt_text && s->kind == BL_SETTING_NAME && !s->bare)
		snprintf(dflt, sizeof(dflt), "%s", s->names[s->values ? 0 : s->dflt]);
	if (s->dflt_text || *dflt)
		snprintf(to + at, size - at, " (default: %s)", s->dflt_text ? s->dflt_text : dflt);
	return to;
}

static const char *argument(unsigned int id)
{
	const struct bl_setting *s = bl_setting(id);
	unsigned int k;

	for (k = 0; s->unit[k] && k + 1 < sizeof(arguments[0]); k++)
		arguments[id][k] = s->unit[k] >= 'a' && s->unit[k] <= 'z'
					   ? (char)(s->unit[k] - 'a' + 'A')
					   : s->unit[k];
	return arguments[id];
}

/*
 * The group of a setting in the help of a program that has the flags of @roles. Only where it has
 * both, those of one role have a heading.
 */
static int group_of(const struct bl_setting *s, unsigned int roles)
{
	if (s->test)
		return GROUP_TEST;
	if (roles != BOTH_ROLES || s->roles == BOTH_ROLES)
		return GROUP_COMMON;
	return s->roles == BL_SETTING_HOSTS ? GROUP_HOST : GROUP_SWITCH;
}

/*
 * argp takes an entry of group 0 for one of the same group as the entry before it, so those without
 * a heading come first, and each group behind its heading.
 */
static void make_table(struct argp_option *to, unsigned int roles)
{
	static const struct argp_option first[] = {
		{ "config", 'c', "FILE", 0,
		  "YAML file of the node; flags override it wherever they stand", GROUP_COMMON },
		{ "check", KEY_CHECK, NULL, 0,
		  "only read and validate the configuration, and say what the node would be; needs "
		  "no privileges and touches nothing",
		  GROUP_COMMON },
		{ "detach-on-exit", KEY_DETACH, NULL, 0, "remove programs and pins when stopped",
		  GROUP_COMMON },
	};
	static const struct argp_option ports[] = {
		{ "host-port", KEY_HOST_PORT, "IFNAME[@CPU]", 0,
		  "a port with a host behind it, and its home CPU; may be repeated", 0 },
		{ "up-port", KEY_UP_PORT, "IFNAME[@CPU]", 0,
		  "a port with a higher switch behind it", 0 },
		{ "down-port", KEY_DOWN_PORT, "IFNAME[@CPU]", 0,
		  "a port with a lower switch behind it", 0 },
	};
	static const struct argp_option headings[GROUPS] = {
		[GROUP_HOST] = { .doc = "Host:", .group = GROUP_HOST },
		[GROUP_SWITCH] = { .doc = "Switch:", .group = GROUP_SWITCH },
		[GROUP_TEST] = { .doc = "For tests:", .group = GROUP_TEST },
	};
	int ports_group = roles == BOTH_ROLES ? GROUP_SWITCH : GROUP_COMMON, group;
	unsigned int k, n = 0;

	for (group = 0; group < GROUPS; group++) {
		if (headings[group].doc && (roles == BOTH_ROLES || group == GROUP_TEST))
			to[n++] = headings[group];
		for (k = 0; group == GROUP_COMMON && k < sizeof(first) / sizeof(first[0]); k++)
			to[n++] = first[k];
		for (k = 0; group == ports_group && roles & BL_SETTING_SWITCHES &&
			    k < sizeof(ports) / sizeof(ports[0]);
		     k++) {
			to[n] = ports[k];
			to[n++].group = group;
		}
		for (k = 0; k < BL_S_COUNT; k++) {
			const struct bl_setting *s = bl_setting(k);

			/* barlined has the flags of both roles */
			if (!s->flag || !(s->roles & roles) || group_of(s, roles) != group ||
			    (s->daemon && roles != BOTH_ROLES))
				continue;
			to[n++] = (struct argp_option){
				.name = s->flag,
				.key = s->letter ? s->letter : KEY_SETTING + (int)k,
				.arg = s->bare ? NULL : argument(k),
				.doc = help_text(k),
				.group = group,
			};
		}
	}
}

/* Runs before main(): argp wants constant tables. */
__attribute__((constructor)) static void make_tables(void)
{
	make_table(all, BOTH_ROLES);
	make_table(of_hosts, BL_SETTING_HOSTS);
	make_table(of_switches, BL_SETTING_SWITCHES);
}

/* ---- values that are no single member ---- */

int bl_settings_add_port(struct bl_node_cfg *c, const char *text, enum bl_port_role role,
			 struct bl_err *err)
{
	const char *cpu = strchr(text, '@');
	size_t len = cpu ? (size_t)(cpu - text) : strlen(text);
	struct bl_port_cfg *p;
	long long v = -1;

	if (cpu && !bl_read_integer(cpu + 1, 0, BL_SW_CPUS_MAX - 1, &v))
		return bl_fail(err, EINVAL, "port %s: the CPU is not a number from 0 to %d", text,
			       BL_SW_CPUS_MAX - 1);
	if (!len || len >= sizeof(p->ifname))
		return bl_fail(err, EINVAL, "\"%.*s\" is no interface name", (int)len, text);
	p = realloc(c->ports, (c->ports_count + 1) * sizeof(*p));
	if (!p)
		return bl_fail(err, ENOMEM, "out of memory");
	c->ports = p;
	p += c->ports_count++;
	memset(p, 0, sizeof(*p));
	p->role = (uint8_t)role;
	p->home_cpu = (int)v;
	memcpy(p->ifname, text, len);
	return 0;
}

static int add_fdb(struct bl_node_cfg *c, const char *text, struct bl_err *err)
{
	struct bl_fdb_cfg *f = realloc(c->fdb, (c->fdb_count + 1) * sizeof(*f));
	const char *eq = strchr(text, '=');
	char mac[18] = "";

	if (!f)
		return bl_fail(err, ENOMEM, "out of memory");
	c->fdb = f;
	f += c->fdb_count;
	memset(f, 0, sizeof(*f));
	if (eq && (size_t)(eq - text) < sizeof(mac))
		memcpy(mac, text, (size_t)(eq - text));
	if (!eq || !bl_mac_parse(mac, f->mac) || !eq[1] || strlen(eq + 1) >= sizeof(f->ifname))
		return bl_fail(err, EINVAL,
			       "--fdb needs MAC=IFNAME, as in 02:00:00:00:00:01=eth1, not \"%s\"",
			       text);
	strcpy(f->ifname, eq + 1);
	c->fdb_count++;
	return 0;
}

static int add_controller(struct bl_ctl_peers *c, const char *text, struct bl_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len;

	if (strlen(text) >= sizeof(c->addr[0]) || bl_session_addr(text, &sa, &len))
		return bl_fail(err, EINVAL,
			       "--controller \"%s\": an address, as 10.0.0.1:%d or [fd00::1]:%d",
			       text, BL_SESSION_PORT, BL_SESSION_PORT);
	if (c->n == BL_CTL_PEERS_MAX)
		return bl_fail(err, EINVAL, "--controller: at most %d", BL_CTL_PEERS_MAX);
	strcpy(c->addr[c->n++], text);
	return 0;
}

/* "0,2-3" */
static int parse_cpus(struct bl_node_cfg *c, const char *text, struct bl_err *err)
{
	char list[256], *save, *p;

	c->ncpus = 0;
	snprintf(list, sizeof(list), "%s", text);
	for (p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		char *dash = strchr(p, '-');
		long long v, last;

		if (dash)
			*dash++ = 0;
		if (!bl_read_integer(p, 0, BL_SW_CPUS_MAX - 1, &v) ||
		    !bl_read_integer(dash ? dash : p, v, BL_SW_CPUS_MAX - 1, &last) ||
		    c->ncpus + (unsigned long long)(last - v) >= BL_LANES_MAX)
			break;
		for (; v <= last; v++)
			c->cpus[c->ncpus++] = (int)v;
	}
	return p || !c->ncpus ? bl_fail(err, EINVAL,
					"--cpus: \"%s\" is not a list of at most %d CPUs, as in "
					"0,2-3",
					text, BL_LANES_MAX)
			      : 0;
}

static int parse_block(unsigned int id, const char *arg, struct bl_node_cfg *c, struct bl_err *err)
{
	switch (id) {
	case BL_S_ACCEPT:
		if (strcmp(arg, "reordering"))
			return bl_fail(err, EINVAL, "--accept %s: only reordering can be accepted",
				       arg);
		c->accept_reordering = true;
		return 0;
	case BL_S_CPUS:
		return parse_cpus(c, arg, err);
	case BL_S_CONTROLLERS:
		return add_controller(&c->ctl, arg, err);
	case BL_S_FDB:
		return add_fdb(c, arg, err);
	}
	return bl_fail(err, EINVAL, "flag %u has no parser", id);
}

/* ---- parsers ---- */

/* The setting of an option's key; BL_S_COUNT: it is none. */
static unsigned int setting_of(int key)
{
	unsigned int k;

	if (key >= KEY_SETTING && key < KEY_SETTING + BL_S_COUNT)
		return (unsigned int)(key - KEY_SETTING);
	for (k = 0; k < BL_S_COUNT && (!bl_setting(k)->letter || bl_setting(k)->letter != key); k++)
		;
	return k;
}

static int parse_setting(struct bl_settings_input *in, unsigned int id, const char *arg,
			 struct bl_err *err)
{
	const struct bl_setting *s = bl_setting(id);
	char what[48];

	if (s->bare) {
		bl_setting_flag(s, &in->cfg);
		return 0;
	}
	if (s->kind == BL_SETTING_BLOCK)
		return parse_block(id, arg, &in->cfg, err);
	snprintf(what, sizeof(what), "--%s", s->flag);
	return bl_setting_parse(s, what, arg, &in->cfg, err);
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	static struct bl_admission_cfg scratch; /* of the first pass, where the file is not read */
	struct bl_settings_input *in = st->input;
	unsigned int id;
	struct bl_err err;
	int rc = 0;

	if (key == ARGP_KEY_INIT) {
		scratch = (struct bl_admission_cfg){ .on = true };
		st->child_inputs[0] = in->file_pass ? &scratch : &in->cfg.admission;
		return 0;
	}
	id = setting_of(key);
	if (key == 'c') {
		if (in->file_pass && in->file && strcmp(in->file, arg))
			argp_error(st, "--config: one file, not %s and %s", in->file, arg);
		in->file = arg;
	} else if (key == KEY_CHECK) {
		in->check = true;
	} else if (key == KEY_DETACH) {
		in->detach = true;
	} else if (key >= KEY_HOST_PORT && key <= KEY_DOWN_PORT) {
		if (!in->file_pass)
			rc = bl_settings_add_port(&in->cfg, arg,
						  key == KEY_HOST_PORT ? BL_PORT_HOST
						  : key == KEY_UP_PORT ? BL_PORT_UP
								       : BL_PORT_DOWN,
						  &err);
	} else if (id == BL_S_COUNT) {
		return ARGP_ERR_UNKNOWN;
	} else if (!in->file_pass) {
		rc = parse_setting(in, id, arg, &err);
	}
	if (rc)
		argp_error(st, "%s", err.text);
	return rc ? EINVAL : 0; /* with ARGP_SILENT, argp_error() returns */
}

static const struct argp_child children[] = { { &bl_admission_argp, 0, NULL, GROUP_ADMISSION },
					      { 0 } };

const struct argp bl_settings_argp = { .options = all, .parser = parse, .children = children };
const struct argp bl_settings_host_argp = { .options = of_hosts,
					    .parser = parse,
					    .children = children };
const struct argp bl_settings_switch_argp = { .options = of_switches,
					      .parser = parse,
					      .children = children };

int bl_settings_file(struct bl_settings_input *in, struct bl_err *err)
{
	in->file_pass = false;
	return in->file ? bl_config_load(&in->cfg, in->file, err) : 0;
}

int bl_settings_done(struct bl_settings_input *in, struct bl_err *err)
{
	struct bl_err why;
	int rc = bl_config_check(&in->cfg, &why);

	if (!rc)
		return 0;
	/* a finding of the file alone has a line already */
	return bl_fail(err, -rc, "%s%s%s", in->file ? in->file : "", in->file ? ": " : "",
		       why.text);
}
