/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbarline: totally and causally ordered messages among the endpoints of a rack (1Pipe, SIGCOMM
 * 2021, Table 1). There are two streams, each ordered in itself: a best-effort stream and a
 * reliable stream.
 *
 *	struct bl_endpoint *ep;
 *
 *	if (bl_init(&ep, NULL))
 *		errx(1, "%s", bl_strerror(NULL));
 *
 *	struct bl_msg vec[2] = {
 *		{ .dst = a, .data = "x", .len = 1 },
 *		{ .dst = b, .data = "y", .len = 1 },
 *	};
 *	bl_send(ep, vec, 2, 0);			// one scattering: one timestamp at both
 *
 *	struct bl_delivery d[64];
 *	int n = bl_recv(ep, d, 64, -1);		// in the order that all receivers see
 *
 * Guarantees (docs/guarantees.md): any two endpoints that both deliver two messages deliver them in
 * the same order. A message that is sent after another message was delivered to its sender is
 * delivered after that message. Best effort: a lost message is reported to its sender's send_fail
 * callback and is never delivered late. Reliable: a scattering is delivered by all its receivers or
 * by none.
 *
 * Threads: an endpoint belongs to one thread at a time; callers that share an endpoint must lock.
 * Different endpoints are independent. Functions that any thread may call at any time say so.
 *
 * Blocking: bl_recv(), bl_recv_reliable(), bl_wait() and bl_peer_wait() sleep if they are called
 * with a timeout. bl_init(), bl_flow_hint() and bl_bus_clock_open() wait up to 5 s for the host's
 * daemon. A function that sends may block for up to 100 ms if the host's transmit queue does not
 * drain. No other function blocks. The library installs no signal handler and no timer, and starts
 * no thread except the one that bl_helper_start() asks for.
 *
 * Errors: functions of type int return 0 or a count, or a negative errno value. bl_strerror()
 * returns a sentence about the last failed call. -ESTALE may come from every call that uses an
 * endpoint; see bl_process().
 *
 * Times: timestamps are bus time, 64 bits, in nanoseconds (docs/protocol.md). Timeouts are in
 * milliseconds.
 */
#ifndef BARLINE_H
#define BARLINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BL_API              __attribute__((visibility("default")))
#define BARLINE_API_VERSION 1
#define BL_MESSAGE_MAX      (1u << 20) /* bytes in one message */
#define BL_SCATTER_MAX      1024       /* messages in one scattering */

struct bl_endpoint;

/** struct bl_addr - the address of an endpoint. */
struct bl_addr {
	uint8_t ip[16]; /* IPv6, or IPv4 as ::ffff:a.b.c.d; network order */
	uint16_t port;  /* UDP port; host order */
};

/**
 * bl_addr_parse - read an address such as "10.0.0.1:61700" or "[fd00::1]:61700".
 * Returns 0, or -EINVAL if @text is not an address with a port of 1 to 65535. Any thread.
 */
BL_API int bl_addr_parse(struct bl_addr *a, const char *text);

/**
 * bl_addr_format - write an address as text.
 * @buf: receives the text, cut to @size bytes including the final NUL. 64 bytes always suffice.
 * Returns @buf. Any thread.
 */
BL_API char *bl_addr_format(const struct bl_addr *a, char *buf, size_t size);

/** struct bl_options - options of bl_init(). A member of 0 or NULL selects the default. */
struct bl_options {
	uint16_t port; /* UDP port; default: a free port of barline's range */
	/*
	 * Bytes of the ring that the kernel fills, a power of two from 64 KiB to 64 MiB; default:
	 * 512 KiB. It bounds what senders may have outstanding.
	 */
	uint32_t ring_bytes;
	/*
	 * Bytes of large messages (those that do not fit one frame) that may wait for windows
	 * before bl_send() returns -EAGAIN; default: 4 MiB. Small messages are bounded by the
	 * frames that may wait per destination: about three quarters of its window, at most 44.
	 */
	uint32_t send_buffer;
	int family;              /* AF_INET or AF_INET6; default: the host's first address */
	const char *socket_path; /* daemon's socket; default: that of this network namespace */
};

/**
 * bl_init - make this process an endpoint of the host.
 * @ep: receives the endpoint; NULL on failure.
 * @opt: options; may be NULL.
 * Returns 0, or
 *	-ENOENT      there is no host daemon in this network namespace;
 *	-EADDRINUSE  the port is taken;
 *	-ENOSPC      all endpoint slots of the host are in use;
 *	-EPROTO      library and daemon are of different versions;
 *	-ETIMEDOUT   the daemon has not answered for 5 s;
 *	-ETIME       the host's clock is void;
 *	-ESHUTDOWN   the host is drained; `barline host undrain` ends that;
 *	-ENOTSUP     this process is in a time namespace that shifts CLOCK_MONOTONIC;
 *	-ENOMEM, or another errno of a system call that failed.
 * bl_strerror(NULL) returns the sentence about a failure. The process must not change its time
 * namespace afterwards. Any thread.
 */
BL_API int bl_init(struct bl_endpoint **ep, const struct bl_options *opt);

/**
 * bl_exit - leave the rack and free the endpoint.
 * @ep: may be NULL.
 *
 * Messages that wait are sent if their windows are open. Messages that were not delivered are
 * dropped. Senders of best-effort messages are told which ones were delivered, and which of those
 * that had arrived were not (BL_FAIL_LEFT). An endpoint that has no unacknowledged reliable
 * messages (BL_WAIT_ACKED) leaves in order; otherwise the others treat it as failed. Does not wait
 * for the daemon: the present or the next one reads from shared memory that the endpoint has left.
 * In a child of fork() the endpoint of the parent is not affected.
 */
BL_API void bl_exit(struct bl_endpoint *ep);

/** bl_self - the address of this endpoint; valid until bl_exit(). */
BL_API const struct bl_addr *bl_self(const struct bl_endpoint *ep);

/**
 * bl_get_timestamp - the present bus time.
 * Returns ns, or 0 if the clock is void because no daemon has kept it for too long. A message that
 * is sent later may get a timestamp that is later by up to one and a half beacon intervals, since
 * the host may have promised ahead.
 */
BL_API uint64_t bl_get_timestamp(const struct bl_endpoint *ep);

/* What is known of the clock (struct bl_bus_time.state). */
#define BL_BUS_VOID     0u /* nothing: bus time must not be used */
#define BL_BUS_SYNCED   1u /* the clock's source calls it synchronised; the bound is measured */
#define BL_BUS_HOLDOVER 2u /* not any more: the bound grows until the clock is void */
#define BL_BUS_TRUSTED  3u /* the bound is what the operator has configured; nothing measures it */

/**
 * struct bl_bus_time - one reading of the host's clock. At the moment of the reading true time, as
 * CLOCK_TAI of a perfect clock would have it, was between @bus_ns - @bound_ns and @bus_ns +
 * @bound_ns. So of two events at different hosts, the one whose interval ends before the other's
 * begins was first.
 */
struct bl_bus_time {
	size_t size;            /* set by the caller: sizeof(struct bl_bus_time) */
	uint64_t bus_ns;        /* bus time, ns; 0 if the clock is void */
	uint64_t bound_ns;      /* greatest error of @bus_ns, ns; UINT64_MAX if the clock is void */
	uint64_t mono_ns;       /* CLOCK_MONOTONIC of the reading, ns */
	uint64_t void_after_ns; /* CLOCK_MONOTONIC at which the clock becomes void unless renewed */
	int32_t tai_offset_s;   /* TAI - UTC as this host has it, seconds */
	uint32_t state;         /* BL_BUS_* */
};

/**
 * bl_get_bus_time - read the clock of the endpoint's host.
 * @t: filled in.
 * Never goes back from one reading to the next, whoever sets the system clock. Returns 0, or
 *	-ETIME   the clock is void (barline show clock says why); @mono_ns, @void_after_ns and
 *		 @tai_offset_s are filled in;
 *	-EAGAIN  the daemon was interrupted while it wrote the record; read again;
 *	-EINVAL  @t->size is wrong.
 * Any thread. Takes no system call where clock_gettime() takes none.
 */
BL_API int bl_get_bus_time(const struct bl_endpoint *ep, struct bl_bus_time *t);

/** struct bl_bus_clock - the clock of a host, for a process that is no endpoint. */
struct bl_bus_clock;

/**
 * bl_bus_clock_open - map the clock record of the host for reading.
 * @c: receives the clock; NULL on failure.
 * @socket_path: the daemon's socket; NULL: that of this network namespace.
 * The record outlives the daemon. Once the host is detached it is void for ever: close it, and open
 * that of the next daemon. The process, and children of fork() that read it, must not change their
 * time namespace afterwards. Returns 0, or -ENOENT, -EPROTO, -ETIMEDOUT, -ENOTSUP or -ENOMEM as
 * bl_init(), or another -errno; bl_strerror(NULL) returns the sentence about -ENOTSUP. Any thread.
 */
BL_API int bl_bus_clock_open(struct bl_bus_clock **c, const char *socket_path);

/** bl_bus_clock_read - bl_get_bus_time() for a clock that was opened. Any thread. */
BL_API int bl_bus_clock_read(const struct bl_bus_clock *c, struct bl_bus_time *t);

/** bl_bus_clock_close - unmap the record. @c may be NULL. No thread may read it any more. */
BL_API void bl_bus_clock_close(struct bl_bus_clock *c);

/** struct bl_msg - one message of a scattering. */
struct bl_msg {
	struct bl_addr dst; /* receiver; the endpoint's own address is allowed */
	const void *data;   /* copied before the call returns */
	uint32_t len;       /* bytes, 0 to BL_MESSAGE_MAX */
	uint64_t cookie;    /* passed to the send_fail callback */
};

/*
 * Flag of bl_send() and bl_send_reliable(): more follows at once. The scattering may be held back
 * to share a frame with the next one, until bl_flush(), a send without BL_MORE, or a full frame.
 */
#define BL_MORE 1u

/**
 * bl_send - send one scattering, best effort: messages that get one timestamp.
 * @vec: messages.
 * @n: number of messages, 1 to BL_SCATTER_MAX.
 * @flags: 0 or BL_MORE.
 *
 * The scattering is accepted as a whole or not at all. It waits while the receive window of any of
 * its destinations, or of a destination of an earlier scattering, is closed (1Pipe section 6.1).
 * Its timestamp is taken when it leaves; scatterings that leave together share a timestamp and are
 * delivered in the order in which they were sent.
 *
 * Returns 0, or
 *	-EAGAIN    the send buffer is full; wait with bl_wait(ep, BL_WAIT_SEND, ...);
 *	-EMSGSIZE  a message is longer than BL_MESSAGE_MAX, or the scattering has more than 44
 *		   frames for one destination, or more than send_buffer bytes in large messages;
 *		   waiting does not help;
 *	-EINVAL    an argument is wrong. So is a destination that no ordered message can reach: a
 *		   port outside of the host's range, an unspecified, multicast, broadcast or
 *		   loopback address, or one of another family than bl_self();
 *	-EHOSTUNREACH  there is a bl_on_peer() callback, and a destination has not answered;
 *	-ETIME     the clock is void. Nothing is sent, since the timestamp could be wrong;
 *	-ESTALE    the endpoint is out;
 *	-ESHUTDOWN the host is being drained (`barline host drain`), and sends nothing new. What
 *		   arrives is delivered until all that was sent is acknowledged or reported; then
 *		   the endpoint is out. bl_exit() ends it earlier;
 *	-ENOMEM.
 * A message to a destination without a route is reported to the send_fail callback.
 */
BL_API int bl_send(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags);

/**
 * bl_flush - send what BL_MORE held back of both streams, as far as windows allow.
 * Returns 0, also if windows are closed; -ETIME or -ESTALE as bl_send().
 */
BL_API int bl_flush(struct bl_endpoint *ep);

/*
 * Flag of struct bl_flow_hint: the host retransmits lost datagrams, and each datagram is delivered
 * once. Not for TCP, which retransmits by itself.
 */
#define BL_FLOW_RESEND 1u

/**
 * struct bl_flow_hint - what an application knows about a flow that it is about to send through
 * bl0, for admission policy top (docs/top.md). All members 0: nothing is known.
 */
struct bl_flow_hint {
	uint64_t bytes;       /* size of the flow; 0: unknown */
	uint32_t deadline_us; /* deadline in us after the flow's first frame; 0: none */
	uint32_t coflow;      /* a number that all flows of one job share; 0: none */
	uint32_t flags;       /* BL_FLOW_* */
	uint32_t reserved;    /* must be 0 */
};

/**
 * bl_flow_hint - tell the host about the flow that connected socket @fd is about to send.
 * Needs no endpoint. Call it before the first byte is sent: a flow keeps the hint it started with
 * until it has been idle for idle_us. Hints are advice: the host has 1024 places for them, by hash,
 * and a flow whose hint was displaced by another one counts as unknown.
 * Returns 0, or
 *	-ENOTCONN      @fd is not connected;
 *	-EAFNOSUPPORT  @fd is neither an IPv4 nor an IPv6 socket;
 *	-EINVAL        unknown flags, or @reserved is not 0;
 *	-ENOENT        there is no host daemon in this network namespace;
 *	-EPROTO        library and daemon are of different versions;
 *	-ETIMEDOUT     the daemon has not answered for 5 s;
 *	-EBUSY         another process is writing the same place;
 *	or another errno of a system call that failed. Any thread.
 */
BL_API int bl_flow_hint(int fd, const struct bl_flow_hint *hint);

/**
 * struct bl_delivery - one delivered message. @data is valid until the next call, on the same
 * endpoint, of the function that delivered the message (bl_recv() or bl_recv_reliable()), or until
 * bl_exit(). Other calls do not end this: neither the function of the other stream nor bl_process()
 * nor bl_wait().
 */
struct bl_delivery {
	uint64_t ts;        /* timestamp, ns */
	struct bl_addr src; /* sender */
	const void *data;
	uint32_t len; /* bytes */
};

/**
 * bl_recv - deliver messages of the best-effort stream in the total order (1Pipe section 4.1).
 * @out: receives up to @max deliveries; @max is at least 1.
 * @timeout_ms: 0: do not block; -1: no limit; > 0: milliseconds.
 * Returns the number of deliveries; 0 on timeout; -EINTR if a signal handler interrupted the sleep;
 * -EINVAL if @max is 0; -ESTALE; or the error that ended the helper thread.
 */
BL_API int bl_recv(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms);

/**
 * bl_fd - a file descriptor for poll() and epoll, level-triggered. It is readable when bl_process()
 * has something to do, and stays readable as long as the last bl_process() found messages. Call
 * bl_process() once before the first wait, since bl_process() arms the wake-up. The descriptor
 * belongs to the library; do not read or close it.
 */
BL_API int bl_fd(const struct bl_endpoint *ep);

/**
 * bl_process - do what is due: take in frames, credits and failures (callbacks run here), send what
 * windows allow, and arm the wake-up of bl_fd(). Does not sleep.
 * Returns the number of messages that bl_recv(ep, ..., 0) and bl_recv_reliable(ep, ..., 0) can
 * deliver now, which may be too low and stops at 64 for each stream; or a negative errno.
 *
 * -ESTALE, from this and every other call, means that the endpoint is out: its host has expelled it
 * (bl_strerror() says why), or it uses the reliable stream and was announced as failed. Start again
 * with bl_exit() and bl_init(). Before bl_recv_reliable() returns -ESTALE it delivers the messages
 * that are certain; these are counted here.
 */
BL_API int bl_process(struct bl_endpoint *ep);

/* Conditions of bl_wait(). */
#define BL_WAIT_SEND          1u  /* nothing waits for windows: a scattering is accepted */
#define BL_WAIT_RECV          2u  /* a message can be delivered */
#define BL_WAIT_SEND_RELIABLE 4u  /* reliable: the last scattering has left as a whole */
#define BL_WAIT_RECV_RELIABLE 8u  /* reliable: a message can be delivered */
#define BL_WAIT_ACKED         16u /* reliable: receivers have stored everything that was sent */
/*
 * Best effort: of everything that was sent, each message has been taken by its receiver's process,
 * or a report of it has come, or none can come any more. The receiver answers within 25 ms of
 * having taken the last one.
 */
#define BL_WAIT_CREDITED 32u

/**
 * bl_wait - sleep until a condition holds, and do meanwhile what bl_process() does.
 * @what: one or more of BL_WAIT_*.
 * @timeout_ms: as for bl_recv().
 * Returns those bits of @what that hold; 0 on timeout; -EINTR, -EINVAL, -ESTALE, or the error that
 * ended the helper thread.
 */
BL_API int bl_wait(struct bl_endpoint *ep, unsigned int what, int timeout_ms);

/** enum bl_fail_reason - why a message was not delivered (maps/wire_abi.h BL_NAKS). */
enum bl_fail_reason {
	BL_FAIL_LATE = 1,    /* it arrived below a timestamp that was already delivered */
	BL_FAIL_LOST,        /* a gap in the sequence numbers */
	BL_FAIL_INCOMPLETE,  /* parts of a large message were lost */
	BL_FAIL_NO_MEMORY,   /* the receiver could not store it */
	BL_FAIL_UNREACHABLE, /* it has not left, or the network refused it: no answer comes */
	BL_FAIL_MALFORMED,   /* the receiver could not parse it */
	BL_FAIL_FAILED,      /* reliable: a receiver failed, and nobody delivers the scattering */
	BL_FAIL_UNKNOWN,     /* it has left, and no answer came: it may have been delivered */
	BL_FAIL_LEFT,        /* the receiver left by bl_exit() and had not delivered it */
};

/**
 * bl_send_fail_fn - the send_fail callback: one message was not delivered.
 * @ts: timestamp of the message; 0: it never left.
 * @dst, @cookie: from its struct bl_msg.
 * @why: with BL_FAIL_UNKNOWN the message may have been delivered.
 */
typedef void (*bl_send_fail_fn)(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
				enum bl_fail_reason why);

/**
 * bl_on_send_fail - set the send_fail callback (1Pipe Table 1). Set it before the first send.
 * @fn: NULL: no callback. @ctx: passed to @fn.
 *
 * The callback runs inside bl_process(), bl_recv(), bl_recv_reliable() or bl_wait(), and may call
 * the library, but not bl_exit(). In the best-effort stream a report that is itself lost is not
 * repeated, so silence does not prove delivery.
 */
BL_API void bl_on_send_fail(struct bl_endpoint *ep, bl_send_fail_fn fn, void *ctx);

/**
 * bl_proc_fail_fn - the proc_fail callback: a process has failed or left.
 * @who: address of the process; port 0: all endpoints of that IP address.
 * @ts: failure timestamp. Everything that the process sent reliably below @ts is delivered, and
 *	nothing from @ts on.
 */
typedef void (*bl_proc_fail_fn)(void *ctx, const struct bl_addr *who, uint64_t ts);

/**
 * bl_on_proc_fail - set the proc_fail callback (1Pipe Table 1, section 5.2).
 * @fn: NULL: no callback. @ctx: passed to @fn.
 *
 * The callback runs inside bl_process(), bl_recv(), bl_recv_reliable() or bl_wait(), once for each
 * process or host that has failed, and before this endpoint's bl_recv_reliable() delivers a message
 * at or above @ts. If the host has several addresses, @who has the one at which this endpoint has
 * exchanged messages with it (if it did so at several, the callback runs for each of these), or the
 * first one of this endpoint's family, IPv4 or IPv6. Messages below @ts may still be delivered
 * after the callback. Scatterings of this endpoint that waited for the failed process have been
 * recalled, and reported to the send_fail callback (BL_FAIL_FAILED), before the callback runs.
 *
 * @who is the process that used the port until the failure; @ts does not apply to a later owner of
 * the port.
 *
 * The callback also runs for processes that left by bl_exit(); bl_on_proc_gone() tells them apart.
 * No endpoint waits for the announcement of such a leave, so others may have delivered messages at
 * or above @ts before they heard of it.
 */
BL_API void bl_on_proc_fail(struct bl_endpoint *ep, bl_proc_fail_fn fn, void *ctx);

/**
 * enum bl_gone_reason - why a process is gone (maps/failure_abi.h BL_GONES). Later versions may add
 * reasons.
 */
enum bl_gone_reason {
	BL_GONE_UNKNOWN,     /* the reason is not known */
	BL_GONE_LEFT,        /* it left by bl_exit(), and everything it had sent was acknowledged */
	BL_GONE_DIED,        /* its process ended, or left with unacknowledged messages */
	BL_GONE_IN_FLIGHT,   /* expelled by its host: it stopped in the middle of a send */
	BL_GONE_WINDOW,      /* expelled: it stopped while others waited for what it had sent */
	BL_GONE_RING,        /* expelled: it did not read what had arrived */
	BL_GONE_UNREACHABLE, /* expelled: frames to it did not arrive, and nothing else had failed
			      */
	BL_GONE_CUT_OFF,     /* its host lost its last link to the network */
	BL_GONE_DOWN,        /* its host, or the path to it, did not answer */
	BL_GONE_TORN,        /* no path of barriers was left between it and a correct host */
};

/** bl_proc_gone_fn - as bl_proc_fail_fn, with the reason. */
typedef void (*bl_proc_gone_fn)(void *ctx, const struct bl_addr *who, uint64_t ts,
				enum bl_gone_reason why);

/**
 * bl_on_proc_gone - set a callback that runs when the proc_fail callback does, and also gets the
 * reason. If both are set, this one runs second. The rules of bl_on_proc_fail() apply.
 */
BL_API void bl_on_proc_gone(struct bl_endpoint *ep, bl_proc_gone_fn fn, void *ctx);

/** struct bl_pending - what is outstanding at one destination, for bl_get_pending(). */
struct bl_pending {
	struct bl_addr dst;
	uint32_t frames; /* of both streams, sent or waiting for windows */
	/*
	 * Messages in these; 0 for those of a best-effort stream without a send_fail callback. Of a
	 * large message, only its last frame counts.
	 */
	uint32_t messages;
	uint64_t cookie; /* the least cookie of these messages */
};

/**
 * bl_get_pending - tell which destinations have neither taken (best effort) or stored (reliable)
 * everything that was sent to them, nor been reported to the send_fail callback.
 * @out: receives up to @max of them; may be NULL if @max is 0.
 * Returns how many there are, which may be more than @max; 0 while BL_WAIT_CREDITED and
 * BL_WAIT_ACKED hold.
 */
BL_API int bl_get_pending(struct bl_endpoint *ep, struct bl_pending *out, size_t max);

/**
 * bl_peer_wait - wait until another endpoint can be reached: it exists and answers.
 * @peer: its address.
 * @timeout_ms: as for bl_recv().
 *
 * The peer is asked again and again, soon at first and then once a second, and bl_process() is done
 * meanwhile. An answer of the last second counts. Returns 0 once the peer has answered, or
 *	-ETIMEDOUT  it has not answered in time: no endpoint is there, its process is stopped, or
 *		    the network does not reach it;
 *	-EAGAIN     the same if @timeout_ms is 0; the peer was asked;
 *	-EINVAL     @peer has no address or no port;
 *	-EINTR, -ENOMEM, -ESTALE, or the error that ended the helper thread.
 */
BL_API int bl_peer_wait(struct bl_endpoint *ep, const struct bl_addr *peer, int timeout_ms);

/** enum bl_peer_event - what has happened to a peer. Later versions may add events. */
enum bl_peer_event {
	BL_PEER_JOINED = 1, /* a process answers that has not answered at this address before */
	BL_PEER_BACK,       /* the process that was lost answers again */
	BL_PEER_LOST,       /* it does not answer any more, or was announced as failed */
};

/**
 * bl_peer_fn - the peer callback: a peer can be reached now, or not any more.
 * @who: its address.
 * @what: the events of one address alternate: BL_PEER_JOINED or BL_PEER_BACK, then BL_PEER_LOST.
 */
typedef void (*bl_peer_fn)(void *ctx, const struct bl_addr *who, enum bl_peer_event what);

/**
 * bl_on_peer - follow the peers, and refuse scatterings to those that are not there. Set it before
 * the first send.
 * @fn: NULL: no callback. @ctx: passed to @fn.
 *
 * With a callback, an endpoint sends only to peers that have answered. A scattering with another
 * destination returns -EHOSTUNREACH from bl_send() and bl_send_reliable(): it was not accepted, and
 * nothing of it is reported to the send_fail callback. Its absent destinations are asked until they
 * answer, and then the callback runs once with BL_PEER_JOINED or BL_PEER_BACK. So call
 * bl_peer_wait() for each member of the group first, or begin to send to a member at its
 * BL_PEER_JOINED.
 *
 * A process that takes the place of another one at the same address is told by BL_PEER_LOST (if
 * that was not told before) and BL_PEER_JOINED: it has nothing of what its predecessor was sent.
 * After BL_PEER_BACK the process has what it had; what was sent to it while it was being lost was
 * reported to the send_fail callback.
 *
 * A loss is noticed at once by an announcement of the controllers. Without one it is noticed when a
 * best-effort message, or the question for a window, remains without an answer for two seconds; a
 * reliable message that has left is retransmitted without limit. An idle peer is not asked. The
 * callback runs inside bl_process(), bl_recv(), bl_recv_reliable(), bl_wait() or bl_peer_wait(),
 * after the send_fail and proc_fail callbacks that are due, and may call the library, but not
 * bl_exit(). Peers beyond 4096 are forgotten, without an event, after two minutes in which nothing
 * was sent to them.
 */
BL_API void bl_on_peer(struct bl_endpoint *ep, bl_peer_fn fn, void *ctx);

/** struct bl_stats - counters of one endpoint since bl_init(), for bl_get_stats(). */
struct bl_stats {
	uint32_t size;               /* set by the caller: sizeof(struct bl_stats) */
	uint32_t peers;              /* remote endpoints known now */
	uint64_t scatterings;        /* accepted by bl_send() and bl_send_reliable() */
	uint64_t messages_sent;      /* messages in these */
	uint64_t frames_sent;        /* data frames of both streams, retransmissions included */
	uint64_t messages_delivered; /* best effort */
	uint64_t frames_received;    /* of any kind */
	uint64_t late_dropped;       /* frames below the last delivery: dropped and NAKed */
	uint64_t duplicates;         /* frames with a sequence number that was seen before */
	uint64_t lost_frames;        /* gaps in the sequence numbers */
	uint64_t malformed;          /* frames that could not be parsed */
	uint64_t send_failed;        /* messages reported by send_fail */
	uint64_t again;              /* sends that returned -EAGAIN */
	uint64_t credits_sent, credits_received, probes_sent, naks_sent; /* control frames */
	uint64_t barrier;            /* last barrier seen; timestamp */
	uint64_t queued_frames;      /* in the reorder queue now */
	uint64_t sleeps, wakeups;    /* of bl_wait(), bl_recv() and bl_recv_reliable() */
	uint64_t reliable_delivered; /* messages */
	uint64_t retransmits;        /* reliable frames that were sent again */
	uint64_t commit;             /* last commit barrier seen; timestamp */
	uint64_t prepared_frames;    /* frames that wait for the commit barrier now */
	uint64_t discarded;          /* frames of failed senders that were not delivered */
	uint64_t recalls_sent;       /* frames that ask receivers to drop a scattering */
	uint64_t recalled;           /* RECALLs of other senders that this endpoint carried out */
	uint64_t forwarded;          /* frames given to the daemon, for the controller to forward */
	/*
	 * Frames that no correct sender can have sent: a sequence number beyond every window, a
	 * recall of what was committed, an answer to what was not sent, or a life beside one that
	 * is proved and has not ended.
	 */
	uint64_t refused;
	uint64_t reconnects; /* times that a newly started daemon took this endpoint over */
	/*
	 * What the endpoint holds for remote endpoints. A stranger is a peer that has sent, but has
	 * not proved that it is at the address from which its frames come.
	 */
	uint32_t strangers; /* now; at most 64 */
	uint32_t senders;   /* now; those that share the windows, counted per stream */
	uint64_t memory;    /* now; bytes of received frames and messages, and of peers */
	/* limit of @memory, in bytes, except for peers that the application sends to */
	uint64_t memory_max;
	uint64_t no_room; /* frames refused because such a limit was reached */
	/* frames of strangers, and refused frames, that exceeded the rate of answers */
	uint64_t unanswered;
	/*
	 * Control frames that did not leave because the ring of the NIC, which endpoints of the
	 * host share, was full. The side that needs them has them repeated.
	 */
	uint64_t ring_full;
	uint64_t sent_ts; /* timestamp of the last scattering that has left; 0: none has */
};

/**
 * bl_get_stats - read the counters.
 * Returns 0, or -EINVAL if @st->size is not sizeof(struct bl_stats).
 */
BL_API int bl_get_stats(const struct bl_endpoint *ep, struct bl_stats *st);

/**
 * bl_strerror - a sentence about the last failed call.
 * @ep: the endpoint; NULL: the last bl_init() of this thread.
 * Returns text that is valid until the next call on the endpoint, or the thread's next bl_init().
 */
BL_API const char *bl_strerror(const struct bl_endpoint *ep);

/**
 * bl_send_reliable - send one scattering reliably (1Pipe section 5): all its receivers deliver it,
 * or none does, in the one order of the reliable stream, whatever the network loses. Arguments and
 * results are those of bl_send(); wait for BL_WAIT_SEND_RELIABLE after -EAGAIN. Scatterings that
 * leave in one flush (BL_MORE, or while windows are closed) share a timestamp and are delivered
 * together or not at all.
 *
 * A message is delivered when the sender's host has acknowledgements of all frames of the
 * scattering and every host has heard of that, which takes one round trip more than bl_send(). Lost
 * frames are retransmitted inside bl_process(), bl_recv(), bl_recv_reliable() and bl_wait(), so a
 * process that has sent must keep calling one of them until BL_WAIT_ACKED holds. Until then no
 * endpoint in the rack delivers reliable messages with later timestamps. A process that ends before
 * has failed.
 *
 * The first message to a destination waits for the destination's answer. If there is none,
 * everything that is staged fails (BL_FAIL_UNREACHABLE); none of it has left.
 */
BL_API int bl_send_reliable(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			    unsigned int flags);

/**
 * bl_helper_start - start a thread that works for the endpoint while the application does not call
 * the library, because it computes, waits for a disk, or collects garbage.
 * @bytes: memory limit for messages that the thread takes out of the ring; 0: 64 MiB.
 *
 * The thread takes messages out of the ring, returns credits for them, retransmits, and carries out
 * recalls. So other processes continue at their rate, and the host does not put this process out
 * for being silent, as long as the messages since the last call fit into @bytes. Beyond that the
 * endpoint behaves as without a helper. The next calls deliver what the thread has taken out, in
 * order. The helper does not help a process that is stopped as a whole (SIGSTOP, a debugger).
 *
 * The endpoint still belongs to one thread at a time; the helper and that thread exclude each other
 * by a lock, which each call takes and which is rarely contended (docs/reliable.md has figures).
 * Callbacks run only in the application's calls, never in the helper, and the data of deliveries
 * stays valid as without a helper. The thread blocks all signals. bl_exit() stops it. A child of
 * fork() has no helper. If an error ends the helper, the next bl_process(), bl_wait(), bl_recv() or
 * bl_recv_reliable() returns that error, once.
 * Returns 0; -EALREADY if there is a helper; -EAGAIN, -ENOMEM, -EMFILE or another errno of the
 * system.
 */
BL_API int bl_helper_start(struct bl_endpoint *ep, uint64_t bytes);

/**
 * bl_helper_stop - end the helper. What it has taken out is still delivered. Must not be called
 * from within a callback. No-op if there is no helper.
 */
BL_API void bl_helper_stop(struct bl_endpoint *ep);

/**
 * bl_recv_reliable - deliver messages of the reliable stream in its total order (1Pipe section 5).
 * Arguments and results are those of bl_recv(). Each stream is ordered in itself; the order of a
 * message of one stream and a message of the other is not defined. If the endpoint is out, it first
 * delivers the messages that had arrived and are certain, and then returns -ESTALE; other calls
 * return -ESTALE at once. bl_get_stale() tells how far it came.
 */
BL_API int bl_recv_reliable(struct bl_endpoint *ep, struct bl_delivery *out, size_t max,
			    int timeout_ms);

/** struct bl_stale - how far an endpoint that is out came, for bl_get_stale(). */
struct bl_stale {
	uint32_t size;      /* set by the caller: sizeof(struct bl_stale) */
	uint32_t undecided; /* messages that bl_recv_undecided() can deliver now */
	/* Every reliable message for this endpoint below @ts was delivered, none from @ts on. */
	uint64_t ts;
};

/**
 * bl_get_stale - tell how far the endpoint came, after bl_recv_reliable() has returned -ESTALE.
 * To catch up, a replica takes from another replica the messages that were delivered there from @ts
 * on, or a state that belongs to a later timestamp.
 * Returns 0; -EAGAIN if bl_recv_reliable() has not returned -ESTALE yet; -EINVAL if @s->size is
 * wrong.
 */
BL_API int bl_get_stale(const struct bl_endpoint *ep, struct bl_stale *s);

/**
 * bl_recv_undecided - deliver the messages that had arrived with timestamps from struct bl_stale's
 * @ts on, in the order of the stream, after bl_recv_reliable() has returned -ESTALE.
 * @out: receives up to @max deliveries, valid as those of bl_recv_reliable().
 * Each of these messages is delivered by all its other receivers or by none, and this endpoint
 * cannot know which, since its sender may have recalled it. Messages that are known to be recalled,
 * or whose sender had failed, are not delivered.
 * Returns the number of deliveries; 0 if there are no more; -EAGAIN as bl_get_stale().
 */
BL_API int bl_recv_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);

#ifdef __cplusplus
}
#endif
#endif
