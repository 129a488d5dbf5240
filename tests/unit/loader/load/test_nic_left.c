// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/load/nic_left.c: the commands for what stays changed on a NIC. */
#include "tests/unit/unit.h"

#include <linux/ethtool.h>

#include "loader/load/nic_left.h"

static void undo_text__table(void **state)
{
	static const struct {
		struct bl_nic nic;
		const char *text; /* NULL: nothing stays */
	} v[] = {
		{ { .name = "eth0" }, NULL },
		/* They do not outlive the change to another network namespace. */
		{ { .name = "eth0",
		    .done = BL_NIC_BANDS | BL_NIC_MQ | BL_NIC_QUEUE | BL_NIC_CLSACT },
		  NULL },
		/* A rule without a place may not be there. */
		{ { .name = "eth0", .done = BL_NIC_FLOWS, .nrules = 1, .rule = { RX_CLS_LOC_ANY } },
		  NULL },
		{ { .name = "eth0",
		    .done = BL_NIC_FLOWS | BL_NIC_LRO,
		    .nrules = 3,
		    .rule = { 7, RX_CLS_LOC_ANY, 1023 } },
		  " `for r in 7 1023; do ethtool -N eth0 delete $r; done`"
		  " `ethtool -K eth0 rx-lro on`" },
		{ { .name = "p1",
		    .done = BL_NIC_CHANNELS | BL_NIC_TABLE | BL_NIC_GRO_HW | BL_NIC_VLAN |
			    BL_NIC_STAG | BL_NIC_THREADED | BL_NIC_PINNED,
		    .channels = 8 },
		  " `ethtool -L p1 combined 8` `ethtool -X p1 default`"
		  " `ethtool -K p1 rx-gro-hw on` `ethtool -K p1 rx-vlan-hw-parse on`"
		  " `ethtool -K p1 rx-vlan-stag-hw-parse on`"
		  " `echo 0 > /sys/class/net/p1/threaded`" },
	};
	char text[1024];
	unsigned int k;

	(void)state;
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		assert_int_equal(bl_nic_undo_text(&v[k].nic, text, sizeof(text)), !!v[k].text);
		assert_string_equal(text, v[k].text ? v[k].text : "");
	}
}

/* The longest text fits, and into a line of the log with the rest of its sentence, too. */
static void undo_text__everything(void **state)
{
	struct bl_nic nic = {
		.name = "fifteen-letters", .done = ~0U, .channels = ~0U, .nrules = BL_NIC_RULES
	};
	char text[1024];
	unsigned int k;

	(void)state;
	for (k = 0; k < BL_NIC_RULES; k++)
		nic.rule[k] = RX_CLS_LOC_ANY - 1 - k;
	assert_true(bl_nic_undo_text(&nic, text, sizeof(text)));
	assert_string_equal(text + strlen(text) - 10, "/threaded`");
	assert_true(strlen(text) < 700);
	/* More rules than there can be are not read. */
	nic.nrules = ~0U;
	assert_true(bl_nic_undo_text(&nic, text, sizeof(text)));
	assert_string_equal(text + strlen(text) - 10, "/threaded`");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undo_text__table),
		cmocka_unit_test(undo_text__everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
