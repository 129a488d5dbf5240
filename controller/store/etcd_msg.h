/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of etcd's JSON gateway (v3, as 3.4 and 3.5 have it), made and read without a
 * connection, so that a test can hold every byte of them.
 *
 * A misspelt "compare" gives an unconditional success, so that nobody writes such a text by hand:
 * requests come from here only. Keys and values are base64, 64-bit integers are strings, and
 * whatever is zero is left out: a transaction whose comparison fails says nothing about
 * "succeeded". What is absent or null is zero.
 *
 *   {"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14}
 * one answer
 *   {"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader",...}}
 * a stream
 */
#ifndef BARLINE_CONTROLLER_ETCD_MSG_H
#define BARLINE_CONTROLLER_ETCD_MSG_H

#include "controller/store/store.h"

/**
 * struct etcd_put - a write under conditions. @fence_rev: revision at which @fence was made; 0:
 * there is no fence. @create: @key must not be there, and becomes the fence: by its revision of
 * creation. @rev: see bl_store_put(). @lease: 0: none.
 */
struct etcd_put {
	const char *fence;
	uint64_t fence_rev;
	const char *key;
	uint64_t rev;
	bool create;
	const void *value; /* NULL: delete */
	size_t len;
	uint64_t lease;
};

/* All return a text from malloc(), or NULL: out of memory. Keys are whole, with their prefix. */
char *etcd_msg_put(const struct etcd_put *p);
char *etcd_msg_range(const char *key, bool prefix);
char *etcd_msg_watch(const char *key, bool prefix, uint64_t from_rev);
char *etcd_msg_grant(uint64_t ttl_s);
char *etcd_msg_lease(uint64_t lease); /* keep-alive and revoke */

/**
 * struct etcd_kv - @create_rev: revision at which the key was made. @gone: the event is a
 * deletion.
 */
struct etcd_kv {
	struct bl_store_kv kv;
	uint64_t create_rev, lease;
	bool gone;
};

/**
 * struct etcd_answer - any answer. @sound: it is one of etcd's. @error: what etcd said, NULL: no
 * error. @grpc_code: of the error. @rev: of the header. @succeeded: the transaction's conditions
 * held. @kv, @n: what was read, what a transaction that failed read instead, or a watch's events.
 * @ttl: of a lease, 0: it is gone. @lease: its number. @created, @canceled, @compacted: of a watch;
 * the last is the lowest revision that is left, 0: not said.
 */
struct etcd_answer {
	bool sound, succeeded, created, canceled;
	char *error;
	int grpc_code;
	uint64_t rev, ttl, lease, compacted;
	struct etcd_kv *kv;
	size_t n;
	char *cancel_reason;
};

/**
 * etcd_msg_read - @len bytes of JSON. @strip: leading bytes of keys that are left out of them; a
 * key that does not begin with it is left out as a whole. Always fills *@a; free with
 * etcd_answer_free().
 */
void etcd_msg_read(const char *text, size_t len, const char *strip, struct etcd_answer *a);
void etcd_answer_free(struct etcd_answer *a);

/** etcd_b64 - Returns @len bytes as base64, in memory from malloc(); NULL: out of memory. */
char *etcd_b64(const void *data, size_t len);
/**
 * etcd_unb64 - Decodes base64 @text; white space in it is skipped.
 *
 * Returns memory from malloc() with *@len bytes and a terminating 0 that is not counted; NULL if
 * @text is not base64 or there is no memory.
 */
uint8_t *etcd_unb64(const char *text, size_t *len);

#endif
