// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See clean.h. */
#include "loader/clean.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status_socket.h"
#include "base/netns.h"
#include "loader/busy.h"
#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/entry.h"
#include "loader/load/pin.h"
#include "loader/nic.h"
#include "loader/node.h"
#include "loader/order/keep.h"
#include "loader/run_files.h"

static int unlink_dead(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	(void)name, (void)link_fd, (void)ctx;
	if (!ifindex)
		unlink(path);
	return 0;
}

/* A dispatcher of libxdp outlives its interface as pins. */
static int forget_dispatcher(const char *path, const char *name, int fd, uint32_t ifindex,
			     void *ctx)
{
	(void)path, (void)name, (void)ctx;
	if (!ifindex && bl_entry_is(fd))
		bl_dispatcher_forget(fd);
	return 0;
}

static void restore_here(const struct bl_node_ref *r)
{
	bl_nic_say_left(r->dir);
	bl_nic_restore(r->dir, r->role, 0);
}

/*
 * Puts back what a start that was killed before it attached anything has changed. Its network
 * namespace is entered if it is found; if not, it is gone with its virtual interfaces, and
 * bl_nic_take_back() has seen to those NICs that have come back to this one.
 */
static void restore(const struct bl_node_ref *r)
{
	bool entered;
	char path[64];
	int fd, old;

	if (r->netns_ino == bl_netns_ino()) {
		restore_here(r);
		return;
	}
	fd = bl_netns_find(r->netns_ino);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	entered = fd >= 0 && !bl_netns_enter(path, &old, NULL);
	if (entered) {
		restore_here(r);
		bl_netns_leave(old);
	} else {
		bl_nic_say_left(r->dir);
	}
	if (fd >= 0)
		close(fd);
}

/*
 * Whether the interfaces of the node were deleted, though its namespace was not. What it has at the
 * loopback interface is still attached then. Called in the namespace of the node.
 */
static bool lost_interfaces(const struct bl_node_ref *r)
{
	struct bl_node_ports p;

	bl_node_ports(r, &p);
	return p.all && p.gone == p.all;
}

/* Removes such a node, which has no daemon. Returns 1: removed, 0: it is no such node, -errno. */
static int clean_stranded(const struct bl_node_ref *r, bool dry_run,
			  void (*tell)(const char *what, void *ctx), void *ctx, struct bl_err *err)
{
	int fd = bl_netns_find(r->netns_ino), old, rc = 0;
	char netns[64];
	bool lost;

	if (fd < 0)
		return 0;
	snprintf(netns, sizeof(netns), "/proc/self/fd/%d", fd);
	if (!bl_netns_enter(netns, &old, NULL)) {
		lost = lost_interfaces(r);
		bl_netns_leave(old);
		if (lost && !dry_run)
			rc = bl_node_detach(r->role, netns, err);
		if (lost && !rc) {
			if (tell)
				tell(r->dir, ctx);
			rc = 1;
		}
	}
	close(fd);
	/* a daemon that has started since serves it */
	return rc == -EBUSY ? 0 : rc;
}

int bl_clean(bool dry_run, void (*tell)(const char *what, void *ctx), void *ctx, struct bl_err *err)
{
	struct bl_node_ref *v;
	int n, i, removed = 0, rc = 0;

	n = bl_nodes_list(&v, 0, false, err);
	if (n < 0)
		return n;
	for (i = 0; i < n && !rc; i++) {
		char sock[128];
		int lock;

		/* A daemon serves this node and cleans up its own pins. */
		lock = bl_node_lock(v[i].role, v[i].netns_ino, 0, NULL);
		if (lock < 0)
			continue;
		if (v[i].netns_ino != bl_netns_ino())
			bl_nic_take_back(v[i].dir, v[i].role, dry_run, tell, ctx);
		if (bl_links_alive(v[i].dir)) {
			if (!dry_run)
				bl_links_each(v[i].dir, unlink_dead, NULL);
			bl_node_unlock(v[i].role, v[i].netns_ino, lock, false);
			rc = clean_stranded(&v[i], dry_run, tell, ctx, err);
			removed += rc > 0;
			rc = rc > 0 ? 0 : rc;
			continue;
		}
		if (tell)
			tell(v[i].dir, ctx);
		if (!dry_run) {
			restore(&v[i]);
			bl_links_each(v[i].dir, forget_dispatcher, NULL);
			rc = bl_dir_remove(v[i].dir);
			if (rc)
				rc = bl_fail(err, -rc, "cannot remove %s: %s", v[i].dir,
					     strerror(-rc));
			snprintf(sock, sizeof(sock), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR,
				 v[i].netns_ino);
			if (v[i].role == BL_ROLE_HOST)
				unlink(sock);
			if (!bl_keep_end(v[i].role, v[i].netns_ino, NULL))
				bl_run_files_forget(v[i].role, v[i].netns_ino);
		}
		bl_node_unlock(v[i].role, v[i].netns_ino, lock, !dry_run && !rc);
		removed += !rc;
	}
	free(v);
	bl_status_sockets_clean(BL_RUN_DIR "/arbiter-*.sock", dry_run, tell, ctx);
	bl_status_sockets_clean(BL_RUN_DIR "/controller-*.sock", dry_run, tell, ctx);
	return rc ? rc : removed;
}

/* Returns 0, or -errno with the reason why the node has to stay. */
static int may_go(const struct bl_node_ref *r, const char *netns, bool force, struct bl_err *err)
{
	struct bl_err why;
	int rc = bl_node_lock(r->role, r->netns_ino, 0, &why);

	if (rc < 0)
		return bl_fail(err, -rc, "%s: %s", r->dir, why.text);
	bl_node_unlock(r->role, r->netns_ino, rc, false);
	rc = force ? 0 : bl_node_busy(r->role, netns, &why);
	return rc ? bl_fail(err, -rc, "%s: %s", r->dir, why.text) : 0;
}

/* With @go false, finds out whether all nodes of this role may go. */
static int all_of(enum bl_role role, const struct bl_node_ref *v, int n, bool force, bool go,
		  void (*tell)(const char *what, void *ctx), void *ctx, struct bl_err *err)
{
	int i, rc, removed = 0;

	for (i = 0; i < n; i++) {
		int fd = v[i].role == role ? bl_netns_find(v[i].netns_ino) : -1;
		char netns[64];

		if (fd < 0)
			continue;
		snprintf(netns, sizeof(netns), "/proc/self/fd/%d", fd);
		rc = go ? bl_node_detach(role, netns, err) : may_go(&v[i], netns, force, err);
		close(fd);
		if (rc)
			return rc;
		if (tell)
			tell(v[i].dir, ctx);
		removed++;
	}
	return removed;
}

int bl_clean_all(bool force, bool dry_run, void (*tell)(const char *what, void *ctx), void *ctx,
		 struct bl_err *err)
{
	struct bl_node_ref *v;
	int n, hosts, switches = 0, rest;

	n = bl_nodes_list(&v, 0, false, err);
	if (n < 0)
		return n;
	hosts = all_of(BL_ROLE_HOST, v, n, force, false, dry_run ? tell : NULL, ctx, err);
	if (hosts >= 0)
		switches =
			all_of(BL_ROLE_SWITCH, v, n, force, false, dry_run ? tell : NULL, ctx, err);
	if (!dry_run && hosts >= 0 && switches >= 0) {
		hosts = all_of(BL_ROLE_HOST, v, n, force, true, tell, ctx, err);
		if (hosts >= 0)
			switches = all_of(BL_ROLE_SWITCH, v, n, force, true, tell, ctx, err);
	}
	free(v);
	if (hosts < 0 || switches < 0)
		return hosts < 0 ? hosts : switches;
	rest = bl_clean(dry_run, tell, ctx, err);
	return rest < 0 ? rest : hosts + switches + rest;
}
