// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline admission set --rack`: one command changes all nodes through the controller while every
 * host sends to every other one. Frames are numbered: none is lost, and none waits for long.
 *
 * A delay that the change causes occurs in every change; a delay that this machine causes by giving
 * the CPU to another process does not. So each change is made several times, and the shortest of
 * its longest delays counts. A delay ends when the receiver's bl0 has the frame, not when this
 * process, which also serves the nodes, reads it.
 */
#include "tests/net/stations.h"

#include "tests/net/barline_run.h"
#include "tests/net/loader/said.h"
#include "tests/net/until.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"

#define HOSTS  3
#define ROUNDS 4
/*
 * A machine that pauses in some of the tries does not pause in all; a stall that the change causes
 * is in all.
 */
#define TRIES_NS 80000000000ULL
#define LIMIT_NS 50000000ULL /* limit of a frame's delay */
#define SEQS     65536
/* frames of a stream on the way; a host that holds many more, since it gets no CPU, drops some */
#define OUT_MAX 64

static struct station st[HOSTS];
static unsigned int talkers = HOSTS; /* hosts that send and receive */
static char barline[512];

/** struct stream - frames from one host to another. */
static struct stream {
	uint64_t sent_ns[SEQS]; /* station_now() at the send, by number */
	bool came[SEQS];        /* the frame has arrived, by number */
	uint32_t next, ncame;   /* number of the next frame, and of frames that arrived */
	uint64_t longest_ns;    /* since the last begin() */
} stream[HOSTS][HOSTS];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	/* a node that only waits for a CPU is not announced */
	cfg->dead_after_us = 5000000;
	cfg->clock_bound_us = 1000;
	if (cfg->role == BL_ROLE_HOST)
		cfg->admission.top.v[BL_TOP_O_EXPIRY] = 10000000 + 1;
}

static void open_rack(uint32_t answer_ms)
{
	unsigned int i;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	ctl_start(answer_ms);
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.beacon_us = 20000;
	rack.lab.spec.admission = (struct bl_admission_cfg){ .on = true,
							     .policy = BL_POLICY_NONE,
							     .rate_bps = 100000000 };
	rack.tweak = tweak;
	rack_open();
	rack_last_words = say_all;
	UNTIL("waits for all nodes", all_ok());
	for (i = 0; i < HOSTS; i++)
		st[i] = station(i);
}

static void collect(void)
{
	uint32_t port, seq, to;
	uint64_t came_ns = 0;

	for (to = 0; to < talkers; to++)
		while ((port = took_at(&st[to], &seq, &came_ns))) {
			struct stream *s = &stream[port - 700][to];
			uint64_t waited;

			CHECK(port >= 700 && port < 700 + HOSTS && seq < s->next,
			      "frame %u of port %u", seq, port);
			CHECK(!s->came[seq], "frame %u of h%u came to h%u twice", seq, port - 699,
			      to + 1);
			s->came[seq] = true;
			s->ncame++;
			waited = came_ns > s->sent_ns[seq] ? came_ns - s->sent_ns[seq] : 0;
			if (waited > s->longest_ns)
				s->longest_ns = waited;
		}
}

/* Sends a frame from each host to each other one, and takes what has arrived. */
static void talk(void)
{
	uint32_t from, to;

	for (from = 0; from < talkers; from++)
		for (to = 0; to < talkers; to++) {
			struct stream *s = &stream[from][to];

			if (from == to || s->next == SEQS || s->next - s->ncame >= OUT_MAX)
				continue;
			s->sent_ns[s->next] = station_now();
			give_host(&st[from], &st[to], 700 + from, s->next++);
		}
	rack_serve(1);
	collect();
}

static void talk_for(unsigned int turns)
{
	while (turns--)
		talk();
}

static bool all_came(void)
{
	uint32_t from, to;

	collect();
	for (from = 0; from < talkers; from++)
		for (to = 0; to < talkers; to++)
			if (stream[from][to].ncame != stream[from][to].next)
				return false;
	return true;
}

static uint64_t longest(void)
{
	uint64_t most = 0;
	uint32_t from, to;

	for (from = 0; from < talkers; from++)
		for (to = 0; to < talkers; to++) {
			if (stream[from][to].longest_ns > most)
				most = stream[from][to].longest_ns;
			stream[from][to].longest_ns = 0;
		}
	return most;
}

/*
 * Runs `barline -j admission set --rack POLICY` beside the traffic. Returns its exit status; *@said
 * receives its output.
 */
static int set_rack(const char *policy, json_t **said)
{
	const char *const argv[] = { barline, "-j", "admission", "set", "--rack", policy, NULL };
	int out = memfd_create("out", MFD_CLOEXEC), st_;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0 && out >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	while (waitpid(pid, &st_, WNOHANG) != pid)
		talk();
	lseek(out, 0, SEEK_SET);
	*said = json_loadfd(out, 0, NULL);
	close(out);
	CHECK(WIFEXITED(st_), "it died of signal %d", WTERMSIG(st_));
	return WEXITSTATUS(st_);
}

static enum bl_policy policy_of(unsigned int host)
{
	struct bl_hold_cfg cfg;
	int fd = rack_map(rack_host(host), BL_MAP_HOLD_CFG);
	uint32_t zero = 0;

	CHECK(!bpf_map_lookup_elem(fd, &zero, &cfg), "%s", strerror(errno));
	close(fd);
	return (enum bl_policy)cfg.policy;
}

static void change_to(const char *name, enum bl_policy policy, uint64_t *least)
{
	uint64_t waited;
	unsigned int i;
	json_t *said;
	int rc;

	longest();
	rc = set_rack(name, &said);
	CHECK(!rc && json_array_size(json_object_get(said, "nodes")) == HOSTS + 1,
	      "status %d to %s: %s", rc, name, said ? json_dumps(said, 0) : "nothing");
	json_decref(said);
	talk_for(60);
	for (i = 0; i < HOSTS; i++)
		CHECK(policy_of(i) == policy, "h%u has policy %u", i + 1, policy_of(i));
	UNTIL("waits for every frame", all_came());
	waited = longest();
	if (waited < *least)
		*least = waited;
}

/* Changes the policy and changes it back, several times; no frame is lost. */
static void there_and_back(const char *name, enum bl_policy policy)
{
	uint64_t still = ~0ULL, on = ~0ULL, off = ~0ULL, waited;
	unsigned int round;

	open_rack(20000);
	talk_for(100);
	for (round = 0; round < ROUNDS || (t_mono() - rack_begun < TRIES_NS &&
					   (on >= LIMIT_NS + still || off >= LIMIT_NS + still));
	     round++) {
		longest();
		talk_for(60);
		UNTIL("waits for every frame", all_came());
		waited = longest();
		if (waited < still)
			still = waited;
		change_to(name, policy, &on);
		change_to("none", BL_POLICY_NONE, &off);
	}
	printf("longest wait, shortest of %u: %.1f ms without a change, %.1f ms to %s, %.1f ms "
	       "back\n",
	       round, (double)still / 1e6, (double)on / 1e6, name, (double)off / 1e6);
	CHECK(on < LIMIT_NS + still && off < LIMIT_NS + still, "%llu and %llu us",
	      (unsigned long long)on / 1000, (unsigned long long)off / 1000);
}

RACK_TEST(rack__pl2_and_back)
{
	there_and_back("pl2", BL_POLICY_PL2);
}

RACK_TEST(rack__top_and_back)
{
	there_and_back("top", BL_POLICY_TOP);
}

/*
 * No host was started with Fastpass's configuration: none is changed, and each reports the reason.
 */
RACK_TEST(rack__refused_as_a_whole)
{
	json_t *said, *one;
	unsigned int i;
	size_t k;

	open_rack(20000);
	CHECK(set_rack("fastpass", &said) == 1, "it was taken");
	CHECK(json_is_true(json_object_get(said, "refused")), "not refused: %s",
	      said ? json_dumps(said, 0) : "nothing");
	json_array_foreach(json_object_get(said, "nodes"), k, one)
	{
		bool host = *json_string_value(json_object_get(one, "role")) == 'h';
		const char *why = json_string_value(json_object_get(one, "trouble"));

		CHECK(host == (strstr(why, "without Fastpass's file") != NULL), "%s", why);
		CHECK(!*json_string_value(json_object_get(one, "changed")), "something changed");
	}
	json_decref(said);
	for (i = 0; i < HOSTS; i++)
		CHECK(policy_of(i) == BL_POLICY_NONE, "h%u has policy %u", i + 1, policy_of(i));
}

/* A node without a session is named, the others are changed, and their traffic continues. */
RACK_TEST(rack__one_is_away)
{
	json_t *said, *one;
	unsigned int named = 0;
	size_t k;

	open_rack(20000);
	rack_close_node(rack_host(2)); /* and its pacer */
	talkers = 2;
	UNTIL("waits for the end of its session", times_said("\"state\":\"ok\"") == HOSTS);
	CHECK(set_rack("pl2", &said) == 1, "nobody was away");
	json_array_foreach(json_object_get(said, "nodes"), k, one) named +=
		strstr(json_string_value(json_object_get(one, "trouble")), "no session") != NULL;
	CHECK(named == 1 && !json_is_true(json_object_get(said, "refused")), "%u were named",
	      named);
	json_decref(said);
	CHECK(policy_of(0) == BL_POLICY_PL2 && policy_of(1) == BL_POLICY_PL2 &&
		      policy_of(2) == BL_POLICY_NONE,
	      "%u %u %u", policy_of(0), policy_of(1), policy_of(2));
	talk_for(100);
	UNTIL("waits for every frame", all_came());
}

/* Returns a node's row in `barline admission show -j`; the caller frees *@all. */
static json_t *shown(json_t **all, const char *node)
{
	const char *const argv[] = { barline, "-j", "admission", "show", "-a", NULL };
	json_t *one;
	size_t k;

	CHECK(!barline_run(all, argv) && *all, "admission show");
	json_array_foreach(json_object_get(*all, "admission"), k,
			   one) if (!strcmp(json_string_value(json_object_get(one, "node")),
					    node)) return one;
	CHECK(0, "no node %s", node);
	return NULL;
}

static bool has(const char *node, const char *apart)
{
	json_t *all, *one = json_object_get(shown(&all, node), "apart");
	bool yes = apart ? json_is_string(one) && strstr(json_string_value(one), apart)
			 : json_is_null(one);

	json_decref(all);
	return yes;
}

/* Sets @policy on one node only; all continue to send. */
static void only_on(unsigned int node, enum bl_policy policy)
{
	struct bl_admission_set set = {};
	struct bl_node_ref *refs;
	char said[512];
	struct bl_err err;
	int i, n, home, done = 0;

	bl_admission_put(&set, BL_AO_POLICY, policy);
	n = bl_nodes_find(&refs, 0, &err);
	CHECK(n > 0, "%s", err.text);
	for (i = 0; i < n; i++) {
		if (strcmp(rack.dir[node], refs[i].dir))
			continue;
		home = rack_away(node);
		CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said), &err), "%s",
		      err.text);
		rack_back(home);
		done++;
	}
	free(refs);
	CHECK(done == 1, "%d nodes", done);
	talk_for(60);
	UNTIL("waits for every frame", all_came());
}

/*
 * Sets each policy on one host only, and then on the switch only: nothing stops, and both ends of
 * the link report the disagreement until they agree again.
 */
static void one_disagrees(enum bl_policy policy)
{
	unsigned int tor = 0, h;

	open_rack(20000);
	h = rack_host(0);
	while (!rack_is_switch(tor))
		tor++;
	talk_for(60);
	CHECK(has("h1", NULL) && has(rack.lab.nodes[tor].name, NULL), "they agree");
	only_on(h, policy);
	UNTIL("waits for the host to see it", has("h1", "none"));
	UNTIL("waits for the switch to see it",
	      has(rack.lab.nodes[tor].name, bl_policy_name(policy)));
	CHECK(has("h2", NULL), "h2 is like its switch");
	only_on(h, BL_POLICY_NONE);
	UNTIL("waits for the host", has("h1", NULL));
	only_on(tor, policy);
	UNTIL("waits for all hosts to see it",
	      has("h1", bl_policy_name(policy)) && has("h2", bl_policy_name(policy)));
	only_on(tor, BL_POLICY_NONE);
	UNTIL("waits for the switch", has(rack.lab.nodes[tor].name, NULL));
}

RACK_TEST(apart__pl2)
{
	one_disagrees(BL_POLICY_PL2);
}

RACK_TEST(apart__top)
{
	one_disagrees(BL_POLICY_TOP);
}

/* A change by command on one host is an event there, and not on the others. */
RACK_TEST(here__is_an_event)
{
	const char *const argv[] = { barline, "-j", "admission", "set", "pl2", NULL };
	json_t *said;
	int home;

	open_rack(20000);
	home = rack_away(rack_host(0));
	CHECK(!barline_run(&said, argv), "admission set");
	rack_back(home);
	json_decref(said);
	CHECK(policy_of(0) == BL_POLICY_PL2, "it has not changed");
	UNTIL("waits for the event", says_event(rack_host(0), "admission_changed"));
	CHECK(!says_event(rack_host(1), "admission_changed"), "h2 was not changed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(here__is_an_event),  cmocka_unit_test(rack__pl2_and_back),
		cmocka_unit_test(rack__top_and_back), cmocka_unit_test(rack__refused_as_a_whole),
		cmocka_unit_test(rack__one_is_away),  cmocka_unit_test(apart__pl2),
		cmocka_unit_test(apart__top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
