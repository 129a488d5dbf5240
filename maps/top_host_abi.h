/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host: the flows that this host sends, whose frames wait for tokens, and the flows that
 * it receives, for which it sends tokens. maps/top_abi.h is the wire.
 *
 * A flow is the addresses, ports and protocol of frames that applications send through bl0. A flow
 * that is sent has a number, 1 to BL_DESTS - 1, as destinations have under the other policies, and
 * with the number its own hold queues. After the flow has been idle, the number goes to another
 * flow. When few numbers are left, new flows share one number per pair of addresses. The receiver
 * identifies a flow by the sender's address and this number, and keeps it at a place of its own
 * table.
 *
 * Example: host A sends 10.9.0.1:40000 to 10.9.0.2:5001 over TCP. The first segment with payload is
 * held as flow 3, and a SYNC (flow 3, tag 0x5a17, 1 frame) goes to 10.9.0.2. B assigns place 0 and
 * sends token 1 of flow 3, tag 0x5a17. A's program finds the flow, checks that the tag matches, the
 * number is new and the time is not too old, and puts the held segment into the frame that the
 * token arrived in.
 *
 * The arithmetic is in core/top/: top_core.h, top_rx_core.h, top_tx_core.h and top_loss_core.h.
 */
#ifndef BARLINE_TOP_HOST_ABI_H
#define BARLINE_TOP_HOST_ABI_H

#include <linux/bpf.h>
#include <linux/types.h>
#include "maps/hold_abi.h"
#include "maps/top_abi.h"

#define BL_MAP_TOP_CFG     "top_cfg"     /* array of one struct bl_top_cfg */
#define BL_MAP_TOP_FLOWS   "top_flows"   /* hash: struct bl_top_key -> __u32 number */
#define BL_MAP_TOP_TX      "top_tx"      /* array: number -> struct bl_top_tx */
#define BL_MAP_TOP_KEPT    "top_kept"    /* array: number -> struct bl_top_kept */
#define BL_MAP_TOP_RX_OF   "top_rx_of"   /* hash: struct bl_top_rx_key -> __u32 place */
#define BL_MAP_TOP_RX      "top_rx"      /* array: place -> struct bl_top_rx */
#define BL_MAP_TOP_COFLOWS "top_coflows" /* hash: coflow -> struct bl_top_coflow */
/* array: bl_top_hint_hash() -> struct bl_top_hint; mmapped by applications */
#define BL_MAP_TOP_HINTS "top_hints"
#define BL_MAP_TOP_PAGE  "top_page" /* array of one struct bl_top_page; mmapped */

#define BL_TOP_RX_MAX    256
#define BL_TOP_RX_WORDS  (BL_TOP_RX_MAX / 64)
#define BL_TOP_HINTS     1024 /* a power of two */
/* numbers reserved for shared flows: one flow for each pair of addresses */
#define BL_TOP_RESERVE     48
#define BL_TOP_SIZES       64  /* buckets of bl_top_page.sizes: two per power of two of frames */
#define BL_TOP_SHARED      255 /* bl_top_key.proto of a shared flow, whose ports are 0 */
#define BL_TOP_RULES       16
#define BL_TOP_UNSCHED_MAX 8
#define BL_TOP_WINDOW      64 /* tokens: width of bl_top_tx.seen */
/* a token that is further ahead of the last one is refused */
#define BL_TOP_AHEAD (1U << 20)
/*
 * data frames: width of what a LOSS describes and a receiver remembers; a sender is never further
 * ahead of the frames that it knows to have arrived
 */
#define BL_TOP_KEEP 64
/* a frame counts as missing after this many later ones: per-packet spraying reorders as well */
#define BL_TOP_LATER 8
/* data frames after which a LOSS is sent even without losses, to free the sender's slots */
#define BL_TOP_ACK_EACH 16
/* a LOSS is repeated after an RTT, then after twice that, with at most this many doublings */
#define BL_TOP_LOSS_BACKOFF 6
#define BL_TOP_KEEP_PART    4  /* all flows together may keep one slot in this many */
#define BL_TOP_TAG_TRIES    16 /* SYNCs without a token after which the flow takes a new tag */
/* of wasted tokens in a row, the first and then one in this many becomes a STOP */
#define BL_TOP_STOP_EACH 8
#define BL_TOP_ONE       (1U << 24) /* rates and weights are fractions of this */
/* largest bl_top_cfg.ramp; ns2-xpass xpass.cc:174-181, whose RTT is about 40 slots */
#define BL_TOP_SHORT_RAMP 40
#define BL_TOP_FULL_BYTES 1514        /* bytes of frame that a token permits */
#define BL_TOP_WIRE_BYTES (84 + 1538) /* a token and its data on the wire */
#define BL_TOP_FRAME_MAX  1518        /* with the echo: what an interface of MTU 1500 accepts */
#define BL_TOP_CONTROL_MAX                                                    \
	128 /* bytes of frame: TCP without payload is sent at once up to this \
	     */
/*
 * The bit that marks an unscheduled frame: the one that PL2 uses for unsolicited frames, since a
 * rack has one policy.
 */
#define BL_TOP_UNSCHED_MAC0 BL_EARLY_MAC0

/* X(SYMBOL, "name", "text"): the feedback laws. Append only. */
/* clang-format off */
#define BL_TOP_LAWS(X) \
	X(PAPER, "paper", "SIGCOMM'17: a tenth of the tokens may get lost") \
	X(NS2, "ns2", "the authors' simulator: fewer, the faster the flow")
/* clang-format on */
#define BL_TOP_LAW_ENUM(sym, name, text) BL_TOP_LAW_##sym,
enum bl_top_law { BL_TOP_LAWS(BL_TOP_LAW_ENUM) BL_TOP_LAW_COUNT };
#undef BL_TOP_LAW_ENUM

/* X(SYMBOL, "name", "text"): what decides the class of a flow. Append only. */
/* clang-format off */
#define BL_TOP_OBJECTIVES(X) \
	X(FCT, "fct", "by the flow's size; by what was served where that is not known") \
	X(LAS, "las", "by what was served so far") \
	X(DEADLINE, "deadline", "by the time that is left") \
	X(COFLOW, "coflow", "by the size of the whole coflow") \
	X(REMAINING, "remaining", \
	  "by what is left of the flow; by what was served where its size is not known")
/* clang-format on */
#define BL_TOP_OBJECTIVE_ENUM(sym, name, text) BL_TOP_BY_##sym,
enum bl_top_objective { BL_TOP_OBJECTIVES(BL_TOP_OBJECTIVE_ENUM) BL_TOP_OBJECTIVE_COUNT };
#undef BL_TOP_OBJECTIVE_ENUM

/*
 * X(SYMBOL, "key in files", "flag", least, greatest, default, "text"): TOP's options on hosts, the
 * one list for configuration files, `barline admission set`, show and its help. Append only: the
 * number indexes bl_top_cfg.opt.
 *
 * To add an option:
 * 1. Append it here. The number of options must stay even, since bl_top_cfg.opt may not end in
 *    padding; raise BL_ABI_VERSION (maps/meta_abi.h), since struct bl_top_cfg grows.
 * 2. Compute the field of struct bl_top_cfg that the programs read from it in bl_top_make(), and
 *    check it against the other options in bl_top_check() (loader/admission/top_host.c).
 * 3. Reading files, the flag of `barline admission set`, show and the JSON key follow from the
 *    list.
 * 4. Document it: the table in docs/top.md, the list of keys under "top" in docs/barlined.8, and
 *    the list of flags in docs/barline.1.
 * 5. Test it: tests/prog/test_config.c reads it from a file, and tests/prog/test_top_rx.c checks
 *    what bl_top_make() computes.
 */
/* clang-format off */
#define BL_TOP_OPTIONS(X) \
	X(LAW, "law", "law", 0, BL_TOP_LAW_COUNT - 1, BL_TOP_LAW_NS2, "feedback: paper or ns2") \
	X(OBJECTIVE, "objective", "objective", 0, BL_TOP_OBJECTIVE_COUNT - 1, BL_TOP_BY_REMAINING, \
	  "priority of flows: remaining, fct, las, deadline or coflow") \
	X(LEVELS, "levels", "levels", 1, BL_TOP_CLASSES, BL_TOP_CLASSES, \
	  "token classes in use; 1: ExpressPass") \
	X(A, "a_permille", "a-permille", 1, 1000000, 1000, \
	  "priority: a of floor(K log_p(a x + b)), x in frames") \
	X(B, "b_permille", "b-permille", 0, 1000000, 0, "priority: b") \
	X(LONGEST, "longest_frames", "longest-frames", 2, 1000000000, 20000, \
	  "priority: p, the longest flow") \
	X(EXPIRY, "expiry_us", "expiry-us", 0, 10000000, 0, \
	  "T: tokens under way for longer are not answered; 0: from base_us and hops") \
	X(BASE, "base_us", "base-us", 0, 10000000, 1000, "time from host to host without queues") \
	X(HOPS, "hops", "hops", 1, 16, 4, "queues on the way, each of 8 tokens") \
	X(JITTER, "jitter_percent", "jitter", 0, 50, 10, \
	  "jitter of the gap between two tokens of a flow") \
	X(ALPHA, "alpha_permille", "alpha-permille", 1, 1000, 500, \
	  "first rate of a flow, as a share of the link's") \
	X(W_INIT, "w_init_permille", "w-init-permille", 1, 500, 63, \
	  "first weight of the feedback") \
	X(W_MIN, "w_min_permille", "w-min-permille", 1, 500, 10, "least weight") \
	X(HEADROOM, "headroom_percent", "headroom", 0, 50, 5, \
	  "share of the token rate left for frames that need no token") \
	X(UNSCHED, "unscheduled", "unscheduled", 0, BL_TOP_UNSCHED_MAX, 0, \
	  "frames of a short flow that are sent without tokens") \
	X(SHORT, "short_frames", "short-frames", 1, 1000000, 8, \
	  "frames up to which a flow is short") \
	X(SYNC, "sync_us", "sync-us", 10, 10000000, 2000, \
	  "a SYNC without a token is repeated after this time") \
	X(IDLE, "idle_us", "idle-us", 100, 10000000, 100000, \
	  "a flow that holds nothing for this long has ended") \
	X(DEAD, "dead_us", "dead-us", 100, 10000000, 50000, \
	  "a flow whose sender is silent for this long has ended") \
	X(OUTSIDE, "outside_tries", "outside-tries", 0, 1000, 0, \
	  "after this many SYNCs, a flow that never got a token sends without; 0: never") \
	X(LEARN, "learn", "learn", 0, 1, 1, \
	  "1: thresholds of classes follow the sizes of received flows") \
	X(CLASS1, "class1_frames", "class1-frames", 0, 1000000000, 0, \
	  "class 1 begins at this many frames; 0: by a, b and p") \
	X(CLASS2, "class2_frames", "class2-frames", 0, 1000000000, 0, \
	  "class 2 begins at this many frames; 0: by a, b and p") \
	X(CLASS3, "class3_frames", "class3-frames", 0, 1000000000, 0, \
	  "class 3 begins at this many frames; 0: by a, b and p") \
	X(CLASS4, "class4_frames", "class4-frames", 0, 1000000000, 0, \
	  "class 4 begins at this many frames; 0: by a, b and p") \
	X(CLASS5, "class5_frames", "class5-frames", 0, 1000000000, 0, \
	  "class 5 begins at this many frames; 0: by a, b and p")
/* clang-format on */
#define BL_TOP_OPTION_ENUM(sym, key, flag, least, most, dflt, text) BL_TOP_O_##sym,
enum bl_top_option { BL_TOP_OPTIONS(BL_TOP_OPTION_ENUM) BL_TOP_O_COUNT };
#undef BL_TOP_OPTION_ENUM

/**
 * struct bl_top_rule - what is known in advance about flows from or to one port.
 */
struct bl_top_rule {
	__u64 bytes;       /* size of the flow; 0: not known */
	__u32 deadline_us; /* from its first frame; 0: none */
	__u32 coflow;      /* number of its coflow; 0: none */
	__u16 port;        /* TCP or UDP port, host order; 0: end of the list */
	__u8 proto;        /* IP protocol; 0: any */
	__u8 flags;        /* BL_TOP_F_* */
	__u8 zero[4];
};
_Static_assert(sizeof(struct bl_top_rule) == 24, "ABI");
#define BL_TOP_F_RESEND 1 /* lost frames are sent again: BL_FLOW_RESEND of libbarline */

/**
 * struct bl_top_cfg - value 0 of "top_cfg". Written by the loader and by `barline admission set`;
 * the programs only read it.
 */
struct bl_top_cfg {
	__u32 law;       /* enum bl_top_law */
	__u32 objective; /* enum bl_top_objective */
	__u32 levels;    /* K: classes in use, 1 to BL_TOP_CLASSES; 1: ExpressPass */
	/*
	 * ns that a token and its full data frame take of the link, with the headroom taken off:
	 * the interval of tokens of all flows together.
	 */
	__u32 slot_ns;
	__u32 alpha;  /* first rate of a flow, of BL_TOP_ONE */
	__u32 w_init; /* first weight of the feedback, of BL_TOP_ONE */
	__u32 w_min;  /* least weight of the feedback, of BL_TOP_ONE */
	__u32 w_max;  /* greatest weight of the feedback, of BL_TOP_ONE */
	__u32 jitter; /* largest change of the gap between two tokens of a flow, of BL_TOP_ONE */
	/* a flow that never got a token sends without tokens after this many SYNCs; 0: never */
	__u32 outside_tries;
	__u32 unscheduled;  /* frames of a short flow that are sent without a token */
	__u32 short_frames; /* frames up to which a flow is short */
	/* frames from which class c begins, in limit[c - 1]; ~0: the class does not exist */
	__u64 limit[BL_TOP_CLASSES - 1];
	/*
	 * T: a token that was under way for longer is not answered (TOP section 4.3); the error
	 * bounds of both clocks are added.
	 */
	__u64 expiry_ns;
	/* a SYNC without a token is repeated after this, twice this, four times this */
	__u64 sync_ns;
	__u64 idle_ns; /* a flow that has held nothing for this long gives its number back */
	__u64 dead_ns; /* a flow without a frame from its sender for this long loses its place */
	struct bl_top_rule rules[BL_TOP_RULES]; /* the first one that matches applies */
	/* by enum bl_top_option: the options that all of this was computed from; for user space */
	__u32 opt[BL_TOP_O_COUNT];
	/*
	 * A flow of fewer frames than this begins that much slower: slots of an RTT without queues,
	 * 1 to BL_TOP_SHORT_RAMP, since tokens for more frames than a flow has are wasted for that
	 * long.
	 */
	__u32 ramp;
	__u32 keep_max; /* slots that the kept frames of all flows may occupy */
	/* 1: bl_top_page.limit, once it is there, replaces @limit. Written by the daemon. */
	__u32 learn;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_top_cfg) == 136 + 24 * BL_TOP_RULES + 4 * BL_TOP_O_COUNT &&
		       BL_TOP_O_COUNT % 2 == 0,
	       "ABI");

/**
 * struct bl_top_key - a flow, as a key of hash maps. IPv4 addresses are ::ffff:a.b.c.d.
 */
struct bl_top_key {
	__u8 saddr[16];
	__u8 daddr[16];
	__be16 sport; /* 0: the protocol has no ports */
	__be16 dport; /* 0: the protocol has no ports */
	__u8 proto;   /* IP protocol, or BL_TOP_SHARED */
	__u8 v6;      /* 1: IPv6 */
	__u8 zero[2];
} __attribute__((aligned(8))); /* compared in whole words */
_Static_assert(sizeof(struct bl_top_key) == 40, "ABI");

/**
 * struct bl_top_hint - what an application announces about one of its flows. It lies at the place
 * that its key hashes to, until another flow needs that place. Writers take @seq from even to odd
 * by compare-and-swap. A reader that finds @seq odd, or changed, has no hint.
 */
struct bl_top_hint {
	__u32 seq;         /* odd while the hint is being written */
	__u32 deadline_us; /* from its first frame until it should be complete; 0: none */
	__u64 bytes;       /* size of the flow; 0: not known */
	__u32 coflow;      /* number of its coflow; 0: none */
	__u32 flags;       /* BL_TOP_F_* */
	struct bl_top_key key;
};
_Static_assert(sizeof(struct bl_top_hint) == 64, "ABI");

/* State of a flow that this host sends. */
enum bl_top_state {
	BL_TOP_FREE,     /* no flow */
	BL_TOP_IDLE,     /* holds no frame that the receiver knows of */
	BL_TOP_ASKING,   /* holds frames; SYNCs are sent */
	BL_TOP_CREDITED, /* tokens arrive */
	BL_TOP_OUTSIDE   /* no token ever arrived; frames are sent at once */
};

/**
 * struct bl_top_tx - a flow that this host sends. @lock protects all of it, except the fields that
 * say otherwise. Its three writers are bl_hold_xdp, bl_host_xdp (tokens) and the pacer (SYNC, FIN,
 * end of the flow).
 */
struct bl_top_tx {
	struct bpf_spin_lock lock;
	__u32 state;       /* enum bl_top_state */
	__u32 tag;         /* as in struct bl_top_hdr */
	__u32 sig;         /* number of the last SYNC, FIN or STOP; 0: none */
	__u32 seq;         /* highest token number accepted; 0: none */
	__u32 tries;       /* SYNCs since the last token */
	__u32 wasted_run;  /* tokens since the last one that found a frame */
	__u32 deadline_us; /* from the hint; 0: none */
	__u64 seen;        /* bit k: token @seq - k was accepted */
	__u64 bytes;       /* from the hint; 0: not known */
	__u32 coflow;      /* from the hint; 0: none */
	__be16 port;       /* UDP source port of its TOP frames */
	__u8 mac[6];       /* next hop */
	__u32 unsched;     /* frames that may still be sent without a token */
	struct bl_top_key key;
	__u64 began_ns;    /* CLOCK_MONOTONIC of its first frame */
	__u64 frame_ns;    /* CLOCK_MONOTONIC of its last frame */
	__u64 sync_ns;     /* CLOCK_MONOTONIC of the last SYNC; 0: none */
	__u64 token_ns;    /* CLOCK_MONOTONIC of the last token; 0: none */
	__u64 frames;      /* frames held so far */
	__u64 sent_bytes;  /* bytes of the frames held so far */
	__u64 tokens;      /* tokens answered */
	__u64 wasted;      /* tokens that found no frame */
	__u64 expired;     /* tokens not answered since they were too old */
	__u64 refused;     /* tokens not answered since they were not valid */
	__u64 syncs;       /* SYNCs sent */
	__u64 stops;       /* STOPs sent */
	__u64 unscheduled; /* frames sent without a token */
	__u64 paced;       /* answers sent by the pacer, since the token's frame could not grow */
	__u32 keep;        /* 1: data frames are numbered, and kept until they have arrived */
	/*
	 * Number of the last data frame; 0: none. Taken by atomic addition, without the lock, and
	 * never set back, so that frames of an earlier flow with the same number can be told from
	 * those of this flow.
	 */
	__u32 data;
	__u32 told;    /* value of @data in the last SYNC or STOP */
	__u32 acked;   /* all frames up to this one have arrived, or the receiver gave them up */
	__u32 loss;    /* number of the last LOSS; 0: none */
	__u32 rtt_us;  /* RTT in the last LOSS; 0: none arrived */
	__u64 loss_ns; /* CLOCK_MONOTONIC of the last LOSS that named a missing frame */
	/* These three are added to by atomic operations, without the lock. */
	__u64 resent; /* answers with a frame that had been sent before */
	__u64 asked;  /* frames that a LOSS asked for */
	__u64 gone;   /* of those, frames that were no longer kept */
};
_Static_assert(sizeof(struct bl_top_tx) == 272, "ABI");

/**
 * struct bl_top_kept - frames of a flow that were sent and may have to be sent again; frame d is at
 * index d & (BL_TOP_KEEP - 1). No lock: whoever changes a word to 0 by compare-and-swap owns the
 * slot, and frees it or puts the word back.
 */
struct bl_top_kept {
	/* bit: the frame at this index is missing; the next token is for it. Atomic. */
	__u64 marked;
	/* bit: the pacer sends the frame, since its token's frame could not grow. Atomic. */
	__u64 push;
	/*
	 * Number of the frame << 32 | BL_RING_ENTRY of its slot, with the length without the echo;
	 * 0: none. Put there by the program that sent the frame. Taken by a LOSS that says it
	 * arrived, by a newer frame, by the program that sends it again, and at the end of the
	 * flow.
	 */
	__u64 word[BL_TOP_KEEP];
	/*
	 * Time of the last transmission, in units of 1024 ns; bit 0: it was not the first one.
	 * Written before @word. An old value, where two programs write it, costs one frame too many
	 * or one RTT.
	 */
	__u32 at[BL_TOP_KEEP];
};
_Static_assert(sizeof(struct bl_top_kept) == 16 + 12 * BL_TOP_KEEP && BL_TOP_KEEP == 64, "ABI");

/**
 * struct bl_top_rx_key - a flow that this host receives, as a key of hash maps.
 */
struct bl_top_rx_key {
	__u8 addr[16]; /* of the sender: IPv6 or IPv4-mapped */
	__u32 flow;    /* number at the sender, host order */
};

/* State of a flow that this host receives. */
enum bl_top_rx_state {
	BL_TOP_RX_FREE,    /* no flow */
	BL_TOP_RX_STOPPED, /* the sender holds nothing; rate and bytes are remembered */
	BL_TOP_RX_OPEN     /* gets tokens */
};

/**
 * struct bl_top_came - which of a flow's numbered data frames have arrived. Part of struct
 * bl_top_rx, and protected by its lock.
 */
struct bl_top_came {
	__u64 got;       /* bit k: frame @data - k arrived, or is not waited for */
	__u64 report_ns; /* CLOCK_MONOTONIC at which the pacer sends a LOSS; BL_DUE_NEVER: none */
	/*
	 * CLOCK_MONOTONIC at which everything missing up to @mark is reported, again if it was
	 * reported before; BL_DUE_NEVER: nothing is missing.
	 */
	__u64 again_ns;
	/* CLOCK_MONOTONIC at which a frame began to be missing, or a missing one last arrived */
	__u64 since_ns;
	__u32 data;  /* highest number that arrived, or that the sender announced; 0: none */
	__u32 mark;  /* see @again_ns */
	__u32 told;  /* highest number that the last LOSS covered */
	__u32 seq;   /* number of the last LOSS; 0: none */
	__u32 tries; /* how often @again_ns has passed since @since_ns */
	__u32 reserved;
	__u64 lost;     /* numbers given up */
	__u64 repeated; /* frames that arrived again */
	__u64 losses;   /* LOSS sent that named a missing frame */
};
_Static_assert(sizeof(struct bl_top_came) == 80, "ABI");

/**
 * struct bl_top_rx - a flow that this host receives. @lock protects all of it. bl_host_xdp (SYNC,
 * data) and the pacer (tokens, end of the flow) take it. When the pacer chooses a flow it reads
 * without the lock, and validates its choice again under the lock.
 */
struct bl_top_rx {
	struct bpf_spin_lock lock;
	__u32 state; /* enum bl_top_rx_state */
	__u32 tag;   /* as in struct bl_top_hdr */
	__u32 sig;   /* number of the last signal */
	__u32 seq;   /* tokens sent */
	__u32 echo;  /* highest token number that was answered; 0: none */
	/* tokens up to this one are not counted as lost: the sender had nothing when they came */
	__u32 forgiven;
	__u32 total;       /* tokens answered or passed over since the last feedback */
	__u32 dropped;     /* of those, tokens not answered */
	__u32 rate;        /* of BL_TOP_ONE */
	__u32 weight;      /* of BL_TOP_ONE */
	__u32 grew;        /* 1: the last feedback raised the rate */
	__u32 probe;       /* number of a token whose answer is timed */
	__u32 waiting;     /* frames that the last SYNC announced */
	__u64 rtt_ns;      /* smoothed; 0: not known */
	__u64 probe_ns;    /* CLOCK_MONOTONIC at which @probe was sent; 0: no token is timed */
	__u64 update_ns;   /* CLOCK_MONOTONIC of the last feedback */
	__u64 next_ns;     /* CLOCK_MONOTONIC before which no token is sent */
	__u64 heard_ns;    /* CLOCK_MONOTONIC of the last frame of the sender */
	__u64 bytes;       /* size that the sender announced, as in a SYNC; 0: not known */
	__u64 deadline_ns; /* CLOCK_MONOTONIC, as announced; 0: none */
	__u64 served;      /* bytes received */
	__u32 coflow;      /* as announced; 0: none */
	struct bl_top_rx_key who; /* the sender */
	__u8 self[16];            /* address of this host that the sender uses */
	__u8 mac[6];              /* next hop to the sender */
	__be16 port;              /* UDP source port of its TOP frames */
	__u32 v6;                 /* 1: IPv6 */
	__u32 cls;                /* class of the last token */
	__u64 frames;             /* frames received */
	__u64 lost;               /* tokens without an answer */
	__u64 late;               /* frames whose token had been counted as lost */
	__u64 syncs;              /* SYNCs received */
	__u64 feedbacks;          /* feedbacks computed */
	struct bl_top_came came;  /* its numbered data frames */
	/* bytes of it in its coflow's sum; not @bytes, which may be announced later, or never */
	__u64 counted;
};
_Static_assert(sizeof(struct bl_top_rx) == 304, "ABI");

/**
 * struct bl_top_coflow - inbound flows that belong together. Changed by atomic operations.
 */
struct bl_top_coflow {
	__u64 bytes;  /* sum of their sizes */
	__u64 served; /* bytes received */
	__u64 flows;  /* flows that have a place */
};

/**
 * struct bl_top_page - value 0 of "top_page": the receiver's side of the pacer, and what the daemon
 * learns. Written by the pacer unless a field says otherwise.
 */
struct bl_top_page {
	__u64 at;      /* when the pacer has something to send; same rules as bl_due.at */
	__u64 free_ns; /* CLOCK_MONOTONIC before which no token is sent */
	/* bit i: place i of "top_rx" is taken. Set by bl_host_xdp, cleared by the pacer; atomic. */
	__u64 used[BL_TOP_RX_WORDS];
	__u32 last;                   /* place that got the last token */
	__u32 random;                 /* state of the generator for the jitter; never 0 */
	__u64 tokens[BL_TOP_CLASSES]; /* tokens sent, by class */
	__u64 no_clock; /* times that no token could be sent since the clock was not valid */
	__u64 gone;     /* flows that ended since nothing was heard of them */
	__u64 freed;    /* numbers that idle flows gave back */
	__u64 kept;     /* frames in all of "top_kept"; changed by atomic operations */
	/*
	 * Thresholds of the classes like bl_top_cfg.limit, which the daemon learns from @sizes; the
	 * first one is 0 while there are none. Used if bl_top_cfg.learn is 1. Written word by word.
	 */
	__u64 limit[BL_TOP_CLASSES - 1];
	/* inbound flows that have ended, by bytes received (bl_top_bucket()); only grows */
	__u64 sizes[BL_TOP_SIZES];
};
_Static_assert(sizeof(struct bl_top_page) == 176 + 8 * BL_TOP_SIZES, "ABI");

#endif
