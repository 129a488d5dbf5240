// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See reload.h. */
#include "loader/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/admission/admission_set.h"
#include "loader/auth.h"
#include "loader/config.h"
#include "loader/config_clock.h"
#include "loader/config_rows.h"
#include "loader/defaults.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_agent.h"
#include "loader/node_events.h"
#include "loader/node_priv.h"
#include "loader/order/keep.h"
#include "loader/order/limits.h"
#include "loader/order/void.h"
#include "loader/running.h"
#include "loader/spare.h"
#include "loader/switch_fdb.h"
#include "loader/switch_plan.h"
#include "loader/switch_ports.h"
#include "loader/switch_source.h"

/**
 * struct reload - a reload that is being done.
 * @now: the new configuration, with its defaults, and with ports and fdb.
 * @diff: what is different; @n rows
 */
struct reload {
	struct bl_node *node;
	struct bl_node_ref ref;
	struct bl_node_cfg now;
	const struct bl_config_diff *diff;
	int n;
};

/* Whether a setting of @section differs, or with @key that one. */
static bool differs(const struct reload *r, const char *section, const char *key)
{
	size_t len = strlen(section);
	int k;

	for (k = 0; k < r->n; k++) {
		const char *path = r->diff[k].path;

		if (len && (strncmp(path, section, len) || path[len] != '.'))
			continue;
		if (!key || !strcmp(path + (len ? len + 1 : 0), key))
			return true;
	}
	return false;
}

/* ---- steps that can fail, first ---- */

/* Reads the keys, also if their file has the same name as before. */
static int apply_keys(struct reload *r, struct bl_err *err)
{
	struct bl_node *n = r->node;
	char was[sizeof(n->cfg.auth.keys)];
	int rc;

	if (n->auth_fd < 0)
		return 0;
	memcpy(was, n->cfg.auth.keys, sizeof(was));
	memcpy(n->cfg.auth.keys, r->now.auth.keys, sizeof(was));
	rc = bl_auth_reload(n, err);
	if (rc)
		memcpy(n->cfg.auth.keys, was, sizeof(was));
	return rc;
}

/* The options of admission that differ, as `barline admission set` would be told them. */
static void collect_admission(const struct reload *r, struct bl_admission_set *set)
{
	const struct bl_admission_cfg *was = &r->node->given.admission, *now = &r->now.admission;
	unsigned int k;

	memset(set, 0, sizeof(*set));
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);
		bool top = k >= BL_AO_TOP;
		uint64_t a = top ? was->top.v[k - BL_AO_TOP] : bl_option_load(o, was),
			 b = top ? now->top.v[k - BL_AO_TOP] : bl_option_load(o, now);

		if (!o->set || o->kind == BL_OPTION_TEXT || o->kind == BL_OPTION_BLOCK || a == b)
			continue;
		if (!top && !differs(r, "admission", o->key))
			continue;
		if (top || o->add)
			b = b ? b - 1 : o->dflt;
		else if (!b && o->kind == BL_OPTION_NUMBER)
			b = o->dflt;
		bl_admission_put(set, k, b);
	}
}

static int change_admission(const struct reload *r, bool check, struct bl_err *err)
{
	struct bl_admission_set set;
	char said[1024];

	if (!r->now.admission.on || !differs(r, "admission", NULL))
		return 0;
	collect_admission(r, &set);
	set.check = check;
	return bl_admission_any(&set) ? bl_admission_change(&r->ref, &set, said, sizeof(said), err)
				      : 0;
}

static bool sessions_differ(const struct reload *r)
{
	return differs(r, "", "controllers") || differs(r, "", "insecure") ||
	       differs(r, "tls", NULL) || differs(r, "", "name");
}

static int apply_sessions(struct reload *r, struct bl_err *err)
{
	struct bl_node *n = r->node;
	struct bl_ctl_peers was = n->cfg.ctl;
	int rc;

	if (!sessions_differ(r))
		return 0;
	n->cfg.ctl = r->now.ctl;
	rc = bl_node_agent_renew(n, err);
	if (rc)
		n->cfg.ctl = was;
	return rc;
}

/* ---- the maps that programs read ---- */

static int write_switch_cfg(const struct reload *r, struct bl_err *err)
{
	const struct bl_node_cfg *c = &r->now;
	struct bl_sw_cfg sw;
	uint32_t zero = 0;

	/* read anew, because commands write it, too (order/tai.c) */
	if (bpf_map_lookup_elem(r->node->fence.cfg, &zero, &sw))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_SW_CFG,
			       strerror(errno));
	bl_switch_limits(c, &sw);
	return bl_map_set(r->node->fence.cfg, 0, &sw, BL_MAP_SW_CFG, err);
}

static int write_limits(const struct reload *r, struct bl_err *err)
{
	struct bl_node *n = r->node;

	if (n->cfg.role == BL_ROLE_SWITCH)
		return write_switch_cfg(r, err);
	n->host_cfg.dead_after_ns = r->now.dead_after_us * 1000ULL;
	return bl_map_set(n->host_cfg_fd, 0, &n->host_cfg, BL_MAP_HOST_CFG, err);
}

static int write_fdb(const struct reload *r, struct bl_err *err)
{
	struct bl_sw_port ports[BL_SW_PORTS_MAX];
	int fd, rc;

	if (!differs(r, "fdb", NULL))
		return 0;
	rc = bl_map_read_all(&r->ref, BL_MAP_SW_PORTS, sizeof(ports[0]), BL_SW_PORTS_MAX, ports,
			     err);
	if (rc)
		return rc;
	fd = bl_map_open(&r->ref, BL_MAP_SW_FDB, sizeof(struct bl_fdb_bucket), true, err);
	if (fd < 0)
		return fd;
	rc = bl_fdb_fill(&r->now, ports, fd, err);
	close(fd);
	return rc;
}

static int write_name(const struct reload *r, struct bl_err *err)
{
	struct bl_node *n = r->node;
	char name[sizeof(n->meta.name)] = "";
	int fd, rc;

	if (!differs(r, "", "name"))
		return 0;
	if (*r->now.name)
		snprintf(name, sizeof(name), "%s", r->now.name);
	else
		snprintf(name, sizeof(name), "%s-%08x", bl_role_name(n->cfg.role), n->meta.node_id);
	if (strcmp(name, n->meta.name))
		bl_node_events_rename(n, name);
	fd = bl_map_open(&r->ref, BL_MAP_META, sizeof(n->meta), true, err);
	if (fd < 0)
		return fd;
	rc = bl_map_set(fd, 0, &n->meta, BL_MAP_META, err);
	close(fd);
	return rc;
}

/* ---- the daemon itself ---- */

/* Takes over what can change live, and leaves what was found out at the start. */
static void take_settings(const struct reload *r)
{
	struct bl_node_cfg *c = &r->node->cfg;
	unsigned int k;

	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (s->change == BL_CHANGE_LIVE && s->kind != BL_SETTING_BLOCK)
			memcpy((char *)c + s->at, (const char *)&r->now + s->at, s->size);
	}
	c->ctl = r->now.ctl;
	c->clock_bound_default = r->now.clock_bound_default;
	bl_keep_change(r->node);
	if (r->node->limits)
		bl_limits_change(r->node);
	bl_voids_change(r->node);
	if (r->n) /* without a difference, what the spare was told is still so */
		bl_spare_renew(r->node);
}

static int apply_settings(struct reload *r, struct bl_err *err)
{
	int rc = apply_keys(r, err);

	if (!rc)
		rc = apply_sessions(r, err);
	if (!rc)
		rc = write_fdb(r, err); /* it writes nothing if the table is full */
	/* From here on only the kernel can refuse. */
	if (!rc)
		rc = bl_sources_more(r->node, &r->now, false, err);
	if (!rc)
		rc = write_limits(r, err);
	if (!rc)
		rc = change_admission(r, false, err);
	if (!rc)
		rc = write_name(r, err);
	if (!rc)
		take_settings(r);
	return rc;
}

/* New ports come before the settings, as fdb may name them, and ports leave after that. */
static int apply(struct reload *r, struct bl_err *err)
{
	struct bl_switch_plan *ports = NULL;
	int rc = change_admission(r, true, err);

	if (!rc)
		rc = bl_sources_more(r->node, &r->now, true, err);
	if (!rc)
		rc = bl_ports_plan(r->node, &r->now, &ports, err);
	if (!rc && ports)
		rc = bl_ports_add(r->node, ports, err);
	if (!rc) {
		rc = apply_settings(r, err);
		if (!rc && ports)
			rc = bl_ports_remove(r->node, ports, err);
		if (rc && ports)
			bl_ports_undo(r->node, ports);
	}
	free(ports);
	return rc;
}

/* ---- what is different ---- */

static void say_diff(FILE *say, const char *what, const struct bl_config_diff *d)
{
	if (say)
		fprintf(say, "%s\t%s\t%s\t%s\t%s\t%s\n", what, d->path, d->was ? d->was : "",
			d->now ? d->now : "", bl_change_name(d->change), d->why);
}

/* Returns 0, or -EPERM: a difference takes more than a reload. */
static int check_diff(const struct bl_config_diff *d, int n, FILE *say, struct bl_err *err)
{
	const struct bl_config_diff *first = NULL;
	bool more = false;
	int k;

	for (k = 0; k < n; k++) {
		if (d[k].change == BL_CHANGE_LIVE)
			continue;
		say_diff(say, "refused", &d[k]);
		if (first)
			more = true;
		else
			first = &d[k];
	}
	if (!first)
		return 0;
	return bl_change_refuse(first->path, more, first->change, first->why, err);
}

static void log_changes(const struct bl_node *n, const struct bl_config_diff *d, int count)
{
	int k;

	for (k = 0; k < count; k++)
		bl_log(BL_LOG_INFO, "%s: reloaded: %s is %s now, was %s", n->meta.name, d[k].path,
		       d[k].now ? d[k].now : "the default", d[k].was ? d[k].was : "the default");
}

/* Makes @now the configuration that was given. */
static int keep_given(struct bl_node *n, const struct bl_node_cfg *now, struct bl_err *err)
{
	struct bl_node_cfg given;
	int rc = bl_config_copy(&given, now, err);

	if (rc)
		return rc;
	bl_config_free(&n->given);
	n->given = given;
	return bl_running_write(n, err);
}

int bl_node_reload(struct bl_node *n, const struct bl_node_cfg *now, FILE *say, struct bl_err *err)
{
	struct reload r = {
		.node = n,
		.ref = { .role = n->cfg.role, .netns_ino = n->netns_ino, .meta = n->meta },
		.now = *now
	};
	struct bl_config_rows a = {}, b = {};
	struct bl_config_diff *diff = NULL;
	struct bl_err why;
	int rc, k;

	if (now->role != n->cfg.role)
		return bl_fail(err, EPERM,
			       "the node is a %s and the file is for a %s; detach it "
			       "to change that",
			       bl_role_name(n->cfg.role), bl_role_name(now->role));
	snprintf(r.ref.dir, sizeof(r.ref.dir), "%s", n->dir);
	rc = bl_config_rows(&n->given, true, &a, err);
	if (!rc)
		rc = bl_config_rows(now, true, &b, err);
	if (!rc) {
		r.n = bl_config_diff(&n->given, &a, now, &b, &diff);
		r.diff = diff;
		rc = r.n < 0 ? bl_fail(err, ENOMEM, "out of memory")
			     : check_diff(diff, r.n, say, err);
	}
	bl_clock_default_source(&r.now);
	bl_node_defaults(&r.now);
	if (!rc)
		rc = apply(&r, err);
	if (!rc && keep_given(n, now, &why))
		bl_log(BL_LOG_WARN, "%s: `barline config` shows the configuration of before: %s",
		       n->meta.name, why.text);
	if (!rc)
		log_changes(n, diff, r.n);
	for (k = 0; k < r.n && !rc; k++)
		say_diff(say, "changed", &diff[k]);
	free(diff);
	bl_config_rows_free(&a);
	bl_config_rows_free(&b);
	return rc ? rc : r.n;
}
