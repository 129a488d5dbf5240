// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See text.h. */
#include "cli/metrics/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LINE_MAX_ 2048 /* bytes of one sample: five labels, each byte of which may be escaped */

/** struct text - text that grows. */
struct text {
	char *at;
	size_t len, room;
	bool failed; /* memory was short */
};

struct metrics {
	struct text of[BL_METRIC_COUNT]; /* lines of samples, by family */
	uint32_t samples, omitted;
};

#define LABEL_NAMES(sym, type_, name_, unit_, labels_, help_) [BL_METRIC_##sym] = labels_,
static const char *const label_names[] = { BL_METRICS(LABEL_NAMES) };
#undef LABEL_NAMES

#define FAMILY(sym, type_, name_, unit_, labels_, help_)                                       \
	[BL_METRIC_##sym] = {                                                                  \
		.name = "barline_" name_, .unit = unit_, .help = help_, .type = METRIC_##type_ \
	},
static struct metric_family families[] = { BL_METRICS(FAMILY) };
#undef FAMILY

/* The labels, taken apart once. */
__attribute__((constructor)) static void split_labels(void)
{
	static char words[BL_METRIC_COUNT][64];
	unsigned int m, k;
	char *p, *save;

	for (m = 0; m < BL_METRIC_COUNT; m++) {
		snprintf(words[m], sizeof(words[m]), "%s", label_names[m]);
		for (k = 0, p = strtok_r(words[m], ",", &save); p && k < METRIC_LABELS_MAX;
		     p = strtok_r(NULL, ",", &save))
			families[m].label[k++] = p;
	}
}

const struct metric_family *metric_family(enum metric m)
{
	return &families[m];
}

static void add_bytes(struct text *t, const char *s, size_t n)
{
	size_t room = t->room ? t->room : 4096;
	char *at;

	if (t->failed)
		return;
	while (room < t->len + n + 1)
		room *= 2;
	if (room != t->room) {
		at = realloc(t->at, room);
		if (!at) {
			t->failed = true;
			return;
		}
		t->at = at;
		t->room = room;
	}
	memcpy(t->at + t->len, s, n);
	t->len += n;
	t->at[t->len] = '\0';
}

static void add(struct text *t, const char *s)
{
	add_bytes(t, s, strlen(s));
}

/* Writes the value of a label, escaped. Returns the number of bytes, at most twice the limit. */
static size_t put_value(char *to, const char *v)
{
	size_t n = 0, used = 0, len;

	for (; *v; v += len ? len : 1) {
		len = bl_utf8_len(v);
		used += len ? len : 1;
		if (used > METRIC_LABEL_MAX)
			break;
		if (!len) {
			to[n++] = '?';
		} else if (*v == '\\' || *v == '"') {
			to[n++] = '\\';
			to[n++] = *v;
		} else if (*v == '\n') {
			to[n++] = '\\';
			to[n++] = 'n';
		} else {
			memcpy(to + n, v, len);
			n += len;
		}
	}
	return n;
}

/** struct line - a line that is being written. A switch has thousands, so printf() is too slow. */
struct line {
	char text[LINE_MAX_];
	size_t n;
};

static void put_text(struct line *l, const char *s)
{
	size_t n = strlen(s), room = sizeof(l->text) - l->n;

	n = n < room ? n : room;
	memcpy(l->text + l->n, s, n);
	l->n += n;
}

static const char *suffix_of(enum metric_type t)
{
	return t == METRIC_COUNTER ? "_total" : "";
}

/* Writes one line, unless there are too many already. @le: of a bucket; NULL: none. */
static void put_line(struct metrics *s, enum metric m, const char *suffix, const char *le,
		     const char *value, const char *const *labels)
{
	const struct metric_family *f = &families[m];
	struct line l;
	size_t k;

	l.n = 0;
	put_text(&l, f->name);
	put_text(&l, suffix);
	for (k = 0; f->label[k] && labels[k]; k++) {
		put_text(&l, k ? "," : "{");
		put_text(&l, f->label[k]);
		put_text(&l, "=\"");
		l.n += put_value(l.text + l.n, labels[k]);
		put_text(&l, "\"");
	}
	if (f->label[k] || labels[k]) {
		fprintf(stderr, "barline: %s has other labels than its row in families.h\n",
			f->name);
		abort();
	}
	if (le) {
		put_text(&l, k++ ? ",le=\"" : "{le=\"");
		put_text(&l, le);
		put_text(&l, "\"");
	}
	put_text(&l, k ? "} " : " ");
	put_text(&l, value);
	put_text(&l, "\n");
	add_bytes(&s->of[m], l.text, l.n);
}

/* Returns whether there is room for @n samples more. */
static bool room_for(struct metrics *s, uint32_t n)
{
	if (s->samples + n > METRIC_SAMPLES_MAX) {
		s->omitted += n;
		return false;
	}
	s->samples += n;
	return true;
}

void metric_u64(struct metrics *s, enum metric m, uint64_t v, const char *const *labels)
{
	char value[24];

	snprintf(value, sizeof(value), "%" PRIu64, v);
	if (room_for(s, 1))
		put_line(s, m, suffix_of(families[m].type), NULL, value, labels);
}

void metric_ns(struct metrics *s, enum metric m, int64_t ns, const char *const *labels)
{
	uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	char value[32];

	snprintf(value, sizeof(value), "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "",
		 v / 1000000000, v % 1000000000);
	if (room_for(s, 1))
		put_line(s, m, suffix_of(families[m].type), NULL, value, labels);
}

static const char *real_text(double v, char *buf, size_t size)
{
	if (isnan(v))
		return "NaN";
	if (isinf(v))
		return v > 0 ? "+Inf" : "-Inf";
	snprintf(buf, size, "%.15g", v);
	/* OpenMetrics wants the limits of buckets as floating point numbers. */
	if (!strpbrk(buf, ".e"))
		snprintf(buf + strlen(buf), size - strlen(buf), ".0");
	return buf;
}

void metric_real(struct metrics *s, enum metric m, double v, const char *const *labels)
{
	char value[40];

	if (room_for(s, 1))
		put_line(s, m, suffix_of(families[m].type), NULL,
			 real_text(v, value, sizeof(value)), labels);
}

void metric_hist(struct metrics *s, enum metric m, const struct metric_bucket *b, size_t n,
		 double sum, const char *const *labels)
{
	char value[24], le[40], total[40];
	uint64_t all = 0;
	size_t k;

	if (!room_for(s, (uint32_t)n + 2))
		return;
	for (k = 0; k < n; k++) {
		all += b[k].n;
		snprintf(value, sizeof(value), "%" PRIu64, all);
		put_line(s, m, "_bucket", real_text(b[k].le, le, sizeof(le)), value, labels);
	}
	put_line(s, m, "_sum", NULL, real_text(sum, total, sizeof(total)), labels);
	snprintf(value, sizeof(value), "%" PRIu64, all);
	put_line(s, m, "_count", NULL, value, labels);
}

struct metrics *metrics_new(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *s)
{
	unsigned int m;

	for (m = 0; s && m < BL_METRIC_COUNT; m++)
		free(s->of[m].at);
	free(s);
}

uint32_t metrics_samples(const struct metrics *s, uint32_t *omitted)
{
	if (omitted)
		*omitted = s->omitted;
	return s->samples;
}

/* Writes the HELP, TYPE and UNIT lines of a family. */
static void add_head(struct text *t, const struct metric_family *f, enum metric_format format)
{
	static const char *const types[] = { [METRIC_GAUGE] = "gauge",
					     [METRIC_COUNTER] = "counter",
					     [METRIC_HISTOGRAM] = "histogram" };
	const char *suffix = format == METRIC_PROMETHEUS ? suffix_of(f->type) : "";
	char line[640];

	snprintf(line, sizeof(line), "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, suffix, f->help,
		 f->name, suffix, types[f->type]);
	add(t, line);
	if (format == METRIC_OPENMETRICS && *f->unit) {
		snprintf(line, sizeof(line), "# UNIT %s %s\n", f->name, f->unit);
		add(t, line);
	}
}

char *metrics_text(const struct metrics *s, enum metric_format format, size_t *len)
{
	struct text t = { 0 };
	unsigned int m;

	for (m = 0; m < BL_METRIC_COUNT; m++) {
		t.failed |= s->of[m].failed;
		if (!s->of[m].len)
			continue;
		add_head(&t, &families[m], format);
		add_bytes(&t, s->of[m].at, s->of[m].len);
	}
	add(&t, format == METRIC_OPENMETRICS ? "# EOF\n" : "");
	if (t.failed) {
		free(t.at);
		return NULL;
	}
	*len = t.len;
	return t.at;
}

const char *metrics_type(enum metric_format f)
{
	return f == METRIC_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; "
					 "charset=utf-8"
				       : "text/plain; version=0.0.4; charset=utf-8";
}

/*
 * Returns the weight that @accept gives to the media type @type, in thousandths; 0: it is not named
 * or not wanted. Parameters other than q and version are ignored.
 */
static int weight_of(const char *accept, const char *type, const char *version)
{
	size_t len = strlen(type);
	const char *at = accept;

	while (*at) {
		const char *end = at + strcspn(at, ","), *q, *v;

		at += strspn(at, " \t");
		if (!strncasecmp(at, type, len) && strchr(" \t;,", at[len])) {
			v = strstr(at, "version=");
			q = strstr(at, ";q=");
			if (!v || v > end || !strncmp(v + 8, version, strlen(version)))
				return q && q < end ? (int)(strtod(q + 3, NULL) * 1000) : 1000;
		}
		at = *end ? end + 1 : end;
	}
	return 0;
}

enum metric_format metrics_accept(const char *accept)
{
	int open, text;

	if (!accept)
		return METRIC_PROMETHEUS;
	open = weight_of(accept, "application/openmetrics-text", "1.0.0");
	text = weight_of(accept, "text/plain", "0.0.4");
	return open && open >= text ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
}
