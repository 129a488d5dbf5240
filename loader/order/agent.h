/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's side of the failure procedure: keeps a session with the controller that leads, tells it
 * what fails, and does what it orders. What an order does to maps is the caller's (struct
 * bl_agent_ops).
 *
 * It knows a list of controllers and tries one after the other; one that does not lead says so, and
 * who does. Nothing is lost with a session: HELLO says all there is whenever one begins, processes
 * that died are told until the controller names them, and the controller gives the orders that are
 * not done again.
 *
 * Every order carries an epoch. The highest one that was ever heard is kept (@epoch: in a map, so
 * that it survives the daemon), and an order of a lower one is refused and counted: whoever gave it
 * does not lead any more. As soon as a higher one is heard, and kept, HELLO is said again: what it
 * says of the inputs no older order can change any more, and only then the controller uses it.
 *
 * Example: connected to A (epoch 41). A is stopped; after silence_ms nothing was heard: next is B:
 * not leading, C leads. C (epoch 52): HELLO, WELCOME, BAR. A comes back and says RESUME in epoch
 * 41: refused.
 *
 * Without any controller, or with none that can be reached, traffic goes on; only what failed stays
 * as it is.
 *
 * Thread rules: all calls from the thread of the event loop; callbacks come from it, also from
 * within bl_agent_changed(), bl_agent_link_down(), ... never.
 */
#ifndef BARLINE_AGENT_H
#define BARLINE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "proto/session.h"

#define BL_AGENT_CONTROLLERS_MAX 8
#define BL_AGENT_PORTS_MAX       256
#define BL_AGENT_ADDRS_MAX       16
#define BL_AGENT_ENDPOINTS_MAX   1024
/* no commit barrier is known; as a failure timestamp: nothing was committed */
#define BL_AGENT_NO_C (~0ULL)

/* X(SYMBOL, "name"): what became of what came */
/* clang-format off */
#define BL_AGENT_REASONS(X) \
	X(OK,	       "ok") \
	X(OLD_EPOCH,   "old_epoch")   /* of a controller that does not lead any more */ \
	X(BAD_MESSAGE, "bad_message") /* no message, or one that is none for agents */ \
	X(TOO_EARLY,   "too_early")   /* an order before WELCOME */ \
	X(FORWARDED,   "forwarded")   /* frames that were handed to the controller */ \
	X(NOT_FORWARDED, "not_forwarded") /* frames that were not: no session, or too much waits */
/* clang-format on */
#define BL_AGENT_ENUM(sym, name) BL_AGENT_##sym,
enum bl_agent_reason { BL_AGENT_REASONS(BL_AGENT_ENUM) BL_AGENT_REASON_COUNT };
#undef BL_AGENT_ENUM
const char *bl_agent_reason_name(unsigned int r);

/*
 * What comes in at a port, as to C: LIVE; SILENT: stands still at @c since death number @death,
 * until that is resumed; REMOVED: in nobody's minimum; BEHIND: in it, but not yet beyond what the
 * outputs were given. As enum bl_det_way_state.
 */
enum bl_agent_port_state {
	BL_AGENT_LIVE,
	BL_AGENT_SILENT,
	BL_AGENT_REMOVED,
	BL_AGENT_BEHIND,
	BL_AGENT_PORT_STATES
};

/**
 * struct bl_agent_port - @role: what is at the other end: 0: a host, 1: a switch above, 2: a
 * switch below; a host's NIC has a switch above. @neighbour: its node id; 0: not heard yet.
 */
struct bl_agent_port {
	uint32_t port, neighbour, death;
	uint8_t role, state;
	uint64_t c;
};

/** struct bl_agent_input - an input to be resumed, if it stands still since that death. */
struct bl_agent_input {
	uint32_t port, death;
};

/** struct bl_agent_node - all that a node says of itself. */
struct bl_agent_node {
	uint32_t node_id;
	bool host;
	char name[32];
	unsigned int naddrs, nports, nendpoints;
	uint8_t addr[BL_AGENT_ADDRS_MAX][16];
	struct bl_agent_port port[BL_AGENT_PORTS_MAX];
	uint16_t endpoint[BL_AGENT_ENDPOINTS_MAX];
};

/**
 * struct bl_agent_failed - who failed. @port 0: all processes at these addresses. @life: of the
 * process; 0: not said. @why: enum bl_why. @t: what has a timestamp of @t or later is discarded;
 * BL_AGENT_NO_C: everything. @here: it is this node, or a process of it.
 */
struct bl_agent_failed {
	uint32_t node;
	uint16_t port, life;
	uint8_t why;
	bool here;
	uint64_t t;
	unsigned int naddrs;
	uint8_t addr[BL_AGENT_ADDRS_MAX][16];
};

/**
 * struct bl_agent_proc - a process of this node that is gone. @port: of its endpoint. @life: its
 * incarnation. @why: enum bl_why; LEFT: besides, nothing of it holds the commit barrier, so that
 * nobody has to wait. @t: what it sent from then on was not committed.
 */
struct bl_agent_proc {
	uint16_t port, life;
	uint8_t why;
	uint64_t t;
};

/**
 * struct bl_agent_stuck - what endpoint @from (only port and life count) sends reliably does not
 * get through to the receiver with that address, port and life.
 */
struct bl_agent_stuck {
	struct bl_agent_proc from;
	uint8_t addr[16];
	uint16_t port, life;
};

struct bl_forward;

/**
 * struct bl_agent_ops - what the caller does. @tell: fill in what the node is now. @epoch: the
 * highest one is now this; it must be kept before this returns. @bar: the outputs of these ports
 * promise no C, and what comes in does not join C; all others are free. @freeze: the input of the
 * port does not raise C any more; fills in @c and @death of *@p, and returns 0, or not 0: there is
 * no such input. @fail: Discard, Recall, Callback; then bl_agent_done(). @resume: the inputs of
 * these leave C's set, each if it stands still since that death, and what windows of these
 * processes held is free; done when it returns. @failed: this node was announced as failed: its
 * processes are to be told; then bl_agent_rejoin().
 * @put_out: that life of the endpoint is to be put out; the answer is bl_agent_proc_down() of it,
 * whether it is there or not. It may be NULL.
 * @forward: a frame for this host came by way of the controller (forward.h); it may be NULL.
 * What returns int says -ESTALE if the node obeys nobody of that epoch any more: the session ends,
 * unanswered.
 */
struct bl_agent_ops {
	void (*tell)(void *ctx, struct bl_agent_node *n);
	void (*epoch)(void *ctx, uint64_t epoch);
	int (*bar)(void *ctx, const uint32_t *port, unsigned int n);
	int (*freeze)(void *ctx, uint32_t port, struct bl_agent_port *p);
	void (*fail)(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n);
	int (*resume)(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		      const struct bl_agent_input *in, unsigned int nin);
	void (*failed)(void *ctx, uint64_t number);
	void (*forward)(void *ctx, const struct bl_forward *f);
	void (*put_out)(void *ctx, uint16_t port, uint16_t life);
	/*
	 * How traffic of applications is admitted from now on; @check: only whether that is
	 * possible. @rate_bps: of the links, 0: as it is. @said: what is different then. 0 or
	 * -errno. It may be NULL.
	 */
	int (*admission)(void *ctx, bool check, const char *policy, uint64_t rate_bps, char *said,
			 size_t size, struct bl_err *err);
};

/**
 * struct bl_agent_cfg - @controllers: addresses (session.h). @epoch: highest one heard before.
 * @silence_ms: a controller that says nothing for so long is left; 0: 3000. @tls: NULL: none; stays
 * the caller's.
 */
struct bl_agent_cfg {
	char controllers[BL_AGENT_CONTROLLERS_MAX][64];
	unsigned int ncontrollers;
	uint64_t epoch;
	uint32_t silence_ms;
	struct bl_session_tls *tls;
};

/**
 * struct bl_agent_total - @reasons: of messages. @sessions: begun. @answer_ms: how long an answer
 * may take; 0: not said. @stuck_ms: after what time bl_agent_stuck() is wanted; 0: not. @welcome:
 * it has a session, and was taken. @controller: with whom. @failed: number of the failure that
 * announced this node; 0: none. @trouble: why there is no session.
 */
struct bl_agent_total {
	uint64_t reasons[BL_AGENT_REASON_COUNT];
	uint64_t sessions, epoch, failed;
	uint32_t answer_ms, stuck_ms;
	bool welcome;
	char controller[64], trouble[256];
};

struct bl_agent;

/** bl_agent_new - returns 0 or -errno. */
int bl_agent_new(struct bl_agent **out, sd_event *ev, const struct bl_agent_cfg *cfg,
		 const struct bl_agent_ops *ops, void *ctx, struct bl_err *err);
void bl_agent_free(struct bl_agent *a);

/** bl_agent_changed - what @tell would say is different now. */
void bl_agent_changed(struct bl_agent *a);
/**
 * bl_agent_link_down - what comes in at the port stands still at @p->c since its death @p->death.
 */
void bl_agent_link_down(struct bl_agent *a, const struct bl_agent_port *p);
/** bl_agent_proc_down - a process is gone; told until the controller names it. */
void bl_agent_proc_down(struct bl_agent *a, const struct bl_agent_proc *p);
/** bl_agent_stuck - now, or not at all: whoever calls looks again. */
void bl_agent_stuck(struct bl_agent *a, const struct bl_agent_stuck *s);
/** bl_agent_done - what @fail with this number ordered is complete. */
void bl_agent_done(struct bl_agent *a, uint64_t number);
/** bl_agent_rejoin - after @failed: there are only new processes from now on. */
void bl_agent_rejoin(struct bl_agent *a);

/**
 * bl_agent_away - the daemon stops, and another one is expected within @ms. It is the last thing
 * that is said in a session: a HELLO after it would say that the daemon is back. If the session
 * ends before the answer comes, it is said in the next one. bl_agent_away_known - the answer has
 * come: it is saved, so the next leader knows it, too. No session is begun after that.
 */
void bl_agent_away(struct bl_agent *a, uint32_t ms);
bool bl_agent_away_known(const struct bl_agent *a);

/** bl_agent_forward - ask the controller to send the frame on; it goes now, or not at all. */
void bl_agent_forward(struct bl_agent *a, const struct bl_forward *f);

void bl_agent_read(const struct bl_agent *a, struct bl_agent_total *t);

#endif
