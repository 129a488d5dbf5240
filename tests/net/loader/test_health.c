// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline status` and `barline wait` (cli/health/): what they say of a node that is well, and of
 * one of which something is taken away; that they say it of a stopped daemon, too, and do not wait
 * for it.
 */
#include <glob.h>

#include "base/library/library.h"
#include "tests/net/loader/restart.h"

/* Runs `barline -j -n NODE ...`. Returns the exit status; *@said is what it printed. */
static int barline(json_t **said, unsigned int i, const char *a, const char *b, const char *c,
		   const char *d)
{
	static char path[512];
	char netns[256];
	const char *const argv[] = { path, "-j", "-n", netns, a, b, c, d, NULL };

	if (!*path)
		CHECK(barline_path(path, sizeof(path)), "where am I?");
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	return barline_run(said, argv);
}

/* Returns the number of the rack's switch. */
static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes && !rack_is_switch(i); i++)
		;
	CHECK(i < rack.lab.nnodes, "no switch");
	return i;
}

static char last[1024]; /* what status said last */

/* The word of a check of node @i; "": not known. *@ready: what the exit status says. */
static const char *word_of(unsigned int i, const char *check, bool *ready)
{
	static char word[64];
	json_t *said = NULL, *node;
	const char *w;
	int rc = barline(&said, i, "status", NULL, NULL, NULL);

	node = json_array_get(json_object_get(said, "nodes"), 0);
	CHECK(node, "%s: status says nothing", rack.lab.nodes[i].name);
	CHECK(json_is_true(json_object_get(said, "ready")) == !rc, "exit status %d", rc);
	snprintf(last, sizeof(last), "%s", json_string_value(json_object_get(node, "text")));
	w = json_string_value(
		json_object_get(json_object_get(json_object_get(node, "checks"), check), "word"));
	snprintf(word, sizeof(word), "%s", w ? w : "");
	json_decref(said);
	*ready = !rc;
	return word;
}

static bool is(unsigned int i, const char *check, const char *word, bool ready)
{
	bool is_ready;

	return !strcmp(word_of(i, check, &is_ready), word) && is_ready == ready;
}

#define UNTIL_IS(i, check, word, ready) UNTIL(check " is " word, is(i, check, word, ready))

static int wait_for(unsigned int i, const char *what, const char *timeout)
{
	char f[64], t[64];
	json_t *said;
	int rc;

	snprintf(f, sizeof(f), "--for=%s", what);
	snprintf(t, sizeof(t), "--timeout=%s", timeout);
	rc = barline(&said, i, "wait", f, t, NULL);
	json_decref(said);
	return rc;
}

/* Status of a live node loads none of the libraries that are for other commands. */
static void loads_little(unsigned int i)
{
#define X(name, file, package, use) file,
	static const char *const later[] = { BL_LIBRARIES(X) };
#undef X
	static char text[1 << 18];
	glob_t files = { 0 };
	bool ready;
	size_t k, n;
	FILE *f;

	setenv("LD_DEBUG", "files", 1);
	setenv("LD_DEBUG_OUTPUT", BL_RUN_DIR "/ld", 1);
	word_of(i, "daemon", &ready);
	unsetenv("LD_DEBUG");
	unsetenv("LD_DEBUG_OUTPUT");
	CHECK(!glob(BL_RUN_DIR "/ld.*", 0, NULL, &files) && files.gl_pathc == 1, "one process");
	f = fopen(files.gl_pathv[0], "r");
	CHECK(f, "%s", strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	CHECK(n < sizeof(text) - 1 && strstr(text, "libbpf.so"), "cannot be read");
	for (k = 0; k < sizeof(later) / sizeof(later[0]); k++)
		CHECK(!strstr(text, later[k]), "status loads %s", later[k]);
	CHECK(!unlink(files.gl_pathv[0]), "%s", strerror(errno));
	globfree(&files);
}

RACK_TEST(status__names_what_is_missing)
{
	unsigned int h, s;

	dm_caretaker_ms = 30000;
	open_rack(2);
	h = rack_host(0);
	s = the_switch();
	CHECK(!wait_for(h, "ready", "30s"), "%s", last);
	CHECK(!wait_for(s, "controller", "30s"), "the switch has no session");
	UNTIL_IS(h, "controller", "ok", true);
	loads_little(h);

	/* the daemon: stopped by a signal, killed, or replaced by a caretaker */
	CHECK(!kill(dm[h].pid, SIGSTOP), "%s", strerror(errno));
	UNTIL_IS(h, "daemon", "sigstop", false);
	CHECK(strstr(last, "kill -CONT"), "%s", last);
	CHECK(wait_for(h, "ready", "0") == 1, "ready though it is stopped");
	CHECK(!kill(dm[h].pid, SIGCONT), "%s", strerror(errno));
	UNTIL_IS(h, "daemon", "ok", true);
	daemon_stop(h, SIGTERM);
	UNTIL_IS(h, "daemon", "caretaker", true);
	daemon_start(h);
	UNTIL_IS(h, "daemon", "ok", true);
	UNTIL("waits for the spare", spare(h)); /* a daemon that has just started has none yet */
	daemon_stop(h, SIGKILL);
	UNTIL_IS(h, "daemon", "caretaker", true);
	CHECK(!kill(caretaker(h), SIGKILL), "%s", strerror(errno));
	UNTIL_IS(h, "daemon", "stopped", false);
	daemon_start(h);
	UNTIL_IS(h, "daemon", "ok", true);
	/* a daemon whose spare has ended: a warning, until it has another one */
	UNTIL("waits for the spare", spare(h));
	CHECK(!kill(spare(h), SIGKILL), "%s", strerror(errno));
	UNTIL_IS(h, "daemon", "no_spare", true);
	UNTIL_IS(h, "daemon", "ok", true);
	daemons_end();
	CHECK(!wait_for(h, "gone", "10s"), "the node is still there");
	CHECK(wait_for(h, "ready", "0") == 1, "ready without a node");
}

RACK_TEST(status__of_links_and_addresses)
{
	unsigned int h, s;
	bool ready;
	int home;

	open_rack(2);
	h = rack_host(0);
	s = the_switch();
	CHECK(!wait_for(h, "neighbour", "30s"), "no neighbour");
	UNTIL_IS(h, "link", "ok", true);
	home = rack_away(h);
	CHECK(!system("ip address show dev eth0 | grep -o 'inet6* [^ ]*' >" BL_RUN_DIR "/addr; ip "
		      "address "
		      "flush dev "
		      "eth0 scope "
		      "global"),
	      "ip");
	rack_back(home);
	UNTIL_IS(h, "address", "no_address", false);
	home = rack_away(h);
	CHECK(!system("ip link set eth0 down"), "ip");
	rack_back(home);
	UNTIL_IS(h, "link", "down", false);
	/* the switch misses the host when the failure is settled, and is ready for the other one */
	UNTIL_IS(s, "neighbour", "excluded", true);
	CHECK(wait_for(s, "neighbour", "0") == 1, "all neighbours are heard");
	CHECK(wait_for(h, "endpoint=61701", "0") == 1, "there is no endpoint");
	CHECK(!strcmp(word_of(h, "queues", &ready), "ok") && !ready, "%s", last);
	home = rack_away(h);
	CHECK(!system("ip link delete eth0"), "ip");
	rack_back(home);
	UNTIL_IS(h, "link", "gone", false);
	daemons_end();
}

static void same_ids(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	tweak(cfg, n);
	if (cfg->role == BL_ROLE_HOST)
		cfg->node_id = 77;
	cfg->ctl.n = 0;
}

RACK_TEST(status__names_a_duplicate_node_id)
{
	unsigned int s;

	rack_last_words = rack_last_words ? rack_last_words : say_all;
	rack.lab.spec.hosts = 2;
	rack.tweak = same_ids;
	daemons_open();
	s = the_switch();
	UNTIL_IS(s, "node_id", "duplicate", false);
	daemons_end();
}

/* `show` with several tables has the options of those with one. */
RACK_TEST(show__several_tables)
{
	static const char *const keys[] = { "switches", "ports",   "classes",
					    "hosts",    "sending", "receiving" };
	json_t *said, *row;
	unsigned int h;
	size_t k;

	open_rack(1);
	h = rack_host(0);
	CHECK(!barline(&said, h, "show", "tokens", "-i0.01", "-c1"), "show tokens -i");
	CHECK(json_is_real(json_object_get(said, "interval_s")), "no interval");
	for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		CHECK(json_is_array(json_object_get(said, keys[k])), "no %s", keys[k]);
	CHECK(json_array_size(json_object_get(said, "hosts")) == 1, "not the host");
	json_decref(said);
	CHECK(!barline(&said, h, "show", "maps", BL_MAP_HOST_PAGE, "-t"), "show maps NAME");
	CHECK(json_is_real(json_object_get(said, "time")), "no time");
	CHECK(json_array_size(json_object_get(said, "maps")) == 1, "not one map");
	row = json_array_get(json_object_get(said, "maps"), 0);
	CHECK(!strcmp(json_string_value(json_object_get(row, "map")), BL_MAP_HOST_PAGE), "which?");
	json_decref(said);
	CHECK(barline(&said, h, "show", "maps", "nosuch", NULL) == 1, "a map that is not there");
	CHECK(strstr(json_string_value(json_object_get(said, "error")), "no MAP \"nosuch\""), "whic"
											      "h?");
	json_decref(said);
	CHECK(barline(&said, h, "show", "fastpass", "--reason", "no_route") == 2 &&
		      strstr(json_string_value(json_object_get(said, "error")), "no row here"),
	      "a row has a reason");
	json_decref(said);
	daemons_end();
}

/* One row per node and reading, of the ports and the columns that were asked for. */
RACK_TEST(watch__columns)
{
	json_t *said, *row;
	unsigned int h;

	open_rack(1);
	h = rack_host(0);
	CHECK(!barline(&said, h, "watch", "-i0.5", "-c1", "--columns=lag,frames,no_route"), "watc"
											    "h");
	row = json_array_get(json_object_get(said, "rows"), 0);
	CHECK(json_array_size(json_object_get(said, "rows")) == 1 &&
		      json_number_value(json_object_get(row, "frames")) > 0 &&
		      json_real_value(json_object_get(row, "no_route")) == 0 &&
		      json_is_number(json_object_get(row, "lag_ns")) && json_object_size(row) == 4,
	      "%s", json_dumps(said, 0));
	json_decref(said);
	CHECK(!barline(&said, h, "watch", "-i0.5", "-c1", "--reason=beacon_sent"), "--reason");
	CHECK(json_array_size(json_object_get(said, "rates")) > 0, "no beacons");
	row = json_array_get(json_object_get(said, "rates"), 0);
	CHECK(!strcmp(json_string_value(json_object_get(row, "reason")), "beacon_sent"), "which?");
	json_decref(said);
	CHECK(barline(&said, h, "watch", "-c1", "eth9", NULL) == 1, "a port that is not there");
	json_decref(said);
	CHECK(barline(&said, h, "watch", "-c1", "--columns=no_ruote", NULL) == 2, "a typo");
	json_decref(said);
	daemons_end();
}

/* Returns how many events of this name `barline events` shows of node @i. */
static unsigned int events(unsigned int i, const char *name)
{
	return dm_events(i, name, 0);
}

/* What happens to a node is in its events, over restarts, and gone when it is detached. */
RACK_TEST(events__of_a_node)
{
	unsigned int h, s;
	int home;

	open_rack(2);
	h = rack_host(0);
	s = the_switch();
	UNTIL("waits for events", events(h, "session_begun") && events(s, "neighbour_joined") == 2);
	CHECK(events(h, "daemon_started") == 1, "not started once");
	daemon_stop(h, SIGTERM);
	daemon_start(h);
	UNTIL("waits for the restart", events(h, "daemon_taken_over") == 1);
	CHECK(events(h, "daemon_stopped") == 1, "no stop");
	UNTIL("waits for the caretaker",
	      events(h, "caretaker_begun") == 1 && events(h, "caretaker_ended") == 1);
	UNTIL("waits for a spare", events(h, "spare_ready"));
	home = rack_away(h);
	CHECK(!system("ip link set eth0 down"), "ip");
	rack_back(home);
	UNTIL("waits for the exclusion", events(s, "neighbour_excluded") == 1);
	UNTIL("waits for the announcement", events(h, "node_failed") == 1);
	UNTIL("waits for the other host", events(rack_host(1), "failure_announced") == 1);
	home = rack_away(h);
	CHECK(!system("ip link delete eth0"), "ip");
	rack_back(home);
	UNTIL("waits for the NIC", events(h, "interface_gone") == 1);
	daemons_end();
	CHECK(!events(h, "daemon_started") && !events(s, "neighbour_joined"), "files are left");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status__names_what_is_missing),
		cmocka_unit_test(status__of_links_and_addresses),
		cmocka_unit_test(status__names_a_duplicate_node_id),
		cmocka_unit_test(show__several_tables),
		cmocka_unit_test(watch__columns),
		cmocka_unit_test(events__of_a_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
