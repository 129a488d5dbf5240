// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/lower.c: on which kinds of devices hosts and switches run, and what the sentences
 * name where they do not.
 */
#include <errno.h>
#include <net/if_arp.h>

#include "tests/unit/unit.h"

#include "loader/load/lower.h"

#define BOTH(rc) rc, rc
#define SELF     7 /* ifindex of the device */
#define UP       9 /* of its master */

/** struct row - a device, and what is said of it. */
static const struct row {
	const char *kind, *below, *master;
	int mode;           /* of the bond; of the master if there is one */
	int active_index;   /* of the bond */
	const char *active; /* name of its active slave */
	uint16_t type;      /* 0: Ethernet */
	int host, sw;       /* results for a host and for a switch */
	const char *words[2];
} rows[] = {
	{ "", "", "", -1, 0, "", 0, BOTH(0), {} },
	{ "veth", "", "", -1, 0, "", 0, BOTH(0), {} },
	/* the peer of a veth is no device below it */
	{ "veth", "peer0", "", -1, 0, "", 0, BOTH(0), {} },
	{ "netkit", "peer0", "", -1, 0, "", 0, BOTH(0), {} },
	{ "tun", "", "", -1, 0, "", 0, BOTH(0), {} },
	{ "tun",
	  "",
	  "",
	  -1,
	  0,
	  "",
	  ARPHRD_NONE,
	  BOTH(-EOPNOTSUPP),
	  { "dev0 (tun)", "no Ethernet" } },
	{ "", "", "", -1, 0, "", ARPHRD_INFINIBAND, BOTH(-EOPNOTSUPP), { "dev0 carries no" } },
	{ "ipip", "", "", -1, 0, "", ARPHRD_TUNNEL, BOTH(-EOPNOTSUPP), { "dev0 (ipip)" } },
	{ "vlan",
	  "eth0",
	  "",
	  -1,
	  0,
	  "",
	  0,
	  -EPERM,
	  -EOPNOTSUPP,
	  { "a VLAN device", "on eth0|list eth0" } },
	{ "vlan",
	  "",
	  "",
	  -1,
	  0,
	  "",
	  0,
	  -EPERM,
	  -EOPNOTSUPP,
	  { "a VLAN device", "another network" } },
	{ "macvlan", "eth0", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "a macvlan", "eth0" } },
	{ "ipvlan", "eth0", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "an ipvlan", "eth0" } },
	{ "dsa", "eth0", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "kind \"dsa\"", "eth0" } },
	{ "", "eth0", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "eth0" } },
	{ "vxlan", "", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "a tunnel (vxlan)" } },
	{ "gretap", "eth0", "", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "a tunnel (gretap)" } },
	{ "bond", "eth1", "", 1, 8, "eth1", 0, BOTH(-EOPNOTSUPP), { "a bond (active-backup)" } },
	{ "bond", "eth1", "", 4, 0, "", 0, BOTH(-EOPNOTSUPP), { "a bond (802.3ad)" } },
	{ "bond", "", "", 1, 0, "", 0, BOTH(-EOPNOTSUPP), { "a bond (active-backup)" } },
	{ "team", "eth1", "", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "a team" } },
	{ "bridge", "eth1", "", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "a bridge", "port" } },
	{ "vrf", "eth1", "", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "a VRF" } },
	{ "dummy", "", "", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "kind dummy", "no other end" } },
	{ "openvswitch", "", "", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "Open vSwitch" } },
	/* ports of others */
	{ "", "", "bridge", -1, 0, "", 0, BOTH(0), {} },
	{ "veth", "", "bridge", -1, 0, "", 0, BOTH(0), {} },
	{ "", "", "openvswitch", -1, 0, "", 0, BOTH(0), {} },
	{ "", "", "bond", 1, SELF, "dev0", 0, 0, -EOPNOTSUPP, { "of the bond device up0" } },
	{ "",
	  "",
	  "bond",
	  1,
	  8,
	  "eth1",
	  0,
	  BOTH(-EOPNOTSUPP),
	  { "up0", "nomaster|active slave eth1" } },
	{ "",
	  "",
	  "bond",
	  1,
	  0,
	  "",
	  0,
	  -EAGAIN,
	  -EOPNOTSUPP,
	  { "up0", "nomaster|no active slave" } },
	{ "", "", "bond", 4, 0, "", 0, BOTH(-EOPNOTSUPP), { "up0", "nomaster" } },
	{ "", "", "bond", 0, SELF, "dev0", 0, BOTH(-EOPNOTSUPP), { "up0", "nomaster" } },
	{ "", "", "team", -1, 0, "", 0, BOTH(-EOPNOTSUPP), { "team device up0", "nomaster" } },
	{ "", "", "vrf", -1, 0, "", 0, -EOPNOTSUPP, 0, { "the VRF up0", "nomaster" } },
	/* A VLAN device in a bridge is refused as what it is. */
	{ "vlan", "eth0", "bridge", -1, 0, "", 0, -EPERM, -EOPNOTSUPP, { "a VLAN device" } },
};

/* Whether @text has one of the words in @any, which '|' separates. */
static bool has_one(const char *text, const char *any)
{
	char words[64], *save = NULL, *w;

	snprintf(words, sizeof(words), "%s", any);
	for (w = strtok_r(words, "|", &save); w; w = strtok_r(NULL, "|", &save))
		if (strstr(text, w))
			return true;
	return false;
}

static struct bl_lower lower_of(const struct row *r)
{
	struct bl_lower v = { .dev = { .ifindex = SELF,
				       .name = "dev0",
				       .type = r->type ? r->type : ARPHRD_ETHER,
				       .bond_mode = r->master[0] ? -1 : r->mode,
				       .bond_active = r->master[0] ? 0 : r->active_index } };

	strcpy(v.dev.kind, r->kind);
	strcpy(v.below, r->below);
	strcpy(v.active, r->active);
	if (r->master[0]) {
		v.dev.master = UP;
		v.master = (struct nl_link){ .ifindex = UP,
					     .name = "up0",
					     .bond_mode = r->mode,
					     .bond_active = r->active_index };
		strcpy(v.master.kind, r->master);
	}
	return v;
}

static void check(const struct row *r, enum bl_role role, int want)
{
	struct bl_lower v = lower_of(r);
	struct bl_err err = {};
	unsigned int k;
	int rc = bl_lower_judge(&v, role, &err);

	if (rc != want)
		fail_msg("%s in %s, role %d: %d, wanted %d (%s)", r->kind, r->master, role, rc,
			 want, err.text);
	if (!rc)
		return;
	assert_true(strlen(err.text) > 0 && strlen(err.text) + 1 < sizeof(err.text));
	for (k = 0; k < 2 && r->words[k]; k++)
		if (!has_one(err.text, r->words[k]))
			fail_msg("\"%s\" has no \"%s\"", err.text, r->words[k]);
	/* What may be accepted says how. */
	assert_true(!strstr(err.text, "--accept") == (rc != -EPERM));
}

static void bl_lower_judge__table(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		check(&rows[k], BL_ROLE_HOST, rows[k].host);
		check(&rows[k], BL_ROLE_SWITCH, rows[k].sw);
	}
}

/* The host's sentence for a bond names the slave that is to be used. */
static void bl_lower_judge__names_the_active_slave(void **state)
{
	struct bl_lower v = { .dev = { .ifindex = SELF,
				       .name = "bond0",
				       .kind = "bond",
				       .type = ARPHRD_ETHER,
				       .bond_mode = NL_BOND_BACKUP,
				       .bond_active = 8 },
			      .active = "eth1" };
	struct bl_err err = {};

	(void)state;
	assert_int_equal(bl_lower_judge(&v, BL_ROLE_HOST, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "run the node on the active one, eth1 (the address may"));
	v.active[0] = 0;
	assert_int_equal(bl_lower_judge(&v, BL_ROLE_HOST, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "run the node on the active one (the address may"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_lower_judge__table),
		cmocka_unit_test(bl_lower_judge__names_the_active_slave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
