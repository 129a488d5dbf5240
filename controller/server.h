/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A controller's process: it runs the failure procedure (recover/recover_core.h) between its store
 * (store/store.h) and its sessions with the agents of the nodes (proto/session.h).
 *
 * Several controllers may run; one of them leads. The leader loads what earlier leaders saved,
 * accepts the agents' sessions, and sends commands while its own clock says that its lease has not
 * run out. The others answer HELLO with the address of the leader. While the store accepts no
 * writes, the leader decides nothing and its status names the reason; traffic goes on.
 *
 * The files, each of which uses only files above it in this list:
 *
 *	ctl_priv.h	struct bl_ctl, which all of them share
 *	message.c	packs and unpacks the messages of proto/ctl.proto
 *	peer.c		the list of sessions, and which nodes may be sent commands
 *	nodes.c		which nodes are admitted, and the strangers
 *	outputs.c	saves records and sends commands as the failure procedure asks
 *	forward.c	forwards a frame from one host to another
 *	admit.c		changes the admission of the whole rack
 *	dispatch.c	passes an agent's message to the failure procedure, forward.c or admit.c
 *	sessions.c	accepts connections, closes silent ones, logs failed ones
 *	lead.c		what happens when this controller is elected or loses the lead
 *	reload.c	reads the file again
 *	status.c	the JSON object that `barline controller show` reads
 *	server.c	opens and closes all of that, and runs the event loop
 *
 * Keys in the store: "node/1f4a0007" for each admitted node that ever sent HELLO; "admit/1f4a0007"
 * for each node that a command has admitted; "failure/0000000007" for each failure, with its step;
 * "epoch/00000000000000000041" for each election, with the leader's address; "leader" belongs to
 * the election itself.
 */
#ifndef BARLINE_CONTROLLER_SERVER_H
#define BARLINE_CONTROLLER_SERVER_H

#include "controller/config.h"

/*
 * Path of the status socket below BL_RUN_DIR, with the inode of the network namespace and the
 * process id; and a glob(7) pattern for all controllers of one network namespace.
 */
#define BL_CTL_STATUS      "/controller-%llu-%d.sock"
#define BL_CTL_STATUS_GLOB "/controller-%llu-*.sock"

struct bl_ctl;

/**
 * bl_ctl_new - Opens the store, the listening socket and the status socket, in the network
 * namespace of the calling thread, and begins to campaign for the lead.
 * @out: the controller; NULL if this fails.
 *
 * Returns 0 or -errno with a text in @err.
 */
int bl_ctl_new(struct bl_ctl **out, const struct bl_ctl_cfg *cfg, struct bl_err *err);

/**
 * bl_ctl_run - Runs the event loop until bl_ctl_stop() is called or the controller cannot go on.
 *
 * Returns 0, or -errno with a text in @err.
 */
int bl_ctl_run(struct bl_ctl *c, struct bl_err *err);

/**
 * bl_ctl_reloads - From now on, reads the file @path again on SIGHUP and when the status socket is
 * told to (`barline controller reload`). The caller has called bl_hangup_block() (base/hangup.h)
 * before bl_ctl_new(). Returns 0 or -errno.
 */
int bl_ctl_reloads(struct bl_ctl *c, const char *path, struct bl_err *err);

/** bl_ctl_stop - Ends bl_ctl_run(). May be called from a signal handler or another thread. */
void bl_ctl_stop(struct bl_ctl *c);

/** bl_ctl_free - Gives up the lead, closes all sessions and frees @c. NULL: no-op. */
void bl_ctl_free(struct bl_ctl *c);

#endif
