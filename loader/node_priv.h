/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct bl_node and struct bl_server, for the loader's own files: the state of a node, by the file
 * that owns each part. A file reads the parts of others, but writes only its own, unless a comment
 * says so. All of it belongs to the main thread, except what the beacon thread uses.
 */
#ifndef BARLINE_NODE_PRIV_H
#define BARLINE_NODE_PRIV_H

#include <pthread.h>
#include <sched.h>

#include "base/library/systemd.h"
#include "base/time.h"
#include "loader/admission/pace.h"
#include "loader/load/attach.h"
#include "loader/load/progs.h"
#include "loader/node_cfg.h"
#include "loader/order/clock.h"
#include "loader/order/ep.h"
#include "loader/order/fence.h"
#include "maps/beacon_abi.h"
#include "maps/host_abi.h"
#include "maps/meta_abi.h"

#ifdef BARLINE_VERSION
#define BL_BUILD BARLINE_VERSION
#else
#define BL_BUILD "unversioned"
#endif

struct bl_control;
struct bl_drain;
struct bl_fp_file;
struct bl_fpass;
struct bl_fpass_thread;
struct bl_inputs_said;
struct bl_limits;
struct bl_link_watch;
struct bl_node_agent;
struct bl_node_events;
struct bl_pace_thread;
struct bl_pending;
struct bl_pulse_writer;
struct bl_source_watch;
struct bl_spare;
struct bl_top_learner;

/* Programs of bl0 and of its other end, bl0d. */
enum bl_bl0_prog {
	BL_BL0_PASS, /* XDP of bl0 */
	BL_BL0_HOLD, /* XDP of bl0d */
	BL_BL0_HINT, /* tc egress of bl0 */
	BL_BL0_LIFT, /* tc ingress of bl0, where the pacer sends the beacons */
	BL_BL0_PROGS,
};

/** struct bl_node - see node.h. A comment names the file that owns the fields below it. */
struct bl_node {
	struct bl_server *srv;
	struct bl_node *next;   /* in srv->nodes */
	struct bl_node_cfg cfg; /* without ports and fdb */
	/* The configuration in force as it was given, without defaults, with ports and fdb. */
	struct bl_node_cfg given;
	char dir[256];      /* of its pins */
	uint64_t netns_ino; /* inode number of its network namespace */
	int netns_fd;
	int lock_fd; /* the node's lock (load/pin.h) */
	bool fresh;  /* its pins were made by this process, not taken over */
	bool frags;  /* its XDP programs take frames of several buffers */
	struct bl_meta meta;
	struct bl_progs progs; /* of the node's object, while the node is opened */
	/* Interfaces: a switch's ports; a host's NIC and lo. Also written by link_watch.c. */
	struct bl_attached *att;
	unsigned int natt;

	/* order/keep.c */
	int keep_fd;                  /* the keeper's lock; -1: this process is not the keeper */
	struct bl_clock_keeper clock; /* written by the beacon thread while @keeping */

	/* order/beacon.c; protected by srv->beacon_lock */
	struct bl_node *beacon_next; /* in srv->beacon_nodes */
	bool beacon_listed;          /* it is in that list */
	bool keeping;                /* the beacon thread updates @clock */
	int beacon_sock;
	struct bl_beat beat;
	const struct bl_host_page *page; /* mapped while the thread sends its beacons, else NULL */
	const struct bl_host_page *page_next; /* the same, mapped but not yet in use; else NULL */
	cpu_set_t beacon_cpus;   /* where its beacons are best sent from; none: anywhere */
	cpu_set_t datapath_cpus; /* what can wait keeps off these (load/avoid.h) */
	int beacon_errno;        /* the last error, which is in the log already */

	/* link_watch.c: programs for an interface that is made anew. -1: not kept */
	int xdp_prog, tc_prog, devmap_prog;
	int clone_prog;             /* of a host's NIC with admission */
	int bl0_prog[BL_BL0_PROGS]; /* admission/bl0.c: of bl0 and bl0d; -1: none */
	int links_fd;
	sd_event_source *links_src, *links_retry_src;

	/* nic.c: the map of what was changed on the interfaces; -1: not open */
	int nic_fd;
	uint64_t nic_retry_ns; /* when those that are no FIFO are tried again */
	sd_event_source *nic_src;

	/* hook_watch.c: the map of what is found on the hooks; -1: not open */
	int hook_watch_fd;

	/* host.c: maps and programs of a host. -1: not open */
	int host_cfg_fd, pages_fd, hints_fd, eps_fd, rings_fd, page_fd, failures_fd, relayed_fd;
	int note_fd;    /* the program bl_note (order/note.c) */
	int local_prog; /* bl_host_local, at the egress of lo */
	int queue_prog; /* the classifier of ordered frames (bl_host_queue) */
	struct bl_host_cfg host_cfg;

	/* order/endpoint*.c */
	int listen_fd;
	sd_event_source *listen_src;
	struct bl_ep ep[BL_EPS_MAX];
	struct bl_pending *pending; /* connections that have not sent a request yet */
	sd_event_source *again_src; /* endpoint_again.c */
	char sock_path[108];
	unsigned int next_port; /* where the search for a free port goes on */

	/* switch_source.c; NULL: not a switch */
	struct bl_source_watch *sources;
	/* order/link_check.c; NULL: not opened yet */
	struct bl_link_watch *link_check;
	/* auth.c: the map of keys; -1: no authentication */
	int auth_fd;
	/* node_events.c; NULL: not open */
	struct bl_inputs_said *inputs_said;
	/* spare.c; NULL: this process has no spare caretaker */
	struct bl_spare *spare;
	uint8_t spare_state; /* enum bl_pulse_spare */
	/* pulse.c; NULL: not open */
	struct bl_pulse_writer *pulse;
	/* order/fence.c */
	struct bl_fence fence;
	/* order/limits.c */
	struct bl_limits *limits;
	/* order/void.c; NULL: sends have no limit */
	struct bl_voids *voids;
	/* control.c; NULL: not opened yet */
	struct bl_control *control;
	/* order/drain.c; NULL: not opened yet */
	struct bl_drain *drain;
	uint64_t drained; /* of the host page; not 0: the host is drained, or about to be */
	bool has_left;    /* it is drained, and has sent its last beacon: nothing waits for it */
	/* node_agent.c; NULL: there is no agent */
	struct bl_node_agent *agent;
	const struct bl_node_events *events;

	/* admission/pacer.c */
	struct bl_pace pace;
	/* admission/fastpass.c */
	struct bl_fpass *fastpass;
	struct bl_fp_file *fp_file; /* read from cfg.admission.fp_path */
	/* admission/top_learn.c */
	struct bl_top_learner *top_learner;
	/* admission/admission.c */
	bool queues_fresh; /* queues, slots and reservations start empty */
};

/** bl_node_key - the entry of @n->att's member @a in maps by interface: a port's number, or place.
 */
static inline uint32_t bl_node_key(const struct bl_node *n, const struct bl_attached *a)
{
	return a->port >= 0 ? (uint32_t)a->port : (uint32_t)(a - n->att);
}

/* ---- node_map.c ---- */

/**
 * bl_node_map_open - opens the node's pinned map for writing, as bl_map_open(). Returns an fd or
 * -errno.
 */
int bl_node_map_open(const struct bl_node *n, const char *map, uint32_t value_size,
		     struct bl_err *err);

/** bl_node_map_set - writes entry @key of the node's pinned map. Returns 0 or -errno. */
int bl_node_map_set(const struct bl_node *n, const char *map, uint32_t value_size, uint32_t key,
		    const void *value, struct bl_err *err);

/** struct bl_server - see loop.h. */
struct bl_server {
	sd_event *ev;
	int stop_fd; /* an eventfd: bl_server_stop() writes to it */
	bool stop;
	struct bl_node *nodes;
	/* control.c: makes the configuration anew; NULL: nobody can */
	int (*read_config)(void *ctx, struct bl_node_cfg *out, struct bl_err *err);
	void *read_ctx;

	/* order/beacon.c */
	pthread_t beacon_thread;
	bool beacon_running, beacon_quit;
	/* protects @beacon_nodes, and the beacon fields of the nodes in that list */
	pthread_mutex_t beacon_lock;
	pthread_cond_t beacon_cond;
	struct bl_node *beacon_nodes;
	bool beacon_prio; /* the thread is to set its priority anew, to @beacon_how */
	enum bl_realtime beacon_how;
	cpu_set_t beacon_any; /* what the thread may use where no node has a wish */

	/* admission/pacer.c */
	struct bl_pace_thread *pace_threads;
	/* admission/fastpass.c */
	struct bl_fpass_thread *fastpass;
};

#endif
