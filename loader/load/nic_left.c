// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nic_left.h. */
#include "loader/load/nic_left.h"

#include <linux/ethtool.h>

#include "base/ethtool.h"
#include "base/text.h"

bool bl_nic_undo_text(const struct bl_nic *nic, char *buf, size_t size)
{
	static const struct {
		uint32_t bit;
		const char *feature;
	} offloads[] = { { BL_NIC_LRO, ET_FEATURE_LRO },
			 { BL_NIC_GRO_HW, ET_FEATURE_GRO_HW },
			 { BL_NIC_VLAN, ET_FEATURE_VLAN },
			 { BL_NIC_STAG, ET_FEATURE_STAG } };
	struct bl_text t = { .buf = buf, .size = size };
	unsigned int k, n;

	*buf = 0;
	if (nic->done & BL_NIC_CHANNELS)
		bl_text_add(&t, " `ethtool -L %s combined %u`", nic->name, nic->channels);
	for (k = n = 0; nic->done & BL_NIC_FLOWS && k < nic->nrules && k < BL_NIC_RULES; k++)
		if (nic->rule[k] != RX_CLS_LOC_ANY)
			bl_text_add(&t, "%s %u", n++ ? "" : " `for r in", nic->rule[k]);
	if (n)
		bl_text_add(&t, "; do ethtool -N %s delete $r; done`", nic->name);
	if (nic->done & BL_NIC_TABLE)
		bl_text_add(&t, " `ethtool -X %s default`", nic->name);
	for (k = 0; k < sizeof(offloads) / sizeof(offloads[0]); k++)
		if (nic->done & offloads[k].bit)
			bl_text_add(&t, " `ethtool -K %s %s on`", nic->name, offloads[k].feature);
	if (nic->done & BL_NIC_THREADED)
		bl_text_add(&t, " `echo 0 > /sys/class/net/%s/threaded`", nic->name);
	return t.used != 0;
}
