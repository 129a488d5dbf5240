/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Client of the status sockets, on which arbiters, controllers and the fault isolation service
 * print their state as one JSON object (base/status_socket.h).
 */
#ifndef BARLINE_CLI_UTIL_STATUS_H
#define BARLINE_CLI_UTIL_STATUS_H

#include <jansson.h>

#define STATUS_WAIT_MS 3000

/**
 * status_ask - Returns what the process with the status socket @path prints, or NULL if it does not
 * answer. Waits up to STATUS_WAIT_MS. The caller owns the reference.
 * @command: lines that are sent to the process first; NULL: none (see arbiter/status.c)
 */
json_t *status_ask(const char *path, const char *command);

/**
 * status_ask_one - The same, for a process of which there is one in this network namespace. Returns
 * NULL after a message: @none if there is no such process, else why there is no answer.
 * @what: "fault isolation service"
 */
json_t *status_ask_one(const char *path, const char *command, const char *what, const char *none);

/**
 * status_ask_each - Asks all processes of this network namespace whose sockets are called
 * @name-NETNS-NUMBER.sock, at the same time. Removes the sockets of processes that were killed. If
 * some answer and others do not, says which do not.
 * @name: "arbiter" (BL_ARB_DOOR) or "controller" (BL_CTL_STATUS)
 * @command: as of status_ask()
 * Returns an array of answers, empty if no process answers.
 */
json_t *status_ask_each(const char *name, const char *command);

/**
 * status_ask_all - The same, for orders: *@silent is set to the number of processes that do not
 * answer, each of which is named in a message, unless none answers.
 */
json_t *status_ask_all(const char *name, const char *command, unsigned int *silent);

/**
 * status_none - The message if status_ask_each() of @name got no answer: that a process does not
 * answer, and whether it is stopped, or, if there is none, @none.
 * @what: "controller", "arbiter"
 * Returns 1, the exit status of a failure.
 */
int status_none(const char *name, const char *what, const char *none);

#endif
