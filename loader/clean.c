// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See clean.h. */
#include "loader/clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status_socket.h"
#include "base/netns.h"
#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/entry.h"
#include "loader/load/pin.h"
#include "loader/nic.h"
#include "loader/order/keep.h"

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
				bl_keep_forget(v[i].role, v[i].netns_ino);
		}
		bl_node_unlock(v[i].role, v[i].netns_ino, lock, !dry_run && !rc);
		removed += !rc;
	}
	free(v);
	bl_status_sockets_clean(BL_RUN_DIR "/arbiter-*.sock", dry_run, tell, ctx);
	bl_status_sockets_clean(BL_RUN_DIR "/controller-*.sock", dry_run, tell, ctx);
	return rc ? rc : removed;
}
