// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's token plane of a switch in a rack: metered ports, mode pace, tokens that hosts offer beyond the group's rate. Links are slow, 2 Mbit/s, so that a token time is 6.5 ms and the machine's own pauses are short
 * against what is judged. Tokens are sent and taken by packet sockets; hosts let everything go at once.
 *
 * And what can be changed while the switch runs.
 *
 * What must hold whatever the machine does: the group's rate, the number of every frame's end, the bytes. How much of each class arrives is judged with room for pauses.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "rack.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "bpf/token_core.h"
#include "loader/node_priv.h"
#include "loader/rate.h"

#define RATE	2000000ULL
#define TOKEN_S (RATE / 8.0 / BL_TOKEN_BOTH) /* tokens per second: 154 */
#define HOSTS	4

static void plain_hosts(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	if (cfg->role == BL_ROLE_HOST)
		cfg->admission = (struct bl_admission_cfg){ .on = true, .policy = BL_POLICY_NONE };
}

static void open_rack(void)
{
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.beacon_us = 20000; /* 57 kbit/s of each link */
	rack.lab.spec.admission = (struct bl_admission_cfg){ .on = true, .policy = BL_POLICY_TOP, .rate_bps = RATE };
	rack.tweak = plain_hosts;
	rack_last_words = rack_dump;
	rack_open();
}

/** struct station - a host's NIC. @fd: packet socket there. @sent, @came: tokens by class. */
struct station {
	uint8_t mac[6];
	int fd;
	uint64_t sent[BL_TOP_CLASSES], came[BL_TOP_CLASSES];
};

static struct station st[HOSTS];

static void stations(void)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), room = 4 << 20;
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
		struct ifreq r = { .ifr_name = "eth0" };

		rack_enter(rack_host(i));
		st[i].fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
		a.sll_ifindex = (int)if_nametoindex("eth0");
		CHECK(st[i].fd >= 0 && a.sll_ifindex && !bind(st[i].fd, (void *)&a, sizeof(a)) && !ioctl(st[i].fd, SIOCGIFHWADDR, &r), "%s", strerror(errno));
		setsockopt(st[i].fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
		memcpy(st[i].mac, r.ifr_hwaddr.sa_data, 6);
	}
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
}

static void make(uint8_t *p, unsigned int from, unsigned int to, uint8_t cls, uint32_t seq)
{
	struct ethhdr *eth = (void *)p;
	struct iphdr ip = { .version = 4, .ihl = 5, .tot_len = htons(46), .ttl = 64, .protocol = BL_UDP, .saddr = htonl(0x0a630001 + from), .daddr = htonl(0x0a630001 + to) };
	struct udphdr u = { .source = htons(BL_TOP_SPORT_BASE + 5), .dest = htons(BL_TOP_PORT), .len = htons(26) };
	struct bl_top_hdr h = { .opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN), .cls = cls, .flow = htons((uint16_t)(from + 1)) };
	uint32_t sum = 0, i;

	memcpy(eth->h_dest, st[to].mac, 6);
	memcpy(eth->h_source, st[from].mac, 6);
	eth->h_proto = htons(ETH_P_IP);
	for (i = 0; i < 10; i++)
		sum += ((uint16_t *)&ip)[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip.check = (uint16_t)~(sum + (sum >> 16));
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

/* What came to host @at, all of it byte for byte. */
static void take(unsigned int at)
{
	struct sockaddr_ll a;
	socklen_t alen = sizeof(a);
	uint8_t got[2048], want[BL_TOP_TOKEN_LEN];
	const struct bl_top_hdr *h = (const void *)(got + 42);
	ssize_t n;

	while ((n = recvfrom(st[at].fd, got, sizeof(got), MSG_DONTWAIT, (void *)&a, &alen)) >= 0) {
		unsigned int from;

		if (a.sll_pkttype == PACKET_OUTGOING || n != BL_TOP_TOKEN_LEN || got[23] != BL_UDP || ((const struct udphdr *)(got + 34))->dest != htons(BL_TOP_PORT))
			continue;
		from = ntohs(h->flow) - 1u;
		CHECK(from < HOSTS && h->cls < BL_TOP_CLASSES, "token of host %u, class %u", from, h->cls);
		make(want, from, at, h->cls, BL_HALVES(h, seq));
		CHECK(!memcmp(got, want, sizeof(want)), "a token was changed");
		st[at].came[h->cls]++;
	}
}

/* "token_counts" of the port to host @at, over all CPUs. */
static struct bl_token_counts counts_of(unsigned int at)
{
	struct bl_token_counts v[256], sum = { .lost = 0 };
	int fd = rack_map(0, BL_MAP_TOKEN_COUNTS), ports = rack_map(0, BL_MAP_SW_PORTS), cpus = libbpf_num_possible_cpus(), k;
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

/*
 * Hosts offer tokens for @ms: host i @share[i] of its link's group rate, to @to[i], classes from @least to 5 in turn. What a pause of the machine delayed is made up for by as much as inputs may bring at once, and no more.
 * Returns seconds.
 */
static double offer(unsigned int ms, const double *share, const unsigned int *to, const uint8_t *least)
{
	uint64_t begun = t_mono(), now = begun, end = begun + ms * 1000000ULL, skipped[HOSTS] = { 0 }, n[HOSTS] = { 0 };
	unsigned int i;

	do {
		for (i = 0; i < HOSTS; i++) {
			uint64_t due = (uint64_t)(share[i] * TOKEN_S * (double)(now - begun) / 1e9), room = share[i] > 1 ? 1000 : BL_TOKEN_INPUT - 4;

			if (due - n[i] - skipped[i] > room)
				skipped[i] = due - n[i] - room;
			for (; n[i] + skipped[i] < due; n[i]++)
				give(i, to[i], (uint8_t)(least[i] + n[i] % (BL_TOP_CLASSES - least[i])), (uint32_t)n[i]);
		}
		rack_serve(1);
		for (i = 0; i < HOSTS; i++)
			take(i);
		now = t_mono();
	} while (now < end);
	return (double)(now - begun) / 1e9;
}

/* Three hosts offer 2.7 times what one output may let pass, of six classes: the best two arrive, and something of the third. */
RACK_TEST(pace__six_classes_above_the_rate)
{
	static const double share[HOSTS] = { 0.9, 0.9, 0.9, 0 };
	static const unsigned int to[HOSTS] = { 3, 3, 3, 3 };
	static const uint8_t least[HOSTS];
	struct bl_token_counts c;
	uint64_t sent[BL_TOP_CLASSES] = { 0 }, flood = 0;
	double s;
	unsigned int i, k;

	open_rack();
	stations();
	s = offer(5000, share, to, least);
	rack_serve(200); /* 8 token times are 52 ms */
	take(3);
	c = counts_of(3);
	for (i = 0; i < HOSTS; i++) {
		flood += counts_of(i).flood;
		for (k = 0; k < BL_TOP_CLASSES; k++)
			sent[k] += st[i].sent[k];
	}
	for (k = 0; k < BL_TOP_CLASSES; k++) {
		fprintf(stderr, "  class %u: %llu offered, %llu came, %llu limit, %llu expired\n", k, (unsigned long long)sent[k], (unsigned long long)st[3].came[k], (unsigned long long)c.limit[k],
			(unsigned long long)c.expired[k]);
		CHECK(c.passed[k] == st[3].came[k], "class %u: %llu passed", k, (unsigned long long)c.passed[k]);
	}
	CHECK(sum_of(sent) == sum_of((uint64_t *)c.passed) + sum_of((uint64_t *)c.limit) + sum_of((uint64_t *)c.expired) + flood, "tokens without an end");
	CHECK((double)sum_of(st[3].came) <= (s + 0.2) * TOKEN_S + 2, "%llu in %.3f s", (unsigned long long)sum_of(st[3].came), s);
	CHECK((double)sum_of(sent) > 2 * s * TOKEN_S, "not enough was offered: this machine stood still");
	/* a pacer that is late by more than two token times, 13 ms, loses what it could have sent, of the best class, too */
	CHECK((double)sum_of(st[3].came) >= 0.5 * s * TOKEN_S, "%llu in %.3f s", (unsigned long long)sum_of(st[3].came), s);
	for (k = 1; k < BL_TOP_CLASSES; k++)
		CHECK(st[3].came[k] <= st[3].came[k - 1] + 5, "class %u got more than a better one", k);
	CHECK(st[3].came[4] * 100 <= sent[4] * 10 && st[3].came[5] * 100 <= sent[5] * 5, "worse classes took what was not theirs");
	if ((double)sum_of(st[3].came) >= 0.95 * s * TOKEN_S)
		CHECK(st[3].came[0] * 100 >= sent[0] * 95 && st[3].came[1] * 100 >= sent[1] * 90, "better classes lost tokens");
	CHECK(!rack_count(0, BL_R_NO_SLOT) && !rack_count(0, BL_R_REDIRECT_FAILED), "slots, or the device map");
	CHECK(!c.lost, "lost swaps");
}

/* Host 1 sends ten times what its link may bring, of the best class, to host 3: it is limited where it comes in. Host 2's tokens to host 4 know nothing of it. */
RACK_TEST(flood__stopped_where_it_comes_in)
{
	static const double share[HOSTS] = { 10, 0.8, 0, 0 };
	static const unsigned int to[HOSTS] = { 2, 3, 0, 0 };
	static const uint8_t least[HOSTS] = { 5, 5, 0, 0 };
	struct bl_token_counts in, out;
	double s;

	open_rack();
	stations();
	s = offer(4000, share, to, least);
	rack_serve(200);
	take(2);
	take(3);
	in = counts_of(0);
	out = counts_of(2);
	fprintf(stderr, "  %llu offered, %llu flood, %llu came; beside it %llu offered, %llu came\n", (unsigned long long)st[0].sent[5], (unsigned long long)in.flood, (unsigned long long)st[2].came[5],
		(unsigned long long)st[1].sent[5], (unsigned long long)st[3].came[5]);
	CHECK((double)(st[0].sent[5] - in.flood) <= (s + 0.2) * TOKEN_S + BL_TOKEN_INPUT + 1, "%llu got in", (unsigned long long)(st[0].sent[5] - in.flood));
	CHECK(in.flood > st[0].sent[5] / 2, "%llu refused", (unsigned long long)in.flood);
	CHECK(st[0].sent[5] == in.flood + out.passed[5] + out.limit[5] + out.expired[5], "tokens without an end");
	CHECK(out.limit[5] + out.expired[5] < st[0].sent[5] / 20, "what got in did not fit the output");
	CHECK(st[3].came[5] * 100 >= st[1].sent[5] * 90, "the other host lost tokens: %llu of %llu came", (unsigned long long)st[3].came[5], (unsigned long long)st[1].sent[5]);
	CHECK(!counts_of(1).flood, "it was taken for a flood");
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

static uint32_t ns_q20_now(void)
{
	struct bl_token_port p;
	uint32_t zero = 0;
	int fd = rack_map(0, BL_MAP_TOKEN_PORTS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "%s", strerror(errno));
	close(fd);
	return p.ns_q20;
}

/* What `barline admission set` does to a switch that runs; what it refuses changes nothing. */
RACK_TEST(set__while_it_runs)
{
	static const struct bl_admission_set same = BL_ADMISSION_SAME;
	struct bl_node_ref *refs;
	struct bl_admission_set c;
	struct bl_token_cfg was;
	char said[512];
	struct bl_err err;
	int n, k, home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	open_rack();
	rack_enter(0);
	n = bl_nodes_find(&refs, bl_netns_ino(), &err);
	CHECK(n == 1 && refs[0].role == BL_ROLE_SWITCH, "%d nodes", n);
	was = cfg_now();
	CHECK(was.on && was.mode == BL_TOKEN_PACE && was.frames == BL_TOKEN_FRAMES && was.expiry == BL_TOKEN_EXPIRY && !was.data_first && !was.unscheduled, "as it was started");
	CHECK(ns_q20_now() == bl_rate_ns_q20(RATE), "%u", ns_q20_now());
	for (k = 0; k < 4; k++) {
		c = same;
		c.token_frames = k == 0 ? 0 : k == 1 ? 65 : -1;
		c.expiry_tokens = k == 2 ? 0 : -1;
		c.data_first = k == 3 ? 2 : -1;
		CHECK(bl_admission_change(&refs[0], &c, said, sizeof(said), &err) == -EINVAL && !*said, "case %d was taken: %s", k, said);
		CHECK(!memcmp(&was, &(struct bl_token_cfg[]){ cfg_now() }[0], sizeof(was)), "case %d changed something", k);
	}
	c = same;
	c.tokens = BL_TOKEN_DROP;
	c.data_first = c.unscheduled = 1;
	c.token_frames = 6;
	c.expiry_tokens = 12;
	c.rate_bps = 2 * RATE;
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err), "%s", err.text);
	CHECK(strstr(said, "rate: 2mbit -> 4mbit") && strstr(said, "tokens: pace -> drop, data first: 0 -> 1, unscheduled class: 0 -> 1, token frames: 8 -> 6, expiry tokens: 8 -> 12"), "%s", said);
	was = cfg_now();
	CHECK(was.on && was.mode == BL_TOKEN_DROP && was.frames == 6 && was.expiry == 12 && was.data_first && was.unscheduled, "not as it was told");
	CHECK(ns_q20_now() == bl_rate_ns_q20(2 * RATE), "%u", ns_q20_now());
	c = same;
	c.policy = BL_POLICY_NONE;
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err) && !strcmp(said, "policy: top -> none"), "%s", said);
	CHECK(!cfg_now().on, "still on");
	c.policy = BL_POLICY_TOP; /* what fits ports with a meter */
	CHECK(!bl_admission_change(&refs[0], &c, said, sizeof(said), &err) && !strcmp(said, "policy: none -> top, tokens: drop -> pace"), "%s", said);
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
