/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of etcd's JSON gateway (v3, as in 3.4 and 3.5), made and read without a connection,
 * so that a test can compare every byte of them.
 *
 * etcd treats a transaction with a misspelt "compare" as unconditional. For that reason all
 * requests are made here, and none is written by hand elsewhere.
 *
 * Keys and values are in base64, 64-bit integers are strings, and etcd omits whatever is zero: the
 * answer to a transaction whose comparison failed has no "succeeded". What is absent or null is
 * read as zero. Errors come in two forms:
 *
 *	{"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14}
 *		of a single answer
 *	{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader",...}}
 *		of a stream
 */
#ifndef BARLINE_CONTROLLER_ETCD_MSG_H
#define BARLINE_CONTROLLER_ETCD_MSG_H

#include "controller/store/store.h"

/** struct etcd_put - A write under conditions. */
struct etcd_put {
	const char *fence;  /* key whose revision of creation has to be @fence_rev */
	uint64_t fence_rev; /* 0: there is no such condition */
	const char *key;
	uint64_t rev;      /* expected revision, see bl_store_put() */
	bool create;       /* the key must not exist; @rev is not used */
	const void *value; /* NULL: delete the key */
	size_t len;        /* bytes of @value */
	uint64_t lease;    /* lease that the key is attached to; 0: none */
};

/*
 * Requests. All keys are whole, with their prefix. Each function returns a text in memory from
 * malloc(); NULL: out of memory.
 */

/** etcd_msg_put - A transaction for @p that reads the fence and the key if it is refused. */
char *etcd_msg_put(const struct etcd_put *p);

/** etcd_msg_range - Reads @key, or all keys that begin with it if @prefix. */
char *etcd_msg_range(const char *key, bool prefix);

/** etcd_msg_watch - Watches @key, or all keys that begin with it, from revision @from_rev on. */
char *etcd_msg_watch(const char *key, bool prefix, uint64_t from_rev);

/** etcd_msg_grant - Asks for a lease of @ttl_s seconds. */
char *etcd_msg_grant(uint64_t ttl_s);

/** etcd_msg_lease - Names lease @lease, in a keep-alive or a revocation. */
char *etcd_msg_lease(uint64_t lease);

/** struct etcd_kv - A key in an answer. */
struct etcd_kv {
	struct bl_store_kv kv;
	uint64_t create_rev; /* revision at which the key was made */
	uint64_t lease;      /* lease that it is attached to; 0: none */
	bool gone;           /* in an event: the key was deleted */
};

/** struct etcd_answer - An answer of any kind; what it does not have is zero. */
struct etcd_answer {
	bool sound;          /* it is an answer of etcd */
	bool succeeded;      /* of a transaction: its conditions held */
	bool created;        /* of a watch: it has begun */
	bool canceled;       /* of a watch: it has ended */
	char *error;         /* error text; NULL: no error */
	int grpc_code;       /* code of @error */
	uint64_t rev;        /* revision of the store, from the header */
	uint64_t ttl;        /* of a lease, s; 0: the lease is gone */
	uint64_t lease;      /* number of a lease */
	uint64_t compacted;  /* of a canceled watch: lowest revision that is left; 0: not given */
	struct etcd_kv *kv;  /* keys read, by a refused transaction also, or events of a watch */
	size_t n;            /* entries of @kv */
	char *cancel_reason; /* of a canceled watch; NULL: not given */
};

/**
 * etcd_msg_read - Reads an answer, and always fills *@a, which etcd_answer_free() frees.
 * @text: JSON, @len bytes.
 * @strip: prefix that is removed from keys. Keys that do not begin with it are left out.
 * @watch: it is the answer to a watch, and has events. In any other answer, events are left out:
 * the value of a key that was deleted is NULL, which only the reader of a watch expects.
 */
void etcd_msg_read(const char *text, size_t len, const char *strip, bool watch,
		   struct etcd_answer *a);
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
