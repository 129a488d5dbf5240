/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node: one switch or one host in one network namespace, as `barlined`, the lab and the tests run
 * it.
 *
 * A node is opened (programs loaded or re-used, attached, pinned), served (endpoints, clock,
 * beacons) and closed. Closing leaves the datapath running; detaching removes it. One process may
 * serve many nodes (the lab does): struct bl_server is the event loop that they share; one thread
 * of it sends the beacons of all its hosts on one tick.
 *
 * Thread rules: all calls from one thread, the one that runs the server. The beacon thread is
 * internal.
 */
#ifndef BARLINE_NODE_H
#define BARLINE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/netns.h"
#include "loader/admission/options.h"
#include "maps/host_abi.h"
#include "maps/meta_abi.h"
#include "maps/clock_abi.h"
#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_host_abi.h"

struct bl_fp_file;

enum bl_xdp_mode { BL_XDP_NATIVE, BL_XDP_GENERIC };

/**
 * struct bl_port_cfg - @rate_bps: bits per second at which the port is metered; 0: what
 * admission.rate_bps says.
 */
struct bl_port_cfg {
	char ifname[16];
	uint8_t role; /* enum bl_port_role */
	int home_cpu; /* -1: the loader spreads ports over the datapath CPUs in order */
	uint64_t rate_bps;
	/* leads out of the rack: what comes from there needs no promise; up-links always do */
	bool outside;
};

struct bl_fdb_cfg {
	uint8_t mac[6];
	char ifname[16]; /* output port */
};

/** struct bl_limit_cfg - of one class of queues; 0: as the others. */
struct bl_limit_cfg {
	uint32_t frames, bytes, mark_bytes;
};

/**
 * struct bl_top_opts - settings of TOP. @v: value + 1, by enum bl_top_option; 0: as it was, or the
 * default. @rules, @nrules: port rules.
 */
struct bl_top_opts {
	uint32_t v[BL_TOP_O_COUNT];
	struct bl_top_rule rules[BL_TOP_RULES];
	unsigned int nrules;
};

/**
 * struct bl_admission_cfg - admission on a host (bl0, hold queues) or on a switch (metered ports,
 *reservations). In every number 0 is the default.
 * @on: there is admission. Without it the rest is ignored, and its maps stay small.
 * @policy: enum bl_policy. On a switch, pl2: reservations are made.
 * @rate_bps: bits per second: of a host's NIC; 0: as fast as it goes. Of each port of a switch that
 *has no rate of its own; 0: not metered.
 * @slots: frames that all queues of the node hold together; BL_SLOTS.
 * @queue: limits of each queue: hold queues, output queues of ports. 256 frames, as many full ones
 *in bytes, and ECN marks above 64 KiB on a host, none on a switch.
 * @limit: the same for one class of a switch's queues.
 * @spin: the pacer never sleeps. @pacer_cpu: CPU + 1; 0: the first of cpus. @pacer_beacons: of a
 *host: the pacer sends its beacons, not the beacon thread.
 * @bl0, @bl0d: names of the pair; "": bl0 and bl0d.
 * @k: PL2's K; 4. @t_slots: PL2's t; 15. @t_us: the same as time. @recent_us, @retry_us,
 *@coming_us, @late_us: of the link's slot, bl_pl2_times(). See struct bl_hold_cfg.
 * @allocator: enum bl_allocator. @refuse_us: PL2's T as time; 64 slots. @far_us: 480 slots.
 *@lapse_us: bl_pl2_times(). @outside_percent: share of a port for traffic from outside. See struct
 *bl_rsv_cfg.
 * @token_mode: switch, top: enum bl_token_mode + 1; 0: pace where ports are metered, else drop.
 *@data_first, @unscheduled: see struct bl_token_cfg. @token_frames: 8. @expiry_tokens: 8.
 * @spray: TOP's frames and data take the paths up in turn, and not one path per flow.
 *@link_rate_bps: of each port that is not metered. @headroom_percent: share of the links that
 *tokens leave to frames which need none.
 * @path_div: switch, fastpass: path k is up port k / @path_div, modulo how many there are; 0: the
 *k-th one, and paths beyond are not obeyed. With three tiers: number of cores on switches of racks,
 *1 on aggregation switches.
 * @fp: host: what it agrees on with Fastpass's arbiters (fastpass_file.h); NULL: read from
 *@fp_path; "": there is none. Used up by open.
 * @top: host: TOP.
 */
struct bl_admission_cfg {
	bool on;
	enum bl_policy policy;
	uint64_t rate_bps;
	uint32_t slots;
	struct bl_limit_cfg queue, limit[BL_CL_COUNT];
	bool spin;
	uint32_t pacer_cpu;
	bool pacer_beacons;
	char bl0[16], bl0d[16];
	uint32_t k, t_slots, t_us, recent_us, retry_us, coming_us, late_us;
	enum bl_allocator allocator;
	uint32_t refuse_us, far_us, lapse_us, outside_percent, path_div;
	uint8_t token_mode;
	bool data_first, unscheduled, spray;
	uint32_t token_frames, expiry_tokens, headroom_percent;
	uint64_t link_rate_bps;
	const struct bl_fp_file *fp;
	char fp_path[256];
	struct bl_top_opts top;
};

/**
 * struct bl_ctl_peers - failure controllers: @n addresses (session.h), and TLS: files in PEM; "":
 * none. @n 0: nobody is asked, and what stands still stays so.
 */
#define BL_CTL_PEERS_MAX 8
struct bl_ctl_peers {
	unsigned int n;
	char addr[BL_CTL_PEERS_MAX][64];
	char ca[256], cert[256], key[256];
};

/**
 * enum bl_realtime - whether the datapath's threads are SCHED_FIFO (prio.c). AUTO: on CPUs that are
 * isolated (isolcpus=), where nobody waits for them; elsewhere, and with NEVER everywhere, they are
 * ordinary threads with a short slice, as nice as the daemon. On a kernel that knows no slices
 * (before Linux 6.12) they are nice -20.
 */
enum bl_realtime { BL_RT_AUTO, BL_RT_ALWAYS, BL_RT_NEVER };
/** bl_realtime_parse - "auto", "always", "never", or -1. */
int bl_realtime_parse(const char *text);

/**
 * struct bl_node_cfg - everything that a node is made from; from YAML (loader/config.c), flags or
 * the lab.
 * @beacon_us: beacon interval; 0: 100.
 * @dead_after_us: 0: 10 beacon intervals.
 * @no_ahead: silent hosts do not promise ahead of their clocks (core/order/promise_core.h), and
 * nobody is believed to. To be the same in the whole rack.
 * @clock_bound_us: configured bound of the system clock; 0: 50.
 * @clock_void_after_ms: how long the record stays good without the daemon; 0: 10000.
 * @caretaker_ms: how long a caretaker may stand in for a daemon that was stopped
 * (bl_node_hand_over()); 0: 10000; -1: there is none.
 * @process_limit_ms: host: how long a process may hold others up before it is put out (limits.c);
 * 0: 2000.
 * @skew_ns: test: this node's clock is off by that much.
 * @clock_base_ns: test: bus time starts here instead of at CLOCK_TAI; 0: CLOCK_TAI. (wrap of the 48
 * bits)
 * @cpus, @ncpus: datapath CPUs of a switch; 0: CPU 0 alone. CPU cpus[i] writes lane i. Of a host:
 * cpus[0] is where its beacons are sent from; 0: anywhere.
 * @one_lane: test: all datapath CPUs share lane 0 (sw_cfg.single_writer = 0).
 * @replace: displace another XDP program.
 * @ctl: the failure controllers of reliable 1Pipe.
 * @thread_napi: 1: make the ports' NAPI threaded and pin it to the home CPU (veth); 0: leave it.
 */
struct bl_node_cfg {
	struct bl_ctl_peers ctl;
	enum bl_role role;
	char name[32];
	char netns[256]; /* path of the network namespace; "": the current one */
	enum bl_xdp_mode mode;
	uint32_t node_id;
	uint16_t port_base, port_count;
	uint32_t beacon_us, dead_after_us;
	uint32_t clock_bound_us, clock_void_after_ms;
	int32_t caretaker_ms;
	uint32_t process_limit_ms;
	int64_t skew_ns;
	uint64_t clock_base_ns;
	enum bl_realtime realtime;
	bool replace;
	bool no_ahead;
	bool no_beacons; /* host: do not send beacons (tests) */
	struct bl_admission_cfg admission;
	int cpus[BL_LANES_MAX];
	unsigned int ncpus;
	/* switch */
	struct bl_port_cfg *ports;
	unsigned int ports_count;
	struct bl_fdb_cfg *fdb;
	unsigned int fdb_count;
	bool one_lane;
	bool thread_napi;
	enum bl_fwd forward;
	/* host */
	char ifname[16];
};

struct bl_node;
struct bl_server;

/** bl_server_new - the event loop for a process's nodes. Returns 0 or -errno. */
int bl_server_new(struct bl_server **out, struct bl_err *err);
/**
 * bl_server_run - serve until bl_server_stop, SIGTERM or SIGINT (sd-event). SIGHUP is only logged.
 * Returns 0 or -errno.
 */
int bl_server_run(struct bl_server *s, struct bl_err *err);
/**
 * bl_server_block_signals - SIGTERM, SIGINT and SIGHUP wait, from the first step of a program to
 * its last: one that comes during the start is obeyed by bl_server_run(), and a second one during
 * the stop does not end that in the middle.
 */
void bl_server_block_signals(void);
/**
 * bl_server_stop - makes bl_server_run return; may be called from a signal handler or a callback
 * of the loop.
 */
void bl_server_stop(struct bl_server *s);
/**
 * bl_server_fd, bl_server_step - for callers with a loop of their own: poll the fd for input, then
 * step.
 */
int bl_server_fd(struct bl_server *s);
int bl_server_step(struct bl_server *s, struct bl_err *err);
/** bl_server_free - closes all nodes; datapaths stay. */
void bl_server_free(struct bl_server *s);

/**
 * bl_node_open - load, attach and pin a node, or take over one whose pins are there (programs are
 * swapped by bpf_link_update without losing a frame; maps are kept). Checks the meta map first.
 * Adds the node to the server: clock kept, beacons sent, endpoints served. Returns 0, or -errno
 * with @err: EBUSY another XDP program, EPROTO pins of another ABI version, ENODEV no such
 * interface, ...
 */
int bl_node_open(struct bl_node **out, struct bl_server *s, const struct bl_node_cfg *cfg,
		 struct bl_err *err);
/** bl_node_mode - the XDP mode that an interface of the node really got. */
enum bl_xdp_mode bl_node_mode(const struct bl_node *n);
const char *bl_node_dir(const struct bl_node *n); /* its pin directory */
/**
 * bl_endpoint_resume - the endpoint at @port, whose process is gone and whose window is not empty,
 * is not to hold the commit barrier any more: what its receivers do with its last messages is
 * settled. Returns 0, or -ENOENT: no such endpoint.
 */
int bl_endpoint_resume(struct bl_node *n, unsigned int port);
struct bl_failure; /* maps/failure_abi.h */
/**
 * bl_failure_announce - tell the endpoints of this host about a failure; its number is given here.
 * Returns 0 or -errno.
 */
int bl_failure_announce(struct bl_node *n, const struct bl_failure *f);
/** bl_failure_done - whether all endpoints of this host have dealt with all announcements. */
bool bl_failure_done(struct bl_node *n);
/**
 * bl_node_hand_over - a process of its own goes on with what the datapath needs (keep.c), until the
 * next daemon comes or @caretaker_ms have passed; the controller is told. To be followed by
 * bl_node_close(). Only for a program whose main() knows --caretaker: it executes itself. Returns
 * 0, or -errno: the node will be silent.
 */
int bl_node_hand_over(struct bl_node *n, struct bl_err *err);
/**
 * bl_caretaker_main - be the caretaker that bl_node_hand_over() started as `PROGRAM --caretaker
 * NUMBER`. The exit status.
 */
int bl_caretaker_main(const char *number);
/** bl_node_close - stop serving; the datapath stays in the kernel. */
void bl_node_close(struct bl_node *n);

/**
 * bl_node_busy - whether a detach would break what is going on: a switch whose ports carry ordered
 * frames (it looks for 0.2 to 3 s), a host with endpoints. 0, or -EBUSY and who they are.
 */
int bl_node_busy(enum bl_role role, const char *netns, struct bl_err *err);
/**
 * bl_node_detach - remove programs and pins of the node with this role in this namespace. Returns
 * 0 or -errno (ENOENT: none).
 */
int bl_node_detach(enum bl_role role, const char *netns, struct bl_err *err);
/**
 * bl_clean - remove pins and sockets whose namespace or interface is gone, and sockets of arbiters
 * and controllers that are. Returns how many nodes were removed or -errno.
 */
int bl_clean(bool dry_run, void (*tell)(const char *what, void *ctx), void *ctx,
	     struct bl_err *err);

/* pin.c, counts.c: finding nodes and reading them, for the CLI and the tests */
struct bl_node_ref {
	enum bl_role role;
	uint64_t netns_ino;
	char dir[256];
	struct bl_meta meta;
};
/**
 * bl_nodes_find - nodes pinned on this machine; @netns_ino 0: all. The caller frees *out. Returns
 * the count or -errno.
 */
int bl_nodes_find(struct bl_node_ref **out, uint64_t netns_ino, struct bl_err *err);
/**
 * struct bl_node_ports - interfaces that the node's programs are for; @gone: how many of them are
 * not there, @first: one of those.
 */
struct bl_node_ports {
	unsigned int all, gone;
	char first[32];
};
void bl_node_ports(const struct bl_node_ref *ref, struct bl_node_ports *p);
/**
 * bl_map_open - fd of a pinned map of the node, after checks of type and value size. Returns fd or
 * -errno.
 */
int bl_map_open(const struct bl_node_ref *ref, const char *map, uint32_t value_size, bool write,
		struct bl_err *err);
/**
 * struct bl_counts - frames by reason of one place of a node (port of a switch, hook of a host),
 * summed over the CPUs.
 */
struct bl_counts {
	uint64_t n[BL_REASON_MAX];
};
/**
 * bl_counts_read - @out[0] to @out[@keys - 1] from the map "counts" of either role. Returns 0 or
 * -errno.
 */
int bl_counts_read(int fd, struct bl_counts *out, uint32_t keys);
/** bl_bpffs_mount - make sure that our bpffs is mounted. */
int bl_bpffs_mount(struct bl_err *err);

/* bl0.c */
/** bl_bl0_mtu - MTU of bl0 under a policy (enum bl_policy) on a host whose NIC has MTU @nic. */
unsigned int bl_bl0_mtu(unsigned int nic, unsigned int policy);
/** bl_bl0_mac - address of bl0 on a host whose NIC has this one. */
void bl_bl0_mac(const uint8_t nic[6], uint8_t mac[6]);

/* admission.c */
/**
 * bl_admission_change - changes the options that @set gives, in the running node's pinned maps.
 * @said: what is different now, as a sentence for people; "": nothing. Returns 0, or -errno with
 * @err; -EINVAL: refused, and nothing changed.
 */
int bl_admission_change(const struct bl_node_ref *ref, const struct bl_admission_set *set,
			char *said, size_t size, struct bl_err *err);
/**
 * bl_admission_show - the options that the running node has, into @v. Times are in ns; a rate of 0
 * is none. Returns 0, or -errno with @err.
 */
int bl_admission_show(const struct bl_node_ref *ref, struct bl_admission_set *v,
		      struct bl_err *err);
/**
 * bl_policy_by_arbiter, bl_policy_by_tokens - how hosts send under an enum bl_policy: in timeslots
 * of an arbiter; in the place of tokens.
 */
bool bl_policy_by_arbiter(unsigned int policy);
bool bl_policy_by_tokens(unsigned int policy);
const char *bl_policy_name(unsigned int policy);
const char *bl_allocator_name(unsigned int allocator);
const char *bl_class_name(unsigned int class);
int bl_policy_by_name(const char *name);    /* -1: none */
int bl_allocator_by_name(const char *name); /* -1: none */
const char *bl_token_mode_name(unsigned int mode);
/* how a switch chooses the way up: routes, symmetric, spray */
const char *bl_path_by_name(unsigned int by);
int bl_token_mode_by_name(const char *name); /* -1: none */

/* loader/admission/top_host.c */
/**
 * bl_top_limits - frames from which classes begin by these settings (what is not given: the
 * default), as bl_top_cfg.limit has them. What is learnt is not in them.
 */
void bl_top_limits(const struct bl_top_opts *o, uint64_t limit[BL_TOP_CLASSES - 1]);

/* admission_argp.c */
struct argp;
extern const struct argp bl_admission_argp; /* its input: struct bl_admission_cfg */

/* config.c */
/**
 * bl_config_load - read a node's YAML file. Unknown keys and bad values fail with file and line in
 * @err. Free with bl_config_free.
 */
int bl_config_load(struct bl_node_cfg *cfg, const char *path, struct bl_err *err);
void bl_config_free(struct bl_node_cfg *cfg);

#endif
