// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See health.h. */
#include "cli/health/health.h"

#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "base/timens.h"
#include "cli/doctor/doctor.h"
#include "cli/health/judge.h"

/* Keeps the worst finding of each check, and of equal ones the first. */
static void keep(void *ctx, const struct finding *f)
{
	struct health *h = ctx;
	struct health_check *c;

	if (f->check >= NODE_CHECKS_NUMBER)
		return;
	c = &h->check[f->check];
	if (c->known && *c->word && f->level <= c->level) {
		c->more += f->level == c->level;
		return;
	}
	c->known = true;
	c->level = f->level;
	c->more = 0;
	snprintf(c->word, sizeof(c->word), "%s", f->word);
	snprintf(c->what, sizeof(c->what), "%s", f->what);
	snprintf(c->cause, sizeof(c->cause), "%s", f->cause);
	snprintf(c->cure, sizeof(c->cure), "%s", f->cure);
}

/* A check that finds nothing to report is well. */
static void is_well(struct health *h, enum node_check check)
{
	struct health_check *c = &h->check[check];

	if (c->known)
		return;
	c->known = true;
	snprintf(c->word, sizeof(c->word), "ok");
	snprintf(c->what, sizeof(c->what), "%s", h->node);
}

static void look(const struct finder *to, const struct bl_node_ref *ref, unsigned int checks,
		 struct health *h)
{
#define BIT(check) (1U << CHECK_##check)
	static const struct {
		unsigned int finds; /* checks of which it reports findings */
		void (*look)(const struct finder *to, const struct bl_node_ref *ref);
		unsigned int well; /* of @finds: those that are well if it finds nothing */
		bool here;         /* only in the node's own network namespace */
	} looks[] = {
		{ BIT(DAEMON) | BIT(CONTROLLER), doctor_daemon, 0, false },
		{ BIT(CLOCK), doctor_clock, 0, false },
		{ BIT(LINK), doctor_ports, 0, false },
		{ BIT(QUEUES), doctor_queues, BIT(QUEUES), false },
		{ BIT(PROGRAMS), doctor_hooks, BIT(PROGRAMS), false },
		{ BIT(NEIGHBOUR) | BIT(NODE_ID), doctor_neighbours, 0, false },
		{ BIT(LINK) | BIT(ADDRESS), doctor_net, BIT(LINK) | BIT(ADDRESS), true },
	};
#undef BIT
	unsigned int k, c;

	for (k = 0; k < sizeof(looks) / sizeof(looks[0]); k++) {
		if (!(looks[k].finds & checks) ||
		    (looks[k].here && ref->netns_ino != bl_netns_ino()))
			continue;
		looks[k].look(to, ref);
		for (c = 0; c < NODE_CHECKS_NUMBER; c++)
			if (looks[k].well & 1U << c)
				is_well(h, (enum node_check)c);
	}
}

bool health_read_some(const struct bl_node_ref *ref, unsigned int checks, struct health *h)
{
	const struct finder to = { .fn = keep, .ctx = h };

	*h = (struct health){ .role = ref->role,
			      .netns_ino = ref->netns_ino,
			      .node_id = ref->meta.node_id };
	snprintf(h->node, sizeof(h->node), "%.31s",
		 ref->meta.name[0] ? ref->meta.name : bl_role_name(ref->role));
	if (ref->meta.abi_version != BL_ABI_VERSION)
		found_as(&to, CHECK_DAEMON, "other_version", FOUND_FAIL, h->node,
			 "use the `barline` of its build, or detach it and start it with this one",
			 "the node's maps are of ABI version %u, and this command's of %u",
			 ref->meta.abi_version, BL_ABI_VERSION);
	else if (bl_timens_shifts("monotonic") || bl_timens_shifts("boottime"))
		found_as(&to, CHECK_CLOCK, "time_namespace", FOUND_FAIL, h->node,
			 "run barline without one (unshare -T, timeOffsets of a container)",
			 "CLOCK_MONOTONIC or CLOCK_BOOTTIME is shifted here, and the node's times "
			 "cannot be judged");
	else
		look(&to, ref, checks, h);
	judge_node(h);
	return h->ready;
}

bool health_read(const struct bl_node_ref *ref, struct health *h)
{
	return health_read_some(ref, ~0U, h);
}

char *health_text(const struct health *h, char *buf, size_t size)
{
	struct bl_text t = { .buf = buf, .size = size };
	const struct health_check *c = &h->check[h->worst];
	/* What is told of a node that is well. */
	const unsigned int told = 1U << CHECK_DAEMON | 1U << CHECK_CLOCK | 1U << CHECK_NEIGHBOUR |
				  1U << CHECK_CONTROLLER;
	unsigned int k, others = 0;

	bl_text_add(&t, "%s %s: ", h->node, h->ready ? "ready" : "NOT READY");
	if (h->level == FOUND_OK) {
		for (k = 0; k < NODE_CHECKS_NUMBER; k++)
			if (told & 1U << k && h->check[k].known)
				bl_text_add(&t, "%s%s", others++ ? "; " : "", h->check[k].cause);
		return buf;
	}
	/* The name of the node is there already; that of the interface is not. */
	if (strchr(c->what, ' '))
		bl_text_add(&t, "%s: ", strchr(c->what, ' ') + 1);
	bl_text_add(&t, "%s", c->cause);
	if (*c->cure)
		bl_text_add(&t, " -> %s", c->cure);
	for (k = 0; k < NODE_CHECKS_NUMBER; k++)
		if (k != h->worst && h->check[k].known && h->check[k].level != FOUND_OK)
			bl_text_add(&t, "%s%s %s", others++ ? ", " : "; also: ",
				    node_check_name((enum node_check)k), h->check[k].word);
	return buf;
}

json_t *health_json(const struct health *h)
{
	json_t *checks = json_object();
	char text[2048];
	unsigned int k;

	for (k = 0; k < NODE_CHECKS_NUMBER; k++) {
		const struct health_check *c = &h->check[k];

		if (!c->known) {
			json_object_set_new(checks, node_check_name((enum node_check)k),
					    json_null());
			continue;
		}
		json_object_set_new(checks, node_check_name((enum node_check)k),
				    json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "level",
					      finding_level_name(c->level), "word", c->word, "what",
					      c->what, "cause", c->cause, "cure", c->cure, "more",
					      (int)c->more));
	}
	return json_pack("{s:s, s:s, s:I, s:I, s:b, s:s, s:o, s:s, s:o}", "node", h->node, "role",
			 bl_role_name(h->role), "netns", (json_int_t)h->netns_ino, "node_id",
			 (json_int_t)h->node_id, "ready", h->ready, "level",
			 finding_level_name(h->level), "worst",
			 h->level == FOUND_OK
				 ? json_null()
				 : json_string(node_check_name((enum node_check)h->worst)),
			 "text", health_text(h, text, sizeof(text)), "checks", checks);
}
