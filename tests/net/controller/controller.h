/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One failure controller on SQLite, in a process of its own, for racks whose nodes have agents, and
 * its status output.
 *
 * 	rack.tweak = name_controller;
 * 	ctl_start(20000);
 * 	rack_open();
 * 	... until all_ok()
 */
#ifndef BARLINE_TESTS_CONTROLLER_H
#define BARLINE_TESTS_CONTROLLER_H

#include <jansson.h>

#include "tests/net/rack.h"
#include "tests/net/controller/ctl_child.h"

#define CTL_ADDR "127.0.0.1:61693"

static pid_t ctl;

T_FN void name_controller(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->ctl.n = 1;
	snprintf(cfg->ctl.addr[0], sizeof(cfg->ctl.addr[0]), CTL_ADDR);
}

/* Starts the controller with @limits, at the address that name_controller() names. */
T_FN void ctl_run(const struct bl_ctl_cfg *limits)
{
	struct bl_ctl_cfg cfg = *limits;
	struct bl_err err;

	snprintf(cfg.listen, sizeof(cfg.listen), CTL_ADDR);
	snprintf(cfg.sqlite, sizeof(cfg.sqlite), BL_RUN_DIR "/ctl.db");
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	ctl = ctl_child(&cfg);
}

/*
 * Starts the controller. @answer_ms: a node that takes longer for an answer has failed; it is long,
 * since a machine that stands still must not fail a node. A controller that was killed continues
 * with the state that it saved.
 */
T_FN void ctl_start(uint32_t answer_ms)
{
	ctl_run(&(struct bl_ctl_cfg){ .answer_ms = answer_ms });
}

T_FN void ctl_kill(void)
{
	CHECK(!kill(ctl, SIGKILL) && waitpid(ctl, NULL, 0) == ctl, "%s", strerror(errno));
	ctl = 0;
}

T_FN const char *ask(void)
{
	return ctl_ask(ctl);
}

T_FN unsigned int times_said(const char *what)
{
	const char *p = ask();
	unsigned int n = 0;

	for (; (p = strstr(p, what)); p++)
		n++;
	return n;
}

/*
 * Returns what the controller says of its failures, for the message of a CHECK(), in a static
 * buffer: "1 h1 cut-off finished, 2 h2:61696 left finished". Its whole status is many pages.
 */
T_FN const char *said_failures(void)
{
	json_t *o = json_loads(ask(), 0, NULL), *f;
	static char text[4096];
	size_t i, n = 0;

	snprintf(text, sizeof(text), "%s", o ? "no failure" : "the controller does not answer");
	json_array_foreach(json_object_get(o, "failures"), i, f)
	{
		if (n < sizeof(text))
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "%s%lld %s %s %s", i ? ", " : "",
				(long long)json_integer_value(json_object_get(f, "number")),
				json_string_value(json_object_get(f, "who")),
				json_string_value(json_object_get(f, "why")),
				json_string_value(json_object_get(f, "step")));
	}
	json_decref(o);
	return text;
}

T_FN bool all_ok(void)
{
	return times_said("\"state\":\"ok\"") == rack.lab.nnodes;
}

T_FN bool one_finished(void)
{
	return times_said("\"step\":\"finished\"") >= 1;
}

T_FN bool none_open(void)
{
	const char *said = ask();

	return *said && !strstr(said, "\"step\":\"saving\"") &&
	       !strstr(said, "\"step\":\"announced\"") && !strstr(said, "\"step\":\"resumed\"");
}

T_FN bool all_finished(void)
{
	return none_open() && one_finished();
}

#endif
