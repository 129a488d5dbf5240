// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See pki.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/gnutls.h"
#include "proto/pki.h"

#define PATH_SIZE 512
#define DAY_S     86400
/* A machine whose clock is behind by less than this accepts a new certificate at once. */
#define EARLY_S 3600

static int fail_tls(struct bl_err *err, int rc, const char *what, const char *path)
{
	return bl_fail(err, EIO, "%s %s: %s", what, path, gnutls_strerror(rc));
}

static int path_of(char path[PATH_SIZE], const char *dir, const char *name, const char *ending,
		   struct bl_err *err)
{
	return snprintf(path, PATH_SIZE, "%s/%s%s", dir, name, ending) < PATH_SIZE
		       ? 0
		       : bl_fail(err, ENAMETOOLONG, "the path of the folder %s is too long", dir);
}

/* ---- files ---- */

/* Writes a file that must not exist. */
static int write_new(const char *path, const gnutls_datum_t *pem, mode_t mode, struct bl_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), e = 0;
	size_t done = 0;

	if (fd < 0 && errno == EEXIST)
		return bl_fail(err, EEXIST,
			       "%s exists already; `barline pki renew` gives a certificate new "
			       "dates",
			       path);
	if (fd < 0)
		return bl_fail(err, errno, "cannot make %s: %s", path, strerror(errno));
	/* whatever the umask is */
	if (fchmod(fd, mode))
		e = errno;
	while (!e && done < pem->size) {
		ssize_t n = write(fd, pem->data + done, pem->size - done);

		if (n < 0 && errno != EINTR)
			e = errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (!e && fsync(fd))
		e = errno;
	if (close(fd) && !e)
		e = errno;
	if (e)
		unlink(path);
	return e ? bl_fail(err, e, "cannot write %s: %s", path, strerror(e)) : 0;
}

static int write_key(const char *path, gnutls_x509_privkey_t key, struct bl_err *err)
{
	gnutls_datum_t pem = { 0 };
	int rc = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem);

	rc = rc < 0 ? fail_tls(err, rc, "cannot make", path) : write_new(path, &pem, 0600, err);
	if (pem.data)
		gnutls_memset(pem.data, 0, pem.size);
	gnutls_free(pem.data);
	return rc;
}

static int write_cert(const char *path, gnutls_x509_crt_t crt, struct bl_err *err)
{
	gnutls_datum_t pem = { 0 };
	int rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);

	rc = rc < 0 ? fail_tls(err, rc, "cannot make", path) : write_new(path, &pem, 0644, err);
	gnutls_free(pem.data);
	return rc;
}

static int load_cert(gnutls_x509_crt_t *crt, const char *path, struct bl_err *err)
{
	gnutls_datum_t pem = { 0 };
	int rc = gnutls_x509_crt_init(crt);

	if (rc < 0) {
		*crt = NULL;
		return bl_fail(err, ENOMEM, "out of memory");
	}
	rc = gnutls_load_file(path, &pem);
	if (rc >= 0)
		rc = gnutls_x509_crt_import(*crt, &pem, GNUTLS_X509_FMT_PEM);
	gnutls_free(pem.data);
	return rc < 0 ? fail_tls(err, rc, "cannot read the certificate", path) : 0;
}

static int load_key(gnutls_x509_privkey_t *key, const char *path, struct bl_err *err)
{
	gnutls_datum_t pem = { 0 };
	int rc = gnutls_x509_privkey_init(key);

	if (rc < 0) {
		*key = NULL;
		return bl_fail(err, ENOMEM, "out of memory");
	}
	rc = gnutls_load_file(path, &pem);
	if (rc >= 0)
		rc = gnutls_x509_privkey_import(*key, &pem, GNUTLS_X509_FMT_PEM);
	if (pem.data)
		gnutls_memset(pem.data, 0, pem.size);
	gnutls_free(pem.data);
	return rc < 0 ? fail_tls(err, rc, "cannot read the key", path) : 0;
}

/* ---- the authority ---- */

/** struct authority - ca.pem and ca.key of a folder. */
struct authority {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
	struct bl_ident who;
};

static void close_authority(struct authority *a)
{
	if (a->crt)
		gnutls_x509_crt_deinit(a->crt);
	if (a->key)
		gnutls_x509_privkey_deinit(a->key);
}

/* The keys are only as safe as the folder. The library is needed for all that follows. */
static int check_folder(const char *dir, struct bl_err *err)
{
	struct stat st;
	int rc = bl_library_load(BL_LIBRARY_GNUTLS, err);

	if (rc)
		return rc;
	if (stat(dir, &st))
		return bl_fail(err, errno, "%s: %s; `barline pki init --rack NAME` makes it", dir,
			       strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return bl_fail(err, ENOTDIR, "%s is not a folder", dir);
	if (st.st_mode & 077)
		return bl_fail(err, EPERM,
			       "the folder %s is open to other users (mode %03o); chmod 700 %s",
			       dir, (unsigned int)st.st_mode & 0777, dir);
	return 0;
}

static int open_authority(struct authority *a, const char *dir, struct bl_err *err)
{
	char path[PATH_SIZE];
	int rc = check_folder(dir, err);

	memset(a, 0, sizeof(*a));
	if (!rc)
		rc = path_of(path, dir, "ca", ".pem", err);
	if (!rc && access(path, F_OK))
		return bl_fail(err, ENOENT,
			       "there is no authority in %s; `barline pki init --rack NAME` makes "
			       "one",
			       dir);
	if (!rc)
		rc = load_cert(&a->crt, path, err);
	if (!rc && (bl_ident_of_cert(&a->who, a->crt) || a->who.role != BL_IDENT_CA))
		rc = bl_fail(err, EINVAL, "%s is not the certificate of a rack's authority", path);
	if (!rc)
		rc = path_of(path, dir, "ca", ".key", err);
	if (!rc)
		rc = load_key(&a->key, path, err);
	if (rc)
		close_authority(a);
	return rc;
}

static int make_key(gnutls_x509_privkey_t *key, struct bl_err *err)
{
	int rc = gnutls_x509_privkey_init(key);

	if (rc < 0)
		*key = NULL;
	else
		rc = gnutls_x509_privkey_generate(
			*key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	return rc < 0 ? bl_fail(err, EIO, "cannot make a key: %s", gnutls_strerror(rc)) : 0;
}

/* ---- certificates ---- */

static int put_addr(gnutls_x509_crt_t crt, const char *addr)
{
	unsigned char ip[16];
	unsigned int n = inet_pton(AF_INET, addr, ip) == 1    ? 4
			 : inet_pton(AF_INET6, addr, ip) == 1 ? 16
							      : 0;

	return n ? gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, n,
							GNUTLS_FSAN_APPEND)
		 : gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, addr,
							(unsigned int)strlen(addr),
							GNUTLS_FSAN_APPEND);
}

/* Puts who @who is, and what the certificate is good for, into @crt. */
static int put_identity(gnutls_x509_crt_t crt, const struct bl_ident *who, const char *cn)
{
	bool ca = who->role == BL_IDENT_CA, server = !ca && who->role != BL_IDENT_NODE;
	char uri[BL_IDENT_TEXT_MAX];
	int rc;

	bl_ident_format(who, uri);
	rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, cn,
					   (unsigned int)strlen(cn));
	if (rc >= 0)
		rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
						   who->rack, (unsigned int)strlen(who->rack));
	if (rc >= 0)
		rc = gnutls_x509_crt_set_subject_alt_name(
			crt, GNUTLS_SAN_URI, uri, (unsigned int)strlen(uri), GNUTLS_FSAN_SET);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_basic_constraints(crt, ca, ca ? 0 : -1);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key_usage(crt, ca ? GNUTLS_KEY_KEY_CERT_SIGN |
									GNUTLS_KEY_CRL_SIGN
							   : GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (rc >= 0 && server)
		rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	/* A controller is a client of etcd, and so is a member of etcd of the others. */
	if (rc >= 0 && !ca)
		rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
	return rc;
}

/* Gives @crt a serial number, dates, and the signature of @ca_key. */
static int sign_cert(gnutls_x509_crt_t crt, unsigned int days, gnutls_x509_crt_t ca,
		     gnutls_x509_privkey_t ca_key)
{
	unsigned char serial[16];
	time_t now = time(NULL);
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] &= 0x7f; /* positive, as RFC 5280 wants it */
	serial[0] |= 0x40;
	if (rc >= 0)
		rc = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
	if (rc >= 0)
		rc = gnutls_x509_crt_set_version(crt, 3);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_activation_time(crt, now - EARLY_S);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_expiration_time(crt, now + (time_t)days * DAY_S);
	return rc < 0 ? rc : gnutls_x509_crt_sign2(crt, ca, ca_key, GNUTLS_DIG_SHA256, 0);
}

static int check_days(unsigned int days, struct bl_err *err)
{
	return days && days <= BL_PKI_DAYS_MAX
		       ? 0
		       : bl_fail(err, EINVAL, "%u days: 1 to %d", days, BL_PKI_DAYS_MAX);
}

static int check_name(const char *name, const char *what, struct bl_err *err)
{
	return bl_ident_name_ok(name) ? 0
				      : bl_fail(err, EINVAL,
						"\"%s\" cannot be the name of a %s: at most 47 "
						"letters, digits, "
						"'.', '-' and '_', and no '.' or '-' at the "
						"beginning",
						name, what);
}

int bl_pki_init(const char *dir, const char *rack, unsigned int days, struct bl_err *err)
{
	struct bl_ident who = { .role = BL_IDENT_CA };
	char cert[PATH_SIZE], file[PATH_SIZE], cn[64];
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t crt = NULL;
	int rc = check_name(rack, "rack", err);

	if (!rc)
		rc = check_days(days, err);
	if (!rc)
		rc = path_of(cert, dir, "ca", ".pem", err);
	if (!rc)
		rc = path_of(file, dir, "ca", ".key", err);
	if (rc)
		return rc;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return bl_fail(err, errno, "cannot make the folder %s: %s", dir, strerror(errno));
	rc = check_folder(dir, err);
	if (!rc && (!access(cert, F_OK) || !access(file, F_OK)))
		rc = bl_fail(err, EEXIST,
			     "there is an authority in %s already: what it issued would be worth "
			     "nothing; choose another folder with --dir",
			     dir);
	if (!rc)
		rc = make_key(&key, err);
	if (rc)
		goto out;
	snprintf(who.rack, sizeof(who.rack), "%s", rack);
	snprintf(cn, sizeof(cn), "barline %s", rack);
	rc = gnutls_x509_crt_init(&crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key(crt, key);
	if (rc >= 0)
		rc = put_identity(crt, &who, cn);
	if (rc >= 0)
		rc = sign_cert(crt, days, crt, key);
	rc = rc < 0 ? fail_tls(err, rc, "cannot make", cert) : write_key(file, key, err);
	if (!rc) {
		rc = write_cert(cert, crt, err);
		if (rc)
			unlink(file);
	}
out:
	if (crt)
		gnutls_x509_crt_deinit(crt);
	if (key)
		gnutls_x509_privkey_deinit(key);
	return rc;
}

/** struct same - Looks for a certificate with the identity @who. */
struct same {
	const struct bl_ident *who;
	char name[64];
};

static int find_same(void *ctx, const char *name, const struct bl_pki_info *i)
{
	struct same *s = ctx;

	if (!i->ours || i->who.role != s->who->role || i->who.node != s->who->node ||
	    strcmp(i->who.name, s->who->name))
		return 0;
	snprintf(s->name, sizeof(s->name), "%s", name);
	return 1;
}

/** struct apart - Looks for a certificate with the role @role. */
struct apart {
	enum bl_ident_role role;
	char name[64];
};

static int find_role(void *ctx, const char *name, const struct bl_pki_info *i)
{
	struct apart *a = ctx;

	if (!i->ours || i->who.role != a->role)
		return 0;
	snprintf(a->name, sizeof(a->name), "%s", name);
	return 1;
}

/*
 * etcd obeys every certificate of its authority. The option that would tell a node's from a
 * controller's, --client-cert-allowed-hostname, stops etcd's own JSON gateway, which presents a
 * certificate to its server (tried with etcd 3.4.23; etcd issue 15755).
 */
static int check_apart(const char *dir, enum bl_ident_role role, struct bl_err *err)
{
	struct apart apart = { .role = role == BL_IDENT_NODE ? BL_IDENT_ETCD : BL_IDENT_NODE };
	int rc = role == BL_IDENT_CONTROLLER ? 0 : bl_pki_each(dir, find_role, &apart, err);

	if (rc <= 0)
		return rc;
	return bl_fail(err, EPERM,
		       "the authority in %s has issued %s.pem to a %s, and etcd obeys every "
		       "certificate of its authority, a node's, too: make another one for etcd and "
		       "its controllers: `barline pki init --dir DIR --rack NAME`",
		       dir, apart.name, role == BL_IDENT_NODE ? "member of etcd" : "node");
}

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Whether @addr is an IP address, or may be a DNS name: a URL or a port are a likely mistake. */
static bool addr_ok(const char *addr)
{
	unsigned char ip[16];
	size_t n = strlen(addr);

	if (inet_pton(AF_INET, addr, ip) == 1 || inet_pton(AF_INET6, addr, ip) == 1)
		return true;
	/* Digits and dots alone are a mistyped IP address. */
	return n && n < 254 && strspn(addr, ALNUM ".-") == n && strspn(addr, "0123456789.") < n &&
	       strspn(addr, ALNUM) && strspn(addr + n - 1, ALNUM);
}

static int check_addrs(const struct bl_pki_req *q, struct bl_err *err)
{
	unsigned int k;

	if (q->role == BL_IDENT_ETCD && !q->naddrs)
		return bl_fail(err, EINVAL,
			       "a member of etcd is known by the address in its URL: --address "
			       "ADDR, as often as it has one");
	for (k = 0; k < q->naddrs; k++)
		if (!addr_ok(q->addr[k]))
			return bl_fail(err, EINVAL,
				       "address \"%s\": an IP address or a DNS name, without "
				       "https:// and port",
				       q->addr[k]);
	return 0;
}

static int check_request(const char *dir, const struct bl_pki_req *q, const struct bl_ident *who,
			 struct bl_err *err)
{
	struct same same = { .who = who };
	int rc = check_addrs(q, err);

	if (rc)
		return rc;

	if (!strcmp(q->name, "ca"))
		return bl_fail(err, EINVAL, "the name ca is taken by the authority");
	if (q->role == BL_IDENT_NODE && !q->node)
		return bl_fail(err, EINVAL,
			       "a node's certificate needs its id, 1 or more: --id N, as node_id "
			       "in the node's file");
	if (q->role != BL_IDENT_NODE && q->node)
		return bl_fail(err, EINVAL, "only nodes have an id; leave --id out");
	rc = check_apart(dir, q->role, err);
	if (!rc)
		rc = bl_pki_each(dir, find_same, &same, err);
	if (rc <= 0)
		return rc;
	return bl_fail(err, EEXIST,
		       "%s.pem has this identity already; `barline pki renew %s` gives it new "
		       "dates, "
		       "and another node needs another --id",
		       same.name, same.name);
}

int bl_pki_issue(const char *dir, const struct bl_pki_req *q, struct bl_err *err)
{
	const char *cn = q->role == BL_IDENT_NODE ? q->name : BL_PKI_CONTROL_CN;
	struct bl_ident who = { .role = q->role, .node = q->node };
	char cert[PATH_SIZE], file[PATH_SIZE];
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t crt = NULL;
	struct authority a;
	unsigned int k;
	int rc = check_name(q->name, "certificate", err);

	if (!rc && q->role == BL_IDENT_NODE && !strcmp(q->name, BL_PKI_CONTROL_CN))
		rc = bl_fail(err, EINVAL,
			     "a node cannot be called %s: that is the name of controllers",
			     q->name);
	if (!rc)
		rc = check_days(q->days, err);
	if (!rc)
		rc = path_of(cert, dir, q->name, ".pem", err);
	if (!rc)
		rc = path_of(file, dir, q->name, ".key", err);
	if (!rc)
		rc = open_authority(&a, dir, err);
	if (rc)
		return rc;
	memcpy(who.rack, a.who.rack, sizeof(who.rack));
	if (q->role != BL_IDENT_NODE)
		snprintf(who.name, sizeof(who.name), "%s", q->name);
	rc = check_request(dir, q, &who, err);
	/* A certificate whose key is lost, or the other way round, is not taken up. */
	if (!rc && (!access(cert, F_OK) || !access(file, F_OK)))
		rc = bl_fail(err, EEXIST,
			     "%s exists already; `barline pki renew %s` gives it new dates",
			     access(cert, F_OK) ? file : cert, q->name);
	if (!rc)
		rc = make_key(&key, err);
	if (rc)
		goto out;
	rc = gnutls_x509_crt_init(&crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key(crt, key);
	if (rc >= 0)
		rc = put_identity(crt, &who, cn);
	for (k = 0; rc >= 0 && k < q->naddrs; k++)
		rc = put_addr(crt, q->addr[k]);
	if (rc >= 0)
		rc = sign_cert(crt, q->days, a.crt, a.key);
	rc = rc < 0 ? fail_tls(err, rc, "cannot make", cert) : write_key(file, key, err);
	if (!rc) {
		rc = write_cert(cert, crt, err);
		if (rc)
			unlink(file);
	}
out:
	if (crt)
		gnutls_x509_crt_deinit(crt);
	if (key)
		gnutls_x509_privkey_deinit(key);
	close_authority(&a);
	return rc;
}

/* Copies the addresses of @from to @to, behind the identity. */
static int copy_addrs(gnutls_x509_crt_t to, gnutls_x509_crt_t from)
{
	char name[256];
	unsigned int k;
	int rc = 0;

	for (k = 0; rc >= 0; k++) {
		size_t len = sizeof(name);
		int type = gnutls_x509_crt_get_subject_alt_name(from, k, name, &len, NULL);

		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return 0;
		if (type < 0)
			return type;
		if (type == GNUTLS_SAN_IPADDRESS || type == GNUTLS_SAN_DNSNAME)
			rc = gnutls_x509_crt_set_subject_alt_name(
				to, (gnutls_x509_subject_alt_name_t)type, name, (unsigned int)len,
				GNUTLS_FSAN_APPEND);
	}
	return rc;
}

int bl_pki_renew(const char *dir, const char *name, unsigned int days, struct bl_err *err)
{
	char cert[PATH_SIZE], file[PATH_SIZE], next[PATH_SIZE], cn[64];
	gnutls_x509_crt_t old = NULL, crt = NULL;
	gnutls_x509_privkey_t key = NULL;
	size_t len = sizeof(cn);
	struct authority a;
	struct bl_ident who;
	int rc = check_name(name, "certificate", err);

	if (!rc)
		rc = check_days(days, err);
	if (!rc && !strcmp(name, "ca"))
		rc = bl_fail(err, EINVAL,
			     "a new authority needs new certificates of all; make it in another "
			     "folder: `barline pki init --dir DIR --rack NAME`");
	if (!rc)
		rc = path_of(cert, dir, name, ".pem", err);
	if (!rc)
		rc = path_of(file, dir, name, ".key", err);
	if (!rc)
		rc = path_of(next, dir, name, ".pem.new", err);
	if (!rc)
		rc = open_authority(&a, dir, err);
	if (rc)
		return rc;
	if (access(cert, F_OK))
		rc = bl_fail(err, ENOENT, "%s does not exist; `barline pki issue` makes it", cert);
	if (!rc)
		rc = load_cert(&old, cert, err);
	if (!rc)
		rc = load_key(&key, file, err);
	if (!rc && (bl_ident_of_cert(&who, old) || who.role == BL_IDENT_NONE ||
		    strcmp(who.rack, a.who.rack)))
		rc = bl_fail(err, EINVAL,
			     "%s has no identity of this rack; `barline pki issue` "
			     "makes a new one",
			     cert);
	if (rc)
		goto out;
	rc = gnutls_x509_crt_get_dn_by_oid(old, GNUTLS_OID_X520_COMMON_NAME, 0, 0, cn, &len);
	if (rc >= 0)
		rc = gnutls_x509_crt_init(&crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key(crt, key);
	if (rc >= 0)
		rc = put_identity(crt, &who, cn);
	if (rc >= 0)
		rc = copy_addrs(crt, old);
	if (rc >= 0)
		rc = sign_cert(crt, days, a.crt, a.key);
	unlink(next); /* of a call that was interrupted */
	rc = rc < 0 ? fail_tls(err, rc, "cannot make", cert) : write_cert(next, crt, err);
	if (!rc && rename(next, cert))
		rc = bl_fail(err, errno, "cannot replace %s: %s", cert, strerror(errno));
out:
	if (old)
		gnutls_x509_crt_deinit(old);
	if (crt)
		gnutls_x509_crt_deinit(crt);
	if (key)
		gnutls_x509_privkey_deinit(key);
	close_authority(&a);
	return rc;
}

/* ---- reading ---- */

static int read_info(struct bl_pki_info *i, const char *path, gnutls_x509_crt_t ca,
		     struct bl_err *err)
{
	unsigned char serial[20];
	size_t len = sizeof(serial), k;
	unsigned int verdict = ~0U;
	gnutls_x509_crt_t crt;
	int rc = load_cert(&crt, path, err);

	memset(i, 0, sizeof(*i));
	if (!rc) {
		bl_ident_of_cert(&i->who, crt);
		i->from = gnutls_x509_crt_get_activation_time(crt);
		i->until = gnutls_x509_crt_get_expiration_time(crt);
		if (gnutls_x509_crt_get_serial(crt, serial, &len) >= 0)
			for (k = 0; k < len; k++)
				snprintf(i->serial + 2 * k, 3, "%02x", serial[k]);
		/* Dates are shown, and do not decide whose it is. */
		i->ours = gnutls_x509_crt_verify(crt, &ca, 1,
						 GNUTLS_VERIFY_DISABLE_TIME_CHECKS |
							 GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS,
						 &verdict) >= 0 &&
			  !verdict;
	}
	if (crt)
		gnutls_x509_crt_deinit(crt);
	return rc;
}

int bl_pki_read(const char *dir, const char *name, struct bl_pki_info *i, struct bl_err *err)
{
	char path[PATH_SIZE];
	struct authority a;
	int rc = path_of(path, dir, name, ".pem", err);

	if (!rc)
		rc = open_authority(&a, dir, err);
	if (rc)
		return rc;
	rc = read_info(i, path, a.crt, err);
	close_authority(&a);
	return rc;
}

int bl_pki_each(const char *dir,
		int (*fn)(void *ctx, const char *name, const struct bl_pki_info *i), void *ctx,
		struct bl_err *err)
{
	char pattern[PATH_SIZE], name[64];
	struct bl_pki_info info;
	struct authority a;
	glob_t files = { 0 };
	size_t k;
	int rc = path_of(pattern, dir, "*", ".pem", err);

	if (!rc)
		rc = open_authority(&a, dir, err);
	if (rc)
		return rc;
	if (glob(pattern, 0, NULL, &files))
		rc = bl_fail(err, EIO, "cannot list the folder %s", dir);
	for (k = 0; k < files.gl_pathc && !rc; k++) {
		const char *base = strrchr(files.gl_pathv[k], '/') + 1;
		size_t n = strlen(base) - strlen(".pem");

		if (n >= sizeof(name) || read_info(&info, files.gl_pathv[k], a.crt, err))
			continue; /* not one of ours */
		memcpy(name, base, n);
		name[n] = 0;
		rc = fn(ctx, name, &info);
	}
	globfree(&files);
	close_authority(&a);
	return rc;
}
