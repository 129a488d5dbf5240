// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nic_facts.h. */
#include "cli/util/nic_facts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
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
#include "cli/util/out.h"
#include "loader/load/nic_tx.h"

static void read_qdisc(int ifindex, char *kind, size_t size)
{
	struct nl_qdisc *v = calloc(BL_TX_QDISCS, sizeof(*v));
	struct nl nl;
	int n = -1, k;

	*kind = '\0';
	if (v && !nl_open(&nl)) {
		n = nl_qdisc_list(&nl, ifindex, v, BL_TX_QDISCS);
		nl_close(&nl);
	}
	for (k = 0; k < n; k++)
		if (v[k].parent == TC_H_ROOT)
			snprintf(kind, size, "%s", v[k].kind);
	free(v);
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
	f->rx_usecs = et_coalesce(f->name, &c) ? -1 : (int)c.rx_coalesce_usecs;
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

int nic_facts_each(const struct bl_node_ref *ref, int (*fn)(const struct nic_facts *f, void *ctx),
		   void *ctx)
{
	uint32_t key, n = ref->role == BL_ROLE_SWITCH ? BL_SW_PORTS_MAX : 1;
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_NIC, sizeof(struct bl_nic), false, &err), rc = 0;

	if (fd < 0)
		return cli_fail("%s", err.text);
	for (key = 0; key < n && !rc; key++) {
		struct nic_facts f = { .lro = -1, .gro_hw = -1, .rx_usecs = -1, .phc = -1 };

		if (bpf_map_lookup_elem(fd, &key, &f.nic) || f.nic.magic != BL_NIC_MAGIC ||
		    f.nic.version != BL_NIC_VERSION)
			continue;
		f.nic.rest[sizeof(f.nic.rest) - 1] = '\0';
		f.nic.why[sizeof(f.nic.why) - 1] = '\0';
		f.here = ref->netns_ino == bl_netns_ino() && if_indextoname(f.nic.ifindex, f.name);
		if (f.here)
			read_kernel(&f);
		rc = fn(&f, ctx);
	}
	close(fd);
	return rc;
}

const char *nic_side_text(unsigned int side)
{
	static const char *const texts[] = { [BL_NIC_UNKNOWN] = "down",
					     [BL_NIC_IS_FIFO] = "FIFO",
					     [BL_NIC_MADE] = "made",
					     [BL_NIC_BROKEN] = "BROKEN",
					     [BL_NIC_APART] = "apart" };

	return side < sizeof(texts) / sizeof(texts[0]) ? texts[side] : "unknown";
}

char *nic_how_text(const struct bl_nic *nic, char *buf, unsigned int size)
{
	static const struct {
		uint32_t bit;
		const char *text;
	} words[] = {
		{ BL_NIC_BANDS, "bands" },     { BL_NIC_MQ, "mq" },
		{ BL_NIC_QUEUE, "tx-queue" },  { BL_NIC_FLOWS, "flow-rules" },
		{ BL_NIC_TABLE, "rss-table" }, { BL_NIC_CHANNELS, "channels" },
		{ BL_NIC_LRO, "lro-off" },     { BL_NIC_GRO_HW, "gro-hw-off" },
	};
	unsigned int k, used = 0;

	*buf = '\0';
	for (k = 0; k < sizeof(words) / sizeof(words[0]) && used < size; k++)
		if (nic->done & words[k].bit)
			used += (unsigned int)snprintf(buf + used, size - used, "%s%s",
						       used ? " " : "", words[k].text);
	return buf;
}
