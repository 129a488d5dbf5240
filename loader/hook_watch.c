// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See hook_watch.h.
 *
 * The kernel protects a program that a bpf_link holds from `ip link set DEV xdp off`, but anybody
 * with the privilege can detach the link (`bpftool link detach`) or remove its pin, and a filter of
 * clsact goes with its qdisc. No message of netlink tells of all of these, so the hooks are looked
 * at once per second.
 *
 * What is found, and what is done:
 *
 * 	barline's program		nothing
 * 	no program			it is attached again, five times at once and then once per
 * 					minute, so that two tools that disagree do not fight at the
 * 					speed of their loops
 * 	somebody else's program		said, and left alone
 * 	a dispatcher of libxdp without	joined again, with the same limit. A dispatcher that
 * 	barline, or with an empty	others have built anew with barline in it is as good as
 * 	entry (`xdp: dispatcher`)	the one before
 * 	a tcx program before ours	said: it decides which frames ours gets to see
 * 	a tcx program behind ours	said where a filter picks the transmit queue, since only
 * 					TCX_NEXT leads to it
 *
 * What is promised meanwhile: frames that arrive past the XDP program are not stored, and neither
 * are the beacons behind them, so that no barrier rises over what is missing. Frames that leave
 * past a host's egress program promise nothing (bl_unpromised()), so the host's barrier stands
 * still for its neighbour until the program is back, or the host is excluded.
 */
#include "loader/hook_watch.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "base/event.h"
#include "base/time.h"
#include "core/quota_core.h"
#include "loader/load/attach.h"
#include "loader/load/entry.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/load/progs.h"
#include "loader/node_priv.h"
#include "maps/hook_watch_abi.h"

#define REPAIR_NS    60000000000ULL /* one repair per so much in the long run */
#define REPAIR_BURST 4              /* repairs beyond the first one that may come at once */

/** struct found - what a look at a hook has found. */
struct found {
	enum bl_hook_state state;
	uint32_t other_id;
};

/** struct place - an interface and barline's programs on it. */
struct place {
	struct bl_attached *a;
	uint32_t key;            /* in the map */
	enum bl_xdp_mode mode;   /* of its XDP program */
	int prog[BL_HOOK_SIDES]; /* -1: none belongs there */
	const char *xdp_kind;    /* first part of the name of its pin */
	bool picks_queue;        /* a filter behind its egress program picks the queue */
};

static const char *side_name(enum bl_hook_side s)
{
	static const char *const names[] = {
		[BL_HOOK_XDP] = "XDP", [BL_HOOK_EGRESS] = "egress", [BL_HOOK_INGRESS] = "ingress"
	};

	return names[s];
}

/* ---- looking ---- */

static struct found look_xdp(const struct bl_node *n, const struct place *p, uint32_t own)
{
	bool in_dispatcher = p->a->dispatcher && !strcmp(p->xdp_kind, "xdp");
	uint32_t id = 0;
	int flags;

	if (!bl_link_prog(n->dir, p->xdp_kind, &p->a->iface, &id) && (id || !in_dispatcher))
		return (struct found){ id == own ? BL_HOOK_OURS : BL_HOOK_OTHERS, id };
	id = bl_xdp_present(p->a->iface.ifindex, NULL, 0, &flags);
	/* A dispatcher of others can be joined: barline's place in it is empty. */
	if (in_dispatcher && bl_is_dispatcher(p->a->iface.ifindex, id))
		id = 0;
	return (struct found){ id ? BL_HOOK_OTHERS : BL_HOOK_EMPTY, id };
}

static struct found look_tc(const struct bl_node *n, const struct place *p, enum bl_hook_side s,
			    uint32_t own)
{
	bool ingress = s == BL_HOOK_INGRESS;
	uint32_t id = 0, first, behind;

	if (!bl_link_prog(n->dir, side_name(s), &p->a->iface, &id)) {
		if (id != own)
			return (struct found){ BL_HOOK_OTHERS, id };
		bl_tcx_around(p->a->iface.ifindex, ingress, own, &first, &behind);
		if (first && first != own)
			return (struct found){ BL_HOOK_BEHIND, first };
		if (behind && !ingress && p->picks_queue)
			return (struct found){ BL_HOOK_FOLLOWED, behind };
		return (struct found){ BL_HOOK_OURS, 0 };
	}
	id = bl_clsact_prog(&p->a->iface, ingress);
	if (!id)
		return (struct found){ BL_HOOK_EMPTY, 0 };
	return (struct found){ id == own ? BL_HOOK_OURS : BL_HOOK_OTHERS, id };
}

/* ---- acting ---- */

static int attach(struct bl_node *n, const struct place *p, enum bl_hook_side s, struct bl_err *err)
{
	return s == BL_HOOK_XDP
		       ? bl_attach_xdp(p->a, n->dir, p->xdp_kind, p->prog[s], p->mode, false, err)
		       : bl_attach_tc(p->a, n->dir, s == BL_HOOK_INGRESS, p->prog[s], err);
}

/* Attaches the program again if the quota allows that. */
static void repair(struct bl_node *n, const struct place *p, enum bl_hook_side s,
		   struct bl_hook_seen *h, bool new)
{
	const struct bl_attached *a = p->a;
	uint64_t now = bl_mono_ns();
	struct bl_err why;

	if (!bl_quota_take(&h->paid_ns, now, REPAIR_NS, REPAIR_BURST * REPAIR_NS)) {
		if (new)
			bl_event(BL_EVENT(HOOK_LOST, ERR, n->meta.name, .iface = a->iface.name,
					  .reason = "removed"),
				 "%s: the %s program of %s is removed again and again (%llu times "
				 "so "
				 "far); barline attaches it once per minute from now on, and "
				 "nothing "
				 "ordered passes there meanwhile; find out what removes it",
				 n->meta.name, side_name(s), a->iface.name,
				 (unsigned long long)h->removed);
		return;
	}
	if (attach(n, p, s, &why)) {
		if (new)
			bl_event(BL_EVENT(HOOK_LOST, ERR, n->meta.name, .iface = a->iface.name,
					  .reason = "removed"),
				 "%s: somebody has removed the %s program of %s, and it cannot be "
				 "attached again: %s",
				 n->meta.name, side_name(s), a->iface.name, why.text);
		return;
	}
	h->repaired++;
	h->state = BL_HOOK_OURS;
	h->since_ns = now;
	bl_event(BL_EVENT(HOOK_BACK, WARN, n->meta.name, .iface = a->iface.name),
		 "%s: somebody has removed the %s program of %s; barline has attached it again",
		 n->meta.name, side_name(s), a->iface.name);
}

static void say(const struct bl_node *n, const struct bl_attached *a, enum bl_hook_side s,
		const struct bl_hook_seen *h, enum bl_hook_state before)
{
	const char *node = n->meta.name, *name = a->iface.name;

	if (h->state == BL_HOOK_OTHERS)
		bl_event(BL_EVENT(HOOK_LOST, ERR, node, .iface = name, .reason = "replaced"),
			 "%s: another program (id %u) is in the place of barline's %s program on "
			 "%s, and barline does not replace it: nothing ordered passes there; "
			 "detach "
			 "it, and barline attaches its own again",
			 node, h->other_id, side_name(s), name);
	else if (h->state == BL_HOOK_BEHIND)
		bl_log(BL_LOG_WARN,
		       "%s: another program (id %u) runs before barline's at the %s of %s; unless "
		       "it returns TCX_NEXT, barline's does not see the frame; attach it behind "
		       "(`bpftool net attach` does)",
		       node, h->other_id, side_name(s), name);
	else if (h->state == BL_HOOK_FOLLOWED)
		bl_log(BL_LOG_WARN,
		       "%s: another program (id %u) runs behind barline's at the egress of %s; "
		       "unless it returns TCX_NEXT, the filter that picks the transmit queue is "
		       "not asked, and messages may be late",
		       node, h->other_id, name);
	else if (h->state == BL_HOOK_OURS && before != BL_HOOK_UNKNOWN)
		bl_event(BL_EVENT(HOOK_BACK, INFO, node, .iface = name),
			 "%s: the %s program of %s is in its place again", node, side_name(s),
			 name);
}

static void check_side(struct bl_node *n, const struct place *p, enum bl_hook_side s,
		       struct bl_hook_seen *h)
{
	uint32_t own = p->prog[s] < 0 ? 0 : bl_prog_id(p->prog[s]);
	struct found f = {};
	enum bl_hook_state before = h->state;
	bool new;

	if (!own)
		return;
	f = s == BL_HOOK_XDP ? look_xdp(n, p, own) : look_tc(n, p, s, own);
	if (f.state == BL_HOOK_OURS)
		f.other_id = 0;
	new = f.state != before || f.other_id != h->other_id;
	if (new) {
		/* One that was missing already is not removed once more by what takes its place. */
		h->removed += (f.state == BL_HOOK_EMPTY || f.state == BL_HOOK_OTHERS) &&
			      before != BL_HOOK_EMPTY && before != BL_HOOK_OTHERS;
		h->state = f.state;
		h->other_id = f.other_id;
		h->since_ns = bl_mono_ns();
		say(n, p->a, s, h, before);
	}
	if (f.state == BL_HOOK_EMPTY)
		repair(n, p, s, h, new);
}

/* ---- the record ---- */

static void load(const struct bl_node *n, uint32_t key, int ifindex, struct bl_hook_watch *w)
{
	if (!bpf_map_lookup_elem(n->hook_watch_fd, &key, w) && w->magic == BL_HOOK_WATCH_MAGIC &&
	    w->version == BL_HOOK_WATCH_VERSION && w->size == sizeof(*w) &&
	    w->ifindex == (uint32_t)ifindex)
		return;
	memset(w, 0, sizeof(*w));
	w->magic = BL_HOOK_WATCH_MAGIC;
	w->version = BL_HOOK_WATCH_VERSION;
	w->size = sizeof(*w);
	w->ifindex = (uint32_t)ifindex;
}

static void check_place(struct bl_node *n, const struct place *p)
{
	struct bl_hook_watch w, old;
	char name[IFNAMSIZ];

	/* An interface that is gone or renamed is the business of link_watch.c first. */
	if (p->a->gone || !if_indextoname((unsigned int)p->a->iface.ifindex, name) ||
	    strcmp(name, p->a->iface.name))
		return;
	load(n, p->key, p->a->iface.ifindex, &w);
	old = w;
	/* The egress program comes first, as when the node starts. */
	check_side(n, p, BL_HOOK_EGRESS, &w.side[BL_HOOK_EGRESS]);
	check_side(n, p, BL_HOOK_XDP, &w.side[BL_HOOK_XDP]);
	check_side(n, p, BL_HOOK_INGRESS, &w.side[BL_HOOK_INGRESS]);
	if (memcmp(&w, &old, sizeof(w)))
		bpf_map_update_elem(n->hook_watch_fd, &p->key, &w, BPF_ANY);
}

/* bl0 and bl0d, which are not among the node's interfaces. */
static void check_bl0(struct bl_node *n)
{
	const struct bl_admission_cfg *c = &n->cfg.admission;
	struct bl_attached bl0 = { .port = -1, .home_cpu = -1 }, bl0d = bl0;

	if (!bl_iface_get(&bl0.iface, c->bl0, NULL))
		check_place(n, &(struct place){ .a = &bl0,
						.key = BL_HOOK_BL0,
						.xdp_kind = "pass",
						.prog = { n->bl0_prog[BL_BL0_PASS],
							  n->bl0_prog[BL_BL0_HINT],
							  n->bl0_prog[BL_BL0_LIFT] } });
	if (!bl_iface_get(&bl0d.iface, c->bl0d, NULL))
		check_place(n, &(struct place){ .a = &bl0d,
						.key = BL_HOOK_BL0D,
						.xdp_kind = "hold",
						.prog = { n->bl0_prog[BL_BL0_HOLD], -1, -1 } });
}

void bl_hook_watch_check(struct bl_node *n, bool picks_queue)
{
	unsigned int k;

	/* A node whose directory is gone was detached by force. */
	if (n->hook_watch_fd < 0 || access(n->dir, F_OK))
		return;
	for (k = 0; k < n->natt; k++) {
		struct place p = { .a = &n->att[k],
				   .key = bl_node_key(n, &n->att[k]),
				   .mode = n->cfg.mode,
				   .xdp_kind = "xdp",
				   .prog = { n->xdp_prog, n->tc_prog, -1 } };

		if (n->cfg.role == BL_ROLE_HOST && k == BL_HOOK_NIC) {
			p.prog[BL_HOOK_INGRESS] = n->clone_prog;
			p.picks_queue = picks_queue;
		}
		if (n->cfg.role == BL_ROLE_HOST && k == BL_HOOK_LO) {
			p.prog[BL_HOOK_XDP] = -1;
			p.prog[BL_HOOK_EGRESS] = n->local_prog;
		}
		check_place(n, &p);
	}
	if (n->cfg.role == BL_ROLE_HOST && n->bl0_prog[BL_BL0_HOLD] >= 0)
		check_bl0(n);
}

void bl_hook_watch_unused(struct bl_node *n, const struct bl_attached *a, int ifindex)
{
	uint32_t key = bl_node_key(n, a);
	uint64_t now = bl_mono_ns();
	struct bl_hook_watch w;
	int flags, s;

	if (n->hook_watch_fd < 0)
		return;
	load(n, key, ifindex, &w);
	for (s = 0; s < BL_HOOK_SIDES; s++) {
		uint32_t id = s == BL_HOOK_XDP && ifindex ? bl_xdp_present(ifindex, NULL, 0, &flags)
							  : 0;
		enum bl_hook_state is = !ifindex || s == BL_HOOK_INGRESS ? BL_HOOK_UNKNOWN
					: id                             ? BL_HOOK_OTHERS
									 : BL_HOOK_EMPTY;

		if (w.side[s].state == is && w.side[s].other_id == id)
			continue;
		w.side[s].state = is;
		w.side[s].other_id = id;
		w.side[s].since_ns = now;
	}
	/* Also if nothing differs: the record in the map may be of a former interface. */
	bpf_map_update_elem(n->hook_watch_fd, &key, &w, BPF_ANY);
}

int bl_hook_watch_open(struct bl_node *n, struct bl_err *err)
{
	unsigned int entries = n->cfg.role == BL_ROLE_SWITCH ? BL_SW_PORTS_MAX : BL_HOOK_PLACES;
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	char path[BL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, BL_MAP_HOOK_WATCH);
	n->hook_watch_fd = bpf_obj_get(path);
	if (n->hook_watch_fd >= 0 && !bpf_obj_get_info_by_fd(n->hook_watch_fd, &info, &len) &&
	    info.type == BPF_MAP_TYPE_ARRAY && info.key_size == 4 &&
	    info.value_size == sizeof(struct bl_hook_watch) && info.max_entries == entries)
		return 0;
	/* Nothing depends on the counts of a build with another layout. */
	bl_hook_watch_close(n);
	n->hook_watch_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, BL_MAP_HOOK_WATCH, 4,
					  sizeof(struct bl_hook_watch), entries, NULL);
	if (n->hook_watch_fd < 0)
		return bl_fail(err, errno, "cannot make the map %s: %s", BL_MAP_HOOK_WATCH,
			       strerror(errno));
	return bl_pin_over(n->hook_watch_fd, path, err);
}

void bl_hook_watch_close(struct bl_node *n)
{
	if (n->hook_watch_fd >= 0)
		close(n->hook_watch_fd);
	n->hook_watch_fd = -1;
}
