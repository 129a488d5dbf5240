// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A controller's YAML file (controller/config.c), and with it what all files of barline have in
 * common (base/yaml.c): every mistake is reported with file and line.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "controller/server.h"
#include "base/yaml.h"

static char path[64];

static int file_setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/barline-config-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int file_teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_bytes(const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void write_file(const char *text)
{
	write_bytes(text, strlen(text));
}

static struct bl_ctl_cfg cfg;
static struct bl_err err;

static int load(const char *text)
{
	bl_ctl_config_free(&cfg);
	memset(&err, 0, sizeof(err));
	write_file(text);
	return bl_ctl_config_load(&cfg, path, &err);
}

static void load__each_word_is_taken(void **state)
{
	(void)state;
	assert_int_equal(load("listen: 10.0.0.1:61693\n"
			      "advertise: \"[fd00::1]:61693\"\n"
			      "etcd:\n"
			      "  endpoints: [http://10.0.0.1:2379, https://10.0.0.2:2379]\n"
			      "  prefix: rack7/\n"
			      "  ca: ea.pem\n"
			      "  cert: eb.pem\n"
			      "  key: ec.pem\n"
			      "  ttl_s: 5\n"
			      "tls: { ca: a.pem, cert: b.pem, key: c.pem }\n"
			      "settle_us: 1000\nanswer_ms: 2000\ngrace_ms: 3001\n"
			      "silence_ms: 4000\nstuck_ms: 6000\n"),
			 0);
	assert_string_equal(cfg.listen, "10.0.0.1:61693");
	assert_string_equal(cfg.advertise, "[fd00::1]:61693");
	assert_string_equal(cfg.sqlite, "");
	assert_int_equal(cfg.netcd, 2);
	assert_string_equal(cfg.etcd[0], "http://10.0.0.1:2379");
	assert_string_equal(cfg.etcd[1], "https://10.0.0.2:2379");
	assert_string_equal(cfg.prefix, "rack7/");
	assert_string_equal(cfg.etcd_ca, "ea.pem");
	assert_string_equal(cfg.etcd_cert, "eb.pem");
	assert_string_equal(cfg.etcd_key, "ec.pem");
	assert_int_equal(cfg.ttl_s, 5);
	assert_string_equal(cfg.ca, "a.pem");
	assert_string_equal(cfg.cert, "b.pem");
	assert_string_equal(cfg.key, "c.pem");
	assert_int_equal(cfg.settle_us, 1000);
	assert_int_equal(cfg.answer_ms, 2000);
	assert_int_equal(cfg.grace_ms, 3001);
	assert_int_equal(cfg.silence_ms, 4000);
	assert_int_equal(cfg.stuck_ms, 6000);
	/* what is absent has its default, also after a file that set it */
	assert_int_equal(load("listen: 10.0.0.1\nsqlite: /tmp/x.db\n"), 0);
	assert_string_equal(cfg.sqlite, "/tmp/x.db");
	assert_string_equal(cfg.advertise, "");
	assert_int_equal(cfg.netcd + cfg.ttl_s + cfg.settle_us + cfg.answer_ms + cfg.grace_ms +
				 cfg.stuck_ms,
			 0);
}

#define L "listen: 10.0.0.1\n"
#define S "sqlite: x.db\n"
#define E "etcd: { endpoints: [http://10.0.0.1:2379]"
#define T "etcd: { endpoints: [https://10.0.0.1], "

/*
 * The first and the last value of each range, and those beyond. A mistake is reported with its line
 * and its reason.
 */
static void load__mistakes(void **state)
{
	static const struct {
		const char *text;
		int line; /* line of the mistake; 0: the file is valid */
		const char *says;
	} t[] = {
		{ L S, 0, "" },
		{ "", 1, "the file is empty" },
		{ S, 1, "listen" },
		{ "# x\nlisten: nowhere\n" S, 2, "nowhere is no address" },
		{ L S "advertise: nowhere\n", 3, "nowhere is no address" },
		{ L, 1, "one store" },
		{ L S E " }\n", 1, "one store" },
		{ L E " }\n", 0, "" },
		{ L "etcd: { endpoints: [https://10.0.0.1] }\n", 0, "" },
		{ L "etcd: { endpoints: [http://a, ftp://b] }\n", 2, "ftp://b is no URL" },
		{ L "etcd: { endpoints: [] }\n", 2, "" },
		{ L E ",\n  cert: b }\n", 3, "cert and key belong together" },
		{ L E ",\n  key: b }\n", 3, "cert and key belong together" },
		{ L E ", ttl_s: 1 }\n", 2, "2 to 3600" },
		{ L E ", ttl_s: 2 }\n", 0, "" },
		{ L E ", ttl_s: 3600 }\n", 0, "" },
		{ L E ",\n  ttl_s: 3601 }\n", 3, "2 to 3600" },
		{ L S "settle_us: 1000000\n", 0, "" },
		{ L S "settle_us: 1000001\n", 3, "at most 1000000" },
		{ L S "answer_ms: 9\n", 3, "at least 10" },
		{ L S "answer_ms: 10\n", 0, "" },
		{ L S "\nstuck_ms: 99\n", 4, "at least 100" },
		{ L S "stuck_ms: 100\n", 0, "" },
		{ L S "silence_ms: 99\n", 3, "at least 100" },
		{ L S "silence_ms: 100\n", 0, "" },
		/* mistakes in YAML itself */
		{ L S "grace: 7\n", 3, "Unexpected key: grace" },
		{ L S "tls: { ca: a, cert: b, key: c,\n grace_ms: 7 }\ngrace_ms: 8\n", 4,
		  "Unexpected key: grace_ms" },
		{ "grace: 7\n" L S, 1, "Unexpected key: grace" },
		{ L S "tls: { ca: a, zz: b }\n", 3, "Unexpected key: zz" },
		{ L S "tls: { ca: a, zz: b }\ngrace_ms: { zz: 1 }\n", 3, "Unexpected key: zz" },
		{ L E ", ttl_s: 5s }\n", 2, "\"5s\" is no number" },
		{ L S "tls: { ca: a, cert: b }\n", 3, "key" },
		{ L S "grace_ms: 100ms\n", 3, "\"100ms\" is no number" },
		{ L S "grace_ms: 100 # ms\n", 0, "" },
		{ L S "grace_ms: 0x10\n", 0, "" },
		{ L S "# grace_ms: 100ms\n", 0, "" },
		{ L S "\"grace_ms\": \"100\"\n", 0, "" },
		{ L S "grace_ms: ten\n", 3, "" },
		{ L "sqlite: 'a#b'\n", 0, "" },
		{ "listen: [fd00::1]:61693\n" S, 1, "put it in quotes, \"[fd00::1]:61693\"" },
		{ "listen: \"[fd00::1]:61693\"\n" S, 0, "" },
		{ L S "nodes: [{ id: 1, name: h1 }, { id: 4294967295 }]\n", 0, "" },
		{ L S "nodes:\n  - { id: 1 }\n  - { id: 1 }\n", 5, "id 1 is given twice" },
		{ L S "nodes: [{ id: 0 }]\n", 3, "id 0: 1 or more" },
		{ L S "nodes: [{ name: h1 }]\n", 3, "id" },
		{ L S "nodes: [1, 2]\n", 3, "" },
		{ L S "nodes: []\n", 3, "" },
		{ L S "nodes: [{ id: 1, nmae: h1 }]\n", 3, "Unexpected key: nmae" },
		{ L S "insecure: perhaps\n", 3, "" },
		{ L S "tls: { ca: a, cert: b, key: c, unnamed: yes }\n", 0, "" },
		{ L S "grace_ms: [7] # not [fd00::1]:61693\n", 3, "grace_ms: expected a number" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char begin[96];
		int rc = load(t[i].text);

		print_message("%zu: %d %s\n", i, rc, err.text);
		assert_int_equal(rc, t[i].line ? -EINVAL : 0);
		if (!t[i].line)
			continue;
		snprintf(begin, sizeof(begin), "%s:%d: ", path, t[i].line);
		assert_memory_equal(err.text, begin, strlen(begin));
		assert_non_null(strstr(err.text, t[i].says));
	}
	unlink(path);
	assert_int_equal(bl_ctl_config_load(&cfg, path, &err), -ENOENT);
	write_file("");
}

static void load__a_hex_number_is_that_number(void **state)
{
	(void)state;
	assert_int_equal(load(L S "grace_ms: 0x10\n"), 0);
	assert_int_equal(cfg.grace_ms, 16);
}

/* The line of a key in its own mapping, whatever stands before it or in comments. */
static void bl_yaml_line__of_each(void **state)
{
	yaml_node_t *x, *list, *item;
	struct bl_yaml y;

	(void)state;
	write_file("a: 1\nba: 2 # a: 3\nx: { b: 4,\n \"a\" : 5 }\nl:\n- c: 0\n  a: 6\n");
	assert_int_equal(bl_yaml_open(&y, path, &err), 0);
	x = bl_yaml_get(&y, y.root, "x");
	assert_int_equal(bl_yaml_list(&y, y.root, "l", 1, &list), 1);
	item = bl_yaml_item(&y, list, 0);
	assert_int_equal(bl_yaml_line(&y, y.root, "a"), 1);
	assert_int_equal(bl_yaml_line(&y, y.root, "ba"), 2);
	assert_int_equal(bl_yaml_line(&y, x, "b"), 3);
	assert_int_equal(bl_yaml_line(&y, x, "a"), 4);
	assert_int_equal(bl_yaml_line(&y, item, "a"), 7);
	/* without such a key: where the mapping begins */
	assert_int_equal(bl_yaml_line(&y, item, "z"), 6);
	assert_int_equal(bl_yaml_line(&y, x, NULL), 3);
	assert_int_equal(bl_yaml_line(&y, NULL, "a"), 1);
	assert_int_equal(bl_yaml_close(&y), 0);
	assert_int_equal(bl_yaml_open(&y, "/nowhere/at/all", &err), -ENOENT);
	assert_int_equal(bl_yaml_close(&y), -ENOENT);
}

/* The first error is kept, and nothing is given after it. */
static void bl_yaml_refuse__the_first(void **state)
{
	struct bl_yaml y;
	char text[128];
	int64_t v = 7;

	(void)state;
	write_file("a: 1\nb: 2\nc: [1, 2]\n");
	assert_int_equal(bl_yaml_open(&y, path, &err), 0);
	assert_true(bl_yaml_number(&y, y.root, "a", 1, 1, &v));
	assert_int_equal(v, 1);
	assert_false(bl_yaml_number(&y, y.root, "b", 3, 4, &v));
	assert_int_equal(v, 1);
	assert_null(bl_yaml_get(&y, y.root, "a"));
	assert_null(bl_yaml_text(&y, y.root, "c", 9));
	assert_int_equal(bl_yaml_refuse(&y, y.root, "a", "another"), -EINVAL);
	assert_int_equal(bl_yaml_close(&y), -EINVAL);
	snprintf(text, sizeof(text), "%s:2: b 2: from 3 to 4", path);
	assert_string_equal(err.text, text);
	assert_int_equal(bl_yaml_open(&y, path, &err), 0);
	assert_false(bl_yaml_number(&y, y.root, "b", 0, 1, &v));
	assert_int_equal(bl_yaml_close(&y), -EINVAL);
}

/* A word that is none of a list's: the list is told. */
static void bl_yaml_name__choices(void **state)
{
	static const char *const colors[] = { "red", "green" };
	struct bl_yaml y;
	char text[128];

	(void)state;
	write_file("# colors\ncolor: green\n");
	assert_int_equal(bl_yaml_open(&y, path, &err), 0);
	assert_int_equal(bl_yaml_name(&y, y.root, "color", colors, 2), 1);
	assert_int_equal(bl_yaml_name(&y, y.root, "shade", colors, 2), -1);
	assert_int_equal(bl_yaml_close(&y), 0);
	write_file("# colors\ncolor: blue\n# and\n");
	assert_int_equal(bl_yaml_open(&y, path, &err), 0);
	assert_int_equal(bl_yaml_name(&y, y.root, "color", colors, 2), -1);
	assert_int_equal(bl_yaml_close(&y), -EINVAL);
	snprintf(text, sizeof(text), "%s:2: color \"blue\": there is red, green", path);
	assert_string_equal(err.text, text);
}

/*
 * A zero byte ends a text in C, so what is behind it would be left out without a word: in a file
 * that a crash has filled with zeros, in a key, or in a value.
 */
static void bl_yaml__zero_bytes(void **state)
{
	static const char file[] = "color: red\n\0shade: blue\n";
	static const char *const keys[] = { "color", NULL };
	static const struct {
		const char *text, *why;
	} t[] = {
		{ "color: red\n\"color\\0x\": blue\n", ":2: this key has a zero byte in it" },
		{ "\ncolor: \"red\\0x\"\n", ":2: color: a zero byte in the text" },
	};
	struct bl_yaml y;
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		write_file(t[i].text);
		assert_int_equal(bl_yaml_open(&y, path, &err), 0);
		bl_yaml_keys(&y, y.root, keys);
		assert_null(bl_yaml_text(&y, y.root, "color", 9));
		assert_int_equal(bl_yaml_close(&y), -EINVAL);
		snprintf(text, sizeof(text), "%s%s", path, t[i].why);
		assert_string_equal(err.text, text);
	}
	write_bytes(file, sizeof(file) - 1);
	assert_int_equal(bl_yaml_open(&y, path, &err), -EINVAL);
	assert_int_equal(bl_yaml_close(&y), -EINVAL);
	snprintf(text, sizeof(text), "%s:2: a zero byte: this is no text", path);
	assert_string_equal(err.text, text);
}

static void bl_mac_parse__edges(void **state)
{
	static const char *const bad[] = { "",
					   "02:00:00:00:00",
					   "02:00:00:00:00:0g",
					   "02:00:00:00:00:01:",
					   "02-00-00-00-00-01",
					   "02:00:00:00:00:1",
					   "2:0:0:0:0:1",
					   "02:00:00:00:00:-1",
					   "02:00:00:00:00: 1",
					   "02:00:00:00:00:0x" };
	uint8_t mac[6];

	(void)state;
	assert_true(bl_mac_parse("02:00:0a:Ff:fE:01", mac));
	assert_memory_equal(mac, "\x02\x00\x0a\xff\xfe\x01", 6);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (bl_mac_parse(bad[i], mac))
			fail_msg("\"%s\" was accepted", bad[i]);
		assert_memory_equal(mac, "\x02\x00\x0a\xff\xfe\x01", 6);
	}
}

/*
 * What other machines reach needs TLS or the word insecure; the message names both. Only a loopback
 * address goes without, however it is written.
 */
static void check__plain_tcp(void **state)
{
	static const struct {
		const char *text;
		bool fails;
	} t[] = {
		{ "listen: 127.0.0.1\n" S, false },
		{ "listen: 127.1.2.3:5\n" S, false },
		{ "listen: \"[::1]:61693\"\n" S, false },
		{ "listen: \"[::ffff:127.0.0.1]:61693\"\n" S, false },
		{ L S, true },
		{ "listen: 0.0.0.0\n" S, true },
		{ "listen: \"[::]:61693\"\n" S, true },
		{ "listen: \"[::ffff:10.0.0.1]:61693\"\n" S, true },
		{ "listen: 128.0.0.1\n" S, true },
		{ L S "insecure: true\n", false },
		{ L S "insecure: false\n", true },
		{ L S "tls: { ca: a, cert: b, key: c }\n", false },
		{ "listen: 127.0.0.1\n" E " }\n", true },
		{ "listen: 127.0.0.1\n" E " }\ninsecure: true\n", false },
		{ "listen: 127.0.0.1\n" T "ca: a, cert: b, key: c }\n", false },
		{ "listen: 127.0.0.1\n" T "cert: b, key: c }\n", true },
		{ "listen: 127.0.0.1\n" T "ca: a }\n", true },
		{ "listen: 127.0.0.1\n" T "ca: a }\ninsecure: true\n", false },
		{ "listen: 127.0.0.1\netcd: { endpoints: [https://127.0.0.1:2379] }\n", false },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.1:2379], ca: a }\n",
		  true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.1:2379] }\n", false },
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://[::1]:2379\"] }\n", false },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://localhost:2379] }\n", false },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://localhost.evil] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.1.evil] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.1:/] }\n", false },
		/* hosts that look like a loopback address at first */
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://127.0.0.1:1@10.1.1.1\"] }\n",
		  true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://localhost@10.1.1.1\"] }\n",
		  true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://[::1]@10.1.1.1\"] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://[::1].evil\"] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [\"http://[::1\"] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.256] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://] }\n", true },
		{ "listen: 127.0.0.1\netcd: { endpoints: [http://127.0.0.1, http://10.1.1.1] }\n",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(load(t[i].text), 0);
		if (bl_ctl_config_check(&cfg, &err) != (t[i].fails ? -EPERM : 0))
			fail_msg("row %zu", i);
		if (t[i].fails)
			assert_true(strstr(err.text, "insecure: true") &&
				    (strstr(err.text, "`barline pki") || strstr(err.text, "leave "
											  "them "
											  "out")));
	}
}

static void load__nodes(void **state)
{
	(void)state;
	assert_int_equal(load(L S "nodes: [{ id: 9, name: tor }, { id: 1 }]\n"), 0);
	assert_int_equal(cfg.nnodes, 2);
	assert_int_equal(cfg.nodes[0].id, 9);
	assert_string_equal(cfg.nodes[0].name, "tor");
	assert_int_equal(cfg.nodes[1].id, 1);
	assert_string_equal(cfg.nodes[1].name, "");
	assert_false(cfg.insecure || cfg.unnamed);
	bl_ctl_config_free(&cfg);
	assert_int_equal(cfg.nnodes, 0);
	assert_int_equal(load(L S "insecure: yes\ntls: { ca: a, cert: b, key: c, unnamed: yes }\n"),
			 0);
	assert_true(cfg.insecure && cfg.unnamed);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, file_setup, file_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(load__each_word_is_taken),
		CASE(load__mistakes),
		CASE(load__nodes),
		CASE(check__plain_tcp),
		CASE(load__a_hex_number_is_that_number),
		CASE(bl_yaml_line__of_each),
		CASE(bl_yaml__zero_bytes),
		CASE(bl_mac_parse__edges),
		CASE(bl_yaml_refuse__the_first),
		CASE(bl_yaml_name__choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
