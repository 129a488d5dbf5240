// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline host drain` and `undrain`: processes of the host send nothing new and get their answers,
 * the host leaves and is missed by nobody, and comes back. With a controller and without.
 */
#include "tests/net/loader/restart.h"
#include "tests/net/loader/restart_load.h"

#define VICTIM 1 /* the host that is drained */

/* Runs `barline -j host WORD` on host @i, with @more. Returns its exit status. */
static int run_host(unsigned int i, const char *word, const char *more, json_t **said)
{
	char program[512], netns[256];
	const char *const argv[] = { program, "-j", "-n", netns, "host", word, more, NULL };
	pid_t pid;
	int out = memfd_create("out", MFD_CLOEXEC), st;

	CHECK(barline_path(program, sizeof(program)), "where am I?");
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[rack_host(i)].name);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0 && out >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(1);
	lseek(out, 0, SEEK_SET);
	*said = json_loadfd(out, 0, NULL);
	close(out);
	CHECK(WIFEXITED(st) && *said, "barline host %s: status %#x", word, st);
	return WEXITSTATUS(st);
}

static void drain(unsigned int i)
{
	json_t *said;
	int rc = run_host(i, "drain", "--timeout=60", &said);
	const char *state = json_string_value(json_object_get(said, "state"));

	CHECK(!rc && state && !strcmp(state, "drained"), "drain: %d, %s", rc,
	      json_dumps(said, JSON_ENCODE_ANY));
	json_decref(said);
}

static void undrain(unsigned int i)
{
	json_t *said;

	CHECK(!run_host(i, "undrain", NULL, &said), "undrain");
	json_decref(said);
}

/* What `barline show nodes` says of MEMBER. */
static void check_member(unsigned int i, const char *want)
{
	struct bl_host_page page;
	uint32_t zero = 0;
	int fd = rack_map(rack_host(i), BL_MAP_HOST_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page), "host page");
	close(fd);
	CHECK(!page.drained == !*want, "h%u should be \"%s\"", i + 1, want);
}

/* Returns bl_init() of a new process of host @i, as an errno. */
static int attach_errno(unsigned int i)
{
	struct bl_endpoint *ep;
	pid_t pid;
	int st;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		rack_enter(rack_host(i));
		st = bl_init(&ep, NULL);
		bl_exit(st ? NULL : ep);
		_exit(-st);
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(1);
	CHECK(WIFEXITED(st), "status %#x", st);
	return WEXITSTATUS(st);
}

static unsigned int live_inputs(void)
{
	return rack_live_inputs(0);
}

static bool delivers_to(unsigned int i, uint64_t more, const uint64_t *since)
{
	return load->w[i].got[0] >= since[0] + more && load->w[i].got[1] >= since[1] + more;
}

/* Returns how many events say that an endpoint of process @pid (0: any) on the victim has left. */
static unsigned int left_events(pid_t pid)
{
	return dm_events(rack_host(VICTIM), "endpoint_left", pid);
}

/* Waits until all but the victim deliver again. */
static void others_go_on(void)
{
	uint64_t since[HOSTS][LOAD_STREAMS];
	unsigned int i, s;

	for (i = 0; i < HOSTS; i++)
		for (s = 0; s < LOAD_STREAMS; s++)
			since[i][s] = load->w[i].got[s];
	for (i = 0; i < HOSTS; i++)
		if (i != VICTIM)
			UNTIL("waits for the others", delivers_to(i, 50, since[i]));
}

static void say_load(void)
{
	load_say();
	if (ctl)
		say_all();
	else
		rack_dump();
}

/* What the others sent to the victim until they heard that it has left may be reported. */
static void under_load(bool controllers)
{
	unsigned int i, shut;
	json_t *said;
	pid_t pid;

	rack_last_words = say_load;
	dead_us = 8000000; /* no barrier waits for that: it would be too long for the case */
	if (controllers) {
		open_rack(HOSTS);
	} else {
		rack.lab.spec.hosts = HOSTS;
		daemons_open();
	}
	load_begin(HOSTS, 3000);
	load_goes_on(20, "begins");
	check_member(VICTIM, "");
	shut = live_inputs();
	CHECK(shut == HOSTS, "%u inputs", shut);
	drain(VICTIM);
	check_member(VICTIM, "drained");
	UNTIL("waits until a send is refused", load->w[VICTIM].shutdown || load->w[VICTIM].stale);
	CHECK(!load->w[VICTIM].reported, "something that it had sent was lost");
	UNTIL("waits for the switch", live_inputs() == HOSTS - 1);
	CHECK(left_events(load->w[VICTIM].pid) == 1, "its endpoint has left, and no event says so");
	/* Without controllers nobody is told, and scatterings to it fail as a whole. */
	load->without = controllers ? 0 : 1ULL << VICTIM;
	others_go_on();
	CHECK(attach_errno(VICTIM) == ESHUTDOWN, "a new endpoint: %d", attach_errno(VICTIM));
	if (controllers) {
		UNTIL("waits for the end of the leave", none_open());
		CHECK(!strstr(ask(), "cut-off") && !strstr(ask(), "\"why\":\"down\"") &&
			      !strstr(ask(), "\"why\":\"died\"") &&
			      strstr(ask(), "\"who\":\"h2\",\"why\":\"left\""),
		      "%s", said_failures());
	}
	for (i = 0; i < HOSTS; i++)
		CHECK(!load->w[i].failed, "h%u was told of a failure", i + 1);
	/* The state outlives the daemon, and no one notices that it stops and starts. */
	daemon_stop(rack_host(VICTIM), SIGTERM);
	CHECK(!caretaker(rack_host(VICTIM)), "a caretaker of a host that has left");
	others_go_on();
	daemon_start(rack_host(VICTIM));
	check_member(VICTIM, "drained");
	CHECK(attach_errno(VICTIM) == ESHUTDOWN, "a new endpoint");
	CHECK(!run_host(VICTIM, "drain", "--timeout=60", &said), "drained twice");
	json_decref(said);
	UNTIL("waits for the switch", live_inputs() == HOSTS - 1);
	undrain(VICTIM);
	check_member(VICTIM, "");
	UNTIL("waits for the switch", live_inputs() == HOSTS);
	if (controllers)
		UNTIL("waits until it has joined anew", all_ok());
	CHECK(!attach_errno(VICTIM), "no endpoint after undrain");
	others_go_on();
	for (i = 0; i < HOSTS; i++)
		CHECK(!load->w[i].failed, "h%u was told of a failure", i + 1);
	CHECK(!rack_count_all(BL_R_TS_AHEAD), "a timestamp was ahead of a clock");
	pid = load->w[VICTIM].pid;
	load_quit();
	/* Two processes have come and gone since, and the one that was retired leaves only once. */
	CHECK(!attach_errno(VICTIM), "no endpoint");
	UNTIL("waits for their events", left_events(0) >= 3);
	CHECK(left_events(pid) == 1, "its endpoint has left twice");
	daemons_end();
}

RACK_TEST(drain__with_a_controller)
{
	under_load(true);
}

RACK_TEST(drain__without_controllers)
{
	under_load(false);
}

/* A process that does not run has something open: the drain waits, says so, and can be ended. */
RACK_TEST(drain__waits_for_what_is_open)
{
	uint64_t since[LOAD_STREAMS];
	json_t *said;
	const char *text;

	rack_last_words = say_load;
	dead_us = 8000000;
	open_rack(HOSTS);
	load_begin(HOSTS, 3000);
	load_goes_on(20, "begins");
	CHECK(!kill(load->w[VICTIM].pid, SIGSTOP), "%s", strerror(errno));
	CHECK(run_host(VICTIM, "drain", "--timeout=1", &said) == 1, "drained at once");
	text = json_string_value(json_object_get(said, "error"));
	CHECK(text && strstr(text, "waits for") && strstr(text, "test_drain"), "%s",
	      text ? text : "no error");
	json_decref(said);
	undrain(VICTIM);
	CHECK(!kill(load->w[VICTIM].pid, SIGCONT), "%s", strerror(errno));
	since[0] = load->w[VICTIM].got[0];
	since[1] = load->w[VICTIM].got[1];
	UNTIL("waits for the victim", delivers_to(VICTIM, 50, since));
	load_goes_on(20, "goes on");
	CHECK(!failures(), "%s", ask());
	load_quit();
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drain__with_a_controller),
		cmocka_unit_test(drain__without_controllers),
		cmocka_unit_test(drain__waits_for_what_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
