/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of etcd on loopback, for labs and for tests: three processes whose data and log are in
 * BL_RUN_DIR, which is a tmpfs there. They run without fsync: what fails is processes, not power.
 *
 * Example: member 1 is "m1", serves clients at http://127.0.0.1:23791 and the others at :23801, and
 * writes into BL_RUN_DIR/etcd1. One that was killed and is started again takes that up.
 */
#ifndef BARLINE_LAB_ETCD_H
#define BARLINE_LAB_ETCD_H

#include <stddef.h>

#define LAB_ETCD_MEMBERS 3
#define LAB_ETCD_ANSWER  4096 /* bytes of an answer that are kept, with the 0 */

/** lab_etcd_url - where member @i, from 0, serves clients. */
void lab_etcd_url(unsigned int i, char *url, size_t size);

/** lab_etcd_exec - this process, a child, becomes member @i; or ends: 127 if there is no etcd. */
void lab_etcd_exec(unsigned int i) __attribute__((noreturn));

/**
 * lab_etcd_post - as an operator with curl would: POST @body to @path of member @i, within @ms.
 * Returns the HTTP status, 0: none. @answer: LAB_ETCD_ANSWER bytes.
 */
long lab_etcd_post(unsigned int i, const char *path, const char *body, long ms, char *answer);

#endif
