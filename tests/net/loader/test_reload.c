// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reload: the daemon reads its file again while applications talk. Nothing is lost and nobody is
 * announced; a file that takes a restart, or is wrong, changes nothing.
 */
#include "tests/net/loader/ports.h"
#include "tests/net/loader/restart_talk.h"

#include "loader/config_rows.h"
#include "loader/control.h"
#include "loader/running.h"

#define ROUNDS 20

static char answer[BL_CONTROL_ANSWER_MAX];
static uint32_t limit_ms, lag_us, bound_us, beacon_us;
static const char *name_tail;
static bool without_last; /* the switch has no port for the last of four hosts */
static char last_port[IFNAMSIZ];
static bool alone; /* there are no controllers */

/* What the files of this test say beside what those of all restart tests say. */
static void tweak_reload(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	tweak(cfg, n);
	if (alone)
		cfg->ctl.n = 0;
	if (limit_ms && cfg->role == BL_ROLE_HOST)
		cfg->process_limit_ms = limit_ms;
	if (beacon_us)
		cfg->beacon_us = beacon_us;
	if (cfg->role == BL_ROLE_SWITCH && cfg->ports_count > HOSTS) {
		snprintf(last_port, sizeof(last_port), "%s", cfg->ports[HOSTS].ifname);
		if (without_last)
			port_leave_out(cfg, HOSTS);
	}
	if (name_tail)
		strncat(cfg->name, name_tail, sizeof(cfg->name) - strlen(cfg->name) - 1);
}

static const char *file_of(unsigned int i)
{
	static char path[128];

	snprintf(path, sizeof(path), BL_RUN_DIR "/%s.yaml", rack.lab.nodes[i].name);
	return path;
}

/* Writes the file of node @i anew, with what dm_file() has no variable for. */
static void write_file(unsigned int i)
{
	FILE *f;

	if (bound_us)
		dm_clock = bound_us & 1 ? "{ source: trust, bound_us: 71 }"
					: "{ source: trust, bound_us: 72 }";
	dm_file(i, file_of(i));
	f = fopen(file_of(i), "a");
	CHECK(f, "%s", file_of(i));
	if (lag_us && rack_is_switch(i))
		fprintf(f, "lag_max_us: %u\n", lag_us);
	CHECK(!fclose(f), "%s", file_of(i));
}

static enum bl_role role_of(unsigned int i)
{
	return rack_is_switch(i) ? BL_ROLE_SWITCH : BL_ROLE_HOST;
}

/* Returns 0 or -errno of the question, with the daemon's words in @answer. */
static int reload(unsigned int i, int ms, struct bl_err *err)
{
	*answer = 0;
	return bl_control_ask(role_of(i), dm[i].netns_ino, "reload", answer, ms, err);
}

static void reload_well(unsigned int i, const char *setting)
{
	struct bl_err err;

	CHECK(!reload(i, 60000, &err), "%s: %s", rack.lab.nodes[i].name, err.text);
	CHECK(strstr(answer, "ok\n") && !strstr(answer, "error"), "%s: %s", rack.lab.nodes[i].name,
	      answer);
	CHECK(strstr(answer, setting), "%s: %s has not changed: %s", rack.lab.nodes[i].name,
	      setting, answer);
}

/* The configuration in force, as `barline config show` reads it. */
static struct bl_node_cfg running(unsigned int i)
{
	struct bl_node_cfg cfg;
	struct bl_err err;

	CHECK(!bl_running_load(role_of(i), dm[i].netns_ino, &cfg, &err), "%s", err.text);
	bl_config_free(&cfg);
	return cfg;
}

static unsigned int running_ports(unsigned int i)
{
	struct bl_node_cfg cfg;
	struct bl_err err;
	unsigned int n;

	CHECK(!bl_running_load(role_of(i), dm[i].netns_ino, &cfg, &err), "%s", err.text);
	n = cfg.ports_count;
	bl_config_free(&cfg);
	return n;
}

static uint64_t map_dead_after_ns(unsigned int i)
{
	int fd = rack_map(i, rack_is_switch(i) ? BL_MAP_SW_CFG : BL_MAP_HOST_CFG);
	struct bl_host_cfg host = { 0 };
	struct bl_sw_cfg sw = { 0 };
	uint32_t zero = 0;

	CHECK(!bpf_map_lookup_elem(fd, &zero, rack_is_switch(i) ? (void *)&sw : &host), "%s",
	      strerror(errno));
	close(fd);
	return rack_is_switch(i) ? sw.dead_after_ns : host.dead_after_ns;
}

/* All nodes are reloaded twenty times, in turn, each time with other values. */
RACK_TEST(reload__under_load_loses_nothing)
{
	unsigned int i, round;

	rack_last_words = say_workers;
	limit_ms = 5000;
	open_rack(HOSTS);
	rack.tweak = tweak_reload;
	talk();
	goes_on("begins to talk");
	for (round = 0; round < ROUNDS; round++) {
		dead_us = DEAD_US + 1000 * (1 + round);
		limit_ms = 5000 + round;
		lag_us = 20 * DEAD_US + round;
		bound_us = 1 + round;
		/* a new name is a new session with the controllers */
		name_tail = round % 4 == 3 ? "-new" : NULL;
		for (i = 0; i < rack.lab.nnodes; i++) {
			write_file(i);
			reload_well(i, "changed\tdead_after_us");
			CHECK(map_dead_after_ns(i) == dead_us * 1000ULL, "%s has %" PRIu64,
			      rack.lab.nodes[i].name, map_dead_after_ns(i));
			CHECK(running(i).dead_after_us == dead_us, "%u", running(i).dead_after_us);
		}
		if (round % 5 == 4)
			goes_on("goes on after reloads");
	}
	UNTIL("waits for all nodes", all_ok());
	judge();
	late_were_copies();
	CHECK(!rack_count_all(BL_R_CLOCK_VOID), "%" PRIu64 " found the clock void",
	      rack_count_all(BL_R_CLOCK_VOID));
	daemons_end();
}

/* What takes a restart, or is wrong, changes nothing, also not what could have been applied. */
RACK_TEST(reload__all_or_nothing)
{
	struct bl_node_cfg before;
	unsigned int i, h;
	struct bl_err err;
	FILE *f;

	open_rack(HOSTS);
	rack.tweak = tweak_reload;
	h = rack_host(0);
	before = running(h);
	limit_ms = 6000;
	beacon_us = before.beacon_us ? before.beacon_us + 1 : 101;
	for (i = 0; i < rack.lab.nnodes; i++) {
		uint64_t was = map_dead_after_ns(i);

		dead_us = DEAD_US + 7000;
		write_file(i);
		CHECK(!reload(i, 60000, &err), "%s", err.text);
		CHECK(strstr(answer, "refused\tbeacon_us") && strstr(answer, "\trestart\t") &&
			      strstr(answer, "error\tbeacon_us takes a restart"),
		      "%s", answer);
		CHECK(!strstr(answer, "ok\n") && !strstr(answer, "changed\t"), "%s", answer);
		CHECK(map_dead_after_ns(i) == was, "%s was changed", rack.lab.nodes[i].name);
	}
	CHECK(running(h).process_limit_ms == before.process_limit_ms, "it is %u",
	      running(h).process_limit_ms);
	/* a mistake has its line */
	f = fopen(file_of(h), "w");
	fputs("role: host\ninterface: eth0\nbeacon_us: fast\n", f);
	fclose(f);
	CHECK(!reload(h, 60000, &err), "%s", err.text);
	CHECK(strstr(answer, ".yaml:3: beacon_us \"fast\" is no number"), "%s", answer);
	/* SIGHUP does the same, and the daemon stays */
	CHECK(!kill(dm[h].pid, SIGHUP), "%s", strerror(errno));
	rack_serve(300);
	CHECK(!kill(dm[h].pid, 0), "SIGHUP ended the daemon");
	/* the same file as before is no change */
	beacon_us = 0;
	limit_ms = 0;
	dead_us = DEAD_US;
	write_file(h);
	CHECK(!reload(h, 60000, &err), "%s", err.text);
	CHECK(!strcmp(answer, "ok\n"), "%s", answer);
	/* a daemon that is stopped is not waited for */
	CHECK(!kill(dm[h].pid, SIGSTOP), "%s", strerror(errno));
	CHECK(reload(h, 300, &err) == -ETIMEDOUT, "%s", answer);
	CHECK(running(h).dead_after_us == DEAD_US, "show waits for nobody");
	CHECK(!kill(dm[h].pid, SIGCONT), "%s", strerror(errno));
	/* SIGHUP applies what is right */
	limit_ms = 7000;
	write_file(h);
	CHECK(!kill(dm[h].pid, SIGHUP), "%s", strerror(errno));
	UNTIL("waits for the reload", running(h).process_limit_ms == 7000);
	/* the configuration in force outlives the daemon, and nobody answers then */
	daemon_stop(h, SIGTERM);
	CHECK(running(h).process_limit_ms == 7000, "%u", running(h).process_limit_ms);
	CHECK(reload(h, 300, &err) == -ENOENT && strstr(err.text, "no daemon runs"), "%s",
	      err.text);
	daemons_end();
}

static unsigned int listed; /* IP addresses of the first host's port; 0: they are learnt */
static int stolen;          /* this one is of another host; -1: none */

static void tweak_addresses(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	const struct lab_node *h = &rack.lab.nodes[rack_host(0)],
			      *other = &rack.lab.nodes[rack_host(1)];
	struct bl_port_cfg *p = cfg->ports;
	unsigned int k;

	tweak(cfg, n);
	if (cfg->role != BL_ROLE_SWITCH || !listed)
		return;
	p->source_given = true;
	p->source = BL_SOURCE_LIST;
	p->nmac = 1;
	memcpy(p->mac[0], h->ports[0].mac, 6);
	p->nip = listed;
	for (k = 0; k < listed; k++) {
		bl_ip_map_v4(p->ip[k]);
		lab_host_addr((int)k == stolen ? other : h, AF_INET, p->ip[k] + 12);
		if ((int)k != stolen)
			p->ip[k][15] = (uint8_t)(p->ip[k][15] + 80 * k);
	}
}

static struct bl_sources sources_of(uint32_t port)
{
	int fd = rack_map(0, BL_MAP_SW_SOURCES);
	struct bl_sources s;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &s), "%s", strerror(errno));
	close(fd);
	return s;
}

/* Whether the address @ip belongs to port @port by the configuration. */
static bool owned_by(const struct bl_ip *ip, uint32_t port)
{
	int fd = rack_map(0, BL_MAP_SW_OWNERS);
	struct bl_owner o = { 0 };
	bool is = fd >= 0 && !bpf_map_lookup_elem(fd, ip, &o) && o.port == port && o.listed;

	close(fd);
	return is;
}

/*
 * The configured addresses of a port become more while its host talks. One that is taken away, or
 * that another port has, is refused, and then nothing has changed.
 */
RACK_TEST(addresses__more_under_load)
{
	struct bl_sources s;
	struct bl_err err;

	rack_last_words = say_workers;
	stolen = -1;
	open_rack(HOSTS);
	rack.tweak = tweak_addresses;
	/* the list itself takes a restart */
	listed = 1;
	write_file(0);
	CHECK(!reload(0, 60000, &err) && strstr(answer, "refused\tports") &&
		      strstr(answer, "a running list can only grow"),
	      "%s", answer);
	daemon_stop(0, SIGTERM);
	daemon_start(0);
	UNTIL("waits for all nodes", all_ok());
	CHECK(sources_of(0).mode == BL_SOURCE_LIST && sources_of(0).nip == 1, "mode %u",
	      sources_of(0).mode);
	talk();
	goes_on("begins to talk");
	for (listed = 2; listed < 4; listed++) {
		write_file(0);
		reload_well(0, "accepted at once");
		s = sources_of(0);
		CHECK(s.nip == listed && s.nmac == 1, "%u addresses", s.nip);
		CHECK(owned_by(&s.ip[listed - 1], 0), "the port does not own the new one");
		goes_on("goes on with more addresses");
	}
	stolen = 3;
	listed = 4;
	write_file(0);
	CHECK(!reload(0, 60000, &err) && strstr(answer, "belongs to port") &&
		      !strstr(answer, "ok\n"),
	      "%s", answer);
	listed = 2;
	stolen = -1;
	write_file(0);
	CHECK(!reload(0, 60000, &err) && strstr(answer, "refused\tports"), "%s", answer);
	CHECK(sources_of(0).nip == 3, "%u addresses", sources_of(0).nip);
	goes_on("goes on after refusals");
	judge();
	CHECK(!rack_count_all(BL_R_SPOOFED), "%" PRIu64 " were spoofed",
	      rack_count_all(BL_R_SPOOFED));
	daemons_end();
}

/* Runs `barline -j -n NODE host WORD`, which must succeed. */
static void host_word(unsigned int i, const char *word, const char *more)
{
	char path[512], netns[256];
	const char *const argv[] = { path, "-j", "-n", netns, "host", word, more, NULL };
	json_t *said = NULL;

	CHECK(barline_path(path, sizeof(path)), "no command");
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	CHECK(!barline_run(&said, argv), "host %s: %s", word, said ? json_dumps(said, 0) : "");
	json_decref(said);
}

/* Port @k of the switch, as the programs know it. */
static struct bl_sw_port port_entry(uint32_t k)
{
	struct bl_sw_port p;
	int fd = rack_map(0, BL_MAP_SW_PORTS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &k, &p), "%s", strerror(errno));
	close(fd);
	return p;
}

static bool attached_to(const char *ifname)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/links/xdp-%s", rack.dir[0], ifname);
	return !access(path, F_OK);
}

static bool four_take_part(void)
{
	return rack_live_inputs(0) == HOSTS + 1;
}

static bool three_take_part(void)
{
	return rack_live_inputs(0) == HOSTS;
}

/* Four hosts, the last of which is behind an interface that is no port of the switch yet. */
static void open_without_last(void)
{
	rack_last_words = rack_last_words ? rack_last_words : say_all;
	rack.lab.spec.hosts = HOSTS + 1;
	rack.tweak = tweak_reload;
	dead_us = 3000000;
	without_last = true;
	ctl_start(answer_ms);
	daemons_open();
	UNTIL("waits for the others", times_said("\"state\":\"ok\"") == rack.lab.nnodes - 1);
}

/*
 * A port joins and leaves a running switch while the hosts at the others talk. One that is in use
 * stays, and with it all that the same file says.
 */
RACK_TEST(ports__join_and_leave_under_load)
{
	unsigned int round, h = HOSTS;
	struct bl_err err;

	rack_last_words = say_workers;
	open_without_last();
	CHECK(*last_port && !attached_to(last_port), "%s should be no port yet", last_port);
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 3; round++) {
		without_last = false;
		write_file(0);
		reload_well(0, "changed\tports.");
		CHECK(attached_to(last_port) && port_entry(HOSTS).ifindex &&
			      !strcmp(port_entry(HOSTS).name, last_port),
		      "%s is no port", last_port);
		CHECK(running_ports(0) == HOSTS + 1, "%u", running_ports(0));
		if (round)
			host_word(rack_host(h), "undrain", NULL);
		UNTIL("waits for the new port's host", four_take_part());
		goes_on("goes on with a new port");

		without_last = true;
		lag_us = 40 * DEAD_US + round;
		write_file(0);
		CHECK(!reload(0, 60000, &err), "%s", err.text);
		CHECK(strstr(answer, "is in use: node ") && !strstr(answer, "changed\t"), "%s",
		      answer);
		CHECK(four_take_part() && attached_to(last_port), "a refused reload changed it");
		CHECK(running(0).lag_max_us != lag_us, "a refused reload changed lag_max_us");
		host_word(rack_host(h), "drain", "--timeout=60");
		talk_left++;
		UNTIL("waits until the host has left", three_take_part());
		reload_well(0, "changed\tports.");
		CHECK(!attached_to(last_port) && !port_entry(HOSTS).ifindex, "%s is a port still",
		      last_port);
		goes_on("goes on without the port");
	}
	judge();
	late_were_copies();
	daemons_end();
}

/* The commit barrier that the switch has given to its outputs, or 0. */
static uint64_t commit_barrier(void)
{
	struct bl_sw_lane lane;
	uint32_t zero = 0;
	int fd = rack_map(0, BL_MAP_SW_LANES);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &lane), "%s", strerror(errno));
	close(fd);
	return lane.out[0].c;
}

static uint64_t commit_was;

static bool commits(void)
{
	return commit_barrier() > commit_was + 100000000;
}

/* Without controllers, to remove the port of a host that is gone lets the commit barrier go on. */
RACK_TEST(ports__one_that_fell_silent_lets_go)
{
	alone = true;
	rack.lab.spec.hosts = HOSTS + 1;
	rack.tweak = tweak_reload;
	dead_us = 300000;
	daemons_open();
	UNTIL("waits for all hosts", four_take_part());
	rack_link(rack_host(HOSTS), "eth0", false);
	UNTIL("waits until it is excluded", three_take_part());
	commit_was = commit_barrier();
	rack_serve(500);
	CHECK(!commits(), "the commit barrier does not wait for the host that is gone");
	without_last = true;
	write_file(0);
	reload_well(0, "changed\tports.");
	UNTIL("waits for the commit barrier", commits());
	daemons_end();
}

/* A port that cannot be attached is not there afterwards, nor what else the file says. */
RACK_TEST(ports__cannot_be_attached)
{
	struct bl_err err;
	char pin[512];

	open_without_last();
	snprintf(pin, sizeof(pin), "%s/links/xdp-%s", rack.dir[0], last_port);
	CHECK(!mkdir(pin, 0700), "%s: %s", pin, strerror(errno));
	without_last = false;
	lag_us = 41 * DEAD_US;
	write_file(0);
	CHECK(!reload(0, 60000, &err), "%s", err.text);
	CHECK(strstr(answer, "error\t") && strstr(answer, "pin"), "%s", answer);
	CHECK(!port_entry(HOSTS).ifindex, "port %u has an interface", HOSTS);
	CHECK(running(0).lag_max_us != lag_us, "lag_max_us has changed");
	CHECK(!rmdir(pin), "%s: %s", pin, strerror(errno));
	reload_well(0, "changed\tports.");
	UNTIL("waits for the new port's host", four_take_part());
	daemons_end();
}

/* Runs `barline -j -n NODE config ...`. Returns the exit status, and what it said in *@said. */
static int config(unsigned int i, json_t **said, const char *verb, const char *arg)
{
	char path[512], netns[256];
	const char *const argv[] = { path, "-j", "-n", netns, "config", verb, arg, NULL };

	CHECK(barline_path(path, sizeof(path)), "no command");
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	return barline_run(said, argv);
}

static const char *text_at(json_t *o, const char *list, const char *key)
{
	return json_string_value(json_object_get(json_array_get(json_object_get(o, list), 0), key));
}

/* The command: show, what would differ, and reload, with their exit status. */
RACK_TEST(command__show_diff_reload)
{
	json_t *said = NULL, *one;
	unsigned int h;

	open_rack(HOSTS);
	rack.tweak = tweak_reload;
	h = rack_host(1);
	CHECK(!config(h, &said, "show", NULL), "show");
	one = json_array_get(json_object_get(said, "nodes"), 0);
	CHECK(json_integer_value(json_object_get(json_object_get(one, "config"), "dead_after_"
										 "us")) == DEAD_US,
	      "%s", json_dumps(said, 0));
	CHECK(json_array_size(json_object_get(one, "defaults")) > 5, "%s", json_dumps(said, 0));
	json_decref(said);
	CHECK(!config(h, &said, "diff", file_of(h)), "diff");
	CHECK(!strcmp(json_string_value(json_object_get(said, "takes")), "nothing"), "%s",
	      json_dumps(said, 0));
	json_decref(said);
	limit_ms = 6001;
	write_file(h);
	CHECK(!config(h, &said, "diff", file_of(h)), "diff");
	CHECK(!strcmp(json_string_value(json_object_get(said, "takes")), "live") &&
		      !strcmp(text_at(said, "differences", "setting"), "process_limit_ms"),
	      "%s", json_dumps(said, 0));
	json_decref(said);
	CHECK(!config(h, &said, "reload", "host"), "reload: %s", said ? json_dumps(said, 0) : "");
	json_decref(said);
	CHECK(running(h).process_limit_ms == 6001, "%u", running(h).process_limit_ms);
	beacon_us = 1 + running(h).beacon_us;
	write_file(h);
	CHECK(config(h, &said, "reload", NULL) == 1, "a refusal has status 1");
	one = json_array_get(json_object_get(said, "nodes"), 0);
	CHECK(json_is_false(json_object_get(one, "reloaded")) &&
		      !strcmp(text_at(one, "changes", "what"), "refused"),
	      "%s", json_dumps(said, 0));
	json_decref(said);
	CHECK(config(h, &said, "reload", "switch") == 1, "there is no switch");
	json_decref(said);
	CHECK(config(h, &said, "diff", "/no/such") == 2, "a file that cannot be read is usage");
	json_decref(said);
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reload__under_load_loses_nothing),
		cmocka_unit_test(reload__all_or_nothing),
		cmocka_unit_test(addresses__more_under_load),
		cmocka_unit_test(ports__join_and_leave_under_load),
		cmocka_unit_test(ports__one_that_fell_silent_lets_go),
		cmocka_unit_test(ports__cannot_be_attached),
		cmocka_unit_test(command__show_diff_reload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
