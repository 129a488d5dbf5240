// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See chain.h.
 *
 * Pins: "maps/back-PORT" in the node's directory holds a program that is put back on detach;
 * "chain-ROLE-NETNS-IFNAME" beside the node's directory holds one that root has prepared.
 */
#include "loader/load/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>

#include "base/bpffs.h"
#include "base/netns.h"
#include "loader/load/attach.h"
#include "loader/load/pin.h"
#include "maps/hold_abi.h"
#include "maps/switch_abi.h"

static bool is_none(const char *what)
{
	return !*what || !strcmp(what, BL_CHAIN_NONE);
}

/* Reads an id of a program. Returns false if @what is not a number from 1 to 2^32 - 1. */
static bool read_id(const char *what, uint32_t *id)
{
	unsigned long long v;
	char *end;

	if (*what < '0' || *what > '9')
		return false;
	errno = 0;
	v = strtoull(what, &end, 10);
	if (errno || *end || !v || v > UINT32_MAX)
		return false;
	*id = (uint32_t)v;
	return true;
}

int bl_chain_check(const char *what, struct bl_err *err)
{
	uint32_t id;

	if (is_none(what) || !strcmp(what, BL_CHAIN_ATTACHED) || read_id(what, &id) ||
	    (*what == '/' && what[1]))
		return 0;
	return bl_fail(err, EINVAL,
		       "chain \"%s\": the path of a pinned XDP program, the id of a loaded one, "
		       "attached, or none",
		       what);
}

static void back_path(char *buf, size_t size, const char *dir, uint32_t port)
{
	snprintf(buf, size, "%s/maps/back-%u", dir, port);
}

static void prepared_path(char *buf, size_t size, enum bl_role role, const char *ifname)
{
	int n = snprintf(buf, size, "%s/chain-%s-%" PRIu64 "-%s", BL_BPFFS, bl_role_name(role),
			 bl_netns_ino(), ifname);

	bl_bpffs_name(buf + n - (int)strlen(ifname));
}

static int open_by_id(const char *what, uint32_t id, struct bl_err *err)
{
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd >= 0)
		return fd;
	return bl_fail(err, errno,
		       errno == ENOENT ? "chain %s: no program with id %u is loaded; `bpftool "
					 "prog` lists "
					 "them"
				       : "chain %s: cannot open the program with id %u: %m",
		       what, id);
}

/*
 * Opens the program that @what names. @iface: for BL_CHAIN_ATTACHED. Returns a descriptor; 0: there
 * is none; or -errno.
 */
static int open_named(const char *what, const struct bl_iface *iface, struct bl_err *err)
{
	uint32_t id;
	int fd, flags;

	if (read_id(what, &id))
		return open_by_id(what, id, err);
	if (!strcmp(what, BL_CHAIN_ATTACHED)) {
		id = bl_xdp_present(iface->ifindex, NULL, 0, &flags);
		return id ? open_by_id(what, id, err) : 0;
	}
	fd = bpf_obj_get(what);
	if (fd < 0)
		return bl_fail(err, errno, "chain %s: cannot open the pinned program: %s", what,
			       strerror(errno));
	if (bl_bpf_fd_is(fd, "prog"))
		return fd;
	close(fd);
	return bl_fail(err, EINVAL, "chain %s: not a program, but another BPF object", what);
}

int bl_chain_prepare(enum bl_role role, const char *ifname, const char *what, struct bl_err *err)
{
	char path[BL_PATH_MAX];
	struct bl_iface iface;
	int fd, rc;

	prepared_path(path, sizeof(path), role, ifname);
	unlink(path);
	if (is_none(what))
		return 0;
	rc = bl_iface_get(&iface, ifname, err);
	fd = rc ? rc : open_named(what, &iface, err);
	if (fd <= 0)
		return fd;
	rc = bl_pin_over(fd, path, err);
	close(fd);
	return rc;
}

/* Opens what @what means for @c; see open_named(). */
static int open_program(const struct bl_chain_at *c, const char *what, struct bl_err *err)
{
	char path[BL_PATH_MAX];
	int fd;

	if (!geteuid())
		return open_named(what, c->iface, err);
	prepared_path(path, sizeof(path), c->role, c->iface->name);
	fd = bpf_obj_get(path);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT && !strcmp(what, BL_CHAIN_ATTACHED))
		return 0;
	return bl_fail(err, errno,
		       "chain %s: the daemon's user cannot open it; run `barlined --prepare` as "
		       "root first, with the same options (ExecStartPre=+ in a unit)",
		       what);
}

/* ---- why the kernel refuses to enter a program ---- */

/*
 * Returns whether program @fd can be entered beside a program of this kind: with or without frags,
 * with or without the attach type of XDP.
 */
static bool fits(int fd, bool frags, bool typed)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_flags = frags ? BPF_F_XDP_HAS_FRAGS : 0,
		    .expected_attach_type = typed ? BPF_XDP : 0);
	int map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, NULL, 4, 4, 1, NULL), prog;
	struct bpf_insn tail[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	uint32_t zero = 0;
	bool ok;

	if (map < 0)
		return false;
	prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "bl_probe", "GPL", tail,
			     sizeof(tail) / sizeof(tail[0]), &o);
	ok = prog >= 0 && !bpf_map_update_elem(map, &zero, &fd, BPF_ANY);
	if (prog >= 0)
		close(prog);
	close(map);
	return ok;
}

/* Fills @err with the reason why the kernel refused to enter program @fd. Returns -@e. */
static int refused(const struct bl_chain_at *c, const char *what, int fd,
		   const struct bpf_prog_info *p, int e, struct bl_err *err)
{
	bool flag = c->frags == BL_HOOK_FRAGS_FLAG;

	if (e == EBUSY)
		return bl_fail(err, e,
			       "chain %s: functions of %s (id %u) are replaced by other programs, "
			       "as in a dispatcher of libxdp; such a program cannot be tail-called",
			       what, p->name, p->id);
	if (p->ifindex)
		return bl_fail(err, e,
			       "chain %s: %s (id %u) was loaded for one interface only (XDP hints "
			       "or offload); such a program cannot be chained",
			       what, p->name, p->id);
	if (!p->jited_prog_len)
		return bl_fail(err, e,
			       "chain %s: %s (id %u) is interpreted and barline's program is "
			       "compiled; was it loaded before `sysctl net.core.bpf_jit_enable=1`?",
			       what, p->name, p->id);
	if (fits(fd, !flag, true))
		return bl_fail(err, e,
			       flag ? "chain %s: %s (id %u) takes frames of one buffer only, "
				      "and the MTU of %s needs several: load it with "
				      "SEC(\"xdp.frags\"), or `ip link set %s mtu %u`"
				    : "chain %s: %s (id %u) is SEC(\"xdp.frags\"), and at this "
				      "MTU of %s barline's program is not: load it without "
				      "frags, or set the MTU of %s above %u",
			       what, p->name, p->id, c->iface->name, c->iface->name,
			       BL_XDP_MTU_MAX);
	if (fits(fd, flag, false))
		return bl_fail(err, e,
			       "chain %s: %s (id %u) was loaded without the attach type BPF_XDP, "
			       "as by an old loader; load it with libbpf",
			       what, p->name, p->id);
	return bl_fail(err, e, "chain %s: the kernel does not let %s (id %u) be called: %s", what,
		       p->name, p->id, strerror(e));
}

/* ---- entering and leaving ---- */

static int write_hook(const struct bl_chain_at *c, const struct bl_hook *h, struct bl_err *err)
{
	if (bpf_map_update_elem(c->hooks_fd, &c->port, h, BPF_ANY))
		return bl_fail(err, errno, "cannot write entry %u of the map %s: %s", c->port,
			       BL_MAP_HOOKS, strerror(errno));
	return 0;
}

/*
 * Takes the program with the descriptor @fd off the interface, after it was pinned and noted. A
 * program that a bpf_link holds stays, since its holder would be left with a dead link.
 */
static int take_off(const struct bl_chain_at *c, int fd, const struct bpf_prog_info *p, int flags,
		    struct bl_hook *h, struct bl_err *err)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, o, .old_prog_fd = fd);
	char path[BL_PATH_MAX];
	int rc;

	back_path(path, sizeof(path), c->dir, c->port);
	rc = bl_pin_over(fd, path, err);
	if (rc)
		return rc;
	h->back_id = p->id;
	h->back_flags = (uint32_t)flags;
	h->back_ifindex = (uint32_t)c->iface->ifindex;
	rc = write_hook(c, h, err);
	if (rc)
		return rc;
	rc = bpf_xdp_detach(c->iface->ifindex, (uint32_t)flags | XDP_FLAGS_REPLACE, &o);
	if (!rc) {
		bl_log(BL_LOG_INFO,
		       "%s: the XDP program %s (id %u) runs behind barline's from now on, and is "
		       "put back on detach",
		       c->iface->name, p->name, p->id);
		return 0;
	}
	h->back_id = h->back_flags = h->back_ifindex = 0;
	write_hook(c, h, NULL);
	unlink(path);
	return bl_fail(err, -rc,
		       rc == -EBUSY ? "chain attached: a bpf_link of somebody else holds %s (id "
				      "%u) on %s: %s; pin the program, detach the link, and chain "
				      "it by its path"
				    : "chain attached: cannot take %s (id %u) off %s: %s",
		       p->name, p->id, c->iface->name, strerror(-rc));
}

/* Empties the entry of @c. */
static int leave(const struct bl_chain_at *c, struct bl_hook *h, struct bl_err *err)
{
	int rc;

	h->next_id = 0;
	rc = write_hook(c, h, err);
	if (!rc && bpf_map_delete_elem(c->progs_fd, &c->port) && errno != ENOENT)
		rc = bl_fail(err, errno, "cannot empty entry %u of the map %s: %s", c->port,
			     BL_MAP_NEXT_PROGS, strerror(errno));
	return rc;
}

static int enter(const struct bl_chain_at *c, const char *what, int fd, bool take,
		 struct bl_hook *h, struct bl_err *err)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	int flags = 0, rc = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return bl_fail(err, errno, "chain %s: cannot look at the program: %s", what,
			       strerror(errno));
	if (info.type != BPF_PROG_TYPE_XDP)
		return bl_fail(err, EINVAL,
			       "chain %s: %s (id %u) is no XDP program, but of type %u", what,
			       info.name, info.id, info.type);
	if (bpf_map_update_elem(c->progs_fd, &c->port, &fd, BPF_ANY))
		return refused(c, what, fd, &info, errno, err);
	if (take) {
		bl_xdp_present(c->iface->ifindex, NULL, 0, &flags);
		rc = take_off(c, fd, &info, flags, h, err);
		if (rc) {
			leave(c, h, NULL);
			return rc;
		}
	}
	h->next_id = info.id;
	return write_hook(c, h, err);
}

/*
 * A new port may get the number of one that leaves, whose program is put back after the programs
 * have been swapped. Moves what is needed for that to a free entry. The entry is written before
 * the pin is moved: a loader that is killed in between leaves two entries, and one pin for them.
 */
static int make_room(const struct bl_chain_at *c, struct bl_hook *h, struct bl_err *err)
{
	struct bl_chain_at free = *c;
	char from[BL_PATH_MAX], to[BL_PATH_MAX];
	struct bl_hook there;
	int rc;

	if (!h->back_id || h->back_ifindex == (uint32_t)c->iface->ifindex)
		return 0;
	for (free.port = BL_SW_PORTS_MAX; !bpf_map_lookup_elem(c->hooks_fd, &free.port, &there) &&
					  there.back_id && there.back_ifindex != h->back_ifindex;
	     free.port++)
		;
	rc = write_hook(&free, h, err);
	if (rc)
		return rc;
	back_path(from, sizeof(from), c->dir, c->port);
	back_path(to, sizeof(to), c->dir, free.port);
	if (rename(from, to))
		return bl_fail(err, errno, "cannot rename %s to %s: %s", from, to, strerror(errno));
	h->back_id = h->back_flags = h->back_ifindex = 0;
	return write_hook(c, h, err);
}

static int set(const struct bl_chain_at *c, const char *what, struct bl_err *err)
{
	bool attached = !strcmp(what, BL_CHAIN_ATTACHED), take = false;
	char path[BL_PATH_MAX];
	struct bl_hook h;
	int fd, rc;

	if (bpf_map_lookup_elem(c->hooks_fd, &c->port, &h))
		return bl_fail(err, errno, "cannot read entry %u of the map %s: %s", c->port,
			       BL_MAP_HOOKS, strerror(errno));
	rc = make_room(c, &h, err);
	if (rc)
		return rc;
	h.frags = c->frags;
	if (is_none(what))
		return leave(c, &h, err);
	if (attached && h.back_id) {
		back_path(path, sizeof(path), c->dir, c->port);
		fd = bpf_obj_get(path);
		if (fd < 0)
			return bl_fail(err, errno, "cannot open %s: %s", path, strerror(errno));
	} else if (attached && bl_xdp_is_own(c->dir, c->iface)) {
		return leave(c, &h, err); /* it was started on an interface without a program */
	} else {
		take = attached;
		fd = open_program(c, what, err);
		if (fd < 0)
			return fd;
		if (!fd) {
			bl_log(BL_LOG_WARN,
			       "%s: chain attached: no XDP program is attached, so none is chained",
			       c->iface->name);
			return leave(c, &h, err);
		}
	}
	rc = enter(c, what, fd, take, &h, err);
	close(fd);
	return rc;
}

int bl_chain_set(const struct bl_chain_at *c, const char *what, struct bl_err *err)
{
	int rc = set(c, what, err);
	char path[BL_PATH_MAX];

	prepared_path(path, sizeof(path), c->role, c->iface->name);
	unlink(path);
	return rc;
}

/* Opens the hooks of the node in @dir for reading. Returns a descriptor or -errno. */
static int open_hooks(const char *dir)
{
	LIBBPF_OPTS(bpf_obj_get_opts, o, .file_flags = BPF_F_RDONLY);
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	char path[BL_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/maps/%s", dir, BL_MAP_HOOKS);
	fd = bpf_obj_get_opts(path, &o);
	if (fd < 0)
		return -errno;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_MAP_TYPE_ARRAY &&
	    info.key_size == 4 && info.value_size == sizeof(struct bl_hook))
		return fd;
	close(fd);
	return -EPROTO;
}

int bl_hook_read(const char *dir, uint32_t port, struct bl_hook *hook)
{
	int fd = open_hooks(dir), rc;

	if (fd < 0)
		return fd;
	rc = bpf_map_lookup_elem(fd, &port, hook) ? -errno : 0;
	close(fd);
	return rc;
}

/* Reads all hooks. Returns their number; 0 if they cannot be read. */
static uint32_t read_hooks(const char *dir, struct bl_hook hooks[BL_HOOKS_MAX])
{
	int fd = open_hooks(dir), rc;

	if (fd < 0)
		return 0;
	rc = bl_array_read(fd, sizeof(*hooks), BL_HOOKS_MAX, hooks);
	close(fd);
	return rc ? 0 : BL_HOOKS_MAX;
}

unsigned int bl_chain_anew(const char *dir, enum bl_role role, enum bl_hook_frags frags,
			   const char **anew)
{
	struct bl_hook h[BL_HOOKS_MAX];
	uint32_t k, hooks = read_hooks(dir, h);
	unsigned int n = 0;
	bool old = false;

	for (k = 0; k < hooks && k < BL_SW_PORTS_MAX; k++)
		old |= h[k].frags == BL_HOOK_FRAGS_FLAG;
	if (!hooks || old == (frags == BL_HOOK_FRAGS_FLAG))
		return 0;
	anew[n++] = BL_MAP_NEXT_PROGS;
	if (role == BL_ROLE_HOST) {
		anew[n++] = BL_MAP_HOLD_TX;
	} else {
		anew[n++] = BL_MAP_SW_TX;
		anew[n++] = BL_MAP_SW_HOME;
	}
	return n;
}

static void give_back(const char *dir, uint32_t k, const struct bl_hook *h, uint32_t ifindex)
{
	char path[BL_PATH_MAX], name[IFNAMSIZ];
	int fd, rc;

	back_path(path, sizeof(path), dir, k);
	fd = bpf_obj_get(path);
	if (!if_indextoname(ifindex, name))
		rc = -ENODEV; /* the interface is gone, and the attachment with it */
	else if (fd < 0)
		rc = -errno;
	else
		rc = bpf_xdp_attach((int)ifindex, fd, h->back_flags | XDP_FLAGS_UPDATE_IF_NOEXIST,
				    NULL);
	if (fd >= 0)
		close(fd);
	if (!rc)
		bl_log(BL_LOG_INFO, "%s: put the XDP program with id %u back", name, h->back_id);
	else if (rc != -ENODEV)
		bl_log(BL_LOG_ERR,
		       "%s: cannot put the XDP program with id %u back: %s; attach it again", name,
		       h->back_id, strerror(-rc));
	unlink(path);
}

static int open_map(const char *dir, const char *map)
{
	char path[BL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/%s", dir, map);
	return bpf_obj_get(path);
}

void bl_chain_give_back(const char *dir, uint32_t was, uint32_t now)
{
	int fd = open_map(dir, BL_MAP_HOOKS);
	struct bl_hook h[BL_HOOKS_MAX];
	uint32_t k, hooks = read_hooks(dir, h);

	for (k = 0; k < hooks; k++) {
		if (!h[k].back_id || (was && h[k].back_ifindex != was))
			continue;
		give_back(dir, k, &h[k], now ? now : h[k].back_ifindex);
		h[k].back_id = h[k].back_flags = h[k].back_ifindex = 0;
		if (fd >= 0)
			bpf_map_update_elem(fd, &k, &h[k], BPF_ANY);
	}
	if (fd >= 0)
		close(fd);
}

uint32_t bl_chain_back_id(const char *dir, uint32_t ifindex)
{
	struct bl_hook h[BL_HOOKS_MAX];
	uint32_t k, hooks = read_hooks(dir, h);

	for (k = 0; k < hooks; k++)
		if (h[k].back_id && h[k].back_ifindex == ifindex)
			return h[k].back_id;
	return 0;
}

void bl_chain_forget(const char *dir, uint32_t port)
{
	const struct bl_hook none = { 0 };
	int fd = open_map(dir, BL_MAP_HOOKS), progs = open_map(dir, BL_MAP_NEXT_PROGS);

	if (fd >= 0) {
		bpf_map_update_elem(fd, &port, &none, BPF_ANY);
		close(fd);
	}
	if (progs >= 0) {
		bpf_map_delete_elem(progs, &port);
		close(progs);
	}
}
