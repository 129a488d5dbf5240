/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of an endpoint: connected to its process, released when that goes, expelled while it
 * lives, settled in the end. endpoint.c says what each of these means. endpoint_attach.h has the
 * socket at which a process becomes an endpoint, endpoint_again.h the endpoints of an earlier
 * daemon.
 */
#ifndef BARLINE_ENDPOINT_H
#define BARLINE_ENDPOINT_H

#include <stdint.h>
#include <sys/types.h>

#include "loader/order/ep.h"
#include "maps/host_abi.h"

struct bl_node;

/** bl_ep_key - key of the endpoint's entry in the map "eps". */
uint32_t bl_ep_key(const struct bl_node *n, const struct bl_ep_slot *info);

/** bl_endpoint_at - the endpoint at this port, dead ones too; NULL: none. */
struct bl_ep *bl_endpoint_at(struct bl_node *n, uint32_t port);

/** bl_proc_started - start time of a process, in clock ticks since boot; 0: no such process. */
uint64_t bl_proc_started(pid_t pid);

/**
 * bl_endpoint_connect - @conn is the endpoint's connection from now on. Returns >= 0; < 0: it is
 * not, and stays the caller's.
 */
int bl_endpoint_connect(struct bl_ep *ep, int conn);

/** bl_endpoint_watch - bl_endpoint_connect(), unless @conn is -1, and watches the process. */
int bl_endpoint_watch(struct bl_ep *ep, int conn);

/**
 * bl_endpoint_release - the endpoint's process is gone, or has left. Its slot is free when this
 * returns, or stays as dead until it is settled.
 * @why: for the log.
 */
void bl_endpoint_release(struct bl_ep *ep, const char *why);

/**
 * bl_endpoint_undo - frees the slot of an endpoint that never became active, so that nobody has
 * sent to it or waits for it. Its connection stays the caller's.
 */
void bl_endpoint_undo(struct bl_ep *ep);

/**
 * bl_endpoint_put_out - ends the membership of endpoints whose processes live.
 * @slots: one bit each. Waits for an RCU grace period (about 16 ms), so endpoints that are expelled
 * for one reason at one moment go in one call.
 */
void bl_endpoint_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why);

/**
 * bl_endpoint_out_at - @ep is out from bus time @t on (0: the time is not known; errno says why);
 * the agent hears of it.
 */
void bl_endpoint_out_at(struct bl_ep *ep, uint64_t t);

/** bl_endpoint_wake - wakes the process, which may sleep, so that it looks at its pages. */
void bl_endpoint_wake(const struct bl_ep *ep);

/**
 * bl_endpoints_retire - the endpoints of @slots (a bit for each) leave in order, although their
 * processes live: everything that they sent is acknowledged or reported. They are announced as
 * left. Waits as bl_ep_put_out() does.
 */
void bl_endpoints_retire(struct bl_node *n, uint64_t slots);

/**
 * bl_endpoint_resume - settles the dead endpoint at @port: its receivers know what becomes of its
 * last messages, so its window does not hold the commit barrier any more. Returns 0, or -ENOENT: no
 * such endpoint.
 */
int bl_endpoint_resume(struct bl_node *n, unsigned int port);

/**
 * bl_endpoints_bury - without controllers: settles every dead endpoint whose window waits for no
 * ACK. With controllers: no-op.
 */
void bl_endpoints_bury(struct bl_node *n);

/** bl_endpoints_report_dead - tells an agent that is new which endpoints are dead. */
void bl_endpoints_report_dead(struct bl_node *n);

#endif
