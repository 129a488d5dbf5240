// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See nic.h.
 *
 * The interfaces are looked at once per second and when one comes up, instead of listening to
 * netlink: changes of ethtool's settings have no message in all kernels, and what is looked at is
 * what counts.
 */
#include "loader/nic.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_sched.h>

#include "base/ethtool.h"
#include "base/event.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/nl_qdisc.h"
#include "base/time.h"
#include "loader/hook_watch.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/lower.h"
#include "loader/load/maps.h"
#include "loader/load/napi.h"
#include "loader/load/nic_left.h"
#include "loader/load/nic_rx.h"
#include "loader/load/nic_tx.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "maps/nic_abi.h"

#define LOOK_US  1000000        /* how often the interfaces are looked at */
#define RETRY_NS 30000000000ULL /* how often one that is no FIFO is tried to be made one */
#define LO       1              /* entry of a host's lo */

/** struct slot - an entry of the map, for the functions that write a record. */
struct slot {
	int fd;
	uint32_t key;
};

static int save(const struct bl_nic *nic, void *ctx)
{
	const struct slot *s = ctx;

	return bpf_map_update_elem(s->fd, &s->key, nic, BPF_ANY) ? -errno : 0;
}

bool bl_nic_any_mac;

/* Writes the permanent address of an interface; 0: it has none. */
static void read_mac(const struct bl_iface *i, uint8_t mac[6])
{
	if (et_perm_mac(i->name, mac) && bl_nic_any_mac)
		memcpy(mac, i->mac, 6);
}

static bool has_mac(const struct bl_nic *nic)
{
	return memcmp(nic->mac, (uint8_t[6]){}, 6) != 0;
}

/* Reads the interface of a record. Returns false if it is not in this network namespace. */
static bool is_here(const struct bl_nic *nic, struct bl_iface *i)
{
	char name[IFNAMSIZ];
	uint8_t mac[6];

	if (!if_indextoname(nic->ifindex, name) || bl_iface_get(i, name, NULL) ||
	    i->ifindex != (int)nic->ifindex)
		return false;
	read_mac(i, mac);
	return !memcmp(mac, nic->mac, 6);
}

static struct slot slot_of(const struct bl_node *n, const struct bl_attached *a)
{
	return (struct slot){ .fd = n->nic_fd, .key = bl_node_key(n, a) };
}

static bool is_lo(const struct bl_node *n, const struct bl_attached *a)
{
	return n->cfg.role == BL_ROLE_HOST && a == &n->att[LO];
}

/* Reads a record. Returns false, and a new record, if it is not sound or of another interface. */
static bool load(const struct slot *s, int ifindex, struct bl_nic *nic)
{
	if (!bpf_map_lookup_elem(s->fd, &s->key, nic) && nic->magic == BL_NIC_MAGIC &&
	    nic->version == BL_NIC_VERSION && nic->size == sizeof(*nic) &&
	    (!ifindex || nic->ifindex == (uint32_t)ifindex) && nic->nrules <= BL_NIC_RULES &&
	    nic->nrss <= BL_NIC_RSS) {
		nic->rest[sizeof(nic->rest) - 1] = 0;
		nic->why[sizeof(nic->why) - 1] = 0;
		nic->name[sizeof(nic->name) - 1] = 0;
		return true;
	}
	memset(nic, 0, sizeof(*nic));
	nic->magic = BL_NIC_MAGIC;
	nic->version = BL_NIC_VERSION;
	nic->size = sizeof(*nic);
	nic->ifindex = (uint32_t)ifindex;
	return false;
}

static int open_map(const char *dir)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	char path[BL_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/maps/%s", dir, BL_MAP_NIC);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != BPF_MAP_TYPE_ARRAY ||
	    info.key_size != 4 || info.value_size != sizeof(struct bl_nic)) {
		close(fd);
		return -EPROTO;
	}
	return fd;
}

int bl_nic_open(struct bl_node *n, struct bl_err *err)
{
	unsigned int entries = n->cfg.role == BL_ROLE_SWITCH ? 2 * BL_SW_PORTS_MAX : BL_NIC_HOST;
	char path[BL_PATH_MAX];
	int rc;

	n->nic_fd = open_map(n->dir);
	if (n->nic_fd >= 0)
		return 0;
	if (n->nic_fd != -ENOENT)
		return bl_fail(err, -n->nic_fd,
			       "the map %s/maps/%s, which says how to put the NIC back, has "
			       "another layout than this build's; detach the node with the tools "
			       "of its build, then start again",
			       n->dir, BL_MAP_NIC);
	n->nic_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, BL_MAP_NIC, 4, sizeof(struct bl_nic),
				   entries, NULL);
	if (n->nic_fd < 0)
		return bl_fail(err, errno, "cannot make the map %s: %s", BL_MAP_NIC,
			       strerror(errno));
	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, BL_MAP_NIC);
	rc = bl_pin_over(n->nic_fd, path, err);
	return rc;
}

/* Whether somebody has set a clsact. It is said to be so if nobody can tell: then it stays. */
static bool has_clsact(int ifindex)
{
	struct nl nl;
	int rc;

	if (nl_open(&nl))
		return true;
	rc = nl_clsact_find(&nl, ifindex);
	nl_close(&nl);
	return rc != -ENOENT && rc != -EBUSY;
}

static struct bl_rx_want wanted(const struct bl_node *n)
{
	return (struct bl_rx_want){ .port_base = n->cfg.port_base,
				    .port_count = n->cfg.port_count,
				    .one_queue = n->cfg.one_queue };
}

/*
 * A new port may get the number of one that leaves, whose record is needed until the programs have
 * been swapped. Moves that record to a free entry. Returns 0 or -errno.
 */
static int make_room(const struct slot *s)
{
	struct slot to = { .fd = s->fd, .key = BL_SW_PORTS_MAX };
	char name[IFNAMSIZ];
	struct bl_nic old, there;

	if (!load(s, 0, &old) || !if_indextoname(old.ifindex, name))
		return 0;
	while (load(&to, 0, &there) && there.ifindex != old.ifindex &&
	       if_indextoname(there.ifindex, name))
		to.key++;
	return save(&old, (void *)&to);
}

int bl_nic_before(struct bl_node *n, const struct bl_attached *a, struct bl_err *err)
{
	const struct bl_rx_want want = wanted(n);
	struct slot s = slot_of(n, a);
	struct bl_nic nic;
	bool known;
	int rc;

	/* A record of before may be of a build that turned fewer offloads off. */
	known = load(&s, a->iface.ifindex, &nic);
	rc = !known && n->cfg.role == BL_ROLE_SWITCH ? make_room(&s) : 0;
	if (rc)
		return bl_fail(err, -rc, "cannot write the map %s: %s", BL_MAP_NIC, strerror(-rc));
	read_mac(&a->iface, nic.mac);
	snprintf(nic.name, sizeof(nic.name), "%s", a->iface.name);
	if (!known && !has_clsact(a->iface.ifindex))
		nic.done |= BL_NIC_CLSACT;
	rc = save(&nic, &s);
	if (rc)
		return bl_fail(err, -rc, "cannot write the map %s: %s", BL_MAP_NIC, strerror(-rc));
	return is_lo(n, a) ? 0 : bl_rx_before(&a->iface, &nic, &want, save, &s, err);
}

/* Tells the egress program how frames are to be marked. */
static int tell_program(struct bl_node *n, const struct bl_tx_how *how, struct bl_err *err)
{
	if (n->host_cfg.classed == how->classed && n->host_cfg.steered == how->steered)
		return 0;
	n->host_cfg.classed = how->classed;
	n->host_cfg.steered = how->steered;
	return bl_map_set(n->host_cfg_fd, 0, &n->host_cfg, BL_MAP_HOST_CFG, err);
}

static void say_made(const struct bl_attached *a, const struct bl_nic *nic)
{
	const char *name = a->iface.name;

	if (nic->done & BL_NIC_BANDS)
		bl_log(BL_LOG_INFO,
		       "%s: ordered frames have a FIFO of their own for %u frames (%s, handle "
		       "%x:)%s, everything else has %s as before; barline puts that back when it "
		       "is detached",
		       name, nic->limit, nic->strict ? "prio" : "ets", BL_NIC_H_BANDS >> 16,
		       nic->done & BL_NIC_MQ ? " in transmit queue 0" : "", nic->rest);
	if (nic->tx == BL_NIC_MADE && nic->done & BL_NIC_QUEUE)
		bl_log(BL_LOG_INFO, "%s: ordered frames leave by transmit queue 0", name);
	if (nic->done & BL_NIC_FLOWS)
		bl_log(BL_LOG_INFO, "%s: %u flow rules bring ordered frames to receive queue 0",
		       name, nic->nrules);
}

/* Records that the interface is no FIFO. Returns 0 if that was accepted, else -EPERM. */
static int accept_broken(struct bl_node *n, const struct bl_attached *a, struct bl_nic *nic,
			 __u8 *side, const struct bl_err *why)
{
	bool new = *side != BL_NIC_BROKEN || strncmp(nic->why, why->text, sizeof(nic->why) - 1);

	*side = BL_NIC_BROKEN;
	snprintf(nic->why, sizeof(nic->why), "%.*s", (int)sizeof(nic->why) - 1, why->text);
	if (!n->cfg.accept_reordering)
		return -EPERM;
	if (new)
		bl_log(BL_LOG_WARN, "%s: reordering is accepted: %s", a->iface.name, why->text);
	return 0;
}

static int make(struct bl_node *n, const struct bl_attached *a, struct bl_nic *nic, struct slot *s,
		struct bl_err *err)
{
	const struct bl_rx_want want = wanted(n);
	struct bl_tx_how how = {};
	int rc;

	rc = bl_rx_make(&a->iface, nic, &want, save, s, err);
	if (rc == -EPERM)
		rc = accept_broken(n, a, nic, &nic->rx, err);
	if (n->cfg.role == BL_ROLE_SWITCH) {
		nic->tx = BL_NIC_APART;
		return rc;
	}
	if (!rc) {
		rc = bl_lower_check(&a->iface, BL_ROLE_HOST, err);
		if (rc)
			nic->seen = BL_TX_UNSEEN;
		else
			rc = bl_tx_make(&a->iface, nic, n->queue_prog, save, s, &how, err);
		if (rc == -EPERM)
			rc = accept_broken(n, a, nic, &nic->tx, err);
	}
	return rc ? rc : tell_program(n, &how, err);
}

int bl_nic_after(struct bl_node *n, const struct bl_attached *a, struct bl_err *err)
{
	struct slot s = slot_of(n, a);
	struct bl_nic nic;
	int rc = 0, rc2;

	load(&s, a->iface.ifindex, &nic);
	if (!is_lo(n, a))
		rc = make(n, a, &nic, &s, err);
	/* With tcx and without a filter nothing needed a clsact. */
	if (a->egress && strcmp(a->egress, "clsact") && !(nic.done & BL_NIC_QUEUE))
		nic.done &= ~(uint32_t)BL_NIC_CLSACT;
	rc2 = save(&nic, &s);
	if (!rc && rc2)
		return bl_fail(err, -rc2, "cannot write the map %s: %s", BL_MAP_NIC,
			       strerror(-rc2));
	if (!rc && !is_lo(n, a))
		say_made(a, &nic);
	return rc;
}

/* Returns whether there was something to undo. */
static bool undo_thread(const struct bl_iface *i, struct bl_nic *nic)
{
	if (!(nic->done & BL_NIC_PINNED))
		return false;
	bl_napi_undo(i, (int)nic->napi_cpu, nic->done & BL_NIC_THREADED);
	nic->done &= ~(uint32_t)(BL_NIC_THREADED | BL_NIC_PINNED);
	return true;
}

int bl_nic_thread(struct bl_node *n, const struct bl_attached *a, struct bl_err *err)
{
	struct slot s = slot_of(n, a);
	struct bl_nic nic;
	int threaded, rc = 0;

	if (!load(&s, a->iface.ifindex, &nic))
		return bl_fail(err, ENOENT, "the map %s has no record of %s", BL_MAP_NIC,
			       a->iface.name);
	if (!n->cfg.thread_napi) {
		if (undo_thread(&a->iface, &nic))
			rc = save(&nic, &s);
		return rc ? bl_fail(err, -rc, "cannot write the map %s: %s", BL_MAP_NIC,
				    strerror(-rc))
			  : 0;
	}
	threaded = bl_napi_is_threaded(&a->iface);
	if (threaded == 0 && !(nic.done & BL_NIC_PINNED))
		nic.done |= BL_NIC_THREADED;
	if (threaded >= 0) {
		nic.done |= BL_NIC_PINNED;
		nic.napi_cpu = (uint32_t)a->cpu;
		rc = save(&nic, &s);
	}
	if (rc)
		return bl_fail(err, -rc, "cannot write the map %s: %s", BL_MAP_NIC, strerror(-rc));
	return bl_napi_thread(&a->iface, a->cpu, n->cfg.realtime, err);
}

void bl_nic_renamed(const struct bl_node *n, const struct bl_attached *a)
{
	struct slot s = slot_of(n, a);
	struct bl_nic nic;

	if (n->nic_fd < 0 || !load(&s, a->iface.ifindex, &nic))
		return;
	snprintf(nic.name, sizeof(nic.name), "%s", a->iface.name);
	save(&nic, &s);
}

/* ---- watching ---- */

/* Whether the transmit side of a host is as it was found or made. */
static bool is_tx_kept(const struct bl_attached *a, const struct bl_nic *nic)
{
	/* That a device sends by another one does not change. */
	if (nic->tx == BL_NIC_BROKEN && bl_lower_check(&a->iface, BL_ROLE_HOST, NULL) == -EPERM)
		return true;
	return bl_tx_kept(&a->iface, nic);
}

static bool is_kept(const struct bl_node *n, const struct bl_attached *a, const struct bl_nic *nic)
{
	return bl_rx_kept(&a->iface, nic) && (n->cfg.role == BL_ROLE_SWITCH || is_tx_kept(a, nic));
}

static void check_iface(struct bl_node *n, const struct bl_attached *a, bool retry)
{
	struct slot s = slot_of(n, a);
	struct bl_nic nic;
	struct bl_err why;
	bool first, cured;
	int rc;

	if (!load(&s, a->iface.ifindex, &nic))
		return;
	cured = nic.tx == BL_NIC_BROKEN || nic.rx == BL_NIC_BROKEN;
	/* What a look does not see may be the cure: a module was loaded, XPS or RSS was set. */
	if (is_kept(n, a, &nic) && !(cured && retry))
		return;
	first = n->cfg.role == BL_ROLE_HOST && nic.tx == BL_NIC_UNKNOWN;
	rc = make(n, a, &nic, &s, &why);
	if (!first && !cured)
		nic.repaired++;
	save(&nic, &s);
	if (rc)
		bl_event(BL_EVENT(QUEUES_BROKEN, ERR, n->meta.name, .iface = a->iface.name,
				  .reason = why.text),
			 "%s: %s is no FIFO for ordered frames any more, and messages may be late: "
			 "%s",
			 n->meta.name, a->iface.name, why.text);
	else if (nic.tx == BL_NIC_BROKEN || nic.rx == BL_NIC_BROKEN)
		return; /* accepted, and in the log */
	else if (cured)
		bl_event(BL_EVENT(QUEUES_MADE, INFO, n->meta.name, .iface = a->iface.name),
			 "%s: %s is a FIFO for ordered frames now", n->meta.name, a->iface.name);
	else if (!first)
		bl_event(BL_EVENT(QUEUES_MADE, WARN, n->meta.name, .iface = a->iface.name),
			 "%s: somebody has changed the queues or offloads of %s; barline has made "
			 "it "
			 "a FIFO again",
			 n->meta.name, a->iface.name);
	else
		say_made(a, &nic);
}

void bl_nic_check(struct bl_node *n)
{
	uint64_t now = bl_mono_ns();
	bool retry = now >= n->nic_retry_ns;
	unsigned int k;

	if (retry)
		n->nic_retry_ns = now + RETRY_NS;
	for (k = 0; k < n->natt && n->nic_fd >= 0; k++)
		if (!is_lo(n, &n->att[k]) && !n->att[k].gone && n->att[k].iface.up)
			check_iface(n, &n->att[k], retry);
}

/* Whether a filter behind the egress program of a host picks the transmit queue. */
static bool picks_queue(const struct bl_node *n)
{
	struct bl_nic nic;

	return n->cfg.role == BL_ROLE_HOST && n->nic_fd >= 0 &&
	       load(&(struct slot){ .fd = n->nic_fd, .key = 0 }, n->att[0].iface.ifindex, &nic) &&
	       nic.done & BL_NIC_QUEUE;
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node *n = ctx;
	int old;

	(void)usec;
	if (!bl_netns_enter(n->cfg.netns, &old, NULL)) {
		/* Programs first: the filter that picks a queue stands behind one of them. */
		bl_hook_watch_check(n, picks_queue(n));
		bl_nic_check(n);
		bl_netns_leave(old);
	}
	sd_event_source_set_time_relative(src, LOOK_US);
	return sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
}

int bl_nic_watch(struct bl_node *n, struct bl_err *err)
{
	int rc = sd_event_add_time_relative(n->srv->ev, &n->nic_src, CLOCK_MONOTONIC, LOOK_US,
					    LOOK_US / 10, on_look, n);

	return rc < 0 ? bl_fail(err, -rc, "cannot watch the NICs of the node: %s", strerror(-rc))
		      : 0;
}

void bl_nic_close(struct bl_node *n)
{
	n->nic_src = sd_event_source_disable_unref(n->nic_src);
	if (n->nic_fd >= 0)
		close(n->nic_fd);
	n->nic_fd = -1;
}

/* ---- putting back ---- */

/** struct node_of - the node whose records are looked at, for functions on one record. */
struct node_of {
	const char *dir;
	enum bl_role role;
	bool dry_run; /* the rest of the struct is for take_back_one() */
	void (*tell)(const char *what, void *ctx);
	void *ctx;
};

static void restore(const struct slot *s, const struct node_of *of, const struct bl_iface *i,
		    struct bl_nic *nic)
{
	bl_chain_give_back(of->dir, nic->ifindex, (uint32_t)i->ifindex);
	/*
	 * A clsact filter has no pin. The record, which is written before the filter is made, is
	 * what names its interface.
	 */
	bl_detach_clsact(i->name, of->role);
	undo_thread(i, nic);
	/* The kernel's mq gives its default discipline only to queues that are in use. */
	bl_rx_undo(i, nic);
	bl_tx_undo(i, nic);
	nic->tx = nic->rx = BL_NIC_UNKNOWN;
	nic->magic = 0;
	bpf_map_update_elem(s->fd, &s->key, nic, BPF_ANY);
}

static void restore_one(const struct slot *s, struct bl_nic *nic, const struct node_of *of)
{
	struct bl_iface i;

	if (is_here(nic, &i))
		restore(s, of, &i, nic);
}

static void unthread_one(const struct slot *s, struct bl_nic *nic, const struct node_of *of)
{
	struct bl_iface i;

	(void)of;
	if (is_here(nic, &i) && undo_thread(&i, nic))
		bpf_map_update_elem(s->fd, &s->key, nic, BPF_ANY);
}

/* Calls @fn for each sound record of the node. @ifindex: 0: any interface. */
static void each_record(const struct node_of *of, int ifindex,
			void (*fn)(const struct slot *s, struct bl_nic *nic,
				   const struct node_of *of))
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	struct slot s = { .fd = open_map(of->dir) };
	struct bl_nic nic;

	if (s.fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(s.fd, &info, &len))
		for (s.key = 0; s.key < info.max_entries; s.key++)
			if (load(&s, ifindex, &nic))
				fn(&s, &nic, of);
	close(s.fd);
}

void bl_nic_unthread(const char *dir, int ifindex)
{
	each_record(&(struct node_of){ .dir = dir }, ifindex, unthread_one);
}

void bl_nic_restore(const char *dir, enum bl_role role, int ifindex)
{
	int fd = open_map(dir);

	/* Without records, nothing tells whether an index is still that of the same interface. */
	if (fd < 0)
		bl_chain_give_back(dir, (uint32_t)ifindex, 0);
	else
		close(fd);
	each_record(&(struct node_of){ .dir = dir, .role = role }, ifindex, restore_one);
}

/* ---- NICs that have left the network namespace ---- */

/* Finds the one interface of this network namespace that has the permanent address @mac. */
static bool find_mac(const uint8_t mac[6], struct bl_iface *found)
{
	struct if_nameindex *v = if_nameindex(), *p;
	unsigned int n = 0;
	struct bl_iface i;
	uint8_t has[6];

	for (p = v; p && p->if_index; p++) {
		if (bl_iface_get(&i, p->if_name, NULL))
			continue;
		read_mac(&i, has);
		if (memcmp(has, mac, 6))
			continue;
		*found = i;
		n++;
	}
	if_freenameindex(v);
	return n == 1;
}

/*
 * Whether nobody else has put @i, which is the NIC of the record, to use: its XDP program is the
 * node's, or there is none.
 */
static bool may_take_back(const char *dir, const struct bl_nic *nic, const struct bl_iface *i)
{
	struct bl_iface pinned = *i;
	uint32_t id;
	int flags;

	memcpy(pinned.name, nic->name, sizeof(pinned.name));
	return !bl_link_prog(dir, "xdp", &pinned, &id) ||
	       !bl_xdp_present(i->ifindex, NULL, 0, &flags);
}

static void take_back_one(const struct slot *s, struct bl_nic *nic, const struct node_of *of)
{
	struct bl_err why;
	struct bl_iface i;
	char what[320];

	if (!has_mac(nic) || !find_mac(nic->mac, &i) || !may_take_back(of->dir, nic, &i))
		return;
	snprintf(what, sizeof(what), "what %s has left on %s", of->dir, i.name);
	if (of->tell)
		of->tell(what, of->ctx);
	if (of->dry_run)
		return;
	undo_thread(&i, nic); /* see bl_nic_unthread() */
	if (bl_detach_links(of->dir, nic->name, &why)) {
		bl_log(BL_LOG_WARN, "%s: %s", i.name, why.text);
		return;
	}
	restore(s, of, &i, nic);
}

void bl_nic_take_back(const char *dir, enum bl_role role, bool dry_run,
		      void (*tell)(const char *what, void *ctx), void *ctx)
{
	const struct node_of of = { dir, role, dry_run, tell, ctx };

	each_record(&of, 0, take_back_one);
}

/* Whether the pin of the NIC's XDP program tells that the NIC does not exist any more. */
static bool does_not_exist(const char *dir, const struct bl_nic *nic)
{
	struct bl_iface i = {};
	uint32_t id;

	memcpy(i.name, nic->name, sizeof(i.name));
	return !bl_link_prog(dir, "xdp", &i, &id); /* index 0 */
}

static void say_left_one(const struct slot *s, struct bl_nic *nic, const struct node_of *of)
{
	struct bl_iface i;
	char text[1024];
	uint32_t id;

	(void)s;
	if (!has_mac(nic) || is_here(nic, &i) || does_not_exist(of->dir, nic))
		return;
	id = bl_chain_back_id(of->dir, nic->ifindex);
	if (id)
		bl_log(BL_LOG_WARN,
		       "%s has left the network namespace of %s; the XDP program with id %u, which "
		       "was attached to it before, is not put back: attach it again",
		       nic->name, of->dir, id);
	if (!bl_nic_undo_text(nic, text, sizeof(text)))
		return;
	bl_log(BL_LOG_WARN,
	       "%s (%02x:%02x:%02x:%02x:%02x:%02x) has left the network namespace of %s, and what "
	       "barline changed on it stays: put it back with%s, under the name that it has now",
	       nic->name, nic->mac[0], nic->mac[1], nic->mac[2], nic->mac[3], nic->mac[4],
	       nic->mac[5], of->dir, text);
}

void bl_nic_say_left(const char *dir)
{
	each_record(&(struct node_of){ .dir = dir }, 0, say_left_one);
}
