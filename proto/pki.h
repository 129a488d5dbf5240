/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small certificate authority for one rack: `barline pki`. It is a folder of mode 0700:
 *
 *	ca.pem ca.key		the authority; ca.key never leaves the folder
 *	h4.pem h4.key		what was issued: barline://rack7/node/4
 *	ctl1.pem ctl1.key	barline://rack7/controller/ctl1
 *
 * Keys are of NIST's curve P-256, which all versions of GnuTLS, etcd and libcurl in use know, and
 * have mode 0600. Only bl_pki_renew() overwrites a file: it replaces a certificate by rename(2),
 * and keeps its key. Daemons and controllers read renewed files for their next
 * session without a restart (proto/session.h).
 *
 * etcd obeys whoever has a certificate of its authority, so no node may have one: etcd and its
 * controllers get another authority, in a folder of its own, and a controller has two certificates.
 *
 * There are no revocation lists. A node is refused by its id: `barline controller remove`.
 */
#ifndef BARLINE_PKI_H
#define BARLINE_PKI_H

#include <time.h>

#include "base/log.h"
#include "proto/ident.h"

#define BL_PKI_CA_DAYS   3650 /* default validity of an authority */
#define BL_PKI_DAYS      365  /* default validity of a certificate */
#define BL_PKI_DAYS_MAX  36500
#define BL_PKI_ADDRS_MAX 16

/* Common name of the certificates of controllers and of etcd's members. No node has it. */
#define BL_PKI_CONTROL_CN "barline-control"

/** struct bl_pki_req - What to issue. */
struct bl_pki_req {
	const char *name;        /* of the files */
	enum bl_ident_role role; /* NODE, CONTROLLER or ETCD */
	uint32_t node;           /* NODE: its id */
	unsigned int days;
	/* addresses and DNS names at which a server is reached, for etcd and its clients */
	const char *addr[BL_PKI_ADDRS_MAX];
	unsigned int naddrs;
};

/** struct bl_pki_info - What is in a certificate. */
struct bl_pki_info {
	struct bl_ident who;
	time_t from;
	time_t until;
	char serial[48]; /* hexadecimal */
	bool ours;       /* it is of the authority in the same folder */
};

/** bl_pki_init - Makes the authority of @rack in the folder @dir. Returns 0 or -errno. */
int bl_pki_init(const char *dir, const char *rack, unsigned int days, struct bl_err *err);

/**
 * bl_pki_issue - Makes a key and a certificate in @dir. Returns 0 or -errno; -EEXIST: there are
 * such files, or another certificate in @dir has the node id; -EPERM: nodes and members of etcd
 * would have one authority, or the folder is open to others.
 */
int bl_pki_issue(const char *dir, const struct bl_pki_req *q, struct bl_err *err);

/** bl_pki_renew - Replaces the certificate @name by one with new dates. Returns 0 or -errno. */
int bl_pki_renew(const char *dir, const char *name, unsigned int days, struct bl_err *err);

/** bl_pki_read - Reads the certificate @name of @dir. Returns 0 or -errno. */
int bl_pki_read(const char *dir, const char *name, struct bl_pki_info *i, struct bl_err *err);

/**
 * bl_pki_each - Calls @fn for each certificate of @dir in the order of the names, until it returns
 * another value than 0. Returns that, or 0, or -errno.
 */
int bl_pki_each(const char *dir,
		int (*fn)(void *ctx, const char *name, const struct bl_pki_info *i), void *ctx,
		struct bl_err *err);

#endif
