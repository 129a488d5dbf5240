// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's token plane of a switch in a rack: metered ports, mode pace, and hosts that offer tokens
 * beyond the group's rate. Links are slow, 2 Mbit/s, so that a token time is 6.5 ms and the pauses
 * of the machine are short against what is judged. Packet sockets send and receive the tokens;
 * hosts admit everything at once. More cases change the configuration while the switch runs.
 *
 * The group's rate, the accounting of every frame, and the bytes must hold whatever the machine
 * does. How much of each class arrives is judged only in seconds without pauses. Links of the rack
 * lose frames when no thread reads them for long, so tokens are sent only while few are under way.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "tests/net/rack.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/top/top_token_core.h"
#include "base/rate.h"
#include "loader/admission/admission_set.h"

#define RATE    2000000ULL
#define TOKEN_S (RATE / 8.0 / BL_TOKEN_BOTH) /* tokens per second: 154 */
#define HOSTS   4

static uint64_t faster; /* a different rate of host 2's port; 0: as the others */

static void plain_hosts(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	if (cfg->role == BL_ROLE_HOST)
		cfg->admission = (struct bl_admission_cfg){ .on = true, .policy = BL_POLICY_NONE };
	else
		cfg->ports[1].rate_bps = faster;
}

static void open_rack(void)
{
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.beacon_us = 20000; /* 57 kbit/s of each link */
	rack.lab.spec.admission =
		(struct bl_admission_cfg){ .on = true, .policy = BL_POLICY_TOP, .rate_bps = RATE };
	rack.tweak = plain_hosts;
	rack_last_words = rack_dump;
	rack_open();
}

/** struct station - a host's NIC. */
struct station {
	uint8_t mac[6];
	int fd;                                              /* packet socket there */
	uint64_t sent[BL_TOP_CLASSES], came[BL_TOP_CLASSES]; /* tokens by class */
};

static struct station st[HOSTS];
static uint64_t lost_before; /* lost_otherwise() before any token: beacons may find no pacer yet */

static uint64_t lost_otherwise(void)
{
	return rack_count(0, BL_R_NO_SLOT) + rack_count(0, BL_R_REDIRECT_FAILED);
}

static void stations(void)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), room = 4 << 20;
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		struct sockaddr_ll a = { .sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL) };
		struct ifreq r = { .ifr_name = "eth0" };

		rack_enter(rack_host(i));
		st[i].fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
		a.sll_ifindex = (int)if_nametoindex("eth0");
		CHECK(st[i].fd >= 0 && a.sll_ifindex && !bind(st[i].fd, (void *)&a, sizeof(a)) &&
			      !ioctl(st[i].fd, SIOCGIFHWADDR, &r),
		      "%s", strerror(errno));
		setsockopt(st[i].fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
		memcpy(st[i].mac, r.ifr_hwaddr.sa_data, 6);
	}
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
	rack_settle();
	lost_before = lost_otherwise();
}

static void make(uint8_t *p, unsigned int from, unsigned int to, uint8_t cls, uint32_t seq)
{
	struct ethhdr *eth = (void *)p;
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .tot_len = htons(46),
			    .ttl = 64,
			    .protocol = BL_UDP,
			    .saddr = htonl(0x0a630001 + from),
			    .daddr = htonl(0x0a630001 + to) };
	struct udphdr u = { .source = htons(BL_TOP_SPORT_BASE + 5),
			    .dest = htons(BL_TOP_PORT),
			    .len = htons(26) };
	struct bl_top_hdr h = { .opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN),
				.cls = cls,
				.flow = htons((uint16_t)(from + 1)) };
	uint32_t sum = 0, i;

	memcpy(eth->h_dest, st[to].mac, 6);
	memcpy(eth->h_source, st[from].mac, 6);
	eth->h_proto = htons(ETH_P_IP);
	for (i = 0; i < 10; i++)
		sum += ((uint16_t *)&ip)[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip.check = (uint16_t) ~(sum + (sum >> 16));
	BL_HALVES_SET(&h, seq, seq);
	BL_HALVES_SET(&h, tag, seq * 2654435761u);
	memcpy(p + 14, &ip, sizeof(ip));
	memcpy(p + 34, &u, sizeof(u));
	memcpy(p + 42, &h, sizeof(h));
}

static void give(unsigned int from, unsigned int to, uint8_t cls, uint32_t seq)
{
	uint8_t p[BL_TOP_TOKEN_LEN];

	make(p, from, to, cls, seq);
	CHECK(send(st[from].fd, p, sizeof(p), 0) == sizeof(p), "%s", strerror(errno));
	st[from].sent[cls]++;
}

/* Takes what arrived at host @at and compares every byte. */
static void take(unsigned int at)
{
	struct sockaddr_ll a;
	socklen_t alen = sizeof(a);
	uint8_t got[2048], want[BL_TOP_TOKEN_LEN];
	const struct bl_top_hdr *h = (const void *)(got + 42);
	ssize_t n;

	while ((n = recvfrom(st[at].fd, got, sizeof(got), MSG_DONTWAIT, (void *)&a, &alen)) >= 0) {
		unsigned int from;

		if (a.sll_pkttype == PACKET_OUTGOING || n != BL_TOP_TOKEN_LEN ||
		    got[23] != BL_UDP ||
		    ((const struct udphdr *)(got + 34))->dest != htons(BL_TOP_PORT))
			continue;
		from = ntohs(h->flow) - 1u;
		CHECK(from < HOSTS && h->cls < BL_TOP_CLASSES, "token of host %u, class %u", from,
		      h->cls);
		make(want, from, at, h->cls, BL_HALVES(h, seq));
		CHECK(!memcmp(got, want, sizeof(want)), "a token was changed");
		st[at].came[h->cls]++;
	}
}

/* Returns "token_counts" of the port to host @at, summed over all CPUs. */
static struct bl_token_counts counts_of(unsigned int at)
{
	struct bl_token_counts v[256], sum = { .lost = 0 };
	int fd = rack_map(0, BL_MAP_TOKEN_COUNTS), ports = rack_map(0, BL_MAP_SW_PORTS),
	    cpus = libbpf_num_possible_cpus(), k;
	struct bl_sw_port p;
	uint32_t i;
	size_t w;

	CHECK(fd >= 0 && ports >= 0 && cpus > 0 && cpus <= 256, "maps");
	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		CHECK(!bpf_map_lookup_elem(ports, &i, &p), "port %u", i);
		if (p.ifindex && !strcmp(p.name, rack.lab.nodes[rack_host(at)].name))
			break;
	}
	CHECK(i < BL_SW_PORTS_MAX && !bpf_map_lookup_elem(fd, &i, v), "no port to host %u", at);
	for (k = 0; k < cpus; k++)
		for (w = 0; w < sizeof(sum) / 8; w++)
			((__u64 *)&sum)[w] += ((__u64 *)&v[k])[w];
	close(fd);
	close(ports);
	return sum;
}

static uint64_t sum_of(const uint64_t *v)
{
	uint64_t n = 0;
	unsigned int c;

	for (c = 0; c < BL_TOP_CLASSES; c++)
		n += v[c];
	return n;
}

static void tally(const char *what, const struct bl_token_counts *out)
{
	fprintf(stderr, "  %s: %llu passed, %llu limit, %llu expired\n", what,
		(unsigned long long)sum_of((uint64_t *)out->passed),
		(unsigned long long)sum_of((uint64_t *)out->limit),
		(unsigned long long)sum_of((uint64_t *)out->expired));
}

/* Returns the number of tokens with a known end: dropped at an input or output, or sent. */
static uint64_t ended(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		struct bl_token_counts c = counts_of(i);

		n += c.flood + sum_of((uint64_t *)c.passed) + sum_of((uint64_t *)c.limit) +
		     sum_of((uint64_t *)c.expired);
	}
	return n;
}

static uint64_t given(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		n += sum_of(st[i].sent);
	return n;
}

static void serve_and_take(unsigned int ms)
{
	unsigned int i;

	rack_serve(ms);
	for (i = 0; i < HOSTS; i++)
		take(i);
}

/*
 * Waits until no more than @n tokens are under way: a link of the rack holds 256 unread frames, and
 * silently loses more. The limit is a number of turns and not a time, because a machine that stands
 * still takes none.
 */
static void until_under_way(uint64_t n)
{
	unsigned int turns;

	for (turns = 0; given() - ended() > n; turns++) {
		CHECK(turns < 2000, "%llu tokens without an end",
		      (unsigned long long)(given() - ended()));
		serve_and_take(5);
	}
}

/*
 * Waits until every token has its end and what was sent has arrived, for each host that is an
 * output.
 */
static void all_ended(void)
{
	unsigned int i, k, turns;

	until_under_way(0);
	for (i = 0; i < HOSTS; i++) {
		struct bl_token_counts c = counts_of(i);

		for (turns = 0; sum_of((uint64_t *)c.passed) > sum_of(st[i].came); turns++) {
			CHECK(turns < 2000, "%llu tokens left for host %u, %llu came",
			      (unsigned long long)sum_of((uint64_t *)c.passed), i + 1,
			      (unsigned long long)sum_of(st[i].came));
			serve_and_take(5);
		}
		for (k = 0; k < BL_TOP_CLASSES; k++)
			CHECK(c.passed[k] == st[i].came[k],
			      "host %u, class %u: %llu passed, %llu came", i + 1, k,
			      (unsigned long long)c.passed[k], (unsigned long long)st[i].came[k]);
		CHECK(!c.lost, "lost swaps");
	}
	CHECK(given() == ended(), "%llu tokens, %llu ends", (unsigned long long)given(),
	      (unsigned long long)ended());
	CHECK(lost_otherwise() == lost_before, "slots, or the device map");
}

/* Returns the number of tokens of the offering hosts that were dropped as a flood. */
static uint64_t flooded(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < 3; i++)
		n += counts_of(i).flood;
	return n;
}

/* a turn that takes longer than three token times was interrupted */
#define TURN_NS 20000000ULL

/**
 * offer - hosts 1 to 3 offer tokens of all classes in turn to host 4 for a second, each at 0.9 of
 * the group's rate. A late turn catches up by as much as inputs may bring at once. Returns whether
 * the shares of the classes can be judged: nothing interrupted the offer, and the pacer sent what
 * it could.
 */
static bool offer(double *s)
{
	uint64_t begun = t_mono(), last = begun, now = begun, n = 0, skipped = 0,
		 came = sum_of(st[3].came), due;
	bool smooth = true;
	unsigned int i;

	do {
		due = (uint64_t)(0.9 * TOKEN_S * (double)(now - begun) / 1e9);
		if (due - n - skipped > BL_TOKEN_INPUT - 4)
			skipped = due - n - (BL_TOKEN_INPUT - 4);
		until_under_way(150); /* 48 wait in the queues */
		for (; n + skipped < due; n++)
			for (i = 0; i < 3; i++)
				give(i, 3, (uint8_t)(n % BL_TOP_CLASSES), (uint32_t)n);
		serve_and_take(1);
		now = t_mono();
		smooth = smooth && now - last < TURN_NS;
		last = now;
	} while (now - begun < 1000000000ULL);
	*s = (double)(now - begun) / 1e9;
	return smooth && (double)(sum_of(st[3].came) - came) >= 0.95 * *s * TOKEN_S;
}

/*
 * Three hosts offer 2.7 times the rate of one output, in six classes: the best two classes arrive,
 * and a part of the third. The group's rate, and that every token has one end, hold whatever the
 * machine does. The shares of the classes are judged in the seconds that nothing interrupted; if
 * there are none within a minute, they are not judged at all
 * (tests/unit/core/top/test_top_token_model.c proves them without a clock).
 */
RACK_TEST(pace__six_classes_above_the_rate)
{
	uint64_t sent[BL_TOP_CLASSES] = { 0 }, came[BL_TOP_CLASSES] = { 0 },
		 before[2][BL_TOP_CLASSES], begun, all = 0;
	uint64_t flood = 0, flood_before;
	struct bl_token_counts c;
	unsigned int i, k, good = 0, rounds = 0;
	double s;

	open_rack();
	stations();
	begun = t_mono();
	while (good < 4 && t_mono() - begun < 60000000000ULL) {
		bool ok;

		for (k = 0; k < BL_TOP_CLASSES; k++)
			for (before[0][k] = 0, before[1][k] = st[3].came[k], i = 0; i < 3; i++)
				before[0][k] += st[i].sent[k];
		flood_before = flooded();
		ok = offer(&s);
		all_ended();
		rounds++;
		good += ok;
		flood += ok ? flooded() - flood_before : 0;
		for (k = 0; ok && k < BL_TOP_CLASSES; k++) {
			for (i = 0; i < 3; i++)
				sent[k] += st[i].sent[k];
			sent[k] -= before[0][k];
			came[k] += st[3].came[k] - before[1][k];
		}
		/*
		 * two at once, and the difference between the ends of the round and the times of
		 * the counts
		 */
		CHECK((double)sum_of(st[3].came) <=
			      (double)(t_mono() - begun) / 1e9 * TOKEN_S + BL_TOKEN_BURST,
		      "%llu in %.3f s", (unsigned long long)sum_of(st[3].came),
		      (double)(t_mono() - begun) / 1e9);
	}
	c = counts_of(3);
	tally("all rounds", &c);
	for (k = 0; k < BL_TOP_CLASSES; k++) {
		fprintf(stderr, "  class %u: %llu offered, %llu came in %u of %u rounds\n", k,
			(unsigned long long)sent[k], (unsigned long long)came[k], good, rounds);
		all += c.limit[k] + c.expired[k];
	}
	CHECK(all, "nothing was dropped: nothing was tested");
	/* Where the switch had no CPU, what had waited arrived at once and was a flood. */
	CHECK(!flood, "it was taken for a flood");
	if (!good) {
		fprintf(stderr, "  no second without an interruption: who got what was not "
				"judged\n");
		return;
	}
	for (k = 1; k < BL_TOP_CLASSES; k++)
		CHECK(came[k] <= came[k - 1] + 2 * good, "class %u got more than a better one", k);
	CHECK(came[0] * 100 >= sent[0] * 90 && came[1] * 100 >= sent[1] * 85, "better classes lost "
									      "tokens");
	/*
	 * Of worse classes, only those arrive that were there when the round ended and no better
	 * ones came any more: as many as wait, in each round.
	 */
	CHECK(came[4] <= sent[4] / 10 + BL_TOKEN_FRAMES * good &&
		      came[5] <= sent[5] / 20 + BL_TOKEN_FRAMES * good,
	      "worse classes took what was not theirs");
}

/*
 * Host 1 sends as many tokens of one class as possible to host 3: those beyond its link's share are
 * dropped at the input. Host 2's tokens to host 4, of the worst class and one after the other, are
 * not affected: each arrives, or the pacer was too late for it.
 */
RACK_TEST(flood__stopped_where_it_comes_in)
{
	uint64_t begun, got_in;
	struct bl_token_counts in, out, beside;
	uint32_t n = 0, m = 0;
	double s;
	int i;

	open_rack();
	stations();
	begun = t_mono();
	while (counts_of(0).flood < 3000 || sum_of(st[3].came) < 100) {
		until_under_way(BL_TOKEN_FRAMES + 2);
		for (i = 0; i < 40; i++)
			give(0, 2, 5, n++);
		beside = counts_of(3);
		if (m == st[3].came[5] + beside.expired[5] + beside.limit[5] + counts_of(1).flood)
			give(1, 3, 5, m++);
		serve_and_take(2);
	}
	all_ended();
	s = (double)(t_mono() - begun) / 1e9;
	in = counts_of(0);
	out = counts_of(2);
	beside = counts_of(3);
	got_in = st[0].sent[5] - in.flood;
	fprintf(stderr,
		"  %llu offered in %.1f s, %llu flood, %llu came; beside it %llu offered, %llu "
		"came\n",
		(unsigned long long)st[0].sent[5], s, (unsigned long long)in.flood,
		(unsigned long long)st[2].came[5], (unsigned long long)st[1].sent[5],
		(unsigned long long)st[3].came[5]);
	CHECK((double)got_in <= s * TOKEN_S + BL_TOKEN_INPUT, "%llu got in",
	      (unsigned long long)got_in);
	CHECK((double)st[2].came[5] <= s * TOKEN_S + BL_TOKEN_BURST, "%llu came",
	      (unsigned long long)st[2].came[5]);
	CHECK(got_in == out.passed[5] + out.limit[5] + out.expired[5], "tokens without an end");
	CHECK(!counts_of(1).flood && !beside.limit[5],
	      "the other host lost tokens: %llu flood, %llu limit",
	      (unsigned long long)counts_of(1).flood, (unsigned long long)beside.limit[5]);
	CHECK(st[1].sent[5] == st[3].came[5] + beside.expired[5], "tokens without an end beside "
								  "it");
}

static struct bl_token_cfg cfg_now(void)
{
	struct bl_token_cfg c;
	uint32_t zero = 0;
	int fd = rack_map(0, BL_MAP_TOKEN_CFG);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &c), "%s", strerror(errno));
	close(fd);
	return c;
}

static uint32_t ns_q20_now(uint32_t port)
{
	struct bl_token_port p;
	int fd = rack_map(0, BL_MAP_TOKEN_PORTS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &p), "%s", strerror(errno));
	close(fd);
	return p.ns_q20;
}

/* Changes a running switch as `barline admission set` does; a refused change has no effect. */
RACK_TEST(set__while_it_runs)
{
	static const struct {
		enum bl_option_id id;
		uint64_t value;
	} bad[] = { { BL_AO_TOKEN_FRAMES, 0 },
		    { BL_AO_TOKEN_FRAMES, 65 },
		    { BL_AO_EXPIRY_TOKENS, 0 },
		    { BL_AO_DATA_FIRST, 2 } };
	static const struct bl_admission_set same;
	struct bl_node_ref *refs;
	struct bl_admission_set c;
	struct bl_token_cfg was;
	char said[512];
	struct bl_err err;
	int n, k, home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	faster = 5 * RATE;
	open_rack();
	rack_enter(0);
	n = bl_nodes_find(&refs, bl_netns_ino(), &err);
	CHECK(n == 1 && refs[0].role == BL_ROLE_SWITCH, "%d nodes", n);
	was = cfg_now();
	CHECK(was.on && was.mode == BL_TOKEN_PACE && was.frames == BL_TOKEN_FRAMES &&
		      was.expiry == BL_TOKEN_EXPIRY && !was.data_first && !was.unscheduled,
	      "as it was started");
	CHECK(ns_q20_now(0) == bl_rate_ns_q20(RATE) && ns_q20_now(1) == bl_rate_ns_q20(5 * RATE),
	      "%u, %u", ns_q20_now(0), ns_q20_now(1));
	for (k = 0; k < 4; k++) {
		c = same;
		bl_admission_put(&c, bad[k].id, bad[k].value);
		CHECK(bl_admission_change(&refs[0], &c, said, sizeof(said), &err) == -EINVAL &&
			      !*said,
		      "case %d was taken: %s", k, said);
		CHECK(!memcmp(&was, &(struct bl_token_cfg[]){ cfg_now() }[0], sizeof(was)),
		      "case %d changed something", k);
	}
	c = same;
	bl_admission_put(&c, BL_AO_TOKENS, BL_TOKEN_DROP);
	bl_admission_put(&c, BL_AO_DATA_FIRST, 1);
	bl_admission_put(&c, BL_AO_UNSCHEDULED, 1);
	bl_admission_put(&c, BL_AO_TOKEN_FRAMES, 6);
	bl_admission_put(&c, BL_AO_EXPIRY_TOKENS, 12);
	bl_admission_put(&c, BL_AO_RATE, 2 * RATE);
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err), "%s", err.text);
	CHECK(strstr(said, "rate: 2mbit -> 4mbit") && strstr(said, "tokens: pace -> drop, data "
								   "first: no -> yes, unscheduled "
								   "class: no -> yes, token "
								   "frames: 8 -> 6, expiry tokens: "
								   "8 -> 12"),
	      "%s", said);
	was = cfg_now();
	CHECK(was.on && was.mode == BL_TOKEN_DROP && was.frames == 6 && was.expiry == 12 &&
		      was.data_first && was.unscheduled,
	      "not as it was told");
	CHECK(ns_q20_now(0) == bl_rate_ns_q20(2 * RATE) && ns_q20_now(1) == ns_q20_now(0), "%u, %u",
	      ns_q20_now(0), ns_q20_now(1));
	c = same;
	bl_admission_put(&c, BL_AO_POLICY, BL_POLICY_NONE);
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err) && !strcmp(said, "policy"
											    ": top "
											    "-> "
											    "none"),
	      "%s", said);
	CHECK(!cfg_now().on, "still on");
	/* valid for ports with a meter */
	bl_admission_put(&c, BL_AO_POLICY, BL_POLICY_TOP);
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err) &&
		      !strcmp(said, "policy: none -> top, tokens: drop -> pace"),
	      "%s", said);
	free(refs);
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace__six_classes_above_the_rate),
		cmocka_unit_test(flood__stopped_where_it_comes_in),
		cmocka_unit_test(set__while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
