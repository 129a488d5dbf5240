// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a NIC, in words; see nic_facts.h. */
#include "base/text.h"
#include "cli/util/nic_facts.h"

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
		{ BL_NIC_BANDS, "bands" },         { BL_NIC_MQ, "mq" },
		{ BL_NIC_QUEUE, "tx-queue" },      { BL_NIC_FLOWS, "flow-rules" },
		{ BL_NIC_TABLE, "rss-table" },     { BL_NIC_CHANNELS, "channels" },
		{ BL_NIC_LRO, "lro-off" },         { BL_NIC_GRO_HW, "gro-hw-off" },
		{ BL_NIC_PINNED, "napi-threads" }, { BL_NIC_VLAN, "rxvlan-off" },
		{ BL_NIC_STAG, "rxsvlan-off" },
	};
	struct bl_text t = { .buf = buf, .size = size };
	unsigned int k;

	*buf = '\0';
	for (k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (nic->done & words[k].bit)
			bl_text_add(&t, "%s%s", t.used ? " " : "", words[k].text);
	return buf;
}

static void add_offload(struct bl_text *t, const char *name, int state)
{
	if (state < 0)
		bl_text_add(t, ", no %s", name);
	else
		bl_text_add(t, ", %s %s", name, state ? "on" : "off");
}

char *nic_facts_text(const struct nic_facts *f, char *buf, size_t size)
{
	enum bl_xdp_rings rings = f->row ? f->row->rings : BL_RINGS_UNKNOWN;
	struct bl_text t = { .buf = buf, .size = size };

	bl_text_add(&t, "%s, %s XDP, rings %s; transmit: %u queue%s, %s",
		    f->driver[0] ? f->driver : "unknown driver", f->generic ? "generic" : "native",
		    bl_xdp_rings_name(rings), f->tx_queues, f->tx_queues == 1 ? "" : "s",
		    f->qdisc[0] ? f->qdisc : "no qdisc");

	if (f->xps_queues < 0)
		bl_text_add(&t, ", XPS not known");
	else if (!f->xps_queues)
		bl_text_add(&t, ", no XPS");
	else
		bl_text_add(&t, ", XPS on %d", f->xps_queues);
	bl_text_add(&t, "; receive: %u queue%s", f->rx_queues, f->rx_queues == 1 ? "" : "s");
	if (f->rx_usecs < 0)
		bl_text_add(&t, ", coalescing not known");
	else
		bl_text_add(&t, ", rx-usecs %d%s", f->rx_usecs,
			    f->adaptive_rx ? " (adaptive)" : "");
	add_offload(&t, "LRO", f->lro);
	add_offload(&t, "GRO_HW", f->gro_hw);
	add_offload(&t, "rxvlan", f->rxvlan);
	bl_text_add(&t, "; %shardware timestamps", f->hw_rx && f->hw_tx ? "" : "no ");
	if (f->phc < 0)
		bl_text_add(&t, ", no PTP clock");
	else
		bl_text_add(&t, ", PTP clock /dev/ptp%d", f->phc);
	return buf;
}
