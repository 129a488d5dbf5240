/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the controller's process shares among loader/loop.c and controller/status.c. */
#ifndef BARLINE_CONTROLLER_SERVER_PRIV_H
#define BARLINE_CONTROLLER_SERVER_PRIV_H

#include <jansson.h>
#include <pthread.h>

#include "base/status_socket.h"
#include "message.h"
#include "server.h"

#define CTL_EPOCHS 64 /* elections that are shown */
#define CTL_SAY_NS                                                                     \
	1000000000ULL /* between two lines in the log about sessions that were no good \
		       */

/* X(SYMBOL, "name"): what became of messages and sessions, beside bl_recover_reason */
/* clang-format off */
#define CTL_COUNTS(X) \
	X(SESSIONS,    "sessions")	/* begun */ \
	X(BAD_MESSAGE, "bad_message")	/* no message, or one that is none for controllers */ \
	X(STRANGER,    "stranger")	/* something before HELLO, or HELLO of another node on the same session */ \
	X(SILENT,      "silent")	/* said nothing for silence_ms */ \
	X(TOO_MANY,    "too_many")	/* sessions */ \
	X(BAD_SESSION, "bad_session")	/* ended by an error: TLS, framing, the network */ \
	X(FORWARDED,   "forwarded")	/* frames sent on from host to host */ \
	X(FORWARD_BAD, "forward_bad")	/* no frame of the reliable stream, or too long: ends the session */ \
	X(FORWARD_FORGED, "forward_forged")   /* not from an address of the node that sent it */ \
	X(FORWARD_UNKNOWN, "forward_unknown") /* for an address that no host has */ \
	X(FORWARD_FAILED, "forward_failed")   /* from or for a host that failed, or is being asked about */ \
	X(FORWARD_AWAY, "forward_away")	/* for a host without a session */ \
	X(FORWARD_FULL, "forward_full")	/* too much waits for that host already */
/* clang-format on */
#define CTL_ENUM(sym, name) CTL_##sym,
enum ctl_count { CTL_COUNTS(CTL_ENUM) CTL_COUNT };
#undef CTL_ENUM

/**
 * struct peer - a session. @node: 0: has not said HELLO. @epoch: highest one that it said it
 * heard. @heard_ns: CLOCK_MONOTONIC.
 */
struct peer {
	struct peer *next;
	struct bl_ctl *c;
	struct bl_session *session;
	uint32_t node;
	uint64_t epoch, heard_ns;
	char addr[64];
};

/** struct saved - a key of the store, and its revision. */
struct saved {
	struct saved *next;
	struct bl_ctl *c;
	enum bl_recover_do what;
	uint64_t id, rev, epoch;
	uint64_t unix_ns; /* of a failure: when it was announced */
};

struct epoch {
	uint64_t epoch, unix_ns;
	char leader[64];
};

/* X(SYMBOL, "name"): a change of admission, step by step */
/* clang-format off */
#define CTL_ADMIT_STEPS(X) \
	X(NEVER,    "never") \
	X(ASKED,    "asked")	/* at the door; the loop has not looked yet */ \
	X(CHECK,    "check")	/* all nodes are asked whether they can */ \
	X(SWITCHES, "switches")	/* switches change */ \
	X(HOSTS,    "hosts")	/* hosts change */ \
	X(DONE,     "done")
/* clang-format on */
#define CTL_ENUM(sym, name) CTL_ADMIT_##sym,
enum ctl_admit_step { CTL_ADMIT_STEPS(CTL_ENUM) CTL_ADMIT_STEP_COUNT };
#undef CTL_ENUM

/** struct ctl_admit_node - a node in a change of admission. */
struct ctl_admit_node {
	uint32_t id;
	bool host;
	bool told;         /* was sent the order of this step, and has not answered */
	char said[512];    /* what is different there now, for people */
	char trouble[256]; /* why nothing is; "": it is done, or not its turn yet */
};

/**
 * struct ctl_admit - the last change of admission of the whole rack (admit.c), or the one under
 * way. All under the controller's lock.
 */
struct ctl_admit {
	uint64_t number; /* of the change; 0: there was none */
	enum ctl_admit_step step;
	char policy[16];
	uint64_t rate_bps; /* 0: as it is */
	bool refused;      /* a node cannot: none is changed */
	uint64_t begun_ns; /* CLOCK_MONOTONIC: the first node was told to change; 0: none was */
	uint64_t ended_ns; /* the last one has answered */
	struct ctl_admit_node *nodes;
	uint32_t n;
	int kick_fd; /* the door has put a change here */
	sd_event_source *kick, *timer;
};

struct bl_ctl {
	struct bl_ctl_cfg cfg;
	sd_event *ev;
	struct bl_store *store;
	struct bl_store_candidate candidate;
	struct bl_session_tls *tls;
	struct bl_recover *rec;
	int listen_fd, stop_fd;
	sd_event_source *listen_src, *stop_src, *timer, *beat;
	struct peer *peers;
	unsigned int npeers, strangers;
	struct saved *saved;
	bool stop, loading;
	uint64_t elected; /* the epoch that is being loaded, or leads; 0: neither */
	/*
	 * the highest epoch that a node obeys already, if that is above elected: it obeys no order
	 * of this leader; 0: none
	 */
	uint64_t behind;
	char leader[64], trouble[512], lost[256];
	struct epoch epochs[CTL_EPOCHS];
	unsigned int nepochs;
	uint64_t reasons[BL_RECOVER_REASON_COUNT], counts[CTL_COUNT];
	struct {
		unsigned int n; /* sessions that were no good, since that was said last */
		uint64_t said_ns;
		char last[400];
	} bad;
	struct bl_err fatal;
	pthread_mutex_t lock; /* held while the loop dispatches; bl_ctl_text() reads under it */
	struct bl_status_socket *door;
	struct ctl_admit admit;
};

/* loader/loop.c */
/**
 * ctl_peer_ready - the session of node @id, if that was taken by this leader (WELCOME); else NULL.
 */
struct peer *ctl_peer_ready(struct bl_ctl *c, uint32_t id);
/** ctl_send - frees @b. */
void ctl_send(struct peer *p, struct ctl_bytes b);
bool ctl_leading(const struct bl_ctl *c);

/* admit.c */
int ctl_admit_open(struct bl_ctl *c, struct bl_err *err);
void ctl_admit_close(struct bl_ctl *c);
/**
 * ctl_admit_ask - from the door: @said is "admission POLICY BITS_PER_S". Returns a JSON object from
 * malloc(): state; number of the change; trouble: why there is none.
 */
char *ctl_admit_ask(struct bl_ctl *c, const char *said);
/** ctl_admit_row - the last change, for people; under the lock. */
json_t *ctl_admit_row(const struct bl_ctl *c);
/** ctl_admit_heard - a node's answer. */
void ctl_admit_heard(struct bl_ctl *c, uint32_t node, const Bl__Admitted *m);
/** ctl_admit_lost - this controller leads no more: what is under way ends here. */
void ctl_admit_lost(struct bl_ctl *c);

/* forward.c. False: the session is over. */
bool ctl_forward(struct peer *p, const Bl__Forward *m);

#endif
