/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of etcd on loopback, for labs and tests: three processes whose data and logs are in
 * BL_RUN_DIR, a tmpfs there. They run without fsync, because processes fail here, not the power.
 *
 * Example: member 1 is called "m1", serves clients at http://127.0.0.1:23791 and other members at
 * port 23801, and stores its data in BL_RUN_DIR/etcd1. If it is killed and started again, it
 * continues with that data.
 */
#ifndef BARLINE_LAB_ETCD_H
#define BARLINE_LAB_ETCD_H

#include <stddef.h>

#define LAB_ETCD_MEMBERS 3
#define LAB_ETCD_ANSWER  4096 /* room for an answer with its terminating 0; the rest is cut off */

/** lab_etcd_url - Writes the URL at which member @i, from 0, serves clients. */
void lab_etcd_url(unsigned int i, char *url, size_t size);

/**
 * lab_etcd_exec - Replaces this process by member @i. Ends the process with status 127 if etcd
 * cannot be executed, and 1 if its log cannot be opened.
 */
void lab_etcd_exec(unsigned int i) __attribute__((noreturn));

/**
 * lab_etcd_post - Sends a POST request with @body to @path of member @i and waits up to @ms
 * milliseconds for the answer.
 * @answer: LAB_ETCD_ANSWER bytes, for the body of the answer
 * Returns the HTTP status, or 0 if there was no answer.
 */
long lab_etcd_post(unsigned int i, const char *path, const char *body, long ms, char *answer);

#endif
