// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config_rows.h. */
#include "loader/config_rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "loader/admission/admission.h"
#include "loader/admission/options.h"
#include "loader/config_clock.h"
#include "loader/defaults.h"
#include "maps/clock_abi.h"

#define AT_START "it is set up at the start"

/* ---- making rows ---- */

struct maker {
	struct bl_config_rows *rows;
	bool failed;
};

static struct bl_config_row *add(struct maker *m, const char *section, const char *key)
{
	static struct bl_config_row spare;
	struct bl_config_row *v = realloc(m->rows->v, (m->rows->n + 1) * sizeof(*v));

	if (!v) {
		m->failed = true;
		return &spare;
	}
	m->rows->v = v;
	v += m->rows->n++;
	*v = (struct bl_config_row){
		.section = section, .key = key, .change = BL_CHANGE_RESTART, .why = AT_START
	};
	return v;
}

__attribute__((format(printf, 4, 5))) static void fill(struct maker *m, struct bl_config_row *r,
						       enum bl_row_kind kind, const char *fmt, ...)
{
	va_list ap;

	r->kind = kind;
	va_start(ap, fmt);
	if (vasprintf(&r->value, fmt, ap) < 0) {
		r->value = NULL;
		m->failed = true;
	}
	va_end(ap);
}

/* Settings that exist with one source of the clock only. */
static bool applies(unsigned int id, const struct bl_node_cfg *whole)
{
	switch (id) {
	case BL_S_CLOCK_SOCKET:
	case BL_S_CLOCK_PHC:
	case BL_S_CLOCK_DOMAIN:
	case BL_S_CLOCK_TRANSPORT:
	case BL_S_CLOCK_GRANDMASTER:
		return whole->clock_source == BL_CLOCK_PTP4L;
	case BL_S_CLOCK_FILE:
		return whole->clock_source == BL_CLOCK_CLOCKBOUND;
	case BL_S_CLOCK_MAX_BOUND:
		return whole->clock_source != BL_CLOCK_TRUST;
	case BL_S_TLS_UNNAMED:
		return *whole->ctl.ca;
	}
	return true;
}

static void add_setting(struct maker *m, unsigned int id, const struct bl_node_cfg *c,
			const struct bl_node_cfg *whole, bool defaults)
{
	const struct bl_setting *s = bl_setting(id);
	bool given = bl_setting_given(s, c);
	struct bl_config_row *r;
	char value[256];

	if (!s->key || !applies(id, whole) || (!given && !defaults))
		return;
	/* a default that is found out at the start */
	if (!given && s->dflt_text && !bl_setting_given(s, whole))
		return;
	bl_setting_value(s, given ? c : whole, value, sizeof(value));
	if (!*value)
		return;
	r = add(m, s->section ? s->section : "", s->key);
	r->dflt = !given;
	r->change = s->change;
	r->why = s->why;
	fill(m, r,
	     s->kind == BL_SETTING_TEXT || s->kind == BL_SETTING_NAME ? BL_ROW_TEXT : BL_ROW_PLAIN,
	     "%s", value);
}

/* A list of the top, as "[0, 1]". */
static FILE *begin_list(char **text, size_t *size)
{
	FILE *f = open_memstream(text, size);

	if (f)
		fputc('[', f);
	return f;
}

static void end_list(struct maker *m, unsigned int id, FILE *f, char **text)
{
	const struct bl_setting *s = bl_setting(id);
	struct bl_config_row *r;

	if (!f) {
		m->failed = true;
		return;
	}
	fputc(']', f);
	fclose(f);
	r = add(m, "", s->key);
	r->change = s->change;
	r->why = s->why;
	r->kind = BL_ROW_FLOW;
	r->value = *text;
}

static void add_lists(struct maker *m, unsigned int id, const struct bl_node_cfg *c)
{
	char *text = NULL;
	size_t size;
	unsigned int k;
	FILE *f;

	if (!bl_setting_given(bl_setting(id), c))
		return;
	f = begin_list(&text, &size);
	if (f && id == BL_S_ACCEPT)
		fputs("\"reordering\"", f);
	for (k = 0; f && id == BL_S_CPUS && k < c->ncpus; k++)
		fprintf(f, "%s%d", k ? ", " : "", c->cpus[k]);
	for (k = 0; f && id == BL_S_CONTROLLERS && k < c->ctl.n; k++)
		fprintf(f, "%s\"%s\"", k ? ", " : "", c->ctl.addr[k]);
	end_list(m, id, f, &text);
}

static struct bl_config_row *add_item(struct maker *m, const char *section, const char *item,
				      const char *key)
{
	struct bl_config_row *r = add(m, section, key);

	snprintf(r->item, sizeof(r->item), "%s", item);
	return r;
}

static void put_mac(FILE *f, const uint8_t mac[6])
{
	fprintf(f, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

static void add_addresses(struct maker *m, const struct bl_port_cfg *p)
{
	struct bl_config_row *r;
	char *text = NULL, ip[INET6_ADDRSTRLEN];
	unsigned int k;
	size_t size;
	FILE *f;

	if (!p->source_given)
		return;
	f = begin_list(&text, &size);
	if (!f) {
		m->failed = true;
		return;
	}
	if (p->source != BL_SOURCE_LIST)
		fprintf(f, "\"%s\"", p->source == BL_SOURCE_ANY ? "any" : "learn");
	for (k = 0; p->source == BL_SOURCE_LIST && k < p->nmac; k++) {
		fputs(k ? ", \"" : "\"", f);
		put_mac(f, p->mac[k]);
		fputc('"', f);
	}
	for (k = 0; p->source == BL_SOURCE_LIST && k < p->nip; k++) {
		fprintf(f, ", \"%s\"", bl_ip_text(p->ip[k], ip));
	}
	fputc(']', f);
	fclose(f);
	r = add_item(m, "ports", p->ifname, "addresses");
	r->why = "programs remember what they have accepted, so a running list can only grow";
	r->kind = BL_ROW_FLOW;
	r->value = text;
}

/* As people write it; it is read back as the same number of bits per second. */
static const char *rate_text(uint64_t bps, char *buf, size_t size)
{
	bl_option_value(bl_option(BL_AO_RATE), bps, buf, size);
	return buf;
}

static void add_ports(struct maker *m, const struct bl_node_cfg *c)
{
	static const char *const roles[] = {
		[BL_PORT_HOST] = "host", [BL_PORT_UP] = "up", [BL_PORT_DOWN] = "down"
	};
	char rate[32];
	unsigned int k, first;

	for (k = 0; k < c->ports_count; k++) {
		const struct bl_port_cfg *p = &c->ports[k];

		first = m->rows->n;
		fill(m, add_item(m, "ports", p->ifname, "interface"), BL_ROW_TEXT, "%s", p->ifname);
		fill(m, add_item(m, "ports", p->ifname, "role"), BL_ROW_TEXT, "%s",
		     roles[p->role % 4] ? roles[p->role % 4] : "");
		if (p->home_cpu >= 0)
			fill(m, add_item(m, "ports", p->ifname, "home_cpu"), BL_ROW_PLAIN, "%d",
			     p->home_cpu);
		if (p->lanes)
			fill(m, add_item(m, "ports", p->ifname, "lanes"), BL_ROW_PLAIN, "%u",
			     p->lanes);
		if (p->rate_bps)
			fill(m, add_item(m, "ports", p->ifname, "rate"), BL_ROW_TEXT, "%s",
			     rate_text(p->rate_bps, rate, sizeof(rate)));
		if (p->outside)
			fill(m, add_item(m, "ports", p->ifname, "outside"), BL_ROW_PLAIN, "true");
		if (p->auth_off)
			fill(m, add_item(m, "ports", p->ifname, "auth"), BL_ROW_TEXT, "off");
		if (*p->chain)
			fill(m, add_item(m, "ports", p->ifname, "chain"), BL_ROW_TEXT, "%s",
			     p->chain);
		for (; first < m->rows->n; first++)
			m->rows->v[first].why = "the port's tables are made at the start";
		add_addresses(m, p);
	}
}

static void add_fdb(struct maker *m, const struct bl_node_cfg *c)
{
	const struct bl_setting *s = bl_setting(BL_S_FDB);
	char mac[20];
	unsigned int k;

	for (k = 0; k < c->fdb_count; k++) {
		const uint8_t *a = c->fdb[k].mac;
		struct bl_config_row *r;

		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3],
			 a[4], a[5]);
		r = add_item(m, "fdb", mac, "mac");
		r->change = s->change;
		r->why = s->why;
		fill(m, r, BL_ROW_TEXT, "%s", mac);
		r = add_item(m, "fdb", mac, "port");
		r->change = s->change;
		r->why = s->why;
		fill(m, r, BL_ROW_TEXT, "%s", c->fdb[k].ifname);
	}
}

/* ---- admission ---- */

static void add_limits(struct maker *m, const struct bl_admission_cfg *a)
{
	struct bl_config_row *r;
	char *text = NULL;
	unsigned int k, n = 0;
	size_t size;
	FILE *f = begin_list(&text, &size);

	for (k = 0; f && k < BL_CL_COUNT; k++) {
		const struct bl_limit_cfg *l = &a->limit[k];

		if (!l->frames && !l->bytes && !l->mark_bytes)
			continue;
		fprintf(f, "%s{\"class\": \"%s\"", n++ ? ", " : "", bl_class_name(k));
		if (l->frames)
			fprintf(f, ", \"frames\": %u", l->frames);
		if (l->bytes)
			fprintf(f, ", \"bytes\": %u", l->bytes);
		if (l->mark_bytes)
			fprintf(f, ", \"mark_bytes\": %u", l->mark_bytes);
		fputc('}', f);
	}
	m->failed |= !f;
	if (f) {
		fputc(']', f);
		fclose(f);
	}
	if (!n) {
		free(text);
		return;
	}
	r = add(m, "admission", bl_option(BL_AO_LIMITS)->key);
	r->kind = BL_ROW_FLOW;
	r->value = text;
}

static void put_rules(FILE *f, const struct bl_top_opts *o)
{
	unsigned int k;

	for (k = 0; k < o->nrules; k++) {
		const struct bl_top_rule *r = &o->rules[k];

		fprintf(f, "%s{\"port\": %u", k ? ", " : "", r->port);
		if (r->proto)
			fprintf(f, ", \"protocol\": \"%s\"",
				r->proto == IPPROTO_TCP ? "tcp" : "udp");
		if (r->bytes)
			fprintf(f, ", \"bytes\": %" PRIu64, (uint64_t)r->bytes);
		if (r->deadline_us)
			fprintf(f, ", \"deadline_us\": %u", r->deadline_us);
		if (r->coflow)
			fprintf(f, ", \"coflow\": %u", r->coflow);
		if (r->flags & BL_TOP_F_RESEND)
			fputs(", \"resend\": true", f);
		fputc('}', f);
	}
}

static void add_top(struct maker *m, const struct bl_top_opts *o)
{
	struct bl_config_row *r;
	char *text = NULL, value[48];
	unsigned int k, n = 0;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f)
		fputc('{', f);
	for (k = 0; f && k < BL_TOP_O_COUNT; k++) {
		bool name = bl_option(BL_AO_TOP + k)->kind == BL_OPTION_NAME;

		if (o->v[k])
			fprintf(f, "%s\"%s\": %s%s%s", n++ ? ", " : "", bl_top_option_key(k),
				name ? "\"" : "",
				bl_top_option_value(k, o->v[k] - 1, value, sizeof(value)),
				name ? "\"" : "");
	}
	if (f && o->nrules) {
		fprintf(f, "%s\"rules\": [", n++ ? ", " : "");
		put_rules(f, o);
		fputc(']', f);
	}
	m->failed |= !f;
	if (f) {
		fputc('}', f);
		fclose(f);
	}
	if (!n) {
		free(text);
		return;
	}
	r = add(m, "admission", bl_option(BL_AO_TOP_MAP)->key);
	r->kind = BL_ROW_FLOW;
	r->value = text;
	r->change = BL_CHANGE_LIVE;
	r->why = "each flow is treated by the old value or by the new one; rules take a restart";
}

static void add_option(struct maker *m, unsigned int id, const struct bl_admission_cfg *a,
		       bool defaults)
{
	const struct bl_option *o = bl_option(id);
	struct bl_config_row *r;
	uint64_t v = bl_option_load(o, a);
	bool given = v || id == BL_AO_POLICY;
	char value[64];

	if (o->kind == BL_OPTION_TEXT) {
		if (!*((const char *)a + o->at))
			return;
		fill(m, add(m, "admission", o->key), BL_ROW_TEXT, "%s", (const char *)a + o->at);
		return;
	}
	if (!given && (!defaults || o->kind != BL_OPTION_NUMBER || o->dflt_text ||
		       (o->policies && strcmp(o->policies, bl_policy_name(a->policy)))))
		return;
	r = add(m, "admission", o->key);
	r->dflt = !given;
	if (o->set) {
		r->change = BL_CHANGE_LIVE;
		r->why = "each frame is treated by the old value or by the new one";
	}
	v = given ? v - (v ? o->add : 0) : o->dflt;
	if (o->kind == BL_OPTION_TRUTH)
		fill(m, r, BL_ROW_PLAIN, "%s", v ? "true" : "false");
	else
		fill(m, r, o->kind == BL_OPTION_NUMBER ? BL_ROW_PLAIN : BL_ROW_TEXT, "%s",
		     bl_option_value(o, v, value, sizeof(value)));
}

static void add_admission(struct maker *m, const struct bl_node_cfg *c, bool defaults)
{
	const unsigned int own = c->role == BL_ROLE_HOST ? BL_OPTION_HOSTS : BL_OPTION_SWITCHES;
	unsigned int k;

	if (!c->admission.on)
		return;
	for (k = 0; k < BL_AO_TOP; k++) {
		if (!(bl_option(k)->roles & own))
			continue;
		if (k == BL_AO_LIMITS)
			add_limits(m, &c->admission);
		else if (k == BL_AO_TOP_MAP)
			add_top(m, &c->admission.top);
		else
			add_option(m, k, &c->admission, defaults);
	}
}

int bl_config_rows(const struct bl_node_cfg *c, bool defaults, struct bl_config_rows *out,
		   struct bl_err *err)
{
	const unsigned int own = c->role == BL_ROLE_HOST ? BL_SETTING_HOSTS : BL_SETTING_SWITCHES;
	struct bl_node_cfg whole = *c;
	struct maker m = { .rows = out };
	unsigned int k;

	*out = (struct bl_config_rows){};
	bl_clock_default_source(&whole);
	bl_node_defaults(&whole);
	for (k = 0; k < BL_S_COUNT; k++) {
		if (!(bl_setting(k)->roles & own))
			continue;
		if (bl_setting(k)->kind != BL_SETTING_BLOCK)
			add_setting(&m, k, c, &whole, defaults);
		else if (k == BL_S_PORTS)
			add_ports(&m, c);
		else if (k == BL_S_FDB)
			add_fdb(&m, c);
		else if (k == BL_S_ADMISSION)
			add_admission(&m, c, defaults);
		else
			add_lists(&m, k, c);
	}
	if (!m.failed)
		return 0;
	bl_config_rows_free(out);
	return bl_fail(err, ENOMEM, "out of memory");
}

void bl_config_rows_free(struct bl_config_rows *r)
{
	while (r->n)
		free(r->v[--r->n].value);
	free(r->v);
	r->v = NULL;
}

/* ---- texts ---- */

const char *bl_config_row_path(const struct bl_config_row *r, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s%s%s", r->section, *r->section ? "." : "", r->item,
		 *r->item ? "." : "", r->key);
	return buf;
}

/* Whether YAML reads @s as this text without quotes. */
static bool is_plain(const char *s)
{
	if (!isalnum((unsigned char)*s) && *s != '/')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_./-+%", *s) &&
		    (*s != ':' || !isalnum((unsigned char)s[1])))
			return false;
	return true;
}

static void put_value(FILE *f, const struct bl_config_row *r)
{
	const char *s;

	if (r->kind != BL_ROW_TEXT || is_plain(r->value)) {
		fputs(r->value, f);
		return;
	}
	fputc('"', f);
	for (s = r->value; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

void bl_config_print(FILE *f, const struct bl_config_rows *r)
{
	const char *section = "", *item = "";
	unsigned int k;

	for (k = 0; k < r->n; k++) {
		const struct bl_config_row *row = &r->v[k];

		if (*row->section && strcmp(section, row->section)) {
			fprintf(f, "%s:\n", row->section);
			item = "";
		}
		section = row->section;
		if (*row->item)
			fprintf(f, "  %s ", strcmp(item, row->item) ? "-" : " ");
		else if (*section)
			fputs("  ", f);
		item = row->item;
		fprintf(f, "%s: ", row->key);
		put_value(f, row);
		fputs(row->dflt ? " # default\n" : "\n", f);
	}
}

/* ---- differences ---- */

static const struct bl_config_row *find(const struct bl_config_rows *r,
					const struct bl_config_row *like)
{
	unsigned int k;

	for (k = 0; k < r->n; k++)
		if (!strcmp(r->v[k].section, like->section) && !strcmp(r->v[k].item, like->item) &&
		    !strcmp(r->v[k].key, like->key))
			return &r->v[k];
	return NULL;
}

/* Whether both lists of addresses are configured, and @now has all that @was has. */
static bool only_more(const struct bl_port_cfg *was, const struct bl_port_cfg *now)
{
	unsigned int k, j;

	if (!was->source_given || was->source != BL_SOURCE_LIST || !now->source_given ||
	    now->source != BL_SOURCE_LIST)
		return false;
	for (k = 0; k < was->nmac; k++) {
		for (j = 0; j < now->nmac && memcmp(was->mac[k], now->mac[j], 6); j++)
			;
		if (j == now->nmac)
			return false;
	}
	for (k = 0; k < was->nip; k++) {
		for (j = 0; j < now->nip && memcmp(was->ip[k], now->ip[j], 16); j++)
			;
		if (j == now->nip)
			return false;
	}
	return true;
}

/* A port that comes or leaves (switch_ports.c), or one that stays and is another one now. */
static void judge_port(struct bl_config_diff *d, const char *name, const char *key,
		       const struct bl_node_cfg *was, const struct bl_node_cfg *now)
{
	const struct bl_port_cfg *a = bl_cfg_port(was, name), *b = bl_cfg_port(now, name);

	if (a && b && !strcmp(key, "addresses") && only_more(a, b)) {
		d->change = BL_CHANGE_LIVE;
		d->why = "frames from the new addresses are accepted at once";
	}
	if (a && b)
		return;
	d->change = BL_CHANGE_RESTART;
	if (was->admission.on || now->admission.on)
		d->why = "with admission, queues and paths are made for the ports at the start";
	else if (was->auth.mode != BL_AUTH_OFF || now->auth.mode != BL_AUTH_OFF)
		d->why = "with authentication, links get their keys at the start";
	else if (*was->chain || *now->chain || *(a ? a : b)->chain)
		d->why = "chained programs are entered at the start";
	else {
		d->change = BL_CHANGE_LIVE;
		d->why = a ? "the port leaves, which must not be in use"
			   : "the port joins, as a machine that is switched on";
	}
}

/* What a change of this row takes where the row alone does not say it. */
static void judge(struct bl_config_diff *d, const struct bl_config_row *row,
		  const struct bl_node_cfg *was, const struct bl_node_cfg *now)
{
	d->change = row->change;
	d->why = row->why;
	if (!strcmp(row->section, "admission") && d->change == BL_CHANGE_LIVE) {
		if (was->admission.on != now->admission.on) {
			d->change = BL_CHANGE_RESTART;
			d->why = bl_setting(BL_S_ADMISSION)->why;
		} else if (!d->now) {
			d->change = BL_CHANGE_RESTART;
			d->why = "its default is worked out at the start";
		} else if (!strcmp(row->key, bl_option(BL_AO_TOP_MAP)->key) &&
			   (was->admission.top.nrules != now->admission.top.nrules ||
			    memcmp(was->admission.top.rules, now->admission.top.rules,
				   sizeof(was->admission.top.rules)))) {
			d->change = BL_CHANGE_RESTART;
			d->why = "rules of ports are filled in at the start";
		}
	}
	if (!strcmp(row->section, "ports"))
		judge_port(d, row->item, row->key, was, now);
	if (!strcmp(row->key, "send_limit_ms") &&
	    (was->send_limit_ms < 0) != (now->send_limit_ms < 0)) {
		d->change = BL_CHANGE_RESTART;
		d->why = "sends are watched from the start on, or not at all";
	}
	if (!strcmp(row->key, "controllers") && !was->ctl.n != !now->ctl.n) {
		d->change = BL_CHANGE_RESTART;
		d->why = "with controllers failures are settled in another way than without";
	}
}

int bl_config_diff(const struct bl_node_cfg *was_cfg, const struct bl_config_rows *was,
		   const struct bl_node_cfg *now_cfg, const struct bl_config_rows *now,
		   struct bl_config_diff **out)
{
	struct bl_config_diff *v = calloc(was->n + now->n + 1, sizeof(*v));
	unsigned int k;
	int n = 0;

	*out = v;
	if (!v)
		return -ENOMEM;
	for (k = 0; k < was->n + now->n; k++) {
		const struct bl_config_row *r = k < was->n ? &was->v[k] : &now->v[k - was->n],
					   *other = find(k < was->n ? now : was, r);
		const struct bl_config_row *a = k < was->n ? r : other, *b = k < was->n ? other : r;

		/* the second half is for rows that only @now has */
		if ((k >= was->n && other) || (a && b && !strcmp(a->value, b->value)))
			continue;
		/* a default that follows from another row, or is of one that is written no more */
		if ((!a || a->dflt) && (!b || b->dflt))
			continue;
		bl_config_row_path(r, v[n].path, sizeof(v[n].path));
		v[n].was = a ? a->value : NULL;
		v[n].now = b ? b->value : NULL;
		judge(&v[n], r, was_cfg, now_cfg);
		n++;
	}
	return n;
}
