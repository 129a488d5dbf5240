/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host (DESIGN 4): flows that this host sends, whose frames wait for tokens, and flows
 * that it receives, for which it sends tokens. top_abi.h is the wire.
 *
 * A flow is the addresses, ports and protocol of frames that applications send through bl0. It has
 * a number, 1 to BL_DESTS - 1, as destinations have under the other policies, and with it its own
 * hold queues; after idling the number goes to another flow. When few numbers are left, new flows
 * share one by pairs of addresses. The receiver knows it by the sender's address and this number,
 * in a place of its own table.
 *
 * Example: host A sends 10.9.0.1:40000 to 10.9.0.2:5001, TCP. The first segment with payload is
 * held in flow 3: a SYNC (flow 3, tag 0x5a17, 1 frame) goes to 10.9.0.2. B gives it place 0 and
 * sends token 1 of flow 3, tag 0x5a17. A's program finds the flow, the tag, a number that is new
 * and a time that is not too old, and puts the held segment into the frame that the token came in.
 */
#ifndef BARLINE_TOP_HOST_ABI_H
#define BARLINE_TOP_HOST_ABI_H

#include <linux/bpf.h>
#include "maps/hold_abi.h"
#include "maps/top_abi.h"

#define BL_MAP_TOP_CFG     "top_cfg"
#define BL_MAP_TOP_FLOWS   "top_flows"   /* hash: struct bl_top_key -> __u32 number */
#define BL_MAP_TOP_TX      "top_tx"      /* array: number -> struct bl_top_tx */
#define BL_MAP_TOP_KEPT    "top_kept"    /* array: number -> struct bl_top_kept */
#define BL_MAP_TOP_RX_OF   "top_rx_of"   /* hash: struct bl_top_rx_key -> __u32 place */
#define BL_MAP_TOP_RX      "top_rx"      /* array: place -> struct bl_top_rx */
#define BL_MAP_TOP_COFLOWS "top_coflows" /* hash: coflow -> struct bl_top_coflow */
/* array of struct bl_top_hint, by bl_top_hint_hash(); mmapped by applications */
#define BL_MAP_TOP_HINTS "top_hints"
#define BL_MAP_TOP_PAGE  "top_page"

#define BL_TOP_RX_MAX    256
#define BL_TOP_RX_WORDS  (BL_TOP_RX_MAX / 64)
#define BL_TOP_HINTS     1024 /* a power of two */
/* numbers that only flows get which others share: one for each pair of addresses */
#define BL_TOP_RESERVE     48
#define BL_TOP_SIZES       64 /* buckets of bl_top_page.sizes: two for each power of two of frames */
#define BL_TOP_SHARED      255 /* bl_top_key.proto of such a flow, whose ports are 0 */
#define BL_TOP_RULES       16
#define BL_TOP_UNSCHED_MAX 8
#define BL_TOP_WINDOW      64 /* tokens: width of bl_top_tx.seen */
/* a token that is further ahead of the last one is not believed */
#define BL_TOP_AHEAD (1U << 20)
/*
 * data frames: width of what LOSS describes and a receiver remembers; and a sender is not further
 * ahead of what it knows to have come
 */
#define BL_TOP_KEEP 64
/* a data frame is missing once so many later ones have come: per-packet spraying reorders, too */
#define BL_TOP_LATER 8
/* data frames: a LOSS without losses, so that their sender can give their slots to others */
#define BL_TOP_ACK_EACH 16
/* a LOSS is repeated after an RTT, then twice that, up to so many doublings */
#define BL_TOP_LOSS_BACKOFF 6
#define BL_TOP_KEEP_PART    4  /* of all slots one in so many may be kept, by all flows together */
#define BL_TOP_TAG_TRIES    16 /* SYNCs without a token; then the flow takes another tag */
/* of wasted tokens in a row the first and every eighth becomes a STOP */
#define BL_TOP_STOP_EACH 8
#define BL_TOP_ONE       (1U << 24) /* rates and weights are fractions of this */
/* greatest bl_top_cfg.ramp; ns2-xpass xpass.cc:174-181, whose RTT is about 40 slots */
#define BL_TOP_SHORT_RAMP  40
#define BL_TOP_FULL_BYTES  1514        /* what a token is good for */
#define BL_TOP_WIRE_BYTES  (84 + 1538) /* a token and its data on the wire */
#define BL_TOP_FRAME_MAX   1518        /* with the echo: what an interface of MTU 1500 lets pass */
#define BL_TOP_CONTROL_MAX 128 /* bytes of frame: TCP without payload goes at once up to that */
/*
 * An unscheduled frame is known by the bit that PL2 uses for unsolicited ones: a rack has one
 * policy.
 */
#define BL_TOP_UNSCHED_MAC0 BL_EARLY_MAC0

/* X(SYMBOL, "name", "text"). Append only. */
/* clang-format off */
#define BL_TOP_LAWS(X) \
	X(PAPER, "paper", "SIGCOMM'17: a tenth of the tokens may get lost") \
	X(NS2,	 "ns2",	  "the authors' simulator: fewer, the faster the flow")
/* clang-format on */
#define BL_TOP_LAW_ENUM(sym, name, text) BL_TOP_LAW_##sym,
enum bl_top_law { BL_TOP_LAWS(BL_TOP_LAW_ENUM) BL_TOP_LAW_COUNT };
#undef BL_TOP_LAW_ENUM

/* clang-format off */
#define BL_TOP_OBJECTIVES(X) \
	X(FCT,	    "fct",	"by the flow's size; by what was served where that is not known") \
	X(LAS,	    "las",	"by what was served so far") \
	X(DEADLINE, "deadline", "by the time that is left") \
	X(COFLOW,   "coflow",	"by the size of the whole coflow") \
	X(REMAINING, "remaining", "by what is left of the flow; by what was served if its size is not known")
/* clang-format on */
#define BL_TOP_OBJECTIVE_ENUM(sym, name, text) BL_TOP_BY_##sym,
enum bl_top_objective { BL_TOP_OBJECTIVES(BL_TOP_OBJECTIVE_ENUM) BL_TOP_OBJECTIVE_COUNT };
#undef BL_TOP_OBJECTIVE_ENUM

/*
 * What people set: the one list for configuration files, `barline admission set`, show and manual.
 * X(SYMBOL, "key of files", "flag", least, greatest, default, "text"). Append only.
 */
/* clang-format off */
#define BL_TOP_OPTIONS(X) \
	X(LAW,	     "law",		"law",		    0, BL_TOP_LAW_COUNT - 1, BL_TOP_LAW_NS2, "feedback: paper or ns2") \
	X(OBJECTIVE, "objective",	"objective",	    0, BL_TOP_OBJECTIVE_COUNT - 1, BL_TOP_BY_REMAINING, "priority of flows: remaining, fct, las, deadline or coflow") \
	X(LEVELS,    "levels",		"levels",	    1, BL_TOP_CLASSES, BL_TOP_CLASSES, "token classes in use; 1: ExpressPass") \
	X(A,	     "a_permille",	"a-permille",	    1, 1000000, 1000, "priority: a of floor(K log_p(a x + b)), x in frames") \
	X(B,	     "b_permille",	"b-permille",	    0, 1000000, 0, "priority: b") \
	X(LONGEST,   "longest_frames",	"longest-frames",   2, 1000000000, 20000, "priority: p, the longest flow") \
	X(EXPIRY,    "expiry_us",	"expiry-us",	    0, 10000000, 0, "T: tokens that were longer under way are not answered; 0: base_us and hops") \
	X(BASE,	     "base_us",		"base-us",	    0, 10000000, 1000, "way from host to host without queues") \
	X(HOPS,	     "hops",		"hops",		    1, 16, 4, "queues on the way, each of 8 tokens") \
	X(JITTER,    "jitter_percent",	"jitter",	    0, 50, 10, "of the gap between two tokens of a flow") \
	X(ALPHA,     "alpha_permille",	"alpha-permille",   1, 1000, 500, "first rate of a flow, of the link's") \
	X(W_INIT,    "w_init_permille", "w-init-permille",  1, 500, 63, "first weight of the feedback") \
	X(W_MIN,     "w_min_permille",	"w-min-permille",   1, 500, 10, "least weight") \
	X(HEADROOM,  "headroom_percent", "headroom",	    0, 50, 5, "of the token rate, for what waits for no token") \
	X(UNSCHED,   "unscheduled",	"unscheduled",	    0, BL_TOP_UNSCHED_MAX, 0, "frames of a short flow that go without tokens") \
	X(SHORT,     "short_frames",	"short-frames",	    1, 1000000, 8, "what a short flow is") \
	X(SYNC,	     "sync_us",		"sync-us",	    10, 10000000, 2000, "a SYNC without a token is repeated after that long") \
	X(IDLE,	     "idle_us",		"idle-us",	    100, 10000000, 100000, "a flow that holds nothing for so long has ended") \
	X(DEAD,	     "dead_us",		"dead-us",	    100, 10000000, 50000, "so has one whose sender is not heard of") \
	X(OUTSIDE,   "outside_tries",	"outside-tries",    0, 1000, 0, "a flow that never got a token goes without after so many SYNCs; 0: never") \
	X(LEARN,     "learn",		"learn",	    0, 1, 1, "1: thresholds of classes follow the sizes of flows that came in") \
	X(CLASS1,    "class1_frames",	"class1-frames",    0, 1000000000, 0, "class 1 begins at so many frames; 0: by a, b and p") \
	X(CLASS2,    "class2_frames",	"class2-frames",    0, 1000000000, 0, "class 2, likewise") \
	X(CLASS3,    "class3_frames",	"class3-frames",    0, 1000000000, 0, "class 3") \
	X(CLASS4,    "class4_frames",	"class4-frames",    0, 1000000000, 0, "class 4") \
	X(CLASS5,    "class5_frames",	"class5-frames",    0, 1000000000, 0, "class 5")
/* clang-format on */
#define BL_TOP_OPTION_ENUM(sym, key, flag, least, most, dflt, text) BL_TOP_O_##sym,
enum bl_top_option { BL_TOP_OPTIONS(BL_TOP_OPTION_ENUM) BL_TOP_O_COUNT };
#undef BL_TOP_OPTION_ENUM

/**
 * struct bl_top_rule - flows to or from port @port have this size, deadline, coflow and BL_TOP_F_*
 * flags. @proto: IP protocol; 0: any. @port: 0: end of the list.
 */
struct bl_top_rule {
	__u64 bytes;
	__u32 deadline_us;
	__u32 coflow;
	__u16 port;
	__u8 proto;
	__u8 flags;
	__u8 zero[4];
};
_Static_assert(sizeof(struct bl_top_rule) == 24, "ABI");
#define BL_TOP_F_RESEND 1 /* what gets lost is sent again: BL_FLOW_RESEND of libbarline */

/**
 * struct bl_top_cfg - value 0 of "top_cfg". Written by the loader and by `barline admission set`.
 * @law: enum bl_top_law. @objective: enum bl_top_objective. @levels: K: classes in use, 1 to
 * BL_TOP_CLASSES; 1: ExpressPass.
 * @slot_ns: of the link, a token and its full data frame, headroom taken off: one token in so much
 * time for all flows together.
 * @alpha: a flow's first rate, of BL_TOP_ONE. @w_init, @w_min, @w_max: weights of the feedback,
 * likewise.
 * @jitter: largest change of the gap between two tokens of a flow, of BL_TOP_ONE.
 * @limit: class c is what has at least limit[c - 1] frames; ~0: there is no such class.
 * @expiry_ns: T: a token that was longer under way is not answered (TOP section 4.3); both clocks'
 * bounds are added.
 * @sync_ns: a SYNC without a token is repeated after that long, then twice that, up to four times.
 * @idle_ns: a flow that has held nothing for so long gives its number back. @dead_ns: and one that
 * was not heard of loses its place at the receiver.
 * @outside_tries: after so many SYNCs of a flow that never got a token its frames go at once; 0:
 * never.
 * @unscheduled: frames of a short flow that go without a token. @short_frames: what a short flow
 * is.
 * @rules: the first that fits counts.
 * @opt: what all of this was made from, by enum bl_top_option: user space's.
 * @ramp: a flow of fewer frames begins that much slower, 1 to BL_TOP_SHORT_RAMP: slots of an RTT
 * without queues, since tokens for more frames than it has are wasted that long.
 * @keep_max: slots that frames which may have to be sent again may take, of all flows.
 * @learn: 1: bl_top_page.limit, once it is there, is used in place of @limit. The daemon sets it.
 */
struct bl_top_cfg {
	__u32 law;
	__u32 objective;
	__u32 levels;
	__u32 slot_ns;
	__u32 alpha;
	__u32 w_init;
	__u32 w_min;
	__u32 w_max;
	__u32 jitter;
	__u32 outside_tries;
	__u32 unscheduled;
	__u32 short_frames;
	__u64 limit[BL_TOP_CLASSES - 1];
	__u64 expiry_ns;
	__u64 sync_ns;
	__u64 idle_ns;
	__u64 dead_ns;
	struct bl_top_rule rules[BL_TOP_RULES];
	__u32 opt[BL_TOP_O_COUNT];
	__u32 ramp;
	__u32 keep_max;
	__u32 learn;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_top_cfg) == 136 + 24 * BL_TOP_RULES + 4 * BL_TOP_O_COUNT &&
		       BL_TOP_O_COUNT % 2 == 0,
	       "ABI");

/**
 * struct bl_top_key - a flow; IPv4 addresses as ::ffff:a.b.c.d. Ports in network order, 0 where
 * there are none.
 */
struct bl_top_key {
	__u8 saddr[16];
	__u8 daddr[16];
	__be16 sport;
	__be16 dport;
	__u8 proto;
	__u8 v6;
	__u8 zero[2];
} __attribute__((aligned(8))); /* compared in whole words */
_Static_assert(sizeof(struct bl_top_key) == 40, "ABI");

/**
 * struct bl_top_hint - what an application says about a flow of its own; in the place that its key
 * hashes to, where it stays until another flow wants that place.
 * @seq: odd while it is written. Writers take it from even to odd by compare-and-swap; a reader
 * that finds it odd, or changed, has no hint.
 * @bytes: 0: not known. @deadline_us: until it shall be done, from its first frame on; 0: none.
 * @coflow: 0: none. @flags: BL_TOP_F_*.
 */
struct bl_top_hint {
	__u32 seq;
	__u32 deadline_us;
	__u64 bytes;
	__u32 coflow;
	__u32 flags;
	struct bl_top_key key;
};
_Static_assert(sizeof(struct bl_top_hint) == 64, "ABI");

/*
 * FREE: no flow. IDLE: holds nothing that the receiver knows of. ASKING: holds frames; SYNCs are
 * sent. CREDITED: tokens come. OUTSIDE: none ever did; frames go at once.
 */
enum bl_top_state { BL_TOP_FREE, BL_TOP_IDLE, BL_TOP_ASKING, BL_TOP_CREDITED, BL_TOP_OUTSIDE };

/**
 * struct bl_top_tx - a flow that this host sends. All of it under @lock, which its three writers
 *take: bl_hold_xdp, bl_host_xdp (tokens), the pacer (SYNC, FIN, end).
 * @state: enum bl_top_state. @tag: as in struct bl_top_hdr. @sig: number of the last SYNC, FIN or
 *STOP.
 * @seq: highest token that was believed; 0: none. @seen: bit k: number @seq - k was.
 * @tries: SYNCs since the last token. @wasted_run: tokens since the last one that found a frame.
 * @keep: 1: its data frames have numbers, and are kept until they have come. @data: the last
 *number; taken by atomic addition, without the lock, and never set back: what an earlier flow by
 *the same number left behind is told from what this one sends. @told: of which the last SYNC or
 *STOP spoke. @acked: all up to here came, or the receiver has given them up. @loss: number of the
 *last LOSS;
 *	@loss_ns: when one came that missed something; @rtt_us: of which the last one spoke; 0: none
 *came.
 * @port: UDP source port. @unsched: frames that may still go without a token. @mac: next hop.
 * @bytes, @deadline_us, @coflow: hints. @began_ns, @frame_ns, @sync_ns, @token_ns: CLOCK_MONOTONIC
 *of its first and last frame, last SYNC and last token.
 * @frames, @sent_bytes: held so far. @tokens: answered. @wasted, @expired, @refused: tokens that
 *were not. @syncs, @stops. @unscheduled: frames that went without. @paced: answers that the pacer
 *sent, since the token's frame could not grow. @resent: answers with a frame that had been sent
 *before. @asked: frames that LOSS asked for; @gone: and that were not kept any more. These three
 *are added to by atomic operations, without the lock.
 */
struct bl_top_tx {
	struct bpf_spin_lock lock;
	__u32 state;
	__u32 tag;
	__u32 sig;
	__u32 seq;
	__u32 tries;
	__u32 wasted_run;
	__u32 deadline_us;
	__u64 seen;
	__u64 bytes;
	__u32 coflow;
	__be16 port;
	__u8 mac[6];
	__u32 unsched;
	struct bl_top_key key;
	__u64 began_ns;
	__u64 frame_ns;
	__u64 sync_ns;
	__u64 token_ns;
	__u64 frames;
	__u64 sent_bytes;
	__u64 tokens;
	__u64 wasted;
	__u64 expired;
	__u64 refused;
	__u64 syncs;
	__u64 stops;
	__u64 unscheduled;
	__u64 paced;
	__u32 keep;
	__u32 data;
	__u32 told;
	__u32 acked;
	__u32 loss;
	__u32 rtt_us;
	__u64 loss_ns;
	__u64 resent;
	__u64 asked;
	__u64 gone;
};
_Static_assert(sizeof(struct bl_top_tx) == 272, "ABI");

/**
 * struct bl_top_kept - frames of a flow that were sent and may have to be sent again; number d in
 *place d & (BL_TOP_KEEP - 1). No lock: who changes a word from what it was to 0, by
 *compare-and-swap, owns the slot, and gives it back or returns the word.
 * @word: number << 32 | BL_RING_ENTRY of its slot, whose length is that without the echo; 0:
 *nothing. Put there by who sent it, taken by a LOSS that says it came, by a newer frame, by who
 *sends it again and by the flow's end.
 * @at: when it was last sent, 1024 ns each; bit 0: that was not the first time. Written before
 *@word; an old value, where two write it, costs a frame too many or an RTT.
 * @marked: bit: the frame in this place is missing: the next token is for it. @push: the pacer
 *shall send it: its token's frame could not grow. Changed by atomic operations.
 */
struct bl_top_kept {
	__u64 marked;
	__u64 push;
	__u64 word[BL_TOP_KEEP];
	__u32 at[BL_TOP_KEEP];
};
_Static_assert(sizeof(struct bl_top_kept) == 16 + 12 * BL_TOP_KEEP && BL_TOP_KEEP == 64, "ABI");

/** struct bl_top_rx_key - who sends. @flow: host order. */
struct bl_top_rx_key {
	__u8 addr[16];
	__u32 flow;
};

/*
 * Of an inbound flow. FREE: no flow. STOPPED: the sender holds nothing; rate and bytes are
 * remembered. OPEN: gets tokens.
 */
enum bl_top_rx_state { BL_TOP_RX_FREE, BL_TOP_RX_STOPPED, BL_TOP_RX_OPEN };

/**
 * struct bl_top_came - which of a flow's numbered data frames came.
 * @data: highest number that came, or that the sender spoke of; 0: none so far. @got: bit k: number
 *@data - k came, or is not waited for.
 * @report_ns: when the pacer shall send a LOSS; BL_DUE_NEVER: there is nothing to say. @again_ns:
 *when all that is missing up to @mark is to be reported, once more if it was before; BL_DUE_NEVER:
 *nothing is missing. @since_ns: when something began to be missing, or last came after all.
 * @told: number up to which the last LOSS spoke. @seq: its own number. @tries: how often @again_ns
 *has passed since @since_ns.
 * @lost: numbers given up. @repeated: frames that came again. @losses: LOSS sent that missed
 *something.
 */
struct bl_top_came {
	__u64 got;
	__u64 report_ns;
	__u64 again_ns;
	__u64 since_ns;
	__u32 data;
	__u32 mark;
	__u32 told;
	__u32 seq;
	__u32 tries;
	__u32 reserved;
	__u64 lost;
	__u64 repeated;
	__u64 losses;
};
_Static_assert(sizeof(struct bl_top_came) == 80, "ABI");

/**
 * struct bl_top_rx - a flow that this host receives. Under @lock, which bl_host_xdp (SYNC, data)
 * and the pacer (tokens, end) take; the pacer's choice reads without it, and what it chose it looks
 * at again under it.
 * @state: enum bl_top_rx_state. @tag. @sig: number of the last signal. @who: the sender.
 * @seq: tokens sent. @echo: highest one that was answered. @forgiven: tokens up to here are not
 * missed: they were under way when the sender had nothing.
 * @total, @dropped: tokens that were answered or passed over since the last feedback; and those
 * that were not answered.
 * @rate, @weight: of BL_TOP_ONE. @grew: 1: the last feedback raised the rate.
 * @rtt_ns: smoothed; 0: not known. @probe: a token whose answer is timed; @probe_ns: when it was
 * sent; 0: none. @update_ns: last feedback.
 * @next_ns: no token before that. @heard_ns: last frame of the sender.
 * @bytes, @deadline_ns, @coflow: as the sender said; @deadline_ns: CLOCK_MONOTONIC, 0: none.
 * @served: bytes that came. @waiting: frames that the last SYNC spoke of.
 * @self: this host's address, as the sender has it. @mac: next hop to it. @port: UDP source port.
 * @v6.
 * @frames: that came. @lost: tokens without an answer, all told. @late: frames whose token counted
 * as lost. @syncs. @feedbacks.
 * @came: its data by numbers.
 * @counted: bytes of it in its coflow's sum: not @bytes, which may be told later or never.
 */
struct bl_top_rx {
	struct bpf_spin_lock lock;
	__u32 state;
	__u32 tag;
	__u32 sig;
	__u32 seq;
	__u32 echo;
	__u32 forgiven;
	__u32 total;
	__u32 dropped;
	__u32 rate;
	__u32 weight;
	__u32 grew;
	__u32 probe;
	__u32 waiting;
	__u64 rtt_ns;
	__u64 probe_ns;
	__u64 update_ns;
	__u64 next_ns;
	__u64 heard_ns;
	__u64 bytes;
	__u64 deadline_ns;
	__u64 served;
	__u32 coflow;
	struct bl_top_rx_key who;
	__u8 self[16];
	__u8 mac[6];
	__be16 port;
	__u32 v6;
	__u32 cls;
	__u64 frames;
	__u64 lost;
	__u64 late;
	__u64 syncs;
	__u64 feedbacks;
	struct bl_top_came came;
	__u64 counted;
};
_Static_assert(sizeof(struct bl_top_rx) == 304, "ABI");

/**
 * struct bl_top_coflow - flows that end here and belong together. @bytes: sum of their sizes.
 * @served: bytes that came. @flows: that have a place. Changed by atomic operations.
 */
struct bl_top_coflow {
	__u64 bytes;
	__u64 served;
	__u64 flows;
};

/**
 * struct bl_top_page - value 0 of "top_page": the receiver's side of the pacer.
 * @at: when it has something to send, as bl_due.at (queue_abi.h). @free_ns: when the next token may
 *go; the pacer's.
 * @used: bit i: place i of "top_rx" is taken. Set by bl_host_xdp, cleared by the pacer, atomically.
 * @last: place that got the last token. @random: state of the jitter's generator, never 0. The
 *pacer's.
 * @tokens: sent, by class. @no_clock: times that a token could not be sent, since the clock is
 *void. @gone: flows that were not heard of any more. @freed: numbers that idle flows gave back.
 * @kept: frames in all of "top_kept". Changed by atomic operations.
 * @limit: thresholds of classes as bl_top_cfg.limit, learnt by the daemon from @sizes; the first
 *one is 0 while there are none. Read if bl_top_cfg.learn is 1; written word by word.
 * @sizes: flows that came in and have ended, by what was received of them (bl_top_bucket()); only
 *ever grows. The pacer's.
 */
struct bl_top_page {
	__u64 at;
	__u64 free_ns;
	__u64 used[BL_TOP_RX_WORDS];
	__u32 last;
	__u32 random;
	__u64 tokens[BL_TOP_CLASSES];
	__u64 no_clock;
	__u64 gone;
	__u64 freed;
	__u64 kept;
	__u64 limit[BL_TOP_CLASSES - 1];
	__u64 sizes[BL_TOP_SIZES];
};
_Static_assert(sizeof(struct bl_top_page) == 176 + 8 * BL_TOP_SIZES, "ABI");

#endif
