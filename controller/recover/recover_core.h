/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The failure procedure of reliable 1Pipe (section 5.2) as a state machine: time and events go in,
 * outputs (records to save, commands to send) come out. It has no socket, no store and no clock;
 * the files in controller/ provide them.
 *
 *   Detect      Reports come in: a silent link with its last commit barrier C, a process that died
 *               with its T. For a short time the machine waits for more reports of the same
 *               failure.
 *   Determine   determine.h derives which nodes failed, with which T; which inputs have to be
 *               frozen first (FREEZE), and which outputs have to be barred (BAR) before T is
 *               announced.
 *   Broadcast   The decision is saved, then FAIL is sent to the correct hosts. A saved decision
 *               never changes, whoever leads.
 *   Discard, Recall and Callback are done by the hosts.
 *   Resume      After DONE of all correct hosts, and after that is saved: RESUME is sent to the
 *               nodes whose inputs are frozen.
 *
 * Every command is sent after the decision behind it was saved, and carries the epoch. If a node
 * obeys an old leader because it has not heard of the next one, the command is therefore the same
 * that the next leader would send.
 *
 * Example, times in ms:
 *
 *      0   switch 4 reports port 1 (host 2) silent, C = 900
 *      5   settled: host 2 failed, T = 900, switch 4's output to it has to be barred: BAR
 *      6   barred: failure 7 is to be saved
 *      9   saved: FAIL to hosts 1 and 3
 *     10   host 1 is done
 *   1009   host 3 has not answered: it is down itself, its link has to be asked about (FREEZE to
 *          switch 4), and so on as failure 8. When failure 8 is announced, nothing of failure 7
 *          waits for host 3 any more: RESUME is saved and sent to switch 4.
 *
 * A process that left in order, with no message outstanding, is not a failure. It is announced at
 * once in a record of its own, so that senders stop waiting for its ACKs. No input is frozen for
 * it, and a host that does not confirm it is not late.
 *
 * A node that failed is not waited for, and stays barred until it joins anew with new processes. A
 * link that was resumed while its node lives joins by itself as soon as it is heard.
 *
 * If the controller has sessions with less than half of the nodes that it knows, the fault is more
 * likely its own: no node is declared down for not answering, and the status says so
 * (bl_recover_isolated()). The same holds if more than half of the hosts that would go on otherwise
 * would be cut off (bl_recover_doubts()): otherwise, an agent of a rack's only switch that restarts
 * would end every process in the rack. The controller then waits for the answers. The last host is
 * an exception: it cuts no other host off.
 *
 * What a node reports of its inputs counts only after the node has heard of this leader's epoch
 * (@sworn): a command of the previous leader that is still under way could resume the very input
 * that a T was taken from. An input does not count any more once it is decided to resume it; that
 * is decided when all correct hosts have completed everything that was announced until then.
 *
 * Agents are trusted. What a wrong agent can do is bounded: unknown numbers and names are refused
 * and counted.
 */
#ifndef BARLINE_CONTROLLER_RECOVER_CORE_H
#define BARLINE_CONTROLLER_RECOVER_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/recover/determine.h"
#include "maps/failure_abi.h"

#define BL_RECOVER_NODES_MAX     4096
#define BL_RECOVER_PORTS_MAX     256
#define BL_RECOVER_ADDRS_MAX     16
#define BL_RECOVER_ENDPOINTS_MAX 4096
#define BL_RECOVER_OPEN_MAX      64   /* failures that are not finished */
#define BL_RECOVER_KEEP_MAX      1000 /* finished failures that are remembered */
#define BL_RECOVER_PROCS_MAX     4096 /* processes that died and are not announced yet */
#define BL_RECOVER_NAME_MAX      31

/* Result of an event: BL_RECOVER_x and the key of its counter in the status. */
/* clang-format off */
#define BL_RECOVER_REASONS(X) \
	X(OK,              "ok") \
	X(NOT_LEADING,     "not_leading") \
	X(UNKNOWN_NODE,    "unknown_node")    /* it never sent HELLO */ \
	X(UNKNOWN_PORT,    "unknown_port")    /* not in its HELLO, or with another neighbour */ \
	X(UNKNOWN_FAILURE, "unknown_failure") /* no such failure, or it is in another step */ \
	X(FAILED_NODE,     "failed_node")     /* announced as failed, and has not joined anew */ \
	X(TOO_EARLY,       "too_early")       /* no HELLO since it heard of this epoch */ \
	X(REPEATED,        "repeated")        /* known already */ \
	X(BAD_HELLO,       "bad_hello")       /* out of range, or contradicts itself */ \
	X(BAD_C,           "bad_c")           /* more than 48 bits */ \
	X(FULL,            "full")            /* out of memory, or beyond a limit above */ \
	/* a process of a host without addresses: no other host could tell who that was. It is */ \
	/* accepted when the host has reported an address. */ \
	X(NO_ADDRESS,      "no_address") \
	/* a HELLO with an address of another node that has not failed: it counts without it */ \
	X(ADDRESS_TAKEN,   "address_taken")
/* clang-format on */
#define BL_RECOVER_ENUM(sym, name) BL_RECOVER_##sym,
enum bl_recover_reason { BL_RECOVER_REASONS(BL_RECOVER_ENUM) BL_RECOVER_REASON_COUNT };
#undef BL_RECOVER_ENUM

/** bl_recover_reason_name - Returns the key of the counter of @r; "?" if it is out of range. */
const char *bl_recover_reason_name(enum bl_recover_reason r);

/* What is at the other end of a port. A host's NIC has a switch above. */
enum bl_recover_role { BL_RECOVER_HOST, BL_RECOVER_UP, BL_RECOVER_DOWN };

/**
 * struct bl_recover_port - An input of a node and the output beside it. The fields up to @c are
 * reported by the node, those below are the state machine's.
 */
struct bl_recover_port {
	uint32_t port;      /* the node's number of it */
	uint32_t neighbour; /* node id at the other end; 0: not heard yet */
	/*
	 * Which silence of this input @state SILENT is about; the node counts them. RESUME names
	 * it: when a command that was under way for long arrives, the input may have come back and
	 * fallen silent again.
	 */
	uint32_t death;
	uint8_t role;  /* enum bl_recover_role */
	uint8_t state; /* of the input, enum bl_det_way_state */
	uint64_t c;    /* SILENT: the frozen register, 48 bits or BL_DET_NO_C */

	bool fence;  /* the output has to be barred before a failure is announced */
	bool barred; /* the output is to be barred: @fence, or its neighbour has failed */
	bool asked;  /* FREEZE was sent for the input and not answered yet */
	bool behind; /* SILENT: the input was BEHIND before that */
	/*
	 * Reported as rising while its neighbour was GONE: that enum bl_det_way_state plus 1, to be
	 * applied when the neighbour is back; 0: no such report.
	 */
	uint8_t rises;
	uint64_t record; /* number of the failure that resumes the input; 0: none */
	/*
	 * Number of the last failure before the input became live (again). Failures up to that
	 * number say nothing about the input any more.
	 */
	uint64_t joined;
};

/** struct bl_recover_hello - Everything that a node reports of itself. The caller owns the memory.
 */
struct bl_recover_hello {
	uint32_t id;
	uint64_t epoch; /* highest epoch that the node had heard of before it read its inputs */
	uint8_t kind;   /* enum bl_det_kind */
	bool rejoin;    /* the node knows that it had failed; its old processes are gone */
	char name[BL_RECOVER_NAME_MAX + 1];
	const uint8_t (*addr)[16];          /* IPv6, or IPv4 mapped; @naddrs of them */
	const struct bl_recover_port *port; /* @nports of them */
	const uint16_t *endpoint; /* UDP ports of a host's endpoints, @nendpoints of them */
	uint32_t naddrs;
	uint32_t nports;
	uint32_t nendpoints;
};

/** struct bl_recover_node - A node that the controller knows. */
struct bl_recover_node {
	uint32_t id;
	uint8_t kind;  /* enum bl_det_kind */
	uint8_t state; /* enum bl_det_node_state */
	uint8_t why;   /* of a node that is GONE: enum bl_det_why */
	bool agent;    /* it sent HELLO at least once; false: known as a neighbour only */
	/*
	 * It had a link with both ways live since it came or joined anew. A node that never had one
	 * is not judged: no other node depends on it.
	 */
	bool linked;
	bool saved;     /* its record is in the store */
	bool saving;    /* its record is being written */
	bool again;     /* it has changed while @saving, and is to be written again */
	bool connected; /* it has a session */
	/*
	 * It has reported its inputs since it heard of our epoch, so that no command of an earlier
	 * leader changes them any more.
	 */
	bool sworn;
	bool welcome; /* WELCOME is to be sent as soon as it is saved */
	bool late;    /* used within bl_recover_tick(): it has not answered in time */
	bool leaves;  /* it is DOWN because it leaves in order */
	char name[BL_RECOVER_NAME_MAX + 1];
	uint8_t (*addr)[16];
	struct bl_recover_port *port;
	uint16_t *endpoint;
	uint32_t naddrs;
	uint32_t nports;
	uint32_t nendpoints;
	uint64_t gone;   /* number of the failure that announced it; 0: none */
	uint64_t joined; /* number of the last failure before it was linked: none up to it concerns
			    it */
	uint64_t bar;    /* version of the list of its barred ports */
	uint64_t barred; /* version that it has confirmed */
	uint64_t due; /* time by which it has to answer FREEZE or BAR, ns; 0: nothing to answer */
	/*
	 * Its daemon has stopped on purpose, and no answer of it is late before this time, ns; 0 or
	 * in the past: it is not away.
	 */
	uint64_t away_until;
	uint64_t away_ns; /* length of the absence as granted and saved; 0: not away, or it is over
			   */
};

/** struct bl_recover_proc - A process that is gone. */
struct bl_recover_proc {
	uint16_t port; /* UDP port of its endpoint */
	uint16_t life; /* incarnation of the endpoint; 0: not reported */
	uint8_t why;   /* enum bl_why */
	uint64_t t;    /* failure timestamp; BL_DET_NO_C: nothing of it was committed anywhere */
};

/** struct bl_recover_failed - A node, or a process on a node, that a failure announces. */
struct bl_recover_failed {
	uint32_t node;
	uint8_t why; /* of a node: enum bl_det_why; BL_DET_CORRECT: a process */
	/* the process; port 0: all processes of the node, and of the other fields only t counts */
	struct bl_recover_proc proc;
	uint32_t naddrs;
	uint8_t (*addr)[16]; /* addresses of the node when it failed, @naddrs of them */
};

/** struct bl_recover_input - A frozen input that a failure resumes. */
struct bl_recover_input {
	uint32_t node;
	uint32_t port;
	uint32_t neighbour;
	uint32_t death; /* which silence of the input, see struct bl_recover_port */
	uint64_t c;     /* the register that it was frozen at */
};

/* Steps of a failure, as they are saved. */
enum bl_recover_step {
	BL_RECOVER_ANNOUNCED, /* the hosts complete it */
	BL_RECOVER_RESUMED,   /* all hosts have; the inputs are resumed */
	BL_RECOVER_FINISHED,  /* all inputs are resumed */
};

/** struct bl_recover_wait - A node that has to answer for a failure. */
struct bl_recover_wait {
	uint32_t node;
	bool done;    /* it has sent DONE, or need not */
	bool resumed; /* it has sent RESUMED, or need not */
};

/**
 * struct bl_recover_failure - A failure. The times are those of this leader, in ns; 0: the step did
 * not happen under this leader.
 */
struct bl_recover_failure {
	uint64_t number;
	uint64_t epoch; /* of the leader that announced it */
	uint8_t step;   /* enum bl_recover_step, saved or being saved */
	bool saving;    /* @step is being written */
	bool separated; /* see struct bl_det_sum */
	/*
	 * Nothing failed: a process has left in order. The hosts are told until they confirm it,
	 * but nothing waits for that, and there is no input to resume.
	 */
	bool left;
	struct bl_recover_failed *failed; /* @nfailed of them */
	struct bl_recover_input *input;   /* @ninputs of them */
	struct bl_recover_wait *wait;     /* @nwaits of them */
	uint32_t nfailed;
	uint32_t ninputs;
	uint32_t nwaits;
	uint64_t at_ns;        /* the first report */
	uint64_t settled_ns;   /* the decision */
	uint64_t announced_ns; /* ANNOUNCED is saved */
	uint64_t done_ns;      /* the last DONE */
	uint64_t resumed_ns;   /* the last RESUMED */
	uint64_t finished_ns;  /* FINISHED is saved */
	uint64_t due_ns;       /* time by which the nodes in @wait have to answer */
};

/** struct bl_recover_stuck - A report that frames from one process do not reach another one. */
struct bl_recover_stuck {
	struct bl_recover_proc from; /* the sender; its why and t are not used */
	struct bl_recover_proc to;   /* the receiver; its why and t are not used */
	uint8_t addr[16];            /* address of the receiver's host */
};

/* Kinds of outputs. The caller reads the content from the node or the failure at once. */
enum bl_recover_do {
	BL_RECOVER_SAVE_NODE,    /* save @node, then call bl_recover_saved_node() */
	BL_RECOVER_SAVE_FAILURE, /* save @number, then call bl_recover_saved_failure() */
	BL_RECOVER_DROP_FAILURE, /* delete @number: it is too old to be remembered */
	/* commands to @node */
	BL_RECOVER_WELCOME, /* its HELLO is accepted; @number: failure that announced it, or 0 */
	BL_RECOVER_BAR,     /* bar all ports with @barred, and no others */
	BL_RECOVER_FREEZE,  /* freeze the inputs with @asked */
	BL_RECOVER_FAIL,    /* failure @number is announced */
	BL_RECOVER_RESUME,  /* resume the inputs of failure @number */
	BL_RECOVER_AWAY,    /* its absence is saved and holds under the next leader, too */
	BL_RECOVER_PUT_OUT, /* expel endpoint @number % 65536 if it has life @number / 65536 */
};

/** struct bl_recover_out - An output. */
struct bl_recover_out {
	enum bl_recover_do what;
	uint32_t node;
	uint64_t number;
};

/** struct bl_recover_cfg - Settings. */
struct bl_recover_cfg {
	uint64_t settle_ns; /* from the first report to a decision */
	uint64_t answer_ns; /* time that a node has for an answer */
	uint64_t grace_ns;  /* additional time after a change of the leader */
};

struct bl_recover;

/** bl_recover_new - Returns a state machine that does not lead; NULL: out of memory. */
struct bl_recover *bl_recover_new(const struct bl_recover_cfg *cfg);
void bl_recover_free(struct bl_recover *r);

/**
 * bl_recover_limits - Replaces the settings. What is being waited for keeps the time at which the
 * waiting ends, whether it leads or not.
 */
void bl_recover_limits(struct bl_recover *r, const struct bl_recover_cfg *cfg);

/**
 * bl_recover_load_node, bl_recover_load_failure - Load what earlier leaders had saved, in any order
 * and before bl_recover_start(). The content is copied.
 *
 * Return 0; -1: it contradicts itself, or there is no memory.
 */
int bl_recover_load_node(struct bl_recover *r, const struct bl_recover_node *n);
int bl_recover_load_failure(struct bl_recover *r, const struct bl_recover_failure *f);

/** bl_recover_start - Begins to lead with @epoch at time @now, ns. */
void bl_recover_start(struct bl_recover *r, uint64_t now, uint64_t epoch);

/** bl_recover_reset - Does not lead any more: forgets everything. */
void bl_recover_reset(struct bl_recover *r);

/*
 * Events. @now is the time in ns, @node the node that reports. Each returns what became of it;
 * outputs and the next time to call bl_recover_tick() are to be fetched afterwards.
 */

/** bl_recover_hello - A node has reported everything about itself. */
enum bl_recover_reason bl_recover_hello(struct bl_recover *r, uint64_t now,
					const struct bl_recover_hello *h);

/** bl_recover_bye - The last session of a node is over. */
enum bl_recover_reason bl_recover_bye(struct bl_recover *r, uint64_t now, uint32_t node);

/**
 * bl_recover_away - The node's daemon stops and is expected back within @ns, at most
 * BL_RECOVER_AWAY_MAX_NS. Once it sends HELLO again it has as long as any other node to answer what
 * it missed. Links that fall silent are judged as ever.
 *
 * The absence is saved. The next leader grants the same time once more from when it begins to lead,
 * since two machines have no common time. A node that is back, or late, is saved as not away.
 */
#define BL_RECOVER_AWAY_MAX_NS 60000000000ULL
enum bl_recover_reason bl_recover_away(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t ns);

/** bl_recover_link_down - Input @port, to @neighbour, is silent and frozen at @c. */
enum bl_recover_reason bl_recover_link_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    uint32_t port, uint32_t neighbour, uint64_t c,
					    uint32_t death);

/** bl_recover_proc_down - A process of the host is gone. */
enum bl_recover_reason bl_recover_proc_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    const struct bl_recover_proc *p);

/**
 * bl_recover_proc_stuck - Two correct processes do not reach each other although the controller
 * forwards, so one of them has failed (1Pipe section 5.2). Complaints are collected for
 * BL_RECOVER_STUCK_NS. Then the process that is at an end of most of them is expelled, until no
 * complaint is left. Of two equal processes the receiver is expelled; a sender that several
 * receivers do not hear is expelled alone.
 */
#define BL_RECOVER_STUCK_NS  500000000ULL
#define BL_RECOVER_STUCK_MAX 1024
enum bl_recover_reason bl_recover_proc_stuck(struct bl_recover *r, uint64_t now, uint32_t node,
					     const struct bl_recover_stuck *s);

/** bl_recover_barred - The node has barred the ports of list @version. */
enum bl_recover_reason bl_recover_barred(struct bl_recover *r, uint64_t now, uint32_t node,
					 uint64_t version);

/** bl_recover_done - The host has completed failure @number. */
enum bl_recover_reason bl_recover_done(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t number);

/** bl_recover_resumed - The node has resumed its inputs of failure @number. */
enum bl_recover_reason bl_recover_resumed(struct bl_recover *r, uint64_t now, uint32_t node,
					  uint64_t number);

/**
 * bl_recover_leave - The host leaves in order, see Leave in proto/ctl.proto. It goes the way of a
 * node that fails, with BL_DET_LEFT for the reason: its input is frozen and resumed out of C, it is
 * barred, and no failure waits for it until it joins anew.
 */
enum bl_recover_reason bl_recover_leave(struct bl_recover *r, uint64_t now, uint32_t node);

/** bl_recover_down - The node has failed whatever its links do: it does not answer. */
enum bl_recover_reason bl_recover_down(struct bl_recover *r, uint64_t now, uint32_t node);

/**
 * enum bl_recover_bond - How a node is bound to the others, before bl_recover_forget().
 */
enum bl_recover_bond {
	BL_RECOVER_FREE,  /* no other node depends on it */
	BL_RECOVER_HEARD, /* another node has an input from it, and would wait for its answers */
	BL_RECOVER_FAILS, /* its failure is being announced or is not finished */
	BL_RECOVER_SAVES, /* its record is being written */
};
enum bl_recover_bond bl_recover_bond(const struct bl_recover *r, uint32_t node);

/**
 * bl_recover_forget - The node is no member any more, and nothing waits for it. Its bond is FREE. A
 * node that was announced as failed stays barred, as long as a failure that names it is remembered.
 */
void bl_recover_forget(struct bl_recover *r, uint64_t now, uint32_t node);

/** bl_recover_saved_node, bl_recover_saved_failure - The record is in the store. */
void bl_recover_saved_node(struct bl_recover *r, uint64_t now, uint32_t node);
void bl_recover_saved_failure(struct bl_recover *r, uint64_t now, uint64_t number);

/** bl_recover_tick - Time has passed. */
void bl_recover_tick(struct bl_recover *r, uint64_t now);

/** bl_recover_due - Returns when bl_recover_tick() is due, ns; UINT64_MAX: never. */
uint64_t bl_recover_due(const struct bl_recover *r);

/**
 * bl_recover_next - Fetches the next output into *@out. To be called after every event until it
 * returns false: there are no more outputs.
 */
bool bl_recover_next(struct bl_recover *r, struct bl_recover_out *out);

/* Reading the state. What is returned is valid until the next event. */

/** bl_recover_epoch - Returns the epoch of this leader; 0: it does not lead. */
uint64_t bl_recover_epoch(const struct bl_recover *r);

/** bl_recover_number - Returns the number of the newest failure; 0: there was none. */
uint64_t bl_recover_number(const struct bl_recover *r);

/** bl_recover_isolated - Whether less than half of the known agents have a session. */
bool bl_recover_isolated(const struct bl_recover *r);

/**
 * bl_recover_doubts - Whether nodes are late that are not declared down because that would cut off
 * more than half of the hosts.
 */
bool bl_recover_doubts(const struct bl_recover *r);

/**
 * bl_recover_covered - Whether the commit barrier waits for host @n, by what its neighbours have
 * confirmed: it is linked, and an input that receives it is live and not barred.
 */
bool bl_recover_covered(const struct bl_recover *r, const struct bl_recover_node *n);

/** bl_recover_node - Returns the node with @id; NULL: unknown. */
const struct bl_recover_node *bl_recover_node(const struct bl_recover *r, uint32_t id);

/** bl_recover_node_at - Returns node @i of bl_recover_nodes(), in the order of their ids; NULL. */
const struct bl_recover_node *bl_recover_node_at(const struct bl_recover *r, uint32_t i);
uint32_t bl_recover_nodes(const struct bl_recover *r);

/** bl_recover_failure - Returns the failure with @number; NULL: unknown or forgotten. */
const struct bl_recover_failure *bl_recover_failure(const struct bl_recover *r, uint64_t number);

/** bl_recover_failure_at - Returns failure @i of bl_recover_failures(), oldest first; NULL. */
const struct bl_recover_failure *bl_recover_failure_at(const struct bl_recover *r, uint32_t i);
uint32_t bl_recover_failures(const struct bl_recover *r);

/**
 * bl_recover_node_of - Returns the node that has address @addr; NULL: none. A node that has failed
 * is returned only if no other has the address.
 */
const struct bl_recover_node *bl_recover_node_of(const struct bl_recover *r,
						 const uint8_t addr[16]);

#endif
