/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The static table of an L2 switch: Ethernet address to port. The loader fills it. BPF side only.
 *
 * Example: 02:00:00:00:00:07 hashes to bucket 41 of "sw_fdb". Its second way holds that address and
 * port 3.
 *
 * Not here: learning addresses; a frame for an unknown one is not forwarded.
 */
#ifndef BARLINE_SWITCH_FDB_H
#define BARLINE_SWITCH_FDB_H

#include "bpf/role.h"
#include "core/wire_core.h"

/** bl_fdb_port - returns the port that an Ethernet address is behind, or -1. */
static __always_inline int bl_fdb_port(const __u8 *addr)
{
	__u64 mac = bl_mac48(addr);
	__u32 key = bl_fdb_hash(mac) & (BL_FDB_BUCKETS - 1);
	const struct bl_fdb_bucket *b = bpf_map_lookup_elem(&sw_fdb, &key);
	int i;

	if (b && mac) { /* 0 marks a free way */
		for (i = 0; i < BL_FDB_WAYS; i++)
			if (b->way[i].mac == mac)
				return (int)b->way[i].port;
	}
	return -1;
}

#endif
