// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metrics of what is beside a node's datapath: the interfaces, as the kernel counts them, and the
 * endpoints of a host. See collect.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/metrics/collect.h"
#include "cli/util/endpoints.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"

#define DEVICES_MAX 1024 /* interfaces of a namespace that are looked at */

/** struct device - a line of /proc/net/dev. */
struct device {
	char name[16];
	uint64_t bytes[2], frames[2], errors[2], dropped[2]; /* received and sent */
};

/* Reads the counters of all interfaces of this namespace. Returns their number, or -1. */
static int read_devices(struct device *d, int most)
{
	FILE *f = fopen("/proc/thread-self/net/dev", "re");
	char line[512], *colon;
	int n = 0;

	if (!f)
		return -1;
	while (n < most && fgets(line, sizeof(line), f)) {
		struct device *v = &d[n];

		colon = strchr(line, ':');
		if (!colon)
			continue; /* the two lines of the heading */
		*colon = ' ';
		n += sscanf(line,
			    "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			    v->name, &v->bytes[0], &v->frames[0], &v->errors[0], &v->dropped[0],
			    &v->bytes[1], &v->frames[1], &v->errors[1], &v->dropped[1]) == 9;
	}
	fclose(f);
	return n;
}

/** struct devices - for put_device(). */
struct devices {
	struct collector *c;
	const char *node;
	const struct device *d;
	int n;
};

/* Adds the counters of an interface. Returns whether there is one of that name. */
static bool put_device(const struct devices *all, const char *name)
{
	static const char *const directions[] = { "receive", "transmit" };
	int i, k;

	for (i = 0; i < all->n && strcmp(all->d[i].name, name); i++)
		;
	for (k = 0; k < 2 && i < all->n; k++) {
		const char *const *labels = LABELS(all->node, name, directions[k]);

		metric_u64(all->c->to, BL_METRIC_IF_BYTES, all->d[i].bytes[k], labels);
		metric_u64(all->c->to, BL_METRIC_IF_FRAMES, all->d[i].frames[k], labels);
		metric_u64(all->c->to, BL_METRIC_IF_ERRORS, all->d[i].errors[k], labels);
		metric_u64(all->c->to, BL_METRIC_IF_DROPPED, all->d[i].dropped[k], labels);
	}
	return i < all->n;
}

/*
 * Adds how many interfaces of a node are gone. An interface that has none of the node's names may
 * have been renamed: its links are looked at only then, since that takes 64 ports some 5 ms.
 */
static void put_gone(const struct devices *all, int node, bool missing)
{
	struct bl_node_ports ports = { 0 };

	if (missing)
		bl_node_ports(&all->c->refs[node], &ports);
	metric_u64(all->c->to, BL_METRIC_INTERFACES_GONE, ports.gone, LABELS(all->node));
}

void collect_interfaces(struct collector *c)
{
	struct device *d = c->nrefs ? calloc(DEVICES_MAX, sizeof(*d)) : NULL;
	struct devices all = { .c = c, .d = d };
	struct bl_sw_cfg cfg;
	struct bl_sw_port *ports;
	char nic[16];
	bool missing;
	uint32_t n, k;
	int i;

	if (!d)
		return;
	all.n = read_devices(d, DEVICES_MAX);
	if (all.n < 0)
		collect_failed(c, "/proc/thread-self/net/dev: %s", strerror(errno));
	for (i = 0; i < c->nrefs; i++) {
		all.node = c->name[i];
		if (c->refs[i].role == BL_ROLE_HOST) {
			node_nic(&c->refs[i], nic, sizeof(nic));
			put_gone(&all, i, !put_device(&all, nic));
			continue;
		}
		if (!collect_value(c, i, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
			continue;
		ports = collect_array(c, i, BL_MAP_SW_PORTS, sizeof(*ports),
				      cfg.nports ? cfg.nports : 1, &n);
		for (k = 0, missing = false; ports && k < n; k++) {
			ports[k].name[sizeof(ports[k].name) - 1] = '\0';
			if (ports[k].ifindex)
				missing |= !put_device(&all, ports[k].name);
		}
		put_gone(&all, i, missing);
		free(ports);
	}
	free(d);
}

/* ---- endpoints ---- */

static void put_endpoint(struct collector *c, int at, const struct bl_ep_slot *s)
{
	const char *node = c->name[at];
	int64_t used = endpoint_ring_used(&c->refs[at], s->slot);
	char port[8];

	snprintf(port, sizeof(port), "%u", s->port);
	metric_u64(c->to, BL_METRIC_EP_RING, s->ring_bytes, LABELS(node, port));
	if (used >= 0)
		metric_u64(c->to, BL_METRIC_EP_RING_USED, (uint64_t)used, LABELS(node, port));
	collect_figures(c, at, s->slot, port);
}

void collect_endpoints(struct collector *c, int node)
{
	static const char *const why[] = {
#define WHY(sym, name, text) [BL_OUT_##sym] = (name),
		BL_OUT_WHYS(WHY)
#undef WHY
	};
	uint64_t in_state[BL_OUT_WHY_COUNT] = { 0 };
	uint32_t n = 0, i;
	struct bl_host_page page;
	struct bl_ep_slot *s;
	unsigned int k;

	if (c->refs[node].role != BL_ROLE_HOST ||
	    !collect_value(c, node, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
		return;
	s = collect_array(c, node, BL_MAP_EPS, sizeof(*s), 0, &n);
	for (i = 0; s && i < n; i++) {
		const struct bl_ep_word *w;

		if (!s[i].active || s[i].slot >= BL_EPS_MAX)
			continue;
		w = &page.word[s[i].slot];
		in_state[w->out_why < BL_OUT_WHY_COUNT ? w->out_why : BL_OUT_MEMBER]++;
		put_endpoint(c, node, &s[i]);
	}
	for (k = 0; s && k < BL_OUT_WHY_COUNT; k++)
		metric_u64(c->to, BL_METRIC_ENDPOINTS, in_state[k], LABELS(c->name[node], why[k]));
	free(s);
}
