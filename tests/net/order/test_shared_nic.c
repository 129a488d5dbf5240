// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints of one host share the ring of its NIC, 256 frames of a veth (lib/nic.c). Nothing may be
 * lost there, however many endpoints there are. The daemon tells the endpoints how many they are,
 * whenever one comes, leaves or dies.
 */
#include "tests/net/traffic.h"

static struct bl_host_page page_of(unsigned int host)
{
	int fd = rack_map(rack_host(host), BL_MAP_HOST_PAGE);
	struct bl_host_page page;
	uint32_t zero = 0;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page), "%s", strerror(errno));
	close(fd);
	return page;
}

static uint32_t wanted;

static bool as_many_as_wanted(void)
{
	return page_of(0).eps_active == wanted;
}

static void expect_members(uint32_t n)
{
	wanted = n;
	CHECK(tr_until(as_many_as_wanted, 60000), "the page says that there are %u members, not %u",
	      page_of(0).eps_active, n);
}

RACK_TEST(members__are_counted)
{
	unsigned int id[3], i;

	rack.lab.spec.hosts = 2;
	rack_open();
	expect_members(0);
	for (i = 0; i < 3; i++) {
		id[i] = tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_sink });
		CHECK(page_of(0).eps_active == i + 1, "the newcomer knows that it is one of %u",
		      page_of(0).eps_active);
		CHECK(page_of(0).eps_lines == i + 1, "%u lines", page_of(0).eps_lines);
	}
	tr_add(&(struct tr_cfg){ .host = 1, .fn = tr_sink });
	tr_kill(id[1]);
	expect_members(2);
	rack_close_node(rack_host(0)); /* the next daemon counts the endpoints that it finds */
	rack_open_node(rack_host(0));
	expect_members(2);
	tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_sink });
	expect_members(3);
	CHECK(page_of(0).eps_lines == 3, "%u lines", page_of(0).eps_lines);
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	expect_members(0);
	CHECK(page_of(0).eps_lines == 3, "%u lines", page_of(0).eps_lines);
}

/* A host that has no CPU is not excluded: what it had sent would be late. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

/* Runs @endpoints endpoints on @hosts hosts that send to each other; everything arrives. */
static void talk(const char *what, unsigned int endpoints, unsigned int hosts, struct tr_cfg cfg)
{
	tr_talk(what, endpoints, hosts, cfg);
	CHECK(TR_SUM(lost_frames) == 0, "%" PRIu64 " frames were lost", TR_SUM(lost_frames));
	tr_reset();
}

RACK_TEST(many__nothing_is_lost)
{
	rack.lab.spec.hosts = 4;
	rack.tweak = patient;
	rack_open();
	talk("16 endpoints on 2 hosts, all to all", 16, 2,
	     (struct tr_cfg){ .scatterings = 300, .len = 300, .items = 2, .more = 64 });
	talk("32 endpoints on 2 hosts, all to all", 32, 2,
	     (struct tr_cfg){ .scatterings = 60, .len = 200, .more = 64 });
	talk("16 endpoints on 4 hosts, large messages", 16, 4,
	     (struct tr_cfg){ .scatterings = 40, .fan = 4, .len = 1450, .big = 40, .more = 64 });
	talk("16 endpoints on 4 hosts, reliably", 16, 4,
	     (struct tr_cfg){ .scatterings = 150,
			      .fan = 8,
			      .len = 1400,
			      .items = 2,
			      .more = 64,
			      .reliable = true });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members__are_counted),
		cmocka_unit_test(many__nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
