// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Forged reservations, grants, tokens and packets of arbiters, from a host that runs none of our
 * programs, beside ordered traffic and beside applications of the others. Applications send
 * numbered datagrams from bl0 to bl0, and each one arrives (under TOP: as many as before the
 * attack).
 *
 * Covered elsewhere: tags, cookies and numbers of tokens (tests/unit/core/top, tests/prog/host),
 * grants (tests/unit/core/pl2), the checks of FCP and the watchdogs of arbiters
 * (tests/unit/core/fastpass, tests/net/fastpass).
 */
#include "maps/fcp_abi.h"
#include "maps/top_abi.h"
#include "tests/net/attacks/attack_rack.h"
#include "tests/net/fastpass/rack_arbiter.h"
#include "tests/net/stations.h"

#define DATAGRAMS 150
#define APP_PORT  700

static struct station st[ATK_HOSTS];

static void rack_with(enum bl_policy policy)
{
	unsigned int i;

	rack_of(&(struct atk_rack){ .policy = policy });
	if (policy == BL_POLICY_FASTPASS) {
		arbiter_begin(0);
		wait_primary(0);
	}
	for (i = 0; i < ATK_HOSTS; i++)
		st[i] = station(i);
}

/* bl0 of host @host, or the arbiter, as the source or destination of a datagram. */
static struct atk_from bl0_of(unsigned int host, uint16_t port)
{
	struct atk_from f = { .port = port };

	memcpy(f.mac, st[host].mac, 6);
	lab_bl0_addr(&rack.lab.nodes[rack_host(host)], AF_INET, f.ip);
	return f;
}

static struct atk_from station_of(unsigned int node, uint16_t port)
{
	struct atk_from f = { .port = port };

	memcpy(f.mac, rack.lab.nodes[node].ports[0].mac, 6);
	lab_host_addr(&rack.lab.nodes[node], AF_INET, f.ip);
	return f;
}

/*
 * Applications of h1, h2 and h3 talk in a circle. Each datagram arrives; under TOP, whose senders
 * wait for tokens and give up what waits for too long, they send until enough has arrived.
 */
static void apps_talk(const char *when)
{
	bool top = atk_kind.policy == BL_POLICY_TOP;
	unsigned int got[ATK_HOSTS] = { 0 }, want = top ? 20 : DATAGRAMS, i, n;
	uint64_t end = t_mono() + 60000000000ULL;

	for (n = 0; got[0] < want || got[1] < want || got[2] < want; n++) {
		for (i = 0; i < ATK_HOSTS && (top || n < DATAGRAMS); i++)
			give_host(&st[i], &st[(i + 1) % ATK_HOSTS], APP_PORT, n);
		tr_pass(top ? 20 : 2);
		for (i = 0; i < ATK_HOSTS; i++)
			while (took(&st[i], NULL) == APP_PORT)
				got[i]++;
		CHECK(t_mono() < end, "%s, h1, h2 and h3 have %u, %u and %u of %u datagrams", when,
		      got[0], got[1], got[2], want);
	}
}

/* Ordered traffic first, then applications, while @attack() goes on. */
static void both_beside(const char *what, void (*attack)(struct atk *a))
{
	apps_talk("before the attack");
	beside(what, &(struct atk_case){ .attack = attack, .reason = "spoofed", .least = 100 });
	atk_start(ATK_ME, attack, 0);
	apps_talk("during the attack");
	atk_stop();
	rack_judge();
}

/* Asks for slots, gives back promises and grants, in the names of the others. */
static void forge_pl2(struct atk *a)
{
	unsigned int i = 0;

	while (atk_pace(a, 1000)) {
		unsigned int from = i % ATK_HOSTS, to = (from + 1) % ATK_HOSTS;

		switch (i++ / ATK_HOSTS % 4) {
		case 0: /* the next burst of @from: what it was promised lapses */
			atk_rsv(a, st[from].mac, BL_OP_RSV, t_below(&a->seed, 1U << 16), st[to].mac,
				16 * 1538, 0);
			break;
		case 1: /* what @to was told of @from does not come */
			atk_rsv(a, st[to].mac, BL_OP_RELEASE, t_below(&a->seed, 64), st[from].mac,
				16 * 1538, 0);
			break;
		case 2: /* the switch's answer */
			atk_rsv(a, st[from].mac, BL_OP_GRT, t_below(&a->seed, 64), st[to].mac,
				16 * 1538, BL_GRT_PASSED);
			break;
		default:
			atk_rsv(a, atk_mac(from), BL_OP_RSV, i, st[to].mac, 1538, BL_RSV_EARLY);
			break;
		}
	}
}

RACK_TEST(pl2__forged)
{
	rack_with(BL_POLICY_PL2);
	both_beside("RSV, RELEASE and GRT in others' names", forge_pl2);
}

/* Every opcode of TOP from one of the others to another one. */
static void forge_top(struct atk *a)
{
	struct atk_frame f;
	unsigned int i = 0, k;

	while (atk_pace(a, 1000)) {
		struct atk_from from = bl0_of(i % ATK_HOSTS, BL_TOP_SPORT_BASE + i % 64),
				to = bl0_of((i + 1) % ATK_HOSTS, BL_TOP_PORT);
		uint8_t body[sizeof(struct bl_top_hdr) + sizeof(struct bl_top_sync)] = { 0 };
		struct bl_top_hdr *h = (struct bl_top_hdr *)body;

		for (k = sizeof(*h); k < sizeof(body); k++)
			body[k] = i & 8 ? (uint8_t)t_rand(&a->seed) : 0;
		h->opcode = BL_TOP_OPCODE_BYTE(1 + i % (BL_TOP_OPCODE_LIMIT - 1));
		h->flow = BL_BE16(t_below(&a->seed, 64));
		BL_HALVES_SET(h, seq, i);
		bl_put48(h->ts, atk_now(a));
		BL_HALVES_SET(h, tag, (uint32_t)t_rand(&a->seed));
		atk_dgram(&f, &from, &to, body, sizeof(body));
		atk_send(a, &f);
		i++;
	}
}

RACK_TEST(top__forged)
{
	rack_with(BL_POLICY_TOP);
	both_beside("tokens and signals in others' names", forge_top);
}

/* Packets of hosts to the arbiter, of the arbiter to hosts, and of another arbiter to it. */
static void forge_fastpass(struct atk *a)
{
	unsigned int arbiter = arbiter_node(0), i = 0;
	struct atk_frame f;

	while (atk_pace(a, 1000)) {
		unsigned int host = i % ATK_HOSTS;
		struct atk_from arb = station_of(arbiter, BL_FCP_PORT),
				from = i & 1 ? bl0_of(host, BL_FCP_PORT)
					     : station_of(rack_host(host), BL_FCP_PORT);
		uint8_t body[sizeof(struct bl_fcp_hdr) + sizeof(struct bl_fcp_reset)] = { 0 };
		struct bl_fcp_hdr *h = (struct bl_fcp_hdr *)body;
		struct bl_fcp_watchdog *w = (struct bl_fcp_watchdog *)(h + 1);
		unsigned int op = 1 + i / ATK_HOSTS % (BL_FCP_OPCODE_LIMIT - 1);

		h->magic = BL_BE16(BL_FCP_MAGIC);
		h->opcode = BL_FCP_OPCODE_BYTE(op);
		h->seq = BL_BE32(i);
		h->check = BL_BE64(t_rand(&a->seed));
		if (op == BL_FCP_WATCHDOG) { /* of another primary, with a later term */
			w->term = BL_BE32(1U << 30);
			w->state = BL_FCP_PRIMARY;
			from.port = arb.port = BL_FCP_WATCHDOG_PORT;
		}
		if (op == BL_FCP_REQ || op == BL_FCP_ACK || op == BL_FCP_WATCHDOG)
			atk_dgram(&f, &from, &arb, body, sizeof(body));
		else
			atk_dgram(&f, &arb, &from, body, sizeof(body));
		atk_send(a, &f);
		i++;
	}
}

RACK_TEST(fastpass__forged)
{
	struct bl_arb_total t;

	rack_with(BL_POLICY_FASTPASS);
	both_beside("FCP in the names of hosts and of the arbiter", forge_fastpass);
	bl_arb_read(rack_arb[0].arb, &t, NULL, 0);
	CHECK(t.state == BL_FCP_PRIMARY, "the arbiter is in state %d", t.state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pl2__forged),
		cmocka_unit_test(top__forged),
		cmocka_unit_test(fastpass__forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
