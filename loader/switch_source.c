// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See switch_source.h.
 *
 * The daemon never writes a list that a program may write at the same time. Lists that are
 * configured are only read by programs, and a reload appends to them. A list that was learnt
 * belongs to the programs: the daemon raises the word @forget of the port, and the CPU of the port
 * empties the list. Owners are entries of a hash map, whose insertions and deletions are atomic.
 */
#include "loader/switch_source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/ip.h"
#include "core/order/barrier_core.h"
#include "core/source_core.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"
#include "loader/switch_fdb.h"

#define SAMPLE_US 1000000

/** struct bl_source_watch - what bl_sources_watch() keeps. */
struct bl_source_watch {
	sd_event_source *timer;
	int regs_fd, owners_fd;
	struct bl_sources *sources;         /* "sw_sources", mapped */
	struct bl_sw_port *ports;           /* "sw_ports", mapped */
	uint16_t silent_s[BL_SW_PORTS_MAX]; /* seconds for which no lane of the port was live */
};

enum bl_source_mode bl_source_mode(const struct bl_port_cfg *c)
{
	if (c->role != BL_PORT_HOST)
		return BL_SOURCE_ANY;
	if (c->source_given)
		return c->source;
	return c->outside ? BL_SOURCE_ANY : BL_SOURCE_LEARN;
}

static struct bl_ip ip_key(const uint8_t ip[16])
{
	struct bl_ip key;

	memcpy(&key, ip, sizeof(key));
	return key;
}

static int list_addresses(const struct bl_port_cfg *c, uint32_t port, struct bl_sources *s,
			  int owners, struct bl_err *err)
{
	struct bl_owner mine = { .port = port, .listed = 1 }, other;
	unsigned int k;

	for (k = 0; k < c->nmac; k++)
		s->mac[k] = bl_mac48(c->mac[k]);
	s->nmac = (uint16_t)c->nmac;
	for (k = 0; k < c->nip; k++) {
		s->ip[k] = ip_key(c->ip[k]);
		if (!bpf_map_lookup_elem(owners, &s->ip[k], &other) && other.listed &&
		    other.port != port)
			return bl_fail(err, EINVAL,
				       "port %s: IP address %u of its list belongs to another port "
				       "already; an address has one port",
				       c->ifname, k + 1);
		if (bpf_map_update_elem(owners, &s->ip[k], &mine, BPF_ANY))
			return bl_fail(err, errno, "cannot write the map %s: %s", BL_MAP_SW_OWNERS,
				       strerror(errno));
	}
	s->nip = (uint16_t)c->nip;
	return 0;
}

/*
 * Deletes the owners that have no claim any more: those that were learnt at the ports of @gone, and
 * those that are configured for the ports of @listed.
 */
static int drop_owners(int owners, const bool gone[BL_SW_PORTS_MAX],
		       const bool listed[BL_SW_PORTS_MAX])
{
	struct bl_ip *keys = calloc(BL_OWNERS_MAX, sizeof(*keys)), *at = NULL;
	struct bl_owner o;
	unsigned int n = 0, k;

	if (!keys)
		return -ENOMEM;
	while (n < BL_OWNERS_MAX && !bpf_map_get_next_key(owners, at, &keys[n]))
		at = &keys[n++];
	for (k = 0; k < n; k++)
		if (!bpf_map_lookup_elem(owners, &keys[k], &o) &&
		    (o.port >= BL_SW_PORTS_MAX || (o.listed ? listed : gone)[o.port]))
			bpf_map_delete_elem(owners, &keys[k]);
	free(keys);
	return 0;
}

int bl_sources_fill(const struct bl_node_cfg *cfg, const struct bl_sw_port *old,
		    const struct bl_sw_port *ports, int sources, int owners, struct bl_err *err)
{
	enum bl_source_mode mode[BL_SW_PORTS_MAX] = {};
	const struct bl_port_cfg *of[BL_SW_PORTS_MAX] = {};
	bool gone[BL_SW_PORTS_MAX] = {}, all[BL_SW_PORTS_MAX];
	struct bl_sources s;
	unsigned int j;
	uint32_t k;
	int rc;

	memset(all, true, sizeof(all));
	for (j = 0; j < cfg->ports_count; j++) {
		int p = bl_port_by_name(ports, cfg->ports[j].ifname);

		if (p >= 0) {
			mode[p] = bl_source_mode(&cfg->ports[j]);
			of[p] = &cfg->ports[j];
		}
	}
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (bpf_map_lookup_elem(sources, &k, &s))
			return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				       BL_MAP_SW_SOURCES, strerror(errno));
		gone[k] = !ports[k].ifindex || !old[k].ifindex ||
			  strcmp(old[k].name, ports[k].name) || s.mode != mode[k];
	}
	rc = drop_owners(owners, gone, all);
	if (rc)
		return bl_fail(err, -rc, "out of memory");
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (!gone[k] && mode[k] == BL_SOURCE_LEARN)
			continue;
		memset(&s, 0, sizeof(s));
		s.mode = mode[k];
		rc = mode[k] == BL_SOURCE_LIST ? list_addresses(of[k], k, &s, owners, err) : 0;
		if (!rc)
			rc = bl_map_set(sources, k, &s, BL_MAP_SW_SOURCES, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Samples the ports once a second, and forgets those that have been silent for long. */
static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_source_watch *w = ctx;
	bool gone[BL_SW_PORTS_MAX] = {}, none[BL_SW_PORTS_MAX] = {}, any = false;
	struct bl_port_regs r;
	uint32_t k, l;

	(void)usec;
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		struct bl_sources *s = &w->sources[k];

		if (s->mode != BL_SOURCE_LEARN || !__atomic_load_n(&s->nmac, __ATOMIC_RELAXED) ||
		    bpf_map_lookup_elem(w->regs_fd, &k, &r)) {
			w->silent_s[k] = 0;
			continue;
		}
		for (l = 0; l < BL_LANES_MAX && !bl_reg_live(&r.lane[l]); l++)
			;
		w->silent_s[k] = l < BL_LANES_MAX ? 0 : w->silent_s[k] + 1;
		if (w->silent_s[k] < BL_SOURCE_KEEP_S)
			continue;
		/* Pairs with bl_source_obey(), which empties the list when the port is heard again.
		 */
		__atomic_add_fetch(&s->forget, 1, __ATOMIC_RELAXED);
		w->silent_s[k] = 0;
		gone[k] = any = true;
	}
	if (any && drop_owners(w->owners_fd, gone, none))
		bl_log(BL_LOG_WARN, "out of memory: addresses of silent ports stay reserved");
	sd_event_source_set_time_relative(src, SAMPLE_US);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	return 0;
}

/* Maps the map @name of ports, @size bytes each. Returns it, or NULL with errno. */
static void *map_ports(const struct bpf_object *obj, const char *name, size_t size)
{
	void *page = mmap(NULL, BL_SW_PORTS_MAX * size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_object__find_map_fd_by_name(obj, name), 0);

	return page == MAP_FAILED ? NULL : page;
}

int bl_sources_watch(struct bl_node *n, const struct bpf_object *obj, struct bl_err *err)
{
	struct bl_source_watch *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return bl_fail(err, ENOMEM, "out of memory");
	w->regs_fd =
		fcntl(bpf_object__find_map_fd_by_name(obj, BL_MAP_SW_REGS), F_DUPFD_CLOEXEC, 3);
	w->owners_fd =
		fcntl(bpf_object__find_map_fd_by_name(obj, BL_MAP_SW_OWNERS), F_DUPFD_CLOEXEC, 3);
	w->sources = map_ports(obj, BL_MAP_SW_SOURCES, sizeof(struct bl_sources));
	w->ports = map_ports(obj, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port));
	n->sources = w;
	if (w->regs_fd < 0 || w->owners_fd < 0 || !w->sources || !w->ports)
		return bl_fail(err, errno, "cannot map the addresses of the ports: %s",
			       strerror(errno));
	rc = sd_event_add_time_relative(n->srv->ev, &w->timer, CLOCK_MONOTONIC, SAMPLE_US, 0,
					on_sample, w);
	return rc < 0 ? bl_fail(err, -rc, "cannot set a timer: %s", strerror(-rc)) : 0;
}

int bl_source_port(struct bl_node *n, const struct bl_port_cfg *c, uint32_t port,
		   struct bl_err *err)
{
	struct bl_sources s = { .mode = c ? bl_source_mode(c) : BL_SOURCE_ANY };
	bool mine[BL_SW_PORTS_MAX] = {};
	struct bl_source_watch *w = n->sources;
	int rc = 0;

	mine[port] = true;
	if (drop_owners(w->owners_fd, mine, mine))
		return bl_fail(err, ENOMEM, "out of memory");
	if (s.mode == BL_SOURCE_LIST)
		rc = list_addresses(c, port, &s, w->owners_fd, err);
	if (!rc)
		w->sources[port] = s;
	return rc;
}

/* ---- more addresses for ports that are in use ---- */

/** struct more - the addresses that are added; up to all of all ports. */
struct more {
	struct bl_ip ip[BL_SW_PORTS_MAX * BL_SOURCE_IPS];
	unsigned int n; /* entries of @ip, of which the port is the owner now */
};

/*
 * Makes port @p the owner of the addresses of @c that its list lacks. With @check it only looks
 * whether somebody owns them.
 */
static int own_more(struct bl_source_watch *w, const struct bl_port_cfg *c, uint32_t p, bool check,
		    struct more *m, struct bl_err *err)
{
	struct bl_owner mine = { .port = p, .listed = 1 }, other;
	const struct bl_sources *s = &w->sources[p];
	char text[INET6_ADDRSTRLEN];
	unsigned int k;

	for (k = 0; k < c->nip; k++) {
		struct bl_ip ip = ip_key(c->ip[k]);
		int rc;

		if (bl_source_ip_known(s, ip.hi, ip.lo))
			continue;
		if (!bpf_map_lookup_elem(w->owners_fd, &ip, &other))
			return bl_fail(err, EEXIST,
				       "port %s: the IP address %s belongs to port %s; an address "
				       "has one port",
				       c->ifname, bl_ip_text(c->ip[k], text),
				       other.port < BL_SW_PORTS_MAX ? w->ports[other.port].name
								    : "?");
		if (check)
			continue;
		rc = bpf_map_update_elem(w->owners_fd, &ip, &mine, BPF_NOEXIST);
		if (rc)
			return bl_fail(err, errno, "cannot write the map %s: %s", BL_MAP_SW_OWNERS,
				       strerror(errno));
		m->ip[m->n++] = ip;
	}
	return 0;
}

/*
 * Appends to the list of port @p. Programs read it at the same time: an entry comes before the
 * count, as where they append themselves (bl_source_learn_ip()). A reader on another CPU that sees
 * the count first compares with zeros, and drops one frame from an address that is new.
 */
static void append_more(struct bl_sources *s, const struct bl_port_cfg *c)
{
	unsigned int k;

	for (k = 0; k < c->nmac; k++) {
		uint64_t mac = bl_mac48(c->mac[k]);

		if (bl_source_mac_known(s, mac) || s->nmac >= BL_SOURCE_MACS)
			continue;
		BL_WRITE_ONCE(s->mac[s->nmac], mac);
		__atomic_store_n(&s->nmac, (uint16_t)(s->nmac + 1), __ATOMIC_RELEASE);
	}
	for (k = 0; k < c->nip; k++) {
		struct bl_ip ip = ip_key(c->ip[k]);

		if (bl_source_ip_known(s, ip.hi, ip.lo) || s->nip >= BL_SOURCE_IPS)
			continue;
		BL_WRITE_ONCE(s->ip[s->nip].hi, ip.hi);
		BL_WRITE_ONCE(s->ip[s->nip].lo, ip.lo);
		__atomic_store_n(&s->nip, (uint16_t)(s->nip + 1), __ATOMIC_RELEASE);
	}
}

int bl_sources_more(struct bl_node *n, const struct bl_node_cfg *now, bool check,
		    struct bl_err *err)
{
	struct bl_source_watch *w = n->sources;
	struct more *m = w ? calloc(1, sizeof(*m)) : NULL;
	unsigned int j;
	int rc = 0, p;

	if (!w)
		return 0;
	if (!m)
		return bl_fail(err, ENOMEM, "out of memory");
	for (j = 0; j < now->ports_count && !rc; j++) {
		p = bl_port_by_name(w->ports, now->ports[j].ifname);
		if (p >= 0 && w->sources[p].mode == BL_SOURCE_LIST)
			rc = own_more(w, &now->ports[j], (uint32_t)p, check, m, err);
	}
	for (j = 0; j < m->n && rc; j++)
		bpf_map_delete_elem(w->owners_fd, &m->ip[j]);
	free(m);
	for (j = 0; j < now->ports_count && !rc && !check; j++) {
		p = bl_port_by_name(w->ports, now->ports[j].ifname);
		if (p >= 0 && w->sources[p].mode == BL_SOURCE_LIST)
			append_more(&w->sources[p], &now->ports[j]);
	}
	return rc;
}

void bl_sources_close(struct bl_node *n)
{
	struct bl_source_watch *w = n->sources;

	if (!w)
		return;
	sd_event_source_disable_unref(w->timer);
	if (w->sources)
		munmap(w->sources, BL_SW_PORTS_MAX * sizeof(struct bl_sources));
	if (w->ports)
		munmap(w->ports, BL_SW_PORTS_MAX * sizeof(struct bl_sw_port));
	if (w->regs_fd >= 0)
		close(w->regs_fd);
	if (w->owners_fd >= 0)
		close(w->owners_fd);
	free(w);
	n->sources = NULL;
}
