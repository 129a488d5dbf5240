/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps of the host role: the in-flight page, the barrier page, endpoint slots and rings
 * (DESIGN 3.5), and the daemon's socket.
 */
#ifndef BARLINE_HOST_ABI_H
#define BARLINE_HOST_ABI_H

#include "maps/switch_abi.h"

#define BL_EPS_MAX        64
#define BL_RING_BYTES     (512u << 10) /* default size of an endpoint's ring; a power of two */
#define BL_RING_BYTES_MIN (64u << 10)
#define BL_RING_BYTES_MAX (64u << 20)

#define BL_MAP_HOST_CFG   "host_cfg"
#define BL_MAP_INFLIGHT   "inflight"
#define BL_MAP_HOST_PAGE  "host_page"
#define BL_MAP_WAKE       "wake"
#define BL_MAP_EPS        "eps"
#define BL_MAP_RINGS      "rings"

/* the places of a host that count */
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
 * struct bl_host_counts - value of "counts" on a host: how often one reason, the key, was given;
 * per CPU.
 * @n: by enum bl_host_hook; the rest is room, zero. Written by the programs of that CPU.
 */
struct bl_host_counts {
	__u64 n[BL_HC_MAX];
};
_Static_assert(sizeof(struct bl_host_counts) == 64, "ABI");

/**
 * struct bl_host_cfg - value 0 of "host_cfg". Written by the loader; read-only for the programs.
 * @node_id: this host in its beacons.
 * @neps: endpoint slots 0 to @neps - 1 may be in use: bounds the egress program's walk. Grows only.
 * @port_base, @port_count: UDP port range of ordered traffic.
 * @tai_offset_s: sent in beacons, compared in those that arrive.
 * @beacon_ns, @dead_after_ns: as in struct bl_sw_cfg.
 * @queue: transmit queue for everything ordered.
 * @beacon_mark: skb mark that the daemon's own beacons carry; others are dropped.
 * @ahead_ns: how far this host promises ahead while it is silent, and others are believed to
 * (core/order/promise_core.h); 0: nobody does.
 */
struct bl_host_cfg {
	__u32 node_id;
	__u32 neps;
	__u16 port_base;
	__u16 port_count;
	__s32 tai_offset_s;
	__u64 beacon_ns;
	__u64 dead_after_ns;
	__u32 queue;
	__u32 beacon_mark;
	__u64 ahead_ns;
};
_Static_assert(sizeof(struct bl_host_cfg) == 48, "ABI");

/**
 * struct bl_inflight - one endpoint's line of the in-flight page; the whole page is one mmap of
 *4096 bytes.
 * @ts: bus time taken before the timestamp of the scattering that is being sent; BL_TIME_NONE:
 *nothing in flight. 0 counts as none (a new map). Written by the endpoint's process; cleared by the
 *daemon when the process has died. Pairs with the egress program: clock, full fence, read @ts. The
 *writer: @ts = clock, full fence, clock again.
 * @hold: timestamp of a reliable scattering that is not in the window as a whole yet: C may not
 *pass it. 0, BL_TIME_NONE: none. Written by the process: before @ts is cleared, and cleared after
 *the last of the scattering's frames was counted in @state. The programs read in this order: @ts,
 *@hold, @state.
 * @state: of the endpoint's window (reliable_abi.h): tail << 32 | head. Raised by the process
 *(tail, by atomic add) and by whoever closes a slot (head, by compare-and-swap of the whole word).
 *
 * @bye: not 0: the process has left by bl_exit(), and this is above all timestamps that it gave.
 *The last that it writes, before it closes its connection. The daemon reads it when the connection
 *or the process is gone, and looks for it where there is no connection.
 *
 * The process writes @ts, @hold, @turn, @bye and the tail of @state; programs move the head of
 *@state; only the daemon writes @out, @out_why and @out_upto. While the process lives the daemon
 *writes nothing else here, and neither programs nor library trust the other words of a line whose
 *@out is set (core/order/line_core.h).
 */
struct bl_inflight {
	__u64 ts;
	__u64 hold;
	__u64 state;
	/* 0: a member. BL_OUT_OVER: the line counts for nothing. Else C must not pass it. */
	__u64 out;
	/* enum bl_out_why. Not 0 while @out is: @out is final, and @ts does not count. */
	__u64 out_why;
	/* raised by the library, once in a ms, when it works with a window that is not empty */
	__u64 turn;
	/* set before @out: messages below it that came are committed; 0: not known of any */
	__u64 out_upto;
	__u64 bye;
};
#define BL_OUT_OVER (~0ULL)

/*
 * Why an endpoint is no member any more: name for JSON, text for people. Append only. BL_OUT_WHYS
 * is the one list: the library's messages, the log and `barline show endpoints` derive from it.
 */
/* clang-format off */
#define BL_OUT_WHYS(X) \
	X(MEMBER, "member", "it is a member") \
	X(GONE, "gone", "its process is gone") \
	X(ANSWER, "answer", "it had not dealt in time with what failed elsewhere") \
	X(IN_FLIGHT, "in_flight", "it stood still in the middle of a send") \
	X(WINDOW, "window", "it stood still with reliable messages that are not acknowledged") \
	X(RING, "ring", "it did not read what others had sent to it") \
	X(UNREACHABLE, "unreachable", "what others sent to it reliably did not get through") \
	X(DETACHED, "detached", "the host's programs were removed") \
	X(HOST, "host", "its host was announced as failed")
/* clang-format on */
enum bl_out_why {
#define BL_X(name, word, text) BL_OUT_##name,
	BL_OUT_WHYS(BL_X)
#undef BL_X
		BL_OUT_WHY_COUNT
};
_Static_assert(sizeof(struct bl_inflight) == 64, "one cache line");

/**
 * struct bl_host_page - value 0 of "host_page"; processes map it read-only.
 * @barrier: messages below it are complete: everything that will ever come below it is in the rings
 *already.
 * @commit: the same for reliable messages.
 * @sent_barrier: highest barrier that the egress program wrote.
 * @sends: data sends that carried a barrier; lost counts of two CPUs do no harm: who sends the
 *beacons only wants to know whether there were several.
 * @reg: registers of the link, per lane.
 * @now_ns, @limit_ns, @watch_ns, @scan_ns: as in struct bl_sw_lane.
 * @promised: no message that takes its timestamp from now on gets less: the greatest barrier that
 *was ahead of the clock when it was made. Raised by compare-and-swap before the in-flight page is
 *read. Pairs with the library: in flight, full fence, read @promised.
 * @data_ns: when the last message left; lost updates of two CPUs do no harm.
 * @sent_commit: highest commit barrier that this host sent. It holds for ever, so it is what is
 *sent when the windows change too fast to be read.
 * @eps_lines: slots 0 to @eps_lines - 1 were ever an endpoint's: all that counts in the wake page
 *is there. Grows only. @eps_active: endpoints that are members now. Both are written by the daemon,
 *before it answers a newcomer and after a member has gone; lib/nic.c reads them.
 * @life: of the NIC as an input. @orders: as in struct bl_sw_lane. @barred: 1: what this host sends
 *promises no C, and its NIC does not join C; written by the program bl_fence.
 *
 * @barrier is written by the XDP program after the ring commit of the same frame. Pairs with the
 *library: read @barrier (acquire), then the ring.
 */
struct bl_host_page {
	__u64 barrier;
	__u64 commit;
	__u64 sent_barrier;
	__u64 now_ns;
	__u64 limit_ns;
	__u64 watch_ns;
	__u64 scan_ns;
	__u64 sends;
	struct bl_reg reg[BL_LANES_MAX];
	__u64 promised;
	__u64 data_ns;
	__u64 sent_commit;
	__u32 eps_lines;
	__u32 eps_active;
	struct bl_life life;
	__u64 orders;
	__u64 barred;
};
_Static_assert(sizeof(struct bl_host_page) == 384, "ABI");

/**
 * struct bl_wake - value 0 of "wake": who sleeps until which barrier. Written by processes and by
 *the XDP program.
 * @next: no sleeper waits for a barrier at or below it... the least of the @until below,
 *BL_TIME_NONE: nobody. Lowered by compare-and-swap on both sides, emptied by exchange before the
 *program scans: a sleeper is either seen by the scan or finds @next empty.
 * @ep: @until: the endpoint sleeps and wants to be woken when barrier > @until. BL_TIME_NONE:
 *awake. BL_WAKE_ON_DATA: it sleeps with nothing to deliver: the program lowers @until to the first
 *message's timestamp.
 *	@woken: times the program woke it.
 * @next_c, @until_c: the same for the commit barrier and prepared messages. BL_TIME_NONE in
 *@until_c also: it sleeps, but not for those.
 * @on_ack: 1: the endpoint sleeps until its reliable window moves. Set by the process, cleared by
 *the program that wakes it.
 * @nic_offered, @nic_queued, @nic_out: the account of the NIC's ring (lib/nic.c), in frames since
 *the page was made: that this endpoint, and those in its slot before it, have put into the ring or
 *are about to; that they have put into it; that the whole host's endpoints have put into it and
 *that have left it again, as far as this one knows. They never decrease, but for @nic_offered when
 *room was not granted. Written by the process; by the daemon (@nic_queued = @nic_offered) when that
 *has gone.
 * @senders: endpoints of other hosts that were given a window, of both streams. Written by the
 *process; 0, by the daemon, when that has gone.
 */
struct bl_wake {
	__u64 next;
	__u64 next_c;
	__u64 reserved[6];
	struct {
		__u64 until;
		__u64 woken;
		__u64 until_c;
		__u64 on_ack;
		__u64 nic_offered;
		__u64 nic_queued;
		__u64 nic_out;
		__u64 senders;
	} ep[BL_EPS_MAX];
};
_Static_assert(sizeof(struct bl_wake) == 64 + 64 * BL_EPS_MAX, "ABI");
#define BL_WAKE_ON_DATA (~0ULL - 1)

/**
 * struct bl_ep_slot - one endpoint: value (port - port_base) of "eps", which has BL_PORT_COUNT
 *values. Written by the daemon; the programs read it.
 * @active: enum bl_ep_state. BL_EP_ACTIVE is set last, cleared first.
 * @port: its UDP port, host order.
 * @slot: index in the in-flight page, the wake page and the rings.
 * @pid: in the daemon's pid namespace.
 * @start_time: of the process (field 22 of /proc/PID/stat), so that a reused pid is not mistaken
 *	for it. While @active is BL_EP_FREE: T of the life @left, until the rack has heard that it
 *left, so that a daemon that starts can say so; BL_EP_LEFT_NOW before T was taken; 0: it has heard.
 * @addr: IPv6 or IPv4-mapped address; all zero: any address of the host.
 * @name: of the process, NUL terminated.
 * @life: incarnation, chosen by the daemon: a PREP for another one is refused.
 * @left: the life that left this port in order before, 0: none. Programs answer PREPs and RECALLs
 *that are still on their way to it, since nobody else will; @addr is its address as long as @active
 *is BL_EP_FREE. Kept when the port is given to somebody else.
 * @reserved: must be zero.
 */
enum bl_ep_state {
	BL_EP_FREE,
	BL_EP_ACTIVE,
	BL_EP_DEAD, /* the process is gone or was put out: ACKs are still taken, nothing else */
};
#define BL_EP_LEFT_NOW (~0ULL)
struct bl_ep_slot {
	__u32 active;
	__u16 port;
	__u16 slot;
	__u32 pid;
	__u32 ring_bytes;
	__u64 start_time;
	__u8 addr[16];
	char name[16];
	__u16 life;
	__u16 left;
	__u16 reserved[2];
};
_Static_assert(sizeof(struct bl_ep_slot) == 64, "ABI");

/**
 * struct bl_rec - one frame in an endpoint's ring; the body follows. The record's room is one of
 * BL_REC_SMALL, BL_REC_FULL, BL_REC_JUMBO.
 * @ts: message timestamp, extended to 64 bits; 0 if the frame has none.
 * @psn, @opcode, @flags: from the header.
 * @saddr, @sport: the sender; sport in host order.
 * @len: bytes of body, bl_hdr not included.
 * @relayed: 1: it came by way of the controller (forward_abi.h).
 */
struct bl_rec {
	__u64 ts;
	__u32 psn;
	__u16 sport;
	__u8 opcode;
	__u8 flags;
	__u8 saddr[16];
	__u32 len;
	__u32 relayed;
};
_Static_assert(sizeof(struct bl_rec) == 40, "ABI");
#define BL_REC_SMALL 256  /* bodies up to 216 bytes */
#define BL_REC_FULL  1536 /* up to 1496: one frame of MTU 1500 */
#define BL_REC_JUMBO 3584 /* up to 3544: the largest that fits one XDP buffer of a 4 KiB page */
#define BL_BODY_MAX  (BL_REC_JUMBO - (int)sizeof(struct bl_rec))

/*
 * The daemon's socket (SOCK_SEQPACKET, BL_RUN_DIR/host-<netns>.sock). One request, one answer with
 * file descriptors (SCM_RIGHTS); the connection then stands for the life of the endpoint: when it
 * closes, the endpoint is gone. An endpoint of before the daemon's start has no connection, and
 * stays as long as its process; it may connect anew (struct bl_again_req).
 */
#define BL_SOCK_MAGIC 0x424c5351u
/*
 * instead of it in a struct bl_attach_req: only the map of TOP's hints (top_host_abi.h) is wanted,
 * as the one file descriptor; the connection is not kept
 */
#define BL_SOCK_HINTS 0x424c5348u
/**
 * struct bl_attach_req - wish for an endpoint.
 * @magic, @abi_version: BL_SOCK_MAGIC, BL_ABI_VERSION.
 * @port: UDP port wanted; 0: any free one.
 * @ring_bytes: 0: BL_RING_BYTES.
 * @family: AF_INET or AF_INET6: which address of the host the endpoint gets; 0: the first that the
 * host has.
 */
struct bl_attach_req {
	__u32 magic;
	__u32 abi_version;
	__u32 port;
	__u32 ring_bytes;
	__u32 family;
	__u32 reserved;
};
/**
 * struct bl_attach_rep - answer. @error: 0, or a positive errno with @message for people.
 * @slot, @port, @addr: the endpoint. @mtu: of the NIC, bytes of IP packet. @ifindex: of the NIC.
 * @beacon_ns: the beacon interval. @port_base, @port_count: the range. @life: the endpoint's
 * incarnation. File descriptors, in this order: BL_FD_*.
 */
struct bl_attach_rep {
	__u32 magic;
	__s32 error;
	__u32 slot;
	__u32 port;
	__u32 mtu;
	__u32 ifindex;
	__u16 port_base;
	__u16 port_count;
	__u32 ring_bytes;
	__u64 beacon_ns;
	__u8 addr[16];
	__u16 life;
	__u16 reserved[3];
	char message[160];
};
/**
 * struct bl_again_req - an endpoint whose daemon was replaced says to the next one which it is.
 * @magic: BL_SOCK_AGAIN.
 * @port, @life: of the endpoint. The daemon believes it if the process is the one that had
 * registered (by pid and start time) and the endpoint has no connection; then this one is it.
 */
#define BL_SOCK_AGAIN 0x424c5341u
struct bl_again_req {
	__u32 magic;
	__u32 abi_version;
	__u32 port;
	__u16 life;
	__u16 reserved;
};
_Static_assert(sizeof(struct bl_again_req) < sizeof(struct bl_attach_req), "the length tells them "
									   "apart");
/**
 * struct bl_again_rep - answer. @magic: BL_SOCK_AGAIN. @error: 0; EAGAIN: not now; else a positive
 * errno, for good: EPROTO another ABI version, ENOENT there is no such endpoint, ESTALE it was put
 * out, EBUSY it has a connection, EPERM it is another process's.
 */
struct bl_again_rep {
	__u32 magic;
	__s32 error;
};
enum bl_attach_fd {
	BL_FD_RING,
	BL_FD_INFLIGHT,
	BL_FD_HOST_PAGE,
	BL_FD_WAKE,
	BL_FD_CLOCK,
	BL_FD_WINDOWS,
	BL_FD_FAILURES,
	BL_FD_COUNT
};

#endif
