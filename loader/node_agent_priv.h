/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's agent, for its own files: node_agent_tell.c says what the node is, node_agent_obey.c
 * carries out what the controller commands, node_agent_sample.c finds what has changed since the
 * last sample, and node_agent.c opens and closes the agent and stands between it and the node.
 * node_agent.h describes what they do together.
 *
 * Example: on_freeze() in node_agent_obey.c freezes an input and asks for a sample after
 * SAMPLE_BUSY_US; that sample, in node_agent_sample.c, finds the input held, and takes the next
 * one as soon again, until the input is resumed.
 */
#ifndef BARLINE_NODE_AGENT_PRIV_H
#define BARLINE_NODE_AGENT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/admission/apart.h"
#include "loader/node_priv.h"
#include "loader/order/agent.h"
#include "loader/order/agent_watch.h"
#include "loader/order/stuck.h"
#include "proto/session.h"

#define SAMPLE_BUSY_US 1000 /* from one sample to the next while something is awaited */
/* Failures that a host has not completed. The controller has no more of them open. */
#define FAILURES_MAX 64

/** struct open_failure - a FAIL that is not completely in the endpoints' page yet. */
struct open_failure {
	uint64_t number;
	struct bl_agent_failed *failed; /* @nfailed of them */
	unsigned int nfailed;
};

/** struct bl_node_agent - main thread only. */
struct bl_node_agent {
	struct bl_node *node;
	struct bl_agent *agent; /* NULL: there are no controllers */
	struct bl_session_tls *tls;
	sd_event_source *timer;         /* of the next sample */
	sd_event_time_handler_t sample; /* bl_node_agent_sample(), or that of a node without */
	uint64_t epoch;
	struct bl_agent_watch watch; /* the inputs at the last sample */
	unsigned int awaited;        /* inputs that stood still, or were behind, at that sample */
	struct open_failure failure[FAILURES_MAX]; /* not announced to the endpoints yet */
	unsigned int nfailures;
	uint64_t led_ns;    /* CLOCK_MONOTONIC of the last sample with a session */
	uint64_t opened_ns; /* CLOCK_MONOTONIC of the start */
	uint64_t stuck_ns;  /* CLOCK_MONOTONIC of the last sample of the windows */
	struct bl_stuck_seen stuck[BL_EPS_MAX]; /* the windows at that sample */
	bool failed;        /* this node was announced as failed, and has not joined anew */
	uint64_t failed_ns; /* CLOCK_MONOTONIC; @failed since then */
	bool rejoining;     /* @failed, and bl_agent_rejoin() was called */
	/* by endpoint slot: incarnation + 1 of its endpoint when the node failed; 0: none */
	uint32_t old[BL_EPS_MAX];
	struct bl_apart apart;
	/* the log has a message that: */
	bool alone;          /* there is no session */
	bool told_session;   /* there is one */
	bool forwards;       /* frames are forwarded */
	bool cannot_forward; /* frames cannot be forwarded without a controller */
	bool cannot_tell;    /* a failure cannot be announced to the endpoints */
};

/* ---- node_agent_tell.c ---- */

struct bl_agent_port bl_node_agent_port(const struct bl_fence_port *p);

/** bl_node_agent_tell - Fills in the HELLO of the node; see struct bl_agent_ops. */
void bl_node_agent_tell(void *ctx, struct bl_agent_node *v);

/* ---- node_agent_obey.c ---- */

extern const struct bl_agent_ops bl_node_agent_ops;

/** bl_node_agent_complete - Reports DONE for every open failure that can be announced. */
void bl_node_agent_complete(struct bl_node_agent *a);

/* ---- node_agent_sample.c ---- */

/** bl_node_agent_sample - Takes a sample, and sets the timer of the next one. */
int bl_node_agent_sample(sd_event_source *src, uint64_t usec, void *ctx);

/**
 * bl_node_agent_sample_alone - The same for a node that has no controllers and never had: an input
 * that stands still is resumed as soon as it is heard again. What was lost meanwhile is not known.
 */
int bl_node_agent_sample_alone(sd_event_source *src, uint64_t usec, void *ctx);

/** bl_node_agent_schedule - The next sample is taken in @us, whenever it would have been. */
static inline void bl_node_agent_schedule(struct bl_node_agent *a, uint64_t us)
{
	sd_event_source_disable_unref(a->timer);
	a->timer = NULL;
	sd_event_add_time_relative(a->node->srv->ev, &a->timer, CLOCK_MONOTONIC, us, 1, a->sample,
				   a);
}

#endif
