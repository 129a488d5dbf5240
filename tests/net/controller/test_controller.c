// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's service with real agents (controller_world.h): controllers are killed and
 * stopped at any step, the quorum is lost, hosts fail, do not answer, and come back.
 *
 * Three things must hold at any time: no agent obeys a command of an epoch below one that it has
 * heard; inputs are resumed only after all correct hosts have completed; a failure has one T. In
 * the end everything is resumed. No time is asserted. test_controller_input.c tests invalid input.
 */
#include "tests/net/loader/said.h"
#include "tests/net/controller/controller_world.h"

#include "tests/net/barline_run.h"

/* Whether child @pid has ended; *@st is its status. */
static bool has_ended(pid_t pid, int *st)
{
	pid_t rc = waitpid(pid, st, WNOHANG);

	CHECK(rc >= 0, "%s", strerror(errno));
	return rc == pid;
}

/*
 * Runs `barline`; said() looks at its output. The agents are served meanwhile: a slow machine takes
 * longer for the command than a node may be silent.
 */
static void barline(const char *args)
{
	char path[512], cmd[800];
	pid_t pid;
	int st;

	CHECK(barline_path(path, sizeof(path)), "barline's path");
	snprintf(cmd, sizeof(cmd), "exec %s %s >" BL_RUN_DIR "/said 2>&1", path, args);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	UNTIL(has_ended(pid, &st));
	CHECK(!st, "%s: status %d", cmd, st);
}

/* Fails unless @pattern is in a line of what `barline` has said. */
static void said(const char *pattern)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd),
		 "grep -q '%s' " BL_RUN_DIR "/said || { cat " BL_RUN_DIR "/said >&2; false; }",
		 pattern);
	CHECK(!system(cmd), "barline has not said %s", pattern);
}

/* ---- one controller ---- */

RACK_TEST(alone__host_fails_and_joins_anew)
{
	struct node *sw = &w.n[SWITCH];
	int log = dup(STDERR_FILENO);
	unsigned int i;

	configure(1, BL_RUN_DIR "/ctl.db");
	say_to(BL_RUN_DIR "/log");
	bl_log_level = BL_LOG_INFO;
	ctl_start(0);
	bl_log_level = BL_LOG_WARN;
	CHECK(dup2(log, STDERR_FILENO) == STDERR_FILENO, "%s", strerror(errno));
	rack_up();
	w.n[4].hold = true;
	host_dies(2);
	UNTIL(w.n[1].done[1] && w.n[3].done[1] && w.n[4].told[1]);
	CHECK(w.n[1].t[1] == 902, "T %" PRIu64, w.n[1].t[1]);
	CHECK(sw->barred[1], "the switch's output to it is barred before T is told");
	serve_ms(100);
	CHECK(!sw->resumes, "resumed, and host 4 has not completed");
	completes(4, 1);
	UNTIL(sw->resumes && sw->port[1].state == BL_AGENT_REMOVED);
	UNTIL(strstr(ask(0), "\"step\":\"finished\""));
	CHECK(says(BL_RUN_DIR "/log", "failure 1 is announced: h2 (") &&
		      says(BL_RUN_DIR "/log", "failure 1 of h2 ("),
	      "its decision is no event");
	/* It comes back: it is told, joins, and the next failure waits for it, too. */
	node_up(2);
	/*
	 * It learns with the WELCOME that it has failed, and from that which failures it has
	 * missed.
	 */
	UNTIL(w.n[2].failed && w.n[2].told[1]);
	w.n[2].failed = false;
	w.n[2].port[0].state = BL_AGENT_REMOVED;
	for (i = 2; i < NUMBERS; i++)
		w.exempt[2][i] = false;
	bl_agent_rejoin(w.n[2].a);
	UNTIL(!sw->barred[1]);
	join(&w.n[2]);
	join(sw);
	UNTIL(strstr(ask(0), "\"name\":\"h2\",\"role\":\"host\",\"state\":\"ok\""));
	host_dies(3);
	UNTIL(w.n[2].done[2] && sw->resumes == 2);
	/* a process */
	bl_agent_proc_down(w.n[1].a, &(struct bl_agent_proc){ .port = 61696, .t = 777 });
	UNTIL(w.n[2].done[3] && w.n[1].resumes);
	CHECK(w.n[2].t[3] == 777, "T %" PRIu64, w.n[2].t[3]);
	/* the status output */
	UNTIL(strstr(ask(0), "\"number\":3") && !strstr(ask(0), "\"step\":\"resumed\"") &&
	      !strstr(ask(0), "\"step\":\"saving\""));
	barline("controller failures -j");
	said("\"who\": *\"h2\"");
	said("\"t\": *777");
	barline("controller failures");
	said("h1:61696 *unknown *finished");
	barline("controller epochs");
	said("^ *1 *127.0.0.1:61693");
	barline("controller show");
	said("h3.*failed");
	said("tor.*switch.*ok");
}

/*
 * A process of a host's old life ends after the others have dealt with the host's failure. Others
 * may have sent to it since, so it is announced by name when the host has joined anew.
 */
RACK_TEST(alone__old_process_of_who_joins_anew)
{
	struct node *sw = &w.n[SWITCH];
	unsigned int i;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	host_dies(2);
	UNTIL(w.n[1].done[1] && w.n[3].done[1] && w.n[4].done[1]);
	UNTIL(sw->resumes && sw->port[1].state == BL_AGENT_REMOVED);
	node_up(2);
	UNTIL(w.n[2].failed);
	bl_agent_proc_down(w.n[2].a, &(struct bl_agent_proc){ .port = 61700, .life = 7, .t = 950 });
	serve_ms(50);
	CHECK(!w.n[1].told[2], "announced while its host is not one of the rack");
	w.n[2].failed = false;
	w.n[2].port[0].state = BL_AGENT_REMOVED;
	for (i = 2; i < NUMBERS; i++)
		w.exempt[2][i] = false;
	bl_agent_rejoin(w.n[2].a);
	UNTIL(!sw->barred[1]);
	join(&w.n[2]);
	join(sw);
	UNTIL(w.n[1].done[2] && w.n[3].done[2] && w.n[4].done[2]);
	CHECK(w.n[1].t[2] == 950, "T %" PRIu64, w.n[1].t[2]);
}

/*
 * The controller is killed between any two steps, and continues when it is started again on the
 * same file.
 */
RACK_TEST(alone__killed_at_each_step)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	unsigned int step;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	for (step = 0; step < 3; step++) {
		uint32_t id = step + 1;
		uint64_t number = step + 1, resumes = sw->resumes;

		epoch = sw->epoch;
		w.n[4].hold = step == 1;
		host_dies(id);
		if (step == 1)
			UNTIL(w.n[4].told[number]);
		else if (step == 2)
			serve_ms(20); /* at a random point */
		ctl_kill(0);
		ctl_start(0);
		UNTIL(sw->epoch > epoch && all_welcome());
		if (w.n[4].hold)
			completes(4, number);
		UNTIL(sw->port[id - 1].state == BL_AGENT_REMOVED && sw->resumes > resumes);
		CHECK(w.n[4].told[number] && w.n[4].t[number] == 900 + id,
		      "failure %" PRIu64 ": T %" PRIu64, number, w.n[4].t[number]);
	}
}

/* A host that never answers is asked, and then fails itself. */
RACK_TEST(alone__host_does_not_answer)
{
	struct node *sw = &w.n[SWITCH];

	configure(1, BL_RUN_DIR "/ctl.db");
	w.cfg[0].answer_ms = 6000;
	ctl_start(0);
	rack_up();
	w.n[3].hold = true;
	/*
	 * It never completes the failure. tests/unit/controller/recover/test_recover_core.c checks
	 * that it has failed before inputs are resumed.
	 */
	w.exempt[3][1] = true;
	host_dies(1);
	UNTIL(sw->freezes);
	UNTIL(w.n[2].told[2] && w.n[3].failed);
	CHECK(w.n[2].t[2] == 5002, "T %" PRIu64, w.n[2].t[2]);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED && sw->port[2].state == BL_AGENT_REMOVED);
	CHECK(sw->barred[0] && sw->barred[2] && !sw->barred[1] && !sw->barred[3], "bars");
	CHECK(!w.n[2].failed && !w.n[4].failed && !sw->failed, "others failed");
}

/* ---- three controllers ---- */

static void replicated(void)
{
	unsigned int k;

	etcd_up();
	configure(CTLS, NULL);
	for (k = 0; k < CTLS; k++)
		ctl_start(k);
	rack_up();
}

/*
 * Host 1 has failed, and host 4 has been told and does not complete the failure. Returns the
 * leader; *@epoch receives its epoch.
 */
static int in_the_middle(uint64_t *epoch)
{
	replicated();
	w.n[4].hold = true;
	host_dies(1);
	UNTIL(w.n[4].told[1] && followed() >= 0);
	*epoch = w.n[SWITCH].epoch;
	return followed();
}

RACK_TEST(replicated__leader_killed_in_the_middle)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	int old;

	old = in_the_middle(&epoch);
	ctl_kill((unsigned int)old);
	UNTIL(all_welcome() && followed() >= 0 && followed() != old);
	UNTIL(sw->epoch > epoch);
	serve_ms(50);
	CHECK(!sw->resumes, "resumed, and host 4 has not completed");
	completes(4, 1);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED);
	/* The next failure gets the next number. */
	host_dies(2);
	UNTIL(w.n[4].done[2] && sw->port[1].state == BL_AGENT_REMOVED);
}

/* A leader that was stopped continues: no node obeys it, and it learns that it does not lead. */
RACK_TEST(replicated__paused_leader_comes_back)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	int old;

	old = in_the_middle(&epoch);
	CHECK(!kill(w.ctl[old], SIGSTOP), "%s", strerror(errno));
	UNTIL(all_welcome() && followed() >= 0 && followed() != old);
	UNTIL(sw->epoch > epoch);
	completes(4, 1);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED);
	CHECK(!kill(w.ctl[old], SIGCONT), "%s", strerror(errno));
	/*
	 * It may be elected again later, with a higher epoch. No node obeys its commands of the old
	 * epoch: on_epoch() checks that epochs rise.
	 */
	UNTIL(strstr(ask((unsigned int)old), "\"lost\":\"") &&
	      !strstr(ask((unsigned int)old), "\"lost\":\"\""));
	host_dies(2);
	UNTIL(w.n[4].done[2] && sw->port[1].state == BL_AGENT_REMOVED);
}

static bool somebody_says_why(void)
{
	unsigned int k;

	for (k = 0; k < CTLS; k++)
		if (strstr(ask(k), "\"trouble\":\"etcd at "))
			return true;
	return false;
}

/*
 * Without a quorum nothing is decided, and the status gives the reason. What was reported meanwhile
 * is decided when there is a quorum again.
 */
RACK_TEST(replicated__no_quorum)
{
	struct node *sw = &w.n[SWITCH];

	replicated();
	UNTIL(leader_now() >= 0);
	etcd_signal(1, SIGSTOP);
	etcd_signal(2, SIGSTOP);
	/* Wait until the leader knows, too: a decision that was saved just before is valid. */
	UNTIL(leader_now() < 0);
	host_dies(1);
	serve_ms(1500);
	CHECK(!w.n[2].told[1] && !sw->resumes, "decided without a quorum");
	UNTIL(somebody_says_why());
	CHECK(!w.n[2].told[1] && !sw->resumes, "decided without a quorum");
	etcd_signal(1, SIGCONT);
	etcd_signal(2, SIGCONT);
	UNTIL(all_welcome() && sw->port[0].state == BL_AGENT_REMOVED);
	CHECK(w.n[2].done[1] && w.n[2].t[1] == 901, "T %" PRIu64, w.n[2].t[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone__host_fails_and_joins_anew),
		cmocka_unit_test(alone__old_process_of_who_joins_anew),
		cmocka_unit_test(alone__killed_at_each_step),
		cmocka_unit_test(alone__host_does_not_answer),
		cmocka_unit_test(replicated__leader_killed_in_the_middle),
		cmocka_unit_test(replicated__paused_leader_comes_back),
		cmocka_unit_test(replicated__no_quorum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
