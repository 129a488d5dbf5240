/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps of the host role: the pages of endpoints, the host page, endpoint slots and rings, and the
 * protocol of the daemon's socket. docs/architecture.md shows the way of a message through them.
 *
 * Example: an endpoint in slot 3 sends a message. Its process stores the time in the ts of its
 * line, takes a timestamp of 5000 and sends the frame; meanwhile the egress program writes no
 * barrier above that ts into any frame of this host. The process then clears it. At the receiving
 * host the XDP program appends the message to the endpoint's ring, and when host_page.barrier
 * passes 5000, the process there delivers it.
 *
 * Reliable sends use maps/reliable_abi.h, failures maps/failure_abi.h, admission maps/hold_abi.h.
 */
#ifndef BARLINE_HOST_ABI_H
#define BARLINE_HOST_ABI_H

#include <linux/types.h>
#include "maps/fence_abi.h"
#include "maps/figures_abi.h"
#include "maps/reliable_abi.h"
#include "maps/switch_abi.h"
#include "maps/wire_abi.h"

#define BL_EPS_MAX        64
#define BL_RING_BYTES     (512u << 10) /* default size of an endpoint's ring; a power of two */
#define BL_RING_BYTES_MIN (64u << 10)
#define BL_RING_BYTES_MAX (64u << 20)

#define BL_MAP_HOST_CFG   "host_cfg" /* array of one struct bl_host_cfg */
#define BL_MAP_EP_PAGES   "ep_pages" /* array of maps: endpoint slot -> one struct bl_ep_page */
/* the pins of one page and of one ring, by slot */
#define BL_MAP_EP_PAGE_PIN "page-%u"
#define BL_MAP_RING_PIN    "ring-%u"
#define BL_MAP_HOST_PAGE   "host_page" /* array of one struct bl_host_page; mmapped, frozen */
#define BL_MAP_HINTS       "hints"     /* array of one struct bl_hints; mmapped */
#define BL_MAP_EPS         "eps"       /* array: port - port_base -> struct bl_ep_slot */
#define BL_MAP_RINGS       "rings"     /* array of maps: endpoint slot -> ring buffer of bl_rec */

/* The hooks of a host, each with its own column of counters. */
enum bl_host_hook {
	BL_HC_INGRESS,
	BL_HC_EGRESS,
	BL_HC_LOCAL,
	BL_HC_HOLD,
	BL_HC_PACE,
	BL_HC_CLONE,
	BL_HC_LIFT,
	BL_HC_COUNT
};

#define BL_HC_MAX 8 /* room to grow: the size of struct bl_host_counts is ABI */
_Static_assert(BL_HC_COUNT <= BL_HC_MAX, "hooks outgrew struct bl_host_counts");

/**
 * struct bl_host_counts - value of "counts" on a host: how often the reason that is the key was
 * given, and the bytes of the frames that ended for it. Per CPU: each CPU's value is written only
 * by the programs that run there.
 */
struct bl_host_counts {
	__u64 n[BL_HC_MAX];     /* by enum bl_host_hook; the remainder is zero */
	__u64 bytes[BL_HC_MAX]; /* by the same index; see struct bl_sw_counts */
};
_Static_assert(sizeof(struct bl_host_counts) == 128 &&
		       __builtin_offsetof(struct bl_host_counts, bytes) == 64,
	       "ABI");

/*
 * skb priority of ordered frames and beacons where the loader has given them a band of their own or
 * a filter (maps/nic_abi.h): the class of band 1 of BL_NIC_H_BANDS.
 */
#define BL_TX_PRIORITY 0xb4110001U

/**
 * struct bl_host_cfg - value 0 of "host_cfg". Written by the loader; the programs only read it.
 */
struct bl_host_cfg {
	__u32 node_id; /* of this host in its beacons */
	/*
	 * endpoint slots 0 to @neps - 1 may be in use: bounds the egress program's scan; only grows
	 */
	__u32 neps;
	__u16 port_base;     /* first UDP port of ordered traffic, host order */
	__u16 port_count;    /* number of UDP ports of ordered traffic */
	__s32 tai_offset_s;  /* seconds; sent in beacons and compared with received beacons */
	__u64 beacon_ns;     /* beacon interval */
	__u64 dead_after_ns; /* an input that is silent for longer is excluded */
	__u16 queue;         /* transmit queue of all ordered frames */
	__u8 classed;      /* 1: ordered frames leave with the priority BL_TX_PRIORITY; 0: with 0 */
	__u8 steered;      /* 1: and a filter behind the egress program picks @queue for them */
	__u32 beacon_mark; /* skb mark of the daemon's own beacons; all others are dropped */
	/*
	 * How far this host promises ahead while it is silent, and how far ahead the barriers of
	 * others may be (core/order/promise_core.h); 0: no host promises ahead.
	 */
	__u64 ahead_ns;
	__u32 cpus; /* that the machine may have; those whose entries of "link_sent" are in use */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_host_cfg) == 56, "ABI");

/**
 * struct bl_inflight - an endpoint's line: what holds the barriers of its host back.
 *
 * The process writes @ts, @hold, @turn, @bye and the tail of @state; programs advance the head of
 * @state. While the process lives, the daemon writes nothing here. What the daemon decides about
 * the endpoint is in struct bl_ep_word, which the process cannot write; once its @out is set,
 * neither the programs nor the library trust the words of the line (core/order/line_core.h). The
 * programs read in this order: @out, @ts, @hold, @state.
 */
struct bl_inflight {
	/*
	 * Bus time taken before the timestamp of the scattering that is being sent; BL_TIME_NONE or
	 * 0 (a new map): nothing is in flight. Cleared by the daemon when the process has died;
	 * does not count if the send is void (struct bl_ep_word). Pairs with the egress program.
	 * Writer: @ts = clock, full fence, read the clock again. Program: clock, full fence, read
	 * @ts.
	 */
	__u64 ts;
	/*
	 * Timestamp of a reliable scattering that is not completely in the window yet: C must not
	 * pass it. 0 or BL_TIME_NONE: none. Set while @ts is set, so that it holds C even if the
	 * send becomes void; cleared after the last frame of the scattering was counted in @state.
	 * A value below the C that was sent already is ignored.
	 */
	__u64 hold;
	/*
	 * The endpoint's window (maps/reliable_abi.h): tail << 32 | head. The process raises the
	 * tail by atomic addition. Whoever closes a slot raises the head by compare-and-swap of the
	 * whole word.
	 */
	__u64 state;
	/* Raised by the library once per ms while it works on a window that is not empty. */
	__u64 turn;
	/*
	 * Not 0: the process has left by bl_exit(), and this is above all its timestamps. The last
	 * store of the process before it closes its connection. The daemon reads it when the
	 * connection or the process is gone, and polls it where there is no connection.
	 */
	__u64 bye;
	/*
	 * @drained of the host page as the process has seen it, stored when everything that it sent
	 * is acknowledged or reported and it will send nothing more while the host is drained. 0:
	 * it has not. Polled by the daemon while the host is drained.
	 */
	__u64 quiet;
	__u64 reserved[2]; /* must be zero */
};
#define BL_OUT_OVER (~0ULL)

/*
 * X(SYMBOL, "name for JSON", "text"): why an endpoint is no longer a member. Append only. The
 * library's messages, the log and `barline show endpoints` all derive from this list.
 */
/* clang-format off */
#define BL_OUT_WHYS(X) \
	X(MEMBER, "member", "it is a member") \
	X(GONE, "gone", "its process is gone") \
	X(ANSWER, "answer", "it did not process in time what failed elsewhere") \
	X(IN_FLIGHT, "in_flight", "it stood still in the middle of a send") \
	X(WINDOW, "window", "it stood still with reliable messages that are not acknowledged") \
	X(RING, "ring", "it did not read what others had sent to it") \
	X(UNREACHABLE, "unreachable", "reliable messages of others did not get through to it") \
	X(DETACHED, "detached", "the host's programs were removed") \
	X(HOST, "host", "its host was announced as failed") \
	X(DRAINED, "drained", "its host was drained, and it has left in order")
/* clang-format on */
enum bl_out_why {
#define BL_X(name, word, text) BL_OUT_##name,
	BL_OUT_WHYS(BL_X)
#undef BL_X
		BL_OUT_WHY_COUNT
};
_Static_assert(sizeof(struct bl_inflight) == 64, "one cache line");

/**
 * struct bl_ep_word - what the daemon has decided about one endpoint. In the host page, which no
 * process can write.
 *
 * @upto and @over: which sends do not count any more, because the process stopped in the middle of
 * them. Written in this order: @upto, an RCU grace period, @over. Example: a process stops with
 * 7000 in flight. At 27000 the daemon writes @upto = 27000. From then on the programs drop the
 * messages of the endpoint while its line says 27000 or less. When no program runs any more that
 * may have let one pass, the daemon writes @over = 27000, and the line does not hold B or C any
 * more.
 */
struct bl_ep_word {
	__u64 upto; /* messages sent with a line of at most this are dropped (send_void); 0: none */
	__u64 over; /* a line of at most this does not hold the barriers; never above @upto */
	/*
	 * 0: a member. BL_OUT_OVER: the line counts for nothing. Else: C must not pass this time.
	 */
	__u64 out;
	/* enum bl_out_why. Not 0 while @out is set: @out is final, and @ts does not count. */
	__u64 out_why;
	/* Set before @out: received messages below it are committed; 0: none is known to be. */
	__u64 out_upto;
};

/**
 * struct bl_host_page - value 0 of "host_page"; processes map it read-only. Written by the host's
 * programs unless a field says otherwise.
 */
struct bl_host_page {
	/*
	 * Bus time: every message below it that will ever arrive is in the rings already. Written
	 * by the XDP program after the ring commit of the same frame. Pairs with the library: read
	 * @barrier (acquire), then the ring.
	 */
	__u64 barrier;
	__u64 commit; /* the same for reliable messages */
	/* highest barrier that the egress program has written into a frame without a claim */
	__u64 sent_barrier;
	__u64 now_ns;   /* as in struct bl_sw_lane */
	__u64 limit_ns; /* as in struct bl_sw_lane */
	__u64 watch_ns; /* as in struct bl_sw_lane */
	__u64 scan_ns;  /* as in struct bl_sw_lane */
	/*
	 * Data sends that carried a barrier. Updates of two CPUs may be lost: the beacon sender
	 * only needs to know whether there were several.
	 */
	__u64 sends;
	struct bl_reg reg[BL_LANES_MAX]; /* registers of the link, by lane */
	/*
	 * No message that takes its timestamp from now on gets a lower one: the greatest barrier
	 * that was ahead of the clock when it was computed. Raised by compare-and-swap before the
	 * lines are read. Pairs with the library: in flight, full fence, read @promised.
	 */
	__u64 promised;
	/* bus time at which the last message left; lost updates of two CPUs are harmless */
	__u64 data_ns;
	/*
	 * Highest commit barrier that this host has sent. It stays true, so it is sent again when
	 * the windows change too fast to be read.
	 */
	__u64 sent_commit;
	/*
	 * Slots 0 to @eps_lines - 1 were used by an endpoint at some time: the hints have
	 * nothing beyond them. Only grows. @eps_active: endpoints that are members now. Both are
	 * written by the daemon, before it answers a new endpoint and after a member has gone;
	 * lib/nic.c reads them.
	 */
	__u32 eps_lines;
	__u32 eps_active;
	struct bl_life life; /* of the NIC as an input */
	__u64 orders;        /* as in struct bl_sw_lane */
	/*
	 * 1: this host's frames promise no C, and its NIC does not join C. Written by the program
	 * bl_fence.
	 */
	__u64 barred;
	struct bl_ep_word word[BL_EPS_MAX]; /* by endpoint slot; written by the daemon */
	/*
	 * Not 0: the host is drained (loader/order/drain.h): processes send nothing new, and none
	 * becomes an endpoint. The time of the order, CLOCK_REALTIME, ns, which tells one from the
	 * next. Written by the daemon.
	 */
	__u64 drained;
};
_Static_assert(sizeof(struct bl_host_page) == 584 + 40 * BL_EPS_MAX, "ABI");
_Static_assert(sizeof(struct bl_host_page) <= 4096, "one page");

/**
 * struct bl_ep_wake - what an endpoint sleeps for. Written by its process and by the XDP program,
 * by atomic operations.
 */
struct bl_ep_wake {
	/*
	 * The endpoint sleeps until the barrier is above it. BL_TIME_NONE: awake. BL_WAKE_ON_DATA:
	 * it sleeps with nothing to deliver, and the program lowers @until to the timestamp of the
	 * first message.
	 */
	__u64 until;
	__u64 woken; /* times that the program woke it */
	/* the same for the commit barrier; BL_TIME_NONE also: it sleeps, but not for that */
	__u64 until_c;
	/* 1: sleeps until its reliable window advances; cleared by the waking program */
	__u64 on_ack;
	/*
	 * The last announcement of a failure that the process has fully processed; informational.
	 * Written by the process; set to the latest one by the daemon for a new endpoint.
	 */
	__u64 done;
	__u64 reserved[3]; /* must be zero */
};
_Static_assert(sizeof(struct bl_ep_wake) == 64, "one cache line");

/**
 * struct bl_ep_page - what one endpoint's process shares with the programs and the daemon of its
 * host: value 0 of a map of its own, which only that process and the daemon can open. The daemon
 * makes the map when the endpoint comes, so nobody has a mapping of an earlier owner's.
 */
struct bl_ep_page {
	struct bl_inflight line;
	struct bl_ep_wake wake;
	__u8 reserved[4096 - sizeof(struct bl_inflight) - sizeof(struct bl_ep_wake)];
	struct bl_figures fig; /* of the process, for people; no program reads it */
	struct bl_rwin win;    /* the window of reliable sends */
};
_Static_assert(sizeof(struct bl_ep_page) ==
		       4096 + sizeof(struct bl_figures) + sizeof(struct bl_rwin),
	       "ABI");

/**
 * struct bl_hints - value 0 of "hints": the one page that every process of the host can write. No
 * promise depends on it. Nonsense that a process writes here costs others time, or frames in the
 * ring of the NIC, as each word says.
 */
struct bl_hints {
	/*
	 * Least @until of the endpoints that sleep; BL_TIME_NONE: none does. No endpoint is woken
	 * before the barrier passes it, except by a beacon, which wakes whomever its barrier
	 * concerns: a wrong value costs a wake-up one beacon interval. Each side lowers it by
	 * compare-and-swap, and the program empties it by an exchange before it looks at the
	 * endpoints: a process that goes to sleep is either found or finds it empty.
	 */
	__u64 next;
	__u64 next_c; /* the same for the commit barrier and @until_c */
	__u64 reserved[6];
	/*
	 * By endpoint slot: the account of the NIC's transmit ring (lib/nic.c), in frames since the
	 * host started. Never decreases, except @offered when room was not granted. Written by the
	 * process; by the daemon (@queued = @offered) when the process has gone. A process does not
	 * wait longer than BL_NIC_TRUST_NS for what others say here.
	 */
	struct {
		__u64 offered; /* put, or about to be put, into the ring by owners of this slot */
		__u64 queued;  /* put into the ring by owners of this slot */
		__u64 out;     /* by the whole host, put in and out again, as far as known here */
		__u64 reserved;
	} nic[BL_EPS_MAX];
};
_Static_assert(sizeof(struct bl_hints) == 64 + 32 * BL_EPS_MAX, "ABI");
#define BL_WAKE_ON_DATA (~0ULL - 1)

enum bl_ep_state {
	BL_EP_FREE,
	BL_EP_ACTIVE,
	BL_EP_DEAD, /* the process is gone or was removed: only ACKs are still accepted */
};
#define BL_EP_LEFT_NOW (~0ULL)

/**
 * struct bl_ep_slot - one endpoint: value (port - port_base) of "eps", which has BL_PORT_COUNT
 * values. Written by the daemon; the programs read it. @active is set last and cleared first.
 */
struct bl_ep_slot {
	__u32 active;     /* enum bl_ep_state */
	__u16 port;       /* UDP port, host order */
	__u16 slot;       /* index in the maps of pages and rings, and in the host page */
	__u32 pid;        /* in the daemon's pid namespace */
	__u32 ring_bytes; /* size of the ring, bytes */
	/*
	 * Start time of the process (field 22 of /proc/PID/stat), so that a reused pid is not taken
	 * for it. While @active is BL_EP_FREE: T of the life @left until the rack knows that it
	 * left, so that a restarted daemon can announce it; BL_EP_LEFT_NOW before T was taken; 0:
	 * the rack knows.
	 */
	__u64 start_time;
	__u8 addr[16]; /* IPv6 or IPv4-mapped address; all zero: any address of the host */
	char name[16]; /* of the process, NUL terminated */
	__u16 life;    /* incarnation, chosen by the daemon: a PREP for another one is refused */
	/*
	 * The previous life that left this port in order; 0: none. The programs answer PREPs and
	 * RECALLs that are still on their way to it. While @active is BL_EP_FREE, @addr is its
	 * address. Kept when the port is assigned to another process.
	 */
	__u16 left;
	__u16 reserved[2]; /* must be zero */
	/*
	 * SO_COOKIE of the endpoint's UDP socket: frames of other sockets are refused. 0: not
	 * known, and not compared; the daemon activates no such slot.
	 */
	__u64 cookie;
	__u32 uid; /* user of the process when it attached; quotas count by it */
	__u32 reserved2;
};
_Static_assert(sizeof(struct bl_ep_slot) == 80, "ABI");

/**
 * struct bl_rec - one frame in an endpoint's ring; the body follows. The record occupies
 * BL_REC_SMALL, BL_REC_FULL, BL_REC_JUMBO or BL_REC_HUGE bytes. Written by the XDP program before
 * it commits the record to the ring.
 */
struct bl_rec {
	__u64 ts;       /* message timestamp, extended to 64 bits; 0: the frame has none */
	__u32 psn;      /* from the header */
	__u16 sport;    /* UDP port of the sender, host order */
	__u8 opcode;    /* from the header */
	__u8 flags;     /* from the header */
	__u8 saddr[16]; /* address of the sender: IPv6 or IPv4-mapped */
	__u16 len;      /* bytes of the body, without bl_hdr */
	__u16 relayed;  /* 1: came by way of the controller (maps/forward_abi.h) */
	/*
	 * When it was stored: CLOCK_MONOTONIC in units of 2^BL_REC_AT_SHIFT ns, modulo 2^32, with
	 * the lowest bit set. 0: not measured. Only frames are measured whose @psn is a
	 * multiple of BL_REC_SAMPLE, so that few of them pay for a reading of the clock.
	 */
	__u32 at;
};
_Static_assert(sizeof(struct bl_rec) == 40, "ABI");
#define BL_REC_AT_SHIFT 6 /* the times wrap after 275 s */
#define BL_REC_SAMPLE   16
#define BL_REC_SMALL    256  /* bodies of up to 216 bytes */
#define BL_REC_FULL     1536 /* of up to 1496 bytes: one frame of MTU 1500 */
/* of up to 3544 bytes: the largest in an XDP buffer of one 4 KiB page */
#define BL_REC_JUMBO 3584
/* of up to 9176 bytes: one frame of MTU 9216, in several XDP buffers */
#define BL_REC_HUGE 9216
#define BL_BODY_MAX (BL_REC_HUGE - (int)sizeof(struct bl_rec))

/*
 * The daemon's socket (SOCK_SEQPACKET, BL_RUN_DIR/host-<netns>.sock). The process sends one request
 * and receives one answer with file descriptors (SCM_RIGHTS). From then on the connection stands
 * for the endpoint: the endpoint ends when the connection closes. An endpoint that is older than
 * the daemon has no connection and lives as long as its process; it may connect again (struct
 * bl_again_req).
 */
#define BL_SOCK_MAGIC 0x424c5351u
/*
 * Instead of BL_SOCK_MAGIC in a struct bl_attach_req: asks only for the map of TOP's hints
 * (maps/top_host_abi.h), which is the one file descriptor of the answer. The connection is closed.
 */
#define BL_SOCK_HINTS 0x424c5348u
/* The same for the clock record (maps/clock_abi.h), whose descriptor is for reading only. */
#define BL_SOCK_CLOCK 0x424c5343u

/**
 * struct bl_attach_req - request for an endpoint.
 */
struct bl_attach_req {
	__u32 magic;       /* BL_SOCK_MAGIC, BL_SOCK_HINTS or BL_SOCK_CLOCK */
	__u32 abi_version; /* BL_ABI_VERSION */
	__u32 port;        /* UDP port wanted, host order; 0: any free port */
	__u32 ring_bytes;  /* 0: BL_RING_BYTES */
	/* AF_INET or AF_INET6: the address of the host to use; 0: the first address of the host */
	__u32 family;
	__u32 reserved;
};

/**
 * struct bl_attach_rep - answer to struct bl_attach_req. The file descriptors are those of enum
 * bl_attach_fd, in that order. The daemon makes the socket, so that it knows its cookie: nobody
 * else can send as this endpoint, and nothing that the process says has to be believed.
 */
struct bl_attach_rep {
	__u32 magic;      /* BL_SOCK_MAGIC */
	__s32 error;      /* 0, or a positive errno that @message explains */
	__u32 slot;       /* endpoint slot */
	__u32 port;       /* UDP port of the endpoint, host order */
	__u32 mtu;        /* of the NIC, bytes of the IP packet */
	__u32 ifindex;    /* of the NIC */
	__u16 port_base;  /* first UDP port of ordered traffic */
	__u16 port_count; /* number of UDP ports of ordered traffic */
	__u32 ring_bytes; /* size of the ring, bytes */
	__u64 beacon_ns;  /* beacon interval */
	__u8 addr[16];    /* of the endpoint: IPv6 or IPv4-mapped */
	__u16 life;       /* incarnation of the endpoint */
	__u16 reserved[3];
	char message[160]; /* NUL terminated; empty without an error */
};

#define BL_SOCK_AGAIN 0x424c5341u

/**
 * struct bl_again_req - an endpoint whose daemon was replaced identifies itself to the new daemon.
 * The daemon accepts it if the process is the one that had registered the endpoint (by pid and
 * start time) and the endpoint has no connection; the new connection then stands for the endpoint.
 */
struct bl_again_req {
	__u32 magic;       /* BL_SOCK_AGAIN */
	__u32 abi_version; /* BL_ABI_VERSION */
	__u32 port;        /* UDP port of the endpoint, host order */
	__u16 life;        /* incarnation of the endpoint */
	__u16 reserved;
};
_Static_assert(sizeof(struct bl_again_req) < sizeof(struct bl_attach_req), "the length tells them "
									   "apart");

/**
 * struct bl_again_rep - answer to struct bl_again_req.
 */
struct bl_again_rep {
	__u32 magic; /* BL_SOCK_AGAIN */
	/*
	 * 0; EAGAIN: not now, try again. Else a final, positive errno: EPROTO: another ABI version;
	 * ENOENT: no such endpoint; ESTALE: it was removed; EBUSY: it has a connection; EPERM: it
	 * belongs to another process.
	 */
	__s32 error;
};

#define BL_SOCK_DRAIN 0x424c5344u

/* What a struct bl_drain_req asks for. */
enum bl_drain_what { BL_DRAIN_ASK, BL_DRAIN_BEGIN, BL_DRAIN_END };

/**
 * struct bl_drain_req - `barline host drain` and `undrain` at the daemon's socket. Answered by one
 * struct bl_drain_rep; then the connection is closed.
 */
struct bl_drain_req {
	__u32 magic;       /* BL_SOCK_DRAIN */
	__u32 abi_version; /* BL_ABI_VERSION */
	__u32 what;        /* enum bl_drain_what */
};
_Static_assert(sizeof(struct bl_drain_req) < sizeof(struct bl_again_req), "the length tells them "
									  "apart");

enum bl_drain_state {
	BL_DRAIN_NONE,    /* the host is not drained */
	BL_DRAIN_WAITS,   /* for processes, until everything that they sent is acknowledged */
	BL_DRAIN_LEAVES,  /* no process is a member; the controller has not confirmed the leave */
	BL_DRAIN_DRAINED, /* the host has left */
};

/** struct bl_drain_rep - answer to struct bl_drain_req. */
struct bl_drain_rep {
	__u32 magic;    /* BL_SOCK_DRAIN */
	__s32 error;    /* 0, or a positive errno that @message explains */
	__u32 state;    /* enum bl_drain_state */
	__u32 waits;    /* endpoints that are waited for */
	__u64 since_ns; /* CLOCK_REALTIME of the order; 0: the host is not drained */
	/* NUL terminated: the error, or what is waited for; empty if nothing is */
	char message[160];
};

enum bl_attach_fd {
	BL_FD_RING,
	BL_FD_PAGE,      /* of one struct bl_ep_page: this endpoint's */
	BL_FD_HOST_PAGE, /* frozen */
	BL_FD_HINTS,
	BL_FD_CLOCK,    /* frozen */
	BL_FD_FAILURES, /* frozen */
	BL_FD_SOCKET,   /* UDP, bound to the address and port of the endpoint */
	BL_FD_COUNT
};

#endif
