/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures: every program of a node hands its frame over when it has counted the reason, if
 * somebody captures (`barline capture`). Both roles. BPF side only.
 *
 * Where nobody does, that is one test of a word at a constant address. Where somebody does, the
 * filters of each slot are applied here, and a frame that passes is copied into the reader's
 * buffer of this CPU. If that is full, the record is lost and counted, and the frame goes on.
 *
 * Example: see maps/capture_abi.h.
 *
 * Not here: what becomes of the records (cli/capture/).
 */
#ifndef BARLINE_BPF_CAPTURE_H
#define BARLINE_BPF_CAPTURE_H

#include "bpf/role.h"
#include "bpf/verdict.h"
#include "core/capture_core.h"
#include "maps/capture_abi.h"
#ifndef BL_ROLE_HOST
#include "bpf/switch/fdb.h"
#endif

/* A struct bl_capture_page. In words, since the skeletons of bpftool repeat the type. */
__u64 bl_capture_words[sizeof(struct bl_capture_page) / 8] SEC(BL_CAPTURE_PAGE) = {
	BL_CAPTURE_VERSION
};
#define BL_CAPTURES ((struct bl_capture_page *)bl_capture_words)

/* by slot: the buffers of the reader, one per CPU */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BL_CAPTURE_SLOTS);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(__u32));
		});
} capture_out SEC(".maps");

/** struct capture_run - one frame; too big for the stack. */
struct capture_run {
	struct bl_capture_head h;
	struct bl_capture_event e;
	__u8 head[BL_CAPTURE_HEAD]; /* of the frame */
	__u8 spare[64];             /* the verifier's margin */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct capture_run);
} capture_runs SEC(".maps");

#ifdef BL_ROLE_HOST

/* Returns the first of barline's ports. @count: their number; 0: none */
static __always_inline __u32 capture_ports(__u32 *count)
{
	__u32 zero = 0;
	const struct bl_host_cfg *cfg = bpf_map_lookup_elem(&host_cfg, &zero);

	*count = cfg ? cfg->port_count : 0;
	return cfg ? cfg->port_base : 0;
}

/* Fills in the barriers of @e from those of the frame, @h. */
static __always_inline void capture_barriers(struct bl_capture_event *e,
					     const struct bl_capture_head *h)
{
	__u32 zero = 0;
	const struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	__u32 in = e->key == BL_HC_INGRESS;

	e->b_before = in ? h->b : 0;
	e->c_before = in ? h->c : 0;
	e->b_after = in && page ? page->barrier & BL_TS_MASK : h->b;
	e->c_after = in && page ? page->commit & BL_TS_MASK : h->c;
}

/* A host forwards nothing. */
static __always_inline __u32 capture_output(const __u8 *head)
{
	return 0;
}

#else

/** struct capture_search - looks for the port with an Ethernet address. */
struct capture_search {
	__u64 mac; /* in the form of bl_mac48() */
	__u32 out; /* the port, plus 1; 0: none */
	__u32 pad;
};

static long compare_port(__u32 p, struct capture_search *s)
{
	const struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &p);

	if (!port)
		return 1;
	if (!port->ifindex || bl_mac48(port->mac) != s->mac)
		return 0;
	s->out = p + 1;
	return 1;
}

/*
 * Returns the output of a forwarded frame, plus 1, or 0. Found again by the addresses, since to
 * keep the number until the end would cost every frame: as when it was forwarded by the table, or
 * as the port whose address a switch that routes has written into the frame.
 */
static __always_inline __u32 capture_output(const __u8 *head)
{
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct capture_search s = {};

	if (!cfg)
		return 0;
	if (cfg->forward == BL_FWD_L2)
		return (__u32)(bl_fdb_port(head) + 1);
	s.mac = bl_mac48(head + 6);
	BL_LOOP(BL_SW_PORTS_MAX, compare_port, &s);
	return s.out;
}

static __always_inline __u32 capture_ports(__u32 *count)
{
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);

	*count = cfg ? cfg->port_count : 0;
	return cfg ? cfg->port_base : 0;
}

static __always_inline void capture_barriers(struct bl_capture_event *e,
					     const struct bl_capture_head *h)
{
	__u32 in = e->key, k;
	const struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &in);
	__u64 b = 0, c = 0;

	e->b_before = e->dir == BL_CAPTURE_IN ? h->b : 0;
	e->c_before = e->dir == BL_CAPTURE_IN ? h->c : 0;
	e->b_after = e->dir == BL_CAPTURE_OUT ? h->b : 0;
	e->c_after = e->dir == BL_CAPTURE_OUT ? h->c : 0;
	if (e->reason != BL_R_FORWARDED && e->reason != BL_R_QUEUED && e->reason != BL_R_TO_KERNEL)
		return;
	/* The header has the switch's barriers by now, and its lane. */
	for (k = 0; regs && k < BL_LANES_MAX; k++) {
		b = bl_max64(b, regs->lane[k].b);
		c = bl_max64(c, regs->lane[k].c);
	}
	e->b_before = b & BL_TS_MASK;
	e->c_before = c & BL_TS_MASK;
	e->b_after = h->b;
	e->c_after = h->c;
}

#endif

static __always_inline int capture_wants(const struct bl_capture_slot *s,
					 const struct bl_capture_event *e,
					 const struct bl_capture_head *h)
{
	__u32 reason = e->reason & (BL_REASON_MAX - 1);
	__u64 word = reason < 64 ? s->reasons[0] : s->reasons[1];
	__u32 dirs = 1U << e->dir;

	if (e->out)
		dirs = 3; /* a forwarded frame came in and goes out */
	if (!(word >> (reason & 63) & 1) || !(s->opcodes >> (h->opcode & 31) & 1) ||
	    !(s->dirs & dirs))
		return 0;
	if (s->endpoint && s->endpoint != h->sport && s->endpoint != h->dport)
		return 0;
	if (s->keys == BL_CAPTURE_ALL)
		return 1;
#ifdef BL_ROLE_HOST
	return s->keys >> (e->key & 31) & 1;
#else
	return s->keys == e->key || s->keys + 1 == e->out;
#endif
}

/*
 * Hands the frame of @ctx to every capture that wants it. @skb: a constant; 1: @ctx is of a tc
 * program. @key: of the counters.
 */
static __always_inline int capture_frame(void *ctx, int skb, __u32 len, __u32 key, __u32 reason,
					 __u32 dir)
{
	__u32 zero = 0, n = len, k, live = 0, count = 0, base = capture_ports(&count);
	struct capture_run *r = bpf_map_lookup_elem(&capture_runs, &zero);
	__u64 now = bpf_ktime_get_ns();

	if (!r)
		return 0;
	if (n > BL_CAPTURE_HEAD)
		n = BL_CAPTURE_HEAD;
	BL_SEEN(n);
	/*
	 * Two tests, and against a number above 0: of "not 0", Linux 6.1 does not conclude that it
	 * is at least 1.
	 */
	if (n < sizeof(struct ethhdr))
		return 0;
	BL_SEEN(n);
	if (n > BL_CAPTURE_HEAD)
		return 0;
	if (skb ? bpf_skb_load_bytes(ctx, 0, r->head, n) : bpf_xdp_load_bytes(ctx, 0, r->head, n))
		n = 0;
	bl_capture_find(r->head, n, base, count, &r->h);
	r->e.at_ns = now;
	r->e.len = len;
	r->e.key = key;
	r->e.out = reason == BL_R_FORWARDED ? capture_output(r->head) : 0;
	r->e.reason = (__u16)reason;
	r->e.dir = (__u8)dir;
	r->e.opcode = r->h.opcode;
	capture_barriers(&r->e, &r->h);
	for (k = 0; k < BL_CAPTURE_SLOTS; k++) {
		struct bl_capture_slot *s = &BL_CAPTURES->slot[k];
		__u64 alive = BL_READ_ONCE(s->alive_ns), snap;
		__u32 slot = k;
		void *out;

		/* The reader's time may be later than @now. */
		if (!alive || (__s64)(now - alive) > (__s64)BL_CAPTURE_LEASE_NS)
			continue;
		live = 1;
		if (!capture_wants(s, &r->e, &r->h))
			continue;
		snap = s->snap < len ? s->snap : len;
		r->e.caplen = (__u32)snap;
		r->e.node = s->node;
		out = bpf_map_lookup_elem(&capture_out, &slot);
		if (out && bpf_perf_event_output(
				   ctx, out, (snap << 32 & BPF_F_CTXLEN_MASK) | BPF_F_CURRENT_CPU,
				   &r->e, sizeof(r->e)))
			__sync_fetch_and_add(&s->lost, 1);
	}
	if (!live)
		BL_WRITE_ONCE(BL_CAPTURES->on, 0);
	return 0;
}

/**
 * bl_capture_xdp - see capture_frame(). Returns the verdict of the reason, so that callers end with
 * it: otherwise the reason would have to survive the call, which takes instructions of each frame.
 */
__attribute__((noinline)) int bl_capture_xdp(struct xdp_md *ctx, __u32 key, __u32 reason, __u32 dir)
{
	capture_frame(ctx, 0, (__u32)bpf_xdp_get_buff_len(ctx), key, reason, dir);
	return bl_xdp_action((enum bl_reason)(reason & (BL_REASON_MAX - 1)));
}

/** bl_capture_skb - the same for tc programs. */
__attribute__((noinline)) int bl_capture_skb(struct __sk_buff *skb, __u32 key, __u32 reason,
					     __u32 dir)
{
	return capture_frame(skb, 1, skb->len, key, reason, dir);
}

/* 1: somebody may capture. */
#define BL_CAPTURING() __builtin_expect(BL_READ_ONCE(BL_CAPTURES->on), 0)

#endif
