// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See ident.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/ident.h"

#define SCHEME "barline://"

static const char *const roles[] = { [BL_IDENT_NODE] = "node",
				     [BL_IDENT_CONTROLLER] = "controller",
				     [BL_IDENT_ETCD] = "etcd",
				     [BL_IDENT_CA] = "ca" };

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '-' || c == '_';
}

bool bl_ident_name_ok(const char *name)
{
	size_t k, n = strlen(name);

	for (k = 0; k < n && is_name_byte(name[k]); k++)
		;
	return n && k == n && *name != '.' && *name != '-' &&
	       n < sizeof(((struct bl_ident *)0)->rack);
}

void bl_ident_format(const struct bl_ident *i, char text[BL_IDENT_TEXT_MAX])
{
	if (i->role == BL_IDENT_NONE)
		snprintf(text, BL_IDENT_TEXT_MAX, "(no identity)");
	else if (i->role == BL_IDENT_NODE)
		snprintf(text, BL_IDENT_TEXT_MAX, SCHEME "%s/node/%" PRIu32, i->rack, i->node);
	else if (i->role == BL_IDENT_CA)
		snprintf(text, BL_IDENT_TEXT_MAX, SCHEME "%s/ca", i->rack);
	else
		snprintf(text, BL_IDENT_TEXT_MAX, SCHEME "%s/%s/%s", i->rack, roles[i->role],
			 i->name);
}

/* Reads the word up to the next '/' or the end into @to, and moves *@at behind it. */
static bool read_word(const char **at, char *to, size_t size)
{
	size_t n = strcspn(*at, "/");

	if (!n || n >= size)
		return false;
	memcpy(to, *at, n);
	to[n] = 0;
	*at += n + ((*at)[n] == '/');
	return bl_ident_name_ok(to);
}

/* A node id has one spelling: digits without a leading zero. */
static bool read_node(const char *word, uint32_t *node)
{
	uint64_t v = 0;
	size_t k;

	for (k = 0; word[k] >= '0' && word[k] <= '9' && v <= UINT32_MAX; k++)
		v = v * 10 + (uint64_t)(word[k] - '0');
	*node = (uint32_t)v;
	return k && !word[k] && *word != '0' && v <= UINT32_MAX;
}

bool bl_ident_parse(struct bl_ident *i, const char *uri, size_t len)
{
	char text[BL_IDENT_TEXT_MAX], again[BL_IDENT_TEXT_MAX], role[16];
	const char *at = text + strlen(SCHEME);
	struct bl_ident v = { 0 };
	unsigned int k;

	memset(i, 0, sizeof(*i));
	if (len >= sizeof(text) || memchr(uri, 0, len))
		return false;
	memcpy(text, uri, len);
	text[len] = 0;
	if (strncmp(text, SCHEME, strlen(SCHEME)) || !read_word(&at, v.rack, sizeof(v.rack)) ||
	    !read_word(&at, role, sizeof(role)))
		return false;
	for (k = BL_IDENT_NODE; k <= BL_IDENT_CA && strcmp(role, roles[k]); k++)
		;
	v.role = (enum bl_ident_role)k;
	if (k > BL_IDENT_CA || (k != BL_IDENT_CA && !read_word(&at, v.name, sizeof(v.name))) ||
	    (k == BL_IDENT_NODE && !read_node(v.name, &v.node)))
		return false;
	if (k == BL_IDENT_NODE)
		*v.name = 0;
	/* There is one spelling of each identity. */
	bl_ident_format(&v, again);
	if (strcmp(text, again))
		return false;
	*i = v;
	return true;
}

int bl_ident_of_cert(struct bl_ident *i, gnutls_x509_crt_t crt)
{
	char uri[BL_IDENT_TEXT_MAX];
	unsigned int k, found = 0;
	int type;

	memset(i, 0, sizeof(*i));
	for (k = 0;; k++) {
		size_t len = sizeof(uri);

		type = gnutls_x509_crt_get_subject_alt_name(crt, k, uri, &len, NULL);
		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return 0;
		/* A name that is longer than any identity is not one, and may be anything else. */
		if (type == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue;
		if (type < 0)
			return -EINVAL;
		if (type != GNUTLS_SAN_URI || len < strlen(SCHEME) ||
		    strncmp(uri, SCHEME, strlen(SCHEME)))
			continue;
		if (found++ || !bl_ident_parse(i, uri, len)) {
			memset(i, 0, sizeof(*i));
			return -EINVAL;
		}
	}
}

int bl_ident_of_file(struct bl_ident *i, const char *path, struct bl_err *err)
{
	gnutls_datum_t pem = { 0 };
	gnutls_x509_crt_t crt = NULL;
	int rc = bl_library_load(BL_LIBRARY_GNUTLS, err);

	memset(i, 0, sizeof(*i));
	if (rc)
		return rc;
	rc = gnutls_load_file(path, &pem);
	if (rc >= 0)
		rc = gnutls_x509_crt_init(&crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM);
	if (rc < 0)
		rc = bl_fail(err, EINVAL, "cannot read the certificate %s: %s", path,
			     gnutls_strerror(rc));
	else if (bl_ident_of_cert(i, crt))
		rc = bl_fail(err, EINVAL, "the identity in the certificate %s is malformed", path);
	if (crt)
		gnutls_x509_crt_deinit(crt);
	gnutls_free(pem.data);
	return rc < 0 ? rc : 0;
}
