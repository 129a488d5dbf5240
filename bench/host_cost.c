// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * host_cost [--json FILE] [--runs N] [--repeat N] - ns per frame of the host program where a token
 * becomes data (TOP), beside a bare program that returns the token. As in switch_cost, both run in
 * turns, are timed by this thread's CPU time, and the medians over the runs are reported.
 * bench_host.bpf.c describes what the wrappers do.
 */
#define COST_NAME "host_cost"
#include "cost.h"
#include "core/queue/queue_core.h"
#include "core/top/top_core.h"
#include "maps/clock_abi.h"
#include "maps/host_abi.h"
#include "bench_host.skel.h"

#define FLOW     7
#define TAG      0x12345678
#define LIMIT_NS 400.0
#define FULL     1502 /* bl0's MTU under top: with the echo a full frame */

static struct bench_host *sk;

/* Fills @f with a token of flow FLOW: IPv4, 60 bytes. */
static void make_token(__u8 *f)
{
	static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };
	struct ethhdr *eth = (void *)f;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct bl_top_hdr *h = (void *)(udp + 1);

	memcpy(eth->h_dest, bl0, 6);
	eth->h_proto = BL_BE16(BL_ETH_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = BL_BE16(BL_TOP_TOKEN_LEN - sizeof(*eth));
	ip->ttl = 64;
	ip->protocol = BL_UDP;
	udp->source = BL_BE16(BL_TOP_SPORT_BASE);
	udp->dest = BL_BE16(BL_TOP_PORT);
	udp->len = BL_BE16(sizeof(*udp) + sizeof(*h));
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN);
	h->flow = BL_BE16(FLOW);
	BL_HALVES_SET(h, tag, TAG);
}

/* Makes a host under policy top whose flow FLOW holds frames of @len bytes, and fills the token. */
static void configure_host(__u32 len)
{
	const struct bl_hold_cfg hold = { .on = 1,
					  .policy = BL_POLICY_TOP,
					  .mac = { 2, 0, 0, 0xb1, 0, 0 } };
	const struct bl_host_cfg host = { .port_base = BL_PORT_BASE, .port_count = BL_PORT_COUNT };
	const struct bl_top_cfg top = { .levels = 6, .slot_ns = 1298, .expiry_ns = ~0ULL >> 4 };
	const struct bl_queue q = { .limit_frames = BL_RING, .limit_bytes = 1 << 20 };
	const struct bl_top_tx tx = { .state = BL_TOP_CREDITED, .tag = TAG };
	struct bl_clock_seg s = { .bus_ns = 1ULL << 40 };
	struct bl_clock clock = { .flags = BL_CLOCK_VALID,
				  .void_after_ns = ~0ULL,
				  .bound_ns = 1ULL << 42 };
	struct timespec now;
	__u32 i;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s.mono_ns = clock.as_of_ns = (__u64)now.tv_sec * 1000000000ULL + (__u64)now.tv_nsec;
	clock.seg[0] = clock.seg[1] = s;
	put_entry(sk->maps.clock, 0, &clock);
	put_entry(sk->maps.hold_cfg, 0, &hold);
	put_entry(sk->maps.host_cfg, 0, &host);
	put_entry(sk->maps.top_cfg, 0, &top);
	put_entry(sk->maps.top_tx, FLOW, &tx);
	put_entry(sk->maps.queues, BL_HOLD_QUEUE(FLOW, 0), &q);
	put_entry(sk->maps.queues, BL_HOLD_QUEUE(FLOW, 1), &q);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.free_slots), NULL, &i))
		;
	for (i = 0; i < BL_SLOTS; i++)
		if (bpf_map_update_elem(bpf_map__fd(sk->maps.free_slots), NULL, &i, BPF_ANY))
			die_with_error("free_slots", errno);
	sk->bss->bench_seq = 1;
	sk->bss->bench_len = len;
	sk->bss->bench_flow = FLOW;
	make_token(sk->bss->bench_token);
}

/* Ends the program unless each of the last @n tokens was answered by a frame. */
static void check_all_answered(__u64 n)
{
	struct bl_top_tx t;
	__u32 flow = FLOW;

	if (bpf_map_lookup_elem(bpf_map__fd(sk->maps.top_tx), &flow, &t))
		die_with_error("top_tx", errno);
	if (t.tokens < n || t.wasted || t.refused || t.expired) {
		fprintf(stderr,
			"host_cost: %llu tokens answered, %llu wasted, %llu refused: the "
			"measurement is not valid\n",
			t.tokens, t.wasted, t.refused);
		exit(1);
	}
}

/*
 * Measures a token that becomes a frame of @len bytes, and prints the row. Returns the median, ns.
 */
static double measure_program(const char *name, __u32 len, bool last)
{
	double a[RUNS_MAX], b[RUNS_MAX], bare, made;
	int i;

	configure_host(len);
	time_program(sk->progs.bare_token, sk->bss->bench_token, BL_TOP_TOKEN_LEN,
		     repeat / 10 + 1000, XDP_TX);
	time_program(sk->progs.host_token, sk->bss->bench_token, BL_TOP_TOKEN_LEN,
		     repeat / 10 + 1000, XDP_TX);
	for (i = 0; i < runs; i++) {
		a[i] = time_program(sk->progs.bare_token, sk->bss->bench_token, BL_TOP_TOKEN_LEN,
				    repeat, XDP_TX);
		b[i] = time_program(sk->progs.host_token, sk->bss->bench_token, BL_TOP_TOKEN_LEN,
				    repeat, XDP_TX);
	}
	check_all_answered((__u64)runs * (__u64)repeat);
	bare = median(a);
	made = median(b);
	printf("%-28s %6u %10.1f %10.1f %10.1f %8.1f..%.1f\n", name, len, bare, made, made - bare,
	       b[0] - bare, b[runs - 1] - bare);
	if (json)
		fprintf(json,
			"{\"name\":\"%s\",\"bytes\":%u,\"bare_ns\":%.2f,\"frame_ns\":%.2f,\"added_"
			"ns\":%.2f,\"least_ns\":%.2f,\"most_ns\":%.2f}%s",
			name, len, bare, made, made - bare, b[0], b[runs - 1], last ? "" : ",");
	return made;
}

int main(int argc, char **argv)
{
	double full;

	parse_options(argc, argv);
	sk = bench_host__open_and_load();
	if (!sk)
		die_with_error("cannot load the programs", errno);
	json_open();
	printf("%-28s %6s %10s %10s %10s %16s\n", "frame, ns", "bytes", "bare", "barline", "added",
	       "least..most");
	measure_program("token to data", 60, false);
	full = measure_program("token to data", FULL, true);
	printf("%-44s %8.2f  (target: at most %.1f) %s\n",
	       "token to data, full frame, all in all, ns", full, LIMIT_NS,
	       full <= LIMIT_NS ? "met" : "MISSED");
	if (json)
		fprintf(json,
			"],\"targets\":[{\"name\":\"token to data, full frame, all in all, "
			"ns\",\"value\":%.2f,\"limit\":%.1f,\"met\":%s}",
			full, LIMIT_NS, full <= LIMIT_NS ? "true" : "false");
	json_close();
	bench_host__destroy(sk);
	return 0;
}
