/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Determine (1Pipe section 5.2): from the reports about silent links to the nodes that failed, when
 * they failed, whom to ask, and which inputs are resumed afterwards. No clock, no I/O; time and
 * knowledge are arguments. It is called anew with each report: same knowledge, same answer.
 *
 * The routing graph: hosts and switches, and links, each from a node below to a node above. A link
 * has two ways, up and down, each with a register C at its receiving end. Barriers flow as frames
 * do: up, then down, never up again (DESIGN 3.2), and hosts pass nothing on. So a receiver's C is
 * at most every register on every flow from a sender to it. That is all that is needed:
 *
 *   Who failed. A node that has no unbroken link (both ways live) towards the live network, whose
 * roots the caller names (none named: the greatest part). Besides: a host from or to which no flow
 * of live ways is left, although both ends are in the live network (TORN): after Resume its
 * messages would be outside of the other's C, late or half delivered. Of such pairs the host with
 * the most of them fails first; the caller should have it DOWN from then on, lest a later report
 * makes another choice. When (T). A register is true whoever reports it: what it names was prepared
 * everywhere. So T of a host is the greatest C that was reported of a way which its flows cross,
 * behind none that was resumed before or is BEHIND. No correct receiver's C passes T as long as the
 * registers that were reported stand still (the reporter froze them), one on any flow to it is
 * enough (@held). With one on every flow the paper's separating set exists. Whom to ask. A failed
 * node may still talk: its host heard nothing, its neighbour did; or its process did not answer.
 * Its ways into the live network have to be frozen first, and their C reported: BL_DET_ASK. T is
 *   final when nothing is to be asked, or as soon as it is @held; who is asked and does not answer
 * in time is down itself.
 *
 * Example. Hosts 0, 1 on leaf 4, hosts 2, 3 on leaf 5, spines 6 and 7. Leaf 4 dies. Spine 6 reports
 * link 4-6 up, C = 900; spine 7 link 4-7 up, C = 950. Failed: 0, 1 and 4, all with T = 950: what
 * hosts 0 and 1 sent below 950 is stored at all its receivers, for leaf 4 said so to spine 7; hosts
 * 2 and 3 were given min(900, 950) at most. The set {6, 7} separates; both inputs are to be
 * resumed, and both outputs to leaf 4 are fenced. Had only spine 6 reported: nobody failed (leaf 4
 * is reached by spine 7), and spine 6's input is resumed at once, for the flow over spine 7 still
 * covers hosts 0 and 1. When spine 7 reports later, T = 950 all the same.
 *
 * What it does not do: single processes that die on a host that lives; their host knows T. Nodes
 * that lie.
 */
#ifndef BARLINE_DETERMINE_H
#define BARLINE_DETERMINE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/ctl_why.h"

#define BL_DET_NODES_MAX 65535
#define BL_DET_NO_C      (~0ULL) /* no C is known: never received, or never reported */

enum bl_det_kind { BL_DET_HOST, BL_DET_SWITCH };

/*
 * What the controller knows of a node. UP: nothing bad. DOWN: it is to be announced as failed
 * whatever its links do: its session's lease ran out, it did not answer in time, or it asks for it.
 * GONE: announced before; not judged again, no flow goes through it.
 */
enum bl_det_node_state { BL_DET_UP, BL_DET_DOWN, BL_DET_GONE };

/**
 * struct bl_det_node - @kind: enum bl_det_kind. @state: enum bl_det_node_state. @processes: on a
 * host; a part of the network with more of them is the live one.
 */
struct bl_det_node {
	uint8_t kind;
	uint8_t state;
	uint16_t processes;
};

/*
 * LIVE: nothing was reported. SILENT: reported by its receiving end, which has frozen its register
 * and still aggregates it. REMOVED: resumed before, or never joined: in nobody's minimum. BEHIND:
 * in the minimum, and rising, but not beyond what the outputs were given before it joined: no flow
 * of live ways, for what was sent before that is covered by others only, and what the outputs were
 * given says nothing of who is behind it; but one that has to be asked about.
 */
enum bl_det_way_state {
	BL_DET_LIVE,
	BL_DET_SILENT,
	BL_DET_REMOVED,
	BL_DET_BEHIND,
	BL_DET_WAY_STATES
};

/** bl_det_rises - a way in this state is in its receiver's minimum, and does not stand still. */
static inline bool bl_det_rises(uint8_t state)
{
	return state == BL_DET_LIVE || state == BL_DET_BEHIND;
}

/**
 * struct bl_det_way - one direction. @c: SILENT: the frozen register, 48 bits (upper bits are
 * ignored) or BL_DET_NO_C. @port: the input, at the receiving end. @state: enum bl_det_way_state.
 * @behind: SILENT: it was BEHIND when it began to stand still: it tells its own C, but it is part
 * of no flow.
 */
struct bl_det_way {
	uint64_t c;
	uint16_t port;
	uint8_t state;
	uint8_t behind;
};

enum bl_det_dir { BL_DET_TO_HIGH, BL_DET_TO_LOW };

/**
 * struct bl_det_link - @low: the host, or the switch below. @high: the switch above.
 * @way[BL_DET_TO_HIGH]: from @low, received by @high; the other one against it. Several links may
 * join two nodes.
 */
struct bl_det_link {
	uint16_t low;
	uint16_t high;
	struct bl_det_way way[2];
};

/**
 * struct bl_det_graph - @root: nodes of the live network, @roots of them; those that are not UP do
 *not count. None: of the parts that reported anything the one with the most processes is (of
 *equals: with the most nodes, then the one whose switch has the lowest number).
 */
struct bl_det_graph {
	const struct bl_det_node *node;
	const struct bl_det_link *link;
	const uint16_t *root;
	uint32_t nodes;
	uint32_t links;
	uint32_t roots;
};

/**
 * struct bl_det_found - what became of a node.
 * @t: failed now: its failure timestamp, 48 bits, or BL_DET_NO_C while no report tells. Messages of
 *a host with ts >= t are discarded. Of a switch: for people. 0 else.
 * @why: enum bl_det_why; TOLD, CUT and TORN are the failures to announce.
 * @in_set: 1: a correct node of the separating set: its frozen registers are needed until Resume.
 *Of all that reported, thinned greedily, those far away first: without any one of them, another
 *host would be exposed. If no set separates all hosts, it separates as many as any other.
 * @exposed: 1: a correct host to which a flow from a failed host crosses no report of a correct
 *node: it is outside of the separating set. 2: no flow crosses one: it may have delivered beyond T,
 *and loses atomicity.
 */
struct bl_det_found {
	uint64_t t;
	uint8_t why;
	uint8_t in_set;
	uint8_t exposed;
};

/* What is to be done about a way; several at once. */
enum bl_det_do {
	/*
	 * the receiving end takes it out of C; if somebody failed, after all correct processes have
	 * completed
	 */
	BL_DET_RESUME = 1,
	/* the receiving end freezes it and reports; after that it is one of those to resume */
	BL_DET_ASK = 2,
	/*
	 * the sending end promises no more C there; before T is announced: who failed and still
	 * listens would deliver what others recall
	 */
	BL_DET_FENCE = 4,
};

/**
 * struct bl_det_sum - @failed: nodes to announce, @hosts of them hosts. @asks: ways to ask about. T
 * may be announced when @held and not @unknown; further reports could only raise it, by what nobody
 * needs. @resumes: ways to resume. @separated: 1: no host is exposed.
 * @held: 1: no host is exposed by 2: T holds for all correct receivers although @separated may be
 * 0. @set: nodes in the set. @exposed: hosts exposed by 1 or 2. @unknown: failed hosts without a T.
 */
struct bl_det_sum {
	uint32_t failed;
	uint32_t hosts;
	uint32_t asks;
	uint32_t resumes;
	uint32_t set;
	uint32_t exposed;
	uint32_t unknown;
	uint8_t separated;
	uint8_t held;
};

/**
 * bl_det_before - 48-bit serial order: @a is older than @b. BL_DET_NO_C is older than all others.
 */
static inline bool bl_det_before(uint64_t a, uint64_t b)
{
	if (a == BL_DET_NO_C || b == BL_DET_NO_C)
		return a == BL_DET_NO_C && b != BL_DET_NO_C;
	return (int64_t)((a - b) << 16) < 0;
}

/**
 * bl_determine - @found: of each node; @todo: of each way, enum bl_det_do, index 2 * link + enum
 * bl_det_dir; both written. Needs memory for the time of the call: about 64 bytes a node, 8 a link,
 * and at most a bit for each pair of nodes. Returns 0; -1: out of memory; -2: the graph is not one
 * (a number out of range, a link that starts and ends at one node, a host above somebody).
 */
int bl_determine(const struct bl_det_graph *g, struct bl_det_found *found, uint8_t *todo,
		 struct bl_det_sum *sum);

const char *bl_det_why_name(enum bl_det_why why);

#endif
