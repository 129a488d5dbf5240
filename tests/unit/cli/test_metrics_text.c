// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/metrics/text.c: names, escaping, numbers, histograms and limits of both formats, and the list
 * of metrics in families.h.
 */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <math.h>

#include "cli/metrics/text.h"

static struct metrics *m;

static int setup(void **state)
{
	(void)state;
	m = metrics_new();
	return !m;
}

static int teardown(void **state)
{
	(void)state;
	metrics_free(m);
	return 0;
}

/* Compares the text of the scrape. */
static void expect(enum metric_format f, const char *want)
{
	size_t len = 0;
	char *text = metrics_text(m, f, &len);

	assert_non_null(text);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, want);
	free(text);
}

/* Compares the text behind the HELP and TYPE lines of the only family. */
static void expect_lines(const char *want)
{
	size_t len = 0;
	char *text = metrics_text(m, METRIC_PROMETHEUS, &len), *at;

	assert_non_null(text);
	at = strchr(strchr(text, '\n') + 1, '\n') + 1;
	assert_string_equal(at, want);
	free(text);
}

static void text__nothing(void **state)
{
	(void)state;
	expect(METRIC_PROMETHEUS, "");
	expect(METRIC_OPENMETRICS, "# EOF\n");
}

static void text__formats_differ_in_heads(void **state)
{
	(void)state;
	metric_u64(m, BL_METRIC_IF_BYTES, 7, LABELS("h1", "eth0", "receive"));
	metric_ns(m, BL_METRIC_CLOCK_BOUND, 1500, LABELS("h1"));
	expect(METRIC_PROMETHEUS, "# HELP barline_interface_bytes_total bytes of all traffic of an "
				  "interface, as the "
				  "kernel counts them\n"
				  "# TYPE barline_interface_bytes_total counter\n"
				  "barline_interface_bytes_total{node=\"h1\",port=\"eth0\","
				  "direction=\"receive\"} 7\n"
				  "# HELP barline_clock_bound_seconds largest error of bus time "
				  "now\n"
				  "# TYPE barline_clock_bound_seconds gauge\n"
				  "barline_clock_bound_seconds{node=\"h1\"} 0.000001500\n");
	expect(METRIC_OPENMETRICS, "# HELP barline_interface_bytes bytes of all traffic of an "
				   "interface, as the kernel "
				   "counts them\n"
				   "# TYPE barline_interface_bytes counter\n"
				   "# UNIT barline_interface_bytes bytes\n"
				   "barline_interface_bytes_total{node=\"h1\",port=\"eth0\","
				   "direction=\"receive\"} 7\n"
				   "# HELP barline_clock_bound_seconds largest error of bus time "
				   "now\n"
				   "# TYPE barline_clock_bound_seconds gauge\n"
				   "# UNIT barline_clock_bound_seconds seconds\n"
				   "barline_clock_bound_seconds{node=\"h1\"} 0.000001500\n"
				   "# EOF\n");
}

/* Samples of one family stand together, whatever is added in between. */
static void text__families_stay_together(void **state)
{
	(void)state;
	metric_u64(m, BL_METRIC_FP_SESSION, 1, LABELS("a"));
	metric_u64(m, BL_METRIC_FP_FALLBACK, 0, LABELS("a"));
	metric_u64(m, BL_METRIC_FP_SESSION, 0, LABELS("b"));
	expect(METRIC_PROMETHEUS, "# HELP barline_fastpass_session 1: an arbiter has answered this "
				  "host\n"
				  "# TYPE barline_fastpass_session gauge\n"
				  "barline_fastpass_session{node=\"a\"} 1\n"
				  "barline_fastpass_session{node=\"b\"} 0\n"
				  "# HELP barline_fastpass_fallback 1: no arbiter answers, and "
				  "frames leave without slots\n"
				  "# TYPE barline_fastpass_fallback gauge\n"
				  "barline_fastpass_fallback{node=\"a\"} 0\n");
}

static void label__escaped(void **state)
{
	static const struct {
		const char *value, *text;
	} rows[] = {
		{ "", "" },
		{ "a b", "a b" },
		{ "\\", "\\\\" },
		{ "\"", "\\\"" },
		{ "a\nb", "a\\nb" },
		{ "\t", "\t" },
		{ "\xc3\xa9", "\xc3\xa9" },                 /* two bytes of UTF-8 */
		{ "\xe2\x82\xac", "\xe2\x82\xac" },         /* three */
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" }, /* four */
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" }, /* the last character */
		{ "\xf4\x90\x80\x80", "????" },             /* behind it */
		{ "\xc3", "?" },                            /* cut off */
		{ "\xe2\x82", "??" },                       /* cut off */
		{ "a\xff"
		  "b",
		  "a?b" },                 /* never in UTF-8 */
		{ "\xc0\xaf", "??" },      /* overlong */
		{ "\xe0\x80\x80", "???" }, /* overlong */
		{ "\xed\xa0\x80", "???" }, /* a surrogate */
		{ "\x80", "?" },           /* a continuation alone */
	};
	char line[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		metrics_free(m);
		m = metrics_new();
		metric_u64(m, BL_METRIC_DAEMON_UP, 1, LABELS(rows[i].value));
		snprintf(line, sizeof(line), "barline_daemon_up{node=\"%s\"} 1\n", rows[i].text);
		expect_lines(line);
	}
}

/* A value is cut off at the limit, never within a character. */
static void label__cut_off(void **state)
{
	char value[METRIC_LABEL_MAX + 16], line[2 * METRIC_LABEL_MAX + 64];

	(void)state;
	memset(value, 'x', sizeof(value));
	value[METRIC_LABEL_MAX + 1] = '\0';
	metric_u64(m, BL_METRIC_DAEMON_UP, 1, LABELS(value));
	snprintf(line, sizeof(line), "barline_daemon_up{node=\"%.*s\"} 1\n", METRIC_LABEL_MAX,
		 value);
	expect_lines(line);

	metrics_free(m);
	m = metrics_new();
	strcpy(value + METRIC_LABEL_MAX - 1, "\xc3\xa9");
	metric_u64(m, BL_METRIC_DAEMON_UP, 1, LABELS(value));
	snprintf(line, sizeof(line), "barline_daemon_up{node=\"%.*s\"} 1\n", METRIC_LABEL_MAX - 1,
		 value);
	expect_lines(line);
}

/* The longest line: five labels of which each byte is escaped. */
static void label__longest_line(void **state)
{
	char v[METRIC_LABEL_MAX + 1];
	size_t len = 0;
	char *text;

	(void)state;
	memset(v, '"', sizeof(v) - 1);
	v[sizeof(v) - 1] = '\0';
	metric_u64(m, BL_METRIC_FRAMES, UINT64_MAX, LABELS(v, v, v, v, v));
	text = metrics_text(m, METRIC_PROMETHEUS, &len);
	assert_non_null(strstr(text, "\\\"\"} 18446744073709551615\n"));
	free(text);
}

static void number__edges(void **state)
{
	static const struct {
		double v;
		const char *text;
	} rows[] = {
		{ NAN, "NaN" },    { INFINITY, "+Inf" }, { -INFINITY, "-Inf" },
		{ 0, "0.0" },      { 1, "1.0" },         { 0.5, "0.5" },
		{ 1e-9, "1e-09" }, { -2, "-2.0" },       { 1048576, "1048576.0" },
		{ 1e20, "1e+20" },
	};
	static const struct {
		int64_t ns;
		const char *text;
	} times[] = {
		{ 0, "0.000000000" },
		{ 1, "0.000000001" },
		{ -1, "-0.000000001" },
		{ 999999999, "0.999999999" },
		{ 1000000000, "1.000000000" },
		{ -1500000000, "-1.500000000" },
		{ INT64_MAX, "9223372036.854775807" },
		{ INT64_MIN, "-9223372036.854775808" },
	};
	char line[128];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		metrics_free(m);
		m = metrics_new();
		metric_real(m, BL_METRIC_CLOCK_BOUND, rows[i].v, LABELS("n"));
		snprintf(line, sizeof(line), "barline_clock_bound_seconds{node=\"n\"} %s\n",
			 rows[i].text);
		expect_lines(line);
	}
	for (i = 0; i < ARRAY_SIZE(times); i++) {
		metrics_free(m);
		m = metrics_new();
		metric_ns(m, BL_METRIC_CLOCK_BOUND, times[i].ns, LABELS("n"));
		snprintf(line, sizeof(line), "barline_clock_bound_seconds{node=\"n\"} %s\n",
			 times[i].text);
		expect_lines(line);
	}
}

static void hist__is_cumulative(void **state)
{
	static const struct metric_bucket b[] = { { 0.5, 2 }, { 1, 0 }, { INFINITY, 3 } };

	(void)state;
	metric_hist(m, BL_METRIC_PACER_LATE, b, ARRAY_SIZE(b), 2.25, LABELS("h1"));
	expect_lines("barline_pacer_late_seconds_bucket{node=\"h1\",le=\"0.5\"} 2\n"
		     "barline_pacer_late_seconds_bucket{node=\"h1\",le=\"1.0\"} 2\n"
		     "barline_pacer_late_seconds_bucket{node=\"h1\",le=\"+Inf\"} 5\n"
		     "barline_pacer_late_seconds_sum{node=\"h1\"} 2.25\n"
		     "barline_pacer_late_seconds_count{node=\"h1\"} 5\n");
}

/* What does not fit is counted; a histogram is exported completely or not at all. */
static void samples__bounded(void **state)
{
	static const struct metric_bucket b[] = { { 1, 1 }, { INFINITY, 0 } };
	uint32_t omitted, k;

	(void)state;
	for (k = 0; k < METRIC_SAMPLES_MAX - 3; k++)
		metric_u64(m, BL_METRIC_DAEMON_UP, 1, LABELS("n"));
	metric_hist(m, BL_METRIC_PACER_LATE, b, ARRAY_SIZE(b), 1, LABELS("n"));
	assert_int_equal(metrics_samples(m, &omitted), METRIC_SAMPLES_MAX - 3);
	assert_int_equal(omitted, 4);
	for (k = 0; k < 4; k++)
		metric_u64(m, BL_METRIC_DAEMON_UP, 1, LABELS("n"));
	assert_int_equal(metrics_samples(m, &omitted), METRIC_SAMPLES_MAX);
	assert_int_equal(omitted, 5);
}

static void accept__preferred(void **state)
{
	static const struct {
		const char *accept;
		enum metric_format format;
	} rows[] = {
		{ NULL, METRIC_PROMETHEUS },
		{ "", METRIC_PROMETHEUS },
		{ "*/*", METRIC_PROMETHEUS },
		{ "text/plain", METRIC_PROMETHEUS },
		{ "application/openmetrics-text", METRIC_OPENMETRICS },
		{ "application/openmetrics-textual", METRIC_PROMETHEUS },
		{ "APPLICATION/OpenMetrics-Text", METRIC_OPENMETRICS },
		{ "application/openmetrics-text;q=0", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.4,text/plain;q=0.5", METRIC_PROMETHEUS },
		{ "text/plain;q=0.5,application/openmetrics-text;q=0.5", METRIC_OPENMETRICS },
		{ "application/openmetrics-text; version=0.0.1", METRIC_PROMETHEUS },
		{ "text/plain;q=0.9, application/openmetrics-text; version=1.0.0",
		  METRIC_OPENMETRICS },
		/* what Prometheus 2.42 sends */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		  "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRIC_OPENMETRICS },
		{ ",,;;,", METRIC_PROMETHEUS },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (metrics_accept(rows[i].accept) != rows[i].format)
			fail_msg("%s", rows[i].accept);
}

/* Names and labels are those of Prometheus, and units are suffixes, as OpenMetrics demands. */
static void families__are_well_formed(void **state)
{
	static const char *const reserved[] = { "_total", "_bucket", "_count", "_sum", "_created" };
	unsigned int i, k;
	const char *c;

	(void)state;
	for (i = 0; i < BL_METRIC_COUNT; i++) {
		const struct metric_family *f = metric_family((enum metric)i);
		size_t len = strlen(f->name), n;

		for (c = f->name; *c; c++)
			if (!islower(*c) && !isdigit(*c) && *c != '_')
				fail_msg("%s has a \"%c\"", f->name, *c);
		for (k = 0; k < ARRAY_SIZE(reserved); k++) {
			n = strlen(reserved[k]);
			if (len > n && !strcmp(f->name + len - n, reserved[k]))
				fail_msg("%s ends in %s", f->name, reserved[k]);
		}
		n = strlen(f->unit);
		if (n && (len <= n + 1 || strcmp(f->name + len - n, f->unit) ||
			  f->name[len - n - 1] != '_'))
			fail_msg("%s does not end in its unit %s", f->name, f->unit);
		if (strpbrk(f->help, "\\\n\"") || !*f->help)
			fail_msg("the help of %s has to be escaped, or there is none", f->name);
		for (k = 0; f->label[k]; k++)
			for (c = f->label[k]; *c; c++)
				if (!islower(*c) && *c != '_')
					fail_msg("%s: the label %s", f->name, f->label[k]);
		for (k = 0; k < i; k++)
			if (!strcmp(metric_family((enum metric)k)->name, f->name))
				fail_msg("%s is listed twice", f->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text__nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(text__formats_differ_in_heads, setup, teardown),
		cmocka_unit_test_setup_teardown(text__families_stay_together, setup, teardown),
		cmocka_unit_test_setup_teardown(label__escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(label__cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(label__longest_line, setup, teardown),
		cmocka_unit_test_setup_teardown(number__edges, setup, teardown),
		cmocka_unit_test_setup_teardown(hist__is_cumulative, setup, teardown),
		cmocka_unit_test_setup_teardown(samples__bounded, setup, teardown),
		cmocka_unit_test(accept__preferred),
		cmocka_unit_test(families__are_well_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
