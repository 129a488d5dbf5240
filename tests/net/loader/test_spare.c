// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The spare caretaker of a daemon (loader/spare.c, loader/caretaker.c): it takes over from a daemon
 * that was killed, and not from one that is merely stopped; it is replaced when it ends, and ends
 * with the node.
 */
#include "tests/net/loader/caretaker_clock.h"

static bool has_spare(unsigned int i)
{
	return spare(i) > 0;
}

/*
 * kill -9 of a host's daemon and of a switch's: nobody is excluded or announced, and the clock
 * records stay valid for longer than the daemon had vouched for. Then daemons take over.
 */
RACK_TEST(kill__the_spare_takes_over)
{
	const struct bl_clock *clock[2];
	uint64_t bus[2] = { 0 };
	unsigned int node[2], announced, k;
	pid_t pid[2];
	bool kept;

	dm_void_ms = VOID_MS;
	dm_caretaker_ms = 60000;
	open_rack(HOSTS);
	node[0] = rack_host(0);
	node[1] = 0;
	for (k = 0; k < 2; k++) {
		clock[k] = clock_of(node[k]);
		UNTIL("waits for the spare", has_spare(node[k]));
		pid[k] = spare(node[k]);
		CHECK(!caretaker(node[k]), "two processes keep the node");
		daemon_stop(node[k], SIGKILL);
		UNTIL("waits for the caretaker", caretaker(node[k]) == pid[k]);
		CHECK(!has_spare(node[k]), "it still waits");
	}
	rack_serve(2500); /* longer than DEAD_US */
	for (k = 0; k < 2; k++) {
		kept = is_kept(clock[k], pid[k], &bus[k], "after kill -9");
		CHECK(kept, "the caretaker ended");
	}
	announced = failures();
	/* A script that stood still looks too late. */
	CHECK(!announced || !runs(pid[0]), "it is announced while its caretaker beats: %s", ask());
	for (k = 0; k < 2; k++) {
		UNTIL("waits for the event", dm_events(node[k], "caretaker_begun", 0) == 1);
		daemon_start(node[k]);
		CHECK(!runs(pid[k]) && !caretaker(node[k]), "the caretaker stays");
		UNTIL("waits for the next spare", has_spare(node[k]));
	}
	UNTIL("waits for all nodes", all_ok());
	CHECK(!failures(), "%s", ask());
	daemons_end();
	CHECK(!runs(pid[0]) && !runs(pid[1]), "a process is left");
}

/* A daemon that is stopped by a signal has not died: it may write the record at any moment. */
RACK_TEST(sigstop__nothing_is_taken_over)
{
	const struct bl_clock *clock;
	uint64_t was;
	unsigned int i;
	pid_t pid;

	dead_us = PATIENT_US;
	open_rack(2);
	i = rack_host(0);
	clock = clock_of(i);
	UNTIL("waits for the spare", has_spare(i));
	pid = spare(i);
	CHECK(!kill(dm[i].pid, SIGSTOP), "%s", strerror(errno));
	rack_serve(100); /* the signal has reached the beacon thread */
	was = BL_READ_ONCE(clock->void_after_ns);
	rack_serve(1000);
	CHECK(spare(i) == pid && !caretaker(i), "it took over from a daemon that lives");
	CHECK(BL_READ_ONCE(clock->void_after_ns) == was, "somebody wrote the clock record");
	CHECK(!kill(dm[i].pid, SIGCONT), "%s", strerror(errno));
	UNTIL("waits for the daemon", BL_READ_ONCE(clock->void_after_ns) > was);
	/* killed while it is stopped, it is dead */
	CHECK(!kill(dm[i].pid, SIGSTOP), "%s", strerror(errno));
	daemon_stop(i, SIGKILL);
	UNTIL("waits for the caretaker", caretaker(i) == pid);
	daemon_start(i);
	CHECK(!failures(), "%s", ask());
	daemons_end();
}

static bool has_spare_but(unsigned int i, pid_t old)
{
	pid_t pid = spare(i);

	return pid && pid != old;
}

/* Waits for a spare that is not @old, which ends. Returns it. */
static pid_t next_spare(unsigned int i, pid_t old, unsigned int lost)
{
	UNTIL("waits for the next spare", has_spare_but(i, old));
	CHECK(!runs(old), "process %d is there still", old);
	CHECK(dm_events(i, "spare_lost", 0) == lost, "%u events", dm_events(i, "spare_lost", 0));
	return spare(i);
}

/*
 * A spare that ends, or stands still, is replaced; and if that is found out only when it is needed,
 * another caretaker stands in, or the next daemon removes it.
 */
RACK_TEST(spare__is_replaced)
{
	char file[128];
	unsigned int i;
	pid_t pid;

	dead_us = PATIENT_US;
	open_rack(2);
	i = rack_host(0);
	UNTIL("waits for the spare", has_spare(i));
	pid = spare(i);
	CHECK(!kill(pid, SIGKILL), "%s", strerror(errno));
	pid = next_spare(i, pid, 1);
	CHECK(!kill(pid, SIGSTOP), "%s", strerror(errno));
	pid = next_spare(i, pid, 2);
	/* a reload: it is told to end, which is no loss */
	dm_caretaker_ms += 1000;
	snprintf(file, sizeof(file), BL_RUN_DIR "/%s.yaml", rack.lab.nodes[i].name);
	dm_file(i, file);
	CHECK(!kill(dm[i].pid, SIGHUP), "%s", strerror(errno));
	pid = next_spare(i, pid, 2);
	/* it stands still, and the daemon is stopped before it has noticed, or just after */
	CHECK(!kill(pid, SIGSTOP), "%s", strerror(errno));
	daemon_stop(i, SIGTERM);
	CHECK(caretaker(i) && caretaker(i) != pid && !runs(pid), "no caretaker");
	daemon_start(i);
	/* the same of a daemon that is killed: nobody stands in, and the next one starts */
	UNTIL("waits for the spare", has_spare(i));
	pid = spare(i);
	CHECK(!kill(pid, SIGSTOP) && !kill(dm[i].pid, SIGKILL), "%s", strerror(errno));
	daemon_wait(i);
	daemon_start(i);
	CHECK(!runs(pid), "process %d is there still", pid);
	CHECK(!failures(), "%s", ask());
	daemons_end();
}

/* A detach ends what took over from a daemon that was killed, and one that never did so. */
RACK_TEST(spare__ends_with_its_node)
{
	static const char *const files[] = { "spare.sock", "caretaker.sock", "keeper.lock" };
	char netns[256], file[128];
	struct bl_err err;
	unsigned int i, k;
	pid_t pid;

	dm_caretaker_ms = 60000;
	open_rack(2);
	i = rack_host(0);
	UNTIL("waits for the spare", has_spare(i));
	pid = spare(i);
	CHECK(!kill(pid, SIGSTOP), "%s", strerror(errno));
	daemon_stop(i, SIGKILL);
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	CHECK(!runs(pid), "the spare outlives its node");
	for (k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
		dm_path(file, sizeof(file), i, files[k]);
		CHECK(access(file, F_OK), "%s is left", file);
	}
	daemon_start(i);
	UNTIL("waits for the spare", has_spare(i));
	pid = spare(i);
	daemon_stop(i, SIGKILL);
	UNTIL("waits for the caretaker", caretaker(i) == pid);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	CHECK(!runs(pid), "the caretaker outlives its node");
	daemon_start(i);
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kill__the_spare_takes_over),
		cmocka_unit_test(sigstop__nothing_is_taken_over),
		cmocka_unit_test(spare__is_replaced),
		cmocka_unit_test(spare__ends_with_its_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
