/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes what a host sends one FIFO, and puts back what was there before. nic_tx.c says how.
 */
#ifndef BARLINE_NIC_TX_H
#define BARLINE_NIC_TX_H

#include <stdbool.h>

#include "base/iface.h"
#include "base/log.h"
#include "base/nl_qdisc.h"
#include "maps/nic_abi.h"

#define BL_TX_QDISCS 4096 /* disciplines of one NIC at most: those of an mq's queues, and more */
#define BL_TX_UNSEEN 0x1f /* struct bl_nic.seen: bl_tx_make() has not looked */

/* What the queueing disciplines of a NIC mean for the order. */
enum bl_tx_kind {
	BL_TX_NONE,    /* none yet: the NIC was never up */
	BL_TX_FIFO,    /* frames of one transmit queue keep their order */
	BL_TX_ROOT,    /* the kernel's own discipline, at the root, sorts frames */
	BL_TX_MQ,      /* the kernel's own disciplines below its own mq do */
	BL_TX_OURS,    /* barline's bands are there, complete */
	BL_TX_TORN,    /* barline's mq or bands are there, but not complete */
	BL_TX_FOREIGN, /* somebody has set a discipline that may sort frames, also below ours */
};

/** struct bl_tx_view - what bl_tx_look() sees. */
struct bl_tx_view {
	enum bl_tx_kind kind;
	struct nl_qdisc at;  /* the discipline that decides; its kind is "" for BL_TX_NONE */
	bool clsact;         /* there is a clsact */
	bool ingress;        /* there is an ingress qdisc, which takes the place of a clsact */
	bool mq;             /* the root is an mq */
	bool others;         /* mq: somebody has set disciplines of other queues than the first */
	unsigned int queues; /* mq: its queues */
};

/** bl_tx_look - judges the disciplines @v of a NIC. No system calls. */
void bl_tx_look(const struct nl_qdisc *v, unsigned int n, struct bl_tx_view *to);

/**
 * struct bl_tx_how - what the egress program of a host has to do, so that what it sends takes the
 * one FIFO (struct bl_host_cfg).
 */
struct bl_tx_how {
	bool classed; /* mark ordered frames by their priority */
	bool steered; /* hand them on to the filter that picks the transmit queue */
};

/**
 * bl_tx_make - makes the NIC @i one FIFO for ordered frames, or finds that it is one.
 * @nic: the NIC's record; @save writes it, and is called before each change.
 * @queue_prog: the classifier of ordered frames.
 * Returns 0, sets @nic->tx and @how; -EPERM: it is none, @err says why.
 */
int bl_tx_make(const struct bl_iface *i, struct bl_nic *nic, int queue_prog,
	       int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_tx_how *how,
	       struct bl_err *err);

/**
 * bl_tx_kept - whether the NIC is as bl_tx_make() has left it: the disciplines, the filter, one or
 * several transmit queues. If it is not, bl_tx_make() has to judge it again, also after
 * BL_NIC_BROKEN, and after BL_NIC_UNKNOWN when the NIC was set up.
 */
bool bl_tx_kept(const struct bl_iface *i, const struct bl_nic *nic);

/** bl_tx_undo - puts back what was there before. What somebody changed meanwhile stays. */
void bl_tx_undo(const struct bl_iface *i, struct bl_nic *nic);

#endif
