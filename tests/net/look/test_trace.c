// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline trace` without a capture: a message by its name, the last ones, what waits for a window,
 * and what waits for a barrier now. test_capture.c has trace with a capture.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/barline_run.h"
#include "tests/net/run_beside.h"
#include "tests/net/until.h"
#include "loader/order/fence.h"

#define PORT "61710"

static char barline[512];

static void open_hosts(unsigned int hosts)
{
	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rack.lab.spec.hosts = hosts;
	rack_open();
	rack_settle();
}

/* A receiver on h2, whose address goes into @to. */
static struct run receive(bool reliable, char to[64])
{
	const char *const argv[] = {
		barline, "-j", "recv", "-p", PORT, reliable ? "-r" : NULL, NULL
	};
	struct run r = start_on(rack_host(1), argv, "");
	int found = sscanf(written(&r, r.err, "receiving on "), "%63s", to);

	CHECK(found == 1, "it does not say where");
	return r;
}

static json_int_t time_of(const json_t *o, const char *key)
{
	CHECK(json_is_integer(json_object_get(o, key)), "%s: %s", key, json_dumps(o, 0));
	return json_integer_value(json_object_get(o, key));
}

/*
 * Runs trace -a with one argument more. Returns its exit status, and the first row that @fits
 * accepts.
 */
static int trace(const char *arg, bool (*fits)(const json_t *o, const char *key), const char *key,
		 json_t **row)
{
	const char *const argv[] = { barline, "-j", "trace", "-a", arg, NULL };
	struct run r = start_on(rack_host(0), argv, "");
	json_t *o;
	FILE *f;

	reap(&r, "trace");
	*row = NULL;
	f = fmemopen((void *)(uintptr_t)text_of(r.out), strlen(text_of(r.out)) + 1, "r");
	CHECK(f, "%s", strerror(errno));
	while ((o = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
		if (!*row && fits(o, key))
			*row = json_incref(o);
		json_decref(o);
	}
	fclose(f);
	close(r.out);
	close(r.err);
	CHECK(WIFEXITED(r.status), "%#x", r.status);
	return WEXITSTATUS(r.status);
}

static bool is_message(const json_t *o, const char *name)
{
	return json_says(o, "message", name);
}

static bool waits_now(const json_t *o, const char *endpoint)
{
	const json_t *w = json_object_get(o, "waited_for");

	return w && json_says(w, "what", "window") && json_says(w, "endpoint", endpoint) &&
	       json_is_null(json_object_get(o, "message"));
}

/* What send -v and recv say is one name, and trace knows what it is. */
static void one_message(bool reliable)
{
	char to[64], name[96], at[64], key[128];
	struct run r = receive(reliable, to), s;
	const char *const send[] = { barline, "-v", "send", to, "hello", reliable ? "-r" : NULL,
				     NULL };
	json_t *row;
	int found;

	s = start_on(rack_host(0), send, "");
	found = sscanf(written(&s, s.err, "line 1 is "), "%95s", name);
	CHECK(found == 1, "the sender says \"%s\"", text_of(s.err));
	snprintf(key, sizeof(key), "\"%s\"", name);
	written(&r, r.out, key);
	reap(&s, "the sender");
	CHECK(WIFEXITED(s.status) && !WEXITSTATUS(s.status), "%#x", s.status);

	CHECK(!trace(name, is_message, name, &row) && row, "%s is not known", name);
	CHECK(json_says(row, "destination", to) &&
		      json_says(row, "opcode", reliable ? "prep" : "data") &&
		      time_of(row, "total_ns") > 0,
	      "%s", json_dumps(row, 0));
	CHECK(json_is_null(json_object_get(row, "held_by")), "%s", json_dumps(row, 0));
	json_decref(row);
	snprintf(at, sizeof(at), "%s", strchr(name, '@'));
	CHECK(!trace(at, is_message, name, &row) && row, "%s is not known", at);
	json_decref(row);
	CHECK(!trace("--last", is_message, name, &row) && row, "it was not the last one");
	json_decref(row);
	*strrchr(name, '@') = '\0';
	strcat(name, "@5");
	CHECK(trace(name, is_message, name, &row) == 1 && !row, "%s is known", name);
	end_run(&r, SIGTERM);
	close(s.out);
	close(s.err);
}

RACK_TEST(trace__by_name)
{
	open_hosts(2);
	one_message(false);
}

RACK_TEST(trace__by_name_reliable)
{
	open_hosts(2);
	one_message(true);
}

/* A receiver that is stopped closes its window: its sender waits for it, and says so. */
RACK_TEST(trace__closed_window)
{
	char to[64], text[8192] = "";
	const char *const send[] = { barline, "send", "-w", "50000", to, NULL };
	struct run r, s = { 0 };
	uint64_t end;
	json_t *row;
	int i;

	open_hosts(2);
	r = receive(false, to);
	kill(r.pid, SIGSTOP);
	for (i = 0; i < 1000; i++)
		strcat(text, "x\n");
	end = t_mono() + RUN_WAIT_NS;
	do {
		CHECK(t_mono() < end, "nothing waits for %s", to);
		/* A sender gives up after some seconds, and ends: on a busy machine, before trace.
		 */
		if (!s.pid || waitpid(s.pid, &s.status, WNOHANG) == s.pid)
			s = start_on(rack_host(0), send, text);
		rack_serve(20);
		trace("--last", waits_now, to, &row);
	} while (!row);
	CHECK(time_of(row, "window_ns") > 0 && json_is_null(json_object_get(row, "total_ns")), "%s",
	      json_dumps(row, 0));
	json_decref(row);
	kill(r.pid, SIGCONT);
	reap(&s, "the sender");
	end_run(&r, SIGTERM);
	close(s.out);
	close(s.err);
}

static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 50000000;
}

static bool held_by_h3(const json_t *o, const char *name)
{
	const json_t *by = json_object_get(o, "held_by");

	return is_message(o, name) && by && json_says(by, "node", "h3") &&
	       json_says(by, "switch", "s1") && json_is_true(json_object_get(by, "now"));
}

/* h3 is silent, and its switch is patient: messages of others wait for it. */
RACK_TEST(trace__waits_now)
{
	char to[64], name[96];
	const char *const send[] = { barline, "-v", "send", "-w", "100", to, "hello", NULL };
	struct run r, s;
	json_t *row;
	int found;

	rack.tweak = patient;
	open_hosts(3);
	r = receive(false, to);
	rack_close_node(rack_host(2));
	s = start_on(rack_host(0), send, "");
	found = sscanf(written(&s, s.err, "line 1 is "), "%95s", name);
	CHECK(found == 1, "the sender says \"%s\"", text_of(s.err));
	CHECK(!trace(name, held_by_h3, name, &row) && row, "%s does not wait for h3", name);
	CHECK(time_of(row, "total_ns") >= 0, "%s", json_dumps(row, 0));
	json_decref(row);
	CHECK(!*text_of(r.out), "it was delivered: %s", text_of(r.out));
	end_run(&s, SIGTERM);
	end_run(&r, SIGTERM);
}

static bool prep_held_by_h3(const json_t *o, const char *name)
{
	return held_by_h3(o, name) && json_says(o, "opcode", "prep");
}

/*
 * h3 is dead and excluded, and waits for its controller's RESUME: the barrier goes on without it,
 * and the commit barrier does not.
 */
RACK_TEST(trace__waits_now_reliable)
{
	char to[64], name[96];
	const char *const send[] = { barline, "-v", "send", "-r", "-w", "100", to, "hello", NULL };
	struct bl_fence_port frozen;
	struct run r, s;
	uint64_t end;
	json_t *row;
	int found;

	open_hosts(3);
	r = receive(true, to);
	CHECK(!bl_fence_freeze(bl_node_fence(rack.node[0]), 5, 2, &frozen) && frozen.held, "h3's "
											   "port "
											   "is not "
											   "froze"
											   "n");
	rack_close_node(rack_host(2));
	UNTIL("waits for the end of h3", rack_live_inputs(0) == 2);
	s = start_on(rack_host(0), send, "");
	found = sscanf(written(&s, s.err, "line 1 is "), "%95s", name);
	CHECK(found == 1, "the sender says \"%s\"", text_of(s.err));
	end = t_mono() + RUN_WAIT_NS;
	do {
		/* the barrier has to pass it first, for a few milliseconds */
		CHECK(t_mono() < end, "%s does not wait for h3", name);
		trace(name, prep_held_by_h3, name, &row);
	} while (!row);
	json_decref(row);
	CHECK(!*text_of(r.out), "it was delivered: %s", text_of(r.out));
	end_run(&s, SIGTERM);
	end_run(&r, SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace__by_name),
		cmocka_unit_test(trace__by_name_reliable),
		cmocka_unit_test(trace__closed_window),
		cmocka_unit_test(trace__waits_now),
		cmocka_unit_test(trace__waits_now_reliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
