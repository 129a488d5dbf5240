// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer's thread by itself: it gives every node its turns, sleeps when nothing is due, is woken by a bell and by time, and stops at once. The nodes' programs here are a few
 * instructions that count their turn and, when the test wants it, an emission; what is due is what the test writes.
 */
#include <linux/if_ether.h>
#include <sys/syscall.h>
#include "rack.h"
#include "loader/node_priv.h"

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MAP_VALUE(reg, fd, off) INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_VALUE, 0, fd), INSN(0, 0, 0, 0, off)
#define MAP_PTR(reg, fd)	INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

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
	n->fds.page = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pace_page", 4, sizeof(struct bl_pace_page), 1, &o);
	n->fds.due = bpf_map_create(BPF_MAP_TYPE_ARRAY, "due", 4, sizeof(struct bl_due), 1, NULL);
	n->fds.bell = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bell", 0, 0, 4096, NULL);
	CHECK(n->fds.page >= 0 && n->fds.due >= 0 && n->fds.bell >= 0, "%s", strerror(errno));
	/* turns += 1; emitted += reserved word that the test sets (here: failed) */
	const struct bpf_insn pace[] = {
		MAP_VALUE(BPF_REG_1, n->fds.page, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, offsetof(struct bl_pace_page, turns), 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, 1),
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_2, offsetof(struct bl_pace_page, turns), 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, offsetof(struct bl_pace_page, emitted), 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_1, offsetof(struct bl_pace_page, failed), 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_3, 0, 0),
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_2, offsetof(struct bl_pace_page, emitted), 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_DROP),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	/* as bl_pace_ring() does it: a record that is thrown away */
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
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1);

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

/* Wait until @cond, at most @ms; how long it took in us, or -1. */
#define WAIT_FOR(cond, ms) \
	({ \
		uint64_t from_ = t_mono(), end_ = from_ + (ms) * 1000000ULL; \
		bool ok_; \
		while (!(ok_ = (cond)) && t_mono() < end_) \
			usleep(50); \
		ok_ ? (int64_t)(t_mono() - from_) / 1000 : -1; \
	})

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
	CHECK(WAIT_FOR(turns(&v[0]) && turns(&v[1]) && turns(&v[2]), 2000) >= 0, "no turns");
	for (i = 0; i < 3; i++)
		before[i] = turns(&v[i]);
	usleep(200000);
	for (i = 0; i < 3; i++)
		took[i] = turns(&v[i]) - before[i];
	CHECK(took[0] > 1000 && took[1] > took[0] / 2 && took[2] > took[0] / 2 && took[0] > took[1] / 2, "%" PRIu64 " %" PRIu64 " %" PRIu64, took[0], took[1], took[2]);
	CHECK(!v[0].page->sleeps && v[0].page->calls > 2, "a spinning pacer slept");
	/* the first goes: the last takes its place, and none is left out */
	bl_pacer_remove(&v[0].pace);
	usleep(20000); /* what was under way */
	for (i = 0; i < 3; i++)
		before[i] = turns(&v[i]);
	usleep(100000);
	CHECK(turns(&v[0]) == before[0] && turns(&v[1]) > before[1] && turns(&v[2]) > before[2], "after one went");
	bl_pacer_remove(&v[2].pace);
	bl_pacer_remove(&v[1].pace);
	bl_pacer_remove(&v[1].pace); /* twice is once */
	usleep(20000);
	before[1] = turns(&v[1]);
	usleep(50000);
	CHECK(turns(&v[1]) == before[1], "turns without nodes");
	add(&v[1], 0, true);
	CHECK(WAIT_FOR(turns(&v[1]) > before[1], 1000) >= 0, "a node that came back gets no turns");
	bl_server_free(server);
}

RACK_TEST(sleep__nothing_due)
{
	static struct node v[2];
	uint64_t n, calls;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	CHECK(WAIT_FOR(asleep(&v[0]) && asleep(&v[1]), 2000) >= 0, "it does not sleep");
	usleep(20000); /* turns of the call before */
	calls = v[0].page->calls;
	n = turns(&v[0]);
	usleep(500000);
	/* the longest sleep is 100 ms, and one short call follows */
	CHECK(v[0].page->calls - calls <= 10, "%llu calls in 500 ms of nothing", (unsigned long long)(v[0].page->calls - calls));
	CHECK(turns(&v[0]) - n < 100000, "%" PRIu64 " turns in 500 ms of nothing", turns(&v[0]) - n);
	CHECK(v[0].page->sleeps >= 3 && v[0].page->sleeps == v[1].page->sleeps, "sleeps %llu", (unsigned long long)v[0].page->sleeps);
	CHECK(!v[0].page->woken, "woken without a bell");
	bl_server_free(server);
}

RACK_TEST(sleep__not_while_frames_go)
{
	static struct node v[2];
	uint64_t sleeps;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	CHECK(WAIT_FOR(asleep(&v[0]), 2000) >= 0, "it does not sleep");
	__atomic_store_n(&v[1].page->failed, 1, __ATOMIC_SEQ_CST); /* now it "emits" */
	CHECK(WAIT_FOR(v[1].page->emitted, 2000) >= 0, "it does not wake");
	usleep(20000);
	sleeps = v[0].page->sleeps;
	usleep(200000);
	CHECK(v[0].page->sleeps == sleeps, "it slept while frames went out");
	__atomic_store_n(&v[1].page->failed, 0, __ATOMIC_SEQ_CST);
	CHECK(WAIT_FOR(asleep(&v[0]), 2000) >= 0, "it does not sleep any more");
	bl_server_free(server);
}

/* By the bell; the other node's frame comes too. */
RACK_TEST(wake__bell)
{
	static struct node v[2];
	int64_t us, best = 1000000;
	unsigned int k;
	uint64_t n, woken;

	start(0);
	node_make(&v[0]);
	node_make(&v[1]);
	add(&v[0], 0, false);
	add(&v[1], 0, false);
	for (k = 0; k < 20; k++) {
		CHECK(WAIT_FOR(asleep(&v[1]), 2000) >= 0, "round %u: it does not sleep", k);
		usleep(3000);
		n = turns(&v[0]);
		woken = v[1].page->woken;
		set_due(&v[1], 1);
		ring_bell(&v[1]);
		us = WAIT_FOR(turns(&v[0]) > n, 1000);
		CHECK(us >= 0, "round %u: the bell wakes nobody", k);
		best = us < best ? us : best;
		usleep(1000);
		set_due(&v[1], BL_DUE_NEVER);
		CHECK(WAIT_FOR(v[1].page->woken == woken + 1, 1000) >= 0 || v[1].page->woken > woken, "round %u: %u wakings counted", k, v[1].page->woken);
	}
	CHECK(best < 20000, "woken after %" PRId64 " us at best: that was the clock, not the bell", best);
	bl_server_free(server);
}

RACK_TEST(wake__due)
{
	static struct node v;
	unsigned int k, good = 0;

	start(0);
	node_make(&v);
	add(&v, 0, false);
	for (k = 0; k < 10; k++) {
		uint64_t at, n;

		CHECK(WAIT_FOR(asleep(&v), 2000) >= 0, "it does not sleep");
		at = t_mono() + 20000000;
		set_due(&v, at);
		ring_bell(&v); /* it looks and sleeps again, till then */
		CHECK(WAIT_FOR(asleep(&v), 2000) >= 0, "it does not sleep again");
		usleep(2000);
		n = turns(&v);
		if (t_mono() + 5000000 < at && WAIT_FOR(turns(&v) > n, 1000) >= 0 && t_mono() + 2000000 > at && t_mono() < at + 10000000)
			good++;
		set_due(&v, BL_DUE_NEVER);
	}
	CHECK(good >= 7, "%u of 10 times it woke when something was due", good);
	bl_server_free(server);
}

/* Something came between the last turn and the sleep: bl_due.next says so, though the page does not. */
RACK_TEST(sleep__looks_once_more)
{
	static struct bl_due due;
	static struct node v;
	uint32_t zero = 0;
	uint64_t sleeps;

	start(0);
	node_make(&v);
	add(&v, 0, false);
	CHECK(WAIT_FOR(asleep(&v), 2000) >= 0, "it does not sleep");
	due.next = 1;
	CHECK(!bpf_map_update_elem(v.fds.due, &zero, &due, BPF_ANY), "%s", strerror(errno));
	ring_bell(&v);
	usleep(20000);
	sleeps = v.page->sleeps;
	usleep(100000);
	CHECK(v.page->sleeps == sleeps, "it slept though bl_due.next was past");
	bl_server_free(server);
}

static void *stop_it(void *ctx)
{
	(void)ctx;
	bl_server_free(server);
	return NULL;
}

/* From the request to the last turn. What the kernel takes for removing the object (two RCU grace periods) is not counted: nothing is sent in it. */
RACK_TEST(stop__within_10_ms)
{
	static struct node v;
	uint64_t began, last, n, seen, worst = 0;
	unsigned int k, late = 0;
	pthread_t who;

	node_make(&v);
	__atomic_store_n(&v.page->failed, 1, __ATOMIC_SEQ_CST); /* long calls */
	for (k = 0; k < 20; k++) {
		start(0);
		add(&v, 0, k % 2);
		usleep(30000);
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
		late += last - began > 10000000;
		worst = last - began > worst ? last - began : worst;
	}
	/* a virtual machine's pause is not ours */
	CHECK(late <= 1, "%u of 20 stops took more than 10 ms (the worst %" PRIu64 " us)", late, worst / 1000);
}

/* Another thread that wants the same CPU gets its share. */
RACK_TEST(spin__others_get_the_cpu)
{
	static struct node v;
	uint64_t end, last, now, gap = 0, loops = 0;
	cpu_set_t set;

	start(0);
	node_make(&v);
	add(&v, 0, true);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set), "%s", strerror(errno));
	usleep(50000);
	for (last = t_mono(), end = last + 500000000; last < end; last = now, loops++) {
		now = t_mono();
		gap = now - last > gap ? now - last : gap;
	}
	CHECK(gap < 100000000, "the pacer kept the CPU for %" PRIu64 " us", gap / 1000);
	bl_server_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns__every_node_its_share), cmocka_unit_test(sleep__nothing_due), cmocka_unit_test(sleep__not_while_frames_go),
		cmocka_unit_test(wake__bell), cmocka_unit_test(wake__due), cmocka_unit_test(sleep__looks_once_more), cmocka_unit_test(stop__within_10_ms),
		cmocka_unit_test(spin__others_get_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
