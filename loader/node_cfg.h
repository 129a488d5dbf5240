/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration of a node. It comes from a YAML file (config.c), from flags (barlined.c,
 * admission/admission_argp.c) or from the lab. A number that is 0 means its default (defaults.c),
 * which is given in parentheses.
 */
#ifndef BARLINE_NODE_CFG_H
#define BARLINE_NODE_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loader/load/attach.h"
#include "loader/load/prio.h"
#include "maps/auth_abi.h"
#include "maps/hold_abi.h"
#include "maps/meta_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/switch_abi.h"
#include "maps/top_host_abi.h"

struct bl_fp_file;

/** struct bl_port_cfg - a port of a switch. */
struct bl_port_cfg {
	char ifname[16];
	uint8_t role; /* enum bl_port_role */
	int home_cpu; /* -1: ports are spread over the datapath CPUs in order */
	/* bits per second at which the port is metered; 0: what admission.rate_bps says */
	uint64_t rate_bps;
	/* leads out of the rack: frames from there need no promise. Up-links always do. */
	bool outside;
	uint8_t lanes; /* that the neighbour may have (1 of a host, BL_LANES_MAX of a switch) */
	/*
	 * Port of a host: whether its addresses are checked (BL_SOURCE_LEARN, BL_SOURCE_ANY if
	 * @outside), and those that are configured; see maps/source_abi.h.
	 */
	bool source_given; /* @source is set */
	enum bl_source_mode source;
	unsigned int nmac, nip;
	uint8_t mac[BL_SOURCE_MACS][6];
	uint8_t ip[BL_SOURCE_IPS][16]; /* IPv6 or IPv4-mapped */
	bool auth_off;                 /* exempt from the authentication of links */
	char chain[256];               /* as that of the node; "": the node's */
};

/** struct bl_fdb_cfg - an entry of the static table of a switch that forwards by MAC address. */
struct bl_fdb_cfg {
	uint8_t mac[6];
	char ifname[16]; /* output port */
};

/** struct bl_limit_cfg - limits of one class of queues; 0: those of the other classes. */
struct bl_limit_cfg {
	uint32_t frames, bytes, mark_bytes;
};

/** struct bl_top_opts - settings of TOP on a host. */
struct bl_top_opts {
	uint32_t v[BL_TOP_O_COUNT]; /* by enum bl_top_option: value + 1; 0: unchanged, or default */
	struct bl_top_rule rules[BL_TOP_RULES]; /* port rules */
	unsigned int nrules;
};

/**
 * struct bl_admission_cfg - admission of applications' traffic, on a host (bl0 and its hold queues)
 * or on a switch (metered ports, reservations).
 */
struct bl_admission_cfg {
	bool on; /* false: the rest is ignored, and the maps of admission stay small */
	enum bl_policy policy; /* on a switch, pl2: reservations are made */
	/*
	 * bits per second. Host: of its NIC; 0: not metered. Switch: of each port without a rate of
	 * its own; 0: not metered.
	 */
	uint64_t rate_bps;
	uint32_t slots; /* frames that all queues of the node hold together (BL_SLOTS) */
	/*
	 * limits of each queue: a host's hold queues, a switch's output queues (256 frames, as many
	 * full frames in bytes; ECN marks above 64 KiB on a host, none on a switch)
	 */
	struct bl_limit_cfg queue;
	struct bl_limit_cfg limit[BL_CL_COUNT]; /* switch: by class of its queues */
	bool spin;                              /* the pacer never sleeps */
	uint32_t pacer_cpu;                     /* CPU + 1 (the first of cpus) */
	bool pacer_beacons;     /* host: the pacer sends its beacons, not the beacon thread */
	char bl0[16], bl0d[16]; /* names of the pair ("bl0" and "bl0d") */

	/* PL2, host; see struct bl_hold_cfg */
	uint32_t k;       /* PL2's K, in frames (4) */
	uint32_t t_slots; /* PL2's t, in slots (15) */
	uint32_t t_us;    /* PL2's t, as time */
	/* (derived from the link's slot by bl_pl2_times()) */
	uint32_t recent_us, retry_us, coming_us, late_us;

	/* PL2, switch; see struct bl_rsv_cfg */
	enum bl_allocator allocator;
	uint32_t refuse_us;       /* PL2's T, as time (64 slots) */
	uint32_t far_us;          /* (480 slots) */
	uint32_t lapse_us;        /* (bl_pl2_times()) */
	uint32_t outside_percent; /* share of each port for traffic from outside */

	/*
	 * Fastpass, switch: path k is up port k / @path_div, modulo the number of up ports (path k
	 * is up port k, and greater paths are not obeyed). With three tiers: the number of cores on
	 * switches of racks, 1 on aggregation switches.
	 */
	uint32_t path_div;

	/* TOP, switch; see struct bl_token_cfg */
	uint8_t token_mode; /* enum bl_token_mode + 1 (pace where ports are metered, else drop) */
	bool data_first, unscheduled;
	bool spray;                /* frames take the up ports in turn, not one path per flow */
	uint32_t token_frames;     /* (8) */
	uint32_t expiry_tokens;    /* (8) */
	uint32_t headroom_percent; /* of the links, for frames that need no token */
	uint64_t link_rate_bps;    /* of each port that is not metered */

	/*
	 * Fastpass, host: what it agrees on with the arbiters (proto/fastpass_file.h). NULL: read
	 * from @fp_path; "": there is none. Belongs to the caller of open.
	 */
	const struct bl_fp_file *fp;
	char fp_path[256];

	struct bl_top_opts top; /* TOP, host */
};

#define BL_CTL_PEERS_MAX 8

/** struct bl_ctl_peers - the failure controllers of a rack. */
struct bl_ctl_peers {
	unsigned int n; /* 0: there are none, and an input that stands still is never resumed */
	char addr[BL_CTL_PEERS_MAX][64];   /* as bl_session_addr() reads them */
	char ca[256], cert[256], key[256]; /* TLS: files in PEM; "": none */
	bool unnamed;                      /* certificates without an identity are accepted */
	bool insecure; /* sessions with controllers on other machines without TLS are allowed */
};

/** struct bl_auth_cfg - authentication of links (loader/auth.h). */
struct bl_auth_cfg {
	enum bl_auth_mode mode; /* OFF: the rest is ignored */
	char keys[256];         /* the node's key file */
};

#define BL_BEACON_US                100
#define BL_CLOCK_BOUND_US           50
#define BL_CLOCK_VOID_MS            10000
#define BL_CARETAKER_MS             10000
#define BL_CLOCK_MAX_BOUND_US       25000
#define BL_CLOCK_MAX_BOUND_LIMIT_US 1000000
#define BL_CARETAKER_MAX_MS         60000
#define BL_PROCESS_LIMIT_MS         2000
#define BL_PROCESS_LIMIT_MIN_MS     100
#define BL_SEND_LIMIT_MS            20
#define BL_SEND_LIMIT_MIN_MS        4
#define BL_SEND_LIMIT_MAX_MS        60000
#define BL_USER_ENDPOINTS           16
#define BL_USER_RING_MIB            64
/*
 * A host may lag for as long as its daemon needs to find a process that stopped in the middle of a
 * send, and longer.
 */
#define BL_LAG_MAX_US 50000
/*
 * The commit barrier of a host stands still for as long as one of its messages is not acknowledged,
 * until its daemon expels the sender or the controllers expel the receiver (stuck_ms, 5 s).
 */
#define BL_COMMIT_LAG_MAX_MS 10000
/*
 * A receiver answers every seventh frame or so with a CREDIT. A datapath CPU forwards three million
 * frames a second at the most, so this is more than hosts need.
 */
#define BL_CONTROL_RATE 500000

/** struct bl_node_cfg - everything that a node is made from. */
struct bl_node_cfg {
	struct bl_ctl_peers ctl;
	struct bl_auth_cfg auth;
	enum bl_role role;
	char name[32];   /* (role and node id) */
	char netns[256]; /* path of the network namespace; "": the current one */
	char user[33];   /* barlined becomes this user; "": the user stays */
	bool no_sandbox; /* barlined runs without a filter of system calls */
	enum bl_xdp_mode mode;
	uint32_t node_id;               /* (the one in the pins, or a random one) */
	uint16_t port_base, port_count; /* UDP ports of endpoints (BL_PORT_BASE, BL_PORT_COUNT) */
	uint32_t beacon_us;             /* beacon interval (BL_BEACON_US) */
	uint32_t dead_after_us; /* a silent input is excluded after that (10 beacon intervals) */
	/*
	 * Switch: an input that talks is excluded if its barrier lags further behind (10 times
	 * dead_after, at least BL_LAG_MAX_US).
	 */
	uint32_t lag_max_us;
	uint32_t commit_lag_max_ms; /* the same for the commit barrier (BL_COMMIT_LAG_MAX_MS) */
	uint32_t control_rate; /* switch: control frames per second of a port (BL_CONTROL_RATE) */
	/*
	 * enum bl_clock_source_kind (BL_CLOCK_TRUST; barlined, `host up` and `switch up`:
	 * BL_CLOCK_KERNEL)
	 */
	uint32_t clock_source;
	/*
	 * Greatest error of the system clock if it is trusted, and the least bound if it is
	 * measured (BL_CLOCK_BOUND_US).
	 */
	uint32_t clock_bound_us;
	bool clock_bound_default;    /* nobody has written it */
	uint32_t clock_max_bound_us; /* measured: void beyond this bound (BL_CLOCK_MAX_BOUND_US) */
	/* ptp4l; see struct bl_clock_options */
	char clock_socket[108]; /* clockbound: its file ("": linuxptp's, or ClockBound's own) */
	char clock_phc[32];     /* ("": the clock of ptp4l's interface) */
	uint8_t clock_domain, clock_transport_specific;
	bool clock_grandmaster;
	uint32_t clock_void_after_ms; /* a clock record without a keeper expires (BL_CLOCK_VOID_MS)
				       */
	int32_t caretaker_ms; /* limit of a caretaker's time (BL_CARETAKER_MS); -1: no caretaker */
	uint32_t process_limit_ms; /* host: see order/limits.c (BL_PROCESS_LIMIT_MS) */
	int32_t send_limit_ms;     /* host: see order/void.c (BL_SEND_LIMIT_MS); -1: no limit */
	/*
	 * host: how many endpoints, and MiB of rings, one user other than root may have
	 * (BL_USER_ENDPOINTS, BL_USER_RING_MIB); -1: no limit
	 */
	int32_t user_endpoints, user_ring_mib;
	int64_t skew_ns;        /* test: puts this node's clock off */
	uint64_t clock_base_ns; /* test: bus time starts here (CLOCK_TAI) */
	enum bl_realtime realtime;
	bool replace; /* displace another XDP program */
	/* the XDP program for frames that are not barline's (loader/load/chain.h); "": none */
	char chain[256];
	bool dispatcher; /* the XDP programs join dispatchers of libxdp (loader/load/dispatcher.h)
			  */
	/*
	 * The node starts although its NIC is no FIFO for ordered frames (loader/nic.c): messages
	 * may be late, and are counted.
	 */
	bool accept_reordering;
	/* a NIC whose driver cannot do otherwise is set to one channel while the node is attached
	 */
	bool one_queue;
	/*
	 * silent hosts do not promise ahead of their clocks (core/order/promise_core.h), and no
	 * such promise is believed. The same on all nodes of a rack.
	 */
	bool no_ahead;
	bool no_beacons; /* test, host: send no beacons */
	struct bl_admission_cfg admission;
	/*
	 * Switch: its datapath CPUs; CPU cpus[i] writes lane i (CPU 0 alone). Host: cpus[0] sends
	 * its beacons (any CPU).
	 */
	int cpus[BL_LANES_MAX];
	unsigned int ncpus;

	/* switch */
	struct bl_port_cfg *ports;
	unsigned int ports_count;
	struct bl_fdb_cfg *fdb;
	unsigned int fdb_count;
	bool one_lane;    /* test: all datapath CPUs share lane 0 (sw_cfg.single_writer = 0) */
	bool thread_napi; /* make the ports' NAPI threaded, pinned to the home CPUs (for veth) */
	enum bl_fwd forward;

	/* host */
	char ifname[16]; /* its NIC */
};

/** bl_cfg_port - Returns the port called @ifname, or NULL: it is no port of this switch. */
static inline const struct bl_port_cfg *bl_cfg_port(const struct bl_node_cfg *c, const char *ifname)
{
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		if (!strcmp(c->ports[k].ifname, ifname))
			return &c->ports[k];
	return NULL;
}

#endif
