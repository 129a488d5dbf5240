// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of settings (loader/settings.c) against everything that derives from it: files and
 * flags say the same and refuse the same, what `barline config show` prints can be fed back, each
 * difference is found, and docs/configuration.md and both manual pages have each setting.
 *
 *  build/tests/prog/test_settings --table
 *
 * prints the part of docs/configuration.md between the line <!-- settings --> and the line
 * <!-- end of settings -->.
 */
#include <argp.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "loader/config.h"
#include "loader/config_check.h"
#include "loader/config_rows.h"
#include "loader/settings.h"
#include "loader/settings_argp.h"

static char path[] = "/tmp/barline-settings-XXXXXX";

/* ---- the table ---- */

static void table__complete(void **state)
{
	unsigned int k, j;

	(void)state;
	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (!s->text || !s->roles || !s->why || !s->size || (!s->key && !s->flag))
			fail_msg("setting %u (%s) lacks a text, role, reason, member or name", k,
				 s->key ? s->key : s->flag);
		if (s->flag && !s->bare && !s->unit)
			fail_msg("--%s does not say what its argument is", s->flag);
		if (s->kind == BL_SETTING_NUMBER &&
		    (s->least > s->greatest || s->dflt > s->greatest))
			fail_msg("%s: bounds", s->key);
		assert_int_not_equal(s->text[strlen(s->text) - 1], '.');
		for (j = 0; j < k; j++) {
			const struct bl_setting *o = bl_setting(j);
			char a[64], b[64];

			if (s->flag && o->flag && !strcmp(s->flag, o->flag))
				fail_msg("--%s is twice there", s->flag);
			if (s->letter && s->letter == o->letter)
				fail_msg("-%c is twice there", s->letter);
			if (s->key && o->key &&
			    !strcmp(bl_setting_path(s, a, sizeof(a)),
				    bl_setting_path(o, b, sizeof(b))))
				fail_msg("%s is twice there", a);
		}
	}
	assert_null(bl_setting(BL_S_COUNT));
}

/* ---- files and flags are one language ---- */

static int load(struct bl_node_cfg *c, const char *text, struct bl_err *err)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	memset(c, 0, sizeof(*c));
	return bl_config_load(c, path, err);
}

/* The smallest file of a role, with the line @line of setting @s. */
static int load_line(const struct bl_setting *s, const char *value, struct bl_node_cfg *c,
		     struct bl_err *err)
{
	char text[512];
	const bool host = s->roles & BL_SETTING_HOSTS;

	snprintf(text, sizeof(text), "role: %s\n%s%s%s%s: %s%s\n", host ? "host" : "switch",
		 host ? "interface: e\n" : "ports: [ { interface: a, role: host } ]\n",
		 s->section ? s->section : "", s->section ? ": { " : "", s->key, value,
		 s->section ? " }" : "");
	return load(c, text, err);
}

/* The member as a flag makes it. Returns 0, or an error. */
static int parse_flag(const struct bl_setting *s, const char *value, struct bl_node_cfg *c)
{
	struct bl_settings_input in = {};
	char flag[300], *argv[] = { "test", flag, NULL };
	int rc;

	snprintf(flag, sizeof(flag), "--%s%s%s", s->flag, value ? "=" : "", value ? value : "");
	rc = argp_parse(&bl_settings_argp, 2, argv, ARGP_SILENT, NULL, &in);
	*c = in.cfg;
	return rc;
}

/* The file and the flag with @value: both are refused, or have the same value, which is @want. */
static void both(const struct bl_setting *s, const char *value, const char *want)
{
	struct bl_node_cfg file = {}, flag = {};
	char a[300], b[300];
	struct bl_err err;
	int rc;

	if (s->key && s->size && s->kind != BL_SETTING_BLOCK) {
		/* 0 is the default in files, where flags have nothing to say */
		rc = load_line(s, value, &file, &err);
		if (!rc != (want != NULL))
			fail_msg("%s: %s: %s", s->key, value, rc ? err.text : "taken");
		if (want && strcmp(bl_setting_value(s, &file, a, sizeof(a)), want))
			fail_msg("%s: %s is %s in the file", s->key, value, a);
		bl_config_free(&file);
	}
	if (s->flag && !s->bare) {
		rc = parse_flag(s, value, &flag);
		if (!rc != (want != NULL))
			fail_msg("--%s=%s: %s", s->flag, value, rc ? "refused" : "taken");
		if (want && strcmp(bl_setting_value(s, &flag, b, sizeof(b)), want))
			fail_msg("--%s=%s is %s", s->flag, value, b);
	}
}

static void number(const struct bl_setting *s, int64_t v, bool good)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)v);
	both(s, text, good ? text : NULL);
}

/* Keys that are refused without another one. */
static bool needs_another(unsigned int id)
{
	return id == BL_S_LAG_MAX || id == BL_S_DEAD_AFTER || id == BL_S_PORT_BASE ||
	       bl_setting(id)->section;
}

static void values__file_and_flag(void **state)
{
	struct bl_node_cfg c;
	unsigned int k, j;
	struct bl_err err;

	(void)state;
	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (k == BL_S_ROLE || s->kind == BL_SETTING_BLOCK)
			continue;
		print_message("%s\n", s->key ? s->key : s->flag);
		switch (s->kind) {
		case BL_SETTING_NUMBER:
			if (!needs_another(k) || k == BL_S_CLOCK_BOUND) {
				number(s, s->least, true);
				number(s, s->greatest, true);
			}
			if (s->greatest < INT64_MAX)
				number(s, s->greatest + 1, false);
			if (s->least > 1 || (s->least == 1 && !s->zero))
				number(s, s->least - 1, false);
			if (s->least > INT64_MIN)
				number(s, -1, false);
			if (s->zero)
				number(s, 0, true);
			both(s, "7x", NULL);
			break;
		case BL_SETTING_NAME:
			for (j = 0; j < s->count && !s->section; j++)
				both(s, s->names[j], s->names[j]);
			both(s, "best", NULL);
			break;
		case BL_SETTING_TEXT:
			if (!s->section)
				both(s, k == BL_S_CHAIN ? "/a/pin" : "word",
				     k == BL_S_CHAIN ? "/a/pin" : "word");
			break;
		default:
			if (s->key && !s->section) {
				both(s, "true", "true");
				both(s, "false", "false");
				both(s, "perhaps", NULL);
			}
		}
		if (s->flag && s->bare) {
			assert_int_equal(parse_flag(s, NULL, &c), 0);
			assert_true(bl_setting_given(s, &c));
		}
	}
	/* what means the default in files of before is still no value */
	assert_int_equal(load(&c, "role: host\ninterface: e\nbeacon_us: 0\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, ":3: beacon_us 0: a number from 1 to 1000000"));
}

static void flags__of_one_role(void **state)
{
	const struct argp *const of[] = { &bl_settings_host_argp, &bl_settings_switch_argp };
	const unsigned int role[] = { BL_SETTING_HOSTS, BL_SETTING_SWITCHES };
	const struct argp_option *o;
	unsigned int k, r, found;

	(void)state;
	for (r = 0; r < 2; r++)
		for (k = 0; k < BL_S_COUNT; k++) {
			const struct bl_setting *s = bl_setting(k);

			for (o = of[r]->options, found = 0; o->name || o->doc; o++)
				found += o->name && s->flag && !strcmp(o->name, s->flag);
			assert_int_equal(found,
					 s->flag && !s->daemon && s->roles & role[r] ? 1 : 0);
		}
}

/* What is wrong before anything is touched, whichever way it was said. */
static void check__before_anything(void **state)
{
	static const struct {
		const char *text, *says;
	} v[] = {
		{ "role: host\n", "a host needs its NIC" },
		{ "role: host\ninterface: e\nport_base: 65500\n", "ends above 65535" },
		{ "role: host\ninterface: e\nadmission: { policy: pl2 }\n", "needs the link's "
									    "rate" },
		{ "role: host\ninterface: e\ncontrollers: [10.0.0.1]\n", "on another machine" },
		{ "role: host\ninterface: e\ntls: { ca: a, cert: b, key: c }\n", "there are none" },
		{ "role: host\ninterface: e\nxdp: dispatcher\nchain: 41\n", "exclude each other" },
		{ "role: host\ninterface: e\nadmission: { policy: fastpass, fastpass: /no/such }\n",
		  "/no/such" },
		{ "role: host\ninterface: e\nclock: { bound_us: 30000 }\n", "always be void" },
		{ "role: switch\nports: [ { interface: a, role: host, home_cpu: 250 } ]\n", "home_"
											    "cpu "
											    "250" },
		{ "role: switch\nports:\n"
		  "  - { interface: a, role: host, addresses: [02:00:00:00:00:01, 10.0.0.1] }\n"
		  "  - { interface: b, role: host, addresses: [02:00:00:00:00:02, 10.0.0.1] }\n",
		  "10.0.0.1 is an address of a and of b" },
	};
	struct bl_settings_input in;
	struct bl_err err;
	unsigned int k;

	(void)state;
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		int rc;

		in = (struct bl_settings_input){ .file = path };
		rc = load(&in.cfg, v[k].text, &err);
		if (!rc)
			rc = bl_settings_done(&in, &err);
		if (!rc || strncmp(err.text, path, strlen(path)) || !strstr(err.text, v[k].says))
			fail_msg("%u: %s", k, rc ? err.text : "taken");
		bl_config_free(&in.cfg);
	}
	/* flags of the other role, and a file's role that is not the command's */
	in = (struct bl_settings_input){ .cfg = { .role = BL_ROLE_HOST, .ifname = "e" } };
	in.cfg.lag_max_us = 5;
	assert_int_equal(bl_settings_done(&in, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--lag-max-us is for switches"));
	assert_int_equal(
		load(&in.cfg, "role: switch\nports: [ { interface: a, role: up } ]\n", &err), 0);
	bl_config_free(&in.cfg);
	in = (struct bl_settings_input){ .cfg = { .role = BL_ROLE_HOST }, .file = path };
	assert_int_equal(bl_settings_file(&in, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":1: the file is for a switch, not for a host"));
}

/* ---- rows ---- */

static const char *const files[] = {
	"role: host\ninterface: e\n",
	"role: host\nname: \"h: 1 #\"\ninterface: e\nnode_id: 7\nmode: generic\n"
	"chain: /sys/fs/bpf/x\nreplace: true\naccept: [reordering]\none_queue: true\n"
	"port_base: 50000\nport_count: 16\nbeacon_us: 200\ndead_after_us: 5000\nno_ahead: true\n"
	"realtime: never\ncpus: [0]\nclock: { source: ptp4l, bound_us: 3, max_bound_us: 900, "
	"socket: /run/p, phc: none, domain: 4, transport_specific: 2, grandmaster: true }\n"
	"clock_void_after_ms: 2000\ncaretaker_ms: 0\nprocess_limit_ms: 700\nsend_limit_ms: 0\n"
	"user_endpoints: 3\nuser_ring_mib: 0\nuser: nobody\nsandbox: false\n"
	"controllers: [10.0.0.1, \"[fd00::1]:7\"]\ntls: { ca: /a, cert: /b, key: /c, unnamed: "
	"true }\nauth: { mode: links, keys: /k }\n"
	"admission:\n  policy: top\n  rate: 10gbit\n  slots: 512\n  pacer: spin\n  cpu: 0\n"
	"  pacer_beacons: true\n  hold_frames: 100\n  bl0: app0\n"
	"  top: { law: paper, levels: 1, unscheduled: 0, rules: [ { port: 5001, protocol: tcp, "
	"bytes: 9, deadline_us: 8, coflow: 7, resend: true }, { port: 9 } ] }\n",
	"role: switch\nforward: l2\nlag_max_us: 77777\ncommit_lag_max_ms: 60\ncontrol_rate: 9\n"
	"thread_napi: true\nclock: { source: clockbound, file: /run/c }\nports:\n"
	"  - { interface: a, role: host, home_cpu: 0, rate: 2500mbit, lanes: 2, addresses: "
	"[02:00:00:00:00:01, 10.0.0.1, \"fd00::1\"] }\n"
	"  - { interface: b, role: host, outside: true, auth: off, chain: 41 }\n"
	"  - { interface: c, role: host, addresses: [any] }\n"
	"  - { interface: d, role: up }\n"
	"fdb:\n  - { mac: 02:00:00:00:00:01, port: a }\n  - { mac: 02:00:00:00:00:02, port: b }\n"
	"admission:\n  policy: pl2\n  rate: 2gbit\n  allocator: bitmap\n  refuse_us: 300\n"
	"  limits: [ { class: data, frames: 128, mark_bytes: 30000 } ]\n",
};
#define FILES (sizeof(files) / sizeof(files[0]))

static char *print(const struct bl_config_rows *rows)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	bl_config_print(f, rows);
	fclose(f);
	return text;
}

static void same_config(const struct bl_node_cfg *a, const struct bl_node_cfg *b)
{
	struct bl_node_cfg x = *a, y = *b;

	assert_int_equal(a->ports_count, b->ports_count);
	assert_int_equal(a->fdb_count, b->fdb_count);
	if (a->ports_count)
		assert_memory_equal(a->ports, b->ports, a->ports_count * sizeof(*a->ports));
	if (a->fdb_count)
		assert_memory_equal(a->fdb, b->fdb, a->fdb_count * sizeof(*a->fdb));
	x.ports = y.ports = NULL;
	x.fdb = y.fdb = NULL;
	assert_memory_equal(&x, &y, sizeof(x));
}

/* With and without the defaults, the file that is printed is the same configuration. */
static void rows__can_be_fed_back(void **state)
{
	struct bl_config_rows a, b;
	struct bl_node_cfg c, again;
	struct bl_config_diff *d;
	struct bl_err err;
	unsigned int k, all;
	char *text;

	(void)state;
	for (k = 0; k < 2 * FILES; k++) {
		all = k >= FILES;
		if (load(&c, files[k % FILES], &err))
			fail_msg("%s", err.text);
		assert_int_equal(bl_config_rows(&c, all, &a, &err), 0);
		text = print(&a);
		if (load(&again, text, &err))
			fail_msg("%s\n%s", err.text, text);
		assert_int_equal(bl_config_rows(&again, all, &b, &err), 0);
		assert_int_equal(bl_config_diff(&c, &a, &again, &b, &d), 0);
		if (!all)
			same_config(&c, &again);
		free(d);
		free(text);
		bl_config_rows_free(&a);
		bl_config_rows_free(&b);
		bl_config_free(&c);
		bl_config_free(&again);
	}
}

/* Each setting of the second file, and of the third one, is there. */
static void rows__have_each_setting(void **state)
{
	unsigned int k, j, n, seen[BL_S_COUNT] = { 0 };
	struct bl_config_rows rows;
	struct bl_node_cfg c;
	struct bl_err err;
	char a[96];

	(void)state;
	for (k = 0; k < FILES; k++) {
		assert_int_equal(load(&c, files[k], &err), 0);
		assert_int_equal(bl_config_rows(&c, true, &rows, &err), 0);
		for (j = 0; j < BL_S_COUNT; j++)
			for (n = 0; n < rows.n; n++)
				seen[j] +=
					bl_setting(j)->key &&
					(!strcmp(rows.v[n].section, bl_setting(j)->key) ||
					 !strcmp(bl_config_row_path(&rows.v[n], a, sizeof(a)),
						 bl_setting_path(bl_setting(j), (char[64]){}, 64)));
		bl_config_rows_free(&rows);
		bl_config_free(&c);
	}
	for (j = 0; j < BL_S_COUNT; j++)
		if (bl_setting(j)->key && !seen[j] && j != BL_S_XDP)
			fail_msg("%s has no row", bl_setting(j)->key);
}

static void diff__names_each_change(void **state)
{
	static const struct {
		unsigned int file;
		const char *from, *to, *path;
		enum bl_change change;
	} v[] = {
		{ 1, "dead_after_us: 5000", "dead_after_us: 6000", "dead_after_us",
		  BL_CHANGE_LIVE },
		{ 1, "dead_after_us: 5000\n", "", "dead_after_us", BL_CHANGE_LIVE },
		{ 1, "beacon_us: 200", "beacon_us: 300", "beacon_us", BL_CHANGE_RESTART },
		{ 1, "port_base: 50000", "port_base: 50001", "port_base", BL_CHANGE_DETACH },
		{ 1, "bound_us: 3,", "bound_us: 4,", "clock.bound_us", BL_CHANGE_LIVE },
		{ 1, "[10.0.0.1,", "[10.0.0.2,", "controllers", BL_CHANGE_LIVE },
		{ 1, "rate: 10gbit", "rate: 9gbit", "admission.rate", BL_CHANGE_LIVE },
		{ 1, "slots: 512", "slots: 513", "admission.slots", BL_CHANGE_RESTART },
		{ 1, "levels: 1", "levels: 2", "admission.top", BL_CHANGE_LIVE },
		{ 1, "port: 9 ", "port: 8 ", "admission.top", BL_CHANGE_RESTART },
		{ 2, "10.0.0.1,", "10.0.0.9,", "ports.a.addresses", BL_CHANGE_RESTART },
		{ 2, "lanes: 2", "lanes: 3", "ports.a.lanes", BL_CHANGE_RESTART },
		{ 2, "port: b }", "port: c }", "fdb.02:00:00:00:00:02.port", BL_CHANGE_LIVE },
		{ 2, "lag_max_us: 77777\n", "", "lag_max_us", BL_CHANGE_LIVE },
		{ 2, "  refuse_us: 300\n", "", "admission.refuse_us", BL_CHANGE_RESTART },
	};
	struct bl_config_rows a, b;
	struct bl_node_cfg was, now;
	struct bl_config_diff *d;
	struct bl_err err;
	char text[4096];
	unsigned int k;
	int n;

	(void)state;
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		const char *file = files[v[k].file], *at = strstr(file, v[k].from);

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - file), file, v[k].to,
			 at + strlen(v[k].from));
		assert_int_equal(load(&was, file, &err), 0);
		if (load(&now, text, &err))
			fail_msg("%s", err.text);
		assert_int_equal(bl_config_rows(&was, true, &a, &err), 0);
		assert_int_equal(bl_config_rows(&now, true, &b, &err), 0);
		n = bl_config_diff(&was, &a, &now, &b, &d);
		if (n != 1 || strcmp(d->path, v[k].path) || d->change != v[k].change || !d->why)
			fail_msg("%s: %d differences, %s, %s", v[k].path, n, n ? d->path : "",
				 n ? bl_change_name(d->change) : "");
		free(d);
		bl_config_rows_free(&a);
		bl_config_rows_free(&b);
		bl_config_free(&was);
		bl_config_free(&now);
	}
}

/* ---- documents ---- */

static void put_row(FILE *f, unsigned int id)
{
	const struct bl_setting *s = bl_setting(id);
	char name[64], dflt[48] = "", range[64] = "";

	if (!s->key)
		snprintf(name, sizeof(name), "(flag only)");
	else
		snprintf(name, sizeof(name), "`%s`", bl_setting_path(s, (char[64]){}, 64));
	if (s->dflt_text)
		snprintf(dflt, sizeof(dflt), "%s", s->dflt_text);
	else if (s->kind == BL_SETTING_NUMBER)
		snprintf(dflt, sizeof(dflt), "%lld", (long long)s->dflt);
	else if (s->kind == BL_SETTING_TRUTH)
		snprintf(dflt, sizeof(dflt), "%s", s->inverse ? "true" : "false");
	else if (s->kind == BL_SETTING_NAME && !s->always)
		snprintf(dflt, sizeof(dflt), "%s", s->names[0]);
	else
		snprintf(dflt, sizeof(dflt), "needed");
	if (s->kind == BL_SETTING_NUMBER)
		snprintf(range, sizeof(range), "%s%lld to %lld", s->zero ? "0, " : "",
			 (long long)s->least, (long long)s->greatest);
	fprintf(f, "| %s | %s%s%s | %s | %s | %s | %s: %s |\n", name, s->flag ? "`--" : "",
		s->flag ? s->flag : "", s->flag ? "`" : "",
		s->roles == BL_SETTING_HOSTS      ? "host"
		: s->roles == BL_SETTING_SWITCHES ? "switch"
						  : "both",
		dflt, range, bl_change_name(s->change), s->why);
}

static void put_table(FILE *f)
{
	unsigned int k;

	fputs("| key | flag | role | default | range | how a change takes effect |\n"
	      "|---|---|---|---|---|---|\n",
	      f);
	for (k = 0; k < BL_S_COUNT; k++)
		if (!bl_setting(k)->test)
			put_row(f, k);
}

static char *read_file(const char *name)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen(name, "r");

	if (!f)
		fail_msg("%s: %s", name, strerror(errno));
	if (getdelim(&text, &size, 0, f) < 0)
		fail_msg("%s cannot be read", name);
	fclose(f);
	return text;
}

static void docs__table(void **state)
{
	static const char begin[] = "<!-- settings -->\n", end[] = "<!-- end of settings -->";
	char *page = read_file("docs/configuration.md"), *want = NULL, *at, *to;
	size_t size;
	FILE *f = open_memstream(&want, &size);

	(void)state;
	put_table(f);
	fclose(f);
	at = strstr(page, begin);
	to = strstr(page, end);
	assert_non_null(at);
	assert_non_null(to);
	*to = 0;
	assert_string_equal(at + strlen(begin), want);
	free(page);
	free(want);
}

static void docs__manual_pages(void **state)
{
	char *daemon = read_file("docs/barlined.8"), *command = read_file("docs/barline.1");
	unsigned int k;

	(void)state;
	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);
		char flag[48], key[48];

		/* test flags may stand in barlined's page alone */
		snprintf(flag, sizeof(flag), "-%s", s->flag ? s->flag : "");
		snprintf(key, sizeof(key), "%s", s->key ? s->key : "");
		if (s->flag && !strstr(daemon, flag))
			fail_msg("docs/barlined.8 lacks -%s", flag);
		if (s->flag && !s->daemon && !s->test && !strstr(command, flag))
			fail_msg("docs/barline.1 lacks -%s", flag);
		if (s->key && !strstr(daemon, key))
			fail_msg("docs/barlined.8 lacks the key %s", key);
	}
	free(daemon);
	free(command);
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__complete),
		cmocka_unit_test(values__file_and_flag),
		cmocka_unit_test(flags__of_one_role),
		cmocka_unit_test(check__before_anything),
		cmocka_unit_test(rows__can_be_fed_back),
		cmocka_unit_test(rows__have_each_setting),
		cmocka_unit_test(diff__names_each_change),
		cmocka_unit_test(docs__table),
		cmocka_unit_test(docs__manual_pages),
	};

	if (argc == 2 && !strcmp(argv[1], "--table")) {
		put_table(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
