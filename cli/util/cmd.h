/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the sub-commands of `barline` share: global options, output, and reading the maps of nodes.
 *
 * A sub-command is one line in main.c's table and one function run(argc, argv) with an argp of its
 * own, which has cmd_globals as a child, so that -j, -n and -v are taken before and after the name.
 * Exit: 0 ok, 1 failed, 2 usage.
 */
#ifndef BARLINE_CLI_CMD_H
#define BARLINE_CLI_CMD_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/node.h"
#include "maps/reasons_abi.h"
#include "maps/switch_abi.h"

#define CLI_SCHEMA 1
#define CLI_USAGE  2

/**
 * struct cli_opts - global options.
 * @json: one JSON object on stdout instead of text. @netns: ip-netns(8) name or path; NULL: the
 * current one. @verbose: count of -v.
 */
struct cli_opts {
	bool json;
	const char *netns;
	int verbose;
};
extern struct cli_opts cli;
extern const struct argp_child cmd_globals[];
extern const struct argp cmd_globals_argp;
#define cmd_globals_child                                   \
	{                                                   \
		&cmd_globals_argp, 0, "Global options:", -2 \
	}

/** cmd_parse - argp_parse(), then enter the namespace of -n; ends the process if that fails. */
void cmd_parse(const struct argp *argp, int argc, char **argv, void *input);

/** struct cmd - one sub-command; @name may have two words. */
struct cmd {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *brief;
};

/** cmd_table - all sub-commands; *@n: how many. */
const struct cmd *cmd_table(size_t *n);

int cmd_show_nodes(int argc, char **argv);
int cmd_show_ports(int argc, char **argv);
int cmd_show_barriers(int argc, char **argv);
int cmd_show_endpoints(int argc, char **argv);
int cmd_show_drops(int argc, char **argv);
int cmd_show_clock(int argc, char **argv);
int cmd_show_maps(int argc, char **argv);
int cmd_show_reservations(int argc, char **argv);
int cmd_show_holds(int argc, char **argv);
int cmd_show_queues(int argc, char **argv);
int cmd_show_fastpass(int argc, char **argv);
int cmd_show_pacer(int argc, char **argv);
int cmd_show_tokens(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_switch_up(int argc, char **argv);
int cmd_host_up(int argc, char **argv);
int cmd_switch_detach(int argc, char **argv);
int cmd_host_detach(int argc, char **argv);
int cmd_admission_set(int argc, char **argv);
int cmd_admission_show(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_send(int argc, char **argv);
int cmd_recv(int argc, char **argv);
int cmd_bench_all(int argc, char **argv);
int cmd_bench_latency(int argc, char **argv);
int cmd_arbiter_run(int argc, char **argv);
int cmd_arbiter_show(int argc, char **argv);
int cmd_arbiter_faults(int argc, char **argv);
int cmd_arbiter_bench(int argc, char **argv);
int cmd_controller_run(int argc, char **argv);
int cmd_controller_show(int argc, char **argv);
int cmd_controller_failures(int argc, char **argv);
int cmd_controller_epochs(int argc, char **argv);
int cmd_lab_run(int argc, char **argv);
int cmd_lab_up(int argc, char **argv);
int cmd_lab_exec(int argc, char **argv);
int cmd_lab_down(int argc, char **argv);
int cmd_lab_list(int argc, char **argv);

/* out.c */
int cli_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2))); /* returns 1; an object with "error" under --json */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* returns CLI_USAGE */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* to stderr under -v */
/** cli_json - print @obj with "schema" on one line of stdout; takes the reference. */
void cli_json(json_t *obj);
/** cli_number - strtod/strtoll of a whole string within limits; false: not one. */
bool cli_number(const char *s, long long min, long long max, long long *v);
bool cli_real(const char *s, double min, double max, double *v);
/** cli_cpus - "0,2-3" into @cpus; count, or -1. */
int cli_cpus(const char *s, int *cpus, int max);

/**
 * struct col - a column of a table made from an array of JSON objects: what text shows is what
 * --json has.
 * @fmt: 's' text, 'd' integer, 'f' number with one decimal, 't' ns as time with a unit, 'b' yes or
 * nothing, 'k' bytes with a unit.
 */
struct col {
	const char *key;
	const char *head;
	char fmt;
};
void out_table(FILE *f, json_t *rows, const struct col *cols, size_t ncols);
#define OUT_TABLE(f, rows, cols) out_table(f, rows, cols, sizeof(cols) / sizeof((cols)[0]))
/**
 * out_rows - the usual end of a `show`: an object {schema, key: rows}, or the table (or @none if
 * it is empty). Takes @rows.
 */
int out_rows(const char *key, json_t *rows, const struct col *cols, size_t ncols, const char *none);
char *out_time(int64_t ns, char *buf, size_t size);
char *out_bytes(uint64_t bytes, char *buf, size_t size);
/** out_progress - one line on stderr that replaces itself, only if stderr is a terminal. */
void out_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void out_progress_end(void);
/** out_dir - makes folder @dir, unless it is there. 0, or 1 after a message. */
int out_dir(const char *dir);
/**
 * out_open - @dir/@name for writing, the folder made if need be; NULL after a message. out_close -
 * 0, or 1 after a message if any of it could not be written.
 */
FILE *out_open(const char *dir, const char *name);
int out_close(const char *dir, const char *name, FILE *f);

/* plot.c */
/**
 * out_plot - draw @dir/@data with gnuplot and one of our scripts; @more: further definitions,
 * "a='b'; ...". A plot that fails says why, and is no error.
 */
void out_plot(const char *script, const char *dir, const char *more, const char *data);

/* read.c */
uint64_t mono_ns(void);
const char *reason_name(unsigned int r);
const char *reason_text(unsigned int r);
enum bl_reason_kind reason_kind(unsigned int r);
const char *role_name(unsigned int role);
const char *port_role_name(unsigned int role);
/**
 * nodes_here - nodes of the current namespace, or of the machine; fails with a sentence if there
 * is none. Count, or -1.
 */
int nodes_here(struct bl_node_ref **out, bool all);
int node_value(const struct bl_node_ref *ref, const char *map, uint32_t key, void *value,
	       uint32_t size);
/**
 * node_now - bus time of the node; 0 if its clock cannot be used (@clock is filled in if there is
 * one).
 */
uint64_t node_now(const struct bl_node_ref *ref, struct bl_clock *clock);
/** node_nic - name of the interface of a host node. */
void node_nic(const struct bl_node_ref *ref, char *name, size_t size);
/** node_alive - whether the host daemon's socket answers. */
bool node_alive(const struct bl_node_ref *ref);
/** addr_text - IPv6 or IPv4-mapped address. */
char *addr_text(const uint8_t ip[16], char *buf, size_t size);

/**
 * struct count_row - counters of one place of a node: a switch port or a direction of a host.
 */
struct count_row {
	uint32_t key;
	char name[24];
	const char *role;
	struct bl_counts n;
};
/**
 * node_count_rows - all places of a node. Count, or -1 after an error message. The caller frees.
 */
int node_count_rows(const struct bl_node_ref *ref, struct count_row **out);
uint64_t counts_frames(const struct bl_counts *n);
uint64_t counts_kind(const struct bl_counts *n, enum bl_reason_kind kind);

#endif
