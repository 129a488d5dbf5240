/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What host_cost and switch_cost share: options, one run of a program timed by this thread's CPU
 * time, medians, the head of the data file. COST_NAME: the program's name.
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

#define RUNS_MAX 101

static int runs = 15, repeat = 200000;
static const char *json_path;
static FILE *json;

static void die(const char *what, int err)
{
	fprintf(stderr,
		COST_NAME ": %s: %s; it needs root and a kernel with bpf_prog_test_run for XDP\n",
		what, strerror(err < 0 ? -err : err));
	exit(1);
}

static void put(const struct bpf_map *m, __u32 key, const void *v)
{
	if (bpf_map_update_elem(bpf_map__fd(m), &key, v, BPF_ANY))
		die(bpf_map__name(m), errno);
}

/*
 * ns of one of @times runs on the frame; ends the program if the verdict is another than @verdict.
 */
static double run(const struct bpf_program *p, const void *frame, __u32 len, int times, int verdict)
{
	struct timespec a, b;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .repeat = times);
	int rc;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		rc = bpf_prog_test_run_opts(bpf_program__fd(p), &o);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	} while (rc == -EINTR); /* the kernel gives up between two frames when it has work for this
				   thread */
	if (rc)
		die(bpf_program__name(p), rc);
	if ((int)o.retval != verdict) {
		fprintf(stderr,
			COST_NAME ": %s ended with XDP verdict %u instead of %d: what it measured "
				  "is not what it should\n",
			bpf_program__name(p), o.retval, verdict);
		exit(1);
	}
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / times;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* of the @runs values of @v, which are sorted */
static double median(double *v)
{
	qsort(v, (size_t)runs, sizeof(*v), by_value);
	return runs & 1 ? v[runs / 2] : (v[runs / 2 - 1] + v[runs / 2]) / 2;
}

static void usage(FILE *f)
{
	fputs("usage: " COST_NAME " [--json FILE] [--runs N] [--repeat N]\n", f);
}

/* The command line; the thread stays on its CPU from here on. */
static void options(int argc, char **argv)
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
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc || runs < 1 || runs > RUNS_MAX || repeat < 1) {
		usage(stderr);
		exit(2);
	}
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void json_open(void)
{
	struct utsname un;

	if (!json_path)
		return;
	json = fopen(json_path, "w");
	if (!json)
		die(json_path, errno);
	uname(&un);
	fprintf(json,
		"{\"schema\":1,\"bench\":\"" COST_NAME "\",\"kernel\":\"%s\",\"runs\":%d,"
		"\"repeat\":%d,\"unit\":\"ns per "
		"frame\",\"results\":[",
		un.release, runs, repeat);
}

static void json_close(void)
{
	if (!json)
		return;
	fputs("]}\n", json);
	if (fclose(json))
		die(json_path, errno);
}

#endif
