/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events: what happens to a node, a controller or an arbiter that somebody may want to see later.
 * An event is a log line with a name and fields, so there is one sentence for people and programs.
 * It goes
 *
 *   - into the log, which is the journal with fields of its own (BARLINE_EVENT=clock_void,
 *     BARLINE_NODE=h1, ...) if systemd runs the process, else standard error;
 *   - of a node, also into its file of events in the run directory: one JSON object per line, as
 *     `barline events` shows them. The file has EVENT_FILE_BYTES at most and is then renamed, with
 *     ".1" at its end, in place of the one before.
 *
 * Example:
 *
 *	bl_event(BL_EVENT(SEND_VOID, WARN, n->meta.name, .endpoint = 61700),
 *		 "%s: endpoint %u has stopped in the middle of a send", ...);
 *
 * To add an event: one row below, where it is sent, and a row in the table of docs/health.md, which
 * a test compares with this list.
 *
 * Thread rules: bl_event() may be called from any thread. It takes no lock, and writes the line
 * with one write(), which does not wait in a tmpfs. The other functions are for the main thread.
 */
#ifndef BARLINE_BASE_EVENT_H
#define BARLINE_BASE_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* X(SYMBOL, "name", "fields besides event, level, node and text", "when it is sent") */
#define BL_EVENTS(X)                                                                              \
	X(DAEMON_STARTED, "daemon_started", "pid", "a daemon has made the node and serves it")    \
	X(DAEMON_TAKEN_OVER, "daemon_taken_over", "pid",                                          \
	  "a daemon has taken over a node that was there, after a restart or an upgrade")         \
	X(DAEMON_STOPPED, "daemon_stopped", "pid reason", "the daemon ends in order")             \
	X(CARETAKER_BEGUN, "caretaker_begun", "pid reason",                                       \
	  "a caretaker stands in for the daemon")                                                 \
	X(CARETAKER_ENDED, "caretaker_ended", "pid reason", "the caretaker ends")                 \
	X(SPARE_READY, "spare_ready", "pid",                                                      \
	  "the spare caretaker is ready to stand in for the daemon")                              \
	X(SPARE_LOST, "spare_lost", "pid reason",                                                 \
	  "the spare caretaker has ended, and another one is started")                            \
	X(RELOADED, "reloaded", "reason",                                                         \
	  "a daemon, controller or arbiter has read its configuration, or a daemon its keys, "    \
	  "again")                                                                                \
	X(RELOAD_REFUSED, "reload_refused", "reason",                                             \
	  "a reload was refused, and nothing has changed")                                        \
	X(CLOCK_GOOD, "clock_good", "bound_us", "the system clock is synchronised")               \
	X(CLOCK_HOLDOVER, "clock_holdover", "bound_us",                                           \
	  "the system clock is not synchronised any more, and its bound widens")                  \
	X(CLOCK_VOID, "clock_void", "bound_us reason",                                            \
	  "bus time must not be used, and nothing ordered is sent")                               \
	X(CLOCK_STEPPED, "clock_stepped", "reason",                                               \
	  "the system clock was set, or the machine was suspended")                               \
	X(CLOCK_WRONG, "clock_wrong", "peer iface bound_us", "neighbours prove a clock wrong")    \
	X(CLOCK_AGREES, "clock_agrees", "peer iface",                                             \
	  "nothing is proven against a clock any more")                                           \
	X(INTERFACE_GONE, "interface_gone", "iface",                                              \
	  "an interface of the node does not exist any more")                                     \
	X(INTERFACE_BACK, "interface_back", "iface", "an interface is there again, and attached") \
	X(INTERFACE_UNFIT, "interface_unfit", "iface reason",                                     \
	  "ordered messages do not pass an interface from now on")                                \
	X(INTERFACE_FIT, "interface_fit", "iface", "ordered messages pass it again")              \
	X(MTU_REFUSED, "mtu_refused", "iface reason",                                             \
	  "an interface got an MTU that its programs cannot have, and larger frames are dropped") \
	X(MTU_FITS, "mtu_fits", "iface", "its MTU is within the limit again")                     \
	X(QUEUES_BROKEN, "queues_broken", "iface reason",                                         \
	  "an interface is no FIFO for ordered frames")                                           \
	X(QUEUES_MADE, "queues_made", "iface", "an interface was made a FIFO again")              \
	X(HOOK_LOST, "hook_lost", "iface reason",                                                 \
	  "somebody has removed or replaced a program of the node")                               \
	X(HOOK_BACK, "hook_back", "iface", "the program is attached again")                       \
	X(LINK_OVERTAKEN, "link_overtaken", "iface peer",                                         \
	  "a link that is no FIFO: frames were overtaken")                                        \
	X(FRAMES_LOST, "frames_lost", "iface peer",                                               \
	  "frames that a neighbour sent have not come in; once a minute for each link")           \
	X(NEIGHBOUR_JOINED, "neighbour_joined", "iface peer",                                     \
	  "a neighbour is heard, and its barrier counts")                                         \
	X(NEIGHBOUR_EXCLUDED, "neighbour_excluded", "iface peer",                                 \
	  "a neighbour is silent or lags, and its barrier does not count")                        \
	X(SESSION_BEGUN, "session_begun", "controller",                                           \
	  "there is a session with the controller that leads")                                    \
	X(SESSION_LOST, "session_lost", "reason", "there is none, and failures are not settled")  \
	X(INPUT_FROZEN, "input_frozen", "iface peer epoch",                                       \
	  "an input stands still, or the controller has frozen it")                               \
	X(INPUT_RESUMED, "input_resumed", "iface epoch",                                          \
	  "the controller has resumed a frozen input")                                            \
	X(FAILURE_ANNOUNCED, "failure_announced", "failure",                                      \
	  "the controller announces a failure, and the endpoints are told")                       \
	X(NODE_FAILED, "node_failed", "failure", "this node was announced as failed")             \
	X(NODE_JOINED, "node_joined", "", "this node has joined anew after a failure")            \
	X(HOST_LEFT, "host_left", "failure",                                                      \
	  "the controller has announced that this host has left in order")                        \
	X(DRAIN_BEGUN, "drain_begun", "",                                                         \
	  "this host is to be drained, and its processes send nothing new")                       \
	X(HOST_DRAINED, "host_drained", "", "nothing waits for this host any more")               \
	X(DRAIN_ENDED, "drain_ended", "", "this host takes part again")                           \
	X(ADMISSION_CHANGED, "admission_changed", "reason",                                       \
	  "the admission of the node was changed")                                                \
	X(ENDPOINT_JOINED, "endpoint_joined", "endpoint pid process",                             \
	  "a process has become an endpoint")                                                     \
	X(ENDPOINT_LEFT, "endpoint_left", "endpoint pid process reason",                          \
	  "an endpoint has left, or its process is gone")                                         \
	X(ENDPOINT_EXPELLED, "endpoint_expelled", "endpoint pid process reason",                  \
	  "an endpoint was put out")                                                              \
	X(ADDRESS_GONE, "address_gone", "endpoint pid process reason",                            \
	  "the host has no more the address that an endpoint has")                                \
	X(ADDRESS_BACK, "address_back", "endpoint pid process reason", "it has it again")         \
	X(SEND_VOID, "send_void", "endpoint pid process",                                         \
	  "a process has stopped in the middle of a send, which is void")                         \
	X(CONTROLLER_LEADS, "controller_leads", "epoch", "this controller leads")                 \
	X(CONTROLLER_FOLLOWS, "controller_follows", "epoch reason",                               \
	  "this controller leads no more")                                                        \
	X(CONTROLLER_BLOCKED, "controller_blocked", "reason", "nothing can be decided")           \
	X(CONTROLLER_UNBLOCKED, "controller_unblocked", "", "the store accepts writes again")     \
	X(FAILURE_DECIDED, "failure_decided", "failure peer epoch reason",                        \
	  "this controller has decided, and saved, who has failed or left")                       \
	X(FAILURE_SETTLED, "failure_settled", "failure peer epoch reason",                        \
	  "all nodes have heard of it, and inputs that stood still go on")                        \
	X(RACK_ADMISSION, "rack_admission", "reason",                                             \
	  "a change of the admission of the whole rack is over, or refused")                      \
	X(NODES_CHANGED, "nodes_changed", "reason",                                               \
	  "the list of nodes that may have sessions was changed")                                 \
	X(NODE_REFUSED, "node_refused", "peer", "a node that is not admitted wants a session")    \
	X(ARBITER_PRIMARY, "arbiter_primary", "epoch",                                            \
	  "this arbiter allocates timeslots from now on")                                         \
	X(ARBITER_STANDBY, "arbiter_standby", "epoch", "this arbiter is in standby from now on")
enum bl_event_kind {
#define BL_EVENT_(sym, name, fields, when) BL_EVENT_##sym,
	BL_EVENTS(BL_EVENT_)
#undef BL_EVENT_
		BL_EVENTS_NUMBER
};

/*
 * Fields: X(member, "name in JSON", "name in the journal"). A field that is NULL, "" or 0 is
 * left out.
 */
#define BL_EVENT_TEXTS(X)                                                         \
	X(iface, "iface", "BARLINE_IFACE")                /* interface or port */ \
	X(process, "process", "BARLINE_PROCESS")          /* name of a process */ \
	X(controller, "controller", "BARLINE_CONTROLLER") /* its address */       \
	X(reason, "reason", "BARLINE_REASON")             /* a word or a sentence */
#define BL_EVENT_NUMBERS(X)                                                                 \
	X(peer, "peer", "BARLINE_PEER")             /* node id of another node */           \
	X(endpoint, "endpoint", "BARLINE_ENDPOINT") /* its UDP port */                      \
	X(pid, "pid", "BARLINE_PID")                                                        \
	X(failure, "failure", "BARLINE_FAILURE")    /* number of a failure */               \
	X(epoch, "epoch", "BARLINE_EPOCH")          /* of controllers; an arbiter's term */ \
	X(bound_us, "bound_us", "BARLINE_BOUND_US") /* of the clock */

/** struct bl_event - an event, without its sentence. */
struct bl_event {
	enum bl_event_kind kind;
	int level;        /* BL_LOG_* */
	const char *node; /* name of the node; NULL: of the process, as in a controller */
#define BL_EVENT_MEMBER(member, json, journal) const char *member;
	BL_EVENT_TEXTS(BL_EVENT_MEMBER)
#undef BL_EVENT_MEMBER
#define BL_EVENT_MEMBER(member, json, journal) uint64_t member;
	BL_EVENT_NUMBERS(BL_EVENT_MEMBER)
#undef BL_EVENT_MEMBER
};

/*
 * BL_EVENT(SYMBOL, LEVEL, node, fields...): the first argument of bl_event(), as in
 * BL_EVENT(SEND_VOID, WARN, n->meta.name, .endpoint = 61700).
 */
#define BL_EVENT(sym, severity, name, ...)                                                      \
	&(struct bl_event)                                                                      \
	{                                                                                       \
		.kind = BL_EVENT_##sym, .level = BL_LOG_##severity, .node = (name), __VA_ARGS__ \
	}

#define EVENT_SCHEMA     1       /* of a line; a new field does not change it */
#define EVENT_FILE_BYTES 1048576 /* a file of events is renamed when it has that many */
#define EVENT_LINE_MAX   4096    /* bytes of a line at most, newline included */

/** bl_event_name - name of an event, as in JSON. */
const char *bl_event_name(enum bl_event_kind kind);

/** bl_event - Logs the sentence with the event, and appends it to the node's file of events. */
void bl_event(const struct bl_event *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * bl_event_line - Makes the line of the file of events, with its newline. Returns its length; a
 * sentence or a field that is too long for EVENT_LINE_MAX is cut.
 * @role: "host", "switch", "controller" or "arbiter"
 * @seq: number of the line in its file; @unix_ns: CLOCK_REALTIME
 */
size_t bl_event_line(char buf[EVENT_LINE_MAX], const struct bl_event *e, const char *role,
		     uint64_t seq, uint64_t unix_ns, const char *text);

/** bl_event_role - what BARLINE_ROLE and "role" say of events without a file; "daemon" at first. */
void bl_event_role(const char *role);

/**
 * bl_event_file_open - From now on, events of the node @node go into the file @path as well, which
 * is continued if it exists. Returns 0 or -errno; -EMFILE: too many nodes in this process.
 */
int bl_event_file_open(const char *node, const char *role, const char *path);

/** bl_event_file_close - Ends that. No-op if there is no such file. */
void bl_event_file_close(const char *node, const char *role);

#endif
