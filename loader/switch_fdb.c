// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See loader/switch_fdb.h. */
#include "loader/switch_fdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire_core.h"
#include "loader/load/maps.h"
#include "maps/switch_abi.h"

int bl_port_by_name(const struct bl_sw_port *v, const char *name)
{
	int k;

	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		if (v[k].ifindex && !strcmp(v[k].name, name))
			return k;
	return -1;
}

int bl_fdb_fill(const struct bl_node_cfg *cfg, const struct bl_sw_port *ports, int fd,
		struct bl_err *err)
{
	struct bl_fdb_bucket *v = calloc(BL_FDB_BUCKETS, sizeof(*v));
	unsigned int k, w;
	int port, rc = 0;

	if (!v)
		return bl_fail(err, ENOMEM, "out of memory");
	for (k = 0; k < cfg->fdb_count && !rc; k++) {
		const struct bl_fdb_cfg *f = &cfg->fdb[k];
		uint64_t mac = bl_mac48(f->mac);
		struct bl_fdb_bucket *b = &v[bl_fdb_hash(mac)];

		port = bl_port_by_name(ports, f->ifname);
		for (w = 0; w < BL_FDB_WAYS && b->way[w].mac && b->way[w].mac != mac; w++)
			;
		if (port < 0)
			rc = bl_fail(err, EINVAL,
				     "fdb entry %u names %s, which is no port of this switch",
				     k + 1, f->ifname);
		else if (!mac || f->mac[0] & 1)
			rc = bl_fail(err, EINVAL,
				     "fdb entry %u: only unicast addresses can be entered", k + 1);
		else if (w == BL_FDB_WAYS)
			rc = bl_fail(err, ENOSPC,
				     "fdb entry %u: %u addresses share one bucket, and a bucket "
				     "holds %d; change an address",
				     k + 1, w + 1, BL_FDB_WAYS);
		else if (b->way[w].mac)
			rc = bl_fail(err, EINVAL, "fdb entry %u: the address is listed twice",
				     k + 1);
		if (!rc) {
			b->way[w].mac = mac;
			b->way[w].port = (uint64_t)port;
		}
	}
	for (k = 0; k < BL_FDB_BUCKETS && !rc; k++)
		rc = bl_map_set(fd, k, &v[k], BL_MAP_SW_FDB, err);
	free(v);
	return rc;
}
