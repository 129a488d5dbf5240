/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What outlives a process identifies itself: the map "meta", pinned beside the other maps of a
 * node, and the places of pins, locks and sockets.
 *
 *   BL_RUN_DIR/bpf                         barline's bpffs; the loader mounts it if it is missing
 *   BL_RUN_DIR/bpf/{host,switch}-<netns>/  one node; <netns> is the inode number of its network
 *                                          namespace
 *     maps/<name>                          every map of the node
 *     progs/<checksum>/<program>           the programs, for a daemon that would load the same ones
 *                                          (loader/load/progs.h); may be removed at any time
 *     links/<kind>-<ifname>                pinned bpf_links, with ':' in place of '.', which bpffs
 *                                          does not accept. Kinds: xdp, egress, ingress (tcx;
 *                                          clsact filters have no pin; ingress on bl0 too, where
 *                                          the pacer carries the beacons), hold and pass (XDP on
 *                                          bl0d and bl0)
 *   BL_RUN_DIR/<role>-<netns>.lock         locked (flock) by the process that serves or changes the
 *                                          node; contains its pid
 *   BL_RUN_DIR/host-<netns>.sock           socket of the host daemon, for libbarline
 *
 * Example: a host in the network namespace with inode 4026531840 has its clock record in
 * /run/barline/bpf/host-4026531840/maps/clock.
 */
#ifndef BARLINE_META_ABI_H
#define BARLINE_META_ABI_H

#include <linux/types.h>

#define BL_RUN_DIR    "/run/barline"
#define BL_META_MAGIC 0x6261726c696e6531ULL /* "barline1" */
/*
 * Version of the layouts in maps/. Raise it whenever one of them changes, and add the change here:
 * 2: counters by reason, then by port; 3: trees that keep the greater of two keys; 4: promises
 * ahead, missed slots; 5: reliable windows, fences; 6: removed endpoints and the reason, failures
 * by life, the hop of a frame; 7: the time below which messages of a removed endpoint are
 * committed; 8: endpoints that left in order, the account of a shared ring; 9: complete addresses
 * of destinations, their ages, lengths in byte times; 10: inputs that lag, addresses and quotas of
 * ports, keys of links, pages and sockets of endpoints, their users, sends that are void; 11:
 * frames counted on each link, hooks of interfaces, records and forwarded frames of jumbo frames;
 * 13: steps of the system clock in the clock record; 14: what neighbours have proven, in it;
 * 15: drained hosts; 16: figures of endpoints.
 */
#define BL_ABI_VERSION 16

enum bl_role { BL_ROLE_NONE, BL_ROLE_SWITCH, BL_ROLE_HOST };

/*
 * Map names are defined as BL_MAP_* at the top of the *_abi.h of their system; the name is that of
 * the pin, so it must not change.
 *
 * To add a map:
 * 1. Define BL_MAP_NAME and the struct of its value, with a _Static_assert on the size, in the
 *    system's *_abi.h. Say beside each field who writes it and what protects it.
 * 2. Define the map in the system's *_maps.h. The loader pins every map of a node's object.
 * 3. Raise BL_ABI_VERSION above if nodes that run must not go on with their old set of maps.
 * 4. If a map depends on the number of ports, destinations or queues, or starts afresh together
 *    with the queues, add it to host_group[] or switch_group[] and to entries() in
 *    loader/admission/admission.c.
 * 5. If the command line tool reads it (bl_map_open()), add its type to map_types[] in
 *    loader/load/pin.c.
 * 6. If the loader or the daemon writes initial values, do so in loader/host.c or loader/switch.c.
 */

/**
 * struct bl_meta - value 0 of the map "meta". Written by the loader; read by every tool before it
 * trusts another map of the node. May grow at the end.
 */
struct bl_meta {
	__u64 magic; /* BL_META_MAGIC */
	/*
	 * BL_ABI_VERSION of the loader that created the maps. A loader with another version refuses
	 * them and says how to clean up.
	 */
	__u32 abi_version;
	__u32 role;       /* enum bl_role */
	__u32 size;       /* sizeof(struct bl_meta) */
	__u32 node_id;    /* number of this node in beacons; random unless configured */
	__u64 netns_ino;  /* inode of the network namespace, as in the directory's name */
	__u64 created_ns; /* CLOCK_REALTIME at which the maps were created */
	char name[32];    /* of the node, for people; NUL terminated */
	char build[32];   /* version of the loader that attached last; NUL terminated */
};
_Static_assert(sizeof(struct bl_meta) == 104, "ABI");

#endif
