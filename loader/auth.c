// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See auth.h.
 *
 * Programs read a link's keys while this file writes them. A key is written only into a place whose
 * epoch is 0, and the epoch is written after it; an epoch that stays is not touched. So a program
 * finds a complete key or none, and a rotation refuses no frame.
 *
 * Example: a link has epochs 7 and 8, and the new file has 8 and 9. Epoch 8 stays where it is; the
 * place of 7 is cleared, the keys of 9 are written there, then its number.
 *
 * The file says when an epoch begins in Unix time, programs compare bus time. The difference of the
 * two is taken when the file is read.
 */
#include "loader/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/time.h"
#include "core/clock_core.h"
#include "core/core.h"
#include "core/siphash_core.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"
#include "maps/auth_abi.h"
#include "proto/link_keys.h"

#define MAP_BYTES (BL_SW_PORTS_MAX * sizeof(struct bl_auth_link))

static struct bl_auth_link *map_links(int fd, struct bl_err *err)
{
	void *v = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (v != MAP_FAILED)
		return v;
	bl_fail(err, errno, "cannot map %s: %s", BL_MAP_AUTH_LINKS, strerror(errno));
	return NULL;
}

/* Returns bus time at the Unix time @s, by the node's clock; 0 if that is before bus time began. */
static uint64_t bus_at(const struct bl_node *n, uint64_t s)
{
	uint64_t bus = bl_clock_at(n->clock.shared, bl_mono_ns()), unix_ns;
	struct timespec t;
	int64_t at;

	if (!s)
		return 0;
	clock_gettime(CLOCK_REALTIME, &t);
	unix_ns = (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
	at = (int64_t)(bus + (s * 1000000000ULL - unix_ns));
	return at > 0 ? (uint64_t)at : 0;
}

/* The end of a time that begins at @from and lasts @s seconds. */
static uint64_t later(uint64_t from, uint64_t s)
{
	return from + s * 1000000000ULL;
}

static void make_key(struct bl_auth_key *to, const uint8_t *bytes)
{
	memcpy(to->k, bytes, sizeof(to->k));
	to->k[0] = BL_SIP_LE64(to->k[0]);
	to->k[1] = BL_SIP_LE64(to->k[1]);
}

/* Writes a place that no program uses. */
static void write_place(struct bl_auth_epoch *at, const struct bl_auth_epoch *v)
{
	BL_WRITE_ONCE(at->epoch, 0);
	__sync_synchronize();
	at->send = v->send;
	at->receive = v->receive;
	BL_WRITE_ONCE(at->from_ns, v->from_ns);
	BL_WRITE_ONCE(at->until_ns, v->until_ns);
	__sync_synchronize();
	BL_WRITE_ONCE(at->epoch, v->epoch);
}

static bool same_keys(const struct bl_auth_epoch *a, const struct bl_auth_epoch *b)
{
	return a->epoch == b->epoch && !memcmp(&a->send, &b->send, sizeof(a->send)) &&
	       !memcmp(&a->receive, &b->receive, sizeof(a->receive));
}

/* Makes @to what link @l says; see the top of this file. */
static void write_link(const struct bl_node *n, struct bl_auth_link *to, const struct bl_link *l,
		       uint32_t overlap_s)
{
	struct bl_auth_epoch v[BL_LINK_EPOCHS] = {};
	bool kept[BL_LINK_EPOCHS] = {}, used[BL_LINK_EPOCHS] = {};
	unsigned int k, j;

	for (k = 0; k < l->n; k++) {
		v[k].epoch = l->at[k].epoch;
		v[k].from_ns = bus_at(n, l->at[k].from_s);
		v[k].until_ns = k + 1 < l->n ? later(bus_at(n, l->at[k + 1].from_s), overlap_s)
					     : BL_TIME_NONE;
		make_key(&v[k].send, l->at[k].send);
		make_key(&v[k].receive, l->at[k].receive);
	}
	BL_WRITE_ONCE(to->peer, l->peer);
	for (k = 0; k < l->n; k++)
		for (j = 0; j < BL_LINK_EPOCHS && !kept[k]; j++)
			if (!used[j] && same_keys(&to->at[j], &v[k])) {
				BL_WRITE_ONCE(to->at[j].from_ns, v[k].from_ns);
				BL_WRITE_ONCE(to->at[j].until_ns, v[k].until_ns);
				kept[k] = used[j] = true;
			}
	for (k = 0; k < l->n; k++)
		for (j = 0; j < BL_LINK_EPOCHS && !kept[k]; j++)
			if (!used[j]) {
				write_place(&to->at[j], &v[k]);
				kept[k] = used[j] = true;
			}
	for (j = 0; j < BL_LINK_EPOCHS; j++)
		if (!used[j])
			write_place(&to->at[j], &(struct bl_auth_epoch){ 0 });
	explicit_bzero(v, sizeof(v));
}

/* Returns the link of @f at port @p, or NULL. A host's only link need not name its NIC. */
static const struct bl_link *link_at(const struct bl_node *n, const struct bl_link_file *f,
				     const struct bl_auth_port *p)
{
	unsigned int k;

	for (k = 0; k < f->n; k++)
		if (!strcmp(f->link[k].port, p->ifname) ||
		    (!*f->link[k].port && n->cfg.role == BL_ROLE_HOST))
			return &f->link[k];
	return NULL;
}

static int check_file(const struct bl_node *n, const struct bl_link_file *f,
		      const struct bl_auth_port *ports, unsigned int nports, struct bl_err *err)
{
	const char *path = n->cfg.auth.keys;
	unsigned int k, j;

	if (f->node != n->meta.node_id)
		return bl_fail(err, EINVAL,
			       "%s has the keys of node %u, and this is node %u; set node_id, or "
			       "issue keys for this node",
			       path, f->node, n->meta.node_id);
	for (k = 0; k < nports; k++)
		if (ports[k].how != BL_AUTH_EXEMPT && !link_at(n, f, &ports[k]))
			return bl_fail(err, EINVAL,
				       "port %s has no keys in %s; issue them (`barline auth "
				       "issue`), or exempt the port by auth: off",
				       ports[k].ifname, path);
	for (j = 0; j < f->n; j++) {
		for (k = 0; k < nports && link_at(n, f, &ports[k]) != &f->link[j]; k++)
			;
		if (k == nports)
			return bl_fail(err, EINVAL,
				       "%s has keys of port \"%s\", which is no port of this node",
				       path, f->link[j].port);
	}
	return 0;
}

static int load_keys(struct bl_node *n, const struct bl_auth_port *ports, unsigned int nports,
		     bool fresh, struct bl_err *err)
{
	struct bl_auth_link *links;
	struct bl_link_file *f;
	unsigned int k;
	int rc;

	f = calloc(1, sizeof(*f));
	if (!f)
		return bl_fail(err, ENOMEM, "out of memory");
	rc = bl_link_file_load(f, n->cfg.auth.keys, err);
	if (!rc)
		rc = check_file(n, f, ports, nports, err);
	links = rc ? NULL : map_links(n->auth_fd, err);
	if (!rc && !links)
		rc = -EIO;
	if (!rc && fresh)
		memset(links, 0, MAP_BYTES);
	for (k = 0; k < nports && !rc; k++) {
		const struct bl_link *l = link_at(n, f, &ports[k]);

		BL_WRITE_ONCE(links[ports[k].port].how, ports[k].how);
		if (l)
			write_link(n, &links[ports[k].port], l, f->overlap_s);
	}
	if (links)
		munmap(links, MAP_BYTES);
	explicit_bzero(f, sizeof(*f));
	free(f);
	return rc;
}

int bl_auth_fill(struct bl_node *n, struct bpf_object *obj, const struct bl_auth_port *ports,
		 unsigned int nports, struct bl_err *err)
{
	struct bpf_map *map;
	int rc;

	if (n->cfg.auth.mode == BL_AUTH_OFF)
		return 0;
	rc = bl_map_find(obj, BL_MAP_AUTH_LINKS, sizeof(struct bl_auth_link), &map, err);
	if (rc)
		return rc;
	n->auth_fd = fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 3);
	if (n->auth_fd < 0)
		return bl_fail(err, errno, "cannot keep the map %s: %s", BL_MAP_AUTH_LINKS,
			       strerror(errno));
	return load_keys(n, ports, nports, n->fresh, err);
}

int bl_auth_forget(struct bl_node *n, struct bpf_object *obj, struct bl_err *err)
{
	struct bl_auth_link none = {};
	struct bpf_map *map;
	uint32_t k;
	int rc = 0;

	if (n->cfg.auth.mode != BL_AUTH_OFF || n->fresh)
		return 0;
	rc = bl_map_find(obj, BL_MAP_AUTH_LINKS, sizeof(none), &map, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++)
		rc = bl_map_set(bpf_map__fd(map), k, &none, BL_MAP_AUTH_LINKS, err);
	return rc;
}

int bl_auth_reload(struct bl_node *n, struct bl_err *err)
{
	struct bl_auth_port ports[BL_SW_PORTS_MAX];
	struct bl_auth_link link;
	unsigned int k, nports = 0;

	if (n->auth_fd < 0)
		return bl_fail(err, ENOENT, "%s has no authentication of links", n->meta.name);
	for (k = 0; k < n->natt && nports < BL_SW_PORTS_MAX; k++) {
		uint32_t port = n->att[k].port < 0 ? 0 : (uint32_t)n->att[k].port;

		if (n->cfg.role == BL_ROLE_HOST && k)
			break; /* lo */
		if (bpf_map_lookup_elem(n->auth_fd, &port, &link))
			return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", port,
				       BL_MAP_AUTH_LINKS, strerror(errno));
		ports[nports++] = (struct bl_auth_port){ .ifname = n->att[k].iface.name,
							 .port = port,
							 .how = (enum bl_auth_how)link.how };
	}
	explicit_bzero(&link, sizeof(link));
	return load_keys(n, ports, nports, false, err);
}

void bl_auth_close(struct bl_node *n)
{
	if (n->auth_fd >= 0)
		close(n->auth_fd);
	n->auth_fd = -1;
}
