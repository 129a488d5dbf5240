// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames from bl0 to bl0 over a rack, one by one. Every length arrives byte for byte and in order,
 * with and without reservations. A full hold ring loses only what did not fit. The promise to a
 * host that dies with a grant in hand is given back by the receiver.
 *
 * The frames have an ethertype of their own (0x88B6, local experimental 2), so that only the test
 * sends or takes them. Times are judged only where they are long: a second instead of milliseconds.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tests/net/rack.h"

#define PROTO    0x88B6
#define LEN_MIN  60
#define LEN_MAX  1514
#define PATIENCE 30000 /* ms, for a frame that has to arrive */

static uint64_t faults(void)
{
	static const enum bl_reason why[] = { BL_R_FRAME_SIZE,      BL_R_NO_SLOT, BL_R_QUEUE_FULL,
					      BL_R_REDIRECT_FAILED, BL_R_RSV_BAD, BL_R_RSV_OFF };
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < sizeof(why) / sizeof(why[0]); i++)
		n += rack_count_all(why[i]);
	return n;
}

/* While a rack starts, beacons may arrive before there is a pacer that drains them. */
static uint64_t faults_before;

/* No node is taken for dead, and no promise lapses, because this machine stood still. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind == LAB_HOST)
		cfg->admission.coming_us = 500000;
	else
		cfg->admission.lapse_us = 10000000;
}

static void open_rack(unsigned int hosts, enum bl_policy policy, uint64_t rate_bps, unsigned int k,
		      unsigned int beacon_us)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.beacon_us = beacon_us;
	rack.lab.spec.admission = (struct bl_admission_cfg){
		.on = true, .policy = policy, .rate_bps = rate_bps, .k = k
	};
	rack_open();
	rack_last_words = rack_dump;
	rack_settle();
	faults_before = faults();
}

/** struct station - bl0 of a host. */
struct station {
	uint8_t mac[6];
	int fd; /* packet socket there */
};

static struct station station(unsigned int host)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(PROTO) };
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), room = 16 << 20;
	struct ifreq r = { .ifr_name = "bl0" };
	struct station s;

	rack_enter(rack_host(host));
	s.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(PROTO));
	a.sll_ifindex = (int)if_nametoindex("bl0");
	CHECK(s.fd >= 0 && a.sll_ifindex && !bind(s.fd, (void *)&a, sizeof(a)) &&
		      !ioctl(s.fd, SIOCGIFHWADDR, &r),
	      "%s", strerror(errno));
	setsockopt(s.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	memcpy(s.mac, r.ifr_hwaddr.sa_data, 6);
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
	return s;
}

/* Makes frame @n of @len bytes; each byte depends on both. */
static void make(uint8_t *p, const struct station *from, const struct station *to, uint32_t n,
		 uint32_t len)
{
	uint32_t i;

	memcpy(p, to->mac, 6);
	memcpy(p + 6, from->mac, 6);
	p[12] = PROTO >> 8;
	p[13] = PROTO & 0xff;
	memcpy(p + 14, &n, sizeof(n));
	memcpy(p + 18, &len, sizeof(len));
	for (i = 22; i < len; i++)
		p[i] = (uint8_t)((i + 31 * n + len) * 2654435761u >> 11);
}

static void give(const struct station *from, const struct station *to, uint32_t n, uint32_t len)
{
	uint8_t p[LEN_MAX];

	make(p, from, to, n, len);
	CHECK(send(from->fd, p, len, 0) == (ssize_t)len, "frame %u: %s", n, strerror(errno));
}

/*
 * Takes the next frame that arrives at @at within @ms, and compares each byte if @from is known.
 * Returns its number, or -1 if none arrived.
 */
static int64_t take(const struct station *at, const struct station *from, unsigned int ms)
{
	uint64_t end = t_mono() + ms * 1000000ULL;
	struct sockaddr_ll a;
	socklen_t alen = sizeof(a);
	uint8_t got[2048], want[LEN_MAX];
	uint32_t n, len;
	ssize_t k;

	for (;;) {
		k = recvfrom(at->fd, got, sizeof(got), MSG_DONTWAIT, (void *)&a, &alen);
		if (k >= 0 && a.sll_pkttype != PACKET_OUTGOING)
			break;
		if (k >= 0)
			continue;
		if (t_mono() > end)
			return -1;
		rack_serve(1);
	}
	CHECK(k >= 22, "%zd bytes", k);
	memcpy(&n, got + 14, sizeof(n));
	memcpy(&len, got + 18, sizeof(len));
	CHECK((ssize_t)len == k && len <= LEN_MAX, "frame %u: %zd bytes instead of %u", n, k, len);
	if (!from)
		return n;
	make(want, from, at, n, len);
	CHECK(!memcmp(got, want, len), "frame %u of %u bytes: other bytes came than were sent", n,
	      len);
	return n;
}

/*
 * Checks the counters of faults of the switch and the hosts, which may not rise in any case here.
 */
static void no_faults(void)
{
	CHECK(faults() == faults_before, "%" PRIu64 " faults", faults() - faults_before);
}

/* ---- bytes ---- */

static void every_length(enum bl_policy policy)
{
	struct station a, b;
	uint32_t len, next = LEN_MIN;

	rack.tweak = patient;
	open_rack(2, policy, 20000000, 0, 10000); /* a held frame is dropped after 2.5 s */
	a = station(0);
	b = station(1);
	for (len = LEN_MIN; len <= LEN_MAX; len++) {
		give(&a, &b, len, len);
		/* never more than fit a hold queue */
		while (next <= len && (len - next >= 100 || len == LEN_MAX)) {
			int64_t n = take(&b, &a, PATIENCE);

			CHECK(n == next, "frame %" PRId64 " came, %u is next", n, next);
			next++;
		}
	}
	CHECK(take(&b, &a, 50) == -1, "one came twice");
	CHECK(rack_count(rack_host(0), BL_R_HELD) >= LEN_MAX - LEN_MIN + 1, "they were not held");
	CHECK(rack_count(0, BL_R_QUEUED) >= LEN_MAX - LEN_MIN + 1, "they did not go through a "
								   "metered port");
	CHECK(!rack_count(0, BL_R_RSV_GRANTED) == (policy == BL_POLICY_NONE), "reservations: %llu",
	      (unsigned long long)rack_count(0, BL_R_RSV_GRANTED));
	no_faults();
}

RACK_TEST(frames__60_to_1514)
{
	every_length(BL_POLICY_NONE);
}

RACK_TEST(frames__60_to_1514_reserved)
{
	every_length(BL_POLICY_PL2);
}

/* ---- a full ring ---- */

#define RING  64
#define BURST 200 /* frames: fewer than fit into bl0's own ring unread */
#define FULL  500 /* frames that must not fit */

static void small_rings(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	patient(cfg, n);
	if (n->kind == LAB_HOST)
		cfg->admission.queue.frames = RING;
}

static uint64_t met(void)
{
	return rack_count(rack_host(0), BL_R_HELD) + rack_count(rack_host(0), BL_R_HOLD_FULL);
}

/* What did not fit is counted, what fitted arrives in order, and the ring continues to work. */
RACK_TEST(ring__full)
{
	uint64_t held, full, before, end = t_mono() + 60000000000ULL;
	struct station a, b;
	uint32_t i, came = 0;
	int64_t n, last = -1;

	rack.tweak = small_rings;
	open_rack(2, BL_POLICY_PL2, 2000000, 0, 50000); /* a frame takes 4 ms */
	a = station(0);
	b = station(1);
	/* as many bursts as needed where the machine leaves time between two frames */
	for (i = 0, before = met(); rack_count(rack_host(0), BL_R_HOLD_FULL) < FULL;) {
		do
			give(&a, &b, i++, 1000);
		while (i % BURST);
		for (; met() - before < i; rack_serve(1))
			CHECK(t_mono() < end, "%" PRIu64 " of %u came", met() - before, i);
	}
	while (came + rack_count(rack_host(0), BL_R_HOLD_FULL) < i) {
		n = take(&b, &a, PATIENCE);
		CHECK(n > last, "frame %" PRId64 " after %" PRId64, n, last);
		last = n;
		came++;
	}
	held = rack_count(rack_host(0), BL_R_HELD);
	full = rack_count(rack_host(0), BL_R_HOLD_FULL);
	CHECK(came >= RING && came <= held && came + full == i, "%u came, %llu did not fit, of %u",
	      came, (unsigned long long)full, i);
	give(&a, &b, i, 60);
	CHECK(take(&b, &a, PATIENCE) == i, "the ring does not work any more");
	no_faults();
}

/* ---- a sender that dies ---- */

#define RATE       2000000ULL /* a full frame takes 6 ms */
#define K          16
#define HAND       4       /* frames that it dies with */
#define LAST       1000000 /* number of the first frame that it sends when it is back */
#define HAND_BYTES (HAND * BL_WIRE_BYTES(1514u)) /* byte times */

static struct bl_rsv_pair promised(unsigned int in, unsigned int out)
{
	int fd = rack_map(0, BL_MAP_RSV_PAIRS), cfd = rack_map(0, BL_MAP_RSV_CFG);
	struct bl_rsv_cfg cfg;
	struct bl_rsv_pair p;
	uint32_t zero = 0, key;

	CHECK(!bpf_map_lookup_elem(cfd, &zero, &cfg), "%s", strerror(errno));
	key = in << cfg.pair_shift | out;
	CHECK(!bpf_map_lookup_elem(fd, &key, &p), "%s", strerror(errno));
	close(fd);
	close(cfd);
	return p;
}

static void look(struct bl_rsv *all)
{
	int fd = rack_map(0, BL_MAP_RSV);
	uint32_t zero = 0;

	CHECK(!bpf_map_lookup_elem(fd, &zero, all), "%s", strerror(errno));
	close(fd);
}

/*
 * Compares the accounts while nothing is under way, because the pairs are read one after the other.
 */
static void books(struct bl_rsv *all)
{
	unsigned int i, o, ports = rack.lab.spec.hosts;

	look(all);
	for (i = 0; i < ports; i++) {
		uint64_t ins = 0;

		for (o = 0; o < ports; o++)
			ins += promised(i, o).bytes;
		CHECK(all->port[i].in.bytes == ins, "port %u: %llu promised, %llu in its pairs", i,
		      (unsigned long long)all->port[i].in.bytes, (unsigned long long)ins);
		CHECK(all->port[i].granted ==
			      all->port[i].used + all->port[i].lapsed + all->port[i].released + ins,
		      "port %u: the books do not balance", i);
	}
}

/*
 * Serves until @in has a promise to h3 that is not used yet. Returns false if everything arrived
 * before this process could see it.
 */
static bool has_hand(unsigned int in, uint64_t used_before)
{
	uint64_t end = t_mono() + 60000000000ULL;
	struct bl_rsv all;

	while (!promised(in, 2).bytes) {
		look(&all);
		if (all.port[in].used != used_before)
			return false;
		CHECK(t_mono() < end, "h%u was promised nothing", in + 1);
		rack_serve(1);
	}
	return true;
}

/*
 * h2 has a promise of 16 frames to h3, which take 97 ms. h1 has 4 frames for h3 and gets its grant
 * at once, for some 90 ms from now. It dies before that: its daemon ends, the programs stay as
 * after a SIGKILL, and nothing is sent any more. h3 was told by the copy of the grant, and gives
 * back what does not arrive.
 */
RACK_TEST(sender__dies_with_a_grant)
{
	static struct bl_rsv all, was;
	struct station a, b, c;
	uint32_t i, came, tries = 0;
	uint64_t end, gone;
	int64_t n;
	bool died;

	rack.tweak = patient;
	open_rack(3, BL_POLICY_PL2, RATE, K, 50000);
	rack_settle();
	a = station(0);
	b = station(1);
	c = station(2);
	/* Repeat if the machine stood still for so long that h1's slot came before its end. */
	do {
		CHECK(tries++ < 50, "h1 never dies in time");
		books(&was);
		gone = rack_count(0, BL_R_RELEASED);
		for (i = 0; i < K; i++)
			give(&b, &c, i, LEN_MAX);
		died = has_hand(1, was.port[1].used);
		for (i = 0; i < HAND; i++)
			give(&a, &c, 1000 * tries + i, LEN_MAX);
		died = has_hand(0, was.port[0].used) && died;
		rack_close_node(rack_host(0));
		look(&all);
		died = died && promised(0, 2).bytes == HAND_BYTES &&
		       all.port[0].used == was.port[0].used;
		/*
		 * The others continue meanwhile. What h1 held in an earlier try may arrive at any
		 * time.
		 */
		for (came = 0; came < K; came += n < 1000) {
			n = take(&c, NULL, PATIENCE);
			CHECK(n == came || (n >= 1000 && (!died || n < 1000 * tries)),
			      "frame %" PRId64 " came, %u of h2 is next", n, came);
		}
		if (!died)
			rack_open_node(rack_host(0));
		while (!died && take(&c, NULL, 500) >= 0)
			;
	} while (!died);
	for (end = t_mono() + 60000000000ULL; promised(0, 2).bytes;) {
		CHECK(t_mono() < end, "what a dead sender was promised is not given back");
		rack_serve(5);
	}
	books(&all);
	CHECK(all.port[0].released - was.port[0].released == HAND_BYTES &&
		      all.port[0].lapsed == was.port[0].lapsed &&
		      all.port[0].used == was.port[0].used,
	      "h1: %llu released, %llu lapsed, %llu used", (unsigned long long)all.port[0].released,
	      (unsigned long long)all.port[0].lapsed, (unsigned long long)all.port[0].used);
	CHECK(rack_count(0, BL_R_RELEASED) - gone == 1, "%llu releases",
	      (unsigned long long)rack_count(0, BL_R_RELEASED));
	CHECK(all.port[1].used - was.port[1].used == (uint64_t)K * BL_WIRE_BYTES(LEN_MAX),
	      "h2 used %llu", (unsigned long long)all.port[1].used);
	/* It comes back: what it had in hand may be lost, what it sends from now on may not. */
	rack_open_node(rack_host(0));
	rack_serve(200);
	for (i = 0; i < HAND; i++)
		give(&a, &c, LAST + i, LEN_MAX);
	for (i = LAST; i < LAST + HAND;) {
		n = take(&c, &a, PATIENCE);
		CHECK(n == i || (i == LAST && n >= 1000 && n < 1000 * tries + HAND),
		      "frame %" PRId64 " came, %u is next", n, i);
		i += n >= LAST;
	}
	books(&all);
	no_faults();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames__60_to_1514),
		cmocka_unit_test(frames__60_to_1514_reserved),
		cmocka_unit_test(ring__full),
		cmocka_unit_test(sender__dies_with_a_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
