// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * proto/ident.c and proto/pki.c: identities have one spelling, whatever bytes a certificate has;
 * an authority gives each identity once, overwrites nothing, and its keys are its owner's alone.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/pki.h"

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/barline-pki-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- identities ---- */

static void ident__spellings(void **state)
{
	static const char *const good[] = { "barline://r/node/1",
					    "barline://rack-7.x/node/4294967295",
					    "barline://r/controller/ctl1", "barline://r/etcd/e",
					    "barline://r/ca" },
				 *const bad[] = {
					 "",
					 "barline://",
					 "barline://r",
					 "barline://r/",
					 "barline://r/node",
					 "barline://r/node/",
					 "barline://r/node/0",
					 "barline://r/node/01",
					 "barline://r/node/+1",
					 "barline://r/node/-1",
					 "barline://r/node/ 1",
					 "barline://r/node/4294967296",
					 "barline://r/node/18446744073709551617",
					 "barline://r/node/1/",
					 "barline://r/node/1/x",
					 "barline://r/nodes/1",
					 "barline://r/Node/1",
					 "barline://r/ca/",
					 "barline://r/ca/x",
					 "barline://r/controller/",
					 "barline://r/controller/a b",
					 "barline://r/controller/-a",
					 "barline://../node/1",
					 "barline:///node/1",
					 "BARLINE://r/node/1",
					 "xbarline://r/node/1",
					 "barline://"
					 "0123456789012345678901234567890123456789012345678/ca",
				 };
	char text[BL_IDENT_TEXT_MAX];
	struct bl_ident i;
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(good); k++) {
		assert_true(bl_ident_parse(&i, good[k], strlen(good[k])));
		bl_ident_format(&i, text);
		assert_string_equal(text, good[k]);
	}
	for (k = 0; k < ARRAY_SIZE(bad); k++)
		if (bl_ident_parse(&i, bad[k], strlen(bad[k])) || i.role != BL_IDENT_NONE)
			fail_msg("\"%s\" is an identity", bad[k]);
	/* a zero in the middle, behind which a reader of C's strings would see nothing */
	assert_false(bl_ident_parse(&i, "barline://r/node/1\0\0", 20));
	assert_true(bl_ident_parse(&i, "barline://r/node/17", 18) && i.node == 1);
}

/* Any bytes: what is an identity is written as it was read, and nothing is read beyond the end. */
static void ident__random(void **state)
{
	static const char bytes[] = "barline:/nodectlk0123456789.-_A\xff ";
	struct rnd r = rnd_seeded("identities");
	char text[BL_IDENT_TEXT_MAX];
	unsigned int k, n, found = 0;
	struct bl_ident i;

	(void)state;
	for (k = 0; k < 200000; k++) {
		size_t len = rnd_below(&r, 60);
		char *uri = malloc(len ? len : 1);

		for (n = 0; n < len; n++)
			uri[n] = bytes[rnd_below(&r, sizeof(bytes))];
		if (len > 12 && rnd_below(&r, 2))
			memcpy(uri, "barline://r/", 12);
		if (len > 17 && rnd_below(&r, 2))
			memcpy(uri, "barline://r/node/", 17);
		if (bl_ident_parse(&i, uri, len)) {
			found++;
			bl_ident_format(&i, text);
			assert_int_equal(strlen(text), len);
			assert_memory_equal(text, uri, len);
			assert_true((i.role == BL_IDENT_NODE) == (i.node != 0));
		}
		free(uri);
	}
	assert_true(found > 100);
}

/* ---- the authority ---- */

static mode_t mode_of(const char *name)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) ? 0 : st.st_mode & 0777;
}

static int issue(const char *name, enum bl_ident_role role, uint32_t node, struct bl_err *err)
{
	const struct bl_pki_req q = { .name = name,
				      .role = role,
				      .node = node,
				      .days = 30,
				      .addr = { "10.0.0.1", "store.example" },
				      .naddrs = role == BL_IDENT_ETCD ? 2 : 0 };

	return bl_pki_issue(dir, &q, err);
}

static void pki__issues_each_identity_once(void **state)
{
	struct bl_pki_info info;
	struct bl_err err;
	mode_t mask = umask(0);

	(void)state;
	assert_int_equal(issue("h4", BL_IDENT_NODE, 4, &err), -ENOENT);
	assert_non_null(strstr(err.text, "barline pki init"));
	assert_int_equal(bl_pki_init(dir, "r/7", 10, &err), -EINVAL);
	assert_int_equal(bl_pki_init(dir, "r7", 0, &err), -EINVAL);
	assert_int_equal(bl_pki_init(dir, "r7", 10, &err), 0);
	assert_int_equal(mode_of("ca.key"), 0600);
	assert_int_equal(bl_pki_init(dir, "r7", 10, &err), -EEXIST);
	assert_int_equal(issue("h4", BL_IDENT_NODE, 4, &err), 0);
	assert_int_equal(mode_of("h4.key"), 0600);
	umask(mask);
	assert_int_equal(bl_pki_read(dir, "h4", &info, &err), 0);
	assert_true(info.ours && info.who.role == BL_IDENT_NODE && info.who.node == 4);
	assert_string_equal(info.who.rack, "r7");
	assert_true(info.from < time(NULL) && info.until > time(NULL) + 29 * 86400);
	assert_int_equal(issue("h4", BL_IDENT_NODE, 5, &err), -EEXIST);
	assert_non_null(strstr(err.text, "barline pki renew h4"));
	assert_int_equal(issue("h5", BL_IDENT_NODE, 4, &err), -EEXIST);
	assert_non_null(strstr(err.text, "h4.pem has this identity"));
	assert_int_equal(issue("h5", BL_IDENT_NODE, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--id N"));
	assert_int_equal(issue("ctl", BL_IDENT_CONTROLLER, 4, &err), -EINVAL);
	assert_int_equal(issue("ca", BL_IDENT_CONTROLLER, 0, &err), -EINVAL);
	assert_int_equal(issue("../x", BL_IDENT_CONTROLLER, 0, &err), -EINVAL);
	assert_int_equal(issue(BL_PKI_CONTROL_CN, BL_IDENT_NODE, 7, &err), -EINVAL);
	assert_int_equal(issue("ctl", BL_IDENT_CONTROLLER, 0, &err), 0);
	/* etcd obeys every certificate of its authority. */
	assert_int_equal(issue("e1", BL_IDENT_ETCD, 0, &err), -EPERM);
	assert_non_null(strstr(err.text, "h4.pem to a node"));
	assert_non_null(strstr(err.text, "barline pki init --dir"));
	/* A key without its certificate is not taken up. */
	assert_int_equal(issue("h6", BL_IDENT_NODE, 6, &err), 0);
	{
		char path[160];

		snprintf(path, sizeof(path), "%s/h6.pem", dir);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(issue("h6", BL_IDENT_NODE, 6, &err), -EEXIST);
	assert_int_equal(chmod(dir, 0750), 0);
	assert_int_equal(issue("h8", BL_IDENT_NODE, 8, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 700"));
	assert_int_equal(chmod(dir, 0700), 0);
}

/* What a URL of etcd may have as its host is an address; the rest of the URL is refused. */
static void pki__addresses_of_etcd(void **state)
{
	static const char *const good[] = { "10.0.0.1", "fd00::1", "e1", "1e.2-x.example" };
	static const char *const bad[] = {
		"",    "10.0.0.1:2379", "10.0.0.256", "https://10.0.0.1", "[fd00::1]",
		"-e1", "e1.",           "e 1",        "*.example"
	};
	struct bl_pki_req q = { .name = "e1", .role = BL_IDENT_ETCD, .days = 1 };
	struct bl_err err;
	size_t k;

	(void)state;
	assert_int_equal(bl_pki_init(dir, "r7", 10, &err), 0);
	assert_int_equal(bl_pki_issue(dir, &q, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--address ADDR"));
	q.naddrs = 1;
	for (k = 0; k < ARRAY_SIZE(bad); k++) {
		q.addr[0] = bad[k];
		if (bl_pki_issue(dir, &q, &err) != -EINVAL)
			fail_msg("\"%s\" is an address", bad[k]);
	}
	for (k = 0; k < ARRAY_SIZE(good); k++)
		q.addr[k] = good[k];
	q.naddrs = ARRAY_SIZE(good);
	assert_int_equal(bl_pki_issue(dir, &q, &err), 0);
	/* and the other way round: this authority is etcd's now */
	assert_int_equal(issue("h4", BL_IDENT_NODE, 4, &err), -EPERM);
	assert_non_null(strstr(err.text, "e1.pem to a member of etcd"));
	assert_int_equal(issue("ctl", BL_IDENT_CONTROLLER, 0, &err), 0);
}

/* The key stays, so that a copy of the certificate alone is enough; the addresses stay, too. */
static void pki__renews(void **state)
{
	struct bl_pki_info before, after;
	struct bl_err err;
	char path[160];
	struct stat st;

	(void)state;
	assert_int_equal(bl_pki_init(dir, "r7", 10, &err), 0);
	assert_int_equal(bl_pki_renew(dir, "e1", 90, &err), -ENOENT);
	assert_int_equal(issue("e1", BL_IDENT_ETCD, 0, &err), 0);
	snprintf(path, sizeof(path), "%s/e1.key", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(bl_pki_read(dir, "e1", &before, &err), 0);
	assert_int_equal(bl_pki_renew(dir, "e1", 90, &err), 0);
	assert_int_equal(bl_pki_read(dir, "e1", &after, &err), 0);
	assert_true(after.ours && after.until > before.until);
	assert_memory_equal(&before.who, &after.who, sizeof(after.who));
	assert_string_not_equal(before.serial, after.serial);
	assert_int_equal(mode_of("e1.pem.new"), 0);
	{
		struct stat now;
		gnutls_datum_t pem;
		gnutls_x509_crt_t crt;
		gnutls_x509_privkey_t key;
		uint8_t id[2][64];
		size_t len[2] = { 64, 64 };

		assert_int_equal(stat(path, &now), 0);
		assert_true(now.st_ino == st.st_ino);
		/* certificate and key belong together */
		gnutls_x509_privkey_init(&key);
		assert_true(gnutls_load_file(path, &pem) >= 0 &&
			    gnutls_x509_privkey_import(key, &pem, GNUTLS_X509_FMT_PEM) >= 0);
		gnutls_free(pem.data);
		snprintf(path, sizeof(path), "%s/e1.pem", dir);
		gnutls_x509_crt_init(&crt);
		assert_true(gnutls_load_file(path, &pem) >= 0 &&
			    gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM) >= 0);
		gnutls_free(pem.data);
		assert_true(gnutls_x509_crt_get_key_id(crt, 0, id[0], &len[0]) >= 0 &&
			    gnutls_x509_privkey_get_key_id(key, 0, id[1], &len[1]) >= 0);
		assert_int_equal(len[0], len[1]);
		assert_memory_equal(id[0], id[1], len[0]);
		assert_true(gnutls_x509_crt_check_hostname(crt, "store.example"));
		gnutls_x509_crt_deinit(crt);
		gnutls_x509_privkey_deinit(key);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ident__spellings),
		cmocka_unit_test(ident__random),
		CASE(pki__issues_each_identity_once),
		CASE(pki__addresses_of_etcd),
		CASE(pki__renews),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
