// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links that are authenticated, on whole racks: order and atomicity hold; somebody on a cable who
 * forges, repeats and floods link frames changes nothing and is counted; keys are rotated under
 * load without a refused frame; a node that was left out of a rotation, or has no keys, is excluded
 * by name and holds up nobody; a rack is converted while it runs.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "tests/net/barline_run.h"
#include "tests/net/traffic.h"
#include "core/wire_core.h"
#include "loader/auth.h"
#include "maps/auth_abi.h"
#include "proto/link_keys.h"

#define WAIT_MS   60000
#define OVERLAP_S 2

static struct bl_rack_file secrets; /* of the rack */
static enum bl_auth_mode mode[LAB_NODES_MAX];
static uint64_t left_behind; /* nodes that get no new file (bit: index in the lab) */

static uint32_t id_of(unsigned int node)
{
	return (uint32_t)rack.lab.nodes[node].kind * 1000 + rack.lab.nodes[node].index;
}

static void keys_path(char *path, size_t size, unsigned int node)
{
	snprintf(path, size, BL_RUN_DIR "/%s.keys", rack.lab.nodes[node].name);
}

/* Issues the file of a node, as `barline auth issue` does. */
static void issue(unsigned int node)
{
	const struct lab_node *n = &rack.lab.nodes[node];
	struct bl_link_file *f = calloc(1, sizeof(*f));
	struct bl_err err;
	char path[64];
	unsigned int k;

	CHECK(f, "no memory");
	f->node = id_of(node);
	for (k = 0; k < n->nports; k++)
		CHECK(!bl_rack_issue(&secrets, f, id_of(n->ports[k].peer_node), n->ports[k].ifname,
				     0, &err),
		      "%s", err.text);
	keys_path(path, sizeof(path), node);
	CHECK(!bl_link_file_write(f, path, &err), "%s", err.text);
	free(f);
}

/* Adds an epoch to the rack's secret that begins in @in_s seconds, and issues all files anew. */
static void rotate(unsigned int in_s)
{
	struct bl_err err;
	unsigned int k;

	secrets.overlap_s = OVERLAP_S;
	CHECK(!bl_rack_rotate(&secrets, secrets.n ? (uint64_t)time(NULL) + in_s : 0, &err), "%s",
	      err.text);
	for (k = 0; k < rack.lab.nnodes; k++)
		if (!(left_behind >> k & 1))
			issue(k);
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	unsigned int node = (unsigned int)(n - rack.lab.nodes);

	if (!secrets.n)
		rotate(0);
	cfg->clock_void_after_ms = 100000;
	cfg->auth.mode = mode[node];
	keys_path(cfg->auth.keys, sizeof(cfg->auth.keys), node);
}

static void all_nodes(enum bl_auth_mode m)
{
	unsigned int k;

	for (k = 0; k < LAB_NODES_MAX; k++)
		mode[k] = m;
	rack.tweak = tweak;
}

/* The daemons read their files again, as after SIGHUP. */
static void reload_all(void)
{
	struct bl_err err;
	unsigned int k;

	for (k = 0; k < rack.lab.nnodes; k++) {
		if (!rack.node[k] || left_behind >> k & 1)
			continue;
		CHECK(!bl_auth_reload(rack.node[k], &err), "%s", err.text);
		rack_serve(5);
	}
}

static struct bl_auth_state state_of(unsigned int node, uint32_t port)
{
	int fd = rack_map(node, BL_MAP_AUTH_STATES);
	struct bl_auth_state s;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &s), "%s", strerror(errno));
	close(fd);
	return s;
}

static uint64_t refused(void)
{
	return rack_count_all(BL_R_AUTH_MISSING) + rack_count_all(BL_R_AUTH_BAD) +
	       rack_count_all(BL_R_AUTH_REPLAYED) + rack_count_all(BL_R_AUTH_FLOOD) +
	       rack_count_all(BL_R_AUTH_EPOCH);
}

static uint32_t wanted_epoch;

/* Whether every link has sent and accepted a frame under wanted_epoch last. */
static bool all_links_use_it(void)
{
	unsigned int k, p;

	for (k = 0; k < rack.lab.nnodes; k++)
		for (p = 0; p < rack.lab.nodes[k].nports && !(left_behind >> k & 1); p++) {
			struct bl_auth_state s = state_of(k, p);

			if (left_behind >> rack.lab.nodes[k].ports[p].peer_node & 1)
				continue;
			if (s.in != wanted_epoch || s.out != wanted_epoch)
				return false;
		}
	return true;
}

/* Endpoints on the first @hosts hosts send to each other until tr_enough(). */
static void talk(unsigned int hosts)
{
	unsigned int i;

	for (i = 0; i < hosts; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 300,
					 .gap_us = 1000,
					 .quiet_ms = 5000,
					 .ring_bytes = TR_RING_TIGHT(hosts) });
}

/* Ends what talk() began. Everything that was sent must have arrived, in order. */
static void talk_ends(void)
{
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	tr_reset();
}

/* Hosts and switches, two tiers, both streams, with beacons made from ACKs. */
static void order_holds(enum bl_auth_mode m)
{
	rack.lab.spec.hosts = 4;
	rack.lab.spec.leaf_spine = true;
	rack.lab.spec.l3 = true;
	all_nodes(m);
	rack_open();
	tr_talk("best effort", 6, 4,
		(struct tr_cfg){
			.scatterings = 400, .len = 300, .fan = 3, .ring_bytes = TR_RING_TIGHT(6) });
	tr_reset();
	tr_talk("reliable", 4, 4,
		(struct tr_cfg){ .scatterings = 200,
				 .len = 300,
				 .fan = 3,
				 .reliable = true,
				 .ring_bytes = TR_RING_TIGHT(4) });
	CHECK(rack_count_all(BL_R_COMMITTED) > 0, "no beacon was made from an ACK");
	wanted_epoch = 1;
	CHECK(all_links_use_it(), "a link is not authenticated");
	CHECK(!refused(), "%" PRIu64 " genuine frames were refused", refused());
	CHECK(state_of(rack_host(0), 0).sent[BL_AUTH_S_COMMIT], "commits have no stream");
}

RACK_TEST(links__order_holds)
{
	order_holds(BL_AUTH_LINKS);
}

/* Where data raises no register, all barriers come by beacons. */
RACK_TEST(strict__order_holds)
{
	order_holds(BL_AUTH_STRICT);
}

/* ---- somebody on the cable of the last host ---- */

#define EVIL 3

static int evil_fd;
static uint8_t recorded[256];
static ssize_t recorded_len;

/* Opens a socket on the cable, past the host's programs. */
static void tap(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int home = rack_away(rack_host(EVIL)), one = 1;

	evil_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	a.sll_ifindex = (int)if_nametoindex("eth0");
	CHECK(evil_fd >= 0 && !bind(evil_fd, (struct sockaddr *)&a, sizeof(a)) &&
		      !setsockopt(evil_fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)),
	      "%s", strerror(errno));
	rack_back(home);
}

/* Keeps the last beacon that the host has sent. Returns whether there is one. */
static bool record(void)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	uint8_t p[256];
	ssize_t n;

	while ((n = recvfrom(evil_fd, p, sizeof(p), MSG_TRUNC, (struct sockaddr *)&from, &len)) > 0)
		if (from.sll_pkttype == PACKET_OUTGOING && n == BL_BEACON_LEN &&
		    p[12] == BL_ETHERTYPE >> 8 && p[14 + 22] == BL_OPCODE_BYTE(BL_OP_BEACON)) {
			memcpy(recorded, p, (size_t)n);
			recorded_len = n;
		}
	return recorded_len;
}

static void inject(const uint8_t *p, size_t n)
{
	while (send(evil_fd, p, n, 0) < 0)
		CHECK(errno == ENOBUFS || errno == EAGAIN, "%s", strerror(errno));
}

static struct bl_port_regs evil_regs(void)
{
	int fd = rack_map(0, BL_MAP_SW_REGS);
	struct bl_port_regs r;
	uint32_t port = EVIL;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &r), "%s", strerror(errno));
	close(fd);
	return r;
}

/* One round of everything that a stranger can send: B is the present time, which is credible. */
static void attack(void)
{
	uint64_t now = bl_node_bus_time(rack.node[0]);
	uint8_t f[256], rsv[60];
	unsigned int k;

	memcpy(f, recorded, (size_t)recorded_len);
	bl_put48(f + 14 + 6, now);
	bl_put48(f + 14 + 12, now);
	memset(f + 14, 0, 6);
	inject(f, (size_t)recorded_len); /* without a tag */
	inject(recorded, (size_t)recorded_len);
	memcpy(f + 14, recorded + 14, 2);
	for (k = 0; k < 20; k++) { /* with a fresh stamp and a guessed tag */
		uint64_t stamp = htobe64(now + k), tag = now * 0x9E3779B97F4A7C15ULL + k;

		memcpy(f + 14 + 32, &stamp, 8);
		memcpy(f + 14 + 40, &tag, 8);
		inject(f, (size_t)recorded_len);
	}
	f[15] ^= 0xf0; /* another epoch */
	inject(f, (size_t)recorded_len);
	memcpy(rsv, recorded, sizeof(rsv));
	memset(rsv + 14, 0, sizeof(rsv) - 14);
	rsv[14 + 22] = BL_OPCODE_BYTE(BL_OP_RSV);
	inject(rsv, sizeof(rsv));
}

static bool attacked_and_excluded(void)
{
	unsigned int k;

	for (k = 0; k < 10; k++)
		attack();
	return rack_count(0, BL_R_EXCLUDED) && rack_count(0, BL_R_AUTH_MISSING) > 100 &&
	       rack_count(0, BL_R_AUTH_REPLAYED) > 100 && rack_count(0, BL_R_AUTH_BAD) > 100 &&
	       rack_count(0, BL_R_AUTH_FLOOD) > 100 && rack_count(0, BL_R_AUTH_EPOCH) > 100;
}

/*
 * The last host's daemon is stopped; a stranger sends on its cable what looks like the host alive.
 * The host is excluded all the same, its register stands, and the others go on.
 */
RACK_TEST(stranger__changes_nothing)
{
	struct bl_port_regs before, after;
	unsigned int k;

	rack.lab.spec.hosts = EVIL + 1;
	all_nodes(BL_AUTH_LINKS);
	rack_open();
	talk(EVIL);
	tr_go();
	tap();
	CHECK(tr_until(record, WAIT_MS), "the host sends no beacon");
	rack_close_node(rack_host(EVIL));
	record();
	rack_serve(50); /* what the host has sent arrives */
	before = evil_regs();
	CHECK(tr_until(attacked_and_excluded, WAIT_MS),
	      "excluded %" PRIu64 ", missing %" PRIu64 ", bad %" PRIu64 ", replayed %" PRIu64
	      ", flood %" PRIu64 ", epoch %" PRIu64,
	      rack_count(0, BL_R_EXCLUDED), rack_count(0, BL_R_AUTH_MISSING),
	      rack_count(0, BL_R_AUTH_BAD), rack_count(0, BL_R_AUTH_REPLAYED),
	      rack_count(0, BL_R_AUTH_FLOOD), rack_count(0, BL_R_AUTH_EPOCH));
	for (k = 0; k < EVIL; k++) {
		attack();
		tr_goes_on(k, "beside a stranger");
		attack();
	}
	after = evil_regs();
	CHECK((uint8_t)after.lane[0].state == BL_REG_DEAD, "the silent host is live");
	CHECK(after.lane[0].b == before.lane[0].b, "a forged barrier was believed");
	/* and the genuine host is heard, although the stranger goes on */
	rack_open_node(rack_host(EVIL));
	while (rack_live_inputs(0) < EVIL + 1) {
		attack();
		CHECK(t_mono() - rack_begun < 100000000000ULL, "the host does not come back");
		tr_pass(20);
	}
	tr_goes_on(0, "after the host has come back");
	close(evil_fd);
	talk_ends();
	CHECK(!rack_count(rack_host(0), BL_R_AUTH_BAD), "forged frames got beyond the switch");
}

/* ---- rotation ---- */

RACK_TEST(rotation__without_a_gap)
{
	unsigned int k;

	rack.lab.spec.hosts = 4;
	rack.lab.spec.leaf_spine = true;
	rack.lab.spec.l3 = true;
	all_nodes(BL_AUTH_LINKS);
	rack_open();
	talk(4);
	tr_go();
	tr_goes_on(0, "before the rotation");
	for (k = 0; k < 3; k++) {
		rotate(2); /* at least 1 s: Unix time is in whole seconds here */
		reload_all();
		wanted_epoch = k + 2;
		CHECK(tr_until(all_links_use_it, WAIT_MS), "not all links use epoch %u", k + 2);
		tr_goes_on(1, "after the rotation");
		tr_pass((OVERLAP_S + 1) * 1000); /* until the old epoch is over */
	}
	tr_goes_on(2, "after the old epoch is over");
	talk_ends();
	CHECK(!refused(), "%" PRIu64 " genuine frames were refused", refused());
	CHECK(!rack_count_all(BL_R_EXCLUDED), "somebody was taken for dead");
}

static bool behind_is_refused(void)
{
	return rack_count(0, BL_R_AUTH_EPOCH) && rack_count(0, BL_R_EXCLUDED);
}

static bool all_live(void)
{
	return rack_live_inputs(0) == rack.lab.spec.hosts;
}

/* A host without the new file is accepted for the overlap, and excluded after it. */
RACK_TEST(rotation__one_left_behind)
{
	unsigned int evil;
	struct bl_err err;
	uint64_t early;

	rack.lab.spec.hosts = EVIL + 1;
	all_nodes(BL_AUTH_LINKS);
	rack_open();
	talk(EVIL);
	tr_go();
	tr_goes_on(0, "before the rotation");
	evil = rack_host(EVIL);
	left_behind = 1ULL << evil;
	rotate(0);
	reload_all();
	wanted_epoch = 2;
	CHECK(tr_until(all_links_use_it, WAIT_MS), "not all links use epoch 2");
	rack_serve(100);
	early = rack_count(0, BL_R_AUTH_EPOCH);
	/* Whether the overlap was still on is known only afterwards. */
	if ((uint64_t)time(NULL) < secrets.at[1].from_s + OVERLAP_S)
		CHECK(!early, "the old epoch is refused %" PRIu64 " times before its end", early);
	else
		fprintf(stderr, "  too slow to look into the overlap\n");
	CHECK(tr_until(behind_is_refused, WAIT_MS), "epoch %" PRIu64 ", excluded %" PRIu64,
	      rack_count(0, BL_R_AUTH_EPOCH), rack_count(0, BL_R_EXCLUDED));
	CHECK(rack_count(evil, BL_R_AUTH_EPOCH), "it believes an epoch that it does not have");
	tr_goes_on(1, "without the host that was left behind");
	left_behind = 0;
	issue(evil);
	CHECK(!bl_auth_reload(rack.node[evil], &err), "%s", err.text);
	CHECK(tr_until(all_live, WAIT_MS), "it does not come back with its new file");
	tr_goes_on(2, "with all of them");
	talk_ends();
	CHECK(!rack_count_all(BL_R_AUTH_BAD) && !rack_count_all(BL_R_AUTH_MISSING), "bad tags");
}

/* ---- a node without keys ---- */

/* The member @key of the row of port @name of `barline show auth` on @node. */
static json_t *shown(unsigned int node, const char *name, const char *key)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "show", "auth", NULL };
	int home = rack_away(node), status;
	json_t *said, *row, *v = NULL;
	size_t i;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	status = barline_run(&said, argv);
	rack_back(home);
	CHECK(!status && said, "show auth failed");
	json_array_foreach(json_object_get(said, "auth"), i,
			   row) if (!strcmp(json_string_value(json_object_get(row, "name")), name))
		v = json_incref(json_object_get(row, key));
	json_decref(said);
	CHECK(v, "no port %s, or no %s", name, key);
	return v;
}

static bool missing_is_refused(void)
{
	return rack_count(0, BL_R_AUTH_MISSING) > 10;
}

/* It is excluded, both sides can see why, and the others go on. */
RACK_TEST(no_keys__excluded_by_name)
{
	unsigned int k;

	rack.lab.spec.hosts = EVIL + 1;
	all_nodes(BL_AUTH_LINKS);
	/* the last node of the plan of one switch and EVIL + 1 hosts */
	mode[EVIL + 1] = BL_AUTH_OFF;
	rack.closed = 1ULL << (EVIL + 1);
	rack_open();
	CHECK(rack_host(EVIL) == EVIL + 1, "the plan is another one");
	talk(EVIL);
	tr_go();
	rack_open_node(rack_host(EVIL));
	CHECK(tr_until(missing_is_refused, WAIT_MS), "its beacons are not refused");
	for (k = 0; k < EVIL; k++)
		tr_goes_on(k, "beside a host without keys");
	CHECK(rack_live_inputs(0) == EVIL, "the host without keys holds barriers back");
	CHECK(!strcmp(json_string_value(shown(0, rack.lab.nodes[0].ports[EVIL].ifname, "refused")),
		      "auth_missing"),
	      "the switch does not say why");
	CHECK(!strcmp(json_string_value(shown(rack_host(EVIL), "eth0", "mode")), "off") &&
		      json_integer_value(shown(rack_host(EVIL), "eth0", "offered")) == 1,
	      "the host does not say that its neighbour has keys");
	talk_ends();
}

/* From no tags to required ones while the rack runs: node by node, first offered, then required. */
RACK_TEST(converted__while_it_runs)
{
	static const enum bl_auth_mode steps[] = { BL_AUTH_OFFER, BL_AUTH_LINKS, BL_AUTH_STRICT,
						   BL_AUTH_OFFER, BL_AUTH_OFF };
	unsigned int k, s;

	rack.lab.spec.hosts = 3;
	all_nodes(BL_AUTH_OFF);
	rack_open();
	talk(3);
	tr_go();
	for (s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
		for (k = 0; k < rack.lab.nnodes; k++) {
			mode[k] = steps[s];
			rack_close_node(k);
			rack_open_node(k);
			tr_pass(20);
		}
		tr_goes_on(0, "after a step");
	}
	talk_ends();
	CHECK(!refused(), "%" PRIu64 " genuine frames were refused", refused());
	CHECK(!rack_count_all(BL_R_EXCLUDED), "somebody was taken for dead");
}

/* ---- the commands ---- */

/* Runs `barline -j auth ...`. Returns its exit status. */
static int auth(const char *a, const char *b, const char *c, const char *d, const char *e,
		const char *f)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "auth", a, b, c, d, e, f, NULL };
	json_t *said;
	int status;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	status = barline_run(&said, argv);
	CHECK(said, "auth %s prints no object", a);
	json_decref(said);
	return status;
}

/* What two nodes are issued fits together, also after a rotation. */
RACK_TEST(commands__keys_of_a_link)
{
	static const char rack_path[] = BL_RUN_DIR "/rack", a_path[] = BL_RUN_DIR "/1.keys",
			  b_path[] = BL_RUN_DIR "/b";
	static struct bl_link_file a, b;
	struct bl_err err;
	unsigned int k, e;

	CHECK(!chdir(BL_RUN_DIR), "%s", strerror(errno));
	CHECK(!auth("init", rack_path, NULL, NULL, NULL, NULL), "init");
	CHECK(auth("init", rack_path, NULL, NULL, NULL, NULL) == 1, "init replaced a secret");
	for (k = 1; k < 3; k++) {
		CHECK(!auth("issue", rack_path, "1", "1001", NULL, NULL), "issue");
		CHECK(!auth("issue", rack_path, "1001", "1@p1", "-o", b_path), "issue");
		CHECK(!bl_link_file_load(&a, a_path, &err), "%s", err.text);
		CHECK(!bl_link_file_load(&b, b_path, &err), "%s", err.text);
		CHECK(a.node == 1 && a.n == 1 && a.link[0].peer == 1001 && a.link[0].n == k, "a");
		CHECK(b.node == 1001 && b.n == 1 && b.link[0].peer == 1 && b.link[0].n == k &&
			      !strcmp(b.link[0].port, "p1"),
		      "b");
		for (e = 0; e < k; e++)
			CHECK(!memcmp(a.link[0].at[e].send, b.link[0].at[e].receive,
				      BL_LINK_KEY_LEN) &&
				      !memcmp(a.link[0].at[e].receive, b.link[0].at[e].send,
					      BL_LINK_KEY_LEN),
			      "the two ends do not agree");
		if (k == 1)
			CHECK(!auth("rotate", "--in", "1000", rack_path, NULL, NULL), "rotate");
	}
	CHECK(a.link[0].at[1].from_s > (uint64_t)time(NULL) + 900, "it begins too early");
	CHECK(auth("rotate", rack_path, NULL, NULL, NULL, NULL) == 1, "an epoch was skipped");
	CHECK(auth("issue", rack_path, "1", NULL, NULL, NULL) == 2, "a node without links");
	CHECK(auth("issue", rack_path, "1", "1", NULL, NULL) == 1, "a link to itself");
	CHECK(auth("issue", rack_path, "1", "x", NULL, NULL) == 2, "no peer");
	CHECK(!auth("issue", rack_path, "1", "1001@p,1", "-o", b_path), "issue");
	CHECK(!bl_link_file_load(&b, b_path, &err), "%s", err.text);
	CHECK(memcmp(a.link[0].at[0].send, b.link[0].at[0].send, BL_LINK_KEY_LEN), "parallel links "
										   "have the same "
										   "key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands__keys_of_a_link),
		cmocka_unit_test(links__order_holds),
		cmocka_unit_test(strict__order_holds),
		cmocka_unit_test(stranger__changes_nothing),
		cmocka_unit_test(rotation__without_a_gap),
		cmocka_unit_test(rotation__one_left_behind),
		cmocka_unit_test(no_keys__excluded_by_name),
		cmocka_unit_test(converted__while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
