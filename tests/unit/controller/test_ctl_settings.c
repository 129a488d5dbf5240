// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a reload of a controller compares (controller/reload.c), which nodes a new file leaves
 * (controller/nodes.c), and that docs/controller.md says the same as the table of settings.
 */
#include "tests/unit/unit.h"

#include <errno.h>

#include "controller/nodes.h"
#include "controller/reload.h"
#include "controller/server.h"

static struct bl_err err;

static void set(struct bl_ctl_cfg *cfg, const struct ctl_setting *s, unsigned int value)
{
	char *at = (char *)cfg + s->at;

	if (s->kind == CTL_TEXT)
		snprintf(at, 16, "text%u", value);
	else if (s->kind == CTL_TRUTH)
		*(bool *)at = value % 2;
	else
		*(uint32_t *)(void *)at = 1000 + value;
}

/* Each setting is compared, by itself, and only what takes a restart refuses the file. */
static void changes__each_setting(void **state)
{
	struct bl_ctl_cfg was = { 0 }, now;
	struct bl_changes c = { 0 };
	const struct ctl_setting *s;
	unsigned int n, k;

	(void)state;
	s = ctl_settings(&n);
	for (k = 0; k < n; k++)
		set(&was, &s[k], 1);
	ctl_changes(&c, &was, &was);
	assert_int_equal(c.n, 0);
	for (k = 0; k < n; k++) {
		now = was;
		set(&now, &s[k], 2);
		ctl_changes(&c, &was, &now);
		assert_int_equal(c.n, 1);
		assert_string_equal(c.v[0].path, s[k].path);
		assert_int_equal(c.v[0].change, s[k].change);
		assert_int_equal(bl_changes_judge(&c, &err),
				 s[k].change == BL_CHANGE_LIVE ? 0 : -EPERM);
		if (s[k].change != BL_CHANGE_LIVE) {
			assert_ptr_equal(strstr(err.text, s[k].path), err.text);
			assert_non_null(strstr(err.text, "nothing was changed"));
		}
		bl_changes_free(&c);
	}
}

/* One refusal names the others; the list of what is refused leaves out what could be applied. */
static void changes__several(void **state)
{
	struct bl_ctl_cfg was = { .netcd = 2, .settle_us = 5, .ca = "a", .prefix = "/p/" }, now;
	struct bl_changes c = { 0 };

	(void)state;
	strcpy(was.etcd[0], "http://127.0.0.1:1");
	strcpy(was.etcd[1], "http://127.0.0.1:2");
	now = was;
	now.settle_us = 6;
	now.netcd = 1;
	*now.ca = 0;
	ctl_changes(&c, &was, &now);
	assert_int_equal(c.n, 4);
	assert_string_equal(c.v[2].path, "etcd.endpoints");
	assert_string_equal(c.v[2].was, "http://127.0.0.1:1, http://127.0.0.1:2");
	assert_string_equal(c.v[2].now, "http://127.0.0.1:1");
	assert_string_equal(c.v[3].path, "tls");
	assert_int_equal(bl_changes_judge(&c, &err), -EPERM);
	assert_ptr_equal(strstr(err.text, "etcd.endpoints, and other settings, takes a restart"),
			 err.text);
	bl_changes_free(&c);
}

/* Nodes are compared by id, in whatever order the files have them. */
static void changes__nodes(void **state)
{
	static struct bl_ctl_node a[] = { { 9, "tor" }, { 1, "h1" }, { 4, "" }, { 2, "h2" } };
	static struct bl_ctl_node b[] = {
		{ 1, "h1" }, { 3, "h3" }, { 2, "other\xc3" }, { 9, "tor" }
	};
	struct bl_ctl_cfg was = { .nodes = a, .nnodes = 4 }, now = { .nodes = b, .nnodes = 4 };
	static const char *const rows[][3] = { { "nodes.2", "h2", "other?" },
					       { "nodes.3", "absent", "h3" },
					       { "nodes.4", "present", "absent" } };
	struct bl_changes c = { 0 };
	unsigned int k;

	(void)state;
	ctl_changes(&c, &was, &now);
	assert_int_equal(c.n, ARRAY_SIZE(rows));
	for (k = 0; k < c.n; k++) {
		assert_string_equal(c.v[k].path, rows[k][0]);
		assert_string_equal(c.v[k].was, rows[k][1]);
		assert_string_equal(c.v[k].now, rows[k][2]);
	}
	assert_int_equal(bl_changes_judge(&c, &err), 0);
	bl_changes_free(&c);
}

static struct ctl_node *add(struct bl_ctl *c, uint32_t id, bool file)
{
	struct ctl_node *n = ctl_nodes_add(c, id, "old");

	assert_non_null(n);
	n->file = file;
	return n;
}

/* A node without a record goes with its line; one that the store or a session knows stays. */
static void nodes__of_a_new_file(void **state)
{
	static const struct bl_ctl_node file[] = { { 8, "new8" }, { 1, "new1" }, { 7, "new7" } };
	/* of the nodes afterwards */
	static const struct {
		uint32_t id;
		bool file;
		const char *name;
	} left[] = { { 1, true, "new1" },
		     { 3, false, "old" },
		     { 4, false, "old" },
		     { 7, true, "new7" },
		     { 8, true, "new8" } };
	struct bl_ctl c = { 0 };
	unsigned int k;

	(void)state;
	add(&c, 1, true);
	add(&c, 2, true); /* goes */
	add(&c, 3, true)->stored = true;
	add(&c, 4, true)->seen = true;
	add(&c, 7, false)->stored = true; /* by a command, and now by the file as well */
	assert_int_equal(ctl_nodes_file(&c, file, 3, &err), 0);
	assert_int_equal(c.nnodes, ARRAY_SIZE(left));
	for (k = 0; k < c.nnodes; k++) {
		assert_int_equal(c.nodes[k].id, left[k].id);
		assert_int_equal(c.nodes[k].file, left[k].file);
		assert_string_equal(c.nodes[k].name, left[k].name);
	}
	/* and an empty file leaves those that have a record */
	assert_int_equal(ctl_nodes_file(&c, NULL, 0, &err), 0);
	assert_int_equal(c.nnodes, 3);
	assert_true(ctl_nodes_find(&c, 3) && ctl_nodes_find(&c, 4) && ctl_nodes_find(&c, 7));
	/* the store is read anew: what it does not have was never stored */
	ctl_nodes_forget(&c);
	assert_int_equal(c.nnodes, 0);
	free(c.nodes);
}

/* A file that cannot be applied changes none of the nodes. */
static void nodes__refused(void **state)
{
	static struct bl_ctl_node many[BL_CTL_NODES_MAX];
	struct bl_ctl c = { 0 };
	unsigned int k;

	(void)state;
	for (k = 0; k < BL_CTL_NODES_MAX; k++)
		many[k].id = 100 + k;
	add(&c, 1, false)->stored = true;
	add(&c, 2, true);
	assert_int_equal(ctl_nodes_file(&c, many, BL_CTL_NODES_MAX, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "there are more than 4096"));
	assert_int_equal(c.nnodes, 2);
	assert_true(ctl_nodes_find(&c, 2)->file);
	assert_int_equal(ctl_nodes_file(&c, many, BL_CTL_NODES_MAX - 1, &err), 0);
	assert_int_equal(c.nnodes, BL_CTL_NODES_MAX);
	ctl_nodes_find(&c, 1)->leaves = true;
	many[0].id = 1;
	assert_int_equal(ctl_nodes_file(&c, many, 1, &err), -EBUSY);
	assert_non_null(strstr(err.text, "node 1 is being removed"));
	assert_int_equal(c.nnodes, BL_CTL_NODES_MAX);
	free(c.nodes);
}

/* The row of docs/controller.md for each setting, or for the mapping that it is in. */
static void page__says_the_same(void **state)
{
	FILE *f = fopen("docs/controller.md", "re");
	const struct ctl_setting *s;
	char page[1 << 17], row[64];
	unsigned int n, k;
	char *at;

	(void)state;
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = 0;
	fclose(f);
	s = ctl_settings(&n);
	for (k = 0; k < n; k++) {
		snprintf(row, sizeof(row), "\n| `%.*s` |", (int)strcspn(s[k].path, "."), s[k].path);
		at = strstr(page, row);
		if (!at)
			fail_msg("docs/controller.md has no row for %s", s[k].path);
		at = strchr(at + strlen(row), '|') + 2;
		if (strncmp(at, bl_change_name(s[k].change), strlen(bl_change_name(s[k].change))))
			fail_msg("docs/controller.md: %s is \"%.8s\", and in the code %s",
				 s[k].path, at, bl_change_name(s[k].change));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes__each_setting), cmocka_unit_test(changes__several),
		cmocka_unit_test(changes__nodes),        cmocka_unit_test(nodes__of_a_new_file),
		cmocka_unit_test(nodes__refused),        cmocka_unit_test(page__says_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
