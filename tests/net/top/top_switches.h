/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on racks whose switches limit tokens: connections of applications over each of the switch's
 * modes, and over two spines. However long the machine stands still, every byte must arrive, no
 * switch may drop a data frame or a signal (tokens are lost instead), and tokens and data of a flow
 * must take the same spine.
 *
 * Times are not judged: for hosts tokens may be minutes old, and no peer is given up. At the
 * switches tokens expire as usual: those of a pacer that stood still are lost, and others are sent.
 *
 * Example: open_rack(16); begin(AF_INET, 15, 1 << 17); finish(); nothing_lost();
 */
#ifndef BARLINE_TESTS_TOP_SWITCHES_H
#define BARLINE_TESTS_TOP_SWITCHES_H

#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "tests/net/rack.h"
#include "tests/net/conn.h"

#include "maps/top_token_abi.h"
#include "maps/top_host_abi.h"

#define RATE    250000000
#define FOREVER 10000000 /* us */
#define PATIENT 200000

static bool unmetered; /* the next rack's switches have no meter, but know their rate */

T_FN void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_bound_us = 1000;
	cfg->admission.top.v[BL_TOP_O_EXPIRY] = cfg->admission.top.v[BL_TOP_O_DEAD] = FOREVER + 1;
	/* A flow neither ends nor gets another tag for want of a CPU: signals would be refused. */
	cfg->admission.top.v[BL_TOP_O_IDLE] = FOREVER + 1;
	cfg->admission.top.v[BL_TOP_O_SYNC] = PATIENT + 1;
	if (cfg->role == BL_ROLE_HOST)
		return;
	cfg->admission.link_rate_bps = unmetered ? RATE : 0;
	cfg->admission.rate_bps = unmetered ? 0 : RATE;
}

/* Sums over all switches: what went into the queues of a class, and what was dropped there. */
struct queued {
	uint64_t put, dropped;
};

T_FN struct queued queued(uint32_t cls)
{
	struct queued sum = { 0 };
	struct bl_queue q;
	unsigned int i;
	uint32_t port, key;
	int fd;

	for (i = 0; i < rack.lab.nnodes; i++) {
		if (!rack_is_switch(i))
			continue;
		fd = rack_map(i, BL_MAP_QUEUES);
		CHECK(fd >= 0, "%s", strerror(errno));
		for (port = 0; port < rack.lab.nodes[i].nports; port++) {
			key = BL_PORT_QUEUE(port, cls);
			CHECK(!bpf_map_lookup_elem(fd, &key, &q), "%s", strerror(errno));
			sum.put += q.put;
			sum.dropped += q.dropped;
		}
		close(fd);
	}
	return sum;
}

T_FN uint64_t dropped(uint32_t cls)
{
	return queued(cls).dropped;
}

/*
 * Returns the number of frames for which no slot was left, the device map refused, or a queue was
 * full, except for the queue whose limit is meant to drop (the unscheduled class).
 */
T_FN uint64_t lost_otherwise(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (rack_is_switch(i))
			n += rack_count(i, BL_R_NO_SLOT) + rack_count(i, BL_R_REDIRECT_FAILED) +
			     rack_count(i, BL_R_QUEUE_FULL);
	return n;
}

static enum bl_policy first = BL_POLICY_TOP; /* of the next rack */

/*
 * Values before any connection: while a rack starts, beacons may arrive before there is a pacer
 * that drains them.
 */
static struct {
	uint64_t data, control, otherwise;
} was;

T_FN void open_rack(unsigned int hosts)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.beacon_us = 20000; /* one beacon goes to each port */
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.policy = first;
	rack.lab.spec.admission.rate_bps = RATE;
	rack.tweak = tweak;
	rack_last_words = rack_dump;
	rack_open();
	rack_serve(300);
	if (!unmetered) {
		was.data = dropped(BL_CL_DATA);
		was.control = dropped(BL_CL_CONTROL);
	}
	was.otherwise = lost_otherwise();
}

T_FN uint64_t of_switches(enum bl_reason r)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (rack_is_switch(i))
			n += rack_count(i, r);
	return n;
}

/*
 * Checks that every data frame left for a token, and no switch dropped a data frame or a signal.
 * Switches may have dropped tokens.
 */
T_FN void nothing_lost(void)
{
	uint64_t used = 0;
	unsigned int i;

	for (i = 1; i <= w.senders; i++)
		used += rack_count(rack_host(i), BL_R_TOKEN_USED) +
			rack_count(rack_host(i), BL_R_TOKEN_PACED);
	fprintf(stderr,
		"  %" PRIu64 " tokens answered; switches dropped %" PRIu64 " (limit), %" PRIu64
		" (expired), %" PRIu64 " (flood)\n",
		used, of_switches(BL_R_TOKEN_LIMIT), of_switches(BL_R_TOKEN_EXPIRED),
		of_switches(BL_R_TOKEN_FLOOD));
	CHECK(used * 1460 >= w.senders * w.bytes, "%" PRIu64 " tokens for %" PRIu64 " bytes", used,
	      w.senders * w.bytes);
	CHECK(dropped(BL_CL_DATA) == was.data,
	      "%" PRIu64 " frames of data were dropped at switches",
	      dropped(BL_CL_DATA) - was.data);
	CHECK(dropped(BL_CL_CONTROL) == was.control, "%" PRIu64 " signals were dropped at switches",
	      dropped(BL_CL_CONTROL) - was.control);
	CHECK(lost_otherwise() == was.otherwise,
	      "%" PRIu64 " frames were lost at switches for want of slots or by the device map",
	      lost_otherwise() - was.otherwise);
	/*
	 * Where frames waited in vain (BL_HOLD_AGE_NS, 1 s), the rack did not carry tokens. This
	 * may last until the receiver forgets the flow (FOREVER, 10 s): a scheduler was seen to
	 * starve NAPI's threads for that long (docs/design-notes.md, "A pacer that starves its
	 * CPU").
	 */
	CHECK(!of_switches(BL_R_TOKEN_CLASS), "tokens of a wrong class");
	CHECK(!rack_count_all(BL_R_SIGNAL_BAD) || rack_count_all(BL_R_HELD_LONG), "refusals");
}

#endif
