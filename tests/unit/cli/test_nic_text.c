// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/util/nic_text.c: what is known of a NIC, in one line, also where little is known. */
#include "tests/unit/unit.h"

#include "cli/util/nic_facts.h"

static const struct bl_nic_driver longest = { .rings = BL_RINGS_UNKNOWN };

static const struct {
	struct nic_facts f;
	const char *text;
} t[] = {
	{ { .driver = "igb",
	    .qdisc = "mq",
	    .tx_queues = 2,
	    .rx_queues = 4,
	    .xps_queues = 2,
	    .rx_usecs = 3,
	    .adaptive_rx = true,
	    .lro = -1,
	    .gro_hw = 0,
	    .rxvlan = 1,
	    .hw_rx = true,
	    .hw_tx = true,
	    .phc = 0 },
	  "igb, native XDP, rings unknown; transmit: 2 queues, mq, XPS on 2; receive: 4 queues, "
	  "rx-usecs 3 (adaptive), no LRO, GRO_HW off, rxvlan on; hardware timestamps, PTP clock "
	  "/dev/ptp0" },
	{ { .driver = "veth",
	    .generic = true,
	    .tx_queues = 1,
	    .rx_queues = 1,
	    .rx_usecs = 0,
	    .lro = 1,
	    .gro_hw = -1,
	    .rxvlan = 0,
	    .hw_rx = true,
	    .phc = -1 },
	  "veth, generic XDP, rings unknown; transmit: 1 queue, no qdisc, no XPS; receive: "
	  "1 queue, rx-usecs 0, LRO on, no GRO_HW, rxvlan off; no hardware timestamps, no PTP "
	  "clock" },
	{ { .tx_queues = 1,
	    .rx_queues = 1,
	    .xps_queues = -1,
	    .rx_usecs = -1,
	    .lro = -1,
	    .gro_hw = -1,
	    .rxvlan = -1,
	    .phc = -1 },
	  "unknown driver, native XDP, rings unknown; transmit: 1 queue, no qdisc, XPS not known; "
	  "receive: 1 queue, coalescing not known, no LRO, no GRO_HW, no rxvlan; no hardware "
	  "timestamps, no PTP clock" },
};

static void facts__in_one_line(void **state)
{
	struct nic_facts f = t[0].f;
	char text[300];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_string_equal(nic_facts_text(&t[i].f, text, sizeof(text)), t[i].text);
	f.row = bl_nic_driver("igb");
	assert_non_null(strstr(nic_facts_text(&f, text, sizeof(text)), "rings shared;"));
}

/* The longest line there is fits a finding of the doctor, and a short buffer is not overrun. */
static void facts__in_any_buffer(void **state)
{
	struct nic_facts f = {
		.generic = true,
		.row = &longest,
		.tx_queues = UINT32_MAX,
		.rx_queues = UINT32_MAX,
		.xps_queues = INT32_MAX,
		.rx_usecs = INT32_MAX,
		.adaptive_rx = true,
		.phc = INT32_MAX,
	};
	char text[300], cut[300] = "";
	size_t size;

	(void)state;
	memset(f.driver, 'd', sizeof(f.driver) - 1);
	memset(f.qdisc, 'q', sizeof(f.qdisc) - 1);
	assert_true(strlen(nic_facts_text(&f, text, sizeof(text))) < 280);
	for (size = 1; size < sizeof(cut) - 1; size++) {
		memset(cut, '#', sizeof(cut) - 1);
		nic_facts_text(&f, cut, size);
		assert_true(strlen(cut) < size);
		assert_int_equal(strncmp(cut, text, strlen(cut)), 0);
		assert_int_equal(strspn(cut + size, "#"), sizeof(cut) - 1 - size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts__in_one_line),
		cmocka_unit_test(facts__in_any_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
