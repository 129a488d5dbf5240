/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who a certificate belongs to. A certificate of `barline pki` has one URI among its subject
 * alternative names, which names the rack, the role, and the node id or the name:
 *
 *	barline://rack7/node/4			node 4; a client of controllers
 *	barline://rack7/controller/ctl1		a controller; a server for nodes, a client of etcd
 *	barline://rack7/etcd/etcd1		a member of etcd
 *	barline://rack7/ca			the authority
 *
 * Both ends of a session compare that with what they expect (proto/session.h): a node's certificate
 * is good for that node's id only, and never for a controller. Names of people and machines in a
 * certificate (CN, DNS) mean nothing here.
 */
#ifndef BARLINE_IDENT_H
#define BARLINE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/library/gnutls.h"
#include "base/log.h"

#define BL_IDENT_TEXT_MAX 128 /* bytes of the URI, with the final zero */

enum bl_ident_role {
	BL_IDENT_NONE, /* the certificate does not say: it is older than identities */
	BL_IDENT_NODE,
	BL_IDENT_CONTROLLER,
	BL_IDENT_ETCD,
	BL_IDENT_CA,
};

/** struct bl_ident - An identity. */
struct bl_ident {
	enum bl_ident_role role;
	uint32_t node; /* BL_IDENT_NODE: the node id; otherwise 0 */
	char rack[48]; /* letters, digits, '.', '-' and '_' */
	char name[48]; /* BL_IDENT_CONTROLLER, BL_IDENT_ETCD: which one; as @rack */
};

/** bl_ident_name_ok - Whether @name may be the name of a rack, a node or a controller. */
bool bl_ident_name_ok(const char *name);

/** bl_ident_format - Writes the URI of @i. */
void bl_ident_format(const struct bl_ident *i, char text[BL_IDENT_TEXT_MAX]);

/** bl_ident_parse - Reads a URI of @len bytes. Returns whether it is the URI of an identity. */
bool bl_ident_parse(struct bl_ident *i, const char *uri, size_t len);

/**
 * bl_ident_of_cert - Reads the identity in certificate @crt; a certificate without one has the role
 * BL_IDENT_NONE. Returns 0, or -EINVAL: it has more than one, or one that is malformed.
 */
int bl_ident_of_cert(struct bl_ident *i, gnutls_x509_crt_t crt);

/** bl_ident_of_file - The same for the first certificate in the PEM file @path. */
int bl_ident_of_file(struct bl_ident *i, const char *path, struct bl_err *err);

#endif
