/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a controller's process, shared by the files that server.h lists. */
#ifndef BARLINE_CONTROLLER_CTL_PRIV_H
#define BARLINE_CONTROLLER_CTL_PRIV_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/library/systemd.h"
#include "base/log.h"
#include "base/status_socket.h"
#include "controller/config.h"
#include "controller/message.h"
#include "controller/recover/recover_core.h"
#include "controller/store/store.h"
#include "core/throttle_core.h"
#include "proto/session.h"

#define CTL_EPOCHS_MAX      64 /* elections that the status shows */
#define CTL_STRANGERS_SHOWN 16 /* nodes that are not admitted, in the status */

/*
 * Counters of messages and sessions: CTL_COUNT_x and the key in the status. What becomes of events
 * of the failure procedure is counted by enum bl_recover_reason.
 */
/* clang-format off */
#define CTL_COUNTS(X) \
	X(SESSIONS,        "sessions")        /* sessions accepted */ \
	X(BAD_MESSAGE,     "bad_message")     /* not a ToController message */ \
	X(STRANGER,        "stranger")        /* no HELLO yet, or a second one for another node */ \
	X(NOT_ADMITTED,    "not_admitted")    /* HELLO of a node that is not admitted */ \
	X(FORGED,          "forged")          /* HELLO of another node than the certificate's */ \
	X(TAKEN,           "taken")           /* HELLO of a node whose own session answers */ \
	X(EPOCH_FAR,       "epoch_far")       /* HELLO with an epoch beyond any election's */ \
	X(SAVED,           "saved")           /* record written to the store */ \
	X(SLOWED,          "slowed")          /* a session exceeded its quota, and waits */ \
	X(SILENT,          "silent")          /* session without a message for silence_ms */ \
	X(TOO_MANY,        "too_many")        /* connection refused: too many without HELLO */ \
	X(PUSHED_OUT,      "pushed_out")      /* connection without HELLO, for a newer one */ \
	X(BAD_SESSION,     "bad_session")     /* ended by an error of TLS, framing or network */ \
	X(FORWARDED,       "forwarded")       /* frame forwarded from host to host */ \
	X(FORWARD_BAD,     "forward_bad")     /* not of the reliable stream: ends session */ \
	X(FORWARD_FORGED,  "forward_forged")  /* source is not an address of the sending node */ \
	X(FORWARD_UNKNOWN, "forward_unknown") /* no host has the destination address */ \
	X(FORWARD_FAILED,  "forward_failed")  /* a host has failed, or did not answer in time */ \
	X(FORWARD_AWAY,    "forward_away")    /* a host has no session or no confirmed link */ \
	X(FORWARD_FULL,    "forward_full")    /* too many bytes wait for that host already */
/* clang-format on */
#define CTL_ENUM(sym, name) CTL_##sym,
enum ctl_count { CTL_COUNTS(CTL_ENUM) CTL_COUNT };
#undef CTL_ENUM

/** struct peer - A session with an agent. */
struct peer {
	struct peer *next;
	struct bl_ctl *c;
	struct bl_session *session;
	uint32_t node;     /* id from its HELLO; 0: no HELLO yet */
	uint64_t epoch;    /* highest epoch that the node had heard of, from its HELLO */
	uint64_t begun_ns; /* CLOCK_MONOTONIC of its connection */
	uint64_t heard_ns; /* CLOCK_MONOTONIC of its last message */
	uint8_t from[16];  /* remote address, IPv4 mapped; of IPv6 the first 64 bits */
	bool known;        /* an admitted node had its last session from there */
	char addr[64];     /* remote address and port, for people */
	/* dispatch.c */
	struct bl_throttle messages; /* of all messages */
	struct bl_throttle saves;    /* of those that make the controller save */
	struct ctl_bytes hello;      /* waits for the earlier session of that node to answer */
	uint32_t hello_node;         /* of @hello; 0: there is none */
	uint64_t hello_due_ns;       /* CLOCK_MONOTONIC at which that session counts as dead */
	uint64_t challenge;          /* number of the ping that it has to answer; 0: none */
};

/** struct ctl_node - A node that is admitted (nodes.c). */
struct ctl_node {
	uint32_t id;
	bool file;        /* it is in the file */
	bool leaves;      /* it is being removed: its HELLOs are refused */
	bool seen;        /* it had a session, from the address @from */
	bool stored;      /* the store has a record of it, as far as this controller knows */
	uint8_t from[16]; /* as of struct peer */
	char name[BL_RECOVER_NAME_MAX + 1];
};

/** struct ctl_stranger - A node that is not admitted. */
struct ctl_stranger {
	uint32_t id;
	uint64_t times;
	uint64_t last_ns; /* CLOCK_MONOTONIC */
	char name[BL_RECOVER_NAME_MAX + 1];
	char addr[64];
};

/** struct ctl_strangers - The last ones, and what was logged of them. */
struct ctl_strangers {
	struct ctl_stranger last[CTL_STRANGERS_SHOWN]; /* the newest first */
	uint32_t n;
	unsigned int unsaid; /* since the last line in the log */
	uint64_t logged_ns;  /* CLOCK_MONOTONIC of that line; 0: there was none */
};

/**
 * struct ctl_order - The command of `barline controller admit` or `remove` that is being carried
 * out, or the last one. The event loop and the status socket's thread use it under @lock.
 */
struct ctl_order {
	enum { CTL_ORDER_NONE, CTL_ORDER_ASKED, CTL_ORDER_SAVING, CTL_ORDER_ENDED } step;
	bool remove;
	bool force;
	bool again; /* the command is to be repeated */
	uint32_t id;
	unsigned int waits; /* records that are not deleted yet */
	char name[BL_RECOVER_NAME_MAX + 1];
	char done[256];
	char trouble[512];
	pthread_cond_t ended; /* @step has become ENDED */
	int kick_fd;          /* eventfd: the status socket's thread has asked */
	sd_event_source *kick;
};

/**
 * struct ctl_reload - Reads the file again (reload.c). A thread that has read a file hands it over
 * to the event loop in @asked, and waits. All but @one and @path are under struct bl_ctl's @lock.
 */
struct ctl_reload {
	char path[PATH_MAX]; /* of the file; "": there is none; under @one */
	pthread_mutex_t one; /* one reload at a time; taken before struct bl_ctl's @lock */
	struct bl_hangup *hangup;
	struct ctl_reload_ask *asked; /* NULL: nothing is asked, or the loop has answered */
	pthread_cond_t ended;         /* @asked has become NULL, or @closed is set */
	bool closed;                  /* the event loop does not turn any more */
	int kick_fd;                  /* eventfd: @asked is set; -1: none */
	sd_event_source *kick;
};

/** struct saved - A key in the store that this leader has loaded or written. */
struct saved {
	struct saved *next;
	enum bl_recover_do what; /* BL_RECOVER_SAVE_NODE or BL_RECOVER_SAVE_FAILURE */
	uint64_t id;             /* node id, or number of the failure */
	uint64_t rev;            /* revision of the key; 0: not written yet */
	uint64_t unix_ns;        /* of a failure: CLOCK_REALTIME of its announcement */
};

/** struct ctl_epoch - An election, as the status shows it. */
struct ctl_epoch {
	uint64_t epoch;
	uint64_t unix_ns; /* CLOCK_REALTIME at which the leader had loaded the store */
	char leader[64];
};

/* Steps of a change of admission: CTL_ADMIT_x and the text in the status. */
/* clang-format off */
#define CTL_ADMIT_STEPS(X) \
	X(NEVER,    "never")    /* there was no change yet */ \
	X(ASKED,    "asked")    /* handed over by the status socket; not begun yet */ \
	X(CHECK,    "check")    /* all nodes are asked whether they can change */ \
	X(SWITCHES, "switches") /* switches change */ \
	X(HOSTS,    "hosts")    /* hosts change */ \
	X(DONE,     "done")
/* clang-format on */
#define CTL_ENUM(sym, name) CTL_ADMIT_##sym,
enum ctl_admit_step { CTL_ADMIT_STEPS(CTL_ENUM) CTL_ADMIT_STEP_COUNT };
#undef CTL_ENUM

/** struct ctl_admit_node - A node in a change of admission. */
struct ctl_admit_node {
	uint32_t id;
	bool host;         /* false: a switch */
	bool told;         /* the command of the current step was sent and not answered yet */
	char said[512];    /* what the node changed, for people */
	char trouble[256]; /* why the node did not change; "": changed, or not its turn yet */
};

/**
 * struct ctl_admit - The last change of the whole rack's admission, or the current one (admit.c).
 * The event loop and the status socket's thread use it, both under struct bl_ctl's @lock.
 */
struct ctl_admit {
	uint64_t number; /* of the change; 0: there was none */
	enum ctl_admit_step step;
	char policy[16];
	uint64_t rate_bps; /* rate of the links; 0: unchanged */
	bool refused;      /* a node cannot change, so that no node is changed */
	uint64_t begun_ns; /* CLOCK_MONOTONIC of the first command to change; 0: none yet */
	uint64_t ended_ns; /* CLOCK_MONOTONIC of the last answer; 0: none yet */
	struct ctl_admit_node *nodes;
	uint32_t n;             /* entries of @nodes */
	int kick_fd;            /* eventfd: the status socket's thread has asked for a change */
	sd_event_source *kick;  /* on @kick_fd */
	sd_event_source *timer; /* of the current step: answers are late */
};

/** struct ctl_bad_sessions - Sessions that ended by an error, to be logged at a bounded rate. */
struct ctl_bad_sessions {
	unsigned int n;     /* since the last line in the log */
	uint64_t logged_ns; /* CLOCK_MONOTONIC of the last line; 0: there was none */
	char last[400];     /* address and reason of the last one */
};

/**
 * struct bl_ctl - A controller. It belongs to the thread that runs bl_ctl_run(), which holds @lock
 * while it dispatches events; the status socket's thread reads under @lock.
 */
struct bl_ctl {
	struct bl_ctl_cfg cfg;
	pthread_mutex_t lock;
	sd_event *ev;
	struct bl_store *store;
	struct bl_store_candidate candidate; /* callbacks of the election (lead.c) */
	struct bl_session_tls *tls;          /* NULL: sessions are not encrypted */
	struct bl_recover *rec;
	struct bl_status_socket *status_socket;

	/* server.c */
	int listen_fd;
	int spare_fd; /* a descriptor in reserve (sessions.c) */
	int stop_fd;  /* eventfd, written by bl_ctl_stop() */
	sd_event_source *listen_src;
	sd_event_source *stop_src;
	bool stop;           /* bl_ctl_run() is to return */
	struct bl_err fatal; /* why this controller cannot go on; text "": it can */

	/* peer.c and sessions.c */
	struct peer *peers;
	unsigned int npeers;    /* sessions in @peers */
	unsigned int strangers; /* those of them without a HELLO */
	uint64_t challenges;    /* number of the last ping that asked whether a session lives */
	sd_event_source *beat;  /* closes silent sessions */
	sd_event_source *asks;  /* an earlier session has not answered in time (dispatch.c) */
	struct ctl_bad_sessions bad;

	/* outputs.c */
	struct saved *saved;
	sd_event_source *timer; /* when bl_recover_tick() is due */

	/* lead.c */
	uint64_t elected;     /* epoch that this controller leads with, or is loading; 0: neither */
	bool loading;         /* elected, and the store is still being read */
	uint64_t behind_said; /* @elected when the log said that a node obeys a later epoch */
	char leader[64];      /* address of the leader; "": unknown */
	char trouble[1024];   /* why the store cannot be used; "": it can */
	char lost[256];       /* why this controller last lost the lead; "": it never did */
	struct ctl_epoch epochs[CTL_EPOCHS_MAX]; /* oldest first */
	unsigned int nepochs;

	struct ctl_admit admit;

	/* nodes.c */
	struct ctl_node *nodes; /* by id */
	uint32_t nnodes;
	struct ctl_strangers stranger;
	struct ctl_order order;

	struct ctl_reload reload;

	uint64_t reasons[BL_RECOVER_REASON_COUNT]; /* results of events, by bl_recover_reason */
	uint64_t counts[CTL_COUNT];
};

#endif
