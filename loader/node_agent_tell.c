// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a node's agent says of the node in its HELLO; see node_agent_priv.h. */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "loader/node_agent_priv.h"
#include "loader/order/ep.h"
#include "loader/order/fence.h"

struct bl_agent_port bl_node_agent_port(const struct bl_fence_port *p)
{
	static const uint8_t roles[] = { [BL_PORT_HOST] = 0, [BL_PORT_UP] = 1, [BL_PORT_DOWN] = 2 };

	return (struct bl_agent_port){ .port = p->port,
				       .neighbour = p->neighbour,
				       .death = p->death,
				       .role = roles[p->role & 3],
				       .state = bl_agent_port_state(p),
				       .c = p->held ? p->c : BL_AGENT_NO_C };
}

static void add_addr(struct bl_agent_node *v, const uint8_t addr[16])
{
	unsigned int i;

	for (i = 0; i < v->naddrs; i++)
		if (!memcmp(v->addr[i], addr, 16))
			return;
	if (v->naddrs < BL_AGENT_ADDRS_MAX)
		memcpy(v->addr[v->naddrs++], addr, 16);
}

/* Adds an address by which other hosts may know this node's messages. */
static void add_sockaddr(struct bl_agent_node *v, const struct sockaddr *sa)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	if (!sa)
		return;
	if (sa->sa_family == AF_INET)
		memcpy(addr + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	else if (sa->sa_family == AF_INET6 &&
		 !IN6_IS_ADDR_LINKLOCAL(
			 &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr))
		memcpy(addr, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	else
		return;
	add_addr(v, addr);
}

/*
 * The addresses of endpoints come first, whether the NIC still has them or not: an endpoint keeps
 * the address that it was given, and its messages are known by that. Dead endpoints count, too,
 * because they are about to be announced.
 */
static void tell_addresses(const struct bl_node *n, struct bl_agent_node *v)
{
	struct ifaddrs *all, *one;
	struct bl_err err;
	int old, k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used)
			add_addr(v, n->ep[k].info.addr);
	if (bl_netns_enter(n->cfg.netns, &old, &err))
		return;
	if (!getifaddrs(&all)) {
		for (one = all; one; one = one->ifa_next)
			if (!strcmp(one->ifa_name, n->att[0].iface.name))
				add_sockaddr(v, one->ifa_addr);
		freeifaddrs(all);
	}
	bl_netns_leave(old);
}

void bl_node_agent_tell(void *ctx, struct bl_agent_node *v)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	const struct bl_node *n = a->node;
	int k, count;

	v->node_id = n->meta.node_id;
	v->host = n->cfg.role == BL_ROLE_HOST;
	snprintf(v->name, sizeof(v->name), "%s", n->meta.name);
	count = bl_fence_inputs(&n->fence, in, BL_AGENT_PORTS_MAX);
	for (k = 0; k < count; k++) {
		/* A change that this HELLO reports needs no second report. */
		bl_agent_watch_sample(&a->watch, &in[k]);
		v->port[v->nports++] = bl_node_agent_port(&in[k]);
	}
	if (!v->host)
		return;
	tell_addresses(n, v);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].dead)
			v->endpoint[v->nendpoints++] = n->ep[k].info.port;
}
