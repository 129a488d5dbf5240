// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline config show, diff, reload: the configuration of nodes that run (loader/running.h), and
 * what a file would change.
 */
#include "cli/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/reload.h"
#include "loader/config.h"
#include "loader/config_check.h"
#include "loader/config_rows.h"
#include "loader/control.h"
#include "loader/running.h"

/* ---- printing ---- */

static json_t *row_value(const struct bl_config_row *r)
{
	json_t *v = r->kind == BL_ROW_TEXT ? NULL : json_loads(r->value, JSON_DECODE_ANY, NULL);

	return v ? v : json_string(r->value);
}

/* The object or list @key of @o, which is made if it is missing. */
static json_t *member(json_t *o, const char *key, json_t *(*make)(void))
{
	json_t *m = json_object_get(o, key);

	if (!m) {
		m = make();
		json_object_set_new(o, key, m);
	}
	return m;
}

/* Where a row goes: the top, the mapping of its section, or the item of its list. */
static json_t *place_of(json_t *top, const struct bl_config_row *r, const char **item)
{
	json_t *list;

	if (!*r->section)
		return top;
	if (!*r->item)
		return member(top, r->section, json_object);
	list = member(top, r->section, json_array);
	if (!*item || strcmp(*item, r->item))
		json_array_append_new(list, json_object());
	*item = r->item;
	return json_array_get(list, json_array_size(list) - 1);
}

/* As the file would be in JSON, and the paths of what nobody has written. */
static json_t *rows_json(const struct bl_config_rows *rows, json_t *defaults)
{
	json_t *top = json_object();
	const char *item = NULL;
	char path[96];
	unsigned int k;

	for (k = 0; k < rows->n; k++) {
		const struct bl_config_row *r = &rows->v[k];

		json_object_set_new(place_of(top, r, &item), r->key, row_value(r));
		if (r->dflt)
			json_array_append_new(
				defaults, json_string(bl_config_row_path(r, path, sizeof(path))));
	}
	return top;
}

static json_t *config_json(const struct bl_config_rows *rows, const char *name)
{
	json_t *defaults = json_array(), *o = json_object();

	if (name)
		json_object_set_new(o, "node", json_string(name));
	json_object_set_new(o, "config", rows_json(rows, defaults));
	json_object_set_new(o, "defaults", defaults);
	return o;
}

int config_print(const struct bl_node_cfg *c, const char *name)
{
	struct bl_config_rows rows;
	struct bl_err err;

	if (bl_config_rows(c, true, &rows, &err))
		return cli_fail("%s", err.text);
	if (cli.json) {
		cli_json(config_json(&rows, name));
	} else {
		if (name)
			printf("# %s\n", name);
		bl_config_print(stdout, &rows);
	}
	bl_config_rows_free(&rows);
	return 0;
}

/* ---- which nodes ---- */

struct config_args {
	const char *file;  /* NULL: of running nodes */
	enum bl_role role; /* BL_ROLE_NONE: both */
	bool needs_file;
};

static error_t parse_config(int key, char *arg, struct argp_state *state)
{
	struct config_args *a = state->input;

	switch (key) {
	case 'f':
		a->file = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->needs_file ? a->file != NULL : a->role != BL_ROLE_NONE)
			return ARGP_ERR_UNKNOWN;
		if (a->needs_file)
			a->file = arg;
		else if (!strcmp(arg, "host") || !strcmp(arg, "switch"))
			a->role = *arg == 'h' ? BL_ROLE_HOST : BL_ROLE_SWITCH;
		else
			argp_error(state, "\"%s\" is neither host nor switch", arg);
		return 0;
	case ARGP_KEY_END:
		if (a->needs_file && !a->file)
			argp_error(state, "which file is to be compared with the running node?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * Nodes of this network namespace with the role @role. Returns their number, or -1 after a message.
 */
static int find_nodes(enum bl_role role, struct bl_node_ref **out)
{
	int n = nodes_here(out, false), k, found = 0;

	for (k = 0; k < n; k++)
		if (role == BL_ROLE_NONE || (*out)[k].role == role)
			(*out)[found++] = (*out)[k];
	if (n <= 0 || found)
		return n < 0 ? -1 : found;
	free(*out);
	cli_fail("no %s runs in this network namespace; `barline show nodes` lists what does",
		 role_name(role));
	return -1;
}

/* Reads a file as a daemon would. Returns 0, or CLI_USAGE after a message. */
static int load_file(const char *path, struct bl_node_cfg *c)
{
	struct bl_err err;

	*c = (struct bl_node_cfg){};
	if (bl_config_load(c, path, &err))
		return cli_usage("%s", err.text);
	if (!bl_config_check(c, &err))
		return 0;
	bl_config_free(c);
	return cli_usage("%s: %s", path, err.text);
}

/* ---- show ---- */

static int show_running(enum bl_role role)
{
	json_t *list = json_array();
	struct bl_node_ref *v;
	int n = find_nodes(role, &v), k, rc = 0;

	for (k = 0; k < n && !rc; k++) {
		struct bl_config_rows rows;
		struct bl_node_cfg c = {};
		struct bl_err err;

		rc = bl_running_load(v[k].role, v[k].netns_ino, &c, &err);
		if (!rc)
			rc = bl_config_rows(&c, true, &rows, &err);
		bl_config_free(&c);
		if (rc) {
			rc = cli_fail("%s", err.text);
			break;
		}
		if (cli.json) {
			json_array_append_new(list, config_json(&rows, v[k].meta.name));
		} else {
			printf("%s# %s\n", k ? "---\n" : "", v[k].meta.name);
			bl_config_print(stdout, &rows);
		}
		bl_config_rows_free(&rows);
	}
	if (n >= 0)
		free(v);
	if (cli.json && n >= 0 && !rc)
		cli_json(json_pack("{s:O}", "nodes", list));
	json_decref(list);
	return n < 0 ? 1 : rc;
}

int cmd_config_show(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "file", 'f', "FILE", 0, "of this file, not of a running node", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_config,
					  .args_doc = "[switch|host]",
					  .children = cmd_globals,
					  .doc = "barline config show - the configuration in "
						 "force, as a file that can be "
						 "fed back\vValues that nobody has written are "
						 "marked as defaults. The "
						 "daemon writes its configuration down when it has "
						 "started or reloaded, so "
						 "this does not wait for the daemon." };
	struct config_args a = {};
	struct bl_node_cfg c;
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.file)
		return show_running(a.role);
	rc = load_file(a.file, &c);
	if (rc)
		return rc;
	rc = config_print(&c, NULL);
	bl_config_free(&c);
	return rc;
}

/* ---- diff ---- */

static void print_diff(const struct bl_config_diff *d)
{
	if (d->was)
		printf("- %s: %s\n", d->path, d->was);
	if (d->now)
		printf("+ %s: %s\n", d->path, d->now);
	printf("  %s: %s\n",
	       d->change == BL_CHANGE_LIVE      ? "a reload applies it"
	       : d->change == BL_CHANGE_RESTART ? "takes a restart of the daemon"
						: "takes a detach and a new start",
	       d->why);
}

static json_t *diff_json(const struct bl_config_diff *d)
{
	return json_pack("{s:s, s:s?, s:s?, s:s, s:s}", "setting", d->path, "was", d->was, "now",
			 d->now, "change", bl_change_name(d->change), "why", d->why);
}

static int compare(const char *name, const struct bl_node_cfg *was, const struct bl_node_cfg *now)
{
	struct bl_config_rows a = {}, b = {};
	struct bl_config_diff *v = NULL;
	enum bl_change worst = BL_CHANGE_LIVE;
	struct bl_err err;
	json_t *list;
	int n = -1, k;

	if (!bl_config_rows(was, true, &a, &err) && !bl_config_rows(now, true, &b, &err))
		n = bl_config_diff(was, &a, now, &b, &v);
	list = json_array();
	for (k = 0; k < n; k++) {
		worst = v[k].change > worst ? v[k].change : worst;
		if (cli.json)
			json_array_append_new(list, diff_json(&v[k]));
		else
			print_diff(&v[k]);
	}
	if (n >= 0 && cli.json)
		cli_json(json_pack("{s:s, s:s, s:O}", "node", name, "takes",
				   n ? bl_change_name(worst) : "nothing", "differences", list));
	else if (n == 0)
		printf("%s runs with the configuration of the file\n", name);
	json_decref(list);
	free(v);
	bl_config_rows_free(&a);
	bl_config_rows_free(&b);
	return n < 0 ? cli_fail("out of memory") : 0;
}

int cmd_config_diff(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_config,
					  .args_doc = "FILE",
					  .children = cmd_globals,
					  .doc = "barline config diff - what a file would change "
						 "of the node that runs\vThe "
						 "running node is compared, with what flags of its "
						 "daemon said. Each "
						 "difference is shown with what makes it take "
						 "effect: a reload, a restart "
						 "of the daemon, or a detach and a new start." };
	struct config_args a = { .needs_file = true };
	struct bl_node_cfg now, was = {};
	struct bl_node_ref *v;
	struct bl_err err;
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	rc = load_file(a.file, &now);
	if (rc)
		return rc;
	if (find_nodes(now.role, &v) < 0) {
		bl_config_free(&now);
		return 1;
	}
	if (bl_running_load(v->role, v->netns_ino, &was, &err))
		rc = cli_fail("%s", err.text);
	else
		rc = compare(v->meta.name, &was, &now);
	free(v);
	bl_config_free(&now);
	bl_config_free(&was);
	return rc;
}

/* ---- reload ---- */

#define RELOAD_WAIT_MS 15000

/* Prints one line of the answer, or adds it to @changes. Returns the line's first word. */
static const char *take_line(const char *node, char *line, json_t *changes)
{
	char *field[6] = { line }, *save = line;
	json_t *row;
	unsigned int k;

	for (k = 0; k < 6 && (field[k] = strsep(&save, "\t")); k++)
		;
	if (k < 6)
		return field[0];
	row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "what", field[0], "setting", field[1],
			"was", field[2], "now", field[3], "change", field[4], "why", field[5]);
	reload_print(node, row);
	json_array_append_new(changes, row);
	return field[0];
}

/* Returns the exit status, after messages. */
static int reload_node(const struct bl_node_ref *v, json_t *list)
{
	static char answer[BL_CONTROL_ANSWER_MAX];
	json_t *changes = json_array();
	char *at = answer, *line;
	const char *error = NULL;
	struct bl_err err;
	bool ok = false;
	int rc;

	rc = bl_control_ask(v->role, v->netns_ino, "reload", answer, RELOAD_WAIT_MS, &err);
	while (!rc && (line = strsep(&at, "\n"))) {
		const char *what = take_line(v->meta.name, line, changes);

		ok |= !strcmp(what, "ok");
		if (!strcmp(what, "error"))
			error = what + strlen(what) + 1;
	}
	if (!ok && !error)
		error = rc ? err.text : "the daemon's answer has no end";
	if (!cli.json && ok && !json_array_size(changes))
		printf("%s: nothing is different\n", v->meta.name);
	json_array_append_new(list, json_pack("{s:s, s:b, s:s?, s:O}", "node", v->meta.name,
					      "reloaded", ok, "error", error, "changes", changes));
	json_decref(changes);
	if (ok)
		return 0;
	if (!cli.json)
		cli_fail("%s: %s", v->meta.name, error);
	return 1;
}

int cmd_config_reload(int argc, char **argv)
{
	static const struct argp_option options[] = { { "file", 'f', "FILE", 0,
							"validate this file first, and reload only "
							"the node of its role",
							0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_config,
					  .args_doc = "[switch|host]",
					  .children = cmd_globals,
					  .doc = "barline config reload - have the daemon read its "
						 "file again, and wait for "
						 "the result\vAll that is different is applied, or "
						 "nothing: if a difference "
						 "takes a restart or a detach, each one is named, "
						 "and the node goes on as "
						 "before. docs/configuration.md lists what changes "
						 "how." };
	struct config_args a = {};
	struct bl_node_ref *v;
	json_t *list;
	int n, k, rc = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (a.file) {
		struct bl_node_cfg c;

		rc = load_file(a.file, &c);
		if (rc)
			return rc;
		a.role = c.role;
		bl_config_free(&c);
	}
	n = find_nodes(a.role, &v);
	if (n < 0)
		return 1;
	list = json_array();
	for (k = 0; k < n; k++)
		rc |= reload_node(&v[k], list);
	free(v);
	if (cli.json)
		cli_json(json_pack("{s:O}", "nodes", list));
	json_decref(list);
	return rc;
}
