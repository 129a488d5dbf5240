// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attaching programs to interfaces by pinned bpf_links. If there is a link, its program is swapped
 * by bpf_link_update(), which loses no frame; a link is only created where there is none. Without
 * tcx (kernels before 6.6) egress programs are clsact filters, replaced in one netlink request.
 *
 * Pins are called links/KIND-IFNAME, with ':' for '.': bpffs does not accept '.', and interface
 * names cannot contain ':'. Kinds: xdp (a port, or the NIC of a host), hold and pass (XDP on the
 * two ends of bl0), egress and ingress (tc). In a dispatcher of libxdp, xdp-IFNAME is an array of
 * programs and no link (dispatcher.c).
 */
#include "loader/load/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>

#include "base/bpffs.h"
#include "base/iface.h"
#include "base/log.h"
#include "base/nl_qdisc.h"
#include "loader/load/dispatcher.h"
#include "loader/load/entry.h"
#include "loader/load/pin.h"
#include "maps/wire_abi.h"

/* BPF_TCX_INGRESS and BPF_TCX_EGRESS, which the headers of Debian 12 lack. */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

bool bl_no_tcx;

static void link_path(char *buf, size_t size, const char *dir, const char *kind, const char *ifname)
{
	int n = snprintf(buf, size, "%s/links/%s-%s", dir, kind, ifname);

	bl_bpffs_name(buf + n - (int)strlen(ifname));
}

void bl_links_rename(const char *dir, const char *from, const char *to)
{
	static const char *const kinds[] = { "xdp", "egress", "ingress", "hold", "pass" };
	char old[BL_PATH_MAX], now[BL_PATH_MAX];
	unsigned int k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		link_path(old, sizeof(old), dir, kinds[k], from);
		link_path(now, sizeof(now), dir, kinds[k], to);
		if (rename(old, now) && errno != ENOENT)
			bl_log(BL_LOG_WARN, "cannot rename the pin %s: %s", old, strerror(errno));
	}
}

static uint32_t link_ifindex(int link_fd)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);

	/* A tcx link has its ifindex in the same place. */
	return bpf_obj_get_info_by_fd(link_fd, &info, &len) ? 0 : info.xdp.ifindex;
}

static int xdp_mode_now(int ifindex, enum bl_xdp_mode *mode)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int rc = bpf_xdp_query(ifindex, 0, &q);

	if (rc)
		return rc;
	if (q.attach_mode == XDP_ATTACHED_NONE)
		return -ENOENT;
	*mode = q.attach_mode == XDP_ATTACHED_SKB ? BL_XDP_GENERIC : BL_XDP_NATIVE;
	return 0;
}

int bl_link_prog(const char *dir, const char *kind, const struct bl_iface *i, uint32_t *id)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);
	char path[BL_PATH_MAX];
	int link, rc;

	link_path(path, sizeof(path), dir, kind, i->name);
	link = bpf_obj_get(path);
	if (link < 0)
		return -ENOENT;
	if (bl_entry_is(link)) {
		rc = bl_entry_prog(link, i->ifindex, id);
		close(link);
		return rc;
	}
	/* A tcx link has its ifindex in the same place; a link that was detached has 0 there. */
	rc = bpf_obj_get_info_by_fd(link, &info, &len) || info.xdp.ifindex != (uint32_t)i->ifindex
		     ? -ENOENT
		     : 0;
	close(link);
	if (!rc)
		*id = info.prog_id;
	return rc;
}

void bl_tcx_around(int ifindex, bool ingress, uint32_t own, uint32_t *first, uint32_t *behind)
{
	uint32_t ids[64] = {};
	LIBBPF_OPTS(bpf_prog_query_opts, q, .prog_ids = ids, .prog_cnt = 64);
	unsigned int k;

	*first = *behind = 0;
	/* With more programs than fit the kernel fills the array and returns ENOSPC. */
	if (bpf_prog_query_opts(ifindex, (enum bpf_attach_type)(ingress ? TCX_INGRESS : TCX_EGRESS),
				&q) &&
	    errno != ENOSPC)
		return;
	*first = ids[0];
	for (k = 0; k < 63; k++)
		if (ids[k] && ids[k] == own)
			*behind = ids[k + 1];
}

uint32_t bl_clsact_prog(const struct bl_iface *i, bool ingress)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = i->ifindex,
		    .attach_point = ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, q, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY);

	return bpf_tc_query(&hook, &q) ? 0 : q.prog_id;
}

bool bl_xdp_is_own(const char *dir, const struct bl_iface *i)
{
	uint32_t id;

	return !bl_link_prog(dir, "xdp", i, &id);
}

static int xdp_create(const struct bl_iface *i, int prog_fd, enum bl_xdp_mode mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, o,
		    .flags = mode == BL_XDP_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);

	return bpf_link_create(prog_fd, i->ifindex, BPF_XDP, &o);
}

static int xdp_refused_error(const struct bl_iface *i, enum bl_xdp_mode mode, int e,
			     struct bl_err *err)
{
	if (mode == BL_XDP_NATIVE && i->mtu > BL_XDP_MTU_MAX &&
	    (e == EOPNOTSUPP || e == EINVAL || e == ERANGE || e == ENOTSUP))
		return bl_fail(err, e,
			       "%s refuses native XDP at its MTU of %u (%s): its driver lacks XDP "
			       "for frames of several buffers, or has no native XDP; `ip link set "
			       "%s mtu %u` (or less), or pass --generic, which is slower",
			       i->name, i->mtu, strerror(e), i->name, BL_XDP_MTU_MAX);
	if (mode == BL_XDP_NATIVE &&
	    (e == EOPNOTSUPP || e == EINVAL || e == ERANGE || e == ENOTSUP))
		return bl_fail(err, e,
			       "%s refuses native XDP (%s): its driver lacks it, or not at an MTU "
			       "of %u (some drivers end at 1500, those with buffers of 3072 bytes "
			       "at 3046, others at %u: docs/nics.md), or the MTU of a veth's peer "
			       "is too large; lower the MTU, or pass --generic, which is slower",
			       i->name, strerror(e), i->mtu, BL_XDP_MTU_MAX);
	return bl_fail(err, e, "cannot attach the XDP program to %s: %s", i->name, strerror(e));
}

unsigned int bl_xdp_mtu_max(bool frags)
{
	return frags ? BL_XDP_FRAGS_MTU_MAX : BL_XDP_MTU_MAX;
}

int bl_iface_xdp_ok(const struct bl_iface *i, bool frags, struct bl_err *err)
{
	if (i->mtu <= bl_xdp_mtu_max(frags))
		return 0;
	if (!frags && i->mtu <= BL_XDP_FRAGS_MTU_MAX)
		return bl_fail(err, EMSGSIZE,
			       "%s has MTU %u, and the programs were loaded for frames of one "
			       "buffer (an MTU up to %u); restart the daemon, which loads others, "
			       "or `ip link set %s mtu %u`",
			       i->name, i->mtu, BL_XDP_MTU_MAX, i->name, BL_XDP_MTU_MAX);
	return bl_fail(err, EMSGSIZE,
		       "%s has MTU %u, and barline's frames have at most %u; `ip link set %s mtu "
		       "%u` (or less) and start again",
		       i->name, i->mtu, BL_XDP_FRAGS_MTU_MAX, i->name, BL_XDP_FRAGS_MTU_MAX);
}

void bl_xdp_set_frags(struct bpf_program *p)
{
	bpf_program__set_flags(p, bpf_program__flags(p) | BPF_F_XDP_HAS_FRAGS);
}

/*
 * Lets beacons into a NIC that carries barline's program. They have the multicast address of link
 * frames, and the filter of a NIC drops what nobody has asked for, before XDP. (A veth has no
 * filter, and a bridge makes its ports promiscuous.) Like the program, this outlives the daemon.
 */
static int hear_beacons(const struct bl_iface *i, const char *kind, struct bl_err *err)
{
	static const uint8_t beacons[6] = BL_BEACON_MAC;

	return strcmp(kind, "xdp") ? 0 : bl_iface_hear(i->name, beacons, true, err);
}

/* Joins a dispatcher. What is pinned there is an array, or a link that is dead (node.c checks). */
static int xdp_join(struct bl_attached *a, const char *path, const char *kind, int prog_fd,
		    enum bl_xdp_mode mode, bool replace, struct bl_err *err)
{
	int pin = bpf_obj_get(path), rc;

	if (pin >= 0 && !bl_entry_is(pin))
		unlink(path);
	if (pin >= 0)
		close(pin);
	rc = bl_dispatcher_join(&a->iface, path, prog_fd, mode, replace, err);
	a->mode = mode;
	return rc ? rc : hear_beacons(&a->iface, kind, err);
}

int bl_attach_xdp(struct bl_attached *a, const char *dir, const char *kind, int prog_fd,
		  enum bl_xdp_mode mode, bool replace, struct bl_err *err)
{
	const struct bl_iface *i = &a->iface;
	enum bl_xdp_mode now;
	char path[BL_PATH_MAX], name[64], off[96];
	int link, rc, flags;
	uint32_t id;

	link_path(path, sizeof(path), dir, kind, i->name);
	if (a->dispatcher && !strcmp(kind, "xdp"))
		return xdp_join(a, path, kind, prog_fd, mode, replace, err);
	link = bpf_obj_get(path);
	if (link >= 0 && bl_entry_is(link)) {
		close(link);
		unlink(path);
		link = -1;
	}
	if (link >= 0) {
		uint32_t at = link_ifindex(link);

		if (at == (uint32_t)i->ifindex && !xdp_mode_now(i->ifindex, &now) && now == mode) {
			rc = bpf_link_update(link, prog_fd, NULL) ? -errno : 0;
			close(link);
			if (rc)
				return bl_fail(err, -rc, "cannot swap the XDP program of %s: %s",
					       i->name, strerror(-rc));
			a->mode = mode;
			return hear_beacons(i, kind, err);
		}
		/*
		 * The link's interface is gone, or it has the other mode, which a link cannot
		 * change.
		 */
		if (at)
			bpf_link_detach(link);
		close(link);
		unlink(path);
	}
	link = xdp_create(i, prog_fd, mode);
	if (link < 0 && (errno == EBUSY || errno == EEXIST)) {
		id = bl_xdp_present(i->ifindex, name, sizeof(name), &flags);
		if (!id)
			return bl_fail(err, EBUSY,
				       "%s, or a device on top of it, carries another XDP program; "
				       "detach it first",
				       i->name);
		if (!replace && bl_is_dispatcher(i->ifindex, id))
			return bl_fail(err, EBUSY,
				       "%s carries another XDP program already: a dispatcher of "
				       "libxdp (id %u); join it with --xdp dispatcher, unload it "
				       "(`xdp-loader unload %s --all`), or pass --replace",
				       i->name, id, i->name);
		if (!replace)
			return bl_fail(err, EBUSY,
				       "%s carries another XDP program already (%s, id %u); detach "
				       "it (`%s`), let it run behind barline's (--chain attached), "
				       "or pass --replace",
				       i->name, *name ? name : "no name", id,
				       bl_xdp_off_text(off, sizeof(off), i, id, flags));
		rc = bl_xdp_displace(i, id, name, flags, err);
		if (rc)
			return rc;
		link = xdp_create(i, prog_fd, mode);
	}
	if (link < 0)
		return xdp_refused_error(i, mode, errno, err);
	rc = bl_pin_over(link, path, err);
	close(link);
	if (rc)
		return rc;
	if (xdp_mode_now(i->ifindex, &a->mode))
		a->mode = mode;
	return hear_beacons(i, kind, err);
}

static const char *tc_name(bool ingress)
{
	return ingress ? "ingress" : "egress";
}

static int clsact_attach(const struct bl_iface *i, bool ingress, int prog_fd, struct bl_err *err)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = i->ifindex,
		    .attach_point = ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY,
		    .prog_fd = prog_fd, .flags = BPF_TC_F_REPLACE);
	struct nl nl;
	int rc;

	rc = nl_open(&nl);
	if (!rc)
		rc = nl_clsact_make(&nl, i->ifindex);
	nl_close(&nl);
	if (rc == -EBUSY)
		return bl_fail(err, EBUSY,
			       "%s has an ingress qdisc, which somebody has set and which is in "
			       "the place of the clsact for barline's %s filter; `tc qdisc del "
			       "dev %s ingress`, give its filters to a clsact, which takes them at "
			       "\"ingress\", and start again",
			       i->name, tc_name(ingress), i->name);
	if (rc)
		return bl_fail(err, -rc,
			       "cannot add the clsact qdisc to %s: %s; the kernel needs "
			       "CONFIG_NET_SCH_INGRESS, or tcx (6.6)",
			       i->name, strerror(-rc));
	rc = bpf_tc_attach(&hook, &o);
	if (rc)
		return bl_fail(err, -rc,
			       "cannot attach the %s filter to %s: %s; the kernel needs "
			       "CONFIG_NET_CLS_BPF",
			       tc_name(ingress), i->name, strerror(-rc));
	return 0;
}

int bl_attach_tc(struct bl_attached *a, const char *dir, bool ingress, int prog_fd,
		 struct bl_err *err)
{
	const struct bl_iface *i = &a->iface;
	char path[BL_PATH_MAX];
	int link, rc;

	link_path(path, sizeof(path), dir, tc_name(ingress), i->name);
	link = bpf_obj_get(path);
	if (link >= 0) {
		if (link_ifindex(link) == (uint32_t)i->ifindex) {
			rc = bpf_link_update(link, prog_fd, NULL) ? -errno : 0;
			close(link);
			if (rc)
				return bl_fail(err, -rc, "cannot swap the %s program of %s: %s",
					       tc_name(ingress), i->name, strerror(-rc));
			a->egress = "tcx";
			return 0;
		}
		bpf_link_detach(link);
		close(link);
		unlink(path);
	}
	if (!bl_no_tcx) {
		link = bpf_link_create(prog_fd, i->ifindex,
				       (enum bpf_attach_type)(ingress ? TCX_INGRESS : TCX_EGRESS),
				       NULL);
		if (link >= 0) {
			rc = bl_pin_over(link, path, err);
			close(link);
			a->egress = "tcx";
			return rc;
		}
		/*
		 * An attach type that the kernel does not know is EINVAL. Any other error has a
		 * reason that clsact would share.
		 */
		if (errno != EINVAL)
			return bl_fail(err, errno, "cannot attach the %s program to %s: %s",
				       tc_name(ingress), i->name, strerror(errno));
	}
	a->egress = "clsact";
	return clsact_attach(i, ingress, prog_fd, err);
}

/* Removes the filter of a node with this role. The qdisc stays, since others may use it. */
static void clsact_detach(const struct bl_iface *i, bool ingress, enum bl_role role)
{
	const char *own = role == BL_ROLE_SWITCH ? "bl_switch_" : "bl_host_";
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = i->ifindex,
		    .attach_point = ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, q, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = BL_TC_HANDLE, .priority = BL_TC_PRIORITY);
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	int fd;

	if (bpf_tc_query(&hook, &q))
		return;
	fd = bpf_prog_get_fd_by_id(q.prog_id);
	/*
	 * Looking at a program by its id takes CAP_SYS_ADMIN. A daemon that has given that up goes
	 * by handle and priority, which it has chosen itself.
	 */
	if (fd < 0) {
		if (errno == EPERM)
			bpf_tc_detach(&hook, &o);
		return;
	}
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strncmp(info.name, own, strlen(own)))
		bpf_tc_detach(&hook, &o);
	close(fd);
}

void bl_detach_ingress(const char *dir, const char *ifname)
{
	char path[BL_PATH_MAX];
	struct bl_iface i;
	int link;

	link_path(path, sizeof(path), dir, tc_name(true), ifname);
	link = bpf_obj_get(path);
	if (link >= 0) {
		bpf_link_detach(link);
		close(link);
		unlink(path);
	} else if (!bl_iface_get(&i, ifname, NULL)) {
		clsact_detach(&i, true, BL_ROLE_HOST);
	}
}

void bl_detach_clsact(const char *ifname, enum bl_role role)
{
	struct bl_iface i;

	if (bl_iface_get(&i, ifname, NULL))
		return;
	clsact_detach(&i, false, role);
	clsact_detach(&i, true, role);
}

struct detach {
	char only[IFNAMSIZ + 8];
	bool xdp; /* true: links of XDP programs; false: the others */
	int rc;
	struct bl_err *err;
};

/*
 * Whether the interface @ifindex of this network namespace is the one that the link is attached to.
 * If that has left, another may have its index.
 */
static bool is_on(int link_fd, uint32_t ifindex)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);

	return ifindex && !bpf_obj_get_info_by_fd(link_fd, &info, &len) &&
	       bl_xdp_present((int)ifindex, NULL, 0, &(int){ 0 }) == info.prog_id;
}

static int detach_link(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	static const uint8_t beacons[6] = BL_BEACON_MAC;
	struct detach *d = ctx;
	const char *ifname = strchr(name, '-');
	char now[IF_NAMESIZE];
	int rc;

	if (d->xdp != !strncmp(name, "xdp-", 4) ||
	    (*d->only && (!ifname || strcmp(ifname + 1, d->only))))
		return 0;
	if (d->xdp && (bl_entry_is(link_fd) || is_on(link_fd, ifindex)) &&
	    if_indextoname(ifindex, now))
		bl_iface_hear(now, beacons, false, NULL);
	if (bl_entry_is(link_fd) && (rc = bl_dispatcher_leave(link_fd, d->err)))
		d->rc = rc;
	else if (ifindex && !bl_entry_is(link_fd) && bpf_link_detach(link_fd))
		d->rc = bl_fail(d->err, errno, "cannot detach %s: %s", path, strerror(errno));
	else if (unlink(path))
		d->rc = bl_fail(d->err, errno, "cannot remove the pin %s: %s", path,
				strerror(errno));
	return 0;
}

int bl_detach_links(const char *dir, const char *only, struct bl_err *err)
{
	struct detach d = { .err = err, .xdp = true };

	snprintf(d.only, sizeof(d.only), "%s", only ? only : "");
	bl_bpffs_name(d.only);
	/* The egress programs go last: they guard the ports that still have an XDP program. */
	bl_links_each(dir, detach_link, &d);
	d.xdp = false;
	bl_links_each(dir, detach_link, &d);
	return d.rc;
}
