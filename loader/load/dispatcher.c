// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See dispatcher.h.
 *
 * Libxdp keeps the members of the dispatcher with the program id D on interface I as pins in
 * /sys/fs/bpf/xdp/dispatch-I-D (progN-prog and progN-link, N in the order of calls); the folder is
 * part of its protocol. Whoever loads or unloads a program builds another dispatcher from the
 * members of the present one, attaches it in its place in one step, and removes the folder of the
 * former one. The member for barline stays the same program with the same array all the while.
 *
 * Example: barline is alone on eth0 (index 3), in dispatcher 40. Its array is map 17, pinned at
 * links/xdp-eth0. `xdp-loader load eth0 other.o` builds dispatcher 52. The folder dispatch-3-52 has
 * two members, and one of them uses map 17: barline is still in its place. barlined is upgraded:
 * slot 0 of map 17 gets the new program, and dispatcher 52 stays.
 *
 * What ends how:
 *
 * 	the daemon is killed		pin and member stay, and frames go on to the program
 * 	the pin is removed		the kernel empties an array that has no pin and no
 *					descriptor, and the member passes every frame. The next
 *					member that joins takes its place
 *	killed while joining		the pin is made first, so leaving finds the member
 *	`ip link set DEV xdp off`	the dispatcher is gone, and its folder is left. The next
 *					join or leave removes it
 *
 * Members take frames of several buffers if the dispatcher does: libxdp loads them without
 * BPF_F_XDP_HAS_FRAGS and gives the flag to the dispatcher. An array takes programs with the same
 * flag as the program that calls, so barline's own programs have to be loaded without it, too.
 * Likewise, kernels that compare attach types (6.1.192 of Debian is one) want programs without
 * one, since a member has none after it is verified (bl_xdp_set_member()).
 *
 * Newer kernels (6.13, and 6.12.117 of Debian) refuse a member that may change the packet, as any
 * tail call may, where the function that it replaces does not. The functions of libxdp's
 * dispatcher do since 1.5.5 (xdp-tools, pull request 509). Debian 12 has 1.3.1, whose dispatchers
 * barline can join on Linux 6.1.
 */
#include "loader/load/dispatcher.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "base/privileges.h"
#include "loader/load/entry.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"

#include "entry.skel.h"

static char said[256]; /* libxdp's last warning, one line */

static int keep_libxdp_message(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBXDP_WARN) {
		vsnprintf(said, sizeof(said), fmt, ap);
		said[strcspn(said, "\n")] = 0;
	}
	return 0;
}

static void listen_to_libxdp(void)
{
	*said = 0;
	libxdp_set_print(keep_libxdp_message);
	bl_libbpf_listen();
}

/* ---- what is left of dispatchers that are gone ---- */

/** struct keep - the dispatcher whose folder is not removed. */
struct keep {
	uint32_t ifindex, id;
};

/*
 * Removes the folder of a dispatcher that is not attached any more. The folder belongs to an
 * interface of this node, since the array does. A dispatcher that is being built has a folder, too,
 * but a greater id than the attached one.
 */
static bool remove_folder(uint32_t ifindex, uint32_t id, void *ctx)
{
	static const char *const kinds[] = { "link", "prog" };
	const struct keep *keep = ctx;
	char path[PATH_MAX], file[PATH_MAX + 32];
	unsigned int k;

	if ((keep->id && ifindex == keep->ifindex && id >= keep->id) ||
	    bl_xdp_id((int)ifindex) == id)
		return false;
	bl_dispatcher_folder(path, sizeof(path), ifindex, id);
	for (k = 0; k < 2 * BL_DISPATCHER_MEMBERS; k++) {
		snprintf(file, sizeof(file), "%s/prog%u-%s", path, k / 2, kinds[k % 2]);
		unlink(file);
	}
	rmdir(path);
	return false;
}

/* ---- what a dispatcher needs ---- */

void bl_xdp_set_member(struct bpf_program *p)
{
	bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)0);
}

/** struct how - argument of check_how(). */
struct how {
	bool dispatcher;
	struct bl_err *err;
};

/* A change between the two ways takes a detach: in between nothing would arrive. */
static int check_how(const char *path, const char *name, int fd, uint32_t ifindex, void *ctx)
{
	const struct how *how = ctx;

	(void)path;
	if (strncmp(name, "xdp-", 4) || !ifindex || bl_entry_is(fd) == how->dispatcher)
		return 0;
	if (how->dispatcher)
		return bl_fail(how->err, EBUSY,
			       "barline's program is attached to %s by itself; detach the node, "
			       "and "
			       "start it again to join a dispatcher",
			       name + 4);
	return bl_fail(how->err, EBUSY,
		       "barline's program is in a dispatcher on %s; detach the node to have it "
		       "there by itself, or say xdp: dispatcher",
		       name + 4);
}

int bl_dispatcher_check(const char *dir, bool dispatcher, struct bl_err *err)
{
	struct how how = { dispatcher, err };

	return bl_links_each(dir, check_how, &how);
}

static int no_ext(const char *ifname, int e, struct bl_err *err)
{
	return bl_fail(err, EOPNOTSUPP,
		       "xdp: dispatcher: this kernel lets no program join a dispatcher of libxdp "
		       "(BPF_PROG_TYPE_EXT: %s); leave it out, so that barline's program is alone "
		       "on %s, and let another one run behind it (--chain)",
		       strerror(e), ifname);
}

/*
 * Does what libxdp will do: replaces a program by the member. Without this look libxdp would attach
 * the member alone where the kernel has no BPF_PROG_TYPE_EXT.
 */
static int probe(const char *ifname, struct bl_err *err)
{
	struct bl_entry *to = bl_entry__open(), *with = bl_entry__open();
	int rc = to && with ? 0 : -errno, link;

	if (!rc)
		rc = bl_entry__load(to);
	if (!rc) {
		struct bpf_program *p = with->progs.bl_entry;

		bpf_program__set_type(p, BPF_PROG_TYPE_EXT);
		bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)0);
		bpf_program__set_flags(p, 0);
		rc = bpf_program__set_attach_target(p, bpf_program__fd(to->progs.bl_entry),
						    BL_MEMBER_NAME);
	}
	if (!rc)
		rc = bl_entry__load(with);
	if (!rc) {
		link = bpf_raw_tracepoint_open(NULL, bpf_program__fd(with->progs.bl_entry));
		rc = link < 0 ? -errno : 0;
		if (link >= 0)
			close(link);
	}
	bl_entry__destroy(with);
	bl_entry__destroy(to);
	return rc ? no_ext(ifname, -rc, err) : 0;
}

static int check_needs(const char *ifname, struct bl_err *err)
{
	struct statfs s;

	/* Looking at a dispatcher by its id takes CAP_SYS_ADMIN, and the pins belong to root. */
	if (geteuid() || !(bl_caps_effective() & BL_CAP(CAP_SYS_ADMIN)))
		return bl_fail(err, EPERM,
			       "xdp: dispatcher: libxdp and its pins take root with CAP_SYS_ADMIN, "
			       "and the daemon has not got that (user, or User= in a unit); run it "
			       "as root, or leave out xdp: dispatcher and let another program run "
			       "behind barline's (--chain)");
	if (statfs(bl_libxdp_bpffs(), &s) || (unsigned long)s.f_type != (unsigned long)BPF_FS_MAGIC)
		return bl_fail(err, ENOENT,
			       "xdp: dispatcher: libxdp keeps its pins in %s, and no bpffs is "
			       "mounted there: `mount -t bpf bpf %s` (`ip netns exec` gives its "
			       "commands a /sys without it)",
			       bl_libxdp_bpffs(), bl_libxdp_bpffs());
	return probe(ifname, err);
}

/* ---- joining and leaving ---- */

/*
 * Removes members of nodes that are gone: their arrays are empty. Returns -EBUSY if a member is
 * another node's.
 */
static int remove_dead(const struct bl_iface *i, uint32_t array, struct bl_err *err)
{
	struct xdp_program *p = NULL, *dead = NULL;
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(i->ifindex);
	uint32_t zero = 0, its = 0, prog;
	struct bpf_prog_info info;
	int fd, rc = 0;

	if (libxdp_get_error(mp))
		return 0;
	while (!rc && !dead && (p = xdp_multiprog__next_prog(p, mp))) {
		if (!bl_is_member(xdp_program__fd(p), &info, &its) || its == array)
			continue;
		fd = bpf_map_get_fd_by_id(its);
		if (fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &prog))
			rc = bl_fail(err, EBUSY,
				     "another node of barline is in the dispatcher of %s (array "
				     "%u); detach it first (`barline show nodes`)",
				     i->name, its);
		else
			dead = p;
		if (fd >= 0)
			close(fd);
	}
	if (dead && xdp_program__detach(dead, i->ifindex, xdp_multiprog__attach_mode(mp), 0))
		bl_log(BL_LOG_WARN,
		       "%s: cannot take a member of a former node out of the dispatcher: %s; it "
		       "passes every frame",
		       i->name, said);
	else if (dead)
		bl_log(BL_LOG_INFO, "%s: took the member of a former node out of the dispatcher",
		       i->name);
	xdp_multiprog__close(mp);
	return rc;
}

/* Checks what is on the interface before the member is added. */
static int check_present(const struct bl_iface *i, enum bl_xdp_mode mode, bool replace,
			 struct bl_err *err)
{
	struct xdp_multiprog *mp;
	struct xdp_program *p = NULL;
	char name[64], off[96];
	int flags, rc = 0;
	uint32_t id = bl_xdp_present(i->ifindex, name, sizeof(name), &flags);

	if (!id)
		return 0;
	mp = xdp_multiprog__get_from_ifindex(i->ifindex);
	if (libxdp_get_error(mp))
		return bl_fail(err, (int)-libxdp_get_error(mp),
			       "xdp: dispatcher: libxdp cannot read what is on %s (%s, id %u): %s",
			       i->name, name, id, said);
	if (xdp_multiprog__is_legacy(mp)) {
		if (replace)
			rc = bl_xdp_displace(i, id, name, flags, err);
		else if (!strcmp(name, "xdp_dispatcher"))
			rc = bl_fail(err, EBUSY,
				     "%s carries a dispatcher of libxdp (id %u) whose members "
				     "cannot be read in %s/xdp (%s); was it loaded where another "
				     "bpffs is mounted? `xdp-loader unload %s --all` there, or "
				     "`ip link set %s xdp off`",
				     i->name, id, bl_libxdp_bpffs(), said, i->name, i->name);
		else
			rc = bl_fail(err, EBUSY,
				     "%s carries another XDP program (%s, id %u), and not in a "
				     "dispatcher of libxdp; load it with xdp-loader, or detach it "
				     "(`%s`), or pass --replace",
				     i->name, *name ? name : "no name", id,
				     bl_xdp_off_text(off, sizeof(off), i, id, flags));
	} else if ((flags == XDP_FLAGS_SKB_MODE) != (mode == BL_XDP_GENERIC)) {
		rc = bl_fail(err, EBUSY,
			     "the dispatcher of %s is in %s mode, and barline's program is to be "
			     "in %s mode; %s",
			     i->name, flags == XDP_FLAGS_SKB_MODE ? "generic" : "native",
			     mode == BL_XDP_GENERIC ? "generic" : "native",
			     mode == BL_XDP_GENERIC ? "leave out --generic"
						    : "pass --generic, or load the others again "
						      "in native mode");
	}
	while (!rc && i->mtu > BL_XDP_MTU_MAX && (p = xdp_multiprog__next_prog(p, mp)))
		if (!xdp_program__xdp_frags_support(p))
			rc = bl_fail(err, EMSGSIZE,
				     "%s in the dispatcher of %s takes frames of one buffer only, "
				     "and the MTU of %u needs several: load it with "
				     "SEC(\"xdp.frags\"), or `ip link set %s mtu %u`",
				     xdp_program__name(p), i->name, i->mtu, i->name,
				     BL_XDP_MTU_MAX);
	xdp_multiprog__close(mp);
	return rc;
}

/* Undoes what libxdp does where it finds no way to a dispatcher: it attaches the member alone. */
static bool is_alone(const struct bl_iface *i)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(i->ifindex);
	struct xdp_program *p;
	bool alone;

	if (libxdp_get_error(mp))
		return false;
	p = xdp_multiprog__main_prog(mp);
	alone = xdp_multiprog__is_legacy(mp) && p && !strcmp(xdp_program__name(p), BL_MEMBER_NAME);
	if (alone)
		xdp_multiprog__detach(mp);
	xdp_multiprog__close(mp);
	return alone;
}

static int add_member(const struct bl_iface *i, int array, enum bl_xdp_mode mode,
		      struct bl_err *err)
{
	struct bl_entry *skel = bl_entry__open();
	LIBBPF_OPTS(xdp_program_opts, o, .prog_name = BL_MEMBER_NAME);
	struct xdp_program *p;
	int rc;

	if (!skel || bpf_map__reuse_fd(skel->maps.entry, array)) {
		rc = bl_fail(err, errno, "cannot open the member of a dispatcher: %s",
			     strerror(errno));
		bl_entry__destroy(skel);
		return rc;
	}
	o.obj = skel->obj;
	p = xdp_program__create(&o);
	rc = (int)libxdp_get_error(p);
	if (!rc)
		rc = xdp_program__set_xdp_frags_support(p, i->mtu > BL_XDP_MTU_MAX);
	if (!rc) {
		rc = xdp_program__attach(
			p, i->ifindex, mode == BL_XDP_GENERIC ? XDP_MODE_SKB : XDP_MODE_NATIVE, 0);
		xdp_program__close(p);
	}
	bl_entry__destroy(skel);
	if (!rc && is_alone(i))
		return no_ext(i->name, EOPNOTSUPP, err);
	if (rc && strstr(bl_libbpf_said(), "changes packet data"))
		return bl_fail(err, EOPNOTSUPP,
			       "xdp: dispatcher: this kernel lets no member go on to another "
			       "program in dispatchers of the libxdp here; those of libxdp 1.5.5 "
			       "and later allow it. Upgrade libxdp, or leave out xdp: dispatcher, "
			       "so that barline's program is alone on %s, and let another one run "
			       "behind it (--chain)",
			       i->name);
	if (rc == -E2BIG)
		return bl_fail(err, E2BIG,
			       "the dispatcher of %s has %d programs already, as many as libxdp "
			       "allows; unload one (`xdp-loader status %s`)",
			       i->name, BL_DISPATCHER_MEMBERS, i->name);
	if (rc)
		return bl_fail(err, -rc, "cannot join the dispatcher of %s: %s%s%s", i->name,
			       strerror(-rc), *said ? "; libxdp says: " : "", said);
	return 0;
}

/* Opens the array pinned at @path, or makes it. */
static int open_array(const char *path, struct bl_err *err)
{
	int fd = bpf_obj_get(path), rc;

	if (fd >= 0)
		return fd;
	fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "entry", 4, 4, 1, NULL);
	if (fd < 0)
		return bl_fail(err, errno, "cannot make the array %s: %s", path, strerror(errno));
	rc = bl_pin_over(fd, path, err);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/** struct job - what a child does, and its answer, in memory that it shares with its parent. */
struct job {
	const struct bl_iface *iface; /* to join; NULL: leave */
	const char *path;
	int fd; /* join: of barline's program; leave: of the array */
	enum bl_xdp_mode mode;
	bool replace;
	int rc; /* 1: the child has not come to its end */
	struct bl_err err;
};

static int join_here(const struct job *job, struct bl_err *err)
{
	const struct bl_iface *i = job->iface;
	const char *path = job->path;
	uint32_t zero = 0, id, array;
	struct keep keep;
	int fd, rc, flags;
	bool in, made;

	listen_to_libxdp();
	made = access(path, F_OK) != 0;
	if (made) {
		rc = check_needs(i->name, err);
		if (!rc)
			rc = check_present(i, job->mode, job->replace, err);
		if (rc)
			return rc;
	}
	fd = open_array(path, err);
	if (fd < 0)
		return fd;
	array = bl_entry_id(fd);
	in = !bl_entry_prog(fd, i->ifindex, &id);
	rc = 0;
	if (in) {
		bl_xdp_present(i->ifindex, NULL, 0, &flags);
		if ((flags == XDP_FLAGS_SKB_MODE) != (job->mode == BL_XDP_GENERIC))
			rc = bl_fail(err, EBUSY,
				     "barline's program is in a dispatcher of %s in %s mode; "
				     "detach the node to change that",
				     i->name, flags == XDP_FLAGS_SKB_MODE ? "generic" : "native");
	} else if (!made) {
		rc = check_present(i, job->mode, job->replace, err);
	}
	if (!rc && bpf_map_update_elem(fd, &zero, &job->fd, BPF_ANY))
		rc = bl_fail(err, errno, "cannot enter barline's program for %s: %s", i->name,
			     strerror(errno));
	if (!rc)
		rc = remove_dead(i, array, err);
	if (!rc && !in)
		rc = add_member(i, fd, job->mode, err);
	if (!rc) {
		keep = (struct keep){ (uint32_t)i->ifindex, bl_xdp_id(i->ifindex) };
		bl_dispatchers_each(array, remove_folder, &keep);
	} else if (made) {
		unlink(path);
	}
	close(fd);
	return rc;
}

/* Ends a search at the dispatcher that is attached in this network namespace. */
static bool is_attached(uint32_t ifindex, uint32_t id, void *ctx)
{
	if (bl_xdp_id((int)ifindex) != id)
		return false;
	*(uint32_t *)ctx = ifindex;
	return true;
}

/*
 * Takes the member with the array @array out of the dispatcher of @ifindex. Returns 0, -ENOENT if
 * it is not in there (others may have replaced the dispatcher at this moment), or another -errno.
 */
static int remove_member(uint32_t array, uint32_t ifindex)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex((int)ifindex);
	int rc = (int)libxdp_get_error(mp);
	struct xdp_program *p = NULL;
	struct bpf_prog_info info;
	uint32_t its = 0;

	if (rc)
		return rc;
	while ((p = xdp_multiprog__next_prog(p, mp)))
		if (bl_is_member(xdp_program__fd(p), &info, &its) && its == array)
			break;
	rc = p ? xdp_program__detach(p, (int)ifindex, xdp_multiprog__attach_mode(mp), 0) : -ENOENT;
	xdp_multiprog__close(mp);
	return rc;
}

static int leave_here(int fd, struct bl_err *err)
{
	uint32_t array = bl_entry_id(fd), ifindex = 0;
	unsigned int k;
	int rc = 0;

	listen_to_libxdp();
	for (k = 0; k < BL_DISPATCHER_RACES; k++) {
		if (!bl_dispatchers_each(array, is_attached, &ifindex))
			continue;
		rc = remove_member(array, ifindex);
		if (rc && rc != -ENOENT)
			return bl_fail(err, -rc,
				       "cannot leave the dispatcher of interface %u: %s%s%s; "
				       "`xdp-loader status` shows it",
				       ifindex, strerror(-rc), *said ? "; libxdp says: " : "",
				       said);
	}
	bl_dispatcher_forget(fd);
	return 0;
}

/*
 * Runs a job in a child. Libxdp 1.3.1 forgets to close descriptors of the dispatchers and members
 * that it has looked at: a daemon that joins again and again would run out of them, and programs
 * would stay loaded.
 */
static int in_child(const struct job *what, struct bl_err *err)
{
	struct job *job =
		mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc, status;
	pid_t pid;

	if (job == MAP_FAILED)
		return bl_fail(err, ENOMEM, "out of memory");
	*job = *what;
	job->rc = 1;
	pid = fork();
	if (!pid) {
		job->rc = job->iface ? join_here(job, &job->err) : leave_here(job->fd, &job->err);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	rc = job->rc;
	if (pid < 0)
		rc = bl_fail(err, errno, "cannot fork: %s", strerror(errno));
	else if (rc > 0)
		rc = bl_fail(err, EIO, "the process that was to change the dispatcher has died");
	else if (rc && err)
		*err = job->err;
	munmap(job, sizeof(*job));
	return rc;
}

int bl_dispatcher_join(const struct bl_iface *i, const char *path, int prog_fd,
		       enum bl_xdp_mode mode, bool replace, struct bl_err *err)
{
	return in_child(
		&(struct job){
			.iface = i, .path = path, .fd = prog_fd, .mode = mode, .replace = replace },
		err);
}

int bl_dispatcher_leave(int fd, struct bl_err *err)
{
	return in_child(&(struct job){ .fd = fd }, err);
}

void bl_dispatcher_forget(int fd)
{
	struct keep none = {};

	bl_dispatchers_each(bl_entry_id(fd), remove_folder, &none);
}
