/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline admission set, show: changes and shows the admission settings of the running nodes of a
 * network namespace. Options and rows derive from the table of options
 * (loader/admission/options.h).
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/rate.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/status.h"
#include "core/policy_core.h"
#include "loader/admission/apart.h"
#include "maps/top_token_abi.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"
#include "loader/control.h"
#include "maps/host_abi.h"

/* a controller allows each of three steps one second, unless answer_ms in its file differs */
#define RACK_WAIT_MS 10000
#define RACK_POLL_US 5000

enum { KEY_RACK = 256, KEY_OPTION };

/* groups of --help */
enum { GROUP_BOTH, GROUP_HOSTS, GROUP_SWITCHES, GROUP_TOP };

static int help_group(unsigned int id)
{
	const struct bl_option *o = bl_option(id);

	return id >= BL_AO_TOP                  ? GROUP_TOP
	       : o->roles == BL_OPTION_HOSTS    ? GROUP_HOSTS
	       : o->roles == BL_OPTION_SWITCHES ? GROUP_SWITCHES
						: GROUP_BOTH;
}

static const char *help_argument(const struct bl_option *o)
{
	static const char *const names[] = { [BL_OPTION_RATE] = "RATE",
					     [BL_OPTION_TRUTH] = "yes|no",
					     [BL_OPTION_NAME] = "NAME",
					     [BL_OPTION_TEXT] = "TEXT",
					     [BL_OPTION_BLOCK] = "VALUE" };

	if (o->kind != BL_OPTION_NUMBER)
		return names[o->kind];
	return !strcmp(o->unit, "us") ? "US" : !strcmp(o->unit, "percent") ? "PERCENT" : "N";
}

/* Writes the help text of an option, as in "pl2: frames in one burst; 1 to 16". */
static void help_text(const struct bl_option *o, char *buf, size_t size)
{
	size_t at = (size_t)snprintf(buf, size, "%s%s%s", o->policies ? o->policies : "",
				     o->policies ? ": " : "", o->text);

	if (o->kind == BL_OPTION_NUMBER && at < size)
		snprintf(buf + at, size - at, "; %llu to %llu", (unsigned long long)o->least,
			 (unsigned long long)o->greatest);
}

/* Returns the options of `admission set`. They are made once, because argp keeps the pointers. */
static const struct argp_option *set_options(void)
{
	static struct argp_option v[BL_AO_COUNT + 8];
	static char texts[BL_AO_COUNT][384];
	unsigned int k, n = 0;

	if (v[0].name || v[0].doc)
		return v;
	v[n++] = (struct argp_option){ .name = "rack",
				       .key = KEY_RACK,
				       .doc = "change the policy and the rate of all nodes that "
					      "the controller here knows" };
	v[n++] = (struct argp_option){ .doc = "Hosts:", .group = GROUP_HOSTS };
	v[n++] = (struct argp_option){ .doc = "Switches:", .group = GROUP_SWITCHES };
	v[n++] = (struct argp_option){ .doc = "Hosts, TOP:", .group = GROUP_TOP };
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (!o->set || !*o->set)
			continue;
		help_text(o, texts[k], sizeof(texts[k]));
		v[n++] = (struct argp_option){ .name = o->set,
					       .key = KEY_OPTION + (int)k,
					       .arg = help_argument(o),
					       .doc = texts[k],
					       .group = help_group(k) };
	}
	return v;
}

/** struct set_args - The command line of `admission set`. */
struct set_args {
	struct bl_admission_set set; /* the new settings */
	bool rack;                   /* --rack: change all nodes through the controller */
};

/* Returns whether a controller can pass @s on: it needs a policy, and may have a rate. */
static bool fits_rack(const struct bl_admission_set *s)
{
	struct bl_admission_set rest = *s;

	rest.given[BL_AO_POLICY] = rest.given[BL_AO_RATE] = false;
	return s->given[BL_AO_POLICY] && !bl_admission_any(&rest);
}

/*
 * Parses the value of an option. A value that cannot be parsed is an error of usage, and so is a
 * value of a TOP option that is out of range. The ranges of other options are checked by the node.
 */
static void parse_option(struct bl_admission_set *s, unsigned int id, const char *arg,
			 struct argp_state *state)
{
	const struct bl_option *o = bl_option(id);
	const bool top = o->policies && !strcmp(o->policies, "top");
	struct bl_err err;
	uint64_t v = 0;

	if (bl_option_parse(o, id >= BL_AO_TOP ? o->key : o->set, arg,
			    id >= BL_AO_TOP ? o->least : 0, top ? o->greatest : UINT32_MAX, &v,
			    &err))
		argp_error(state, "%s", err.text);
	bl_admission_put(s, id, v);
}

static error_t parse_set(int key, char *arg, struct argp_state *state)
{
	struct set_args *all = state->input;
	struct bl_admission_set *s = &all->set;

	if (key >= KEY_OPTION && key < KEY_OPTION + BL_AO_COUNT) {
		parse_option(s, (unsigned int)key - KEY_OPTION, arg, state);
		return 0;
	}
	switch (key) {
	case KEY_RACK:
		all->rack = true;
		return 0;
	case ARGP_KEY_ARG:
		if (s->given[BL_AO_POLICY])
			return ARGP_ERR_UNKNOWN;
		if (bl_policy_by_name(arg) < 0)
			argp_error(state, "policy \"%s\": none, pl2, fastpass or top", arg);
		bl_admission_put(s, BL_AO_POLICY, (uint64_t)bl_policy_by_name(arg));
		return 0;
	case ARGP_KEY_END:
		if (!bl_admission_any(s))
			argp_error(state, "set what? A policy (none, pl2, fastpass, top), or one "
					  "of the options");
		if (all->rack && !fits_rack(s))
			argp_error(state, "--rack takes a policy, and at most --rate: hosts and "
					  "switches have no other setting in common");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * Sends @command to the controllers of this network namespace, or with NULL only asks for their
 * state. Returns the reply of the leader, which the caller frees, or NULL after a message.
 */
static json_t *ask_leader(const char *command)
{
	json_t *all = status_ask_each("controller", command), *one, *found = NULL;
	size_t i;

	json_array_foreach(all, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "state")), "leader"))
			found = json_incref(one);
	}
	if (!found && json_array_size(all))
		cli_fail("no controller of this network namespace leads; see `barline show "
			 "controller`");
	else if (!found)
		status_none("controller", "controller",
			    "--rack goes by way of the controller that leads, and none runs in "
			    "this network namespace. Without one: `barline admission set` on every "
			    "node, switches first");
	json_decref(all);
	return found;
}

/*
 * Asks for the state of change @number. Returns its description, which the caller frees, or NULL:
 * the change is not complete yet, or *@rc is 1 after a message.
 */
static json_t *poll_rack_change(json_int_t number, int *rc)
{
	json_t *leader = ask_leader(NULL), *a = json_object_get(leader, "admission");

	if (!leader) {
		*rc = 1;
		return NULL;
	}
	if (json_integer_value(json_object_get(a, "change")) != number)
		*rc = cli_fail("another controller leads by now, and does not know what became of "
			       "this change; "
			       "see `barline admission show` on the nodes, or repeat the command");
	else if (!strcmp(json_string_value(json_object_get(a, "step")), "done"))
		json_incref(a);
	else
		a = NULL;
	json_decref(leader);
	return *rc ? NULL : a;
}

/* Prints the answer of each node. Returns the exit status. */
static int print_rack_change(json_t *a)
{
	json_t *one, *nodes = json_object_get(a, "nodes");
	bool refused = json_is_true(json_object_get(a, "refused"));
	int troubles = 0;
	size_t i;

	json_array_foreach(nodes, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "node"));
		const char *said = json_string_value(json_object_get(one, "changed"));
		const char *trouble = json_string_value(json_object_get(one, "trouble"));

		troubles += *trouble != 0;
		if (!cli.json && *trouble)
			printf("%s: %s\n", name, trouble);
		else if (!cli.json && !refused)
			printf("%s: %s\n", name, *said ? said : "nothing is different");
	}
	if (cli.json) {
		cli_json(json_incref(a));
		return refused || troubles;
	}
	if (refused)
		return cli_fail("nothing was changed, since not all nodes can");
	if (!json_array_size(nodes))
		return cli_fail("the controller knows no nodes yet");
	return troubles != 0;
}

static int set_rack(const struct bl_admission_set *s)
{
	json_t *reply, *a = NULL;
	const char *trouble;
	json_int_t number;
	char command[64];
	int rc = 0, ms;

	snprintf(command, sizeof(command), "admission %s %" PRIu64 "\n",
		 bl_policy_name((unsigned int)s->value[BL_AO_POLICY]), s->value[BL_AO_RATE]);
	reply = ask_leader(command);
	if (!reply)
		return 1;
	trouble = json_string_value(json_object_get(reply, "trouble"));
	number = json_integer_value(json_object_get(reply, "number"));
	if (!number)
		rc = cli_fail("the controller: %s", trouble ? trouble
							    : "it is of a version that does not "
							      "know this command");
	json_decref(reply);
	for (ms = 0; !rc && !a && ms < RACK_WAIT_MS; ms += RACK_POLL_US / 1000) {
		usleep(RACK_POLL_US);
		a = poll_rack_change(number, &rc);
	}
	if (rc)
		return rc;
	if (!a)
		return cli_fail("the controller has not ended change %d within %d ms", (int)number,
				RACK_WAIT_MS);
	rc = print_rack_change(a);
	json_decref(a);
	return rc;
}

int cmd_admission_set(int argc, char **argv)
{
	const struct argp argp = { .options = set_options(),
				   .parser = parse_set,
				   .args_doc = "[none|pl2|fastpass|top]",
				   .children = cmd_globals,
				   .doc = "barline admission set - change the settings of "
					  "admission while the node runs\vOn a host, pl2: "
					  "bursts wait for a grant; fastpass: frames wait "
					  "for timeslots; top: for tokens; "
					  "none: frames go at once. On a switch, pl2: "
					  "reservations are made and data needs one; top: "
					  "tokens are limited. The next start of the daemon "
					  "restores the settings of its configuration." };
	struct set_args args = {};
	struct bl_node_ref *refs;
	json_t *rows;
	struct bl_err err;
	char said[1024], word[BL_CONTROL_WORD_MAX];
	int n, i, rc = 0;

	cmd_parse(&argp, argc, argv, &args);
	if (args.rack)
		return set_rack(&args.set);
	rows = json_array();
	n = nodes_here(&refs, false);
	for (i = 0; i < n && !rc; i++) {
		rc = bl_admission_change(&refs[i], &args.set, said, sizeof(said), &err);
		if (!rc && *said && !args.set.check) {
			snprintf(word, sizeof(word), "%s%s", BL_CONTROL_ADMISSION, said);
			bl_control_tell((enum bl_role)refs[i].role, refs[i].netns_ino, word);
		}
		if (!rc && !cli.json)
			printf("%s: %s\n", refs[i].meta.name,
			       *said ? said : "nothing is different");
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s}", "node", refs[i].meta.name,
						"role", role_name(refs[i].role), "changed", said));
	}
	if (n >= 0)
		free(refs);
	if (n < 0 || rc) {
		json_decref(rows);
		return n < 0 ? 1 : cli_fail("%s", err.text);
	}
	if (cli.json)
		cli_json(json_pack("{s:O}", "nodes", rows));
	json_decref(rows);
	return 0;
}

static json_t *rate_json(uint64_t bps)
{
	char text[32];

	return bps ? json_string(bl_rate_text(bps, text, sizeof(text))) : json_null();
}

/* Returns the value of an option as in the output of `admission show -j`. */
static json_t *option_json(const struct bl_option *o, uint64_t value)
{
	char text[32];

	switch (o->kind) {
	case BL_OPTION_RATE:
		return rate_json(value);
	case BL_OPTION_TRUTH:
		return json_boolean(value);
	case BL_OPTION_NAME:
		return json_string(bl_option_value(o, value, text, sizeof(text)));
	default:
		return json_integer((json_int_t)value);
	}
}

/* Adds the options from @first to @end - 1 that have a value in @v to @row. */
static void add_options(json_t *row, const struct bl_admission_set *v, unsigned int first,
			unsigned int end)
{
	unsigned int k;

	for (k = first; k < end; k++)
		if (v->given[k] && bl_option(k)->show)
			json_object_set_new(row, bl_option(k)->show,
					    option_json(bl_option(k), v->value[k]));
}

static json_t *rule_row(const struct bl_top_rule *r)
{
	return json_pack("{s:i, s:i, s:I, s:I, s:I}", "port", r->port, "protocol", r->proto,
			 "bytes", (json_int_t)r->bytes, "deadline_us", (json_int_t)r->deadline_us,
			 "coflow", (json_int_t)r->coflow);
}

/* Returns TOP's settings by their keys, and values derived from them, or NULL after a message. */
static json_t *top_row(const struct bl_node_ref *ref, const struct bl_admission_set *v)
{
	struct bl_top_cfg c;
	unsigned int k;
	json_t *o;

	if (node_value(ref, BL_MAP_TOP_CFG, 0, &c, sizeof(c)))
		return NULL;
	o = json_pack("{s:I, s:I}", "slot_ns", (json_int_t)c.slot_ns, "expiry_ns",
		      (json_int_t)c.expiry_ns);
	add_options(o, v, BL_AO_TOP, BL_AO_COUNT);
	for (k = 0; k < BL_TOP_RULES && c.rules[k].port; k++) {
		if (!k)
			json_object_set_new(o, "rules", json_array());
		json_array_append_new(json_object_get(o, "rules"), rule_row(&c.rules[k]));
	}
	return o;
}

/*
 * Returns the policies of neighbours that do not fit the policy of the node: for a host the policy
 * of its switch, for a switch a list by port; null if all fit.
 */
static json_t *apart_json(const struct bl_node_ref *ref)
{
	uint32_t own = bl_apart_own(ref), k = 0;
	bool host = ref->role == BL_ROLE_HOST;
	struct bl_host_page page;
	struct bl_life life;
	char text[256] = "";
	size_t at = 0;
	struct bl_err err;
	int fd;

	if (host) {
		if (node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
			return json_null();
		return bl_policy_apart(own, page.life.policy)
			       ? json_string(bl_policy_name(page.life.policy - 1))
			       : json_null();
	}
	fd = bl_map_open(ref, BL_MAP_SW_LIVES, sizeof(life), false, &err);
	for (; fd >= 0 && own && k < BL_SW_PORTS_MAX && at < sizeof(text); k++)
		if (!bpf_map_lookup_elem(fd, &k, &life) && bl_policy_apart(own, life.policy))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%sport %u: %s",
					       at ? ", " : "", k, bl_policy_name(life.policy - 1));
	if (fd >= 0)
		close(fd);
	return at ? json_string(text) : json_null();
}

/* Returns the row of a host, or NULL after a message. */
static json_t *host_row(const struct bl_node_ref *ref, const struct bl_admission_set *v)
{
	struct bl_hold_cfg c;
	json_t *top, *row;

	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &c, sizeof(c)))
		return NULL;
	top = top_row(ref, v);
	if (!top)
		return NULL;
	row = json_pack("{s:s, s:s, s:b}", "node", ref->meta.name, "role", "host", "on", c.on);
	add_options(row, v, 0, BL_AO_TOP);
	json_object_set_new(row, "top", top);
	json_object_set_new(row, "apart", apart_json(ref));
	return row;
}

/* Returns the number of metered ports, or -1 after a message. */
static int count_metered(const struct bl_node_ref *ref)
{
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_METERS, sizeof(struct bl_meter), false, &err), n = 0;
	struct bl_meter m;
	uint32_t k;

	if (fd < 0) {
		cli_fail("%s", err.text);
		return -1;
	}
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		n += !bpf_map_lookup_elem(fd, &k, &m) && m.ns_q20;
	close(fd);
	return n;
}

/* Returns the row of a switch, or NULL after a message. */
static json_t *switch_row(const struct bl_node_ref *ref, const struct bl_admission_set *v)
{
	int metered = count_metered(ref);
	struct bl_rsv_cfg c;
	json_t *row;

	if (metered < 0 || node_value(ref, BL_MAP_RSV_CFG, 0, &c, sizeof(c)))
		return NULL;
	row = json_pack("{s:s, s:s, s:b}", "node", ref->meta.name, "role", "switch", "on",
			v->value[BL_AO_POLICY] || metered);
	add_options(row, v, 0, BL_AO_TOP);
	json_object_set_new(row, "metered_ports", json_integer(metered));
	json_object_set_new(row, "reserved_rate", rate_json(bl_rate_of_q20(c.ns_q20)));
	json_object_set_new(row, "limit_bytes", json_integer((json_int_t)c.limit_bytes));
	json_object_set_new(row, "overlap_bytes", json_integer((json_int_t)c.overlap_bytes));
	json_object_set_new(row, "apart", apart_json(ref));
	return row;
}

static json_t *node_row(const struct bl_node_ref *ref)
{
	struct bl_admission_set v;
	struct bl_err err;

	if (bl_admission_show(ref, &v, &err)) {
		cli_fail("%s", err.text);
		return NULL;
	}
	return ref->role == BL_ROLE_HOST ? host_row(ref, &v) : switch_row(ref, &v);
}

/** struct columns - The columns of the table of one role. */
struct columns {
	struct col v[BL_AO_TOP + 8];
	size_t n;
};

static void add_column(struct columns *c, const char *key, const char *heading, char kind)
{
	c->v[c->n++] = (struct col){ key, heading, kind };
}

/* Adds the columns of the options from @first to @last. */
static void add_option_columns(struct columns *c, unsigned int role, unsigned int first,
			       unsigned int last)
{
	unsigned int k;

	for (k = first; k <= last; k++) {
		const struct bl_option *o = bl_option(k);

		if (o->show && o->column && o->roles & role)
			add_column(c, o->show, o->column,
				   o->kind != BL_OPTION_NUMBER ? 's'
				   : !strcmp(o->unit, "us")    ? 't'
							       : 'd');
	}
}

/* Prints one table for each role, because the roles share few settings. */
static void print_tables(json_t *rows)
{
	struct columns host = {}, sw = {};
	json_t *hosts = json_array(), *switches = json_array(), *r;
	size_t i;

	add_column(&host, "node", "HOST", 's');
	add_column(&host, "on", "BL0", 'b');
	add_option_columns(&host, BL_OPTION_HOSTS, BL_AO_POLICY, BL_AO_POLICY);
	add_column(&host, "apart", "SWITCH_HAS", 's');
	add_option_columns(&host, BL_OPTION_HOSTS, BL_AO_RATE, BL_AO_TOP - 1);
	add_column(&sw, "node", "SWITCH", 's');
	add_option_columns(&sw, BL_OPTION_SWITCHES, BL_AO_POLICY, BL_AO_POLICY);
	add_column(&sw, "apart", "NEIGHBOURS_HAVE", 's');
	add_option_columns(&sw, BL_OPTION_SWITCHES, BL_AO_RATE, BL_AO_ALLOCATOR);
	add_column(&sw, "metered_ports", "METERED", 'd');
	add_column(&sw, "reserved_rate", "RESERVED", 's');
	add_column(&sw, "limit_bytes", "LIMIT", 'k');
	add_option_columns(&sw, BL_OPTION_SWITCHES, BL_AO_REFUSE_US, BL_AO_LAPSE_US);
	add_column(&sw, "overlap_bytes", "OVERLAP", 'k');
	add_option_columns(&sw, BL_OPTION_SWITCHES, BL_AO_OUTSIDE_PERCENT, BL_AO_TOP - 1);
	json_array_foreach(rows, i, r)
	{
		const char *role = json_string_value(json_object_get(r, "role"));

		json_array_append(*role == 'h' ? hosts : switches, r);
	}
	if (json_array_size(hosts))
		out_table(stdout, hosts, host.v, host.n);
	if (json_array_size(switches))
		out_table(stdout, switches, sw.v, sw.n);
	json_decref(hosts);
	json_decref(switches);
}

static bool all_nodes;

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
	(void)arg, (void)state;
	if (key != 'a')
		return ARGP_ERR_UNKNOWN;
	all_nodes = true;
	return 0;
}

int cmd_admission_show(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_show,
					  .children = cmd_globals,
					  .doc = "barline admission show - show the settings of "
						 "admission" };
	struct bl_node_ref *refs;
	json_t *rows, *row;
	int n, i;

	cmd_parse(&argp, argc, argv, NULL);
	n = nodes_here(&refs, all_nodes);
	if (n < 0)
		return 1;
	rows = json_array();
	for (i = 0; i < n; i++) {
		row = node_row(&refs[i]);
		if (!row)
			break;
		json_array_append_new(rows, row);
	}
	free(refs);
	if (i == n && cli.json)
		cli_json(json_pack("{s:O}", "admission", rows));
	else if (i == n)
		print_tables(rows);
	json_decref(rows);
	return i < n;
}
