// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/admit.c: a change of the whole rack's admission, step by step. The nodes are those of
 * recover_rack.h. What is sent to which node is a text here: "check 1; check 2; check 9" or "set
 * 9". A step is late when the test lets its timer expire.
 */
#include "tests/unit/controller/recover/recover_rack.h"

#include "controller/admit.h"
#include "controller/peer.h"

static char told[256];
static bool leads;
static uint32_t without_session;

/* Stand for the functions of message.c and peer.c that admit.c calls (WRAP_test_admit). */
struct ctl_bytes __wrap_ctl_admission(uint64_t epoch, uint64_t number, bool check,
				      const char *policy, uint64_t rate);
struct peer *__wrap_ctl_peer_ready(struct bl_ctl *c, uint32_t id);
void __wrap_ctl_send(struct peer *p, struct ctl_bytes b);
bool __wrap_ctl_leading(const struct bl_ctl *c);

struct ctl_bytes __wrap_ctl_admission(uint64_t epoch, uint64_t number, bool check,
				      const char *policy, uint64_t rate)
{
	assert_int_equal(epoch, 5);
	assert_int_equal(number, 1);
	assert_string_equal(policy, "pl2");
	assert_int_equal(rate, 1000000);
	return (struct ctl_bytes){ .data = (uint8_t *)strdup(check ? "check" : "set"), .len = 0 };
}

static struct peer peer_of[16];

struct peer *__wrap_ctl_peer_ready(struct bl_ctl *c, uint32_t id)
{
	(void)c;
	peer_of[id].node = id;
	return id == without_session ? NULL : &peer_of[id];
}

void __wrap_ctl_send(struct peer *p, struct ctl_bytes b)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s%s %u", n ? "; " : "", (char *)b.data, p->node);
	free(b.data);
}

bool __wrap_ctl_leading(const struct bl_ctl *c)
{
	(void)c;
	return leads;
}

static struct bl_ctl ctl;

static int admit_setup(void **state)
{
	struct bl_err err;

	(void)state;
	memset(&ctl, 0, sizeof(ctl));
	memset(peer_of, 0, sizeof(peer_of));
	assert_int_equal(pthread_mutex_init(&ctl.lock, NULL), 0);
	assert_true(sd_event_new(&ctl.ev) >= 0);
	ctl.cfg.answer_ms = 1000;
	ctl.elected = 5;
	ctl.rec = rack(2);
	*told = 0;
	leads = true;
	without_session = 0;
	assert_int_equal(ctl_admit_open(&ctl, &err), 0);
	return 0;
}

static int admit_teardown(void **state)
{
	(void)state;
	ctl_admit_close(&ctl);
	bl_recover_free(ctl.rec);
	sd_event_unref(ctl.ev);
	return 0;
}

/* Lets the timer of the current step expire now: the nodes that have not answered are late. */
static void expire_step(void)
{
	assert_true(sd_event_source_set_time(ctl.admit.timer, 0) >= 0);
	assert_true(sd_event_run(ctl.ev, UINT64_MAX) > 0);
}

static void told_is(const char *text)
{
	assert_string_equal(told, text);
	*told = 0;
}

/*
 * Asks for @said as the status socket does, and compares the answer: state, number, and whether
 * there is a trouble.
 */
static void ask(const char *said, const char *state, int number)
{
	char *text = ctl_admit_ask(&ctl, said);
	json_t *o = json_loads(text, 0, NULL);

	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "state")), state);
	assert_int_equal(json_integer_value(json_object_get(o, "number")), number);
	assert_int_equal(!*json_string_value(json_object_get(o, "trouble")), number != 0);
	json_decref(o);
	free(text);
}

/* Asks for a change, and lets the event loop begin it. */
static void begin(void)
{
	ask("admission pl2 1000000", "leader", 1);
	told_is("");
	assert_true(sd_event_run(ctl.ev, UINT64_MAX) > 0);
}

static void answer(uint32_t node, bool check, const char *trouble)
{
	Bl__Admitted m = BL__ADMITTED__INIT;

	m.number = 1;
	m.check = check;
	m.said = (char *)(uintptr_t)(check ? "" : "policy pl2");
	m.trouble = (char *)(uintptr_t)trouble;
	ctl_admit_heard(&ctl, node, &m);
}

static bool timer_on(void)
{
	int on;

	assert_true(sd_event_source_get_enabled(ctl.admit.timer, &on) >= 0);
	return on != SD_EVENT_OFF;
}

/* Compares what the status has of a node: what changed there, and why not. */
static void row_is(const char *step, bool refused, uint32_t id, const char *changed,
		   const char *trouble)
{
	json_t *o = ctl_admit_row(&ctl), *n;
	size_t i, found = 0;

	assert_string_equal(json_string_value(json_object_get(o, "step")), step);
	assert_int_equal(json_is_true(json_object_get(o, "refused")), refused);
	json_array_foreach(json_object_get(o, "nodes"), i, n)
	{
		if (json_integer_value(json_object_get(n, "id")) != id)
			continue;
		found++;
		assert_string_equal(json_string_value(json_object_get(n, "changed")), changed);
		assert_string_equal(json_string_value(json_object_get(n, "trouble")), trouble);
		assert_string_equal(json_string_value(json_object_get(n, "role")),
				    id == 9 ? "switch" : "host");
		assert_string_equal(json_string_value(json_object_get(n, "node")), id == 9   ? "tor"
										   : id == 1 ? "h1"
											     : "h"
											       "2");
	}
	assert_int_equal(found, 1);
	json_decref(o);
}

static bool took_time(void)
{
	json_t *o = ctl_admit_row(&ctl);
	bool took = json_integer_value(json_object_get(o, "took_ns")) > 0;

	json_decref(o);
	return took;
}

/*
 * All nodes are asked whether they can change; then the switch changes, then the hosts, each after
 * all nodes before it.
 */
static void change__switches_before_hosts(void **state)
{
	(void)state;
	assert_false(timer_on());
	begin();
	told_is("check 1; check 2; check 9");
	assert_true(timer_on());
	answer(2, true, "");
	answer(9, true, "");
	told_is("");
	answer(1, true, "");
	told_is("set 9");
	assert_false(took_time());
	answer(9, false, "");
	told_is("set 1; set 2");
	answer(1, false, "");
	assert_true(timer_on());
	row_is("hosts", false, 1, "policy pl2", "");
	row_is("hosts", false, 2, "", "");
	answer(2, false, "");
	told_is("");
	row_is("done", false, 9, "policy pl2", "");
	row_is("done", false, 2, "policy pl2", "");
	assert_false(timer_on());
	assert_true(took_time());
	/* the next change has not begun yet */
	ask("admission none 0", "leader", 2);
	assert_false(took_time());
}

/* A node that cannot change: no node is told to change, and the row does not read as if one had. */
static void change__refused_by_one(void **state)
{
	(void)state;
	begin();
	told_is("check 1; check 2; check 9");
	answer(1, true, "no pacer");
	answer(2, true, "");
	row_is("check", true, 1, "", "no pacer");
	answer(9, true, "");
	told_is("");
	row_is("done", true, 1, "", "no pacer");
	row_is("done", true, 2, "", "");
	assert_false(timer_on());
	assert_false(took_time());
}

/* Once nodes change, one that fails to does not stop the others, and reports why. */
static void change__trouble_while_it_changes(void **state)
{
	(void)state;
	begin();
	answer(1, true, "");
	answer(2, true, "");
	answer(9, true, "");
	*told = 0;
	answer(9, false, "out of memory");
	told_is("set 1; set 2");
	row_is("hosts", false, 9, "policy pl2", "out of memory");
}

/* A silent node is late, is named, and is asked no more; the others go on. */
static void change__late(void **state)
{
	(void)state;
	begin();
	*told = 0;
	answer(1, true, "");
	answer(9, true, "");
	expire_step();
	told_is("set 9");
	row_is("switches", false, 2, "", "no answer within 1000 ms");
	row_is("switches", false, 9, "", "");
	answer(2, true, ""); /* a late answer does not count: it is not waited for */
	row_is("switches", false, 2, "", "no answer within 1000 ms");
	expire_step();
	told_is("set 1");
	expire_step();
	told_is("");
	row_is("done", false, 1, "", "no answer within 1000 ms");
}

/* The only switch has no session: its step is empty, and the hosts change at once. */
static void change__without_a_session(void **state)
{
	(void)state;
	without_session = 9;
	begin();
	told_is("check 1; check 2");
	answer(1, true, "");
	answer(2, true, "");
	told_is("set 1; set 2");
	row_is("hosts", false, 9, "", "it has no session with the controller");
}

/* Answers to another change, of another step, of an unknown node, or twice: none of them counts. */
static void change__answers_that_do_not_count(void **state)
{
	Bl__Admitted m = BL__ADMITTED__INIT;

	(void)state;
	answer(1, true, ""); /* no change is under way */
	begin();
	*told = 0;
	answer(1, false, "");
	answer(77, true, "");
	m.number = 2;
	m.check = true;
	m.said = m.trouble = (char *)(uintptr_t) "";
	ctl_admit_heard(&ctl, 1, &m);
	answer(2, true, "");
	answer(2, true, "again, with a trouble");
	answer(9, true, "");
	told_is("");
	row_is("check", false, 2, "", "");
	answer(1, true, "");
	told_is("set 9");
	answer(1, false, "");
	told_is("");
	answer(9, true, "");
	told_is("");
	answer(9, false, "");
	told_is("set 1; set 2");
	answer(1, false, "");
	answer(2, false, "");
	answer(2, false, "after the end");
	row_is("done", false, 2, "policy pl2", "");
}

/*
 * This controller no longer leads: nodes that were told, or would have been, may or may not have
 * changed.
 */
static void change__the_leader_is_gone(void **state)
{
	(void)state;
	ctl_admit_lost(&ctl);
	assert_int_equal(ctl.admit.step, CTL_ADMIT_NEVER);
	begin();
	answer(1, true, "");
	answer(2, true, "");
	answer(9, true, "");
	answer(9, false, "");
	answer(1, false, "");
	ctl_admit_lost(&ctl);
	row_is("done", false, 9, "policy pl2", "");
	row_is("done", false, 2, "", "the controller leads no more");
	assert_false(timer_on());
	answer(2, false, "");
	row_is("done", false, 2, "", "the controller leads no more");
	ctl_admit_lost(&ctl);
	row_is("done", false, 9, "policy pl2", "");
}

static void ask__what_is_no_order(void **state)
{
	(void)state;
	ask("admission", "standby", 0);
	ask("admission pl2", "standby", 0);
	ask("admission pl2 fast", "standby", 0);
	ask("usable 0 1 2", "standby", 0);
	leads = false;
	ask("admission pl2 0", "standby", 0);
	leads = true;
	begin();
	ask("admission none 0", "leader", 0);
	assert_string_equal(ctl.admit.policy, "pl2");
	expire_step(); /* no node answers, so no node is left to be told */
	row_is("done", false, 1, "", "no answer within 1000 ms");
	ask("admission none 0", "leader", 2);
	assert_string_equal(ctl.admit.policy, "none");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, admit_setup, admit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(change__switches_before_hosts),    CASE(change__refused_by_one),
		CASE(change__trouble_while_it_changes), CASE(change__late),
		CASE(change__without_a_session),        CASE(change__answers_that_do_not_count),
		CASE(change__the_leader_is_gone),       CASE(ask__what_is_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
