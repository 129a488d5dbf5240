/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the reader of a node's YAML file (base/yaml.c, loader/config.c, loader/admission/), with
 * libyaml below it. The input is the file.
 *
 * Besides what ASan and UBSan detect, also for the whole of libyaml's document, it checks what the
 * daemon relies on: a file that is refused has a message with its path and leaves nothing that has
 * to be freed; one that is accepted is within the limits of maps and arrays, and says the same when
 * it is read again.
 *
 * What a daemon makes of the configuration is not covered; tests/prog/loader/test_config.c and the
 * net tests have that.
 */
#include "fuzz.h"

#include <ctype.h>

#include "base/rate.h"
#include "loader/config.h"
#include "loader/node_cfg.h"
#include "proto/session.h"

static void check_text(const char *text, size_t size)
{
	FUZZ_CHECK(memchr(text, 0, size));
}

static void check_rate(uint64_t bps)
{
	FUZZ_CHECK(!bps || (bps >= BL_RATE_MIN && bps <= BL_RATE_MAX));
}

static void check_switch(const struct bl_node_cfg *c)
{
	unsigned int i, k;

	FUZZ_CHECK(c->ports_count >= 1 && c->ports_count <= BL_SW_PORTS_MAX);
	for (i = 0; i < c->ports_count; i++) {
		const struct bl_port_cfg *p = &c->ports[i];

		check_text(p->ifname, sizeof(p->ifname));
		check_rate(p->rate_bps);
		FUZZ_CHECK(*p->ifname && p->role >= BL_PORT_HOST && p->role <= BL_PORT_DOWN);
		for (k = 0; k < i; k++)
			FUZZ_CHECK(strcmp(p->ifname, c->ports[k].ifname));
	}
	for (i = 0; i < c->fdb_count; i++) {
		FUZZ_CHECK(!(c->fdb[i].mac[0] & 1));
		for (k = 0; k < c->ports_count && strcmp(c->fdb[i].ifname, c->ports[k].ifname); k++)
			;
		FUZZ_CHECK(k < c->ports_count);
	}
}

static void check_accepted(const struct bl_node_cfg *c)
{
	struct sockaddr_storage sa;
	socklen_t len;
	unsigned int i, k;

	check_text(c->name, sizeof(c->name));
	check_text(c->ifname, sizeof(c->ifname));
	check_text(c->ctl.ca, sizeof(c->ctl.ca));
	check_text(c->ctl.cert, sizeof(c->ctl.cert));
	check_text(c->ctl.key, sizeof(c->ctl.key));
	FUZZ_CHECK(c->role == BL_ROLE_SWITCH || c->role == BL_ROLE_HOST);
	FUZZ_CHECK(c->port_base + (c->port_count ? c->port_count : BL_PORT_COUNT) <= 65536);
	FUZZ_CHECK(c->port_count <= BL_PORT_COUNT && c->beacon_us <= 1000000);
	FUZZ_CHECK(c->caretaker_ms >= -1 && c->caretaker_ms <= BL_CARETAKER_MAX_MS);
	FUZZ_CHECK(c->ncpus <= BL_LANES_MAX);
	for (i = 0; i < c->ncpus; i++) {
		FUZZ_CHECK(c->cpus[i] >= 0 && c->cpus[i] < BL_SW_CPUS_MAX);
		for (k = 0; k < i; k++)
			FUZZ_CHECK(c->cpus[i] != c->cpus[k]);
	}
	FUZZ_CHECK(c->ctl.n <= BL_CTL_PEERS_MAX);
	for (i = 0; i < c->ctl.n; i++)
		FUZZ_CHECK(!bl_session_addr(c->ctl.addr[i], &sa, &len));
	if (c->role == BL_ROLE_SWITCH)
		check_switch(c);
	else
		FUZZ_CHECK(!c->ports_count && !c->fdb_count && !c->forward);
	if (!c->admission.on)
		return;
	check_rate(c->admission.rate_bps);
	check_text(c->admission.fp_path, sizeof(c->admission.fp_path));
	check_text(c->admission.bl0, sizeof(c->admission.bl0));
	check_text(c->admission.bl0d, sizeof(c->admission.bl0d));
	FUZZ_CHECK(c->admission.policy < BL_POLICY_COUNT);
	FUZZ_CHECK(c->admission.top.nrules <= BL_TOP_RULES);
}

/* Reads the file for a node that is known to be a @role. Returns whether it is accepted. */
static bool load(const char *path, enum bl_role role, struct bl_node_cfg *c)
{
	struct bl_err err = { .text = "" };

	*c = (struct bl_node_cfg){ .role = role };
	if (!bl_config_load(c, path, &err)) {
		check_accepted(c);
		return true;
	}
	FUZZ_CHECK(!strncmp(err.text, path, strlen(path)) || !strncmp(err.text, "cannot read", 11));
	FUZZ_CHECK(!c->ports && !c->fdb && !c->ports_count && !c->fdb_count);
	return false;
}

static void same(struct bl_node_cfg *a, struct bl_node_cfg *b)
{
	FUZZ_CHECK(a->ports_count == b->ports_count && a->fdb_count == b->fdb_count);
	FUZZ_CHECK(!a->ports_count ||
		   !memcmp(a->ports, b->ports, a->ports_count * sizeof(*a->ports)));
	FUZZ_CHECK(!a->fdb_count || !memcmp(a->fdb, b->fdb, a->fdb_count * sizeof(*a->fdb)));
	bl_config_free(a);
	bl_config_free(b);
	FUZZ_CHECK(!memcmp(a, b, sizeof(*a)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bl_node_cfg a, b;
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, size, path);
	bool ok;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	ok = load(path, BL_ROLE_NONE, &a);
	FUZZ_CHECK(load(path, BL_ROLE_NONE, &b) == ok);
	if (ok) {
		enum bl_role role = a.role;

		same(&a, &b);
		/* The same for a daemon that knows its role, and refused for the other role. */
		FUZZ_CHECK(load(path, role, &a));
		bl_config_free(&a);
		FUZZ_CHECK(!load(path, role == BL_ROLE_HOST ? BL_ROLE_SWITCH : BL_ROLE_HOST, &a));
	}
	close(fd);
	return 0;
}
