/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The controller's fences at a host, whose only input is its NIC, port 0: bl_fence takes a command
 * in, bl_page_tick() applies it. bpf/switch/fence.h has the example. BAR concerns the host's
 * output; it stands in the page, which the sending programs read anyway.
 *
 * Not here: validating commands (bpf/fence_util.h). BPF side only.
 */
#ifndef BARLINE_HOST_ORDER_H
#define BARLINE_HOST_ORDER_H

#include "bpf/host/role.h"
#include "core/order/barrier_core.h"
#include "bpf/bpf_util.h"
#include "bpf/fence_util.h"

/* Applies the slot of the NIC if its generation is new. */
static __always_inline void obey_fences(struct bl_host_page *page)
{
	__u32 zero = 0;
	const struct bl_fence_slot *o = bpf_map_lookup_elem(&host_orders, &zero);
	const struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	struct bl_pair leaf;
	__u64 generation;

	if (!o || !e)
		return;
	generation = BL_READ_ONCE(e->generation);
	if (page->orders == generation)
		return;
	/* the next barrier that arrives publishes the leaf */
	bl_port_apply_fence((struct bl_port_regs *)page->reg, &page->life, o, &leaf);
	BL_BARRIER();
	BL_WRITE_ONCE(page->orders, generation);
}

/**
 * bl_page_tick - reads the clock into the page. A function, as bl_publish() and for the same
 * reason. @beacon_ns, @ahead_ns: of struct bl_host_cfg. Returns the page's new limit_ns, or 0 if
 * the clock cannot be used. Callers use that, since a command may set limit_ns to 0 at any moment.
 */
__attribute__((noinline)) __u64 bl_page_tick(__u64 beacon_ns, __u64 ahead_ns)
{
	__u32 zero = 0;
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_now now;
	__u64 limit;

	if (!page)
		return 0;
	obey_fences(page); /* Fences are applied even without a clock. */
	bl_read_clock(&now);
	if (!now.ok)
		return 0;
	page->watch_ns = bl_watch_advance(page->watch_ns, page->now_ns, now.bus, beacon_ns);
	page->now_ns = now.bus;
	limit = now.limit + ahead_ns;
	page->limit_ns = limit;
	return limit;
}

/**
 * bl_fence - takes in one command of the controller; the daemon runs it. The answer is in @a.
 * Clears the page's limit_ns, so that the next frame reads the clock and applies the slot.
 */
SEC("syscall")
int bl_fence(struct bl_fence_arg *a)
{
	__u32 zero = 0, written = 0;
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_fence_slot *o = bpf_map_lookup_elem(&host_orders, &zero);
	struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);

	if (!page || !o || !e || !bl_fence_validate(a, e, BL_HC_INGRESS))
		return 0;
	switch (a->kind) {
	case BL_FENCE_FREEZE:
	case BL_FENCE_RESUME:
		if (a->port)
			a->result = -BL_ENOENT;
		else
			written = bl_fence_write_slot(a, o, &page->life);
		break;
	case BL_FENCE_BAR:
		o->barred = a->barred[0] & 1;
		BL_WRITE_ONCE(page->barred, o->barred);
		written = 1;
	}
	if (!bl_fence_publish(a, e, written))
		return 0;
	BL_WRITE_ONCE(page->limit_ns, 0);
	return 0;
}

#endif
