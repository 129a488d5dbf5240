// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Beacons that the pacer sends instead of a beacon thread. The order holds with them, also while
 * applications' traffic uses the same pacer; barriers rise at every tick; there is no beacon
 * thread; the pacer sleeps between ticks; and a host changes between thread and pacer under
 * traffic.
 */
#include <dirent.h>
#include <linux/if_packet.h>
#include "tests/net/traffic.h"
#include "loader/order/beacon.h"

#define BEACON_US 1000
#define WAIT_MS   60000

static bool by_thread[LAB_NODES_MAX];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->admission.pacer_beacons = !by_thread[n - rack.lab.nodes];
	/*
	 * No host is excluded: neither one whose beacons wait for a CPU, nor one whose daemon takes
	 * long to start.
	 */
	cfg->dead_after_us = 60000000;
	/* The script serves all nodes. While it starts one of them, no clock may expire. */
	cfg->clock_void_after_ms = 100000;
}

static void open_rack(unsigned int hosts, uint64_t rate_bps)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.beacon_us = BEACON_US;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.rate_bps = rate_bps;
	rack.tweak = tweak;
	rack_open();
	rack_settle();
}

static struct bl_pace_page pace_page(unsigned int node)
{
	struct bl_pace_page p;
	uint32_t zero = 0;
	int fd = rack_map(node, BL_MAP_PACE_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "the pacer's page");
	close(fd);
	return p;
}

static uint64_t barrier(unsigned int node)
{
	struct bl_host_page p;
	uint32_t zero = 0;
	int fd = rack_map(node, BL_MAP_HOST_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "the barrier page");
	close(fd);
	return p.barrier;
}

/*
 * Returns the number of threads of this process, which serves all nodes, with this name. A thread
 * sets its own name once it has the CPU.
 */
static unsigned int threads(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;
	struct dirent *e;
	char path[300], comm[32];
	FILE *f;

	CHECK(d, "/proc");
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", e->d_name);
		f = *e->d_name != '.' ? fopen(path, "re") : NULL;
		if (f && fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name)))
			n++;
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

static void until_threads(const char *name, unsigned int n)
{
	uint64_t end = t_mono() + WAIT_MS * 1000000ULL;

	while (threads(name) != n) {
		CHECK(t_mono() < end, "%u threads are called %s, not %u", threads(name), name, n);
		rack_serve(1);
	}
}

/*
 * Checks that each beacon that the pacer released has left by the NIC, except for those that were
 * on the way between the two samples.
 */
static void all_left(unsigned int node)
{
	uint64_t before = pace_page(node).beacons, sent = rack_count(node, BL_R_BEACON_SENT),
		 after = pace_page(node).beacons;

	CHECK(sent + 1 >= before && sent <= after + 1,
	      "%s: the pacer sent %" PRIu64 " to %" PRIu64 " beacons, %" PRIu64 " left",
	      rack.lab.nodes[node].name, before, after, sent);
	CHECK(!pace_page(node).failed, "failed");
}

#define LOOKS   10
#define LOOK_MS 25

/*
 * Observes silent hosts for a short while. More than one beacon per tick is an error whatever the
 * machine does; the return value tells whether there were enough beacons. The while is short, so
 * that a machine that stands still now and then has some undisturbed ones.
 */
static bool a_while(void)
{
	uint64_t b[3], ticks, t0 = t_mono(), moved = 0;
	struct bl_pace_page p[3];
	unsigned int i, k;
	bool enough;

	for (i = 0; i < 3; i++) {
		p[i] = pace_page(rack_host(i));
		b[i] = barrier(rack_host(i));
	}
	for (k = 0; k < LOOKS; k++) {
		rack_serve(LOOK_MS);
		for (i = 0; i < 3; i++) {
			uint64_t now = barrier(rack_host(i));

			moved += now > b[i];
			b[i] = now;
		}
	}
	enough = moved == 3 * LOOKS;
	for (i = 0; i < 3; i++) {
		struct bl_pace_page q = pace_page(rack_host(i));
		uint64_t beacons = q.beacons - p[i].beacons, sleeps = q.sleeps - p[i].sleeps;

		ticks = (t_mono() - t0) / (BEACON_US * 1000);
		CHECK(beacons <= ticks + 2, "%s: %" PRIu64 " beacons in %" PRIu64 " ticks",
		      rack.lab.nodes[rack_host(i)].name, beacons, ticks);
		enough &= beacons > ticks / 4 && sleeps > ticks / 10;
		fprintf(stderr,
			"  %s: %" PRIu64 " beacons in %" PRIu64 " ticks, %" PRIu64
			" sleeps; of 30 looks at three hosts %" PRIu64 " found a newer barrier\n",
			rack.lab.nodes[rack_host(i)].name, beacons, ticks, sleeps, moved);
	}
	return enough;
}

/*
 * Returns whether the beacon thread, which updates every node's clock record, also sends beacons
 * for host @i. The pacer must do that instead.
 */
static bool thread_beats(unsigned int i)
{
	return bl_beacon_sending(rack.node[rack_host(i)]);
}

/*
 * Silent hosts send one beacon per tick and no more, every host's barrier rises, and the pacer
 * sleeps in between. On a busy machine ticks are missed; then the test observes another while.
 */
RACK_TEST(idle__one_a_tick)
{
	unsigned int i;
	uint64_t end;

	open_rack(3, 0);
	for (i = 0; i < 3; i++)
		CHECK(!thread_beats(i), "the beacon thread beats for host %u", i);
	until_threads("barline-pacer", 1);
	for (end = t_mono() + WAIT_MS * 1000000ULL; !a_while();)
		CHECK(t_mono() < end, "in no while there was enough of everything");
	for (i = 0; i < 3; i++)
		all_left(rack_host(i));
	CHECK(rack_count_all(BL_R_EXCLUDED) == 0, "a host was taken for dead");
}

/* The endpoints send until in_order(). */
static void talk(unsigned int hosts)
{
	unsigned int i;

	for (i = 0; i < hosts + 2; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 500,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 300,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
}

static bool all_talked(void)
{
	unsigned int i;

	for (i = 0; i < tr_sh->count; i++)
		if (TR_LOAD(tr_sh->node[i].received) < 2000)
			return false;
	return true;
}

static void in_order(void)
{
	CHECK(tr_until(all_talked, WAIT_MS), "they do not talk");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	/*
	 * The messages are best effort. Where a link's thread has no CPU for long, beacons alone
	 * fill its ring: messages that were lost there must have been reported, and nothing may
	 * have been late.
	 */
	tr_judge_all(~0ULL, ~0ULL, true);
	CHECK(TR_SUM(late_dropped) == 0, "late %" PRIu64, TR_SUM(late_dropped));
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "a beacon overtook a message");
}

/* frames on the way; with those of the endpoints they fit into a link's ring */
#define FLOOD_MAX 64

/*
 * An application floods bl0, and thereby the pacer, while endpoints send. The switch has no route
 * for the flood and drops it. The number of frames that the switch has not seen yet is bounded:
 * where the switch stands still, the link's ring would overflow and lose the endpoints' frames.
 */
static pid_t flood(unsigned int from)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	uint8_t frame[600] = { 0x02, 0x77, 0x77, 0x77, 0x77, 0x77, 0x02,
			       0xc4, 0,    0,    0,    9,    0x88, 0xb6 };
	uint64_t sent = 0, seen = 0, now, at = t_mono();
	pid_t pid = fork();
	int fd;

	CHECK(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rack_enter(rack_host(from));
	to.sll_ifindex = (int)if_nametoindex("bl0");
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	for (;;) {
		now = rack_count(0, BL_R_NO_ROUTE);
		if (now != seen || sent == seen)
			at = t_mono();
		seen = now;
		/* frames that have not arrived by now are lost */
		if (sent < seen || t_mono() > at + 5000000000ULL)
			sent = seen;
		if (sent >= seen + FLOOD_MAX) {
			usleep(50);
			continue;
		}
		sent++;
		if (sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) < 0 &&
		    errno != ENOBUFS)
			_exit(1);
		usleep(50);
	}
}

static bool all_paced(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (pace_page(rack_host(i)).beacons <= 200)
			return false;
	return pace_page(rack_host(0)).emitted > 1000;
}

RACK_TEST(order__beside_applications)
{
	pid_t pid;
	unsigned int i;

	open_rack(4, 200000000);
	pid = flood(0);
	talk(4);
	CHECK(tr_until(all_paced, WAIT_MS), "the application sent %" PRIu64 " frames",
	      (uint64_t)pace_page(rack_host(0)).emitted);
	in_order();
	kill(pid, SIGKILL);
	for (i = 0; i < 4; i++) {
		CHECK(pace_page(rack_host(i)).beacons > 200, "%" PRIu64 " beacons",
		      (uint64_t)pace_page(rack_host(i)).beacons);
		all_left(rack_host(i));
	}
	for (i = 0; i < 4; i++)
		CHECK(!thread_beats(i), "the beacon thread beats for host %u", i);
}

RACK_TEST(order__leaf_spine)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, 0);
	talk(4);
	in_order();
}

static uint64_t paced_of(unsigned int node)
{
	return pace_page(node).beacons;
}

static uint64_t sent_of(unsigned int node)
{
	return rack_count(node, BL_R_BEACON_SENT);
}

/* Waits until 30 more beacons than @before have arrived, at whatever speed this machine has. */
static void go_on(uint64_t (*of)(unsigned int), unsigned int node, uint64_t before,
		  const char *otherwise)
{
	uint64_t end = t_mono() + WAIT_MS * 1000000ULL;

	while (of(node) <= before + 30) {
		CHECK(t_mono() < end, "node %u: %s", node, otherwise);
		tr_pass(10);
	}
}

/*
 * The daemon of h1 is restarted with the thread, and again with the pacer. At no time do both send
 * beacons, and at no time neither.
 */
RACK_TEST(takeover__thread_and_pacer)
{
	uint64_t paced, sent;
	unsigned int k, h1;

	open_rack(3, 0);
	h1 = rack_host(0);
	talk(3);
	tr_pass(200);
	for (k = 0; k < 4; k++) {
		by_thread[h1] = !(k & 1);
		rack_close_node(h1);
		rack_open_node(h1);
		tr_pass(50);
		paced = paced_of(h1);
		sent = sent_of(h1);
		go_on(sent_of, h1, sent, "it fell silent");
		if (by_thread[h1]) {
			until_threads("barline-beacon", 1);
			CHECK(paced_of(h1) == paced, "round %u: the pacer sends, too", k);
		} else {
			go_on(paced_of, h1, paced, "the pacer sends none");
		}
	}
	in_order();
}

/* Reads the affinity of this process's only thread with this name. Returns its id. */
static pid_t affinity(const char *name, cpu_set_t *set)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;
	struct dirent *e;
	char path[300], comm[32];
	pid_t tid = 0;
	FILE *f;

	CHECK(d, "/proc");
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", e->d_name);
		f = *e->d_name != '.' ? fopen(path, "re") : NULL;
		if (f && fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name))) {
			tid = atoi(e->d_name);
			CHECK(!sched_getaffinity(atoi(e->d_name), sizeof(*set), set), "affinity");
			n++;
		}
		if (f)
			fclose(f);
	}
	closedir(d);
	CHECK(n == 1, "%u threads are called %s", n, name);
	return tid;
}

static void until_policy(pid_t tid, int policy)
{
	uint64_t end = t_mono() + WAIT_MS * 1000000ULL;

	while (sched_getscheduler(tid) != policy) {
		CHECK(t_mono() < end, "policy %d, not %d", sched_getscheduler(tid), policy);
		usleep(1000);
	}
}

/*
 * The thread runs where the datapath of its hosts runs, and only as long as one of them wants it
 * there.
 */
RACK_TEST(cpu__of_the_datapath)
{
	cpu_set_t all, set;
	unsigned int k;
	pid_t tid;

	CHECK(!sched_getaffinity(0, sizeof(all), &all), "affinity");
	for (k = 0; k < LAB_NODES_MAX; k++)
		by_thread[k] = true;
	rack.lab.spec.hosts = 2;
	rack_open();
	until_threads("barline-beacon", 1);
	tid = affinity("barline-beacon", &set);
	CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set), "%d CPUs", CPU_COUNT(&set));
	until_policy(tid, SCHED_OTHER); /* two hosts on a CPU that applications use */
	rack_close_node(rack_host(0));
	affinity("barline-beacon", &set);
	CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set), "%d CPUs with one host left",
	      CPU_COUNT(&set));
	until_policy(tid, SCHED_FIFO);
	rack_close_node(rack_host(1));
	affinity("barline-beacon", &set);
	CHECK(CPU_EQUAL(&set, &all), "%d CPUs with no host left, of %d", CPU_COUNT(&set),
	      CPU_COUNT(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu__of_the_datapath),       cmocka_unit_test(idle__one_a_tick),
		cmocka_unit_test(order__beside_applications), cmocka_unit_test(order__leaf_spine),
		cmocka_unit_test(takeover__thread_and_pacer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
