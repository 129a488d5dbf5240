// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process is stopped in the middle of a send, again and again. Its host goes on without that send
 * (loader/order/void.c): the others deliver, the order holds, what was dropped is reported to the
 * sender, and the endpoint remains a member. No controller is needed for that.
 */
#include "tests/net/reliable/reliable.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"
#include "lib/internal.h"

#define WAIT_MS 60000
#define VICTIM  2
#define ROUNDS  5

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_void_after_ms = 100000;
	cfg->dead_after_us = 10000000;
	if (n->kind == LAB_HOST)
		cfg->send_limit_ms = 20;
}

static struct bl_ep *endpoint(unsigned int id)
{
	struct bl_ep *ep =
		bl_endpoint_at(rack.node[rack_host(tr_sh->node[id].cfg.host)], BL_PORT_BASE + id);

	CHECK(ep, "endpoint %u is not there: %s", id, tr_sh->node[id].error);
	return ep;
}

static const struct bl_host_page *page; /* of the victim's host */
static const struct bl_inflight *line;  /* of the victim */
static uint64_t stopped_ts;

/* The words of a worker that are free for the case */
enum { TRAP_AT_TS };

static struct tr *worker; /* in the process of a worker */

/*
 * Every look at the clock, so also the one between the two stores of bl_tx_stamp(): there the line
 * is in flight and nothing has left. Debug registers would need no help of the victim, but not
 * every hypervisor delivers their traps. The clock is then read by a system call: the kernel
 * changes the page from which the vDSO reads it at every tick, and a process that is stepped
 * through the vDSO on a busy machine begins anew for ever.
 */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (worker && TR_LOAD(worker->me->user[TRAP_AT_TS]) &&
	    __atomic_load_n(&worker->ep->line->ts, __ATOMIC_ACQUIRE) != BL_TIME_NONE) {
		__asm__ volatile("int3");
		return (int)syscall(SYS_clock_gettime, clock, t);
	}
	return __real_clock_gettime(clock, t);
}

static void trace(enum __ptrace_request how, void *data)
{
	CHECK(!ptrace(how, tr_sh->node[VICTIM].pid, NULL, data), "ptrace %d: %s", (int)how,
	      strerror(errno));
}

/* Lets the victim run to its next stop. Signals go to it. */
static void run_victim(enum __ptrace_request how)
{
	uintptr_t sig = 0;
	int st;

	for (;;) {
		trace(how, (void *)sig);
		while (!waitpid(tr_sh->node[VICTIM].pid, &st, WNOHANG))
			if (how != PTRACE_SINGLESTEP)
				rack_serve(1);
		CHECK(WIFSTOPPED(st), "it ended");
		if ((WSTOPSIG(st) & 0x7f) == SIGTRAP)
			return;
		sig = (uintptr_t)WSTOPSIG(st);
	}
}

/*
 * Stops the victim in the middle of a send, as a debugger does. @late: when it is about to hand its
 * frames to the kernel; otherwise as soon as its line is in flight.
 */
static void stop_in_a_send(bool late)
{
	uint64_t end = t_mono() + WAIT_MS * 1000000ULL;
	int st;

	trace(PTRACE_SEIZE, (void *)PTRACE_O_TRACESYSGOOD);
	trace(PTRACE_INTERRUPT, NULL);
	CHECK(waitpid(tr_sh->node[VICTIM].pid, &st, 0) > 0 && WIFSTOPPED(st), "it ended");
	TR_STORE(tr_sh->node[VICTIM].user[TRAP_AT_TS], !late);
	do {
		CHECK(t_mono() < end, "it is never in the middle of a send");
		run_victim(PTRACE_SYSCALL);
		stopped_ts = __atomic_load_n(&line->ts, __ATOMIC_ACQUIRE);
	} while (!stopped_ts || stopped_ts == BL_TIME_NONE);
	TR_STORE(tr_sh->node[VICTIM].user[TRAP_AT_TS], 0);
}

/*
 * Lets the victim go on until the hold of its reliable send is set, and a little further: it will
 * not look again whether its timestamp is void.
 */
static void go_on_to_the_hold(void)
{
	unsigned int i, beyond = 0;

	for (i = 0; i < 20000 && beyond < 100; i++) {
		uint64_t hold = __atomic_load_n(&line->hold, __ATOMIC_ACQUIRE);

		beyond += hold && hold != BL_TIME_NONE;
		run_victim(PTRACE_SINGLESTEP);
		CHECK(__atomic_load_n(&line->ts, __ATOMIC_ACQUIRE) == stopped_ts, "it sent without "
										  "a hold");
	}
	CHECK(beyond == 100, "it does not set the hold");
}

static bool is_void(void)
{
	return __atomic_load_n(&page->word[endpoint(VICTIM)->slot].over, __ATOMIC_ACQUIRE) >=
	       stopped_ts;
}

static bool barrier_passes(void)
{
	return __atomic_load_n(&page->sent_barrier, __ATOMIC_ACQUIRE) > stopped_ts + 1000000;
}

static void map_pages(void)
{
	int fd = rack_map(rack_host(VICTIM), BL_MAP_HOST_PAGE);

	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(page != MAP_FAILED, "%s", strerror(errno));
	close(fd);
	CHECK(endpoint(VICTIM)->page, "it has no page");
	line = &endpoint(VICTIM)->page->line;
}

static void mix(struct tr *w)
{
	worker = w;
	tr_mix(w);
}

static void add_workers(bool reliable)
{
	struct tr_cfg cfg = { .fn = mix,
			      .until_enough = true,
			      .len = 300,
			      .gap_us = 2000,
			      .fan = 3,
			      .items = 4,
			      .to = 7,
			      .reliable = reliable,
			      .quiet_ms = 4000 };

	rack.lab.spec.hosts = 3;
	rack.tweak = tweak;
	rack_open();
	for (cfg.host = 0; cfg.host < 3; cfg.host++)
		tr_add(&cfg);
	tr_go();
	tr_goes_on(VICTIM, "at the start");
	map_pages();
}

RACK_TEST(best_effort__goes_on_without_the_send)
{
	unsigned int i, dropped = 0;
	uint64_t begun, held = 0;

	add_workers(false);
	for (i = 0; i < ROUNDS; i++) {
		stop_in_a_send(true);
		begun = t_mono();
		CHECK(tr_until(is_void, WAIT_MS), "the host waits for a process that is stopped");
		CHECK(tr_until(barrier_passes, WAIT_MS), "B stands still");
		if (t_mono() - begun > held)
			held = t_mono() - begun;
		tr_goes_on(0, "while a process is stopped");
		CHECK(!endpoint(VICTIM)->dead, "it was expelled");
		trace(PTRACE_DETACH, NULL);
		tr_goes_on(VICTIM, "after it was stopped");
		dropped = (unsigned int)rack_count(rack_host(VICTIM), BL_R_SEND_VOID);
	}
	fprintf(stderr, "  %u stops: held for %.1f ms at most, %u frames dropped\n", i,
		(double)held / 1e6, dropped);
	CHECK(dropped, "no frame of a void send was dropped");
	CHECK(!rack_count_all(BL_R_PROMISE_BROKEN), "%" PRIu64 " frames came below a barrier",
	      rack_count_all(BL_R_PROMISE_BROKEN));
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge_all(0x7, 0x7, true);
}

/* A reliable send loses nothing: its hold keeps C, and B goes on. */
RACK_TEST(reliable__loses_nothing)
{
	unsigned int i;

	add_workers(true);
	for (i = 0; i < ROUNDS; i++) {
		stop_in_a_send(false);
		if (i & 1)
			go_on_to_the_hold();
		CHECK(tr_until(is_void, WAIT_MS), "the host waits for a process that is stopped");
		CHECK(tr_until(barrier_passes, WAIT_MS), "B stands still");
		CHECK(!endpoint(VICTIM)->dead, "it was expelled");
		trace(PTRACE_DETACH, NULL);
		tr_goes_on(0, "after a process was stopped");
		tr_goes_on(VICTIM, "after it was stopped");
	}
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0x7, 0x7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_effort__goes_on_without_the_send),
		cmocka_unit_test(reliable__loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
