/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What outlives a process says what it is: the meta map pinned beside the others, and the places of
 * pins and sockets.
 *
 *   BL_RUN_DIR/bpf                          our bpffs, mounted by the loader where it is missing
 *   BL_RUN_DIR/bpf/{host,switch}-<netns>/   one node; <netns> is the inode number of its network
 * namespace maps/<name>                         every map of the node links/<kind>-<ifname> pinned
 * bpf_links, ':' for '.', which bpffs does not take: xdp, egress, ingress (tcx; clsact filters have
 * no pin; ingress on bl0 too, where the pacer carries the beacons), hold and pass (XDP on bl0d and
 * bl0) BL_RUN_DIR/<role>-<netns>.lock          locked (flock) by the process that serves or changes
 * the node; holds its pid BL_RUN_DIR/host-<netns>.sock            the host daemon's socket, for
 * libbarline
 */
#ifndef BARLINE_META_ABI_H
#define BARLINE_META_ABI_H

#include <linux/types.h>

#define BL_RUN_DIR    "/run/barline"
#define BL_META_MAGIC 0x6261726c696e6531ULL /* "barline1" */
#define BL_ABI_VERSION                                                                             \
	9 /* raised whenever a layout in maps/ changes; 2: counters by reason, then by port; 3:    \
	   * trees by the greater of two; 4: promises ahead, slots that were missed; 5: reliable   \
	   * windows, orders; 6: who was put out and why, failures by life, whose barriers a frame \
	   * carries; 7: up to where what an endpoint that is out has stored is certain; 8: who    \
	   * left in order, the account of a shared ring; 9: addresses of destinations in full,    \
	   * their ages, lengths as the wire counts them */

enum bl_role { BL_ROLE_NONE, BL_ROLE_SWITCH, BL_ROLE_HOST };

/**
 * struct bl_meta - value 0 of the map "meta".
 * @magic: BL_META_MAGIC.
 * @abi_version: BL_ABI_VERSION of the loader that made the maps. Another value: the loader refuses
 * and says how to clean up.
 * @role: enum bl_role.
 * @size: sizeof(struct bl_meta); may grow at the end.
 * @node_id: this node's number in beacons; random unless configured.
 * @netns_ino: inode of the network namespace, as in the directory's name.
 * @created_ns: CLOCK_REALTIME when the maps were made.
 * @name: for people; NUL terminated.
 * @build: version of the loader that attached last; NUL terminated.
 */
struct bl_meta {
	__u64 magic;
	__u32 abi_version;
	__u32 role;
	__u32 size;
	__u32 node_id;
	__u64 netns_ino;
	__u64 created_ns;
	char name[32];
	char build[32];
};
_Static_assert(sizeof(struct bl_meta) == 104, "ABI");

#endif
