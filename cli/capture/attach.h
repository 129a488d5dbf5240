/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures: asks the programs of nodes for frames (maps/capture_abi.h), and gives the records that
 * they send, in the order of their times.
 *
 * Example: capture_open() on a host takes one slot. capture_poll() gives each frame to a function,
 * for which capture_place() says "h1", "eth0". capture_close() gives the slot back; if the process
 * ends without it, the slot is free after BL_CAPTURE_LEASE_NS.
 *
 * A node that is upgraded gets new programs; capture_poll() finds them within a quarter of a
 * second. Frames in between are not captured.
 */
#ifndef BARLINE_CLI_CAPTURE_ATTACH_H
#define BARLINE_CLI_CAPTURE_ATTACH_H

#include <stdint.h>

#include "base/log.h"
#include "loader/load/pin.h"
#include "maps/capture_abi.h"

struct capture;

/** struct capture_filter - which frames. The kernel applies all of it. */
struct capture_filter {
	uint64_t reasons[BL_CAPTURE_WORDS]; /* bit by enum bl_reason */
	uint32_t opcodes;                   /* bit by enum bl_opcode; bit 0: other frames */
	uint32_t snap;                      /* bytes of each frame */
	uint32_t buffer_kib;                /* size of the buffer of each CPU */
	uint16_t endpoint;                  /* UDP port; 0: any */
	uint8_t dirs;                       /* bit by enum bl_capture_dir */
	const char *port;                   /* name of the interface; NULL: all */
};

/** capture_everything - a filter that every frame with barline's header passes. */
void capture_everything(struct capture_filter *f);

/**
 * capture_open - begins a capture on the @n nodes. @refs must stay as long as the capture. Returns
 * 0 or -errno; -ENOENT: no node has the interface of the filter; -EBUSY: a node has no free slot.
 */
int capture_open(struct capture **out, const struct bl_node_ref *refs, int n,
		 const struct capture_filter *f, struct bl_err *err);

/**
 * capture_fn - takes one event; the frame's e->caplen bytes are behind it. Returns 0, or another
 * value to end capture_poll().
 */
typedef int (*capture_fn)(const struct bl_capture_event *e, void *ctx);

/**
 * capture_poll - waits up to @ms, then calls @fn for the events that came, in the order of their
 * times. A frame that a switch forwards is two events: in, and out. The last milliseconds are held
 * back, since other CPUs may still add to them, except with @last. Returns 0, what @fn returned, or
 * -errno.
 */
int capture_poll(struct capture *c, int ms, int last, capture_fn fn, void *ctx, struct bl_err *err);

/** capture_lost - returns how many records have found a full buffer. */
uint64_t capture_lost(const struct capture *c);

/** capture_real_ns - returns CLOCK_REALTIME at the time of an event. */
uint64_t capture_real_ns(const struct capture *c, const struct bl_capture_event *e);

/** struct capture_place - where an event was. */
struct capture_place {
	const char *node;
	const char *role; /* "host" or "switch" */
	const char *port; /* interface */
};

/** capture_place - says where @e was. The strings live as long as the capture. */
struct capture_place capture_place(const struct capture *c, const struct bl_capture_event *e);

/** capture_node - returns the node with the number e->node; NULL: there is none. */
const struct bl_node_ref *capture_node(const struct capture *c, uint32_t node);

/** capture_close - ends the capture. NULL: no-op. */
void capture_close(struct capture *c);

#endif
