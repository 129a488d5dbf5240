/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows messages through a rack by the frames that were captured, and finds out where each waited
 * and for whose barrier. No capture, no clock: the caller feeds frames in the order of their times.
 *
 * Example: h1 sends a message to h2 by way of the switch s1, whose inputs are h1, h2 and h3. It is
 * sent at 10, forwarded at 20, and stored at 30. The register of h1 passes its timestamp at 20,
 * that of h2 at 25, and that of h3 at 900. A beacon comes to h2 at 910 with a barrier above the
 * timestamp: the message is done, waited from 30 to 910 to be in order, and h3 held it.
 *
 * A link of several lanes is followed as one: the lane that rises first counts.
 */
#ifndef BARLINE_CLI_CAPTURE_FOLLOW_H
#define BARLINE_CLI_CAPTURE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FOLLOW_NODES 256  /* nodes of a capture */
#define FOLLOW_MAX   4096 /* messages under way; the oldest is given up for a new one */

/** struct follow_frame - a captured frame. Times of the bus have 48 bits; 0: none. */
struct follow_frame {
	uint64_t at_ns;      /* when */
	uint32_t node;       /* where; below FOLLOW_NODES */
	uint32_t port;       /* of a switch */
	bool in_switch, out; /* the node is a switch; the frame leaves it */
	bool message;        /* DATA or PREP, and not on its way back */
	bool reliable;       /* PREP */
	bool took;           /* a host sent or stored it, or a switch forwards it */
	uint64_t ts, b_before, c_before, b_after, c_after;
	uint32_t psn;
	uint16_t sport, dport;
	uint8_t src[16], dst[16];
};

/** struct follow_message - a message, and where it was when. Times are those of frames; 0: unknown.
 */
struct follow_message {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t psn;
	uint64_t ts;
	bool reliable;
	uint32_t sender, receiver, last_switch; /* nodes; valid if the time is known */
	uint64_t sent_ns, first_ns, last_ns;    /* at its host; at the first and the last switch */
	uint64_t stored_ns, done_ns;            /* at the receiver; when its barrier passed it */
	/* The input of the last switch that passed it last. */
	bool held;     /* there is one */
	bool excluded; /* it never passed: the switch gave it up, or it was not seen */
	uint32_t held_port;
	uint64_t held_ns; /* when it passed; of one that was excluded, @done_ns */
};

struct follow;

/** follow_new - NULL: out of memory. */
struct follow *follow_new(void);
void follow_free(struct follow *f);

/**
 * follow_frame - takes a frame, and calls @done for each message that it ends. Returns 0 or -errno.
 */
int follow_frame(struct follow *f, const struct follow_frame *k,
		 void (*done)(const struct follow_message *m, void *ctx), void *ctx);

/**
 * follow_input - finds the input of switch @node whose barrier passed @ts last, as for the last
 * switch of a message. @until: an input that has not passed by then counts as excluded. Returns
 * whether there is one.
 */
bool follow_input(const struct follow *f, uint32_t node, uint64_t ts, bool reliable, uint64_t until,
		  uint32_t *port, uint64_t *at_ns, bool *excluded);

#endif
