// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See link_keys.h. */
#include "proto/link_keys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/gnutls.h"
#include "base/yaml.h"
#include "maps/auth_abi.h"

#define OVERLAP_MAX_S 86400
#define KEYS_MODE     0600

/* ---- reading ---- */

/* Refuses a file that others than its owner can read or write. */
static int check_mode(const char *path, struct bl_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return bl_fail(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (st.st_mode & 077)
		return bl_fail(err, EPERM,
			       "%s has keys, and others than its owner can read it (mode %03o); "
			       "`chmod 600 %s`",
			       path, st.st_mode & 0777, path);
	return 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Reads exactly @len bytes in hex digits. */
static void read_hex(struct bl_yaml *y, yaml_node_t *map, const char *key, uint8_t *to, size_t len)
{
	const char *text;
	size_t k;

	bl_yaml_need(y, map, key);
	text = bl_yaml_text(y, map, key, 2 * len);
	if (!text)
		return;
	for (k = 0; k < len && strlen(text) == 2 * len; k++) {
		int hi = hex_digit(text[2 * k]), lo = hex_digit(text[2 * k + 1]);

		if (hi < 0 || lo < 0)
			break;
		to[k] = (uint8_t)(hi << 4 | lo);
	}
	if (k < len)
		bl_yaml_refuse(y, map, key, "%s: %zu hex digits are needed", key, 2 * len);
}

/* Reads number and beginning of an epoch, which must be above those of the one before it. */
static void read_epoch(struct bl_yaml *y, yaml_node_t *map, uint32_t *epoch, uint64_t *from_s,
		       uint32_t last_epoch, uint64_t last_from_s)
{
	int64_t v = 0, from = 0;

	bl_yaml_need(y, map, "epoch");
	bl_yaml_need(y, map, "from");
	bl_yaml_number(y, map, "epoch", 1, BL_AUTH_EPOCH_MAX, &v);
	bl_yaml_number(y, map, "from", 0, INT64_MAX / 1000000000, &from);
	*epoch = (uint32_t)v;
	*from_s = (uint64_t)from;
	if (!y->rc && last_epoch && (*epoch <= last_epoch || *from_s < last_from_s))
		bl_yaml_refuse(y, map, "epoch",
			       "epoch %u from %" PRIu64 ": epochs are listed in rising order, and "
			       "each begins after the one before it",
			       *epoch, *from_s);
}

static uint32_t read_overlap(struct bl_yaml *y)
{
	int64_t v = BL_LINK_OVERLAP_S;

	bl_yaml_number(y, y->root, "overlap_s", 1, OVERLAP_MAX_S, &v);
	return (uint32_t)v;
}

static void read_link(struct bl_yaml *y, yaml_node_t *item, struct bl_link *l)
{
	static const char *const keys[] = { "peer", "port", "epochs", NULL };
	static const char *const epoch_keys[] = { "epoch", "from", "send", "receive", NULL };
	yaml_node_t *list, *at;
	const char *port;
	unsigned int k;

	bl_yaml_keys(y, item, keys);
	bl_yaml_need(y, item, "peer");
	bl_yaml_need(y, item, "epochs");
	l->peer = bl_yaml_u32(y, item, "peer");
	if (!y->rc && !l->peer)
		bl_yaml_refuse(y, item, "peer", "peer 0: node ids begin at 1");
	port = bl_yaml_text(y, item, "port", sizeof(l->port) - 1);
	if (port)
		snprintf(l->port, sizeof(l->port), "%s", port);
	l->n = bl_yaml_list(y, item, "epochs", BL_LINK_EPOCHS, &list);
	for (k = 0; k < l->n && !y->rc; k++) {
		struct bl_link_epoch *e = &l->at[k];

		at = bl_yaml_item(y, list, k);
		bl_yaml_keys(y, at, epoch_keys);
		read_epoch(y, at, &e->epoch, &e->from_s, k ? e[-1].epoch : 0, k ? e[-1].from_s : 0);
		read_hex(y, at, "send", e->send, sizeof(e->send));
		read_hex(y, at, "receive", e->receive, sizeof(e->receive));
		if (!y->rc && !memcmp(e->send, e->receive, sizeof(e->send)))
			bl_yaml_refuse(y, at, "send",
				       "send and receive are the same key: a frame could be "
				       "reflected");
	}
}

int bl_link_file_load(struct bl_link_file *f, const char *path, struct bl_err *err)
{
	static const char *const keys[] = { "node", "overlap_s", "links", NULL };
	yaml_node_t *list;
	struct bl_yaml y;
	unsigned int k, j;
	int rc = check_mode(path, err);

	memset(f, 0, sizeof(*f));
	if (rc)
		return rc;
	if (!bl_yaml_open(&y, path, err)) {
		bl_yaml_keys(&y, y.root, keys);
		bl_yaml_need(&y, y.root, "node");
		bl_yaml_need(&y, y.root, "links");
		f->node = bl_yaml_u32(&y, y.root, "node");
		f->overlap_s = read_overlap(&y);
		f->n = bl_yaml_list(&y, y.root, "links", BL_LINKS_MAX, &list);
		for (k = 0; k < f->n && !y.rc; k++) {
			read_link(&y, bl_yaml_item(&y, list, k), &f->link[k]);
			for (j = 0; j < k; j++)
				if (!strcmp(f->link[j].port, f->link[k].port))
					bl_yaml_refuse(&y, bl_yaml_item(&y, list, k), "port",
						       "port %s is listed twice: a link has one "
						       "other end",
						       f->link[k].port);
		}
	}
	return bl_yaml_close(&y);
}

int bl_rack_file_load(struct bl_rack_file *f, const char *path, struct bl_err *err)
{
	static const char *const keys[] = { "overlap_s", "epochs", NULL };
	static const char *const epoch_keys[] = { "epoch", "from", "secret", NULL };
	yaml_node_t *list, *at;
	struct bl_yaml y;
	unsigned int k;
	int rc = check_mode(path, err);

	memset(f, 0, sizeof(*f));
	if (rc)
		return rc;
	if (!bl_yaml_open(&y, path, err)) {
		bl_yaml_keys(&y, y.root, keys);
		bl_yaml_need(&y, y.root, "epochs");
		f->overlap_s = read_overlap(&y);
		f->n = bl_yaml_list(&y, y.root, "epochs", BL_LINK_EPOCHS, &list);
		for (k = 0; k < f->n && !y.rc; k++) {
			at = bl_yaml_item(&y, list, k);
			bl_yaml_keys(&y, at, epoch_keys);
			read_epoch(&y, at, &f->at[k].epoch, &f->at[k].from_s,
				   k ? f->at[k - 1].epoch : 0, k ? f->at[k - 1].from_s : 0);
			read_hex(&y, at, "secret", f->at[k].secret, sizeof(f->at[k].secret));
		}
	}
	return bl_yaml_close(&y);
}

/* ---- writing ---- */

static void print_hex(FILE *f, const uint8_t *v, size_t len)
{
	size_t k;

	for (k = 0; k < len; k++)
		fprintf(f, "%02x", v[k]);
}

/* Opens a new file beside @path, for its owner alone. @tmp: gets its name. */
static FILE *open_beside(const char *path, char *tmp, size_t size, struct bl_err *err)
{
	FILE *f;
	int fd;

	snprintf(tmp, size, "%s.%ld.new", path, (long)getpid());
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, KEYS_MODE);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		bl_fail(err, errno, "cannot write %s: %s", tmp, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	return f;
}

/* Puts the finished file in the place of @path. Returns 0 or -errno. */
static int replace(FILE *f, const char *tmp, const char *path, struct bl_err *err)
{
	int bad = ferror(f) || fflush(f) || fsync(fileno(f)), rc = errno;

	if (fclose(f) || bad || rename(tmp, path)) {
		rc = bad && rc ? rc : errno;
		unlink(tmp);
		return bl_fail(err, rc, "cannot write %s: %s", path, strerror(rc));
	}
	return 0;
}

int bl_link_file_write(const struct bl_link_file *file, const char *path, struct bl_err *err)
{
	unsigned int k, j;
	char tmp[4096];
	FILE *f = open_beside(path, tmp, sizeof(tmp), err);

	if (!f)
		return -EIO;
	fprintf(f, "# Keys of the links of node %u: barlined.8, AUTHENTICATION\n", file->node);
	fprintf(f, "node: %u\noverlap_s: %u\nlinks:\n", file->node, file->overlap_s);
	for (k = 0; k < file->n; k++) {
		const struct bl_link *l = &file->link[k];

		fprintf(f, "  - peer: %u\n", l->peer);
		if (*l->port)
			fprintf(f, "    port: %s\n", l->port);
		fprintf(f, "    epochs:\n");
		for (j = 0; j < l->n; j++) {
			fprintf(f, "      - { epoch: %u, from: %" PRIu64 ", send: \"",
				l->at[j].epoch, l->at[j].from_s);
			print_hex(f, l->at[j].send, sizeof(l->at[j].send));
			fprintf(f, "\", receive: \"");
			print_hex(f, l->at[j].receive, sizeof(l->at[j].receive));
			fprintf(f, "\" }\n");
		}
	}
	return replace(f, tmp, path, err);
}

int bl_rack_file_write(const struct bl_rack_file *file, const char *path, struct bl_err *err)
{
	unsigned int k;
	char tmp[4096];
	FILE *f = open_beside(path, tmp, sizeof(tmp), err);

	if (!f)
		return -EIO;
	fprintf(f, "# Secrets of a rack's links: barline.1, `auth`. Keep this file in one "
		   "place.\n");
	fprintf(f, "overlap_s: %u\nepochs:\n", file->overlap_s);
	for (k = 0; k < file->n; k++) {
		fprintf(f, "  - { epoch: %u, from: %" PRIu64 ", secret: \"", file->at[k].epoch,
			file->at[k].from_s);
		print_hex(f, file->at[k].secret, sizeof(file->at[k].secret));
		fprintf(f, "\" }\n");
	}
	return replace(f, tmp, path, err);
}

/* ---- making keys ---- */

int bl_link_derive(const uint8_t secret[BL_LINK_SECRET_LEN], uint32_t epoch, uint32_t from,
		   uint32_t to, uint32_t number, uint8_t key[BL_LINK_KEY_LEN], struct bl_err *err)
{
	struct {
		char what[12];
		uint32_t v[4];
	} text = { .what = { 'b', 'a', 'r', 'l', 'i', 'n', 'e', ' ', 'l', 'i', 'n', 'k' },
		   .v = { htonl(epoch), htonl(from), htonl(to), htonl(number) } };
	uint8_t digest[32];
	int rc = bl_library_load(BL_LIBRARY_GNUTLS, err);

	if (rc)
		return rc;
	rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret, BL_LINK_SECRET_LEN, &text, sizeof(text),
			      digest);
	if (rc)
		return bl_fail(err, EIO, "cannot derive a key: %s", gnutls_strerror(rc));
	memcpy(key, digest, BL_LINK_KEY_LEN);
	explicit_bzero(digest, sizeof(digest));
	return 0;
}

int bl_rack_rotate(struct bl_rack_file *f, uint64_t from_s, struct bl_err *err)
{
	uint32_t epoch = f->n ? f->at[f->n - 1].epoch + 1 : 1;

	if (epoch > BL_AUTH_EPOCH_MAX)
		return bl_fail(err, ERANGE,
			       "epoch %u is the last one; make a new file with `barline auth init`",
			       BL_AUTH_EPOCH_MAX);
	if (f->n && from_s < f->at[f->n - 1].from_s)
		return bl_fail(err, EBUSY,
			       "epoch %u begins at %" PRIu64 " only; rotate again after that",
			       f->at[f->n - 1].epoch, f->at[f->n - 1].from_s);
	if (f->n == BL_LINK_EPOCHS) {
		f->at[0] = f->at[1];
		f->n--;
	}
	f->at[f->n].epoch = epoch;
	f->at[f->n].from_s = from_s;
	if (getrandom(f->at[f->n].secret, BL_LINK_SECRET_LEN, 0) != BL_LINK_SECRET_LEN)
		return bl_fail(err, errno, "getrandom: %s", strerror(errno));
	f->n++;
	return 0;
}

int bl_rack_issue(const struct bl_rack_file *rack, struct bl_link_file *f, uint32_t peer,
		  const char *port, uint32_t number, struct bl_err *err)
{
	struct bl_link *l = &f->link[f->n];
	unsigned int k;
	int rc = 0;

	if (f->n == BL_LINKS_MAX)
		return bl_fail(err, E2BIG, "node %u has more than %d links", f->node, BL_LINKS_MAX);
	if (peer == f->node)
		return bl_fail(err, EINVAL, "node %u has no link to itself", peer);
	for (k = 0; k < f->n; k++)
		if (!strcmp(f->link[k].port, port))
			return bl_fail(err, EEXIST, "two links at port \"%s\" of node %u", port,
				       f->node);
	memset(l, 0, sizeof(*l));
	l->peer = peer;
	snprintf(l->port, sizeof(l->port), "%s", port);
	l->n = rack->n;
	f->overlap_s = rack->overlap_s;
	for (k = 0; k < rack->n && !rc; k++) {
		l->at[k].epoch = rack->at[k].epoch;
		l->at[k].from_s = rack->at[k].from_s;
		rc = bl_link_derive(rack->at[k].secret, rack->at[k].epoch, f->node, peer, number,
				    l->at[k].send, err);
		if (!rc)
			rc = bl_link_derive(rack->at[k].secret, rack->at[k].epoch, peer, f->node,
					    number, l->at[k].receive, err);
	}
	f->n += !rc;
	return rc;
}
