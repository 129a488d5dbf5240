/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lab: a rack of network namespaces in one tree of processes. If one essential process ends, all
 * of them end, and the kernel removes the namespaces.
 *
 *   front            the command (`barline lab run`, `lab up`); with `lab run` it waits
 *     |-- server     has a mount and a network namespace of its own, with a tmpfs on BL_RUN_DIR
 *           |        (and bpffs in it); binds the nodes' network namespaces to
 *           |        BL_RUN_DIR/netns/NODE and serves all nodes in one bl_server. It stays in the
 *           |        first pid namespace, because the kernel's NAPI threads, which it pins to
 *           |        their CPUs, are visible only there.
 *           |-- node       one per node, only with lab_spec.apart: serves it instead of the server
 *           |-- init       pid 1 of the lab's pid namespace, with its own /proc
 *                 |-- arbiter    one per Fastpass arbiter
 *                 |-- keeper     only `lab up --controllers`: parent of controllers and of etcd
 *                 |-- driver     only `lab run`: runs the workload
 *                       |-- worker h1 ...
 *
 * Nothing in the file system outside of the lab is part of it; `lab up` gives its namespaces names
 * there (lab_names.h). When the server ends for any reason,
 * init ends with it (PR_SET_PDEATHSIG), and the kernel removes the pid namespace, the mounts, the
 * network namespaces, the links and the pinned maps. With `lab run` the server ends with the
 * front in the same way. With `lab up` the server stays and is found by the abstract socket
 * @barline-lab-NAME: the peer credentials of that socket are init's pid, and setns(2) enters
 * init's namespaces.
 *
 * How a program uses it:
 *
 *	lab = lab_new();                     defaults; then set lab->spec
 *	err = lab_start(lab, driver, arg);   raises the lab and runs driver(lab, arg) in it
 */
#ifndef BARLINE_LAB_H
#define BARLINE_LAB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/node.h"
#include "proto/fastpass_file.h"

#define LAB_HOSTS_MAX       64
#define LAB_TORS_MAX        8
#define LAB_SPINES_MAX      8
#define LAB_CORES_MAX       4
#define LAB_ARBITERS_MAX    2
#define LAB_CONTROLLERS_MAX 3
#define LAB_NODES_MAX \
	(LAB_HOSTS_MAX + LAB_TORS_MAX + LAB_SPINES_MAX + LAB_CORES_MAX + LAB_ARBITERS_MAX)
#define LAB_NETNS_DIR BL_RUN_DIR "/netns"
#define LAB_SOCKET    "barline-lab-"
#define LAB_WAIT_MS   3000   /* how long a lab may take for an answer */
#define LAB_MGMT      "mgmt" /* name of the lab's own network namespace: daemons and controllers */

/** struct lab_spec - What kind of lab to raise. Set before lab_start(), then read only. */
struct lab_spec {
	char name[32];             /* unique among the labs of a network namespace */
	enum bl_realtime realtime; /* scheduling of the datapath's threads */

	bool leaf_spine;     /* @tors ToRs over @spines spines; false: a rack of one ToR */
	bool dumbbell;       /* with @leaf_spine: two ToRs with one link between them, no spines */
	bool l3;             /* switches forward by Linux's routes; false: by a table of MACs */
	bool bare;           /* no barline programs; an XDP_PASS program on every interface */
	bool one_lane;       /* test only: all datapath CPUs share one lane */
	bool no_thread_napi; /* test only: NAPI of the ports stays in softirq */
	bool no_ahead;       /* silent hosts do not promise ahead of their clocks */
	/*
	 * each node has a daemon process of its own, as on machines: a daemon that waits or is
	 * killed does not affect the others. false: one process serves all nodes
	 */
	bool apart;

	unsigned int hosts;  /* over all ToRs, at least 1 */
	unsigned int tors;   /* of a leaf-spine */
	unsigned int spines; /* of a leaf-spine */
	/*
	 * with @leaf_spine: number of cores of three tiers. Half of the ToRs and half of the spines
	 * are a pod; each spine is linked to all cores. 0: two tiers
	 */
	unsigned int cores;
	unsigned int mtu;           /* of every link, bytes */
	unsigned int beacon_us;     /* beacon interval; 0: default */
	unsigned int dead_after_us; /* a link that is silent for longer has failed */
	unsigned int lag_max_us; /* a host that lags more is excluded; 0: 10 times @dead_after_us */
	int cpus[BL_LANES_MAX];  /* datapath CPUs of the switches */
	unsigned int ncpus;      /* valid elements of @cpus; 0: CPU 0 */
	int64_t skew_ns[LAB_HOSTS_MAX]; /* error of each host's clock; by host, from 0 */

	/* Fastpass arbiters, beside the hosts of the first ToR; 0: 2 if the policy is fastpass */
	unsigned int arbiters;
	unsigned int fp_policy; /* of the arbiter's allocator: enum bl_alloc_policy */
	bool fp_fast;           /* slots and watchdogs of a 10 Gbit/s network at any rate */

	/*
	 * failure controllers, in the lab's own network namespace, which stands for a management
	 * network. The driver of a workload starts them (lab_ctl_start()); `lab up` has a process
	 * for it
	 */
	unsigned int controllers;
	/* controllers store in etcd with three members; false: SQLite, for a single controller */
	bool etcd;

	/*
	 * if on, every host has bl0 and ports of switches are metered. Limits of queues are those
	 * of switches
	 */
	struct bl_admission_cfg admission;
};

enum lab_kind { LAB_HOST, LAB_TOR, LAB_SPINE, LAB_ARBITER, LAB_CORE };

/** struct lab_port - One end of a link. */
struct lab_port {
	char ifname[16];
	uint8_t mac[6];
	enum bl_port_role role;
	unsigned int peer_node; /* other end: index in lab->nodes */
	unsigned int peer_port; /* other end: index in the ports of that node */
	unsigned int ifindex;   /* set by lab_build() */
};

/** struct lab_node - A host, a switch or an arbiter, in a network namespace of its own. */
struct lab_node {
	char name[16]; /* h1, s1, p1, a1, c1 ... */
	enum lab_kind kind;
	unsigned int index; /* within its kind, from 1 */
	unsigned int tor;   /* of a host or an arbiter: its ToR, from 1 */
	unsigned int slot;  /* of a host or an arbiter: position within its ToR, from 1 */
	unsigned int nports;
	struct lab_port ports[LAB_HOSTS_MAX + LAB_SPINES_MAX + LAB_ARBITERS_MAX];
	int netns; /* descriptor of the network namespace; -1 before lab_build() */
};

/**
 * struct lab - A lab. Each process of the lab has a copy; the nodes are made by lab_plan() before
 * the processes are forked.
 */
struct lab {
	struct lab_spec spec;
	unsigned int nnodes;
	struct lab_node nodes[LAB_NODES_MAX];
	struct bl_fp_file fp; /* configuration of Fastpass, valid if there are arbiters */
	struct bl_fp_peer fp_peer[LAB_HOSTS_MAX]; /* storage of fp.peer */
};

/* ---- lab_plan.c: nodes, links and addresses; changes nothing outside of @lab ---- */

/** lab_new - Returns a lab with default values, or NULL if out of memory. The caller frees it. */
struct lab *lab_new(void);
/**
 * lab_name_ok - Returns whether a lab can be called @name: the name is part of names of files, and
 * needs no quotes in a shell.
 */
bool lab_name_ok(const char *name);
/** lab_plan - Fills in the nodes, the links and the configuration of Fastpass from the spec. */
void lab_plan(struct lab *lab);
/**
 * lab_first_host - Returns the number, from 0, of the first host of ToR @tor, from 0, of a
 * leaf-spine. With @tor equal to the number of ToRs, returns the number of hosts.
 */
unsigned int lab_first_host(const struct lab_spec *s, unsigned int tor);
/** lab_pod - Returns the pod, from 0, of ToR or spine @index, from 1, of @n. */
unsigned int lab_pod(const struct lab_spec *s, unsigned int index, unsigned int n);
/**
 * lab_node_cfg - Fills in the configuration with which the daemon serves a node. Returns 0 or
 * -ENOMEM. The caller frees cfg->ports and cfg->fdb.
 */
int lab_node_cfg(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg);
/** lab_node_id - Returns the node id of @n in beacons and sessions. */
uint32_t lab_node_id(const struct lab_node *n);

/** lab_controller_addr - Writes the address on which controller @i, from 0, listens. */
void lab_controller_addr(unsigned int i, char *buf, size_t size);
/** lab_station - Returns whether a node has one NIC and an address: a host or an arbiter. */
bool lab_station(const struct lab_node *n);
/** lab_host_addr - Address of eth0 of a host or an arbiter: 10.77.T.I or fd77:T::I. */
void lab_host_addr(const struct lab_node *n, int family, uint8_t addr[16]);
/** lab_bl0_addr - Address of bl0 of host I of ToR T: 10.78.T.I or fd78::T:I. */
void lab_bl0_addr(const struct lab_node *n, int family, uint8_t addr[16]);
/**
 * lab_app_addr - IPv4 address that applications on @host, from 0, use: that of bl0 with admission,
 * else that of eth0.
 */
void lab_app_addr(const struct lab *lab, unsigned int host, uint8_t addr[4]);

/* ---- lab_net.c: namespaces, links and routes ---- */

/**
 * lab_build - Makes the namespaces, links, addresses and routes. Called by the server. Returns 0,
 * or 1 after a message.
 */
int lab_build(struct lab *lab);
/**
 * lab_routes - Installs a node's routes again. Linux removes the routes over a link that goes down.
 * Must be called in the node's namespace while its links are up. Returns 0, or 1 after a message.
 */
int lab_routes(struct lab *lab, struct lab_node *n);
/**
 * lab_withdraw - Does what a routing daemon does when the link between ToR @tor and spine @spine,
 * both from 1, is cut: all other ToRs reach that ToR's hosts by other spines. Returns 0, or 1 after
 * a message.
 */
int lab_withdraw(const struct lab *lab, unsigned int tor, unsigned int spine);
/**
 * lab_bl0 - Adds the addresses and routes of a host's bl0, which exists once the node is open.
 * Does nothing for other nodes and without admission. Returns 0, or 1 after a message.
 */
int lab_bl0(const struct lab *lab, const struct lab_node *n);
/**
 * lab_node_enter - Moves this process into the network namespace of node @name. Returns 0 or
 * -errno. Must be called inside the lab.
 */
int lab_node_enter(const char *name);
/** lab_host_enter - Same as lab_node_enter(), for @host, from 0. */
int lab_host_enter(unsigned int host);

/* ---- lab_proc.c: the tree of processes ---- */

/**
 * lab_start - Raises a lab.
 * @driver: `lab run`: is called with @arg in a process of its own when the lab is up. The lab ends
 *	with it, and returns its result. NULL: `lab up`: the lab stays up
 * Returns the result of the driver, or without a driver 0 when the lab is up; 1 after a message.
 */
int lab_start(struct lab *lab, int (*driver)(struct lab *lab, void *arg), void *arg);

/**
 * lab_leave_datapath_alone - Moves this process, and what it starts later, off the datapath CPUs of
 * switches and pacer, if there are other CPUs. In a rack of machines no program competes with the
 * switch for a CPU, and a pacer that has to wait while fourteen programs start loses 20 ms of the
 * ports' time.
 */
void lab_leave_datapath_alone(const struct lab *lab);
/**
 * lab_host_fork - Forks a child in the namespace of @host, from 0, that calls @fn(@arg) and exits.
 * The child is killed when this process ends. Returns its pid, or -1 after a message.
 */
pid_t lab_host_fork(unsigned int host, void (*fn)(void *arg), void *arg);
/**
 * lab_arbiter - Runs the Fastpass arbiter of @rank, from 0, in its namespace until SIGTERM. Returns
 * the exit status.
 */
int lab_arbiter(struct lab *lab, unsigned int rank);
/**
 * lab_node_kill - Kills the daemon of node @node (index in lab->nodes) with SIGKILL and returns
 * when it is gone; its datapath stays in the kernel. Only from the driver of a lab with
 * lab_spec.apart. Returns 0, or 1 after a message.
 */
int lab_node_kill(unsigned int node);

/** lab_there - Returns whether a lab with that name is up. */
bool lab_there(const char *name);
/**
 * lab_find - Connects to the socket of a lab.
 * @pidfd: gets a pidfd of the lab's init, or -1
 * @pid: gets the pid of the lab's init
 * Returns the socket, or -1 after a message.
 */
int lab_find(const char *name, int *pidfd, pid_t *pid);
/**
 * lab_ask - Asks a lab for its description, as `barline lab list -j` prints it. @pidfd and @pid as
 * of lab_find(). Returns NULL after a message if there is no such lab, and NULL if it does not
 * answer within 3 s.
 */
json_t *lab_ask(const char *name, int *pidfd, pid_t *pid);
/**
 * lab_enter - Moves this process into a lab's mount and network namespaces, and its next children
 * into the lab's pid namespace.
 * @node: node whose network namespace is entered; NULL or LAB_MGMT: the lab's own
 * Returns 0, or 1 after a message.
 */
int lab_enter(int pidfd, const char *lab, const char *node);

/* ---- lab_ctl.c: failure controllers, started by the driver or by the keeper ---- */

struct lab_ctl;
/**
 * lab_ctl_start - Starts the controllers of the spec, and etcd if they store in it. They end with
 * this process. Returns when one controller leads and all nodes have a session with it, or NULL
 * after a message.
 * @log: file for the output of the controllers; NULL: the output of this process
 */
struct lab_ctl *lab_ctl_start(const struct lab *lab, const char *log);
/** lab_ctl_end - Kills and reaps controllers and etcd. NULL is allowed. */
void lab_ctl_end(struct lab_ctl *c);
/**
 * lab_ctl_ask - Returns the state of the leading controller, as `barline controller show -j` prints
 * it, or NULL if none leads at the moment. The caller owns the reference.
 */
json_t *lab_ctl_ask(struct lab_ctl *c);
/** lab_ctl_kill - Kills the leading controller. Returns 0, or 1 after a message. */
int lab_ctl_kill(struct lab_ctl *c);
/** lab_ctl_kill_etcd - Kills the leading member of etcd. Returns 0, or 1 after a message. */
int lab_ctl_kill_etcd(struct lab_ctl *c);

#endif
