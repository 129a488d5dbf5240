// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer's thread by itself: it gives every node its turns, sleeps when nothing is due, is woken
 * by a bell and by time, and stops at once. The nodes' programs are a few instructions that count
 * their turns and, when the test wants it, an emission; the test writes what is due.
 */
#include <linux/if_ether.h>
#include <sys/syscall.h>
#include "tests/net/rack.h"
#include "loader/admission/pace.h"
#include "loader/admission/pacer.h"

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MAP_VALUE(reg, fd, off) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_VALUE, 0, fd), INSN(0, 0, 0, 0, off)
#define MAP_PTR(reg, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

struct node {
	struct bl_pace pace;
	struct bl_pace_fds fds;
	int ring; /* program that rings the bell */
	struct bl_pace_page *page;
};

static struct bl_server *server;

static int load(const struct bpf_insn *code, size_t n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "bl_test", "GPL", code, n, &o);

	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

static void set_due(struct node *n, uint64_t at)
{
	static struct bl_due due;
	uint32_t zero = 0;

	due.next = at;
	CHECK(!bpf_map_update_elem(n->fds.due, &zero, &due, BPF_ANY), "%s", strerror(errno));
	__atomic_store_n(&n->page->next_ns, at, __ATOMIC_SEQ_CST);
}

static void node_make(struct node *n)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);

	memset(n, 0, sizeof(*n));
	n->fds.page = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pace_page", 4,
				     sizeof(struct bl_pace_page), 1, &o);
	n->fds.due = bpf_map_create(BPF_MAP_TYPE_ARRAY, "due", 4, sizeof(struct bl_due), 1, NULL);
	n->fds.bell = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bell", 0, 0, 4096, NULL);
	CHECK(n->fds.page >= 0 && n->fds.due >= 0 && n->fds.bell >= 0, "%s", strerror(errno));
	/* turns += 1; emitted += a reserved word that the test sets (here: failed) */
	const struct bpf_insn pace[] = {
		MAP_VALUE(BPF_REG_1, n->fds.page, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1,
		     offsetof(struct bl_pace_page, turns), 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, 1),
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_2,
		     offsetof(struct bl_pace_page, turns), 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1,
		     offsetof(struct bl_pace_page, emitted), 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_1,
		     offsetof(struct bl_pace_page, failed), 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_3, 0, 0),
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_2,
		     offsetof(struct bl_pace_page, emitted), 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_DROP),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	/* as bl_pace_ring() does: a record that is discarded */
	const struct bpf_insn ring[] = {
		MAP_PTR(BPF_REG_1, n->fds.bell),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_reserve),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 3, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, BPF_RB_FORCE_WAKEUP),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_discard),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_DROP),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	n->fds.prog = load(pace, sizeof(pace) / sizeof(pace[0]));
	n->ring = load(ring, sizeof(ring) / sizeof(ring[0]));
	n->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, n->fds.page, 0);
	CHECK(n->page != MAP_FAILED, "%s", strerror(errno));
	set_due(n, BL_DUE_NEVER);
}

static void ring_bell(struct node *n)
{
	uint8_t frame[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = 1);

	CHECK(!bpf_prog_test_run_opts(n->ring, &o), "%s", strerror(errno));
}

static void start(int cpu)
{
	struct bl_err err;

	CHECK(!bl_server_new(&server, &err), "%s", err.text);
	CHECK(!bl_pacer_start(server, cpu, &err), "%s", err.text);
}

static void add(struct node *n, int cpu, bool spin)
{
	struct bl_err err;

	CHECK(!bl_pacer_add(server, &n->pace, cpu, spin, &n->fds, &err), "%s", err.text);
}

static uint64_t turns(struct node *n)
{
	return __atomic_load_n(&n->page->turns, __ATOMIC_ACQUIRE);
}

static bool asleep(struct node *n)
{
	return __atomic_load_n(&n->page->asleep, __ATOMIC_ACQUIRE);
}

static uint64_t calls(struct node *n)
{
	return __atomic_load_n(&n->page->calls, __ATOMIC_ACQUIRE);
}

static uint64_t sleeps(struct node *n)
{
	return __atomic_load_n(&n->page->sleeps, __ATOMIC_ACQUIRE);
}

static uint32_t woken(struct node *n)
{
	return __atomic_load_n(&n->page->woken, __ATOMIC_ACQUIRE);
}

/*
 * No case depends on how fast the pacer is, or whether it gets the CPU. Assertions count its calls
 * and sleeps, and expected events are waited for up to this time.
 */
#define LONG_MS 60000

/* Returns whether @cond becomes true within @ms. */
#define WITHIN(cond, ms)                                    \
	({                                                  \
		uint64_t end_ = t_mono() + (ms)*1000000ULL; \
		bool ok_;                                   \
		while (!(ok_ = (cond)) && t_mono() < end_)  \
			usleep(50);                         \
		ok_;                                        \
	})
#define COMES(cond) WITHIN(cond, LONG_MS)

/*
 * Waits until all calls that are under way now are over, and one that lists @n and @more others
 * have been made.
 */
static void calls_pass(struct node *n, unsigned int more)
{
	uint64_t from = calls(n);

	CHECK(COMES(calls(n) >= from + 2 + more), "no calls");
}

/*
 * Reads the turns of all three nodes at one time, apart from those that they get during the read.
 */
static void turns_now(struct node v[3], uint64_t now[3])
{
	unsigned int i;

	do {
		for (i = 0; i < 3; i++)
			now[i] = turns(&v[i]);
	} while (turns(&v[0]) - now[0] > 100);
}

RACK_TEST(turns__every_node_its_share)
{
	static struct node v[3];
	uint64_t before[3], took[3];
	unsigned int i;

	start(0);
	for (i = 0; i < 3; i++) {
		node_make(&v[i]);
		add(&v[i], 0, true);
	}
	CHECK(COMES(turns(&v[0]) && turns(&v[1]) && turns(&v[2])), "no turns");
	turns_now(v, before);
	CHECK(COMES(turns(&v[0]) > before[0] + 10000), "no more turns");
	turns_now(v, took);
	for (i = 0; i < 3; i++)
		took[i] -= before[i];
	CHECK(took[1] > took[0] / 2 && took[2] > took[0] / 2 && took[0] > took[1] / 2,
	      "%" PRIu64 " %" PRIu64 " %" PRIu64, took[0], took[1], took[2]);
	calls_pass(&v[0], 10);
	CHECK(!sleeps(&v[0]), "a spinning pacer slept");
	/* The first one is removed: the last one takes its place, and none is left out. */
	bl_pacer_remove(&v[0].pace);
	calls_pass(&v[1], 0);
	for (i = 0; i < 3; i++)
		before[i] = turns(&v[i]);
	CHECK(COMES(turns(&v[1]) > before[1] && turns(&v[2]) > before[2]), "after one went");
	calls_pass(&v[1], 3);
	CHECK(turns(&v[0]) == before[0], "turns of one that went");
	bl_pacer_remove(&v[2].pace);
	bl_pacer_remove(&v[1].pace);
	bl_pacer_remove(&v[1].pace); /* removing twice is harmless */
	/* The calls of another node show that the earlier ones are over. */
	add(&v[0], 0, true);
	calls_pass(&v[0], 0);
	before[1] = turns(&v[1]);
	calls_pass(&v[0], 3);
	CHECK(turns(&v[1]) == before[1], "turns of one that went");
	bl_pacer_remove(&v[0].pace);
	usleep(50000);
	CHECK(turns(&v[1]) == before[1], "turns without nodes");
	add(&v[1], 0, true);
	CHECK(COMES(turns(&v[1]) > before[1]), "a node that came back gets no turns");
	bl_server_free(server);
}

RACK_TEST(sleep__nothing_due)
{
	static struct node v[2];
	uint64_t n, slept, called;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	CHECK(COMES(asleep(&v[0]) && asleep(&v[1])), "it does not sleep");
	calls_pass(&v[0], 0);
	/* In this order, a delay between the two reads makes calls fewer, not more. */
	slept = sleeps(&v[0]);
	called = calls(&v[0]);
	n = turns(&v[0]);
	CHECK(COMES(sleeps(&v[0]) >= slept + 5), "it sleeps no more");
	n = turns(&v[0]) - n;
	called = calls(&v[0]) - called;
	slept = sleeps(&v[0]) - slept;
	/* one short call follows each sleep */
	CHECK(called <= slept + 1, "%" PRIu64 " calls, %" PRIu64 " sleeps", called, slept);
	CHECK(n < 20000 * (called + 2), "%" PRIu64 " turns in %" PRIu64 " calls", n, called);
	CHECK(COMES(sleeps(&v[0]) == sleeps(&v[1])), "sleeps of one");
	CHECK(!woken(&v[0]), "woken without a bell");
	bl_server_free(server);
}

RACK_TEST(sleep__not_while_frames_go)
{
	static struct node v[2];
	uint64_t slept, called;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	CHECK(COMES(asleep(&v[0])), "it does not sleep");
	__atomic_store_n(&v[1].page->failed, 1, __ATOMIC_SEQ_CST); /* now it "emits" */
	CHECK(COMES(v[1].page->emitted), "it does not wake");
	calls_pass(&v[0], 2);
	called = calls(&v[0]);
	slept = sleeps(&v[0]);
	CHECK(COMES(calls(&v[0]) >= called + 60), "no calls");
	slept = sleeps(&v[0]) - slept;
	/*
	 * It does not sleep after its calls as if nothing was emitted. It may, if it loses the CPU
	 * just when it checks.
	 */
	CHECK(slept <= 5, "it slept %" PRIu64 " times while frames went out", slept);
	__atomic_store_n(&v[1].page->failed, 0, __ATOMIC_SEQ_CST);
	CHECK(COMES(asleep(&v[0])), "it does not sleep any more");
	bl_server_free(server);
}

/* Woken by the bell; the other node's frame is sent, too. */
RACK_TEST(wake__bell)
{
	static struct node v[2];
	unsigned int k, rung = 0;
	uint64_t n;
	uint32_t w;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	for (k = 0; k < 20; k++) {
		CHECK(COMES(asleep(&v[1])), "round %u: it does not sleep", k);
		usleep(3000);
		n = turns(&v[0]);
		w = woken(&v[1]);
		set_due(&v[1], 1);
		ring_bell(&v[1]);
		CHECK(COMES(turns(&v[0]) > n), "round %u: the bell wakes nobody", k);
		set_due(&v[1], BL_DUE_NEVER);
		/* not that of a thread that was about to sleep and saw by itself what was due */
		rung += WITHIN(woken(&v[1]) > w, 1000);
	}
	/* the clock ended the rest of its sleeps */
	CHECK(rung >= 10, "the bell ended %u sleeps of 20", rung);
	bl_server_free(server);
}

/*
 * It wakes when something is due, and not before: a sleep ends in the 12 ms about that time. The
 * test takes as many rounds as a machine that wakes it late needs; a wrong time would never pass.
 */
RACK_TEST(wake__due)
{
	static struct node v;
	unsigned int k, good = 0, early = 0;

	start(0);
	node_make(&v);
	add(&v, 0, false);
	for (k = 0; k < 300 && good < 7; k++) {
		uint64_t at, n, came;
		uint32_t w;

		CHECK(COMES(asleep(&v)), "it does not sleep");
		w = woken(&v);
		at = t_mono() + 20000000;
		set_due(&v, at);
		ring_bell(&v); /* it checks, and sleeps again until then */
		if (WITHIN(woken(&v) > w && asleep(&v), 1000)) {
			n = turns(&v);
			came = t_mono();
			if (came + 5000000 < at) {
				CHECK(COMES(turns(&v) > n), "it does not wake");
				came = t_mono();
				early += came + 2000000 <= at;
				good += came + 2000000 > at && came < at + 10000000;
			}
		}
		set_due(&v, BL_DUE_NEVER);
	}
	CHECK(good >= 7, "%u of %u times it woke when something was due", good, k);
	CHECK(early <= good, "%u of %u times it woke before something was due", early, k);
	bl_server_free(server);
}

/*
 * Something arrived between the last turn and the sleep: bl_due.next shows it, though the page does
 * not.
 */
RACK_TEST(sleep__looks_once_more)
{
	static struct bl_due due;
	static struct node v;
	uint32_t zero = 0;
	uint64_t slept;

	start(0);
	node_make(&v);
	add(&v, 0, false);
	CHECK(COMES(asleep(&v)), "it does not sleep");
	due.next = 1;
	CHECK(!bpf_map_update_elem(v.fds.due, &zero, &due, BPF_ANY), "%s", strerror(errno));
	ring_bell(&v);
	calls_pass(&v, 3);
	slept = sleeps(&v);
	calls_pass(&v, 100);
	CHECK(sleeps(&v) == slept, "it slept though bl_due.next was past");
	bl_server_free(server);
}

static void *stop_it(void *ctx)
{
	(void)ctx;
	bl_server_free(server);
	return NULL;
}

/*
 * Measures from the request to the last turn. The time of the kernel for removing the object (two
 * RCU grace periods) is not counted, because nothing is sent in it. A machine that stands still
 * delays a stop, but not each of them.
 */
RACK_TEST(stop__within_10_ms)
{
	static struct node v;
	uint64_t began, last, n, seen, best = UINT64_MAX;
	unsigned int k, good[2] = { 0 };
	pthread_t who;

	node_make(&v);
	__atomic_store_n(&v.page->failed, 1, __ATOMIC_SEQ_CST); /* long calls */
	for (k = 0; k < 300 && (good[0] < 8 || good[1] < 8); k++) {
		start(0);
		n = turns(&v);
		add(&v, 0, k % 2);
		CHECK(COMES(turns(&v) > n), "no turns");
		usleep(20000);
		began = last = t_mono();
		seen = turns(&v);
		CHECK(!pthread_create(&who, NULL, stop_it, NULL), "thread");
		while (t_mono() < last + 30000000) {
			n = turns(&v);
			if (n != seen)
				last = t_mono();
			seen = n;
			usleep(100);
		}
		pthread_join(who, NULL);
		good[k % 2] += last - began <= 10000000;
		best = last - began < best ? last - began : best;
	}
	CHECK(good[0] >= 8 && good[1] >= 8,
	      "%u and %u of %u stops took less than 10 ms (the best %" PRIu64 " us)", good[0],
	      good[1], k, best / 1000);
}

static uint64_t cpu_ns(clockid_t of)
{
	struct timespec t;

	CHECK(!clock_gettime(of, &t), "%s", strerror(errno));
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Another thread that wants the same CPU gets its share of what both get, however much that is. */
RACK_TEST(spin__others_get_the_cpu)
{
	static struct node v;
	uint64_t own, both, n;
	cpu_set_t set;

	start(0);
	node_make(&v);
	add(&v, 0, true);
	CHECK(COMES(turns(&v)), "no turns");
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set), "%s", strerror(errno));
	n = turns(&v);
	own = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	both = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - both < 1000000000)
		;
	own = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	CHECK(turns(&v) > n, "the pacer does not spin");
	CHECK(own > 250000000, "the pacer left %" PRIu64 " ms of a second", own / 1000000);
	bl_server_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns__every_node_its_share),
		cmocka_unit_test(sleep__nothing_due),
		cmocka_unit_test(sleep__not_while_frames_go),
		cmocka_unit_test(wake__bell),
		cmocka_unit_test(wake__due),
		cmocka_unit_test(sleep__looks_once_more),
		cmocka_unit_test(stop__within_10_ms),
		cmocka_unit_test(spin__others_get_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
