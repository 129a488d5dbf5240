/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of rtnetlink that makes a NIC one FIFO: listing queueing disciplines, making and
 * removing the few kinds that barline uses, and a filter that picks the transmit queue. Functions
 * return 0 or -errno unless they say otherwise. Handles are as the kernel has them: the major
 * number in the upper 16 bits.
 */
#ifndef BARLINE_BASE_NL_QDISC_H
#define BARLINE_BASE_NL_QDISC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nl.h"

#define NL_QDISC_KIND 16

/** struct nl_qdisc - a queueing discipline of an interface, as the kernel lists it. */
struct nl_qdisc {
	uint32_t handle; /* 0: the kernel made it, and nobody has named it */
	uint32_t parent; /* TC_H_ROOT, TC_H_INGRESS, or the class that it is the leaf of */
	char kind[NL_QDISC_KIND];
};

/** struct nl_qdiscs - what nl_qdisc_read() fills. */
struct nl_qdiscs {
	struct nl_qdisc *v;
	unsigned int max; /* room in @v */
	unsigned int n;   /* found; more than @max: the rest did not fit */
};

/**
 * nl_qdisc_read - takes the queueing disciplines of @ifindex out of @len bytes of a dump's answer,
 * of which nothing is believed. The kernel lists one interface after the other.
 *
 * Returns 1 at the end of the dump or when those of @ifindex are over, 0 if there is more to come,
 * or -errno; -EBADMSG: the answer is malformed.
 */
int nl_qdisc_read(const void *buf, size_t len, uint32_t seq, int ifindex, struct nl_qdiscs *to);

/**
 * nl_qdisc_list - lists the queueing disciplines of @ifindex. Returns their number or -errno;
 * -E2BIG: there are more than @max.
 *
 * The kernel has a list of those of all interfaces only, which takes long where there are thousands
 * of them. It is read on a socket of its own and as far as needed: a NIC comes before the
 * interfaces that are made later for containers.
 */
int nl_qdisc_list(int ifindex, struct nl_qdisc *v, unsigned int max);

/** nl_qdisc_add - makes a queueing discipline without options at @parent, which must be free. */
int nl_qdisc_add(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle, const char *kind);

/** nl_qdisc_pfifo - makes a pfifo for @limit frames at @parent, replacing what is there. */
int nl_qdisc_pfifo(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle, uint32_t limit);

/**
 * nl_qdisc_two_bands - makes a discipline of two bands at @parent, replacing what is there. Frames
 * whose skb priority is @handle + 1 go into band 1, all others into band 2.
 * @kind: "ets": the bands take turns, and each has half of the link while both want it; "prio":
 * band 1 goes first.
 * Returns -ENOENT if the kernel has no such kind.
 */
int nl_qdisc_two_bands(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
		       const char *kind);

/** nl_qdisc_del - removes the discipline @handle at @parent; at the root, the default is back. */
int nl_qdisc_del(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle);

/**
 * nl_filter_queue - makes a filter of clsact's egress: frames that the classifier @prog_fd matches
 * leave by transmit queue @queue, whatever XPS and the driver would choose.
 * @unclass: and their skb priority becomes 0.
 * Returns -ENOENT if the kernel has no act_skbedit or cls_bpf.
 */
int nl_filter_queue(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle, int prog_fd,
		    uint16_t queue, bool unclass);

/** nl_filter_del - removes a filter of clsact's egress. */
int nl_filter_del(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle);

/**
 * nl_filter_count - counts the filters at @parent (TC_H_ROOT's clsact hooks). Returns the count or
 * -errno.
 * @prio, @handle: if not 0, only filters with this preference and handle.
 */
int nl_filter_count(struct nl *nl, int ifindex, uint32_t parent, uint16_t prio, uint32_t handle);

/**
 * nl_clsact_make - makes a clsact, the hook of classifiers on both sides of an interface, or finds
 * that there is one. Returns 0; -EBUSY: somebody has set the qdisc "ingress", which takes the same
 * place and has no egress side. The kernel accepts a filter for egress there nevertheless, but
 * never asks it.
 */
int nl_clsact_make(struct nl *nl, int ifindex);

/**
 * nl_clsact_find - looks for a clsact. Returns 0: there is one; -EBUSY: an "ingress" is there;
 * -ENOENT: neither; or another -errno.
 */
int nl_clsact_find(struct nl *nl, int ifindex);

/** nl_clsact_del - removes a clsact. Returns 0; -EINVAL: an "ingress" is there, and stays. */
int nl_clsact_del(struct nl *nl, int ifindex);

#endif
