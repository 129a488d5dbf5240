// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline clean --all`, by which packages are removed: all nodes of the machine go, whatever their
 * network namespace, or none of them, with the reason.
 */
#include "tests/net/traffic.h"

#include "loader/load/pin.h"
#include "tests/net/barline_run.h"

#define HOSTS 2
#define NODES (HOSTS + 1)

/* Runs the command in this namespace, which has no node. @want is its exit status. */
static json_t *clean_all(const char *option, int want, const char *when)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "clean", "--all", option, NULL };
	json_t *said;
	int rc;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rc = barline_run(&said, argv);
	CHECK(said && rc == want, "%s: status %d", when, rc);
	return said;
}

static void refused(const char *option, const char *why, const char *when)
{
	json_t *said = clean_all(option, 1, when);
	const char *error = json_string_value(json_object_get(said, "error"));

	CHECK(error && strstr(error, why) && strstr(error, BL_BPFFS), "%s: %s", when,
	      error ? error : "no error");
	json_decref(said);
}

static void removes(const char *option, int nodes, const char *when)
{
	json_t *said = clean_all(option, 0, when);

	CHECK(json_integer_value(json_object_get(said, "nodes")) == nodes, "%s: %lld nodes", when,
	      (long long)json_integer_value(json_object_get(said, "nodes")));
	json_decref(said);
}

static int pinned(void)
{
	struct bl_node_ref *v;
	struct bl_err err;
	int n = bl_nodes_list(&v, 0, false, &err);

	CHECK(n >= 0, "%s", err.text);
	free(v);
	return n;
}

/* An endpoint that waits until its host has put it out. */
static void wait_for_the_end(struct tr *w)
{
	struct bl_delivery d;
	int rc;

	while ((rc = bl_recv(w->ep, &d, 1, -1)) >= 0)
		;
	w->me->user[0] = (uint64_t)-rc;
	bl_exit(w->ep);
	TR_STORE(w->me->state, TR_GONE);
	_exit(0);
}

static bool is_out(void)
{
	return TR_LOAD(tr_sh->node[0].state) == TR_GONE;
}

static void open_with_endpoint(void (*fn)(struct tr *w))
{
	struct tr_cfg cfg = { .fn = fn, .ring_bytes = TR_RING_TIGHT(1) };

	rack.lab.spec.hosts = HOSTS;
	rack_open();
	cfg.host = 1;
	tr_add(&cfg);
	tr_go();
	CHECK(pinned() == NODES, "%d nodes", pinned());
}

static void stop_daemons(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		rack_close_node(i);
}

RACK_TEST(clean_all__removes_all_or_none)
{
	open_with_endpoint(tr_sink);
	refused(NULL, "stop it first", "with daemons");
	refused("--force", "stop it first", "with daemons, by force");
	stop_daemons();
	refused(NULL, "61696 (", "with an endpoint");
	refused("--dry-run", "61696 (", "with an endpoint, looking only");
	CHECK(pinned() == NODES, "of %d nodes, %d are left", NODES, pinned());
	tr_stop();
	removes("--dry-run", NODES, "looking only");
	CHECK(pinned() == NODES, "a dry run has removed something");
	removes(NULL, NODES, "without endpoints");
	CHECK(!pinned(), "%d nodes are left", pinned());
	removes(NULL, 0, "without nodes");
}

/* Returns how many nodes `barline clean` removes, or would remove. */
static long long cleaned(bool dry_run)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "clean", dry_run ? "--dry-run" : NULL, NULL };
	json_t *said;
	long long n;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	CHECK(!barline_run(&said, argv) && said, "clean");
	n = json_integer_value(json_object_get(said, "nodes"));
	json_decref(said);
	return n;
}

/* What a host has at the loopback interface does not keep it, once its NIC is deleted. */
RACK_TEST(clean__host_without_its_nic)
{
	unsigned int h;
	int home;

	rack.lab.spec.hosts = HOSTS;
	rack_open();
	h = rack_host(0);
	rack_close_node(h);
	CHECK(!cleaned(false), "a host with its NIC was removed");
	home = rack_away(h);
	CHECK(!system("ip link del eth0"), "delete the NIC");
	rack_back(home);
	CHECK(cleaned(true) == 1 && pinned() == NODES, "looking only");
	CHECK(cleaned(false) == 1, "not removed");
	CHECK(pinned() == NODES - 1 && access(rack.dir[h], F_OK), "%d nodes are left", pinned());
	CHECK(!cleaned(false), "something is left");
}

RACK_TEST(clean_all__by_force)
{
	open_with_endpoint(wait_for_the_end);
	stop_daemons();
	removes("--force", NODES, "with an endpoint, by force");
	CHECK(!pinned(), "%d nodes are left", pinned());
	CHECK(tr_until(is_out, 60000), "the endpoint waits for ever");
	CHECK(tr_sh->node[0].user[0] == ESTALE, "%" PRIu64, tr_sh->node[0].user[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_all__removes_all_or_none),
		cmocka_unit_test(clean__host_without_its_nic),
		cmocka_unit_test(clean_all__by_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
