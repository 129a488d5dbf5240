/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common code of the restart tests: a rack of daemons with a controller that watches, and limits
 * that a busy machine does not reach by itself.
 */
#ifndef BARLINE_TESTS_RESTART_H
#define BARLINE_TESTS_RESTART_H

#include "tests/net/daemons.h"
#include "tests/net/until.h"

#define HOSTS   3
#define DEAD_US 1500000

static uint32_t answer_ms = 20000;
static uint32_t stuck_ms; /* 0: the default */
static uint32_t dead_us = DEAD_US;
static bool broken; /* the next daemon does not start: a certificate is missing */

T_FN void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = dead_us;
	if (broken)
		snprintf(cfg->ctl.ca, sizeof(cfg->ctl.ca), BL_RUN_DIR "/none.pem");
}

T_FN void open_rack(unsigned int hosts)
{
	rack_last_words = rack_last_words ? rack_last_words : say_all;
	rack.lab.spec.hosts = hosts;
	rack.tweak = tweak;
	ctl_run(&(struct bl_ctl_cfg){ .answer_ms = answer_ms, .stuck_ms = stuck_ms });
	daemons_open();
	UNTIL("waits for all nodes", all_ok());
}

T_FN unsigned int failures(void)
{
	return times_said("\"number\":");
}

#endif
