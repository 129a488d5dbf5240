/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of an endpoint, and the way of a message through the library:
 *
 *   send      send.c      bl_send(), bl_send_reliable(): arguments checked
 *             stage.c     best effort: the message is appended to its destination's stage
 *             tx.c        flush: once the windows of all staged destinations are open, the endpoint
 *                         goes in flight, all stages get one timestamp and leave in one sendmmsg()
 *                         (batch.c), and the endpoint leaves flight; FRAGs of large messages go
 *                         first
 *             rstage.c    reliable: staged alike
 *             rtx.c       windows, slots, retransmission; open.c asks for windows
 *   network               egress program of the host, switches, XDP program of the receiver
 *   ring      dispatch.c  barriers read, ring emptied, each record passed to its handler
 *   receive   rx.c        best effort: sequence numbers, reorder queue, delivery below the barrier
 *             credit.c    CREDITs and NAKs back to the senders
 *             rrx.c       reliable: which frames are accepted; prepared.c: they wait for the commit
 *                         barrier, and are delivered
 *   failures  failures.c  announcements in the page of the daemon; discard.c: Discard;
 *                         recall.c: Recall and Callback; forward.c: frames by way of the controller
 *   members   presence.c  which peers can be reached; ask.c: bl_peer_wait(), and asking those that
 *                         cannot
 *   figures   figures.c what others may know of all this (barline metrics, barline trace)
 *   calls     work.c      what is due; wait.c: bl_recv(), bl_process(), bl_wait(); wake.c: sleeping
 *   away      helper.c    a thread that stands in for the application: away.c, shelf.c, lock.c
 *   daemon    attach.c    bl_init(), bl_exit(), leave.c; again.c: the next daemon
 *
 * A file uses only files below it: no two files call each other. Each file has a header of its own;
 * this one has the data. One struct bl_peer per remote endpoint holds both directions of both
 * streams.
 *
 * Protection: an endpoint belongs to one thread at a time, or to the helper thread under its lock
 * (lock.h). Shared pages are written by the party that is named at the field.
 *
 * Times are CLOCK_MONOTONIC in ns unless the comment says timestamp, which is bus time in ns.
 */
#ifndef BARLINE_INTERNAL_H
#define BARLINE_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/commit_core.h"
#include "core/order/promise_core.h"
#include "maps/failure_abi.h"
#include "maps/host_abi.h"
#include "barline.h"
#include "body_core.h"
#include "forward_core.h"
#include "nic_core.h"
#include "parts_core.h"
#include "patience_core.h"
#include "place_core.h"
#include "answers_core.h"
#include "reorder.h"
#include "rto_core.h"
#include "seq_core.h"

#define BL_WINDOW_FIRST 4 /* frames that a sender may send before the first CREDIT */
#define BL_WINDOW_MAX   256
/*
 * Frames that data may take of the 256 places in the ring of a veth or a plain NIC. The other
 * places are for CREDITs, beacons and the other stream.
 */
#define BL_NIC_FRAMES 224
/* Frames of the reliable stream that one sender can have outstanding; see rrx.c. */
#define BL_RELIABLE_MAX (BL_WINDOW_MAX + BL_STAGE_FRAMES)
/*
 * Frames in a stage: 44 * 1472 bytes stay below the 64 KiB of one UDP GSO send, and below the 64
 * segments that all kernels accept.
 */
#define BL_STAGE_FRAMES  44
#define BL_RTO_NS        25000000ULL  /* silence until the first PROBE or the second OPEN */
#define BL_RTO_MAX_NS    400000000ULL /* longest time between two PROBEs or OPENs */
#define BL_PROBES_MAX    8 /* PROBEs without an answer, about 2 s: the destination is unreachable */
#define BL_DAEMON_WAIT_S 5 /* how long bl_init() and others wait for the daemon to answer */
#define BL_GONE_LIVES    8 /* failed processes of one port whose late frames are refused */
/*
 * A destination that was found unreachable is asked again after BL_RETRY_NS, then after twice that
 * time, up to BL_RETRY_MAX_NS. When the application sends there, it is asked at once, but not
 * within BL_RETRY_MIN_NS of the last time. After BL_RETRIES_MAX times, five minutes, it is asked
 * only when the application sends there.
 */
#define BL_RETRY_NS     1000000000ULL
#define BL_RETRY_MAX_NS 16000000000ULL
#define BL_RETRY_MIN_NS BL_RTO_MAX_NS
#define BL_RETRIES_MAX  24
#define BL_BIG_MAX      (4u << 20) /* bytes of large messages that one sender may have ahead */
/*
 * Number of large messages that one sender may have ahead: 8192 of 512 bytes, which are large where
 * the MTU is 576, and what a window may hold besides.
 */
#define BL_BIGS_MAX 9216u
/*
 * The limit of BL_BIG_MAX in the reliable stream, where nothing that was acknowledged may be
 * refused. A sender that keeps the rules stays below it: from BL_BIG_MAX on, no part's buffer is
 * free before its message is delivered. So at most these come on top: the message that crosses
 * BL_BIG_MAX, 300 parts (rrx.c) of 9176 bytes, and one message each that the first and the last of
 * those parts belong to; 9.7 MiB in all.
 */
#define BL_RBIG_MAX (16u << 20)
/*
 * What all remote endpoints together can make this endpoint hold. BL_MEMORY_MAX is the sum, and
 * bl_get_stats() shows it. Best-effort frames get half of the buffers, so that they cannot take the
 * memory of reliable frames, which may not be refused. Of reliable large messages 170 senders that
 * keep the rules fit at 6 MiB each (BL_BIG_MAX and what may come on top with an MTU of 1500).
 */
#define BL_BUFS_MAX      (256u << 20) /* bytes in buffers of received frames */
#define BL_BIGS_MAX_ALL  (64u << 20)  /* bytes of large messages, best effort */
#define BL_BIGS_STRANGE  (16u << 20)  /* of these, of strangers */
#define BL_BIGS_STRANGER 64u          /* number of them, of one stranger */
#define BL_RBIGS_MAX     (1u << 30)   /* bytes of large messages, reliable */
#define BL_PEERS_MAX     8192         /* peers, but for those that the application sends to */
#define BL_STRANGERS     64           /* peers that have proved nothing (proof.h) */
#define BL_BUFS_KEEP     (8u << 20)   /* bytes of buffers that are kept when nothing needs them */
#define BL_MEMORY_MAX                                                                \
	((uint64_t)BL_BUFS_MAX + BL_BIGS_MAX_ALL + BL_RBIGS_MAX + 2 * BL_BUFS_KEEP + \
	 BL_PEERS_MAX * (sizeof(struct bl_peer) + 4 * sizeof(void *)))

#define BL_CHUNK        64            /* messages in a chunk of a shelf */
#define BL_SHELF_FRAME  2048          /* bytes that a queued frame counts on a shelf */
#define BL_HELPER_BYTES (64ULL << 20) /* default of bl_helper_start()'s @bytes */

/* What epoll_event.data.u32 of an event of ep->epfd says. */
enum { BL_EV_RING, BL_EV_TIMER, BL_EV_DAEMON };

struct bl_helper; /* lock.h */
struct bl_peer;

/* ---- memory of received messages ---- */

/* A received frame that waits for its turn, or is lent to the application. */
struct bl_buf {
	struct bl_rq_frame rq; /* must be first: the queue hands it back */
	struct bl_buf *free_next;
	struct bl_peer *peer; /* sender */
	uint32_t len;         /* bytes of @body in use */
	uint32_t room;        /* bytes of @body */
	uint32_t at;          /* when it was stored, as in struct bl_rec; 0: not measured */
	uint16_t life;        /* reliable: incarnation of the sender */
	uint8_t body[];
};

/* A large message on its way in (rx, rrx) or out (tx). */
struct bl_big {
	struct bl_big *next;
	uint32_t id;                    /* number of the message, per destination */
	uint32_t total;                 /* bytes of the message */
	uint32_t room;                  /* best effort, receiving: bytes that @data has room for */
	uint32_t done;                  /* bytes that were received or sent */
	bool broken;                    /* it will not be delivered */
	uint8_t why;                    /* enum bl_nak_why, if @broken */
	uint16_t life;                  /* reliable: incarnation of the sender */
	uint64_t ts;                    /* reliable: timestamp */
	bool kept;                      /* reliable: buffers of some parts are freed at delivery */
	uint32_t kept_first, kept_last; /* lowest and highest number of these parts, if @kept */
	/*
	 * The message. Reliable, receiving: followed, at the next multiple of 8, by a bit for each
	 * byte that has come (parts_core.h).
	 */
	_Alignas(8) uint8_t data[];
};

/* Memory that one stream has lent to the application until its next call for that stream. */
struct bl_lent {
	struct bl_buf *bufs;
	struct bl_big *bigs;
};

/* A message on a shelf (shelf.c). */
struct bl_shelved {
	struct bl_delivery d;
	struct bl_peer *peer; /* best effort: sender */
	uint32_t psn;         /* best effort: number of the frame */
	uint8_t item;         /* best effort: index of the message in the frame */
};

/* Messages @at to @n - 1 of a shelf, and the memory that they lie in. */
struct bl_chunk {
	struct bl_chunk *next;
	uint32_t at, n;
	uint64_t bytes; /* memory of the chunk and of @lent */
	struct bl_lent lent;
	struct bl_shelved m[BL_CHUNK];
};

/* The messages of one stream that the helper has taken out, in order. */
struct bl_shelf {
	struct bl_chunk *head, *tail;
	uint32_t messages;
};

/* ---- best effort, one peer ---- */

/* What was sent in a frame, for the send_fail callback. */
struct bl_sent {
	uint64_t ts;
	uint32_t psn;
	uint32_t count; /* messages; 0: reported */
	uint64_t cookie[BL_ITEMS_MAX];
};

/* Sending side. */
struct bl_tx {
	uint8_t *stage;    /* BL_STAGE_FRAMES frames of ep->frame_max bytes, back to back */
	uint32_t nframes;  /* frames begun in the stage */
	uint32_t fill;     /* bytes in the last one, struct bl_hdr included */
	uint32_t count;    /* items in the last one */
	uint64_t *cookies; /* BL_STAGE_FRAMES * BL_ITEMS_MAX; NULL without a send_fail callback */
	uint32_t next_psn; /* number of the next frame */
	/*
	 * Every frame before this one has left the receiver's buffers. Set by CREDITs and by
	 * nothing else (place_core.h).
	 */
	uint32_t credited;
	uint32_t window;                /* frames that may be outstanding, by the last CREDIT */
	uint32_t next_big;              /* number of the next large message */
	struct bl_big *big, **big_tail; /* large messages that were not sent in full */
	struct bl_sent *sent;           /* BL_WINDOW_MAX * 2; NULL without a send_fail callback */
	uint64_t progress_ns; /* last CREDIT or PROBE, or first frame after none was outstanding */
	uint64_t rto_ns;      /* silence until the next PROBE */
	uint64_t cookie;      /* last challenge of the receiver; 0: none has come */
	uint32_t probes;      /* PROBEs since the last CREDIT */
	struct bl_patience patience;
	bool dead;     /* unreachable: sends fail at once until it answers a PROBE */
	uint64_t mark; /* ep->mark of the bl_send() that touched the stage last */
	bool dirty;    /* linked in ep->dirty */
	bool alone;    /* the stage holds only what the bl_send() of @mark put there */
};

/* Receiving side. */
struct bl_rx {
	bool known;           /* a frame of it has come */
	bool counted;         /* in ep->nsenders */
	bool greeted;         /* a CREDIT was sent to it */
	uint16_t incarnation; /* of the sender */
	uint32_t expected;    /* number of the next frame */
	struct bl_odd odd;
	/* Another life claims to be there: since when, unless a frame has fitted since. */
	uint16_t claim;
	uint64_t claim_ns;      /* 0: none does */
	uint32_t credit_psn;    /* number in the last CREDIT */
	uint32_t credit_window; /* window in the last CREDIT */
	bool credit_due;        /* linked in ep->credits */
	bool credit_now;        /* a CREDIT is sent however little it says */
	struct bl_big *big;     /* large messages, in the order of their numbers */
	uint32_t big_bytes, nbigs;
	uint32_t big_room; /* bytes that were allocated for them */
};

/* ---- reliable, one peer ---- */

/* A PREP frame: staged, or in the window, kept until its scattering is acknowledged. */
struct bl_rframe {
	struct bl_rframe *next;
	struct bl_peer *peer;
	uint64_t ts;       /* timestamp; 0: staged */
	uint64_t sent_ns;  /* last sent */
	uint64_t first_ns; /* first sent */
	uint64_t fwd_ns;   /* last given to the controller; 0: never */
	uint32_t psn;
	uint32_t len;   /* bytes of @data */
	uint32_t tries; /* times it was sent */
	uint32_t count; /* items; 0: a part of a large message, or already reported */
	bool aborted;   /* it is being recalled */
	uint64_t cookie[BL_ITEMS_MAX];
	uint8_t data[]; /* from struct bl_hdr on */
};

struct bl_rlist {
	struct bl_rframe *head, *tail;
	uint32_t n;
};

/* Sending side. */
struct bl_rtx {
	bool open;     /* the destination has told its window */
	bool dirty;    /* linked in ep->rdirty */
	bool alone;    /* the stage holds only what the last bl_send_reliable() put there */
	bool failed;   /* @life was announced as failed: its window no longer counts */
	uint16_t life; /* incarnation of the destination, if it was ever open */
	struct bl_rlist parts, items; /* staged frames; parts leave first */
	uint32_t fill;                /* bytes in the last frame of @items */
	uint32_t next_psn, next_big;
	uint32_t credited; /* every frame before this one has left the receiver's buffers */
	uint32_t window;   /* frames that may be outstanding */
	uint32_t unacked;  /* frames in the window that are not acknowledged */
	uint64_t least_ts; /* no message to it is earlier: C before it waited for this host */
	uint64_t used_ns;  /* when a frame was put into the window last */
	struct bl_rto rto;
	struct bl_patience patience;  /* with answers to OPENs */
	uint64_t ask_ns;              /* when the next OPEN is due; 0: none is needed */
	uint32_t asks;                /* OPENs without an answer */
	uint32_t asked_psn;           /* @next_psn at the last OPEN */
	bool dead;                    /* unreachable: sends fail at once until it answers an OPEN */
	uint32_t retries;             /* OPENs since it is @dead */
	uint64_t retry_ns;            /* last of them */
	uint32_t gone[BL_GONE_LIVES]; /* lives that were announced as failed, each + 1; 0: none */
	uint32_t next_gone;           /* next place in @gone, modulo BL_GONE_LIVES */
	/* ep->fail_begun when @life was first heard of: announcements of its predecessors */
	uint64_t born;
	/* Plan of the bl_send_reliable() with ep->mark == @mark: the stage as it would become. */
	uint64_t mark;
	uint32_t plan_frames, plan_fill, plan_count;
};

/* Where the sequence numbers of a sender are. */
struct bl_rplace {
	bool known;
	bool proven; /* a PREP came from there, not only an OPEN */
	bool sure;   /* its sender has answered a challenge there */
	uint16_t incarnation;
	uint32_t came; /* one above the highest number that is known to have been sent */
	struct bl_seq seq;
};

/* Frames that were recalled and that may still come. */
struct bl_recalled {
	struct bl_recalled *next;
	uint64_t ts;
	uint32_t psn, count;
	uint16_t life;
};

/* Receiving side. */
struct bl_rrx {
	bool known, proven, sure; /* the present place, as in struct bl_rplace */
	bool counted;             /* in ep->nsenders */
	uint16_t incarnation;
	uint32_t came;
	struct bl_seq seq;
	struct bl_rplace was; /* place before, since a forged frame may have led us here */
	struct bl_recalled *recalled;
	uint32_t nrecalled;   /* entries of @recalled, at most BL_RWIN */
	uint32_t said_psn;    /* number in the last WINDOW */
	uint32_t said_window; /* window in the last WINDOW */
	bool due;             /* linked in ep->windows */
	bool now;             /* a WINDOW is sent however little it says */
	bool asked;           /* a WINDOW is owed when all buffers before @asked_psn are free */
	uint32_t asked_psn;
	struct bl_big *big; /* large messages */
	uint32_t big_bytes, nbigs;
	bool gone; /* life @gone_life was announced as failed */
	uint16_t gone_life;
	uint64_t gone_ts; /* its T: what it sent from there on is not accepted */
};

/* A receiver that has to take frames of a scattering out again. */
struct bl_recalling {
	struct bl_recalling *next;
	struct bl_peer *peer;
	uint64_t ts;       /* timestamp of the scattering */
	uint64_t sent_ns;  /* last RECALL */
	uint64_t first_ns; /* first RECALL */
	uint32_t psn, count;
	uint32_t tries; /* RECALLs sent */
	bool done;      /* answered, or no answer is needed */
};

/* Whether a peer can be reached (presence.h). All 0: nobody wants to know. */
struct bl_presence {
	bool watched;       /* counted in ep->nwatched; the other members are valid */
	bool there;         /* it has answered, and was not lost since */
	bool lost;          /* it was lost since the application was told that it is there */
	bool told;          /* the application was told that it is there */
	bool met;           /* @life is valid */
	bool told_met;      /* @told_life is valid */
	bool asked;         /* in the list ep->absent */
	bool news;          /* in the list ep->news */
	uint16_t life;      /* incarnation that has answered last */
	uint16_t told_life; /* incarnation that the application was told of last */
	uint32_t asks;      /* OPENs since it was put into the list ep->absent */
	uint64_t asked_ns;  /* last of these OPENs; 0: none */
	uint64_t ask_ns;    /* when the next one is due */
	uint64_t heard_ns;  /* last answer; 0: none */
	struct bl_peer *asked_next, **asked_at; /* @asked_at: the pointer to this peer */
	struct bl_peer *news_next;
};

/* A remote endpoint; also the endpoint itself, if it sends to itself. */
struct bl_peer {
	struct bl_rq_sender rq;  /* key: ip, port in network order */
	struct bl_rq_sender rrq; /* the same in the reliable queue */
	struct bl_addr addr;
	struct sockaddr_storage sa;
	socklen_t sa_len;
	bool local;         /* on this host: frames leave by lo, without GSO */
	bool self;          /* this endpoint */
	bool ours;          /* the application has sent there */
	uint32_t stranger;  /* index in ep->strangers, plus 1; 0: it is none */
	__u64 fwd_until_ns; /* until then frames of the reliable stream may not pass (forward.c) */
	/*
	 * 0: a stranger. Else BL_PROVED | incarnation: this life has answered a challenge
	 * (proof.h).
	 */
	uint32_t proved;
	uint64_t heard;    /* ep->st.frames_received when its last frame came */
	uint64_t swept;    /* @heard at the last sweep (sweep.h) */
	uint64_t heard_ns; /* time of the last sweep before which a frame had come */
	uint64_t sent_ns;  /* time of the last sweep at which something was sent, or under way */
	uint32_t sent_psn; /* sum of the numbers of both streams at the last sweep */
	struct bl_tx tx;
	struct bl_rx rx;
	struct bl_rtx rtx;
	struct bl_rrx rrx;
	struct bl_presence presence;
	struct bl_peer *dirty_next, *rdirty_next;
	struct bl_peer *credit_next, *window_next;
	struct bl_peer *all_next, **all_at; /* @all_at: the pointer to this peer */
};
#define BL_PROVED (1u << 16)

/* ---- the endpoint ---- */

/* A stage as it was before a bl_send() that turned out not to fit. */
struct bl_undo {
	struct bl_peer *peer;
	uint32_t nframes, fill, count, next_big;
	struct bl_big **big_tail;
};

/* A failed message that bl_tx_report() will report. */
struct bl_failed {
	uint64_t ts, cookie;
	struct bl_addr dst;
	uint8_t why; /* enum bl_nak_why */
};

/*
 * What waits for room in the NIC's ring, each with a time of its own: what finds room says nothing
 * about what needs more of it.
 */
enum bl_nic_kind {
	BL_NIC_SCATTERING, /* best effort */
	BL_NIC_RELIABLE,   /* reliable scatterings */
	BL_NIC_SINGLE,     /* parts of large messages, retransmissions */
	BL_NIC_CONTROL,
	BL_NIC_KINDS
};

/* How long frames have been waiting because the others' words refuse them. */
struct bl_nic_wait {
	uint64_t since_ns; /* 0: they do not wait */
	uint64_t out;      /* frames that had left the ring then */
	uint64_t asked_ns; /* when @asks was counted last */
	uint32_t asks;     /* how often they found no room since */
};

/* What the endpoint knows of the NIC's ring that it shares with others of its host (nic.c). */
struct bl_nic {
	bool on;          /* there are others */
	bool parts_wait;  /* parts of large messages found no room */
	uint64_t queued;  /* our word queued, without the scattering that is being sent */
	uint64_t others;  /* sum of the others' words when they were read last, */
	uint64_t then;    /* and @queued at that time */
	uint64_t out;     /* our word out */
	uint64_t senders; /* senders of other hosts that have a window of ours */
	struct bl_nic_wait wait[BL_NIC_KINDS];
	struct bl_nic_calls calls;
	uint64_t distrust_ns; /* until then the others' words refuse nothing; 0: never */
	struct bl_nic_marks marks;
};

struct bl_endpoint {
	struct bl_addr self;
	uint32_t slot;      /* of this endpoint in the host's maps */
	uint32_t beacon_us; /* beacon interval */
	/* UDP ports of the rack's endpoints; a count of 0: not known, endpoints of a test */
	uint16_t port_base, port_count;
	uint16_t incarnation; /* of this endpoint, given by the daemon */
	pid_t pid;            /* process that the daemon knows; a child of fork() has another one */
	int sock;             /* UDP socket */
	int daemon;           /* connection to the daemon; -1: none */
	int fd[BL_FD_COUNT];  /* maps and pages, from the daemon; -1: none */
	int epfd, timerfd;
	uint32_t frame_max; /* UDP payload of a full frame in bytes: struct bl_hdr and body */
	uint32_t ring_bytes;
	uint32_t ring_frames; /* full frames that the ring holds */

	/* Shared pages. */
	struct bl_ep_page *mine;         /* ours; its parts: */
	struct bl_inflight *line;        /* written by us and by programs */
	struct bl_ep_wake *wake;         /* written by us and by programs */
	struct bl_figures *fig;          /* ours */
	struct bl_rwin *rwin;            /* written by us; the host's programs acknowledge slots */
	struct bl_hints *hints;          /* written by all endpoints of the host, and by programs */
	const struct bl_host_page *page; /* barriers; written by the host's programs and daemon */
	const struct bl_clock *clock;    /* written by the daemon */
	uint64_t *ring_cons;             /* ours */
	const uint64_t *ring_prod;       /* the kernel's */
	const uint8_t *ring_data;

	/* Peers: hash table with open addressing; the size is a power of two. */
	struct bl_peer **table;
	uint32_t table_size, npeers;
	uint32_t nsenders;     /* proved peers that have sent lately, counted per stream */
	struct bl_peer *peers; /* all of them */
	struct bl_peer *strangers[BL_STRANGERS];
	uint32_t nstrangers;
	/*
	 * The key of challenges and of first numbers, from bl_init(). 0: endpoints of a test, which
	 * take everybody for proved, and count from 0.
	 */
	uint64_t key[2];
	struct bl_answers quota; /* answers to what is not proved */
	uint64_t sweep_ns;       /* when the next sweep is due */
	uint32_t works;          /* calls of bl_work(), modulo 2^32 */

	/* Best effort, sending. */
	struct bl_peer *dirty; /* peers with something staged */
	uint64_t last_ts;      /* of the last scattering, of either stream */
	uint32_t staged_bytes; /* of large messages */
	uint32_t send_buffer;  /* limit of @staged_bytes */
	bool held;             /* something is staged that windows or a full NIC hold back */
	uint32_t flying;       /* frames to all others that are not credited */
	struct bl_nic nic;
	struct bl_undo *undo; /* stages that the present bl_send() has touched */
	uint32_t undo_n, undo_room;
	uint64_t mark;      /* counts bl_send() and bl_send_reliable() */
	uint8_t *frag_buf;  /* BL_STAGE_FRAMES frames */
	uint32_t gso_pause; /* sends that do not ask for UDP GSO, which was refused (batch.h) */
	bl_send_fail_fn on_fail;
	void *on_fail_ctx;
	struct bl_failed *failed; /* failures to be reported */
	uint32_t nfailed, failed_room;
	uint64_t timers_ns; /* when bl_tx_timers() has something to do; 0: never */

	/* Best effort, receiving. */
	struct bl_rq rq;
	uint64_t barrier; /* up to which the ring was emptied */
	struct bl_buf *free_small, *free_full, *free_jumbo, *free_huge;
	uint64_t buf_bytes;        /* of all buffers */
	uint64_t big_bytes;        /* of large messages that are being received, best effort */
	uint64_t strange_bytes;    /* of these, of strangers */
	uint64_t rbig_bytes;       /* the same, reliable */
	struct bl_lent lent;       /* by bl_recv() */
	struct bl_buf *cur;        /* partly delivered */
	struct bl_items cur_items; /* of @cur that were not delivered */
	uint32_t cur_index;        /* of the next item of @cur */
	struct bl_peer *credits;   /* senders that may need a CREDIT */

	/* Reliable, sending. */
	struct bl_rframe **rsent; /* BL_RWIN frames in the window; NULL before the first send */
	struct bl_rframe *rkept;  /* acknowledged, but their scattering is not */
	struct bl_rframe *rfree;
	uint32_t rfree_n;       /* frames in @rfree */
	uint32_t rstaged;       /* frames staged */
	uint32_t rtail;         /* frames that were ever put into the window */
	uint32_t rreaped;       /* frames that were ever taken out of it */
	struct bl_peer *rdirty; /* peers with something staged */
	uint64_t rts;           /* timestamp of the scattering that enters the window; 0: none */
	bool rheld;             /* something is staged */
	uint64_t turn_ns;       /* when the turn of our line was raised last */
	uint64_t rtimer_ns;     /* when bl_rtx_timers() has something to do; 0: never */
	uint32_t rdead;         /* peers with rtx.dead */

	/* Reliable, receiving. */
	bool reliable; /* the endpoint has used that stream */
	struct bl_rq rrq;
	uint64_t commit;      /* commit barrier up to which the ring was emptied */
	uint64_t commit_was;  /* @commit before the last bl_rx_drain() */
	struct bl_lent rlent; /* by bl_recv_reliable() */
	struct bl_buf *rcur;  /* partly delivered */
	struct bl_items rcur_items;
	struct bl_peer *windows; /* senders that may need a WINDOW */

	/* Failures. */
	const struct bl_failures *failures; /* written by the daemon */
	/* Announcements up to these numbers are handled, lack only their callbacks, are begun. */
	uint64_t fail_seen, fail_settled, fail_begun;
	struct bl_recalling *recalls;
	struct bl_failure fails[BL_FAILS_MAX]; /* copies of those that are being handled */
	bool recall_again;     /* more announcements, or no memory: run begin_recalls() again */
	bool rabort;           /* the scattering that enters the window is recalled */
	bool in_recall;        /* callbacks of announcements run */
	bool outcast;          /* announced as failed, expelled, or too far behind */
	bool daemon_gone;      /* no daemon serves us */
	bool asked;            /* the next daemon was asked to (again.c) */
	uint64_t again_ns;     /* no attempt to reconnect before this */
	char daemon_path[108]; /* socket of the daemon */
	bool put_out;          /* by the host's daemon: the shared pages are no longer ours */
	bool fails_end;        /* no later announcement counts: ours came, or some are lost */
	bool ended;            /* @commit does not change any more */
	bool undecided;        /* bl_recv_undecided() was called */
	struct bl_fwd_turn fwd;
	bl_proc_fail_fn on_proc_fail;
	void *on_proc_fail_ctx;
	bl_proc_gone_fn on_proc_gone;
	void *on_proc_gone_ctx;

	/* Members (presence.c, ask.c). */
	bl_peer_fn on_peer;
	void *on_peer_ctx;
	uint32_t nwatched;                     /* peers with presence.watched */
	uint32_t nasked;                       /* peers in the list @absent */
	struct bl_peer *absent, **absent_tail; /* those that are asked, longest ago first */
	struct bl_peer *news;                  /* those about which there may be an event */
	uint64_t ask_ns;                /* when bl_ask_timers() has something to do; 0: never */
	__u64 ask_spent_ns;             /* quota of OPENs (core/quota_core.h) */
	const struct bl_addr *wait_for; /* bl_peer_wait() waits for that peer; NULL: for none */
	uint64_t wait_since_ns;         /* its answer counts from then on */

	/* The helper thread, and what it took out (helper.c, shelf.c). */
	struct bl_helper *helper; /* NULL: none */
	int helper_stop;          /* eventfd that ends the thread */
	int helper_epfd;
	bool by_helper; /* the helper works now, or did so in the parent at the time of fork() */
	bool raised;    /* the helper has made bl_fd() readable */
	struct bl_shelf shelf, rshelf;
	uint64_t shelf_bytes; /* of both shelves */
	uint64_t shelf_max;   /* limit for them and for what waits in the queues */

	/* Figures (figures.c). */
	uint32_t fig_calls;   /* calls, modulo 2^32 */
	uint32_t fig_recv;    /* of these, calls that delivered and did not follow a sleep */
	bool fig_slept;       /* the process may have slept since a delivery was measured */
	uint32_t arrived;     /* struct bl_rec.at of the frame that is handled */
	uint64_t fig_hold_ts; /* timestamp of the last frame whose @fig_hold_ns was measured */
	uint64_t fig_hold_ns; /* from the ring to its delivery */

	struct bl_stats st;
	char error[192]; /* for bl_strerror() */
};

/** bl_mono - CLOCK_MONOTONIC now, ns. */
static inline uint64_t bl_mono(void)
{
	return bl_mono_ns();
}

/** bl_window_room - free slots of the reliable window. */
static inline uint32_t bl_window_room(const struct bl_endpoint *ep)
{
	return BL_RWIN - (ep->rtail - ep->rreaped);
}

/**
 * bl_is_out - whether the daemon has put this endpoint out (struct bl_ep_word, @out). Asked before
 * the line or the window is touched, and again after the barriers were read and before anything is
 * delivered by them: while it is not set, the commit barrier has not passed T.
 */
static inline bool bl_is_out(struct bl_endpoint *ep)
{
	if (!ep->put_out && ep->page &&
	    __atomic_load_n(&ep->page->word[ep->slot].out, __ATOMIC_ACQUIRE))
		ep->put_out = ep->outcast = true;
	return ep->put_out;
}

#endif
