// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See forward.h. */
#include "loader/order/forward.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "base/ip.h"
#include "base/log.h"
#include "loader/node_priv.h"
#include "loader/order/ep.h"
#include "loader/order/events.h"
#include "proto/forward_msg.h"

void bl_forward_asked(const struct bl_ep *ep, const struct bl_forward_msg *m, size_t len)
{
	struct bl_forward f = { .sport = ep->info.port };

	if (len < offsetof(struct bl_forward_msg, frame) || m->magic != BL_SOCK_FORWARD ||
	    len != offsetof(struct bl_forward_msg, frame) + m->len || ep->dead)
		/*
		 * Not reported: a process that attached is trusted as far as the maps go
		 * (docs/guarantees.md).
		 */
		return;
	f.port = m->port;
	f.frame = m->frame;
	f.len = m->len;
	memcpy(f.to, m->addr, sizeof(f.to));
	memcpy(f.from, ep->info.addr, sizeof(f.from));
	/* Only programs may say that a frame was stored. */
	if (!bl_forward_fits(&f) || bl_op_answer(bl_forward_op(&f)))
		return;
	bl_event_forward_asked(ep->node, &f);
}

/*
 * Builds the frame as it would have come in. Checksums are left out, since no program reads them.
 * Returns its length.
 */
static size_t build_frame(uint8_t *buf, const struct bl_forward *f)
{
	bool v4 = bl_ip_is_v4(f->to);
	struct ethhdr eth = { .h_proto = htons(v4 ? ETH_P_IP : ETH_P_IPV6) };
	struct udphdr u = { .source = htons(f->sport),
			    .dest = htons(f->port),
			    .len = htons((uint16_t)(sizeof(u) + f->len)) };
	size_t n = sizeof(eth);

	memcpy(buf, &eth, sizeof(eth));
	if (v4) {
		struct iphdr ip = { .version = 4,
				    .ihl = 5,
				    .ttl = 64,
				    .protocol = IPPROTO_UDP,
				    .tot_len = htons((uint16_t)(sizeof(ip) + sizeof(u) + f->len)) };

		memcpy(&ip.saddr, f->from + 12, 4);
		memcpy(&ip.daddr, f->to + 12, 4);
		memcpy(buf + n, &ip, sizeof(ip));
		n += sizeof(ip);
	} else {
		struct ipv6hdr ip = { .version = 6,
				      .hop_limit = 64,
				      .nexthdr = IPPROTO_UDP,
				      .payload_len = htons((uint16_t)(sizeof(u) + f->len)) };

		memcpy(&ip.saddr, f->from, 16);
		memcpy(&ip.daddr, f->to, 16);
		memcpy(buf + n, &ip, sizeof(ip));
		n += sizeof(ip);
	}
	memcpy(buf + n, &u, sizeof(u));
	n += sizeof(u);
	memcpy(buf + n, f->frame, f->len);
	return n + f->len;
}

/* Parses the answer that the program made of the frame: the same headers, with the ends swapped. */
static bool parse_answer(const uint8_t *buf, size_t len, bool v4, struct bl_forward *a)
{
	size_t l3 = sizeof(struct ethhdr),
	       l4 = l3 + (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	struct udphdr u;

	if (len < l4 + sizeof(u) + sizeof(struct bl_hdr))
		return false;
	memcpy(&u, buf + l4, sizeof(u));
	memset(a, 0, sizeof(*a));
	a->sport = ntohs(u.source);
	a->port = ntohs(u.dest);
	a->frame = buf + l4 + sizeof(u);
	a->len = ntohs(u.len);
	if (a->len < sizeof(u) || a->len > len - l4)
		return false;
	a->len -= sizeof(u);
	if (v4) {
		bl_ip_map_v4(a->from);
		bl_ip_map_v4(a->to);
		memcpy(a->from + 12, buf + l3 + offsetof(struct iphdr, saddr), 4);
		memcpy(a->to + 12, buf + l3 + offsetof(struct iphdr, daddr), 4);
	} else {
		memcpy(a->from, buf + l3 + offsetof(struct ipv6hdr, saddr), 16);
		memcpy(a->to, buf + l3 + offsetof(struct ipv6hdr, daddr), 16);
	}
	return bl_forward_fits(a);
}

bool bl_forward_run(const struct bl_node *n, const struct bl_forward *f, struct bl_forward *answer,
		    uint8_t buf[BL_FORWARD_BUF])
{
	uint8_t in[BL_FORWARD_BUF];
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in, .data_out = buf,
		    .data_size_out = BL_FORWARD_BUF, .repeat = 1);
	int rc;

	if (!bl_forward_fits(f) || bl_ip_is_v4(f->to) != bl_ip_is_v4(f->from))
		return false;
	o.data_size_in = (uint32_t)build_frame(in, f);
	rc = bpf_prog_test_run_opts(n->relayed_fd, &o);
	if (rc) {
		bl_log(BL_LOG_ERR,
		       "%s: a frame of %zu bytes that the controller forwarded could not be run "
		       "through the program: %s",
		       n->meta.name, f->len, strerror(-rc));
		return false;
	}
	return o.retval == XDP_TX && parse_answer(buf, o.data_size_out, bl_ip_is_v4(f->to), answer);
}

int bl_forward_replace(struct bl_node *n, int fd)
{
	int old = n->relayed_fd;

	n->relayed_fd = fd;
	return old;
}
