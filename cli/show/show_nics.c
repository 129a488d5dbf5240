// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show nics: how the interfaces of a node keep the order, and what barline changed there.
 */
#include <string.h>

#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/nic_facts.h"

struct rows {
	const struct bl_node_ref *ref;
	json_t *to;
};

/* Returns what somebody who looks for trouble should see in one word. */
static const char *xdp_text(const struct nic_facts *f)
{
	return !f->here ? "" : f->generic ? "generic" : "native";
}

static int add_row(const struct nic_facts *f, void *ctx)
{
	const struct rows *r = ctx;
	const struct bl_nic *nic = &f->nic;
	char how[128];
	json_t *row;

	row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:s}",
			"node", node_name(r->ref), "name", f->here ? f->name : "-", "driver",
			f->driver, "xdp", xdp_text(f), "xdp_rings",
			bl_xdp_rings_name(f->row ? f->row->rings : BL_RINGS_UNKNOWN), "transmit",
			nic_side_text(nic->tx), "receive", nic_side_text(nic->rx), "qdisc",
			f->qdisc, "changed", nic_how_text(nic, how, sizeof(how)), "rx_queues",
			(int)f->rx_queues, "tx_queues", (int)f->tx_queues, "fifo_frames",
			(json_int_t)nic->limit, "repaired", (json_int_t)nic->repaired, "why",
			nic->tx == BL_NIC_BROKEN || nic->rx == BL_NIC_BROKEN ? nic->why : "");
	json_object_set_new(row, "before", json_string(nic->rest));
	json_object_set_new(row, "rx_usecs",
			    f->rx_usecs < 0 ? json_null() : json_integer(f->rx_usecs));
	json_object_set_new(row, "adaptive_rx",
			    f->rx_usecs < 0 ? json_null() : json_boolean(f->adaptive_rx));
	json_object_set_new(row, "xps_queues",
			    f->xps_queues < 0 ? json_null() : json_integer(f->xps_queues));
	json_object_set(row, "xps", f->xps ? f->xps : json_null());
	json_object_set_new(row, "lro", f->lro < 0 ? json_null() : json_boolean(f->lro));
	json_object_set_new(row, "gro_hw", f->gro_hw < 0 ? json_null() : json_boolean(f->gro_hw));
	json_object_set_new(row, "rxvlan", f->rxvlan < 0 ? json_null() : json_boolean(f->rxvlan));
	json_object_set_new(row, "hardware_timestamps", json_boolean(f->hw_rx && f->hw_tx));
	json_object_set_new(row, "phc", f->phc < 0 ? json_null() : json_integer(f->phc));
	json_array_append_new(r->to, row);
	return 0;
}

static int collect_nics(const struct bl_node_ref *ref, json_t *rows)
{
	struct rows r = { .ref = ref, .to = rows };

	return nic_facts_each(ref, add_row, &r);
}

int cmd_show_nics(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },       { "name", "NAME", 's' },
		{ "driver", "DRIVER", 's' },   { "xdp", "XDP", 's' },
		{ "xdp_rings", "RINGS", 's' }, { "transmit", "TX", 's' },
		{ "tx_queues", "TXQ", 'd' },   { "xps_queues", "XPS", 'd' },
		{ "qdisc", "QDISC", 's' },     { "receive", "RX", 's' },
		{ "rx_queues", "RXQ", 'd' },   { "rx_usecs", "USECS", 'd' },
		{ "changed", "CHANGED", 's' }, { "repaired", "REPAIRED", 'd' },
	};

	return SHOW("barline show nics - whether interfaces are one FIFO for ordered frames\v"
		    "TX and RX: FIFO: it was one already; made: barline has made it one; BROKEN: "
		    "it "
		    "is none, and that was accepted (--accept reordering; member why of the JSON "
		    "output); apart: a port of a switch, whose ordered frames do not take the "
		    "kernel's queues; down: not known before the interface is up. RINGS: whether "
		    "frames of XDP share the queues of the kernel. XPS: how many transmit queues "
		    "are picked by the CPU of the sender. USECS: how long interrupts wait for more "
		    "frames, in microseconds. CHANGED is what is put back "
		    "when "
		    "the node is detached. REPAIRED counts how often others had undone it. "
		    "docs/nics.md explains them.",
		    "nics", collect_nics, cols, "no interfaces");
}
