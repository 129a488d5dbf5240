// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/show/view.c: rows that are selected, differences of counters, and the forms of output. */
#include "tests/unit/unit.h"

#include "cli/show/view.h"

static const struct col cols[] = { { "node", "NODE", 's' },  { "name", "PORT", 's' },
				   { "port", "NO", 'd' },    { "frames", "FRAMES", 'n' },
				   { "lag_ns", "LAG", 't' }, { "held", "HELD", 'b' } };
#define NCOLS ARRAY_SIZE(cols)

static json_t *rows_of(const char *text)
{
	json_t *rows = json_loads(text, 0, NULL);

	assert_non_null(rows);
	return rows;
}

static const char first[] = "[{\"node\": \"s1\", \"name\": \"swp1\", \"port\": 0, \"frames\": 10, "
			    "\"lag_ns\": 1500, \"held\": true, \"reason\": \"late\"},"
			    "{\"node\": \"s1\", \"name\": \"swp2\", \"port\": 1, \"frames\": 0, "
			    "\"lag_ns\": null, \"held\": false, \"reason\": \"lost it\"},"
			    "{\"node\": \"s2\", \"name\": \"swp1\", \"port\": 0, \"frames\": 7, "
			    "\"lag_ns\": 0, \"held\": false, \"reason\": \"late\"}]";

/* Ports are those of all nodes; a name that no row has is told. */
static void select__ports_and_reasons(void **state)
{
	static char swp1[] = "swp1", swp2[] = "swp2", swp9[] = "swp9";
	static char *one[] = { swp1 }, *two[] = { swp2, swp1 }, *none[] = { swp1, swp9 };
	const struct {
		struct view v;
		size_t n;
		const char *unknown;
	} cases[] = {
		{ { 0 }, 3, NULL },
		{ { .ports = one, .nports = 1 }, 2, NULL },
		{ { .ports = two, .nports = 2 }, 3, NULL },
		{ { .ports = none, .nports = 2 }, 2, "swp9" },
		{ { .reason = "late" }, 2, NULL },
		{ { .reason = "gone" }, 0, NULL },
		/* the port is there, though nothing of it has the reason */
		{ { .ports = two, .nports = 1, .reason = "late" }, 0, NULL },
	};
	json_t *rows = rows_of(first);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *unknown;
		json_t *out = view_select(&cases[i].v, rows, &unknown);

		if (json_array_size(out) != cases[i].n || !unknown != !cases[i].unknown)
			fail_msg("case %zu: %zu rows, %s", i, json_array_size(out), unknown);
		json_decref(out);
	}
	json_decref(rows);
}

static json_int_t frames_of(json_t *rows, size_t i)
{
	return json_integer_value(json_object_get(json_array_get(rows, i), "frames"));
}

/* Counters only; rows are matched by what they are of, not by their place. */
static void differences__of_counters(void **state)
{
	json_t *before = rows_of(first), *out, *now;

	(void)state;
	now = rows_of("[{\"node\": \"s2\", \"name\": \"swp1\", \"port\": 0, \"frames\": 3, "
		      "\"reason\": \"late\"}," /* began anew */
		      "{\"node\": \"s1\", \"name\": \"swp1\", \"port\": 0, \"frames\": 40, "
		      "\"reason\": \"late\"},"
		      "{\"node\": \"s1\", \"name\": \"swp3\", \"port\": 2, \"frames\": 5, "
		      "\"reason\": \"late\"}]"); /* new */
	out = view_differences(before, now, cols, NCOLS, 0);
	assert_int_equal(json_array_size(out), 3);
	assert_int_equal(frames_of(out, 0), 3);
	assert_int_equal(frames_of(out, 1), 30);
	assert_int_equal(frames_of(out, 2), 5);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(out, 2), "port")), 2);
	assert_int_equal(frames_of(now, 1), 40); /* the reading itself does not change */
	json_decref(out);
	out = view_differences(before, now, cols, NCOLS, 4);
	assert_true(json_real_value(json_object_get(json_array_get(out, 1), "frames")) == 7.5);
	json_decref(out);
	json_decref(now);
	json_decref(before);
}

/* Bytes are counted, too; a flow is told from another one by its number and its sender. */
static void differences__of_bytes_by_flow(void **state)
{
	static const struct col flows[] = { { "flow", "FLOW", 'd' },
					    { "from", "FROM", 's' },
					    { "used", "USED", 'K' },
					    { "left", "LEFT", 'k' } };
	json_t *before = rows_of("[{\"flow\": 1, \"from\": \"a\", \"used\": 10, \"left\": 5},"
				 "{\"flow\": 1, \"from\": \"b\", \"used\": 70, \"left\": 5}]");
	json_t *now = rows_of("[{\"flow\": 1, \"from\": \"b\", \"used\": 100, \"left\": 9}]");
	json_t *out = view_differences(before, now, flows, ARRAY_SIZE(flows), 0), *row;

	(void)state;
	row = json_array_get(out, 0);
	assert_int_equal(json_integer_value(json_object_get(row, "used")), 30);
	assert_int_equal(json_integer_value(json_object_get(row, "left")), 9);
	json_decref(out);
	json_decref(now);
	json_decref(before);
}

static void print__forms(void **state)
{
	static const struct {
		struct view v;
		const char *time, *title, *text;
	} cases[] = {
		{ { 0 },
		  NULL,
		  "ports", /* the heading is enough */
		  "NODE  PORT  NO  FRAMES     LAG  HELD\n"
		  "s1    swp1   0      10  1.5 us  yes\n"
		  "s1    swp2   1       0       -  \n"
		  "s2    swp1   0       7    0 ns  \n" },
		{ { .one_line = true },
		  "T",
		  NULL,
		  "time=T node=s1 name=swp1 port=0 frames=10 lag_ns=1500 held=true\n"
		  "time=T node=s1 name=swp2 port=1 frames=0 lag_ns=- held=false\n"
		  "time=T node=s2 name=swp1 port=0 frames=7 lag_ns=0 held=false\n" },
		{ { .one_line = true },
		  NULL,
		  "ports",
		  "table=ports node=s1 name=swp1 port=0 frames=10 lag_ns=1500 held=true\n"
		  "table=ports node=s1 name=swp2 port=1 frames=0 lag_ns=- held=false\n"
		  "table=ports node=s2 name=swp1 port=0 frames=7 lag_ns=0 held=false\n" },
		{ { .brief = true },
		  "T",
		  NULL,
		  "T\ns1 swp1 no 0 frames 10 lag 1.5 us held\ns1 swp2 no 1\n"
		  "s2 swp1 no 0 frames 7\n" },
		{ { .brief = true },
		  NULL,
		  "ports",
		  "ports s1 swp1 no 0 frames 10 lag 1.5 us held\nports s1 swp2 no 1\n"
		  "ports s2 swp1 no 0 frames 7\n" },
		{ { .details = true },
		  NULL,
		  NULL,
		  "node             s1\nname             swp1\nport             0\n"
		  "frames           10\nlag_ns           1500\nheld             true\n"
		  "reason           late\n\n"
		  "node             s1\nname             swp2\nport             1\n"
		  "frames           0\nlag_ns           -\nheld             false\n"
		  "reason           lost it\n\n"
		  "node             s2\nname             swp1\nport             0\n"
		  "frames           7\nlag_ns           0\nheld             false\n"
		  "reason           late\n" },
	};
	json_t *rows = rows_of(first);
	size_t i, size;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = NULL;
		FILE *f = open_memstream(&text, &size);

		view_print(f, &cases[i].v, rows, cols, NCOLS, cases[i].time, cases[i].title);
		fclose(f);
		assert_string_equal(text, cases[i].text);
		free(text);
	}
	json_decref(rows);
}

/* A text with a blank is quoted, so that a line can be split at blanks. */
static void print__one_line_quotes(void **state)
{
	static const struct col reason[] = { { "reason", "REASON", 's' } };
	const struct view v = { .one_line = true };
	json_t *rows = rows_of(first);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	view_print(f, &v, rows, reason, 1, NULL, NULL);
	fclose(f);
	assert_string_equal(text, "reason=late\nreason=\"lost it\"\nreason=late\n");
	free(text);
	json_decref(rows);
}

static void out_bits__edges(void **state)
{
	static const struct {
		double bits;
		const char *text;
	} cases[] = { { 0, "0.0" },          { 999.94, "999.9" }, { 999.95, "1.0 k" },
		      { 999940, "999.9 k" }, { 999950, "1.0 M" }, { 98765432, "98.8 M" },
		      { 25e9, "25.0 G" },    { 1e15, "1000.0 T" } };
	char buf[32];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(out_bits(cases[i].bits, buf, sizeof(buf)), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_bits__edges),
		cmocka_unit_test(select__ports_and_reasons),
		cmocka_unit_test(differences__of_counters),
		cmocka_unit_test(differences__of_bytes_by_flow),
		cmocka_unit_test(print__forms),
		cmocka_unit_test(print__one_line_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
