// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nic_facts.h. */
#include "cli/util/nic_facts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/net_tstamp.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ethtool.h"
#include "base/netns.h"
#include "base/nl_qdisc.h"
#include "base/proc.h"
#include "cli/util/out.h"
#include "loader/load/nic_tx.h"
#include "loader/load/sysfs.h"

static void read_qdisc(int ifindex, char *kind, size_t size)
{
	struct nl_qdisc *v = calloc(BL_TX_QDISCS, sizeof(*v));
	int n = v ? nl_qdisc_list(ifindex, v, BL_TX_QDISCS) : -1, k;

	*kind = '\0';
	for (k = 0; k < n; k++)
		if (v[k].parent == TC_H_ROOT)
			snprintf(kind, size, "%s", v[k].kind);
	free(v);
}

/*
 * Reads XPS of all transmit queues. A queue has a mask of CPUs, or one of receive queues; a NIC
 * that can have one queue only has neither file.
 */
static void read_xps(struct nic_facts *f)
{
	static const struct {
		const char *file, *prefix;
	} kinds[] = { { "xps_cpus", "" }, { "xps_rxqs", "rxqs " } };
	int sys = bl_sysfs_open();
	char path[96], mask[1024];
	unsigned int q, k;

	if (sys < 0)
		return;
	f->xps = json_array();
	f->xps_queues = 0;
	for (q = 0;; q++) {
		json_t *text = NULL;

		snprintf(path, sizeof(path), "class/net/%s/queues/tx-%u", f->name, q);
		if (faccessat(sys, path, F_OK, 0))
			break;
		for (k = 0; k < 2 && !text; k++) {
			snprintf(path, sizeof(path), "class/net/%s/queues/tx-%u/%s", f->name, q,
				 kinds[k].file);
			if (!bl_read_line(sys, path, mask, sizeof(mask)) &&
			    strspn(mask, "0,") < strlen(mask))
				text = json_sprintf("%s%s", kinds[k].prefix, mask);
		}
		f->xps_queues += text != NULL;
		json_array_append_new(f->xps, text ? text : json_null());
	}
	close(sys);
}

static void read_kernel(struct nic_facts *f)
{
	struct ethtool_coalesce c;
	struct ethtool_drvinfo d;
	struct ethtool_ts_info t;
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	if (!et_driver(f->name, &d))
		snprintf(f->driver, sizeof(f->driver), "%.31s", d.driver);
	f->row = bl_nic_driver(f->driver);
	f->rx_queues = et_rx_queues(f->name);
	f->tx_queues = et_tx_queues(f->name);
	f->lro = et_feature(f->name, ET_FEATURE_LRO);
	f->gro_hw = et_feature(f->name, ET_FEATURE_GRO_HW);
	f->rxvlan = et_feature(f->name, ET_FEATURE_VLAN);
	if (et_feature(f->name, ET_FEATURE_STAG) == 1)
		f->rxvlan = 1;
	if (!et_coalesce(f->name, &c)) {
		f->rx_usecs = (int)c.rx_coalesce_usecs;
		f->adaptive_rx = c.use_adaptive_rx_coalesce;
	}
	read_xps(f);
	f->phc = -1;
	if (!et_stamps(f->name, &t)) {
		f->phc = t.phc_index;
		f->hw_rx = t.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE;
		f->hw_tx = t.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE;
	}
	if (!bpf_xdp_query((int)f->nic.ifindex, 0, &q))
		f->generic = q.attach_mode == XDP_ATTACHED_SKB;
	read_qdisc((int)f->nic.ifindex, f->qdisc, sizeof(f->qdisc));
}

int nic_records_each(const struct bl_node_ref *ref,
		     int (*fn)(const struct bl_nic *nic, const char *name, void *ctx), void *ctx)
{
	uint32_t key, n = ref->role == BL_ROLE_SWITCH ? BL_SW_PORTS_MAX : 1;
	struct bl_nic *all = calloc(n, sizeof(*all));
	struct bl_err err;
	int rc = 0;

	if (!all || bl_map_read_all(ref, BL_MAP_NIC, sizeof(*all), n, all, &err)) {
		rc = cli_fail("%s", all ? err.text : "out of memory");
		free(all);
		return rc;
	}
	for (key = 0; key < n && !rc; key++) {
		struct bl_nic *nic = &all[key];

		if (nic->magic != BL_NIC_MAGIC || nic->version != BL_NIC_VERSION)
			continue;
		nic->rest[sizeof(nic->rest) - 1] = '\0';
		nic->why[sizeof(nic->why) - 1] = '\0';
		nic->name[sizeof(nic->name) - 1] = '\0';
		rc = fn(nic, nic->name, ctx);
	}
	free(all);
	return rc;
}

/** struct each - argument of read_facts(). */
struct each {
	const struct bl_node_ref *ref;
	int (*fn)(const struct nic_facts *f, void *ctx);
	void *ctx;
};

static int read_facts(const struct bl_nic *nic, const char *name, void *ctx)
{
	const struct each *e = ctx;
	struct nic_facts f = { .nic = *nic,
			       .lro = -1,
			       .gro_hw = -1,
			       .rxvlan = -1,
			       .rx_usecs = -1,
			       .phc = -1,
			       .xps_queues = -1 };
	int rc;

	(void)name; /* the interface may have another one now */
	f.here = e->ref->netns_ino == bl_netns_ino() && if_indextoname(nic->ifindex, f.name);
	if (f.here)
		read_kernel(&f);
	rc = e->fn(&f, e->ctx);
	json_decref(f.xps);
	return rc;
}

int nic_facts_each(const struct bl_node_ref *ref, int (*fn)(const struct nic_facts *f, void *ctx),
		   void *ctx)
{
	struct each e = { .ref = ref, .fn = fn, .ctx = ctx };

	return nic_records_each(ref, read_facts, &e);
}
