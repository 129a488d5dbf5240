/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The failure procedure of reliable 1Pipe (section 5.2) as a state machine: time and events in,
 * orders out. No socket, no store, no clock: controller/server.c is around it.
 *
 *   Detect	reports come: a silent link with its last commit C, a process that died with its T.
 * A short time is waited for more of the same failure. Determine
 * controller/recover/determine.h: who failed, with which T; whom to ask first (FREEZE), and which
 * outputs are to be barred (BAR) before T is announced. Broadcast	FAIL to the hosts that are
 * correct, after the decision is saved. What is saved is never decided otherwise, by whoever leads.
 *   (Discard, Recall, Callback are the hosts'.)
 *   Resume	after DONE of all correct hosts, and after that is saved: RESUME to those whose
 * inputs stood still.
 *
 * Every order is given after it was saved, and carries the epoch. So an order of a leader that does
 * not lead any more, should a node obey it that has not heard of the next one, says what that one
 * says, too.
 *
 * Example, milliseconds: 0: switch 4 reports port 1 (host 2) silent, C = 900. 5: settled: host 2
 * failed, T = 900, switch 4's output to it is to be barred: BAR. 6: barred: failure 7 is to be
 * saved. 9: saved: FAIL to hosts 1 and 3. 10: host 1 is done. 1009: host 3 has not answered: it is
 * down itself: its link is to be asked about (FREEZE to switch 4), and so on as failure 8. When
 * that is announced, nothing of failure 7 waits for host 3 any more: RESUME is saved and goes to
 * switch 4.
 *
 * A process that left in order, with nothing that anybody waits for, is no failure: it is announced
 * at once, in a record of its own, so that those who wait for its ACKs wait no longer. Nothing
 * stands still for it, and nobody is late who has not heard.
 *
 * A node that fails is not waited for, and stays barred until it says that it joins anew, as new
 * processes. A link that was resumed while its node lives may join by itself as soon as it is
 * heard.
 *
 * If it has sessions with less than half of the nodes it knows, then the fault is more likely its
 * own: nobody is down for not answering it, and it says so (bl_recover_isolated()). Nor is anybody
 * if more than half of the hosts that would go on otherwise were cut off by that
 * (bl_recover_doubts()): the agent of a rack's only switch that began anew would end every process
 * in it. It waits for their answers. The last host is an exception: it cuts nobody else off.
 *
 * What a node says of its inputs counts only after it has heard of this leader's epoch (@sworn):
 * else an order of the leader before, which is still under way, could resume the very input that a
 * T was taken from. And an input counts no more from the moment on in which it is decided to resume
 * it; that is decided when all correct hosts have completed all that was announced until then.
 *
 * What it trusts: agents. What they may not do is bounded: numbers and names that it does not know
 * are refused and counted.
 */
#ifndef BARLINE_CONTROLLER_RECOVER_CORE_H
#define BARLINE_CONTROLLER_RECOVER_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maps/failure_abi.h"
#include "determine.h"

#define BL_RECOVER_NODES_MAX     4096
#define BL_RECOVER_PORTS_MAX     256
#define BL_RECOVER_ADDRS_MAX     16
#define BL_RECOVER_ENDPOINTS_MAX 4096
#define BL_RECOVER_OPEN_MAX      64   /* failures that are not finished */
#define BL_RECOVER_KEEP_MAX      1000 /* finished ones that are remembered */
#define BL_RECOVER_PROCS_MAX     4096 /* processes that died and wait to be announced */
#define BL_RECOVER_NAME_MAX      31

/* X(SYMBOL, "name"): what became of an event */
/* clang-format off */
#define BL_RECOVER_REASONS(X) \
	X(OK,		  "ok")		      /* taken */ \
	X(NOT_LEADING,	  "not_leading") \
	X(UNKNOWN_NODE,	  "unknown_node")     /* it never said HELLO */ \
	X(UNKNOWN_PORT,	  "unknown_port")     /* no such port in its HELLO, or with another neighbour */ \
	X(UNKNOWN_FAILURE, "unknown_failure") /* no failure has that number, or it is in another step */ \
	X(FAILED_NODE,	  "failed_node")      /* announced as failed, and has not joined anew */ \
	X(TOO_EARLY,	  "too_early")	      /* it has not said HELLO since it heard of this epoch */ \
	X(REPEATED,	  "repeated")	      /* known already */ \
	X(BAD_HELLO,	  "bad_hello")	      /* out of range, or contradicts itself */ \
	X(BAD_C,	  "bad_c")	      /* more than 48 bits */ \
	X(FULL,		  "full") \
	X(NO_ADDRESS,	  "no_address")	      /* a process of a host without addresses: nobody could be told who that was; it is taken when the host says one */
/* clang-format on */
#define BL_RECOVER_ENUM(sym, name) BL_RECOVER_##sym,
enum bl_recover_reason { BL_RECOVER_REASONS(BL_RECOVER_ENUM) BL_RECOVER_REASON_COUNT };
#undef BL_RECOVER_ENUM
const char *bl_recover_reason_name(enum bl_recover_reason r);

/*
 * What is at the other end of a port: a host, a switch above, a switch below. A host's NIC has a
 * switch above.
 */
enum bl_recover_role { BL_RECOVER_HOST, BL_RECOVER_UP, BL_RECOVER_DOWN };

/**
 * struct bl_recover_port - @port: the node's number of it. @neighbour: node id; 0: not heard yet.
 * @role: enum bl_recover_role. @state: enum bl_det_way_state of what comes in. @c: SILENT: its
 * register. @death: which of its deaths that is; the node counts them, and RESUME names it: the
 * input may have come back and died again when an order that was under way for long arrives. The
 * core's own: @fence: the output is to be barred before somebody is announced. @barred: it is, for
 * that or because its neighbour failed. @asked: FREEZE was ordered. @behind: SILENT, and BEHIND
 * before that. @record: number of the failure that resumes it; 0: none. @rises: it was said to rise
 * while its neighbour was GONE: enum bl_det_way_state and 1, to be believed when that one is back;
 * 0: nothing of the kind. @joined: the last failure before it was live (again): what resumed it
 * before that is history.
 */
struct bl_recover_port {
	uint32_t port, neighbour, death;
	uint8_t role, state;
	bool fence, barred, asked, behind;
	uint8_t rises;
	uint64_t c, record, joined;
};

/**
 * struct bl_recover_hello - all that a node says of itself. @epoch: the highest that it had heard
 * before it looked at its inputs. @rejoin: it knows that it had failed, its old processes are gone.
 * @endpoint: UDP ports.
 */
struct bl_recover_hello {
	uint32_t id;
	uint64_t epoch;
	uint8_t kind; /* enum bl_det_kind */
	bool rejoin;
	char name[BL_RECOVER_NAME_MAX + 1];
	const uint8_t (*addr)[16];
	const struct bl_recover_port *port;
	const uint16_t *endpoint;
	uint32_t naddrs, nports, nendpoints;
};

/**
 * struct bl_recover_node - @agent: it said HELLO, once. @linked: it had a link with both ways live
 * since it came, or joined anew; before that it is nobody's loss, and not judged. @saved, @saving:
 * its record. @connected: has a session. @sworn: it has said what its inputs are since it heard of
 * our epoch: no order of a leader before us changes them any more. @welcome: is to be told so when
 * it is saved. @state: enum bl_det_node_state. @gone: number of the failure that announced it; 0:
 * none.
 * @late: has not answered in time, just now. @joined: the last failure before it was linked: none
 * up to it is its business. @bar: version of the list of its ports that are barred; @barred: the
 * one it confirmed. @away_until: its daemon stopped on purpose, and no answer of it is late before
 * that; 0: it did not. @away_ns: of that absence what was granted, as it is saved; 0: it is back,
 * or its time has passed. @due: until when it has to answer FREEZE or BAR; 0: nothing to answer.
 * @why: it is GONE: enum bl_det_why.
 */
struct bl_recover_node {
	uint32_t id;
	uint8_t kind, state, why;
	bool agent, linked, saved, saving, again, connected, sworn, welcome, late;
	char name[BL_RECOVER_NAME_MAX + 1];
	uint8_t (*addr)[16];
	struct bl_recover_port *port;
	uint16_t *endpoint;
	uint32_t naddrs, nports, nendpoints;
	uint64_t gone, joined, bar, barred, due, away_until, away_ns;
};

/**
 * struct bl_recover_proc - a process that is gone. @port: UDP port. @life: its incarnation; 0: not
 * said. @why: enum bl_why.
 * @t: failure timestamp; BL_DET_NO_C: nothing of it was committed anywhere.
 */
struct bl_recover_proc {
	uint16_t port, life;
	uint8_t why;
	uint64_t t;
};

/**
 * struct bl_recover_failed - a node or a process. @node: of it, or that it is on. @why: enum
 * bl_det_why; CORRECT: a process.
 * @proc: the process; port 0: all of the node's processes, and of the rest only t counts.
 */
struct bl_recover_failed {
	uint32_t node;
	uint8_t why;
	struct bl_recover_proc proc;
	uint32_t naddrs;
	uint8_t (*addr)[16];
};

/**
 * struct bl_recover_input - an input to be resumed. @c, @death: where it stood, since which of its
 * deaths.
 */
struct bl_recover_input {
	uint32_t node, port, neighbour, death;
	uint64_t c;
};

/*
 * ANNOUNCED: hosts complete. RESUMED: all have; inputs are resumed. FINISHED: all are. What is
 * saved is one of these.
 */
enum bl_recover_step { BL_RECOVER_ANNOUNCED, BL_RECOVER_RESUMED, BL_RECOVER_FINISHED };

/** struct bl_recover_wait - who has to answer. @done, @resumed: it has, or need not. */
struct bl_recover_wait {
	uint32_t node;
	bool done, resumed;
};

/**
 * struct bl_recover_failure - @epoch: of who announced it. @step: as saved, or being saved if
 * @saving. @at_ns: the first report, @settled_ns, @announced_ns, @done_ns, @resumed_ns: of each
 * step's beginning, in the time of who led then; 0: not by this leader.
 * @due_ns: until when those who are waited for have to answer. @separated: see struct bl_det_sum.
 * @left: nobody has failed: a process has left, and holds nobody up. The hosts are told, and told
 * again until they say that they know; nothing waits for that, and there is nothing to resume.
 */
struct bl_recover_failure {
	uint64_t number, epoch;
	uint8_t step;
	bool saving, separated, left;
	struct bl_recover_failed *failed;
	struct bl_recover_input *input;
	struct bl_recover_wait *wait;
	uint32_t nfailed, ninputs, nwaits;
	uint64_t at_ns, settled_ns, announced_ns, done_ns, resumed_ns, finished_ns, due_ns;
};

/**
 * struct bl_recover_stuck - frames from process @from do not reach the one with address @addr, port
 * and life as in @to (whose why and t mean nothing).
 */
struct bl_recover_stuck {
	struct bl_recover_proc from, to;
	uint8_t addr[16];
};

/* What is to be done. The content is read from the node or the failure at once. */
enum bl_recover_do {
	BL_RECOVER_SAVE_NODE,    /* @node */
	BL_RECOVER_SAVE_FAILURE, /* @number; then bl_recover_saved_failure() */
	BL_RECOVER_DROP_FAILURE, /* @number: is too old to be remembered */
	/* @node: it is taken; with its barred ports, and @number if it is failed */
	BL_RECOVER_WELCOME,
	BL_RECOVER_BAR,    /* @node: all ports of it that are barred */
	BL_RECOVER_FREEZE, /* @node: ports with @asked */
	BL_RECOVER_FAIL,   /* @node, @number */
	BL_RECOVER_RESUME, /* @node, @number */
	BL_RECOVER_AWAY,   /* @node: that it is away is known, whoever leads */
	/* @node: its endpoint @number % 65536, if it has life @number / 65536 */
	BL_RECOVER_PUT_OUT,
};
struct bl_recover_out {
	enum bl_recover_do what;
	uint32_t node;
	uint64_t number;
};

/**
 * struct bl_recover_cfg - all in ns. @settle: from the first report to a decision. @answer: how
 * long a node may take for an answer. @grace: how much longer after a change of the leader.
 */
struct bl_recover_cfg {
	uint64_t settle_ns, answer_ns, grace_ns;
};

struct bl_recover;

struct bl_recover *bl_recover_new(const struct bl_recover_cfg *cfg);
void bl_recover_free(struct bl_recover *r);

/**
 * bl_recover_load_node, bl_recover_load_failure - what a leader before had saved, in any order;
 * copied. Then bl_recover_start(). 0, or -1: it contradicts itself, or there is no memory.
 */
int bl_recover_load_node(struct bl_recover *r, const struct bl_recover_node *n);
int bl_recover_load_failure(struct bl_recover *r, const struct bl_recover_failure *f);
void bl_recover_start(struct bl_recover *r, uint64_t now, uint64_t epoch);
/** bl_recover_reset - does not lead any more: all is forgotten. */
void bl_recover_reset(struct bl_recover *r);

enum bl_recover_reason bl_recover_hello(struct bl_recover *r, uint64_t now,
					const struct bl_recover_hello *h);
/* its session is over */
enum bl_recover_reason bl_recover_bye(struct bl_recover *r, uint64_t now, uint32_t node);
/**
 * bl_recover_away - its daemon stops, and is expected back within @ns, at most
 * BL_RECOVER_AWAY_MAX_NS. When it says HELLO again it has as long as anybody to answer what it
 * missed. Links that fall silent are judged as ever. Saved: the next leader grants the same once
 * more, from when it begins, for two machines have no common time. Whoever is back, or late, is
 * saved as not away.
 */
#define BL_RECOVER_AWAY_MAX_NS 60000000000ULL
enum bl_recover_reason bl_recover_away(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t ns);
enum bl_recover_reason bl_recover_link_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    uint32_t port, uint32_t neighbour, uint64_t c,
					    uint32_t death);
enum bl_recover_reason bl_recover_proc_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    const struct bl_recover_proc *p);
/**
 * bl_recover_proc_stuck - two correct processes that do not reach each other, though the controller
 * forwards: one of them has failed (1Pipe 5.2). Complaints are collected for BL_RECOVER_STUCK_NS;
 * then whoever is at the end of most of them is put out, until none is left: of two the receiver,
 * but a sender whom several receivers do not hear goes alone.
 */
#define BL_RECOVER_STUCK_NS  500000000ULL
#define BL_RECOVER_STUCK_MAX 1024
enum bl_recover_reason bl_recover_proc_stuck(struct bl_recover *r, uint64_t now, uint32_t node,
					     const struct bl_recover_stuck *s);
enum bl_recover_reason bl_recover_barred(struct bl_recover *r, uint64_t now, uint32_t node,
					 uint64_t version);
enum bl_recover_reason bl_recover_done(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t number);
enum bl_recover_reason bl_recover_resumed(struct bl_recover *r, uint64_t now, uint32_t node,
					  uint64_t number);
/* it does not answer somebody else: a message could not be forwarded */
enum bl_recover_reason bl_recover_down(struct bl_recover *r, uint64_t now, uint32_t node);
void bl_recover_saved_node(struct bl_recover *r, uint64_t now, uint32_t node);
void bl_recover_saved_failure(struct bl_recover *r, uint64_t now, uint64_t number);
void bl_recover_tick(struct bl_recover *r, uint64_t now);
/** bl_recover_due - when bl_recover_tick() is wanted; UINT64_MAX: never. */
uint64_t bl_recover_due(const struct bl_recover *r);
/**
 * bl_recover_next - the next thing to do; false: nothing more. To be asked after every event until
 * it says so.
 */
bool bl_recover_next(struct bl_recover *r, struct bl_recover_out *out);

/* looking at it */
uint64_t bl_recover_epoch(const struct bl_recover *r); /* 0: does not lead */
uint64_t bl_recover_number(const struct bl_recover *r);
bool bl_recover_isolated(const struct bl_recover *r);
bool bl_recover_doubts(const struct bl_recover *r);
/**
 * bl_recover_covered - whether the commit barrier waits for host @n, by what its neighbours have
 * confirmed: it is linked, and some input that hears it is not barred.
 */
bool bl_recover_covered(const struct bl_recover *r, const struct bl_recover_node *n);
const struct bl_recover_node *bl_recover_node(const struct bl_recover *r, uint32_t id);
const struct bl_recover_node *bl_recover_node_at(const struct bl_recover *r, uint32_t i);
uint32_t bl_recover_nodes(const struct bl_recover *r);
const struct bl_recover_failure *bl_recover_failure(const struct bl_recover *r, uint64_t number);
const struct bl_recover_failure *bl_recover_failure_at(const struct bl_recover *r, uint32_t i);
uint32_t bl_recover_failures(const struct bl_recover *r);
/** bl_recover_node_of - whose address it is; NULL: nobody's. */
const struct bl_recover_node *bl_recover_node_of(const struct bl_recover *r,
						 const uint8_t addr[16]);

#endif
