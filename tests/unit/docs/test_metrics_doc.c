// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of docs/metrics.md is the list of cli/metrics/families.h, and the alert rules and the
 * dashboard of monitoring/ name metrics of that list only. promtool(1) checks the rules.
 */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/metrics/text.h"

#define RULES     "monitoring/barline.rules.yml"
#define TESTS     "monitoring/barline.rules_test.yml"
#define DASHBOARD "monitoring/grafana-dashboard.json"

static char *load(const char *path)
{
	static char text[1 << 17];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	assert_in_range(n, 1, sizeof(text) - 2);
	text[n] = '\0';
	return text;
}

static const char *const types[] = {
	[METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter", [METRIC_HISTOGRAM] = "histogram"
};

/* Writes the row of the table. */
static void row_of(const struct metric_family *f, char *row, size_t size)
{
	size_t n = (size_t)snprintf(row, size, "\n| `%s%s` | %s | ", f->name,
				    f->type == METRIC_COUNTER ? "_total" : "", types[f->type]);
	unsigned int k;

	for (k = 0; f->label[k]; k++)
		n += (size_t)snprintf(row + n, size - n, "%s%s", k ? ", " : "", f->label[k]);
	snprintf(row + n, size - n, " | %s |\n", f->help);
}

static void doc__has_each_metric(void **state)
{
	char *text = load("docs/metrics.md"), row[1024], *at;
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; i < BL_METRIC_COUNT; i++) {
		row_of(metric_family((enum metric)i), row, sizeof(row));
		if (!strstr(text, row))
			fail_msg("docs/metrics.md lacks this row: %s", row + 1);
	}
	for (at = text; (at = strstr(at, "\n| `barline_")); at++)
		n++;
	assert_int_equal(n, BL_METRIC_COUNT);
}

/* Returns whether @name, of @len bytes, is the name of samples that are exported. */
static bool is_exported(const char *name, size_t len)
{
	static const char *const suffixes[] = { "", "_total", "_bucket", "_sum", "_count" };
	char full[128];
	unsigned int i, k;

	for (i = 0; i < BL_METRIC_COUNT; i++) {
		const struct metric_family *f = metric_family((enum metric)i);

		for (k = 0; k < ARRAY_SIZE(suffixes); k++) {
			bool fits = f->type == METRIC_GAUGE     ? k == 0
				    : f->type == METRIC_COUNTER ? k == 1
								: k >= 2;

			snprintf(full, sizeof(full), "%s%s", f->name, suffixes[k]);
			if (fits && strlen(full) == len && !strncmp(full, name, len))
				return true;
		}
	}
	return false;
}

/* Checks all names in a text that begin as those of metrics do. Returns their number. */
static unsigned int check_names(const char *path, const char *text)
{
	unsigned int n = 0;
	const char *at;
	size_t len;

	for (at = text; (at = strstr(at, "barline_")); at += len, n++) {
		for (len = 0; isalnum(at[len]) || at[len] == '_'; len++)
			;
		if (!is_exported(at, len))
			fail_msg("%s names %.*s, which is not exported", path, (int)len, at);
	}
	return n;
}

static void rules__name_metrics(void **state)
{
	(void)state;
	assert_true(check_names(RULES, load(RULES)) > 25);
}

/* Each alert has a case in which it fires. */
static void rules__are_tested(void **state)
{
	char name[64], *rules = strdup(load(RULES)), *tests = load(TESTS), *at, want[128];
	unsigned int n = 0;

	(void)state;
	assert_non_null(rules);
	for (at = rules; (at = strstr(at, "- alert: ")); at++, n++) {
		assert_int_equal(sscanf(at, "- alert: %63s", name), 1);
		snprintf(want, sizeof(want),
			 "alertname: %s\n    exp_alerts:\n    - exp_labels:", name);
		if (!strstr(tests, want))
			fail_msg("%s has no case for %s", TESTS, name);
	}
	assert_true(n > 20);
	free(rules);
}

static int run(const char *command)
{
	char said[] = "/tmp/barline-promtool-XXXXXX", line[640];
	int fd = mkstemp(said), st;

	assert_true(fd >= 0);
	close(fd);
	snprintf(line, sizeof(line), "%s >%s 2>&1", command, said);
	st = system(line);
	if (st)
		print_message("%s: %s\n", command, load(said));
	unlink(said);
	return st;
}

static void rules__promtool(void **state)
{
	(void)state;
	assert_int_equal(run("promtool check rules " RULES), 0);
	assert_int_equal(run("promtool test rules " TESTS), 0);
}

/* Every panel has a title, a place and expressions, and no two have one id or lie on each other. */
static void dashboard__is_sound(void **state)
{
	json_t *d = json_load_file(DASHBOARD, 0, NULL), *panels, *p, *q, *target;
	unsigned int names = 0;
	size_t i, k, t;

	(void)state;
	assert_non_null(d);
	panels = json_object_get(d, "panels");
	assert_true(json_array_size(panels) > 30);
	json_array_foreach(panels, i, p)
	{
		json_t *at = json_object_get(p, "gridPos");
		json_int_t x = json_integer_value(json_object_get(at, "x")),
			   y = json_integer_value(json_object_get(at, "y")),
			   w = json_integer_value(json_object_get(at, "w"));

		assert_true(*json_string_value(json_object_get(p, "title")));
		assert_in_range(x + w, 1, 24);
		for (k = 0; k < i; k++) {
			q = json_array_get(panels, k);
			assert_false(json_equal(json_object_get(p, "id"), json_object_get(q, "i"
											     "d")));
			q = json_object_get(q, "gridPos");
			assert_false(json_integer_value(json_object_get(q, "x")) == x &&
				     json_integer_value(json_object_get(q, "y")) == y);
		}
		json_array_foreach(json_object_get(p, "targets"), t, target) names +=
			check_names(DASHBOARD, json_string_value(json_object_get(target, "expr")));
	}
	assert_true(names > 30);
	json_decref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doc__has_each_metric), cmocka_unit_test(rules__name_metrics),
		cmocka_unit_test(rules__are_tested),    cmocka_unit_test(rules__promtool),
		cmocka_unit_test(dashboard__is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
