// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The verdict of traffic.h on logs that are written here by hand. A run in which nothing can be
 * judged must fail: nothing was delivered, no two receivers share a message, or more failures were
 * reported than there is room for.
 */
#include "tests/net/traffic.h"

#define NODES 3

static void blank(void)
{
	uint32_t i;

	tr_sh = tr_map(sizeof(*tr_sh));
	tr_sh->count = NODES;
	for (i = 0; i < NODES; i++) {
		tr_sh->node[i].sent = tr_map(TR_SENT_MAX * sizeof(struct oc_sent));
		tr_sh->node[i].got = tr_map(TR_GOT_MAX * sizeof(struct oc_got));
		tr_sh->node[i].failed = tr_map(TR_FAILED_MAX * sizeof(struct tr_failed));
	}
}

/* Endpoint 0 sends one message to each endpoint of @to, and the endpoints of @at get it. */
static void say(uint64_t to, uint64_t at)
{
	struct tr_node *s = &tr_sh->node[0];
	uint32_t r;

	s->sent[s->nsent] = (struct oc_sent){ .to = to, .items = 1, .hash = { s->nsent } };
	for (r = 0; r < NODES; r++)
		if (at >> r & 1)
			tr_sh->node[r].got[tr_sh->node[r].ngot++] =
				(struct oc_got){ .seq = s->nsent, .hash = s->nsent };
	s->nsent++;
}

/* Endpoint 0 is told that its message to endpoint @dst has failed. */
static void told(uint64_t seq, uint16_t dst)
{
	struct tr w = { .me = &tr_sh->node[0] };

	tr_on_fail(&w, 0, &(struct bl_addr){ .port = 0 }, seq << 16 | (uint64_t)dst << 4,
		   BL_FAIL_LOST);
}

static void shared(void)
{
	blank();
	say(6, 6);
	tr_judge(~0ULL, ~0ULL);
}

static void nothing_sent(void)
{
	blank();
	tr_judge(0, 0);
}

static void nothing_delivered(void)
{
	blank();
	say(6, 0);
	tr_judge(0, 0);
}

static void nothing_delivered_nor_shared(void)
{
	blank();
	say(2, 0);
	tr_judge_not_shared(0, 0);
}

static void all_reported(void)
{
	blank();
	say(6, 0);
	told(0, 1);
	told(0, 2);
	tr_judge_all(~0ULL, ~0ULL, true);
}

/* Sends each message to one receiver only. */
static void each_to_one(bool said_so)
{
	blank();
	say(2, 2);
	say(4, 4);
	if (said_so)
		tr_judge_not_shared(~0ULL, ~0ULL);
	else
		tr_judge(~0ULL, ~0ULL);
}

static void apart(void)
{
	each_to_one(false);
}

static void apart_by_name(void)
{
	each_to_one(true);
}

static void reports(unsigned int more)
{
	uint32_t k;

	blank();
	say(6, 6);
	say(6, 0);
	for (k = 0; k < TR_FAILED_MAX + more; k++)
		told(1, 1);
	tr_judge(0, 0);
}

static void reports_that_fit(void)
{
	reports(0);
}

static void reports_that_do_not(void)
{
	reports(1);
}

static void reported_and_delivered(void)
{
	blank();
	say(6, 6);
	told(0, 2);
	tr_judge(0, 0);
}

static void tr_judge__needs_something_to_judge(void **state)
{
	static const struct {
		void (*fn)(void);
		const char *name;
		bool good;
	} t[] = {
		{ shared, "shared", true },
		{ nothing_sent, "nothing sent", false },
		{ nothing_delivered, "nothing delivered", false },
		{ nothing_delivered_nor_shared, "nothing delivered, nor shared", false },
		{ all_reported, "all reported", false },
		{ apart, "apart", false },
		{ apart_by_name, "apart, by name", true },
		{ reports_that_fit, "as many reports as there is room for", true },
		{ reports_that_do_not, "one report more", false },
		{ reported_and_delivered, "reported and delivered", false },
	};
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(t) / sizeof(*t); k++) {
		const char *wrong = rack_outcome(t[k].fn);

		/* FAIL() and CHECK() end a case with status 1; any other end has another cause. */
		if (t[k].good ? wrong != NULL
			      : !wrong || strcmp(wrong, "the case ended with status 1"))
			fail_msg("%s: %s", t[k].name, wrong ? wrong : "was good");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tr_judge__needs_something_to_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
