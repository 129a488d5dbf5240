/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbarline: totally ordered, causally ordered messages among the endpoints of a rack (1Pipe,
 * SIGCOMM 2021, Table 1): a best-effort stream and a reliable one.
 *
 *	struct bl_endpoint *ep;
 *	if (bl_init(&ep, NULL))
 *		err(1, "bl_init");
 *	struct bl_msg vec[2] = { { .dst = a, .data = "x", .len = 1 },
 *				 { .dst = b, .data = "y", .len = 1 } };
 *	bl_send(ep, vec, 2, 0);			// one scattering: one timestamp at both
 *	struct bl_delivery d[64];
 *	int n = bl_recv(ep, d, 64, -1);		// in the order that all receivers see
 *
 * The promise (docs/guarantees.md): any two endpoints that both deliver two messages deliver them
 * in the same order; a message that was sent after another one was delivered is delivered after
 * that one. Best effort: a lost message is reported to its sender's send_fail callback and never
 * delivered late.
 *
 * Threads: an endpoint belongs to one thread at a time. Different endpoints are independent. Of the
 * calls on an endpoint only bl_recv(), bl_recv_reliable() and bl_wait() with a timeout sleep; a
 * send may wait up to 100 ms for a transmit queue that is stuck. The library has no signal handler
 * and no timer of its own, and no thread but the one that bl_helper_start() asks for.
 *
 * Errors: functions return 0 or a count, or a negative errno; bl_strerror() of the endpoint gives
 * the sentence for people. Times: nanoseconds; timestamps are bus time, 64 bits, see
 * docs/protocol.md.
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

/**
 * struct bl_addr - an endpoint's address.
 * @ip: IPv6, or IPv4 as ::ffff:a.b.c.d; network order.
 * @port: UDP port, host order.
 */
struct bl_addr {
	uint8_t ip[16];
	uint16_t port;
};

/** bl_addr_parse - read "10.0.0.1:61700" or "[fd00::1]:61700". Returns 0 or -EINVAL. Any thread. */
BL_API int bl_addr_parse(struct bl_addr *a, const char *text);
/**
 * bl_addr_format - write the address as text: at most @size bytes, NUL included; 64 are always
 * enough.
 * Returns @buf. Any thread.
 */
BL_API char *bl_addr_format(const struct bl_addr *a, char *buf, size_t size);

/**
 * struct bl_options - for bl_init(); all zero: the defaults.
 * @port: UDP port of the endpoint; 0: a free one of barline's range.
 * @ring_bytes: size of the ring that the kernel fills, a power of two; 0: 512 KiB. It also bounds
 *	what senders may have outstanding.
 * @send_buffer: bytes of large messages (more than a frame) that may wait for windows before
 *	bl_send() returns -EAGAIN; 0: 4 MiB. Small messages wait in frames, as many per destination
 *	as its window has.
 * @family: AF_INET, AF_INET6, or 0: the host's first address.
 * @socket_path: the host daemon's socket; NULL: that of this network namespace.
 */
struct bl_options {
	uint16_t port;
	uint32_t ring_bytes;
	uint32_t send_buffer;
	int family;
	const char *socket_path;
};

/**
 * bl_init - become an endpoint of this host.
 * Returns 0; -ENOENT there is no host daemon in this network namespace; -EADDRINUSE the port is
 * taken; -ENOSPC all endpoint slots are in use; -EPROTO the daemon has another ABI version;
 * -ETIMEDOUT the daemon has not answered for 5 s. On failure *@ep is NULL and bl_strerror(NULL) has
 * the sentence (of this thread).
 */
BL_API int bl_init(struct bl_endpoint **ep, const struct bl_options *opt);

/**
 * bl_exit - leave. Unsent messages are flushed if their windows are open; undelivered ones are
 * dropped. Senders of best-effort messages are told what was delivered, and what came and was not
 * delivered (BL_FAIL_LEFT). NULL is allowed. It does not wait for the host's daemon: whoever is
 * that, now or later, hears that the endpoint left. In a child of fork() it says nothing of that.
 */
BL_API void bl_exit(struct bl_endpoint *ep);

/** bl_self - this endpoint's address. */
BL_API const struct bl_addr *bl_self(const struct bl_endpoint *ep);

/**
 * bl_get_timestamp - bus time now, ns; 0 if the clock is void (no daemon for too long). A message
 * that is sent now may get a later timestamp, since the host may have promised ahead.
 */
BL_API uint64_t bl_get_timestamp(const struct bl_endpoint *ep);

/**
 * struct bl_msg - one message of a scattering.
 * @dst: receiver. Its own address is allowed.
 * @data, @len: 0 to BL_MESSAGE_MAX bytes; copied before bl_send() returns.
 * @cookie: handed to the send_fail callback.
 */
struct bl_msg {
	struct bl_addr dst;
	const void *data;
	uint32_t len;
	uint64_t cookie;
};

/*
 * More follows at once: the scattering may be held back to share a frame with the next one, until
 * bl_flush(), a send without BL_MORE, or a full frame.
 */
#define BL_MORE 1u

/**
 * bl_send - send one scattering, best effort: @n messages with one timestamp, taken when it leaves.
 * Either all of it is accepted or nothing. A message is held while the receive window of any
 * destination of the scatterings before it is closed (1Pipe 6.1).
 * Returns 0; -EAGAIN the send buffer is full: bl_wait(ep, BL_WAIT_SEND, ...); -EMSGSIZE a message,
 * or what the scattering has for one destination (44 frames), is too large: waiting would not help;
 * -EINVAL an argument is wrong; -ETIME the clock is void: nothing is sent, since it could get a
 * wrong timestamp. A destination without a route is reported to the send_fail callback.
 */
BL_API int bl_send(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags);

/**
 * bl_flush - send what BL_MORE held back of both streams, as far as windows allow. Returns 0 or as
 * bl_send().
 */
BL_API int bl_flush(struct bl_endpoint *ep);

/*
 * The host sends again what gets lost, and each datagram is delivered once. Not for TCP, which does
 * that itself.
 */
#define BL_FLOW_RESEND 1u
/**
 * struct bl_flow_hint - what an application knows of a flow that it is about to send through bl0,
 * for policy top (docs/top.md). All zero: nothing is known.
 * @bytes: that the flow will have; 0: not known.
 * @deadline_us: from its first frame on; 0: none.
 * @coflow: a number that flows of one job have in common; 0: none.
 * @flags: BL_FLOW_*.
 * @reserved: must be zero.
 */
struct bl_flow_hint {
	uint64_t bytes;
	uint32_t deadline_us;
	uint32_t coflow;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * bl_flow_hint - tell the host about the flow that the connected socket @fd is about to send. Needs
 * no endpoint. To be called before the first byte: a flow that has begun keeps what it began with,
 * until it has held nothing for a while (idle_us). Hints are advice: one that is displaced by
 * another flow's (1024 places, by hash) is lost, and its flow counts as unknown.
 * Returns 0; -ENOTCONN @fd is not connected; -EAFNOSUPPORT it is neither IPv4 nor IPv6; -EINVAL
 * unknown flags; -ENOENT there is no host daemon in this network namespace; -EPROTO the daemon is
 * of another version; -ETIMEDOUT the daemon has not answered for 5 s; -EBUSY somebody else writes
 * the same place; another negative errno of what failed. Any thread.
 */
BL_API int bl_flow_hint(int fd, const struct bl_flow_hint *hint);

/**
 * struct bl_delivery - one delivered message.
 * @ts: its timestamp.
 * @src: its sender.
 * @data, @len: valid until the next call of the function that delivered it, bl_recv() or
 *	bl_recv_reliable(), or until bl_exit(), on the same endpoint. No other call ends that: not
 *	the other stream's function, nor bl_process() or bl_wait().
 */
struct bl_delivery {
	uint64_t ts;
	struct bl_addr src;
	const void *data;
	uint32_t len;
};

/**
 * bl_recv - deliver up to @max messages in total order.
 * @timeout_ms: 0: do not sleep; -1: no limit; > 0: milliseconds.
 * Returns the count, 0 on timeout, or a negative errno.
 */
BL_API int bl_recv(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms);

/**
 * bl_fd - for poll/epoll, level-triggered: readable when bl_process() has something to do, and as
 * long as the last bl_process() found messages. Call bl_process() once before the first wait: it
 * arms the wake-up.
 */
BL_API int bl_fd(const struct bl_endpoint *ep);

/**
 * bl_process - do what is due: take in frames, credits and failures (callbacks run here), send what
 * windows allow, arm the wake-up.
 * Returns the number of messages that bl_recv(ep, ..., 0) and bl_recv_reliable(ep, ..., 0) would
 * deliver now (at least; it stops counting at 64 of each), or a negative errno. -ESTALE, here and
 * from every other call: this host has put the endpoint out (bl_strerror() says why), or the
 * endpoint uses the reliable stream and was announced as failed; begin anew with bl_init(). Before
 * that bl_recv_reliable() still delivers what is certain, which is counted here.
 */
BL_API int bl_process(struct bl_endpoint *ep);

#define BL_WAIT_SEND          1u  /* nothing waits for windows: a scattering is accepted */
#define BL_WAIT_RECV          2u  /* a message can be delivered */
#define BL_WAIT_SEND_RELIABLE 4u  /* reliable: the last scattering has left as a whole */
#define BL_WAIT_RECV_RELIABLE 8u  /* reliable: a message can be delivered */
#define BL_WAIT_ACKED         16u /* reliable: all that was sent is stored by its receivers */
/**
 * bl_wait - sleep until one of @what holds or @timeout_ms passed (-1: no limit). Returns the bits
 * that hold, 0 on timeout, or a negative errno.
 */
BL_API int bl_wait(struct bl_endpoint *ep, unsigned int what, int timeout_ms);

/**
 * enum bl_fail_reason - why a message was not delivered (maps/wire_abi.h BL_NAKS).
 */
enum bl_fail_reason {
	BL_FAIL_LATE = 1,
	BL_FAIL_LOST,
	BL_FAIL_INCOMPLETE,
	BL_FAIL_NO_MEMORY,
	BL_FAIL_UNREACHABLE,
	BL_FAIL_MALFORMED,
	BL_FAIL_FAILED,
	BL_FAIL_UNKNOWN, /* it was sent, and no answer came: it may have been delivered */
	BL_FAIL_LEFT,    /* the receiver ended in order (bl_exit()) and had not delivered it */
};
typedef void (*bl_send_fail_fn)(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
				enum bl_fail_reason why);
/**
 * bl_on_send_fail - set the send_fail callback (1Pipe Table 1). It runs inside bl_process(),
 * bl_recv(), bl_recv_reliable() or bl_wait(). For best-effort messages a report that is itself lost
 * is not repeated: silence is no proof of delivery.
 */
BL_API void bl_on_send_fail(struct bl_endpoint *ep, bl_send_fail_fn fn, void *ctx);

typedef void (*bl_proc_fail_fn)(void *ctx, const struct bl_addr *who, uint64_t ts);
/**
 * bl_on_proc_fail - set the proc_fail callback (1Pipe Table 1): @who is gone, with timestamp @ts;
 * port 0: all endpoints of that address. Everything that it sent below @ts is delivered, and
 * nothing else. Scatterings of this endpoint that waited for it have been taken back, and reported
 * by the send_fail callback (BL_FAIL_FAILED), before this runs. It runs once for each address of a
 * host. @who is the process that had the port; @ts does not apply to a later owner of the port.
 *
 * It runs inside bl_process(), bl_recv(), bl_recv_reliable() or bl_wait(), before this endpoint's
 * bl_recv_reliable() delivers any message at or above @ts; messages below @ts may still be
 * delivered after it. It runs for processes that left by bl_exit(), too: bl_on_proc_gone() tells
 * them apart. After such a leave others may have delivered messages at or above @ts before they
 * heard of it, since nobody waits for that.
 */
BL_API void bl_on_proc_fail(struct bl_endpoint *ep, bl_proc_fail_fn fn, void *ctx);

/**
 * enum bl_gone_reason - why a process is gone (maps/failure_abi.h BL_GONES). Later versions may
 * have others.
 */
enum bl_gone_reason {
	BL_GONE_UNKNOWN,     /* nobody said why */
	BL_GONE_LEFT,        /* it left by bl_exit() */
	BL_GONE_DIED,        /* its process ended */
	BL_GONE_IN_FLIGHT,   /* put out: it stood still in the middle of a send */
	BL_GONE_WINDOW,      /* put out: it stood still, and others waited for what it had sent */
	BL_GONE_RING,        /* put out: it did not read what had come */
	BL_GONE_UNREACHABLE, /* put out: frames to it did not arrive, and nobody else had failed */
	BL_GONE_CUT_OFF,     /* its host has no link to the network any more */
	BL_GONE_DOWN,        /* its host, or what leads to it, did not answer */
	BL_GONE_TORN,        /* no flow of barriers was left between it and a correct host */
};
typedef void (*bl_proc_gone_fn)(void *ctx, const struct bl_addr *who, uint64_t ts,
				enum bl_gone_reason why);
/**
 * bl_on_proc_gone - as bl_on_proc_fail(), with @why. Both callbacks may be set; this one runs
 * second.
 */
BL_API void bl_on_proc_gone(struct bl_endpoint *ep, bl_proc_gone_fn fn, void *ctx);

/**
 * struct bl_stats - counters of one endpoint since bl_init(), for bl_get_stats(). The caller sets
 * @size to sizeof(struct bl_stats).
 */
struct bl_stats {
	uint32_t size;
	uint32_t peers;
	uint64_t scatterings; /* accepted by bl_send */
	uint64_t messages_sent;
	uint64_t frames_sent;
	uint64_t messages_delivered;
	uint64_t frames_received;
	uint64_t late_dropped; /* frames below what was delivered already: dropped and NAKed */
	uint64_t duplicates;   /* frames with a sequence number seen before */
	uint64_t lost_frames;  /* gaps in the sequence numbers */
	uint64_t malformed;
	uint64_t send_failed; /* messages reported by send_fail */
	uint64_t again;       /* bl_send said -EAGAIN */
	uint64_t credits_sent, credits_received, probes_sent, naks_sent;
	uint64_t barrier;       /* last barrier seen */
	uint64_t queued_frames; /* in the reorder queue now */
	uint64_t sleeps, wakeups;
	uint64_t reliable_delivered; /* messages */
	uint64_t retransmits;        /* frames sent again */
	uint64_t commit;             /* last commit barrier seen */
	uint64_t prepared_frames;    /* frames that wait for the commit barrier now */
	uint64_t discarded;          /* frames of failed senders that were not delivered */
	uint64_t recalls_sent;       /* frames that ask receivers to take a scattering out */
	uint64_t recalled;           /* times that this endpoint was asked to, and did */
	/* frames that did not seem to pass: given to the daemon, for the controller to forward */
	uint64_t forwarded;
	/*
	 * frames that no correct sender can have sent: a number beyond every window, a recall of
	 * what was committed
	 */
	uint64_t refused;
	/*
	 * times that a daemon took this endpoint over that was started after the one that bl_init()
	 * had asked
	 */
	uint64_t reconnects;
};
BL_API int bl_get_stats(const struct bl_endpoint *ep, struct bl_stats *st);

/**
 * bl_strerror - what the last failed call of @ep said, for people; NULL: of this thread's last
 * bl_init().
 */
BL_API const char *bl_strerror(const struct bl_endpoint *ep);

/**
 * bl_send_reliable - send one scattering reliably (1Pipe section 5): it is delivered by all its
 * receivers or by none, in the one order of the reliable stream, whatever is lost on the way.
 * Arguments and results are those of bl_send(). Scatterings that leave in one flush (BL_MORE, or
 * while windows are closed) have one timestamp, and are delivered together or not at all.
 *
 * A message is delivered when the sender's host has an acknowledgement of every frame and everybody
 * has heard so: a round trip later than bl_send()'s. What is lost is sent again inside
 * bl_process(), bl_recv(), bl_recv_reliable() and bl_wait(): a process that has sent must go on
 * calling one of them until BL_WAIT_ACKED holds. While its messages are not acknowledged, nobody in
 * the rack delivers reliable messages with later timestamps; if it ends before that, it has failed.
 *
 * The first message to a destination waits for that destination's answer. If it does not answer,
 * all that is staged fails (BL_FAIL_UNREACHABLE); nothing of that has left.
 */
BL_API int bl_send_reliable(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			    unsigned int flags);

/**
 * bl_helper_start - start a thread of the library that does what others wait for while this process
 * does not call the library (it computes, waits for a disk, collects garbage). The thread takes
 * what came out of the ring, gives credits for it, sends again what was not acknowledged, and takes
 * back what a failure makes void. So others go on at their rate, and the host does not put the
 * process out for standing still, as long as what has come since the last call fits into @bytes of
 * memory (0: 64 MiB). Beyond that everything is as without a helper. What the helper took out is
 * delivered by the next calls, in order. It does not help a process that is stopped as a whole
 * (SIGSTOP, a debugger).
 *
 * The endpoint still belongs to one thread at a time; the helper and that thread exclude each
 * other. Callbacks run in the application's calls only, never in the helper, and data of deliveries
 * stays valid as without a helper. The helper has all signals blocked. bl_exit() stops it. After a
 * fork() the child has no helper. If the helper ends by an error, the next bl_process(), bl_wait(),
 * bl_recv() or bl_recv_reliable() returns that error, once. Each call takes one more lock, which
 * usually nobody holds (docs/reliable.md has figures).
 * Returns 0; -EALREADY there is a helper; -EAGAIN, -ENOMEM, -EMFILE as the system says.
 */
BL_API int bl_helper_start(struct bl_endpoint *ep, uint64_t bytes);
/**
 * bl_helper_stop - end the helper; what it has taken out is delivered all the same. Not to be
 * called from within a callback. No-op if there is no helper.
 */
BL_API void bl_helper_stop(struct bl_endpoint *ep);

/**
 * bl_recv_reliable - bl_recv() of the reliable stream. Each stream is ordered in itself; nothing is
 * said about the order of a message of the one and a message of the other. An endpoint that is out
 * delivers what had come and is certain, and then returns -ESTALE; the other calls return -ESTALE
 * at once. bl_get_stale() tells how far it came.
 */
BL_API int bl_recv_reliable(struct bl_endpoint *ep, struct bl_delivery *out, size_t max,
			    int timeout_ms);

/**
 * struct bl_stale - how far an endpoint came that is out, for bl_get_stale(). The caller sets @size
 * to sizeof(struct bl_stale).
 */
struct bl_stale {
	uint32_t size;
	uint32_t undecided; /* messages that bl_recv_undecided() would deliver now */
	/* every reliable message for this endpoint below @ts was delivered, and none from @ts on */
	uint64_t ts;
};

/**
 * bl_get_stale - how far the endpoint came, after bl_recv_reliable() has returned -ESTALE. A
 * replica takes from another one what that one was delivered from @ts on, or a state that goes with
 * a later timestamp.
 * Returns 0; -EAGAIN: bl_recv_reliable() has not returned -ESTALE yet; -EINVAL: @size is wrong.
 */
BL_API int bl_get_stale(const struct bl_endpoint *ep, struct bl_stale *s);

/**
 * bl_recv_undecided - what had come with timestamps from struct bl_stale's @ts on, in the order of
 * the stream. Each of these messages is delivered by all other receivers or by none, and this
 * endpoint cannot know which: senders may have taken it back since. Messages that are known to have
 * been taken back, or to be of a sender that had failed, are not among them. Deliveries are valid
 * as long as those of bl_recv_reliable(). Returns the count, 0 when there are no more, or as
 * bl_get_stale().
 */
BL_API int bl_recv_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);

#ifdef __cplusplus
}
#endif
#endif
