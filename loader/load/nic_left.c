// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nic_left.h. */
#include "loader/load/nic_left.h"

#include <linux/ethtool.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/ethtool.h"

/** struct text - a text that grows up to @size bytes. */
struct text {
	char *buf;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->used >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
	t->used += n > 0 ? (size_t)n : 0;
}

bool bl_nic_undo_text(const struct bl_nic *nic, char *buf, size_t size)
{
	static const struct {
		uint32_t bit;
		const char *feature;
	} offloads[] = { { BL_NIC_LRO, ET_FEATURE_LRO },
			 { BL_NIC_GRO_HW, ET_FEATURE_GRO_HW },
			 { BL_NIC_VLAN, ET_FEATURE_VLAN },
			 { BL_NIC_STAG, ET_FEATURE_STAG } };
	struct text t = { .buf = buf, .size = size };
	unsigned int k, n;

	*buf = 0;
	if (nic->done & BL_NIC_CHANNELS)
		add(&t, " `ethtool -L %s combined %u`", nic->name, nic->channels);
	for (k = n = 0; nic->done & BL_NIC_FLOWS && k < nic->nrules && k < BL_NIC_RULES; k++)
		if (nic->rule[k] != RX_CLS_LOC_ANY)
			add(&t, "%s %u", n++ ? "" : " `for r in", nic->rule[k]);
	if (n)
		add(&t, "; do ethtool -N %s delete $r; done`", nic->name);
	if (nic->done & BL_NIC_TABLE)
		add(&t, " `ethtool -X %s default`", nic->name);
	for (k = 0; k < sizeof(offloads) / sizeof(offloads[0]); k++)
		if (nic->done & offloads[k].bit)
			add(&t, " `ethtool -K %s %s on`", nic->name, offloads[k].feature);
	if (nic->done & BL_NIC_THREADED)
		add(&t, " `echo 0 > /sys/class/net/%s/threaded`", nic->name);
	return t.used != 0;
}
