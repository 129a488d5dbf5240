/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside libbarline: how a message flows.
 *
 *   bl_send   tx.c   item appended to the destination's stage (frames laid out as UDP GSO wants
 * them); large messages go ahead as FRAGs flush     tx.c   once every staged destination's window
 * is open: in-flight on, one timestamp into all stages, one sendmmsg, in-flight off kernel egress
 * program, switches, the receiver's XDP program: into its ring drain     rx.c   barrier read, ring
 * emptied into the reorder queue; credits, NAKs and probes handled bl_recv   rx.c   frames below
 * the barrier popped in order, their items handed out; credits returned reliable  rstage.c staged
 * like bl_send's; rtx.c: windows, slots and retransmission; rrx.c: prepared frames until the commit
 * barrier has passed them daemon    attach.c registers; again.c does so with the next one failures
 * recall.c announcements: what is discarded, taken back, reported; forward.c: by way of the
 * controller, where frames do not pass sleeping  wait.c armed in the wake page, woken by the XDP
 * program through the ring's wait queue away      helper.c a thread that does what others wait for
 * while the application does not call; shelf.c what it took out
 *
 * One struct bl_peer per remote endpoint holds both directions.
 */
#ifndef BARLINE_INTERNAL_H
#define BARLINE_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "core/clock_core.h"
#include "core/order/promise_core.h"
#include "core/order/commit_core.h"
#include "maps/failure_abi.h"
#include "maps/host_abi.h"
#include "barline.h"
#include "body_core.h"
#include "forward_core.h"
#include "nic_core.h"
#include "parts_core.h"
#include "patience_core.h"
#include "place_core.h"
#include "reorder.h"
#include "rto_core.h"
#include "seq_core.h"

#define BL_WINDOW_FIRST 4 /* frames that a sender may send before the first CREDIT */
#define BL_WINDOW_MAX   256
/*
 * of the 256 places in the ring of a veth, or of a plain NIC: the others are for credits, beacons,
 * the other stream
 */
#define BL_NIC_FRAMES   224
#define BL_RELIABLE_MAX (BL_WINDOW_MAX + BL_STAGE_FRAMES) /* see lib/rrx.c */
/*
 * 44 * 1472 bytes stay below the 64 KiB of one UDP GSO send, and the 64 segments that all kernels
 * take
 */
#define BL_STAGE_FRAMES  44
#define BL_RTO_NS        25000000ULL
#define BL_RTO_MAX_NS    400000000ULL
#define BL_PROBES_MAX    8 /* about 2 s of silence: unreachable */
#define BL_DAEMON_WAIT_S 5 /* bl_init(), bl_flow_hint(): for the daemon's answer */
/* of one port: what is on its way from earlier ones is not believed */
#define BL_GONE_LIVES 8
/* who was found unreachable is asked again after so long, then after twice that, */
#define BL_RETRY_NS 1000000000ULL
/* up to this; and when something is to be sent there, but not before */
#define BL_RETRY_MAX_NS 16000000000ULL
#define BL_RETRY_MIN_NS BL_RTO_MAX_NS /* this has passed since the last time. */
/* So often by itself, for five minutes; then only when something is to be sent */
#define BL_RETRIES_MAX 24
enum { BL_EV_RING, BL_EV_TIMER, BL_EV_DAEMON }; /* what an event of ep->epfd says */
#define BL_BIG_MAX (4u << 20) /* bytes of large messages that one sender may have ahead */
/*
 * messages that they may be: 8192 of 512 bytes, which are large where the MTU is 576, and what a
 * window may hold besides
 */
#define BL_BIGS_MAX 9216u
/*
 * The same bytes in the reliable stream, where nothing that was acknowledged may be refused: a
 * sender that keeps the rules stays below this. From BL_BIG_MAX on no part's number is free before
 * its message is delivered, so at most the message that crosses that limit, 300 parts (rrx.c) of
 * 3544 bytes and one message each that the first and the last of them belong to come on top: 8.1
 * MiB.
 */
#define BL_RBIG_MAX (16u << 20)

/* a received frame, waiting for its turn */
struct bl_buf {
	struct bl_rq_frame rq; /* first: the queue hands it back */
	struct bl_buf *free_next;
	struct bl_peer *peer;
	uint32_t len;
	uint32_t room;
	uint16_t life; /* reliable: incarnation of the sender */
	uint8_t body[];
};

/* a large message on its way in (rx) or out (tx) */
struct bl_big {
	struct bl_big *next;
	uint32_t id, total, done;
	bool broken;
	uint8_t why; /* enum bl_nak_why, if broken */
	/* reliable */
	uint16_t life;
	uint64_t ts;
	/*
	 * there are parts whose credit waits until the message is delivered, from this psn to that
	 */
	bool kept;
	uint32_t kept_first, kept_last;
	/*
	 * reliable, receiving: then which of it has come (parts_core.h), from the next multiple of
	 * 8 on
	 */
	_Alignas(8) uint8_t data[];
};

/*
 * what one stream has delivered and the caller may still read, until it asks that stream for more
 */
struct bl_lent {
	struct bl_buf *bufs;
	struct bl_big *bigs;
};

/* a message on the shelf (shelf.c); best effort: and which one of which frame it was */
struct bl_shelved {
	struct bl_delivery d;
	struct bl_peer *peer;
	uint32_t psn;
	uint8_t item;
};

#define BL_CHUNK        64
#define BL_SHELF_FRAME  2048          /* what a frame that waits for its turn counts */
#define BL_HELPER_BYTES (64ULL << 20) /* on the shelf, unless bl_helper_start() says otherwise */

/* messages from @at to @n - 1, and the memory that they lie in */
struct bl_chunk {
	struct bl_chunk *next;
	uint32_t at, n;
	uint64_t bytes;
	struct bl_lent lent;
	struct bl_shelved m[BL_CHUNK];
};

struct bl_shelf {
	struct bl_chunk *head, *tail;
	uint32_t messages;
};

/* what was sent in a frame, for the send_fail callback */
struct bl_sent {
	uint64_t ts;
	uint32_t psn;
	uint32_t count;
	uint64_t cookie[BL_ITEMS_MAX];
};

/* sending side of a peer */
struct bl_tx {
	uint8_t *stage;    /* BL_STAGE_FRAMES frames of ep->frame_max bytes, back to back */
	uint32_t nframes;  /* frames begun in the stage */
	uint32_t fill;     /* bytes in the last one, struct bl_hdr included */
	uint32_t count;    /* items in the last one */
	uint64_t *cookies; /* BL_STAGE_FRAMES * BL_ITEMS_MAX, only with a send_fail callback */
	uint32_t next_psn;
	/*
	 * every frame before it has left the receiver's buffers: by the last CREDIT, and by nothing
	 * else (place_core.h)
	 */
	uint32_t credited;
	uint32_t window;
	uint32_t next_big;
	struct bl_big *big, **big_tail; /* not yet sent in full */
	struct bl_sent *sent;           /* BL_WINDOW_MAX * 2 */
	/* CLOCK_MONOTONIC of the last credit, or of the first frame after none was outstanding */
	uint64_t progress_ns;
	uint64_t rto_ns;
	uint32_t probes;
	struct bl_patience patience;
	/* it was found unreachable: sends fail at once until it answers a PROBE */
	bool dead;
	uint64_t mark; /* of the bl_send() that touched the stage last */
	bool dirty;    /* in ep->dirty */
	/* the stage holds nothing but what that bl_send() put there */
	bool alone;
};

/* receiving side of a peer */
struct bl_rx {
	bool known;
	uint16_t incarnation;
	uint32_t expected; /* next psn */
	struct bl_odd odd;
	uint32_t credit_psn; /* in the last CREDIT */
	uint32_t credit_window;
	bool credit_due; /* in ep->credits */
	bool credit_now;
	struct bl_big *big;
	uint32_t big_bytes, nbigs;
};

/* a PREP: staged, or in the window, kept until it is acknowledged */
struct bl_rframe {
	struct bl_rframe *next;
	struct bl_peer *peer;
	uint64_t ts, sent_ns;
	/* when it was sent first, and went by way of the controller last */
	uint64_t first_ns, fwd_ns;
	uint32_t psn, len, tries;
	uint32_t count; /* items; 0: a part of a large message */
	bool aborted;   /* it is being recalled */
	uint64_t cookie[BL_ITEMS_MAX];
	uint8_t data[]; /* from struct bl_hdr on */
};

struct bl_rlist {
	struct bl_rframe *head, *tail;
	uint32_t n;
};

/* reliable, sending side of a peer */
struct bl_rtx {
	bool open;  /* it has told its window */
	bool dirty; /* in ep->rdirty */
	/* the stage holds nothing but what the last bl_send_reliable() put there */
	bool alone;
	bool failed;                  /* @life was announced as failed: its window counts no more */
	uint16_t life;                /* its incarnation */
	struct bl_rlist parts, items; /* staged; parts go first */
	uint32_t fill;                /* bytes in the last of @items */
	uint32_t next_psn, next_big;
	uint32_t credited, window;
	uint32_t unacked;
	struct bl_rto rto;
	struct bl_patience patience; /* with its answers to OPEN */
	uint64_t ask_ns;             /* CLOCK_MONOTONIC of the next OPEN, if one is needed */
	uint32_t asks;               /* without an answer */
	uint32_t asked_psn;          /* next_psn of the last OPEN */
	/* it was found unreachable: sends fail at once until it answers an OPEN */
	bool dead;
	uint32_t retries;  /* OPENs since then */
	uint64_t retry_ns; /* CLOCK_MONOTONIC of the last of them */
	/*
	 * Lives of processes that were announced, whether a window of them was open or not; each +
	 * 1, 0: none.
	 */
	uint32_t gone[BL_GONE_LIVES];
	uint32_t next_gone;
	/*
	 * announcements that were begun when @life was first heard of: they are of those before it
	 */
	uint64_t born;
	/* how the stage would be with the scattering that is looked at */
	uint64_t mark;
	uint32_t plan_frames, plan_fill, plan_count;
};

/* where a sender's numbers are */
struct bl_rplace {
	bool known;
	bool proven; /* a PREP came from there, not only an OPEN */
	uint16_t incarnation;
	struct bl_seq seq;
};

/* frames that were recalled and may come still */
struct bl_recalled {
	struct bl_recalled *next;
	uint64_t ts;
	uint32_t psn, count;
	uint16_t life;
};

/* reliable, receiving side of a peer */
struct bl_rrx {
	bool known, proven;
	uint16_t incarnation;
	struct bl_seq seq;
	struct bl_rplace was; /* the place before: somebody else's frame may have led us here */
	struct bl_recalled *recalled;
	uint32_t nrecalled;
	uint32_t said_psn, said_window; /* in the last WINDOW */
	bool due, now;                  /* in ep->windows; whatever it would say */
	bool asked; /* it wants to hear when everything before @asked_psn is free */
	uint32_t asked_psn;
	struct bl_big *big;
	uint32_t big_bytes, nbigs;
	/* it was announced as failed: what that life of it sent from @gone_ts on is not taken */
	bool gone;
	uint16_t gone_life;
	uint64_t gone_ts;
};

/* a receiver that has to take a scattering out again */
struct bl_recalling {
	struct bl_recalling *next;
	struct bl_peer *peer;
	uint64_t ts, sent_ns, first_ns;
	uint32_t psn, count, tries;
	bool done;
};

struct bl_peer {
	struct bl_rq_sender rq;  /* key: ip, port in network order */
	struct bl_rq_sender rrq; /* the same in the reliable queue */
	struct bl_addr addr;
	struct sockaddr_storage sa;
	socklen_t sa_len;
	bool local; /* another endpoint of this host: by lo, no GSO */
	bool self;
	__u64 fwd_until_ns; /* until then frames of the reliable stream may not pass: forward.c */
	struct bl_tx tx;
	struct bl_rx rx;
	struct bl_rtx rtx;
	struct bl_rrx rrx;
	struct bl_peer *dirty_next, *rdirty_next;
	struct bl_peer *credit_next, *window_next;
	struct bl_peer *all_next;
};

/* a stage as it was before the bl_send() that turns out not to fit */
struct bl_undo {
	struct bl_peer *peer;
	uint32_t nframes, fill, count, next_big;
	struct bl_big **big_tail;
};

/* a failure to be reported at the next bl_process() */
struct bl_failed {
	uint64_t ts, cookie;
	struct bl_addr dst;
	uint8_t why;
};

/* what this endpoint knows of the ring that it shares with others of its host: nic.c */
struct bl_nic {
	bool on;          /* there are others */
	bool parts_wait;  /* parts of large messages found no room */
	uint64_t queued;  /* our word nic_queued, but for what is being sent */
	uint64_t others;  /* the sum of the others' when it was read last, */
	uint64_t then;    /* and @queued at that time */
	uint64_t out;     /* our word nic_out */
	uint64_t senders; /* our word */
	struct bl_nic_marks marks;
};

struct bl_endpoint {
	struct bl_addr self;
	uint32_t slot, beacon_us;
	uint16_t incarnation;
	pid_t pid; /* that the daemon knows; a child of fork() has another one */
	int sock, daemon, fd[BL_FD_COUNT], epfd, timerfd;
	uint32_t frame_max; /* UDP payload of a full frame: struct bl_hdr and body */
	uint32_t ring_bytes;
	uint32_t ring_frames; /* full frames that the ring holds */

	/* shared pages */
	struct bl_inflight *inflight; /* the whole page; ours is [slot] */
	const struct bl_host_page *page;
	struct bl_wake *wake;
	const struct bl_clock *clock;
	uint64_t *ring_cons;
	const uint64_t *ring_prod;
	const uint8_t *ring_data;
	size_t page_map, wake_map;

	/* peers: open addressing, power of two */
	struct bl_peer **table;
	uint32_t table_size, npeers, nsenders;
	struct bl_peer *peers;

	/* tx */
	struct bl_peer *dirty; /* peers with something staged */
	/* no message is below @floor: what C could be before it waited for this host */
	uint64_t last_ts, floor;
	uint32_t staged_bytes, send_buffer;
	bool held;       /* something is staged that windows hold back, or a full NIC */
	uint32_t flying; /* frames to all others that are not credited */
	struct bl_nic nic;
	struct bl_undo *undo;
	uint32_t undo_n, undo_room;
	uint64_t mark;
	uint8_t *frag_buf;
	uint32_t gso_pause; /* so many sends do not ask for UDP GSO, which was refused: send.h */
	bl_send_fail_fn on_fail;
	void *on_fail_ctx;
	struct bl_failed *failed;
	uint32_t nfailed, failed_room;
	uint64_t timers_ns; /* when bl_tx_timers() has something to look at next */

	/* rx */
	struct bl_rq rq;
	uint64_t barrier; /* up to which the ring was emptied */
	struct bl_buf *free_small, *free_full, *free_jumbo;
	struct bl_lent lent; /* by bl_recv() */
	struct bl_buf *cur;  /* partly delivered */
	struct bl_items cur_items;
	uint32_t cur_index;
	struct bl_peer *credits;

	/* reliable tx */
	struct bl_rwin *rwin; /* shared */
	/* BL_RWIN: what is in the window; made by the first bl_send_reliable() */
	struct bl_rframe **rsent;
	struct bl_rframe *rkept; /* acknowledged, but their scattering is not */
	struct bl_rframe *rfree;
	uint32_t rfree_n, rstaged; /* frames */
	/* frames of the window that were sent, and that were taken out of it */
	uint32_t rtail, rreaped;
	struct bl_peer *rdirty;
	/* of the scattering that is being put into the window; 0: none is */
	uint64_t rts;
	bool rheld;       /* something is staged */
	uint64_t turn_ns; /* CLOCK_MONOTONIC of the last raise of our line's turn */
	uint64_t rtimer_ns;
	/* CLOCK_MONOTONIC from when on what is staged waits for the NIC's ring; 0: it does not */
	uint64_t rroom_ns;
	uint32_t rdead; /* peers that are */

	/* reliable rx */
	bool reliable; /* the endpoint has used that stream */
	struct bl_rq rrq;
	uint64_t commit;      /* up to which the ring was emptied */
	uint64_t commit_was;  /* the same before the ring was looked at last */
	struct bl_lent rlent; /* by bl_recv_reliable() */
	struct bl_buf *rcur;
	struct bl_items rcur_items;
	struct bl_peer *windows;

	/* failures */
	struct bl_failures *failures; /* shared */
	/*
	 * Announcements: that are dealt with; whose callbacks are all that is missing; that are
	 * begun.
	 */
	uint64_t fail_seen, fail_settled, fail_begun;
	struct bl_recalling *recalls;
	/* what the page said of those that are being dealt with */
	struct bl_failure fails[BL_FAILS_MAX];
	bool recall_again; /* there was no memory for one, or others were announced */
	bool rabort;       /* what is being put into the window is recalled */
	bool in_recall, outcast;
	bool daemon_gone, asked; /* no daemon serves us; the next one was asked to (again.c) */
	uint64_t again_ns;       /* CLOCK_MONOTONIC: not before it is tried again */
	char daemon_path[108];
	bool put_out; /* by the host's daemon: the pages are not ours any more */
	/*
	 * announcements from here on are none of ours: the last one was our own, or some are lost
	 */
	bool fails_end;
	bool ended;     /* @commit will not change any more */
	bool undecided; /* bl_recv_undecided() was called */
	struct bl_fwd_turn fwd;
	bl_proc_fail_fn on_proc_fail;
	void *on_proc_fail_ctx;
	bl_proc_gone_fn on_proc_gone;
	void *on_proc_gone_ctx;

	/* the helper thread, and what it took out: helper.c, shelf.c */
	struct bl_helper *helper;
	int helper_stop, helper_epfd;
	bool by_helper; /* it is the helper that works now, or it was when a child was forked off */
	bool raised;    /* bl_fd() was made readable by it */
	struct bl_shelf shelf, rshelf;
	uint64_t shelf_bytes, shelf_max;

	struct bl_stats st;
	char error[192];
};

static inline uint64_t bl_mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int bl_set_error(struct bl_endpoint *ep, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* peer.c */
struct bl_peer *bl_peer_find(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);
struct bl_peer *bl_peer_get(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);
void bl_peers_free(struct bl_endpoint *ep);

/* tx.c */
int bl_tx_check(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags);
int bl_tx_flush(struct bl_endpoint *ep);
int bl_tx_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		  const void *body, uint32_t len);
void bl_tx_credit(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);
void bl_tx_nak(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);
/* returns the next deadline, 0: none */
uint64_t bl_tx_timers(struct bl_endpoint *ep, uint64_t now);
void bl_tx_wake_at(struct bl_endpoint *ep, uint64_t at); /* that is one, too */
bool bl_tx_room(const struct bl_endpoint *ep);
bool bl_tx_unsent(const struct bl_endpoint *ep); /* frames of ours are in a queue of this host */
void bl_tx_hdr(uint8_t *frame, uint8_t op, uint64_t ts, uint32_t psn);
void bl_tx_fail(struct bl_endpoint *ep, const struct bl_peer *p, uint64_t ts, uint64_t cookie,
		uint8_t why);
int bl_tx_clock_void(struct bl_endpoint *ep);
uint64_t bl_tx_stamp(struct bl_endpoint *ep); /* in flight from here on; returns the timestamp */
void bl_tx_report(struct bl_endpoint *ep);    /* run the send_fail callbacks that are due */
void bl_tx_peer_free(struct bl_peer *p);

/* rstage.c */
bool bl_rstage_any(const struct bl_endpoint *ep);
struct bl_rframe *bl_rstage_take(struct bl_rlist *l);
void bl_rstage_drop(struct bl_endpoint *ep, uint8_t why);
void bl_rstage_free(struct bl_endpoint *ep);
void bl_rframe_put(struct bl_endpoint *ep, struct bl_rframe *f); /* it is free */
/* its messages are reported */
void bl_rframe_fail(struct bl_endpoint *ep, const struct bl_rframe *f, uint64_t ts, uint8_t why);

/* rtx.c */
int bl_rtx_flush(struct bl_endpoint *ep);
void bl_rtx_reap(struct bl_endpoint *ep);
uint64_t bl_rtx_timers(struct bl_endpoint *ep, uint64_t now);
bool bl_rtx_room(const struct bl_endpoint *ep);
bool bl_rtx_short(const struct bl_endpoint *ep);
bool bl_rtx_empty(const struct bl_endpoint *ep);
void bl_rtx_window(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);
void bl_rtx_aborted(struct bl_endpoint *ep);
/* sends to @p fail until it answers */
void bl_rtx_dead(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono);
/* somebody wants to send there: it is asked if it was not just now */
bool bl_rtx_is_dead(struct bl_endpoint *ep, struct bl_peer *p);
void bl_rtx_wake_at(struct bl_endpoint *ep, uint64_t at);
void bl_rtx_free(struct bl_endpoint *ep);

/* forward.c */
void bl_forward(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame, uint32_t len,
		uint64_t mono);
void bl_forward_control(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame,
			uint32_t len, uint8_t opcode);
void bl_forward_heard(struct bl_peer *p); /* something came from it by way of the controller */

/* recall.c */
/* number of the latest announcement: to be read after the barriers, and before the ring */
uint64_t bl_recall_last(const struct bl_endpoint *ep);
/* before a life is heard of for the first time */
bool bl_recall_news(struct bl_endpoint *ep, const struct bl_peer *p);
uint64_t bl_recall_limit(const struct bl_endpoint *ep); /* messages below it may be delivered */
void bl_recall_work(struct bl_endpoint *ep, uint64_t last);
bool bl_recall_is_gone(const struct bl_peer *p, uint16_t life); /* that process was announced */
void bl_recall_answer(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		      uint32_t len);
void bl_recall_free(struct bl_endpoint *ep);

/* again.c */
void bl_daemon_gone(struct bl_endpoint *ep); /* its connection has ended */
/* What it sent: a byte, which says that there is an announcement; its answer; or the end. */
void bl_daemon_hear(struct bl_endpoint *ep);
/* Without one: connects anew, or hears the answer. Before announcements are looked at. */
void bl_again(struct bl_endpoint *ep);

/* stale.c */
int bl_outcast(struct bl_endpoint *ep); /* -ESTALE, and the sentence */

/**
 * bl_is_out - whether the daemon has put this endpoint out (struct bl_inflight, @out). Looked at
 * before the line or the window is touched, and once more after the barriers were read and before
 * anything is delivered by them: as long as it is not set the commit barrier has not passed T.
 */
static inline bool bl_is_out(struct bl_endpoint *ep)
{
	if (!ep->put_out && ep->inflight &&
	    __atomic_load_n(&ep->inflight[ep->slot].out, __ATOMIC_ACQUIRE))
		ep->put_out = ep->outcast = true;
	return ep->put_out;
}

/* wait.c */
void bl_disarm(struct bl_endpoint *ep);
/* there is something to do that the application does not */
bool bl_away_due(const struct bl_endpoint *ep);
/* the helper's turn; returns for how many ms it may sleep */
int bl_away_work(struct bl_endpoint *ep, bool *armed);

/* shelf.c */
void bl_shelf_fill(struct bl_endpoint *ep);
size_t bl_shelf_take(struct bl_endpoint *ep, bool reliable, struct bl_delivery *out, size_t max);
/* messages; 0 if the first may not be delivered yet */
uint32_t bl_shelf_count(const struct bl_endpoint *ep, bool reliable);
bool bl_shelf_full(const struct bl_endpoint *ep);
void bl_shelf_free(struct bl_endpoint *ep);

/* helper.c */
struct epoll_event;
void bl_helper_enter(struct bl_endpoint *ep);
void bl_helper_leave(struct bl_endpoint *ep);
int bl_helper_sleep(struct bl_endpoint *ep, struct epoll_event *ev, int n, int ms);
/* Its epoll instance, and the daemon's connection: EPOLL_CTL_ADD or _DEL. */
void bl_helper_watch(struct bl_endpoint *ep, int op);
int bl_helper_failed(struct bl_endpoint *ep); /* 0, or what the thread died of, once */

/**
 * bl_enter, bl_leave - around what every function of barline.h does with an endpoint; the other
 * way round around callbacks.
 */
static inline void bl_enter(struct bl_endpoint *ep)
{
	if (ep->helper)
		bl_helper_enter(ep);
}

static inline void bl_leave(struct bl_endpoint *ep)
{
	if (ep->helper)
		bl_helper_leave(ep);
}

/* rrx.c */
/* -ENOMEM: not now */
int bl_rrx_prep(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		const uint8_t *body, uint32_t len);
void bl_rrx_open(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation);
int bl_rrx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);
void bl_rrx_windows(struct bl_endpoint *ep);
/* frames; 0: of all lives */
uint64_t bl_rrx_discard(struct bl_endpoint *ep, struct bl_peer *p, uint64_t from_ts, uint16_t life);
void bl_rrx_take_out(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts48, uint32_t psn,
		     uint32_t count);
void bl_rrx_recall(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		   uint32_t len);
bool bl_rrx_ready(const struct bl_endpoint *ep);
int bl_rrx_count_ready(const struct bl_endpoint *ep);
uint32_t bl_rrx_count_undecided(const struct bl_endpoint *ep);
int bl_rrx_deliver_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);
void bl_rrx_free(struct bl_endpoint *ep);
void bl_rrx_leave(struct bl_endpoint *ep); /* last words: nobody has to wait for its window */
void bl_rrx_peer_free(struct bl_peer *p);

/* rx.c */
struct bl_buf *bl_buf_get(struct bl_endpoint *ep, uint32_t len);
void bl_buf_put(struct bl_endpoint *ep, struct bl_buf *b);
/* of each sender; to those of other hosts less may be granted: bl_nic_window() */
uint32_t bl_rx_window(const struct bl_endpoint *ep);
uint64_t bl_rx_drain(struct bl_endpoint *ep); /* returns bl_recall_last() */
void bl_rx_leave(struct bl_endpoint *ep); /* last words: what was delivered, and what will not be */
int bl_rx_self(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *frame, uint32_t len,
	       uint64_t ts, uint32_t psn);
int bl_rx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);
void bl_rx_credits(struct bl_endpoint *ep);
void bl_rx_release(struct bl_endpoint *ep, struct bl_lent *lent); /* the caller has read it */
void bl_lent_free(struct bl_lent *lent);
bool bl_rx_ready(const struct bl_endpoint *ep);
int bl_rx_count_ready(const struct bl_endpoint *ep);
void bl_rx_self_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big *b);
void bl_rx_free(struct bl_endpoint *ep);
void bl_rx_peer_free(struct bl_peer *p);

#endif
