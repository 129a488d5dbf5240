/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What host_cost and switch_cost share: options, timing a program by this thread's CPU time,
 * medians, and the head and tail of the data file. COST_NAME is the program's name; it is defined
 * before this file is included.
 */
#ifndef BARLINE_BENCH_COST_H
#define BARLINE_BENCH_COST_H

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#ifndef COST_NAME
#define COST_NAME "cost"
#endif

#define RUNS_MAX 101

static int runs = 101, repeat = 20000;
static const char *json_path;
static FILE *json;

/* Ends the program with the message for @what. @err: errno or -errno. */
static void die_with_error(const char *what, int err)
{
	fprintf(stderr,
		COST_NAME ": %s: %s; it needs root and a kernel with bpf_prog_test_run for XDP\n",
		what, strerror(err < 0 ? -err : err));
	exit(1);
}

/* Writes entry @key of map @m, or ends the program. */
static void put_entry(const struct bpf_map *m, __u32 key, const void *v)
{
	if (bpf_map_update_elem(bpf_map__fd(m), &key, v, BPF_ANY))
		die_with_error(bpf_map__name(m), errno);
}

/*
 * Runs program @p @times times on the frame, and returns nanoseconds of CPU time per run. Ends the
 * program if the verdict is not @verdict.
 */
static double time_program(const struct bpf_program *p, const void *frame, __u32 len, int times,
			   int verdict)
{
	struct timespec a, b;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .repeat = times);
	int rc;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		rc = bpf_prog_test_run_opts(bpf_program__fd(p), &o);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		/* The kernel returns EINTR between two frames if it has work for this thread. */
	} while (rc == -EINTR);
	if (rc)
		die_with_error(bpf_program__name(p), rc);
	if ((int)o.retval != verdict) {
		fprintf(stderr,
			COST_NAME ": %s ended with XDP verdict %u instead of %d: the "
				  "measurement is not valid\n",
			bpf_program__name(p), o.retval, verdict);
		exit(1);
	}
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / times;
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the first runs values of @v and returns their median. */
static double median(double *v)
{
	qsort(v, (size_t)runs, sizeof(*v), compare_values);
	return runs & 1 ? v[runs / 2] : (v[runs / 2 - 1] + v[runs / 2]) / 2;
}

static void print_usage(FILE *f)
{
	fputs("usage: " COST_NAME " [--json FILE] [--runs N] [--repeat N]\n", f);
}

/* Parses the command line, and pins this thread to its present CPU. */
static void parse_options(int argc, char **argv)
{
	static const struct option all[] = { { "json", 1, NULL, 'j' },
					     { "runs", 1, NULL, 'r' },
					     { "repeat", 1, NULL, 'n' },
					     { "help", 0, NULL, 'h' },
					     { 0 } };
	cpu_set_t one;
	int c;

	while ((c = getopt_long(argc, argv, "", all, NULL)) != -1) {
		switch (c) {
		case 'j':
			json_path = optarg;
			break;
		case 'r':
			runs = atoi(optarg);
			break;
		case 'n':
			repeat = atoi(optarg);
			break;
		case 'h':
			print_usage(stdout);
			exit(0);
		default:
			print_usage(stderr);
			exit(2);
		}
	}
	if (optind != argc || runs < 1 || runs > RUNS_MAX || repeat < 1) {
		print_usage(stderr);
		exit(2);
	}
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Opens the data file, if one is wanted, and writes its head. */
static void json_open(void)
{
	struct utsname un;

	if (!json_path)
		return;
	json = fopen(json_path, "w");
	if (!json)
		die_with_error(json_path, errno);
	uname(&un);
	fprintf(json,
		"{\"schema\":1,\"bench\":\"" COST_NAME "\",\"kernel\":\"%s\",\"runs\":%d,"
		"\"repeat\":%d,\"unit\":\"ns per "
		"frame\",\"results\":[",
		un.release, runs, repeat);
}

/* Writes the tail of the data file and closes it. */
static void json_close(void)
{
	if (!json)
		return;
	fputs("]}\n", json);
	if (fclose(json))
		die_with_error(json_path, errno);
}

#endif
