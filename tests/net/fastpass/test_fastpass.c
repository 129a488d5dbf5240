// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fastpass on a rack: applications' datagrams go from bl0 to bl0 in timeslots that arbiters assign,
 * through the daemon's FCP, hold queues and pacer. Whatever happens to arbiters and daemons, every
 * datagram arrives once and in order, unless a program counted why it did not.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "tests/net/fastpass/rack_arbiter.h"

#include <arpa/inet.h>

#include "arbiter/faults/faultd.h"
#include "core/fastpass/fastpass_core.h"
#include "loader/admission/admission_set.h"
#include "loader/admission/bl0.h"
#include "loader/admission/options.h"

#define BYTES   1000
#define PORT    7000

#define NUMBERS (1u << 20) /* most datagrams of one sender */

static struct {
	int rx, tx[LAB_HOSTS_MAX];
	uint32_t sent[LAB_HOSTS_MAX], got[LAB_HOSTS_MAX];
	bool stranger; /* h1 is no endpoint that hosts know by its address */
	bool faults;   /* hosts report frames by path to a service beside the arbiter */
	uint8_t seen[LAB_HOSTS_MAX][NUMBERS / 8]; /* leaf and spine: the numbers that arrived */
	struct bl_faultd *faultd;
	pthread_t faultd_thread;
	bool ip6;             /* family of applications' addresses */
	uint32_t fallback_ms; /* 0: hosts wait for ever, however long this machine stands still */
} w;

struct packet {
	uint32_t from, seq;
	uint8_t rest[BYTES - 8];
};

static unsigned int host_node(unsigned int i)
{
	return rack.host0 + i;
}

/* Writes the address of the application of host @i. Returns its length. */
static socklen_t app(unsigned int i, struct sockaddr_in6 *sa)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)sa;
	uint8_t addr[16];

	memset(sa, 0, sizeof(*sa));
	lab_bl0_addr(&rack.lab.nodes[host_node(i)], w.ip6 ? AF_INET6 : AF_INET, addr);
	if (w.ip6) {
		sa->sin6_family = AF_INET6;
		sa->sin6_port = htons(PORT);
		memcpy(&sa->sin6_addr, addr, 16);
		return sizeof(*sa);
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(PORT);
	memcpy(&v4->sin_addr, addr, 4);
	return sizeof(*v4);
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	struct bl_fp_file *f = &rack.lab.fp;

	if (n->kind == LAB_HOST && w.stranger)
		rack.lab.fp_peer[0].has_mac = false;
	f->fallback_ms = w.fallback_ms ? w.fallback_ms : BL_FP_NO_FALLBACK;
	if (!w.faults)
		return;
	f->has_faults = true;
	memcpy(f->faults, f->arbiter[0], 16);
	/*
	 * A frame that a busy machine delays does not count as lost, and a window is longer than
	 * any pause.
	 */
	f->fault_report_us = 10000;
	f->fault_settle_us = 1500000;
	f->fault_frames = 50;
	f->fault_percent = 1;
	f->fault_hold_ms = 600000;
}

/*
 * Resolves h1. In the kernel, frames that are sent while ARP resolves h1 may overtake those that
 * wait for the answer.
 */
static void know_h1(void)
{
	uint8_t mac[6], addr[16];
	struct nl nl;

	bl_bl0_mac(rack.lab.nodes[host_node(0)].ports[0].mac, mac);
	lab_bl0_addr(&rack.lab.nodes[host_node(0)], AF_INET, addr);
	CHECK(!nl_open(&nl) && !nl_neigh(&nl, if_nametoindex("bl0"), AF_INET, addr, mac), "neighbou"
											  "r");
	nl_close(&nl);
}

static void open_rack(unsigned int hosts, unsigned int arbiters)
{
	unsigned int i;
	int home;

	rack.lab.spec.hosts = hosts;
	rack.lab.spec.arbiters = arbiters;
	rack.lab.spec.fp_policy = 1;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.policy = BL_POLICY_FASTPASS;
	rack.lab.spec.admission.rate_bps = 250000000;
	rack.tweak = tweak;
	rack_last_words = rack_dump;
	rack_open();
	for (i = 0; i < hosts; i++) {
		struct sockaddr_in6 sa;
		socklen_t len = app(i, &sa);
		int fd, size = 4 << 20;

		home = rack_away(host_node(i));
		fd = socket(sa.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len), "%s", strerror(errno));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
		if (i && !rack.lab.spec.leaf_spine)
			know_h1();
		rack_back(home);
		*(i ? &w.tx[i] : &w.rx) = fd;
	}
	rack_settle();
}

/* ---- traffic ---- */

/*
 * Takes what arrived at h1: of each sender once, and in order where there is one path. Frames on
 * two paths may overtake each other when a pacer stands still; then w.got counts what arrived.
 */
static void collect(void)
{
	struct packet p;
	ssize_t n;

	while ((n = recv(w.rx, &p, sizeof(p), MSG_DONTWAIT)) > 0) {
		CHECK(n == BYTES && p.from < LAB_HOSTS_MAX, "%zd bytes from %u", n, p.from);
		if (!rack.lab.spec.leaf_spine) {
			CHECK(p.seq == w.got[p.from], "h%u: number %u came, %u was due", p.from + 1,
			      p.seq, w.got[p.from]);
		} else {
			uint8_t *seen = &w.seen[p.from][p.seq / 8],
				bit = (uint8_t)(1u << p.seq % 8);

			CHECK(p.seq < w.sent[p.from] && !(*seen & bit), "h%u: number %u came twice",
			      p.from + 1, p.seq);
			*seen |= bit;
		}
		w.got[p.from]++;
	}
}

static void send_some(unsigned int from, unsigned int n)
{
	struct packet p = { .from = from };
	struct sockaddr_in6 to;
	socklen_t len = app(0, &to);

	while (n--) {
		p.seq = w.sent[from]++;
		CHECK(p.seq < NUMBERS, "more datagrams than a test can tell apart");
		CHECK(sendto(w.tx[from], &p, sizeof(p), 0, (struct sockaddr *)&to, len) ==
			      sizeof(p),
		      "%s", strerror(errno));
	}
}

static bool all_there(void)
{
	unsigned int i;

	collect();
	for (i = 1; i < rack.lab.spec.hosts; i++)
		if (w.got[i] != w.sent[i])
			return false;
	return true;
}

static struct bl_fp_page page_of(unsigned int i)
{
	struct bl_fp_page p;
	uint32_t zero = 0;
	int fd = rack_map(host_node(i), BL_MAP_FP_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "%s", strerror(errno));
	close(fd);
	return p;
}

/* Returns the destination of a sender with the most traffic. */
static struct bl_fp_dest dest_of(unsigned int i)
{
	int fd = rack_map(host_node(i), BL_MAP_FP_DESTS);
	struct bl_fp_dest d, best = { 0 };
	uint32_t n;

	CHECK(fd >= 0, "%s", strerror(errno));
	for (n = 1; n < BL_DESTS; n++)
		if (!bpf_map_lookup_elem(fd, &n, &d) && d.want > best.want)
			best = d;
	close(fd);
	return best;
}

static void wait_all(void)
{
	uint64_t end = t_mono() + 60000000000ULL;
	unsigned int i;

	while (!all_there()) {
		if (t_mono() > end) {
			for (i = 1; i < rack.lab.spec.hosts; i++) {
				struct bl_fp_dest d = dest_of(i);
				struct bl_fp_page p = page_of(i);

				fprintf(stderr,
					"h%u: %u of %u; wanted %llu used %llu idle %llu missed "
					"%llu; asked %llu given %llu sessions %llu\n",
					i + 1, w.got[i], w.sent[i],
					(unsigned long long)BL_FP_WANTED(d.want),
					(unsigned long long)d.used, (unsigned long long)d.idle,
					(unsigned long long)d.missed, (unsigned long long)p.asked,
					(unsigned long long)p.given,
					(unsigned long long)p.sessions);
			}
			rack_dump();
			FAIL("datagrams are missing after 60 s");
		}
		rack_serve(2);
	}
}

/* Returns the number of datagrams under way. */
static unsigned int waiting(void)
{
	unsigned int i, sum = 0;

	for (i = 1; i < rack.lab.spec.hosts; i++)
		sum += w.sent[i] - w.got[i];
	return sum;
}

/*
 * Every sender sends @n datagrams, never more of all together than fit into one queue: a machine
 * that loses the CPU may find those of all senders in the queue of the switch's port to h1.
 */
static void traffic(unsigned int n)
{
	unsigned int i, k;

	for (k = 0; k < n; k += 20) {
		for (i = 1; i < rack.lab.spec.hosts; i++)
			send_some(i, 20);
		rack_serve(4);
		collect();
		while (!all_there() && waiting() > BL_QUEUE_FRAMES / 4)
			rack_serve(1);
	}
}

/*
 * Sends a few datagrams at first behind routers: those that are sent while ARP resolves a router
 * wait in the kernel, which has room for some ninety.
 */
static void warm_up(void)
{
	unsigned int i;

	for (i = 1; i < rack.lab.spec.hosts; i++)
		send_some(i, 1);
	wait_all();
}

/* Returns whether all requested slots have been used or have passed. */
static bool none_under_way(void)
{
	unsigned int i;

	for (i = 1; i < rack.lab.spec.hosts; i++) {
		struct bl_fp_dest d = dest_of(i);

		if (bl_fp_under_way(&d))
			return false;
	}
	return true;
}

static void every_slot_accounted(void)
{
	uint64_t end = t_mono() + 60000000000ULL;
	unsigned int i;

	while (!none_under_way() && t_mono() < end)
		rack_serve(5);
	for (i = 1; i < rack.lab.spec.hosts; i++) {
		struct bl_fp_dest d = dest_of(i);
		struct bl_fp_page p = page_of(i);

		CHECK(d.frames >= w.sent[i] && d.used && bl_fp_under_way(&d) == 0,
		      "h%u: %llu frames in %llu slots", i + 1, (unsigned long long)d.frames,
		      (unsigned long long)d.used);
		CHECK(p.session && p.given, "h%u has no session", i + 1); /* of this daemon */
	}
}

RACK_TEST(fastpass__all_arrive_in_their_slots)
{
	struct bl_arb_total t;
	unsigned int i;

	open_rack(4, 1);
	arbiter_begin(0);
	traffic(600);
	wait_all();
	every_slot_accounted();
	t = arbiter_end(0);
	CHECK(t.granted >= 3 * 600, "%" PRIu64 " slots", t.granted);
	CHECK(!rack_count_all(BL_R_QUEUE_FULL) && !rack_count_all(BL_R_HOLD_FULL), "something was "
										   "dropped");
	for (i = 1; i < 4; i++) {
		struct bl_fp_dest d = dest_of(i);

		fprintf(stderr, "  h%u: used %llu idle %llu missed %llu\n", i + 1,
			(unsigned long long)d.used, (unsigned long long)d.idle,
			(unsigned long long)d.missed);
	}
}

RACK_TEST(arbiter__comes_later)
{
	open_rack(3, 1);
	send_some(1, 50);
	send_some(2, 50);
	rack_serve(300);
	collect();
	CHECK(!w.got[1] && !w.got[2], "a frame left without a slot");
	arbiter_begin(0);
	wait_all();
	every_slot_accounted();
	arbiter_end(0);
}

/* Waits until both senders go without slots (@on), or neither does. */
static void until_fallback(bool on)
{
	uint64_t end = t_mono() + 60000000000ULL;

	while (page_of(1).fallback != on || page_of(2).fallback != on) {
		CHECK(t_mono() < end, "fallback of h2 %u, of h3 %u, where it should be %d",
		      page_of(1).fallback, page_of(2).fallback, on);
		rack_serve(5);
		collect();
	}
}

/*
 * There is no arbiter, then one, then none again: traffic continues without slots, with them, and
 * without.
 */
RACK_TEST(fallback__until_an_arbiter_answers)
{
	w.fallback_ms = 500;
	open_rack(3, 1);
	send_some(1, 50);
	send_some(2, 50);
	wait_all();
	CHECK(page_of(1).fallback && page_of(2).fallback, "frames left without slots too early");
	CHECK(!dest_of(1).frames && !dest_of(2).frames, "a slot, and no arbiter");
	traffic(200); /* datagrams sent now do not wait */
	wait_all();
	arbiter_begin(0);
	until_fallback(false);
	traffic(200);
	wait_all();
	CHECK(dest_of(1).frames && dest_of(2).frames, "no slots, though the arbiter answers");
	arbiter_end(0);
	send_some(1, 50);
	send_some(2, 50);
	wait_all();
	CHECK(!rack_count_all(BL_R_HOLD_FULL), "something was dropped");
}

RACK_TEST(arbiter__another_takes_over)
{
	unsigned int i;

	open_rack(4, 2);
	arbiter_begin(0);
	/* When both start at once, one that waits for a CPU loses, whatever its rank. */
	wait_primary(0);
	arbiter_begin(1);
	traffic(200);
	wait_all();
	for (i = 1; i < 4; i++) {
		CHECK(page_of(i).sessions == 1, "h%u: %llu sessions", i + 1,
		      (unsigned long long)page_of(i).sessions);
		send_some(i, 60);
	}
	arbiter_end(0); /* with slots given, and demands unanswered */
	for (i = 1; i < 4; i++)
		send_some(i, 60);
	wait_all();
	traffic(200);
	wait_all();
	every_slot_accounted();
	for (i = 1; i < 4; i++)
		CHECK(page_of(i).sessions == 2, "h%u: %llu sessions", i + 1,
		      (unsigned long long)page_of(i).sessions);
	CHECK(!rack_count_all(BL_R_QUEUE_FULL) && !rack_count_all(BL_R_HOLD_FULL), "something was "
										   "dropped");
	arbiter_end(1);
}

RACK_TEST(daemon__exchanged_with_frames_held)
{
	open_rack(3, 1);
	arbiter_begin(0);
	traffic(100);
	wait_all();
	arbiter_end(0);
	send_some(1, 80);
	send_some(2, 80);
	rack_serve(20);
	rack_close_node(host_node(1)); /* it has asked; its successor knows nothing of that */
	rack_open_node(host_node(1));
	arbiter_begin(0);
	wait_all();
	traffic(100);
	wait_all();
	every_slot_accounted();
	arbiter_end(0);
}

/* Behind routers, destinations are known by their IP addresses. */
static void by_the_path(bool ip6)
{
	struct bl_counts c;
	unsigned int i;

	w.ip6 = ip6;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, 1);
	arbiter_begin(0);
	warm_up();
	traffic(300); /* h2 sends within its rack, h3 and h4 from the other one */
	wait_all();
	every_slot_accounted();
	for (i = 0; i < rack.lab.nnodes; i++) {
		if (rack.lab.nodes[i].kind != LAB_TOR || rack.lab.nodes[i].index != 2)
			continue;
		c = rack_counts(i);
		CHECK(c.n[BL_R_PATH_TAKEN] >= 600 && !c.n[BL_R_PATH_LOST],
		      "%" PRIu64 " by a path, %" PRIu64 " lost theirs", c.n[BL_R_PATH_TAKEN],
		      c.n[BL_R_PATH_LOST]);
	}
	arbiter_end(0);
}

/* ---- a link that loses everything while its carrier is up ---- */

static void *faultd_main(void *p)
{
	struct bl_err err;

	rack_enter(arbiter_node(0));
	CHECK(!bl_faultd_run(p, &err), "%s", err.text);
	return NULL;
}

static void faultd_begin(void)
{
	int home = rack_away(arbiter_node(0));
	struct bl_err err;

	CHECK(!bl_faultd_new(&w.faultd, &rack.lab.fp, &err), "%s", err.text);
	rack_back(home);
	CHECK(!pthread_create(&w.faultd_thread, NULL, faultd_main, w.faultd), "thread");
}

static void faultd_end(void)
{
	bl_faultd_stop(w.faultd);
	pthread_join(w.faultd_thread, NULL);
	bl_faultd_free(w.faultd);
}

static unsigned int node_of(enum lab_kind kind, unsigned int index)
{
	unsigned int i;

	for (i = 0; rack.lab.nodes[i].kind != kind || rack.lab.nodes[i].index != index; i++)
		CHECK(i < rack.lab.nnodes, "no node %u of kind %d", index, kind);
	return i;
}

/*
 * Sets the limit of the data queue that a leaf has for its uplink @path: no data passes any more,
 * but control frames (FCP, reports) and beacons do. Returns the previous limit. Nothing may enter
 * that queue meanwhile.
 */
static uint32_t data_limit(unsigned int tor, unsigned int path, uint32_t limit)
{
	struct bl_sw_cfg c;
	struct bl_queue q;
	unsigned int i = node_of(LAB_TOR, tor);
	uint32_t zero = 0, key, was;
	int cfg, queues;

	cfg = rack_map(i, BL_MAP_SW_CFG);
	queues = rack_map(i, BL_MAP_QUEUES);
	CHECK(cfg >= 0 && queues >= 0 && !bpf_map_lookup_elem(cfg, &zero, &c) && path < c.paths,
	      "paths of leaf %u", tor);
	key = BL_PORT_QUEUE(c.path_port[path], BL_CL_DATA);
	CHECK(!bpf_map_lookup_elem_flags(queues, &key, &q, BPF_F_LOCK), "%s", strerror(errno));
	was = q.limit_frames;
	q.limit_frames = limit;
	CHECK(!bpf_map_update_elem(queues, &key, &q, BPF_F_LOCK), "%s", strerror(errno));
	close(cfg);
	close(queues);
	return was;
}

/* Returns the number of frames, data and beacons, that the queue for data from @from to @to
 * dropped. */
static uint64_t dropped_between(unsigned int from, unsigned int to)
{
	const struct lab_node *n = &rack.lab.nodes[from];
	struct bl_queue q;
	uint32_t key, p;
	int fd;

	for (p = 0; p < n->nports && n->ports[p].peer_node != to; p++)
		;
	key = BL_PORT_QUEUE(p, BL_CL_DATA);
	fd = rack_map(from, BL_MAP_QUEUES);
	CHECK(p < n->nports && fd >= 0 && !bpf_map_lookup_elem(fd, &key, &q), "%s has no queue",
	      n->name);
	close(fd);
	return q.dropped;
}

/*
 * Returns whether the link @one really lost frames: a pacer that stands still for long lets the
 * queue in front of it overflow, and then the service is right to name it.
 */
static bool lost_some(const json_t *one)
{
	const char *kind = json_string_value(json_object_get(one, "kind")), *host;
	unsigned int leaf, path, i;

	if (!strncmp(kind, "host", 4)) {
		host = json_string_value(json_object_get(one, "host"));
		for (i = 0; strcmp(rack.lab.nodes[i].name, host); i++)
			CHECK(i < rack.lab.nnodes, "no host %s", host);
		if (!strcmp(kind, "host-up"))
			return rack_count(i, BL_R_HOLD_FULL) || rack_count(i, BL_R_QUEUE_FULL);
		return dropped_between(node_of(LAB_TOR, rack.lab.nodes[i].tor), i);
	}
	leaf = node_of(LAB_TOR, 1 + (unsigned int)json_integer_value(json_object_get(one, "rack")));
	path = node_of(LAB_SPINE, 1 + (unsigned int)json_integer_value(json_object_get(one, "pat"
											    "h")));
	return !strcmp(kind, "up") ? dropped_between(leaf, path) : dropped_between(path, leaf);
}

/*
 * Returns the state of the link; "": it is not on the service's list. Other links may be on the
 * list, too, while the evidence that exonerates them is under way (the machine is busy), or because
 * they lost frames as well. Any other that is named alone (@alone) must not be avoided: if only one
 * of two hosts has reported since the link broke, its own link is to blame for as long.
 */
static const char *fault_state(const char *link, bool *alone)
{
	static char state[16];
	char *text = bl_faultd_text(w.faultd);
	json_t *v = text ? json_loads(text, 0, NULL) : NULL, *one;
	size_t i;

	CHECK(v, "%s", text ? text : "no memory");
	state[0] = 0;
	*alone = false;
	json_array_foreach(json_object_get(v, "links"), i, one)
	{
		const char *at = json_string_value(json_object_get(one, "state"));

		if (!strcmp(json_string_value(json_object_get(one, "link")), link)) {
			CHECK(lost_some(one), "named without a loss: %s", text);
			snprintf(state, sizeof(state), "%s", at);
			continue;
		}
		if (json_integer_value(json_object_get(one, "one_of")) > 1 || lost_some(one))
			continue;
		*alone = true;
		CHECK(!strcmp(at, "suspect"), "%s", text);
	}
	json_decref(v);
	free(text);
	return state;
}

/*
 * Every sender sends until the link is in @state, no other is named alone, and the arbiter avoids
 * some links (@some) or none. The link is on trial until flows have shown that it is good; then it
 * leaves the list.
 */
static void until(const char *link, const char *state, bool some)
{
	uint64_t end = t_mono() + 60000000000ULL;
	struct bl_arb_total t;
	const char *at;
	unsigned int i;
	bool alone;

	do {
		for (i = 1; i < rack.lab.spec.hosts; i++)
			send_some(i, 5);
		rack_serve(5);
		collect();
		bl_arb_read(rack_arb[0].arb, &t, NULL, 0);
		at = fault_state(link, &alone);
		CHECK(t_mono() < end, "%s is \"%s\", not %s, and the arbiter avoids %u links%s",
		      link, at, state, t.faults_links, alone ? "; another is named alone" : "");
	} while ((strcmp(at, state) && (some || *at)) || !t.faults_links == some || alone);
}

/* Every sender sends @n datagrams; returns when everything that is held has left. */
static void all_leave(unsigned int n)
{
	uint64_t end = t_mono() + 60000000000ULL;
	unsigned int i, k;
	bool busy;

	for (k = 0; k < n; k += 20) {
		for (i = 1; i < rack.lab.spec.hosts; i++)
			send_some(i, 20);
		rack_serve(6);
		collect();
	}
	do {
		rack_serve(50);
		collect();
		for (i = 1, busy = false; i < rack.lab.spec.hosts; i++)
			busy |= dest_of(i).frames + rack_count(host_node(i), BL_R_HOLD_FULL) <
				w.sent[i];
		CHECK(t_mono() < end, "frames are held and do not leave");
	} while (busy);
}

/*
 * Waits until everything that was sent has arrived or was counted as dropped: no queue holds a
 * frame.
 */
static void all_come(void)
{
	uint64_t end = t_mono() + 60000000000ULL, sent, come;
	unsigned int i;

	do {
		CHECK(t_mono() < end, "frames are in queues and do not leave");
		rack_serve(10);
		collect();
		come = rack_count_all(BL_R_HOLD_FULL) + rack_count_all(BL_R_QUEUE_FULL);
		for (i = 1, sent = 0; i < rack.lab.spec.hosts; i++) {
			sent += w.sent[i];
			come += w.got[i];
		}
	} while (come < sent);
}

/*
 * Returns the number of frames from rack 1 to h1 on @path so far, as its hosts have counted them.
 */
static uint64_t sent_by(unsigned int path)
{
	static struct bl_fp_paths p;
	uint32_t h1 = 0;
	uint64_t n = 0;
	unsigned int i;
	int fd;

	for (i = 1; i < rack.lab.spec.hosts; i++) {
		if (rack.lab.fp_peer[i].rack != 1)
			continue;
		fd = rack_map(host_node(i), BL_MAP_FP_PATHS);
		CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &h1, &p), "%s", strerror(errno));
		n += p.sent[path];
		close(fd);
	}
	return n;
}

/* Checks that frames that leave now take another path. */
static void avoided(void)
{
	uint64_t dead, other;

	all_leave(0); /* slots on the path that were given before */
	dead = sent_by(0);
	other = sent_by(1);
	all_leave(200);
	CHECK(sent_by(0) == dead && sent_by(1) > other,
	      "%" PRIu64 " more frames on the broken path, %" PRIu64 " on the other",
	      sent_by(0) - dead, sent_by(1) - other);
}

RACK_TEST(faults__link_is_named_and_avoided)
{
	static const char link[] = "rack 1 -> path 0 (up)";
	struct bl_arb_total t;
	uint64_t before;
	uint32_t limit;
	bool alone;

	w.faults = true;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.tors = 3;
	open_rack(6, 1);
	arbiter_begin(0);
	faultd_begin();
	warm_up();
	all_leave(300);
	CHECK(!*fault_state(link, &alone) && !alone, "named without a fault");
	CHECK(sent_by(0) && !sent_by(BL_FP_PATHS), "paths are counted");
	all_come(); /* the queue that is changed now is empty */
	limit = data_limit(2, 0, 0);
	until(link, "broken", true);
	avoided();
	faultd_end();
	avoided(); /* while the service is away, too */
	bl_arb_read(rack_arb[0].arb, &t, NULL, 0);
	CHECK(t.faults_links >= 1, "the arbiter has forgotten");
	/*
	 * A restarted service knows nothing. It detects the link again, and puts it on trial again
	 * when it has healed.
	 */
	rack.lab.fp.fault_hold_ms = 1000;
	faultd_begin();
	until(link, "broken", true);
	data_limit(2, 0, limit);
	until(link, "trial", false);
	before = sent_by(0);
	all_leave(200);
	CHECK(sent_by(0) > before, "the path is not used again");
	faultd_end();
	arbiter_end(0);
}

RACK_TEST(leaf_spine__by_the_path_that_was_given)
{
	by_the_path(false);
}

RACK_TEST(leaf_spine__ipv6)
{
	by_the_path(true);
}

RACK_TEST(policy__changed_sends_what_is_held)
{
	struct bl_admission_set set = {};
	struct bl_node_ref *refs;
	char said[512];
	struct bl_err err;
	int n, i;

	open_rack(3, 1);
	send_some(1, 50);
	send_some(2, 50);
	rack_serve(200);
	collect();
	CHECK(!w.got[1] && !w.got[2], "a frame left without a slot");
	bl_admission_put(&set, BL_AO_POLICY, BL_POLICY_NONE);
	n = bl_nodes_find(&refs, 0, &err);
	for (i = 0; i < n; i++)
		if (refs[i].role == BL_ROLE_HOST)
			CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said), &err) &&
				      strstr(said, "fastpass -> none"),
			      "%s (%s)", said, err.text);
	wait_all();
	/* and back, with frames that were never counted */
	bl_admission_put(&set, BL_AO_POLICY, BL_POLICY_FASTPASS);
	arbiter_begin(0);
	for (i = 0; i < n; i++)
		if (refs[i].role == BL_ROLE_HOST)
			CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said), &err), "%s",
			      err.text);
	free(refs);
	traffic(100);
	wait_all();
	arbiter_end(0);
}

RACK_TEST(endpoint__outside_needs_no_arbiter)
{
	w.stranger = true;
	open_rack(3, 1);
	traffic(200); /* there is no listener */
	wait_all();
	CHECK(dest_of(1).frames == 0 && dest_of(1).endpoint == BL_FP_OUTSIDE, "outside");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fastpass__all_arrive_in_their_slots),
		cmocka_unit_test(arbiter__comes_later),
		cmocka_unit_test(fallback__until_an_arbiter_answers),
		cmocka_unit_test(arbiter__another_takes_over),
		cmocka_unit_test(daemon__exchanged_with_frames_held),
		cmocka_unit_test(leaf_spine__by_the_path_that_was_given),
		cmocka_unit_test(faults__link_is_named_and_avoided),
		cmocka_unit_test(leaf_spine__ipv6),
		cmocka_unit_test(policy__changed_sends_what_is_held),
		cmocka_unit_test(endpoint__outside_needs_no_arbiter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
