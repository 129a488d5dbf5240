// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a NIC, in words; see nic_facts.h. */
#include <stdarg.h>
#include <stdio.h>

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
	unsigned int k, used = 0;

	*buf = '\0';
	for (k = 0; k < sizeof(words) / sizeof(words[0]) && used < size; k++)
		if (nic->done & words[k].bit)
			used += (unsigned int)snprintf(buf + used, size - used, "%s%s",
						       used ? " " : "", words[k].text);
	return buf;
}

/* Appends to @buf, which has @used characters. Returns how many it has then. */
__attribute__((format(printf, 4, 5))) static size_t add(char *buf, size_t size, size_t used,
							const char *fmt, ...)
{
	va_list ap;
	int n;

	if (used >= size)
		return used;
	va_start(ap, fmt);
	n = vsnprintf(buf + used, size - used, fmt, ap);
	va_end(ap);
	return n < 0 ? used : used + (size_t)n;
}

static size_t add_offload(char *buf, size_t size, size_t used, const char *name, int state)
{
	if (state < 0)
		return add(buf, size, used, ", no %s", name);
	return add(buf, size, used, ", %s %s", name, state ? "on" : "off");
}

char *nic_facts_text(const struct nic_facts *f, char *buf, size_t size)
{
	enum bl_xdp_rings rings = f->row ? f->row->rings : BL_RINGS_UNKNOWN;
	size_t n = add(buf, size, 0, "%s, %s XDP, rings %s; transmit: %u queue%s, %s",
		       f->driver[0] ? f->driver : "unknown driver",
		       f->generic ? "generic" : "native", bl_xdp_rings_name(rings), f->tx_queues,
		       f->tx_queues == 1 ? "" : "s", f->qdisc[0] ? f->qdisc : "no qdisc");

	if (f->xps_queues < 0)
		n = add(buf, size, n, ", XPS not known");
	else if (!f->xps_queues)
		n = add(buf, size, n, ", no XPS");
	else
		n = add(buf, size, n, ", XPS on %d", f->xps_queues);
	n = add(buf, size, n, "; receive: %u queue%s", f->rx_queues, f->rx_queues == 1 ? "" : "s");
	if (f->rx_usecs < 0)
		n = add(buf, size, n, ", coalescing not known");
	else
		n = add(buf, size, n, ", rx-usecs %d%s", f->rx_usecs,
			f->adaptive_rx ? " (adaptive)" : "");
	n = add_offload(buf, size, n, "LRO", f->lro);
	n = add_offload(buf, size, n, "GRO_HW", f->gro_hw);
	n = add_offload(buf, size, n, "rxvlan", f->rxvlan);
	n = add(buf, size, n, "; %shardware timestamps", f->hw_rx && f->hw_tx ? "" : "no ");
	if (f->phc < 0)
		add(buf, size, n, ", no PTP clock");
	else
		add(buf, size, n, ", PTP clock /dev/ptp%d", f->phc);
	return buf;
}
