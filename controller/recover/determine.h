/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Determine (1Pipe section 5.2): derives from the reports about silent links which nodes failed,
 * at which timestamp T, which inputs have to be frozen before T is final, and which inputs are
 * resumed afterwards. There is no clock and no I/O: time and knowledge are arguments. The function
 * is called anew after each report, and gives the same answer for the same knowledge.
 *
 * The routing graph consists of hosts, switches and links; each link joins a node below with a node
 * above. A link has two ways, up and down, each with a register C at its receiving end. Barriers
 * take the paths of frames: first up, then down, never up again (docs/architecture.md); hosts
 * forward nothing. Therefore the C of a receiver is at most every register on every path (here
 * called a flow) from a sender to it. The rest follows from this:
 *
 * Which nodes failed. A node without an unbroken link (both ways live) towards the live network.
 *   The caller names roots of the live network; if it names none, the greatest part is the live
 *   one. A host is TORN if it is in the live network, but no flow of live ways is left between it
 *   and another host there: after Resume its messages would be outside of the other's C, late or
 *   delivered by some receivers only. Of such pairs, the host that is part of the most pairs fails
 *   first. The caller should set such a host to BL_DET_DOWN, or a later report could lead to
 *   another choice.
 *
 * When (T). A register is true whoever reports it: all messages below it were prepared at all their
 *   receivers. T of a host is therefore the greatest reported C of a way that the host's flows
 *   cross and that is not behind a way which was resumed before or is BEHIND. The C of no correct
 *   receiver passes T while the reported registers stand still, which their reporters have frozen.
 *   One such register on each flow to a receiver is enough (@held). If there is one on every flow,
 *   the reporters are the separating set of the paper (@separated).
 *
 * What to ask about. A failed node may still send: its host heard nothing while its neighbour did,
 *   or one of its processes did not answer. Its ways into the live network have to be frozen first,
 *   and their C reported (BL_DET_ASK). T is final when there is nothing to ask, or as soon as it is
 *   @held. A node that is asked and does not answer in time is down itself.
 *
 * Example. Hosts 0 and 1 are on leaf 4, hosts 2 and 3 on leaf 5; the spines are 6 and 7. Leaf 4
 * dies. Spine 6 reports link 4-6 up with C = 900, spine 7 link 4-7 up with C = 950. Failed: 0, 1
 * and 4, all with T = 950. What hosts 0 and 1 sent below 950 is stored at all its receivers, since
 * leaf 4 said so to spine 7; hosts 2 and 3 were given at most min(900, 950). The set {6, 7}
 * separates. Both inputs are to be resumed, both outputs to leaf 4 are to be fenced.
 *
 * If only spine 6 reports, no node has failed, since leaf 4 is reached by spine 7. The input of
 * spine 6 is resumed at once, for the flow over spine 7 still covers hosts 0 and 1. When spine 7
 * reports later, T = 950 all the same.
 *
 * Not covered: single processes that die on a host that lives, whose T the host knows; nodes that
 * report wrong values.
 */
#ifndef BARLINE_DETERMINE_H
#define BARLINE_DETERMINE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/ctl_why.h"

#define BL_DET_NODES_MAX 65535
#define BL_DET_NO_C      (~0ULL) /* no C is known: never received, or never reported */

enum bl_det_kind { BL_DET_HOST, BL_DET_SWITCH };

/* What the controller knows of a node before it judges the links. */
enum bl_det_node_state {
	BL_DET_UP, /* nothing is wrong */
	/*
	 * to be announced as failed whatever its links do: its session's lease ran out, it did not
	 * answer in time, or it asks for it
	 */
	BL_DET_DOWN,
	BL_DET_GONE, /* announced before: not judged again, and no flow goes through it */
};

/** struct bl_det_node - A host or a switch. */
struct bl_det_node {
	uint8_t kind;       /* enum bl_det_kind */
	uint8_t state;      /* enum bl_det_node_state */
	uint16_t processes; /* on a host; the part of the network with most of them is the live one
			     */
};

/* What is known of one direction of a link, by reports of its receiving end. */
enum bl_det_way_state {
	BL_DET_LIVE,    /* no report */
	BL_DET_SILENT,  /* reported; its register is frozen and still in the receiver's minimum */
	BL_DET_REMOVED, /* resumed, or never joined: in no minimum */
	/*
	 * In the receiver's minimum and rising, but not yet beyond what the receiver's outputs were
	 * given before this input joined. It is no part of a flow of live ways: what was sent
	 * before is covered by other ways only, and what the outputs were given says nothing about
	 * the nodes behind this way. It has to be asked about, as a live way has.
	 */
	BL_DET_BEHIND,
	BL_DET_WAY_STATES
};

/** bl_det_rises - Whether a way in @state is in its receiver's minimum and not frozen. */
static inline bool bl_det_rises(uint8_t state)
{
	return state == BL_DET_LIVE || state == BL_DET_BEHIND;
}

/** struct bl_det_way - One direction of a link. */
struct bl_det_way {
	uint64_t c;    /* SILENT: frozen register, 48 bits (higher bits are ignored); BL_DET_NO_C */
	uint16_t port; /* number of the input at the receiving end */
	uint8_t state; /* enum bl_det_way_state */
	/*
	 * SILENT: 1 if the way was BEHIND when it froze. Its own C is true, but it is part of no
	 * flow.
	 */
	uint8_t behind;
};

enum bl_det_dir { BL_DET_TO_HIGH, BL_DET_TO_LOW };

/** struct bl_det_link - A link. Several links may join the same two nodes. */
struct bl_det_link {
	uint16_t low;             /* index of the host, or of the switch below */
	uint16_t high;            /* index of the switch above */
	struct bl_det_way way[2]; /* by enum bl_det_dir: TO_HIGH is received by @high */
};

/** struct bl_det_graph - The routing graph. The caller owns all arrays. */
struct bl_det_graph {
	const struct bl_det_node *node; /* @nodes of them */
	const struct bl_det_link *link; /* @links of them */
	/*
	 * Nodes of the live network, @roots of them; those that are not UP do not count. If none is
	 * left: the part with most processes among those that reported anything; of equals the one
	 * with most nodes, then the one whose switch has the lowest index.
	 */
	const uint16_t *root;
	uint32_t nodes;
	uint32_t links;
	uint32_t roots;
};

/** struct bl_det_found - The result for a node. */
struct bl_det_found {
	/*
	 * Of a node that fails now: its failure timestamp T, 48 bits; BL_DET_NO_C while no report
	 * gives one. Messages of the host with ts >= T are discarded. The T of a switch is only
	 * shown to people. 0 for other nodes.
	 */
	uint64_t t;
	uint8_t why; /* enum bl_det_why; TOLD, CUT and TORN are the failures to announce */
	/*
	 * 1: a correct node of the separating set, whose frozen registers are needed until Resume.
	 * The set is made of all nodes that reported and thinned greedily, the most distant first:
	 * without any node of it another host would be exposed. If no set separates all hosts, it
	 * separates as many as any other.
	 */
	uint8_t in_set;
	/*
	 * Of a correct host. 1: some flow from a failed host to it crosses no report of a correct
	 * node: it is outside of the separating set. 2: no such flow crosses one: it may have
	 * delivered beyond T, and loses atomicity. 0: every such flow crosses one.
	 */
	uint8_t exposed;
};

/* What is to be done about a way; a set of bits. */
enum bl_det_do {
	/*
	 * The receiving end takes the way out of its minimum. If a node failed, this has to wait
	 * until all correct processes have completed.
	 */
	BL_DET_RESUME = 1,
	/* The receiving end freezes the way and reports its C; later it is one to resume. */
	BL_DET_ASK = 2,
	/*
	 * The sending end gives no higher C there before T is announced: a node that failed but
	 * still receives would deliver what others recall.
	 */
	BL_DET_FENCE = 4,
};

/** struct bl_det_sum - The result as a whole. T may be announced when @held and not @unknown. */
struct bl_det_sum {
	uint32_t failed;   /* nodes to announce */
	uint32_t hosts;    /* hosts among them */
	uint32_t asks;     /* ways with BL_DET_ASK */
	uint32_t resumes;  /* ways with BL_DET_RESUME */
	uint32_t set;      /* nodes in the separating set */
	uint32_t exposed;  /* hosts with an exposed of 1 or 2 */
	uint32_t unknown;  /* failed hosts without a T */
	uint8_t separated; /* 1: no host is exposed */
	/*
	 * 1: no host has an exposed of 2: T holds for all correct receivers even if @separated
	 * is 0. Further reports could only raise T, by messages that no correct receiver has
	 * delivered.
	 */
	uint8_t held;
};

/**
 * bl_det_before - Whether @a is older than @b in 48-bit serial order. BL_DET_NO_C is older than
 * all other values.
 */
static inline bool bl_det_before(uint64_t a, uint64_t b)
{
	if (a == BL_DET_NO_C || b == BL_DET_NO_C)
		return a == BL_DET_NO_C && b != BL_DET_NO_C;
	return (int64_t)((a - b) << 16) < 0;
}

/**
 * bl_determine - Judges the graph.
 * @found: written: one result for each node.
 * @todo: written: a set of enum bl_det_do for each way, at index 2 * link + enum bl_det_dir.
 *
 * Allocates about 64 bytes for each node, 8 for each link and at most one bit for each pair of
 * nodes, and frees them before it returns. Returns 0; -1: out of memory; -2: not a valid graph (an
 * index out of range, a link that begins and ends at one node, a host above another node).
 */
int bl_determine(const struct bl_det_graph *g, struct bl_det_found *found, uint8_t *todo,
		 struct bl_det_sum *sum);

/** bl_det_why_name - Returns the name of @why in the status; "?" if it is out of range. */
const char *bl_det_why_name(enum bl_det_why why);

#endif
