// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Least privilege: what root does before barlined becomes another user, or, in a systemd unit,
 * before systemd starts it as that user (`barlined --prepare`, ExecStartPre=+).
 *
 *	what				why the daemon's user may not
 *	/run/barline			/run belongs to root
 *	/run/barline/bpf		mount(2) takes CAP_SYS_ADMIN; under systemd a mount unit
 *					does it, because commands with "+" have a mount namespace
 *					of their own, too
 *	locks, sockets, pins		they may belong to root, or to a former user
 *	chained programs		opening them by id takes CAP_SYS_ADMIN
 *	threaded NAPI, bl0's GRO	attributes in sysfs belong to root
 *	network namespaces		setns(2) and unshare(2) take CAP_SYS_ADMIN; see
 *					base/netns_keep.h
 *
 * The daemon's user owns the run directory and could put links there for root to follow. Nothing
 * here follows a symbolic link, and a file with several hard links is left alone.
 */
#include "loader/prepare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/time.h"
#include "loader/admission/bl0.h"
#include "loader/defaults.h"
#include "loader/load/chain.h"
#include "loader/load/lower.h"
#include "loader/load/napi.h"
#include "loader/load/pin.h"
#include "loader/node_cfg.h"
#include "maps/meta_abi.h"

static int give_below(int dir, uid_t uid, gid_t gid, bool all, struct bl_err *err);

/* Gives one file, and everything below a directory. */
static int give(int dir, const char *name, uid_t uid, gid_t gid, struct bl_err *err)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), sub, rc = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : bl_fail(err, errno, "cannot open %s: %s", name, strerror(errno));
	if (fstat(fd, &st))
		rc = bl_fail(err, errno, "cannot look at %s: %s", name, strerror(errno));
	else if (S_ISLNK(st.st_mode) || (!S_ISDIR(st.st_mode) && st.st_nlink > 1))
		;
	else if (fchownat(fd, "", uid,
			  /* a socket keeps its group, which may connect to it */
			  S_ISSOCK(st.st_mode) ? (gid_t)-1 : gid, AT_EMPTY_PATH))
		rc = bl_fail(err, errno, "cannot give %s to user %u: %s", name, uid,
			     strerror(errno));
	if (!rc && S_ISDIR(st.st_mode)) {
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = sub < 0 ? bl_fail(err, errno, "cannot read %s: %s", name, strerror(errno))
			     : give_below(sub, uid, gid, true, err);
	}
	close(fd);
	return rc;
}

/* The names of what barline makes in the run directory itself. */
static bool is_ours(const char *name)
{
	static const char *const starts[] = { "bpf",         "mount.lock", "host-",  "switch-",
					      "controller-", "arbiter-",   "faults-" };
	unsigned int k;

	for (k = 0; k < sizeof(starts) / sizeof(starts[0]); k++)
		if (!strncmp(name, starts[k], strlen(starts[k])))
			return true;
	return false;
}

/*
 * Gives the files in @dir: those of barline, or with @all everything. Closes @dir. Returns 0 or
 * -errno.
 */
static int give_below(int dir, uid_t uid, gid_t gid, bool all, struct bl_err *err)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int rc = 0;

	if (!d) {
		close(dir);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	while (!rc && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    (all || is_ours(e->d_name)))
			rc = give(dirfd(d), e->d_name, uid, gid, err);
	closedir(d);
	return rc;
}

int bl_give_run_dir(uid_t uid, gid_t gid, struct bl_err *err)
{
	int dir = open(BL_RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 || fchown(dir, uid, gid)) {
		int rc = bl_fail(err, errno, "cannot give %s to user %u: %s", BL_RUN_DIR, uid,
				 strerror(errno));

		if (dir >= 0)
			close(dir);
		return rc;
	}
	return give_below(dir, uid, gid, false, err);
}

static int give_ports(const struct bl_node_cfg *cfg, uid_t uid, struct bl_err *err)
{
	struct bl_iface i;
	unsigned int k;
	int rc = 0;

	for (k = 0; k < cfg->ports_count && cfg->thread_napi && !rc; k++) {
		rc = bl_iface_get(&i, cfg->ports[k].ifname, err);
		if (!rc)
			rc = bl_napi_give(&i, uid, err);
	}
	return rc;
}

static int prepare_chains(const struct bl_node_cfg *c, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	if (c->role == BL_ROLE_HOST)
		return bl_chain_prepare(c->role, c->ifname, c->chain, err);
	for (k = 0; k < c->ports_count && !rc; k++)
		rc = bl_chain_prepare(c->role, c->ports[k].ifname,
				      bl_port_chain(c, c->ports[k].ifname), err);
	return rc;
}

/* ---- NICs that come after the unit ---- */

/* Whether a node can run on an interface, or will not be able to either later: 0; or -errno. */
static int is_there(const char *ifname, enum bl_role role, struct bl_err *err)
{
	struct bl_iface i;
	int rc = bl_iface_get(&i, ifname, err);

	if (!rc && bl_lower_check(&i, role, err) == -EAGAIN)
		rc = -EAGAIN;
	return rc == -ENODEV || rc == -EAGAIN ? rc : 0;
}

static int are_there(const struct bl_node_cfg *c, struct bl_err *err)
{
	unsigned int k;
	int rc = 0;

	if (c->role == BL_ROLE_HOST)
		return is_there(c->ifname, c->role, err);
	for (k = 0; k < c->ports_count && !rc; k++)
		rc = is_there(c->ports[k].ifname, c->role, err);
	return rc;
}

int bl_prepare_wait(const struct bl_node_cfg *cfg, unsigned int ms, struct bl_err *err)
{
	const struct timespec turn = { .tv_nsec = 100000000 };
	uint64_t end = bl_mono_ns() + ms * 1000000ULL;
	bool said = false;
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	while ((rc = are_there(cfg, err)) && bl_mono_ns() < end) {
		if (!said)
			bl_log(BL_LOG_INFO, "waits up to %u s: %s", ms / 1000, err->text);
		said = true;
		if (sigtimedwait(&set, NULL, &turn) > 0)
			return bl_fail(err, EINTR, "stopped while it waited for its NICs");
	}
	return rc;
}

int bl_prepare(const struct bl_node_cfg *cfg, const struct bl_user *u, struct bl_err *err)
{
	struct bl_node_cfg c = *cfg;
	int rc = bl_bpffs_mount(err);

	if (rc || !u)
		return rc;
	bl_node_defaults(&c);
	rc = prepare_chains(&c, err);
	if (!rc)
		rc = bl_give_run_dir(u->uid, u->gid, err);
	if (!rc)
		rc = give_ports(&c, u->uid, err);
	if (!rc && c.role == BL_ROLE_HOST && c.admission.on)
		rc = bl_bl0_give(&c, u->uid, err);
	return rc;
}

int bl_prepared_check(struct bl_err *err)
{
	static const char *const paths[] = { BL_RUN_DIR, BL_BPFFS };
	struct stat st;
	unsigned int k;

	for (k = 0; k < sizeof(paths) / sizeof(paths[0]); k++)
		if (stat(paths[k], &st) || st.st_uid != geteuid())
			return bl_fail(err, EACCES,
				       "%s does not belong to the daemon's user (%u); run "
				       "`barlined --prepare --user NAME` as root first, with the "
				       "same options (ExecStartPre=+ in a unit)",
				       paths[k], geteuid());
	return 0;
}
