// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A running switch gets new ports, and one of them cannot be attached (loader/switch.c:
 * attach_all). The start fails, everything that was attached to the other new ports is removed
 * again, and the old ports continue.
 */
#include "tests/net/reliable/reliable.h"

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS */

#define HOSTS      4
#define FEW        2

static unsigned int ports = FEW; /* number of ports in the configuration of the switch */
static char last[IFNAMSIZ], before_last[IFNAMSIZ];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	unsigned int i, k, p;

	cfg->clock_void_after_ms = 100000;
	cfg->dead_after_us = 10000000;
	if (n->kind == LAB_HOST)
		return;
	snprintf(last, sizeof(last), "%s", cfg->ports[HOSTS - 1].ifname);
	snprintf(before_last, sizeof(before_last), "%s", cfg->ports[HOSTS - 2].ifname);
	cfg->ports_count = ports;
	/* keep the addresses behind its ports */
	for (i = k = 0; i < cfg->fdb_count; i++) {
		for (p = 0; p < ports && strcmp(cfg->fdb[i].ifname, cfg->ports[p].ifname); p++)
			;
		if (p < ports)
			cfg->fdb[k++] = cfg->fdb[i];
	}
	cfg->fdb_count = k;
}

/*
 * Returns the number of programs on that interface of the switch: at egress, whatever the kernel
 * calls its hook, and XDP.
 */
static unsigned int programs(const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY);
	LIBBPF_OPTS(bpf_prog_query_opts, tcx);
	LIBBPF_OPTS(bpf_xdp_query_opts, xdp);
	int home = rack_away(0);
	unsigned int n = 0;
	int ifindex = (int)if_nametoindex(ifname);
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_EGRESS);

	CHECK(ifindex > 0, "%s", ifname);
	n += !bpf_xdp_query(ifindex, 0, &xdp) && xdp.drv_prog_id;
	n += !bpf_prog_query_opts(ifindex, (enum bpf_attach_type)TCX_EGRESS, &tcx) && tcx.prog_cnt;
	n += !bpf_tc_query(&hook, &filter) && filter.prog_id;
	rack_back(home);
	return n;
}

static bool pinned(const char *kind, const char *ifname)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/links/%s-%s", rack.dir[0], kind, ifname);
	return !access(path, F_OK);
}

static bool two_have(void)
{
	return TR_LOAD(tr_sh->node[0].received) > 100 && TR_LOAD(tr_sh->node[1].received) > 100;
}

static bool two_have_more(void)
{
	return TR_LOAD(tr_sh->node[0].received) > TR_LOAD(tr_sh->node[0].user[0]) + 100 &&
	       TR_LOAD(tr_sh->node[1].received) > TR_LOAD(tr_sh->node[1].user[0]) + 100;
}

RACK_TEST(new_ports__all_or_none)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 100,
			      .gap_us = 2000,
			      .to = 3,
			      .quiet_ms = 4000,
			      .ring_bytes = TR_RING_TIGHT(4) };
	struct bl_err err = { 0 };
	char pin[512];
	unsigned int i;

	rack.lab.spec.hosts = HOSTS;
	rack.tweak = tweak;
	rack_open();
	rack.lab.nodes[0].nports = FEW; /* ports that traffic waits for */
	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg);
	tr_go();
	CHECK(tr_until(two_have, 60000), "nothing is delivered");
	CHECK(!programs(last) && !programs(before_last), "ports that are not configured have "
							 "programs");

	/*
	 * This name cannot be pinned: the last port's program fails when the port before has its
	 * own.
	 */
	snprintf(pin, sizeof(pin), "%s/links/egress-%s", rack.dir[0], last);
	CHECK(!mkdir(pin, 0700), "%s: %s", pin, strerror(errno));
	rack.lab.nodes[0].nports = ports = HOSTS;
	rack_close_node(0);
	CHECK(!rack_start_node(0, &err) && strstr(err.text, "pin"),
	      "it was started with a port that it cannot have: %s", err.text);
	CHECK(!programs(before_last) && !pinned("egress", before_last) &&
		      !pinned("xdp", before_last),
	      "%s has %u programs still, of a start that failed", before_last,
	      programs(before_last));
	CHECK(!programs(last), "%s has programs of a start that failed", last);
	for (i = 0; i < 2; i++)
		TR_STORE(tr_sh->node[i].user[0], TR_LOAD(tr_sh->node[i].received));
	CHECK(tr_until(two_have_more, 60000), "the ports of before stand still");

	CHECK(!rmdir(pin), "%s: %s", pin, strerror(errno));
	rack_open_node(0);
	CHECK(programs(before_last) == 2 && programs(last) == 2,
	      "the new ports have %u and %u programs", programs(before_last), programs(last));
	for (i = 0; i < 2; i++)
		TR_STORE(tr_sh->node[i].user[0], TR_LOAD(tr_sh->node[i].received));
	CHECK(tr_until(two_have_more, 60000), "the ports of before stand still with the new ones");
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(3, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ports__all_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
