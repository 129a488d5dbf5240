// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * proto/link_keys.h: files of keys, keys that two ends of a link derive alike and nobody else, and
 * rotation.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "maps/auth_abi.h"
#include "proto/link_keys.h"

static char dir[] = "/tmp/barline-test-keys-XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/keys", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void put(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

#define K1                 "\"000102030405060708090a0b0c0d0e0f\""
#define K2                 "\"F0F1f2f3f4f5f6f7f8f9fafbfcfdfeff\""
#define LINK(port, epochs) "  - { peer: 7, port: " port ", epochs: [" epochs "] }\n"
#define EPOCH(n, from)     "{ epoch: " n ", from: " from ", send: " K1 ", receive: " K2 " }"

static void bl_link_file_load__all_fields(void **state)
{
	static struct bl_link_file f;
	struct bl_err err;

	(void)state;
	put("node: 3\noverlap_s: 9\nlinks:\n" LINK("a", EPOCH("1", "0") ", " EPOCH("4095", "12"))
		    LINK("b", EPOCH("2", "5")));
	assert_int_equal(bl_link_file_load(&f, path, &err), 0);
	assert_int_equal(f.node, 3);
	assert_int_equal(f.overlap_s, 9);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.link[0].peer, 7);
	assert_string_equal(f.link[0].port, "a");
	assert_int_equal(f.link[0].n, 2);
	assert_int_equal(f.link[0].at[1].epoch, 4095);
	assert_int_equal(f.link[0].at[1].from_s, 12);
	assert_int_equal(f.link[0].at[0].send[15], 0x0f);
	assert_int_equal(f.link[0].at[0].receive[0], 0xf0);
	assert_string_equal(f.link[1].port, "b");
	put("node: 3\nlinks:\n  - { peer: 7, epochs: [" EPOCH("1", "0") "] }\n");
	assert_int_equal(bl_link_file_load(&f, path, &err), 0);
	assert_int_equal(f.overlap_s, BL_LINK_OVERLAP_S);
	assert_string_equal(f.link[0].port, "");
}

static void bl_link_file_load__refused(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{ "links:\n" LINK("a", EPOCH("1", "0")), "node" },
		{ "node: 3\n", "links" },
		{ "node: 3\nlinks:\n" LINK("a", EPOCH("0", "0")), "epoch" },
		{ "node: 3\nlinks:\n" LINK("a", EPOCH("4096", "0")), "epoch" },
		{ "node: 3\nlinks:\n" LINK("a", EPOCH("2", "0") ", " EPOCH("2", "1")), "rising "
										       "order" },
		{ "node: 3\nlinks:\n" LINK("a", EPOCH("2", "5") ", " EPOCH("3", "4")), "begins "
										       "after" },
		{ "node: 3\nlinks:\n" LINK("a", EPOCH("1", "0")) LINK("a", EPOCH("1", "0")), "liste"
											     "d "
											     "twic"
											     "e" },
		{ "node: 3\nlinks:\n" LINK("a",
					   "{ epoch: 1, from: 0, send: " K1 ", receive: " K1 " }"),
		  "the same key" },
		{ "node: 3\nlinks:\n" LINK("a",
					   "{ epoch: 1, from: 0, send: \"00\", receive: " K1 " }"),
		  "32 hex digits" },
		{ "node: 3\nlinks:\n" LINK("a", "{ epoch: 1, from: 0, send: "
						"\"0g0102030405060708090a0b0c0d0e0f\", receive: " K1
						" }"),
		  "32 hex digits" },
		{ "node: 3\nlinks:\n  - { peer: 0, epochs: [" EPOCH("1", "0") "] }\n", "peer 0" },
		{ "node: 3\nlinks: []\n", "links" },
		{ "node: 3\nwhat: 1\nlinks:\n" LINK("a", EPOCH("1", "0")), "what" },
	};
	static struct bl_link_file f;
	struct bl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		put(t[i].text);
		err.text[0] = 0;
		assert_int_equal(bl_link_file_load(&f, path, &err), -EINVAL);
		if (!strstr(err.text, t[i].says))
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, err.text, t[i].says);
	}
}

/* Whoever can read a key can forge. */
static void bl_link_file_load__others_can_read(void **state)
{
	static struct bl_link_file f;
	static struct bl_rack_file r;
	struct bl_err err;
	int bit;

	(void)state;
	put("node: 3\nlinks:\n" LINK("a", EPOCH("1", "0")));
	for (bit = 0; bit < 6; bit++) {
		assert_int_equal(chmod(path, 0600u | 1u << bit), 0);
		assert_int_equal(bl_link_file_load(&f, path, &err), -EPERM);
		assert_non_null(strstr(err.text, "chmod 600"));
		assert_int_equal(bl_rack_file_load(&r, path, &err), -EPERM);
	}
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(bl_link_file_load(&f, path, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(bl_link_file_load(&f, path, &err), -ENOENT);
}

/* HMAC-SHA-256 as another implementation computes it (Python's hmac module, 2026-11). */
static void bl_link_derive__known(void **state)
{
	uint8_t secret[BL_LINK_SECRET_LEN], key[BL_LINK_KEY_LEN];
	static const uint8_t want[BL_LINK_KEY_LEN] = { 0xa0, 0xec, 0x9f, 0xf7, 0xfd, 0xe4,
						       0x60, 0x56, 0xd6, 0x9e, 0x64, 0x28,
						       0x1c, 0xcf, 0xc3, 0xb1 };
	struct bl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)i;
	assert_int_equal(bl_link_derive(secret, 1, 2, 3, 4, key, &err), 0);
	assert_memory_equal(key, want, sizeof(key));
}

/* Two ends agree; any other pair, direction, number, epoch and secret has another key. */
static void bl_rack_issue__only_the_two_ends(void **state)
{
	static struct bl_rack_file rack = { .overlap_s = 5 }, other;
	static struct bl_link_file a = { .node = 1 }, b = { .node = 2 }, c = { .node = 3 };
	struct bl_err err;
	unsigned int k;

	(void)state;
	assert_int_equal(bl_rack_rotate(&rack, 0, &err), 0);
	assert_int_equal(bl_rack_rotate(&rack, 100, &err), 0);
	assert_int_equal(bl_rack_rotate(&other, 0, &err), 0);
	assert_int_equal(bl_rack_issue(&rack, &a, 2, "x", 0, &err), 0);
	assert_int_equal(bl_rack_issue(&rack, &a, 2, "y", 1, &err), 0);
	assert_int_equal(bl_rack_issue(&rack, &a, 3, "z", 0, &err), 0);
	assert_int_equal(bl_rack_issue(&rack, &b, 1, "x", 0, &err), 0);
	assert_int_equal(bl_rack_issue(&rack, &b, 3, "y", 0, &err), 0);
	assert_int_equal(bl_rack_issue(&other, &c, 1, "x", 0, &err), 0);
	assert_int_equal(a.overlap_s, 5);
	for (k = 0; k < 2; k++) {
		const struct bl_link_epoch *ax = &a.link[0].at[k], *bx = &b.link[0].at[k];

		assert_int_equal(ax->epoch, k + 1);
		assert_int_equal(ax->from_s, k * 100);
		assert_memory_equal(ax->send, bx->receive, BL_LINK_KEY_LEN);
		assert_memory_equal(ax->receive, bx->send, BL_LINK_KEY_LEN);
		assert_memory_not_equal(ax->send, ax->receive, BL_LINK_KEY_LEN);
		assert_memory_not_equal(ax->send, a.link[1].at[k].send, BL_LINK_KEY_LEN);
		assert_memory_not_equal(ax->send, a.link[2].at[k].send, BL_LINK_KEY_LEN);
		assert_memory_not_equal(bx->send, b.link[1].at[k].send, BL_LINK_KEY_LEN);
	}
	assert_memory_not_equal(a.link[0].at[0].send, a.link[0].at[1].send, BL_LINK_KEY_LEN);
	assert_memory_not_equal(c.link[0].at[0].send, a.link[2].at[0].receive, BL_LINK_KEY_LEN);
	assert_int_equal(bl_rack_issue(&rack, &a, 1, "w", 0, &err), -EINVAL);
	assert_int_equal(bl_rack_issue(&rack, &a, 9, "z", 0, &err), -EEXIST);
	assert_int_equal(a.n, 3);
}

static void bl_rack_rotate__keeps_the_latest(void **state)
{
	struct bl_rack_file r = {}, was;
	struct bl_err err;

	(void)state;
	assert_int_equal(bl_rack_rotate(&r, 0, &err), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.at[0].epoch, 1);
	assert_int_equal(bl_rack_rotate(&r, 50, &err), 0);
	was = r;
	assert_int_equal(bl_rack_rotate(&r, 49, &err), -EBUSY);
	assert_memory_equal(&r, &was, sizeof(r));
	assert_int_equal(bl_rack_rotate(&r, 60, &err), 0);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.at[0].epoch, 2);
	assert_memory_equal(r.at[0].secret, was.at[1].secret, BL_LINK_SECRET_LEN);
	assert_int_equal(r.at[1].epoch, 3);
	assert_int_equal(r.at[1].from_s, 60);
	assert_memory_not_equal(r.at[1].secret, r.at[0].secret, BL_LINK_SECRET_LEN);
	r.at[1].epoch = BL_AUTH_EPOCH_MAX;
	assert_int_equal(bl_rack_rotate(&r, 70, &err), -ERANGE);
}

/* What is written is read again, and only its owner can read it. */
static void files__written_and_read(void **state)
{
	static struct bl_rack_file r = { .overlap_s = 8 }, r2;
	static struct bl_link_file f = { .node = 4 }, f2;
	struct bl_err err;
	struct stat st;

	(void)state;
	assert_int_equal(bl_rack_rotate(&r, 0, &err), 0);
	assert_int_equal(bl_rack_rotate(&r, 1764060000, &err), 0);
	umask(0);
	assert_int_equal(bl_rack_file_write(&r, path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(bl_rack_file_load(&r2, path, &err), 0);
	assert_memory_equal(&r, &r2, sizeof(r));
	assert_int_equal(bl_rack_issue(&r, &f, 1001, "", 0, &err), 0);
	assert_int_equal(bl_rack_issue(&r, &f, 1002, "eth1", 0, &err), 0);
	assert_int_equal(bl_link_file_write(&f, path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(bl_link_file_load(&f2, path, &err), 0);
	assert_memory_equal(&f, &f2, sizeof(f));
	assert_int_equal(bl_link_file_write(&f, "/nowhere/keys", &err), -EIO);
	assert_non_null(strstr(err.text, "/nowhere/keys"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_link_file_load__all_fields),
		cmocka_unit_test(bl_link_file_load__refused),
		cmocka_unit_test(bl_link_file_load__others_can_read),
		cmocka_unit_test(bl_link_derive__known),
		cmocka_unit_test(bl_rack_issue__only_the_two_ends),
		cmocka_unit_test(bl_rack_rotate__keeps_the_latest),
		cmocka_unit_test(files__written_and_read),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
