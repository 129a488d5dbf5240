/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The samples of one scrape, and their text in one of two formats: OpenMetrics 1.0, or version
 *0.0.4 of Prometheus' text format. Neither reads anything or knows a clock, and both work in any
 *process.
 *
 * The formats differ in a few lines: OpenMetrics names a counter without _total in its HELP and
 *TYPE lines, has UNIT lines, and ends with EOF. Lines of samples are the same, so they are written
 *once, when a sample is added, into the buffer of their family.
 *
 * Example: metric_u64(m, BL_METRIC_FP_FALLBACK, 1, LABELS("h1")) adds
 *
 *	barline_fastpass_fallback{node="h1"} 1
 */
#ifndef BARLINE_CLI_METRICS_TEXT_H
#define BARLINE_CLI_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/metrics/families.h"

#define METRIC_LABELS_MAX  5     /* labels of a family */
#define METRIC_LABEL_MAX   128   /* bytes of a label's value; the remainder is cut off */
#define METRIC_SAMPLES_MAX 60000 /* samples of a scrape; more are left out and counted */

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/** struct metric_family - a row of the list, for those who read it. */
struct metric_family {
	const char *name; /* as exported, without _total, _bucket, _sum and _count */
	const char *unit; /* "": none */
	const char *help;
	enum metric_type type;
	const char *label[METRIC_LABELS_MAX + 1]; /* NULL: the end */
};

enum metric_format {
	METRIC_PROMETHEUS,  /* text/plain; version=0.0.4 */
	METRIC_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
};

/** struct metric_bucket - one bucket of a histogram. */
struct metric_bucket {
	double le;  /* upper limit, in the unit of the family */
	uint64_t n; /* values in this bucket alone */
};

/** struct metrics - the samples of one scrape. */
struct metrics;

/** metric_family - the row of @m. */
const struct metric_family *metric_family(enum metric m);

/** metrics_new - returns an empty scrape, or NULL without memory. */
struct metrics *metrics_new(void);
/** metrics_free - frees it. NULL: no-op. */
void metrics_free(struct metrics *s);

/* the values of all labels of a family, in the order of the list */
#define LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NO_LABELS   ((const char *const[]){ NULL })

/*
 * Each adds one sample. The values of labels may hold any bytes: what is not UTF-8 becomes a
 * question mark. A wrong number of labels is a defect of the caller, and ends the process.
 */
void metric_u64(struct metrics *s, enum metric m, uint64_t v, const char *const *labels);
/** metric_ns - @ns nanoseconds as seconds, exactly. */
void metric_ns(struct metrics *s, enum metric m, int64_t ns, const char *const *labels);
/** metric_real - any number; NaN and infinity included. */
void metric_real(struct metrics *s, enum metric m, double v, const char *const *labels);
/**
 * metric_hist - a histogram.
 * @b: @n buckets with rising limits; the last one has the limit infinity
 * @sum: of all values
 */
void metric_hist(struct metrics *s, enum metric m, const struct metric_bucket *b, size_t n,
		 double sum, const char *const *labels);

/** metrics_samples - how many samples were added, and how many were left out. */
uint32_t metrics_samples(const struct metrics *s, uint32_t *omitted);

/**
 * metrics_text - the text of the scrape, which the caller frees; *@len gets its length. Returns
 * NULL if memory was short here or in a call before. Families without a sample are left out.
 */
char *metrics_text(const struct metrics *s, enum metric_format f, size_t *len);

/** metrics_type - the Content-Type of a format. */
const char *metrics_type(enum metric_format f);

/**
 * metrics_accept - the format that a client prefers.
 * @accept: its header Accept; NULL: it has none
 */
enum metric_format metrics_accept(const char *accept);

#endif
