// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the neighbours of a node: whether they are heard, whether barriers lag, and
 * whether two of them, or one and this node, have the same number.
 */
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/health/judge.h"
#include "cli/util/inputs.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/** struct seen - the inputs of a node, while they are looked at. */
struct seen {
	struct neighbour_facts f;
	char first[16];        /* the first input that is not live and well */
	uint32_t id;           /* of this node */
	uint32_t twice;        /* a number that two nodes have; 0: none */
	char one[16], two[16]; /* the ports behind which they are; @one "": this node itself */
};

/* Adds an input by its lanes: it is live if one of them is. */
static void add_input(struct seen *s, const struct node_input *in, uint64_t now, uint64_t lag_max)
{
	bool live = false, joining = false, dead = false, held = false, lags = false;
	unsigned int l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		unsigned int state = in->reg[l].state & 0xff;

		live |= state == BL_REG_LIVE;
		joining |= state == BL_REG_JOINING;
		dead |= state == BL_REG_DEAD;
		held |= !!(in->reg[l].state & BL_REG_HELD);
		lags |= state == BL_REG_LIVE && now && in->reg[l].b + lag_max < now;
	}
	s->f.all++;
	s->f.live += live;
	s->f.held += held;
	s->f.excluded += !live && dead;
	s->f.joining += !live && !dead && joining;
	s->f.lagging += lags;
	if ((!live || held || lags) && !*s->first)
		snprintf(s->first, sizeof(s->first), "%s", in->name);
}

static void look_at_host(struct seen *s, const struct node_inputs *in, uint64_t now)
{
	const struct bl_host_page *page = &in->page;

	s->f.drained = page->drained;
	if (now && page->barrier && now > page->barrier)
		s->f.lag_ns = now - page->barrier;
	if (page->life.neighbour == s->id) {
		s->twice = s->id;
		snprintf(s->two, sizeof(s->two), "%s", in->in[0].name);
	}
}

/*
 * The number that the node behind a port says. A switch refuses the beacons of a host with the
 * number of another one, and leaves that number in @other_node. 0: nothing was heard.
 */
static uint32_t says(const struct node_input *in)
{
	return in->cfg.other_node ? in->cfg.other_node : in->life.neighbour;
}

/* Two cables to one switch are no duplicate, so only ports with hosts are compared. */
static void compare_ids(struct seen *s, const struct node_inputs *in)
{
	const struct node_input *p = in->in;
	uint32_t k, j, id;

	for (k = 0; k < in->n && !s->twice; k++) {
		id = says(&p[k]);
		if (!id)
			continue;
		if (id == s->id) {
			s->twice = id;
			snprintf(s->two, sizeof(s->two), "%s", p[k].name);
		}
		for (j = 0; j < k && p[k].cfg.role == BL_PORT_HOST && !s->twice; j++)
			if (p[j].cfg.role == BL_PORT_HOST && says(&p[j]) == id) {
				s->twice = id;
				snprintf(s->one, sizeof(s->one), "%s", p[j].name);
				snprintf(s->two, sizeof(s->two), "%s", p[k].name);
			}
	}
}

static void report_neighbours(const struct finder *to, const char *name, const struct seen *s)
{
	const struct verdict v = judge_neighbours(&s->f);
	const char *cure, *is;
	char what[40];

	if (v.level == FOUND_OK) {
		found_as(to, CHECK_NEIGHBOUR, v.word, v.level, name, "", "%u neighbour%s heard",
			 s->f.live, s->f.live == 1 ? "" : "s");
		return;
	}
	if (s->f.drained) {
		found_as(to, CHECK_NEIGHBOUR, v.word, v.level, name,
			 "`barline host undrain` takes it in again",
			 "the host is drained: it takes no part in the rack");
		return;
	}
	snprintf(what, sizeof(what), "%.20s %.15s", name, s->first);
	if (!strcmp(v.word, "held")) {
		is = "is frozen since a failure";
		cure = "the controller resumes it when it has settled the failure (`barline show "
		       "failures`); without controllers, it is resumed when the neighbour is heard";
	} else if (!strcmp(v.word, "excluded")) {
		is = "was heard before and is silent now";
		cure = "check that the machine and its daemon run (`barline status` there), and "
		       "the "
		       "cable";
	} else if (!strcmp(v.word, "joining")) {
		is = "is heard, but joins only when its barrier has caught up";
		cure = "wait a moment; if it lasts, compare `barline show clock` on both sides";
	} else if (!strcmp(v.word, "silent")) {
		is = "was never heard";
		cure = "check the cable, and that barlined runs at its other end (`barline status` "
		       "there)";
	} else {
		is = "lags";
		cure = "`barline show barriers` at the switches shows who holds the barrier back";
	}
	if (s->f.host && !strcmp(v.word, "lagging"))
		found_as(to, CHECK_NEIGHBOUR, v.word, v.level, what, cure,
			 "the barrier is %llu ms behind the clock, so messages arrive late",
			 (unsigned long long)s->f.lag_ns / 1000000);
	else if (s->f.host)
		found_as(to, CHECK_NEIGHBOUR, v.word, v.level, what, cure, "the neighbour %s", is);
	else
		found_as(to, CHECK_NEIGHBOUR, v.word, v.level, what, cure,
			 "%u of %u neighbours heard; the one on %s %s", s->f.live, s->f.all,
			 s->first, is);
}

static void report_ids(const struct finder *to, const char *name, const struct seen *s)
{
	const char *cure = "give each node a number of its own (node_id), or none, so that it is "
			   "random";

	if (!s->twice)
		found_as(to, CHECK_NODE_ID, "ok", FOUND_OK, name, "", "node id %u", s->id);
	else if (*s->one)
		found_as(to, CHECK_NODE_ID, "duplicate", FOUND_FAIL, name, cure,
			 "the hosts on %s and %s have the same node id %u, and one of the two is "
			 "refused",
			 s->one, s->two, s->twice);
	else
		found_as(to, CHECK_NODE_ID, "duplicate", FOUND_FAIL, name, cure,
			 "the node on %s has this node's id %u: each refuses the other's beacons",
			 s->two, s->twice);
}

void doctor_neighbours(const struct finder *to, const struct bl_node_ref *ref)
{
	struct seen s = { .f.host = ref->role == BL_ROLE_HOST, .id = ref->meta.node_id };
	uint64_t now, lag_max;
	struct node_inputs in;
	struct bl_clock clock;
	struct bl_err err;
	uint32_t k;

	now = node_now(ref, &clock);
	if (node_inputs_read(ref, &in, &err))
		cli_fail("%s", err.text);
	s.f.dead_after_ns = in.dead_after_ns;
	lag_max = in.lag_max_ns ? in.lag_max_ns : lag_limit(in.dead_after_ns);
	for (k = 0; k < in.n; k++)
		add_input(&s, &in.in[k], now, lag_max);
	if (s.f.host && in.n)
		look_at_host(&s, &in, now);
	else
		compare_ids(&s, &in);
	node_inputs_free(&in);
	report_neighbours(to, ref->meta.name, &s);
	report_ids(to, ref->meta.name, &s);
}
