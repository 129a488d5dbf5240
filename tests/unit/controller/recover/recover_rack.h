/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the step-by-step tests of controller/recover/ share: a rack of one switch, and the outputs
 * as a text.
 *
 * Example: a link falls silent at 10 ms, with a settle time of 5 ms. outs() is "" until 15 ms, then
 * "bar 9", "save 1:0" when the bar is confirmed, and "fail 1/1; fail 2/1; fail 3/1" when the
 * failure is saved.
 */
#ifndef BARLINE_RECOVER_RACK_H
#define BARLINE_RECOVER_RACK_H

#include "tests/unit/unit.h"

#include "controller/recover/recover_core.h"

#define MS 1000000ULL

static const struct bl_recover_cfg cfg = { .settle_ns = 5 * MS,
					   .answer_ns = 1000 * MS,
					   .grace_ns = 3000 * MS };

/* the ports of switch 9, whose hosts 1 to @hosts are on ports 1 to @hosts */
static struct bl_recover_port sw_port[8];
static uint64_t said_epoch; /* highest epoch that the agents have heard of */
static const uint8_t addr_of[5][1][16] = {
	{ { 0 } }, { { 10, 1 } }, { { 10, 2 } }, { { 10, 3 } }, { { 10, 4 } }
};

static inline struct bl_recover_hello hello_host(uint32_t id)
{
	static const uint16_t endpoint[] = { 61696, 61697 };
	static struct bl_recover_port up[5];
	struct bl_recover_hello h = { .id = id,
				      .epoch = said_epoch,
				      .kind = BL_DET_HOST,
				      .addr = addr_of[id],
				      .naddrs = 1,
				      .port = &up[id],
				      .nports = 1,
				      .endpoint = endpoint,
				      .nendpoints = 2 };

	up[id] = (struct bl_recover_port){ .port = 0, .neighbour = 9, .role = BL_RECOVER_UP };
	snprintf(h.name, sizeof(h.name), "h%u", id);
	return h;
}

static inline struct bl_recover_hello hello_switch(uint32_t hosts)
{
	struct bl_recover_hello h = { .id = 9,
				      .epoch = said_epoch,
				      .kind = BL_DET_SWITCH,
				      .port = sw_port,
				      .nports = hosts,
				      .name = "tor" };
	uint32_t i;

	for (i = 0; i < hosts; i++)
		sw_port[i] = (struct bl_recover_port){ .port = i + 1,
						       .neighbour = i + 1,
						       .role = BL_RECOVER_HOST };
	return h;
}

/* Returns the outputs as a text: "save 9; bar 9; fail 1/7". */
static inline const char *outs(struct bl_recover *r)
{
	static const char *const names[] = {
		[BL_RECOVER_SAVE_NODE] = "node",    [BL_RECOVER_SAVE_FAILURE] = "save",
		[BL_RECOVER_DROP_FAILURE] = "drop", [BL_RECOVER_WELCOME] = "welcome",
		[BL_RECOVER_BAR] = "bar",           [BL_RECOVER_FREEZE] = "freeze",
		[BL_RECOVER_FAIL] = "fail",         [BL_RECOVER_RESUME] = "resume"
	};
	static char text[1024];
	struct bl_recover_out o;

	*text = 0;
	while (bl_recover_next(r, &o)) {
		size_t n = strlen(text);

		if (o.what == BL_RECOVER_SAVE_FAILURE || o.what == BL_RECOVER_DROP_FAILURE)
			snprintf(text + n, sizeof(text) - n, "%s%s %u:%u", n ? "; " : "",
				 names[o.what], (unsigned int)o.number,
				 o.what == BL_RECOVER_SAVE_FAILURE
					 ? bl_recover_failure(r, o.number)->step
					 : 0);
		else if (o.what == BL_RECOVER_FAIL || o.what == BL_RECOVER_RESUME ||
			 (o.what == BL_RECOVER_WELCOME && o.number))
			snprintf(text + n, sizeof(text) - n, "%s%s %u/%u", n ? "; " : "",
				 names[o.what], o.node, (unsigned int)o.number);
		else
			snprintf(text + n, sizeof(text) - n, "%s%s %u", n ? "; " : "",
				 names[o.what], o.node);
	}
	return text;
}

static inline void bar_all(struct bl_recover *r, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < bl_recover_nodes(r); i++)
		bl_recover_barred(r, now, bl_recover_node_at(r, i)->id,
				  bl_recover_node_at(r, i)->bar);
}

/* Returns a leader of epoch 5 at time 0, with the rack connected and saved. */
static inline struct bl_recover *rack(uint32_t hosts)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_hello h;
	uint32_t i;

	assert_non_null(r);
	bl_recover_start(r, 0, 5);
	said_epoch = 5;
	h = hello_switch(hosts);
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "node 9");
	bl_recover_saved_node(r, 0, 9);
	assert_string_equal(outs(r), "welcome 9; bar 9");
	for (i = 1; i <= hosts; i++) {
		h = hello_host(i);
		assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
		bl_recover_saved_node(r, 0, i);
	}
	outs(r);
	bar_all(r, 0);
	assert_string_equal(outs(r), "");
	return r;
}

/*
 * The link of host 2 falls silent at 10 ms, and the failure is decided at 15 ms. It waits to be
 * saved.
 */
static inline void host_2_fails(struct bl_recover *r)
{
	bl_recover_link_down(r, 10 * MS, 9, 2, 2, 900, 7);
	bl_recover_tick(r, 15 * MS);
	bar_all(r, 15 * MS);
	bl_recover_tick(r, 15 * MS);
}

#endif
