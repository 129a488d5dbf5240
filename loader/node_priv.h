/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the loader's files share with each other and with nobody else.
 */
#ifndef BARLINE_NODE_PRIV_H
#define BARLINE_NODE_PRIV_H

#include <pthread.h>
#include <sched.h>
#include <net/if.h>
#include <systemd/sd-event.h>

#include "base/iface.h"
#include "base/proc.h"
#include "base/time.h"
#include "loader/node.h"
#include "maps/beacon_abi.h"
#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"

#ifdef BARLINE_VERSION
#define BL_BUILD BARLINE_VERSION
#else
#define BL_BUILD "unversioned"
#endif

#define BL_BPFFS    BL_RUN_DIR "/bpf"
#define BL_PATH_MAX 384
/*
 * One XDP buffer is one 4 KiB page: 256 bytes of headroom, 320 of skb_shared_info, 14 + 8 of
 * Ethernet and VLAN header.
 */
#define BL_XDP_MTU_MAX      3498
#define BL_BEACON_MARK      0x6261726cu
#define BL_BEACON_US        100
#define BL_CLOCK_BOUND_US   50
#define BL_CLOCK_VOID_MS    10000
#define BL_CARETAKER_MS     10000
#define BL_CARETAKER_MAX_MS 60000
/* whom a start finds in its place may be on its way out: stopped, or killed */
#define BL_LOCK_WAIT_MS         3000
#define BL_PROCESS_LIMIT_MS     2000
#define BL_PROCESS_LIMIT_MIN_MS 100
#define BL_CLOCK_TICK_NS        250000000ULL
#define BL_CLOCK_DRIFT_PPB      100000
/* a correction beyond it is a step of the system clock, not drift */
#define BL_CLOCK_STEP_NS 1000000000LL
/* how the clsact fallback knows its own filters again */
#define BL_TC_HANDLE   0xb1
#define BL_TC_PRIORITY 0xb1

/** struct bl_attached - an interface under a program: what -j prints. */
struct bl_attached {
	struct bl_iface iface;
	enum bl_xdp_mode mode;
	int port;                 /* of the switch; -1 on a host */
	uint8_t role;             /* enum bl_port_role */
	int cpu;                  /* of its lane */
	bool gone;                /* there is no such interface at present */
	unsigned int mtu_refused; /* said in the log */
	int home_cpu;       /* the same, if its NAPI threads are kept there; -1: they are not */
	const char *egress; /* "tcx", "clsact", NULL: none */
};

/** struct bl_ep - one endpoint slot as the daemon sees it. */
struct bl_ep {
	struct bl_node *node;
	unsigned int slot;
	/* its connection; -1: adopted from an earlier daemon, and not connected anew */
	int conn;
	int pidfd; /* -1: the process is not visible here */
	sd_event_source *conn_src, *pid_src;
	bool used;
	/* its process is gone or put out, and what it left in its window is not settled */
	bool dead;
	bool left;    /* the process is gone */
	bool settled; /* what it left holds nothing any more */
	/*
	 * when its process is gone: 0, or it left in order, and this is above all that it has sent
	 */
	uint64_t bye;
	/* dead, with an agent: what it sent from then on (bus time) was not committed */
	uint64_t t;
	struct bl_ep_slot info;
};

struct bl_limits;
struct bl_top_learner;
struct bl_node_agent;
struct bl_fpass;
struct bl_fpass_thread;
struct bl_fp_file;
struct bl_pending; /* a connection that has not asked yet; endpoint.c */
struct bl_pace_thread;

/**
 * struct bl_pace - a node as its pacer's thread sees it; pacer.c. @thread: NULL: not paced. @place:
 * in "pace_progs". @more: turns in a row there beyond the first. @emitted: at the last look.
 * @bell_read, @bell_written: positions in the bell's ring.
 */
struct bl_pace {
	struct bl_pace *next;
	struct bl_pace_thread *thread;
	int prog_fd, due_fd, bell_fd;
	struct bl_pace_page *page;
	unsigned long *bell_read;
	const unsigned long *bell_written;
	uint64_t emitted;
	uint32_t place;
	uint8_t more;
	bool spin;
};

/**
 * struct bl_pace_fds - what bl_pacer_add() wants; it keeps duplicates. @due: a map with a struct
 * bl_due. @links: link ends that it paces; 0 counts as 1.
 */
struct bl_pace_fds {
	int prog, page, due, bell;
	unsigned int links;
};

/**
 * struct bl_fence_fds - the program bl_fence, and the maps that tell how inputs stand: of a switch
 * the first eight, of a host @prog, @epoch, @slots and @page. -1: none.
 */
struct bl_fence_fds {
	int prog, epoch, slots, lives, ports, regs, lanes, cfg, page;
};

/** struct bl_node - see node.h. Fields below a comment belong to the file that it names. */
struct bl_node {
	struct bl_server *srv;
	struct bl_node *next;
	struct bl_node_cfg cfg; /* without ports and fdb: these are used up by open */
	char dir[256];
	uint64_t netns_ino;
	int netns_fd;
	int lock_fd;
	bool fresh; /* made here, not taken over */
	struct bl_meta meta;
	struct bl_attached *att;
	unsigned int natt;
	/* clock.c */
	int clock_fd;
	/* shared; written from clock_own only, while we are the keeper */
	struct bl_clock *clock;
	struct bl_clock clock_own; /* what the shared record is to be */
	uint64_t clock_next_ns;    /* CLOCK_MONOTONIC of its next update */
	int64_t bus_offset_ns;     /* bus time wanted - CLOCK_TAI */
	bool stepped;
	/* keep.c */
	int keep_fd; /* the keeper's lock; -1: somebody else may keep the node */
	/* beacon.c */
	struct bl_node *beacon_next;
	bool beacon_listed, keeping; /* in the server's list; the thread writes the clock record */
	int beacon_sock;
	struct bl_beat beat;
	const struct bl_host_page *page; /* mapped by beacon.c */
	cpu_set_t beacon_cpus;           /* where its beacons are best sent from; none: anywhere */
	int beacon_errno;                /* logged already */
	/* link_watch.c: what an interface that is made anew gets. -1: not kept */
	int xdp_prog, tc_prog, devmap_prog, clone_prog; /* clone: with admission, of a host's NIC */
	int links_fd;
	sd_event_source *links_src;
	/* endpoint.c */
	int host_cfg_fd, inflight_fd, wake_fd, eps_fd, rings_fd, page_fd, windows_fd, failures_fd,
		relayed_fd;
	struct bl_host_cfg host_cfg;
	int listen_fd;
	sd_event_source *listen_src;
	struct bl_ep ep[BL_EPS_MAX];
	struct bl_pending *pending;
	sd_event_source *again_src; /* endpoint_again.c */
	char sock_path[108];
	unsigned int next_port; /* where the search for a free port goes on */
	/* loader/order/fence.c */
	struct bl_fence_fds order;
	/* pacer.c */
	struct bl_pace pace;
	/* fastpass.c */
	struct bl_fpass *fastpass;
	struct bl_fp_file *fp_file; /* read from cfg.admission.fp_path */
	/* limits.c */
	struct bl_limits *limits;
	/* top_learn.c */
	struct bl_top_learner *top_learner;
	/* node_agent.c */
	struct bl_node_agent *agent;
	/* admission.c */
	bool queues_fresh; /* queues, slots and reservations start empty */
};

/** struct bl_server - see node.h. */
struct bl_server {
	sd_event *ev;
	int stop_fd;
	bool stop;
	struct bl_node *nodes;
	/* beacon.c */
	pthread_t beacon_thread;
	bool beacon_running, beacon_quit;
	/* guards the list below and the beacon_* fields of the nodes in it */
	pthread_mutex_t beacon_lock;
	pthread_cond_t beacon_cond;
	struct bl_node *beacon_nodes;
	bool beacon_prio; /* the thread is to set its priority anew, as @beacon_how says */
	enum bl_realtime beacon_how;
	cpu_set_t beacon_any; /* what the thread may use where no node has a wish */
	/* pacer.c */
	struct bl_pace_thread *pace_threads;
	/* fastpass.c */
	struct bl_fpass_thread *fastpass;
};

/* pin.c */
const char *bl_role_name(enum bl_role role);
/*
 * bl_node_lock - fd, or -EBUSY with the owner's pid when it has not let go of it within @wait_ms.
 */
int bl_node_lock(enum bl_role role, uint64_t ino, unsigned int wait_ms, struct bl_err *err);
void bl_node_unlock(enum bl_role role, uint64_t ino, int fd, bool gone);
int bl_meta_read(const char *dir, struct bl_meta *meta);
int bl_dir_make(const char *dir, struct bl_err *err);
int bl_dir_remove(const char *dir);
int bl_pin_over(int fd, const char *path, struct bl_err *err);
/** bl_links_each - calls @fn for every pinned link of a node; @ifindex 0: its interface is gone. */
typedef int (*bl_link_fn)(const char *path, const char *name, int link_fd, uint32_t ifindex,
			  void *ctx);
int bl_links_each(const char *dir, bl_link_fn fn, void *ctx);
int bl_links_alive(const char *dir); /* how many are attached still */

/* maps.c */
struct bpf_object;
int bl_maps_reuse(struct bpf_object *obj, const char *dir, const char *const *anew,
		  struct bl_err *err);
int bl_maps_pin(struct bpf_object *obj, const char *dir, struct bl_err *err);
void bl_libbpf_listen(void); /* keep what libbpf says, from now on, for bl_load_failed() */
int bl_load_failed(int errnum, const char *what, struct bl_err *err);
int bl_map_set(int fd, uint32_t key, const void *value, const char *name, struct bl_err *err);

/* counts.c */
int bl_counts_forget(int fd, uint32_t key);

/* attach.c */
int bl_iface_xdp_ok(const struct bl_iface *i, struct bl_err *err);
extern bool bl_no_tcx; /* tests: behave as a kernel without tcx */
int bl_attach_xdp(struct bl_attached *a, const char *dir, const char *kind, int prog_fd,
		  enum bl_xdp_mode mode, bool replace, struct bl_err *err);
int bl_attach_tc(struct bl_attached *a, const char *dir, bool ingress, int prog_fd,
		 struct bl_err *err);
void bl_detach_ingress(const char *dir, const char *ifname);
/* @only: an interface; NULL: all */
int bl_detach_links(const char *dir, const char *only, struct bl_err *err);
void bl_detach_clsact(const char *ifname);
/* pins of an interface that has another name now */
void bl_links_rename(const char *dir, const char *from, const char *to);

/* top_learn.c */
/**
 * bl_top_learn_open - a host's daemon learns thresholds from now on. In the
 * node's namespace. Returns 0 or -errno; bl_top_learn_close() cleans up in either case.
 */
int bl_top_learn_open(struct bl_node *n, struct bl_err *err);
void bl_top_learn_close(struct bl_node *n);

/* link_watch.c. The thread is in the node's namespace. */
int bl_links_watch(struct bl_node *n, struct bl_err *err);
void bl_links_unwatch(struct bl_node *n);

/* napi.c */
int bl_napi_thread(const struct bl_iface *i, int cpu, enum bl_realtime how, struct bl_err *err);
/*
 * The kernel's thread for entry @cpu of the CPU map @map may go before processes, as those of NAPI;
 * where that is refused it works without.
 */
void bl_steer_thread(int map, uint32_t cpu, enum bl_realtime how);
/**
 * bl_napi_gather - segments of a TCP flow that come to @i less than @ns apart become one, and are
 * acknowledged as one; 0: only those that come together. Returns 0 or -errno.
 */
int bl_napi_gather(const struct bl_iface *i, uint64_t ns);

/**
 * bl_sysfs_open - sysfs as this thread's network namespace sees it: a descriptor for openat(), or
 * -1.
 */
int bl_sysfs_open(void);

/* prio.c */
/**
 * bl_prio_first - thread @tid, which runs on @cpus, goes before processes: SCHED_FIFO with
 * @rt_priority, or a short slice, as @how says (prio.c). 0 or -errno; without it, it works slower.
 */
int bl_prio_first(pid_t tid, const cpu_set_t *cpus, enum bl_realtime how, int rt_priority);

/* tx_cpu.c */
/** bl_cpus_parse - "0,2-3". False if it is something else, or no CPU is in it. */
bool bl_cpus_parse(const char *text, cpu_set_t *set);
/**
 * bl_tx_cpus - the CPUs that serve transmit queue @queue of @i (this thread's network namespace).
 * False: nothing says so, or all of them do.
 */
bool bl_tx_cpus(const struct bl_iface *i, unsigned int queue, cpu_set_t *set);

/* sets.c */
struct bl_sets {
	uint8_t in_sets[BL_SW_PORTS_MAX];
	uint8_t out_set[BL_SW_PORTS_MAX];
	unsigned int nsets;
};
int bl_sets_derive(const uint8_t *roles, unsigned int n, struct bl_sets *s, struct bl_err *err);
int bl_sets_check(const uint8_t *roles, unsigned int n, const struct bl_sets *s,
		  struct bl_err *err);

/*
 * loader/switch.c, loader/host.c: load, configure, attach, pin. The thread is in the node's
 * namespace.
 */
int bl_switch_open(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err);
int bl_host_open(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err);

/* clock.c */
/* to read it; and to write it, if we are the keeper */
int bl_clock_open(struct bl_node *n, int map_fd, struct bl_err *err);
/* to read it; no-op if it is there */
int bl_clock_map(struct bl_node *n, int map_fd, struct bl_err *err);
/* to write it from now on, as the keeper */
int bl_clock_adopt(struct bl_node *n, struct bl_err *err);
/* of the keeper's thread: CLOCK_MONOTONIC of the next call */
uint64_t bl_clock_tick(struct bl_node *n, uint64_t mono);
void bl_clock_close(struct bl_node *n);

/* beacon.c */
/* the thread; not from within a node's namespace */
int bl_beacon_start(struct bl_server *s, struct bl_err *err);
/* the thread writes the clock record, or not any more */
void bl_beacon_keep(struct bl_node *n, bool keep);
/* it sends beacons; no-op if it does already */
int bl_beacon_add(struct bl_node *n, struct bl_err *err);
void bl_beacon_remove(struct bl_node *n);
/* the socket alone, for a caretaker */
int bl_beacon_socket(struct bl_node *n, struct bl_err *err);
int bl_beacon_moved(struct bl_node *n, struct bl_err *err); /* att[0] is another interface now */
/* the thread sends this host's beacons */
bool bl_beacons_here(const struct bl_node_cfg *c);

/* keep.c */
int bl_keep_early(struct bl_node *n, struct bl_err *err);
int bl_keep_take_over(struct bl_node *n, struct bl_err *err);
void bl_keep_close(struct bl_node *n);
int bl_keep_end(enum bl_role role, uint64_t ino, struct bl_err *err);
void bl_keep_forget(enum bl_role role, uint64_t ino);
bool bl_beacon_paced(const struct bl_node_cfg *c); /* the pacer sends this host's beacons */
/* it shall, or not, by n->cfg; before bl_admission_pace() */
int bl_beacon_pace(struct bl_node *n, struct bpf_object *obj, struct bl_err *err);
void bl_beacon_stop(struct bl_server *s);

/* admission.c. The object is that of the node's role; @nports: of a switch. */
struct bpf_map;
void bl_admission_defaults(struct bl_node_cfg *c);
int bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err);
bool bl_admission_paced(const struct bl_node_cfg *c);
int bl_admission_cpu(const struct bl_node_cfg *c);
uint64_t bl_admission_port_rate(const struct bl_node_cfg *c, const char *ifname);
#define BL_ADMISSION_MAPS 20 /* names that bl_admission_size() may append to @anew */
int bl_admission_size(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      uint32_t nports, const char **anew, struct bl_err *err);
int bl_admission_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      const struct bl_sw_port *ports, struct bl_err *err);
/* @links: see struct bl_pace_fds */
int bl_admission_pace(struct bl_node *n, struct bpf_object *obj, const char *prog, const char *due,
		      unsigned int links, struct bl_err *err);
/* @mac NULL: off */
int bl_admission_host_on(struct bl_node *n, struct bpf_object *obj, const uint8_t *mac,
			 uint32_t nic, uint32_t bl0d, struct bl_err *err);
int bl_admission_map(struct bpf_object *obj, const char *name, uint32_t value_size,
		     struct bpf_map **map, struct bl_err *err);

/* loader/admission/top_switch.c */
int bl_token_forget(int fd, uint32_t port, struct bl_err *err);

/* bl0.c. The thread is in the host's namespace. */
int bl_bl0_open(struct bl_node *n, struct bpf_object *obj, struct bl_err *err);
int bl_bl0_remove(const char *dir, struct bl_err *err);
/** bl_bl0_nic - the NIC is another interface now: what else bl0 needs of it. */
int bl_bl0_nic(struct bl_node *n, struct bl_err *err);
/**
 * bl_bl0_rate - the rate of the node with these pins has changed: bl0 gathers segments for as long
 * as one takes.
 */
void bl_bl0_rate(const char *dir, uint32_t ns_q20);
/**
 * bl_bl0_policy - the policy of the node with these pins has changed: bl0's MTU leaves room for
 * TOP's echo, or not any more.
 */
int bl_bl0_policy(const char *dir, unsigned int policy, struct bl_err *err);

/* loader/loop.c */
/**
 * bl_thread_start - pthread_create(3) of a thread that no signal goes to: signals are the main
 * thread's.
 * @attr: may be NULL. Returns 0 or an errno.
 */
int bl_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);

/* pacer.c */
/* the thread of @cpu (-1: any), once; not from within a node's namespace */
int bl_pacer_start(struct bl_server *s, int cpu, struct bl_err *err);
int bl_pacer_add(struct bl_server *s, struct bl_pace *p, int cpu, bool spin,
		 const struct bl_pace_fds *fds, struct bl_err *err);
void bl_pacer_remove(struct bl_pace *p);
/* @thread leaves the pacers' CPUs to them, if it may use others */
void bl_pacer_spare(struct bl_server *s, pthread_t thread);
/* something is due earlier than it thought; from any thread, while the node is there */
void bl_pacer_wake(struct bl_pace *p);
void bl_pacer_stop(struct bl_server *s);

/* loader/order/fence.c: what loader/order/fence.h works with */
int bl_fence_open(struct bl_node *n, struct bpf_object *obj, struct bl_err *err);
void bl_fence_none(struct bl_node *n);
void bl_fence_close(struct bl_node *n);

/* busy.c */
/**
 * bl_host_put_all_out - before the programs of the host with these pins are removed: its endpoints
 * hear of it (ESTALE). Returns for how long, in ns, the host must be silent before it begins anew,
 * so that its neighbours notice: what these endpoints had open is settled when the host is
 * announced as failed, and its next maps know nothing of it.
 */
uint64_t bl_host_put_all_out(const char *dir);

/* endpoint.c */
int bl_endpoints_open(struct bl_node *n, struct bl_err *err);
void bl_endpoints_close(struct bl_node *n);
/**
 * bl_endpoint_put_out - the processes of these slots, a bit each, live but are members no more.
 * Waits for an RCU grace period (about 16 ms): those of one occasion in one call.
 */
void bl_endpoint_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why);
void bl_endpoint_release(struct bl_ep *ep, const char *why); /* its process is gone, or has left */
/* @conn is its connection from now on; < 0: it is not */
int bl_endpoint_connect(struct bl_ep *ep, int conn);
struct bl_again_req;
/**
 * bl_endpoint_again - who has connected says that it is an endpoint of before. Returns whether
 * @conn is that one's now.
 */
bool bl_endpoint_again(struct bl_node *n, int conn, const struct bl_again_req *q);
/**
 * bl_endpoints_adopted - after the agent is there: takes down whose process has ended while no
 * daemon ran, and looks from now on for those that leave while they have no connection.
 * endpoint_again.c
 */
void bl_endpoints_adopted(struct bl_node *n);
/**
 * bl_endpoint_left - tell the agent that this life of the port left in order, and that its T is @t.
 * Until bl_endpoint_left_heard() the next daemon would say so, too. endpoint_again.c
 */
void bl_endpoint_left(struct bl_node *n, uint16_t port, uint16_t life, uint64_t t);
/** bl_endpoint_left_heard - the controller has announced that this life of the port left. */
void bl_endpoint_left_heard(struct bl_node *n, uint16_t port, uint16_t life);
/**
 * bl_endpoints_bury - without controllers: whoever is out and has nothing left that waits for ACKs
 * is settled.
 */
void bl_endpoints_bury(struct bl_node *n);
/* limits.c: processes that hold others up for longer than process_limit_ms are put out */
int bl_limits_open(struct bl_node *n, struct bl_err *err);
void bl_limits_close(struct bl_node *n);
/** bl_endpoints_dead - tell the agent, which is new, of the endpoints that are dead. */
void bl_endpoints_dead(struct bl_node *n);

/** bl_node_ahead_ns - how far silent hosts promise ahead, by this configuration. 0: not at all. */
uint64_t bl_node_ahead_ns(const struct bl_node_cfg *c);

#endif
