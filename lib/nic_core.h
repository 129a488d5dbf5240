/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many frames of a host may be in the ring of its NIC: the arithmetic of lib/nic.c.
 *
 * Each endpoint counts the frames that it has put into the ring. The sum over the host says how
 * many ever went in. How many have left is known from witnesses: the ring is a FIFO, so when a
 * frame has left it, everything that was put in before that frame has left it, too. An endpoint
 * knows which of its own frames are still in the ring (SIOCOUTQ of its socket), and notes with each
 * send how many frames the host had put in until then: a mark.
 *
 * Example: X has put in 40 frames, Y 10. X sends 5 more and notes { mine 45, all 55 }. Y sends 20.
 * X's socket is empty: its 45th frame has left the ring, and 54 others before it, so at most 75 -
 * 55 = 20 frames are in the ring. So 204 more fit into 224.
 *
 * A process that dies takes nothing with it: its count stays, and the next witness of any other
 * endpoint tells that its frames have left.
 */
#ifndef BARLINE_NIC_CORE_H
#define BARLINE_NIC_CORE_H

#include <stdbool.h>
#include "core/core.h"

#define BL_NIC_MARKS 16

/** struct bl_nic_mark - what it proves that a frame of ours has left the ring. */
struct bl_nic_mark {
	__u64 mine; /* the frame: the last of our first @mine */
	__u64 all;  /* frames of the host that have left with it, at least */
};

/** struct bl_nic_marks - a ring of marks. */
struct bl_nic_marks {
	struct bl_nic_mark at[BL_NIC_MARKS];
	__u32 first; /* index of the oldest mark */
	__u32 n;     /* marks */
};

/**
 * bl_nic_mark - note that our first @mine frames were put in, and with them the host's first @all.
 */
BL_CORE void bl_nic_mark(struct bl_nic_marks *m, __u64 mine, __u64 all)
{
	/* Without room the newest mark is replaced: the new one proves more, and is known later. */
	if (m->n < BL_NIC_MARKS)
		m->n++;
	m->at[(m->first + m->n - 1) % BL_NIC_MARKS] = (struct bl_nic_mark){ mine, all };
}

/**
 * bl_nic_passed - how many frames of the host have left the ring, by our own frames. Returns 0 if
 * these tell nothing new.
 * @mine: frames that we have put in.
 * @in_ring: how many of them are still there, at most.
 */
BL_CORE __u64 bl_nic_passed(struct bl_nic_marks *m, __u64 mine, __u64 in_ring)
{
	__u64 all = 0;

	while (m->n && m->at[m->first].mine + in_ring <= mine) {
		all = m->at[m->first].all;
		m->first = (m->first + 1) % BL_NIC_MARKS;
		m->n--;
	}
	return all;
}

#define BL_NIC_WITNESS_NS 1000000ULL

/** struct bl_nic_calls - when an endpoint that waits for room called for a witness. */
struct bl_nic_calls {
	__u64 out;       /* frames that had left when it looked last, */
	__u64 looked_ns; /* and when that was */
	__u64 called_ns; /* when it called last */
};

/**
 * bl_nic_witness_due - whether an endpoint that finds no room, and has no frame in the ring, must
 * send one that tells when the ring is empty. Not if others tell, and not more than once in
 * BL_NIC_WITNESS_NS: witnesses fill the ring of an endpoint that may have no CPU to empty it.
 * @out: frames of the host that have left, as far as any endpoint knows.
 */
BL_CORE bool bl_nic_witness_due(struct bl_nic_calls *c, __u64 out, __u64 mono)
{
	bool others_tell = out != c->out && mono - c->looked_ns < BL_NIC_WITNESS_NS;

	c->out = out;
	c->looked_ns = mono;
	if (others_tell || mono - c->called_ns < BL_NIC_WITNESS_NS)
		return false;
	c->called_ns = mono;
	return true;
}

/**
 * bl_nic_used - frames in the ring, at most. @in: frames that were put in. @out: frames that are
 * known to have left.
 */
BL_CORE __u64 bl_nic_used(__u64 in, __u64 out)
{
	return in > out ? in - out : 0;
}

/**
 * bl_nic_fits - whether @need more frames fit below @most. A larger number of frames leaves when
 * the ring is empty, since waiting longer would not help.
 */
BL_CORE bool bl_nic_fits(__u64 used, __u64 need, __u64 most)
{
	return !used || used + need <= most;
}

/**
 * bl_nic_share - the share of @most frames for each of @senders. Fewer than 8 senders get an
 * eighth, so that a new sender need not wait until others hear that their windows are smaller.
 */
BL_CORE __u32 bl_nic_share(__u32 most, __u64 senders)
{
	return (__u32)(most / (senders > 8 ? senders : 8));
}

#endif
