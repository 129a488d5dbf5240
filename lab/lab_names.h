/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of a lab's network namespaces for other programs: node h1 of lab "lab" is "lab-h1" to
 * ip-netns(8), nsenter(1), tcpdump(1) and `barline -n`, by a mount at /run/netns/lab-h1.
 *
 * Such a mount keeps a namespace alive, and unlike everything else of a lab it does not end with
 * the lab's processes. So a process of its own, the watcher, waits for the end of the lab's init
 * and then removes the names. A record, /run/barline/labs/NAME, says which names there are and
 * which namespaces they stand for; the watcher holds a lock on it. If the watcher was killed, `lab
 * down`, `barline clean` and the next lab of that name remove what the record lists. A name that
 * exists and is not the lab's is never touched.
 */
#ifndef BARLINE_LAB_NAMES_H
#define BARLINE_LAB_NAMES_H

#include "lab/lab.h"

#define LAB_NAMES_DIR "/run/netns"

/**
 * lab_names_put - Gives the namespaces of a lab that is up their names, and starts the watcher.
 * Returns whether they have names; if not, after a warning.
 */
bool lab_names_put(const struct lab *lab);
/**
 * lab_names_remove - Removes the names of lab @name if the pid of its init is or was @init; 0:
 * whatever it was.
 */
void lab_names_remove(const char *name, pid_t init);
/**
 * lab_names_clean - Removes the names of labs that ended without their watcher; with @dry only
 * finds them. @tell is called with the path of each. Returns their number.
 */
int lab_names_clean(bool dry, void (*tell)(const char *what, void *ctx), void *ctx);
/**
 * lab_names_find - Finds the lab and the node that a name in LAB_NAMES_DIR stands for.
 * @lab, @node: at least 32 and 16 bytes
 * @init: the pid of the lab's init
 * Returns whether @name is that of a node of a lab that is up.
 */
bool lab_names_find(const char *name, char *lab, char *node, pid_t *init);
/**
 * lab_names_enter - Goes on in a child process inside the lab, if @netns is such a name: in its
 * pid, mount and network namespaces. The parent exits with the child's status. Returns 0 in the
 * child; 1 after a message; -1 if it is no such name.
 */
int lab_names_enter(const char *netns);

#endif
