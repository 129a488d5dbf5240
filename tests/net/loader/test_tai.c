// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The TAI offset of the kernel is set while a rack runs, as time daemons do when they have heard
 * from a server. All nodes send it in their beacons from then on, and all have to accept it.
 */
#include "tests/net/traffic.h"

#include <bpf/bpf.h>
#include <sys/timex.h>

#include "maps/clock_abi.h"
#include "maps/switch_abi.h"

#define WAIT_MS  60000
#define TAI      37
#define MESSAGES 200

/* TAI - UTC as the kernel has it, for the nodes of the rack; a test must not change the kernel's.
 */
static int32_t kernel_tai;

int __wrap_adjtimex(struct timex *tx);

/* A time daemon sets the error anew at each reading. */
int __wrap_adjtimex(struct timex *tx)
{
	static int k;

	*tx = (struct timex){ .maxerror = 100 + ++k % 7,
			      .tai = __atomic_load_n(&kernel_tai, __ATOMIC_RELAXED) };
	return TIME_OK;
}

/* Nobody is excluded while beacons are refused. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
	cfg->clock_source = BL_CLOCK_KERNEL;
}

/* Whether the programs of all nodes compare beacons with @tai. */
static bool all_configurations_say(int32_t tai)
{
	struct bl_host_cfg host = {};
	struct bl_sw_cfg sw = {};
	uint32_t zero = 0;
	unsigned int i;
	int fd, rc;

	for (i = 0; i < rack.lab.nnodes; i++) {
		if (!rack.node[i])
			continue;
		fd = rack_map(i, rack_is_switch(i) ? BL_MAP_SW_CFG : BL_MAP_HOST_CFG);
		rc = bpf_map_lookup_elem(fd, &zero,
					 rack_is_switch(i) ? (void *)&sw : (void *)&host);
		close(fd);
		CHECK(!rc, "%s", strerror(errno));
		if ((rack_is_switch(i) ? sw.tai_offset_s : host.tai_offset_s) != tai)
			return false;
	}
	return true;
}

static uint64_t received(unsigned int i)
{
	return TR_LOAD(tr_sh->node[i].received);
}

/* One message after the other, so that each needs the barriers of beacons. user[0]: the end. */
static void say(struct tr *w)
{
	const uint32_t len = 100;
	uint32_t i;

	for (i = 0; !TR_LOAD(w->me->user[0]); i++) {
		while (tr_send(w, w->cfg->to, 1, &len, 0) == -EAGAIN)
			tr_take(w, 1);
		while (received(1) <= i)
			tr_take(w, 1);
	}
	tr_finish(w);
}

RACK_TEST(tai__set_while_the_rack_runs)
{
	uint64_t end, before;

	rack.lab.spec.hosts = 3;
	rack.tweak = patient;
	rack_open();
	tr_add(&(struct tr_cfg){ .host = 0, .fn = say, .to = 2 });
	tr_add(&(struct tr_cfg){ .host = 1, .fn = tr_sink });
	tr_go();
	end = t_mono() + WAIT_MS * 1000000ULL;
	while (!received(1)) {
		CHECK(t_mono() < end, "nothing arrives");
		rack_serve(1);
	}
	CHECK(all_configurations_say(0), "the programs do not begin with 0");
	__atomic_store_n(&kernel_tai, TAI, __ATOMIC_RELAXED);
	while (!all_configurations_say(TAI)) {
		CHECK(t_mono() < end, "the programs do not compare with %d", TAI);
		rack_serve(1);
	}
	before = received(1);
	while (received(1) < before + MESSAGES) {
		CHECK(t_mono() < end, "%" PRIu64 " messages, and %" PRIu64 " beacons refused",
		      received(1) - before, rack_count_all(BL_R_TAI_MISMATCH));
		rack_serve(1);
	}
	TR_STORE(tr_sh->node[0].user[0], 1);
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge_not_shared(~0ULL, ~0ULL);
	fprintf(stderr,
		"  %" PRIu64 " messages before, %" PRIu64 " after; %" PRIu64 " beacons were "
		"refused meanwhile\n",
		before, received(1) - before, rack_count_all(BL_R_TAI_MISMATCH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tai__set_while_the_rack_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
