/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lab: a rack of network namespaces in one process tree that dies as one.
 *
 *   front (lab run)        waits
 *     |-- server           mount and network namespaces of its own: tmpfs on BL_RUN_DIR (bpffs in
 * it), anonymous network namespaces bound to |                    BL_RUN_DIR/netns/<node>; serves
 * all nodes through one bl_server. Stays in the first pid namespace: only there are | the kernel's
 * NAPI threads seen, which it keeps on their CPUs
 *           |-- node     ... (apart only) serves one node, in the server's place
 *           |-- init       pid 1 of the lab's pid namespace, with its /proc
 *                 |-- keeper     (lab up --controllers only) of controllers and of etcd
 *                 |-- driver     (lab run only) forks one worker per host, measures, checks,
 * reports (bench*.c)
 *                       |-- worker h1 ...
 *
 * Nothing is named outside: when the server dies, however it dies, init dies with it
 * (PR_SET_PDEATHSIG) and the kernel takes the pid namespace, the mounts, the network namespaces,
 * the links and the pins away. With `lab run` the server dies with the front in the same way. With
 * `lab up` it stays, and is found by the abstract socket @barline-lab-NAME: its peer credentials
 * give init's pid, and setns(2) does the rest.
 */
#ifndef BARLINE_CLI_LAB_H
#define BARLINE_CLI_LAB_H

#include "proto/fastpass_file.h"
#include "loader/node.h"
#include "bench/rack/bench.h"

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
#define LAB_MGMT      "mgmt" /* where daemons and controllers are */

/**
 * struct lab_spec - what was asked for. @skew_ns by host, from 0. @bare: no barline programs,
 *bl_pass's like on both ends of every link.
 * @leaf_spine: @tors over @spines. @dumbbell: with it: two ToRs with a link between them, and no
 *spines.
 * @cores: with @leaf_spine: three tiers. Half of the ToRs and half of the spines are a pod; each
 *spine is linked to all cores. 0: two tiers.
 * @arbiters: of Fastpass, beside the hosts of the first ToR; 0: 2 with that policy, else none.
 *@fp_policy: the allocator's (arbiter/alloc/alloc.h). @fp_fast: slots and watchdogs of a 10 Gbit/s
 *network, whatever the rate.
 * @controllers: of failures, on loopback of the lab's own namespace, as a management network; the
 *driver of `lab run` starts them itself, `lab up` has a process for them (lab_ctl.c). @etcd: on
 *three members of etcd; else one, on SQLite.
 * @apart: each node's daemon is a process of its own, as on machines: what one of them waits for,
 *or that it is killed, is nothing to the others. Else one process serves them all.
 * @admission: if on, every host has bl0 and the switch's ports are metered; rack over L2 only.
 *Limits of queues are the switch's.
 */
struct lab_spec {
	char name[32];
	enum bl_realtime realtime;
	bool leaf_spine, dumbbell, l3, bare, one_lane, no_thread_napi, no_ahead, apart;
	unsigned int hosts, tors, spines, cores, mtu, beacon_us, dead_after_us;
	int cpus[BL_LANES_MAX];
	unsigned int ncpus;
	int64_t skew_ns[LAB_HOSTS_MAX];
	unsigned int arbiters, fp_policy;
	bool fp_fast;
	unsigned int controllers;
	bool etcd;
	struct bl_admission_cfg admission;
	struct bench_params bench;
};

enum lab_kind { LAB_HOST, LAB_TOR, LAB_SPINE, LAB_ARBITER, LAB_CORE };

/**
 * struct lab_port - one end of a link. @peer_node, @peer_port: the other.
 */
struct lab_port {
	char ifname[16];
	uint8_t mac[6];
	enum bl_port_role role;
	unsigned int peer_node, peer_port;
	unsigned int ifindex;
};

/**
 * struct lab_node - @index: from 1 within its kind. @tor: of a host, from 1. @slot: of a host
 * within its ToR, from 1.
 */
struct lab_node {
	char name[16];
	enum lab_kind kind;
	unsigned int index, tor, slot;
	unsigned int nports;
	struct lab_port ports[LAB_HOSTS_MAX + LAB_SPINES_MAX + LAB_ARBITERS_MAX];
	int netns;
};

struct lab {
	struct lab_spec spec;
	unsigned int nnodes;
	struct lab_node nodes[LAB_NODES_MAX];
	/* of lab_plan(), where there are arbiters */
	struct bl_fp_file fp;
	struct bl_fp_peer fp_peer[LAB_HOSTS_MAX];
};

/* lab_net.c */
/** lab_plan - nodes and links of the spec; touches nothing. */
void lab_plan(struct lab *lab);
/**
 * lab_first_host - number, from 0, of the first host of ToR @tor, from 0; with @tor = tors their
 * number. Of a leaf-spine.
 */
unsigned int lab_first_host(const struct lab_spec *s, unsigned int tor);
/**
 * lab_build - make namespaces, links, addresses, routes. Runs in init. Returns 0 or 1 after an
 * error message.
 */
int lab_build(struct lab *lab);
/** lab_node_cfg - what barline runs on this node. Free with free(cfg->ports), free(cfg->fdb). */
int lab_node_cfg(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg);
/**
 * lab_routes - once more, after a link was down: Linux forgets a node's routes over it. In the
 * node's namespace; its links are up. 0 or 1 after a message.
 */
int lab_routes(struct lab *lab, struct lab_node *n);
/** lab_controller_addr - where controller @i, from 0, listens. */
void lab_controller_addr(unsigned int i, char *buf, size_t size);
/**
 * lab_withdraw - what a routing daemon does when the link of ToR @tor and spine @spine (their
 * indices) is cut: all other ToRs go to that ToR's hosts by other spines. 0 or 1 after a message.
 */
int lab_withdraw(const struct lab *lab, unsigned int tor, unsigned int spine);
void lab_host_addr(const struct lab_node *n, int family, uint8_t addr[16]);
/** lab_bl0 - addresses on a host's bl0, once its node is open. 0 or 1 after an error message. */
int lab_bl0(const struct lab *lab, const struct lab_node *n);
/** lab_bl0_addr - 10.78.T.I or fd78::T:I, of host I of ToR T. */
void lab_bl0_addr(const struct lab_node *n, int family, uint8_t addr[16]);

/** lab_station - a node with one NIC and addresses: a host or an arbiter. */
bool lab_station(const struct lab_node *n);

/* lab_proc.c */
/**
 * lab_leave_datapath_alone - this process, and what it starts, leaves the datapath CPUs to switches
 * and pacer, if there are others. The programs of a rack of machines do not compete for its
 * switch's CPU, and a pacer that has to wait while fourteen programs start loses 20 ms of the
 * ports' time.
 */
void lab_leave_datapath_alone(const struct lab *lab);
/**
 * lab_arbiter - be the arbiter of @rank, from 0, in its namespace, until SIGTERM. The exit status.
 */
int lab_arbiter(struct lab *lab, unsigned int rank);
/**
 * lab_node_kill - SIGKILL for a node's daemon, whose datapath stays in the kernel. From the driver
 * of a lab whose spec says apart; returns when the daemon is gone. 0, or 1 after an error message.
 */
int lab_node_kill(unsigned int node);
/**
 * lab_start - @driver: `lab run`: its result is the exit status; it gets @arg, in a process of its
 * own. NULL: `lab up`: returns when the lab is up.
 */
int lab_start(struct lab *lab, int (*driver)(struct lab *lab, void *arg), void *arg);
/** lab_find - connect to a lab; fd and init's pid. -1 after an error message. */
int lab_find(const char *name, int *pidfd, pid_t *pid);
/** lab_there - whether the name is taken. */
bool lab_there(const char *name);
/**
 * lab_enter - move into a lab's mount and pid namespaces, and a node's network namespace if @node
 * is given; LAB_MGMT is the lab's own. The next fork is inside.
 */
int lab_enter(int pidfd, const char *lab, const char *node);

/* lab_ctl.c: from the driver */
struct lab_ctl;
/**
 * lab_ctl_start - the spec's controllers, and etcd if they want it; they end with this process.
 * @log: a file for what they say; NULL: they say it where we do. Returns when one leads and all
 * nodes have a session with it, or NULL after a message.
 */
struct lab_ctl *lab_ctl_start(const struct lab *lab, const char *log);
/** lab_ctl_end - they are gone when it returns. NULL is allowed. */
void lab_ctl_end(struct lab_ctl *c);
/**
 * lab_ctl_ask - what the leader says of itself (`barline controller show -j`); NULL: nobody leads
 * at the moment. The caller's.
 */
json_t *lab_ctl_ask(struct lab_ctl *c);
/**
 * lab_ctl_kill - the controller that leads; lab_ctl_kill_etcd - etcd's leader. 0 or 1 after a
 * message.
 */
int lab_ctl_kill(struct lab_ctl *c);
int lab_ctl_kill_etcd(struct lab_ctl *c);

#endif
