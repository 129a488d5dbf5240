// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fastpass on a host: bl_hold_xdp takes frames and counts what they want, bl_host_pace sends them
 * in slots. The test is the daemon: it enters slots into "fp_dests". v0 plays the NIC, v1 bl0d.
 * Slots are an hour long where time must not matter.
 */
#include "core/fastpass/fastpass_core.h" /* before cfg is a name */
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"

#include "maps/fcp_abi.h"

#define HOLD_SLOTS 128
#define QUEUES     (BL_DESTS * BL_HOLD_CLASSES)
#define HOUR_NS    3600000000000ULL

static struct bl_hold_cfg hold;
static struct bl_fp_page page;
static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

static struct bl_fp_dest dest_get(__u32 n)
{
	struct bl_fp_dest d;

	map_get(sk->maps.fp_dests, n, &d);
	return d;
}

static void set_hold(void)
{
	map_put(sk->maps.hold_cfg, 0, &hold);
}

static int fp_setup(void **state)
{
	static const struct bl_hold_dest none;
	static const struct bl_fp_dest no_dest;
	struct bpf_devmap_val v = { 0 };
	struct bl_mac_key k;
	__u32 i;

	host_setup(state);
	/*
	 * the slot before is late, but not too late, and no slot of a test is missed unless it is
	 * meant to
	 */
	hold = (struct bl_hold_cfg){ .on = 1,
				     .policy = BL_POLICY_FASTPASS,
				     .slot_ns = 2000000000U,
				     .slot_bytes = 1514,
				     .slot_late_ns = 4000000000U };
	memcpy(hold.mac, bl0, 6);
	set_hold();
	page = (struct bl_fp_page){ .offset_ns = HOUR_NS };
	map_put(sk->maps.fp_page, 0, &page);
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	while (!bpf_map_get_next_key(bpf_map__fd(sk->maps.hold_dests), NULL, &k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.hold_dests), &k), 0);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.hold_free), NULL, &i))
		;
	for (i = 0; i < BL_DESTS; i++) {
		map_put(sk->maps.hold_macs, i, &none);
		map_put(sk->maps.fp_dests, i, &no_dest);
	}
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
	return 0;
}

static void give_frame(const struct frame *in)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, BL_R_HELD }));
}

static void give_n(__u32 to, __u32 first, __u32 n, __u32 len)
{
	struct frame f;
	__u32 i;

	for (i = first; i < first + n; i++) {
		raw_frame(&f, 1, to, len, i);
		give_frame(&f);
	}
}

static __u64 slot_now(void)
{
	return bl_fp_slot(page.offset_ns, hold.slot_ns, mono_now());
}

/* as the daemon does: @slot is given to destination @n, which is an endpoint */
static void slot_for(__u32 n, __u64 slot, __u8 path)
{
	struct bl_fp_dest d = dest_get(n);
	__u64 lapsed = 0, begin = bl_fp_slot_begin(page.offset_ns, hold.slot_ns, slot);
	struct bl_due due;

	d.endpoint = 1;
	assert_int_equal(bl_fp_give(&d, slot, path, slot, &lapsed), 0);
	map_put(sk->maps.fp_dests, n, &d);
	due = due_get();
	due.at[n] = due.at[n] < begin ? due.at[n] : begin;
	due.next = due.next < begin ? due.next : begin;
	due_put(&due);
}

static void endpoint(__u32 n, __u32 value)
{
	struct bl_fp_dest d = dest_get(n);

	d.endpoint = value;
	map_put(sk->maps.fp_dests, n, &d);
}

static void comes(const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
}

static void come_n(__u32 to, __u32 first, __u32 n, __u32 len)
{
	struct frame f;

	for (; n--; first++) {
		raw_frame(&f, 1, to, len, first);
		comes(&f);
	}
}

static void idle(void)
{
	struct frame out;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

static void hold__wants_slots(void **state)
{
	(void)state;
	give_n(0, 0, 2, 1514);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 2);
	give_n(2, 0, 3, 488); /* three share a slot: 3 x 512 of 1538 byte times */
	assert_int_equal(BL_FP_WANTED(dest_get(2).want), 1);
	give_n(2, 3, 1, 60);
	assert_int_equal(BL_FP_WANTED(dest_get(2).want), 2);
	idle();
	assert_int_equal(balanced(QUEUES), 6);
}

static void hold__broadcast_does_not_wait(void **state)
{
	struct frame f;

	(void)state;
	raw_frame(&f, 1, 0, 60, 0);
	memset(f.p, 0xff, 6);
	give_frame(&f);
	comes(&f);
	assert_int_equal(dest_get(0).want, 0);
	assert_int_equal(balanced(QUEUES), 0);
}

static void slot__one_full_frame_each(void **state)
{
	struct bl_fp_dest d;

	(void)state;
	give_n(0, 0, 3, 1514);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 0, 1, 1514);
	idle();
	slot_for(1, slot_now() - 1, BL_FP_NO_PATH); /* late, but not too late */
	come_n(0, 1, 1, 1514);
	idle();
	slot_for(1, slot_now() + 100, BL_FP_NO_PATH);
	idle();
	assert_true(due_get().at[1] > mono_now());
	d = dest_get(1);
	assert_int_equal(d.used, 2);
	assert_int_equal(d.frames, 2);
	assert_int_equal(d.idle | d.missed, 0);
	assert_int_equal(bl_fp_given(&d), 1);
	assert_int_equal(balanced(QUEUES), 1);
}

static void slot__small_frames_share_it(void **state)
{
	(void)state;
	give_n(0, 0, 4, 488);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 0, 3, 488);
	idle();
	assert_int_equal(dest_get(1).used, 1);
	assert_int_equal(dest_get(1).frames, 3);
	assert_int_equal(balanced(QUEUES), 1);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 3, 1, 488);
	idle();
	assert_int_equal(balanced(QUEUES), 0);
}

static void slot__expedited_first(void **state)
{
	struct desc d = plain_frame(1, 0, false);
	struct frame f;

	(void)state;
	give_n(0, 0, 1, 1000);
	d.tos = 46 << 2;
	build(&f, &d);
	give_frame(&f);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	comes(&f);
	come_n(0, 0, 1, 1000);
	idle();
}

static void slot__missed_is_counted(void **state)
{
	struct bl_fp_dest d;

	(void)state;
	give_n(0, 0, 1, 100);
	slot_for(1, slot_now() - 3, BL_FP_NO_PATH);
	slot_for(1, slot_now() - 4, BL_FP_NO_PATH);
	idle();
	d = dest_get(1);
	assert_int_equal(d.missed, 2);
	assert_int_equal(d.used | d.idle, 0);
	/* asking again for what was missed is the daemon's */
	assert_int_equal(BL_FP_WANTED(d.want), 1);
	assert_int_equal(balanced(QUEUES), 1);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 0, 1, 100);
}

static void slot__without_a_frame(void **state)
{
	(void)state;
	give_n(0, 0, 1, 100);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	slot_for(1, slot_now() - 1, BL_FP_NO_PATH);
	come_n(0, 0, 1, 100);
	idle();
	assert_int_equal(dest_get(1).used, 1);
	assert_int_equal(dest_get(1).idle, 1);
	idle();
}

static void heal__what_nobody_asked_for(void **state)
{
	(void)state;
	/* held under another policy */
	hold.policy = BL_POLICY_PL2;
	hold.k_frames = 4;
	hold.k_bytes = 6056;
	hold.retry_ns = HOUR_NS;
	set_hold();
	give_n(0, 0, 2, 100);
	assert_int_equal(dest_get(1).want, 0);
	hold.policy = BL_POLICY_FASTPASS;
	set_hold();
	endpoint(1, 1);
	idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1); /* one at a time, as slots come */
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 0, 2, 100);
	idle();
}

static void endpoint__unknown_waits_outside_goes(void **state)
{
	(void)state;
	give_n(0, 0, 2, 100);
	idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	endpoint(1, BL_FP_OUTSIDE);
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	come_n(0, 0, 2, 100);
	give_n(0, 2, 1, 100);
	come_n(0, 2, 1, 100);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	idle();
}

static void policy__changed_to_none(void **state)
{
	(void)state;
	give_n(0, 0, 3, 1514);
	endpoint(1, 1);
	idle();
	hold.policy = BL_POLICY_NONE;
	set_hold();
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	come_n(0, 0, 3, 1514);
	assert_int_equal(balanced(QUEUES), 0);
}

static void fall_back(__u32 on)
{
	page.fallback = on;
	map_put(sk->maps.fp_page, 0, &page);
}

/* No arbiter answers: what comes leaves at once, and wants nothing. Then one does. */
static void fallback__goes_at_once(void **state)
{
	(void)state;
	endpoint(1, 1);
	fall_back(1);
	give_n(0, 0, 3, 1514);
	assert_int_equal(dest_get(1).want, 0);
	come_n(0, 0, 3, 1514);
	idle();
	assert_int_equal(dest_get(1).frames | dest_get(1).used, 0);
	fall_back(0);
	give_n(0, 3, 2, 1514);
	idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 2);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 3, 1, 1514);
	idle();
	assert_int_equal(balanced(QUEUES), 1);
}

/* Held before it fell back: the daemon lowers the destination's time, and all leave. */
static void fallback__what_was_held_before(void **state)
{
	struct bl_due d;

	(void)state;
	endpoint(1, 1);
	give_n(0, 0, 3, 1514);
	idle();
	fall_back(1);
	d = due_get();
	d.at[1] = d.next = 0;
	due_put(&d);
	come_n(0, 0, 3, 1514);
	idle();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 3); /* the daemon goes on asking */
	fall_back(0);
}

/* Held while it had fallen back, and not sent before an arbiter answered: asked for like others. */
static void fallback__ends_with_frames_held(void **state)
{
	(void)state;
	endpoint(1, 1);
	fall_back(1);
	give_n(0, 0, 2, 100);
	fall_back(0);
	idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	slot_for(1, slot_now(), BL_FP_NO_PATH);
	come_n(0, 0, 2, 100);
	idle();
}

static bool fp_rung(void)
{
	static int fd = -1;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	if (fd < 0) {
		fd = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, bpf_map__fd(sk->maps.fp_bell), &ev),
				 0);
	}
	return epoll_wait(fd, &ev, 1, 20) == 1;
}

static void bell__once_per_sleep(void **state)
{
	struct bl_fp_page p;

	(void)state;
	fp_rung();
	give_n(0, 0, 1, 1514);
	assert_false(fp_rung()); /* it is awake */
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 1, 1, 1000);
	assert_true(fp_rung());
	map_get(sk->maps.fp_page, 0, &p);
	assert_int_equal(p.asleep, 0);
	give_n(0, 2, 1, 1514);
	assert_false(fp_rung());
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 3, 1, 1514);
	assert_true(fp_rung());
}

static void bell__not_for_a_shared_slot(void **state)
{
	(void)state;
	fp_rung();
	give_n(0, 0, 1, 100);
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 1, 1, 100);
	assert_false(fp_rung());
}

/* ---- the path ---- */

static void path__in_the_mac(void **state)
{
	static const __u8 paths[] = { 0, 1, 14, BL_FP_NO_PATH };
	struct frame f;
	__u32 i;

	(void)state;
	hold.path_field = BL_FIELD_MAC;
	set_hold();
	for (i = 0; i < sizeof(paths); i++) {
		raw_frame(&f, 1, 0, 1514, i);
		give_frame(&f);
		slot_for(1, slot_now(), paths[i]);
		if (paths[i] != BL_FP_NO_PATH)
			f.p[6] = (__u8)((f.p[6] & 0x0f) | (paths[i] + 1) << 4);
		comes(&f);
	}
	hold.path_field = BL_FIELD_NONE;
	set_hold();
	raw_frame(&f, 1, 0, 1514, i);
	give_frame(&f);
	slot_for(1, slot_now(), 3);
	comes(&f);
}

/*
 * A tunnel's frame leaves with path 5's source port, and a checksum that is right where there was
 * one; others are left as they are.
 */
static void path__as_udp_port(void **state)
{
	static const struct {
		__u16 dport;
		bool v6, check, changed;
	} t[] = { { 4789, false, false, true }, { 4789, false, true, true },
		  { 4789, true, true, true },   { 6081, true, false, true },
		  { 6081, false, true, true },  { 53, false, true, false },
		  { 4790, false, true, false } };
	__u32 i;

	(void)state;
	hold.path_field = BL_FIELD_UDP;
	hold.udp_ports = 50000;
	set_hold();
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(1, 0, t[i].v6);
		struct frame f, want;

		d.dport = t[i].dport;
		d.sport = 1234;
		d.csum = t[i].check;
		build(&f, &d);
		give_frame(&f);
		slot_for(1, slot_now(), 5);
		if (t[i].changed)
			d.sport = 50005;
		build(&want, &d);
		comes(&want);
	}
}

/*
 * A checksum that comes out as zero is written as all ones: zero says that there is none, which
 * IPv6 does not allow.
 */
static void path__checksum_of_zero(void **state)
{
	__u32 v, psn;

	(void)state;
	hold.path_field = BL_FIELD_UDP;
	hold.udp_ports = 50000;
	set_hold();
	for (v = 0; v < 2; v++) {
		struct desc d = plain_frame(1, 0, v), want;
		struct frame f;
		__u32 at = hdr_off(&d) - 2;

		d.dport = 4789;
		d.csum = true;
		for (psn = 0; psn < 65536; psn++) {
			want = d;
			want.psn = psn;
			want.sport = 50005;
			build(&f, &want);
			if (f.p[at] == 0xff && f.p[at + 1] == 0xff)
				break;
		}
		assert_true(psn < 65536);
		d.psn = psn;
		d.sport = 1234;
		build(&f, &d);
		give_frame(&f);
		slot_for(1, slot_now(), 5);
		build(&f, &want);
		comes(&f);
	}
}

/* ---- frames by peer and path ---- */

static struct bl_fp_paths paths_expected;

static void paths_are_expected(void)
{
	struct bl_fp_paths p;

	map_get(sk->maps.fp_paths, 0, &p);
	assert_memory_equal(&p, &paths_expected, sizeof(p));
}

static void counting(__u32 field, __u32 on)
{
	map_get(sk->maps.fp_paths, 0, &paths_expected); /* they only grow */
	hold.path_field = field;
	hold.count_paths = on;
	hold.udp_ports = 50000;
	set_hold();
}

static void count__what_left(void **state)
{
	static const struct {
		__u32 field, on, endpoint;
		__u8 path;
		__u16 dport;
		__u32 column; /* BL_FP_COLUMNS: not counted */
	} t[] = { { BL_FIELD_MAC, 1, 1, 0, 53, 0 },
		  { BL_FIELD_MAC, 1, 1, 14, 53, 14 },
		  { BL_FIELD_MAC, 1, 1, BL_FP_NO_PATH, 53, BL_FP_PATHS },
		  { BL_FIELD_MAC, 1, 1, 15, 53, BL_FP_PATHS },
		  { BL_FIELD_NONE, 1, 1, 3, 53, BL_FP_PATHS },
		  { BL_FIELD_UDP, 1, 1, 3, 4789, 3 },
		  { BL_FIELD_UDP, 1, 1, 63, 6081, 63 },
		  { BL_FIELD_UDP, 1, 1, 3, 53, BL_FP_PATHS },
		  /* its own port is one of paths' */
		  { BL_FIELD_UDP, 1, 1, BL_FP_NO_PATH, 4789, 7 },
		  { BL_FIELD_MAC, 0, 1, 2, 53, BL_FP_COLUMNS },
		  { BL_FIELD_MAC, 1, 2, 2, 53, BL_FP_COLUMNS } };
	struct bl_fp_dest dest;
	struct frame out;
	__u32 i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(1, 0, i & 1);
		struct frame f;

		counting(t[i].field, t[i].on);
		d.dport = t[i].dport;
		d.sport = 50007;
		build(&f, &d);
		give_frame(&f);
		slot_for(1, slot_now(), t[i].path);
		dest = dest_get(1);
		dest.endpoint = t[i].endpoint; /* 2: there is no such entry */
		map_put(sk->maps.fp_dests, 1, &dest);
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
		if (t[i].column < BL_FP_COLUMNS)
			paths_expected.sent[t[i].column]++;
		paths_are_expected();
	}
}

/* Without slots frames carry no path, and are counted as such: the other end counts them, too. */
static void count__without_slots(void **state)
{
	static const __u32 fields[] = { BL_FIELD_MAC, BL_FIELD_UDP, BL_FIELD_NONE };
	static const __u16 ports[] = { BL_FP_PATHS, 7, BL_FP_PATHS };
	__u32 i;

	(void)state;
	fall_back(1);
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct desc d = plain_frame(1, 0, false);
		struct frame f;

		counting(fields[i], 1);
		d.dport = 4789;
		d.sport = 50007;
		build(&f, &d);
		give_frame(&f);
		endpoint(1, 1);
		comes(&f);
		paths_expected.sent[ports[i]]++;
		paths_are_expected();
	}
	fall_back(0);
}

/* @bits: of the source's first byte; they are gone when the application gets it */
static void came(const struct desc *d, __u32 bits)
{
	struct frame f, out, want;

	build(&f, d);
	memcpy(f.p, bl0, 6);
	want = f;
	f.p[6] |= (__u8)bits;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	same_frame(&out, &want);
	paths_are_expected();
}

/* its peer, as the daemon enters it */
static void peer_is(const struct desc *d, __u32 kind)
{
	struct bl_mac_key k, old;
	__u32 number = 1;
	int fd = bpf_map__fd(sk->maps.fp_peers);

	while (!bpf_map_get_next_key(fd, NULL, &old))
		assert_int_equal(bpf_map_delete_elem(fd, &old), 0);
	memset(&k, 0, sizeof(k));
	k.kind = (__u8)kind;
	if (kind == 6)
		memcpy(k.upper, d->saddr, sizeof(k.upper));
	memcpy(k.mac + (kind == 4 ? 2 : 0),
	       kind == 4   ? d->saddr + 12
	       : kind == 6 ? d->saddr + 10
			   : d->src,
	       kind == 4 ? 4 : 6);
	assert_int_equal(bpf_map_update_elem(fd, &k, &number, BPF_ANY), 0);
}

static void count__what_came(void **state)
{
	static const struct {
		__u32 routed, v6, kind;
	} t[] = { { 0, 0, 0 }, { 0, 1, 0 }, { 1, 0, 4 }, { 1, 1, 6 } };
	__u32 i, path;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(0, 1, t[i].v6), other = plain_frame(2, 1, t[i].v6);

		/* ::1 of another rack's /64 is somebody else */
		if (t[i].kind == 6) {
			memcpy(other.saddr, d.saddr, sizeof(other.saddr));
			other.saddr[7] ^= 1;
		}
		hold.routed = t[i].routed;
		counting(BL_FIELD_MAC, 1);
		peer_is(&d, t[i].kind);
		for (path = 0; path < 15; path++) {
			paths_expected.came[path]++;
			came(&d, (path + 1) << 4);
		}
		paths_expected.came[BL_FP_PATHS]++;
		came(&d, 0);
		/* nobody that the daemon knows; the path is taken out all the same */
		came(&other, 0x30);
		counting(BL_FIELD_MAC, 0);
		came(&d, 0x10);
		counting(BL_FIELD_NONE, 1);
		paths_expected.came[BL_FP_PATHS]++;
		came(&d, 0);
		/* a tunnel's source port: the first path's, the last one's, and those beside */
		counting(BL_FIELD_UDP, 1);
		d.dport = 4789;
		d.sport = 50000;
		paths_expected.came[0]++;
		came(&d, 0);
		d.sport = 50063;
		paths_expected.came[63]++;
		came(&d, 0);
		d.sport = 50064;
		paths_expected.came[BL_FP_PATHS]++;
		came(&d, 0);
		d.sport = 49999;
		paths_expected.came[BL_FP_PATHS]++;
		came(&d, 0);
		d.dport = 4790;
		d.sport = 50001;
		paths_expected.came[BL_FP_PATHS]++;
		came(&d, 0);
	}
	hold.policy = BL_POLICY_NONE; /* under another policy nothing is counted */
	set_hold();
	came(&(struct desc[]){ plain_frame(0, 1, false) }[0], 0);
	hold.routed = 0;
}

/* what the sender never holds back, and does not count, is not counted here either */
static void count__not_arp(void **state)
{
	struct desc d = plain_frame(0, 1, false);
	struct frame f, out;

	(void)state;
	counting(BL_FIELD_MAC, 1);
	peer_is(&d, 0);
	raw_frame(&f, 0, 1, 60, 0);
	memcpy(f.p, bl0, 6);
	memcpy(f.p + 6, d.src, 6);
	f.p[12] = 0x08;
	f.p[13] = 0x06;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	paths_are_expected();
	f.p[13] = 0x99;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	paths_expected.came[BL_FP_PATHS]++;
	paths_are_expected();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	assert_true(reason_seen[BL_R_HELD] && reason_seen[BL_R_PACED]);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, fp_setup)
	const struct CMUnitTest tests[] = {
		CASE(hold__wants_slots),
		CASE(hold__broadcast_does_not_wait),
		CASE(slot__one_full_frame_each),
		CASE(slot__small_frames_share_it),
		CASE(slot__expedited_first),
		CASE(slot__missed_is_counted),
		CASE(slot__without_a_frame),
		CASE(heal__what_nobody_asked_for),
		CASE(fallback__goes_at_once),
		CASE(fallback__what_was_held_before),
		CASE(fallback__ends_with_frames_held),
		CASE(count__without_slots),
		CASE(endpoint__unknown_waits_outside_goes),
		CASE(policy__changed_to_none),
		CASE(bell__once_per_sleep),
		CASE(bell__not_for_a_shared_slot),
		CASE(path__in_the_mac),
		CASE(path__as_udp_port),
		CASE(path__checksum_of_zero),
		CASE(count__what_left),
		CASE(count__what_came),
		CASE(count__not_arp),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("fp", tests, net_up, NULL);
}
