/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks services at their status sockets (base/status_socket.h), all at the same time, with one
 * limit for connecting, answers and their lengths: services that are stopped, slow or lying cost
 * that limit and no more, and do not hide one that answers. cli/util/status.h is the form for
 * commands.
 */
#ifndef BARLINE_CLI_ASK_H
#define BARLINE_CLI_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ASK_BYTES_MAX (64u << 20) /* a longer answer counts as none */
#define ASK_MAX       64          /* services that are asked at a time */

/** struct ask - one question. */
struct ask {
	const char *path;    /* of the socket. Set by the caller, as are the next two. */
	const char *command; /* what is sent first; NULL: nothing */
	bool patient;        /* waits where the queue of a socket is full; else it is silent */
	json_t *answer;      /* an object, which the caller owns; NULL: none */
	/*
	 * 0, or why there is no answer, a positive errno. ECONNREFUSED: nobody listens; ETIMEDOUT:
	 * it is silent; EPROTO: its answer is no JSON object.
	 */
	int error;
	pid_t pid;   /* of the service, as soon as it is connected; 0: not known */
	bool knocks; /* not connected yet. This one and the following are for ask_until(). */
	int fd;
	char *text;
	size_t len, room;
};

/**
 * ask_until - asks @n services, and returns when all have answered, or at @until (CLOCK_MONOTONIC,
 * ns). @n: at most ASK_MAX
 */
void ask_until(struct ask *a, size_t n, uint64_t until);

#endif
