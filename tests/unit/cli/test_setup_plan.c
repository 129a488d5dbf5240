// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/setup/plan.c and state.c: facts and wishes in, steps out. Random machines and wishes: the
 * plan leads where it says, a second plan is empty, and undoing any beginning of the plan leads
 * back to the machine before.
 */
#include <errno.h>

#include "tests/unit/unit.h"

#include "cli/setup/plan.h"
#include "cli/setup/setup.h"

#define FILE_PATH "/etc/barline/n.yaml"
#define ROUNDS    3000

/* ---- machines and wishes ---- */

static void set(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
		const char *value)
{
	setup_set(f, kind, dev, arg, value);
}

static void add_link(struct setup_facts *f, const char *dev, const char *up)
{
	char path[64];

	set(f, SETUP_LINK, dev, "", "veth");
	set(f, SETUP_UP, dev, "", up);
	set(f, SETUP_MTU, dev, "", "1500");
	set(f, SETUP_MTU_MAX, dev, "", "9000");
	snprintf(path, sizeof(path), "net/ipv4/conf/%s/forwarding", dev);
	set(f, SETUP_SYSCTL, "", path, "0");
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/forwarding", dev);
	set(f, SETUP_SYSCTL, "", path, "0");
}

/* eth0 and eth1, which are down, and a loopback. */
static struct setup_facts plain(void)
{
	struct setup_facts f = { 0 };

	set(&f, SETUP_SYSCTL, "", "net/ipv6/conf/all/forwarding", "0");
	set(&f, SETUP_LINK, "lo", "", "loopback");
	add_link(&f, "eth0", "down");
	add_link(&f, "eth1", "down");
	return f;
}

static struct setup_want wants(enum bl_role role, enum bl_fwd forward, unsigned int ports)
{
	struct setup_want w = { .role = role, .forward = forward, .nports = ports };
	unsigned int k;

	strcpy(w.name, "n");
	strcpy(w.file, "n");
	strcpy(w.dir, "/etc/barline");
	w.ports = calloc(ports, sizeof(*w.ports));
	for (k = 0; k < ports; k++) {
		snprintf(w.ports[k].dev, sizeof(w.ports[k].dev), "eth%u", k);
		w.ports[k].role = BL_PORT_HOST;
	}
	return w;
}

static void want_host(struct setup_want *w, const char *dev, const char *mac, const char *ip)
{
	struct setup_host *h;

	w->hosts = realloc(w->hosts, (w->nhosts + 1) * sizeof(*h));
	h = &w->hosts[w->nhosts++];
	*h = (struct setup_host){ .nip = 1 };
	strcpy(h->dev, dev);
	strcpy(h->mac, mac);
	strcpy(h->ip[0], ip);
}

static void want_address(struct setup_want *w, const char *dev, const char *text)
{
	struct setup_address *a;

	w->addresses = realloc(w->addresses, (w->naddresses + 1) * sizeof(*a));
	a = &w->addresses[w->naddresses++];
	strcpy(a->dev, dev);
	strcpy(a->text, text);
}

static void want_route(struct setup_want *w, const char *net, const char *via)
{
	w->routes = realloc(w->routes, (w->nroutes + 1) * sizeof(*w->routes));
	strcpy(w->routes[w->nroutes].net, net);
	strcpy(w->routes[w->nroutes++].via, via);
}

/* The steps as commands, each with a newline. The caller frees it. */
static char *text_of(const struct setup_steps *s)
{
	char *text = NULL, command[SETUP_ARG + 96];
	size_t size, k;
	FILE *f = open_memstream(&text, &size);

	for (k = 0; k < s->n; k++)
		fprintf(f, "%s%s\n", setup_is_kept(&s->v[k]) ? "keep " : "",
			setup_command(&s->v[k], false, command, sizeof(command)));
	fclose(f);
	return text;
}

/* ---- tables ---- */

static void expect(struct setup_want *w, struct setup_facts *f, const char *commands)
{
	struct setup_steps s = { 0 };
	struct bl_err err = { "" };
	char *yaml = setup_yaml(w), *text;

	if (setup_plan(w, yaml, f, &s, &err))
		fail_msg("%s", err.text);
	text = text_of(&s);
	assert_string_equal(text, commands);
	free(text);
	free(yaml);
	setup_steps_free(&s);
	setup_facts_free(f);
	setup_want_free(w);
}

static void plan__l2_switch(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	struct setup_facts f = plain();

	(void)state;
	w.mtu = 3000;
	want_host(&w, "eth0", "02:00:00:00:00:01", "10.0.0.1");
	expect(&w, &f,
	       "ip link set eth0 mtu 3000\nip link set eth0 up\n"
	       "ip link set eth1 mtu 3000\nip link set eth1 up\n"
	       "ip link add br0 type bridge stp_state 0 mcast_snooping 0\n"
	       "ip link set eth0 master br0\nip link set eth1 master br0\n"
	       "ip link set br0 up\nmkdir /etc/barline\nwrite /etc/barline/n.yaml (9 lines)\n");
}

/* The bridge of a port is taken, and what is so is no step. */
static void plan__only_what_is_missing(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_BRIDGE, "rack", "", "bridge");
	set(&f, SETUP_UP, "eth0", "", "up");
	set(&f, SETUP_MASTER, "eth0", "", "rack");
	set(&f, SETUP_DIR, "", "/etc/barline", "there");
	expect(&w, &f,
	       "keep ip link set eth0 master rack\nip link set eth1 up\n"
	       "ip link set eth1 master rack\nip link set rack up\n"
	       "write /etc/barline/n.yaml (7 lines)\n");
}

/* Forwarding of IPv6 is set for all interfaces, and one that forwards already is written down. */
static void plan__l3_switch(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L3, 2);
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_SYSCTL, "", "net/ipv6/conf/eth1/forwarding", "1");
	set(&f, SETUP_ADDRESS, "eth0", "10.0.1.254/24", "there");
	want_address(&w, "eth0", "10.0.1.254/24");
	want_address(&w, "eth1", "fd02::fe/64");
	want_host(&w, "eth0", "02:00:00:00:00:01", "10.0.1.1");
	want_host(&w, "eth1", "02:00:00:00:00:02", "fd02::1");
	want_route(&w, "10.7.0.0/16", "10.0.1.7");
	expect(&w, &f,
	       "keep ip address add 10.0.1.254/24 dev eth0\n"
	       "ip link set eth0 up\nip link set eth1 up\n"
	       "sysctl -w net.ipv4.conf.eth0.forwarding=1\n"
	       "sysctl -w net.ipv4.conf.eth1.forwarding=1\n"
	       "keep sysctl -w net.ipv6.conf.eth1.forwarding=1\n"
	       "sysctl -w net.ipv6.conf.all.forwarding=1\n"
	       "ip address add fd02::fe/64 dev eth1 nodad\n"
	       "ip neigh replace 10.0.1.1 lladdr 02:00:00:00:00:01 nud permanent dev eth0\n"
	       "ip neigh replace fd02::1 lladdr 02:00:00:00:00:02 nud permanent dev eth1\n"
	       "ip route add 10.7.0.0/16 via 10.0.1.7 dev eth0 proto static\n"
	       "mkdir /etc/barline\nwrite /etc/barline/n.yaml (7 lines)\n");
}

static void plan__host(void **state)
{
	struct setup_want w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_UP, "eth0", "", "up");
	set(&f, SETUP_ADDRESS, "eth1", "10.0.0.9/8", "there"); /* a shorter prefix */
	want_address(&w, "eth0", "10.0.1.1/24");
	want_route(&w, "10.0.0.0/16", "10.0.1.254");
	expect(&w, &f,
	       "ip address add 10.0.1.1/24 dev eth0\n"
	       "ip route add 10.0.0.0/16 via 10.0.1.254 dev eth0 proto static\n"
	       "mkdir /etc/barline\nwrite /etc/barline/n.yaml (4 lines)\n");
}

/* The interface of a router is that with the longest prefix that has it, to the bit. */
static void plan__way_to_a_router(void **state)
{
	struct setup_want w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_DIR, "", "/etc/barline", "there");
	set(&f, SETUP_UP, "eth0", "", "up");
	set(&f, SETUP_ADDRESS, "eth0", "10.0.16.1/20", "there");
	set(&f, SETUP_ADDRESS, "eth1", "10.0.0.9/8", "there");
	want_route(&w, "10.128.0.0/16", "10.0.31.254");
	want_route(&w, "10.129.0.0/16", "10.0.32.1");
	expect(&w, &f,
	       "keep ip address add 10.0.16.1/20 dev eth0\n"
	       "ip route add 10.128.0.0/16 via 10.0.31.254 dev eth0 proto static\n"
	       "ip route add 10.129.0.0/16 via 10.0.32.1 dev eth1 proto static\n"
	       "write /etc/barline/n.yaml (4 lines)\n");
}

/* What follows from a bridge that is made, and from one that is removed. */
static void state__bridge(void **state)
{
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_BRIDGE, "br0", "", "bridge");
	assert_string_equal(setup_get(&f, SETUP_UP, "br0", ""), "down");
	assert_string_equal(setup_get(&f, SETUP_LINK, "br0", ""), "bridge");
	set(&f, SETUP_MASTER, "eth0", "", "br0");
	set(&f, SETUP_MASTER, "eth1", "", "br1");
	set(&f, SETUP_BRIDGE, "br0", "", NULL);
	assert_null(setup_get(&f, SETUP_LINK, "br0", ""));
	assert_null(setup_get(&f, SETUP_UP, "br0", ""));
	assert_null(setup_get(&f, SETUP_MASTER, "eth0", ""));
	assert_string_equal(setup_get(&f, SETUP_MASTER, "eth1", ""), "br1");
	setup_facts_free(&f);
}

/* ---- refusals ---- */

static void refuse(struct setup_want *w, struct setup_facts *f, int rc, const char *part)
{
	struct setup_steps s = { 0 };
	struct bl_err err = { "" };
	char *yaml = setup_yaml(w);

	assert_int_equal(setup_plan(w, yaml, f, &s, &err), -rc);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.text);
	free(yaml);
	setup_steps_free(&s);
	setup_facts_free(f);
	setup_want_free(w);
}

static void plan__refuses(void **state)
{
	static const struct {
		enum bl_fwd forward;
		int rc;
		const char *part;
		/* a fact, and a second port's name */
		enum setup_kind kind;
		const char *dev, *arg, *value, *port;
	} t[] = {
		{ BL_FWD_L2, EINVAL, "named 2 times", SETUP_UP, "eth0", "", "up", "eth0" },
		{ BL_FWD_L2, ENODEV, "no interface eth7", SETUP_UP, "eth0", "", "up", "eth7" },
		{ BL_FWD_L2, EINVAL, "the loopback", SETUP_UP, "eth0", "", "up", "lo" },
		{ BL_FWD_L2, EINVAL, "not of Ethernet", SETUP_LINK, "eth1", "", "other", "eth1" },
		{ BL_FWD_L2, EINVAL, "a bridge", SETUP_LINK, "eth1", "", "bridge", "eth1" },
		{ BL_FWD_L2, EOPNOTSUPP, "eth1 is deaf", SETUP_UNFIT, "eth1", "", "eth1 is deaf",
		  "eth1" },
		{ BL_FWD_L2, EINVAL, "MTU of eth0 is 1500 and that of eth1 is 9000", SETUP_MTU,
		  "eth1", "", "9000", "eth1" },
		{ BL_FWD_L2, EPERM, "10.1.1.1/24, which would not answer", SETUP_ADDRESS, "eth1",
		  "10.1.1.1/24", "there", "eth1" },
		{ BL_FWD_L2, EBUSY, "br0 is there and is no bridge", SETUP_LINK, "br0", "", "veth",
		  "eth1" },
		{ BL_FWD_L3, EBUSY, "does not route", SETUP_MASTER, "eth1", "", "br9", "eth1" },
		{ BL_FWD_L3, EEXIST, "is not as setup wrote it", SETUP_FILE, "", FILE_PATH, "x\n",
		  "eth1" },
	};
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		struct setup_want w = wants(BL_ROLE_SWITCH, t[k].forward, 2);
		struct setup_facts f = plain();

		set(&f, t[k].kind, t[k].dev, t[k].arg, t[k].value);
		strcpy(w.ports[1].dev, t[k].port);
		refuse(&w, &f, t[k].rc, t[k].part);
	}
}

static void plan__refuses_two_bridges(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	struct setup_facts f = plain();

	(void)state;
	set(&f, SETUP_BRIDGE, "br1", "", "bridge");
	set(&f, SETUP_BRIDGE, "br2", "", "bridge");
	set(&f, SETUP_MASTER, "eth0", "", "br1");
	set(&f, SETUP_MASTER, "eth1", "", "br2");
	refuse(&w, &f, EBUSY, "eth1 is a port of br2, not of br1");

	/* A slave of a bond is said to be one, and not to be in the wrong bridge. */
	w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	f = plain();
	set(&f, SETUP_MASTER, "eth1", "", "bond0");
	set(&f, SETUP_UNFIT, "eth1", "", "eth1 is a slave");
	refuse(&w, &f, EOPNOTSUPP, "eth1 is a slave");
}

static void plan__refuses_wishes_that_contradict(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	struct setup_facts f = plain();

	(void)state;
	want_host(&w, "eth0", "02:00:00:00:00:01", "10.0.0.1");
	want_host(&w, "eth1", "02:00:00:00:00:02", "10.0.0.1");
	refuse(&w, &f, EINVAL, "10.0.0.1 is an address of two hosts, behind eth0 and behind eth1");

	w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	f = plain();
	want_host(&w, "eth5", "02:00:00:00:00:01", "10.0.0.1");
	refuse(&w, &f, EINVAL, "eth5 is not among the ports");

	w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	f = plain();
	want_address(&w, "eth0", "10.0.0.1/24");
	refuse(&w, &f, EINVAL, "only the bridge");

	w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	f = plain();
	want_address(&w, "eth0", "10.0.0.1/24");
	set(&f, SETUP_ADDRESS, "eth1", "10.0.0.1/16", "there");
	refuse(&w, &f, EBUSY, "is an address of eth1 already");

	w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	f = plain();
	want_address(&w, "eth0", "10.0.0.1/24");
	want_route(&w, "10.9.0.0/16", "10.0.1.254"); /* one bit off the subnet */
	refuse(&w, &f, EINVAL, "is in no subnet");

	w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	f = plain();
	want_address(&w, "eth0", "10.0.0.1/24");
	want_route(&w, "10.9.0.0/16", "10.0.0.254");
	set(&f, SETUP_ROUTE, "", "10.9.0.0/16", "via 10.0.0.7 dev eth1");
	refuse(&w, &f, EEXIST, "via 10.0.0.7 dev eth1 already");

	w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
	f = plain();
	w.mtu = 9001;
	refuse(&w, &f, EINVAL, "at most 9000 bytes, not 9001");
}

/* The operator's own connection is named; --force and a port that is in the bridge are allowed. */
static void plan__cutting_connections(void **state)
{
	struct setup_want w = wants(BL_ROLE_SWITCH, BL_FWD_L2, 2);
	struct setup_facts f = plain(), again;
	struct setup_steps s = { 0 };
	struct bl_err err;

	(void)state;
	set(&f, SETUP_ADDRESS, "eth1", "10.1.1.1/24", "there");
	setup_facts_copy(&again, &f);
	strcpy(w.session, "10.1.1.1");
	assert_int_equal(setup_plan(&w, "x\n", &again, &s, &err), -EPERM);
	assert_non_null(strstr(err.text, "10.1.1.1, by which you are logged in"));
	setup_steps_free(&s);
	setup_facts_free(&again);

	setup_facts_copy(&again, &f);
	strcpy(w.session, "10.1.1.2");
	assert_int_equal(setup_plan(&w, "x\n", &again, &s, &err), -EPERM);
	assert_null(strstr(err.text, "logged in"));
	setup_steps_free(&s);
	setup_facts_free(&again);

	setup_facts_copy(&again, &f);
	w.force = true;
	assert_int_equal(setup_plan(&w, "x\n", &again, &s, &err), 0);
	assert_true(s.n);
	setup_steps_free(&s);
	setup_facts_free(&again);
	w.force = false;
	set(&f, SETUP_BRIDGE, "br0", "", "bridge");
	set(&f, SETUP_MASTER, "eth1", "", "br0");
	assert_int_equal(setup_plan(&w, "x\n", &f, &s, &err), 0);
	setup_steps_free(&s);
	setup_facts_free(&f);
	setup_want_free(&w);
}

/* The file: as an earlier setup wrote it, it is replaced; changed by somebody, with consent. */
static void plan__file_of_somebody(void **state)
{
	static const struct {
		const char *now, *ours;
		bool overwrite;
		int rc;
	} t[] = {
		{ NULL, NULL, false, 0 },           { "old\n", "old\n", false, 0 },
		{ "x\n", "old\n", false, -EEXIST }, { "x\n", NULL, false, -EEXIST },
		{ "x\n", NULL, true, 0 },           { "new\n", NULL, false, 0 },
	};
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		struct setup_want w = wants(BL_ROLE_HOST, BL_FWD_L2, 1);
		struct setup_facts f = plain();
		struct setup_steps s = { 0 };
		struct bl_err err;

		set(&f, SETUP_FILE, "", FILE_PATH, t[k].now);
		w.ours = t[k].ours;
		w.overwrite = t[k].overwrite;
		assert_int_equal(setup_plan(&w, "new\n", &f, &s, &err), t[k].rc);
		if (!t[k].rc)
			assert_string_equal(setup_get(&f, SETUP_FILE, "", FILE_PATH), "new\n");
		setup_steps_free(&s);
		setup_facts_free(&f);
		setup_want_free(&w);
	}
}

/* ---- undo ---- */

static void undo__what_others_changed(void **state)
{
	static const struct {
		enum setup_kind kind;
		const char *before, *after, *now;
		enum setup_undo what;
	} t[] = {
		{ SETUP_MTU, "1500", "9000", "9000", SETUP_UNDO_DO },
		{ SETUP_MTU, "1500", "9000", "1500", SETUP_UNDO_NOTHING },
		{ SETUP_MTU, "1500", "9000", "3000", SETUP_UNDO_LEFT },
		{ SETUP_MTU, "1500", "9000", NULL, SETUP_UNDO_LEFT },
		{ SETUP_NEIGHBOUR, NULL, "02:00:00:00:00:01", NULL, SETUP_UNDO_NOTHING },
		{ SETUP_FILE, NULL, "a\n", "b\n", SETUP_UNDO_LEFT },
		{ SETUP_FILE, "0\n", "a\n", "a\n", SETUP_UNDO_DO },
		{ SETUP_UP, "down", "up", "up", SETUP_UNDO_DO },
		{ SETUP_ADDRESS, "there", "there", NULL, SETUP_UNDO_NOTHING },
		{ SETUP_SYSCTL, "1", "1", "0", SETUP_UNDO_DO },
		{ SETUP_SYSCTL, "1", "1", "1", SETUP_UNDO_NOTHING },
	};
	unsigned int k;
	char why[200];

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		struct setup_facts f = { 0 };
		struct setup_steps s = { 0 };

		setup_push(&s, t[k].kind, "eth0", "a", t[k].before, t[k].after);
		set(&f, t[k].kind, "eth0", "a", t[k].now);
		if (setup_undo_judge(&f, &s, 0, why, sizeof(why)) != t[k].what)
			fail_msg("row %u is judged wrongly", k);
		assert_int_equal(*why != '\0', t[k].what == SETUP_UNDO_LEFT);
		setup_steps_free(&s);
		setup_facts_free(&f);
	}
}

/* What somebody uses meanwhile stays: a bridge with a port or an address, a link with one. */
static void undo__what_others_use(void **state)
{
	static const struct {
		enum setup_kind made, used;
		const char *dev, *value, *part;
	} t[] = {
		{ SETUP_BRIDGE, SETUP_MASTER, "eth9", "br0", "eth9 is a port of br0" },
		{ SETUP_BRIDGE, SETUP_ADDRESS, "br0", "there", "br0 has the address 10.3.0.1/8" },
		{ SETUP_UP, SETUP_ADDRESS, "br0", "there", "br0 has the address 10.3.0.1/8" },
		{ SETUP_UP, SETUP_MASTER, "br0", "bond0", "br0 is a port of bond0" },
	};
	static const struct {
		enum setup_kind made;
		const char *dev, *up;
		enum setup_undo what;
	} top[] = {
		{ SETUP_BRIDGE, "br0", "down", SETUP_UNDO_LEFT },
		{ SETUP_UP, "br0", "down", SETUP_UNDO_DO },
		{ SETUP_UP, "br0", "up", SETUP_UNDO_LEFT },
		{ SETUP_BRIDGE, "br1", "up", SETUP_UNDO_DO },
	};
	unsigned int k, mine;
	char why[200];

	(void)state;
	for (k = 0; k < ARRAY_SIZE(top); k++) { /* a device on top */
		const char *after = top[k].made == SETUP_UP ? "up" : "bridge";
		struct setup_facts f = { 0 };
		struct setup_steps s = { 0 };

		set(&f, top[k].made, "br0", "", after);
		set(&f, SETUP_LOWER, "mv0", "", top[k].dev);
		set(&f, SETUP_UP, "mv0", "", top[k].up);
		setup_push(&s, top[k].made, "br0", "", top[k].made == SETUP_UP ? "down" : NULL,
			   after);
		assert_int_equal(setup_undo_judge(&f, &s, 0, why, sizeof(why)), top[k].what);
		if (top[k].what == SETUP_UNDO_LEFT)
			assert_non_null(strstr(why, "mv0"));
		setup_steps_free(&s);
		setup_facts_free(&f);
	}
	for (k = 0; k < ARRAY_SIZE(t); k++)
		for (mine = 0; mine < 2; mine++) {
			const char *after = t[k].made == SETUP_UP ? "up" : "bridge";
			const char *arg = t[k].used == SETUP_ADDRESS ? "10.3.0.1/8" : "";
			struct setup_facts f = { 0 };
			struct setup_steps s = { 0 };

			set(&f, t[k].made, "br0", "", after);
			set(&f, t[k].used, t[k].dev, arg, t[k].value);
			setup_push(&s, t[k].made, "br0", "", t[k].made == SETUP_UP ? "down" : NULL,
				   after);
			/* the same, but setup has found or made it itself */
			if (mine)
				setup_push(&s, t[k].used, t[k].dev, arg, t[k].value, t[k].value);
			if (mine && t[k].made == SETUP_UP)
				assert_int_equal(setup_undo_judge(&f, &s, 0, why, sizeof(why)),
						 SETUP_UNDO_DO);
			if (!mine) {
				assert_int_equal(setup_undo_judge(&f, &s, 0, why, sizeof(why)),
						 SETUP_UNDO_LEFT);
				assert_non_null(strstr(why, t[k].part));
			}
			setup_steps_free(&s);
			setup_facts_free(&f);
		}
}

/* ---- properties ---- */

static bool same_facts(const struct setup_facts *a, const struct setup_facts *b)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (!setup_same(a->v[i].value,
				setup_get(b, a->v[i].kind, a->v[i].dev, a->v[i].arg)))
			return false;
	return a->n == b->n;
}

static struct setup_facts random_machine(struct rnd *r)
{
	struct setup_facts f = plain();
	unsigned int k;
	char dev[IFNAMSIZ], text[64];

	for (k = 2; k < 4; k++) {
		snprintf(dev, sizeof(dev), "eth%u", k);
		add_link(&f, dev, "down");
	}
	if (rnd_below(r, 2))
		set(&f, SETUP_BRIDGE, rnd_below(r, 2) ? "br0" : "br1", "", "bridge");
	for (k = 0; k < 4; k++) {
		snprintf(dev, sizeof(dev), "eth%u", k);
		if (rnd_below(r, 2))
			set(&f, SETUP_UP, dev, "", "up");
		if (!rnd_below(r, 4) && setup_get(&f, SETUP_BRIDGE, "br0", ""))
			set(&f, SETUP_MASTER, dev, "", "br0");
		snprintf(text, sizeof(text), "10.0.%u.254/24", k);
		if (!rnd_below(r, 3))
			set(&f, SETUP_ADDRESS, dev, text, "there");
		snprintf(text, sizeof(text), "10.0.%u.1", k);
		if (!rnd_below(r, 3))
			set(&f, SETUP_NEIGHBOUR, dev, text,
			    rnd_below(r, 2) ? "02:00:00:00:00:01" : "02:00:00:00:00:77");
		snprintf(text, sizeof(text), "net/ipv6/conf/%s/forwarding", dev);
		if (!rnd_below(r, 3))
			set(&f, SETUP_SYSCTL, "", text, "1");
	}
	if (!rnd_below(r, 4))
		set(&f, SETUP_SYSCTL, "", "net/ipv6/conf/all/forwarding", "1");
	if (rnd_below(r, 2))
		set(&f, SETUP_DIR, "", "/etc/barline", "there");
	if (!rnd_below(r, 4))
		set(&f, SETUP_FILE, "", FILE_PATH, "old\n");
	return f;
}

static struct setup_want random_want(struct rnd *r)
{
	bool host = !rnd_below(r, 3);
	struct setup_want w = wants(host ? BL_ROLE_HOST : BL_ROLE_SWITCH,
				    rnd_below(r, 2) ? BL_FWD_L2 : BL_FWD_L3,
				    host ? 1 : 1 + rnd_below(r, 4));
	unsigned int k;
	char text[64], mac[32], dev[IFNAMSIZ];

	w.force = rnd_below(r, 2);
	w.overwrite = rnd_below(r, 2);
	w.mtu = rnd_below(r, 2) ? 0 : 1500 + 500 * rnd_below(r, 2);
	for (k = 0; k < w.nports; k++) {
		snprintf(dev, sizeof(dev), "eth%u", k);
		snprintf(text, sizeof(text), "10.0.%u.1", k);
		snprintf(mac, sizeof(mac), "02:00:00:00:00:%02x", k + 1);
		if (rnd_below(r, 2))
			want_host(&w, dev, mac, text);
		snprintf(text, sizeof(text), rnd_below(r, 2) ? "10.0.%u.254/24" : "fd00:%u::1/64",
			 k);
		if (rnd_below(r, 2) && (host || w.forward == BL_FWD_L3))
			want_address(&w, dev, text);
	}
	if (!rnd_below(r, 3))
		want_route(&w, "10.9.0.0/16", "10.0.0.7");
	return w;
}

/* Takes back the first @n steps on @f, which is changed. */
static void undo(struct setup_facts *f, struct setup_steps *s, size_t n)
{
	size_t all = s->n, k;
	char why[200];

	s->n = n; /* as a journal that ends there */
	for (k = n; k--;) {
		enum setup_undo what = setup_undo_judge(f, s, k, why, sizeof(why));

		assert_int_not_equal(what, SETUP_UNDO_LEFT);
		if (what == SETUP_UNDO_DO)
			setup_set(f, s->v[k].kind, s->v[k].dev, s->v[k].arg, s->v[k].before);
	}
	s->n = all;
}

static void property__plan_and_undo(void **state)
{
	struct rnd r = rnd_seeded("property__plan_and_undo");
	unsigned int round, planned = 0, refused = 0;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		struct setup_facts before = random_machine(&r), after, now;
		struct setup_want w = random_want(&r);
		struct setup_steps s = { 0 }, again = { 0 };
		struct bl_err err;
		size_t k, done;

		setup_facts_copy(&after, &before);
		if (setup_plan(&w, "new\n", &after, &s, &err)) {
			refused++;
		} else {
			planned += s.n != 0;
			/* a second plan is empty, and changes no fact */
			setup_facts_copy(&now, &after);
			assert_int_equal(setup_plan(&w, "new\n", &now, &again, &err), 0);
			assert_int_equal(again.n, 0);
			assert_true(same_facts(&now, &after));
			setup_facts_free(&now);
			/* step by step; each prefix, with its last step done or not, is undone */
			for (done = 0; done <= s.n; done++) {
				setup_facts_copy(&now, &before);
				for (k = 0; k < done; k++)
					setup_set(&now, s.v[k].kind, s.v[k].dev, s.v[k].arg,
						  s.v[k].after);
				if (done == s.n)
					assert_true(same_facts(&now, &after));
				undo(&now, &s, done < s.n && rnd_below(&r, 2) ? done + 1 : done);
				assert_true(same_facts(&now, &before));
				setup_facts_free(&now);
			}
		}
		setup_steps_free(&s);
		setup_steps_free(&again);
		setup_facts_free(&before);
		setup_facts_free(&after);
		setup_want_free(&w);
	}
	print_message("%u plans, %u refused\n", planned, refused);
	assert_true(planned > ROUNDS / 4 && refused > ROUNDS / 20);
}

/* ---- differences ---- */

static void diff__lines(void **state)
{
	static const char *const t[][3] = {
		{ "", "a\nb\n", "+ a\n+ b\n" },
		{ "a\nb\nc\n", "a\nx\nc\n", "- b\n+ x\n" },
		{ "a\n", "a\n", "" },
		{ "a\nb\n", "b\na\n", "(the order of the lines, or how often one is there)\n" },
		{ "a\nb", "a\nb\nc", "+ c\n" },
	};
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		setup_diff(t[k][0], t[k][1], f);
		fclose(f);
		assert_string_equal(text, t[k][2]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan__l2_switch),
		cmocka_unit_test(plan__only_what_is_missing),
		cmocka_unit_test(plan__l3_switch),
		cmocka_unit_test(plan__host),
		cmocka_unit_test(plan__way_to_a_router),
		cmocka_unit_test(state__bridge),
		cmocka_unit_test(plan__refuses),
		cmocka_unit_test(plan__refuses_two_bridges),
		cmocka_unit_test(plan__refuses_wishes_that_contradict),
		cmocka_unit_test(plan__cutting_connections),
		cmocka_unit_test(plan__file_of_somebody),
		cmocka_unit_test(undo__what_others_changed),
		cmocka_unit_test(undo__what_others_use),
		cmocka_unit_test(property__plan_and_undo),
		cmocka_unit_test(diff__lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
