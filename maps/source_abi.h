/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who lives behind a port of a switch: the addresses that may be the source of frames from there
 * (source guard), and how many control frames the port may send.
 *
 * Example: port 3 has a host with 02:00:00:00:00:04 and 10.0.0.4. Its first beacon pins the
 * Ethernet address, its first message the IP address. A message from 10.0.0.1, which port 0 owns,
 * is dropped (spoofed), and changes neither a register nor this table.
 *
 * The arithmetic is in core/source_core.h and core/quota_core.h.
 */
#ifndef BARLINE_SOURCE_ABI_H
#define BARLINE_SOURCE_ABI_H

#include <linux/types.h>

#define BL_MAP_SW_SOURCES "sw_sources" /* array: port -> struct bl_sources; mmapped */
#define BL_MAP_SW_OWNERS  "sw_owners"  /* hash: struct bl_ip -> struct bl_owner */
#define BL_MAP_SW_QUOTAS  "sw_quotas"  /* array: port -> struct bl_quotas */

#define BL_SOURCE_MACS    4
#define BL_SOURCE_IPS     16
#define BL_SOURCE_NO_ETH  (~0ULL) /* bl_source_word() of no frame that passes */
/* BL_SW_PORTS_MAX ports with BL_SOURCE_IPS addresses of messages, and as many of bl0, each */
#define BL_OWNERS_MAX 8192

#define BL_NODE_SHIFT 20 /* about a millisecond */
/* A node id that a host says for so long, about 10 s, becomes the one of its port. */
#define BL_NODE_KEEP 9537

/* How the addresses of a port become known. */
enum bl_source_mode {
	BL_SOURCE_ANY,   /* not at all: every source is accepted */
	BL_SOURCE_LEARN, /* the first ones are pinned; an address belongs to one port only */
	BL_SOURCE_LIST   /* they are configured */
};

/** struct bl_ip - an IPv6 or IPv4-mapped address, as two words in the byte order of memory. */
struct bl_ip {
	__u64 hi;
	__u64 lo;
};

/**
 * struct bl_sources - value of "sw_sources": the addresses of one port. In mode LEARN the lists are
 * written only by the CPU that the port is steered to, entry before count; in mode LIST only by the
 * loader, which appends to them, entry before count, once the programs run. User space reads them
 * without a lock.
 */
struct bl_sources {
	__u32 mode; /* enum bl_source_mode. Written by the loader. */
	__u16 nmac; /* entries of @mac in use */
	__u16 nip;  /* entries of @ip in use */
	/*
	 * Number of times that the learnt lists were emptied. Follows @forget: written by the CPU
	 * of the port.
	 */
	__u32 forgot;
	/*
	 * Number of times that the learnt lists are to be emptied. Raised by atomic additions: by
	 * the daemon for a port that was silent for long, and by the CPU of another port that an
	 * address of this one has moved to.
	 */
	__u32 forget;
	/*
	 * Ethernet address, without marks, and IPv4 address (@lo of struct bl_ip) of the last frame
	 * of a token, of Fastpass or of a reservation that was accepted; 0: none. Each is a word
	 * that was found to be this port's, so it does not matter which CPU writes it, nor whether
	 * both are of the same frame. Emptied with the lists.
	 */
	__u64 app_mac;
	__u64 app_ip4;
	__u64 mac[BL_SOURCE_MACS]; /* as bl_mac48() returns them */
	struct bl_ip ip[BL_SOURCE_IPS];
};
_Static_assert(sizeof(struct bl_sources) == 320, "ABI");

/**
 * struct bl_owner - value of "sw_owners": the port that an IP address belongs to. Inserted by the
 * CPU of the port that uses the address first, or by the loader; deleted by the daemon. The port
 * may also be changed by the CPU of the port that the routing table says the address has moved to.
 */
struct bl_owner {
	__u32 port;
	__u32 listed; /* 1: from the configuration; never changed by a program */
};

/**
 * struct bl_quotas - value of "sw_quotas": theoretical arrival times of a port's control frames
 * (core/quota_core.h). @control and @beacons are in bus time and written only by the CPU that the
 * port is steered to. @links is in CLOCK_MONOTONIC, in steps of a tick of the kernel, and may be
 * written by two CPUs at once; the lost update lets one frame more through.
 */
struct bl_quotas {
	__u64 control; /* CREDIT, NAK, PROBE, OPEN, WINDOW, RECALL */
	__u64 beacons;
	__u64 links; /* RSV, RELEASE */
	/*
	 * Entries of "sw_owners" that were made for sources of tokens and of Fastpass on this port,
	 * at most BL_SOURCE_IPS. Atomic additions by any CPU; set to 0 by the CPU of the port when
	 * the port's addresses are forgotten.
	 */
	__u32 apps;
	__u32 reserved;
};

#endif
