// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a host: bl_hold_xdp makes flows of what applications send, bl_host_pace asks for tokens and sends them, bl_host_xdp answers them and takes signals and data in. Every frame is compared byte for byte
 * with one that is built here from its description. v0 plays the NIC, v1 bl0d; this host is "1", the other one "2". Bus time stands still; times that must not matter are hours.
 */
#include <linux/if_packet.h>
#include <sys/socket.h>
#include "../../bpf/token_core.h" /* bl_top_flow_port(): what switches compute */
#include "../../bpf/top_core.h" /* before cfg is a name */
#include "../../loader/top.h"
#include "host_util.h"
#include "pace_util.h"

#define HOLD_SLOTS 300
#define QUEUES	   (BL_DESTS * BL_HOLD_CLASSES)
#define HOUR_NS	   3600000000000ULL
#define T_NS	   26000ULL

static struct bl_hold_cfg hold;
static struct bl_top_cfg top;
static struct bl_top_page tpage;
static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

static int setup(void **state)
{
	(void)state;
	net_setup(false);
	return 0;
}

static void set_top(void)
{
	map_put(sk->maps.top_cfg, 0, &top);
}

static void set_policy(__u32 policy)
{
	hold.policy = policy;
	map_put(sk->maps.hold_cfg, 0, &hold);
}

static struct bl_top_tx tx_get(__u32 n)
{
	struct bl_top_tx t;

	map_get(sk->maps.top_tx, n, &t);
	return t;
}

static struct bl_top_rx rx_get(__u32 i)
{
	struct bl_top_rx r;

	map_get(sk->maps.top_rx, i, &r);
	return r;
}

static struct bl_top_page top_page_get(void)
{
	struct bl_top_page p;

	map_get(sk->maps.top_page, 0, &p);
	return p;
}

static void empty_hash(const struct bpf_map *m)
{
	__u8 k[64];

	while (!bpf_map_get_next_key(bpf_map__fd(m), NULL, k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(m), k), 0);
}

static int top_setup(void **state)
{
	static const struct bl_hold_dest none;
	static const struct bl_top_tx no_tx;
	static const struct bl_top_rx no_rx;
	static const struct bl_top_hint no_hint;
	struct bpf_devmap_val v = { 0 };
	__u32 i;

	host_setup(state);
	hold = (struct bl_hold_cfg){ .on = 1 };
	memcpy(hold.mac, bl0, 6);
	set_policy(BL_POLICY_TOP);
	top = (struct bl_top_cfg){ .law = BL_TOP_LAW_NS2, .levels = 6, .slot_ns = 1000, .alpha = BL_TOP_ONE / 2, .w_init = BL_TOP_ONE / 16, .w_min = BL_TOP_ONE / 100, .w_max = BL_TOP_ONE / 2,
				   .limit = { 5, 22, 100, 465, 2155 }, .expiry_ns = T_NS, .sync_ns = HOUR_NS, .idle_ns = 100 * HOUR_NS, .dead_ns = 100 * HOUR_NS, .short_frames = 8 };
	set_top();
	tpage = (struct bl_top_page){ .at = BL_DUE_NEVER, .random = 1 };
	map_put(sk->maps.top_page, 0, &tpage);
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	empty_hash(sk->maps.top_flows);
	empty_hash(sk->maps.top_rx_of);
	empty_hash(sk->maps.top_coflows);
	empty_hash(sk->maps.hold_dests);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.top_free), NULL, &i))
		;
	for (i = 0; i < BL_DESTS; i++) {
		map_put(sk->maps.hold_macs, i, &none);
		map_put(sk->maps.top_tx, i, &no_tx);
	}
	for (i = 0; i < BL_TOP_RX_MAX; i++)
		map_put(sk->maps.top_rx, i, &no_rx);
	for (i = 0; i < BL_TOP_HINTS; i++)
		map_put(sk->maps.top_hints, i, &no_hint);
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
	return 0;
}

/* ---- frames ---- */

/* What an application of this host sends to host @to, from UDP port @sport. */
static struct desc app_frame(__u32 to, __u16 sport, bool v6)
{
	struct desc d = plain_frame(1, to, v6);

	memcpy(d.src, bl0, 6);
	d.sport = sport;
	return d;
}

/** struct topd - a TOP frame in words, from the data's sender or to it. @bytes: SYNC, FIN. */
struct topd {
	bool v6, token;
	__u32 sender, receiver;
	__u16 sport, dport; /* of the flow */
	__u8 op, cls;
	__u16 flow;
	__u32 seq, tag, frames, deadline, coflow;
	__u64 ts, bytes;
	__u16 unsched;
};

static __u16 flow_port(const struct topd *t)
{
	__u8 a[16], b[16];
	__be32 w[2];

	host_addr(a, t->v6, t->sender);
	host_addr(b, t->v6, t->receiver);
	memcpy(&w[0], a + 12, 4);
	memcpy(&w[1], b + 12, 4);
	if (t->v6)
		return bl_top_flow_port(bl_top_addr6(a), bl_top_addr6(b), t->sport, t->dport);
	return bl_top_flow_port(bl_top_addr4(w[0]), bl_top_addr4(w[1]), t->sport, t->dport);
}

/* Host 1's MAC address is bl0's. */
static void mac_of(__u8 *mac, __u32 h)
{
	host_mac(mac, h);
	if (h == 1)
		memcpy(mac, bl0, 6);
}

static void build_top(struct frame *f, const struct topd *t)
{
	__u32 from = t->token ? t->receiver : t->sender, to = t->token ? t->sender : t->receiver, body = t->op == BL_TOP_SYNC ? 24 : t->op == BL_TOP_FIN ? 8 : 0, at;
	struct desc d = { .v6 = t->v6, .ttl = 64 };

	memset(f->p, 0, sizeof(f->p));
	f->n = 0;
	mac_of(f->p, to);
	mac_of(f->p + 6, from);
	f->n = 12;
	put16(f, t->v6 ? 0x86dd : 0x0800);
	host_addr(d.saddr, t->v6, from);
	host_addr(d.daddr, t->v6, to);
	at = f->n;
	put_ip(f, &d, 8 + 18 + body);
	if (t->v6)
		memset(f->p + at + 1, 0, 3); /* no flow label */
	put16(f, flow_port(t));
	put16(f, 61692);
	put16(f, (__u16)(8 + 18 + body));
	put16(f, 0);
	put8(f, (__u8)(1 << 4 | t->op));
	put8(f, t->cls);
	put16(f, t->flow);
	put32(f, t->seq);
	put48(f, t->ts & BL_TS_MASK);
	put32(f, t->tag);
	if (t->op == BL_TOP_SYNC || t->op == BL_TOP_FIN) {
		put16(f, 0);
		put48(f, t->bytes);
	}
	if (t->op == BL_TOP_SYNC) {
		put32(f, t->frames);
		put32(f, t->deadline);
		put32(f, t->coflow);
		put16(f, t->unsched);
		put16(f, 0);
	}
}

static void add_echo(struct frame *f, __u16 flow, __u32 seq)
{
	put16(f, 0x70be);
	put16(f, flow);
	put32(f, seq);
}

/* ---- steps ---- */

static void give(const struct frame *in, enum bl_reason why)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, why }));
}

/* A frame of the flow to host 2 with that port; it differs from others by its IP identification. */
static struct frame held(__u16 sport, __u16 id, bool v6)
{
	struct desc d = app_frame(2, sport, v6);
	struct frame f;

	d.ip_id = id;
	build(&f, &d);
	give(&f, BL_R_HELD);
	return f;
}

static void paced(const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
}

static void idle(void)
{
	struct frame out;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

/* @in comes in on the NIC and ends as @want: with @action and for @why. */
static void comes(const struct frame *in, const struct frame *want, int action, enum bl_reason why)
{
	struct frame out;
	int verdict = run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], in, &out);

	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	assert_int_equal(verdict, action);
	same_frame(&out, want);
}

static void refused(const struct frame *in, enum bl_reason why)
{
	comes(in, in, XDP_DROP, why);
}

static struct topd sync_of(__u16 sport, __u16 flow, __u32 seq, __u32 frames, bool v6)
{
	return (struct topd){ .v6 = v6, .sender = 1, .receiver = 2, .sport = sport, .dport = 53, .op = BL_TOP_SYNC, .flow = flow, .seq = seq, .tag = tx_get(flow).tag, .frames = frames, .ts = bus_now };
}

static struct topd token_of(__u16 sport, __u16 flow, __u32 seq)
{
	return (struct topd){ .v6 = tx_get(flow).key.v6, .token = true, .sender = 1, .receiver = 2, .sport = sport, .dport = 53, .op = BL_TOP_TOKEN, .cls = 2, .flow = flow, .seq = seq,
			      .tag = tx_get(flow).tag, .ts = bus_now - 5000 };
}

/* Signal of host 2, which sends to us. */
static struct topd inbound(__u8 op, __u16 flow, __u32 seq, __u32 tag)
{
	return (struct topd){ .sender = 2, .receiver = 1, .sport = 1000, .dport = 2000, .op = op, .flow = flow, .seq = seq, .tag = tag, .ts = bus_now };
}

static void signal_in(const struct topd *t)
{
	struct frame f;

	build_top(&f, t);
	comes(&f, &f, XDP_DROP, BL_R_SIGNAL);
}

/* ---- flows that are sent ---- */

static void sync__byte_exact(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct topd s;
		struct frame f;
		struct bl_top_tx t;

		top_setup(state);
		held(1001, 1, v6);
		held(1001, 2, v6);
		s = sync_of(1001, 1, 1, 2, v6);
		build_top(&f, &s);
		assert_int_equal(f.n, (v6 ? 80 : 60) + 24);
		paced(&f);
		idle();
		t = tx_get(1);
		assert_true(t.state == BL_TOP_ASKING && t.frames == 2 && t.syncs == 1 && t.tag && t.port == BL_BE16(flow_port(&s)));
		assert_int_equal(balanced(QUEUES), 2);
		assert_int_equal(queue_get(BL_HOLD_QUEUE(1, 1)).put, 2);
	}
}

static void flow__one_number_each(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame f;

	(void)state;
	held(1001, 1, false);
	held(1002, 1, false);
	held(1001, 2, false);
	held(1001, 1, true);
	d.dport = 54;
	build(&f, &d);
	give(&f, BL_R_HELD);
	d = app_frame(3, 1001, false);
	build(&f, &d);
	give(&f, BL_R_HELD);
	d.tos = 46 << 2; /* expedited: the same flow, its first queue */
	build(&f, &d);
	give(&f, BL_R_HELD);
	assert_int_equal(due_get().given, 5);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(1, 1)).put, 2);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(2, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(3, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(5, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(5, 0)).put, 1);
}

static void hold__full(void **state)
{
	struct frame f = held(1001, 1, false);

	(void)state;
	queue_limit(BL_HOLD_QUEUE(1, 1), 1, 1 << 20, 0);
	give(&f, BL_R_HOLD_FULL);
	assert_int_equal(balanced(QUEUES), 1);
}

static void hold__no_more_numbers(void **state)
{
	struct bl_due d = due_get();
	struct desc a = app_frame(2, 1001, false);
	struct frame f;
	__u32 n = 77;

	(void)state;
	d.given = BL_DESTS - 1;
	due_put(&d);
	build(&f, &a);
	give(&f, BL_R_HOLD_DESTS);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(sk->maps.top_free), NULL, &n, BPF_ANY), 0);
	give(&f, BL_R_HELD);
	assert_int_equal(tx_get(77).frames, 1);
}

static void give_at_once(const struct frame *f)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, BL_R_NO_TOKEN }, { BL_HC_HOLD, BL_R_HELD }));
	paced(f);
	idle();
}

/* TCP with @payload bytes and 4 * @words of header in a frame of @len bytes. */
static void tcp(struct frame *f, bool v6, __u32 words, __u32 payload)
{
	struct desc d = app_frame(2, 1001, v6);

	d.body = words * 4 + payload - 8 - 24; /* build() makes UDP and the 24 bytes of our header before it */
	build(f, &d);
	f->p[v6 ? 20 : 23] = 6;
	f->p[v6 ? 66 : 46] = (__u8)(words << 4);
	if (!v6) {
		__u16 sum;

		f->p[24] = f->p[25] = 0;
		sum = fold(sum16(0, f->p + 14, 20));
		f->p[24] = (__u8)(sum >> 8);
		f->p[25] = (__u8)sum;
	}
}

static void control__goes_at_once(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame f;

	(void)state;
	tcp(&f, false, 8, 0);
	give_at_once(&f);
	tcp(&f, true, 11, 0);
	give_at_once(&f);
	tcp(&f, false, 8, 1);
	give(&f, BL_R_HELD);
	tcp(&f, true, 11, 1);
	give(&f, BL_R_HELD);
	raw_frame(&f, 1, 2, 100, 3);
	turn(sk->progs.bl_host_pace, &(struct frame){ 0 });
	turn(sk->progs.bl_host_pace, &(struct frame){ 0 });
	counts_moved(sk->maps.counts, counted, 2, WANT({ BL_HC_PACE, BL_R_PACED, 2 })); /* their SYNCs */
	give_at_once(&f); /* no IP */
	d.tags = 1;
	build(&f, &d);
	give_at_once(&f);
	assert_int_equal(due_get().given, 2);
}

/* ---- tokens ---- */

static void token__becomes_the_held_frame(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, b, f;
		struct topd t;
		struct bl_top_tx x;

		top_setup(state);
		a = held(1001, 1, v6);
		b = held(1001, 2, v6);
		t = token_of(1001, 1, 1);
		build_top(&f, &t);
		add_echo(&a, 1, 1);
		comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
		t.seq = 0x01020304 % BL_TOP_AHEAD;
		build_top(&f, &t);
		add_echo(&b, 1, t.seq);
		comes(&f, &b, XDP_TX, BL_R_TOKEN_USED);
		x = tx_get(1);
		assert_true(x.state == BL_TOP_CREDITED && x.tokens == 2 && x.seq == t.seq && !x.wasted && !x.refused);
		assert_int_equal(balanced(QUEUES), 0);
	}
}

/* Every length that a frame may have, from the shortest to the longest with and without room for the echo. */
static void token__lengths(void **state)
{
	static const __u32 body[] = { 0, 1, 1440 - 24, 1506 - 66, 1507 - 66, 1510 - 66, 1511 - 66, 1522 - 66 };
	unsigned int i;

	for (i = 0; i < sizeof(body) / sizeof(body[0]); i++) {
		struct desc d = app_frame(2, 1001, false);
		struct frame a, f;
		struct topd t;

		top_setup(state);
		d.body = body[i];
		build(&a, &d);
		give(&a, BL_R_HELD);
		t = token_of(1001, 1, 9);
		build_top(&f, &t);
		if (a.n + 8 <= BL_TOP_FRAME_MAX)
			add_echo(&a, 1, 9);
		comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	}
}

static void token__expedited_first(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame a = held(1001, 1, false), b, f;
	struct topd t = token_of(1001, 1, 1);

	(void)state;
	d.tos = 46 << 2;
	build(&b, &d);
	give(&b, BL_R_HELD);
	build_top(&f, &t);
	add_echo(&b, 1, 1);
	comes(&f, &b, XDP_TX, BL_R_TOKEN_USED);
	t.seq = 2;
	build_top(&f, &t);
	add_echo(&a, 1, 2);
	comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
}

static void token__wasted_becomes_a_stop(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, f, want;
		struct topd t, stop;
		__u32 seq, sig = 0;

		top_setup(state);
		a = held(1001, 1, v6);
		t = token_of(1001, 1, 1);
		build_top(&f, &t);
		add_echo(&a, 1, 1);
		comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
		for (seq = 2; seq < 2 + 2 * BL_TOP_STOP_EACH; seq++) {
			t.seq = seq;
			build_top(&f, &t);
			if ((seq - 2) % BL_TOP_STOP_EACH) {
				refused(&f, BL_R_TOKEN_WASTED);
				continue;
			}
			stop = (struct topd){ .v6 = v6, .sender = 1, .receiver = 2, .sport = 1001, .dport = 53, .op = BL_TOP_STOP, .flow = 1, .seq = ++sig, .tag = t.tag, .ts = bus_now };
			build_top(&want, &stop);
			comes(&f, &want, XDP_TX, BL_R_TOKEN_STOP);
		}
		assert_true(tx_get(1).wasted == 2 * BL_TOP_STOP_EACH && tx_get(1).stops == 2 && tx_get(1).tokens == 1 && tx_get(1).state == BL_TOP_IDLE);
		/* the next frame asks anew */
		held(1001, 2, v6);
		stop = sync_of(1001, 1, ++sig, 1, v6);
		build_top(&want, &stop);
		paced(&want);
	}
}

static void token__refusals(void **state)
{
	const struct {
		const char *what;
		__u32 tag_xor, cls, flow, seq;
		__s64 age;
		enum bl_reason why;
	} t[] = {
		{ "another tag", 1, 0, 1, 2, 0, BL_R_TOKEN_FORGED },
		{ "another tag, upper half", 0x80000000, 0, 1, 2, 0, BL_R_TOKEN_FORGED },
		{ "class 6", 0, 6, 1, 2, 0, BL_R_TOKEN_CLASS },
		{ "class 255", 0, 255, 1, 2, 0, BL_R_TOKEN_CLASS },
		{ "flow 0", 0, 0, 0, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 2", 0, 0, 2, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 255", 0, 0, 255, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 256", 0, 0, 256, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 65535", 0, 0, 65535, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "number 0", 0, 0, 1, 0, 0, BL_R_TOKEN_REPLAYED },
		{ "number 1 again", 0, 0, 1, 1, 0, BL_R_TOKEN_REPLAYED },
		{ "number far ahead", 0, 0, 1, 2 + BL_TOP_AHEAD, 0, BL_R_TOKEN_REPLAYED },
		{ "from the future", 0, 0, 1, 2, -2 * (__s64)BOUND - 1, BL_R_TOKEN_AHEAD },
		{ "too old", 0, 0, 1, 2, T_NS + 2 * BOUND + 1, BL_R_TOKEN_EXPIRED },
	};
	struct frame a = held(1001, 1, false), b = held(1001, 2, false), f;
	struct topd k = token_of(1001, 1, 1);
	unsigned int i;

	(void)state;
	build_top(&f, &k);
	add_echo(&a, 1, 1);
	comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		doing = t[i].what;
		k = token_of(1001, 1, t[i].seq);
		k.tag ^= t[i].tag_xor;
		k.cls = (__u8)t[i].cls;
		k.flow = (__u16)t[i].flow;
		k.ts = bus_now - (__u64)t[i].age;
		build_top(&f, &k);
		refused(&f, t[i].why);
		assert_int_equal(balanced(QUEUES), 1); /* harmless */
	}
	doing = "";
	k = token_of(1001, 1, 3);
	k.ts = bus_now - (T_NS + 2 * BOUND); /* as old as it may be */
	build_top(&f, &k);
	clock_void(sk->maps.clock);
	refused(&f, BL_R_CLOCK_VOID);
	clock_at(sk->maps.clock, bus_now);
	add_echo(&b, 1, 3);
	comes(&f, &b, XDP_TX, BL_R_TOKEN_USED);
}

static void message__malformed(void **state)
{
	struct topd t = inbound(BL_TOP_SYNC, 5, 1, 99);
	struct frame good, f;
	__u32 len = 14 + 20 + 8 + 18 + 24;

	(void)state;
	build_top(&good, &t);
	assert_int_equal(good.n, len);
#define BAD(what, code) \
	do { \
		doing = what; \
		f = good; \
		code; \
		refused(&f, BL_R_SIGNAL_BAD); \
	} while (0)
	BAD("version 0", f.p[42] = BL_TOP_SYNC);
	BAD("version 2", f.p[42] = 2 << 4 | BL_TOP_SYNC);
	BAD("opcode 0", f.p[42] = 1 << 4);
	BAD("opcode 6", f.p[42] = 1 << 4 | 6);
	BAD("loss", f.p[42] = 1 << 4 | BL_TOP_LOSS);
	BAD("stop of nobody", f.p[42] = 1 << 4 | BL_TOP_STOP);
	BAD("fin of nobody", f.p[42] = 1 << 4 | BL_TOP_FIN);
	BAD("frame cut short", f.n--);
	BAD("IP says less", f.p[17]--);
	BAD("IP says more", f.p[17]++);
	doing = "";
	assert_int_equal(top_page_get().used[0], 0);
}

/* A socket's small frame cannot grow: then the pacer sends the answer. (Linux 6.1's veth gives every such frame a page of its own: there it can.) */
static void token__that_cannot_grow(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	int fd = wire_sock(net.peer[0]), pass = bpf_program__fd(net.pass->progs.bl_pass), i;
	static struct bl_counts now[COUNT_KEYS_MAX];
	struct topd t;
	struct frame a, f;

	(void)state;
	d.body = 1300;
	build(&a, &d);
	give(&a, BL_R_HELD);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	assert_int_equal(bpf_xdp_attach((int)net.ifindex[0], bpf_program__fd(sk->progs.bl_host_xdp), XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(send(fd, f.p, f.n, 0), f.n);
	/* counting is the last thing that the program does */
	for (i = 0; i < 10000; i++) {
		counts_take(sk->maps.counts, now);
		if (now[BL_HC_INGRESS].n[BL_R_TOKEN_USED] + now[BL_HC_INGRESS].n[BL_R_TOKEN_PACED] !=
		    counted[BL_HC_INGRESS].n[BL_R_TOKEN_USED] + counted[BL_HC_INGRESS].n[BL_R_TOKEN_PACED])
			break;
		usleep(1000);
	}
	assert_int_equal(bpf_xdp_attach((int)net.ifindex[0], pass, XDP_FLAGS_DRV_MODE, NULL), 0);
	close(fd);
	if (!tx_get(1).paced) {
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TOKEN_USED }));
		return;
	}
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TOKEN_PACED }));
	assert_int_equal(balanced(QUEUES), 1);
	add_echo(&a, 1, 1);
	paced(&a);
	assert_int_equal(balanced(QUEUES), 0);
}

/* A queue whose entry lies about its length: the token's frame cannot become that, nor can the pacer's. */
static void token__answer_that_fits_no_frame(void **state)
{
	struct bl_queue q;
	struct topd t;
	struct frame f, out;
	__u32 key = BL_HOLD_QUEUE(1, 1);

	(void)state;
	held(1001, 1, false);
	q = queue_get(key);
	q.ring[0] = BL_RING_ENTRY(BL_RING_SLOT(q.ring[0]), 1600);
	q.bytes = 1600;
	map_put(sk->maps.queues, key, &q);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	refused(&f, BL_R_TOKEN_PACED);
	assert_int_equal(tx_get(1).paced, 1);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_REDIRECT_FAILED }));
	assert_int_equal(balanced(QUEUES), 0);
}

/* ---- flows that come in ---- */

/* The token that we send to host 2 next. */
static void token_out(__u16 flow, __u32 seq, __u32 tag, __u8 cls)
{
	struct topd t = { .token = true, .sender = 2, .receiver = 1, .sport = 1000, .dport = 2000, .op = BL_TOP_TOKEN, .cls = cls, .flow = flow, .seq = seq, .tag = tag, .ts = bus_now };
	struct frame f;

	build_top(&f, &t);
	assert_int_equal(f.n, BL_TOP_TOKEN_LEN);
	paced(&f);
}

/* Slots so long that one token is all that comes, and rates so that each flow has its turn in each. */
static void slots_of_an_hour(void)
{
	tpage = top_page_get();
	tpage.free_ns = 0;
	map_put(sk->maps.top_page, 0, &tpage);
}

static void next_slot(__u32 places)
{
	struct bl_due d = due_get();
	struct bl_top_rx r;
	__u32 i;

	for (i = 0; i < places; i++) {
		r = rx_get(i);
		r.next_ns = 0;
		map_put(sk->maps.top_rx, i, &r);
	}
	tpage = top_page_get();
	tpage.at = 0;
	tpage.free_ns = 0;
	map_put(sk->maps.top_page, 0, &tpage);
	d.next = 0;
	due_put(&d);
}

static void receiver__sends_tokens(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 0xabcd1234);
	struct bl_top_rx r;

	(void)state;
	top.slot_ns = 3600000000U; /* 3.6 s: no second one comes by itself */
	set_top();
	s.bytes = 30 * 1460;
	s.frames = 7;
	signal_in(&s);
	r = rx_get(0);
	assert_true(r.state == BL_TOP_RX_OPEN && r.tag == 0xabcd1234 && r.waiting == 7 && r.bytes == 30 * 1460 && top_page_get().used[0] == 1);
	token_out(5, 1, 0xabcd1234, 2);
	idle();
	next_slot(1);
	token_out(5, 2, 0xabcd1234, 2);
	assert_int_equal(top_page_get().tokens[2], 2);
	assert_int_equal(rx_get(0).cls, 2);
	/* the same SYNC again changes nothing; a STOP ends it; a STOP that is older than the last SYNC does not */
	signal_in(&s);
	assert_int_equal(rx_get(0).syncs, 2);
	s = inbound(BL_TOP_STOP, 5, 1, 0xabcd1234);
	signal_in(&s);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_OPEN);
	s.seq = 2;
	signal_in(&s);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_STOPPED);
	next_slot(1);
	idle();
	s = inbound(BL_TOP_SYNC, 5, 3, 0xabcd1234);
	s.frames = 1;
	slots_of_an_hour();
	signal_in(&s);
	token_out(5, 3, 0xabcd1234, 2); /* numbers go on */
}

static void receiver__v6(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 0xfffe, 1, 77), t;
	struct frame f;

	(void)state;
	s.v6 = true;
	signal_in(&s);
	t = s;
	t.token = true;
	t.op = BL_TOP_TOKEN;
	build_top(&f, &t);
	assert_int_equal(f.n, 80);
	paced(&f);
}

static void receiver__best_class_then_turns(void **state)
{
	static const struct {
		__u16 flow;
		__u64 bytes;
	} flows[] = { { 1, 9000000 }, { 2, 1460 * 30 }, { 3, 1460 * 40 }, { 4, 1460 * 50 } };
	struct topd s;
	__u32 i;

	(void)state;
	top.slot_ns = 3600000000U;
	set_top();
	for (i = 0; i < 4; i++) {
		s = inbound(BL_TOP_SYNC, flows[i].flow, 1, 100 + i);
		s.bytes = flows[i].bytes;
		signal_in(&s);
	}
	for (i = 0; i < 7; i++) {
		next_slot(4);
		token_out((__u16)(2 + i % 3), 1 + i / 3, 101 + i % 3, 2);
	}
	s = inbound(BL_TOP_STOP, 2, 2, 101);
	signal_in(&s);
	s = inbound(BL_TOP_STOP, 3, 2, 102);
	signal_in(&s);
	s = inbound(BL_TOP_STOP, 4, 2, 103);
	signal_in(&s);
	next_slot(4);
	token_out(1, 1, 100, 5);
}

static void receiver__another_flow_by_that_number(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 9, 11);
	struct frame f;

	(void)state;
	top.slot_ns = 3600000000U;
	set_top();
	signal_in(&s);
	token_out(5, 1, 11, 0);
	s = inbound(BL_TOP_STOP, 5, 10, 12); /* of a flow that was never announced */
	build_top(&f, &s);
	refused(&f, BL_R_SIGNAL_BAD);
	s = inbound(BL_TOP_SYNC, 5, 1, 12);
	s.bytes = 9000000;
	slots_of_an_hour();
	signal_in(&s);
	token_out(5, 1, 12, 5);
	assert_int_equal(top_page_get().used[0], 1);
}

static void receiver__fin_frees_the_place(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	top.slot_ns = 3600000000U;
	top.dead_ns = 1000000000;
	set_top();
	signal_in(&s);
	token_out(5, 1, 11, 0);
	s = inbound(BL_TOP_FIN, 5, 2, 11);
	s.bytes = 5000;
	signal_in(&s);
	idle();
	assert_int_equal(top_page_get().used[0], 0);
	assert_int_equal(top_page_get().gone, 1);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_FREE);
	assert_int_equal(rx_get(0).bytes, 5000);
	s = inbound(BL_TOP_SYNC, 6, 1, 12);
	slots_of_an_hour();
	signal_in(&s);
	token_out(6, 1, 12, 0);
}

static void receiver__sender_died(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 11);
	struct bl_top_rx r;

	(void)state;
	top.dead_ns = HOUR_NS;
	set_top();
	signal_in(&s);
	token_out(5, 1, 11, 0);
	next_slot(1);
	r = rx_get(0);
	r.heard_ns = mono_now() - HOUR_NS;
	r.next_ns = 0;
	map_put(sk->maps.top_rx, 0, &r);
	idle();
	assert_int_equal(top_page_get().used[0], 0);
	assert_int_equal(due_get().next, BL_DUE_NEVER);
}

static void receiver__full(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 11);
	struct frame f;

	(void)state;
	memset(tpage.used, 0xff, sizeof(tpage.used));
	map_put(sk->maps.top_page, 0, &tpage);
	build_top(&f, &s);
	refused(&f, BL_R_FLOWS_FULL);
	tpage.used[3] &= ~(1ULL << 63);
	map_put(sk->maps.top_page, 0, &tpage);
	signal_in(&s);
	assert_int_equal(rx_get(255).tag, 11);
}

static void receiver__clock_void(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	signal_in(&s);
	clock_void(sk->maps.clock);
	idle();
	assert_true(top_page_get().no_clock >= 1);
	clock_at(sk->maps.clock, bus_now);
	next_slot(1);
	token_out(5, 1, 11, 0);
}

static void receiver__coflow(void **state)
{
	struct topd s;
	struct bl_top_coflow c;
	__u32 id = 42;
	int fd;

	(void)state;
	fd = bpf_map__fd(sk->maps.top_coflows);
	top.slot_ns = 3600000000U;
	top.objective = BL_TOP_BY_COFLOW;
	set_top();
	s = inbound(BL_TOP_SYNC, 5, 1, 11);
	s.bytes = 3 * 1460;
	s.coflow = 42;
	signal_in(&s);
	token_out(5, 1, 11, 0);
	s.flow = 6;
	s.bytes = 97 * 1460;
	s.tag = 12;
	signal_in(&s);
	assert_int_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
	assert_true(c.bytes == 100 * 1460 && c.flows == 2);
	next_slot(2);
	token_out(6, 1, 12, 3); /* both have the class of the whole */
	next_slot(2);
	token_out(5, 2, 11, 3);
	/* the number's next flow belongs to none */
	s.flow = 6;
	s.tag = 13;
	s.coflow = 0;
	signal_in(&s);
	assert_int_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
	assert_true(c.bytes == 3 * 1460 && c.flows == 1);
	s.flow = 5;
	s.tag = 14;
	signal_in(&s);
	assert_int_not_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
}

/* ---- data ---- */

/* Host 2's data for an application here. */
static void data_in(struct frame *f, bool v6, __u32 body)
{
	struct desc d = plain_frame(2, 1, v6);

	memcpy(d.dst, bl0, 6);
	d.body = body;
	build(f, &d);
}

static void data__echo_comes_off(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct topd s;
		struct frame f, plain;

		top_setup(state);
		s = inbound(BL_TOP_SYNC, 5, 1, 11);
		s.v6 = v6;
		signal_in(&s);
		assert_int_equal(turn(sk->progs.bl_host_pace, &f), XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
		data_in(&plain, v6, 1000);
		f = plain;
		add_echo(&f, 5, 1);
		comes(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		assert_true(rx_get(0).frames == 1 && rx_get(0).served == plain.n && rx_get(0).echo == 1);
		/* unscheduled; with a NIC's padding behind it; and without an echo */
		f = plain;
		add_echo(&f, 5, 0);
		comes(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		put(&f, "\0\0\0\0\0\0", 6);
		comes(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		comes(&plain, &plain, XDP_REDIRECT, BL_R_TO_APP);
		assert_int_equal(rx_get(0).frames, 3);
		f = plain;
		put(&f, "\0\0\0\0\0\0\0\0", 8); /* padding alone stays */
		comes(&f, &f, XDP_REDIRECT, BL_R_TO_APP);
		f = plain;
		add_echo(&f, 5, 1);
		f.n--; /* cut short */
		comes(&f, &f, XDP_REDIRECT, BL_R_TO_APP);
		assert_int_equal(rx_get(0).frames, 3);
	}
}

static void data__echo_of_nothing(void **state)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 11);
	struct frame f, plain, out;
	static const struct {
		__u16 flow;
		__u32 seq;
	} t[] = { { 4, 1 }, { 5, 2 }, { 5, 0x7fffffff } };
	unsigned int i;

	(void)state;
	signal_in(&s);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	data_in(&plain, false, 100);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		f = plain;
		add_echo(&f, t[i].flow, t[i].seq);
		assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
		same_frame(&out, &plain); /* it comes off all the same */
	}
	assert_true(!rx_get(0).frames && !rx_get(0).echo);
}

/* ---- hints, unscheduled frames, ends ---- */

static void hint(__u16 sport, __u32 seq, __u64 bytes)
{
	struct bl_top_key k = { .sport = BL_BE16(sport), .dport = BL_BE16(53), .proto = 17 };
	struct bl_top_hint h = { .seq = seq, .bytes = bytes, .deadline_us = 900, .coflow = 42 };

	host_addr(k.saddr, false, 1);
	host_addr(k.daddr, false, 2);
	h.key = k;
	map_put(sk->maps.top_hints, bl_top_hint_hash(&k), &h);
}

static void hint__in_the_sync(void **state)
{
	struct topd s;
	struct frame f;

	(void)state;
	top.rules[0] = (struct bl_top_rule){ .port = 53, .proto = 17, .bytes = 777, .deadline_us = 5, .coflow = 6 };
	set_top();
	hint(1001, 2, 123456789);
	hint(1002, 3, 123456789); /* being written: it does not count, the rule does */
	held(1001, 1, false);
	s = sync_of(1001, 1, 1, 1, false);
	s.bytes = 123456789;
	s.deadline = 900;
	s.coflow = 42;
	build_top(&f, &s);
	paced(&f);
	held(1002, 1, false);
	s = sync_of(1002, 2, 1, 1, false);
	s.bytes = 777;
	s.deadline = 5;
	s.coflow = 6;
	build_top(&f, &s);
	paced(&f);
	top.rules[0].port = 54;
	set_top();
	held(1003, 1, false);
	s = sync_of(1003, 3, 1, 1, false);
	build_top(&f, &s);
	paced(&f);
}

/* As a socket with SO_PRIORITY @priority sends it into bl0. */
static void with_priority(const struct frame *f, __u32 priority)
{
	struct __sk_buff ctx = { .priority = priority };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->p, .data_size_in = f->n, .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_hint), &o), 0);
	assert_int_equal(o.retval, 0); /* it goes on */
}

static void priority__says_a_class(void **state)
{
	static const struct {
		__u32 priority, levels;
		__u64 frames;
	} t[] = { { 0, 6, 0 }, { 1, 6, 2155 }, { 2, 6, 465 }, { 5, 6, 5 }, { 6, 6, 1 }, { 7, 6, 0 }, { 1, 3, 22 }, { 5, 3, 5 }, { 1, 1, 1 } };
	unsigned int i, k;
	struct desc d;
	struct frame f, want;
	struct topd s;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		top_setup(state);
		for (k = t[i].levels; k < BL_TOP_CLASSES; k++)
			top.limit[k - 1] = ~0ULL;
		set_top();
		d = app_frame(2, 1001, i & 1);
		build(&f, &d);
		with_priority(&f, t[i].priority);
		give(&f, BL_R_HELD);
		s = sync_of(1001, 1, 1, 1, i & 1);
		s.bytes = t[i].frames * 1460;
		build_top(&want, &s);
		paced(&want);
	}
	/* what the application said stands; another policy looks at nothing */
	top_setup(state);
	hint(1001, 2, 777);
	d = app_frame(2, 1001, false);
	build(&f, &d);
	with_priority(&f, 6);
	give(&f, BL_R_HELD);
	assert_int_equal(tx_get(1).bytes, 777);
	set_policy(BL_POLICY_NONE);
	d = app_frame(2, 1002, false);
	build(&f, &d);
	with_priority(&f, 6);
	set_policy(BL_POLICY_TOP);
	give(&f, BL_R_HELD);
	assert_int_equal(tx_get(2).bytes, 0);
}

static void unscheduled__follow_the_sync(void **state)
{
	struct frame a, b, f;
	struct topd s;

	(void)state;
	top.unscheduled = 1;
	set_top();
	hint(1001, 2, 2000);
	a = held(1001, 1, false);
	b = held(1001, 2, false);
	s = sync_of(1001, 1, 1, 2, false);
	s.bytes = 2000;
	s.deadline = 900;
	s.coflow = 42;
	s.unsched = 1;
	build_top(&f, &s);
	paced(&f);
	add_echo(&a, 1, 0);
	a.p[6] |= BL_TOP_UNSCHED_MAC0;
	paced(&a);
	idle();
	assert_int_equal(balanced(QUEUES), 1);
	s = token_of(1001, 1, 1);
	build_top(&f, &s);
	add_echo(&b, 1, 1);
	comes(&f, &b, XDP_TX, BL_R_TOKEN_USED);
	assert_true(tx_get(1).unscheduled == 1 && tx_get(1).tokens == 1);
}

static void flow__ends_and_its_number_goes_on(void **state)
{
	struct frame a = held(1001, 1, false), f;
	struct topd s = token_of(1001, 1, 1), fin;
	struct bl_due d;
	__u32 tag = tx_get(1).tag;

	(void)state;
	build_top(&f, &s);
	comes(&f, (add_echo(&a, 1, 1), &a), XDP_TX, BL_R_TOKEN_USED);
	top.idle_ns = 0;
	set_top();
	fin = (struct topd){ .sender = 1, .receiver = 2, .sport = 1001, .dport = 53, .op = BL_TOP_FIN, .flow = 1, .seq = 1, .tag = tag, .bytes = a.n - 8, .ts = bus_now };
	build_top(&f, &fin);
	paced(&f);
	d = due_get();
	assert_int_equal(d.at[1], BL_DUE_NEVER);
	assert_true(tx_get(1).state == BL_TOP_FREE && top_page_get().freed == 1);
	s.seq = 2;
	s.tag = tag;
	build_top(&f, &s);
	refused(&f, BL_R_TOKEN_UNKNOWN);
	top.idle_ns = HOUR_NS;
	set_top();
	held(1009, 1, false);
	assert_int_equal(due_get().given, 1);
	assert_true(tx_get(1).state == BL_TOP_ASKING && tx_get(1).tag != tag && tx_get(1).key.sport == BL_BE16(1009));
	s = sync_of(1009, 1, 1, 1, false);
	build_top(&f, &s);
	paced(&f);
}

static void policy__changed_with_frames_held(void **state)
{
	struct frame a = held(1001, 1, false), b = held(1001, 2, false), f;
	struct topd s = sync_of(1001, 1, 1, 2, false), t = token_of(1001, 1, 1);
	struct bl_due d;

	(void)state;
	build_top(&f, &s);
	paced(&f);
	set_policy(BL_POLICY_NONE);
	d = due_get();
	d.at[1] = d.next = 0;
	due_put(&d);
	paced(&a);
	paced(&b);
	idle();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(tx_get(1).state, BL_TOP_FREE); /* the number is for others */
	build_top(&f, &t);
	comes(&f, &f, XDP_REDIRECT, BL_R_TO_APP); /* no business of that policy's */
	set_policy(BL_POLICY_TOP);
	refused(&f, BL_R_TOKEN_UNKNOWN);
}

static void policy__what_another_one_held_goes_at_once(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct bl_due due;
	struct frame f;

	(void)state;
	set_policy(BL_POLICY_NONE);
	build(&f, &d);
	give(&f, BL_R_HELD);
	set_policy(BL_POLICY_TOP);
	due = due_get();
	assert_int_equal(due.given, 1);
	paced(&f);
	idle();
	held(1001, 1, false);
	assert_int_equal(due_get().given, 2);
}

/* ---- what the loader computes ---- */

static void loader__limits(void **state)
{
	static const struct {
		double a, b, p;
		unsigned int k;
		uint64_t limit[5];
	} t[] = {
		{ 1, 0, 10000, 6, { 5, 22, 100, 465, 2155 } },
		{ 1, 0, 64, 6, { 2, 4, 8, 16, 32 } }, /* exact powers */
		{ 1, 0, 1000, 3, { 10, 100, ~0ULL, ~0ULL, ~0ULL } },
		{ 2, 4, 64, 6, { 0, 0, 2, 6, 14 } },
		{ 0.5, 0, 64, 6, { 4, 8, 16, 32, 64 } },
		{ 1, 0, 20000, 1, { ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL } },
	};
	unsigned int i, c;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (c = 1; c < BL_TOP_CLASSES; c++)
			if (bl_top_limit(c, t[i].k, t[i].a, t[i].b, t[i].p) != t[i].limit[c - 1])
				fail_msg("row %u: class %u from %llu", i, c, (unsigned long long)bl_top_limit(c, t[i].k, t[i].a, t[i].b, t[i].p));
}

static void loader__figures(void **state)
{
	struct bl_top_opts o = { { 0 } };
	struct bl_top_cfg c;
	struct bl_err err;

	(void)state;
	o.v[BL_TOP_O_BASE] = 10 + 1;
	o.v[BL_TOP_O_HOPS] = 2 + 1;
	o.v[BL_TOP_O_HEADROOM] = 0 + 1;
	bl_top_defaults(&o);
	assert_int_equal(bl_top_check(&o, &err), 0);
	bl_top_make(&o, 838861, &c); /* 10 Gbit/s: 0.8 ns per byte */
	assert_int_equal(c.slot_ns, 1298);
	assert_int_equal(c.expiry_ns, 10000 + 16 * 1298);
	assert_true(c.law == BL_TOP_LAW_NS2 && c.levels == 6 && c.alpha == BL_TOP_ONE / 2 && c.w_max == BL_TOP_ONE / 2 && c.sync_ns == 2000000 && c.dead_ns == 50000000);
	o.v[BL_TOP_O_HEADROOM] = 5 + 1;
	o.v[BL_TOP_O_EXPIRY] = 45 + 1;
	bl_top_make(&o, 838861, &c);
	assert_int_equal(c.slot_ns, 1366);
	assert_int_equal(c.expiry_ns, 45000);
	o.v[BL_TOP_O_LEVELS] = 7 + 1;
	assert_int_equal(bl_top_check(&o, &err), -EINVAL);
	o.v[BL_TOP_O_LEVELS] = 6 + 1;
	o.v[BL_TOP_O_W_MIN] = 100 + 1;
	assert_int_equal(bl_top_check(&o, &err), -EINVAL);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_TOP, BY_TOP | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, top_setup)
	const struct CMUnitTest tests[] = {
		CASE(sync__byte_exact), CASE(flow__one_number_each), CASE(hold__full), CASE(hold__no_more_numbers), CASE(control__goes_at_once), CASE(token__becomes_the_held_frame), CASE(token__lengths),
		CASE(token__expedited_first), CASE(token__wasted_becomes_a_stop), CASE(token__refusals), CASE(message__malformed), CASE(token__that_cannot_grow), CASE(token__answer_that_fits_no_frame), CASE(receiver__sends_tokens), CASE(receiver__v6),
		CASE(receiver__best_class_then_turns), CASE(receiver__another_flow_by_that_number), CASE(receiver__fin_frees_the_place), CASE(receiver__sender_died), CASE(receiver__full), CASE(receiver__clock_void),
		CASE(receiver__coflow), CASE(data__echo_comes_off), CASE(data__echo_of_nothing), CASE(hint__in_the_sync), CASE(priority__says_a_class), CASE(unscheduled__follow_the_sync), CASE(flow__ends_and_its_number_goes_on),
		CASE(policy__changed_with_frames_held), CASE(policy__what_another_one_held_goes_at_once), cmocka_unit_test(loader__limits), cmocka_unit_test(loader__figures),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("top", tests, setup, NULL);
}
