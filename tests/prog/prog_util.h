/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the program tests: a private network namespace with real veth ports, a clock that
 * stands still where the test puts it, running a program once, and a check that the counters moved
 * by exactly what a test names.
 *
 * Example: run_xdp() runs bl_switch_xdp on a frame from port 0, and counts_moved(counts, before, 1,
 * WANT({ 0, BL_R_BEACON })) fails unless exactly that counter rose by 1.
 *
 * Nothing outlives the process: the namespace is private, and maps and programs are not pinned.
 */
#ifndef BARLINE_TEST_PROG_UTIL_H
#define BARLINE_TEST_PROG_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include "maps/hook_abi.h"
#include "tests/prog/frames.h"
#include "core/clock_core.h"
#include "loader/node.h"
#include "pass.skel.h"

/* true in a test that is linked with test_plain_*.c: the object for plain nodes is loaded */
__attribute__((weak)) const bool with_plain = false;

#define NPORTS 4 /* veth ports v0 to v3 with peers p0 to p3 */
#define BOUND  50000ULL
/* Bus time at which most tests begin: 6000 wraps of 48 bits, about now. */
#define T0 ((6000ULL << BL_TS_BITS) + 0x123456789abcULL)

/*
 * ---- which program can return which reason ----
 *
 * This is the only list. Each test binary must have seen all reasons of its program.
 */

/*
 * Bits of returned_by[], by the programs that a test binary runs:
 *
 *   BY_SWITCH, BY_REGS, BY_L3      bl_switch_xdp: table and parser, registers over time, routes
 *   BY_DEVMAP                      bl_switch_devmap
 *   BY_HOST, BY_EGRESS, BY_LOCAL   bl_host_xdp, bl_host_egress, bl_host_local
 *   BY_HOLD, BY_HPACE              bl_hold_xdp, bl_host_pace
 *   BY_PORT                        a switch's programs with metered ports, and bl_port_pace
 *   BY_RSV                         a switch's programs where reservations are made
 *   BY_PL2                         a host's programs where the host reserves
 *   BY_BEAT                        bl_host_pace where it carries the beacons, and bl_host_lift
 *   BY_TOKEN                       a switch's programs where tokens are limited
 *   BY_TOP, BY_TOP_RX, BY_TOP_LOSS a host's programs under policy top: sending, receiving, losses
 *   BY_COMMIT, BY_RECALL           a host's programs with reliable messages, and with RECALLs
 *   BY_LEFT                        the same for endpoints that left in order
 *   BY_FENCE                       bl_fence
 *   BY_BARRED                      a switch's programs where inputs are barred
 *   BY_GUARD                       bl_switch_egress
 *   BY_SOURCE                      a switch's programs with the source guard, quotas and lags
 *   BY_NUMBERS                     a host's programs where numbers of destinations are freed
 *   BY_AUTH                        the programs of both roles where links are authenticated
 *   BY_FRAGS                       a host's programs for frames of several buffers
 */
enum {
	BY_SWITCH = 1,
	BY_REGS = 2,
	BY_L3 = 4,
	BY_DEVMAP = 8,
	BY_HOST = 16,
	BY_EGRESS = 32,
	BY_LOCAL = 64,
	BY_HOLD = 128,
	BY_HPACE = 256,
	BY_PORT = 512,
	BY_RSV = 1024,
	BY_PL2 = 2048,
	BY_BEAT = 4096,
	BY_TOKEN = 8192,
	BY_TOP = 16384,
	BY_TOP_RX = 32768,
	BY_TOP_LOSS = 65536,
	BY_COMMIT = 131072,
	BY_FENCE = 262144,
	BY_BARRED = 524288,
	BY_GUARD = 1048576,
	BY_RECALL = 2097152,
	BY_LEFT = 4194304,
	BY_NUMBERS = 8388608,
	BY_SOURCE = 16777216,
	BY_AUTH = 33554432,
	BY_FRAGS = 67108864
};
/* One program in three binaries: table and parser, registers over time, routes. */
#define BY_SW    (BY_SWITCH | BY_REGS | BY_L3)
#define BY_TC    (BY_EGRESS | BY_LOCAL)
#define BY_PARSE (BY_SWITCH | BY_HOST | BY_TC)

MAYBE_UNUSED static const __u32 returned_by[BL_R_COUNT] = {
	[BL_R_NONE] = 0, /* returning it is a defect */
	[BL_R_NOT_OURS] = BY_PARSE | BY_HOLD | BY_PORT | BY_L3,
	[BL_R_FORWARDED] = BY_SW,
	[BL_R_BEACON] = BY_SWITCH | BY_REGS | BY_HOST,
	[BL_R_RELAYED] = BY_SWITCH | BY_REGS,
	[BL_R_STORED] = BY_HOST | BY_LOCAL,
	[BL_R_SENT] = BY_EGRESS,
	[BL_R_BEACON_SENT] = BY_EGRESS,
	[BL_R_TO_KERNEL] = BY_L3,
	[BL_R_CLONE_SENT] = BY_DEVMAP,
	[BL_R_CLONE_STALE] = BY_DEVMAP,
	[BL_R_SHORT] = BY_PARSE | BY_DEVMAP,
	[BL_R_BAD_LENGTH] = BY_PARSE,
	[BL_R_BAD_IHL] = BY_PARSE,
	[BL_R_IP_OPTIONS] = BY_PARSE,
	[BL_R_FRAGMENT] = BY_PARSE,
	[BL_R_DOUBLE_TAG] = BY_PARSE,
	[BL_R_BAD_VERSION] = BY_PARSE,
	[BL_R_BAD_OPCODE] = BY_PARSE,
	[BL_R_BAD_FLAGS] = BY_PARSE,
	[BL_R_TTL] = BY_L3,
	[BL_R_LOOPED] = BY_SWITCH | BY_L3 | BY_HOST,
	[BL_R_BARRIER_AHEAD] = BY_SWITCH | BY_HOST,
	[BL_R_TS_AHEAD] = BY_SWITCH | BY_HOST | BY_LOCAL,
	[BL_R_TAI_MISMATCH] = BY_SWITCH | BY_HOST,
	[BL_R_CLOCK_VOID] = BY_PARSE,
	[BL_R_UNKNOWN_PORT] = BY_SWITCH | BY_L3 | BY_DEVMAP,
	[BL_R_NO_ROUTE] = BY_SWITCH | BY_L3,
	/* Not bl_host_xdp: its linear buffer cannot hold such a body while pages have 4 KiB. */
	[BL_R_TOO_BIG] = BY_SWITCH | BY_L3 | BY_FRAGS,
	[BL_R_NO_ENDPOINT] = BY_HOST | BY_LOCAL,
	[BL_R_RING_FULL] = BY_HOST | BY_LOCAL,
	[BL_R_NOT_ENDPOINT] = BY_TC,
	[BL_R_REDIRECT_FAILED] = BY_SWITCH | BY_HPACE | BY_PORT | BY_BEAT,
	[BL_R_FORGED_BEACON] = BY_TC,
	[BL_R_PROMISE_BROKEN] = BY_REGS | BY_HOST,
	[BL_R_WRONG_CPU] = BY_REGS,
	[BL_R_BARRIER_OLD] = BY_SWITCH | BY_REGS | BY_HOST,
	[BL_R_EXCLUDED] = BY_REGS | BY_HOST,
	[BL_R_JOINED] = BY_SWITCH | BY_REGS | BY_HOST,
	[BL_R_STEERED] = BY_REGS | BY_DEVMAP,
	[BL_R_HELD] = BY_HOLD,
	[BL_R_HOLD_FULL] = BY_HOLD,
	[BL_R_NO_SLOT] = BY_HOLD | BY_PORT,
	[BL_R_HOLD_DESTS] = BY_HOLD,
	[BL_R_HELD_LONG] = BY_NUMBERS,
	[BL_R_FOREIGN_SOURCE] = BY_HOST | BY_TC,
	[BL_R_SEND_VOID] = BY_TC,
	[BL_R_PROMISE_ABSURD] = BY_EGRESS,
	[BL_R_FRAME_SIZE] = BY_HOLD | BY_PORT,
	[BL_R_TO_APP] = BY_HOLD,
	[BL_R_QUEUED] = BY_PORT,
	[BL_R_QUEUE_FULL] = BY_PORT,
	[BL_R_PASSED_ON] = BY_PORT | BY_L3,
	[BL_R_ECN_MARKED] = BY_HOLD | BY_PORT,
	[BL_R_RSV_GRANTED] = BY_RSV,
	[BL_R_RSV_REPEATED] = BY_RSV,
	[BL_R_RSV_REFUSED] = BY_RSV,
	[BL_R_RSV_BAD] = BY_RSV,
	[BL_R_RSV_OFF] = BY_RSV,
	[BL_R_GRT] = BY_PL2,
	[BL_R_GRT_COPY] = BY_PL2,
	[BL_R_GRT_OFF] = BY_PL2,
	[BL_R_POLICY_APART] = BY_RSV,
	[BL_R_GRT_BAD] = BY_PL2,
	[BL_R_RELEASED] = BY_RSV,
	[BL_R_RELEASE_BAD] = BY_RSV,
	[BL_R_UNRESERVED] = BY_RSV,
	[BL_R_EARLY_REFUSED] = BY_RSV,
	[BL_R_RSV_LAPSED] = BY_RSV,
	[BL_R_PATH_TAKEN] = BY_L3,
	[BL_R_PATH_LOST] = BY_L3,
	[BL_R_TOKEN_PASSED] = BY_TOKEN,
	[BL_R_TOKEN_LIMIT] = BY_TOKEN,
	[BL_R_TOKEN_EXPIRED] = BY_TOKEN | BY_TOP,
	[BL_R_TOKEN_CLASS] = BY_TOKEN | BY_TOP,
	[BL_R_TOKEN_FLOOD] = BY_TOKEN,
	[BL_R_PACED] = BY_HPACE | BY_PORT,
	[BL_R_BEACON_PACED] = BY_BEAT,
	[BL_R_TOKEN_USED] = BY_TOP,
	[BL_R_TOKEN_PACED] = BY_TOP,
	[BL_R_TOKEN_WASTED] = BY_TOP,
	[BL_R_TOKEN_STOP] = BY_TOP,
	[BL_R_TOKEN_UNKNOWN] = BY_TOP,
	[BL_R_TOKEN_FORGED] = BY_TOP,
	[BL_R_TOKEN_REPLAYED] = BY_TOP,
	[BL_R_TOKEN_AHEAD] = BY_TOP,
	[BL_R_SIGNAL] = BY_TOP_RX,
	[BL_R_SIGNAL_BAD] = BY_TOP_RX,
	[BL_R_FLOWS_FULL] = BY_TOP_RX,
	[BL_R_ECHO_BAD] = BY_TOP_RX,
	[BL_R_NO_TOKEN] = BY_TOP,
	[BL_R_TOKEN_RESENT] = BY_TOP_LOSS,
	[BL_R_TOKEN_BLOCKED] = BY_TOP_LOSS,
	[BL_R_LOSS] = BY_TOP_LOSS,
	[BL_R_LOSS_BAD] = BY_TOP_LOSS,
	[BL_R_LOSS_GONE] = BY_TOP_LOSS,
	[BL_R_NOT_KEPT] = BY_TOP_LOSS,
	[BL_R_DATA_REPEATED] = BY_TOP_LOSS,
	[BL_R_DATA_LOST] = BY_TOP_LOSS,
	[BL_R_PREPARED] = BY_COMMIT,
	[BL_R_ACKED] = BY_COMMIT,
	[BL_R_ACK_REPEATED] = BY_COMMIT,
	[BL_R_ACK_UNKNOWN] = BY_COMMIT,
	[BL_R_COMMITTED] = BY_COMMIT,
	[BL_R_WRONG_LIFE] = BY_COMMIT | BY_RECALL,
	[BL_R_SENT_ACK] = BY_COMMIT | BY_RECALL,
	[BL_R_PREP_LATE] = BY_COMMIT,
	[BL_R_NOT_IN] = BY_BARRED,
	[BL_R_EPOCH_OLD] = BY_FENCE,
	[BL_R_BY_CONTROLLER] = BY_COMMIT | BY_RECALL,
	[BL_R_BYPASSED] = BY_GUARD,
	[BL_R_HOME_FULL] = BY_REGS,
	[BL_R_RECALLED] = BY_RECALL,
	[BL_R_UNSWITCHED] = BY_SWITCH | BY_HOST,
	[BL_R_LEFT] = BY_LEFT | BY_RECALL,
	[BL_R_SPOOFED] = BY_SOURCE,
	[BL_R_LANES_REFUSED] = BY_SOURCE,
	[BL_R_CONTROL_FLOOD] = BY_SOURCE,
	[BL_R_LAGGING] = BY_SOURCE,
	[BL_R_EPOCH_FAR] = BY_FENCE,
	[BL_R_AUTH_MISSING] = BY_AUTH,
	[BL_R_AUTH_BAD] = BY_AUTH,
	[BL_R_AUTH_REPLAYED] = BY_AUTH,
	[BL_R_AUTH_FLOOD] = BY_AUTH,
	[BL_R_AUTH_EPOCH] = BY_AUTH,
	[BL_R_CHAINED] = BY_HOST | BY_SWITCH,
	[BL_R_SEND_LATE] = BY_EGRESS,
};

#define REASON_NAME(sym, name, kind, text) [BL_R_##sym] = name,
static const char *const reason_name[BL_R_COUNT] = { BL_REASONS(REASON_NAME) };
#define REASON_KIND(sym, name, kind, text) [BL_R_##sym] = BL_KIND_##kind,
static const __u8 reason_kind[BL_R_COUNT] = { BL_REASONS(REASON_KIND) };

static bool reason_seen[BL_R_COUNT];
static const char *doing = ""; /* named in failure messages */

/*
 * Fails unless this binary has seen every reason that a program in @must can return, and no reason
 * that no program in @may can return.
 */
MAYBE_UNUSED static void all_reasons_seen(__u32 must, __u32 may)
{
	__u32 r;

	for (r = 0; r < BL_R_COUNT; r++) {
		if (returned_by[r] & must && !reason_seen[r])
			fail_msg("no test made the program count %s", reason_name[r]);
		if (!(returned_by[r] & may) && reason_seen[r])
			fail_msg("returned_by[] says that this program never counts %s, but it did",
				 reason_name[r]);
	}
}

/* ---- the namespace ---- */

/** struct net - the namespace of this process. */
struct net {
	__u32 ifindex[NPORTS]; /* v0 to v3 */
	__u32 peer[NPORTS];    /* p0 to p3 */
	int cpu;               /* the CPU that the process is pinned to */
	struct bl_pass *pass;  /* the program on all veth ends */
};

static struct net net;

/* Runs a shell command; fails the test if the command fails. */
MAYBE_UNUSED static void sh(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd))
		fail_msg("this command failed: %s", cmd);
}

/* Writes @value to the sysctl at @path. */
MAYBE_UNUSED static void set_sysctl(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail_msg("cannot write %s to %s: %s", value, path, strerror(errno));
	close(fd);
}

/*
 * Attaches bl_pass to interface @name and returns its index. A veth registers its receive queues
 * with XDP only while it carries an XDP program, and test_run needs one of those queues.
 */
static __u32 pass_on(const char *name)
{
	__u32 ifindex = if_nametoindex(name);
	int rc = bpf_xdp_attach((int)ifindex, bpf_program__fd(net.pass->progs.bl_pass),
				XDP_FLAGS_DRV_MODE, NULL);

	if (rc)
		fail_msg("cannot attach bl_pass to %s: %s", name, strerror(-rc));
	return ifindex;
}

/*
 * Makes the namespace and the ports, and pins the process to its CPU. @ipv6: leave IPv6 on; without
 * it the links carry nothing but what a test sends.
 */
MAYBE_UNUSED static void net_setup(bool ipv6)
{
	cpu_set_t one;
	char name[8];
	int i;

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	net.cpu = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(net.cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	if (unshare(CLONE_NEWNET))
		fail_msg("cannot make a network namespace (%s): run the program tests as root",
			 strerror(errno));
	if (!ipv6)
		set_sysctl("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	sh("ip link set lo up");
	net.pass = bl_pass__open_and_load();
	assert_non_null(net.pass);
	for (i = 0; i < NPORTS; i++) {
		sh("ip link add v%d address 02:00:00:00:ff:%02x type veth peer name p%d address "
		   "02:00:00:00:00:%02x",
		   i, i, i, i);
		snprintf(name, sizeof(name), "v%d", i);
		net.ifindex[i] = pass_on(name);
		snprintf(name, sizeof(name), "p%d", i);
		net.peer[i] = pass_on(name);
		sh("ip link set v%d up && ip link set p%d up", i, i);
	}
}

/* Group setup of most binaries. */
MAYBE_UNUSED static int net_up(void **state)
{
	(void)state;
	net_setup(false);
	return 0;
}

/* ---- maps ---- */

/* Writes entry @key of @map, or fails the test. */
MAYBE_UNUSED static void map_put(const struct bpf_map *map, __u32 key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), &key, value, BPF_ANY))
		fail_msg("cannot write entry %u of %s: %s", key, bpf_map__name(map),
			 strerror(errno));
}

/* Reads entry @key of @map, or fails the test. */
MAYBE_UNUSED static void map_get(const struct bpf_map *map, __u32 key, void *value)
{
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, value))
		fail_msg("cannot read entry %u of %s: %s", key, bpf_map__name(map),
			 strerror(errno));
}

/* Returns CLOCK_MONOTONIC, ns. */
static inline __u64 mono_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000ULL + (__u64)t.tv_nsec;
}

/*
 * Bus time that clock_at() has set, ns. It stands still: a slope of 0 (rate -1 in units of 2^-30)
 * is exact in bl_seg_at() for the first 2^33 ns (8.6 s) after the start of the piece, which is now,
 * and a test runs its frame at once.
 */
static __u64 bus_now;

static const struct bpf_map *clock_map; /* the clock record that clock_at() has set; NULL: none */

/* What neighbours have proven against the clock is in its bound, and not in what beacons say. */
#define PROVEN 17000ULL
#define SAID   (BOUND - PROVEN)

/* Makes bus time stand still at @bus, ns. */
MAYBE_UNUSED static void clock_at(const struct bpf_map *clock, __u64 bus)
{
	struct bl_clock_seg s = { .mono_ns = mono_now(), .bus_ns = bus, .rate = -(1 << 30) };
	struct bl_clock c = { .flags = BL_CLOCK_VALID,
			      .seg = { s, s },
			      .as_of_ns = s.mono_ns,
			      .void_after_ns = ~0ULL,
			      .bound_ns = BOUND,
			      .proven_ns = PROVEN };

	map_put(clock, 0, &c);
	bus_now = bus;
	clock_map = clock;
}

#define CLOCK_STANDS_NS 4000000000ULL

/*
 * Moves the start of the piece that stands still to now, because it holds for 2^33 ns only and a
 * case can take longer on a slow machine. Called before a program is run.
 */
MAYBE_UNUSED static void clock_stands(void)
{
	__u64 now = mono_now();
	struct bl_clock c;

	if (!clock_map)
		return;
	map_get(clock_map, 0, &c);
	if (c.seg[1].rate != -(1 << 30) || now - c.seg[1].mono_ns < CLOCK_STANDS_NS)
		return;
	c.seg[0].mono_ns = c.seg[1].mono_ns = now;
	map_put(clock_map, 0, &c);
}

/* Makes the clock record void from now on. */
MAYBE_UNUSED static void clock_void(const struct bpf_map *clock)
{
	struct bl_clock c;

	map_get(clock, 0, &c);
	c.void_after_ns = mono_now();
	map_put(clock, 0, &c);
}

/* ---- counters ---- */

#define COUNT_KEYS_MAX BL_SW_COUNTS

/** struct counted - a counter that must have moved. */
struct counted {
	__u32 key; /* port of a switch, or BL_HC_* */
	enum bl_reason reason;
	__u64 n;     /* by how much; 0: by 1 */
	__u64 bytes; /* of them; 0: as long as the frames that were given to the programs */
};
#define WANT(...)                                \
	(const struct counted[]){ __VA_ARGS__ }, \
		sizeof((const struct counted[]){ __VA_ARGS__ }) / sizeof(struct counted)

/* places that have counters: frames and bytes */
static __u32 counts_places(const struct bpf_map *map)
{
	return bpf_map__value_size(map) / (2 * (__u32)sizeof(__u64));
}

/*
 * The length of the frames that programs were run on since the counters were looked at; 0: there
 * was none, and LENGTHS_DIFFER: they had not all the same.
 */
static __u32 ran_len;
#define LENGTHS_DIFFER (~0U)

/* A program was run on a frame of @len bytes, or has made one of that length from another. */
static void ran_on(__u32 len)
{
	ran_len = !ran_len || ran_len == len ? len : LENGTHS_DIFFER;
}

/* Reads all counters, summed over the CPUs. */
MAYBE_UNUSED static void counts_take(const struct bpf_map *map, struct bl_counts *sum)
{
	assert_int_equal(bl_counts_read(bpf_map__fd(map), sum, counts_places(map)), 0);
	ran_len = 0;
}

/* Adds what @want says to @before, whose counters are at @now. */
static void count_wanted(const struct counted *want, struct bl_counts *before,
			 const struct bl_counts *now)
{
	const enum bl_reason r = want->reason;
	const __u64 n = want->n ? want->n : 1;
	uint64_t *bytes = &before[want->key].bytes[r];

	before[want->key].n[r] += n;
	if (want->bytes)
		*bytes += want->bytes;
	else if (BL_BEACON_REASON(r))
		*bytes += n * BL_BEACON_LEN;
	else if (reason_kind[r] != BL_KIND_NOTE && ran_len == LENGTHS_DIFFER)
		*bytes = now[want->key].bytes[r];
	else if (reason_kind[r] != BL_KIND_NOTE)
		*bytes += n * ran_len;
}

/*
 * Fails unless the counters have moved by exactly @want since @before, where each of the @frames
 * frames ends for exactly one OK or DROP reason. The bytes are compared, too, except where frames
 * of several lengths were run and @want does not say them. Then updates @before.
 */
MAYBE_UNUSED static void counts_moved(const struct bpf_map *map, struct bl_counts *before,
				      __u64 frames, const struct counted *want, size_t n)
{
	static struct bl_counts now[COUNT_KEYS_MAX];
	__u32 keys = counts_places(map), len = ran_len, k, r;
	__u64 ends = 0;
	size_t i;

	counts_take(map, now);
	ran_len = len;
	for (i = 0; i < n; i++) {
		count_wanted(&want[i], before, now);
		reason_seen[want[i].reason] = true;
		if (reason_kind[want[i].reason] != BL_KIND_NOTE)
			ends += want[i].n ? want[i].n : 1;
	}
	ran_len = 0;
	for (k = 0; k < keys; k++)
		for (r = 0; r < BL_REASON_MAX; r++) {
			if (now[k].n[r] != before[k].n[r])
				fail_msg("%s: counter %s of key %u: %llu, want %llu", doing,
					 r < BL_R_COUNT ? reason_name[r] : "beyond the last", k,
					 (unsigned long long)now[k].n[r],
					 (unsigned long long)before[k].n[r]);
			if (now[k].bytes[r] != before[k].bytes[r])
				fail_msg("%s: bytes of counter %s of key %u: %llu, want %llu",
					 doing, r < BL_R_COUNT ? reason_name[r] : "beyond the last",
					 k, (unsigned long long)now[k].bytes[r],
					 (unsigned long long)before[k].bytes[r]);
		}
	assert_int_equal(ends, frames);
	memcpy(before, now, keys * sizeof(*now));
}

/* ---- running ---- */

/*
 * Runs an XDP program once on frame @in, which arrives on interface @ifindex. Returns the verdict;
 * @out is the frame after the program.
 */
MAYBE_UNUSED static int run_xdp(const struct bpf_program *prog, __u32 ifindex,
				const struct frame *in, struct frame *out)
{
	struct xdp_md ctx = { .data_end = in->n, .ingress_ifindex = ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out->p, .data_size_out = sizeof(out->p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int rc;

	clock_stands();
	rc = bpf_prog_test_run_opts(bpf_program__fd(prog), &o);
	if (rc)
		fail_msg("cannot run %s on a frame of %u bytes: %s", bpf_program__name(prog), in->n,
			 strerror(-rc));
	out->n = o.data_size_out;
	ran_on(in->n);
	return (int)o.retval;
}

/*
 * Enters a program that returns XDP_TX for all frames as the chained program of @slot. @hooks: its
 * entry is filled, too.
 */
MAYBE_UNUSED static void chain_to(const struct bpf_map *progs, const struct bpf_map *hooks,
				  __u32 slot)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP);
	const struct bpf_insn tx[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_TX },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bl_hook hook = { .next_id = 1 };
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "chained", "GPL", tx, 2, &o);

	assert_true(fd >= 0);
	map_put(progs, slot, &fd);
	map_put(hooks, slot, &hook);
	close(fd);
}

/* Empties the entry of @slot; its hook names a program still. */
MAYBE_UNUSED static void unchain(const struct bpf_map *progs, __u32 slot)
{
	assert_false(bpf_map_delete_elem(bpf_map__fd(progs), &slot));
}

/* Fails unless both frames have the same bytes. */
MAYBE_UNUSED static void same_frame(const struct frame *got, const struct frame *want)
{
	__u32 i;

	for (i = 0; i < got->n && i < want->n; i++)
		if (got->p[i] != want->p[i])
			fail_msg("%s: byte %u of the frame is %02x, want %02x", doing, i, got->p[i],
				 want->p[i]);
	assert_int_equal(got->n, want->n);
}

/* ---- frames that every parser must treat alike: tables for the parse tests of all hooks ---- */

/** struct odd - a frame that is not barline's, or not a correct one. */
struct odd {
	const char *what;   /* for failure messages */
	enum bl_reason why; /* the reason that the frame must end for */
	/* Builds @f; @d is a good frame to start from. */
	void (*make)(struct frame *f, struct desc *d);
};

#define ODD(fn, code)                                         \
	static void odd_##fn(struct frame *f, struct desc *d) \
	{                                                     \
		code                                          \
	}
#define BYTE(off) f->p[off]

ODD(arp, build(f, d); BYTE(12) = 0x08; BYTE(13) = 0x06;)
ODD(tcp, build(f, d); BYTE(ip_off(d) + (d->v6 ? 6 : 9)) = 6;)
ODD(port_below, d->dport = BL_PORT_BASE - 1; build(f, d);)
ODD(port_above, d->dport = (__u16)(BL_PORT_BASE + BL_PORT_COUNT); build(f, d);)
ODD(later_fragment, build(f, d); BYTE(ip_off(d) + 6) = 0; BYTE(ip_off(d) + 7) = 1;)
ODD(options_not_ours, d->dport = 53; build(f, d); BYTE(ip_off(d)) = 0x46;)
ODD(double_tag_not_ours, d->tags = 2; d->dport = 53; build(f, d);)
ODD(later_fragment6, d->body = 100; build(f, d); BYTE(ip_off(d) + 6) = 44;
    BYTE(ip_off(d) + 40) = BL_UDP; BYTE(ip_off(d) + 43) = 8;)
ODD(empty_of_l3, build(f, d); f->n = ip_off(d) + (d->v6 ? 40 : 20) + 4;)

ODD(cut_in_header, build(f, d); f->n = hdr_off(d) + 23;
    BYTE(ip_off(d) + (d->v6 ? 5 : 3)) = (__u8)((d->v6 ? 0 : 20) + 8 + 23);)
ODD(udp_short, build(f, d); BYTE(hdr_off(d) - 4) = 0; BYTE(hdr_off(d) - 3) = 31;)
ODD(udp_beyond_ip, build(f, d); BYTE(hdr_off(d) - 3)++;)
ODD(ip_beyond_frame, build(f, d); f->n--;)
ODD(ip_below_header, build(f, d); BYTE(ip_off(d) + 2) = 0; BYTE(ip_off(d) + 3) = 19;)
ODD(ihl_4, build(f, d); BYTE(ip_off(d)) = 0x44;)
ODD(options, build(f, d); BYTE(ip_off(d)) = 0x46;
    memcpy(f->p + ip_off(d) + 24, f->p + ip_off(d) + 20, 8);)
ODD(first_fragment, build(f, d); BYTE(ip_off(d) + 6) = 0x20;)
ODD(first_fragment6, build(f, d); BYTE(ip_off(d) + 6) = 44;
    memmove(f->p + ip_off(d) + 48, f->p + ip_off(d) + 40, 8); memset(f->p + ip_off(d) + 40, 0, 8);
    BYTE(ip_off(d) + 40) = BL_UDP; BYTE(ip_off(d) + 43) = 1;)
ODD(double_tag, d->tags = 2; build(f, d);)
ODD(version_0, d->op_byte = BL_OP_DATA; build(f, d);)
ODD(version_2, d->op_byte = 2 << 5 | BL_OP_DATA; build(f, d);)
ODD(opcode_0, d->op_byte = BL_OPCODE_BYTE(0); build(f, d);)
ODD(opcode_limit, d->op_byte = BL_OPCODE_BYTE(BL_OP_LIMIT); build(f, d);)
ODD(beacon_in_udp, d->op_byte = BL_OPCODE_BYTE(BL_OP_BEACON); build(f, d);)
ODD(data_in_link, d->op_byte = BL_OPCODE_BYTE(BL_OP_DATA); build(f, d);)
ODD(lane_7_of_1, d->flag_byte = BL_F_LANES(1) | 7; build(f, d);)
ODD(lane_1_of_1, d->lane = 1; build(f, d);)
ODD(lane_7_of_7, d->lane = 7; d->lanes = 7; build(f, d);)
ODD(beacon_cut, build(f, d); f->n--;)

/* clang-format off */
#define ODD_ROW(fn, why) { #fn, why, odd_##fn }
/* clang-format on */
/* These start from a UDP frame of either family. */
MAYBE_UNUSED static const struct odd odd_udp[] = {
	ODD_ROW(arp, BL_R_NOT_OURS),
	ODD_ROW(tcp, BL_R_NOT_OURS),
	ODD_ROW(port_below, BL_R_NOT_OURS),
	ODD_ROW(port_above, BL_R_NOT_OURS),
	ODD_ROW(double_tag_not_ours, BL_R_NOT_OURS),
	ODD_ROW(empty_of_l3, BL_R_NOT_OURS),
	ODD_ROW(cut_in_header, BL_R_SHORT),
	ODD_ROW(udp_short, BL_R_BAD_LENGTH),
	ODD_ROW(udp_beyond_ip, BL_R_BAD_LENGTH),
	ODD_ROW(ip_beyond_frame, BL_R_BAD_LENGTH),
	ODD_ROW(double_tag, BL_R_DOUBLE_TAG),
	ODD_ROW(version_0, BL_R_BAD_VERSION),
	ODD_ROW(version_2, BL_R_BAD_VERSION),
	ODD_ROW(opcode_0, BL_R_BAD_OPCODE),
	ODD_ROW(opcode_limit, BL_R_BAD_OPCODE),
	ODD_ROW(beacon_in_udp, BL_R_BAD_OPCODE),
	ODD_ROW(lane_7_of_1, BL_R_BAD_FLAGS),
	ODD_ROW(lane_1_of_1, BL_R_BAD_FLAGS),
	ODD_ROW(lane_7_of_7, BL_R_BAD_FLAGS),
};
MAYBE_UNUSED static const struct odd odd_ip4[] = {
	ODD_ROW(later_fragment, BL_R_NOT_OURS),    ODD_ROW(options_not_ours, BL_R_NOT_OURS),
	ODD_ROW(ip_below_header, BL_R_BAD_LENGTH), ODD_ROW(ihl_4, BL_R_BAD_IHL),
	ODD_ROW(options, BL_R_IP_OPTIONS),         ODD_ROW(first_fragment, BL_R_FRAGMENT),
};
MAYBE_UNUSED static const struct odd odd_ip6[] = {
	ODD_ROW(later_fragment6, BL_R_NOT_OURS),
	ODD_ROW(first_fragment6, BL_R_FRAGMENT),
};
MAYBE_UNUSED static const struct odd odd_beacon[] = {
	ODD_ROW(beacon_cut, BL_R_SHORT),      ODD_ROW(double_tag, BL_R_DOUBLE_TAG),
	ODD_ROW(version_0, BL_R_BAD_VERSION), ODD_ROW(version_2, BL_R_BAD_VERSION),
	ODD_ROW(opcode_0, BL_R_BAD_OPCODE),   ODD_ROW(data_in_link, BL_R_BAD_OPCODE),
	ODD_ROW(lane_7_of_1, BL_R_BAD_FLAGS), ODD_ROW(lane_1_of_1, BL_R_BAD_FLAGS),
};

typedef void (*odd_check)(const struct frame *f, enum bl_reason why, void *arg);

static inline void each_odd_of(const struct odd *rows, size_t n, const struct desc *good,
			       odd_check check, void *arg)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct desc d = *good;
		struct frame f;

		rows[i].make(&f, &d);
		/* Some kernels refuse to run a program on a frame below Ethernet's minimum. */
		if (f.n < 60)
			continue;
		doing = rows[i].what;
		check(&f, rows[i].why, arg);
		doing = "";
	}
}

/*
 * Passes every odd frame to @check, made from good frames of both families, with and without a tag.
 */
MAYBE_UNUSED static void each_odd(__u64 bus, odd_check check, void *arg)
{
	__u8 tags;

	for (tags = 0; tags < 2; tags++) {
		struct desc d4 = data_frame(0, 1, bus, bus), d6 = data_frame6(0, 1, bus, bus),
			    be = beacon_frame(0, bus);

		d4.tags = d6.tags = be.tags = tags;
		each_odd_of(odd_udp, sizeof(odd_udp) / sizeof(*odd_udp), &d4, check, arg);
		each_odd_of(odd_udp, sizeof(odd_udp) / sizeof(*odd_udp), &d6, check, arg);
		each_odd_of(odd_ip4, sizeof(odd_ip4) / sizeof(*odd_ip4), &d4, check, arg);
		each_odd_of(odd_ip6, sizeof(odd_ip6) / sizeof(*odd_ip6), &d6, check, arg);
		each_odd_of(odd_beacon, sizeof(odd_beacon) / sizeof(*odd_beacon), &be, check, arg);
	}
}

#endif
