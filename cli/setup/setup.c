// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline switch setup; barline host setup: make a machine ready for its node. docs/setup.md
 * describes what they do.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cmd.h"
#include "cli/setup/parse.h"
#include "cli/setup/run.h"
#include "cli/util/args.h"
#include "loader/node_cfg.h"

#define CONFIG_DIR "/etc/barline"
#define STATE_DIR  "/var/lib/barline-setup" /* /var/lib/barline is the controller's */

enum {
	KEY_ID = 256,
	KEY_FILE,
	KEY_FORWARD,
	KEY_HOST_PORT,
	KEY_UP_PORT,
	KEY_DOWN_PORT,
	KEY_HOST,
	KEY_ADDRESS,
	KEY_ROUTE,
	KEY_BRIDGE,
	KEY_MTU,
	KEY_CONTROLLER,
	KEY_BEACON,
	KEY_BOUND,
	KEY_LEARN,
	KEY_UNDO,
	KEY_PRINT,
	KEY_PRINT_TO,
	KEY_FORCE,
	KEY_OVERWRITE,
	KEY_CONFIG_DIR,
	KEY_STATE_DIR,
	KEY_KILL_AT
};

static const struct argp_option common_options[] = {
	{ "name", 'N', "NAME", 0, "name of the node (default: the host name)", 0 },
	{ "file", KEY_FILE, "NAME", 0,
	  "name of its configuration, FOLDER/NAME.yaml (default: the name of the node)", 0 },
	{ "node-id", KEY_ID, "N", 0, "number of the node in beacons (default: random)", 0 },
	{ "route", KEY_ROUTE, "NETWORK/LENGTH=ROUTER", 0, "a static route; may be repeated", 0 },
	{ "mtu", KEY_MTU, "BYTES", 0, "MTU of the interfaces (default: as it is)", 0 },
	{ "controller", KEY_CONTROLLER, "ADDRESS", 0, "a failure controller; may be repeated", 0 },
	{ "beacon-us", KEY_BEACON, "US", 0, "beacon interval (default 100)", 0 },
	{ "clock-bound-us", KEY_BOUND, "US", 0, "least bound of the clock (default 50)", 0 },
	{ "dry-run", 'd', NULL, 0, "print the steps, and change nothing", 0 },
	{ "undo", KEY_UNDO, NULL, 0, "take back what was set up under this name", 0 },
	{ "print", KEY_PRINT, "networkd|ifupdown", 0,
	  "print files with these settings for every boot, and change nothing", 0 },
	{ "print-to", KEY_PRINT_TO, "FOLDER", 0, "write these files into a folder", 0 },
	{ "overwrite", KEY_OVERWRITE, NULL, 0, "replace a configuration that setup did not write",
	  0 },
	{ "force", KEY_FORCE, NULL, 0,
	  "cut connections to this machine; undo while a node is attached", 0 },
	{ "config-dir", KEY_CONFIG_DIR, "FOLDER", 0,
	  "folder of the configuration (default " CONFIG_DIR ")", 0 },
	{ "state-dir", KEY_STATE_DIR, "FOLDER", 0,
	  "folder of what --undo needs (default " STATE_DIR ")", 0 },
	{ "kill-at", KEY_KILL_AT, "N", OPTION_HIDDEN, "test: be killed at a step", 0 },
	{ 0 }
};

static const struct argp_option switch_options[] = {
	{ "forward", KEY_FORWARD, "l2|l3", 0,
	  "by bridge and Ethernet addresses, or by routes (default l2)", 0 },
	{ "host-port", KEY_HOST_PORT, "IFNAME", 0, "a port to a host, as an argument is", 0 },
	{ "up-port", KEY_UP_PORT, "IFNAME", 0, "a port to a switch of a higher tier", 0 },
	{ "down-port", KEY_DOWN_PORT, "IFNAME", 0, "a port to a switch of a lower tier", 0 },
	{ "host", KEY_HOST, "IFNAME=MAC[,IP...]", 0,
	  "a host behind a port, and its addresses; may be repeated", 0 },
	{ "learn", KEY_LEARN, NULL, 0, "find hosts in the tables of the kernel", 0 },
	{ "yes", 'y', NULL, 0, "take the hosts that were learnt without asking", 0 },
	{ "address", KEY_ADDRESS, "IFNAME=ADDRESS/LENGTH", 0,
	  "l3: an address of a port; l2: of the bridge; may be repeated", 0 },
	{ "bridge", KEY_BRIDGE, "IFNAME", 0, "l2: the bridge (default: the ports', or br0)", 0 },
	{ 0 }
};

static const struct argp_option host_options[] = { { "address", KEY_ADDRESS, "ADDRESS/LENGTH", 0,
						     "an address of the NIC; may be repeated", 0 },

						   { 0 } };

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_ID, "node-id", NULL, 1, UINT32_MAX, struct setup_want, node_id),
	BL_NUMBER(KEY_MTU, "mtu", "bytes", 576, 65535, struct setup_want, mtu),
	BL_NUMBER(KEY_BEACON, "beacon-us", "us", 1, 1000000, struct setup_want, beacon_us),
	BL_NUMBER(KEY_BOUND, "clock-bound-us", "us", 1, 1000000, struct setup_want,
		  clock_bound_us),
	{ 0 }
};
/* clang-format on */

/* Makes room for one more element of @size bytes, which is zero. */
static void *grow(void *list, unsigned int *n, size_t size, struct argp_state *state)
{
	void **v = list;
	char *more = realloc(*v, (*n + 1) * size);

	if (!more)
		argp_failure(state, 1, 0, "out of memory");
	*v = more;
	return memset(more + size * (*n)++, 0, size);
}

static void check(struct argp_state *state, const char *option, const char *arg, const char *wrong)
{
	if (wrong)
		argp_error(state, "%s \"%s\": %s", option, arg, wrong);
}

static void add_port(struct setup_want *w, const char *arg, enum bl_port_role role,
		     struct argp_state *state)
{
	struct setup_port *p = grow(&w->ports, &w->nports, sizeof(*p), state);

	p->role = role;
	check(state, "interface", arg, setup_parse_dev(arg, p->dev));
}

static void add_controller(struct setup_want *w, const char *arg, struct argp_state *state)
{
	char(*c)[SETUP_TEXT] = grow(&w->controllers, &w->ncontrollers, sizeof(*c), state);

	check(state, "--controller", arg,
	      !*arg || strlen(arg) >= SETUP_TEXT || strpbrk(arg, "\"\\\n") ? "this is no address "
									     "of a controller"
									   : NULL);
	snprintf(*c, sizeof(*c), "%s", arg);
}

static error_t parse_own(int key, char *arg, struct argp_state *state)
{
	struct setup_opts *o = state->input;
	struct setup_want *w = &o->w;
	struct setup_address *a;
	struct setup_host *h;

	switch (key) {
	case KEY_HOST:
		h = grow(&w->hosts, &w->nhosts, sizeof(*h), state);
		check(state, "--host", arg, setup_parse_host(arg, h));
		return 0;
	case KEY_ADDRESS:
		a = grow(&w->addresses, &w->naddresses, sizeof(*a), state);
		check(state, "--address", arg, setup_parse_address(arg, a));
		return 0;
	case KEY_FORWARD:
		check(state, "--forward", arg,
		      strcmp(arg, "l2") && strcmp(arg, "l3") ? "it is l2 or l3" : NULL);
		w->forward = strcmp(arg, "l2") ? BL_FWD_L3 : BL_FWD_L2;
		return 0;
	case KEY_BRIDGE:
		check(state, "--bridge", arg, setup_parse_dev(arg, w->bridge));
		return 0;
	case KEY_LEARN:
		o->learn = true;
		return 0;
	case 'y':
		o->yes = true;
		return 0;
	case KEY_HOST_PORT:
	case ARGP_KEY_ARG:
		add_port(w, arg, BL_PORT_HOST, state);
		return 0;
	case KEY_UP_PORT:
		add_port(w, arg, BL_PORT_UP, state);
		return 0;
	case KEY_DOWN_PORT:
		add_port(w, arg, BL_PORT_DOWN, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* What is missing when everything is parsed. */
static void check_end(struct setup_opts *o, struct argp_state *state)
{
	unsigned int k;

	if (!*o->w.file)
		strcpy(o->w.file, o->w.name);
	if (!o->undo && !o->w.nports)
		argp_error(state, "which interface? `ip link` lists them");
	if (o->w.role == BL_ROLE_HOST && o->w.nports > 1)
		argp_error(state, "a host has one NIC, and %u are named", o->w.nports);
	if (o->print_to && !o->print)
		argp_error(state, "--print-to needs --print networkd or --print ifupdown");
	for (k = 0; k < o->w.naddresses && o->w.nports; k++)
		if (!*o->w.addresses[k].dev && o->w.role == BL_ROLE_SWITCH)
			argp_error(state, "--address %s: of which interface? IFNAME=%s",
				   o->w.addresses[k].text, o->w.addresses[k].text);
		else if (!*o->w.addresses[k].dev)
			strcpy(o->w.addresses[k].dev, o->w.ports[0].dev);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct setup_opts *o = state->input;
	struct setup_route *r;
	long long v;
	error_t rc = bl_number_option(numbers, key, arg, &o->w, state);

	if (rc != ARGP_ERR_UNKNOWN)
		return rc;
	switch (key) {
	case 'N':
		check(state, "--name", arg, setup_parse_name(arg, o->w.name));
		return 0;
	case KEY_FILE:
		check(state, "--file", arg, setup_parse_name(arg, o->w.file));
		return 0;
	case KEY_ROUTE:
		r = grow(&o->w.routes, &o->w.nroutes, sizeof(*r), state);
		check(state, "--route", arg, setup_parse_route(arg, r));
		return 0;
	case KEY_CONTROLLER:
		add_controller(&o->w, arg, state);
		return 0;
	case KEY_PRINT:
		check(state, "--print", arg,
		      strcmp(arg, "networkd") && strcmp(arg, "ifupdown") ? "it is networkd or "
									   "ifupdown"
									 : NULL);
		o->print = arg;
		return 0;
	case KEY_CONFIG_DIR:
		check(state, "--config-dir", arg,
		      *arg != '/' || strlen(arg) >= sizeof(o->w.dir) ? "it is no absolute path"
								     : NULL);
		snprintf(o->w.dir, sizeof(o->w.dir), "%s", arg);
		return 0;
	case KEY_STATE_DIR:
		check(state, "--state-dir", arg,
		      *arg != '/' || strlen(arg) >= SETUP_ARG ? "it is no absolute path" : NULL);
		o->state = arg;
		return 0;
	case KEY_PRINT_TO:
		o->print_to = arg;
		return 0;
	case KEY_UNDO:
		o->undo = true;
		return 0;
	case KEY_FORCE:
		o->w.force = true;
		return 0;
	case KEY_OVERWRITE:
		o->w.overwrite = true;
		return 0;
	case KEY_KILL_AT:
		if (!bl_read_integer(arg, 1, UINT32_MAX, &v))
			argp_error(state, "--kill-at needs a number");
		o->kill_at = (uint32_t)v;
		return 0;
	case 'd':
		o->dry = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp common_argp = { .options = common_options, .parser = parse_common };
static const struct argp_child children[] = { cmd_globals_child,
					      { &common_argp, 0, NULL, 0 },
					      { 0 } };

static error_t parse_setup(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_INIT)
		state->child_inputs[1] = state->input;
	else if (key == ARGP_KEY_END)
		check_end(state->input, state);
	else
		return parse_own(key, arg, state);
	return 0;
}

/* The host name up to its first dot, if it is good for a file. */
static void default_name(struct setup_want *w)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	if (setup_parse_name(host, w->name))
		strcpy(w->name, w->role == BL_ROLE_SWITCH ? "switch" : "host");
}

/* The address of this machine by which the operator is logged in, which sshd says. */
static void find_session(struct setup_want *w)
{
	const char *ssh = getenv("SSH_CONNECTION");

	if (ssh && sscanf(ssh, "%*s %*s %45s", w->session) != 1)
		*w->session = '\0';
}

static int run(const struct argp *argp, enum bl_role role, int argc, char **argv)
{
	struct setup_opts o = { .state = STATE_DIR, .w = { .role = role, .forward = BL_FWD_L2 } };
	int rc;

	snprintf(o.w.dir, sizeof(o.w.dir), "%s", CONFIG_DIR);
	default_name(&o.w);
	find_session(&o.w);
	cmd_parse(argp, argc, argv, &o);
	rc = o.undo ? setup_back(&o) : setup_run(&o);
	setup_want_free(&o.w);
	return rc;
}

int cmd_switch_setup(int argc, char **argv)
{
	static const struct argp argp = { .options = switch_options,
					  .parser = parse_setup,
					  .children = children,
					  .args_doc = "[IFNAME]...",
					  .doc = "barline switch setup - make this machine ready "
						 "to be a switch\v"
						 "Sets interfaces, bridge or forwarding, and "
						 "neighbours as a switch needs "
						 "them, and writes its configuration. Prints each "
						 "step as the command that it "
						 "is equal to. Does only what is missing; --undo "
						 "takes it back." };

	return run(&argp, BL_ROLE_SWITCH, argc, argv);
}

int cmd_host_setup(int argc, char **argv)
{
	static const struct argp argp = { .options = host_options,
					  .parser = parse_setup,
					  .children = children,
					  .args_doc = "[IFNAME]",
					  .doc = "barline host setup - make this machine ready to "
						 "be a host\v"
						 "Sets the NIC, its addresses and routes, and "
						 "writes the configuration of the "
						 "host. Prints each step as the command that it is "
						 "equal to. Does only what "
						 "is missing; --undo takes it back." };

	return run(&argp, BL_ROLE_HOST, argc, argv);
}
