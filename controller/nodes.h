/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which nodes the controller knows: those of its file, those that `barline controller admit`
 * admitted, and those that have a record in the store (which a controller saved for every node
 * before nodes had to be admitted). All others are strangers: what they say changes nothing and is
 * saved nowhere.
 *
 * Example: nodes 1 to 4 are in the file. Node 7 sends a HELLO. It gets the answer "it is not
 * admitted", and is counted and shown as a stranger. `barline controller admit h7 --id 7` saves the
 * record "admit/00000007"; the next HELLO of node 7 is accepted, by this leader and by later ones.
 */
#ifndef BARLINE_CONTROLLER_NODES_H
#define BARLINE_CONTROLLER_NODES_H

#include <jansson.h>

#include "controller/ctl_priv.h"
#include "proto/ctl.pb-c.h"

/**
 * ctl_nodes_open - Takes up the nodes of the file, and adds the sources of @c->order to the event
 * loop. Returns 0 or -errno with a text in @err.
 */
int ctl_nodes_open(struct bl_ctl *c, struct bl_err *err);

/** ctl_nodes_close - Undoes ctl_nodes_open(). */
void ctl_nodes_close(struct bl_ctl *c);

/** ctl_nodes_forget - Removes all nodes but those of the file, before the store is read again. */
void ctl_nodes_forget(struct bl_ctl *c);

/**
 * ctl_nodes_file - Makes the @n nodes @v those of the file. A node that the file no longer names
 * stays if the store has a record of it, as it would after a restart; `barline controller remove`
 * removes it then. Returns 0; or -errno with a text in @err, and nothing has changed.
 */
int ctl_nodes_file(struct bl_ctl *c, const struct bl_ctl_node *v, uint32_t n, struct bl_err *err);

/** ctl_nodes_find - Returns node @id; NULL: it is a stranger. */
struct ctl_node *ctl_nodes_find(struct bl_ctl *c, uint32_t id);

/** ctl_nodes_add - Returns node @id, added if it is new; NULL: out of memory, or too many. */
struct ctl_node *ctl_nodes_add(struct bl_ctl *c, uint32_t id, const char *name);

/**
 * ctl_nodes_stored - Notes that the store has a record of node @id, which is added if it is new.
 * Returns false if there is no room or no memory.
 */
bool ctl_nodes_stored(struct bl_ctl *c, uint32_t id, const char *name);

/** ctl_nodes_load - Takes up the record "admit/..." of @len bytes. Returns whether it is sound. */
bool ctl_nodes_load(struct bl_ctl *c, uint32_t id, const uint8_t *data, size_t len);

/** ctl_nodes_knows_addr - Whether @from is where an admitted node had its last session. */
bool ctl_nodes_knows_addr(const struct bl_ctl *c, const uint8_t from[16]);

/** ctl_stranger - Notes that the session @p says it is node @id, called @name, and is refused. */
void ctl_stranger(struct peer *p, uint32_t id, const char *name);

/**
 * ctl_nodes_ask - Carries out a command of `barline controller admit` or `remove`, in the thread of
 * the status socket, and waits until it is carried out.
 * @said: "admit ID NAME", "remove ID [force]"
 *
 * Takes the controller's lock. Returns a JSON object as text, which the caller frees; NULL: out of
 * memory. Its members: state ("leader" or "standby"); done: what was done; trouble: why nothing was
 * done; again: the caller must repeat the command, since it takes several steps.
 */
char *ctl_nodes_ask(struct bl_ctl *c, const char *said);

/** ctl_nodes_lost - Ends the current command, if any, because this controller no longer leads. */
void ctl_nodes_lost(struct bl_ctl *c);

/** ctl_strangers_rows - The strangers as an array of JSON objects, the newest first. */
json_t *ctl_strangers_rows(const struct bl_ctl *c);

#endif
