// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints and the next daemon of their host. An endpoint that leaves in an orderly way is
 * announced as one that left, whatever the daemon did meanwhile and whatever is unread in the
 * connection; an endpoint that died is announced as one that died.
 */
#include "tests/net/loader/restart.h"

#include <stdatomic.h>
#include <sys/un.h>

#include "tests/net/part.h"

/*
 * Three on each of the first two hosts. On the first host one of them listens and the others leave.
 */
#define ACTORS 6

enum act { ACT_CALL, ACT_SLEEP, ACT_SEND, ACT_CLAIM, ACT_EXIT, ACT_EXIT_AND_STAY };

/** struct actor - a process with one endpoint. */
struct actor {
	/*
	 * @act: command, written by the test.
	 * @rest: it makes no library calls any more.
	 * @gone: bl_exit() has returned.
	 * @times: number of ends that it was told of.
	 * @acked: everything that it sent to @to is acknowledged; @got: messages received.
	 */
	_Atomic int act, ready, rest, gone, times, acked, got, claimed;
	_Atomic uint64_t reconnects, forwarded;
	struct bl_addr to;
	uint32_t life;
	/* The daemon's answers to claims for another life, for its own, and for its own again. */
	int claims[3];
	_Atomic unsigned int heard; /* bit: enum bl_gone_reason of the ends it was told of */
	struct bl_addr addr;
	char error[256];
	pid_t pid;
};

static struct actor *actors;

static unsigned int host_of(unsigned int i)
{
	return i % 2;
}

static void on_gone(void *ctx, const struct bl_addr *who, uint64_t ts, enum bl_gone_reason why)
{
	struct actor *a = ctx;

	(void)who, (void)ts;
	atomic_fetch_or(&a->heard, 1U << why);
	atomic_fetch_add(&a->times, 1);
}

/*
 * Claims an endpoint from the daemon of the first host, as lib/again.c does. Returns the daemon's
 * answer; *@fd receives the connection.
 */
static int claim(const struct bl_addr *who, uint32_t life, uint32_t abi, int *fd)
{
	const struct bl_again_req q = { .magic = BL_SOCK_AGAIN,
					.abi_version = abi,
					.port = who->port,
					.life = (uint16_t)life };
	const struct timeval most = { .tv_sec = 30 };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct bl_again_rep rep = { 0 };

	snprintf(sun.sun_path, sizeof(sun.sun_path), BL_RUN_DIR "/host-%" PRIu64 ".sock",
		 dm[rack_host(0)].netns_ino);
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	if (connect(*fd, (struct sockaddr *)&sun, sizeof(sun)) ||
	    send(*fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q) ||
	    recv(*fd, &rep, sizeof(rep), 0) != sizeof(rep) || rep.magic != BL_SOCK_AGAIN)
		return -1;
	return rep.error;
}

static int send_one(struct bl_endpoint *ep, const struct actor *a)
{
	const struct bl_msg m = { .dst = a->to, .data = "x", .len = 1 };

	return bl_send_reliable(ep, &m, 1, 0);
}

static void claim_all(struct actor *a)
{
	int fd;

	a->claims[0] = claim(&a->addr, a->life + 1, BL_ABI_VERSION, &fd);
	a->claims[1] = claim(&a->addr, a->life, BL_ABI_VERSION, &fd); /* stays open */
	a->claims[2] = claim(&a->addr, a->life, BL_ABI_VERSION, &fd);
	atomic_store(&a->claimed, 1);
}

static void note(struct bl_endpoint *ep, struct actor *a)
{
	struct bl_stats st = { .size = sizeof(st) };

	bl_get_stats(ep, &st);
	atomic_store(&a->reconnects, st.reconnects);
	atomic_store(&a->forwarded, st.forwarded);
}

static int play(struct actor *a)
{
	struct bl_endpoint *ep;
	struct bl_delivery d[8];
	bool sent = false;
	int act, n;

	if (bl_init(&ep, NULL)) {
		snprintf(a->error, sizeof(a->error), "bl_init: %s", bl_strerror(NULL));
		return 1;
	}
	bl_on_proc_gone(ep, on_gone, a);
	a->addr = *bl_self(ep);
	bl_recv_reliable(ep, d, 8, 0);
	atomic_store(&a->ready, 1);
	while ((act = atomic_load(&a->act)) < ACT_EXIT) {
		atomic_store(&a->rest, act == ACT_SLEEP);
		if (act == ACT_SLEEP) {
			poll(NULL, 0, 2);
			continue;
		}
		if (act == ACT_CLAIM && !atomic_load(&a->claimed))
			claim_all(a);
		if (act == ACT_SEND && !sent)
			sent = !send_one(ep, a);
		n = bl_recv_reliable(ep, d, 8, 5);
		if (n < 0) {
			snprintf(a->error, sizeof(a->error), "bl_recv_reliable: %s",
				 bl_strerror(ep));
			break;
		}
		atomic_fetch_add(&a->got, n);
		if (sent && bl_wait(ep, BL_WAIT_ACKED, 0) & BL_WAIT_ACKED)
			atomic_store(&a->acked, 1);
		note(ep, a);
	}
	bl_exit(ep);
	atomic_store(&a->gone, 1);
	while (act == ACT_EXIT_AND_STAY)
		pause();
	return a->error[0] != 0;
}

static void say_actors(void)
{
	unsigned int i;

	for (i = 0; i < ACTORS; i++)
		fprintf(stderr, "actor %u, port %u: act %d gone %d heard %#x (%d) %s\n", i,
			actors[i].addr.port, actors[i].act, actors[i].gone, actors[i].heard,
			actors[i].times, actors[i].error);
	say_all();
}

static void begin(void)
{
	unsigned int i;

	actors = mmap(NULL, ACTORS * sizeof(*actors), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(actors != MAP_FAILED, "%s", strerror(errno));
	rack_last_words = say_actors;
	dead_us = 8000000; /* A killed daemon sends no beacons until the next one does. */
	open_rack(HOSTS);
	for (i = 0; i < ACTORS; i++) {
		pid_t pid;

		fflush(NULL);
		pid = fork();
		CHECK(pid >= 0, "%s", strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rack_enter(rack_host(host_of(i)));
			_exit(play(&actors[i]));
		}
		actors[i].pid = pid;
	}
	for (i = 0; i < ACTORS; i++)
		UNTIL("waits for endpoints", atomic_load(&actors[i].ready) || actors[i].error[0]);
}

static void act(unsigned int i, enum act what)
{
	atomic_store(&actors[i].act, what);
	if (what == ACT_SLEEP)
		UNTIL("waits until it sleeps", atomic_load(&actors[i].rest));
	else if (what >= ACT_EXIT)
		UNTIL("waits until it has left", atomic_load(&actors[i].gone));
}

/*
 * Returns whether the listening actors, 0 (first host) and 1 (second host), have heard @times ends.
 */
static bool heard(int times)
{
	return atomic_load(&actors[0].times) >= times && atomic_load(&actors[1].times) >= times;
}

static void all_left(int times)
{
	UNTIL("waits until all have heard", heard(times));
	CHECK(!strstr(ask(), "\"why\":\"died\""), "who has left was announced as died: %s",
	      said_failures());
	CHECK(actors[0].heard == 1U << BL_GONE_LEFT && actors[1].heard == 1U << BL_GONE_LEFT,
	      "they heard %#x and %#x", actors[0].heard, actors[1].heard);
	UNTIL("waits until all is settled", all_finished());
}

static void restart(int sig)
{
	daemon_stop(rack_host(0), sig);
	daemon_start(rack_host(0));
	UNTIL("waits for all nodes", all_ok());
}

/*
 * Ends the case. A host that is detached under an endpoint is first silent for twice dead_after,
 * which takes long.
 */
static void end(void)
{
	unsigned int i;

	for (i = 0; i < ACTORS; i++)
		atomic_store(&actors[i].act, ACT_EXIT);
	UNTIL("waits for the end", !dm_slots_used(0) && !dm_slots_used(1));
	daemons_end();
}

/*
 * The next daemon learns that endpoints left: from one that continued to call, and from one that
 * had not called since.
 */
RACK_TEST(left__after_a_restart)
{
	begin();
	act(4, ACT_SLEEP);
	restart(SIGTERM);
	act(2, ACT_EXIT);
	act(4, ACT_EXIT);
	all_left(2);
	end();
}

RACK_TEST(left__after_a_kill)
{
	begin();
	act(4, ACT_SLEEP);
	restart(SIGKILL);
	act(2, ACT_EXIT);
	act(4, ACT_EXIT);
	all_left(2);
	end();
}

/* Endpoints leave while there is no daemon. */
RACK_TEST(left__while_no_daemon_runs)
{
	unsigned int sig;

	begin();
	for (sig = 0; sig < 2; sig++) {
		daemon_stop(rack_host(0), sig ? SIGKILL : SIGTERM);
		act(2 + 2 * sig, sig ? ACT_EXIT : ACT_EXIT_AND_STAY);
		daemon_start(rack_host(0));
		all_left((int)sig + 1);
		UNTIL("waits for the slot", dm_slots_used(0) == 2 - sig);
	}
	end();
}

/* An endpoint has left, and its process lives on: only its goodbye shows that it left. */
RACK_TEST(left__and_lives_on)
{
	begin();
	act(2, ACT_SLEEP);
	restart(SIGTERM);
	act(2, ACT_EXIT_AND_STAY);
	all_left(1);
	UNTIL("waits for the slot", dm_slots_used(0) == 2);
	CHECK(runs(actors[2].pid), "it was to live on");
	end();
}

/*
 * The daemon that was told is killed before any controller has heard of it, and the next one finds
 * a free slot. The daemons after that have nothing more to report.
 */
RACK_TEST(left__before_a_controller_heard)
{
	int sig;

	begin();
	ctl_kill();
	act(2, ACT_EXIT);
	UNTIL("waits for the slot", dm_slots_used(0) == 2);
	daemon_stop(rack_host(0), SIGKILL);
	daemon_start(rack_host(0));
	ctl_start(answer_ms);
	all_left(1);
	for (sig = SIGKILL; sig; sig = sig == SIGKILL ? SIGTERM : 0)
		restart(sig);
	act(4, ACT_EXIT);
	all_left(2);
	CHECK(actors[0].times == 2 && actors[1].times == 2, "they heard %d and %d times of two",
	      actors[0].times, actors[1].times);
	end();
}

/*
 * The daemon had sent the endpoint something that it has not read. Linux resets such a connection
 * and discards what the endpoint sent last.
 */
RACK_TEST(left__with_news_unread)
{
	begin();
	act(4, ACT_SLEEP);
	act(2, ACT_EXIT);
	all_left(1);
	act(4, ACT_EXIT);
	all_left(2);
	end();
}

/* An endpoint is announced as one that left only if it said so. */
RACK_TEST(died__is_said_of_who_did)
{
	begin();
	restart(SIGTERM);
	CHECK(!kill(actors[2].pid, SIGKILL), "%s", strerror(errno));
	UNTIL("waits until all have heard", heard(1));
	CHECK(actors[0].heard == 1U << BL_GONE_DIED && actors[1].heard == 1U << BL_GONE_DIED,
	      "they heard %#x and %#x", actors[0].heard, actors[1].heard);
	/* while no daemon runs */
	daemon_stop(rack_host(0), SIGTERM);
	CHECK(!kill(actors[4].pid, SIGKILL) && waitpid(actors[4].pid, NULL, 0) == actors[4].pid,
	      "%s", strerror(errno));
	daemon_start(rack_host(0));
	UNTIL("waits until all have heard", heard(2));
	CHECK(actors[0].heard == 1U << BL_GONE_DIED && actors[1].heard == 1U << BL_GONE_DIED,
	      "they heard %#x and %#x", actors[0].heard, actors[1].heard);
	end();
}

static bool all_connected(uint64_t times)
{
	unsigned int i;

	for (i = 0; i < ACTORS; i++)
		if (!host_of(i) && atomic_load(&actors[i].act) != ACT_SLEEP &&
		    atomic_load(&actors[i].reconnects) != times)
			return false;
	return true;
}

/* An endpoint finds every daemon after the first one, whichever endpoint calls. */
RACK_TEST(connects__to_each_daemon)
{
	unsigned int round;

	begin();
	act(4, ACT_SLEEP);
	for (round = 0; round < 4; round++) {
		restart(round % 2 ? SIGKILL : SIGTERM);
		UNTIL("waits for connections", all_connected(round + 1));
	}
	/* An endpoint that slept meanwhile has missed some daemons, and finds the last one. */
	atomic_store(&actors[4].act, ACT_CALL);
	UNTIL("waits for its connection", atomic_load(&actors[4].reconnects));
	/* The new connection is also closed after a goodbye. */
	act(2, ACT_EXIT);
	all_left(1);
	act(4, ACT_EXIT);
	all_left(2);
	end();
}

/*
 * Frames from host 1 to host 2 are dropped. The controller forwards them, also for an endpoint that
 * is older than its daemon.
 */
RACK_TEST(forwards__after_a_restart)
{
	unsigned int round;

	begin();
	for (round = 0; round < 2; round++) {
		restart(round ? SIGKILL : SIGTERM);
		UNTIL("waits for connections", all_connected(round + 1));
	}
	actors[2].to = actors[1].addr;
	part_from(actors[2].addr.ip, 1, ANY);
	act(2, ACT_SEND);
	UNTIL("waits for the message",
	      atomic_load(&actors[1].got) == 1 && atomic_load(&actors[2].acked));
	/* It reports that it has an acknowledgement before it reports how that came about. */
	UNTIL("waits for the count of what was forwarded: without it this proves nothing",
	      atomic_load(&actors[2].forwarded));
	end();
}

static uint32_t life_of(unsigned int i)
{
	int fd = rack_map(rack_host(host_of(i)), BL_MAP_EPS);
	struct bl_ep_slot s = { 0 };
	uint32_t k;

	CHECK(fd >= 0, "%s", strerror(errno));
	for (k = 0; k < BL_PORT_COUNT && s.port != actors[i].addr.port; k++)
		CHECK(!bpf_map_lookup_elem(fd, &k, &s), "%s", strerror(errno));
	close(fd);
	CHECK(s.port == actors[i].addr.port && s.life, "endpoint %u is not there",
	      actors[i].addr.port);
	return s.life;
}

/*
 * Only the process of an endpoint can claim it, and only once. A refused claim does the endpoint no
 * harm.
 */
RACK_TEST(claim__by_its_own_process_alone)
{
	int fd[3];

	begin();
	act(4, ACT_SLEEP);
	actors[4].life = life_of(4);
	restart(SIGTERM);
	CHECK(claim(&actors[4].addr, actors[4].life, BL_ABI_VERSION, &fd[0]) == EPERM, "another "
										       "process");
	CHECK(claim(&actors[4].addr, actors[4].life + 1, BL_ABI_VERSION, &fd[1]) == ENOENT, "anothe"
											    "r "
											    "life");
	CHECK(claim(&actors[4].addr, actors[4].life, BL_ABI_VERSION + 1, &fd[2]) == EPROTO, "anothe"
											    "r "
											    "versio"
											    "n");
	close(fd[0]);
	close(fd[1]);
	close(fd[2]);
	act(4, ACT_CLAIM);
	UNTIL("waits for the answers", atomic_load(&actors[4].claimed));
	CHECK(actors[4].claims[0] == ENOENT && !actors[4].claims[1] && actors[4].claims[2] == EBUSY,
	      "%d %d %d", actors[4].claims[0], actors[4].claims[1], actors[4].claims[2]);
	/* its library is refused now, and continues */
	actors[4].to = actors[1].addr;
	act(4, ACT_SEND);
	UNTIL("waits for the message",
	      atomic_load(&actors[1].got) == 1 && atomic_load(&actors[4].acked));
	CHECK(!atomic_load(&actors[4].reconnects) && !failures(), "%s", ask());
	act(4, ACT_EXIT);
	all_left(1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left__after_a_restart),
		cmocka_unit_test(left__after_a_kill),
		cmocka_unit_test(left__while_no_daemon_runs),
		cmocka_unit_test(left__and_lives_on),
		cmocka_unit_test(left__before_a_controller_heard),
		cmocka_unit_test(left__with_news_unread),
		cmocka_unit_test(died__is_said_of_who_did),
		cmocka_unit_test(connects__to_each_daemon),
		cmocka_unit_test(forwards__after_a_restart),
		cmocka_unit_test(claim__by_its_own_process_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
