/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of `barline`. Each has a line in the table of main.c and a function that parses its
 * own options. Exit status: 0 ok, 1 failed, 2 wrong usage. The commands of workloads are in
 * bench/run.h.
 */
#ifndef BARLINE_CLI_CMD_H
#define BARLINE_CLI_CMD_H

#include <stdio.h>

/** cmd_print_names - Prints the names of all commands, those of workloads included, one per line.
 */
void cmd_print_names(FILE *f);

int cmd_show_nodes(int argc, char **argv);
int cmd_show_ports(int argc, char **argv);
int cmd_show_barriers(int argc, char **argv);
int cmd_show_endpoints(int argc, char **argv);
int cmd_show_sources(int argc, char **argv);
int cmd_show_links(int argc, char **argv);
int cmd_show_drops(int argc, char **argv);
int cmd_show_clock(int argc, char **argv);
int cmd_show_maps(int argc, char **argv);
int cmd_show_reservations(int argc, char **argv);
int cmd_show_holds(int argc, char **argv);
int cmd_show_queues(int argc, char **argv);
int cmd_show_fastpass(int argc, char **argv);
int cmd_show_pacer(int argc, char **argv);
int cmd_show_tokens(int argc, char **argv);
int cmd_show_auth(int argc, char **argv);
int cmd_show_hooks(int argc, char **argv);
int cmd_show_network(int argc, char **argv);
int cmd_show_nics(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_sysdump(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_switch_up(int argc, char **argv);
int cmd_host_up(int argc, char **argv);
int cmd_switch_setup(int argc, char **argv);
int cmd_host_setup(int argc, char **argv);
int cmd_switch_detach(int argc, char **argv);
int cmd_host_detach(int argc, char **argv);
int cmd_host_drain(int argc, char **argv);
int cmd_host_undrain(int argc, char **argv);
int cmd_admission_set(int argc, char **argv);
int cmd_admission_show(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_send(int argc, char **argv);
int cmd_recv(int argc, char **argv);
int cmd_arbiter_run(int argc, char **argv);
int cmd_arbiter_reload(int argc, char **argv);
int cmd_arbiter_secret(int argc, char **argv);
int cmd_arbiter_show(int argc, char **argv);
int cmd_arbiter_faults(int argc, char **argv);
int cmd_controller_run(int argc, char **argv);
int cmd_controller_reload(int argc, char **argv);
int cmd_controller_show(int argc, char **argv);
int cmd_controller_failures(int argc, char **argv);
int cmd_controller_epochs(int argc, char **argv);
int cmd_controller_admit(int argc, char **argv);
int cmd_controller_remove(int argc, char **argv);
int cmd_pki_init(int argc, char **argv);
int cmd_pki_issue(int argc, char **argv);
int cmd_config_show(int argc, char **argv);
int cmd_config_diff(int argc, char **argv);
int cmd_config_reload(int argc, char **argv);
int cmd_pki_renew(int argc, char **argv);
int cmd_pki_show(int argc, char **argv);
int cmd_auth_init(int argc, char **argv);
int cmd_auth_rotate(int argc, char **argv);
int cmd_auth_issue(int argc, char **argv);
int cmd_lab_up(int argc, char **argv);
int cmd_lab_exec(int argc, char **argv);
int cmd_lab_down(int argc, char **argv);
int cmd_lab_list(int argc, char **argv);
int cmd_completion(int argc, char **argv);

/** sysdump_commands - Sets the function from which `sysdump` knows what there is to show. */
void sysdump_commands(void (*print_names)(FILE *f));

/** struct cmd_entry - a command, for cmd_each_fn. */
struct cmd_entry {
	const char *name; /* up to three words; "": what can be before a command */
	int (*run)(int argc, char **argv);
	const char *word; /* of a workload of `lab run`: the word after the program; else NULL */
};

/** cmd_each_fn - Calls @fn for all commands, those of workloads included. */
typedef void (*cmd_each_fn)(void (*fn)(void *ctx, const struct cmd_entry *c), void *ctx);

/** completion_commands - Sets the function with which `completion` learns all commands. */
void completion_commands(cmd_each_fn each);

#endif
