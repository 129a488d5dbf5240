/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node knows of each of its links: whether frames overtake each other or are lost there, and
 * how far the neighbour's clock is from its own. Beacons carry it (struct bl_link_body,
 * maps/wire_abi.h). Both roles have these maps; a host's NIC is port 0.
 *
 * Example: h1's beacon says that 1000 frames went before it, and the switch has counted 1000 of
 * them: nothing is missing. The next one says 1010, and 1004 have come: 6 are missing. The one
 * after it says 1010 again, and 1010 have come: the 6 came after a beacon that had counted them.
 * They were overtaken, and h1's NIC is no FIFO.
 *
 * The arithmetic is in core/order/link_core.h and core/order/skew_core.h; what the daemon makes of
 * it, in loader/order/link_check.c.
 */
#ifndef BARLINE_LINK_ABI_H
#define BARLINE_LINK_ABI_H

#include <linux/types.h>
#include "maps/wire_abi.h"

#define BL_MAP_LINK_SEEN  "link_seen"  /* array: port -> struct bl_link */
#define BL_MAP_LINK_SENT  "link_sent"  /* hosts; array: CPU modulo 256 -> struct bl_link_sent */
#define BL_MAP_LINK_VIEWS "link_views" /* array: port -> struct bl_link_view */

/**
 * struct bl_link_lane - the frames of one lane of a link, as its receiver counts them. Written by
 * the CPU that the port is steered to.
 */
struct bl_link_lane {
	__u64 received; /* @frames of struct bl_reg when the last beacon came */
	__u64 heard_ns; /* bus time of that beacon; 0: none yet */
	__u64 lost;     /* frames that never came */
	/* frames that came after a beacon that had counted them */
	__u64 overtaken;
	__u64 changed_ns; /* bus time at which @apart changed last */
	__u32 ahead;      /* of the last beacon: its frames less @received, modulo 2^32 */
	/* above 0: frames that are missing, and may still come; below: that came too early */
	__s32 apart;
	__u32 worst; /* most frames that were overtaken from one beacon to the next */
	/* frames that changed places without harm: explained by @racing, or before their beacon */
	__u32 raced;
	__u16 run;    /* of the last beacon; 0: none yet */
	__u16 racing; /* of the last beacon */
	__u32 node;   /* of the last beacon */
};
_Static_assert(sizeof(struct bl_link_lane) == 64, "one cache line");

#define BL_DELAY_NONE 0x7fffffffffffffffLL
/**
 * struct bl_link - value of "link_seen": one port. Written by the CPU that the port is steered to;
 * other CPUs read it without a lock when they write beacons. On a host whose NIC has several
 * receive queues, an update may be lost: the next beacon repeats it.
 */
struct bl_link {
	__u32 node; /* node id of the neighbour, from its last beacon with a body; 0: none yet */
	__u16 run;  /* number of this node's own count on this link. Written by the loader. */
	__u16 reserved;
	/*
	 * Least apparent one-way delay of the neighbour's beacons, ns, by the clocks of both nodes:
	 * of this bucket and of the one before. BL_DELAY_NONE: no beacon came in it.
	 */
	__s64 least_ns[2];
	__u64 bucket_ns; /* bus time at which this bucket began; 0: there is none yet */
	__u64 heard_ns;  /* bus time of the last beacon with a body; 0: none yet */
	__s32 echo_ns;   /* what the last one said: @echo, */
	__u32 bound_ns;  /* @bound, */
	__u32 theirs;    /* and @overtaken */
	__u32 overtaken; /* that of all lanes here, for beacons; saturating */
	/*
	 * On a host: bl_link_tick() of its last beacon with a body. Written where beacons leave,
	 * one at a time; a switch keeps it by lane (struct bl_carried_lane).
	 */
	__u16 said;
	__u16 reserved2[3];
	struct bl_link_lane lane[BL_LANES_MAX]; /* by the neighbour's lane */
};
_Static_assert(sizeof(struct bl_link) == 64 + 64 * BL_LANES_MAX, "ABI");

#define BL_LINK_CPUS 256
/**
 * struct bl_link_sent - value of "link_sent": the ordered frames that one CPU of a host has sent.
 * Written by that CPU; CPUs whose numbers are equal modulo BL_LINK_CPUS share one, so @frames is
 * added to atomically.
 */
struct bl_link_sent {
	__u64 frames;
	__u64 at_ns; /* bus time of the last ones; 0: none yet */
	__u32 most;  /* most frames in one skb (UDP GSO) in the last BL_LINK_RACE_NS */
	__u32 reserved;
	__u64 reserved2[5];
};
_Static_assert(sizeof(struct bl_link_sent) == 64, "one cache line");

/* enum bl_link_verdict - what the daemon has found out about a neighbour's clock. */
enum bl_link_verdict {
	BL_VERDICT_NONE, /* nothing is known, since no beacon of it says when it was sent */
	BL_VERDICT_GOOD, /* within the bounds of both, as far as delays can tell */
	/*
	 * At least struct bl_link_view.off_ns further from this node's clock than both bounds
	 * allow, and more than half of all clocks that this node knows say that it is wrong.
	 */
	BL_VERDICT_OFF,
	/* The same, and more than half of all clocks say that this node's own is wrong. */
	BL_VERDICT_SELF,
	BL_VERDICT_EITHER, /* the same, and nothing says which of the two is wrong */
	BL_VERDICT_COUNT
};

/**
 * struct bl_link_view - value of "link_views": what the daemon makes of struct bl_link, four times
 * per second. Written by the daemon; all zero until then.
 */
struct bl_link_view {
	/*
	 * The neighbour's clock less this node's lies between these two, ns; BL_DELAY_NONE and
	 * -BL_DELAY_NONE: there is no bound on this side. @low_ns is above @high_ns if the two
	 * drift apart: each was true at some moment of the last seconds.
	 */
	__s64 low_ns, high_ns;
	__s64 in_ns;      /* least apparent delay of its beacons; BL_DELAY_NONE: not known */
	__s64 out_ns;     /* the same of this node's beacons, as the neighbour says */
	__u64 bounds_ns;  /* what both clocks may be off together, ns */
	__s64 off_ns;     /* above 0: ahead by at least this; below: behind; 0: within @bounds_ns */
	__u64 since_s;    /* CLOCK_REALTIME at which @verdict began, seconds; 0: none yet */
	__u64 written_ns; /* CLOCK_MONOTONIC of this view */
	__u64 broken_s;   /* CLOCK_REALTIME at which frames were overtaken last; 0: never */
	__u32 verdict;    /* enum bl_link_verdict */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_link_view) == 80, "ABI");

#endif
