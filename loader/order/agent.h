/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's side of the failure procedure: keeps a session with the controller that leads, reports
 * what fails to it, and carries out its commands. What a command does to maps is up to the caller
 * (struct bl_agent_ops).
 *
 * The agent has a list of controllers and tries one after the other. A controller that does not
 * lead says so, and which one leads (turn_core.h). Nothing is lost with a session: a HELLO with
 * everything that the node knows begins each session, processes that died are reported until the
 * controller names them, and the controller repeats the commands that are not done.
 *
 * Every command carries an epoch. The highest epoch that was ever heard is kept in a map, so it
 * survives the daemon, and a command of a lower epoch is refused and counted: its controller does
 * not lead any more. So is an epoch that no election can have reached (core/order/epoch_core.h): a
 * false controller that says it once must not be the last one that is obeyed. As soon as a higher
 * epoch is heard, and kept, HELLO is said again. No older command can change what that HELLO says
 * of the inputs, so the controller uses it.
 *
 * Example: connected to A (epoch 41). A is stopped. After silence_ms without a message the agent
 * tries B, which says that it does not lead, and C does. C (epoch 52): HELLO, WELCOME, BAR. A comes
 * back and says RESUME in epoch 41: refused.
 *
 * Without a controller, or with none in reach, traffic goes on; only what failed stays as it is.
 *
 * Thread rules: all calls come from the thread of the event loop, and so do the callbacks. Of the
 * functions below, bl_agent_changed() and bl_agent_link_down() may call ops->tell; otherwise
 * callbacks come from the loop only.
 */
#ifndef BARLINE_AGENT_H
#define BARLINE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/library/systemd.h"
#include "base/log.h"
#include "proto/session.h"

#define BL_AGENT_CONTROLLERS_MAX 8
#define BL_AGENT_PORTS_MAX       256
#define BL_AGENT_ADDRS_MAX       16
#define BL_AGENT_ENDPOINTS_MAX   1024
/* no commit barrier is known; as a failure timestamp: nothing was committed */
#define BL_AGENT_NO_C (~0ULL)

/* X(SYMBOL, "name"): what became of a message, or of a frame to be forwarded. */
/* clang-format off */
#define BL_AGENT_REASONS(X) \
	X(OK,	       "ok") \
	X(OLD_EPOCH,   "old_epoch")   /* of a controller that does not lead any more */ \
	X(BAD_MESSAGE, "bad_message") /* malformed, or not for agents */ \
	X(TOO_EARLY,   "too_early")   /* a command before WELCOME */ \
	X(FAR_EPOCH,   "far_epoch")   /* more than elections can have raised it */ \
	X(FORWARDED,   "forwarded")   /* frames that were sent to the controller */ \
	X(NOT_FORWARDED, "not_forwarded") /* frames that were not: no session, or a long queue */
/* clang-format on */
#define BL_AGENT_ENUM(sym, name) BL_AGENT_##sym,
enum bl_agent_reason { BL_AGENT_REASONS(BL_AGENT_ENUM) BL_AGENT_REASON_COUNT };
#undef BL_AGENT_ENUM
const char *bl_agent_reason_name(unsigned int r);

/*
 * enum bl_agent_port_state - an input with respect to C. The numbers are on the wire (Port.state in
 * proto/ctl.proto), as enum bl_det_way_state of the controller.
 * @BL_AGENT_LIVE: in C's minimum.
 * @BL_AGENT_SILENT: stands still at its C since a death, until that is resumed.
 * @BL_AGENT_REMOVED: not in C's minimum.
 * @BL_AGENT_BEHIND: in the minimum, but not yet beyond what the outputs were given.
 */
enum bl_agent_port_state {
	BL_AGENT_LIVE,
	BL_AGENT_SILENT,
	BL_AGENT_REMOVED,
	BL_AGENT_BEHIND,
	BL_AGENT_PORT_STATES
};

/** struct bl_agent_port - an input of the node. */
struct bl_agent_port {
	uint32_t port;
	uint32_t neighbour; /* its node id; 0: not heard yet */
	uint32_t death;     /* number of its last death */
	uint8_t role;       /* of the neighbour: 0: a host, 1: a switch above, 2: a switch below */
	uint8_t state;      /* enum bl_agent_port_state */
	uint64_t c;         /* SILENT: where it stands still; else BL_AGENT_NO_C */
};

/** struct bl_agent_input - an input to be resumed, if it stands still since that death. */
struct bl_agent_input {
	uint32_t port, death;
};

/** struct bl_agent_node - everything that a node says of itself. */
struct bl_agent_node {
	uint32_t node_id;
	bool host; /* false: a switch */
	char name[32];
	unsigned int naddrs, nports, nendpoints;
	uint8_t addr[BL_AGENT_ADDRS_MAX][16]; /* by which messages of the node are known */
	struct bl_agent_port port[BL_AGENT_PORTS_MAX];
	uint16_t endpoint[BL_AGENT_ENDPOINTS_MAX]; /* ports of live endpoints */
};

/** struct bl_agent_failed - a node or a process that failed. */
struct bl_agent_failed {
	uint32_t node;
	uint16_t port; /* of the process; 0: all processes at these addresses */
	uint16_t life; /* incarnation of the process; 0: not said */
	uint8_t why;   /* enum bl_why */
	bool here;     /* it is this node, or a process of it */
	uint64_t t;    /* messages from @t on are discarded; BL_AGENT_NO_C: all are */
	unsigned int naddrs;
	uint8_t addr[BL_AGENT_ADDRS_MAX][16];
};

/** struct bl_agent_proc - a process of this node that is gone. */
struct bl_agent_proc {
	uint16_t port; /* of its endpoint */
	uint16_t life; /* its incarnation */
	/*
	 * enum bl_why; BL_WHY_LEFT says besides that nothing of it holds the commit barrier, so
	 * that nothing has to be waited for
	 */
	uint8_t why;
	uint64_t t; /* what it sent from then on was not committed */
};

/** struct bl_agent_stuck - reliable messages of @from do not get through to a receiver. */
struct bl_agent_stuck {
	struct bl_agent_proc from; /* only port and life count */
	/* the receiver */
	uint8_t addr[16];
	uint16_t port, life;
};

struct bl_forward;

/**
 * struct bl_agent_ops - how the caller carries out commands. A callback that returns int returns 0
 * or -errno; -ESTALE: the node obeys a higher epoch, so the session ends without an answer.
 */
struct bl_agent_ops {
	/* Fills in what the node is now; @n is all zero. */
	void (*tell)(void *ctx, struct bl_agent_node *n);
	/* @epoch is the highest epoch now. It is kept when this returns. */
	void (*epoch)(void *ctx, uint64_t epoch);
	/*
	 * From now on the outputs of exactly these ports promise no C, and their inputs do not join
	 * C.
	 */
	int (*bar)(void *ctx, const uint32_t *port, unsigned int n);
	/* The input does not raise C any more. Fills in @p->c and @p->death. */
	int (*freeze)(void *ctx, uint32_t port, struct bl_agent_port *p);
	/* Discard, Recall and Callback for these; bl_agent_done() when they are complete. */
	void (*fail)(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n);
	/*
	 * The inputs @in leave C's minimum, each if it stands still since that death, and the
	 * windows of the processes @v do not hold C any more. Done when this returns.
	 */
	int (*resume)(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		      const struct bl_agent_input *in, unsigned int nin);
	/*
	 * This node was announced as failed. Its processes are told, then bl_agent_rejoin() is
	 * called.
	 */
	void (*failed)(void *ctx, uint64_t number);
	/* A frame for this host came by way of the controller (forward.h). May be NULL. */
	void (*forward)(void *ctx, const struct bl_forward *f);
	/*
	 * That incarnation of the endpoint is expelled; bl_agent_proc_down() answers, even if there
	 * is no such endpoint. May be NULL.
	 */
	void (*put_out)(void *ctx, uint16_t port, uint16_t life);
	/*
	 * Changes the admission of applications' traffic. @check: only whether that is possible.
	 * @rate_bps: of the links; 0: unchanged. @said: what is different then, for people. May be
	 * NULL.
	 */
	int (*admission)(void *ctx, bool check, const char *policy, uint64_t rate_bps, char *said,
			 size_t size, struct bl_err *err);
};

/** struct bl_agent_cfg - copied by bl_agent_new(), except what @tls points to. */
struct bl_agent_cfg {
	char controllers[BL_AGENT_CONTROLLERS_MAX][64]; /* as bl_session_addr() reads them */
	unsigned int ncontrollers;
	uint64_t epoch;             /* the highest one that was heard before */
	uint32_t silence_ms;        /* a controller that is silent for so long is left; 0: 3000 */
	struct bl_session_tls *tls; /* NULL: no TLS; belongs to the caller */
};

/** struct bl_agent_total - state of the agent, for people. */
struct bl_agent_total {
	uint64_t reasons[BL_AGENT_REASON_COUNT]; /* counters by enum bl_agent_reason */
	uint64_t sessions;                       /* that were begun */
	uint64_t epoch;
	uint64_t failed;     /* number of the failure that announced this node; 0: none */
	uint32_t answer_ms;  /* how long an answer may take; 0: not said */
	uint32_t stuck_ms;   /* after what time bl_agent_stuck() is wanted; 0: never */
	bool welcome;        /* there is a session, and the leader accepted the node */
	char controller[64]; /* of the session; "": none */
	char trouble[256];   /* why there is no session; "": there is one */
};

struct bl_agent;

/** bl_agent_new - makes an agent, which begins its first session. Returns 0 or -errno. */
int bl_agent_new(struct bl_agent **out, sd_event *ev, const struct bl_agent_cfg *cfg,
		 const struct bl_agent_ops *ops, void *ctx, struct bl_err *err);
void bl_agent_free(struct bl_agent *a);

/** bl_agent_changed - what ops->tell would say has changed. */
void bl_agent_changed(struct bl_agent *a);

/** bl_agent_link_down - the input @p stands still at @p->c since its death @p->death. */
void bl_agent_link_down(struct bl_agent *a, const struct bl_agent_port *p);

/** bl_agent_proc_down - a process is gone; reported until the controller names it. */
void bl_agent_proc_down(struct bl_agent *a, const struct bl_agent_proc *p);

/** bl_agent_stuck - reports @s once, if there is a session; the caller samples again. */
void bl_agent_stuck(struct bl_agent *a, const struct bl_agent_stuck *s);

/** bl_agent_done - what ops->fail with this number demanded is complete. */
void bl_agent_done(struct bl_agent *a, uint64_t number);

/** bl_agent_rejoin - after ops->failed: there are only new processes from now on. */
void bl_agent_rejoin(struct bl_agent *a);

/**
 * bl_agent_leave - @leaves: the host leaves in order, since none of its processes is a member any
 * more: says so until the controller names this node, and ops->failed is called. false: it does
 * not, and what was said in vain is not repeated.
 */
void bl_agent_leave(struct bl_agent *a, bool leaves);

/**
 * bl_agent_away - the daemon stops, and another one is expected within @ms. That is the last
 * message of a session, because a HELLO after it would say that the daemon is back. If the session
 * ends before the answer, it is said again in the next one.
 */
void bl_agent_away(struct bl_agent *a, uint32_t ms);

/**
 * bl_agent_away_known - whether the answer has come: it is saved, so that the next leader knows it,
 * too. No session is begun after that.
 */
bool bl_agent_away_known(const struct bl_agent *a);

/**
 * bl_agent_forward - asks the controller to send the frame on. It is sent now or not at all, and
 * counted either way. Returns whether it was sent.
 */
bool bl_agent_forward(struct bl_agent *a, const struct bl_forward *f);

void bl_agent_read(const struct bl_agent *a, struct bl_agent_total *t);

#endif
