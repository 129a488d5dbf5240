/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues and slots for the program tests of both roles. Include it after host_util.h or
 * switch_util.h, whose skeleton sk has these maps.
 *
 * balanced() checks the property that holds after every step: each slot is free, or in exactly one
 * queue, or one of those in pace_elsewhere. Example: with 8 slots, 5 free, 2 in queue 3 and
 * pace_elsewhere = 1, it returns 2.
 */
#ifndef BARLINE_TEST_PACE_UTIL_H
#define BARLINE_TEST_PACE_UTIL_H

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "core/queue/queue_core.h"
#include "maps/hold_abi.h"

static __u32 pace_slots; /* slots in use */
/* Slots that are neither free nor in a queue, because the test keeps them elsewhere. */
static __u32 pace_elsewhere;
static const struct bpf_map *pace_due; /* hold_due or port_due */

static void due_put(const struct bl_due *d)
{
	map_put(pace_due, 0, d);
}

MAYBE_UNUSED static struct bl_due due_get(void)
{
	struct bl_due d;

	map_get(pace_due, 0, &d);
	return d;
}

MAYBE_UNUSED static struct bl_pace_page page_get(void)
{
	struct bl_pace_page p;

	map_get(sk->maps.pace_page, 0, &p);
	return p;
}

static struct bl_queue queue_get(__u32 key)
{
	struct bl_queue q;

	map_get(sk->maps.queues, key, &q);
	return q;
}

/* Sets the limits of queue @key. */
MAYBE_UNUSED static void queue_limit(__u32 key, __u32 frames, __u32 bytes, __u32 mark)
{
	struct bl_queue q = queue_get(key);

	q.limit_frames = frames;
	q.limit_bytes = bytes;
	q.mark_bytes = mark;
	map_put(sk->maps.queues, key, &q);
}

/* Makes @slots slots free and the first @queues queues empty, with nothing due in @due. */
static void pace_setup(const struct bpf_map *due, __u32 slots, __u32 queues)
{
	static const struct bl_queue_hist no_hist;
	static const struct bl_pace_page no_page;
	static struct bl_due d;
	struct bl_queue q = { .limit_frames = BL_RING, .limit_bytes = 1 << 20 };
	int fd = bpf_map__fd(sk->maps.free_slots);
	__u32 i;

	pace_due = due;
	pace_slots = slots;
	pace_elsewhere = 0;
	while (!bpf_map_lookup_and_delete_elem(fd, NULL, &i))
		;
	for (i = 0; i < slots; i++)
		assert_int_equal(bpf_map_update_elem(fd, NULL, &i, BPF_ANY), 0);
	for (i = 0; i < queues; i++) {
		map_put(sk->maps.queues, i, &q);
		map_put(sk->maps.queue_hist, i, &no_hist);
	}
	map_put(sk->maps.pace_page, 0, &no_page);
	memset(&d, 0, sizeof(d));
	d.next = BL_DUE_NEVER;
	for (i = 0; i < BL_DUE_MAX; i++)
		d.at[i] = BL_DUE_NEVER;
	due_put(&d);
}

/*
 * Fails unless each slot is free, or in exactly one of the first @queues queues, or one of those in
 * pace_elsewhere. Returns the number of slots in queues.
 */
MAYBE_UNUSED static __u32 balanced(__u32 queues)
{
	static __u8 seen[BL_SLOTS];
	int fd = bpf_map__fd(sk->maps.free_slots);
	__u32 n = 0, k, slot, in = 0;
	static __u32 list[BL_SLOTS];

	memset(seen, 0, sizeof(seen));
	while (!bpf_map_lookup_and_delete_elem(fd, NULL, &slot)) {
		assert_true(slot < pace_slots && !seen[slot]);
		seen[slot] = 1;
		list[n++] = slot;
	}
	for (k = 0; k < n; k++)
		assert_int_equal(bpf_map_update_elem(fd, NULL, &list[k], BPF_ANY), 0);
	for (k = 0; k < queues; k++) {
		struct bl_queue q = queue_get(k);
		__u32 bytes = 0;

		for (; q.head != q.tail; q.head++, in++) {
			__u32 e = q.ring[q.head & (BL_RING - 1)];

			assert_true(BL_RING_SLOT(e) < pace_slots && !seen[BL_RING_SLOT(e)]);
			seen[BL_RING_SLOT(e)] = 1;
			bytes += BL_RING_LEN(e);
		}
		assert_int_equal(q.bytes, bytes);
	}
	if (n + in + pace_elsewhere != pace_slots)
		fail_msg("%s: %u slots are free and %u in queues, of %u", doing, n, in, pace_slots);
	return in;
}

/* Returns the number of samples in a histogram. */
MAYBE_UNUSED static __u64 hist_sum(const struct bl_hist *h)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < BL_HIST_BINS; i++)
		sum += h->n[i];
	return sum;
}

/*
 * Runs one turn of the pacer without sending: @out is the frame that it would have sent. Returns
 * the verdict.
 */
MAYBE_UNUSED static int turn(const struct bpf_program *prog, struct frame *out)
{
	struct frame in = { .n = BL_PACE_FRAME };

	__u32 len = ran_len;
	int verdict;

	memset(in.p, 0xee, sizeof(in.p));
	verdict = run_xdp(prog, net.ifindex[0], &in, out);
	/* The frame that was sent is counted, and not the pacer's; nor is one that was dropped. */
	ran_len = len;
	ran_on(verdict == XDP_REDIRECT ? out->n : LENGTHS_DIFFER);
	return verdict;
}

/* Runs @n turns with live frames, which leave by the devices of the map. */
MAYBE_UNUSED static void live_turns(int prog_fd, __u32 n)
{
	__u8 in[BL_PACE_FRAME] = { 0 };
	struct xdp_md ctx = { .data_end = sizeof(in), .ingress_ifindex = net.ifindex[0] };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in, .data_size_in = sizeof(in), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = (int)n,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	int rc = bpf_prog_test_run_opts(prog_fd, &o);

	if (rc)
		fail_msg("cannot run the pacer: %s", strerror(-rc));
}

/* Returns whether the bell was rung since the last call. */
MAYBE_UNUSED static bool rung(void)
{
	static int bell_fd = -1;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	if (bell_fd < 0) {
		bell_fd = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(
			epoll_ctl(bell_fd, EPOLL_CTL_ADD, bpf_map__fd(sk->maps.pace_bell), &ev), 0);
	}
	return epoll_wait(bell_fd, &ev, 1, 20) == 1;
}

/* Makes a frame of no known protocol: @n bytes of Ethernet to host @to, all different. */
MAYBE_UNUSED static void raw_frame(struct frame *f, __u32 from, __u32 to, __u32 n, __u32 seed)
{
	__u32 i;

	host_mac(f->p, to);
	host_mac(f->p + 6, from);
	f->p[12] = 0x88;
	f->p[13] = 0xb6;
	for (i = 14; i < n; i++)
		f->p[i] = (__u8)(i * 11 + seed * 29 + (i >> 8));
	f->n = n;
}

/* Returns a socket that receives all frames of an interface. */
MAYBE_UNUSED static int wire_sock(__u32 ifindex)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL),
				 .sll_ifindex = (int)ifindex };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Returns a UDP frame that is not barline's. */
MAYBE_UNUSED static struct desc plain_frame(__u32 from, __u32 to, bool v6)
{
	struct desc d = v6 ? data_frame6(from, to, T0, T0) : data_frame(from, to, T0, T0);

	d.dport = 53;
	d.tos = 0;
	return d;
}

#endif
