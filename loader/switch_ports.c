// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports that come and go while the programs of a switch go on (a reload).
 *
 * A new port is like one whose cable is plugged in: its registers say that nothing was heard, it is
 * in no minimum, and its neighbour joins as any other does. So it lowers no barrier. Its number is
 * one that no port has, not even one that leaves in the same reload. The maps are written first,
 * then the programs are attached (link_watch.c, as to an interface that is made anew).
 *
 * A port that leaves must hold nothing back: nobody is heard there, and C does not wait for it. So
 * no barrier changes, and no other port notices. Otherwise it is refused, because to cut off a host
 * that takes part is a failure, which is for the controllers to settle. Without controllers, C
 * waits for an input that went silent for as long as the port is there, and to remove the port is
 * to say that it does not come back: then C goes on.
 *
 * Example: ports 0, 1 and 2 are swp1, swp2 and swp3, and swp3's host is drained. The new file has
 * swp4 instead of swp3. swp4 becomes port 3 and is attached; then swp3's programs are detached, and
 * entry 2 of the tables is emptied, for a port that a later reload brings.
 *
 * Not here: what takes new maps or programs, as other sets of inputs or a greater tree (switch.c,
 * in a restart).
 */
#include "loader/switch_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/netns.h"
#include "loader/admission/top_switch.h"
#include "loader/link_watch.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/counts.h"
#include "loader/load/maps.h"
#include "loader/nic.h"
#include "loader/node_priv.h"
#include "loader/order/events.h"
#include "loader/order/fence.h"
#include "loader/order/link_check.h"
#include "loader/switch_source.h"
#include "maps/fence_abi.h"
#include "maps/link_abi.h"
#include "maps/top_token_abi.h"

struct bl_port_regs bl_port_regs_new(void)
{
	struct bl_port_regs r = {};
	unsigned int l;

	for (l = 0; l < BL_LANES_MAX; l++)
		r.lane[l].hop = BL_HOP_UNKNOWN;
	return r;
}

int bl_port_forget(const struct bl_port_maps *m, uint32_t port, struct bl_err *err)
{
	int rc = bl_counts_forget(m->counts, port);
	struct bl_carried none = {};
	struct bl_lag no_lag = {};
	struct bl_life life;

	if (rc)
		return bl_fail(err, -rc, "cannot clear the counters of port %u: %s", port,
			       strerror(-rc));
	rc = bl_token_forget(m->token_counts, port, err);
	if (!rc)
		rc = bl_map_set(m->carried, port, &none, BL_MAP_SW_CARRIED, err);
	if (!rc)
		rc = bl_map_set(m->lags, port, &no_lag, BL_MAP_SW_LAGS, err);
	if (!rc)
		rc = bl_link_new(m->links, port, err);
	if (rc)
		return rc;
	/*
	 * The number of deaths is kept and raised: a command for the other interface must find
	 * another number.
	 */
	if (bpf_map_lookup_elem(m->lives, &port, &life))
		return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", port,
			       BL_MAP_SW_LIVES, strerror(errno));
	life.neighbour = life.policy = life.auth = 0;
	life.death++;
	return bl_map_set(m->lives, port, &life, BL_MAP_SW_LIVES, err);
}

int bl_port_release(const char *dir, int port, const char *name, uint32_t ifindex,
		    struct bl_err *err)
{
	int rc;

	bl_nic_unthread(dir, (int)ifindex);
	rc = bl_detach_links(dir, name, err);
	if (rc)
		return rc;
	bl_nic_restore(dir, BL_ROLE_SWITCH, (int)ifindex);
	if (port >= 0)
		bl_chain_forget(dir, (uint32_t)port);
	return 0;
}

/* ---- the plan ---- */

static bool comes(const struct bl_switch_plan *p, uint32_t k)
{
	return p->port[k].ifindex && !p->old_port[k].ifindex;
}

static bool leaves(const struct bl_switch_plan *p, uint32_t k)
{
	return p->old_port[k].ifindex && !p->port[k].ifindex;
}

/* Whether the input at @name holds nothing back. Returns 0 or -EBUSY. */
static int check_quiet(const struct bl_node *n, const char *name, const struct bl_fence_port *in,
		       struct bl_err *err)
{
	if (in->live)
		return bl_fail(err, EBUSY,
			       "port %s is in use: node %u takes part behind it; `barline host "
			       "drain` there first, or take the link down",
			       name, in->neighbour);
	if (in->awaited)
		return bl_fail(err, EBUSY,
			       "port %s may have a neighbour that was not heard yet since the "
			       "switch was started; try again in a few seconds",
			       name);
	if (n->cfg.ctl.n && (in->held || in->in))
		return bl_fail(err, EBUSY,
			       "node %u behind port %s has failed, and the controllers have not "
			       "settled that yet; `barline controller status` says what they wait "
			       "for",
			       in->neighbour, name);
	return 0;
}

static int check_leaving(const struct bl_node *n, const struct bl_switch_plan *p,
			 struct bl_err *err)
{
	struct bl_fence_port in[BL_SW_PORTS_MAX];
	int count = bl_fence_inputs(&n->fence, in, BL_SW_PORTS_MAX), k, rc = 0;

	if (count < 0)
		return bl_fail(err, -count, "cannot read the inputs of the switch: %s",
			       strerror(-count));
	for (k = 0; k < count && !rc; k++)
		if (leaves(p, in[k].port))
			rc = check_quiet(n, p->old_port[in[k].port].name, &in[k], err);
	return rc;
}

/*
 * How many frames of a new port may be on their way to another CPU: as many as of the others, and
 * of all together no more than the CPU map accepts.
 */
static int plan_steering(const struct bl_node *n, struct bl_switch_plan *p, struct bl_err *err)
{
	int fd = bl_node_map_open(n, BL_MAP_SW_STEERING, sizeof(struct bl_steering), err);
	uint32_t most = p->steering_most, k, ports = 0;
	struct bl_steering h;

	if (fd < 0)
		return fd;
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		ports += p->port[k].ifindex != 0;
		if (p->old_port[k].ifindex && !bpf_map_lookup_elem(fd, &k, &h) && h.most &&
		    h.most < most)
			most = h.most;
	}
	close(fd);
	p->steering_most = most;
	if (most * ports <= BL_HOMING_FRAMES)
		return 0;
	return bl_fail(err, ENOSPC,
		       "the switch was started with room for %u ports; a restart of the daemon "
		       "makes more",
		       BL_HOMING_FRAMES / most);
}

static int make_plan(struct bl_node *n, struct bl_switch_plan *p, const struct bl_node_cfg *now,
		     struct bl_err *err)
{
	int rc = bl_switch_plan(n, now, p, err);

	if (!rc)
		rc = plan_steering(n, p, err);
	return rc ? rc : check_leaving(n, p, err);
}

/* Whether the ports of @now are those of @was, by their names. */
static bool same_ports(const struct bl_node_cfg *was, const struct bl_node_cfg *now)
{
	unsigned int k;

	if (was->ports_count != now->ports_count)
		return false;
	for (k = 0; k < was->ports_count; k++)
		if (!bl_cfg_port(now, was->ports[k].ifname))
			return false;
	return true;
}

int bl_ports_plan(struct bl_node *n, const struct bl_node_cfg *now, struct bl_switch_plan **out,
		  struct bl_err *err)
{
	struct bl_switch_plan *p;
	int old, rc;

	*out = NULL;
	if (n->cfg.role != BL_ROLE_SWITCH || same_ports(&n->given, now))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return bl_fail(err, ENOMEM, "out of memory");
	p->live = true;
	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (!rc) {
		rc = make_plan(n, p, now, err);
		bl_netns_leave(old);
	}
	if (rc)
		free(p);
	else
		*out = p;
	return rc;
}

/* ---- new ports ---- */

/* Opens the maps of @m. Returns 0 or -errno; close_maps() in either case. */
static int open_maps(const struct bl_node *n, struct bl_port_maps *m, struct bl_err *err)
{
	const struct {
		const char *name;
		size_t size;
		int *fd;
	} map[] = { { BL_MAP_COUNTS, sizeof(struct bl_sw_counts), &m->counts },
		    { BL_MAP_TOKEN_COUNTS, sizeof(struct bl_token_counts), &m->token_counts },
		    { BL_MAP_SW_CARRIED, sizeof(struct bl_carried), &m->carried },
		    { BL_MAP_SW_LAGS, sizeof(struct bl_lag), &m->lags },
		    { BL_MAP_LINK_SEEN, sizeof(struct bl_link), &m->links },
		    { BL_MAP_SW_LIVES, sizeof(struct bl_life), &m->lives } };
	unsigned int k;
	int rc = 0;

	for (k = 0; k < sizeof(map) / sizeof(map[0]); k++)
		*map[k].fd = -1;
	for (k = 0; k < sizeof(map) / sizeof(map[0]) && !rc; k++) {
		*map[k].fd = bl_node_map_open(n, map[k].name, (uint32_t)map[k].size, err);
		rc = *map[k].fd < 0 ? *map[k].fd : 0;
	}
	return rc;
}

static void close_maps(const struct bl_port_maps *m)
{
	const int fd[] = { m->counts, m->token_counts, m->carried, m->lags, m->links, m->lives };
	unsigned int k;

	for (k = 0; k < sizeof(fd) / sizeof(fd[0]); k++)
		if (fd[k] >= 0)
			close(fd[k]);
}

/* The tables of a port, before any frame comes in there. */
static int fill_port(struct bl_node *n, const struct bl_switch_plan *p, uint32_t k,
		     const struct bl_port_maps *m, struct bl_err *err)
{
	struct bl_port_regs regs = bl_port_regs_new();
	struct bl_steering steering = { .cpu = (uint32_t)p->cpu[k], .most = p->steering_most };
	struct bl_sw_port port = p->port[k];
	struct bl_fence_slot slot;
	int rc = bl_port_forget(m, k, err);

	if (!rc)
		rc = bl_node_map_set(n, BL_MAP_SW_REGS, sizeof(regs), k, &regs, err);
	if (!rc)
		rc = bl_source_port(n, bl_cfg_port(p->cfg, p->port[k].name), k, err);
	if (!rc)
		rc = bl_node_map_set(n, BL_MAP_SW_STEERING, sizeof(steering), k, &steering, err);
	if (!rc && bpf_map_lookup_elem(n->fence.slots, &k, &slot))
		rc = bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
			     BL_MAP_SW_ORDERS, strerror(errno));
	if (rc)
		return rc;
	port.barred = slot.barred;
	return bl_node_map_set(n, BL_MAP_SW_PORTS, sizeof(port), k, &port, err);
}

/* The programs look at so many ports. Other fields stay as they are. */
static int raise_nports(const struct bl_node *n, const struct bl_switch_plan *p, struct bl_err *err)
{
	struct bl_sw_cfg sw;
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(n->fence.cfg, &zero, &sw))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_SW_CFG,
			       strerror(errno));
	if (p->sw.nports <= sw.nports)
		return 0;
	sw.nports = p->sw.nports;
	return bl_map_set(n->fence.cfg, 0, &sw, BL_MAP_SW_CFG, err);
}

static struct bl_attached *attached(struct bl_node *n, uint32_t port)
{
	unsigned int k;

	for (k = 0; k < n->natt; k++)
		if (n->att[k].port == (int)port)
			return &n->att[k];
	return NULL;
}

/*
 * Empties what the tables say of port @k, once nothing is attached there. The device map first, so
 * that nothing is sent there any more.
 */
static void empty_port(struct bl_node *n, uint32_t k, uint32_t ifindex)
{
	int tx = bl_node_map_open(n, BL_MAP_SW_TX, sizeof(struct bpf_devmap_val), NULL);
	struct bl_sw_port none = {};
	struct bl_attached *a = attached(n, k);
	uint32_t zero = 0;
	struct bl_err why;

	if (tx >= 0) {
		bpf_map_delete_elem(tx, &k);
		close(tx);
	}
	bl_node_map_set(n, BL_MAP_SW_IFIDX, sizeof(zero), ifindex, &zero, NULL);
	if (bl_node_map_set(n, BL_MAP_SW_PORTS, sizeof(none), k, &none, &why) ||
	    bl_source_port(n, NULL, k, &why))
		bl_log(BL_LOG_WARN, "%s: port %u: %s", n->meta.name, k, why.text);
	if (a)
		*a = n->att[--n->natt];
}

static int add_port(struct bl_node *n, const struct bl_switch_plan *p, uint32_t k,
		    const struct bl_port_maps *m, struct bl_err *err)
{
	struct bl_attached a = { .port = (int)k,
				 .role = p->port[k].role,
				 .cpu = p->cpu[k],
				 .dispatcher = n->cfg.dispatcher,
				 .home_cpu = -1 };
	struct bl_steering here = { .cpu = (uint32_t)p->cpu[k] };
	int rc = fill_port(n, p, k, m, err);

	if (!rc)
		rc = raise_nports(n, p, err);
	if (!rc)
		rc = bl_link_attach(n, &a, &p->iface[k], err);
	/* as attach_programs() of switch.c */
	if (!rc && a.mode == BL_XDP_GENERIC)
		rc = bl_node_map_set(n, BL_MAP_SW_STEERING, sizeof(here), k, &here, err);
	if (rc) {
		bl_port_release(n->dir, (int)k, p->port[k].name, p->port[k].ifindex, NULL);
		empty_port(n, k, p->port[k].ifindex);
		return rc;
	}
	n->att[n->natt] = a;
	bl_link_pin_napi(n, &n->att[n->natt++]);
	bl_log(BL_LOG_INFO, "%s: %s is port %u of this switch now", n->meta.name, p->port[k].name,
	       k);
	return 0;
}

static void undo_ports(struct bl_node *n, const struct bl_switch_plan *p)
{
	uint32_t k;

	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (!comes(p, k) || !attached(n, k))
			continue;
		bl_port_release(n->dir, (int)k, p->port[k].name, p->port[k].ifindex, NULL);
		empty_port(n, k, p->port[k].ifindex);
		bl_log(BL_LOG_INFO, "%s: %s is no port of this switch, as before", n->meta.name,
		       p->port[k].name);
	}
}

int bl_ports_add(struct bl_node *n, const struct bl_switch_plan *p, struct bl_err *err)
{
	struct bl_port_maps m;
	int rc = open_maps(n, &m, err), old;
	uint32_t k;

	if (!rc)
		rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (!rc) {
		for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++)
			if (comes(p, k))
				rc = add_port(n, p, k, &m, err);
		if (rc)
			undo_ports(n, p);
		bl_netns_leave(old);
	}
	close_maps(&m);
	return rc;
}

void bl_ports_undo(struct bl_node *n, const struct bl_switch_plan *p)
{
	int old;

	if (bl_netns_enter(n->cfg.netns, &old, NULL))
		return;
	undo_ports(n, p);
	bl_netns_leave(old);
}

/* ---- ports that leave ---- */

/* Reads the input at port @k. Returns 0 or -errno. */
static int read_input(const struct bl_node *n, uint32_t k, struct bl_fence_port *out)
{
	struct bl_fence_port in[BL_SW_PORTS_MAX];
	int count = bl_fence_inputs(&n->fence, in, BL_SW_PORTS_MAX), j;

	for (j = 0; j < count; j++)
		if (in[j].port == k) {
			*out = in[j];
			return 0;
		}
	return count < 0 ? count : -ENOENT;
}

static int remove_port(struct bl_node *n, const struct bl_switch_plan *p, uint32_t k,
		       struct bl_err *err)
{
	struct bl_attached *a = attached(n, k);
	const char *name = p->old_port[k].name;
	struct bl_fence_port in;
	struct bl_iface iface;
	struct bl_err why;
	int rc = read_input(n, k, &in);

	/* C goes on without an input that went silent, where no controller decides that. */
	if (!rc && in.held)
		rc = bl_fence_resume(&n->fence, bl_fence_epoch(&n->fence), k, in.death);
	if (rc)
		return bl_fail(err, -rc, "cannot take port %s out of the commit barrier: %s", name,
			       strerror(-rc));
	if (a)
		iface = a->iface;
	rc = bl_port_release(n->dir, (int)k, name, p->old_port[k].ifindex, err);
	if (rc)
		return rc;
	/* Its neighbour may have begun to talk before the programs were detached. */
	rc = read_input(n, k, &in);
	if (a && (rc || in.live || in.in)) {
		if (bl_link_attach(n, a, &iface, &why))
			bl_log(BL_LOG_ERR, "%s: port %s: %s", n->meta.name, name, why.text);
		return bl_fail(err, EBUSY,
			       "port %s is in use: node %u has begun to take part behind it", name,
			       in.neighbour);
	}
	empty_port(n, k, p->old_port[k].ifindex);
	bl_log(BL_LOG_INFO, "%s: %s (port %u) is no longer a port of this switch", n->meta.name,
	       name, k);
	return 0;
}

int bl_ports_remove(struct bl_node *n, const struct bl_switch_plan *p, struct bl_err *err)
{
	int old, rc = bl_netns_enter(n->cfg.netns, &old, err);
	uint32_t k;

	if (rc)
		return rc;
	/* One that has come to life since the plan was made keeps all ports as they are. */
	rc = check_leaving(n, p, err);
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++)
		if (leaves(p, k))
			rc = remove_port(n, p, k, err);
	bl_netns_leave(old);
	bl_event_changed(n);
	return rc;
}
